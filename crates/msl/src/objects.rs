//! Which object each address leads to, and what each object is accessed by.
//!
//! An address has a *root*: a parameter, a variable of the thread, or one outside functions. An object's
//! *granule* is the greatest common divisor of the widths of all accesses to it: the locations that races and
//! bounds are about. Wider accesses are put together from granules.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use invar_ir::Scalar;
use invar_llvm::foreign::{Binary, DebugType, Function, Inst, Kind, Operand, Param, Type};

use crate::fields::{self, Field};
use crate::needed::needed;

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Root {
    Param(usize),
    /// The instruction that makes room.
    Variable(usize),
    Global(usize),
    /// What an address in memory leads to: the field that holds it.
    Field(usize),
}

/// An access to an object.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub ty: Type,
    /// Bytes from the root, if they are known.
    pub offset: Option<i64>,
    pub reads: bool,
    pub writes: bool,
    /// The width of a copy, which fits any granule.
    pub is_copy: bool,
    /// Of an atomic that computes, the kind of numbers.
    asks: Option<Asks>,
    /// The instruction.
    pub inst: usize,
}

#[derive(Default)]
pub(crate) struct Objects {
    /// By instruction.
    roots: HashMap<usize, BTreeSet<Root>>,
    pub accesses: BTreeMap<Root, Vec<Access>>,
    /// What the distance from the root is a multiple of, in bytes, by instruction; 0 for none.
    alignments: HashMap<usize, u64>,
    /// By instruction, whether anything comes of it.
    needed: Vec<bool>,
    /// Parameters that are textures and samplers.
    handles: BTreeSet<Root>,
    /// Fields that hold addresses, and which of them each load of an address may read.
    pub fields: Vec<Field>,
    fields_of: HashMap<usize, Vec<usize>>,
}

/// Lets what is read through a phi of addresses, all of which are one place that is known, be read there: a loop hands on
/// the address of a bound that is loaded in it and behind it.
pub(crate) fn one_place(f: &mut Function) {
    let is_place = |at: usize| {
        let inst = &f.insts[at];
        let is_fixed = matches!(&inst.kind, Kind::Offset(_, scales) if scales.is_empty());
        let base = inst.operands.first();
        is_fixed && matches!(base, Some(Operand::Param(_) | Operand::Global(..)))
    };
    let mut places: HashMap<usize, usize> = HashMap::new();
    for (phi, inst) in f.insts.iter().enumerate() {
        if !matches!(inst.kind, Kind::Phi(_)) || inst.ty != Type::Pointer {
            continue;
        }
        let mut others = inst.operands.iter().filter(|o| **o != Operand::Inst(phi));
        if let Some(Operand::Inst(first)) = others.next()
            && others.all(|other| *other == Operand::Inst(*first))
        {
            let place = places.get(first).copied().unwrap_or(*first);
            if is_place(place) {
                places.insert(phi, place);
            }
        }
    }
    for operand in f.insts.iter_mut().flat_map(|inst| &mut inst.operands) {
        if let Operand::Inst(phi) = operand
            && let Some(place) = places.get(phi)
        {
            *operand = Operand::Inst(*place);
        }
    }
}

/// Whether a parameter is a texture or a sampler: a class of the headers that holds an address.
pub(crate) fn is_handle(param: &Param) -> bool {
    param.debug.as_ref().is_some_and(fields::is_handle_type)
}

/// The operands of an instruction that are addresses it passes on.
fn passed_on(kind: &Kind) -> Option<std::ops::Range<usize>> {
    match kind {
        Kind::Offset(..) | Kind::Freeze => Some(0..1),
        Kind::Phi(from) => Some(0..from.len()),
        Kind::Select => Some(1..3),
        _other => None,
    }
}

/// Whether an instruction makes a number of an address.
pub(crate) fn is_number_of(kind: &Kind) -> bool {
    matches!(kind, Kind::Other(name) if name == "ptrtoint")
}

/// Whether it makes an address of a number.
pub(crate) fn is_address_of(kind: &Kind) -> bool {
    matches!(kind, Kind::Other(name) if name == "inttoptr")
}

/// The operands of an instruction on numbers that are addresses which it passes on.
fn numbers_passed_on(inst: &Inst) -> Option<std::ops::Range<usize>> {
    match &inst.kind {
        kind if is_number_of(kind) || is_address_of(kind) => Some(0..1),
        Kind::Binary(Binary::Add | Binary::Sub | Binary::And) if inst.ty == Type::Int(64) => {
            Some(0..2)
        }
        _other => None,
    }
}

