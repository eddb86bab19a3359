//! Textures: their types, and the functions that reach them.
//!
//! A texture is a parameter in `device` memory that nothing reaches but an [`InstKind::Texture`]. What its
//! texels are made of, the dispatch says: a kernel knows their component type only.
//!
//! Deliberately absent: pixel formats and the formulas of samples (the crate `invar-texture`).

use std::fmt;

use invar_texture::{Coding, MAX_EXTENT, Numbers, PixelFormat, TextureShape};
use serde::{Deserialize, Serialize};

use crate::builder::KernelBuilder;
use crate::inst::{InstKind, Memory, Place, Step, Value, Values, Width};
use crate::module::{Access, Kernel, ParamKind};
use crate::ops::Dim;
use crate::types::{ElementType, Scalar, Type};

pub use invar_texture::{Address, Border, Compare, Coordinates, Filter, LodClamp, Mip, Sampler};

/// How the texels of a texture are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dimension {
    /// In rows and columns: `texture2d`.
    D2,
    /// In one row: `texture1d`.
    D1,
    /// In slices of rows and columns that have nothing to do with each other: `texture2d_array`.
    D2Array,
    /// In three directions: `texture3d`.
    D3,
    /// In rows that have nothing to do with each other: `texture1d_array`.
    D1Array,
    /// In one row, which is not sampled and may be long: `texture_buffer`.
    Buffer,
    /// In rows and columns, with several samples of each: `texture2d_ms`.
    D2Ms,
    /// In elements of those: `texture2d_ms_array`.
    D2MsArray,
    /// On the six faces of a cube: `texturecube`.
    Cube,
    /// In elements of those: `texturecube_array`.
    CubeArray,
}

impl Dimension {
    /// Every arrangement.
    pub const ALL: [Dimension; 10] = [
        Dimension::D1,
        Dimension::D1Array,
        Dimension::D2,
        Dimension::D2Array,
        Dimension::D2Ms,
        Dimension::D2MsArray,
        Dimension::D3,
        Dimension::Cube,
        Dimension::CubeArray,
        Dimension::Buffer,
    ];

