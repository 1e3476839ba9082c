"""What the gradient benchmark differentiates: each workload made into one number, as a user of this project writes it.

Each takes the arguments of its workload; `benchmarks.gradients` says by which of them the gradient is taken.
"""

from benchmarks import programs


def scalar_loop(x, a, b, c, n):
    return programs.scalar_loop(x, a, b, c, n)


def bessel(nu, z):
    return programs.bessel(nu, z).sum()


def spmv(start, column, value, x):
    y = programs.spmv(start, column, value, x)
    return 0.5 * (y * y).sum()


def heat(start, steps, rate):
    u = programs.heat(start, steps, rate)
    return (u * u).sum()


def gmm(x, alpha, mu, q, l, m, gamma):
    return programs.gmm(x, alpha, mu, q, l, m, gamma)


def ba(cameras, points, weights, features, camera_of, point_of):
    residuals, weight_errors = programs.ba(cameras, points, weights, features, camera_of, point_of)
    return 0.5 * ((residuals * residuals).sum() + (weight_errors * weight_errors).sum())


def lstm(weights, extra, state, sequence):
    return programs.lstm(weights, extra, state, sequence)


def kmeans(points, centroids):
    return programs.kmeans(points, centroids)


def logsumexp(x):
    return programs.logsumexp(x)


def hist(bins, keys, weights):
    h = programs.hist(bins, keys, weights)
    return (h * h).sum()


def nbody(position, velocity, mass, steps, dt, softening):
    pos, _ = programs.nbody(position, velocity, mass, steps, dt, softening)
    return (pos * pos).sum()


def floyd(distance):
    return programs.floyd(distance).sum()
