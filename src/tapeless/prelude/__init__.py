"""Functions of NumPy and SciPy, written in the compiled language itself.

Each is plain Python that `tp.function` could take: `registry.stands_for` says which functions it stands for, and the front
end compiles it into the caller. Relies on NumPy and SciPy only.
"""
