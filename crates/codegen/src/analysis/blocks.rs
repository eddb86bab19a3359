//! Blocks: loads or stores of a thread side by side, which whoever makes code for many threads can make together.
//!
//! Those of a block stand in one list of instructions, none under a condition that another does not stand under.
//! Between loads nothing writes what they read or makes threads meet: all can be made where the first one stands. What
//! the thread itself stores to other elements is not what they read, as where it changes the fields of a structure one
//! after another.
//! Between stores nothing accesses the object but loads of other elements; each store has an element of its own, and
//! together they have all from the first to the last: all can be made where the last one stands.
//!
//! What neighbours along x access side by side, or all alike, is not a block. A block of another kind is what threads
//! side by side along y access, where those along x go far: transpositions ([`down`]).
//!
//! Sums must hold for all threads: those of an analysis without a size of threadgroups.
//!
//! Deliberately absent: how far the threads' blocks lie apart otherwise, and whether they are in bounds; elements
//! that are not scalars.

use invar_ir::inst::{InstKind, Place, Region, Width};
use invar_ir::{Dim, Inst, Kernel, Memory, Module, Op, ParamKind};

use super::affine::{Affine, Product, Sum, Symbol};
pub use crate::tuning::MOST_VECTOR_STRIDE;
use crate::tuning::{LEAST_BLOCK_LOADS, LEAST_BLOCK_STORES, MOST_BLOCK_ELEMENTS};

/// Accesses that are made together, in their order.
#[derive(Debug)]
pub struct Block<'k> {
    accesses: Vec<(&'k Inst, u32)>,
    span: u32,
    bits: u32,
}

impl<'k> Block<'k> {
    /// Its accesses, each with how many elements it lies behind the one that lies first.
    pub fn accesses(&self) -> &[(&'k Inst, u32)] {
        &self.accesses
    }

    /// Elements from the first to the last.
    pub fn span(&self) -> u32 {
        self.span
    }

    /// Distances are known modulo two to this.
    pub fn bits(&self) -> u32 {
        self.bits
    }
}

/// Accesses of one object whose indices differ by constants.
struct Open<'k> {
    place: &'k Place,
    sum: Sum<Product>,
    bits: u32,
    read_only: bool,
    accesses: Vec<(&'k Inst, i64)>,
    /// Where the thread stored since the first access: a load there is no part of it.
    stored: Vec<i64>,
}

/// Finds the loads of a kernel that are blocks: scalars of one object, in one list of instructions, at distances that
/// are known modulo two to the 32 at least.
///
/// ```
/// use invar_codegen::analysis::{affine, blocks, ranges};
///
/// let text = "kernel @k(%x: device read f32, %y: device write f32) {
///     %i = thread_position_in_grid x
///     %two = const u32 2
///     %one = const u32 1
///     %three = const u32 3
///     %first = shl %i, %two
///     %second = or %first, %one
///     %third = add %first, %two
///     %fourth = add %first, %three
///     %b = load %x[%second]
///     %a = load %x[%first]
///     %ab = add %a, %b
///     store %y[%i], %ab
///     %c = load %x[%third]
///     %d = load %x[%fourth]
///     %cd = add %c, %d
///     store %y[%i], %cd
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let kernel = &module.kernels[0];
/// let ranges = ranges::analyse(kernel, &ranges::Known::default());
/// let blocks = blocks::find(&module, kernel, &affine::analyse(kernel, &ranges, None));
/// let places: Vec<u32> = blocks[0].accesses().iter().map(|(_, at)| *at).collect();
/// assert_eq!((blocks.len(), blocks[0].span(), places), (1, 4, vec![1, 0, 2, 3]));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn find<'k>(module: &Module, kernel: &'k Kernel, affine: &Affine<'k>) -> Vec<Block<'k>> {
    let mut blocks = Vec::new();
    find_in(module, kernel, affine, &kernel.body, &mut blocks);
    blocks
}

