"""From a Python function and the kinds of its arguments to a Core function.

Takes the function and one spec for each leaf of its arguments; gives `Traced`: Core, what was read from outside, and
how to put the results together. Relies on the rest of the front end.
"""

from __future__ import annotations

import ast
import dataclasses
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tapeless.errors import CompileError
from tapeless.frontend.numpy import (  # noqa: F401  (they fill the tables)
    creation,
    distributions,
    einsum,
    elementwise,
    elementwise_options,
    intrinsics,
    linalg,
    matrices,
    polynomials,
    preludes,
    queries,
    reductions,
    scans,
    shapes,
    sorting,
    statistics,
    ufuncs,
)
from tapeless.frontend.operators import callbacks, exact, folding, keyed, mapping, prange, repeated  # noqa: F401  (likewise)
from tapeless.frontend.operators.callbacks import refuse_in_parallel
from tapeless.frontend.python import (  # noqa: F401  (likewise)
    assignment,
    builtin_functions,
    comprehensions,
    effects,
    expressions,
    inlining,
    iterators,
    loop_statements,
    pymath,
    queues,
    sequence_functions,
    statements,
    totals,
)
from tapeless.frontend.returned import Output, output_of
from tapeless.frontend.source import sources
from tapeless.frontend.source.marks import peek
from tapeless.frontend.source.origins import Reads
from tapeless.frontend.source.plain_objects import plain_hint, refused
from tapeless.frontend.state.advice import ELEMENT_TYPES
from tapeless.frontend.state.captures import NewCapture, capture
from tapeless.frontend.state.context import Captured, Context, Options, Watch
from tapeless.frontend.state.handlers import call_value
from tapeless.frontend.state.surroundings import from_python, python_function, transform_of
from tapeless.frontend.state.values import Array, Cell, Scalar, Sequence_, Static, Value
from tapeless.ir import containers, pytree
from tapeless.ir.core import Body, Function
from tapeless.ir.segments import Segment
from tapeless.ir.span import Span
from tapeless.ir.types import FROM_NUMPY, LARGEST_SIZE, SCALAR, Dim, DType, Type, Var
from tapeless.ops.callbacks import Callback


@dataclass(frozen=True)
class ArraySpec:
    """`labels`: for each axis 1 when its size is 1, else a number; equal numbers are equal sizes, also across
    arguments.
    """

    dtype: DType
    labels: tuple[int, ...]
    writeable: bool = True
    same_as: int = -1  # position of an earlier argument that is the same array
    ordered: bool = True  # its elements lie in one run, in the order of their indices


@dataclass(frozen=True)
class ScalarSpec:
    """A number. `weak`: one of Python's own."""

    dtype: DType
    weak: bool


@dataclass(frozen=True)
class StaticSpec:
    """Specialised on its value: texts, None, functions, types."""

    value: Any


Spec = ArraySpec | ScalarSpec | StaticSpec

# Axis labels below this mean a size of 1; all others are symbolic.
ONE = 1
FIRST_LABEL = 2


@dataclass
class Signature:
    """How a traced function is called, without the function."""

    sizes: tuple[Var, ...]
    params: tuple[Var, ...]
    written: tuple[int, ...]
    output: Output
    arguments: list[int]  # leaf positions that are parameters of Core, in order
    captured: list[Captured] = field(default_factory=list)  # hidden parameters after those
    watches: list[Watch] = field(default_factory=list)
    memory: tuple[int, int] | None = None  # budgets: the last parameter is found by `runtime/budgets.py`
    apart: tuple[tuple[int, int], ...] = ()  # parameters that must not share memory, beside the written ones


@dataclass
class Traced:
    """A function as Core, and how it is called."""

    core: Function
    signature: Signature
    reads: Reads = field(default_factory=Reads)
    segments: tuple[Segment, ...] = ()  # what was replaced before derivatives were taken
    callbacks: tuple[Callback, ...] = ()  # live as long as this does

    @property
    def output(self) -> Output:
        return self.signature.output

    @property
    def arguments(self) -> list[int]:
        return self.signature.arguments

    @property
    def captured(self) -> list[Captured]:
        return self.signature.captured


