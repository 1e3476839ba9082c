"""Transforms in compiled code: `tp.grad(f)(x)` traces `f` into a region of its own, differentiates that, and puts the
result here.

Gives handlers for the front end, by the name of the transform. An inner transform is worked off while an outer one's
function is traced, so nesting needs nothing more. What a transform differentiates with respect to are fresh names for the
arguments: the same array seen through a closure is a constant, so perturbations cannot be confused.
The arrays of the caller never change: the function works on references of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tapeless.ad.custom import inlined
from tapeless.ad.emit import Emit, differentiable, whole
from tapeless.ad.transform import jvp, prepared, vjp
from tapeless.frontend.arrays import read
from tapeless.frontend.calls import call_value
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.parallel import OPERATORS
from tapeless.frontend.values import Array, Builtin, Cell, Scalar, Sequence_, Static, Value
from tapeless.ir.core import Apply, At, Body, Lambda, Range
from tapeless.ir.types import Atom, Const, Dim, DType, Type, Var, dim_atom, one_of
from tapeless.ir.walk import Substitution

Rebuild = Callable[[Sequence[Value]], Value]
Arguments = list[Value]
Keywords = dict[str, Value]
Pair = tuple[tuple[Atom, ...], tuple[Atom | None, ...]]


# -- containers of values


def leaves_of(value: Value) -> list[Value]:
    if isinstance(value, Sequence_):
        return [leaf for item in value.items for leaf in leaves_of(item)]
    return [value]


def rebuilt(value: Value, leaves: Sequence[Value]) -> Value:
    """The container of `value` with other leaves."""
    rest = list(leaves)

    def build(v: Value) -> Value:
        if isinstance(v, Sequence_):
            return Sequence_(tuple(build(item) for item in v.items), v.kind, v.keys, v.cls)
        return rest.pop(0)

    return build(value)


def type_of(value: Value) -> Type | None:
    match value:
        case Scalar(atom=atom):
            return atom.type
        case Array(type=type):
            return type
        case _:
            return None


def _numeric(ctx: Context, value: Value, what: str) -> Scalar | Array:
    if not isinstance(value, Scalar | Array):
        ctx.fail("TP301", f"{what} is {type_text(value)}, which has no derivative")
    return value


def _atom(ctx: Context, value: Scalar | Array) -> Atom:
    return value.atom if isinstance(value, Scalar) else read(ctx, value)


def value_of(ctx: Context, atom: Atom, weak: bool = False) -> Value:
    if atom.type.shape:
        assert isinstance(atom, Var)
        return ctx.new_cell(atom)
    return Scalar(atom, weak)


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

    def copy(self) -> Lambda:
        """The region, to be put somewhere: with names of its own."""
        return Lambda((), Substitution({}, refresh=True).body(self.lam.body))

    def weak(self, k: int) -> bool:
        leaf = self.inputs[k]
        return isinstance(leaf, Scalar) and leaf.weak


def trace(ctx: Context, function: Value, args: Sequence[Value], keywords: Keywords, wrt: Sequence[int]) -> Traced:
    """`wrt`: the positions of the arguments to differentiate; their leaves must be numbers with derivatives."""
    params: list[Var] = []
    inputs: list[Scalar | Array] = []
    new_args: list[Value] = []
    cells: dict[Cell, Array] = {}

    def apart(leaf: Value) -> Value:
        """A reference of its own to an array."""
        if not isinstance(leaf, Array):
            return leaf
        if leaf.view or leaf.cell not in cells:
            made = ctx.new_cell(read(ctx, leaf), leaf.cell.name)
            if leaf.view:
                return made
            cells[leaf.cell] = made
        return cells[leaf.cell]

    def fresh(leaf: Value, position: int) -> Value:
        found = _numeric(ctx, leaf, f"argument {position + 1}")
        type = type_of(found)
        assert type is not None
        if not differentiable(type):
            ctx.fail(
                "TP301",
                f"argument {position + 1} is {type_text(found)}: integers and truth values have no gradient",
                "pass a float, or leave the argument out of argnums.",
            )
        inputs.append(found)
        if isinstance(found, Scalar):
            p = ctx.b.let(type, Apply("identity", (found.atom,)), getattr(found.atom, "name", "x"))
            params.append(p)
            return Scalar(p, found.weak)
        p = ctx.b.index(read(ctx, found), whole(type), found.cell.name)
        params.append(p)
        return ctx.new_cell(p, found.cell.name)

    state, written = ctx.state.copy(), set(ctx.written_cells)
    ctx.transforms += 1
    for k, arg in enumerate(args):
        made = [fresh(leaf, k) if k in wrt else apart(leaf) for leaf in leaves_of(arg)]
        new_args.append(rebuilt(arg, made))
    new_keywords = {k: rebuilt(v, [apart(leaf) for leaf in leaves_of(v)]) for k, v in keywords.items()}
    with ctx.b.region() as stms:
        result = call_value(ctx, function, new_args, new_keywords)
        leaves = leaves_of(result)
        atoms = [_atom(ctx, leaf) for leaf in leaves if isinstance(leaf, Scalar | Array)]
    ctx.state, ctx.written_cells = state, written
    ctx.transforms -= 1
    lam = prepared(Lambda(tuple(params), Body(tuple(stms), tuple(atoms))))
    return Traced(ctx, lam, params, inputs, result, leaves)


def results_of(traced: Traced, atoms: Sequence[Atom], leaves: Sequence[Value] | None = None) -> list[Value]:
    """Values of a region's results; what is not a number is itself."""
    given = iter(atoms)
    found: list[Value] = []
    for leaf in traced.leaves if leaves is None else leaves:
        if isinstance(leaf, Scalar | Array):
            found.append(value_of(traced.ctx, next(given), isinstance(leaf, Scalar) and leaf.weak))
        else:
            found.append(leaf)
    return found


