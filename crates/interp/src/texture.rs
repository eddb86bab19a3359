//! Functions of textures, lane after lane by the formulas of `invar-texture`, and what observers are shown of
//! them: the texels that lanes touch, with a location for each of four components, whatever the format has.

use invar_ir::{Const, Memory, SamplerSource, Sampling, Scalar, TextureFunction};
use invar_texture::format::{decode, encode};
use invar_texture::sample::Place as Spot;
use invar_texture::{Coding, Sampled, Sampler, TextureShape, gather, read, sample, write};

use crate::access::{NOWHERE, for_each_lane};
use crate::dispatch::Arg;
use crate::observe::{self, Kind};
use crate::program::{Index, Texture};
use crate::state::{Place, Run, Simdgroup};

/// Components of a texel.
const COMPONENTS: usize = 4;

impl Run<'_, '_, '_> {
    pub(crate) fn texture(&mut self, group: &Place, simd: &mut Simdgroup, texture: &Texture) {
        let shape = self.shape(texture);
        match texture.function {
            TextureFunction::Width => self.size(simd, texture, shape, 0),
            TextureFunction::Height => self.size(simd, texture, shape, 1),
            TextureFunction::Depth => self.size(simd, texture, shape, 2),
            TextureFunction::ArraySize => self.size(simd, texture, shape, 3),
            TextureFunction::Levels => self.give(simd, texture, shape.levels),
            TextureFunction::Samples => self.give(simd, texture, shape.samples),
            TextureFunction::Read => {
                self.place(simd, texture, shape);
                self.show_texels(group, simd, texture, shape, Kind::Read, 0, &[]);
                let bytes = self.args[texture.param as usize].bytes();
                let size = self.program.simdgroup_size as usize;
                for_each_lane(simd.mask, |lane| {
                    let address = self.addresses.bytes[lane];
                    let texel = (address != NOWHERE).then(|| address / shape.format.texel_bytes());
                    let components = read(shape, bytes, texel);
                    for (c, bits) in components.into_iter().enumerate().take(given(texture)) {
                        let bits = narrow(texture.ty.component, bits);
                        simd.registers[texture.value as usize + c * size + lane] = bits.into();
                    }
                });
            }
            TextureFunction::Write => self.write_texels(group, simd, texture, shape),
            TextureFunction::Sample(Sampling { sampler, .. })
            | TextureFunction::SampleCompare(Sampling { sampler, .. }) => {
                let sampler = self.sampler(sampler);
                let how = |bytes: &[u8], place| sample(shape, bytes, sampler, place);
                self.sample_texels(group, simd, texture, shape, &how);
            }
            // Within a thread everything happens in program order as it is (O1).
            TextureFunction::Fence => {}
            TextureFunction::GatherCompare(Sampling { sampler, .. }) => {
                let sampler = self.sampler(sampler);
                let how = |bytes: &[u8], place| gather(shape, bytes, sampler, place, 0);
                self.sample_texels(group, simd, texture, shape, &how);
            }
            TextureFunction::Gather {
                component,
                sampling,
            } => {
                let component = usize::from(component);
                let sampler = self.sampler(sampling.sampler);
                let how = |bytes: &[u8], place| gather(shape, bytes, sampler, place, component);
                self.sample_texels(group, simd, texture, shape, &how);
            }
        }
    }

    fn sampler(&self, sampler: SamplerSource) -> Sampler {
        let code = match sampler {
            SamplerSource::Constant(sampler) => return sampler,
            SamplerSource::Param(Memory::Param(i))
            | SamplerSource::NormalizedParam(Memory::Param(i)) => match &self.args[i as usize] {
                Arg::Scalar(code) => <[Const; 3]>::try_from(&code[..]).ok(),
                _no_sampler => None,
            },
            SamplerSource::Param(Memory::Alloc(_) | Memory::Constant(_))
            | SamplerSource::NormalizedParam(Memory::Alloc(_) | Memory::Constant(_)) => None,
        };
        let code = code.map(|code| code.map(|part| part.bits as u32));
        match code.and_then(Sampler::from_code) {
            Some(sampler) => sampler,
            None => unreachable!("arguments of another kind are refused before a run"),
        }
    }

    fn give(&mut self, simd: &mut Simdgroup, texture: &Texture, number: u32) {
        let (size, column) = (self.program.simdgroup_size as usize, texture.value as usize);
        simd.registers[column..column + size].fill(number.into());
    }

    /// Gives an extent of the level, 0 of one that is not there.
    fn size(&mut self, simd: &mut Simdgroup, texture: &Texture, shape: TextureShape, axis: usize) {
        for_each_lane(simd.mask, |lane| {
            let level = u32::try_from(level_of(simd, texture, lane));
            let level = level.ok().filter(|level| *level < shape.levels);
            let extents = |level| texture.ty.dimension.extents(shape, level);
            let extent = level.map_or(0, |level| extents(level)[axis]);
            simd.registers[texture.value as usize + lane] = extent.into();
        });
    }

    /// Sets the addresses and locations of the texels that lanes name.
    fn place(&mut self, simd: &Simdgroup, texture: &Texture, shape: TextureShape) {
        self.addresses.bytes.fill(NOWHERE);
        for_each_lane(simd.mask, |lane| {
            let at = coordinates(simd, texture, lane);
            let level = level_of(simd, texture, lane);
            let slice = texture.ty.dimension.slice(shape, at);
            self.set_texel(lane, shape, shape.texel([at[0], at[1], slice], level));
        });
    }

    /// The same of the texels that an atomic acts on.
    pub(crate) fn place_texel(&mut self, simd: &Simdgroup, texture: &Texture) {
        let shape = self.shape(texture);
        self.place(simd, texture, shape);
    }

    /// Shows observers what an atomic did to the texels whose addresses were just set.
    pub(crate) fn show_texel(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        texture: &Texture,
        kind: Kind,
        order: usize,
    ) {
        let shape = self.shape(texture);
        self.show_texels(group, simd, texture, shape, kind, order, &[]);
    }

    fn shape(&self, texture: &Texture) -> TextureShape {
        match &self.args[texture.param as usize] {
            Arg::Texture(shape, _) => *shape,
            _no_texture => unreachable!("arguments of another kind are refused before a run"),
        }
    }

    fn set_texel(&mut self, lane: usize, shape: TextureShape, texel: Option<u64>) {
        let bytes = |texel| texel * shape.format.texel_bytes();
        self.addresses.bytes[lane] = texel.map_or(NOWHERE, bytes);
        self.addresses.locations[lane] = texel.unwrap_or(0) * COMPONENTS as u64;
    }

    fn write_texels(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        texture: &Texture,
        shape: TextureShape,
    ) {
        self.place(simd, texture, shape);
        let size = self.program.simdgroup_size as usize;
        let order = self.random.below(self.orders.len() as u64) as usize;
        let slot = self.program.objects[texture.object as usize].slot;
        let memory = self.args[texture.param as usize].bytes_mut();
        let each = shape.format.texel_bytes();
        let mut unchanged = [0u128; COMPONENTS];
        for lane in &self.orders[order] {
            let lane = usize::from(*lane);
            let address = self.addresses.bytes[lane];
            if address == NOWHERE {
                continue;
            }
            let texel = Some(address / each);
            let value = |c: usize| {
                let bits = simd.registers[texture.value as usize + c * size + lane] as u32;
                widen(texture.ty.component, bits)
            };
            let before = read(shape, memory, texel);
            write(shape, memory, texel, [0, 1, 2, 3].map(value));
            let after = read(shape, memory, texel);
            for c in 0..COMPONENTS {
                unchanged[c] |= u128::from(before[c] == after[c]) << lane;
            }
            if before != after {
                self.changes.note(slot, address, each);
            }
        }
        self.show_texels(group, simd, texture, shape, Kind::Write, order, &unchanged);
    }

    fn sample_texels(
        &mut self,
        group: &Place,
        simd: &mut Simdgroup,
        texture: &Texture,
        shape: TextureShape,
        how: &dyn Fn(&[u8], Spot) -> Sampled,
    ) {
        let size = self.program.simdgroup_size as usize;
        let axes = texture.ty.dimension.axes();
        let mut touched = vec![[None; 16]; size];
        let mut beyond = 0u128;
        let bytes = self.args[texture.param as usize].bytes();
        for_each_lane(simd.mask, |lane| {
            let float = |i: usize| {
                let column = texture.at.get(i).map_or(0, |at| at.column as usize);
                f32::from_bits(simd.registers[column + lane] as u32)
            };
            let element = texture.at.get(axes).map(|at| {
                let bits = simd.registers[at.column as usize + lane];
                at.scalar.integer(bits)
            });
            let elements = texture.ty.dimension.extents(shape, 0)[3];
            let is_element = |e: i128| (0..i128::from(elements)).contains(&e);
            beyond |= u128::from(element.is_some_and(|e| !is_element(e))) << lane;
            let place = Spot {
                at: [0, 1, 2].map(|i| if i < axes { float(i) } else { 0.0 }),
                axes,
                element,
                is_cube: texture.ty.dimension.is_cube(),
                offset: texture.function.sampling().map_or([0; 3], |s| s.offset),
                reference: texture.reference.map(|reference| {
                    f32::from_bits(simd.registers[reference as usize + lane] as u32)
                }),
                lod: texture.level.map(|level| {
                    f32::from_bits(simd.registers[level.column as usize + lane] as u32)
                }),
            };
            let sampled = how(bytes, place);
            touched[lane] = sampled.texels;
            for (c, bits) in sampled
                .components
                .into_iter()
                .enumerate()
                .take(given(texture))
            {
                let bits = narrow(texture.ty.component, bits);
                simd.registers[texture.value as usize + c * size + lane] = bits.into();
            }
        });
        if beyond != 0 && self.observed() {
            self.show_texels_outside(group, simd, texture, shape, true, beyond);
        }
        if !self.watched[texture.object as usize] {
            return;
        }
        for corner in 0..16 {
            for (lane, texels) in touched.iter().enumerate() {
                self.set_texel(lane, shape, texels[corner]);
            }
            self.show_access(group, simd, texture, shape, Kind::Read, 0, &[]);
        }
    }

    /// Shows observers the texels whose addresses were just set, and first what is out of bounds.
    #[expect(clippy::too_many_arguments, reason = "an event has many sides")]
    fn show_texels(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        texture: &Texture,
        shape: TextureShape,
        kind: Kind,
        order: usize,
        unchanged: &[u128],
    ) {
        if !self.observed() {
            return;
        }
        let outside = simd.mask & !self.addresses.present();
        if outside != 0 {
            self.show_texels_outside(group, simd, texture, shape, kind == Kind::Read, outside);
        }
        if self.watched[texture.object as usize] {
            self.show_access(group, simd, texture, shape, kind, order, unchanged);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an event has many sides")]
    fn show_access(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        texture: &Texture,
        shape: TextureShape,
        kind: Kind,
        order: usize,
        unchanged: &[u128],
    ) {
        let lanes = self.addresses.present();
        if lanes == 0 {
            return;
        }
        let event = observe::Access {
            who: group.who(simd),
            site: texture.site,
            object: texture.object,
            kind,
            lanes,
            locations: &self.addresses.locations,
            // Components that the format has not are not locations.
            width: shape.format.channels(),
            order: &self.orders[order],
            unchanged,
        };
        for observer in self.observers.iter_mut() {
            observer.access(&event);
        }
    }

    fn show_texels_outside(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        texture: &Texture,
        shape: TextureShape,
        load: bool,
        outside: u128,
    ) {
        let lane = outside.trailing_zeros();
        let dimension = texture.ty.dimension;
        let within = match dimension {
            d if d.is_cube() => "face",
            d if d.has_samples() => "sample",
            d if d.is_array() => "element",
            _of_three => "slice",
        };
        let names = ["column", "row", within, "element"];
        let (at, level) = match texture.function.samples() {
            // Of a sample only the element of an array can be beyond.
            true => (
                [0, 0, 0, integer(simd, texture.at.last(), lane as usize)],
                0,
            ),
            false => (
                coordinates(simd, texture, lane as usize),
                level_of(simd, texture, lane as usize),
            ),
        };
        let there = u32::try_from(level).ok().filter(|l| *l < shape.levels);
        let extents = dimension.extents(shape, there.unwrap_or(0));
        let outside_of = |i: &usize| !(0..i128::from(extents[*i])).contains(&at[*i]);
        let axis = (0..4).find(outside_of).unwrap_or(0);
        let (index, length, what) = match there {
            None => (level, shape.levels, "level"),
            Some(_) => (at[axis], extents[axis], names[axis]),
        };
        let event = observe::OutOfBounds {
            who: group.who(simd),
            site: texture.site,
            object: Some(texture.object),
            load,
            lane,
            lanes: outside,
            count: outside.count_ones().into(),
            index,
            length: length.into(),
            what,
            within: None,
        };
        for observer in self.observers.iter_mut() {
            observer.out_of_bounds(&event);
        }
    }
}

/// What a lane names, by what the coordinates count, as mathematical integers; 0 where it names none.
fn coordinates(simd: &Simdgroup, texture: &Texture, lane: usize) -> [i128; 4] {
    let mut at = [0; 4];
    for (axis, index) in texture.ty.dimension.counted().iter().zip(&texture.at) {
        at[*axis] = integer(simd, Some(index), lane);
    }
    at
}

/// How many components a function gives: of a texture of depths one, but of four texels.
fn given(texture: &Texture) -> usize {
    match texture.function {
        TextureFunction::Gather { .. } | TextureFunction::GatherCompare(_) => COMPONENTS,
        _of_one_texel if texture.ty.is_depth => 1,
        _of_one_texel => COMPONENTS,
    }
}

/// The level that a lane names, as a mathematical integer; the first where it names none.
fn level_of(simd: &Simdgroup, texture: &Texture, lane: usize) -> i128 {
    integer(simd, texture.level.as_ref(), lane)
}

/// An operand as a mathematical integer; 0 where there is none.
fn integer(simd: &Simdgroup, index: Option<&Index>, lane: usize) -> i128 {
    index.map_or(0, |at| {
        at.scalar.integer(simd.registers[at.column as usize + lane])
    })
}

/// How components of 16 bits are coded; none of 32.
fn coded(component: Scalar) -> Option<Coding> {
    match component {
        Scalar::F16 => Some(Coding::Float),
        Scalar::I16 => Some(Coding::Sint),
        Scalar::U16 => Some(Coding::Uint),
        _of_32_bits => None,
    }
}

/// What a format gives as a component.
fn narrow(component: Scalar, bits: u32) -> u32 {
    coded(component).map_or(bits, |coding| encode(coding, 16, bits))
}

/// A component as formats take it.
fn widen(component: Scalar, bits: u32) -> u32 {
    coded(component).map_or(bits, |coding| decode(coding, 16, bits))
}
