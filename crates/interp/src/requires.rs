//! Whether a dispatch fulfils what its kernel requires (S5): its numbers, which every device looks at, and
//! what its buffers hold, which the checked device does.

use invar_ir::requires::Field;
use invar_ir::{
    Diagnostic, Diagnostics, ElementType, Kernel, LaunchNumber, Module, ParamKind, Required,
    Requirement, Rule, Scalar, Type,
};

use crate::dispatch::{Arg, Given, GridSizes};

/// The numbers of a dispatch.
struct Numbers<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    grid: &'a GridSizes,
    args: Vec<Given<'a>>,
    /// Function constants by their place, where the kernel still has them.
    constants: &'a [Option<i128>],
    /// What buffers hold, by the place of the parameter, where that is looked at.
    held: &'a dyn Fn(u32) -> Option<&'a [u8]>,
}

impl Numbers<'_> {
    fn number(&self, number: LaunchNumber) -> Option<i128> {
        let size = |sizes: [u32; 3], dim: invar_ir::Dim| Some(i128::from(sizes[dim as usize]));
        match number {
            LaunchNumber::Grid(dim) => size(self.grid.threads, dim),
            LaunchNumber::Groups(dim) => size(self.grid.threadgroups, dim),
            LaunchNumber::Threadgroup(dim) => size(self.grid.threadgroup, dim),
            LaunchNumber::Argument(place) => match self.args.get(place as usize)? {
                Given::Scalar([constant]) => Some(constant.scalar.integer(constant.bits)),
                Given::Scalar(_)
                | Given::Buffer { .. }
                | Given::ThreadgroupLength(_)
                | Given::Texture { .. } => None,
            },
            LaunchNumber::Length(place) => match self.args.get(place as usize)? {
                Given::ThreadgroupLength(length) => Some(i128::from(*length)),
                Given::Buffer { size_bytes, .. } => {
                    let element = match &self.kernel.params.get(place as usize)?.kind {
                        ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => {
                            element
                        }
                        ParamKind::Threadgroup { .. }
                        | ParamKind::Scalar { .. }
                        | ParamKind::Texture(_)
                        | ParamKind::Sampler => return None,
                    };
                    let each = element.extent(&self.module.structs)?.size_bytes.max(1);
                    Some(i128::from(size_bytes / each))
                }
                Given::Scalar(_) | Given::Texture { .. } => None,
            },
            LaunchNumber::Texels(place, dim) => match self.args.get(place as usize)? {
                Given::Texture { shape, .. } => size(shape.extents(), dim),
                Given::Scalar(_) | Given::Buffer { .. } | Given::ThreadgroupLength(_) => None,
            },
            LaunchNumber::Levels(place) => match self.args.get(place as usize)? {
                Given::Texture { shape, .. } => Some(shape.levels.into()),
                Given::Scalar(_) | Given::Buffer { .. } | Given::ThreadgroupLength(_) => None,
            },
            LaunchNumber::Field(place, location) => {
                let field = Field::of(self.module, self.kernel, place, location)?;
                let element = match &self.kernel.params.get(place as usize)?.kind {
                    ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => element,
                    ParamKind::Threadgroup { .. }
                    | ParamKind::Scalar { .. }
                    | ParamKind::Texture(_)
                    | ParamKind::Sampler => return None,
                };
                let each = element.extent(&self.module.structs)?.size_bytes;
                field.read(each, (self.held)(place)?)
            }
            LaunchNumber::Constant(place) => self.constants.get(place as usize).copied()?,
            LaunchNumber::Element => None,
        }
    }

    fn refuse(
        &self,
        requirement: &Requirement,
        message: String,
        help: &str,
    ) -> Result<(), Diagnostics> {
        let error = Diagnostic::error(Rule::BrokenRequirement, requirement.span, message);
        Err(Diagnostics(vec![error.help(help)]))
    }

    fn broken(
        &self,
        requirement: &Requirement,
        element: Option<(u64, i128)>,
    ) -> Result<(), Diagnostics> {
        let number = |number| self.number(number);
        let message = requirement.broken_by(self.module, self.kernel, &number, element);
        self.refuse(requirement, message, "launch it with what it requires")
    }

    fn too_large(&self, requirement: &Requirement) -> Result<(), Diagnostics> {
        let required = requirement.in_words(self.module, self.kernel);
        let message = format!(
            "kernel `{}` requires {required}, and a product there is beyond 128 bits",
            self.kernel.name
        );
        self.refuse(requirement, message, "launch it with smaller numbers")
    }

    /// Checks the numbers.
    fn check(&self) -> Result<(), Diagnostics> {
        for requirement in &self.kernel.requires {
            let Required::Holds(comparison) = &requirement.required else {
                continue;
            };
            if comparison.is_of_contents() {
                continue;
            }
            match comparison.holds(&|number| self.number(number)) {
                Some(true) => {}
                Some(false) => self.broken(requirement, None)?,
                None => self.too_large(requirement)?,
            }
        }
        Ok(())
    }

    /// Checks what buffers hold.
    fn check_contents(&self) -> Result<(), Diagnostics> {
        let held = |buffer: u32| {
            let scalar = match self.kernel.params.get(buffer as usize).map(|p| &p.kind) {
                Some(ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) => {
                    match element {
                        ElementType::Value(Type::Scalar(scalar)) => Some(*scalar),
                        ElementType::Value(_) | ElementType::Array(..) | ElementType::Struct(_) => {
                            None
                        }
                    }
                }
                Some(
                    ParamKind::Threadgroup { .. }
                    | ParamKind::Scalar { .. }
                    | ParamKind::Texture(_)
                    | ParamKind::Sampler,
                )
                | None => None,
            };
            let bytes = (self.held)(buffer).unwrap_or(&[]);
            scalar.map(|scalar| integers(scalar, bytes))
        };
        for requirement in &self.kernel.requires {
            match &requirement.required {
                Required::Holds(comparison) if comparison.is_of_contents() => {
                    match comparison.holds(&|number| self.number(number)) {
                        Some(true) => {}
                        Some(false) => self.broken(requirement, None)?,
                        None => self.too_large(requirement)?,
                    }
                }
                Required::Holds(_) => {}
                Required::Each {
                    buffer, comparison, ..
                } => {
                    for (at, value) in (0..).zip(held(*buffer).into_iter().flatten()) {
                        let number = |number| match number {
                            LaunchNumber::Element => Some(value),
                            another => self.number(another),
                        };
                        match comparison.holds(&number) {
                            Some(true) => {}
                            Some(false) => self.broken(requirement, Some((at, value)))?,
                            None => self.too_large(requirement)?,
                        }
                    }
                }
                Required::Ascending { buffer } => {
                    let mut before: Option<i128> = None;
                    for (at, value) in (0u64..).zip(held(*buffer).into_iter().flatten()) {
                        if let Some(before) = before.filter(|before| value < *before) {
                            let name = &self.kernel.params[*buffer as usize].name;
                            let message = format!(
                                "kernel `{}` requires ascending {name}, but {name}[{}] is {before} and \
                                 {name}[{at}] is {value}",
                                self.kernel.name,
                                at - 1
                            );
                            self.refuse(requirement, message, "sort the buffer")?;
                        }
                        before = Some(value);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Checks the numbers of a dispatch against what the kernel requires of them (S5).
///
/// # Errors
/// `broken-requirement`: the requirement and the numbers.
pub fn check_requirements<'a>(
    module: &Module,
    kernel: &Kernel,
    grid: &GridSizes,
    args: impl Iterator<Item = Given<'a>>,
) -> Result<(), Diagnostics> {
    if kernel.requires.is_empty() {
        return Ok(());
    }
    let numbers = Numbers {
        module,
        kernel,
        grid,
        args: args.collect(),
        constants: &[],
        held: &|_| None,
    };
    numbers.check()
}

/// Checks all that a kernel requires (S5) of a launch that nobody has to run: its numbers, with those of function
/// constants by their place, and what its buffers hold, where `held` gives the bytes of those of which something is
/// required.
///
/// # Errors
/// `broken-requirement`, as of [`check_requirements`]; or the first element that breaks it.
pub fn check_all_required<'a>(
    (module, kernel): (&'a Module, &'a Kernel),
    grid: &'a GridSizes,
    (args, constants): (Vec<Given<'a>>, &'a [Option<i128>]),
    held: &'a dyn Fn(u32) -> Option<&'a [u8]>,
) -> Result<(), Diagnostics> {
    let numbers = Numbers {
        module,
        kernel,
        grid,
        args,
        constants,
        held,
    };
    numbers.check()?;
    numbers.check_contents()
}

/// Checks what buffers hold against what the kernel requires of that (S5).
///
/// # Errors
/// `broken-requirement`: the requirement and the first element that breaks it.
pub(crate) fn check_contents(
    module: &Module,
    kernel: &Kernel,
    grid: &GridSizes,
    args: &[Arg],
) -> Result<(), Diagnostics> {
    let numbers = Numbers {
        module,
        kernel,
        grid,
        args: args.iter().map(Given::from).collect(),
        constants: &[],
        held: &|place| args.get(place as usize).map(|arg| arg.bytes()),
    };
    numbers.check_contents()
}

/// The integers of a type that bytes hold; a remainder is unreachable (B4).
fn integers(scalar: Scalar, bytes: &[u8]) -> impl Iterator<Item = i128> + '_ {
    let size = scalar.size_bytes() as usize;
    bytes.chunks_exact(size).map(move |chunk| {
        let mut bits = [0; 8];
        bits[..size].copy_from_slice(chunk);
        scalar.integer(u64::from_le_bytes(bits))
    })
}
