//! The types that a source gives the elements of its parameters: what who fills them writes, also where the kernel
//! accesses parts of them.

use std::collections::HashMap;

use invar_ir::{ElementType, Scalar, Span, StructDef, StructId, Type};
use invar_llvm::foreign::{DebugField, DebugType};
use invar_wgsl::Declared;

use crate::fields::{is_handle_type, size};
use crate::objects::written_scalar;

/// The type of what a parameter leads to, unless it is that of bytes, which stand for anything, or has unions, fields of
/// bits or fields that are not aligned.
pub(crate) fn declared(ty: &DebugType) -> Option<Declared> {
    let is_bytes = match ty {
        DebugType::Struct(..) => false,
        DebugType::Scalar(name, _) if name == "bool" => false,
        other => size(other) <= 1,
    };
    if is_bytes || is_of_addresses(ty) {
        return None;
    }
    let mut all = Structs::default();
    let element = all.element(ty)?;
    let extent = element.extent(&all.0)?;
    (extent.size_bytes == size(ty)).then_some(Declared {
        element,
        structs: all.0,
    })
}

/// So many bytes as an element.
pub(crate) fn bytes_of(count: u64) -> ElementType {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    ElementType::Array(ElementType::Value(Type::Scalar(Scalar::U8)).into(), count)
}

/// The scalar and count of a vector of the headers, by the name of its class.
pub(crate) fn vector(name: &str) -> Option<(Scalar, u32)> {
    let parts = name.strip_prefix("invar_vec<")?.strip_suffix('>')?;
    let mut parts = parts.split(',').map(str::trim);
    let (scalar, count) = (parts.next()?, parts.next()?.parse().ok()?);
    let bytes = HashMap::from([
        ("bool", 1),
        ("char", 1),
        ("signed char", 1),
        ("unsigned char", 1),
        ("short", 2),
        ("unsigned short", 2),
        ("int", 4),
        ("unsigned int", 4),
        ("long", 8),
        ("unsigned long", 8),
    ]);
    let bytes = bytes.get(scalar).copied().unwrap_or(0);
    Some((written_scalar(scalar, bytes)?, count))
}

/// The same as it is written: of a `bool` each component is `true` or `false`, and not the byte that a kernel accesses.
fn written_vector(name: &str) -> Option<(Scalar, u32)> {
    let (scalar, count) = vector(name)?;
    let is_bool = name.starts_with("invar_vec<bool");
    Some((if is_bool { Scalar::Bool } else { scalar }, count))
}

/// Whether all in a type is addresses, textures and samplers, which are other parameters.
fn is_of_addresses(ty: &DebugType) -> bool {
    match ty {
        DebugType::Pointer(_) => true,
        DebugType::Array(element, _) => is_of_addresses(element),
        DebugType::Struct(_, _, fields) => {
            is_handle_type(ty)
                || !fields.is_empty() && fields.iter().all(|f| is_of_addresses(&f.ty))
        }
        DebugType::Scalar(..) | DebugType::Other(..) => false,
    }
}

/// Classes of the headers whose only member nobody writes.
const WRAPPERS: [&str; 3] = ["atomic<", "array<", "matrix<"];

#[derive(Default)]
struct Structs(Vec<StructDef>);

impl Structs {
    fn element(&mut self, ty: &DebugType) -> Option<ElementType> {
        match ty {
            DebugType::Scalar(name, 1) if name == "bool" => Some(Scalar::Bool.into()),
            DebugType::Scalar(name, bytes) => Some(written_scalar(name, *bytes)?.into()),
            DebugType::Array(element, count) => {
                let count = u32::try_from(*count).ok().filter(|count| *count > 0)?;
                Some(ElementType::Array(self.element(element)?.into(), count))
            }
            DebugType::Struct(name, bytes, fields) => match (written_vector(name), &fields[..]) {
                (Some((scalar, 3)), _) if *bytes == 4 * scalar.size_bytes() => {
                    Some(self.of_three(scalar))
                }
                (Some((scalar, count)), _) => {
                    Some(ElementType::Array(ElementType::from(scalar).into(), count))
                }
                (None, [only]) if WRAPPERS.iter().any(|class| name.starts_with(class)) => {
                    self.element(&only.ty)
                }
                (None, fields) => self.of_fields(name, *bytes, fields),
            },
            DebugType::Pointer(_) => Some(bytes_of(8)),
            DebugType::Other(_, 0) => None,
            DebugType::Other(_, bytes) => Some(bytes_of(*bytes)),
        }
    }