    /// Those that textures of depths have.
    pub const DEPTHS: [Dimension; 4] = [
        Dimension::D2,
        Dimension::D2Array,
        Dimension::Cube,
        Dimension::CubeArray,
    ];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Dimension::D1 => "texture1d",
            Dimension::D1Array => "texture1d_array",
            Dimension::D2 => "texture2d",
            Dimension::D2Array => "texture2d_array",
            Dimension::D3 => "texture3d",
            Dimension::Buffer => "texture_buffer",
            Dimension::D2Ms => "texture2d_ms",
            Dimension::D2MsArray => "texture2d_ms_array",
            Dimension::Cube => "texturecube",
            Dimension::CubeArray => "texturecube_array",
        }
    }

    /// What each coordinate of a texel counts, the element of an array included: 0 stands for columns, 1 for rows,
    /// 2 for slices, or those of an element where it has several, and 3 for the elements then.
    pub const fn counted(self) -> &'static [usize] {
        match self {
            Dimension::D1 | Dimension::Buffer => &[0],
            Dimension::D2 => &[0, 1],
            Dimension::D1Array => &[0, 2],
            Dimension::D2Array | Dimension::D3 | Dimension::D2Ms | Dimension::Cube => &[0, 1, 2],
            Dimension::D2MsArray | Dimension::CubeArray => &[0, 1, 2, 3],
        }
    }

    /// How many coordinates a texel has, the element of an array included; and a sample.
    pub const fn coordinates(self) -> usize {
        self.counted().len()
    }

    /// Whether textures have a size in a direction, other than 1.
    pub fn has_extent(self, direction: Dim) -> bool {
        let axis = direction as usize;
        self.counted().contains(&axis)
    }

    /// How many coordinates of a sample are numbers between texels, or a direction's.
    pub const fn axes(self) -> usize {
        match self {
            Dimension::Buffer | Dimension::D2Ms | Dimension::D2MsArray => 0,
            Dimension::D1 | Dimension::D1Array => 1,
            Dimension::D2 | Dimension::D2Array => 2,
            Dimension::D3 | Dimension::Cube | Dimension::CubeArray => 3,
        }
    }

    /// Whether it is sampled in a direction.
    pub const fn is_cube(self) -> bool {
        matches!(self, Dimension::Cube | Dimension::CubeArray)
    }

    /// Whether a texel has several samples.
    pub const fn has_samples(self) -> bool {
        matches!(self, Dimension::D2Ms | Dimension::D2MsArray)
    }

    /// How many slices an element has, the faces of a cube or the samples of a texel; none if they have no coordinate of
    /// their own.
    pub const fn slices(self, samples: u32) -> Option<u32> {
        match self {
            Dimension::Cube | Dimension::CubeArray => Some(6),
            Dimension::D2Ms | Dimension::D2MsArray => Some(samples),
            Dimension::D1
            | Dimension::D1Array
            | Dimension::D2
            | Dimension::D2Array
            | Dimension::D3
            | Dimension::Buffer => None,
        }
    }

    /// How much each coordinate of a texel can count in a level of a texture: by what [`Dimension::counted`] says.
    pub fn extents(self, shape: TextureShape, level: u32) -> [u32; 4] {
        let [width, height, depth] = shape.level_extents(level);
        match self.slices(shape.samples) {
            Some(slices) => [width, height, slices, depth / slices],
            None => [width, height, depth, depth],
        }
    }

    /// The slice of a texel with these coordinates, by what they count; none that is there if one is beyond the edges.
    pub fn slice(self, shape: TextureShape, [_, _, within, element]: [i128; 4]) -> i128 {
        match self.slices(shape.samples) {
            Some(slices) if (0..slices.into()).contains(&within) => {
                element * i128::from(slices) + within
            }
            Some(_) => -1,
            None => within,
        }
    }

    /// Whether such a texture may have several levels.
    pub const fn has_levels(self) -> bool {
        match self {
            Dimension::D1
            | Dimension::D1Array
            | Dimension::Buffer
            | Dimension::D2Ms
            | Dimension::D2MsArray => false,
            Dimension::D2
            | Dimension::D2Array
            | Dimension::D3
            | Dimension::Cube
            | Dimension::CubeArray => true,
        }
    }

    /// Whether it is an array, whose last coordinate is the element.
    pub const fn is_array(self) -> bool {
        matches!(
            self,
            Dimension::D1Array | Dimension::D2Array | Dimension::D2MsArray | Dimension::CubeArray
        )
    }

    /// Why a texture of that shape is none of this arrangement, if it is not.
    pub fn refuses(self, shape: TextureShape) -> Option<String> {
        let (rows, slices) = match self {
            Dimension::D1 | Dimension::Buffer => (false, false),
            Dimension::D1Array => (false, true),
            Dimension::D2 => (true, false),
            Dimension::D2Array
            | Dimension::D3
            | Dimension::D2Ms
            | Dimension::D2MsArray
            | Dimension::Cube
            | Dimension::CubeArray => (true, true),
        };
        if self != Dimension::Buffer && shape.width > MAX_EXTENT {
            return Some(format!(
                "has {} texels in a row, and only a texture_buffer has more than {MAX_EXTENT}",
                shape.width
            ));
        }
        if self.has_samples() != (shape.samples > 1) {
            return Some(match shape.samples {
                1 => "has one sample of each texel".to_string(),
                samples => format!("has {samples} samples of each texel"),
            });
        }
        if self == Dimension::D2Ms && shape.depth > shape.samples {
            return Some(format!("has {} elements", shape.depth / shape.samples));
        }
        if self.is_cube() {
            let faces = shape.depth.is_multiple_of(6);
            if !faces || self == Dimension::Cube && shape.depth != 6 {
                let plural = if shape.depth == 1 { "" } else { "s" };
                return Some(format!("has {} slice{plural}, no six faces", shape.depth));
            }
            if shape.width != shape.height {
                let (width, height) = (shape.width, shape.height);
                return Some(format!(
                    "has faces of {width}x{height}, which are not squares"
                ));
            }
        }
        if !rows && shape.height > 1 {
            return Some(format!("has {} rows", shape.height));
        }
        if !self.has_levels() && shape.levels > 1 {
            return Some(format!(
                "has {} levels, and textures of two and three dimensions and cubes alone have more than one",
                shape.levels
            ));
        }
        if shape.levels > 1 && shape.is_volume != (self == Dimension::D3) {
            let (levels, slices) = (shape.levels, shape.depth);
            return Some(match shape.is_volume {
                true => format!("is a volume in {levels} levels, of half the slices each"),
                false => {
                    format!("has {slices} slices in each of {levels} levels, and is not a volume")
                }
            });
        }
        (!slices && shape.depth > 1).then(|| format!("has {} slices", shape.depth))
    }
}

/// What a kernel may do with a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TextureAccess {
    /// Read texels.
    Read,
    /// Write texels.
    Write,
    /// Read and write texels.
    ReadWrite,
    /// Sample, and read texels.
    Sample,
}

impl TextureAccess {
    /// Every access.
    pub const ALL: [TextureAccess; 4] = [
        TextureAccess::Read,
        TextureAccess::Write,
        TextureAccess::ReadWrite,
        TextureAccess::Sample,
    ];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            TextureAccess::Read => "read",
            TextureAccess::Write => "write",
            TextureAccess::ReadWrite => "read_write",
            TextureAccess::Sample => "sample",
        }
    }

    /// What it means for memory.
    pub const fn memory(self) -> Access {
        match self {
            TextureAccess::Read | TextureAccess::Sample => Access::Read,
            TextureAccess::Write => Access::Write,
            TextureAccess::ReadWrite => Access::ReadWrite,
        }
    }
}

