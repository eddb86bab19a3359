//! Without tiles: where each thread of a threadgroup brings an element of a buffer to threadgroup memory, and all
//! read what the others brought, each reads the buffers themselves, and the barriers between go.
//!
//! ```text
//! A[16*y + x] = B[g(x, y)]; barrier; ... A[16*i + x] ...   ->   ... B[g(x, i)] ...
//! ```
//!
//! This is for tiled products, for n-body's iterations, and for whatever else copies to threadgroup memory what a GPU
//! had better not load twice. On a CPU both are in the same caches, and threads that do not meet run in the
//! threadgroups that suit their accesses ([`super::regroup`], which asks for this): a product by tiles of 16, one by
//! tiles of 8 and one without tiles are the same in the end.
//!
//! An array must be stored to in one place, by every thread of a full threadgroup at an element of its own; behind a
//! barrier in the same region each load's index says which thread's element it is: where the thread's index is
//! `16*y + x + c`, of `16*i + 3 + c` it is that of thread (3, i), if `i` is known to be below the height. What that
//! thread stored is computed again from where it stands. That is done for copies, selected, converted, guarded or
//! not, from memory that the dispatch does not write: sums of floats are computed once.
//!
//! Deliberately absent: kernels of which one array stays, for then the barriers stay too (`forward.rs` takes single
//! rows there); arrays that are stored to in several places, as tiles with borders are; threadgroups that are not full.

use std::collections::{HashMap, HashSet};

use invar_ir::ops::Meaning;
use invar_ir::{
    AccessMode, AddressSpace, Const, Dim, ElementType, Imm, Inst, InstKind, Kernel, Level, Memory,
    Module, Op, ParamKind, Place, Region, Scalar, Span, Type, Uniformity, Value, ValueInfo, Values,
    analyse,
};

use super::common::{Map, constants, integer, new_value, push_const, push_inst, substitute_region};
use super::forward::{holder, is_element, orders_threadgroup, stores};
use super::reroll;
use crate::analysis::affine::{self, Affine, Product, Sum, Symbol};
use crate::analysis::ranges::{self, Known, Range, Ranges};
use crate::tuning::UNTILED_INSTRUCTIONS;

/// Iterations of a sum that were written out and become a loop, at least.
const LEAST_ITERATIONS: usize = 4;

/// How deep what a thread stored is looked into.
const DEPTH: u32 = 24;

/// Whether threads meet for threadgroup memory alone, so that they need not meet without it.
pub(super) fn is_possible(module: &Module, kernel: &Kernel) -> bool {
    let of_the_threadgroup = |space| space == AddressSpace::Threadgroup;
    let mut possible = kernel.allocs.iter().any(|a| of_the_threadgroup(a.space));
    possible &= !(kernel.params.iter()).any(|p| matches!(p.kind, ParamKind::Threadgroup { .. }));
    let (mut read, mut written) = (HashSet::new(), HashSet::new());
    kernel.for_each_inst(&mut |inst| {
        let is_barrier = matches!(inst.kind, InstKind::Barrier { .. });
        possible &= is_barrier || inst.kind.meets().is_none() && !inst.kind.orders_memory();
        for access in inst.kind.accesses() {
            match access.mode {
                AccessMode::Read => read.insert(access.memory),
                AccessMode::Write => written.insert(access.memory),
                AccessMode::Atomic { .. } => {
                    possible = false;
                    false
                }
            };
        }
    });
    // What another thread wrote to a buffer is read behind a barrier only.
    let is_buffer = |memory: &&Memory| {
        let info = module.memory(kernel, **memory);
        !info.is_some_and(|info| {
            of_the_threadgroup(info.space) || info.space == AddressSpace::Thread
        })
    };
    possible && !read.intersection(&written).any(|memory| is_buffer(&memory))
}

