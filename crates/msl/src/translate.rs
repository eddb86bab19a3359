//! From one function of LLVM IR to one kernel.
//!
//! Values of LLVM's have no sign: an integer is signed here where what computes it is, and `as_type` is put
//! in where another kind is needed. An address is an object and a distance in bytes, as a sum of values
//! times numbers, so that an index is told from it without a division where there is one.

use std::collections::HashMap;

use invar_ir::inst::MAX_NESTING;
use invar_ir::{
    Const, Diagnostic, KernelBuilder, Memory, Op, ParamKind, Region, Rule, Scalar, Span, Type,
    Value,
};
use invar_llvm::foreign::{self, Binary, Compare, Convert, Function, Kind, Operand, Ordered};
use smallvec::SmallVec;

use invar_wgsl::Declared;

use crate::graph::Graph;
use crate::lanes::{Lanes, matrix_scalar};
use crate::memory::{Object, What};
use crate::objects::{Objects, Root, gcd, has_address_numbers, odd_bits, scalar_of, with_sign};
use crate::places::Places;

/// Addresses of more terms are summed up.
const MOST_TERMS: usize = 16;

/// A sentence for the user in the place of a result.
pub(crate) type Done<T> = Result<T, Diagnostic>;

/// Whether an address is null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Null {
    Never,
    Always,
    If(Value),
}

/// An address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Address {
    /// The object; a null pointer has none.
    pub root: Option<Root>,
    /// If it is one of several, chosen while the kernel runs: which, and all of them.
    pub choice: Option<(Value, Vec<Root>)>,
    /// Bytes from there: a number, and values times numbers.
    pub constant: i64,
    pub terms: SmallVec<[(Value, i64); 4]>,
    pub null: Null,
}

impl Address {
    pub fn of(root: Option<Root>) -> Address {
        Address {
            null: if root.is_some() {
                Null::Never
            } else {
                Null::Always
            },
            root,
            choice: None,
            constant: 0,
            terms: SmallVec::new(),
        }
    }

    pub fn add(&mut self, value: Value, scale: i64) {
        match self.terms.iter_mut().find(|(v, _)| *v == value) {
            Some((_, s)) => *s = s.wrapping_add(scale),
            None => self.terms.push((value, scale)),
        }
        self.terms.retain(|(_, s)| *s != 0);
    }
}

/// What an operand is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Val {
    One(Value),
    Address(Address),
    /// A simdgroup matrix by the elements that the lane has.
    Lanes([Value; 2]),
    /// Parts of an aggregate, by where they are.
    Parts(Vec<(Vec<u32>, Val)>),
    Undefined,
}

/// What was made in a region and can be used again in it.
#[derive(Default)]
struct Scope {
    constants: HashMap<Const, Value>,
    /// Matrices by the elements that the lane has, and the other way round.
    matrices: HashMap<[Value; 2], Value>,
    elements: HashMap<Value, [Value; 2]>,
}

/// What is said to a logger so far.
#[derive(Default)]
pub(crate) struct Log {
    pub text: String,
    pub values: Vec<Value>,
}

pub(crate) struct Translator<'a> {
    pub f: &'a Function,
    pub k: KernelBuilder,
    pub objects: Objects,
    pub graph: Graph,
    pub places: Places<'a>,
    /// The results of instructions that were translated.
    pub values: HashMap<usize, Val>,
    pub params: Vec<Val>,
    /// The objects that are accessed.
    pub memory: HashMap<Root, Object>,
    /// What can be used again, by region.
    scopes: Vec<Scope>,
    /// What is constant.
    constants: HashMap<Value, Const>,
    pub lanes: Lanes,
    /// The operands of phis by the blocks that they come from.
    ways: HashMap<(usize, usize), usize>,
    /// The bits that phis get on more than one way.
    pub again: HashMap<usize, Vec<u64>>,
    /// Phis of addresses that may be null.
    pub nullable: Vec<bool>,
    /// Of each instruction, whether what uses it takes it for an integer with a sign.
    pub signed: Vec<bool>,
    /// Function constants without a value.
    pub unset: Vec<String>,
    /// Parameters whose addresses are compared: what says whether a launch gives one buffer for both.
    pub shared: HashMap<(Root, Root), Memory>,
    /// Whether accesses are to be at multiples of their width, which copies of bytes are not.
    pub asks_alignment: bool,
    /// Whether there are addresses as numbers.
    pub has_address_numbers: bool,
    /// What is said to a logger.
    pub log: Log,
    /// The types that the source gives the elements of its variables in threadgroup memory.
    pub variables: Vec<(String, Declared)>,
}

