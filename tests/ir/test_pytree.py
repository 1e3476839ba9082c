"""Containers: what is one, the order of leaves, structures as keys, and the messages that name a place."""

from __future__ import annotations

import copy
import pickle
import timeit
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from tapeless.ir.containers import register_leaf
from tapeless.ir.pytree import (
    LEAF,
    TreeDef,
    broadcast_prefix,
    difference,
    flatten,
    leaf_paths,
    ordered_like,
    paths,
    tree_map,
    unflatten,
)


class Layer(NamedTuple):
    w: Any
    b: Any


Pair = namedtuple("Pair", "first second")


@dataclass
class Point:
    x: Any
    y: Any = 2.0


@dataclass(frozen=True, slots=True)
class Frozen:
    value: Any


@dataclass
class Strict:
    """Refuses what is not a float, as a user's class may."""

    value: Any
    doubled: Any = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.value, float):
            raise TypeError("a float, please")
        self.doubled = 2 * self.value


TREES = [
    (1.0, 1, "*"),
    (None, 0, "None"),
    ((), 0, "()"),
    ([], 0, "[]"),
    ({}, 0, "{}"),
    ((1,), 1, "(*,)"),
    ((1, 2, 3), 3, "(*, *, *)"),
    ([1, [2, (3, None)]], 3, "[*, [*, (*, None)]]"),
    ({"b": 1, "a": (2, 3)}, 3, "{'b': *, 'a': (*, *)}"),
    (Layer(1, {"k": 2}), 2, "Layer(w=*, b={'k': *})"),
    (Pair((), 5), 1, "Pair(first=(), second=*)"),
    (Point(1, [2, 3]), 3, "Point(x=*, y=[*, *])"),
    (Frozen((Frozen(1), None)), 1, "Frozen(value=(Frozen(value=*), None))"),
    ((None, Layer(None, 1)), 1, "(None, Layer(w=None, b=*))"),
]


@pytest.mark.parametrize("tree, count, text", TREES, ids=[t[-1] for t in TREES])
def test_round_trip(tree: Any, count: int, text: str) -> None:
    leaves, treedef = flatten(tree)
    assert len(leaves) == count == treedef.num_leaves
    assert repr(treedef) == text
    rebuilt = unflatten(treedef, leaves)
    assert rebuilt == tree and type(rebuilt) is type(tree)
    assert flatten(rebuilt) == (leaves, treedef)
    assert len(leaf_paths(treedef)) == count


def test_what_is_a_leaf() -> None:
    class Sub(tuple):
        __slots__ = ()

    leaves = [np.ones(3), np.float32(1), "text", b"x", {1, 2}, range(3), Point, Sub((1, 2)), OrderedDict(a=1), len]
    for leaf in leaves:
        found, treedef = flatten(leaf)
        assert found[0] is leaf and len(found) == 1 and treedef is LEAF
    assert flatten(tuple(leaves))[0] == leaves  # the second time each class is known
    assert flatten(LEAF)[0] == [LEAF]  # a structure is itself a leaf


def test_leaves_are_not_copied() -> None:
    x = np.ones(2)
    (leaf,), treedef = flatten({"a": [x]})
    assert leaf is x and unflatten(treedef, [leaf])["a"][0] is x


def test_dicts_keep_their_order() -> None:
    one, two = {"b": 1, "a": 2}, {"a": 2, "b": 1}
    assert flatten(one)[0] == [1, 2] and flatten(two)[0] == [2, 1]
    assert flatten(one)[1] != flatten(two)[1]
    assert list(unflatten(*reversed(flatten(one)))) == ["b", "a"]
    assert flatten({1: "one", "a": "letter"})[0] == ["one", "letter"]


def test_dicts_of_other_orders_fit_together() -> None:
    one, two = [{"b": 1, "a": (2, {})}], [{"a": (20, {}), "b": 10}]
    assert tree_map(lambda x, y: x + y, one, two) == [{"b": 11, "a": (22, {})}]
    assert broadcast_prefix([{"a": 5, "b": 7}], flatten(one)[1]) == [7, 5]
    assert list(ordered_like(two, flatten(one)[1])[0]) == ["b", "a"]


def test_dataclass_is_rebuilt_without_init() -> None:
    leaves, treedef = flatten(Strict(3.0))
    assert leaves == [3.0, 6.0]
    stand_in = object()
    rebuilt = unflatten(treedef, [stand_in, None])
    assert type(rebuilt) is Strict and rebuilt.value is stand_in and rebuilt.doubled is None


def test_register_leaf() -> None:
    @register_leaf
    @dataclass
    class Value:
        x: float

    value = Value(1.0)
    assert flatten((value, 2))[0] == [value, 2]
    assert flatten(value)[1] is LEAF

    @dataclass
    class Late:
        x: float

    assert flatten(Late(1.0))[0] == [1.0]
    register_leaf(Late)
    assert flatten(Late(1.0))[1] is LEAF


def test_structures_are_keys() -> None:
    table = {flatten(((1, 2), {"a": 3}))[1]: "found"}
    assert table[flatten(((None.__class__, "x"), {"a": np.ones(3)}))[1]] == "found"
    different = [(1, 2), [1, 2], {"a": 1, "b": 2}, {"a": 1, "c": 2}, Layer(1, 2), Pair(1, 2), Point(1, 2), (1, 2, 3)]
    different += [((1, 2),), (1, (2,)), (None, 1, 2), (1, 2, None), 1, None, ()]
    assert len({flatten(tree)[1] for tree in different}) == len(different)
    assert flatten((1, 2))[1] != "(*, *)"


def test_structures_are_frozen() -> None:
    with pytest.raises(AttributeError):
        LEAF.keys = ("a",)  # type: ignore[misc]


