"""Random assignments: to numbers, to elements and parts of arrays, and of names to other arrays.

Names keep their type on every path, and arrays are rebound only where it stays known which array a name refers to.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.testing.aliases import Aliases
from tapeless.testing.expressions import _python
from tapeless.testing.scope import BOOL, F32, F64, FLOAT, I32, I64, INT, UNKNOWN, Arr, Num, Variable

NUMBERS = (FLOAT, INT, F64, BOOL, I64, F32, I32)


class Assignments(Aliases):
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
