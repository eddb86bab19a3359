//! What a run is given: the grid, the arguments, the options; and the checks before it starts.

use std::time::Duration;

use invar_ir::texture::component;
use invar_ir::{
    Access, Const, ConstantKey, Diagnostic, Diagnostics, ElementType, InstKind, Kernel, Memory,
    Module, Param, ParamKind, Rule, SamplerSource, Scalar, TextureAccess, TextureFunction,
    TextureType, Type,
};
use invar_texture::{Coordinates, PixelFormat, Sampler, TextureShape};

/// The size of a grid (X1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// In threads; threadgroups at the far edges may be smaller.
    Threads([u32; 3]),
    /// In full threadgroups.
    Threadgroups([u32; 3]),
}

/// How many threads or threadgroups there are in each dimension; from a number, or an array of two or
/// three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent([u32; 3]);

impl From<u32> for Extent {
    fn from(x: u32) -> Extent {
        Extent([x, 1, 1])
    }
}

impl From<[u32; 2]> for Extent {
    fn from([x, y]: [u32; 2]) -> Extent {
        Extent([x, y, 1])
    }
}

impl From<[u32; 3]> for Extent {
    fn from(size: [u32; 3]) -> Extent {
        Extent(size)
    }
}

impl Grid {
    /// A grid in threads.
    ///
    /// ```
    /// use invar_interp::Grid;
    ///
    /// assert_eq!(Grid::threads(1 << 20), Grid::Threads([1 << 20, 1, 1]));
    /// assert_eq!(Grid::threads([640, 480]), Grid::Threads([640, 480, 1]));
    /// ```
    pub fn threads(size: impl Into<Extent>) -> Grid {
        Grid::Threads(size.into().0)
    }

    /// A grid in full threadgroups.
    pub fn threadgroups(size: impl Into<Extent>) -> Grid {
        Grid::Threadgroups(size.into().0)
    }

    /// The same in threadgroups of that size, in threads.
    ///
    /// ```
    /// use invar_interp::{Dispatch, Grid};
    ///
    /// assert_eq!(Grid::threads(1000).threadgroup(64), Dispatch::linear(1000, 64));
    /// ```
    pub fn threadgroup(self, size: impl Into<Extent>) -> Dispatch {
        Dispatch {
            grid: self,
            threadgroup: size.into().0,
        }
    }
}

/// What to run a kernel on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// How many threads. With a 0 nothing runs.
    pub grid: Grid,
    /// The size of a full threadgroup, in threads; no component may be 0.
    pub threadgroup: [u32; 3],
}

impl Dispatch {
    /// A grid of `threads` threads in one dimension, in threadgroups of `threadgroup`.
    pub fn linear(threads: u32, threadgroup: u32) -> Dispatch {
        Dispatch {
            grid: Grid::Threads([threads, 1, 1]),
            threadgroup: [threadgroup, 1, 1],
        }
    }
}

