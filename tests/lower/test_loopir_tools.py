"""The printer, the verifier and the interpreter of Loop IR on programs written by hand."""

import numpy as np
import pytest

from tapeless.ir.core import Shown
from tapeless.ir.span import Span
from tapeless.ir.types import BOOL, F32, F64, I64, Const, DType, Type, Var, const, i64
from tapeless.lower.ir.interp import LoopError, run_program
from tapeless.lower.ir.loopir import (
    Alloc,
    Assign,
    Atomic,
    Barrier,
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
    Program,
    Return,
    Site,
    Space,
    Store,
    Swap,
    Tag,
    While,
)
from tapeless.lower.ir.printer import print_program
from tapeless.lower.ir.verify import LoopIRError, verify_program

HERE = Span("model.py", 7, 4, 7, 9)
SITE = Site("IndexError", "index {0} is out of bounds for length {1}", HERE)
ZERO, ONE, TWO = Const(0.0), Const(1.0), Const(2.0)
TRUE, FALSE = Const(True, DType.bool), Const(False, DType.bool)


def program(params, *body, scalars=(), given=(), sites=(SITE,), **more):
    return Program(
        "f", tuple(params), Var("threads", I64), tuple(scalars), tuple(given), tuple(body), tuple(sites), **more
    )


def run(p, *args, **options):
    verify_program(p)
    return run_program(p, args, **options)


def param(name, dtype=DType.f64, written=False):
    return Buffer(name, dtype, Space.param, None, written)


def heap(name, dtype=DType.f64):
    return Buffer(name, dtype, Space.heap)


def stack(name, size, dtype=DType.f64):
    return Buffer(name, dtype, Space.stack, size)


def fill(buffer, n, value=ZERO):
    i = Var("i", I64)
    return For(i, i64(0), n, (Store(buffer, i, value),))


def sum_program(tag=Tag.seq):
    n, x = Var("n", I64), param("x")
    s, i, e, t = Var("s", F64), Var("i", I64), Var("e", F64), Var("t", F64)
    loop = For(i, i64(0), n, (Load(e, x, i), Let(t, "add", (s, e)), Assign(s, t)), tag=tag)
    return program([n, x], Declare(s, ZERO), loop, Return(0, s), scalars=[DType.f64])


def matrix_times_vector():
    """y = A x with y handed over; the index of A is i * n + j."""
    m, n = Var("m", I64), Var("n", I64)
    a, x, y = param("a"), param("x"), heap("y")
    i, j, row, k = Var("i", I64), Var("j", I64), Var("t", I64), Var("t", I64)
    s, ae, xe, p, q = Var("s", F64), Var("e", F64), Var("e", F64), Var("p", F64), Var("p", F64)
    dot = (
        Let(k, "add", (row, j), exact=True),
        Load(ae, a, k),
        Load(xe, x, j),
        Let(p, "mul", (ae, xe)),
        Let(q, "add", (s, p), reassoc=True),
        Assign(s, q),
    )
    inner = For(j, i64(0), n, dot, tag=Tag.simd)
    body = (Let(row, "mul", (i, n), exact=True), Declare(s, ZERO), inner, Store(y, i, s))
    outer = For(i, i64(0), m, body, tag=Tag.threads)
    return program([m, n, a, x], Alloc(y, m), outer, Give(0, y), given=[DType.f64])


# --- running -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", [Tag.seq, Tag.simd])
def test_sum(tag):
    x = np.arange(5.0)
    assert run(sum_program(tag), 5, x, shuffle=1) == ([10.0], [])


def test_nested_loops_give():
    a, x = np.arange(12.0), np.array([1.0, 2.0, 3.0, 4.0])
    for seed in (None, 0, 1):
        scalars, (y,) = run(matrix_times_vector(), 3, 4, a, x, shuffle=seed)
        assert scalars == []
        np.testing.assert_array_equal(y, a.reshape(3, 4) @ x)


