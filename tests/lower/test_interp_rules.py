"""Every statement of Loop IR has a rule in the interpreter."""

from typing import get_args

from tapeless.lower.ir.interp.machine import RULES
from tapeless.lower.ir.loopir import Stm


def test_every_statement_has_a_rule():
    assert set(RULES) == set(get_args(Stm))
