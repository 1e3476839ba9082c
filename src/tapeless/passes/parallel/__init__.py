"""Loops that become sweeps, and sweeps that become one."""
