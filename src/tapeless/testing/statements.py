"""Random statements: assignments through names and views, branches, loops and ways to leave them, local functions.

`Statements` writes the body of a function into its lines. Names keep their type on every path, loops end, and arrays
are rebound only where it stays known which array a name refers to; what the compiler still refuses is dropped later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tapeless.testing.expressions import _python
from tapeless.testing.loops import Loops
from tapeless.testing.scope import (
    BOOL,
    F32,
    F64,
    FLOAT,
    I32,
    I64,
    INT,
    UNKNOWN,
    Arr,
    Choose,
    Local,
    Num,
    Type,
    Variable,
)

NUMBERS = (FLOAT, INT, F64, BOOL, I64, F32, I32)


class Statements(Loops):
    def __init__(self, choose: Choose, size: int, theme: str = "all") -> None:
        super().__init__(choose, size)
        some = {"all": 2}
        more: Callable[[str], int] = lambda name: 3 if name == theme else some.get(theme, 1)  # noqa: E731
        control, arrays, parallel = more("control"), more("arrays"), more("parallel")
        self.kinds: list[tuple[int, Callable[[], bool]]] = [
            (6, self.assign_number),
            (2 * control, self.augment_number),
            (3 * arrays, self.assign_element),
            (2 * arrays, self.new_array),
            (2 * arrays, self.new_view),
            (3 * arrays, self.assign_slice),
            (2 * arrays, self.augment_array),
            (1 * control, self.swap_numbers),
            (1 * arrays, self.swap_elements),
            (1 * arrays, self.rebind_array),
            (3 * control, self.if_statement),
            (3 * control, self.for_loop),
            (2 * control, self.while_loop),
            (2 * control, self.exit),
            (3 * parallel, self.operator),
            (2 * parallel, self.parallel_loop),
            (1 * control, self.local_function),
            (1, self.procedure),
            (1, self.call_procedure),
            (1, self.masked_write),
            (1 * arrays, self.chained),
            (1 * arrays, self.view_by_function),
            (1, self.closure_write),
            (1 * control, self.pair),
            (1 * control, self.unrolled),
            (1 * arrays, self.overlap),
            (1 * arrays, self.indirect),
            (1 * arrays, self.moving_slices),
            (1 * arrays, self.gathered),
            (1 * parallel, self.mapped_function),
        ]
        if theme == "references":
            self.bold = True
            self.kinds = [
                (4, self.assign_element),
                (4, self.rebind_array),
                (3, self.rebind_alias),
                (2, self.new_view),
                (1, self.new_array),
                (3, self.if_statement),
                (3, self.for_loop),
                (1, self.while_loop),
                (1, self.exit),
                (1, self.assign_slice),
                (1, self.augment_array),
                (1, self.view_by_function),
                (1, self.closure_write),
                (1, self.call_procedure),
                (1, self.procedure),
                (1, self.chained),
            ]

    def body(self, most: int) -> None:
        """Up to so many statements."""
        for _ in range(1 + self.below(most)):
            if self.left <= 0:
                return
            self.left -= 1
            if not self.weighted(self.kinds)():
                self.assign_number()

    # -- numbers

    def bounded(self, t: Num, depth: int = 3) -> str:
        """A number that may be assigned again and again without growing out of range."""
        text = self.number(t, depth)
        return f"({text}) % 97" if t == INT and self.scope.loops else text

    def assign_number(self) -> bool:
        found = self.rebindable()
        if found and self.chance(50):
            v = self.pick(found)
            assert isinstance(v.type, Num)
            self.line(f"{v.name} = {self.bounded(v.type)}")
            return True
        t = self.pick(NUMBERS)
        text = self.bounded(t)
        name = self.name("t")
        self.line(f"{name} = {text}")
        self.bind(name, t)
        return True

    def augment_number(self) -> bool:
        found = [v for v in self.rebindable() if v.type != BOOL]
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Num)
        operand = self.pick(
            {F64: (F64, FLOAT, INT, I64), F32: (F32, FLOAT), I64: (I64, INT), I32: (I32, INT)}.get(
                v.type, (v.type, INT)
            )
        )
        if self.chance(20):
            self.line(f"{v.name} {self.pick(('%=', '//='))} {self.divisor(operand, 1)}")
        elif v.type == INT and self.scope.loops:
            self.line(f"{v.name} {self.pick(('+=', '-='))} ({self.number(operand)}) % 97")
        else:
            self.line(f"{v.name} {self.pick(('+=', '-=', '*='))} {self.number(operand)}")
        return True

    def swap_numbers(self) -> bool:
        for v in self.rebindable():
            others = [w for w in self.rebindable() if w.type == v.type and w is not v]
            if others:
                w = self.pick(others)
                second = v.name if self.chance(70) or not isinstance(w.type, Num) else self.bounded(w.type, 2)
                self.line(f"{v.name}, {w.name} = {w.name}, {second}")
                return True
        return False

    # -- arrays

    def assign_element(self) -> bool:
        found = self.targets()
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        op = self.pick(("=", "=", "+=", "-=", "*=")) if v.type.dtype != "bool" else "="
        place = self.place(v)
        self.line(f"{place} {op} {self.stored(v)}")
        self.wrote(v.cell)
        return True

    def swap_elements(self) -> bool:
        found = self.targets()
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        if v.type.rank == 2 and self.chance(40):  # rows are views: the second assignment sees the first
            a, b = (f"{v.name}[{self.index(v.type.shape[0], v.name)}]" for _ in range(2))
        else:
            a, b = self.place(v), self.place(v)
        self.line(f"{a}, {b} = {b}, {a}")
        self.wrote(v.cell)
        return True

    def new_array(self) -> bool:
        t = self.some_array()
        text = self.array(t)
        name = self.name("b")
        self.line(f"{name} = {text}")
        self.bind(name, t, self.new_cell())
        return True

    def some_array(self) -> Arr:
        dtype = self.pick(("f64", "f64", "i64", "f32", "i32", "bool"))
        found = self.arrays()
        if found and self.chance(80):
            v = self.pick(found)
            assert isinstance(v.type, Arr)
            if v.type.dtype == "c128" and self.chance(50):
                return v.type
            return Arr(dtype, v.type.shape)
        return Arr(dtype, (self.below(4) + 1,))

    def new_view(self) -> bool:
        found = self.arrays()
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        text, t = self.view(v)
        name = self.name("v")
        self.line(f"{name} = {text}")
        self.bind(name, t, v.cell, frozen=v.frozen, lost=v.lost)
        return True

    def view(self, v: Variable) -> tuple[str, Arr]:
        """A part of an array that shares its memory."""
        assert isinstance(v.type, Arr)
        dtype, shape = v.type.dtype, v.type.shape
        if self.chance(20):
            return v.name, v.type
        if len(shape) == 1:
            if shape[0] in (4, 6) and self.chance(15):
                return f"{v.name}.reshape(2, {shape[0] // 2})", Arr(dtype, (2, shape[0] // 2))
            text, size = self.slice(shape[0])
            return f"{v.name}[{text}]", Arr(dtype, (size,))
        kind = self.weighted([(3, "row"), (2, "column"), (2, "block"), (1, "T")])
        if kind == "row":
            return f"{v.name}[{self.index(shape[0], v.name)}]", Arr(dtype, shape[1:])
        if kind == "column":
            return f"{v.name}[:, {self.index(shape[1], v.name, 1)}]", Arr(dtype, shape[:1])
        if kind == "T":
            return f"{v.name}.T", Arr(dtype, shape[::-1])
        (rows, m), (columns, n) = self.slice(shape[0]), self.slice(shape[1])
        return f"{v.name}[{rows}, {columns}]", Arr(dtype, (m, n))

    def assign_slice(self) -> bool:
        found = self.targets()
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        if v.type.rank == 1 and self.chance(30):  # source and target overlap
            k = self.pick((1, 2))
            first, second = f"{v.name}[{k}:]", f"{v.name}[:-{k}]"
            a, b = (first, second) if self.chance(50) else (second, first)
            self.line(f"{a} {self.pick(('=', '+=') if v.type.dtype != 'bool' else ('=',))} {b}")
        else:
            text, t = self.view(v)
            text = text if text.endswith("]") else f"{text}[:]"
            self.line(f"{text} = {self.filling(t)}")
        self.wrote(v.cell)
        return True

    def filling(self, t: Arr) -> str:
        """What may be assigned to a part of an array: a number, or an array of its shape."""
        if self.chance(40) or any(s <= UNKNOWN for s in t.shape):
            return self.number(_python(t)) if t.dtype != "c128" else self.number(t.element)
        dtype = self.pick({"f64": ("f64", "i64", "f32"), "i64": ("i64", "i32")}.get(t.dtype, (t.dtype,)))
        # NumPy copies one axis onto another in memory order, also where they overlap with different strides
        return self.operand(Arr(dtype, t.shape), 2) if t.rank > 1 else self.array(Arr(dtype, t.shape), 2)

    def augment_array(self) -> bool:
        found = [v for v in self.targets() if v.type.dtype != "bool"]
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        text, t = self.view(v) if self.chance(50) else (v.name, v.type)
        if "reshape" in text or text.endswith(".T"):
            text, t = v.name, v.type
        value = self.number(_python(t)) if self.chance(40) or any(s <= UNKNOWN for s in t.shape) else self.operand(t, 2)
        self.line(f"{text} {self.pick(('+=', '-=', '*='))} {value}")
        self.wrote(v.cell)
        return True

    def masked_write(self) -> bool:
        found = [v for v in self.targets() if v.type.dtype in ("f64", "i64")]
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        self.line(
            f"{v.name}[{v.name} {self.pick(('>', '<='))} {self.literal(_python(v.type))}] = {self.number(_python(v.type))}"
        )
        self.wrote(v.cell)
        return True

    def rebind_array(self) -> bool:
        """b = b * 2.0: from then on another array. On one path only, it is not known any more which array `b` is."""
        found = [v for v in self.targets() if not v.fixed]
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        if self.indent > 1 and not self.bold:
            if self.scope.loops or not self.chance(40):
                return False
            self.line(f"{v.name} = {self.array(v.type)}")
            self.bind(v.name, v.type, self.new_cell(), frozen=True, lost=frozenset({v.cell}))
            return True
        others = [w for w in found if w.type == v.type and w.cell != v.cell]
        if others and self.chance(40):
            w = self.pick(others)
            self.line(f"{v.name}, {w.name} = {w.name}, {v.name}")
            self.scope.variables[v.name], self.scope.variables[w.name] = (
                replace(w, name=v.name),
                replace(v, name=w.name),
            )
            return True
        self.line(f"{v.name} = {self.array(v.type)}")
        self.bind(v.name, v.type, self.new_cell())
        return True

    def rebind_alias(self) -> bool:
        """b = a, of two names that exist: wherever this is, both may be the same array from then on."""
        found = [v for v in self.targets() if not v.fixed]
        if not self.bold or not found:
            return False
        v = self.pick(found)
        others = [w for w in self.arrays() if w.type == v.type and w.name != v.name]
        if not others:
            return False
        w = self.pick(others)
        self.line(f"{v.name} = {w.name}")
        self.bind(v.name, v.type, w.cell, frozen=w.frozen)
        return True

    # -- branches

    def if_statement(self) -> bool:
        made = self.name("t") if self.chance(25) else ""
        t = self.pick(NUMBERS)
        self.line(f"if {self.number(BOOL)}:")
        self._arm(made, t)
        if self.chance(25):
            self.line(f"elif {self.number(BOOL)}:")
            self._arm(made, t)
        if made or self.chance(40):
            self.line("else:")
            self._arm(made, t)
        if made:
            self.bind(made, t)
        return True

    def _arm(self, made: str, t: Num) -> None:
        with self.block():
            if made:
                self.line(f"{made} = {self.bounded(t)}")
            if not made or self.chance(40):
                self.body(3)

    # -- local functions

    def local_function(self) -> bool:
        if self.indent > 1:
            return False
        params: list[tuple[str, Type]] = [
            (self.name("p"), self.pick((FLOAT, INT, F64))) for _ in range(1 + self.below(2))
        ]
        arrays = self.arrays("f64", 1)
        if arrays and self.chance(30):
            params.append((self.name("p"), self.pick(arrays).type))
        result = self.pick((F64, FLOAT, INT))
        name = self.name("g")
        if self.chance(40) and all(isinstance(t, Num) for _, t in params):
            outer = self.scope
            self.scope = outer.copy()
            self._parameters(params)
            text = self.number(result, 3)
            self.scope = outer
            self.line(f"{name} = lambda {', '.join(n for n, _ in params)}: {text}")
        else:
            self.line(f"def {name}({', '.join(n for n, _ in params)}):")
            with self.block(function=True, loops=0, leave=False, returns=(result,)):
                self._parameters(params)
                self.body(3)
                self.line(self.return_text())
        self.scope.functions.append(Local(name, tuple(t for _, t in params), result))
        return True

    def _parameters(self, params: Sequence[tuple[str, Type]], frozen: bool = True) -> None:
        for name, t in params:
            self.bind(name, t, self.new_cell() if isinstance(t, Arr) else 0, frozen=frozen and isinstance(t, Arr))

    def procedure(self) -> bool:
        """A local function that writes an array that it is given."""
        arrays = self.arrays()
        if self.indent > 1 or not arrays:
            return False
        t = self.pick(arrays).type
        params: list[tuple[str, Type]] = [(self.name("p"), t), (self.name("p"), INT)]
        name = self.name("g")
        self.line(f"def {name}({', '.join(n for n, _ in params)}):")
        with self.block(function=True, loops=0, leave=False, returns=None):
            self._parameters(params, frozen=False)
            self.assign_element()
            self.body(2)
        self.scope.functions.append(Local(name, tuple(t for _, t in params), INT, procedure=True))
        return True

    def call_procedure(self) -> bool:
        for f in self.scope.functions:
            found = [v for v in self.targets() if v.type == f.params[0]]
            if f.procedure and found:
                v = self.pick(found)
                self.line(f"{f.name}({v.name}, {self.number(INT, 1)})")
                self.wrote(v.cell)
                return True
        return False
