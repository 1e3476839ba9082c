"""Which cases of an exhaustive test run in `make test`; `make test-all` runs them all.

A test marked `sampled(n)` keeps one case in n, spread over the grid, and the others are marked `thorough`. With
`sampled(n, each="op")` that is one in n for each value of the parameter `op` and at least one, so that no row goes untried.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest


def mark_unsampled(items: Iterable[pytest.Item]) -> None:
    grids: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            grids[item.nodeid.partition("[")[0]].append(item)
    for cases in grids.values():
        marker = cases[0].get_closest_marker("sampled")
        for case in unsampled(cases, *marker.args, **marker.kwargs):
            case.add_marker("thorough")


def unsampled(cases: Sequence[pytest.Item], n: int, each: str = "") -> list[pytest.Item]:
    rows: dict[str, list[pytest.Item]] = defaultdict(list)
    for case in cases:
        rows[repr(case.callspec.params[each]) if each else ""].append(case)
    return [
        case
        for k, row in enumerate(rows.values())
        for at, case in enumerate(row)
        if (at - k)
        % min(n, len(row))  # a row starts one case further than the last, or all rows would keep the same ones
    ]
