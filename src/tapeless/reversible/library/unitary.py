"""Unitary maps, in place: products of rotations, and the Fourier transform."""

import math

import tapeless as tp


@tp.reversible
def rotations(x, angles):
    """Turns the rows i and j < i of x by an angle each: N (N - 1) / 2 of them make any rotation of N rows."""
    for i in range(1, len(x)):
        for j in range(i):
            x[i], x[j] = tp.rot(x[i], x[j], angles[i * (i - 1) // 2 + j])


@tp.reversible
def fft(re, im):
    """The Fourier transform of 2**k complex numbers, divided by the root of their count, in place."""
    _to_bit_reversed_order(re, im)
    for stage in range(_log2(len(re))):
        for start in range(0, len(re), 2 << stage):
            for i in range(start, start + (1 << stage)):
                with tp.ancilla(i + (1 << stage)) as j:  # (a, b) to (a + w b, a - w b) / sqrt(2)
                    re[j], im[j] = tp.rot(re[j], im[j], -math.pi * (i - start) / (1 << stage))
                    re[i], re[j] = tp.rot(re[i], re[j], -math.pi / 4)
                    im[i], im[j] = tp.rot(im[i], im[j], -math.pi / 4)
                    re[j] *= -1.0
                    im[j] *= -1.0


@tp.reversible
def _to_bit_reversed_order(re, im):
    for i in range(len(re)):
        with tp.ancilla(_bits_reversed(i, len(re))) as j:
            if i < j:
                re[i], re[j] = re[j], re[i]
                im[i], im[j] = im[j], im[i]


def _log2(n):
    """Of a power of two."""
    k = 0
    while n > 1 << k:
        k += 1
    if n != 1 << k:
        raise ValueError("fft takes 2**k numbers")
    return k


def _bits_reversed(i, n):
    """The number below n = 2**k with the bits of i in the other order."""
    found = 0
    while n > 1:
        found = 2 * found + i % 2
        i //= 2
        n //= 2
    return found
