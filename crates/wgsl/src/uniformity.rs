//! What a browser refuses for uniformity: the analysis that the standard prescribes.
//!
//! Each function gives a graph, whose nodes are values and places in the control flow. An edge says: the one
//! is uniform only if the other is. What has to be uniform and leads to [`VARYING`] is a finding; where it
//! leads to the function's beginning or its parameters instead, callers have to see to it, and functions are
//! visited before their callers. Barriers ask for uniformity over the workgroup and subgroup functions over
//! the subgroup, so the analysis is made once for each.
//!
//! It sees less than the verifier, on purpose: no component of a value by itself, no variable of the module
//! that is written anywhere, no position that is always 0. Deliberately absent: severities below `error`, which
//! refuse nothing.

use std::collections::{HashMap, HashSet, VecDeque};

use invar_ir::{Diagnostic, Rule};
use naga::diagnostic_filter::{
    DiagnosticFilterNode, FilterableTriggeringRule, Severity, StandardFilterableTriggeringRule,
};
use naga::{
    AddressSpace, Barrier, Binding, Block, BuiltIn, CollectiveOperation, EntryPoint, Expression,
    Function, GatherMode, Handle, ImageClass, Module, SampleLevel, ShaderStage, Span, Statement,
    StorageAccess, TypeInner,
};
use smallvec::SmallVec;

use crate::place::Lines;
use crate::tree::root;

/// A value or a place in the control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node(u32);

/// What may differ between invocations.
const VARYING: Node = Node(0);
/// The control flow where the function begins.
const START: Node = Node(1);
/// The first parameter; behind all of them stands, for each, what it points to.
const PARAMETERS: u32 = 2;

/// Among which invocations something is uniform.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Workgroup,
    Subgroup,
}

/// A rule of the standard that a shader may turn off.
#[derive(Clone, Copy)]
pub(crate) enum Filter {
    Derivatives,
    Subgroups,
}

/// Why something may differ between invocations.
#[derive(Clone)]
struct Cause {
    place: Span,
    text: String,
}

/// Something that has to be uniform.
#[derive(Clone)]
struct Need {
    /// As a sentence without its end: "`workgroupBarrier` must be in uniform control flow".
    what: String,
    place: Span,
    /// The calls that lead to it, the innermost first, each with the function that is called.
    calls: Vec<(Span, String)>,
}

/// What callers have to know of a parameter.
#[derive(Clone, Default)]
struct Parameter {
    need: Option<Need>,
    /// The result is uniform only if it is.
    gives: bool,
    /// The same of what it points to.
    contents_need: Option<Need>,
    contents_give: bool,
    /// What it points to may differ between invocations after the call.
    varies: bool,
    /// What it points to depends on these after the call.
    after: Vec<Origin>,
}

#[derive(Clone, Copy)]
enum Origin {
    Parameter(usize),
    Contents(usize),
}

/// What callers have to know of a function.
#[derive(Clone, Default)]
struct Summary {
    need: Option<Need>,
    varies: bool,
    parameters: Vec<Parameter>,
}

/// One warning for each thing that is not uniform and because of which a browser refuses the shader.
pub(crate) fn lints(shader: &Module, lines: &Lines) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for over in [Over::Workgroup, Over::Subgroup] {
        let mut known = Vec::new();
        for (_, function) in shader.functions.iter() {
            let walk = Walk::new(shader, function, None, over, &known);
            let summary = walk.finish(lines, &mut found);
            known.push(summary);
        }
        for point in &shader.entry_points {
            let walk = Walk::new(shader, &point.function, Some(point), over, &known);
            walk.finish(lines, &mut found);
        }
    }
    found
}

// ---- the graph ----

#[derive(Default)]
struct Graph {
    edges: Vec<SmallVec<[Node; 3]>>,
    causes: HashMap<Node, Cause>,
}

impl Graph {
    fn node(&mut self, to: &[Node]) -> Node {
        self.edges.push(SmallVec::from_slice(to));
        Node(self.edges.len() as u32 - 1)
    }

    fn edge(&mut self, from: Node, to: Node) {
        self.edges[from.0 as usize].push(to);
    }

    /// A node that may differ between invocations, and why.
    fn varying(&mut self, place: Span, text: String) -> Node {
        let node = self.node(&[VARYING]);
        self.causes.insert(node, Cause { place, text });
        node
    }