/// Rewrites a kernel for full threadgroups of a size; false if some array of threadgroup memory is more than copies,
/// and then nothing was changed.
pub(super) fn run(module: &Module, kernel: &mut Kernel, size: [u32; 3]) -> bool {
    if !is_possible(module, kernel) {
        return false;
    }
    let mut rolled = kernel.clone();
    let found = if reroll::run(module, &mut rolled, Some(size), LEAST_ITERATIONS) {
        find(module, &rolled, size)
    } else {
        None
    };
    let tiles = match found {
        Some(tiles) => {
            *kernel = rolled;
            tiles
        }
        None => match find(module, kernel, size) {
            Some(tiles) => tiles,
            None => return false,
        },
    };
    let mut body = std::mem::take(&mut kernel.body);
    let mut rewrite = Rewrite {
        values: &mut kernel.values,
        tiles: &tiles,
        size,
        map: Map::new(),
    };
    rewrite.region(&mut body);
    let map = rewrite.map;
    substitute_region(&map, &mut body);
    kernel.body = body;
    // Arrays that nothing begins are gone.
    kernel.renumber();
    true
}

// ---- what to do ----

/// An array whose elements are what threads copied.
struct Tile {
    array: Memory,
    /// What each thread stored.
    value: Value,
    /// What computes it from where the thread stands, in order.
    nodes: Vec<Node>,
    /// The loads by their results, with the threads whose elements they are.
    loads: HashMap<Value, [Digit; 3]>,
}

/// How far apart elements of neighbouring threads are, along axes of more than one thread.
type Pitches = Vec<(Dim, i64)>;

/// How columns are exchanged: the element of the thread at `x` along an axis lies where the one at `x ^ key` would lie
/// otherwise. As many threads as a power of two lie along it, the key is less, and the same for all of them.
struct Swizzle {
    dim: Dim,
    key: Value,
}

/// An exclusive or in an index: `times * (high + low ^ key)`, where `high` is a multiple of a power of two that the
/// two others are less than.
struct Exchanged {
    high: Sum<Product>,
    low: Sum<Product>,
    key: Value,
    times: i64,
    /// The index without it.
    others: Sum<Product>,
}

/// Where the elements of threads lie.
struct Lie {
    pitches: Pitches,
    /// What else the index is the sum of.
    rest: Sum<Product>,
    swizzle: Option<Swizzle>,
}

/// An instruction, and the axes along which what it gives differs.
struct Node {
    inst: Inst,
    along: [bool; 3],
}

/// Where the thread stands along an axis whose element is loaded: a sum of what is known to be in the threadgroup.
#[derive(Clone, Default)]
struct Digit {
    terms: Vec<(Term, i64)>,
    constant: i64,
}

#[derive(Clone, Copy, PartialEq)]
enum Term {
    Thread(Dim),
    /// A value of this type, in iterations of a loop from a first value in steps.
    Iteration {
        index: Value,
        first: i64,
        step: i64,
    },
    Value(Value),
}

impl Digit {
    /// It is that of the first thread.
    fn is_none(&self) -> bool {
        self.constant == 0 && self.terms.is_empty()
    }

    fn sum(&self) -> Sum<Product> {
        let terms = self.terms.iter();
        terms.fold(Sum::constant(self.constant), |sum, (term, times)| {
            let symbol = match *term {
                Term::Thread(dim) => Symbol::Thread(dim),
                Term::Iteration { index, .. } => Symbol::Iteration(index),
                Term::Value(value) => Symbol::Value(value),
            };
            sum.plus(&Sum::of(Product::of(symbol)), *times)
        })
    }

    /// It is the thread's own.
    fn is_own(&self, dim: Dim) -> bool {
        self.constant == 0 && self.terms == [(Term::Thread(dim), 1)]
    }
}

