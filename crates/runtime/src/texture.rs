//! Textures: formats and sizes in the memory of buffers; and programs for devices that have none, which compile a
//! kernel for each set of formats that dispatches give.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use invar_codegen::passes::textures;
use invar_ir::{Const, Module, Rule, verify};
use invar_texture::{PixelFormat, TextureShape};

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
        } = self.shape;
        write!(f, "{} texture of {width}x{height}", format.name())?;
        match depth {
            1 => Ok(()),
            _several => write!(f, "x{depth}"),
        }
    }
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
        let bytes = ByteBuffer::zeroed(device, shape.size_bytes() as usize)?;
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
                    "a {self:?} has {} bytes, found {}",
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

/// The formats of a dispatch's textures, by the place of the argument.
type Formats = Vec<Option<PixelFormat>>;

/// A kernel with textures for a device that has none.
pub(crate) struct ByFormats {
    source: Source,
    options: CompileOptions,
    compiled: Mutex<HashMap<Formats, Arc<dyn Executable>>>,
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
        let formats: Formats = shapes.iter().map(|s| s.map(|s| s.format)).collect();
        let executable = self.executable(device, formats)?;
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

    /// The kernel for these formats, compiled when they first come.
    fn executable(&self, device: &Device, formats: Formats) -> Result<Arc<dyn Executable>, Error> {
        if let Some(known) = lock(&self.compiled).get(&formats) {
            return Ok(known.clone());
        }
        let kernel = self.source.kernel;
        let module = textures::expand(Module::clone(&self.source.module), kernel, &formats)?;
        let module = Arc::new(verify(module)?);
        let source = Source { module, kernel };
        // Formats may need types that the kernel itself does not.
        device
            .capabilities()
            .check(&source.module, source.kernel())?;
        let compiled: Arc<dyn Executable> =
            Arc::from(device.backend().compile(&source, &self.options)?);
        // Who else compiled it meanwhile made the same.
        lock(&self.compiled).insert(formats, compiled.clone());
        Ok(compiled)
    }
}
