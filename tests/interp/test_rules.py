"""Every node of Core has a rule in the evaluator."""

from typing import get_args

from tapeless.interp.evaluate import RULES
from tapeless.ir.core import Exp


def test_every_node_has_a_rule():
    assert set(RULES) == set(get_args(Exp))
