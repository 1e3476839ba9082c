"""Statements of Loop IR on the CPU: control flow, memory, errors, calls. Programs are written by hand."""

import ctypes

import numpy as np
import pytest

from tapeless.backends.llvm import host
from tapeless.backends.llvm.emit import emit
from tapeless.ir.core import Shown
from tapeless.ir.types import BOOL, SCALAR, Const, DType, Var, i64
from tapeless.lower.ir.loopir import (
    Alloc,
    Assign,
    Buffer,
    Call,
    Check,
    Declare,
    For,
    Free,
    Give,
    If,
    Let,
    Load,
    Pointer,
    Print,
    Return,
    Space,
    Store,
    Swap,
    Tag,
    While,
)  # fmt: skip
from tests.backends.native import call, let, param, prepare, program, run, var
from tests.system import refuses_memory

f64 = DType.f64


def heap(name, dtype=f64):
    return Buffer(name, dtype, Space.heap)


def stack(name, size, dtype=f64):
    return Buffer(name, dtype, Space.stack, size)


def floats(address, n):
    array = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_double)), (n,)).copy()
    ctypes.CDLL(None).free(ctypes.c_void_p(address))
    return array


# --- scalars and results ---


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.value)
def test_a_scalar_goes_in_and_comes_out(dtype):
    x = var("x", dtype)
    value = dtype.numpy.type(1.5 - 2.25j if dtype.is_complex else dtype.highest - 3 if dtype.is_int else 0.75)
    assert run(program([x], [Return(0, x)], [dtype]), value).scalars == [value]


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.value)
def test_constants(dtype):
    floats = {DType.f32: 0.1, DType.f64: 0.1, DType.c64: 1 + 0.1j, DType.c128: -0.1j}
    for value in (dtype.lowest, dtype.highest) if dtype.is_int else [floats.get(dtype, True)]:
        assert run(program([], [Return(0, Const(value, dtype))], [dtype])).scalars == [dtype.numpy.type(value)]


def test_results_have_slots_of_their_own():
    z = Const(1 + 2j, DType.c128)
    body = [Return(0, i64(5)), Return(2, Const(True, DType.bool)), Return(1, z), Return(3, Const(2.5))]
    outcome = run(program([], body, [DType.i64, DType.c128, DType.bool, f64]))
    assert outcome.scalars == [5, 1 + 2j, True, 2.5]


# --- loops and branches ---


def visits(lo, hi, step, dtype=DType.i64, tag=Tag.seq):
    out, n, i = param("out", dtype), var("n"), var("i", dtype)
    body = [Declare(n, i64(0)), For(i, lo, hi, (Store(out, n, i), next_ := let("m", "add", n, i64(1)),
            Assign(n, next_.var)), step=step, tag=tag), Return(0, n)]  # fmt: skip
    array = np.zeros(100, dtype.numpy)
    count = run(program([out], body, [DType.i64]), array).scalars[0]
    return array[:count].tolist()


@pytest.mark.parametrize(
    "lo, hi, step", [(0, 5, 1), (3, 3, 1), (5, 3, 1), (0, 7, 3), (-4, 4, 2), (5, -1, -1), (9, 0, -4), (0, 4, -1)]
)
def test_a_loop_is_a_range(lo, hi, step):
    assert visits(i64(lo), i64(hi), step) == list(range(lo, hi, step))
    assert visits(Const(lo, DType.i32), Const(hi, DType.i32), step, DType.i32) == list(range(lo, hi, step))


def test_grid_and_block_loops_run_in_order():
    for tag in (Tag.grid, Tag.block):
        assert visits(i64(2), i64(9), 2, tag=tag) == [2, 4, 6, 8]


def test_while():
    n, k, odd = var("n"), var("k"), var("odd", DType.bool)
    x = var("x")
    not_one = let("c", "ne", x, i64(1), dtype=DType.bool)
    bit, half = let("bit", "and", x, i64(1)), let("half", "floordiv", x, i64(2))
    triple = let("triple", "mul", x, i64(3))
    plus, more = let("plus", "add", triple.var, i64(1)), let("more", "add", k, i64(1))
    body = (
        bit, Let(odd, "eq", (bit.var, i64(1))),
        If(odd, (triple, plus, Assign(x, plus.var)), (half, Assign(x, half.var))),
        more, Assign(k, more.var),
    )  # fmt: skip
    prog = program(
        [n], [Declare(x, n), Declare(k, i64(0)), While((not_one,), not_one.var, body), Return(0, k)], [DType.i64]
    )
    assert run(prog, 27).scalars == [111]


def test_a_stack_buffer_inside_a_simd_loop_belongs_to_the_iteration():
    x, y, n, i, j = param("x", written=False), param("y"), var("n"), var("i"), var("j")
    tmp = stack("tmp", 4)
    v, w = var("v", f64), var("w", f64)
    index = let("index", "and", i, i64(3))
    back = let("back", "and", j, i64(3))
    body = (
        Load(v, x, i),
        index,
        Store(tmp, index.var, v),
        Declare(j, index.var),
        Load(w, tmp, j),
        Store(y, i, w),
        back,
    )
    X, Y = np.random.default_rng(0).random(1000), np.zeros(1000)
    run(program([x, y, n], [For(i, i64(0), n, body, tag=Tag.simd)]), X, Y, 1000)
    np.testing.assert_array_equal(Y, X)


