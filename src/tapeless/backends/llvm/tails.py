"""Which loops are written twice, once for few iterations.

Note [Short loops]
What is left over when a loop runs in vectors of eight is done one by one, and a call of the C library for one element
takes as long as one for eight. In a loop of fourteen that is most of the time. LLVM can run all of a loop in vectors,
the last of them masked, but that costs a tenth in long loops. So an innermost loop with such calls has two forms, and
the number of iterations picks one.
"""

from __future__ import annotations

from tapeless.backends.llvm.writer import Machine
from tapeless.ir.target import Target
from tapeless.lower.ir.loopir import Assign, Declare, For, Let, Load, Store
from tapeless.ops.op import Libm, Special
from tapeless.ops.table import TABLE

SHORT = 32  # iterations
LARGEST = 400  # statements
MASKED = '!{!"llvm.loop.vectorize.predicate.enable", i1 true}'


def has_short_form(loop: For, target: Machine) -> bool:
    """Note [Short loops]."""
    if target.kind == Target.ptx or not target.vector_width or not loop.vectorize or loop.step != 1:
        return False
    if len(loop.body) > LARGEST or not all(isinstance(s, (Let, Load, Store, Declare, Assign)) for s in loop.body):
        return False
    return any(_is_vector_call(s) for s in loop.body if isinstance(s, Let))


def _is_vector_call(let: Let) -> bool:
    spelling = TABLE[let.op].llvm
    return isinstance(spelling, (Libm, Special)) and spelling.vector and let.var.type.dtype.is_float
