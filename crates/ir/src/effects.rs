//! What instructions do beside giving results: the accesses they make to memory, which threads must
//! reach them together, how control leaves by them; and what follows from that: whether one may be left
//! out, made again, or made where it would not have been reached.
//!
//! Passes and writers ask these questions and do not list instructions: a list is right for the
//! instructions of its day only. Each fact is one exhaustive match here, and every other predicate is
//! computed from facts. The tests of the reference machine hold them against what it does.
//!
//! Deliberately absent: which values are the same for which threads ([`crate::uniformity`]), and which
//! accesses are in bounds.

use smallvec::SmallVec;

use crate::inst::{AtomicOp, CopyOperands, Inst, InstKind, Memory, Order, Place, Region, Scope};
use crate::inst::{MatrixPlace, Value};
use crate::module::{Access, AddressSpace, Kernel, Module};
use crate::ops::{Capability, Meaning, Op};
use crate::texture::TextureFunction;

/// How an access touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessMode {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// An atomic, which orders other accesses unless it is relaxed.
    Atomic {
        /// Which.
        op: AtomicOp,
        /// What it orders.
        order: Order,
        /// How far that reaches.
        scope: Scope,
    },
}

impl AccessMode {
    /// Whether results or memory depend on what was there.
    pub const fn reads(self) -> bool {
        match self {
            AccessMode::Read => true,
            AccessMode::Write => false,
            AccessMode::Atomic { op, .. } => op.reads(),
        }
    }

    /// Whether something else may be there afterwards.
    pub const fn writes(self) -> bool {
        match self {
            AccessMode::Read => false,
            AccessMode::Write => true,
            AccessMode::Atomic { op, .. } => op.writes(),
        }
    }
}

/// Which elements of its object an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements<'a> {
    /// A place, by each thread that makes the access.
    Place(&'a Place),
    /// Consecutive ones from here on, by each thread that makes the access.
    Run(Value),
    /// Several from here on, by the simdgroup: each is touched by a lane that the program cannot know (O6).
    Shared(Value),
    /// Texels, by each thread that makes the access; the value is their first coordinate.
    Texels(Value),
}

impl Elements<'_> {
    /// The element that the others follow.
    pub const fn first(&self) -> Value {
        match self {
            Elements::Place(place) => place.index,
            Elements::Run(first) | Elements::Shared(first) | Elements::Texels(first) => *first,
        }
    }
}

/// One access of an instruction to one memory object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess<'a> {
    /// To what.
    pub memory: Memory,
    /// How.
    pub mode: AccessMode,
    /// To which of its elements.
    pub elements: Elements<'a>,
}

/// How a terminator leaves its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It ends the region, and the instruction that holds it goes on.
    Yield,
    /// It leaves the innermost loop.
    Break,
    /// It begins the next iteration of the innermost loop.
    Continue,
    /// It ends the thread.
    Return,
}

/// The ways in which control may leave an instruction or a region other than by its end. A loop keeps its
/// own `break` and `continue`: those of a loop inside are not exits of what holds that loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exits {
    /// It may leave the innermost loop around.
    pub breaks: bool,
    /// It may begin the next iteration of the innermost loop around.
    pub continues: bool,
    /// It may end the thread.
    pub returns: bool,
}

impl Exits {
    /// Whether it may leave the innermost loop around, or its iteration.
    pub const fn leaves_loop(self) -> bool {
        self.breaks || self.continues
    }

    /// Whether there is any.
    pub const fn any(self) -> bool {
        self.breaks || self.continues || self.returns
    }

    const fn and(self, other: Exits) -> Exits {
        Exits {
            breaks: self.breaks || other.breaks,
            continues: self.continues || other.continues,
            returns: self.returns || other.returns,
        }
    }
}

impl Region {
    /// How control may leave it other than by its `yield`.
    pub fn exits(&self) -> Exits {
        let all = self.insts.iter().map(Inst::exits);
        all.fold(Exits::default(), Exits::and)
    }
}

impl Inst {
    /// The parameters that a loop carries from iteration to iteration: not the index of a counted one.
    pub fn carried(&self) -> &[Value] {
        match &self.kind {
            InstKind::For { body, .. } => &body.params[1..],
            InstKind::Loop { body, .. } => &body.params,
            _no_loop => &[],
        }
    }

