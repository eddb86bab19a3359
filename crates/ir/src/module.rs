//! Modules and kernels: what a front end builds, the text form writes down and the verifier checks.
//!
//! Canonical numbering: a kernel's values are numbered in the order in which the text form defines
//! them (scalar parameters; then, instruction by instruction, its results, its regions' parameters
//! and what its regions define). [`Kernel::renumber`] restores it; the builder and every pass leave
//! it so, and the verifier insists on it.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::inst::{Const, Inst, InstKind, Memory, Region, Spaces, Value, ValueInfo};
use crate::requires::Requirement;
use crate::room::{PASSES_BYTES, WALK_BYTES, with_room};
use crate::span::{Call, Source, Span};
use crate::texture::TextureType;
use crate::types::{ElementType, Scalar, StructDef, Type};

/// Kernels and what they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The authors' texts, for messages.
    pub sources: Vec<Source>,
    /// Calls that were inlined, for messages.
    pub calls: Vec<Call>,
    /// Structs; one may hold only earlier ones.
    pub structs: Vec<StructDef>,
    /// Values fixed when the kernel is compiled.
    pub function_constants: Vec<FunctionConstant>,
    /// Program-scope constants.
    pub constants: Vec<ConstantArray>,
    /// The kernels, at least one in a verified module.
    pub kernels: Vec<Kernel>,
}

/// A value fixed when the kernel is compiled, the same for the whole grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionConstant {
    /// The name, unique in the module.
    pub name: Arc<str>,
    /// The number by which a host names it, unique in the module.
    pub id: u32,
    /// Its type.
    pub scalar: Scalar,
    /// What it is when the host does not say; without one the host must.
    pub default: Option<Const>,
    /// Where it was declared.
    pub span: Span,
}

/// A program-scope constant: an array in `constant` space, initialised where it is declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstantArray {
    /// The name, unique in the module.
    pub name: Arc<str>,
    /// What one element is.
    pub element: ElementType,
    /// How many elements, at least 1.
    pub length: u32,
    /// The scalars of all elements, in the order of their locations.
    pub values: Vec<Const>,
    /// Where it was declared.
    pub span: Span,
}

/// How a kernel's floats are computed (A8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FloatMode {
    /// Every operation as written.
    Strict,
    /// One rewrite makes `fma` of a product and a sum; nothing else changes.
    #[default]
    Contract,
    /// Results may be reassociated and approximated.
    Fast,
}

impl FloatMode {
    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            FloatMode::Strict => "strict",
            FloatMode::Contract => "contract",
            FloatMode::Fast => "fast",
        }
    }
}

/// What a kernel may do with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Load.
    Read,
    /// Store.
    Write,
    /// Load, store and atomics.
    ReadWrite,
}

impl Access {
    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::ReadWrite => "read_write",
        }
    }

    /// Whether loads are allowed.
    pub const fn can_read(self) -> bool {
        matches!(self, Access::Read | Access::ReadWrite)
    }

    /// Whether stores are allowed.
    pub const fn can_write(self) -> bool {
        matches!(self, Access::Write | Access::ReadWrite)
    }
}

/// An address space (section 2 of the memory model).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AddressSpace {
    /// The whole grid's; owned by the host.
    Device,
    /// The whole grid's, never written.
    Constant,
    /// One threadgroup's.
    Threadgroup,
    /// One thread's.
    Thread,
    /// Textures: device memory that is reached only through functions, and that barriers order by a flag of
    /// its own.
    Texture,
    /// Imageblocks: one threadgroup's, an element for each of its positions, and ordered by a flag of its own.
    Imageblock,
}

