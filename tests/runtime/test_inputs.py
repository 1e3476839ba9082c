"""What may be passed to a compiled function: indices, sizes, memory layouts, extreme numbers, large programs.

The plain Python function is the oracle throughout: the same result, or an exception of the same type.
"""

import gc
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tapeless as tp
from tests.system import refuses_memory

I64 = np.iinfo(np.int64)
INF, NAN = float("inf"), float("nan")


def outcome(function, *args):
    """The result, or the type of the exception."""
    fresh = [np.array(a, order="K") if isinstance(a, np.ndarray) else a for a in args]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*fresh)
    except Exception as problem:
        return type(problem)


def same(function, *args, **options):
    compiled = tp.function(function, threads=2, **options)
    got, expected = outcome(compiled, *args), outcome(function, *args)
    if isinstance(expected, type):
        assert isinstance(got, type) and issubclass(got, expected), (got, expected)
        return
    assert isinstance(got, type(expected)), (got, expected)  # a float64 is a float
    np.testing.assert_array_equal(got, expected)
    if isinstance(expected, np.ndarray):
        assert got.dtype == expected.dtype and got.shape == expected.shape


def element(a, i):
    return a[i]


def element_of_matrix(a, i, j):
    return a[i, j]


def row(a, i):
    return a[i].sum()


def store(a, i):
    a[i] = 5.0
    return a


def part(a, i, j):
    return a[i:j]


def part_backwards(a, i, j):
    return a[i:j:-1]


def every_second(a, i, j):
    return a[i:j:2]


def gather(a, k):
    return a[k]


def scatter(a, k):
    a[k] = 7.0
    return a


@pytest.mark.parametrize("i", [0, 2, -1, -3, 3, -4, 2**62, -(2**62), int(I64.max), int(I64.min)])
def test_positions(i):
    same(element, np.arange(3.0), i)
    same(store, np.arange(3.0), i)
    same(row, np.arange(6.0).reshape(3, 2), i)


@pytest.mark.parametrize("i, j", [(0, 0), (-2, -3), (1, 2), (2, 0), (0, 3), (-3, 0), (0, -4)])
def test_positions_in_a_matrix(i, j):
    same(element_of_matrix, np.arange(6.0).reshape(2, 3), i, j)


@pytest.mark.parametrize("function", [part, part_backwards, every_second])
def test_slices_are_clamped(function):
    bounds = [-10, -3, -1, 0, 1, 3, 10, int(I64.max), int(I64.min)]
    for i in bounds:
        for j in bounds:
            same(function, np.arange(4.0), i, j)


@pytest.mark.parametrize("k", [[0, -1, -3, 2], [3], [-4], []])
def test_integer_arrays(k):
    same(gather, np.arange(3.0), np.array(k, np.int64))
    same(gather, np.arange(3.0), np.array(k, np.int32))
    same(scatter, np.arange(3.0), np.array(k, np.int64))


# -- out of range, from everywhere


def in_map(a, k):
    return tp.map(lambda i: a[k[i]], len(k))


def in_prange(a, k):
    out = np.zeros(len(k))
    for i in tp.prange(len(k)):
        out[i] = a[k[i]]
    return out


def in_reduction(a, k):
    s = 0.0
    for i in tp.prange(len(k)):
        s += a[k[i]]
    return s


def in_nested_loops(a, k):
    s = 0.0
    for i in range(3):
        for j in range(len(k)):
            while s < 1e9:
                t = np.zeros(50)
                t[j % 50] = a[k[j]]
                s += t.sum()
                break
    return s


def in_nested_maps(a, k):
    return tp.map(lambda i: tp.map(lambda j: a[k[i] + j], 4).sum(), len(k))


def in_scan(a, k):
    return tp.scan(lambda x, y: x + y, 0.0, tp.map(lambda i: a[k[i]], len(k)))


def in_hist(a, k):
    return tp.hist(lambda x, y: x + y, 0.0, 10, k, tp.map(lambda i: a[k[i]], len(k)))


def beside_other_results(a, k):
    b = np.ones(1000)
    c = b * 2
    d = tp.map(lambda i: a[k[i]] + c[i], len(k))
    return b, c, d


