"""The examples of the pages run, and print what they say. What pages name is there."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["no-tape.md", "reversible.md", "formulae.md"])
def test_examples_print_what_the_page_says(name, tmp_path, monkeypatch):
    """Each block is a file of its own, so that lines count from its start; all share their names."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    printed: list[str] = []
    for k, (language, text) in enumerate(blocks(ROOT / "docs" / name)):
        if language == "python":
            file = tmp_path / f"block_{k}.py"
            file.write_text(text, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, str(file), "exec"), names)
            printed = [line.rstrip() for line in out.getvalue().splitlines()]
        elif language == "text":
            rest = iter(printed)
            for line in text.splitlines():
                assert line in rest, f"{line!r} is not printed (in this order); the block prints\n" + "\n".join(printed)


def test_pictures_of_the_page_are_there():
    page = ROOT / "docs" / "no-tape.md"
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / picture).is_file()


def test_links_between_pages_lead_somewhere():
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "docs" / "no-tape.md",
        ROOT / "docs" / "reversible.md",
        ROOT / "docs" / "formulae.md",
        ROOT / "docs" / "design" / "README.md",
    ):
        for target in re.findall(r"(?<!!)\[[^]]*\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_contributing_names_files_that_are_there():
    named = re.findall(r"`([\w/.-]+(?:/|\.py))`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    missing = [
        n for n in named if not any((place / n).exists() for place in (ROOT, ROOT / "src" / "tapeless", ROOT / "tests"))
    ]
    assert len(named) > 40 and not missing
