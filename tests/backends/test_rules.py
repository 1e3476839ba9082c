"""Every statement of Loop IR has a rule in the emitter."""

from typing import get_args

from tapeless.backends.llvm.pieces import Piece, Table
from tapeless.backends.llvm.rules import RULES
from tapeless.lower.ir.loopir import Stm


def test_every_statement_has_a_rule():
    assert set(RULES) == {*get_args(Stm), Piece, Table}
