"""The programs in the reversible dialect, without checks.

Positional parameters are state, keywords are constants. What a program computes is added to its first state, or is that
state. `benchmarks.reversible.plain` has functions of the same names and parameters.
"""

import math

import numpy as np

import tapeless as tp


@tp.reversible(check=False, threads=1)
def bessel(out, z, *, order, least):
    """out[i] += J_order(z[i]), by its series."""
    for i in tp.prange(len(z)):
        with tp.ancilla(0) as k, tp.ancilla(0.0) as term, tp.ancilla(0.0) as total:
            with tp.compute:
                term += (z[i] / 2) ** order / math.factorial(order)
                total += term
                while tp.between(abs(term) > least, k != 0):
                    k += 1
                    term *= -((z[i] / 2) ** 2) / (k * (k + order))
                    total += term
            out[i] += total


@tp.reversible(check=False, threads=1)
def sparse_dot(out, a, b, *, a_start, a_column, b_start, b_column):
    """out += the sum of products of entries of two sparse matrices. Each row is merged up to the ends of both, so that it
    is known where the positions are then.
    """
    for row in range(len(a_start) - 1):
        with tp.ancilla(a_start[row]) as i, tp.ancilla(b_start[row]) as j:
            while tp.between(
                i < a_start[row + 1] or j < b_start[row + 1],
                i > a_start[row] or j > b_start[row],
            ):
                with tp.ancilla(False) as in_a, tp.ancilla(False) as in_b:
                    in_a ^= j == b_start[row + 1] or (i < a_start[row + 1] and a_column[i] <= b_column[j])
                    in_b ^= i == a_start[row + 1] or (j < b_start[row + 1] and b_column[j] <= a_column[i])
                    if in_a and in_b:
                        out += a[i] * b[j]
                    i += int(in_a)
                    j += int(in_b)
                    in_a ^= j == b_start[row] or (i > a_start[row] and a_column[i - 1] >= b_column[j - 1])
                    in_b ^= i == a_start[row] or (j > b_start[row] and b_column[j - 1] >= a_column[i - 1])
            i -= a_start[row + 1] - a_start[row]
            j -= b_start[row + 1] - b_start[row]


@tp.reversible(check=False, threads=1)
def sparse_matvec(y, value, x, *, start, column):
    """y += A x, by compressed rows."""
    for i in tp.prange(len(y)):
        for e in range(start[i], start[i + 1]):
            y[i] += value[e] * x[column[e]]


@tp.reversible(check=False, threads=1)
def embedding(loss, x, *, near, far):
    """How far places x of the vertices of a graph are from having one distance between neighbours, and a larger one
    between the others. For each of several embeddings.
    """
    for n in tp.prange(len(x)):
        with (
            tp.ancilla(np.zeros(len(near))) as short,
            tp.ancilla(np.zeros(len(far))) as long,
            tp.ancilla(0.0) as mean_short,
            tp.ancilla(0.0) as mean_long,
        ):
            with tp.compute:
                for e in range(len(near)):
                    short[e] += np.sqrt(np.sum((x[n, near[e, 0]] - x[n, near[e, 1]]) ** 2))
                for e in range(len(far)):
                    long[e] += np.sqrt(np.sum((x[n, far[e, 0]] - x[n, far[e, 1]]) ** 2))
                mean_short += np.sum(short) / len(near)
                mean_long += np.sum(long) / len(far)
            loss[n] += np.sum((short - mean_short) ** 2) / len(near)
            loss[n] += np.sum((long - mean_long) ** 2) / len(far)
            loss[n] += np.exp(np.maximum(mean_short - mean_long + 0.1, 0.0)) - 1.0


