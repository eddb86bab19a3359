//! How each memory object is stored, from what the kernel does with it.
//!
//! Device and constant buffers lie in L3's layout, so their WGSL element must be one whose layout is the
//! same: a 32-bit or 64-bit scalar if all their locations are of one such type, a vector of 2 or 4 if
//! every access takes whole ones, else words. Threadgroup and thread arrays are seen by no others and
//! have an element a location, unless their locations differ in type.
//!
//! Two things make an object atomic: atomics on it, and plain loads from it of what reaches an index, a
//! bound or a branch while the kernel writes it (see the module's header). A third is a store of less
//! than a word to words that threads share (L2).

use std::collections::{BTreeMap, HashSet};

use invar_ir::{
    AddressSpace, AtomicOp, Diagnostic, Diagnostics, ElementType, Inst, InstKind, Kernel, Memory,
    Module, ParamKind, Place, Rule, Scalar, Spaces, Type, Width,
};

use super::interface::{Features, WgslOptions};
use super::roles::is_matrix_operation;
use super::types;
use crate::analysis::control_dependence::{self, ControlDependence};

/// The WGSL array that holds an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// An element a location; of 8- and 16-bit types only where no layout is seen, but for `f16` where the
    /// target has it. That of a `bool` is a word: an NVIDIA compiler (580.159) lets a store to a workgroup
    /// array of `bool` change others.
    Scalars(Scalar),
    /// A vector for each that many locations.
    Vectors(Scalar, u8),
    /// Words in L3's layout.
    Words,
    /// An atomic a location, which holds the bits of what [`Storage::Scalars`] would hold.
    AtomicScalars(Scalar),
    /// Atomic words in L3's layout.
    AtomicWords,
}

impl Storage {
    /// The type of an element that is of floats.
    pub(super) fn floats(self) -> Option<Type> {
        match self {
            Storage::Scalars(s) if s.is_float() => Some(Type::Scalar(s)),
            Storage::Vectors(s, n) if s.is_float() => Some(Type::Vector(s, n)),
            _bits => None,
        }
    }

    /// The WGSL type of an element.
    pub(super) fn wgsl(self) -> String {
        match self {
            Storage::Scalars(Scalar::Bool) => "u32".to_string(),
            Storage::Scalars(s) => types::scalar(s).to_string(),
            Storage::Vectors(s, n) => format!("vec{n}<{}>", types::scalar(s)),
            Storage::Words => "u32".to_string(),
            Storage::AtomicScalars(Scalar::I32) => "atomic<i32>".to_string(),
            Storage::AtomicScalars(s @ (Scalar::I64 | Scalar::U64)) => {
                format!("atomic<{}>", types::scalar(s))
            }
            Storage::AtomicScalars(_) | Storage::AtomicWords => "atomic<u32>".to_string(),
        }
    }

    /// Bytes of an element in workgroup memory.
    pub(super) fn slot_bytes(self, features: Features) -> u64 {
        match self {
            Storage::Scalars(s) => types::held_bytes(s, features),
            Storage::AtomicScalars(s) => s.size_bytes().max(4),
            Storage::Vectors(s, n) => s.size_bytes() * u64::from(n),
            Storage::Words | Storage::AtomicWords => 4,
        }
    }

    /// Whether offsets into it count bytes; else they count locations.
    pub(super) fn counts_bytes(self) -> bool {
        matches!(self, Storage::Words | Storage::AtomicWords)
    }
}

/// How an object is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub storage: Storage,
    /// The kernel stores to it or has atomics on it.
    pub written: bool,
    /// A barrier orders accesses to it.
    pub coherent: bool,
    /// Elements of the WGSL array, where that is fixed.
    pub slots: u64,
    /// Its length in elements of the language, where that is fixed.
    pub length: Option<u64>,
}

/// How everything is stored.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    objects: BTreeMap<(u8, u32), Object>,
    /// Threads meet in the kernel: a barrier, an exchange between lanes, a wait for a copy.
    pub collective: bool,
}

/// Parameters come first, then constants, then arrays.
fn key(memory: Memory) -> (u8, u32) {
    match memory {
        Memory::Param(i) => (0, i),
        Memory::Constant(i) => (1, i),
        Memory::Alloc(i) => (2, i),
    }
}

