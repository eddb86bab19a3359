//! How types of WGSL lie in memory.
//!
//! What is shared with the host lies as WGSL says. Where C's rules, which Invar follows, would put a
//! member elsewhere, fields between fill the gap: `pad`, which no kernel touches. A vector of 3 takes
//! the place of 4 in an array and as a column of a matrix: `struct @vec3f { v: f32x3, pad: f32 }`.

use std::sync::Arc;

use invar_ir::{Diagnostic, ElementType, Scalar, StructDef, StructId, Type};
use naga::{Handle, TypeInner, VectorSize};

use crate::translator::Translator;
use crate::types::{describe, field_name, scalar, value_type};
use crate::value::Layout;

/// Whether a type has to be wrapped where it stands in an array: a vector of 3.
fn is_wrapped(inner: &TypeInner) -> bool {
    matches!(
        inner,
        TypeInner::Vector {
            size: VectorSize::Tri,
            ..
        }
    )
}

impl Translator<'_> {
    /// Whether an element of an array, or a column of a matrix, of that type is wrapped in a struct.
    pub(crate) fn is_wrapped(&self, element: Handle<naga::Type>, layout: Layout) -> bool {
        layout == Layout::Host && is_wrapped(&self.shader.types[element].inner)
    }

    /// Whether a matrix is kept as an array of wrapped columns.
    pub(crate) fn is_column_array(inner: &TypeInner, layout: Layout) -> bool {
        layout == Layout::Host
            && matches!(
                inner,
                TypeInner::Matrix {
                    rows: VectorSize::Tri,
                    ..
                }
            )
    }

    /// What memory holds for a type.
    pub(crate) fn element(
        &mut self,
        ty: Handle<naga::Type>,
        layout: Layout,
    ) -> Result<ElementType, Diagnostic> {
        let inner = &self.shader.types[ty].inner;
        if Self::is_column_array(inner, layout)
            && let TypeInner::Matrix {
                columns, scalar: s, ..
            } = *inner
        {
            let column = self.wrapped(s)?;
            return Ok(ElementType::Array(Arc::new(column), columns as u32));
        }
        if let Some(value) = value_type(inner) {
            return Ok(ElementType::Value(value));
        }
        match inner {
            TypeInner::Array { base, size, .. } => {
                let Some(length) = self.array_length(*size) else {
                    return Err(self.refuse("an array without a length of its own, here"));
                };
                let element = self.array_element(*base, layout)?;
                Ok(ElementType::Array(Arc::new(element), length))
            }
            TypeInner::Struct { members, span } => self.structure(ty, members, *span, layout),
            other => Err(self.refuse(&format!("{} in memory", describe(other)))),
        }
    }

    /// What memory holds for an element of an array.
    pub(crate) fn array_element(
        &mut self,
        base: Handle<naga::Type>,
        layout: Layout,
    ) -> Result<ElementType, Diagnostic> {
        match &self.shader.types[base].inner {
            TypeInner::Vector { scalar, .. } if self.is_wrapped(base, layout) => {
                self.wrapped(*scalar)
            }
            _any_other => self.element(base, layout),
        }
    }

    /// A vector of 3 that takes the place of 4.
    fn wrapped(&mut self, of: naga::Scalar) -> Result<ElementType, Diagnostic> {
        let Some(of) = scalar(of) else {
            return Err(self.refuse("a vector of this type"));
        };
        let fields = vec![
            ("v".into(), ElementType::Value(Type::Vector(of, 3))),
            ("pad.w".into(), of.into()),
        ];
        let name = format!("vec3.{of}");
        Ok(ElementType::Struct(self.declare(&name, fields)))
    }

    fn structure(
        &mut self,
        ty: Handle<naga::Type>,
        members: &[naga::StructMember],
        size: u32,
        layout: Layout,
    ) -> Result<ElementType, Diagnostic> {
        if let Some(id) = self.structs.get(&(ty, layout)) {
            return Ok(ElementType::Struct(*id));
        }
        let name = self.type_name(ty);
        let id = self.declare_members(&name, members, size, layout)?;
        self.structs.insert((ty, layout), id);
        Ok(ElementType::Struct(id))
    }

    /// The name of a type, as the author gave it.
    pub(crate) fn type_name(&self, ty: Handle<naga::Type>) -> String {
        let name = self.shader.types[ty].name.clone();
        name.filter(|n| !n.is_empty())
            .unwrap_or_else(|| "Struct".to_string())
    }

    /// A struct of these members, up to a size.
    pub(crate) fn declare_members(
        &mut self,
        name: &str,
        members: &[naga::StructMember],
        size: u32,
        layout: Layout,
    ) -> Result<StructId, Diagnostic> {
        let mut fields: Vec<(Arc<str>, ElementType)> = Vec::new();
        let mut end = 0;
        let mut pads = 0;
        let mut fill = |fields: &mut Vec<(Arc<str>, ElementType)>, from: u32, to: u32| {
            // Every offset is a multiple of 2, and of 4 unless f16 is there.
            let (scalar, count) = if from.is_multiple_of(4) && to.is_multiple_of(4) {
                (Scalar::U32, to.saturating_sub(from) / 4)
            } else {
                (Scalar::U16, to.saturating_sub(from) / 2)
            };
            let mut pad = |ty| {
                let name = loop {
                    pads += 1;
                    let name = format!("pad.{pads}");
                    if !members.iter().any(|m| m.name.as_deref() == Some(&name)) {
                        break name;
                    }
                };
                fields.push((name.into(), ty));
            };
            match count {
                0 => {}
                1 => pad(ElementType::from(scalar)),
                n => pad(ElementType::Array(Arc::new(scalar.into()), n)),
            }
        };
        for (number, member) in members.iter().enumerate() {
            if layout == Layout::Host {
                fill(&mut fields, end, member.offset);
            }
            let element = self.element(member.ty, layout)?;
            fields.push((field_name(member, number).into(), element));
            if layout == Layout::Host {
                let inner = &self.shader.types[member.ty].inner;
                end = member.offset + inner.size(self.shader.to_ctx());
            }
        }
        if layout == Layout::Host {
            fill(&mut fields, end, size);
        }
        Ok(self.declare(name, fields))
    }

    /// The number of a member's field, behind the padding before it.
    pub(crate) fn field_number(
        &self,
        members: &[naga::StructMember],
        member: u32,
        layout: Layout,
    ) -> u32 {
        if layout == Layout::Own {
            return member;
        }
        let mut end = 0;
        let mut pads = 0;
        for m in &members[..=member as usize] {
            if m.offset > end {
                pads += 1;
            }
            let inner = &self.shader.types[m.ty].inner;
            end = m.offset + inner.size(self.shader.to_ctx());
        }
        member + pads
    }

    /// A struct of these fields; the same one where there is one already.
    fn declare(&mut self, name: &str, fields: Vec<(Arc<str>, ElementType)>) -> StructId {
        let span = self.k.span();
        let structs = &mut self.k.module_mut().structs;
        let same = |def: &StructDef| {
            def.fields == fields
                && (*def.name == *name || def.name.starts_with(&format!("{name}.")))
        };
        if let Some(id) = structs.iter().position(same) {
            return StructId(id as u32);
        }
        let mut unique = name.to_string();
        let mut number = 1;
        while structs.iter().any(|def| *def.name == *unique) {
            number += 1;
            unique = format!("{name}.{number}");
        }
        structs.push(StructDef {
            name: unique.into(),
            fields,
            span,
        });
        StructId(self.k.module().structs.len() as u32 - 1)
    }
}
