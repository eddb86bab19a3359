//! Statements.
//!
//! [`Flow`] says what can happen at the end of a list of statements. A jump that is under way is a
//! number in the variable `exit` and, as long as only one thing can happen, known without it. What a
//! jump passes over is put on the other side of an `if`: on the side that does not jump, if one of the
//! two always does, else under a condition of its own.

use std::collections::BTreeSet;
use std::rc::Rc;

use invar_ir::{AtomicOp, Inst, InstKind, Op, Region, Scope, Spaces, Type, Value, Values};
use naga::{
    AtomicFunction, Barrier, Block, CollectiveOperation, Direction, Expression, Function,
    GatherMode, GlobalVariable, Handle, Statement, SubgroupOperation, SwitchCase, SwitchValue,
};

use crate::translator::{Done, Target, Translator};
use crate::tree::{blocks, breaks, root};
use crate::uniformity::{Filter, refuses};
use crate::value::{Flow, Ptr, Slot, Val};
use crate::variables::Changed;

/// Statements still to come: the rest of a block, and then what follows the block.
#[derive(Clone, Copy)]
struct Rest<'r, 'a> {
    block: &'a Block,
    from: usize,
    next: Option<&'r Rest<'r, 'a>>,
}

impl Rest<'_, '_> {
    fn is_empty(&self) -> bool {
        self.from >= self.block.len() && self.next.is_none_or(Rest::is_empty)
    }
}

/// What the end of some statements is, without building them.
#[derive(Clone, Copy, Default)]
struct Ends {
    /// The end can be reached.
    falls: bool,
    /// A jump can be under way there.
    jumps: bool,
}

/// What an `if` leaves behind.
enum Arm {
    Ended,
    Open(Flow),
}

/// The cases of a `switch` that have one body.
struct Case<'a> {
    values: Vec<SwitchValue>,
    body: &'a Block,
}

impl Case<'_> {
    fn is_default(&self) -> bool {
        self.values.contains(&SwitchValue::Default)
    }
}

/// A `switch` of more arms is told apart by halves; of fewer by one arm after the other, as it is written.
/// A chain of more `else if`s is built part by part, as it may be longer than blocks nest.
const MANY_ARMS: usize = 32;
/// How many `if`s of such a chain nest.
const PART_OF_CHAIN: usize = 16;

impl<'a> Translator<'a> {
    /// Builds the statements of a block.
    pub fn block(&mut self, block: &'a Block) -> Done<Flow> {
        self.statements(&Rest {
            block,
            from: 0,
            next: None,
        })
    }

    fn statements(&mut self, rest: &Rest<'_, 'a>) -> Done<Flow> {
        if let Some((cut, later)) = self.cut
            && rest.from == 0
            && std::ptr::eq(cut, rest.block)
        {
            // The next part of a chain, which comes behind this one.
            let yes = self.constant(true.into());
            self.env.insert(later, yes);
            return Ok(Flow::FALLS);
        }
        for (i, (statement, span)) in rest.block.span_iter().enumerate().skip(rest.from) {
            self.at(*span);
            self.count()?;
            let after = Rest {
                from: i + 1,
                ..*rest
            };
            let flow = match statement {
                Statement::Block(block) => {
                    let ends = self.ends(block);
                    let next = (ends.jumps && !after.is_empty()).then_some(&after);
                    let inner = Rest {
                        block,
                        from: 0,
                        next,
                    };
                    let flow = self.statements(&inner)?;
                    if next.is_some() {
                        return Ok(flow);
                    }
                    flow
                }
                Statement::If {
                    condition,
                    accept,
                    reject,
                } => {
                    let parts = self.parts_of_chain(reject);
                    let condition = self.expr(*condition)?;
                    let condition = self.one(&condition)?;
                    let goes_on = |a: Ends, b: Ends| a.jumps && !a.falls && b.falls;
                    let (mut with_yes, mut with_no) = (None, None);
                    if !after.is_empty() && parts.is_empty() {
                        let (yes, no) = (self.ends(accept), self.ends(reject));
                        if goes_on(yes, no) {
                            with_no = Some(&after);
                        } else if goes_on(no, yes) {
                            with_yes = Some(&after);
                        }
                    }
                    let side = |block, next| Rest {
                        block,
                        from: 0,
                        next,
                    };
                    let (yes, no) = (side(accept, with_yes), side(reject, with_no));
                    let around = self.cut;
                    let later = self.begin_chain(&parts);
                    let mut flow =
                        self.branch(condition, |t| t.statements(&yes), |t| t.statements(&no))?;
                    if let Some(later) = later {
                        flow = self.rest_of_chain(flow, &parts, later)?;
                        self.cut = around;
                    }
                    if with_yes.or(with_no).is_some() {
                        return Ok(flow);
                    }
                    flow
                }
                Statement::Switch { selector, cases } => self.switch(*selector, cases)?,
                Statement::Loop {
                    body,
                    continuing,
                    break_if,
                } => self.repeat(body, continuing, *break_if)?,
                simple => self.simple(simple, *span)?,
            };
            if flow == Flow::FALLS {
                continue;
            }
            if !flow.has(Flow::FALLS) || after.is_empty() {
                return Ok(flow);
            }
            // Some threads jump: what follows is for the others, in an `if` that is where the jump is.
            let jumps = flow.without(Flow::FALLS);
            let mut places = jumps.codes().filter_map(|code| self.jumps.get(&code));
            if let Some(place) = places.next().copied() {
                self.k.set_span(place);
            }
            let code = self.env[self.exit];
            let none = self.number(0);
            let goes_on = self.op(Op::Eq, &[code, none]);
            return self.branch(
                goes_on,
                |t| {
                    let none = t.number(0);
                    t.env.insert(t.exit, none);
                    t.statements(&after)
                },
                |_| Ok(jumps),
            );
        }
        match rest.next {
            Some(next) => self.statements(next),
            None => Ok(Flow::FALLS),
        }
    }

