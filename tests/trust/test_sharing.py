"""Arrays that share memory: with results, with other arguments, with themselves, with the surroundings. Plain Python is
the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import tapeless as tp

# -- results that are views

VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda a: a,
    "a slice": lambda a: a[1:3],
    "a slice to the end": lambda a: a[-2:],
    "backwards": lambda a: a[::-1, ::-2],
    "a row and a column": lambda a: (a[1], a[:, -1]),
    "transposed": lambda a: a.T,
    "axes": lambda a: np.swapaxes(a[None], 0, 2),
    "new axes": lambda a: a[None, :, None, 1:],
    "views of views": lambda a: a[1:][:, 1:5][::-1].T[1:],
    "nothing": lambda a: a[3:1],
    "computed": lambda a: a[a.shape[0] // 2 :, a.shape[1] - 4 : a.shape[1] - 1],
    "reshaped": lambda a: a.reshape(-1),
    "reshaped with sizes": lambda a: a.reshape(2, -1)[1],
    "turned and reshaped": lambda a: a.T.reshape(-1),
    "a part reshaped": lambda a: a[1:3].reshape(-1),
    "columns reshaped": lambda a: a[:, :3].reshape(-1),
    "ravel": lambda a: (a.ravel(), np.ravel(a.T)),
    "squeeze and expand": lambda a: (a[:1].squeeze(), np.expand_dims(a, 1)),
    "flip": lambda a: np.flip(a),
    "diagonal": lambda a: np.diag(a, 1),
    "broadcast": lambda a: np.broadcast_to(a, (2, 4, 6)),
    "real and conj": lambda a: (a.real, a.conj()),
    "contiguous": lambda a: np.ascontiguousarray(a),
    "in containers": lambda a: {"t": (a[0], [a[1:2].T]), "copy": a[1].copy()},
    "with a number": lambda a: (a[0], a.sum()),
    "not views": lambda a: (a + 0.0, a.copy(), a.flatten(), np.array(a), a[[0, 1]], a.astype(np.complex128)),
}
LAYOUTS: dict[str, Callable[[], Any]] = {
    "C": lambda: np.arange(24.0).reshape(4, 6),
    "F": lambda: np.asfortranarray(np.arange(24.0).reshape(4, 6)),
    "strided": lambda: np.arange(96.0).reshape(8, 12)[::-2, 1::2],
    "complex": lambda: np.arange(24.0).reshape(4, 6) * 1j,
}


def arrays_of(result: Any) -> list[Any]:
    if isinstance(result, dict):
        result = list(result.values())
    return [x for r in result for x in arrays_of(r)] if isinstance(result, tuple | list) else [np.asarray(result)]


def same_sharing(got: Any, wanted: Any, *owners: Any) -> None:
    for a, b in zip(arrays_of(got), arrays_of(wanted), strict=True):
        np.testing.assert_array_equal(a, b)
        for owner in owners:
            shared = np.shares_memory(b, owner)
            assert np.shares_memory(a, owner) == shared
            if shared:
                assert a.__array_interface__["data"] == b.__array_interface__["data"]
                assert [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1] == [
                    s for s, n in zip(b.strides, b.shape, strict=True) if n > 1
                ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", VIEWS)
def test_w4_returned_views(name: str) -> None:
    f = tp.function(VIEWS[name])
    for make in LAYOUTS.values():
        x = make()
        same_sharing(f(x), f.python(x), x)
        same_sharing(f(x), f.python(x), x)  # the short way


def test_w4_writes_through_a_result() -> None:
    f = tp.function(lambda a: a[1:3])
    x = np.zeros(5)
    f(x)[0] = 99.0
    assert x[1] == 99.0
    with pytest.raises(IndexError):
        tp.function(lambda a, i: a[i])(np.zeros((2, 2)), 5)


def writes_and_returns(a: Any, k: int) -> Any:
    v = a[k:]
    v[0] = 5.0
    a[-1] += 1.0
    return v, a, v[1:]


def test_w4_views_of_what_is_written() -> None:
    f = tp.function(writes_and_returns)
    for make in (lambda: np.arange(5.0), lambda: np.arange(10.0)[::-2]):
        mine, theirs = make(), make()
        got, wanted = f(mine, 2), f.python(theirs, 2)
        np.testing.assert_array_equal(mine, theirs)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
            assert np.shares_memory(a, mine)
        assert got[1] is mine


outside = np.arange(6.0).reshape(2, 3)


def test_w4_views_of_arrays_of_the_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tp.function(lambda x: (outside, outside.T, outside[0, 1:], outside * x, x))
    x = np.ones(3)
    same_sharing(f(x), f.python(x), outside, x)
    monkeypatch.setitem(globals(), "outside", np.ones((4, 3)))
    same_sharing(f(x), f.python(x), outside, x)
    assert f(x)[0] is outside


def test_w4_derivatives_give_fresh_arrays() -> None:
    x, y = np.ones(3), np.arange(3.0)

    def f(x: Any, y: Any) -> Any:
        return (x * y).sum(), (x, y[1:], outside)

    found = [
        tp.value_and_grad(f, has_aux=True)(x, y),
        tp.vjp(lambda x: (x, x[1:], y), x)[0],
        tp.vjp(lambda x: (x, x[1:], y), x)[1]((y, y[1:], y)),
        tp.jvp(lambda x: x, (x,), (y,)),
        tp.linearize(lambda x: x.T, x)[0],
        tp.linearize(lambda x: x.T, x)[1](y),
    ]
    for a in arrays_of(found):
        assert not any(np.shares_memory(a, owner) for owner in (x, y, outside))


# -- arguments that overlap themselves


def adds_one(a: Any) -> Any:
    a += 1.0
    return a.sum()


def only_reads(a: Any) -> Any:
    return (a * a).sum()


def overlapping() -> list[Any]:
    return [
        sliding_window_view(np.zeros(4), 2, writeable=True),
        as_strided(np.zeros(4), (4, 3), (8, 0)),
        as_strided(np.zeros(16), (3, 3), (16, 8)),
        as_strided(np.zeros(20), (4, 4), (24, 16)),
    ]


def apart() -> list[Any]:
    base = np.arange(64.0).reshape(8, 8)
    return [
        base[::2, ::-1].T,
        base[::-3],
        as_strided(np.zeros(16), (3, 2), (16, 24)),
        as_strided(np.zeros(9), (1, 9), (0, 8)),
    ]


def test_w2_an_argument_that_overlaps_itself() -> None:
    f, g, reads = tp.function(adds_one), tp.value_and_grad(adds_one), tp.function(only_reads)
    for a in overlapping():
        before = a.copy()
        for run in (f, g, lambda a: tp.vjp(adds_one, a), lambda a: tp.jvp(adds_one, (a,), (a.copy(),))):
            with pytest.raises(tp.TapelessError, match="TP130"):
                run(a)
        np.testing.assert_array_equal(a, before)
        assert reads(a) == reads.python(a)
    for mine, theirs in zip(apart(), apart(), strict=True):
        value, slope = g(mine)
        assert f(mine) == f.python(theirs) == value
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(slope, np.ones(mine.shape))


# -- arguments that share memory


def two(a: Any, b: Any) -> Any:
    a[0] = 5.0
    return (a * b).sum()


def neither(a: Any, b: Any) -> Any:
    return (a * b * b).sum()


def of_tree(t: Any) -> Any:
    t["p"][0] = 5.0
    return (t["p"] * t["q"]).sum()


def transforms(f: Any) -> dict[str, Any]:
    """All of them as functions of two arrays. Each gives the value first, None where it has none."""
    grad, jacfwd, jacrev, hessian = (t(f) for t in (tp.grad, tp.jacfwd, tp.jacrev, tp.hessian))
    return {
        "value_and_grad": tp.value_and_grad(f),
        "value_and_grad 1": tp.value_and_grad(f, 1),
        "both": tp.value_and_grad(f, (0, 1)),
        "grad": lambda a, b: (None, grad(a, b)),
        "vjp": lambda a, b: (lambda out, pull: (out, pull(1.0)))(*tp.vjp(f, a, b)),
        "jvp": lambda a, b: tp.jvp(f, (a, b), (np.ones(3), np.ones(3))),
        "linearize": lambda a, b: (lambda out, lin: (out, lin(np.ones(3), np.ones(3))))(*tp.linearize(f, a, b)),
        "hvp": lambda a, b: (None, tp.hvp(f, (a, b), (np.ones(3), np.ones(3)))),
        "jacfwd": lambda a, b: (None, jacfwd(a, b)),
        "jacrev": lambda a, b: (None, jacrev(a, b)),
        "hessian": lambda a, b: (None, hessian(a, b)),
    }


def shared() -> list[tuple[Any, Any]]:
    a, b = np.array([1.0, 2.0, 3.0]), np.arange(4.0)
    return [(a, a), (b[1:], b[:-1]), (b[:3], b[:3]), (b[1:], b[:0:-1])]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*transforms(two), "function"])
def test_w7_arguments_that_share_memory_and_are_written(name: str) -> None:
    compiled = tp.function(two)
    run = transforms(two).get(name, lambda a, b: (compiled(a, b), None))
    first = np.array([1.0, 2.0, 3.0])
    value, _ = run(first, np.array([4.0, 5.0, 6.0]))
    assert value is None or value == two(first.copy(), np.array([4.0, 5.0, 6.0]))
    for (a, b), (c, d) in zip(shared(), shared(), strict=True):
        if name == "function" and a is b:
            assert run(a, b)[0] == two(c, d)
            continue
        before = a.copy(), b.copy()
        with pytest.raises(tp.TapelessError, match="TP130"):
            run(a, b)
        np.testing.assert_array_equal((a, b), before)
    b = np.arange(6.0)
    value, _ = run(b[::2], b[1::2])  # side by side
    c = np.arange(6.0)
    assert value is None or value == two(c[::2], c[1::2])


@pytest.mark.thorough
def test_w7_what_is_not_written_may_be_shared() -> None:
    for name, run in transforms(neither).items():
        for (a, b), (c, d) in zip(shared(), shared(), strict=True):
            got, wanted = run(a, b), run(c.copy(), d.copy())
            for x, y in zip(arrays_of(got[1]), arrays_of(wanted[1]), strict=True):
                np.testing.assert_array_equal(x, y, err_msg=name)


def test_w7_in_containers() -> None:
    g, a, b = tp.value_and_grad(of_tree), np.array([1.0, 2.0, 3.0]), np.arange(4.0)
    assert g({"p": a, "q": a.copy()})[0] == 1.0 * 5.0 + 4.0 + 9.0
    for tree in ({"p": a, "q": a}, {"p": b[1:], "q": b[:-1]}):
        for run in (g, tp.grad(of_tree), lambda t: tp.vjp(of_tree, t), lambda t: tp.linearize(of_tree, t)):
            with pytest.raises(tp.TapelessError, match="TP130"):
                run(tree)
    plain = tp.function(of_tree)
    assert plain({"p": a, "q": a}) == of_tree({"p": (c := np.array([1.0, 2.0, 3.0])), "q": c})
    with pytest.raises(tp.TapelessError, match="TP130"):
        plain({"p": b[1:], "q": b[:-1]})


def three(x: Any, a: Any, b: Any) -> Any:
    a[0] = 7.0
    return (x * a * b).sum()


def test_w7_arguments_without_derivatives_may_be_one_array() -> None:
    x, a, c = np.arange(3.0) + 1.0, np.ones(3), np.ones(3)
    value, slope = tp.value_and_grad(three)(x, a, a)
    assert value == three(x, c, c)
    np.testing.assert_array_equal(slope, c * c)
    np.testing.assert_array_equal(a, np.ones(3))


def inner_gradient(a: Any, b: Any) -> Any:
    return tp.grad(lambda z: (z * b).sum() + writes(z))(a)


def inner_views(a: Any) -> Any:
    return tp.grad(two)(a[1:], a[:-1])


def writes(z: Any) -> Any:
    z[0] = 3.0
    return z.sum()


def test_w7_inside_compiled_functions() -> None:
    a, b = np.arange(3.0), np.ones(3)
    np.testing.assert_array_equal(tp.function(inner_gradient)(a, b), [1.0, 2.0, 2.0])
    for args in ((a, a), (a[:2], a[1:])):
        with pytest.raises(tp.TapelessError, match="TP130"):
            tp.function(inner_gradient)(*args)
    with pytest.raises(tp.TapelessError, match="TP130"):
        tp.function(inner_views)(a)


held = np.array([1.0, 2.0, 3.0])


def with_held(a: Any) -> Any:
    a[0] = 5.0
    return (a * held).sum()


def test_w7_an_argument_that_is_also_a_global() -> None:
    runs = [
        tp.function(with_held), tp.value_and_grad(with_held), tp.grad(with_held), lambda a: tp.vjp(with_held, a),
        lambda a: tp.jvp(with_held, (a,), (np.ones(3),)), lambda a: tp.linearize(with_held, a), tp.hessian(with_held),
    ]  # fmt: skip
    for run in runs:
        run(np.ones(3))
        for a in (held, held[::-1], held.view()):
            with pytest.raises(tp.TapelessError, match="TP130"):
                run(a)
    np.testing.assert_array_equal(held, [1.0, 2.0, 3.0])


# -- pullbacks belong to their run

scale = 2.0
bent: Any = np.sin
kept = np.array([1.0, 2.0, 3.0])


def double(x: Any) -> Any:
    return x * 2.0


def with_surroundings(x: Any) -> Any:
    return (bent(x) * scale * kept).sum()


def test_w8_pullbacks_and_linear_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([0.1, 0.2, 0.3])
    _, pull = tp.vjp(with_surroundings, x)
    _, linear = tp.linearize(with_surroundings, x)
    v = np.array([1.0, -1.0, 2.0])
    slope = np.cos(x) * 2.0 * kept

    def same() -> None:
        for adjoint in (1.0, 1, np.float64(1.0), np.float32(1.0), np.array(1.0)):
            np.testing.assert_allclose(pull(adjoint)[0], slope)
        for tangent in (v, v.astype(np.float32), v[::-1][::-1], v.astype(int)):
            np.testing.assert_allclose(linear(tangent), (slope * v).sum())

    same()
    monkeypatch.setitem(globals(), "scale", 5.0)
    same()
    monkeypatch.setitem(globals(), "bent", double)
    same()
    kept[0] = 100.0
    x[:] = 7.0
    same()
    monkeypatch.setitem(globals(), "kept", np.ones(3))
    same()
    np.testing.assert_allclose(tp.vjp(with_surroundings, x)[1](1.0)[0], [10.0, 10.0, 10.0])
    same()
    monkeypatch.undo()
    kept[0] = 1.0


def test_w8_adjoints_that_do_not_fit_say_so() -> None:
    x = np.arange(3.0)
    _, pull = tp.vjp(lambda x: (x * 2.0, {"s": x.sum(), "n": 3}), x)
    for adjoint in (1.0, (x, 1.0), (x[:2], {"s": 1.0, "n": 0}), (x, {"s": 1j, "n": 0}), (x, {"s": x, "n": 0})):
        with pytest.raises(tp.TapelessError):
            pull(adjoint)
    for parts in ({"s": 1.0, "n": 0}, {"n": 0, "s": 1.0}, {"s": np.float32(1.0), "n": None}):
        np.testing.assert_array_equal(pull((x, parts))[0], 2.0 * x + 1.0)


def test_w8_results_with_one_array_twice() -> None:
    def f(x: Any) -> Any:
        y = x * 3.0
        return y, y

    x = np.arange(3.0)
    out, pull = tp.vjp(f, x)
    assert out[0] is out[1] or not np.shares_memory(out[0], x)
    np.testing.assert_array_equal(pull((np.ones(3), np.zeros(3)))[0], [3.0, 3.0, 3.0])
    np.testing.assert_array_equal(pull((x, x))[0], 6.0 * x)
    _, pull = tp.vjp(lambda a, b: (a * b).sum(), x, x)
    np.testing.assert_array_equal(pull(1.0), (x, x))
