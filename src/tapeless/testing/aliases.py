"""Random statements about references, containers and unusual loops: where names, views and exits meet.

A second set of statements beside those of `statements`, each a method that says whether it found what it needs.
"""

from __future__ import annotations

from tapeless.testing.expressions import _python
from tapeless.testing.operators import Operators
from tapeless.testing.scope import BOOL, F64, FLOAT, INT, UNKNOWN, Arr, Local, Num, Type, Variable

VIEWS = ("{0}[1:]", "{0}[::-1]", "{0}[:-1]", "{0}", "{0}[::2]")


class Aliases(Operators):
    def body(self, most: int) -> None:
        raise NotImplementedError

    def bounded(self, t: Num, depth: int = 3) -> str:
        raise NotImplementedError

    # -- names

    def chained(self) -> bool:
        """b = c = an array: two names of one array; or of one number."""
        one, two = self.name("b"), self.name("c")
        found = [v for v in self.arrays() if all(s > UNKNOWN for s in v.type.shape)]  # type: ignore[union-attr]
        if found and self.chance(60):
            t = self.pick(found).type
            assert isinstance(t, Arr)
            self.line(f"{one} = {two} = {self.array(t)}")
            cell = self.new_cell()
        else:
            t = self.pick((FLOAT, INT, F64))
            self.line(f"{one} = {two} = {self.bounded(t)}")
            cell = 0
        self.bind(one, t, cell)
        self.bind(two, t, cell)
        return True

    def view_by_function(self) -> bool:
        """A function that gives a view of its argument, and a write through that."""
        found = [v for v in self.targets() if v.type.rank == 1]  # type: ignore[union-attr]
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        g, p, w = self.name("g"), self.name("p"), self.name("v")
        text = self.pick(VIEWS)
        if self.chance(50):
            self.line(f"{g} = lambda {p}: {text.format(p)}")
        else:
            self.line(f"def {g}({p}):")
            with self.block(function=True, loops=0, leave=False, returns=None):
                if self.chance(50):
                    self.line(f"{p}[:] = {self.number(_python(v.type), 1)}")
                self.line(f"return {text.format(p)}")
        self.line(f"{w} = {g}({v.name})")
        self.wrote(v.cell)
        self.bind(w, Arr(v.type.dtype, (self.new_size(),)), v.cell, frozen=v.frozen, lost=v.lost)
        if self.chance(70):
            self.line(f"{w}[:] = {self.number(_python(v.type))}")
        return True

    def closure_write(self) -> bool:
        """A function that writes an array of its surroundings."""
        found = self.targets()
        if self.indent > 1 or not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        g, p = self.name("g"), self.name("p")
        self.line(f"def {g}({p}):")
        with self.block(function=True, loops=0, leave=False, returns=None):
            self.bind(p, INT)
            self.line(
                f"{self.place(v)} {self.pick(('=', '+=') if v.type.dtype != 'bool' else ('=',))} {self.stored(v)}"
            )
            if self.chance(40):
                self.line(f"return {v.name}")
        loop = self.chance(40)
        if loop:
            i = self.name("i")
            self.line(f"for {i} in range({1 + self.below(3)}):")
        self.indent += loop
        self.line(f"{g}({self.number(INT, 1)})")
        self.indent -= loop
        self.wrote(v.cell)
        return True

    def stored(self, v: Variable) -> str:
        """A number that may be stored in this array; floats are cut off in arrays of integers."""
        assert isinstance(v.type, Arr)
        t = v.type.element
        if t.dtype in ("i64", "i32") and self.chance(10):
            return self.pick(("2.5", "-1.75", "0.5"))
        return self.number(t if t == BOOL or t.dtype == "c128" or self.chance(60) else _python(v.type))

    # -- containers

    def pair(self) -> bool:
        """A tuple that goes around a loop."""
        types = tuple(self.pick((FLOAT, INT, F64)) for _ in range(2))
        p = self.name("p")
        self.line(f"{p} = ({', '.join(self.bounded(t, 2) for t in types)})")
        if self.chance(60):
            i = self.name("i")
            self.line(f"for {i} in range({self.below(4)}):")
            with self.block(leave=True) as inner:
                inner.loops += 1
                self.bind(i, INT, fixed=True)
                a, b = self.name("t"), self.name("t")
                self.line(f"{a}, {b} = {p}")
                self.bind(a, types[0])
                self.bind(b, types[1])
                if self.chance(40):
                    self.body(1)
                if self.chance(30):
                    self.line(f"if {self.number(BOOL)}:")
                    self.line(f"    {self.pick(('break', 'continue'))}")
                self.line(f"{p} = ({self.bounded(types[0], 2)}, {self.bounded(types[1], 2)})")
        for k, t in enumerate(types):
            name = self.name("t")
            self.line(f"{name} = {p}[{k}]")
            self.bind(name, t)
        return True

    def array_pair(self) -> bool:
        """Two arrays in a tuple that goes around a loop: exchanged, made anew, written, at times twice the same."""
        found = [v for v in self.arrays() if v.type.dtype != "bool" and all(s > UNKNOWN for s in v.type.shape)]  # type: ignore[union-attr]
        if not found or self.scope.loops >= 3:
            return False
        t = self.pick(found).type
        assert isinstance(t, Arr)
        p, i, name = self.name("p"), self.name("i"), self.name("b")
        self.line(f"{p} = ({self.array(t, 1)}, {self.array(t, 1)})")
        self.line(f"for {i} in range({1 + self.below(3)}):")
        with self.block(leave=True) as inner:
            inner.loops += 1
            self.bind(i, INT, fixed=True)
            for _ in range(1 + self.below(3)):
                k = self.below(2)
                texts = (
                    f"{p} = ({p}[1], {p}[0])",
                    f"{p}[{k}][:] = {self.filler(t)}",
                    f"{p}[{k}][:] = {p}[{1 - k}] + {self.filler(t)}",
                    f"{p} = ({p}[{k}], {self.array(t, 1)})",
                    f"{p} = ({p}[1], {p}[{k}])",
                )
                test = f"if {self.number(BOOL)}: " if self.chance(30) else ""
                self.line(test + self.pick(texts))
        self.line(f"{name} = {p}[0] + {p}[1]")
        self.bind(name, t, self.new_cell())
        return True

    def default(self) -> bool:
        """A function that keeps an array of its surroundings as a default."""
        found = self.targets()
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        g, p, q, name = self.name("g"), self.name("p"), self.name("p"), self.name("b")
        self.line(f"{g} = lambda {p}, {q}={v.name}: {q}{self.pick(('', '[::-1]'))}")
        if self.chance(50):
            self.line(f"{self.place(v)} = {self.stored(v)}")
            self.wrote(v.cell)
        if self.chance(30):
            self.line(f"{v.name} = {self.array(v.type, 1)}" if self.bold and not v.fixed else "pass")
        self.line(f"{name} = {g}({self.number(INT, 1)}).copy()")
        self.bind(name, v.type, self.new_cell())
        return True

    def unrolled(self) -> bool:
        """A loop over a tuple of numbers or of arrays, which may be left."""
        if self.scope.loops >= 3:
            return False
        e = self.name("e")
        arrays = self.arrays()
        group = [v for v in arrays if v.type == arrays[0].type] if arrays else []
        if len(group) > 1 and self.chance(50):
            first, second = group[0], group[1]
            self.line(f"for {e} in ({first.name}, {second.name}):")
            bound = (e, first.type, {first.cell, second.cell}, first.frozen or second.frozen)
        else:
            t: Num = self.pick((INT, FLOAT))
            self.line(f"for {e} in ({', '.join(self.number(t, 1) for _ in range(1 + self.below(3)))},):")
            bound = (e, t, set(), False)
        with self.block(leave=True) as inner:
            inner.loops += 1
            name, of, cells, frozen = bound
            if isinstance(of, Arr):
                self.bind(name, of, 0, frozen=True, fixed=True)
                if not frozen and self.chance(60):
                    self.line(f"{name}[{self.index(of.shape[0], name)}] = {self.filler(of)}")
                    for c in cells:
                        self.wrote(c)
            else:
                self.bind(name, of, fixed=True)
            self.body(2)
        if self.chance(20):
            self.line("else:")
            with self.block():
                self.body(1)
        return True

    def filler(self, t: Arr) -> str:
        return self.number(t.element if t.dtype in ("bool", "c128") else _python(t), 1)

    # -- overlapping and indirect writes

    def overlap(self) -> bool:
        """Copies between parts of one matrix."""
        found = [v for v in self.targets() if v.type.rank == 2 and v.type.dtype != "bool"]  # type: ignore[union-attr]
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        n = v.name
        pairs = [
            (f"{n}[1:]", f"{n}[:-1]"),
            (f"{n}[:, 1:]", f"{n}[:, :-1]"),
            (f"{n}[:]", f"{n}[::-1]"),
            (f"{n}[:]", f"{n}[:, ::-1]"),
        ]
        if v.type.shape[0] == v.type.shape[1]:
            pairs += [(f"{n}[:]", f"{n}.T"), (f"{n}.T[:]", f"{n}[::-1]"), (n, f"{n}.T")]
        a, b = self.pick(pairs)
        if self.chance(50):
            a, b = b if b.endswith("]") else f"{b}[:]", a
        op = self.pick(("=", "+=", "*="))
        a = f"{a}[:]" if a == n and op == "=" else a
        a = f"{a}[:]" if a.endswith(".T") else a
        self.line(f"{a} {op} {b}{self.pick(('', ' * 2', ' + ' + n + '[0, 0]')) if 0 not in v.type.shape else ''}")
        self.wrote(v.cell)
        return True

    def indirect(self) -> bool:
        """Reading and writing at positions that are in an array."""
        keys = [v for v in self.arrays(None, 1) if v.type.dtype in ("i64", "i32")]
        found = [v for v in self.targets() if v.type.shape[0] > 0]  # type: ignore[union-attr]
        if not keys or not found:
            return False
        k, v = self.pick(keys), self.pick(found)
        assert isinstance(k.type, Arr) and isinstance(v.type, Arr)
        text = f"{k.name} % {len_text(v)}" if self.chance(90) else k.name
        where = (
            f"{v.name}[{text}]" if v.type.rank == 1 or self.chance(50) else f"{v.name}[:, {k.name} % {v.name}.shape[1]]"
        )
        if self.chance(50):
            name = self.name("b")
            if v.type.rank == 1:
                self.line(f"{name} = {where}")
                self.bind(name, Arr(v.type.dtype, k.type.shape), self.new_cell())
                return True
        op = "=" if v.type.dtype == "bool" else self.pick(("=", "+="))
        source = self.filler(v.type)
        if v.type.rank == 1 and self.chance(50):
            source = self.operand(Arr(v.type.dtype, k.type.shape))
        self.line(f"{where} {op} {source}")
        self.wrote(v.cell)
        return True

    def moving_slices(self) -> bool:
        """Slices whose bounds change: a[i:] = a[:len(a) - i]."""
        found = [v for v in self.targets() if v.type.rank == 1]  # type: ignore[union-attr]
        if not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        n, i = v.name, self.name("i")
        self.line(f"for {i} in range({self.pick((1, 0))}, {self.pick((3, f'len({n})', 2))}):")
        text = self.pick(
            (
                f"{n}[{i}:] = {n}[:len({n}) - {i}]",
                f"{n}[:len({n}) - {i}] = {n}[{i}:]",
                f"{n}[{i}:{i} + 2] = {n}[{i} - 1]",
                f"{n}[:{i}] = {n}[:{i}][::-1]",
                f"{n}[-{i}:] = {self.filler(v.type)}",
            )
        )
        self.line(f"    {text}")
        self.wrote(v.cell)
        return True

    # -- local arrays

    def gathered(self) -> bool:
        """Arrays put together from others."""
        found = [v for v in self.arrays(None, 1) if v.type.dtype != "bool"]
        if not found:
            return False
        v = self.pick(found)
        t = v.type
        assert isinstance(t, Arr)
        w = self.operand(t, 1)
        name = self.name("b")
        size = t.shape[0]
        options: list[tuple[str, Arr]] = [
            (f"np.concatenate(({v.name}, {w}))", Arr(t.dtype, (self.new_size(),))),
            (f"np.stack(({v.name}, {w}))", Arr(t.dtype, (2, size))),
            (f"np.outer({v.name}, {w})", Arr(t.dtype, (size, size))),
            (f"np.roll({v.name}, {self.pick((1, -1, 2))})", t),
            (f"np.flip({v.name})", t),
            (f"np.array([{v.name}, {w}])", Arr(t.dtype, (2, size))),
        ]
        if t.dtype != "c128":
            options += [(f"np.sort({v.name})", t), (f"np.clip({v.name}, 0, 2)", t), (f"np.maximum({v.name}, {w})", t)]
        if t.dtype == "f64":
            options.append(
                (f"np.array([{self.number(FLOAT)}, {self.number(FLOAT)}, {self.number(FLOAT)}])", Arr("f64", (3,)))
            )
        text, made = self.pick(options)
        self.line(f"{name} = {text}")
        self.bind(name, made, self.new_cell(), frozen="flip" in text)
        return True

    def mapped_function(self) -> bool:
        """tp.map or tp.vmap of a function with statements: loops, exits and arrays of its own."""
        found = [v for v in self.arrays("f64") if v.type.shape[0] > 0]  # type: ignore[union-attr]
        if self.indent > 1 or not found:
            return False
        v = self.pick(found)
        assert isinstance(v.type, Arr)
        g, p = self.name("g"), self.name("p")
        row: Type = F64 if v.type.rank == 1 else Arr("f64", v.type.shape[1:])
        result = self.pick((F64, FLOAT, INT))
        self.line(f"def {g}({p}):")
        with self.block(function=True, loops=0, leave=False, returns=(result,)):
            self.bind(p, row, self.new_cell() if isinstance(row, Arr) else 0, frozen=isinstance(row, Arr))
            if self.chance(40):
                u = self.name("b")
                self.line(f"{u} = np.zeros(3)")
                self.bind(u, Arr("f64", (3,)), self.new_cell())
            self.body(3)
            self.line(f"return {self.number(result)}")
        self.scope.functions.append(Local(g, (row,), result))
        name = self.name("m")
        call = self.pick((f"tp.map({g}, {v.name})", f"tp.vmap({g})({v.name})"))
        self.line(f"{name} = {call}")
        self.bind(name, Arr(result.dtype, v.type.shape[:1]), self.new_cell())
        return True


def len_text(v: Variable) -> str:
    return f"len({v.name})"
