"""The programs in CasADi: expressions of scalars (SX), whose value and gradient are one Function.

It reads and writes arrays in place, which are made once: what is timed is its evaluation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.coarsening.cases import Case
from benchmarks.workloads import as_tuple

MOST = 300_000  # records times steps that a descent may have: each is an expression


@dataclass(frozen=True)
class Evaluation:
    """Runs a Function; what it only points to is kept."""

    run: Callable[[], None]
    answer: Any
    kept: Any

    def __call__(self, *_: Any) -> Any:
        self.run()
        return self.answer


def has(case: Case) -> bool:
    """Whether there is such an expression, of a size that is practical; no loop in it ends as its numbers say."""
    name = case.program.__name__
    return name != "stopping_descent" and (name != "descent" or len(case.args[1]) * case.args[3] <= MOST)


def gradient(case: Case) -> Callable[..., Any]:
    import casadi as ca

    given = [symbol(ca, k, value) for k, value in enumerate(case.args)]
    inputs = [k for k, one in enumerate(given) if isinstance(one, ca.SX)]
    value = PROGRAMS[case.program.__name__](ca, *given)
    slopes = [ca.densify(ca.gradient(value, given[k])) for k in as_tuple(case.argnums)]
    function = ca.Function("gradient", [given[k] for k in inputs], [value, *slopes])
    buffer, run = function.buffer()
    arrays = [np.array(case.args[k], float).ravel(order="F") for k in inputs]
    made = [np.empty(one.numel()) for one in (value, *slopes)]
    for place, array in enumerate(arrays):
        buffer.set_arg(place, array.data)
    for place, array in enumerate(made):
        buffer.set_res(place, array.data)
    shapes = [np.shape(case.args[k]) for k in as_tuple(case.argnums)]
    answer = made[0].reshape(()), tuple(a.reshape(s, order="F") for a, s in zip(made[1:], shapes, strict=True))
    return Evaluation(run, answer, (function, buffer, arrays))


def symbol(ca: Any, place: int, value: Any) -> Any:
    """Numbers and arrays of numbers are inputs; counts and indices are part of the expression."""
    if isinstance(value, int) or (isinstance(value, np.ndarray) and value.dtype.kind == "i"):
        return value
    return ca.SX.sym(f"a{place}", *np.shape(value))


def descent(ca: Any, rate: Any, x: Any, y: Any, steps: int) -> Any:
    w = 0.0
    for _ in range(steps):
        w += rate * 2.0 * ca.sum1(x * (y - x * w)) / x.numel()
    return ca.sqrt(ca.sumsqr(y - x * w)) / x.numel()


def brachistochrone(ca: Any, y: Any, width: Any) -> Any:
    step = width / (y.numel() + 1)
    here = ca.vertcat(y, 0.0)
    fall = here - ca.vertcat(1.0, y)
    now = ca.sqrt(19.6 * (1.0 - here))
    return ca.sum1(2.0 * ca.sqrt(step**2 + fall**2) / (ca.vertcat(0.0, now[:-1]) + now))


def cart_pole(ca: Any, actions: Any, x0: Any, x1: Any, x2: Any, x3: Any) -> Any:
    loss = 0.0
    for k in range(actions.numel()):
        s, c = ca.sin(x2), ca.cos(x2)
        r = 9.0 * actions[k] + 0.045 * x3 * x3 * s
        q = (9.8 * s - r * c) / (0.65 - 0.4 * c**2)
        p = r - 0.045 * q * c
        x0, x1, x2, x3 = x0 + 0.02 * x1, x1 + 0.02 * p, x2 + 0.02 * x3, x3 + 0.02 * q
        loss += (0.5 - ca.fmax(0.0, (2.4 - ca.fabs(x0)) * (0.21 - ca.fabs(x2)))) ** 2
    return loss


def posterior(ca: Any, beta: Any, x: Any, y: Any) -> Any:
    z = x @ beta
    return ca.sum1(z * (y - 1.0) - ca.log(1.0 + ca.exp(-z))) - ca.sumsqr(beta) / 2000.0


def springs(ca: Any, px: Any, py: Any, first: Any, second: Any, rest: Any) -> Any:
    one, other = first.tolist(), second.tolist()
    dx, dy = px[one] - px[other], py[one] - py[other]
    return 0.5 * ca.sumsqr(ca.sqrt(dx**2 + dy**2 + 1e-6) - rest)


def walker(ca: Any, torques: Any, steps: int) -> Any:
    def clamp(value: Any, most: float) -> Any:
        return ca.fmin(ca.fmax(value, -most), most)

    push = clamp(torques, 2.0)
    angle, rate = ca.SX([0.1, 0.2, 0.3, 0.4]), ca.SX.zeros(4)
    x, height, speed, rise, wobble = 0.0, 1.6, 0.3, 0.0, 0.0
    for t in range(steps):
        rate = 0.98 * rate + 0.02 * (push[t, :].T - 3.0 * ca.sin(angle))
        angle = angle + 0.02 * rate
        rate = ca.if_else(ca.fabs(angle) > 1.2, 0.0, rate)
        angle = clamp(angle, 1.2)
        for leg in range(2):
            hip, knee = angle[2 * leg], angle[2 * leg] + angle[2 * leg + 1]
            depth = ca.fmax(0.0, 0.8 * (ca.cos(hip) + ca.cos(knee)) - height)
            rise += 0.02 * 40.0 * depth
            speed += 0.1 * clamp(0.6 * depth * (0.5 - 0.8 * (ca.sin(hip) + ca.sin(knee))), 0.4)
        rise -= 0.02 * 9.81 * 0.1
        height += 0.02 * rise
        x += 0.02 * speed
        wobble += (height - 1.6) ** 2
    return x - 0.001 * ca.sumsqr(push) - 0.1 * wobble


PROGRAMS: dict[str, Callable[..., Any]] = {
    program.__name__: program for program in (descent, brachistochrone, cart_pole, posterior, springs, walker)
}