/// The type of a texture parameter: `texture2d f32 sample`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TextureType {
    /// How its texels are arranged.
    pub dimension: Dimension,
    /// What is read and written: `f32`, `i32`, `u32`, or the same of 16 bits.
    pub component: Scalar,
    /// What a kernel may do with it.
    pub access: TextureAccess,
    /// Whether a texel is one number that can be compared: `depth2d`.
    pub is_depth: bool,
}

impl TextureType {
    /// A texture of rows and columns.
    pub const fn d2(component: Scalar, access: TextureAccess) -> TextureType {
        TextureType::new(Dimension::D2, component, access)
    }

    /// A texture of that arrangement.
    pub const fn new(
        dimension: Dimension,
        component: Scalar,
        access: TextureAccess,
    ) -> TextureType {
        TextureType {
            dimension,
            component,
            access,
            is_depth: false,
        }
    }

    /// The same with texels that can be compared.
    pub const fn of_depths(self) -> TextureType {
        TextureType {
            is_depth: true,
            ..self
        }
    }

    /// The word for how it is arranged in the text form.
    pub const fn name(self) -> &'static str {
        match (self.is_depth, self.dimension) {
            (true, Dimension::D2) => "depth2d",
            (true, Dimension::D2Array) => "depth2d_array",
            (true, Dimension::Cube) => "depthcube",
            (true, Dimension::CubeArray) => "depthcube_array",
            (_, dimension) => dimension.name(),
        }
    }

    /// How it is arranged, and whether its texels are depths, by the word in the text form.
    pub fn arrangement(word: &str) -> Option<(Dimension, bool)> {
        let textures = Dimension::ALL.into_iter().map(|d| (d, false));
        let depths = Dimension::DEPTHS.into_iter().map(|d| (d, true));
        textures.chain(depths).find(|(dimension, is_depth)| {
            let ty = TextureType::new(*dimension, Scalar::F32, TextureAccess::Read);
            let ty = TextureType {
                is_depth: *is_depth,
                ..ty
            };
            ty.name() == word
        })
    }

    /// The type of a texel's value: four components, of depths one.
    pub const fn texel(self) -> Type {
        match self.is_depth {
            true => Type::Scalar(self.component),
            false => Type::Vector(self.component, 4),
        }
    }

    /// What formats give for its components, which become those.
    pub const fn wide_component(self) -> Scalar {
        match self.component {
            Scalar::I16 => Scalar::I32,
            Scalar::U16 => Scalar::U32,
            Scalar::F16 => Scalar::F32,
            as_wide => as_wide,
        }
    }

    /// The same as an element of memory.
    pub(crate) fn element(self) -> &'static ElementType {
        static TEXELS: [ElementType; 6] = [
            ElementType::Value(Type::Vector(Scalar::F32, 4)),
            ElementType::Value(Type::Vector(Scalar::I32, 4)),
            ElementType::Value(Type::Vector(Scalar::U32, 4)),
            ElementType::Value(Type::Vector(Scalar::F16, 4)),
            ElementType::Value(Type::Vector(Scalar::I16, 4)),
            ElementType::Value(Type::Vector(Scalar::U16, 4)),
        ];
        match self.component {
            Scalar::I32 => &TEXELS[1],
            Scalar::U32 => &TEXELS[2],
            Scalar::F16 => &TEXELS[3],
            Scalar::I16 => &TEXELS[4],
            Scalar::U16 => &TEXELS[5],
            _float => &TEXELS[0],
        }
    }

    /// Why there is no such texture, if there is none.
    pub fn defect(self) -> Option<String> {
        let (dimension, access) = (self.dimension, self.access);
        let fits = match access {
            TextureAccess::Read => true,
            TextureAccess::Write | TextureAccess::ReadWrite => !dimension.has_samples(),
            TextureAccess::Sample => dimension.axes() > 0,
        };
        if !fits {
            let may = match dimension.has_samples() {
                true => "`read`",
                false => "`read`, `write` or `read_write`",
            };
            return Some(format!("a {} is {may}", dimension.name()));
        }
        if self.is_depth && (self.component != Scalar::F32 || self.access.memory().can_write()) {
            return Some(format!(
                "a {} is of f32, and `read` or `sample`",
                self.name()
            ));
        }
        match self.component {
            Scalar::F32 | Scalar::I32 | Scalar::U32 | Scalar::F16 | Scalar::I16 | Scalar::U16 => {
                None
            }
            other => Some(format!(
                "a texture has components of f32, i32, u32, f16, i16 or u16, not {other}"
            )),
        }
    }
}

