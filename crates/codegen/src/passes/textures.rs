//! Textures as buffers: for targets that have no way of their own to reach texels as the reference machine does.
//!
//! Each texture parameter becomes a buffer of words, one, two or four for a texel (a byte, 16 or 32 bits), and the
//! kernel gets one more parameter for it behind all others, in the order of the textures: a `u32x3` of its width,
//! height and depth. Functions become the formulas of `invar-texture` written out, for the pixel formats and the numbers
//! of levels that a dispatch gives. Loads and stores never leave the buffer (B1, B2); what is beyond an edge, but in the buffer, conditions
//! keep away. What is made is free
//! of products that are added to something, so that contraction changes nothing of it (A8).
//!
//! A barrier that orders textures orders device memory instead, which is more: on a device nothing tells.

use std::sync::Arc;

use invar_ir::requires::Comparison;
use invar_ir::rewrite::rewrite;
use invar_ir::{
    Const, ConstantArray, Diagnostics, ElementType, Imm, Inst, InstKind, Kernel, KernelBuilder,
    LaunchNumber, Memory, Module, Op, Param, ParamKind, Place, SamplerSource, Scalar, Spaces,
    TextureFunction, TextureOperands, TextureType, Type, Value, ValueInfo, Width,
};
use invar_texture::sample::{GATHERED, LIMIT};
use invar_texture::{
    Address, Border, Coding, Compare, Coordinates, Filter, Mip, PixelFormat, Sampler, TextureShape,
    shared, srgb,
};

/// What is said of a texture where a kernel is written as text of a shading language by itself.
pub const NOT_WRITTEN: &str =
    "textures are written for a pixel format, which only a dispatch gives; run the kernel instead";
/// Why a writer never comes to a texture.
pub(crate) const REFUSED: &str = "a kernel with textures has been refused";

/// Texels that a sampler has zeros for have this number, which no buffer reaches.
const BEYOND: u32 = u32::MAX;

/// What a kernel is written out for of each texture and sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A texture.
    Texture {
        /// What a texel is.
        format: PixelFormat,
        /// How many levels it has.
        levels: u32,
        /// How many samples a texel has.
        samples: u32,
    },
    /// A sampler.
    Sampler(Sampler),
}

impl From<TextureShape> for Form {
    fn from(shape: TextureShape) -> Form {
        Form::Texture {
            format: shape.format,
            levels: shape.levels,
            samples: shape.samples,
        }
    }
}

impl Form {
    const fn format(self) -> Option<PixelFormat> {
        match self {
            Form::Texture { format, .. } => Some(format),
            Form::Sampler(_) => None,
        }
    }

    const fn sampler(self) -> Option<Sampler> {
        match self {
            Form::Texture { .. } => None,
            Form::Sampler(sampler) => Some(sampler),
        }
    }
}

/// Writes out the functions of the textures of a verified module's kernel, for the form of each: by the places of
/// the parameters, none where a parameter is neither a texture nor a sampler. Of a kernel without textures nothing changes.
///
/// # Errors
/// What the builder found wrong with what this built, which is nothing.
pub fn expand(
    module: Module,
    kernel: usize,
    forms: &[Option<Form>],
) -> Result<Module, Diagnostics> {
    if !module.kernels[kernel].has_textures() {
        return Ok(module);
    }
    let mut module = module;
    let tables = Tables::add(&mut module, forms);
    let found = &mut module.kernels[kernel];
    // Every dispatch is asked what is required of it before; a buffer has no such size.
    found.requires.retain(|r| {
        let numbers = r.comparison().map(Comparison::numbers).unwrap_or_default();
        !numbers
            .iter()
            .any(|n| matches!(n, LaunchNumber::Texels(..)))
    });
    let mut textures: Vec<Option<Texture>> = Vec::new();
    for (number, form) in forms.iter().enumerate() {
        let texture = match (&found.params[number].kind, form) {
            (ParamKind::Texture(ty), Some(form @ Form::Texture { .. })) => {
                let ty = *ty;
                declare(found, number, *form, ty)
            }
            (ParamKind::Sampler, Some(Form::Sampler(_))) => {
                declare_code(found, number);
                None
            }
            _no_texture => None,
        };
        textures.push(texture);
    }
    rewrite(module, kernel, &mut |b, inst| {
        if let InstKind::Barrier { scope, spaces } = inst.kind {
            if !spaces.contains(Spaces::TEXTURE) {
                return None;
            }
            let others = Spaces(spaces.0 & !Spaces::TEXTURE.0);
            b.barrier(scope, others.with(Spaces::DEVICE));
            return Some(Default::default());
        }
        call(b, inst, &textures, (forms, tables))
    })
}

/// Makes a buffer of a texture parameter, and adds the parameter of its size.
fn declare(kernel: &mut Kernel, number: usize, form: Form, ty: TextureType) -> Option<Texture> {
    let Form::Texture {
        format,
        levels,
        samples,
    } = form
    else {
        return None;
    };
    let words = Words::of(format);
    kernel.params[number].kind = ParamKind::Buffer {
        access: ty.access.memory(),
        element: words.scalar.into(),
    };
    let name: Arc<str> =
        unused_name(kernel, &format!("{}_size", kernel.params[number].name)).into();
    let value = Value(kernel.values.len() as u32);
    kernel.values.push(ValueInfo {
        ty: Type::Vector(Scalar::U32, 3),
        name: Some(name.clone()),
    });
    let span = kernel.params[number].span;
    let kind = ParamKind::Scalar { value };
    kernel.params.push(Param {
        name,
        kind,
        binding: None,
        span,
    });
    Some(Texture {
        memory: Memory::Param(number as u32),
        size: kernel.params.len() - 1,
        format,
        levels,
        samples,
        ty,
        words,
    })
}

/// Makes a number of a sampler parameter, which is its code: nothing uses it.
fn declare_code(kernel: &mut Kernel, number: usize) {
    let value = Value(kernel.values.len() as u32);
    kernel.values.push(ValueInfo {
        ty: Type::U32,
        name: Some(kernel.params[number].name.clone()),
    });
    kernel.params[number].kind = ParamKind::Scalar { value };
}

/// A name that nothing in the kernel has.
fn unused_name(kernel: &Kernel, wish: &str) -> String {
    let values = kernel.values.iter().filter_map(|v| v.name.as_deref());
    let params = kernel.params.iter().map(|p| &*p.name);
    let allocs = kernel.allocs.iter().map(|a| &*a.name);
    let taken: std::collections::HashSet<&str> = values.chain(params).chain(allocs).collect();
    let mut name = wish.to_string();
    while taken.contains(&*name) {
        name.push('_');
    }
    name
}

