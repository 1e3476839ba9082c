"""Core to Loop IR: loops, buffers and scalars that a machine has; no differentiation below this line."""
