//! The binary form: a module as bytes, spans and sources included, for caches and for passing
//! between processes.
//!
//! One module has one encoding and one encoding is one module: `decode(encode(m))` is `m`, spans
//! too, and `encode(decode(b))` is `b`. Ids of values and arrays are not written but follow from
//! canonical numbering; a kernel that is not numbered so is encoded as [`Kernel::renumber`] numbers
//! it. Operations are written by name, so a module outlives changes of the op table.
//!
//! [`decode`] takes any bytes. It refuses, with the offset and the reason, whatever the rest of the
//! crate could trip over: ids that nothing defines, types that cannot exist, nesting beyond
//! [`MAX_NESTING`] and [`MAX_TYPE_DEPTH`]. Everything else is for the verifier to judge. Its memory
//! is proportional to the input.
//!
//! The form, in order; numbers are LEB128 of the fewest bytes, strings and lists begin with their
//! length, an option is 0, or 1 and the thing:
//!
//! ```text
//! "\0INVAR", version
//! sources: name, text              calls: function, span of the site
//! names of the operations used, in the order of their first use
//! structs: name, fields: name, element; span
//! function constants: name, id, scalar, default bits?, span
//! constants: name, element, length, values: scalar, bits; span
//! kernels: name, params: name, kind, span; flags, threadgroup size?,
//!     simdgroup size?, body, span
//! a region: params: type, name; instructions
//! an instruction: tag, operands, results: type, name; regions; span
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::inst::{
    AtomicOp, Const, CopyOperands, CopyShape, Inst, InstKind, MAX_NESTING, MatrixPlace, Memory,
    Order, Place, Region, Scope, Spaces, Step, Value, ValueInfo, Values, Width,
};
use crate::memory_layout::MAX_TYPE_DEPTH;
use crate::module::{
    Access, AddressSpace, Alloc, ConstantArray, FloatMode, FunctionConstant, Kernel, Module, Param,
    ParamKind,
};
use crate::ops::{Dim, Imm, Op, Swizzle};
use crate::span::{Call, CallId, Position, Source, SourceId, Span};
use crate::types::{ElementType, Scalar, StructDef, StructId, Type};

/// What every encoding begins with.
pub const MAGIC: &[u8; 6] = b"\0INVAR";
/// The version of the form.
const VERSION: u64 = 1;

/// Why bytes are no module: where, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset of the first byte that is wrong, or the length where something is missing.
    pub offset: usize,
    /// What is wrong, in lower case.
    pub message: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a module: byte {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for DecodeError {}

/// A module as bytes.
///
/// ```
/// use invar_ir::{binary, text};
///
/// let module = text::parse("empty.inv", "kernel @empty() {\n}\n").unwrap();
/// let bytes = binary::encode(&module);
/// assert_eq!(binary::decode(&bytes), Ok(module));
/// ```
pub fn encode(module: &Module) -> Vec<u8> {
    let kernels: Vec<Cow<'_, Kernel>> = module.kernels.iter().map(canonical).collect();
    let mut w = Writer {
        out: MAGIC.to_vec(),
        ops: HashMap::new(),
    };
    w.number(VERSION);
    w.list(&module.sources, |w, source| {
        w.string(&source.name);
        w.string(&source.text);
    });
    w.list(&module.calls, |w, call| {
        w.string(&call.function);
        w.span(&call.site);
    });
    let mut ops = Vec::new();
    for kernel in &kernels {
        kernel.for_each_inst(&mut |inst| {
            if let InstKind::Op { op, .. } = &inst.kind {
                w.ops.entry(*op).or_insert_with(|| {
                    ops.push(*op);
                    ops.len() as u64 - 1
                });
            }
        });
    }
    w.list(&ops, |w, op| w.string(op.name()));
    w.list(&module.structs, |w, def| {
        w.string(&def.name);
        w.list(&def.fields, |w, (name, ty)| {
            w.string(name);
            w.element(ty);
        });
        w.span(&def.span);
    });
    w.list(&module.function_constants, |w, constant| {
        w.string(&constant.name);
        w.number(constant.id.into());
        w.scalar(constant.scalar);
        w.option(constant.default.as_ref(), |w, c| w.constant(c));
        w.span(&constant.span);
    });
    w.list(&module.constants, |w, constant| {
        w.string(&constant.name);
        w.element(&constant.element);
        w.number(constant.length.into());
        w.list(&constant.values, |w, value| w.constant(value));
        w.span(&constant.span);
    });
    w.list(&kernels, |w, kernel| w.kernel(kernel));
    w.out
}

/// A module as bytes without spans, sources and calls: the same for modules that differ only in
/// where they were written, as the key of a cache must be.
pub fn encode_for_key(module: &Module) -> Vec<u8> {
    encode(&module.without_spans())
}

/// The kernel in canonical numbering.
fn canonical(kernel: &Kernel) -> Cow<'_, Kernel> {
    let mut walk = Numbering::default();
    for param in &kernel.params {
        if let ParamKind::Scalar { value } = &param.kind {
            walk.value(*value);
        }
    }
    walk.region(&kernel.body);
    if walk.values as usize == kernel.values.len()
        && walk.allocs as usize == kernel.allocs.len()
        && !walk.broken
    {
        Cow::Borrowed(kernel)
    } else {
        let mut kernel = kernel.clone();
        kernel.renumber();
        Cow::Owned(kernel)
    }
}

