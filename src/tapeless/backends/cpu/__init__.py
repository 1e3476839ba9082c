"""Running compiled programs on the CPU: loading objects, threads, and the libraries they call."""