impl AddressSpace {
    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            AddressSpace::Device => "device",
            AddressSpace::Constant => "constant",
            AddressSpace::Threadgroup => "threadgroup",
            AddressSpace::Thread => "thread",
            AddressSpace::Texture => "texture",
            AddressSpace::Imageblock => "imageblock",
        }
    }

    /// Whether each threadgroup has its own, as long as it runs.
    pub const fn is_of_threadgroup(self) -> bool {
        matches!(self, AddressSpace::Threadgroup | AddressSpace::Imageblock)
    }

    /// The barrier flag that orders this space, if it needs any.
    pub const fn barrier_flag(self) -> Option<Spaces> {
        match self {
            AddressSpace::Device => Some(Spaces::DEVICE),
            AddressSpace::Threadgroup => Some(Spaces::THREADGROUP),
            AddressSpace::Texture => Some(Spaces::TEXTURE),
            AddressSpace::Imageblock => Some(Spaces::IMAGEBLOCK),
            AddressSpace::Constant | AddressSpace::Thread => None,
        }
    }
}

/// A kernel's parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// The name, unique in the kernel.
    pub name: Arc<str>,
    /// What is passed.
    pub kind: ParamKind,
    /// Where a shader's host binds it. The binary form has it behind the kernel.
    #[serde(skip)]
    pub binding: Option<Binding>,
    /// Where it was declared.
    pub span: Span,
}

/// A place in the interface of a shader: its `@group` and `@binding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Binding {
    /// The group.
    pub group: u32,
    /// The number in the group.
    pub number: u32,
}

/// What is passed for a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParamKind {
    /// A buffer in `device` memory.
    Buffer {
        /// What the kernel may do with it.
        access: Access,
        /// What one element is.
        element: ElementType,
    },
    /// A buffer in `constant` memory.
    Constant {
        /// What one element is.
        element: ElementType,
    },
    /// A scalar, vector or small matrix passed by value.
    Scalar {
        /// The value in the kernel.
        value: Value,
    },
    /// Threadgroup memory whose length the dispatch gives.
    Threadgroup {
        /// What one element is.
        element: ElementType,
    },
    /// A texture.
    Texture(TextureType),
    /// A sampler: how textures are sampled.
    Sampler,
}

/// An array that a kernel declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alloc {
    /// The name, unique in the kernel.
    pub name: Arc<str>,
    /// `Threadgroup`, `Thread` or `Imageblock`.
    pub space: AddressSpace,
    /// What one element is.
    pub element: ElementType,
    /// How many elements, at least 1.
    pub length: u32,
}

/// Code that runs once for every thread of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name, unique in the module.
    pub name: Arc<str>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The only threadgroup size it may be dispatched with, if it says one.
    pub threadgroup_size: Option<[u32; 3]>,
    /// The simdgroup size it requires, if any.
    pub simdgroup_size: Option<u32>,
    /// How floats are computed.
    pub float_mode: FloatMode,
    /// The author means out-of-bounds loads to happen; the checkers are silent about them.
    pub allow_out_of_bounds_loads: bool,
    /// The author means out-of-bounds stores and atomics to happen.
    pub allow_out_of_bounds_stores: bool,
    /// The author counts on threadgroup memory that begins as zeros (I2); the checkers are silent about reads
    /// before any write.
    pub allow_uninitialised_reads: bool,
    /// Simdgroup and quadgroup functions are over the threads that are active where they stand (X7), rather
    /// than all of the simdgroup.
    pub active_collectives: bool,
    /// What it requires of a launch (S5).
    pub requires: Vec<Requirement>,
    /// Arrays it declares, in the order of their `alloc` instructions.
    pub allocs: Vec<Alloc>,
    /// Types and names of its values.
    pub values: Vec<ValueInfo>,
    /// The body.
    pub body: Region,
    /// Where it was declared.
    pub span: Span,
}

impl Drop for Kernel {
    /// Dropping a region drops those within it.
    fn drop(&mut self) {
        with_room(WALK_BYTES, || self.body.insts.clear());
    }
}

/// The most characters of an expression that stand for a value in a sentence.
const LONGEST_QUOTED: usize = 60;
/// In kernels of more values than these nobody looks for the expression of one: each of as many errors would.
const MOST_LOOKED_THROUGH: usize = 4096;

