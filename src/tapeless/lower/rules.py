"""All rules that lower a node: whoever lowers programs takes `RULES` from here, so that the table is full."""

from tapeless.lower.core import arrays, calls, control, libraries, plain
from tapeless.lower.core.lowerer import RULES
from tapeless.lower.parallel import accumulators, histograms, sweeps

__all__ = ["RULES", "accumulators", "arrays", "calls", "control", "histograms", "libraries", "plain", "sweeps"]
