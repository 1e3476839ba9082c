"""Core: every node of the intermediate representation that the whole compiler above `lower` works on.

    type   ::= f32 | f64 | c64 | c128 | i32 | i64 | bool | [dim]...scalar | acc<op, [dim]...scalar>
    dim    ::= integer | i64 variable
    stm    ::= v : t, ... = exp                                              {span}
    exp    ::= op(atom, ...)                                                 a row of the ops table
             | if atom then body else body
             | loop (p = atom, ...) for i < atom do body                     {hints}
             | loop (p = atom, ...) while body do body                       {hints}
             | index a [axis, ...]                    an element, or a view when an axis is a range
             | update a [axis, ...] = atom            consumes a
             | iota | full | array | reshape | transpose | broadcast | concat | copy
             | sweep n lam a...                       map, reduce and scan: Note [Sweep]
             | hist op ne dests n lam a... | scatter dests n lam a...        consume dests
             | with_acc [{slopes}] (a, ...) lam | update_acc acc [axis, ...] = atom     Note [Accumulators]
             | library(atom, ...)                     matmul, sort, solve, cholesky, ...
             | call f(atom, ...)                      a function of the program: Note [Calls]
             | check atom | print atom...             effects, kept in order
             | progress done total                    how far a loop is: Note [Progress]
    axis   ::= at(atom) | span(start, length, step)
    body   ::= stm... in (atom, ...)          lam ::= \\p... -> body

First-order, A-normal form, structured SSA: a name is bound once, regions see the names around them, arrays are values.

Note [Sweep]
One parallel pass over `width` elements. The lambda takes the index and one row of each array; its results are, in
this order: the operands of each reduction, the operands of each scan, and the mapped outputs. The sweep's results
are in the same order. `map` is a sweep without reductions and scans, `reduce` one whose lambda hands its rows on.
Fusion only ever makes bigger sweeps, so differentiation and lowering meet one node.

Note [Accumulators]
`with_acc` turns arrays into write-only accumulators for the time of its lambda; `update_acc` combines into a cell.
An accumulator cannot be read, its operator is commutative (or each cell is written once: `set`), so updates
are effects without order and a lambda may use an accumulator of an outer scope freely.

Note [Calls]
A program is its entry with the functions that it calls, directly or through others, in `Function.calls`, each by a name
of its own. A function that is called writes no parameter, and sees its parameters only. It may have derivatives of its
own (`Rule`), which are functions of the program too. Such a function and its rules may name each other; apart from
that, calls make no circle.

Note [Progress]
A loop over `tp.progress` says at the start of each iteration how many it has done, of how many. Somebody may look while
the program runs (`runtime/progress.py`), and nothing else depends on it. So it is no effect: what comes before or after
it may trade places with it, and a loop is not run for its sake. It stays where the region around it does (dead code),
is left out of what runs a second time (`ir/quiet.py`), and out of sweeps, whose elements come in no order. The backward
pass of an iteration says how many it has left behind, so all ways to run a loop backwards count alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tapeless.ir.hints import NONE, Hints
from tapeless.ir.node import node
from tapeless.ir.span import Span
from tapeless.ir.types import Atom, Dim, DType, Type, Var


@node(frozen=True)
class Body:
    """`free` is no part of the value: `walk.free_in_body` keeps its answer there."""

    stms: tuple[Stm, ...]
    results: tuple[Atom, ...]
    free: Mapping[Var, None] | None = field(default=None, init=False, repr=False, compare=False)


@node(frozen=True)
class Lambda:
    params: tuple[Var, ...]
    body: Body

    @property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(r.type for r in self.body.results)


@node(frozen=True)
class Stm:
    vars: tuple[Var, ...]
    exp: Exp
    span: Span


@node(frozen=True)
class At:
    """One position of an axis. `wrap` adds the length to negative positions, `check` raises IndexError outside."""

    index: Atom
    wrap: bool = False
    check: bool = False


@node(frozen=True)
class Range:
    """`length` positions of an axis from `start` by `step`; always inside the axis, the front end clamps."""

    start: Atom
    length: Dim
    step: Atom


Axis = At | Range


@node(frozen=True)
class Apply:
    """A row of the ops table on scalars. The result type is that of the bound variable."""

    op: str
    args: tuple[Atom, ...]


@node(frozen=True)
class If:
    cond: Atom
    then: Body
    orelse: Body


@node(frozen=True)
class For:
    """`index` counts from 0 to `bound` - 1; `params` start at `inits` and become the body's results."""

    index: Var
    bound: Atom
    params: tuple[Var, ...]
    inits: tuple[Atom, ...]
    body: Body
    hints: Hints = NONE