impl fmt::Display for TextureType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dimension, access) = (self.name(), self.access.name());
        write!(f, "{dimension} {} {access}", self.component)
    }
}

/// The scalars that lie in memory for a format, one for each of [`PixelFormat::codes`]: what arrays of its texels are
/// made of.
///
/// ```
/// use invar_ir::{Scalar, texture::stored};
/// use invar_texture::PixelFormat;
/// assert_eq!(stored(PixelFormat::Rgba8Unorm), Scalar::U8);
/// ```
pub const fn stored(format: PixelFormat) -> Scalar {
    let signed = matches!(format.coding(), Coding::Snorm | Coding::Sint);
    if format.is_packed() {
        return Scalar::U32;
    }
    match (format.coding(), format.bits()) {
        (Coding::Float, 16) => Scalar::F16,
        (Coding::Float, _) => Scalar::F32,
        (_, 8) if signed => Scalar::I8,
        (_, 8) => Scalar::U8,
        (_, 16) if signed => Scalar::I16,
        (_, 16) => Scalar::U16,
        (_, _) if signed => Scalar::I32,
        (_, _) => Scalar::U32,
    }
}

/// What a format gives to kernels: the component type of their textures, or the wider one of it.
pub const fn component(format: PixelFormat) -> Scalar {
    match format.numbers() {
        Numbers::Float => Scalar::F32,
        Numbers::Signed => Scalar::I32,
        Numbers::Unsigned => Scalar::U32,
    }
}

/// What the size of a texture in a direction is called: `width`, `height`, and `slices`, which are the elements of
/// an array, too.
pub const fn extent_name(direction: Dim) -> &'static str {
    match direction {
        Dim::X => "width",
        Dim::Y => "height",
        Dim::Z => "slices",
    }
}

/// How a texture is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SamplerSource {
    /// As the kernel says.
    Constant(Sampler),
    /// As the dispatch says: a parameter that is a sampler.
    Param(Memory),
    /// The same, and one of pixel coordinates is refused (V21).
    NormalizedParam(Memory),
}

impl SamplerSource {
    /// The sampler, if the kernel says it.
    pub const fn constant(self) -> Option<Sampler> {
        match self {
            SamplerSource::Constant(sampler) => Some(sampler),
            SamplerSource::Param(_) | SamplerSource::NormalizedParam(_) => None,
        }
    }

    /// The parameter, if the dispatch says it.
    pub const fn param(self) -> Option<Memory> {
        match self {
            SamplerSource::Param(param) | SamplerSource::NormalizedParam(param) => Some(param),
            SamplerSource::Constant(_) => None,
        }
    }

    /// The same, of normalized coordinates alone where the dispatch says it.
    pub const fn normalized(self) -> SamplerSource {
        match self {
            SamplerSource::Param(param) => SamplerSource::NormalizedParam(param),
            as_said => as_said,
        }
    }
}

impl Default for SamplerSource {
    fn default() -> SamplerSource {
        SamplerSource::Constant(Sampler::default())
    }
}

impl From<Sampler> for SamplerSource {
    fn from(sampler: Sampler) -> SamplerSource {
        SamplerSource::Constant(sampler)
    }
}

/// How a function samples a texture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sampling {
    /// By what.
    pub sampler: SamplerSource,
    /// How many texels further along each axis: from -8 to 7, and 0 where there is no such axis.
    pub offset: [i8; 3],
}

impl Sampling {
    /// What offsets may be.
    pub const OFFSETS: std::ops::RangeInclusive<i8> = -8..=7;
}

impl From<SamplerSource> for Sampling {
    fn from(sampler: SamplerSource) -> Sampling {
        Sampling {
            sampler,
            offset: [0; 3],
        }
    }
}

impl From<Sampler> for Sampling {
    fn from(sampler: Sampler) -> Sampling {
        SamplerSource::Constant(sampler).into()
    }
}

/// A function of a texture. One operand more than it needs, behind the coordinates, is the level: an integer, of a
/// sample an `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TextureFunction {
    /// Gives a texel's value; its coordinates are integers of any type, taken mathematically (B4).
    Read,
    /// Writes a texel: its coordinates, and then its value.
    Write,
    /// Gives a sample at coordinates of `f32`.
    Sample(Sampling),
    /// How many texels a row has.
    Width,
    /// How many rows a slice has.
    Height,
    /// How many slices a texture of three dimensions has.
    Depth,
    /// How many elements an array has.
    ArraySize,
    /// Gives a component of the four texels that a linear sample of two dimensions, or of a cube, is made of.
    Gather {
        /// Which: 0 to 3.
        component: u8,
        /// How coordinates lead to texels; its filter means nothing.
        sampling: Sampling,
    },
    /// How many levels a texture has.
    Levels,
    /// How many samples a texel has.
    Samples,
    /// Gives a sample of what holds of a comparison with the last operand.
    SampleCompare(Sampling),
    /// Gives what holds of it for the four texels that a linear sample of two dimensions, or of a cube, is made of.
    GatherCompare(Sampling),
    /// Makes sure that the thread's reads see what it wrote before, which they do (O1).
    Fence,
}