EVERYWHERE = [
    in_map, in_prange, in_reduction, in_nested_loops, in_nested_maps, in_scan, in_hist, beside_other_results,
]  # fmt: skip
GOOD = np.arange(1000) % 5
BAD = GOOD.copy()
BAD[777] = 99


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.thorough
@pytest.mark.sampled(5)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("function", EVERYWHERE)
def test_index_error_names_the_line_and_leaks_nothing(function, threads):
    compiled = tp.function(function, threads=threads)
    a = np.arange(10.0)
    expected = compiled(a, GOOD)
    first = function.__code__.co_firstlineno
    with pytest.raises(
        IndexError, match=r"index 99 is out of bounds for axis 0 with size 10 \(.*test_inputs.py:(\d+)\)"
    ) as e:
        compiled(a, BAD)
    line = int(str(e.value).rpartition(":")[2][:-1])
    assert first < line < first + 10

    def fail(times):
        for _ in range(times):
            with pytest.raises(IndexError):
                compiled(a, BAD)
        gc.collect()
        return resident()

    before = fail(100)
    assert fail(1000) - before < 2_000_000  # each call allocates 8 kB and more
    for got, want in zip(np.atleast_1d(compiled(a, GOOD)), np.atleast_1d(expected)):
        np.testing.assert_array_equal(got, want)


def test_only_unsafe_drops_the_tests():
    safe, unsafe = tp.function(in_map), tp.function(in_map, unsafe=True)
    a = np.arange(10.0)
    np.testing.assert_array_equal(unsafe(a, GOOD), safe(a, GOOD))
    assert "IndexError" in safe.ir(a, GOOD, stage="loops")
    assert "IndexError" not in unsafe.ir(a, GOOD, stage="loops")
    np.testing.assert_array_equal(unsafe(a, -1 - GOOD), safe(a, -1 - GOOD))  # negative positions still wrap


# -- shapes


def total(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j]
    return s


def double(a):
    return a * 2 + 1


def columns(a):
    return a.sum(axis=0)


def largest(a):
    return a.max()


def average(a):
    return a.mean()


def product(a):
    return a @ a.T


def flat_sum(a):
    s = 0.0
    for x in a:
        s += x
    return s


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize("function", [total, double, columns, largest, average, product])
def test_zero_size_dimensions(function, shape):
    same(function, np.ones(shape))


@pytest.mark.parametrize("function", [double, columns, largest, average, flat_sum])
def test_empty_arrays(function):
    same(function, np.zeros(0))


def sorted_(a):
    return np.sort(a), np.cumsum(a), tp.map(lambda x: x + 1, a), tp.scan(lambda x, y: x + y, 0.0, a)


def test_empty_arrays_in_library_calls():
    for got in tp.function(sorted_)(np.zeros(0)):
        assert got.shape == (0,)
    assert tp.function(lambda a: tp.reduce(lambda x, y: x * y, 1.0, a))(np.zeros(0)) == 1.0


def test_arrays_without_dimensions():
    assert tp.function(double)(np.array(3.0)) == 7.0
    assert tp.function(lambda a: a[()] + a[...])(np.array(3.0)) == 6.0

    def in_place(a):
        a += 1.0
        return a

    with pytest.raises(tp.CompileError, match="TP115"):
        tp.function(in_place)(np.array(3.0))


BASE = np.arange(24.0).reshape(4, 6)


def misaligned(a):
    return np.frombuffer(bytearray(b"\0" + a.tobytes()), np.uint8)[1:].view(a.dtype).reshape(a.shape)


def structured(a):
    fields = np.zeros(a.shape, [("pad", "i1"), ("value", a.dtype)])
    fields["value"] = a
    return fields["value"]


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = {
    "transposed": lambda a: a.T.copy().T,
    "view_of_transposed": lambda a: np.ascontiguousarray(a.T).T,
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "fortran": np.asfortranarray,
    "big_endian": lambda a: a.astype(">f8"),
    "misaligned": misaligned,
    "structured": structured,
    "part": lambda a: np.pad(a, 3)[3:-3, 3:-3],
}


def first_column(a):
    for i in range(a.shape[0]):
        a[i, 0] = i + 100.0
    return a


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    a = LAYOUTS[layout](BASE.copy())
    np.testing.assert_array_equal(a, BASE)
    assert tp.function(total)(a) == BASE.sum()
    np.testing.assert_array_equal(tp.function(double)(a), BASE * 2 + 1)
    np.testing.assert_array_equal(tp.function(product)(a), BASE @ BASE.T)
    expected = first_column(BASE.copy())
    assert tp.function(first_column)(a) is a
    np.testing.assert_array_equal(a, expected)


