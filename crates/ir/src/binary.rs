//! The binary form: a module as bytes, spans and sources included, for caches and for passing
//! between processes.
//!
//! One module has one encoding and one encoding is one module: `decode(encode(m))` is `m`, spans
//! too, and `encode(decode(b))` is `b`. A kernel that is not in canonical numbering is encoded as
//! [`Kernel::renumber`] numbers it. Operations are written by name, so a module outlives changes of
//! the op table.
//!
//! [`decode`] takes any bytes. It refuses, with the offset and the reason, whatever the rest of the
//! crate could trip over: ids that nothing defines, types that cannot exist, nesting beyond
//! [`MAX_NESTING`] and [`MAX_TYPE_DEPTH`](crate::memory_layout::MAX_TYPE_DEPTH). Everything else is
//! for the verifier to judge. Its memory is proportional to the input.
//!
//! The form: [`MAGIC`], the version, and then in the format of postcard (its specification is
//! public: numbers are LEB128, variants of enums are their places) the module's sources, calls,
//! structs, function constants and constants, the number of its kernels, and each kernel. The blocks
//! of a kernel are one list, each before those that its instructions hold, so that no reader
//! recurses. Behind each kernel follows what it requires of a launch, where any kernel of the module
//! requires something or has collectives over the active threads, and then which of the two kinds of
//! collectives it has: version 3 is with the one, version 4 with both, and a module without either is of
//! version 2. One with textures is of version 5, which has both always, and one with bindings of version 6, where
//! each kernel's bindings, one a parameter, come last, and one with imageblocks, which are arrays in a space that
//! earlier versions lack, of version 7, which has all of these. Where a kernel allows reads of threadgroup memory
//! that nothing has written, the module is of version 8, which has all of these too, and whether each kernel does
//! behind its bindings; and one with samples by parameters that must be of normalized coordinates is of version 9, of
//! the same parts. A change to a type of the crate that is written here, or the order of its variants, needs a new `VERSION`;
//! `the_form_does_not_change` sees to it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::inst::{Const, Inst, InstKind, MAX_NESTING, Memory, Region, Spaces, Value, ValueInfo};
use crate::module::{Alloc, Binding, FloatMode, Kernel, Module, Param, ParamKind};
use crate::ops::Imm;
use crate::requires::{LaunchNumber, Required, Requirement};
use crate::room::{PASSES_BYTES, with_room};
use crate::span::Span;
use crate::types::{ElementType, Type};

/// What every encoding begins with.
pub const MAGIC: &[u8; 6] = b"\0INVAR";
/// The version of the form.
const VERSION: u64 = 9;
/// That of a module without samplers that must be of normalized coordinates, whose kernels count on zeros in threadgroup
/// memory.
const VERSION_WITH_UNINITIALISED_READS: u64 = 8;
/// That of a module with imageblocks whose kernels do not count on zeros in threadgroup memory.
const VERSION_WITH_IMAGEBLOCKS: u64 = 7;
/// That of a module without these, with bindings.
const VERSION_WITH_BINDINGS: u64 = 6;
/// That of a module without bindings, with textures.
const VERSION_WITH_TEXTURES: u64 = 5;
/// That of a module without textures, with collectives over the active threads.
const VERSION_WITH_ACTIVE: u64 = 4;
/// That of a module without either.
const VERSION_WITH_REQUIRES: u64 = 3;
/// That of a module whose kernels require nothing, either.
const VERSION_WITHOUT_REQUIRES: u64 = 2;

/// Why bytes are not a module: where, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset of the first byte that could not be read; where all could be, but say what cannot be,
    /// the end of the list or kernel that says so.
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

/// A kernel as it is written: its blocks in a list, each before those that its instructions hold.
#[derive(Serialize, Deserialize)]
struct KernelForm<'a> {
    name: Arc<str>,
    params: Cow<'a, [Param]>,
    threadgroup_size: Option<[u32; 3]>,
    simdgroup_size: Option<u32>,
    float_mode: FloatMode,
    allow_out_of_bounds_loads: bool,
    allow_out_of_bounds_stores: bool,
    allocs: Cow<'a, [Alloc]>,
    values: Cow<'a, [ValueInfo]>,
    blocks: Vec<Cow<'a, Region>>,
    span: Span,
}

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
    with_room(PASSES_BYTES, || encoded(module))
}

