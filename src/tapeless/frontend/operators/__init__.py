"""The operators of the package inside compiled functions.

tp.map, tp.vmap, tp.reduce, tp.scan, tp.hist, tp.scatter, and the ranges of loops. Each registers itself with
`operator`; transforms add theirs from above the front end.

Imports `data`, `state` and `source`; it knows neither `numpy` nor `python`.
"""
