//! Textures: some that every thread reads and samples wherever it likes, and some of which each thread has a texel
//! that it alone writes.

use invar_ir::texture::{Address, Coordinates, Filter, Mip, component};
use invar_ir::{
    AtomicOp, Dimension, Level, Op, Order, Place, SamplerSource, Sampling, Scalar, Scope, Step,
    TextureAccess, TextureFunction, TextureType, Type, Value,
};
use invar_texture::{Border, LodClamp, Numbers, PixelFormat, Sampler, TextureShape};

use super::generator::{Floats, Generator};
use super::objects::{AtomicKind, Picture, Use};
use crate::case::Data;

/// Texels in a row of a texture of which each thread has one.
const COLUMNS: [u32; 4] = [1, 7, 16, 33];

/// Arrangements whose texels atomics act on.
const WITH_ATOMICS: [Dimension; 6] = [
    Dimension::D1,
    Dimension::D1Array,
    Dimension::D2,
    Dimension::D2Array,
    Dimension::D3,
    Dimension::Buffer,
];

impl Generator<'_> {
    /// Parameters that are textures. `total` is how many threads the grid's threadgroups have when full.
    pub(super) fn declare_textures(&mut self, total: u64) {
        if !self.options.textures {
            return;
        }
        let all = PixelFormat::ALL.iter().copied();
        let formats: Vec<PixelFormat> = all
            .filter(|format| self.is_ieee() || format.numbers() != Numbers::Float)
            .collect();
        for i in 0..1 + self.random.below(2) {
            let format = self.random.pick(&formats);
            let dimension = self.random.pick(&Dimension::ALL);
            let extent = |g: &mut Self| 1 + g.random.below(9) as u32;
            let width = extent(self);
            let height = match TextureFunction::Height.is_of(dimension) {
                true if dimension.is_cube() => width,
                true => extent(self),
                false => 1,
            };
            let mut shape = TextureShape::new(format, width, height);
            let mut depth = match dimension.is_array() || dimension == Dimension::D3 {
                true => 1 + self.random.below(4) as u32,
                false => 1,
            };
            if dimension.is_cube() {
                depth *= 6;
            }
            shape = match dimension {
                Dimension::D3 => TextureShape::volume(format, width, height, depth),
                _slices => shape.and_then(|s| s.with_depth(depth)),
            };
            if dimension.has_samples() {
                let samples = self.random.pick(&[2, 4, 8]);
                shape = shape.and_then(|s| s.with_samples(samples));
            }
            if dimension.has_levels() {
                let levels = 1 + self.random.below(4) as u32;
                shape = shape.and_then(|s| s.with_levels(levels.min(s.most_levels())));
            }
            let access = match dimension.axes() {
                0 => TextureAccess::Read,
                _ => self
                    .random
                    .pick(&[TextureAccess::Sample, TextureAccess::Read]),
            };
            let Ok(shape) = shape else { continue };
            self.picture(&format!("image{i}"), shape, (dimension, access), Use::Look);
        }
        for i in 0..self.random.below(3) {
            let ty = self.random.pick(&self.pictures.clone()).ty;
            let sampler = self.sampler(ty);
            let source = self.k.sampler(&format!("how{i}"));
            self.data.push(Data::Sampler(sampler));
            self.samplers.push((source, sampler));
        }
        for i in 0..1 + self.random.below(2) {
            let format = self.random.pick(&formats);
            let columns = self.random.pick(&COLUMNS);
            let rows = (total.div_ceil(columns.into()) as u32).max(1);
            // Some threads have none.
            let rows = if self.random.one_in(4) {
                rows.div_ceil(2)
            } else {
                rows
            };
            let access = self
                .random
                .pick(&[TextureAccess::ReadWrite, TextureAccess::Write]);
            let Ok(shape) = TextureShape::new(format, columns, rows) else {
                continue;
            };
            self.picture(&format!("own{i}"), shape, (Dimension::D2, access), Use::Own);
        }
        if self.options.atomics && self.random.one_in(2) {
            self.declare_atomic_texels();
        }
    }

    /// A texture on whose texels all threads do atomics of one kind.
    fn declare_atomic_texels(&mut self) {
        let format = self
            .random
            .pick(&[PixelFormat::R32Uint, PixelFormat::R32Sint]);
        let dimension = self.random.pick(&WITH_ATOMICS);
        let mut extents = [1; 3];
        for axis in dimension.counted() {
            extents[*axis] = 1 + self.random.below(5) as u32;
        }
        let [width, height, depth] = extents;
        let shape = TextureShape::new(format, width, height).and_then(|s| s.with_depth(depth));
        let Ok(shape) = shape else { return };
        let used = Use::Atomics(self.atomic_kind());
        self.picture("counts", shape, (dimension, TextureAccess::ReadWrite), used);
    }

    /// Whether devices agree on all floats; else textures are of integers, and read.
    fn is_ieee(&self) -> bool {
        self.options.floats == Floats::Ieee
    }

    fn picture(
        &mut self,
        name: &str,
        shape: TextureShape,
        (dimension, access): (Dimension, TextureAccess),
        usage: Use,
    ) {
        let wide = component(shape.format);
        let narrow = match wide {
            Scalar::I32 => Scalar::I16,
            Scalar::U32 => Scalar::U16,
            _float => Scalar::F16,
        };
        let is_narrow = !matches!(usage, Use::Atomics(_))
            && self.options.scalars.contains(&narrow)
            && self.random.one_in(3);
        let ty = TextureType::new(dimension, if is_narrow { narrow } else { wide }, access);
        let memory = self.k.texture(name, ty);
        let seed = self.random.below(1000) as u64;
        self.data.push(Data::Texture { shape, seed });
        self.pictures.push(Picture {
            memory,
            ty,
            shape,
            usage,
        });
    }

    /// A function of a texture.
    pub(super) fn texture(&mut self) {
        if self.pictures.is_empty() {
            return self.operation();
        }
        let picture = self.random.pick(&self.pictures.clone());
        let (function, args) = match picture.usage {
            Use::Own => self.own_texel(picture),
            Use::Look => self.look(picture),
            Use::Atomics(kind) => return self.atomic_on_texel(picture, kind),
        };
        if let Some(value) = self.k.texture_function(picture.memory, function, &args) {
            let level = match function.is_query() && args.is_empty() {
                true => Level::Grid,
                false => Level::Varying,
            };
            self.add(value, level);
        }
    }

    /// An atomic on any texel, of which nothing is used.
    fn atomic_on_texel(&mut self, picture: Picture, kind: AtomicKind) {
        let extents = picture.ty.dimension.extents(picture.shape, 0);
        let counted = picture.ty.dimension.counted();
        let at: Vec<Value> = counted
            .iter()
            .map(|axis| self.free_index(extents[*axis].into()))
            .collect();
        let mut place = Place::element(picture.memory, at[0]);
        place.path.extend(at[1..].iter().copied().map(Step::Index));
        let op = match kind {
            AtomicKind::Sum => self.random.pick(&[AtomicOp::Add, AtomicOp::Sub]),
            AtomicKind::One(op) => op,
        };
        let value = self.get(Type::Scalar(picture.ty.component)).value;
        (self.k).atomic(op, place, &[value], Order::Relaxed, Scope::Device);
    }

    /// Reads or writes this thread's texel, seldom one that is nowhere.
    fn own_texel(&mut self, picture: Picture) -> (TextureFunction, Vec<Value>) {
        let columns = self.constant_u32(picture.shape.width);
        let mut x = self.k.rem(self.thread, columns);
        let y = self.k.div(self.thread, columns);
        if self.random.one_in(8) {
            let nowhere = self.constant_u32(picture.shape.width);
            let outside = self.condition();
            x = self.k.select(x, nowhere, outside);
        }
        let reads = picture.ty.access == TextureAccess::ReadWrite && self.random.one_in(3);
        if reads {
            return (TextureFunction::Read, vec![x, y]);
        }
        let value = self.get(picture.ty.texel()).value;
        (TextureFunction::Write, vec![x, y, value])
    }

    /// Reads or samples anywhere, or asks for a size.
    fn look(&mut self, picture: Picture) -> (TextureFunction, Vec<Value>) {
        let Picture { ty, shape, .. } = picture;
        let dimension = ty.dimension;
        let samples =
            self.is_ieee() && ty.access == TextureAccess::Sample && !self.random.one_in(4);
        let sampler = self.sampler(ty);
        let function = match self.random.below(8) {
            0 => self.random.pick(&[
                TextureFunction::Width,
                TextureFunction::Height,
                TextureFunction::Depth,
                TextureFunction::ArraySize,
                TextureFunction::Levels,
                TextureFunction::Samples,
            ]),
            1 if samples => TextureFunction::Gather {
                component: self.random.below(4) as u8,
                sampling: Sampling::from(Sampler {
                    filter: Filter::Nearest,
                    mip: Mip::None,
                    ..sampler
                }),
            },
            _ if samples => TextureFunction::Sample(self.source(sampler).into()),
            _ => TextureFunction::Read,
        };
        let function = match function.is_of(dimension) {
            true => function,
            false => TextureFunction::Read,
        };
        let mut args = Vec::new();
        if !function.is_query() {
            let extents = dimension.extents(shape, 0);
            for (number, axis) in dimension.counted().iter().enumerate() {
                args.push(match function.samples() && number < dimension.axes() {
                    true => self.place_between(),
                    false => self.free_index(extents[*axis].into()),
                });
            }
        }
        let of_first = TextureFunction::Sample(sampler.into());
        let may = function != of_first || sampler.mip != Mip::None;
        if function.takes_level(dimension) && may && !self.random.one_in(3) {
            args.push(match function.samples() {
                true => self.place_between(),
                false => self.free_index(shape.levels.into()),
            });
        }
        (function.beside(self.offset(dimension)), args)
    }

    /// A sampler as the kernel says it, or as the launch does.
    fn source(&mut self, sampler: Sampler) -> SamplerSource {
        let known = self.samplers.iter().filter(|(_, of)| *of == sampler);
        match known.copied().next() {
            Some((source, _)) => source,
            None => SamplerSource::Constant(sampler),
        }
    }

    /// How a texture may be sampled: often as a sampler of the launch says.
    fn sampler(&mut self, ty: TextureType) -> Sampler {
        if !self.samplers.is_empty() && self.random.one_in(2) {
            let sampler = self.random.pick(&self.samplers.clone()).1;
            let is_pixel = sampler.coordinates == Coordinates::Pixel;
            let fits = (ty.component.is_float() || !sampler.mixes())
                && !(is_pixel && ty.dimension.is_cube());
            if fits && (ty.dimension.has_levels() || sampler.mip == Mip::None) {
                return sampler;
            }
        }
        let mut sampler = Sampler {
            filter: self.random.pick(&Filter::ALL),
            address: self.random.pick(&Address::ALL),
            coordinates: self.random.pick(&Coordinates::ALL),
            mip: self.random.pick(&Mip::ALL),
            compare: None,
            border: self.random.pick(&Border::ALL),
            lod: self.levels_between(),
        };
        if !ty.component.is_float() {
            sampler.filter = Filter::Nearest;
            sampler.mip = self.random.pick(&[Mip::None, Mip::Nearest]);
        }
        if !ty.dimension.has_levels() {
            sampler.mip = Mip::None;
        }
        if ty.dimension.is_cube() {
            sampler.coordinates = Coordinates::Normalized;
        }
        sampler
    }

    /// The levels of a sampler: mostly all.
    fn levels_between(&mut self) -> LodClamp {
        let limit = |g: &mut Self| g.random.below(9) as f32 * 0.25;
        match self.random.one_in(3) {
            true => LodClamp::new(limit(self), limit(self)).unwrap_or_default(),
            false => LodClamp::ALL,
        }
    }

    /// How many texels further a sample is taken: mostly none.
    fn offset(&mut self, dimension: Dimension) -> [i8; 3] {
        let axes = match dimension.is_cube() || !self.random.one_in(3) {
            true => 0,
            false => dimension.axes(),
        };
        [0, 1, 2].map(|axis| match axis < axes {
            true => self.random.below(16) as i8 - 8,
            false => 0,
        })
    }

    /// Any `f32`, in most threads one that is not far from a texture.
    fn place_between(&mut self) -> Value {
        if self.random.one_in(4) {
            return self.get(Type::F32).value;
        }
        let number = self.free_index(12);
        let number = self.k.cast(number, Type::F32);
        let scale = self.random.pick(&[0.25f32, 0.3, 1.0]);
        let scale = self.k.const_f32(scale);
        self.k.op(Op::Mul, (), &[number, scale])
    }
}
