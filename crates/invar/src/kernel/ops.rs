//! The operations that have no operator, as functions and as methods of values, and what threads do
//! together.
//!
//! A test holds the names against the op table: each row stands here, has an operator, or is in the
//! list of what Rust kernels do not have.

use invar_ir::{AtomicOp, Dim, KernelBuilder, Order, Scope, Spaces};

use super::define::with;
use super::memory::{PlaceMut, PlaceRef};
use super::value::{Bits, Float, Integer, Number, Scalar, Signed, Val};

macro_rules! same {
    ($($bound:ident: $($name:ident($first:ident $(, $arg:ident)*)),* ;)*) => {
        #[cfg(test)]
        const SAME: &[&str] = &[$($(stringify!($name)),*),*];

        $($(
            #[doc = concat!("`", stringify!($name), "` of the [table of operations]",
                "(invar_ir::KernelBuilder::", stringify!($name), ").")]
            pub fn $name<T: $bound>($first: Val<T> $(, $arg: Val<T>)*) -> Val<T> {
                Val::of(with(|k| {
                    KernelBuilder::$name(&mut k.builder, $first.value $(, $arg.value)*)
                }))
            }
        )*)*

        $(impl<T: $bound> Val<T> {$(
            #[doc = concat!("As the function [`", stringify!($name), "`].")]
            pub fn $name(self $(, $arg: Val<T>)*) -> Val<T> {
                $name(self $(, $arg)*)
            }
        )*})*
    };
}
same! {
    Number: abs(x), min(a, b), max(a, b), clamp(x, low, high), simd_sum(x), simd_product(x),
        simd_min(x), simd_max(x), simd_prefix_inclusive_sum(x), simd_prefix_exclusive_sum(x),
        simd_prefix_inclusive_product(x), simd_prefix_exclusive_product(x), quad_sum(x),
        quad_product(x), quad_min(x), quad_max(x), quad_prefix_inclusive_sum(x),
        quad_prefix_exclusive_sum(x), quad_prefix_inclusive_product(x),
        quad_prefix_exclusive_product(x);
    Float: fma(a, b, c), sqrt(x), fmin(a, b), fmax(a, b), ceil(x), floor(x), trunc(x), rint(x),
        round(x), saturate(x), fract(x), step(edge, x), mix(x, y, a), smoothstep(low, high, x),
        copysign(x, sign), exp(x), exp2(x), exp10(x), log(x), log2(x), log10(x), pow(x, y),
        powr(x, y), rsqrt(x), sin(x), cos(x), tan(x), sinpi(x), cospi(x), tanpi(x), asin(x),
        acos(x), atan(x), atan2(y, x), sinh(x), cosh(x), tanh(x), asinh(x), acosh(x), atanh(x),
        erf(x), fmod(x, y);
    Signed: sign(x);
    Integer: popcount(x), clz(x), ctz(x), reverse_bits(x), mul_hi(a, b), abs_diff(a, b),
        add_sat(a, b), sub_sat(a, b), mad_hi(a, b, c), mad_sat(a, b, c), rotate(x, count);
    Bits: simd_and(x), simd_or(x), simd_xor(x), quad_and(x), quad_or(x), quad_xor(x);
    Scalar: simd_broadcast_first(x), quad_broadcast_first(x);
}

