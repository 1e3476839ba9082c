"""Passes over Core: each takes a verified program and gives one."""
