"""Python's own tools on compiled functions: containers of the user's classes, functools, pickle, copy, inspect, processes."""

from __future__ import annotations

import copy
import functools
import inspect
import linecache
import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tapeless as tp

X = np.array([0.5, -1.0, 2.0])

# -- registered classes


@tp.register_container
class Layer:
    def __init__(self, weights, bias, activation="tanh"):
        self.weights, self.bias, self.activation = weights, bias, activation

    def __call__(self, x):
        y = self.weights @ x + self.bias
        return np.tanh(y) if self.activation == "tanh" else y


@tp.register_container
class Net:
    power = 2

    def __init__(self):
        self.layers = [
            Layer(np.arange(6.0).reshape(2, 3) / 10, np.array([0.1, 0.2])),
            Layer(np.ones((1, 2)), np.zeros(1), "linear"),
        ]
        self.scale, self.count, self.frozen, self.nothing = 2.0, 3, True, None

    @property
    def first(self):
        return self.layers[0]

    def predict(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.scale

    def loss(self, x):
        return np.sum((self.predict(x) - 1.0) ** self.power) + np.sum(self.first.weights**2) / self.count


def loss(net, x):
    return net.loss(x)


def numbers(net: Net) -> list:
    return [net.layers[0].weights, net.layers[0].bias, net.layers[1].weights, net.layers[1].bias, net.scale]


def test_objects_as_arguments() -> None:
    net = Net()
    f = tp.function(loss)
    assert f(net, X) == pytest.approx(loss(net, X), rel=1e-14)
    before = f.compiled(net, X)
    other = Net()
    other.scale, other.layers[0].weights = 5.0, np.ones((2, 3))
    assert f(other, X) == pytest.approx(loss(other, X), rel=1e-14)
    assert f.compiled(other, X) is before
    other.layers[0].activation = "linear"
    assert f(other, X) == pytest.approx(loss(other, X), rel=1e-14)


@pytest.mark.parametrize("function", [loss, Net.loss], ids=["function", "method of the class"])
def test_the_gradient_is_an_object_of_the_same_class(function) -> None:
    net = Net()
    gradient = tp.grad(function)(net, X)
    assert type(gradient) is Net and type(gradient.layers[0]) is Layer and type(gradient.layers) is list
    assert (gradient.count, gradient.frozen, gradient.nothing) == (None, None, None)
    assert gradient.layers[0].activation is None
    step = 1e-6
    for found, place in zip(numbers(gradient), range(5), strict=True):
        up, down = copy.deepcopy(net), copy.deepcopy(net)
        direction = np.cos(np.arange(np.size(found))).reshape(np.shape(found))
        for moved, sign in ((up, 1), (down, -1)):
            if place == 4:
                moved.scale += sign * step * direction.item()
            else:
                numbers(moved)[place][...] += sign * step * direction
        difference = (loss(up, X) - loss(down, X)) / (2 * step)
        assert np.sum(found * direction) == pytest.approx(difference, rel=1e-5)


def test_a_step_of_training() -> None:
    net = Net()
    value, gradient = tp.value_and_grad(loss)(net, X)
    new = tp.tree_map(lambda p, g: p - 0.01 * g, net, gradient)
    assert type(new) is Net and (new.count, new.frozen, new.layers[1].activation) == (3, True, "linear")
    assert loss(new, X) < value == pytest.approx(loss(net, X))


def test_methods_with_derivatives_by_the_object() -> None:
    @tp.register_container
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @tp.grad
        def slope(self, x):
            return self.factor**2 * x

        @tp.function
        def changed(self, x):
            return tp.grad(lambda s: s.factor * x)(self), self

    scale = Scale(3.0)
    assert scale.slope(2.0).factor == 12.0
    gradient, same = scale.changed(2.0)
    assert (type(gradient), gradient.factor, type(same), same.factor) == (Scale, 2.0, Scale, 3.0)


def test_other_transforms() -> None:
    net = Net()
    out, pullback = tp.vjp(loss, net, X)
    by_net, by_x = pullback(1.0)
    np.testing.assert_allclose(by_net.layers[0].bias, tp.grad(loss)(net, X).layers[0].bias)
    _, tangent = tp.jvp(loss, (net, X), (by_net, by_x))
    _, linear = tp.linearize(loss, net, X)
    assert linear(by_net, by_x) == pytest.approx(tangent)
    assert tangent == pytest.approx(sum(np.sum(p * p) for p in numbers(by_net)) + np.sum(by_x**2))


def test_arrays_of_registered_objects_are_written() -> None:
    def clear(net):
        net.first.weights[:] = 0.0
        return net.first.weights

    net = Net()
    assert tp.function(clear)(net) is net.first.weights
    np.testing.assert_array_equal(net.first.weights, 0.0)


def test_attributes_by_hand() -> None:
    class Celsius:
        def __init__(self, degrees, label):
            self._degrees, self.label = degrees, label

        @property
        def kelvin(self):
            return self.degrees + 273.15

    def made(parts):
        found = Celsius(parts["degrees"], "made")
        found.degrees = parts["degrees"]
        return found

    tp.register_container(Celsius, lambda c: {"degrees": c._degrees}, made)
    gradient = tp.grad(lambda c: c.kelvin**2)(Celsius(1.0, "warm"))
    assert gradient.degrees == pytest.approx(2 * 274.15) and gradient.label == "made"
    with pytest.raises(tp.CompileError, match="no attribute 'label'"):
        tp.function(lambda c: c.label)(Celsius(1.0, "warm"))


@pytest.mark.parametrize(
    "cls, reason",
    [
        (type("Tuple", (tuple,), {}), "not written in Python"),
        (type("Array", (np.ndarray,), {}), "not written in Python"),
        (type("Slotted", (), {"__slots__": ("x",)}), "no __dict__"),
        (3, "takes a class"),
    ],
)
def test_classes_that_cannot_be_registered(cls, reason) -> None:
    with pytest.raises(TypeError, match=reason):
        tp.register_container(cls)


# -- leaves without derivatives


@pytest.mark.thorough
def test_leaves_without_derivatives() -> None:
    def f(p):
        scale = 1.0 if p["kind"] == "plain" or p["none"] is None else 2.0
        return np.sum(p["w"][p["at"]] ** p["n"]) * scale

    p = {"w": X, "n": 3, "kind": "plain", "none": None, "flag": True, "at": np.array([0, 2])}
    expected = np.where(np.isin(np.arange(3), [0, 2]), 3 * X**2, 0.0)
    for gradient in (tp.grad(f)(p), tp.jacfwd(f)(p), tp.jacrev(f)(p), tp.vjp(f, p)[1](1.0)[0]):
        np.testing.assert_allclose(gradient.pop("w"), expected)
        assert gradient == {"n": None, "kind": None, "none": None, "flag": None, "at": None}
    hessian = tp.hessian(lambda p: p["a"] ** p["n"])({"a": 2.0, "n": 3})
    assert hessian == {"a": {"a": 12.0, "n": None}, "n": None}


def test_something_must_have_a_derivative() -> None:
    with pytest.raises(tp.CompileError, match=r"p\['n'\] is an int"):
        tp.grad(lambda p: 1.0 * p["n"])({"n": 3, "s": "a"})


# -- tree_map


def test_tree_map_keeps_what_has_no_partner() -> None:
    tree = {"a": 1.0, "b": (2, "text"), "c": [3.0]}
    assert tp.tree_map(lambda x, y: x + y, tree, {"a": 1.0, "b": (None, None), "c": [1.0]}) == {
        "a": 2.0,
        "b": (2, "text"),
        "c": [4.0],
    }
    assert tp.tree_map(lambda x, y: x + y, tree, {"c": None, "b": None, "a": 1.0})["c"] == [3.0]
    with pytest.raises(ValueError, match="another structure"):
        tp.tree_map(lambda x, y: x + y, tree, {"a": 1.0, "b": (None,), "c": [1.0]})


# -- ints among the arguments of directional derivatives


@pytest.mark.parametrize("zero", [0, None, 0.0, np.zeros((), [("float0", "V")])], ids=repr)
def test_tangents_of_ints(zero) -> None:
    def f(x, n):
        return x**n

    assert tp.jvp(f, (2.0, 3), (1.0, zero)) == (8.0, 12.0)
    assert tp.hvp(f, (2.0, 3), (1.0, zero)) == ((12.0, None), (12.0, None))
    value, linear = tp.linearize(f, 2.0, 3)
    assert (value, linear(1.0, zero), linear(2.0, zero)) == (8.0, 12.0, 24.0)


def test_tangents_of_other_constants() -> None:
    def f(x, at, kind, flag, p):
        y = np.sum(x[at] ** 2) * p["scale"] ** p["n"]
        return y if kind == "plain" and flag else 2.0 * y

    at, p = np.array([0, 2]), {"scale": 2.0, "n": 3}
    primals = (X, at, "plain", True, p)
    tangents = (np.ones(3), np.zeros(2, int), None, False, {"scale": 0.0, "n": 0})
    value, tangent = tp.jvp(f, primals, tangents)
    assert (value, tangent) == (8 * 4.25, pytest.approx(8 * 2 * 2.5))
    assert tp.linearize(f, *primals)[1](*tangents) == pytest.approx(tangent)


@pytest.mark.parametrize("wrong", [1, 1.0, True, "a"], ids=repr)
def test_an_int_does_not_move(wrong) -> None:
    def f(x, n):
        return x**n

    for run in (tp.jvp, tp.hvp):
        with pytest.raises(tp.CompileError, match="the argument n is an int.*\n.*0 or None"):
            run(f, (2.0, 3), (1.0, wrong))
    with pytest.raises(tp.CompileError, match="the argument n is an int"):
        tp.linearize(f, 2.0, 3)[1](1.0, wrong)


def test_tangents_of_ints_in_compiled_code() -> None:
    def f(x, n):
        return x**n

    assert tp.function(lambda x, n: tp.jvp(f, (x, n), (1.0, 0))[1])(2.0, 3) == 12.0
    assert tp.function(lambda x, n: tp.linearize(f, x, n)[1](1.0, None))(2.0, 3) == 12.0
    given = tp.function(lambda x, n, t: tp.jvp(f, (x, n), (1.0, t))[1])
    assert given(2.0, 3, 0) == 12.0
    with pytest.raises(ValueError, match="must be 0 or None"):
        given(2.0, 3, 1)
    with pytest.raises(tp.CompileError, match="must be 0 or None"):
        tp.function(lambda x, n: tp.jvp(f, (x, n), (1.0, 2))[1])(2.0, 3)


# -- functools


def power(x, n, *, scale=1.0):
    """A power."""
    return scale * x**n


def test_partial_functions() -> None:
    cube = functools.partial(power, n=3, scale=2.0)
    assert tp.function(cube)(2.0) == 16.0
    assert tp.grad(cube)(2.0) == 24.0
    assert tp.grad(functools.partial(power, 2.0))(3.0) == pytest.approx(np.log(2.0) * 8.0)
    assert tp.function(cube)(2.0, scale=1.0) == 8.0
    assert tp.function(lambda x: cube(x) + 1.0)(2.0) == 17.0
    again = functools.partial(cube, n=2)
    assert tp.grad(again)(3.0) == 12.0


def test_arrays_of_partial_functions_are_read_at_each_call() -> None:
    weights = X.copy()
    f = tp.function(functools.partial(_dot, weights))
    assert f(X) == pytest.approx(X @ X)
    weights[0] = 10.0
    assert f(X) == pytest.approx(weights @ X)


def _dot(a, b):
    return np.sum(a * b)


def test_cached_functions() -> None:
    @functools.lru_cache
    def f(x):
        return x**3

    @functools.cache
    def g(x):
        return f(x) + x

    assert tp.function(f)(2.0) == 8.0
    assert tp.grad(g)(2.0) == 13.0


@pytest.mark.parametrize("kind", [staticmethod, classmethod, property])
def test_decorators_in_the_wrong_order(kind) -> None:
    with pytest.raises(tp.CompileError, match=f"write @{kind.__name__} above @tp.function"):
        tp.function(kind(power))


# -- pickle, copy and processes


def cube(x):
    return x**3


@tp.function(fastmath=True)
def compiled_cube(x):
    return x**3


@tp.grad
def slope(x):
    return x**3


@tp.custom_vjp
def ruled(x):
    return x**2


ruled.defvjp(lambda x: (x**2, x), lambda x, adjoint: (7.0 * adjoint,))


@tp.reversible
def grown(y, *, by):
    y += by


class Holder:
    def __init__(self):
        self.factor = 2.0

    def run(self, x):
        return self.factor * x**2

    @tp.function
    def compiled(self, x):
        return self.factor * x


PICKLED = {
    "function": (tp.function(cube, threads=1, check=True), 8.0),
    "decorated": (compiled_cube, 8.0),
    "other options": (tp.function(compiled_cube, unsafe=True), 8.0),
    "grad": (tp.grad(cube), 12.0),
    "grad of a compiled function": (tp.grad(compiled_cube), 12.0),
    "decorated by grad": (slope, 12.0),
    "grad of that": (tp.grad(slope), 12.0),
    "value_and_grad": (tp.value_and_grad(cube, (0,), memory="1MB", recover="store"), (8.0, (12.0,))),
    "nested": (tp.grad(tp.grad(cube)), 12.0),
    "hessian": (tp.hessian(cube), 12.0),
    "jacobian": (tp.jacobian(cube), 12.0),
    "partial": (tp.grad(functools.partial(power, n=3)), 12.0),
    "method": (tp.function(Holder().run), 8.0),
    "grad of a method": (tp.grad(Holder().run), 8.0),
    "compiled method": (Holder().compiled, 4.0),
    "own derivative": (tp.grad(ruled), 7.0),
    "function with its own derivative": (ruled, 4.0),
    "grad of vmap": (tp.function(tp.vmap(cube)), None),
}


@pytest.mark.parametrize("name", PICKLED)
def test_pickles(name) -> None:
    function, expected = PICKLED[name]
    for found in (pickle.loads(pickle.dumps(function)), copy.copy(function), copy.deepcopy(function)):
        assert type(found) is type(function)
        if expected is not None:
            assert found(2.0) == expected
        if isinstance(function, tp.Function):
            assert (found.options, found.threads, found.__name__) == (
                function.options,
                function.threads,
                function.__name__,
            )


def test_copies_share_their_code() -> None:
    gradient = tp.grad(cube)
    gradient(2.0)
    assert copy.copy(gradient).compiled(2.0) is gradient.compiled(2.0)


def test_formulae() -> None:
    assert str(tp.symbolic(Holder().run)(1.0)) == str(pickle.loads(pickle.dumps(tp.symbolic(Holder().run)))(1.0))
    assert str(tp.symbolic(Layer.__call__)) and str(inspect.signature(tp.symbolic(power))) == "(x, n, *, scale=1.0)"
    assert "layer_bias" in str(tp.symbolic(lambda layer: layer.bias**2)(Layer(X, 1.0)))


def test_reversible_functions_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(grown)) is grown
    assert pickle.loads(pickle.dumps(~grown))(3.0, by=1.0) == (2.0,)