impl Plan {
    /// The objects that the kernel has.
    pub(super) fn memories(&self) -> Vec<Memory> {
        self.objects
            .keys()
            .map(|(class, i)| match class {
                0 => Memory::Param(*i),
                1 => Memory::Constant(*i),
                _ => Memory::Alloc(*i),
            })
            .collect()
    }

    pub(super) fn object(&self, memory: Memory) -> Object {
        self.objects[&key(memory)]
    }
}

/// What a kernel does with an object.
#[derive(Clone, Debug, Default)]
struct Uses {
    read: bool,
    written: bool,
    /// Scalars of its atomics.
    atomics: HashSet<Scalar>,
    /// A plain load from it decides on an index, a bound or a branch.
    control_dependent: bool,
    /// It is stored to in parts of less than a word.
    narrow_stores: bool,
    /// Every access takes whole vectors of this many scalars; 0 if one does not.
    vector: Option<u8>,
    /// A program-scope constant that nothing names needs no binding.
    named: bool,
    coherent: bool,
}

/// Plans the storage of everything in a kernel.
pub(super) fn plan(
    module: &Module,
    kernel: &Kernel,
    options: &WgslOptions,
) -> Result<Plan, Diagnostics> {
    let mut uses: BTreeMap<(u8, u32), Uses> = BTreeMap::new();
    for (i, param) in kernel.params.iter().enumerate() {
        match param.kind {
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Threadgroup { .. } => {
                uses.insert(key(Memory::Param(i as u32)), Uses::default());
            }
            ParamKind::Scalar { .. } | ParamKind::Texture(_) | ParamKind::Sampler => {}
        }
    }
    for i in 0..kernel.allocs.len() {
        uses.insert(key(Memory::Alloc(i as u32)), Uses::default());
    }
    let control_dependent = control_dependence::analyse(kernel);
    let mut collective = false;
    let mut orders_device = false;
    kernel.for_each_inst(&mut |inst| {
        collective |= waits(inst);
        orders_device |= matches!(inst.kind,
            InstKind::Barrier { spaces, .. } if spaces.contains(Spaces::DEVICE));
        gather(module, kernel, inst, &control_dependent, &mut uses);
    });
    for (place, uses) in &mut uses {
        uses.coherent |= orders_device && place.0 == 0;
    }
    let mut lengths = options.threadgroup_lengths.iter();
    let mut objects = BTreeMap::new();
    let mut errors = Vec::new();
    for (place, uses) in &uses {
        let memory = match place.0 {
            0 => Memory::Param(place.1),
            1 => Memory::Constant(place.1),
            _ => Memory::Alloc(place.1),
        };
        let Some(info) = module.memory(kernel, memory) else {
            continue;
        };
        if place.0 == 1 && !uses.named {
            continue;
        }
        let mut length = info.length.map(u64::from);
        if let (Memory::Param(i), AddressSpace::Threadgroup) = (memory, info.space) {
            length = lengths.next().copied();
            if length.is_none() {
                let param = &kernel.params[i as usize];
                let message = format!(
                    "threadgroup parameter `%{}` has no length: WGSL fixes it when the kernel is compiled",
                    param.name
                );
                let help = format!(
                    "give it a length, as `invar emit --arg \"{}=length(64)\"` does",
                    param.name
                );
                let error = Diagnostic::error(Rule::InvalidArgument, param.span, message);
                errors.push(error.help(help));
                continue;
            }
        }
        match storage(module, info.element, info.space, uses, options) {
            Ok(storage) => {
                let extent = info.element.extent(&module.structs);
                let each = extent.map_or(0, |e| {
                    if storage.counts_bytes() {
                        e.size_bytes
                    } else {
                        e.location_count
                    }
                });
                let units = each * length.unwrap_or(0);
                let slots = match storage {
                    Storage::Words | Storage::AtomicWords => units.div_ceil(4),
                    Storage::Vectors(_, n) => units / u64::from(n),
                    Storage::Scalars(_) | Storage::AtomicScalars(_) => units,
                };
                objects.insert(
                    *place,
                    Object {
                        storage,
                        written: uses.written,
                        coherent: uses.coherent && uses.written,
                        slots,
                        length,
                    },
                );
            }
            Err(why) => {
                let message = format!("`{}` {why}", info.name);
                errors.push(Diagnostic::error(
                    Rule::UnsupportedFeature,
                    kernel.span,
                    message,
                ));
            }
        }
    }
    if lengths.next().is_some() {
        let message = "there are more lengths than threadgroup parameters".to_string();
        errors.push(Diagnostic::error(
            Rule::InvalidArgument,
            kernel.span,
            message,
        ));
    }
    if errors.is_empty() {
        Ok(Plan {
            objects,
            collective,
        })
    } else {
        Err(Diagnostics(errors))
    }
}