def test_read_only_arrays_are_read(tmp_path):
    for a in (read_only(BASE), np.broadcast_to(np.arange(6.0), (4, 6))):
        assert tp.function(total)(a) == a.sum()
        with pytest.raises(tp.CompileError, match="TP115"):
            tp.function(first_column)(a)
    mapped = np.memmap(tmp_path / "a", np.float64, "w+", shape=(4, 6))
    tp.function(first_column)(mapped)
    assert mapped[3, 0] == 103.0


def test_one_function_takes_all_layouts_in_turn():
    f = tp.function(total)
    for _ in range(2):
        for make in LAYOUTS.values():
            assert f(make(BASE.copy())) == BASE.sum()
        assert f(read_only(BASE)) == BASE.sum()


def shifted(a, b):
    for i in range(len(a)):
        a[i] = b[i] + 1
    return a


def test_overlapping_arguments():
    f = tp.function(shifted)
    x = np.arange(6.0)
    f(x, np.zeros(6))  # the short way in is ready from here on
    np.testing.assert_array_equal(f(x, x), np.full(6, 2.0))
    for pair in [(x[1:], x[:-1]), (x[:], x[:]), (x[::2], x[:3]), (x[::-1], x)]:
        with pytest.raises(tp.ArgumentError, match="shares memory"):
            f(*pair)
    f(x[::2], x[1::2])  # side by side, not on top of each other
    np.testing.assert_array_equal(tp.function(lambda a, b: a + b)(x[1:], x[:-1]), x[1:] + x[:-1])


def test_many_element_types_of_one_size():
    f = tp.function(double)
    for dtype in (
        np.longlong,
        np.int64,
        np.int32,
        np.float32,
        np.float64,
        np.complex64,
        np.complex128,
        np.intc,
        np.double,
    ):
        a = np.arange(3).astype(dtype)
        np.testing.assert_array_equal(f(a), double(a))
        assert f(a).dtype == double(a).dtype


# -- sizes


def zeros(n):
    return np.zeros(n)


def ones(n, m):
    return np.ones((n, m))


@pytest.mark.parametrize("n", [0, 3, -1, int(I64.min)])
def test_sizes(n):
    same(zeros, n)
    same(ones, n, 2)
    same(ones, 2, n)


@refuses_memory
@pytest.mark.parametrize("n", [10**13, 2**57, 2**60 + 5, 2**61, 2**62, 2**63 - 1])
def test_too_large_sizes(n):
    for function in (zeros, lambda n: tp.map(lambda i: i * 2, n), np_arange, temporary):
        with pytest.raises((MemoryError, ValueError)):
            tp.function(function)(n)


def np_arange(n):
    return np.arange(n)


def temporary(n):
    a = np.zeros(n)
    a[0] = 1.0
    for i in range(3):
        a[i] = a[i - 1] + 1.0
    return a[1]


@refuses_memory
@pytest.mark.parametrize(
    "n, m", [(2**32, 2**32), (2**33, 2**31), (2**40, 2**24 + 1), (2**61, 8), (2**59, 32), (10**6, 10**8)]
)
def test_products_of_sizes_that_overflow(n, m):
    def three(n, m):
        return np.ones((n, m, 2))

    for function in (ones, three):
        with pytest.raises((MemoryError, ValueError)):
            tp.function(function)(n, m)
    assert tp.function(ones)(2, 3).sum() == 6.0


# -- extreme numbers


def floor_divide(a, b):
    return a // b


def modulo(a, b):
    return a % b


def divide(a, b):
    return a / b


def both(a, b):
    return divmod(a, b)


NUMBERS = [
    (7, 0), (7, -2), (-7, 2), (0, -5), (7.0, 0.0), (7.5, -2.0), (-7.5, 2.0), (INF, 2.0), (2.0, INF), (-2.0, INF),
    (NAN, 2.0), (0.0, -2.0), (-0.0, 2.0),
]  # fmt: skip


@pytest.mark.parametrize("function", [floor_divide, modulo, divide, both])
def test_division(function):
    for a, b in NUMBERS:
        same(function, a, b)
    for dtype in (np.int32, np.int64):
        low = np.iinfo(dtype).min
        same(function, np.array([7, -7, low, 0, low], dtype), np.array([0, 2, -1, 0, 1], dtype))
    same(function, np.array([7.0, -7, INF, 0, NAN, -0.0]), np.array([0.0, 2, -1, 0, 1, 3]))


