//! Textures: their types, and the functions that reach them.
//!
//! A texture is a parameter in `device` memory that nothing reaches but an [`InstKind::Texture`]. What its
//! texels are made of, the dispatch says: a kernel knows their component type only.
//!
//! Deliberately absent: pixel formats and the formulas of samples (the crate `invar-texture`).

use std::fmt;

use invar_texture::{Coding, Numbers, PixelFormat, TextureShape};
use serde::{Deserialize, Serialize};

use crate::builder::KernelBuilder;
use crate::inst::{InstKind, Memory, Value, Values};
use crate::module::{Access, Kernel, ParamKind};
use crate::ops::Dim;
use crate::types::{ElementType, Scalar, Type};

pub use invar_texture::{Address, Coordinates, Filter, Sampler};

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
}

impl Dimension {
    /// Every arrangement.
    pub const ALL: [Dimension; 4] = [
        Dimension::D1,
        Dimension::D2,
        Dimension::D2Array,
        Dimension::D3,
    ];

    /// The word for it in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Dimension::D1 => "texture1d",
            Dimension::D2 => "texture2d",
            Dimension::D2Array => "texture2d_array",
            Dimension::D3 => "texture3d",
        }
    }

    /// How many coordinates a texel has, the element of an array included.
    pub const fn coordinates(self) -> usize {
        match self {
            Dimension::D1 => 1,
            Dimension::D2 => 2,
            Dimension::D2Array | Dimension::D3 => 3,
        }
    }

    /// Whether textures have a size in a direction, other than 1.
    pub const fn has_extent(self, direction: Dim) -> bool {
        (direction as usize) < self.coordinates()
    }

    /// How many coordinates of a sample lie between texels.
    pub const fn axes(self) -> usize {
        match self {
            Dimension::D1 => 1,
            Dimension::D2 | Dimension::D2Array => 2,
            Dimension::D3 => 3,
        }
    }

    /// Why a texture of that shape is none of this arrangement, if it is not.
    pub fn refuses(self, shape: TextureShape) -> Option<String> {
        let (rows, slices) = match self {
            Dimension::D1 => (false, false),
            Dimension::D2 => (true, false),
            Dimension::D2Array | Dimension::D3 => (true, true),
        };
        if !rows && shape.height > 1 {
            return Some(format!("has {} rows", shape.height));
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
    /// What is read and written: `f32`, `i32` or `u32`.
    pub component: Scalar,
    /// What a kernel may do with it.
    pub access: TextureAccess,
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
        }
    }

    /// The type of a texel's value: four components.
    pub const fn texel(self) -> Type {
        Type::Vector(self.component, 4)
    }

    /// The same as an element of memory.
    pub(crate) fn element(self) -> &'static ElementType {
        static TEXELS: [ElementType; 3] = [
            ElementType::Value(Type::Vector(Scalar::F32, 4)),
            ElementType::Value(Type::Vector(Scalar::I32, 4)),
            ElementType::Value(Type::Vector(Scalar::U32, 4)),
        ];
        match self.component {
            Scalar::I32 => &TEXELS[1],
            Scalar::U32 => &TEXELS[2],
            _float => &TEXELS[0],
        }
    }

    /// Why there is no such texture, if there is none.
    pub fn defect(self) -> Option<String> {
        match self.component {
            Scalar::F32 | Scalar::I32 | Scalar::U32 => None,
            other => Some(format!(
                "a texture has components of f32, i32 or u32, not {other}"
            )),
        }
    }
}

impl fmt::Display for TextureType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dimension, access) = (self.dimension.name(), self.access.name());
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

/// The component type of kernels' textures of a format.
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

/// A function of a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TextureFunction {
    /// Gives a texel's value; its coordinates are integers of any type, taken mathematically (B4).
    Read,
    /// Writes a texel: its coordinates, and then its value.
    Write,
    /// Gives a sample at coordinates of `f32`.
    Sample(Sampler),
    /// How many texels a row has.
    Width,
    /// How many rows a slice has.
    Height,
    /// How many slices a texture of three dimensions has.
    Depth,
    /// How many elements an array has.
    ArraySize,
    /// Gives a component of the four texels that a linear sample of two dimensions is made of.
    Gather {
        /// Which: 0 to 3.
        component: u8,
        /// How coordinates lead to texels; its filter means nothing.
        sampler: Sampler,
    },
}

