"""Random loops and the ways to leave them, with arrays that are rebound as they go around.

`for` over ranges, rows, `enumerate` and `zip`; `while` with a counter, so that it ends; break, continue and early
return.
"""

from __future__ import annotations

from dataclasses import replace

from tapeless.testing.assignments import Assignments
from tapeless.testing.scope import BOOL, INT, Arr, Num, Type, Variable


class Loops(Assignments):
    def for_loop(self) -> bool:
        if self.scope.loops >= 3:
            return False
        bound: list[tuple[str, Type, Variable | None]] = []
        i, x = self.name("i"), self.name("e")
        arrays = self.arrays()
        kind = self.weighted([(8, "range"), (3, "rows"), (2, "enumerate"), (2, "zip")])
        if kind == "range" or not arrays:
            self.line(f"for {i} in {self.range_text()}:")
            bound.append((i, INT, None))
        else:
            v = self.pick(arrays)
            assert isinstance(v.type, Arr)
            row: Type = v.type.element if v.type.rank == 1 else Arr(v.type.dtype, v.type.shape[1:])
            text = v.name if self.chance(70) else f"{v.name}[::-1]"
            if kind == "rows":
                self.line(f"for {x} in {text}:")
            elif kind == "enumerate":
                self.line(f"for {i}, {x} in enumerate({text}{', 1' if self.chance(20) else ''}):")
                bound.append((i, INT, None))
            else:
                other = self.pick(arrays)
                assert isinstance(other.type, Arr)
                y = self.name("e")
                self.line(f"for {x}, {y} in zip({text}, {other.name}):")
                element = other.type.element if other.type.rank == 1 else Arr(other.type.dtype, other.type.shape[1:])
                bound.append((y, element, other))
            bound.append((x, row, v))
        moving = self.moving()
        with self.block(leave=True) as inner:
            inner.loops += 1
            for name, t, source in bound:
                if source is not None and isinstance(t, Arr):
                    self.bind(
                        name, t, source.cell, frozen=inner.variables[source.name].frozen, fixed=True, lost=source.lost
                    )
                else:
                    self.bind(name, t, fixed=True)
            self.loop_body(moving)
        self.moved(moving)
        if self.chance(8):
            self.line("else:")
            with self.block():
                self.body(1)
        elif kind == "range" and not self.scope.loops and self.chance(15):  # may have no value
            self.bind(i, INT)
        return True

    def loop_body(self, moving: list[Variable]) -> None:
        """Statements, and between them the rebinding of arrays that go around the loop."""
        for v in [] if self.bold else moving:  # while it is not known which array this is, nobody writes it
            for w in self.having(lambda w, v=v: w.cell == v.cell and isinstance(w.type, Arr)):  # type: ignore[misc]
                self.scope.variables[w.name] = replace(w, frozen=True)
        self.body(3)
        if len(moving) == 2 and self.chance(40):
            a, b = (v.name for v in moving)
            self.line(f"{a}, {b} = {b}, {a}")
        else:
            for v in moving:
                assert isinstance(v.type, Arr)
                self.line(f"{v.name} = {self.array(v.type)}")
        self.body(2)

    def moving(self) -> list[Variable]:
        """Arrays that the next loop rebinds: one, or two of the same type."""
        found = [v for v in self.targets() if not v.fixed]
        if not found or not self.chance(40 if self.bold else 20):
            return []
        v = self.pick(found)
        others = [w for w in found if w.type == v.type and w.cell != v.cell]
        return [v, self.pick(others)] if others and self.chance(50) else [v]

    def moved(self, moving: list[Variable]) -> None:
        """After the loop such a name is a new array, or still the old one: it may be written only if that has
        no other name.
        """
        cells = {v.cell for v in moving}
        for v in moving:
            if v.name not in self.scope.variables:
                continue
            alone = all(len([w for w in self.arrays() if w.cell == c]) == 1 for c in cells)
            if self.bold or (alone and v.name[0] != "a"):
                self.bind(v.name, v.type, self.new_cell())
            else:
                self.bind(v.name, v.type, self.new_cell(), frozen=True, lost=frozenset(cells))

    def range_text(self) -> str:
        arrays = self.arrays()
        match self.weighted([(4, "constant"), (5, "len"), (2, "bounds"), (1, "number")]):
            case "len" if arrays:
                v = self.pick(arrays)
                return f"range({v.name}.shape[{self.below(v.type.rank)}])"  # type: ignore[union-attr]
            case "bounds":
                return self.pick(("range(1, 4)", "range(4, -1, -2)", "range(-1, 5, 3)", "range(3, 0, -1)"))
            case "number":
                return f"range(({self.number(INT, 1)}) % 5)"
        return f"range({1 + self.below(4)})"

    def while_loop(self) -> bool:
        if self.scope.loops >= 2:
            return False
        fuel = self.name("n")
        self.line(f"{fuel} = {self.below(5)}")
        inside = self.chance(40)
        self.line(f"while {self.number(BOOL)}:" if inside else f"while {fuel} > 0 and {self.number(BOOL)}:")
        moving = self.moving()
        with self.block(leave=True) as inner:
            inner.loops += 1
            self.bind(fuel, INT, fixed=True)
            self.line(f"{fuel} -= 1")
            if inside:
                self.line(f"if {fuel} < 0:")
                with self.block():
                    self.line("break")
            self.loop_body(moving)
        self.moved(moving)
        self.bind(fuel, INT)
        return True

    def exit(self) -> bool:
        """break, continue or an early return, under a condition."""
        kinds = ["break", "continue"] if self.scope.leave else []
        if self.scope.returns is not None:
            kinds.append("return")
        if not kinds:
            return False
        kind = self.pick(kinds)
        self.line(f"if {self.number(BOOL)}:")
        with self.block():
            if self.chance(30):
                self.assign_number()
            self.line(self.return_text() if kind == "return" else kind)
        if self.chance(10):
            self.line("else:")
            with self.block():
                self.body(2)
        return True

    def return_text(self) -> str:
        """The results: of the types that were promised, or else whatever there is."""
        if self.scope.returns is None:
            names = [v.name for v in self.having(lambda v: True)][-6:]
            return "return " + ", ".join(names or ["0"])
        return "return " + ", ".join(
            self.number(t) if isinstance(t, Num) else self.array(t) for t in self.scope.returns
        )
