//! From a verified module to the flat program: contract (A8), expand (A10), lay out.

use std::collections::{HashMap, HashSet};

use invar_ir::contract::contract;
use invar_ir::expand::expand;
use invar_ir::memory_layout::Layouts;
use invar_ir::ops::Meaning;
use invar_ir::print::Template;
use invar_ir::texture::atomic_coordinates;
use invar_ir::{
    AddressSpace, AtomicOp, CopyOperands, CopyShape, Diagnostic, Diagnostics, ElementType, Imm,
    Inst, InstKind, Kernel, MatrixPlace, Memory, Module, Op, Order, ParamKind, Place, Region, Rule,
    Scalar, Scope, Span, Step, StructDef, TextureFunction, TextureOperands, TextureType, Type,
    Value, Width,
};

use crate::objects::push_field;
use crate::observe::{SiteInfo, SiteKind};
use crate::program::{
    Access, Code, Column, Copy, Counter, Index, Lanes, MatrixAccess, Move, Moves, Object, ObjectId,
    PathIndex, Print, Program, Query, Reach, Shape, Slot, Splat, Target, Texture,
};

/// The most memory that the values of one simdgroup may take: 256 MiB.
const MAX_REGISTER_BYTES: u64 = 256 << 20;

/// Compiles kernel `name` of a module without function constants for one simdgroup size.
pub(crate) fn compile(
    module: &Module,
    name: &str,
    simdgroup_size: u32,
) -> Result<Program, Diagnostics> {
    // What is not run need not be expanded.
    let mut module = module.clone();
    module.kernels.retain(|k| &*k.name == name);
    let module = expand(contract(module)?, &|op, _, _| op == Op::ShrExact)?;
    let kernel = module.kernels[0].clone();

    let mut c = Compiler {
        module: &module,
        layouts: Layouts::of(&module.structs),
        kernel: &kernel,
        size: simdgroup_size,
        columns: vec![Column::MAX; kernel.values.len()],
        known: vec![None; kernel.values.len()],
        registers: 0,
        code: Vec::new(),
        spans: Vec::new(),
        sites: Vec::new(),
        objects: Vec::new(),
        splats: Vec::new(),
        loops: Vec::new(),
        depth: 0,
        spin_sites: 0,
        instructions: 0,
        device_atomics: false,
        thread_bytes: 0,
        selected: only_selected(&kernel),
        selected_sites: HashMap::new(),
    };
    c.declare_objects();
    let total = c.count_columns();
    if total * u64::from(simdgroup_size) * 8 > MAX_REGISTER_BYTES {
        return Err(Diagnostics(vec![
            Diagnostic::error(
                Rule::LimitExceeded,
                kernel.span,
                format!(
                    "kernel `{name}` holds {total} scalars a thread, too many for the reference \
                     machine"
                ),
            )
            .help("use a smaller simdgroup size or split the kernel"),
        ]));
    }
    c.allot_splats();
    c.region(&kernel.body, &[]);
    let Compiler {
        code,
        spans,
        sites,
        objects,
        registers,
        splats,
        thread_bytes,
        spin_sites,
        device_atomics,
        ..
    } = c;
    let constants = module.constants.iter();
    let constants = constants
        .map(|c| constant_bytes(&module.structs, c))
        .collect();
    Ok(Program {
        constants,
        module,
        kernel: 0,
        simdgroup_size,
        code,
        spans,
        sites,
        objects,
        registers: registers as usize,
        splats,
        thread_bytes,
        spin_sites,
        device_atomics,
    })
}

/// A program-scope constant laid out by L3; padding is zero.
fn constant_bytes(structs: &[StructDef], constant: &invar_ir::ConstantArray) -> Vec<u8> {
    let Some(extent) = constant.element.extent(structs) else {
        return Vec::new();
    };
    let locations = constant.element.locations(structs);
    let mut bytes = vec![0; (extent.size_bytes * u64::from(constant.length)) as usize];
    for (i, value) in constant.values.iter().enumerate() {
        let (offset, scalar) = locations[i % locations.len()];
        let at = (i / locations.len()) as u64 * extent.size_bytes + offset;
        let size = scalar.size_bytes() as usize;
        let bits = value.bits.to_le_bytes();
        let target = &mut bytes[at as usize..at as usize + size];
        target.copy_from_slice(&bits[..size]);
    }
    bytes
}

/// A loop that encloses the current place.
struct OpenLoop {
    /// Where carried values live.
    params: Vec<Value>,
    results: Vec<Value>,
    /// How many `if`s were open when it began.
    depth: u32,
    /// Whether it is a `for`, which ends by itself.
    counted: bool,
}