def test_scalars_keep_their_type():
    x, y, k = Var("x", F32), Var("y", F32), Var("k", I64)
    p = program(
        [x],
        Let(y, "div", (x, const(3, DType.f32))),
        Let(k, "convert", (const(2.75, DType.f32),)),
        Return(0, y),
        Return(1, k),
        scalars=[DType.f32, DType.i64],
    )
    (first, second), _ = run(p, 1.0)
    assert first == np.float32(1) / np.float32(3) and first.dtype == np.float32
    assert second == 2 and second.dtype == np.int64


def test_negative_step():
    y, i, k = param("y", DType.i64, written=True), Var("i", I64), Var("k", I64)
    body = (Assign(k, i), Store(y, i, k))
    p = program([y], Declare(k, i64(9)), For(i, i64(4), i64(-1), body, step=-2), Return(0, k), scalars=[DType.i64])
    out = np.full(5, -7)
    assert run(p, out)[0] == [0]
    np.testing.assert_array_equal(out, [0, -7, 2, -7, 4])


def collatz():
    """The number of steps from n to 1."""
    n, x, steps, r, s, a, b, h = (Var(name, I64) for name in ("n", "x", "steps", "r", "s", "a", "b", "h"))
    c, odd = Var("c", BOOL), Var("odd", BOOL)
    triple = (Let(a, "mul", (x, i64(3))), Let(b, "add", (a, i64(1))), Assign(x, b))
    halve = (Let(h, "floordiv", (x, i64(2))), Assign(x, h))
    count = (Let(s, "add", (steps, i64(1))), Assign(steps, s))
    body = (Let(r, "mod", (x, i64(2))), Let(odd, "eq", (r, i64(1))), If(odd, triple, halve), *count)
    loop = While((Let(c, "ne", (x, i64(1))),), c, body)
    return program([n], Declare(x, n), Declare(steps, i64(0)), loop, Return(0, steps), scalars=[DType.i64])


def test_while_and_if():
    assert run(collatz(), 27)[0] == [111]
    assert run(collatz(), 1)[0] == [0]


def test_swap_exchanges_memory():
    n, a, b, i, j, e, t = (
        Var("n", I64),
        heap("a"),
        heap("b"),
        Var("i", I64),
        Var("j", I64),
        Var("e", F64),
        Var("t", F64),
    )
    step = For(j, i64(0), n, (Load(e, a, j), Let(t, "mul", (e, TWO)), Store(b, j, t)))
    p = program(
        [n],
        Alloc(a, n), Alloc(b, n), fill(a, n, ONE),
        For(i, i64(0), i64(3), (step, Swap(a, b))),
        Free(b), Give(0, a),
        given=[DType.f64],
    )  # fmt: skip
    np.testing.assert_array_equal(run(p, 4)[1][0], [8.0] * 4)


def test_swap_of_different_sizes():
    a, b = heap("a"), heap("b")
    p = program([], Alloc(a, i64(1)), Alloc(b, i64(2)), Swap(a, b), Free(a), Free(b))
    with pytest.raises(LoopIRError, match="sizes differ: 1 and 2"):
        run(p)


def test_negative_size_is_empty():
    a = heap("a")
    assert len(run(program([], Alloc(a, i64(-3)), Give(0, a), given=[DType.f64]))[1][0]) == 0


def test_atomics():
    keys, hist, i, k = param("keys", DType.i64), param("hist", DType.i64, written=True), Var("i", I64), Var("k", I64)
    n = Var("n", I64)
    p = program([n, keys, hist], For(i, i64(0), n, (Load(k, keys, i), Atomic("add", hist, k, i64(1))), tag=Tag.threads))
    out = np.zeros(3, np.int64)
    run(p, 5, np.array([0, 2, 2, 1, 2]), out, shuffle=3)
    np.testing.assert_array_equal(out, [1, 1, 3])


def test_print(capsys):
    x = Var("x", F64)
    run(program([x], Print(("x is ", Shown(0), "; ", Shown(1, "{:5}"), "\n"), (x, TRUE))), 1.5)
    assert capsys.readouterr().out == "x is 1.5;     1\n"