fn find(module: &Module, kernel: &Kernel, size: [u32; 3]) -> Option<Vec<Tile>> {
    let known = Known {
        threadgroup_size: Some(size),
        threads: None,
    };
    let ranges = ranges::analyse(kernel, &known);
    let mut look = Look {
        module,
        kernel,
        size,
        uniformity: analyse(module, kernel),
        affine: affine::analyse(kernel, &ranges, Some(size)),
        ranges,
        loops: HashMap::new(),
    };
    let constants = constants(kernel);
    let of = |v: &Value| i64::try_from(integer(*constants.get(v)?)?).ok();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::For {
            lower, step, body, ..
        } = &inst.kind
            && let (Some(lower), Some(step)) = (of(lower), of(step))
        {
            look.loops.insert(body.params[0], (lower, step));
        }
    });
    let arrays = (0..kernel.allocs.len())
        .filter(|i| kernel.allocs[*i].space == AddressSpace::Threadgroup)
        .map(|i| look.tile(i as u32));
    let tiles = arrays.collect::<Option<Vec<_>>>()?;
    let copies = |tile: &Tile| tile.loads.len().saturating_mul(tile.nodes.len());
    (tiles.iter().map(copies).sum::<usize>() <= UNTILED_INSTRUCTIONS).then_some(tiles)
}

struct Look<'k> {
    module: &'k Module,
    kernel: &'k Kernel,
    size: [u32; 3],
    uniformity: Uniformity,
    affine: Affine<'k>,
    ranges: Ranges,
    /// The first index and the step of loops that have constant ones.
    loops: HashMap<Value, (i64, i64)>,
}

impl<'k> Look<'k> {
    fn tile(&self, id: u32) -> Option<Tile> {
        let array = Memory::Alloc(id);
        let alloc = &self.kernel.allocs[id as usize];
        if !matches!(alloc.element, ElementType::Value(_)) {
            return None;
        }
        let region = holder(&self.kernel.body, array)?;
        let store = region.insts.iter().position(|inst| stores(inst, array))?;
        let InstKind::Store { place, value } = &region.insts[store].kind else {
            return None;
        };
        let barrier = store + region.insts[store..].iter().position(orders_threadgroup)?;
        let own = self.sum(place)?;
        let inside = self.ranges.is_inside(place.index, alloc.length.into());
        if !inside || !is_element(place) {
            return None;
        }
        let lie = self.lie(own)?;

        let mut loads = HashMap::new();
        for inst in &region.insts[barrier..] {
            self.loads(inst, array, &lie, &mut loads)?;
        }
        if self.accesses(array) != loads.len() + 1 {
            return None;
        }
        let mut copy = Copied::of(self);
        copy.value(*value, DEPTH)?;
        Some(Tile {
            array,
            value: *value,
            nodes: copy.nodes,
            loads,
        })
    }

    /// In how many places an array is used, but for where it begins.
    fn accesses(&self, array: Memory) -> usize {
        let mut count = 0;
        self.kernel.for_each_inst(&mut |inst| match &inst.kind {
            InstKind::Alloc(_) => {}
            other => other.for_each_memory(|memory| count += usize::from(memory == array)),
        });
        count
    }

    /// What a place's index is the sum of; none if it may be another number.
    fn sum(&self, place: &Place) -> Option<Sum<Product>> {
        let form = self.affine.of(place.index);
        let bits = self.kernel.ty(place.index).scalar()?.bits();
        (form.exact || bits >= 32 && form.bits >= bits).then_some(form.sum)
    }

