"""Recoveries that do not apply: which value, why, and the line of the loop; inversions that drift."""

import math
import re
import warnings

import numpy as np
import pytest

import tapeless as tp

X = np.array([0.7, -0.3, 0.2, 0.9])


def sine(x, n):
    for i in range(n):
        x = math.sin(x)
    return x


def in_a_while(x, n):
    k = 0
    while k < n:
        x = math.sin(x)
        k += 1
    return x


def whole(x, n):
    for i in range(n):
        x = np.sin(x)
    return np.sum(x)


def in_a_map(x, n):
    def run(y):
        for i in range(n):
            y = math.sin(y)
        return y

    return np.sum(tp.map(run, x))


def inner(x, n):
    for i in range(n):
        for j in tp.loop(range(3), recover="invert"):
            x = math.sin(x)
    return x


def one_of_two(x, y, n):
    for i in range(n):
        y = y + 0.1 * x
        x = math.sin(x) * y
    return x + y


def refused(run, reason: str, f, line: int) -> str:
    """The text; the line is counted from that of the function's def."""
    with pytest.raises(tp.RecoveryError) as caught:
        run()
    problem, first = caught.value, str(caught.value).splitlines()[0]
    assert problem.code == "TP300" and first.startswith("[TP300] ")
    assert re.search(reason, first), first
    assert problem.file == __file__ and problem.line == f.__code__.co_firstlineno + line
    assert problem.__cause__ is None and (problem.__context__ is None or problem.__suppress_context__)
    return str(problem)


@pytest.mark.parametrize(
    "f, x, line, name", [(sine, 0.5, 1, "x"), (in_a_while, 0.5, 2, "x"), (in_a_map, X, 2, "y"), (whole, X, 1, "x")]
)
def test_names_the_value_and_the_loop(f, x, line: int, name: str) -> None:
    refused(
        lambda: tp.grad(f, recover="invert")(x, 3),
        f"recover='invert' does not apply: '{name}' .*cannot be solved",
        f,
        line,
    )
    refused(
        lambda: tp.grad(f, recover="closed")(x, 3), f"recover='closed' does not apply to '{name}': no closed", f, line
    )


def test_undo_of_a_whole_array() -> None:
    refused(
        lambda: tp.grad(whole, recover="undo")(X, 3), "recover='undo' does not apply to 'x': .*as a whole", whole, 1
    )


def test_the_hint_of_an_inner_loop() -> None:
    text = refused(lambda: tp.grad(inner)(0.5, 3), "recover='invert' does not apply: 'x'", inner, 2)
    assert 'tp.loop(range(3), recover="invert")' in text


def test_only_the_value_that_cannot_come_back_is_named() -> None:
    refused(lambda: tp.grad(one_of_two, (0, 1), recover="invert")(0.5, 0.4, 3), "'x' at the start", one_of_two, 1)


def test_strips_too_deep() -> None:
    refused(lambda: tp.grad(sine, recover="checkpoint:17")(0.5, 3), "'checkpoint:17': .* end at depth 16", sine, 1)


def test_every_transform_refuses() -> None:
    def run(transform):
        return lambda: transform(sine, recover="invert")(0.5, 3)

    for transform in (tp.grad, tp.value_and_grad, tp.jacrev, tp.hessian):
        refused(run(transform), "recover='invert' does not apply", sine, 1)
    by = lambda x: sine(x, 3)
    refused(lambda: tp.vjp(by, 0.5, recover="invert")[1](1.0), "recover='invert' does not apply", sine, 1)
    refused(lambda: tp.hvp(by, (0.5,), (1.0,), recover="invert"), "recover='invert' does not apply", sine, 1)


def test_compiled_functions_refuse() -> None:
    @tp.function
    def slope(x, n):
        return tp.grad(sine, recover="invert")(x, n)

    refused(lambda: slope(0.5, 3), "recover='invert' does not apply", sine, 1)


def test_forward_mode_keeps_nothing() -> None:
    """Nothing has to come back, so nothing can be refused."""
    by = lambda x: sine(x, 3)
    assert tp.jvp(by, (0.5,), (1.0,), recover="invert") == tp.jvp(by, (0.5,), (1.0,))
    assert tp.jacfwd(sine, recover="closed")(0.5, 3) == tp.jacfwd(sine)(0.5, 3)


def test_values_that_are_not_needed_are_not_refused() -> None:
    def linear(x, n):
        s = 0.0
        for i in range(n):
            s = math.sin(i) * s + x
        return s

    expected = tp.grad(linear)(0.5, 7)
    for recover in ("invert", "closed", "undo", "checkpoint", "recompute"):
        assert tp.grad(linear, recover=recover)(0.5, 7) == expected


def test_closed_forms_are_enough_for_a_counter() -> None:
    def counted(x, n):
        k, s = 3, 0.0
        for i in range(n):
            s += math.sin(x * k)
            k += 2
        return s

    assert tp.grad(counted, recover="closed")(0.5, 7) == pytest.approx(
        sum(k * math.cos(0.5 * k) for k in range(3, 17, 2))
    )


# -- what is no recovery