impl TextureFunction {
    /// The words of all functions.
    pub const NAMES: [&str; 8] = [
        "texture_read",
        "texture_write",
        "texture_sample",
        "texture_width",
        "texture_height",
        "texture_depth",
        "texture_array_size",
        "texture_gather",
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
            | TextureFunction::Gather { .. } => None,
        }
    }

    /// Whether it asks for a size, and touches no texel.
    pub const fn is_query(self) -> bool {
        self.extent().is_some()
    }

    /// Whether it takes coordinates between texels.
    pub const fn samples(self) -> bool {
        matches!(
            self,
            TextureFunction::Sample(_) | TextureFunction::Gather { .. }
        )
    }

    /// Whether textures of an arrangement have it.
    pub const fn is_of(self, dimension: Dimension) -> bool {
        match (self, dimension) {
            (TextureFunction::Height, dimension) => !matches!(dimension, Dimension::D1),
            (TextureFunction::Depth, dimension) => matches!(dimension, Dimension::D3),
            (TextureFunction::ArraySize, dimension) => matches!(dimension, Dimension::D2Array),
            (TextureFunction::Gather { .. }, dimension) => {
                matches!(dimension, Dimension::D2 | Dimension::D2Array)
            }
            (
                TextureFunction::Read
                | TextureFunction::Write
                | TextureFunction::Sample(_)
                | TextureFunction::Width,
                _,
            ) => true,
        }
    }

    /// How many operands it takes.
    pub const fn operand_count(self, dimension: Dimension) -> usize {
        match self {
            TextureFunction::Read | TextureFunction::Sample(_) | TextureFunction::Gather { .. } => {
                dimension.coordinates()
            }
            TextureFunction::Write => dimension.coordinates() + 1,
            TextureFunction::Width
            | TextureFunction::Height
            | TextureFunction::Depth
            | TextureFunction::ArraySize => 0,
        }
    }

    /// The type of what it gives of a texture, if it gives anything.
    pub const fn result(self, texture: TextureType) -> Option<Type> {
        match self {
            TextureFunction::Read | TextureFunction::Sample(_) | TextureFunction::Gather { .. } => {
                Some(texture.texel())
            }
            TextureFunction::Write => None,
            TextureFunction::Width
            | TextureFunction::Height
            | TextureFunction::Depth
            | TextureFunction::ArraySize => Some(Type::U32),
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
                | ParamKind::Threadgroup { .. } => None,
            },
            Memory::Alloc(_) | Memory::Constant(_) => None,
        }
    }

    /// Whether any of its parameters is a texture.
    pub fn has_textures(&self) -> bool {
        let is_texture = |kind: &ParamKind| matches!(kind, ParamKind::Texture(_));
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

    /// The value of a texel, at integer coordinates.
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

    /// Writes a texel, at integer coordinates.
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

    /// A sample of a texture, at coordinates of `f32`; [`KernelBuilder::texture`] shows it.
    pub fn texture_sample(&mut self, texture: Memory, sampler: Sampler, at: &[Value]) -> Value {
        self.texture_function(texture, TextureFunction::Sample(sampler), at)
            .unwrap_or_else(|| unreachable!("a sample gives a value"))
    }

    /// A component (0 to 3) of the four texels that a linear sample of two dimensions is made of: those at the
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
        sampler: Sampler,
        at: &[Value],
    ) -> Value {
        let function = TextureFunction::Gather { component, sampler };
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
        // What is no texture is reported by the verifier.
        let no_texture = TextureType::d2(Scalar::F32, TextureAccess::Read);
        let ty = self.kernel().texture(texture).unwrap_or(no_texture);
        let kind = InstKind::Texture {
            texture,
            function,
            args: Values::from_slice(args),
        };
        let result = function.result(ty);
        self.push(kind, result.as_slice()).first().copied()
    }
}
