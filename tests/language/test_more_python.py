"""Python that people write around their numbers: texts with values in them, comprehensions, lists that change.

Judged by plain Python: values, texts of errors, what is printed; derivatives by differences.
"""

import functools
import operator
import re

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([0.5, -1.5, 2.0, 3.25])


def refused(f, *args):
    """The reason why it cannot be compiled."""
    with pytest.raises(tp.CompileError) as caught:
        tp.function(f)(*args)
    assert caught.value.line
    return caught.value.reason


# -- texts


def text_of(f, *args):
    """What an error says, without the place that compiled code adds."""
    try:
        f(*args)
    except Exception as problem:
        return type(problem).__name__, re.sub(r" \([^()]*\.py:\d+\)$", "", str(problem).partition("\nassert")[0])
    return None


def raised_number(x, n):
    raise ValueError(f"bad {x} and {n}: {{{x:.3f}}} {n:>5d}|{x:e}")


def raised_repr(x, n):
    raise ValueError(f"{x!r} {x=} {n=:3d} {True} {'a'!r} {None}")


def raised_sizes(a):
    if len(a) > 2:
        raise ValueError(f"{len(a)} elements, {a.shape}, {a.dtype}, {(1, 'b')}, {[1.5]}, {{'k': 1}}")
    return a


def raised_strong(a):
    raise ValueError(f"{a[0]} {a[0]!r} {a[1]:.2f}")


def raised_from_a_name(x):
    message = "x is " + str(x)
    if x > 1:
        message = message + f" and {x + 1}"
        raise RuntimeError(message)
    return x


def raised_value(x):
    raise IndexError(x)


def raised_format(x, n):
    raise ValueError("{0:.2f} and {n} and {0!r:>8}".format(x, n=n))  # noqa: UP032


def raised_width(x):
    width = 9
    raise ValueError(f"{x:{width}.2f}|")


def asserted(x, n):
    assert n > 0, f"n = {n}, x = {x:.2f}"
    return x


def asserted_lazily(x, n):
    assert x > 0, f"{1 // n} and {x}"
    return x * n


def raised_flag(x):
    raise ValueError(f"{x > 1} {x > 1:d}")


@pytest.mark.parametrize(
    "f, args",
    [
        (raised_number, (1.5, 7)),
        (raised_number, (np.pi * 1e20, -7)),
        (raised_repr, (0.1, 2)),
        (raised_sizes, (X,)),
        (raised_strong, (X,)),
        (raised_from_a_name, (2.5,)),
        (raised_value, (2,)),
        (raised_format, (2.0, 3)),
        (raised_width, (2.0,)),
        (asserted, (2.0, -1)),
        (asserted_lazily, (-2.0, 3)),
        (asserted_lazily, (-2.0, 0)),
        (raised_flag, (2.0,)),
    ],
)
def test_messages(f, args):
    expected = text_of(f, *args)
    assert expected is not None
    assert text_of(tp.function(f), *args) == expected


def test_a_message_is_made_only_where_it_is_needed():
    same(asserted_lazily, 2.0, 0)
    raises(ZeroDivisionError, asserted_lazily, -2.0, 0)


def test_derivatives_beside_messages():
    tp.check_grads(lambda x: asserted(x, 3) ** 2, (1.5,))


@pytest.mark.parametrize(
    "f, args, reason",
    [
        (lambda z: _raise(f"{z}"), (1j,), "complex"),
        (lambda x: _raise(f"{x}"), (np.float32(1),), "float32"),
        (lambda x: _raise(f"{x:d}"), (1.0,), "Unknown format code 'd'"),
        (lambda a: _raise(f"{a}"), (X,), "1-dimensional array"),
        (lambda a, b: _raise(f"{a.shape} {b.shape}"), (np.ones((2, 3)), np.ones((4, 5))), "keeps 3"),
        (lambda x: _raise(f"{x:{x}}"), (1,), "format must be known"),
        (lambda x: print(x, end=x), (1.0,), "end must be a string"),
    ],
)
def test_texts_that_are_refused(f, args, reason):
    assert reason in refused(f, *args)


def _raise(message):
    raise ValueError(message)


