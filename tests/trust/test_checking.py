"""`tp.check_grads` looks at what it says, takes what can be differentiated, and shows true entries; options of transforms."""

import numpy as np
import pytest

import tapeless as tp

X = np.array([1.0, 2.0, 3.0])


def custom(backward):
    @tp.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), backward)
    return square


right = custom(lambda x, g: (2 * x * g,))
wrong = custom(lambda x, g: (3 * x * g,))
constant_slope = custom(lambda x, g: (2 * tp.stop_gradient(x) * g,))


@pytest.mark.parametrize(
    "f",
    [right, np.sin, tp.vmap(lambda t: t**3), tp.function(lambda x: x**2)],
    ids=["custom", "ufunc", "vmap", "function"],
)
def test_m_check_grads_takes_whatever_can_be_differentiated(f):
    tp.check_grads(f, (X,), order=1)


@pytest.mark.parametrize(
    "f, args, says",
    [
        (wrong, (2.0,), "reverse mode gives 6.0 for the derivative of result by x, differences give 3.99999999"),
        (wrong, (X,), r"reverse mode gives 9.0 for the derivative of result\[2\] by x\[2\], differences give 6.0"),
        (lambda p: np.sum(wrong(p["a"])), ({"a": X},), r"9.0 for the derivative of result by p\['a'\]\[2\], .* give 6"),
        (
            lambda x, y: (y, {"b": y * wrong(x)}),
            (X, 2.0),
            r"18.0 for the derivative of result\[1\]\['b'\]\[2\] by x\[2\]",
        ),
    ],
)
def test_m_check_grads_shows_entries_of_the_jacobian(f, args, says):
    with pytest.raises(AssertionError, match=says):
        tp.check_grads(f, args, order=1)


def test_m_check_grads_shows_entries_of_second_derivatives():
    with pytest.raises(
        AssertionError, match=r"gives 0.0 for the derivative of d\(result\)/d\(x\) by x, .* give [12]\."
    ):
        tp.check_grads(constant_slope, (2.0,), modes="rev")
    with pytest.raises(
        AssertionError, match=r"0.0 for the derivative of d\(result\[(.)\]\)/d\(x\[\1\]\) by x\[\1\], .* [12]\."
    ):
        tp.check_grads(constant_slope, (X[:2],), modes="rev")


def test_check_grads_takes_complex_numbers():
    z = np.array([1.5 - 0.5j, 0.25 + 2j])
    tp.check_grads(lambda z, x: (abs(z), z * x, {"c": np.conj(z) ** 2, "n": 3}), (z, X[:2]), order=2)
    tp.check_grads(lambda x: (x * 1j, x**2), (X,), order=2)
    tp.check_grads(lambda z: z.real * z, (2 - 1j,), order=2)
    tp.check_grads(lambda z: z.imag * z, (z.astype(np.complex64),), order=1)
    says = r"gives -?[0-9.e-]+ for the derivative of result\[1\].(real|imag) by z\[1\].(real|imag), differences"
    with pytest.raises(AssertionError, match=says):
        tp.check_grads(lambda z: wrong(z), (z,), order=1)


def test_m_check_grads_refuses_to_check_nothing():
    for order in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="order is 1 or more"):
            tp.check_grads(right, (2.0,), order=order)
    with pytest.raises(ValueError, match="nothing to check"):
        tp.check_grads(lambda x: 3, (2.0,))
    with pytest.raises(ValueError, match="nothing to check"):
        tp.check_grads(right, (np.zeros(0),))
    with pytest.raises(TypeError, match="a tuple of arguments"):
        tp.check_grads(right, X)
    with pytest.raises(ValueError, match="the argument n is not made of floats"):
        tp.check_grads(lambda x, n: x**n, (2.0, 3))
    tp.check_grads(lambda x: x**3, (2.0,), order=1)  # as the message says


# -- options


def entropy(x):
    return x * np.log(x)


