//! What is known of a kernel before any of its code is made: what [`Plan`] says, how its threads are cut into chunks,
//! the classes of values in these, and where everything is in scratch memory.
//!
//! Nothing changes it once it is made: code is made from it, and never tells it anything.

use std::collections::{BTreeMap, HashMap, HashSet};

use invar_codegen::analysis::distances::Distances;
use invar_codegen::analysis::lanes::{Class, Classes, Shape};
use invar_codegen::analysis::order::{self, LaunchOrder};
use invar_ir::inst::{InstKind, Value};
use invar_ir::memory_layout::Layouts;
use invar_ir::ops::Meaning;
use invar_ir::{
    AddressSpace, ElementType, Inst, Kernel, Module, Op, ParamKind, Scalar, Type, analyse,
};

use crate::borders::{may_be_repeated, may_begin_anywhere};
use crate::bounded::always_in_bounds;
use crate::neighbour_rows::goes_between_rows;
use crate::object::{ALIGN, Scratch};
use crate::options::{CompileOptions, SIMDGROUP_SIZE};
use crate::pieces::pieces;
use crate::plan::{InstKey, Plan};
use crate::shapes::{Choice, Shapes};
use crate::target::Features;
use crate::tuning::{FRAME_BYTES, MOST_EDGES, MOST_TWICE_IN_ALL, MOST_VECTORS_WITHOUT_LOOPS};
use crate::value::component_count;
use crate::zones::Zones;

/// What is known of a kernel before any of its code is made.
pub(crate) struct Analysis<'k> {
    pub module: &'k Module,
    pub kernel: &'k Kernel,
    pub plan: Plan<'k>,
    /// The shape of chunks.
    pub full_shape: Shape,
    /// The shape of the pieces in which a chunk is gone through that is not full.
    pub slow_shape: Shape,
    /// How values are kept in slots.
    pub slots: HashMap<Value, Class>,
    /// Classes in chunks that are full.
    pub fast: Classes,
    /// How far lanes are apart in chunks that are full.
    pub distances: Distances,
    /// Classes in pieces of any chunk.
    pub slow: Classes,
    pub checks: bool,
    /// Accesses that are in bounds in whatever chunk.
    bounded: HashSet<InstKey>,
    /// [`MOST_EDGES`], or less in tests.
    pub most_edges: u32,
    /// [`MOST_TWICE_IN_ALL`], or less in tests.
    pub most_twice: usize,
    /// Threadgroups next to each other along x run as one.
    pub merges: bool,
    /// It has no loops and barriers, and goes from row to row of memory.
    pub goes_between_rows: bool,
    /// Chunks may begin with any thread of a row.
    pub begins_anywhere: bool,
    /// A thread may do all that it does twice.
    pub may_be_repeated: bool,
    /// By how many bytes accesses move from one threadgroup to the next, where that is a piece of a row.
    pub pieces: HashMap<InstKey, u64>,
    /// The order in which threadgroups follow each other.
    pub launch_order: LaunchOrder,
    /// One chunk holds a whole threadgroup, so that slots are variables of the function.
    pub slots_are_variables: bool,
    /// Threads of a simdgroup.
    pub simdgroup_size: u32,
    /// The full size of threadgroups, if it is known.
    pub threadgroup_size: Option<[u32; 3]>,
    /// Where fields of structs are.
    pub layouts: Layouts,
    /// Where things are in the memory of a chunk.
    pub layout: ChunkLayout,
    /// Where the kernel's arrays are in scratch memory: thread arrays only if they are apart.
    pub arrays: Vec<u64>,
    pub scratch: Scratch,
    pub zones: Zones,
}

/// Where values and arrays are in a chunk's memory, in bytes: first all of its first vector of threads,
/// then all of the next, so that pieces of chunks have theirs in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkLayout {
    pub slots: BTreeMap<Value, u64>,
    pub arrays: HashMap<u32, u64>,
    /// Thread arrays that one chunk at a time uses and that are too large for the function's frame: where they
    /// are in the worker's memory, of which a worker has one for all chunks.
    pub apart: HashMap<u32, u64>,
    /// Which threads have returned.
    pub returned: Option<u64>,
    /// Of one vector of threads.
    pub part_bytes: u64,
    /// Of a chunk.
    pub size: u64,
}

