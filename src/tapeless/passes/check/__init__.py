"""Is it legal? The verifier, the types of expressions, and the check that makes every update in place one."""
