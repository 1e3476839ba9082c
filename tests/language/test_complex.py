"""Complex numbers: arithmetic, parts, functions, arrays of both precisions."""

from __future__ import annotations

import cmath

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import raises, same, same_values

Z = np.array([1 + 2j, -0.5 + 0.25j, 3j, -2 + 0j])


def arithmetic(z, w):
    return z + w, z - w, z * w, z / w, -z, z * 2, z + 1.5, 1j * z, z == w, z != w, abs(z)


@pytest.mark.parametrize(
    "z, w", [(1 + 2j, 3 - 1j), (2.0, 1j), (np.complex64(1 + 2j), 2 + 0j), (np.complex128(1j), np.complex128(-2 + 1j))]
)
def test_arithmetic(z, w):
    same(arithmetic, z, w)


def test_arrays():
    same(arithmetic, Z, Z[::-1].copy())
    same(arithmetic, Z.astype(np.complex64), np.complex64(2j))
    same(arithmetic, Z, np.arange(1.0, 5.0))


def parts(z):
    return z.real, z.imag, z.conjugate(), abs(z)


def numpy_parts(z):
    return np.real(z), np.imag(z), np.conj(z), np.angle(z), np.abs(z), z.conj()


def test_parts():
    same(parts, 1 + 2j)
    same(parts, np.complex64(1 - 2j))
    same(parts, Z)
    same(numpy_parts, Z)


def functions(z):
    return np.exp(z), np.sin(z), np.sqrt(z), np.log(z), np.cos(z), np.tanh(z), z**2, z**3, z**0.5


def python_functions(z):
    return cmath.exp(z), cmath.sqrt(z), cmath.sin(z), cmath.phase(z), abs(z), cmath.log(z)


def test_functions():
    same(functions, Z)
    same(functions, 0.5 - 1.5j)
    same(python_functions, 0.5 - 1.5j)
    same(python_functions, -2.0)


def divide(z, w):
    return z / w


def test_division_by_zero():
    raises(ZeroDivisionError, divide, 1 + 1j, 0j)
    raises(ZeroDivisionError, divide, 1 + 1j, 0)


def mandelbrot(c, limit):
    z = 0j
    n = 0
    while abs(z) < 2 and n < limit:
        z = z * z + c
        n += 1
    return n, z


def test_loops():
    for c in (0.3 + 0.5j, 1 + 1j, 0j):
        same(mandelbrot, c, 30)


def reductions(z):
    return z.sum(), z.prod(), z.mean(), (z * z.conj()).sum().real, np.cumsum(z), z @ z, np.vdot(z, z), np.linalg.norm(z)


def test_reductions():
    same(reductions, Z)
    same(reductions, Z.astype(np.complex64))


def written(z, x):
    z[0] = 5
    z[1:] *= 1j
    z[2] += x[1]
    w = np.zeros(3, dtype=complex)
    w[1] = 2j
    w[2] = z[0]
    return w, complex(x[0], x[1]), complex(2), np.array([1j, 2.0])


def test_writing():
    same(written, Z, np.array([1.5, -2.0]))


def into_real(x, z):
    x[0] = z
    return x


def ordered(z, w):
    return z < w


def test_what_complex_numbers_cannot_do():
    for f, args in ((into_real, (np.zeros(2), 1j)), (ordered, (1j, 2j))):
        with pytest.raises(tp.CompileError):
            tp.function(f)(*args)


def roots(a, b, c):
    d = cmath.sqrt(b * b - 4 * a * c)
    return (-b + d) / (2 * a), (-b - d) / (2 * a)


def test_roots():
    same(roots, 1.0, 2.0, 5.0)
    same(roots, 1.0, -3.0, 2.0)


def conditional(z):
    y = z if z.real > 0 else -z
    return y, 1.0 if z == 1j else 2.0, bool(z)


def test_branches():
    for z in (1 + 1j, -1 + 1j, 1j, 0j):
        same(conditional, z)


def mixed_precision(a, b):
    return a + b, a * b, a + 1j, a * 2.0


def test_precision():
    for a in (np.float32(1.5), np.float64(1.5), np.complex64(1j), np.int32(2)):
        for b in (np.complex64(2j), np.complex128(2j), 2j):
            same(mixed_precision, a, b)


def powers(z, n):
    return z**n


def test_powers():
    same(powers, 1 + 2j, 3)
    same(powers, 1 + 2j, -1)
    same(powers, 1 + 2j, 0.5)
    same(powers, 1 + 2j, 1 - 1j)
    same(powers, np.complex128(1 + 2j), 2)
    same_values(powers, 2.0, 1j)
