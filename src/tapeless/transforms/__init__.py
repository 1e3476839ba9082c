"""Transforms in compiled code: what `tp.grad(f)(x)` and its family are where a function is traced."""
