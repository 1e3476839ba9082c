"""The `tapeless` command.

`main` takes the arguments and gives the exit status: 0; 1 when the work failed (a function that does not compile, a
broken installation); 2 when the command could not be understood or is not available.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tapeless.api.checking import Entry, compare, holding, is_made_of_floats, parameters
from tapeless.api.function import Function, function
from tapeless.errors import TapelessError
from tapeless.runtime import cache
from tapeless.tools.doctor import cache_text, doctor, size_text
from tapeless.tools.report import tolerate_encoding
from tapeless.version import VERSION

SHOWN = 20  # entries of the cache, the newest
BENCHMARKS = ("primal", "grad", "memory")
STAGES = ("core", "optimized", "loops", "llvm", "asm", "kernels", "ptx")
FAILED, UNUSABLE = 1, 2


class UsageError(Exception):
    """What was asked for cannot be done; the message is for the user."""


def main(argv: Sequence[str] | None = None) -> int:
    tolerate_encoding()
    parser = _parser()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help()
        return UNUSABLE
    options, rest = parser.parse_known_args(argv)
    if rest and options.command != "bench":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    try:
        return int(options.run(options))
    except UsageError as problem:
        return _complain(problem, UNUSABLE)
    except TapelessError as problem:
        return _complain(problem, FAILED)
    except BrokenPipeError:  # `tapeless ir ... | head`
        sys.stderr.close()
        return FAILED


def _complain(problem: Exception | str, status: int) -> int:
    print(f"tapeless: {problem}", file=sys.stderr)
    return status


# -- commands


def _explain(options: argparse.Namespace) -> int:
    target, args = _target_and_arguments(options)
    report = target.explain(*args)
    if options.html:
        try:
            report.html(options.html)
        except OSError as problem:
            raise UsageError(f"{options.html} cannot be written: {problem.strerror}") from None
        print(f"written to {options.html}")
    return 0


def _ir(options: argparse.Namespace) -> int:
    target, args = _target_and_arguments(options)
    print(target.ir(*args, stage=options.stage), end="")
    return 0


def _check(options: argparse.Namespace) -> int:
    """Arguments that are not made of floats are held fixed."""
    target, args = _target_and_arguments(options)
    name = options.target.rpartition(":")[2]
    names = parameters(target, len(args))
    held = {k: a for k, a in enumerate(args) if not is_made_of_floats(a)}
    varied = [k for k in range(len(args)) if k not in held]
    if not varied:
        raise UsageError(f"no argument of '{name}' is made of floats: there is no derivative to check")
    try:
        found = compare(
            holding(target, held), [args[k] for k in varied], options.order, names=[names[k] for k in varied]
        )
    except TapelessError:
        raise
    except Exception as problem:  # what the function raises for these arguments, or nothing to check
        raise UsageError(f"'{name}' cannot be checked with these arguments: {problem}") from None
    return _tell(name, found, [names[k] for k in held])


def _tell(name: str, found: Sequence[Entry], held: Sequence[str]) -> int:
    worst = max(found, key=lambda e: e.error)
    for order in sorted({e.order for e in found}):
        mine = [e for e in found if e.order == order]
        wrong = sum(e.error > 1 for e in mine)
        modes = " and ".join(f"{sum(e.mode == m for e in mine)} in {m} mode" for m in ("forward", "reverse"))
        agree = f"{wrong} do not agree with differences" if wrong else "all agree with differences"
        print(f"{name}, derivatives of order {order}: {modes}, {agree}")
    if held:
        print(f"held fixed, not made of floats: {', '.join(held)}")
    print(f"{'worst' if worst.error > 1 else 'farthest off'}: {worst}")
    return FAILED if worst.error > 1 else 0


def _bench(options: argparse.Namespace) -> int:
    given = list(options.rest)
    which = given.pop(0) if given and given[0] in BENCHMARKS else BENCHMARKS[0]
    for root in (Path.cwd(), *Path(__file__).resolve().parents):
        if (root / "benchmarks" / f"{which}.py").is_file():
            return subprocess.call([sys.executable, "-m", f"benchmarks.{which}", *given], cwd=root)
    return _complain("the benchmarks are not here: run this in a clone of the repository", UNUSABLE)


def _cache(options: argparse.Namespace) -> int:
    distrust = cache.distrust()
    if distrust is not None:
        return _complain(f"the cache is not used: {distrust}", UNUSABLE)
    if options.action == "clear":
        left = len(cache.leftovers())
        print(f"{cache.clear()} entries{f' and {left} unfinished' if left else ''} removed from {cache.directory()}")
        return 0
    found = cache.entries()
    if len(found) > SHOWN:
        print(f"{len(found) - SHOWN} older ones, and")
    for path, size, used in sorted(found, key=lambda entry: entry[2])[-SHOWN:]:
        stamp = time.strftime("%Y-%m-%d %H:%M", time.localtime(used))
        print(f"{stamp}  {size_text(size):>9}  {''.join(path.split(os.sep)[-2:])[:16]}")
    print(f"{cache_text()} of at most {size_text(cache.LIMIT)}, in {cache.directory()}")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    return doctor()


# -- FILE.py:f and its arguments


def _target_and_arguments(options: argparse.Namespace) -> tuple[Function[..., Any], tuple[Any, ...]]:
    module, name, found = _load(options.target)
    target = found if isinstance(found, Function) else function(found)
    if options.args:
        return target, tuple(_evaluate(text, module) for text in options.args)
    example = getattr(module, f"example_{name}", getattr(found, "example", None))
    if callable(example):
        example = example()
    if example is not None:
        return target, example if isinstance(example, tuple) else (example,)
    defaults = tuple(p.default for p in signature(target.python).parameters.values() if p.kind < p.VAR_POSITIONAL)
    if Parameter.empty not in defaults:
        return target, defaults
    raise UsageError(
        f"what are the arguments of '{name}'? Give them as Python expressions, np being NumPy, e.g.\n"
        f'  tapeless {options.command} {options.target} "np.ones(1000)" 0.5\n'
        f"or put a tuple example_{name} = (...) into {Path(options.target.rpartition(':')[0]).name}"
    )


def _load(target: str) -> tuple[ModuleType, str, Any]:
    """The module and the function that FILE.py:f names."""
    file, colon, name = target.rpartition(":")
    path = Path(file)
    if not colon or not name:
        raise UsageError(f"'{target}' does not name a function: write FILE.py:f")
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    module = _import(path)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"there is no '{name}' in {file}") from None
    if not isinstance(found, Function) and not callable(found):
        raise UsageError(f"'{name}' in {file} is not a function")
    return module, name, found


def _import(path: Path) -> ModuleType:
    """Runs the file as Python would run it when imported from its folder."""
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except TapelessError:
        raise
    except Exception as problem:
        raise UsageError(f"{path} cannot be imported: {type(problem).__name__}: {problem}") from problem
    finally:
        sys.path.pop(0)
    return module


def _evaluate(text: str, module: ModuleType) -> Any:
    try:
        return eval(text, {"np": np, "math": math, **vars(module)})
    except Exception as problem:
        raise UsageError(f"the argument {text!r} cannot be evaluated: {problem}") from None


# -- the command line


class _Parser(argparse.ArgumentParser):
    """With `mixed`, options may stand between positional arguments: `ir FILE.py:f --stage core ARGS`."""

    mixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if not self.mixed:
            return super().parse_known_args(args, namespace)
        self.mixed = False  # the method below comes back here
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.mixed = True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tapeless", description="Numeric Python as fast native code: a look inside, and at this machine."
    )
    parser.add_argument("--version", action="version", version=f"tapeless {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def command(name: str, run: Callable[[argparse.Namespace], int], help: str) -> _Parser:
        made: _Parser = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        made.set_defaults(run=run)
        return made

    def with_target(made: _Parser) -> _Parser:
        made.mixed = True
        made.add_argument("target", metavar="FILE.py:f", help="the function: its file and its name")
        made.add_argument("args", nargs="*", metavar="ARG", help="a Python expression, np being NumPy")
        return made

    made = with_target(
        command(
            "explain", _explain, "per line: operations, bytes, threads, vectors, copies; for gradients, what they keep"
        )
    )
    made.add_argument("--html", metavar="PATH", help="write the report as a page, too")
    made = with_target(command("ir", _ir, "the program at a stage of the compiler, as text"))
    made.add_argument("--stage", choices=STAGES, default="core", help="default: core")
    made = with_target(
        command("check", _check, "derivatives, forward and reverse, against differences of the function")
    )
    made.add_argument("--order", type=int, default=2, metavar="N", help="up to this order; default: 2")
    made = command("bench", _bench, "the benchmarks, in a clone of the repository")
    made.usage = "tapeless bench [primal | grad | memory] [OPTIONS]"
    made.epilog = (
        "Options are those of python -m benchmarks.primal, .grad and .memory: --only NAMES --quick --threads N."
    )
    made = command("cache", _cache, "the compiled code that is kept on disk")
    made.add_argument(
        "action", choices=("ls", "clear"), nargs="?", default="ls", help="list it (default), or remove it"
    )
    command("doctor", _doctor, "what this machine offers, and a self test")
    return parser


if __name__ == "__main__":
    sys.exit(main())
