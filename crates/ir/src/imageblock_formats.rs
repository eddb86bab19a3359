//! Fields of imageblocks that are stored in pixel formats: an implicit layout.
//!
//! Such a field has the codes of its format in memory, a scalar for each channel, and the builder writes out what
//! brings a value to codes in front of a store, and codes to a value behind a load: V2 of the memory model, with the
//! components that the author's type has.
//!
//! Deliberately absent: formats whose channels share a word, as a component of an element is a location (L1), and
//! those of the sRGB curve, which goes by tables.

use std::collections::HashMap;

use invar_texture::{Coding, Numbers, PixelFormat};

use crate::builder::KernelBuilder;
use crate::diagnostic::Diagnostic;
use crate::inst::{Inst, InstKind, Memory, Place, Step, Value};
use crate::ops::Op;
use crate::rules::Rule;
use crate::text::shorten;
use crate::types::{ElementType, Scalar, StructDef, StructId, Type};

/// What a builder knows of its imageblocks.
#[derive(Default)]
pub(crate) struct Imageblocks {
    /// Where they are declared: before everything else, whenever that was said.
    pub declared: Vec<Inst>,
    /// By the array and the number of the field, if the element is a struct.
    formats: HashMap<(u32, Option<u32>), Stored>,
}

impl Imageblocks {
    /// Forgets those that were declared after so many arrays.
    pub fn keep(&mut self, arrays: u32) {
        self.declared
            .retain(|inst| !matches!(inst.kind, InstKind::Alloc(id) if id >= arrays));
        self.formats.retain(|(id, _), _| *id < arrays);
    }
}

/// A field in a format.
#[derive(Clone, Copy)]
struct Stored {
    format: PixelFormat,
    /// Its type for the author.
    ty: Type,
}

impl KernelBuilder {
    /// An imageblock of which fields are stored in pixel formats: they are read and written as values of the types
    /// that the element says, and keep what the format keeps of them (V2). Of an element that is not a struct the
    /// field's name is empty.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # use invar_texture::PixelFormat;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.kernel_mut().threadgroup_size = Some([16, 8, 1]);
    /// let block = k.imageblock_of("block", Type::Vector(Scalar::F32, 4), &[("", PixelFormat::Rgba8Unorm)]);
    /// let first = k.const_u32(0);
    /// let colour = k.load(Place::element(block, first));
    /// assert_eq!(k.ty(colour), Type::Vector(Scalar::F32, 4));
    /// k.store(Place::element(block, first), colour);
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn imageblock_of(
        &mut self,
        name: &str,
        element: impl Into<ElementType>,
        formats: &[(&str, PixelFormat)],
    ) -> Memory {
        let element = element.into();
        let mut stored: Vec<(Option<u32>, Stored)> = Vec::new();
        for (field, format) in formats {
            match self.stored_field(&element, field, *format) {
                Ok((number, _)) if stored.iter().any(|(other, _)| *other == number) => {
                    let message = format!("`{}` has two formats", shorten(field));
                    self.refuse_format(message, "give it one");
                }
                Ok(found) => stored.push(found),
                Err((message, help)) => self.refuse_format(message, help),
            }
        }
        let in_memory = match (&element, stored.as_slice()) {
            (_, []) => element,
            (ElementType::Struct(id), fields) => {
                let def = self.module().structs[id.0 as usize].clone();
                self.struct_in_memory(def, name, fields)
            }
            (_, [(_, only), ..]) => only.in_memory().into(),
        };
        let memory = self.imageblock(name, in_memory);
        if let Memory::Alloc(array) = memory {
            let formats = stored.into_iter();
            let known = &mut self.imageblocks.formats;
            known.extend(formats.map(|(field, stored)| ((array, field), stored)));
        }
        memory
    }

    fn refuse_format(&mut self, message: String, help: &str) {
        let error = Diagnostic::error(Rule::TypeMismatch, self.span(), message);
        self.error(error.help(help));
    }

