"""One program run by every stage of the compiler.

`outcomes` takes a function and a way to make its arguments; it yields the name of a stage and what a call gave there,
plain Python first. Relies on the interpreters of Core and of Loop IR. A program that is refused raises CompileError.
"""

from __future__ import annotations

import ast
import inspect
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from tapeless import errors
from tapeless.frontend.entry import Traced, specs_of, trace
from tapeless.frontend.returned import Argument, Chosen, Known, Leaf, Listed, Output, Tree, View, view_maker
from tapeless.frontend.state.context import Options
from tapeless.interp.evaluate import evaluate
from tapeless.ir import pytree
from tapeless.ir.core import Function
from tapeless.ir.target import Target
from tapeless.lower import device_blocks
from tapeless.lower.ir.interp import LoopError, run_program
from tapeless.lower.ir.verify import verify_program
from tapeless.lower.lowering import Lowered, lower
from tapeless.lower.parallel import work
from tapeless.passes.check.consumption import check_in_place
from tapeless.passes.check.verify import verify
from tapeless.passes.pipeline import finished
from tapeless.runtime.calling import Caller, error_of
from tapeless.runtime.compile import compile_specs
from tapeless.testing.compare import Outcome, Raised, Returned, compare

Arguments = Callable[[], Sequence[Any]]  # makes the arguments anew for each call

# What a right program may raise; anything else is a mistake of the program, or of the compiler.
EXPECTED = (IndexError, ZeroDivisionError, ValueError, OverflowError, NameError, errors.ShapeError)


def outcomes(
    function: Callable[..., Any],
    arguments: Arguments,
    *,
    loops: bool = True,
    level: int = 0,
    threads: Sequence[int] = (1, 2),
    seed: int = 0,
    eager: bool = True,
) -> Iterator[tuple[str, Outcome]]:
    """`loops`: also by the interpreter of Loop IR. `level`: LLVM's. `seed`: the order in which parallel loops run.

    `eager`: parallel loops are cut into pieces for the threads however small they are.
    """
    yield "python", by_python(function, arguments)
    traced = trace(function, arguments())
    verify(traced.core)
    yield "core", by_core(traced, traced.core, arguments)
    core = finished(traced.core)
    verify(core)
    core, _ = check_in_place(core)
    verify(core)
    yield "optimized core", by_core(traced, core, arguments, consume=True, order=f"shuffle:{seed}")
    if loops:
        with _pieces(eager):
            lowered = lower(core)
        verify_program(lowered.program)
        yield "loop IR", by_loops(traced, lowered, arguments, seed)
    leaves, tree = pytree.flatten((tuple(arguments()), {}))
    specs = specs_of(leaves)
    with _pieces(eager):
        compiled = compile_specs(function, specs, tree, Options(), use_cache=False, level=level)
    for count in threads:
        caller = Caller(compiled, specs, count)
        yield f"native, threads={count}", _call(partial(_called, caller), arguments)


def on_device(
    function: Callable[..., Any],
    arguments: Arguments,
    seed: int = 0,
    blocks: bool = False,
    deterministic: bool = False,
) -> tuple[Outcome, Lowered]:
    """The program for a GPU, host and kernels, by the interpreter of Loop IR; kernels run in the order of a `seed`.

    `blocks`: loops of small kernels are kernels of one block, which takes its time here.
    """
    traced = trace(function, arguments())
    core, _ = check_in_place(finished(traced.core, target=Target.ptx))
    with _set(device_blocks, "LAUNCH", device_blocks.LAUNCH if blocks else 0):
        lowered = lower(core, target=Target.ptx, deterministic=deterministic)
    verify_program(lowered.program)
    return by_loops(traced, lowered, arguments, seed), lowered


def _called(caller: Caller, args: Any) -> Any:
    return caller(leaves_of(args))


@contextmanager
def _set(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    usual = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, usual)


def _pieces(eager: bool) -> AbstractContextManager[None]:
    return _set(work, "PARALLEL_WORK", 1 if eager else work.PARALLEL_WORK)


def leaves_of(args: Sequence[Any]) -> list[Any]:
    return pytree.flatten((tuple(args), {}))[0]


def _call(run: Callable[[Sequence[Any]], Any], arguments: Arguments) -> Outcome:
    args = arguments()
    try:
        with np.errstate(all="ignore"):
            result = run(args)
    except EXPECTED as error:
        return Raised(error)
    return Returned(result, tuple(args))