impl Module {
    /// The expression that stands in the source at a place, or how it begins; in the text form it is a statement,
    /// which names its results.
    pub fn written(&self, span: Span) -> Option<String> {
        let source = self.sources.get(span.source?.0 as usize)?;
        let line = source.text.lines().nth(span.start.line as usize - 1)?;
        let at = |column: u32| {
            let mut columns = line.char_indices().map(|(at, _)| at).chain([line.len()]);
            columns.nth((column as usize).checked_sub(1)?)
        };
        let is_whole = span.start.line == span.end.line;
        let to = match is_whole {
            true => at(span.end.column)?,
            false => line.len(),
        };
        let text = line.get(at(span.start.column)?..to)?.trim();
        if text.is_empty() || text.starts_with('%') || text.contains('`') {
            return None;
        }
        let is_short = text.chars().count() <= LONGEST_QUOTED;
        Some(match is_whole && is_short {
            true => text.to_string(),
            false => {
                let begin: String = text.chars().take(LONGEST_QUOTED - 4).collect();
                format!("{} ...", begin.trim_end())
            }
        })
    }

    /// What a value of a kernel is called in messages: by its name, or, where a front end has made it of an
    /// expression, by the expression.
    pub fn called(&self, kernel: &Kernel, value: Value) -> String {
        self.called_in(kernel, std::slice::from_ref(&kernel.body), value)
    }

    /// The same of a kernel whose instructions are in these regions so far.
    pub(crate) fn called_in(&self, kernel: &Kernel, regions: &[Region], value: Value) -> String {
        fn definition(region: &Region, value: Value) -> Option<&Inst> {
            region.insts.iter().find_map(|inst| {
                let mut inner = inst.kind.regions().into_iter();
                match inst.results.contains(&value) {
                    true => Some(inst),
                    false => inner.find_map(|region| definition(region, value)),
                }
            })
        }
        let info = kernel.values.get(value.0 as usize);
        let is_named = info.is_some_and(|info| info.name.is_some());
        let definition = match is_named || kernel.values.len() > MOST_LOOKED_THROUGH {
            true => None,
            false => regions.iter().find_map(|r| definition(r, value)),
        };
        // Rust tells where a call begins, and no more: its span goes to the next line.
        let is_expression = |span: &Span| span.end.line == span.start.line || span.end.column > 1;
        definition
            .map(|inst| inst.span)
            .filter(is_expression)
            .and_then(|span| self.written(span))
            .unwrap_or_else(|| kernel.value_name(value))
    }
}

/// What is known of a memory object before anything runs.
#[derive(Clone, Debug)]
pub struct MemoryInfo<'a> {
    /// Its name, without the sigil.
    pub name: &'a Arc<str>,
    /// Where it lies.
    pub space: AddressSpace,
    /// What the kernel may do with it.
    pub access: Access,
    /// What one element is.
    pub element: &'a ElementType,
    /// How many elements, where the kernel fixes it.
    pub length: Option<u32>,
}

impl Kernel {
    /// The kernel with an empty body: what it declares, its values among that.
    pub fn declarations(&self) -> Kernel {
        Kernel {
            name: self.name.clone(),
            params: self.params.clone(),
            threadgroup_size: self.threadgroup_size,
            simdgroup_size: self.simdgroup_size,
            float_mode: self.float_mode,
            allow_out_of_bounds_loads: self.allow_out_of_bounds_loads,
            allow_out_of_bounds_stores: self.allow_out_of_bounds_stores,
            allow_uninitialised_reads: self.allow_uninitialised_reads,
            active_collectives: self.active_collectives,
            requires: self.requires.clone(),
            allocs: self.allocs.clone(),
            values: self.values.clone(),
            body: Region::default(),
            span: self.span,
        }
    }

