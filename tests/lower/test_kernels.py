"""Kernels and functions of Loop IR: outlining, what the verifier refuses, what the interpreter runs, and native code."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.cpu.compile import compile_program
from tapeless.ir.span import NOWHERE
from tapeless.ir.target import Target
from tapeless.ir.types import F64, I64, Const, DType, Type, Var, i64
from tapeless.lower.device_parts import apart
from tapeless.lower.footprint import footprint, outline
from tapeless.lower.ir.interp import LoopError, run_program
from tapeless.lower.ir.loopir import (
    Alloc,
    Buffer,
    Check,
    For,
    Free,
    Invoke,
    Kernel,
    Launch,
    Let,
    Load,
    Pointer,
    Program,
    Return,
    Site,
    Space,
    Store,
    Swap,
    Tag,
)
from tapeless.lower.ir.printer import print_program
from tapeless.lower.ir.verify import LoopIRError, verify_program
from tapeless.lower.ir.walk import buffers, walk
from tapeless.lower.kernels import outlined
from tapeless.lower.lowering import Lowered, lower

N, W, I = Var("n", I64), Var("w", F64), Var("i", I64)
X, Y = Buffer("x", DType.f64, Space.param, None, False), Buffer("y", DType.f64, Space.param)
SITE = Site("ValueError", "{0}", NOWHERE, (DType.i64,))


def scaled(tag=Tag.threads) -> Program:
    """y[i] = w * x[i] * s[0], with a buffer of each iteration's own."""
    e, p, q = (Var(name, F64) for name in "epq")
    own = Buffer("own", DType.f64, Space.stack, 1)
    body = (Load(e, X, I), Let(p, "mul", (e, W)), Store(own, i64(0), p), Load(q, own, i64(0)), Store(Y, I, q))
    return Program("f", (N, X, W, Y), Var("threads", I64), (), (), (For(I, i64(0), N, body, tag=tag),))


def test_parallel_loops_are_launched_with_what_they_use():
    program = outlined(scaled(), Tag.threads)
    verify_program(program)
    (launch,) = program.body
    assert isinstance(launch, Launch)
    assert launch.kernel.params == (W, X, Y)  # neither the bound nor what is an iteration's own
    assert outlined(program, Tag.threads) == program
    assert "launch f_kernel1(w, x, y):\n    for i in 0..n {threads}:" in print_program(program)
    x, y = np.arange(4.0), np.zeros(4)
    run_program(program, [4, x, 2.0, y], shuffle=1)
    np.testing.assert_array_equal(y, 2 * x)


def test_loops_of_other_tags_stay():
    assert isinstance(outlined(scaled(Tag.grid), Tag.grid).body[0], Launch)
    assert isinstance(outlined(scaled(Tag.grid), Tag.threads).body[0], For)
    assert isinstance(outlined(scaled(Tag.seq), Tag.threads).body[0], For)


@pytest.mark.parametrize(("params", "missing"), [((X, Y), "w"), ((W, Y), "x"), ((W, X), "y")])
def test_what_is_not_handed_over_is_refused(params, missing):
    program = outlined(scaled(), Tag.threads)
    (launch,) = program.body
    broken = replace(program, body=(Launch(replace(launch.kernel, params=params)),))
    with pytest.raises(LoopIRError, match=f"{missing} is not handed over"):
        verify_program(broken)
    with pytest.raises(LoopIRError):
        run_program(broken, [4, np.arange(4.0), 2.0, np.zeros(4)])


def test_kernels_are_outermost_parallel_loops():
    loop = scaled().body[0]
    for inner in (replace(loop, tag=Tag.seq), Let(Var("t", F64), "neg", (W,))):
        with pytest.raises(LoopIRError):
            verify_program(replace(scaled(), body=(Launch(Kernel("k", (W, X, Y), (inner,))),)))
    outer = For(Var("j", I64), i64(0), N, (Launch(Kernel("k", (W, X, Y), (loop,))),), tag=Tag.threads)
    with pytest.raises(LoopIRError, match="outermost"):
        verify_program(replace(scaled(), body=(outer,)))


def test_programs_of_the_compiler_are_launches():
    def f(x):
        return np.sum(np.exp(x) * x)

    compiled = tp.function(f, cache=False).compiled(np.ones(10))
    assert any(isinstance(s, Launch) for s in walk(compiled.lowered.program.body))
    assert all(s.tag is not Tag.threads for s in compiled.lowered.program.body if isinstance(s, For))
    x = np.random.default_rng(1).uniform(-1, 1, 100_000)
    assert tp.function(f, threads=2, cache=False)(x) == pytest.approx(f(x))


# -- functions


def power() -> Program:
    """t = x[0] * w, and y[i] = t for all i, in memory of its own first; n must be positive."""
    e, t, v = Var("e", F64), Var("t", F64), Var("v", F64)
    ok, j = Var("ok", Type(DType.bool)), Var("j", I64)
    own = Buffer("own", DType.f64, Space.heap)
    body = (
        Let(ok, "gt", (N, i64(0))), Check(ok, 0, (N,)), Load(e, X, i64(0)), Let(t, "mul", (e, W)), Alloc(own, N),
        For(I, i64(0), N, (Store(own, I, t),)), For(j, i64(0), N, (Load(v, own, j), Store(Y, j, v))), Free(own), Return(0, t),
    )  # fmt: skip
    return Program("g", (N, X, W, Y), Var("threads", I64), (DType.f64,), (), body, (SITE,))


M, A, B, U = (
    Var("m", I64),
    Buffer("a", DType.f64, Space.param, None, False),
    Buffer("b", DType.f64, Space.param),
    Var("u", F64),
)


