"""Accumulators that are cheaper as something else: results of a sweep, gathered sums, cells that are written once."""
