"""A small network as a class, trained by stochastic gradient descent with momentum; an optimiser as a dataclass."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tapeless as tp


class Dense:
    """A layer: an affine map and an activation."""

    def __init__(self, W, b, activation="tanh"):
        self.W, self.b, self.activation = W, b, activation

    @classmethod
    def random(cls, rng, n_in, n_out, **options):
        return cls(rng.normal(size=(n_in, n_out)) / np.sqrt(n_in), np.zeros(n_out), **options)

    def __call__(self, x):
        z = x @ self.W + self.b
        return np.tanh(z) if self.activation == "tanh" else z


class Network:
    def __init__(self, layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def loss(self, x, labels, weight_decay=1e-3):
        """Cross entropy of the softmax, and the squares of the weights."""
        logits = self(x)
        logits = logits - logits.max(axis=1, keepdims=True)
        logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        decay = sum(np.sum(layer.W**2) for layer in self.layers)
        return -np.mean(logp[np.arange(len(labels)), labels]) + weight_decay * decay


tp.register_container(Dense)
tp.register_container(Network)


@dataclass(frozen=True)
class Momentum:
    velocity: Any = None
    rate: float = 0.1
    decay: float = 0.9

    def step(self, model, slopes):
        if self.velocity is None:
            velocity = tp.tree_map(lambda g: -self.rate * g, slopes)
        else:
            velocity = tp.tree_map(lambda v, g: self.decay * v - self.rate * g, self.velocity, slopes)
        return tp.tree_map(np.add, model, velocity), replace(self, velocity=velocity)