fn find_in<'k>(
    module: &Module,
    kernel: &'k Kernel,
    affine: &Affine<'k>,
    region: &'k Region,
    blocks: &mut Vec<Block<'k>>,
) {
    let mut open: Vec<Open<'k>> = Vec::new();
    let close = |open: &mut Vec<Open<'k>>, blocks: &mut Vec<Block<'k>>, all: bool| {
        let (closed, rest) = (open.drain(..)).partition(|o: &Open<'k>| all || !o.read_only);
        *open = rest;
        let closed: Vec<Open<'k>> = closed;
        for group in closed {
            cut(group.accesses, group.bits, blocks);
        }
    };
    for inst in &region.insts {
        let kind = &inst.kind;
        if let InstKind::Load(place) = kind {
            let read_only = module.is_read_only(kernel, place.memory);
            add(inst, place, read_only, (kernel, affine), &mut open);
        } else if kind.has_regions() || kind.exit().is_some() || !kind.is_of_one_thread() {
            close(&mut open, blocks, true);
        } else if let InstKind::Store { place, .. } = kind {
            let others = std::mem::take(&mut open);
            for mut group in others {
                let is_other = group.place.memory != place.memory;
                let by = distance_from(&group, affine, place);
                group.stored.extend(by.filter(|_| !is_other));
                if is_other || by.is_some() {
                    open.push(group);
                } else {
                    cut(group.accesses, group.bits, blocks);
                }
            }
        } else if kind.may_change_memory() {
            close(&mut open, blocks, false);
        }
    }
    close(&mut open, blocks, true);
    for inner in region.insts.iter().flat_map(|inst| inst.kind.regions()) {
        find_in(module, kernel, affine, inner, blocks);
    }
}

fn add<'k>(
    inst: &'k Inst,
    place: &'k Place,
    read_only: bool,
    (kernel, affine): (&Kernel, &Affine<'k>),
    open: &mut Vec<Open<'k>>,
) {
    let form = affine.of(place.index);
    let beside = form.sum.coefficient(Symbol::Thread(Dim::X));
    let is_row = beside.and_then(|by| by.as_constant()) == Some(1)
        || is_same_along(kernel, affine, &form.sum, Dim::X);
    if is_row || form.bits < 32 || place.width != Width::One || !place.path.is_empty() {
        return;
    }
    let found = open.iter_mut().find_map(|group| {
        let same = group.place.memory == place.memory;
        let by = same
            .then(|| distance_from(group, affine, place))
            .flatten()?;
        (!group.stored.contains(&by)).then_some((group, by))
    });
    match found {
        Some((group, by)) => group.accesses.push((inst, by)),
        None => open.push(Open {
            place,
            sum: form.sum,
            bits: form.bits,
            read_only,
            accesses: vec![(inst, 0)],
            stored: Vec::new(),
        }),
    }
}

/// How many elements a place lies behind the first one of others, as the same arithmetic says.
fn distance_from<'k>(group: &Open<'k>, affine: &Affine<'k>, place: &Place) -> Option<i64> {
    let form = affine.of(place.index);
    let simple = place.width == Width::One && place.path.is_empty();
    if form.bits != group.bits || !simple {
        return None;
    }
    let unused = 64 - form.bits;
    let by = form.sum.plus(&group.sum, -1).as_constant()?;
    Some(by << unused >> unused)
}

/// Cuts loads at constant distances into blocks of neighbours.
fn cut<'k>(loads: Vec<(&'k Inst, i64)>, bits: u32, blocks: &mut Vec<Block<'k>>) {
    let mut places: Vec<i64> = loads.iter().map(|(_, at)| *at).collect();
    places.sort_unstable();
    places.dedup();
    while let Some(first) = places.first().copied() {
        let in_block = |at: &i64| at.wrapping_sub(first) < MOST_BLOCK_ELEMENTS;
        let count = places.iter().take_while(|at| in_block(at)).count();
        let rest = places.split_off(count);
        let last = places.pop().unwrap_or(first);
        places = rest;
        let span = (last - first + 1) as u32;
        // With gaps, more would be read than is used.
        if count < LEAST_BLOCK_LOADS || count * 2 < span as usize {
            continue;
        }
        let own = loads.iter().filter(|(_, at)| (first..=last).contains(at));
        let accesses: Vec<_> = own.map(|(inst, at)| (*inst, (at - first) as u32)).collect();
        blocks.push(Block {
            accesses,
            span,
            bits,
        });
    }
}

/// The accesses of a kernel to elements that lie side by side for threads side by side along y, whatever else the
/// threads know, and far apart along x, each with how many bits of the distance are known.
pub fn down<'k>(kernel: &'k Kernel, affine: &Affine<'k>) -> Vec<(&'k Inst, u32)> {
    let mut found = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        let (InstKind::Load(place) | InstKind::Store { place, .. }) = &inst.kind else {
            return;
        };
        let form = affine.of(place.index);
        let step = |dim| form.sum.coefficient(Symbol::Thread(dim));
        let constant = |dim| step(dim).and_then(|by| by.as_constant());
        let near = constant(Dim::X).is_some_and(|by| by.unsigned_abs() <= MOST_VECTOR_STRIDE);
        let simple = place.width == Width::One && place.path.is_empty() && form.bits >= 32;
        if simple && !near && constant(Dim::Y) == Some(1) && hides_no_row(kernel, affine, &form.sum)
        {
            found.push((inst, form.bits));
        }
    });
    found
}

