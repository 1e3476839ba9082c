"""Containers (pytrees): nested tuples, lists, dicts, NamedTuples, dataclasses and None, taken apart and put together.

Takes any Python value; gives its leaves in a fixed order and a hashable `TreeDef` from which `unflatten` rebuilds it.
What a container is, `containers.py` says. All else is a leaf: arrays, strings, sets, other subclasses of tuple or dict, and
objects whose class was not given to `register_container`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from tapeless.ir.containers import LEAF_TYPES, REGISTERED, Keys, container_of, kept_parts, original_class, register_leaf

__all__ = [
    "LEAF", "TreeDef", "broadcast_prefix", "class_of", "difference", "flatten", "for_tracing", "kept_leaves", "leaf_paths", "ordered_like",
    "paths", "tree_map", "unflatten",
]  # fmt: skip

IsLeaf = Callable[[Any], bool]


# Note [Order of leaves]
# Tuples and lists give their elements in order; NamedTuples and dataclasses their fields in the order of declaration.
# A dict gives its values in its own order, so that a loop over it runs as in Python: dicts filled in different orders
# are different structures. Where two of them must fit together (`tree_map`, `broadcast_prefix`), keys count, not order.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeDef:
    """The shape of a container without its leaves. Equal structures are equal and hash alike; the hash is kept.

    `node_type` is None for a leaf, else the container's class; `keys` are the keys of a dict or the names of the
    fields of a NamedTuple or dataclass, and empty for the rest.
    """

    node_type: type | None
    keys: Keys
    children: tuple[TreeDef, ...]
    num_leaves: int = field(init=False)
    _hash: int = field(init=False)

    def __post_init__(self) -> None:
        count = 1 if self.node_type is None else sum(child.num_leaves for child in self.children)
        object.__setattr__(self, "num_leaves", count)
        object.__setattr__(self, "_hash", hash((self.node_type, self.keys, self.children)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeDef):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.node_type is other.node_type
            and self.keys == other.keys
            and self.children == other.children
        )

    def __reduce__(self) -> tuple[Callable[..., TreeDef], tuple[type | None, Keys, tuple[TreeDef, ...]]]:
        # Hashes of strings and classes differ from process to process, so the kept one must not travel.
        return _node, (self.node_type, self.keys, self.children)

    def __repr__(self) -> str:
        """Python's own notation with `*` for a leaf: `(*, {'a': *}, Point(x=*, y=*))`."""
        inner = [repr(child) for child in self.children]
        if self.node_type is None:
            return "*"
        if self.node_type is NoneType:
            return "None"
        if self.node_type is tuple:
            return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"
        if self.node_type is list:
            return f"[{', '.join(inner)}]"
        if self.node_type is dict:
            return "{" + ", ".join(f"{key!r}: {text}" for key, text in zip(self.keys, inner, strict=True)) + "}"
        named = (f"{key}={text}" for key, text in zip(self.keys, inner, strict=True))
        return f"{self.node_type.__name__}({', '.join(named)})"


LEAF = TreeDef(None, (), ())
_SMALL = 32  # widest node that is kept, and ...
_MANY = 4096  # ... how many of them, so that lists of ever new lengths do not fill the memory
_FLAT_TUPLES = [TreeDef(tuple, (), (LEAF,) * n) for n in range(_SMALL + 1)]  # the structure of a tuple of n leaves
_KNOWN: dict[tuple[type | None, Keys, tuple[TreeDef, ...]], TreeDef] = {
    (known.node_type, known.keys, known.children): known for known in (LEAF, *_FLAT_TUPLES)
}


def _node(node_type: type | None, keys: Keys, children: tuple[TreeDef, ...]) -> TreeDef:
    """The structure with these parts: the one seen before if it is kept, as looking it up is faster than making it."""
    if len(children) > _SMALL:
        return TreeDef(node_type, keys, children)
    found = _KNOWN.get((node_type, keys, children))
    if found is None:
        found = TreeDef(node_type, keys, children)
        if len(_KNOWN) < _MANY:
            _KNOWN[node_type, keys, children] = found
    return found


register_leaf(TreeDef)


def kept_leaves(treedef: TreeDef) -> list[bool]:
    """Of each leaf, whether it lies in such a part."""
    if treedef.node_type is None:
        return [False]
    names = kept_parts(treedef.node_type)
    found: list[bool] = []
    for k, child in enumerate(treedef.children):
        inside = bool(names) and treedef.keys[k] in names
        found += [True] * child.num_leaves if inside else kept_leaves(child)
    return found


def for_tracing(tree: TreeDef) -> TreeDef:
    """The structure as the front end takes it: Note [Registered classes]."""
    if not REGISTERED or tree.node_type is None:
        return tree
    children = tuple(map(for_tracing, tree.children))
    return _node(REGISTERED.get(tree.node_type, tree.node_type), tree.keys, children)


def class_of(tree: TreeDef) -> type | None:
    """The class of a container, also of one for tracing."""
    return None if tree.node_type is None else original_class(tree.node_type)


# --- taking apart and putting together --------------------------------------------------------------------------------


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of `tree` and its structure. Where `is_leaf(part)` is true, that part is kept whole."""
    # The arguments of nearly every call are a short tuple of plain values, and each call comes through here.
    if type(tree) is tuple and is_leaf is None and len(tree) <= _SMALL:
        leaf_types = LEAF_TYPES
        for part in tree:
            if type(part) not in leaf_types:
                break
        else:
            return [*tree], _FLAT_TUPLES[len(tree)]
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _flatten_into(tree: Any, leaves: list[Any], is_leaf: IsLeaf | None) -> TreeDef:
    container = container_of(type(tree))
    if container is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    keys, children = container.open(tree)
    return _node(type(tree), keys, tuple([_flatten_into(child, leaves, is_leaf) for child in children]))


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The container of this structure with these leaves, in the order in which `flatten` gives them."""
    values = list(leaves)
    if len(values) != treedef.num_leaves:
        raise ValueError(f"{treedef} has {treedef.num_leaves} leaves, {len(values)} were given")
    if len(values) <= _SMALL and treedef is _FLAT_TUPLES[len(values)]:
        return tuple(values)
    return _build(treedef, iter(values))


