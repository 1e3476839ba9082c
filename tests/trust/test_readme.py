"""What the README and the docs say: the example runs as written, figures are those of the tables, names are there."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import tapeless as tp

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_m_the_example_runs_as_written(tmp_path, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    file = tmp_path / "example.py"
    file.write_text(example, encoding="utf-8")
    runpy.run_path(str(file))
    out = capsys.readouterr().out
    assert "def horner(" in out and "grad_of_error" in out  # the program, and the report


def figures(table: str, row: str) -> list[str]:
    """The cells of the row that starts like this."""
    lines = (ROOT / "benchmarks" / table).read_text(encoding="utf-8").splitlines()
    return [cell.strip() for cell in next(x for x in lines if x.startswith(row)).strip("|").split("|")]


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="not in a checkout")
def test_m_headlines_are_those_of_the_tables():
    primal = figures("RESULTS.md", "| geometric mean | 1 |")
    assert f"{primal[7]} of the time of C, {primal[8]} of Numba's" in README
    gradients = figures("RESULTS_GRAD.md", "| geometric mean | 1 |")
    assert f"{gradients[8]} times the function itself; {gradients[9]} of the time of adjoints" in README
    assert f"{gradients[10]} of JAX's" in README
    most, least = (figures("RESULTS_MEMORY.md", f"| heat | {plan} |") for plan in ('recover="store"', 'memory="70MB"'))
    assert f"keeps {most[2]} runs in {least[4]} with" in README and f"{least[8]} times the time" in README


def test_m_links_lead_somewhere():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_m_docs_name_only_what_is_there():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for name in re.findall(r"\btp\.(\w+)", page.read_text(encoding="utf-8")):
            assert hasattr(tp, name), f"{page.name}: tp.{name}"


def test_m_extras_have_code_behind_them():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras) == {"plot", "bench", "bench-grad", "dev"}
