//! The builder for Python's tracer: `KernelBuilder` in numbers and strings.
//!
//! Every number that comes in is checked against the kernel being built, so that no call panics.
//! Closed regions wait here, by number, until an instruction takes them or they are dropped.

use invar_ir::texture::{SamplerSource, Sampling};
use invar_ir::{
    Access, Call, CallId, Const, ConstantArray, CopyOperands, CopyShape, FunctionConstant,
    ImageblockSlice, Inst, InstKind, KernelBuilder, MatrixPlace, Op, ParamKind, Place, Position,
    Region, Source, SourceId, Spaces, Span, Step, StructDef, Type, Value, Values, Width,
};
use pyo3::prelude::*;

use crate::convert::{self, refuse};
use crate::run::Module;
use crate::table;
use crate::texture::{self, SamplerWords};

/// A memory object: its kind and number.
type MemoryId = (u8, u32);
/// Steps into an element: whether it is a field, and the field's or the index value's number.
type Path = Vec<(bool, u32)>;
/// A place: the object, the index, elements covered (1, or 2 to 4), whether the index counts
/// groups, and the way into the element.
type PlaceId = (MemoryId, u32, u8, bool, Path);
/// Source, start line and column, end line and column, and the inlined call.
type SpanId = (u32, u32, u32, u32, u32, Option<u32>);

/// A moment of a builder: the core's mark, and how many regions were open.
#[pyclass(frozen, eq, module = "invar._invar")]
#[derive(PartialEq)]
pub struct Moment(invar_ir::Mark, usize);

/// Builds one kernel.
#[pyclass(module = "invar._invar")]
pub struct Builder {
    inner: Option<KernelBuilder>,
    /// Closed regions that no instruction has taken yet.
    regions: Vec<Option<Region>>,
    /// How many regions are open, without the kernel's body.
    depth: usize,
}

impl Builder {
    fn builder(&mut self) -> PyResult<&mut KernelBuilder> {
        self.inner
            .as_mut()
            .ok_or_else(|| refuse("the kernel is finished"))
    }

    fn value(&mut self, id: u32) -> PyResult<Value> {
        if (id as usize) < self.builder()?.kernel().values.len() {
            Ok(Value(id))
        } else {
            Err(refuse("there is no such value"))
        }
    }

    fn values(&mut self, ids: &[u32]) -> PyResult<Values> {
        ids.iter().map(|id| self.value(*id)).collect()
    }

    fn memory(&mut self, id: MemoryId) -> PyResult<invar_ir::Memory> {
        let memory = convert::memory(id)?;
        if self.builder()?.memory(memory).is_some() {
            Ok(memory)
        } else {
            Err(refuse("there is no such memory object"))
        }
    }

    /// The way into an element: fields by their numbers, and indices.
    fn path<P: FromIterator<Step>>(&mut self, path: Path) -> PyResult<P> {
        let steps = path.into_iter().map(|(field, id)| match field {
            true => Ok(Step::Field(id)),
            false => self.value(id).map(Step::Index),
        });
        steps.collect()
    }

    fn place(&mut self, place: PlaceId) -> PyResult<Place> {
        let (memory, index, count, group, path) = place;
        let path = self.path(path)?;
        Ok(Place {
            memory: self.memory(memory)?,
            index: self.value(index)?,
            width: match (count, group) {
                (1, false) => Width::One,
                (n, false) => Width::Run(n),
                (n, true) => Width::Group(n),
            },
            path,
        })
    }

    fn copy_operands(
        &mut self,
        to: (MemoryId, u32),
        from: (MemoryId, u32),
    ) -> PyResult<CopyOperands> {
        Ok(CopyOperands {
            destination: self.memory(to.0)?,
            destination_index: self.value(to.1)?,
            source: self.memory(from.0)?,
            source_index: self.value(from.1)?,
        })
    }

    fn matrix_place(&mut self, place: (MemoryId, u32, u32, bool)) -> PyResult<MatrixPlace> {
        let (memory, index, row, transpose) = place;
        Ok(MatrixPlace {
            memory: self.memory(memory)?,
            index: self.value(index)?,
            row: self.value(row)?,
            transpose,
        })
    }

