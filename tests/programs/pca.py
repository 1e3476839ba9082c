"""Principal components by the singular value decomposition, as scikit-learn makes them."""

import numpy as np


def svd_flip(U, Vt):
    """Signs that do not depend on the library: the largest loading of each component is positive."""
    columns = np.argmax(np.abs(Vt), axis=1)
    signs = np.sign(Vt[np.arange(Vt.shape[0]), columns])
    U *= signs
    Vt *= signs[:, np.newaxis]
    return U, Vt


def fit(X, n_components):
    """Mean, components and the variance that each explains."""
    mean = X.mean(axis=0)
    U, S, Vt = np.linalg.svd(X - mean, full_matrices=False)
    U, Vt = svd_flip(U, Vt)
    explained_variance = S**2 / (len(X) - 1)
    return mean, Vt[:n_components], explained_variance[:n_components]


def explained_variance_ratio(X, n_components):
    variance = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    return variance[:n_components].sum() / variance.sum()


def transform(X, n_components, whiten=False):
    mean, components, variance = fit(X, n_components)
    scores = (X - mean) @ components.T
    if whiten:
        scores /= np.sqrt(variance)
    return scores


def reconstruction_error(X, n_components):
    """The mean square of what the components leave out."""
    mean, components, _ = fit(X, n_components)
    approximation = (X - mean) @ components.T @ components + mean
    return np.mean(np.square(X - approximation))


def largest_loading(X, n_components):
    """The strongest variable in each component, and its loading."""
    _, components, _ = fit(X, n_components)
    which = np.abs(components).argmax(axis=1)
    return which, np.take_along_axis(components, which[:, None], axis=1).squeeze(axis=1)