    /// A vector of 3 in the place of 4, as a shader has it.
    fn of_three(&mut self, scalar: Scalar) -> ElementType {
        let vector = ElementType::Value(Type::Vector(scalar, 3));
        let fields = vec![("v".into(), vector), ("pad.w".into(), scalar.into())];
        self.declare(&format!("vec3.{scalar}"), fields)
    }

    fn of_fields(&mut self, name: &str, bytes: u64, fields: &[DebugField]) -> Option<ElementType> {
        let mut members: Vec<(std::sync::Arc<str>, ElementType)> = Vec::new();
        let (mut end, mut align) = (0, 1);
        for (number, field) in fields.iter().enumerate() {
            let element = self.element(&field.ty)?;
            let extent = element.extent(&self.0)?;
            let start = u64::next_multiple_of(end, extent.align_bytes);
            if field.offset_bytes < start {
                return None;
            }
            if field.offset_bytes > start {
                let gap = bytes_of(field.offset_bytes - end);
                members.push((format!("pad.{}", members.len()).into(), gap));
            }
            let name = match &*field.name {
                _ if is_of_addresses(&field.ty) => format!("pad.{}", members.len()),
                "" => format!("base.{number}"),
                name => name.to_string(),
            };
            members.push((name.into(), element));
            end = field.offset_bytes + extent.size_bytes;
            align = align.max(extent.align_bytes);
        }
        if bytes > end.next_multiple_of(align) {
            let gap = bytes_of(bytes - end);
            members.push((format!("pad.{}", members.len()).into(), gap));
        }
        match members.is_empty() {
            true => Some(bytes_of(bytes.max(1))),
            false => Some(self.declare(name, members)),
        }
    }

    fn declare(
        &mut self,
        name: &str,
        fields: Vec<(std::sync::Arc<str>, ElementType)>,
    ) -> ElementType {
        let same = |s: &StructDef| *s.name == *name && s.fields == fields;
        let known = self.0.iter().position(same);
        let number = known.unwrap_or_else(|| {
            // Instances of a template in two namespaces may have one name.
            let others = self.0.iter().filter(|s| {
                let plain = s.name.strip_prefix(name);
                plain.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
            });
            let name = match others.count() {
                0 => name.to_string(),
                more => format!("{name}#{more}"),
            };
            self.0.push(StructDef {
                name: name.into(),
                fields,
                span: Span::NONE,
            });
            self.0.len() - 1
        });
        ElementType::Struct(StructId(number as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(name: &str, bytes: u64) -> DebugType {
        DebugType::Scalar(name.to_string(), bytes)
    }

    fn structure(name: &str, bytes: u64, fields: &[(&str, u64, DebugType)]) -> DebugType {
        let fields = fields.iter().map(|(name, offset, ty)| DebugField {
            name: name.to_string(),
            offset_bytes: *offset,
            ty: ty.clone(),
        });
        DebugType::Struct(name.to_string(), bytes, fields.collect())
    }

    #[test]
    fn structs_have_the_places_that_they_have_in_the_source() {
        let pointer = DebugType::Pointer(scalar("float", 4).into());
        let layer = structure(
            "Layer",
            24,
            &[
                ("w", 0, pointer.clone()),
                ("b", 8, pointer),
                ("n", 16, scalar("unsigned int", 4)),
            ],
        );
        let net = structure(
            "Net",
            56,
            &[
                ("layers", 0, DebugType::Array(layer.into(), 2)),
                ("scale", 48, scalar("float", 4)),
            ],
        );
        let made = declared(&net).expect("it has a layout");
        let places = made.element.locations(&made.structs);
        let last = places.iter().rfind(|(_, s)| *s == Scalar::F32);
        assert_eq!(last, Some(&(48, Scalar::F32)));
        let counts = places.iter().filter(|(_, s)| *s == Scalar::U32);
        assert_eq!(counts.map(|(at, _)| *at).collect::<Vec<_>>(), [16, 40]);
    }

    #[test]
    fn what_has_no_layout_is_left_as_it_is() {
        let packed = structure(
            "Packed",
            5,
            &[("a", 0, scalar("char", 1)), ("b", 1, scalar("int", 4))],
        );
        assert_eq!(declared(&packed), None);
        let both = structure(
            "Both",
            4,
            &[("a", 0, scalar("int", 4)), ("b", 0, scalar("float", 4))],
        );
        assert_eq!(declared(&both), None);
        assert_eq!(declared(&scalar("char", 1)), None);
        assert!(declared(&scalar("int", 4)).is_some());
    }
}
