"""What the user wrote, and what it refers to.

Reading functions back from their files, the fence around the language, which names a block reads and binds, and how
objects of the surroundings are told apart from call to call.

Knows syntax and Python objects, no values of compiled code. Imports nothing of the front end.
"""
