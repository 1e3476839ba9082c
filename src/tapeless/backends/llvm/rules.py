"""All rules of the emitter: whoever writes programs takes `RULES` from here, so that the table is full."""

from tapeless.backends.llvm import atomic, calls, errors, flow, heap, outlined, plain_statements, region
from tapeless.backends.llvm.code import RULES

__all__ = ["RULES", "atomic", "calls", "errors", "flow", "heap", "outlined", "plain_statements", "region"]
