"""Programs as textbooks have them, by loops over cells: `TEXTBOOK` gives them with arguments, those that give a number to be differentiated."""

import math

import numpy as np
from scipy import special

import tapeless as tp


def product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def covariance(x):
    mean = x.mean(axis=0)
    c = np.zeros((x.shape[1], x.shape[1]))
    for i in range(x.shape[1]):
        for j in range(x.shape[1]):
            s = 0.0
            for k in range(x.shape[0]):
                s += (x[k, i] - mean[i]) * (x[k, j] - mean[j])
            c[i, j] = s / (x.shape[0] - 1)
    return c


def dense_layer(x, w, b):
    y = np.zeros((x.shape[0], w.shape[1]))
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            y[i, j] = b[j]
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * w[k, j]
    return np.sum(np.tanh(y))


def blur(x):
    y = np.zeros(len(x))
    for i in tp.prange(1, len(x) - 1):
        y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1]
    return np.sum(y * y)


def roughness(u):
    total = 0.0
    for i in tp.prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            e = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
            total += e * e
    return total


def total_variation(u):
    total = 0.0
    for i in tp.prange(u.shape[0] - 1):
        for j in range(u.shape[1] - 1):
            total += math.sqrt(1e-6 + (u[i + 1, j] - u[i, j]) ** 2 + (u[i, j + 1] - u[i, j]) ** 2)
    return total


def waves(u, v, steps):
    for _ in range(steps):
        w = np.zeros(len(u))
        for i in tp.prange(1, len(u) - 1):
            w[i] = 2.0 * u[i] - v[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u, v = w, u
    return np.sum(u * u)


def graph_smoothness(start, neighbour, weight, x):
    total = 0.0
    for i in tp.prange(len(start) - 1):
        for k in range(start[i], start[i + 1]):
            total += weight[k] * (x[i] - x[neighbour[k]]) ** 2
    return total


def ragged_norms(start, x):
    total = 0.0
    for i in tp.prange(len(start) - 1):
        s = 0.0
        for k in range(start[i], start[i + 1]):
            s += x[k] * x[k]
        total += math.sqrt(1.0 + s)
    return total


def diffusion(start, neighbour, weight, x, steps):
    for _ in range(steps):
        y = np.zeros(len(x))
        for i in tp.prange(len(x)):
            for k in range(start[i], start[i + 1]):
                y[i] += weight[k] * x[neighbour[k]]
        x = np.tanh(y)
    return np.sum(x * x)


def segment_softmax(start, score, target):
    loss = 0.0
    for i in tp.prange(len(start) - 1):
        top = -np.inf
        for k in range(start[i], start[i + 1]):
            top = max(top, score[k])
        s = 0.0
        for k in range(start[i], start[i + 1]):
            s += math.exp(score[k] - top)
        loss += top + math.log(s) - score[start[i] + target[i]]
    return loss


def column_sums(a, b):
    return (a @ b).sum(axis=0)


def bias_and_sum(x, w):
    return np.sum(np.sum(x @ w, axis=1) ** 2)


def mean_of_layer(x, w, b):
    return np.mean(x @ w + b)


def rotations(angle, points):
    out = np.empty_like(points)
    for i in tp.prange(len(points)):
        c, s = math.cos(angle[i]), math.sin(angle[i])
        out[i, 0] = c * points[i, 0] - s * points[i, 1]
        out[i, 1] = s * points[i, 0] + c * points[i, 1]
    return np.sum(out * out * out)


def matrix_vector(a, x):
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j] * x[j]
    return y


def gram(a):
    g = np.zeros((a.shape[1], a.shape[1]))
    for k in range(a.shape[0]):
        for i in range(a.shape[1]):
            for j in range(a.shape[1]):
                g[i, j] += a[k, i] * a[k, j]
    return g


def batched(a, b):
    c = np.zeros((a.shape[0], a.shape[1], b.shape[2]))
    for n in range(a.shape[0]):
        for i in range(a.shape[1]):
            for j in range(b.shape[2]):
                s = 0.0
                for k in range(a.shape[2]):
                    s += a[n, i, k] * b[n, k, j]
                c[n, i, j] = s
    return c


def jacobi(a, b, steps):
    x = np.zeros(len(b))
    for _ in range(steps):
        y = np.zeros(len(b))
        for i in range(len(b)):
            s = 0.0
            for j in range(len(b)):
                if j != i:
                    s += a[i, j] * x[j]
            y[i] = (b[i] - s) / a[i, i]
        x = y
    return np.sum(x * x)


def some(*shape):
    return np.random.default_rng(0).random(shape)


def line_by_descent(x, y, rate, steps):
    """A straight line through points, by gradient descent."""
    slope, start = 0.0, 0.0
    for _ in range(steps):
        off = y - slope * x - start
        slope, start = slope + rate * np.mean(off * x), start + rate * np.mean(off)
    return slope, start


