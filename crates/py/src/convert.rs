//! Names and numbers to the IR's types and back.

use invar::report::{self, Style};
use invar_ir::text::case::Literal;
use invar_ir::{
    AddressSpace, AtomicOp, Diagnostic, Diagnostics, Dim, ElementType, FloatMode, Imm, Memory,
    Module, Order, Rule, Scalar, Scope, Span, Swizzle, Type,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

create_exception!(
    _invar,
    DiagnosticsError,
    PyException,
    "What is wrong with a module, its arguments or its run: `args` are the report as text and the \
     findings as JSON."
);

/// The exception for diagnostics about a module.
pub fn diagnostics(module: &Module, all: &Diagnostics) -> PyErr {
    DiagnosticsError::new_err(reported(module, &all.0))
}

/// Whether a module was made of a shader.
pub fn is_shader(module: &Module) -> bool {
    module.sources.iter().any(|s| s.name.ends_with(".wgsl"))
}

/// A text about a module: in other languages names have no sign before them, and a shader has its own words.
pub fn named(module: &Module, text: String) -> String {
    let text = match is_shader(module) {
        true => invar_wgsl::launches_in_wgsl(&text),
        false => text,
    };
    let is_foreign = |name: &str| name.ends_with(".wgsl") || name.ends_with(".metal");
    match module.sources.iter().any(|s| is_foreign(&s.name)) {
        true => text.replace("`%", "`"),
        false => text,
    }
}

/// Diagnostics about a module as text and as JSON, with advice in the words of Python, or of the shader.
pub fn reported(module: &Module, all: &[Diagnostic]) -> (String, String) {
    let mut all = all.to_vec();
    let is_of = |end: &str| module.sources.iter().any(|s| s.name.ends_with(end));
    let (is_shader, is_metal) = (is_of(".wgsl"), is_of(".metal"));
    for diagnostic in &mut all {
        if is_shader {
            let advice = |help: &str| options_in_python(&invar_wgsl::in_wgsl(help));
            invar_wgsl::told(diagnostic, invar_wgsl::words_of_wgsl, advice);
        } else if is_metal {
            let advice = |help: &str| options_in_python(&invar_msl::in_metal(help));
            invar_wgsl::told(diagnostic, str::to_string, advice);
        } else if let Some(help) = &mut diagnostic.help {
            *help = in_python(help);
        }
    }
    let text = report::render_for(module, &all, Style::Plain);
    let json = report::to_json(&module.sources, &module.calls, &all).to_string();
    (text.trim_end().to_string(), json)
}

/// Advice that names options of the command, with the arguments that say the same in Python.
fn options_in_python(help: &str) -> String {
    let mut help = constant_in_python(help);
    for rule in [Rule::OutOfBounds, Rule::UninitialisedRead] {
        let rule = rule.name();
        help = help.replace(&format!("--allow {rule}"), &format!("allow=[\"{rule}\"]"));
    }
    help
}

/// `--const N=64` as `constants={"N": 64}`.
fn constant_in_python(help: &str) -> String {
    const OPTION: &str = "--const ";
    let mut out = String::new();
    let mut rest = help;
    while let Some(at) = rest.find(OPTION) {
        let given = &rest[at + OPTION.len()..];
        let end = given.find(char::is_whitespace).unwrap_or(given.len());
        out.push_str(&rest[..at]);
        match given[..end].split_once('=') {
            Some((name, value)) => {
                let value = if value == "true" { "True" } else { value };
                out.push_str(&format!("constants={{\"{name}\": {value}}}"));
            }
            None => out.push_str(&rest[at..at + OPTION.len() + end]),
        }
        rest = &given[end..];
    }
    out + rest
}

/// Advice that quotes statements of the text form, with the calls that say the same in Python.
fn in_python(help: &str) -> String {
    // Each second part stands in quotes.
    let parts = help.split('`').enumerate().map(|(i, part)| match i % 2 {
        1 => match part
            .strip_prefix("allow(")
            .and_then(|part| part.strip_suffix(')'))
        {
            Some(name) => format!("@iv.kernel(allow=[\"{name}\"])"),
            None => atomic_in_python(part).unwrap_or_else(|| part.to_string()),
        },
        _ => part.to_string(),
    });
    let mut out = parts.collect::<Vec<String>>().join("`");
    out = out.replace("`wait`", "`iv.wait`");
    for scope in [Scope::Threadgroup, Scope::Simdgroup] {
        for space in [
            AddressSpace::Threadgroup,
            AddressSpace::Device,
            AddressSpace::Texture,
            AddressSpace::Imageblock,
        ] {
            let (scope, space) = (scope.name(), space.name());
            out = out.replace(
                &format!("`barrier {scope} [{space}]`"),
                &format!("`iv.{scope}_barrier(\"{space}\")`"),
            );
        }
    }
    out
}

/// `atomic_add h[i], 1` as the call that says the same.
fn atomic_in_python(statement: &str) -> Option<String> {
    let (word, rest) = statement.split_once(' ').unwrap_or((statement, ""));
    if !word.starts_with("atomic_") {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("iv.{word}"));
    }
    // The place ends with the bracket that closes the first one.
    let open = rest.find('[')?;
    let mut depth = 0;
    let close = rest.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '[') - i32::from(*c == ']');
        *c == ']' && depth == 0
    });
    let (close, _) = close?;
    let operand = rest[close + 1..].strip_prefix(", ")?;
    Some(format!(
        "iv.{word}({}, {}, {operand})",
        &rest[..open],
        &rest[open + 1..close]
    ))
}