/// Checks canonical numbering.
#[derive(Default)]
struct Numbering {
    values: u32,
    allocs: u32,
    broken: bool,
}

impl Numbering {
    fn value(&mut self, value: Value) {
        self.broken |= value.0 != self.values;
        self.values += 1;
    }

    fn region(&mut self, region: &Region) {
        region.params.iter().for_each(|v| self.value(*v));
        for inst in &region.insts {
            if let InstKind::Alloc(id) = inst.kind {
                self.broken |= id != self.allocs;
                self.allocs += 1;
            }
            inst.results.iter().for_each(|v| self.value(*v));
            for inner in inst.kind.regions() {
                self.region(inner);
            }
        }
    }
}

/// The first byte of each instruction.
mod tag {
    pub const CONST: u8 = 0;
    pub const FUNCTION_CONSTANT: u8 = 1;
    pub const OP: u8 = 2;
    pub const BUFFER_LENGTH: u8 = 3;
    pub const LOAD: u8 = 4;
    pub const STORE: u8 = 5;
    pub const ATOMIC: u8 = 6;
    pub const ALLOC: u8 = 7;
    pub const COPY: u8 = 8;
    pub const ASYNC_COPY: u8 = 9;
    pub const ASYNC_COPY_2D: u8 = 10;
    pub const WAIT: u8 = 11;
    pub const BARRIER: u8 = 12;
    pub const MATRIX_FILL: u8 = 13;
    pub const MATRIX_LOAD: u8 = 14;
    pub const MATRIX_STORE: u8 = 15;
    pub const MATRIX_MULTIPLY_ACCUMULATE: u8 = 16;
    pub const ASSERT_UNIFORM: u8 = 17;
    pub const IF: u8 = 18;
    pub const FOR: u8 = 19;
    pub const LOOP: u8 = 20;
    pub const YIELD: u8 = 21;
    pub const BREAK: u8 = 22;
    pub const CONTINUE: u8 = 23;
    pub const RETURN: u8 = 24;
}

const SCOPES: [Scope; 3] = [Scope::Simdgroup, Scope::Threadgroup, Scope::Device];
const ACCESSES: [Access; 3] = [Access::Read, Access::Write, Access::ReadWrite];
const FLOAT_MODES: [FloatMode; 3] = [FloatMode::Strict, FloatMode::Contract, FloatMode::Fast];
const SPACES: [AddressSpace; 4] = [
    AddressSpace::Device,
    AddressSpace::Constant,
    AddressSpace::Threadgroup,
    AddressSpace::Thread,
];

/// Bits of a kernel's flags.
mod flag {
    pub const THREADGROUP_SIZE: u8 = 1;
    pub const SIMDGROUP_SIZE: u8 = 2;
    pub const OUT_OF_BOUNDS_LOADS: u8 = 4;
    pub const OUT_OF_BOUNDS_STORES: u8 = 8;
    /// Two bits from here on are the float mode.
    pub const FLOAT_MODE_SHIFT: u32 = 4;
    pub const ALL: u8 = 0x3f;
}

/// The type of a value; of one that is not there, some type, for the verifier has refused it.
fn value_type(kernel: &Kernel, value: Value) -> Type {
    let info = kernel.values.get(value.0 as usize);
    info.map_or(Type::Event, |info| info.ty)
}

