"""Programs for NVIDIA's GPUs: kernels as PTX, a host in machine code that launches them through the driver."""
