//! Textures as buffers: for targets that have no way of their own to reach texels as the reference machine does.
//!
//! Each texture parameter becomes a buffer of words, one, two or four for a texel (a byte, 16 or 32 bits), and the
//! kernel gets one more parameter for it behind all others, in the order of the textures: a `u32x3` of its width,
//! height and depth. Functions become the formulas of `invar-texture` written out, for the pixel formats that a dispatch
//! gives. Loads and stores never leave the buffer (B1, B2); what is beyond an edge, but in the buffer, conditions
//! keep away. What is made is free
//! of products that are added to something, so that contraction changes nothing of it (A8).
//!
//! A barrier that orders textures orders device memory instead, which is more: on a device nothing tells.

use std::sync::Arc;

use invar_ir::requires::Comparison;
use invar_ir::rewrite::rewrite;
use invar_ir::texture::Dimension;
use invar_ir::{
    Access, Const, ConstantArray, Diagnostics, ElementType, Imm, Inst, InstKind, Kernel,
    KernelBuilder, LaunchNumber, Memory, Module, Op, Param, ParamKind, Place, Scalar, Spaces,
    TextureFunction, Type, Value, ValueInfo, Width,
};
use invar_texture::sample::{GATHERED, LIMIT};
use invar_texture::{Address, Coding, Coordinates, Filter, PixelFormat, Sampler, srgb};

/// What is said of a texture where a kernel is written as text of a shading language by itself.
pub const NOT_WRITTEN: &str =
    "textures are written for a pixel format, which only a dispatch gives; run the kernel instead";
/// Why a writer never comes to a texture.
pub(crate) const REFUSED: &str = "a kernel with textures has been refused";

/// Texels that a sampler has zeros for have this number, which no buffer reaches.
const BEYOND: u32 = u32::MAX;

