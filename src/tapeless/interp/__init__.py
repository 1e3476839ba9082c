"""The reference evaluator of Core over NumPy: what a program means, for every pass to be judged by.

The modules of rules register themselves when they are imported, here: whoever imports a part of this package has all
rules.
"""

from tapeless.interp import arranging, plain, regions

__all__ = ["arranging", "plain", "regions"]