@node(frozen=True)
class While:
    params: tuple[Var, ...]
    inits: tuple[Atom, ...]
    cond: Body
    body: Body
    hints: Hints = NONE


@node(frozen=True)
class Index:
    """One axis for each dimension of the array."""

    array: Var
    axes: tuple[Axis, ...]


@node(frozen=True)
class Update:
    """`array` with the cells at `axes` replaced by `value` (a scalar, or an array of the range lengths)."""

    array: Var
    axes: tuple[Axis, ...]
    value: Atom


@node(frozen=True)
class Iota:
    length: Dim


@node(frozen=True)
class Full:
    """An array filled with a scalar; `value` None leaves it uninitialised (every cell is written before it is read).

    `kept`: loops keep values in it for the backward pass.
    """

    shape: tuple[Dim, ...]
    value: Atom | None
    kept: bool = False


@node(frozen=True)
class ArrayLit:
    """Items of equal type stacked along a new first axis."""

    items: tuple[Atom, ...]


@node(frozen=True)
class Reshape:
    array: Var
    shape: tuple[Dim, ...]


@node(frozen=True)
class Transpose:
    """Axis k of the result is axis `perm[k]` of the array."""

    array: Var
    perm: tuple[int, ...]


@node(frozen=True)
class Broadcast:
    """Axis k of the array becomes axis `axes[k]` of the result; the other axes repeat it."""

    array: Var
    shape: tuple[Dim, ...]
    axes: tuple[int, ...]


@node(frozen=True)
class Concat:
    arrays: tuple[Var, ...]
    axis: int


@node(frozen=True)
class Copy:
    array: Var


@node(frozen=True)
class Reduction:
    """An associative operator: lambda of 2k parameters (left ones first), with its k neutral elements."""

    op: Lambda
    neutral: tuple[Atom, ...]
    commutative: bool = False


@node(frozen=True)
class Sweep:
    """Note [Sweep]. `lam.params` are the index and one row of each array. Scans are inclusive."""

    width: Dim
    arrays: tuple[Var, ...]
    lam: Lambda
    reduces: tuple[Reduction, ...] = ()
    scans: tuple[Reduction, ...] = ()


@node(frozen=True)
class Hist:
    """Each element's lambda gives (key, value, ...); values are combined into `dests[key]`; keys outside are
    ignored.
    """

    op: Reduction
    dests: tuple[Var, ...]
    width: Dim
    arrays: tuple[Var, ...]
    lam: Lambda


@node(frozen=True)
class Scatter:
    """Each element's lambda gives (index, value, ...), written to `dests[index]`; indices outside are ignored."""

    dests: tuple[Var, ...]
    width: Dim
    arrays: tuple[Var, ...]
    lam: Lambda


@node(frozen=True)
class WithAcc:
    """Note [Accumulators]. `lam.params` are the accumulators; results: the arrays, then the lambda's results.

    slopes: derivatives alone are added to them.
    """

    arrays: tuple[Var, ...]
    lam: Lambda
    slopes: bool = False


@node(frozen=True)
class UpdateAcc:
    """Binds nothing."""

    acc: Var
    axes: tuple[Axis, ...]
    value: Atom


