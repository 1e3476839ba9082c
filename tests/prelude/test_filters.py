"""scipy.signal.lfilter."""

import numpy as np
from scipy import signal

import tapeless as tp
from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

B, A = np.array([0.2, 0.3, -0.1]), np.array([2.0, -0.7, 0.2, 0.1])
SAMPLES = np.sin(np.arange(9.0) ** 2)
TABLE = np.cos(np.arange(24.0) ** 2).reshape(4, 6)
STATE = np.array([0.3, -0.2, 0.1])


def plain(b, a, x):
    return signal.lfilter(b, a, x)


def begun(b, a, x, z):
    return signal.lfilter(b, a, x, zi=z)


VALUES = {
    "more results than samples": (plain, B, A, SAMPLES),
    "more samples than results": (plain, A, B, SAMPLES),
    "samples alone": (plain, B, np.array([2.0]), SAMPLES),
    "results alone": (plain, np.array([0.5]), A, SAMPLES),
    "few samples": (plain, B, A, SAMPLES[:2]),
    "no samples": (plain, B, A, SAMPLES[:0]),
    "numbers": (lambda x: signal.lfilter(0.5, [1.0, -0.5], x), SAMPLES),
    "integers": (lambda b, x: signal.lfilter(b, [1, -0.5], x), np.array([1, 2]), np.array([3, 1, 4, 1, 5])),
    "axes": (
        lambda b, a, x: (signal.lfilter(b, a, x, axis=0), signal.lfilter(b, a, x), signal.lfilter(b, a, x.T, 1)),
        B,
        A,
        TABLE,
    ),
    "begun": (begun, B, A, SAMPLES, STATE),
    "begun, few samples": (begun, B, A, SAMPLES[:2], STATE),
    "begun, samples alone": (begun, B, np.array([2.0]), SAMPLES, STATE[:2]),
    "begun, axes": (
        lambda b, a, x, z: signal.lfilter(b, a, x, axis=0, zi=z),
        B,
        A,
        TABLE,
        np.ones((3, 6)) * STATE[:, None],
    ),
    "complex": (plain, B * (1 + 0.5j), A, SAMPLES * 1j + SAMPLES[::-1]),
}
SLOPES = {name: case for name, case in VALUES.items() if name not in ("integers", "no samples")}
ERRORS = {
    "a matrix": (ValueError, plain, TABLE, A, SAMPLES),
    "no coefficients": (ValueError, plain, B, A[:0], SAMPLES),
    "a state too short": (ValueError, begun, B, A, SAMPLES, STATE[:2]),
}
REFUSED = {"integers alone": (plain, np.array([1, 2]), np.array([1, 1]), np.array([3, 1, 4]))}


def test_single_precision():
    judge(plain, *(v.astype(np.float32) for v in (B, A, SAMPLES)), order=0, rtol=1e-5)


def test_a_gradient_keeps_nothing():
    loss = tp.grad(lambda b, a, x: np.sum(signal.lfilter(b, a, x) ** 2))
    assert loss.explain(B, A, SAMPLES).memory_bytes == 0
