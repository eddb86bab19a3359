//! Textures: formats and sizes in the memory of buffers; and programs for devices that have none, which compile a
//! kernel for each set of formats and numbers of levels that dispatches give.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use invar_codegen::passes::textures::{self, Form};
use invar_ir::{Const, Module, ParamKind, Rule, verify};
use invar_texture::{PixelFormat, Sampler, TextureShape, fill_levels};

use crate::backend::{Call, CompileOptions, Executable, Ready, Source};
use crate::bytes::ByteBuffer;
use crate::sync::lock;
use crate::task::JobSlot;
use crate::{Arg, Device, Error};

/// A texture: texels of a pixel format in rows, in memory of the host that dispatches use.
///
/// ```
/// use invar_ir::{text, verify};
/// use invar_runtime::{Arg, Device, Dispatch, Grid, PixelFormat, Texture};
///
/// let source = "
///     kernel @grey(%from: texture2d f32 read, %to: texture2d f32 write) {
///         %x = thread_position_in_grid x
///         %y = thread_position_in_grid y
///         %c = texture_read %from[%x, %y]
///         %r = swizzle xxxw %c
///         texture_write %to[%x, %y], %r
///     }";
/// let device = Device::default()?;
/// let program = device.compile(&verify(text::parse("grey.inv", source)?)?, "grey")?;
/// let from = Texture::new(&device, PixelFormat::Rgba8Unorm, 2, 1, &[10, 20, 30, 255, 40, 50, 60, 255])?;
/// let to = Texture::zeroed(&device, PixelFormat::Rgba8Unorm, 2, 1)?;
/// let grid = Grid::threads([2, 1]).threadgroup([8, 8]);
/// device.queue().run(&program, grid, &[Arg::from(&from), Arg::from(&to)])?;
/// assert_eq!(to.read()?, [10, 10, 10, 255, 40, 40, 40, 255]);
/// # Ok::<(), invar_runtime::Error>(())
/// ```
pub struct Texture {
    bytes: ByteBuffer,
    shape: TextureShape,
}

impl fmt::Debug for Texture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextureShape {
            format,
            width,
            height,
            depth,
            levels,
            samples,
            is_volume: _,
        } = self.shape;
        write!(f, "{} texture of {width}x{height}", format.name())?;
        if depth > samples {
            write!(f, "x{}", depth / samples)?;
        }
        if samples > 1 {
            write!(f, " with {samples} samples")?;
        }
        match levels {
            1 => Ok(()),
            _several => write!(f, " in {levels} levels"),
        }
    }
}

/// A texture by its format and size, as in a sentence.
pub(crate) fn named(shape: TextureShape) -> String {
    let [width, height, depth] = shape.extents();
    let depth = match depth / shape.samples {
        0 | 1 => String::new(),
        several => format!("x{several}"),
    };
    let format = shape.format.with_article();
    format!("{format} texture of {width}x{height}{depth}")
}

impl Texture {
    /// One of zeros (I1).
    ///
    /// # Errors
    /// `invalid-argument` for a size that no texture has, `out-of-memory`.
    pub fn zeroed(
        device: &Device,
        format: PixelFormat,
        width: u32,
        height: u32,
    ) -> Result<Texture, Error> {
        let shape = TextureShape::new(format, width, height)
            .map_err(|why| Error::new(Rule::InvalidArgument, why))?;
        Texture::of_shape(device, shape)
    }

    /// One of zeros of a shape, which may have several slices: those of three dimensions, or the elements of an
    /// array.
    ///
    /// # Errors
    /// `out-of-memory`.
    pub fn of_shape(device: &Device, shape: TextureShape) -> Result<Texture, Error> {
        let (size, most) = (shape.size_bytes(), device.capabilities().buffer_bytes);
        if size > most {
            return Err(Error::new(
                Rule::OutOfMemory,
                format!(
                    "{} has {size} bytes, more than the {most} that device `{}` allows",
                    named(shape),
                    device.capabilities().name
                ),
            ));
        }
        let bytes = ByteBuffer::zeroed(device, size as usize)?;
        Ok(Texture { bytes, shape })
    }

    /// One of these bytes: row after row, the texels of a row side by side.
    ///
    /// # Errors
    /// As [`Texture::zeroed`], and `invalid-argument` if there are more bytes or fewer than the texture has.
    pub fn new(
        device: &Device,
        format: PixelFormat,
        width: u32,
        height: u32,
        bytes: &[u8],
    ) -> Result<Texture, Error> {
        let texture = Texture::zeroed(device, format, width, height)?;
        texture.write(bytes)?;
        Ok(texture)
    }

    /// Its format and size.
    pub fn shape(&self) -> TextureShape {
        self.shape
    }

