"""Methods and attributes of the user's objects in compiled code: what plain Python does with them, also after they
have changed.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import gc
import importlib
import weakref

import numpy as np
import pytest

import tapeless as tp
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

X = np.array([0.1, -0.4, 0.7])


class Base:
    rate = 2.0

    def scaled(self, x):
        return x * self.rate

    @property
    def size(self):
        return len(self.weights)

    @classmethod
    def of_class(cls, x):
        return cls.rate * x

    def name(self):
        return 1.0


class Model(Base):
    def __init__(self):
        self.weights = np.array([1.0, 2.0, 3.0])
        self.bias = 0.5
        self.mode = "tanh"
        self.nothing = None
        self.layers = [1.0, (2.0, 3.0)]
        self.table = {"a": 1.5, "w": np.array([1.0, -1.0, 0.5])}
        self.inner = Inner(np.array([0.5, 0.25, 0.125]))
        self.activation = np.tanh
        self.__hidden = 4.0

    @property
    def norm(self):
        return np.sum(self.weights**2)

    @staticmethod
    def doubled(x):
        return 2 * x

    def predict(self, x, *, shift=0.0):
        y = np.dot(self.weights, x) + self.bias + shift
        if self.mode == "tanh":
            return np.tanh(y)
        return y

    def loss(self, x):
        return self.predict(x) ** 2 + self.norm + self.layers[1][0] * self.table["a"]

    def parts(self, x):
        found = 0.0 if self.nothing is None else 1.0
        for k in range(self.size):
            found += self.inner(x)[k] * self.table["w"][k] + self.activation(x[k])
        return found + self.__hidden

    def scaled(self, x):
        return super().scaled(x) + super().of_class(x) + super().size + super().name()

    def of_classes(self, x):
        return self.doubled(x) + self.of_class(x) + self.rate + Base.of_class(x) + Base.scaled(self, x)

    def name(self):
        return 10.0

    def __call__(self, x):
        return self.loss(x)

    def store(self, x):
        for k in range(len(x)):
            self.weights[k] = x[k] * self.weights[k]
        return np.sum(self.weights)

    def count(self, x):
        self.bias += 1.0
        return x

    def replace(self, x):
        self.bias = x
        return x


class Inner:
    def __init__(self, scales):
        self.scales = scales

    def __call__(self, x):
        return self.scales * x


METHODS = ["predict", "loss", "parts", "scaled", "of_classes", "__call__"]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_a_function(method) -> None:
    run = getattr(Model(), method)
    np.testing.assert_allclose(tp.function(run)(X), run(X), rtol=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_what_is_closed_over(method) -> None:
    model = Model()

    def f(x):
        return getattr(model, method)(x)

    np.testing.assert_allclose(tp.function(f)(X), f(X), rtol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["predict", "loss", "parts", "__call__"])
def test_gradients(method) -> None:
    tp.check_grads(getattr(Model(), method), (X,))


def test_an_object_is_called() -> None:
    model = Model()
    np.testing.assert_allclose(tp.function(model)(X), model(X), rtol=1e-14)
    np.testing.assert_allclose(tp.grad(model)(X), tp.grad(model.loss)(X), rtol=1e-14)


def test_keywords() -> None:
    model = Model()
    assert tp.function(model.predict)(X, shift=2.0) == pytest.approx(model.predict(X, shift=2.0))


# -- what changes


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "bias", -1.0),
        lambda m: setattr(m, "mode", "linear"),
        lambda m: setattr(m, "weights", np.array([1.0, 1.0])),
        lambda m: setattr(m, "weights", np.array([3.0, 1.0, 2.0], np.float32)),
        lambda m: m.weights.__setitem__(0, 7.0),
        lambda m: setattr(m, "layers", [1.0, (5.0, 1.0)]),
        lambda m: m.layers.__setitem__(1, (9.0, 9.0)),
        lambda m: m.table.__setitem__("a", 8.0),
        lambda m: setattr(m, "predict", lambda x: x[0]),
        lambda m: setattr(m, "predict", Model().predict),
        lambda m: setattr(m, "__class__", Other),
    ],
)
def test_changes_are_seen(change) -> None:
    model = Model()
    f = tp.function(model.loss)
    gradient = tp.grad(model.loss)
    assert f(X) == pytest.approx(model.loss(X))
    gradient(X)
    change(model)
    x = X[: len(model.weights)]
    assert f(x) == pytest.approx(model.loss(x))
    np.testing.assert_allclose(gradient(x), tp.grad(lambda x: model.loss(x))(x))


class Other(Model):
    def predict(self, x):
        return np.sum(x) * 3.0

    @property
    def norm(self):
        return 100.0


def test_changes_of_classes_are_seen(monkeypatch) -> None:
    model = Model()
    f = tp.function(lambda x: model.loss(x) + model.of_classes(x)[0])
    assert f(X) == pytest.approx(f.python(X))
    for name, new in [
        ("predict", lambda self, x: x[1]),
        ("norm", property(lambda self: 3.0)),
        ("doubled", staticmethod(lambda x: 3 * x)),
    ]:
        monkeypatch.setattr(Model, name, new)
        assert f(X) == pytest.approx(f.python(X)), name
    monkeypatch.setattr(Base, "rate", 5.0)
    assert f(X) == pytest.approx(f.python(X))
    monkeypatch.setattr(Base, "of_class", classmethod(lambda cls, x: x - 1))
    assert f(X) == pytest.approx(f.python(X))


def test_a_changed_base_is_seen_through_super(monkeypatch) -> None:
    model = Model()
    f = tp.function(model.scaled)
    np.testing.assert_allclose(f(X), model.scaled(X))
    monkeypatch.setattr(Base, "scaled", lambda self, x: x - 1)
    np.testing.assert_allclose(f(X), model.scaled(X))


def test_new_contents_need_no_compiling() -> None:
    model = Model()
    f = tp.function(model.loss)
    f(X)
    before = f.compiled(X)
    model.weights[:] = 2.0
    assert f(X) == pytest.approx(model.loss(X)) and f.compiled(X) is before
    model.weights = np.array([5.0, 6.0, 7.0])
    assert f(X) == pytest.approx(model.loss(X)) and f.compiled(X) is before


def test_methods_asked_for_again_share_their_code() -> None:
    model = Model()
    first = tp.grad(model.loss)
    first(X)
    assert tp.grad(model.loss).compiled(X) is first.compiled(X)
    assert tp.grad(Model().loss).compiled(X) is not first.compiled(X)


# -- writing


def test_elements_are_written_in_the_object() -> None:
    mine, its = Model(), Model()
    assert tp.function(mine.store)(X) == pytest.approx(its.store(X))
    np.testing.assert_allclose(mine.weights, its.weights)


def test_under_gradients_the_object_stays() -> None:
    model = Model()
    before = model.weights.copy()
    np.testing.assert_allclose(tp.grad(model.store)(X), before)
    np.testing.assert_array_equal(model.weights, before)


@pytest.mark.parametrize("method", ["count", "replace"])
def test_attributes_cannot_be_assigned(method) -> None:
    with pytest.raises(tp.CompileError) as caught:
        tp.function(getattr(Model(), method))(1.0)
    assert caught.value.code == "TP101" and "self.bias" in str(caught.value)


def test_what_cannot_be_called() -> None:
    class Bare:
        def method(self):
            return 1.0

    bare = Bare()
    with pytest.raises(tp.CompileError, match="an object of type Bare cannot be called"):
        tp.function(lambda x: bare(x))(1.0)
    with pytest.raises(tp.CompileError, match="no attribute 'metho'.*\n(.*\n)*.*'method'"):
        tp.function(lambda x: bare.metho(x))(1.0)


def test_super_elsewhere() -> None:
    with pytest.raises(tp.CompileError, match=r"super\(\) without arguments"):
        tp.function(lambda x: super().scaled(x))(1.0)


def test_an_object_that_says_itself_what_its_attributes_are() -> None:
    class Options:
        def __init__(self):
            self.values = {"rate": 2.0}

        def __getattr__(self, name):
            return self.values[name]

    options = Options()

    def f(x):
        return options.rate * x

    compiled = tp.function(f)
    assert compiled(3.0) == 6.0
    options.values["rate"] = 5.0
    assert compiled(3.0) == 15.0


class Mode(enum.Enum):
    tanh = 1
    linear = 2.5


def test_enumerations() -> None:
    class Holder:
        mode = Mode.tanh

        def run(self, x):
            if self.mode == Mode.tanh or self.mode is Mode.tanh:
                return np.tanh(x)
            return self.mode.value * x

    holder = Holder()
    f = tp.function(holder.run)
    assert f(0.5) == pytest.approx(np.tanh(0.5))
    holder.mode = Mode.linear
    assert f(0.5) == 1.25


def test_truth_of_objects() -> None:
    class Bag:
        def __init__(self):
            self.items = []

        def __len__(self):
            return len(self.items)

    bag = Bag()
    f = tp.function(lambda x: x if bag else -x)
    assert f(1.0) == -1.0
    bag.items = [1]
    assert f(1.0) == 1.0


OTHER = """
class Frame:
    def __init__(self, table):
        self.table = table

    @property
    def values(self):
        with open("/dev/null"):
            return self.table["a"]
