//! Layout algebra: nested shapes and strides, and the functions that combine them.
