//! The kernel that this thread is defining, and where in the author's text it stands.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{
    Access, Call, CallId, Const, Diagnostic, Diagnostics, FloatMode, KernelBuilder, Memory, Module,
    ParamKind, Place, Position, Rule, Source, SourceId, Span, StructId, TextureAccess, Value,
    Verified, verify,
};
use invar_runtime::Error;

use super::advice::in_rust;
use crate::report::{self, Style};

/// Where something stands in the author's file: line and column of its begin and of its end, both
/// counted from 1.
pub type Place4 = [u32; 4];

/// A function in the author's text.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The file, as rustc calls it.
    pub file: &'static str,
    /// The function's text, in its own lines and columns of the file; what stands around it is blank.
    pub text: &'static str,
    /// Where its name stands.
    pub place: Place4,
}

/// A kernel written in Rust: what `#[kernel]` implements.
///
/// The macro's type of the same name as the function also has `launch`, `prepare` and `check`, whose
/// parameters are those of the function.
///
/// ```
/// use invar::prelude::*;
///
/// #[kernel]
/// fn fill(y: &mut [u32]) {
///     let i = thread_position_in_grid().x;
///     y[i] = i;
/// }
///
/// assert_eq!(fill::NAME, "fill");
/// assert!(fill::to_inv()?.contains("thread_position_in_grid x"));
/// # Ok::<(), invar::Error>(())
/// ```
pub trait Kernel: Sized + 'static {
    /// The kernel's name.
    const NAME: &'static str;
    /// What its `#[kernel(...)]` says.
    const ATTRIBUTES: Attributes;

    /// Adds parameters and body to the kernel that this thread is defining.
    #[doc(hidden)]
    fn define();

    /// The kernel as a verified module of its own, to be compiled, written or encoded.
    ///
    /// # Errors
    /// What the verifier finds, as a report with the author's lines.
    fn module() -> Result<Verified, Error> {
        module::<Self>()
    }

    /// The kernel in the text form, as `invar check` and `invar emit` take it.
    ///
    /// # Errors
    /// As [`Kernel::module`].
    fn to_inv() -> Result<String, Error> {
        to_inv::<Self>()
    }
}

/// What `#[kernel(...)]` says of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// Threads in a full threadgroup: `threadgroup(16, 16)`.
    pub threadgroup: Option<[u32; 3]>,
    /// The simdgroup size that it requires: `simdgroup(32)`.
    pub simdgroup: Option<u32>,
    /// How floats are computed (A8): `strict`, `contract` or `fast`.
    pub float_mode: FloatMode,
    /// Loads out of bounds are meant: `allow(out_of_bounds_loads)`.
    pub allow_out_of_bounds_loads: bool,
    /// Stores out of bounds are meant: `allow(out_of_bounds_stores)`.
    pub allow_out_of_bounds_stores: bool,
    /// Threadgroup memory is read before it is written, for its zeros: `allow(uninitialised_reads)`.
    pub allow_uninitialised_reads: bool,
    /// What a check is silent about: `allow(equal_stores, unordered_atomics, discarded_load)`.
    pub allow: &'static [Rule],
}

impl Attributes {
    /// A kernel of which nothing is said.
    pub const NONE: Attributes = Attributes {
        threadgroup: None,
        simdgroup: None,
        float_mode: FloatMode::Contract,
        allow_out_of_bounds_loads: false,
        allow_out_of_bounds_stores: false,
        allow_uninitialised_reads: false,
        allow: &[],
    };
}

/// How many threads `threadgroup(N)` and `simdgroup(N)` say, of a constant of any integer type.
#[doc(hidden)]
pub const fn thread_count(count: i128) -> u32 {
    assert!(
        count >= 0 && count <= u32::MAX as i128,
        "a threadgroup has between 1 and 4294967295 threads along an axis, and a simdgroup as many"
    );
    count as u32
}

/// A kernel that is being defined.
pub struct Definition {
    pub(super) builder: KernelBuilder,
    /// The source and the inlined call that what follows stands in.
    source: Option<SourceId>,
    call: Option<CallId>,
    /// The functions that what follows stands in, innermost last.
    entered: Vec<&'static Function>,
    /// What is done with each parameter: loads, stores.
    used: HashMap<u32, (bool, bool)>,
    /// The textures that are sampled.
    sampled: HashSet<u32>,
    /// Places in memory, by number.
    pub(super) places: Vec<Place>,
    /// The values of arrays that are neither vectors nor matrices, by number.
    pub(super) lists: Vec<Vec<Value>>,
    /// The values that are constants of the author's text.
    constants: HashMap<Value, Const>,
    /// The structs of the module, by their Rust types.
    pub(super) structs: HashMap<TypeId, StructId>,
}

thread_local! {
    static DEFINITION: RefCell<Option<Definition>> = const { RefCell::new(None) };
}

