"""Tables of rules."""

import pytest

from tapeless.ir.rules import Rules


def test_a_table_is_filled_by_its_decorator():
    rules = Rules()

    @rules.of(int, float)
    def number(x):
        return x + 1

    assert rules == {int: number, float: number}
    with pytest.raises(AssertionError, match="two rules for"):
        rules.of(float)(number)
