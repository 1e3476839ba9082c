"""The ways of single recoveries: snapshots, strips, logs, inverses."""
