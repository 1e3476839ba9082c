"""Sweeps, histograms and accumulators: one chunk per thread where that is worth it."""