    fn region(&mut self, handle: usize) -> PyResult<Region> {
        self.regions
            .get_mut(handle)
            .and_then(Option::take)
            .ok_or_else(|| refuse("there is no such region"))
    }

    fn named(&mut self, value: Value) -> PyResult<(u32, String)> {
        Ok((value.0, self.builder()?.ty(value).to_string()))
    }
}

fn ids(values: impl IntoIterator<Item = Value>) -> Vec<u32> {
    values.into_iter().map(|v| v.0).collect()
}

fn span_of((source, line, column, end_line, end_column, call): SpanId) -> Span {
    Span {
        source: Some(SourceId(source)),
        start: Position { line, column },
        end: Position {
            line: end_line,
            column: end_column,
        },
        call: call.map(CallId),
    }
}

#[pymethods]
impl Builder {
    #[new]
    fn new(name: &str) -> Builder {
        Builder {
            inner: Some(KernelBuilder::new(invar_ir::Module::default(), name)),
            regions: Vec::new(),
            depth: 0,
        }
    }

    // ---- where the code was written ----

    fn source(&mut self, name: &str, text: &str) -> PyResult<u32> {
        let sources = &mut self.builder()?.module_mut().sources;
        sources.push(Source {
            name: name.into(),
            text: text.into(),
        });
        Ok(sources.len() as u32 - 1)
    }

    fn call(&mut self, function: &str, site: SpanId) -> PyResult<u32> {
        let calls = &mut self.builder()?.module_mut().calls;
        calls.push(Call {
            function: function.into(),
            site: span_of(site),
        });
        Ok(calls.len() as u32 - 1)
    }

    fn set_span(&mut self, span: SpanId) -> PyResult<()> {
        self.builder()?.set_span(span_of(span));
        Ok(())
    }

    fn name(&mut self, value: u32, name: &str) -> PyResult<()> {
        let value = self.value(value)?;
        self.builder()?.name(value, name);
        Ok(())
    }

    // ---- declarations ----

    fn structure(&mut self, name: &str, fields: Vec<(String, String)>) -> PyResult<()> {
        let builder = self.builder()?;
        let fields = fields
            .into_iter()
            .map(|(field, ty)| Ok((field.into(), convert::element(builder.module(), &ty)?)))
            .collect::<PyResult<_>>()?;
        let span = builder.span();
        builder.module_mut().structs.push(StructDef {
            name: name.into(),
            fields,
            span,
        });
        Ok(())
    }

    fn declare_function_constant(
        &mut self,
        name: &str,
        id: u32,
        scalar: &str,
        default: Option<u64>,
    ) -> PyResult<u32> {
        let scalar = convert::scalar(scalar)?;
        let builder = self.builder()?;
        let span = builder.span();
        let constants = &mut builder.module_mut().function_constants;
        constants.push(FunctionConstant {
            name: name.into(),
            id,
            scalar,
            default: default.map(|bits| Const { scalar, bits }),
            span,
        });
        Ok(constants.len() as u32 - 1)
    }

    /// A program-scope constant; `bits` has one entry for each scalar of all elements.
    fn constant_array(
        &mut self,
        name: &str,
        element: &str,
        length: u32,
        bits: Vec<u64>,
    ) -> PyResult<MemoryId> {
        let builder = self.builder()?;
        let element = convert::element(builder.module(), element)?;
        let locations = element.locations(&builder.module().structs);
        if locations.is_empty() || bits.len() as u64 != locations.len() as u64 * u64::from(length) {
            return Err(refuse(format!(
                "`{name}` has fewer or more values than it needs"
            )));
        }
        let scalars = locations.iter().cycle().map(|(_, scalar)| *scalar);
        let values = scalars
            .zip(bits)
            .map(|(scalar, bits)| Const { scalar, bits })
            .collect();
        let span = builder.span();
        let constants = &mut builder.module_mut().constants;
        constants.push(ConstantArray {
            name: name.into(),
            element,
            length,
            values,
            span,
        });
        Ok((2, constants.len() as u32 - 1))
    }

