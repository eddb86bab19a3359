//! Building kernels from programs that generate them.
//!
//! A [`Builder`] makes one kernel. Its values know it, have operators and methods, and each call notes the
//! line of Rust that it stands on, so that what the verifier and the checkers report names the line that
//! generated it. A kernel that a person writes is better written under [`crate::prelude::kernel`].
//!
//! ```
//! use invar::build::{Builder, In, Out};
//! use invar::ir::{Access, Dim, Scalar};
//! use invar::{Device, Grid};
//!
//! // y = x to the power n, by as many products.
//! let n = 3;
//! let k = Builder::new("power");
//! let x = k.buffer("x", Access::Read, Scalar::F32);
//! let y = k.buffer("y", Access::Write, Scalar::F32);
//! let i = k.thread_position_in_grid(Dim::X);
//! k.if_(i.lt(x.len().cast(Scalar::U32)), || {
//!     let v = x.load(i);
//!     let product = (1..n).fold(v, |product, _| product * v);
//!     y.store(i, product + 0.5f32);
//! });
//! let power = k.finish_as::<(In<f32>, Out<f32>)>()?;
//!
//! let device = Device::default()?;
//! let (x, mut y) = (device.buffer_from(&[2.0f32])?, device.buffer_zeroed::<f32>(1)?);
//! power.launch(&device, Grid::threads(1), (&x, &mut y))?.wait()?;
//! assert_eq!(y.read()?, [8.5]);
//! # Ok::<(), invar::Error>(())
//! ```
//!
//! Deliberately absent: what a kernel means. Every call is one of [`invar_ir::KernelBuilder`], and what is
//! wrong is told by [`Builder::finish`].

use std::cell::{RefCell, RefMut};
use std::marker::PhantomData;
use std::ops;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use invar_ir::{
    Access, AtomicOp, Diagnostic, Diagnostics, Dim, ElementType, Imm, Kernel, KernelBuilder,
    Literal, Memory, Module, Op, Order, ParamKind, Place, Position, Rule, Scalar, ScalarLiteral,
    Scope, Source, SourceId, Spaces, Span, Type, Value as Id, Verified, verify,
};
use invar_runtime::{Arg, Buffer, Device, Element, Error, Program, Queue, bf16, f16};

use crate::build_closures::Closures;
pub use crate::build_textures::{How, SamplerParam, Texture, TextureIn, TextureOut};
use crate::kernel::expansion::value;
use crate::kernel::{Constant, IntoDispatch, Launched, Stored, reported};

/// Makes one kernel.
pub struct Builder {
    inner: RefCell<Inner>,
    closures: Closures,
}

struct Inner {
    builder: KernelBuilder,
    /// The Rust files, in the order of the module's sources, and the last line that is used of each.
    files: Vec<(&'static str, u32)>,
}

/// A value of a kernel that is being built.
#[derive(Clone, Copy)]
pub struct Value<'k> {
    kernel: &'k Builder,
    id: Id,
}

/// A buffer or an array of a kernel that is being built.
#[derive(Clone, Copy)]
pub struct Array<'k> {
    kernel: &'k Builder,
    memory: Memory,
}

impl Inner {
    /// What follows was written there: up to the end of the line, for Rust tells only where it begins.
    fn stand(&mut self, caller: &'static Location<'static>) {
        let (name, line) = (caller.file(), caller.line());
        let known = self.files.iter().position(|(file, _)| *file == name);
        let number = known.unwrap_or_else(|| {
            self.files.push((name, 0));
            self.files.len() - 1
        });
        self.files[number].1 = self.files[number].1.max(line);
        self.builder.set_span(Span {
            source: Some(SourceId(number as u32)),
            start: Position {
                line,
                column: caller.column(),
            },
            end: Position {
                line: line + 1,
                column: 1,
            },
            call: None,
        });
    }

    fn name(&self) -> String {
        self.builder.kernel().name.to_string()
    }

    /// Keeps as an error that something is another kernel's, or nothing's.
    fn foreign(&mut self, message: String) {
        let error = Diagnostic::error(Rule::UndefinedName, self.builder.span(), message);
        let help = "what passes from kernel to kernel goes through a buffer";
        self.builder.error(error.help(help));
    }
}

/// The text of a Rust file, which rustc names from where it was run: here, or in a folder around.
fn text_of(file: &str, lines: u32) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let around = here.ancestors().map(|folder| folder.join(file));
    let found = std::iter::once(PathBuf::from(file))
        .chain(around)
        .filter(|path| Path::is_file(path))
        .find_map(|path| std::fs::read_to_string(path).ok());
    // Reports number the lines also where there is nothing to show of them.
    found.unwrap_or_else(|| "\n".repeat(lines as usize))
}

impl Builder {
    /// Begins a kernel of that name.
    #[track_caller]
    pub fn new(name: &str) -> Builder {
        let mut inner = Inner {
            builder: KernelBuilder::new(Module::default(), name),
            files: Vec::new(),
        };
        inner.stand(Location::caller());
        let span = inner.builder.span();
        inner.builder.kernel_mut().span = span;
        Builder {
            inner: RefCell::new(inner),
            closures: Closures::of_a_new_kernel(),
        }
    }