fn encoded(module: &Module) -> Vec<u8> {
    let Module {
        sources,
        calls,
        structs,
        function_constants,
        constants,
        kernels,
    } = module;
    let mut out = MAGIC.to_vec();
    let requires = kernels.iter().any(|k| !k.requires.is_empty());
    let active = kernels.iter().any(|k| k.active_collectives);
    let bound = |k: &Kernel| k.params.iter().any(|p| p.binding.is_some());
    let version = if kernels.iter().any(Kernel::has_normalized_params) {
        VERSION
    } else if kernels.iter().any(|k| k.allow_uninitialised_reads) {
        VERSION_WITH_UNINITIALISED_READS
    } else if kernels.iter().any(Kernel::has_imageblocks) {
        VERSION_WITH_IMAGEBLOCKS
    } else if kernels.iter().any(bound) {
        VERSION_WITH_BINDINGS
    } else if kernels.iter().any(Kernel::has_textures) {
        VERSION_WITH_TEXTURES
    } else if active {
        VERSION_WITH_ACTIVE
    } else if requires {
        VERSION_WITH_REQUIRES
    } else {
        VERSION_WITHOUT_REQUIRES
    };
    write(&mut out, &version);
    write(&mut out, sources);
    write(&mut out, calls);
    write(&mut out, structs);
    write(&mut out, function_constants);
    write(&mut out, constants);
    write(&mut out, &kernels.len());
    for kernel in kernels {
        let kernel = canonical(kernel);
        let mut blocks = Vec::new();
        list_blocks(&kernel.body, &mut blocks);
        let form = KernelForm {
            name: kernel.name.clone(),
            params: Cow::Borrowed(&kernel.params),
            threadgroup_size: kernel.threadgroup_size,
            simdgroup_size: kernel.simdgroup_size,
            float_mode: kernel.float_mode,
            allow_out_of_bounds_loads: kernel.allow_out_of_bounds_loads,
            allow_out_of_bounds_stores: kernel.allow_out_of_bounds_stores,
            allocs: Cow::Borrowed(&kernel.allocs),
            values: Cow::Borrowed(&kernel.values),
            blocks,
            span: kernel.span,
        };
        write(&mut out, &form);
        if version >= VERSION_WITH_REQUIRES {
            write(&mut out, &kernel.requires);
        }
        if version >= VERSION_WITH_ACTIVE {
            write(&mut out, &kernel.active_collectives);
        }
        if version >= VERSION_WITH_BINDINGS {
            let bindings: Vec<Option<Binding>> = kernel.params.iter().map(|p| p.binding).collect();
            write(&mut out, &bindings);
        }
        if version >= VERSION_WITH_UNINITIALISED_READS {
            write(&mut out, &kernel.allow_uninitialised_reads);
        }
    }
    out
}

/// A module as bytes without spans, sources and calls: the same for modules that differ only in
/// where they were written, as the key of a cache must be.
pub fn encode_for_key(module: &Module) -> Vec<u8> {
    encode(&module.without_spans())
}

fn write(out: &mut Vec<u8>, part: &impl Serialize) {
    let written = postcard::to_extend(part, std::mem::take(out));
    *out = written.expect("lists know their lengths, and nothing else can fail");
}

/// A block and all within it, in the order of the form.
fn list_blocks<'a>(region: &'a Region, out: &mut Vec<Cow<'a, Region>>) {
    out.push(Cow::Borrowed(region));
    for inst in &region.insts {
        for inner in inst.kind.regions() {
            list_blocks(inner, out);
        }
    }
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

/// The module that bytes encode.
///
/// # Errors
/// The first thing that is wrong, and where. Bytes that say more than a module does, or the same in
/// another way than [`encode`], are wrong too.
pub fn decode(bytes: &[u8]) -> Result<Module, DecodeError> {
    with_room(PASSES_BYTES, || decoded(bytes))
}

