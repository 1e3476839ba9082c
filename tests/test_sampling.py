"""Of exhaustive tests `make test` takes a sample that leaves out no row, the same in every run."""

from types import SimpleNamespace

import pytest

from tests.sampling import unsampled

OPS, KINDS = ("add", "mul", "sub"), range(10)


def grid(name):
    return [
        SimpleNamespace(nodeid=f"{name}[{op}-{kind}]", callspec=SimpleNamespace(params={"op": op, "kind": kind}))
        for op in OPS
        for kind in KINDS
    ]


def kept(cases, *args, **options):
    left_out = unsampled(cases, *args, **options)
    return [case.callspec.params for case in cases if case not in left_out]


def test_one_in_n_of_each_row():
    found = kept(grid("test_a"), 5, each="op")
    assert sorted(case["op"] for case in found) == ["add", "add", "mul", "mul", "sub", "sub"]
    assert len({case["kind"] for case in found}) > 2


@pytest.mark.parametrize("n, count", [(1, 30), (7, 5), (30, 1), (1000, 1)])
def test_at_least_one(n, count):
    assert len(kept(grid("test_a"), n)) == count
    assert len(kept(grid("test_a"), n, each="op")) == max(3, {1: 30, 7: 6}.get(n, 0))


def test_the_same_whatever_the_order():
    cases = grid("test_a")
    assert kept(cases, 4) == kept(cases[::-1], 4)[::-1]
