// error[unsupported-float-mode] at 2:1: kernel `@strict` is `strict`, but WGSL does not promise correctly rounded operations, subnormals, infinities and NaN
// error[unsupported-memory-order] at 9:5: `atomic_load` has the order `acquire`, but WGSL has relaxed atomics only
// error[unsupported-feature] at 12:1: `x` holds f64, which WGSL does not have