def by_python(function: Callable[..., Any], arguments: Arguments) -> Outcome:
    return _call(lambda args: function(*args), arguments)


# -- the interpreters


def by_core(traced: Traced, core: Function, arguments: Arguments, **options: Any) -> Outcome:
    def run(args: Sequence[Any]) -> Any:
        leaves = leaves_of(args)
        values = parameters_of(traced, leaves)
        results: list[Any] = list(evaluate(core, values, **options))
        plain = len(results) - len(core.written)
        for k, value in zip(core.written, results[plain:], strict=True):
            values[k][...] = value
        return assemble(traced, results, leaves)

    return _call(run, arguments)


def by_loops(traced: Traced, lowered: Lowered, arguments: Arguments, seed: int) -> Outcome:
    core, program = traced.core, lowered.program

    def run(args: Sequence[Any]) -> Any:
        leaves = leaves_of(args)
        values = parameters_of(traced, leaves)
        lengths = {
            d: n
            for p, v in zip(core.params, values, strict=True)
            for d, n in zip(p.type.shape, np.shape(v), strict=True)
        }
        flat = [np.ravel(v).copy() if p.type.shape else _number(v) for p, v in zip(core.params, values, strict=True)]
        made: dict[int, Any] = {}
        for k, r in lowered.array_results.items():
            if r.provided:
                shape = [d if isinstance(d, int) else lengths[d] for d in r.shape]
                made[k] = np.full(shape, 77, r.type.dtype.numpy)
        passed = [*(lengths[s] for s in lowered.sizes), *flat, *(np.ravel(a) for a in made.values())]
        try:
            numbers, given = run_program(program, passed, 2, shuffle=seed, routines=ROUTINES)
        except LoopError as failed:
            raise error_of(_record(failed, program.sites[failed.site].kinds), program.sites) from None
        for k in core.written:
            values[k][...] = flat[k].reshape(np.shape(values[k]))
        results: list[Any] = [None] * len(core.body.results)
        for k, slot in lowered.scalar_results.items():
            results[k] = numbers[slot]
        for k, r in lowered.array_results.items():
            shape = [int(numbers[d]) for d in r.scalars]
            results[k] = made[k] if r.provided else given[r.given][: math.prod(shape)].reshape(shape)
        return assemble(traced, results, leaves)

    return _call(run, arguments)


def gemm(
    ta: int,
    tb: int,
    m: int,
    n: int,
    k: int,
    alpha: Any,
    a: Any,
    lda: int,
    b: Any,
    ldb: int,
    beta: Any,
    c: Any,
    ldc: int,
) -> None:
    """A product as BLAS makes it: by columns, `ta` and `tb` letters."""

    def matrix(x: Any, rows: int, columns: int, ld: int) -> Any:
        return np.lib.stride_tricks.as_strided(x, (rows, columns), (x.itemsize, ld * x.itemsize))

    def operand(x: Any, letter: int, rows: int, columns: int, ld: int) -> Any:
        return matrix(x, rows, columns, ld) if chr(letter) == "N" else matrix(x, columns, rows, ld).T

    out = matrix(c, m, n, ldc)
    product = alpha * (operand(a, ta, m, k, lda) @ operand(b, tb, k, n, ldb))
    out[...] = product if beta == 0 else product + beta * out


def syrk(uplo: int, trans: int, n: int, k: int, alpha: Any, a: Any, lda: int, beta: Any, c: Any, ldc: int) -> None:
    """A product of a matrix and its transpose, of which BLAS writes one triangle."""
    square = np.zeros((n, n), c.dtype)
    turned = ord("T") if chr(trans) == "N" else ord("N")
    gemm(trans, turned, n, n, k, alpha, a, lda, a, lda, 0, square.ravel(), n)
    chosen = np.triu if chr(uplo) == "U" else np.tril
    out = np.lib.stride_tricks.as_strided(c, (n, n), (c.itemsize, ldc * c.itemsize))
    np.copyto(out, beta * out + square.T if beta else square.T, where=chosen(np.ones((n, n), bool)))


def gemm_batched(
    ta: int, tb: int, m: int, n: int, k: int, alpha: Any, a: Any, lda: int, step_a: int, b: Any, ldb: int, step_b: int,
    beta: Any, c: Any, ldc: int, step_c: int, count: int,
) -> None:  # fmt: skip
    """Products of matrices that lie so far apart."""
    for i in range(count):
        own = (a[i * step_a :], lda, b[i * step_b :], ldb)
        gemm(ta, tb, m, n, k, alpha, *own, beta, c[i * step_c :], ldc)


