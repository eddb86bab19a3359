//! What a module and its kernels declare: names, types, sizes, constants and attributes.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Errors, MALFORMED_HELP, MAX_CONSTANT_BYTES, MAX_THREAD_BYTES, MAX_THREADGROUP_BYTES};
use crate::diagnostic::Diagnostic;
use crate::inst::{Const, InstKind};
use crate::memory_layout::{Extents, MAX_ELEMENT_BYTES, MAX_ELEMENT_PARTS, MAX_TYPE_DEPTH};
use crate::module::{AddressSpace, Binding, ConstantArray, Kernel, Module, Param, ParamKind};
use crate::rules::Rule;
use crate::span::{Position, SourceId, Span};
use crate::types::{ElementType, Scalar, StructDef, StructId, Type};

/// What is known of the structs of a module.
pub(super) struct Sound {
    /// Whether each can be used; what is wrong with the others has been reported.
    structs: Vec<bool>,
    extents: Extents,
}

/// Names that must be unique.
struct Names<'a> {
    seen: HashMap<&'a str, Span>,
    /// In what: `the module`.
    place: String,
}

impl<'a> Names<'a> {
    fn new(place: impl Into<String>) -> Names<'a> {
        Names {
            seen: HashMap::new(),
            place: place.into(),
        }
    }

    fn add(&mut self, sigil: &str, name: &'a Arc<str>, span: Span, errors: &mut Errors) {
        if name.is_empty() {
            let message = format!("something in {} has an empty name", self.place);
            errors.push(
                Diagnostic::error(Rule::MalformedModule, span, message).help("give it a name"),
            );
        } else if let Some(first) = self.seen.insert(name, span) {
            let message = format!("`{sigil}{name}` is defined twice in {}", self.place);
            errors.push(
                Diagnostic::error(Rule::DuplicateName, span, message)
                    .and(first, "first defined here")
                    .help("rename one of them"),
            );
        }
    }
}

/// Whether a constant is written as it must be: no bits above the type's width.
pub(super) fn is_canonical(constant: Const) -> bool {
    let bits = constant.scalar.bits();
    bits == 64 || constant.bits >> bits == 0
}

/// Checks what a module declares beside its kernels' insides.
///
/// Whether a module that is not read to its end has a kernel is not known.
pub(super) fn check(module: &Module, broken: bool, errors: &mut Errors) -> Sound {
    check_spans(module, errors);
    let mut names = Names::new("the module");
    let mut sound = Sound {
        structs: Vec::with_capacity(module.structs.len()),
        extents: Extents::default(),
    };
    for def in &module.structs {
        names.add("@", &def.name, def.span, errors);
        sound.extents.push(def);
        let fine = check_struct(module, def, &sound, errors);
        sound.structs.push(fine);
    }
    let mut ids = HashMap::new();
    for constant in &module.function_constants {
        names.add("@", &constant.name, constant.span, errors);
        let (name, span) = (&constant.name, constant.span);
        if let Some((first, first_span)) = ids.insert(constant.id, (name, span)) {
            let message = format!("`@{name}` has the id {} of `@{first}`", constant.id);
            errors.push(
                Diagnostic::error(Rule::FunctionConstant, span, message)
                    .and(first_span, "first used here")
                    .help("a host names function constants by id, so give it another"),
            );
        }
        if let Some(default) = constant.default {
            if default.scalar != constant.scalar {
                let message = format!(
                    "`@{name}` has type {}, but its default has type {}",
                    constant.scalar, default.scalar
                );
                errors.push(
                    Diagnostic::error(Rule::FunctionConstant, span, message)
                        .help("write the default in the constant's type"),
                );
            } else if !is_canonical(default) {
                let message = format!("the default of `@{name}` has bits outside its type");
                errors.error(Rule::MalformedModule, span, message, MALFORMED_HELP);
            }
        }
    }
    let mut total_bytes = 0u64;
    for constant in &module.constants {
        names.add("@", &constant.name, constant.span, errors);
        let size = check_constant(module, constant, &sound, errors);
        let before = total_bytes;
        total_bytes = total_bytes.saturating_add(size);
        if before <= MAX_CONSTANT_BYTES && total_bytes > MAX_CONSTANT_BYTES {
            let message = format!(
                "with `@{}` the program-scope constants take {total_bytes} bytes, at most \
                 {MAX_CONSTANT_BYTES} are allowed",
                constant.name
            );
            errors.push(
                Diagnostic::error(Rule::LimitExceeded, constant.span, message)
                    .help("pass the data in a buffer"),
            );
        }
    }
    for kernel in &module.kernels {
        names.add("@", &kernel.name, kernel.span, errors);
    }
    if module.kernels.is_empty() && !broken {
        errors.push(
            Diagnostic::error(
                Rule::NoKernel,
                beginning(module),
                "the module has no kernel",
            )
            .help("write one: `kernel @name(...) { ... }`"),
        );
    }
    sound
}

