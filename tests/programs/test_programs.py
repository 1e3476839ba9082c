"""Whole programs as people write them, beside this file one each: compiled, differentiated, and compared with plain Python.

Values are judged by the undecorated functions, gradients by central differences of them.
"""

import copy
import itertools

import numpy as np
import pytest

import tapeless as tp
from tests.programs import (
    adaptive,
    bayes,
    gaussian_process,
    heat,
    ising,
    kalman,
    kalman_in_place,
    masked_filter,
    notebook,
    pca,
    reactions,
    sgd,
    viterbi,
)


def rng():
    return np.random.default_rng(7)


def close(mine, plain, **limits):
    """The same structure, the same kinds of numbers, values up to rounding."""
    mine, plain = flat(mine), flat(plain)
    assert [name for name, _ in mine] == [name for name, _ in plain]
    for (name, a), (_, b) in zip(mine, plain):
        assert np.asarray(a).dtype == np.asarray(b).dtype, name
        np.testing.assert_allclose(a, b, **{"rtol": 1e-10, "atol": 1e-12, **limits}, err_msg=name)


def flat(tree, name="result"):
    if isinstance(tree, dict):
        return [leaf for key in tree for leaf in flat(tree[key], f"{name}[{key!r}]")]
    if isinstance(tree, tuple | list):
        return [leaf for i, part in enumerate(tree) for leaf in flat(part, f"{name}[{i}]")]
    return [(name, tree)]


def same(f, *args, **limits):
    """Compiled as plain, with the arguments that they leave behind. The result."""
    mine, plain = copy.deepcopy(args), copy.deepcopy(args)
    result, expected = tp.function(f)(*mine), f(*plain)
    close(result, expected, **limits)
    for a, b in zip(mine, plain):
        if isinstance(a, np.ndarray):
            close(a, b, **limits)
    return result


def differences(f, x, step=1e-5):
    """The gradient of a plain function of a number or an array, by differences of fourth order."""
    x = np.asarray(x, dtype=float)
    slopes = np.zeros_like(x)
    for i in np.ndindex(x.shape):

        def at(times):
            moved = x.copy()
            moved[i] += times * step
            return f(moved if x.ndim else float(moved))

        slopes[i] = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
    return slopes


def same_slopes(f, x, *rest, step=1e-4, rtol=1e-6, atol=1e-7):
    """The gradient by the first argument, with the value, against differences of plain Python."""
    value, slopes = tp.value_and_grad(f)(x, *rest)
    close(value, f(x, *rest))
    np.testing.assert_allclose(slopes, differences(lambda x: f(x, *rest), x, step), rtol=rtol, atol=atol)
    return slopes


def refused(reason):
    """A program that should work one day; a wrong result is no excuse."""
    return pytest.mark.xfail(raises=tp.CompileError, strict=True, reason=reason)


# -- a Kalman filter on an object

LOG_NOISE = np.log([0.3, 0.8])


def measurements():
    t = 0.5 * np.arange(12)
    return np.stack([t, np.sin(t)], axis=1) + 0.3 * rng().normal(size=(12, 2))


def filter_of(log_noise):
    return kalman.ConstantVelocity(0.5, log_noise)


def test_kalman():
    """A method of an object, whose attributes may change."""
    kf, z = filter_of(LOG_NOISE), measurements()
    track = tp.function(kf.track)
    close(track(z), kf.track(z))
    kf.log_noise = np.zeros(2)
    close(track(z), filter_of(np.zeros(2)).track(z))


class Fitted(kalman.ConstantVelocity):
    """The same with gradients."""


tp.register_container(Fitted)


@pytest.mark.thorough
def test_kalman_slopes():
    value, slopes = tp.value_and_grad(Fitted.loglik)(Fitted(0.5, LOG_NOISE), measurements())
    close(value, filter_of(LOG_NOISE).loglik(measurements()))
    expected = differences(lambda noise: filter_of(noise).loglik(measurements()), LOG_NOISE, 1e-4)
    np.testing.assert_allclose(slopes.log_noise, expected, rtol=1e-6)


