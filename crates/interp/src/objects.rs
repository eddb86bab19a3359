//! How memory objects and their locations are called in messages.

use invar_ir::{AddressSpace, ElementType, Kernel, Memory, Module, ParamKind, StructDef, Type};

use crate::dispatch::Arg;
use crate::observe::ObjectInfo;
use crate::program::Program;

/// The most locations of an element that get a name of their own.
const MAX_NAMED_PARTS: u64 = 4096;

/// The objects of a program, in the order of their numbers.
pub(crate) fn memories(program: &Program) -> impl Iterator<Item = Memory> {
    all_memories(&program.module, program.kernel())
}

/// The objects of a kernel, in the order of their numbers.
pub(crate) fn all_memories(module: &Module, kernel: &Kernel) -> impl Iterator<Item = Memory> {
    (0..kernel.params.len() as u32)
        .map(Memory::Param)
        .chain((0..kernel.allocs.len() as u32).map(Memory::Alloc))
        .chain((0..module.constants.len() as u32).map(Memory::Constant))
}

/// Describes the objects of a program for observers.
pub(crate) fn describe(program: &Program, lengths: &[u64], args: &[Arg]) -> Vec<ObjectInfo> {
    let (module, kernel) = (&program.module, program.kernel());
    memories(program)
        .zip(&program.objects)
        .zip(lengths)
        .map(|((memory, object), length)| {
            let info = module.memory(kernel, memory);
            let scalar_param = match memory {
                Memory::Param(i) => {
                    matches!(kernel.params[i as usize].kind, ParamKind::Scalar { .. })
                }
                Memory::Alloc(_) | Memory::Constant(_) => false,
            };
            let texture = match memory {
                Memory::Param(i) => match args.get(i as usize) {
                    Some(Arg::Texture(shape, _)) => Some(*shape),
                    Some(_) | None => None,
                },
                Memory::Alloc(_) | Memory::Constant(_) => None,
            };
            let dimension = kernel.texture(memory).map(|ty| ty.dimension);
            let mut parts = Vec::new();
            if object.element_locations <= MAX_NAMED_PARTS
                && let Some(info) = &info
            {
                name_parts(module, info.element, "", &mut parts);
            }
            ObjectInfo {
                memory,
                name: info.as_ref().map_or(String::new(), |i| i.name.to_string()),
                space: info.as_ref().map_or(AddressSpace::Constant, |i| i.space),
                writable: !scalar_param && info.as_ref().is_some_and(|i| i.access.can_write()),
                length: *length,
                texture: dimension.zip(texture),
                imageblock: info
                    .as_ref()
                    .filter(|i| i.space == AddressSpace::Imageblock)
                    .map(|_| kernel.imageblock_size()),
                element_locations: object.element_locations,
                parts,
                scalars: object.locations.iter().map(|(_, s)| *s).collect(),
            }
        })
        .collect()
}

fn name_parts(module: &Module, element: &ElementType, prefix: &str, out: &mut Vec<String>) {
    match element {
        ElementType::Value(Type::Vector(_, n)) => {
            for component in &["x", "y", "z", "w"][..usize::from(*n)] {
                out.push(format!("{prefix}.{component}"));
            }
        }
        ElementType::Value(Type::Matrix { columns, rows, .. }) => {
            for c in 0..*columns {
                for r in 0..*rows {
                    out.push(format!("{prefix}[{c}][{r}]"));
                }
            }
        }
        ElementType::Value(_) => out.push(prefix.to_string()),
        ElementType::Array(element, length) => {
            for i in 0..*length {
                name_parts(module, element, &format!("{prefix}[{i}]"), out);
            }
        }
        ElementType::Struct(id) => {
            let def = &module.structs[id.0 as usize];
            for (name, field) in &def.fields {
                let mut prefix = prefix.to_string();
                push_field(def, name, &mut prefix);
                name_parts(module, field, &prefix, out);
            }
        }
    }
}

/// Goes on with a field, as an author writes it: a vector of 3 that takes the place of 4 in a shader is a struct, of
/// which nobody there knows.
pub(crate) fn push_field(def: &StructDef, name: &str, path: &mut String) {
    if def.name.starts_with("vec3.") && name == "v" {
        return;
    }
    path.push('.');
    path.push_str(name);
}
