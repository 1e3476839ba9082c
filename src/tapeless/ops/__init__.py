"""The operations: one row each, with everything the compiler knows about it."""