    /// An empty kernel of that name, with a body that only returns.
    pub fn new(name: impl Into<Arc<str>>) -> Kernel {
        Kernel {
            name: name.into(),
            params: Vec::new(),
            threadgroup_size: None,
            simdgroup_size: None,
            float_mode: FloatMode::default(),
            allow_out_of_bounds_loads: false,
            allow_out_of_bounds_stores: false,
            allow_uninitialised_reads: false,
            active_collectives: false,
            requires: Vec::new(),
            allocs: Vec::new(),
            values: Vec::new(),
            body: Region {
                params: Vec::new(),
                insts: vec![Inst {
                    kind: InstKind::Return,
                    results: Default::default(),
                    span: Span::NONE,
                }],
            },
            span: Span::NONE,
        }
    }

    /// The type of a value of this kernel. A number that no value has, which the verifier refuses, has that of
    /// an index.
    pub fn ty(&self, value: Value) -> Type {
        let known = self.values.get(value.0 as usize);
        known.map_or(Type::U32, |value| value.ty)
    }

    /// How a value is called in the text form: `%total`, `%7`; in messages [`Module::called`] says it.
    pub fn value_name(&self, value: Value) -> String {
        match self.values.get(value.0 as usize).map(|v| &v.name) {
            Some(Some(name)) => format!("%{name}"),
            Some(None) | None => format!("%{}", value.0),
        }
    }

    /// Calls `f` on every instruction in the order of the text, those of regions after the
    /// instruction that holds them.
    pub fn for_each_inst<'a>(&'a self, f: &mut dyn FnMut(&'a Inst)) {
        let mut open = vec![self.body.insts.iter()];
        while let Some(insts) = open.last_mut() {
            let Some(inst) = insts.next() else {
                open.pop();
                continue;
            };
            f(inst);
            let inner = inst.kind.regions().into_iter().rev();
            open.extend(inner.map(|region| region.insts.iter()));
        }
    }

    /// Numbers the values in the order of their definition, drops those that nothing defines, and
    /// likewise the arrays whose `alloc` is gone. What nothing defines but something uses becomes
    /// a number that no value has, which the verifier reports.
    pub fn renumber(&mut self) {
        self.renumber_values();
    }

    /// As [`Kernel::renumber`]; gives the new number of each value that is defined.
    pub(crate) fn renumber_values(&mut self) -> HashMap<Value, Value> {
        let mut new = Renumbering {
            old_values: std::mem::take(&mut self.values),
            old_allocs: std::mem::take(&mut self.allocs),
            values: Vec::new(),
            value_map: HashMap::new(),
            allocs: Vec::new(),
            alloc_map: HashMap::new(),
        };
        for param in &mut self.params {
            if let ParamKind::Scalar { value } = &mut param.kind {
                new.define(value);
            }
        }
        with_room(PASSES_BYTES, || new.region(&mut self.body));
        self.values = new.values;
        self.allocs = new.allocs;
        new.value_map
    }
}

/// The state of [`Kernel::renumber`].
struct Renumbering {
    old_values: Vec<ValueInfo>,
    old_allocs: Vec<Alloc>,
    values: Vec<ValueInfo>,
    value_map: HashMap<Value, Value>,
    allocs: Vec<Alloc>,
    alloc_map: HashMap<u32, u32>,
}

impl Renumbering {
    /// Stands for a value or array that nothing defines.
    const MISSING: u32 = u32::MAX;

    fn define(&mut self, value: &mut Value) {
        let new = Value(self.values.len() as u32);
        if let Some(info) = self.old_values.get(value.0 as usize) {
            self.values.push(info.clone());
            self.value_map.insert(*value, new);
            *value = new;
        } else {
            *value = Value(Self::MISSING);
        }
    }

    fn memory(&self, memory: &mut Memory) {
        if let Memory::Alloc(id) = memory {
            *id = self.alloc_map.get(id).copied().unwrap_or(Self::MISSING);
        }
    }