def test_smallest_integer_divided_by_minus_one_wraps():
    """Python's integers have no end, 64 bits do; above all the processor must not trap."""
    assert tp.function(floor_divide)(int(I64.min), -1) == I64.min
    assert tp.function(modulo)(int(I64.min), -1) == 0


def left(a, b):
    return a << b


def right(a, b):
    return a >> b


def test_shifts():
    for a, b in [(1, 3), (-8, 1), (5, 0), (1, -1)]:
        same(left, a, b)
        same(right, a, b)
    for a, b in [(-8, 64), (-8, 1000), (1, 64), (1, 200)]:
        same(right, a, b)
    assert tp.function(left)(1, 64) == tp.function(left)(1, 200) == 0  # the bits are gone
    same(left, np.array([1, -8, 1, 1, -1]), np.array([3, 64, 63, 200, 1]))
    same(right, np.array([1, -8, 1, 1, -1]), np.array([3, 64, 63, 200, 1]))
    same(right, np.array([1, -8, 1, -1], np.int32), np.array([3, 32, 31, 200], np.int32))


def to_int(x):
    return int(x)


def rounded(x):
    return round(x)


def floor(x):
    return math.floor(x)


@pytest.mark.parametrize("function", [to_int, rounded, floor])
def test_float_to_int(function):
    for x in (1.9, -1.9, 0.5, 1.5, 2.5, -0.5, NAN, INF, -INF, 4.5e15, -1e18):
        same(function, x)
    for x in (1e300, -1e300, 2.0**63, 9.3e18):
        with pytest.raises(OverflowError):
            tp.function(function)(x)


def test_array_conversions_do_not_trap():
    values = np.array([1.9, -1.9, NAN, INF, -INF, 1e300, 3e9])
    for dtype in (np.int64, np.int32, np.bool_):
        got = tp.function(lambda a: a.astype(dtype))(values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(got[:2], values.astype(dtype)[:2])


def power(a, b):
    return a**b


def test_powers():
    for a, b in [
        (2.0, 0.5),
        (-2.0, 3.0),
        (0.0, 0.0),
        (0.0, -1.0),
        (-0.0, -3.0),
        (INF, 0.0),
        (1.0, NAN),
        (2, 5),
        (0, 0),
    ]:
        same(power, a, b)
    with pytest.raises(ValueError, match="complex"):  # Python's result would be of another type
        tp.function(power)(-8.0, 1 / 3)
    same(lambda x: x**-1, 0.0)


def nan_everywhere(a, x):
    best, count = -1e300, 0
    for i in range(len(a)):
        if a[i] > best:
            best = a[i]
        if not a[i] == a[i]:
            count += 1
    return best, count, a.max(), a.min(), np.nanmax(a), max(x, best), min(best, x), a[0] < x


def test_nan_and_inf():
    for x in (NAN, INF, -INF, 1.0):
        for values in ([1.0, NAN, 2.0], [INF, -INF, 0.0], [NAN, NAN, 1.0], [-0.0, 0.0, 1.0]):
            got, expected = (
                outcome(tp.function(nan_everywhere), np.array(values), x),
                nan_everywhere(np.array(values), x),
            )
            np.testing.assert_array_equal(np.array(got, float), np.array(expected, float))


def counted(start, stop, step):
    s = 0
    for i in range(start, stop, step):
        s += i
    return s


@pytest.mark.parametrize(
    "bounds",
    [(0, 5, 1), (5, 0, -1), (0, 5, 0), (5, 0, 1), (0, 10, 3), (10, 0, -3), (-3, -9, -2), (2**62, 2**62 + 1, 1)],
)
def test_ranges(bounds):
    same(counted, *bounds)


TOP, BOTTOM = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    "bounds",
    [(1, BOTTOM, 1), (TOP, BOTTOM, 1), (BOTTOM, TOP, -1), (TOP - 3, TOP, 1), (BOTTOM, BOTTOM + 3, 1), (TOP, TOP - 3, -1), (3, BOTTOM, TOP),
     (0, TOP, 2**62), (1, TOP, 2**62 + 1), (BOTTOM + 2, BOTTOM, -1), (TOP, 0, BOTTOM), (-1, BOTTOM, BOTTOM), (0, TOP, TOP), (-5, TOP - 5, TOP)],
)  # fmt: skip
def test_ranges_near_the_limits(bounds):
    same(numbers_of, *bounds)
    same(bounded_numbers, *bounds)
    same(length_of, *bounds)