def logistic_regression(w, x, y):
    return np.mean(np.log(1.0 + np.exp(-y * (x @ w))))


def support_vectors(w, x, y):
    """The hinge loss, by loops."""
    total = 0.0
    for i in range(len(x)):
        margin = 0.0
        for k in range(len(w)):
            margin += w[k] * x[i, k]
        total += max(0.0, 1.0 - y[i] * margin)
    return total


def hausdorff(x, y):
    """How far points are at most from the nearest one of others."""
    farthest = 0.0
    for i in range(len(x)):
        nearest = np.inf
        for j in range(len(y)):
            distance = 0.0
            for k in range(x.shape[1]):
                distance += (x[i, k] - y[j, k]) ** 2
            nearest = min(nearest, distance)
        farthest = max(farthest, nearest)
    return np.sqrt(farthest)


def soft_layer(x, w):
    """A layer with the smooth form of max(0, t)."""
    return np.sum(np.log(1.0 + np.exp(x @ w)))


def two_modes(x, low, high):
    """The log-likelihood of a mixture of two normal distributions."""
    return np.sum(np.log(np.exp(-0.5 * (x - low) ** 2) + np.exp(-0.5 * (x - high) ** 2)))


def censored_regression(w, x, y):
    """Of what is only measured above 0: below it is the chance that counts (Tobit)."""
    residuals = y - x @ w
    measured = -0.5 * residuals**2 - 0.5 * math.log(2 * math.pi)
    return -np.sum(np.where(y > 0.0, measured, special.log_ndtr(-x @ w)))


def inflated_counts(rates, y, p):
    """Counts of which some are 0 for another reason (zero-inflated Poisson)."""
    counted = np.log1p(-p) + y * np.log(rates) - rates - special.gammaln(y + 1.0)
    return -np.sum(np.where(y == 0.0, np.log(p + (1.0 - p) * np.exp(-rates)), counted))


def screened_cylinder(r, radius):
    """The potential around a charged cylinder, and inside of it."""
    inside = special.i0(r) * special.k1(radius)
    return np.sum(np.where(r < radius, 1.0 / radius - inside, special.k0(r) * special.i1(radius)))


START, NEIGHBOUR = np.array([0, 2, 5, 6, 9]), np.array([1, 2, 0, 2, 3, 1, 0, 1, 2])  # rows of different lengths

TEXTBOOK = (
    (product, (some(3, 4), some(4, 5))),
    (covariance, (some(6, 3),)),
    (tp.grad(dense_layer, (0, 1, 2)).python, (some(3, 4), some(4, 5), some(5))),
    (tp.grad(blur).python, (some(9),)),
    (tp.grad(roughness).python, (some(6, 7),)),
    (tp.grad(total_variation).python, (some(6, 7),)),
    (tp.grad(waves, (0, 1)).python, (some(9), some(9), 3)),
    (tp.grad(graph_smoothness, (2, 3)).python, (START, NEIGHBOUR, some(9), some(4))),
    (tp.grad(ragged_norms, 1).python, (START, some(9))),
    (tp.grad(diffusion, (2, 3)).python, (START, NEIGHBOUR, some(9), some(4), 3)),
    (tp.grad(segment_softmax, 1).python, (START, some(9), np.array([0, 1, 0, 2]))),
    (column_sums, (some(3, 4), some(4, 5))),
    (bias_and_sum, (some(3, 4), some(4, 5))),
    (tp.grad(bias_and_sum, (0, 1)).python, (some(3, 4), some(4, 5))),
    (tp.grad(mean_of_layer, (0, 1, 2)).python, (some(3, 4), some(4, 5), some(5))),
    (tp.grad(rotations, (0, 1)).python, (some(5), some(5, 2))),
    (matrix_vector, (some(3, 4), some(4))),
    (gram, (some(6, 3),)),
    (batched, (some(2, 3, 4), some(2, 4, 5))),
    (line_by_descent, (some(9), some(9), 0.1, 20)),
    (tp.grad(logistic_regression).python, (some(4), some(9, 4), np.sign(some(9) - 0.5))),
    (tp.grad(support_vectors).python, (some(4), some(9, 4), np.sign(some(9) - 0.5))),
    (tp.grad(hausdorff, (0, 1)).python, (some(9, 3), some(8, 3))),
    (tp.grad(soft_layer, (0, 1)).python, (some(3, 4), some(4, 5))),
    (tp.grad(two_modes, (1, 2)).python, (some(9), -1.0, 1.0)),
    (tp.grad(jacobi, (0, 1)).python, (some(4, 4) + 4.0 * np.eye(4), some(4), 3)),
    (tp.grad(censored_regression).python, (some(4), some(9, 4), some(9) - 0.5)),
    (inflated_counts, (some(9) + 0.1, np.floor(3.0 * some(9)), 0.2)),
    (tp.grad(screened_cylinder, (0, 1)).python, (some(9) + 0.1, 0.6)),
)