    /// How far apart the elements of neighbouring threads are along each axis, from the farthest, and what else the
    /// index is the sum of, which is the same for all; none if two threads may have one element.
    fn pitches(&self, index: Sum<Product>) -> Option<(Pitches, Sum<Product>)> {
        let mut rest = index;
        let mut pitches = Vec::new();
        for dim in Dim::ALL {
            let symbol = Symbol::Thread(dim);
            let pitch = rest.coefficient(symbol)?.as_constant()?;
            rest = rest.plus(&Sum::of(Product::of(symbol)), pitch.checked_neg()?);
            if self.size[dim as usize] > 1 {
                pitches.push((dim, pitch));
            }
        }
        pitches.sort_unstable_by_key(|(_, pitch)| std::cmp::Reverse(*pitch));
        let mut least = 1;
        for (dim, pitch) in pitches.iter().rev() {
            if *pitch < least {
                return None;
            }
            least = pitch.checked_mul(self.size[*dim as usize].into())?;
        }
        let is_same = |symbol| match symbol {
            Symbol::Thread(_) | Symbol::Query(..) | Symbol::Power(..) => false,
            Symbol::Threadgroup(_) | Symbol::Size(_) => true,
            Symbol::Iteration(value) | Symbol::Value(value) => self.is_uniform(value),
        };
        let same = rest.symbols().all(is_same);
        same.then_some((pitches, rest))
    }

    fn is_uniform(&self, value: Value) -> bool {
        self.uniformity.of(value) >= Level::Threadgroup
    }

    /// The loads from an array in an instruction.
    fn loads(
        &self,
        inst: &Inst,
        array: Memory,
        lie: &Lie,
        found: &mut HashMap<Value, [Digit; 3]>,
    ) -> Option<()> {
        if let InstKind::Load(place) = &inst.kind
            && place.memory == array
        {
            let distance = self.sum(place)?.plus(&lie.rest, -1);
            if !is_element(place) {
                return None;
            }
            let digits = match &lie.swizzle {
                None => self.digits(&distance, &lie.pitches),
                Some(swizzle) => self.exchanged_digits(&distance, &lie.pitches, swizzle),
            };
            found.insert(inst.results[0], digits?);
        }
        let mut inner = inst.kind.regions().into_iter().flat_map(|r| &r.insts);
        inner.try_for_each(|inst| self.loads(inst, array, lie, found))
    }

    /// The thread whose element is so far from the first thread's.
    fn digits(&self, distance: &Sum<Product>, pitches: &[(Dim, i64)]) -> Option<[Digit; 3]> {
        let mut digits: [Digit; 3] = Default::default();
        let mut spans = [(0i128, 0i128); 3];
        for (product, factor) in distance.terms() {
            let mut symbols = product.symbols();
            let (Some(symbol), None) = (symbols.next(), symbols.next()) else {
                return None;
            };
            let (term, (least, most)) = self.term(symbol)?;
            let mut along = pitches.iter();
            let (dim, pitch) = along.find(|(_, pitch)| factor % pitch == 0)?;
            let times = factor / pitch;
            let ends = [least, most].map(|end| end * i128::from(times));
            let span = &mut spans[*dim as usize];
            *span = (span.0 + ends[0].min(ends[1]), span.1 + ends[0].max(ends[1]));
            digits[*dim as usize].terms.push((term, times));
        }
        let mut constant = distance.offset();
        for (dim, pitch) in pitches {
            let digit = constant.div_euclid(*pitch);
            constant -= digit * pitch;
            digits[*dim as usize].constant = digit;
            let (least, most) = spans[*dim as usize];
            let size = i128::from(self.size[*dim as usize]);
            if least + i128::from(digit) < 0 || most + i128::from(digit) >= size {
                return None;
            }
        }
        // Along an axis of one thread it is this.
        for dim in Dim::ALL {
            if self.size[dim as usize] == 1 {
                digits[dim as usize].terms = vec![(Term::Thread(dim), 1)];
            }
        }
        (constant == 0).then_some(digits)
    }

    /// Where the elements of threads lie, by the index of what a thread stores.
    fn lie(&self, own: Sum<Product>) -> Option<Lie> {
        let with = |own: Sum<Product>, swizzle: Option<Swizzle>| {
            let (pitches, rest) = self.pitches(own)?;
            Some(Lie {
                pitches,
                rest,
                swizzle,
            })
        };
        let exchanged = || {
            Dim::ALL.into_iter().find_map(|dim| {
                let thread = Sum::of(Product::of(Symbol::Thread(dim)));
                let mut ways = self.exchanges(&own, self.size[dim as usize]).into_iter();
                ways.find_map(|way| {
                    let along = Copied::of(self).value(way.key, DEPTH)?;
                    if way.low != thread || along[dim as usize] {
                        return None;
                    }
                    let straight = way.others.plus(&way.high.plus(&way.low, 1), way.times);
                    with(straight, Some(Swizzle { dim, key: way.key }))
                })
            })
        };
        with(own.clone(), None).or_else(exchanged)
    }

