//! Threadgroups that have a piece each of several rows of memory, where the next one goes on beside them.
//!
//! Processors foresee what goes on along a row for a while, and such a threadgroup leaves each row after a piece. For
//! kernels by tiles and layouts that have no loop around their accesses: what lies beside is asked for a threadgroup
//! ahead ([`crate::prefetch`]). A sum of two arrays of 4096 by 4096 in tiles of 16 by 256 takes a quarter less time so
//! on one thread of an AMD EPYC 9004.
//!
//! Where the next threadgroup mostly is suffices, since a request for any address is harmless: a quotient of the place
//! stays, a remainder grows by one, and of two values the one is taken that `passes/turn_columns.rs` hopes for.
//!
//! Deliberately absent: filters and stencils, which load each line several times; distances that only a dispatch knows.

use std::collections::HashMap;

use invar_codegen::analysis::affine::Symbol;
use invar_codegen::analysis::order::LaunchOrder;
use invar_ir::inst::{InstKind, Region, Value, Width};
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
        found: HashMap::new(),
    };
    walk.region(&kernel.body);
    walk.found
}

struct Walk<'a, 'k> {
    module: &'a Module,
    kernel: &'a Kernel,
    plan: &'a Plan<'k>,
    threads: u64,
    /// The threadgroup's place along the axis on which the next one is.
    place: Symbol,
    found: HashMap<InstKey, u64>,
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
            if let Some(bytes) = self.piece(place) {
                self.found.insert(std::ptr::from_ref(inst), bytes);
            }
        }
    }

    /// How long the piece of a row is that a threadgroup accesses.
    fn piece(&self, place: &Place) -> Option<u64> {
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
        (bytes >= CACHE_LINE_BYTES && bytes < all).then_some(bytes)
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
            Symbol::Round(_) => None,
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
