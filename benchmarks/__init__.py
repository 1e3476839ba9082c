"""Benchmarks: the same workloads by this project, Numba, NumPy and C, timed side by side in one run."""