def _derived(ctx: Context, run: Callable[[], Pair]) -> Pair:
    """What `run` emits; outside of all transforms, functions with rules that are left become themselves."""
    try:
        with ctx.b.region() as stms:
            found = run()
    except NotImplementedError as problem:
        ctx.fail("TP303", str(problem))
    for s in stms if ctx.transforms else inlined(Body(tuple(stms), ())).stms:
        ctx.b.add(s)
    return found


# -- running derivatives of a region here


def pull(traced: Traced, seeds: Sequence[Atom | None]) -> tuple[tuple[Atom, ...], list[Atom]]:
    """The results and the adjoints of the differentiated leaves."""
    ctx = traced.ctx

    def run() -> Pair:
        return vjp(ctx.b, traced.copy(), traced.params, seeds, ctx.options.debug_nans)

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
        return jvp(ctx.b, traced.copy(), given, lanes)

    results, found = _derived(ctx, run)
    emit = Emit(ctx.b)
    types = [Type(r.type.dtype, (*r.type.shape, *lanes)) for r in results]
    return results, [emit.zero(type) if t is None else t for type, t in zip(types, found, strict=True)]


# -- transforms


def _constants(ctx: Context, name: str, keywords: Keywords, allowed: Sequence[str]) -> dict[str, object]:
    """Options of a transform, which must be known."""
    found: dict[str, object] = {}
    for key, value in keywords.items():
        if key not in allowed:
            ctx.fail("TP112", f"tp.{name} has no option '{key}'")
        found[key] = _constant(ctx, name, key, value)
    return found


def _constant(ctx: Context, name: str, key: str, value: Value) -> object:
    match value:
        case Static(value=known):
            return known
        case Scalar(atom=Const(value=known)):
            return known
        case Sequence_(items=items):
            return tuple(_constant(ctx, name, key, item) for item in items)
        case _:
            ctx.fail("TP104", f"tp.{name}: '{key}' must be known at compile time")


def positions(ctx: Context, argnums: object, count: int) -> tuple[list[int], bool]:
    """The positions of argnums, and whether it was a single one."""
    single = not isinstance(argnums, tuple)
    found: list[int] = []
    for k in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(k, int) or isinstance(k, bool) or not -count <= k < count:
            ctx.fail("TP112", f"argnums = {argnums} does not fit a call with {count} positional arguments")
        found.append(k % count)
    return found, single


OPTIONS = ("argnums", "has_aux", "memory", "recover")


