"""The table of operands and regions, held to `map_exp`, which rebuilds a node from all of them."""

from typing import get_args

from tapeless.ir.core import Exp, WithRegions
from tapeless.ir.operands import OPERANDS, REGIONS, operands, regions
from tapeless.ir.parser import parse_function
from tapeless.ir.walk import all_stms, map_exp
from tests.ir.test_parser import EVERY_NODE


def met_by_map(exp):
    atoms, bodies = [], []

    def on_atom(a):
        atoms.append(a)
        return a

    def on_body(body):
        bodies.append(body)
        return body

    def on_lambda(lam):
        bodies.append(lam.body)
        return lam

    map_exp(exp, on_atom, on_body, on_lambda)
    return atoms, bodies


def test_every_node_has_an_entry():
    assert set(OPERANDS) == set(get_args(Exp))
    assert set(REGIONS) == set(get_args(WithRegions))


def test_the_same_in_the_same_order():
    for stm in all_stms(parse_function(EVERY_NODE).body):
        atoms, bodies = met_by_map(stm.exp)
        assert operands(stm.exp) == atoms, stm
        assert [r.body for r in regions(stm.exp)] == bodies, stm
