//! What is known while a kernel is built, and the simplest things to build: constants, regions, operands.
//!
//! What is made of instructions stands in the modules for them, none of which this one needs.

use std::collections::HashMap;

use invar_ir::inst::MAX_NESTING;
use invar_ir::{
    Const, Diagnostic, KernelBuilder, Memory, Op, Region, Rule, Scalar, Span, Type, Value,
};
use invar_llvm::foreign::{self, Binary, Compare, Convert, Function, Kind, Operand};
use invar_wgsl::Declared;

use crate::graph::Graph;
use crate::lanes::{Lanes, matrix_scalar};
use crate::objects::{Objects, Root, has_address_numbers, scalar_of, with_sign};
use crate::places::Places;
use crate::value::{Address, Object, Val, put_in};

/// A sentence for the user in the place of a result.
pub(crate) type Done<T> = Result<T, Diagnostic>;

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
    pub ways: HashMap<(usize, usize), usize>,
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
