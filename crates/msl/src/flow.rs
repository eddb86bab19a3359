//! From blocks and jumps to `if` and `loop`.
//!
//! What several ways lead to is written once, behind the block that dominates it. A region that can go on in
//! several places yields the number of the place and what each would have; where it is one, only that. A way
//! back is `continue`, a way out of a loop `break`, and no block is written twice but the end of the kernel.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use invar_ir::inst::MAX_NESTING;
use invar_ir::room::with_room;
use invar_ir::{Const, Diagnostic, InstKind, Op, Region, Rule, Span, Type, Value};
use invar_llvm::foreign::{Kind, Operand};

use crate::translator::{Done, Translator};

/// What a block and the way to the next take of the stack, and more.
const BLOCK_BYTES: usize = 128 << 10;

/// The most blocks that a loop leaves to: each way out hands on values for all of them.
const MAX_EXITS: usize = 256;

/// The loop around what is being written.
struct Around {
    header: usize,
    /// The blocks that it leaves to, in order.
    exits: Vec<usize>,
    /// What it carries: the header's phis, and then what it leaves with.
    carried: Vec<Value>,
}

/// Where a region is written.
#[derive(Clone, Default)]
struct Context {
    around: Option<Rc<Around>>,
    /// The blocks that the region may go on in, in order.
    targets: Vec<usize>,
    /// Whether the kernel ends behind the region: to end there is to go on.
    is_last: bool,
}

impl Context {
    fn with(&self, targets: Vec<usize>) -> Context {
        Context {
            around: self.around.clone(),
            targets,
            is_last: false,
        }
    }
}