    /// The kernel as it is by now.
    ///
    /// # Panics
    /// Inside of [`Builder::with`].
    #[track_caller]
    fn inner(&self) -> RefMut<'_, Inner> {
        match self.inner.try_borrow_mut() {
            Ok(inner) => inner,
            Err(_) => panic!(
                "inside of `Builder::with` a kernel is built by what the closure is given: call the \
                 builder's own methods and those of its values before or after it"
            ),
        }
    }

    /// Adds to the kernel at the caller's place.
    #[track_caller]
    pub(crate) fn at<R>(&self, f: impl FnOnce(&mut KernelBuilder) -> R) -> R {
        let mut inner = self.inner();
        inner.stand(Location::caller());
        f(&mut inner.builder)
    }

    /// Does something that threads see. In a closure of another kernel, outside of all of this kernel's own, that is
    /// an error: what the other kernel decides there does not hold in this one.
    #[track_caller]
    pub(crate) fn acts<R>(&self, what: &str, f: impl FnOnce(&mut KernelBuilder) -> R) -> R {
        if let Some(around) = self.closures.of_another() {
            let mut inner = self.inner();
            inner.stand(Location::caller());
            let message = format!(
                "this {what} of kernel `{}` stands in a closure of kernel `{around}`, whose branches and loops are \
                 none of it",
                inner.name()
            );
            let help = "put it into a closure of its own kernel, or outside of the other one's";
            let error = Diagnostic::error(Rule::UndefinedName, inner.builder.span(), message);
            inner.builder.error(error.help(help));
        }
        self.at(f)
    }

    /// Makes a parameter; one of a name that another one has is an error.
    #[track_caller]
    pub(crate) fn parameter<R>(&self, name: &str, f: impl FnOnce(&mut KernelBuilder) -> R) -> R {
        self.at(|k| {
            let earlier = k.kernel().params.iter().find(|p| *p.name == *name);
            if let Some(earlier) = earlier.map(|p| p.span) {
                let message = format!("two parameters are called `{name}`");
                let error = Diagnostic::error(Rule::DuplicateName, k.span(), message);
                let error = error.and(earlier, "the first one");
                k.error(error.help(
                    "launches and requirements know them by their names: give it another one",
                ));
            }
            f(k)
        })
    }

    /// The kernel's name.
    #[track_caller]
    pub(crate) fn name(&self) -> String {
        self.inner().name()
    }

    /// What only [`KernelBuilder`] has: structs, function constants, copies, simdgroup matrices. Its numbers of values
    /// and arrays mean nothing in another kernel, so they stay in the closure: [`Raw::own`] takes this kernel's values
    /// and arrays in, and what the closure gives comes out as values and arrays.
    ///
    /// ```
    /// use invar::build::Builder;
    /// use invar::ir::{Access, Dim, Place, Scalar};
    ///
    /// let k = Builder::new("twice");
    /// k.with(|b| b.kernel_mut().threadgroup_size = Some([64, 1, 1]));
    /// let x = k.buffer("x", Access::ReadWrite, Scalar::F32);
    /// let i = k.thread_position_in_grid(Dim::X);
    /// let v = k.with(|b| {
    ///     let place = Place::element(b.own(x), b.own(i));
    ///     b.load(place)
    /// });
    /// x.store(i, v + v);
    /// # assert!(k.finish().is_ok());
    /// ```
    ///
    /// # Panics
    /// If the closure calls this builder, or a value or an array of it, and not what it is given.
    #[track_caller]
    pub fn with<R: Made>(&self, f: impl FnOnce(&mut Raw<'_>) -> R) -> R::Of<'_> {
        let caller = Location::caller();
        let made = {
            let mut inner = self.inner();
            inner.stand(caller);
            f(&mut Raw {
                kernel: self,
                caller,
                inner: &mut inner,
            })
        };
        made.of(self)
    }

    /// Requires something of every launch (S5), in the names of the parameters that are there by now. A launch
    /// that breaks it is refused; the prover takes it as given.
    ///
    /// ```
    /// use invar::build::Builder;
    /// use invar::ir::{Access, Scalar};
    ///
    /// let k = Builder::new("square");
    /// k.buffer("a", Access::Read, Scalar::F32);
    /// k.scalar("n", Scalar::U32);
    /// k.requires("n * n <= length(a)");
    /// # assert!(k.finish().is_ok());
    /// ```
    #[track_caller]
    pub fn requires(&self, text: &str) {
        self.at(|k| k.requires(text));
    }

    /// What a number of this kernel's stands for. One that no value has is an error.
    #[track_caller]
    pub(crate) fn value(&self, id: Id) -> Value<'_> {
        let values = self.inner().builder.kernel().values.len();
        if (id.0 as usize) < values {
            return Value { kernel: self, id };
        }
        self.stranger(&format!("`%{}` is not a value", id.0));
        Value {
            kernel: self,
            id: self.at(|k| k.poison(Type::F32)),
        }
    }

    /// The same of memory.
    #[track_caller]
    fn array(&self, memory: Memory) -> Array<'_> {
        let is_known = self.inner().builder.memory(memory).is_some();
        let memory = if is_known {
            memory
        } else {
            self.stranger("this is not an array");
            // What stands for it is never run.
            self.at(|k| k.alloc_thread("", Scalar::F32, 1))
        };
        Array {
            kernel: self,
            memory,
        }
    }

    /// A value's number here; of another kernel's value an error is kept.
    #[track_caller]
    fn own(&self, value: Value<'_>) -> Id {
        if std::ptr::eq(value.kernel, self) {
            return value.id;
        }
        let (what, ty) = value.described();
        self.foreign(&what);
        self.at(|k| k.poison(ty))
    }

    /// Keeps as an error that something stands for nothing of this kernel.
    #[track_caller]
    fn stranger(&self, what: &str) {
        let mut inner = self.inner();
        inner.stand(Location::caller());
        let message = format!("{what} of `{}`", inner.name());
        inner.foreign(message);
    }

    #[track_caller]
    pub(crate) fn foreign(&self, what: &str) {
        let mut inner = self.inner();
        inner.stand(Location::caller());
        let message = format!("{what}, not of `{}`", inner.name());
        inner.foreign(message);
    }

    #[track_caller]
    pub(crate) fn owns(&self, values: &[Value<'_>]) -> Vec<Id> {
        let mut own = Vec::with_capacity(values.len());
        // No closure: it would be the caller that reports name.
        for value in values {
            own.push(self.own(*value));
        }
        own
    }

    // ---- parameters and memory ----

    /// A buffer parameter in `device` memory.
    #[track_caller]
    pub fn buffer(&self, name: &str, access: Access, element: impl Into<ElementType>) -> Array<'_> {
        self.array(self.parameter(name, |k| k.buffer(name, access, element)))
    }

    /// A buffer parameter in `constant` memory.
    #[track_caller]
    pub fn constant_buffer(&self, name: &str, element: impl Into<ElementType>) -> Array<'_> {
        self.array(self.parameter(name, |k| k.constant_buffer(name, element)))
    }

    /// A parameter passed by value.
    #[track_caller]
    pub fn scalar(&self, name: &str, ty: impl Into<Type>) -> Value<'_> {
        self.value(self.parameter(name, |k| k.scalar(name, ty)))
    }

    /// An array that the threads of a threadgroup share, of zeros at first (I2).
    #[track_caller]
    pub fn threadgroup_array(
        &self,
        name: &str,
        element: impl Into<ElementType>,
        length: u32,
    ) -> Array<'_> {
        self.array(self.at(|k| k.alloc_threadgroup(name, element, length)))
    }

    /// An array of the thread's own, of zeros at first (I3).
    #[track_caller]
    pub fn thread_array(
        &self,
        name: &str,
        element: impl Into<ElementType>,
        length: u32,
    ) -> Array<'_> {
        self.array(self.at(|k| k.alloc_thread(name, element, length)))
    }

    // ---- values ----

    /// A constant: a number, an array of 2 to 4 as a vector, or of such arrays as a matrix.
    #[track_caller]
    pub fn literal(&self, literal: impl Literal) -> Value<'_> {
        self.value(self.at(|k| k.literal(literal)))
    }

    /// An operation of the op table by its name: `k.op("popcount", (), &[x])`; `imm` is a type for those that
    /// convert, components for `swizzle`, and `()` for all others.
    #[track_caller]
    pub fn op(&self, name: &str, imm: impl Into<Imm>, args: &[Value<'_>]) -> Value<'_> {
        if let Some(op) = Op::from_name(name) {
            return self.apply(op, imm, args);
        }
        let what = format!("there is no operation `{name}`");
        self.value(self.at(|k| {
            let help = "docs/ops.md lists those that there are";
            k.error(Diagnostic::error(Rule::UndefinedName, k.span(), what).help(help));
            k.poison(Type::F32)
        }))
    }

    #[track_caller]
    fn apply(&self, op: Op, imm: impl Into<Imm>, args: &[Value<'_>]) -> Value<'_> {
        let args = self.owns(args);
        self.value(self.at(|k| k.op(op, imm, &args)))
    }

    /// A vector from components, or a matrix from columns.
    #[track_caller]
    pub fn construct(&self, ty: Type, parts: &[Value<'_>]) -> Value<'_> {
        self.apply(Op::Construct, ty, parts)
    }

    /// Makes the threads of a scope wait for each other and orders spaces (O2).
    #[track_caller]
    pub fn barrier(&self, scope: Scope, spaces: Spaces) {
        self.acts("barrier", |k| k.barrier(scope, spaces));
    }

    // ---- control flow ----

    /// Builds what stands in a region, which gives these values.
    #[track_caller]
    fn region<'k>(&'k self, body: impl FnOnce() -> Vec<Value<'k>>) -> invar_ir::Region {
        self.at(|k| k.open_region(&[]));
        let inside = self.closures.enter(self.name());
        let values = body();
        drop(inside);
        self.end(values)
    }

    #[track_caller]
    fn end(&self, values: Vec<Value<'_>>) -> invar_ir::Region {
        let values = self.owns(&values);
        self.at(|k| {
            k.yield_(&values);
            k.close_region()
        })
    }

    /// Runs `then` where the condition holds.
    #[track_caller]
    pub fn if_(&self, condition: Value<'_>, then: impl FnOnce()) {
        self.if_else(condition, then, || ());
    }

    /// Runs `then` where the condition holds, `otherwise` elsewhere.
    #[track_caller]
    pub fn if_else(&self, condition: Value<'_>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        self.if_values(
            condition,
            || {
                then();
                Vec::new()
            },
            || {
                otherwise();
                Vec::new()
            },
        );
    }

    /// As [`Builder::if_else`], with values: each side gives as many, of the same types.
    #[track_caller]
    pub fn if_values<'k>(
        &'k self,
        condition: Value<'_>,
        then: impl FnOnce() -> Vec<Value<'k>>,
        otherwise: impl FnOnce() -> Vec<Value<'k>>,
    ) -> Vec<Value<'k>> {
        let condition = self.own(condition);
        let (then, otherwise) = (self.region(then), self.region(otherwise));
        let results = self.at(|k| k.if_regions(condition, then, otherwise));
        results.into_iter().map(|id| self.value(id)).collect()
    }

    /// Counts over a range by `step`; `body` gets the index and the carried values and gives the next ones.
    /// Gives the carried values at the end.
    #[track_caller]
    pub fn for_<'k>(
        &'k self,
        range: ops::Range<Value<'_>>,
        step: Value<'_>,
        init: &[Value<'_>],
        body: impl FnOnce(Value<'k>, &[Value<'k>]) -> Vec<Value<'k>>,
    ) -> Vec<Value<'k>> {
        let (lower, upper, step) = (self.own(range.start), self.own(range.end), self.own(step));
        let init = self.owns(init);
        let types: Vec<Type> = self.at(|k| init.iter().map(|id| k.ty(*id)).collect());
        let params = self.at(|k| {
            let mut inside = vec![k.ty(lower)];
            inside.extend(&types);
            k.open_region(&inside)
        });
        let params: Vec<Value<'k>> = params.into_iter().map(|id| self.value(id)).collect();
        let inside = self.closures.enter(self.name());
        let next = body(params[0], &params[1..]);
        drop(inside);
        let body = self.end(next);
        let kind = invar_ir::InstKind::For {
            lower,
            upper,
            step,
            init: invar_ir::Values::from_vec(init),
            body,
        };
        let results = self.at(|k| k.push(kind, &types));
        results.into_iter().map(|id| self.value(id)).collect()
    }

    /// Repeats `body`, which gets the carried values and gives the next ones, until it leaves by
    /// [`Builder::break_`]; gives what that gave.
    #[track_caller]
    pub fn loop_<'k>(
        &'k self,
        init: &[Value<'_>],
        body: impl FnOnce(&[Value<'k>]) -> Vec<Value<'k>>,
    ) -> Vec<Value<'k>> {
        let init = self.owns(init);
        let types: Vec<Type> = self.at(|k| init.iter().map(|id| k.ty(*id)).collect());
        let params = self.at(|k| k.open_region(&types));
        let params: Vec<Value<'k>> = params.into_iter().map(|id| self.value(id)).collect();
        let inside = self.closures.enter(self.name());
        let next = body(&params);
        drop(inside);
        let body = self.end(next);
        let init = invar_ir::Values::from_vec(init);
        let results = self.at(|k| k.push(invar_ir::InstKind::Loop { init, body }, &types));
        results.into_iter().map(|id| self.value(id)).collect()
    }

    /// Leaves the innermost loop, giving its results.
    #[track_caller]
    pub fn break_(&self, values: &[Value<'_>]) {
        let values = self.owns(values);
        self.at(|k| k.break_(&values));
    }

    /// Begins the next iteration of the innermost loop.
    #[track_caller]
    pub fn continue_(&self, values: &[Value<'_>]) {
        let values = self.owns(values);
        self.at(|k| k.continue_(&values));
    }

    /// Ends the thread.
    #[track_caller]
    pub fn return_(&self) {
        self.at(KernelBuilder::return_);
    }

    // ---- the end ----

    /// The kernel, verified, in a module of its own.
    ///
    /// # Errors
    /// All that is wrong with it, as a report with the lines of Rust that built it.
    pub fn finish(self) -> Result<Verified, Error> {
        let Inner { mut builder, files } = self.inner.into_inner();
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, lines)| Source {
                name: (*name).into(),
                text: text_of(name, *lines).into(),
            })
            .collect();
        builder.module_mut().sources.clone_from(&sources);
        builder
            .finish()
            .and_then(verify)
            .map_err(|all| reported(&sources, &[], &all))
    }

    /// The kernel with parameters of known types, so that a launch that does not fit does not compile:
    /// [`In`] and [`Out`] for buffers that are read and written, [`TextureIn`] and [`TextureOut`] for textures,
    /// [`crate::Sampler`] for samplers, and the types of values.
    ///
    /// # Errors
    /// As [`Builder::finish`], and if the kernel has other parameters.
    #[track_caller]
    pub fn finish_as<S: Signature>(self) -> Result<Typed<S>, Error> {
        let here = self.at(|k| k.span());
        let module = self.finish()?;
        let kernel = &module.kernels[0];
        let mut found = kernel.params.iter();
        let mut wanted = Vec::new();
        S::params(&mut wanted);
        for (i, one) in wanted.iter().enumerate() {
            let Some(param) = found.next() else {
                break;
            };
            if !one.fits(&module, kernel, &param.kind) {
                let what = format!("parameter {} is not a {}", i + 1, one.what());
                return Err(unlike(&module, here, &what, Some(param.span)));
            }
        }
        let (has, wants) = (kernel.params.len(), wanted.len());
        if has != wants {
            let what = format!("it has {has} parameters, not {wants}");
            return Err(unlike(&module, here, &what, None));
        }
        Ok(Typed {
            module: Arc::new(module),
            signature: PhantomData,
        })
    }
}