/// The operands of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextureOperands<'a> {
    /// Coordinates.
    pub at: &'a [Value],
    /// The level.
    pub level: Option<Value>,
    /// The value of a texel that is written, or what texels are compared with.
    pub value: Option<Value>,
}

impl TextureFunction {
    /// The words of all functions.
    pub const NAMES: [&str; 13] = [
        "texture_read",
        "texture_write",
        "texture_sample",
        "texture_width",
        "texture_height",
        "texture_depth",
        "texture_array_size",
        "texture_gather",
        "texture_levels",
        "texture_samples",
        "texture_sample_compare",
        "texture_gather_compare",
        "texture_fence",
    ];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            TextureFunction::Read => "texture_read",
            TextureFunction::Write => "texture_write",
            TextureFunction::Sample(_) => "texture_sample",
            TextureFunction::Width => "texture_width",
            TextureFunction::Height => "texture_height",
            TextureFunction::Depth => "texture_depth",
            TextureFunction::ArraySize => "texture_array_size",
            TextureFunction::Gather { .. } => "texture_gather",
            TextureFunction::Levels => "texture_levels",
            TextureFunction::Samples => "texture_samples",
            TextureFunction::SampleCompare(_) => "texture_sample_compare",
            TextureFunction::GatherCompare(_) => "texture_gather_compare",
            TextureFunction::Fence => "texture_fence",
        }
    }

    /// The direction of whose size it asks, if it does: of columns, rows, and slices or elements.
    pub const fn extent(self) -> Option<Dim> {
        match self {
            TextureFunction::Width => Some(Dim::X),
            TextureFunction::Height => Some(Dim::Y),
            TextureFunction::Depth | TextureFunction::ArraySize => Some(Dim::Z),
            TextureFunction::Read
            | TextureFunction::Write
            | TextureFunction::Sample(_)
            | TextureFunction::Gather { .. }
            | TextureFunction::Levels
            | TextureFunction::Samples
            | TextureFunction::SampleCompare(_)
            | TextureFunction::GatherCompare(_)
            | TextureFunction::Fence => None,
        }
    }

    /// Whether it asks for a number of the texture, and touches no texel.
    pub const fn is_query(self) -> bool {
        self.extent().is_some()
            || matches!(self, TextureFunction::Levels | TextureFunction::Samples)
    }

    /// By what it samples, if it does.
    pub const fn sampler(self) -> Option<SamplerSource> {
        match self.sampling() {
            Some(sampling) => Some(sampling.sampler),
            None => None,
        }
    }

    /// How it samples, if it does.
    pub const fn sampling(self) -> Option<Sampling> {
        match self {
            TextureFunction::Sample(sampling)
            | TextureFunction::Gather { sampling, .. }
            | TextureFunction::SampleCompare(sampling)
            | TextureFunction::GatherCompare(sampling) => Some(sampling),
            TextureFunction::Read
            | TextureFunction::Write
            | TextureFunction::Width
            | TextureFunction::Height
            | TextureFunction::Depth
            | TextureFunction::ArraySize
            | TextureFunction::Levels
            | TextureFunction::Samples
            | TextureFunction::Fence => None,
        }
    }

    /// The same taken so many texels further along each axis.
    pub const fn beside(self, offset: [i8; 3]) -> TextureFunction {
        let Some(Sampling { sampler, .. }) = self.sampling() else {
            return self;
        };
        self.by(Sampling { sampler, offset })
    }

    /// The same of normalized coordinates alone, where the dispatch gives the sampler.
    pub const fn normalized(self) -> TextureFunction {
        let Some(Sampling { sampler, offset }) = self.sampling() else {
            return self;
        };
        let sampler = sampler.normalized();
        self.by(Sampling { sampler, offset })
    }

    /// By what it samples a texture, without what means nothing to it: where it does not compare, what a constant sampler
    /// compares, and of cubes what is beyond the edges (V11).
    pub fn needed_sampler(self, dimension: Dimension) -> Option<SamplerSource> {
        let source = self.sampler()?;
        let Some(mut sampler) = source.constant() else {
            return Some(source);
        };
        if !self.compares() {
            sampler.compare = None;
        }
        if dimension.is_cube() {
            (sampler.address, sampler.border) = (Address::default(), Border::default());
        }
        Some(sampler.into())
    }

    /// Whether a texture is sampled by normalized coordinates alone (V21): in directions, and where the kernel says so.
    pub const fn needs_normalized(self, dimension: Dimension) -> bool {
        match self.sampler() {
            Some(SamplerSource::NormalizedParam(_)) => true,
            Some(SamplerSource::Constant(_) | SamplerSource::Param(_)) => dimension.is_cube(),
            None => false,
        }
    }

    /// A function that samples, by something else.
    const fn by(self, sampling: Sampling) -> TextureFunction {
        match self {
            TextureFunction::Gather { component, .. } => TextureFunction::Gather {
                component,
                sampling,
            },
            TextureFunction::SampleCompare(_) => TextureFunction::SampleCompare(sampling),
            TextureFunction::GatherCompare(_) => TextureFunction::GatherCompare(sampling),
            _sample => TextureFunction::Sample(sampling),
        }
    }

    /// Whether it compares texels.
    pub const fn compares(self) -> bool {
        matches!(
            self,
            TextureFunction::SampleCompare(_) | TextureFunction::GatherCompare(_)
        )
    }

    /// Whether it takes coordinates between texels.
    pub const fn samples(self) -> bool {
        self.sampler().is_some()
    }

    /// Whether textures of an arrangement have it.
    pub const fn is_of(self, dimension: Dimension) -> bool {
        match (self, dimension) {
            (TextureFunction::Height, dimension) => !matches!(
                dimension,
                Dimension::D1 | Dimension::D1Array | Dimension::Buffer
            ),
            (TextureFunction::Depth, dimension) => matches!(dimension, Dimension::D3),
            (TextureFunction::ArraySize, dimension) => dimension.is_array(),
            (TextureFunction::Levels, dimension) => dimension.has_levels(),
            (TextureFunction::Samples, dimension) => dimension.has_samples(),
            (TextureFunction::Sample(_) | TextureFunction::SampleCompare(_), dimension) => {
                dimension.axes() > 0
            }
            (TextureFunction::Gather { .. } | TextureFunction::GatherCompare(_), dimension) => {
                matches!(
                    dimension,
                    Dimension::D2 | Dimension::D2Array | Dimension::Cube | Dimension::CubeArray
                )
            }
            (
                TextureFunction::Read
                | TextureFunction::Write
                | TextureFunction::Width
                | TextureFunction::Fence,
                _,
            ) => true,
        }
    }

    /// How many operands it takes without a level.
    pub const fn operand_count(self, dimension: Dimension) -> usize {
        match self {
            TextureFunction::Read | TextureFunction::Sample(_) | TextureFunction::Gather { .. } => {
                dimension.coordinates()
            }
            TextureFunction::Write
            | TextureFunction::SampleCompare(_)
            | TextureFunction::GatherCompare(_) => dimension.coordinates() + 1,
            TextureFunction::Width
            | TextureFunction::Height
            | TextureFunction::Depth
            | TextureFunction::ArraySize
            | TextureFunction::Levels
            | TextureFunction::Samples
            | TextureFunction::Fence => 0,
        }
    }

    /// Whether it may be of a level.
    pub const fn takes_level(self, dimension: Dimension) -> bool {
        match self {
            TextureFunction::Read
            | TextureFunction::Write
            | TextureFunction::Sample(_)
            | TextureFunction::SampleCompare(_)
            | TextureFunction::Width
            | TextureFunction::Height
            | TextureFunction::Depth => dimension.has_levels(),
            TextureFunction::Gather { .. }
            | TextureFunction::GatherCompare(_)
            | TextureFunction::Fence
            | TextureFunction::ArraySize
            | TextureFunction::Levels
            | TextureFunction::Samples => false,
        }
    }

    /// What its operands are. Of a number of them that no such function has, all count as coordinates, but for the
    /// value of a write.
    pub fn operands(self, dimension: Dimension, args: &[Value]) -> TextureOperands<'_> {
        let has_value = self == TextureFunction::Write || self.compares();
        let (value, rest) = match args.split_last() {
            Some((value, rest)) if has_value => (Some(*value), rest),
            _without_a_value => (None, args),
        };
        let without = self.operand_count(dimension) - usize::from(has_value);
        let (level, at) = match rest.split_last() {
            Some((level, at)) if self.takes_level(dimension) && at.len() == without => {
                (Some(*level), at)
            }
            _without_a_level => (None, rest),
        };
        TextureOperands { at, level, value }
    }

    /// The type of what it gives of a texture, if it gives anything.
    pub const fn result(self, texture: TextureType) -> Option<Type> {
        match self {
            TextureFunction::Read
            | TextureFunction::Sample(_)
            | TextureFunction::SampleCompare(_) => Some(texture.texel()),
            TextureFunction::Gather { .. } | TextureFunction::GatherCompare(_) => {
                Some(Type::Vector(texture.component, 4))
            }
            TextureFunction::Write | TextureFunction::Fence => None,
            TextureFunction::Width
            | TextureFunction::Height
            | TextureFunction::Depth
            | TextureFunction::ArraySize
            | TextureFunction::Levels
            | TextureFunction::Samples => Some(Type::U32),
        }
    }
}

