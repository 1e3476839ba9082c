"""Algebra of integers: polynomials, positions and sizes as such, and what is known about them."""