def _call(given):
    function, x = given
    return function(x)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method) -> None:
    functions = [tp.grad(cube), compiled_cube, tp.function(Holder().run)]
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(_call, [(f, 2.0) for f in functions]) == [12.0, 8.0, 8.0]


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda: tp.grad(lambda x: x * x), "<lambda>"),
        (lambda: tp.vjp(cube, 2.0)[1], "a pullback cannot be pickled: it holds code of this process"),
        (lambda: tp.linearize(cube, 2.0)[1], "a linear map cannot be pickled"),
        (lambda: tp.custom_vjp(lambda x: x), "cannot be pickled: its module has no such name"),
    ],
)
def test_what_cannot_be_pickled_says_so(make, reason) -> None:
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError), match=reason):
        pickle.dumps(make())


# -- inspect and help


def test_names_texts_and_parameters() -> None:
    for made in (tp.function(power), tp.grad(power), tp.hessian(power), tp.grad(tp.function(power))):
        assert str(inspect.signature(made)) == "(x, n, *, scale=1.0)"
        assert made.__module__ == __name__ and "A power." in made.__doc__
        assert inspect.unwrap(made) is power
    assert tp.grad(power).__wrapped__ is power and tp.grad(power).__name__ == "grad_of_power"
    assert str(inspect.signature(tp.function(Holder().run))) == "(x)"
    assert str(inspect.signature(Holder().compiled)) == "(x)"
    assert str(inspect.signature(tp.function(functools.partial(power, n=3)))) == "(x, *, n=3, scale=1.0)"


