"""What is known at one point of a compilation.

The classes of values, the context with bindings and open calls, hidden arguments, refusals, and the tables of what can
be called (`handlers`), which the modules above fill.

Imports `source` only.
"""
