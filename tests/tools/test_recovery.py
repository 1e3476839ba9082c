"""What `explain` says of gradients: how each loop gets its values back, what that keeps, and what else is possible."""

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.llvm import host
from tapeless.tools.recovery import OR, Recovered, alternatives, size_text, worthwhile
from tapeless.tools.report import WIDTH, Report
from tests.tools import gradients

LOGISTIC = (0.3, 1.1, 1000)
LEAPFROG = (0.3, 0.2, 1000)
CASES = {
    "store": ("logistic", LOGISTIC, {}),
    "strips_2": ("logistic", LOGISTIC, {"recover": "checkpoint"}),
    "strips_3": ("logistic", LOGISTIC, {"recover": "checkpoint:3"}),
    "recompute": ("logistic", LOGISTIC, {"recover": "recompute"}),
    "budget_ample": ("logistic", LOGISTIC, {"memory": "10kB"}),
    "budget_strips": ("logistic", LOGISTIC, {"memory": "1kB"}),
    "budget_snapshots": ("logistic", LOGISTIC, {"memory": "200B"}),
    "live": ("history", (0.3, 100), {}),
    "undo": ("in_place", (np.ones(50),), {}),
    "invert": ("leapfrog", LEAPFROG, {"recover": "invert"}),
    "invert_anchored": ("leapfrog", LEAPFROG, {"recover": "invert:100"}),
    "while": ("until", (1.0, 0.1), {}),
    "while_strips": ("until", (1.0, 0.1), {"recover": "checkpoint"}),
    "while_budget": ("until", (1.0, 0.1), {"memory": "1kB"}),
    "nested": ("nested", (np.ones(10), 20), {}),
    "nested_strips": ("nested", (np.ones(10), 20), {"recover": "checkpoint"}),
    "hint": ("hinted", (0.3, 50), {}),
    "none": ("sums", (np.ones(10),), {}),
}


def explained(name: str) -> Report:
    loss, args, plan = CASES[name]
    return tp.grad(tp.function(getattr(gradients, loss), threads=1), **plan).explain(*args)


def way_back(report: Report) -> str:
    text = str(report)
    return text[text.index("backward pass (") : text.index("\ncopies")]


def recovery_of(report: Report, line: int = 0) -> dict[str, str]:
    found = [x.recovery for x in report.loops if x.recovery and (not line or x.line == line)]
    assert all(x == found[0] for x in found)
    return found[0]


@pytest.mark.thorough
def test_the_way_back_as_text(golden):
    parts = [
        f"{name}: {CASES[name][0]} {CASES[name][2] or ''}".rstrip() + "\n" + way_back(explained(name)) for name in CASES
    ]
    golden("\n".join(parts), "explain_recoveries")


@pytest.mark.skipif(host.host().vector_width == 0, reason="what is vectorised depends on the machine")
@pytest.mark.parametrize("name", ["store", "undo"])
def test_whole_text(name, golden):
    golden(str(explained(name)), f"explain_gradient_{name}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_no_internal_names_and_no_long_lines(name):
    text = str(explained(name))
    for internal in ("_kept", "Var(", "None", "nan"):
        assert internal not in text
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("name", "recovery", "memory"),
    [
        ("store", {"x": "store", "k": "closed", "total": "none"}, 8000),
        ("strips_2", {"x": "checkpoint:2", "k": "closed", "total": "none"}, 512),
        ("strips_3", {"x": "checkpoint:3", "k": "closed", "total": "none"}, 240),
        ("recompute", {"x": "recompute", "k": "closed", "total": "none"}, 0),
        ("budget_ample", {"x": "store", "k": "closed", "total": "none"}, 8000),
        ("live", {"u": "live"}, 0),
        ("undo", {"a": "undo"}, 392),
        ("invert", {"x": "invert", "v": "invert"}, 0),
        ("while", {"x": "store"}, None),
        ("none", {"total": "none"}, 0),
    ],
)
def test_recovery_and_bytes_of_loops(name, recovery, memory):
    report = explained(name)
    assert recovery_of(report) == recovery
    assert {x.memory_bytes for x in report.loops if x.recovery} == {memory}
    assert report.memory_bytes == memory


def test_each_loop_has_its_own_bytes():
    report = explained("hint")
    first = gradients.hinted.__code__.co_firstlineno + 1
    assert recovery_of(report, first) == {"x": "checkpoint:3"} and recovery_of(report, first + 2) == {"x": "store"}
    assert {x.line: x.memory_bytes for x in report.loops} == {first: 96, first + 2: 400}


@pytest.mark.parametrize(
    ("name", "budget"), [("budget_ample", 10_000), ("budget_strips", 1000), ("budget_snapshots", 200)]
)
def test_what_is_kept_stays_within_the_budget(name, budget):
    assert 0 < explained(name).memory_bytes <= budget


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", [1, 2, 999, 1000, 1001, 1024])
@pytest.mark.parametrize("plan", [{}, {"recover": "checkpoint:2"}, {"recover": "checkpoint:3"}, {"memory": "200B"}])
def test_trips_are_those_of_the_loop_that_was_written(n, plan):
    (found,) = tp.grad(gradients.logistic, **plan).explain(0.3, 1.1, n).plans
    assert found.trips == n


