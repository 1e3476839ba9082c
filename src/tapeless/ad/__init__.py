"""Differentiation: Core in, Core out."""
