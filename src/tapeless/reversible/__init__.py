"""Running backwards: regions solved for the values at their start, from those at their end."""
