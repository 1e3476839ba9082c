"""A hidden Markov model with states in bytes: the likeliest path, the likelihood, and sampling of observations."""

import numpy as np
from scipy.special import logsumexp


def viterbi(obs, log_pi, log_A, log_B):
    """The likeliest states, as integers, and the logarithm of their probability."""
    T, N = len(obs), len(log_pi)
    delta = np.full((T, N), -np.inf)
    psi = np.zeros((T, N), dtype=np.int8)
    delta[0] = log_pi + log_B[:, obs[0]]
    for t in range(1, T):
        scores = delta[t - 1][:, None] + log_A
        psi[t] = scores.argmax(axis=0)
        delta[t] = scores.max(axis=0) + log_B[:, obs[t]]
    path = np.empty(T, dtype=np.int8)
    path[-1] = np.argmax(delta[-1])
    for t in reversed(range(T - 1)):
        path[t] = psi[t + 1, path[t + 1]]
    return path, delta[-1].max()


def forward(obs, log_pi, log_A, log_B):
    """The logarithm of the probability of the observations."""
    alpha = log_pi + log_B[:, obs[0]]
    for o in obs[1:]:
        alpha = logsumexp(alpha[:, None] + log_A, axis=0) + log_B[:, o]
    return logsumexp(alpha)


def path_score(path, obs, log_pi, log_A, log_B):
    score = log_pi[path[0]] + log_B[path[0], obs[0]]
    for s, t, o in zip(path[:-1], path[1:], obs[1:]):
        score += log_A[s, t] + log_B[t, o]
    return score


def transitions(path, n_states):
    """How often each state follows each other one."""
    counts = np.zeros((n_states, n_states), dtype=int)
    np.add.at(counts, (path[:-1], path[1:]), 1)
    return counts, np.bincount(path, minlength=n_states), np.flatnonzero(np.diff(path)) + 1
