"""Calls in Core: what the verifier refuses, what the evaluator runs, inlining, and derivatives that are functions too."""

from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest

from tapeless.ad.forward import jvp_body
from tapeless.ad.reverse import vjp_body
from tapeless.ad.transform import prepared
from tapeless.interp.evaluate import evaluate
from tapeless.ir.builder import Builder
from tapeless.ir.calls import Functions
from tapeless.ir.core import Body, Call, Function, Lambda
from tapeless.ir.parser import parse_function
from tapeless.ir.printer import print_function
from tapeless.ir.types import Type, Var
from tapeless.ir.walk import all_stms
from tapeless.ops.emit import Emit
from tapeless.passes.check.verify import InvalidCore, verify
from tapeless.passes.inline import inline
from tapeless.passes.pipeline import finished

WAVE = """
    def wave[m](v: [m]f64, w: f64) -> ([m]f64, f64)
      ok: bool = gt w -10.0
      check ok ValueError "w is {0}" w
      u: [m]f64 = map m (\\i e -> t: f64 = mul e w; s: f64 = sin t; in s) v
      s: f64 = reduce m add 0.0 u
      in (u, s)
"""
TWICE = """
    def twice(x: [n]f64, w: f64) -> f64
      a: [n]f64, s: f64 = call wave n x w {effects: true}
      b: [n]f64, t: f64 = call wave n a s {effects: true}
      r: f64 = mul s t
      in r
"""
IN_LOOP = """
    def looped(x: [n]f64, w: f64) -> f64
      y: [n]f64, r: f64 = loop (p: [n]f64 = x, q: f64 = w) for i < 3 do
        a: [n]f64, s: f64 = call wave n p q {effects: true}
        b: [n]f64, t: f64 = call wave n x s {effects: true}
        in (a, t)
      in r
"""
IN_SWEEP = """
    def step(e: f64, w: f64) -> f64
      a: f64 = exp e
      b: f64 = mul a w
      in b

    def swept(x: [n]f64, w: f64) -> f64
      r: f64 = sweep n (\\i e -> a: f64 = call step e w; b: f64 = call step a e; in b) x | reduce add 0.0
      in r
"""
IN_BRANCH = """
    def chosen(x: [n]f64, w: f64) -> f64
      c: bool = gt w 0.0
      r: f64 = if c then
        a: [n]f64, s: f64 = call wave n x w {effects: true}
        in s
      else
        t: f64 = neg w
        b: [n]f64, s_1: f64 = call wave n x t {effects: true}
        in s_1
      in r
"""
PROGRAMS = {
    "twice": WAVE + TWICE,
    "in a loop": WAVE + IN_LOOP,
    "in a sweep": IN_SWEEP,
    "in a branch": WAVE + IN_BRANCH,
    "through another": WAVE
    + TWICE
    + """
    def outer(x: [n]f64, w: f64) -> f64
      a: f64 = call twice n x w {effects: true}
      b: f64 = call twice n x a {effects: true}
      in b
    """,
}
X = np.array([0.3, -0.7, 1.1])
every_program = pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)


def program(text: str) -> Function:
    f = parse_function(dedent(text))
    verify(f)
    return f


def functions_of(f: Function) -> Functions:
    return Functions({g.name: g for g in f.calls}, taken={g.name for g in f.calls})


def calls_in(f: Function) -> list[str]:
    return [s.exp.function for g in (*f.calls, f) for s in all_stms(g.body) if isinstance(s.exp, Call)]


@every_program
def test_text_and_meaning(text):
    f = program(text)
    assert print_function(parse_function(print_function(f))) == print_function(f)
    whole = inline(f, everything=True)
    verify(whole)
    assert not whole.calls and not calls_in(whole)
    np.testing.assert_array_equal(evaluate(f, [X, 0.8]), evaluate(whole, [X, 0.8]))


def test_the_meaning_of_one():
    found = evaluate(program(WAVE + TWICE), [X, 0.8])[0]
    a = np.sin(X * 0.8)
    assert found == pytest.approx(a.sum() * np.sin(a * a.sum()).sum())


REFUSED = {
    "a name that is none": ("call other n x w", "no function other"),
    "too few arguments": ("call wave n x", "2 arguments for the 3"),
    "another type": ("call wave n x n", "argument of wave number 2"),
}


