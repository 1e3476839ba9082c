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
from tapeless.ir.types import DType
from tapeless.ops.table import TABLE
from tapeless.passes.tidy.assumed import _result
from tests.recovery.gallery import loop
from tests.recovery.same import same

pytestmark = pytest.mark.usefixtures("programs_for_calls")


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
    assert len(programs(g, 1.0, 2.0)) == 0
    assert g._caller((1.0, 2.0), {})[0].budget.for_all


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
    for memory in range(1_700, 12_000, 2_500):
        g = tp.grad(march, memory=f"{memory}B")
        for n in (1, 4, 40):
            try:
                found = g(X, n)
            except tp.RecoveryError:
                continue
            np.testing.assert_allclose(found, plain(X, n), rtol=1e-12)


@pytest.mark.thorough
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


def uneven(x, n):
    """The lengths of inner loops rise and fall again."""
    s = 0.0
    for i in range(n):
        for j in range(i * (n - i)):
            x = np.sin(x) * 1.01
        s += x
    return s


@pytest.mark.parametrize("memory", ["1kB", "100kB"])
def test_lengths_that_depend_on_the_index(memory):
    g, plain = tp.grad(uneven, memory=memory), tp.grad(uneven)
    for n in (3, 10, 4, 30):
        try:
            found = g(0.5, n)
        except tp.RecoveryError:
            continue
        assert found == pytest.approx(plain(0.5, n), rel=1e-9)


def eliminated(a):
    a = a.copy()
    for k in range(a.shape[0]):
        for i in range(k + 1, a.shape[0]):
            a[i, k] /= a[k, k]
            for j in range(k + 1, a.shape[0]):
                a[i, j] -= a[i, k] * a[k, j]
    return np.sum(np.log(np.abs(np.diag(a))))


@pytest.mark.thorough
def test_logs_that_loops_count_are_known_beforehand():
    g, plain = tp.grad(eliminated, memory="8kB"), tp.grad(eliminated)
    rng = np.random.default_rng(3)
    for n in (3, 6, 12, 4):
        a = rng.random((n, n)) + n * np.eye(n)
        np.testing.assert_allclose(g(a), plain(a), rtol=1e-9, atol=1e-12)
    assert not any(p.serves_all for p in programs(g, np.eye(3)))


def test_bounds_of_operations():
    rng = np.random.default_rng(0)
    operations = ["add", "sub", "mul", "min", "max", "floordiv", "le", "lt", "ge", "gt", "eq", "ne", "mod"]
    for _ in range(400):
        op = operations[rng.integers(len(operations))]
        boxes = [tuple(np.sort(rng.integers(-6, 7, 2))) for _ in "ab"]
        dtype = DType.bool if op in ("le", "lt", "ge", "gt", "eq", "ne") else DType.i64
        bounds = _result(dtype, op, boxes)
        if bounds is None:
            continue
        for x in range(boxes[0][0], boxes[0][1] + 1):
            for y in range(boxes[1][0], boxes[1][1] + 1):
                assert bounds[0] <= TABLE[op].numpy(np.int64(x), np.int64(y)) <= bounds[1], (op, boxes)


@pytest.mark.thorough
def test_a_later_call_that_takes_all_ways():
    """The first call decides something, the second one nothing: there is no end of programs for it."""
    triangle = next(p for p in loop.loops if p.function.__name__ == "triangle")
    g = tp.grad(triangle.function, triangle.wrt, memory="3KB")
    for n in (0, 63, 64):
        same(g(*triangle.args(n)), triangle.expected(n))