@node(frozen=True)
class Library:
    """An operation with a rule and an implementation of its own: see `ops/library.py`."""

    name: str
    args: tuple[Atom, ...]
    attrs: tuple[tuple[str, int | str | bool], ...] = ()

    def attr(self, name: str) -> int | str | bool:
        return dict(self.attrs)[name]


@node(frozen=True)
class Call:
    """Note [Calls]. The arguments are the function's sizes, then its parameters."""

    function: str
    args: tuple[Atom, ...]
    effects: bool  # whether it tests, prints or shows something; without, the function runs silently


@node(frozen=True)
class Check:
    """Raises `error` (a class name of builtins or of tapeless.errors) unless `cond`. `{0}` in the message is
    args[0].
    """

    cond: Atom
    error: str
    message: str
    args: tuple[Atom, ...] = ()


@node(frozen=True)
class Shown:
    """A value that is printed, by its position, and how it is written: by str, or by str.format of `field`."""

    position: int
    field: str = ""

    def text(self, value: object) -> str:
        return self.field.format(value) if self.field else str(value)


@node(frozen=True)
class Print:
    parts: tuple[str | Shown, ...]
    args: tuple[Atom, ...]


@node(frozen=True)
class Progress:
    """Note [Progress]."""

    done: Atom
    total: Atom
    backward: bool = False


# What makes or rearranges one array without looking at what is in it.
Arranging = Iota | Full | ArrayLit | Reshape | Transpose | Broadcast | Concat | Copy
Plain = Apply | Index | Update | UpdateAcc | Library | Call | Check | Print | Progress | Arranging
WithRegions = If | For | While | Sweep | Hist | Scatter | WithAcc
Exp = Plain | WithRegions  # a match over all of them ends in `assert_never`, so that mypy finds what a new one lacks


@node(frozen=True)
class Rule:
    """Functions that are the derivative of another one. Its first parameters are its arguments; the others, if there
    are any, are what it uses of outside.

    forward:  takes all of these; gives the results, then residuals
    backward: takes residuals and adjoints of the results, then what is used of outside; gives adjoints of the arguments
    tangent:  takes the arguments, their tangents, then what is used of outside; gives results and their tangents
    inverse:  takes the results in the place of as many first arguments, then the others and what is used of outside;
              gives those arguments
    open:     forward mode looks into the function itself
    """

    arguments: int
    forward: str = ""
    backward: str = ""
    tangent: str = ""
    inverse: str = ""
    open: bool = False

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of those that there are."""
        return tuple(name for name in (self.forward, self.backward, self.tangent, self.inverse) if name)


@node(frozen=True)
class Function:
    """`sizes` are the symbolic dimensions of the parameters, known before the body runs.

    The last `len(written)` results are the final values of the parameters at the positions `written`: the body writes
    them. `calls` is the rest of the program, where this is its entry.
    """

    name: str
    sizes: tuple[Var, ...]
    params: tuple[Var, ...]
    body: Body
    written: tuple[int, ...] = ()
    options: tuple[tuple[str, bool], ...] = field(default=())
    calls: tuple[Function, ...] = ()
    rule: Rule | None = None

    @property
    def result_types(self) -> tuple[Type, ...]:
        return tuple(r.type for r in self.body.results)


__all__ = [
    "Apply", "Arranging", "ArrayLit", "At", "Atom", "Axis", "Body", "Broadcast", "Call", "Check", "Concat", "Copy", "DType", "Dim", "Exp",
    "For", "Full", "Function", "Hist", "If", "Index", "Iota", "Lambda", "Library", "Plain", "Print", "Progress", "Range",
    "Reduction", "Reshape", "Rule", "Scatter", "Shown", "Span", "Stm", "Sweep", "Transpose", "Type", "Update", "UpdateAcc", "Var", "While", "WithAcc",
    "WithRegions",
]  # fmt: skip