/// A kernel has another signature than the words there say, by this parameter.
fn unlike(module: &Verified, here: Span, what: &str, param: Option<Span>) -> Error {
    let name = &module.kernels[0].name;
    let message = format!("`{name}` has another signature: {what}");
    let mut error = Diagnostic::error(Rule::InvalidArgument, here, message);
    if let Some(param) = param {
        error = error.and(param, "the parameter");
    }
    with_lines(module, Error::Diagnostics(Diagnostics(vec![error])))
}

/// What is wrong, with the lines of Rust that built the kernel.
fn with_lines(module: &Verified, error: Error) -> Error {
    match error {
        Error::Diagnostics(all) => reported(&module.sources, &module.calls, &all),
        other => other,
    }
}

/// What the closure of [`Builder::with`] builds by: the [`KernelBuilder`], to which it dereferences.
pub struct Raw<'a> {
    kernel: &'a Builder,
    caller: &'static Location<'static>,
    inner: &'a mut Inner,
}

impl Raw<'_> {
    /// The number of a value, or the memory of an array: of another kernel's that is an error, with this line.
    #[track_caller]
    pub fn own<T: Own>(&mut self, one: T) -> T::Number {
        one.number(self, Location::caller())
    }

    /// Whether something is of this kernel. If not, that is kept as an error: what `whose` says.
    pub(crate) fn is_own(
        &mut self,
        kernel: &Builder,
        caller: &'static Location<'static>,
        whose: impl FnOnce() -> String,
    ) -> bool {
        if std::ptr::eq(kernel, self.kernel) {
            return true;
        }
        let message = format!("{}, not of `{}`", whose(), self.inner.name());
        self.inner.stand(caller);
        self.inner.foreign(message);
        self.inner.stand(self.caller);
        false
    }
}

