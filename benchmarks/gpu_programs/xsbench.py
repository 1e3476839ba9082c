"""xsbench: macroscopic cross sections of random materials at random energies, interpolated in tables, in float64.

Each nuclide has a grid of energies with five cross sections; one search in the union of all grids gives the place in each.
The value is the sum of all that was found, and a hash: which of the five was the largest, summed.
"""

import numpy as np

import tapeless as tp
from benchmarks.gpu_programs import neutrons
from benchmarks.gpu_programs.case import Arguments, Case, Random


def cross_sections(energy, material, grid, union, index, nuclides, amounts, sizes):
    """Total, elastic, absorption, fission and neutrons of fission."""
    place = min(max(np.searchsorted(union, energy, side="right") - 1, 0), len(union) - 2)
    total, elastic, absorption, fission, neutrons_of_fission = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(sizes[material]):
        nuclide, amount = nuclides[material, j], amounts[material, j]
        at = index[place, nuclide]
        low, high = grid[nuclide, at], grid[nuclide, at + 1]
        f = (high[0] - energy) / (high[0] - low[0])
        total += amount * (high[1] - f * (high[1] - low[1]))
        elastic += amount * (high[2] - f * (high[2] - low[2]))
        absorption += amount * (high[3] - f * (high[3] - low[3]))
        fission += amount * (high[4] - f * (high[4] - low[4]))
        neutrons_of_fission += amount * (high[5] - f * (high[5] - low[5]))
    return total, elastic, absorption, fission, neutrons_of_fission


def xsbench(grid, union, index, nuclides, amounts, sizes, energies, materials):
    def lookup(energy, material):
        found = cross_sections(energy, material, grid, union, index, nuclides, amounts, sizes)
        return sum(found), neutrons.place_of_largest(found)

    sums, places = tp.map(lookup, energies, materials)
    return np.sum(sums), np.sum(places) % neutrons.HASH_MODULUS


def xsbench_total(*arguments):
    return xsbench(*arguments)[0]


def make_xsbench(_rng: Random, isotopes: int, points: int, count: int) -> Arguments:
    drawn = neutrons.unit(neutrons.states(42, isotopes * points * 6)).reshape(isotopes, points, 6)
    order = np.argsort(drawn[:, :, 0], axis=1, kind="stable")
    grid = np.take_along_axis(drawn, order[:, :, None], axis=1)
    union = np.sort(grid[:, :, 0], axis=None)
    index = np.empty((len(union), isotopes), np.int32)
    for isotope in range(isotopes):
        below = np.searchsorted(grid[isotope, :, 0], union, side="right") - 1
        index[:, isotope] = np.clip(below, 0, points - 2)
    seed = neutrons.LOOKUP_SEED**2
    composition = neutrons.compositions(neutrons.unit(neutrons.states(seed, neutrons.ENTRIES)))
    return grid, union, index, *composition, *neutrons.lookups(count)


CASES = (
    Case(
        "xsbench",
        "isotopes, energies of each and lookups; gradient by the tables",
        ((68, 11_303, 17_000_000),),
        ((68, 40, 600),),
        make_xsbench,
        xsbench,
        tp.value_and_grad(xsbench_total),
    ),
)
HASHES = {"xsbench": 945_990}