def test_what_is_kept_for_loops_inside_is_told_apart():
    outer, inner = explained("nested").plans
    assert outer.memory_bytes > outer.trips * outer.slot_bytes and "of it for loops inside" in str(explained("nested"))
    assert inner.memory_bytes == inner.trips * inner.slot_bytes and "of it" not in str(explained("hint"))


def test_plans_that_wait_for_sizes_name_all_of_them():
    assert recovery_of(explained("while_budget"))["x"] == OR.join(["store", "checkpoint:2", "checkpoint"])


def test_the_peak_has_more_than_what_is_kept():
    report = explained("undo")
    assert report.peak_bytes > report.memory_bytes
    assert explained("while").peak_bytes is None
    assert tp.function(gradients.sums).explain(np.ones(3)).peak_bytes is None


def test_only_plans_that_are_better_in_something_are_named():
    loop = Recovered("f.py", 1, {"x": "store"}, {"x": ""}, 20, 8, 8, 8, 8, 160)
    loop.alternatives = alternatives(20, 8, 8, 8)
    assert [a.recover for a in worthwhile(loop)] == ["checkpoint:2", "recompute"]  # more levels keep as much
    loop.recovery, loop.memory_bytes = {"x": "checkpoint:3"}, 72
    assert [a.recover for a in worthwhile(loop)] == ["store", "checkpoint:2", "recompute"]
    loop.recovery, loop.memory_bytes = {"x": "none"}, 0
    assert worthwhile(loop) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("recover", ["store", "checkpoint:2", "checkpoint:3", "checkpoint:4", "recompute"])
def test_alternatives_keep_what_they_say(recover):
    said = {a.recover: a.memory_bytes for loop in explained("store").plans for a in loop.alternatives}
    found = tp.grad(gradients.logistic, recover=recover).explain(*LOGISTIC)
    assert found.memory_bytes == said[recover]


def test_sizes_as_text():
    assert [size_text(n) for n in (0, 999, 1500, 2_097_152_000)] == ["0 B", "999 B", "1.5 kB", "2.1 GB"]


def test_the_terminal_and_the_page_say_the_same(tmp_path, capsys):
    report = explained("strips_2")
    printed = capsys.readouterr().out
    report.html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in ("512 B kept", "loop of 1000 iterations", "checkpoint:2: some states are kept"):
        assert text in printed and text in page
    assert "recover=&quot;store&quot;" in page


# -- plots


def test_nothing_to_plot():
    with pytest.raises(tp.TapelessError, match="not a gradient"):
        tp.function(gradients.sums).explain(np.ones(3)).plot()
    with pytest.raises(tp.TapelessError, match="nothing to plot"):
        explained("none").plot()
    with pytest.raises(tp.TapelessError, match="nothing to plot"):
        explained("while").plot()


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    figure = explained("store").plot(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<?xml")
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    assert labels == [
        "checkpoint:4: 184 B, 4 runs", "checkpoint:3: 240 B, 3 runs", "checkpoint:2: 512 B, 2 runs",
        "store: 8 kB, 1 run, this plan",
    ]  # fmt: skip


def test_plot_of_a_short_loop_has_recompute():
    pytest.importorskip("matplotlib")
    figure = tp.grad(gradients.logistic).explain(0.3, 1.1, 9).plot()
    assert "recompute: 0 B, 5 runs" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_plot_of_measured_plans():
    pytest.importorskip("matplotlib")
    report = tp.grad(tp.function(gradients.logistic, threads=1)).explain(0.3, 1.1, 200_000)
    axes = report.plot(measure=True).axes[0]
    assert "milliseconds" in axes.get_ylabel() and "measured" in axes.get_xlabel()
    memory, _ = report.measure("store")
    assert memory == 0 or memory == pytest.approx(report.memory_bytes, rel=0.2)


def test_plot_without_matplotlib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(tp.TapelessError, match=r"tapeless\[plot\]"):
        explained("store").plot()


def beside_a_history(x, n):
    u = np.zeros(n + 1)
    u[0] = x
    for i in range(n):
        u[i + 1] = np.sin(u[i])
        x = np.cos(x * u[i])
    return x


def test_what_serves_as_it_is_becomes_part_of_a_state(capsys):
    (loop,) = tp.grad(beside_a_history).explain(0.3, 1000).plans
    assert loop.recovery["u"] == "live"
    said = {a.recover: a.memory_bytes for a in loop.alternatives}
    for depth in (2, 3):
        how = f"checkpoint:{depth}"
        taken = tp.grad(beside_a_history, recover=how).explain(0.3, 1000).memory_bytes
        assert said[how] == pytest.approx(taken, rel=0.1)


def repeated(x, n):
    for _ in range(n):
        x = np.sin(x) + 0.1
    return x


@pytest.mark.sampled(4)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_strips_of_many_iterations_are_predicted(depth, capsys):
    report = tp.grad(repeated, recover=f"checkpoint:{depth}").explain(0.3, 1_000_000)
    assert report.peak_bytes == pytest.approx(report.memory_bytes, rel=0.25)
