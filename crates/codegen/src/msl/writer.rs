//! A kernel that is being written: what is known of it, and its lines so far.

use std::collections::{BTreeSet, HashMap};

use invar_ir::ops::Op;
use invar_ir::texture::Sampler;
use invar_ir::{
    Access, AddressSpace, Const, Diagnostic, ElementType, Inst, Kernel, Memory, Module, Rule,
    Scalar, Span, Type, Uniformity, Value,
};

use super::helpers::Helpers;
use super::interface::{Input, MslOptions};
use super::names::Names;
use super::types;
use crate::analysis::control_dependence::ControlDependence;
use crate::shading::comment::Quotes;
use crate::shading::flow::Frames;

/// Lanes of a simdgroup.
pub(super) const LANES: u32 = 32;

/// Who runs the code being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Threads that exist.
    Existing,
    /// All of the simdgroups of which a thread exists.
    Simdgroups,
    /// All that are launched.
    Everyone,
}

/// A kernel being written.
pub(super) struct Writer<'a> {
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Kernel,
    pub(super) options: &'a MslOptions,
    pub(super) names: Names,
    /// How each value is written: a name or a constant.
    pub(super) values: Vec<String>,
    pub(super) constants: Vec<Option<Const>>,
    /// What decides: its load must happen once.
    pub(super) control_dependent: ControlDependence,
    pub(super) dead: Vec<bool>,
    /// Whether any instruction takes a value.
    pub(super) used: Vec<bool>,
    pub(super) struct_names: Vec<String>,
    pub(super) field_names: Vec<Vec<String>>,
    pub(super) param_names: Vec<String>,
    pub(super) alloc_names: Vec<String>,
    pub(super) constant_names: HashMap<u32, String>,
    pub(super) function_constants: HashMap<u32, String>,
    pub(super) helpers: Helpers,
    pub(super) inputs: BTreeSet<Input>,
    pub(super) lengths: BTreeSet<u32>,
    pub(super) uses_lane_count: bool,
    pub(super) uses_thread_count: bool,
    pub(super) uses_exists: bool,
    pub(super) uses_simdgroup_exists: bool,
    pub(super) uses_grid_size: bool,
    pub(super) uses_simdgroup_matrices: bool,
    pub(super) uniformity: Uniformity,
    /// The number of the region that comes next, as [`Uniformity::region`] counts.
    pub(super) next_region: usize,
    pub(super) reach: Reach,
    pub(super) coherent: bool,
    /// Declarations at the beginning of the function.
    pub(super) shared: String,
    /// Those that the kernel says, which are declared there.
    pub(super) samplers: Vec<Sampler>,
    pub(super) out: String,
    pub(super) depth: usize,
    pub(super) frames: Frames,
    pub(super) quotes: Quotes<'a>,
    pub(super) errors: Vec<Diagnostic>,
}

impl Writer<'_> {
    pub(super) fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub(super) fn refuse(&mut self, rule: Rule, span: Span, message: String) {
        self.errors.push(Diagnostic::error(rule, span, message));
    }

    /// The author's line, once for all that comes from it.
    pub(super) fn comment(&mut self, span: Span) {
        if let Some((number, text)) = self.quotes.next(self.module, span) {
            self.line(&format!("// {number}: {text}"));
        }
    }

    /// How a value is written.
    pub(super) fn v(&self, value: Value) -> String {
        self.values[value.0 as usize].clone()
    }

    pub(super) fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// A name for a value: the author's, or its number.
    pub(super) fn name_value(&mut self, value: Value) -> String {
        let name = match &self.kernel.values[value.0 as usize].name {
            Some(name) => self.names.unique(name),
            None => self.names.unique(&format!("v{}", value.0)),
        };
        self.values[value.0 as usize] = name.clone();
        name
    }

    /// `const T name = expression;`
    pub(super) fn define(&mut self, value: Value, expression: &str) {
        let ty = types::value(self.ty(value));
        self.need_type(self.ty(value));
        let name = self.name_value(value);
        let expression = bare(expression);
        self.line(&format!("const {ty} {name} = {expression};"));
    }

    /// A variable that is assigned to later.
    pub(super) fn declare(&mut self, value: Value, initial: Option<&str>) -> String {
        let ty = types::value(self.ty(value));
        self.need_type(self.ty(value));
        let name = self.name_value(value);
        match initial {
            Some(initial) => self.line(&format!("{ty} {name} = {initial};")),
            None => self.line(&format!("{ty} {name};")),
        }
        name
    }

    /// The size of a full threadgroup, if it is known.
    pub(super) fn threadgroup_size(&self) -> Option<[u32; 3]> {
        let given = self.options.threadgroup_size;
        self.kernel.threadgroup_size.or(given)
    }

    pub(super) fn is_dead(&self, inst: &Inst) -> bool {
        inst.results
            .first()
            .is_some_and(|v| self.dead[v.0 as usize])
    }

    pub(super) fn input(&mut self, op: Op) -> &'static str {
        self.inputs.insert(Input(op));
        op.name()
    }

    /// The number of elements of an object, as it is written.
    pub(super) fn length(&mut self, memory: Memory) -> String {
        match memory {
            Memory::Param(i) => {
                self.lengths.insert(i);
                format!("lengths.{}", self.param_names[i as usize])
            }
            Memory::Alloc(i) => format!("{}u", self.kernel.allocs[i as usize].length),
            Memory::Constant(i) => format!("{}u", self.module.constants[i as usize].length),
        }
    }

    /// What is known of an object: its space, whether the kernel may only read it, its element.
    pub(super) fn object_info(&self, memory: Memory) -> (AddressSpace, bool, ElementType) {
        match self.module.memory(self.kernel, memory) {
            Some(info) => {
                let read_only = info.space == AddressSpace::Device && info.access == Access::Read;
                (info.space, read_only, info.element.clone())
            }
            None => unreachable!("the verifier passes only memory that is there"),
        }
    }

    /// A vector of components or a matrix of columns.
    pub(super) fn make(&mut self, ty: Type, parts: &[String]) -> String {
        self.need_type(ty);
        let name = types::value(ty);
        match ty {
            Type::Matrix {
                scalar: Scalar::BF16,
                ..
            } => format!("{name}{{{{{}}}}}", parts.join(", ")),
            Type::Scalar(_)
            | Type::Vector(..)
            | Type::Matrix { .. }
            | Type::SimdgroupMatrix { .. }
            | Type::Event => format!("{name}({})", parts.join(", ")),
        }
    }
}

/// An expression without parentheses around all of it.
pub(super) fn bare(expression: &str) -> &str {
    let inner = expression
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let Some(inner) = inner else {
        return expression;
    };
    let mut depth = 0;
    for c in inner.chars() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth < 0 {
            return expression;
        }
    }
    inner
}
