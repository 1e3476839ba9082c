"""rsbench: macroscopic cross sections of random materials at random energies, from the poles of resonances, in float64.

A nuclide's energies are cut into windows; in one, its cross sections are a polynomial and a sum over the poles of that
window. The value is the sum of all that was found, and a hash: which of the four was the largest, summed.
"""

import math

import numpy as np

import tapeless as tp
from benchmarks.gpu_programs import neutrons
from benchmarks.gpu_programs.case import Arguments, Case, Random

DOPPLER = 0.5
PERIOD, FACTOR = 12.0, 81.24330
TERMS = (
    (2.758402e-01, 9.869604e00),
    (2.245740e-01, 3.947842e01),
    (1.594149e-01, 8.882644e01),
    (9.866577e-02, 1.579137e02),
    (5.324414e-02, 2.467401e02),
    (2.505215e-02, 3.553058e02),
    (1.027747e-02, 4.836106e02),
    (3.676164e-03, 6.316547e02),
    (1.146494e-03, 7.994380e02),
    (3.117570e-04, 9.869604e02),
)  # weights and poles of the expansion near 0
FAR_WEIGHTS = 0.512424224754768462984202823134979415, 0.051765358792987823963876628425793170829
FAR_POLES = 0.275255128608410950901357962647054304, 2.724744871391589049098642037352945695983
POLE_SCALE = np.array([152.5, 152.5, 152.5, 1.0, 152.5, 1.0, 152.5, 1.0])


def quick_exp(x):
    """(1 + x / 4096) ** 4096."""
    x = 1.0 + x * 0.000244140625
    for _ in range(12):
        x *= x
    return x


def faddeeva(z):
    """exp(-z**2) * erfc(-i * z), approximately."""
    if z.real * z.real + z.imag * z.imag < 36.0:
        size, angle = quick_exp(-PERIOD * z.imag), PERIOD * z.real
        wave = complex(size * math.cos(angle), size * math.sin(angle))
        square = PERIOD * PERIOD * z * z
        total, sign = 0j, -1.0
        for weight, pole in TERMS:
            total += weight * (sign * wave - 1.0) / (pole - square)
            sign = -sign
        return 1j * (1.0 - wave) / (PERIOD * z) + 1j * FACTOR * z * total
    square = z * z
    return 1j * z * (FAR_WEIGHTS[0] / (square - FAR_POLES[0]) + FAR_WEIGHTS[1] / (square - FAR_POLES[1]))


def turned(phase):
    """exp(-2i * phase)."""
    return complex(math.cos(2.0 * phase), -math.sin(2.0 * phase))


def phase_factors(radii, energy):
    """Of waves that go past a nuclide, for angular momenta of 0, 1, 2 and 3."""
    speed = math.sqrt(energy)
    p0, p1, p2, p3 = radii[0] * speed, radii[1] * speed, radii[2] * speed, radii[3] * speed
    return (
        turned(p0),
        turned(p1 + math.atan(p1)),
        turned(p2 - math.atan(3.0 * p2 / (3.0 - p2 * p2))),
        turned(p3 - math.atan(p3 * (15.0 - p3 * p3) / (15.0 - 6.0 * p3 * p3))),
    )


def of_nuclide(energy, nuclide, poles, momenta, background, windows, counts, radii):
    """Total, absorption and fission of one nuclide."""
    count = counts[nuclide]
    window = min(int(energy / (1.0 / count)), count - 1)
    total = energy * background[nuclide, window, 0]
    absorption = energy * background[nuclide, window, 1]
    fission = energy * background[nuclide, window, 2]
    factors = phase_factors(radii[nuclide], energy)
    for i in range(windows[nuclide, window, 0], windows[nuclide, window, 1]):
        pole = poles[nuclide, i]
        w = faddeeva((energy - complex(pole[0], pole[1])) * DOPPLER)
        total += (complex(pole[2], pole[3]) * w * factors[momenta[nuclide, i]]).real
        absorption += (complex(pole[4], pole[5]) * w).real
        fission += (complex(pole[6], pole[7]) * w).real
    return total, absorption, fission


def rsbench(poles, momenta, background, windows, counts, radii, nuclides, amounts, sizes, energies, materials):
    def lookup(energy, material):
        total, absorption, fission = 0.0, 0.0, 0.0
        for j in range(sizes[material]):
            nuclide, amount = nuclides[material, j], amounts[material, j]
            t, a, f = of_nuclide(energy, nuclide, poles, momenta, background, windows, counts, radii)
            total += amount * t
            absorption += amount * a
            fission += amount * f
        found = total, absorption, fission, total - absorption
        return sum(found), neutrons.place_of_largest(found)

    sums, places = tp.map(lookup, energies, materials)
    return np.sum(sums), np.sum(places) % neutrons.HASH_MODULUS


def rsbench_total(*arguments):
    return rsbench(*arguments)[0]


def make_rsbench(_rng: Random, isotopes: int, mean_poles: int, mean_windows: int, lookups: int) -> Arguments:
    drawn = neutrons.states(42, neutrons.ENTRIES + isotopes * (10 * mean_poles + 4 * mean_windows + 2))
    used = 0

    def take(count: int) -> np.ndarray:
        nonlocal used
        used += count
        return drawn[used - count : used]

    def spread(mean: int) -> np.ndarray:
        """One for each nuclide, and the others by chance."""
        chosen = take(isotopes * (mean - 1)) % np.uint64(isotopes)
        return 1 + np.bincount(chosen.astype(np.int64), minlength=isotopes)

    composition = neutrons.compositions(neutrons.unit(take(neutrons.ENTRIES)))
    pole_counts, counts = spread(mean_poles), spread(mean_windows)
    poles, momenta = np.ones((isotopes, pole_counts.max(), 8)), np.zeros((isotopes, pole_counts.max()), np.int32)
    for nuclide, count in enumerate(pole_counts):
        rows = take(9 * count).reshape(count, 9)
        poles[nuclide, :count] = neutrons.unit(rows[:, :8]) * POLE_SCALE
        momenta[nuclide, :count] = rows[:, 8] % np.uint64(4)
    background = np.zeros((isotopes, counts.max(), 3))
    windows = np.zeros((isotopes, counts.max(), 2), np.int32)
    for nuclide, count in enumerate(counts):
        background[nuclide, :count] = neutrons.unit(take(3 * count)).reshape(count, 3)
        width, wider = divmod(pole_counts[nuclide], count)
        at = np.arange(count)
        first = width * at + np.minimum(at, wider)
        windows[nuclide, :count, 0] = first
        windows[nuclide, :count, 1] = first + width - 1 + (at < wider)  # RSBench leaves out the last pole
    radii = neutrons.unit(take(4 * isotopes)).reshape(isotopes, 4)
    counts = counts.astype(np.int32)
    return poles, momenta, background, windows, counts, radii, *composition, *neutrons.lookups(lookups)


CASES = (
    Case(
        "rsbench",
        "isotopes, poles and windows of each on average, and lookups; gradient by the poles",
        ((68, 1000, 100, 10_200_000),),
        ((68, 60, 8, 300),),
        make_rsbench,
        rsbench,
        tp.value_and_grad(rsbench_total),
    ),
)
HASHES = {"rsbench": 880_018}
