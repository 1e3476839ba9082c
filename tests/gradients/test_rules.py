"""Every node of Core has a rule in both modes."""

from typing import get_args

import pytest

from tapeless.ad import forward, reverse
from tapeless.ir.core import Exp


@pytest.mark.parametrize("mode", [forward, reverse], ids=["forward", "reverse"])
def test_every_node_has_a_rule(mode):
    assert set(mode.RULES) == set(get_args(Exp))
