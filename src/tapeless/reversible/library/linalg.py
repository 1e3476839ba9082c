"""Sums and products of dense arrays. What a routine makes is added to its first argument."""

import numpy as np

import tapeless as tp


@tp.reversible
def sum(out, x):
    """Adds the sum of all elements of x to out."""
    out += np.sum(x)


@tp.reversible
def dot(out, x, y):
    """Adds the sum of x[i] * y[i] to out."""
    for i in range(len(x)):
        out += x[i] * y[i]


@tp.reversible
def norm(out, x):
    """Adds the Euclidean norm of x to out."""
    with tp.ancilla(0.0) as squares:
        with tp.compute:
            squares += np.sum(np.abs(x) ** 2)
        out += np.sqrt(squares)


@tp.reversible
def axpy(y, alpha, x):
    """Adds alpha * x to y."""
    y += alpha * x


@tp.reversible
def matvec(y, a, x):
    """Adds the product of the matrix a and the vector x to y."""
    y += a @ x


@tp.reversible
def matmul(c, a, b):
    """Adds the product of the matrices a and b to c."""
    c += a @ b


@tp.reversible
def affine(y, w, b, x):
    """Adds w @ x + b to y: a layer of a neural network without its activation."""
    matvec(y, w, x)
    y += b