def specs_of(leaves: Sequence[Any], function: Any = None, tree: Any = None) -> list[Spec]:
    """The spec of each argument leaf, with sizes that are equal now told apart from the others.

    `function` and `tree` are only for the message when one of them is refused.
    """
    labels: dict[int, int] = {}
    seen: dict[int, int] = {}
    specs: list[Spec] = []
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, np.ndarray):
            dtype = FROM_NUMPY.get(leaf.dtype if leaf.dtype.isnative else leaf.dtype.newbyteorder("="))
            if dtype is None:
                raise unsupported(function, tree, k, f"an array of {leaf.dtype}", ELEMENT_TYPES)
            if refused(leaf):
                raise unsupported(function, tree, k, refused(leaf), plain_hint(leaf))
            if leaf.size > LARGEST_SIZE or max(leaf.shape, default=0) > LARGEST_SIZE:  # range analysis counts on it
                raise unsupported(function, tree, k, "an array of more than 2**60 elements", "pass a smaller array.")
            axes = tuple(ONE if d == 1 else labels.setdefault(d, FIRST_LABEL + len(labels)) for d in leaf.shape)
            same = seen.setdefault(id(leaf), k)
            flags = leaf.flags
            specs.append(
                ArraySpec(dtype, axes, bool(flags.writeable), same if same != k else -1, bool(flags.c_contiguous))
            )
        else:
            specs.append(_scalar_spec(leaf, function, tree, k))
    return specs


def unsupported(function: Any, tree: Any, k: int, what: str, hint: str) -> CompileError:
    """The refusal of an argument, pointing at its parameter where the source is known."""
    label, where = f"argument {k + 1}", {}
    python = written_function(function)
    if isinstance(python, types.FunctionType) and tree is not None:
        try:
            source, node = sources.find(python)
        except CompileError:  # without its source, the number will do
            source = None
        if source is not None:
            name = _leaf_names(node.args, tree)[k]
            label = f"'{name}'"
            found = [
                a
                for a in ast.walk(node.args)
                if isinstance(a, ast.arg) and (name == a.arg or name.startswith(a.arg + "_"))
            ]
            if found:
                span = source.span(max(found, key=lambda a: len(a.arg)))
                where = {
                    "file": span.file, "line": span.line, "column": span.column, "end_line": span.end_line,
                    "end_column": span.end_column, "source": source.text(span.line) or None,
                }  # fmt: skip
    return CompileError(f"{label} is {what}, which is not supported", code="TP109", hint=hint, **where)  # type: ignore[arg-type]


def _scalar_spec(leaf: Any, function: Any, tree: Any, k: int) -> Spec:
    if refused(leaf):
        raise unsupported(function, tree, k, refused(leaf), plain_hint(leaf))
    match leaf:
        case np.generic():
            dtype = FROM_NUMPY.get(leaf.dtype)
            if dtype is None:
                raise unsupported(function, tree, k, f"of type {leaf.dtype}", ELEMENT_TYPES)
            return ScalarSpec(dtype, False)
        case bool():
            return ScalarSpec(DType.bool, True)
        case int():
            return ScalarSpec(DType.i64, True)
        case float():
            return ScalarSpec(DType.f64, True)
        case complex():
            return ScalarSpec(DType.c128, True)
        case _:
            return StaticSpec(leaf)


def trace(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    options: Options | None = None,
) -> Traced:
    """Traces for these very arguments."""
    leaves, tree = pytree.flatten((tuple(args), dict(kwargs or {})))
    return trace_specs(function, specs_of(leaves), tree, options)


def trace_specs(
    function: Callable[..., Any], specs: Sequence[Spec], tree: Any, options: Options | None = None
) -> Traced:
    python = getattr(function, "python", function)
    if not isinstance(python, types.FunctionType):
        raise CompileError(
            f"{function!r} is not a Python function", code="TP107", hint="wrap a function written with def or lambda."
        )
    captures: list[NewCapture] = []
    reads = Reads()
    while True:
        try:
            return _trace(python, specs, tree, Context(options or Options(), reads=reads), captures)
        except NewCapture as found:
            captures.append(found)


