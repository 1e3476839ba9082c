"""Random statements: which kinds there are and how often, branches, local functions.

`Statements` writes the body of a function into its lines. Names keep their type on every path, loops end, and arrays
are rebound only where it stays known which array a name refers to; what the compiler still refuses is dropped later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tapeless.testing.assignments import NUMBERS
from tapeless.testing.loops import Loops
from tapeless.testing.scope import BOOL, F64, FLOAT, INT, Arr, Choose, Local, Num, Type


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
            (1 * arrays, self.array_pair),
            (1, self.default),
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
                (2, self.array_pair),
                (1, self.default),
            ]

    def body(self, most: int) -> None:
        """Up to so many statements."""
        for _ in range(1 + self.below(most)):
            if self.left <= 0:
                return
            self.left -= 1
            if not self.weighted(self.kinds)():
                self.assign_number()

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