/// Takes the definition away when a kernel is defined, and puts back that in whose midst it was.
struct Outer(Option<Definition>);

impl Drop for Outer {
    fn drop(&mut self) {
        DEFINITION.with(|d| *d.borrow_mut() = self.0.take());
    }
}

/// Adds to the kernel that this thread is defining.
///
/// # Panics
/// Outside a kernel.
pub(super) fn with<R>(f: impl FnOnce(&mut Definition) -> R) -> R {
    DEFINITION.with(|d| match &mut *d.borrow_mut() {
        Some(definition) => f(definition),
        None => panic!(
            "a function of kernels was called outside a kernel: call it in the body of a function \
             under #[kernel] or #[device_fn]"
        ),
    })
}

/// Says where the next instruction stands, once its operands are there.
pub fn at<T>(place: Place4, operand: T) -> T {
    with(|k| k.place(place));
    operand
}

/// A function is entered: what follows stands in its text, until this is dropped. None if what follows
/// stands in it already: its body would hold itself, without an end.
#[must_use]
pub fn enter(function: &'static Function) -> Option<Inlined> {
    with(|k| {
        // Each function is a static of its own; two that a macro of the author's made are alike.
        if k.entered
            .iter()
            .any(|around| std::ptr::eq(*around, function))
        {
            let name = function.name;
            k.refuse(&format!(
                "this calls `{name}` in the midst of `{name}`: functions become a part of their callers, so \
                 kernels have no recursion; write a loop"
            ));
            return None;
        }
        let before = (k.builder.span(), k.source, k.call);
        if k.source.is_some() {
            let calls = &mut k.builder.module_mut().calls;
            calls.push(Call {
                function: function.name.into(),
                site: before.0,
            });
            k.call = Some(CallId(calls.len() as u32 - 1));
        }
        k.entered.push(function);
        k.source = Some(k.source_of(function));
        k.place(function.place);
        if k.entered.len() == 1 {
            // What is wrong with the kernel as a whole stands where its name does.
            let span = k.builder.span();
            k.builder.kernel_mut().span = span;
        }
        Some(Inlined(before))
    })
}

/// From [`enter`]: an inlined function that is being left when this is dropped.
pub struct Inlined((Span, Option<SourceId>, Option<CallId>));

impl Drop for Inlined {
    fn drop(&mut self) {
        with(|k| {
            let (span, source, call) = self.0;
            k.builder.set_span(span);
            (k.source, k.call) = (source, call);
            k.entered.pop();
        });
    }
}

impl Definition {
    fn source_of(&mut self, function: &Function) -> SourceId {
        let sources = &mut self.builder.module_mut().sources;
        let known = sources
            .iter()
            .position(|s| *s.name == *function.file && *s.text == *function.text);
        let id = known.unwrap_or_else(|| {
            sources.push(Source {
                name: function.file.into(),
                text: function.text.into(),
            });
            sources.len() - 1
        });
        SourceId(id as u32)
    }

    fn place(&mut self, [line, column, end_line, end_column]: Place4) {
        let (source, call) = (self.source, self.call);
        self.builder.set_span(Span {
            source,
            start: Position { line, column },
            end: Position {
                line: end_line,
                column: end_column,
            },
            call,
        });
    }

    /// A constant of the author's text.
    pub(super) fn constant(&mut self, constant: Const) -> Value {
        let value = self.builder.constant(constant);
        self.constants.insert(value, constant);
        value
    }

    /// Which constant a value is, if it is one of the author's text.
    pub(super) fn known(&self, value: Value) -> Option<Const> {
        self.constants.get(&value).copied()
    }

    /// Keeps an error on the words that stand here, for the report on the whole kernel.
    pub(super) fn refuse(&mut self, message: &str) {
        let span = self.builder.span();
        self.builder
            .error(Diagnostic::error(Rule::TypeMismatch, span, message));
    }

    /// Notes what is done with a memory object, from which follows what a buffer is bound for.
    pub(super) fn uses(&mut self, memory: Memory, loads: bool, stores: bool) {
        if let Memory::Param(id) = memory {
            let used = self.used.entry(id).or_default();
            used.0 |= loads;
            used.1 |= stores;
        }
    }

    /// Notes that a texture is sampled.
    pub(super) fn samples(&mut self, texture: Memory) {
        if let Memory::Param(id) = texture {
            self.sampled.insert(id);
        }
    }

    /// The access of each buffer and texture is what the body does with it.
    fn settle_access(&mut self) {
        for (id, param) in (0u32..).zip(&mut self.builder.kernel_mut().params) {
            if let ParamKind::Texture(texture) = &mut param.kind {
                texture.access = match self.used.get(&id) {
                    _ if self.sampled.contains(&id) => TextureAccess::Sample,
                    Some((false, true)) => TextureAccess::Write,
                    Some((true, true)) => TextureAccess::ReadWrite,
                    Some((_, false)) | None => TextureAccess::Read,
                };
            }
            if let ParamKind::Buffer { access, .. } = &mut param.kind {
                *access = match self.used.get(&id) {
                    Some((false, true)) => Access::Write,
                    Some((true, true)) => Access::ReadWrite,
                    Some((_, false)) | None => Access::Read,
                };
            }
        }
    }
}

