"""Filters of an image some of whose pixels are missing: normalised convolution, median, and what the mask leaves."""

import numpy as np


def convolve(image, kernel, mode="reflect"):
    """Correlation with a small kernel by shifted slices of the padded image."""
    kh, kw = kernel.shape
    ph, pw = kh // 2, kw // 2
    padded = np.pad(image, ((ph, ph), (pw, pw)), mode=mode)
    out = np.zeros_like(image)
    for i in range(kh):
        for j in range(kw):
            out += kernel[i, j] * padded[i : i + image.shape[0], j : j + image.shape[1]]
    return out


def fill(image, mask, kernel):
    """The image with missing pixels replaced by a weighted mean of those around them."""
    weights = convolve(mask.astype(float), kernel, mode="constant")
    values = convolve(np.where(mask, image, 0.0), kernel, mode="constant")
    filled = image.copy()
    holes = ~mask & (weights > 0)
    filled[holes] = values[holes] / weights[holes]
    filled[~mask & ~holes] = image[mask].mean()
    return filled


def edges(image, threshold):
    """Sobel's gradient, and where it is strong."""
    sobel = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
    gx = convolve(image, sobel, "edge")
    gy = convolve(image, sobel.T, "edge")
    magnitude = np.hypot(gx, gy)
    strong = magnitude > threshold * magnitude.max()
    return magnitude, strong, np.argwhere(strong)


def clip_outliers(image, mask, n_sigmas=2.0):
    """Pixels far from the mean of the good ones, brought back in place."""
    good = image[mask]
    low, high = good.mean() - n_sigmas * good.std(), good.mean() + n_sigmas * good.std()
    outliers = mask & ((image < low) | (image > high))
    image[outliers] = np.clip(image[outliers], low, high)
    return np.count_nonzero(outliers)


def roughness(image, mask, kernel):
    smooth = fill(image, mask, kernel)
    return np.sum((smooth[1:] - smooth[:-1]) ** 2) + np.sum(np.diff(smooth, axis=1) ** 2)
