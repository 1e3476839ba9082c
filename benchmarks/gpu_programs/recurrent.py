"""Recurrent networks: a layer of LSTM cells over a batch in float32, and stacked cells with diagonal weights in float64."""

import math

import numpy as np

import tapeless as tp
from benchmarks.gpu_programs.case import Arguments, Case, Random


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def lstm(weights, x, y, hidden, cell):
    """The mean squared error of what is predicted from the states; x and y have a row of each sequence per step."""
    of_input, of_hidden, input_bias, hidden_bias, of_state, bias = weights
    steps, width = len(x), hidden.shape[1]
    inputs = x @ of_input.T + (input_bias + hidden_bias)
    states = np.empty((steps, *hidden.shape), x.dtype)
    for t in range(steps):
        gates = inputs[t] + hidden @ of_hidden.T
        ingate = sigmoid(gates[:, :width])
        forget = sigmoid(gates[:, width : 2 * width])
        change = np.tanh(gates[:, 2 * width : 3 * width])
        outgate = sigmoid(gates[:, 3 * width :])
        cell = forget * cell + ingate * change
        hidden = outgate * np.tanh(cell)
        states[t] = hidden
    return np.mean((states @ of_state.T + bias - y) ** 2)


def make_lstm(rng: Random, batch: int, steps: int, d: int, h: int) -> Arguments:
    def uniform(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, size=shape).astype(np.float32) / np.float32(math.sqrt(h))

    x, y = (rng.random((steps, batch, d), dtype=np.float32) for _ in range(2))
    hidden, cell = uniform(batch, h), uniform(batch, h)
    shapes = (4 * h, d), (4 * h, h), (4 * h,), (4 * h,), (d, h), (d,)
    return tuple(uniform(*shape) for shape in shapes), x, y, hidden, cell


def dlstm(main, extra, state, sequence):
    """How badly the next character is predicted from those before; a character is a row of bits."""
    layers, width = len(state) // 2, state.shape[1]
    blocks = main.reshape(layers, 2, 4, width)
    hidden, cell = state[0::2].copy(), state[1::2].copy()
    total = 0.0
    for t in range(len(sequence) - 1):
        u = sequence[t] * extra[0]
        for i in range(layers):
            weight, bias = blocks[i, 0], blocks[i, 1]
            forget = sigmoid(u * weight[0] + bias[0])
            ingate = sigmoid(hidden[i] * weight[1] + bias[1])
            outgate = sigmoid(u * weight[2] + bias[2])
            change = np.tanh(hidden[i] * weight[3] + bias[3])
            cell[i] = cell[i] * forget + ingate * change
            hidden[i] = outgate * np.tanh(cell[i])
            u = hidden[i]
        y = u * extra[1] + extra[2]
        total += np.sum(sequence[t + 1] * (y - np.log(2.0 + np.sum(np.exp(y)))))
    return -total / ((len(sequence) - 1) * width)


def make_dlstm(rng: Random, layers: int, characters: int, bits: int) -> Arguments:
    sequence = (rng.random((characters, bits)) < 0.5).astype(np.float64)
    shapes = (2 * layers, 4 * bits), (3, bits), (2 * layers, bits)
    return (*(rng.normal(size=shape) * 0.5 for shape in shapes), sequence)


CASES = (
    Case(
        "lstm",
        "sequences in a batch, their steps, numbers per step and of a state; gradient by all weights",
        ((1024, 20, 300, 192), (1024, 300, 80, 256)),
        ((3, 4, 5, 6),),
        make_lstm,
        lstm,
        tp.value_and_grad(lstm),
    ),
    Case(
        "dlstm",
        "layers, characters and bits of each; gradient by all weights",
        ((2, 1024, 14), (4, 4096, 14)),
        ((2, 12, 5),),
        make_dlstm,
        dlstm,
        tp.value_and_grad(dlstm, argnums=(0, 1)),
    ),
)
