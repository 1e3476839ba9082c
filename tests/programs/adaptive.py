"""An ordinary differential equation: lists that grow with each step, by fixed steps and by steps that adapt."""

import numpy as np


def van_der_pol(t, y, mu):
    return np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


def rk4(f, t0, t1, y0, args=(), n=100):
    """Times and states by n steps of the classic method of order 4."""
    h = (t1 - t0) / n
    ts, ys = [t0], [y0]
    for i in range(n):
        t, y = ts[-1], ys[-1]
        k1 = f(t, y, *args)
        k2 = f(t + h / 2, y + h / 2 * k1, *args)
        k3 = f(t + h / 2, y + h / 2 * k2, *args)
        k4 = f(t + h, y + h * k3, *args)
        ts.append(t + h)
        ys.append(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return np.array(ts), np.array(ys)


def rk23(f, t0, t1, y0, args=(), rtol=1e-5, h=0.1):
    """Bogacki and Shampine's pair of orders 3 and 2; times, states and the number of rejected steps."""
    t, y = t0, y0
    ts, ys = [t], [y]
    rejected = 0
    while t < t1:
        h = min(h, t1 - t)
        k1 = f(t, y, *args)
        k2 = f(t + 0.5 * h, y + 0.5 * h * k1, *args)
        k3 = f(t + 0.75 * h, y + 0.75 * h * k2, *args)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = f(t + h, new, *args)
        error = np.linalg.norm(h * (-5 * k1 + 6 * k2 + 8 * k3 - 9 * k4) / 72) / rtol
        if error <= 1:
            t, y = t + h, new
            ts.append(t)
            ys.append(y)
        else:
            rejected += 1
        h *= min(5.0, max(0.2, 0.9 * (error + 1e-12) ** (-1 / 3)))
    return np.array(ts), np.array(ys), rejected


def crossings(t, x):
    """The times at which x goes up through zero, between samples by a straight line."""
    found = []
    for i in range(len(x) - 1):
        if x[i] < 0 <= x[i + 1]:
            found.append(t[i] - x[i] * (t[i + 1] - t[i]) / (x[i + 1] - x[i]))
    return np.array(found)


def period(mu, y0, t1, n=60):
    """The mean time between crossings."""
    ts, ys = rk4(van_der_pol, 0.0, t1, y0, (mu,), n)
    return np.diff(crossings(ts, ys[:, 0])).mean()
