"""What the two neutron transport programs share: their random numbers, the materials of a reactor core, and what is looked up.

The numbers are those of the programs XSBench and RSBench, so that their verification hashes can be compared.
"""

import numpy as np

MULTIPLIER, MASK = 2806196910506780709, (1 << 63) - 1
LOOKUP_SEED = 1070
HASH_MODULUS = 999_983

_WATER = (24, 41, 4, 5)
_STEEL = (19, 20, 21, 22, 35, 36, 37, 38, 39, 25)
_NOZZLE = (49, 50, 51, 11, 12, 13, 14)
_FUEL = (
    *(58, 59, 60, 61, 40, 42, 43, 44, 45, 46, 1, 2, 3, 7, 8, 9, 10, 29, 57, 47, 48, 0, 62),
    *(15, 33, 34, 52, 53, 54, 55, 56, 18, 23, 41),
)
_CLADDING = (63, 64, 65, 66, 67)
_VESSEL = (*_STEEL, 27, 28, 29, 30, 31, 32, 26, *_NOZZLE, 6, 16, 17)
MATERIALS = (
    *(_FUEL, _CLADDING, _WATER, _WATER, _VESSEL),
    *(5 * ((*_WATER, *_STEEL, *_NOZZLE),)),
    *(2 * ((*_WATER, *_CLADDING),)),
)  # the nuclides of each
ENTRIES = sum(len(material) for material in MATERIALS)
SHARE = np.array([0.140, 0.052, 0.275, 0.134, 0.154, 0.064, 0.066, 0.055, 0.008, 0.015, 0.025, 0.013])


def states(seed: int, count: int) -> np.ndarray:
    """The next states of s -> (MULTIPLIER * s + 1) mod 2**63, twice as many in each round."""
    found = np.empty(count, np.uint64)
    found[0] = (MULTIPLIER * seed + 1) & MASK
    done, factor, shift = 1, MULTIPLIER, 1  # what `done` steps at once do
    while done < count:
        more = min(done, count - done)
        found[done : done + more] = (found[:more] * np.uint64(factor) + np.uint64(shift)) & np.uint64(MASK)
        factor, shift = factor * factor & MASK, (factor + 1) * shift & MASK
        done += more
    return found


def unit(drawn: np.ndarray) -> np.ndarray:
    """Numbers between 0 and 1."""
    return drawn.astype(np.float64) / 2.0**63


def compositions(concentrations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nuclides, their concentrations and their number for each material, in rows of one length."""
    sizes = np.array([len(material) for material in MATERIALS], np.int32)
    nuclides = np.zeros((len(MATERIALS), sizes.max()), np.int32)
    amounts = np.zeros(nuclides.shape)
    used = np.arange(sizes.max()) < sizes[:, None]
    nuclides[used] = np.concatenate(MATERIALS)
    amounts[used] = concentrations
    return nuclides, amounts, sizes


def lookups(count: int) -> tuple[np.ndarray, np.ndarray]:
    """An energy and a material of each."""
    drawn = unit(states(LOOKUP_SEED, 2 * count))
    ends = np.cumsum(np.concatenate(((0.0,), SHARE[1:])))  # the first material has what is left
    return drawn[::2].copy(), (np.searchsorted(ends, drawn[1::2], side="right") % len(SHARE)).astype(np.int32)


def place_of_largest(values):
    """The first of them, counted from 1."""
    largest, place = values[0], 1
    for k, value in enumerate(values):
        if value > largest:
            largest, place = value, k + 1
    return place