/// The words that a texel is in memory.
#[derive(Clone, Copy)]
struct Words {
    scalar: Scalar,
    count: u8,
}

impl Words {
    fn of(format: PixelFormat) -> Words {
        let (scalar, count) = match format.texel_bytes() {
            1 => (Scalar::U8, 1),
            2 => (Scalar::U16, 1),
            bytes => (Scalar::U32, (bytes / 4) as u8),
        };
        Words { scalar, count }
    }
}

/// A texture parameter.
#[derive(Clone, Copy)]
struct Texture {
    memory: Memory,
    /// The parameter that holds its size.
    size: usize,
    format: PixelFormat,
    levels: u32,
    samples: u32,
    ty: TextureType,
    words: Words,
}

/// Where the tables of sRGB are, if a format needs them.
#[derive(Clone, Copy)]
struct Tables {
    decoded: Memory,
    thresholds: Memory,
}

impl Tables {
    fn add(module: &mut Module, forms: &[Option<Form>]) -> Option<Tables> {
        let coded = |f: &Form| f.format().is_some_and(|f| f.coding() == Coding::Srgb);
        if !forms.iter().flatten().any(coded) {
            return None;
        }
        Some(Tables {
            decoded: table(module, "srgb_decoded", &srgb::DECODED),
            thresholds: table(module, "srgb_thresholds", &srgb::THRESHOLDS),
        })
    }
}

/// A program-scope constant of the floats of these bits.
fn table(module: &mut Module, wish: &str, bits: &[u32]) -> Memory {
    let mut name = wish.to_string();
    while module.constants.iter().any(|c| *c.name == *name) {
        name.push('_');
    }
    module.constants.push(ConstantArray {
        name: name.into(),
        element: ElementType::from(Scalar::F32),
        length: bits.len() as u32,
        values: bits
            .iter()
            .map(|b| Const::from(f32::from_bits(*b)))
            .collect(),
        span: invar_ir::Span::NONE,
    });
    Memory::Constant(module.constants.len() as u32 - 1)
}

/// Builds what a function of a texture comes to.
fn call(
    b: &mut KernelBuilder,
    inst: &Inst,
    textures: &[Option<Texture>],
    (forms, tables): (&[Option<Form>], Option<Tables>),
) -> invar_ir::rewrite::Replacement {
    let InstKind::Texture {
        texture: Memory::Param(number),
        function,
        args,
    } = &inst.kind
    else {
        return None;
    };
    let texture = textures.get(*number as usize).copied().flatten()?;
    let ParamKind::Scalar { value: size } = b.kernel().params[texture.size].kind else {
        unreachable!("the size of a texture is a value")
    };
    let given = |source| match source {
        SamplerSource::Constant(sampler) => sampler,
        SamplerSource::Param(param) => {
            let form = match param {
                Memory::Param(place) => forms.get(place as usize).copied().flatten(),
                Memory::Alloc(_) | Memory::Constant(_) => None,
            };
            let sampler = form.and_then(Form::sampler);
            sampler.unwrap_or_else(|| unreachable!("a sampler parameter has a sampler"))
        }
    };
    let mut writer = Writer {
        b,
        texture,
        size,
        tables,
        level: None,
        compare: None,
    };
    let TextureOperands { at, level, value } = function.operands(texture.ty.dimension, args);
    let result = match *function {
        TextureFunction::Width => writer.extent_of_level(0, level),
        TextureFunction::Height => writer.extent_of_level(1, level),
        TextureFunction::Depth => writer.extent(2),
        TextureFunction::ArraySize => writer.elements(),
        TextureFunction::Levels => writer.u32(texture.levels),
        TextureFunction::Samples => writer.u32(texture.samples),
        TextureFunction::Gather { component, sampler } => {
            writer.gather(given(sampler), at, usize::from(component))
        }
        TextureFunction::Read => writer.read(at, level),
        TextureFunction::Sample(sampler) => writer.sample(given(sampler), at, level),
        TextureFunction::SampleCompare(sampler) | TextureFunction::GatherCompare(sampler) => {
            let sampler = given(sampler);
            writer.compare = sampler.compare.zip(value);
            match function {
                TextureFunction::GatherCompare(_) => writer.gather(sampler, at, 0),
                _sample => writer.sample(sampler, at, level),
            }
        }
        // Within a thread everything happens in program order as it is (O1).
        TextureFunction::Fence => return Some(Default::default()),
        TextureFunction::Write => {
            let value = value.unwrap_or_else(|| unreachable!("a write has a value"));
            writer.write(at, level, value);
            return Some(Default::default());
        }
    };
    Some([result].into_iter().collect())
}

/// A face of a cube: which axis it lies on, x where nothing is, and whether it looks along the negative one.
#[derive(Clone, Copy)]
struct Face {
    is_z: Value,
    /// If it is not z.
    is_y: Value,
    negative: Value,
}

/// What a coordinate of a sample leads to along an axis: the indices, and where there is no texel.
struct Axis {
    indices: [Value; 2],
    /// Whether there is one: always, where nothing is said.
    inside: [Option<Value>; 2],
    weight: Option<Value>,
}

/// Where a channel's code lies in a word.
#[derive(Clone, Copy)]
struct Field {
    /// Its lowest bit.
    shift: u32,
    bits: u32,
    /// Bits of the word.
    word_bits: u32,
}

/// Writes one function out.
struct Writer<'a> {
    b: &'a mut KernelBuilder,
    texture: Texture,
    /// Width, height and depth.
    size: Value,
    tables: Option<Tables>,
    /// The level that is reached; the first, if none is said.
    level: Option<Level>,
    /// What texels are compared with.
    compare: Option<(Compare, Value)>,
}

/// A level of a texture that has it.
#[derive(Clone, Copy)]
struct Level {
    /// Width and height.
    extents: [Value; 2],
    /// The number of its first texel.
    start: Value,
}

