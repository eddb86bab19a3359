//! The numbers that say when a pass or a writer does what is right either way: none changes what a kernel computes.
//!
//! Each says which kernels it is for and what was measured when it was chosen.
//!
//! The 146 kernels of which some speak are the spellings of `benches/kernels/variants` and 32 of other kinds, such as
//! stencils that wrap, pixels of bytes, structures of numbers, scans and norms of rows: their machine code for an AMD
//! EPYC with AVX-512, and their times on two threads of an Intel Xeon with AVX-512. A number that changes none of them
//! is for kernels that are not among these.
//!
//! Deliberately absent: limits that a proof needs, sizes that a language gives, models of what drivers do
//! (`wgsl/value_walks.rs`), the shapes that regrouped kernels run in, which stand beside their measurement
//! (`passes/regroup.rs`), and how far analyses look, which is about time to compile alone.

// ---- branches and loops (`passes/options.rs`, `passes/cost.rs`) ----

/// Cheap instructions in an `if` without effects that becomes `select`s, at most. For kernels with small conditions,
/// whose branches would cost more than both sides. Neither 0 nor 12 changes the machine code of any of 146 kernels.
pub(crate) const CONVERTED_INSTRUCTIONS: usize = 6;

/// Instructions in a region that may be computed for nothing instead of branched around, at most: for lanes that
/// disagree, and for the processor's guesses. Neither 4 nor 16 changes the machine code of any of 146 kernels.
pub(crate) const CHEAP_INSTRUCTIONS: usize = 8;

/// Iterations of a `for` that is unrolled, at most. For loops over small windows and tuples. 4 and 16 change the code
/// of one of 146 kernels each, whose times differ by no more than between runs.
pub(crate) const UNROLLED_ITERATIONS: u32 = 8;

/// Iterations of a `loop` that goes by halves, or in any other way, and is unrolled, at most: those of 1024 threads.
/// For reductions, scans and sorts in threadgroup memory. Without it sums of 256 take 1.25 times as long on an AMD EPYC
/// 7003.
pub(crate) const UNROLLED_HALVES: u32 = 10;

/// Instructions that an unrolled `for` becomes, at most: two loops over a window of 5 by 5 are 300. With 64 such
/// convolutions take 1.1 to 1.2 times as long on two threads of an AMD EPYC 9004; with 16 a `saxpy` of four elements in
/// a loop takes 2.7 times as long.
pub(crate) const UNROLLED_INSTRUCTIONS: usize = 512;

/// Instructions of a loop that is written once for counters that might wrap around and once for those that do not, at
/// most. For loops whose end and step the dispatch gives: a softmax whose loops stayed took 57 ms, else 14.
pub(crate) const TWICE_WRITTEN_INSTRUCTIONS: usize = 1024;

/// Returns whose rest stands in each other's branches, at most: as deep as the CPU compiler has code of its own for when
/// all lanes take a branch. With none `a*x + y` behind a return takes 1.8 times as long with AVX2.
pub(crate) const NESTED_RETURNS: u32 = 3;

/// Elements of a thread array that becomes values, at most: more are kept in no machine's registers. For small matrices
/// and windows. Neither 0 nor 64 changes the machine code of any of 146 kernels.
pub(crate) const PROMOTED_ELEMENTS: u32 = 32;

/// Elements of an array that is copied element by element, at most; a longer one by a loop. For structures whose fields
/// are short arrays. Neither 2 nor 8 changes the machine code of any of 146 kernels.
pub(crate) const UNROLLED_COPY_ELEMENTS: u32 = 4;

// ---- the processor's threadgroups (`analysis/planes.rs`) ----

/// Rows of threads that run together.
pub(crate) const ROWS_TOGETHER: i64 = 4;

/// Loads of rows together that one in so many spares, at least, for them to run together in three dimensions. For
/// stencils: one of 7 points, which spares a fifth, takes 1.6 times as long by four rows as by whole ones on one thread
/// of an AMD EPYC 9004, and one of 27 points, which spares half, 0.7 times.
pub(crate) const LEAST_SHARED_LOADS: usize = 3;