/// Where the module's text begins.
fn beginning(module: &Module) -> Span {
    let first = Position { line: 1, column: 1 };
    match module.sources.first() {
        Some(_) => Span {
            source: Some(SourceId(0)),
            start: first,
            end: first,
            call: None,
        },
        None => Span::NONE,
    }
}

/// Ids in spans name sources and calls that are there, and a call was made from an earlier one, so
/// that following a chain of calls ends. One report is enough: such a module comes from no author.
fn check_spans(module: &Module, errors: &mut Errors) {
    let sound = |span: Span, calls: usize| {
        span.source
            .is_none_or(|id| (id.0 as usize) < module.sources.len())
            && span.call.is_none_or(|id| (id.0 as usize) < calls)
    };
    let all = module.calls.len();
    let mut fine = module
        .calls
        .iter()
        .enumerate()
        .all(|(i, call)| sound(call.site, i));
    fine &= module.structs.iter().all(|def| sound(def.span, all));
    fine &= module.function_constants.iter().all(|c| sound(c.span, all));
    fine &= module.constants.iter().all(|c| sound(c.span, all));
    for kernel in &module.kernels {
        fine &= sound(kernel.span, all) && kernel.params.iter().all(|p| sound(p.span, all));
        fine &= kernel.requires.iter().all(|r| sound(r.span, all));
        // Nesting is not checked yet, so this keeps its own stack.
        let mut regions = vec![&kernel.body];
        while let Some(region) = regions.pop() {
            for inst in &region.insts {
                fine &= sound(inst.span, all);
                regions.extend(inst.kind.regions());
            }
        }
    }
    if !fine {
        errors.push(
            Diagnostic::error(
                Rule::MalformedModule,
                Span::NONE,
                "a span names a source or call that is not there, or a call comes before its caller",
            )
            .help("enter sources and outer calls in the module before what refers to them"),
        );
    }
}

fn check_struct(module: &Module, def: &StructDef, sound: &Sound, errors: &mut Errors) -> bool {
    if def.fields.is_empty() {
        let message = format!("struct `@{}` has no fields", def.name);
        errors.push(Diagnostic::error(Rule::InvalidType, def.span, message).help("give it one"));
        return false;
    }
    let mut names = Names::new(format!("struct `@{}`", def.name));
    let mut fine = true;
    for (name, ty) in &def.fields {
        names.add("", name, def.span, errors);
        let what = || format!("field `{name}` of struct `@{}`", def.name);
        fine &= sound.element(module, ty, def.span, &what, errors);
    }
    let whole = ElementType::Struct(StructId(sound.structs.len() as u32));
    let what = || format!("struct `@{}`", def.name);
    fine && sound.within_limits(&whole, def.span, &what, errors)
}

