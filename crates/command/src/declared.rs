//! Data for variables by the types that a source gives their elements: fields by name, vectors of 3, numbers of
//! elements that a kernel accesses in parts.

use std::path::Path;

use invar_ir::text::case::{self, Expr, ExprKind, Literal, RunCase};
use invar_ir::text::data::evaluate;
use invar_ir::{
    Const, Diagnostic, Diagnostics, ElementType, Kernel, Module, ParamKind, Rule, Scalar, Span,
    StructDef, Type,
};
use invar_wgsl::{Counted, Declared, Entry, Resource, is_of_three, is_padding, scalars, slots};
use serde_json::{Map, Value as Json, json};

use crate::npy;
use crate::options::count;
use crate::outcome::Refusal;

/// Lists in lists deeper than this are not read.
pub const MAX_DEPTH: u32 = 32;

/// At most so many fields are named in a sentence.
const LISTED: usize = 24;

/// What a kernel of a source names.
pub fn of_kernel<'a>(entries: &'a [Entry], kernel: &str) -> impl Iterator<Item = &'a Resource> {
    let mut entries = entries.iter();
    let entry = entries.find(|e| e.name == kernel);
    entry.into_iter().flat_map(|e| &e.resources)
}

fn resource<'a>(entries: &'a [Entry], kernel: &str, param: &str) -> Option<&'a Resource> {
    let mut resources = of_kernel(entries, kernel);
    resources.find(|r| r.params[..] == [param])
}

/// The type that a source gives the elements of a parameter, where those of the parameter are parts of it.
pub fn of_param<'a>(entries: &'a [Entry], kernel: &str, param: &str) -> Option<&'a Declared> {
    resource(entries, kernel, param)?.declared.as_ref()
}

fn is_number(data: &str) -> bool {
    let data = data.trim();
    matches!(data, "true" | "false") || data.parse::<f64>().is_ok()
}

// ---- what options say ----

/// Data of one `--arg` as a list of the scalars of whole elements, where it names fields, `{count: 4, scale: [1, 2]}`,
/// or leaves out what nobody writes; fields that it does not name are 0, and an `absent` buffer has no elements. A
/// number for what is one number is a list of it. Any other data stays as it is.
pub fn by_field(
    module: &Module,
    kernel: &Kernel,
    entries: &[Entry],
    name: &str,
    data: String,
) -> Result<String, Refusal> {
    let param = kernel.params.iter().find(|p| *p.name == *name);
    let is_buffer = param.is_some_and(|p| matches!(p.kind, ParamKind::Buffer { .. }));
    if is_buffer && data.trim() == "absent" {
        return Ok("zeros(0)".to_string());
    }
    let resource = resource(entries, &kernel.name, name);
    let is_one = resource.is_some_and(|r| r.length == Some(1));
    let is_constant = param.is_some_and(|p| matches!(p.kind, ParamKind::Constant { .. }));
    if is_number(&data) && (is_one || is_constant) {
        return Ok(format!("[{}]", data.trim()));
    }
    let Some(ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) =
        param.map(|p| &p.kind)
    else {
        return Ok(data);
    };
    let declared = resource.and_then(|r| r.declared.as_ref());
    let (element, structs) = match declared {
        Some(declared) => (&declared.element, &declared.structs),
        None => (element, &module.structs),
    };
    let types = Types(structs);
    let begun = data.trim_start();
    let is_plain = match declared {
        Some(declared) => declared.only_scalar().is_some(),
        None => true,
    };
    let is_list = begun.starts_with('[');
    let is_nested = begun.get(1..).is_some_and(|rest| rest.contains(['[', '{']));
    if !begun.starts_with('{') && !(is_list && (is_nested || !is_plain)) {
        return Ok(data);
    }
    let refuse = |why: String| Refusal(format!("--arg {name}: {why}"));
    if data.contains('{') && !types.has_fields(element) {
        return Err(refuse(
            "its elements have no fields: write [1, 2, 3] or @file.npy, not {...}".to_string(),
        ));
    }
    let list = match value(&data, 0).map_err(refuse)? {
        // Of what is one, lists are its rows.
        Value::List(items)
            if is_one && items.len() > 1 && items.iter().all(|i| matches!(i, Value::List(_))) =>
        {
            types.elements(element, vec![Value::List(items)])
        }
        Value::List(items) => types.elements(element, items),
        one => types.elements(element, vec![one]),
    };
    Ok(format!("[{}]", list.map_err(refuse)?.join(", ")))
}