/// How many planes apart neighbours may be: stencils of up to seven planes.
pub(crate) const PLANES_APART: i64 = 3;

// ---- coarser threads, for GPUs (`passes/coarsen.rs`, `passes/rows.rs`) ----

/// Instructions of a kernel that is made coarser, at most: larger ones keep many values, and gain less. For streaming
/// kernels. With 24 transposes take 1.7 to 3.3 times as long on an H200.
pub(crate) const COARSENED_INSTRUCTIONS: usize = 96;

/// Loads under way in a thread that keep memory busy, at most. For kernels with barriers, such as reductions and
/// transposes by tiles. With 4 transposes by tiles of 32 take 1.14 to 1.20 times as long on an H200; 16 makes no
/// difference.
pub(crate) const LOADS_UNDER_WAY: u32 = 8;

/// Threads that a coarser threadgroup keeps, at least: what stands between barriers hides nothing with fewer. With 128
/// transposes by tiles of 16 take 1.3 times as long on an H200, with 256 twice as long; 32 makes no difference.
pub(crate) const COARSENED_THREADS: u32 = 64;

/// Words that the iterations of a loop over a row may load together, at most: a thread keeps them in registers. For
/// kernels that go over a row several times, such as softmax and normalisations. With 16 a softmax of 4096 columns
/// takes 1.18 times as long on an H200 and RMSNorm 1.1 times, with 8 a softmax 1.55 times; with 64 those by vectors of
/// 4 take 0.8 to 0.9 times as long, on a processor with more registers than others have.
pub(crate) const ROW_WORDS: i128 = 32;

/// Instructions that a loop over a row becomes, at most. Neither 128 nor 2048 changes the times of ten kernels over rows
/// on an H200.
pub(crate) const ROW_INSTRUCTIONS: i128 = 512;

// ---- WGSL (`wgsl/runs.rs`) ----

/// Powers of e in a straight line that are computed together, at least: one question decides for all whether their
/// arguments are near 0, where a power takes a third less. For what loops over rows leave.
pub(crate) const LEAST_RUN: usize = 4;

/// Such powers, at most: what decides for them is one expression, which compilers go into power by power.
pub(crate) const MOST_RUN: usize = 64;

// ---- the CPU (`passes/forward.rs`, `interior.rs`, `regroup.rs`, `split.rs`, `strides.rs`, `lines.rs`) ----

/// Threads of a threadgroup whose rows of tiles are loaded from where they came from, at most: of more than this,
/// several would go through each row one after another. For tiled products. Neither 1 nor 1024 changes the machine code
/// of any of 146 kernels.
pub(crate) const FORWARDING_THREADS: u32 = 256;

/// Instructions of a body that is there once more for threads without borders, at most. For stencils that wrap or
/// clamp: a clamped 5 x 5 convolution of 2048 x 2048 on one thread takes 4.7 ms for 153; of larger bodies no
/// measurement is on record.
pub(crate) const INTERIOR_INSTRUCTIONS: usize = 600;

/// Instructions of a body that is there once more for positions whose low bits are the threads' own, at most. For steps
/// of Fourier transforms and sorts: a step on 4 M numbers has 25 to 40.
pub(crate) const ALIGNED_INSTRUCTIONS: usize = 192;

/// Elements between the borders of a row, at least: what is limited to fewer is not a row, and its threads gain nothing.
/// Neither 16 nor 100,000 changes the machine code of any of 146 kernels.
pub(crate) const INTERIOR_ROW: i64 = 64;

/// Instructions of a kernel that is looked at for other threadgroups, at most: larger ones take long to look at, and
/// are rarely written without a thought about threadgroups. Neither 5,000 nor 80,000 changes the machine code of any of
/// 146 kernels.
pub(crate) const REGROUPED_INSTRUCTIONS: usize = 20_000;

/// Instructions that copies from threadgroup memory become, at most. For tiled products whose inner loop is written
/// out and does not become one again: with more there is room for few vectors of threads in a chunk. Of 2 x 32 loads,
/// as of tiles of 32, tiles are faster by a quarter. With 64 tiled products take 1.3 to 2.6 times as long.
pub(crate) const UNTILED_INSTRUCTIONS: usize = 256;