    /// Ways to see an index as one with an exclusive or of less than so many columns.
    fn exchanges(&self, index: &Sum<Product>, columns: u32) -> Vec<Exchanged> {
        let mut found = Vec::new();
        if !columns.is_power_of_two() || columns == 1 {
            return found;
        }
        let columns = i64::from(columns);
        let is_column = |v| {
            let range = self.ranges.of(v);
            range.is_some_and(|(least, most)| least >= 0 && most < columns.into())
        };
        for (product, times) in index.terms() {
            let mut symbols = product.symbols();
            let (Some(Symbol::Value(value)), None) = (symbols.next(), symbols.next()) else {
                continue;
            };
            let definition = self.affine.definition(value);
            let Some((Op::Xor, _, &[a, b])) = definition.and_then(|inst| inst.kind.as_op()) else {
                continue;
            };
            let others = index.clone().plus(&Sum::of(*product), -times);
            for (row, key) in [(a, b), (b, a)] {
                let form = self.affine.of(row);
                if !form.exact || !is_column(key) {
                    continue;
                }
                let offset = form.sum.offset();
                let mut low = Sum::constant(offset.rem_euclid(columns));
                for (product, factor) in form.sum.terms() {
                    if factor % columns != 0 {
                        low = low.plus(&Sum::of(*product), *factor);
                    }
                }
                found.push(Exchanged {
                    high: form.sum.plus(&low, -1),
                    low,
                    key,
                    times: *times,
                    others: others.clone(),
                });
            }
        }
        found
    }

    /// As [`Look::digits`], where columns are exchanged as they are where they were stored.
    fn exchanged_digits(
        &self,
        distance: &Sum<Product>,
        pitches: &[(Dim, i64)],
        swizzle: &Swizzle,
    ) -> Option<[Digit; 3]> {
        let dim = swizzle.dim as usize;
        let of = |load: Exchanged| {
            // Its row says of which threads it is, but for the column, which is what is exchanged and nothing else.
            let row = load.others.plus(&load.high, load.times);
            let mut digits = self.digits(&row, pitches)?;
            let column = self.digits(&Sum::constant(0).plus(&load.low, load.times), pitches)?;
            let apart = pitches.iter().all(|(own, _)| {
                let of_others = if *own == swizzle.dim {
                    &digits
                } else {
                    &column
                };
                of_others[*own as usize].is_none()
            });
            digits[dim] = column[dim].clone();
            (apart && self.is_same(load.key, swizzle.key, &digits, DEPTH)).then_some(digits)
        };
        let columns = self.size[dim];
        let pitch = pitches.iter().find(|(own, _)| *own == swizzle.dim)?.1;
        let mut ways = self.exchanges(distance, columns).into_iter();
        ways.find_map(|way| if way.times == pitch { of(way) } else { None })
    }

