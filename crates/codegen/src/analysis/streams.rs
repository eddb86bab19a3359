//! Buffers that a kernel only writes, each element once: what is stored there may go past the caches.
//!
//! A store of a whole line that goes past the caches saves the read of the line, which a plain store makes
//! first, and keeps out of the caches what is not read soon. That pays where lines are written once and
//! completely. So a buffer streams if
//! - the kernel accesses it by one store alone, or by stores to different rows of memory: what a kernel reads too is in
//!   the caches already, and a second store nearby may write the same lines again;
//! - the store's index follows every loop around it, so that no iteration writes what another wrote.
//!
//! Such stores are ordered weakly: other threads of the machine may see them after later plain ones of the
//! same thread, until a fence. A device that fences before it says that a part of the dispatch is done keeps
//! O3. What else may order accesses of different threads are barriers, release and acquire. A barrier orders
//! threads of one threadgroup, so a device may stream that runs a threadgroup on one thread of the machine,
//! which sees its own stores in program order, whatever their kind. For release and acquire (O4) a fence would
//! be needed at each: a kernel with an atomic that is not relaxed streams nothing. Relaxed ones order nothing.
//!
//! Deliberately absent: whether lanes lie side by side, whether a line is written whole, and from which size
//! on a buffer is better not kept in the caches: the device knows.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_ir::{
    AccessMode, AddressSpace, Inst, InstKind, Kernel, Memory, Module, Order, Place, Region, Value,
};

use super::affine::{self, Affine, Symbol};
use super::ranges::{self, Known};
use crate::tuning::{LEAST_STREAMS_APART, MOST_STREAMED_STORES};

/// The buffers of a kernel that it may stream to, if the device fences at the end of its part.
///
/// ```
/// use invar_codegen::analysis::streams::streamed;
/// use invar_ir::Memory;
///
/// let text = "kernel @k(%x: device read f32, %y: device write f32) {
///     %i = thread_position_in_grid x
///     %v = load %x[%i]
///     store %y[%i], %v
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let found = streamed(&module, &module.kernels[0]);
/// assert_eq!(found, [Memory::Param(1)].into());
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn streamed(module: &Module, kernel: &Kernel) -> BTreeSet<Memory> {
    let mut walk = Walk::default();
    walk.region(&kernel.body);
    if walk.orders {
        return BTreeSet::new();
    }
    let is_device = |memory: Memory| {
        let info = module.memory(kernel, memory);
        info.is_some_and(|info| info.space == AddressSpace::Device)
    };
    let mut affine = None;
    let mut lie_apart = |indices: &[Value]| {
        let affine = affine.get_or_insert_with(|| {
            let ranges = ranges::analyse(kernel, &Known::default());
            affine::analyse(kernel, &ranges, None)
        });
        let mut pairs = (indices.iter().enumerate()).flat_map(|(n, a)| {
            let others = indices[n + 1..].iter();
            others.map(move |b| (*a, *b))
        });
        pairs.all(|(a, b)| are_apart(affine, a, b))
    };
    let once = |(memory, use_of): (Memory, Use)| match use_of {
        Use::Stores(indices) if indices.len() == 1 || lie_apart(&indices) => Some(memory),
        Use::Stores(_) | Use::Otherwise => None,
    };
    let found = walk
        .uses
        .into_iter()
        .filter(|(memory, _)| is_device(*memory));
    found.filter_map(once).collect()
}

/// Whether what stores at two indices write is in different rows of memory: so far apart, or by a number that is the
/// same for all threads of a threadgroup.
fn are_apart(affine: &Affine<'_>, a: Value, b: Value) -> bool {
    let distance = affine.of(a).sum.plus(&affine.of(b).sum, -1);
    match distance.as_constant() {
        Some(known) => known.unsigned_abs() >= LEAST_STREAMS_APART,
        None => {
            let mut is_row = |symbol| !matches!(symbol, Symbol::Thread(_));
            affine.depends_only_on(&distance, &mut is_row)
        }
    }
}

/// How a kernel uses an object.
#[derive(Clone, PartialEq, Eq)]
enum Use {
    /// Stores write, each an element at most once, as far as their indices tell.
    Stores(Vec<Value>),
    Otherwise,
}

#[derive(Default)]
struct Walk<'k> {
    definitions: HashMap<Value, &'k Inst>,
    /// The parameters of the loops around, from the outermost on.
    loops: Vec<&'k [Value]>,
    uses: HashMap<Memory, Use>,
    /// Whether an atomic orders other accesses.
    orders: bool,
}

impl<'k> Walk<'k> {
    fn region(&mut self, region: &'k Region) {
        for inst in &region.insts {
            for result in &inst.results {
                self.definitions.insert(*result, inst);
            }
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: &'k Inst) {
        match &inst.kind {
            InstKind::Store { place, .. } => self.store(place),
            InstKind::If {
                then, otherwise, ..
            } => {
                self.region(then);
                self.region(otherwise);
            }
            InstKind::For { body, .. } | InstKind::Loop { body, .. } => {
                self.loops.push(&body.params);
                self.region(body);
                self.loops.pop();
            }
            other => {
                for access in other.accesses() {
                    if let AccessMode::Atomic { order, .. } = access.mode {
                        self.orders |= order != Order::Relaxed;
                    }
                    self.other(access.memory);
                }
            }
        }
    }

    fn store(&mut self, place: &Place) {
        let moves =
            (self.loops.iter()).all(|own| self.follows(place.index, own, &mut HashSet::new()));
        let is_once = moves && place.path.is_empty();
        let stores = || Use::Stores(Vec::new());
        match self.uses.entry(place.memory).or_insert_with(stores) {
            Use::Stores(indices) if is_once && indices.len() < MOST_STREAMED_STORES => {
                indices.push(place.index);
            }
            otherwise => *otherwise = Use::Otherwise,
        }
    }

    fn other(&mut self, memory: Memory) {
        self.uses.insert(memory, Use::Otherwise);
    }

    /// Whether a value is computed from one of a loop's parameters, by values that were not `seen` before. What
    /// loops and branches result in is not looked into.
    fn follows(&self, value: Value, own: &[Value], seen: &mut HashSet<Value>) -> bool {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if own.contains(&value) {
                return true;
            }
            let definition = self.definitions.get(&value);
            if let Some((_, _, args)) = definition.and_then(|inst| inst.kind.as_op()) {
                open.extend(args.iter().filter(|arg| seen.insert(**arg)));
            }
        }
        false
    }
}
