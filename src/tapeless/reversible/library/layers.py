"""Layers of neural networks that can be run backwards. The nets are plain functions of an input and of weights."""

import numpy as np

import tapeless as tp


@tp.reversible
def nice(x1, x2, weights, *, net):
    """Additive coupling, as in NICE: x2 moves by a net of x1, and volumes stay."""
    x2 += net(x1, weights)


@tp.reversible
def real_nvp(x1, x2, log_volume, scale_weights, shift_weights, *, scale, shift):
    """Affine coupling, as in RealNVP: x2 is stretched and moved by nets of x1; the log of the volume is added up."""
    with tp.ancilla(scale(x1, scale_weights)) as s:
        x2 *= np.exp(s)
        x2 += shift(x1, shift_weights)
        log_volume += np.sum(s)


@tp.reversible
def residual(x1, x2, f_weights, g_weights, *, f, g):
    """A residual block of two streams: x1 moves by f of x2, then x2 by g of x1."""
    x1 += f(x2, f_weights)
    x2 += g(x1, g_weights)