/// An argument, in the place of its parameter.
#[derive(Debug)]
pub enum Arg<'a> {
    /// The memory of a buffer, used in place. A remainder of less than one element is unreachable.
    Buffer(&'a mut [u8]),
    /// Memory for a buffer that the kernel only reads; the same may stand for several (S3).
    ReadBuffer(&'a [u8]),
    /// A buffer that the arguments own; after the run it holds what the kernel left.
    OwnedBuffer(Vec<u8>),
    /// The components of a `Scalar` parameter: one for a scalar, in order for a vector, by columns
    /// for a matrix.
    Scalar(Vec<Const>),
    /// The length in elements of a threadgroup parameter.
    ThreadgroupLength(u64),
    /// A texture of that format and size in the memory of a buffer: an argument that is one.
    Texture(TextureShape, Box<Arg<'a>>),
}

impl Arg<'_> {
    /// A scalar.
    pub fn scalar(value: impl Into<Const>) -> Arg<'static> {
        Arg::Scalar(vec![value.into()])
    }

    /// A buffer of zeros (I1).
    pub fn zeros(size_bytes: usize) -> Arg<'static> {
        Arg::OwnedBuffer(vec![0; size_bytes])
    }

    /// What a buffer holds; empty for other arguments.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Arg::Buffer(bytes) => bytes,
            Arg::ReadBuffer(bytes) => bytes,
            Arg::OwnedBuffer(bytes) => bytes,
            Arg::Texture(_, memory) => memory.bytes(),
            Arg::Scalar(_) | Arg::ThreadgroupLength(_) => &[],
        }
    }

    /// The same in memory of its own.
    pub fn copy(&self) -> Arg<'static> {
        match self {
            Arg::Scalar(components) => Arg::Scalar(components.clone()),
            Arg::ThreadgroupLength(length) => Arg::ThreadgroupLength(*length),
            Arg::Texture(shape, memory) => Arg::Texture(*shape, Box::new(memory.copy())),
            Arg::Buffer(_) | Arg::ReadBuffer(_) | Arg::OwnedBuffer(_) => {
                Arg::OwnedBuffer(self.bytes().to_vec())
            }
        }
    }

    /// What it is once a run has left these bytes in its memory.
    pub fn holding(&self, bytes: Vec<u8>) -> Arg<'static> {
        match self {
            Arg::Texture(shape, _) => Arg::Texture(*shape, Box::new(Arg::OwnedBuffer(bytes))),
            Arg::Buffer(_)
            | Arg::ReadBuffer(_)
            | Arg::OwnedBuffer(_)
            | Arg::Scalar(_)
            | Arg::ThreadgroupLength(_) => Arg::OwnedBuffer(bytes),
        }
    }

    /// What a buffer holds, to change it; empty for what cannot be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Arg::Buffer(bytes) => bytes,
            Arg::OwnedBuffer(bytes) => bytes,
            Arg::Texture(_, memory) => memory.bytes_mut(),
            Arg::ReadBuffer(_) | Arg::Scalar(_) | Arg::ThreadgroupLength(_) => &mut [],
        }
    }
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Chooses the order of threadgroups, simdgroups, lanes and branch sides, and when async
    /// copies arrive; 0 is the natural order.
    pub seed: u64,
    /// Lanes of a simdgroup: a power of two from 4 to 128. `None` takes the kernel's own, else 32.
    pub simdgroup_size: Option<u32>,
    /// The most instructions to run, counted for each simdgroup; then `step-limit`.
    pub step_limit: u64,
    /// The most time to take; then `deadline-exceeded`.
    pub time_limit: Option<Duration>,
    /// Values of function constants; the others have their defaults.
    pub constants: Vec<(ConstantKey, Const)>,
    /// The most threadgroup memory a threadgroup may have (S4), in bytes by L3's layout.
    pub threadgroup_memory_bytes: u64,
    /// The most threads a threadgroup may have (S4).
    pub threads_per_threadgroup: u32,
    /// The most bytes that threadgroups which wait for each other through atomics may take
    /// together; the machine starts no further one beyond it.
    pub resident_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            simdgroup_size: None,
            step_limit: 100_000_000_000,
            time_limit: None,
            constants: Vec::new(),
            threadgroup_memory_bytes: 64 << 10,
            threads_per_threadgroup: 1024,
            resident_bytes: 1 << 30,
        }
    }
}

/// What a finished run tells beside its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Instructions run, counted for each simdgroup.
    pub steps: u64,
    /// Threadgroups run.
    pub threadgroups: u64,
    /// Lanes of a simdgroup.
    pub simdgroup_size: u32,
}

/// The sizes of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridSizes {
    /// Threads in each dimension.
    pub threads: [u32; 3],
    /// Threads of a full threadgroup in each dimension.
    pub threadgroup: [u32; 3],
    /// Threadgroups in each dimension.
    pub threadgroups: [u32; 3],
}

