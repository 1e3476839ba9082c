"""Differentiation: Core in, Core out.

The modules of rules register themselves when they are imported, here: whoever imports a part of this package has all rules.
"""

from tapeless.ad import accumulators, control, forward_regions, forward_statements, library, loops, statements, sweeps

__all__ = [
    "accumulators", "control", "forward_regions", "forward_statements", "library", "loops", "statements", "sweeps",
]  # fmt: skip
