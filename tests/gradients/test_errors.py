"""What transforms refuse: the class of the error, its code and what it says."""

import re

import numpy as np
import pytest

import tapeless as tp
from tapeless.errors import CallError

X = np.array([1.0, 2.0, 3.0])


def total(x):
    return np.sum(x * x)


def squares(x):
    return x * x


def product(x, y):
    return x * y


def pair(x):
    return x, 2 * x


def named(x):
    return {"a": x, "b": 10 * x}


def refused(code: str, reason: str, run, error: type[Exception] = tp.CompileError) -> Exception:
    """Raises this and nothing else, with the reason in the first line."""
    with pytest.raises(error) as caught:
        run()
    problem = caught.value
    assert isinstance(problem, tp.TapelessError) and type(problem) is error
    first = str(problem).splitlines()[0]
    assert problem.code == code and first.startswith(f"[{code}] "), first
    assert re.search(reason, first), first
    assert len(str(problem).splitlines()) > 1, "says what to do"
    assert problem.__cause__ is None and (problem.__context__ is None or problem.__suppress_context__)
    return problem


# -- arguments


@pytest.mark.parametrize(
    "argument, kind",
    [(3, "an int"), (True, "a bool"), (np.arange(3), "array of int64"), (np.array([True]), "array of bool"),
     (np.int32(3), "int32"), ("a", "the string 'a'"), (None, "None"), ({"y": None, "n": 3}, "None")],
)  # fmt: skip
def test_argument_without_derivatives(argument, kind) -> None:
    def f(x):
        return 2.0

    for transform in (tp.grad, tp.value_and_grad, tp.jacfwd, tp.jacrev, tp.hessian):
        refused("TP301", rf"the argument x\S* is .*{kind}", lambda transform=transform: transform(f)(argument))
    refused("TP301", "the argument x", lambda: tp.vjp(f, argument)[1](1.0))
    refused("TP301", "the argument x", lambda: tp.jvp(f, (argument,), (argument,)))


def test_the_argument_that_is_meant() -> None:
    refused("TP301", "the argument y is an int", lambda: tp.grad(product, 1)(1.0, 2))
    refused("TP301", "the argument y is an int", lambda: tp.grad(product, (0, 1))(1.0, 2))
    refused("TP301", "the argument y is an int", lambda: tp.jvp(product, (1.0, 2), (1.0, 1.0)))
    assert tp.grad(product)(1.0, 2) == 2.0


def test_integer_leaf_says_which_argument() -> None:
    refused("TP301", r"the argument p\['n'\]", lambda: tp.grad(lambda x, p: x * p["n"], (0, 1))(1.0, {"n": 3}))


# -- argnums


@pytest.mark.parametrize("argnums", [2, -3, (0, 2)])
def test_argnums_out_of_range(argnums) -> None:
    reason = re.escape(f"argnums = {argnums} does not fit a call with 2 positional arguments")
    for transform in (tp.grad, tp.jacfwd, tp.jacrev, tp.hessian):
        refused("TP112", reason, lambda transform=transform: transform(product, argnums)(1.0, 2.0), CallError)


@pytest.mark.parametrize("argnums", [1.0, "x", None, (0, "y"), True, (0, True)])
def test_argnums_that_are_no_numbers(argnums) -> None:
    with pytest.raises(TypeError, match="argnums of tp.grad is an int or a tuple of ints, not"):
        tp.grad(product, argnums)


def test_argument_by_keyword_has_no_number() -> None:
    refused(
        "TP112", "argnums = 0 does not fit a call with 0 positional", lambda: tp.grad(product)(x=1.0, y=2.0), CallError
    )


# -- results


@pytest.mark.parametrize(
    "f, kind",
    [
        (squares, "a 1-dimensional array of float64"),
        (pair, "a tuple of 2"),
        (named, "a dict"),
        (lambda x: "text", "the string 'text'"),
        (lambda x: None, "None"),
        (lambda x: len(x), "an int"),
        (lambda x: x[0] > 1, "a bool"),
    ],
)
def test_result_that_is_not_one_float(f, kind) -> None:
    refused("TP302", f"tp.grad needs a function that returns one float, not {kind}", lambda: tp.grad(f)(X))
    refused("TP302", f"tp.value_and_grad needs .*{kind}", lambda: tp.value_and_grad(f)(X))
    refused("TP302", f"needs a function that returns one float, not {kind}", lambda: tp.hvp(f, (X,), (X,)))


def test_array_result_is_told_of_jacobians() -> None:
    problem = refused("TP302", "array", lambda: tp.grad(squares)(X))
    assert "tp.jacobian" in str(problem)


def test_complex_result() -> None:
    refused("TP302", "needs a real result, not a complex one", lambda: tp.grad(lambda x: x * 1j)(2.0))


def test_aux_that_is_not_there() -> None:
    for transform in (tp.grad, tp.value_and_grad, tp.jacrev):
        run = lambda transform=transform: transform(total, has_aux=True)(X)
        refused("TP302", r"with has_aux needs a function that returns a pair \(value, aux\)", run)


def test_jacobian_of_integers() -> None:
    for transform in (tp.jacfwd, tp.jacrev, tp.jacobian):
        run = lambda transform=transform: transform(lambda x: (x, int(x)))(2.0)
        refused("TP302", "the result has an int in it", run)


# -- tangents and adjoints


def test_number_of_tangents() -> None:
    refused("TP304", "2 arguments and 1 tangents", lambda: tp.jvp(product, (1.0, 2.0), (1.0,)))
    refused("TP304", "1 arguments and 2 tangents", lambda: tp.linearize(total, X)[1](X, X))
    refused("TP304", "2 arguments and 3 tangents", lambda: tp.hvp(product, (1.0, 2.0), (1.0, 1.0, 1.0)))


