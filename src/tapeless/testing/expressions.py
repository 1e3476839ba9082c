"""Random expressions of a wanted type, as source text.

`number` and `array` take a type and how deep to go. Numbers stay small and floats have few digits, so that most results
are exact whatever the order of operations; functions like sin come in now and then.
"""

from __future__ import annotations

from tapeless.testing.scope import (
    BOOL,
    C128,
    F32,
    F64,
    FLOAT,
    I32,
    I64,
    INT,
    NUMPY,
    ONE,
    UNKNOWN,
    Arr,
    Local,
    Num,
    Size,
    Variable,
    Writer,
    known,
)

COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")
# For each type, what its operands may be.
OPERANDS: dict[Num, tuple[tuple[Num, Num], ...]] = {
    FLOAT: ((FLOAT, FLOAT), (FLOAT, INT), (INT, FLOAT)),
    INT: ((INT, INT),),
    F64: ((F64, FLOAT), (F64, F64), (FLOAT, F64), (F64, INT), (F64, I64), (I64, FLOAT), (F64, F32), (F32, I64)),
    F32: ((F32, FLOAT), (F32, F32), (FLOAT, F32), (INT, F32)),
    I64: ((I64, INT), (I64, I64), (INT, I64), (I64, I32)),
    I32: ((I32, INT), (I32, I32), (INT, I32)),
    C128: ((C128, C128), (C128, FLOAT), (F64, C128), (C128, INT)),
}
INEXACT = (
    "np.sin({})",
    "np.cos({})",
    "np.tanh({})",
    "np.exp(-np.abs({}))",
    "np.sqrt(np.abs({}))",
    "np.log1p(np.abs({}))",
)
SIMPLE = ("np.abs({})", "np.floor({})", "np.square({})", "np.maximum({}, 0.5)", "np.sign({})", "np.minimum({}, 1.5)")
PYTHON = ("math.sin({})", "math.exp(-abs({}))", "math.sqrt(abs({}))", "math.tanh({})")


