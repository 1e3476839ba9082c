"""All passes over a program that goes to the machine next.

Takes traced (or differentiated) Core; gives Core for the in-place check and lowering. The list is the compiler's
policy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

from tapeless.ir.core import Function
from tapeless.passes.added_rows import add_in_place
from tapeless.passes.decided import choose_by_decisions
from tapeless.passes.fuse import fuse
from tapeless.passes.gather import gather
from tapeless.passes.jam import jam
from tapeless.passes.own_cells import own_cells
from tapeless.passes.parallelise import parallelise_marked
from tapeless.passes.pipeline import FINAL_PASSES, TIDYING, optimize
from tapeless.passes.product_chains import chain_products
from tapeless.passes.product_sums import sum_products_first
from tapeless.passes.quotients import settle_quotients
from tapeless.passes.ranges import eliminate_checks
from tapeless.passes.recognise import recognise_products
from tapeless.passes.tiles import write_tiles
from tapeless.passes.verify import verify
from tapeless.passes.version import version_loops
from tapeless.passes.whole_rows import whole_rows
from tapeless.passes.zeroed import write_over_zeros

VERIFY = bool(os.environ.get("TAPELESS_VERIFY"))  # check the program after every pass


def optimized(function: Function, *, unsafe: bool = False, times: dict[str, float] | None = None) -> Function:
    """Clean up, prove parallel loops, drop index tests, fuse, find products, clean up for the last time, polish."""
    spent = times if times is not None else {}

    def clean(f: Function) -> Function:
        return optimize(f, verify=VERIFY, times=spent)

    def clean_finally(f: Function) -> Function:
        return optimize(f, verify=VERIFY, times=spent, passes=FINAL_PASSES)

    def jam_loops(f: Function) -> Function:
        jammed = jam(f)
        return f if jammed is f else optimize(jammed, verify=VERIFY, times=spent, passes=TIDYING)

    steps: list[tuple[str, Callable[[Function], Function]]] = [
        ("", clean),
        ("parallelise", parallelise_marked),
        ("ranges", partial(eliminate_checks, unsafe=unsafe)),
        ("", clean),
        ("own cells", whole_rows),
        ("own cells", own_cells),
        ("", clean),
        ("gather", write_over_zeros),
        ("gather", gather),
        ("", clean),
        ("fuse", fuse),
        ("recognise", recognise_products),
        ("product sums", sum_products_first),
        ("product chains", chain_products),
        ("own cells", add_in_place),
        ("version", version_loops),
        ("", clean_finally),
        ("quotients", settle_quotients),
        ("tiles", write_tiles),
        ("decisions", choose_by_decisions),
        ("jam", jam_loops),
    ]
    for name, step in steps:
        start = time.perf_counter()
        function = step(function)
        if name:
            spent[name] = spent.get(name, 0.0) + time.perf_counter() - start
            if VERIFY:
                verify(function)
    return function