impl ops::Deref for Raw<'_> {
    type Target = KernelBuilder;

    fn deref(&self) -> &KernelBuilder {
        &self.inner.builder
    }
}

impl ops::DerefMut for Raw<'_> {
    fn deref_mut(&mut self) -> &mut KernelBuilder {
        &mut self.inner.builder
    }
}

/// What [`Raw::own`] takes: a [`Value`], an [`Array`], a [`Texture`], a [`SamplerParam`].
pub trait Own {
    /// What a [`KernelBuilder`] has for it.
    type Number;

    #[doc(hidden)]
    fn number(self, kernel: &mut Raw<'_>, caller: &'static Location<'static>) -> Self::Number;
}

impl Own for Value<'_> {
    type Number = Id;

    fn number(self, kernel: &mut Raw<'_>, caller: &'static Location<'static>) -> Id {
        if kernel.is_own(self.kernel, caller, || self.described().0) {
            return self.id;
        }
        kernel.poison(self.ty())
    }
}

impl Own for Array<'_> {
    type Number = Memory;

    fn number(self, kernel: &mut Raw<'_>, caller: &'static Location<'static>) -> Memory {
        if kernel.is_own(self.kernel, caller, || self.described()) {
            return self.memory;
        }
        // What stands for it is never run.
        kernel.alloc_thread("", Scalar::F32, 1)
    }
}

/// What the closure of [`Builder::with`] may give: nothing, numbers of values and memory objects, which come out
/// as [`Value`]s and [`Array`]s, lists of them, and types.
pub trait Made {
    /// The same outside of the closure.
    type Of<'k>;

    #[doc(hidden)]
    #[track_caller]
    fn of(self, kernel: &Builder) -> Self::Of<'_>;
}

impl Made for Id {
    type Of<'k> = Value<'k>;

    #[track_caller]
    fn of(self, kernel: &Builder) -> Value<'_> {
        kernel.value(self)
    }
}

impl Made for Memory {
    type Of<'k> = Array<'k>;

    #[track_caller]
    fn of(self, kernel: &Builder) -> Array<'_> {
        kernel.array(self)
    }
}

impl Made for Type {
    type Of<'k> = Type;

    fn of(self, _kernel: &Builder) -> Type {
        self
    }
}

impl Made for () {
    type Of<'k> = ();

    fn of(self, _kernel: &Builder) {}
}

impl<T: Made> Made for Option<T> {
    type Of<'k> = Option<T::Of<'k>>;