    /// The number of a field and how it is stored, or what is wrong and what to do.
    fn stored_field(
        &self,
        element: &ElementType,
        field: &str,
        format: PixelFormat,
    ) -> Result<(Option<u32>, Stored), (String, &'static str)> {
        let shown = shorten(field);
        let (number, ty) = match element {
            ElementType::Struct(id) => {
                let def = self.module().structs.get(id.0 as usize);
                let fields = def.map_or(&[][..], |def| &def.fields);
                let number = fields.iter().position(|(name, _)| **name == *field);
                let number = number.ok_or_else(|| {
                    let message = format!("the element of the imageblock has no field `{shown}`");
                    (message, "name a field that the struct declares")
                })?;
                (Some(number as u32), &fields[number].1)
            }
            _one_value => (None, element),
        };
        let what = match number {
            Some(_) => format!("field `{shown}`"),
            None => "the element".to_string(),
        };
        let name = format.name();
        if format.is_packed() {
            let message = format!(
                "{what} is stored in `{name}`, whose channels share a word, but each component of an element is a \
                 location of its own"
            );
            return Err((
                message,
                "store it in a format whose channels have bytes of their own, such as `rgba8unorm`",
            ));
        }
        if format.coding() == Coding::Srgb {
            let message = format!("{what} is stored in `{name}`, which imageblocks do not have");
            return Err((
                message,
                "store it as `unorm`; a texture that a slice is written to may be of sRGB",
            ));
        }
        let ElementType::Value(ty) = *ty else {
            let message = format!("{what} has a format, but is not a scalar or vector");
            return Err((message, "give formats to fields of scalars and vectors"));
        };
        let (scalar, components) = match ty {
            Type::Scalar(scalar) => (scalar, 1),
            Type::Vector(scalar, components) => (scalar, components),
            Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => {
                let message = format!("{what} has a format, but is not a scalar or vector");
                return Err((message, "give formats to fields of scalars and vectors"));
            }
        };
        let fits = match format.numbers() {
            Numbers::Float => matches!(scalar, Scalar::F32 | Scalar::F16),
            Numbers::Unsigned => matches!(
                (scalar, format.bits()),
                (Scalar::U32, _) | (Scalar::U16, 8 | 16)
            ),
            Numbers::Signed => matches!(
                (scalar, format.bits()),
                (Scalar::I32, _) | (Scalar::I16, 8 | 16)
            ),
        };
        if !fits || u32::from(components) != format.channels() {
            let message = format!("{what} has type {ty}, which cannot be stored in `{name}`");
            return Err((
                message,
                "a format of floats has components of f32 or f16, one of integers those of its sign, as many as channels",
            ));
        }
        Ok((number, Stored { format, ty }))
    }

    /// The struct with fields as they lie in memory, under a name that no other has.
    fn struct_in_memory(
        &mut self,
        mut def: StructDef,
        name: &str,
        fields: &[(Option<u32>, Stored)],
    ) -> ElementType {
        for (number, stored) in fields {
            if let Some(number) = number {
                def.fields[*number as usize].1 = stored.in_memory().into();
            }
        }
        let structs = &mut self.module_mut().structs;
        let mut unique = format!("{}.{name}", def.name);
        while structs.iter().any(|other| *other.name == *unique) {
            unique.push('.');
        }
        def.name = unique.into();
        structs.push(def);
        ElementType::Struct(StructId(structs.len() as u32 - 1))
    }

    /// How what lies at a place is stored, if it is in a format.
    fn stored(&self, place: &Place) -> Option<Stored> {
        let Memory::Alloc(array) = place.memory else {
            return None;
        };
        let field = match place.path.first() {
            Some(Step::Field(number)) => Some(*number),
            Some(Step::Index(_)) | None => None,
        };
        self.imageblocks.formats.get(&(array, field)).copied()
    }

    /// What codes that were loaded from a place stand for: the value itself where they are none.
    pub(crate) fn decoded(&mut self, place: &Place, codes: Value) -> Value {
        let Some(Stored { format, ty }) = self.stored(place) else {
            return codes;
        };
        let bits = format.bits();
        let number = match format.coding() {
            Coding::Unorm => {
                let number = self.of_scalar(codes, Scalar::F32);
                let most = self.like(number, ((1u64 << bits) - 1) as f32);
                self.op(Op::Div, (), &[number, most])
            }
            Coding::Snorm => {
                let number = self.of_scalar(codes, Scalar::F32);
                let most = self.like(number, ((1u64 << (bits - 1)) - 1) as f32);
                let number = self.op(Op::Div, (), &[number, most]);
                let least = self.like(number, -1.0f32);
                self.op(Op::Fmax, (), &[number, least])
            }
            Coding::Uint | Coding::Sint | Coding::Float | Coding::Srgb => codes,
        };
        self.of_scalar(number, scalar_of(ty))
    }