impl GridSizes {
    /// The position of threadgroup number `index`.
    pub fn position(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.threadgroups.map(u64::from);
        [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / x / y) as u32,
        ]
    }

    /// The size of the threadgroup at a position: less than the full one at a far edge.
    pub fn size(&self, position: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|d| {
            let start = position[d] * self.threadgroup[d];
            self.threadgroup[d].min(self.threads[d] - start)
        })
    }

    /// Where thread number `thread` of a threadgroup of size `size` stands in it (X2).
    pub fn thread_position(size: [u32; 3], thread: u32) -> [u32; 3] {
        [
            thread % size[0],
            thread / size[0] % size[1],
            thread / size[0] / size[1],
        ]
    }

    /// The position in the grid of a thread of the threadgroup at a position, by its own there.
    pub fn thread(&self, threadgroup: [u32; 3], thread: [u32; 3]) -> [u32; 3] {
        // A lane that is missing may be past any grid.
        std::array::from_fn(|d| (threadgroup[d] * self.threadgroup[d]).wrapping_add(thread[d]))
    }

    /// How many threadgroups there are.
    pub fn count(&self) -> u128 {
        self.threadgroups.iter().map(|n| u128::from(*n)).product()
    }
}

/// What the checks of a dispatch need to know of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// Memory for a buffer.
    Buffer {
        /// Whether it may be written.
        writable: bool,
        /// What it holds, where that is known.
        holds: Option<Scalar>,
        /// How many bytes it has.
        size_bytes: u64,
    },
    /// The components of a `Scalar` parameter.
    Scalar(&'a [Const]),
    /// The length in elements of a threadgroup parameter.
    ThreadgroupLength(u64),
    /// A texture.
    Texture {
        /// Whether it may be written.
        writable: bool,
        /// Its format and size.
        shape: TextureShape,
        /// How many bytes its memory has.
        size_bytes: u64,
    },
}

impl<'a> From<&'a Arg<'_>> for Given<'a> {
    fn from(arg: &'a Arg<'_>) -> Given<'a> {
        let buffer = |writable| Given::Buffer {
            writable,
            holds: None,
            size_bytes: arg.bytes().len() as u64,
        };
        match arg {
            Arg::Buffer(_) | Arg::OwnedBuffer(_) => buffer(true),
            Arg::ReadBuffer(_) => buffer(false),
            Arg::Scalar(components) => Given::Scalar(components),
            Arg::ThreadgroupLength(length) => Given::ThreadgroupLength(*length),
            Arg::Texture(shape, memory) => Given::Texture {
                writable: !matches!(**memory, Arg::ReadBuffer(_)),
                shape: *shape,
                size_bytes: memory.bytes().len() as u64,
            },
        }
    }
}

pub(crate) fn refuse<T>(rule: Rule, kernel: &Kernel, message: String) -> Result<T, Diagnostics> {
    let diagnostic = Diagnostic::error(rule, kernel.span, message);
    Err(Diagnostics(vec![diagnostic]))
}

/// The grid of a dispatch, checked against X1, the kernel and the most threads of a threadgroup (S4).
///
/// # Errors
/// `invalid-dispatch`, saying what does not fit.
pub fn check_grid(
    kernel: &Kernel,
    dispatch: &Dispatch,
    threads_per_threadgroup: u32,
) -> Result<GridSizes, Diagnostics> {
    let refuse = |message: String| refuse(Rule::InvalidDispatch, kernel, message);
    let name = &kernel.name;
    let group = dispatch.threadgroup;
    let text = |s: [u32; 3]| format!("{}x{}x{}", s[0], s[1], s[2]);
    if group.contains(&0) {
        return refuse(format!(
            "the threadgroup size {} of `{name}` has a 0: give each dimension at least 1",
            text(group)
        ));
    }
    if let Some(required) = kernel.threadgroup_size
        && required != group
    {
        return refuse(format!(
            "kernel `{name}` requires threadgroups of {}, not {}",
            text(required),
            text(group)
        ));
    }
    let threads: u128 = group.iter().map(|n| u128::from(*n)).product();
    let limit = threads_per_threadgroup;
    if threads > u128::from(limit) {
        return refuse(format!(
            "a threadgroup of {} has {threads} threads, more than the limit of {limit}",
            text(group)
        ));
    }
    let threads = match dispatch.grid {
        Grid::Threads(threads) => threads,
        Grid::Threadgroups(groups) => {
            let mut threads = [0; 3];
            for d in 0..3 {
                let Some(product) = groups[d].checked_mul(group[d]) else {
                    return refuse(format!(
                        "a grid of {} threadgroups of {} has more threads in a dimension than \
                         4294967295: use a smaller grid",
                        text(groups),
                        text(group)
                    ));
                };
                threads[d] = product;
            }
            threads
        }
    };
    let grid = GridSizes {
        threads,
        threadgroup: group,
        threadgroups: std::array::from_fn(|d| threads[d].div_ceil(group[d])),
    };
    if grid.count() > u128::from(u64::MAX >> 1) {
        return refuse(format!(
            "a grid of {} threads in threadgroups of {} has more threadgroups than can be numbered",
            text(threads),
            text(group)
        ));
    }
    Ok(grid)
}

