//! Instructions and control flow.
//!
//! A value is a `let`; what a loop carries and what an `if` gives is a `var`, which nothing changes while
//! the value that it stands for can be used. Constants are literals where they are used.

use invar_ir::ops::Meaning;
use invar_ir::{
    AtomicOp, Const, Inst, InstKind, Level, Memory, Order, Place, Region, Rule, Scalar, Scope,
    Type, Value,
};

use super::helpers::Helper;
use super::memory::CLEARED_SLOTS;
use super::types::{value as wgsl_type, zero};
use super::writer::{Identity, Writer};
use crate::analysis::order::LaunchOrder;
use crate::shading::flow::Frame;

/// The text before the body of the entry point.
pub(super) struct Start {
    /// Its parameters: builtin, name and type.
    pub parameters: Vec<[&'static str; 3]>,
    /// Its first statements.
    pub text: String,
}

impl Writer<'_> {
    pub(super) fn region(&mut self, region: &Region) {
        self.next_region += 1;
        let mut at = 0;
        while at < region.insts.len() {
            let run = self.run(region, at);
            if run == 0 {
                self.inst(&region.insts[at]);
            }
            at += run.max(1);
        }
    }

    /// Writes a region, two spaces in; code in which threads of a threadgroup part holds only threads
    /// that exist.
    fn inner(&mut self, region: &Region, frame: Frame) {
        self.frames.push(frame);
        self.indent += 1;
        self.region(region);
        self.indent -= 1;
        self.frames.pop();
    }

    /// Whether the threads of a threadgroup may part in the region that comes next.
    fn parts(&self) -> bool {
        let region = self.uniformity.region(self.next_region);
        region.entry < Level::Threadgroup || region.control < Level::Threadgroup
    }

