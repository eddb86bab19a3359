//! The rules that diagnostics name. A rule's documentation is what `invar explain RULE` prints: what
//! it says, why by the memory model's rules, and an example of each kind, the wrong one first.
//!
//! Names are stable: once released, a rule keeps its name and its meaning.

use std::fmt;

/// When a rule is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// While the text form is read.
    Syntax,
    /// By the verifier, for every device.
    Verify,
    /// When a shader is read, by the standard of its language; Invar takes it all the same.
    Lint,
    /// While a kernel runs on the checked device.
    Check,
    /// When a kernel is compiled for a device or dispatched to it.
    Device,
}

macro_rules! rules {
    ($($stage:ident {
        $($(#[doc = $doc:literal])+ $rule:ident $name:literal,)*
    })*) => {
        /// A rule that a diagnostic names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($($(#[doc = $doc])+ $rule,)*)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Rule] = &[$($(Rule::$rule,)*)*];

            /// Its name: `type-mismatch`.
            pub const fn name(self) -> &'static str {
                match self { $($(Rule::$rule => $name,)*)* }
            }

            /// When it is checked.
            pub const fn stage(self) -> Stage {
                match self { $($(Rule::$rule => Stage::$stage,)*)* }
            }

            /// What it says, why, and what to do: Markdown with an example.
            pub const fn explanation(self) -> &'static str {
                match self { $($(Rule::$rule => concat!($($doc, "\n"),+),)*)* }
            }
        }
    };
}