@pytest.mark.parametrize("recover", ["checkpoint:0", "checkpoint:-1", "checkpoint:", "checkpoint:x", "checkpoint:2.5",
                                     "store:3", "keep", "none", "live", "Store", "", " store", None, 3])  # fmt: skip
def test_what_is_no_recovery(recover) -> None:
    with pytest.raises(ValueError, match="recover="):
        tp.grad(sine, recover=recover)
    with pytest.raises(ValueError, match="recover="):
        tp.loop(range(3), recover=recover)


def test_what_is_no_recovery_in_compiled_code() -> None:
    @tp.function
    def slope(x, n):
        return tp.grad(sine, recover="nonsense")(x, n)

    with pytest.raises(tp.CompileError, match="recover='nonsense': use one of auto, "):
        slope(0.5, 3)


def test_what_is_no_recovery_of_a_loop_in_compiled_code() -> None:
    def looped(x, n):
        for i in tp.loop(range(n), recover="nonsense"):
            x = math.sin(x)
        return x

    with pytest.raises(tp.CompileError, match="recover='nonsense': use one of auto, "):
        tp.grad(looped)(0.5, 3)


# -- drift


def contracting(x, a, n):
    for i in range(n):
        x = 0.5 * a * x + 0.1
    return x * x


def drift(run) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run()
    assert all(w.category is tp.InversionDrift for w in seen)
    return [str(w.message) for w in seen]


def test_an_inversion_that_does_not_come_back_warns() -> None:
    (text,) = drift(lambda: tp.grad(contracting, (0, 1), recover="invert")(0.3, 1.1, 100))
    assert re.search(
        r"running backwards, 'x' did not come back to its first value: the relative error is [0-9.e+-]+", text
    )
    assert f"{__file__}:{contracting.__code__.co_firstlineno + 1}" in text


def test_few_steps_come_back() -> None:
    for n in (0, 1, 2, 9, 20):
        assert drift(lambda n=n: tp.grad(contracting, (0, 1), recover="invert")(0.3, 1.1, n)) == []


def test_a_state_now_and_then_stops_the_drift() -> None:
    found, expected = tp.grad(contracting, (0, 1), recover="invert:7"), tp.grad(contracting, (0, 1), recover="store")
    for n in (0, 1, 6, 7, 8, 13, 14, 15, 100):
        assert drift(lambda n=n: found(0.3, 1.1, n)) == []
        assert found(0.3, 1.1, n) == pytest.approx(expected(0.3, 1.1, n), rel=1e-9)


def test_drift_can_be_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tp.InversionDrift):
            tp.grad(contracting, (0, 1), recover="invert")(0.3, 1.1, 100)


def small(x, n):
    t = 0.0
    for i in range(n):
        x = 0.5 * x + 1e-10
        t += (x * 1e10) ** 2
    return t


def reciprocals(x, n):
    t = 0.0
    for i in range(n):
        t += 1.0 / x
        x = x + 1.0
    return t


def beside_a_large_cell(a, n):
    t = 0.0
    for i in range(n):
        a = a * np.array([1.0, 0.5]) + np.array([0.001, 1e-9])
        t += a[0] + (a[1] * 1e9) ** 2
    return t


def oscillating(u, v, n):
    for i in range(n):
        v = v - 0.01 * u
        u = u + 0.01 * v
    return np.sum(u * u)


def test_drift_of_small_values_is_seen() -> None:
    assert drift(lambda: tp.grad(small, recover="invert")(1e-11, 58))
    assert drift(lambda: tp.grad(reciprocals, recover="invert")(1e-18, 3))
    assert drift(lambda: tp.grad(beside_a_large_cell, recover="invert")(np.array([1.9, 1e-11]), 52))


def test_what_rounding_leaves_of_zeros_is_no_drift() -> None:
    wave = np.sin(np.linspace(0.0, 2 * np.pi, 9))
    assert 0.0 < abs(wave[4]) < 1e-15
    assert drift(lambda: tp.grad(oscillating, recover="invert")(wave, np.zeros(9), 500)) == []
    assert drift(lambda: tp.grad(oscillating, recover="invert")(0.0, 1.0, 500)) == []


def test_drift_of_an_array() -> None:
    def shrink(x, a, n):
        for i in range(n):
            x = 0.5 * a * x + 0.1
        return np.sum(x * x)

    (text,) = drift(lambda: tp.grad(shrink, (0, 1), recover="invert")(X, 1.1, 100))
    assert "'x' did not come back" in text


def test_drift_to_what_is_no_number() -> None:
    """1 / 0 in the backward pass: a NaN is not close to anything."""

    def vanish(x, a, n):
        for i in range(n):
            x = x * a
        return x * x * a

    assert drift(lambda: tp.grad(vanish, (0, 1), recover="invert")(0.3, 0.0, 5))


def test_drift_in_single_precision_is_measured_by_its_digits() -> None:
    def f(x, a, n):
        for i in range(n):
            x = np.float32(0.9) * a * x + np.float32(0.1)
        return x * x

    derived = tp.grad(f, (0, 1), recover="invert")
    assert drift(lambda: derived(np.float32(0.3), np.float32(1.1), 20)) == []
    assert drift(lambda: derived(np.float32(0.3), np.float32(0.5), 40))