struct Compiler<'a> {
    module: &'a Module,
    layouts: Layouts,
    kernel: &'a Kernel,
    size: u32,
    /// The first column of each value.
    columns: Vec<Column>,
    /// The bits of values that are constants.
    known: Vec<Option<u64>>,
    registers: u32,
    code: Vec<Code>,
    spans: Vec<Span>,
    sites: Vec<SiteInfo>,
    objects: Vec<Object>,
    splats: Vec<(Column, Splat)>,
    loops: Vec<OpenLoop>,
    depth: u32,
    spin_sites: usize,
    /// Instructions laid out so far.
    instructions: u32,
    device_atomics: bool,
    thread_bytes: u64,
    /// Values of loads that nothing uses but `select`s, and the sites of those that came.
    selected: HashSet<Value>,
    selected_sites: HashMap<Value, u32>,
}

/// The values of loads that nothing uses but `select`s, to choose or not.
fn only_selected(kernel: &Kernel) -> HashSet<Value> {
    let (mut chosen, mut others) = (HashSet::<Value>::new(), HashSet::<Value>::new());
    let mut loads = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Load(_) = inst.kind {
            loads.extend(inst.results.iter().copied());
        }
        if let Some((Op::Select, _, args)) = inst.kind.as_op() {
            chosen.extend(&args[..2]);
            others.insert(args[2]);
        } else {
            inst.kind.for_each_use(|value| {
                others.insert(value);
            });
        }
    });
    loads.retain(|value| chosen.contains(value) && !others.contains(value));
    loads
}

