//! What shows that a device keeps the memory model: random valid kernels, the file tests, and the
//! comparison of both with the reference machine.
//!
//! Deliberately absent: devices. Who has one passes a function that runs a kernel on it.