    /// How control may leave it other than to the next instruction.
    ///
    /// ```
    /// let text = "kernel @first(%n: u32) {
    ///     loop {
    ///         break
    ///     }
    ///     return
    /// }";
    /// let module = invar_ir::text::parse("first.inv", text)?;
    /// let [whole, last] = &module.kernels[0].body.insts[..] else { unreachable!() };
    /// assert!(!whole.exits().any() && whole.kind.regions()[0].exits().breaks);
    /// assert!(last.exits().returns);
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    pub fn exits(&self) -> Exits {
        let none = Exits::default();
        match self.kind.exit() {
            Some(Exit::Break) => Exits {
                breaks: true,
                ..none
            },
            Some(Exit::Continue) => Exits {
                continues: true,
                ..none
            },
            Some(Exit::Return) => Exits {
                returns: true,
                ..none
            },
            Some(Exit::Yield) => none,
            None => {
                let inner = self.kind.regions().into_iter().map(Region::exits);
                let inner = inner.fold(none, Exits::and);
                if self.kind.is_loop() {
                    Exits {
                        returns: inner.returns,
                        ..none
                    }
                } else {
                    inner
                }
            }
        }
    }
}

impl Op {
    /// Whether it exchanges values between lanes, itself or in what defines it. What takes no values only
    /// asks.
    ///
    /// ```
    /// use invar_ir::Op;
    /// assert!(Op::SimdSum.exchanges_lanes() && !Op::ThreadIndexInSimdgroup.exchanges_lanes());
    /// ```
    pub fn exchanges_lanes(self) -> bool {
        let row = self.row();
        match row.meaning {
            Meaning::Lanes(..) => true,
            Meaning::Expand(_) => match row.capability {
                Capability::Simdgroup | Capability::Quadgroup => {
                    row.signature.operand_count().1 > 0
                }
                Capability::Core => false,
            },
            Meaning::Eval(_) | Meaning::Arrange | Meaning::Query => false,
        }
    }

    /// The operand that chooses a component or column, if one does.
    pub const fn part_operand(self) -> Option<usize> {
        match self {
            Op::Extract | Op::Insert => Some(1),
            _takes_wholes => None,
        }
    }
}

impl InstKind {
    // ---- facts ----

