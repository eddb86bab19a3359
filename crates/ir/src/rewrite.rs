//! Rebuilding a kernel instruction by instruction: what every pass that changes code stands on.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::builder::KernelBuilder;
use crate::diagnostic::Diagnostics;
use crate::inst::{Inst, InstKind, Region, Value, Values};
use crate::module::{Kernel, Module, ParamKind};
use crate::room::{PASSES_BYTES, with_room};
use crate::types::Type;

/// What stands for an instruction's results.
pub type Replacement = Option<SmallVec<[Value; 1]>>;

/// Rebuilds kernel number `index` of a module. For each instruction in order, `f` gets the builder
/// and the instruction with its operands already those of the new kernel (and its regions already
/// rebuilt). It either builds something else and gives one value for each result, or gives `None`
/// to keep the instruction. Names, spans and attributes stay.
///
/// # Errors
/// What the builder found wrong with what `f` built.
///
/// # Panics
/// If there is no kernel of that number.
pub fn rewrite(
    module: Module,
    index: usize,
    f: &mut dyn FnMut(&mut KernelBuilder, &Inst) -> Replacement,
) -> Result<Module, Diagnostics> {
    with_room(PASSES_BYTES, || rewritten(module, index, f))
}

fn rewritten(
    module: Module,
    index: usize,
    f: &mut dyn FnMut(&mut KernelBuilder, &Inst) -> Replacement,
) -> Result<Module, Diagnostics> {
    let mut module = module;
    let rest = module.kernels.split_off(index + 1);
    let old = module.kernels.remove(index);
    let mut rewriter = Rewriter {
        builder: KernelBuilder::new(module, &old.name),
        map: HashMap::new(),
        old: &old,
        f,
    };
    rewriter.builder.adopt_declarations(&old);
    for (i, param) in old.params.iter().enumerate() {
        if let ParamKind::Scalar { value } = param.kind {
            rewriter.scalar_param(i, value);
        }
    }
    rewriter.region(&old.body);
    let mut module = rewriter.builder.finish()?;
    module.kernels.extend(rest);
    Ok(module)
}

struct Rewriter<'a> {
    builder: KernelBuilder,
    map: HashMap<Value, Value>,
    old: &'a Kernel,
    f: &'a mut dyn FnMut(&mut KernelBuilder, &Inst) -> Replacement,
}

impl Rewriter<'_> {
    fn scalar_param(&mut self, index: usize, old: Value) {
        let new = self.builder.adopt_value(&self.old.values[old.0 as usize]);
        self.builder.kernel_mut().params[index].kind = ParamKind::Scalar { value: new };
        self.map.insert(old, new);
    }

    fn region(&mut self, region: &Region) {
        for inst in &region.insts {
            self.inst(inst);
        }
    }

    fn inner_region(&mut self, region: &Region) -> Region {
        let types: Vec<Type> = region.params.iter().map(|v| self.old.ty(*v)).collect();
        let params = self.builder.open_region(&types);
        for (old, new) in region.params.iter().zip(params) {
            self.bind(*old, new);
        }
        self.region(region);
        self.builder.close_region()
    }

    fn bind(&mut self, old: Value, new: Value) {
        if let Some(name) = &self.old.values[old.0 as usize].name {
            self.builder.name(new, name);
        }
        self.map.insert(old, new);
    }

    fn inst(&mut self, inst: &Inst) {
        self.builder.set_span(inst.span);
        let mut kind = match &inst.kind {
            InstKind::If {
                condition,
                then,
                otherwise,
            } => InstKind::If {
                condition: *condition,
                then: self.inner_region(then),
                otherwise: self.inner_region(otherwise),
            },
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => InstKind::For {
                lower: *lower,
                upper: *upper,
                step: *step,
                init: Values::clone(init),
                body: self.inner_region(body),
            },
            InstKind::Loop { init, body } => InstKind::Loop {
                init: Values::clone(init),
                body: self.inner_region(body),
            },
            flat => flat.clone(),
        };
        self.builder.set_span(inst.span);
        kind.for_each_use_mut(|v| {
            if let Some(new) = self.map.get(v) {
                *v = *new;
            }
        });
        let mapped = Inst {
            kind,
            results: inst.results.clone(),
            span: inst.span,
        };
        let results = match (self.f)(&mut self.builder, &mapped) {
            Some(values) => values,
            None => {
                let types: SmallVec<[Type; 2]> =
                    inst.results.iter().map(|v| self.old.ty(*v)).collect();
                self.builder.push(mapped.kind, &types)
            }
        };
        for (old, new) in inst.results.iter().zip(results) {
            self.bind(*old, new);
        }
    }
}
