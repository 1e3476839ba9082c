"""The reference evaluator of Core over NumPy: what a program means, for every pass to be judged by."""
