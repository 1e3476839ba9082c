"""A function traced apart, for transforms: a region over fresh names of what it is differentiated by.

Gives `Traced` with `pull` and `push`, which put derivatives of the region where the builder stands, and readers of
arguments, tangents and adjoints. Fresh names keep a variable that is also seen through a closure a constant there. The
arrays of the caller never change: the function works on references of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tapeless.ad.forward import jvp_body
from tapeless.ad.policy import AS_IT_COMES, DEFAULT, NoDerivative, NoRecovery, Policy
from tapeless.ad.reverse import vjp_body
from tapeless.ad.transform import checked, prepared
from tapeless.frontend.data.arguments import numeric
from tapeless.frontend.data.arrays import read
from tapeless.frontend.data.leaves import (
    atom_of,
    kept_leaves,
    leaves_of,
    number_of,
    paths_of,
    rebuilt,
    tangents_like,
    type_of,
    value_of,
)
from tapeless.frontend.state.context import Context, type_text
from tapeless.frontend.state.handlers import call_numpy, call_value
from tapeless.frontend.state.surroundings import Instance
from tapeless.frontend.state.values import Array, Builtin, Cell, Closure, Grown, Scalar, Sequence_, Static, Value
from tapeless.ir.core import Apply, Body, Check, Lambda
from tapeless.ir.types import BOOL, Atom, Dim, DType, Type, Var, dim_atom
from tapeless.ir.walk import Substitution
from tapeless.ops.emit import Emit, differentiable, whole
from tapeless.passes.inline import inline_here
from tapeless.transforms.sharing import keep_apart

Arguments = list[Value]
Keywords = dict[str, Value]
CLOSE_OVER = "pass a float, or close over it: lambda x: f(x, n)."
BY_ARGNUMS = "pass a float, or leave it out of argnums, which count from 0."
Pair = tuple[tuple[Atom, ...], tuple[Atom | None, ...]]


def _numeric(ctx: Context, value: Value, what: str, hint: str) -> Scalar | Array:
    if isinstance(value, Instance):
        hint = f"tp.register_container({type(value.value).__name__}) makes its attributes parameters; or leave it out of argnums."
    if not isinstance(value, (Scalar, Array)):
        ctx.fail("TP301", f"{what} is {type_text(value)}, which has no derivative", hint)
    return value


def has_slope(leaf: Value) -> bool:
    """Whether there are derivatives by it: floats and complex numbers, and arrays of them."""
    type = type_of(leaf)
    return type is not None and differentiable(type)


# -- tracing a function apart


@dataclass
class Traced:
    """A function for some arguments: a region over fresh names of the differentiated ones."""

    ctx: Context
    lam: Lambda
    params: list[Var]  # the differentiated leaves
    inputs: list[Scalar | Array]  # what they stand for
    result: Value  # its leaves are the results of the region, in order
    leaves: list[Value]
    policy: Policy = DEFAULT

    def copy(self) -> Lambda:
        """The region, to be put somewhere: with names of its own."""
        return Lambda((), Substitution({}, refresh=True).body(self.lam.body))

    def weak(self, k: int) -> bool:
        leaf = self.inputs[k]
        return isinstance(leaf, Scalar) and leaf.weak


def trace(
    ctx: Context,
    function: Value,
    args: Sequence[Value],
    keywords: Keywords,
    wrt: Sequence[int],
    policy: Policy = DEFAULT,
    hint: str = CLOSE_OVER,
    constants: bool = False,
) -> Traced:
    """`wrt`: the positions of the arguments to differentiate, which must have derivatives, otherwise there is the
    `hint`. In containers it is enough that some leaf has one, and with `constants` that some argument has.
    """
    params: list[Var] = []
    inputs: list[Scalar | Array] = []
    new_args: list[Value] = []
    cells: dict[Cell, Array] = {}
    references: list[Cell] = []

    def reference(var: Var, leaf: Array) -> Array:
        made = ctx.new_cell(var, leaf.cell.name, stands_for=leaf.cell)
        references.append(made.cell)
        return made

    def apart(leaf: Value) -> Value:
        """A reference of its own to an array."""
        if not isinstance(leaf, Array):
            return leaf
        if leaf.view or leaf.cell not in cells:
            made = reference(read(ctx, leaf), leaf)
            if leaf.view:
                return made
            cells[leaf.cell] = made
        return cells[leaf.cell]

    def fresh(leaf: Value, name: str) -> Value:
        found = _numeric(ctx, leaf, f"the argument {name}", hint)
        type = type_of(found)
        assert type is not None
        if not differentiable(type):
            reason = f"the argument {name} is {type_text(found)}: integers and truth values have no derivative"
            ctx.fail("TP301", reason, hint)
        inputs.append(found)
        if isinstance(found, Scalar):
            p = ctx.b.let(type, Apply("identity", (found.atom,)), getattr(found.atom, "name", "x"))
            params.append(p)
            return Scalar(p, found.weak)
        p = ctx.b.index(read(ctx, found), whole(type), found.cell.name)
        params.append(p)
        return reference(p, found)

    state, written, seen = ctx.state.copy(), ctx.written_cells, ctx.read_cells
    ctx.transforms += 1
    constants = constants and any(has_slope(leaf) for k in wrt for leaf in leaves_of(args[k]))
    for k, arg in enumerate(args):
        named = zip(leaves_of(arg), paths_of(arg, _parameter(function, k)), strict=True)
        some = constants or (isinstance(arg, Sequence_) and any(map(has_slope, leaves_of(arg))))
        made = [
            fresh(leaf, name) if k in wrt and (has_slope(leaf) or not some) else apart(leaf) for leaf, name in named
        ]
        new_args.append(rebuilt(arg, made))
    new_keywords = {k: rebuilt(v, [apart(leaf) for leaf in leaves_of(v)]) for k, v in keywords.items()}
    ctx.written_cells, ctx.read_cells = set(), set()
    with ctx.b.region() as stms:
        result = call_value(ctx, function, new_args, new_keywords)
        leaves = leaves_of(result)
        if any(isinstance(leaf, Grown) for leaf in leaves):
            reason = "the function returns a list of a length that is known when it runs, which transforms do not take"
            ctx.fail("TP302", reason, "return np.array(...) of it.")
        atoms = [atom_of(ctx, leaf) for leaf in leaves if isinstance(leaf, (Scalar, Array))]
    keep_apart(ctx, references, ctx.read_cells, ctx.written_cells)
    ctx.state, ctx.written_cells, ctx.read_cells = state, written, seen | ctx.read_cells
    ctx.transforms -= 1
    functions = ctx.b.functions
    one_budget = policy.memory is not None  # for all loops together
    body = inline_here(Body(tuple(stms), tuple(atoms)), functions, everything=one_budget)
    as_wished = policy.recover != AS_IT_COMES  # of loops, which must be there then
    lam = prepared(Lambda(tuple(params), body), functions, coarsen=not as_wished)
    return Traced(ctx, lam, params, inputs, result, leaves, policy)


def _parameter(function: Value, k: int) -> str:
    """What the function calls its argument number `k`; otherwise the number, as argnums counts."""
    names = parameters_of(function)
    return names[k] if k < len(names) else f"number {k} (from 0)"


def parameters_of(function: Value) -> tuple[str, ...]:
    match function:
        case Closure(node=node):
            return tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args))
        case Builtin(parameters=names):
            return names
        case _:
            return ()


def results_of(traced: Traced, atoms: Sequence[Atom], leaves: Sequence[Value] | None = None) -> list[Value]:
    """Values of a region's results; what is not a number is itself."""
    given = iter(atoms)
    found: list[Value] = []
    for leaf in traced.leaves if leaves is None else leaves:
        if isinstance(leaf, (Scalar, Array)):
            found.append(value_of(traced.ctx, next(given), isinstance(leaf, Scalar) and leaf.weak))
        else:
            found.append(leaf)
    return found


