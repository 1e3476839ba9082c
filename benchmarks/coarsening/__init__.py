"""Coarsening: gradients of scalar programs with closed forms and without, beside other libraries and C."""