def test_structures_survive_pickle_and_copy() -> None:
    for tree in (1.0, (1, 2), Layer({"a": 1}, [2, None]), tuple(range(100))):
        treedef = flatten(tree)[1]
        for other in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef)):
            assert other == treedef and hash(other) == hash(treedef)
            assert unflatten(other, flatten(tree)[0]) == tree


def test_equality_does_not_need_identity() -> None:
    made = TreeDef(tuple, (), (TreeDef(None, (), ()), TreeDef(None, (), ())))
    assert made == flatten((1, 2))[1] and hash(made) == hash(flatten((1, 2))[1])
    assert unflatten(made, [1, 2]) == (1, 2)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1000])
def test_wide_containers(n: int) -> None:
    for tree in (tuple(range(n)), list(range(n)), {i: i for i in range(n)}):
        leaves, treedef = flatten(tree)
        assert leaves == list(range(n))
        assert unflatten(treedef, leaves) == tree
        assert flatten(tree)[1] == treedef


def test_unflatten_counts() -> None:
    treedef = flatten((1, {"a": 2}))[1]
    assert unflatten(treedef, iter([5, 6])) == (5, {"a": 6})
    for wrong in ([], [1], [1, 2, 3]):
        with pytest.raises(ValueError, match=rf"\(\*, {{'a': \*}}\) has 2 leaves, {len(wrong)} were given"):
            unflatten(treedef, wrong)


def test_is_leaf() -> None:
    tree = ((1, 2), [3, None])
    assert flatten(tree, lambda part: part is None)[0] == [1, 2, 3, None]
    assert flatten(tree, lambda part: isinstance(part, list))[0] == [1, 2, [3, None]]
    assert flatten(tree, lambda part: True) == ([tree], LEAF)
    assert flatten((1, 2), lambda part: part == 1)[0] == [1, 2]


def test_tree_map() -> None:
    assert tree_map(lambda a: a + 1, (1, {"a": [2]})) == (2, {"a": [3]})
    assert tree_map(lambda a, b, c: (a, b, c), Point(1, None), Point(2, None), Point(3, None)) == Point((1, 2, 3), None)
    assert tree_map(str, None) is None
    assert tree_map(lambda a: a is None, (None, 1), is_leaf=lambda part: part is None) == (True, False)


@pytest.mark.parametrize(
    "tree, other, message",
    [
        ((1, 2), (1, 2, 3), r"tree 1 has another structure than tree 0: \(\*, \*, \*\) against \(\*, \*\)"),
        ((1, 2), [1, 2], r"\[\*, \*\] against \(\*, \*\)"),
        ([Layer({"a": 1}, 2)], [Layer({"a": (1,)}, 2)], r"at \[0\]\.w\['a'\], \(\*,\) against \*"),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, r"{'a': \*, 'c': \*} against {'a': \*, 'b': \*}"),
        ((1, None), (1, 2), r"at \[1\], \* against None"),
    ],
)
def test_tree_map_mismatch(tree: Any, other: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tree_map(lambda a, b: a, tree, other)


def test_difference_of_equal_structures_is_empty() -> None:
    assert difference(flatten((1, [2]))[1], flatten((3, [4]))[1]) == ""


def test_paths() -> None:
    assert paths(1.0) == [""]
    assert paths(None) == []
    assert paths([Layer({"a": 1, "b": (2, 3)}, 4), Point(5, None)]) == [
        "[0].w['a']",
        "[0].w['b'][0]",
        "[0].w['b'][1]",
        "[0].b",
        "[1].x",
    ]
    assert paths({1: 2}) == ["[1]"]
    assert paths((None, (1,)), is_leaf=lambda part: part is None) == ["[0]", "[1][0]"]


def test_paths_are_how_python_reaches_the_leaf() -> None:
    tree = [Layer({"a": 1, "b": (2, 3)}, 4), Point(5, {7: 6})]
    assert [eval("tree" + path, {"tree": tree}) for path in paths(tree)] == flatten(tree)[0]


def test_broadcast_prefix() -> None:
    treedef = flatten((1, {"a": 2, "b": (3, 4)}, None))[1]
    assert broadcast_prefix(0, treedef) == [0, 0, 0, 0]
    assert broadcast_prefix(None, treedef) == [None] * 4
    assert broadcast_prefix((0, 1, 2), treedef) == [0, 1, 1, 1]
    assert broadcast_prefix((0, {"b": None, "a": 1}, None), treedef) == [0, 1, None, None]
    assert broadcast_prefix((0, {"a": 1, "b": (2, 3)}, 5), treedef) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"\(\*, \*\) does not fit \(\*, {'a': \*, 'b': \(\*, \*\)}, None\)"):
        broadcast_prefix((0, 1), treedef)
    with pytest.raises(ValueError, match=r"at \[1\]\['b'\], \[\*, \*\] does not fit \(\*, \*\)"):
        broadcast_prefix((0, {"a": 1, "b": [2, None]}, None), treedef)
    with pytest.raises(ValueError, match=r"at \[0\], \(\*,\) does not fit \*"):
        broadcast_prefix(((0,), 1, 2), treedef)


def test_a_tuple_of_plain_leaves_is_flattened_fast() -> None:
    args = (np.ones(3), 1.0, np.ones(3), 4)
    flatten(args)
    # Under 1 us; told in units of an empty call so that a slow or busy machine does not fail.
    once = min(timeit.repeat("flatten(args)", globals={"flatten": flatten, "args": args}, number=2000, repeat=30))
    unit = min(timeit.repeat("f(args)", globals={"f": lambda _: None, "args": args}, number=2000, repeat=30))
    assert once / 2000 < 1e-6 or once < 20 * unit