ROUTINES = {f"{kind}{routine.__name__}": routine for kind in "sdcz" for routine in (gemm, gemm_batched, syrk)}


def parameters_of(traced: Traced, leaves: Sequence[Any]) -> list[Any]:
    """What Core takes: leaves of the arguments, arrays of the surroundings, what is behind a budget."""
    room = [] if traced.signature.memory is None else [traced.signature.memory[0]]  # only what loops keep counts
    return [*(leaves[k] for k in traced.arguments), *(c.get() for c in traced.captured), *room]


def _number(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) else value


def _record(failed: LoopError, kinds: Sequence[Any]) -> list[int]:
    """The error as native code reports it."""
    values = [
        int(np.float64(v).view(np.int64)) if kind.is_float else int(v)
        for v, kind in zip(failed.values, kinds, strict=True)
    ]
    return [failed.site + 1, *values]


def assemble(traced: Traced, results: Sequence[Any], leaves: Sequence[Any]) -> Any:
    """The Python result from the results of Core."""
    return _assembled(traced.output, results, [*leaves, *(c.get() for c in traced.captured)])


def _assembled(output: Output, results: Sequence[Any], leaves: Sequence[Any]) -> Any:
    match output:
        case Leaf(k=k, python=python):
            return results[k].item() if python else results[k]
        case Argument(position=position):
            return leaves[position]
        case Chosen(k=k, positions=positions, otherwise=leaf):
            place = dict(positions).get(int(results[k]))
            return _assembled(leaf, results, leaves) if place is None else leaves[place]
        case View(position=position):
            return view_maker(output, lambda k: lambda results: int(results[k]))(leaves[position], results)
        case Known(value=value):
            return value
        case Listed(leaf=leaf):
            return output.of(_assembled(leaf, results, leaves))
        case Tree(kind=kind, items=items, keys=keys, cls=cls):
            parts = [_assembled(i, results, leaves) for i in items]
            match kind:
                case "dict":
                    return dict(zip(keys, parts, strict=True))
                case "namedtuple" | "dataclass":
                    return cls(**dict(zip(keys, parts, strict=True)))
            return tuple(parts) if kind == "tuple" else parts


# -- rounding


def unstable(function: Callable[..., Any], arguments: Arguments, tries: int = 8) -> bool:
    """Whether rounding alone changes the outcome of plain Python: inexact results get an error in the last place.

    Two stages round differently. A program that then takes another branch proves nothing.
    """
    source = inspect.getsource(function)
    tree = ast.fix_missing_locations(_Shake().visit(ast.parse(source)))
    plain = by_python(function, arguments)
    for seed in range(tries):
        scope = {**function.__globals__, "_shake": _Shaker(seed)}
        exec(compile(tree, "<shaken>", "exec"), scope)
        if compare(plain, by_python(scope[function.__name__], arguments)):
            return True
    return False


class _Shake(ast.NodeTransformer):
    """Puts every operation and every call of a library into `_shake`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _shaken(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return _shaken(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        node.value = _shaken(node.value)
        return node


def _shaken(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name("_shake", ast.Load()), [node], []), node)


class _Shaker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, value: Any) -> Any:
        """The value with another last digit, when it is a float that needs all of its digits; arrays are left alone."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and value.base is None:
            factor = [1.0 + self.random.choice((-2, -1, 1, 2)) * np.finfo(value.dtype).eps for _ in range(value.size)]
            changed = (value * np.reshape(factor, value.shape)).astype(value.dtype)
            value[...] = np.where(_exact(value), value, changed)
            return value
        if isinstance(value, (float, complex, np.floating, np.complexfloating)) and not _exact(value):
            kind: Any = type(value)
            eps = float(np.finfo(np.asarray(value).dtype).eps)
            return kind(value * (1.0 + self.random.choice((-2, -1, 1, 2)) * eps))
        return value


def _exact(value: Any) -> Any:
    """Numbers with few digits, which every stage computes exactly; and those that are not finite."""
    with np.errstate(all="ignore"):
        scaled = np.asarray(value) * 2.0**16
        return ~np.isfinite(scaled) | ((scaled == np.round(scaled)) & (np.abs(scaled) < 2.0**50))
