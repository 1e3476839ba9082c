"""The passes that make a program smaller, and are run again and again."""