def test_threads_is_bound():
    p = program([])
    p = Program("f", (), p.threads, (DType.i64,), (), (Return(0, p.threads),))
    assert run(p, threads=4)[0] == [4]


# --- checks ------------------------------------------------------------------------------------------------------


def test_check():
    i, n, ok = Var("i", I64), Var("n", I64), Var("ok", BOOL)
    p = program([i, n], Let(ok, "lt", (i, n)), Check(ok, 0, (i, n)))
    run(p, 1, 2)
    with pytest.raises(LoopError) as caught:
        run(p, 3, 2)
    assert caught.value.site == 0 and caught.value.values == (3, 2)


def test_check_in_threads_ends_one_iteration():
    y, i, ok = param("y", written=True), Var("i", I64), Var("ok", BOOL)
    loop = For(i, i64(0), i64(5), (Let(ok, "ne", (i, i64(2))), Check(ok, 0, (i,)), Store(y, i, ONE)), tag=Tag.threads)
    out = np.zeros(5)
    after = Store(y, i64(2), TWO)
    with pytest.raises(LoopError) as caught:
        run(program([y], loop, after), out, shuffle=0)
    assert caught.value.values == (2,)
    np.testing.assert_array_equal(out, [1, 1, 0, 1, 1])


# --- order -------------------------------------------------------------------------------------------------------


def prefix_sum(tag):
    """Each iteration reads what the one before wrote: legal under `seq` only."""
    y, i, k, e, f, t = (
        param("y", written=True),
        Var("i", I64),
        Var("k", I64),
        Var("e", F64),
        Var("f", F64),
        Var("t", F64),
    )
    body = (
        Let(k, "sub", (i, i64(1)), exact=True), Load(e, y, k), Load(f, y, i), Let(t, "add", (e, f)), Store(y, i, t),
    )  # fmt: skip
    return program([y], For(i, i64(1), i64(9), body, tag=tag))


def test_shuffle_shows_dependence_on_order():
    in_order = np.ones(9)
    run(prefix_sum(Tag.threads), in_order)
    np.testing.assert_array_equal(in_order, np.arange(1.0, 10.0))
    shuffled, seq = np.ones(9), np.ones(9)
    run(prefix_sum(Tag.threads), shuffled, shuffle=0)
    assert not np.array_equal(in_order, shuffled)
    run(prefix_sum(Tag.seq), seq, shuffle=0)
    np.testing.assert_array_equal(in_order, seq)


