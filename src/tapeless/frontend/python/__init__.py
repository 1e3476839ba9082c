"""The language: expressions, statements, loops and branches, calls, built-in functions, math and cmath.

Rules of syntax register themselves by the class of their node (`rules`).

Imports all the other folders of the front end.
"""