impl<'k> Analysis<'k> {
    /// Analyses a kernel for a processor.
    pub fn new(
        module: &'k Module,
        kernel: &'k Kernel,
        options: &CompileOptions,
        target: &Features,
    ) -> Analysis<'k> {
        let threadgroup_size = kernel.threadgroup_size.or(options.threadgroup_size);
        let uniformity = analyse(module, kernel);
        let plan = Plan::new(module, kernel, threadgroup_size, &uniformity);
        let shapes = Shapes::choose(&Choice {
            kernel,
            plan: &plan,
            uniformity: &uniformity,
            threadgroup_size,
            interleave: options.interleave,
            target,
        });
        let zones = if options.red_zones {
            Zones::asked()
        } else {
            Zones::default()
        };
        let launch_order =
            order::by_shared_loads(module, kernel, threadgroup_size.unwrap_or([1; 3]));
        let mut analysis = Analysis {
            module,
            kernel,
            full_shape: shapes.full,
            slow_shape: shapes.slow,
            slots: shapes.slots,
            fast: shapes.fast_classes,
            distances: shapes.distances,
            slow: shapes.slow_classes,
            checks: options.checks,
            bounded: match options.checks {
                true => always_in_bounds(module, kernel, &plan, threadgroup_size),
                false => HashSet::new(),
            },
            most_edges: MOST_EDGES.min(options.most_improved),
            most_twice: MOST_TWICE_IN_ALL.min(options.most_improved as usize),
            merges: !zones.are_there() && merges(kernel, &plan, shapes.full),
            goes_between_rows: goes_between_rows(kernel, &plan.affine),
            begins_anywhere: false,
            may_be_repeated: may_be_repeated(module, kernel),
            pieces: pieces(module, kernel, &plan, threadgroup_size, launch_order),
            launch_order,
            slots_are_variables: false,
            simdgroup_size: kernel.simdgroup_size.unwrap_or(SIMDGROUP_SIZE),
            threadgroup_size,
            layouts: Layouts::of(&module.structs),
            layout: ChunkLayout::default(),
            arrays: Vec::new(),
            scratch: Scratch::default(),
            zones,
            plan,
        };
        analysis.lay_out_chunk();
        analysis.lay_out_threadgroup();
        analysis.begins_anywhere = analysis.layout.size == 0
            && !analysis.full_shape.linear
            && may_begin_anywhere(kernel, &analysis.fast)
            && may_begin_anywhere(kernel, &analysis.slow);
        analysis.slots_are_variables = analysis.is_one_chunk(analysis.full_shape)
            && analysis.layout.returned.is_none()
            && analysis.shape_without_loops() == analysis.full_shape;
        analysis
    }

    fn lay_out_chunk(&mut self) {
        let mut layout = ChunkLayout::default();
        // A member has the slot of its leader, if they are laid out alike.
        let leader = |member: Value| {
            let class = |v: Value| (self.slots.get(&v).copied(), self.slow.of(v));
            let like = |v: Value| (self.plan.home(v), self.kernel.ty(v), class(v));
            let leader = self.plan.slot_leader(member)?;
            (like(leader) == like(member)).then_some(leader)
        };
        let (members, own): (Vec<Value>, Vec<Value>) =
            (self.plan.slots().into_iter()).partition(|v| leader(*v).is_some());
        for value in own {
            layout.slots.insert(value, layout.part_bytes);
            layout.part_bytes += self.slot_bytes(value);
        }
        for value in members {
            let slot = leader(value).and_then(|leader| layout.slots.get(&leader).copied());
            layout
                .slots
                .insert(value, slot.expect("a leader is not a member"));
        }
        for array in 0..self.kernel.allocs.len() as u32 {
            let kept = self.plan.shared_arrays.contains(&array) || self.zones.are_there();
            if kept && self.kernel.allocs[array as usize].space == AddressSpace::Thread {
                let start = self.zones.in_part(layout.part_bytes);
                layout.arrays.insert(array, start);
                layout.part_bytes = start + self.thread_array_bytes(array);
            }
        }
        if !layout.arrays.is_empty() {
            layout.part_bytes = self.zones.in_part(layout.part_bytes);
        }
        (layout.apart, self.scratch.apart_bytes) = self.arrays_apart(&layout.arrays);
        if self.plan.returns_early {
            layout.returned = Some(layout.part_bytes);
            layout.part_bytes += u64::from(self.full_shape.width).next_multiple_of(ALIGN);
        }
        // Where threads may have returned, all of it is made zero for each threadgroup.
        self.zones
            .finish_part(layout.part_bytes, !self.plan.returns_early);
        layout.size = layout.part_bytes * u64::from(self.full_shape.parts());
        self.scratch.chunk_bytes = layout.size;
        self.scratch.linear = self.full_shape.linear;
        self.scratch.chunk = [
            self.full_shape.width * self.full_shape.along,
            self.full_shape.rows,
        ];
        self.layout = layout;
    }

    /// Lays out what a worker's memory has in front of that of chunks.
    fn lay_out_threadgroup(&mut self) {
        // With the first zone, if there are any: then no array is apart.
        let mut offset = self.scratch.apart_bytes + self.zones.each_bytes();
        for (array, alloc) in (0u32..).zip(&self.kernel.allocs) {
            if alloc.space == AddressSpace::Thread {
                let apart = self.layout.apart.get(&array).copied();
                self.arrays.push(apart.unwrap_or(0));
                continue;
            }
            self.arrays.push(offset);
            let end = offset + self.threadgroup_array_bytes(array as usize);
            offset = self.zones.behind(end, end.next_multiple_of(ALIGN));
        }
        self.scratch.fixed_bytes = offset;
        for (i, param) in (0u32..).zip(&self.kernel.params) {
            if let ParamKind::Threadgroup { element } = &param.kind {
                let extent = element.extent(&self.module.structs);
                let bytes = extent.map_or(1, |x| x.size_bytes);
                self.scratch.parameters.push((i, bytes));
            }
        }
    }

    /// Whether no threadgroup has more threads in a dimension than this.
    pub fn spans(&self, dim: usize, threads: u32) -> bool {
        let merged = dim == 0 && self.merges;
        !merged && (self.threadgroup_size).is_some_and(|size| size[dim] <= threads)
    }

    /// Whether one chunk of this shape holds all threads of a threadgroup.
    pub fn is_one_chunk(&self, shape: Shape) -> bool {
        if shape.linear {
            let all = |[x, y, z]: [u32; 3]| u64::from(x) * u64::from(y) * u64::from(z);
            return (self.threadgroup_size).is_some_and(|size| all(size) <= shape.lanes().into());
        }
        let span = [shape.along * shape.width, shape.rows, 1];
        (0..3).all(|dim| self.spans(dim, span[dim]))
    }

    /// The thread arrays that have no room in the function's frame, each with its place among them, and how much
    /// they take, in bytes. The caller of a kernel has a stack of any size.
    /// Those of `kept` have theirs elsewhere.
    fn arrays_apart(&self, kept: &HashMap<u32, u64>) -> (HashMap<u32, u64>, u64) {
        let mut apart = HashMap::new();
        let (mut in_frame, mut end) = (0, 0);
        for (array, alloc) in (0u32..).zip(&self.kernel.allocs) {
            if alloc.space != AddressSpace::Thread || kept.contains_key(&array) {
                continue;
            }
            let bytes = self.thread_array_bytes(array) * u64::from(self.full_shape.parts());
            // Full chunks and others have each their own.
            if in_frame + 2 * bytes <= FRAME_BYTES {
                in_frame += 2 * bytes;
            } else {
                apart.insert(array, end);
                end += bytes;
            }
        }
        (apart, end)
    }

    fn slot_bytes(&self, value: Value) -> u64 {
        let ty = self.kernel.ty(value);
        (component_count(ty) as u64 * self.slot_component_bytes(ty)).next_multiple_of(ALIGN)
    }

    /// The bytes of a component in a slot, of one vector of threads.
    pub fn slot_component_bytes(&self, ty: Type) -> u64 {
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let lanes = match ty {
            Type::SimdgroupMatrix { columns, .. } => {
                self.full_shape.width.max(2 * u32::from(columns))
            }
            Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } | Type::Event => {
                self.full_shape.width
            }
        };
        u64::from(lanes) * scalar.size_bytes()
    }

    /// The bytes of a threadgroup array of the kernel.
    pub fn threadgroup_array_bytes(&self, array: usize) -> u64 {
        let alloc = &self.kernel.allocs[array];
        let extent = alloc.element.extent(&self.module.structs);
        extent.map_or(1, |x| x.size_bytes) * u64::from(alloc.length)
    }

    /// Bytes that one scalar of a thread array takes for the lanes of a vector.
    pub fn lanes_bytes(&self, scalar: Scalar) -> u64 {
        const LARGEST: u64 = 8;
        (u64::from(self.full_shape.width) * scalar.size_bytes()).next_multiple_of(LARGEST)
    }

    /// Bytes of an element in memory, or of all lanes' of a vector in a thread array.
    pub fn size(&self, element: &ElementType, thread: bool) -> u64 {
        if !thread {
            return self.extent_bytes(element);
        }
        match element {
            ElementType::Value(ty) => {
                let scalar = ty.scalar().unwrap_or(Scalar::U32);
                u64::from(ty.component_count()) * self.lanes_bytes(scalar)
            }
            ElementType::Array(inner, length) => u64::from(*length) * self.size(inner, true),
            ElementType::Struct(id) => {
                let def = &self.module.structs[id.0 as usize];
                def.fields.iter().map(|(_, f)| self.size(f, true)).sum()
            }
        }
    }

    /// The bytes of a thread array of all lanes of a vector.
    pub fn thread_array_bytes(&self, array: u32) -> u64 {
        let alloc = &self.kernel.allocs[array as usize];
        (self.size(&alloc.element, true) * u64::from(alloc.length)).next_multiple_of(ALIGN)
    }

    /// Bytes of an element in memory.
    pub fn extent_bytes(&self, element: &ElementType) -> u64 {
        let extent = self.layouts.extent(element);
        extent.map_or(1, |x| x.size_bytes)
    }

    /// What segments without loops go through at once.
    pub fn shape_without_loops(&self) -> Shape {
        let full = self.full_shape;
        let most = match self.goes_between_rows {
            true => full.along,
            false => MOST_VECTORS_WITHOUT_LOOPS,
        };
        Shape {
            along: full.along.min(most).max(self.slow_shape.along),
            ..full
        }
    }

    /// Where a vector's memory is, from that of the first vector of the piece.
    pub fn part_at(&self, shape: Shape, u: usize) -> u64 {
        let (u, along) = (u as u64, u64::from(shape.along));
        let row = u64::from(self.full_shape.along);
        (u / along * row + u % along) * self.layout.part_bytes
    }

    /// Whether full chunks have code of their own. Threads that have returned need the mask.
    pub fn has_fast(&self) -> bool {
        self.layout.returned.is_none()
    }

    /// Whether an access is in bounds in whatever chunk, for the threads that come to it.
    pub fn always_in_bounds(&self, inst: &Inst) -> bool {
        !self.checks || self.bounded.contains(&std::ptr::from_ref(inst))
    }

    /// An index that is a constant.
    pub fn constant_index(&self, value: Value) -> Option<i128> {
        match self.plan.definitions.get(&value).map(|d| &d.kind) {
            Some(InstKind::Const(c)) if c.scalar.is_integer() => {
                let value = signed(c.scalar, c.bits);
                Some(if c.scalar.is_signed_integer() {
                    value.into()
                } else {
                    (c.bits).into()
                })
            }
            _computed => None,
        }
    }
}

