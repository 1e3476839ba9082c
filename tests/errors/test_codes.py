"""Codes: each one used in the source is in the table and in the documentation, and the other way round."""

import re
from pathlib import Path

import tapeless
from tapeless import errors

SOURCE = Path(tapeless.__file__).parent
DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"
CODE = re.compile(r"TP\d{3}\b")


def rows() -> dict[str, list[str]]:
    found = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line.startswith("| TP"):
            cells = [c.strip() for c in line.strip("|").split("|")]
            assert cells[0] not in found, f"{cells[0]} is there twice"
            found[cells[0]] = cells
    return found


def test_every_code_in_the_source_is_documented() -> None:
    used = {code for path in SOURCE.rglob("*.py") for code in CODE.findall(path.read_text(encoding="utf-8"))}
    assert used == set(errors.CODES)
    assert list(rows()) == sorted(errors.CODES)


def test_documentation_has_the_meanings_of_the_table() -> None:
    for code, cells in rows().items():
        assert cells[1] == errors.CODES[code][0]
        assert cells[3], f"{code}: what to write instead"


def test_every_class_has_a_code_of_its_own() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type) and hasattr(c, "code")]
    codes = [c.code for c in classes if c is not errors.SourceError]
    assert len(set(codes)) == len(codes)
    assert set(codes) <= set(errors.CODES)


def test_golden_messages_use_the_codes() -> None:
    texts = [p.read_text(encoding="utf-8") for p in (Path(__file__).parent / "golden").glob("*.txt")]
    shown = {code for text in texts for code in CODE.findall(text)}
    missing = {c for c in errors.CODES if "TP101" <= c <= "TP204"} - shown
    assert not missing, f"no golden message shows {sorted(missing)}"
