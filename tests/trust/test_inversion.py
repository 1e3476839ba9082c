"""Loops that run backwards say so when they have come off the values of their forward run, wherever that was."""

import warnings

import numpy as np
import pytest

import tapeless as tp

SCALE, SHEAR, BEND, ABSORB, SWAP = range(5)


def drifted(run) -> tuple[object, bool]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = run()
    assert all(w.category is tp.InversionDrift for w in seen)
    return found, bool(seen)


def hole(x, n):
    s = 0.0
    for i in range(n):
        c = 2.0 if i < 40 else 0.5
        x = c * (x - 1.0) + 1.0
        s += x * x * x
    return s


def test_w9_a_loop_that_expands_and_then_contracts() -> None:
    found, expected = tp.grad(hole, recover="invert"), tp.grad(hole, recover="store")
    with pytest.warns(tp.InversionDrift, match="'x' did not come back to the values it had on the way"):
        assert found(1 + 1e-12, 90) != pytest.approx(expected(1 + 1e-12, 90), rel=1e-3)
    for n in (0, 1, 40, 45):
        slope, said = drifted(lambda n=n: found(1 + 1e-12, n))
        assert not said
        assert slope == pytest.approx(expected(1 + 1e-12, n), rel=1e-9)


def test_w9_states_in_between_stop_it() -> None:
    slope, said = drifted(lambda: tp.grad(hole, recover="invert:8")(1 + 1e-12, 90))
    assert not said
    assert slope == pytest.approx(tp.grad(hole, recover="store")(1 + 1e-12, 90), rel=1e-7)


def hole_in_an_array(x, n):
    s = 0.0
    for i in range(n):
        c = 2.0 if i < 40 else 0.5
        x = c * (x - 1.0) + 1.0
        s += x[1] * x[1] * x[1]
    return s


def hole_in_place(x, n):
    s = 0.0
    x = x.copy()
    for i in range(n):
        c = 2.0 if i < 40 else 0.5
        x[1] = c * (x[1] - 1.0) + 1.0
        s += x[1] * x[1] * x[1]
    return s


def hole_in_a_branch(x, n):
    s = 0.0
    x = x.copy()
    for i in range(n):
        if i < 40:
            x[i % 1 + 1] = 2.0 * (x[1] - 1.0) + 1.0
        else:
            x[1] = 0.5 * (x[1] - 1.0) + 1.0
        s += x[1] * x[1] * x[1]
    return s


def absorbed(x, n):
    s = 0.0
    for i in range(n):
        x = 1e-12 * x if i == 10 else x
        x = (x + 1.0) - 1.0
        x = 1e12 * x if i == 20 else x
        s += x * x * x
    return s


ARRAY_LOOPS = [hole_in_an_array, hole_in_place, hole_in_a_branch]


@pytest.mark.parametrize("loop", ARRAY_LOOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [3, 200])
def test_w9_cells_of_arrays(loop, size) -> None:
    x = np.full(size, 1 + 1e-12)
    found, expected = tp.grad(loop, recover="invert"), tp.grad(loop, recover="store")
    slopes, said = drifted(lambda: found(x, 90))
    assert said
    assert not np.allclose(slopes, expected(x, 90), rtol=1e-4)
    slopes, said = drifted(lambda: found(x, 30))
    assert not said
    np.testing.assert_allclose(slopes, expected(x, 30), rtol=1e-9)


def test_w9_one_cell_of_many() -> None:
    x = np.linspace(1.0, 2.0, 1000)
    x[617] = 1 + 1e-12

    def one(x, n):
        y, s = np.where(x == 1 + 1e-12, x, 1.0), 0.0
        for i in range(n):
            c = 2.0 if i < 40 else 0.5
            y = c * (y - 1.0) + 1.0
            s += y[617] ** 3
        return s

    _, said = drifted(lambda: tp.grad(one, recover="invert")(x, 90))
    assert said


