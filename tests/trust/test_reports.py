"""Reports: in notebooks and at prompts, plots that measure, and what is known of vectors."""

import sys
import types

import numpy as np
import pytest

import tapeless as tp
from tapeless.backends.llvm import host, optimize
from tapeless.backends.llvm.emit import emit
from tapeless.backends.llvm.writer import Machine
from tapeless.lower.ir.loopir import For
from tapeless.runtime import peak
from tapeless.tools import vectors


def march(u, n):
    for _ in range(n):
        u = np.sin(u) + 0.1 * u * u
    return np.sum(u)


@pytest.fixture(scope="module")
def report():
    return tp.grad(tp.function(march, threads=1)).explain(np.ones(500), 400)


# -- notebooks and prompts


def test_m_a_report_is_one_line_at_a_prompt(report):
    assert repr(report).startswith("<report of grad_of_march: ") and "\n" not in repr(report)


def test_m_a_cell_shows_a_report_once(report, monkeypatch, capsys):
    shell = types.SimpleNamespace(execution_count=7)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    report.show()
    assert "grad_of_march" in capsys.readouterr().out
    assert report._repr_html_() is None  # printed by this very cell
    shell.execution_count = 8
    page = report._repr_html_()
    assert "grad_of_march" in page and "<table>" in page and "<html" not in page and "400 iterations" in page


# -- plots that measure


def test_w17_a_peak_that_the_system_does_not_forget_is_not_counted(monkeypatch, tmp_path):
    """The compiler's, for one: what was there before must not show as memory of the call."""
    ignored = tmp_path / "clear_refs"
    monkeypatch.setattr(peak, "RESET", ignored)
    np.ones(8_000_000).sum()  # 64 MB, given back
    assert peak.peak_of(lambda: None)[0] in (None, 0)
    assert ignored.read_text() == "5"


@pytest.mark.thorough
@pytest.mark.skipif(not peak.STATUS.exists(), reason="the system does not tell")
def test_w17_measured_on_a_cold_cache(report, monkeypatch, tmp_path):
    monkeypatch.setenv("TAPELESS_CACHE_DIR", str(tmp_path))
    known = {a.recover: a.memory_bytes for a in report.plans[0].alternatives}
    for how in ("store", "checkpoint:3"):
        memory, seconds = report.measure(how)
        assert memory <= known[how] + 1_000_000 and seconds > 0


def test_w17_labels_do_not_collide(report):
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    figure = report.plot()
    agg.FigureCanvasAgg(figure).draw()
    legend = figure.legends[0]
    boxes = [text.get_window_extent() for text in legend.get_texts()]
    assert len(boxes) == 4 and not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert not figure.axes[0].texts and not legend.get_window_extent().overlaps(figure.axes[0].get_window_extent())


# -- vectors


def test_m_loops_with_a_form_for_few_iterations_are_known():
    """On processors with wide vectors such loops are written twice, which made all loops of the program unknown."""
    program = tp.function(lambda x: np.sum(np.sin(x) * x), threads=1).compiled(np.ones(3)).lowered.program
    loops = list(vectors.loops_inside_out(program.body))
    here = host.host()
    wide = Machine(here.kind, here.triple, here.layout, 256, lambda name, arity: ())
    text = emit(program, wide, {id(stm): k for k, stm in enumerate(loops)}).text
    numbers = [int(n) for n in vectors.NUMBER.findall(text)]
    fors = [k for k, stm in enumerate(loops) if isinstance(stm, For)]
    assert set(numbers) == set(fors)
    assert optimize.parse(text)
    assert all(v.lanes is not None or v.gone for v in vectors.verdicts(program))
