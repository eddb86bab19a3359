//! Textures: variables that are parameters, loads and stores of texels, samples, and sizes.
//!
//! A storage texture's format is what a browser demands of a texture that is bound; it comes with the variable
//! ([`crate::Resource::format`]), and a kernel does not depend on it. A load is of a level, which a storage texture
//! has one of, and a texture of one dimension here too: another one is out of bounds.
//!
//! Deliberately absent: samples that choose their level by what neighbours sample, and external textures.

use invar_ir::{
    AtomicOp, Const, Diagnostic, Dimension, Memory, Op, Order, Place, Rule, SamplerSource, Scalar,
    Scope, Step, TextureAccess, TextureFunction, TextureType, Type, Value,
};
use invar_texture::PixelFormat;
use naga::{
    AtomicFunction, Expression, GlobalVariable, Handle, ImageClass, ImageDimension, ImageQuery,
    SampleLevel, ScalarKind, StorageAccess, StorageFormat, TypeInner,
};

use crate::entry::Resource;
use crate::translator::{Done, Translator};
use crate::types::scalar;
use crate::value::{Index, Val};

/// What an image expression of naga loads.
pub(crate) struct Load {
    pub image: Handle<Expression>,
    pub coordinate: Handle<Expression>,
    pub element: Option<Handle<Expression>>,
    pub sample: Option<Handle<Expression>>,
    pub level: Option<Handle<Expression>>,
}

/// The pixel format of a storage texture.
fn pixel_format(format: StorageFormat) -> Option<PixelFormat> {
    let name = format!("{format:?}").to_lowercase();
    PixelFormat::from_name(&name.replace("ufloat", "float"))
}