def _trace(
    python: types.FunctionType, specs: Sequence[Spec], tree: Any, ctx: Context, captures: Sequence[NewCapture]
) -> Traced:
    for c in captures:
        capture(ctx, c.origin, c.name, c.fixed)
    entry = ctx.reads.root("entry", None, python)
    transform = transform_of(ctx, entry)  # called instead, with all of the arguments
    written = written_function(python)
    source, node = sources.find(written if isinstance(written, types.FunctionType) else python)
    names = _leaf_names(node.args, tree)
    sizes: dict[int, Var] = {}
    params: list[Var] = []
    arguments: list[int] = []
    values: list[Value] = []
    cells: dict[int, Cell] = {}
    for k, (spec, name) in enumerate(zip(specs, names, strict=True)):
        value = _parameter(ctx, spec, name, k, sizes, values, cells)
        values.append(value)
        match spec:
            case ArraySpec(labels=()) | ScalarSpec():
                assert isinstance(value, Scalar) and isinstance(value.atom, Var)
                params.append(value.atom)
                arguments.append(k)
            case ArraySpec(same_as=-1):
                params.append(ctx.state.cells[cells[k]])
                arguments.append(k)
            case _:
                pass
    positional, keywords = _structure(tree, values)
    if transform is None:
        result = call_value(ctx, python_function(ctx, entry), positional, keywords)
    else:
        with ctx.at_span(_header(ctx, source, node) if isinstance(written, types.FunctionType) else ctx.span):
            result = call_value(ctx, transform, positional, keywords)
    return _finish(ctx, python.__name__, result, params, arguments, cells, len(specs))


def written_function(function: Any) -> Any:
    """The function that was written, under transforms and tp.function."""
    function = peek(function, "python") or function
    transform = peek(function, "__tapeless_transform__")
    return function if transform is None else written_function(transform.function)


def _header(ctx: Context, source: sources.Source, node: ast.FunctionDef | ast.Lambda) -> Span:
    """Where a function is written: what is wrong with a transform of it is shown there."""
    whole = source.span(node)
    ctx.sources[source.file] = source
    end = whole.end_column if whole.end_line == whole.line else len(source.text(whole.line))
    return replace(whole, end_line=whole.line, end_column=end)


def _leaf_names(parameters: ast.arguments, tree: Any) -> list[str]:
    """Readable names of the argument leaves: the parameter's name with the path inside it."""
    names = [a.arg for a in (*parameters.posonlyargs, *parameters.args)]
    found: list[str] = []
    for path in pytree.leaf_paths(tree):
        # paths look like "[0][2].w": the first index tells positional from keyword arguments
        head, _, rest = path[1:].partition("]")
        if head == "0":
            number, _, inner = rest[1:].partition("]")
            base = names[int(number)] if int(number) < len(names) else f"arg{number}"
        else:
            number, _, inner = rest[1:].partition("]")
            base = number.strip("'\"")
        clean = "".join(c if c.isalnum() or c == "_" else "_" for c in inner).strip("_")
        found.append(f"{base}_{clean}" if clean else base)
    return found


