"""The kinds of container: how tuples, lists, dicts, NamedTuples, dataclasses and registered classes are taken apart and put together.

Takes classes; gives the `Container` of each, or None for those whose objects are leaves. Trees of containers are in `pytree.py`.
Relies on nothing else of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import NoneType
from typing import Any, TypeVar

Keys = tuple[Hashable, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Container:
    """How one kind of container is taken apart (`keys` and `children`) and put together (`build`)."""

    open: Callable[[Any], tuple[Keys, Sequence[Any]]]
    build: Callable[[Keys, list[Any]], Any]


def _open_dict(tree: dict[Any, Any]) -> tuple[Keys, list[Any]]:
    return tuple(tree), list(tree.values())


def _named_tuple(cls: type[Any]) -> Container:
    names: tuple[str, ...] = cls._fields
    return Container(lambda tree: (names, tree), lambda _, children: cls._make(children))


def _dataclass(cls: type[Any]) -> Container:
    names = tuple(f.name for f in fields(cls))

    def build(_: Keys, children: list[Any]) -> Any:
        # Not through __init__: the leaves may be gradients or stand-ins that a validating __post_init__ would refuse.
        instance = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(instance, name, child)
        return instance

    return Container(lambda tree: (names, [getattr(tree, name) for name in names]), build)


_CONTAINERS: dict[type, Container] = {
    tuple: Container(lambda tree: ((), tree), lambda _, children: tuple(children)),
    list: Container(lambda tree: ((), tree), lambda _, children: children),
    dict: Container(_open_dict, lambda keys, children: dict(zip(keys, children, strict=True))),
    NoneType: Container(lambda _: ((), ()), lambda _, __: None),
}
BY_KIND: dict[str, type] = {"tuple": tuple, "list": list, "dict": dict}
LEAF_TYPES: set[type] = {int, float, complex, bool, str}  # grows with every class met, so that each is looked at once


def register_leaf(cls: type[T]) -> type[T]:
    """Declare a NamedTuple or dataclass a value rather than a container. Usable as a decorator."""
    _CONTAINERS.pop(cls, None)
    LEAF_TYPES.add(cls)
    return cls


# Note [Registered classes]
# Objects of a class that was registered are containers of named parts. Compiled code sees them as it sees dataclasses:
# what it knows are names, values and a class with its methods. So the structure that is traced has another class in the
# place of a registered one, which gives just that, as `Opened`; nobody else meets it. The class with the methods is the
# registered one, or, of libraries, one that is written in the compiled language.
REGISTERED: dict[type, type] = {}  # by class, what stands for it while it is traced
_STANDS_FOR: dict[type, type] = {}
# Of classes of libraries, the class with the methods, and the names.
_STAND_INS: dict[type, tuple[type, tuple[str, ...]]] = {}
_KEPT: dict[type, frozenset[str]] = {}  # parts that make up the structure: gradients have the same
# What registers the classes of a library, by the beginning of their modules.
_WHEN_MET: dict[str, Callable[[], object]] = {}
_WRITTEN_IN_PYTHON = 1 << 9  # a flag of such classes
_HIDDEN = ("__tapeless_shared__",)  # ours, in the `__dict__` of an object


def register_container(
    cls: type[T],
    flatten: Callable[[T], dict[str, Any]] | None = None,
    unflatten: Callable[[dict[str, Any]], T] | None = None,
) -> type[T]:
    """Makes objects of a class containers of their attributes: as arguments of compiled functions, and in gradients, which
    are objects of the same class. Usable as a decorator. Subclasses are registered for themselves.

    `flatten(obj)` gives the attributes as a dict by name, `vars(obj)` if it is not given: compiled code knows the object
    by these, and by what its class defines. `unflatten(attributes)` makes an object of such a dict; if it is not given a
    new object gets them as they are, without `__init__`. Dataclasses and NamedTuples are containers without this.

    Numbers and arrays are arguments like any others, so that objects with other numbers need no other code; texts and
    functions are known at compile time. In a gradient None stands for what has no derivative: None itself, texts, ints,
    truth values.
    """
    if not isinstance(cls, type):
        raise TypeError(f"tp.register_container takes a class, not {cls!r}")
    if is_dataclass(cls) or hasattr(cls, "_fields"):
        raise TypeError(f"tp.register_container: '{cls.__name__}' is a container without that")
    if not all(c.__flags__ & _WRITTEN_IN_PYTHON for c in cls.__mro__[:-1]):
        raise TypeError(f"tp.register_container: '{cls.__name__}' inherits from a class that is not written in Python")
    if not cls.__dictoffset__:
        reason = f"objects of '{cls.__name__}' have no __dict__: leave __slots__ out, or make it a dataclass"
        raise TypeError(f"tp.register_container: {reason}")

    def opened(tree: Any) -> tuple[Keys, list[Any]]:
        parts = vars(tree) if flatten is None else flatten(tree)
        names = tuple(name for name in parts if name not in _HIDDEN)
        return names, [parts[name] for name in names]

    def put_together(keys: Keys, children: list[Any]) -> Any:
        parts = {str(name): child for name, child in zip(keys, children, strict=True)}
        return _instance(cls, parts) if unflatten is None else unflatten(parts)

    _enter(cls, Container(opened, put_together), cls)
    return cls


@dataclass(frozen=True)
class Opened:
    """An object of a registered class while it is traced. Note [Registered classes]"""

    cls: type
    names: tuple[str, ...]
    parts: tuple[Any, ...]


def _enter(cls: type, container: Container, methods: type) -> None:
    def for_the_front_end(keys: Keys, children: list[Any]) -> Opened:
        return Opened(methods, tuple(map(str, keys)), tuple(children))

    seen = type(cls.__name__, (), {"__module__": cls.__module__})
    LEAF_TYPES.discard(cls)
    _CONTAINERS[cls] = container
    _CONTAINERS[seen] = Container(container.open, for_the_front_end)
    REGISTERED[cls], _STANDS_FOR[seen] = seen, cls


def register_stand_in(
    cls: type,
    stand_in: type,
    names: tuple[str, ...],
    flatten: Callable[[Any], list[Any]],
    unflatten: Callable[[list[Any]], Any],
    kept: tuple[str, ...] = (),
) -> None:
    """A class of a library, whose methods in compiled code are those of `stand_in`."""
    container = Container(lambda tree: (names, flatten(tree)), lambda _, children: unflatten(children))
    _enter(cls, container, stand_in)
    _CONTAINERS[stand_in] = container  # of results
    _STAND_INS[cls] = (stand_in, names)
    _KEPT[cls] = _KEPT[stand_in] = frozenset(kept)


def when_met(module: str, act: Callable[[], object]) -> None:
    """`act` runs before an object of a class from that module, or from below it, is looked at for the first time."""
    _WHEN_MET[module] = act


def stand_in_of(cls: type) -> tuple[type, tuple[str, ...]] | None:
    """What stands for a class of a library, and the names of its parts."""
    return _STAND_INS.get(cls) if container_of(cls) is not None else None


def kept_parts(cls: type | None) -> frozenset[str]:
    """The parts of a container that make up its structure, which gradients, tangents and `tree_map` leave as they are."""
    return _KEPT.get(cls, frozenset()) if cls is not None else frozenset()


def _instance(cls: type[T], parts: dict[str, Any]) -> T:
    made = object.__new__(cls)
    vars(made).update(parts)
    return made


def is_registered(cls: type) -> bool:
    return cls in REGISTERED


def original_class(cls: type) -> type:
    """What a class for tracing stands for; others are their own."""
    return _STANDS_FOR.get(cls, cls)


def built(kind: str, cls: type | None, keys: Keys, children: list[Any]) -> Any:
    """A container of this kind with these parts."""
    if kind == "namedtuple" and cls is not None:
        return cls(*children)
    made_of = BY_KIND.get(kind, cls)
    container = container_of(made_of) if made_of is not None else None
    assert container is not None
    return container.build(keys, children)


def container_of(cls: type) -> Container | None:
    """The container of a class, or None where its instances are leaves."""
    found = _CONTAINERS.get(cls)
    if found is not None or cls in LEAF_TYPES:
        return found
    for module in [m for m in _WHEN_MET if f"{cls.__module__}.".startswith(f"{m}.")]:
        _WHEN_MET.pop(module)()
        return container_of(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        found = _CONTAINERS[cls] = _named_tuple(cls)
    elif is_dataclass(cls):
        found = _CONTAINERS[cls] = _dataclass(cls)
    else:
        LEAF_TYPES.add(cls)
    return found