/// Whether nothing but positions along y themselves differs from row to row.
fn hides_no_row(kernel: &Kernel, affine: &Affine<'_>, sum: &Sum<Product>) -> bool {
    let mut others = sum.symbols().filter(|s| *s != Symbol::Thread(Dim::Y));
    others.all(|symbol| is_same_along(kernel, affine, &Sum::of(Product::of(symbol)), Dim::Y))
}

/// Whether a sum is the same for threads side by side along an axis, as far as is seen.
pub fn is_same_along(kernel: &Kernel, affine: &Affine<'_>, sum: &Sum<Product>, along: Dim) -> bool {
    let mut same = |symbol| match symbol {
        Symbol::Thread(dim) => dim != along,
        Symbol::Query(op, _) => !matches!(
            op,
            Op::ThreadIndexInThreadgroup
                | Op::ThreadIndexInSimdgroup
                | Op::ThreadIndexInQuadgroup
                | Op::SimdgroupIndexInThreadgroup
                | Op::QuadgroupIndexInThreadgroup
        ),
        Symbol::Value(value) => {
            let mut params = kernel.params.iter();
            params.any(|param| param.kind == ParamKind::Scalar { value })
        }
        Symbol::Threadgroup(_) | Symbol::Size(_) | Symbol::Iteration(_) | Symbol::Power(..) => true,
    };
    affine.depends_only_on(sum, &mut same)
}

/// Finds the stores of a kernel that are blocks, as [`find`] does loads.
pub fn find_stores<'k>(kernel: &'k Kernel, affine: &Affine<'k>) -> Vec<Block<'k>> {
    let mut blocks = Vec::new();
    find_stores_in(kernel, affine, &kernel.body, &mut blocks);
    blocks
}

fn find_stores_in<'k>(
    kernel: &'k Kernel,
    affine: &Affine<'k>,
    region: &'k Region,
    blocks: &mut Vec<Block<'k>>,
) {
    let mut open: Vec<Open<'k>> = Vec::new();
    for inst in &region.insts {
        let kind = &inst.kind;
        let alone = kind.has_regions() || kind.exit().is_some() || !kind.is_of_one_thread();
        if alone || kind.orders_memory() {
            open.drain(..).for_each(|group| cut_stores(group, blocks));
            continue;
        }
        if let InstKind::Store { place, .. } = kind {
            let distance = |group: &Open<'k>| {
                (group.place.memory == place.memory)
                    .then(|| distance_from(group, affine, place))
                    .flatten()
            };
            let found = open.iter_mut().find_map(|group| {
                let by = distance(group)?;
                let is_new = group.accesses.iter().all(|(_, at)| *at != by);
                is_new.then_some((group, by))
            });
            if let Some((group, by)) = found {
                group.accesses.push((inst, by));
                continue;
            }
        }
        // What the thread stored is not what it loads.
        let is_other = |group: &Open<'k>, place: &Place| {
            let by = distance_from(group, affine, place);
            by.is_some_and(|by| group.accesses.iter().all(|(_, at)| *at != by))
        };
        for access in kind.accesses() {
            let passes = match kind {
                InstKind::Load(place) => (open.iter())
                    .any(|group| group.place.memory == place.memory && is_other(group, place)),
                _other => false,
            };
            if !passes {
                close_of(access.memory, &mut open, blocks);
            }
        }
        if let InstKind::Store { place, .. } = kind {
            add(inst, place, false, (kernel, affine), &mut open);
        }
    }
    open.drain(..).for_each(|group| cut_stores(group, blocks));
    for inner in region.insts.iter().flat_map(|inst| inst.kind.regions()) {
        find_stores_in(kernel, affine, inner, blocks);
    }
}

fn close_of<'k>(memory: Memory, open: &mut Vec<Open<'k>>, blocks: &mut Vec<Block<'k>>) {
    if let Some(at) = open.iter().position(|group| group.place.memory == memory) {
        cut_stores(open.remove(at), blocks);
    }
}

/// Cuts stores into blocks without gaps.
fn cut_stores<'k>(group: Open<'k>, blocks: &mut Vec<Block<'k>>) {
    let mut places: Vec<i64> = group.accesses.iter().map(|(_, at)| *at).collect();
    places.sort_unstable();
    while let Some(first) = places.first().copied() {
        let follows = |(number, at): &(i64, &i64)| **at == first.wrapping_add(*number);
        let count = (0..MOST_BLOCK_ELEMENTS)
            .zip(&places)
            .take_while(follows)
            .count();
        places.drain(..count);
        if count < LEAST_BLOCK_STORES {
            continue;
        }
        let in_block = |at: i64| (0..count as i64).contains(&at.wrapping_sub(first));
        let own = group.accesses.iter().filter(|(_, at)| in_block(*at));
        let accesses = own.map(|(inst, at)| (*inst, (at - first) as u32));
        blocks.push(Block {
            accesses: accesses.collect(),
            span: count as u32,
            bits: group.bits,
        });
    }
}
