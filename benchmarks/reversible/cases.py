"""The rows of the table: which program on which inputs, its loss, by which arguments, and the bars it has to keep to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import tapeless as tp
from benchmarks.reversible import array_losses, inputs, plain, programs
from benchmarks.reversible.entries import ENTRIES, loss_of
from benchmarks.reversible.inputs import Inputs

INVERSE_BAR, FORWARD_BAR, STORE_BAR = 1.1, 1.1, 1.6


@dataclass(frozen=True)
class Case:
    """`outputs`: how many of the first states the program changes. `bar`: the gradient over the program itself."""

    name: str
    program: str
    title: str
    inputs: Callable[[], Inputs]
    argnums: tuple[int, ...]
    outputs: int = 1
    bar: float | None = None
    hessian: bool = False
    store: bool = False  # the plain gradient that stores everything is timed, too

    @property
    def reversible(self) -> Any:
        return getattr(programs, self.program)

    @property
    def plain(self) -> Any:
        return getattr(plain, self.program)

    def compiled(self, program: Any) -> Any:
        return tp.function(ENTRIES[self.program](program), threads=1)

    def derivative(self, program: Any, **plan: str) -> Any:
        """The gradient of the loss, or its Hessian."""
        transform = tp.hessian if self.hessian else tp.grad
        return transform(loss_of(self.program, program), argnums=self.argnums, threads=1, **plan)

    @property
    def in_libraries(self) -> bool:
        return hasattr(array_losses, self.program) and not self.hessian


def copied(state: Sequence[Any]) -> tuple[Any, ...]:
    """Programs write over their arrays."""
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in state)


def agree(found: Any, wanted: Any, what: str, rtol: float = 1e-7) -> None:
    """Raises AssertionError unless arrays agree, by their largest entries."""
    assert len(found) == len(wanted), f"{what}: {len(found)} results, expected {len(wanted)}"
    for one, other in zip(found, wanted, strict=True):
        largest = float(np.max(np.abs(other), initial=0.0))
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * (largest or 1.0), err_msg=what)


EMBEDDINGS, DIMENSIONS = 100, (2, 4, 6, 8, 10)


def embeddings() -> list[Case]:
    """Gradients of a hundred at once, as one takes no longer than a call; the Hessian of one."""
    first = Case("embedding", "embedding", "Petersen graph, by its places", lambda: inputs.embedding(2, 1), (1,))
    found = []
    for k in DIMENSIONS:
        make, one = (partial(inputs.embedding, k, count) for count in (EMBEDDINGS, 1))
        title = f"{EMBEDDINGS} embeddings of the Petersen graph into {k} dimensions, by the places of its vertices"
        found.append(replace(first, name=f"embedding {k}", title=title, inputs=make, bar=2.3))
        title = f"the Hessian of one embedding into {k} dimensions"
        found.append(replace(first, name=f"Hessian {k}", title=title, inputs=one, hessian=True))
    return sorted(found, key=lambda case: case.hessian)


def cases(steps: int) -> list[Case]:
    """`steps` are those of the n-body program."""
    return [
        Case("bessel", "bessel", "J_2 of 10 000 numbers near 1, by them", inputs.bessel, (1,), bar=4.0),
        Case(
            "sparse dot", "sparse_dot", "of 1000 x 1000 matrices, 5 % filled, by both", inputs.sparse_dot, (1, 2), bar=1.5
        ),
        Case(
            "sparse mat-vec", "sparse_matvec", "1000 x 1000, 5 % filled: half of |y + A x|^2, by A and x",
            inputs.sparse_matvec, (1, 2), bar=2.5,
        ),
        *embeddings(),
        Case(
            "bundle", "bundle", "half the sum of squares of 10 000 reprojection errors, by cameras, points and weights",
            inputs.bundle, (1, 2, 3),
        ),
        Case(
            "gmm", "gmm", "log posterior with Wishart prior, d = 10, k = 5, 1000 points, by all parameters", inputs.gmm,
            (1, 2, 3, 4),
        ),
        Case(
            "n-body", "leapfrog", f"10 bodies, {steps} steps, by first positions and velocities",
            partial(inputs.leapfrog, 10, steps), (0, 1), outputs=2, store=True,
        ),
        Case(
            "nice", "nice", "4 coupling layers over 1000 points of 16 coordinates, by the weights", inputs.nice,
            (2, 3, 4, 5), outputs=2,
        ),
    ]  # fmt: skip