    #[expect(
        clippy::manual_map,
        reason = "a closure would be the caller that reports name"
    )]
    #[track_caller]
    fn of(self, kernel: &Builder) -> Option<T::Of<'_>> {
        match self {
            Some(one) => Some(one.of(kernel)),
            None => None,
        }
    }
}

impl<T: Made> Made for Vec<T> {
    type Of<'k> = Vec<T::Of<'k>>;

    #[track_caller]
    fn of(self, kernel: &Builder) -> Vec<T::Of<'_>> {
        let mut all = Vec::with_capacity(self.len());
        for one in self {
            all.push(one.of(kernel));
        }
        all
    }
}

macro_rules! tuples_made {
    ($(($($name:ident $number:tt)+))*) => {$(
        impl<$($name: Made),+> Made for ($($name,)+) {
            type Of<'k> = ($($name::Of<'k>,)+);

            #[track_caller]
            fn of(self, kernel: &Builder) -> Self::Of<'_> {
                ($(self.$number.of(kernel),)+)
            }
        }
    )*};
}
tuples_made! { (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) }

impl<'k> Array<'k> {
    #[track_caller]
    fn place(self, index: Value<'_>) -> Place {
        Place::element(self.memory, self.kernel.own(index))
    }

    /// Reads an element: 0 out of bounds (B1).
    #[track_caller]
    pub fn load(self, index: Value<'_>) -> Value<'k> {
        let place = self.place(index);
        self.kernel.value(self.kernel.at(|k| k.load(place)))
    }

    /// Writes an element; nothing out of bounds (B2).
    #[track_caller]
    pub fn store<'a>(self, index: Value<'_>, value: impl Operand<'a>)
    where
        'k: 'a,
    {
        let place = self.place(index);
        let value = value.value_in(self.kernel);
        let value = self.kernel.own(value);
        self.kernel.acts("store", |k| k.store(place, value));
    }

    /// How many elements are bound to it, as `u64`: of a parameter.
    #[track_caller]
    pub fn len(self) -> Value<'k> {
        self.kernel
            .value(self.kernel.at(|k| k.buffer_length(self.memory)))
    }

    /// An atomic operation on an element; a compare-exchange gives the old value and whether it exchanged.
    #[track_caller]
    pub fn atomic(
        self,
        op: AtomicOp,
        index: Value<'_>,
        args: &[Value<'_>],
        order: Order,
        scope: Scope,
    ) -> Vec<Value<'k>> {
        let (place, args) = (self.place(index), self.kernel.owns(args));
        let results = self.kernel.acts("atomic operation", |k| {
            k.atomic(op, place, &args, order, scope)
        });
        results
            .into_iter()
            .map(|id| self.kernel.value(id))
            .collect()
    }

    /// Whose it is, for those to whom it is another kernel's.
    #[track_caller]
    fn described(self) -> String {
        let inner = self.kernel.inner();
        let name = inner.builder.memory(self.memory).map(|memory| memory.name);
        let name = name.map_or(String::new(), |name| format!("`%{name}`"));
        format!("{name} is an array of kernel `{}`", inner.name())
    }
}

/// An operand beside a value: another one, or a Rust number of its own type.
pub trait Operand<'k> {
    /// The value in that kernel.
    #[track_caller]
    fn value_in(self, kernel: &'k Builder) -> Value<'k>;
}

impl<'k> Operand<'k> for Value<'k> {
    fn value_in(self, _kernel: &'k Builder) -> Value<'k> {
        self
    }
}

impl<'k, T: ScalarLiteral + Literal> Operand<'k> for T {
    #[track_caller]
    fn value_in(self, kernel: &'k Builder) -> Value<'k> {
        kernel.literal(self)
    }
}

impl<'k> Value<'k> {
    /// Whose it is and its type, for those to whom it is another kernel's.
    #[track_caller]
    fn described(self) -> (String, Type) {
        let inner = self.kernel.inner();
        let kernel = inner.builder.kernel();
        let (name, ty) = (kernel.value_name(self.id), kernel.ty(self.id));
        (
            format!("`{name}` is a value of kernel `{}`", inner.name()),
            ty,
        )
    }

    /// Its type.
    #[track_caller]
    pub fn ty(self) -> Type {
        self.kernel.inner().builder.ty(self.id)
    }

    /// Names it for reports and the text form, unless it has a name.
    #[must_use]
    #[track_caller]
    pub fn named(self, name: &str) -> Value<'k> {
        self.kernel.inner().builder.name(self.id, name);
        self
    }

