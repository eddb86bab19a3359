//! Threadgroups that have a piece each of several rows of memory, where the next one goes on beside them, or a stretch
//! of memory by several accesses of each thread.
//!
//! Processors foresee what goes on along a row for a while, and such a threadgroup leaves each row after a piece; of a
//! stretch, each chunk has a part of every access. For kernels by tiles and layouts, and rows whose loops are written
//! out, that have no loop around their accesses: what lies beside is asked for a threadgroup ahead
//! ([`crate::prefetch`]). A sum of two arrays of 4096 by 4096 in tiles of 16 by 256 takes a quarter less time so on one
//! thread of an AMD EPYC 9004.
//!
//! Where the next threadgroup mostly is suffices, since a request for any address is harmless: a quotient of the place
//! stays, a remainder grows by one, and of two values the one is taken that `passes/turn_columns.rs` hopes for.
//!
//! Deliberately absent: filters and stencils, which load each line several times; distances that only a dispatch knows.

use std::cmp::Ordering;
use std::collections::HashMap;

use invar_codegen::analysis::affine::{Product, Symbol};
use invar_codegen::analysis::order::LaunchOrder;
use invar_ir::inst::{InstKind, Memory, Region, Value, Width};
use invar_ir::ops::Dim;
use invar_ir::{AddressSpace, Kernel, Module, Op, Place};

use crate::neighbour_rows::share_loads;
use crate::plan::{InstKey, Plan};
use crate::target::CACHE_LINE_BYTES;

/// Operations between a symbol and the threadgroup's place, at most.
const DEPTH: u32 = 4;

/// By how many bytes the accesses move from one threadgroup to the next, where that is a piece of a row.
pub(crate) fn pieces(
    module: &Module,
    kernel: &Kernel,
    plan: &Plan<'_>,
    size: Option<[u32; 3]>,
    order: LaunchOrder,
) -> HashMap<InstKey, u64> {
    let Some(size) = size else {
        return HashMap::new();
    };
    if share_loads(kernel, &plan.affine) {
        return HashMap::new();
    }
    let dim = match order {
        LaunchOrder::RowMajor => Dim::X,
        LaunchOrder::ColumnMajor => Dim::Y,
    };
    let mut walk = Walk {
        module,
        kernel,
        plan,
        threads: size.iter().map(|n| u64::from(*n)).product(),
        place: Symbol::Threadgroup(dim),
        found: Vec::new(),
    };
    walk.region(&kernel.body);
    let mut together: HashMap<_, u64> = HashMap::new();
    for piece in &walk.found {
        let all = together.entry(piece.stretch()).or_default();
        *all = all.saturating_add(piece.all);
    }
    let mut asked: Vec<&Piece> = Vec::new();
    for piece in &walk.found {
        let pays = match piece.bytes.cmp(&piece.all) {
            Ordering::Less => true,
            Ordering::Equal => false,
            Ordering::Greater => piece.is_row && together[&piece.stretch()] >= piece.bytes,
        };
        // Neighbours in a row lie in the same lines.
        if pays && !asked.iter().any(|other| piece.is_close(other)) {
            asked.push(piece);
        }
    }
    asked.iter().map(|one| (one.access, one.bytes)).collect()
}

/// What a threadgroup accesses by one instruction.
struct Piece {
    access: InstKey,
    memory: Memory,
    /// The place but for a constant number of elements, as terms in order.
    place: Vec<(Product, i64)>,
    /// That number, in bytes.
    offset: i64,
    /// By how many bytes the access moves from one threadgroup to the next.
    bytes: u64,
    /// How many bytes it is of.
    all: u64,
    /// What threads side by side access lies side by side.
    is_row: bool,
}

impl Piece {
    /// What the accesses to one stretch of memory have in common.
    fn stretch(&self) -> (Memory, &[(Product, i64)], u64) {
        (self.memory, &self.place, self.bytes)
    }

    /// Whether it is of the same lines as another, but for one.
    fn is_close(&self, other: &Piece) -> bool {
        let apart = self.offset.abs_diff(other.offset);
        self.stretch() == other.stretch() && apart < CACHE_LINE_BYTES
    }
}

