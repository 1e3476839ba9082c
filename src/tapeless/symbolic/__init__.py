"""Algebra of integers: linear and affine forms."""