fn storage(
    module: &Module,
    element: &ElementType,
    space: AddressSpace,
    uses: &Uses,
    options: &WgslOptions,
) -> Result<Storage, String> {
    let size = element.extent(&module.structs).map_or(0, |e| e.size_bytes);
    let count = element
        .extent(&module.structs)
        .map_or(0, |e| e.location_count);
    let first = element.first_locations(&module.structs, 1);
    let uniform = first
        .first()
        .map(|(_, scalar)| *scalar)
        .filter(|scalar| size == count * scalar.size_bytes() && all_of(element, module, *scalar));
    let wide = |s: Scalar| s.size_bytes() == 8;
    let has_f64 = uniform == Some(Scalar::F64) || uses.atomics.contains(&Scalar::F64);
    if has_f64 {
        return Err("holds f64, which WGSL does not have".to_string());
    }
    let wide_atomics = uses.atomics.iter().any(|s| wide(*s));
    if wide_atomics {
        if !options.features.int64_atomics {
            return Err("has atomics on 64-bit integers, which the target lacks".to_string());
        }
        if !uniform.is_some_and(wide) {
            return Err(
                "has atomics on 64-bit integers beside locations of other types, which WGSL lacks"
                    .to_string(),
            );
        }
    }
    let shared = matches!(space, AddressSpace::Device | AddressSpace::Threadgroup);
    let atomic = !uses.atomics.is_empty() || (shared && uses.written && uses.control_dependent);
    let laid_out = matches!(space, AddressSpace::Device | AddressSpace::Constant);
    let Some(scalar) = uniform else {
        return Ok(if shared && (atomic || uses.narrow_stores) {
            Storage::AtomicWords
        } else {
            Storage::Words
        });
    };
    let own_element =
        scalar.size_bytes() >= 4 || (scalar == Scalar::F16 && options.features.f16 && !atomic);
    let seen_layout_is_ours = !laid_out || own_element;
    Ok(if wide_atomics {
        Storage::AtomicScalars(scalar)
    } else if !seen_layout_is_ours {
        if atomic || uses.narrow_stores {
            Storage::AtomicWords
        } else {
            Storage::Words
        }
    } else if wide(scalar) {
        if atomic {
            Storage::AtomicWords
        } else if options.features.int64 {
            Storage::Scalars(scalar)
        } else {
            Storage::Words
        }
    } else if atomic {
        Storage::AtomicScalars(scalar)
    } else {
        match uses.vector {
            Some(n @ (2 | 4)) if laid_out => Storage::Vectors(scalar, n),
            Some(_) | None => Storage::Scalars(scalar),
        }
    })
}

/// Whether all locations of an element are of that type.
fn all_of(element: &ElementType, module: &Module, scalar: Scalar) -> bool {
    match element {
        ElementType::Value(ty) => ty.scalar() == Some(scalar),
        ElementType::Array(inner, _) => all_of(inner, module, scalar),
        ElementType::Struct(id) => module.structs[id.0 as usize]
            .fields
            .iter()
            .all(|(_, field)| all_of(field, module, scalar)),
    }
}

/// Whether some location of an element is narrower than a word.
fn has_narrow(element: &ElementType, module: &Module) -> bool {
    match element {
        ElementType::Value(ty) => ty.scalar().is_some_and(|s| s.size_bytes() < 4),
        ElementType::Array(inner, _) => has_narrow(inner, module),
        ElementType::Struct(id) => module.structs[id.0 as usize]
            .fields
            .iter()
            .any(|(_, field)| has_narrow(field, module)),
    }
}