def _derived(ctx: Context, run: Callable[[], Pair]) -> Pair:
    """What `run` emits, put here."""
    before, ctx.b.again = ctx.b.again, ctx.transforms > 0
    try:
        with ctx.b.region() as stms:
            found = run()
    except NotImplementedError as problem:
        ctx.fail("TP303", str(problem))
    except NoDerivative as problem:
        with ctx.at_span(problem.span if problem.span.line else ctx.span):
            ctx.fail("TP303", problem.reason, problem.hint)
    except NoRecovery as problem:
        ctx.no_recovery(problem.reason, problem.span, problem.hint)
    finally:
        ctx.b.again = before
    checked(stms, ctx.b.functions)
    for s in stms:
        ctx.b.add(s)
    return found


# -- running derivatives of a region here


def pull(traced: Traced, seeds: Sequence[Atom | None]) -> tuple[tuple[Atom, ...], list[Atom]]:
    """The results and the adjoints of the differentiated leaves."""
    ctx = traced.ctx

    def run() -> Pair:
        last = not ctx.transforms
        return vjp_body(ctx.b, traced.copy().body, traced.params, seeds, ctx.options.debug_nans, traced.policy, last)

    results, adjoints = _derived(ctx, run)
    emit = Emit(ctx.b)
    return results, [emit.zero(p.type) if a is None else a for a, p in zip(adjoints, traced.params, strict=True)]


def push(
    traced: Traced, tangents: Sequence[Atom | None], lanes: tuple[Dim, ...] = ()
) -> tuple[tuple[Atom, ...], list[Atom]]:
    """The results and their tangents."""
    ctx = traced.ctx
    given = {p: t for p, t in zip(traced.params, tangents, strict=True) if t is not None}

    def run() -> Pair:
        return jvp_body(ctx.b, traced.copy().body, given, lanes)

    results, found = _derived(ctx, run)
    emit = Emit(ctx.b)
    types = [Type(r.type.dtype, (*r.type.shape, *lanes)) for r in results]
    return results, [emit.zero(type) if t is None else t for type, t in zip(types, found, strict=True)]


