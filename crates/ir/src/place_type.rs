//! The type of what an access touches, by its place; or why the place makes no sense.

use crate::inst::{Place, Step, Width};
use crate::memory_layout::MAX_TYPE_DEPTH;
use crate::module::{Kernel, Module, memory_info};
use crate::types::{ElementType, Type};

/// The type of an access to a place.
///
/// # Errors
/// A sentence that says why the place makes no sense.
pub(crate) fn place_type(module: &Module, kernel: &Kernel, place: &Place) -> Result<Type, String> {
    let Some(info) = memory_info(&module.constants, kernel, place.memory) else {
        return Err("there is no such memory object".to_string());
    };
    let name = info.name;
    if !kernel.ty(place.index).is_integer_scalar() {
        return Err(format!(
            "the index of `{name}` (`{}`) has type {}, expected an integer scalar",
            module.called(kernel, place.index),
            kernel.ty(place.index),
        ));
    }
    if let Some(ty) = crate::texture::atomic_texel(kernel, place) {
        return Ok(ty);
    }
    if let Width::Run(n) | Width::Group(n) = place.width {
        return match info.element {
            ElementType::Value(Type::Scalar(scalar))
                if (2..=4).contains(&n) && place.path.is_empty() =>
            {
                Ok(Type::Vector(*scalar, n))
            }
            _ => Err(format!(
                "an access of {n} elements needs 2 to 4 scalar elements, and those of `{name}` are none"
            )),
        };
    }
    let mut at = info.element.clone();
    if place.path.len() > MAX_TYPE_DEPTH as usize {
        return Err(format!("the path into `{name}` is too long"));
    }
    for step in &place.path {
        at = match (step, &at) {
            (Step::Field(field), ElementType::Struct(id)) => module
                .structs
                .get(id.0 as usize)
                .and_then(|def| def.fields.get(*field as usize))
                .map(|(_, ty)| ty.clone())
                .ok_or_else(|| format!("the struct of `{name}` has no field number {field}"))?,
            (Step::Field(_), _) => return Err(format!("a part of `{name}` is not a struct")),
            (Step::Index(index), _) if !kernel.ty(*index).is_integer_scalar() => {
                return Err(format!(
                    "an index into `{name}` (`{}`) has type {}, expected an integer scalar",
                    module.called(kernel, *index),
                    kernel.ty(*index),
                ));
            }
            (Step::Index(_), ElementType::Array(element, _)) => (**element).clone(),
            (Step::Index(_), ElementType::Value(Type::Vector(scalar, _))) => {
                ElementType::Value(Type::Scalar(*scalar))
            }
            (Step::Index(_), ElementType::Value(Type::Matrix { scalar, rows, .. })) => {
                ElementType::Value(Type::Vector(*scalar, *rows))
            }
            (Step::Index(_), ElementType::Value(_) | ElementType::Struct(_)) => {
                return Err(format!("a part of `{name}` has nothing to index"));
            }
        };
    }
    match at {
        ElementType::Value(ty) => Ok(ty),
        ElementType::Array(..) | ElementType::Struct(_) => Err(format!(
            "an access to `{name}` stops at a struct or array; name a field or element of it"
        )),
    }
}
