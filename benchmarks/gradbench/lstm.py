"""lstm: stacked LSTM cells with diagonal weights that predict the next character."""

import numpy as np

import tapeless as tp
from benchmarks.gradbench.task import Task, floats


def sigmoid(v):
    return 1.0 / (1.0 + np.exp(-v))


def objective(main, extra, state, sequence):
    layers, width = len(state) // 2, state.shape[1]
    blocks = main.reshape(layers, 2, 4, width)
    hidden = np.empty((layers, width))
    cell = np.empty((layers, width))
    hidden[:] = state[0::2]
    cell[:] = state[1::2]
    total = 0.0
    for t in range(len(sequence) - 1):
        u = sequence[t] * extra[0]
        for i in range(layers):
            w, bias = blocks[i, 0], blocks[i, 1]
            forget = sigmoid(u * w[0] + bias[0])
            ingate = sigmoid(hidden[i] * w[1] + bias[1])
            outgate = sigmoid(u * w[2] + bias[2])
            change = np.tanh(hidden[i] * w[3] + bias[3])
            cell[i] = cell[i] * forget + ingate * change
            u = outgate * np.tanh(cell[i])
            hidden[i] = u
        y = u * extra[1] + extra[2]
        total += (sequence[t + 1] * (y - np.log(2.0 + np.exp(y).sum()))).sum()
    return -total / ((len(sequence) - 1) * width)


def jacobian(main, extra, state, sequence):
    return tp.grad(objective, argnums=(0, 1))(main, extra, state, sequence)


def arguments(given):
    return tuple(floats(given[name]) for name in ("main_params", "extra_params", "state", "sequence"))


def flat(result, _arguments):
    return np.concatenate([part.ravel() for part in result]).tolist()


EXAMPLE = {
    "main_params": np.linspace(0.1, 0.9, 4 * 20).reshape(4, 20).tolist(),
    "extra_params": np.linspace(0.1, 0.9, 3 * 5).reshape(3, 5).tolist(),
    "state": np.linspace(0.1, 0.9, 4 * 5).reshape(4, 5).tolist(),
    "sequence": (np.arange(6 * 5) % 2).reshape(6, 5).tolist(),
}
TASKS = {"objective": Task(objective, arguments), "jacobian": Task(jacobian, arguments, flat)}