struct Walk<'a, 'k> {
    module: &'a Module,
    kernel: &'a Kernel,
    plan: &'a Plan<'k>,
    threads: u64,
    /// The threadgroup's place along the axis on which the next one is.
    place: Symbol,
    found: Vec<Piece>,
}

impl Walk<'_, '_> {
    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            if inst.kind.is_loop() {
                continue;
            }
            inst.kind
                .regions()
                .into_iter()
                .for_each(|inner| self.region(inner));
            let (InstKind::Load(place) | InstKind::Store { place, .. }) = &inst.kind else {
                continue;
            };
            let access = std::ptr::from_ref(inst);
            self.found.extend(self.piece(access, place));
        }
    }

    fn piece(&self, access: InstKey, place: &Place) -> Option<Piece> {
        let info = self.module.memory(self.kernel, place.memory)?;
        let of_device = matches!(info.space, AddressSpace::Device | AddressSpace::Constant);
        if !of_device || !place.path.is_empty() {
            return None;
        }
        let extent = info.element.extent(&self.module.structs)?.size_bytes;
        let (index_bytes, thread_bytes) = bytes_of_index_and_thread(place, extent);
        let step = self.value_grows(place.index, DEPTH)?;
        let bytes = u64::try_from(step).ok()?.checked_mul(index_bytes)?;
        let all = self.threads.saturating_mul(thread_bytes);
        let sum = self.plan.affine.of(place.index).sum;
        let offset = sum.offset().checked_mul(i64::try_from(index_bytes).ok()?)?;
        let mut terms = sum.terms().to_vec();
        terms.sort_unstable();
        let beside = Product::of(Symbol::Thread(Dim::X));
        let is_row = terms.contains(&(beside, 1)) && index_bytes == thread_bytes;
        (bytes >= CACHE_LINE_BYTES).then_some(Piece {
            access,
            memory: place.memory,
            place: terms,
            offset,
            bytes,
            all,
            is_row,
        })
    }

    /// By how much an integer mostly grows from one threadgroup to the next.
    fn value_grows(&self, value: Value, depth: u32) -> Option<i64> {
        let sum = self.plan.affine.of(value).sum;
        sum.terms().iter().try_fold(0i64, |all, (product, count)| {
            let symbols: Vec<Symbol> = product.symbols().collect();
            let by = match symbols[..] {
                [one] => self.grows(one, depth)?,
                _ => {
                    let mut each = symbols.iter().map(|symbol| self.grows(*symbol, depth));
                    each.all(|by| by == Some(0)).then_some(0)?
                }
            };
            Some(all.wrapping_add(count.wrapping_mul(by)))
        })
    }

    fn grows(&self, symbol: Symbol, depth: u32) -> Option<i64> {
        match symbol {
            _ if symbol == self.place => Some(1),
            Symbol::Value(value) => self.result_grows(value, depth),
            Symbol::Power(value, _) => (self.value_grows(value, depth)? == 0).then_some(0),
            Symbol::Iteration(_) => None,
            Symbol::Thread(_) | Symbol::Threadgroup(_) | Symbol::Size(_) | Symbol::Query(..) => {
                Some(0)
            }
        }
    }

    /// The same of what is not a sum.
    fn result_grows(&self, value: Value, depth: u32) -> Option<i64> {
        let Some(definition) = self.plan.definitions.get(&value) else {
            // A parameter.
            return Some(0);
        };
        let (op, _, args) = definition.kind.as_op()?;
        let depth = depth.checked_sub(1)?;
        let of = |at: usize| self.value_grows(args[at], depth);
        let stays = |at: usize| of(at) == Some(0);
        match op {
            _ if (0..args.len()).all(stays) => Some(0),
            Op::Div | Op::Shr | Op::ShrExact if stays(1) => Some(0),
            Op::Rem | Op::And | Op::Min | Op::Max if stays(1) => of(0),
            Op::Select => of(1),
            _other => None,
        }
    }
}

/// What an index counts, and what a thread accesses, in bytes.
pub(crate) fn bytes_of_index_and_thread(place: &Place, extent_bytes: u64) -> (u64, u64) {
    match place.width {
        Width::One => (extent_bytes, extent_bytes),
        Width::Run(n) => (extent_bytes, extent_bytes * u64::from(n)),
        Width::Group(n) => [extent_bytes * u64::from(n); 2].into(),
    }
}
