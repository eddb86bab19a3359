"""GPU kernels with one enforced memory model: write, check and run them."""
