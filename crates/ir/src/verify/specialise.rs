//! Fixing function constants.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::{Errors, MALFORMED_HELP, Verified, declarations::is_canonical};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::inst::{Const, InstKind, Region};
use crate::module::{Kernel, Module};
use crate::requires::{LaunchNumber, Required};
use crate::room::{PASSES_BYTES, with_room};
use crate::rules::Rule;
use crate::span::Span;

/// How a host names a function constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConstantKey {
    /// By its name, without the sigil.
    Name(Arc<str>),
    /// By its id.
    Id(u32),
}

impl From<&str> for ConstantKey {
    fn from(name: &str) -> ConstantKey {
        ConstantKey::Name(name.into())
    }
}

impl From<u32> for ConstantKey {
    fn from(id: u32) -> ConstantKey {
        ConstantKey::Id(id)
    }
}

impl fmt::Display for ConstantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstantKey::Name(name) => write!(f, "`@{name}`"),
            ConstantKey::Id(id) => write!(f, "id {id}"),
        }
    }
}

impl Verified {
    /// The module with its function constants fixed: those named have these values, the others their
    /// defaults. The result has no function constants.
    ///
    /// ```
    /// use invar_ir::{Const, FunctionConstant, InstKind, KernelBuilder, Module, Scalar, Span, verify};
    ///
    /// let mut module = Module::default();
    /// module.function_constants.push(FunctionConstant {
    ///     name: "TILE".into(),
    ///     id: 0,
    ///     scalar: Scalar::U32,
    ///     default: None,
    ///     span: Span::NONE,
    /// });
    /// let mut k = KernelBuilder::new(module, "k");
    /// k.function_constant(0);
    /// let verified = verify(k.finish()?)?;
    /// assert!(verified.clone().specialise(&[]).is_err(), "it has no default");
    /// let fixed = verified.specialise(&[("TILE".into(), Const::from(16u32))])?;
    /// let first = &fixed.kernels[0].body.insts[0].kind;
    /// assert_eq!(*first, InstKind::Const(Const::from(16u32)));
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    ///
    /// [`Verified::only`] is for one kernel, and the values that this one needs.
    ///
    /// # Errors
    /// Each constant that has neither a value nor a default, each value that names no constant, names one
    /// again, or has another type, and what a kernel requires of constants alone and does not hold.
    pub fn specialise(self, constants: &[(ConstantKey, Const)]) -> Result<Verified, Diagnostics> {
        with_room(PASSES_BYTES, || self.specialised(constants))
    }

    /// The module with this kernel alone, if it has such a one. Function constants that the kernel does not use
    /// and that have no default get one: who launches it need not give them values.
    ///
    /// ```
    /// use invar_ir::{text, verify};
    ///
    /// let text = "
    ///     function_constant @N: u32 id(0)
    ///     kernel @of_n() {
    ///       %n = function_constant @N
    ///     }
    ///     kernel @free() {
    ///     }
    /// ";
    /// let module = verify(text::parse("two.inv", text)?)?;
    /// assert!(module.only("free").is_some_and(|m| m.specialise(&[]).is_ok()));
    /// assert!(module.only("of_n").is_some_and(|m| m.specialise(&[]).is_err()));
    /// assert!(module.only("other").is_none());
    /// # Ok::<(), invar_ir::Diagnostics>(())
    /// ```
    pub fn only(&self, kernel: &str) -> Option<Verified> {
        let kernel = self.kernel(kernel)?;
        let mut function_constants = self.function_constants.clone();
        if function_constants.iter().any(|c| c.default.is_none()) {
            let mut used = HashSet::new();
            with_room(PASSES_BYTES, || find_used(&kernel.body, &mut used));
            for requirement in &kernel.requires {
                let numbers = requirement.comparison().map(|c| c.numbers());
                used.extend(numbers.into_iter().flatten().filter_map(|n| match n {
                    LaunchNumber::Constant(place) => Some(place),
                    _of_the_launch => None,
                }));
            }
            for (place, constant) in (0u32..).zip(&mut function_constants) {
                if constant.default.is_none() && !used.contains(&place) {
                    let scalar = constant.scalar;
                    constant.default = Some(Const { scalar, bits: 0 });
                }
            }
        }
        let kernels = vec![kernel.clone()];
        Some(Verified(Module {
            sources: self.sources.clone(),
            calls: self.calls.clone(),
            structs: self.structs.clone(),
            function_constants,
            constants: self.constants.clone(),
            kernels,
        }))
    }

