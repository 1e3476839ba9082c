"""Loop IR: its nodes, its text, what is legal in it, and an interpreter."""
