"""With TAPELESS_VERIFY=1, what is differentiated and what comes of it are checked where they are made."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.ad import reverse
from tapeless.ad.transform import prepared
from tapeless.errors import InternalError
from tapeless.ir.core import Apply, Body, Lambda, Stm
from tapeless.ir.span import NOWHERE
from tapeless.ir.types import BOOL, F64, Var
from tapeless.passes import pipeline
from tapeless.passes.check.verify import InvalidCore


@pytest.fixture
def verifying(monkeypatch):
    monkeypatch.setattr(pipeline, "VERIFY", True)


def wrong(x):
    """The sine of a truth value."""
    return Stm((Var("wrong", F64),), Apply("sin", (x,)), NOWHERE)


def test_what_is_prepared(verifying):
    x = Var("x", BOOL)
    stm = wrong(x)
    with pytest.raises(InvalidCore, match="sin"):
        prepared(Lambda((x,), Body((stm,), stm.vars)))


def test_what_a_rule_makes(verifying, monkeypatch):
    usual = reverse.RULES[Apply]

    def rule(mode, stm, exp):
        truth = mode.b.let(BOOL, Apply("lt", (stm.exp.args[0], stm.exp.args[0])), "truth")
        mode.b.add(wrong(truth))
        return usual(mode, stm, exp)

    monkeypatch.setitem(reverse.RULES, Apply, rule)
    with pytest.raises(InternalError, match="InvalidCore: region: sin does not take bool"):
        tp.grad(lambda x: np.cos(x) * x).ir(2.0, stage="core")


def test_derivatives_are_legal(verifying):
    def f(x, n):
        for i in range(n):
            x = x * np.sin(x + i) if i % 2 else x / np.exp(x).sum()
        return np.sum(x)

    x = np.linspace(0.1, 1.0, 5)
    for recover in ("auto", "store", "recompute", "checkpoint:2"):
        np.testing.assert_allclose(tp.grad(f, recover=recover)(x, 4), tp.grad(f)(x, 4), rtol=1e-12)
