"""The functions and methods of NumPy and scipy.special, one module a family.

Each module registers its functions with `known`; none has to be named elsewhere, but for `entry`, which loads them all.

Imports `data`, `state` and `source`; it does not know `python`.
"""
