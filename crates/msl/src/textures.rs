//! Textures and samplers: the parameters that they are, and the functions of the headers that take them.
//!
//! A texture is a class that holds an address. What is loaded from a parameter of that class stands for the
//! parameter (`objects.rs`), so the object that an address leads to is the texture. A sampler holds an address
//! too, and its properties as bits: one that the source says has none of a parameter.
//!
//! Deliberately absent: samples that choose their level by what neighbours sample; one of several samplers; depths with
//! several samples.

use invar_ir::texture::Sampling;
use invar_ir::{
    Const, Dimension, Memory, Op, Order, Place, SamplerSource, Scalar, Scope, Step, TextureAccess,
    TextureFunction, TextureType, Type, Value, Width,
};
use invar_llvm::foreign::{DebugType, Operand};
use invar_texture::{
    Address as Beyond, Border, Compare, Coordinates, Filter, LodClamp, Mip, Sampler,
};

use crate::objects::{Root, written_scalar};
use crate::translator::{Done, Translator};
use crate::value::{Address, Object, Val, What};

/// The arrangements by the numbers that the headers give them; 16 more are depths.
const ARRANGEMENTS: [Dimension; 10] = [
    Dimension::D1,
    Dimension::D1Array,
    Dimension::D2,
    Dimension::D2Array,
    Dimension::D3,
    Dimension::Cube,
    Dimension::CubeArray,
    Dimension::D2Ms,
    Dimension::D2MsArray,
    Dimension::Buffer,
];

const DEPTHS: usize = 16;

/// What a sample of the headers may ask for, by bit.
const HAS_LEVEL: u64 = 1;
const HAS_GRADIENTS: u64 = 32;
const REFUSED: [(u64, &str); 3] = [
    (2, "a sample with an offset beyond -8 to 7, or of a cube"),
    (4, "a sample with a `bias`"),
    (16, "a sample with a `min_lod_clamp`"),
];
/// From where on there are offsets, and the bits of each.
const OFFSETS: u32 = 8;
const OFFSET_BITS: u32 = 4;

/// The type of a texture, by the name of its class: `invar_texture<2, float, 1>`.
fn texture_type(name: &str) -> Option<TextureType> {
    let parts = name.strip_prefix("invar_texture<")?.strip_suffix('>')?;
    let mut parts = parts.split(',').map(str::trim);
    let number: usize = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let bytes = match name {
        "short" | "unsigned short" => 2,
        _wide => 4,
    };
    let access = match parts.next()? {
        "0" => TextureAccess::Sample,
        "1" => TextureAccess::Read,
        "2" => TextureAccess::Write,
        "3" => TextureAccess::ReadWrite,
        _other => return None,
    };
    let dimension = *ARRANGEMENTS.get(number % DEPTHS)?;
    Some(TextureType {
        is_depth: number >= DEPTHS,
        ..TextureType::new(dimension, written_scalar(name, bytes)?, access)
    })
}

/// Whether a sampler may choose a level: one that the source says without a filter of levels takes the first.
fn may_choose(sampling: Sampling) -> bool {
    let sampler = sampling.sampler.constant();
    sampler.is_none_or(|sampler| sampler.mip != Mip::None)
}