rules! {
Syntax {
    /// The text is not in the language.
    ///
    /// Raised while a `.inv` file is read, before anything is known of its meaning.
    Syntax "syntax",
}

Verify {
    /// A name is used that nothing before it defines, or outside the block that defines it.
    ///
    /// A value or array can be used after its definition in the same block, and in the blocks inside.
    /// What a block computes leaves it through `yield` or `break` only: a thread that did not run the
    /// block has no such value.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%y: device write u32, %c: bool) {
    ///     if %c {
    ///         %a = const u32 1
    ///     }
    ///     store %y[%a], %a
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%y: device write u32, %c: bool) {
    ///     %zero = const u32 0
    ///     %a = if %c {
    ///         %one = const u32 1
    ///         yield %one
    ///     } else {
    ///         yield %zero
    ///     }
    ///     store %y[%a], %a
    /// }
    /// ```
    UndefinedName "undefined-name",
    /// A name is defined twice: in one kernel, in one struct, or in the module.
    ///
    /// Kernels, structs, function constants and program-scope constants share the module's names;
    /// parameters, arrays and values those of their kernel; the fields of a struct are its own. A
    /// message or a host that names something must mean one thing.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k() {
    /// }
    /// kernel @k(%n: u32) {
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k() {
    /// }
    /// kernel @k2(%n: u32) {
    /// }
    /// ```
    DuplicateName "duplicate-name",
    /// An operand or a result has a type that the instruction does not take or give.
    ///
    /// There are no implicit conversions, not of constants either: write a `cast`. Indices, counts and
    /// the bounds of a `for` are integers of any type; both bounds of a `for` have one type, and its
    /// step that type or the signed one of its width.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%y: device write f32, %i: u32) {
    ///     store %y[%i], %i
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%y: device write f32, %i: u32) {
    ///     %v = cast f32 %i
    ///     store %y[%i], %v
    /// }
    /// ```
    TypeMismatch "type-mismatch",
    /// A kernel stores to memory that it may only read, or loads from memory that it may only write.
    ///
    /// Buffers in `constant` memory, program-scope constants and `read` buffers are never written;
    /// `write` buffers are never read; an atomic needs `read_write` (S2). Devices bind and cache
    /// buffers by what is declared, and two `read` buffers may overlap where others must not (S3).
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%x: device read u32, %i: u32) {
    ///     store %x[%i], %i
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%x: device read_write u32, %i: u32) {
    ///     store %x[%i], %i
    /// }
    /// ```
    AccessViolation "access-violation",
    /// An instruction is given memory in an address space in which it does not work.
    ///
    /// Arrays declared in a kernel are in `threadgroup` or `thread` memory (section 2). Atomics act on
    /// `device` and `threadgroup` memory (T1): no other thread sees a thread's own. Async copies run between
    /// `device` and `threadgroup` memory (O5). Simdgroup matrices are loaded from and stored to these
    /// two, since lanes that the program cannot know make the accesses (O6).
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%i: u32) {
    ///     %mine = alloc thread u32[4]
    ///     %old = atomic_add %mine[%i], %i
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%i: u32) {
    ///     %ours = alloc threadgroup u32[4]
    ///     %old = atomic_add %ours[%i], %i
    /// }
    /// ```
    WrongAddressSpace "wrong-address-space",
    /// An atomic acts on a type that has no such atomic.
    ///
    /// Atomics act on 32-bit integers everywhere; on 64-bit integers, and on floats of 32 and 64 bits by
    /// load, store, exchange and add, where a device says so (T1); on one scalar at a time. There are
    /// none on `bool` nor on 8- and 16-bit scalars.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%x: device read_write f32, %i: u32, %v: f32) {
    ///     %old = atomic_max %x[%i], %v
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%x: device read_write i32, %i: u32, %v: i32) {
    ///     %old = atomic_max %x[%i], %v
    /// }
    /// ```
    AtomicType "atomic-type",
    /// An atomic has an order that it cannot have.
    ///
    /// A load has nothing to publish and a store receives nothing, so a load cannot release and a store
    /// cannot acquire (T3, O4); `acq_rel` is both. `seq_cst` suits every atomic.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%flag: device read_write u32, %i: u32) {
    ///     %ready = atomic_load %flag[%i] release device
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%flag: device read_write u32, %i: u32) {
    ///     %ready = atomic_load %flag[%i] acquire device
    /// }
    /// ```
    AtomicOrder "atomic-order",
    /// An instruction names a scope that it cannot have.
    ///
    /// A barrier is over a threadgroup or a simdgroup: there is none across threadgroups (O2). So is
    /// `assert_uniform` (X5). An atomic's order reaches a threadgroup or the device (T3).
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k() {
    ///     barrier device [device]
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k() {
    ///     barrier threadgroup [device]
    /// }
    /// ```
    InvalidScope "invalid-scope",
    /// A barrier may be missed by some threads of its scope.
    ///
    /// Every thread of the scope must reach a barrier, in the same iteration of the same loops (X4); some
    /// devices would wait forever, others would order the wrong accesses. The verifier proves it from
    /// uniformity: conditions and loop bounds around the barrier, and those of every `return`, `break`
    /// and `continue` that may pass it by, must be the same for all threads of the scope. A load is
    /// uniform only from `constant` or `read` memory at a uniform index, and an atomic's result never
    /// is. Move the barrier out, or let all threads run to it and guard only the rest with an `if`.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%n: u32) {
    ///     %i = thread_position_in_grid x
    ///     %inside = lt %i, %n
    ///     if %inside {
    ///         barrier threadgroup [threadgroup]
    ///     }
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%y: device write u32, %n: u32) {
    ///     %i = thread_position_in_grid x
    ///     %inside = lt %i, %n
    ///     barrier threadgroup [threadgroup]
    ///     if %inside {
    ///         store %y[%i], %n
    ///     }
    /// }
    /// ```
    BarrierNotUniform "barrier-not-uniform",
    /// A collective operation may be missed by some threads of the simdgroup or threadgroup.
    ///
    /// Simdgroup and quadgroup functions, simdgroup-matrix operations, the issue of and the wait for an
    /// async copy need every existing thread of the simdgroup, in the same iteration of the same loops (X4);
    /// `assert_uniform` every thread of its scope (X5). What is said of barriers holds for them. Functions of
    /// kernels that say `collectives(active)` are over those threads that come instead (X7).
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%c: device read_write u32) {
    ///     %t = thread_index_in_threadgroup
    ///     %v = load %c[%t]
    ///     %zero = const u32 0
    ///     %some = eq %v, %zero
    ///     if %some {
    ///         %same = assert_uniform simdgroup %v
    ///     }
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%c: device read_write u32) {
    ///     %t = thread_index_in_threadgroup
    ///     %v = load %c[%t]
    ///     %same = assert_uniform simdgroup %v
    /// }
    /// ```
    CollectiveNotUniform "collective-not-uniform",
    /// A simdgroup does something together, but its threads may mean different things.
    ///
    /// A simdgroup-matrix operation or an async copy is one operation of the whole simdgroup (O5, O6):
    /// its indices, row lengths, counts, events and matrices must be the same for all threads of the
    /// simdgroup. `simdgroup_index_in_threadgroup` is; a value that you know to be the same can be given
    /// through `assert_uniform simdgroup`.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%x: device read f32) {
    ///     %t = thread_index_in_threadgroup
    ///     %row = const u32 8
    ///     %m = matrix_load simdgroup_f32x8x8 %x[%t] row %row
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%x: device read f32) {
    ///     %g = threadgroup_position_in_grid x
    ///     %row = const u32 8
    ///     %m = matrix_load simdgroup_f32x8x8 %x[%g] row %row
    /// }
    /// ```
    OperandNotUniform "operand-not-uniform",
    /// A program-scope constant has too few or too many values.
    ///
    /// It is initialised where it is declared (section 2), with one value for each scalar of each of its
    /// elements, of that scalar's type, in the order of their places in memory (L1, L3).
    ///
    /// Wrong:
    /// ```inv
    /// constant @weights: f32[4] = [0.25, 0.5, 0.25]
    /// kernel @k() {
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// constant @weights: f32[3] = [0.25, 0.5, 0.25]
    /// kernel @k() {
    /// }
    /// ```
    ConstantInitialiser "constant-initialiser",
    /// Function constants are declared or given values in a way that does not fit.
    ///
    /// A function constant is a value fixed when the kernel is compiled, the same for the whole grid
    /// (S1). Its id is unique in the module; its default and the value that the host gives have its
    /// type; the host gives a value for each that has no default, and for none that is not there.
    ///
    /// Wrong:
    /// ```inv
    /// function_constant @ROWS: u32 = 16 id(0)
    /// function_constant @COLUMNS: u32 = 16 id(0)
    /// kernel @k() {
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// function_constant @ROWS: u32 = 16 id(0)
    /// function_constant @COLUMNS: u32 = 16 id(1)
    /// kernel @k() {
    /// }
    /// ```
    FunctionConstant "function-constant",
    /// A type cannot exist, or cannot stand where it does.
    ///
    /// Vectors have 2 to 4 components, matrices hold floats. Memory holds scalars, vectors, small
    /// matrices, arrays and structs; events and simdgroup matrices are values only, and no parameters.
    /// A struct has at least one field, and its fields hold only structs declared before it.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%copied: device read event) {
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%copied: device read u32) {
    /// }
    /// ```
    InvalidType "invalid-type",
    /// An array has no elements.
    ///
    /// Arrays and program-scope constants have at least one element: an array of none has no location
    /// (L1), and most devices cannot declare one. A buffer may be empty, since the dispatch gives its
    /// length.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k() {
    ///     %none = alloc threadgroup f32[0]
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k() {
    ///     %one = alloc threadgroup f32[1]
    /// }
    /// ```
    EmptyArray "empty-array",
    /// Something is larger or deeper than any device takes.
    ///
    /// One element has at most 16 MiB, or 1 MiB if it is copied, and 4,096 parts; types nest 16 deep,
    /// blocks 64 deep; the threadgroup arrays of a kernel have at most 16 MiB together, its thread arrays
    /// 256 KiB, the program-scope constants of a module 64 MiB; a `print` has at most 4,096 bytes of text
    /// and prints at most 64 scalars. Devices have smaller limits of their own (S4).
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k() {
    ///     %all = alloc thread f32[1000000]
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k() {
    ///     %some = alloc thread f32[64]
    /// }
    /// ```
    LimitExceeded "limit-exceeded",
    /// A kernel fixes a threadgroup size that no dispatch can have.
    ///
    /// Each dimension is at least 1, since an empty threadgroup is refused, and the number of threads
    /// fits 32 bits (X1).
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k() threadgroup(64, 0, 1) {
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k() threadgroup(64, 1, 1) {
    /// }
    /// ```
    ThreadgroupSize "threadgroup-size",
    /// A kernel requires a simdgroup size that no device has.
    ///
    /// Simdgroups have 4, 8, 16, 32, 64 or 128 threads (X2): quadgroups divide them, and reductions
    /// combine lanes by xor of powers of two (A11).
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k() simdgroup(24) {
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k() simdgroup(32) {
    /// }
    /// ```
    SimdgroupSize "simdgroup-size",
    /// A kernel requires of a launch what no launch can promise.
    ///
    /// A requirement (S5) compares integers that a dispatch knows: parameters, function constants, lengths
    /// and sizes of the grid. Of what a buffer holds it speaks only where the kernel cannot write it and the
    /// elements are integers, so that it is true of the whole dispatch.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%y: device read_write u32, %n: u32) requires(each %v of %y: %v < %n) {
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%y: device read u32, %n: u32) requires(each %v of %y: %v < %n) {
    /// }
    /// ```
    InvalidRequirement "invalid-requirement",
    /// The text of a `print` does not fit its values.
    ///
    /// Each `{}` stands for the next value, each `{:x}` for the next integer in hexadecimal, and each `{:c}`
    /// for the character of which the next integer is the number; there are as many values as placeholders.
    /// Braces themselves are written `{{` and `}}`.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%n: u32) {
    ///     print "n is {}, of {}" %n
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%n: u32) {
    ///     print "n is {}" %n
    /// }
    /// ```
    PrintFormat "print-format",
    /// A `yield`, `break`, `continue` or `return` stands where it ends nothing.
    ///
    /// A block has exactly one of them, at its end: nothing after it could run. `break` and `continue`
    /// need a loop around them, `yield` an `if` or a loop.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%c: bool) {
    ///     if %c {
    ///         break
    ///     }
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%c: bool) {
    ///     loop {
    ///         if %c {
    ///             break
    ///         }
    ///     }
    /// }
    /// ```
    MisplacedTerminator "misplaced-terminator",
    /// A block gives other values than its `if` or loop takes.
    ///
    /// Both sides of an `if` yield as many values, of the same types. A loop carries each value with one
    /// type from its start to its end: what `yield` and `continue` give for the next iteration and `break`
    /// as the loop's results has the types of the first values. Cast before the loop, or in it.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%n: u32, %half: f32) {
    ///     %zero = const u32 0
    ///     %one = const u32 1
    ///     %sum = for %i = %zero to %n step %one carry(%acc = %zero) {
    ///         yield %half
    ///     }
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%n: u32, %half: f32) {
    ///     %zero = const u32 0
    ///     %one = const u32 1
    ///     %start = cast f32 %zero
    ///     %sum = for %i = %zero to %n step %one carry(%acc = %start) {
    ///         %next = add %acc, %half
    ///         yield %next
    ///     }
    /// }
    /// ```
    CarriedValues "carried-values",
    /// A module has no kernel.
    ///
    /// Wrong:
    /// ```inv
    /// constant @weights: f32[1] = [0.25]
    /// ```
    /// Right:
    /// ```inv
    /// constant @weights: f32[1] = [0.25]
    /// kernel @k() {
    /// }
    /// ```
    NoKernel "no-kernel",
    /// A module is not made as the builder makes it.
    ///
    /// Values and arrays are numbered in the order of their definition, all numbers name something that
    /// is there, constants keep the bits above their type's width 0, and nothing lacks a name that needs
    /// one. Text and builder cannot break this rule; a damaged binary file or a faulty front end can.
    /// A front end that edits a kernel itself calls `Kernel::renumber` afterwards.
    MalformedModule "malformed-module",
}

Lint {
    /// A function of a shader reaches by two names what it writes by one of them.
    ///
    /// The standard of WGSL has browsers refuse such a shader where it is created: a call must not give a
    /// function two pointers to one variable, nor a pointer to a variable that the function uses itself, if
    /// it writes through either. Which part of the variable a pointer leads to does not count. Invar
    /// follows pointers, and the call means what it says.
    ///
    /// Wrong:
    /// ```wgsl
    /// fn add(to: ptr<function, u32>, by: ptr<function, u32>) { *to += *by; }
    /// @compute @workgroup_size(1) fn main() {
    ///     var sum = 1u;
    ///     add(&sum, &sum);
    /// }
    /// ```
    /// Right:
    /// ```wgsl
    /// fn add(to: ptr<function, u32>, by: u32) { *to += by; }
    /// @compute @workgroup_size(1) fn main() {
    ///     var sum = 1u;
    ///     add(&sum, sum);
    /// }
    /// ```
    WgslAlias "wgsl-alias",
    /// A shader has a barrier, a derivative or a subgroup function where the standard's analysis does not find
    /// uniform control flow.
    ///
    /// Invar's verifier has proved that all threads get there (X4), or the kernel would be refused; browsers
    /// ask the analysis that the standard of WGSL prescribes, which knows less. To it a struct or an array is
    /// as uniform as its least uniform part, what is read from memory that can be written is never
    /// uniform, and neither are positions along an axis on which a workgroup is one invocation wide. A
    /// subgroup function needs control flow that is uniform for the subgroup, a barrier for the workgroup.
    ///
    /// Wrong:
    /// ```wgsl
    /// struct Place {
    ///     @builtin(workgroup_id) group: vec3u,
    ///     @builtin(local_invocation_index) index: u32,
    /// }
    /// @compute @workgroup_size(64) fn main(place: Place) {
    ///     if place.group.x > 0u {
    ///         workgroupBarrier();
    ///     }
    /// }
    /// ```
    /// Right:
    /// ```wgsl
    /// @compute @workgroup_size(64)
    /// fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    ///     if group.x > 0u {
    ///         workgroupBarrier();
    ///     }
    /// }
    /// ```
    WgslUniformity "wgsl-uniformity",
}

Check {
    /// Threads that must meet do not: a threadgroup barrier, a simdgroup function, a
    /// simdgroup-matrix operation or an async copy is reached by some threads of its scope only, or
    /// by all but in different iterations of a loop (X4).
    ///
    /// The message says which threads wait and where the others are. On hardware this hangs or
    /// gives garbage. The verifier proves that it cannot happen; the machine looks all the same.
    BarrierDivergence "barrier-divergence",
    /// A run took more instructions than its limit allows.
    ///
    /// A loop has no end, a thread waits for what never comes (X3), or the limit is too low for the
    /// work.
    StepLimit "step-limit",
    /// A run took more time than its limit allows, or a check saw that it would never end.
    ///
    /// See `step-limit`. A check ends a run in the natural order as soon as all threads that are left wait
    /// for a change that none of them makes; another schedule may end well. It goes on to try others.
    DeadlineExceeded "deadline-exceeded",
    /// The caller stopped the run. Buffers hold what was stored so far (F3).
    Cancelled "cancelled",
    /// Two threads access one location, at least one of them writes, not both are atomic, and
    /// nothing orders the two (R1).
    ///
    /// The load gives one of several values, the location keeps one of several (R2). The message
    /// names both places, both threads and the location; every pair of places that races at a location is
    /// a finding of its own, the first eight of each object are shown. Put a barrier of the right scope
    /// and space between the two, make both atomic, or give each thread a location of its own.
    DataRace "data-race",
    /// Two threads access one location as in a `data-race`, and between the two they meet at a barrier which does not
    /// name the space of that location (R6).
    ///
    /// The barrier makes threads wait, and orders the accesses to the spaces that it names; with none, such as
    /// `mem_none` in Metal, it orders no memory (O2, O7). So what a thread stored before it need not be what another
    /// loads behind it. On many devices it mostly is, which hides the mistake. Name the space at the barrier.
    ///
    /// Wrong:
    /// ```inv
    /// kernel @k(%y: device write u32) threadgroup(32) {
    ///     %tile = alloc threadgroup u32[32]
    ///     %t = thread_index_in_threadgroup
    ///     %last = const u32 31
    ///     %r = sub %last, %t
    ///     store %tile[%t], %t
    ///     barrier threadgroup [device]
    ///     %v = load %tile[%r]
    ///     store %y[%t], %v
    /// }
    /// ```
    /// Right:
    /// ```inv
    /// kernel @k(%y: device write u32) threadgroup(32) {
    ///     %tile = alloc threadgroup u32[32]
    ///     %t = thread_index_in_threadgroup
    ///     %last = const u32 31
    ///     %r = sub %last, %t
    ///     store %tile[%t], %t
    ///     barrier threadgroup [threadgroup]
    ///     %v = load %tile[%r]
    ///     store %y[%t], %v
    /// }
    /// ```
    ExecutionOnlyBarrier "execution-only-barrier",
    /// Threads store one and the same value to one location, and nothing orders the stores (R3).
    ///
    /// The outcome is the same in any order, and the last line of a report says whether in every
    /// schedule: where the value depends on what an atomic returned, another schedule may make it a
    /// `data-race`. Let one thread store it, or allow `equal-stores` if it is meant.
    EqualStores "equal-stores",
    /// An access is out of bounds: a load gives 0, a store or atomic does nothing (B1 to B4).
    ///
    /// If it is meant, the kernel says `allow(out_of_bounds_loads)` or
    /// `allow(out_of_bounds_stores)`.
    OutOfBounds "out-of-bounds",
    /// An address is not a multiple of the width of what is accessed there: the access is made at the multiple below
    /// it (L4).
    ///
    /// So it is for every device here; elsewhere such an access is undefined. In kernels of other languages it comes
    /// of a stride or an offset in bytes that does not fit the type: pass another, or access narrower values.
    MisalignedAccess "misaligned-access",
    /// A load is out of bounds, and a `select` throws its value away (B6).
    ///
    /// The value would be 0 (B1) and is not used, so nothing is wrong; in languages without such rules the
    /// load itself would be. Where nothing but `select`s uses a load, and all of them take the other operand
    /// in every thread whose load is out of bounds, this is said instead of `out-of-bounds`. Put the load into
    /// an `if`, or allow the rule.
    DiscardedLoad "discarded-load",
    /// Two atomics on one location do not commute, and nothing orders them, so that what they leave or
    /// return depends on the schedule (R5).
    ///
    /// No memory is broken, but the result is one of several: a load finds a sum before or after another
    /// thread has added to it, one of two values that are stored stays. Read-modify-writes of one kind (add and
    /// sub, min, max, and, or, xor) commute, with what they return; so do stores of one constant. What waits
    /// or tries again in a loop is meant, and so is the order of kernels that acquire or release: nothing is
    /// said of them. Put a barrier between the two, or allow the rule if either order will do.
    UnorderedAtomics "unordered-atomics",
    /// Threadgroup memory is read before anything has written it.
    ///
    /// It gives 0 (I2), so nothing is undefined, but the store that was meant to come first is
    /// missing or writes another place. If the zeros are meant, as they are in WGSL, the kernel says
    /// `allow(uninitialised_reads)`.
    UninitialisedRead "uninitialised-read",
    /// The event of an async copy is never waited for.
    ///
    /// The copy is finished only when its threadgroup ends (O5): its data cannot be used before.
    NeverWaited "never-waited",
    /// Threads disagree on a value that `assert_uniform` says is the same for all (X5).
    ///
    /// Everyone gets the value of one thread. The assertion is false for this input, and what a run then
    /// finds is of the schedules tried: with another thread's value it may be something else. To allow
    /// the rule changes nothing of that.
    UniformityDisagreement "uniformity-disagreement",
    /// Runs with different seeds leave different results (R4).
    ///
    /// The kernel uses what atomics return, adds floats atomically, or races. If that is meant,
    /// allow `schedule-dependent`.
    ScheduleDependent "schedule-dependent",
    /// A checker cannot follow this run: too many locations, threadgroups or barriers.
    ///
    /// Check a smaller run. Where memory is what is missing, `invar check --race-memory-bytes` allows
    /// more.
    CheckLimit "check-limit",
    /// A buffer does not hold what a `; run:` directive says it should after the run.
    Expectation "expectation",
}

Device {
    /// A dispatch asks for what the kernel or the device cannot do: an empty threadgroup, a
    /// threadgroup size other than the required one, a grid with too many threads, a kernel that is
    /// not there (X1, X2, S4).
    InvalidDispatch "invalid-dispatch",
    /// An argument does not fit its parameter: another kind or type, a wrong number of arguments,
    /// too much threadgroup memory (S4).
    InvalidArgument "invalid-argument",
    /// A dispatch breaks what the kernel requires of it (S5).
    ///
    /// The message has the requirement and the numbers of the dispatch. Nothing was run. What is required of
    /// the elements of buffers, only the checked device looks at.
    BrokenRequirement "broken-requirement",
    /// A kernel uses what the device has not: an operation, a type, a kind of atomic.
    ///
    /// The message names it and what would have to be there. Nothing was run. Another device may have
    /// it; the checked one has everything.
    UnsupportedFeature "unsupported-feature",
    /// A kernel in `strict` mode is compiled for a device that does not claim `ieee-float` (A9).
    ///
    /// Leave the mode out, or take a device that claims it.
    UnsupportedFloatMode "unsupported-float-mode",
    /// An atomic has an order or a scope that the device lacks (T3).
    ///
    /// Use `relaxed` and order by barriers and by dispatches, or take a device that has the order.
    UnsupportedMemoryOrder "unsupported-memory-order",
    /// Two arguments of one dispatch overlap in memory, and the kernel may write one of them (S3).
    ///
    /// Give each its own buffer, or parts of one that have no byte in common. Arguments that are all
    /// declared `read` or `constant` may overlap.
    OverlappingBuffers "overlapping-buffers",
    /// The host has no memory left for a buffer, or for the threadgroups of a dispatch.
    OutOfMemory "out-of-memory",
    /// The device ended a dispatch by itself, or Invar failed in it.
    ///
    /// Nothing is known of what the dispatch would have done next. A kernel that waits for what never
    /// comes (X3) can lose a device that has no time limits.
    DeviceLost "device-lost",
}
}

impl Rule {
    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|r| r.name() == name)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
