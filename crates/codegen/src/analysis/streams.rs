//! Buffers that a kernel only writes, each element once: what is stored there may go past the caches.
//!
//! A store of a whole line that goes past the caches saves the read of the line, which a plain store makes
//! first, and keeps out of the caches what is not read soon. That pays where lines are written once and
//! completely. So a buffer streams if
//! - the kernel accesses it by one store alone: what a kernel reads too is in the caches already, and a second
//!   store may write the same lines again;
//! - the store's index follows every loop around it, so that no round writes what another wrote.
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
    let once = |(memory, use_of): (Memory, Use)| (use_of == Use::Once).then_some(memory);
    let found = walk.uses.into_iter().filter_map(once);
    found.filter(|memory| is_device(*memory)).collect()
}

/// How a kernel uses an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// One store writes each element at most once, as far as its index tells.
    Once,
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
        let fresh = !self.uses.contains_key(&place.memory);
        let is_once = moves && fresh && place.path.is_empty();
        let use_of = if is_once { Use::Once } else { Use::Otherwise };
        self.uses.insert(place.memory, use_of);
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