    pub(super) fn inst(&mut self, inst: &Inst) {
        self.next_inst += 1;
        // What writes no statement of its own needs no line of the source.
        let silent = match &inst.kind {
            InstKind::Const(_) | InstKind::FunctionConstant(_) | InstKind::Yield(_) => true,
            InstKind::Return => self.frames.is_empty(),
            _statement => false,
        };
        if !silent {
            self.quote(inst.span);
        }
        match &inst.kind {
            InstKind::Const(c) => {
                let text = self.literal(*c);
                if let Some(value) = inst.results.first() {
                    self.values[value.0 as usize] = text;
                    self.constants[value.0 as usize] = Some(*c);
                }
            }
            InstKind::FunctionConstant(_) => {
                unreachable!("specialisation has fixed all function constants")
            }
            InstKind::Op { op, args, .. } if self.chain(inst, *op, args) => {}
            InstKind::Op { op, imm, args } => {
                let text = match op.row().meaning {
                    Meaning::Query => self.query(*op, *imm),
                    Meaning::Lanes(group, rule) => self.lanes(inst, group, rule, args),
                    Meaning::Arrange | Meaning::Eval(_) | Meaning::Expand(_) => {
                        self.operation(inst, *op, *imm, args)
                    }
                };
                if let Some(value) = inst.results.first() {
                    self.bind(*value, text);
                }
            }
            InstKind::BufferLength(memory) => {
                if let Some(value) = inst.results.first() {
                    let text = self.buffer_length(*memory, self.ty(*value));
                    self.bind(*value, text);
                }
            }
            InstKind::Load(place) => {
                let text = self.load(place);
                if let Some(value) = inst.results.first() {
                    self.bind(*value, text);
                }
            }
            InstKind::Store { place, value } => {
                let value = self.value(*value);
                self.store(place, &value);
            }
            InstKind::Atomic {
                op,
                place,
                args,
                order,
                scope: _,
            } => self.atomic_inst(inst, *op, *order, place, args),
            InstKind::Alloc(alloc) => {
                let thread =
                    self.kernel.allocs[*alloc as usize].space == invar_ir::AddressSpace::Thread;
                // WGSL's variables start as zero, which the target may be not to know, so only a loop can come
                // here with something in it.
                let object = self.plan.object(Memory::Alloc(*alloc));
                let features = &self.options.features;
                let anything = features.clears_arrays && object.slots > CLEARED_SLOTS;
                let known = features.hides_zeros && object.storage.floats().is_some();
                if thread && (anything || known || self.frames.is_in_loop()) {
                    self.zero_thread_array(*alloc);
                }
            }
            InstKind::Copy { operands, count } => self.copy(inst.span, operands, *count),
            InstKind::AsyncCopy { operands, shape } => {
                self.async_copy(inst.span, operands, shape);
                if let Some(event) = inst.results.first() {
                    self.values[event.0 as usize] = zero(Type::Event);
                }
            }
            InstKind::Wait { .. } => self.wait(inst.span),
            InstKind::Barrier { scope, spaces } => {
                if *scope == Scope::Simdgroup && !self.threadgroup_together() {
                    self.lacks(
                        inst.span,
                        "a simdgroup barrier stands where only a part of the threadgroup comes, and WGSL \
                         has no barrier of a simdgroup",
                    );
                } else {
                    self.barrier_of(*spaces);
                }
            }
            InstKind::MatrixFill { value } => {
                self.matrix_fill(*value, inst.results.first().copied());
            }
            InstKind::MatrixLoad { place } => {
                self.matrix_load(inst.span, place, inst.results.first().copied());
            }
            InstKind::MatrixStore { place, matrix } => {
                self.matrix_store(inst.span, place, *matrix);
            }
            InstKind::MatrixMultiplyAccumulate { a, b, c } => {
                let result = inst.results.first().copied();
                self.matrix_multiply_accumulate(inst.span, (*a, *b, *c), result);
            }
            InstKind::AssertUniform { value, scope } => {
                let text = self.assert_uniform(inst.span, *value, *scope);
                if let Some(result) = inst.results.first() {
                    self.bind(*result, text);
                }
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => self.if_(inst, *condition, then, otherwise),
            InstKind::For {
                lower,
                upper,
                step,
                init,
                body,
            } => self.for_(inst, (*lower, *upper, *step), init, body),
            InstKind::Loop { init, body } => self.loop_(inst, init, body),
            InstKind::Yield(values) => {
                let targets = self.frames.of_yield();
                self.assign(&targets, values);
            }
            InstKind::Break(values) => {
                let targets = self.frames.of_loop();
                self.assign(&targets, values);
                self.line("break;");
            }
            InstKind::Continue(values) => {
                let targets = self.frames.of_loop();
                self.assign(&targets, values);
                self.line("continue;");
            }
            InstKind::Return => {
                if !self.frames.is_empty() {
                    self.line("return;");
                }
            }
            InstKind::Print { .. } => unreachable!("`print` has been written out"),
            InstKind::Texture {
                texture,
                function,
                args,
            } => self.texture(inst, *texture, *function, args),
        }
    }

    /// The length of a buffer in elements, as a value of that type.
    fn buffer_length(&self, memory: Memory, ty: Type) -> String {
        let length = self.length(memory);
        match ty == Type::U32 {
            true => length,
            false => format!("u64({length})"),
        }
    }

    fn atomic_inst(
        &mut self,
        inst: &Inst,
        op: AtomicOp,
        order: Order,
        place: &Place,
        args: &[Value],
    ) {
        if order != Order::Relaxed {
            let message = format!(
                "`{}` has the order `{}`, but WGSL has relaxed atomics only",
                op.name(),
                order.name()
            );
            self.refuse(Rule::UnsupportedMemoryOrder, inst.span, message);
            return;
        }
        let text = self.atomic(op, place, args);
        match (op, inst.results.as_slice()) {
            (AtomicOp::Store, _) | (_, []) => self.line(format!("{text};")),
            (_, [old, exchanged]) => {
                let both = self.names.unique("exchange");
                self.line(format!("let {both} = {text};"));
                self.bind(*old, format!("{both}.old"));
                self.bind(*exchanged, format!("{both}.exchanged"));
            }
            (_, [old, ..]) => self.bind(*old, text),
        }
    }

    // ---- control flow ----

    /// Begins code for threads that exist only, if the threads outside the grid go along and part in the
    /// region that comes next. Gives what to give to [`Writer::leave`].
    fn enter(&mut self) -> (bool, bool) {
        let before = self.only_existing;
        let guard = self.surplus && !before && self.parts();
        if guard {
            self.identity.insert(Identity::Count);
            self.only_existing = true;
        }
        (guard, before)
    }

    fn if_(&mut self, inst: &Inst, condition: Value, then: &Region, otherwise: &Region) {
        let variables: Vec<String> = inst
            .results
            .iter()
            .map(|v| self.variable(*v, None))
            .collect();
        let (guard, before) = self.enter();
        if guard {
            self.line("if (exists) {");
            self.indent += 1;
        }
        let condition = self.value(condition);
        self.line(format!("if ({condition}) {{"));
        self.inner(then, Frame::If(variables.clone()));
        let nothing = otherwise.insts.len() == 1
            && matches!(&otherwise.insts[0].kind, InstKind::Yield(v) if v.is_empty());
        if !nothing {
            self.line("} else {");
        }
        self.inner(otherwise, Frame::If(variables));
        self.line("}");
        if guard {
            self.indent -= 1;
            self.line("}");
        }
        self.only_existing = before;
        for result in &inst.results {
            self.end_walk(*result);
        }
    }

    /// The variables that a loop carries: those of its parameters, which become its results.
    fn carried(&mut self, params: &[Value], init: &[Value]) -> Vec<String> {
        params
            .iter()
            .zip(init)
            .map(|(param, init)| {
                let start = self.value(*init);
                self.variable(*param, Some(start))
            })
            .collect()
    }

    fn loop_body(&mut self, inst: &Inst, body: &Region, carried: Vec<String>) {
        for (result, variable) in inst.results.iter().zip(&carried) {
            self.values[result.0 as usize] = variable.clone();
        }
        self.inner(body, Frame::Loop(carried));
    }

    fn loop_(&mut self, inst: &Inst, init: &[Value], body: &Region) {
        let carried = self.carried(&body.params, init);
        let (guard, before) = self.enter();
        if guard {
            self.line("if (exists) {");
            self.indent += 1;
        }
        self.line(self.loops.endless());
        self.loop_body(inst, body, carried);
        self.line("}");
        if guard {
            self.indent -= 1;
            self.line("}");
        }
        self.only_existing = before;
    }

    /// Counts as mathematical integers: the index never wraps. Of 8- and 16-bit types it often cannot, in
    /// the wider type that holds it; elsewhere the distance to the bound is compared with the step.
    fn for_(
        &mut self,
        inst: &Inst,
        (lower, upper, step): (Value, Value, Value),
        init: &[Value],
        body: &Region,
    ) {
        let carried = self.carried(&body.params[1..], init);
        let (guard, before) = self.enter();
        if guard {
            self.line("if (exists) {");
            self.indent += 1;
        }
        let index = body.params[0];
        let ty = self.ty(index);
        let scalar = ty.component_scalar();
        let start = self.value(lower);
        let limit = self.value(upper);
        let name = self.name_value(index);
        self.values[index.0 as usize] = name.clone();
        let holds = wgsl_type(ty);
        let by = self.constant(step).map(|c| self.step_of(step, c));
        // Below 0 there is nothing in the wider type of an unsigned one either.
        let narrow =
            scalar.size_bytes() < 4 && (scalar.is_signed_integer() || by.is_some_and(|by| by > 0));
        let never_wraps = match (by, self.constant(upper)) {
            (Some(1), _) => true,
            (Some(_), _) if narrow => true,
            (Some(by), Some(c)) if by > 0 => {
                let most = i128::from(u64::MAX >> (64 - scalar.bits()));
                let most = if scalar.is_signed_integer() {
                    most / 2
                } else {
                    most
                };
                scalar.integer(c.bits) + by <= most
            }
            _ => false,
        };
        let next = |amount: &str| format!("{name} = {name} + {amount}");
        match by {
            Some(0) => {
                let clauses = format!("{name}: {holds} = {start}; false; {name} = {name}");
                self.line(self.loops.counted(clauses));
            }
            Some(by) if never_wraps => {
                let amount = self.same_type(by, scalar);
                let operator = if by > 0 { "<" } else { ">" };
                let clauses = format!(
                    "{name}: {holds} = {start}; {name} {operator} {limit}; {}",
                    next(&amount)
                );
                self.line(self.loops.counted(clauses));
            }
            Some(_) | None => {
                self.line(format!("var {name}: {holds} = {start};"));
                let (up, amount) = self.step_text(step, scalar);
                // Both distances as unsigned numbers, which hold them.
                let unsigned = |text: String| match (scalar.is_signed_integer(), scalar.bits()) {
                    (false, _) => text,
                    (true, 64) => format!("u64({text})"),
                    (true, _) => format!("u32({text})"),
                };
                let z = zero(ty);
                let rest_up = format!(
                    "{} <= {}",
                    unsigned(format!("{limit} - {name}")),
                    unsigned(amount.clone())
                );
                let rest_down = format!(
                    "{} <= {}",
                    unsigned(format!("{name} - {limit}")),
                    unsigned(format!("{z} - {amount}"))
                );
                let (more, last) = match by {
                    Some(by) if by > 0 => (format!("{name} < {limit}"), rest_up),
                    Some(_) => (format!("{name} > {limit}"), rest_down),
                    None => (
                        format!(
                            "{amount} != {z} && select({name} > {limit}, {name} < {limit}, {up})"
                        ),
                        format!("select({rest_down}, {rest_up}, {up})"),
                    ),
                };
                let last = if narrow { "false".to_string() } else { last };
                self.line(self.loops.endless());
                self.line(format!("    if (!({more})) {{ break; }}"));
                self.loop_body(inst, body, carried);
                let last_name = self.names.unique("last");
                self.line("    continuing {");
                self.line(format!("        let {last_name} = {last};"));
                self.line(format!("        {};", next(&amount)));
                self.line(format!("        break if {last_name};"));
                self.line("    }");
                self.line("}");
                self.end_guard(guard, before);
                return;
            }
        }
        self.loop_body(inst, body, carried);
        self.line("}");
        self.end_guard(guard, before);
    }

    fn end_guard(&mut self, guard: bool, before: bool) {
        if guard {
            self.indent -= 1;
            self.line("}");
        }
        self.only_existing = before;
    }

    /// A constant step as a number.
    fn step_of(&self, step: Value, c: Const) -> i128 {
        self.ty(step).scalar().map_or(0, |s| s.integer(c.bits))
    }

    /// A number as a literal of the type that holds a scalar; modulo its width.
    fn same_type(&mut self, n: i128, scalar: Scalar) -> String {
        let bits = n as u64 & (u64::MAX >> (64 - scalar.bits()));
        self.literal(Const { scalar, bits })
    }

    /// Whether a step counts up, and the step as the index's type.
    fn step_text(&mut self, step: Value, index: Scalar) -> (String, String) {
        let from = self.ty(step).scalar().unwrap_or(index);
        if let Some(c) = self.constant(step) {
            let by = self.step_of(step, c);
            return ((by > 0).to_string(), self.same_type(by, index));
        }
        let text = self.value(step);
        let up = if from.is_signed_integer() {
            format!("({text} > {})", zero(Type::Scalar(from)))
        } else {
            "true".to_string()
        };
        let amount = if from == index {
            text
        } else {
            format!("{}({text})", super::types::scalar(index))
        };
        (up, amount)
    }

    // ---- the start of the entry point ----

    /// What a thread must know of its place, zeroed threadgroup memory, and the end of threads outside
    /// the grid, if they do not go along.
    pub(super) fn start(&mut self, workgroup_threads: u32) -> Start {
        let nominal = self.options.threadgroup_size;
        let count: u32 = nominal.iter().product();
        if !self.surplus && !self.full {
            self.identity.insert(Identity::Count);
        }
        // Each of these is computed from those before it.
        if self.identity.contains(&Identity::Count) {
            self.identity.extend([Identity::Size, Identity::Thread]);
        }
        if self.identity.contains(&Identity::Position) {
            self.identity.insert(Identity::Thread);
            if !self.full {
                self.identity.insert(Identity::Size);
            }
        }
        if self.identity.contains(&Identity::Size) {
            self.identity.insert(Identity::Threadgroup);
        }
        let mut parameters = vec![
            ["workgroup_id", "workgroup__id", "vec3<u32>"],
            ["local_invocation_index", "local__index", "u32"],
        ];
        let number = if self.uses_subgroups {
            parameters.push(["subgroup_id", "subgroup__id", "u32"]);
            parameters.push(["subgroup_invocation_id", "subgroup__lane", "u32"]);
            format!("subgroup__id * {}u + subgroup__lane", self.simdgroup_size)
        } else {
            "local__index".to_string()
        };
        let mut text = String::new();
        let mut line = |s: &str| text.push_str(&format!("    {s}\n"));
        let has = |identity| self.identity.contains(&identity);
        if has(Identity::Threadgroup) {
            line(
                "threadgroup = workgroup__id + vec3<u32>(constants.first_x, constants.first_y, constants.first_z);",
            );
            line("if (constants.row != 0u) {");
            line("    // A long line of threadgroups in rows, the last one perhaps not full.");
            line(
                "    threadgroup = vec3<u32>(workgroup__id.y * constants.row + workgroup__id.x, 0u, 0u);",
            );
            let along = if self.launch_order == LaunchOrder::ColumnMajor {
                "y"
            } else {
                "x"
            };
            line(&format!(
                "    if (threadgroup.x >= constants.threadgroups_{along}) {{"
            ));
            line("        return;");
            line("    }");
            line("}");
            if self.launch_order == LaunchOrder::ColumnMajor {
                line("// Threadgroups side by side in y are launched one after another.");
                line("threadgroup = threadgroup.yxz;");
            }
        }
        let full = format!(
            "vec3<u32>({}u, {}u, {}u)",
            nominal[0], nominal[1], nominal[2]
        );
        if has(Identity::Size) {
            line(&format!(
                "threadgroup_size = min({full}, vec3<u32>(constants.threads_x, constants.threads_y, constants.threads_z) - threadgroup * {full});"
            ));
        }
        if has(Identity::Thread) {
            line(&format!("thread = {number};"));
        }
        if has(Identity::Count) {
            line("thread_count = threadgroup_size.x * threadgroup_size.y * threadgroup_size.z;");
            line("exists = thread < thread_count;");
        }
        if has(Identity::Position) {
            if nominal[1] == 1 && nominal[2] == 1 {
                line("position = vec3<u32>(thread, 0u, 0u);");
            } else {
                let position = |x: &str, y: &str| {
                    format!(
                        "position = vec3<u32>(thread % {x}, thread / {x} % {y}, thread / ({x} * {y}));"
                    )
                };
                let nominally = position(&format!("{}u", nominal[0]), &format!("{}u", nominal[1]));
                if self.full {
                    line(&nominally);
                } else {
                    line(&format!("if (all(threadgroup_size == {full})) {{"));
                    line(&format!("    {nominally}"));
                    line("} else {");
                    line(&format!(
                        "    {}",
                        position("threadgroup_size.x", "threadgroup_size.y")
                    ));
                    line("}");
                }
            }
        }
        if self.helpers.has(Helper::Elsewhere.name()) {
            line("elsewhere = workgroup__id.x == 0xffffffffu;");
        }
        let mut zeroed = false;
        for memory in self.plan.memories() {
            let object = self.plan.object(memory);
            if !self.observed.contains(&memory) || object.slots == 0 {
                continue;
            }
            zeroed = true;
            let slot = self.zero_slot(memory, "slot");
            if object.slots <= u64::from(count) {
                line(&format!(
                    "if (local__index < {}u) {{ let slot = local__index; {slot} }}",
                    object.slots
                ));
            } else {
                let each = self.loops.counted(format!(
                    "slot = local__index; slot < {}u; slot += {workgroup_threads}u",
                    object.slots
                ));
                line(&format!("{each} {slot} }}"));
            }
        }
        if zeroed {
            line("workgroupBarrier();");
        }
        if !self.surplus && !self.full {
            line("if (!exists) {");
            line("    return;");
            line("}");
        }
        Start { parameters, text }
    }
}
