//! Textures of kernels that programs generate.
//!
//! Deliberately absent: what their functions mean, which [`crate::ir::texture`] has, and whether they fit, which the
//! verifier says.

use std::panic::Location;

use invar_ir::texture::{Sampling, TextureAccess, TextureFunction, TextureType};
use invar_ir::{AtomicOp, Memory, Order, Place, SamplerSource, Scalar, Scope, Step, Width};
use invar_runtime::{Arg, Error, Sampler};

use crate::build::{Builder, Own, Parameter, Raw, Value, Wanted};

/// A texture of a kernel that is being built. Where a function takes coordinates, the level may stand behind them.
///
/// ```
/// use invar::build::{Builder, TextureIn, TextureOut};
/// use invar::ir::texture::{Dimension, TextureAccess, TextureType};
/// use invar::ir::{Dim, Scalar};
/// use invar::{Device, Grid, PixelFormat, Sampler, Texture};
///
/// let k = Builder::new("resize");
/// let from = k.texture("from", TextureType::d2(Scalar::F32, TextureAccess::Sample));
/// let to = k.texture("to", TextureType::d2(Scalar::F32, TextureAccess::Write));
/// let (x, y) = (k.thread_position_in_grid(Dim::X), k.thread_position_in_grid(Dim::Y));
/// let u = (x.cast(Scalar::F32) + 0.5f32) / to.width().cast(Scalar::F32);
/// let v = (y.cast(Scalar::F32) + 0.5f32) / to.height().cast(Scalar::F32);
/// to.write(&[x, y], from.sample(Sampler::LINEAR, &[u, v]));
/// let resize = k.finish_as::<(TextureIn, TextureOut)>()?;
///
/// let device = Device::default()?;
/// let from = Texture::new(&device, PixelFormat::R8Unorm, 2, 1, &[10, 30])?;
/// let mut to = Texture::zeroed(&device, PixelFormat::R8Unorm, 4, 1)?;
/// resize.launch(&device, Grid::threads([4, 1]), (&from, &mut to))?.wait()?;
/// assert_eq!(to.read()?, [10, 15, 25, 30]);
/// # Ok::<(), invar::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Texture<'k> {
    kernel: &'k Builder,
    memory: Memory,
}

impl Builder {
    /// A texture parameter.
    #[track_caller]
    pub fn texture(&self, name: &str, ty: TextureType) -> Texture<'_> {
        Texture {
            kernel: self,
            memory: self.parameter(name, |k| k.texture(name, ty)),
        }
    }

    /// A sampler parameter.
    #[track_caller]
    pub fn sampler(&self, name: &str) -> SamplerParam<'_> {
        SamplerParam {
            kernel: self,
            source: self.parameter(name, |k| k.sampler(name)),
            offset: [0; 3],
        }
    }
}

/// A sampler parameter of a kernel that is being built.
#[derive(Clone, Copy)]
pub struct SamplerParam<'k> {
    kernel: &'k Builder,
    source: SamplerSource,
    offset: [i8; 3],
}

impl<'k> SamplerParam<'k> {
    /// The same, of texels so far away along each axis (V15).
    #[must_use]
    pub fn offset(self, offset: [i8; 3]) -> SamplerParam<'k> {
        SamplerParam { offset, ..self }
    }
}

impl Own for SamplerParam<'_> {
    type Number = SamplerSource;

    fn number(self, kernel: &mut Raw<'_>, caller: &'static Location<'static>) -> SamplerSource {
        let whose = || format!("this is a sampler of kernel `{}`", self.kernel.name());
        match kernel.is_own(self.kernel, caller, whose) {
            true => self.source,
            // What stands for it is never run.
            false => SamplerSource::Constant(Sampler::NEAREST),
        }
    }
}

/// How a texture is sampled: by a sampler parameter, or by a [`Sampler`] that the kernel says.
pub trait How {
    /// The same in that kernel.
    #[doc(hidden)]
    #[track_caller]
    fn sampling(self, kernel: &Builder) -> Sampling;
}

