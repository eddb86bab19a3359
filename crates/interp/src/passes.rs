//! `; program:` directives on the reference machine: buffers that live through several runs, and those runs,
//! one after the other. A run sees what those before it left; within a run nothing is different, so each is
//! run and checked as one of a `; run:` directive. Where it runs is the caller's: [`BoundProgram::pass`] gives a
//! run with what the buffers hold, and [`BoundProgram::keep`] takes what it left.

use invar_ir::text::case::{Named, Program};
use invar_ir::text::data::{FileReader, evaluate};
use invar_ir::{Access, Diagnostic, Diagnostics, ElementType, Kernel, Module, ParamKind, Rule};

use crate::case::{Bound, bind_but, kernel_of, mismatch};
use crate::dispatch::{Arg, Options};

/// What a directive says to run.
#[derive(Debug)]
pub struct BoundProgram {
    buffers: Vec<Buffer>,
    passes: Vec<BoundPass>,
}

#[derive(Clone, Debug)]
struct Buffer {
    element: ElementType,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct BoundPass {
    /// Without the buffers of the program.
    bound: Bound,
    /// Which parameter gets which of them.
    shared: Vec<(usize, usize)>,
}

impl BoundProgram {
    /// Makes the buffers of what a directive says, and each run's arguments. Files are read by `files`.
    ///
    /// # Errors
    /// Every argument that is missing, unknown, or does not fit its parameter; every buffer that no run
    /// takes, or that runs take as one of different elements.
    pub fn new(
        module: &Module,
        program: &Program,
        options: &Options,
        files: FileReader<'_>,
    ) -> Result<BoundProgram, Diagnostics> {
        let mut errors = Vec::new();
        let mut elements: Vec<Option<&ElementType>> = vec![None; program.buffers.len()];
        let mut passes = Vec::new();
        for pass in &program.passes {
            let kernel = match kernel_of(module, &pass.case) {
                Ok(kernel) => kernel,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            match bind_but(module, &pass.case, &pass.shared, options, &mut *files) {
                Ok(bound) => {
                    let shared = pass.shared.iter().filter_map(|(name, buffer)| {
                        let param = kernel.params.iter().position(|p| *p.name == *name.name);
                        Some((param?, *buffer))
                    });
                    let shared = shared.collect();
                    passes.push(BoundPass { bound, shared });
                }
                Err(Diagnostics(all)) => errors.extend(all),
            }
            let taken = elements_of(module, kernel, program, &pass.shared, &mut elements);
            errors.extend(taken.err());
        }
        let mut buffers = Vec::new();
        for ((name, expr), element) in program.buffers.iter().zip(elements) {
            let Some(element) = element else {
                // Where a run is wrong, that it takes no buffer may be why.
                if errors.is_empty() {
                    let message = format!("no run of the program takes the buffer `{}`", name.name);
                    errors.push(Diagnostic::error(Rule::InvalidArgument, name.span, message));
                }
                continue;
            };
            match evaluate(expr, element, &module.structs, &mut *files) {
                Ok(bytes) => buffers.push(Buffer {
                    element: element.clone(),
                    bytes,
                }),
                Err(mut error) => {
                    error.message = format!("buffer `{}`: {}", name.name, error.message);
                    errors.push(error);
                }
            }
        }
        if errors.is_empty() {
            Ok(BoundProgram { buffers, passes })
        } else {
            Err(Diagnostics(errors))
        }
    }

    /// The same with memory of its own.
    pub fn copy(&self) -> BoundProgram {
        let passes = self.passes.iter().map(|pass| BoundPass {
            bound: pass.bound.copy(),
            shared: pass.shared.clone(),
        });
        BoundProgram {
            buffers: self.buffers.clone(),
            passes: passes.collect(),
        }
    }

    /// How many runs it has.
    pub fn pass_count(&self) -> usize {
        self.passes.len()
    }

    /// A run, from 0, with what the buffers hold now.
    ///
    /// # Panics
    /// There is no such run.
    pub fn pass(&self, number: usize) -> Bound {
        let pass = &self.passes[number];
        let mut bound = pass.bound.copy();
        for (param, buffer) in &pass.shared {
            bound.args[*param] = Arg::OwnedBuffer(self.buffers[*buffer].bytes.clone());
        }
        bound
    }

    /// Takes what a run left in the program's buffers.
    ///
    /// # Panics
    /// There is no such run, or the arguments are those of another.
    pub fn keep(&mut self, number: usize, args: &[Arg<'_>]) {
        for (param, buffer) in &self.passes[number].shared {
            self.buffers[*buffer].bytes = args[*param].bytes().to_vec();
        }
    }

    /// Runs all, one after the other, by what runs one.
    ///
    /// # Errors
    /// What that says; nothing runs after it.
    pub fn run<E>(&mut self, mut one: impl FnMut(&mut Bound) -> Result<(), E>) -> Result<(), E> {
        for number in 0..self.pass_count() {
            let mut bound = self.pass(number);
            one(&mut bound)?;
            self.keep(number, &bound.args);
        }
        Ok(())
    }

    /// What a buffer holds now, by its place in the directive, and its elements.
    ///
    /// # Panics
    /// There is no such buffer.
    pub fn buffer(&self, number: usize) -> (&ElementType, &[u8]) {
        let buffer = &self.buffers[number];
        (&buffer.element, &buffer.bytes)
    }

    /// What differs from the directive's expectations. `reference` is the program after its runs on the
    /// reference machine, for expectations that name it.
    pub fn mismatches(
        &self,
        module: &Module,
        program: &Program,
        reference: &BoundProgram,
        files: FileReader<'_>,
    ) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for expect in &program.expects {
            let names = || program.buffers.iter().map(|(name, _)| &name.name);
            let place = names().position(|name| *name == expect.param.name);
            // The directive was refused if it is not there.
            let Some(i) = place else { continue };
            let (element, after) = self.buffer(i);
            let (_, reference) = reference.buffer(i);
            found.extend(mismatch(
                module,
                expect,
                element,
                after,
                reference,
                &mut *files,
            ));
        }
        found
    }
}

/// Notes what elements a run takes the program's buffers to have.
fn elements_of<'m>(
    module: &Module,
    kernel: &'m Kernel,
    program: &Program,
    shared: &[(Named, usize)],
    elements: &mut [Option<&'m ElementType>],
) -> Result<(), Diagnostic> {
    let mut writes = vec![Vec::new(); elements.len()];
    for (given, buffer) in shared {
        let Some(param) = kernel.params.iter().find(|p| *p.name == *given.name) else {
            continue;
        };
        let wrong = |message: String| {
            Err(Diagnostic::error(
                Rule::InvalidArgument,
                given.span,
                message,
            ))
        };
        let name = &program.buffers[*buffer].0.name;
        let (element, written) = match &param.kind {
            ParamKind::Buffer { element, access } => (element, *access != Access::Read),
            ParamKind::Constant { element } => (element, false),
            ParamKind::Scalar { .. }
            | ParamKind::Threadgroup { .. }
            | ParamKind::Texture(_)
            | ParamKind::Sampler => {
                return wrong(format!(
                    "parameter `%{}` takes no buffer, and `{name}` is one",
                    param.name
                ));
            }
        };
        match elements[*buffer] {
            Some(before) if before != element => {
                return wrong(format!(
                    "`{name}` has elements of {} elsewhere in the program, and parameter `%{}` takes {}",
                    before.display(&module.structs),
                    param.name,
                    element.display(&module.structs)
                ));
            }
            Some(_) | None => elements[*buffer] = Some(element),
        }
        writes[*buffer].push(written);
        if writes[*buffer].len() > 1 && writes[*buffer].contains(&true) {
            return wrong(format!(
                "kernel `@{}` gets `{name}` twice and writes it; give it another buffer",
                kernel.name
            ));
        }
    }
    Ok(())
}
