"""Bayesian linear regression with scipy.stats, sampled by Hamiltonian Monte Carlo."""

import numpy as np
from scipy import stats
from scipy.stats import gamma, norm


def unpack(theta):
    return theta[0], theta[1:-1], np.exp(theta[-1])


def log_prior(theta):
    intercept, slopes, sigma = unpack(theta)
    lp = norm.logpdf(intercept, 0, 10)
    lp += norm.logpdf(slopes, loc=0, scale=2.5).sum()
    lp += gamma.logpdf(1 / sigma**2, 2.0, scale=1 / 0.5) + theta[-1]
    return lp


def log_likelihood(theta, X, y, robust=False):
    intercept, slopes, sigma = unpack(theta)
    mu = intercept + X @ slopes
    if robust:
        return np.sum(stats.t.logpdf(y, 4, loc=mu, scale=sigma))
    return np.sum(stats.norm(mu, sigma).logpdf(y))


def log_posterior(theta, X, y, robust=False):
    return log_prior(theta) + log_likelihood(theta, X, y, robust)


def leapfrog(gradient, theta, momentum, step, n):
    """n steps along the flow of the Hamiltonian."""
    momentum = momentum + 0.5 * step * gradient(theta)
    for i in range(n):
        theta = theta + step * momentum
        if i != n - 1:
            momentum = momentum + step * gradient(theta)
    momentum = momentum + 0.5 * step * gradient(theta)
    return theta, -momentum


def hmc(logp, gradient, theta, momenta, uniforms, step=0.05, n=5):
    """A chain with the random numbers given; its states and how many proposals were taken."""
    chain = np.zeros((len(momenta), len(theta)))
    accepted = 0
    for i, (momentum, u) in enumerate(zip(momenta, uniforms)):
        proposal, end = leapfrog(gradient, theta, momentum, step, n)
        ratio = logp(proposal) - logp(theta) - 0.5 * (end @ end - momentum @ momentum)
        if np.log(u) < ratio:
            theta = proposal
            accepted += 1
        chain[i] = theta
    return chain, accepted