    /// A parameter: `kind` is `buffer`, `constant` or `threadgroup`.
    fn parameter(&mut self, kind: &str, name: &str, element: &str) -> PyResult<MemoryId> {
        let builder = self.builder()?;
        let element = convert::element(builder.module(), element)?;
        let memory = match kind {
            "buffer" => builder.buffer(name, Access::Read, element),
            "constant" => builder.constant_buffer(name, element),
            "threadgroup" => builder.threadgroup_param(name, element),
            _ => return Err(refuse("there is no such kind of parameter")),
        };
        match memory {
            invar_ir::Memory::Param(id) => Ok((0, id)),
            invar_ir::Memory::Alloc(_) | invar_ir::Memory::Constant(_) => {
                Err(refuse("a parameter is a parameter"))
            }
        }
    }

    /// A texture, by the words of its type in the text form.
    fn texture(
        &mut self,
        name: &str,
        dimension: &str,
        component: &str,
        access: &str,
    ) -> PyResult<MemoryId> {
        let ty = texture::parameter(dimension, component, access)?;
        match self.builder()?.texture(name, ty) {
            invar_ir::Memory::Param(id) => Ok((0, id)),
            invar_ir::Memory::Alloc(_) | invar_ir::Memory::Constant(_) => {
                Err(refuse("a parameter is a parameter"))
            }
        }
    }

    /// A sampler.
    fn sampler(&mut self, name: &str) -> PyResult<MemoryId> {
        match self.builder()?.sampler(name) {
            SamplerSource::Param(invar_ir::Memory::Param(id)) => Ok((0, id)),
            SamplerSource::Param(_)
            | SamplerSource::NormalizedParam(_)
            | SamplerSource::Constant(_) => Err(refuse("a parameter is a parameter")),
        }
    }

    /// The level that follows from how much coordinates change along two directions.
    fn texture_gradient_level(
        &mut self,
        texture: MemoryId,
        at: Vec<u32>,
        dx: Vec<u32>,
        dy: Vec<u32>,
    ) -> PyResult<(u32, String)> {
        let memory = self.memory(texture)?;
        let (at, dx, dy) = (self.values(&at)?, self.values(&dx)?, self.values(&dy)?);
        let level = (self.builder()?).texture_gradient_level(memory, &at, &dx, &dy);
        self.named(level)
    }

    /// A function of a texture, of that name in the text form, with the words of its sampler or the parameter that is
    /// one, how many texels further it samples, and the component that it gathers; gives what it gives.
    fn texture_function(
        &mut self,
        texture: MemoryId,
        name: &str,
        sampler: SamplerWords,
        gathered: (u8, [i8; 3]),
        args: Vec<u32>,
    ) -> PyResult<Option<(u32, String)>> {
        let memory = self.memory(texture)?;
        let args = self.values(&args)?;
        let sampler = match sampler {
            SamplerWords::Constant(words) => texture::sampler(&words)?.into(),
            SamplerWords::Param(kind, id) => {
                let memory = convert::memory((kind, id))?;
                if !self.builder()?.kernel().is_sampler(memory) {
                    return Err(refuse("there is no such sampler"));
                }
                SamplerSource::Param(memory)
            }
        };
        let (component, offset) = gathered;
        let sampling = Sampling { sampler, offset };
        let function = texture::function(name, sampling, component)?;
        if self.builder()?.kernel().texture(memory).is_none() {
            return Err(refuse("there is no such texture"));
        }
        let value = self.builder()?.texture_function(memory, function, &args);
        value.map(|value| self.named(value)).transpose()
    }

