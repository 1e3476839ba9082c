"""All rules that lower a node: whoever lowers programs takes `RULES` from here, so that the table is full."""

from tapeless.lower import accumulators, arrays, calls, control, histograms, libraries, plain, sweeps
from tapeless.lower.lowerer import RULES

__all__ = ["RULES", "accumulators", "arrays", "calls", "control", "histograms", "libraries", "plain", "sweeps"]
