"""Tools for tests: generated programs, and the same program run by every stage of the compiler."""