impl Sound {
    /// Checks a memory type. False if something is wrong, which has been reported (here or where the
    /// struct was declared).
    fn element(
        &self,
        module: &Module,
        ty: &ElementType,
        span: Span,
        what: &dyn Fn() -> String,
        errors: &mut Errors,
    ) -> bool {
        let mut at = ty;
        while let ElementType::Array(element, length) = at {
            if *length == 0 {
                let message = format!("{} is an array without elements", what());
                errors.push(
                    Diagnostic::error(Rule::EmptyArray, span, message)
                        .help("give it a length of at least 1"),
                );
                return false;
            }
            at = element;
        }
        let fine = match at {
            // The loop above ends at what is not an array.
            ElementType::Array(..) => false,
            ElementType::Value(value) => check_storable(*value, span, what, errors),
            ElementType::Struct(id) => match self.structs.get(id.0 as usize) {
                Some(fine) => *fine,
                None => {
                    let (rule, why) = match module.structs.get(id.0 as usize) {
                        Some(def) => (
                            Rule::InvalidType,
                            format!(
                                "holds struct `@{}`, which is not declared before it",
                                def.name
                            ),
                        ),
                        None => (
                            Rule::MalformedModule,
                            "holds a struct that is not there".to_string(),
                        ),
                    };
                    let message = format!("{} {why}", what());
                    errors.push(
                        Diagnostic::error(rule, span, message)
                            .help("a struct can hold only structs declared before it"),
                    );
                    false
                }
            },
        };
        fine && self.within_limits(ty, span, what, errors)
    }

    /// Checks the size of a type that is right otherwise.
    fn within_limits(
        &self,
        ty: &ElementType,
        span: Span,
        what: &dyn Fn() -> String,
        errors: &mut Errors,
    ) -> bool {
        let fine = self.extents.extent(ty).is_some();
        if !fine {
            let message = format!(
                "{} is larger than {MAX_ELEMENT_BYTES} bytes, has more than {MAX_ELEMENT_PARTS} \
                 fields or nests more than {MAX_TYPE_DEPTH} deep",
                what()
            );
            errors.push(
                Diagnostic::error(Rule::LimitExceeded, span, message)
                    .help("keep large data in arrays or buffers of smaller elements"),
            );
        }
        fine
    }
}

/// Whether memory, and a parameter, can hold a value of this type.
fn check_storable(ty: Type, span: Span, what: &dyn Fn() -> String, errors: &mut Errors) -> bool {
    let (why, help) = match (ty, ty.defect()) {
        (_, Some(defect)) => (defect, "use a type that exists"),
        (Type::SimdgroupMatrix { .. }, None) => (
            format!("a {ty} is a value of the simdgroup, not of memory"),
            "hold its entries as scalars, and use `matrix_load` and `matrix_store`",
        ),
        (Type::Event, None) => (
            "an event is a value of the simdgroup, not of memory".to_string(),
            "wait for it, or carry it through loops as a value",
        ),
        (Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. }, None) => return true,
    };
    let message = format!("{} has type {ty}: {why}", what());
    errors.push(Diagnostic::error(Rule::InvalidType, span, message).help(help));
    false
}

/// Checks a program-scope constant; gives its size in bytes.
fn check_constant(
    module: &Module,
    constant: &ConstantArray,
    sound: &Sound,
    errors: &mut Errors,
) -> u64 {
    let (name, span) = (&constant.name, constant.span);
    let what = || format!("constant `@{name}`");
    if constant.length == 0 {
        let message = format!("constant `@{name}` has no elements");
        errors.push(
            Diagnostic::error(Rule::EmptyArray, span, message)
                .help("give it a length of at least 1"),
        );
        return 0;
    }
    if !sound.element(module, &constant.element, span, &what, errors) {
        return 0;
    }
    let Some(extent) = sound.extents.extent(&constant.element) else {
        return 0;
    };
    let count = extent
        .location_count
        .saturating_mul(u64::from(constant.length));
    if constant.values.len() as u64 != count {
        let message = format!(
            "`@{name}` holds {count} scalars but has {} values",
            constant.values.len()
        );
        errors.push(
            Diagnostic::error(Rule::ConstantInitialiser, span, message)
                .help("give one value for each scalar of each element"),
        );
        return 0;
    }
    // As many as there are values, so this list is no longer than theirs.
    let scalars: Vec<Scalar> = constant
        .element
        .locations(&module.structs)
        .into_iter()
        .map(|(_, scalar)| scalar)
        .collect();
    for (i, (value, scalar)) in constant
        .values
        .iter()
        .zip(scalars.iter().cycle())
        .enumerate()
    {
        if value.scalar != *scalar {
            let message = format!(
                "value {} of `@{name}` has type {}, expected {scalar}",
                i + 1,
                value.scalar
            );
            errors.push(
                Diagnostic::error(Rule::ConstantInitialiser, span, message)
                    .help("write each value in the type of its place"),
            );
            break;
        }
        if !is_canonical(*value) {
            let message = format!("value {} of `@{name}` has bits outside its type", i + 1);
            errors.error(Rule::MalformedModule, span, message, MALFORMED_HELP);
            break;
        }
    }
    extent.size_bytes.saturating_mul(u64::from(constant.length))
}