struct Writer {
    out: Vec<u8>,
    ops: HashMap<Op, u64>,
}

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    fn string(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Writer, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|i| item(self, i));
    }

    fn option<T>(&mut self, value: Option<&T>, some: impl FnOnce(&mut Writer, &T)) {
        self.byte(value.is_some().into());
        if let Some(value) = value {
            some(self, value);
        }
    }

    /// The place of an item in a list of all of its kind.
    fn choice<T: PartialEq>(&mut self, all: &[T], item: &T) {
        self.byte(
            all.iter()
                .position(|i| i == item)
                .map_or(u8::MAX, |i| i as u8),
        );
    }

    fn span(&mut self, span: &Span) {
        let span = Some(span).filter(|s| **s != Span::NONE);
        self.option(span, |w, span| {
            w.number(span.source.map_or(0, |id| u64::from(id.0) + 1));
            for position in [span.start, span.end] {
                w.number(position.line.into());
                w.number(position.column.into());
            }
            w.number(span.call.map_or(0, |id| u64::from(id.0) + 1));
        });
    }

    fn scalar(&mut self, scalar: Scalar) {
        self.choice(&Scalar::ALL, &scalar);
    }

    fn constant(&mut self, constant: &Const) {
        self.scalar(constant.scalar);
        self.number(constant.bits);
    }

    fn ty(&mut self, ty: Type) {
        match ty {
            Type::Scalar(scalar) => {
                self.byte(0);
                self.scalar(scalar);
            }
            Type::Vector(scalar, count) => {
                self.byte(1);
                self.scalar(scalar);
                self.byte(count);
            }
            Type::Matrix {
                scalar,
                columns,
                rows,
            } => {
                self.byte(2);
                self.scalar(scalar);
                self.byte(columns);
                self.byte(rows);
            }
            Type::SimdgroupMatrix {
                scalar,
                rows,
                columns,
            } => {
                self.byte(3);
                self.scalar(scalar);
                self.byte(rows);
                self.byte(columns);
            }
            Type::Event => self.byte(4),
        }
    }

    fn element(&mut self, element: &ElementType) {
        match element {
            ElementType::Value(ty) => self.ty(*ty),
            ElementType::Array(element, length) => {
                self.byte(5);
                self.number((*length).into());
                self.element(element);
            }
            ElementType::Struct(id) => {
                self.byte(6);
                self.number(id.0.into());
            }
        }
    }

    fn kernel(&mut self, kernel: &Kernel) {
        self.string(&kernel.name);
        self.list(&kernel.params, |w, param| {
            w.string(&param.name);
            match &param.kind {
                ParamKind::Buffer { access, element } => {
                    w.byte(0);
                    w.choice(&ACCESSES, access);
                    w.element(element);
                }
                ParamKind::Constant { element } => {
                    w.byte(1);
                    w.element(element);
                }
                ParamKind::Threadgroup { element } => {
                    w.byte(2);
                    w.element(element);
                }
                // The value's name is the parameter's.
                ParamKind::Scalar { value } => {
                    w.byte(3);
                    w.ty(value_type(kernel, *value));
                }
            }
            w.span(&param.span);
        });
        let mut flags = 0;
        let mode = FLOAT_MODES.iter().position(|m| *m == kernel.float_mode);
        flags |= (mode.unwrap_or_default() as u8) << flag::FLOAT_MODE_SHIFT;
        for (set, bit) in [
            (kernel.threadgroup_size.is_some(), flag::THREADGROUP_SIZE),
            (kernel.simdgroup_size.is_some(), flag::SIMDGROUP_SIZE),
            (kernel.allow_out_of_bounds_loads, flag::OUT_OF_BOUNDS_LOADS),
            (
                kernel.allow_out_of_bounds_stores,
                flag::OUT_OF_BOUNDS_STORES,
            ),
        ] {
            if set {
                flags |= bit;
            }
        }
        self.byte(flags);
        for size in kernel.threadgroup_size.iter().flatten() {
            self.number((*size).into());
        }
        if let Some(size) = kernel.simdgroup_size {
            self.number(size.into());
        }
        self.region(kernel, &kernel.body);
        self.span(&kernel.span);
    }

    /// What a value is where it is defined: its type and its name, if any.
    fn definition(&mut self, kernel: &Kernel, value: Value) {
        self.ty(value_type(kernel, value));
        let info = kernel.values.get(value.0 as usize);
        self.option(info.and_then(|info| info.name.as_ref()), |w, name| {
            w.string(name);
        });
    }

    fn definitions(&mut self, kernel: &Kernel, values: &[Value]) {
        self.list(values, |w, v| w.definition(kernel, *v));
    }

    fn region(&mut self, kernel: &Kernel, region: &Region) {
        self.definitions(kernel, &region.params);
        self.list(&region.insts, |w, inst| w.inst(kernel, inst));
    }

    fn value(&mut self, value: Value) {
        self.number(value.0.into());
    }

    fn values(&mut self, values: &[Value]) {
        self.list(values, |w, v| w.value(*v));
    }

    fn memory(&mut self, memory: Memory) {
        let (tag, id) = match memory {
            Memory::Param(id) => (0, id),
            Memory::Alloc(id) => (1, id),
            Memory::Constant(id) => (2, id),
        };
        self.byte(tag);
        self.number(id.into());
    }

    fn place(&mut self, place: &Place) {
        self.memory(place.memory);
        self.value(place.index);
        match place.width {
            Width::One => self.byte(0),
            Width::Run(count) => {
                self.byte(1);
                self.byte(count);
            }
            Width::Group(count) => {
                self.byte(2);
                self.byte(count);
            }
        }
        self.list(&place.path, |w, step| match step {
            Step::Field(number) => {
                w.byte(0);
                w.number((*number).into());
            }
            Step::Index(index) => {
                w.byte(1);
                w.value(*index);
            }
        });
    }

    fn copy(&mut self, operands: &CopyOperands) {
        self.memory(operands.destination);
        self.value(operands.destination_index);
        self.memory(operands.source);
        self.value(operands.source_index);
    }

    fn matrix_place(&mut self, place: &MatrixPlace) {
        self.memory(place.memory);
        self.value(place.index);
        self.value(place.row);
        self.byte(place.transpose.into());
    }

    /// The tag and the operands.
    fn operands(&mut self, kernel: &Kernel, inst: &Inst) {
        match &inst.kind {
            InstKind::Const(constant) => {
                self.byte(tag::CONST);
                self.constant(constant);
            }
            InstKind::FunctionConstant(id) => {
                self.byte(tag::FUNCTION_CONSTANT);
                self.number((*id).into());
            }
            InstKind::Op { op, imm, args } => {
                self.byte(tag::OP);
                // Every operation of the module is in the table.
                self.number(self.ops.get(op).copied().unwrap_or(u64::MAX));
                match imm {
                    Imm::None => self.byte(0),
                    Imm::Type(ty) => {
                        self.byte(1);
                        self.ty(*ty);
                    }
                    Imm::Dim(dim) => {
                        self.byte(2);
                        self.choice(&Dim::ALL, dim);
                    }
                    Imm::Swizzle(swizzle) => {
                        self.byte(3);
                        self.list(swizzle.components(), |w, c| w.byte(*c));
                    }
                }
                self.values(args);
            }
            InstKind::BufferLength(memory) => {
                self.byte(tag::BUFFER_LENGTH);
                self.memory(*memory);
            }
            InstKind::Load(place) => {
                self.byte(tag::LOAD);
                self.place(place);
            }
            InstKind::Store { place, value } => {
                self.byte(tag::STORE);
                self.place(place);
                self.value(*value);
            }
            InstKind::Atomic {
                op,
                place,
                args,
                order,
                scope,
            } => {
                self.byte(tag::ATOMIC);
                self.choice(&AtomicOp::ALL, op);
                self.place(place);
                self.values(args);
                self.choice(&Order::ALL, order);
                self.choice(&SCOPES, scope);
            }
            InstKind::Alloc(id) => {
                self.byte(tag::ALLOC);
                // Numbering is canonical, so the array is there.
                self.option(kernel.allocs.get(*id as usize), |w, alloc| {
                    w.string(&alloc.name);
                    w.choice(&SPACES, &alloc.space);
                    w.element(&alloc.element);
                    w.number(alloc.length.into());
                });
            }
            InstKind::Copy { operands, count } => {
                self.byte(tag::COPY);
                self.copy(operands);
                self.value(*count);
            }
            InstKind::AsyncCopy { operands, shape } => match shape {
                CopyShape::Linear { count } => {
                    self.byte(tag::ASYNC_COPY);
                    self.copy(operands);
                    self.value(*count);
                }
                CopyShape::Tile {
                    destination_row,
                    source_row,
                    columns,
                    rows,
                } => {
                    self.byte(tag::ASYNC_COPY_2D);
                    self.copy(operands);
                    for value in [destination_row, source_row, columns, rows] {
                        self.value(*value);
                    }
                }
            },
            InstKind::Wait { events } => {
                self.byte(tag::WAIT);
                self.values(events);
            }
            InstKind::Barrier { scope, spaces } => {
                self.byte(tag::BARRIER);
                self.choice(&SCOPES, scope);
                self.byte(spaces.0);
            }
            InstKind::MatrixFill { value } => {
                self.byte(tag::MATRIX_FILL);
                self.value(*value);
            }
            InstKind::MatrixLoad { place } => {
                self.byte(tag::MATRIX_LOAD);
                self.matrix_place(place);
            }
            InstKind::MatrixStore { place, matrix } => {
                self.byte(tag::MATRIX_STORE);
                self.matrix_place(place);
                self.value(*matrix);
            }
            InstKind::MatrixMultiplyAccumulate { a, b, c } => {
                self.byte(tag::MATRIX_MULTIPLY_ACCUMULATE);
                for value in [a, b, c] {
                    self.value(*value);
                }
            }
            InstKind::AssertUniform { value, scope } => {
                self.byte(tag::ASSERT_UNIFORM);
                self.value(*value);
                self.choice(&SCOPES, scope);
            }
            InstKind::If { condition, .. } => {
                self.byte(tag::IF);
                self.value(*condition);
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body: _,
            } => {
                self.byte(tag::FOR);
                for value in [lower, upper, step] {
                    self.value(*value);
                }
                self.values(init);
            }
            InstKind::Loop { init, body: _ } => {
                self.byte(tag::LOOP);
                self.values(init);
            }
            InstKind::Yield(values) => {
                self.byte(tag::YIELD);
                self.values(values);
            }
            InstKind::Break(values) => {
                self.byte(tag::BREAK);
                self.values(values);
            }
            InstKind::Continue(values) => {
                self.byte(tag::CONTINUE);
                self.values(values);
            }
            InstKind::Return => self.byte(tag::RETURN),
        }
    }

    fn inst(&mut self, kernel: &Kernel, inst: &Inst) {
        self.operands(kernel, inst);
        self.definitions(kernel, &inst.results);
        for region in inst.kind.regions() {
            self.region(kernel, region);
        }
        self.span(&inst.span);
    }
}

