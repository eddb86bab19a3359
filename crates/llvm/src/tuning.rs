//! The numbers that say when the compiler does what is right either way: none changes what code computes.
//!
//! Each says which kernels it is for and what was measured when it was chosen.
//!
//! The 146 kernels of which some speak are the spellings of `benches/kernels/variants` and 32 of other kinds, such as
//! stencils that wrap, pixels of bytes, structures of numbers, scans and norms of rows: their machine code for an AMD
//! EPYC with AVX-512, and their times on one of its threads or on two of an Intel Xeon. A number that changes none of them
//! is for kernels that are not among these.
//!
//! Deliberately absent: limits that a proof needs (`guards.rs`), sizes that the processor or a format gives
//! (`places.rs`, `matrices.rs`, `link.rs`), and what LLVM takes long functions for (`long.rs`), which is about time to
//! compile alone.

// ---- functions of floats (`defined.rs`) ----

/// Places of a kernel that call functions of floats, components counted one by one, above which each function is made
/// once and called. For long kernels: 2,000 lines of `sin` are 240,000 instructions written out, more than the limit,
/// and 300 took 3.8 s to compile. A call keeps LLVM from mixing a function with what is around it.
pub(crate) const MOST_WRITTEN_OUT: u32 = 64;

/// Instructions that a function of floats has at least to be called: shorter ones, such as `fract`, take less than a
/// call does. Neither 8 nor 32 changes the machine code of any of 146 kernels.
pub(crate) const LEAST_CALLED: usize = 16;

/// Operations on components, for each component of its operands, that a function of vectors or matrices has at least to
/// be called: `normalize` has 20, products of matrices 1 or 2, and a call moves each component. Neither 2 nor 8 changes
/// the machine code of any of 146 kernels.
pub(crate) const LEAST_OF_WHOLE: usize = 4;

// ---- chunks (`cost.rs`, `neighbour_rows.rs`, `analysis.rs`) ----

/// Vectors of threads in a chunk, at most. For loops, which keep a value of each vector in a register: more than
/// registers hold are spilled. With 8 the 50 of 146 kernels that differ take 1.7 times as long in the mean; 32 changes
/// none.
pub(crate) const MOST_VECTORS: u32 = 16;

/// Vectors in a chunk whose loop takes both roots and quotients of floats. A divider takes turns badly: two roots and
/// then two quotients are done sooner than one after the other, which is how more vectors are put in order where
/// registers are short. For loops such as those over pairs of bodies: 2 to 3 % less time.
pub(crate) const DIVIDER_VECTORS: u32 = 2;

/// Vectors in a chunk of a kernel without a loop, or with a loop of more than [`SHORT_LOOP_OPERATIONS`]: four hide what
/// an operation takes. With 2 and 8 the 29 of 146 kernels that differ take 0.98 and 1.01 times as long in the mean.
pub(crate) const FEW_VECTORS: u32 = 4;

/// Operations in a loop that is short: its vectors are limited by registers only. With 16 tiled products take 1.8 to
/// 1.9 times as long; 256 changes the code of none of 146 kernels.
pub(crate) const SHORT_LOOP_OPERATIONS: u32 = 64;

/// Operations in the code of a chunk, at most: each is made as often as the chunk has vectors. With 175
/// the 42 of 146 kernels that differ take 1.5 times as long in the mean, tiled products 3 to 4 times; with 2,800 the 15
/// that differ take 1.01 times as long, stencils with clamped borders up to 1.5 times.
pub(crate) const MOST_CHUNK_OPERATIONS: u32 = 700;

/// Rows of threads that share loads, at most. For stencils and filters, whose neighbours read the same: each row more
/// saves less. A stencil of 8 points takes a quarter less time with four.
pub(crate) const MOST_SHARING_ROWS: u32 = 4;

/// How many rows apart threads may be that read the same, for these to count as sharing loads: filters of up to seven
/// rows. Neither 1 nor 6 changes the machine code of any of 146 kernels.
pub(crate) const SHARED_ROWS_APART: i64 = 3;

/// How many elements to the side what one reads may begin of what the other does: a vector of `f32` at most. Neither 8
/// nor 32 changes the machine code of any of 146 kernels.
pub(crate) const SHARED_ELEMENTS_BESIDE: i64 = 16;

