//! Printing: what `Display` of a [`Module`] writes, in the one canonical form.
//!
//! Left out are what the parser fills in by itself: an empty `yield` at a region's end, the
//! `return` at the body's end, an empty `else`, `contract`, and trailing ones of a threadgroup size.
//! Nothing here fails or panics, whatever the module: what no text can express (a value that nothing
//! defines, a field that is not there) prints as something that the parser refuses.

use std::fmt::{self, Display, Formatter};

use super::lexer::{field_text, name_text, quoted};
use super::literal;
use crate::inst::{
    CopyOperands, CopyShape, Inst, InstKind, MatrixPlace, Memory, Place, Region, Scope, Spaces,
    Step, Value, Width,
};
use crate::module::{
    AddressSpace, Binding, ConstantArray, FunctionConstant, Kernel, Module, ParamKind,
};
use crate::ops::Imm;
use crate::room::{PASSES_BYTES, with_room};
use crate::texture::{Dimension, Filter, SamplerSource, TextureFunction, TextureOperands};
use crate::types::{ElementType, StructDef, Type};

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for def in &self.structs {
            print_struct(f, def, &self.structs)?;
        }
        for constant in &self.function_constants {
            print_function_constant(f, constant)?;
        }
        for constant in &self.constants {
            print_constant(f, constant, &self.structs)?;
        }
        let declares = !self.structs.is_empty()
            || !self.function_constants.is_empty()
            || !self.constants.is_empty();
        for (i, kernel) in self.kernels.iter().enumerate() {
            if i > 0 || declares {
                f.write_str("\n")?;
            }
            let printer = Printer {
                module: self,
                kernel,
            };
            with_room(PASSES_BYTES, || printer.kernel(f))?;
        }
        Ok(())
    }
}

fn print_struct(f: &mut Formatter<'_>, def: &StructDef, structs: &[StructDef]) -> fmt::Result {
    write!(f, "struct @{} {{", name_text(&def.name))?;
    for (i, (name, ty)) in def.fields.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(f, "{comma} {}: {}", field_text(name), ty.display(structs))?;
    }
    f.write_str(" }\n")
}

fn print_function_constant(f: &mut Formatter<'_>, constant: &FunctionConstant) -> fmt::Result {
    let name = name_text(&constant.name);
    write!(f, "function_constant @{name}: {}", constant.scalar)?;
    if let Some(default) = constant.default {
        write!(f, " = {}", literal::print(default))?;
    }
    writeln!(f, " id({})", constant.id)
}

fn print_constant(
    f: &mut Formatter<'_>,
    constant: &ConstantArray,
    structs: &[StructDef],
) -> fmt::Result {
    let ty = ArrayType {
        element: &constant.element,
        length: Some(constant.length),
        structs,
    };
    write!(f, "constant @{}: {ty} = [", name_text(&constant.name))?;
    for (i, value) in constant.values.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        write!(f, "{comma}{}", literal::print(*value))?;
    }
    f.write_str("]\n")
}

impl ElementType {
    /// The type as the text form writes it, with the structs' own names: `@Particle`, `f32[4][3]`
    /// (four times three; the left bracket is the outer one, and is indexed first).
    ///
    /// ```
    /// use invar_ir::{ElementType, Scalar, Type};
    ///
    /// let row = ElementType::Array(ElementType::from(Type::Vector(Scalar::F32, 2)).into(), 3);
    /// let rows = ElementType::Array(row.into(), 4);
    /// assert_eq!(rows.display(&[]).to_string(), "f32x2[4][3]");
    /// ```
    pub fn display<'a>(&'a self, structs: &'a [StructDef]) -> impl Display + 'a {
        ArrayType {
            element: self,
            length: None,
            structs,
        }
    }
}

/// An element type, or an array of it.
struct ArrayType<'a> {
    element: &'a ElementType,
    length: Option<u32>,
    structs: &'a [StructDef],
}

impl Display for ArrayType<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut innermost = self.element;
        while let ElementType::Array(element, _) = innermost {
            innermost = element;
        }
        match innermost {
            ElementType::Value(ty) => write!(f, "{ty}")?,
            ElementType::Struct(id) => match self.structs.get(id.0 as usize) {
                Some(def) => write!(f, "@{}", name_text(&def.name))?,
                None => write!(f, "@{}", id.0)?,
            },
            ElementType::Array(..) => {}
        }
        if let Some(length) = self.length {
            write!(f, "[{length}]")?;
        }
        let mut at = self.element;
        while let ElementType::Array(element, length) = at {
            write!(f, "[{length}]")?;
            at = element;
        }
        Ok(())
    }
}