    // ---- chains of `else if` ----

    /// The blocks behind an `else` with which parts of a long chain of `else if`s begin; none of a short one, and
    /// of one that is being built.
    fn parts_of_chain(&self, reject: &'a Block) -> Vec<&'a Block> {
        let (mut parts, mut ifs, mut at) = (Vec::new(), 1, reject);
        loop {
            if self.cut.is_some_and(|(cut, _)| std::ptr::eq(cut, at)) {
                return Vec::new();
            }
            let Some(Statement::If { reject, .. }) = at.last() else {
                break;
            };
            if ifs % PART_OF_CHAIN == 0 {
                parts.push(at);
            }
            ifs += 1;
            at = reject;
        }
        if ifs > MANY_ARMS { parts } else { Vec::new() }
    }

    /// Has the `if` that is built next end where the second part of its chain begins: whether that is reached is
    /// in the variable.
    fn begin_chain(&mut self, parts: &[&'a Block]) -> Option<Slot> {
        let second = parts.first()?;
        let later = self.slot("");
        let no = self.constant(false.into());
        self.env.insert(later, no);
        self.cut = Some((second, later));
        Some(later)
    }

    /// Builds the parts of a chain but the first, one behind the other.
    fn rest_of_chain(&mut self, first: Flow, parts: &[&'a Block], later: Slot) -> Done<Flow> {
        let mut flow = first;
        for (number, part) in parts.iter().enumerate() {
            self.cut = parts.get(number + 1).map(|next| (*next, later));
            let (reached, before) = (self.env[later], flow);
            if let Some((_, place)) = part.span_iter().last() {
                self.at(*place);
            }
            let part = Rest {
                block: part,
                from: 0,
                next: None,
            };
            flow = self.branch(
                reached,
                |t| {
                    let (none, no) = (t.number(0), t.constant(false.into()));
                    t.env.insert(t.exit, none);
                    t.env.insert(later, no);
                    t.statements(&part)
                },
                |_| Ok(before),
            )?;
        }
        self.env.remove(later);
        Ok(flow)
    }

    // ---- if ----

    fn side(&mut self, build: impl FnOnce(&mut Self) -> Done<Flow>) -> Done<(Region, Arm)> {
        self.open(&[]);
        let flow = build(self);
        let ended = self.k.terminated();
        let region = self.close();
        let flow = flow?;
        Ok((region, if ended { Arm::Ended } else { Arm::Open(flow) }))
    }

    /// Builds an `if`.
    pub fn branch(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self) -> Done<Flow>,
        otherwise: impl FnOnce(&mut Self) -> Done<Flow>,
    ) -> Done<Flow> {
        let span = self.k.span();
        let before = self.env.mark();
        let (mut yes, yes_arm) = self.side(then)?;
        let yes_changed = self.env.undo(before);
        let (mut no, no_arm) = self.side(otherwise)?;
        let no_changed = self.env.undo(before);
        self.k.set_span(span);
        let empty = || {
            let mut region = Region::default();
            region.insts.push(Inst {
                kind: InstKind::Yield(Values::new()),
                results: Default::default(),
                span,
            });
            region
        };
        let flow = match (yes_arm, no_arm) {
            // What follows a side that has ended is the other side.
            (Arm::Ended, Arm::Ended) => {
                self.k.if_regions(condition, yes, empty());
                self.k.splice(no);
                return Ok(Flow::ENDED);
            }
            (Arm::Ended, Arm::Open(flow)) => {
                self.k.if_regions(condition, yes, empty());
                self.k.splice(no);
                self.env.redo(no_changed);
                flow
            }
            (Arm::Open(flow), Arm::Ended) => {
                self.k.if_regions(condition, empty(), no);
                self.k.splice(yes);
                self.env.redo(yes_changed);
                flow
            }
            (Arm::Open(a), Arm::Open(b)) => {
                let mut merged = Vec::new();
                let (mut yes_values, mut no_values) = (Values::new(), Values::new());
                let mut changed: Vec<Slot> = yes_changed.keys().copied().collect();
                changed.extend(
                    no_changed
                        .keys()
                        .filter(|slot| !yes_changed.contains_key(slot)),
                );
                changed.sort_unstable();
                for slot in changed {
                    let Some(old) = self.env.get(slot) else {
                        continue;
                    };
                    let after = |side: &Changed| side.get(&slot).copied().flatten().unwrap_or(old);
                    let (yes, no) = (after(&yes_changed), after(&no_changed));
                    if yes != old || no != old {
                        merged.push(slot);
                        yes_values.push(yes);
                        no_values.push(no);
                    }
                }
                give(&mut yes, yes_values);
                give(&mut no, no_values);
                let results = self.k.if_regions(condition, yes, no);
                for (slot, value) in merged.into_iter().zip(results) {
                    self.set(slot, value);
                }
                a.or(b)
            }
        };
        if let Some(code) = flow.only() {
            let code = self.number(code);
            self.env.insert(self.exit, code);
        }
        Ok(flow)
    }

    // ---- jumps ----

    /// A jump to a target: it is under way, or has left the loop that stands between.
    fn jump(&mut self, target: usize) -> Done<Flow> {
        let flow = Flow::jump(target);
        if let Some(code) = flow.only() {
            self.jumps.insert(code, self.k.span());
            let code = self.number(code);
            self.env.insert(self.exit, code);
        }
        let between = self.targets[target + 1..].iter_mut().rev();
        for t in between {
            if let Target::Loop { outward, .. } = t {
                *outward = outward.or(flow);
                return self.break_loop();
            }
        }
        Ok(flow)
    }

    /// Leaves the innermost loop.
    fn break_loop(&mut self) -> Done<Flow> {
        let innermost = self.targets.iter().rev().find_map(|t| match t {
            Target::Loop { carried, .. } => Some(carried),
            Target::Function | Target::Switch | Target::Iteration => None,
        });
        let Some(carried) = innermost else {
            return Err(self.unexpected("a `break` without a loop"));
        };
        let values: Vec<Value> = carried.iter().map(|slot| self.env[*slot]).collect();
        self.k.break_(&values);
        Ok(Flow::ENDED)
    }

    /// Where a target is reached: jumps to it are over, others go on.
    pub fn arrive(&mut self, flow: Flow, target: usize) -> Done<Flow> {
        let jump = Flow::jump(target);
        if !flow.has(jump) {
            return Ok(flow);
        }
        let flow_after = flow.without(jump).or(Flow::FALLS);
        if let Some(code) = flow_after.only() {
            let code = self.number(code);
            self.env.insert(self.exit, code);
            return Ok(flow_after);
        }
        let code = self.env[self.exit];
        let none = self.number(0);
        for arrived in jump.codes() {
            let arrived = self.number(arrived);
            let is_here = self.op(Op::Eq, &[code, arrived]);
            let code = self.op(Op::Select, &[code, none, is_here]);
            self.env.insert(self.exit, code);
        }
        Ok(flow_after)
    }

    /// What the end of a block is, where the block stands now.
    fn ends(&self, block: &Block) -> Ends {
        let mut breaks_jump = false;
        let mut returns_jump = self.frame().result.is_some();
        for target in self.targets.iter().rev() {
            match target {
                Target::Switch => {
                    breaks_jump = true;
                    break;
                }
                Target::Loop { .. } => break,
                Target::Iteration | Target::Function => {}
            }
        }
        for target in self.targets.iter().rev() {
            match target {
                Target::Function => break,
                Target::Loop { .. } => {
                    returns_jump = false;
                    break;
                }
                Target::Switch | Target::Iteration => {}
            }
        }
        ends(block, breaks_jump, returns_jump)
    }

    // ---- switch ----

    fn switch(&mut self, selector: Handle<Expression>, cases: &'a [SwitchCase]) -> Done<Flow> {
        let selector = self.expr(selector)?;
        let selector = self.one(&selector)?;
        let mut arms: Vec<Case<'a>> = Vec::new();
        let mut values = Vec::new();
        for case in cases {
            values.push(case.value);
            if case.fall_through {
                if !case.body.is_empty() {
                    return Err(self.refuse("a case that falls through to the next"));
                }
                continue;
            }
            arms.push(Case {
                values: std::mem::take(&mut values),
                body: &case.body,
            });
        }
        // The default comes last, wherever it stands.
        arms.sort_by_key(Case::is_default);
        let target = self.push_target(Target::Switch)?;
        let flow = if arms.len() > MANY_ARMS && arms.last().is_some_and(Case::is_default) {
            let number = self.number_of_arm(selector, &arms)?;
            self.halves(number, &arms, 0, target)?
        } else {
            self.cases(selector, &arms, target)?
        };
        self.targets.pop();
        Ok(flow)
    }

    fn cases(&mut self, selector: Value, arms: &[Case<'a>], target: usize) -> Done<Flow> {
        let Some((first, rest)) = arms.split_first() else {
            return Ok(Flow::FALLS);
        };
        if first.is_default() {
            let flow = self.block(first.body)?;
            return self.arrive(flow, target);
        }
        let chosen = self.is_chosen(selector, first)?;
        let body = first.body;
        self.branch(
            chosen,
            |t| {
                let flow = t.block(body)?;
                t.arrive(flow, target)
            },
            |t| t.cases(selector, rest, target),
        )
    }

    /// Whether the selector has a value of the arm.
    fn is_chosen(&mut self, selector: Value, arm: &Case<'a>) -> Done<Value> {
        let mut chosen: Option<Value> = None;
        for value in &arm.values {
            let value = match value {
                SwitchValue::I32(n) => self.constant((*n).into()),
                SwitchValue::U32(n) => self.constant((*n).into()),
                SwitchValue::Default => continue,
            };
            let equal = self.op(Op::Eq, &[selector, value]);
            chosen = Some(match chosen {
                Some(before) => self.op(Op::Or, &[before, equal]),
                None => equal,
            });
        }
        chosen.ok_or_else(|| self.unexpected("a case without a value"))
    }

    /// The number of the arm that the selector chooses, of which the last is the default.
    fn number_of_arm(&mut self, selector: Value, arms: &[Case<'a>]) -> Done<Value> {
        let last = arms.len() - 1;
        let mut number = self.number(last as u32);
        for (i, arm) in arms[..last].iter().enumerate() {
            let chosen = self.is_chosen(selector, arm)?;
            let this = self.number(i as u32);
            number = self.op(Op::Select, &[number, this, chosen]);
        }
        Ok(number)
    }

    /// One of many arms, the first of which has the number `first`: halves of them are told apart, so that what is
    /// made nests no deeper for many.
    fn halves(
        &mut self,
        number: Value,
        arms: &[Case<'a>],
        first: usize,
        target: usize,
    ) -> Done<Flow> {
        if let [only] = arms {
            let flow = self.block(only.body)?;
            return self.arrive(flow, target);
        }
        let (low, high) = arms.split_at(arms.len() / 2);
        let middle = first + low.len();
        let bound = self.number(middle as u32);
        let is_low = self.op(Op::Lt, &[number, bound]);
        self.branch(
            is_low,
            |t| t.halves(number, low, first, target),
            |t| t.halves(number, high, middle, target),
        )
    }

    // ---- loop ----

    fn repeat(
        &mut self,
        body: &'a Block,
        continuing: &'a Block,
        break_if: Option<Handle<Expression>>,
    ) -> Done<Flow> {
        let span = self.k.span();
        let mut assigned = BTreeSet::new();
        self.assigned(body, &mut assigned);
        self.assigned(continuing, &mut assigned);
        let returns = |s: &Statement| matches!(s, Statement::Return { .. });
        if let Some((result, _)) = &self.frame().result
            && contains(body, &returns)
        {
            assigned.insert(self.exit);
            let mut slots = Vec::new();
            if let Some(tree) = result {
                tree.slots(&mut slots);
            }
            assigned.extend(slots);
        }
        // What is assigned and not there belongs to functions that are called inside.
        let carried: Vec<Slot> = assigned
            .into_iter()
            .filter(|slot| self.env.get(*slot).is_some())
            .collect();
        let init: Values = carried.iter().map(|slot| self.env[*slot]).collect();
        let types: Vec<Type> = init.iter().map(|v| self.k.ty(*v)).collect();
        let before = self.env.mark();
        let target = self.push_target(Target::Loop {
            carried: carried.clone(),
            breaks: false,
            outward: Flow::ENDED,
        })?;
        let params = self.open(&types);
        for (slot, param) in carried.iter().zip(&params) {
            self.set(*slot, *param);
        }
        let iteration = self.push_target(Target::Iteration)?;
        let flow = self.block(body)?;
        self.targets.pop();
        let flow = self.arrive(flow, iteration)?;
        if !flow.has_ended() {
            let none = self.number(0);
            self.env.insert(self.exit, none);
            self.block(continuing)?;
            if let Some(condition) = break_if {
                let condition = self.expr(condition)?;
                let condition = self.one(&condition)?;
                self.branch(condition, |t| t.leave_loop(target), |_| Ok(Flow::FALLS))?;
            }
            let next: Vec<Value> = carried.iter().map(|slot| self.env[*slot]).collect();
            self.k.yield_(&next);
        }
        let body = self.close();
        let (breaks, outward) = match self.targets.pop() {
            Some(Target::Loop {
                breaks, outward, ..
            }) => (breaks, outward),
            Some(Target::Function | Target::Switch | Target::Iteration) | None => {
                return Err(self.unexpected("expected a loop"));
            }
        };
        self.k.set_span(span);
        self.env.undo(before);
        let results = self.k.push(InstKind::Loop { init, body }, &types);
        for (slot, result) in carried.iter().zip(results) {
            self.set(*slot, result);
        }
        if outward.has_ended() {
            let none = self.number(0);
            self.env.insert(self.exit, none);
            return Ok(Flow::FALLS);
        }
        // A `return` left it, and may have to leave the loops around, too.
        let crosses = self
            .targets
            .iter()
            .rev()
            .take_while(|t| !matches!(t, Target::Function))
            .any(|t| matches!(t, Target::Loop { .. }));
        if !crosses {
            return Ok(if breaks {
                outward.or(Flow::FALLS)
            } else {
                outward
            });
        }
        let code = self.env[self.exit];
        let none = self.number(0);
        let leaves = self.op(Op::Ne, &[code, none]);
        let function = self
            .targets
            .iter()
            .rposition(|t| matches!(t, Target::Function));
        self.branch(
            leaves,
            |t| match function {
                Some(function) => t.jump(function),
                None => Err(t.unexpected("a `return` without a function")),
            },
            |_| Ok(Flow::FALLS),
        )
    }

    /// A `break` of the loop that is the target of that number.
    fn leave_loop(&mut self, target: usize) -> Done<Flow> {
        if let Some(Target::Loop { breaks, .. }) = self.targets.get_mut(target) {
            *breaks = true;
        }
        let none = self.number(0);
        self.env.insert(self.exit, none);
        self.break_loop()
    }

    // ---- what is assigned ----

    fn assigned(&mut self, block: &'a Block, out: &mut BTreeSet<Slot>) {
        for statement in block.iter() {
            match statement {
                Statement::Store { pointer, .. } => self.assigned_by(*pointer, out),
                Statement::Call {
                    function,
                    arguments,
                    ..
                } => {
                    for argument in arguments {
                        self.assigned_by(*argument, out);
                    }
                    for global in self.private_stores(*function).iter() {
                        if let Some(Ptr::Tree(tree)) = self.globals.get(global) {
                            let mut slots = Vec::new();
                            tree.slots(&mut slots);
                            out.extend(slots);
                        }
                    }
                }
                nested => {
                    for block in blocks(nested) {
                        self.assigned(block, out);
                    }
                }
            }
        }
    }

    /// The slots that a pointer may lead to.
    fn assigned_by(&self, pointer: Handle<Expression>, out: &mut BTreeSet<Slot>) {
        let mut slots = Vec::new();
        let mut of = |ptr: &Ptr| match ptr {
            Ptr::Tree(tree) => tree.slots(&mut slots),
            Ptr::Part(slot, _) => slots.push(*slot),
            Ptr::Memory(_) => {}
        };
        match root(self.frame().function, pointer) {
            Some(Expression::LocalVariable(local)) => {
                if let Some(tree) = self.frame().locals.get(local) {
                    of(&Ptr::Tree(tree.clone()));
                }
            }
            Some(Expression::GlobalVariable(global)) => {
                if let Some(ptr) = self.globals.get(global) {
                    of(ptr);
                }
            }
            Some(Expression::FunctionArgument(number)) => {
                if let Some(Val::Pointer(ptr)) = self.frame().arguments.get(*number as usize) {
                    of(ptr);
                }
            }
            _no_variable => {}
        }
        out.extend(slots);
    }

    /// The variables of the module that a function may assign.
    fn private_stores(
        &mut self,
        function: Handle<Function>,
    ) -> Rc<BTreeSet<Handle<GlobalVariable>>> {
        if let Some(known) = self.private_stores.get(&function) {
            return known.clone();
        }
        let mut found = BTreeSet::new();
        let f = &self.shader.functions[function];
        let mut blocks_left = vec![&f.body];
        while let Some(block) = blocks_left.pop() {
            for statement in block.iter() {
                let mut pointers = Vec::new();
                match statement {
                    Statement::Store { pointer, .. } => pointers.push(*pointer),
                    Statement::Call {
                        function,
                        arguments,
                        ..
                    } => {
                        pointers.extend(arguments.iter().copied());
                        found.extend(self.private_stores(*function).iter().copied());
                    }
                    nested => blocks_left.extend(blocks(nested)),
                }
                for pointer in pointers {
                    if let Some(Expression::GlobalVariable(global)) = root(f, pointer) {
                        found.insert(*global);
                    }
                }
            }
        }
        let found = Rc::new(found);
        self.private_stores.insert(function, found.clone());
        found
    }

    // ---- statements without statements inside ----

    fn give_result(&mut self, handle: Handle<Expression>, value: Val) {
        let function = self.frame().function;
        if let (Val::One(one), Some(name)) = (&value, function.named_expressions.get(&handle)) {
            self.k.name(*one, name);
        }
        self.frame_mut().values.insert(handle, value);
    }

    fn simple(&mut self, statement: &'a Statement, span: naga::Span) -> Done<Flow> {
        match statement {
            Statement::Emit(range) => {
                let function = self.frame().function;
                for handle in range.clone() {
                    self.at(function.expressions.get_span(handle));
                    let value = self.compute(handle)?;
                    self.give_result(handle, value);
                }
            }
            Statement::Store { pointer, value } => {
                let pointer = self.pointer(*pointer)?;
                if let Expression::ZeroValue(ty) = self.frame().function.expressions[*value] {
                    self.at(span);
                    self.store_zero(&pointer, ty)?;
                } else {
                    let value = self.expr(*value)?;
                    self.at(span);
                    self.store(&pointer, &value)?;
                }
            }
            Statement::Call {
                function,
                arguments,
                result,
            } => {
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.expr(*argument)?);
                }
                let value = self.inline(*function, values, span)?;
                self.at(span);
                if let (Some(handle), Some(value)) = (result, value) {
                    self.give_result(*handle, value);
                }
            }
            Statement::Break => {
                let innermost = self
                    .targets
                    .iter()
                    .rposition(|t| matches!(t, Target::Switch | Target::Loop { .. }));
                return match innermost {
                    Some(at) if matches!(self.targets[at], Target::Switch) => self.jump(at),
                    Some(at) => self.leave_loop(at),
                    None => Err(self.unexpected("a `break` without a loop")),
                };
            }
            Statement::Continue => {
                let iteration = self
                    .targets
                    .iter()
                    .rposition(|t| matches!(t, Target::Iteration));
                return match iteration {
                    Some(at) => self.jump(at),
                    None => Err(self.unexpected("a `continue` without a loop")),
                };
            }
            Statement::Return { value } => {
                let Some((result, target)) = self.frame().result.clone() else {
                    self.k.return_();
                    return Ok(Flow::ENDED);
                };
                if let (Some(tree), Some(value)) = (result, value) {
                    let value = self.expr(*value)?;
                    self.store(&Ptr::Tree(tree), &value)?;
                }
                return self.jump(target);
            }
            Statement::ControlBarrier(flags) | Statement::MemoryBarrier(flags) => {
                self.barrier(*flags);
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let pointer = self.pointer(*pointer)?;
                self.at(span);
                self.k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
                let value = self.load(&pointer)?;
                let value = self.uniform(&value)?;
                self.k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
                self.give_result(*result, value);
            }
            Statement::Atomic {
                pointer,
                fun,
                value,
                result,
            } => {
                let pointer = self.pointer(*pointer)?;
                let value = self.expr(*value)?;
                let value = self.one(&value)?;
                let (op, args) = match fun {
                    AtomicFunction::Add => (AtomicOp::Add, vec![value]),
                    AtomicFunction::Subtract => (AtomicOp::Sub, vec![value]),
                    AtomicFunction::And => (AtomicOp::And, vec![value]),
                    AtomicFunction::ExclusiveOr => (AtomicOp::Xor, vec![value]),
                    AtomicFunction::InclusiveOr => (AtomicOp::Or, vec![value]),
                    AtomicFunction::Min => (AtomicOp::Min, vec![value]),
                    AtomicFunction::Max => (AtomicOp::Max, vec![value]),
                    AtomicFunction::Exchange { compare: None } => (AtomicOp::Exchange, vec![value]),
                    AtomicFunction::Exchange { compare: Some(c) } => {
                        let compare = self.expr(*c)?;
                        (AtomicOp::CompareExchange, vec![self.one(&compare)?, value])
                    }
                };
                self.at(span);
                let old = self.atomic(&pointer, op, &args)?;
                if let Some(handle) = result {
                    self.give_result(*handle, old);
                }
            }
            Statement::SubgroupBallot { .. }
            | Statement::SubgroupGather { .. }
            | Statement::SubgroupCollectiveOperation { .. } => self.subgroup(statement, span)?,
            Statement::Kill => return Err(self.refuse("`discard`")),
            Statement::ImageStore {
                image,
                coordinate,
                array_index,
                value,
            } => self.texture_store(*image, (*coordinate, *array_index), *value, span)?,
            Statement::ImageAtomic {
                image,
                coordinate,
                array_index,
                fun,
                value,
            } => {
                let place = (*coordinate, *array_index);
                self.texture_atomic(*image, place, fun, *value, span)?;
            }
            Statement::RayQuery { .. } | Statement::RayPipelineFunction(_) => {
                return Err(self.refuse("a ray query"));
            }
            Statement::CooperativeStore { .. } => {
                return Err(self.refuse("a cooperative matrix"));
            }
            Statement::Block(_)
            | Statement::If { .. }
            | Statement::Switch { .. }
            | Statement::Loop { .. } => return Err(self.unexpected("a block out of place")),
        }
        Ok(Flow::FALLS)
    }

    fn barrier(&mut self, flags: Barrier) {
        let spaces = [
            (Barrier::STORAGE, Spaces::DEVICE),
            (Barrier::WORK_GROUP, Spaces::THREADGROUP),
            (Barrier::TEXTURE, Spaces::TEXTURE),
        ];
        let mut ordered = Spaces::NONE;
        for (flag, space) in spaces {
            if flags.contains(flag) {
                ordered = ordered.with(space);
            }
        }
        if flags.contains(Barrier::SUB_GROUP) {
            // A barrier of a subgroup names no space: it orders them all.
            self.k.barrier(Scope::Simdgroup, Spaces::DEFAULT);
        } else {
            self.k.barrier(Scope::Threadgroup, ordered);
        }
    }

    fn subgroup(&mut self, statement: &'a Statement, span: naga::Span) -> Done<()> {
        use {CollectiveOperation as C, SubgroupOperation as S};
        self.apart |= !refuses(self.shader, self.frame().function, Filter::Subgroups);
        let (result, value) = match statement {
            Statement::SubgroupBallot { result, predicate } => {
                let predicate = match predicate {
                    Some(predicate) => {
                        let predicate = self.expr(*predicate)?;
                        self.one(&predicate)?
                    }
                    None => self.constant(true.into()),
                };
                self.at(span);
                (*result, self.op(Op::SimdBallot, &[predicate]))
            }
            Statement::SubgroupCollectiveOperation {
                op,
                collective_op,
                argument,
                result,
            } => {
                let argument = self.expr(*argument)?;
                let argument = self.one(&argument)?;
                self.at(span);
                let op = match (op, collective_op) {
                    (S::Add, C::Reduce) => Op::SimdSum,
                    (S::Add, C::InclusiveScan) => Op::SimdPrefixInclusiveSum,
                    (S::Add, C::ExclusiveScan) => Op::SimdPrefixExclusiveSum,
                    (S::Mul, C::Reduce) => Op::SimdProduct,
                    (S::Mul, C::InclusiveScan) => Op::SimdPrefixInclusiveProduct,
                    (S::Mul, C::ExclusiveScan) => Op::SimdPrefixExclusiveProduct,
                    (S::Min, _) => Op::SimdMin,
                    (S::Max, _) => Op::SimdMax,
                    (S::And, _) => Op::SimdAnd,
                    (S::Or, _) => Op::SimdOr,
                    (S::Xor, _) => Op::SimdXor,
                    (S::All, _) => Op::SimdAll,
                    (S::Any, _) => Op::SimdAny,
                };
                (*result, self.op(op, &[argument]))
            }
            Statement::SubgroupGather {
                mode,
                argument,
                result,
            } => {
                let argument = self.expr(*argument)?;
                let argument = self.one(&argument)?;
                let (op, index) = match mode {
                    GatherMode::BroadcastFirst => (Op::SimdBroadcastFirst, None),
                    GatherMode::Broadcast(i) => (Op::SimdBroadcast, Some(*i)),
                    GatherMode::Shuffle(i) => (Op::SimdShuffle, Some(*i)),
                    GatherMode::ShuffleDown(i) => (Op::SimdShuffleDown, Some(*i)),
                    GatherMode::ShuffleUp(i) => (Op::SimdShuffleUp, Some(*i)),
                    GatherMode::ShuffleXor(i) => (Op::SimdShuffleXor, Some(*i)),
                    GatherMode::QuadBroadcast(i) => (Op::QuadBroadcast, Some(*i)),
                    GatherMode::QuadSwap(direction) => {
                        let mask = match direction {
                            Direction::X => 1,
                            Direction::Y => 2,
                            Direction::Diagonal => 3,
                        };
                        let mask = self.number(mask);
                        self.at(span);
                        let value = self.op(Op::QuadShuffleXor, &[argument, mask]);
                        self.give_result(*result, Val::One(value));
                        return Ok(());
                    }
                };
                let mut args = vec![argument];
                if let Some(index) = index {
                    let index = self.expr(index)?;
                    let index = self.one(&index)?;
                    args.push(if self.k.ty(index) == Type::U32 {
                        index
                    } else {
                        self.k.op(Op::Cast, Type::U32, &[index])
                    });
                }
                self.at(span);
                (*result, self.op(op, &args))
            }
            _no_subgroup => return Err(self.unexpected("a subgroup without an operation")),
        };
        self.give_result(result, Val::One(value));
        Ok(())
    }
}

/// Ends a region that is open with these values.
fn give(region: &mut Region, values: Values) {
    if let Some(last) = region.insts.last_mut()
        && let InstKind::Yield(given) = &mut last.kind
    {
        *given = values;
    }
}

/// Leaves out every `return` of an entry point behind which nothing is left to do: naga writes one at
/// the end of every path, and a thread that returns there would miss the barriers of other paths.
pub(crate) fn without_last_returns(block: &mut Block) {
    if let Some(Statement::Return { .. }) = block.last() {
        block.cull(block.len() - 1..);
    }
    match block.last_mut() {
        Some(Statement::Block(block)) => without_last_returns(block),
        Some(Statement::If { accept, reject, .. }) => {
            without_last_returns(accept);
            without_last_returns(reject);
        }
        Some(Statement::Switch { cases, .. }) => {
            for case in cases {
                without_last_returns(&mut case.body);
            }
        }
        _no_path => {}
    }
}

/// Whether a statement stands in a block, at any depth.
fn contains(block: &Block, wanted: &dyn Fn(&Statement) -> bool) -> bool {
    block
        .iter()
        .any(|s| wanted(s) || blocks(s).into_iter().any(|b| contains(b, wanted)))
}

/// What the end of a block is. A `break` or a `return` is a jump, or ends the region.
fn ends(block: &Block, breaks_jump: bool, returns_jump: bool) -> Ends {
    let mut all = Ends {
        falls: true,
        jumps: false,
    };
    for statement in block.iter() {
        let one = match statement {
            Statement::Return { .. } => Ends {
                falls: false,
                jumps: returns_jump,
            },
            Statement::Break => Ends {
                falls: false,
                jumps: breaks_jump,
            },
            Statement::Continue => Ends {
                falls: false,
                jumps: true,
            },
            Statement::Block(block) => ends(block, breaks_jump, returns_jump),
            Statement::If { accept, reject, .. } => {
                let yes = ends(accept, breaks_jump, returns_jump);
                let no = ends(reject, breaks_jump, returns_jump);
                Ends {
                    falls: yes.falls || no.falls,
                    jumps: yes.jumps || no.jumps,
                }
            }
            Statement::Switch { cases, .. } => {
                let mut any = Ends::default();
                for case in cases {
                    // A `break` ends at the switch; other jumps go on.
                    let end = ends(&case.body, false, returns_jump);
                    any.falls |= end.falls || breaks(&case.body);
                    any.jumps |= end.jumps;
                }
                any
            }
            Statement::Loop { body, .. } => Ends {
                falls: true,
                // A `return` inside leaves the loop and goes on from there.
                jumps: returns_jump && contains(body, &|s| matches!(s, Statement::Return { .. })),
            },
            _simple => continue,
        };
        all.jumps |= one.jumps;
        all.falls = one.falls;
        if !one.falls {
            break;
        }
    }
    all
}