def numbers_of(start, stop, step):
    n, last, some = 0, 0, 0
    for i in range(start, stop, step):
        n += 1
        last = i
        some ^= i
    return n, last, some


def bounded_numbers(start, stop, step):
    n, last = 0, 0
    for i in range(start, stop, step):
        n += 1
        last = i
        if n > 4:
            break
    return n, last


def length_of(start, stop, step):
    return len(range(start, stop, step))


def first_up(start, stop):
    for i in range(start, stop):
        return i
    return 0


def even_steps(start, stop):
    n = 0
    for i in range(start, stop, 2**62):
        n += 1
    return n


def test_ranges_that_are_too_long():
    """Nothing goes around by 64 bits; what cannot be counted raises."""
    for f in (first_up, even_steps):
        with pytest.raises(OverflowError, match="range"):
            tp.function(f)(BOTTOM, TOP)
    for bounds in ((BOTTOM, TOP, 1), (TOP, -1, BOTTOM), (0, BOTTOM, BOTTOM)):
        with pytest.raises(OverflowError, match="range"):
            tp.function(length_of)(*bounds)
    assert tp.function(first_up)(-5, TOP - 6) == -5


# -- large programs


def written(tmp_path, text, name="program"):
    path = tmp_path / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    names = {}
    exec(compile(text, str(path), "exec"), names)
    return names["f"]


def indented(lines):
    return "".join("    " * (depth + 1) + text + "\n" for depth, text in lines)


def deep_ifs(n):
    lines = [line for k in range(n) for line in ((k, f"if x > {k}.5:"), (k + 1, "y += x"))]
    return f"def f(x):\n    y = 0.0\n{indented(lines)}    return y\n"


def deep_ifs_with_else(n):
    lines = [line for k in range(n) for line in ((k, f"if x > {k}.5:"), (k + 1, "y += x"))]
    lines += [line for k in reversed(range(n)) for line in ((k, "else:"), (k + 1, "y -= x"))]
    return f"def f(x):\n    y = 0.0\n{indented(lines)}    return y\n"


def deep_loops(n):
    lines = [(k, f"for i{k} in range(int(x)):") for k in range(n)] + [(n, "y += 1.0")]
    return f"def f(x):\n    y = 0\n{indented(lines)}    return y\n"


def deep_while_loops(n):
    lines = [line for k in range(n) for line in ((k, f"i{k} = 0"), (k, f"while i{k} < x:"), (k + 1, f"i{k} += 1"))]
    return f"def f(x):\n    y = 0\n{indented([*lines, (n, 'y += 1.0')])}    return y\n"


def long_straight_line(n):
    return "def f(x):\n    y = x\n" + "".join(f"    y = y * 0.99 + {k}.0\n" for k in range(n)) + "    return y\n"


def many_ifs(n):
    return (
        "def f(x):\n    y = x\n"
        + "".join(f"    if y > {k}:\n        y = y * 0.5\n" for k in range(n))
        + "    return y\n"
    )


def many_returns(n):
    return "def f(x):\n" + "".join(f"    if x == {k}:\n        return {k}.0\n" for k in range(n)) + "    return -1.0\n"


def long_chain(n):
    arms = "".join(f"    elif x == {k}:\n        y, z = x * {k}.5, {k}.0\n" for k in range(1, n))
    return (
        f"def f(x):\n    if x == 0:\n        y, z = x, 1.0\n{arms}    else:\n        y, z = -x, 0.0\n    return y + z\n"
    )


def long_chain_of_names(n):
    start = "".join(f"    v{k} = 0.0\n" for k in range(n))
    arms = "".join(f"    {'el' if k else ''}if x == {k}:\n        v{k} = x * 1.5\n" for k in range(n))
    return f"def f(x):\n{start}{arms}    return {' + '.join(f'v{k}' for k in range(n))}\n"


def long_sum(n):
    return "def f(x):\n    return " + " + ".join(["x"] * n) + "\n"