/// How many elements apart what a thread accesses is in several rows of memory, at least. For threads that have several
/// elements each, a row of a threadgroup apart: of `a*x + y` of 16M by one thread of an AMD EPYC 9004, whose neighbours
/// are busy, four rows of 256 take 4.6 ms where each is gone through as a whole, and 12.4 ms by quarters of each.
pub(crate) const LEAST_BETWEEN_ROWS: u64 = 64;

/// Rows of threads whose blocks are transposed, at least. Neither 2 nor 8 changes the machine code of any of 146
/// kernels.
pub(crate) const LEAST_TRANSPOSED_ROWS: u32 = 4;

/// Stores of a block whose lanes' rows lie apart in memory, at least. Neither 2 nor 8 changes the machine code of any
/// of 146 kernels.
pub(crate) const LEAST_STORES_APART: u32 = 4;

/// Stores of a block whose lanes' rows lie side by side in memory, at most. With 2 pixels of three and four bytes take
/// 3.2 to 4 times as long; 8 changes the code of none of 146 kernels.
pub(crate) const MOST_STORES_SIDE_BY_SIDE: u32 = 4;

/// Vectors of integers that are compared vector by vector where lanes share them, at most. Neither 4 nor 16 changes the
/// machine code of any of 146 kernels.
pub(crate) const MOST_COMPARED_VECTORS: usize = 8;

/// Vectors of threads whose loads are blocks, at most: the columns of one are half of the registers. With 2 sums and
/// norms of rows by one thread each take 1.1 to 1.15 times as long on an AMD EPYC 9005, with 4 up to 1.2 times.
pub(crate) const BLOCK_VECTORS: u32 = 1;

/// Rows of threads that read the same blocks, at most: for products with a transposed matrix and distances between all
/// rows, where what is transposed once serves them all. With 4 a product of 1024 by 1024 takes 1.2 times as long on an
/// AMD EPYC 9004, with 1 2.9 times; 16 makes no difference.
pub(crate) const BLOCK_ROWS: u32 = 8;

/// Bits of a register that kernels of small integers fill, at most. Units for integers are no wider on the processors
/// with AVX-512 that were measured (an AMD EPYC 9004): 16-bit numbers in all 512 bits gain nothing there.
pub(crate) const WIDEST_FILLED_BITS: u32 = 256;

/// What vectors of more lanes may cost of what those of fewer do, at most, for them to be taken: for kernels of small
/// integers. Half as much is what twice the lanes cost while each number fits a register; with more than this, kernels of
/// 8 and 16 bits would have lanes of which the 16 bits fill two registers.
pub(crate) const MOST_COST_OF_MORE_LANES: f64 = 0.75;

/// What an operation between lanes counts for among [`MOST_CHUNK_OPERATIONS`]: it takes about as many shuffles and
/// selections. Neither 1 nor 16 changes the machine code of any of 146 kernels.
pub(crate) const OPERATIONS_BETWEEN_LANES: u32 = 8;

/// What an atomic counts for, which goes lane by lane.
pub(crate) const OPERATIONS_OF_ATOMIC: u32 = 16;

/// Vectors along x of a segment without loops, at most: there are no loads to share, and more are only more code.
/// With 2 the 38 of 146 kernels that differ take 0.99 times as long in the mean, with 8 four take 0.97 times.
pub(crate) const MOST_VECTORS_WITHOUT_LOOPS: u32 = 4;

// ---- control flow (`control.rs`, `function.rs`, `kernel.rs`) ----

/// Instructions in an `if` whose code is made once more for chunks of which all lanes take it, at most. For kernels
/// whose threads are guarded by a comparison of their position, and for masked loads in general: without a mask a load
/// is a plain one. With 48 a convolution of 5 by 5, written out behind a guard, takes 1.1 times as long; neither 400 nor
/// 12 changes another of 146 kernels by more than 2 %.
pub(crate) const MOST_TWICE: usize = 192;

/// Instructions of such `if`s, after which no more are made twice. For shaders of thousands of lines, which take longer
/// to compile than to run: 2,000 lines of `if`s compile in 0.46 s where they took 0.85 s, and run no slower.
pub(crate) const MOST_TWICE_IN_ALL: usize = 1000;

/// How deep such `if`s may stand in each other, each doubling the code of those inside: sixty of them took half a
/// minute to compile.
pub(crate) const DEEPEST_TWICE: u32 = 3;

/// Weights of the way that nearly all chunks take and the other: registers are for the first.
pub(crate) const BRANCH_WEIGHTS: [u32; 2] = [1000, 1];

