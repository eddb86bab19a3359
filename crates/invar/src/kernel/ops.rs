//! The operations that have no operator, as functions and as methods of values, and what threads do
//! together.
//!
//! A test holds the names against the op table: each row stands here or with the vectors, or has an
//! operator.

use invar_ir::{AtomicOp, Dim, KernelBuilder, Order, Scope, Spaces};

use super::data::{
    AtomicInteger, AtomicNumber, Bitwise, Data, Floats, Integers, Lanes, Numbers, SignedNumbers,
    Val,
};
use super::define::with;
use super::memory::{InPlace, PlaceMut};
pub use super::memory::{load_vector, store_vector};
pub use super::together::*;
use super::value::With;
pub use super::vector::{
    all, any, as_type, cross, determinant, distance, dot, faceforward, insert, length,
    matrix_multiply, normalize, reflect, refract, transpose,
};

macro_rules! same {
    ($($bound:ident: $($name:ident($first:ident $(, $arg:ident)*)),* ;)*) => {
        #[cfg(test)]
        const SAME: &[&str] = &[$($(stringify!($name)),*),*];

        $($(
            #[doc = concat!("`", stringify!($name), "` of the [table of operations]",
                "(invar_ir::KernelBuilder::", stringify!($name), ").")]
            pub fn $name<T: $bound>($first: Val<T> $(, $arg: Val<T>)*) -> Val<T> {
                Val::of(with(|k| {
                    KernelBuilder::$name(&mut k.builder, $first.ssa() $(, $arg.ssa())*)
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
    Numbers: abs(x), simd_sum(x), simd_product(x),
        simd_min(x), simd_max(x), simd_prefix_inclusive_sum(x), simd_prefix_exclusive_sum(x),
        simd_prefix_inclusive_product(x), simd_prefix_exclusive_product(x), quad_sum(x),
        quad_product(x), quad_min(x), quad_max(x), quad_prefix_inclusive_sum(x),
        quad_prefix_exclusive_sum(x), quad_prefix_inclusive_product(x),
        quad_prefix_exclusive_product(x);
    Floats: fma(a, b, c), sqrt(x), ceil(x), floor(x), trunc(x), rint(x),
        round(x), saturate(x), fract(x), copysign(x, sign), exp(x), exp2(x), exp10(x), log(x), log2(x), log10(x),
        rsqrt(x), sin(x), cos(x), tan(x), sinpi(x), cospi(x), tanpi(x), asin(x),
        acos(x), atan(x), atan2(y, x), sinh(x), cosh(x), tanh(x), asinh(x), acosh(x), atanh(x),
        erf(x);
    SignedNumbers: sign(x);
    Integers: popcount(x), clz(x), ctz(x), reverse_bits(x), mul_hi(a, b), abs_diff(a, b),
        add_sat(a, b), sub_sat(a, b), mad_hi(a, b, c), mad_sat(a, b, c), rotate(x, count),
        shr_exact(x, count);
    Bitwise: simd_and(x), simd_or(x), simd_xor(x), quad_and(x), quad_or(x), quad_xor(x);
    Lanes: simd_broadcast_first(x), quad_broadcast_first(x);
}

/// Functions of several values, of which those behind the first are of its type, or numbers that every component of
/// that vector is taken with.
macro_rules! beside {
    ($($bound:ident: $($name:ident($first:ident $(, $arg:ident: $of:ident)+)),* ;)*) => {
        #[cfg(test)]
        const BESIDE: &[&str] = &[$($(stringify!($name)),*),*];

        $($(
            #[doc = concat!("`", stringify!($name), "` of the [table of operations]",
                "(invar_ir::KernelBuilder::", stringify!($name), "); of a vector also with numbers.")]
            pub fn $name<T: $bound $(+ With<$of>)+, $($of: Data),+>(
                $first: Val<T>
                $(, $arg: Val<$of>)+
            ) -> Val<T> {
                $(let $arg = <T as With<$of>>::other($arg);)+
                Val::of(with(|k| {
                    KernelBuilder::$name(&mut k.builder, $first.ssa() $(, $arg.ssa())+)
                }))
            }
        )*)*
    };
}
beside! {
    Numbers: min(a, b: B), max(a, b: B), clamp(x, low: L, high: H);
    Floats: fmin(a, b: B), fmax(a, b: B), mix(x, y: Y, a: A), pow(x, y: Y), powr(x, y: Y), fmod(x, y: Y);
}

macro_rules! methods_beside {
    ($($bound:ident: $($name:ident($($arg:ident: $of:ident),+)),* ;)*) => {
        $(impl<T: $bound> Val<T> {$(
            #[doc = concat!("As the function [`", stringify!($name), "`].")]
            pub fn $name<$($of: Data),+>(self $(, $arg: Val<$of>)+) -> Val<T>
            where
                T: $(With<$of> +)+,
            {
                $name(self $(, $arg)+)
            }
        )*})*
    };
}
methods_beside! {
    Numbers: min(b: B), max(b: B), clamp(low: L, high: H);
    Floats: fmin(b: B), fmax(b: B), mix(y: Y, a: A), powr(y: Y), fmod(y: Y);
}

/// `step` of the [table of operations](invar_ir::KernelBuilder::step); of a vector also with a number as edge.
pub fn step<T: Floats + With<E>, E: Data>(edge: Val<E>, x: Val<T>) -> Val<T> {
    let edge = <T as With<E>>::other(edge);
    Val::of(with(|k| k.builder.step(edge.ssa(), x.ssa())))
}

/// `smoothstep` of the [table of operations](invar_ir::KernelBuilder::smoothstep); of a vector also with numbers as
/// edges.
pub fn smoothstep<T: Floats + With<L> + With<H>, L: Data, H: Data>(
    low: Val<L>,
    high: Val<H>,
    x: Val<T>,
) -> Val<T> {
    let low = <T as With<L>>::other(low);
    let high = <T as With<H>>::other(high);
    Val::of(with(|k| {
        k.builder.smoothstep(low.ssa(), high.ssa(), x.ssa())
    }))
}

impl<T: Floats> Val<T> {
    /// As the function [`step`].
    pub fn step(self, x: Val<T>) -> Val<T> {
        step(self, x)
    }

    /// As the function [`smoothstep`].
    pub fn smoothstep(self, high: Val<T>, x: Val<T>) -> Val<T> {
        smoothstep(self, high, x)
    }
}

macro_rules! mixed {
    ($($name:ident<$($generic:ident: $bound:ident)?>($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        #[cfg(test)]
        const MIXED: &[&str] = &[$(stringify!($name)),*];

        $(
            #[doc = concat!("`", stringify!($name), "` of the [table of operations]",
                "(invar_ir::KernelBuilder::", stringify!($name), ").")]
            pub fn $name$(<$generic: $bound>)?($($arg: Val<$ty>),*) -> Val<$result> {
                Val::of(with(|k| KernelBuilder::$name(&mut k.builder $(, $arg.ssa())*)))
            }
        )*
    };
}
mixed! {
    select<T: Lanes>(on_false: T, on_true: T, condition: T::Mask) -> T;
    ldexp<T: Floats>(x: T, exponent: T::I32) -> T;
    isnan<T: Floats>(x: T) -> T::Mask;
    isinf<T: Floats>(x: T) -> T::Mask;
    isfinite<T: Floats>(x: T) -> T::Mask;
    isnormal<T: Floats>(x: T) -> T::Mask;
    signbit<T: Floats>(x: T) -> T::Mask;
    extract_bits<T: Integers>(x: T, offset: u32, count: u32) -> T;
    insert_bits<T: Integers>(x: T, part: T, offset: u32, count: u32) -> T;
    simd_shuffle<T: Lanes>(x: T, lane: u32) -> T;
    simd_shuffle_up<T: Lanes>(x: T, delta: u32) -> T;
    simd_shuffle_down<T: Lanes>(x: T, delta: u32) -> T;
    simd_shuffle_xor<T: Lanes>(x: T, mask: u32) -> T;
    simd_shuffle_rotate_up<T: Lanes>(x: T, delta: u32) -> T;
    simd_shuffle_rotate_down<T: Lanes>(x: T, delta: u32) -> T;
    simd_broadcast<T: Lanes>(x: T, lane: u32) -> T;
    quad_shuffle<T: Lanes>(x: T, lane: u32) -> T;
    quad_shuffle_up<T: Lanes>(x: T, delta: u32) -> T;
    quad_shuffle_down<T: Lanes>(x: T, delta: u32) -> T;
    quad_shuffle_xor<T: Lanes>(x: T, mask: u32) -> T;
    quad_shuffle_rotate_up<T: Lanes>(x: T, delta: u32) -> T;
    quad_shuffle_rotate_down<T: Lanes>(x: T, delta: u32) -> T;
    quad_broadcast<T: Lanes>(x: T, lane: u32) -> T;
    simd_all<>(x: bool) -> bool;
    simd_any<>(x: bool) -> bool;
    quad_all<>(x: bool) -> bool;
    quad_any<>(x: bool) -> bool;
    simd_ballot<>(x: bool) -> [u32; 4];
    quad_ballot<>(x: bool) -> [u32; 4];
    pack_float_to_unorm4x8<>(x: [f32; 4]) -> u32;
    pack_float_to_snorm4x8<>(x: [f32; 4]) -> u32;
    pack_float_to_srgb_unorm4x8<>(x: [f32; 4]) -> u32;
    pack_float_to_unorm2x16<>(x: [f32; 2]) -> u32;
    pack_float_to_snorm2x16<>(x: [f32; 2]) -> u32;
    pack_float_to_unorm10a2<>(x: [f32; 4]) -> u32;
    unpack_unorm4x8_to_float<>(x: u32) -> [f32; 4];
    unpack_snorm4x8_to_float<>(x: u32) -> [f32; 4];
    unpack_srgb_unorm4x8_to_float<>(x: u32) -> [f32; 4];
    unpack_unorm2x16_to_float<>(x: u32) -> [f32; 2];
    unpack_snorm2x16_to_float<>(x: u32) -> [f32; 2];
    unpack_unorm10a2_to_float<>(x: u32) -> [f32; 4];
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

impl super::memory::ComponentsOf<3> for Position {
    type Whole = Position;

    fn whole(self) -> Position {
        self
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

/// As [`threadgroup_barrier`], ordering these spaces: `Spaces::DEVICE`, or `Spaces::THREADGROUP` alone.
pub fn threadgroup_barrier_of(spaces: Spaces) {
    with(|k| k.builder.barrier(Scope::Threadgroup, spaces));
}

/// As [`simdgroup_barrier`], ordering these spaces.
pub fn simdgroup_barrier_of(spaces: Spaces) {
    with(|k| k.builder.barrier(Scope::Simdgroup, spaces));
}

/// Asserts that a value is the same for all threads of the threadgroup, and gives it (X5).
pub fn assert_uniform<T: Lanes>(x: Val<T>) -> Val<T> {
    Val::of(with(|k| {
        k.builder.assert_uniform(x.ssa(), Scope::Threadgroup)
    }))
}

/// Asserts that a value is the same for all threads of the simdgroup, and gives it (X5).
pub fn assert_uniform_in_simdgroup<T: Lanes>(x: Val<T>) -> Val<T> {
    Val::of(with(|k| {
        k.builder.assert_uniform(x.ssa(), Scope::Simdgroup)
    }))
}

fn atomic<T: AtomicNumber>(
    op: AtomicOp,
    place: impl InPlace<Element = T>,
    args: &[Val<T>],
    order: Order,
    scope: Scope,
) -> Vec<invar_ir::Value> {
    let args: Vec<_> = args.iter().map(|v| v.ssa()).collect();
    let place = place.place();
    with(|k| {
        k.uses(place.memory, true, op != AtomicOp::Load);
        k.builder.atomic(op, place, &args, order, scope).to_vec()
    })
}

/// Loads atomically: relaxed, at device scope, as all atomic operations without an order here.
pub fn atomic_load<P: InPlace>(place: P) -> Val<P::Element>
where
    P::Element: AtomicNumber,
{
    atomic_load_explicit(place, Order::Relaxed, Scope::Device)
}

/// Loads atomically, with an order (T3) over a scope: `Order::Acquire`, `Scope::Threadgroup`.
pub fn atomic_load_explicit<P: InPlace>(place: P, order: Order, scope: Scope) -> Val<P::Element>
where
    P::Element: AtomicNumber,
{
    Val::of(atomic(AtomicOp::Load, place, &[], order, scope)[0])
}

/// Stores atomically.
pub fn atomic_store<T: AtomicNumber>(place: PlaceMut<T>, value: Val<T>) {
    atomic_store_explicit(place, value, Order::Relaxed, Scope::Device);
}

/// Stores atomically, with an order (T3) over a scope.
pub fn atomic_store_explicit<T: AtomicNumber>(
    place: PlaceMut<T>,
    value: Val<T>,
    order: Order,
    scope: Scope,
) {
    atomic(AtomicOp::Store, place, &[value], order, scope);
}

macro_rules! atomics {
    ($($name:ident $explicit:ident $op:ident $bound:ident: $what:literal;)*) => {$(
        #[doc = concat!("Atomically ", $what, "; gives what was there before.")]
        pub fn $name<T: $bound>(place: PlaceMut<T>, value: Val<T>) -> Val<T> {
            $explicit(place, value, Order::Relaxed, Scope::Device)
        }

        #[doc = concat!("Atomically ", $what, ", with an order (T3) over a scope; gives what was there before.")]
        pub fn $explicit<T: $bound>(
            place: PlaceMut<T>,
            value: Val<T>,
            order: Order,
            scope: Scope,
        ) -> Val<T> {
            Val::of(atomic(AtomicOp::$op, place, &[value], order, scope)[0])
        }
    )*};
}
atomics! {
    atomic_exchange atomic_exchange_explicit Exchange AtomicNumber: "puts a value in the place";
    atomic_add atomic_add_explicit Add AtomicNumber: "adds";
    atomic_sub atomic_sub_explicit Sub AtomicInteger: "subtracts";
    atomic_min atomic_min_explicit Min AtomicInteger: "keeps the smaller";
    atomic_max atomic_max_explicit Max AtomicInteger: "keeps the larger";
    atomic_and atomic_and_explicit And AtomicInteger: "combines by and";
    atomic_or atomic_or_explicit Or AtomicInteger: "combines by or";
    atomic_xor atomic_xor_explicit Xor AtomicInteger: "combines by exclusive or";
}

/// Atomically puts `new` in the place if `expected` is there; gives what was there, and whether.
pub fn atomic_compare_exchange<T: AtomicInteger>(
    place: PlaceMut<T>,
    expected: Val<T>,
    new: Val<T>,
) -> (Val<T>, Val<bool>) {
    atomic_compare_exchange_explicit(place, expected, new, Order::Relaxed, Scope::Device)
}

/// As [`atomic_compare_exchange`], with an order (T3) over a scope.
pub fn atomic_compare_exchange_explicit<T: AtomicInteger>(
    place: PlaceMut<T>,
    expected: Val<T>,
    new: Val<T>,
    order: Order,
    scope: Scope,
) -> (Val<T>, Val<bool>) {
    let results = atomic(
        AtomicOp::CompareExchange,
        place,
        &[expected, new],
        order,
        scope,
    );
    (Val::of(results[0]), Val::of(results[1]))
}

#[cfg(test)]
mod tests {
    use invar_ir::Op;

    use super::super::vector::VECTORS;
    use super::{BESIDE, MIXED, POSITIONS, SAME};

    #[test]
    fn every_operation_of_the_table_is_here_or_known_not_to_be() {
        // Operators, comparisons and `as`.
        let operators = [
            "add", "sub", "mul", "div", "rem", "neg", "and", "or", "xor", "not", "shl", "shr",
            "eq", "ne", "lt", "le", "gt", "ge", "cast",
        ];
        // Functions that are not made by one of the lists, and components, `[a, b]` and `v[i]`.
        let others = [
            "as_type",
            "step",
            "smoothstep",
            "construct",
            "extract",
            "insert",
            "swizzle",
            "cross",
            "matrix_multiply",
            "transpose",
            "determinant",
        ];
        let lists = [SAME, BESIDE, MIXED, POSITIONS, VECTORS, &operators, &others];
        let named: Vec<&str> = lists.into_iter().flatten().copied().collect();
        for op in Op::all() {
            let times = named.iter().filter(|name| **name == op.name()).count();
            assert_eq!(times, 1, "`{}` stands in {times} lists", op.name());
        }
        for name in named {
            assert!(
                Op::from_name(name).is_some(),
                "`{name}` is not an operation"
            );
        }
    }
}