/// Whether a kernel has addresses as numbers.
pub(crate) fn has_address_numbers(f: &Function) -> bool {
    let mut all = f.insts.iter();
    all.any(|inst| is_number_of(&inst.kind) || is_address_of(&inst.kind))
}

/// What an atomic or matrix function of the headers accesses: the operand, its type, and whether it reads and
/// writes.
fn accessed(name: &str) -> Option<(usize, Type, bool, bool)> {
    let parts: Vec<&str> = name.split('.').collect();
    let scalar = |s: &str| match s {
        "f16" => Type::Half,
        "bf16" => Type::BFloat,
        "f32" => Type::Float,
        "u64" | "i64" => Type::Int(64),
        _other => Type::Int(32),
    };
    match parts[..] {
        ["invar", "sgm", "load", s] => Some((0, scalar(s), true, false)),
        ["invar", "sgm", "store", s] => Some((1, scalar(s), false, true)),
        // Here a buffer with atomics is read and written.
        ["invar", "atomic", op, s] => Some((0, scalar(s), true, op != "load")),
        _ => None,
    }
}

/// What memory has to hold for an atomic that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asks {
    /// Floats, of which there are sums.
    Floats,
    /// Integers, as which also floats are compared and exchanged.
    Integers,
    /// Integers with a sign, or without one: it says which is the least.
    Ordered(bool),
}

/// What an atomic of the headers asks for.
fn asked(name: &str) -> Option<Asks> {
    let (op, scalar) = name.strip_prefix("invar.atomic.")?.split_once('.')?;
    match (op, scalar) {
        ("load" | "store" | "exchange", _) => None,
        ("compare_exchange", _) => Some(Asks::Integers),
        (_, "f32" | "f16" | "bf16") => Some(Asks::Floats),
        ("min" | "max", "i32" | "i64") => Some(Asks::Ordered(true)),
        ("min" | "max", _) => Some(Asks::Ordered(false)),
        _integers => Some(Asks::Integers),
    }
}

/// The scalar of as many bits that suits what atomics ask for; where they ask for several kinds, those that are of
/// another one are refused.
fn suited(scalar: Scalar, asks: &BTreeSet<Asks>) -> Scalar {
    let mut signs = asks.iter().filter_map(|asks| match asks {
        Asks::Ordered(sign) => Some(*sign),
        Asks::Floats | Asks::Integers => None,
    });
    let (sign, is_one) = (signs.next(), signs.next().is_none());
    let floats = asks.contains(&Asks::Floats);
    match (floats, sign, scalar.bits()) {
        _ if asks.is_empty() => scalar,
        (true, _, 32) => Scalar::F32,
        (true, ..) => scalar,
        (false, Some(sign), 32 | 64) if is_one && scalar.is_integer() => with_sign(scalar, sign),
        (false, sign, 32) if scalar.is_float() => with_sign(Scalar::U32, sign == Some(true)),
        (false, ..) => scalar,
    }
}

/// The width in which so many bytes are copied if nothing else says one.
fn copied_by(bytes: u64) -> Type {
    match bytes {
        n if n % 4 == 0 => Type::Int(32),
        n if n % 2 == 0 => Type::Int(16),
        _odd => Type::Int(8),
    }
}

impl Objects {
    pub fn of(f: &Function) -> Objects {
        let mut objects = Objects {
            fields: fields::fields(f),
            ..Objects::default()
        };
        for inst in 0..f.insts.len() {
            let read = fields::read_by(f, &objects.fields, inst);
            if !read.is_empty() {
                objects.fields_of.insert(inst, read);
            }
        }
        objects.find_roots(f);
        objects.find_alignments(f);
        objects.needed = needed(f, &objects);
        objects.find_accesses(f);
        objects
    }

    /// Whether anything comes of an instruction.
    pub fn is_needed(&self, inst: usize) -> bool {
        self.needed.get(inst).copied().unwrap_or(true)
    }

    /// Whether an address leads to textures and samplers. What is loaded from there stands for them.
    pub fn are_handles(&self, operand: &Operand) -> bool {
        let roots = self.roots_of(operand);
        !roots.is_empty() && roots.iter().all(|root| self.handles.contains(root))
    }

    /// The fields that a load of an address may read.
    pub fn read_fields(&self, inst: usize) -> Option<&[usize]> {
        self.fields_of.get(&inst).map(|fields| &**fields)
    }