impl Translator<'_> {
    /// A parameter that is a texture or a sampler, by its class.
    pub fn declare_handle(&mut self, name: &str, class: &DebugType) -> Done<What> {
        let class = match class {
            DebugType::Struct(class, ..) => &**class,
            _other => "",
        };
        if class.starts_with("imageblock<") {
            let refused = self.refuse(&format!("the imageblock `{name}`"));
            return Err(refused.help(
                "keep the elements in a `threadgroup` array, or write the kernel as text, in Python or in Rust; other \
                 kernels of the file can be run all the same",
            ));
        }
        match (class, texture_type(class)) {
            (_, Some(ty)) if ty.is_depth && ty.dimension.has_samples() => Err(self.refuse(
                &format!("the texture `{name}` of depths with several samples"),
            )),
            (_, Some(ty)) => Ok(What::Texture(self.k.texture(name, ty), ty)),
            ("sampler", None) => match self.k.sampler(name) {
                SamplerSource::Param(memory) => Ok(What::Sampler(memory)),
                SamplerSource::NormalizedParam(_) | SamplerSource::Constant(_) => {
                    Err(self.refuse("a sampler of this form"))
                }
            },
            _other => Err(self.refuse(&format!("the texture `{name}` of this type"))),
        }
    }

    /// Declares a parameter that is a texture or a sampler.
    pub fn handle(&mut self, number: usize) -> Done<()> {
        let param = &self.f.params[number];
        let Some(class) = &param.debug else {
            return Err(self.refuse(&format!("the texture `{}` of this type", param.name)));
        };
        let what = self.declare_handle(&param.name, class)?;
        let root = Root::Param(number);
        let object = Object {
            what,
            granule_bytes: 1,
            scalar: Scalar::U8,
        };
        self.memory.insert(root, object);
        self.params.push(Val::Address(Address::of(Some(root))));
        Ok(())
    }

    /// A function of the headers that takes a texture.
    pub fn texture(&mut self, number: usize, what: &[&str]) -> Done<Option<Val>> {
        let address = self.address(&self.f.insts[number].operands[0])?;
        let parts = self.texture_at(number, what, &address)?;
        let is_one = !matches!(what, ["read" | "sample" | "gather", _] | ["gather_compare"]);
        Ok(match parts[..] {
            [] => None,
            [one] if is_one => Some(Val::One(one)),
            _ => Some(Val::Parts(
                parts
                    .into_iter()
                    .enumerate()
                    .map(|(at, part)| (vec![at as u32], Val::One(part)))
                    .collect(),
            )),
        })
    }

    /// The scalars that a function gives of the texture at an address, which may lead to one of several.
    fn texture_at(&mut self, number: usize, what: &[&str], address: &Address) -> Done<Vec<Value>> {
        if let Some((is_first, first, rest)) = self.first_and_rest(address) {
            let mut sides = Vec::new();
            for side in [first, rest] {
                self.open(&[]);
                let values = self.texture_at(number, what, &side)?;
                self.k.yield_(&values);
                sides.push(self.close());
            }
            let no = sides.pop().unwrap_or_default();
            let yes = sides.pop().unwrap_or_default();
            return Ok(self.k.if_regions(is_first, yes, no).to_vec());
        }
        let What::Texture(memory, ty) = self.object(address)?.what else {
            return Err(self.refuse("an access of this kind to a parameter"));
        };
        match what {
            ["gradient"] => {
                /// How many numbers the headers give of each.
                const NUMBERS: usize = 3;
                let axes = ty.dimension.axes();
                let at = self.several(number, 1, axes)?;
                let dx = self.several(number, 1 + NUMBERS, axes)?;
                let dy = self.several(number, 1 + 2 * NUMBERS, axes)?;
                return Ok(vec![self.k.texture_gradient_level(memory, &at, &dx, &dy)]);
            }
            ["atomic", op] => return self.texel_atomic(number, op, memory, ty),
            _other => {}
        }
        let (function, args) = self.texture_call(number, what, ty)?;
        let Some(value) = self.k.texture_function(memory, function, &args) else {
            return Ok(Vec::new());
        };
        Ok(match self.k.ty(value) {
            Type::Vector(_, count) => (0..u32::from(count))
                .map(|part| {
                    let part = self.constant(Const::from(part));
                    self.op(Op::Extract, &[value, part])
                })
                .collect(),
            _scalar => vec![value],
        })
    }

    /// What an atomic on a texel gives.
    fn texel_atomic(
        &mut self,
        number: usize,
        op: &str,
        memory: Memory,
        ty: TextureType,
    ) -> Done<Vec<Value>> {
        /// Where the values begin.
        const VALUES: usize = 4;
        let op = self.atomic_op(op)?;
        let at = self.several(number, 1, ty.dimension.coordinates())?;
        let args = self.several(number, VALUES, op.operand_count())?;
        let args: Vec<Value> = (args.into_iter())
            .map(|value| self.as_scalar(value, ty.component))
            .collect();
        let place = Place {
            memory,
            index: at[0],
            width: Width::One,
            path: at[1..].iter().map(|value| Step::Index(*value)).collect(),
        };
        let results = self
            .k
            .atomic(op, place, &args, Order::Relaxed, Scope::Device);
        Ok(results.first().copied().into_iter().collect())
    }

    /// The function of the IR that a call is, and its operands.
    fn texture_call(
        &mut self,
        number: usize,
        what: &[&str],
        ty: TextureType,
    ) -> Done<(TextureFunction, Vec<Value>)> {
        let dimension = ty.dimension;
        let count = dimension.coordinates();
        Ok(match what {
            ["read", _] => {
                let mut at = self.several(number, 1, count)?;
                at.extend(self.texture_level(number, 5, dimension)?);
                (TextureFunction::Read, at)
            }
            ["write", _] => {
                let mut at = self.several(number, 5, count)?;
                at.extend(self.texture_level(number, 9, dimension)?);
                let parts = self.several(number, 1, if ty.is_depth { 1 } else { 4 })?;
                let parts: Vec<Value> = parts
                    .into_iter()
                    .map(|part| self.as_scalar(part, ty.component))
                    .collect();
                at.push(match parts[..] {
                    [one] => one,
                    _ => self.k.construct(Type::Vector(ty.component, 4), &parts),
                });
                (TextureFunction::Write, at)
            }
            ["sample", _] => {
                let mut at = self.sampled_at(number, dimension, 3)?;
                let level = self.sampled_level(number, 8, dimension)?;
                let sampling = self.sampling(number, dimension, Some((9, level.is_some())))?;
                at.extend(level.filter(|_| may_choose(sampling)));
                (TextureFunction::Sample(sampling), at)
            }
            ["sample_compare"] => {
                let mut at = self.sampled_at(number, dimension, 3)?;
                let level = self.sampled_level(number, 9, dimension)?;
                let sampling = self.sampling(number, dimension, Some((10, level.is_some())))?;
                at.extend(level.filter(|_| may_choose(sampling)));
                at.push(self.one(number, 8)?);
                (TextureFunction::SampleCompare(sampling), at)
            }
            ["gather", _] => {
                let at = self.sampled_at(number, dimension, 3)?;
                let sampling = self.sampling(number, dimension, None)?;
                let component = match self.f.insts[number].operands[8] {
                    Operand::Bits(_, component) => component as u8,
                    _ => return Err(self.refuse("a gather of a component that is computed")),
                };
                if ty.is_depth && component > 0 {
                    let what = format!(
                        "a gather of another component than `x` of a `{}`",
                        ty.name()
                    );
                    let refused = self.refuse(&what);
                    return Err(refused.help("leave out the component: depths are one number"));
                }
                let function = TextureFunction::Gather {
                    component,
                    sampling,
                };
                (function, at)
            }
            ["gather_compare"] => {
                let mut at = self.sampled_at(number, dimension, 3)?;
                let sampling = self.sampling(number, dimension, None)?;
                at.push(self.one(number, 8)?);
                (TextureFunction::GatherCompare(sampling), at)
            }
            ["width"] => self.size_of_level(number, TextureFunction::Width, dimension)?,
            ["height"] => self.size_of_level(number, TextureFunction::Height, dimension)?,
            ["depth"] => self.size_of_level(number, TextureFunction::Depth, dimension)?,
            ["array_size"] => (TextureFunction::ArraySize, Vec::new()),
            ["levels"] if !dimension.has_levels() => {
                let what = format!("the number of levels of a `{}`", ty.name());
                return Err(self.refuse(&what));
            }
            ["levels"] => (TextureFunction::Levels, Vec::new()),
            ["samples"] => (TextureFunction::Samples, Vec::new()),
            ["fence"] => (TextureFunction::Fence, Vec::new()),
            _other => return Err(self.refuse("this function of textures")),
        })
    }

    /// Some operands, one by one.
    fn several(&mut self, number: usize, first: usize, count: usize) -> Done<Vec<Value>> {
        (first..first + count)
            .map(|operand| self.one(number, operand))
            .collect()
    }

    /// The coordinates of a sample, of which so many floats are given, and the element behind them.
    fn sampled_at(
        &mut self,
        number: usize,
        dimension: Dimension,
        given: usize,
    ) -> Done<Vec<Value>> {
        let floats = match dimension {
            _ if dimension.is_cube() => 3,
            _ => dimension.axes(),
        };
        let mut at = self.several(number, 4, floats)?;
        if dimension.is_array() {
            at.push(self.one(number, 4 + given)?);
        }
        Ok(at)
    }

    /// A level that is an integer, if it is not known to be the first.
    fn texture_level(
        &mut self,
        number: usize,
        operand: usize,
        dimension: Dimension,
    ) -> Done<Option<Value>> {
        if let Operand::Bits(_, 0) = self.f.insts[number].operands[operand] {
            return Ok(None);
        }
        if !dimension.has_levels() {
            return Err(self.refuse(&format!("a level of a `{}`", dimension.name())));
        }
        self.one(number, operand).map(Some)
    }

    /// The level of a sample, if it says one. Where there is one level, any number leads to it.
    fn sampled_level(
        &mut self,
        number: usize,
        operand: usize,
        dimension: Dimension,
    ) -> Done<Option<Value>> {
        let asked = self.asked(number)?;
        if asked & HAS_LEVEL == 0 || !dimension.has_levels() {
            return Ok(None);
        }
        self.one(number, operand).map(Some)
    }

    fn size_of_level(
        &mut self,
        number: usize,
        function: TextureFunction,
        dimension: Dimension,
    ) -> Done<(TextureFunction, Vec<Value>)> {
        let level = self.texture_level(number, 1, dimension)?;
        Ok((function, level.into_iter().collect()))
    }

    /// What a sample asks for, of what is supported.
    fn asked(&self, number: usize) -> Done<u64> {
        let Operand::Bits(_, asked) = self.f.insts[number].operands[3] else {
            return Err(self.refuse("a sample with an offset that is computed"));
        };
        match REFUSED.iter().find(|(bit, _)| asked & bit != 0) {
            Some((_, what)) => Err(self.refuse(what)),
            None => Ok(asked),
        }
    }

    /// How a call samples: by its second and third operands, and at the offset that it asks for. Of what has levels, with
    /// the operand that says between which, and whether it says one.
    fn sampling(
        &mut self,
        number: usize,
        dimension: Dimension,
        levels: Option<(usize, bool)>,
    ) -> Done<Sampling> {
        let asked = self.asked(number)?;
        let offset = [0, 1, 2].map(|axis| {
            let bits = (asked >> (OFFSETS + OFFSET_BITS * axis)) as i8;
            // The upper bits are the sign's.
            bits << OFFSET_BITS >> OFFSET_BITS
        });
        let sampler = self.sampler(number, dimension, levels)?;
        if asked & HAS_GRADIENTS == 0 {
            return Ok(Sampling { sampler, offset });
        }
        let constant = sampler.constant();
        if constant.is_some_and(|sampler| sampler.coordinates == Coordinates::Pixel) {
            let refused = self.refuse("`coord::pixel` with gradients");
            return Err(refused.help(
                "divide coordinates and gradients by the size and write `coord::normalized`, or say the level",
            ));
        }
        let sampler = sampler.normalized();
        Ok(Sampling { sampler, offset })
    }

    fn sampler(
        &mut self,
        number: usize,
        dimension: Dimension,
        levels: Option<(usize, bool)>,
    ) -> Done<SamplerSource> {
        let operands = &self.f.insts[number].operands;
        let address = self.address(&operands[1])?;
        if address.choice.is_some() {
            return Err(self.refuse("one of several samplers"));
        }
        if address.root.is_some() {
            return match self.object(&address)?.what {
                What::Sampler(memory) => Ok(SamplerSource::Param(memory)),
                _other => Err(self.refuse("a sampler of this form")),
            };
        }
        let Operand::Bits(_, bits) = operands[2] else {
            return Err(self.refuse("a sampler whose properties are computed"));
        };
        let has_level = levels.is_some_and(|(_, has_level)| has_level);
        let mut sampler = self.properties(bits, dimension, has_level)?;
        if let Some((operand, _)) = levels {
            let Operand::Bits(_, limits) = operands[operand] else {
                return Err(self.refuse("a sampler whose properties are computed"));
            };
            let [least, most] = [limits as u32, (limits >> 32) as u32].map(f32::from_bits);
            let Some(lod) = LodClamp::new(least, most) else {
                let what = format!("a sampler with `lod_clamp({least:?}, {most:?})`");
                return Err(self.refuse(&what));
            };
            sampler.lod = lod;
        }
        Ok(SamplerSource::Constant(sampler))
    }

    /// A sampler by its properties, as the headers write them.
    fn properties(&self, bits: u64, dimension: Dimension, has_level: bool) -> Done<Sampler> {
        let part = |at: u32, count: u32| (bits >> at & ((1 << count) - 1)) as usize;
        if part(20, 1) != 0 {
            return Err(self.refuse("a sampler with `max_anisotropy`"));
        }
        let (larger, smaller) = (part(0, 1), part(1, 1));
        if has_level && larger != smaller {
            return Err(self.refuse("a sample of a level by two filters"));
        }
        let axes = match dimension.is_cube() {
            true => 0,
            false => dimension.axes(),
        };
        let beyond: Vec<usize> = (0..axes as u32).map(|axis| part(4 + 3 * axis, 3)).collect();
        let first = beyond.first().copied().unwrap_or(0);
        if beyond.iter().any(|other| *other != first) {
            return Err(self.refuse("a sampler whose address modes differ"));
        }
        let addresses = [
            Beyond::ClampToEdge,
            Beyond::ClampToZero,
            Beyond::Repeat,
            Beyond::MirroredRepeat,
            Beyond::ClampToBorder,
        ];
        let borders = [
            Border::TransparentBlack,
            Border::OpaqueBlack,
            Border::OpaqueWhite,
        ];
        let filter = [Filter::Nearest, Filter::Linear][larger];
        let coordinates = [Coordinates::Normalized, Coordinates::Pixel][part(13, 1)];
        let mips = [Mip::None, Mip::Nearest, Mip::Linear];
        let address = addresses.get(first).copied().unwrap_or_default();
        let mip = mips.get(part(2, 2)).copied().unwrap_or_default();
        if coordinates == Coordinates::Pixel {
            let unfit = match address {
                _ if dimension.is_cube() => Some("of a cube"),
                Beyond::Repeat | Beyond::MirroredRepeat => Some("with addresses that repeat"),
                _ if mip != Mip::None => Some("with a `mip_filter`"),
                _ if larger != smaller => Some("with two filters"),
                Beyond::ClampToEdge | Beyond::ClampToZero | Beyond::ClampToBorder => None,
            };
            if let Some(unfit) = unfit {
                let refused = self.refuse(&format!("`coord::pixel` {unfit}"));
                return Err(refused.help(
                    "divide coordinates by the size and write `coord::normalized`: those in pixels clamp, and are of \
                     one level and one filter",
                ));
            }
        }
        let compares = [
            Compare::Never,
            Compare::Less,
            Compare::LessEqual,
            Compare::Greater,
            Compare::GreaterEqual,
            Compare::Equal,
            Compare::NotEqual,
            Compare::Always,
        ];
        Ok(Sampler {
            filter,
            address,
            border: borders.get(part(21, 2)).copied().unwrap_or_default(),
            lod: LodClamp::ALL,
            coordinates,
            mip,
            compare: part(14, 4)
                .checked_sub(1)
                .and_then(|n| compares.get(n).copied()),
        })
    }
}