macro_rules! mixed {
    ($($name:ident<$($generic:ident: $bound:ident)?>($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        #[cfg(test)]
        const MIXED: &[&str] = &[$(stringify!($name)),*];

        $(
            #[doc = concat!("`", stringify!($name), "` of the [table of operations]",
                "(invar_ir::KernelBuilder::", stringify!($name), ").")]
            pub fn $name$(<$generic: $bound>)?($($arg: Val<$ty>),*) -> Val<$result> {
                Val::of(with(|k| KernelBuilder::$name(&mut k.builder $(, $arg.value)*)))
            }
        )*
    };
}
mixed! {
    select<T: Scalar>(on_false: T, on_true: T, condition: bool) -> T;
    ldexp<T: Float>(x: T, exponent: i32) -> T;
    isnan<T: Float>(x: T) -> bool;
    isinf<T: Float>(x: T) -> bool;
    isfinite<T: Float>(x: T) -> bool;
    isnormal<T: Float>(x: T) -> bool;
    signbit<T: Float>(x: T) -> bool;
    extract_bits<T: Integer>(x: T, offset: u32, count: u32) -> T;
    insert_bits<T: Integer>(x: T, part: T, offset: u32, count: u32) -> T;
    simd_shuffle<T: Scalar>(x: T, lane: u32) -> T;
    simd_shuffle_up<T: Scalar>(x: T, delta: u32) -> T;
    simd_shuffle_down<T: Scalar>(x: T, delta: u32) -> T;
    simd_shuffle_xor<T: Scalar>(x: T, mask: u32) -> T;
    simd_shuffle_rotate_up<T: Scalar>(x: T, delta: u32) -> T;
    simd_shuffle_rotate_down<T: Scalar>(x: T, delta: u32) -> T;
    simd_broadcast<T: Scalar>(x: T, lane: u32) -> T;
    quad_shuffle<T: Scalar>(x: T, lane: u32) -> T;
    quad_shuffle_up<T: Scalar>(x: T, delta: u32) -> T;
    quad_shuffle_down<T: Scalar>(x: T, delta: u32) -> T;
    quad_shuffle_xor<T: Scalar>(x: T, mask: u32) -> T;
    quad_shuffle_rotate_up<T: Scalar>(x: T, delta: u32) -> T;
    quad_shuffle_rotate_down<T: Scalar>(x: T, delta: u32) -> T;
    quad_broadcast<T: Scalar>(x: T, lane: u32) -> T;
    simd_all<>(x: bool) -> bool;
    simd_any<>(x: bool) -> bool;
    quad_all<>(x: bool) -> bool;
    quad_any<>(x: bool) -> bool;
    thread_index_in_threadgroup<>() -> u32;
    thread_index_in_simdgroup<>() -> u32;
    simdgroup_index_in_threadgroup<>() -> u32;
    simdgroups_per_threadgroup<>() -> u32;
    dispatch_simdgroups_per_threadgroup<>() -> u32;
    threads_per_simdgroup<>() -> u32;
    thread_execution_width<>() -> u32;
    thread_index_in_quadgroup<>() -> u32;
    quadgroup_index_in_threadgroup<>() -> u32;
    quadgroups_per_threadgroup<>() -> u32;
    dispatch_quadgroups_per_threadgroup<>() -> u32;
}

/// A position or size of three components; each is asked for by itself: `.x`, `.y`, `.z`.
#[derive(Clone, Copy)]
pub struct Position(fn(&mut KernelBuilder, Dim) -> invar_ir::Value);

impl Position {
    fn component(self, dim: Dim) -> Val<u32> {
        Val::of(with(|k| (self.0)(&mut k.builder, dim)))
    }

    /// The first component: in a kernel `.x`.
    pub fn x(self) -> Val<u32> {
        self.component(Dim::X)
    }

    /// The second component: in a kernel `.y`.
    pub fn y(self) -> Val<u32> {
        self.component(Dim::Y)
    }

    /// The third component: in a kernel `.z`.
    pub fn z(self) -> Val<u32> {
        self.component(Dim::Z)
    }
}

impl super::IntoVal for Position {
    type Val = Position;

    fn into_val(self) -> Position {
        self
    }
}

macro_rules! positions {
    ($($name:ident),*) => {
        #[cfg(test)]
        const POSITIONS: &[&str] = &[$(stringify!($name)),*];

        $(
            #[doc = concat!("`", stringify!($name), "` of the [table of operations]",
                "(invar_ir::KernelBuilder::", stringify!($name), "): `.x`, `.y` or `.z` of it.")]
            pub fn $name() -> Position {
                Position(KernelBuilder::$name)
            }
        )*
    };
}
positions! {
    thread_position_in_grid, thread_position_in_threadgroup, threadgroup_position_in_grid,
    threads_per_threadgroup, dispatch_threads_per_threadgroup, threads_per_grid,
    threadgroups_per_grid, grid_origin, grid_size
}

/// Makes the threads of the threadgroup wait for each other, and orders device and threadgroup memory
/// between them (O2). All of them must come to it (X4).
pub fn threadgroup_barrier() {
    with(|k| k.builder.barrier(Scope::Threadgroup, Spaces::DEFAULT));
}

/// Makes the threads of the simdgroup wait for each other, and orders device and threadgroup memory
/// between them (O2). All of them must come to it (X4).
pub fn simdgroup_barrier() {
    with(|k| k.builder.barrier(Scope::Simdgroup, Spaces::DEFAULT));
}