impl Writer<'_> {
    // ---- single operations ----

    fn u32(&mut self, value: u32) -> Value {
        self.b.const_u32(value)
    }

    fn i32(&mut self, value: i32) -> Value {
        self.b.const_i32(value)
    }

    fn f32(&mut self, value: f32) -> Value {
        self.b.const_f32(value)
    }

    fn cast(&mut self, to: Scalar, value: Value) -> Value {
        if self.b.ty(value) == Type::Scalar(to) {
            return value;
        }
        self.b.op(Op::Cast, Type::Scalar(to), &[value])
    }

    fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.b.op(op, Imm::None, args)
    }

    /// `condition ? yes : no`.
    fn select(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        self.op(Op::Select, &[no, yes, condition])
    }

    fn bits(&mut self, to: Scalar, value: Value) -> Value {
        self.b.op(Op::AsType, Type::Scalar(to), &[value])
    }

    /// How much a coordinate can count in the level that is reached, by what it counts
    /// ([`invar_ir::Dimension::counted`]).
    fn extent(&mut self, axis: u32) -> Value {
        let slices = self.texture.ty.dimension.slices(self.texture.samples);
        match (self.level, axis, slices) {
            (Some(level), 0 | 1, _) => level.extents[axis as usize],
            (_, 2, Some(slices)) => self.u32(slices),
            (_, 3, Some(slices)) => {
                let depth = self.first_extent(2);
                let slices = self.u32(slices);
                self.op(Op::Div, &[depth, slices])
            }
            (_, 3, None) => self.first_extent(2),
            _first_level => self.first_extent(axis),
        }
    }

    /// How many elements an array has.
    fn elements(&mut self) -> Value {
        self.extent(3)
    }

    /// Width, height or depth, by the number of the axis.
    fn first_extent(&mut self, axis: u32) -> Value {
        let axis = self.u32(axis);
        self.op(Op::Extract, &[self.size, axis])
    }

    // ---- levels ----

    /// `max(extent >> level, 1)`.
    fn shrunk(&mut self, axis: u32, level: Value) -> Value {
        let extent = self.first_extent(axis);
        let one = self.u32(1);
        let shrunk = self.op(Op::Shr, &[extent, level]);
        self.op(Op::Max, &[shrunk, one])
    }

    /// Goes to a level, which the texture has.
    fn enter(&mut self, level: Value) {
        if self.texture.levels == 1 {
            return;
        }
        self.level = None;
        let mut start = self.u32(0);
        for before in 0..self.texture.levels - 1 {
            let before = self.u32(before);
            let (width, height) = (self.shrunk(0, before), self.shrunk(1, before));
            let depth = self.first_extent(2);
            let slice = self.op(Op::Mul, &[width, height]);
            let texels = self.op(Op::Mul, &[slice, depth]);
            let behind = self.op(Op::Lt, &[before, level]);
            let none = self.u32(0);
            let skipped = self.select(behind, texels, none);
            start = self.op(Op::Add, &[start, skipped]);
        }
        let extents = [self.shrunk(0, level), self.shrunk(1, level)];
        self.level = Some(Level { extents, start });
    }

    /// Goes to a level that a kernel names, if it names one, and gives whether it is there; else to the last.
    fn enter_named(&mut self, level: Option<Value>) -> Option<Value> {
        let level = level?;
        let count = self.u32(self.texture.levels);
        let (level, inside) = self.coordinate(level, count);
        let last = self.u32(self.texture.levels - 1);
        let level = self.op(Op::Min, &[level, last]);
        self.enter(level);
        Some(inside)
    }

    /// An extent of a level, 0 of one that is not there.
    fn extent_of_level(&mut self, axis: u32, level: Option<Value>) -> Value {
        let inside = self.enter_named(level);
        let extent = self.extent(axis);
        match inside {
            Some(inside) => {
                let none = self.u32(0);
                self.select(inside, extent, none)
            }
            None => extent,
        }
    }

    // ---- places ----

    /// A coordinate as `u32`, and whether it is below an extent as a mathematical integer (B4). All that is
    /// negative becomes more than any extent.
    fn coordinate(&mut self, coordinate: Value, extent: Value) -> (Value, Value) {
        let wide = self.b.ty(coordinate).component_scalar().bits() == 64;
        if wide {
            let whole = self.cast(Scalar::U64, coordinate);
            let limit = self.cast(Scalar::U64, extent);
            let inside = self.op(Op::Lt, &[whole, limit]);
            return (self.cast(Scalar::U32, whole), inside);
        }
        let number = self.cast(Scalar::U32, coordinate);
        (number, self.op(Op::Lt, &[number, extent]))
    }

    /// The number of the texel at integer coordinates, and whether there is one; else it is any number.
    fn texel_at(&mut self, at: &[Value], level: Option<Value>) -> (Value, Value) {
        let mut places = Vec::new();
        let mut all_inside = self.enter_named(level);
        for (axis, coordinate) in self.texture.ty.dimension.counted().iter().zip(at) {
            let extent = self.extent(*axis as u32);
            let (place, inside) = self.coordinate(*coordinate, extent);
            places.push(place);
            all_inside = Some(match all_inside {
                Some(others) => self.op(Op::And, &[others, inside]),
                None => inside,
            });
        }
        let number = self.number(&places);
        match all_inside {
            Some(inside) => (number, inside),
            None => unreachable!("every texture has an axis"),
        }
    }

    /// The number of the texel at these places, of one integer type: slice after slice, row after row.
    fn number(&mut self, places: &[Value]) -> Value {
        let scalar = self.b.ty(places[0]).component_scalar();
        let mut number = None;
        let counted = self.texture.ty.dimension.counted();
        for (axis, place) in counted.iter().zip(places).rev() {
            number = Some(match number {
                Some(above) => {
                    let extent = self.extent(*axis as u32);
                    let extent = self.cast(scalar, extent);
                    let before = self.op(Op::Mul, &[above, extent]);
                    self.op(Op::Add, &[before, *place])
                }
                None => *place,
            });
        }
        let Some(number) = number else {
            unreachable!("every texture has an axis")
        };
        match self.level {
            Some(level) => {
                let start = self.cast(scalar, level.start);
                self.op(Op::Add, &[start, number])
            }
            None => number,
        }
    }

    fn place(&self, texel: Value) -> Place {
        Place {
            width: match self.texture.words.count {
                1 => Width::One,
                count => Width::Group(count),
            },
            ..Place::element(self.texture.memory, texel)
        }
    }

    // ---- functions ----

    fn read(&mut self, at: &[Value], level: Option<Value>) -> Value {
        let (texel, inside) = self.texel_at(at, level);
        // The number grows evenly from thread to thread, which a condition in it would hide: beyond the edges
        // it may lead to any texel, of which nothing is taken.
        let words = self.load_words(texel);
        let zero = Const {
            scalar: self.texture.words.scalar,
            bits: 0,
        };
        let zero = self.b.constant(zero);
        let words: Vec<Value> = words
            .into_iter()
            .map(|word| self.select(inside, word, zero))
            .collect();
        let mut components = self.decode(&words);
        // Beyond the edges they are 0 too.
        for (number, component) in (0..).zip(&mut components) {
            let missing = self.texture.format.missing(number);
            if number >= self.texture.format.channels() && missing != 0 {
                let none = self.component(0);
                *component = self.select(inside, *component, none);
            }
        }
        self.vector(components)
    }

    fn write(&mut self, at: &[Value], level: Option<Value>, value: Value) {
        let (texel, inside) = self.texel_at(at, level);
        let wide = self.texture.ty.wide_component();
        let components = [0, 1, 2, 3].map(|c| {
            let c = self.u32(c);
            let component = self.op(Op::Extract, &[value, c]);
            self.cast(wide, component)
        });
        let words = self.encode(components);
        let stored = match words[..] {
            [word] => word,
            _ => {
                let ty = Type::Vector(self.texture.words.scalar, words.len() as u8);
                self.b.op(Op::Construct, ty, &words)
            }
        };
        let place = self.place(texel);
        self.b.if_(inside, |b| b.store(place, stored));
    }

    /// A texel's value of what the format gives.
    fn vector(&mut self, components: [Value; 4]) -> Value {
        match self.texture.ty.is_depth {
            true => components[0],
            false => self.four(components),
        }
    }

    /// Four components of what the format gives.
    fn four(&mut self, components: [Value; 4]) -> Value {
        let scalar = self.texture.ty.component;
        let components = components.map(|c| self.narrowed(c));
        self.b
            .op(Op::Construct, Type::Vector(scalar, 4), &components)
    }

    /// What a format gives as a component: of 16 bits the nearest that there is.
    fn narrowed(&mut self, component: Value) -> Value {
        let nearest = match self.texture.ty.component {
            Scalar::I16 => {
                let (least, most) = (self.i32(i16::MIN.into()), self.i32(i16::MAX.into()));
                let above = self.op(Op::Max, &[component, least]);
                self.op(Op::Min, &[above, most])
            }
            Scalar::U16 => {
                let most = self.u32(u16::MAX.into());
                self.op(Op::Min, &[component, most])
            }
            _float_or_wide => component,
        };
        self.cast(self.texture.ty.component, nearest)
    }

    /// The words of a texel by its number; zeros of one that is beyond all.
    fn load_words(&mut self, texel: Value) -> Vec<Value> {
        let place = self.place(texel);
        let loaded = self.b.load(place);
        match self.texture.words.count {
            1 => vec![loaded],
            count => (0..u32::from(count))
                .map(|i| {
                    let i = self.u32(i);
                    self.op(Op::Extract, &[loaded, i])
                })
                .collect(),
        }
    }

    /// As [`invar_texture::sample`], operation by operation.
    fn sample(&mut self, sampler: Sampler, at: &[Value], lod: Option<Value>) -> Value {
        let several = self.texture.levels > 1 && sampler.mip != Mip::None;
        let (Some(lod), true) = (lod, several) else {
            let sampled = self.sample_level(sampler, at);
            return self.vector(sampled);
        };
        let zero = self.f32(0.0);
        let last = self.f32((self.texture.levels - 1) as f32);
        let lod = self.op(Op::Fmax, &[lod, zero]);
        let lod = self.op(Op::Fmin, &[lod, last]);
        if sampler.mip == Mip::Nearest {
            let (half, one) = (self.f32(0.5), self.f32(1.0));
            let level = self.op(Op::Add, &[lod, half]);
            let level = self.op(Op::Ceil, &[level]);
            let level = self.op(Op::Sub, &[level, one]);
            let level = self.op(Op::Fmax, &[level, zero]);
            let level = self.cast(Scalar::U32, level);
            self.enter(level);
            let sampled = self.sample_level(sampler, at);
            return self.vector(sampled);
        }
        let base = self.op(Op::Floor, &[lod]);
        let weight = self.op(Op::Sub, &[lod, base]);
        let level = self.cast(Scalar::U32, base);
        self.enter(level);
        let first = self.sample_level(sampler, at);
        let (one, last) = (self.u32(1), self.u32(self.texture.levels - 1));
        let next = self.op(Op::Add, &[level, one]);
        let next = self.op(Op::Min, &[next, last]);
        self.enter(next);
        let second = self.sample_level(sampler, at);
        let mixed = [0, 1, 2, 3].map(|c| self.between(first[c], second[c], weight));
        self.vector(mixed)
    }

    /// A sample of the level that is reached.
    fn sample_level(&mut self, sampler: Sampler, args: &[Value]) -> [Value; 4] {
        if self.texture.ty.dimension.is_cube() {
            return self.sample_cube(sampler, args);
        }
        let (axes, element) = self.axes(sampler, args);
        let count = match sampler.filter {
            Filter::Nearest => 1,
            Filter::Linear => 1 << axes.len(),
        };
        let mut left: Vec<[Value; 4]> = (0..count)
            .map(|corner| self.corner(sampler, &axes, element, corner))
            .collect();
        for (i, axis) in axes.iter().enumerate() {
            let Some(weight) = axis.weight else { break };
            for corner in (0..count).filter(|corner| corner >> i & 1 == 0) {
                let (first, second) = (left[corner], left[corner | 1 << i]);
                left[corner] = [0, 1, 2, 3].map(|c| self.between(first[c], second[c], weight));
            }
        }
        self.there(element, left[0])
    }

    fn gather(&mut self, sampler: Sampler, args: &[Value], component: usize) -> Value {
        let linear = Sampler {
            filter: Filter::Linear,
            ..sampler
        };
        let (axes, element) = self.axes(linear, args);
        let gathered =
            GATHERED.map(|corner| self.corner(sampler, &axes, element, corner)[component]);
        let gathered = self.there(element, gathered);
        self.four(gathered)
    }

    /// What the coordinates of a sample lead to; and of an array the element, and whether there is one.
    fn axes(&mut self, sampler: Sampler, args: &[Value]) -> (Vec<Axis>, Option<(Value, Value)>) {
        let count = self.texture.ty.dimension.axes();
        let axes = (0..count)
            .map(|axis| self.axis(sampler, args[axis], axis as u32))
            .collect();
        let element = args.get(count).map(|element| {
            let extent = self.elements();
            let (element, inside) = self.coordinate(*element, extent);
            (self.cast(Scalar::I32, element), inside)
        });
        (axes, element)
    }

    /// These components, or zeros where an array has no such element.
    fn there(&mut self, element: Option<(Value, Value)>, components: [Value; 4]) -> [Value; 4] {
        let Some((_, inside)) = element else {
            return components;
        };
        let zero = self.component(0);
        components.map(|c| self.select(inside, c, zero))
    }

    /// `fma(weight, second - first, first)`.
    fn between(&mut self, first: Value, second: Value, weight: Value) -> Value {
        let difference = self.op(Op::Sub, &[second, first]);
        self.op(Op::Fma, &[weight, difference, first])
    }

    /// The texel at one of the two indices of each axis, by the bits of the corner.
    fn corner(
        &mut self,
        sampler: Sampler,
        axes: &[Axis],
        element: Option<(Value, Value)>,
        corner: usize,
    ) -> [Value; 4] {
        let which = |i: usize| corner >> i & 1;
        let mut places: Vec<Value> = Vec::new();
        let mut all_inside = None;
        for (i, axis) in axes.iter().enumerate() {
            places.push(axis.indices[which(i)]);
            all_inside = match (all_inside, axis.inside[which(i)]) {
                (Some(others), Some(inside)) => Some(self.op(Op::And, &[others, inside])),
                (one, other) => one.or(other),
            };
        }
        places.extend(element.map(|(element, _)| element));
        let number = self.number(&places);
        let number = self.cast(Scalar::U32, number);
        let texel = match all_inside {
            Some(inside) => {
                let beyond = self.u32(BEYOND);
                self.select(inside, number, beyond)
            }
            None => number,
        };
        let border = match all_inside {
            Some(inside) if sampler.address == Address::ClampToBorder => {
                Some((inside, sampler.border))
            }
            _without_a_border => None,
        };
        self.sampled_texel(texel, border)
    }

    /// What a sample is made of of a texel: of one that compares, whether it holds.
    fn sampled_texel(&mut self, texel: Value, border: Option<(Value, Border)>) -> [Value; 4] {
        let words = self.load_words(texel);
        let mut components = self.decode(&words);
        if let Some((inside, border)) = border {
            let numbers = self.texture.format.numbers();
            for (number, component) in (0..).zip(&mut components) {
                let beyond = self.component(border.component(number, numbers));
                *component = self.select(inside, *component, beyond);
            }
        }
        let Some((compare, reference)) = self.compare else {
            return components;
        };
        let (zero, one) = (self.f32(0.0), self.f32(1.0));
        let op = match compare {
            Compare::Never => return [zero; 4],
            Compare::Always => return [one, zero, zero, zero],
            Compare::Less => Op::Lt,
            Compare::LessEqual => Op::Le,
            Compare::Greater => Op::Gt,
            Compare::GreaterEqual => Op::Ge,
            Compare::Equal => Op::Eq,
            Compare::NotEqual => Op::Ne,
        };
        let holds = self.op(op, &[reference, components[0]]);
        [self.select(holds, one, zero), zero, zero, zero]
    }

    /// As [`invar_texture::axis`], operation by operation.
    fn axis(&mut self, sampler: Sampler, coordinate: Value, axis: u32) -> Axis {
        let extent = self.extent(axis);
        let extent = self.cast(Scalar::I32, extent);
        let scale = match sampler.coordinates {
            Coordinates::Normalized => self.cast(Scalar::F32, extent),
            Coordinates::Pixel => self.f32(1.0),
        };
        let (first, weight) = self.whole_of(sampler.filter, coordinate, scale);
        let (index, inside) = self.addressed(first, extent, sampler.address);
        let Some(weight) = weight else {
            return Axis {
                indices: [index; 2],
                inside: [inside; 2],
                weight: None,
            };
        };
        let one = self.i32(1);
        let second = self.op(Op::Add, &[first, one]);
        let (next, next_inside) = self.addressed(second, extent, sampler.address);
        Axis {
            indices: [index, next],
            inside: [inside, next_inside],
            weight: Some(weight),
        }
    }

    /// The index that a normalized coordinate leads to, and of a linear sample how much it has of the next.
    fn whole(
        &mut self,
        filter: Filter,
        coordinate: Value,
        extent: Value,
    ) -> (Value, Option<Value>) {
        let scale = self.cast(Scalar::F32, extent);
        self.whole_of(filter, coordinate, scale)
    }

    fn whole_of(
        &mut self,
        filter: Filter,
        coordinate: Value,
        scale: Value,
    ) -> (Value, Option<Value>) {
        let u = match filter {
            Filter::Nearest => self.op(Op::Mul, &[coordinate, scale]),
            Filter::Linear => {
                let half = self.f32(-0.5);
                self.op(Op::Fma, &[coordinate, scale, half])
            }
        };
        let least = self.f32(-LIMIT);
        let u = self.op(Op::Fmax, &[u, least]);
        let most = self.f32(LIMIT);
        let u = self.op(Op::Fmin, &[u, most]);
        let base = self.op(Op::Floor, &[u]);
        let first = self.cast(Scalar::I32, base);
        match filter {
            Filter::Nearest => (first, None),
            Filter::Linear => (first, Some(self.op(Op::Sub, &[u, base]))),
        }
    }

    /// Which index stands for one that may be beyond the edges, and whether there is one.
    fn addressed(
        &mut self,
        index: Value,
        extent: Value,
        address: Address,
    ) -> (Value, Option<Value>) {
        let zero = self.i32(0);
        let one = self.i32(1);
        match address {
            Address::ClampToEdge => {
                let last = self.op(Op::Sub, &[extent, one]);
                let above = self.op(Op::Max, &[index, zero]);
                (self.op(Op::Min, &[above, last]), None)
            }
            Address::ClampToZero | Address::ClampToBorder => {
                let number = self.cast(Scalar::U32, index);
                let limit = self.cast(Scalar::U32, extent);
                (index, Some(self.op(Op::Lt, &[number, limit])))
            }
            Address::Repeat => (self.modulo(index, extent), None),
            Address::MirroredRepeat => {
                let twice = self.op(Op::Add, &[extent, extent]);
                let place = self.modulo(index, twice);
                let last = self.op(Op::Sub, &[twice, one]);
                let mirrored = self.op(Op::Sub, &[last, place]);
                (self.op(Op::Min, &[place, mirrored]), None)
            }
        }
    }

    /// The remainder that is not negative, of a positive divisor.
    fn modulo(&mut self, number: Value, divisor: Value) -> Value {
        let zero = self.i32(0);
        let remainder = self.op(Op::Rem, &[number, divisor]);
        let negative = self.op(Op::Lt, &[remainder, zero]);
        let raised = self.op(Op::Add, &[remainder, divisor]);
        self.select(negative, raised, remainder)
    }

    // ---- cubes ----

    /// As [`invar_texture::cube`] says, operation by operation.
    fn sample_cube(&mut self, sampler: Sampler, args: &[Value]) -> [Value; 4] {
        let element = args.get(3).map(|element| {
            let extent = self.elements();
            let (element, inside) = self.coordinate(*element, extent);
            (self.cast(Scalar::I32, element), inside)
        });
        let extent = self.extent(0);
        let extent = self.cast(Scalar::I32, extent);
        let direction = [args[0], args[1], args[2]];
        let (face, along) = self.face_of(direction);
        let seen = self.seen(face, direction);
        let along = self.op(Op::Abs, &[along]);
        let half = self.f32(0.5);
        let [x, y] = seen.map(|c| {
            let part = self.op(Op::Div, &[c, along]);
            let place = self.op(Op::Fma, &[part, half, half]);
            self.whole(sampler.filter, place, extent)
        });
        if sampler.filter == Filter::Nearest {
            let (zero, one) = (self.i32(0), self.i32(1));
            let last = self.op(Op::Sub, &[extent, one]);
            let [i, j] = [x.0, y.0].map(|index| {
                let above = self.op(Op::Max, &[index, zero]);
                self.op(Op::Min, &[above, last])
            });
            let number = self.face_number(face);
            let texel = self.cube_texel([i, j, number], element);
            return self.there(element, texel);
        }
        let corners = [0, 1, 2, 3].map(|corner: i32| {
            let beside = [corner & 1, corner >> 1];
            let (least, [i, j]) = (self.i32(-1), [(x.0, beside[0]), (y.0, beside[1])]);
            let index = |w: &mut Self, (index, beside): (Value, i32)| {
                let beside = w.i32(beside);
                let next = w.op(Op::Add, &[index, beside]);
                let above = w.op(Op::Max, &[next, least]);
                w.op(Op::Min, &[above, extent])
            };
            let (i, j) = (index(self, i), index(self, j));
            let place = self.across_edges(face, [i, j], extent);
            self.cube_texel(place, element)
        });
        let weights = [x.1, y.1].map(|weight| match weight {
            Some(weight) => weight,
            None => unreachable!("a linear sample has weights"),
        });
        let mixed = [0, 1, 2, 3].map(|c| {
            let top = self.between(corners[0][c], corners[1][c], weights[0]);
            let bottom = self.between(corners[2][c], corners[3][c], weights[0]);
            self.between(top, bottom, weights[1])
        });
        self.there(element, mixed)
    }

    /// The texel of a column, row and face.
    fn cube_texel(
        &mut self,
        [i, j, face]: [Value; 3],
        element: Option<(Value, Value)>,
    ) -> [Value; 4] {
        let mut places = vec![i, j, face];
        places.extend(element.map(|(element, _)| element));
        let number = self.number(&places);
        let number = self.cast(Scalar::U32, number);
        self.sampled_texel(number, None)
    }

    /// The face of a direction, and how far it goes along its axis.
    fn face_of(&mut self, direction: [Value; 3]) -> (Face, Value) {
        let [x, y, z] = direction.map(|c| self.op(Op::Abs, &[c]));
        let above_y = self.op(Op::Ge, &[z, y]);
        let above_x = self.op(Op::Ge, &[z, x]);
        let is_z = self.op(Op::And, &[above_y, above_x]);
        let is_y = self.op(Op::Ge, &[y, x]);
        let [x, y, z] = direction;
        let x_or_y = self.select(is_y, y, x);
        let along = self.select(is_z, z, x_or_y);
        let scalar = self.b.ty(along).component_scalar();
        let zero = self.b.constant(Const { scalar, bits: 0 });
        let negative = self.op(Op::Lt, &[along, zero]);
        let face = Face {
            is_z,
            is_y,
            negative,
        };
        (face, along)
    }

    /// The number of a face, as `i32`.
    fn face_number(&mut self, face: Face) -> Value {
        let [x, y, z] = [0, 2, 4].map(|number| self.i32(number));
        let first = self.select(face.is_y, y, x);
        let first = self.select(face.is_z, z, first);
        let negative = self.cast(Scalar::I32, face.negative);
        self.op(Op::Add, &[first, negative])
    }

    /// A number, or of a face that looks along the negative axis its negative.
    fn facing(&mut self, face: Face, number: Value) -> Value {
        let negative = self.op(Op::Neg, &[number]);
        self.select(face.negative, negative, number)
    }

    /// Across and down of a direction on a face.
    fn seen(&mut self, face: Face, [x, y, z]: [Value; 3]) -> [Value; 2] {
        let (along_z, along_x) = (self.facing(face, z), self.facing(face, x));
        let (up, back) = (self.op(Op::Neg, &[y]), self.op(Op::Neg, &[along_z]));
        let across = self.select(face.is_y, x, back);
        let across = self.select(face.is_z, along_x, across);
        let down = self.select(face.is_y, along_z, up);
        [across, self.select(face.is_z, up, down)]
    }

    /// The column, row and face of a texel that may lie beyond an edge of a face.
    fn across_edges(&mut self, face: Face, at: [Value; 2], extent: Value) -> [Value; 3] {
        let one = self.i32(1);
        let inner = self.op(Op::Sub, &[extent, one]);
        let outer = self.op(Op::Neg, &[extent]);
        let [a, b] = at.map(|index| {
            let twice = self.op(Op::Add, &[index, index]);
            self.op(Op::Sub, &[twice, inner])
        });
        let [far_a, far_b] = [a, b].map(|c| {
            let magnitude = self.op(Op::Abs, &[c]);
            self.op(Op::Gt, &[magnitude, extent])
        });
        let most = self.select(far_a, inner, extent);
        let least = self.op(Op::Neg, &[most]);
        let across = self.op(Op::Max, &[a, outer]);
        let across = self.op(Op::Min, &[across, extent]);
        let down = self.op(Op::Max, &[b, least]);
        let down = self.op(Op::Min, &[down, most]);
        let beyond = self.op(Op::Or, &[far_a, far_b]);
        let along = self.select(beyond, inner, extent);
        let along = self.facing(face, along);
        let (up, signed_across) = (self.op(Op::Neg, &[down]), self.facing(face, across));
        let (back, signed_down) = (self.op(Op::Neg, &[signed_across]), self.facing(face, down));
        let mut choose = |of_x, of_y, of_z| {
            let x_or_y = self.select(face.is_y, of_y, of_x);
            self.select(face.is_z, of_z, x_or_y)
        };
        let direction = [
            choose(along, across, signed_across),
            choose(up, along, up),
            choose(back, signed_down, along),
        ];
        let (face, _) = self.face_of(direction);
        let seen = self.seen(face, direction);
        let [i, j] = seen.map(|c| {
            let twice = self.op(Op::Add, &[c, inner]);
            self.op(Op::Shr, &[twice, one])
        });
        [i, j, self.face_number(face)]
    }

    // ---- formats ----

    /// A constant component, by its bits.
    fn component(&mut self, bits: u32) -> Value {
        let scalar = invar_ir::texture::component(self.texture.format);
        let bits = bits.into();
        self.b.constant(Const { scalar, bits })
    }

    /// The components that words stand for, as [`PixelFormat::decode`] has them.
    fn decode(&mut self, words: &[Value]) -> [Value; 4] {
        let format = self.texture.format;
        let missing = [0, 1, 2, 3].map(|c| format.missing(c));
        let mut components = missing.map(|bits| self.component(bits));
        if format == PixelFormat::Rgb9E5Float {
            let [r, g, b] = self.decode_shared(words[0]);
            return [r, g, b, components[3]];
        }
        let word_bits = self.texture.words.scalar.bits();
        for channel in 0..format.channels() {
            let (bit, bits) = format.field(channel);
            let word = self.cast(Scalar::U32, words[(bit / word_bits) as usize]);
            let component = format.component(channel);
            let field = Field {
                shift: bit % word_bits,
                bits,
                word_bits,
            };
            let decoded = self.decode_channel(format.coding_of(component), word, field);
            components[component as usize] = decoded;
        }
        components
    }

    /// The number that a channel's code in a word stands for.
    fn decode_channel(&mut self, coding: Coding, word: Value, field: Field) -> Value {
        let bits = field.bits;
        match coding {
            Coding::Unorm => {
                let code = self.unsigned(word, field);
                let code = self.cast(Scalar::I32, code);
                let number = self.cast(Scalar::F32, code);
                let most = self.f32(((1u64 << bits) - 1) as f32);
                self.op(Op::Div, &[number, most])
            }
            Coding::Snorm => {
                let code = self.signed(word, field);
                let number = self.cast(Scalar::F32, code);
                let most = self.f32(((1u64 << (bits - 1)) - 1) as f32);
                let number = self.op(Op::Div, &[number, most]);
                let least = self.f32(-1.0);
                self.op(Op::Fmax, &[number, least])
            }
            Coding::Uint => self.unsigned(word, field),
            Coding::Sint => self.signed(word, field),
            Coding::Float if bits == 16 => {
                let code = self.unsigned(word, field);
                let code = self.cast(Scalar::U16, code);
                let half = self.bits(Scalar::F16, code);
                self.cast(Scalar::F32, half)
            }
            Coding::Float if bits < 16 => {
                let code = self.unsigned(word, field);
                let left = self.u32(15 - bits);
                let code = self.op(Op::Shl, &[code, left]);
                let code = self.cast(Scalar::U16, code);
                let half = self.bits(Scalar::F16, code);
                self.cast(Scalar::F32, half)
            }
            Coding::Float => self.bits(Scalar::F32, word),
            Coding::Srgb => {
                let code = self.unsigned(word, field);
                let decoded = self.table(|tables| tables.decoded);
                self.b.load(Place::element(decoded, code))
            }
        }
    }

    fn table(&self, of: impl Fn(Tables) -> Memory) -> Memory {
        match self.tables {
            Some(tables) => of(tables),
            None => unreachable!("the tables are there where a format is sRGB"),
        }
    }

    fn unsigned(&mut self, word: Value, field: Field) -> Value {
        let Field {
            shift,
            bits,
            word_bits,
        } = field;
        let mut code = word;
        if shift > 0 {
            let shift = self.u32(shift);
            code = self.op(Op::Shr, &[code, shift]);
        }
        if shift + bits < word_bits {
            let mask = self.u32(u32::MAX >> (32 - bits));
            code = self.op(Op::And, &[code, mask]);
        }
        code
    }

    fn signed(&mut self, word: Value, Field { shift, bits, .. }: Field) -> Value {
        let mut code = self.cast(Scalar::I32, word);
        let (left, right) = (32 - bits - shift, 32 - bits);
        for (op, by) in [(Op::Shl, left), (Op::Shr, right)] {
            if by > 0 {
                let by = self.i32(by as i32);
                code = self.op(op, &[code, by]);
            }
        }
        code
    }

    /// The words of a texel of these components, as [`PixelFormat::encode`] makes them.
    fn encode(&mut self, components: [Value; 4]) -> Vec<Value> {
        let format = self.texture.format;
        if format == PixelFormat::Rgb9E5Float {
            let [r, g, b, _] = components;
            return vec![self.encode_shared([r, g, b])];
        }
        let Words { scalar, count } = self.texture.words;
        let mut words: Vec<Option<Value>> = vec![None; count.into()];
        for channel in 0..format.channels() {
            let component = format.component(channel);
            let number = components[component as usize];
            let (bit, bits) = format.field(channel);
            let mut code = self.encode_channel(format.coding_of(component), number, bits);
            if bit % scalar.bits() > 0 {
                let shift = self.u32(bit % scalar.bits());
                code = self.op(Op::Shl, &[code, shift]);
            }
            let word = &mut words[(bit / scalar.bits()) as usize];
            *word = Some(match *word {
                Some(lower) => self.b.op(Op::Or, Imm::None, &[lower, code]),
                None => code,
            });
        }
        let words: Vec<Value> = words.into_iter().flatten().collect();
        words.into_iter().map(|w| self.cast(scalar, w)).collect()
    }

    /// The code of a number, as `u32` with no bits beyond it.
    fn encode_channel(&mut self, coding: Coding, number: Value, bits: u32) -> Value {
        let mask = u32::MAX >> (32 - bits);
        match coding {
            Coding::Unorm => {
                let least = self.f32(0.0);
                let above = self.op(Op::Fmax, &[number, least]);
                let code = self.scaled(above, mask as f32);
                self.cast(Scalar::U32, code)
            }
            Coding::Snorm => {
                let zero = self.f32(0.0);
                let is_number = self.op(Op::Eq, &[number, number]);
                let number = self.select(is_number, number, zero);
                let least = self.f32(-1.0);
                let above = self.op(Op::Fmax, &[number, least]);
                let code = self.scaled(above, (mask >> 1) as f32);
                self.masked(code, mask)
            }
            Coding::Uint if bits == 32 => number,
            Coding::Uint => {
                let most = self.u32(mask);
                self.op(Op::Min, &[number, most])
            }
            Coding::Sint if bits == 32 => self.cast(Scalar::U32, number),
            Coding::Sint => {
                let most = (mask >> 1) as i32;
                let (least, most) = (self.i32(-most - 1), self.i32(most));
                let above = self.op(Op::Max, &[number, least]);
                let code = self.op(Op::Min, &[above, most]);
                self.masked(code, mask)
            }
            Coding::Float if bits == 16 => {
                let half = self.cast(Scalar::F16, number);
                let code = self.bits(Scalar::U16, half);
                self.cast(Scalar::U32, code)
            }
            Coding::Float if bits < 16 => {
                let zero = self.f32(0.0);
                let positive = self.op(Op::Fmax, &[number, zero]);
                let half = self.cast(Scalar::F16, positive);
                let code = self.bits(Scalar::U16, half);
                let code = self.cast(Scalar::U32, code);
                let right = self.u32(15 - bits);
                self.op(Op::Shr, &[code, right])
            }
            Coding::Float => self.bits(Scalar::U32, number),
            Coding::Srgb => self.nearest_code(number),
        }
    }

    /// `rint(fmin(number, 1) * most)` as `i32`.
    fn scaled(&mut self, number: Value, most: f32) -> Value {
        let one = self.f32(1.0);
        let most = self.f32(most);
        let number = self.op(Op::Fmin, &[number, one]);
        let number = self.op(Op::Mul, &[number, most]);
        let number = self.op(Op::Rint, &[number]);
        self.cast(Scalar::I32, number)
    }

    fn masked(&mut self, code: Value, mask: u32) -> Value {
        let code = self.cast(Scalar::U32, code);
        let mask = self.u32(mask);
        self.op(Op::And, &[code, mask])
    }

    /// `2^n` as an `f32`, of `n + 127` as an integer.
    fn power(&mut self, biased: Value) -> Value {
        let fraction_bits = self.u32(23);
        let bits = self.op(Op::Shl, &[biased, fraction_bits]);
        self.bits(Scalar::F32, bits)
    }

    /// As [`invar_texture::shared::decode`].
    fn decode_shared(&mut self, word: Value) -> [Value; 3] {
        let exponent = self.u32(27);
        let exponent = self.op(Op::Shr, &[word, exponent]);
        let bias = self.u32(103);
        let biased = self.op(Op::Add, &[exponent, bias]);
        let scale = self.power(biased);
        [0, 9, 18].map(|shift| {
            let field = Field {
                shift,
                bits: 9,
                word_bits: 32,
            };
            let fraction = self.unsigned(word, field);
            let fraction = self.cast(Scalar::I32, fraction);
            let fraction = self.cast(Scalar::F32, fraction);
            self.op(Op::Mul, &[fraction, scale])
        })
    }

    /// As [`invar_texture::shared::encode`].
    fn encode_shared(&mut self, numbers: [Value; 3]) -> Value {
        let (zero, largest) = (self.f32(0.0), self.f32(shared::LARGEST));
        let clamped = numbers.map(|number| {
            let above = self.op(Op::Fmax, &[number, zero]);
            self.op(Op::Fmin, &[above, largest])
        });
        let [r, g, b] = clamped;
        let most = self.op(Op::Fmax, &[g, b]);
        let most = self.op(Op::Fmax, &[r, most]);
        let bits = self.bits(Scalar::U32, most);
        let fraction_bits = self.u32(23);
        let exponent = self.op(Op::Shr, &[bits, fraction_bits]);
        // max(exponent - 127, -16) + 16
        let least = self.u32(111);
        let exponent = self.op(Op::Max, &[exponent, least]);
        let exponent = self.op(Op::Sub, &[exponent, least]);
        let fraction = self.shared_fraction(most, exponent);
        let full = self.u32(512);
        let carries = self.op(Op::Eq, &[fraction, full]);
        let carry = self.cast(Scalar::U32, carries);
        let exponent = self.op(Op::Add, &[exponent, carry]);
        let place = self.u32(27);
        let mut word = self.op(Op::Shl, &[exponent, place]);
        for (number, shift) in clamped.into_iter().zip([0, 9, 18]) {
            let mut fraction = self.shared_fraction(number, exponent);
            if shift > 0 {
                let shift = self.u32(shift);
                fraction = self.op(Op::Shl, &[fraction, shift]);
            }
            word = self.op(Op::Or, &[word, fraction]);
        }
        word
    }

    /// `floor(fma(number, 2^(24 - exponent), 0.5))` as `u32`.
    fn shared_fraction(&mut self, number: Value, exponent: Value) -> Value {
        let bias = self.u32(151);
        let biased = self.op(Op::Sub, &[bias, exponent]);
        let scale = self.power(biased);
        let half = self.f32(0.5);
        let fraction = self.op(Op::Fma, &[number, scale, half]);
        let fraction = self.op(Op::Floor, &[fraction]);
        let fraction = self.cast(Scalar::I32, fraction);
        self.cast(Scalar::U32, fraction)
    }

    /// How many of the 255 thresholds are not above a number: found by halves.
    fn nearest_code(&mut self, number: Value) -> Value {
        let thresholds = self.table(|tables| tables.thresholds);
        let mut code = self.u32(0);
        for step in [128, 64, 32, 16, 8, 4, 2, 1] {
            let last = self.u32(step - 1);
            let index = self.op(Op::Add, &[code, last]);
            let threshold = self.b.load(Place::element(thresholds, index));
            let reached = self.op(Op::Ge, &[number, threshold]);
            let step = self.u32(step);
            let next = self.op(Op::Add, &[code, step]);
            code = self.select(reached, next, code);
        }
        code
    }
}