@refused("attributes cannot be assigned to")
def test_kalman_in_place():
    mine, plain = (kalman_in_place.made(0.5, 0.3, 0.8) for _ in range(2))
    close(tp.function(mine.track)(measurements()), plain.track(measurements()))
    close((mine.x, mine.P), (plain.x, plain.P))


@refused("objects of a plain class cannot be made in compiled code")
def test_kalman_in_place_slopes():
    places = np.stack([0.5 * np.arange(12), np.sin(0.5 * np.arange(12))], axis=1)
    same_slopes(kalman_in_place.error, np.exp(LOG_NOISE), measurements(), places)


# -- a Gaussian process

THETA = np.log([0.7, 1.5, 0.1])


def points():
    X = rng().uniform(-2, 2, size=(15, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]


def test_gaussian_process():
    X, y = points()
    same_slopes(gaussian_process.neg_log_marginal_likelihood, THETA, X, y)


@pytest.mark.thorough
def test_gaussian_process_predictions():
    X, y = points()
    same(gaussian_process.predict, THETA, X, y, rng().normal(size=(4, 2)))
    same_slopes(gaussian_process.upper_confidence_bound, np.array([0.3, -0.2]), THETA, X, y)


# -- the heat equation by Fourier modes


@pytest.mark.thorough
@pytest.mark.parametrize("n", [16, 15])
def test_heat(n):
    u0, times = rng().normal(size=n), np.array([0.0, 0.01, 0.1])
    observed = heat.solve(rng().normal(size=n), 1.0, 0.1, times)
    same_slopes(heat.misfit, u0, observed, 0.1, times)


@pytest.mark.thorough
def test_heat_2d():
    u0 = rng().uniform(size=(6, 5))
    same_slopes(heat.final_energy, u0, 0.02)


# -- principal components


def table():
    return rng().normal(size=(12, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5]) + 1.0


@pytest.mark.thorough
@pytest.mark.parametrize("f", [pca.fit, pca.reconstruction_error, pca.largest_loading])
def test_pca(f):
    same(f, table(), 2)


def test_pca_whitened():
    scores = same(pca.transform, table(), 2, True)
    close(scores.std(axis=0, ddof=1), np.ones(2))


@pytest.mark.thorough
def test_pca_slopes():
    same_slopes(pca.explained_variance_ratio, table(), 2)


@pytest.mark.thorough
def test_pca_slopes_of_scores():
    same_slopes(lambda X: np.sum(pca.transform(X, 2, whiten=True)[0] ** 3), table())


# -- Bayesian regression

STATE = np.array([0.2, 0.5, -0.3, 0.1])


def regression():
    X = rng().normal(size=(20, 2))
    return X, X @ np.array([1.0, -2.0]) + 0.5 + 0.3 * rng().normal(size=20)


@pytest.mark.parametrize("robust", [False, True])
def test_bayes(robust):
    same_slopes(bayes.log_posterior, STATE, *regression(), robust)


def chain(gradient_of):
    """A chain whose gradients come from the given maker of gradients."""
    X, y = regression()
    logp = lambda theta: bayes.log_posterior(theta, X, y)
    return lambda momenta, uniforms: bayes.hmc(logp, gradient_of(logp), STATE, momenta, uniforms)


@pytest.mark.thorough
def test_bayes_chain():
    """The whole sampler compiled, gradients inside; judged by the sampler in plain Python with differences."""
    draws = rng().normal(size=(8, 4)), rng().uniform(size=8)
    states, accepted = tp.function(chain(tp.grad))(*draws)
    expected, count = chain(lambda logp: lambda theta: differences(logp, theta, 1e-4))(*draws)
    np.testing.assert_allclose(states, expected, rtol=1e-6, atol=1e-8)
    assert accepted == count > 0
    states, accepted = chain(tp.grad)(*draws)
    np.testing.assert_allclose(states, expected, rtol=1e-6, atol=1e-8)


# -- hidden states


def markov():
    """Observations, then log probabilities of starts, transitions and emissions."""
    draw = rng()
    normal = lambda *shape: np.log(draw.dirichlet(np.ones(shape[-1]), size=shape[:-1]))
    return draw.integers(0, 4, 30), normal(3), normal(3, 3), normal(3, 4)


def test_viterbi():
    obs, *tables = markov()
    path, score = same(viterbi.viterbi, obs, *tables)
    assert path.dtype == np.int8
    close(same(viterbi.path_score, path, obs, *tables), score)
    same(viterbi.transitions, path, 3)
    same(viterbi.forward, obs, *tables)


def test_viterbi_is_the_best_path():
    obs, *tables = markov()
    scores = [viterbi.path_score(np.array(p), obs[:6], *tables) for p in itertools.product(range(3), repeat=6)]
    close(tp.function(viterbi.viterbi)(obs[:6], *tables)[1], max(scores))


@pytest.mark.thorough
def test_viterbi_slopes():
    obs, log_pi, log_A, log_B = markov()
    path, _ = viterbi.viterbi(obs, log_pi, log_A, log_B)
    slopes = same_slopes(lambda A: viterbi.viterbi(obs, log_pi, A, log_B)[1], log_A)
    np.testing.assert_allclose(slopes, viterbi.transitions(path, 3)[0])  # how often the path takes each
    same_slopes(lambda A: viterbi.forward(obs, log_pi, A, log_B), log_A)


# -- the Ising model: to the bit


@pytest.mark.thorough
def test_ising():
    mine, plain = tp.function(ising.simulate)(3, 8, 0.5, 12), ising.simulate(3, 8, 0.5, 12)
    close(mine, plain, rtol=0, atol=0)


def test_ising_in_place():
    spins = np.where(rng().uniform(size=(6, 6)) < 0.5, -1, 1)
    changed = same(ising.single_flips, 5, spins, 0.4, 80, rtol=0, atol=0)
    assert np.any(changed != spins)


# -- cells of a notebook


def test_notebook():
    book, start = notebook.Notebook(), np.array([1.0, 1.0, 0.0])
    for cell in (notebook.DATA, notebook.MODEL, notebook.LOSS, notebook.FIT):
        names = book.run(cell)
    loss = names["loss"]
    close(loss(start), loss.python(start))
    np.testing.assert_allclose(tp.grad(loss)(start), differences(loss.python, start, 1e-4), rtol=1e-6)
    params, history = names["fit"](start)
    assert history == sorted(history, reverse=True)

    first = loss(start)
    book.run(notebook.MODEL_AGAIN)  # the function that a compiled one calls
    close(loss(start), loss.python(start))
    assert loss(start) != first
    np.testing.assert_allclose(tp.grad(loss)(start), differences(loss.python, start, 1e-4), rtol=1e-6)

    book.run("y = y + 1.0")  # and the data that it reads
    close(loss(start), loss.python(start))

    book.run(notebook.LOSS.replace(".mean()", ".sum()"))  # and the function itself
    again = names["loss"]
    close(again(start), 30 * loss(start))
    np.testing.assert_allclose(tp.grad(again)(start), differences(again.python, start, 1e-4), rtol=1e-6)


# -- a network of classes


def network():
    return sgd.Network([sgd.Dense.random(rng(), 3, 5), sgd.Dense.random(rng(), 5, 2, activation="none")])


def batch():
    x = rng().normal(size=(10, 3))
    return x, (x[:, 0] > x[:, 1]).astype(np.int64)


def loss(model, x, labels):
    return model.loss(x, labels)


def differences_of_loss(model, x, labels):
    """What tp.value_and_grad(loss) gives, by differences of plain Python."""
    slopes = copy.deepcopy(model)
    for layer, by in zip(model.layers, slopes.layers):
        for name in ("W", "b"):
            here = getattr(layer, name)

            def moved(part):
                setattr(layer, name, part)
                return model.loss(x, labels)

            setattr(by, name, differences(moved, here, 1e-4))
            setattr(layer, name, here)
        by.activation = None
    return model.loss(x, labels), slopes


def trained(slopes_of, optimiser):
    """A network after steps on halves of the data; the losses before each step."""
    (x, labels), model, losses = batch(), network(), []
    for i in range(16):
        value, slopes = slopes_of(model, x[i % 2 :: 2], labels[i % 2 :: 2])
        losses.append(float(value))
        model, optimiser = optimiser.step(model, slopes)
    return model, losses


@pytest.mark.thorough
def test_sgd():
    mine, losses = trained(tp.value_and_grad(loss), sgd.Momentum())
    plain, expected = trained(differences_of_loss, sgd.Momentum())
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    assert max(losses[-2:]) < 0.5 * min(losses[:2])
    assert type(mine) is sgd.Network and mine.layers[1].activation == "none"
    for a, b in zip(mine.layers, plain.layers):
        np.testing.assert_allclose(a.W, b.W, rtol=1e-6)
        np.testing.assert_allclose(a.b, b.b, rtol=1e-6, atol=1e-9)


def test_sgd_velocity_of_zeros():
    zeros = tp.tree_map(np.zeros_like, network())
    mine, plain = (trained(f, sgd.Momentum(zeros))[1] for f in (tp.value_and_grad(loss), differences_of_loss))
    np.testing.assert_allclose(mine, plain, rtol=1e-6)


# -- an image with holes


def image():
    pixels = rng().uniform(size=(9, 8))
    mask = rng().uniform(size=(9, 8)) < 0.7
    mask[:4, :4] = False
    return pixels, mask


KERNEL = np.outer([1.0, 2.0, 1.0], [1.0, 2.0, 1.0]) / 16


@pytest.mark.thorough
def test_masked_filter():
    pixels, mask = image()
    same(masked_filter.convolve, pixels, KERNEL)
    same(masked_filter.fill, pixels, mask, KERNEL)
    same(masked_filter.edges, pixels, 0.6)
    assert same(masked_filter.clip_outliers, pixels, mask, 1.2) > 0


@pytest.mark.thorough
def test_masked_filter_slopes():
    same_slopes(masked_filter.roughness, *image(), KERNEL)


# -- steps that adapt

START = np.array([2.0, 0.0])


def test_growing_lists():
    ts, ys = same(lambda mu, y0, n: adaptive.rk4(adaptive.van_der_pol, 0.0, 16.0, y0, (mu,), n), 1.5, START, 60)
    assert len(same(adaptive.crossings, ts, ys[:, 0])) == 2


def test_growing_lists_slopes():
    same_slopes(adaptive.period, 1.5, START, 16.0, 60)


def test_growing_lists_in_a_constant_loop():
    same(adaptive.period, 1.5, START, 16.0)


def test_adaptive_steps():
    _, _, rejected = same(lambda mu, y0: adaptive.rk23(adaptive.van_der_pol, 0.0, 6.0, y0, (mu,)), 3.0, START)
    assert rejected > 0


# -- reactions in dicts

AMOUNTS = {"A": 1.0, "B": 0.5, "C": 0.1}
RATES = {"bind": 2.0, "release": 0.3, "decay": 0.1}


def test_reactions():
    same(reactions.simulate, AMOUNTS, RATES, 0.05, 20)


def test_reactions_slopes():
    slopes = tp.grad(reactions.product)(RATES, AMOUNTS, 0.05, 20)
    for name in RATES:
        moved = lambda rate: reactions.product({**RATES, name: rate}, AMOUNTS, 0.05, 20)
        np.testing.assert_allclose(slopes[name], differences(moved, RATES[name], 1e-4), rtol=1e-6)


def same_error(error, *args):
    with np.errstate(all="ignore"), pytest.raises(error) as plain:
        reactions.simulate(*args)
    with pytest.raises(error) as mine:
        tp.function(reactions.simulate)(*args)
    assert str(mine.value).startswith(str(plain.value))


def test_reactions_errors():
    same_error(ValueError, {**AMOUNTS, "B": -0.25}, RATES, 0.05, 20)
    same_error(FloatingPointError, AMOUNTS, {**RATES, "bind": 1e200}, 1e9, 20)


def test_reactions_missing_rate():
    same_error(ValueError, AMOUNTS, {"bind": 2.0, "release": 0.3}, 0.05, 20)