    /// An imageblock of a kernel whose threadgroups have this size, if it says one, with the pixel formats that fields
    /// are stored in.
    fn imageblock(
        &mut self,
        name: &str,
        element: &str,
        threadgroup: Option<[u32; 3]>,
        formats: Vec<(String, String)>,
    ) -> PyResult<MemoryId> {
        let formats = formats
            .iter()
            .map(|(field, format)| Ok((&**field, texture::format(format)?)));
        let formats = formats.collect::<PyResult<Vec<_>>>()?;
        let builder = self.builder()?;
        let element = convert::element(builder.module(), element)?;
        builder.kernel_mut().threadgroup_size = threadgroup;
        match builder.imageblock_of(name, element, &formats) {
            invar_ir::Memory::Alloc(id) => Ok((1, id)),
            invar_ir::Memory::Param(_) | invar_ir::Memory::Constant(_) => {
                Err(refuse("an imageblock is an array"))
            }
        }
    }

    /// The number of the element of an imageblock at a column and a row.
    fn imageblock_element(&mut self, memory: MemoryId, x: u32, y: u32) -> PyResult<(u32, String)> {
        let memory = self.memory(memory)?;
        let at = [self.value(x)?, self.value(y)?];
        let element = self.builder()?.imageblock_element(memory, at);
        self.named(element)
    }

    /// Copies a field of the elements of an imageblock, all or those of a region (the first's coordinates and the
    /// size), to a texture, from these coordinates on.
    fn texture_write_slice(
        &mut self,
        texture: MemoryId,
        at: Vec<u32>,
        imageblock: MemoryId,
        path: Path,
        region: Option<[u32; 4]>,
    ) -> PyResult<()> {
        let (texture, memory) = (self.memory(texture)?, self.memory(imageblock)?);
        let at = self.values(&at)?;
        let region = match region {
            Some([x, y, width, height]) => Some([
                [self.value(x)?, self.value(y)?],
                [self.value(width)?, self.value(height)?],
            ]),
            None => None,
        };
        let slice = ImageblockSlice {
            memory,
            path: self.path(path)?,
            region,
        };
        self.builder()?.texture_write_slice(texture, &at, &slice);
        Ok(())
    }

    fn scalar(&mut self, name: &str, ty: &str) -> PyResult<u32> {
        let ty = convert::value_type(ty)?;
        Ok(self.builder()?.scalar(name, ty).0)
    }

    /// What a launch has to fulfil (S5).
    fn requires(&mut self, text: &str) -> PyResult<()> {
        self.builder()?.requires(text);
        Ok(())
    }

    /// An array; `space` is `threadgroup` or `thread`.
    fn alloc(&mut self, space: &str, name: &str, element: &str, length: u32) -> PyResult<MemoryId> {
        let builder = self.builder()?;
        let element = convert::element(builder.module(), element)?;
        let memory = match space {
            "threadgroup" => builder.alloc_threadgroup(name, element, length),
            "thread" => builder.alloc_thread(name, element, length),
            _ => return Err(refuse("an array is in threadgroup or thread memory")),
        };
        match memory {
            invar_ir::Memory::Alloc(id) => Ok((1, id)),
            invar_ir::Memory::Param(_) | invar_ir::Memory::Constant(_) => {
                Err(refuse("an array is an array"))
            }
        }
    }

    // ---- instructions ----

    fn constant(&mut self, scalar: &str, bits: u64) -> PyResult<u32> {
        let scalar = convert::scalar(scalar)?;
        if scalar.bits() < 64 && bits >> scalar.bits() != 0 {
            return Err(refuse(format!(
                "the bits {bits:#x} are too many for {scalar}"
            )));
        }
        Ok(self.builder()?.constant(Const { scalar, bits }).0)
    }

    /// An operation of the table; gives the result and its type.
    fn op(
        &mut self,
        name: &str,
        imm_kind: u8,
        imm: &str,
        args: Vec<u32>,
    ) -> PyResult<(u32, String)> {
        let op =
            Op::from_name(name).ok_or_else(|| refuse(format!("`{name}` is not an operation")))?;
        let imm = convert::imm(imm_kind, imm)?;
        let args = self.values(&args)?;
        let builder = self.builder()?;
        let types: Vec<Type> = args.iter().map(|v| builder.ty(*v)).collect();
        table::result_type(op, imm, &types).map_err(refuse)?;
        let value = builder.op(op, imm, &args);
        self.named(value)
    }

