//! One function of a texture written out: its operations, levels, and the places of texels; reads, writes and atomics.

use invar_ir::rewrite::Replacement;
use invar_ir::{
    AtomicOp, Const, ConstantArray, Dimension, ElementType, Imm, KernelBuilder, Memory, Module, Op,
    Order, Place, Scalar, Scope, TextureType, Type, Value, Width,
};
use invar_texture::{Coding, Compare, PixelFormat, srgb};

use super::Form;

/// Texels that a sampler has zeros for have this number, which no buffer reaches.
pub(super) const BEYOND: u32 = u32::MAX;

/// The words that a texel is in memory.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) scalar: Scalar,
    pub(super) count: u8,
}

impl Words {
    pub(super) fn of(format: PixelFormat) -> Words {
        let (scalar, count) = match format.texel_bytes() {
            // Atomics tell which is less.
            _ if format == PixelFormat::R32Sint => (Scalar::I32, 1),
            1 => (Scalar::U8, 1),
            2 => (Scalar::U16, 1),
            bytes => (Scalar::U32, (bytes / 4) as u8),
        };
        Words { scalar, count }
    }
}

/// A texture parameter.
#[derive(Clone, Copy)]
pub(super) struct Texture {
    pub(super) memory: Memory,
    /// The parameter that holds its size.
    pub(super) size: usize,
    pub(super) format: PixelFormat,
    pub(super) levels: u32,
    pub(super) samples: u32,
    pub(super) ty: TextureType,
    pub(super) words: Words,
}

/// Where the tables of sRGB are, if a format needs them.
#[derive(Clone, Copy)]
pub(super) struct Tables {
    pub(super) decoded: Memory,
    pub(super) thresholds: Memory,
}

impl Tables {
    pub(super) fn add(module: &mut Module, forms: &[Option<Form>]) -> Option<Tables> {
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
pub(super) fn table(module: &mut Module, wish: &str, bits: &[u32]) -> Memory {
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

/// Writes one function out.
pub(super) struct Writer<'a> {
    pub(super) b: &'a mut KernelBuilder,
    pub(super) texture: Texture,
    /// Width, height and depth.
    pub(super) size: Value,
    pub(super) tables: Option<Tables>,
    /// The level that is reached; the first, if none is said.
    pub(super) level: Option<Level>,
    /// What texels are compared with.
    pub(super) compare: Option<(Compare, Value)>,
    /// How many texels further along each axis a sample is taken.
    pub(super) offset: [i8; 3],
}

/// A level of a texture that has it.
#[derive(Clone, Copy)]
pub(super) struct Level {
    /// Width, height and depth.
    pub(super) extents: [Value; 3],
    /// The number of its first texel.
    pub(super) start: Value,
}

impl Writer<'_> {
    // ---- single operations ----

    pub(super) fn u32(&mut self, value: u32) -> Value {
        self.b.const_u32(value)
    }

    pub(super) fn i32(&mut self, value: i32) -> Value {
        self.b.const_i32(value)
    }

    pub(super) fn f32(&mut self, value: f32) -> Value {
        self.b.const_f32(value)
    }

    pub(super) fn cast(&mut self, to: Scalar, value: Value) -> Value {
        if self.b.ty(value) == Type::Scalar(to) {
            return value;
        }
        self.b.op(Op::Cast, Type::Scalar(to), &[value])
    }

    pub(super) fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.b.op(op, Imm::None, args)
    }

    /// `condition ? yes : no`.
    pub(super) fn select(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        self.op(Op::Select, &[no, yes, condition])
    }

    pub(super) fn bits(&mut self, to: Scalar, value: Value) -> Value {
        self.b.op(Op::AsType, Type::Scalar(to), &[value])
    }

