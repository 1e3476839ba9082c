"""What each node of Core becomes, on whatever runs it."""