/// Checks a kernel's attributes, parameters, arrays and the types and names of its values. Gives
/// whether all types are such that the kernel's instructions can be looked at.
pub(super) fn check_kernel(
    module: &Module,
    kernel: &Kernel,
    sound: &Sound,
    errors: &mut Errors,
) -> bool {
    check_sizes(kernel, errors);
    let mut fine = true;
    for param in &kernel.params {
        let what = || format!("parameter `%{}`", param.name);
        fine &= match &param.kind {
            ParamKind::Buffer { element, .. }
            | ParamKind::Constant { element }
            | ParamKind::Threadgroup { element } => {
                sound.element(module, element, param.span, &what, errors)
            }
            ParamKind::Texture(texture) => {
                if let Some(defect) = texture.defect() {
                    let message = format!("{} is a `{texture}`: {defect}", what());
                    let error = Diagnostic::error(Rule::TypeMismatch, param.span, message);
                    errors.push(error.help("declare it as one of these, and `cast` values"));
                }
                true
            }
            ParamKind::Sampler => true,
            ParamKind::Scalar { value } => match kernel.values.get(value.0 as usize) {
                // That the value is there, `structure` says.
                None => true,
                Some(info) => check_storable(info.ty, param.span, &what, errors),
            },
        };
    }
    check_bindings(kernel, errors);
    let places = definitions(kernel);
    fine &= check_arrays(module, kernel, sound, &places, errors);
    for (i, info) in kernel.values.iter().enumerate() {
        if let Some(defect) = info.ty.defect() {
            let value = crate::inst::Value(i as u32);
            let name = module.called(kernel, value);
            let span = places.values.get(i).copied().unwrap_or(kernel.span);
            let message = format!("`{name}` has type {}: {defect}", info.ty);
            errors.push(
                Diagnostic::error(Rule::InvalidType, span, message).help("use a type that exists"),
            );
            fine = false;
        }
    }
    check_names(kernel, &places, errors);
    fine
}

/// One binding is one parameter; or two in a row, a struct and what follows it in the same buffer.
fn check_bindings(kernel: &Kernel, errors: &mut Errors) {
    let is_head = |param: &Param| match &param.kind {
        ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => {
            matches!(element, ElementType::Struct(_))
        }
        ParamKind::Threadgroup { .. }
        | ParamKind::Texture(_)
        | ParamKind::Sampler
        | ParamKind::Scalar { .. } => false,
    };
    let is_tail = |head: &Param, tail: &Param| match (&head.kind, &tail.kind) {
        (ParamKind::Buffer { access: a, .. }, ParamKind::Buffer { access: b, .. }) => a == b,
        (ParamKind::Constant { .. }, ParamKind::Constant { .. }) => true,
        _other_memory => false,
    };
    let mut first: HashMap<Binding, usize> = HashMap::new();
    for (i, param) in kernel.params.iter().enumerate() {
        let Some(binding) = param.binding else {
            continue;
        };
        let Binding { group, number } = binding;
        if matches!(param.kind, ParamKind::Threadgroup { .. }) {
            let message = format!(
                "`%{}` is threadgroup memory and has binding({group}, {number})",
                param.name
            );
            errors.push(
                Diagnostic::error(Rule::WrongAddressSpace, param.span, message)
                    .help("leave the binding out: a dispatch gives it a length, and no buffer"),
            );
            continue;
        }
        let Some(earlier) = first.get(&binding).copied() else {
            first.insert(binding, i);
            continue;
        };
        let other = &kernel.params[earlier];
        if earlier + 1 == i && is_head(other) && is_tail(other, param) {
            continue;
        }
        let message = format!(
            "`%{}` has binding({group}, {number}) of `%{}`",
            param.name, other.name
        );
        errors.push(
            Diagnostic::error(Rule::DuplicateName, param.span, message)
                .and(other.span, "first used here")
                .help(
                    "give it another number; only a struct and the parameter behind it, of the same access, share one: \
                     what a buffer begins with, and the rest",
                ),
        );
    }
}