impl Translator<'_> {
    /// Writes the function.
    pub fn body(&mut self) -> Done<()> {
        if self.graph.is_irreducible() {
            return Err(self.refuse("a loop that is entered in two places"));
        }
        self.block(0, &Context::default())
    }

    /// Whether a block does nothing but end the kernel.
    fn ends(&self, block: usize) -> bool {
        let insts = &self.f.blocks[block].insts;
        insts.len() == 1
            && matches!(
                self.f.insts[insts[0]].kind,
                Kind::Return | Kind::Unreachable
            )
    }

    fn successors(&self, block: usize) -> Vec<usize> {
        match self.f.blocks[block]
            .insts
            .last()
            .map(|i| &self.f.insts[*i].kind)
        {
            Some(Kind::Jump(to)) => vec![*to],
            Some(Kind::Branch(yes, no)) => vec![*yes, *no],
            _ends => Vec::new(),
        }
    }

    fn is_inside(&self, block: usize, context: &Context) -> bool {
        context
            .around
            .as_ref()
            .is_none_or(|around| self.graph.loops[&around.header].contains(&block))
    }

    /// Which targets the ways from these blocks reach, in order.
    fn reached(&self, from: &[usize], targets: &[usize], context: &Context) -> Vec<usize> {
        let found = self.found(from, targets, targets.len(), context);
        found.into_iter().map(|place| targets[place]).collect()
    }

    /// The places among some targets of those that the ways from these blocks reach, as many as are wanted.
    fn found(
        &self,
        from: &[usize],
        targets: &[usize],
        wanted: usize,
        context: &Context,
    ) -> BTreeSet<usize> {
        let mut seen = HashSet::new();
        let mut found = BTreeSet::new();
        let mut open = from.to_vec();
        let header = context.around.as_ref().map(|a| a.header);
        while found.len() < wanted
            && let Some(block) = open.pop()
        {
            if Some(block) == header || !self.is_inside(block, context) || self.ends(block) {
                continue;
            }
            if let Some(place) = targets.iter().position(|t| *t == block) {
                found.insert(place);
            } else if seen.insert(block) {
                open.extend(self.successors(block));
            }
        }
        found
    }

    /// The types of what a region hands on that may go on in these blocks.
    fn layout(&self, targets: &[usize]) -> Done<Vec<Type>> {
        let mut types = Vec::new();
        if targets.len() > 1 {
            types.push(Type::U32);
        }
        for target in targets {
            for phi in self.phis(*target) {
                types.extend(self.phi_types(phi)?);
            }
        }
        Ok(types)
    }

    /// What a region hands on that goes on in one of them: its values there, and any elsewhere.
    fn handed_on(&mut self, targets: &[usize], to: usize, values: &[Value]) -> Done<Vec<Value>> {
        let mut all = Vec::new();
        if let Some(place) = targets.iter().position(|t| *t == to)
            && targets.len() > 1
        {
            all.push(self.constant(Const::from(place as u32)));
        }
        for target in targets {
            if *target == to {
                all.extend(values);
                continue;
            }
            for ty in self.layout(&[*target])? {
                all.push(self.zero(ty)?);
            }
        }
        Ok(all)
    }

    /// The values of one of them in what a region hands on.
    fn part(&self, targets: &[usize], of: usize, results: &[Value]) -> Done<Vec<Value>> {
        let mut from = usize::from(targets.len() > 1);
        for target in targets {
            let count = self.layout(&[*target])?.len();
            if *target == of {
                return Ok(results[from..from + count].to_vec());
            }
            from += count;
        }
        Ok(Vec::new())
    }

    /// An `if` at a place; what both sides hand on is handed on itself, since it depends on no condition.
    fn joined(&mut self, span: Span, condition: Value, yes: Region, no: Region) -> Vec<Value> {
        let handed = |region: &Region| match region.insts.last().map(|inst| &inst.kind) {
            Some(InstKind::Yield(values)) => values.to_vec(),
            _leaves => Vec::new(),
        };
        let same: Vec<Option<Value>> = handed(&yes)
            .into_iter()
            .zip(handed(&no))
            .map(|(a, b)| (a == b).then_some(a))
            .collect();
        self.k.set_span(span);
        let mut results = self.k.if_regions(condition, yes, no).to_vec();
        for (result, same) in results.iter_mut().zip(same) {
            *result = same.unwrap_or(*result);
        }
        results
    }

    /// Makes the constants that blocks get on several ways, so that they are one value on all of them.
    fn constants_of(&mut self, targets: &[usize]) -> Done<()> {
        let f = self.f;
        let phis: Vec<usize> = targets.iter().flat_map(|t| self.phis(*t)).collect();
        for phi in phis {
            let [Type::Scalar(scalar)] = self.phi_types(phi)?[..] else {
                continue;
            };
            let again = self.again.entry(phi).or_insert_with(|| {
                let mut ways: HashMap<u64, usize> = HashMap::new();
                let bits = f.insts[phi]
                    .operands
                    .iter()
                    .filter_map(|operand| match operand {
                        Operand::Bits(_, bits) => Some(*bits),
                        _other => None,
                    });
                bits.filter(|bits| {
                    let ways = ways.entry(*bits).or_default();
                    *ways += 1;
                    *ways == 2
                })
                .collect()
            });
            for bits in again.clone() {
                self.bits(scalar, bits);
            }
        }
        Ok(())
    }

    /// Goes to a block with the values of its phis.
    fn arrive(&mut self, to: usize, values: &[Value], context: &Context) -> Done<()> {
        if self.ends(to) {
            self.end(context);
            return Ok(());
        }
        if let Some(around) = &context.around {
            if to == around.header {
                let rest = around.carried[values.len()..].to_vec();
                let all = [values, &rest].concat();
                self.k.continue_(&all);
                return Ok(());
            }
            if !self.is_inside(to, context) {
                let count = around.carried.len() - self.layout(&around.exits)?.len();
                let mut all = around.carried[..count].to_vec();
                all.extend(self.handed_on(&around.exits, to, values)?);
                self.k.break_(&all);
                return Ok(());
            }
        }
        if context.targets.contains(&to) {
            let all = self.handed_on(&context.targets, to, values)?;
            self.k.yield_(&all);
            return Ok(());
        }
        if self.graph.loops.contains_key(&to) {
            return self.repeat(to, values, context);
        }
        self.bind(to, values)?;
        self.block(to, context)
    }

    /// Ends the kernel. Of a loop behind which it ends that is a `break`: so such a loop can be one that counts.
    fn end(&mut self, context: &Context) {
        match &context.around {
            Some(around) if around.exits.is_empty() => self.k.break_(&around.carried.clone()),
            _other if context.is_last => self.k.yield_(&[]),
            _other => self.k.return_(),
        }
    }

    fn leave(&mut self, from: usize, to: usize, context: &Context) -> Done<()> {
        let values = match self.ends(to) {
            true => Vec::new(),
            false => self.phi_values(to, from)?,
        };
        self.arrive(to, &values, context)
    }

    fn leaves_to_too_many(&self) -> Diagnostic {
        Diagnostic::error(
            Rule::LimitExceeded,
            self.k.span(),
            format!("a loop is left to at most {MAX_EXITS} places, after each of which something else is done"),
        )
        .help("leave the loop with a number that says what is to be done, and do it after the loop")
    }

    /// Writes a loop, and what follows it.
    fn repeat(&mut self, header: usize, values: &[Value], context: &Context) -> Done<()> {
        let exits = self.graph.exits(header);
        let exits: Vec<usize> = exits.into_iter().filter(|e| !self.ends(*e)).collect();
        if exits.len() > MAX_EXITS {
            return Err(self.leaves_to_too_many());
        }
        let mut init = values.to_vec();
        for ty in self.layout(&exits)? {
            init.push(self.zero(ty)?);
        }
        let types: Vec<Type> = init.iter().map(|v| self.k.ty(*v)).collect();
        let carried = self.open(&types);
        self.bind(header, &carried[..values.len()])?;
        let inside = Context {
            around: Some(Rc::new(Around {
                header,
                exits: exits.clone(),
                carried,
            })),
            ..Context::default()
        };
        self.block(header, &inside)?;
        let body = self.close();
        let results = self.k.push(
            InstKind::Loop {
                init: init.iter().copied().collect(),
                body,
            },
            &types,
        );
        let results = results[values.len()..].to_vec();
        let around = context.around.as_ref().map(|a| a.header);
        let followers = self.graph.followers(header, around);
        let followers: Vec<usize> = followers.into_iter().filter(|b| !self.ends(*b)).collect();
        self.go_on(&results, &exits, &followers, context)
    }

    /// Goes on in one of several places, as what a region handed on says. `followers` are the blocks that
    /// are to be written here.
    fn go_on(
        &mut self,
        results: &[Value],
        places: &[usize],
        followers: &[usize],
        context: &Context,
    ) -> Done<()> {
        // What is handed on further comes last.
        let key = |place: &usize| (context.targets.contains(place), self.graph.position(*place));
        let Some(first) = places.iter().copied().min_by_key(key) else {
            self.end(context);
            return Ok(());
        };
        let values = self.part(places, first, results)?;
        let rest: Vec<usize> = places.iter().copied().filter(|p| *p != first).collect();
        if rest.is_empty() {
            return self.arrive(first, &values, context);
        }
        let number = places.iter().position(|p| *p == first).unwrap_or(0);
        let number = self.constant(Const::from(number as u32));
        let here = self.op(Op::Eq, &[results[0], number]);
        if context.targets.contains(&first) {
            self.open(&[]);
            self.arrive(first, &values, context)?;
            let yes = self.close();
            self.open(&[]);
            let handed = self.renumber(places, &rest, results)?;
            self.go_on(&handed, &rest, followers, context)?;
            let no = self.close();
            let results = self.joined(self.k.span(), here, yes, no);
            self.k.yield_(&results);
            return Ok(());
        }
        let is_jump = !self.is_inside(first, context)
            || context.around.as_ref().is_some_and(|a| a.header == first);
        let mut all = rest.clone();
        if !is_jump {
            let targets = [followers, &context.targets].concat();
            let targets: Vec<usize> = targets.into_iter().filter(|t| *t != first).collect();
            let after = self.reached(&self.successors_of(first, context), &targets, context);
            all.extend(after.into_iter().filter(|t| !rest.contains(t)));
        }
        self.open(&[]);
        self.arrive(first, &values, &context.with(all.clone()))?;
        let yes = self.close();
        self.open(&[]);
        let handed = self.renumber(places, &all, results)?;
        self.k.yield_(&handed);
        let no = self.close();
        let results = self.joined(self.k.span(), here, yes, no);
        self.go_on(&results, &all, followers, context)
    }

    /// Where a place leads; of a loop, where that leaves to.
    fn successors_of(&self, block: usize, context: &Context) -> Vec<usize> {
        let is_own = context.around.as_ref().is_some_and(|a| a.header == block);
        match self.graph.loops.contains_key(&block) && !is_own {
            true => self.graph.exits(block),
            false => self.successors(block),
        }
    }

    /// What was handed on for some places, as it is for others.
    fn renumber(&mut self, from: &[usize], to: &[usize], results: &[Value]) -> Done<Vec<Value>> {
        let mut all = Vec::new();
        if to.len() > 1 {
            let mut number = self.constant(Const::from(0u32));
            for (new, place) in to.iter().enumerate().skip(1) {
                let Some(old) = from.iter().position(|p| p == place) else {
                    continue;
                };
                let (old, new) = (
                    self.constant(Const::from(old as u32)),
                    self.constant(Const::from(new as u32)),
                );
                let is = self.op(Op::Eq, &[results[0], old]);
                number = self.op(Op::Select, &[number, new, is]);
            }
            all.push(number);
        }
        for target in to {
            if from.contains(target) {
                all.extend(self.part(from, *target, results)?);
                continue;
            }
            for ty in self.layout(&[*target])? {
                all.push(self.zero(ty)?);
            }
        }
        Ok(all)
    }

    /// Writes a block whose phis have their values, and everything that follows: so kernels of many blocks need
    /// much of the stack.
    fn block(&mut self, block: usize, context: &Context) -> Done<()> {
        if self.depth() > MAX_NESTING {
            return Err(self.nests_too_deep());
        }
        with_room(BLOCK_BYTES, || self.block_and_rest(block, context))
    }

    fn block_and_rest(&mut self, block: usize, context: &Context) -> Done<()> {
        let f = self.f;
        let insts = &f.blocks[block].insts;
        for inst in insts {
            self.inst(*inst)?;
        }
        let header = context.around.as_ref().map(|a| a.header);
        let followers = self.graph.followers(block, header);
        let followers: Vec<usize> = followers.into_iter().filter(|b| !self.ends(*b)).collect();
        let Some(last) = insts.last() else {
            return Err(self.refuse("an empty block"));
        };
        self.at(f.insts[*last].location);
        match &f.insts[*last].kind {
            Kind::Jump(to) => self.leave(block, *to, context),
            Kind::Branch(yes, no) => {
                let (yes, no) = (*yes, *no);
                let targets = [&followers[..], &context.targets].concat();
                let reached = self.reached(&[yes, no], &targets, context);
                self.branch((block, *last), (yes, no), &reached, &followers, context)
            }
            _ends => {
                self.end(context);
                Ok(())
            }
        }
    }

    fn branch(
        &mut self,
        (block, last): (usize, usize),
        (yes, no): (usize, usize),
        targets: &[usize],
        followers: &[usize],
        context: &Context,
    ) -> Done<()> {
        if let Some(Operand::Undefined | Operand::Poison) = self.f.insts[last].operands.first() {
            return Err(self.refuse("a condition that nothing computes"));
        }
        let condition = self.one(last, 0)?;
        let span = self.k.span();
        let inner = context.with(targets.to_vec());
        self.constants_of(targets)?;
        let wanted = targets.len().min(1);
        let goes_on = |t: &Self, to| !t.found(&[to], targets, wanted, context).is_empty();
        // Where no side comes back, both end in one place, so that no thread leaves another behind.
        if context.around.is_none() && !goes_on(self, yes) && !goes_on(self, no) {
            let last = Context {
                is_last: true,
                ..Context::default()
            };
            self.open(&[]);
            self.leave(block, yes, &last)?;
            let then = self.close();
            self.open(&[]);
            self.leave(block, no, &last)?;
            let otherwise = self.close();
            self.joined(span, condition, then, otherwise);
            self.end(context);
            return Ok(());
        }
        // A side that never comes back stands by itself.
        for (side, other, holds) in [(yes, no, true), (no, yes, false)] {
            if goes_on(self, side) {
                continue;
            }
            let condition = match holds {
                true => condition,
                false => self.op(Op::Not, &[condition]),
            };
            self.open(&[]);
            self.leave(block, side, &inner)?;
            let region = self.close();
            self.open(&[]);
            let otherwise = self.close();
            self.joined(span, condition, region, otherwise);
            return self.leave(block, other, context);
        }
        self.open(&[]);
        self.leave(block, yes, &inner)?;
        let then = self.close();
        self.open(&[]);
        self.leave(block, no, &inner)?;
        let otherwise = self.close();
        let results = self.joined(span, condition, then, otherwise);
        self.go_on(&results, targets, followers, context)
    }
}