@pytest.mark.parametrize(("call", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call, reason):
    text = WAVE + f"    def f(x: [n]f64, w: f64) -> f64\n      a: [n]f64, s: f64 = {call}\n      in s\n"
    with pytest.raises(InvalidCore, match=reason):
        verify(parse_function(dedent(text)))


def test_functions_that_write_or_hide_sizes_are_refused():
    f = program(WAVE + TWICE)
    body = f.calls[0].body
    wave = replace(f.calls[0], written=(0,), body=replace(body, results=body.results[::-1]))
    with pytest.raises(InvalidCore, match="wave writes its parameters"):
        verify(replace(f, calls=(wave,)))
    with pytest.raises(InvalidCore, match="same name"):
        verify(replace(f, calls=(f.calls[0], f.calls[0])))
    hidden = """
        def g(k: i64) -> [m]f64
          m: i64 = add k 1
          v: [m]f64 = full [m] 0.0
          in v

        def f(k: i64) -> ()
          v: [k]f64 = call g k
          in ()
    """
    with pytest.raises(InvalidCore, match="known in g only"):
        verify(parse_function(dedent(hidden)))


def test_tests_inside_raise_and_silent_calls_do_not():
    f = program(WAVE + TWICE)
    with pytest.raises(ValueError, match="w is -11"):
        evaluate(f, [X, -11.0])
    silent = program(WAVE + TWICE.replace(" {effects: true}", ""))
    assert np.isfinite(evaluate(silent, [X, -11.0])[0])
    whole = inline(silent, everything=True)
    assert np.isfinite(evaluate(whole, [X, -11.0])[0])


def test_a_silent_call_beside_a_loud_one():
    mixed = program(WAVE + TWICE.replace("x w {effects: true}", "x w"))
    large = inline(mixed)  # wave is small
    assert not large.calls
    assert np.isfinite(evaluate(mixed, [X, -11.0])[0])
    with pytest.raises(ValueError, match="w is -15"):
        evaluate(mixed, [np.full(20, 4.0), 1.0])


# -- what stays a call


def long(count: int) -> str:
    lines = [f"      t{k + 1}: f64 = sin t{k}" for k in range(count)]
    return "\n".join(["    def long(t0: f64) -> f64", *lines, f"      in t{count}"]) + "\n"


CALLED_TWICE = "    def f(w: f64) -> f64\n      a: f64 = call long w\n      b: f64 = call long a\n      in b\n"
CALLED_ONCE = "    def f(w: f64) -> f64\n      a: f64 = call long w\n      in a\n"


@pytest.mark.parametrize(
    ("count", "text", "left"), [(20, CALLED_TWICE, 0), (300, CALLED_TWICE, 2), (300, CALLED_ONCE, 0)]
)
def test_what_is_inlined(count, text, left):
    f = program(long(count) + text)
    small = inline(f)
    verify(small)
    assert len(calls_in(small)) == left
    assert len(small.calls) == (left > 0)
    assert evaluate(small, [0.5]) == evaluate(f, [0.5])


# -- derivatives


def derived(f: Function, mode: str) -> Function:
    """The gradient, or the derivative along a direction, by all arguments."""
    functions = functions_of(f)
    lam = prepared(Lambda(f.params, f.body), functions)
    b = Builder(functions=functions)
    if mode == "reverse":
        seed = Var("seed", f.result_types[0])
        _, found = vjp_body(b, lam.body, lam.params, [seed], last=True)
        given = [seed]
    else:
        lanes = (2,) if mode == "lanes" else ()
        tangents = {p: Var("t", Type(p.type.dtype, (*p.type.shape, *lanes))) for p in f.params}
        _, found = jvp_body(b, lam.body, tangents, lanes)
        given = list(tangents.values())
    emit = Emit(b)
    types = [p.type for p in f.params] if mode == "reverse" else list(f.result_types)
    results = tuple(emit.zero(t) if a is None else a for a, t in zip(found, types, strict=True))
    made = functions.program(Function("d", f.sizes, (*f.params, *given), Body(tuple(b.stms), results)))
    verify(made)
    return made


SEEDS = {
    "reverse": [1.0],
    "forward": [np.array([1.0, 0.5, -2.0]), 0.7],
    "lanes": [np.array([[1.0, 0.0], [0.5, 1.0], [-2.0, 3.0]]), np.array([0.7, -1.0])],
}


@every_program
@pytest.mark.parametrize("mode", SEEDS)
def test_derivatives(text, mode):
    f = program(text)
    with_calls, without = derived(f, mode), derived(inline(f, everything=True), mode)
    assert calls_in(with_calls) and not calls_in(without)
    expected = evaluate(without, [X, 0.8, *SEEDS[mode]])
    for made in (with_calls, inline(with_calls), finished(with_calls)):
        for a, b in zip(evaluate(made, [X, 0.8, *SEEDS[mode]]), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_one_function_for_each_pattern_of_arguments():
    names = [g.name for g in derived(program(WAVE + TWICE), "reverse").calls]
    both = ["wave.forward", "wave.forward_1", "wave.vjp", "wave.vjp_1"]
    assert sorted(names) == both  # the first result of the second call is not used
    names = [g.name for g in derived(program(WAVE + TWICE), "forward").calls]
    assert names == ["wave.jvp"]


def test_derivatives_of_derivatives():
    f = program(PROGRAMS["through another"])
    first, second = derived(f, "forward"), inline(derived(f, "forward"), everything=True)
    seeds = [*SEEDS["forward"], 1.0]
    with_calls, without = derived(first, "reverse"), derived(second, "reverse")
    for a, b in zip(evaluate(with_calls, [X, 0.8, *seeds]), evaluate(without, [X, 0.8, *seeds]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
