"""Arrays of other libraries as arguments, results and in the surroundings: by protocol, then PyTorch, JAX and pandas themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tapeless as tp

X = np.array([0.5, -1.0, 2.0])


class Capsule:
    """Speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Interface:
    """Speaks NumPy's array interface."""

    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


class Convertible:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Metres(Convertible):
    """Means something else by its operators."""

    def __init__(self, array, unit="m"):
        self.array, self.unit = array, unit

    def __mul__(self, other):
        return Metres(self.array * other, self.unit + "2")


def energy(x):
    return np.sum(x * x * x)


@tp.function
def cleared(x):
    x[0] = 7.0
    return x, x[1:]


PROTOCOLS = pytest.mark.parametrize("kind", [Capsule, Interface, Convertible])


@PROTOCOLS
def test_what_speaks_a_protocol_is_an_array(kind):
    given = kind(X)
    assert tp.function(energy)(given) == energy(X)
    np.testing.assert_array_equal(tp.grad(energy)(given), 3 * X * X)
    np.testing.assert_array_equal(tp.grad(energy)(kind(X.reshape(3, 1).T[:, ::2])), 3 * X[None, ::2] ** 2)
    np.testing.assert_array_equal(tp.hvp(energy, (given,), (given,))[1], 6 * X * X)
    value, pull = tp.vjp(energy, given)
    assert value == energy(X)
    np.testing.assert_array_equal(pull(2.0)[0], 6 * X * X)
    value, push = tp.linearize(energy, given)
    assert push(given) == np.sum(3 * X**3)
    tp.check_grads(energy, (given,), order=1)
    assert "f64" in tp.grad(energy).ir(given)
    found = tp.grad(lambda p: energy(p["a"]) * p["b"][0])({"a": given, "b": (2.0, 3)})
    np.testing.assert_array_equal(found["a"], 6 * X * X)


@PROTOCOLS
def test_memory_is_the_callers(kind):
    """Without a copy; an argument that is given back is the argument itself."""
    array = X.copy()
    given = kind(array)
    whole, rest = cleared(given)
    assert array[0] == 7.0
    assert whole is given
    assert np.shares_memory(rest, array)


def test_what_cannot_be_written_is_refused():
    array = X.copy()
    array.flags.writeable = False
    with pytest.raises(tp.CompileError, match="'x' is a read-only array"):
        cleared(Convertible(array))


def test_one_array_passed_twice_is_one():
    given = Capsule(X.copy())
    assert tp.function(lambda a, b: cleared(a)[0][0] + b[0])(given, given) == 14.0


def test_surroundings():
    held = Interface(X.copy())
    other = held
    f = tp.function(lambda x: x * np.sum(held) + np.sum(other))
    assert f(1.0) == 2 * np.sum(X)
    held.array[0] = 4.5  # read at each call
    assert f(1.0) == 2 * held.array.sum()
    held = Capsule(np.ones(2))  # and another one
    assert f(1.0) == 2.0 + other.array.sum()
    held = "nothing"
    with pytest.raises(tp.CompileError):
        f(1.0)


def test_operators_of_their_own_are_kept():
    assert tp.function(lambda m: m.unit == "m")(Metres(X))
    with pytest.raises(tp.CompileError):
        tp.grad(energy)(Metres(X))


def test_element_types_and_objects_that_do_not_fit():
    with pytest.raises(tp.CompileError, match="'x' is an array of object"):
        tp.function(energy)(Convertible(np.array(["a", None])))

    class Broken(Capsule):
        def __dlpack__(self, **options):
            raise BufferError("not now")

    with pytest.raises(tp.CompileError, match=r"'x' is a Broken of .* that NumPy cannot read \(not now\)"):
        tp.function(energy)(Broken(X))


# -- the libraries


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.tensor(X)
    assert torch.equal(tp.grad(energy)(x), 3 * x * x)
    value, slope = tp.value_and_grad(energy)(x.float())
    assert isinstance(value, torch.Tensor) and value.shape == () and slope.dtype == torch.float32
    assert torch.equal(tp.vjp(energy, x)[1](torch.tensor(2.0, dtype=torch.float64))[0], 6 * x * x)
    y = torch.arange(6.0).reshape(2, 3).T
    assert torch.equal(tp.function(lambda y: y + 1.0)(y), y + 1.0)
    whole, rest = cleared(x)
    assert whole is x and x[0] == 7.0
    rest[0] = 9.0
    assert x[1] == 9.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(tp.function(lambda x: x[::-1])(x), x.flip(0))
    assert tp.function(lambda n: n + 1)(2) == 3 and tp.function(lambda x, n: n + 1)(x, 2) == 3
    for odd in (torch.ones(2, dtype=torch.bfloat16), torch.ones(2).to_sparse()):
        with pytest.raises(tp.CompileError, match="'x' is a Tensor of torch that NumPy cannot read"):
            tp.grad(energy)(odd)
    with pytest.raises(tp.CompileError, match=r"requires a gradient[\s\S]*\.detach\(\)"):
        tp.grad(energy)(torch.ones(2, requires_grad=True))
    with pytest.raises(tp.CompileError, match=r"requires a gradient"):
        tp.function(lambda: energy(parameter))()


try:
    import torch as _torch

    parameter = _torch.ones(2, requires_grad=True)
except ImportError:
    pass


def test_jax():
    jax = pytest.importorskip("jax")
    x = jax.device_put(jax.numpy.asarray(X, dtype="float32"), jax.devices("cpu")[0])
    value, slope = tp.value_and_grad(energy)(x)
    assert isinstance(value, jax.Array) and isinstance(slope, jax.Array) and slope.dtype == np.float32
    np.testing.assert_allclose(slope, 3 * X * X, rtol=1e-6)
    with pytest.raises(tp.CompileError, match="'x' is a read-only array"):
        cleared(x)
    assert tp.function(lambda x: x)(x) is x
    with pytest.raises(tp.CompileError):  # has no numbers yet
        jax.jit(tp.function(energy))(x)


def test_pandas():
    pandas = pytest.importorskip("pandas")
    s = pandas.Series(X, index=[3, 1, 2])
    np.testing.assert_array_equal(tp.grad(energy)(s), 3 * X * X)
    frame = pandas.DataFrame({"a": X, "b": X + 1})
    np.testing.assert_array_equal(tp.function(lambda d, w: d @ w)(frame, np.ones(2)), 2 * X + 1)
    assert tp.function(lambda a, b: a @ b)(s, s * 2) == 2 * (X @ X)
    with pytest.raises(tp.ArgumentError, match="different labels"):
        tp.function(lambda a, b: a + b)(s, pandas.Series(X))