fn decoded(bytes: &[u8]) -> Result<Module, DecodeError> {
    let mut reader = Reader { bytes, at: 0 };
    let module = reader.module().map_err(|message| DecodeError {
        offset: reader.at,
        message,
    })?;
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

/// What was read, or what is wrong with it.
type Checked<T> = Result<T, String>;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next part, which is left as it is said to be.
    fn part<T: Deserialize<'a>>(&mut self) -> Checked<T> {
        let mut from = postcard::Deserializer::from_bytes(&self.bytes[self.at..]);
        let part = T::deserialize(&mut from);
        // A slice is given back as far as it was not read.
        let rest = from.finalize().unwrap_or_default();
        self.at = self.bytes.len() - rest.len();
        part.map_err(|error| said(&error).to_string())
    }

    fn module(&mut self) -> Checked<Module> {
        let same = |(a, b): &(&u8, &u8)| a == b;
        self.at = self.bytes.iter().zip(MAGIC).take_while(same).count();
        if self.at == self.bytes.len() {
            return Err("the bytes end early".to_string());
        }
        if self.at < MAGIC.len() {
            return Err("it does not begin as modules do".to_string());
        }
        let start = self.at;
        let version: u64 = self.part()?;
        if !(VERSION_WITHOUT_REQUIRES..=VERSION).contains(&version) {
            self.at = start;
            return Err(format!(
                "it is of version {version} of the form, this program reads versions \
                 {VERSION_WITHOUT_REQUIRES} to {VERSION}: write it again from its text, with `invar \
                 print --binary`"
            ));
        }
        let mut module = Module {
            sources: self.part()?,
            calls: self.part()?,
            ..Module::default()
        };
        // A call leads further out to earlier ones only, so that every chain ends.
        for (earlier, call) in module.calls.iter().enumerate() {
            check_span(&module, earlier, &call.site)?;
        }
        let calls = module.calls.len();
        module.structs = self.part()?;
        for (earlier, def) in module.structs.iter().enumerate() {
            for (_, element) in &def.fields {
                check_element(element, earlier)?;
            }
            check_span(&module, calls, &def.span)?;
        }
        module.function_constants = self.part()?;
        for constant in &module.function_constants {
            constant.default.iter().try_for_each(check_constant)?;
            check_span(&module, calls, &constant.span)?;
        }
        module.constants = self.part()?;
        for constant in &module.constants {
            check_element(&constant.element, module.structs.len())?;
            constant.values.iter().try_for_each(check_constant)?;
            check_span(&module, calls, &constant.span)?;
        }
        let count: u64 = self.part()?;
        for _ in 0..count {
            let mut kernel = kernel(self.part()?)?;
            if version >= VERSION_WITH_REQUIRES {
                kernel.requires = self.part()?;
            }
            if version >= VERSION_WITH_ACTIVE {
                kernel.active_collectives = self.part()?;
            }
            if version >= VERSION_WITH_BINDINGS {
                let bindings: Vec<Option<Binding>> = self.part()?;
                if bindings.len() != kernel.params.len() {
                    return Err(format!(
                        "kernel `{}` has {} parameters and bindings for {}",
                        kernel.name.escape_debug(),
                        kernel.params.len(),
                        bindings.len()
                    ));
                }
                for (param, binding) in kernel.params.iter_mut().zip(bindings) {
                    param.binding = binding;
                }
            }
            if version >= VERSION_WITH_UNINITIALISED_READS {
                kernel.allow_uninitialised_reads = self.part()?;
            }
            let mut walk = Walk {
                module: &module,
                kernel: &kernel,
                values: 0,
                allocs: 0,
            };
            walk.kernel()
                .map_err(|what| format!("kernel `{}`: {what}", kernel.name.escape_debug()))?;
            module.kernels.push(kernel);
        }
        if self.at < self.bytes.len() {
            return Err("the module ends here, but bytes follow".to_string());
        }
        Ok(module)
    }
}

/// Why a part could not be read.
fn said(error: &postcard::Error) -> &'static str {
    match error {
        postcard::Error::DeserializeUnexpectedEnd => "the bytes end early",
        postcard::Error::DeserializeBadVarint => "a number has more bits than it may",
        postcard::Error::DeserializeBadUtf8 => "text that is not UTF-8",
        postcard::Error::DeserializeBadBool | postcard::Error::DeserializeBadOption => {
            "a byte that is neither 0 nor 1, where only those can stand"
        }
        _unknown_name_or_variant => {
            "this version of Invar knows no operation, type or instruction like the one that ends here"
        }
    }
}