    /// The accesses that it makes itself (not in its regions), reads of a copy before its writes. An
    /// `alloc`, which zeroes its array, makes none.
    ///
    /// ```
    /// use invar_ir::{AccessMode, InstKind, Memory, Place, Value};
    /// let load = InstKind::Load(Place::element(Memory::Param(0), Value(1)));
    /// assert_eq!(load.accesses()[0].mode, AccessMode::Read);
    /// ```
    pub fn accesses<'a>(&'a self) -> SmallVec<[MemoryAccess<'a>; 2]> {
        let at = |place: &'a Place, mode| MemoryAccess {
            memory: place.memory,
            mode,
            elements: Elements::Place(place),
        };
        let copy = |o: &CopyOperands, elements: fn(Value) -> Elements<'static>| {
            let one = |memory, mode, first| MemoryAccess {
                memory,
                mode,
                elements: elements(first),
            };
            SmallVec::from_buf([
                one(o.source, AccessMode::Read, o.source_index),
                one(o.destination, AccessMode::Write, o.destination_index),
            ])
        };
        let matrix = |place: &MatrixPlace, mode| MemoryAccess {
            memory: place.memory,
            mode,
            elements: Elements::Shared(place.index),
        };
        let one = |access| SmallVec::from_iter([access]);
        match self {
            InstKind::Load(place) => one(at(place, AccessMode::Read)),
            InstKind::Store { place, .. } => one(at(place, AccessMode::Write)),
            InstKind::Atomic {
                op,
                place,
                order,
                scope,
                ..
            } => {
                let (op, order, scope) = (*op, *order, *scope);
                one(at(place, AccessMode::Atomic { op, order, scope }))
            }
            InstKind::Copy { operands, .. } => copy(operands, Elements::Run),
            InstKind::AsyncCopy { operands, .. } => copy(operands, Elements::Shared),
            InstKind::MatrixLoad { place } => one(matrix(place, AccessMode::Read)),
            InstKind::MatrixStore { place, .. } => one(matrix(place, AccessMode::Write)),
            InstKind::Texture {
                texture,
                function,
                args,
            } => {
                let mode = match function {
                    TextureFunction::Read
                    | TextureFunction::Sample(_)
                    | TextureFunction::Gather { .. }
                    | TextureFunction::SampleCompare(_)
                    | TextureFunction::GatherCompare(_) => AccessMode::Read,
                    TextureFunction::Write => AccessMode::Write,
                    TextureFunction::Width
                    | TextureFunction::Height
                    | TextureFunction::Depth
                    | TextureFunction::ArraySize
                    | TextureFunction::Levels
                    | TextureFunction::Samples
                    | TextureFunction::Fence => return SmallVec::new(),
                };
                // Without an operand it is none that the verifier lets pass.
                (args.first())
                    .map(|first| MemoryAccess {
                        memory: *texture,
                        mode,
                        elements: Elements::Texels(*first),
                    })
                    .into_iter()
                    .collect()
            }
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::Op { .. }
            | InstKind::BufferLength(_)
            | InstKind::Alloc(_)
            | InstKind::Wait { .. }
            | InstKind::Barrier { .. }
            | InstKind::MatrixFill { .. }
            | InstKind::MatrixMultiplyAccumulate { .. }
            | InstKind::AssertUniform { .. }
            | InstKind::If { .. }
            | InstKind::For { .. }
            | InstKind::Loop { .. }
            | InstKind::Yield(_)
            | InstKind::Break(_)
            | InstKind::Continue(_)
            | InstKind::Return
            | InstKind::Print { .. } => SmallVec::new(),
        }
    }

    /// Whose threads must reach it together, if any (X4): those of a barrier, and those that do it as one.
    pub fn meets(&self) -> Option<Scope> {
        match self {
            InstKind::Barrier { scope, .. } | InstKind::AssertUniform { scope, .. } => Some(*scope),
            InstKind::AsyncCopy { .. }
            | InstKind::Wait { .. }
            | InstKind::MatrixFill { .. }
            | InstKind::MatrixLoad { .. }
            | InstKind::MatrixStore { .. }
            | InstKind::MatrixMultiplyAccumulate { .. } => Some(Scope::Simdgroup),
            InstKind::Op { op, .. } => op.exchanges_lanes().then_some(Scope::Simdgroup),
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::BufferLength(_)
            | InstKind::Load(_)
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Alloc(_)
            | InstKind::Copy { .. }
            | InstKind::If { .. }
            | InstKind::For { .. }
            | InstKind::Loop { .. }
            | InstKind::Yield(_)
            | InstKind::Break(_)
            | InstKind::Continue(_)
            | InstKind::Return
            | InstKind::Print { .. }
            | InstKind::Texture { .. } => None,
        }
    }

    /// How it leaves its region, if it is a terminator.
    pub const fn exit(&self) -> Option<Exit> {
        match self {
            InstKind::Yield(_) => Some(Exit::Yield),
            InstKind::Break(_) => Some(Exit::Break),
            InstKind::Continue(_) => Some(Exit::Continue),
            InstKind::Return => Some(Exit::Return),
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::Op { .. }
            | InstKind::BufferLength(_)
            | InstKind::Load(_)
            | InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Alloc(_)
            | InstKind::Copy { .. }
            | InstKind::AsyncCopy { .. }
            | InstKind::Wait { .. }
            | InstKind::Barrier { .. }
            | InstKind::MatrixFill { .. }
            | InstKind::MatrixLoad { .. }
            | InstKind::MatrixStore { .. }
            | InstKind::MatrixMultiplyAccumulate { .. }
            | InstKind::AssertUniform { .. }
            | InstKind::If { .. }
            | InstKind::For { .. }
            | InstKind::Loop { .. }
            | InstKind::Print { .. }
            | InstKind::Texture { .. } => None,
        }
    }

    /// Whether it does nothing itself but give results, computed from its operands, from where the thread
    /// stands, and from the memory that it reads: it may be left out where nothing uses them. An atomic may
    /// not, since it takes its place in an order; nor may what begins the life of an array or the flight of a
    /// copy, and what holds regions is for the caller to look into.
    pub fn is_removable(&self) -> bool {
        match self {
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::Op { .. }
            | InstKind::BufferLength(_)
            | InstKind::Load(_)
            | InstKind::MatrixFill { .. }
            | InstKind::MatrixLoad { .. }
            | InstKind::MatrixMultiplyAccumulate { .. }
            | InstKind::AssertUniform { .. } => true,
            InstKind::Texture { function, .. } => {
                !matches!(function, TextureFunction::Write | TextureFunction::Fence)
            }
            InstKind::Store { .. }
            | InstKind::Atomic { .. }
            | InstKind::Alloc(_)
            | InstKind::Copy { .. }
            | InstKind::AsyncCopy { .. }
            | InstKind::Wait { .. }
            | InstKind::Barrier { .. }
            | InstKind::MatrixStore { .. }
            | InstKind::If { .. }
            | InstKind::For { .. }
            | InstKind::Loop { .. }
            | InstKind::Yield(_)
            | InstKind::Break(_)
            | InstKind::Continue(_)
            | InstKind::Return
            | InstKind::Print { .. } => false,
        }
    }

    /// Whether it orders accesses that stand before it with those behind it (O2, O5).
    pub fn orders_memory(&self) -> bool {
        match self {
            InstKind::Barrier { .. } | InstKind::Wait { .. } => true,
            InstKind::Atomic { order, .. } => *order != Order::Relaxed,
            InstKind::Const(_)
            | InstKind::FunctionConstant(_)
            | InstKind::Op { .. }
            | InstKind::BufferLength(_)
            | InstKind::Load(_)
            | InstKind::Store { .. }
            | InstKind::Alloc(_)
            | InstKind::Copy { .. }
            | InstKind::AsyncCopy { .. }
            | InstKind::MatrixFill { .. }
            | InstKind::MatrixLoad { .. }
            | InstKind::MatrixStore { .. }
            | InstKind::MatrixMultiplyAccumulate { .. }
            | InstKind::AssertUniform { .. }
            | InstKind::If { .. }
            | InstKind::For { .. }
            | InstKind::Loop { .. }
            | InstKind::Yield(_)
            | InstKind::Break(_)
            | InstKind::Continue(_)
            | InstKind::Return
            | InstKind::Print { .. }
            | InstKind::Texture { .. } => false,
        }
    }

    // ---- what follows from them ----

    /// Whether a region ends with this.
    pub const fn is_terminator(&self) -> bool {
        self.exit().is_some()
    }

    /// Whether its result is the same for every thread and known before the dispatch.
    pub const fn is_constant(&self) -> bool {
        matches!(
            self,
            InstKind::Const(_) | InstKind::FunctionConstant(_) | InstKind::BufferLength(_)
        )
    }

    /// Whether it only computes a result from its operands and from where the thread stands: it may be made
    /// where it would not have been reached, and any number of times. What touches memory or meets other
    /// threads is not among them.
    pub fn is_speculatable(&self) -> bool {
        self.is_removable() && self.meets().is_none() && self.accesses().is_empty()
    }

    /// Whether it only computes a result from its operands and from what is the same for the whole dispatch:
    /// where it stands, and how often it runs, makes no difference to the result. Beside what is
    /// speculatable these are loads from memory that the dispatch does not write, which cost, and touch memory.
    ///
    /// `kernel` need not have its body.
    pub fn is_pure(&self, module: &Module, kernel: &Kernel) -> bool {
        self.is_removable()
            && self.meets().is_none()
            && (self.accesses().iter()).all(|access| module.is_read_only(kernel, access.memory))
    }

    /// Whether a thread does it by itself, to a place of its own: it meets no other, and touches no more of
    /// memory than one place.
    pub fn is_of_one_thread(&self) -> bool {
        let accesses = self.accesses();
        let mut elements = accesses.iter().map(|access| access.elements);
        self.meets().is_none() && elements.all(|e| matches!(e, Elements::Place(_)))
    }

    /// Whether a simdgroup does it as one, to the result of one: beside what only exchanges values between
    /// its lanes, or orders their accesses.
    pub fn is_of_whole_simdgroup(&self) -> bool {
        self.meets() == Some(Scope::Simdgroup) && self.as_op().is_none() && !self.orders_memory()
    }

    /// Whether memory may hold something else for a thread after it than before it, as far as it does itself
    /// and not its regions.
    pub fn may_change_memory(&self) -> bool {
        let changes = |mode: AccessMode| mode != AccessMode::Read;
        self.orders_memory() || self.accesses().iter().any(|access| changes(access.mode))
    }

    /// Whether a kernel with it can tell which threads are one simdgroup or quadgroup.
    pub fn tells_simdgroups(&self) -> bool {
        let asks = |(op, ..): (Op, _, _)| op.row().capability != Capability::Core;
        self.meets() == Some(Scope::Simdgroup) || self.as_op().is_some_and(asks)
    }
}