# --- memory ---


def test_swapped_buffers_hand_results_to_the_caller():
    """Fibonacci in two buffers that change places, given to the caller in the end."""
    n, k, i = var("n"), var("k"), var("i")
    a, b = heap("a"), heap("b")
    x, y = var("x", f64), var("y", f64)
    total = let("total", "add", x, y)
    fill = For(i, i64(0), i64(2), (Store(a, i, Const(1.0)), Store(b, i, Const(1.0))))
    body = [Alloc(a, i64(2)), Alloc(b, i64(2)), fill,
            For(k, i64(0), n, (Load(x, a, i64(0)), Load(y, a, i64(1)), total, Store(b, i64(0), y),
                               Store(b, i64(1), total.var), Swap(a, b))),
            Give(0, a), Free(b)]  # fmt: skip
    for steps, want in ((0, [1, 1]), (1, [1, 2]), (5, [8, 13]), (10, [89, 144])):
        outcome = run(program([n], body, given=[f64]), steps)
        assert outcome.code == 0
        assert floats(outcome.given[0], 2).tolist() == want


def test_an_allocation_in_a_loop_is_freed_there():
    n, k, a = var("n"), var("k"), heap("a")
    prog = program([n], [For(k, i64(0), n, (Alloc(a, i64(10**6)), Store(a, k, Const(1.0)), Free(a)))])
    assert run(prog, 50_000).code == 0  # 400 GB otherwise


def test_allocations_are_aligned_and_may_be_empty():
    n, a = var("n"), heap("a")
    prog = program([n], [Alloc(a, n), Give(0, a)], given=[f64])
    for size in (0, -5, 1, 8, 1000):
        address = run(prog, size).given[0]
        assert address and address % 64 == 0
        ctypes.CDLL(None).free(ctypes.c_void_p(address))


@refuses_memory
@pytest.mark.parametrize("size", [2**60, 2**50, 2**63 - 1])
def test_out_of_memory(size):
    n, a = var("n"), heap("a")
    outcome = run(program([n], [Alloc(a, n), Store(a, i64(0), Const(1.0)), Give(0, a)], given=[f64]), size)
    assert outcome.code == -1 and outcome.given == [0]


def test_bools_are_bytes():
    x, y, n, i, c, d = param("x", DType.bool, False), param("y", DType.bool), var("n"), var("i"), *(
        Var(name, BOOL) for name in "cd")  # fmt: skip
    X, Y = np.array([True, False, True] * 40), np.zeros(120, bool)
    run(
        program([x, y, n], [For(i, i64(0), n, (Load(c, x, i), Let(d, "not", (c,)), Store(y, i, d)), tag=Tag.simd)]),
        X,
        Y,
        120,
    )
    np.testing.assert_array_equal(Y, ~X)


# --- errors ---


def test_a_failing_check_leaves_and_frees():
    n, x, a = var("n"), var("x", f64), heap("a")
    ok = let("ok", "lt", n, i64(10), dtype=DType.bool)
    body = [Alloc(a, i64(4)), Give(0, a), Return(0, i64(1)), ok, Check(ok.var, 6, (n, x)), Return(0, i64(2))]
    prog = program([n, x], body, [DType.i64], [f64])
    native, function = prepare(prog)
    good = call(prog, native, function, 9, 2.5)
    assert (good.code, good.scalars) == (0, [2]) and good.given[0]
    floats(good.given[0], 4)
    bad = call(prog, native, function, 10, 2.5)
    assert (bad.code, bad.scalars, bad.given) == (7, [1], [0])
    assert bad.args[0] == 10 and np.int64(bad.args[1]).view(np.float64) == 2.5


def test_arguments_of_a_check_are_widened():
    i, f, b, ok = var("i", DType.i32), var("f", DType.f32), var("b", DType.bool), var("ok", DType.bool)
    outcome = run(program([i, f, b, ok], [Check(ok, 0, (i, f, b))]), -3, 0.5, True, False)
    assert outcome.code == 1
    assert outcome.args[0] == -3 and np.int64(outcome.args[1]).view(np.float64) == 0.5 and outcome.args[2] == 1
    s, u = var("s", DType.i8), var("u", DType.u8)
    outcome = run(program([s, u, ok], [Check(ok, 0, (s, u))]), -3, 200, False)
    assert (outcome.args[0], outcome.args[1]) == (-3, 200)


def test_the_first_failing_iteration_is_recorded():
    n, i = var("n"), var("i")
    ok = let("ok", "lt", i, i64(17), dtype=DType.bool)
    outcome = run(program([n], [For(i, i64(0), n, (ok, Check(ok.var, 0, (i,))))]), 100)
    assert (outcome.code, outcome.args[0]) == (1, 17)


# --- libraries ---