def here(traced: Traced) -> tuple[Atom, ...]:
    """The region's results without derivatives."""

    def run() -> Pair:
        copy = traced.copy()
        for s in copy.body.stms:
            traced.ctx.b.add(s)
        return copy.body.results, ()

    return _derived(traced.ctx, run)[0]


# -- tangents and adjoints


def seeds_of(ctx: Context, traced: Traced, results: Sequence[Atom], given: Value, what: str) -> list[Atom | None]:
    """One for each number of the result. `results` are those of the region here: their sizes are known here too."""
    leaves = leaves_like(ctx, given, traced.result, what)
    values = results_of(traced, results)
    for leaf, value, kept in zip(leaves, values, kept_leaves(traced.result), strict=True):
        if kept:
            same_structure(ctx, leaf, value, what)
    numbers = [leaf for leaf, out in zip(leaves, traced.leaves, strict=True) if isinstance(out, (Scalar, Array))]
    return [fitted(ctx, leaf, result.type, what) for leaf, result in zip(numbers, results, strict=True)]


def tangent_result(traced: Traced, results: Sequence[Atom], tangents: Sequence[Atom]) -> Value:
    """Tangents of the results in their container, whose structure is that of the results."""
    kept = kept_leaves(traced.result)
    both = zip(kept, results_of(traced, results), results_of(traced, tangents), strict=True)
    return tangents_like(traced.result, [value if same else tangent for same, value, tangent in both])


def same_structure(ctx: Context, given: Value, value: Value, what: str) -> None:
    """Indices of a sparse tangent or adjoint must be those of the matrix."""
    if given == Static(None) or given == value:
        return
    same = call_numpy(ctx, "array_equal", [given, value])
    assert isinstance(same, Scalar)
    ctx.check(
        same.atom, "ValueError", f"the {what} of a sparse matrix has other indices or another shape than the matrix"
    )


def leaves_like(ctx: Context, given: Value, like: Value, what: str, code: str = "TP304") -> list[Value]:
    """The leaves of a tangent or adjoint in the order of those of the value, whose structure it must have; None stands
    for all of a part.
    """
    if given == Static(None):
        return [given for _ in leaves_of(like)]
    if number_of(like) is not like:
        return [numeric(ctx, what, given)]
    if not isinstance(like, Sequence_):
        if isinstance(given, Sequence_):
            ctx.fail(code, f"the {what} is {type_text(given)} where the value is {type_text(like)}")
        return [given]
    if (
        not isinstance(given, Sequence_)
        or (given.kind, given.cls, len(given.items)) != (like.kind, like.cls, len(like.items))
        or set(given.keys) != set(like.keys)
    ):
        ctx.fail(code, f"the {what} is {type_text(given)} where the value is {type_text(like)}")
    named = dict(zip(given.keys, given.items, strict=True)) if given.keys else {}
    items = [named[k] for k in like.keys] if named else given.items
    return [leaf for g, v in zip(items, like.items, strict=True) for leaf in leaves_like(ctx, g, v, what, code)]


def fitted(ctx: Context, leaf: Value, type: Type | None, what: str) -> Atom | None:
    """A tangent or adjoint of this type; None for one of something without derivatives."""
    assert type is not None
    if not differentiable(type):
        return None
    given = numeric(ctx, what, leaf)
    found = type_of(given)
    assert found is not None
    if found.rank != type.rank:
        ctx.fail("TP304", f"the {what} has {found.rank} dimensions where the value has {type.rank}")
    atom = atom_of(ctx, given)
    if found.shape != type.shape:
        assert isinstance(atom, Var)
        atom = resized(ctx, atom, type, what)
    if atom.type.dtype is type.dtype:
        return atom
    if atom.type.dtype.is_complex and not type.dtype.is_complex:
        ctx.fail("TP304", f"the {what} is complex, the value is real")
    return _converted(ctx, atom, type.dtype)


def _converted(ctx: Context, atom: Atom, dtype: DType) -> Atom:
    emit = Emit(ctx.b)
    if not atom.type.shape:
        return emit.convert(atom, dtype)
    assert isinstance(atom, Var)
    return ctx.b.map(atom.type.shape[0], [atom], lambda _, row: (_converted(ctx, row, dtype),))[0]


def resized(ctx: Context, atom: Var, type: Type, what: str) -> Var:
    """The array with the sizes of `type`, after a test that they are equal."""
    for have, want in zip(atom.type.shape, type.shape, strict=True):
        if have is not want and have != want:
            same = ctx.b.let(BOOL, Apply("eq", (dim_atom(have), dim_atom(want))))
            ctx.b.effect(
                Check(
                    same,
                    "ShapeError",
                    f"the {what} has size {{0}} where the value has {{1}}",
                    (dim_atom(have), dim_atom(want)),
                )
            )
    return ctx.b.reshape(atom, type.shape)