/// Iterations of counted loops after which a request to stop is looked for, a power of two. With
/// 16,384 and 262,144 the 57 of 146 kernels that have such loops take 0.99 and 1.01 times as long in the mean.
pub(crate) const ITERATIONS_BETWEEN_POLLS: u32 = 1 << 16;

/// Threadgroups that run as one, at most, in kernels that cannot tell them apart: so few that requests to stop are soon
/// seen, so many that rows are long. With 16 and 256 the 46 of 146 kernels that differ take 1.10 and 0.95 times as
/// long in the mean.
pub(crate) const MOST_MERGED_THREADGROUPS: u64 = 64;

// ---- memory (`analysis.rs`, `prefetch.rs`, `sums.rs`, `guards.rs`) ----

/// Stores under a mask to places of their own, on processors without an instruction for them, that stand where they are
/// made: those behind share a function. For kernels that print many times: 400 prints compile in 6.4 s where they took
/// 14 s, 200 in 2.8 s where they took 3.6 s, on an AMD EPYC with AVX2 whose other core was busy.
pub(crate) const MOST_INLINE_SCATTERS: u32 = 16;

/// Loads of rows that have code of their own for where a row is not wholly in bounds: those behind them share it, by a
/// call. For shaders of thousands of lines, which take longer to compile than to run: 2,000 lines with a load each
/// compile in 0.6 to 0.75 s where they took 0.9 s, and run no slower.
pub(crate) const MOST_EDGES: u32 = 400;

/// Bytes of thread arrays in the function's frame, at most: the caller of a kernel has a stack of any size.
pub(crate) const FRAME_BYTES: u64 = 32 << 10;

/// What moves by fewer bytes than this from one iteration to the next is not prefetched: processors foresee it
/// themselves. For loops that all threads of a threadgroup go through together: with more, a product of 2048 by 2048 in
/// tiles of 16 by 16 takes 40 % less time on an AMD EPYC 9005.
pub(crate) const LEAST_PREFETCHED_STEP_BYTES: u64 = 1024;

/// How far ahead a stretch without gaps is prefetched, at least. For reductions and what goes over rows several times,
/// where the next threadgroup reads on behind barriers, also by threadgroups of which a chunk reads a part of each line of
/// threads. With 4096 a softmax and an RMSNorm of rows of 4096 take 1.1 to 1.35 times as long on an AMD EPYC 9004, with
/// 8192 up to 1.2 times. With 32,768 rows of 16,384 by threadgroups of 256 take 0.88 times as long, others the same.
pub(crate) const PREFETCHED_STRETCH_BYTES: u64 = 16384;

/// How many iterations ahead that is at least, where other threads of the threadgroup read what lies between: the next
/// iteration comes too soon.
pub(crate) const PREFETCHED_ITERATIONS: u64 = 4;

/// How far ahead a row is prefetched that one thread goes along: lines of as many rows as a vector has lanes are in the
/// second cache then, also where all lie in few of its sets. For sums, norms and products of rows by one thread each.
pub(crate) const PREFETCHED_ALONG_BYTES: u64 = 256;

/// Terms of a sum that integers are compared by, at most: what has more is one term. Neither 3 nor 12
/// changes the machine code of any of 146 kernels.
pub(crate) const MOST_TERMS: usize = 6;

/// Accesses of a segment whose bounds are tested in front of it, at most: beyond, the tests would cost too much. With
/// 28 eleven of 146 kernels differ, which take 2.1 times as long in the mean (written-out convolutions 3.3 times);
/// 448 changes none.
pub(crate) const MOST_GUARDED_ACCESSES: usize = 112;

/// The same with those of blocks, whose indices differ by constants: a norm of a row by each thread has 70 where its
/// loops are written out. With 40 norms and softmax of a row by each thread take 5 to 11 times as long; 640 changes
/// the machine code of none of 146 kernels.
pub(crate) const MOST_GUARDED_IN_ALL: usize = 160;

// ---- what is compiled when (`options.rs`, `cold_paths.rs`) ----

/// Of LLVM's instructions before its passes that only chunks which are not full run: with fewer, compiling them takes
/// less than it takes to begin. For short kernels.
pub(crate) const LEAST_APART: usize = 150;

/// A part of these that has less than one part in so many of [`LEAST_APART`] stays where it is.
pub(crate) const SMALL_APART: usize = 5;
