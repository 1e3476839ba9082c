"""The reversible dialect of Python: parsed, checked, run backwards, written out, and turned into plain functions."""