/// Data as it is written.
enum Value<'a> {
    Plain(&'a str),
    List(Vec<Value<'a>>),
    Fields(Vec<(&'a str, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// The scalars of nested lists in order; `None` if there are fields.
    fn plain(&self) -> Option<Vec<&'a str>> {
        match self {
            Value::Plain(text) => Some(vec![text]),
            Value::List(items) => {
                let items: Option<Vec<_>> = items.iter().map(Value::plain).collect();
                Some(items?.concat())
            }
            Value::Fields(_) => None,
        }
    }
}

fn value(text: &str, depth: u32) -> Result<Value<'_>, String> {
    let text = text.trim();
    if depth > MAX_DEPTH {
        return Err("lists are nested too deep".to_string());
    }
    if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let items = parts(inside).into_iter().map(|part| value(part, depth + 1));
        return Ok(Value::List(items.collect::<Result<_, _>>()?));
    }
    if let Some(inside) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        let fields = parts(inside).into_iter().map(|part| {
            let (field, of) = part
                .split_once(':')
                .ok_or_else(|| format!("`{}`: write FIELD: VALUE", part.trim()))?;
            // As in JSON, a name may stand in quotes.
            Ok::<_, String>((field.trim().trim_matches('"'), value(of, depth + 1)?))
        });
        return Ok(Value::Fields(fields.collect::<Result<_, _>>()?));
    }
    match text.starts_with(['[', '{']) {
        true => Err(format!("`{text}` does not end with its bracket")),
        false => Ok(Value::Plain(text)),
    }
}

/// What stands between the commas outside of brackets.
fn parts(inside: &str) -> Vec<&str> {
    let (mut depth, mut from, mut all) = (0, 0, Vec::new());
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 || at == inside.len() => {
                all.push(&inside[from..at]);
                from = at + 1;
            }
            _inside => {}
        }
    }
    all.retain(|part| !part.trim().is_empty());
    all
}

struct Types<'a>(&'a [StructDef]);