def prints(x, n, a):
    print(x, n, a.shape, (1, "a", n), None, [x], f"n={n} {len(a)} {n:d}", "{", x > 1, sep="|")
    print()
    print("a", "b", sep="", end="\n", flush=True)
    print(f"{x:.3f} [{x:>12}] {n:5d} {n:<6}| {x > 1:3} {a[0, 0]!s:>7}", end=";")
    print(x, sep=None, end=None)
    print(f"{x:+.1e} and {n}")
    return x


def test_print(capfd):
    args = (2.5, 3, np.ones((2, 3)))
    prints(*args)
    expected = capfd.readouterr().out
    tp.function(prints)(*args)
    assert capfd.readouterr().out == expected


def test_formats_of_other_types(capfd):
    def f(a, b, c):
        print(f"{a:4d}|{b:.4g}|{c:3d}|{c}")

    args = np.uint8(200), np.float32(0.1), np.int16(-3)
    f(*args)
    expected = capfd.readouterr().out
    tp.function(f)(*args)
    assert capfd.readouterr().out == expected


# -- comprehensions


def known_lengths(x):
    squares = [k * x for k in range(6) if k % 2]
    table = [i * j for i in range(3) for j in range(i) if i != j]
    named = {k: x * v for k, v in (("a", 1.0), ("b", 2.0)) if k != "c"}
    odd = {k % 2 for k in range(5)}
    pairs = [(k, v) for k, v in enumerate((x, 1.0))]
    nested = [[i + j * x for j in range(2)] for i in range(2)]
    k = 7
    return squares, table, named, 1 in odd, len(odd), pairs, nested, k, sum(v for v in named.values())


def arrays_of_elements(a):
    def f(q):
        return q * q if q > 0 else 0.0

    i = 5
    made = np.array([f(a[i]) for i in range(len(a))])
    both = np.array([p * q + k for k, (p, q) in enumerate(zip(a, a[::-1]))])
    return made, both, i, np.sum([q + 1 for q in a]), np.mean([2 * q for q in a])


def reductions(a):
    return (
        sum(q * 2 for q in a if q > 0),
        sum([q for q in a], 1.5),
        sum((q for q in a), start := 0.5),
        any(q > 3 for q in a),
        all(q > -1 for q in a),
        max([q * q for q in a]),
        min(q for q in a),
        len([q for q in a if q > 0]),
    )


def several_loops(n, m):
    return (
        np.array([i * 10.0 + j for i in range(n) for j in range(m)]),
        np.array([i + j for i in range(n) for j in range(i) if (i + j) % 2 == 0]),
        sum(i * j for i in range(n) for j in range(i)),
        any(i * j == 6 for i in range(n) for j in range(m)),
        all(i + j < 3 for i in range(n) for j in range(m)),
    )


def conditions_at_run_time(a, b, c):
    return np.array([v for v in (a, b, c) if v > 0]), sum(v for v in (a, b, c) if v > 0), any(v < 0 for v in (a, b))


def rows_of_elements(a):
    table = np.array([[q, 2 * q] for q in a])
    return table, np.array([(q, 1) for q in a]), sum(row * 2 for row in table), np.array([r.sum() for r in table])


def lists_of_lists(a):
    pairs = [(q, 2 * q) for q in a]
    total = 0.0
    for p, q in pairs:
        total += p * q
    return total, pairs[0][1], len(pairs)