/// The kernel of a form.
fn kernel(form: KernelForm<'_>) -> Checked<Kernel> {
    let mut blocks = form.blocks.into_iter();
    let missing = "a kernel without a body";
    let mut body = blocks.next().ok_or(missing)?.into_owned();
    nest(&mut body, &mut blocks, 0)?;
    if blocks.next().is_some() {
        return Err("a block that no instruction holds".to_string());
    }
    Ok(Kernel {
        name: form.name,
        params: form.params.into_owned(),
        threadgroup_size: form.threadgroup_size,
        simdgroup_size: form.simdgroup_size,
        float_mode: form.float_mode,
        allow_out_of_bounds_loads: form.allow_out_of_bounds_loads,
        allow_out_of_bounds_stores: form.allow_out_of_bounds_stores,
        allow_uninitialised_reads: false,
        active_collectives: false,
        requires: Vec::new(),
        allocs: form.allocs.into_owned(),
        values: form.values.into_owned(),
        body,
        span: form.span,
    })
}

/// Gives the instructions of a block theirs.
fn nest<'a>(
    region: &mut Region,
    blocks: &mut dyn Iterator<Item = Cow<'a, Region>>,
    depth: usize,
) -> Checked<()> {
    for inst in &mut region.insts {
        for inner in inst.kind.regions_mut() {
            if depth == MAX_NESTING {
                return Err(format!("blocks nest at most {MAX_NESTING} deep"));
            }
            let missing = "an instruction whose block is missing";
            *inner = blocks.next().ok_or(missing)?.into_owned();
            nest(inner, blocks, depth + 1)?;
        }
    }
    Ok(())
}

/// An id must be below a bound.
fn check_id(what: &str, id: u32, bound: usize) -> Checked<()> {
    if (id as usize) < bound {
        Ok(())
    } else {
        Err(format!("there is no {what} {id} here, only {bound}"))
    }
}

/// A span that came through one of the first `calls` calls, if through any.
fn check_span(module: &Module, calls: usize, span: &Span) -> Checked<()> {
    if let Some(source) = span.source {
        check_id("source", source.0, module.sources.len())?;
    }
    match span.call {
        Some(call) => check_id("call", call.0, calls),
        None => Ok(()),
    }
}

fn check_type(ty: Type) -> Checked<()> {
    ty.defect().map_or(Ok(()), Err)
}

fn check_element(mut element: &ElementType, structs: usize) -> Checked<()> {
    loop {
        match element {
            ElementType::Array(inner, _) => element = inner,
            ElementType::Struct(id) => return check_id("struct", id.0, structs),
            ElementType::Value(ty) => return check_type(*ty),
        }
    }
}

fn check_constant(constant: &Const) -> Checked<()> {
    let scalar = constant.scalar;
    if constant.bits > u64::MAX >> (64 - scalar.bits()) {
        return Err(format!("a constant has more bits than {scalar}"));
    }
    Ok(())
}

fn check_name(name: &str) -> Checked<()> {
    if name.is_empty() {
        return Err("a name is empty".to_string());
    }
    Ok(())
}

/// Goes through a kernel and counts what it defines. That values and arrays have the numbers of
/// their definitions is seen when the module is encoded again.
struct Walk<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    values: usize,
    allocs: usize,
}

