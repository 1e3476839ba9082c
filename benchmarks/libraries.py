"""Array libraries with derivatives, as the gradient benchmark uses them: JAX, PyTorch, HIPS autograd.

A `Library` hides in what they differ: loops, cells that are written, and how a gradient is asked for.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

Loss: TypeAlias = Callable[..., Any]
Step: TypeAlias = Callable[[Any, Any], Any]

LOSSES = "benchmarks.array_losses"


class Library(ABC):
    package: str
    lacks: frozenset[str] = frozenset()  # workloads that it cannot express, or not in reasonable time
    xp: Any

    @abstractmethod
    def __init__(self, threads: int) -> None: ...

    @abstractmethod
    def value_and_grad(self, loss: Loss, args: Sequence[Any], argnums: Sequence[int]) -> Callable[[], Any]:
        """What computes `loss(self, *args)` and its gradients by some arguments, as (value, tuple of arrays)."""

    def gradient_of(
        self, name: str, args: Sequence[Any], argnums: Sequence[int], module: str = LOSSES
    ) -> Callable[[], Any]:
        """Of a loss of that name in a module."""
        losses = import_module(module)
        prepare = losses.PREPARE.get(name, lambda *args: args)
        return self.value_and_grad(getattr(losses, name), prepare(*args), argnums)

    def loop(self, count: int, step: Step, state: Any) -> Any:
        for k in range(count):
            state = step(k, state)
        return state

    def while_loop(self, going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
        while going(state):
            state = step(state)
        return state

    def add_at(self, size: int, places: Any, values: Any) -> Any:
        """An array of sums: each value goes to its place."""
        raise NotImplementedError

    @abstractmethod
    def with_inner(self, u: Any, inner: Any) -> Any:
        """`u` with another interior."""

    @abstractmethod
    def lower_triangle(self, diagonal: Any, below: Any) -> Any:
        """(k, d, d) matrices from their diagonals and what is below, packed column by column."""


def below_diagonal(d: int) -> tuple[Any, Any]:
    """Rows and columns below the diagonal, column by column."""
    columns, rows = np.triu_indices(d, 1)
    return rows, columns


class Jax(Library):
    package = "jax"

    def __init__(self, threads: int) -> None:
        os.environ["NPROC"] = str(threads)
        os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.xp = jax, jax.numpy

    def value_and_grad(self, loss: Loss, args: Sequence[Any], argnums: Sequence[int]) -> Callable[[], Any]:
        """Arrays are arguments of what is compiled, other numbers are constants unless differentiated."""
        jax = self.jax
        dynamic = [k for k, a in enumerate(args) if isinstance(a, np.ndarray) or k in argnums]
        arrays = [jax.device_put(self.xp.asarray(args[k])) for k in dynamic]

        def run(*given: Any) -> Any:
            full = list(args)
            for k, a in zip(dynamic, given, strict=True):
                full[k] = a
            return loss(self, *full)

        def slopes(z: Any) -> Any:
            """A loop of unknown length has no reverse mode; where elements are independent one tangent is enough."""
            values, tangents = jax.jvp(jax.vmap(run), (z,), (self.xp.ones_like(z),))
            return values.sum(), (tangents,)

        gradient = jax.value_and_grad(run, argnums=tuple(dynamic.index(k) for k in argnums))
        compiled = jax.jit(slopes if loss.__name__ == "bessel" else gradient)
        return lambda: jax.block_until_ready(compiled(*arrays))

    def loop(self, count: int, step: Step, state: Any) -> Any:
        return self.jax.lax.fori_loop(0, count, step, state)

    def while_loop(self, going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
        return self.jax.lax.while_loop(going, step, state)

    def add_at(self, size: int, places: Any, values: Any) -> Any:
        return self.xp.zeros(size).at[places].add(values)

    def with_inner(self, u: Any, inner: Any) -> Any:
        return u.at[1:-1, 1:-1].set(inner)

    def lower_triangle(self, diagonal: Any, below: Any) -> Any:
        k, d = diagonal.shape
        rows, columns = below_diagonal(d)
        empty = self.xp.zeros((k, d, d))
        return empty.at[:, np.arange(d), np.arange(d)].set(diagonal).at[:, rows, columns].set(below)


class Torch(Library):
    package = "torch"
    lacks = frozenset({"scalar_loop"})  # a million steps of an eager loop

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self.xp = torch

    def value_and_grad(self, loss: Loss, args: Sequence[Any], argnums: Sequence[int]) -> Callable[[], Any]:
        torch = self.xp
        given = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
        for k in argnums:
            given[k] = given[k].clone().requires_grad_()
        wanted = [given[k] for k in argnums]

        def run() -> Any:
            value = loss(self, *given)
            return value.detach(), torch.autograd.grad(value, wanted)

        return run

    def add_at(self, size: int, places: Any, values: Any) -> Any:
        return self.xp.zeros(size, dtype=values.dtype).index_add(0, places, values)

    def with_inner(self, u: Any, inner: Any) -> Any:
        v = u.clone()
        v[1:-1, 1:-1] = inner
        return v

    def lower_triangle(self, diagonal: Any, below: Any) -> Any:
        rows, columns = below_diagonal(diagonal.shape[1])
        Q = self.xp.diag_embed(diagonal)
        Q[:, rows, columns] = below
        return Q


class Autograd(Library):
    package = "autograd"
    lacks = frozenset({"scalar_loop", "spmv", "hist"})  # a million steps; sums by key have no gradient there

    def __init__(self, threads: int) -> None:
        import autograd
        import autograd.numpy

        self.autograd, self.xp = autograd, autograd.numpy

    def value_and_grad(self, loss: Loss, args: Sequence[Any], argnums: Sequence[int]) -> Callable[[], Any]:
        def run(wanted: Any) -> Any:
            full = list(args)
            for k, a in zip(argnums, wanted, strict=True):
                full[k] = a
            return loss(self, *full)

        both = self.autograd.value_and_grad(run)
        return lambda: both(tuple(args[k] for k in argnums))

    def with_inner(self, u: Any, inner: Any) -> Any:
        middle = self.xp.concatenate([u[1:-1, :1], inner, u[1:-1, -1:]], axis=1)
        return self.xp.concatenate([u[:1], middle, u[-1:]], axis=0)

    def lower_triangle(self, diagonal: Any, below: Any) -> Any:
        k, d = diagonal.shape
        where = np.zeros((d, d), np.int64)  # 0 is a zero, then come the diagonal and the entries below
        where[range(d), range(d)] = 1 + np.arange(d)
        where[below_diagonal(d)] = 1 + d + np.arange(below.shape[1])
        return self.xp.concatenate([np.zeros((k, 1)), diagonal, below], axis=1)[:, where]


LIBRARIES: dict[str, type[Library]] = {"JAX": Jax, "PyTorch": Torch, "autograd": Autograd}