def block_sums(width=8, barrier=True):
    """Sums of `width` elements each, by a tree in shared memory: one block per iteration of the grid."""
    n, x, y = Var("blocks", I64), param("x"), param("y", written=True)
    shared = Buffer("part", DType.f64, Space.shared, width)
    b, t, base, at, e = Var("b", I64), Var("t", I64), Var("base", I64), Var("at", I64), Var("e", F64)
    half, k, h = Var("half", I64), Var("k", I64), Var("h", I64)
    c, going, first = Var("c", BOOL), Var("going", BOOL), Var("first", BOOL)
    l, r, s, total = Var("l", F64), Var("r", F64), Var("s", F64), Var("total", F64)
    wait = (Barrier(),) if barrier else ()
    combine = (
        Let(k, "add", (t, half), exact=True),
        Load(l, shared, t),
        Load(r, shared, k),
        Let(s, "add", (l, r)),
        Store(shared, t, s),
    )
    next_half = (Let(h, "floordiv", (half, i64(2))), Assign(half, h))
    halving = While(
        (Let(going, "gt", (half, i64(0))),), going, (Let(c, "lt", (t, half)), If(c, combine), *wait, *next_half)
    )
    thread = (
        Let(base, "mul", (b, i64(width)), exact=True),
        Let(at, "add", (base, t), exact=True),
        Load(e, x, at),
        Store(shared, t, e),
        *wait,
        Declare(half, i64(width // 2)),
        halving,
        Let(first, "eq", (t, i64(0))),
        If(first, (Load(total, shared, i64(0)), Store(y, b, total))),
    )
    block = For(t, i64(0), i64(width), thread, tag=Tag.block)
    return program([n, x, y], For(b, i64(0), n, (block,), tag=Tag.grid))


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_barrier_reduction(seed):
    x, y = np.arange(24.0), np.zeros(3)
    run(block_sums(), 3, x, y, shuffle=seed)
    np.testing.assert_array_equal(y, x.reshape(3, 8).sum(axis=1))


def test_barrier_forgotten():
    with pytest.raises(LoopIRError, match="element 4 of part is read before it is written"):
        run(block_sums(barrier=False), 3, np.arange(24.0), np.zeros(3))


def test_barrier_not_reached_by_all():
    t, c = Var("t", I64), Var("c", BOOL)
    p = program([], For(t, i64(0), i64(4), (Let(c, "lt", (t, i64(3))), If(c, (Barrier(),))), tag=Tag.block))
    with pytest.raises(LoopIRError, match="3 threads wait at a barrier"):
        run(p)


def test_two_different_barriers():
    t, c = Var("t", I64), Var("c", BOOL)
    p = program(
        [], For(t, i64(0), i64(4), (Let(c, "lt", (t, i64(3))), If(c, (Barrier(),), (Barrier(),))), tag=Tag.block)
    )
    with pytest.raises(LoopIRError, match="do not reach"):
        run(p)


def test_barrier_in_nested_blocks_and_a_loop():
    """Rotates a 2 x 3 block of values by one, twice: every thread reads its neighbour's cell between two barriers."""
    y, shared = param("y", DType.i64, written=True), Buffer("s", DType.i64, Space.shared, 6)
    b, u, v, row, at, k, e, next_, wrapped = (
        Var(name, I64) for name in ("b", "u", "v", "row", "at", "k", "e", "next", "wrapped")
    )
    out = Var("out", I64)
    rotate = (
        Let(next_, "add", (at, i64(1)), exact=True),
        Let(wrapped, "mod", (next_, i64(6))),
        Load(e, shared, wrapped),
        Barrier(),
        Store(shared, at, e),
        Barrier(),
    )
    thread = (
        Let(row, "mul", (u, i64(3)), exact=True),
        Let(at, "add", (row, v), exact=True),
        Store(shared, at, at),
        Barrier(),
        For(k, i64(0), i64(2), rotate),
        Load(out, shared, at),
        Store(y, at, out),
    )
    inner = For(v, i64(0), i64(3), thread, tag=Tag.block)
    p = program([y], For(b, i64(0), i64(1), (For(u, i64(0), i64(2), (inner,), tag=Tag.block),), tag=Tag.grid))
    for seed in (None, 0, 1):
        y_out = np.zeros(6, np.int64)
        run(p, y_out, shuffle=seed)
        np.testing.assert_array_equal(y_out, [2, 3, 4, 5, 0, 1])


def test_check_between_barriers():
    t, ok, y = Var("t", I64), Var("ok", BOOL), param("y", written=True)
    thread = (Let(ok, "ne", (t, i64(1))), Check(ok, 0, (t,)), Barrier(), Store(y, t, ONE))
    out = np.zeros(3)
    with pytest.raises(LoopError) as caught:
        run(program([y], For(t, i64(0), i64(3), thread, tag=Tag.block)), out)
    assert caught.value.values == (1,)
    np.testing.assert_array_equal(out, [1, 0, 1])


# --- memory ------------------------------------------------------------------------------------------------------


def test_out_of_bounds():
    x, k, e = param("x"), Var("k", I64), Var("e", F64)
    p = program([k, x], Load(e, x, k), Return(0, e), scalars=[DType.f64])
    assert run(p, 1, np.arange(2.0))[0] == [1.0]
    for k in (2, -1):
        with pytest.raises(
            LoopIRError, match=f"index {k} is outside of x, which has 2 elements\n  in `e: f64 = x\\[k\\]`"
        ):
            run(p, k, np.arange(2.0))


@pytest.mark.parametrize("make", [lambda: (heap("a"), True), lambda: (stack("a", 3), False)], ids=["heap", "stack"])
def test_uninitialised_read(make):
    a, allocate = make()
    e = Var("e", F64)
    body = [Store(a, i64(0), ONE), Load(e, a, i64(1)), Return(0, e)]
    if allocate:
        body = [Alloc(a, i64(3)), *body, Free(a)]
    p = program([], *body, scalars=[DType.f64])
    with pytest.raises(LoopIRError, match="element 1 of a is read before it is written"):
        run(p)
    assert np.isnan(run(p, check_uninitialised=False)[0][0])


def test_stack_memory_is_new_in_each_iteration():
    a, i, c, e = stack("a", 1), Var("i", I64), Var("c", BOOL), Var("e", F64)
    body = (Let(c, "eq", (i, i64(0))), If(c, (Store(a, i64(0), ONE),)), Load(e, a, i64(0)))
    loop = For(i, i64(0), i64(2), body)
    with pytest.raises(LoopIRError, match="read before it is written"):
        run(program([], loop))
    run(program([], Store(a, i64(0), TWO), loop))  # a use outside makes it one buffer for the whole loop


def test_giving_uninitialised_memory():
    a = heap("a")
    p = program([], Alloc(a, i64(2)), Store(a, i64(0), ONE), Give(0, a), given=[DType.f64])
    with pytest.raises(LoopIRError, match="element 1 of a was never written"):
        run(p)
    assert run(p, check_uninitialised=False)[1][0][0] == 1.0


def test_exact_overflow():
    a, b = Var("a", I64), Var("b", I64)
    p = program([a], Let(b, "mul", (a, i64(4)), exact=True), Return(0, b), scalars=[DType.i64])
    assert run(p, 3)[0] == [12]
    with pytest.raises(LoopIRError, match="an exact mul overflows: 4611686018427387904, 4"):
        run(p, 2**62)


def test_unverified_programs_fail_too():
    """What the verifier finds in all programs, the interpreter finds when it happens."""
    a, e, x = heap("a"), Var("e", F64), param("x")
    for message, body in {
        "a is not allocated": [Load(e, a, i64(0))],
        "a is freed or given already": [Alloc(a, i64(1)), Free(a), Store(a, i64(0), ONE)],
        "a is allocated already": [Alloc(a, i64(1)), Alloc(a, i64(1))],
        "a is neither freed nor given": [Alloc(a, i64(1))],
        "x is read-only": [Store(x, i64(0), ONE)],
        "x is no heap buffer": [Free(x)],
        "e is used before it is bound": [Return(0, e)],
        "there is no block loop around": [Barrier()],
        "a value of type int64 is stored": [Alloc(a, i64(1)), Store(a, i64(0), i64(1))],
    }.items():
        with pytest.raises(LoopIRError, match=message):
            run_program(program([x], *body), [np.zeros(1)])
    with pytest.raises(LoopIRError, match=r"sets scalar results \[\] and given results \[\] only"):
        run_program(program([], scalars=[DType.f64]), [])


def test_arguments():
    n, x, y = Var("n", I64), param("x"), param("y", written=True)
    p = program([n, x, y])
    z = np.zeros(4)
    run(p, 1, z[:2], z[2:])
    for error, args in [
        (TypeError, (1, z)),
        (TypeError, (1, z[::2], np.zeros(2))),
        (TypeError, (1, np.zeros(2, np.float32), np.zeros(2))),
        (TypeError, (1, z.reshape(2, 2), np.zeros(2))),
        (ValueError, (1, z[:3], z[2:])),
    ]:
        with pytest.raises(error):
            run(p, *args)


# --- calls -------------------------------------------------------------------------------------------------------


def scale_program():
    x, a, status, e = param("x"), heap("a"), Var("status", I64), Var("e", F64)
    call = Call("scale", (i64(2), Const(3.0), Pointer(x, i64(1)), Pointer(a, i64(0))), status)
    return program(
        [x], Alloc(a, i64(3)), call, Load(e, a, i64(1)), Free(a), Return(0, e), Return(1, status),
        scalars=[DType.f64, DType.i64],
    )  # fmt: skip


def test_call():
    def scale(n, factor, x, y):
        y[:n] = factor * x[:n]
        return 5

    assert run(scale_program(), np.arange(4.0), routines={"scale": scale})[0] == [6.0, 5]


def test_call_marks_only_what_it_writes():
    def scale(n, factor, x, y):
        y[0] = 1.0
        return 0

    with pytest.raises(LoopIRError, match="element 1 of a is read before"):
        run(scale_program(), np.arange(4.0), routines={"scale": scale})


def test_call_of_nobody():
    with pytest.raises(LoopIRError, match="no routine 'scale' was passed"):
        run(scale_program(), np.arange(4.0))


def test_call_cannot_write_what_is_read_only():
    def scale(n, factor, x, y):
        x[0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        run(scale_program(), np.arange(4.0), routines={"scale": scale})


# --- verifier ----------------------------------------------------------------------------------------------------

N, X, OUT = Var("n", I64), param("x"), param("out", written=True)
A, B, W, P = heap("a"), heap("b"), stack("w", 2), Buffer("p", DType.f64, Space.shared, 4)
I, J, S, T, K, C = Var("i", I64), Var("j", I64), Var("s", F64), Var("t", F64), Var("k", I64), Var("c", BOOL)
ARRAY = Var("array", Type(DType.f64, (3,)))

REJECTED = {
    "s is used before it is bound": [Let(T, "neg", (S,))],
    "t is bound twice": [Let(T, "neg", (ONE,)), Let(T, "neg", (ONE,))],
    "i is bound twice": [For(I, i64(0), N, ()), For(I, i64(0), N, ())],
    "t is used before": [If(TRUE, (Let(T, "neg", (ONE,)),)), Store(OUT, i64(0), T)],
    "array is no scalar": [Declare(ARRAY, ONE)],
    "there is no operation frobnicate": [Let(T, "frobnicate", (ONE,))],
    "add takes 2 operands": [Let(T, "add", (ONE,))],
    r"add does not take \(f64, i64\)": [Let(T, "add", (ONE, i64(1)))],
    r"sin does not take \(i64\)": [Let(T, "sin", (i64(1),))],
    r"select does not take \(f64, f64, f64\)": [Let(T, "select", (ONE, ONE, ONE))],
    "k must be f64": [Let(K, "add", (ONE, ONE))],
    "c must be f64": [Load(C, X, i64(0))],
    "only operations on integers": [Let(T, "add", (ONE, ONE), exact=True)],
    "1.0:f64 must be i64": [Load(T, X, ONE)],
    "1:i64 must be f64": [Store(OUT, i64(0), i64(1))],
    "1.5:i64 is no constant": [Store(OUT, Const(1.5, DType.i64), ONE)],
    "parameter x is read-only": [Store(X, i64(0), ONE)],
    "index 2 is outside of w": [Store(W, i64(2), ONE)],
    "atomic operation sin": [Atomic("sin", OUT, i64(0), ONE)],
    "lt does not combine f64": [Atomic("lt", OUT, i64(0), ONE)],
    "b is not among the parameters": [Load(T, param("b"), i64(0))],
    "s is assigned before": [Assign(S, ONE)],
    "t is bound once and cannot": [Let(T, "neg", (ONE,)), Assign(T, ONE)],
    "s is declared outside": [Declare(S, ZERO), For(I, i64(0), N, (Assign(S, ONE),), tag=Tag.threads)],
    "the step is 0": [For(I, i64(0), N, (), step=0)],
    "a grid loop stands inside": [For(I, i64(0), N, (For(J, i64(0), N, (), tag=Tag.grid),), tag=Tag.block)],
    "n must be bool": [If(N, ())],
    "c is used before": [While((), C, (Let(C, "lt", (N, N)),))],
    "a is not allocated": [Store(A, i64(0), ONE)],
    "a is not allocated, or is gone": [Alloc(A, N), Free(A), Free(A)],
    "a is allocated already": [Alloc(A, N), Alloc(A, N)],
    "left over: a": [Alloc(A, N)],
    "branches disagree on whether there is memory behind a": [If(TRUE, (Alloc(A, N),))],
    "leave the heap as it finds it, but changes a": [For(I, i64(0), N, (Alloc(A, N),))],
    "a is allocated outside": [Alloc(A, N), For(I, i64(0), N, (Free(A), Alloc(A, N)), tag=Tag.threads), Free(A)],
    "w is no heap buffer": [Free(W)],
    "different types": [Alloc(A, N), Alloc(C8 := heap("c", DType.i64), N), Swap(A, C8)],
    "there is no given result 1": [Alloc(A, N), Give(1, A)],
    "there is no error site 1": [Check(TRUE, 1)],
    "at most 3 arguments": [Check(TRUE, 0, (N, N, N, N))],
    "must be i64 or f64": [Check(TRUE, 0, (TRUE,))],
    "there is no scalar result 3": [Return(3, ONE)],
    "a parallel loop sets a result": [For(I, i64(0), N, (Return(0, ONE),), tag=Tag.threads)],
    "scalar results not set on every path: 0": [If(TRUE, (Return(0, ONE),))],
    "a barrier must stand": [For(I, i64(0), N, (Barrier(),), tag=Tag.threads)],
    "with only seq loops between": [For(I, i64(0), N, (For(J, i64(0), N, (Barrier(),), tag=Tag.simd),), tag=Tag.block)],
    "used outside of grid and block": [Store(P, i64(0), ONE)],
    "part has no argument": [Print((Shown(0),), ())],
    "is outside of w": [Call("f", (Pointer(W, i64(3)),))],
    "t must be i64": [Call("f", (), T)],
}


@pytest.mark.parametrize("message", REJECTED)
def test_rejected(message):
    with pytest.raises(LoopIRError, match=message):
        verify_program(program([N, X, OUT], *REJECTED[message], scalars=[DType.f64]))


def test_rejected_giving():
    for message, body in {
        "result 0 is given twice": [Alloc(A, N), Alloc(B, N), Give(0, A), Give(0, B)],
        "a is not allocated, or is gone": [Alloc(A, N), Give(0, A), Free(A)],
        "a loop gives a result": [For(I, i64(0), N, (Alloc(A, N), Give(0, A)))],
        "branches disagree": [Alloc(A, N), If(TRUE, (Give(0, A),))],
        "only one branch gives": [Alloc(A, N), If(TRUE, (Give(0, A),), (Free(A),))],
        "given results not set on every path: 0": [],
        "given result 0 has another type": [Alloc(K8 := heap("k", DType.i64), N), Give(0, K8)],
    }.items():
        with pytest.raises(LoopIRError, match=message):
            verify_program(program([N], *body, given=[DType.f64]))


def test_accepted():
    """Results and memory through both branches; a scalar of its own in each parallel iteration."""
    own = (Declare(S, ZERO), Alloc(A, N), Assign(S, ONE), Free(A))
    choice = Let(T, "select", (TRUE, ONE, ZERO))
    either = If(TRUE, (Alloc(A, N), Give(0, A), Return(0, ONE)), (Alloc(B, N), Give(0, B), Return(0, ZERO)))
    loop = For(I, i64(0), N, own, tag=Tag.threads)
    verify_program(program([N], loop, choice, either, scalars=[DType.f64], given=[DType.f64]))


def test_parameters_are_verified():
    for params in ([N, N], [X, X], [W], [ARRAY]):
        with pytest.raises(LoopIRError):
            verify_program(program(params))


def test_error_names_the_statement_and_its_source():
    stm = Let(T, "add", (ONE, S))
    with pytest.raises(LoopIRError) as caught:
        verify_program(program([N], For(I, i64(0), N, (For(J, i64(0), N, (stm,)),), span=HERE)))
    assert str(caught.value) == "program f: s is used before it is bound\n  in `t: f64 = 1.0 + s`\n  from model.py:7"


# --- printer -----------------------------------------------------------------------------------------------------


def test_print_folds_index_arithmetic():
    assert (
        print_program(matrix_times_vector())
        == """\
program f(m: i64, n: i64, a: param f64[], x: param f64[], threads: i64) -> f64[]
  alloc y: heap f64[m]
  for i in 0..m {threads}:
    declare s: f64 = 0.0
    for j in 0..n {simd}:
      e: f64 = a[i * n + j]
      e.1: f64 = x[j]
      p: f64 = e * e.1
      p.1: f64 = s + p {reassoc}
      s := p.1
    y[i] = s
  give 0 y
site 0: IndexError 'index {0} is out of bounds for length {1}' at model.py:7
"""
    )
    assert "    t: i64 = i * n {exact}\n" in print_program(matrix_times_vector(), fold=False)


def test_print_parentheses():
    a, b, c, d = (Var(name, I64) for name in "abcd")
    e = Var("e", F64)
    p = program(
        [N, X],
        Let(a, "add", (N, i64(1)), exact=True),
        Let(b, "mul", (a, N), exact=True),
        Let(c, "sub", (N, a), exact=True),
        Let(d, "add", (b, c), exact=True),
        Load(e, X, d),
    )
    assert "  e: f64 = x[(n + 1) * n + (n - (n + 1))]\n" in print_program(p)


def test_print_keeps_what_is_used_elsewhere_or_changes():
    a, b, d, e = Var("a", I64), Var("b", I64), Var("d", I64), Var("e", F64)
    p = program(
        [N, X],
        Let(a, "add", (N, i64(1)), exact=True),
        Load(e, X, a),
        Declare(d, a),
        Let(b, "add", (d, i64(1)), exact=True),
        Assign(d, i64(0)),
        Store(OUT, b, e),
    )
    text = print_program(p)
    assert "  a: i64 = n + 1 {exact}\n  e: f64 = x[a]\n" in text
    assert "  b: i64 = d + 1 {exact}\n  d := 0\n  out[b] = e\n" in text


def test_print_every_statement():
    d, ok, r = Var("d", F32), Var("ok", BOOL), Var("r", I64)
    p = program(
        [N, X, OUT],
        Alloc(A, N), Alloc(B, N),
        Store(W, i64(0), ONE),
        Let(d, "convert", (N,)),
        Let(ok, "lt", (d, const(1.5, DType.f32))),
        Check(ok, 0, (N, i64(3))),
        Check(ok, 9),
        While((), FALSE, ()),
        While((Let(C, "not", (ok,)),), C, (Swap(A, B),)),
        If(ok, (Free(A),), (Free(A), Atomic("add", OUT, i64(0), ONE)), likely=False),
        For(I, N, i64(0), (Barrier(),), step=-1, tag=Tag.block, vectorize=False),
        Call("dgemm", (N, Pointer(B, i64(1))), r),
        Call("done", ()),
        Print(("n = ", Shown(0)), (N,)),
        Give(0, B),
        Return(0, ONE),
        scalars=[DType.f64], given=[DType.f64], sites=[], fastmath=True,
    )  # fmt: skip
    assert (
        print_program(p)
        == """\
program f(n: i64, x: param f64[], out: param f64[] {written}, threads: i64) -> f64, f64[] {fastmath}
  buffer w: stack f64[2]
  alloc a: heap f64[n]
  alloc b: heap f64[n]
  w[0] = 1.0
  d: f32 = convert(n)
  ok: bool = d < 1.5:f32
  check ok else site 0(n, 3)
  check ok else site 9()
  while False:
    pass
  while:
    c: bool = ~ok
  do c:
    swap a, b
  if ok {unlikely}:
    free a
  else:
    free a
    atomic add out[0] 1.0
  for i in n..0 step -1 {block, scalar}:
    barrier
  r: i64 = call dgemm(n, &b[1])
  call done()
  print 'n = ' n
  give 0 b
  return 0 1.0
"""
    )


def test_print_long_header():
    names = [Var(f"a_rather_long_name_{k}", I64) for k in range(5)]
    lines = print_program(program(names)).splitlines()
    assert lines[:2] == ["program f(", "    a_rather_long_name_0: i64,"] and lines[6:8] == [
        "    threads: i64,",
        ") -> nothing",
    ]
