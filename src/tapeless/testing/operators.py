"""Random uses of the parallel operators, as statements.

Each method writes one statement that binds new names and says whether it found what it needs. Operators are associative
also for NaN, so that the order of combination cannot be seen but in the last digits.
"""

from __future__ import annotations

from tapeless.testing.expressions import Expressions, _python
from tapeless.testing.scope import BOOL, F64, FLOAT, I64, INT, NUMPY, UNKNOWN, Arr, Num, Size, Variable

ADD, MUL = "lambda p, q: p + q", "lambda p, q: p * q"
MAX, MIN = "lambda p, q: np.maximum(p, q)", "lambda p, q: np.minimum(p, q)"
AFFINE = "lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1])"
LATER = "lambda p, q: p if p[0] >= q[0] else q"


class Operators(Expressions):
    def operator(self) -> bool:
        kinds = [(4, self.map), (4, self.reduce), (3, self.scan), (3, self.hist), (2, self.scatter), (2, self.nested)]
        return self.weighted(kinds)()

    # -- operators of two elements

    def monoid(self, dtype: str) -> tuple[str, str]:
        """An operator on numbers of this type with its neutral element."""
        if dtype in ("i64", "i32"):
            return self.pick(((ADD, "0"), (MUL, "1"), ("lambda p, q: p ^ q", "0"), ("lambda p, q: max(p, q)", "-99")))
        if dtype == "c128":
            return self.pick(((ADD, "0.0"), (MUL, "1.0")))
        return self.pick(((ADD, "0.0"), (MAX, "-np.inf"), (MUL, "1.0"), (MIN, "np.inf")))

    def sources(self, rank: int | None = None, empty: bool = True) -> list[Variable]:
        found = [v for v in self.arrays(None, rank) if v.type.dtype != "bool"]
        return found if empty else [v for v in found if v.type.shape[0] > 0]  # type: ignore[union-attr]

    def same_length(self, size: Size, dtype: str) -> str:
        return self.operand(Arr(dtype, (size,)), 1)

    # -- the operators

    def map(self) -> bool:
        if self.chance(30):
            return self._map_count()
        found = self.sources(empty=False)
        if not found:
            return self._map_count()
        v = self.pick(found)
        t = v.type
        assert isinstance(t, Arr)
        row = t.element if t.rank == 1 else Arr(t.dtype, t.shape[1:])
        params, args = [("x", row)], [v.name]
        if self.chance(30):
            params.append(("y", F64))
            args.append(self.same_length(t.shape[0], "f64"))
        result, body = self._lambda(params)
        self._bind_map(t.shape[0], result, f"tp.map({body}, {', '.join(args)})")
        return True

    def _map_count(self) -> bool:
        size, text = self._count()
        result, body = self._lambda([("i", INT)])
        self._bind_map(size, result, f"tp.map({body}, {text})")
        return True

    def _count(self) -> tuple[Size, str]:
        """A number of elements that is not zero."""
        found = [v for v in self.arrays() if v.type.shape[0] > 0]  # type: ignore[union-attr]
        if found and self.chance(70):
            v = self.pick(found)
            return v.type.shape[0], f"len({v.name})"  # type: ignore[union-attr]
        n = 1 + self.below(4)
        return n, str(n)

    def _lambda(self, params: list[tuple[str, Num | Arr]], depth: int = 2) -> tuple[list[Num | Arr], str]:
        """A lambda of these parameters, and the types that it gives."""
        names = [self.name(letter) for letter, _ in params]
        outer = self.scope
        self.scope = outer.copy()
        for name, (_, t) in zip(names, params, strict=True):
            self.bind(name, t, self.new_cell() if isinstance(t, Arr) else 0, frozen=True, fixed=True)
        results: list[Num | Arr] = []
        texts: list[str] = []
        for _ in range(2 if self.chance(20) else 1):
            t = self.pick((F64, FLOAT, INT, I64, BOOL))
            rows = [p for _, p in params if isinstance(p, Arr)]
            if rows and self.chance(40):
                results.append(rows[0])
                texts.append(self.array(rows[0], depth - 1))
            else:
                results.append(t)
                texts.append(self.number(t, depth))
        self.scope = outer
        body = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        return results, f"lambda {', '.join(names)}: {body}"

    def _bind_map(self, size: Size, rows: list[Num | Arr], text: str) -> None:
        names: list[str] = []
        types: list[Arr] = []
        for r in rows:
            names.append(self.name("m"))
            types.append(Arr(r.dtype, (size, *r.shape)) if isinstance(r, Arr) else Arr(r.dtype, (size,)))
        self.line(f"{', '.join(names)} = {text}")
        for name, t in zip(names, types, strict=True):
            if t.rank <= 2:
                self.bind(name, t, self.new_cell())

    def reduce(self) -> bool:
        found = self.sources()
        if not found:
            return False
        v = self.pick(found)
        t = v.type
        assert isinstance(t, Arr)
        name = self.name("r")
        if t.rank == 2:
            ne = "0.0" if t.dtype not in ("i64", "i32") else "0"
            if self.chance(50):
                ne = f"np.zeros({v.name}.shape[1], dtype={NUMPY[t.dtype]})"
            self.line(f"{name} = tp.reduce({ADD}, {ne}, {v.name})")
            self.bind(name, Arr(t.dtype, t.shape[1:]), self.new_cell())
            return True
        if t.dtype == "f64" and self.chance(25):
            other = self.name("r")
            second = self.same_length(t.shape[0], "f64")
            self.line(f"{name}, {other} = tp.reduce({AFFINE}, (1.0, 0.0), ({v.name}, {second}))")
            self.bind(name, F64)
            self.bind(other, F64)
            return True
        if t.dtype == "i64" and self.chance(25):
            other = self.name("r")
            second = self.same_length(t.shape[0], "i64")
            self.line(f"{name}, {other} = tp.reduce({LATER}, (-99, 0), ({v.name}, {second}))")
            self.bind(name, I64)
            self.bind(other, I64)
            return True
        op, ne = self.monoid(t.dtype)
        commutative = ", commutative=True" if self.chance(20) else ""
        self.line(f"{name} = tp.reduce({op}, {ne}, {self.operand(t, 1)}{commutative})")
        self.bind(name, t.element)
        return True

    def scan(self) -> bool:
        found = self.sources(1)
        if not found:
            return False
        v = self.pick(found)
        t = v.type
        assert isinstance(t, Arr)
        options = "".join(f", {k}=True" for k in ("exclusive", "reverse") if self.chance(30))
        name = self.name("s")
        if t.dtype == "f64" and self.chance(25):
            other = self.name("s")
            second = self.same_length(t.shape[0], "f64")
            self.line(f"{name}, {other} = tp.scan({AFFINE}, (1.0, 0.0), ({v.name}, {second}){options})")
            self.bind(other, t, self.new_cell())
        else:
            op, ne = self.monoid(t.dtype)
            self.line(f"{name} = tp.scan({op}, {ne}, {self.operand(t, 1)}{options})")
        self.bind(name, t, self.new_cell())
        return True

    def keys(self, size: Size) -> str:
        return f"({self.same_length(size, self.pick(('i64', 'i64', 'i32')))} % {self.pick((3, 5, 2))})"

    def hist(self) -> bool:
        found = self.sources(1)
        if not found:
            return False
        v = self.pick(found)
        t = v.type
        assert isinstance(t, Arr)
        name = self.name("h")
        op, ne = self.monoid(t.dtype)
        dest, result = str(bins := self.pick((3, 1, 5))), Arr(t.dtype, (bins,))
        others = [o for o in self.arrays(t.dtype, 1) if o is not v]
        if others and self.chance(40):
            other = self.pick(others)
            assert isinstance(other.type, Arr)
            dest, result = other.name, other.type
        keys = self.keys(t.shape[0]) if self.chance(80) else self.same_length(t.shape[0], "i64")
        self.line(f"{name} = tp.hist({op}, {ne}, {dest}, {keys}, {v.name})")
        self.bind(name, result, self.new_cell())
        return True

    def scatter(self) -> bool:
        found = self.sources(1)
        if not found:
            return False
        v = self.pick(found)
        t = v.type
        assert isinstance(t, Arr)
        other = self.pick(self.arrays(t.dtype, 1))
        assert isinstance(other.type, Arr)
        name = self.name("s")
        keys = self.keys(t.shape[0]) if self.chance(60) else f"np.arange(len({v.name}))"
        self.line(f"{name} = tp.scatter({other.name}, {keys}, {v.name})")
        self.bind(name, other.type, self.new_cell())
        return True

    def nested(self) -> bool:
        """An operator inside an operator."""
        size, text = self._count()
        rows = [v for v in self.arrays("f64", 2) if v.type.shape[0] > 0]  # type: ignore[union-attr]
        i = self.name("i")
        if rows and self.chance(50):
            v = self.pick(rows)
            assert isinstance(v.type, Arr)
            op, ne = self.monoid("f64")
            name = self.name("m")
            inner = self.pick((f"tp.reduce({op}, {ne}, {i})", f"np.sum(tp.scan({op}, {ne}, {i}))"))
            self.line(f"{name} = tp.map(lambda {i}: {inner}, {v.name})")
            self.bind(name, Arr("f64", (v.type.shape[0],)), self.new_cell())
            return True
        outer = self.scope
        self.scope = outer.copy()
        self.bind(i, INT, fixed=True)
        count, inner_text = self._count()
        result, body = self._lambda([("j", INT)], 2)
        self.scope = outer
        if len(result) > 1:
            return False
        (t,) = result
        name = self.name("m")
        reducible = isinstance(t, Num) and t.dtype == "f64" and self.chance(40)
        text_inner = f"tp.map({body}, {inner_text})"
        if reducible:
            op, ne = self.monoid("f64")
            self.line(f"{name} = tp.map(lambda {i}: tp.reduce({op}, {ne}, {text_inner}), {text})")
            self.bind(name, Arr("f64", (size,)), self.new_cell())
        else:
            self.line(f"{name} = tp.map(lambda {i}: {text_inner}, {text})")
            self.bind(name, Arr(t.dtype, (size, count)), self.new_cell())
        return True

    # -- parallel loops

    def parallel_loop(self) -> bool:
        """for i in tp.prange(n): cells of the iteration's own, sums and histograms."""
        targets = self.targets()
        totals = [v for v in self.rebindable() if v.type in (F64, FLOAT, INT, I64)]
        if not targets and not totals:
            return False
        i = self.name("i")
        cells = [v for v in targets if v.type.shape[0] > 0]  # type: ignore[union-attr]
        chosen: list[Variable] = []
        size, text = self._count()
        if cells and self.chance(80):
            v = self.pick(cells)
            assert isinstance(v.type, Arr)
            chosen.append(v)
            size, text = v.type.shape[0], f"len({v.name})"
        if totals and (not chosen or self.chance(50)):
            chosen.append(self.pick(totals))
        bins = [v for v in targets if v.type.rank == 1 and v.type.shape[0] > 0]  # type: ignore[union-attr]
        bins = [v for v in bins if all(v.cell != c.cell or not c.cell for c in chosen) and v.type.dtype != "bool"]
        if bins and (not chosen or self.chance(30)):
            chosen.append(self.pick(bins))
        self.line(f"for {i} in tp.prange({text}):")
        with self.block(leave=False, returns=None) as inner:
            inner.loops += 1
            taken = {c.cell for c in chosen if c.cell}
            for v in list(inner.variables.values()):
                if v.name in {c.name for c in chosen} or v.cell in taken:
                    del inner.variables[v.name]
                else:
                    inner.variables[v.name] = Variable(v.name, v.type, v.cell, True, True, v.lost)
            self.bind(i, INT, fixed=True)
            if self.chance(50):
                t = self.pick((F64, FLOAT, INT))
                name = self.name("t")
                self.line(f"{name} = {self.number(t)}")
                self.bind(name, t)
            for k, v in enumerate(chosen):
                for _ in range(1 if k else self.pick((1, 1, 2, 3))):  # a cell of its own may be written again
                    guard = self.chance(20)
                    if guard:
                        self.line(f"if {self.number(BOOL)}:")
                        self.indent += 1
                    self._parallel_write(v, i, size, own=k == 0)
                    self.indent -= guard
        for v in chosen:
            if isinstance(v.type, Arr):
                self.wrote(v.cell)
            self.scope.variables.setdefault(v.name, v)
        return True

    def _parallel_write(self, v: Variable, i: str, size: Size, own: bool) -> None:
        if isinstance(v.type, Num):
            self.line(f"{v.name} {self.pick(('+=', '-='))} {self.number(v.type)}")
            return
        t = v.type
        number = self.number(t.element if t.dtype == "bool" else self.pick((t.element, _python(t))))
        if not own and t.dtype != "bool" and self.chance(25):
            self.line(f"{v.name} += {self.operand(t)}")
        elif not own or t.shape[0] != size:
            self.line(f"{v.name}[({self.number(INT, 1)}) % {abs(t.shape[0])}] += {number}")
        elif t.rank == 1:
            op = self.pick(("=", "+=", "*=")) if t.dtype != "bool" else "="
            again = self.chance(15)
            if again:
                self.line(f"for {self.name('j')} in range(2):")
                self.indent += 1
            self.line(f"{v.name}[{i}] {op} {number}")
            self.indent -= again
        elif self.chance(50):
            j = self.name("j")
            square, column = t.shape[0] == t.shape[1], self.pick((j, j, "0"))
            self.line(f"for {j} in range({v.name}.shape[1]):")
            with self.block():
                self.bind(j, INT, fixed=True)
                cell = f"{column}, {i}" if square and self.chance(25) else f"{i}, {column}"
                self.line(f"{v.name}[{cell}] = {self.number(t.element)}")
        else:
            row = self.operand(Arr(t.dtype, t.shape[1:])) if t.shape[1] > UNKNOWN else number
            self.line(f"{v.name}[{i}] = {row}")