impl Kernel {
    /// Whether anything in it can tell which threads are one simdgroup or quadgroup.
    ///
    /// ```
    /// let text = "kernel @lanes() {
    ///     %lane = thread_index_in_simdgroup
    /// }";
    /// let module = invar_ir::text::parse("lanes.inv", text)?;
    /// assert!(module.kernels[0].tells_simdgroups());
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    pub fn tells_simdgroups(&self) -> bool {
        let mut found = false;
        self.for_each_inst(&mut |inst| found |= inst.kind.tells_simdgroups());
        found
    }

    /// Whether any of its instructions prints.
    pub fn prints(&self) -> bool {
        let mut found = false;
        self.for_each_inst(&mut |inst| found |= matches!(inst.kind, InstKind::Print { .. }));
        found
    }

    /// Whether what it computes may depend on how many threads a simdgroup has: it asks for that, or
    /// exchanges values between the threads of simdgroups. Quadgroups are fours whatever the size, and what
    /// a simdgroup does as one gives the same for any.
    pub fn depends_on_simdgroup_size(&self) -> bool {
        let mut found = false;
        self.for_each_inst(&mut |inst| {
            let op = inst.kind.as_op();
            found |= op.is_some_and(|(op, ..)| op.row().capability == Capability::Simdgroup);
        });
        found
    }
}

