"""A tool for GradBench, the public benchmark of automatic differentiation: its twelve evals, written for this project."""
