"""Differentiation: Core in, Core out.

The modules of rules register themselves when they are imported, here: whoever imports a part of this package has all
rules.
"""

from tapeless.ad.rules import (
    calls,
    forward_regions,
    forward_statements,
    library,
    reverse_accumulators,
    reverse_branches,
    reverse_loops,
    reverse_statements,
    reverse_sweeps,
)

__all__ = [
    "calls", "forward_regions", "forward_statements", "library", "reverse_accumulators", "reverse_branches", "reverse_loops",
    "reverse_statements", "reverse_sweeps",
]  # fmt: skip