@pytest.mark.parametrize("made_by", [tp.function, tp.grad, tp.value_and_grad, tp.jacobian])
def test_options_are_named(made_by) -> None:
    assert "memory" in made_by.__doc__
    with pytest.raises(TypeError, match="has no option 'mem': it takes .*fastmath.*; is it 'memory'"):
        made_by(cube, mem="1MB")


# -- notebooks and prompts


def cell(number: int, text: str, names: dict) -> None:
    """Runs a cell as Jupyter does."""
    name = f"/tmp/ipykernel_1/{number}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), names)


def test_cells_that_define_a_function_again() -> None:
    names = {"tp": tp, "__name__": "__main__"}
    cell(1, "def helper(x):\n    return 2 * x\n", names)
    cell(2, "@tp.function\ndef f(x):\n    return helper(x) * x\n", names)
    cell(3, "found = f(3.0), tp.grad(f)(3.0)\n", names)
    assert names["found"] == (18.0, 12.0)
    cell(4, "def helper(x):\n    return x * x\n", names)
    cell(3, "found = f(3.0), tp.grad(f)(3.0)\n", names)
    assert names["found"] == (27.0, 27.0)
    cell(2, "@tp.function\ndef f(x):\n    return helper(x) + 1\n", names)
    cell(3, "found = f(3.0), tp.grad(f)(3.0)\n", names)
    assert names["found"] == (10.0, 6.0)


PROMPT = "import tapeless as tp\ndef f(x):\n    return x * x\n\nprint(tp.grad(f)(3.0))\n"


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["-c", "stdin", "-i"])
def test_functions_without_a_file(how) -> None:
    """Python 3.13 keeps what is typed; before, there is no source."""
    arguments = [sys.executable, "-c", PROMPT] if how == "-c" else [sys.executable, *(["-i"] if how == "-i" else [])]
    ran = subprocess.run(
        arguments, input=None if how == "-c" else PROMPT, capture_output=True, text=True, timeout=120, check=False
    )
    if "6.0" not in ran.stdout:
        assert "[TP107] the source of 'f' is not available" in ran.stderr
        assert "put the function into a file" in ran.stderr
