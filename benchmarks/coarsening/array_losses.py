"""The programs as a user of an array library writes them: whole-array expressions.

Each takes a `Library` of `benchmarks.libraries`, then what `PREPARE` makes of the arguments of its program, arrays as that
library's own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries import Jax, Library


def by_tangent(lib: Library, loss: Callable[[Any], Any], at: Any) -> Any:
    """`loss(at)`; JAX takes its gradient by one tangent, as there is one input, and no reverse mode of a while loop."""
    if not isinstance(lib, Jax):
        return loss(at)
    here = lib.jax.lax.stop_gradient(at)
    value, slope = lib.jax.jvp(loss, (here,), (lib.xp.ones_like(here),))
    return value + slope * (at - here)


def change(x: Any, y: Any, w: Any) -> Any:
    return 2.0 * (x * (y - x * w)).sum() / len(x)


def error(lib: Library, x: Any, y: Any, w: Any) -> Any:
    return lib.xp.sqrt(((y - x * w) ** 2).sum()) / len(x)


def descent(lib: Library, rate: Any, x: Any, y: Any, steps: int) -> Any:
    def loss(rate: Any) -> Any:
        return error(lib, x, y, lib.loop(steps, lambda _, w: w + rate * change(x, y, w), 0.0 * rate))

    return by_tangent(lib, loss, rate)


def stopping_descent(lib: Library, rate: Any, x: Any, y: Any, steps: int) -> Any:
    def going(state: Any) -> Any:
        k, _, d = state
        return (k < steps) & (lib.xp.abs(d) >= 0.1)

    def loss(rate: Any) -> Any:
        def step(state: Any) -> Any:
            k, w, d = state
            w = w + rate * d
            return k + 1, w, change(x, y, w)

        start = 0.0 * rate
        return error(lib, x, y, lib.while_loop(going, step, (0, start, change(x, y, start)))[1])

    return by_tangent(lib, loss, rate)


def brachistochrone(lib: Library, y: Any, width: float) -> Any:
    xp, (top, bottom) = lib.xp, (lib.xp.asarray(np.array([height])) for height in (1.0, 0.0))
    step = width / (len(y) + 1)
    here = xp.concatenate([y, bottom])
    fall = here - xp.concatenate([top, y])
    speed = xp.concatenate([bottom, xp.sqrt(19.6 * (1.0 - here))])
    return (2.0 * xp.sqrt(step * step + fall**2) / (speed[:-1] + speed[1:])).sum()


def cart_pole(lib: Library, actions: Any, start: Any) -> Any:
    xp = lib.xp

    def step(k: Any, carried: Any) -> Any:
        x0, x1, x2, x3, loss = carried
        s, c = xp.sin(x2), xp.cos(x2)
        r = 9.0 * actions[k] + 0.045 * x3 * x3 * s
        q = (9.8 * s - r * c) / (0.65 - 0.4 * c**2)
        p = r - 0.045 * q * c
        x0, x1, x2, x3 = x0 + 0.02 * x1, x1 + 0.02 * p, x2 + 0.02 * x3, x3 + 0.02 * q
        room = (2.4 - xp.abs(x0)) * (0.21 - xp.abs(x2))
        return x0, x1, x2, x3, loss + (0.5 - xp.where(room > 0.0, room, 0.0)) ** 2

    return lib.loop(len(actions), step, (*start, 0.0 * start[0]))[-1]


def posterior(lib: Library, beta: Any, x: Any, y: Any) -> Any:
    z = x @ beta
    return (z * (y - 1.0) - lib.xp.log(1.0 + lib.xp.exp(-z))).sum() - (beta**2).sum() / 2000.0


def springs(lib: Library, px: Any, py: Any, first: Any, second: Any, rest: Any) -> Any:
    dx, dy = px[first] - px[second], py[first] - py[second]
    return 0.5 * ((lib.xp.sqrt(dx * dx + dy * dy + 1e-6) - rest) ** 2).sum()


def walker(lib: Library, torques: Any, steps: int) -> Any:
    xp = lib.xp
    push = xp.clip(torques, -2.0, 2.0)

    def step(t: Any, carried: Any) -> Any:
        angle, rate, x, height, speed, rise, wobble = carried
        rate = 0.98 * rate + 0.02 * (push[t] - 3.0 * xp.sin(angle))
        angle = angle + 0.02 * rate
        rate = xp.where(xp.abs(angle) > 1.2, 0.0, rate)
        angle = xp.clip(angle, -1.2, 1.2)
        turn = xp.cumsum(angle.reshape(2, 2), 1)
        depth, foot = 0.8 * xp.cos(turn).sum(1) - height, 0.8 * xp.sin(turn).sum(1)
        depth = xp.where(depth > 0.0, depth, 0.0)
        speed = speed + 0.1 * xp.clip(0.6 * depth * (0.5 - foot), -0.4, 0.4).sum()
        rise = rise + 0.02 * 40.0 * depth.sum() - 0.02 * 9.81 * 0.1
        height = height + 0.02 * rise
        return angle, rate, x + 0.02 * speed, height, speed, rise, wobble + (height - 1.6) ** 2

    angle, zero = xp.asarray(0.1 * np.arange(1, 5)), 0.0 * torques[0, 0]
    state = lib.loop(steps, step, (angle, 0.0 * angle, zero, zero + 1.6, zero + 0.3, zero, zero))
    return state[2] - 0.001 * (push**2).sum() - 0.1 * state[-1]


PREPARE = {
    "descent": lambda rate, *rest: (np.array(rate), *rest),
    "stopping_descent": lambda rate, *rest: (np.array(rate), *rest),
    "cart_pole": lambda actions, *start: (actions, np.array(start)),
}
