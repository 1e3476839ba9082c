"""Runs Loop IR over NumPy memory: the oracle of schedules and of the emitter, and a memory checker.

The modules of rules register themselves when they are imported, here: whoever imports a part of this package has all
rules.
"""

from tapeless.lower.ir.interp import calls, loops, memory, plain
from tapeless.lower.ir.interp.machine import LoopError, Memory, run_program

__all__ = ["LoopError", "Memory", "calls", "loops", "memory", "plain", "run_program"]