impl Compiler<'_> {
    // ---- memory objects: parameters, then arrays, then program-scope constants ----

    fn declare_objects(&mut self) {
        let allocs = &self.kernel.allocs;
        let group_arrays = allocs
            .iter()
            .filter(|a| a.space.is_of_threadgroup())
            .count() as u32;
        let mut group_params = 0;
        for (i, param) in self.kernel.params.iter().enumerate() {
            let slot = match &param.kind {
                ParamKind::Threadgroup { .. } => {
                    group_params += 1;
                    Slot::Threadgroup(group_arrays + group_params - 1)
                }
                ParamKind::Buffer { .. }
                | ParamKind::Constant { .. }
                | ParamKind::Scalar { .. }
                | ParamKind::Texture(_)
                | ParamKind::Sampler => Slot::Argument(i as u32),
            };
            match &param.kind {
                ParamKind::Buffer { element, .. }
                | ParamKind::Constant { element }
                | ParamKind::Threadgroup { element } => self.object(slot, element),
                // What a texel is in memory, the argument says.
                ParamKind::Texture(texture) => {
                    // Four locations, whatever a texel's value is.
                    self.object(slot, &Type::Vector(texture.component, 4).into());
                }
                // Never named as memory: it only keeps the numbering.
                ParamKind::Scalar { .. } | ParamKind::Sampler => {
                    self.object(slot, &Scalar::U8.into());
                }
            }
        }
        let mut group = 0;
        for alloc in allocs {
            let extent = alloc.element.extent(&self.module.structs);
            let bytes = extent.map_or(0, |e| e.size_bytes) * u64::from(alloc.length);
            let slot = match alloc.space {
                AddressSpace::Threadgroup | AddressSpace::Imageblock => {
                    group += 1;
                    Slot::Threadgroup(group - 1)
                }
                AddressSpace::Thread
                | AddressSpace::Device
                | AddressSpace::Constant
                | AddressSpace::Texture => {
                    let offset = self.thread_bytes;
                    self.thread_bytes += bytes.next_multiple_of(8);
                    Slot::Thread {
                        offset,
                        length: alloc.length.into(),
                    }
                }
            };
            self.object(slot, &alloc.element);
        }
        for (i, constant) in self.module.constants.iter().enumerate() {
            self.object(Slot::Constant(i as u32), &constant.element);
        }
    }

    fn object(&mut self, slot: Slot, element: &ElementType) {
        let extent = element.extent(&self.module.structs);
        self.objects.push(Object {
            slot,
            element_bytes: extent.map_or(1, |e| e.size_bytes),
            element_locations: extent.map_or(1, |e| e.location_count),
            locations: element.locations(&self.module.structs),
        });
    }

    fn object_of(&self, memory: Memory) -> ObjectId {
        match memory {
            Memory::Param(i) => i,
            Memory::Alloc(i) => self.kernel.params.len() as u32 + i,
            Memory::Constant(i) => (self.kernel.params.len() + self.kernel.allocs.len()) as u32 + i,
        }
    }

    fn element_of(&self, memory: Memory) -> ElementType {
        self.module
            .memory(self.kernel, memory)
            .map_or(Scalar::U8.into(), |info| info.element.clone())
    }

    // ---- columns ----

    /// How many columns a value of a type takes. A simdgroup matrix is spread over as many as hold
    /// its entries.
    fn column_count(&self, ty: Type) -> u32 {
        match ty {
            Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } => ty.component_count(),
            Type::SimdgroupMatrix { rows, columns, .. } => {
                (u32::from(rows) * u32::from(columns)).div_ceil(self.size)
            }
            Type::Event => 1,
        }
    }

    fn count_columns(&self) -> u64 {
        let values = self.kernel.values.iter();
        values.map(|v| u64::from(self.column_count(v.ty))).sum()
    }

    fn allot(&mut self, value: Value) -> Column {
        let column = self.registers;
        self.registers += self.column_count(self.kernel.ty(value)) * self.size;
        self.columns[value.0 as usize] = column;
        column
    }

    /// Columns that never change come first and are filled when a simdgroup is made.
    fn allot_splats(&mut self) {
        for (i, param) in self.kernel.params.iter().enumerate() {
            if let ParamKind::Scalar { value } = param.kind {
                let column = self.allot(value);
                for component in 0..self.kernel.ty(value).component_count() {
                    let splat = Splat::Argument {
                        param: i as u32,
                        component,
                    };
                    self.splats.push((column + component * self.size, splat));
                }
            }
        }
        let mut found = Vec::new();
        self.kernel.for_each_inst(&mut |inst| {
            let splat = if let InstKind::Const(constant) = &inst.kind {
                Splat::Bits(constant.bits)
            } else if let InstKind::BufferLength(memory) = &inst.kind {
                Splat::Length(self.object_of(*memory))
            } else {
                return;
            };
            found.push((inst.results[0], splat));
        });
        for (value, splat) in found {
            let column = self.allot(value);
            if let Splat::Bits(bits) = splat {
                self.known[value.0 as usize] = Some(bits);
            }
            self.splats.push((column, splat));
        }
    }

    fn column(&self, value: Value) -> Column {
        self.columns[value.0 as usize]
    }

    fn index(&self, value: Value) -> Index {
        Index {
            column: self.column(value),
            scalar: self.kernel.ty(value).component_scalar(),
        }
    }

    fn define(&mut self, values: &[Value]) {
        for value in values {
            self.allot(*value);
        }
    }

    // ---- code ----

    fn emit(&mut self, span: Span, code: Code) {
        self.code.push(code);
        self.spans.push(span);
    }

    fn here(&self) -> Target {
        self.code.len() as Target
    }

    fn site(&mut self, span: Span, kind: SiteKind) -> u32 {
        let instruction = self.instructions - 1;
        self.sites.push(SiteInfo {
            span,
            kind,
            instruction,
            selected: false,
        });
        self.sites.len() as u32 - 1
    }

    fn spin_site(&mut self) -> u32 {
        self.spin_sites += 1;
        self.spin_sites as u32 - 1
    }

    /// Whether plain loads of an object, here, may be how a thread waits for another.
    fn may_wait(&self, memory: Memory) -> bool {
        let shared =
            |space: AddressSpace| space == AddressSpace::Device || space.is_of_threadgroup();
        let info = self.module.memory(self.kernel, memory);
        self.loops.iter().any(|l| !l.counted)
            && info.is_some_and(|m| shared(m.space) && m.access.can_write())
    }

    fn moves(&self, destinations: &[Value], sources: &[Value]) -> Moves {
        let mut list = Vec::new();
        for (destination, source) in destinations.iter().zip(sources) {
            let (to, from) = (self.column(*destination), self.column(*source));
            let ty = self.kernel.ty(*destination);
            if to != from {
                list.push(Move {
                    destination: to,
                    source: from,
                    columns: self.column_count(ty),
                    whole: matches!(ty, Type::SimdgroupMatrix { .. }),
                });
            }
        }
        let taken: HashSet<Column> = list.iter().map(|m| m.source).collect();
        let overlap = list.iter().any(|m| taken.contains(&m.destination));
        Moves { list, overlap }
    }

    fn emit_moves(&mut self, span: Span, to: &[Value], from: &[Value]) {
        let moves = self.moves(to, from);
        if !moves.list.is_empty() {
            self.emit(span, Code::Move(moves));
        }
    }

    /// Lays out a region; `results` are where the values of a closing `yield` go.
    fn region(&mut self, region: &Region, results: &[Value]) {
        for inst in &region.insts {
            self.inst(inst, results);
        }
    }

    fn inst(&mut self, inst: &Inst, results: &[Value]) {
        self.instructions += 1;
        let span = inst.span;
        match &inst.kind {
            InstKind::Const(_) | InstKind::BufferLength(_) => {}
            InstKind::FunctionConstant(_) => unreachable!("function constants have been fixed"),
            InstKind::Op { op, imm, args } => {
                self.define(&inst.results);
                self.op(inst, *op, *imm, args);
            }
            InstKind::Load(place) => self.load(inst, place),
            InstKind::Store { place, value } => {
                let access = self.access(place, span, SiteKind::Store);
                let source = self.column(*value);
                self.emit(span, Code::Store { access, source });
            }
            InstKind::Atomic {
                op,
                place,
                args,
                order,
                scope,
            } => self.atomic(inst, *op, place, args, (*order, *scope)),
            InstKind::Alloc(id) => {
                let object = &self.objects[self.object_of(Memory::Alloc(*id)) as usize];
                if let Slot::Thread { offset, length } = object.slot {
                    let bytes = object.element_bytes * length;
                    self.emit(span, Code::Zero { offset, bytes });
                }
            }
            InstKind::Copy { operands, count } => {
                let count = self.index(*count);
                let shape = Shape::Linear { count };
                let copy = self.copy(operands, shape, span, SiteKind::Copy);
                self.emit(span, Code::Copy(copy));
            }
            InstKind::AsyncCopy { operands, shape } => self.async_copy(inst, operands, shape),
            InstKind::Wait { events } => {
                let events = events.iter().map(|e| self.column(*e)).collect();
                self.emit(span, Code::Wait { events });
            }
            InstKind::Barrier { scope, spaces } => {
                let site = self.site(span, SiteKind::Barrier);
                let (scope, spaces) = (*scope, *spaces);
                self.emit(
                    span,
                    Code::Barrier {
                        site,
                        scope,
                        spaces,
                    },
                );
            }
            InstKind::MatrixFill { value } => {
                self.define(&inst.results);
                let (_, rows, columns) = self.matrix_type(inst.results[0]);
                let code = Code::MatrixFill {
                    value: self.column(*value),
                    destination: self.column(inst.results[0]),
                    entries: u32::from(rows) * u32::from(columns),
                };
                self.emit(span, code);
            }
            InstKind::MatrixLoad { place } => {
                self.define(&inst.results);
                let access = self.matrix_access(place, inst.results[0], span);
                let destination = self.column(inst.results[0]);
                self.emit(
                    span,
                    Code::MatrixLoad {
                        access,
                        destination,
                    },
                );
            }
            InstKind::MatrixStore { place, matrix } => {
                let access = self.matrix_access(place, *matrix, span);
                let source = self.column(*matrix);
                self.emit(span, Code::MatrixStore { access, source });
            }
            InstKind::MatrixMultiplyAccumulate { a, b, c } => self.multiply(inst, [*a, *b, *c]),
            InstKind::AssertUniform { value, scope } => {
                self.define(&inst.results);
                let code = Code::AssertUniform {
                    site: self.site(span, SiteKind::AssertUniform),
                    scope: *scope,
                    value: self.column(*value),
                    destination: self.column(inst.results[0]),
                    columns: self.column_count(self.kernel.ty(*value)),
                };
                self.emit(span, code);
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => self.if_(inst, *condition, then, otherwise),
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => self.for_(inst, [*lower, *upper, *step], init, body),
            InstKind::Loop { init, body } => {
                self.define(&inst.results);
                self.define(&body.params);
                self.emit_moves(span, &body.params, init);
                self.loop_(inst, &body.params, None, body);
            }
            InstKind::Yield(values) => self.yield_(values, results, span),
            InstKind::Break(values) => {
                if let Some(open) = self.loops.last() {
                    let moves = self.moves(&open.results, values);
                    let depth = self.depth - open.depth;
                    if !moves.list.is_empty() {
                        self.emit(span, Code::Move(moves));
                    }
                    self.emit(span, Code::Break { depth });
                }
            }
            InstKind::Continue(values) => {
                if let Some(open) = self.loops.last() {
                    let moves = self.moves(&open.params, values);
                    let depth = self.depth - open.depth;
                    if !moves.list.is_empty() {
                        self.emit(span, Code::Move(moves));
                    }
                    self.emit(span, Code::Next { depth });
                }
            }
            InstKind::Return => self.emit(span, Code::Return),
            InstKind::Print { text, values } => self.print(text, values, span),
            InstKind::Texture {
                texture,
                function,
                args,
            } => self.texture(inst, *texture, *function, args),
        }
    }

    fn load(&mut self, inst: &Inst, place: &Place) {
        self.define(&inst.results);
        let access = self.access(place, inst.span, SiteKind::Load);
        let result = inst.results[0];
        if self.selected.contains(&result) {
            self.sites[access.site as usize].selected = true;
            self.selected_sites.insert(result, access.site);
        }
        let destination = self.column(result);
        let spin = self.may_wait(place.memory).then(|| self.spin_site());
        self.emit(
            inst.span,
            Code::Load {
                access,
                destination,
                spin,
            },
        );
    }

    fn atomic(
        &mut self,
        inst: &Inst,
        op: AtomicOp,
        place: &Place,
        args: &[Value],
        (order, scope): (Order, Scope),
    ) {
        let span = inst.span;
        self.define(&inst.results);
        let waits = op.reads() && !self.loops.is_empty();
        let spin = waits.then(|| self.spin_site());
        let space = self.module.memory(self.kernel, place.memory);
        let in_device = |space| matches!(space, AddressSpace::Device | AddressSpace::Texture);
        self.device_atomics |= space.is_some_and(|m| in_device(m.space));
        let column =
            |values: &[Value], i: usize| values.get(i).map_or(Column::MAX, |v| self.column(*v));
        let args = [column(args, 0), column(args, 1)];
        let (destination, success) = (column(&inst.results, 0), column(&inst.results, 1));
        let (access, texel) = match self.kernel.texture(place.memory) {
            Some(ty) => {
                let (access, texel) = self.texel(place, ty, span);
                (access, Some(texel))
            }
            None => (self.access(place, span, SiteKind::Atomic), None),
        };
        self.emit(
            span,
            Code::Atomic {
                access,
                texel,
                op,
                args,
                order,
                scope,
                destination,
                success,
                spin,
            },
        );
    }

    /// The texel that an atomic acts on, and what of it: its first component.
    fn texel(&mut self, place: &Place, ty: TextureType, span: Span) -> (Box<Access>, Box<Texture>) {
        let Memory::Param(param) = place.memory else {
            unreachable!("the verifier lets only parameters be textures")
        };
        let (site, object) = (
            self.site(span, SiteKind::Atomic),
            self.object_of(place.memory),
        );
        let at = atomic_coordinates(place);
        let texel = Texture {
            site,
            object,
            param,
            function: TextureFunction::Read,
            ty,
            at: at.iter().map(|v| self.index(*v)).collect(),
            level: None,
            reference: None,
            value: Column::MAX,
        };
        let access = Access {
            site,
            object,
            index: self.index(place.index),
            reach: Reach::Part,
            offset_bytes: 0,
            offset_locations: 0,
            path: Vec::new(),
            scalar: ty.component,
            components: 1,
        };
        (Box::new(access), Box::new(texel))
    }

    fn async_copy(&mut self, inst: &Inst, operands: &CopyOperands, shape: &CopyShape) {
        let span = inst.span;
        self.define(&inst.results);
        let shape = match shape {
            CopyShape::Linear { count } => Shape::Linear {
                count: self.index(*count),
            },
            CopyShape::Tile {
                destination_row,
                source_row,
                columns,
                rows,
            } => Shape::Tile {
                destination_row: self.index(*destination_row),
                source_row: self.index(*source_row),
                columns: self.index(*columns),
                rows: self.index(*rows),
            },
        };
        let copy = self.copy(operands, shape, span, SiteKind::AsyncCopy);
        let event = self.column(inst.results[0]);
        self.emit(span, Code::AsyncCopy { copy, event });
    }

    fn multiply(&mut self, inst: &Inst, [a, b, c]: [Value; 3]) {
        let span = inst.span;
        self.define(&inst.results);
        let (a_scalar, rows, inner) = self.matrix_type(a);
        let (b_scalar, _, columns) = self.matrix_type(b);
        let (c_scalar, ..) = self.matrix_type(c);
        let code = Code::MatrixMultiplyAccumulate {
            a: (self.column(a), a_scalar),
            b: (self.column(b), b_scalar),
            c: (self.column(c), c_scalar),
            destination: self.column(inst.results[0]),
            shape: (rows, columns, inner),
        };
        self.emit(span, code);
    }

    fn for_(
        &mut self,
        inst: &Inst,
        [lower, upper, step]: [Value; 3],
        init: &[Value],
        body: &Region,
    ) {
        let (index, carried) = body.params.split_at(1);
        self.define(&inst.results);
        self.define(&body.params);
        let mut first = vec![lower];
        first.extend(init.iter());
        self.emit_moves(inst.span, &body.params, &first);
        let counter = Counter {
            index: self.index(index[0]),
            upper: self.index(upper),
            step: self.index(step),
        };
        let moves = self.moves(&inst.results, carried);
        self.loop_(inst, carried, Some(Box::new((counter, moves))), body);
    }

    fn yield_(&mut self, values: &[Value], results: &[Value], span: Span) {
        self.emit_moves(span, results, values);
        // A loop's own yield is a `next`; `loop_` and `if_` know which it is by `depth`.
        let in_loop = self.loops.last().is_some_and(|l| l.depth == self.depth);
        let code = if in_loop {
            Code::Next { depth: 0 }
        } else {
            Code::EndSide
        };
        self.emit(span, code);
    }

    fn print(&mut self, text: &str, values: &[Value], span: Span) {
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(why) => unreachable!("the verifier keeps out a text of which is said: {why}"),
        };
        let types: Vec<Type> = values.iter().map(|v| self.kernel.ty(*v)).collect();
        let mut columns = Vec::new();
        for (value, ty) in values.iter().zip(&types) {
            let (first, scalar) = (self.column(*value), ty.component_scalar());
            columns.extend((0..ty.component_count()).map(|i| (first + i * self.size, scalar)));
        }
        let print = Print {
            template,
            types,
            columns,
        };
        self.emit(span, Code::Print(Box::new(print)));
    }

    fn texture(&mut self, inst: &Inst, texture: Memory, function: TextureFunction, args: &[Value]) {
        self.define(&inst.results);
        let Memory::Param(param) = texture else {
            unreachable!("the verifier lets only parameters be textures")
        };
        let Some(ty) = self.kernel.texture(texture) else {
            unreachable!("the verifier lets only textures be reached")
        };
        let TextureOperands { at, level, value } = function.operands(ty.dimension, args);
        let reference = value.filter(|_| function.compares());
        let value = inst.results.first().copied().or(value);
        let code = Texture {
            site: self.site(inst.span, SiteKind::Texture),
            object: self.object_of(texture),
            param,
            function,
            ty,
            at: at.iter().map(|v| self.index(*v)).collect(),
            level: level.map(|v| self.index(v)),
            reference: reference.map(|v| self.column(v)),
            value: value.map_or(Column::MAX, |v| self.column(v)),
        };
        self.emit(inst.span, Code::Texture(Box::new(code)));
    }

    fn if_(&mut self, inst: &Inst, condition: Value, then: &Region, otherwise: &Region) {
        self.define(&inst.results);
        let start = self.code.len();
        self.emit(
            inst.span,
            Code::If {
                condition: self.column(condition),
                otherwise: 0,
                end: 0,
            },
        );
        self.depth += 1;
        self.region(then, &inst.results);
        let middle = self.here();
        self.region(otherwise, &inst.results);
        self.depth -= 1;
        let after = self.here();
        if let Code::If { otherwise, end, .. } = &mut self.code[start] {
            *otherwise = middle;
            *end = after;
        }
    }

    fn loop_(
        &mut self,
        inst: &Inst,
        carried: &[Value],
        counter: Option<Box<(Counter, Moves)>>,
        body: &Region,
    ) {
        let start = self.code.len();
        let counted = counter.is_some();
        self.emit(inst.span, Code::Loop { end: 0, counter });
        self.loops.push(OpenLoop {
            counted,
            params: carried.to_vec(),
            results: inst.results.to_vec(),
            depth: self.depth,
        });
        self.region(body, carried);
        self.loops.pop();
        let after = self.here();
        if let Code::Loop { end, .. } = &mut self.code[start] {
            *end = after;
        }
    }

    fn op(&mut self, inst: &Inst, op: Op, imm: Imm, args: &[Value]) {
        let span = inst.span;
        let result = inst.results[0];
        let ty = self.kernel.ty(result);
        let destination = self.column(result);
        let size = self.size;
        let count = self.column_count(ty);
        // What it is for is what observers see; else it is a shift.
        let op = match op {
            Op::ShrExact => {
                self.tell_shifted(span, args);
                Op::Shr
            }
            other => other,
        };
        match op.row().meaning {
            Meaning::Eval(evaluator) => {
                if op == Op::Select {
                    self.tell_selected(span, args);
                }
                let scalar_of = |v: Value| self.kernel.ty(v).component_scalar();
                let from = scalar_of(args[0]);
                let to = ty.scalar().unwrap_or(from);
                let one = |length: u32, args: Box<[Column]>, destination: Column| Code::Eval {
                    evaluator,
                    from,
                    to,
                    args,
                    destination,
                    length,
                };
                let broadcast = args
                    .iter()
                    .any(|v| self.column_count(self.kernel.ty(*v)) != count);
                if !broadcast {
                    let columns = args.iter().map(|v| self.column(*v)).collect();
                    let code = one(count * size, columns, destination);
                    self.emit(span, code);
                    return;
                }
                // One operand serves all components: `select` by one `bool`.
                for component in 0..count {
                    let columns = args
                        .iter()
                        .map(|v| {
                            let single = self.column_count(self.kernel.ty(*v)) == 1;
                            self.column(*v) + if single { 0 } else { component * size }
                        })
                        .collect();
                    let code = one(size, columns, destination + component * size);
                    self.emit(span, code);
                }
            }
            Meaning::Expand(_) => unreachable!("`{op}` has been expanded"),
            Meaning::Arrange => self.arrange(inst, op, imm, args),
            Meaning::Lanes(group, rule) => {
                let lanes = Lanes {
                    group,
                    rule,
                    scalar: self.kernel.ty(args[0]).component_scalar(),
                    value: self.column(args[0]),
                    by: args.get(1).map(|v| self.index(*v)),
                    destination,
                    components: self.column_count(self.kernel.ty(args[0])),
                    columns: count,
                };
                self.emit(span, Code::Lanes(Box::new(lanes)));
            }
            Meaning::Query => {
                let dim = match imm {
                    Imm::Dim(dim) => dim,
                    Imm::None | Imm::Type(_) | Imm::Swizzle(_) => invar_ir::Dim::X,
                };
                let query = Query { op, dim };
                self.emit(span, Code::Query { destination, query });
            }
        }
    }

    /// Tells observers of offsets whose bits that are shifted out are not all 0.
    fn tell_shifted(&mut self, span: Span, args: &[Value]) {
        let scalar = self.kernel.ty(args[0]).component_scalar();
        let code = Code::Misaligned {
            site: self.site(span, SiteKind::Offset),
            scalar,
            offset: self.column(args[0]),
            count: self.column(args[1]),
            columns: self.column_count(self.kernel.ty(args[0])),
        };
        self.emit(span, code);
    }

    /// Tells observers which of two values a `select` takes, of those that are loads and no more.
    fn tell_selected(&mut self, span: Span, args: &[Value]) {
        let columns = self.column_count(self.kernel.ty(args[2]));
        for (value, when) in args[..2].iter().zip([false, true]) {
            if let Some(site) = self.selected_sites.get(value) {
                let code = Code::Selected {
                    site: *site,
                    condition: self.column(args[2]),
                    length: columns * self.size,
                    when,
                };
                self.emit(span, code);
            }
        }
    }

    /// Operations that move components about.
    fn arrange(&mut self, inst: &Inst, op: Op, imm: Imm, args: &[Value]) {
        let span = inst.span;
        let size = self.size;
        let destination = self.column(inst.results[0]);
        let count = self.column_count(self.kernel.ty(inst.results[0]));
        let columns = |v: Value| {
            let first = self.column(v);
            (0..self.column_count(self.kernel.ty(v))).map(move |i| first + i * size)
        };
        if op == Op::AsType {
            let scalar = |v: Value| self.kernel.ty(v).component_scalar();
            let code = Code::AsType {
                from: scalar(args[0]),
                to: scalar(inst.results[0]),
                source: self.column(args[0]),
                source_columns: self.column_count(self.kernel.ty(args[0])),
                destination,
                columns: count,
            };
            self.emit(span, code);
            return;
        }
        let gathered: Vec<Column> = if op == Op::Construct {
            let mut sources: Vec<Column> = args.iter().flat_map(|v| columns(*v)).collect();
            if sources.len() == 1 {
                sources = vec![sources[0]; count as usize];
            }
            sources
        } else if let (Op::Swizzle, Imm::Swizzle(swizzle)) = (op, imm) {
            let all: Vec<Column> = columns(args[0]).collect();
            swizzle
                .components()
                .iter()
                .map(|c| all[usize::from(*c)])
                .collect()
        } else if op == Op::Extract || op == Op::Insert {
            let whole = self.column_count(self.kernel.ty(args[0]));
            let part_type = match self.kernel.ty(args[0]) {
                Type::Matrix { rows, .. } => u32::from(rows),
                _vector => 1,
            };
            let parts = whole / part_type;
            let index = self.index(args[1]);
            if let Some(bits) = self.known[args[1].0 as usize]
                && let Ok(at) = u32::try_from(index.scalar.integer(bits))
                && at < parts
            {
                let all: Vec<Column> = columns(args[0]).collect();
                let at = (at * part_type) as usize;
                if op == Op::Extract {
                    all[at..at + part_type as usize].to_vec()
                } else {
                    let part: Vec<Column> = columns(args[2]).collect();
                    let mut all = all;
                    all.splice(at..at + part_type as usize, part);
                    all
                }
            } else {
                let source = self.column(args[0]);
                let part = args.get(2).map(|v| self.column(*v));
                let site = self.site(span, SiteKind::Part);
                let code = match part {
                    None => Code::Extract {
                        site,
                        destination,
                        source,
                        index,
                        parts,
                        columns: part_type,
                    },
                    Some(part) => Code::Insert {
                        site,
                        destination,
                        source,
                        part,
                        index,
                        parts,
                        columns: part_type,
                    },
                };
                self.emit(span, code);
                return;
            }
        } else {
            unreachable!("`{op}` arranges components and the machine does not know how")
        };
        let sources = gathered.into();
        self.emit(
            span,
            Code::Gather {
                destination,
                sources,
            },
        );
    }

    // ---- places ----

    fn access(&mut self, place: &Place, span: Span, kind: SiteKind) -> Box<Access> {
        let structs = &self.module.structs;
        let mut at = self.element_of(place.memory);
        let (mut offset_bytes, mut offset_locations) = (0, 0);
        let mut path = Vec::new();
        let mut fields = String::new();
        for step in &place.path {
            at = match (step, at) {
                (Step::Field(field), ElementType::Struct(id)) => {
                    let place = self.layouts.field(id, *field).unwrap_or_default();
                    offset_bytes += place.offset_bytes;
                    offset_locations += place.offset_locations;
                    let def = &structs[id.0 as usize];
                    let (name, inner) = &def.fields[*field as usize];
                    push_field(def, name, &mut fields);
                    inner.clone()
                }
                (Step::Index(index), outer) => {
                    let (what, part, count) = match outer {
                        ElementType::Array(element, count) => {
                            ("element", (*element).clone(), count)
                        }
                        ElementType::Value(Type::Vector(scalar, n)) => {
                            ("component", scalar.into(), n.into())
                        }
                        ElementType::Value(Type::Matrix {
                            scalar,
                            columns,
                            rows,
                        }) => ("column", Type::Vector(scalar, rows).into(), columns.into()),
                        ElementType::Value(_) | ElementType::Struct(_) => {
                            unreachable!("the verifier keeps out a path that indexes nothing")
                        }
                    };
                    let extent = self.layouts.extent(&part);
                    path.push(PathIndex {
                        what,
                        fields: std::mem::take(&mut fields).into(),
                        index: self.index(*index),
                        count: count.into(),
                        bytes: extent.map_or(0, |e| e.size_bytes),
                        locations: extent.map_or(0, |e| e.location_count),
                    });
                    part
                }
                (Step::Field(_), ElementType::Value(_) | ElementType::Array(..)) => {
                    unreachable!("the verifier keeps out a field of no struct")
                }
            };
        }
        let ty = match at {
            ElementType::Value(ty) => ty,
            ElementType::Array(..) | ElementType::Struct(_) => {
                unreachable!("the verifier keeps out an access to a whole struct or array")
            }
        };
        let (reach, components) = match place.width {
            Width::One => (Reach::Part, ty.component_count()),
            Width::Run(n) => (Reach::Run, n.into()),
            Width::Group(n) => (Reach::Group(n), n.into()),
        };
        Box::new(Access {
            site: self.site(span, kind),
            object: self.object_of(place.memory),
            index: self.index(place.index),
            reach,
            offset_bytes,
            offset_locations,
            path,
            scalar: ty.scalar().unwrap_or(Scalar::U8),
            components,
        })
    }

    fn copy(
        &mut self,
        operands: &CopyOperands,
        shape: Shape,
        span: Span,
        kind: SiteKind,
    ) -> Box<Copy> {
        Box::new(Copy {
            site: self.site(span, kind),
            destination: self.object_of(operands.destination),
            destination_index: self.index(operands.destination_index),
            source: self.object_of(operands.source),
            source_index: self.index(operands.source_index),
            shape,
        })
    }

    fn matrix_type(&self, value: Value) -> (Scalar, u8, u8) {
        match self.kernel.ty(value) {
            Type::SimdgroupMatrix {
                scalar,
                rows,
                columns,
            } => (scalar, rows, columns),
            other => unreachable!("the verifier keeps {other} out of matrix operations"),
        }
    }

    fn matrix_access(
        &mut self,
        place: &MatrixPlace,
        matrix: Value,
        span: Span,
    ) -> Box<MatrixAccess> {
        let (scalar, rows, columns) = self.matrix_type(matrix);
        Box::new(MatrixAccess {
            site: self.site(span, SiteKind::Matrix),
            object: self.object_of(place.memory),
            index: self.index(place.index),
            row: self.index(place.row),
            transpose: place.transpose,
            scalar,
            rows,
            columns,
        })
    }
}