    fn buffer_length(&mut self, memory: MemoryId) -> PyResult<u32> {
        let memory = self.memory(memory)?;
        Ok(self.builder()?.buffer_length(memory).0)
    }

    fn function_constant(&mut self, id: u32) -> PyResult<(u32, String)> {
        let value = self.builder()?.function_constant(id);
        self.named(value)
    }

    fn load(&mut self, place: PlaceId) -> PyResult<(u32, String)> {
        let place = self.place(place)?;
        let value = self.builder()?.load(place);
        self.named(value)
    }

    fn store(&mut self, place: PlaceId, value: u32) -> PyResult<()> {
        let (place, value) = (self.place(place)?, self.value(value)?);
        self.builder()?.store(place, value);
        Ok(())
    }

    fn atomic(
        &mut self,
        op: &str,
        place: PlaceId,
        args: Vec<u32>,
        order: &str,
        scope: &str,
    ) -> PyResult<Vec<(u32, String)>> {
        let op = convert::atomic_op(op)?;
        let (order, scope) = (convert::order(order)?, convert::scope(scope)?);
        let (place, args) = (self.place(place)?, self.values(&args)?);
        let results = self.builder()?.atomic(op, place, &args, order, scope);
        results.into_iter().map(|v| self.named(v)).collect()
    }

    fn barrier(&mut self, scope: &str, spaces: Vec<String>) -> PyResult<()> {
        let scope = convert::scope(scope)?;
        let mut set = Spaces::NONE;
        for name in &spaces {
            let found = Spaces::NAMES.iter().find(|(_, n)| n == name);
            let (space, _) = found.ok_or_else(|| refuse(format!("`{name}` is not an address space that a barrier orders: write \"device\", \"threadgroup\", \"texture\" or \"imageblock\"")))?;
            set = set.with(*space);
        }
        self.builder()?.barrier(scope, set);
        Ok(())
    }

    fn print(&mut self, text: &str, values: Vec<u32>) -> PyResult<()> {
        let values: Vec<Value> = values.into_iter().map(Value).collect();
        self.builder()?.print(text, &values);
        Ok(())
    }

    fn copy(&mut self, to: (MemoryId, u32), from: (MemoryId, u32), count: u32) -> PyResult<()> {
        let (operands, count) = (self.copy_operands(to, from)?, self.value(count)?);
        self.builder()?.copy(operands, count);
        Ok(())
    }

    fn async_copy(
        &mut self,
        to: (MemoryId, u32),
        from: (MemoryId, u32),
        count: u32,
    ) -> PyResult<u32> {
        let (operands, count) = (self.copy_operands(to, from)?, self.value(count)?);
        let shape = CopyShape::Linear { count };
        Ok(self.builder()?.async_copy(operands, shape).0)
    }

    fn async_copy_2d(
        &mut self,
        to: (MemoryId, u32, u32),
        from: (MemoryId, u32, u32),
        columns: u32,
        rows: u32,
    ) -> PyResult<u32> {
        let operands = self.copy_operands((to.0, to.1), (from.0, from.1))?;
        let shape = CopyShape::Tile {
            destination_row: self.value(to.2)?,
            source_row: self.value(from.2)?,
            columns: self.value(columns)?,
            rows: self.value(rows)?,
        };
        Ok(self.builder()?.async_copy(operands, shape).0)
    }

    fn wait(&mut self, events: Vec<u32>) -> PyResult<()> {
        let events = self.values(&events)?;
        self.builder()?.wait(&events);
        Ok(())
    }

    fn matrix_fill(&mut self, ty: &str, value: u32) -> PyResult<u32> {
        let (ty, value) = (convert::value_type(ty)?, self.value(value)?);
        Ok(self.builder()?.matrix_fill(ty, value).0)
    }

    fn matrix_load(&mut self, ty: &str, place: (MemoryId, u32, u32, bool)) -> PyResult<u32> {
        let (ty, place) = (convert::value_type(ty)?, self.matrix_place(place)?);
        Ok(self.builder()?.matrix_load(ty, place).0)
    }