/// Whether threads wait for each other in an instruction as it is written here. Matrices and the issue of async
/// copies are spread over the lanes, each of which does its share and goes on.
fn waits(inst: &Inst) -> bool {
    let spread = is_matrix_operation(&inst.kind) || matches!(inst.kind, InstKind::AsyncCopy { .. });
    inst.kind.meets().is_some() && !spread
}

fn gather(
    module: &Module,
    kernel: &Kernel,
    inst: &Inst,
    control_dependent: &ControlDependence,
    uses: &mut BTreeMap<(u8, u32), Uses>,
) {
    let element = |memory: Memory| {
        module
            .memory(kernel, memory)
            .map(|info| info.element.clone())
    };
    // How many scalars an access takes if they are whole vectors of the object's own kind.
    let vector = |place: &Place| match (place.width, element(place.memory)) {
        (Width::Group(n), _) => n,
        (Width::One, Some(ElementType::Value(Type::Vector(_, n)))) => n,
        (Width::One | Width::Run(_), _) => 0,
    };
    let mut touch = |memory: Memory, f: &mut dyn FnMut(&mut Uses)| {
        let uses = uses.entry(key(memory)).or_default();
        uses.named = true;
        f(uses);
    };
    let agree = |uses: &mut Uses, n: u8| {
        uses.vector = match uses.vector {
            None => Some(n),
            Some(before) if before == n => Some(n),
            Some(_) => Some(0),
        }
    };
    match &inst.kind {
        InstKind::Load(place) => touch(place.memory, &mut |uses| {
            uses.read = true;
            uses.control_dependent |= inst.results.iter().any(|v| control_dependent.value(*v));
            agree(uses, vector(place));
        }),
        InstKind::Store { place, value } => touch(place.memory, &mut |uses| {
            uses.written = true;
            let scalar = kernel.ty(*value).scalar();
            uses.narrow_stores |= scalar.is_some_and(|s| s.size_bytes() < 4);
            agree(uses, vector(place));
        }),
        InstKind::Atomic {
            op, place, args, ..
        } => touch(place.memory, &mut |uses| {
            uses.read = true;
            uses.written |= *op != AtomicOp::Load;
            let ty = match (args.first(), inst.results.first()) {
                (Some(value), _) | (None, Some(value)) => kernel.ty(*value).scalar(),
                (None, None) => None,
            };
            uses.atomics.extend(ty);
            agree(uses, 0);
        }),
        InstKind::BufferLength(memory) => touch(*memory, &mut |_| {}),
        other => {
            let accesses = other.accesses();
            // What is copied to an array that decides, decides.
            let decides = accesses.iter().any(|access| match access.memory {
                Memory::Alloc(i) => access.mode.writes() && control_dependent.array(i),
                Memory::Param(_) | Memory::Constant(_) => false,
            });
            for access in &accesses {
                let (reads, writes) = (access.mode.reads(), access.mode.writes());
                let narrow = element(access.memory).is_some_and(|e| has_narrow(&e, module));
                touch(access.memory, &mut |uses| {
                    uses.read |= reads;
                    uses.written |= writes;
                    uses.control_dependent |= reads && decides;
                    uses.narrow_stores |= writes && narrow;
                    agree(uses, 0);
                });
            }
        }
    }
}

/// The bytes of a program-scope constant, padded to 16.
pub(super) fn contents(module: &Module, constant: u32) -> Vec<u8> {
    let array = &module.constants[constant as usize];
    let size = array
        .element
        .extent(&module.structs)
        .map_or(0, |e| e.size_bytes) as usize;
    let locations = array.element.locations(&module.structs);
    let mut bytes = vec![0; (size * array.length as usize).next_multiple_of(16).max(16)];
    for (i, value) in array.values.iter().enumerate() {
        let (offset, scalar) = locations[i % locations.len()];
        let at = i / locations.len() * size + offset as usize;
        let width = scalar.size_bytes() as usize;
        bytes[at..at + width].copy_from_slice(&value.bits.to_le_bytes()[..width]);
    }
    bytes
}
