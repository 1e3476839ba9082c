"""Gaussian process regression: marginal likelihood and predictions by a Cholesky factor."""

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular


def rbf(X1, X2, lengthscale, variance):
    sqdist = np.sum(X1**2, 1)[:, None] + np.sum(X2**2, 1)[None, :] - 2 * X1 @ X2.T
    return variance * np.exp(-0.5 * np.maximum(sqdist, 0) / lengthscale**2)


def neg_log_marginal_likelihood(theta, X, y):
    """theta: logarithms of length scale, signal variance and noise variance."""
    lengthscale, variance, noise = np.exp(theta)
    K = rbf(X, X, lengthscale, variance) + noise * np.eye(X.shape[0])
    L = cholesky(K, lower=True)
    alpha = solve_triangular(L.T, solve_triangular(L, y, lower=True))
    return 0.5 * y.dot(alpha) + np.sum(np.log(np.diagonal(L))) + 0.5 * len(X) * np.log(2 * np.pi)


def predict(theta, X, y, Xs, jitter=1e-9):
    """Mean and standard deviation at the points Xs."""
    lengthscale, variance, noise = np.exp(theta)
    K = rbf(X, X, lengthscale, variance)
    K[np.diag_indices_from(K)] += noise + jitter
    L = cholesky(K, lower=True)
    Ks = rbf(X, Xs, lengthscale, variance)
    mean = Ks.T @ cho_solve((L, True), y)
    v = solve_triangular(L, Ks, lower=True)
    std = np.sqrt(variance - np.einsum("ij,ij->j", v, v))
    return mean, std


def upper_confidence_bound(x, theta, X, y, kappa=2.0):
    """What Bayesian optimisation climbs."""
    mean, std = predict(theta, X, y, np.atleast_2d(x))
    return mean[0] + kappa * std[0]