def _parameter(
    ctx: Context, spec: Spec, name: str, k: int, sizes: dict[int, Var], values: list[Value], cells: dict[int, Cell]
) -> Value:
    match spec:
        case ScalarSpec(dtype=dtype, weak=is_weak):
            return Scalar(Var(name, SCALAR[dtype]), is_weak)
        case StaticSpec(value=value):
            return from_python(ctx, ctx.reads.root("argument", k, value), name)
        case ArraySpec(dtype=dtype, labels=()):
            number = Scalar(Var(name, SCALAR[dtype]))
            ctx.without_axes.add(number.atom)
            return number
        case ArraySpec(same_as=same) if same >= 0:
            return values[same]
        case ArraySpec(dtype=dtype, labels=labels, writeable=writeable, ordered=ordered):
            shape: list[Dim] = []
            for label in labels:
                if label == ONE:
                    shape.append(1)
                    continue
                if label not in sizes:
                    sizes[label] = Var(_size_name(len(sizes)), SCALAR[DType.i64])
                    ctx.sizes.append(sizes[label])
                shape.append(sizes[label])
            var = Var(name, Type(dtype, tuple(shape)))
            reason = "" if writeable else f"'{name}' is a read-only array"
            cell = Cell(name, argument=True, readonly=reason, scattered=not ordered)
            ctx.state.cells[cell] = var
            cells[k] = cell
            return Array(cell, var.type)


def _size_name(k: int) -> str:
    return "nmpqrs"[k] if k < 6 else f"n{k}"


def _structure(tree: Any, values: list[Value]) -> tuple[list[Value], dict[str, Value]]:
    """The arguments with their containers."""
    placed = pytree.unflatten(tree, [_Box(v) for v in values])
    positional, keywords = placed
    return [_value(p) for p in positional], {k: _value(v) for k, v in keywords.items()}


class _Box:
    """Keeps a value a leaf while containers are rebuilt around it."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _value(tree: Any) -> Value:
    match tree:
        case _Box():
            return tree.value
        case None:
            return Static(None)
        case tuple() if hasattr(tree, "_fields"):
            if refused(tree):
                raise CompileError(f"an argument is {refused(tree)}, which is not supported", code="TP109")
            return Sequence_(tuple(_value(v) for v in tree), "namedtuple", tuple(tree._fields), type(tree))
        case tuple():
            return Sequence_(tuple(_value(v) for v in tree))
        case list():
            return Sequence_(tuple(_value(v) for v in tree), "list")
        case dict():
            return Sequence_(tuple(_value(v) for v in tree.values()), "dict", tuple(tree))
        case containers.Opened(cls=cls, names=names, parts=parts):
            return Sequence_(tuple(map(_value, parts)), "dataclass", names, cls)
    fields = tuple(f.name for f in dataclasses.fields(tree))
    return Sequence_(tuple(_value(getattr(tree, f)) for f in fields), "dataclass", fields, type(tree))


def _finish(
    ctx: Context,
    name: str,
    result: Value,
    params: list[Var],
    arguments: list[int],
    cells: dict[int, Cell],
    leaves: int,
) -> Traced:
    captured = list(ctx.captured.values())
    outside = {c.cell: leaves + j for j, c in enumerate(captured)}
    with ctx.at_span(ctx.returned):
        out, results = output_of(ctx, result, {cell: k for k, cell in cells.items()} | outside)
    budget = ctx.budget
    everything = [*params, *(c.param for c in captured), *([] if budget is None else [budget.room])]
    all_cells: list[tuple[int, Cell]] = [(arguments.index(k), cell) for k, cell in cells.items()]
    all_cells += [(len(params) + j, c.cell) for j, c in enumerate(captured)]
    written = [(k, cell) for k, cell in sorted(all_cells, key=lambda p: p[0]) if cell in ctx.written_cells]
    results.extend(ctx.state.cells[cell] for _, cell in written)
    body = Body(tuple(ctx.b.stms), tuple(results))
    core = Function(name, tuple(ctx.sizes), tuple(everything), body, tuple(k for k, _ in written))
    core = ctx.b.functions.program(core)
    watches = list(ctx.watches.values())
    memory = None if budget is None else (budget.first, budget.smallest)
    numbers = {cell: k for k, cell in all_cells}
    apart = sorted((numbers[a], numbers[b]) for a, b in ctx.apart if a in numbers and b in numbers)
    signature = Signature(
        core.sizes, core.params, core.written, out, arguments, captured, watches, memory, tuple(apart)
    )
    if ctx.callbacks:
        refuse_in_parallel(core)
    return Traced(core, signature, ctx.reads, tuple(ctx.b.functions.segments), tuple(ctx.callbacks))