    /// What a node leads to, each with the node before it; the nearest first.
    fn reached(&self, from: Node) -> HashMap<Node, Node> {
        let mut before = HashMap::from([(from, from)]);
        let mut open = VecDeque::from([from]);
        while let Some(node) = open.pop_front() {
            for to in &self.edges[node.0 as usize] {
                before.entry(*to).or_insert_with(|| {
                    open.push_back(*to);
                    node
                });
            }
        }
        before
    }
}

// ---- the walk over a function ----

/// How the end of a statement is reached: the standard's behaviours.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ends(u8);

impl Ends {
    const NEXT: Ends = Ends(1);
    const BREAK: Ends = Ends(2);
    const CONTINUE: Ends = Ends(4);
    const RETURN: Ends = Ends(8);

    fn has(self, other: Ends) -> bool {
        self.0 & other.0 != 0
    }

    fn or(self, other: Ends) -> Ends {
        Ends(self.0 | other.0)
    }

    fn without(self, other: Ends) -> Ends {
        Ends(self.0 & !other.0)
    }
}

/// What each variable of the function holds: first its own, then what its parameters point to.
type Variables = Vec<Node>;

/// A loop or a `switch`, with what variables hold at the jumps out of it.
#[derive(Default)]
struct Exits {
    is_loop: bool,
    breaks: Vec<Variables>,
    continues: Vec<Variables>,
}

struct Walk<'a> {
    shader: &'a Module,
    function: &'a Function,
    over: Over,
    known: &'a [Summary],
    graph: Graph,
    values: HashMap<Handle<Expression>, Node>,
    variables: Variables,
    exits: Vec<Exits>,
    needs: Vec<(Node, Need)>,
    /// What is returned, and what parameters point to at the end.
    result: Node,
    contents: Vec<Node>,
}

