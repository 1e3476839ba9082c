"""Under a budget, what is compiled is what calls take: Note [Programs for calls] in `runtime/budgets.py`."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tapeless as tp
from tapeless.ir.core import Check, If
from tapeless.ir.operands import regions


def march(x, n):
    s = 0.0
    for i in range(n):
        x = np.sin(x) + 0.1 * x
        s += np.sum(x * x)
    return s


X = np.linspace(0.0, 1.0, 100)


def programs(g, *args):
    return g._caller(args, {})[0].budget.programs.made


def count(function, kind):
    def inside(body):
        return sum(
            isinstance(s.exp, kind) + sum(inside(r.body) for r in regions(s.exp)) for s in body.stms
        )  # fmt: skip

    return inside(function.body)


def test_one_way_is_compiled_at_a_time():
    g, plain = tp.grad(march, memory="8kB"), tp.grad(march)
    made = []
    for n in (2, 60, 3, 61, 62, 5):
        np.testing.assert_allclose(g(X, n), plain(X, n), rtol=1e-12)
        made.append(len(programs(g, X, n)))
    assert made[0] == 1
    assert made[1:] == [2] * 5
    assert not any(p.serves_all for p in programs(g, X, 3))
    few, many = g.compiled(X, 3), g.compiled(X, 60)
    assert few is not many
    assert few is g.compiled(X, 4)
    assert count(few.optimized, If) == 0
    assert few.text("core") != many.text("core")


def test_wrong_assumptions_are_tested_in_the_code_too():
    g = tp.grad(march, memory="8kB")
    g(X, 2)
    caller = g._caller((X, 2), {})[0]
    few = g.compiled(X, 2)
    tests = [s.error for s in few.binary.sites if s.error == "OtherPlan"]
    assert tests
    assert count(few.optimized, Check) > 0
    with pytest.raises(tp.RecoveryError, match="other sizes"):
        caller._of(few)._run([X, 60], [X, 60, 8000])


def test_loops_whose_length_shows_later_keep_all_ways():
    def until(x, limit):
        s = 0.0
        while x < limit:
            x = x * 1.01 + 0.01
            s += np.sin(x)
        return s

    g, plain = tp.grad(until, memory="1kB"), tp.grad(until)
    for limit in (1.5, 100.0, 1e6):
        assert g(1.0, limit) == pytest.approx(plain(1.0, limit), rel=1e-12)
    assert len(programs(g, 1.0, 2.0)) == 1
    assert programs(g, 1.0, 2.0)[0].serves_all


def nested(x, n, m):
    s = 0.0
    for i in range(n):
        for j in range(m):
            x = np.sin(x) * (1.0 + 0.01 * j)
        s += np.sum(x * x)
    return s


def test_loops_in_loops():
    plain = tp.grad(nested)
    g = tp.grad(nested, memory="6kB")
    for n, m in [(2, 2), (2, 30), (30, 2), (30, 30), (3, 2), (2, 2)]:
        np.testing.assert_allclose(g(X, n, m), plain(X, n, m), rtol=1e-10)
    assert len(programs(g, X, 2, 2)) <= 5


def test_many_rooms_end_in_a_program_for_all():
    plain = tp.grad(march)
    for memory in range(1_700, 12_000, 700):
        g = tp.grad(march, memory=f"{memory}B")
        for n in (1, 4, 40):
            try:
                found = g(X, n)
            except tp.RecoveryError:
                continue
            np.testing.assert_allclose(found, plain(X, n), rtol=1e-12)


def test_another_process_finds_what_a_call_takes(tmp_path):
    script = tmp_path / "march.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            import tapeless as tp

            def march(x, n):
                s = 0.0
                for i in range(n):
                    x = np.sin(x) + 0.1 * x
                    s += np.sum(x * x)
                return s

            g = tp.grad(march, memory="8kB")
            x = np.linspace(0.0, 1.0, 100)
            for n in map(int, sys.argv[1:]):
                compiled = g.compiled(x, n)
                print(n, compiled.from_cache, g(x, n).sum().hex())
            """
        )
    )

    def run(*lengths):
        done = subprocess.run(
            [sys.executable, str(script), *map(str, lengths)], capture_output=True, text=True, check=True,
            env={**os.environ, "TAPELESS_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        return [line.split() for line in done.stdout.splitlines()]

    first = run(2, 60)
    assert [line[1] for line in first] == ["False", "False"]
    again = run(60, 2)
    assert [line[1] for line in again] == ["True", "True"]
    assert {line[0]: line[2] for line in first} == {line[0]: line[2] for line in again}
    other = run(61)
    assert other[0][1] == "True"  # traced, but the code is there
