"""Programs for a GPU as a user of this project writes them: plain functions, each with its value, derivatives and sizes.

The work is that of the benchmarks of differentiation in Futhark (Schenck et al., SC 2022) and of six kernels. Nothing in
the sources is meant for one device; `tp.function(case.gradient, device="cuda")(*case.make(size))` runs one there.
"""

from benchmarks.gpu_programs import bundle, hand, kernels, lattice, mixtures, recurrent, rsbench, xsbench
from benchmarks.gpu_programs.case import Case

MODULES = (kernels, mixtures, lattice, bundle, hand, recurrent, xsbench, rsbench)
CASES: dict[str, Case] = {case.name: case for module in MODULES for case in module.CASES}
HASHES = xsbench.HASHES | rsbench.HASHES  # at full size, by the programs that these two come from
