"""Times of every function at one size of the benchmark, without the benchmark.

    python -m benchmarks.gradbench.measure [EVAL[:size=N,...]]... [--threads N] [--seconds S]

Milliseconds are the fastest and the mean of the runs. Compile times are of an empty cache where TAPELESS_CACHE_DIR names one.
"""

import argparse
import sys

from benchmarks.gradbench import workloads
from benchmarks.gradbench.protocol import EVALS, Tool
from benchmarks.timing import set_threads


def sizes(text: str) -> tuple[str, dict[str, int]]:
    """`gmm:d=2,k=5` as the name and the sizes."""
    name, _, rest = text.partition(":")
    return name, {key: int(value) for key, value in (pair.split("=") for pair in rest.split(",") if pair)}


def measure(name: str, chosen: dict[str, int], threads: int, seconds: float) -> None:
    tool = Tool(threads)
    reply = tool.reply({"id": 0, "kind": "define", "module": name})
    if not reply["success"]:
        print(f"{name:9} {reply['error']}")
        return
    given = getattr(workloads, name)(**chosen)
    if isinstance(given, dict):
        given |= {"min_runs": 3, "min_seconds": seconds}
    for title, compiled in zip(tool.modules[name], reply["timings"], strict=True):
        message = {"id": 1, "kind": "evaluate", "module": name, "function": title, "input": given}
        reply = tool.reply(message)
        if not reply["success"]:
            print(f"{name:9} {title:10} {reply['error']}")
            continue
        times = [t["nanoseconds"] * 1e-6 for t in reply["timings"] if t["name"] == "evaluate"]
        compile_s = compiled["nanoseconds"] * 1e-9
        prepare_s = next(t["nanoseconds"] for t in reply["timings"] if t["name"] == "prepare") * 1e-9
        shown = f"{min(times):10.4g} ms  mean {sum(times) / len(times):10.4g}  {len(times):6} runs"
        print(f"{name:9} {title:10} {shown}  compile {compile_s:5.2f} s  prepare {prepare_s:5.2f} s")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradbench.measure", description=__doc__)
    parser.add_argument("evals", nargs="*", default=list(EVALS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    set_threads(given.threads)
    for text in given.evals:
        measure(*sizes(text), given.threads, given.seconds)


if __name__ == "__main__":
    main()