/// Whether a kernel cannot tell its threadgroups apart, so that neighbours may run as one: longer rows,
/// which memory is faster for. Kernels with loops keep to their threadgroups, whose shape says what their
/// threads share.
fn merges(kernel: &Kernel, plan: &Plan<'_>, shape: Shape) -> bool {
    let thin = kernel.threadgroup_size.is_some_and(|[x, _, _]| x == 1);
    let own_memory = kernel
        .allocs
        .iter()
        .any(|a| a.space == AddressSpace::Threadgroup);
    let parameter = |p: &ParamKind| matches!(p, ParamKind::Threadgroup { .. });
    if shape.linear
        || thin
        || own_memory
        || !plan.collective.is_empty()
        || kernel.params.iter().any(|p| parameter(&p.kind))
    {
        return false;
    }
    let mut merges = true;
    kernel.for_each_inst(&mut |inst| {
        let kind = &inst.kind;
        let asks = kind.as_op().map(|(op, ..)| op);
        let asks = asks.filter(|op| matches!(op.row().meaning, Meaning::Query));
        let tells_no_threadgroup = |op: Op| {
            matches!(
                op,
                Op::ThreadPositionInGrid
                    | Op::ThreadsPerGrid
                    | Op::ThreadgroupsPerGrid
                    | Op::DispatchThreadsPerThreadgroup
            )
        };
        merges &=
            kind.is_of_one_thread() && !kind.is_loop() && asks.is_none_or(tells_no_threadgroup);
    });
    merges
}

/// An integer constant's value, of 64 bits.
pub(crate) fn signed(scalar: Scalar, bits: u64) -> i64 {
    let shift = 64 - scalar.bits();
    if scalar.is_signed_integer() {
        ((bits << shift) as i64) >> shift
    } else {
        bits as i64
    }
}