impl<'a> Translator<'a> {
    pub fn new(f: &'a Function, k: KernelBuilder, places: Places<'a>) -> Translator<'a> {
        Translator {
            objects: Objects::of(f),
            graph: Graph::of(f),
            places,
            values: HashMap::new(),
            params: Vec::new(),
            memory: HashMap::new(),
            scopes: vec![Scope::default()],
            constants: HashMap::new(),
            lanes: Lanes::of(f),
            ways: ways(f),
            again: HashMap::new(),
            nullable: nullable(f),
            signed: signed(f),
            unset: Vec::new(),
            shared: HashMap::new(),
            asks_alignment: true,
            has_address_numbers: has_address_numbers(f),
            log: Log::default(),
            variables: Vec::new(),
            f,
            k,
        }
    }

    // ---- places, refusals ----

    pub fn at(&mut self, location: Option<usize>) {
        let Some(location) = location else {
            return;
        };
        let span = self.places.span(location, self.k.module_mut());
        if span != Span::NONE {
            self.k.set_span(span);
        }
    }

    /// A construct that is not supported, at the current place.
    pub fn refuse(&self, what: &str) -> Diagnostic {
        Diagnostic::error(
            Rule::UnsupportedFeature,
            self.k.span(),
            format!("{what} is not supported in a Metal kernel"),
        )
        .help("leave it out of this kernel, or run another kernel of the file")
    }

    pub fn nests_too_deep(&self) -> Diagnostic {
        Diagnostic::error(
            Rule::LimitExceeded,
            self.k.span(),
            format!("blocks nest at most {MAX_NESTING} deep"),
        )
        .help("leave what is nested, or its early returns, to functions of its own, or split the kernel")
    }

    // ---- constants and regions ----

    /// A constant; one that can be seen from here is used again.
    pub fn constant(&mut self, constant: Const) -> Value {
        for scope in self.scopes.iter().rev() {
            if let Some(value) = scope.constants.get(&constant) {
                return *value;
            }
        }
        let value = self.k.constant(constant);
        self.constants.insert(value, constant);
        if let Some(last) = self.scopes.last_mut() {
            last.constants.insert(constant, value);
        }
        value
    }

    pub fn known_constant(&self, value: Value) -> Option<Const> {
        self.constants.get(&value).copied()
    }

    /// A matrix that can be seen from here, by its elements.
    pub fn known_matrix(&self, elements: [Value; 2]) -> Option<Value> {
        let mut scopes = self.scopes.iter();
        scopes.find_map(|scope| scope.matrices.get(&elements).copied())
    }

    /// The elements of a matrix that can be seen from here.
    pub fn known_elements(&self, matrix: Value) -> Option<[Value; 2]> {
        let mut scopes = self.scopes.iter();
        scopes.find_map(|scope| scope.elements.get(&matrix).copied())
    }

    /// Keeps that a matrix has these elements.
    pub fn know(&mut self, matrix: Value, elements: [Value; 2]) {
        if let Some(last) = self.scopes.last_mut() {
            last.matrices.insert(elements, matrix);
            last.elements.insert(matrix, elements);
        }
    }

    pub fn bits(&mut self, scalar: Scalar, bits: u64) -> Value {
        let bits = match scalar.bits() {
            64 => bits,
            n => bits & ((1 << n) - 1),
        };
        self.constant(Const { scalar, bits })
    }

    pub fn open(&mut self, params: &[Type]) -> Vec<Value> {
        self.scopes.push(Scope::default());
        self.k.open_region(params)
    }

    /// How many blocks are open within each other, beside the kernel's.
    pub fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    pub fn close(&mut self) -> Region {
        self.scopes.pop();
        self.k.close_region()
    }

    pub fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.k.op(op, (), args)
    }

    // ---- values ----

    pub fn operand(&mut self, operand: &Operand) -> Done<Val> {
        Ok(match operand {
            Operand::Inst(number) => match self.values.get(number) {
                Some(value) => value.clone(),
                None => return Err(self.refuse("a value that nothing computes")),
            },
            Operand::Param(number) => self.params[*number].clone(),
            Operand::Bits(ty, bits) => match scalar_of(*ty) {
                Some(scalar) => Val::One(self.bits(scalar, *bits)),
                None => return Err(self.refuse(&describe(*ty))),
            },
            Operand::Global(number, offset) => {
                let mut address = Address::of(Some(Root::Global(*number)));
                address.constant = *offset;
                Val::Address(address)
            }
            Operand::Null => Val::Address(Address::of(None)),
            Operand::Undefined | Operand::Poison => Val::Undefined,
            Operand::Zeros => Val::Parts(Vec::new()),
            Operand::Parts(parts) => {
                let mut all = Vec::new();
                for (number, part) in parts.iter().enumerate() {
                    put_in(&mut all, &[number as u32], self.operand(part)?);
                }
                Val::Parts(all)
            }
            Operand::Function(name) => {
                return Err(self.refuse(&format!("the address of a function (`{name}`)")));
            }
            Operand::Other(what) => return Err(self.refuse(what)),
        })
    }

    /// An operand of an instruction that is one value of a scalar, or a matrix of a simdgroup.
    pub fn one(&mut self, inst: usize, operand: usize) -> Done<Value> {
        let f = self.f;
        let ty = f.insts[inst].types[operand];
        match self.operand(&f.insts[inst].operands[operand])? {
            Val::One(value) => Ok(value),
            Val::Lanes(elements) => self.put_together(elements, ty),
            parts @ Val::Parts(_) if matches!(ty, foreign::Type::Vector(..)) => {
                let elements = self.lane_elements(parts, ty)?;
                self.put_together(elements, ty)
            }
            Val::Undefined => Err(self.undefined()),
            Val::Address(_) => Err(self.refuse("an address as a number")),
            Val::Parts(_) => Err(self.refuse("a struct as a value")),
        }
    }

    pub fn undefined(&self) -> Diagnostic {
        Diagnostic::error(
            Rule::UninitialisedRead,
            self.k.span(),
            "a value is used here that nothing has given",
        )
        .help("give the variable a value on every way that leads here")
    }

    pub fn address(&mut self, operand: &Operand) -> Done<Address> {
        match self.operand(operand)? {
            Val::Address(address) => Ok(address),
            Val::Undefined => Err(self.undefined()),
            Val::One(_) | Val::Parts(_) | Val::Lanes(_) => {
                Err(self.refuse("a number as an address"))
            }
        }
    }

    pub fn scalar(&self, value: Value) -> Option<Scalar> {
        match self.k.ty(value) {
            Type::Scalar(scalar) => Some(scalar),
            _other => None,
        }
    }

    /// The same bits as another scalar.
    pub fn as_scalar(&mut self, value: Value, scalar: Scalar) -> Value {
        if self.k.ty(value) == Type::Scalar(scalar) {
            return value;
        }
        if let Some(constant) = self.known_constant(value)
            && constant.scalar.bits() == scalar.bits()
        {
            return self.bits(scalar, constant.bits);
        }
        self.k.as_type(value, Type::Scalar(scalar))
    }

    /// An integer with or without a sign.
    pub fn signed(&mut self, value: Value, signed: bool) -> Value {
        match self.scalar(value).map(|s| with_sign(s, signed)) {
            Some(scalar) => self.as_scalar(value, scalar),
            None => value,
        }
    }

    /// The type of a value of LLVM's.
    pub fn value_type(&self, ty: foreign::Type) -> Done<Type> {
        if let Some(scalar) = matrix_scalar(ty) {
            return Ok(Type::SimdgroupMatrix {
                scalar,
                rows: 8,
                columns: 8,
            });
        }
        match scalar_of(ty) {
            Some(scalar) => Ok(Type::Scalar(scalar)),
            None => Err(self.refuse(&describe(ty))),
        }
    }

    pub fn zero(&mut self, ty: Type) -> Done<Value> {
        let Some(scalar) = ty.scalar() else {
            return Err(self.refuse("a value of no type"));
        };
        let zero = self.bits(scalar, 0);
        Ok(match ty {
            Type::SimdgroupMatrix { .. } => self.k.matrix_fill(ty, zero),
            _scalar => zero,
        })
    }

    // ---- phis ----

    /// The phis at the beginning of a block.
    pub fn phis(&self, block: usize) -> Vec<usize> {
        let f = self.f;
        let all = f.blocks[block].insts.iter().copied();
        all.take_while(|i| matches!(f.insts[*i].kind, Kind::Phi(_)))
            .filter(|i| self.objects.is_needed(*i))
            .collect()
    }

    /// The bytes that the distance of an address is counted in where ways meet.
    fn unit(&self, phi: usize) -> i64 {
        let roots = self.objects.roots_of(&Operand::Inst(phi));
        if roots.len() > 1 {
            return 1;
        }
        let granule = roots
            .first()
            .and_then(|root| self.memory.get(root))
            .map_or(1, |object| object.granule_bytes);
        match self.objects.alignment(&Operand::Inst(phi)) % granule.max(1) {
            0 => granule.max(1) as i64,
            _not_a_multiple => 1,
        }
    }

    /// The types of the values that stand for a phi.
    pub fn phi_types(&self, phi: usize) -> Done<Vec<Type>> {
        let f = self.f;
        match f.insts[phi].ty {
            foreign::Type::Pointer => {
                let mut types = vec![Type::Scalar(Scalar::I64)];
                if self.objects.roots_of(&Operand::Inst(phi)).len() > 1 {
                    types.push(Type::U32);
                }
                if self.nullable[phi] {
                    types.push(Type::BOOL);
                }
                Ok(types)
            }
            ty if self.lanes.is_together(phi) => match matrix_scalar(ty) {
                Some(scalar) => Ok(vec![Type::Scalar(scalar); 2]),
                None => Err(self.refuse(&describe(ty))),
            },
            ty => match self.value_type(ty)? {
                Type::Scalar(scalar) => Ok(vec![Type::Scalar(with_sign(scalar, self.signed[phi]))]),
                other => Ok(vec![other]),
            },
        }
    }

    /// The values that a phi has on a way.
    pub fn phi_values(&mut self, block: usize, from: usize) -> Done<Vec<Value>> {
        let f = self.f;
        let mut all = Vec::new();
        for phi in self.phis(block) {
            let operand = match self.ways.get(&(phi, from)) {
                Some(way) => &f.insts[phi].operands[*way],
                None => &Operand::Undefined,
            };
            let types = self.phi_types(phi)?;
            let value = self.operand(operand)?;
            all.extend(self.flat(phi, value, &types)?);
        }
        Ok(all)
    }

    fn flat(&mut self, phi: usize, value: Val, types: &[Type]) -> Done<Vec<Value>> {
        if let Val::Address(address) = &value
            && self.f.insts[phi].ty == foreign::Type::Pointer
        {
            let unit = self.unit(phi);
            let distance = self.distance(address, unit);
            let mut all = vec![self.signed(distance, true)];
            let roots = self.objects.roots_of(&Operand::Inst(phi));
            if roots.len() > 1 {
                all.push(self.which(address, &roots));
            }
            if self.nullable[phi] {
                all.push(self.is_null(address));
            }
            return Ok(all);
        }
        if self.lanes.is_together(phi) {
            return Ok(self.lane_elements(value, self.f.insts[phi].ty)?.to_vec());
        }
        match (value, types) {
            (Val::Lanes(elements), _) => {
                let ty = self.f.insts[phi].ty;
                Ok(vec![self.put_together(elements, ty)?])
            }
            (Val::One(value), [Type::Scalar(scalar)]) => Ok(vec![self.as_scalar(value, *scalar)]),
            (Val::One(value), _) => Ok(vec![value]),
            // A way on which nobody reads the value, which any will do for.
            (Val::Undefined | Val::Parts(_), types) => {
                types.iter().map(|ty| self.zero(*ty)).collect()
            }
            (Val::Address(_), _) => Err(self.refuse("an address as a number")),
        }
    }

    /// Which of some objects an address leads to.
    fn which(&mut self, address: &Address, roots: &[Root]) -> Value {
        let place = |root: &Root| roots.iter().position(|r| r == root).unwrap_or(0) as u32;
        let Some((which, own)) = &address.choice else {
            let place = address.root.as_ref().map_or(0, place);
            return self.constant(Const::from(place));
        };
        if own == roots {
            return *which;
        }
        let mut number = self.constant(Const::from(own.first().map_or(0, place)));
        for (old, root) in own.iter().enumerate().skip(1) {
            let (old, new) = (
                self.constant(Const::from(old as u32)),
                self.constant(Const::from(place(root))),
            );
            let is = self.op(Op::Eq, &[*which, old]);
            number = self.op(Op::Select, &[number, new, is]);
        }
        number
    }

    pub fn is_null(&mut self, address: &Address) -> Value {
        match address.null {
            Null::Never => match self.absent(address) {
                Some(is_absent) => is_absent,
                None => self.constant(Const::from(false)),
            },
            Null::Always => self.constant(Const::from(true)),
            Null::If(value) => value,
        }
    }

    /// Whether a launch leaves out the buffer that an address is the beginning of: it then has no elements.
    fn absent(&mut self, address: &Address) -> Option<Value> {
        let is_begin = address.choice.is_none() && address.constant == 0;
        let root = address
            .root
            .filter(|_| is_begin && address.terms.is_empty())?;
        let What::Granules(memory @ Memory::Param(number)) = self.memory.get(&root)?.what else {
            return None;
        };
        let param = self.k.kernel_mut().params.get(number as usize)?;
        if !matches!(param.kind, ParamKind::Buffer { .. }) {
            return None;
        }
        let length = self.k.buffer_length(memory);
        let zero = self.constant(Const::from(0u64));
        Some(self.op(Op::Eq, &[length, zero]))
    }

    /// Gives the phis of a block the values that stand for them.
    pub fn bind(&mut self, block: usize, values: &[Value]) -> Done<()> {
        let f = self.f;
        let mut values = values.iter().copied();
        for phi in self.phis(block) {
            let inst = &f.insts[phi];
            let mut next = || values.next();
            let first = next();
            let Some(first) = first else {
                return Err(self.refuse("control flow of this form"));
            };
            let bound = if self.lanes.is_together(phi) {
                let Some(second) = next() else {
                    return Err(self.refuse("control flow of this form"));
                };
                Val::Lanes([first, second])
            } else if inst.ty == foreign::Type::Pointer {
                let roots = self.objects.roots_of(&Operand::Inst(phi));
                let mut address = Address::of(roots.first().copied());
                if address.root.is_some() {
                    let unit = self.unit(phi);
                    address.add(first, unit);
                }
                if roots.len() > 1
                    && let Some(which) = next()
                {
                    address.choice = Some((which, roots));
                }
                if self.nullable[phi]
                    && let Some(null) = next()
                {
                    address.null = Null::If(null);
                }
                Val::Address(address)
            } else {
                if !inst.name.is_empty() {
                    let name = inst.name.split('.').next().unwrap_or_default();
                    self.k.name(first, name);
                }
                Val::One(first)
            };
            self.values.insert(phi, bound);
        }
        for phi in self.phis(block) {
            self.take_apart(phi)?;
        }
        Ok(())
    }

    // ---- instructions ----

    /// Translates an instruction that leads nowhere else.
    pub fn inst(&mut self, number: usize) -> Done<()> {
        let f = self.f;
        let inst = &f.insts[number];
        if !self.objects.is_needed(number) {
            return Ok(());
        }
        self.at(inst.location);
        if let Some(result) = self.on_addresses(number)? {
            self.values.insert(number, result);
            return Ok(());
        }
        let result = match &inst.kind {
            Kind::Alloca(_) => Val::Address(Address::of(Some(Root::Variable(number)))),
            Kind::Load => self.load(number)?,
            Kind::Store => return self.store(number),
            Kind::Offset(constant, scales) => {
                let mut address = self.address(&inst.operands[0])?;
                address.constant = address.constant.wrapping_add(*constant);
                for (operand, scale) in inst.operands[1..].iter().zip(scales) {
                    self.step(&mut address, operand, *scale, 8)?;
                }
                self.shorten(&mut address);
                Val::Address(address)
            }
            Kind::Binary(op) => Val::One(self.binary(number, *op)?),
            Kind::Negate => {
                let x = self.one(number, 0)?;
                Val::One(self.op(Op::Neg, &[x]))
            }
            Kind::Compare(compare) if inst.types[0] == foreign::Type::Pointer => {
                Val::One(self.compare_addresses(number, *compare)?)
            }
            Kind::Compare(compare) => Val::One(self.compare(number, *compare)?),
            Kind::Convert(Convert::Bits)
                if [inst.ty, inst.types[0]]
                    .iter()
                    .any(|ty| matches!(ty, foreign::Type::Vector(..))) =>
            {
                self.element_bits(number)?
            }
            Kind::Convert(convert) => Val::One(self.convert(number, *convert)?),
            Kind::Select => self.select(number)?,
            Kind::Freeze => self.operand(&inst.operands[0])?,
            Kind::Call(name) => match self.call(number, name)? {
                Some(value) => value,
                None => return Ok(()),
            },
            Kind::ExtractValue(path) => self.extract(number, path)?,
            Kind::InsertValue(path) => self.insert(number, path)?,
            Kind::ExtractElement => self.extract_element(number)?,
            Kind::InsertElement => self.insert_element(number)?,
            Kind::Other(name) => return Err(self.refuse(&format!("LLVM's instruction `{name}`"))),
            Kind::Phi(_) | Kind::Jump(_) | Kind::Branch(..) | Kind::Return | Kind::Unreachable => {
                return Ok(());
            }
        };
        self.values.insert(number, result);
        self.take_apart(number)
    }

    /// Sums up what an address of very many terms is away from its object, or each access by one that others come from
    /// would sum up all that these have.
    fn shorten(&mut self, address: &mut Address) {
        if address.terms.len() <= MOST_TERMS {
            return;
        }
        let scales = address.terms.iter().map(|(_, scale)| scale.unsigned_abs());
        let unit = i64::try_from(scales.fold(0, gcd)).unwrap_or(1);
        let away = Address {
            constant: 0,
            ..address.clone()
        };
        let sum = self.distance(&away, unit);
        let sum = self.signed(sum, true);
        address.terms.clear();
        address.add(sum, unit);
    }

    /// Goes on from an address by an operand times a number; sums in it are taken apart.
    pub fn step(
        &mut self,
        address: &mut Address,
        operand: &Operand,
        scale: i64,
        depth: u32,
    ) -> Done<()> {
        let f = self.f;
        if let Operand::Bits(foreign::Type::Int(bits), number) = operand {
            let shift = 64 - (*bits).min(64);
            let number = ((*number << shift) as i64) >> shift;
            address.constant = address.constant.wrapping_add(number.wrapping_mul(scale));
            return Ok(());
        }
        if let Operand::Inst(number) = operand
            && depth > 0
            && f.insts[*number].ty == foreign::Type::Int(64)
            && let Kind::Binary(op) = f.insts[*number].kind
        {
            let parts = &f.insts[*number].operands;
            match (op, &parts[1]) {
                (Binary::Add, _) => {
                    self.step(address, &parts[0], scale, depth - 1)?;
                    return self.step(address, &parts[1], scale, depth - 1);
                }
                (Binary::Sub, _) => {
                    self.step(address, &parts[0], scale, depth - 1)?;
                    return self.step(address, &parts[1], scale.wrapping_neg(), depth - 1);
                }
                (Binary::Mul, Operand::Bits(_, by)) => {
                    return self.step(
                        address,
                        &parts[0],
                        scale.wrapping_mul(*by as i64),
                        depth - 1,
                    );
                }
                (Binary::Shl, Operand::Bits(_, by)) if *by < 63 => {
                    return self.step(address, &parts[0], scale.wrapping_mul(1 << by), depth - 1);
                }
                _other => {}
            }
        }
        let Val::One(value) = self.operand(operand)? else {
            return Err(self.refuse("an index of this form"));
        };
        let value = match self.scalar(value).map(Scalar::bits) {
            Some(64) => self.signed(value, true),
            _narrower => {
                let signed = self.signed(value, true);
                self.k.cast(signed, Type::Scalar(Scalar::I64))
            }
        };
        address.add(value, scale);
        Ok(())
    }

    fn binary(&mut self, number: usize, op: Binary) -> Done<Value> {
        let f = self.f;
        let inst = &f.insts[number];
        let (mut a, mut b) = (self.one(number, 0)?, self.one(number, 1)?);
        let sign = match op {
            Binary::UDiv | Binary::URem | Binary::LShr => Some(false),
            Binary::SDiv | Binary::SRem | Binary::AShr => Some(true),
            _either => None,
        };
        match sign {
            Some(sign) => (a, b) = (self.signed(a, sign), self.signed(b, sign)),
            None => {
                // What is not a constant says the sign.
                let other = matches!(inst.operands[0], Operand::Bits(..));
                match self.scalar(if other { b } else { a }) {
                    Some(scalar) if other => a = self.as_scalar(a, scalar),
                    Some(scalar) => b = self.as_scalar(b, scalar),
                    None => {}
                }
            }
        }
        let is_bool = self.k.ty(a) == Type::BOOL;
        let odd = odd_bits(inst.ty);
        if odd.is_some() && sign == Some(true) {
            return Err(self.refuse(&describe(inst.ty)));
        }
        let op = match op {
            Binary::Add | Binary::Sub if is_bool => Op::Xor,
            Binary::Mul if is_bool => Op::And,
            Binary::Add | Binary::FAdd => Op::Add,
            Binary::Sub | Binary::FSub => Op::Sub,
            Binary::Mul | Binary::FMul => Op::Mul,
            Binary::UDiv | Binary::SDiv | Binary::FDiv => Op::Div,
            Binary::URem | Binary::SRem => Op::Rem,
            Binary::FRem => Op::Fmod,
            Binary::Shl => Op::Shl,
            Binary::LShr | Binary::AShr => Op::Shr,
            Binary::And => Op::And,
            Binary::Or => Op::Or,
            Binary::Xor => Op::Xor,
        };
        let result = self.op(op, &[a, b]);
        Ok(match odd {
            Some(bits) => self.low_bits(result, bits),
            None => result,
        })
    }

    /// The low bits of an integer, as an integer without a sign.
    fn low_bits(&mut self, value: Value, bits: u32) -> Value {
        let value = self.signed(value, false);
        let Some(scalar) = self.scalar(value) else {
            return value;
        };
        let mask = self.bits(scalar, (1 << bits) - 1);
        self.op(Op::And, &[value, mask])
    }

    fn compare(&mut self, number: usize, compare: Compare) -> Done<Value> {
        let (mut a, mut b) = (self.one(number, 0)?, self.one(number, 1)?);
        let (op, sign) = match compare {
            Compare::Eq => (Op::Eq, None),
            Compare::Ne => (Op::Ne, None),
            Compare::ULt => (Op::Lt, Some(false)),
            Compare::ULe => (Op::Le, Some(false)),
            Compare::UGt => (Op::Gt, Some(false)),
            Compare::UGe => (Op::Ge, Some(false)),
            Compare::SLt => (Op::Lt, Some(true)),
            Compare::SLe => (Op::Le, Some(true)),
            Compare::SGt => (Op::Gt, Some(true)),
            Compare::SGe => (Op::Ge, Some(true)),
            Compare::Float(with_nan, ordered) => {
                return Ok(self.compare_floats(a, b, with_nan, ordered));
            }
        };
        let ty = self.f.insts[number].types[0];
        if sign == Some(true) && odd_bits(ty).is_some() {
            return Err(self.refuse(&describe(ty)));
        }
        match sign {
            Some(sign) => (a, b) = (self.signed(a, sign), self.signed(b, sign)),
            None => {
                let first = matches!(self.f.insts[number].operands[0], Operand::Bits(..));
                match self.scalar(if first { b } else { a }) {
                    Some(scalar) if first => a = self.as_scalar(a, scalar),
                    Some(scalar) => b = self.as_scalar(b, scalar),
                    None => {}
                }
            }
        }
        Ok(self.op(op, &[a, b]))
    }

    /// A comparison that a NaN makes hold is the opposite of the opposite one.
    fn compare_floats(&mut self, a: Value, b: Value, with_nan: bool, ordered: Ordered) -> Value {
        match (with_nan, ordered) {
            (false, Ordered::Never) => self.constant(Const::from(false)),
            (true, Ordered::Always) => self.constant(Const::from(true)),
            (false, Ordered::Eq) => self.op(Op::Eq, &[a, b]),
            (false, Ordered::Lt) => self.op(Op::Lt, &[a, b]),
            (false, Ordered::Le) => self.op(Op::Le, &[a, b]),
            (false, Ordered::Gt) => self.op(Op::Gt, &[a, b]),
            (false, Ordered::Ge) => self.op(Op::Ge, &[a, b]),
            (true, Ordered::Ne) => self.op(Op::Ne, &[a, b]),
            (false, Ordered::Ne) => {
                let (less, more) = (self.op(Op::Lt, &[a, b]), self.op(Op::Gt, &[a, b]));
                self.op(Op::Or, &[less, more])
            }
            (false, Ordered::Always) => {
                let (x, y) = (self.op(Op::Eq, &[a, a]), self.op(Op::Eq, &[b, b]));
                self.op(Op::And, &[x, y])
            }
            (true, ordered) => {
                let opposite = match ordered {
                    Ordered::Never => Ordered::Always,
                    Ordered::Eq => Ordered::Ne,
                    Ordered::Lt => Ordered::Ge,
                    Ordered::Le => Ordered::Gt,
                    Ordered::Gt => Ordered::Le,
                    Ordered::Ge => Ordered::Lt,
                    Ordered::Ne => Ordered::Eq,
                    Ordered::Always => Ordered::Never,
                };
                let holds = self.compare_floats(a, b, false, opposite);
                self.op(Op::Not, &[holds])
            }
        }
    }

    fn convert(&mut self, number: usize, convert: Convert) -> Done<Value> {
        let inst = &self.f.insts[number];
        let (from, to) = (inst.types[0], self.value_type(inst.ty)?);
        let x = self.one(number, 0)?;
        let signed = |t: Type, sign: bool| match t {
            Type::Scalar(scalar) => Type::Scalar(with_sign(scalar, sign)),
            other => other,
        };
        let is_signed = matches!(convert, Convert::SExt | Convert::SignedToFloat);
        if odd_bits(from).is_some() && is_signed {
            return Err(self.refuse(&describe(from)));
        }
        Ok(match convert {
            Convert::Trunc if odd_bits(inst.ty).is_some() => {
                let narrow = self.signed(x, false);
                let narrow = self.k.cast(narrow, to);
                self.low_bits(narrow, odd_bits(inst.ty).unwrap_or(64))
            }
            Convert::Trunc if to == Type::BOOL => {
                let Some(scalar) = self.scalar(x) else {
                    return Err(self.refuse(&describe(from)));
                };
                let (one, zero) = (self.bits(scalar, 1), self.bits(scalar, 0));
                let bit = self.op(Op::And, &[x, one]);
                self.op(Op::Ne, &[bit, zero])
            }
            Convert::Trunc => {
                let is_signed = self.scalar(x).is_some_and(Scalar::is_signed_integer);
                self.k.cast(x, signed(to, is_signed))
            }
            Convert::ZExt if from == foreign::Type::Int(1) => self.k.cast(x, to),
            Convert::ZExt => {
                let x = self.signed(x, false);
                self.k.cast(x, to)
            }
            Convert::SExt if from == foreign::Type::Int(1) => {
                let one = self.k.cast(x, signed(to, true));
                self.op(Op::Neg, &[one])
            }
            Convert::SExt => {
                let x = self.signed(x, true);
                self.k.cast(x, signed(to, true))
            }
            Convert::UnsignedToFloat | Convert::SignedToFloat => {
                let x = self.signed(x, convert == Convert::SignedToFloat);
                self.k.cast(x, to)
            }
            Convert::FloatToSigned => self.k.cast(x, signed(to, true)),
            Convert::FloatToUnsigned | Convert::Float => self.k.cast(x, to),
            Convert::Bits => self.k.as_type(x, to),
        })
    }

    fn select(&mut self, number: usize) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let condition = self.one(number, 0)?;
        if inst.ty == foreign::Type::Pointer {
            let (yes, no) = (
                self.address(&inst.operands[1])?,
                self.address(&inst.operands[2])?,
            );
            let roots = self.objects.roots_of(&Operand::Inst(number));
            let mut address = Address::of(yes.root.or(no.root));
            if roots.len() > 1 {
                let (a, b) = (self.which(&yes, &roots), self.which(&no, &roots));
                let which = self.op(Op::Select, &[b, a, condition]);
                address.root = roots.first().copied();
                address.choice = Some((which, roots));
            }
            let (a, b) = (self.distance(&yes, 1), self.distance(&no, 1));
            let (a, b) = (self.signed(a, true), self.signed(b, true));
            let distance = self.op(Op::Select, &[b, a, condition]);
            address.add(distance, 1);
            if yes.null != Null::Never || no.null != Null::Never {
                let (a, b) = (self.is_null(&yes), self.is_null(&no));
                address.null = Null::If(self.op(Op::Select, &[b, a, condition]));
            }
            return Ok(Val::Address(address));
        }
        if self.lanes.is_together(number) {
            let (yes, no) = (
                self.operand(&inst.operands[1])?,
                self.operand(&inst.operands[2])?,
            );
            let yes = self.lane_elements(yes, inst.ty)?;
            let no = self.lane_elements(no, inst.ty)?;
            let chosen = [0, 1].map(|n| self.op(Op::Select, &[no[n], yes[n], condition]));
            return Ok(Val::Lanes(chosen));
        }
        let (yes, mut no) = (self.one(number, 1)?, self.one(number, 2)?);
        match self.k.ty(yes) {
            Type::Scalar(scalar) => no = self.as_scalar(no, scalar),
            Type::SimdgroupMatrix { .. } => {
                let results = self.choose(condition, &[yes], &[no]);
                return Ok(Val::One(results[0]));
            }
            _other => {}
        }
        Ok(Val::One(self.op(Op::Select, &[no, yes, condition])))
    }

    /// Values by a condition, of any type.
    fn choose(&mut self, condition: Value, yes: &[Value], no: &[Value]) -> SmallVec<[Value; 1]> {
        self.k
            .if_values(condition, |_| yes.to_vec(), |_| no.to_vec())
    }

    fn compare_addresses(&mut self, number: usize, compare: Compare) -> Done<Value> {
        let f = self.f;
        let operands = &f.insts[number].operands;
        let (a, b) = (self.address(&operands[0])?, self.address(&operands[1])?);
        let is_one = self.lead_to_one(number);
        self.compare_two((&a, &b), is_one, compare)
    }

    /// Whether two addresses that an instruction takes lead to one object, whichever of several that is.
    pub fn lead_to_one(&self, number: usize) -> bool {
        let operands = &self.f.insts[number].operands;
        let of = |operand: usize| self.objects.decided(self.f, operands.get(operand)?);
        let known = |at: &Operand| matches!(at, Operand::Inst(_) | Operand::Param(_));
        of(0).is_some_and(|at| known(&at) && of(1) == Some(at))
    }

    /// Compares two addresses, of which is known whether they lead to one object.
    pub fn compare_two(
        &mut self,
        (a, b): (&Address, &Address),
        is_one: bool,
        compare: Compare,
    ) -> Done<Value> {
        let has_choice = a.choice.is_some() || b.choice.is_some();
        let equal = match (a.root, b.root) {
            (None, _) => self.is_null(b),
            (_, None) => self.is_null(a),
            (Some(_), Some(_)) if has_choice && !is_one => match compare {
                Compare::Eq | Compare::Ne => self.is_same_place(a, b),
                _order => {
                    return Err(self.refuse(
                        "an order of two pointers that may lead to different objects, each to one of several,",
                    ));
                }
            },
            (Some(x), Some(y)) if x == y || has_choice => {
                let (x, y) = (self.distance(a, 1), self.distance(b, 1));
                let (x, y) = (self.signed(x, true), self.signed(y, true));
                match compare {
                    Compare::Eq | Compare::Ne => self.op(Op::Eq, &[x, y]),
                    Compare::ULt => return Ok(self.op(Op::Lt, &[x, y])),
                    Compare::ULe => return Ok(self.op(Op::Le, &[x, y])),
                    Compare::UGt => return Ok(self.op(Op::Gt, &[x, y])),
                    Compare::UGe => return Ok(self.op(Op::Ge, &[x, y])),
                    _other => return Err(self.refuse("a comparison of addresses of this form")),
                }
            }
            (Some(x), Some(y)) => match self.shared.get(&pair(x, y)) {
                Some(shared) => {
                    let shared = self.is_shared(*shared);
                    let (x, y) = (self.distance(a, 1), self.distance(b, 1));
                    let (x, y) = (self.signed(x, true), self.signed(y, true));
                    let same = self.op(Op::Eq, &[x, y]);
                    self.op(Op::And, &[shared, same])
                }
                None => self.constant(Const::from(false)),
            },
        };
        match compare {
            Compare::Eq => Ok(equal),
            Compare::Ne => Ok(self.op(Op::Not, &[equal])),
            _order => Err(self.refuse("an order of addresses of two objects")),
        }
    }

    /// Whether two addresses, each of one of several objects, are one place.
    fn is_same_place(&mut self, a: &Address, b: &Address) -> Value {
        let mut roots = Vec::new();
        for address in [a, b] {
            match &address.choice {
                Some((_, all)) => roots.extend(all),
                None => roots.extend(address.root),
            }
        }
        roots.sort_unstable();
        roots.dedup();
        let (x, y) = (self.which(a, &roots), self.which(b, &roots));
        let same = self.op(Op::Eq, &[x, y]);
        let (x, y) = (self.distance(a, 1), self.distance(b, 1));
        let (x, y) = (self.signed(x, true), self.signed(y, true));
        let equal = self.op(Op::Eq, &[x, y]);
        self.op(Op::And, &[same, equal])
    }

    // ---- aggregates ----

    fn extract(&mut self, number: usize, path: &[u32]) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let Val::Parts(parts) = self.operand(&inst.operands[0])? else {
            return Err(self.undefined());
        };
        if let Some((_, part)) = parts.iter().find(|(at, _)| at == path) {
            return Ok(part.clone());
        }
        let inside: Vec<_> = parts
            .iter()
            .filter_map(|(at, part)| Some((at.strip_prefix(path)?.to_vec(), part.clone())))
            .collect();
        // What has no value has none in any part.
        let is_nothing =
            |(at, part): &(Vec<u32>, Val)| *part == Val::Undefined && path.starts_with(at);
        if inside.is_empty() && parts.iter().any(is_nothing) {
            return Ok(Val::Undefined);
        }
        if inside.is_empty() && inst.ty != foreign::Type::Aggregate {
            let ty = self.value_type(inst.ty)?;
            return Ok(Val::One(self.zero(ty)?));
        }
        Ok(Val::Parts(inside))
    }

    fn insert(&mut self, number: usize, path: &[u32]) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let mut parts = match self.operand(&inst.operands[0])? {
            Val::Parts(parts) => parts,
            _nothing_yet => Vec::new(),
        };
        // A part of what had no value has one now.
        let is_nothing = |at: &[u32], part: &Val| *part == Val::Undefined && path.starts_with(at);
        parts.retain(|(at, part)| !at.starts_with(path) && !is_nothing(at, part));
        put_in(&mut parts, path, self.operand(&inst.operands[1])?);
        Ok(Val::Parts(parts))
    }
}

