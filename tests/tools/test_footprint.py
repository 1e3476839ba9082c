"""The predicted peak of memory against the interpreter of Loop IR, which sees every allocation."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.lower.footprint import ROUND, footprint, outline
from tapeless.lower.ir.interp import machine
from tests.tools import gradients

PLANS = [{}, {"recover": "store"}, {"recover": "checkpoint"}, {"recover": "checkpoint:3"}, {"recover": "recompute"}]
BUDGETS = [{"memory": "100kB"}, {"memory": "300B"}, {"memory": "96B"}]
CASES = [
    *(("logistic", (0.3, 1.1, 20), plan) for plan in [*PLANS, *BUDGETS]),
    *(("logistic", (0.3, 1.1, n), {"memory": "400B"}) for n in (64, 65, 99)),  # several strips at a time
    *(("history", (0.3, 12), plan) for plan in PLANS[:3]),
    *(("in_place", (np.linspace(0.0, 1.0, 12),), plan) for plan in [{}, {"recover": "undo"}, {"recover": "recompute"}]),
    *(("leapfrog", (0.3, 0.2, 20), {"recover": how}) for how in ("store", "invert", "invert:5")),
    *(("nested", (np.linspace(0.0, 1.0, 4), 9), plan) for plan in PLANS),
    ("hinted", (0.3, 30), {}),
    ("sums", (np.ones(7),), {}),
]


class Machine(machine.Machine):
    """Remembers the most bytes that were allocated at one time."""

    peak = 0

    def execute(self, stm, scope):
        super().execute(stm, scope)
        now = sum((m.data.nbytes + ROUND) // ROUND * ROUND for m, _ in self.heap.values())
        Machine.peak = max(Machine.peak, now)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("loss", "args", "plan"), CASES)
def test_prediction(monkeypatch, loss, args, plan):
    gradient = tp.grad(tp.function(getattr(gradients, loss), threads=1), **plan)
    caller, leaves = gradient._caller(args, {})
    lowered, numbers = caller.compiled.lowered, caller.numbers(leaves)
    results = [
        np.zeros([d if isinstance(d, int) else int(numbers[d]) for d in r.shape], r.type.dtype.numpy)
        for r in lowered.array_results.values()
        if r.provided
    ]
    passed = [*(numbers[s] for s in lowered.sizes), *(x.copy() if isinstance(x, np.ndarray) else x for x in args)]
    passed += [v for k, v in numbers.items() if k.name == "room"]
    monkeypatch.setattr(machine, "Machine", Machine)
    monkeypatch.setattr(Machine, "peak", 0)
    machine.run_program(lowered.program, [*passed, *(np.ravel(r) for r in results)], 1)
    assert footprint(outline(lowered), numbers).peak == Machine.peak + sum(r.nbytes for r in results)


def test_unknown_where_a_size_shows_only_when_it_runs():
    gradient = tp.grad(gradients.until)
    caller, leaves = gradient._caller((1.0, 0.5), {})
    assert footprint(outline(caller.compiled.lowered), caller.numbers(leaves)).peak is None
    assert footprint(outline(caller.compiled.lowered), {}).peak is None
