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
    /// The array that it is in an element of.
    pub array: Option<Row>,
}

/// Where one field is of all elements of an array: the bytes before the first, those from one to the next, and how many
/// there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub offset: u64,
    pub stride: u64,
    pub count: u64,
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
    array: Option<Row>,
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
            let stride = size(element);
            let row = Row {
                offset,
                stride,
                count: *count,
            };
            for number in 0..*count {
                path.push_str(&format!(".{number}"));
                let row = (!is_handle_type(element)).then_some(row);
                find(element, offset + number * stride, path, param, row, all);
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
                let row = array.map(|row| Row {
                    offset: row.offset + field.offset_bytes,
                    ..row
                });
                let row = row.filter(|_| !is_handle_type(&field.ty));
                let at = offset + field.offset_bytes;
                find(&field.ty, at, path, param, row, all);
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
    let at = |field: &Field| i64::try_from(field.offset) == Ok(bytes);
    let numbered = |is: &dyn Fn(&Field) -> bool| -> Vec<usize> {
        let all = fields.iter().enumerate();
        let all = all.filter(|(_, field)| field.param == param && is(field));
        all.map(|(number, _)| number).collect()
    };
    let &[scale] = &scales[..] else {
        return match scales.is_empty() {
            true => numbered(&at),
            false => Vec::new(),
        };
    };
    // An index that begins before the array is of the only one that it can be of.
    let own = |row: &Row| {
        let away = i64::try_from(row.offset).ok().map(|from| bytes - from);
        let is_whole = away.is_some_and(|away| away % scale == 0);
        i64::try_from(row.stride) == Ok(scale) && is_whole
    };
    let mut rows: Vec<Row> = Vec::new();
    for field in fields.iter().filter(|field| field.param == param) {
        let row = field.array.filter(own);
        rows.extend(row.filter(|row| !rows.contains(row)));
    }
    let holds = |row: &&Row| {
        let field = fields
            .iter()
            .find(|field| field.param == param && at(field));
        field.is_some_and(|field| field.array == Some(**row))
    };
    let row = match &rows[..] {
        [only] => Some(*only),
        several => several.iter().find(holds).copied(),
    };
    row.map_or_else(Vec::new, |row| numbered(&|field| field.array == Some(row)))
}