/// Puts a value where an aggregate has it; of one that is itself an aggregate each part.
fn put_in(parts: &mut Vec<(Vec<u32>, Val)>, path: &[u32], value: Val) {
    match value {
        Val::Parts(inside) => {
            let inside = inside.into_iter();
            parts.extend(inside.map(|(at, part)| ([path, &at].concat(), part)));
        }
        part => parts.push((path.to_vec(), part)),
    }
}

/// Two objects in the order of their numbers.
pub(crate) fn pair(a: Root, b: Root) -> (Root, Root) {
    (a.min(b), a.max(b))
}

/// What a type is called in a sentence.
pub(crate) fn describe(ty: foreign::Type) -> String {
    match ty {
        foreign::Type::Int(bits) => format!("an integer of {bits} bits"),
        foreign::Type::Double => "a `double`".to_string(),
        foreign::Type::Vector(..) => "a vector of LLVM's".to_string(),
        foreign::Type::Aggregate => "a struct as a value".to_string(),
        foreign::Type::Pointer => "an address as a value".to_string(),
        _other => "a value of an unusual type".to_string(),
    }
}

/// Whether what uses an instruction takes it for an integer with a sign.
fn signed(f: &Function) -> Vec<bool> {
    let mut signed = vec![false; f.insts.len()];
    let takes = |kind: &Kind| {
        matches!(
            kind,
            Kind::Compare(Compare::SLt | Compare::SLe | Compare::SGt | Compare::SGe)
                | Kind::Convert(Convert::SExt | Convert::SignedToFloat)
                | Kind::Binary(Binary::SDiv | Binary::SRem | Binary::AShr)
        )
    };
    for inst in f.insts.iter().filter(|inst| takes(&inst.kind)) {
        for operand in &inst.operands {
            if let Operand::Inst(of) = operand {
                signed[*of] = true;
            }
        }
    }
    signed
}

/// The operands of phis by the blocks that they come from: of several, which are one value, the first.
fn ways(f: &Function) -> HashMap<(usize, usize), usize> {
    let mut all = HashMap::new();
    for (number, inst) in f.insts.iter().enumerate() {
        if let Kind::Phi(from) = &inst.kind {
            for (way, from) in from.iter().enumerate() {
                all.entry((number, *from)).or_insert(way);
            }
        }
    }
    all
}

/// The instructions whose result is an address that may be null.
fn nullable(f: &Function) -> Vec<bool> {
    let mut all = vec![false; f.insts.len()];
    loop {
        let mut changed = false;
        for (number, inst) in f.insts.iter().enumerate() {
            let from = match &inst.kind {
                Kind::Phi(ways) => 0..ways.len(),
                Kind::Select => 1..3,
                Kind::Offset(..) => 0..1,
                _other => continue,
            };
            let may = inst.ty == foreign::Type::Pointer
                && inst.operands[from].iter().any(|o| match o {
                    Operand::Null => true,
                    Operand::Inst(other) => all[*other],
                    _never => false,
                });
            if may && !all[number] {
                all[number] = true;
                changed = true;
            }
        }
        if !changed {
            return all;
        }
    }
}
