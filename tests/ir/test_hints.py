"""What loops carry beside what they compute: its text, read back, and what a user may wish for."""

import itertools

import pytest

from tapeless.ir.digest import digest
from tapeless.ir.hints import NONE, Hints, How, Recovery, read_hints, unknown, wish_of
from tapeless.ir.lexer import CoreSyntaxError
from tapeless.ir.parser import parse_function as parse

WISHES = [None, *(Recovery(how) for how in How), Recovery(How.checkpoint, 3), Recovery(How.invert, 12)]
CHOSEN = [
    (),
    (("x", Recovery(How.store)),),
    (('a, "b": {c}', Recovery(How.checkpoint, 2)), ("k.i", Recovery(How.closed))),
]
LOOP = """
def f(x: f64, n: i64) -> f64
  y: f64 = loop (z: f64 = x) for i < n do {%s}
    w: f64 = sin z
    in w
  in y
"""


def test_hints_are_read_back():
    for wish, chosen, *flags in itertools.product(WISHES, CHOSEN, *[[False, True]] * 3):
        hints = Hints(wish, chosen, *flags)
        assert read_hints(str(hints)) == hints
    assert str(NONE) == ""


def test_text():
    hints = Hints(Recovery(How.checkpoint, 2), (("x", Recovery(How.store)), ("k", Recovery(How.closed))), alike=True)
    assert str(hints) == "checkpoint:2, alike, x: store, k: closed"


@pytest.mark.parametrize("text", ["fast", "x: fast", "x:store", "x store", ": store", "checkpoint:", "store;alike"])
def test_no_hints(text):
    with pytest.raises(ValueError, match="hint|How"):
        read_hints(text)
    with pytest.raises(CoreSyntaxError, match="line 3"):
        parse(LOOP % text)


def test_digests_differ():
    texts = ["store", "auto", "x: store", "y: store", "x: none", "alike", "parallel", "store, alike", "checkpoint:2"]
    assert len({digest(parse(LOOP % text)) for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "text", ["keep", "none", "live", "decisions", "store:3", "checkpoint:0", "alike", "x: store", 3]
)
def test_no_wishes(text):
    assert wish_of(text) is None
    assert repr(text) in unknown(text)


def test_wishes():
    assert wish_of("checkpoint:007") == Recovery(How.checkpoint, 7)
    assert wish_of("undo") == Recovery(How.undo)