    /// Fills its levels behind the first, each of the one before by a box filter ([`fill_levels`]). Waits for the
    /// dispatches submitted so far.
    ///
    /// ```
    /// use invar_runtime::{Device, PixelFormat, Texture, TextureShape};
    ///
    /// let device = Device::default()?;
    /// let shape = TextureShape::new(PixelFormat::R8Unorm, 2, 2).and_then(|shape| shape.with_levels(2))?;
    /// let texture = Texture::of_shape(&device, shape)?;
    /// texture.write(&[10, 20, 30, 40, 0])?;
    /// texture.fill_levels()?;
    /// assert_eq!(texture.read()?, [10, 20, 30, 40, 25]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `invalid-argument` if the format is of integers; a failure of its device.
    pub fn fill_levels(&self) -> Result<(), Error> {
        let mut bytes = self.read()?;
        fill_levels(self.shape, &mut bytes)
            .map_err(|why| Error::new(Rule::InvalidArgument, why))?;
        self.write(&bytes)
    }

    /// One level of it, as an argument: a texture of one level.
    ///
    /// ```
    /// use invar_ir::{text, verify};
    /// use invar_runtime::{Device, Grid, PixelFormat, Texture, TextureShape};
    ///
    /// let source = "
    ///     kernel @fill(%to: texture2d f32 write) {
    ///         %x = thread_position_in_grid x
    ///         %y = thread_position_in_grid y
    ///         %one = const f32 1.0
    ///         %white = construct f32x4 %one
    ///         texture_write %to[%x, %y], %white
    ///     }";
    /// let device = Device::default()?;
    /// let program = device.compile(&verify(text::parse("fill.inv", source)?)?, "fill")?;
    /// let shape = TextureShape::new(PixelFormat::R8Unorm, 2, 2).and_then(|shape| shape.with_levels(2))?;
    /// let texture = Texture::of_shape(&device, shape)?;
    /// let grid = Grid::threads([2, 2]).threadgroup([8, 8]);
    /// device.queue().run(&program, grid, &[texture.level(1)?])?;
    /// assert_eq!(texture.read()?, [0, 0, 0, 0, 255]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `invalid-argument` if it does not have that level.
    pub fn level(&self, level: u32) -> Result<Arg<'_>, Error> {
        if level >= self.shape.levels {
            let why = format!("{} has no level {level}", named(self.shape));
            return Err(Error::new(Rule::InvalidArgument, why));
        }
        let start = self.shape.level_start(level) * self.shape.format.texel_bytes();
        let shape = self.shape.level(level);
        Ok(self.bytes.part_as_texture(start as usize, shape))
    }

    /// One element of an array, or a slice, of a level, as an argument: a texture of one level.
    ///
    /// ```
    /// use invar_ir::{text, verify};
    /// use invar_runtime::{Device, Grid, PixelFormat, Texture, TextureShape};
    ///
    /// let source = "
    ///     kernel @fill(%to: texture2d f32 write) {
    ///         %x = thread_position_in_grid x
    ///         %y = thread_position_in_grid y
    ///         %one = const f32 1.0
    ///         %white = construct f32x4 %one
    ///         texture_write %to[%x, %y], %white
    ///     }";
    /// let device = Device::default()?;
    /// let program = device.compile(&verify(text::parse("fill.inv", source)?)?, "fill")?;
    /// let shape = TextureShape::new(PixelFormat::R8Unorm, 2, 1).and_then(|shape| shape.with_depth(3))?;
    /// let texture = Texture::of_shape(&device, shape)?;
    /// let grid = Grid::threads([2, 1]).threadgroup([8, 8]);
    /// device.queue().run(&program, grid, &[texture.element(0, 1)?])?;
    /// assert_eq!(texture.read()?, [0, 0, 255, 255, 0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `invalid-argument` if it does not have that level or element.
    pub fn element(&self, level: u32, element: u32) -> Result<Arg<'_>, Error> {
        let slices = self.shape.samples;
        let of_level = self.shape.level(level.min(self.shape.levels - 1));
        if level >= self.shape.levels || element >= of_level.depth / slices {
            let why = format!(
                "{} has no element {element} in a level {level}",
                named(self.shape)
            );
            return Err(Error::new(Rule::InvalidArgument, why));
        }
        let shape = TextureShape {
            depth: slices,
            is_volume: false,
            ..of_level
        };
        let texels = self.shape.level_start(level) + u64::from(element) * shape.texels();
        let start = texels * self.shape.format.texel_bytes();
        Ok(self.bytes.part_as_texture(start as usize, shape))
    }

    /// Makes every texel of it the colour, as a kernel that writes it does: red, green, blue and alpha, of which
    /// the format takes those that it has; of integers the nearest that there are.
    ///
    /// ```
    /// use invar_runtime::{Device, PixelFormat, Texture};
    ///
    /// let texture = Texture::zeroed(&Device::default()?, PixelFormat::Rg8Unorm, 2, 1)?;
    /// texture.clear([1.0, 0.5, 0.0, 0.0])?;
    /// assert_eq!(texture.read()?, [255, 128, 255, 128]);
    /// # Ok::<(), invar_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// A failure of its device.
    pub fn clear(&self, colour: [f64; 4]) -> Result<(), Error> {
        let texel = self.shape.format.encoded(colour);
        self.write(&texel.repeat(self.shape.texels() as usize))
    }

    /// Its bytes, as the dispatches submitted so far leave them.
    ///
    /// # Errors
    /// A failure of its device; a dispatch that may have written it failed without a report.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.bytes.size_bytes()];
        self.bytes.read_bytes(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Replaces all its bytes; dispatches submitted afterwards see them.
    ///
    /// # Errors
    /// `invalid-argument` if there are more bytes or fewer than it has; a failure of its device.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() as u64 != self.shape.size_bytes() {
            return Err(Error::new(
                Rule::InvalidArgument,
                format!(
                    "{} has {} bytes, found {}",
                    named(self.shape),
                    self.shape.size_bytes(),
                    bytes.len()
                ),
            ));
        }
        self.bytes.write_bytes(0, bytes)
    }
}