class Expressions(Writer):
    # -- numbers

    def number(self, t: Num, depth: int = 2) -> str:
        if depth <= 0 or self.chance(25):
            return self.leaf(t)
        if t == BOOL:
            return self.condition(depth)
        match self.weighted([(8, "op"), (2, "if"), (4, "special"), (2, "call"), (1, "max"), (1, "neg"), (1, "or")]):
            case "op":
                return self.arithmetic(t, depth)
            case "if":
                return (
                    f"({self.number(t, depth - 1)} if {self.number(BOOL, depth - 1)} else {self.number(t, depth - 1)})"
                )
            case "call":
                return self.call(t, depth) or self.arithmetic(t, depth)
            case "max" if t.real and t.weak:
                return f"{self.pick(('max', 'min'))}({self.number(t, depth - 1)}, {self.number(t, depth - 1)})"
            case "neg":
                return f"(-{self.number(t, depth - 1)})"
            case "or":  # the value of the operand that decides
                return f"({self.number(t, depth - 1)} {self.pick(('or', 'and'))} {self.number(t, depth - 1)})"
        return self.special(t, depth)

    def leaf(self, t: Num) -> str:
        found = self.numbers(t)
        if found and self.chance(80):
            return self.pick(found).name
        if t.weak or t == BOOL:
            return self.literal(t)
        element = self.element(t)
        if element and self.chance(85):
            return element
        inner = {"f64": FLOAT, "f32": FLOAT}.get(t.dtype, INT)
        text = self.pick([v.name for v in self.numbers(inner)] or [self.literal(t)]) if t.real else self.literal(t)
        return f"{NUMPY[t.dtype]}({text})"

    def literal(self, t: Num) -> str:
        match t.dtype:
            case "bool":
                return self.pick(("True", "False"))
            case "i64" | "i32":
                return str(self.pick((1, 0, 2, 3, -1, 5, -2, 7)))
            case "c128":
                return self.pick(("(1.0 + 2.0j)", "(0.5 - 1.0j)", "2.0", "1j"))
        if t.weak and self.chance(2):
            return self.pick(("np.inf", "(-np.inf)", "np.nan")) if self.chance(50) else "1e-3"
        return str(self.pick((1.0, 0.0, 0.5, 2.0, -1.0, 1.5, -0.25, 3.0)))

    def arithmetic(self, t: Num, depth: int) -> str:
        left, right = self.pick(OPERANDS[t])
        a = self.number(left, depth - 1)
        if t.dtype in ("f64", "f32", "c128") and self.chance(15):
            return f"({a} / {self.divisor(right, depth)})"
        if t.real and self.chance(20):
            return f"({a} {self.pick(('%', '//'))} {self.divisor(right, depth)})"
        if t.dtype in ("i64", "i32") and self.chance(10):
            return f"({a} {self.pick(('&', '|', '^'))} {self.number(right, depth - 1)})"
        if t.dtype in ("i64", "i32") and left == t and self.chance(5):
            return f"({a} {self.pick(('<<', '>>'))} {self.pick((1, 2, 3))})"
        if t.dtype not in ("c128",) and self.chance(5):
            return f"({self.leaf(t)} ** {self.pick((2, 3))})"
        return f"({a} {self.pick('+-*')} {self.number(right, depth - 1)})"

    def divisor(self, t: Num, depth: int) -> str:
        """Mostly not zero."""
        if self.chance(8):
            return self.number(t, depth - 1)
        text = str(self.pick((2, 4, 3, -2, 5))) if t.dtype in ("i64", "i32") else str(self.pick((2.0, 4.0, 0.5, -2.0)))
        return text if t.weak else f"{NUMPY[t.dtype]}({text})"

    def special(self, t: Num, depth: int) -> str:
        """What only this type has."""
        match t.dtype, t.weak:
            case "f64", True:
                return self._special_float(depth)
            case "i64", True:
                return self._special_int(depth)
            case (("f64" | "f32" | "i64" | "c128"), False):
                return self.reduction(t, depth)
        return self.leaf(t)

    def _special_float(self, depth: int) -> str:
        kind = self.below(10)
        if kind == 0:
            return f"abs({self.number(FLOAT, depth - 1)})"
        if kind == 2:
            return f"round({self.number(FLOAT, depth - 1)}, 1)"
        if kind == 3:
            return f"divmod({self.number(FLOAT, depth - 1)}, {self.divisor(FLOAT, depth)})[{self.below(2)}]"
        if kind == 1:
            return self.pick(PYTHON).format(self.number(FLOAT, depth - 1))
        return f"float({self.number(self.pick((F64, INT, I64, F32, I32)), depth - 1)})"

    def _special_int(self, depth: int) -> str:
        arrays = self.arrays()
        match self.below(8):
            case 0:
                return f"abs({self.number(INT, depth - 1)})"
            case 6:
                return f"divmod({self.number(INT, depth - 1)}, {self.divisor(INT, depth)})[{self.below(2)}]"
            case 7 if arrays:
                return f"int(np.count_nonzero({self.pick(arrays).name}))"
            case 1 if arrays:
                return f"len({self.pick(arrays).name})"
            case 2 if arrays:
                v = self.pick(arrays)
                assert isinstance(v.type, Arr)
                return f"{v.name}.shape[{self.below(v.type.rank)}]"
            case 3:
                return f"int(min(max({self.number(self.pick((FLOAT, F64)), depth - 1)}, -9.0), 9.0))"
            case 4:
                return f"int({self.number(BOOL, depth - 1)})"
        return f"int({self.number(self.pick((I64, I32)), depth - 1)})"

    def condition(self, depth: int) -> str:
        match self.weighted([(8, "compare"), (2, "and"), (1, "not"), (2, "chain"), (1, "any")]):
            case "and":
                return f"({self.number(BOOL, depth - 1)} {self.pick(('and', 'or'))} {self.number(BOOL, depth - 1)})"
            case "not":
                return f"(not {self.number(BOOL, depth - 1)})"
            case "chain":
                t = self.pick((INT, FLOAT, F64))
                parts = [self.number(t, depth - 1) for _ in range(3)]
                return f"({parts[0]} {self.pick(COMPARISONS)} {parts[1]} {self.pick(COMPARISONS)} {parts[2]})"
            case "any":
                found = [v for v in self.arrays() if isinstance(v.type, Arr) and v.type.dtype != "c128"]
                if found:
                    v = self.pick(found)
                    return f"np.{self.pick(('any', 'all'))}({v.name} != {self.pick((0, 1))})"
        a, b = self.pick(((INT, INT), (FLOAT, FLOAT), (F64, FLOAT), (I64, INT), (F32, FLOAT), (INT, FLOAT), (I32, I64)))
        return f"({self.number(a, depth - 1)} {self.pick(COMPARISONS)} {self.number(b, depth - 1)})"

    def reduction(self, t: Num, depth: int) -> str:
        """An array made into one number of this type."""
        options: list[str] = []
        for v in self.arrays():
            assert isinstance(v.type, Arr)
            d = v.type.dtype
            if d == t.dtype:
                options += [f"np.sum({v.name})", f"{v.name}.sum()"]
                if d in ("f64", "i64") and v.type.shape and all(s > 0 for s in v.type.shape):
                    options += [f"np.max({v.name})", f"{v.name}.min()"]
            if t == I64 and d in ("i32", "bool"):
                options.append(f"np.sum({v.name})")
            if t == I64 and d != "c128" and all(s > 0 for s in v.type.shape):
                options.append(f"np.argmax({v.name})")
            if t == F64 and d in ("i64", "f64") and all(s > 0 for s in v.type.shape):
                options.append(f"np.mean({v.name})")
        if t in (F64, F32) and self.chance(30 if options else 70):
            return self.pick(INEXACT if self.chance(40) else SIMPLE).format(self.number(t, depth - 1))
        if options:
            return self.pick(options)
        return self.leaf(t)

    def call(self, t: Num, depth: int) -> str:
        """A call of a local function that gives this type."""
        found = [f for f in self.scope.functions if f.result == t and not f.procedure]
        return self.called(self.pick(found), depth) if found else ""

    def called(self, f: Local, depth: int) -> str:
        args = [self.number(p, depth - 1) if isinstance(p, Num) else self.operand(p, depth - 1) for p in f.params]
        return f"{f.name}({', '.join(args)})"

    # -- positions

    def index(self, size: Size, array: str, axis: int = 0, depth: int = 1) -> str:
        """A position of an axis, now and then outside."""
        length = f"len({array})" if axis == 0 else f"{array}.shape[{axis}]"
        kind = self.weighted([(6, "literal"), (6, "counter"), (4, "mod"), (1, "wild")])
        counters = self.having(lambda v: v.type == INT)
        if kind == "wild" and self.chance(35):
            return self.number(INT, depth)
        if size <= UNKNOWN:
            return f"{self.number(INT, depth)} % {length}"
        n = known(size)
        if n == 0:
            return self.number(INT, depth) if self.chance(30) else f"{length} - 1"
        if kind == "literal" or (kind == "counter" and not counters):
            return str(self.below(n) if self.chance(70) else -1 - self.below(n))
        if kind == "counter":
            v = self.pick(counters)
            return (
                v.name
                if v.fixed and v.name.islower() and self.chance(60)
                else f"{v.name} % {length if self.chance(50) else n}"
            )
        return f"({self.number(INT, depth)}) % {length}"

    def element(self, t: Num) -> str:
        """An element of an array of this type."""
        found = [v for v in self.arrays(t.dtype) if 0 not in v.type.shape] or self.arrays(t.dtype)  # type: ignore[union-attr]
        if not found:
            return ""
        v = self.pick(found)
        return self.place(v)

    def place(self, v: Variable) -> str:
        assert isinstance(v.type, Arr)
        where = [self.index(s, v.name, k) for k, s in enumerate(v.type.shape)]
        if len(where) == 2 and self.chance(15):
            return f"{v.name}[{where[0]}][{where[1]}]"
        return f"{v.name}[{', '.join(where)}]"

    # -- arrays

    def array(self, t: Arr, depth: int = 2) -> str:
        """An array that shares memory with no other."""
        if depth <= 0:
            return self.made(t)
        kind = self.weighted(
            [(3, "made"), (8, "op"), (3, "function"), (2, "where"), (2, "other"), (1, "call"), (1, "copy")]
        )
        if t.dtype == "bool":
            kind = "op" if kind in ("function", "other") else kind
        match kind:
            case "op":
                return self._array_op(t, depth)
            case "function" if t.dtype in ("f64", "f32"):
                return self.pick(INEXACT if self.chance(30) else SIMPLE).format(self.operand(t, depth - 1))
            case "where":
                cond = self.operand(Arr("bool", t.shape), depth - 1)
                other = self.operand(t, depth - 1)
                first = self.operand(t, depth - 1)
                if t.dtype == "f64" and self.chance(30):
                    first = self.number(FLOAT, depth - 1)
                return f"np.where({cond}, {first}, {other})"
            case "call":
                found = [f for f in self.scope.functions if f.result == t]
                if found:
                    return self.called(self.pick(found), depth)
            case "copy":
                return f"{self.operand(t, depth - 1)}.copy()"
            case "other":
                return self._array_special(t, depth)
        return self.made(t)

    def _array_op(self, t: Arr, depth: int) -> str:
        if t.dtype == "bool":
            if self.chance(20):
                return f"({self.operand(t, depth - 1)} {self.pick('&|^')} {self.operand(t, depth - 1)})"
            dtype = self.pick(("f64", "i64", "f32", "i32"))
            right = (
                self.number(FLOAT if dtype[0] == "f" else INT, 1)
                if self.chance(60)
                else self.operand(Arr(dtype, t.shape), depth - 1)
            )
            return f"({self.operand(Arr(dtype, t.shape), depth - 1)} {self.pick(COMPARISONS)} {right})"
        left, right_type = self.pick(OPERANDS[t.element])
        if left.weak:
            a, b = self.number(left, 1), self.operand(Arr(right_type.dtype, t.shape), depth - 1)
        elif right_type.weak:
            a, b = self.operand(Arr(left.dtype, t.shape), depth - 1), self.number(right_type, 1)
        else:
            whole, part = Arr(left.dtype, t.shape), self._narrower(t.shape)
            a, b = self.operand(whole, depth - 1), self.operand(Arr(right_type.dtype, part), depth - 1)
            if self.chance(15):
                b = self.number(right_type, 1)
        op = self.pick("+-*")
        if self.chance(15) and right_type.weak and t.element.real:
            op, b = self.pick(("//", "%")), self.divisor(right_type, 1)
        elif self.chance(10) and t.dtype == "f64":
            op = "/"
        return f"({a} {op} {b})"

    def _narrower(self, shape: tuple[Size, ...]) -> tuple[Size, ...]:
        """A shape that is stretched to this one."""
        if len(shape) == 2 and self.chance(25) and all(s > UNKNOWN for s in shape):
            return self.pick((shape[1:], (1, shape[1]), (shape[0], 1)))
        if len(shape) == 1 and self.chance(5):
            return (1,)
        return shape

    def _array_special(self, t: Arr, depth: int) -> str:
        if t.rank == 1:
            for v in self.arrays(t.dtype, 2):
                assert isinstance(v.type, Arr)
                if t.dtype in ("f64", "i64") and self.chance(50):
                    if v.type.shape[1] == t.shape[0]:
                        return f"np.sum({v.name}, axis=0)"
                    if v.type.shape[0] == t.shape[0]:
                        return f"{v.name}.sum(axis=1)"
            keys = [v for v in self.arrays("i64", 1) if v.type.shape == t.shape]  # type: ignore[union-attr]
            sources = [v for v in self.arrays(t.dtype, 1) if v.type.shape[0] > 0]  # type: ignore[union-attr]
            if keys and sources and self.chance(40):
                v = self.pick(sources)
                return f"{v.name}[{self.pick(keys).name} % {'len(' + v.name + ')'}]"
            if t.dtype in ("f64", "i64") and self.chance(40):
                return f"np.cumsum({self.operand(t, depth - 1)})"
        others = [v for v in self.arrays() if v.type.shape == t.shape and v.type.dtype != t.dtype]  # type: ignore[union-attr]
        others = [v for v in others if v.type.dtype in ("bool", "i64", "i32") or t.dtype[0] in "fc"]
        others = [v for v in others if v.type.dtype != "c128"]
        if others:
            return f"{self.pick(others).name}.astype({NUMPY[t.dtype]})"
        return self.made(t)

    def made(self, t: Arr) -> str:
        """A new array that is made from numbers."""
        same = [v for v in self.arrays(t.dtype) if v.type.shape == t.shape]  # type: ignore[union-attr]
        if same and self.chance(50):
            return (
                f"({self.pick(same).name} {self.pick('+*')} {self.literal(_python(t))})"
                if t.dtype != "bool"
                else f"(~{same[0].name})"
            )
        like = [v for v in self.arrays() if v.type.shape == t.shape]  # type: ignore[union-attr]
        shape = ", ".join(self.size_text(s, k, like) for k, s in enumerate(t.shape))
        shape = shape if t.rank == 1 else f"({shape})"
        if t.dtype == "i64" and t.rank == 1 and self.chance(40):
            return f"np.arange({shape})"
        if self.chance(50):
            return f"np.{self.pick(('zeros', 'ones'))}({shape}, dtype={NUMPY[t.dtype]})"
        return f"np.full({shape}, {self.literal(_python(t))}, dtype={NUMPY[t.dtype]})"

    def size_text(self, size: Size, axis: int, like: list[Variable]) -> str:
        if like and (size <= UNKNOWN or self.chance(70)):
            return f"{self.pick(like).name}.shape[{axis}]"
        return str(known(size))

    def operand(self, t: Arr, depth: int = 1) -> str:
        """An array of this type; it may be another one, or a part of it."""
        found = [v.name for v in self.arrays(t.dtype) if v.type.shape == t.shape]  # type: ignore[union-attr]
        if found and self.chance(70):
            return self.pick(found)
        views = self.views(t)
        if views and self.chance(70):
            return self.pick(views)
        if found and (depth <= 0 or not self.chance(50)):
            return self.pick(found)
        return self.array(t, depth - 1 if depth > 0 else 0)

    def views(self, t: Arr) -> list[str]:
        """Parts of arrays that have this type."""
        found: list[str] = []
        for v in self.arrays(t.dtype):
            shape = v.type.shape  # type: ignore[union-attr]
            if t.rank == 1 and len(shape) == 1 and t.shape[0] > 1 and shape[0] > t.shape[0]:
                skip = shape[0] - t.shape[0]
                start = self.below(skip + 1)
                found.append(f"{v.name}[{start}:{start + t.shape[0]}]" if start else f"{v.name}[:-{skip}]")
            if t.rank == 1 and shape == t.shape:
                found.append(f"{v.name}[::-1]")
            if t.rank == 1 and len(shape) == 2 and shape[0] > 0 and shape[1] == t.shape[0]:
                found.append(f"{v.name}[{self.index(shape[0], v.name)}]")
            if t.rank == 1 and len(shape) == 2 and shape[1] > 0 and shape[0] == t.shape[0]:
                found.append(f"{v.name}[:, {self.index(shape[1], v.name, 1)}]")
            if t.rank == 2 and len(shape) == 2 and shape == t.shape[::-1]:
                found.append(f"{v.name}.T")
        return found

    # -- slices

    def slice(self, size: Size) -> tuple[str, Size]:
        """A slice of an axis of this size, and its own size."""
        kind = self.weighted([(4, "constant"), (2, "step"), (2, "counter"), (1, "all")])
        if kind == "all":
            return ":", size
        n = known(size) if size > UNKNOWN else None
        if kind == "counter":
            counters = self.numbers(INT)
            if counters:
                v = self.pick(counters).name
                return self.pick((f"{v}:", f":{v}", f"{v} - 1:{v} + 2")), self.new_size()
        low, high = self.pick((None, 1, 0, 2, -2)), self.pick((None, 3, -1, 2, 9))
        step = self.pick((2, -1, -2)) if kind == "step" else None
        if step is not None and step < 0:
            low, high = None, None
        text = f"{'' if low is None else low}:{'' if high is None else high}{'' if step is None else f':{step}'}"
        if text == ":":
            return ":", size
        if n is None:
            return text, self.new_size()
        length = len(range(n)[slice(low, high, step)])
        return text, ONE if length == 1 and size != 1 else length


def _python(t: Arr) -> Num:
    return FLOAT if t.dtype in ("f64", "f32") else INT if t.dtype in ("i64", "i32") else t.element
