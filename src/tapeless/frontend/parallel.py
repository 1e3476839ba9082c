"""The parallel operators inside compiled functions.

Takes operator, neutral elements and arrays as front-end values; emits sweeps, histograms and scatters. The function
that an operator applies sees its surroundings but must not write them: results are what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.frontend import scalars
from tapeless.frontend.arrays import cast, read, transpose
from tapeless.frontend.calls import call_value
from tapeless.frontend.context import Context, type_text
from tapeless.frontend.values import (
    Array,
    Builtin,
    RangeValue,
    Scalar,
    Sequence_,
    State,
    Static,
    Value,
    weak,
)
from tapeless.ir.builder import full_axes
from tapeless.ir.core import Body, Hist, If, Lambda, Range, Reduction, Scatter, Sweep
from tapeless.ir.types import I64, Atom, Const, Dim, DType, Type, Var, i64
from tapeless.ops.promotion import promote

Handler = Callable[[Context, list[Value], dict[str, Value]], Value]


# -- containers of values


def leaves_of(value: Value) -> list[Value]:
    if isinstance(value, Sequence_):
        return [leaf for item in value.items for leaf in leaves_of(item)]
    return [value]


def rebuild(template: Value, leaves: list[Value]) -> Value:
    """The container `template` with other leaves; takes them from the front of the list."""
    if isinstance(template, Sequence_):
        items = tuple(rebuild(item, leaves) for item in template.items)
        return Sequence_(items, template.kind, template.keys, template.cls)
    return leaves.pop(0)


def rows_of(ctx: Context, what: str, value: Value) -> list[Var]:
    """The arrays in an argument, in order."""
    found: list[Var] = []
    for leaf in leaves_of(value):
        if not isinstance(leaf, Array):
            ctx.fail("TP104", f"{what} takes arrays, found {type_text(leaf)}", "pass an array, or a tuple of arrays.")
        found.append(read(ctx, leaf))
    return found


def common_width(ctx: Context, what: str, arrays: Sequence[Var]) -> Dim:
    width: Dim = ctx.canon(arrays[0].type.shape[0])
    for a in arrays[1:]:
        width = ctx.same_size(width, a.type.shape[0], f"arguments of {what}")
    return width


def element(ctx: Context, what: str, var: Var) -> Value:
    """A row inside the applied function."""
    if var.type.is_scalar:
        return Scalar(var)
    return ctx.new_cell(var, var.name, readonly=f"rows that {what} hands out cannot be written")


def pure_region(ctx: Context, what: str, params: Sequence[Var], make: Callable[[], Sequence[Atom]]) -> Lambda:
    """A lambda whose body may read but not write what is outside."""
    before: State = ctx.state
    ctx.state = before.copy()
    with ctx.b.region() as stms:
        results = tuple(make())
    for cell, var in before.cells.items():
        if ctx.state.cells.get(cell) is not var or (cell in ctx.state.stale and cell not in before.stale):
            ctx.fail(
                "TP111",
                f"the function given to {what} writes the array '{cell.name}' of its surroundings",
                "return the value instead, or use 'for i in tp.prange(n)'.",
            )
    ctx.state = before
    return Lambda(tuple(params), Body(tuple(stms), results))


def atoms_of(ctx: Context, what: str, value: Value) -> list[Atom]:
    """What an applied function returned, leaf by leaf."""
    found: list[Atom] = []
    for leaf in leaves_of(value):
        match leaf:
            case Scalar(atom=atom):
                found.append(atom)
            case Array():
                found.append(read(ctx, leaf))
            case _:
                ctx.fail(
                    "TP104", f"the function given to {what} returns {type_text(leaf)}", "return numbers or arrays."
                )
    return found


# -- map


def op_map(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    _no_keywords(ctx, "tp.map", keywords)
    if len(args) < 2:
        ctx.fail("TP112", "tp.map takes a function and what to map over")
    function, *inputs = args
    if len(inputs) == 1 and isinstance(inputs[0], Scalar):
        count = scalars.to_index(ctx, inputs[0], "the length given to tp.map")
        width = ctx.atom_dim(scalars.apply(ctx, "max", count, i64(0)))
        return _map(ctx, function, width, [], [Scalar(Var("i", I64), True)], index_only=True)
    return map_values(ctx, "tp.map", function, inputs)


def map_values(ctx: Context, what: str, function: Value, inputs: Sequence[Value]) -> Value:
    arrays = [a for v in inputs for a in rows_of(ctx, what, v)]
    if not arrays:
        ctx.fail("TP112", f"{what} has nothing to map over")
    return _map(ctx, function, common_width(ctx, what, arrays), arrays, inputs, what=what)


def _map(
    ctx: Context,
    function: Value,
    width: Dim,
    arrays: Sequence[Var],
    inputs: Sequence[Value],
    index_only: bool = False,
    what: str = "tp.map",
) -> Value:
    index = Var("i", I64)
    rows = [Var(a.name, a.type.row()) for a in arrays]
    shape: list[Value] = []

    def make() -> list[Atom]:
        if index_only:
            result = call_value(ctx, function, [Scalar(index, True)])
        else:
            parts: list[Value] = [element(ctx, what, r) for r in rows]
            result = call_value(ctx, function, [rebuild(v, parts) for v in inputs])
        shape.append(result)
        return atoms_of(ctx, what, result)

    lam = pure_region(ctx, what, [index, *rows], make)
    vars = [Var("m", Type(r.type.dtype, (width, *_outer_dims(ctx, what, r.type.shape, lam)))) for r in lam.body.results]
    ctx.b.bind(vars, Sweep(width, tuple(arrays), lam))
    made: list[Value] = [ctx.new_cell(v) for v in vars]
    return rebuild(shape[0], made)


def _outer_dims(ctx: Context, what: str, shape: tuple[Dim, ...], lam: Lambda) -> tuple[Dim, ...]:
    """Sizes of rows must be the same for all elements: known outside."""
    inside = {v for s in lam.body.stms for v in s.vars} | set(lam.params)
    found: list[Dim] = []
    for d in shape:
        d = ctx.canon(d)
        if isinstance(d, Var) and d in inside:
            d = _hoist_size(ctx, what, d, lam, inside)
        found.append(d)
    return tuple(found)


def _hoist_size(ctx: Context, what: str, size: Var, lam: Lambda, inside: set[Var]) -> Dim:
    """A size computed inside from what is known outside is computed outside as well."""
    from tapeless.ir.core import Apply

    definitions = {s.vars[0]: s for s in lam.body.stms if len(s.vars) == 1}

    def outer(a: Atom) -> Atom:
        if not isinstance(a, Var) or a not in inside:
            return a
        stm = definitions.get(a)
        if stm is None or not isinstance(stm.exp, Apply):
            ctx.shape_error(
                "TP108",
                f"the function given to {what} returns arrays whose size is different from element to element",
                "return arrays of one size.",
            )
        return scalars.apply(ctx, stm.exp.op, *(outer(x) for x in stm.exp.args))

    return ctx.atom_dim(outer(size))


# -- reduce and scan


class Operator:
    """An associative operator with its neutral elements, in the types of the elements."""

    def __init__(
        self, ctx: Context, what: str, function: Value, neutral: Value, elements: Sequence[Type], template: Value
    ) -> None:
        self.ctx, self.what, self.function, self.template = ctx, what, function, template
        given = leaves_of(neutral)
        if len(given) != len(elements):
            ctx.fail(
                "TP112", f"{what}: {len(given)} neutral elements for {len(elements)} arrays", "give one for each array."
            )
        self.types: list[Type] = []
        for ne, t in zip(given, elements, strict=True):
            match ne:
                case Scalar():
                    dtype, _ = promote(t.dtype, False, ne.dtype, ne.weak)
                case Array():
                    dtype, _ = promote(t.dtype, False, ne.type.dtype, False)
                case _:
                    ctx.fail("TP104", f"{what}: the neutral element is {type_text(ne)}", "use numbers or arrays.")
            self.types.append(t.with_dtype(dtype))
        self.lam = self._lambda()
        self.neutral = tuple(self._neutral(ne, t) for ne, t in zip(given, self.types, strict=True))

    def _lambda(self, flip: bool = False) -> Lambda:
        ctx = self.ctx
        for _ in range(4):
            left = [Var("a", t) for t in self.types]
            right = [Var("b", t) for t in self.types]
            wider: list[DType] = []

            def make(left: list[Var] = left, right: list[Var] = right, wider: list[DType] = wider) -> list[Atom]:
                a = rebuild(self.template, [element(ctx, self.what, v) for v in left])
                b = rebuild(self.template, [element(ctx, self.what, v) for v in right])
                result = call_value(ctx, self.function, [a, b])
                leaves = leaves_of(result)
                if len(leaves) != len(self.types):
                    ctx.fail("TP112", f"{self.what}: the operator returns {len(leaves)} values for {len(self.types)}")
                return [self._as(leaf, t, wider) for leaf, t in zip(leaves, self.types, strict=True)]

            lam = pure_region(ctx, self.what, [*left, *right], make)
            if all(w is t.dtype for w, t in zip(wider, self.types, strict=True)):
                return lam
            self.types = [t.with_dtype(w) for w, t in zip(wider, self.types, strict=True)]
        ctx.fail("TP104", f"{self.what}: the operator's result has another type than its operands")

    def _as(self, leaf: Value, t: Type, wider: list[DType]) -> Atom:
        ctx = self.ctx
        match leaf:
            case Scalar() if not t.shape:
                dtype, _ = promote(t.dtype, False, leaf.dtype, leaf.weak)
                wider.append(dtype)
                return scalars.convert(ctx, leaf.atom, dtype)
            case Array() if leaf.type.rank == t.rank:
                dtype, _ = promote(t.dtype, False, leaf.type.dtype, False)
                wider.append(dtype)
                for d, e in zip(t.shape, leaf.type.shape, strict=True):
                    ctx.same_size(d, e, f"{self.what}: the operator's result and its operands")
                return cast(ctx, read(ctx, leaf), dtype)
            case _:
                want = f"an array of {t.rank} dimensions" if t.shape else "a number"
                ctx.fail(
                    "TP104", f"{self.what}: the operator returns {type_text(leaf)}, its operands are each {want}",
                    "return what the operands are.",
                )  # fmt: skip

    def _neutral(self, ne: Value, t: Type) -> Atom:
        ctx = self.ctx
        if isinstance(ne, Scalar):
            atom = scalars.convert(ctx, ne.atom, t.dtype)
            return atom if not t.shape else ctx.b.full(t.shape, atom, t.dtype, "ne")
        assert isinstance(ne, Array)
        if ne.type.rank != t.rank:
            ctx.shape_error("TP202", f"{self.what}: the neutral element has rank {ne.type.rank}, the elements {t.rank}")
        for d, e in zip(t.shape, ne.type.shape, strict=True):
            ctx.same_size(d, e, f"{self.what}: neutral element and elements")
        return cast(ctx, read(ctx, ne), t.dtype)


def pick_types(ctx: Context, arrays: Sequence[Var], op: Operator) -> Lambda:
    """The lambda of a sweep that hands its rows on, in the operator's types."""
    index = Var("i", I64)
    rows = [Var(a.name, a.type.row()) for a in arrays]

    def make() -> list[Atom]:
        out: list[Atom] = []
        for r, t in zip(rows, op.types, strict=True):
            out.append(cast(ctx, r, t.dtype) if r.type.shape else scalars.convert(ctx, r, t.dtype))
        return out

    with ctx.b.region() as stms:
        results = make()
    return Lambda((index, *rows), Body(tuple(stms), tuple(results)))