/// Writes out the functions of the textures of a verified module's kernel, for the format of each: by the places of
/// the parameters, none where a parameter is no texture. Of a kernel without textures nothing changes.
///
/// # Errors
/// What the builder found wrong with what this built, which is nothing.
pub fn expand(
    module: Module,
    kernel: usize,
    formats: &[Option<PixelFormat>],
) -> Result<Module, Diagnostics> {
    if !module.kernels[kernel].has_textures() {
        return Ok(module);
    }
    let mut module = module;
    let tables = Tables::add(&mut module, formats);
    let found = &mut module.kernels[kernel];
    // Every dispatch is asked what is required of it before; a buffer has no such size.
    found.requires.retain(|r| {
        let numbers = r.comparison().map(Comparison::numbers).unwrap_or_default();
        !numbers
            .iter()
            .any(|n| matches!(n, LaunchNumber::Texels(..)))
    });
    let mut textures: Vec<Option<Texture>> = Vec::new();
    for (number, format) in formats.iter().enumerate() {
        let texture = match (&found.params[number].kind, format) {
            (ParamKind::Texture(ty), Some(format)) => {
                let (access, dimension) = (ty.access.memory(), ty.dimension);
                Some(declare(found, number, *format, (access, dimension)))
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
        call(b, inst, &textures, tables)
    })
}

/// Makes a buffer of a texture parameter, and adds the parameter of its size.
fn declare(
    kernel: &mut Kernel,
    number: usize,
    format: PixelFormat,
    (access, dimension): (Access, Dimension),
) -> Texture {
    let words = Words::of(format);
    kernel.params[number].kind = ParamKind::Buffer {
        access,
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
    kernel.params.push(Param { name, kind, span });
    Texture {
        memory: Memory::Param(number as u32),
        size: kernel.params.len() - 1,
        format,
        dimension,
        words,
    }
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
    dimension: Dimension,
    words: Words,
}

/// Where the tables of sRGB are, if a format needs them.
#[derive(Clone, Copy)]
struct Tables {
    decoded: Memory,
    thresholds: Memory,
}

impl Tables {
    fn add(module: &mut Module, formats: &[Option<PixelFormat>]) -> Option<Tables> {
        let coded = |f: &PixelFormat| f.coding() == Coding::Srgb;
        if !formats.iter().flatten().any(coded) {
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
    tables: Option<Tables>,
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
    let mut writer = Writer {
        b,
        texture,
        size,
        tables,
    };
    let result = match *function {
        TextureFunction::Width => writer.extent(0),
        TextureFunction::Height => writer.extent(1),
        TextureFunction::Depth | TextureFunction::ArraySize => writer.extent(2),
        TextureFunction::Gather { component, sampler } => {
            writer.gather(sampler, args, usize::from(component))
        }
        TextureFunction::Read => writer.read(args),
        TextureFunction::Sample(sampler) => writer.sample(sampler, args),
        TextureFunction::Write => {
            writer.write(args);
            return Some(Default::default());
        }
    };
    Some([result].into_iter().collect())
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

    /// Width, height or depth, by the number of the axis.
    fn extent(&mut self, axis: u32) -> Value {
        let axis = self.u32(axis);
        self.op(Op::Extract, &[self.size, axis])
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
    fn texel_at(&mut self, at: &[Value]) -> (Value, Value) {
        let mut places = Vec::new();
        let mut all_inside = None;
        for (axis, coordinate) in at.iter().enumerate() {
            let extent = self.extent(axis as u32);
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
        for (axis, place) in places.iter().enumerate().rev() {
            number = Some(match number {
                Some(above) => {
                    let extent = self.extent(axis as u32);
                    let extent = self.cast(scalar, extent);
                    let before = self.op(Op::Mul, &[above, extent]);
                    self.op(Op::Add, &[before, *place])
                }
                None => *place,
            });
        }
        match number {
            Some(number) => number,
            None => unreachable!("every texture has an axis"),
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

    fn read(&mut self, args: &[Value]) -> Value {
        let (texel, inside) = self.texel_at(args);
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

    fn write(&mut self, args: &[Value]) {
        let (at, value) = args.split_at(args.len() - 1);
        let (texel, inside) = self.texel_at(at);
        let components = [0, 1, 2, 3].map(|c| {
            let c = self.u32(c);
            self.op(Op::Extract, &[value[0], c])
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

    fn vector(&mut self, components: [Value; 4]) -> Value {
        let scalar = self.b.ty(components[0]).component_scalar();
        self.b
            .op(Op::Construct, Type::Vector(scalar, 4), &components)
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

    fn sample(&mut self, sampler: Sampler, args: &[Value]) -> Value {
        let (axes, element) = self.axes(sampler, args);
        let count = match sampler.filter {
            Filter::Nearest => 1,
            Filter::Linear => 1 << axes.len(),
        };
        let mut left: Vec<[Value; 4]> = (0..count)
            .map(|corner| self.corner(&axes, element, corner))
            .collect();
        for (i, axis) in axes.iter().enumerate() {
            let Some(weight) = axis.weight else { break };
            for corner in (0..count).filter(|corner| corner >> i & 1 == 0) {
                let (first, second) = (left[corner], left[corner | 1 << i]);
                left[corner] = [0, 1, 2, 3].map(|c| self.between(first[c], second[c], weight));
            }
        }
        let sampled = self.there(element, left[0]);
        self.vector(sampled)
    }

    fn gather(&mut self, sampler: Sampler, args: &[Value], component: usize) -> Value {
        let linear = Sampler {
            filter: Filter::Linear,
            ..sampler
        };
        let (axes, element) = self.axes(linear, args);
        let gathered = GATHERED.map(|corner| self.corner(&axes, element, corner)[component]);
        let gathered = self.there(element, gathered);
        self.vector(gathered)
    }

    /// What the coordinates of a sample lead to; and of an array the element, and whether there is one.
    fn axes(&mut self, sampler: Sampler, args: &[Value]) -> (Vec<Axis>, Option<(Value, Value)>) {
        let count = self.texture.dimension.axes();
        let axes = (0..count)
            .map(|axis| self.axis(sampler, args[axis], axis as u32))
            .collect();
        let element = args.get(count).map(|element| {
            let extent = self.extent(2);
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
        let words = self.load_words(texel);
        self.decode(&words)
    }

    /// As [`invar_texture::axis`], operation by operation.
    fn axis(&mut self, sampler: Sampler, coordinate: Value, axis: u32) -> Axis {
        let extent = self.extent(axis);
        let extent = self.cast(Scalar::I32, extent);
        let scale = match sampler.coordinates {
            Coordinates::Normalized => self.cast(Scalar::F32, extent),
            Coordinates::Pixel => self.f32(1.0),
        };
        let u = match sampler.filter {
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
        let (index, inside) = self.addressed(first, extent, sampler.address);
        if sampler.filter == Filter::Nearest {
            return Axis {
                indices: [index; 2],
                inside: [inside; 2],
                weight: None,
            };
        }
        let weight = self.op(Op::Sub, &[u, base]);
        let one = self.i32(1);
        let second = self.op(Op::Add, &[first, one]);
        let (next, next_inside) = self.addressed(second, extent, sampler.address);
        Axis {
            indices: [index, next],
            inside: [inside, next_inside],
            weight: Some(weight),
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
            Address::ClampToZero => {
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