    /// Whether a value is what another one is for the thread at that place of the threadgroup.
    fn is_same(&self, value: Value, there: Value, at: &[Digit; 3], depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        if value == there && self.is_uniform(value) {
            return true;
        }
        let (own, form) = (self.affine.of(value), self.affine.of(there));
        let is_same = |symbol| match symbol {
            Symbol::Thread(_) | Symbol::Threadgroup(_) | Symbol::Size(_) => true,
            Symbol::Iteration(value) | Symbol::Value(value) => self.is_uniform(value),
            Symbol::Query(..) | Symbol::Power(..) => false,
        };
        if own.exact
            && form.exact
            && form.sum.symbols().all(is_same)
            && moved(form.sum, at) == Some(own.sum)
        {
            return true;
        }
        let of = |v| self.affine.definition(v).and_then(|inst| inst.kind.as_op());
        let (Some((op, imm, args)), Some((other, other_imm, others))) = (of(value), of(there))
        else {
            return false;
        };
        let computes = matches!(op.row().meaning, Meaning::Eval(_));
        computes
            && (op, imm) == (other, other_imm)
            && self.kernel.ty(value) == self.kernel.ty(there)
            && args.len() == others.len()
            && !args.is_empty()
            && (args.iter().zip(others)).all(|(a, b)| self.is_same(*a, *b, at, depth))
    }

    /// A symbol as what can be computed, and its range.
    fn term(&self, symbol: Symbol) -> Option<(Term, Range)> {
        match symbol {
            Symbol::Thread(dim) => {
                let most = i128::from(self.size[dim as usize]) - 1;
                Some((Term::Thread(dim), (0, most)))
            }
            Symbol::Iteration(index) => {
                let (first, step) = *self.loops.get(&index)?;
                let (least, most) = self.ranges.of(index)?;
                if step < 1 || least < i128::from(first) {
                    return None;
                }
                let iterations = (most - i128::from(first)) / i128::from(step);
                Some((Term::Iteration { index, first, step }, (0, iterations)))
            }
            Symbol::Value(value) => {
                let range = self.ranges.of(value)?;
                (range.0 >= 0 && range.1 < 1 << 32).then_some((Term::Value(value), range))
            }
            Symbol::Threadgroup(_) | Symbol::Size(_) | Symbol::Query(..) | Symbol::Power(..) => {
                None
            }
        }
    }
}

/// What computes a value that a thread stored.
struct Copied<'a, 'k> {
    look: &'a Look<'k>,
    nodes: Vec<Node>,
    /// Along which axes values differ.
    seen: HashMap<Value, [bool; 3]>,
}

impl<'a, 'k> Copied<'a, 'k> {
    fn of(look: &'a Look<'k>) -> Copied<'a, 'k> {
        Copied {
            look,
            nodes: Vec::new(),
            seen: HashMap::new(),
        }
    }

    /// Along which axes a value differs; none if it is not a copy.
    fn value(&mut self, value: Value, depth: u32) -> Option<[bool; 3]> {
        if let Some(along) = self.seen.get(&value) {
            return Some(*along);
        }
        let depth = depth.checked_sub(1)?;
        let along = if self.look.is_uniform(value) {
            [false; 3]
        } else {
            let inst = self.look.affine.definition(value)?;
            let along = self.inst(inst, depth)?;
            self.nodes.push(Node {
                inst: inst.clone(),
                along,
            });
            along
        };
        self.seen.insert(value, along);
        Some(along)
    }

    fn inst(&mut self, inst: &Inst, depth: u32) -> Option<[bool; 3]> {
        let allowed = match &inst.kind {
            InstKind::Op { op, imm, .. } => match op.row().meaning {
                Meaning::Query => return position_axes(*op, *imm),
                Meaning::Lanes(..) | Meaning::Expand(_) => false,
                Meaning::Eval(_) | Meaning::Arrange => self.is_copy(*op, inst.results[0]),
            },
            InstKind::Load(place) => {
                matches!(place.memory, Memory::Param(_))
                    && self
                        .look
                        .module
                        .is_read_only(self.look.kernel, place.memory)
            }
            InstKind::If { .. } => true,
            kind => {
                kind.is_constant() || matches!(kind, InstKind::BufferLength(_) | InstKind::Yield(_))
            }
        };
        if !allowed {
            return None;
        }
        let mut operands = Vec::new();
        inst.kind.for_each_use(|v| operands.push(v));
        let mut along = [false; 3];
        let mut add = |own: [bool; 3]| along = std::array::from_fn(|d| along[d] | own[d]);
        for value in operands {
            add(self.value(value, depth)?);
        }
        for inner in inst.kind.regions().into_iter().flat_map(|r| &r.insts) {
            let own = self.inst(inner, depth.checked_sub(1)?)?;
            self.seen.extend(inner.results.iter().map(|v| (*v, own)));
            add(own);
        }
        Some(along)
    }