impl Kernel {
    /// The type of a texture; none if the object is none.
    pub fn texture(&self, memory: Memory) -> Option<TextureType> {
        match memory {
            Memory::Param(i) => match self.params.get(i as usize)?.kind {
                ParamKind::Texture(texture) => Some(texture),
                ParamKind::Buffer { .. }
                | ParamKind::Constant { .. }
                | ParamKind::Scalar { .. }
                | ParamKind::Threadgroup { .. }
                | ParamKind::Sampler => None,
            },
            Memory::Alloc(_) | Memory::Constant(_) => None,
        }
    }

    /// Whether a parameter is a sampler.
    pub fn is_sampler(&self, memory: Memory) -> bool {
        match memory {
            Memory::Param(i) => {
                let param = self.params.get(i as usize);
                param.is_some_and(|param| param.kind == ParamKind::Sampler)
            }
            Memory::Alloc(_) | Memory::Constant(_) => false,
        }
    }

    /// Whether it samples by parameters that are of normalized coordinates alone.
    pub(crate) fn has_normalized_params(&self) -> bool {
        // Most kernels have no samplers, and are not gone through.
        if !(self.params.iter()).any(|param| param.kind == ParamKind::Sampler) {
            return false;
        }
        let mut found = false;
        self.for_each_inst(&mut |inst| {
            if let InstKind::Texture { function, .. } = &inst.kind {
                let source = function.sampler();
                found |= matches!(source, Some(SamplerSource::NormalizedParam(_)));
            }
        });
        found
    }