fn check_sizes(kernel: &Kernel, errors: &mut Errors) {
    if let Some(size) = kernel.threadgroup_size {
        let [x, y, z] = size;
        let count = size.into_iter().map(u128::from).product::<u128>();
        let why = if count == 0 {
            Some("an empty threadgroup")
        } else if count > u128::from(u32::MAX) {
            Some("more threads than 32 bits can number")
        } else {
            None
        };
        if let Some(why) = why {
            let message = format!("threadgroup({x}, {y}, {z}) of `@{}` is {why}", kernel.name);
            errors.push(
                Diagnostic::error(Rule::ThreadgroupSize, kernel.span, message)
                    .help("give each dimension at least 1; devices take up to about 1024 threads"),
            );
        }
    }
    if let Some(size) = kernel.simdgroup_size
        && !(size.is_power_of_two() && (4..=128).contains(&size))
    {
        let message = format!(
            "simdgroup({size}) of `@{}` is not a size that a simdgroup can have",
            kernel.name
        );
        errors.push(
            Diagnostic::error(Rule::SimdgroupSize, kernel.span, message)
                .help("require 4, 8, 16, 32, 64 or 128"),
        );
    }
}

/// Where the values and arrays of a kernel are defined.
struct Places {
    values: Vec<Span>,
    arrays: Vec<Span>,
}

fn definitions(kernel: &Kernel) -> Places {
    let mut places = Places {
        values: vec![kernel.span; kernel.values.len()],
        arrays: vec![kernel.span; kernel.allocs.len()],
    };
    for param in &kernel.params {
        if let ParamKind::Scalar { value } = param.kind
            && let Some(place) = places.values.get_mut(value.0 as usize)
        {
            *place = param.span;
        }
    }
    let mut regions = vec![&kernel.body];
    while let Some(region) = regions.pop() {
        for inst in &region.insts {
            let inner = inst.kind.regions();
            let params = inner.iter().flat_map(|region| &region.params);
            for value in inst.results.iter().chain(params) {
                if let Some(place) = places.values.get_mut(value.0 as usize) {
                    *place = inst.span;
                }
            }
            if let InstKind::Alloc(id) = inst.kind
                && let Some(place) = places.arrays.get_mut(id as usize)
            {
                *place = inst.span;
            }
            regions.extend(inner);
        }
    }
    places
}