/// Prints one kernel.
struct Printer<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
}

/// What a region's last instruction may be so that it is not printed.
#[derive(Clone, Copy, PartialEq)]
enum Implied {
    /// In a kernel's body: `return`.
    Return,
    /// In other regions: `yield` without values.
    Yield,
}

impl Printer<'_> {
    fn kernel(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel;
        write!(f, "kernel @{}(", name_text(&kernel.name))?;
        for (i, param) in kernel.params.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}%{}: ", name_text(&param.name))?;
            let element = |ty: &ElementType| ty.display(&self.module.structs).to_string();
            match &param.kind {
                ParamKind::Buffer { access, element: e } => {
                    write!(f, "device {} {}", access.name(), element(e))?;
                }
                ParamKind::Constant { element: e } => write!(f, "constant {}", element(e))?,
                ParamKind::Threadgroup { element: e } => write!(f, "threadgroup {}", element(e))?,
                ParamKind::Texture(texture) => write!(f, "{texture}")?,
                ParamKind::Sampler => f.write_str("sampler")?,
                ParamKind::Scalar { value } => match kernel.values.get(value.0 as usize) {
                    Some(info) => write!(f, "{}", info.ty)?,
                    None => write!(f, "%{}", value.0)?,
                },
            }
            if let Some(Binding { group, number }) = param.binding {
                write!(f, " binding({group}, {number})")?;
            }
        }
        let leading = self.leading_imageblocks();
        for (i, block) in kernel.allocs[..leading].iter().enumerate() {
            let comma = if i == 0 && kernel.params.is_empty() {
                ""
            } else {
                ", "
            };
            let name = name_text(&block.name);
            let element = block.element.display(&self.module.structs);
            write!(f, "{comma}%{name}: imageblock {element}")?;
        }
        f.write_str(")")?;
        if let Some([x, y, z]) = kernel.threadgroup_size {
            match (y, z) {
                (1, 1) => write!(f, " threadgroup({x})")?,
                (_, 1) => write!(f, " threadgroup({x}, {y})")?,
                (_, _) => write!(f, " threadgroup({x}, {y}, {z})")?,
            }
        }
        if let Some(size) = kernel.simdgroup_size {
            write!(f, " simdgroup({size})")?;
        }
        if kernel.float_mode != Default::default() {
            write!(f, " {}", kernel.float_mode.name())?;
        }
        let allowed = [
            (kernel.allow_out_of_bounds_loads, "out_of_bounds_loads"),
            (kernel.allow_out_of_bounds_stores, "out_of_bounds_stores"),
            (kernel.allow_uninitialised_reads, "uninitialised_reads"),
        ];
        let allowed: Vec<&str> = (allowed.iter())
            .filter_map(|(is, name)| is.then_some(*name))
            .collect();
        if !allowed.is_empty() {
            write!(f, " allow({})", allowed.join(", "))?;
        }
        if kernel.active_collectives {
            f.write_str(" collectives(active)")?;
        }
        for (i, requirement) in kernel.requires.iter().enumerate() {
            let open = if i == 0 { " requires(" } else { ", " };
            write!(f, "{open}{}", requirement.text(self.module, kernel))?;
        }
        if !kernel.requires.is_empty() {
            f.write_str(")")?;
        }
        f.write_str(" {\n")?;
        self.region(f, &kernel.body, 1, Implied::Return)?;
        f.write_str("}\n")
    }

    /// The imageblocks that are declared where they must be, which are printed among the parameters.
    fn leading_imageblocks(&self) -> usize {
        let insts = self.kernel.body.insts.iter();
        let leading = insts.zip(&self.kernel.allocs).zip(0..);
        leading
            .take_while(|((inst, alloc), number)| {
                alloc.space == AddressSpace::Imageblock
                    && matches!(inst.kind, InstKind::Alloc(id) if id == *number)
            })
            .count()
    }

    fn region(
        &self,
        f: &mut Formatter<'_>,
        region: &Region,
        depth: usize,
        implied: Implied,
    ) -> fmt::Result {
        let printed = if ends_with_implied(region, implied) {
            region.insts.len() - 1
        } else {
            region.insts.len()
        };
        let of_the_header = match implied {
            Implied::Return => self.leading_imageblocks(),
            Implied::Yield => 0,
        };
        for inst in &region.insts[of_the_header..printed] {
            self.inst(f, inst, depth)?;
        }
        Ok(())
    }

    /// A block in braces, up to the closing one.
    fn block(&self, f: &mut Formatter<'_>, region: &Region, depth: usize) -> fmt::Result {
        f.write_str(" {\n")?;
        self.region(f, region, depth + 1, Implied::Yield)?;
        indent(f, depth)?;
        f.write_str("}")
    }

    fn inst(&self, f: &mut Formatter<'_>, inst: &Inst, depth: usize) -> fmt::Result {
        indent(f, depth)?;
        if let InstKind::Alloc(id) = inst.kind {
            let Some(alloc) = self.kernel.allocs.get(id as usize) else {
                return writeln!(f, "%{id} = alloc");
            };
            let ty = ArrayType {
                element: &alloc.element,
                length: Some(alloc.length),
                structs: &self.module.structs,
            };
            let name = name_text(&alloc.name);
            return writeln!(f, "%{name} = alloc {} {ty}", alloc.space.name());
        }
        if !inst.results.is_empty() {
            write!(f, "{} = ", self.list(&inst.results))?;
        }
        self.operation(f, inst, depth)?;
        f.write_str("\n")
    }

    fn operation(&self, f: &mut Formatter<'_>, inst: &Inst, depth: usize) -> fmt::Result {
        let value = |v: Value| self.value(v);
        let result_type = inst
            .results
            .first()
            .and_then(|v| self.kernel.values.get(v.0 as usize))
            .map_or(Type::Event, |info| info.ty);
        match &inst.kind {
            InstKind::Const(constant) => {
                write!(f, "const {} {}", constant.scalar, literal::print(*constant))
            }
            InstKind::FunctionConstant(id) => {
                match self.module.function_constants.get(*id as usize) {
                    Some(constant) => {
                        write!(f, "function_constant @{}", name_text(&constant.name))
                    }
                    None => write!(f, "function_constant @{id}"),
                }
            }
            InstKind::Op { op, imm, args } => {
                write!(f, "{op}")?;
                match imm {
                    Imm::None => {}
                    Imm::Type(ty) => write!(f, " {ty}")?,
                    Imm::Dim(dim) => write!(f, " {}", dim.name())?,
                    Imm::Swizzle(swizzle) => write!(f, " {swizzle}")?,
                }
                self.operands(f, args)
            }
            InstKind::BufferLength(memory) => write!(f, "buffer_length {}", self.memory(*memory)),
            InstKind::Load(place) => write!(f, "load {}", self.place(place)),
            InstKind::Store { place, value: v } => {
                write!(f, "store {}, {}", self.place(place), value(*v))
            }
            InstKind::Atomic {
                op,
                place,
                args,
                order,
                scope,
            } => {
                write!(f, "{} {}", op.name(), self.place(place))?;
                for arg in args {
                    write!(f, ", {}", value(*arg))?;
                }
                write!(f, " {} {}", order.name(), scope.name())
            }
            // Printed with its name by the caller.
            InstKind::Alloc(_) => Ok(()),
            InstKind::Copy { operands: o, count } => write!(
                f,
                "copy {}[{}], {}[{}], {}",
                self.memory(o.destination),
                value(o.destination_index),
                self.memory(o.source),
                value(o.source_index),
                value(*count)
            ),
            InstKind::AsyncCopy { operands: o, shape } => self.async_copy(f, o, shape),
            InstKind::Wait { events } => {
                f.write_str("wait")?;
                self.operands(f, events)
            }
            InstKind::Barrier { scope, spaces } => barrier(f, *scope, *spaces),
            InstKind::MatrixFill { value: v } => {
                write!(f, "matrix_fill {result_type} {}", value(*v))
            }
            InstKind::MatrixLoad { place } => {
                write!(f, "matrix_load {result_type} {}", self.matrix_place(place))
            }
            InstKind::MatrixStore { place, matrix } => {
                let place = self.matrix_place(place);
                write!(f, "matrix_store {place}, {}", value(*matrix))
            }
            InstKind::MatrixMultiplyAccumulate { a, b, c } => write!(
                f,
                "matrix_multiply_accumulate {}, {}, {}",
                value(*a),
                value(*b),
                value(*c)
            ),
            InstKind::AssertUniform { value: v, scope } => {
                write!(f, "assert_uniform {} {}", scope.name(), value(*v))
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                write!(f, "if {}", value(*condition))?;
                self.block(f, then, depth)?;
                if otherwise.insts.len() == 1 && ends_with_implied(otherwise, Implied::Yield) {
                    return Ok(());
                }
                f.write_str(" else")?;
                self.block(f, otherwise, depth)
            }
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => {
                let (index, carried) = match body.params.split_first() {
                    Some((index, carried)) => (value(*index), carried),
                    None => ("%".to_string(), &[][..]),
                };
                let (lower, upper, step) = (value(*lower), value(*upper), value(*step));
                write!(f, "for {index} = {lower} to {upper} step {step}")?;
                self.carry(f, carried, init)?;
                self.block(f, body, depth)
            }
            InstKind::Loop { init, body } => {
                f.write_str("loop")?;
                self.carry(f, &body.params, init)?;
                self.block(f, body, depth)
            }
            InstKind::Yield(values) => {
                f.write_str("yield")?;
                self.operands(f, values)
            }
            InstKind::Break(values) => {
                f.write_str("break")?;
                self.operands(f, values)
            }
            InstKind::Continue(values) => {
                f.write_str("continue")?;
                self.operands(f, values)
            }
            InstKind::Return => f.write_str("return"),
            InstKind::Print { text, values } => {
                write!(f, "print {}", quoted(text))?;
                self.operands(f, values)
            }
            InstKind::Texture {
                texture,
                function,
                args,
            } => self.texture(f, *texture, *function, args),
        }
    }

    fn async_copy(
        &self,
        f: &mut Formatter<'_>,
        o: &CopyOperands,
        shape: &CopyShape,
    ) -> fmt::Result {
        let value = |v: Value| self.value(v);
        let destination = self.memory(o.destination);
        let source = self.memory(o.source);
        let (to, from) = (value(o.destination_index), value(o.source_index));
        match shape {
            CopyShape::Linear { count } => write!(
                f,
                "async_copy {destination}[{to}], {source}[{from}], {}",
                value(*count)
            ),
            CopyShape::Tile {
                destination_row,
                source_row,
                columns,
                rows,
            } => write!(
                f,
                "async_copy_2d {destination}[{to}] row {}, {source}[{from}] row {}, {}, {}",
                value(*destination_row),
                value(*source_row),
                value(*columns),
                value(*rows)
            ),
        }
    }

    fn texture(
        &self,
        f: &mut Formatter<'_>,
        texture: Memory,
        function: TextureFunction,
        args: &[Value],
    ) -> fmt::Result {
        write!(f, "{} {}", function.name(), self.memory(texture))?;
        let dimension = self.kernel.texture(texture).map(|ty| ty.dimension);
        let dimension = dimension.unwrap_or(Dimension::D2);
        let TextureOperands { at, level, value } = function.operands(dimension, args);
        if !function.is_query() && function != TextureFunction::Fence {
            write!(f, "[{}]", self.list(at))?;
        }
        let offset = function.sampling().map_or([0; 3], |s| s.offset);
        if let Some(last) = offset.iter().rposition(|o| *o != 0) {
            let numbers: Vec<String> = offset[..=last].iter().map(i8::to_string).collect();
            write!(f, " offset({})", numbers.join(", "))?;
        }
        if let Some(level) = level {
            write!(f, " level {}", self.value(level))?;
        }
        if let Some(value) = value {
            write!(f, ", {}", self.value(value))?;
        }
        if let TextureFunction::Gather { component, .. } = function {
            let name = ["x", "y", "z", "w"].get(usize::from(component));
            write!(f, " {}", name.unwrap_or(&"x"))?;
        }
        match function.sampler() {
            Some(SamplerSource::Param(param)) => write!(f, " {}", self.memory(param)),
            Some(SamplerSource::NormalizedParam(param)) => {
                write!(f, " {} normalized", self.memory(param))
            }
            Some(SamplerSource::Constant(sampler)) => {
                let gathers = matches!(
                    function,
                    TextureFunction::Gather { .. } | TextureFunction::GatherCompare(_)
                );
                // A gather filters nothing, but its sampler may say how.
                let by_default = sampler.filter == Filter::default();
                let mut words = sampler.words().skip(usize::from(gathers && by_default));
                words.try_for_each(|word| write!(f, " {word}"))
            }
            None => Ok(()),
        }
    }

    fn carry(&self, f: &mut Formatter<'_>, params: &[Value], init: &[Value]) -> fmt::Result {
        if init.is_empty() {
            return Ok(());
        }
        f.write_str(" carry(")?;
        for (i, initial) in init.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let param = params.get(i).map_or("%".to_string(), |v| self.value(*v));
            write!(f, "{comma}{param} = {}", self.value(*initial))?;
        }
        f.write_str(")")
    }

    fn operands(&self, f: &mut Formatter<'_>, values: &[Value]) -> fmt::Result {
        if values.is_empty() {
            return Ok(());
        }
        write!(f, " {}", self.list(values))
    }

    fn list(&self, values: &[Value]) -> String {
        let names: Vec<String> = values.iter().map(|v| self.value(*v)).collect();
        names.join(", ")
    }

    fn value(&self, value: Value) -> String {
        match self.kernel.values.get(value.0 as usize).map(|v| &v.name) {
            Some(Some(name)) => format!("%{}", name_text(name)),
            Some(None) | None => format!("%{}", value.0),
        }
    }

    fn memory(&self, memory: Memory) -> String {
        match memory {
            Memory::Param(i) => match self.kernel.params.get(i as usize) {
                Some(param) => format!("%{}", name_text(&param.name)),
                None => format!("%{i}"),
            },
            Memory::Alloc(i) => match self.kernel.allocs.get(i as usize) {
                Some(alloc) => format!("%{}", name_text(&alloc.name)),
                None => format!("%{i}"),
            },
            Memory::Constant(i) => match self.module.constants.get(i as usize) {
                Some(constant) => format!("@{}", name_text(&constant.name)),
                None => format!("@{i}"),
            },
        }
    }

    fn place(&self, place: &Place) -> String {
        let mut out = format!("{}[{}", self.memory(place.memory), self.value(place.index));
        match place.width {
            Width::One => {}
            Width::Run(n) => out.push_str(&format!(" : {n}")),
            Width::Group(n) => out.push_str(&format!(" * {n}")),
        }
        out.push(']');
        let is_texel = self.kernel.texture(place.memory).is_some();
        // The type on the way, to name its fields.
        let info = self.module.memory(self.kernel, place.memory);
        let mut at = info.map(|info| info.element);
        for step in &place.path {
            match step {
                Step::Field(number) => {
                    let field = match at {
                        Some(ElementType::Struct(id)) => self
                            .module
                            .structs
                            .get(id.0 as usize)
                            .and_then(|def| def.fields.get(*number as usize)),
                        Some(ElementType::Value(_) | ElementType::Array(..)) | None => None,
                    };
                    match field {
                        Some((name, _)) => out.push_str(&format!(".{}", field_text(name))),
                        None => out.push_str(&format!(".{number}")),
                    }
                    at = field.map(|(_, ty)| ty);
                }
                Step::Index(index) if is_texel => {
                    out.insert_str(out.len() - 1, &format!(", {}", self.value(*index)));
                }
                Step::Index(index) => {
                    out.push_str(&format!("[{}]", self.value(*index)));
                    at = match at {
                        Some(ElementType::Array(element, _)) => Some(element),
                        Some(ElementType::Value(_) | ElementType::Struct(_)) | None => None,
                    };
                }
            }
        }
        out
    }

    fn matrix_place(&self, place: &MatrixPlace) -> String {
        let transpose = if place.transpose { " transpose" } else { "" };
        format!(
            "{}[{}] row {}{transpose}",
            self.memory(place.memory),
            self.value(place.index),
            self.value(place.row)
        )
    }
}

/// Whether a region ends with what its end implies. After another terminator nothing is implied.
fn ends_with_implied(region: &Region, implied: Implied) -> bool {
    let Some((last, before)) = region.insts.split_last() else {
        return false;
    };
    let is_implied = match (&last.kind, implied) {
        (InstKind::Return, Implied::Return) => true,
        (InstKind::Yield(values), Implied::Yield) => values.is_empty(),
        _other_ends => false,
    };
    is_implied && !before.last().is_some_and(|inst| inst.kind.is_terminator())
}

fn indent(f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
    (0..depth).try_for_each(|_| f.write_str("    "))
}

/// A barrier and the address spaces that it orders.
fn barrier(f: &mut Formatter<'_>, scope: Scope, spaces: Spaces) -> fmt::Result {
    write!(f, "barrier {} [", scope.name())?;
    let mut comma = "";
    for (space, name) in Spaces::NAMES {
        if spaces.contains(space) {
            write!(f, "{comma}{name}")?;
            comma = ", ";
        }
    }
    f.write_str("]")
}
