"""Python source to Core: find the source, fence the language, follow values and references, emit typed statements."""
