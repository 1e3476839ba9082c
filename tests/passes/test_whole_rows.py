"""Updates of the cells of a row that become one update."""

from __future__ import annotations

from functools import partial

import pytest

from tapeless.passes.accumulators.whole_rows import whole_rows
from tests.passes.programs import after, program

joined = partial(after, whole_rows)


def filled(*updates: str) -> str:
    return rf"""
        own: [n][3]f64 = full [n, 3] 0.0
        r: [n][3]f64 = with_acc own (\(acc: acc<add, [n][3]f64>) ->
          map n (\i e f ->
            t: f64 = sin e
            {"; ".join(f"update_acc acc[{place}] = {value}" for place, value in (u.split("=") for u in updates))}
            in ()) x y
          in ())
    """


def test_all_cells_in_any_order() -> None:
    assert joined(filled("i, 2=e", "i, 0=t", "i, 1=f"), "r").endswith(
        r"map n (\i e f -> t: f64 = sin e row: [3]f64 = [t, f, e] update_acc acc[i, :] = row in ()) x y in ()) in r"
    )


@pytest.mark.parametrize(
    "updates",
    [("i, 0=e", "i, 1=f"), ("i, 0=e", "i, 1=f", "i, 2=t", "i, 2=e"), ("0, 0=e", "0, 1=f", "0, 2=t")],
    ids=["some cells", "a cell twice", "not the row of the iteration"],
)
def test_cells_that_stay_alone(updates: tuple[str, ...]) -> None:
    f = program(filled(*updates), "r")
    assert whole_rows(f) is f