def _by_argument(
    traced: Traced, args: Sequence[Value], wrt: Sequence[int], single: bool, found: Sequence[Value]
) -> Value:
    """Leaves, which come in the order of the arguments, put together as these are, in the order of argnums."""
    rest = list(found)
    groups: dict[int, Value] = {}
    for k in sorted(set(wrt)):
        count = len(leaves_of(args[k]))
        groups[k] = rebuilt(args[k], rest[:count])
        rest = rest[count:]
    return groups[wrt[0]] if single else Sequence_(tuple(groups[k] for k in wrt))


def _only_number(ctx: Context, value: Value, name: str) -> None:
    type = type_of(value)
    if type is None or type.shape or not differentiable(type):
        hint = "sum it, or use tp.jacobian." if type is not None and type.shape else ""
        ctx.fail("TP302", f"tp.{name} needs a function that returns one float, not {type_text(value)}", hint)
    if type.dtype.is_complex:
        ctx.fail("TP302", f"tp.{name} needs a real result, not a complex one", "take its real part, or use tp.vjp.")


def grad_like(name: str, with_value: bool) -> Callable[[Context, Arguments, Keywords], Value]:
    def make(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        function, options = _function_and_options(ctx, name, args, keywords)
        has_aux = bool(options.get("has_aux", False))

        def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
            wrt, single = positions(ctx, options.get("argnums", 0), len(args))
            traced = trace(ctx, function, args, keywords, wrt)
            value = traced.result
            if has_aux:
                if not isinstance(value, Sequence_) or len(value.items) != 2:
                    ctx.fail("TP302", f"tp.{name} with has_aux needs a function that returns a pair (value, aux)")
                value = value.items[0]
            _only_number(ctx, value, name)
            count = sum(isinstance(leaf, Scalar | Array) for leaf in traced.leaves)
            assert isinstance(value, Scalar)
            seeds = [one_of(value.dtype), *([None] * (count - 1))]
            results, adjoints = pull(traced, seeds)
            found = [value_of(ctx, a, traced.weak(k)) for k, a in enumerate(adjoints)]
            gradient = _by_argument(traced, args, wrt, single, found)
            whole_result = rebuilt(traced.result, results_of(traced, results))
            if not with_value and not has_aux:
                return gradient
            if not with_value:
                assert isinstance(whole_result, Sequence_)
                return Sequence_((gradient, whole_result.items[1]))
            return Sequence_((whole_result, gradient))

        return Builtin(f"tp.{name}", run)

    return make


def _function_and_options(
    ctx: Context, name: str, args: Arguments, keywords: Keywords
) -> tuple[Value, dict[str, object]]:
    keywords = dict(keywords)
    if not args:
        ctx.fail("TP112", f"tp.{name} is missing the function")
    for key, value in zip(OPTIONS, args[1:], strict=False):
        keywords[key] = value
    return args[0], _constants(ctx, name, keywords, OPTIONS)


def op_vjp(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """(out, pullback)"""
    _constants(ctx, "vjp", keywords, ("memory", "recover"))
    if not args:
        ctx.fail("TP112", "tp.vjp is missing the function")
    primals = args[1:]
    wrt = _all_with_derivatives(ctx, primals, "vjp")
    traced = trace(ctx, args[0], primals, {}, wrt)
    results = _here(traced)
    out = rebuilt(traced.result, results_of(traced, results))

    def pullback(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        if len(args) != 1 or keywords:
            ctx.fail("TP112", "a pullback takes one argument, the adjoint of the result")
        _, adjoints = pull(traced, _seeds(ctx, traced, results, args[0], "adjoint"))
        found = [value_of(ctx, a, traced.weak(k)) for k, a in enumerate(adjoints)]
        return _by_argument(traced, primals, wrt, False, found)

    return Sequence_((out, Builtin("pullback", pullback)))


def op_pull(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """A function of the arguments (a tuple) and the adjoint of the result."""
    function = args[0]

    def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        primals, adjoint = args
        assert isinstance(primals, Sequence_)
        found = op_vjp(ctx, [function, *primals.items], {})
        assert isinstance(found, Sequence_)
        return call_value(ctx, found.items[1], [adjoint])

    return Builtin("pullback", run)


def op_value(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """The function itself, on arrays of its own."""
    function = args[0]

    def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        traced = trace(ctx, function, args, keywords, ())
        return rebuilt(traced.result, results_of(traced, _here(traced)))

    return Builtin("function", run)


def _all_with_derivatives(ctx: Context, primals: Sequence[Value], name: str) -> list[int]:
    return list(range(len(primals)))


def _here(traced: Traced) -> tuple[Atom, ...]:
    """The region's results without derivatives."""

    def run() -> Pair:
        copy = traced.copy()
        for s in copy.body.stms:
            traced.ctx.b.add(s)
        return copy.body.results, ()

    return _derived(traced.ctx, run)[0]


def _seeds(ctx: Context, traced: Traced, results: Sequence[Atom], given: Value, what: str) -> list[Atom | None]:
    """One for each number of the result. `results` are those of the region here: their sizes are known here too."""
    leaves = _leaves_like(ctx, given, traced.result, what)
    numbers = [leaf for leaf, out in zip(leaves, traced.leaves, strict=True) if isinstance(out, Scalar | Array)]
    return [fitted(ctx, leaf, result.type, what) for leaf, result in zip(numbers, results, strict=True)]


def _leaves_like(ctx: Context, given: Value, like: Value, what: str) -> list[Value]:
    """The leaves of a tangent or adjoint in the order of those of the value, whose structure it must have."""
    if not isinstance(like, Sequence_):
        if isinstance(given, Sequence_):
            ctx.fail("TP304", f"the {what} is {type_text(given)} where the value is {type_text(like)}")
        return [given]
    if (
        not isinstance(given, Sequence_)
        or (given.kind, given.cls, len(given.items)) != (like.kind, like.cls, len(like.items))
        or set(given.keys) != set(like.keys)
    ):
        ctx.fail("TP304", f"the {what} is {_structure(given)} where the value is {_structure(like)}")
    named = dict(zip(given.keys, given.items, strict=True)) if given.keys else {}
    items = [named[k] for k in like.keys] if named else given.items
    return [leaf for g, v in zip(items, like.items, strict=True) for leaf in _leaves_like(ctx, g, v, what)]


def _structure(value: Value) -> str:
    if isinstance(value, Sequence_) and value.kind == "dict":
        return f"a dict of {', '.join(map(repr, value.keys))}"
    return type_text(value)


def fitted(ctx: Context, leaf: Value, type: Type | None, what: str) -> Atom | None:
    """A tangent or adjoint of this type; None for one of something without derivatives."""
    from tapeless.frontend.registry import numeric

    assert type is not None
    if not differentiable(type):
        return None
    given = numeric(ctx, what, leaf)
    found = type_of(given)
    assert found is not None
    if found.rank != type.rank:
        ctx.fail("TP304", f"the {what} is {type_text(given)}, which does not have the shape of the value")
    atom = _atom(ctx, given)
    if found.shape != type.shape:
        assert isinstance(atom, Var)
        atom = _resized(ctx, atom, type, what)
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


def _resized(ctx: Context, atom: Var, type: Type, what: str) -> Var:
    """The array with the sizes of `type`, after a test that they are equal."""
    from tapeless.ir.core import Check
    from tapeless.ir.types import BOOL

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


def op_jvp(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """(out, tangent)"""
    _constants(ctx, "jvp", keywords, ("memory", "recover"))
    function, primals, tangents = _primals(ctx, "jvp", args)
    traced = trace(ctx, function, primals, {}, range(len(primals)))
    results, found = push(traced, _tangents(ctx, traced, primals, tangents))
    out = rebuilt(traced.result, results_of(traced, results))
    return Sequence_((out, rebuilt(traced.result, _tangent_values(traced, found))))


def _primals(ctx: Context, name: str, args: Arguments) -> tuple[Value, list[Value], list[Value]]:
    if len(args) != 3 or not all(isinstance(a, Sequence_) for a in args[1:]):
        ctx.fail("TP112", f"tp.{name} takes a function, a tuple of arguments and a tuple of tangents")
    function, primals, tangents = args
    assert isinstance(primals, Sequence_) and isinstance(tangents, Sequence_)
    return function, list(primals.items), list(tangents.items)


def _tangents(ctx: Context, traced: Traced, primals: Sequence[Value], given: Sequence[Value]) -> list[Atom | None]:
    if len(primals) != len(given):
        ctx.fail("TP304", f"{len(primals)} arguments and {len(given)} tangents were given")
    leaves = [leaf for g, v in zip(given, primals, strict=True) for leaf in _leaves_like(ctx, g, v, "tangent")]
    return [fitted(ctx, leaf, type_of(x), "tangent") for leaf, x in zip(leaves, traced.inputs, strict=True)]


def _tangent_values(traced: Traced, found: Sequence[Atom]) -> list[Value]:
    return results_of(traced, found)


def op_linearize(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """(out, function of the tangents)"""
    _constants(ctx, "linearize", keywords, ("memory", "recover"))
    if not args:
        ctx.fail("TP112", "tp.linearize is missing the function")
    primals = args[1:]
    traced = trace(ctx, args[0], primals, {}, range(len(primals)))
    out = rebuilt(traced.result, results_of(traced, _here(traced)))

    def forward(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        _, found = push(traced, _tangents(ctx, traced, primals, args))
        return rebuilt(traced.result, _tangent_values(traced, found))

    return Sequence_((out, Builtin("linear map", forward)))


def op_hvp(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    """(grad, Hessian times vector)"""
    _constants(ctx, "hvp", keywords, ("memory", "recover"))
    function, primals, tangents = _primals(ctx, "hvp", args)
    wrt = Sequence_(tuple(Scalar(Const(k, DType.i64), True) for k in range(len(primals))))
    gradient = grad_like("grad", False)(ctx, [function], {"argnums": wrt})
    both = op_jvp(ctx, [gradient, Sequence_(tuple(primals)), Sequence_(tuple(tangents))], {})
    if len(primals) > 1:
        return both
    assert isinstance(both, Sequence_)
    return Sequence_(tuple(v.items[0] if isinstance(v, Sequence_) else v for v in both.items))


# -- Jacobians


def _size(ctx: Context, shape: Sequence[Dim]) -> Atom:
    emit = Emit(ctx.b)
    total: Atom = Const(1, DType.i64)
    for d in shape:
        total = emit("mul", total, dim_atom(d))
    return total


def _as_dim(atom: Atom) -> Dim:
    return atom if isinstance(atom, Var) else int(atom.value.real)


def _one_hot(ctx: Context, type: Type, place: Atom, total: Dim) -> Atom:
    """1 at a place of the flattened array, else 0."""
    emit = Emit(ctx.b)
    if not type.shape:
        return one_of(type.dtype)

    def element(i: Var) -> tuple[Atom]:
        return (emit("select", emit("eq", i, place), one_of(type.dtype), emit.zero(Type(type.dtype))),)

    flat = ctx.b.map(total, [], element, "seed")[0]
    return flat if type.rank == 1 else ctx.b.reshape(flat, type.shape)


def jacobian_like(name: str, forward: bool | None) -> Callable[[Context, Arguments, Keywords], Value]:
    def make(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
        keywords = dict(keywords)
        sparse = keywords.pop("sparse", None)
        if sparse is not None and _constant(ctx, name, "sparse", sparse):
            ctx.fail("TP303", "sparse Jacobians are not there yet")
        function, options = _function_and_options(ctx, name, args, keywords)
        has_aux = bool(options.get("has_aux", False))

        def run(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
            wrt, single = positions(ctx, options.get("argnums", 0), len(args))
            traced = trace(ctx, function, args, keywords, wrt)
            value: Value = traced.result
            if has_aux:
                if not isinstance(value, Sequence_) or len(value.items) != 2:
                    ctx.fail("TP302", f"tp.{name} with has_aux needs a function that returns a pair (value, aux)")
                value = value.items[0]
            table = _jacobian(traced, len(leaves_of(value)), forward)
            leaves = [_by_argument(traced, args, wrt, single, row) for row in table]
            found = rebuilt(value, leaves)
            if not has_aux:
                return found
            assert isinstance(traced.result, Sequence_)
            whole_result = rebuilt(traced.result, results_of(traced, _here(traced)))
            assert isinstance(whole_result, Sequence_)
            return Sequence_((found, whole_result.items[1]))

        return Builtin(f"tp.{name}", run)

    return make


def _jacobian(traced: Traced, count: int, forward: bool | None) -> list[list[Value]]:
    """For each leaf of the result, the derivative by each differentiated leaf: axes of the result, then of the leaf."""
    ctx = traced.ctx
    outs = traced.leaves[:count]
    for out in outs:
        type = type_of(out)
        if type is None or not differentiable(type):
            ctx.fail("TP302", f"the result has {type_text(out)} in it, which has no derivative")
    types = [t for t in map(type_of, outs) if t is not None]
    if forward is None:
        forward = not all(not t.shape for t in types)
    return _by_columns(traced, types) if forward else _by_rows(traced, types)


def _by_rows(traced: Traced, types: Sequence[Type]) -> list[list[Value]]:
    """One backward run for each element of the result."""
    ctx = traced.ctx
    total = sum(isinstance(leaf, Scalar | Array) for leaf in traced.leaves)
    shapes = _shapes_here(traced)
    table: list[list[Value]] = []
    for k, type in enumerate(types):

        def seeds(place: Atom, size: Dim, k: int = k, type: Type = type) -> list[Atom | None]:
            found: list[Atom | None] = [None] * total
            found[k] = _one_hot(ctx, type.with_shape(shapes[k]), place, size)
            return found

        if not type.shape:
            _, adjoints = pull(traced, seeds(Const(0, DType.i64), 1))
            table.append([value_of(ctx, a, traced.weak(j)) for j, a in enumerate(adjoints)])
            continue
        size = _as_dim(_size(ctx, shapes[k]))
        rows = ctx.b.map(size, [], lambda i, seeds=seeds, size=size: pull(traced, seeds(i, size))[1], "jacobian")
        found = []
        for p, row in zip(traced.params, rows, strict=True):
            found.append(value_of(ctx, ctx.b.reshape(row, (*shapes[k], *p.type.shape))))
        table.append(found)
    return table


def _shapes_here(traced: Traced) -> list[tuple[Dim, ...]]:
    """Shapes of the results, with sizes that are made in the region computed here too."""
    atoms = _here(traced)
    return [a.type.shape for a in atoms]


LANES = 8  # tangents at once


def _by_columns(traced: Traced, types: Sequence[Type]) -> list[list[Value]]:
    """Forward runs with several tangents at once, for all elements of the arguments: Note [Lanes] in `ad.forward`."""
    ctx = traced.ctx
    shapes = _shapes_here(traced)
    table: list[list[Value]] = [[] for _ in types]
    scalars = [j for j, p in enumerate(traced.params) if not p.type.shape]
    columns: dict[int, list[Atom]] = {}
    if len(scalars) == 1:
        tangents: list[Atom | None] = [None] * len(traced.params)
        tangents[scalars[0]] = one_of(traced.params[scalars[0]].type.dtype)
        columns[scalars[0]] = push(traced, tangents)[1][: len(types)]
    elif scalars:
        columns |= _scalar_columns(traced, scalars, len(types))
    for j, p in enumerate(traced.params):
        if not p.type.shape:
            for k, t in enumerate(columns[j]):
                table[k].append(value_of(ctx, t, traced.weak(j) and not t.type.shape))
            continue
        for k, c in enumerate(_array_columns(traced, j, shapes[: len(types)])):
            table[k].append(value_of(ctx, ctx.b.reshape(c, (*shapes[k], *p.type.shape))))
    return table


def _scalar_columns(traced: Traced, scalars: Sequence[int], count: int) -> dict[int, list[Atom]]:
    """One lane for each scalar argument."""
    ctx = traced.ctx
    emit = Emit(ctx.b)
    lanes = len(scalars)
    tangents: list[Atom | None] = [None] * len(traced.params)
    for lane, j in enumerate(scalars):
        dtype = traced.params[j].type.dtype
        zero, one = emit.zero(Type(dtype)), one_of(dtype)
        tangents[j] = ctx.b.array([one if k == lane else zero for k in range(lanes)], "seed")
    found = push(traced, tangents, (lanes,))[1][:count]
    return {j: [_lane(ctx, t, Const(lane, DType.i64)) for t in found] for lane, j in enumerate(scalars)}


def _lane(ctx: Context, t: Atom, lane: Atom) -> Var:
    assert isinstance(t, Var)
    return ctx.b.index(t, (*whole(Type(t.type.dtype, t.type.shape[:-1])), At(lane)))


def _array_columns(traced: Traced, j: int, shapes: Sequence[tuple[Dim, ...]]) -> list[Var]:
    """Derivatives by all elements of one array argument: the axes of each result, then the elements in order."""
    ctx, p = traced.ctx, traced.params[j]
    emit = Emit(ctx.b)
    size = _as_dim(_size(ctx, p.type.shape))
    lanes = size if isinstance(size, int) and 0 < size <= 2 * LANES else LANES

    def columns(first: Atom) -> list[Atom]:
        """The lanes from element `first` on; beyond the last one they are 0."""

        def element(i: Var) -> tuple[Atom]:
            place = emit("sub", i, first)

            def lane(k: Var) -> tuple[Atom]:
                here = emit("eq", k, place)
                return (emit("select", here, one_of(p.type.dtype), emit.zero(Type(p.type.dtype))),)

            return (ctx.b.map(lanes, [], lane, "seed")[0],)

        flat = ctx.b.map(size, [], element, "seed")[0]
        seed = ctx.b.reshape(flat, (*p.type.shape, lanes))
        tangents: list[Atom | None] = [None] * len(traced.params)
        tangents[j] = seed
        return push(traced, tangents, (lanes,))[1][: len(shapes)]

    if lanes == size:
        return [c for c in columns(Const(0, DType.i64)) if isinstance(c, Var)]
    blocks = _as_dim(emit("floordiv", emit("add", dim_atom(size), lanes - 1), lanes))
    found = ctx.b.map(blocks, [], lambda block: columns(emit("mul", block, lanes)), "jacobian")
    padded = emit("mul", dim_atom(blocks), lanes)
    results = []
    for array, shape in zip(found, shapes, strict=True):
        rank = len(shape)
        turned = ctx.b.transpose(array, (*range(1, rank + 1), 0, rank + 1))
        joined = ctx.b.reshape(turned, (*shape, _as_dim(padded)))
        axes = (*whole(Type(joined.type.dtype, tuple(shape))), Range(Const(0, DType.i64), size, Const(1, DType.i64)))
        results.append(ctx.b.index(joined, axes))
    return results


def op_hessian(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    inner = {k: v for k, v in keywords.items() if k in ("argnums", "has_aux")}
    gradient = jacobian_like("hessian", False)(ctx, args[:1], dict(inner))
    return jacobian_like("hessian", True)(ctx, [gradient], dict(inner))


def op_stop_gradient(ctx: Context, args: Arguments, keywords: Keywords) -> Value:
    if len(args) != 1 or keywords:
        ctx.fail("TP112", "tp.stop_gradient takes one argument")
    emit = Emit(ctx.b)

    def stopped(leaf: Value) -> Value:
        type = type_of(leaf)
        if type is None or not differentiable(type):
            return leaf
        assert isinstance(leaf, Scalar | Array)
        atom = emit.elementwise("stop_gradient", _atom(ctx, leaf))
        return value_of(ctx, atom, isinstance(leaf, Scalar) and leaf.weak)

    return rebuilt(args[0], [stopped(leaf) for leaf in leaves_of(args[0])])


OPERATORS.update(
    {
        "grad": grad_like("grad", False),
        "value_and_grad": grad_like("value_and_grad", True),
        "pull": op_pull,
        "value": op_value,
        "vjp": op_vjp,
        "jvp": op_jvp,
        "linearize": op_linearize,
        "hvp": op_hvp,
        "jacfwd": jacobian_like("jacfwd", True),
        "jacrev": jacobian_like("jacrev", False),
        "jacobian": jacobian_like("jacobian", None),
        "hessian": op_hessian,
        "stop_gradient": op_stop_gradient,
    }
)
