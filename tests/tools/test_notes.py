"""What comments and docs refer to exists: notes by their titles, files by their paths, modules by their names."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "tapeless"
FOLDERS = ("src", "tests", "docs", "benchmarks", "scripts")
TITLE = re.compile(r"\s*(#?)\s*Note \[([^]]+)\]")
REFERENCE = re.compile(r"Note\s+(?:#\s*)?\[([^]]+)\](?:\s+(?:#\s*)?(?:in|of)\s+(?:#\s*)?([`\w./]+))?")
FILE = re.compile(r"(?<![\w./<-])(?:[\w-]+/)+[\w-]+\.(?:py|md|c)\b")
MODULE = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+)`")


def texts() -> Iterator[tuple[Path, str]]:
    """Files of the repository with comments or prose. The changelog speaks of what was."""
    inside = (p for folder in FOLDERS for kind in ("*.py", "*.md", "*.c") for p in (ROOT / folder).rglob(kind))
    for path in sorted({*inside, ROOT / "README.md", ROOT / "CONTRIBUTING.md"} - {Path(__file__)}):
        yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def notes() -> dict[str, list[str]]:
    """The modules in which a note stands: its title has a line of its own, and the note begins on the next."""
    found = defaultdict(list)
    for path, text in texts():
        lines = text.splitlines()
        for line, after in pairwise(lines):
            title = TITLE.fullmatch(line)
            if title and after.strip() and after.strip().startswith("#") == bool(title[1]):
                found[title[2]].append(path.as_posix().removeprefix("src/tapeless/").removesuffix(".py"))
    return found


def ends(full: str, part: str) -> bool:
    return f"/{full}".endswith(f"/{part}")


def test_a_title_is_of_one_note():
    assert {title: places for title, places in notes().items() if len(places) > 1} == {}


def test_notes_that_are_referred_to_are_where_the_reference_says():
    known, wrong, count = notes(), [], 0
    for path, text in texts():
        for title, where in REFERENCE.findall(text):
            title = re.sub(r"\s+(# *)?", " ", title)
            module = where.strip("`.").removesuffix(".py").replace(".", "/")
            count += 1
            if title != "Title" and not any(ends(place, module) or not module for place in known.get(title, ())):
                wrong.append(f"{path}: Note [{title}] {where}")
    assert not wrong, "\n".join(wrong)
    assert count > 2 * len(known) > 100


def test_files_that_are_named_exist():
    """Paths with a folder, in the code and in the docs. Tests name files that they make."""
    files = [p.relative_to(ROOT).as_posix() for folder in FOLDERS for p in (ROOT / folder).rglob("*.*")]
    missing = []
    for path, text in texts():
        if path.parts[0] in ("src", "docs"):
            for name in FILE.findall(text):
                if not any(ends(file, name) for file in files):
                    missing.append(f"{path}: {name}")
    assert not missing, "\n".join(missing)


def test_modules_that_are_named_exist():
    """`ad.reverse` and `simplify.simplify`: what follows the name of a folder of ours is a module or a name in one."""
    modules = {p.relative_to(CODE).with_suffix("").as_posix().removesuffix("/__init__"): p for p in CODE.rglob("*.py")}
    folders = {name.split("/")[0] for name in modules}

    def exists(name: str) -> bool:
        module, _, last = name.rpartition("/")
        for full, path in modules.items():
            if ends(full, name) or (ends(full, module) and re.search(rf"\b{last}\b", path.read_text(encoding="utf-8"))):
                return True
        return False

    wrong = []
    for path, text in texts():
        if path.parts[0] in ("src", "docs"):
            for name in MODULE.findall(text):
                name = name.removeprefix("tapeless.")
                if name.split(".")[0] in folders and not exists(name.replace(".", "/")):
                    wrong.append(f"{path}: {name}")
    assert not wrong, "\n".join(wrong)