impl<'a> Walk<'a> {
    fn new(
        shader: &'a Module,
        function: &'a Function,
        point: Option<&EntryPoint>,
        over: Over,
        known: &'a [Summary],
    ) -> Walk<'a> {
        let mut graph = Graph::default();
        let count = function.arguments.len();
        for _ in 0..PARAMETERS as usize + 2 * count {
            graph.node(&[]);
        }
        let result = graph.node(&[]);
        let contents = (0..count).map(|_| graph.node(&[])).collect();
        let own = function.local_variables.iter().map(|_| START);
        let variables = own
            .chain((0..count).map(|i| Self::contents_of(function, i)))
            .collect();
        let mut walk = Walk {
            shader,
            function,
            over,
            known,
            graph,
            values: HashMap::new(),
            variables,
            exits: Vec::new(),
            needs: Vec::new(),
            result,
            contents,
        };
        if let Some(point) = point {
            walk.inputs(point.stage);
        }
        walk
    }

    fn parameter(number: usize) -> Node {
        Node(PARAMETERS + number as u32)
    }

    fn contents_of(function: &Function, number: usize) -> Node {
        Node(PARAMETERS + (function.arguments.len() + number) as u32)
    }

    /// Where the parameters of an entry point come from.
    fn inputs(&mut self, stage: ShaderStage) {
        for (number, argument) in self.function.arguments.iter().enumerate() {
            let uniform = match &self.shader.types[argument.ty].inner {
                TypeInner::Struct { members, .. } => members
                    .iter()
                    .all(|m| self.is_uniform(m.binding.as_ref(), stage)),
                _one_value => self.is_uniform(argument.binding.as_ref(), stage),
            };
            let name = argument.name.as_deref().unwrap_or("this input");
            let used = self.function.expressions.iter().find(
                |(_, e)| matches!(e, Expression::FunctionArgument(n) if *n as usize == number),
            );
            let parameter = Self::parameter(number);
            if uniform {
                self.graph.edge(parameter, START);
            } else {
                let place = used.map(|(h, _)| self.function.expressions.get_span(h));
                let place = place.unwrap_or_default();
                let text = format!("`{name}` may differ between invocations");
                let cause = self.graph.varying(place, text);
                self.graph.edge(parameter, cause);
            }
        }
    }

    fn is_uniform(&self, binding: Option<&Binding>, stage: ShaderStage) -> bool {
        match binding {
            Some(Binding::BuiltIn(builtin)) => match builtin {
                BuiltIn::WorkGroupId
                | BuiltIn::NumWorkGroups
                | BuiltIn::WorkGroupSize
                | BuiltIn::NumSubgroups
                // `workgroup_index`.
                | BuiltIn::HitKind => true,
                BuiltIn::SubgroupSize => stage == ShaderStage::Compute,
                BuiltIn::SubgroupId => self.over == Over::Subgroup,
                _other => false,
            },
            Some(Binding::Location { .. }) | None => false,
        }
    }

    /// Looks at the whole function: adds what is not uniform, and gives what callers have to know.
    fn finish(mut self, lines: &Lines, found: &mut Vec<Diagnostic>) -> Summary {
        let (_, ends) = self.block(&self.function.body, START);
        if ends.has(Ends::NEXT) {
            self.returns();
        }
        let count = self.function.arguments.len();
        let mut summary = Summary {
            parameters: vec![Parameter::default(); count],
            ..Summary::default()
        };
        let contents = |i| Self::contents_of(self.function, i);
        let mut told = HashSet::new();
        for (node, need) in &self.needs {
            let reached = self.graph.reached(*node);
            if reached.contains_key(&VARYING) {
                let cause = self.cause(&reached);
                let place = cause.as_ref().and_then(|c| c.place.to_range());
                // One cause makes much behind it vary: the first is enough.
                if told.insert(place.map(|p| p.start)) {
                    found.push(warning(lines, need, cause));
                }
                continue;
            }
            if reached.contains_key(&START) {
                summary.need.get_or_insert_with(|| need.clone());
            }
            for (i, parameter) in summary.parameters.iter_mut().enumerate() {
                if reached.contains_key(&Self::parameter(i)) {
                    parameter.need.get_or_insert_with(|| need.clone());
                }
                if reached.contains_key(&contents(i)) {
                    parameter.contents_need.get_or_insert_with(|| need.clone());
                }
            }
        }
        let reached = self.graph.reached(self.result);
        summary.varies = reached.contains_key(&VARYING);
        for (i, parameter) in summary.parameters.iter_mut().enumerate() {
            parameter.gives = reached.contains_key(&Self::parameter(i));
            parameter.contents_give = reached.contains_key(&contents(i));
            let after = self.graph.reached(self.contents[i]);
            parameter.varies = after.contains_key(&VARYING);
            for j in 0..count {
                if after.contains_key(&Self::parameter(j)) {
                    parameter.after.push(Origin::Parameter(j));
                }
                if after.contains_key(&contents(j)) {
                    parameter.after.push(Origin::Contents(j));
                }
            }
        }
        summary
    }

    /// The last thing with a place on the way to what varies.
    fn cause(&self, reached: &HashMap<Node, Node>) -> Option<Cause> {
        let before = reached.get(&VARYING)?;
        self.graph.causes.get(before).cloned()
    }

    // ---- statements ----

    /// The control flow behind a block, and how its end is reached.
    fn block(&mut self, block: &'a Block, mut flow: Node) -> (Node, Ends) {
        let mut all = Ends::NEXT;
        for (statement, span) in block.span_iter() {
            let (after, ends) = self.statement(statement, *span, flow);
            flow = after;
            all = all.without(Ends::NEXT).or(ends);
            if !ends.has(Ends::NEXT) {
                break;
            }
        }
        (flow, all)
    }

    fn statement(&mut self, statement: &'a Statement, span: Span, flow: Node) -> (Node, Ends) {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let node = self.compute(handle, flow);
                    self.values.insert(handle, node);
                }
            }
            Statement::Block(block) => return self.block(block, flow),
            Statement::If {
                condition,
                accept,
                reject,
            } => {
                let condition = self.value(*condition, flow);
                return self.sides(&[accept, reject], condition, flow);
            }
            Statement::Switch { selector, cases } => {
                let selector = self.value(*selector, flow);
                // A case that falls through has no body of its own.
                let bodies = cases.iter().filter(|c| !c.fall_through).map(|c| &c.body);
                let bodies: Vec<&Block> = bodies.collect();
                self.exits.push(Exits::default());
                let (after, ends) = self.sides(&bodies, selector, flow);
                let exits = self.exits.pop().unwrap_or_default();
                if !ends.has(Ends::BREAK) {
                    return (after, ends);
                }
                let mut states = exits.breaks;
                if ends.has(Ends::NEXT) {
                    states.push(std::mem::take(&mut self.variables));
                }
                self.join(states);
                // Who breaks is there again behind the `switch`.
                let ends = ends.without(Ends::BREAK).or(Ends::NEXT);
                return (if ends == Ends::NEXT { flow } else { after }, ends);
            }
            Statement::Loop {
                body,
                continuing,
                break_if,
            } => return self.repeat(body, continuing, *break_if, flow),
            Statement::Break => {
                let state = self.variables.clone();
                if let Some(exits) = self.exits.last_mut() {
                    exits.breaks.push(state);
                }
                return (flow, Ends::BREAK);
            }
            Statement::Continue => {
                let state = self.variables.clone();
                if let Some(exits) = self.exits.iter_mut().rev().find(|e| e.is_loop) {
                    exits.continues.push(state);
                }
                return (flow, Ends::CONTINUE);
            }
            Statement::Return { value } => {
                if let Some(value) = value {
                    let value = self.value(*value, flow);
                    self.graph.edge(self.result, value);
                }
                self.returns();
                return (flow, Ends::RETURN);
            }
            simple => self.simple(simple, span, flow),
        }
        (flow, Ends::NEXT)
    }

    /// Sides of which each invocation takes one.
    fn sides(&mut self, sides: &[&'a Block], decided: Node, flow: Node) -> (Node, Ends) {
        let before = self.variables.clone();
        let mut all = Ends(0);
        let (mut flows, mut states) = (Vec::new(), Vec::new());
        for side in sides {
            self.variables = before.clone();
            let (after, ends) = self.block(side, decided);
            all = all.or(ends);
            flows.push(after);
            if ends.has(Ends::NEXT) {
                states.push(std::mem::take(&mut self.variables));
            }
        }
        self.variables = before;
        self.join(states);
        if all == Ends::NEXT {
            (flow, all)
        } else {
            (self.graph.node(&flows), all)
        }
    }

    /// What variables hold where several ways meet.
    fn join(&mut self, mut states: Vec<Variables>) {
        let Some(mut joined) = states.pop() else {
            return;
        };
        for (i, variable) in joined.iter_mut().enumerate() {
            let others = states.iter().map(|s| s[i]).filter(|n| n != variable);
            let others: SmallVec<[Node; 4]> = others.collect();
            if !others.is_empty() {
                let node = self.graph.node(&others);
                self.graph.edge(node, *variable);
                *variable = node;
            }
        }
        self.variables = joined;
    }

    fn repeat(
        &mut self,
        body: &'a Block,
        continuing: &'a Block,
        break_if: Option<Handle<Expression>>,
        flow: Node,
    ) -> (Node, Ends) {
        let iteration = self.graph.node(&[flow]);
        let before = self.variables.clone();
        let held: Variables = before.iter().map(|n| self.graph.node(&[*n])).collect();
        self.variables.clone_from(&held);
        self.exits.push(Exits {
            is_loop: true,
            ..Exits::default()
        });
        let (after_body, mut ends) = self.block(body, iteration);
        let goes_round = ends.has(Ends::NEXT.or(Ends::CONTINUE));
        if goes_round {
            let last = self.exits.len() - 1;
            let mut states = std::mem::take(&mut self.exits[last].continues);
            if ends.has(Ends::NEXT) {
                states.push(std::mem::take(&mut self.variables));
            }
            self.join(states);
            let (mut after, _) = self.block(continuing, after_body);
            if let Some(condition) = break_if {
                after = self.value(condition, after);
                let state = self.variables.clone();
                self.exits[last].breaks.push(state);
                ends = ends.or(Ends::BREAK);
            }
            self.graph.edge(iteration, after);
            for (held, now) in held.iter().zip(&self.variables) {
                self.graph.edge(*held, *now);
            }
        }
        let exits = self.exits.pop().unwrap_or_default();
        let breaks = ends.has(Ends::BREAK);
        self.variables = before;
        self.join(exits.breaks);
        let returns = ends.has(Ends::RETURN);
        let mut all = ends.without(Ends::NEXT.or(Ends::BREAK).or(Ends::CONTINUE));
        if breaks {
            all = all.or(Ends::NEXT);
        }
        let after = match (returns, goes_round) {
            (false, _) => flow,
            (true, true) => iteration,
            (true, false) => after_body,
        };
        (after, all)
    }

    /// What parameters point to where the function ends.
    fn returns(&mut self) {
        let own = self.function.local_variables.len();
        for (i, contents) in self.contents.iter().enumerate() {
            self.graph.edge(*contents, self.variables[own + i]);
        }
    }

    fn simple(&mut self, statement: &Statement, span: Span, flow: Node) {
        match statement {
            Statement::Store { pointer, value } => {
                let value = self.value(*value, flow);
                let place = self.value(*pointer, flow);
                self.assign(*pointer, &[value, place]);
            }
            Statement::ControlBarrier(flags) => {
                if self.over == Over::Workgroup && !flags.contains(Barrier::SUB_GROUP) {
                    let name = if flags.contains(Barrier::STORAGE) {
                        "storageBarrier"
                    } else if flags.contains(Barrier::TEXTURE) {
                        "textureBarrier"
                    } else {
                        "workgroupBarrier"
                    };
                    self.need_flow(flow, name, span);
                }
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let pointer = self.value(*pointer, flow);
                if self.over == Over::Workgroup {
                    self.need_flow(flow, "workgroupUniformLoad", span);
                    let what = "the pointer that `workgroupUniformLoad` gets must be uniform";
                    self.need(pointer, what.to_string(), span);
                }
                let node = self.graph.node(&[flow, pointer]);
                self.values.insert(*result, node);
            }
            Statement::Atomic { result, .. } => {
                if let Some(result) = result {
                    let text = "each invocation gets another value from an atomic".to_string();
                    let node = self.graph.varying(span, text);
                    self.values.insert(*result, node);
                }
            }
            Statement::Call {
                function,
                arguments,
                result,
            } => {
                let node = self.call(*function, arguments, span, flow);
                if let Some(result) = result {
                    self.values.insert(*result, node);
                }
            }
            Statement::SubgroupBallot { result, .. } => {
                self.subgroup("subgroupBallot", true, *result, span, flow);
            }
            Statement::SubgroupCollectiveOperation {
                collective_op,
                result,
                ..
            } => {
                let reduces = *collective_op == CollectiveOperation::Reduce;
                self.subgroup("a subgroup function", reduces, *result, span, flow);
            }
            Statement::SubgroupGather { mode, result, .. } => {
                let (name, uniform, distance) = match mode {
                    GatherMode::BroadcastFirst => ("subgroupBroadcastFirst", true, None),
                    GatherMode::Broadcast(_) => ("subgroupBroadcast", true, None),
                    GatherMode::Shuffle(_) => ("subgroupShuffle", false, None),
                    GatherMode::ShuffleDown(by) => ("subgroupShuffleDown", false, Some(by)),
                    GatherMode::ShuffleUp(by) => ("subgroupShuffleUp", false, Some(by)),
                    GatherMode::ShuffleXor(by) => ("subgroupShuffleXor", false, Some(by)),
                    GatherMode::QuadBroadcast(_) => ("quadBroadcast", false, None),
                    GatherMode::QuadSwap(_) => ("a swap in quads", false, None),
                };
                self.subgroup(name, uniform, *result, span, flow);
                if let Some(by) = distance
                    && self.over == Over::Subgroup
                    && self.refuses(Filter::Subgroups)
                {
                    let by = self.value(*by, flow);
                    let what = format!("the second argument of `{name}` must be uniform");
                    self.need(by, what, span);
                }
            }
            Statement::Emit(_)
            | Statement::Block(_)
            | Statement::If { .. }
            | Statement::Switch { .. }
            | Statement::Loop { .. }
            | Statement::Break
            | Statement::Continue
            | Statement::Return { .. }
            | Statement::Kill
            | Statement::MemoryBarrier(_)
            | Statement::ImageStore { .. }
            | Statement::ImageAtomic { .. }
            | Statement::RayQuery { .. }
            | Statement::RayPipelineFunction(_)
            | Statement::CooperativeStore { .. } => {}
        }
    }

    fn subgroup(
        &mut self,
        name: &str,
        uniform: bool,
        result: Handle<Expression>,
        span: Span,
        flow: Node,
    ) {
        if self.over == Over::Subgroup && self.refuses(Filter::Subgroups) {
            self.need_flow(flow, name, span);
        }
        let node = if uniform && self.over == Over::Subgroup {
            flow
        } else {
            let text = format!("{} may give each invocation another value", quoted(name));
            self.graph.varying(span, text)
        };
        self.values.insert(result, node);
    }

    fn call(
        &mut self,
        callee: Handle<Function>,
        arguments: &[Handle<Expression>],
        span: Span,
        flow: Node,
    ) -> Node {
        let known = self.known;
        let summary = &known[callee.index()];
        let name = self.shader.functions[callee].name.as_deref();
        let name = name.unwrap_or("function").to_string();
        let through = |need: &Need| {
            let mut need = need.clone();
            need.calls.push((span, name.clone()));
            need
        };
        let result = self.graph.node(&[flow]);
        if let Some(need) = &summary.need {
            self.needs.push((flow, through(need)));
        }
        if summary.varies {
            let text = format!("`{name}` may give each invocation another value");
            let cause = self.graph.varying(span, text);
            self.graph.edge(result, cause);
        }
        let values: Vec<Node> = arguments.iter().map(|a| self.value(*a, flow)).collect();
        let contents: Vec<Option<Node>> = arguments
            .iter()
            .map(|a| self.variable(*a).map(|v| self.variables[v]))
            .collect();
        let mut after = Vec::new();
        for (i, parameter) in summary.parameters.iter().enumerate() {
            if let Some(need) = &parameter.need {
                self.needs.push((values[i], through(need)));
            }
            if parameter.gives {
                self.graph.edge(result, values[i]);
            }
            let Some(held) = contents[i] else {
                continue;
            };
            if let Some(need) = &parameter.contents_need {
                self.needs.push((held, through(need)));
            }
            if parameter.contents_give {
                self.graph.edge(result, held);
            }
            let mut from = vec![flow, values[i]];
            for origin in &parameter.after {
                from.extend(match origin {
                    Origin::Parameter(j) => Some(values[*j]),
                    Origin::Contents(j) => contents[*j],
                });
            }
            if parameter.varies {
                let text = format!("`{name}` may leave each invocation another value");
                from.push(self.graph.varying(span, text));
            }
            after.push((arguments[i], from));
        }
        for (pointer, from) in after {
            self.assign(pointer, &from);
        }
        result
    }

    /// The variable of the function that a pointer leads to, by its place among all.
    fn variable(&self, pointer: Handle<Expression>) -> Option<usize> {
        match root(self.function, pointer)? {
            Expression::LocalVariable(local) => Some(local.index()),
            Expression::FunctionArgument(number) if self.is_own(*number) => {
                Some(self.function.local_variables.len() + *number as usize)
            }
            _no_variable_of_the_function => None,
        }
    }

    /// The address space that a parameter points into.
    fn space(&self, number: u32) -> Option<AddressSpace> {
        let argument = self.function.arguments.get(number as usize)?;
        self.shader.types[argument.ty].inner.pointer_space()
    }

    /// Whether a parameter points to a variable of a function.
    fn is_own(&self, number: u32) -> bool {
        self.space(number) == Some(AddressSpace::Function)
    }

    /// A store to where a pointer leads; one to a part leaves the rest as it was.
    fn assign(&mut self, pointer: Handle<Expression>, from: &[Node]) {
        let Some(variable) = self.variable(pointer) else {
            return;
        };
        let node = self.graph.node(from);
        let is_whole = matches!(
            self.function.expressions[pointer],
            Expression::LocalVariable(_) | Expression::FunctionArgument(_)
        );
        if !is_whole {
            let before = self.variables[variable];
            self.graph.edge(node, before);
        }
        self.variables[variable] = node;
    }

    // ---- needs ----

    fn need(&mut self, node: Node, what: String, place: Span) {
        let calls = Vec::new();
        self.needs.push((node, Need { what, place, calls }));
    }

    fn need_flow(&mut self, flow: Node, name: &str, place: Span) {
        let what = format!("{} must be in uniform control flow", quoted(name));
        self.need(flow, what, place);
    }

    fn refuses(&self, filter: Filter) -> bool {
        refuses(self.shader, self.function, filter)
    }

    // ---- expressions ----

    /// The node of an expression that is used in a control flow.
    fn value(&mut self, handle: Handle<Expression>, flow: Node) -> Node {
        match self.values.get(&handle) {
            Some(node) if *node == flow => flow,
            Some(node) => {
                let node = *node;
                self.graph.node(&[flow, node])
            }
            None => self.compute(handle, flow),
        }
    }

    /// The node of an expression that is computed in a control flow.
    fn compute(&mut self, handle: Handle<Expression>, flow: Node) -> Node {
        let span = self.function.expressions.get_span(handle);
        let mut of: SmallVec<[Handle<Expression>; 4]> = SmallVec::new();
        match &self.function.expressions[handle] {
            Expression::FunctionArgument(number) => {
                let parameter = Self::parameter(*number as usize);
                return self.graph.node(&[flow, parameter]);
            }
            Expression::Load { pointer } => return self.load(*pointer, span, flow),
            Expression::Compose { components, .. } => of.extend(components.iter().copied()),
            Expression::Access { base, index } => of.extend([*base, *index]),
            Expression::AccessIndex { base, .. } => of.push(*base),
            Expression::Splat { value, .. } => of.push(*value),
            Expression::Swizzle { vector, .. } => of.push(*vector),
            Expression::ImageSample { level, .. } => {
                if !matches!(level, SampleLevel::Auto | SampleLevel::Bias(_)) {
                    return self.sampled(handle, flow);
                }
                self.derivative("a texture function that chooses the level", flow, span);
                return self.differs(span);
            }
            Expression::ImageLoad { image, .. } => {
                if self.is_written_texture(*image) {
                    return self.differs(span);
                }
                return self.sampled(handle, flow);
            }
            Expression::ImageQuery { image, .. } => of.push(*image),
            Expression::Derivative { .. } => {
                self.derivative("a derivative", flow, span);
                return self.differs(span);
            }
            Expression::Unary { expr, .. } | Expression::As { expr, .. } => of.push(*expr),
            Expression::Binary { left, right, .. } => of.extend([*left, *right]),
            Expression::Select {
                condition,
                accept,
                reject,
            } => of.extend([*condition, *accept, *reject]),
            Expression::Relational { argument, .. } => of.push(*argument),
            Expression::Math {
                arg,
                arg1,
                arg2,
                arg3,
                ..
            } => of.extend([Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten()),
            Expression::ArrayLength(array) => of.push(*array),
            Expression::Literal(_)
            | Expression::Constant(_)
            | Expression::Override(_)
            | Expression::ZeroValue(_)
            | Expression::GlobalVariable(_)
            | Expression::LocalVariable(_)
            | Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. }
            | Expression::RayQueryVertexPositions { .. }
            | Expression::RayQueryProceedResult
            | Expression::RayQueryGetIntersection { .. }
            | Expression::CooperativeLoad { .. }
            | Expression::CooperativeMultiplyAdd { .. } => return flow,
        }
        self.depends(&of, flow)
    }

    /// A value that depends on others.
    fn depends(&mut self, of: &[Handle<Expression>], flow: Node) -> Node {
        let mut to: SmallVec<[Node; 4]> = SmallVec::from_slice(&[flow]);
        for handle in of {
            let node = match self.values.get(handle) {
                Some(node) => *node,
                None => self.compute(*handle, flow),
            };
            if !to.contains(&node) {
                to.push(node);
            }
        }
        match to[..] {
            [_flow_alone] => flow,
            [..] => self.graph.node(&to),
        }
    }

    fn differs(&mut self, span: Span) -> Node {
        let text = "this may differ between invocations".to_string();
        self.graph.varying(span, text)
    }

    fn load(&mut self, pointer: Handle<Expression>, span: Span, flow: Node) -> Node {
        let place = self.depends(&[pointer], flow);
        let (writable, name) = match root(self.function, pointer) {
            Some(Expression::GlobalVariable(global)) => {
                let variable = &self.shader.global_variables[*global];
                (is_writable(variable.space), variable.name.as_deref())
            }
            Some(Expression::FunctionArgument(number)) if !self.is_own(*number) => {
                let argument = self.function.arguments.get(*number as usize);
                let name = argument.and_then(|a| a.name.as_deref());
                (self.space(*number).is_some_and(is_writable), name)
            }
            _own_variable => match self.variable(pointer) {
                Some(variable) => {
                    let held = self.variables[variable];
                    return self.graph.node(&[flow, place, held]);
                }
                None => (false, None),
            },
        };
        if writable {
            let name = name.unwrap_or("this variable");
            let text = format!("`{name}` is memory that can be written");
            return self.graph.varying(span, text);
        }
        place
    }

    /// A texture's texels, of which nothing but where they are looked for decides.
    fn sampled(&mut self, handle: Handle<Expression>, flow: Node) -> Node {
        let mut of: SmallVec<[Handle<Expression>; 4]> = SmallVec::new();
        match &self.function.expressions[handle] {
            Expression::ImageSample {
                image,
                sampler,
                coordinate,
                array_index,
                level,
                depth_ref,
                ..
            } => {
                of.extend([*image, *sampler, *coordinate]);
                of.extend([*array_index, *depth_ref].into_iter().flatten());
                match level {
                    SampleLevel::Exact(level) | SampleLevel::Bias(level) => of.push(*level),
                    SampleLevel::Gradient { x, y } => of.extend([*x, *y]),
                    SampleLevel::Auto | SampleLevel::Zero => {}
                }
            }
            Expression::ImageLoad {
                image,
                coordinate,
                array_index,
                sample,
                level,
            } => {
                of.extend([*image, *coordinate]);
                of.extend([*array_index, *sample, *level].into_iter().flatten());
            }
            _no_texture => {}
        }
        self.depends(&of, flow)
    }

    fn is_written_texture(&self, image: Handle<Expression>) -> bool {
        let ty = match root(self.function, image) {
            Some(Expression::GlobalVariable(global)) => self.shader.global_variables[*global].ty,
            Some(Expression::FunctionArgument(number)) => {
                match self.function.arguments.get(*number as usize) {
                    Some(argument) => argument.ty,
                    None => return false,
                }
            }
            _no_texture => return false,
        };
        matches!(
            self.shader.types[ty].inner,
            TypeInner::Image {
                class: ImageClass::Storage { access, .. },
                ..
            } if access.contains(StorageAccess::STORE)
        )
    }

    fn derivative(&mut self, name: &str, flow: Node, span: Span) {
        if self.over == Over::Workgroup && self.refuses(Filter::Derivatives) {
            self.need_flow(flow, name, span);
        }
    }
}

