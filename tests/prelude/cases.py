"""Tests that many files here have: a file imports them, and has the tables that they go through.

A table maps the name of a case to what it is made of. `VALUES` and `SLOPES`: a function and its arguments. `ERRORS`: an exception,
then those. `REFUSED`: those again. A file may have a `TOLERANCE` for values; `conftest.py` hands out the cases.
"""

import pytest

import tapeless as tp
from tests.prelude.judged import copied, judge

TABLES = {
    "test_values": "VALUES",
    "test_slopes": "SLOPES",
    "test_numpy_raises_too": "ERRORS",
    "test_refused": "REFUSED",
}


def test_values(case, tolerance):
    function, *args = case
    judge(function, *args, order=0, **tolerance)


@pytest.mark.sampled(2)
def test_slopes(case, tolerance):
    function, *args = case
    judge(function, *args, **tolerance)


def test_numpy_raises_too(case):
    kind, function, *args = case
    for call in (function, tp.function(function)):
        with pytest.raises(kind):
            call(*copied(args))


def test_refused(case):
    function, *args = case
    with pytest.raises(tp.CompileError):
        tp.function(function)(*args)