/// The module that bytes encode.
///
/// # Errors
/// The first thing that is wrong, and where. Bytes that say more than a module does, or the same in
/// another way than [`encode`], are wrong too.
pub fn decode(bytes: &[u8]) -> Result<Module, DecodeError> {
    let mut r = Reader {
        bytes,
        at: 0,
        ops: Vec::new(),
        structs: 0,
        kernel: Kernel::new(""),
        module: Module::default(),
    };
    r.module()?;
    let module = r.module;
    // One module has one encoding.
    let again = encode(&module);
    if again == bytes {
        return Ok(module);
    }
    let offset = again.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    Err(DecodeError {
        offset,
        message: "this is not how the module is encoded".to_string(),
    })
}

type Decoded<T> = Result<T, DecodeError>;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    ops: Vec<Op>,
    /// Structs whose fields are complete.
    structs: usize,
    /// The kernel being read.
    kernel: Kernel,
    module: Module,
}

impl Reader<'_> {
    fn fail<T>(&self, offset: usize, message: impl Into<String>) -> Decoded<T> {
        Err(DecodeError {
            offset,
            message: message.into(),
        })
    }

    fn byte(&mut self) -> Decoded<u8> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => self.fail(self.at, "the bytes end early"),
        }
    }

    fn number(&mut self) -> Decoded<u64> {
        let start = self.at;
        let mut number = 0u64;
        for shift in (0..).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) {
                return self.fail(start, "a number has more than 64 bits");
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(number)
    }

    fn small(&mut self) -> Decoded<u32> {
        let start = self.at;
        let number = self.number()?;
        u32::try_from(number).or_else(|_| self.fail(start, format!("{number} is too large")))
    }

    /// An id below a bound.
    fn id(&mut self, what: &str, bound: usize) -> Decoded<u32> {
        let start = self.at;
        let id = self.small()?;
        if (id as usize) < bound {
            Ok(id)
        } else {
            self.fail(start, format!("there is no {what} {id} here, only {bound}"))
        }
    }

    /// A length: of what is at least a byte each, so that nothing longer than the rest is believed.
    fn length(&mut self) -> Decoded<usize> {
        let start = self.at;
        let length = self.number()?;
        let left = self.bytes.len() - self.at;
        match usize::try_from(length) {
            Ok(length) if length <= left => Ok(length),
            _ => self.fail(
                start,
                format!("a length of {length}, but {left} bytes are left"),
            ),
        }
    }

    fn string(&mut self) -> Decoded<Arc<str>> {
        let length = self.length()?;
        let start = self.at;
        self.at += length;
        match std::str::from_utf8(&self.bytes[start..self.at]) {
            Ok(text) => Ok(text.into()),
            Err(error) => self.fail(start + error.valid_up_to(), "text that is not UTF-8"),
        }
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        let length = self.length()?;
        // Not reserved: an item in memory is larger than the byte that a hostile one takes.
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn flag(&mut self) -> Decoded<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => self.fail(self.at - 1, format!("{other} where only 0 or 1 can stand")),
        }
    }

    fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> Decoded<T>) -> Decoded<Option<T>> {
        if self.flag()? {
            some(self).map(Some)
        } else {
            Ok(None)
        }
    }

    fn choice<T: Copy>(&mut self, what: &str, all: &[T]) -> Decoded<T> {
        let byte = self.byte()?;
        match all.get(usize::from(byte)) {
            Some(item) => Ok(*item),
            None => self.unknown(what, byte),
        }
    }

    /// The byte just read chooses nothing.
    fn unknown<T>(&self, what: &str, byte: u8) -> Decoded<T> {
        self.fail(self.at - 1, format!("there is no {what} number {byte}"))
    }

    fn span(&mut self) -> Decoded<Span> {
        self.span_within(self.module.calls.len())
    }

    /// A span that came through one of the first `calls` calls, if through any.
    fn span_within(&mut self, calls: usize) -> Decoded<Span> {
        let span = self.option(|r| {
            let sources = r.module.sources.len();
            let source = r.id("source", sources + 1)?;
            let mut position = || {
                Ok(Position {
                    line: r.small()?,
                    column: r.small()?,
                })
            };
            let (start, end) = (position()?, position()?);
            let call = r.id("call", calls + 1)?;
            Ok(Span {
                source: source.checked_sub(1).map(SourceId),
                start,
                end,
                call: call.checked_sub(1).map(CallId),
            })
        })?;
        Ok(span.unwrap_or(Span::NONE))
    }

    fn scalar(&mut self) -> Decoded<Scalar> {
        self.choice("scalar type", &Scalar::ALL)
    }

    fn constant(&mut self) -> Decoded<Const> {
        let scalar = self.scalar()?;
        let start = self.at;
        let bits = self.number()?;
        if bits > u64::MAX >> (64 - scalar.bits()) {
            return self.fail(start, format!("a constant has more bits than {scalar}"));
        }
        Ok(Const { scalar, bits })
    }

    fn ty(&mut self) -> Decoded<Type> {
        let byte = self.byte()?;
        self.ty_of(byte)
    }

    /// A type after its first byte.
    fn ty_of(&mut self, byte: u8) -> Decoded<Type> {
        let start = self.at - 1;
        let ty = match byte {
            0 => Type::Scalar(self.scalar()?),
            1 => Type::Vector(self.scalar()?, self.byte()?),
            2 => Type::Matrix {
                scalar: self.scalar()?,
                columns: self.byte()?,
                rows: self.byte()?,
            },
            3 => Type::SimdgroupMatrix {
                scalar: self.scalar()?,
                rows: self.byte()?,
                columns: self.byte()?,
            },
            4 => Type::Event,
            other => return self.unknown("type", other),
        };
        match ty.defect() {
            None => Ok(ty),
            Some(defect) => self.fail(start, defect),
        }
    }

    fn element(&mut self) -> Decoded<ElementType> {
        self.element_at(0)
    }

    fn element_at(&mut self, depth: u32) -> Decoded<ElementType> {
        let start = self.at;
        match self.byte()? {
            5 if depth >= MAX_TYPE_DEPTH => {
                self.fail(start, format!("arrays nest at most {MAX_TYPE_DEPTH} deep"))
            }
            5 => {
                let length = self.small()?;
                let element = self.element_at(depth + 1)?;
                Ok(ElementType::Array(Arc::new(element), length))
            }
            6 => {
                let id = self.id("struct", self.structs)?;
                Ok(ElementType::Struct(StructId(id)))
            }
            other => self.ty_of(other).map(ElementType::Value),
        }
    }

    fn module(&mut self) -> Decoded<()> {
        for expected in MAGIC {
            if self.byte()? != *expected {
                return self.fail(self.at - 1, "it does not begin as modules do");
            }
        }
        let start = self.at;
        let version = self.number()?;
        if version != VERSION {
            return self.fail(
                start,
                format!("version {version} of the form, this program reads version {VERSION}"),
            );
        }
        self.module.sources = self.list(|r| {
            Ok(Source {
                name: r.string()?,
                text: r.string()?,
            })
        })?;
        // A call leads further out to earlier ones only, so that every chain ends.
        let mut earlier = 0;
        self.module.calls = self.list(|r| {
            let call = Call {
                function: r.string()?,
                site: r.span_within(earlier)?,
            };
            earlier += 1;
            Ok(call)
        })?;
        self.ops = self.list(|r| {
            let start = r.at;
            let name = r.string()?;
            match Op::from_name(&name) {
                Some(op) => Ok(op),
                None => r.fail(
                    start,
                    format!("there is no operation `{}`", name.escape_debug()),
                ),
            }
        })?;
        self.module.structs = self.list(|r| {
            let def = StructDef {
                name: r.string()?,
                fields: r.list(|r| Ok((r.string()?, r.element()?)))?,
                span: r.span()?,
            };
            r.structs += 1;
            Ok(def)
        })?;
        self.module.function_constants = self.list(|r| {
            Ok(FunctionConstant {
                name: r.string()?,
                id: r.small()?,
                scalar: r.scalar()?,
                default: r.option(Self::constant)?,
                span: r.span()?,
            })
        })?;
        self.module.constants = self.list(|r| {
            Ok(ConstantArray {
                name: r.string()?,
                element: r.element()?,
                length: r.small()?,
                values: r.list(Self::constant)?,
                span: r.span()?,
            })
        })?;
        self.module.kernels = self.list(Self::kernel)?;
        if self.at < self.bytes.len() {
            return self.fail(self.at, "the module ends here, but bytes follow");
        }
        Ok(())
    }

    fn kernel(&mut self) -> Decoded<Kernel> {
        let name = self.string()?;
        self.kernel = Kernel::new(name);
        self.kernel.params = self.list(|r| {
            let name = r.name()?;
            let kind = match r.byte()? {
                0 => ParamKind::Buffer {
                    access: r.choice("kind of access", &ACCESSES)?,
                    element: r.element()?,
                },
                1 => ParamKind::Constant {
                    element: r.element()?,
                },
                2 => ParamKind::Threadgroup {
                    element: r.element()?,
                },
                3 => ParamKind::Scalar {
                    value: r.scalar_param(&name)?,
                },
                other => return r.unknown("kind of parameter", other),
            };
            let span = r.span()?;
            Ok(Param { name, kind, span })
        })?;
        let flags = self.byte()?;
        if flags & !flag::ALL != 0 {
            return self.unknown("set of flags", flags);
        }
        let mode = usize::from(flags >> flag::FLOAT_MODE_SHIFT);
        let Some(mode) = FLOAT_MODES.get(mode) else {
            return self.unknown("set of flags", flags);
        };
        self.kernel.float_mode = *mode;
        self.kernel.allow_out_of_bounds_loads = flags & flag::OUT_OF_BOUNDS_LOADS != 0;
        self.kernel.allow_out_of_bounds_stores = flags & flag::OUT_OF_BOUNDS_STORES != 0;
        if flags & flag::THREADGROUP_SIZE != 0 {
            self.kernel.threadgroup_size = Some([self.small()?, self.small()?, self.small()?]);
        }
        if flags & flag::SIMDGROUP_SIZE != 0 {
            self.kernel.simdgroup_size = Some(self.small()?);
        }
        self.kernel.body = self.region(0)?;
        self.kernel.span = self.span()?;
        Ok(std::mem::replace(&mut self.kernel, Kernel::new("")))
    }

    /// A name that is not empty.
    fn name(&mut self) -> Decoded<Arc<str>> {
        let start = self.at;
        let name = self.string()?;
        if name.is_empty() {
            return self.fail(start, "a name is empty");
        }
        Ok(name)
    }

    fn scalar_param(&mut self, name: &Arc<str>) -> Decoded<Value> {
        let ty = self.ty()?;
        Ok(self.define(ty, Some(name.clone())))
    }

    /// The next value of the kernel.
    fn definition(&mut self) -> Decoded<Value> {
        let ty = self.ty()?;
        let name = self.option(Self::name)?;
        Ok(self.define(ty, name))
    }

    fn define(&mut self, ty: Type, name: Option<Arc<str>>) -> Value {
        let value = Value(self.kernel.values.len() as u32);
        self.kernel.values.push(ValueInfo { ty, name });
        value
    }

    fn region(&mut self, depth: usize) -> Decoded<Region> {
        if depth > MAX_NESTING {
            return self.fail(self.at, format!("blocks nest at most {MAX_NESTING} deep"));
        }
        let params = self.list(Self::definition)?;
        let insts = self.list(|r| r.inst(depth))?;
        Ok(Region { params, insts })
    }

    fn value(&mut self) -> Decoded<Value> {
        self.id("value", self.kernel.values.len()).map(Value)
    }

    fn values(&mut self) -> Decoded<Values> {
        self.list(Self::value).map(Values::from_vec)
    }

    fn memory(&mut self) -> Decoded<Memory> {
        let start = self.at;
        match self.byte()? {
            0 => {
                let id = self.id("parameter", self.kernel.params.len())?;
                match &self.kernel.params[id as usize].kind {
                    ParamKind::Scalar { .. } => {
                        self.fail(start, format!("parameter {id} is a value, not memory"))
                    }
                    ParamKind::Buffer { .. }
                    | ParamKind::Constant { .. }
                    | ParamKind::Threadgroup { .. } => Ok(Memory::Param(id)),
                }
            }
            1 => self
                .id("array", self.kernel.allocs.len())
                .map(Memory::Alloc),
            2 => {
                let count = self.module.constants.len();
                self.id("constant", count).map(Memory::Constant)
            }
            other => self.unknown("kind of memory", other),
        }
    }

    fn place(&mut self) -> Decoded<Place> {
        Ok(Place {
            memory: self.memory()?,
            index: self.value()?,
            width: match self.byte()? {
                0 => Width::One,
                1 => Width::Run(self.byte()?),
                2 => Width::Group(self.byte()?),
                other => return self.unknown("kind of access", other),
            },
            path: SmallVec::from_vec(self.list(|r| match r.byte()? {
                0 => r.small().map(Step::Field),
                1 => r.value().map(Step::Index),
                other => r.unknown("kind of step", other),
            })?),
        })
    }

    fn copy(&mut self) -> Decoded<CopyOperands> {
        Ok(CopyOperands {
            destination: self.memory()?,
            destination_index: self.value()?,
            source: self.memory()?,
            source_index: self.value()?,
        })
    }

    fn matrix_place(&mut self) -> Decoded<MatrixPlace> {
        Ok(MatrixPlace {
            memory: self.memory()?,
            index: self.value()?,
            row: self.value()?,
            transpose: self.flag()?,
        })
    }

    fn op(&mut self) -> Decoded<InstKind> {
        let index = self.id("operation", self.ops.len())?;
        let op = self.ops[index as usize];
        let imm = match self.byte()? {
            0 => Imm::None,
            1 => Imm::Type(self.ty()?),
            2 => Imm::Dim(self.choice("component", &Dim::ALL)?),
            3 => {
                let start = self.at;
                let components = self.list(Self::byte)?;
                match Swizzle::new(&components) {
                    Some(swizzle) => Imm::Swizzle(swizzle),
                    None => return self.fail(start, "these are no components"),
                }
            }
            other => return self.unknown("kind of immediate", other),
        };
        let args = self.values()?;
        Ok(InstKind::Op { op, imm, args })
    }

    fn alloc(&mut self) -> Decoded<InstKind> {
        if !self.flag()? {
            return self.fail(self.at - 1, "an array without its declaration");
        }
        let alloc = Alloc {
            name: self.name()?,
            space: self.choice("address space", &SPACES)?,
            element: self.element()?,
            length: self.small()?,
        };
        let id = self.kernel.allocs.len() as u32;
        self.kernel.allocs.push(alloc);
        Ok(InstKind::Alloc(id))
    }

    fn inst(&mut self, depth: usize) -> Decoded<Inst> {
        let mut kind = match self.byte()? {
            tag::CONST => InstKind::Const(self.constant()?),
            tag::FUNCTION_CONSTANT => {
                let count = self.module.function_constants.len();
                InstKind::FunctionConstant(self.id("function constant", count)?)
            }
            tag::OP => self.op()?,
            tag::BUFFER_LENGTH => InstKind::BufferLength(self.memory()?),
            tag::LOAD => InstKind::Load(self.place()?),
            tag::STORE => InstKind::Store {
                place: self.place()?,
                value: self.value()?,
            },
            tag::ATOMIC => InstKind::Atomic {
                op: self.choice("atomic operation", &AtomicOp::ALL)?,
                place: self.place()?,
                args: SmallVec::from_vec(self.list(Self::value)?),
                order: self.choice("order", &Order::ALL)?,
                scope: self.choice("scope", &SCOPES)?,
            },
            tag::ALLOC => self.alloc()?,
            tag::COPY => InstKind::Copy {
                operands: self.copy()?,
                count: self.value()?,
            },
            tag::ASYNC_COPY => InstKind::AsyncCopy {
                operands: self.copy()?,
                shape: CopyShape::Linear {
                    count: self.value()?,
                },
            },
            tag::ASYNC_COPY_2D => InstKind::AsyncCopy {
                operands: self.copy()?,
                shape: CopyShape::Tile {
                    destination_row: self.value()?,
                    source_row: self.value()?,
                    columns: self.value()?,
                    rows: self.value()?,
                },
            },
            tag::WAIT => InstKind::Wait {
                events: self.values()?,
            },
            tag::BARRIER => {
                let scope = self.choice("scope", &SCOPES)?;
                let spaces = Spaces(self.byte()?);
                let all = Spaces::NAMES
                    .iter()
                    .fold(0, |all, (space, _)| all | space.0);
                if spaces.0 & !all != 0 {
                    return self.unknown("set of spaces", spaces.0);
                }
                InstKind::Barrier { scope, spaces }
            }
            tag::MATRIX_FILL => InstKind::MatrixFill {
                value: self.value()?,
            },
            tag::MATRIX_LOAD => InstKind::MatrixLoad {
                place: self.matrix_place()?,
            },
            tag::MATRIX_STORE => InstKind::MatrixStore {
                place: self.matrix_place()?,
                matrix: self.value()?,
            },
            tag::MATRIX_MULTIPLY_ACCUMULATE => InstKind::MatrixMultiplyAccumulate {
                a: self.value()?,
                b: self.value()?,
                c: self.value()?,
            },
            tag::ASSERT_UNIFORM => InstKind::AssertUniform {
                value: self.value()?,
                scope: self.choice("scope", &SCOPES)?,
            },
            // Regions come after the results, whose numbers come before theirs.
            tag::IF => InstKind::If {
                condition: self.value()?,
                then: Region::default(),
                otherwise: Region::default(),
            },
            tag::FOR => InstKind::For {
                lower: self.value()?,
                upper: self.value()?,
                step: self.value()?,
                init: self.values()?,
                body: Region::default(),
            },
            tag::LOOP => InstKind::Loop {
                init: self.values()?,
                body: Region::default(),
            },
            tag::YIELD => InstKind::Yield(self.values()?),
            tag::BREAK => InstKind::Break(self.values()?),
            tag::CONTINUE => InstKind::Continue(self.values()?),
            tag::RETURN => InstKind::Return,
            other => return self.unknown("instruction", other),
        };
        let results = SmallVec::from_vec(self.list(Self::definition)?);
        for region in kind.regions_mut() {
            *region = self.region(depth + 1)?;
        }
        let span = self.span()?;
        Ok(Inst {
            kind,
            results,
            span,
        })
    }
}