def test_blas_takes_scalars_by_address():
    a, b, c = param("a", written=False), param("b", written=False), param("c")
    n = var("n")
    at = lambda buffer: Pointer(buffer, i64(0))
    char = lambda letter: i64(ord(letter))
    args = (char("N"), char("N"), n, n, n, Const(2.0), at(b), n, at(a), n, Const(0.0), at(c), n)
    rng = np.random.default_rng(1)
    A, B, C = rng.random((5, 5)), rng.random((5, 5)), np.zeros((5, 5))
    run(program([a, b, c, n], [Call("dgemm", args)]), A, B, C, 5)
    np.testing.assert_allclose(C, 2 * A @ B)


def test_lapack_answers_with_info():
    a, b, n = param("a"), param("b"), var("n")
    pivots, info = Buffer("pivots", DType.i32, Space.stack, 8), var("info")
    call_ = Call("dgesv", (n, i64(1), Pointer(a, i64(0)), n, Pointer(pivots, i64(0)), Pointer(b, i64(0)), n), info)
    prog = program([a, b, n], [call_, Return(0, info)], [DType.i64])
    A, B = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([9.0, 8.0])
    assert run(prog, A.copy(), B, 2).scalars == [0]
    np.testing.assert_allclose(B, np.linalg.solve(A, [9.0, 8.0]))
    assert run(prog, np.zeros((2, 2)), np.ones(2), 2).scalars == [1]


def test_print_goes_through_python(capsys):
    args = tuple(var(f"a{k}", d) for k, d in enumerate(DType))
    parts = ("values", *(part for k in range(len(args)) for part in (" ", Shown(k))), "!\n")
    floats = {DType.c64: 1 + 2j, DType.c128: 1 - 2j, DType.bool: True}
    values = [d.highest if d.is_int else floats.get(d, 0.1) for d in DType]
    run(program(args, [Print(parts, args)]), *values)
    assert capsys.readouterr().out == f"values {' '.join(map(str, values))}!\n"


# --- what the text says ---


def test_flags():
    x, y = var("x", f64), var("y", f64)
    i = var("i")
    lets = [
        Let(y, "add", (x, x)),
        let("z", "add", x, x, reassoc=True),
        let("j", "add", i, i, exact=True),
        let("k", "add", i, i),
    ]
    text = emit(program([x, i], lets), host.host()).text
    assert "fadd contract double" in text and "fadd contract reassoc nsz double" in text
    assert "add nsw i64" in text and "= add i64" in text
    assert "fadd fast double" in emit(program([x, i], lets, fastmath=True), host.host()).text


def test_parameters_that_are_only_read_say_so():
    x, y = param("x", written=False), param("y")
    v = var("v", f64)
    text = emit(program([x, y], [Load(v, x, i64(0)), Store(y, i64(0), v)]), host.host()).text
    assert "ptr noalias readonly %x" in text and "ptr noalias %y" in text and "!noalias" in text


def test_swapped_buffers_share_an_alias_class():
    a, b, v = heap("a"), heap("b"), var("v", f64)
    body = [Alloc(a, i64(1)), Alloc(b, i64(1)), Load(v, a, i64(0)), Store(b, i64(0), v), Swap(a, b)]
    assert "!noalias" not in emit(program([], body), host.host()).text


def test_names_of_any_kind():
    x = Var("π→?", SCALAR[f64])
    prog = program([x], [Return(0, x)], [f64], name='f "<lambda>" π')
    assert run(prog, 1.5).scalars == [1.5]


@pytest.mark.skipif(not host.variants("exp", 1), reason="no libmvec")
@pytest.mark.parametrize(
    "op, dtype", [("exp", f64), ("sin", DType.f32), ("pow", f64), ("tanh", f64), ("expit", DType.f32)]
)
def test_loops_over_functions_are_vectorised(op, dtype):
    x, y, n, i, v, u = param("x", dtype, False), param("y", dtype), var("n"), var("i"), var("v", dtype), var("u", dtype)
    args = (v, v) if op == "pow" else (v,)
    native, _ = prepare(
        program([x, y, n], [For(i, i64(0), n, (Load(v, x, i), Let(u, op, args), Store(y, i, u)), tag=Tag.simd)])
    )
    assert "@_ZGV" in native.optimized.split("@llvm.compiler.used")[1].split("declare")[0]


def test_large_bodies_are_not_vectorised():
    x, n, i, v = param("x"), var("n"), var("i"), var("v", f64)
    chain, last = [], v
    for k in range(4000):
        chain.append(let(f"v{k}", "mul" if k % 2 else "add", last, v))
        last = chain[-1].var
    prog = program([x, n], [For(i, i64(0), n, (Load(v, x, i), *chain, Store(x, i, last)), tag=Tag.simd)])
    native, _ = prepare(prog)
    assert native.times["optimize"] < 1.0
    assert "x double>" not in native.optimized


def test_asm_and_optimized_are_made_on_demand():
    x = var("x", f64)
    native, _ = prepare(program([x], [Return(0, x)], [f64]))
    assert "define" in native.optimized and "ret" in native.asm