def test_m_transforms_take_the_options_of_functions():
    for run in (
        lambda: tp.grad(entropy, debug_nans=True)(-1.0),
        lambda: tp.vjp(entropy, -1.0, debug_nans=True)[1](1.0),
        lambda: tp.jacrev(entropy, debug_nans=True)(-1.0),
    ):
        with pytest.raises(FloatingPointError, match="is NaN"):
            run()
    assert np.isnan(tp.grad(entropy)(-1.0))
    assert tp.grad(entropy, threads=1, cache=False, memory="1MB")(1.0) == 1.0
    assert tp.jvp(entropy, (1.0,), (1.0,), threads=1)[1] == tp.hvp(entropy, (1.0,), (1.0,), check=True)[0] == 1.0
    assert tp.linearize(entropy, 1.0, unsafe=True, recover="store")[1](1.0) == 1.0


def test_m_options_that_are_none():
    for name, run in {
        "grad": lambda: tp.grad(entropy, fast=True),
        "vjp": lambda: tp.vjp(entropy, 1.0, fast=True),
        "linearize": lambda: tp.linearize(entropy, 1.0, fast=True),
        "hvp": lambda: tp.hvp(entropy, (1.0,), (1.0,), fast=True),
    }.items():
        with pytest.raises(TypeError, match=rf"tp\.{name} has no option 'fast': it takes .*debug_nans"):
            run()
    with pytest.raises(ValueError, match=r"tp\.grad: threads must be"):
        tp.grad(entropy, threads=0)
    with pytest.raises(tp.CompileError, match=r"inside compiled code(?s:.*)@tp\.function\(debug_nans=\.\.\.\)"):
        tp.function(lambda x: tp.grad(entropy, debug_nans=True)(x))(1.0)
    assert np.isnan(tp.function(lambda x: tp.grad(entropy)(x))(-1.0))
    with pytest.raises(FloatingPointError):
        tp.function(lambda x: tp.grad(entropy)(x), debug_nans=True)(-1.0)


def _roots(x):
    return np.sqrt(x)


def _logs_of_some(x):
    y = x - 1.0
    z = np.log(y)
    return np.sum(np.where(np.isnan(z), 0.0, z))


def _quotients(x):
    s = 0.0
    for v in x:
        s = s + v / (v - v)
    return s


def _differences(x):
    s = x[0]
    for v in x:
        s = s - v * np.inf
    return s


def _made_elsewhere(x):
    return np.empty(len(x)).copy()


def _filled(x):
    out = _made_elsewhere(x)
    for i in range(3):
        out[i] = x[i]
    return out


@pytest.mark.filterwarnings("ignore")
def test_debug_nans_sees_values():
    x = np.array([-1.0, 0.0, 3.0])
    for f in (_roots, _logs_of_some, _quotients, _differences):
        with pytest.raises(FloatingPointError, match=r"NaN(?s:.*)test_checking\.py:\d+") as raised:
            tp.function(f, debug_nans=True)(x)
        line = int(str(raised.value).rsplit(":", 1)[1].rstrip(")"))
        assert 0 < line - f.__code__.co_firstlineno < 5
        tp.function(f)(x)
    np.testing.assert_array_equal(tp.function(_filled, debug_nans=True)(x), x)
    with pytest.raises(FloatingPointError):
        tp.jvp(_roots, (x,), (x,), debug_nans=True)
    with pytest.raises(FloatingPointError):
        tp.grad(_logs_of_some, debug_nans=True)(x)


def test_debug_nans_leaves_programs_as_they_are():
    def counted(x):
        i = 0
        x[(i := i + 1)] += 1.0
        k = [0, 1]
        x[k.pop()] += 2.0
        return i, len(k)

    def summed(x):
        t, m = 0.0, 0.0
        for i in tp.prange(len(x)):
            t += x[i] * 2.0
            m = max(m, x[i] * 2.0)
        return t + m

    x, y = np.ones(3), np.ones(3)
    assert tp.function(counted, debug_nans=True)(x) == counted(y) == (1, 1)
    np.testing.assert_array_equal(x, y)
    assert tp.function(summed, debug_nans=True)(np.arange(4.0)) == 18.0
