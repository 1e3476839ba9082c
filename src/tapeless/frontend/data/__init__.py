"""Numbers, arrays and containers, whatever the spelling.

Arithmetic and its tests, reading and writing of arrays, indexing, going over something, Python's operators, and how
arguments of functions are read.

Imports `state` and `source`. Nothing here knows a statement or a function of NumPy.
"""