    /// Whether any of its parameters is a texture or a sampler.
    pub fn has_textures(&self) -> bool {
        let is_texture =
            |kind: &ParamKind| matches!(kind, ParamKind::Texture(_) | ParamKind::Sampler);
        self.params.iter().any(|param| is_texture(&param.kind))
    }
}

impl KernelBuilder {
    /// A texture parameter.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let source = k.texture("source", TextureType::d2(Scalar::F32, TextureAccess::Sample));
    /// let middle = k.const_f32(0.5);
    /// let colour = k.texture_sample(source, Default::default(), &[middle, middle]);
    /// assert_eq!(k.ty(colour), Type::Vector(Scalar::F32, 4));
    /// ```
    pub fn texture(&mut self, name: &str, ty: TextureType) -> Memory {
        self.param(name, ParamKind::Texture(ty))
    }

    /// A sampler parameter.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let source = k.texture("source", TextureType::d2(Scalar::F32, TextureAccess::Sample));
    /// let how = k.sampler("how");
    /// let middle = k.const_f32(0.5);
    /// let colour = k.texture_sample(source, how, &[middle, middle]);
    /// assert_eq!(k.ty(colour), Type::Vector(Scalar::F32, 4));
    /// ```
    pub fn sampler(&mut self, name: &str) -> SamplerSource {
        SamplerSource::Param(self.param(name, ParamKind::Sampler))
    }

    /// The value of a texel, at integer coordinates, behind which the level may stand.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let image = k.texture("image", TextureType::d2(Scalar::U32, TextureAccess::Read));
    /// let (x, y) = (k.texture_width(image), k.texture_height(image));
    /// let beyond = k.texture_read(image, &[x, y]);
    /// assert_eq!(k.ty(beyond), Type::Vector(Scalar::U32, 4));
    /// ```
    pub fn texture_read(&mut self, texture: Memory, at: &[Value]) -> Value {
        self.texture_function(texture, TextureFunction::Read, at)
            .unwrap_or_else(|| unreachable!("a read gives a value"))
    }

    /// Writes a texel, at integer coordinates, behind which the level may stand.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let image = k.texture("image", TextureType::d2(Scalar::F32, TextureAccess::Write));
    /// let (x, y) = (k.thread_position_in_grid(Dim::X), k.thread_position_in_grid(Dim::Y));
    /// let grey = k.literal([0.5f32, 0.5, 0.5, 1.0]);
    /// k.texture_write(image, &[x, y], grey);
    /// ```
    pub fn texture_write(&mut self, texture: Memory, at: &[Value], value: Value) {
        let mut args = Values::from_slice(at);
        args.push(value);
        self.texture_function(texture, TextureFunction::Write, &args);
    }

    /// A sample of a texture, at coordinates of `f32`, behind which the level may stand;
    /// [`KernelBuilder::texture`] shows it.
    pub fn texture_sample(
        &mut self,
        texture: Memory,
        sampler: SamplerSource,
        at: &[Value],
    ) -> Value {
        self.texture_function(texture, TextureFunction::Sample(sampler.into()), at)
            .unwrap_or_else(|| unreachable!("a sample gives a value"))
    }

