"""How values that a loop has overwritten come back: what is kept, and the plan that chooses."""