/// The simdgroup size to use.
pub(crate) fn check_simdgroup_size(
    kernel: &Kernel,
    wanted: Option<u32>,
) -> Result<u32, Diagnostics> {
    let size = match (kernel.simdgroup_size, wanted) {
        (Some(required), Some(wanted)) if required != wanted => {
            return refuse(
                Rule::InvalidDispatch,
                kernel,
                format!(
                    "kernel `{}` requires simdgroups of {required} threads, not {wanted}",
                    kernel.name
                ),
            );
        }
        (Some(size), _) | (None, Some(size)) => size,
        (None, None) => 32,
    };
    if size.is_power_of_two() && (4..=128).contains(&size) {
        return Ok(size);
    }
    refuse(
        Rule::InvalidDispatch,
        kernel,
        format!(
            "the reference machine has simdgroups of 4, 8, 16, 32, 64 or 128 threads, not {size}"
        ),
    )
}

/// Checks the arguments against the parameters and the limit of threadgroup memory (S4).
///
/// # Errors
/// `invalid-argument`, naming the parameter.
pub fn check_arguments<'a>(
    module: &Module,
    kernel: &Kernel,
    args: impl ExactSizeIterator<Item = Given<'a>> + Clone,
    threadgroup_limit_bytes: u64,
) -> Result<(), Diagnostics> {
    let refuse = |message: String| refuse(Rule::InvalidArgument, kernel, message);
    let name = &kernel.name;
    if args.len() != kernel.params.len() {
        let names: Vec<String> = kernel
            .params
            .iter()
            .map(|p| format!("`{}`", p.name))
            .collect();
        return refuse(format!(
            "kernel `{name}` takes {} arguments ({}), found {}",
            kernel.params.len(),
            names.join(", "),
            args.len()
        ));
    }
    for (param, arg) in kernel.params.iter().zip(args.clone()) {
        if let Err(message) = check_argument(module, param, arg, kernel) {
            return refuse(format!("argument `{}` of `{name}` {message}", param.name));
        }
    }
    if let Some(message) = unfit_sampler(kernel, args.clone()) {
        return refuse(message);
    }
    let bytes = threadgroup_bytes(module, kernel, args);
    if bytes > u128::from(threadgroup_limit_bytes) {
        return refuse(format!(
            "kernel `{name}` needs {bytes} bytes of threadgroup memory, more than the limit of \
             {threadgroup_limit_bytes}"
        ));
    }
    Ok(())
}

/// Bytes of threadgroup memory: the kernel's arrays and the parameters, by L3.
fn threadgroup_bytes<'a>(
    module: &Module,
    kernel: &Kernel,
    args: impl Iterator<Item = Given<'a>>,
) -> u128 {
    let size = |e: &ElementType| e.extent(&module.structs).map_or(0, |e| e.size_bytes);
    let arrays = kernel
        .allocs
        .iter()
        .filter(|a| a.space.is_of_threadgroup())
        .map(|a| u128::from(size(&a.element)) * u128::from(a.length));
    let params = kernel
        .params
        .iter()
        .zip(args)
        .map(|(param, arg)| match (&param.kind, arg) {
            (ParamKind::Threadgroup { element }, Given::ThreadgroupLength(n)) => {
                u128::from(size(element)) * u128::from(n)
            }
            _ => 0,
        });
    arrays.chain(params).sum()
}

