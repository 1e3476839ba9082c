"""`f.explain`: what is counted, what is known of threads and vectors, and the three forms of the report."""

import types
from dataclasses import replace

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.llvm import host
from tapeless.ir.core import Body, Stm
from tapeless.ir.parser import parse_function
from tapeless.ir.span import Span
from tapeless.ir.target import Target
from tapeless.passes.pipeline import FINISHING, passes_in
from tapeless.tools.explain import Counts, make_report
from tapeless.tools.report import WIDTH, CopyMade, Report
from tapeless.tools.vectors import loops_of, verdicts
from tests.tools import programs

CASES = {
    "prefix": (np.ones(5), 5),
    "scaled": (np.ones(5), 1.0),
    "sums": (np.ones(5),),
    "nested": (np.ones(5), np.ones(4), 20),
    "heat": (np.ones(9), 3),
    "counts": (np.arange(5), np.ones(5)),
    "ordered": (np.ones(5),),
    "halved": (np.ones(5),),
    "shifted": (np.ones(5),),
}
HAS_VECTORS = host.host().vector_width > 0


def report_of(name: str) -> Report:
    return make_report(tp.function(getattr(programs, name)).compiled(*CASES[name]))


def line_with(report: Report, text: str):
    (line,) = [x for x in report.lines if text in x.text]
    return line


@pytest.mark.skipif(not HAS_VECTORS, reason="what is vectorised depends on the machine")
@pytest.mark.parametrize("name", CASES)
def test_text(name, golden):
    golden(str(report_of(name)), f"explain_{name}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_no_internal_names_and_no_long_lines(name):
    text = str(report_of(name))
    for internal in ("Sweep", "Var(", "identity", "select", "region", "tp_", "None"):
        assert internal not in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_compile_times_have_the_names_of_the_pipeline(compiled_anew):
    report = make_report(tp.function(programs.prefix, cache=False).compiled(*CASES["prefix"]))
    passes = {x.name for x in passes_in(FINISHING) if Target.cpu in x.targets}
    assert set(report.times) == passes | {"trace", "in place", "lower", "emit", "parse", "optimize", "codegen", "load"}


def test_operations_and_bytes_of_a_line():
    report = report_of("prefix")
    line = line_with(report, "s = s +")
    assert line.operations["+"] == 1 and line.operations["*"] == 1
    assert (line.bytes_read, line.bytes_written) == (8, 0)
    assert (line_with(report, "x[i] = s").bytes_read, line_with(report, "x[i] = s").bytes_written) == (0, 8)


def test_loops():
    (loop,) = report_of("prefix").loops
    assert (loop.kind, loop.parallel, loop.vectorised) == ("for", False, False)
    assert loop.recovery == {} and loop.memory_bytes is None
    (loop,) = report_of("sums").loops
    assert (loop.kind, loop.parallel) == ("parallel for", True)
    assert (
        report_of("sums").lines[0].text.strip().startswith("for")
        or loop.line == programs.sums.__code__.co_firstlineno + 2
    )
    outer, inner, escape = report_of("nested").loops
    assert outer.parallel and not inner.parallel
    assert escape.kind == "while" and escape.vectorised is False


@pytest.mark.skipif(not HAS_VECTORS, reason="what is vectorised depends on the machine")
def test_vectorised_loops_are_found():
    (loop,) = report_of("scaled").loops
    assert loop.vectorised and loop.lanes >= 2
    assert [x.vectorised for x in report_of("heat").loops] == [None, True]


def test_copies_name_the_array_and_the_reason():
    report = report_of("shifted")
    assert [(c.name, bool(c.reason)) for c in report.copies] == [("x", True)]
    assert "'x' is copied" in str(report)
    assert report_of("scaled").copies == []


def test_copies_in_loops_say_so():
    copy = CopyMade("f.py", 7, "b", "its old value is used later", loop=5)
    assert str(copy) == "line 7: 'b' is copied in each iteration of the loop in line 5: its old value is used later"
    assert str(CopyMade("f.py", 7, "", "why")) == "line 7: an intermediate array is copied: why"
    text = """
def f(x: [n]f64, k: i64) -> [n]f64
  y: [n]f64 = loop (y_1: [n]f64 = x) for i < k do
    z: [n]f64 = copy y_1
    in z
  in y
"""
    stms = parse_function(text).body.stms
    inside = Span("f.py", 3, 4, 3, 20)
    loop = replace(stms[0].exp, body=Body((replace(stms[0].exp.body.stms[0], span=inside),), stms[0].exp.body.results))
    counts = Counts()
    counts.body(Body((Stm(stms[0].vars, loop, Span("f.py", 2, 0, 3, 20)),), ()), ())
    assert counts.copied_in == {(inside, "y_1"): 2}


def test_what_belongs_to_gradients_is_there_and_empty():
    report = report_of("scaled")
    assert (report.memory_bytes, report.segments, report.kernels) == (None, [], [])
    with pytest.raises(tp.TapelessError, match="gradient"):
        report.plot()


def test_explain_prints_and_returns_the_same(capsys):
    report = tp.function(programs.scaled).explain(np.ones(3), 1.0)
    printed = capsys.readouterr().out
    assert "return x * 2.0 + y" in printed and ("compiled in" in printed or "cache" in printed)
    assert isinstance(report, Report) and report.times
    assert max(map(len, printed.splitlines())) <= WIDTH


def test_output_without_symbols(monkeypatch, capsys):
    def refuse(self, *things):
        raise UnicodeEncodeError("ascii", "×", 0, 1, "no")

    monkeypatch.setattr("rich.console.Console.print", refuse)
    report_of("scaled").show()
    assert "return x * 2.0 + y" in capsys.readouterr().out


def test_page_is_self_contained(tmp_path):
    path = tmp_path / "report.html"
    report_of("nested").html(path)
    text = path.read_text(encoding="utf-8")
    assert "tp.map(lambda y" in text and "k &lt; limit" in text
    assert "http" not in text and "<script" not in text


def test_code_from_the_cache_is_explained_too():
    first = tp.function(programs.scaled)
    first(np.ones(3), 1.0)
    same = types.FunctionType(programs.scaled.__code__, programs.scaled.__globals__)  # as in another process
    again = tp.function(same).compiled(np.ones(3), 1.0)
    assert again.from_cache
    assert str(make_report(again)) == str(make_report(first.compiled(np.ones(3), 1.0)))


@pytest.mark.parametrize("name", CASES)
def test_each_loop_has_a_verdict(name):
    program = tp.function(getattr(programs, name)).compiled(*CASES[name]).lowered.program
    assert len(verdicts(program)) == len(list(loops_of(program)))


def test_lambdas_and_functions_without_loops():
    report = make_report(tp.function(lambda x: x + 1.0).compiled(2.0))
    assert report.loops == [] and [x.operations for x in report.lines] == [{"+": 1}]
    assert make_report(tp.function(lambda x: x).compiled(2.0)).lines == []
    assert "no operations" in str(make_report(tp.function(lambda x: x).compiled(2.0)))


def test_vmap_has_a_report_and_a_text():
    doubled = tp.vmap(lambda x: 2.0 * x)
    assert "mul" in doubled.ir(np.ones(3))
    assert isinstance(doubled.explain(np.ones(3)), type(tp.function(lambda x: 2.0 * x).explain(1.0)))
