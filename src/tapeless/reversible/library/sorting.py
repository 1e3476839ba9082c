"""Sorting in place that can be undone."""

import tapeless as tp


def sorting_rounds(n):
    """How many rounds `sort` makes for n elements."""
    k = _log2_above(n)
    return k * (k + 1) // 2


@tp.reversible
def sort(x, order, swapped):
    """Sorts x, and moves the elements of order alike. `swapped`, of False, sorting_rounds(n) by n, keeps what it did."""
    for a in range(_log2_above(len(x))):  # Batcher's network: halves of blocks of 2 << a elements are merged
        for b in range(a + 1):
            for i in range(len(x) - (1 << a - b)):
                with tp.ancilla(i + (1 << a - b)) as j, tp.ancilla(a * (a + 1) // 2 + b) as turn:
                    if _compared(i, 1 << a - b, 2 << a):
                        swapped[turn, i] ^= x[i] > x[j]
                        if swapped[turn, i]:
                            x[i], x[j] = x[j], x[i]
                            order[i], order[j] = order[j], order[i]


def _compared(i, apart, block):
    """Whether the network compares i with i + apart, while it merges halves of blocks."""
    first = apart % (block // 2)
    return i >= first and (i - first) % (2 * apart) < apart and i // block == (i + apart) // block


def _log2_above(n):
    k = 0
    while n > 1 << k:
        k += 1
    return k


@tp.reversible
def selection_sort(x, places):
    """Sorts x; `places`, of zeros, gets how far away each smallest element stood: all that undoing it takes."""
    for i in range(len(x) - 1):
        places[i] += _smallest_from(x, i) - i
        if places[i] != 0:
            x[i], x[i + places[i]] = x[i + places[i]], x[i]


def _smallest_from(x, start):
    found = start
    for i in range(start + 1, len(x)):
        if x[i] < x[found]:
            found = i
    return found