def invoking(*more, functions=None) -> Program:
    call = Invoke("g", (M, Pointer(A, i64(1)), Const(2.0), Pointer(B, i64(0))), (U,))
    return Program(
        "f", (M, A, B), Var("threads", I64), (DType.f64,), (), (call, *more, Return(0, U)), (SITE,),
        functions=(power(),) if functions is None else functions,
    )  # fmt: skip


def test_functions_are_invoked():
    program = invoking()
    verify_program(program)
    b = np.zeros(3)
    assert run_program(program, [3, np.array([5.0, 7.0]), b]) == ([14.0], [])
    np.testing.assert_array_equal(b, [14.0] * 3)
    text = print_program(program)
    assert text.startswith("program g(") and "u: f64 = invoke g(m, &a[1], 2.0, &b[0])" in text
    with pytest.raises(LoopError):
        run_program(program, [0, np.ones(2), np.ones(3)])


def test_native_code_invokes_functions():
    native = compile_program(invoking())
    b, err, results = np.zeros(3), np.zeros(11, np.int64), np.zeros(1)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)
    call = run(native.address)
    a = np.array([5.0, 7.0])
    call(3, a.ctypes.data, b.ctypes.data, 1, results.ctypes.data, err.ctypes.data)
    assert results[0] == 14.0 and b.tolist() == [14.0] * 3 and err[0] == 0
    call(0, a.ctypes.data, b.ctypes.data, 1, results.ctypes.data, err.ctypes.data)
    assert err[0] == 1 and err[1] == 0


REFUSED = {
    "there is no function g": {"functions": ()},
    "u is bound twice": {"more": [Invoke("g", (M, Pointer(A, i64(0)), Const(2.0), Pointer(B, i64(0))), (U,))]},
    "parameter a is read-only": {"more": [Invoke("g", (M, Pointer(A, i64(0)), Const(2.0), Pointer(A, i64(0))), (W,))]},
    "w of g is a scalar": {
        "more": [Invoke("g", (M, Pointer(A, i64(0)), Pointer(A, i64(0)), Pointer(B, i64(0))), (W,))]
    },
    "x of g is an array": {"more": [Invoke("g", (M, M, Const(2.0), Pointer(B, i64(0))), (W,))]},
    "g takes 4 arguments": {"more": [Invoke("g", (M,), (W,))]},
    "g has other results": {"more": [Invoke("g", (M, Pointer(A, i64(0)), Const(2.0), Pointer(B, i64(0))), ())]},
}


@pytest.mark.parametrize("message", REFUSED)
def test_invocations_that_are_refused(message):
    more = REFUSED[message]
    with pytest.raises(LoopIRError, match=message):
        verify_program(invoking(*more.get("more", ()), functions=more.get("functions")))


def test_memory_of_functions_counts():
    found = footprint(outline(Lowered(invoking(), ())), {M: 1000})
    assert found.peak == 8064
    twice = invoking(Invoke("g", (M, Pointer(A, i64(0)), Const(2.0), Pointer(B, i64(0))), (W,)))
    assert footprint(outline(Lowered(twice, ())), {M: 1000}).peak == 8064  # one after the other


# -- the memory of a device


def doubled_twice(middle=()) -> tuple[Program, Buffer]:
    """y = 2 * (2 * x) by way of memory of its own."""
    h, j = Buffer("h", DType.f64, Space.heap), Var("j", I64)
    e, p, q, r = (Var(name, F64) for name in "epqr")
    two = Const(2.0, DType.f64)
    first = For(I, i64(0), N, (Load(e, X, I), Let(p, "mul", (e, two)), Store(h, I, p)), tag=Tag.grid)
    second = For(j, i64(0), N, (Load(q, h, j), Let(r, "mul", (q, two)), Store(Y, j, r)), tag=Tag.grid)
    body = (Alloc(h, N), first, *(stm(h) for stm in middle), second, Free(h))
    return outlined(Program("f", (N, X, Y), Var("threads", I64), (), (), body), Tag.grid), h


def test_what_kernels_touch_is_on_the_device():
    program, h = doubled_twice()
    verify_program(apart(program, {}))
    assert h.space is Space.device
    x, y = np.arange(4.0), np.zeros(4)
    run_program(program, [4, x, y], shuffle=1)
    np.testing.assert_array_equal(y, 4 * x)


def test_the_host_copies_single_elements():
    program, h = doubled_twice([lambda h: Store(h, i64(0), Const(1.0, DType.f64))])
    program = apart(program, {})
    verify_program(program)
    assert h.space is Space.device and sum(isinstance(s, Launch) for s in program.body) == 2


def test_buffers_that_change_places_are_in_one_memory():
    other = Buffer("o", DType.f64, Space.heap)
    changes = [lambda h: Alloc(other, N), lambda h: Swap(h, other), lambda h: Free(other)]
    program, h = doubled_twice(changes)
    verify_program(apart(program, {}))
    assert h.space is other.space is Space.device


def test_maps_lowered_for_a_gpu_pass_arrays_on_in_its_memory():
    def f(x):
        y = np.sqrt(x)
        for _ in range(3):
            y = np.sin(y) * 2
        return y

    core = tp.function(f).compiled(np.ones(1000)).traced.core
    for target, spaces in ((Target.cpu, {Space.param, Space.heap}), (Target.ptx, {Space.param, Space.device})):
        program = lower(core, target).program
        verify_program(program)
        assert {b.space for stm in walk(program.body) for b in buffers(stm)} == spaces