/// An exception for what the Python side should not have passed.
pub fn refuse(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// A value's type of that name.
pub fn value_type(name: &str) -> PyResult<Type> {
    let ty = Type::from_name(name).ok_or_else(|| refuse(format!("`{name}` is not a type")))?;
    match ty.defect() {
        Some(defect) => Err(refuse(format!("`{name}` is not a type: {defect}"))),
        None => Ok(ty),
    }
}

/// A scalar type of that name.
pub fn scalar(name: &str) -> PyResult<Scalar> {
    Scalar::from_name(name).ok_or_else(|| refuse(format!("`{name}` is not a scalar type")))
}

/// The bits of a number of Python's as a scalar type, of a float the nearest; `None` where it does not fit. Refuses what
/// is no such number: bools are none, and floats no integers.
#[pyfunction]
pub fn bits(ty: &str, number: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let scalar = scalar(ty)?;
    let is_float = number.is_instance_of::<PyFloat>();
    let is_bool = number.is_instance_of::<PyBool>();
    let fits = match scalar {
        Scalar::Bool => is_bool,
        _number if is_bool => false,
        number => is_float && number.is_float(),
    };
    if !fits && (is_bool || !number.is_instance_of::<PyInt>()) {
        return Err(PyTypeError::new_err(format!("it is no {ty}")));
    }
    let text = if is_float {
        let wide: f64 = number.extract()?;
        match (scalar, wide as f32) {
            (Scalar::F64, _) => return Ok(Some(wide.to_bits())),
            (Scalar::F32, short) if short.is_finite() || !wide.is_finite() => {
                return Ok(Some(short.to_bits().into()));
            }
            _other => format!("{wide:?}").to_lowercase(),
        }
    } else if let Ok(number) = number.extract::<i64>() {
        number.to_string()
    } else {
        match number.call_method0("__index__")?.str() {
            Ok(text) => text.to_string(),
            // Python writes no integers of thousands of digits, and no type has them.
            Err(_) => return Ok(None),
        }
    };
    let span = Span::NONE;
    let literal = Literal { text, span };
    match literal.as_const(scalar) {
        Ok(found) => Ok(Some(found.bits)),
        Err(_) if scalar == Scalar::Bool => Err(PyTypeError::new_err("it is no bool")),
        Err(_) => Ok(None),
    }
}

/// An element type as the text form writes it: `f32x4`, `@Particle`, `u8[4][2]`.
pub fn element(module: &Module, name: &str) -> PyResult<ElementType> {
    let (base, lengths) = match name.split_once('[') {
        Some((base, lengths)) => (base, Some(lengths)),
        None => (name, None),
    };
    let mut element = match base.strip_prefix('@') {
        Some(wanted) => {
            let found = module.structs.iter().position(|s| &*s.name == wanted);
            let id = found.ok_or_else(|| refuse(format!("there is no struct `{wanted}`")))?;
            ElementType::Struct(invar_ir::StructId(id as u32))
        }
        None => ElementType::Value(value_type(base)?),
    };
    // `u8[4][2]` is two of `u8[4]`: each suffix is around what stands before it.
    for length in lengths.into_iter().flat_map(|l| l.split('[')) {
        let length = length.strip_suffix(']').and_then(|l| l.parse().ok());
        let length = length.ok_or_else(|| refuse(format!("`{name}` is not an element type")))?;
        element = ElementType::Array(element.into(), length);
    }
    Ok(element)
}

/// A memory object: 0 for a parameter, 1 for an array, 2 for a program-scope constant.
pub fn memory((kind, id): (u8, u32)) -> PyResult<Memory> {
    match kind {
        0 => Ok(Memory::Param(id)),
        1 => Ok(Memory::Alloc(id)),
        2 => Ok(Memory::Constant(id)),
        _ => Err(refuse("there is no such kind of memory")),
    }
}

/// What an operation takes beside values: nothing, or the name of a type, component or swizzle.
pub fn imm(kind: u8, name: &str) -> PyResult<Imm> {
    match kind {
        0 => Ok(Imm::None),
        1 => Ok(Imm::Type(value_type(name)?)),
        2 => Dim::ALL
            .into_iter()
            .find(|d| d.name() == name)
            .map(Imm::Dim)
            .ok_or_else(|| {
                refuse(format!(
                    "`{name}` is not a component: write \"x\", \"y\" or \"z\""
                ))
            }),
        _ => Swizzle::parse(name).map(Imm::Swizzle).ok_or_else(|| {
            refuse(format!(
                "`{name}` is not a swizzle: write 1 to 4 of the letters xyzw or rgba"
            ))
        }),
    }
}

/// A scope of that name.
pub fn scope(name: &str) -> PyResult<Scope> {
    [Scope::Simdgroup, Scope::Threadgroup, Scope::Device]
        .into_iter()
        .find(|s| s.name() == name)
        .ok_or_else(|| {
            refuse(format!(
                "`{name}` is not a scope: write \"simdgroup\", \"threadgroup\" or \"device\""
            ))
        })
}

/// A memory order of that name.
pub fn order(name: &str) -> PyResult<Order> {
    Order::ALL
        .into_iter()
        .find(|o| o.name() == name)
        .ok_or_else(|| {
            let names: Vec<&str> = Order::ALL.iter().map(|o| o.name()).collect();
            refuse(format!(
                "`{name}` is not a memory order: write one of {}",
                names.join(", ")
            ))
        })
}

/// An atomic operation of that name, as in the text form but for `atomic_`.
pub fn atomic_op(name: &str) -> PyResult<AtomicOp> {
    AtomicOp::ALL
        .into_iter()
        .find(|op| op.name().trim_start_matches("atomic_") == name)
        .ok_or_else(|| refuse(format!("`{name}` is not an atomic operation")))
}

/// A float mode of that name.
pub fn float_mode(name: &str) -> PyResult<FloatMode> {
    [FloatMode::Strict, FloatMode::Contract, FloatMode::Fast]
        .into_iter()
        .find(|m| m.name() == name)
        .ok_or_else(|| {
            refuse(format!(
                "`{name}` is not a float mode: write \"strict\", \"contract\" or \"fast\""
            ))
        })
}