impl<T: Into<Sampling>> How for T {
    fn sampling(self, _kernel: &Builder) -> Sampling {
        self.into()
    }
}

impl How for SamplerParam<'_> {
    #[track_caller]
    fn sampling(self, kernel: &Builder) -> Sampling {
        if std::ptr::eq(self.kernel, kernel) {
            return Sampling {
                sampler: self.source,
                offset: self.offset,
            };
        }
        let other = self.kernel.name();
        kernel.foreign(&format!("this is a sampler of kernel `{other}`"));
        // What stands for it is never run.
        Sampler::NEAREST.into()
    }
}

impl<'k> Texture<'k> {
    /// A function, with what it takes in the order of the text form; gives what it gives.
    #[expect(
        clippy::manual_map,
        reason = "a closure would be the caller that reports name"
    )]
    #[track_caller]
    fn call(self, function: TextureFunction, args: &[Value<'_>]) -> Option<Value<'k>> {
        let args = self.kernel.owns(args);
        let made = match function {
            TextureFunction::Write => (self.kernel).acts("write to a texture", |k| {
                k.texture_function(self.memory, function, &args)
            }),
            _ => (self.kernel).at(|k| k.texture_function(self.memory, function, &args)),
        };
        match made {
            Some(id) => Some(self.kernel.value(id)),
            None => None,
        }
    }

    #[track_caller]
    fn given(self, function: TextureFunction, args: &[Value<'_>]) -> Value<'k> {
        match self.call(function, args) {
            Some(value) => value,
            None => unreachable!("only writes and fences give nothing"),
        }
    }

    /// The texel at integer coordinates.
    #[track_caller]
    pub fn read(self, at: &[Value<'_>]) -> Value<'k> {
        self.given(TextureFunction::Read, at)
    }

    /// Writes the texel at integer coordinates.
    #[track_caller]
    pub fn write(self, at: &[Value<'_>], value: Value<'_>) {
        self.call(TextureFunction::Write, &[at, &[value]].concat());
    }

    /// A sample at coordinates of `f32`.
    #[track_caller]
    pub fn sample(self, how: impl How, at: &[Value<'_>]) -> Value<'k> {
        self.given(TextureFunction::Sample(how.sampling(self.kernel)), at)
    }

    /// A component, 0 to 3, of the four texels that a linear sample is made of.
    #[track_caller]
    pub fn gather(self, component: u8, how: impl How, at: &[Value<'_>]) -> Value<'k> {
        let sampling = how.sampling(self.kernel);
        let function = TextureFunction::Gather {
            component,
            sampling,
        };
        self.given(function, at)
    }

    /// How much of a sample is of depths with which the sampler's comparison of the reference holds.
    #[track_caller]
    pub fn sample_compare(
        self,
        how: impl How,
        at: &[Value<'_>],
        reference: Value<'_>,
    ) -> Value<'k> {
        let args = [at, &[reference]].concat();
        self.given(
            TextureFunction::SampleCompare(how.sampling(self.kernel)),
            &args,
        )
    }

    /// 1 or 0 for each of the four depths that a linear sample is made of.
    #[track_caller]
    pub fn gather_compare(
        self,
        how: impl How,
        at: &[Value<'_>],
        reference: Value<'_>,
    ) -> Value<'k> {
        let args = [at, &[reference]].concat();
        self.given(
            TextureFunction::GatherCompare(how.sampling(self.kernel)),
            &args,
        )
    }

    /// The level of a sample at coordinates, those between texels or a cube's direction, whose neighbours' differ from
    /// them so much along two directions.
    #[track_caller]
    pub fn gradient_level(
        self,
        at: &[Value<'_>],
        across: &[Value<'_>],
        down: &[Value<'_>],
    ) -> Value<'k> {
        let (at, across) = (self.kernel.owns(at), self.kernel.owns(across));
        let down = self.kernel.owns(down);
        let level =
            (self.kernel).at(|k| k.texture_gradient_level(self.memory, &at, &across, &down));
        self.kernel.value(level)
    }

    /// How many texels a row has.
    #[track_caller]
    pub fn width(self) -> Value<'k> {
        self.given(TextureFunction::Width, &[])
    }

    /// How many rows it has.
    #[track_caller]
    pub fn height(self) -> Value<'k> {
        self.given(TextureFunction::Height, &[])
    }

    /// How many slices it has, of three dimensions.
    #[track_caller]
    pub fn depth(self) -> Value<'k> {
        self.given(TextureFunction::Depth, &[])
    }

    /// How many elements it has, of an array.
    #[track_caller]
    pub fn array_size(self) -> Value<'k> {
        self.given(TextureFunction::ArraySize, &[])
    }

    /// How many levels it has.
    #[track_caller]
    pub fn levels(self) -> Value<'k> {
        self.given(TextureFunction::Levels, &[])
    }

    /// How many samples a texel has.
    #[track_caller]
    pub fn samples(self) -> Value<'k> {
        self.given(TextureFunction::Samples, &[])
    }

    /// Makes sure that the thread's reads see what it wrote before.
    #[track_caller]
    pub fn fence(self) {
        self.call(TextureFunction::Fence, &[]);
    }

    /// An atomic operation on the first component of a texel, relaxed and of the whole device; a compare-exchange gives
    /// the old value and whether it exchanged.
    ///
    /// # Panics
    /// Without a coordinate.
    #[track_caller]
    pub fn atomic(self, op: AtomicOp, at: &[Value<'_>], args: &[Value<'_>]) -> Vec<Value<'k>> {
        let (at, args) = (self.kernel.owns(at), self.kernel.owns(args));
        let place = Place {
            memory: self.memory,
            index: at[0],
            width: Width::One,
            path: at[1..].iter().map(|value| Step::Index(*value)).collect(),
        };
        let results = (self.kernel).acts("atomic operation", |k| {
            k.atomic(op, place, &args, Order::Relaxed, Scope::Device)
        });
        results
            .into_iter()
            .map(|id| self.kernel.value(id))
            .collect()
    }
}

impl Own for Texture<'_> {
    type Number = Memory;

    fn number(self, kernel: &mut Raw<'_>, caller: &'static Location<'static>) -> Memory {
        let whose = || format!("this is a texture of kernel `{}`", self.kernel.name());
        match kernel.is_own(self.kernel, caller, whose) {
            true => self.memory,
            // What stands for it is never run.
            false => kernel.texture("", TextureType::d2(Scalar::F32, TextureAccess::Read)),
        }
    }
}

/// A parameter of a kernel with types: a texture that is read or sampled.
pub struct TextureIn;

/// A parameter of a kernel with types: a texture that is written.
pub struct TextureOut;

impl Parameter for TextureIn {
    type Given<'a> = &'a crate::Texture;

    fn wanted() -> Wanted {
        Wanted::Texture { written: false }
    }

    fn arg<'a, 'b: 'a>(given: &'a &'b crate::Texture) -> Result<Arg<'a>, Error> {
        Ok(Arg::from(*given))
    }
}

impl Parameter for TextureOut {
    type Given<'a> = &'a mut crate::Texture;

    fn wanted() -> Wanted {
        Wanted::Texture { written: true }
    }

    fn arg<'a, 'b: 'a>(given: &'a &'b mut crate::Texture) -> Result<Arg<'a>, Error> {
        Ok(Arg::from(&**given))
    }
}

impl Parameter for Sampler {
    type Given<'a> = Sampler;

    fn wanted() -> Wanted {
        Wanted::Sampler
    }

    fn arg<'a, 'b: 'a>(given: &'a Sampler) -> Result<Arg<'a>, Error> {
        Ok(Arg::from(*given))
    }
}