    fn matrix_store(&mut self, place: (MemoryId, u32, u32, bool), matrix: u32) -> PyResult<()> {
        let (place, matrix) = (self.matrix_place(place)?, self.value(matrix)?);
        self.builder()?.matrix_store(place, matrix);
        Ok(())
    }

    fn matrix_multiply_accumulate(&mut self, a: u32, b: u32, c: u32) -> PyResult<u32> {
        let (a, b, c) = (self.value(a)?, self.value(b)?, self.value(c)?);
        Ok(self.builder()?.matrix_multiply_accumulate(a, b, c).0)
    }

    fn assert_uniform(&mut self, value: u32, scope: &str) -> PyResult<u32> {
        let (value, scope) = (self.value(value)?, convert::scope(scope)?);
        Ok(self.builder()?.assert_uniform(value, scope).0)
    }

    // ---- regions ----

    /// How many values there are: the number of the next one.
    fn value_count(&mut self) -> PyResult<usize> {
        Ok(self.builder()?.kernel().values.len())
    }

    /// How many regions are open, without the kernel's body.
    fn depth(&self) -> usize {
        self.depth
    }

    fn open_region(&mut self, params: Vec<String>) -> PyResult<Vec<u32>> {
        let types = params
            .iter()
            .map(|ty| convert::value_type(ty))
            .collect::<PyResult<Vec<_>>>()?;
        if self.depth == invar_ir::inst::MAX_NESTING {
            return Err(refuse(format!(
                "blocks nest at most {} deep",
                invar_ir::inst::MAX_NESTING
            )));
        }
        let params = self.builder()?.open_region(&types);
        self.depth += 1;
        Ok(ids(params))
    }

    /// Closes the innermost region; gives its number.
    fn close_region(&mut self) -> PyResult<usize> {
        if self.depth == 0 {
            return Err(refuse("no region is open"));
        }
        let region = self.builder()?.close_region();
        self.depth -= 1;
        self.regions.push(Some(region));
        Ok(self.regions.len() - 1)
    }

    /// This moment, to which `unwind` goes back.
    fn mark(&mut self) -> PyResult<Moment> {
        let depth = self.depth;
        Ok(Moment(self.builder()?.mark(), depth))
    }

    /// Takes back what was built since a moment.
    fn unwind(&mut self, moment: &Moment) -> PyResult<()> {
        self.builder()?.unwind(moment.0);
        self.depth = moment.1;
        Ok(())
    }

    /// Puts a closed region's instructions here, without its `yield`.
    fn splice(&mut self, region: usize) -> PyResult<()> {
        let region = self.region(region)?;
        self.builder()?.splice(region);
        Ok(())
    }

    /// Puts here what a closed region does before a jump may leave it. Right for the body of a loop
    /// that runs once: all threads that reach the loop do that.
    fn hoist(&mut self, region: usize) -> PyResult<()> {
        let Some(Some(body)) = self.regions.get_mut(region) else {
            return Err(refuse("there is no such region"));
        };
        let leaves = |inst: &Inst| inst.kind.is_terminator() || inst.exits().any();
        let count = body.insts.iter().position(leaves);
        let insts = body.insts.drain(..count.unwrap_or(0)).collect();
        let params = Vec::new();
        self.builder()?.splice(Region { params, insts });
        Ok(())
    }

    /// Whether running a closed region where it need not run changes nothing and cannot be seen:
    /// it has operations only, none of them between lanes.
    fn is_pure(&self, region: usize) -> PyResult<bool> {
        let Some(Some(region)) = self.regions.get(region) else {
            return Err(refuse("there is no such region"));
        };
        Ok(region.insts.iter().all(|inst| match &inst.kind {
            InstKind::Yield(values) => values.is_empty(),
            kind => kind.is_speculatable(),
        }))
    }