fn check_argument(
    module: &Module,
    param: &Param,
    arg: Given<'_>,
    kernel: &Kernel,
) -> Result<(), String> {
    let is = match arg {
        Given::Buffer { .. } => "a buffer",
        Given::Scalar(_) => "a scalar",
        Given::ThreadgroupLength(_) => "a threadgroup length",
        Given::Texture { .. } => "a texture",
    };
    match (&param.kind, arg) {
        (ParamKind::Texture(texture), Given::Texture { shape, .. }) => {
            check_texture(*texture, arg)?;
            check_atomics(kernel, param, *texture, shape.format)
        }
        (ParamKind::Texture(texture), _) => Err(format!("is {is}, expected a {texture}")),
        (ParamKind::Sampler, given) => match sampler_of(given) {
            Some(_) => Ok(()),
            None => Err(format!("is {is}, expected a sampler")),
        },
        (
            ParamKind::Buffer { access, .. },
            Given::Buffer {
                writable: false, ..
            },
        ) if *access != Access::Read => {
            Err("is read-only memory, but the kernel writes it: pass it as writable".to_string())
        }
        (
            ParamKind::Buffer { element, .. } | ParamKind::Constant { element },
            Given::Buffer { holds, .. },
        ) => match holds {
            Some(held) if !can_hold(element, held) => Err(format!(
                "is a buffer of {held}, expected a buffer of {}",
                element_name(module, element)
            )),
            Some(_) | None => Ok(()),
        },
        (ParamKind::Threadgroup { .. }, Given::ThreadgroupLength(_)) => Ok(()),
        (ParamKind::Scalar { value }, Given::Scalar(components)) => {
            check_components(kernel.ty(*value), components)
        }
        (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }, _) => Err(format!(
            "is {is}, expected a buffer of {}",
            element_name(module, element)
        )),
        (ParamKind::Threadgroup { element }, _) => Err(format!(
            "is {is}, expected a length in elements of {}",
            element_name(module, element)
        )),
        (ParamKind::Scalar { value }, _) => Err(format!(
            "is {is}, expected a value of type {}",
            kernel.ty(*value)
        )),
    }
}

/// The sampler that an argument is the code of.
fn sampler_of(given: Given<'_>) -> Option<Sampler> {
    match given {
        Given::Scalar(code) => {
            let code = <[Const; 3]>::try_from(code).ok()?;
            Sampler::from_code(code.map(|part| part.bits as u32))
        }
        Given::Buffer { .. } | Given::ThreadgroupLength(_) | Given::Texture { .. } => None,
    }
}

/// Why a sampler does not fit a texture that a kernel samples with it, if one does not: integers are not mixed, a
/// comparison is by a sampler that compares, and directions and gradients are of normalized coordinates.
fn unfit_sampler<'a>(
    kernel: &Kernel,
    args: impl Iterator<Item = Given<'a>> + Clone,
) -> Option<String> {
    // Instructions are gone through at each dispatch only for who gives samplers.
    let mut params = kernel.params.iter();
    if !params.any(|param| param.kind == ParamKind::Sampler) {
        return None;
    }
    let mut found = None;
    kernel.for_each_inst(&mut |inst| {
        let InstKind::Texture {
            texture: texture @ Memory::Param(number),
            function,
            ..
        } = inst.kind
        else {
            return;
        };
        let param = function.sampler().and_then(SamplerSource::param);
        let Some(Memory::Param(place)) = param else {
            return;
        };
        let sampler = args.clone().nth(place as usize).and_then(sampler_of);
        if function.compares() && sampler.is_some_and(|s| s.compare.is_none()) {
            found.get_or_insert_with(|| {
                format!(
                    "argument `{}` of `{}` is a sampler that does not compare, and the kernel compares with it: \
                     say how, as in sampler(compare_less)",
                    kernel.params[place as usize].name, kernel.name
                )
            });
        }
        let is_sample = matches!(function, TextureFunction::Sample(_));
        let ty = kernel.texture(texture);
        if let (Some(sampler), Some(ty)) = (sampler, ty)
            && sampler.coordinates == Coordinates::Pixel
            && function.needs_normalized(ty.dimension)
        {
            let why = match ty.dimension.is_cube() {
                true => "in a direction",
                false => "by normalized coordinates, as gradients are",
            };
            found.get_or_insert_with(|| {
                format!(
                    "argument `{}` of `{}` is a sampler of pixel coordinates, and the kernel samples `{}` with it {why}: \
                     leave out `pixel`",
                    kernel.params[place as usize].name,
                    kernel.name,
                    kernel.params[number as usize].name,
                )
            });
        }
        if let (Some(sampler), Some(ty)) = (sampler, ty)
            && is_sample
            && sampler.mixes()
            && !ty.component.is_float()
        {
            found.get_or_insert_with(|| {
                format!(
                    "argument `{}` of `{}` is a linear sampler, and the kernel samples `{}` with it, whose \
                     components are {}: integers are sampled `nearest`",
                    kernel.params[place as usize].name,
                    kernel.name,
                    kernel.params[number as usize].name,
                    ty.component
                )
            });
        }
    });
    found
}