def deep_calls(n):
    text = "def g0(x): return x + 1.0\n" + "".join(f"def g{k}(x): return g{k - 1}(x) * 0.5\n" for k in range(1, n))
    return f"{text}def f(x): return g{n - 1}(x)\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "make, n, x",
    [(deep_ifs, 30, 12.0), (deep_ifs_with_else, 30, 12.0), (deep_loops, 18, 1.0), (deep_while_loops, 15, 1.0),
     (long_straight_line, 2000, 1.0), (many_ifs, 200, 5.0), (many_returns, 70, 12.0), (long_chain, 300, 40.0),
     (long_chain_of_names, 40, 12.0),
     (long_sum, 800, 1.0), (deep_calls, 250, 1.0)],
    ids=lambda v: getattr(v, "__name__", None),
)  # fmt: skip
def test_large_programs(make, n, x, tmp_path):
    f = written(tmp_path, make(n))
    assert tp.function(f)(x) == pytest.approx(f(x), rel=1e-12)


def calls_made(run):
    """How many Python functions are called: the work, whatever else the machine does."""
    made = 0

    def count(frame, event, arg):
        nonlocal made
        made += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return made


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "make, n, growth",
    [(long_chain, 50, 2.6), (many_returns, 50, 2.6), (deep_ifs_with_else, 9, 2.6), (long_straight_line, 300, 2.6),
     (many_ifs, 50, 2.6), (deep_calls, 50, 2.6),
     (deep_loops, 9, 5.0), (deep_while_loops, 8, 5.0)],  # a name that changes its type does so level by level
    ids=lambda v: getattr(v, "__name__", None),
)  # fmt: skip
def test_work_grows_with_the_program(make, n, growth, tmp_path):
    """For twice the statements, about twice the work: nothing is found anew at every level of a nest."""
    programs = [written(tmp_path, make(size), f"program{size}") for size in (3, n, 2 * n)]
    tp.function(cache=False)(programs[0]).compiled(3.0)  # what is only done once
    small, large = (calls_made(lambda f=f: tp.function(cache=False)(f).compiled(3.0)) for f in programs[1:])
    assert large < growth * small


def chains_in_branches(n):
    """Adjoints of what comes before are sums of two of what comes behind, in loops that add to an accumulator."""
    rest = [f"t{k} = 0.5 * t{k - 1} + 0.25 * t{k - 2}" for k in range(2, n)]
    one, other = (indented([(1, line) for line in [f"t0 = {x}", f"t1 = 0.5 * {x}", *rest]]) for x in ("x", "2.0 * x"))
    return f"import numpy as np\n\ndef f(x):\n    if x[0] > 0.1:\n{one}    else:\n{other}    return np.sum(t{n - 1})\n"


def test_work_of_derivatives_grows_with_the_program(tmp_path):
    programs = [written(tmp_path, chains_in_branches(n), f"chain{n}") for n in (4, 10, 20)]
    tp.grad(programs[0], cache=False)(np.ones(3))  # what is only done once
    small, large = (calls_made(lambda f=f: tp.grad(f, cache=False)(np.ones(3))) for f in programs[1:])
    assert large < 2.6 * small


def chain_of_conditions(n):
    """A condition made of the two before it, over and over: as an expression it would have 2 ** n parts."""
    chain = [f"t{k} = (t{k - 1} and not t{k - 2}) or (t{k - 2} and x[0] > {k})" for k in range(2, n)]
    return f"def f(x):\n    t0 = x[0] > 0.1\n    t1 = x[1] > 0.2\n{indented([(0, line) for line in chain])}    return x[2] * x[2] if t{n - 1} else x[1]\n"


def test_work_of_conditions_grows_with_the_program(tmp_path):
    programs = [written(tmp_path, chain_of_conditions(n), f"conditions{n}") for n in (4, 10, 20)]
    tp.grad(programs[0], cache=False)(np.ones(3))
    small, large = (calls_made(lambda f=f: tp.grad(f, cache=False)(np.ones(3))) for f in programs[1:])
    assert large < 2.6 * small


@pytest.mark.thorough
def test_deep_programs_can_be_looked_into(tmp_path):
    f = tp.function(written(tmp_path, long_chain(250)))
    assert f.ir(3.0, stage="core").count("if ") >= 250
    assert "x" in f.ir(3.0, stage="loops")
    assert f.explain(3.0).lines


def test_arguments_that_contain_themselves():
    loop: list = [1.0]
    loop.append(loop)
    with pytest.raises(tp.ArgumentError, match="contains itself"):
        tp.function(lambda t: t[0])(loop)
