"""The programs, as a user would write them: scalars, loops, branches.

Each returns one number; `CASES` in cases.py says which arguments it is differentiated by.
"""

from math import cos, exp, log, sin, sqrt

import numpy as np

# -- hyper-parameter descent: how good is a rate after so many steps?


def descent(rate: float, x: np.ndarray, y: np.ndarray, steps: int) -> float:
    count = len(x)
    w = 0.0
    for _ in range(steps):
        d = 0.0
        for j in range(count):
            d += 2.0 * x[j] * (y[j] - x[j] * w) / count
        w = w + rate * d
    e = 0.0
    for j in range(count):
        e += (y[j] - x[j] * w) ** 2
    return sqrt(e) / count


def stopping_descent(rate: float, x: np.ndarray, y: np.ndarray, steps: int) -> float:
    """The same, but it stops where little moves any more: a sum over the data decides."""
    count = len(x)
    w = 0.0
    for _ in range(steps):
        d = 0.0
        for j in range(count):
            d += 2.0 * x[j] * (y[j] - x[j] * w) / count
        if abs(d) < 0.1:
            break
        w = w + rate * d
    e = 0.0
    for j in range(count):
        e += (y[j] - x[j] * w) ** 2
    return sqrt(e) / count


# -- brachistochrone: the time that a bead takes down a wire of so many pieces


def brachistochrone(y: np.ndarray, width: float) -> float:
    n = len(y) + 1
    step = width / n
    total, before, speed = 0.0, 1.0, 0.0
    for i in range(n):
        here = y[i] if i < n - 1 else 0.0
        now = sqrt(19.6 * (1.0 - here))
        length = sqrt(step * step + (here - before) ** 2)
        total += 2.0 * length / (speed + now)
        before, speed = here, now
    return total


# -- cart-pole: the loss of a few steps, by the actions


def cart_pole(actions: np.ndarray, x0: float, x1: float, x2: float, x3: float) -> float:
    loss = 0.0
    for k in range(len(actions)):
        r = 9.0 * actions[k] + 0.045 * x3 * x3 * sin(x2)
        q = (9.8 * sin(x2) - r * cos(x2)) / (0.65 - 0.4 * cos(x2) ** 2)
        p = r - 0.045 * q * cos(x2)
        x0, x1, x2, x3 = x0 + 0.02 * x1, x1 + 0.02 * p, x2 + 0.02 * x3, x3 + 0.02 * q
        short = 0.5 - max(0.0, (2.4 - abs(x0)) * (0.21 - abs(x2)))
        loss += short * short
    return loss


# -- Hamiltonian Monte Carlo: the log posterior of a logistic regression


def posterior(beta: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    rows, columns = x.shape
    u = 0.0
    for i in range(rows):
        z = 0.0
        for j in range(columns):
            z += x[i, j] * beta[j]
        u += z * (y[i] - 1.0) - log(1.0 + exp(-z))
    for j in range(columns):
        u -= beta[j] * beta[j] / 2000.0
    return u


# -- Hookean springs: the energy of a net of springs


def springs(px: np.ndarray, py: np.ndarray, first: np.ndarray, second: np.ndarray, rest: np.ndarray) -> float:
    energy = 0.0
    for e in range(len(first)):
        dx = px[first[e]] - px[second[e]]
        dy = py[first[e]] - py[second[e]]
        stretch = sqrt(dx * dx + dy * dy + 1e-6) - rest[e]
        energy += 0.5 * stretch * stretch
    return energy


# -- a walking figure: joints with limits, legs on the ground, thirteen loops


def clamp(value: float, low: float, high: float) -> float:
    if value < low:
        return low
    if value > high:
        return high
    return value


def walker(torques: np.ndarray, steps: int) -> float:
    joints = 4
    angle, rate = np.zeros(joints), np.zeros(joints)
    for j in range(joints):
        angle[j] = 0.1 * (j + 1)
    x, height, speed, rise = 0.0, 1.6, 0.3, 0.0
    effort, wobble = 0.0, 0.0
    for t in range(steps):
        for j in range(joints):
            push = clamp(torques[t, j], -2.0, 2.0)
            effort += push * push
            rate[j] = 0.98 * rate[j] + 0.02 * (push - 3.0 * sin(angle[j]))
        for j in range(joints):
            angle[j] = angle[j] + 0.02 * rate[j]
            if angle[j] > 1.2:
                angle[j], rate[j] = 1.2, 0.0
            elif angle[j] < -1.2:
                angle[j], rate[j] = -1.2, 0.0
        for leg in range(2):
            knee, foot, turn = 0.0, 0.0, 0.0
            for k in range(2):
                turn += angle[2 * leg + k]
                knee += 0.8 * cos(turn)
                foot += 0.8 * sin(turn)
            depth = knee - height
            if depth > 0.0:
                rise += 0.02 * 40.0 * depth
                grip = clamp(0.6 * depth * (0.5 - foot), -0.4, 0.4)
                speed += 0.1 * grip
        rise -= 0.02 * 9.81 * 0.1
        height += 0.02 * rise
        x += 0.02 * speed
        wobble += (height - 1.6) ** 2
    return x - 0.001 * effort - 0.1 * wobble