def _fold_arguments(
    ctx: Context, what: str, args: list[Value], keywords: dict[str, Value], names: tuple[str, ...]
) -> dict[str, Value]:
    bound = dict(zip(names, args, strict=False))
    if len(args) > len(names):
        ctx.fail("TP112", f"{what} takes at most {len(names)} arguments")
    for k, v in keywords.items():
        if k not in names:
            ctx.fail("TP112", f"{what} has no argument '{k}'")
        bound[k] = v
    return bound


def op_reduce(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = _fold_arguments(ctx, "tp.reduce", args, keywords, ("op", "ne", "xs", "commutative"))
    _need(ctx, "tp.reduce", a, ("op", "ne", "xs"))
    arrays = rows_of(ctx, "tp.reduce", a["xs"])
    width = common_width(ctx, "tp.reduce", arrays)
    op = Operator(ctx, "tp.reduce", a["op"], a["ne"], [x.type.row() for x in arrays], a["xs"])
    reduction = Reduction(op.lam, op.neutral, _flag(ctx, a.get("commutative")))
    vars = [Var("r", t) for t in op.types]
    ctx.b.bind(vars, Sweep(width, tuple(arrays), pick_types(ctx, arrays, op), (reduction,)))
    return rebuild(a["xs"], [Scalar(v) if v.type.is_scalar else ctx.new_cell(v) for v in vars])


def op_scan(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = _fold_arguments(ctx, "tp.scan", args, keywords, ("op", "ne", "xs", "exclusive", "reverse"))
    _need(ctx, "tp.scan", a, ("op", "ne", "xs"))
    arrays = rows_of(ctx, "tp.scan", a["xs"])
    width = common_width(ctx, "tp.scan", arrays)
    op = Operator(ctx, "tp.scan", a["op"], a["ne"], [x.type.row() for x in arrays], a["xs"])
    reverse, exclusive = _flag(ctx, a.get("reverse")), _flag(ctx, a.get("exclusive"))
    lam = op.lam
    if reverse:  # from the right, the operands keep their order
        arrays = [reversed_rows(ctx, x) for x in arrays]
        k = len(op.types)
        lam = Lambda((*lam.params[k:], *lam.params[:k]), lam.body)
    vars = [Var("s", Type(t.dtype, (width, *t.shape))) for t in op.types]
    ctx.b.bind(vars, Sweep(width, tuple(arrays), pick_types(ctx, arrays, op), (), (Reduction(lam, op.neutral),)))
    if exclusive:
        vars = list(_shifted(ctx, width, vars, op.neutral))
    if reverse:
        vars = [reversed_rows(ctx, v) for v in vars]
    return rebuild(a["xs"], [ctx.new_cell(v) for v in vars])


def reversed_rows(ctx: Context, array: Var) -> Var:
    n = ctx.size_atom(array.type.shape[0])
    last = scalars.apply(ctx, "sub", n, i64(1))
    axes = [Range(last, array.type.shape[0], i64(-1)), *full_axes(array.type.shape[1:])]
    return ctx.b.index(array, axes, array.name)


def _shifted(ctx: Context, width: Dim, vars: Sequence[Var], neutral: Sequence[Atom]) -> tuple[Var, ...]:
    """Each result one place later, the neutral element first."""

    def make(i: Var) -> list[Atom]:
        first = scalars.apply(ctx, "eq", i, i64(0))
        with ctx.b.region() as stms:
            before = scalars.apply(ctx, "sub", i, i64(1))
            rows = [ctx.b.row(v, before) for v in vars]
        out = [Var("e", r.type) for r in rows]
        return list(ctx.b.bind(out, If(first, Body((), tuple(neutral)), Body(tuple(stms), tuple(rows)))))

    return ctx.b.map(width, [], make, "s")


# -- hist and scatter


def op_hist(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = _fold_arguments(ctx, "tp.hist", args, keywords, ("op", "ne", "n_or_dest", "keys", "vals"))
    _need(ctx, "tp.hist", a, ("op", "ne", "n_or_dest", "keys", "vals"))
    values = rows_of(ctx, "tp.hist", a["vals"])
    keys = _keys(ctx, "tp.hist", a["keys"])
    width = common_width(ctx, "tp.hist", [keys, *values])
    target = a["n_or_dest"]
    if isinstance(target, Scalar):
        rows = [v.type.row() for v in values]
        op = Operator(ctx, "tp.hist", a["op"], a["ne"], rows, a["vals"])
        size = scalars.apply(ctx, "max", scalars.to_index(ctx, target, "the number of bins"), i64(0))
        n = ctx.atom_dim(size)
        dests = [_full_rows(ctx, n, t, ne) for t, ne in zip(op.types, op.neutral, strict=True)]
    else:
        dests = rows_of(ctx, "tp.hist", target)
        n = common_width(ctx, "tp.hist", dests)
        op = Operator(ctx, "tp.hist", a["op"], a["ne"], [d.type.row() for d in dests], a["vals"])
        for d, t in zip(dests, op.types, strict=True):
            if d.type.dtype is not t.dtype:
                have, want = t.dtype.numpy.name, d.type.dtype.numpy.name
                ctx.fail("TP104", f"tp.hist: values of {have} do not fit into a destination of {want}")
    lam = _keyed(ctx, keys, values, [t.dtype for t in op.types])
    vars = [Var("h", d.type) for d in dests]
    ctx.b.bind(vars, Hist(Reduction(op.lam, op.neutral, True), tuple(dests), width, (keys, *values), lam))
    return rebuild(a["vals"], [ctx.new_cell(v) for v in vars])


def op_scatter(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = _fold_arguments(ctx, "tp.scatter", args, keywords, ("dest", "idx", "vals"))
    _need(ctx, "tp.scatter", a, ("dest", "idx", "vals"))
    dests = rows_of(ctx, "tp.scatter", a["dest"])
    values = rows_of(ctx, "tp.scatter", a["vals"])
    keys = _keys(ctx, "tp.scatter", a["idx"])
    width = common_width(ctx, "tp.scatter", [keys, *values])
    common_width(ctx, "tp.scatter", dests)
    if len(dests) != len(values):
        ctx.fail("TP112", f"tp.scatter: {len(values)} arrays of values for {len(dests)} destinations")
    for d, v in zip(dests, values, strict=True):
        if d.type.rank != v.type.rank:
            ctx.shape_error(
                "TP202", f"tp.scatter: values of rank {v.type.rank} for a destination of rank {d.type.rank}"
            )
        for x, y in zip(d.type.shape[1:], v.type.shape[1:], strict=True):
            ctx.same_size(x, y, "tp.scatter: rows of destination and values")
    lam = _keyed(ctx, keys, values, [d.type.dtype for d in dests])
    vars = [Var("s", d.type) for d in dests]
    ctx.b.bind(vars, Scatter(tuple(dests), width, (keys, *values), lam))
    return rebuild(a["dest"], [ctx.new_cell(v) for v in vars])


def _full_rows(ctx: Context, n: Dim, t: Type, ne: Atom) -> Var:
    if not t.shape:
        return ctx.b.full((n,), ne, t.dtype, "h")
    assert isinstance(ne, Var)
    spread = ctx.b.broadcast(ne, (n, *t.shape), tuple(range(1, t.rank + 1)), "h")
    return ctx.b.copy(spread)


def _keys(ctx: Context, what: str, value: Value) -> Var:
    if not isinstance(value, Array) or value.type.rank != 1 or not value.type.dtype.is_int:
        ctx.fail("TP104", f"{what}: positions must be a one-dimensional array of integers, not {type_text(value)}")
    return read(ctx, value)


def _keyed(ctx: Context, keys: Var, values: Sequence[Var], dtypes: Sequence[DType]) -> Lambda:
    """(index, key, rows) -> (key, rows), in the right types."""
    index, key = Var("i", I64), Var("key", Type(keys.type.dtype))
    rows = [Var(v.name, v.type.row()) for v in values]
    with ctx.b.region() as stms:
        results: list[Atom] = [scalars.convert(ctx, key, DType.i64)]
        for r, dtype in zip(rows, dtypes, strict=True):
            results.append(cast(ctx, r, dtype) if r.type.shape else scalars.convert(ctx, r, dtype))
    return Lambda((index, key, *rows), Body(tuple(stms), tuple(results)))


# -- ranges and vmap


def op_prange(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    _no_keywords(ctx, "tp.prange", keywords)
    bounds: list[Scalar] = []
    for a in args:
        if not isinstance(a, Scalar) or not (a.dtype.is_int or a.dtype is DType.bool):
            ctx.fail("TP104", f"tp.prange takes integers, not {type_text(a)}")
        bounds.append(a)
    match bounds:
        case [stop]:
            return RangeValue(weak(0), stop, weak(1), parallel=True)
        case [start, stop]:
            return RangeValue(start, stop, weak(1), parallel=True)
        case [start, stop, step]:
            return RangeValue(start, stop, step, parallel=True)
    ctx.fail("TP112", "tp.prange takes one to three arguments")


def op_loop(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = _fold_arguments(ctx, "tp.loop", args, keywords, ("iterable", "recover"))
    recover = a.get("recover", Static("auto"))
    if not (isinstance(recover, Static) and isinstance(recover.value, str)):
        ctx.fail("TP104", "tp.loop: recover must be a constant text")
    source = a["iterable"]
    if isinstance(source, RangeValue):
        return RangeValue(source.start, source.stop, source.step, source.parallel, recover.value)
    return source


def op_vmap(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    a = _fold_arguments(ctx, "tp.vmap", args, keywords, ("f", "in_axes", "out_axes"))
    _need(ctx, "tp.vmap", a, ("f",))
    in_axes, out_axes = a.get("in_axes", weak(0)), a.get("out_axes", weak(0))

    def mapped(ctx: Context, values: list[Value], keys: dict[str, Value]) -> Value:
        _no_keywords(ctx, "a function made by tp.vmap", keys)
        axes = list(in_axes.items) if isinstance(in_axes, Sequence_) else [in_axes] * len(values)
        if len(axes) != len(values):
            ctx.fail("TP112", f"tp.vmap: {len(axes)} in_axes for {len(values)} arguments")
        moved = [_move(ctx, v, _axis(ctx, x), front=True) for v, x in zip(values, axes, strict=True)]
        moving = [k for k, x in enumerate(axes) if _axis(ctx, x) is not None]

        def apply(ctx: Context, rows: list[Value], _: dict[str, Value]) -> Value:
            full = list(values)
            for k, r in zip(moving, rows, strict=True):
                full[k] = r
            return call_value(ctx, a["f"], full)

        result = map_values(ctx, "tp.vmap", Builtin("vmap", apply), [moved[k] for k in moving])
        if isinstance(out_axes, Sequence_) and isinstance(result, Sequence_):
            items = [
                _move(ctx, r, _axis(ctx, x), front=False) for r, x in zip(result.items, out_axes.items, strict=True)
            ]
            return Sequence_(tuple(items), result.kind, result.keys, result.cls)
        return _move(ctx, result, _axis(ctx, out_axes), front=False)

    return Builtin("vmap", mapped)


def _axis(ctx: Context, value: Value) -> int | None:
    if isinstance(value, Static) and value.value is None:
        return None
    if isinstance(value, Scalar) and isinstance(value.atom, Const):
        return int(value.atom.value.real)
    ctx.fail("TP104", "the axes of tp.vmap must be constants: integers or None")


def _move(ctx: Context, value: Value, axis: int | None, front: bool) -> Value:
    """The mapped axis to the front, or from the front to its place."""
    if isinstance(value, Sequence_):
        return Sequence_(tuple(_move(ctx, v, axis, front) for v in value.items), value.kind, value.keys, value.cls)
    if axis is None or not isinstance(value, Array):
        return value
    rank = value.type.rank
    if not -rank <= axis < rank:
        ctx.fail("TP202", f"tp.vmap: axis {axis} is out of bounds for an array of {rank} dimensions")
    place = axis % rank
    if place == 0:
        return value
    others = [k for k in range(rank) if k != place]
    if front:
        return transpose(ctx, value, [place, *others])
    order = list(range(1, rank))
    order.insert(place, 0)
    return transpose(ctx, value, order)


# -- arguments


def _no_keywords(ctx: Context, what: str, keywords: dict[str, Value]) -> None:
    if keywords:
        ctx.fail("TP112", f"{what} has no argument '{next(iter(keywords))}'")


def _need(ctx: Context, what: str, bound: dict[str, Value], names: Sequence[str]) -> None:
    for n in names:
        if n not in bound:
            ctx.fail("TP112", f"{what} is missing the argument '{n}'")


def _flag(ctx: Context, value: Value | None) -> bool:
    if value is None:
        return False
    if isinstance(value, Scalar) and isinstance(value.atom, Const):
        return bool(value.atom.value)
    ctx.fail("TP104", "this option must be a constant True or False")


def op_function(ctx: Context, args: list[Value], keywords: dict[str, Value]) -> Value:
    """tp.function inside compiled code: the function itself, which is compiled in any case."""
    if len(args) != 1 or keywords:
        ctx.fail(
            "TP112", "tp.function with options inside compiled code is not part of the language", "decorate it outside."
        )
    return args[0]


OPERATORS: dict[str, Handler] = {
    "function": op_function,
    "map": op_map,
    "reduce": op_reduce,
    "scan": op_scan,
    "hist": op_hist,
    "scatter": op_scatter,
    "prange": op_prange,
    "loop": op_loop,
    "vmap": op_vmap,
}
