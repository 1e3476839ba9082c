"""A network of chemical reactions held in dicts, with errors that say what was wrong."""

import numpy as np

SPECIES = ("A", "B", "C")
REACTIONS = {
    "bind": (("A", "B"), ("C",)),
    "release": (("C",), ("A", "B")),
    "decay": (("C",), ()),
}


def check(state, rates):
    missing = [name for name in REACTIONS if name not in rates]
    if missing:
        raise ValueError(f"no rate for {missing[0]}")
    for name, amount in state.items():
        if amount < 0:
            raise ValueError(f"there is less than nothing of {name}: {amount:.3f}")


def fluxes(state, rates):
    return {name: rates[name] * np.prod([state[s] for s in inputs]) for name, (inputs, _) in REACTIONS.items()}


def derivative(state, rates):
    flux = fluxes(state, rates)
    change = {s: 0.0 for s in state}
    for name, (inputs, outputs) in REACTIONS.items():
        for s in inputs:
            change[s] -= flux[name]
        for s in outputs:
            change[s] += flux[name]
    return change


def simulate(state, rates, dt, steps):
    """The amounts of all species after each step: a list for each of them."""
    check(state, rates)
    history = {s: [] for s in state}
    for step in range(steps):
        middle = {s: state[s] + 0.5 * dt * d for s, d in derivative(state, rates).items()}
        change = derivative(middle, rates)
        state = {s: amount + dt * change[s] for s, amount in state.items()}
        for s, amount in state.items():
            if not np.isfinite(amount):
                raise FloatingPointError(f"{s} is {amount} after step {step + 1} of {steps}")
            history[s].append(amount)
    return {s: np.array(amounts) for s, amounts in history.items()}


def product(rates, state, dt, steps):
    """What there is of C in the end."""
    return simulate(state, rates, dt, steps)["C"][-1]