    /// Integers are indices and what guards them; floats are moved and converted alone.
    fn is_copy(&self, op: Op, result: Value) -> bool {
        let is_float = (self.look.kernel.ty(result).scalar()).is_none_or(Scalar::is_float);
        !is_float || matches!(op, Op::Cast | Op::AsType | Op::Select)
    }
}

/// The axes along which a position differs; none for what else a thread may know of itself.
fn position_axes(op: Op, imm: Imm) -> Option<[bool; 3]> {
    match (op, imm) {
        (Op::ThreadPositionInThreadgroup | Op::ThreadPositionInGrid, Imm::Dim(dim)) => {
            Some(Dim::ALL.map(|d| d == dim))
        }
        (Op::ThreadIndexInThreadgroup, _) => Some([true; 3]),
        _other => None,
    }
}

/// A sum for the thread at a place of the threadgroup.
fn moved(sum: Sum<Product>, at: &[Digit; 3]) -> Option<Sum<Product>> {
    let mut times = [0; 3];
    let mut moved = sum;
    for dim in Dim::ALL {
        let thread = Symbol::Thread(dim);
        let by = moved.coefficient(thread)?.as_constant()?;
        moved = moved.plus(&Sum::of(Product::of(thread)), by.checked_neg()?);
        times[dim as usize] = by;
    }
    let digits = at.iter().zip(times);
    Some(digits.fold(moved, |sum, (digit, by)| sum.plus(&digit.sum(), by)))
}

// ---- doing it ----

struct Rewrite<'a> {
    values: &'a mut Vec<ValueInfo>,
    tiles: &'a [Tile],
    size: [u32; 3],
    /// What was loaded, and what it is now.
    map: Map,
}

impl Rewrite<'_> {
    fn region(&mut self, region: &mut Region) {
        let tiles = self.tiles;
        let of = |memory: Memory| tiles.iter().find(|tile| tile.array == memory);
        for mut inst in std::mem::take(&mut region.insts) {
            let tile = match &inst.kind {
                InstKind::Barrier { .. } => continue,
                InstKind::Alloc(id) => of(Memory::Alloc(*id)),
                InstKind::Store { place, .. } | InstKind::Load(place) => of(place.memory),
                _other => None,
            };
            if let Some(tile) = tile {
                if let InstKind::Load(_) = inst.kind {
                    let value = self.copy(tile, &inst, &mut region.insts);
                    self.map.insert(inst.results[0], value);
                }
                continue;
            }
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            region.insts.push(inst);
        }
    }

    /// What the thread stored whose element is loaded.
    fn copy(&mut self, tile: &Tile, load: &Inst, out: &mut Vec<Inst>) -> Value {
        let digits = &tile.loads[&load.results[0]];
        let own = Dim::ALL.map(|dim| digits[dim as usize].is_own(dim));
        let mut build = Build {
            values: self.values,
            out,
            span: load.span,
        };
        let mut at = [None; 3];
        for dim in Dim::ALL {
            if !own[dim as usize] {
                at[dim as usize] = Some(build.digit(&digits[dim as usize]));
            }
        }
        let mut map = Map::new();
        for node in &tile.nodes {
            if (0..3).any(|d| node.along[d] && !own[d]) {
                build.again(&node.inst, &at, self.size, &mut map);
            }
        }
        map.get(&tile.value).copied().unwrap_or(tile.value)
    }
}

/// Instructions at the end of a list.
struct Build<'a> {
    values: &'a mut Vec<ValueInfo>,
    out: &'a mut Vec<Inst>,
    span: Span,
}