    /// Converts it to another type of its shape (A5).
    #[track_caller]
    pub fn cast(self, ty: impl Into<Type>) -> Value<'k> {
        self.kernel.apply(Op::Cast, ty.into(), &[self])
    }

    /// Its bits as another type of as many.
    #[track_caller]
    pub fn as_type(self, ty: impl Into<Type>) -> Value<'k> {
        self.kernel.apply(Op::AsType, ty.into(), &[self])
    }

    /// Components in the order of a name such as `x`, `zyx` or `rgba`.
    #[track_caller]
    pub fn swizzle(self, name: &str) -> Value<'k> {
        match invar_ir::Swizzle::parse(name) {
            Some(components) => self.kernel.apply(Op::Swizzle, components, &[self]),
            None => {
                let what = format!("`{name}` names no components");
                self.kernel.at(|k| {
                    let help = "write up to four of xyzw, or of rgba";
                    k.error(Diagnostic::error(Rule::TypeMismatch, k.span(), what).help(help));
                });
                self
            }
        }
    }

    /// Its power by an integer, as products of squares: of a float, or a vector of floats.
    #[track_caller]
    pub fn powi(self, n: i32) -> Value<'k> {
        let one = || {
            let (one, ty) = (self.kernel.literal(1.0f32), self.ty());
            let scalar = ty.scalar().unwrap_or(Scalar::F32);
            let one = one.cast(scalar);
            match ty {
                Type::Vector(_, count) => self.kernel.construct(ty, &vec![one; count.into()]),
                _ => one,
            }
        };
        let (mut left, mut square, mut product) = (n.unsigned_abs(), self, None);
        while left > 0 {
            if left % 2 == 1 {
                product = Some(product.map_or(square, |product: Value<'k>| product * square));
            }
            left /= 2;
            if left > 0 {
                square *= square;
            }
        }
        match product {
            Some(product) if n < 0 => one() / product,
            Some(product) => product,
            None => one(),
        }
    }

    /// Its bits `offset` to `offset + count` replaced by the lowest ones of `part`.
    #[track_caller]
    pub fn insert_bits(self, part: Value<'_>, offset: Value<'_>, count: Value<'_>) -> Value<'k> {
        self.kernel
            .apply(Op::InsertBits, (), &[self, part, offset, count])
    }
}

macro_rules! methods {
    (
        unary: $($unary:ident),*;
        binary: $($binary:ident),*;
        ternary: $($ternary:ident),*;
        queries: $($query:ident),*;
        positions: $($position:ident),*;
    ) => {
        #[cfg(test)]
        const NAMES: &[&str] = &[
            $(stringify!($unary),)* $(stringify!($binary),)* $(stringify!($ternary),)*
            $(stringify!($query),)* $(stringify!($position),)*
        ];

        impl<'k> Value<'k> {
            $(
                #[doc = concat!("`", stringify!($unary), "` of the [table of operations]",
                    "(invar_ir::KernelBuilder::", stringify!($unary), ").")]
                #[track_caller]
                pub fn $unary(self) -> Value<'k> {
                    let k = self.kernel;
                    k.value(k.at(|b| KernelBuilder::$unary(b, self.id)))
                }
            )*
            $(
                #[doc = concat!("`", stringify!($binary), "` of the [table of operations]",
                    "(invar_ir::KernelBuilder::", stringify!($binary), ").")]
                #[track_caller]
                pub fn $binary(self, b: impl Operand<'k>) -> Value<'k> {
                    let k = self.kernel;
                    let b = k.own(b.value_in(k));
                    k.value(k.at(|builder| KernelBuilder::$binary(builder, self.id, b)))
                }
            )*
            $(
                #[doc = concat!("`", stringify!($ternary), "` of the [table of operations]",
                    "(invar_ir::KernelBuilder::", stringify!($ternary), ").")]
                #[track_caller]
                pub fn $ternary(self, b: impl Operand<'k>, c: impl Operand<'k>) -> Value<'k> {
                    let k = self.kernel;
                    let (b, c) = (k.own(b.value_in(k)), k.own(c.value_in(k)));
                    k.value(k.at(|builder| KernelBuilder::$ternary(builder, self.id, b, c)))
                }
            )*
        }

        impl Builder {
            $(
                #[doc = concat!("`", stringify!($query), "` of the [table of operations]",
                    "(invar_ir::KernelBuilder::", stringify!($query), ").")]
                #[track_caller]
                pub fn $query(&self) -> Value<'_> {
                    self.value(self.at(KernelBuilder::$query))
                }
            )*
            $(
                #[doc = concat!("`", stringify!($position), "` of the [table of operations]",
                    "(invar_ir::KernelBuilder::", stringify!($position), ").")]
                #[track_caller]
                pub fn $position(&self, dim: Dim) -> Value<'_> {
                    self.value(self.at(|k| KernelBuilder::$position(k, dim)))
                }
            )*
        }
    };
}
methods! {
    unary:
        sqrt, abs, ceil, floor, trunc, rint, popcount, clz, ctz, reverse_bits, round, sign,
        saturate, fract, isnan, isinf, isfinite, isnormal, signbit, all, any, length, normalize,
        transpose, determinant, pack_float_to_unorm4x8, pack_float_to_snorm4x8,
        pack_float_to_srgb_unorm4x8, pack_float_to_unorm2x16, pack_float_to_snorm2x16,
        pack_float_to_unorm10a2, unpack_unorm4x8_to_float, unpack_snorm4x8_to_float,
        unpack_srgb_unorm4x8_to_float, unpack_unorm2x16_to_float, unpack_snorm2x16_to_float,
        unpack_unorm10a2_to_float, exp, exp2, exp10, log, log2, log10, rsqrt, sin, cos, tan,
        sinpi, cospi, tanpi, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, erf,
        simd_sum, simd_product, simd_min, simd_max, simd_and, simd_or, simd_xor,
        simd_prefix_inclusive_sum, simd_prefix_exclusive_sum, simd_prefix_inclusive_product,
        simd_prefix_exclusive_product, simd_broadcast_first, simd_ballot, simd_all, simd_any,
        quad_sum, quad_product, quad_min, quad_max, quad_and, quad_or, quad_xor,
        quad_prefix_inclusive_sum, quad_prefix_exclusive_sum, quad_prefix_inclusive_product,
        quad_prefix_exclusive_product, quad_broadcast_first, quad_ballot, quad_all, quad_any;
    binary:
        min, max, fmin, fmax, mul_hi, eq, ne, lt, le, gt, ge, extract, step, copysign, ldexp,
        abs_diff, add_sat, sub_sat, rotate, shr_exact, dot, distance, cross, reflect,
        matrix_multiply, pow, powr, atan2, fmod, simd_shuffle, simd_shuffle_up, simd_shuffle_down, simd_shuffle_xor,
        simd_shuffle_rotate_up, simd_shuffle_rotate_down, simd_broadcast, quad_shuffle,
        quad_shuffle_up, quad_shuffle_down, quad_shuffle_xor, quad_shuffle_rotate_up,
        quad_shuffle_rotate_down, quad_broadcast;
    ternary:
        fma, select, insert, clamp, mix, smoothstep, mad_hi, mad_sat, extract_bits, refract,
        faceforward;
    queries:
        thread_index_in_threadgroup, thread_index_in_simdgroup, simdgroup_index_in_threadgroup,
        simdgroups_per_threadgroup, dispatch_simdgroups_per_threadgroup, threads_per_simdgroup,
        thread_execution_width, thread_index_in_quadgroup, quadgroup_index_in_threadgroup,
        quadgroups_per_threadgroup, dispatch_quadgroups_per_threadgroup;
    positions:
        thread_position_in_grid, thread_position_in_threadgroup, threadgroup_position_in_grid,
        threads_per_threadgroup, dispatch_threads_per_threadgroup, threads_per_grid,
        threadgroups_per_grid, grid_origin, grid_size;
}

