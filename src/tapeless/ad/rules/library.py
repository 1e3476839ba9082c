"""Derivatives of library operations: products, factorisations and sorts, forwards and backwards.

Adjoints pair with tangents by the real part of the product, without conjugation (as in JAX), so transposes do not
conjugate. `cholesky` depends on the lower triangle of its operand only, and so does its derivative.

Note [Singular determinants]
The gradient of det(A) is det(A) A^-T, and the matrix of cofactors where there is no inverse. Near a singular matrix the
former is still right, as determinant and inverse are those of one and the same neighbour of A, but its derivative is
not. So what is differentiated again is made of cofactors (`ad.rules.cofactors`) where the determinant is small against
the product of the largest elements of the rows, which bounds the condition of A with its rows scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.ad.forward import Forward, tangent_of
from tapeless.ad.policy import NoDerivative
from tapeless.ad.reverse import Back, Reverse, adjoint_of, nothing
from tapeless.ad.rules.cofactors import cofactors
from tapeless.ir.core import At, Body, Library, Stm
from tapeless.ir.types import Atom, DType, Type, Var, const, dim_atom, zero_of
from tapeless.ops.emit import Emit, differentiable

SMALL = 0.01  # a determinant, against the product of the largest elements of the rows


class Matrices:
    """Matrix code over an `Emit`."""

    def __init__(self, emit: Emit) -> None:
        self.emit, self.b = emit, emit.b

    def library(self, name: str, *args: Var, type: Type, label: str = "m") -> Var:
        return self.b.let(type, Library(name, args), label)

    def matmul(self, a: Var, b: Var) -> Atom:
        shape = (*a.type.shape[:-1], *b.type.shape[1:])
        return self.library("matmul", a, b, type=a.type.with_shape(shape))

    def product(self, *factors: Var) -> Var:
        found = factors[0]
        for f in factors[1:]:
            made = self.matmul(found, f)
            assert isinstance(made, Var)
            found = made
        return found

    def turn(self, a: Var) -> Var:
        return self.b.transpose(a, (1, 0)) if a.type.rank == 2 else a

    def solve(self, a: Var, b: Var) -> Var:
        return self.library("solve", a, b, type=b.type)

    def solve_lower(self, a: Var, b: Var) -> Var:
        """By the lower triangle of A."""
        return self.library("solve_lower", a, b, type=b.type)

    def solve_upper(self, a: Var, b: Var) -> Var:
        return self.library("solve_upper", a, b, type=b.type)

    def triangle(self, a: Var, lower: bool) -> Var:
        return self.by_place(a, 1.0, 1.0, 0.0) if lower else self.by_place(a, 1.0, 0.0, 1.0)

    def inverse(self, a: Var) -> Var:
        return self.library("inv", a, type=a.type)

    def cofactors(self, a: Var, det: Atom) -> Var:
        """Note [Singular determinants]."""
        emit, b = self.emit, self.b
        with b.region() as slow:
            first = cofactors(emit, a)
        with b.region() as fast:
            second = _var(emit.scale(det, self.turn(self.inverse(a))))
        arms = Body(tuple(slow), (first,)), Body(tuple(fast), (second,))
        return b.if_(self._singular(a, det), *arms, [Var("cofactors", a.type)])[0]

    def _singular(self, a: Var, det: Atom) -> Atom:
        emit, b, real = self.emit, self.b, a.type.dtype.real
        if not b.again:
            return emit("eq", det, emit.zero(det.type))

        def larger(row: Var) -> Callable[[Var, Var], tuple[Atom, ...]]:
            return lambda j, most: (emit("max", most, self._size(b.index(row, [At(j)]))),)

        def product(i: Var, bound: Var) -> tuple[Atom, ...]:
            row = b.row(a, i)
            most = b.for_(dim_atom(a.type.shape[1]), [zero_of(real)], larger(row), ["most"])[0]
            return (emit("mul", bound, most),)

        bound = b.for_(dim_atom(a.type.shape[0]), [const(SMALL, real)], product, ["bound"])[0]
        return emit("not", emit("gt", self._size(det), bound))

    def _size(self, x: Atom) -> Atom:
        return self.emit("abs", self.emit("stop_gradient", x))

    def outer(self, x: Var, y: Var) -> Var:
        """x y^T of vectors."""
        n, m = x.type.shape[0], y.type.shape[0]
        return self.product(self.b.reshape(x, (n, 1)), self.b.reshape(y, (1, m)))

    def trace_of_product(self, a: Var, b: Var) -> Atom:
        """The trace of A B: the sum of A times B^T element by element."""
        both = self.emit.elementwise("mul", a, self.turn(b))
        assert isinstance(both, Var)
        return self.emit.sum_over(both, (0, 1))

    def by_place(self, a: Var, diagonal: float, below: float, above: float) -> Var:
        """The elements times a factor that depends on their side of the diagonal."""
        emit = self.emit
        dtype = a.type.dtype

        def element(i: Var, j: Var, e: Atom) -> Atom:
            def times(factor: float) -> Atom:
                return emit("mul", e, factor) if factor else emit.zero(Type(dtype))

            outside = emit("select", emit("gt", i, j), times(below), times(above))
            return emit("select", emit("eq", i, j), times(diagonal), outside)

        def of_row(i: Var, row: Var) -> tuple[Var, ...]:
            return self.b.map(row.type.shape[0], [row], lambda j, e: (element(i, j, e),))

        return self.b.map(a.type.shape[0], [a], of_row)[0]

    def conjugate(self, a: Var) -> Var:
        return _var(self.emit.elementwise("conj", a)) if a.type.dtype.is_complex else a

    def hermitian(self, a: Var) -> Var:
        """The Hermitian matrix with the lower triangle of A and the real part of its diagonal."""
        lower = self.by_place(a, 0.5, 1.0, 0.0)
        return _var(self.emit.add(lower, self.turn(self.conjugate(lower))))

    def half_lower(self, a: Var) -> Var:
        """The lower triangle with half of the diagonal."""
        return self.by_place(a, 0.5, 1.0, 0.0)


def _var(a: Atom | None) -> Var:
    assert isinstance(a, Var)
    return a


@tangent_of(Library)
def jvp_library(forward: Forward, stm: Stm, exp: Library) -> None:
    forward.b.add(stm)
    t = [forward.tangent(a) for a in exp.args]
    if exp.name == "callback":
        if any(x is not None for x in t[int(exp.attr("likes")) :]) and any(differentiable(v.type) for v in stm.vars):
            raise no_derivative(stm)
        return
    if not any(x is not None for x in t):
        return
    _is_differentiated_once(exp)
    made = forward.by_lane(lambda lane: _jvp(forward.emit, stm.vars, exp, [x if x is None else lane(x) for x in t]))
    for v, tangent in zip(stm.vars, made, strict=True):
        forward.set(v, tangent)


def _jvp(emit: Emit, vars: Sequence[Var], exp: Library, t: Sequence[Atom | None]) -> list[Atom | None]:
    m = Matrices(emit)
    out, args = vars[0], [_var(a) for a in exp.args]
    match exp.name:
        case "matmul":
            terms = []
            if t[0] is not None:
                terms.append(m.matmul(_var(t[0]), args[1]))
            if t[1] is not None:
                terms.append(m.matmul(args[0], _var(t[1])))
            return [terms[0] if len(terms) == 1 else emit.add(*terms)]
        case "solve":
            right: Atom | None = t[1]
            if t[0] is not None:
                moved = emit.negate(m.matmul(_var(t[0]), out))
                right = moved if right is None else emit.add(right, moved)
            return [m.solve(args[0], _var(right))] if right is not None else [None]
        case "solve_lower" | "solve_upper":
            right = t[1]
            if t[0] is not None:
                moved = emit.negate(m.matmul(m.triangle(_var(t[0]), exp.name == "solve_lower"), out))
                right = moved if right is None else emit.add(right, moved)
            return [m.library(exp.name, args[0], _var(right), type=out.type)] if right is not None else [None]
        case "inv":
            return [emit.negate(m.product(out, _var(t[0]), out))]
        case "det":
            return [m.trace_of_product(m.turn(m.cofactors(args[0], out)), _var(t[0]))]
        case "slogdet":
            grown = m.trace_of_product(m.inverse(args[0]), _var(t[0]))
            if not out.type.dtype.is_complex:
                return [None, grown]
            turned = emit("complex", emit.zero(Type(out.type.dtype.real)), emit("imag", grown))
            return [emit("mul", out, turned), emit("real", grown)]
        case "cholesky":
            left = m.solve_lower(out, m.hermitian(_var(t[0])))
            inner = m.turn(m.solve_lower(m.conjugate(out), m.turn(left)))
            return [m.product(out, m.half_lower(inner))]
        case "sort":
            order = m.library("argsort", args[0], type=args[0].type.with_dtype(DType.i64))
            return [_gather(emit, _var(t[0]), order)]
        case "fft" | "ifft":  # linear in the numbers; the table is a constant
            return [m.library(exp.name, _var(t[0]), args[1], type=out.type)] if t[0] is not None else [None]
        case "argsort" | "ranked" | "fft_table":
            return [None]
        case name:
            raise NotImplementedError(f"the library operation {name} has no derivative")


def _gather(emit: Emit, array: Var, order: Var) -> Var:
    return emit.b.map(order.type.shape[0], [order], lambda _, k: (emit.b.index(array, [At(k)]),))[0]


@adjoint_of(Library)
def vjp_library(reverse: Reverse, stm: Stm, exp: Library) -> Back:
    reverse.b.add(stm)
    if not any(reverse.active(v) for v in stm.vars):
        return nothing
    if exp.name == "callback":
        raise no_derivative(stm)
    _is_differentiated_once(exp)
    return lambda: _vjp(reverse, stm.vars, exp)


def no_derivative(stm: Stm) -> NoDerivative:
    hint = "give it one with tp.custom_vjp or tp.custom_jvp around it, or take tp.stop_gradient of its arguments."
    return NoDerivative("a callback has no derivative of its own", stm.span, hint)


def _is_differentiated_once(exp: Library) -> None:
    """Rules make the others of what has derivatives, where they are differentiated again."""
    if exp.name == "cholesky_adjoint":
        raise NotImplementedError("a derivative of cholesky that was made to be the last is differentiated")


def _vjp(reverse: Reverse, vars: Sequence[Var], exp: Library) -> None:
    emit = reverse.emit
    m = Matrices(emit)
    out = vars[0]
    args = [_var(a) for a in exp.args]
    adj = reverse.adjoint(out)
    match exp.name:
        case "slogdet":
            _vjp_slogdet(reverse, m, vars, args[0])
            return
        case _ if adj is None:
            return
        case "matmul":
            _vjp_matmul(reverse, m, args[0], args[1], adj)
        case "solve":
            grown = m.solve(m.turn(args[0]), _var(adj))
            if reverse.active(args[0]):
                square = m.outer(grown, out) if out.type.rank == 1 else m.product(grown, m.turn(out))
                reverse.add(args[0], emit.negate(square))
            reverse.add(args[1], grown)
        case "solve_lower" | "solve_upper":
            lower = exp.name == "solve_lower"
            grown = (m.solve_upper if lower else m.solve_lower)(m.turn(args[0]), _var(adj))
            if reverse.active(args[0]):
                square = m.outer(grown, out) if out.type.rank == 1 else m.product(grown, m.turn(out))
                reverse.add(args[0], emit.negate(m.triangle(square, lower)))
            reverse.add(args[1], grown)
        case "inv":
            turned = m.turn(out)
            reverse.add(args[0], emit.negate(m.product(turned, _var(adj), turned)))
        case "det":
            reverse.add(args[0], emit.scale(adj, m.cofactors(args[0], out)))
        case "cholesky":
            if emit.b.again or out.type.dtype.is_complex:
                reverse.add(args[0], _cholesky_adjoint(m, out, _var(adj)))
            else:
                reverse.add(args[0], m.library("cholesky_adjoint", out, _var(adj), type=out.type))
        case "sort":
            order = m.library("argsort", args[0], type=args[0].type.with_dtype(DType.i64))
            back = m.library("argsort", order, type=order.type)
            reverse.add(args[0], _gather(emit, _var(adj), back))
        case "fft" | "ifft":  # its matrix is symmetric
            reverse.add(args[0], m.library(exp.name, _var(adj), args[1], type=out.type))
        case "argsort" | "ranked" | "fft_table":
            pass
        case name:
            raise NotImplementedError(f"the library operation {name} has no derivative")


def _cholesky_adjoint(m: Matrices, factor: Var, adj: Var) -> Var:
    """By operations that have derivatives."""
    inner = m.half_lower(m.product(m.turn(factor), m.triangle(adj, lower=True)))
    left = m.solve_upper(m.turn(factor), inner)
    whole = m.turn(m.solve_upper(m.turn(m.conjugate(factor)), m.turn(left)))
    both = _var(m.emit.add(whole, m.turn(m.conjugate(whole))))
    return m.by_place(both, 0.5, 1.0, 0.0)


def _vjp_matmul(reverse: Reverse, m: Matrices, a: Var, b: Var, adj: Atom) -> None:
    if a.type.rank == 1 and b.type.rank == 1:
        reverse.add_scaled(a, adj, b)
        reverse.add_scaled(b, adj, a)
        return
    adj = _var(adj)
    if a.type.rank == 1:  # y = B^T a
        if reverse.active(a):
            reverse.add(a, m.matmul(b, adj))
        if reverse.active(b):
            reverse.add(b, m.outer(a, adj))
    elif b.type.rank == 1:
        if reverse.active(a):
            reverse.add(a, m.outer(adj, b))
        if reverse.active(b):
            reverse.add(b, m.matmul(m.turn(a), adj))
    else:
        if reverse.active(a):
            reverse.add(a, m.matmul(adj, m.turn(b)))
        if reverse.active(b):
            reverse.add(b, m.matmul(m.turn(a), adj))


def _vjp_slogdet(reverse: Reverse, m: Matrices, vars: Sequence[Var], a: Var) -> None:
    emit = reverse.emit
    sign_adj, log_adj = reverse.adjoint(vars[0]), reverse.adjoint(vars[1])
    if not vars[0].type.dtype.is_complex:
        if log_adj is not None:
            reverse.add(a, emit.scale(log_adj, m.turn(m.inverse(a))))
        return
    real = vars[0].type.dtype.real
    factor: Atom | None = None
    if log_adj is not None:
        factor = emit("complex", log_adj, emit.zero(Type(real)))
    if sign_adj is not None:  # the sign turns by the imaginary part of the trace
        turned = emit("neg", emit("imag", emit("mul", vars[0], sign_adj)))
        part = emit("complex", emit.zero(Type(real)), emit("neg", turned))
        factor = part if factor is None else emit("add", factor, part)
    if factor is not None:
        reverse.add(a, emit.scale(factor, m.turn(m.inverse(a))))