impl<'a> From<&'a Texture> for Arg<'a> {
    fn from(texture: &'a Texture) -> Arg<'a> {
        texture.bytes.as_texture(texture.shape)
    }
}

/// What a kernel is compiled for of a dispatch's textures and samplers, by the place of the argument.
type Forms = Vec<Option<Form>>;

/// A kernel with textures for a device that has none.
pub(crate) struct ByFormats {
    source: Source,
    options: CompileOptions,
    compiled: Mutex<HashMap<Forms, Arc<dyn Executable>>>,
}

impl ByFormats {
    pub(crate) fn new(source: &Source, options: CompileOptions) -> ByFormats {
        ByFormats {
            source: source.clone(),
            options,
            compiled: Mutex::default(),
        }
    }

    /// As [`Executable::prepare`]: with the sizes of its textures behind the arguments.
    pub(crate) fn prepare(
        &self,
        device: &Device,
        call: &Call<'_>,
        job: &mut JobSlot,
    ) -> Result<Ready, Error> {
        let shape = |arg: &Arg| match arg {
            Arg::Buffer(slice) => slice.texture(),
            Arg::Scalar(_) | Arg::ThreadgroupLength(_) => None,
        };
        let shapes: Vec<Option<TextureShape>> = call.args.iter().map(shape).collect();
        self.check_sizes(device, &shapes)?;
        let params = self.source.kernel().params.iter();
        let forms: Forms = params
            .zip(call.args)
            .zip(&shapes)
            .map(|((param, arg), shape)| match (&param.kind, arg) {
                (ParamKind::Sampler, Arg::Scalar(code)) => {
                    let code = <[Const; 3]>::try_from(code.as_slice()).ok();
                    let code = code.map(|code| code.map(|part| part.bits as u32));
                    code.and_then(Sampler::from_code).map(Form::Sampler)
                }
                _no_sampler => shape.map(Form::from),
            })
            .collect();
        let executable = self.executable(device, forms)?;
        let sizes = shapes.iter().flatten();
        let sizes = sizes.map(|s| Arg::vector(s.extents().map(Const::from)));
        let args: Vec<Arg> = call.args.iter().copied().chain(sizes).collect();
        let call = Call {
            dispatch: call.dispatch,
            grid: call.grid,
            args: &args,
            time_limit: call.time_limit,
        };
        executable.prepare(&call, job)
    }

    /// Whether the device takes textures as large as these.
    fn check_sizes(&self, device: &Device, shapes: &[Option<TextureShape>]) -> Result<(), Error> {
        let able = device.capabilities();
        let kernel = self.source.kernel();
        for (param, shape) in kernel.params.iter().zip(shapes) {
            if let Some(shape) = shape.filter(|s| s.size_bytes() > able.buffer_bytes) {
                return Err(Error::new(
                    Rule::OutOfMemory,
                    format!(
                        "argument `{}` of `{}` is {} of {} bytes, more than the {} that {} takes",
                        param.name,
                        kernel.name,
                        named(shape),
                        shape.size_bytes(),
                        able.buffer_bytes,
                        able.description
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The kernel for these forms, compiled when they first come.
    fn executable(&self, device: &Device, forms: Forms) -> Result<Arc<dyn Executable>, Error> {
        if let Some(known) = lock(&self.compiled).get(&forms) {
            return Ok(known.clone());
        }
        let kernel = self.source.kernel;
        let module = textures::expand(Module::clone(&self.source.module), kernel, &forms)?;
        let module = Arc::new(verify(module)?);
        let source = Source { module, kernel };
        // Formats may need types that the kernel itself does not.
        device
            .capabilities()
            .check(&source.module, source.kernel())?;
        let compiled: Arc<dyn Executable> =
            Arc::from(device.backend().compile(&source, &self.options)?);
        // Who else compiled it meanwhile made the same.
        lock(&self.compiled).insert(forms, compiled.clone());
        Ok(compiled)
    }
}
