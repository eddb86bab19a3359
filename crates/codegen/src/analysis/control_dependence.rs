//! What decides: which values reach an index, a bound or a branch.
//!
//! Of such a value no two readings may differ: a load of it from memory that others may write must happen exactly
//! once, else a guard could see another value than the access that it guards (B5, R2). How a load is kept from
//! being repeated is the target's: an atomic in WGSL, a `volatile` access in MSL.
//!
//! A value decides if it is an address or controls, or if what is computed from it, carried from it round a loop,
//! or loaded from a thread array that it was stored or copied to decides. The analysis looks at no conditions and
//! at no elements: an array decides as a whole.
//!
//! Deliberately absent: memory that threads share, whose contents are another's to follow.

use std::collections::HashMap;

use invar_ir::{AddressSpace, Inst, InstKind, Kernel, Memory, Purpose, Region, Type, Value};

/// A node of the graph of what depends on what.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Value(Value),
    /// The contents of a thread array.
    Array(u32),
}

/// What reaches an index, a bound or a branch.
#[derive(Clone, Debug)]
pub struct ControlDependence {
    values: Vec<bool>,
    arrays: Vec<bool>,
}

impl ControlDependence {
    /// Whether a value does.
    pub fn value(&self, value: Value) -> bool {
        self.values[value.0 as usize]
    }

    /// Whether what the thread array of this number holds does.
    pub fn array(&self, array: u32) -> bool {
        self.arrays[array as usize]
    }
}

/// Finds what reaches an index, a bound or a branch: that, and all that it is computed from.
///
/// ```
/// use invar_codegen::analysis::control_dependence::analyse;
/// use invar_ir::Value;
///
/// let text = "kernel @k(%x: device read_write u32) {
///     %i = thread_position_in_grid x
///     %j = load %x[%i]
///     %v = load %x[%j]
///     store %x[%i], %v
/// }";
/// let module = invar_ir::text::parse("k.inv", text)?;
/// let control_dependent = analyse(&module.kernels[0]);
/// assert_eq!([0, 1, 2].map(|v| control_dependent.value(Value(v))), [true, true, false]);
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn analyse(kernel: &Kernel) -> ControlDependence {
    let graph = graph(kernel);
    let mut found = ControlDependence {
        values: vec![false; kernel.values.len()],
        arrays: vec![false; kernel.allocs.len()],
    };
    let mut open: Vec<Node> = graph.sinks.iter().map(|v| Node::Value(*v)).collect();
    while let Some(node) = open.pop() {
        let seen = match node {
            Node::Value(value) => &mut found.values[value.0 as usize],
            Node::Array(array) => &mut found.arrays[array as usize],
        };
        if !std::mem::replace(seen, true)
            && let Some(from) = graph.from.get(&node)
        {
            open.extend(from.iter().copied());
        }
    }
    found
}

/// Simdgroup matrices of which one is carried into the other, or comes from it.
pub fn matrix_ties(kernel: &Kernel) -> Vec<(Value, Value)> {
    let is_matrix = |v: &Value| matches!(kernel.ty(*v), Type::SimdgroupMatrix { .. });
    let mut ties = Vec::new();
    for (to, all) in graph(kernel).from {
        for from in all {
            if let (Node::Value(to), Node::Value(from)) = (to, from)
                && is_matrix(&to)
                && is_matrix(&from)
            {
                ties.push((to, from));
            }
        }
    }
    ties
}

fn graph(kernel: &Kernel) -> Graph<'_> {
    let mut graph = Graph {
        from: HashMap::new(),
        sinks: Vec::new(),
        kernel,
    };
    graph.region(&kernel.body, &[], &[]);
    graph
}

struct Graph<'a> {
    /// What each node is computed from.
    from: HashMap<Node, Vec<Node>>,
    sinks: Vec<Value>,
    kernel: &'a Kernel,
}

impl Graph<'_> {
    fn edge(&mut self, to: Node, from: Node) {
        self.from.entry(to).or_default().push(from);
    }

    fn edges(&mut self, to: &[Value], from: &[Value]) {
        for (to, from) in to.iter().zip(from) {
            self.edge(Node::Value(*to), Node::Value(*from));
        }
    }

    fn array(&self, memory: Memory) -> Option<Node> {
        match memory {
            Memory::Alloc(i) if self.kernel.allocs[i as usize].space == AddressSpace::Thread => {
                Some(Node::Array(i))
            }
            Memory::Alloc(_) | Memory::Param(_) | Memory::Constant(_) => None,
        }
    }

    /// `yields` are what a region's `yield` goes to, `carried` what `continue` and `break` of the
    /// innermost loop go to.
    fn region(&mut self, region: &Region, yields: &[Value], carried: &[Value]) {
        for inst in &region.insts {
            self.inst(inst, yields, carried);
        }
    }

    fn inst(&mut self, inst: &Inst, yields: &[Value], carried: &[Value]) {
        inst.kind
            .for_each_operand(|role, value| match role.purpose() {
                Purpose::Address | Purpose::Control => self.sinks.push(value),
                Purpose::Data => {}
            });
        match &inst.kind {
            InstKind::Load(place) => {
                if let Some(array) = self.array(place.memory) {
                    for result in &inst.results {
                        self.edge(Node::Value(*result), array);
                    }
                }
            }
            InstKind::Store { place, value } => {
                if let Some(array) = self.array(place.memory) {
                    self.edge(array, Node::Value(*value));
                }
            }
            InstKind::Copy { operands, .. } => {
                if let (Some(to), Some(from)) = (
                    self.array(operands.destination),
                    self.array(operands.source),
                ) {
                    self.edge(to, from);
                }
            }
            InstKind::If {
                then, otherwise, ..
            } => {
                self.region(then, &inst.results, carried);
                self.region(otherwise, &inst.results, carried);
            }
            InstKind::For { init, body, .. } => {
                let params = &body.params[1..];
                self.edges(params, init);
                self.edges(&inst.results, params);
                self.region(body, params, params);
            }
            InstKind::Loop { init, body } => {
                self.edges(&body.params, init);
                self.edges(&inst.results, &body.params);
                self.region(body, &body.params, &body.params);
            }
            InstKind::Yield(values) => self.edges(yields, values),
            InstKind::Break(values) | InstKind::Continue(values) => self.edges(carried, values),
            // Factors are not carried into the sum, and may be another kind of matrix of the target's.
            InstKind::MatrixMultiplyAccumulate { .. } => {}
            other => {
                if let InstKind::Op { op, args, .. } = other {
                    self.sinks.extend(op.part_operand().map(|part| args[part]));
                }
                // What is read is another's to follow.
                if other.accesses().is_empty() {
                    for result in &inst.results {
                        let result = Node::Value(*result);
                        other.for_each_use(|value| self.edge(result, Node::Value(value)));
                    }
                }
            }
        }
    }
}
