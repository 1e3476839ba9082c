"""Every node of Core has a rule that lowers it."""

from typing import get_args

from tapeless.ir.core import Exp
from tapeless.lower import lowerer, lowering


def test_every_node_has_a_rule():
    assert lowering.RULES
    assert set(lowerer.RULES) == set(get_args(Exp))