    /// Whether the address in a field is loaded by what is needed.
    pub fn is_read(&self, root: Root) -> bool {
        self.fields_of.iter().any(|(inst, fields)| {
            self.is_needed(*inst) && fields.iter().any(|field| Root::Field(*field) == root)
        })
    }

    fn find_roots(&mut self, f: &Function) {
        for (inst, fields) in &self.fields_of {
            let roots = fields.iter().map(|field| Root::Field(*field)).collect();
            self.roots.insert(*inst, roots);
        }
        for (number, param) in f.params.iter().enumerate() {
            if is_handle(param) {
                self.handles.insert(Root::Param(number));
            }
        }
        for (number, inst) in f.insts.iter().enumerate() {
            if matches!(inst.kind, Kind::Alloca(_)) {
                self.roots
                    .insert(number, BTreeSet::from([Root::Variable(number)]));
            }
        }
        let has_numbers = has_address_numbers(f);
        loop {
            let mut changed = false;
            for (number, inst) in f.insts.iter().enumerate() {
                let range = match inst.kind {
                    Kind::Load if self.are_handles(&inst.operands[0]) => Some(0..1),
                    _ => passed_on(&inst.kind),
                };
                let range = range.filter(|_| inst.ty == Type::Pointer);
                let numbers = match has_numbers {
                    true => numbers_passed_on(inst),
                    false => None,
                };
                let Some(range) = range.or(numbers) else {
                    continue;
                };
                let all: BTreeSet<Root> = inst.operands[range]
                    .iter()
                    .flat_map(|o| self.roots_of(o))
                    .collect();
                if self.roots.get(&number) != Some(&all) {
                    self.roots.insert(number, all);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Where it is decided which object an address leads to: two addresses of one such place lead to the same.
    pub fn decided(&self, f: &Function, operand: &Operand) -> Option<Operand> {
        self.decided_at(f, operand, &mut BTreeSet::new())
    }

    /// `None` on the way round a loop, where it is decided before.
    fn decided_at(
        &self,
        f: &Function,
        operand: &Operand,
        phis: &mut BTreeSet<usize>,
    ) -> Option<Operand> {
        let Operand::Inst(number) = operand else {
            return Some(operand.clone());
        };
        let inst = &f.insts[*number];
        let leads = |operand: &&Operand| !self.roots_of(operand).is_empty();
        match &inst.kind {
            Kind::Phi(_) => {
                if !phis.insert(*number) {
                    return None;
                }
                let all = inst.operands.iter();
                let mut all = all.filter_map(|o| self.decided_at(f, o, phis));
                match all.next() {
                    Some(first) if all.all(|other| other == first) => Some(first),
                    _several => Some(operand.clone()),
                }
            }
            Kind::Offset(..) | Kind::Freeze => self.decided_at(f, &inst.operands[0], phis),
            kind if is_number_of(kind) || is_address_of(kind) => {
                self.decided_at(f, &inst.operands[0], phis)
            }
            Kind::Binary(_) => {
                let mut all = inst.operands.iter().filter(leads);
                match (all.next(), all.next()) {
                    (Some(only), None) => self.decided_at(f, only, phis),
                    _both => Some(operand.clone()),
                }
            }
            _elsewhere => Some(operand.clone()),
        }
    }

    /// The objects that an address may lead to.
    pub fn roots_of(&self, operand: &Operand) -> Vec<Root> {
        match operand {
            Operand::Param(number) => vec![Root::Param(*number)],
            Operand::Global(number, _) => vec![Root::Global(*number)],
            Operand::Inst(number) => self
                .roots
                .get(number)
                .into_iter()
                .flatten()
                .copied()
                .collect(),
            _no_object => Vec::new(),
        }
    }

    fn find_alignments(&mut self, f: &Function) {
        loop {
            let mut changed = false;
            for (number, inst) in f.insts.iter().enumerate() {
                if is_address_of(&inst.kind) {
                    changed |= self.alignments.insert(number, 1) != Some(1);
                    continue;
                }
                let Some(range) = passed_on(&inst.kind).filter(|_| inst.ty == Type::Pointer) else {
                    continue;
                };
                let mut all = inst.operands[range]
                    .iter()
                    .map(|o| self.alignment(o))
                    .fold(0, gcd);
                if let Kind::Offset(constant, scales) = &inst.kind {
                    all = gcd(all, constant.unsigned_abs());
                    for (operand, scale) in inst.operands[1..].iter().zip(scales) {
                        all = gcd(
                            all,
                            scale.unsigned_abs().saturating_mul(multiple(f, operand, 8)),
                        );
                    }
                }
                if self.alignments.get(&number).copied().unwrap_or(0) != all {
                    self.alignments.insert(number, all);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// What an address's distance from its root is a multiple of; 0 at the root.
    pub fn alignment(&self, operand: &Operand) -> u64 {
        match operand {
            Operand::Inst(number) => self.alignments.get(number).copied().unwrap_or(0),
            Operand::Global(_, offset) => offset.unsigned_abs(),
            _root => 0,
        }
    }

    fn find_accesses(&mut self, f: &Function) {
        for (number, inst) in f.insts.iter().enumerate() {
            // What a handle or a field of addresses holds is not memory of the kernel's.
            let is_handle = inst.kind == Kind::Load && self.are_handles(&inst.operands[0]);
            if !self.needed[number] || is_handle || self.fields_of.contains_key(&number) {
                continue;
            }
            let asks = match &inst.kind {
                Kind::Call(name) => asked(name),
                _other => None,
            };
            let mut add = |operand: &Operand, ty, (reads, writes), is_copy| {
                let offset = constant_offset(f, operand);
                for root in self.roots_of(operand) {
                    self.accesses.entry(root).or_default().push(Access {
                        ty,
                        offset,
                        reads,
                        writes,
                        is_copy,
                        asks,
                        inst: number,
                    });
                }
            };
            match &inst.kind {
                Kind::Load => add(&inst.operands[0], inst.ty, (true, false), false),
                Kind::Store => add(&inst.operands[1], inst.types[0], (false, true), false),
                Kind::Call(name) if name.starts_with("llvm.mem") => {
                    let bytes = match inst.operands.get(2) {
                        Some(Operand::Bits(_, bytes)) => *bytes,
                        _unknown => 1,
                    };
                    add(&inst.operands[0], copied_by(bytes), (false, true), true);
                    if !name.starts_with("llvm.memset") {
                        add(&inst.operands[1], copied_by(bytes), (true, false), true);
                    }
                }
                Kind::Call(name) => {
                    if let Some((operand, ty, reads, writes)) = accessed(name) {
                        add(&inst.operands[operand], ty, (reads, writes), false);
                    }
                }
                _no_access => {}
            }
        }
    }

    /// The granule of an object: its bytes, and the scalar that the accesses say it is.
    pub fn granule(&self, root: Root, debug: Option<&DebugType>) -> (u64, Scalar) {
        let all = self.accesses.get(&root).map_or(&[][..], |a| a);
        let real: Vec<&Access> = match all.iter().any(|a| !a.is_copy) {
            true => all.iter().filter(|a| !a.is_copy).collect(),
            false => all.iter().collect(),
        };
        let bytes = real.iter().map(|a| width(a.ty)).fold(0, gcd);
        let mut written = Vec::new();
        if let Some(debug) = debug {
            scalars(debug, &mut written);
        }
        if bytes == 0 {
            let scalar = written.first().copied().unwrap_or(Scalar::F32);
            return (scalar.size_bytes(), scalar);
        }
        let mut counts: BTreeMap<Scalar, usize> = BTreeMap::new();
        for access in &real {
            if width(access.ty) == bytes
                && let Some(scalar) = scalar_of(access.ty)
            {
                *counts.entry(scalar).or_default() += 1;
            }
        }
        let most = counts
            .iter()
            .max_by_key(|(_, count)| **count)
            .map(|(s, _)| *s);
        let asks: BTreeSet<Asks> = real.iter().filter_map(|a| a.asks).collect();
        let scalar = most.unwrap_or(match bytes {
            1 => Scalar::U8,
            2 => Scalar::U16,
            4 => Scalar::U32,
            _eight => Scalar::U64,
        });
        // Copies of what is a class in the headers are of integers.
        if let Some((first, rest)) = written.split_first()
            && first.size_bytes() == bytes
            && rest.iter().all(|s| s == first)
        {
            return (bytes, suited(*first, &asks));
        }
        let alike = |s: &&Scalar| s.size_bytes() == bytes && s.is_integer() == scalar.is_integer();
        let scalar = written.iter().find(alike).copied().unwrap_or(scalar);
        (bytes, suited(scalar, &asks))
    }
}

/// The bytes of one access; a matrix of a simdgroup is accessed by its elements.
fn width(ty: Type) -> u64 {
    match ty.size_bytes() {
        0 => 1,
        bytes => bytes,
    }
}

/// The bits of an integer of LLVM's that no scalar has.
pub(crate) fn odd_bits(ty: Type) -> Option<u32> {
    match ty {
        Type::Int(1 | 8 | 16 | 32 | 64) => None,
        Type::Int(bits) => Some(bits),
        _other => None,
    }
}

/// The scalar that a value of LLVM's is. An integer of other widths is in the low bits of the next wider one, and
/// the rest is 0.
pub(crate) fn scalar_of(ty: Type) -> Option<Scalar> {
    Some(match ty {
        Type::Int(1) => Scalar::Bool,
        Type::Int(2..=8) => Scalar::U8,
        Type::Int(9..=16) => Scalar::U16,
        Type::Int(17..=32) => Scalar::U32,
        Type::Int(33..=64) => Scalar::U64,
        Type::Half => Scalar::F16,
        Type::BFloat => Scalar::BF16,
        Type::Float => Scalar::F32,
        Type::Double => Scalar::F64,
        _none => return None,
    })
}

/// The same bits with or without a sign.
pub(crate) fn with_sign(scalar: Scalar, signed: bool) -> Scalar {
    match (scalar, signed) {
        (Scalar::U8, true) => Scalar::I8,
        (Scalar::U16, true) => Scalar::I16,
        (Scalar::U32, true) => Scalar::I32,
        (Scalar::U64, true) => Scalar::I64,
        (Scalar::I8, false) => Scalar::U8,
        (Scalar::I16, false) => Scalar::U16,
        (Scalar::I32, false) => Scalar::U32,
        (Scalar::I64, false) => Scalar::U64,
        (same, _) => same,
    }
}

/// The scalar of a type as it was written; a `bool` in memory is a byte.
pub(crate) fn written_scalar(name: &str, bytes: u64) -> Option<Scalar> {
    let unsigned = name.starts_with("unsigned") || name == "bool" || name == "char8_t";
    Some(match (name, bytes) {
        ("_Float16" | "half", _) => Scalar::F16,
        ("__bf16", _) => Scalar::BF16,
        ("float", _) => Scalar::F32,
        ("double", _) => Scalar::F64,
        (_, 1) if unsigned => Scalar::U8,
        (_, 2) if unsigned => Scalar::U16,
        (_, 4) if unsigned => Scalar::U32,
        (_, 8) if unsigned => Scalar::U64,
        (_, 1) => Scalar::I8,
        (_, 2) => Scalar::I16,
        (_, 4) => Scalar::I32,
        (_, 8) => Scalar::I64,
        _other => return None,
    })
}

/// The scalars in a type.
fn scalars(ty: &DebugType, out: &mut Vec<Scalar>) {
    match ty {
        DebugType::Scalar(name, bytes) => out.extend(written_scalar(name, *bytes)),
        DebugType::Pointer(inner) | DebugType::Array(inner, _) => scalars(inner, out),
        DebugType::Struct(_, _, fields) => fields.iter().for_each(|f| scalars(&f.ty, out)),
        DebugType::Other(..) => {}
    }
}

/// Bytes from the root, if they are the same always.
fn constant_offset(f: &Function, operand: &Operand) -> Option<i64> {
    match operand {
        Operand::Param(_) => Some(0),
        Operand::Global(_, offset) => Some(*offset),
        Operand::Inst(number) => match &f.insts[*number].kind {
            Kind::Alloca(_) => Some(0),
            Kind::Offset(constant, scales) if scales.is_empty() => {
                Some(constant_offset(f, &f.insts[*number].operands[0])? + constant)
            }
            _computed => None,
        },
        _none => None,
    }
}

/// A number that an integer is always a multiple of.
fn multiple(f: &Function, operand: &Operand, depth: u32) -> u64 {
    let Operand::Inst(number) = operand else {
        return match operand {
            Operand::Bits(_, bits) => *bits,
            _unknown => 1,
        };
    };
    let inst = &f.insts[*number];
    if depth == 0 || inst.ty != Type::Int(64) {
        return 1;
    }
    let part = |i: usize| multiple(f, &inst.operands[i], depth - 1);
    match (&inst.kind, inst.operands.get(1)) {
        (Kind::Binary(Binary::Mul), Some(Operand::Bits(_, by))) => part(0).saturating_mul(*by),
        (Kind::Binary(Binary::Shl), Some(Operand::Bits(_, by))) if *by < 32 => {
            part(0).saturating_mul(1 << by)
        }
        (Kind::Binary(Binary::Add | Binary::Sub), _) => gcd(part(0), part(1)),
        _other => 1,
    }
}

pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
