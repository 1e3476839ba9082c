"""Formulae: what a scalar function computes, as expressions that people can read.

`expressions` are the nodes and the rules that keep them simple, `reading` makes them of Core, `slopes` differentiates
them, `text` writes them down. Imports nothing of the project above `ops`.
"""