impl Types<'_> {
    fn fields<'t>(&'t self, element: &ElementType) -> &'t [(std::sync::Arc<str>, ElementType)] {
        match element {
            ElementType::Struct(id) => self
                .0
                .get(id.0 as usize)
                .map_or(&[][..], |def| &def.fields[..]),
            ElementType::Value(_) | ElementType::Array(..) => &[],
        }
    }

    fn is_of_three(&self, element: &ElementType) -> bool {
        is_of_three(element, self.0)
    }

    fn has_fields(&self, element: &ElementType) -> bool {
        match element {
            ElementType::Array(inner, _) => self.has_fields(inner),
            other => !self.fields(other).is_empty() && !self.is_of_three(other),
        }
    }

    fn scalars(&self, element: &ElementType) -> usize {
        scalars(element, self.0)
    }

    /// The scalars of whole elements.
    fn elements(&self, element: &ElementType, items: Vec<Value>) -> Result<Vec<String>, String> {
        let (all, slots) = (self.scalars(element), slots(element, self.0));
        let mut out = Vec::new();
        let is_plain = items.iter().all(|i| matches!(i, Value::Plain(_)));
        if is_plain {
            if slots.is_empty() || !items.len().is_multiple_of(slots.len()) {
                return Err(format!(
                    "a list of {} scalars is not a whole number of elements, of {} scalars each",
                    items.len(),
                    slots.len()
                ));
            }
            let texts: Vec<&str> = items.iter().filter_map(Value::plain).flatten().collect();
            for one in texts.chunks(slots.len()) {
                let from = out.len();
                out.resize(from + all, "0".to_string());
                for (slot, text) in slots.iter().zip(one) {
                    out[from + slot] = (*text).to_string();
                }
            }
            return Ok(out);
        }
        for item in items {
            let from = out.len();
            out.resize(from + all, "0".to_string());
            self.put(element, &item, "", &mut out[from..])?;
        }
        Ok(out)
    }

    /// Puts a value where an element has its scalars.
    fn put(
        &self,
        element: &ElementType,
        value: &Value,
        what: &str,
        out: &mut [String],
    ) -> Result<(), String> {
        match (element, value) {
            (_, Value::Fields(fields)) if self.has_fields(element) => {
                for (field, value) in fields {
                    let (inner, from) = self
                        .find(element, field)
                        .ok_or_else(|| self.no_field(element, what, field))?;
                    let whole = match what {
                        "" => (*field).to_string(),
                        what => format!("{what}.{field}"),
                    };
                    let to = from + self.scalars(inner);
                    self.put(inner, value, &whole, &mut out[from..to])?;
                }
                return Ok(());
            }
            (ElementType::Array(inner, count), Value::List(items))
                if items.len() == *count as usize =>
            {
                let size = self.scalars(inner);
                for (at, item) in items.iter().enumerate() {
                    let whole = format!("{what}[{at}]");
                    self.put(inner, item, &whole, &mut out[at * size..(at + 1) * size])?;
                }
                return Ok(());
            }
            _flat => {}
        }
        let slots = slots(element, self.0);
        let Some(given) = value.plain() else {
            return Err(match value {
                Value::Fields(_) => format!("`{what}` has no fields"),
                _list => format!("`{what}` has another number of elements than the list"),
            });
        };
        if slots.len() != given.len() {
            return Err(format!(
                "`{what}` has {}, and {} {} given",
                count(slots.len(), "value"),
                given.len(),
                if given.len() == 1 { "is" } else { "are" },
            ));
        }
        let scalars = element.locations(self.0);
        for (slot, text) in slots.into_iter().zip(given) {
            let (text, span) = (text.to_string(), Span::NONE);
            let literal = Literal { text, span };
            if let Some((_, scalar)) = scalars.get(slot) {
                let read = literal.as_const(*scalar);
                read.map_err(|error| match what {
                    "" => error.message,
                    what => format!("`{what}`: {}", error.message),
                })?;
            }
            out[slot] = literal.text;
        }
        Ok(())
    }

    /// A field by its name or by the way to it, `layers[1].n`, and the scalars before it.
    fn find<'t>(
        &'t self,
        element: &'t ElementType,
        path: &str,
    ) -> Option<(&'t ElementType, usize)> {
        let mut before = 0;
        for (name, inner) in self.fields(element) {
            if let Some(rest) = path.strip_prefix(&**name) {
                if rest.is_empty() {
                    return Some((inner, before));
                }
                let (mut inner, mut rest) = (inner, rest);
                while let (ElementType::Array(of, length), Some(index)) =
                    (inner, rest.strip_prefix('['))
                {
                    let (index, behind) = index.split_once(']')?;
                    let index: usize = index.trim().parse().ok()?;
                    if index >= *length as usize {
                        return None;
                    }
                    before += index * self.scalars(of);
                    (inner, rest) = (of, behind);
                }
                match rest.strip_prefix('.') {
                    _ if rest.is_empty() => return Some((inner, before)),
                    Some(rest) => {
                        let (found, more) = self.find(inner, rest)?;
                        return Some((found, before + more));
                    }
                    None => {}
                }
            }
            before += self.scalars(inner);
        }
        None
    }

    fn no_field(&self, element: &ElementType, of: &str, field: &str) -> String {
        let (mut known, within) = (
            Vec::new(),
            match of {
                "" => String::new(),
                of => format!(" in `{of}`"),
            },
        );
        self.names(element, String::new(), &mut known);
        let more = match known.len().checked_sub(LISTED) {
            None | Some(0) => String::new(),
            Some(more) => format!(" and {more} more"),
        };
        known.truncate(LISTED);
        let known: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
        format!(
            "there is no field `{field}`{within}; there is {}{more}",
            known.join(", ")
        )
    }

    /// The names of what an element has.
    fn names(&self, element: &ElementType, name: String, out: &mut Vec<String>) {
        match element {
            ElementType::Value(ty) if ty.component_count() == 1 => out.push(name),
            ElementType::Value(ty) => {
                out.extend((0..ty.component_count()).map(|i| format!("{name}[{i}]")));
            }
            ElementType::Array(inner, count) => {
                for i in 0..*count {
                    self.names(inner, format!("{name}[{i}]"), out);
                }
            }
            ElementType::Struct(_) if self.is_of_three(element) => out.push(name),
            ElementType::Struct(_) => {
                for (field, inner) in self.fields(element) {
                    let inside = match &*name {
                        "" => field.to_string(),
                        name => format!("{name}.{field}"),
                    };
                    if !is_padding(field) {
                        self.names(inner, inside, out);
                    }
                }
            }
        }
    }

    /// An element of zeros, to be filled in.
    fn zeros(&self, element: &ElementType) -> Json {
        match element {
            ElementType::Value(ty) => match (ty, ty.scalar()) {
                (Type::Scalar(Scalar::Bool), _) => json!(false),
                (_, Some(_)) if ty.component_count() > 1 => {
                    json!(vec![0; ty.component_count() as usize])
                }
                _number => json!(0),
            },
            ElementType::Array(inner, length) => {
                let all = (0..*length).map(|_| self.zeros(inner));
                Json::Array(all.collect())
            }
            ElementType::Struct(_) => {
                let fields = self.fields(element).iter();
                let mut fields = fields.filter(|(name, _)| !is_padding(name));
                if self.is_of_three(element) {
                    return fields.next().map_or(Json::Null, |(_, v)| self.zeros(v));
                }
                // An array that is long is zeros as it stands.
                let fields = fields.filter(|(_, inner)| self.scalars(inner) <= SHOWN);
                let fields = fields.map(|(name, inner)| (name.to_string(), self.zeros(inner)));
                Json::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

/// Arrays of more scalars are left out of a form.
const SHOWN: usize = 64;

/// An element of zeros by its fields.
pub fn zeros(declared: &Declared) -> Json {
    Types(&declared.structs).zeros(&declared.element)
}

// ---- what runs get ----

/// Bytes that stand for what runs say, by the names of files that there are not.
#[derive(Default)]
pub struct Given(Vec<Vec<u8>>);

impl Given {
    /// What an expression of [`Given::fill`] stands for.
    pub fn read(&self, name: &str) -> Option<&[u8]> {
        let number: usize = name.strip_prefix(SIGN)?.parse().ok()?;
        Some(self.0.get(number)?)
    }

    /// Makes bytes of what runs give and expect where the source's types are other than the kernel's, and counts in
    /// the kernel's elements.
    pub fn fill(
        &mut self,
        module: &Module,
        entries: &[Entry],
        folder: &Path,
        case: &mut RunCase,
    ) -> Result<(), Diagnostics> {
        let Some(kernel) = module.kernel(&case.kernel.name) else {
            return Ok(());
        };
        let args = case.args.iter_mut().map(|(name, expr)| (&*name, expr));
        let expects = case.expects.iter_mut();
        let expects = expects.map(|expect| (&expect.param, &mut expect.value));
        for (name, expr) in args.chain(expects) {
            let Some(declared) = of_param(entries, &kernel.name, &name.name) else {
                continue;
            };
            let param = kernel.params.iter().find(|p| *p.name == *name.name);
            let Some(
                ParamKind::Buffer { element, .. }
                | ParamKind::Constant { element }
                | ParamKind::Threadgroup { element },
            ) = param.map(|p| &p.kind)
            else {
                continue;
            };
            // Of one type they are numbers on both sides.
            let Some(counted) = declared.counted(element, &module.structs) else {
                continue;
            };
            self.one(&name.name, &counted, expr, folder)
                .map_err(|error| Diagnostics(vec![error]))?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        param: &str,
        counted: &Counted,
        expr: &mut Expr,
        folder: &Path,
    ) -> Result<(), Diagnostic> {
        let (declared, span) = (&counted.unit, expr.span);
        let of_own = |number: u64| {
            let all = number.saturating_mul(counted.parts);
            match all.is_multiple_of(counted.at_a_time) {
                true => Ok(all / counted.at_a_time),
                false => {
                    let several = counted.at_a_time;
                    let message = format!(
                        "`{param}` gets {number} elements, and the kernel accesses {several} at once: give it a \
                         multiple of {several}"
                    );
                    Err(Diagnostic::error(Rule::Syntax, span, message))
                }
            }
        };
        let bytes = match &mut expr.kind {
            ExprKind::Length(number) => {
                *number = of_own(*number)?;
                return Ok(());
            }
            ExprKind::Zeros(number) if declared.only_scalar().is_some() => {
                *number = of_own(*number)?;
                return Ok(());
            }
            ExprKind::File(name) => {
                let path = folder.join(&**name);
                // Other bytes are those of the kernel's own elements.
                match npy::is_array_file(&path).then(|| npy::read(&path)) {
                    Some(Ok(array)) if Some(array.scalar) == declared.only_scalar() => array.bytes,
                    Some(_) | None => return Ok(()),
                }
            }
            ExprKind::List(items) => {
                let slots = slots(&declared.element, &declared.structs);
                let all = scalars(&declared.element, &declared.structs);
                if all == 0 || slots.is_empty() {
                    return Ok(());
                }
                if !items.len().is_multiple_of(all) {
                    if !items.len().is_multiple_of(slots.len()) {
                        // They are those that the kernel accesses.
                        return Ok(());
                    }
                    let zero = Literal {
                        text: "0".to_string(),
                        span: expr.span,
                    };
                    let mut whole = vec![zero; items.len() / slots.len() * all];
                    for (number, item) in items.drain(..).enumerate() {
                        let (element, slot) = (number / slots.len(), number % slots.len());
                        whole[element * all + slots[slot]] = item;
                    }
                    *items = whole;
                }
                written(declared, expr)?
            }
            ExprKind::Scalar(_)
            | ExprKind::Random { .. }
            | ExprKind::Zeros(_)
            | ExprKind::Fill { .. }
            | ExprKind::Iota(_) => written(declared, expr)?,
            ExprKind::Rev(_)
            | ExprKind::Sampler(_)
            | ExprKind::Reference
            | ExprKind::Texture { .. } => return Ok(()),
        };
        let (element, structs) = (&declared.element, &declared.structs);
        let one = element.extent(structs).map_or(1, |e| e.size_bytes.max(1));
        of_own(bytes.len() as u64 / one)?;
        expr.kind = ExprKind::File(format!("{SIGN}{}", self.0.len()));
        self.0.push(bytes);
        Ok(())
    }
}

// ---- what launches that were found give ----

/// Lists of more numbers are long.
const LONG: usize = 64;

/// Data of a launch that was found, in the kernel's elements: as many of them as are whole elements of the source, and the
/// same as `--arg` takes it. `None` where both are one. A long list is zeros if `is_short`.
pub fn in_source(
    module: &Module,
    kernel: &Kernel,
    entries: &[Entry],
    name: &str,
    data: &str,
    is_short: bool,
) -> Option<(String, String)> {
    let param = kernel.params.iter().find(|p| *p.name == *name)?;
    let (ParamKind::Buffer { element: own, .. }
    | ParamKind::Constant { element: own }
    | ParamKind::Threadgroup { element: own }) = &param.kind
    else {
        return None;
    };
    let declared = of_param(entries, &kernel.name, name)?;
    let counted = declared.counted(own, &module.structs)?;
    let expr = case::data(data).ok()?;
    if let ExprKind::Length(number) = expr.kind {
        let units = number * counted.at_a_time / counted.parts;
        let number = units * counted.parts / counted.at_a_time;
        return Some((format!("length({number})"), format!("length({units})")));
    }
    let Declared { element, structs } = &counted.unit;
    let mut bytes = evaluate(&expr, own, &module.structs, &mut |_, _| Err(String::new())).ok()?;
    let one = usize::try_from(element.extent(structs)?.size_bytes).ok()?;
    bytes.truncate(bytes.len() / one.max(1) * one);
    let (places, slots) = (element.locations(structs), slots(element, structs));
    let places: Vec<_> = slots.iter().filter_map(|slot| places.get(*slot)).collect();
    let count = bytes.len() / one.max(1);
    if is_short && count * places.len() > LONG {
        bytes.fill(0);
    }
    // What is in gaps nobody says.
    let mut kept = vec![0; bytes.len()];
    let mut said = Vec::new();
    for (from, (at, scalar)) in (0..count).flat_map(|n| places.iter().map(move |p| (n * one, **p)))
    {
        let at = from + usize::try_from(at).ok()?;
        let mut value = constant(&bytes, at, scalar)?;
        if scalar == Scalar::Bool {
            value.bits = u64::from(value.bits != 0);
        }
        if value.is_nan() {
            value.bits = 0;
        }
        let size = usize::try_from(scalar.size_bytes()).ok()?;
        kept[at..at + size].copy_from_slice(&value.bits.to_le_bytes()[..size]);
        said.push(value.to_string());
    }
    let extent = own.extent(&module.structs)?.size_bytes;
    let own_count = kept.len() / usize::try_from(extent).ok()?.max(1);
    if kept.iter().all(|byte| *byte == 0) {
        return Some((format!("zeros({own_count})"), format!("zeros({count})")));
    }
    let mut list = Vec::new();
    for n in 0..own_count {
        for (at, scalar) in own.locations(&module.structs) {
            let at = usize::try_from(n as u64 * extent + at).ok()?;
            list.push(constant(&kept, at, scalar)?.to_string());
        }
    }
    Some((
        format!("[{}]", list.join(", ")),
        format!("[{}]", said.join(", ")),
    ))
}

/// The scalar that is so many bytes from the begin.
fn constant(bytes: &[u8], at: usize, scalar: Scalar) -> Option<Const> {
    let size = usize::try_from(scalar.size_bytes()).ok()?;
    let mut bits = [0; 8];
    bits[..size].copy_from_slice(bytes.get(at..at + size)?);
    Some(Const {
        scalar,
        bits: u64::from_le_bytes(bits),
    })
}

/// The bytes of data that is no file.
fn written(declared: &Declared, expr: &Expr) -> Result<Vec<u8>, Diagnostic> {
    let Declared { element, structs } = declared;
    evaluate(expr, element, structs, &mut |_, _| Err(String::new()))
}

/// What no name of a file begins with.
const SIGN: char = '\0';