    /// How much a coordinate can count in the level that is reached, by what it counts
    /// ([`invar_ir::Dimension::counted`]).
    pub(super) fn extent(&mut self, axis: u32) -> Value {
        let slices = self.texture.ty.dimension.slices(self.texture.samples);
        match (self.level, axis, slices) {
            (Some(level), 0 | 1, _) | (Some(level), 2, None) => level.extents[axis as usize],
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
    pub(super) fn elements(&mut self) -> Value {
        self.extent(3)
    }

    /// Width, height or depth, by the number of the axis.
    pub(super) fn first_extent(&mut self, axis: u32) -> Value {
        let axis = self.u32(axis);
        self.op(Op::Extract, &[self.size, axis])
    }

    // ---- levels ----

    /// `max(extent >> level, 1)`; of slices that do not shrink as many as there are.
    pub(super) fn shrunk(&mut self, axis: u32, level: Value) -> Value {
        let extent = self.first_extent(axis);
        if axis == 2 && self.texture.ty.dimension != Dimension::D3 {
            return extent;
        }
        let one = self.u32(1);
        let shrunk = self.op(Op::Shr, &[extent, level]);
        self.op(Op::Max, &[shrunk, one])
    }

    /// Goes to a level, which the texture has.
    pub(super) fn enter(&mut self, level: Value) {
        if self.texture.levels == 1 {
            return;
        }
        self.level = None;
        let mut start = self.u32(0);
        for before in 0..self.texture.levels - 1 {
            let before = self.u32(before);
            let (width, height) = (self.shrunk(0, before), self.shrunk(1, before));
            let depth = self.shrunk(2, before);
            let slice = self.op(Op::Mul, &[width, height]);
            let texels = self.op(Op::Mul, &[slice, depth]);
            let behind = self.op(Op::Lt, &[before, level]);
            let none = self.u32(0);
            let skipped = self.select(behind, texels, none);
            start = self.op(Op::Add, &[start, skipped]);
        }
        let extents = [0, 1, 2].map(|axis| self.shrunk(axis, level));
        self.level = Some(Level { extents, start });
    }

    /// Goes to a level that a kernel names, if it names one, and gives whether it is there; else to the last.
    pub(super) fn enter_named(&mut self, level: Option<Value>) -> Option<Value> {
        let level = level?;
        let count = self.u32(self.texture.levels);
        let (level, inside) = self.coordinate(level, count);
        let last = self.u32(self.texture.levels - 1);
        let level = self.op(Op::Min, &[level, last]);
        self.enter(level);
        Some(inside)
    }

    /// An extent of a level, 0 of one that is not there.
    pub(super) fn extent_of_level(&mut self, axis: u32, level: Option<Value>) -> Value {
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
    pub(super) fn coordinate(&mut self, coordinate: Value, extent: Value) -> (Value, Value) {
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
    pub(super) fn texel_at(&mut self, at: &[Value], level: Option<Value>) -> (Value, Value) {
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
    pub(super) fn number(&mut self, places: &[Value]) -> Value {
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

    pub(super) fn place(&self, texel: Value) -> Place {
        Place {
            width: match self.texture.words.count {
                1 => Width::One,
                count => Width::Group(count),
            },
            ..Place::element(self.texture.memory, texel)
        }
    }

    // ---- functions ----

    pub(super) fn read(&mut self, at: &[Value], level: Option<Value>) -> Value {
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

    pub(super) fn write(&mut self, at: &[Value], level: Option<Value>, value: Value) {
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

    /// An atomic on a texel; beyond the edges it changes nothing and gives 0 (B1, B2).
    pub(super) fn atomic(
        &mut self,
        op: AtomicOp,
        at: &[Value],
        args: &[Value],
        (order, scope): (Order, Scope),
    ) -> Replacement {
        let (texel, inside) = self.texel_at(at, None);
        let beyond = self.u32(BEYOND);
        let texel = self.select(inside, texel, beyond);
        let place = self.place(texel);
        let results = self.b.atomic(op, place, args, order, scope);
        Some(results.into_iter().collect())
    }

    /// A texel's value of what the format gives.
    pub(super) fn vector(&mut self, components: [Value; 4]) -> Value {
        match self.texture.ty.is_depth {
            true => components[0],
            false => self.four(components),
        }
    }

    /// Four components of what the format gives.
    pub(super) fn four(&mut self, components: [Value; 4]) -> Value {
        let scalar = self.texture.ty.component;
        let components = components.map(|c| self.narrowed(c));
        self.b
            .op(Op::Construct, Type::Vector(scalar, 4), &components)
    }

    /// What a format gives as a component: of 16 bits the nearest that there is.
    pub(super) fn narrowed(&mut self, component: Value) -> Value {
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
    pub(super) fn load_words(&mut self, texel: Value) -> Vec<Value> {
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
}
