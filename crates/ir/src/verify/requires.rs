//! What a kernel may require of a launch (S5).

use super::{Errors, MALFORMED_HELP};
use crate::diagnostic::Diagnostic;
use crate::module::{Access, Kernel, Module, ParamKind};
use crate::requires::{
    Comparison, Field, LaunchNumber, MAX_FACTORS, MAX_NUMBER, MAX_PRODUCTS, MAX_REQUIREMENTS,
    Required, Requirement,
};
use crate::rules::Rule;
use crate::types::ElementType;

/// Checks the requirements of a kernel.
pub(super) fn check(module: &Module, kernel: &Kernel, errors: &mut Errors) {
    if let Some(first) = kernel.requires.get(MAX_REQUIREMENTS) {
        let message = format!(
            "kernel `@{}` has {} requirements, at most {MAX_REQUIREMENTS} are allowed",
            kernel.name,
            kernel.requires.len()
        );
        let error = Diagnostic::error(Rule::LimitExceeded, first.span, message);
        errors.push(error.help("pass fewer sizes, so that less has to be required of them"));
        return;
    }
    for requirement in &kernel.requires {
        let mut check = Check {
            module,
            kernel,
            requirement,
            errors,
        };
        check.all();
    }
}

struct Check<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    requirement: &'a Requirement,
    errors: &'a mut Errors,
}

