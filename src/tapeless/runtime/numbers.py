"""The numbers of a call: sizes of its arrays, and scalar arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.frontend.entry import Signature

Values = Sequence[Any]  # arguments in the order of parameters, then arrays of the surroundings


def size_sources(signature: Signature) -> list[Callable[[Values], int]]:
    """For each size parameter: where it is read from."""
    sources: list[Callable[[Values], int]] = []
    for size in signature.sizes:
        for k, p in enumerate(signature.params):
            if size in p.type.shape:
                axis = p.type.shape.index(size)
                sources.append(lambda values, k=k, axis=axis: values[k].shape[axis])  # type: ignore[misc]
                break
        else:
            raise AssertionError(f"size {size} belongs to no parameter")
    return sources


def numbers_of(signature: Signature, leaves: Sequence[Any]) -> list[Any]:
    """Sizes and scalar arguments in order, None for arrays. As numbers of Python."""
    values = [*(leaves[k] for k in signature.arguments), *(c.get() for c in signature.captured)]
    return plain_numbers(signature, [source(values) for source in size_sources(signature)], values)


def plain_numbers(signature: Signature, sizes: Sequence[int], values: Values) -> list[Any]:
    scalars = (None if p.type.shape else _plain(v) for p, v in zip(signature.params, values, strict=False))
    return [*sizes, *scalars]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value
