"""np.logspace, np.geomspace, windows, np.i0, np.fft.fftfreq and np.fft.fftshift."""

import numpy as np

from tests.prelude.cases import test_numpy_raises_too, test_refused, test_slopes, test_values  # noqa: F401
from tests.prelude.judged import judge
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

VECTOR = np.array([0.5, -1.5, 2.0, 0.25, 1.1, -0.75, 3.25])
MATRIX = np.sin(np.arange(12.0) * 2 + 0.3).reshape(3, 4)
WHOLE = np.array([[3, -1, 4], [1, -5, 9], [2, 6, 5]])
VALUES = {
    "spaces": (
        lambda x: (
            np.logspace(0.0, 2.0, 5),
            np.logspace(0, 3, 4, base=2.0),
            np.logspace(0, 3, 4, endpoint=False),
            np.logspace(0, 2, 3, dtype=int),
            np.geomspace(1.0, 1000.0, 4),
            np.geomspace(1, 256, 9),
            np.geomspace(-1.0, -8.0, 4),
            np.geomspace(2.0, 3.0, 3, endpoint=False),
            np.geomspace(1, 5, 1),
            np.geomspace(1.0, 5.0, 0),
            np.geomspace(8.0, 0.5, 5, dtype=np.float32),
        ),
        VECTOR,
    ),
    "windows": (
        lambda x: (
            np.hanning(6),
            np.hamming(5),
            np.blackman(7),
            np.bartlett(6),
            np.kaiser(6, 2.5),
            np.kaiser(1, 3.0),
            np.kaiser(0, 1.0),
        ),
        VECTOR,
    ),
    "i0": (lambda x, w: (np.i0(x), np.i0(x * 5), np.i0(w), np.i0(0.0), np.i0(2)), VECTOR, WHOLE),
    "fft": (
        lambda x, m, w: (
            np.fft.fftfreq(5),
            np.fft.fftfreq(8, 0.5),
            np.fft.rfftfreq(5, 2.0),
            np.fft.rfftfreq(8),
            np.fft.fftshift(x),
            np.fft.fftshift(m),
            np.fft.ifftshift(m, axes=1),
            np.fft.fftshift(w, (0,)),
            np.fft.ifftshift(x),
        ),
        VECTOR,
        MATRIX,
        WHOLE,
    ),
}
SLOPES = {
    "spaces": (lambda b: (np.kaiser(5, b), np.geomspace(b, 7.0, 4), np.logspace(b, 2.0, 3)), 2.5),
    "i0": (lambda x: (np.i0(x), np.i0(x * 4) / 1000, np.fft.fftshift(x)), VECTOR),
    "i0 at zero": (lambda x: np.i0(x), np.zeros(2)),
}
ERRORS = {
    "zero": (ValueError, lambda x: np.geomspace(0.0, 1.0, 3), VECTOR),
    "complex": (TypeError, lambda x: np.i0(x * 1j), VECTOR),
}
REFUSED = {
    "arrays": (lambda x: np.geomspace(x, 2.0, 3), VECTOR),
}


def test_float32():
    judge(lambda x: np.i0(x), VECTOR.astype(np.float32), order=0, rtol=1e-6)
