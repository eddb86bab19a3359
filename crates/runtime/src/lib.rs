//! Devices, buffers, programs and queues.
//!
//! Deliberately absent: front ends, reports, printing.
