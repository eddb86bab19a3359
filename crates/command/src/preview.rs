//! What a run shows of the buffers and textures that its kernel wrote.

use invar_interp::Arg;
use invar_ir::memory_layout::Layouts;
use invar_ir::texture::stored;
use invar_ir::{Access, Const, ElementType, Kernel, Module, ParamKind, Scalar};
use invar_wgsl::{Declared, Entry, is_padding};

use crate::declared::of_param;

/// Numbers that are shown of one buffer, and of one array inside of its elements.
const SHOWN: usize = 8;

/// The first numbers of each buffer that the kernel writes, or the first of its structs, field by field.
pub fn previews(module: &Module, entries: &[Entry], kernel: &Kernel, args: &[Arg]) -> Vec<String> {
    let layouts = Layouts::of(&module.structs);
    let preview = |(param, arg): (&invar_ir::Param, &Arg)| {
        let declared = of_param(entries, &kernel.name, &param.name);
        let (shown, total) = match (&param.kind, arg) {
            (
                ParamKind::Buffer {
                    access: Access::Write | Access::ReadWrite,
                    ..
                },
                _,
            ) if declared.is_some() => of_source(declared?, arg.bytes())?,
            (
                ParamKind::Buffer {
                    element: ElementType::Value(ty),
                    access: Access::Write | Access::ReadWrite,
                },
                _,
            ) => numbers(ty.scalar()?, arg.bytes()),
            (
                ParamKind::Buffer {
                    element,
                    access: Access::Write | Access::ReadWrite,
                },
                _,
            ) => elements(
                &Elements {
                    module,
                    layouts: &layouts,
                },
                element,
                arg.bytes(),
            )?,
            (ParamKind::Texture(texture), Arg::Texture(shape, _))
                if texture.access.memory().can_write() =>
            {
                numbers(stored(shape.format), arg.bytes())
            }
            _not_written => return None,
        };
        let rest = match total > shown.len() {
            true => format!(", ... ({total} in all)"),
            false => String::new(),
        };
        Some(format!("{} = [{}{rest}]", param.name, shown.join(", ")))
    };
    kernel.params.iter().zip(args).filter_map(preview).collect()
}

/// The first elements in the type that the source gives them.
fn of_source(declared: &Declared, bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    if let Some(scalar) = declared.only_scalar() {
        return Some(numbers(scalar, bytes));
    }
    let module = Module {
        structs: declared.structs.clone(),
        ..Module::default()
    };
    let layouts = Layouts::of(&module.structs);
    let all = Elements {
        module: &module,
        layouts: &layouts,
    };
    elements(&all, &declared.element, bytes)
}

/// The first numbers, and how many there are.
fn numbers(scalar: Scalar, bytes: &[u8]) -> (Vec<String>, usize) {
    let size = scalar.size_bytes() as usize;
    let all = bytes.chunks_exact(size);
    let shown = all.take(SHOWN).map(|bytes| number(scalar, bytes));
    (shown.collect(), bytes.len() / size)
}

fn number(scalar: Scalar, bytes: &[u8]) -> String {
    let size = scalar.size_bytes() as usize;
    let mut bits = [0; 8];
    bits[..size].copy_from_slice(&bytes[..size]);
    let bits = u64::from_le_bytes(bits);
    Const { scalar, bits }.to_string()
}

/// The first elements, as many as have about [`SHOWN`] numbers, and how many there are.
fn elements(
    all: &Elements<'_>,
    element: &ElementType,
    bytes: &[u8],
) -> Option<(Vec<String>, usize)> {
    let extent = all.layouts.extent(element)?;
    let size = usize::try_from(extent.size_bytes).ok()?.max(1);
    let (mut shown, mut count) = (Vec::new(), 0);
    for bytes in bytes.chunks_exact(size) {
        if count >= SHOWN {
            break;
        }
        let mut text = String::new();
        count += all.write(element, bytes, &mut text)?;
        shown.push(text);
    }
    Some((shown, bytes.len() / size))
}

struct Elements<'a> {
    module: &'a Module,
    layouts: &'a Layouts,
}

impl Elements<'_> {
    /// Writes what is at the beginning of these bytes; how many numbers it has written.
    fn write(&self, element: &ElementType, bytes: &[u8], out: &mut String) -> Option<usize> {
        match element {
            ElementType::Value(ty) => {
                let places = element.locations(&self.module.structs);
                let numbers = places.iter();
                let numbers: Option<Vec<String>> = numbers
                    .map(|(offset, scalar)| {
                        let from = usize::try_from(*offset).ok()?;
                        Some(number(*scalar, bytes.get(from..)?))
                    })
                    .collect();
                let text = numbers?.join(", ");
                match ty.component_count() {
                    1 => *out += &text,
                    _ => *out += &format!("[{text}]"),
                }
                Some(places.len())
            }
            ElementType::Array(inner, length) => {
                let size = self.layouts.extent(inner)?.size_bytes;
                let mut count = 0;
                *out += "[";
                for i in 0..u64::from(*length) {
                    if i > 0 {
                        *out += ", ";
                    }
                    if count >= SHOWN {
                        *out += "...";
                        break;
                    }
                    let from = usize::try_from(i * size).ok()?;
                    count += self.write(inner, bytes.get(from..)?, out)?;
                }
                *out += "]";
                Some(count)
            }
            ElementType::Struct(id) => {
                let def = self.module.structs.get(id.0 as usize)?;
                let mut fields = (0u32..).zip(&def.fields);
                // A vector of 3 of a shader in the place of 4: no author has such a name.
                if def.name.starts_with("vec3.") {
                    let (number, (_, inner)) = fields.find(|(_, (name, _))| !is_padding(name))?;
                    let from = self.layouts.field(*id, number)?.offset_bytes;
                    return self.write(inner, bytes.get(usize::try_from(from).ok()?..)?, out);
                }
                let mut count = 0;
                let mut before = "{";
                for (number, (name, inner)) in fields.filter(|(_, (name, _))| !is_padding(name)) {
                    let from = self.layouts.field(*id, number)?.offset_bytes;
                    *out += &format!("{before}{name}: ");
                    before = ", ";
                    let bytes = bytes.get(usize::try_from(from).ok()?..)?;
                    count += self.write(inner, bytes, out)?;
                }
                *out += if before == "{" { "{}" } else { "}" };
                Some(count.max(1))
            }
        }
    }
}