/// An operator of two values; where one is a vector and the other a scalar, of each component with that.
macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:path;)*) => {
        $(
            impl<'k, R: Operand<'k>> ops::$trait<R> for Value<'k> {
                type Output = Value<'k>;

                #[track_caller]
                fn $method(self, other: R) -> Value<'k> {
                    let k = self.kernel;
                    let other = k.own(other.value_in(k));
                    k.value(k.at(|builder| {
                        let [a, b] = alike(builder, self.id, other);
                        $op(builder, a, b)
                    }))
                }
            }

            impl<'k, R: Operand<'k>> ops::$assign<R> for Value<'k> {
                #[track_caller]
                fn $assign_method(&mut self, other: R) {
                    *self = ops::$trait::$method(*self, other);
                }
            }
        )*
    };
}
operators! {
    Add add AddAssign add_assign KernelBuilder::add;
    Sub sub SubAssign sub_assign KernelBuilder::sub;
    Mul mul MulAssign mul_assign KernelBuilder::mul;
    Div div DivAssign div_assign KernelBuilder::div;
    Rem rem RemAssign rem_assign remainder;
    BitAnd bitand BitAndAssign bitand_assign KernelBuilder::and;
    BitOr bitor BitOrAssign bitor_assign KernelBuilder::or;
    BitXor bitxor BitXorAssign bitxor_assign KernelBuilder::xor;
    Shl shl ShlAssign shl_assign KernelBuilder::shl;
    Shr shr ShrAssign shr_assign KernelBuilder::shr;
}

/// A Rust number before a value: `1.0f32 - v`.
macro_rules! numbers_first {
    ($($ty:ident)* => $ops:tt) => {
        $(numbers_first!(@of $ty $ops);)*
    };
    (@of $ty:ident ($($trait:ident $method:ident;)*)) => {$(
        impl<'k> ops::$trait<Value<'k>> for $ty {
            type Output = Value<'k>;

            #[track_caller]
            fn $method(self, other: Value<'k>) -> Value<'k> {
                ops::$trait::$method(other.kernel.literal(self), other)
            }
        }
    )*};
}
numbers_first! { i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 => (
    Add add; Sub sub; Mul mul; Div div; Rem rem;
) }
numbers_first! { i8 i16 i32 i64 u8 u16 u32 u64 => (
    BitAnd bitand; BitOr bitor; BitXor bitxor; Shl shl; Shr shr;
) }

/// What a division leaves: of integers by A2, of floats as `fmod`, which is Rust's too.
fn remainder(k: &mut KernelBuilder, a: Id, b: Id) -> Id {
    match k.ty(a).scalar().is_some_and(Scalar::is_float) {
        true => k.fmod(a, b),
        false => k.rem(a, b),
    }
}

/// Two operands of one shape: a scalar beside a vector becomes a vector of it.
fn alike(k: &mut KernelBuilder, a: Id, b: Id) -> [Id; 2] {
    match (k.ty(a), k.ty(b)) {
        (Type::Vector(scalar, n), Type::Scalar(other)) if scalar == other => {
            [a, k.construct(k.ty(a), &vec![b; usize::from(n)])]
        }
        (Type::Scalar(other), Type::Vector(scalar, n)) if scalar == other => {
            [k.construct(k.ty(b), &vec![a; usize::from(n)]), b]
        }
        _ => [a, b],
    }
}

impl<'k> ops::Neg for Value<'k> {
    type Output = Value<'k>;

    #[track_caller]
    fn neg(self) -> Value<'k> {
        self.kernel.apply(Op::Neg, (), &[self])
    }
}

impl<'k> ops::Not for Value<'k> {
    type Output = Value<'k>;

    #[track_caller]
    fn not(self) -> Value<'k> {
        self.kernel.apply(Op::Not, (), &[self])
    }
}

// ---- typed arguments ----

/// A parameter of a kernel with types: a buffer that is read.
pub struct In<T>(PhantomData<T>);

/// A parameter of a kernel with types: a buffer that is written.
pub struct Out<T>(PhantomData<T>);

/// What a parameter must be.
#[doc(hidden)]
pub enum Wanted {
    Buffer { holds: Held, written: bool },
    Texture { written: bool },
    Sampler,
    Value(Option<Type>),
}

/// What a buffer of Rust values holds: elements of so many bytes, of a scalar type or of several.
#[doc(hidden)]
pub struct Held {
    size_bytes: u64,
    /// Whether it is a struct, of which there is more to say than a number of scalars.
    is_struct: bool,
    /// Its scalars in order, with nothing between them: all but of long arrays.
    scalars: Vec<Scalar>,
}

impl Held {
    fn of<T: Element + Stored>() -> Held {
        let mut types = Vec::new();
        T::types(&mut types);
        let scalars = types.iter().flat_map(|ty| {
            let count = ty.component_count() as usize;
            std::iter::repeat_n(ty.scalar(), count).flatten()
        });
        Held {
            size_bytes: size_of::<T>() as u64,
            is_struct: T::SCALAR.is_none(),
            scalars: scalars.collect(),
        }
    }

    /// What it is, in words for a report.
    fn what(&self) -> String {
        // More are not read.
        const SHOWN: usize = 16;
        let shown = self.scalars.iter().take(SHOWN);
        let shown: Vec<String> = shown.map(ToString::to_string).collect();
        match &shown[..] {
            _ if self.is_struct => {
                let more = if self.scalars.len() > SHOWN {
                    ", ..."
                } else {
                    ""
                };
                format!("structs of {}{more}", shown.join(", "))
            }
            [only] => only.clone(),
            [first, ..] => {
                let size = self.scalars[0].size_bytes();
                format!("[{first}; {}]", self.size_bytes / size)
            }
            [] => "nothing".to_string(),
        }
    }

    fn is(&self, module: &Module, element: &ElementType) -> bool {
        let size = element.extent(&module.structs).map(|e| e.size_bytes);
        let found = element.first_locations(&module.structs, self.scalars.len());
        let mut offset = 0;
        let same = found.iter().zip(&self.scalars).all(|(found, scalar)| {
            let wanted = (offset, *scalar);
            offset += scalar.size_bytes();
            *found == wanted
        });
        size == Some(self.size_bytes) && found.len() == self.scalars.len() && same
    }
}

impl Wanted {
    fn what(&self) -> String {
        match self {
            Wanted::Buffer {
                holds,
                written: true,
            } => format!("buffer of {} that may be written", holds.what()),
            Wanted::Buffer {
                holds,
                written: false,
            } => format!("buffer of {} that is only read", holds.what()),
            Wanted::Texture { written: true } => "texture that may be written".to_string(),
            Wanted::Texture { written: false } => "texture that is only read".to_string(),
            Wanted::Sampler => "sampler".to_string(),
            Wanted::Value(Some(ty)) => format!("value of type {ty}"),
            Wanted::Value(None) => "value".to_string(),
        }
    }

