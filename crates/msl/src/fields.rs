//! The fields of parameters that hold addresses, or textures, and which of them a load may read.

use invar_llvm::foreign::{DebugType, Function, Kind, Operand, Type};

/// A field that holds an address, or a texture.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// The parameter that it is in.
    pub param: usize,
    /// Bytes before it.
    pub offset: u64,
    /// The way to it: `.rows.2`.
    pub path: String,
    /// What the address leads to, or the texture.
    pub of: DebugType,
    /// The array that it is an element of: bytes before that, and how many elements there are.
    array: Option<(u64, u64)>,
}

/// Whether a type is a texture or a sampler: a class of the headers that holds an address.
pub(crate) fn is_handle_type(ty: &DebugType) -> bool {
    match ty {
        DebugType::Struct(_, _, fields) => {
            fields.first().is_some_and(|field| field.name == "invar_id")
        }
        _other => false,
    }
}

/// The most elements of an array of addresses.
const MAX_ELEMENTS: u64 = 128;

/// The fields of all parameters that hold addresses.
pub(crate) fn fields(f: &Function) -> Vec<Field> {
    let mut all = Vec::new();
    for (number, param) in f.params.iter().enumerate() {
        if let Some(DebugType::Pointer(of)) = &param.debug
            && let DebugType::Struct(..) = &**of
        {
            let mut path = String::new();
            find(of, 0, &mut path, number, None, &mut all);
        }
    }
    all
}

fn find(
    ty: &DebugType,
    offset: u64,
    path: &mut String,
    param: usize,
    array: Option<(u64, u64)>,
    all: &mut Vec<Field>,
) {
    let mut add = |of: &DebugType| {
        all.push(Field {
            param,
            offset,
            path: path.clone(),
            of: of.clone(),
            array,
        });
    };
    match ty {
        DebugType::Pointer(of) => add(of),
        handle if is_handle_type(handle) => add(handle),
        DebugType::Array(element, count) if *count <= MAX_ELEMENTS => {
            let end = path.len();
            for number in 0..*count {
                path.push_str(&format!(".{number}"));
                let array = matches!(**element, DebugType::Pointer(_)).then_some((offset, *count));
                let at = offset + number * size(element);
                find(element, at, path, param, array, all);
                path.truncate(end);
            }
        }
        DebugType::Struct(name, _, fields) => {
            let end = path.len();
            for field in fields {
                // The only field of the headers' arrays is not written by who uses them.
                let is_array = name.starts_with("array<") && field.name == "e";
                if !is_array && !field.name.is_empty() {
                    path.push_str(&format!(".{}", field.name));
                }
                find(
                    &field.ty,
                    offset + field.offset_bytes,
                    path,
                    param,
                    None,
                    all,
                );
                path.truncate(end);
            }
        }
        DebugType::Array(..) | DebugType::Scalar(..) | DebugType::Other(..) => {}
    }
}

/// The bytes of a type.
pub(crate) fn size(ty: &DebugType) -> u64 {
    match ty {
        DebugType::Scalar(_, bytes)
        | DebugType::Struct(_, bytes, _)
        | DebugType::Other(_, bytes) => *bytes,
        DebugType::Pointer(_) => 8,
        DebugType::Array(element, count) => size(element) * count,
    }
}

/// Where an address in a parameter is: the parameter, bytes from its begin, and the scales of what is computed.
fn place(f: &Function, operand: &Operand) -> Option<(usize, i64, Vec<i64>)> {
    match operand {
        Operand::Param(number) => Some((*number, 0, Vec::new())),
        Operand::Inst(number) => match &f.insts[*number].kind {
            Kind::Offset(constant, scales) => {
                let (param, bytes, mut all) = place(f, &f.insts[*number].operands[0])?;
                all.extend(scales);
                Some((param, bytes + constant, all))
            }
            _other => None,
        },
        _other => None,
    }
}

/// The fields that a load of an address may read, by their numbers.
pub(crate) fn read_by(f: &Function, fields: &[Field], inst: usize) -> Vec<usize> {
    let inst = &f.insts[inst];
    if inst.kind != Kind::Load || inst.ty != Type::Pointer {
        return Vec::new();
    }
    let Some((param, bytes, scales)) = place(f, &inst.operands[0]) else {
        return Vec::new();
    };
    let at = |field: &&Field| field.param == param && i64::try_from(field.offset) == Ok(bytes);
    let Some(first) = fields.iter().find(at) else {
        return Vec::new();
    };
    let numbered = |is: &dyn Fn(&Field) -> bool| -> Vec<usize> {
        let all = fields.iter().enumerate().filter(|(_, field)| is(field));
        all.map(|(number, _)| number).collect()
    };
    match (first.array, &scales[..]) {
        (_, []) => numbered(&|field| field.param == param && field.offset == first.offset),
        (Some(array), [8]) => numbered(&|field| field.param == param && field.array == Some(array)),
        _other => Vec::new(),
    }
}
