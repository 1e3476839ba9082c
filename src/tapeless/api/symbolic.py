"""`tp.symbolic`: what a scalar function and its gradient are, as formulae to read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tapeless.api.callables import as_function, is_callable_object, pickled_function, unpickled_function
from tapeless.api.function import in_short
from tapeless.errors import CompileError
from tapeless.frontend.entry import specs_of, trace_specs
from tapeless.ir import pytree
from tapeless.ir.types import Var
from tapeless.passes.inline import inline
from tapeless.symbolic.formulas.expressions import Expression, TooLong, fresh, symbol
from tapeless.symbolic.formulas.naming import with_names
from tapeless.symbolic.formulas.reading import NoFormula, Reader
from tapeless.symbolic.formulas.slopes import NoSlope, gradient
from tapeless.symbolic.formulas.text import latex_of, sympy_of, text_of

ROOM = 300_000  # terms and factors
LONG = 7  # parts of an expression that gets a name where it occurs twice


@dataclass(frozen=True, eq=False)
class Formula:
    """One expression. `str` of it is its text, in Python's notation."""

    expression: Expression

    @property
    def text(self) -> str:
        return text_of(self.expression)

    @property
    def latex(self) -> str:
        return latex_of(self.expression)

    @property
    def sympy(self) -> Any:
        """For SymPy, which has to be installed."""
        return sympy_of(self.expression)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_latex_(self) -> str:
        return f"${self.latex}$"


@dataclass(frozen=True, eq=False)
class Formulae:
    """The value of a function, and its derivative by each argument, or element of one, by name."""

    name: str
    value: Formula
    gradient: dict[str, Formula]
    left_out: tuple[str, ...] = ()  # arrays that it reads at places that are not known beforehand

    def _shared(self) -> tuple[list[tuple[str, Expression]], list[Expression]]:
        """What occurs more than once has a name. Expressions that are made for that are for writing only."""
        roots = [self.value.expression, *(slope.expression for slope in self.gradient.values())]
        taken = {s.parts[0] for root in roots for s in root.free}
        return with_names(roots, LONG, taken)

    @property
    def text(self) -> str:
        named, (value, *slopes) = self._shared()
        lines = [*(f"{name} = {text_of(x)}" for name, x in named), f"{self.name} = {text_of(value)}"]
        lines += [f"d{self.name}/d{by} = {text_of(s)}" for by, s in zip(self.gradient, slopes, strict=True)]
        return "\n".join([*lines, *(f"d{self.name}/d{by} is not written out" for by in self.left_out)])

    @property
    def latex(self) -> str:
        name = r"\mathrm{" + self.name.replace("_", r"\_") + "}" if len(self.name) > 1 else self.name
        named, (value, *slopes) = self._shared()
        rows = [*(f"{latex_of(symbol(n))} &= {latex_of(x)}" for n, x in named), f"{name} &= {latex_of(value)}"]
        for by, slope in zip(self.gradient, slopes, strict=True):
            rows.append(rf"\frac{{\partial {name}}}{{\partial {latex_of(symbol(by))}}} &= {latex_of(slope)}")
        return r"\begin{aligned}" + "\n" + " \\\\\n".join(rows) + "\n" + r"\end{aligned}"

    @property
    def sympy(self) -> tuple[Any, dict[str, Any]]:
        return self.value.sympy, {by: slope.sympy for by, slope in self.gradient.items()}

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        return self.latex


class Symbolic:
    """A function that gives formulae in the place of numbers."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = as_function(f) if is_callable_object(f) and not hasattr(f, "python") else f
        self.name = getattr(getattr(self.f, "python", self.f), "__name__", "f")
        functools.update_wrapper(self, getattr(f, "python", f), updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Formulae:
        with fresh(ROOM):
            return in_short(lambda: _formulae(self.f, self.name, args, kwargs))

    def __repr__(self) -> str:
        return f"<formulae of {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        transform = getattr(self.f, "__tapeless_transform__", None)
        return _again, pickled_function(transform.function if transform else self.f)


def _again(holder: Any, path: tuple[str, ...]) -> Symbolic:
    """For pickles."""
    return Symbolic(unpickled_function(holder, path))


def symbolic(f: Callable[..., Any]) -> Symbolic:
    """The value and the gradient of a function of numbers as formulae: `tp.symbolic(f)(0.5, 2.0)`.

    Arguments say of which types and sizes the function is asked; their values are not looked at. Branches become cases.
    Loops are written out where they are short, and otherwise need a closed form.
    """
    return Symbolic(f)


def _formulae(f: Callable[..., Any], name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Formulae:
    leaves, tree = pytree.flatten((tuple(args), kwargs))
    core = inline(trace_specs(f, specs_of(leaves), pytree.for_tracing(tree)).core, everything=True)
    reader = Reader()
    floats: dict[str, Expression] = {}
    for p in core.params:
        if p.type.shape:
            reader.names[p] = p.name
        else:
            reader.known[p] = symbol(p.name)
            if p.type.dtype.is_float:
                floats[p.name] = reader.known[p]
    for size in core.sizes:
        reader.known[size] = symbol(_size_name(core.params, size))
    if len(core.body.results) != 1 or core.body.results[0].type.shape or core.written:
        raise CompileError("tp.symbolic takes functions that return one number, and write no array", code="TP302")
    try:
        value = reader.formula(core.body)
        for element, (array, _) in sorted(reader.elements.items(), key=lambda item: item[1][1]):
            if array.type.dtype.is_float and array not in reader.scattered:
                floats[element.parts[0]] = element
        slopes = gradient(value, list(floats.values()))
    except NoFormula as problem:
        at = problem.span
        reason = f"there is no formula: {problem.reason}"
        raise CompileError(reason, code="TP308", file=at.file, line=at.line, column=at.column) from None
    except (TooLong, RecursionError):
        raise CompileError("the formula would be too long to read", code="TP308") from None
    except NoSlope as problem:
        raise CompileError(f"there is no formula for the derivative of {problem}", code="TP308") from None
    short = name if name.isidentifier() else "f"
    left_out = tuple(p.name for p in reader.names if p in reader.scattered and p.type.dtype.is_float)
    return Formulae(short, Formula(value), {by: Formula(s) for by, s in zip(floats, slopes, strict=True)}, left_out)


def _size_name(params: Sequence[Var], size: Var) -> str:
    for p in params:
        if size in p.type.shape:
            axis = p.type.shape.index(size)
            return f"len({p.name})" if axis == 0 else f"{p.name}.shape[{axis}]"
    return size.name
