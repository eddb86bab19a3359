//! The builder: the one way to make a kernel, for front ends, the text parser and passes alike.
//!
//! A [`KernelBuilder`] owns the module it adds to. Methods never fail on the spot: what is wrong is
//! kept with the span that was current, and the result is *poison*: a value of a plausible type whose
//! uses are silent, so that one mistake is reported once. [`KernelBuilder::finish`] gives all errors at
//! once, with what the verifier finds in the rest. Methods for the rows of the op table (`add`, `sqrt`,
//! ...) are generated with them.
//!
//! The builder folds, merges and drops nothing: what is called is what is built (A8).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::imageblock_formats::Imageblocks;
use crate::inst::{
    AtomicOp, Const, CopyOperands, CopyShape, Inst, InstKind, MAX_NESTING, MatrixPlace, Memory,
    Order, Place, Region, Scope, Spaces, Step, Value, ValueInfo, Values,
};
use crate::module::{
    Access, AddressSpace, Alloc, Binding, Kernel, MemoryInfo, Module, Param, ParamKind, memory_info,
};
use crate::ops::{Imm, Op};
use crate::place_type::place_type;
use crate::requires::{Given, Requirement};
use crate::rules::Rule;
use crate::span::Span;
use crate::text::{parse_requirement, shorten};
use crate::types::{ElementType, Scalar, Type};
use crate::verify::Draft;

/// Builds one kernel into a module.
///
/// ```
/// use invar_ir::{Access, Dim, KernelBuilder, Module, Place, Scalar};
///
/// let mut k = KernelBuilder::new(Module::default(), "double");
/// let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
/// let i = k.thread_position_in_grid(Dim::X);
/// let v = k.load(Place::element(x, i));
/// let twice = k.add(v, v);
/// k.store(Place::element(x, i), twice);
/// let module = k.finish()?;
/// assert_eq!(&*module.kernels[0].name, "double");
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub struct KernelBuilder {
    module: Module,
    kernel: Kernel,
    regions: Vec<Region>,
    span: Span,
    names: HashMap<Arc<str>, u32>,
    errors: Vec<Diagnostic>,
    pub(crate) imageblocks: Imageblocks,
    /// Levels that gradients lead to.
    pub(crate) gradient_levels: HashSet<Value>,
    /// Values that could not be built, which has been reported.
    poison: HashSet<Value>,
}

/// A moment of a [`KernelBuilder`], from [`KernelBuilder::mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    regions: usize,
    insts: usize,
    allocs: usize,
    errors: usize,
}

impl KernelBuilder {
    /// Begins a kernel of that name; the module may hold others already.
    ///
    /// ```
    /// # use invar_ir::*;
    /// let k = KernelBuilder::new(Module::default(), "fill");
    /// assert_eq!(&*k.kernel().name, "fill");
    /// ```
    pub fn new(module: Module, name: &str) -> KernelBuilder {
        KernelBuilder {
            module,
            kernel: Kernel::new(name),
            regions: vec![Region::default()],
            span: Span::NONE,
            names: HashMap::new(),
            errors: Vec::new(),
            imageblocks: Imageblocks::default(),
            gradient_levels: HashSet::new(),
            poison: HashSet::new(),
        }
    }