impl Build<'_> {
    /// An instruction as the thread at another place runs it.
    fn again(&mut self, inst: &Inst, at: &[Option<Value>; 3], size: [u32; 3], map: &mut Map) {
        if let InstKind::Op { op, imm, .. } = &inst.kind
            && matches!(op.row().meaning, Meaning::Query)
        {
            let value = self.position(*op, *imm, at, size);
            map.insert(inst.results[0], value);
            return;
        }
        let mut new = inst.clone();
        new.kind
            .for_each_use_mut(|v| *v = map.get(v).copied().unwrap_or(*v));
        for inner in new.kind.regions_mut() {
            let insts = std::mem::take(&mut inner.insts);
            let mut build = Build {
                values: self.values,
                out: &mut inner.insts,
                span: self.span,
            };
            for inst in &insts {
                build.again(inst, at, size, map);
            }
        }
        for result in &mut new.results {
            let old = *result;
            *result = new_value(self.values, self.values[old.0 as usize].ty);
            map.insert(old, *result);
        }
        self.out.push(new);
    }

    /// Where the thread at another place of a full threadgroup stands; at its own where `at` says nothing.
    fn position(&mut self, op: Op, imm: Imm, at: &[Option<Value>; 3], size: [u32; 3]) -> Value {
        match imm {
            Imm::Dim(dim) => {
                let Some(position) = at[dim as usize] else {
                    return self.op(op, imm, &[]);
                };
                if op == Op::ThreadPositionInThreadgroup {
                    return position;
                }
                let group = self.op(Op::ThreadgroupPositionInGrid, imm, &[]);
                self.sum(group, size[dim as usize], position)
            }
            _index => {
                let [x, y, z] = Dim::ALL.map(|dim| {
                    let own = Op::ThreadPositionInThreadgroup;
                    at[dim as usize].unwrap_or_else(|| self.op(own, Imm::Dim(dim), &[]))
                });
                let row = self.sum(z, size[1], y);
                self.sum(row, size[0], x)
            }
        }
    }

    fn digit(&mut self, digit: &Digit) -> Value {
        let mut sum = self.constant(digit.constant);
        for (term, times) in &digit.terms {
            let term = match *term {
                Term::Thread(dim) => self.op(Op::ThreadPositionInThreadgroup, Imm::Dim(dim), &[]),
                Term::Value(value) => self.number(value),
                Term::Iteration { index, first, step } => {
                    let index = self.number(index);
                    let first = self.constant(first);
                    let distance = self.op(Op::Sub, Imm::None, &[index, first]);
                    let step = self.constant(step);
                    self.op(Op::Div, Imm::None, &[distance, step])
                }
            };
            let times = self.constant(*times);
            let product = self.op(Op::Mul, Imm::None, &[term, times]);
            sum = self.op(Op::Add, Imm::None, &[sum, product]);
        }
        sum
    }

    /// An integer that fits 32 bits.
    fn number(&mut self, value: Value) -> Value {
        match self.values[value.0 as usize].ty {
            Type::U32 => value,
            _other => self.op(Op::Cast, Imm::Type(Type::U32), &[value]),
        }
    }

    fn op(&mut self, op: Op, imm: Imm, args: &[Value]) -> Value {
        let args = Values::from_slice(args);
        let kind = InstKind::Op { op, imm, args };
        push_inst(self.values, self.out, kind, Type::U32, self.span)
    }

    /// Modulo two to the 32.
    fn constant(&mut self, value: i64) -> Value {
        let constant = Const {
            scalar: Scalar::U32,
            bits: u64::from(value as u32),
        };
        push_const(self.values, self.out, constant, self.span)
    }

    /// `a*factor + b`.
    fn sum(&mut self, a: Value, factor: u32, b: Value) -> Value {
        let factor = self.constant(factor.into());
        let product = self.op(Op::Mul, Imm::None, &[a, factor]);
        self.op(Op::Add, Imm::None, &[product, b])
    }
}
