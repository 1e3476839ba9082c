"""Coarsening: whole segments of a program are replaced by what they come to."""