/// Whether a browser refuses what breaks a rule in a function.
pub(crate) fn refuses(shader: &Module, function: &Function, filter: Filter) -> bool {
    let asked = match filter {
        Filter::Derivatives => FilterableTriggeringRule::Standard(
            StandardFilterableTriggeringRule::DerivativeUniformity,
        ),
        Filter::Subgroups => FilterableTriggeringRule::Unknown("subgroup_uniformity".into()),
    };
    let mut next = function.diagnostic_filter_leaf;
    while let Some(handle) = next {
        let DiagnosticFilterNode { inner, parent } = &shader.diagnostic_filters[handle];
        if inner.triggering_rule == asked {
            return inner.new_severity == Severity::Error;
        }
        next = *parent;
    }
    true
}

fn is_writable(space: AddressSpace) -> bool {
    match space {
        AddressSpace::Storage { access } => access.contains(StorageAccess::STORE),
        AddressSpace::WorkGroup | AddressSpace::Private | AddressSpace::TaskPayload => true,
        AddressSpace::Function
        | AddressSpace::Uniform
        | AddressSpace::Handle
        | AddressSpace::Immediate
        | AddressSpace::RayPayload
        | AddressSpace::IncomingRayPayload => false,
    }
}

/// The name of a function in quotes; what is not a name stands as it is.
fn quoted(name: &str) -> String {
    if name.contains(' ') {
        name.to_string()
    } else {
        format!("`{name}`")
    }
}

fn warning(lines: &Lines, need: &Need, cause: Option<Cause>) -> Diagnostic {
    let message = format!(
        "{}, by the standard's analysis, which finds that it is not; a browser refuses the shader",
        need.what
    );
    let mut warning =
        Diagnostic::warning(Rule::WgslUniformity, lines.span(need.place), message).labelled("here");
    for (place, name) in &need.calls {
        warning = warning.and(lines.span(*place), format!("by this call of `{name}`"));
    }
    if let Some(cause) = cause {
        warning = warning.and(lines.span(cause.place), cause.text);
    }
    warning.help(
        "decide by what the standard counts as uniform: `workgroup_id`, memory that is only read, \
         `workgroupUniformLoad`, each in a variable of its own",
    )
}