/// Blocks of the body are closures, which call each other as deep as blocks nest.
fn define<K: Kernel>() -> Result<Verified, Error> {
    with_room(PASSES_BYTES, defined::<K>)
}

fn defined<K: Kernel>() -> Result<Verified, Error> {
    let mut builder = KernelBuilder::new(Module::default(), K::NAME);
    let attributes = K::ATTRIBUTES;
    let kernel = builder.kernel_mut();
    kernel.threadgroup_size = attributes.threadgroup;
    kernel.simdgroup_size = attributes.simdgroup;
    kernel.float_mode = attributes.float_mode;
    kernel.allow_out_of_bounds_loads = attributes.allow_out_of_bounds_loads;
    kernel.allow_out_of_bounds_stores = attributes.allow_out_of_bounds_stores;
    kernel.allow_uninitialised_reads = attributes.allow_uninitialised_reads;
    let fresh = Definition {
        builder,
        source: None,
        call: None,
        entered: Vec::new(),
        used: HashMap::new(),
        sampled: HashSet::new(),
        places: Vec::new(),
        lists: Vec::new(),
        constants: HashMap::new(),
        structs: HashMap::new(),
    };
    let outer = Outer(DEFINITION.with(|d| d.borrow_mut().replace(fresh)));
    K::define();
    let done = DEFINITION.with(|d| d.borrow_mut().take());
    drop(outer);
    let mut done = done.expect("a kernel that was begun is still being defined");
    done.settle_access();
    let module = done.builder.module();
    let texts = Module {
        sources: module.sources.clone(),
        calls: module.calls.clone(),
        ..Module::default()
    };
    let module = done.builder.finish().map_err(|all| told(&texts, &all))?;
    // What is wrong with it is told in its words.
    verify(module.clone()).map_err(|all| told(&module, &all))
}

/// What is wrong with a Rust kernel, as a report with the author's lines, and what to write in Rust.
pub(super) fn told(module: &Module, all: &Diagnostics) -> Error {
    reported(
        &module.sources,
        &module.calls,
        &Diagnostics(in_rust(module, &all.0)),
    )
}

/// What is wrong with a kernel, as a report with the author's lines.
pub(crate) fn reported(sources: &[Source], calls: &[Call], all: &Diagnostics) -> Error {
    let rule = all.0.first().map_or(Rule::Syntax, |d| d.rule);
    let text = report::render(sources, calls, &all.0, Style::Plain);
    // The error says `error[rule]: ` itself.
    let begin = format!("error[{}]: ", rule.name());
    let message = text.strip_prefix(begin.as_str()).unwrap_or(&text);
    Error::Runtime {
        rule,
        message: message.trim_end().to_string(),
    }
}

/// What a process keeps of each kernel; those of a generic one by its arguments.
pub(super) fn kept<K: Kernel, T: Any + Send + Sync>(make: impl FnOnce() -> T) -> Arc<T> {
    type Kept = Mutex<HashMap<(TypeId, TypeId), Arc<dyn Any + Send + Sync>>>;
    static KEPT: OnceLock<Kept> = OnceLock::new();
    let key = (TypeId::of::<K>(), TypeId::of::<T>());
    let kept = KEPT.get_or_init(Mutex::default);
    let find = |all: &HashMap<_, Arc<dyn Any + Send + Sync>>| {
        let found: Option<&Arc<dyn Any + Send + Sync>> = all.get(&key);
        found.cloned().and_then(|any| any.downcast::<T>().ok())
    };
    if let Some(found) = find(&kept.lock().unwrap_or_else(PoisonError::into_inner)) {
        return found;
    }
    // Not under the lock: a kernel may ask for another one. The first that is ready stays.
    let made: Arc<T> = Arc::new(make());
    let mut all = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = find(&all) {
        return found;
    }
    all.insert(key, made.clone());
    made
}

/// A kernel as a verified module; see [`Kernel::module`].
///
/// # Errors
/// What the verifier finds, as a report with the author's lines.
pub fn module<K: Kernel>() -> Result<Verified, Error> {
    (*kept::<K, _>(define::<K>)).clone()
}

/// A kernel in the text form; see [`Kernel::to_inv`].
///
/// # Errors
/// What the verifier finds, as a report with the author's lines.
pub fn to_inv<K: Kernel>() -> Result<String, Error> {
    Ok(module::<K>()?.to_string())
}

/// Ends the thread.
pub fn return_(place: Place4) {
    at(place, ());
    with(|k| k.builder.return_());
}