impl Module {
    /// Whether no thread writes an object during a dispatch: S3 keeps other arguments away from it.
    pub fn is_read_only(&self, kernel: &Kernel, memory: Memory) -> bool {
        self.memory(kernel, memory).is_some_and(|info| {
            let of_the_host = matches!(info.space, AddressSpace::Device | AddressSpace::Texture);
            info.space == AddressSpace::Constant || of_the_host && info.access == Access::Read
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// The exits of each instruction of a kernel's body.
    fn exits(body: &str) -> Vec<[bool; 3]> {
        let text = format!("kernel @k(%n: u32, %c: bool) {{\n{body}\n}}");
        let module = parse("k.inv", &text).expect("it is well formed");
        let insts = module.kernels[0].body.insts.iter();
        let all = insts.map(Inst::exits);
        all.map(|e| [e.breaks, e.continues, e.returns]).collect()
    }

    #[test]
    fn a_loop_keeps_its_own_exits_and_a_return_leaves_everything() {
        let text = "loop {
                if %c { break }
                if %c { continue }
                loop { break }
                if %c { return }
                break
            }
            return";
        assert_eq!(exits(text), [[false, false, true], [false, false, true]]);
        let text = "loop {
                if %c { continue }
                break
            }
            return";
        assert_eq!(exits(text), [[false; 3], [false, false, true]]);
    }

    #[test]
    fn an_if_has_the_exits_of_both_its_sides() {
        let text = "loop {
                if %c { loop { break } } else { continue }
                break
            }
            return";
        let module = parse("k.inv", &format!("kernel @k(%c: bool) {{\n{text}\n}}"));
        let module = module.expect("it is well formed");
        let body = module.kernels[0].body.insts[0].kind.regions()[0];
        let choice = body.insts[0].exits();
        assert!(choice.continues && !choice.breaks && !choice.returns);
        assert!(choice.leaves_loop() && body.exits().breaks);
    }

    #[test]
    fn what_may_be_left_out_changes_and_orders_nothing() {
        let text = "kernel @k(%x: device read_write u32, %r: device read u32, %n: u32) {
            %a = alloc thread u32[4]
            %z = const u32 0
            %l = load %x[%z]
            %m = load %r[%z]
            %s = simd_sum %l
            %u = assert_uniform simdgroup %s
            %o = atomic_load %x[%z] relaxed device
            store %x[%z], %u
            copy %a[%z], %x[%z], %n
            barrier threadgroup [device]
            return
        }";
        let module = parse("k.inv", text).expect("it is well formed");
        let kernel = &module.kernels[0];
        let facts: Vec<(&str, [bool; 4])> = (kernel.body.insts.iter())
            .map(|inst| {
                let kind = &inst.kind;
                let facts = [
                    kind.is_removable(),
                    kind.is_pure(&module, kernel),
                    kind.is_speculatable(),
                    kind.may_change_memory(),
                ];
                (kind.name(), facts)
            })
            .collect();
        let (yes, no) = (true, false);
        assert_eq!(
            facts,
            [
                ("alloc", [no, no, no, no]),
                ("const", [yes, yes, yes, no]),
                ("load", [yes, no, no, no]),
                ("load", [yes, yes, no, no]),
                ("simd_sum", [yes, no, no, no]),
                ("assert_uniform", [yes, no, no, no]),
                ("atomic_load", [no, no, no, yes]),
                ("store", [no, no, no, yes]),
                ("copy", [no, no, no, yes]),
                ("barrier", [no, no, no, yes]),
                ("return", [no, no, no, no]),
            ]
        );
    }
}
