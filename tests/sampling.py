"""Which cases of an exhaustive test run in `make test` and in CI; `make test-all` runs them all.

A test marked `sampled(n)` keeps one case in n and at least one, the same in every run; the others are marked
`exhaustive`.
With `sampled(n, each="op")` that is so for each value of the parameter `op`, so that no row of a table goes untried.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

import pytest


def mark_unsampled(items: Iterable[pytest.Item]) -> None:
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("sampled")
        for case in unsampled(cases, *marker.args, **marker.kwargs):
            case.add_marker("exhaustive")


def unsampled(cases: Sequence[pytest.Item], n: int, each: str = "") -> list[pytest.Item]:
    """The others. By a hash of names: places in the list would take the same columns from every row of a grid."""
    rows: dict[str, list[pytest.Item]] = defaultdict(list)
    for case in sorted(cases, key=lambda case: crc32(case.nodeid.encode())):
        rows[repr(case.callspec.params[each]) if each else ""].append(case)
    return [case for row in rows.values() for case in row[-(-len(row) // n) :]]