fn check_arrays(
    module: &Module,
    kernel: &Kernel,
    sound: &Sound,
    places: &Places,
    errors: &mut Errors,
) -> bool {
    let mut fine = true;
    let mut totals = [
        (AddressSpace::Threadgroup, 0u64, MAX_THREADGROUP_BYTES),
        (AddressSpace::Thread, 0, MAX_THREAD_BYTES),
        (AddressSpace::Imageblock, 0, MAX_THREADGROUP_BYTES),
    ];
    check_imageblocks(kernel, places, errors);
    for (array, &span) in kernel.allocs.iter().zip(&places.arrays) {
        let name = &array.name;
        let what = || format!("array `%{name}`");
        if array.length == 0 && array.space != AddressSpace::Imageblock {
            let message = format!("array `%{name}` has no elements");
            errors.push(
                Diagnostic::error(Rule::EmptyArray, span, message)
                    .help("give it a length of at least 1"),
            );
        }
        if !sound.element(module, &array.element, span, &what, errors) {
            fine = false;
            continue;
        }
        let Some((_, total, most)) = totals.iter_mut().find(|(space, ..)| *space == array.space)
        else {
            let message = format!("array `%{name}` is in {} memory", array.space.name());
            errors.push(
                Diagnostic::error(Rule::WrongAddressSpace, span, message).help(
                    "a kernel declares arrays in `threadgroup` or `thread` memory; others are \
                     parameters",
                ),
            );
            continue;
        };
        let size = sound
            .extents
            .extent(&array.element)
            .map_or(0, |e| e.size_bytes);
        let before = *total;
        *total = total.saturating_add(size.saturating_mul(u64::from(array.length)));
        if before <= *most && *total > *most {
            let message = format!(
                "with `%{name}` the {} arrays of `@{}` take {total} bytes, at most {most} are allowed",
                array.space.name(),
                kernel.name
            );
            errors.push(
                Diagnostic::error(Rule::LimitExceeded, span, message)
                    .help("shorten it, or keep the data in a buffer"),
            );
        }
    }
    fine
}

/// Imageblocks are declared first, and have an element for each position of the threadgroup.
fn check_imageblocks(kernel: &Kernel, places: &Places, errors: &mut Errors) {
    let leading = kernel.body.insts.iter().take_while(|inst| {
        let InstKind::Alloc(id) = inst.kind else {
            return false;
        };
        let array = kernel.allocs.get(id as usize);
        array.is_some_and(|array| array.space == AddressSpace::Imageblock)
    });
    let leading = leading.count();
    for (number, (array, &span)) in kernel.allocs.iter().zip(&places.arrays).enumerate() {
        if array.space != AddressSpace::Imageblock {
            continue;
        }
        let name = &array.name;
        if number >= leading {
            let message = format!("imageblock `%{name}` is declared within the kernel");
            let help = "imageblocks are declared among the parameters";
            errors.error(Rule::MalformedModule, span, message, help);
        }
        let (message, help) = match kernel.threadgroup_size {
            None => (
                format!(
                    "imageblock `%{name}` has an element for each position of the threadgroup, whose size `@{}` \
                     does not say",
                    kernel.name
                ),
                "write the size behind the parameters, as `threadgroup(16, 16)`",
            ),
            Some([x, y, z]) if z != 1 => (
                format!(
                    "imageblock `%{name}` has two dimensions, the threadgroups of `@{}` have three: {x} by {y} by {z}",
                    kernel.name
                ),
                "make the threadgroup's size in z 1",
            ),
            Some([x, y, _]) if u64::from(x) * u64::from(y) != u64::from(array.length) => (
                format!(
                    "imageblock `%{name}` has {} elements, the threadgroup {x} by {y} positions",
                    array.length
                ),
                "say the threadgroup's size before the imageblock is declared",
            ),
            Some(_as_many) => continue,
        };
        errors.error(Rule::ThreadgroupSize, span, message, help);
    }
}

fn check_names(kernel: &Kernel, places: &Places, errors: &mut Errors) {
    let mut names = Names::new(format!("kernel `@{}`", kernel.name));
    let mut params = vec![false; kernel.values.len()];
    for param in &kernel.params {
        names.add("%", &param.name, param.span, errors);
        if let ParamKind::Scalar { value } = param.kind
            && let Some(info) = kernel.values.get(value.0 as usize)
        {
            params[value.0 as usize] = true;
            if info.name.as_ref() != Some(&param.name) {
                let message = format!("the value of parameter `%{}` has another name", param.name);
                errors.error(Rule::MalformedModule, param.span, message, MALFORMED_HELP);
            }
        }
    }
    for (array, span) in kernel.allocs.iter().zip(&places.arrays) {
        names.add("%", &array.name, *span, errors);
    }
    for ((info, span), is_param) in kernel.values.iter().zip(&places.values).zip(params) {
        if let (Some(name), false) = (&info.name, is_param) {
            names.add("%", name, *span, errors);
        }
    }
}
