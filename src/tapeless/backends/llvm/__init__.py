"""One emitter from Loop IR to LLVM IR text for every target, and LLVM's optimiser."""