    fn region(&mut self, region: &mut Region) {
        region.params.iter_mut().for_each(|v| self.define(v));
        for inst in &mut region.insts {
            inst.kind.for_each_use_mut(|v| {
                let new = self.value_map.get(v).copied();
                *v = new.unwrap_or(Value(Self::MISSING));
            });
            if let InstKind::Alloc(id) = &mut inst.kind
                && let Some(alloc) = self.old_allocs.get(*id as usize)
            {
                let new = self.allocs.len() as u32;
                self.allocs.push(alloc.clone());
                self.alloc_map.insert(*id, new);
                *id = new;
            } else {
                inst.kind.for_each_memory_mut(|m| self.memory(m));
            }
            inst.results.iter_mut().for_each(|v| self.define(v));
            for region in inst.kind.regions_mut() {
                self.region(region);
            }
        }
    }
}

impl Module {
    /// What is known of a memory object of one of its kernels; `None` if there is no such object.
    pub fn memory<'a>(&'a self, kernel: &'a Kernel, memory: Memory) -> Option<MemoryInfo<'a>> {
        memory_info(&self.constants, kernel, memory)
    }

    /// The same module as if no author had written it: no sources, no calls, no spans.
    pub fn without_spans(&self) -> Module {
        fn erase(region: &mut Region) {
            for inst in &mut region.insts {
                inst.span = Span::NONE;
                inst.kind.regions_mut().into_iter().for_each(erase);
            }
        }
        let mut module = Module {
            sources: Vec::new(),
            calls: Vec::new(),
            ..self.clone()
        };
        let constants = module.constants.iter_mut().map(|c| &mut c.span);
        let function_constants = module.function_constants.iter_mut().map(|c| &mut c.span);
        let structs = module.structs.iter_mut().map(|s| &mut s.span);
        constants
            .chain(function_constants)
            .chain(structs)
            .for_each(|span| *span = Span::NONE);
        for kernel in &mut module.kernels {
            kernel.span = Span::NONE;
            kernel.params.iter_mut().for_each(|p| p.span = Span::NONE);
            let requires = kernel.requires.iter_mut();
            requires.for_each(|r| r.span = Span::NONE);
            with_room(PASSES_BYTES, || erase(&mut kernel.body));
        }
        module
    }

    /// Whether both are the same but for where they were written: the equality that parsing what was
    /// printed restores.
    pub fn same_up_to_spans(&self, other: &Module) -> bool {
        with_room(PASSES_BYTES, || {
            self.without_spans() == other.without_spans()
        })
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| &*k.name == name)
    }
}

/// As [`Module::memory`], for a kernel that is not in its module yet.
pub(crate) fn memory_info<'a>(
    constants: &'a [ConstantArray],
    kernel: &'a Kernel,
    memory: Memory,
) -> Option<MemoryInfo<'a>> {
    match memory {
        Memory::Param(i) => {
            let param = kernel.params.get(i as usize)?;
            let (space, access, element) = match &param.kind {
                ParamKind::Buffer { access, element } => (AddressSpace::Device, *access, element),
                ParamKind::Constant { element } => (AddressSpace::Constant, Access::Read, element),
                ParamKind::Threadgroup { element } => {
                    (AddressSpace::Threadgroup, Access::ReadWrite, element)
                }
                ParamKind::Texture(texture) => (
                    AddressSpace::Texture,
                    texture.access.memory(),
                    texture.element(),
                ),
                ParamKind::Scalar { .. } | ParamKind::Sampler => return None,
            };
            Some(MemoryInfo {
                name: &param.name,
                space,
                access,
                element,
                length: None,
            })
        }
        Memory::Alloc(i) => kernel.allocs.get(i as usize).map(|a| MemoryInfo {
            name: &a.name,
            space: a.space,
            access: Access::ReadWrite,
            element: &a.element,
            length: Some(a.length),
        }),
        Memory::Constant(i) => constants.get(i as usize).map(|c| MemoryInfo {
            name: &c.name,
            space: AddressSpace::Constant,
            access: Access::Read,
            element: &c.element,
            length: Some(c.length),
        }),
    }
}
