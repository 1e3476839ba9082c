"""From a Python function to Core: what its source and its arguments are, rule by rule.

`entry` traces a function; `returned` says what becomes of its results, `guards` whether a trace still holds. Below
them, from high to low: `python`, then `operators` and `numpy` side by side, `data`, `state`, `source`. Each folder says
what it holds and what it may import; import-linter holds them to it.
"""