def stops_early(a):
    return any(1 // int(q) > 0 for q in a)


def in_a_loop(a, n):
    total = 0.0
    for k in range(n):
        total += sum(q * k for q in a if q > k) + max([q + k for q in a])
    return total


@pytest.mark.parametrize(
    "f, args",
    [
        (known_lengths, (1.5,)),
        (arrays_of_elements, (X,)),
        (reductions, (X,)),
        (several_loops, (4, 3)),
        (several_loops, (5, 1)),
        (conditions_at_run_time, (1.0, -2.0, 3.0)),
        (rows_of_elements, (X,)),
        (lists_of_lists, (X,)),
        (stops_early, (np.array([1.0, 0.0]),)),
        (in_a_loop, (X, 3)),
    ],
)
def test_comprehensions(f, args):
    same(f, *args)


def test_a_test_that_is_reached():
    raises(ZeroDivisionError, stops_early, np.array([2.0, 0.0]))


@pytest.mark.thorough
@pytest.mark.parametrize("f", [reductions, rows_of_elements, arrays_of_elements, lists_of_lists])
def test_derivatives_of_comprehensions(f):
    tp.check_grads(lambda a: np.sum(f(a)[0] ** 2), (X,))


def generator_that_is_kept(a):
    g = (q for q in a)
    return sum(g)


def generator_of_a_list_that_changes(x):
    l = [x]
    g = (q for q in l)
    l.append(1.0)
    return sum(g)


def map_that_is_kept(a):
    m = map(abs, a)
    a[0] = 1.0
    return sum(m)


@pytest.mark.parametrize(
    "f, args, reason",
    [
        (lambda a: {q: 1 for q in a}, (X,), "keys of a dict"),
        (lambda a: {q for q in a}, (X,), "a set holds"),
        (generator_that_is_kept, (X,), "used at once"),
        (generator_of_a_list_that_changes, (1.0,), "changed since"),
        (map_that_is_kept, (X,), "used at once"),
    ],
)
def test_comprehensions_that_are_refused(f, args, reason):
    assert reason in refused(f, *args)


# -- functions of functions, arguments, other statements


def in_order(a, b, c):
    pairs = [(a, 1), (b, 2), (c, 3)]
    return (
        sorted([a, b, c]),
        sorted((a, b, c), reverse=True),
        sorted([3, 1, 2]),
        sorted(pairs, key=lambda t: -t[0]),
        sorted(pairs),
        sorted(("b", "a")),
        sorted([a, b, c], key=abs),
        sorted({3, 1, 2}, reverse=True),
    )


def arrays_in_order(a):
    return np.array(sorted(a)), sorted(a, reverse=True)[0], np.array(sorted([q * q for q in a]))


def chosen(a, b):
    return (
        max((a, 1), (b, 2), key=lambda t: t[0]),
        min([a, b], key=abs),
        max([], default=a),
        max([a, b], default=0.0),
        min((a, b, a), key=lambda v: v * v),
    )


def mapped(a, x):
    return (
        list(map(lambda q: q * 2, (x, 1.0))),
        np.array(list(map(lambda q: q + 1, a))),
        sum(map(lambda p, q: p * q, (1, 2), (x, x))),
        list(filter(None, (0, 1, 2))),
        np.array(list(filter(lambda q: q > 0, a))),
        list(filter(lambda k: k % 2, range(5))),
        max(map(abs, a)),
    )


def by_operators(x):
    f = functools.partial(lambda p, q, r=1.0: p - q * r, x)
    return (
        f(2.0),
        f(2.0, r=3.0),
        functools.reduce(lambda p, q: p * q, (x, 2.0, 3.0)),
        functools.reduce(operator.add, [1, 2], 0.5),
        operator.itemgetter(1)((x, 5.0)),
        operator.itemgetter(0, 2)((x, 5.0, 6.0)),
        operator.attrgetter("shape")(np.ones(3)),
        max([(1, x), (2, 0.5)], key=operator.itemgetter(1)),
    )


def spread_arguments(x):
    def f(a, *rest, k=1.0, **more):
        more["z"] = 1.0
        return a + sum(rest) + k + sum(more.values()), len(more), rest

    d = {"k": x, "q": 2 * x}
    return f(x, *(1.0, 2.0), **d), f(1.0, 2.0, q=x), len(d), f(*range(2), **{})


def starred(x):
    first, *rest = (x, 1.0, 2.0)
    *init, last = [x, 3.0]
    p, *none, q = (1.0, x)
    rest.append(last)
    names = [*{"a": 1, "b": 2}]
    k, l = {"a": 1, "b": 2}
    return first, rest, init, p + q, none, names, k, l


def without_warnings(a):
    total = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        for q in a:
            if q > 3:
                return total
            total = total + q / a[0]
    return total * 2


def deleted(x):
    y = x + 1
    z = y * 2
    del y
    y = 3.0
    return y + z


def by_number(n, mode):
    match n:
        case 1:
            r = 10
        case 2 | 3:
            r = 20
        case k if k > 10:
            r = k
        case _:
            r = 0
    match mode:
        case "a":
            return r
        case None:
            return -r
    return 7


def zipped(a, b):
    total = 0.0
    for p, q in zip(a, b, strict=True):
        total += p * q
    return total, list(zip((1, 2), (3, 4), strict=True))


def texts_and_sets(x, n):
    d = dict([("a", x), ("b", 1.0)], c=3.0)
    parts = "a,b".split(",")
    total = 0.0
    for name in parts:
        total += d[name]
    s = {1, 2, 3}
    return d, total, "x" in "xyz", parts[1].upper(), 2 in s, n in s, n not in {1, 5}, len(s), isinstance(s, set)


@pytest.mark.parametrize(
    "f, args",
    [
        (in_order, (2.5, -1.0, 3.0)),
        (in_order, (1.0, 1.0, -1.0)),
        (arrays_in_order, (X,)),
        (chosen, (1.5, -2.0)),
        (chosen, (2.0, -2.0)),
        (mapped, (X, 1.5)),
        (by_operators, (1.5,)),
        (spread_arguments, (1.5,)),
        (starred, (1.5,)),
        (without_warnings, (X,)),
        (without_warnings, (X[:3],)),
        (deleted, (1.5,)),
        (by_number, (1, "a")),
        (by_number, (3, None)),
        (by_number, (12, "a")),
        (by_number, (5, "q")),
        (zipped, (X, X)),
        (texts_and_sets, (1.5, 5)),
    ],
)
def test_other_python(f, args):
    same(f, *args)


def keywords_of_the_caller(x, **options):
    return x * options["scale"] + options.get("shift", 1.0), len(options)


def test_keywords_of_the_caller():
    same(keywords_of_the_caller, 1.5, scale=2.0)
    with pytest.raises(tp.CompileError, match="order is not known"):
        tp.function(keywords_of_the_caller)(1.5, shift=2.0, scale=3.0)
    same(lambda x: keywords_of_the_caller(x, shift=2.0, scale=3.0), 1.5)
    assert tp.grad(lambda x: keywords_of_the_caller(x, scale=3.0)[0])(1.5) == 3.0


def test_lengths_that_differ():
    raises(ValueError, zipped, X, X[:2])
    assert text_of(tp.function(zipped), X[:2], X) == text_of(zipped, X[:2], X)


def test_nan_has_no_order():
    with pytest.raises(ValueError, match="NaN"):
        tp.function(in_order)(1.0, np.nan, 2.0)
    with pytest.raises(ValueError, match="NaN"):
        tp.function(arrays_in_order)(np.array([1.0, np.nan]))


@pytest.mark.parametrize("f, args", [(in_order, (2.5, -1.0, 3.0)), (chosen, (1.5, -2.0))])
def test_derivatives_of_choices(f, args):
    tp.check_grads(lambda *a: np.sum(np.array(f(*a)[0]) * np.arange(1.0, len(f(*a)[0]) + 1)), args)


def with_raise(x):
    with np.errstate(divide="raise"):
        return 1 / x


def with_file(x):
    with open("name"):
        return x


@pytest.mark.parametrize(
    "f, args, reason",
    [
        (with_raise, (1.0,), "np.errstate"),
        (with_file, (1.0,), "'with' statements"),
        (lambda x: sorted([[x], [1.0]]), (1.0,), "numbers and tuples"),
        (lambda x: max([x, 1.0], key=lambda v: np.ones(2)), (1.0,), "truth value of an array"),
    ],
)
def test_other_python_that_is_refused(f, args, reason):
    assert reason in refused(f, *args)


def elements_read_after_a_sum(a):
    part = a[1:]
    return sum(part) + part[0], max(part) - part[0]


def test_what_a_trial_read_is_not_known_afterwards():
    same(elements_read_after_a_sum, X)


COUPLINGS = {(0, 1): 1.0, (1, 2): -0.5}


def keys_of_several_parts(x):
    d = {(0, 1): x, (1, "a"): 2.0}
    d[2, 3] = x * x
    total = d[0, 1] + d[(2, 3)] * d[1, "a"]
    for (i, j), v in COUPLINGS.items():
        total += v * x * i + j
    for k in COUPLINGS:
        total += k[0] * x
    return total + (COUPLINGS[0, 1] if (0, 1) in COUPLINGS else 0.0), {k: x * k[0] for k in COUPLINGS}


def test_keys_of_several_parts():
    same(keys_of_several_parts, 1.5)
