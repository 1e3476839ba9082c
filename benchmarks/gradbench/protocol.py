"""The protocol: one JSON object per line, one reply to each message.

`Tool.reply` takes a message and gives its reply. A function is repeated until the time that was asked for is over;
parsing, conversion and compilation lie outside the runs that count.
"""

from __future__ import annotations

import json
from importlib import import_module
from time import perf_counter_ns
from typing import Any, TextIO

import tapeless as tp
from benchmarks.gradbench.task import Task

EVALS = ("ba", "det", "gmm", "hello", "ht", "kmeans", "llsq", "lse", "lstm", "ode", "particle", "saddle")

Message = dict[str, Any]


class Clock:
    """Times of named steps, as replies carry them."""

    def __init__(self) -> None:
        self.timings: list[dict[str, Any]] = []

    def run(self, name: str, function: Any, *arguments: Any) -> tuple[Any, int]:
        start = perf_counter_ns()
        result = function(*arguments)
        spent = perf_counter_ns() - start
        self.timings.append({"name": name, "nanoseconds": spent})
        return result, spent


class Tool:
    """The modules that were defined, compiled for a number of threads."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.modules: dict[str, dict[str, tuple[Task, tp.Function[..., Any]]]] = {}

    def reply(self, message: Message) -> Message:
        reply = {"id": message["id"]}
        match message.get("kind"):
            case "start":
                return {**reply, "tool": "tapeless"}
            case "define" | "evaluate" as kind:
                try:
                    return {**reply, "success": True, **getattr(self, kind)(message)}
                except Exception as problem:
                    return {**reply, "success": False, "error": f"{type(problem).__name__}: {problem}"}
            case _:
                return reply

    def define(self, message: Message) -> Message:
        name = message["module"]
        if name not in EVALS:
            raise LookupError(f"there is no module {name!r}")
        module = import_module(f"benchmarks.gradbench.{name}")
        clock = Clock()
        made = {}
        for title, task in module.TASKS.items():
            function = tp.function(task.function, threads=self.threads)
            clock.run("compile", function.compiled, *task.arguments(module.EXAMPLE))
            made[title] = (task, function)
        self.modules[name] = made
        return {"timings": clock.timings}

    def evaluate(self, message: Message) -> Message:
        task, function = self.modules[message["module"]][message["function"]]
        given, clock = message["input"], Clock()
        options = given if isinstance(given, dict) else {}
        least, seconds = options.get("min_runs", 1), options.get("min_seconds", 0)
        arguments = task.arguments(given)
        clock.run("prepare", function, *arguments)  # compiles where the example did not fit
        runs, spent = 0, 0
        while runs < max(least, 1) or spent < seconds * 1e9:
            result, time = clock.run("evaluate", function, *arguments)
            runs, spent = runs + 1, spent + time
        return {"output": task.output(result, arguments), "timings": clock.timings}


def serve(messages: TextIO, replies: TextIO, threads: int = 1) -> None:
    """Answer every line until the end of the input."""
    tool = Tool(threads)
    for line in messages:
        json.dump(tool.reply(json.loads(line)), replies, allow_nan=False)
        replies.write("\n")
        replies.flush()