    /// The module so far, without the kernel being built.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// assert!(k.module().kernels.is_empty());
    /// ```
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The module so far, to declare structs, constants and sources in.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.module_mut().structs.push(StructDef {
    ///     name: "Pair".into(),
    ///     fields: vec![("a".into(), Scalar::F32.into()), ("b".into(), Scalar::F32.into())],
    ///     span: Span::NONE,
    /// });
    /// let pairs = k.buffer("pairs", Access::Read, ElementType::Struct(StructId(0)));
    /// assert!(k.memory(pairs).is_some());
    /// ```
    pub fn module_mut(&mut self) -> &mut Module {
        &mut self.module
    }

    /// The kernel so far, without the instructions that are not in a closed region yet.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.scalar("n", Scalar::U32);
    /// assert_eq!(k.kernel().params.len(), 1);
    /// assert_eq!(k.kernel().value_name(n), "%n");
    /// ```
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What a value is called in messages, as [`Module::called`] says of a kernel that is finished.
    ///
    /// ```
    /// use invar_ir::{KernelBuilder, Module, Op, Position, Source, SourceId, Span};
    ///
    /// let (name, text) = ("k.wgsl".into(), "x = 2 * 3;".into());
    /// let sources = vec![Source { name, text }];
    /// let mut k = KernelBuilder::new(Module { sources, ..Module::default() }, "k");
    /// let [start, end] = [5, 10].map(|column| Position { line: 1, column });
    /// k.set_span(Span { source: Some(SourceId(0)), start, end, call: None });
    /// let two = k.const_u32(2);
    /// let product = k.op(Op::Mul, (), &[two, two]);
    /// assert_eq!(k.called(product), "2 * 3");
    /// k.name(product, "x");
    /// assert_eq!(k.called(product), "%x");
    /// ```
    pub fn called(&self, value: Value) -> String {
        self.module.called_in(&self.kernel, &self.regions, value)
    }

    /// The kernel so far, to set its attributes: float mode, threadgroup and simdgroup size.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.kernel_mut().threadgroup_size = Some([64, 1, 1]);
    /// k.kernel_mut().simdgroup_size = Some(32);
    /// k.kernel_mut().float_mode = FloatMode::Strict;
    /// ```
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    /// What follows was written there.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let line = |line| Position { line, column: 1 };
    /// k.set_span(Span { start: line(7), end: line(8), ..Span::NONE });
    /// let n = k.const_u32(1);
    /// assert_eq!(k.span().start.line, 7);
    /// ```
    pub fn set_span(&mut self, span: Span) {
        self.span = span;
    }

    /// Where what follows was written.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// assert_eq!(k.span(), Span::NONE);
    /// ```
    pub fn span(&self) -> Span {
        self.span
    }

    /// Keeps an error for [`KernelBuilder::finish`].
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let span = k.span();
    /// k.error(Diagnostic::error(Rule::Syntax, span, "the front end expected a name here"));
    /// assert!(k.finish().is_err());
    /// ```
    pub fn error(&mut self, diagnostic: Diagnostic) {
        self.errors.push(diagnostic);
    }

    /// The type of a value; see [`Kernel::ty`].
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let i = k.thread_position_in_grid(Dim::X);
    /// assert_eq!(k.ty(i), Type::U32);
    /// ```
    pub fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// What is known of a memory object.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::Read, Scalar::F32);
    /// assert_eq!(k.memory(x).map(|info| info.space), Some(AddressSpace::Device));
    /// ```
    pub fn memory(&self, memory: Memory) -> Option<MemoryInfo<'_>> {
        memory_info(&self.module.constants, &self.kernel, memory)
    }

    /// Names a value for messages and the text form. A name already taken gets a number appended:
    /// `total.1`. A value keeps its first name.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let (a, b) = (k.const_u32(1), k.const_u32(2));
    /// k.name(a, "total");
    /// k.name(b, "total");
    /// assert_eq!(k.kernel().value_name(b), "%total.1");
    /// ```
    pub fn name(&mut self, value: Value, name: &str) {
        let known = self.kernel.values.get(value.0 as usize);
        if known.is_some_and(|value| value.name.is_none()) && !name.is_empty() {
            let unique = self.unique_name(name);
            self.kernel.values[value.0 as usize].name = Some(unique);
        }
    }

    fn unique_name(&mut self, name: &str) -> Arc<str> {
        let mut candidate: Arc<str> = name.into();
        let mut number = 0;
        while self.names.contains_key(&candidate) {
            let last = self.names.entry(name.into()).or_insert(0);
            *last += 1;
            number = (*last).max(number + 1);
            candidate = format!("{name}.{number}").into();
        }
        self.names.insert(candidate.clone(), 0);
        candidate
    }

    // ---- parameters and memory ----

    pub(crate) fn param(&mut self, name: &str, kind: ParamKind) -> Memory {
        let name = self.unique_name(if name.is_empty() { "param" } else { name });
        self.kernel.params.push(Param {
            name,
            kind,
            binding: None,
            span: self.span,
        });
        Memory::Param(self.kernel.params.len() as u32 - 1)
    }

    /// Says where a shader's host binds the parameter that was added last.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.buffer("x", Access::Read, Scalar::F32);
    /// k.bind(Binding { group: 0, number: 3 });
    /// ```
    pub fn bind(&mut self, binding: Binding) {
        if let Some(param) = self.kernel.params.last_mut() {
            param.binding = Some(binding);
        }
    }

    /// A buffer parameter in `device` memory.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
    /// let v = k.buffer("v", Access::Read, Type::Vector(Scalar::F32, 3));
    /// # let _ = (x, v);
    /// ```
    pub fn buffer(
        &mut self,
        name: &str,
        access: Access,
        element: impl Into<ElementType>,
    ) -> Memory {
        let element = element.into();
        self.param(name, ParamKind::Buffer { access, element })
    }

    /// A buffer parameter in `constant` memory.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let weights = k.constant_buffer("weights", Scalar::F32);
    /// assert_eq!(k.memory(weights).map(|info| info.space), Some(AddressSpace::Constant));
    /// ```
    pub fn constant_buffer(&mut self, name: &str, element: impl Into<ElementType>) -> Memory {
        let element = element.into();
        self.param(name, ParamKind::Constant { element })
    }

    /// A parameter in threadgroup memory, whose length the dispatch gives.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let scratch = k.threadgroup_param("scratch", Scalar::F32);
    /// let length = k.buffer_length(scratch);
    /// assert_eq!(k.ty(length), Type::U64);
    /// ```
    pub fn threadgroup_param(&mut self, name: &str, element: impl Into<ElementType>) -> Memory {
        let element = element.into();
        self.param(name, ParamKind::Threadgroup { element })
    }

    /// A parameter passed by value.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.scalar("n", Scalar::U32);
    /// let one = k.const_u32(1);
    /// let last = k.sub(n, one);
    /// # let _ = last;
    /// ```
    pub fn scalar(&mut self, name: &str, ty: impl Into<Type>) -> Value {
        let value = self.new_value(ty.into());
        self.param(name, ParamKind::Scalar { value });
        let name = self.kernel.params.last().map(|p| p.name.clone());
        self.kernel.values[value.0 as usize].name = name;
        value
    }

    /// An array in threadgroup memory, all zeros when the threadgroup starts (I2).
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let tile = k.alloc_threadgroup("tile", Scalar::F32, 64);
    /// let i = k.thread_index_in_threadgroup();
    /// let v = k.literal(1.0f32);
    /// k.store(Place::element(tile, i), v);
    /// ```
    pub fn alloc_threadgroup(
        &mut self,
        name: &str,
        element: impl Into<ElementType>,
        length: u32,
    ) -> Memory {
        self.alloc(name, AddressSpace::Threadgroup, element.into(), length)
    }

    /// An array of the thread's own, all zeros here (I3).
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let own = k.alloc_thread("own", Scalar::F32, 4);
    /// let i = k.const_u32(3);
    /// let v = k.load(Place::element(own, i));
    /// assert_eq!(k.ty(v), Type::F32);
    /// ```
    pub fn alloc_thread(
        &mut self,
        name: &str,
        element: impl Into<ElementType>,
        length: u32,
    ) -> Memory {
        self.alloc(name, AddressSpace::Thread, element.into(), length)
    }

    fn alloc(
        &mut self,
        name: &str,
        space: AddressSpace,
        element: ElementType,
        length: u32,
    ) -> Memory {
        let id = self.declare_array(name, space, element, length);
        self.push(InstKind::Alloc(id), &[]);
        Memory::Alloc(id)
    }

    pub(crate) fn declare_array(
        &mut self,
        name: &str,
        space: AddressSpace,
        element: ElementType,
        length: u32,
    ) -> u32 {
        let name = self.unique_name(if name.is_empty() { "array" } else { name });
        self.kernel.allocs.push(Alloc {
            name,
            space,
            element,
            length,
        });
        self.kernel.allocs.len() as u32 - 1
    }

    /// Requires something of every launch (S5), in the author's names: what `requires(...)` takes in the
    /// text form, without its sigils. It speaks of parameters that are there by now.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::Read, Scalar::F32);
    /// let n = k.scalar("n", Scalar::U32);
    /// k.requires("n * n <= length(x)");
    /// k.requires("n % 4 == 0");
    /// # let _ = (x, n);
    /// assert_eq!(k.finish()?.kernels[0].requires.len(), 2);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn requires(&mut self, text: &str) {
        self.requires_given(text, &[]);
    }