@pytest.mark.parametrize("tangent", [1.0, np.ones((3, 1))])
def test_rank_of_a_tangent(tangent) -> None:
    refused("TP304", "dimensions? where the value has", lambda: tp.jvp(total, (X,), (tangent,)))
    refused("TP304", "dimensions? where the value has", lambda: tp.vjp(squares, X)[1](tangent))


def test_size_of_a_tangent() -> None:
    wrong = np.ones(4)
    reason = "size 4 where the value has 3"
    refused("TP201", reason, lambda: tp.jvp(total, (X,), (wrong,)), tp.ShapeError)
    refused("TP201", reason, lambda: tp.vjp(squares, X)[1](wrong), tp.ShapeError)
    refused("TP201", reason, lambda: tp.hvp(total, (X,), (wrong,)), tp.ShapeError)
    refused("TP201", reason, lambda: tp.linearize(total, X)[1](wrong), tp.ShapeError)


def test_complex_tangent_of_a_real_value() -> None:
    refused("TP304", "the tangent is complex, the value is real", lambda: tp.jvp(total, (X,), (X * 1j,)))
    refused("TP304", "the adjoint is complex, the value is real", lambda: tp.vjp(total, X)[1](1j))


@pytest.mark.parametrize(
    "f, adjoint, reason",
    [
        (pair, 1.0, "the adjoint is a float where the value is a tuple of 2"),
        (pair, (1.0, 2.0, 3.0), "the adjoint is a tuple of 3 where the value is a tuple of 2"),
        (pair, [1.0, 2.0], "the adjoint is a list of 2 where the value is a tuple of 2"),
        (named, {"a": 1.0, "c": 2.0}, "the adjoint is a dict of 'a', 'c' where the value is a dict of 'a', 'b'"),
        (named, {"a": 1.0}, "the adjoint is a dict of 'a' where"),
        (lambda x: x, (1.0,), "the adjoint is a tuple of 1 where the value is a float"),
    ],
)
def test_structure_of_an_adjoint(f, adjoint, reason) -> None:
    refused("TP304", reason, lambda: tp.vjp(f, 2.0)[1](adjoint))


def test_structure_of_a_tangent() -> None:
    refused(
        "TP304",
        "the tangent is a dict of 'a', 'c' where the value is a dict of 'a', 'b'",
        lambda: tp.jvp(lambda p: p["a"] * p["b"], ({"a": 1.0, "b": 2.0},), ({"a": 1.0, "c": 2.0},)),
    )


def test_dicts_match_by_their_keys() -> None:
    def inside(x):
        _, pullback = tp.vjp(named, x)
        _, tangent = tp.jvp(lambda p: p["a"] * 10 + p["b"], ({"a": x, "b": x},), ({"b": 0.0, "a": 1.0},))
        return pullback({"b": 1.0, "a": 0.0})[0], tangent

    assert tp.function(inside)(1.0) == (10.0, 10.0)
    assert tp.vjp(named, 1.0)[1]({"b": 1.0, "a": 0.0}) == (10.0,)


@pytest.mark.parametrize("transform", [tp.jvp, tp.hvp])
def test_tuples_of_arguments(transform) -> None:
    with pytest.raises(
        TypeError, match=r"takes a tuple of arguments and a tuple of tangents: tp.\w+\(f, \(x,\), \(v,\)\)"
    ):
        transform(total, X, X)


# -- the rest


def test_not_a_function() -> None:
    for transform in (tp.grad, tp.jacfwd, tp.hessian, tp.vjp, tp.linearize):
        with pytest.raises(TypeError, match=f"tp.{transform.__name__} takes a function, not 3"):
            transform(3)


def test_unknown_option() -> None:
    with pytest.raises(TypeError, match="tp.grad has no option 'axis'"):
        tp.grad(total, axis=0)


def test_place_of_an_error_in_compiled_code() -> None:
    def wrong(x):
        y = x * 2
        return tp.grad(squares)(y)

    problem = refused("TP302", "tp.grad needs a function that returns one float", lambda: tp.function(wrong)(X))
    assert problem.file == __file__ and problem.line == wrong.__code__.co_firstlineno + 2


def test_errors_of_the_function_keep_their_place() -> None:
    def wrong(x):
        return np.trim_zeros(x)

    problem = refused("TP103", "np.trim_zeros", lambda: tp.grad(wrong)(X))
    assert problem.file == __file__ and problem.line == wrong.__code__.co_firstlineno + 1


@pytest.mark.parametrize("options", [{"recover": "nonsense"}, {"memory": "lots"}])
def test_unknown_recoveries_and_budgets(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        tp.grad(lambda x: x, **options)


def test_a_transform_called_from_python_is_refused_where_its_function_is_written():
    def count(x, n):
        return x * n

    with pytest.raises(tp.CompileError) as refusal:
        tp.grad(tp.grad(count, argnums=0), argnums=1)(1.0, 3)
    text = str(refusal.value)
    assert f"{__file__}:{count.__code__.co_firstlineno}" in text
    assert "def count(x, n):" in text


def test_an_element_type_that_is_not_supported_names_the_parameter():
    def total(x):
        return np.sum(x)

    with pytest.raises(tp.CompileError) as refusal:
        tp.grad(total)(np.ones(3, np.float16))
    assert "'x' is an array of float16" in str(refusal.value)
    assert f"{__file__}:{total.__code__.co_firstlineno}" in str(refusal.value)
