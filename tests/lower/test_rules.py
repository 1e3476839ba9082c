"""Every node of Core has a rule that lowers it."""

from typing import get_args

from tapeless.ir.core import Exp
from tapeless.lower.rules import RULES


def test_every_node_has_a_rule():
    assert set(RULES) == set(get_args(Exp))