    /// As [`KernelBuilder::requires`], with what further names stand for.
    ///
    /// ```
    /// # use invar_ir::{requires::Given, *};
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.scalar("n", Scalar::U32);
    /// k.requires_given("n % ROW == 0", &[("ROW", Given::Number(4))]);
    /// # let _ = n;
    /// assert!(k.finish()?.to_string().contains("requires(%n % 4 == 0)"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn requires_given(&mut self, text: &str, given: &[(&str, Given)]) {
        let span = self.span;
        match parse_requirement(text, &self.module, &self.kernel, given) {
            Ok(required) => self.kernel.requires.push(Requirement { required, span }),
            Err(why) => {
                let message = format!("`{}` cannot be required: {why}", shorten(text));
                self.error(Diagnostic::error(Rule::Syntax, span, message));
            }
        }
    }

    // ---- instructions ----

    fn new_value(&mut self, ty: Type) -> Value {
        self.kernel.values.push(ValueInfo { ty, name: None });
        Value(self.kernel.values.len() as u32 - 1)
    }

    /// Takes over the parameters, arrays and attributes of a kernel that is being rebuilt; its
    /// scalar parameters' values are still those of the old one.
    pub(crate) fn adopt_declarations(&mut self, old: &Kernel) {
        self.kernel = old.declarations();
        self.kernel.values.clear();
        let params = old.params.iter().filter_map(|p| match p.kind {
            ParamKind::Scalar { .. } => None,
            ParamKind::Buffer { .. }
            | ParamKind::Constant { .. }
            | ParamKind::Threadgroup { .. }
            | ParamKind::Texture(_)
            | ParamKind::Sampler => Some(&p.name),
        });
        let allocs = old.allocs.iter().map(|a| &a.name);
        self.names
            .extend(params.chain(allocs).map(|n| (n.clone(), 0)));
    }

    /// A value like one of another kernel, with its name; for a parameter that is taken over.
    pub(crate) fn adopt_value(&mut self, info: &ValueInfo) -> Value {
        let value = self.new_value(info.ty);
        if let Some(name) = &info.name {
            self.name(value, name);
        }
        value
    }

    /// The instructions that can be seen from where the builder stands, in order.
    pub(crate) fn open_insts(&self) -> impl DoubleEndedIterator<Item = &Inst> {
        self.regions.iter().flat_map(|region| &region.insts)
    }

    /// A value in the place of one that could not be built, which the caller reports.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let span = k.span();
    /// k.error(Diagnostic::error(Rule::TypeMismatch, span, "what stood here made no sense"));
    /// let nothing = k.poison(Type::F32);
    /// let sum = k.add(nothing, nothing);
    /// // One mistake is reported once.
    /// assert_eq!(k.finish().unwrap_err().0.len(), 1);
    /// # let _ = sum;
    /// ```
    pub fn poison(&mut self, plausible: Type) -> Value {
        let value = self.push1(InstKind::Const(Const::from(0u32)), plausible);
        self.poison.insert(value);
        value
    }

    /// Whether a value could not be built.
    pub(crate) fn is_poison(&self, value: Value) -> bool {
        self.poison.contains(&value)
    }

    /// Adds an instruction whose results have these types, without checking it.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let results = k.push(InstKind::Const(Const::from(7u32)), &[Type::U32]);
    /// assert_eq!(k.ty(results[0]), Type::U32);
    /// ```
    pub fn push(&mut self, kind: InstKind, results: &[Type]) -> SmallVec<[Value; 1]> {
        let results: SmallVec<[Value; 1]> = results.iter().map(|ty| self.new_value(*ty)).collect();
        let inst = Inst {
            kind,
            results: results.clone(),
            span: self.span,
        };
        if let InstKind::For { init, .. } | InstKind::Loop { init, .. } = &inst.kind {
            self.poison_like(&results, init);
        }
        // A region is always open: only `close_region` takes one off, and it keeps the body.
        if let Some(region) = self.regions.last_mut() {
            region.insts.push(inst);
        }
        results
    }

    /// Values that repeat others are poison where those are.
    fn poison_like(&mut self, values: &[Value], others: &[Value]) {
        for (value, other) in values.iter().zip(others) {
            if self.is_poison(*other) {
                self.poison.insert(*value);
            }
        }
    }

    fn push1(&mut self, kind: InstKind, ty: Type) -> Value {
        self.push(kind, &[ty])[0]
    }

    /// An operation of the op table. Prefer the method of its name where it has one.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.literal([1.0f32, 2.0]);
    /// let y = k.op(Op::Cast, Type::Vector(Scalar::I32, 2), &[x]);
    /// assert_eq!(k.ty(y), Type::Vector(Scalar::I32, 2));
    /// ```
    pub fn op(&mut self, op: Op, imm: impl Into<Imm>, args: &[Value]) -> Value {
        let imm = imm.into();
        let types: SmallVec<[Type; 4]> = args.iter().map(|v| self.ty(*v)).collect();
        let known = !args.iter().any(|v| self.is_poison(*v));
        let ty = match op.result_type(imm, &types) {
            Ok(ty) if known => ty,
            Ok(ty) => return self.poison(ty),
            Err(error) => {
                if known {
                    let message = error.message(&self.kernel, op, args, &|v| self.called(v));
                    self.errors.push(
                        Diagnostic::error(Rule::TypeMismatch, self.span, message)
                            .help(error.help()),
                    );
                }
                let plausible = match imm {
                    Imm::Type(ty) => ty,
                    _ => types.first().copied().unwrap_or(Type::U32),
                };
                return self.poison(plausible);
            }
        };
        let args = Values::from_slice(args);
        self.push1(InstKind::Op { op, imm, args }, ty)
    }

    /// A scalar constant of these bits.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let tiny = k.constant(Const { scalar: Scalar::F32, bits: 1 });
    /// assert_eq!(k.ty(tiny), Type::F32);
    /// ```
    pub fn constant(&mut self, constant: Const) -> Value {
        self.push1(InstKind::Const(constant), Type::Scalar(constant.scalar))
    }

    /// A `u32` constant.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.const_u32(7);
    /// assert_eq!(k.evaluate(n), Some(7u32.components()));
    /// ```
    pub fn const_u32(&mut self, value: u32) -> Value {
        self.constant(Const::from(value))
    }

    /// An `i32` constant.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.const_i32(-7);
    /// assert_eq!(k.evaluate(n), Some((-7i32).components()));
    /// ```
    pub fn const_i32(&mut self, value: i32) -> Value {
        self.constant(Const::from(value))
    }

    /// An `f32` constant.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.const_f32(0.5);
    /// assert_eq!(k.evaluate(x), Some(0.5f32.components()));
    /// ```
    pub fn const_f32(&mut self, value: f32) -> Value {
        self.constant(Const::from(value))
    }

    /// A `bool` constant.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let yes = k.const_bool(true);
    /// assert_eq!(k.evaluate(yes), Some(true.components()));
    /// ```
    pub fn const_bool(&mut self, value: bool) -> Value {
        self.constant(Const::from(value))
    }

    /// A vector from components, or a matrix from columns.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let (x, yz) = (k.literal(1.0f32), k.literal([2.0f32, 3.0]));
    /// let v = k.construct(Type::Vector(Scalar::F32, 3), &[x, yz]);
    /// assert_eq!(k.evaluate(v), Some([1.0f32, 2.0, 3.0].components()));
    /// ```
    pub fn construct(&mut self, ty: Type, parts: &[Value]) -> Value {
        self.op(Op::Construct, ty, parts)
    }

    /// How many elements are bound to a buffer or threadgroup parameter, as `u64`.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::Read, Scalar::F32);
    /// let n = k.buffer_length(x);
    /// assert_eq!(k.ty(n), Type::U64);
    /// ```
    pub fn buffer_length(&mut self, memory: Memory) -> Value {
        self.push1(InstKind::BufferLength(memory), Type::U64)
    }

    /// The type that an access to a place has; an error is kept if the place makes no sense.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::Read, Scalar::F32);
    /// let i = k.const_u32(0);
    /// let four = Place { width: Width::Group(4), ..Place::element(x, i) };
    /// assert_eq!(k.place_type(&four), Type::Vector(Scalar::F32, 4));
    /// ```
    pub fn place_type(&mut self, place: &Place) -> Type {
        self.checked_place(place).unwrap_or(Type::F32)
    }

    /// The type of an access; none if the place makes no sense, which is reported.
    fn checked_place(&mut self, place: &Place) -> Option<Type> {
        match place_type(&self.module, &self.kernel, place) {
            Ok(ty) => Some(ty),
            Err(message) => {
                let steps = place.path.iter().filter_map(|step| match step {
                    Step::Index(index) => Some(index),
                    Step::Field(_) => None,
                });
                let known = std::iter::once(&place.index)
                    .chain(steps)
                    .all(|v| !self.is_poison(*v));
                if known {
                    self.errors.push(
                        Diagnostic::error(Rule::TypeMismatch, self.span, message).help(PLACE_HELP),
                    );
                }
                None
            }
        }
    }

    /// Reads a place.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::Read, Scalar::F32);
    /// let i = k.thread_position_in_grid(Dim::X);
    /// let v = k.load(Place::element(x, i));
    /// assert_eq!(k.ty(v), Type::F32);
    /// ```
    pub fn load(&mut self, place: Place) -> Value {
        match self.checked_place(&place) {
            Some(ty) => {
                let loaded = self.push1(InstKind::Load(place.clone()), ty);
                self.decoded(&place, loaded)
            }
            None => self.poison(Type::F32),
        }
    }

    /// Writes a place.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let y = k.buffer("y", Access::Write, Scalar::F32);
    /// let i = k.thread_position_in_grid(Dim::X);
    /// let v = k.cast(i, Type::F32);
    /// k.store(Place::element(y, i), v);
    /// ```
    pub fn store(&mut self, place: Place, value: Value) {
        let value = self.encoded(&place, value);
        self.push(InstKind::Store { place, value }, &[]);
    }

    /// An atomic operation; a compare-exchange gives the old value and whether it exchanged.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let bins = k.buffer("bins", Access::ReadWrite, Scalar::U32);
    /// let (bin, one) = (k.const_u32(3), k.const_u32(1));
    /// let place = Place::element(bins, bin);
    /// let old = k.atomic(AtomicOp::Add, place, &[one], Order::Relaxed, Scope::Device)[0];
    /// assert_eq!(k.ty(old), Type::U32);
    /// ```
    pub fn atomic(
        &mut self,
        op: AtomicOp,
        place: Place,
        args: &[Value],
        order: Order,
        scope: Scope,
    ) -> SmallVec<[Value; 1]> {
        let known = self.checked_place(&place);
        let ty = known.unwrap_or(Type::U32);
        let results: &[Type] = match op {
            AtomicOp::Store => &[],
            AtomicOp::CompareExchange => &[ty, Type::BOOL],
            AtomicOp::Load
            | AtomicOp::Exchange
            | AtomicOp::Add
            | AtomicOp::Sub
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => &[ty],
        };
        if known.is_none() {
            return results.iter().map(|ty| self.poison(*ty)).collect();
        }
        self.push(
            InstKind::Atomic {
                op,
                place,
                args: SmallVec::from_slice(args),
                order,
                scope,
            },
            results,
        )
    }

    /// Makes the threads of a scope wait for each other and orders spaces (O2).
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
    /// ```
    pub fn barrier(&mut self, scope: Scope, spaces: Spaces) {
        self.push(InstKind::Barrier { scope, spaces }, &[]);
    }

    /// Prints a line: the text with each `{}` replaced by the next value, each `{:x}` by the next integer
    /// in hexadecimal, each `{:c}` by the character of which the next integer is the number, and `{{` and
    /// `}}` by braces (P1).
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let i = k.thread_position_in_grid(Dim::X);
    /// k.print("thread {}", &[i]);
    /// ```
    pub fn print(&mut self, text: &str, values: &[Value]) {
        let (text, values) = (text.into(), Values::from_slice(values));
        self.push(InstKind::Print { text, values }, &[]);
    }

    /// Copies whole elements, made by the calling thread.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let from = k.buffer("from", Access::Read, Scalar::F32);
    /// let to = k.buffer("to", Access::Write, Scalar::F32);
    /// let (start, count) = (k.const_u32(0), k.const_u32(4));
    /// let operands = CopyOperands {
    ///     destination: to,
    ///     destination_index: start,
    ///     source: from,
    ///     source_index: start,
    /// };
    /// k.copy(operands, count);
    /// ```
    pub fn copy(&mut self, operands: CopyOperands, count: Value) {
        self.push(InstKind::Copy { operands, count }, &[]);
    }

    /// Starts a copy by the simdgroup; gives its event.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let from = k.buffer("from", Access::Read, Scalar::F32);
    /// let tile = k.alloc_threadgroup("tile", Scalar::F32, 64);
    /// let (start, count) = (k.const_u32(0), k.const_u32(64));
    /// let operands = CopyOperands {
    ///     destination: tile,
    ///     destination_index: start,
    ///     source: from,
    ///     source_index: start,
    /// };
    /// let event = k.async_copy(operands, CopyShape::Linear { count });
    /// k.wait(&[event]);
    /// ```
    pub fn async_copy(&mut self, operands: CopyOperands, shape: CopyShape) -> Value {
        self.push1(InstKind::AsyncCopy { operands, shape }, Type::Event)
    }

    /// Waits for copies.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let from = k.buffer("from", Access::Read, Scalar::F32);
    /// let tile = k.alloc_threadgroup("tile", Scalar::F32, 64);
    /// let (start, count) = (k.const_u32(0), k.const_u32(64));
    /// let operands = CopyOperands {
    ///     destination: tile,
    ///     destination_index: start,
    ///     source: from,
    ///     source_index: start,
    /// };
    /// let event = k.async_copy(operands, CopyShape::Linear { count });
    /// k.wait(&[event]);
    /// // The data is there for this simdgroup; for the others after a barrier.
    /// k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
    /// ```
    pub fn wait(&mut self, events: &[Value]) {
        self.push(
            InstKind::Wait {
                events: Values::from_slice(events),
            },
            &[],
        );
    }

    /// A simdgroup matrix with every entry the same.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let ty = Type::SimdgroupMatrix { scalar: Scalar::F32, rows: 8, columns: 8 };
    /// let zero = k.const_f32(0.0);
    /// let sum = k.matrix_fill(ty, zero);
    /// assert_eq!(k.ty(sum), ty);
    /// ```
    pub fn matrix_fill(&mut self, ty: Type, value: Value) -> Value {
        self.push1(InstKind::MatrixFill { value }, ty)
    }

    /// Reads a simdgroup matrix.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
    /// let ty = Type::SimdgroupMatrix { scalar: Scalar::F32, rows: 8, columns: 8 };
    /// let (index, row) = (k.const_u32(0), k.const_u32(8));
    /// let place = MatrixPlace { memory: x, index, row, transpose: false };
    /// let a = k.matrix_load(ty, place);
    /// assert_eq!(k.ty(a), ty);
    /// ```
    pub fn matrix_load(&mut self, ty: Type, place: MatrixPlace) -> Value {
        self.push1(InstKind::MatrixLoad { place }, ty)
    }

    /// Writes a simdgroup matrix.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
    /// let ty = Type::SimdgroupMatrix { scalar: Scalar::F32, rows: 8, columns: 8 };
    /// let (index, row) = (k.const_u32(0), k.const_u32(8));
    /// let place = MatrixPlace { memory: x, index, row, transpose: false };
    /// let a = k.matrix_load(ty, place.clone());
    /// k.matrix_store(place, a);
    /// ```
    pub fn matrix_store(&mut self, place: MatrixPlace, matrix: Value) {
        self.push(InstKind::MatrixStore { place, matrix }, &[]);
    }

    /// `a * b + c` of simdgroup matrices.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
    /// let ty = Type::SimdgroupMatrix { scalar: Scalar::F32, rows: 8, columns: 8 };
    /// let (index, row) = (k.const_u32(0), k.const_u32(8));
    /// let place = MatrixPlace { memory: x, index, row, transpose: false };
    /// let a = k.matrix_load(ty, place);
    /// let square = k.matrix_multiply_accumulate(a, a, a);
    /// assert_eq!(k.ty(square), ty);
    /// ```
    pub fn matrix_multiply_accumulate(&mut self, a: Value, b: Value, c: Value) -> Value {
        let ty = self.ty(c);
        if [a, b, c].into_iter().any(|v| self.is_poison(v)) {
            return self.poison(ty);
        }
        self.push1(InstKind::MatrixMultiplyAccumulate { a, b, c }, ty)
    }

    /// Asserts that a value is uniform over a simdgroup or a threadgroup (X5). The threads of a grid do not
    /// meet, so the verifier refuses the device.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.thread_index_in_simdgroup();
    /// let lanes = k.simd_max(n);
    /// let same = k.assert_uniform(lanes, Scope::Simdgroup);
    /// assert_eq!(k.ty(same), Type::U32);
    /// ```
    pub fn assert_uniform(&mut self, value: Value, scope: Scope) -> Value {
        let ty = self.ty(value);
        if self.is_poison(value) {
            return self.poison(ty);
        }
        self.push1(InstKind::AssertUniform { value, scope }, ty)
    }

    /// The value of a function constant, by its place in the module.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.module_mut().function_constants.push(FunctionConstant {
    ///     id: 0,
    ///     name: "TILE".into(),
    ///     scalar: Scalar::U32,
    ///     default: Some(Const::from(16u32)),
    ///     span: Span::NONE,
    /// });
    /// let tile = k.function_constant(0);
    /// assert_eq!(k.ty(tile), Type::U32);
    /// ```
    pub fn function_constant(&mut self, id: u32) -> Value {
        let scalar = self
            .module
            .function_constants
            .get(id as usize)
            .map_or(Scalar::U32, |c| c.scalar);
        self.push1(InstKind::FunctionConstant(id), Type::Scalar(scalar))
    }

    // ---- control flow ----

    /// Opens a region with parameters of these types; what follows goes into it.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let condition = k.const_bool(true);
    /// k.open_region(&[]);
    /// k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
    /// let then = k.close_region();
    /// k.open_region(&[]);
    /// let otherwise = k.close_region();
    /// k.if_regions(condition, then, otherwise);
    /// ```
    pub fn open_region(&mut self, params: &[Type]) -> Vec<Value> {
        // The body is the first; one report is enough, however deep it goes.
        if self.regions.len() == MAX_NESTING + 1 {
            let message = format!("blocks nest at most {MAX_NESTING} deep");
            self.errors.push(
                Diagnostic::error(Rule::LimitExceeded, self.span, message).help(NESTING_HELP),
            );
        }
        let params: Vec<Value> = params.iter().map(|ty| self.new_value(*ty)).collect();
        self.regions.push(Region {
            params: params.clone(),
            insts: Vec::new(),
        });
        params
    }

    /// Opens a region whose parameters have the types of these values.
    pub(crate) fn open_region_of(&mut self, values: &[Value]) -> Vec<Value> {
        let types: Vec<Type> = values.iter().map(|v| self.ty(*v)).collect();
        let params = self.open_region(&types);
        self.poison_like(&params, values);
        params
    }

    /// Closes the innermost region, which ends with an empty `yield` if it has no terminator.
    /// Closing the kernel's body gives an empty region.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.open_region(&[]);
    /// k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
    /// let region = k.close_region();
    /// assert_eq!(region.insts.len(), 2);
    /// assert!(matches!(region.insts[1].kind, InstKind::Yield(_)));
    /// ```
    pub fn close_region(&mut self) -> Region {
        if !self.terminated() {
            self.push(InstKind::Yield(Values::new()), &[]);
        }
        if self.regions.len() > 1 {
            self.regions.pop().unwrap_or_default()
        } else {
            Region::default()
        }
    }

    /// This moment, for [`KernelBuilder::unwind`].
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let before = k.mark();
    /// k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
    /// assert_ne!(k.mark(), before);
    /// ```
    pub fn mark(&self) -> Mark {
        Mark {
            regions: self.regions.len(),
            insts: self.regions.last().map_or(0, |region| region.insts.len()),
            allocs: self.kernel.allocs.len(),
            errors: self.errors.len(),
        }
    }

    /// Takes back what was built since a moment: the regions that were opened, the instructions that
    /// were added to the one that was open, arrays and errors. The region that was open must be open
    /// still. Values made since then must not be used.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let before = k.mark();
    /// k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
    /// k.open_region(&[]);
    /// k.unwind(before);
    /// assert_eq!(k.mark(), before);
    /// assert_eq!(k.finish()?.kernels[0].body.insts.len(), 1);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn unwind(&mut self, mark: Mark) {
        self.regions.truncate(mark.regions);
        if let Some(region) = self.regions.last_mut() {
            region.insts.truncate(mark.insts);
        }
        self.kernel.allocs.truncate(mark.allocs);
        self.imageblocks.keep(mark.allocs as u32);
        self.errors.truncate(mark.errors);
    }

    /// Puts a closed region's instructions here, as if they had been built here, without the `yield`
    /// that ends it. Its parameters must not be used.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.open_region(&[]);
    /// let two = k.const_u32(2);
    /// let region = k.close_region();
    /// // The region's `yield` is left out, and what it defines can be used.
    /// k.splice(region);
    /// let four = k.add(two, two);
    /// assert_eq!(k.evaluate(four), Some(4u32.components()));
    /// assert!(!k.terminated());
    /// ```
    pub fn splice(&mut self, mut region: Region) {
        if let Some(last) = region.insts.last()
            && matches!(last.kind, InstKind::Yield(_))
        {
            region.insts.pop();
        }
        if let Some(open) = self.regions.last_mut() {
            open.insts.append(&mut region.insts);
        }
    }

    /// Whether the current region has its terminator.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// assert!(!k.terminated());
    /// k.return_();
    /// assert!(k.terminated());
    /// ```
    pub fn terminated(&self) -> bool {
        self.regions
            .last()
            .and_then(|r| r.insts.last())
            .is_some_and(|i| i.kind.is_terminator())
    }

    /// Runs `then` where the condition holds.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::Write, Scalar::U32);
    /// let n = k.scalar("n", Scalar::U32);
    /// let i = k.thread_position_in_grid(Dim::X);
    /// let inside = k.lt(i, n);
    /// k.if_(inside, |k| k.store(Place::element(x, i), i));
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn if_(&mut self, condition: Value, then: impl FnOnce(&mut KernelBuilder)) {
        self.if_else(condition, then, |_| {});
    }

    /// Runs `then` where the condition holds, `otherwise` elsewhere.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::Write, Scalar::U32);
    /// let (i, half) = (k.thread_position_in_grid(Dim::X), k.const_u32(32));
    /// let low = k.lt(i, half);
    /// k.if_else(
    ///     low,
    ///     |k| k.store(Place::element(x, i), i),
    ///     |k| k.store(Place::element(x, i), half),
    /// );
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn if_else(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut KernelBuilder),
        otherwise: impl FnOnce(&mut KernelBuilder),
    ) {
        self.open_region(&[]);
        then(self);
        let then = self.close_region();
        self.open_region(&[]);
        otherwise(self);
        let otherwise = self.close_region();
        self.if_regions(condition, then, otherwise);
    }

    /// As [`KernelBuilder::if_else`], with values: each side gives as many, of the same types.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let (a, b) = (k.const_u32(3), k.const_u32(4));
    /// let less = k.lt(a, b);
    /// let smaller = k.if_values(less, |_| vec![a], |_| vec![b])[0];
    /// assert_eq!(k.ty(smaller), Type::U32);
    /// ```
    pub fn if_values(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut KernelBuilder) -> Vec<Value>,
        otherwise: impl FnOnce(&mut KernelBuilder) -> Vec<Value>,
    ) -> SmallVec<[Value; 1]> {
        self.open_region(&[]);
        let values = then(self);
        self.yield_(&values);
        let then = self.close_region();
        self.open_region(&[]);
        let values = otherwise(self);
        self.yield_(&values);
        let otherwise = self.close_region();
        self.if_regions(condition, then, otherwise)
    }

    /// An `if` of two closed regions; its results are what they yield.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let (condition, a, b) = (k.const_bool(true), k.const_u32(3), k.const_u32(4));
    /// let [then, otherwise] = [a, b].map(|value| {
    ///     k.open_region(&[]);
    ///     k.yield_(&[value]);
    ///     k.close_region()
    /// });
    /// let chosen = k.if_regions(condition, then, otherwise)[0];
    /// assert_eq!(k.ty(chosen), Type::U32);
    /// ```
    pub fn if_regions(
        &mut self,
        condition: Value,
        then: Region,
        otherwise: Region,
    ) -> SmallVec<[Value; 1]> {
        // A side that could be built says what there is.
        let sides = [yielded(&then), yielded(&otherwise)];
        let given = || sides.into_iter().flatten();
        let whole = given().find(|values| !values.iter().any(|v| self.is_poison(*v)));
        let values = whole.or(given().next()).unwrap_or_default().to_vec();
        let types: Vec<Type> = values.iter().map(|v| self.ty(*v)).collect();
        let kind = InstKind::If {
            condition,
            then,
            otherwise,
        };
        let results = self.push(kind, &types);
        self.poison_like(&results, &values);
        results
    }

    /// Counts from `lower` by `step` up to `upper`; `body` gets the index and the carried values and
    /// gives the next ones. Gives the carried values at the end.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let x = k.buffer("x", Access::Read, Scalar::F32);
    /// let (zero, one, n) = (k.const_u32(0), k.const_u32(1), k.const_u32(8));
    /// let none = k.const_f32(0.0);
    /// let sum = k.for_(zero, n, one, &[none], |k, i, carried| {
    ///     let v = k.load(Place::element(x, i));
    ///     vec![k.add(carried[0], v)]
    /// })[0];
    /// assert_eq!(k.ty(sum), Type::F32);
    /// ```
    pub fn for_(
        &mut self,
        lower: Value,
        upper: Value,
        step: Value,
        init: &[Value],
        body: impl FnOnce(&mut KernelBuilder, Value, &[Value]) -> Vec<Value>,
    ) -> SmallVec<[Value; 1]> {
        let types: Vec<Type> = init.iter().map(|v| self.ty(*v)).collect();
        let mut first = vec![lower];
        first.extend(init);
        let params = self.open_region_of(&first);
        let next = body(self, params[0], &params[1..]);
        self.yield_(&next);
        let body = self.close_region();
        self.push(
            InstKind::For {
                lower,
                upper,
                step,
                init: Values::from_slice(init),
                body,
            },
            &types,
        )
    }

    /// Repeats `body`, which gets the carried values and gives the next ones, until it leaves by
    /// [`KernelBuilder::break_`]; gives what the `break` gave.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let (zero, one, limit) = (k.const_u32(0), k.const_u32(1), k.const_u32(10));
    /// let last = k.loop_(&[zero], |k, carried| {
    ///     let far = k.ge(carried[0], limit);
    ///     k.if_(far, |k| k.break_(&[carried[0]]));
    ///     vec![k.add(carried[0], one)]
    /// })[0];
    /// assert_eq!(k.ty(last), Type::U32);
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn loop_(
        &mut self,
        init: &[Value],
        body: impl FnOnce(&mut KernelBuilder, &[Value]) -> Vec<Value>,
    ) -> SmallVec<[Value; 1]> {
        let types: Vec<Type> = init.iter().map(|v| self.ty(*v)).collect();
        let params = self.open_region_of(init);
        let next = body(self, &params);
        self.yield_(&next);
        let body = self.close_region();
        self.push(
            InstKind::Loop {
                init: Values::from_slice(init),
                body,
            },
            &types,
        )
    }

    /// Ends a region with these results or carried values, unless it has ended.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.open_region(&[]);
    /// let seven = k.const_u32(7);
    /// k.yield_(&[seven]);
    /// assert!(k.terminated());
    /// ```
    pub fn yield_(&mut self, values: &[Value]) {
        if !self.terminated() {
            self.push(InstKind::Yield(Values::from_slice(values)), &[]);
        }
    }

    /// Leaves the innermost loop, giving its results.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.scalar("n", Scalar::U32);
    /// k.loop_(&[n], |k, carried| {
    ///     let (zero, one) = (k.const_u32(0), k.const_u32(1));
    ///     let done = k.eq(carried[0], zero);
    ///     k.if_(done, |k| k.break_(&[zero]));
    ///     vec![k.sub(carried[0], one)]
    /// });
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn break_(&mut self, values: &[Value]) {
        self.push(InstKind::Break(Values::from_slice(values)), &[]);
    }

    /// Begins the next iteration of the innermost loop.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.scalar("n", Scalar::U32);
    /// let (zero, one) = (k.const_u32(0), k.const_u32(1));
    /// let odd = k.for_(zero, n, one, &[zero], |k, i, carried| {
    ///     let bit = k.and(i, one);
    ///     let even = k.eq(bit, zero);
    ///     k.if_(even, |k| k.continue_(carried));
    ///     vec![k.add(carried[0], one)]
    /// })[0];
    /// assert_eq!(k.ty(odd), Type::U32);
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn continue_(&mut self, values: &[Value]) {
        self.push(InstKind::Continue(Values::from_slice(values)), &[]);
    }

    /// Ends the thread.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let n = k.scalar("n", Scalar::U32);
    /// let i = k.thread_position_in_grid(Dim::X);
    /// let outside = k.ge(i, n);
    /// k.if_(outside, |k| k.return_());
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn return_(&mut self) {
        self.push(InstKind::Return, &[]);
    }

    /// The module with the kernel in it.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let k = KernelBuilder::new(Module::default(), "example");
    /// let module = k.finish()?;
    /// assert_eq!(module.kernels.len(), 1);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// Everything that went wrong on the way, and what the verifier then says of the rest.
    pub fn finish(self) -> Result<Module, Diagnostics> {
        let failed = !self.errors.is_empty();
        let draft = self.into_draft();
        if failed {
            return Err(draft.diagnostics());
        }
        Ok(draft.module)
    }

    /// What was built, sound or not, as the last kernel of the module.
    pub(crate) fn into_draft(mut self) -> Draft {
        if !self.terminated() {
            self.push(InstKind::Return, &[]);
        }
        self.kernel.body = self.regions.swap_remove(0);
        self.kernel
            .body
            .insts
            .splice(0..0, self.imageblocks.declared);
        // Poison fits wherever an index, the commonest operand, is expected.
        for value in &self.poison {
            self.kernel.values[value.0 as usize].ty = Type::U32;
        }
        let numbers = self.kernel.renumber_values();
        let poison = self.poison.iter().filter_map(|v| numbers.get(v).copied());
        let poison = (self.module.kernels.len(), poison.collect());
        let mut draft = Draft {
            errors: self.errors,
            poison: HashMap::from([poison]),
            ..Draft::default()
        };
        draft.module = self.module;
        draft.module.kernels.push(self.kernel);
        draft
    }
}