    /// The codes of a value that is stored to a place; the value itself where there are none.
    pub(crate) fn encoded(&mut self, place: &Place, value: Value) -> Value {
        let Some(Stored { format, ty }) = self.stored(place) else {
            return value;
        };
        if self.is_poison(value) {
            return value;
        }
        let (found, expected) = (self.ty(value), self.type_at(place, ty));
        if found != expected {
            let message = format!(
                "`{}` has type {found}, but what is stored there is {expected}",
                self.called(value)
            );
            self.refuse_format(message, "convert it first");
            return self.poison(found);
        }
        let bits = format.bits();
        let in_memory = scalar_of(Stored { format, ty }.in_memory());
        let codes = match format.coding() {
            Coding::Unorm => {
                let number = self.of_scalar(value, Scalar::F32);
                let least = self.like(number, 0.0f32);
                let above = self.op(Op::Fmax, (), &[number, least]);
                self.scaled(above, ((1u64 << bits) - 1) as f32)
            }
            Coding::Snorm => {
                let number = self.of_scalar(value, Scalar::F32);
                let zero = self.like(number, 0.0f32);
                let is_number = self.op(Op::Eq, (), &[number, number]);
                let number = self.op(Op::Select, (), &[zero, number, is_number]);
                let least = self.like(number, -1.0f32);
                let above = self.op(Op::Fmax, (), &[number, least]);
                self.scaled(above, ((1u64 << (bits - 1)) - 1) as f32)
            }
            Coding::Uint if bits < scalar_of(ty).bits() => {
                let most = (1u64 << bits) - 1;
                let most = self.integers_like(value, most as i64);
                self.op(Op::Min, (), &[value, most])
            }
            Coding::Sint if bits < scalar_of(ty).bits() => {
                let most = (1i64 << (bits - 1)) - 1;
                let (least, most) = (
                    self.integers_like(value, -most - 1),
                    self.integers_like(value, most),
                );
                let above = self.op(Op::Max, (), &[value, least]);
                self.op(Op::Min, (), &[above, most])
            }
            Coding::Uint | Coding::Sint | Coding::Float | Coding::Srgb => value,
        };
        self.of_scalar(codes, in_memory)
    }

    /// The type of a part of a field of this type: of a component, where the place names one.
    fn type_at(&self, place: &Place, ty: Type) -> Type {
        let steps = place.path.iter();
        let inside = steps.filter(|step| matches!(step, Step::Index(_))).count();
        match ty {
            Type::Vector(scalar, _) if inside > 0 => Type::Scalar(scalar),
            whole => whole,
        }
    }

    /// `rint(fmin(number, 1) * most)`.
    fn scaled(&mut self, number: Value, most: f32) -> Value {
        let one = self.like(number, 1.0f32);
        let number = self.op(Op::Fmin, (), &[number, one]);
        let most = self.like(number, most);
        let number = self.op(Op::Mul, (), &[number, most]);
        self.op(Op::Rint, (), &[number])
    }

    /// The same number of components of another scalar type.
    fn of_scalar(&mut self, value: Value, scalar: Scalar) -> Value {
        let ty = with_scalar(self.ty(value), scalar);
        if self.ty(value) == ty {
            value
        } else {
            self.cast(value, ty)
        }
    }

    /// A number in every component of a value of f32.
    fn like(&mut self, value: Value, number: f32) -> Value {
        let number = self.const_f32(number);
        self.everywhere(value, number)
    }

    /// An integer in every component of a value of integers.
    fn integers_like(&mut self, value: Value, number: i64) -> Value {
        let number = self.const_i32(number as i32);
        let number = self.of_scalar(number, scalar_of(self.ty(value)));
        self.everywhere(value, number)
    }

    fn everywhere(&mut self, value: Value, number: Value) -> Value {
        match self.ty(value) {
            ty @ Type::Vector(..) => self.op(Op::Construct, ty, &[number]),
            _scalar => number,
        }
    }
}

impl Stored {
    /// Its type in memory.
    fn in_memory(self) -> Type {
        let scalar = match (self.format.coding(), self.format.bits()) {
            (Coding::Float, 16) => Scalar::F16,
            (Coding::Float, _) => Scalar::F32,
            (Coding::Snorm | Coding::Sint, 8) => Scalar::I8,
            (Coding::Snorm | Coding::Sint, 16) => Scalar::I16,
            (Coding::Snorm | Coding::Sint, _) => Scalar::I32,
            (Coding::Unorm | Coding::Uint | Coding::Srgb, 8) => Scalar::U8,
            (Coding::Unorm | Coding::Uint | Coding::Srgb, 16) => Scalar::U16,
            (Coding::Unorm | Coding::Uint | Coding::Srgb, _) => Scalar::U32,
        };
        with_scalar(self.ty, scalar)
    }
}

fn scalar_of(ty: Type) -> Scalar {
    match ty {
        Type::Scalar(scalar) | Type::Vector(scalar, _) => scalar,
        Type::Matrix { scalar, .. } | Type::SimdgroupMatrix { scalar, .. } => scalar,
        Type::Event => Scalar::U32,
    }
}

fn with_scalar(ty: Type, scalar: Scalar) -> Type {
    match ty {
        Type::Vector(_, components) => Type::Vector(scalar, components),
        _one => Type::Scalar(scalar),
    }
}