    /// Whether a closed region is without instructions.
    fn is_empty(&self, region: usize) -> PyResult<bool> {
        match self.regions.get(region) {
            Some(Some(region)) => Ok(region.insts.len() <= 1),
            Some(None) | None => Err(refuse("there is no such region")),
        }
    }

    /// Whether the innermost open region has its terminator.
    fn terminated(&mut self) -> PyResult<bool> {
        Ok(self.builder()?.terminated())
    }

    /// An `if` of two closed regions; `None` for a side that leaves by a jump.
    fn if_(
        &mut self,
        condition: u32,
        then: (usize, Option<Vec<u32>>),
        otherwise: (usize, Option<Vec<u32>>),
    ) -> PyResult<Vec<(u32, String)>> {
        let condition = self.value(condition)?;
        let mut sides = Vec::new();
        for (handle, yields) in [then, otherwise] {
            let mut region = self.region(handle)?;
            if let Some(yields) = yields {
                let values = self.values(&yields)?;
                match region.insts.last_mut().map(|i| &mut i.kind) {
                    Some(InstKind::Yield(list)) => *list = values,
                    _ => return Err(refuse("the region ends with a jump")),
                }
            }
            sides.push(region);
        }
        let (Some(otherwise), Some(then)) = (sides.pop(), sides.pop()) else {
            return Err(refuse("an `if` has two sides"));
        };
        let results = self.builder()?.if_regions(condition, then, otherwise);
        results.into_iter().map(|v| self.named(v)).collect()
    }

    /// A counted loop of a closed region. `jumps` is as for `loop_`.
    #[pyo3(signature = (lower, upper, step, init, body, jumps=None))]
    fn for_(
        &mut self,
        lower: u32,
        upper: u32,
        step: u32,
        init: Vec<u32>,
        body: usize,
        jumps: Option<Vec<Vec<u32>>>,
    ) -> PyResult<Vec<u32>> {
        let kind = InstKind::For {
            lower: self.value(lower)?,
            upper: self.value(upper)?,
            step: self.value(step)?,
            init: self.values(&init)?,
            body: self.loop_body(body, &init, 1, jumps)?,
        };
        self.loop_kind(kind, &init)
    }

    /// A loop of a closed region, left by `break_`.
    ///
    /// With `jumps` the region's own jumps take these values, in the order of the text, its end
    /// among them; and it gets parameters for the last values of `init` that it has none for.
    #[pyo3(signature = (init, body, jumps=None))]
    fn loop_(
        &mut self,
        init: Vec<u32>,
        body: usize,
        jumps: Option<Vec<Vec<u32>>>,
    ) -> PyResult<Vec<u32>> {
        let kind = InstKind::Loop {
            init: self.values(&init)?,
            body: self.loop_body(body, &init, 0, jumps)?,
        };
        self.loop_kind(kind, &init)
    }

    fn yield_(&mut self, values: Vec<u32>) -> PyResult<()> {
        let values = self.values(&values)?;
        self.builder()?.yield_(&values);
        Ok(())
    }

    fn break_(&mut self, values: Vec<u32>) -> PyResult<()> {
        let values = self.values(&values)?;
        self.builder()?.break_(&values);
        Ok(())
    }

    fn continue_(&mut self, values: Vec<u32>) -> PyResult<()> {
        let values = self.values(&values)?;
        self.builder()?.continue_(&values);
        Ok(())
    }

    fn return_(&mut self) -> PyResult<()> {
        self.builder()?.return_();
        Ok(())
    }

    // ---- the end ----