impl Check<'_> {
    fn error(&mut self, rule: Rule, message: String, help: &str) {
        self.errors
            .error(rule, self.requirement.span, message, help);
    }

    fn malformed(&mut self, what: &str) {
        let message = format!("a requirement of `@{}` {what}", self.kernel.name);
        self.error(Rule::MalformedModule, message, MALFORMED_HELP);
    }

    fn all(&mut self) {
        match &self.requirement.required {
            Required::Holds(comparison) => self.comparison(comparison, false),
            Required::Each {
                name,
                buffer,
                comparison,
            } => {
                self.contents(*buffer);
                self.comparison(comparison, true);
                if name.is_empty() {
                    self.malformed("has an element without a name");
                } else if self.kernel.params.iter().any(|p| p.name == *name) {
                    let message = format!("`%{name}` is a parameter, and names an element here");
                    let help = "give the element another name";
                    self.error(Rule::DuplicateName, message, help);
                }
            }
            Required::Ascending { buffer } => self.contents(*buffer),
        }
    }

    /// What a buffer holds is known if nothing writes it meanwhile, and numbers if they are integers.
    fn contents(&mut self, buffer: u32) {
        let Some(element) = self.held(buffer) else {
            return;
        };
        if !matches!(element, ElementType::Value(ty) if ty.is_integer_scalar()) {
            let message = format!(
                "`%{}` holds {}, expected integers",
                self.kernel.params[buffer as usize].name,
                element.display(&self.module.structs)
            );
            let help = "require something of buffers of integers only";
            self.error(Rule::InvalidRequirement, message, help);
        }
    }

    /// So is a number of its first element.
    fn field(&mut self, buffer: u32, location: u32) {
        if self.held(buffer).is_none() {
            return;
        }
        match Field::of(self.module, self.kernel, buffer, location) {
            None => self.malformed("names a field that is not there"),
            Some(field) if field.scalar.is_integer() => {}
            Some(field) => {
                let name = &self.kernel.params[buffer as usize].name;
                let message = format!(
                    "a field of `%{name}` has type {}, expected an integer",
                    field.scalar
                );
                let help = "require something of integers only";
                self.error(Rule::InvalidRequirement, message, help);
            }
        }
    }

    /// What a buffer holds that nothing writes meanwhile; `None` with an error if it is none.
    fn held(&mut self, buffer: u32) -> Option<ElementType> {
        let Some(param) = self.kernel.params.get(buffer as usize) else {
            self.malformed("names a parameter that is not there");
            return None;
        };
        let (read, element) = match &param.kind {
            ParamKind::Buffer { access, element } => (*access == Access::Read, element),
            ParamKind::Constant { element } => (true, element),
            ParamKind::Threadgroup { .. }
            | ParamKind::Scalar { .. }
            | ParamKind::Texture(_)
            | ParamKind::Sampler => {
                let message = format!("`%{}` holds nothing that a launch gives", param.name);
                let help = "require something of the elements of a buffer";
                self.error(Rule::InvalidRequirement, message, help);
                return None;
            }
        };
        if !read {
            let message = format!(
                "`%{}` may be written by the kernel, so that what it holds at the launch is not a promise",
                param.name
            );
            let help = "declare the buffer `read`, or require nothing of what it holds";
            self.error(Rule::InvalidRequirement, message, help);
            return None;
        }
        Some(element.clone())
    }

    fn comparison(&mut self, comparison: &Comparison, of_each: bool) {
        for side in [&comparison.left, &comparison.right] {
            let many = side.products.iter().any(|p| p.numbers.len() > MAX_FACTORS);
            let large = side
                .products
                .iter()
                .any(|p| p.factor.saturating_abs() > MAX_NUMBER);
            if side.products.len() > MAX_PRODUCTS || many || large {
                let message = format!(
                    "a side of a requirement has at most {MAX_PRODUCTS} products of {MAX_FACTORS} \
                     numbers, and numbers of at most 2^64"
                );
                let help = "require less at once";
                return self.error(Rule::LimitExceeded, message, help);
            }
            let remainder = side.modulus.is_some();
            if side.products.is_empty()
                || side.modulus == Some(0)
                || remainder && side.products.len() > 1
            {
                return self.malformed("has a side that is not a sum");
            }
        }
        for number in comparison.numbers() {
            self.number(number, of_each);
        }
    }

    fn number(&mut self, number: LaunchNumber, of_each: bool) {
        let params = &self.kernel.params;
        match number {
            LaunchNumber::Argument(i) => {
                let ty = match params.get(i as usize).map(|p| &p.kind) {
                    Some(ParamKind::Scalar { value }) => {
                        let info = self.kernel.values.get(value.0 as usize);
                        info.map(|info| info.ty)
                    }
                    Some(_) | None => None,
                };
                match ty {
                    None => self.malformed("names a parameter that is not there"),
                    Some(ty) if ty.is_integer_scalar() => {}
                    Some(ty) => {
                        let name = &params[i as usize].name;
                        let message = format!("`%{name}` has type {ty}, expected an integer");
                        let help = "require something of integers only";
                        self.error(Rule::InvalidRequirement, message, help);
                    }
                }
            }
            LaunchNumber::Constant(i) => {
                let constants = &self.module.function_constants;
                match constants.get(i as usize).map(|c| (&c.name, c.scalar)) {
                    None => self.malformed("names a function constant that is not there"),
                    Some((_, scalar)) if scalar.is_integer() => {}
                    Some((name, scalar)) => {
                        let message = format!("`@{name}` has type {scalar}, expected an integer");
                        let help = "require something of integers only";
                        self.error(Rule::InvalidRequirement, message, help);
                    }
                }
            }
            LaunchNumber::Length(i) => match params.get(i as usize).map(|p| &p.kind) {
                Some(
                    ParamKind::Buffer { .. }
                    | ParamKind::Constant { .. }
                    | ParamKind::Threadgroup { .. },
                ) => {}
                Some(ParamKind::Scalar { .. } | ParamKind::Texture(_) | ParamKind::Sampler)
                | None => {
                    self.malformed("asks for the length of what is not a buffer");
                }
            },
            LaunchNumber::Texels(i, d) => match params.get(i as usize).map(|p| &p.kind) {
                Some(ParamKind::Texture(texture)) if texture.dimension.has_extent(d) => {}
                Some(_) | None => {
                    self.malformed("asks for a size of something that is not such a texture")
                }
            },
            LaunchNumber::Levels(i) => match params.get(i as usize).map(|p| &p.kind) {
                Some(ParamKind::Texture(texture)) if texture.dimension.has_levels() => {}
                Some(_) | None => self.malformed("asks for the levels of what has none"),
            },
            LaunchNumber::Field(i, location) => self.field(i, location),
            LaunchNumber::Element if !of_each => self.malformed("has an element of no buffer"),
            LaunchNumber::Grid(_)
            | LaunchNumber::Groups(_)
            | LaunchNumber::Threadgroup(_)
            | LaunchNumber::Element => {}
        }
    }
}
