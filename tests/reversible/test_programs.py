"""Published programs as reversible functions: bundle adjustment, a graph embedding, a mixture of Gaussians."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import tapeless as tp
from benchmarks import programs

pytestmark = pytest.mark.filterwarnings("error::tapeless.errors.InversionDrift")

DATA = Path(__file__).parents[1] / "data/gradbench"


# -- bundle adjustment


@tp.reversible
def rotate(out, r, y):
    """Adds y, turned by the rotation vector r, to out."""
    with tp.ancilla(0.0) as angle, tp.ancilla(np.zeros(3)) as axis:
        with tp.compute:
            angle += np.sqrt(np.sum(r**2))
            axis += r / angle
        out += y * np.cos(angle) + np.cross(axis, y) * np.sin(angle) + axis * (axis @ y) * (1 - np.cos(angle))


@tp.reversible
def reprojection(out, camera, point, w, *, feature):
    """Adds how far from a feature a camera sees a point, times a weight."""
    with tp.ancilla(np.zeros(3)) as moved, tp.ancilla(np.zeros(3)) as seen, tp.ancilla(np.zeros(2)) as flat:
        with tp.ancilla(0.0) as square:
            with tp.compute:
                moved += point - camera[3:6]
                rotate(seen, camera[:3], moved)
                flat += seen[:2] / seen[2]
                square += np.sum(flat**2)
            out += w * (flat * (1 + camera[9] * square + camera[10] * square**2) * camera[6] + camera[7:9] - feature)


@tp.reversible
def weight_error(out, w):
    out += 1 - w**2


ROWS = [
    [
        -461.446321002, 178.867928014, -19.4239164722, -3.06159834204, 6.39245755623, -3.3402822813, 0.264760249207,
        0.417022, 0, 243.628245661, 676.486778266, 3.06159834204, -6.39245755623, 3.3402822813, 0.242998781634,
    ],
    [
        -803.743623365, -309.595417523, 604.780284663, -15.0496281703, 6.24848631208, 3.2194799516, 0.838196085731,
        0, 0.417022, 771.294945137, 2141.66806116, 15.0496281703, -6.24848631208, -3.2194799516, -0.165381600789,
    ],
]  # fmt: skip


def test_bundle_adjustment():
    given = json.loads((DATA / "ba_objective_ba1.json").read_text())["input"]
    camera, point, feature = (np.array(given[name]) for name in ("cam", "x", "feat"))
    w = given["w"]
    end = reprojection(np.zeros(2), camera.copy(), point.copy(), w, feature=feature)
    np.testing.assert_allclose(end[0], [0.10133583791441924, -0.068967765924400722], rtol=1e-10)
    start = (~reprojection)(*end, feature=feature)
    np.testing.assert_allclose(start[0], 0, atol=1e-15)
    np.testing.assert_array_equal(start[1], camera)

    def errors(camera, point, w):
        return reprojection(np.zeros(2), camera, point, w, feature=feature)[0]

    jacobian = tp.jacrev(errors, argnums=(0, 1, 2))(camera, point, w)
    rows = np.hstack((jacobian[0], jacobian[1], jacobian[2][:, None]))
    np.testing.assert_allclose(rows, ROWS, rtol=1e-10)
    assert weight_error(0.0, w)[0] == pytest.approx(0.826092651516, rel=1e-12)
    assert tp.grad(lambda w: weight_error(0.0, w)[0])(w) == pytest.approx(-0.834044, rel=1e-12)


# -- an embedding of the Petersen graph

LINKED = np.array(
    [[i, (i + 1) % 5] for i in range(5)] + [[i, i + 5] for i in range(5)] + [[5 + i, 5 + (i + 2) % 5] for i in range(5)]
)
APART = np.array([p for p in itertools.combinations(range(10), 2) if set(p) not in [set(link) for link in LINKED]])


@tp.reversible
def spread(variance, mean, x, *, pairs):
    """Adds the variance and the mean of the distances of pairs of points."""
    with tp.ancilla(np.zeros(len(pairs))) as lengths, tp.ancilla(0.0) as middle:
        with tp.compute:
            for k in range(len(pairs)):
                lengths[k] += np.sqrt(np.sum((x[pairs[k, 0]] - x[pairs[k, 1]]) ** 2))
            middle += np.sum(lengths) / len(pairs)
        variance += np.sum((lengths - middle) ** 2) / len(pairs)
        mean += middle


@tp.reversible
def embedding(loss, x, *, linked, apart):
    """0 where linked points are all equally far from each other, and the others, too, and farther."""
    with tp.ancilla(0.0) as near, tp.ancilla(0.0) as far, tp.ancilla(0.0) as variances:
        with tp.compute:
            spread(variances, near, x, pairs=linked)
            spread(variances, far, x, pairs=apart)
        loss += variances + np.exp(max(near - far + 0.1, 0.0)) - 1


def plain_spread(x, pairs):
    lengths = np.sqrt(np.sum((x[pairs[:, 0]] - x[pairs[:, 1]]) ** 2, axis=1))
    return np.var(lengths), np.mean(lengths)


def plain_embedding(x):
    (v1, near), (v2, far) = plain_spread(x, LINKED), plain_spread(x, APART)
    return v1 + v2 + np.exp(max(near - far + 0.1, 0.0)) - 1


def known_embedding():
    """By the eigenvectors of eigenvalue 1 of the graph."""
    adjacency = np.zeros((10, 10))
    adjacency[LINKED[:, 0], LINKED[:, 1]] = adjacency[LINKED[:, 1], LINKED[:, 0]] = 1
    values, vectors = np.linalg.eigh(adjacency)
    chosen = np.abs(values - 1) < 1e-9
    assert chosen.sum() == 5 and len(LINKED) == 15 and len(APART) == 30
    return np.sqrt(2) * vectors[:, chosen]


@pytest.mark.thorough
def test_petersen_graph():
    x = known_embedding()
    for pairs, length in ((LINKED, math.sqrt(4 / 3)), (APART, math.sqrt(8 / 3))):
        variance, mean, _ = spread(0.0, 0.0, x.copy(), pairs=pairs)
        assert (variance, mean) == (pytest.approx(0, abs=1e-15), pytest.approx(length, rel=1e-14))

    def loss(x):
        return embedding(0.0, x, linked=LINKED, apart=APART)[0]

    value, gradient = tp.value_and_grad(loss)(x)
    assert value == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(gradient, 0, atol=1e-14)

    elsewhere = x + 0.5 * np.random.default_rng(1).normal(size=x.shape)
    value, gradient = tp.value_and_grad(loss)(elsewhere)
    wanted, slopes = tp.value_and_grad(plain_embedding)(elsewhere)
    assert value == pytest.approx(wanted, rel=1e-13)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-13)
    end = embedding(0.0, elsewhere.copy(), linked=LINKED, apart=APART)
    assert (~embedding)(*end, linked=LINKED, apart=APART)[0] == pytest.approx(0, abs=1e-15)


# -- a mixture of Gaussians with a Wishart prior


@tp.reversible
def logsumexp(out, x):
    with tp.ancilla(np.max(x)) as top:
        out += top + np.log(np.sum(np.exp(x - top)))


@tp.reversible
def triangles(t, q, l):
    """Adds lower triangles, of which q has the logarithms of the diagonals and l what is below, column by column."""
    for c in range(len(q)):
        for j in range(q.shape[1]):
            t[c, j, j] += np.exp(q[c, j])
            for i in range(j + 1, q.shape[1]):
                t[c, i, j] += l[c, j * q.shape[1] - j * (j + 1) // 2 + i - j - 1]


@tp.reversible
def gmm(out, alpha, mu, q, l, *, x, m, gamma):
    """Adds the log of the posterior."""
    with tp.ancilla(np.zeros((len(q), q.shape[1], q.shape[1]))) as t, tp.ancilla(np.zeros((len(x), len(q)))) as score:
        with tp.compute:
            triangles(t, q, l)
            for i in range(len(x)):
                for c in range(len(q)):
                    score[i, c] += alpha[c] + np.sum(q[c]) - np.sum((t[c] @ (x[i] - mu[c])) ** 2) / 2
        for i in range(len(x)):
            logsumexp(out, score[i])
        out += m * np.sum(q) - gamma**2 / 2 * np.sum(t**2)
    with tp.ancilla(0.0) as total:
        with tp.compute:
            logsumexp(total, alpha)
        out -= len(x) * total
    out += constant(len(x), q.shape[1], len(q), m, gamma)


def constant(n, d, k, m, gamma):
    """What does not depend on the parameters."""
    freedom = d + m + 1
    log_gamma = d * (d - 1) / 4 * math.log(math.pi)
    for j in range(d):
        log_gamma += math.lgamma((freedom - j) / 2)
    return k * (freedom * d * (math.log(gamma) - math.log(2) / 2) - log_gamma) - n * d / 2 * math.log(2 * math.pi)


def mixture(name):
    vector = json.loads((DATA / f"{name}.json").read_text())
    given = vector["input"]
    parameters = [np.array(given[p]) for p in ("alpha", "mu", "q", "l")]
    return np.array(given["x"]), parameters, given["m"], given["gamma"], vector["output"]


def test_mixture():
    x, parameters, m, gamma, wanted = mixture("gmm_objective_d4_k3_n6_m2")
    end = gmm(0.0, *(p.copy() for p in parameters), x=x, m=m, gamma=gamma)
    assert end[0] == pytest.approx(wanted, rel=1e-12)
    start = (~gmm)(*end, x=x, m=m, gamma=gamma)
    assert start[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["gmm_jacobian_d2_k2_n5_m0", "gmm_jacobian_d4_k3_n6_m2"])
def test_gradient_of_mixture(name):
    x, parameters, m, gamma, wanted = mixture(name)

    def reversible(alpha, mu, q, l):
        return gmm(0.0, alpha, mu, q, l, x=x, m=m, gamma=gamma)[0]

    def plain(alpha, mu, q, l):
        return programs.gmm(x, alpha, mu, q, l, m, gamma)

    found = tp.grad(reversible, argnums=(0, 1, 2, 3))(*parameters)
    others = tp.grad(plain, argnums=(0, 1, 2, 3))(*parameters)
    for p, g, h in zip(("alpha", "mu", "q", "l"), found, others, strict=True):
        np.testing.assert_allclose(g, wanted[p], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(g, h, rtol=1e-9, atol=1e-12)