impl Translator<'_> {
    /// The type of a texture variable, and the format that it demands.
    fn texture_type(&self, inner: &TypeInner) -> Done<(TextureType, Option<PixelFormat>)> {
        let TypeInner::Image {
            dim,
            arrayed,
            class,
        } = *inner
        else {
            return Err(self.unexpected("expected a texture"));
        };
        let dimension = match (dim, arrayed) {
            (ImageDimension::D1, false) => Dimension::D1,
            (ImageDimension::D1, true) => Dimension::D1Array,
            (ImageDimension::D2, false) => Dimension::D2,
            (ImageDimension::D2, true) => Dimension::D2Array,
            (ImageDimension::D3, false) => Dimension::D3,
            (ImageDimension::D3, true) => return Err(self.refuse("an array of `texture_3d`")),
            (ImageDimension::Cube, false) => Dimension::Cube,
            (ImageDimension::Cube, true) => Dimension::CubeArray,
        };
        let dimension = match (class, dimension) {
            (
                ImageClass::Sampled { multi: true, .. } | ImageClass::Depth { multi: true },
                Dimension::D2,
            ) => Dimension::D2Ms,
            (_, dimension) => dimension,
        };
        let of = |kind: ScalarKind| scalar(naga::Scalar { kind, width: 4 });
        let (component, access, format) = match class {
            ImageClass::Sampled { kind, multi: true } => (of(kind), TextureAccess::Read, None),
            ImageClass::Sampled { kind, multi: false } => (of(kind), TextureAccess::Sample, None),
            // Of which a read takes the first component.
            ImageClass::Depth { multi: true } => (Some(Scalar::F32), TextureAccess::Read, None),
            ImageClass::Depth { multi: false } => (Some(Scalar::F32), TextureAccess::Sample, None),
            ImageClass::External => return Err(self.refuse("a `texture_external`")),
            ImageClass::Storage { format, access } => {
                let Some(pixels) = pixel_format(format) else {
                    return Err(self.refuse(&format!("a texture of {format:?}")));
                };
                let loads = access.contains(StorageAccess::LOAD);
                let stores = access.contains(StorageAccess::STORE);
                let access = match (loads, stores) {
                    (true, true) => TextureAccess::ReadWrite,
                    (false, _) => TextureAccess::Write,
                    (true, false) => TextureAccess::Read,
                };
                let kind = naga::Scalar::from(format).kind;
                (of(kind), access, Some(pixels))
            }
        };
        let Some(component) = component else {
            return Err(self.unexpected("a texture of no numbers"));
        };
        let ty = TextureType {
            is_depth: matches!(class, ImageClass::Depth { multi: false }),
            ..TextureType::new(dimension, component, access)
        };
        Ok((ty, format))
    }

    /// A parameter for a texture variable.
    pub fn texture_variable(
        &mut self,
        name: &str,
        variable: &GlobalVariable,
        resources: &mut Vec<Resource>,
    ) -> Done<Memory> {
        let inner = &self.shader.types[variable.ty].inner;
        let (ty, format) = self.texture_type(inner)?;
        let memory = self.k.texture(name, ty);
        self.handle_resource(name, variable, format, resources);
        Ok(memory)
    }

    /// A parameter for a sampler variable.
    pub fn sampler_variable(
        &mut self,
        name: &str,
        variable: &GlobalVariable,
        resources: &mut Vec<Resource>,
    ) -> SamplerSource {
        let sampler = self.k.sampler(name);
        self.handle_resource(name, variable, None, resources);
        sampler
    }

    /// Says what the last parameter is to the host.
    fn handle_resource(
        &mut self,
        name: &str,
        variable: &GlobalVariable,
        format: Option<PixelFormat>,
        resources: &mut Vec<Resource>,
    ) {
        self.bind(variable);
        let params = &self.k.kernel().params;
        let params = params.last().map(|p| p.name.to_string());
        resources.push(Resource {
            name: name.to_string(),
            group: variable.binding.map(|b| b.group),
            binding: variable.binding.map(|b| b.binding),
            params: params.into_iter().collect(),
            head_bytes: None,
            length: None,
            format,
            declared: None,
        });
    }

    /// The texture that an expression names.
    fn image(&mut self, image: Handle<Expression>) -> Done<(Memory, TextureType)> {
        let Val::Texture(memory) = self.expr(image)? else {
            return Err(self.unexpected("a value as a texture"));
        };
        match self.k.kernel().texture(memory) {
            Some(ty) => Ok((memory, ty)),
            None => Err(self.unexpected("a buffer as a texture")),
        }
    }

    /// Coordinates one by one, the element of an array behind them.
    fn coordinates(
        &mut self,
        coordinate: Handle<Expression>,
        element: Option<Handle<Expression>>,
    ) -> Done<Vec<Value>> {
        let place = self.expr(coordinate)?;
        let count = match self.type_of(coordinate)? {
            Type::Vector(_, count) => u32::from(count),
            _scalar => 0,
        };
        let mut at = Vec::new();
        for i in 0..count {
            let part = self.part(&place, Index::Constant(i))?;
            at.push(self.one(&part)?);
        }
        if count == 0 {
            at.push(self.one(&place)?);
        }
        if let Some(element) = element {
            let element = self.expr(element)?;
            at.push(self.one(&element)?);
        }
        Ok(at)
    }

    /// A level, if it is not known to be the first.
    fn level(&mut self, level: Option<Handle<Expression>>) -> Done<Option<Value>> {
        let Some(level) = level else { return Ok(None) };
        let level = self.expr(level)?;
        let level = self.one(&level)?;
        let is_first = self.known.get(&level).is_some_and(|known| known.bits == 0);
        Ok((!is_first).then_some(level))
    }

    /// `textureLoad`.
    pub fn texture_load(&mut self, load: &Load) -> Done<Val> {
        self.count()?;
        let (memory, ty) = self.image(load.image)?;
        // A sample stands where an element would.
        let mut at = self.coordinates(load.coordinate, load.element.or(load.sample))?;
        match self.level(load.level)? {
            Some(level) if ty.dimension.has_levels() => at.push(level),
            Some(level) => at[0] = self.in_first_level(level, at[0]),
            None => {}
        }
        let texel = Val::One(self.k.texture_read(memory, &at));
        match self.is_depth(load.image) && !ty.is_depth {
            true => self.part(&texel, Index::Constant(0)),
            false => Ok(texel),
        }
    }

    /// A coordinate in a texture of one level: beyond its row if another level is meant, which does not exist.
    fn in_first_level(&mut self, level: Value, coordinate: Value) -> Value {
        let number = |t: &Self, like: Value, bits| Const {
            scalar: t.k.ty(like).component_scalar(),
            bits,
        };
        let none = number(self, level, 0);
        let none = self.constant(none);
        let is_first = self.op(Op::Eq, &[level, none]);
        let beyond = number(self, coordinate, i32::MAX as u64);
        let beyond = self.constant(beyond);
        self.op(Op::Select, &[beyond, coordinate, is_first])
    }

    /// Whether a texture holds depths.
    fn is_depth(&self, image: Handle<Expression>) -> bool {
        let inner = self.frame().info[image].ty.inner_with(&self.shader.types);
        matches!(
            inner,
            TypeInner::Image {
                class: ImageClass::Depth { .. },
                ..
            }
        )
    }

    /// `textureSampleLevel`, `textureGather`, and the same with comparisons.
    pub fn texture_sample(&mut self, sample: &Expression) -> Done<Val> {
        self.count()?;
        let Expression::ImageSample {
            image,
            sampler,
            gather,
            coordinate,
            array_index,
            offset,
            ref level,
            depth_ref,
            clamp_to_edge,
        } = *sample
        else {
            return Err(self.unexpected("expected a sample of a texture"));
        };
        let (memory, ty) = self.image(image)?;
        let Val::Sampler(sampler) = self.expr(sampler)? else {
            return Err(self.unexpected("a value as a sampler"));
        };
        let mut at = self.coordinates(coordinate, array_index)?;
        if clamp_to_edge {
            self.keep_inside(memory, &mut at);
        }
        let reference = match depth_ref {
            Some(reference) => {
                let reference = self.expr(reference)?;
                Some(self.one(&reference)?)
            }
            None => None,
        };
        let function = match (gather, level) {
            (Some(_), _) if reference.is_some() => TextureFunction::GatherCompare(sampler.into()),
            (None, SampleLevel::Zero) if reference.is_some() => {
                TextureFunction::SampleCompare(sampler.into())
            }
            (Some(component), _) => TextureFunction::Gather {
                component: component as u8,
                sampling: sampler.into(),
            },
            (None, SampleLevel::Zero) => TextureFunction::Sample(sampler.into()),
            (None, SampleLevel::Exact(level)) => {
                let level = self.expr(*level)?;
                let level = self.one(&level)?;
                // Of depths it is an integer.
                let level = match self.k.ty(level) {
                    Type::F32 => level,
                    _integer => self.k.cast(level, Type::F32),
                };
                // Where there is one level, any number leads to it.
                at.extend(ty.dimension.has_levels().then_some(level));
                TextureFunction::Sample(sampler.into())
            }
            (None, SampleLevel::Auto | SampleLevel::Bias(_)) => {
                return Err(self.by_neighbours(matches!(level, SampleLevel::Bias(_)), reference));
            }
            (None, SampleLevel::Gradient { x, y }) => {
                at.extend(self.gradient_level((memory, ty), &at, (*x, *y))?);
                TextureFunction::Sample(sampler.into())
            }
        };
        let function = match offset {
            Some(offset) => function.beside(self.sample_offset(offset)?),
            None => function,
        };
        at.extend(reference);
        match self.k.texture_function(memory, function, &at) {
            Some(value) => Ok(Val::One(value)),
            None => Err(self.unexpected("a sample that gives nothing")),
        }
    }

    /// Brings normalized coordinates to half a texel from the edges of the first level at least.
    fn keep_inside(&mut self, memory: Memory, at: &mut [Value]) {
        let half = self.constant(Const::from(0.5f32));
        let one = self.constant(Const::from(1.0f32));
        let sizes = [TextureFunction::Width, TextureFunction::Height];
        for (coordinate, size) in at.iter_mut().zip(sizes) {
            if let Some(size) = self.k.texture_function(memory, size, &[]) {
                let size = self.k.cast(size, Type::F32);
                let least = self.op(Op::Div, &[half, size]);
                let most = self.op(Op::Sub, &[one, least]);
                *coordinate = self.op(Op::Clamp, &[*coordinate, least, most]);
            }
        }
    }

    /// The refusal of a sample that chooses its level by what neighbours sample.
    fn by_neighbours(&self, is_biased: bool, reference: Option<Value>) -> Diagnostic {
        let (name, instead) = match (is_biased, reference) {
            (true, _) => ("textureSampleBias", "textureSampleLevel"),
            (false, Some(_)) => ("textureSampleCompare", "textureSampleCompareLevel"),
            (false, None) => ("textureSample", "textureSampleLevel"),
        };
        let message = format!(
            "`{name}` chooses its level by what the pixels beside it sample, of which a compute shader has none"
        );
        let level = match reference {
            Some(_) => "",
            None => ", which says the level",
        };
        Diagnostic::error(Rule::UnsupportedFeature, self.k.span(), message)
            .labelled("only fragment shaders sample so")
            .help(format!("write `{instead}`{level}"))
    }

    /// The level of a sample with gradients; none where there is one level.
    fn gradient_level(
        &mut self,
        (memory, ty): (Memory, TextureType),
        at: &[Value],
        (x, y): (Handle<Expression>, Handle<Expression>),
    ) -> Done<Option<Value>> {
        if !ty.dimension.has_levels() {
            return Ok(None);
        }
        let (x, y) = (self.coordinates(x, None)?, self.coordinates(y, None)?);
        // Behind them stands the element of an array.
        let at = &at[..ty.dimension.axes()];
        Ok(Some(self.k.texture_gradient_level(memory, at, &x, &y)))
    }

    /// An offset, which is constant.
    fn sample_offset(&mut self, offset: Handle<Expression>) -> Done<[i8; 3]> {
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(self.coordinates(offset, None)?) {
            let known = self.known.get(&part).map(|known| known.bits as u32 as i32);
            let Some(known) = known.and_then(|n| i8::try_from(n).ok()) else {
                return Err(self.refuse("a sample with an offset that is not a constant"));
            };
            *number = known;
        }
        Ok(numbers)
    }

    /// `textureStore`.
    pub fn texture_store(
        &mut self,
        image: Handle<Expression>,
        (coordinate, element): (Handle<Expression>, Option<Handle<Expression>>),
        value: Handle<Expression>,
        span: naga::Span,
    ) -> Done<()> {
        self.count()?;
        let (memory, _) = self.image(image)?;
        let at = self.coordinates(coordinate, element)?;
        let value = self.expr(value)?;
        let value = self.one(&value)?;
        self.at(span);
        self.k.texture_write(memory, &at, value);
        Ok(())
    }

    /// `textureAtomicAdd` and its like.
    pub fn texture_atomic(
        &mut self,
        image: Handle<Expression>,
        (coordinate, element): (Handle<Expression>, Option<Handle<Expression>>),
        function: &AtomicFunction,
        value: Handle<Expression>,
        span: naga::Span,
    ) -> Done<()> {
        self.count()?;
        let op = match function {
            AtomicFunction::Add => AtomicOp::Add,
            AtomicFunction::Subtract => AtomicOp::Sub,
            AtomicFunction::And => AtomicOp::And,
            AtomicFunction::ExclusiveOr => AtomicOp::Xor,
            AtomicFunction::InclusiveOr => AtomicOp::Or,
            AtomicFunction::Min => AtomicOp::Min,
            AtomicFunction::Max => AtomicOp::Max,
            AtomicFunction::Exchange { .. } => {
                return Err(self.unexpected("an exchange of texels"));
            }
        };
        let (memory, _) = self.image(image)?;
        let at = self.coordinates(coordinate, element)?;
        let value = self.expr(value)?;
        let value = self.one(&value)?;
        self.at(span);
        let Some((first, others)) = at.split_first() else {
            return Err(self.unexpected("a texel without coordinates"));
        };
        let mut place = Place::element(memory, *first);
        place.path.extend(others.iter().copied().map(Step::Index));
        (self.k).atomic(op, place, &[value], Order::Relaxed, Scope::Device);
        Ok(())
    }

    /// `textureDimensions`, `textureNumLayers` and `textureNumLevels`.
    pub fn texture_query(&mut self, image: Handle<Expression>, query: &ImageQuery) -> Done<Val> {
        let (memory, ty) = self.image(image)?;
        let ask = |t: &mut Self, function, args: &[Value]| {
            let size = t.k.texture_function(memory, function, args);
            size.ok_or_else(|| t.unexpected("expected a texture with a size"))
        };
        let value = match *query {
            ImageQuery::Size { level } => {
                // Of one that does not exist the standard allows any size: it is that of the first.
                let level = self.level(level)?;
                let level = level.filter(|_| ty.dimension.has_levels());
                let level = level.as_slice();
                let width = ask(self, TextureFunction::Width, level)?;
                let mut sizes = vec![width];
                if TextureFunction::Height.is_of(ty.dimension) {
                    sizes.push(ask(self, TextureFunction::Height, level)?);
                }
                if TextureFunction::Depth.is_of(ty.dimension) {
                    sizes.push(ask(self, TextureFunction::Depth, level)?);
                }
                match sizes[..] {
                    [width] => width,
                    _ => {
                        let vector = Type::Vector(Scalar::U32, sizes.len() as u8);
                        self.construct(vector, &sizes)
                    }
                }
            }
            ImageQuery::NumLevels if ty.dimension.has_levels() => {
                ask(self, TextureFunction::Levels, &[])?
            }
            ImageQuery::NumLevels => self.number(1),
            ImageQuery::NumLayers => ask(self, TextureFunction::ArraySize, &[])?,
            ImageQuery::NumSamples => ask(self, TextureFunction::Samples, &[])?,
        };
        Ok(Val::One(value))
    }
}
