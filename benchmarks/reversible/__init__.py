"""Reversible functions beside plain ones: `python -m benchmarks.reversible`."""