"""


def test_properties_of_other_packages_are_read_by_python(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "frames_of_somebody.py").write_text(OTHER)
    monkeypatch.syspath_prepend(str(folder))
    frame = importlib.import_module("frames_of_somebody").Frame({"a": X.copy()})
    f = tp.function(lambda x: np.sum(frame.values) * x)
    assert f(2.0) == pytest.approx(f.python(2.0))
    frame.table["a"][0] = 5.0
    assert f(2.0) == pytest.approx(f.python(2.0))
    frame.table["a"] = np.ones(5, np.float32)
    assert f(2.0) == pytest.approx(f.python(2.0))


def test_slots() -> None:
    class Slotted:
        __slots__ = ("rate", "weights")

        def __init__(self):
            self.rate, self.weights = 2.0, X

        def run(self, x):
            return self.rate * np.sum(self.weights * x)

    slotted = Slotted()
    f = tp.function(slotted.run)
    assert f(X) == pytest.approx(slotted.run(X))
    slotted.rate = 3.0
    assert f(X) == pytest.approx(slotted.run(X))


# -- functions in a class body


class Decorated:
    def __init__(self, scale):
        self.scale = scale

    @tp.function
    def square(self, x):
        """Of x."""
        return self.scale * x * x

    @functools.partial(tp.grad, argnums=1)
    def slope(self, x):
        return self.square(x)

    def twice(self, x):
        return self.square(self.square(x))

    @tp.function
    def __call__(self, x):
        return self.scale + x


def test_compiled_methods() -> None:
    first, second = Decorated(2.0), Decorated(3.0)
    assert (first.square(3.0), second.square(3.0), first.slope(3.0)) == (18.0, 27.0, 12.0)
    first.scale = 5.0
    assert (first.square(3.0), first.slope(3.0), first.square.python(3.0)) == (45.0, 30.0, 45.0)
    assert tp.grad(first.square)(3.0) == 30.0
    assert tp.function(first.twice)(1.0) == 125.0
    assert (first(1.0), tp.function(first)(1.0), tp.grad(first)(1.0)) == (6.0, 6.0, 1.0)
    assert tp.function(lambda x: first(x))(1.0) == 6.0
    assert "mul" in first.square.ir(1.0) and first.square.__doc__ == "Of x."
    assert Decorated.square(second, 1.0) == 3.0
    outer = tp.function(second.twice)
    assert outer(1.0) == 27.0
    second.square = lambda x: x + 1.0
    assert outer(1.0) == second.twice(1.0) == 3.0


def test_nothing_keeps_objects_alive() -> None:
    gone = []
    for _ in range(3):
        model, decorated = Model(), Decorated(2.0)
        tp.function(model.loss)(X)
        tp.grad(model.loss)(X)
        tp.function(model)(X)
        decorated.square(3.0)
        decorated.slope(3.0)
        gone += [weakref.ref(model), weakref.ref(decorated)]
        del model, decorated
    gc.collect()
    assert [ref() for ref in gone] == [None] * 6


def test_attributes_may_hide_class_methods() -> None:
    model = Model()
    f = tp.function(model.of_classes)
    np.testing.assert_allclose(f(X), model.of_classes(X))
    model.of_class = model.doubled = lambda x: 7 * x
    np.testing.assert_allclose(f(X), model.of_classes(X))


def test_compiled_functions_as_properties() -> None:
    class Held:
        def __init__(self):
            self.weights = X.copy()

        @property
        @tp.function
        def total(self):
            return np.sum(self.weights)

        @staticmethod
        @tp.function
        def doubled(x):
            return 2 * x

        def run(self, x):
            self.weights[0] = x
            return self.total * self.doubled(x)

    mine, its = Held(), Held()
    assert tp.function(mine.run)(5.0) == pytest.approx(its.run(5.0))
    np.testing.assert_array_equal(mine.weights, its.weights)


def test_an_object_as_an_argument_is_known_at_compile_time() -> None:
    def f(model, x):
        return model.loss(x)

    model = Model()
    compiled = tp.function(f)
    assert compiled(model, X) == pytest.approx(f(model, X))
    model.bias = 9.0
    assert compiled(model, X) == pytest.approx(f(model, X))
    with pytest.raises(tp.CompileError, match="register_container"):
        tp.grad(f)(model, X)


@dataclasses.dataclass
class Filled:
    data: np.ndarray
    count: int


def filled_in_a_loop(xs, filled):
    for x in xs:
        filled.data[filled.count] = x * x
        filled = dataclasses.replace(filled, count=filled.count + 1)
    return filled


def another_array_in_a_loop(xs, filled):
    for x in xs:
        filled = dataclasses.replace(filled, data=filled.data + x)
    return filled


def exchanged_in_a_loop(xs, pair):
    for x in xs:
        pair = (pair[1] * x, pair[0])
    return pair


def test_arrays_of_an_object_that_stay_may_be_written():
    xs = np.array([1.0, 2.0, 3.0])
    for f in (filled_in_a_loop, another_array_in_a_loop):
        found, expected = (g(xs, Filled(np.zeros(5), 1)) for g in (tp.function(f), f))
        assert found.count == expected.count
        np.testing.assert_array_equal(found.data, expected.data)
    pair = (np.ones(2), np.full(2, 3.0))
    for got, want in zip(tp.function(exchanged_in_a_loop)(xs, pair), exchanged_in_a_loop(xs, pair), strict=True):
        np.testing.assert_array_equal(got, want)
    slopes = tp.grad(lambda xs: np.sum(filled_in_a_loop(xs, Filled(np.zeros(5), 1)).data))(xs)
    np.testing.assert_allclose(slopes, 2 * xs)
