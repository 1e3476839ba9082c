"""Arguments, options and functions that are refused before or at the call."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.errors import CallError
from tests.errors.rejected import Program, Rejected, message, text_of

rejected = Rejected()


@rejected(np.ones(3, np.float16))
def half_precision(a):
    return a.sum()


@rejected(1.0, np.array([1, "a", None], dtype=object))
def array_of_objects(x, a):
    return x


@rejected(np.array(["a", "b"]))
def argument_array_of_texts(a):
    return 1


@rejected(np.array(["2020-01-01"], dtype="datetime64[D]"))
def array_of_dates(a):
    return 1


@rejected({"w": np.ones(3, np.float16)})
def unsupported_inside_a_dict(params):
    return 1


@rejected(np.float16(1.0))
def half_precision_number(x):
    return x


@rejected(np.zeros(3, dtype=[("x", "f8"), ("y", "i4")]))
def structured_array(a):
    return 1


@rejected(np.ma.masked_array([1.0, 2.0], [False, True]))
def masked_array(a):
    return a.sum()


@rejected(np.ones((2, 2)).view(np.matrix))
def matrix_object(a):
    return a * a


@rejected({1.0, 2.0})
def set_argument(s):
    return s + 1


@rejected(object())
def object_argument(x):
    return x + 1


@rejected(2**70, error=tp.ArgumentError)
def integer_argument_over_64_bits(n):
    return n + 1


@rejected(1.0, 2.0, error=CallError)
def too_many_arguments_in_a_call(x):
    return x


@rejected(error=CallError)
def missing_argument_in_a_call(x):
    return x


@rejected.all
def test_message(program: Program, golden) -> None:
    golden(message(program), str(program))


def overlap(a, b):
    a[0] = b[0]
    return a[0]


def test_overlapping_arguments(golden) -> None:
    x = np.ones(5)
    golden(text_of(lambda: tp.function(overlap)(x[1:], x[:-1]), tp.ArgumentError, overlap), "overlapping_arguments")


def test_no_source(golden) -> None:
    names: dict = {}
    exec("def f(x):\n    return x + 1\n", names)
    golden(text_of(lambda: tp.function(names["f"])(1.0), tp.CompileError), "no_source")


def test_calls_function_without_source(golden) -> None:
    names: dict = {}
    exec("def g(x):\n    return x + 1\n", names)
    g = names["g"]

    def f(x):
        return g(x)

    golden(text_of(lambda: tp.function(f)(1.0), tp.CompileError, f), "calls_a_function_without_source")


@pytest.mark.parametrize(
    "thing, name",
    [(3, "number"), (np.sin, "ufunc"), (len, "builtin"), (object(), "object"), (int, "type"), ("f", "text")],
)  # fmt: skip
def test_not_a_function(thing, name, golden) -> None:
    golden(text_of(lambda: tp.function(thing), tp.CompileError), f"not_a_function_{name}")


def test_device(golden) -> None:
    def f(x):
        return x

    golden(text_of(lambda: tp.function(f, device="tpu"), tp.DeviceError), "unknown_device")


@pytest.mark.parametrize(
    "options", [{"thread": 2}, {"threads": 0}, {"threads": "two"}, {"memory": "lots"}, {"fastmath": 3}]
)
def test_options(options, golden) -> None:
    def f(x):
        return x

    (name,) = options
    golden(
        text_of(lambda: tp.function(f, **options), TypeError if name == "thread" else ValueError),
        f"option_{name}_{options[name]}",
    )


def test_static_arguments_work() -> None:
    @tp.function
    def f(x, mode, extra=None):
        if mode == "double":
            return 2 * x
        return x if extra is None else x + extra

    assert f(2.0, "double") == 4.0
    assert f(2.0, "plain") == 2.0
    assert f(2.0, "plain", 3.0) == 5.0
    assert f(2.0, "plain", None) == 2.0


def test_unknown_stage() -> None:
    def f(x):
        return x

    with pytest.raises(ValueError, match="unknown stage 'machine': use core, optimized"):
        tp.function(f).ir(1.0, stage="machine")


def test_nested_too_deeply(golden, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tapeless.runtime.deep.LIMIT", 0)
    calls = "".join(f"def g{k}(x): return g{k - 1}(x) * 0.5\n" for k in range(1, 400))
    path = tmp_path / "program.py"
    path.write_text(f"def f(x): return g399(x)\ndef g0(x): return x\n{calls}", encoding="utf-8")
    names: dict = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    golden(text_of(lambda: tp.function(names["f"])(1.0), tp.CompileError, names["f"]), "nested_too_deeply")


def test_a_bug_of_the_compiler_keeps_its_cause(monkeypatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AssertionError("this cannot happen")

    def f(x):
        return x

    monkeypatch.setattr("tapeless.api.function.compile_specs", broken)
    with pytest.raises(
        tp.CompileError, match="TP900.*the compiler failed on 'f': AssertionError: this cannot happen"
    ) as caught:
        tp.function(f)(1.0)
    assert isinstance(caught.value.__cause__, AssertionError)