@pytest.mark.parametrize("dtype, tiny", [(np.float32, 1e-4), (np.complex64, 1e-4), (np.complex128, 1e-12)])
def test_w9_other_numbers(dtype, tiny) -> None:
    def turned(x, n, half):
        s = 0.0
        for i in range(n):
            c = 2.0 if i < half else 0.5
            x = c * (x - 1.0) + 1.0
            s += np.abs(x[0]) ** 2
        return s

    x = np.array([1 + tiny, 1 - 2 * tiny], dtype)
    if x.dtype.kind == "c":
        x = x + np.array([1j, -1j], dtype) * tiny
    half = 12 if tiny > 1e-6 else 40
    _, said = drifted(lambda: tp.grad(turned, recover="invert")(x, 2 * half + 14, half))
    assert said
    _, said = drifted(lambda: tp.grad(turned, recover="invert")(x, half // 2, half))
    assert not said


def test_w9_what_the_forward_run_rounded_away() -> None:
    found, expected = tp.grad(absorbed, recover="invert"), tp.grad(absorbed, recover="store")
    slope, said = drifted(lambda: found(0.7, 30))
    assert said or slope == pytest.approx(expected(0.7, 30), rel=1e-6)
    assert drifted(lambda: found(0.7, 12))[1]


def leapfrog(x, v, h, n):
    for i in range(n):
        v = v - h * np.sin(x)
        x = x + h * v
    return x * v


def test_w9_what_comes_back_is_not_called_lost() -> None:
    """Numbers that pass through zero thousands of times, start at zero, or are zero for long."""
    found = tp.grad(leapfrog, (0, 1), recover="invert")
    for n, h in ((100_000, 0.1), (300_000, 1e-2), (300_000, 1e-5)):
        assert not drifted(lambda n=n, h=h: found(0.3, 0.0, h, n))[1]

    def kicked(x, v, n):
        for i in range(n):
            v = v + (0.1 * x if i == n // 2 else 0.0)
            x = x + 0.01 * v
        return x * x * v

    assert not drifted(lambda: tp.grad(kicked, (0, 1), recover="invert")(0.3, 0.0, 1000))[1]

    def wave(u, v, n):
        for i in range(n):
            v[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
            u += v
        return np.sum(u * u * v)

    u = np.zeros(200)
    u[100] = 1.0
    assert not drifted(lambda: tp.grad(wave, (0, 1), recover="invert")(u, 0.0 * u, 60))[1]


# -- generated: one program, whose steps are data


def journey(x, y, kinds, a, c):
    """Steps whose slopes follow their operands: an error of the values is one of the gradient, not a larger one."""
    s = 0.0
    for i in range(len(kinds)):
        if kinds[i] == 0:
            x = a[i] * (x - c[i]) + c[i]
        elif kinds[i] == 1:
            x = x + a[i] * y
        elif kinds[i] == 2:
            y = y - a[i] * x / (1.0 + x * x)
        elif kinds[i] == 3:
            x = x + c[i]
            x = x - c[i]
        else:
            x, y = y, x
        s += x * x * x + x * y
    return s


def steps(rng: np.random.Generator) -> tuple[object, ...]:
    """A few phases, in each of which some kinds of steps prevail."""
    n = int(rng.integers(1, 200))
    phases = int(rng.integers(1, 8))
    length = n // phases + 1
    kinds = np.concatenate([rng.choice(5, p=rng.dirichlet([0.6] * 5), size=length) for _ in range(phases)])[:n]
    factors = np.repeat(rng.choice([0.25, 0.5, 0.9, 1.0, 1.1, 2.0, 4.0], size=phases), length)[:n]
    a = np.where(kinds == SCALE, factors, rng.normal(size=n) * 10.0 ** rng.integers(-3, 2))
    c = np.where(rng.random(n) < 0.5, 1.0, rng.normal(size=n) * 10.0 ** rng.integers(-3, 18))
    around = rng.choice([1.0, 0.0, -3.0], size=n) if rng.random() < 0.3 else rng.choice([1.0, 0.0])
    c = np.where(kinds == SCALE, around, c)
    return float(1 + 10.0 ** rng.integers(-14, 0) * rng.normal()), float(rng.normal()), kinds, a, c


def survey(count: int, seed: int) -> tuple[int, int]:
    """How many gradients of random journeys were wrong, and how many came without a warning."""
    found, expected = tp.grad(journey, (0, 1), recover="invert"), tp.grad(journey, (0, 1), recover="store")
    rng, wrong, quiet = np.random.default_rng(seed), 0, 0
    for number in range(count):
        args = steps(rng)
        right = np.array(expected(*args))
        if not np.all(np.isfinite(right)):
            continue
        slopes, said = drifted(lambda args=args: found(*args))
        off = np.max(np.abs(np.array(slopes) - right)) / max(np.max(np.abs(right)), 1e-300)
        assert said or off <= 3e-5, (seed, number, off)
        wrong += not off <= 3e-5
        quiet += not said
    return wrong, quiet


def test_w9_journeys() -> None:
    wrong, quiet = survey(3000, 11)
    assert wrong > 300 and quiet > 300  # the survey has met both


@pytest.mark.slow
def test_w9_long_survey() -> None:
    survey(200_000, 12)