/// Asserts that a value is the same for all threads of the threadgroup, and gives it (X5).
pub fn assert_uniform<T: Scalar>(x: Val<T>) -> Val<T> {
    Val::of(with(|k| {
        k.builder.assert_uniform(x.value, Scope::Threadgroup)
    }))
}

fn atomic<T: Number>(op: AtomicOp, place: PlaceMut<T>, args: &[Val<T>]) -> Vec<invar_ir::Value> {
    let args: Vec<_> = args.iter().map(|v| v.value).collect();
    with(|k| {
        k.uses(place.memory, true, op != AtomicOp::Load);
        let place = place.place();
        let results = k
            .builder
            .atomic(op, place, &args, Order::Relaxed, Scope::Device);
        results.to_vec()
    })
}

/// Loads atomically: relaxed, at device scope, as all atomic operations here.
pub fn atomic_load<T: Number>(place: PlaceRef<T>) -> Val<T> {
    Val::of(atomic(AtomicOp::Load, place.0, &[])[0])
}

/// Stores atomically.
pub fn atomic_store<T: Number>(place: PlaceMut<T>, value: Val<T>) {
    atomic(AtomicOp::Store, place, &[value]);
}

macro_rules! atomics {
    ($($name:ident $op:ident: $what:literal;)*) => {$(
        #[doc = concat!("Atomically ", $what, "; gives what was there before.")]
        pub fn $name<T: Number>(place: PlaceMut<T>, value: Val<T>) -> Val<T> {
            Val::of(atomic(AtomicOp::$op, place, &[value])[0])
        }
    )*};
}
atomics! {
    atomic_exchange Exchange: "puts a value in the place";
    atomic_add Add: "adds";
    atomic_sub Sub: "subtracts";
    atomic_min Min: "keeps the smaller";
    atomic_max Max: "keeps the larger";
    atomic_and And: "combines by and";
    atomic_or Or: "combines by or";
    atomic_xor Xor: "combines by exclusive or";
}

/// Atomically puts `new` in the place if `expected` is there; gives what was there, and whether.
pub fn atomic_compare_exchange<T: Number>(
    place: PlaceMut<T>,
    expected: Val<T>,
    new: Val<T>,
) -> (Val<T>, Val<bool>) {
    let results = atomic(AtomicOp::CompareExchange, place, &[expected, new]);
    (Val::of(results[0]), Val::of(results[1]))
}

#[cfg(test)]
mod tests {
    use invar_ir::Op;

    use super::{MIXED, POSITIONS, SAME};

    #[test]
    fn every_operation_of_the_table_is_here_or_known_not_to_be() {
        // Operators, comparisons and `as`.
        let operators = [
            "add", "sub", "mul", "div", "rem", "neg", "and", "or", "xor", "not", "shl", "shr",
            "eq", "ne", "lt", "le", "gt", "ge", "cast",
        ];
        // Of vectors and matrices, which Rust kernels do not have, and of bits of another type.
        let absent = [
            "as_type",
            "construct",
            "extract",
            "insert",
            "swizzle",
            "all",
            "any",
            "dot",
            "length",
            "distance",
            "normalize",
            "cross",
            "reflect",
            "refract",
            "faceforward",
            "matrix_multiply",
            "transpose",
            "determinant",
            "pack_float_to_unorm4x8",
            "pack_float_to_snorm4x8",
            "pack_float_to_srgb_unorm4x8",
            "pack_float_to_unorm2x16",
            "pack_float_to_snorm2x16",
            "pack_float_to_unorm10a2",
            "unpack_unorm4x8_to_float",
            "unpack_snorm4x8_to_float",
            "unpack_srgb_unorm4x8_to_float",
            "unpack_unorm2x16_to_float",
            "unpack_snorm2x16_to_float",
            "unpack_unorm10a2_to_float",
            "simd_ballot",
            "quad_ballot",
        ];
        let lists = [SAME, MIXED, POSITIONS, &operators, &absent];
        let named: Vec<&str> = lists.into_iter().flatten().copied().collect();
        for op in Op::all() {
            let times = named.iter().filter(|name| **name == op.name()).count();
            assert_eq!(times, 1, "`{}` stands in {times} lists", op.name());
        }
        for name in named {
            assert!(Op::from_name(name).is_some(), "`{name}` is no operation");
        }
    }
}