impl Walk<'_> {
    fn kernel(&mut self) -> Checked<()> {
        let structs = self.module.structs.len();
        for value in &self.kernel.values {
            check_type(value.ty)?;
            value.name.as_deref().map_or(Ok(()), check_name)?;
        }
        for alloc in &self.kernel.allocs {
            check_name(&alloc.name)?;
            check_element(&alloc.element, structs)?;
        }
        for param in &self.kernel.params {
            check_name(&param.name)?;
            self.span(&param.span)?;
            match &param.kind {
                ParamKind::Buffer { element, .. }
                | ParamKind::Constant { element }
                | ParamKind::Threadgroup { element } => check_element(element, structs)?,
                ParamKind::Texture(_) | ParamKind::Sampler => {}
                ParamKind::Scalar { value } => {
                    let info = self.kernel.values.get(value.0 as usize);
                    if info.and_then(|info| info.name.as_ref()) != Some(&param.name) {
                        return Err(format!(
                            "parameter `{}` and its value have different names",
                            param.name.escape_debug()
                        ));
                    }
                    self.values += 1;
                }
            }
        }
        for requirement in &self.kernel.requires {
            self.requirement(requirement)?;
        }
        self.region(&self.kernel.body)?;
        self.span(&self.kernel.span)
    }

    fn requirement(&self, requirement: &Requirement) -> Checked<()> {
        let params = self.kernel.params.len();
        self.span(&requirement.span)?;
        match &requirement.required {
            Required::Holds(_) => {}
            Required::Each { name, buffer, .. } => {
                check_name(name)?;
                check_id("parameter", *buffer, params)?;
            }
            Required::Ascending { buffer } => check_id("parameter", *buffer, params)?,
        }
        let Some(comparison) = requirement.comparison() else {
            return Ok(());
        };
        for number in comparison.numbers() {
            match number {
                LaunchNumber::Argument(id)
                | LaunchNumber::Length(id)
                | LaunchNumber::Texels(id, _)
                | LaunchNumber::Levels(id)
                | LaunchNumber::Field(id, _) => {
                    check_id("parameter", id, params)?;
                }
                LaunchNumber::Constant(id) => {
                    let count = self.module.function_constants.len();
                    check_id("function constant", id, count)?;
                }
                LaunchNumber::Grid(_)
                | LaunchNumber::Groups(_)
                | LaunchNumber::Threadgroup(_)
                | LaunchNumber::Element => {}
            }
        }
        Ok(())
    }

    fn span(&self, span: &Span) -> Checked<()> {
        check_span(self.module, self.module.calls.len(), span)
    }

    fn region(&mut self, region: &Region) -> Checked<()> {
        self.values += region.params.len();
        region.insts.iter().try_for_each(|inst| self.inst(inst))
    }

    fn inst(&mut self, inst: &Inst) -> Checked<()> {
        let mut found = Ok(());
        let mut check = |checked: &dyn Fn() -> Checked<()>| {
            if found.is_ok() {
                found = checked();
            }
        };
        inst.kind
            .for_each_use(|v| check(&|| check_id("value", v.0, self.values)));
        inst.kind.for_each_memory(|m| check(&|| self.memory(m)));
        found?;
        // What they hold beside values, objects and blocks.
        if let InstKind::Const(constant) = &inst.kind {
            check_constant(constant)?;
        } else if let InstKind::FunctionConstant(id) = inst.kind {
            let count = self.module.function_constants.len();
            check_id("function constant", id, count)?;
        } else if let InstKind::Op {
            imm: Imm::Type(ty), ..
        } = inst.kind
        {
            check_type(ty)?;
        } else if let InstKind::Barrier { spaces, .. } = inst.kind {
            let all = Spaces::NAMES.iter().map(|(space, _)| *space);
            if !all.fold(Spaces::NONE, Spaces::with).contains(spaces) {
                return Err(format!("there is no set of spaces number {}", spaces.0));
            }
        } else if let InstKind::Alloc(_) = inst.kind {
            self.allocs += 1;
        }
        self.span(&inst.span)?;
        self.values += inst.results.len();
        let mut regions = inst.kind.regions().into_iter();
        regions.try_for_each(|region| self.region(region))
    }

    fn memory(&self, memory: Memory) -> Checked<()> {
        match memory {
            Memory::Param(id) => {
                check_id("parameter", id, self.kernel.params.len())?;
                match self.kernel.params[id as usize].kind {
                    ParamKind::Scalar { .. } => {
                        Err(format!("parameter {id} is a value, not memory"))
                    }
                    ParamKind::Buffer { .. }
                    | ParamKind::Constant { .. }
                    | ParamKind::Threadgroup { .. }
                    | ParamKind::Texture(_)
                    | ParamKind::Sampler => Ok(()),
                }
            }
            Memory::Alloc(id) => check_id("array", id, self.allocs),
            Memory::Constant(id) => check_id("constant", id, self.module.constants.len()),
        }
    }
}