    /// The module. `access` gives each buffer parameter's, by number, as a bit for reading (1) and
    /// one for writing (2); a buffer that is not used is read only.
    #[pyo3(signature = (access, *, threadgroup=None, simdgroup=None, float_mode="contract",
        allow_out_of_bounds_loads=false, allow_out_of_bounds_stores=false, allow_uninitialised_reads=false,
        span=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "a kernel's attributes, by keyword"
    )]
    fn finish(
        &mut self,
        access: Vec<(u32, u8)>,
        threadgroup: Option<[u32; 3]>,
        simdgroup: Option<u32>,
        float_mode: &str,
        allow_out_of_bounds_loads: bool,
        allow_out_of_bounds_stores: bool,
        allow_uninitialised_reads: bool,
        span: Option<SpanId>,
    ) -> PyResult<Module> {
        let float_mode = convert::float_mode(float_mode)?;
        if self.depth != 0 {
            return Err(refuse("a region is still open"));
        }
        let mut builder = self
            .inner
            .take()
            .ok_or_else(|| refuse("the kernel is finished"))?;
        let kernel = builder.kernel_mut();
        for (id, bits) in access {
            if let Some(param) = kernel.params.get_mut(id as usize)
                && let ParamKind::Buffer { access, .. } = &mut param.kind
            {
                *access = match bits {
                    3 => Access::ReadWrite,
                    2 => Access::Write,
                    _ => Access::Read,
                };
            }
        }
        kernel.threadgroup_size = threadgroup;
        kernel.simdgroup_size = simdgroup;
        kernel.float_mode = float_mode;
        kernel.allow_out_of_bounds_loads = allow_out_of_bounds_loads;
        kernel.allow_out_of_bounds_stores = allow_out_of_bounds_stores;
        kernel.allow_uninitialised_reads = allow_uninitialised_reads;
        if let Some(span) = span {
            kernel.span = span_of(span);
        }
        let (sources, calls) = (
            builder.module().sources.clone(),
            builder.module().calls.clone(),
        );
        match builder.finish() {
            Ok(module) => Ok(Module::new(module)),
            Err(errors) => {
                let module = invar_ir::Module {
                    sources,
                    calls,
                    ..Default::default()
                };
                Err(convert::diagnostics(&module, &errors))
            }
        }
    }
}

/// The values of the jumps of a loop's body that belong to that loop.
fn own_jumps<'a>(region: &'a mut Region, is_body: bool, found: &mut Vec<&'a mut Values>) {
    for inst in &mut region.insts {
        let jumps = matches!(inst.kind, InstKind::Break(_) | InstKind::Continue(_));
        // An `if` ends its sides with a `yield`, too.
        if jumps || is_body && matches!(inst.kind, InstKind::Yield(_)) {
            if let InstKind::Break(values) | InstKind::Continue(values) | InstKind::Yield(values) =
                &mut inst.kind
            {
                found.push(values);
            }
        } else if let InstKind::If {
            then, otherwise, ..
        } = &mut inst.kind
        {
            own_jumps(then, false, found);
            own_jumps(otherwise, false, found);
        }
    }
}

impl Builder {
    /// A loop's body, with the values of its jumps and with all its parameters.
    fn loop_body(
        &mut self,
        body: usize,
        init: &[u32],
        first: usize,
        jumps: Option<Vec<Vec<u32>>>,
    ) -> PyResult<Region> {
        let mut region = self.region(body)?;
        let Some(jumps) = jumps else {
            return Ok(region);
        };
        let known = (region.params.len() - first.min(region.params.len())).min(init.len());
        let types: Vec<Type> = {
            let init = self.values(&init[known..])?;
            let builder = self.builder()?;
            init.iter().map(|v| builder.ty(*v)).collect()
        };
        let builder = self.builder()?;
        let params = builder.open_region(&types);
        builder.close_region();
        region.params.extend(params);
        let values = jumps
            .iter()
            .map(|ids| self.values(ids))
            .collect::<PyResult<Vec<_>>>()?;
        let mut places = Vec::new();
        own_jumps(&mut region, true, &mut places);
        if places.len() != values.len() {
            return Err(refuse("the loop's body has another number of jumps"));
        }
        for (place, values) in places.into_iter().zip(values) {
            *place = values;
        }
        Ok(region)
    }

    fn loop_kind(&mut self, kind: InstKind, init: &[u32]) -> PyResult<Vec<u32>> {
        let types: Vec<Type> = {
            let init = self.values(init)?;
            let builder = self.builder()?;
            init.iter().map(|v| builder.ty(*v)).collect()
        };
        Ok(ids(self.builder()?.push(kind, &types)))
    }
}
