"""From Loop IR to machine code: the LLVM emitter, and what each kind of machine needs to run its code."""
