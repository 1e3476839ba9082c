"""Inputs of the benchmark's sizes, in its form but with arrays for lists; drawn as it draws them where that is known.

`ba`, `ht` and `lstm` of the benchmark read files: theirs are made up here, of the same sizes.
"""

import numpy as np

SEED = 31337


def hello():
    return 3.0


def llsq(n=16392, m=128):
    return {"x": np.random.RandomState(SEED).rand(m), "n": n}


def lse(n=1_280_000):
    return {"x": np.random.RandomState(SEED).rand(n)}


def det(ell=9):
    return {"A": np.random.RandomState(SEED).rand(ell * ell), "ell": ell}


def kmeans(k=100, n=10_000, d=16):
    points = np.random.RandomState(SEED).rand(n, d)
    return {"points": points, "centroids": points[-k:]}


def ode(n=1000, s=100):
    return {"x": np.random.RandomState(SEED).rand(n), "s": s}


def gmm(d=64, k=50, n=1000):
    rng = np.random.default_rng(SEED)
    x, alpha = rng.normal(size=(n, d)), rng.normal(size=k)
    mu, q = rng.uniform(size=(k, d)), rng.normal(size=(k, d))
    l = rng.normal(size=(k, d * (d - 1) // 2))
    return {"d": d, "k": k, "n": n, "x": x, "m": 0, "gamma": 1.0, "alpha": alpha, "mu": mu, "q": q, "l": l}


def ba(n=257, m=65132, p=225911):
    rng = np.random.default_rng(SEED)
    camera = np.array([0.3, -0.2, 0.1, 0.5, -0.4, 0.2, 500.0, 3.0, -4.0, 0.01, -0.02])
    return {"n": n, "m": m, "p": p, "cam": camera, "x": [0.3, 0.2, 12.0], "w": rng.uniform(), "feat": [20.0, -30.0]}


def ht(places=10_000, triangles=1084, count=1600):
    rng = np.random.default_rng(SEED)
    bones = 22
    parents = [-1, *(0 if bone % 4 == 1 else bone - 1 for bone in range(1, bones))]
    relatives = np.tile(np.eye(4), (bones, 1, 1))
    relatives[:, :3, 3] = rng.normal(size=(bones, 3))
    absolute = relatives.copy()
    for bone in range(1, bones):
        absolute[bone] = absolute[parents[bone]] @ relatives[bone]
    weights = rng.uniform(size=(places, bones))
    model = {
        "parents": parents,
        "base_relatives": relatives,
        "inverse_base_absolutes": np.linalg.inv(absolute),
        "base_positions": np.hstack([rng.normal(size=(places, 3)), np.ones((places, 1))]),
        "weights": weights / weights.sum(axis=1, keepdims=True),
        "triangles": rng.integers(0, places, (triangles, 3)),
        "is_mirrored": False,
    }
    data = {"model": model, "correspondences": rng.integers(0, triangles, count), "points": rng.normal(size=(count, 3))}
    return {"theta": rng.normal(scale=0.3, size=26), "data": data, "us": rng.uniform(0.0, 0.5, (count, 2)).tolist()}


def lstm(layers=4, length=4096, bits=14):
    rng = np.random.default_rng(SEED)
    return {
        "state": rng.uniform(size=(2 * layers, bits)),
        "main_params": rng.uniform(size=(2 * layers, 4 * bits)),
        "extra_params": rng.uniform(size=(3, bits)),
        "sequence": rng.integers(0, 2, (length, bits)),
    }


def particle():
    return {"w": 0.0}


def saddle():
    return {"start": [1.0, 1.0]}