    fn fits(&self, module: &Module, kernel: &Kernel, kind: &ParamKind) -> bool {
        match (self, kind) {
            (Wanted::Buffer { holds, written }, ParamKind::Buffer { access, element }) => {
                holds.is(module, element) && *written == access.can_write()
            }
            (
                Wanted::Buffer {
                    holds,
                    written: false,
                },
                ParamKind::Constant { element },
            ) => holds.is(module, element),
            (Wanted::Value(ty), ParamKind::Scalar { value }) => *ty == Some(kernel.ty(*value)),
            (Wanted::Texture { written }, ParamKind::Texture(ty)) => {
                *written == ty.access.memory().can_write()
            }
            (Wanted::Sampler, ParamKind::Sampler) => true,
            (
                _another,
                ParamKind::Buffer { .. }
                | ParamKind::Constant { .. }
                | ParamKind::Scalar { .. }
                | ParamKind::Threadgroup { .. }
                | ParamKind::Texture(_)
                | ParamKind::Sampler,
            ) => false,
        }
    }
}

/// One parameter of a [`Signature`].
pub trait Parameter {
    /// What a launch passes for it.
    type Given<'a>;

    #[doc(hidden)]
    fn wanted() -> Wanted;

    #[doc(hidden)]
    fn arg<'a, 'b: 'a>(given: &'a Self::Given<'b>) -> Result<Arg<'a>, Error>;
}

impl<T: Element + Stored> Parameter for In<T> {
    type Given<'a> = &'a Buffer<T>;

    fn wanted() -> Wanted {
        Wanted::Buffer {
            holds: Held::of::<T>(),
            written: false,
        }
    }

    fn arg<'a, 'b: 'a>(given: &'a &'b Buffer<T>) -> Result<Arg<'a>, Error> {
        Ok(Arg::from(*given))
    }
}

impl<T: Element + Stored> Parameter for Out<T> {
    type Given<'a> = &'a mut Buffer<T>;

    fn wanted() -> Wanted {
        Wanted::Buffer {
            holds: Held::of::<T>(),
            written: true,
        }
    }

    fn arg<'a, 'b: 'a>(given: &'a &'b mut Buffer<T>) -> Result<Arg<'a>, Error> {
        Ok(Arg::from(&**given))
    }
}

impl<T: Constant + Copy> Parameter for T {
    type Given<'a> = T;

    fn wanted() -> Wanted {
        Wanted::Value(T::VALUE)
    }

    fn arg<'a, 'b: 'a>(given: &'a T) -> Result<Arg<'a>, Error> {
        value(*given)
    }
}

/// The parameters of a kernel: a tuple of [`In`], [`Out`], [`TextureIn`], [`TextureOut`], samplers and types of values.
pub trait Signature {
    /// What a launch passes.
    type Given<'a>;

    #[doc(hidden)]
    fn params(into: &mut Vec<Wanted>);

    #[doc(hidden)]
    fn args<'a, 'b: 'a>(given: &'a Self::Given<'b>) -> Result<Vec<Arg<'a>>, Error>;
}

macro_rules! signatures {
    ($(($($name:ident $number:tt)+))*) => {$(
        impl<$($name: Parameter),+> Signature for ($($name,)+) {
            type Given<'a> = ($($name::Given<'a>,)+);

            fn params(into: &mut Vec<Wanted>) {
                $(into.push($name::wanted());)+
            }

            fn args<'a, 'b: 'a>(given: &'a Self::Given<'b>) -> Result<Vec<Arg<'a>>, Error> {
                Ok(vec![$($name::arg(&given.$number)?),+])
            }
        }
    )*};
}
signatures! {
    (A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 F 5)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6) (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8) (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10) (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15)
}

/// A kernel whose parameters have known types; from [`Builder::finish_as`].
pub struct Typed<S> {
    module: Arc<Verified>,
    signature: PhantomData<fn() -> S>,
}

/// Such a kernel compiled for a device; from [`Typed::prepare`].
pub struct Prepared<S> {
    program: Program,
    queue: Queue,
    module: Arc<Verified>,
    signature: PhantomData<fn() -> S>,
}

impl<S: Signature> Typed<S> {
    /// The kernel, to be compiled, written or encoded.
    pub fn module(&self) -> &Verified {
        &self.module
    }

    /// Compiles the kernel for a device, for launches that are to cost little.
    ///
    /// # Errors
    /// What the device cannot do.
    pub fn prepare(&self, device: &Device) -> Result<Prepared<S>, Error> {
        let program = device.compile(&self.module, &self.module.kernels[0].name);
        Ok(Prepared {
            program: program.map_err(|error| with_lines(&self.module, error))?,
            queue: device.queue(),
            module: self.module.clone(),
            signature: PhantomData,
        })
    }

    /// Compiles the kernel and submits it. One that is launched often is compiled once by [`Typed::prepare`].
    ///
    /// # Errors
    /// What the device cannot do, or what does not fit the grid.
    pub fn launch(
        &self,
        device: &Device,
        grid: impl IntoDispatch,
        args: S::Given<'_>,
    ) -> Result<Launched, Error> {
        self.prepare(device)?.launch(grid, args)
    }
}

impl<S: Signature> Prepared<S> {
    /// Submits the kernel. What the checked device finds names the lines of Rust that built it.
    ///
    /// # Errors
    /// What does not fit the grid.
    pub fn launch(&self, grid: impl IntoDispatch, args: S::Given<'_>) -> Result<Launched, Error> {
        let dispatch = grid.into_dispatch(self.module.kernels[0].threadgroup_size);
        let args = S::args(&args)?;
        let submission = self.queue.dispatch(&self.program, dispatch, &args);
        let submission = submission.map_err(|error| with_lines(&self.module, error))?;
        Ok(Launched::of_module(submission, self.module.clone()))
    }
}

#[cfg(test)]
mod tests {
    use invar_ir::Op;

    #[test]
    fn every_operation_is_a_method_or_an_operator() {
        let others = [
            "add",
            "sub",
            "mul",
            "div",
            "rem",
            "neg",
            "and",
            "or",
            "xor",
            "not",
            "shl",
            "shr",
            "cast",
            "as_type",
            "swizzle",
            "insert_bits",
            "construct",
        ];
        for op in Op::all() {
            let named = super::NAMES
                .iter()
                .chain(&others)
                .filter(|n| **n == op.name());
            assert_eq!(named.count(), 1, "`{}`", op.name());
        }
    }
}