/// What a region that ends with a `yield` gives.
fn yielded(region: &Region) -> Option<&[Value]> {
    match &region.insts.last()?.kind {
        InstKind::Yield(values) => Some(values),
        _ends_otherwise => None,
    }
}

/// What to do about blocks that nest too deep.
pub(crate) const NESTING_HELP: &str = "write the inner ones flatter, or split the kernel";

/// What to do about a place that makes no sense.
pub(crate) const PLACE_HELP: &str = "name one value, or a run of scalar elements";

macro_rules! const_from {
    ($($rust:ty => $scalar:ident, |$v:ident| $bits:expr;)*) => {$(
        impl From<$rust> for Const {
            fn from($v: $rust) -> Const {
                Const { scalar: Scalar::$scalar, bits: $bits }
            }
        }
    )*};
}
const_from! {
    bool => Bool, |v| u64::from(v);
    i8 => I8, |v| u64::from(v as u8);
    i16 => I16, |v| u64::from(v as u16);
    i32 => I32, |v| u64::from(v as u32);
    i64 => I64, |v| v as u64;
    u8 => U8, |v| u64::from(v);
    u16 => U16, |v| u64::from(v);
    u32 => U32, |v| u64::from(v);
    u64 => U64, |v| v;
    half::f16 => F16, |v| u64::from(v.to_bits());
    half::bf16 => BF16, |v| u64::from(v.to_bits());
    f32 => F32, |v| u64::from(v.to_bits());
    f64 => F64, |v| v.to_bits();
}