@tp.reversible(check=False, threads=1)
def bundle(error, camera, point, weight, *, feature):
    """Errors of reprojected points. A camera is a rotation (3 numbers), a centre (3), a focal length, a principal point
    (2) and a radial distortion (2).
    """
    for n in tp.prange(len(weight)):
        with (
            tp.ancilla(np.zeros(3)) as y,
            tp.ancilla(0.0) as theta,
            tp.ancilla(0.0) as cos,
            tp.ancilla(0.0) as sin,
            tp.ancilla(np.zeros(3)) as axis,
            tp.ancilla(0.0) as along,
            tp.ancilla(np.zeros(3)) as z,
            tp.ancilla(np.zeros(2)) as p,
            tp.ancilla(0.0) as square,
            tp.ancilla(0.0) as scale,
        ):
            with tp.compute:
                for c in range(3):
                    y[c] += point[n, c] - camera[n, 3 + c]
                theta += np.sqrt(camera[n, 0] ** 2 + camera[n, 1] ** 2 + camera[n, 2] ** 2)
                cos += np.cos(theta)
                sin += np.sin(theta)
                for c in range(3):
                    axis[c] += camera[n, c] / theta
                along += (axis[0] * y[0] + axis[1] * y[1] + axis[2] * y[2]) * (1.0 - cos)
                z[0] += y[0] * cos + (axis[1] * y[2] - axis[2] * y[1]) * sin + axis[0] * along
                z[1] += y[1] * cos + (axis[2] * y[0] - axis[0] * y[2]) * sin + axis[1] * along
                z[2] += y[2] * cos + (axis[0] * y[1] - axis[1] * y[0]) * sin + axis[2] * along
                p[0] += z[0] / z[2]
                p[1] += z[1] / z[2]
                square += p[0] ** 2 + p[1] ** 2
                scale += camera[n, 6] * (1.0 + camera[n, 9] * square + camera[n, 10] * square**2)
            for c in range(2):
                error[n, c] += weight[n] * (scale * p[c] + camera[n, 7 + c] - feature[n, c])


def log_sum_exp(score):
    """Over the first axis."""
    top = np.max(score, axis=0)
    return top + np.log(np.sum(np.exp(score - top), axis=0))


@tp.reversible(check=False, threads=1)
def gmm(out, alpha, mu, q, l, *, x, m, gamma, constant):
    """out += the log posterior of a Gaussian mixture with a Wishart prior, `constant` being what does not depend on the
    parameters. A precision is the square of a lower triangle: exp(q) on the diagonal, l below, column by column.
    """
    with (
        tp.ancilla(np.zeros((len(alpha), len(mu[0]), len(mu[0])))) as triangle,
        tp.ancilla(np.zeros((len(alpha), len(x)))) as score,
    ):
        with tp.compute:
            for c in range(len(alpha)):
                for j in range(len(mu[0])):
                    triangle[c, j, j] += np.exp(q[c, j])
                    for i in range(j + 1, len(mu[0])):
                        triangle[c, i, j] += l[c, j * len(mu[0]) - j * (j + 1) // 2 + i - j - 1]
                score[c] += alpha[c] + np.sum(q[c]) - 0.5 * np.sum(((x - mu[c]) @ triangle[c].T) ** 2, axis=1)
        out += np.sum(log_sum_exp(score)) - len(x) * log_sum_exp(alpha)
        out += m * np.sum(q) - 0.5 * gamma**2 * np.sum(triangle**2) + constant


def acceleration(x, mass):
    """Of bodies that attract each other."""
    a = np.zeros_like(x)
    for i in range(len(mass)):
        for j in range(len(mass)):
            if j != i:
                d0, d1, d2 = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                square = d0 * d0 + d1 * d1 + d2 * d2
                pull = mass[j] / (square * np.sqrt(square))
                a[i, 0] += pull * d0
                a[i, 1] += pull * d1
                a[i, 2] += pull * d2
    return a


@tp.reversible(check=False, threads=1)
def leapfrog(x, v, *, mass, steps, h):
    """Positions and velocities of some bodies, after some steps."""
    for _ in range(steps):
        x += h / 2 * v
        v += h * acceleration(x, mass)
        x += h / 2 * v


@tp.reversible(check=False, threads=1)
def nice(x, y, w1, b1, w2, b2):
    """Coupling layers: each adds a function of one half of the coordinates to the other half."""
    for layer in range(len(w1)):
        y += np.tanh(x @ w1[layer] + b1[layer]) @ w2[layer] + b2[layer]
        x, y = y, x