/// Bytes of its own that a thread of a regrouped kernel has, at most: with more, larger threadgroups than asked for
/// would take more than asked for.
pub(crate) const REGROUPED_THREAD_BYTES: u64 = 1 << 10;

/// How often an iteration of a loop counts beside what stands around it, where an axis for the lanes is chosen. For
/// kernels of two dimensions. Neither 4 nor 16 changes the machine code of any of 146 kernels.
pub(crate) const ITERATIONS_OF_A_LOOP: u64 = 8;

/// Loops deeper than this count no more.
pub(crate) const MOST_LOOP_DEPTH: u32 = 4;

/// What a gather or scatter counts for there, beside one vector for neighbours. Neither 8 nor 32 changes the machine
/// code of any of 146 kernels.
pub(crate) const FAR_ACCESS: u64 = 16;

/// What an access to elements a few apart counts for: it is that many vectors.
pub(crate) const NEAR_ACCESS: u64 = 4;

/// Threads of a row that a grid of one dimension is split into, at least: shorter rows are not worth it. Neither 16 nor
/// 256 changes the machine code of any of 146 kernels.
pub(crate) const LEAST_SPLIT_WIDTH: u32 = 64;

/// Rows of so many threads may end within a vector; shorter ones are whole vectors of [`SPLIT_VECTOR`]. Neither 1 nor
/// 1024 changes the machine code of any of 146 kernels.
pub(crate) const LONG_SPLIT_WIDTH: u32 = 256;

/// Lanes of the widest vectors of 32-bit elements.
pub(crate) const SPLIT_VECTOR: u32 = 16;

/// Instructions of a loop over strides of the grid, at most: it is there twice then. Neither 150 nor 2,400 changes the
/// machine code of any of 146 kernels.
pub(crate) const STRIDE_INSTRUCTIONS: usize = 600;

/// Instructions that the iterations of a loop along a row become which are made at a time, at most. With 256 a softmax
/// of which each thread has a row takes three times as long; 4,096 changes the code of none of 146 kernels.
pub(crate) const LINE_INSTRUCTIONS: usize = 1024;

// ---- accesses that become vectors (`analysis/blocks.rs`, `analysis/streams.rs`) ----

/// How many elements further on the next lane accesses memory, at most, for a few vectors to be made for all lanes:
/// from further apart more vectors would be loaded for few of their lanes than a gather takes. With 2 pixels of three
/// and four bytes take 2.7 to 6.3 times as long; 8 changes the code of one of 146 kernels.
pub const MOST_VECTOR_STRIDE: u64 = 4;

/// Loads of a thread side by side that are a block, at least: fewer are mostly put together of vectors otherwise. 2 and
/// 8 change the machine code of two and one of 146 kernels, which take 1.00 and 0.98 times as long.
pub(crate) const LEAST_BLOCK_LOADS: usize = 4;

/// Stores of a thread side by side that are a block, at least. With 1 transposes take 2.5 to 3.3 times as long, with 4
/// pixels of three bytes 7.6 times.
pub(crate) const LEAST_BLOCK_STORES: usize = 2;

/// Elements of a block, at most: a line of a cache of 32-bit elements, and as many vectors as half of the registers. With 8
/// sums and norms of rows by one thread each take 1.5 to 1.7 times as long; 32 changes none of 146 kernels.
pub(crate) const MOST_BLOCK_ELEMENTS: i64 = 16;

/// Stores to an object that is streamed to, at most. 8 changes the machine code of one of 146 kernels, 32 of none.
pub(crate) const MOST_STREAMED_STORES: usize = 16;

/// Elements that two such stores lie apart, at least, where that is a known number: a row of a threadgroup of usual
/// size ends before the next one begins. 64 changes the machine code of none of 146 kernels, 1,024 of one, which takes
/// 0.98 times as long.
pub(crate) const LEAST_STREAMS_APART: u64 = 256;
