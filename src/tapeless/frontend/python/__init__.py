"""The language: expressions, statements, loops and branches with what they join, calls, attributes, built-in functions, and
the modules math and cmath. Rules of syntax register themselves by the class of their node (`rules`).

Imports all the other folders of the front end.
"""