/// Atomics act on texels that are one integer of 32 bits.
fn check_atomics(
    kernel: &Kernel,
    param: &Param,
    texture: TextureType,
    format: PixelFormat,
) -> Result<(), String> {
    let has_them = matches!(format, PixelFormat::R32Uint | PixelFormat::R32Sint);
    if has_them || texture.access != TextureAccess::ReadWrite {
        return Ok(());
    }
    let mut acts = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Atomic { place, .. } = &inst.kind
            && let Memory::Param(number) = place.memory
        {
            acts |= kernel.params[number as usize].name == param.name;
        }
    });
    match acts {
        true => Err(format!(
            "is a texture of {}, and the kernel's atomics act on texels of r32uint or r32sint",
            format.name()
        )),
        false => Ok(()),
    }
}

/// Whether a texture fits a parameter.
fn check_texture(texture: TextureType, arg: Given<'_>) -> Result<(), String> {
    let Given::Texture {
        writable,
        shape,
        size_bytes,
    } = arg
    else {
        return Ok(());
    };
    let format = shape.format;
    if component(format) != texture.wide_component() {
        return Err(format!(
            "is a texture of {}, which kernels see as {}, expected a {texture}",
            format.name(),
            component(format)
        ));
    }
    if let Some(why) = texture.dimension.refuses(shape) {
        return Err(format!("{why}, expected a {texture}"));
    }
    if texture.is_depth && format.channels() > 1 {
        return Err(format!(
            "is a texture of {}, which has several channels, expected a {texture}",
            format.name()
        ));
    }
    if texture.access.memory().can_write() && !writable {
        return Err(
            "is read-only memory, but the kernel writes it: pass it as writable".to_string(),
        );
    }
    if size_bytes != shape.size_bytes() {
        let levels = match shape.levels {
            1 => String::new(),
            levels => format!(" in {levels} levels"),
        };
        return Err(format!(
            "has {size_bytes} bytes, but {} texture of {}x{}x{}{levels} has {}",
            format.with_article(),
            shape.width,
            shape.height,
            shape.depth,
            shape.size_bytes()
        ));
    }
    Ok(())
}

/// Whether an array of these scalars is an array of such elements: vectors, matrices and arrays of
/// them lie as their scalars do (L3), and bytes serve as booleans.
fn can_hold(element: &ElementType, held: Scalar) -> bool {
    match element {
        ElementType::Value(ty) => match ty.scalar() {
            Some(Scalar::Bool) => matches!(held, Scalar::Bool | Scalar::U8),
            scalar => scalar == Some(held),
        },
        ElementType::Array(element, _) => can_hold(element, held),
        ElementType::Struct(_) => false,
    }
}

fn check_components(ty: Type, components: &[Const]) -> Result<(), String> {
    let scalar = ty.component_scalar();
    if components.len() != ty.component_count() as usize {
        return Err(format!(
            "has {} components, expected the {} of {ty}",
            components.len(),
            ty.component_count()
        ));
    }
    match components.iter().find(|c| c.scalar != scalar) {
        Some(c) => Err(format!("has type {}, expected {scalar}", c.scalar)),
        None => Ok(()),
    }
}

/// How an element type is called in messages.
fn element_name(module: &Module, element: &ElementType) -> String {
    match element {
        ElementType::Value(ty) => ty.to_string(),
        ElementType::Array(element, length) => {
            format!("{}[{length}]", element_name(module, element))
        }
        ElementType::Struct(id) => match module.structs.get(id.0 as usize) {
            Some(def) => format!("@{}", def.name),
            None => "a struct".to_string(),
        },
    }
}