    /// A component (0 to 3) of the four texels that a linear sample of two dimensions, or of a cube, is made of: those at the
    /// lower left, the lower right, the upper right and the upper left.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let map = k.texture("map", TextureType::d2(Scalar::F32, TextureAccess::Sample));
    /// let middle = k.const_f32(0.5);
    /// let heights = k.texture_gather(map, 0, Default::default(), &[middle, middle]);
    /// # let _ = heights;
    /// ```
    pub fn texture_gather(
        &mut self,
        texture: Memory,
        component: u8,
        sampler: SamplerSource,
        at: &[Value],
    ) -> Value {
        let function = TextureFunction::Gather {
            component,
            sampling: sampler.into(),
        };
        self.texture_function(texture, function, at)
            .unwrap_or_else(|| unreachable!("a gather gives a value"))
    }

    /// How many slices a texture of three dimensions has, as `u32`.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let ty = TextureType::new(Dimension::D3, Scalar::F32, TextureAccess::Read);
    /// let volume = k.texture("volume", ty);
    /// let depth = k.texture_depth(volume);
    /// assert_eq!(k.ty(depth), Type::U32);
    /// ```
    pub fn texture_depth(&mut self, texture: Memory) -> Value {
        self.texture_function(texture, TextureFunction::Depth, &[])
            .unwrap_or_else(|| unreachable!("a query gives a value"))
    }

    /// How many elements an array of textures has, as `u32`.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let ty = TextureType::new(Dimension::D2Array, Scalar::F32, TextureAccess::Read);
    /// let frames = k.texture("frames", ty);
    /// let count = k.texture_array_size(frames);
    /// assert_eq!(k.ty(count), Type::U32);
    /// ```
    pub fn texture_array_size(&mut self, texture: Memory) -> Value {
        self.texture_function(texture, TextureFunction::ArraySize, &[])
            .unwrap_or_else(|| unreachable!("a query gives a value"))
    }

    /// How many levels a texture has, as `u32`.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let image = k.texture("image", TextureType::d2(Scalar::F32, TextureAccess::Read));
    /// let count = k.texture_levels(image);
    /// let (x, y) = (k.const_u32(0), k.const_u32(0));
    /// let beyond = k.texture_read(image, &[x, y, count]);
    /// assert_eq!(k.ty(beyond), Type::Vector(Scalar::F32, 4));
    /// ```
    pub fn texture_levels(&mut self, texture: Memory) -> Value {
        self.texture_function(texture, TextureFunction::Levels, &[])
            .unwrap_or_else(|| unreachable!("a query gives a value"))
    }

    /// How many texels a row of a texture has, as `u32`.
    pub fn texture_width(&mut self, texture: Memory) -> Value {
        self.texture_function(texture, TextureFunction::Width, &[])
            .unwrap_or_else(|| unreachable!("a query gives a value"))
    }

    /// How many rows a texture has, as `u32`.
    pub fn texture_height(&mut self, texture: Memory) -> Value {
        self.texture_function(texture, TextureFunction::Height, &[])
            .unwrap_or_else(|| unreachable!("a query gives a value"))
    }

    /// A function of a texture; gives what it gives. Whether it fits, the verifier says.
    pub fn texture_function(
        &mut self,
        texture: Memory,
        function: TextureFunction,
        args: &[Value],
    ) -> Option<Value> {
        // What is not a texture is reported by the verifier.
        let no_texture = TextureType::d2(Scalar::F32, TextureAccess::Read);
        let ty = self.kernel().texture(texture).unwrap_or(no_texture);
        let function = self.of_gradient(ty, function, args);
        let kind = InstKind::Texture {
            texture,
            function,
            args: Values::from_slice(args),
        };
        let result = function.result(ty);
        self.push(kind, result.as_slice()).first().copied()
    }
}

/// The type of what an atomic acts on at a place in a texture, which has one coordinate as its index and the others as
/// its path; none if the place is not a texel.
pub(crate) fn atomic_texel(kernel: &Kernel, place: &Place) -> Option<Type> {
    let ty = kernel.texture(place.memory)?;
    let is_coordinate = |step: &Step| match step {
        Step::Index(value) => kernel.ty(*value).is_integer_scalar(),
        Step::Field(_) => false,
    };
    let is_texel = place.width == Width::One
        && place.path.len() + 1 == ty.dimension.coordinates()
        && place.path.iter().all(is_coordinate);
    is_texel.then_some(Type::Scalar(ty.component))
}

/// The coordinates of the texel that an atomic acts on.
pub fn atomic_coordinates(place: &Place) -> Values {
    let others = place.path.iter().filter_map(|step| match step {
        Step::Index(value) => Some(*value),
        Step::Field(_) => None,
    });
    std::iter::once(place.index).chain(others).collect()
}