    fn specialised(self, constants: &[(ConstantKey, Const)]) -> Result<Verified, Diagnostics> {
        let mut module = self.0;
        let declared = std::mem::take(&mut module.function_constants);
        let mut errors = Errors::default();
        let mut values: Vec<Option<Const>> = vec![None; declared.len()];
        for (key, value) in constants {
            let found = declared.iter().position(|constant| match key {
                ConstantKey::Name(name) => constant.name == *name,
                ConstantKey::Id(id) => constant.id == *id,
            });
            let Some(index) = found else {
                let names: Vec<String> = declared
                    .iter()
                    .take(8)
                    .map(|c| format!("`@{}` (id {})", c.name, c.id))
                    .collect();
                let help = if names.is_empty() {
                    "the module has none".to_string()
                } else {
                    format!("the module has {}", names.join(", "))
                };
                let message = format!("there is no function constant {key}");
                let error = Diagnostic::error(Rule::FunctionConstant, Span::NONE, message);
                errors.push(error.help(help));
                continue;
            };
            let constant = &declared[index];
            let (name, span) = (&constant.name, constant.span);
            if value.scalar != constant.scalar {
                let message = format!(
                    "function constant `@{name}` has type {}, but is given a {}",
                    constant.scalar, value.scalar
                );
                let error = Diagnostic::error(Rule::FunctionConstant, span, message);
                errors.push(error.help(format!("give it a {}", constant.scalar)));
            } else if !is_canonical(*value) {
                let message = format!("the value given for `@{name}` has bits outside its type");
                errors.error(Rule::MalformedModule, span, message, MALFORMED_HELP);
            } else if values[index].is_some() {
                let message = format!("function constant `@{name}` is given a value twice");
                let error = Diagnostic::error(Rule::FunctionConstant, span, message);
                errors.push(error.help("name it once, by its name or by its id"));
            }
            values[index] = Some(*value);
        }
        let mut fixed = Vec::with_capacity(declared.len());
        for (constant, given) in declared.iter().zip(values) {
            match given.or(constant.default) {
                Some(value) => fixed.push(value),
                None => {
                    let message = format!(
                        "function constant `@{}` (id {}) has no value and no default",
                        constant.name, constant.id
                    );
                    errors.push(
                        Diagnostic::error(Rule::FunctionConstant, constant.span, message)
                            .help("give it a value when the kernel is compiled"),
                    );
                }
            }
        }
        if !errors.list.is_empty() {
            return Err(errors.conclude());
        }
        let numbers: Vec<i128> = fixed.iter().map(|c| c.scalar.integer(c.bits)).collect();
        let mut kernels = std::mem::take(&mut module.kernels);
        module.function_constants = declared;
        for kernel in &mut kernels {
            fix_requirements(&module, kernel, &numbers, &mut errors);
            fix(&mut kernel.body, &fixed);
        }
        module.function_constants.clear();
        module.kernels = kernels;
        if !errors.list.is_empty() {
            return Err(errors.conclude());
        }
        // A constant has the type and the uniformity of what it replaces, so every rule still holds.
        Ok(Verified(module))
    }
}

/// Puts numbers in the place of constants that a kernel requires something of. What is then known to hold
/// is required no more.
fn fix_requirements(module: &Module, kernel: &mut Kernel, constants: &[i128], errors: &mut Errors) {
    let constant = |place: u32| constants[place as usize];
    let number = |number| match number {
        LaunchNumber::Constant(place) => Some(constant(place)),
        LaunchNumber::Argument(_)
        | LaunchNumber::Length(_)
        | LaunchNumber::Texels(..)
        | LaunchNumber::Levels(_)
        | LaunchNumber::Grid(_)
        | LaunchNumber::Groups(_)
        | LaunchNumber::Threadgroup(_)
        | LaunchNumber::Field(..)
        | LaunchNumber::Element => None,
    };
    let mut requires = std::mem::take(&mut kernel.requires);
    requires.retain_mut(|requirement| {
        if let Required::Holds(comparison) = &requirement.required {
            match comparison.holds(&number) {
                Some(true) => return false,
                Some(false) => {
                    let message = requirement.broken_by(module, kernel, &number, None);
                    let error =
                        Diagnostic::error(Rule::BrokenRequirement, requirement.span, message);
                    errors.push(error.help("give its function constants other values"));
                    return true;
                }
                None => {}
            }
        }
        if requirement.specialise(&constant).is_none() {
            let required = requirement.in_words(module, kernel);
            let message = format!("{required} speaks of numbers beyond 2^64");
            let error = Diagnostic::error(Rule::LimitExceeded, requirement.span, message);
            errors.push(error.help("give its function constants smaller values"));
        }
        true
    });
    kernel.requires = requires;
}

fn fix(region: &mut Region, values: &[Const]) {
    for inst in &mut region.insts {
        if let InstKind::FunctionConstant(id) = inst.kind {
            inst.kind = InstKind::Const(values[id as usize]);
        }
        for inner in inst.kind.regions_mut() {
            fix(inner, values);
        }
    }
}

/// The numbers of the function constants that a body uses.
fn find_used(region: &Region, used: &mut HashSet<u32>) {
    for inst in &region.insts {
        if let InstKind::FunctionConstant(id) = inst.kind {
            used.insert(id);
        }
        for inner in inst.kind.regions() {
            find_used(inner, used);
        }
    }
}
