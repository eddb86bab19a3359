//! A kernel that is being written: what is known of it, and its text so far.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_ir::memory_layout::Layouts;
use invar_ir::texture::Sampler;
use invar_ir::{
    Const, Diagnostic, Kernel, Level, Memory, Module, Rule, Span, Type, Uniformity, Value,
};

use super::interface::WgslOptions;
use super::loops::Loops;
use super::names::Names;
use super::plan::Plan;
use super::roles::Role;
use crate::analysis::floats::Floats;
use crate::analysis::order::LaunchOrder;
use crate::shading::comment::Quotes;
use crate::shading::flow::Frames;
use crate::shading::helpers::Helpers;

/// How the lanes of a simdgroup exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    /// By the target's subgroups, which have the right size.
    Subgroups,
    /// Through threadgroup memory.
    Memory,
}

/// The state of writing one kernel.
pub(super) struct Writer<'a> {
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Kernel,
    pub(super) uniformity: &'a Uniformity,
    pub(super) options: &'a WgslOptions,
    pub(super) plan: Plan,
    /// Lanes of a simdgroup.
    pub(super) simdgroup_size: u32,
    /// The threads of a threadgroup, and those that round it up to what a workgroup with barriers must be.
    pub(super) threads: u32,
    pub(super) exchange: Exchange,
    /// The threads outside the grid go along.
    pub(super) surplus: bool,
    /// There are no threads outside the grid.
    pub(super) full: bool,
    /// The order in which workgroups are launched.
    pub(super) launch_order: LaunchOrder,
    /// Threadgroup memory of which somebody may see that it starts as zero.
    pub(super) observed: BTreeSet<Memory>,
    pub(super) names: Names,
    /// Where floats lie: those that fit are converted to `i32` without saturating.
    pub(super) floats: Floats,
    /// The simdgroup matrices that are the target's.
    pub(super) roles: HashMap<Value, Role>,
    /// Sums that the target is not to cancel.
    pub(super) cancelling: HashSet<Value>,
    /// Comparisons of floats by their result.
    pub(super) comparisons: HashMap<Value, (Value, Value)>,
    /// Minima and maxima in chains.
    pub(super) chained: HashSet<Value>,
    /// The integers that stand for them, by the order of minima or of maxima.
    pub(super) orders: HashMap<(Value, bool), String>,
    /// What the driver would follow for long.
    pub(super) followed_long: HashSet<Value>,
    /// The expression that stands for each value.
    pub(super) values: Vec<String>,
    /// The value, of those that are constants.
    pub(super) constants: Vec<Option<Const>>,
    /// Functions and variables at module scope that were asked for, in order.
    pub(super) helpers: Helpers,
    /// What of the thread's identity is used.
    pub(super) identity: BTreeSet<Identity>,
    /// Bytes of workgroup variables that helpers declare.
    pub(super) helper_bytes: u64,
    /// Declarations of the simdgroup matrices that stay where they lie, before the body.
    pub(super) matrices: String,
    /// The text of the body.
    pub(super) body: String,
    pub(super) indent: usize,
    pub(super) quotes: Quotes<'a>,
    pub(super) layouts: Layouts,
    /// The place of the next instruction and region in the kernel's text.
    pub(super) next_inst: usize,
    pub(super) next_region: usize,
    /// The code around holds only threads that exist.
    pub(super) only_existing: bool,
    pub(super) frames: Frames,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) names_of_memory: HashMap<Memory, String>,
    /// The samplers that the kernel says, and their names.
    pub(super) samplers: Vec<(String, Sampler)>,
    pub(super) uses_subgroups: bool,
    pub(super) loops: Loops,
}

/// What a thread knows of its place, in the order in which it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    /// The threadgroup's position in the grid.
    Threadgroup,
    /// The threadgroup's own size.
    Size,
    /// How many threads the threadgroup has.
    Count,
    /// The thread's number in it.
    Thread,
    /// Its position in it.
    Position,
}

impl Writer<'_> {
    pub(super) fn refuse(&mut self, rule: Rule, span: Span, message: impl Into<String>) {
        self.errors.push(Diagnostic::error(rule, span, message));
    }

    /// Refuses what the target lacks and gives an expression that is never used.
    pub(super) fn lacks(&mut self, span: Span, message: impl Into<String>) -> String {
        self.refuse(Rule::UnsupportedFeature, span, message);
        String::new()
    }

    /// The expression for a value.
    pub(super) fn value(&self, value: Value) -> String {
        self.values[value.0 as usize].clone()
    }

    pub(super) fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    pub(super) fn constant(&self, value: Value) -> Option<Const> {
        self.constants[value.0 as usize]
    }

    /// A name for a value: its own, made fit for WGSL.
    pub(super) fn name_value(&mut self, value: Value) -> String {
        let name = match &self.kernel.values[value.0 as usize].name {
            Some(name) => name.to_string(),
            None => format!("v{}", value.0),
        };
        self.names.unique(&name)
    }

    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.body.push_str(&"    ".repeat(self.indent));
        self.body.push_str(text.as_ref());
        self.body.push('\n');
    }

    /// Quotes the source line that a statement comes from.
    pub(super) fn quote(&mut self, span: Span) {
        if let Some((number, text)) = self.quotes.next(self.module, span) {
            let source = match span.source {
                Some(source) if self.module.sources.len() > 1 => format!("{}:", source.0),
                Some(_) | None => String::new(),
            };
            self.line(format!("// {source}{number}: {text}"));
        }
    }

    /// Whether all threads of the threadgroup come to the current instruction together.
    pub(super) fn threadgroup_together(&self) -> bool {
        self.uniformity.control(self.next_inst - 1) >= Level::Threadgroup
    }
}