def _build(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    if treedef.node_type is None:
        return next(leaves)
    children = [_build(child, leaves) for child in treedef.children]
    container = container_of(treedef.node_type)
    assert container is not None, f"{treedef.node_type.__name__} was declared a leaf after it had been flattened"
    return container.build(treedef.keys, children)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """`f` of every leaf, and of the leaves at the same place in `rest`, in the structure of `tree`. Where one of `rest` has
    None for a part, that part stays as it is in `tree`: gradients have None for what has no derivative. Texts are no
    numbers, and stay; so do the indices of sparse matrices.
    """
    leaves, treedef = flatten(tree, is_leaf)
    columns = [leaves]
    for position, other in enumerate(rest, start=1):
        other = ordered_like(other, treedef)
        other_leaves, other_def = flatten(other, is_leaf)
        found = other_leaves if other_def == treedef else _beside(other, treedef, is_leaf)
        if found is None:
            raise ValueError(f"tree {position} has another structure than tree 0: {difference(other_def, treedef)}")
        columns.append(found)
    rows = zip(kept_leaves(treedef), *columns, strict=True)
    return unflatten(
        treedef,
        [
            row[0] if kept or isinstance(row[0], str) or any(x is _ABSENT for x in row) else f(*row)
            for kept, *row in rows
        ],
    )


_ABSENT = object()


def _beside(tree: Any, treedef: TreeDef, is_leaf: IsLeaf | None) -> list[Any] | None:
    """What a tree has at each leaf of a structure, where None may stand for any part; None where it does not fit."""
    if tree is None:
        return [_ABSENT] * treedef.num_leaves
    container = None if is_leaf is not None and is_leaf(tree) else container_of(type(tree))
    if container is None or treedef.node_type is None:
        return [tree] if container is None and treedef.node_type is None else None
    keys, children = container.open(tree)
    if type(tree) is not treedef.node_type or keys != treedef.keys or len(children) != len(treedef.children):
        return None
    parts = [_beside(child, below, is_leaf) for child, below in zip(children, treedef.children, strict=True)]
    return None if any(p is None for p in parts) else [leaf for p in parts for leaf in p or ()]


def ordered_like(tree: Any, treedef: TreeDef) -> Any:
    """`tree` with its dicts in the order of those of the structure, as far as their keys are the same."""
    container = container_of(type(tree))
    if container is None or type(tree) is not treedef.node_type:
        return tree
    keys, children = container.open(tree)
    if len(children) != len(treedef.children) or set(keys) != set(treedef.keys):
        return tree
    if type(tree) is dict:
        keys, children = treedef.keys, [tree[key] for key in treedef.keys]
    return container.build(keys, [ordered_like(c, d) for c, d in zip(children, treedef.children, strict=True)])


# --- places and comparisons, for messages -----------------------------------------------------------------------------


def _step(treedef: TreeDef, position: int) -> str:
    """How Python reaches the child at this position: `[0]`, `['a']` or `.w`."""
    if not treedef.keys:
        return f"[{position}]"
    key = treedef.keys[position]
    return f"[{key!r}]" if treedef.node_type is dict else f".{key}"


def leaf_paths(treedef: TreeDef) -> list[str]:
    """The place of every leaf, as one would write it after the container's name: `[0].w['a']`; a lone leaf is ``."""
    if treedef.node_type is None:
        return [""]
    return [
        _step(treedef, position) + rest for position, child in enumerate(treedef.children) for rest in leaf_paths(child)
    ]


def paths(tree: Any, is_leaf: IsLeaf | None = None) -> list[str]:
    """`leaf_paths` of the structure of `tree`."""
    return leaf_paths(flatten(tree, is_leaf)[1])


def difference(left: TreeDef, right: TreeDef, path: str = "") -> str:
    """The first place where two structures differ, in words; empty where they are equal."""
    if left == right:
        return ""
    same_node = left.node_type is right.node_type and left.keys == right.keys
    if not same_node or len(left.children) != len(right.children):
        return f"{f'at {path}, ' if path else ''}{left} against {right}"
    parts = enumerate(zip(left.children, right.children, strict=True))
    return next(found for i, (a, b) in parts if (found := difference(a, b, path + _step(left, i))))


def broadcast_prefix(prefix: Any, treedef: TreeDef, path: str = "") -> list[Any]:
    """For each leaf of `treedef` the leaf of `prefix` at or above it. In `prefix`, None is a leaf like any other."""
    container = None if prefix is None else container_of(type(prefix))
    if container is None:
        return [prefix] * treedef.num_leaves
    keys, children = container.open(prefix)
    if isinstance(prefix, dict) and set(keys) == set(treedef.keys):
        keys, children = treedef.keys, [prefix[key] for key in treedef.keys]
    if type(prefix) is not treedef.node_type or keys != treedef.keys or len(children) != len(treedef.children):
        structure = flatten(prefix, lambda part: part is None)[1]
        raise ValueError(f"{f'at {path}, ' if path else ''}{structure} does not fit {treedef}")
    return [
        leaf
        for position, (child, below) in enumerate(zip(children, treedef.children, strict=True))
        for leaf in broadcast_prefix(child, below, path + _step(treedef, position))
    ]
