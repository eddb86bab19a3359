//! Control flow inside of a chunk: branches where its threads agree, masks where they do not.
//!
//! Invariant: wherever code has an effect or loops, at least one lane of its mask is on. What a mask may
//! have emptied is stepped over by a branch.

use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, VectorValue};
use invar_codegen::analysis::lanes::Class;
use invar_codegen::passes::cost::is_cheap;
use invar_ir::inst::{InstKind, Region, Value};
use invar_ir::{Inst, Op};

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::tuning::{DEEPEST_TWICE, MOST_TWICE};
use crate::value::{Mask, Part, Parts};

/// What comes out at the end of a list of instructions: the lanes that got there, and what they yield.
pub(crate) struct FallThrough<'c> {
    pub mask: Mask<'c>,
    pub values: Vec<Parts<'c>>,
}

/// Code that is stepped over from where no lane is left for it. However often that is asked, all ways lead to
/// one block: blocks within each other, as deep as a kernel has exits, take LLVM's passes long.
struct Skip<'c> {
    /// The lanes that were left where it was asked last.
    lanes: Vec<VectorValue<'c>>,
    /// What comes out of it where none is, as pieces; zeros where nothing is said.
    values: Vec<BasicValueEnum<'c>>,
    /// The blocks that ask.
    before: Vec<BasicBlock<'c>>,
    /// The block behind it.
    join: BasicBlock<'c>,
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    // ---- cells ----

    // ---- masks ----

    // ---- lists of instructions ----

    /// Runs instructions in order under a mask; `None` if no lane comes out at their end. The block may
    /// then be closed.
    pub fn sequence(&mut self, insts: &'k [Inst], mask: Mask<'c>) -> Option<FallThrough<'c>> {
        let mut skip = None;
        let falls = self.in_order(insts, mask, &mut skip);
        match skip {
            Some(skip) => self.join_skip(&skip, insts, falls, None),
            None => falls,
        }
    }

    /// Runs instructions in order. Where lanes have left and there may be none for the rest, the rest is
    /// stepped over by `skip`, which the caller joins.
    fn in_order(
        &mut self,
        insts: &'k [Inst],
        mask: Mask<'c>,
        skip: &mut Option<Skip<'c>>,
    ) -> Option<FallThrough<'c>> {
        let mut mask = mask;
        let mut products = Vec::new();
        let mut last_effect = None;
        for (i, inst) in insts.iter().enumerate() {
            if !self.can_wait(&products, inst) {
                self.multiply(&mut products, &mask);
            }
            if may_write(inst) {
                self.chunk().matrices.clear();
            }
            match &inst.kind {
                InstKind::MatrixMultiplyAccumulate { .. } => products.push(inst),
                InstKind::Yield(values) => {
                    let values = values.iter().map(|v| self.get(*v)).collect();
                    return Some(FallThrough { mask, values });
                }
                InstKind::Break(values) => {
                    self.leave(values, &mask, &mask, true);
                    return None;
                }
                InstKind::Continue(values) => {
                    self.leave(values, &mask, &mask, false);
                    return None;
                }
                InstKind::Return => {
                    // In a masked loop or a divergent `if`, the lanes are in no mask from here on.
                    if self.chunk_ref().divergence == 0 {
                        self.keep_returned(&Mask::Some(self.constant_mask(false)));
                        let end = self.chunk_ref().end;
                        self.e.branch(end);
                    }
                    return None;
                }
                InstKind::If { .. } | InstKind::For { .. } | InstKind::Loop { .. } => {
                    mask = match &inst.kind {
                        InstKind::If { .. } => self.branch(inst, &mask)?,
                        InstKind::For { .. } if self.goes_lane_by_lane(inst) => {
                            self.count_lane_by_lane(inst, &mask)
                        }
                        InstKind::For { .. } => self.count(inst, &mask),
                        _loop => self.repeat(inst, &mask),
                    };
                    self.chunk().matrices.clear();
                    if !self.e.is_open() {
                        return None;
                    }
                    let may_deactivate_lanes = inst.exits().any();
                    if may_deactivate_lanes && matches!(mask, Mask::Some(_)) {
                        let last =
                            last_effect.get_or_insert_with(|| insts.iter().rposition(has_effect));
                        if last.is_some_and(|last| last > i) {
                            let skip = skip.get_or_insert_with(|| self.new_skip(None));
                            self.skip_if_none(skip, &mask);
                        }
                    }
                }
                _flat => {
                    if !self.analysis.plan.is_hoisted(inst) {
                        self.flat(inst, &mask);
                    }
                }
            }
        }
        self.multiply(&mut products, &mask);
        Some(FallThrough {
            mask,
            values: Vec::new(),
        })
    }

    /// Runs the rest of a region if a lane is left for it. The other lanes of what it yields are those of
    /// `others`, if these are given; else they are of no account.
    fn if_any(
        &mut self,
        rest: &'k [Inst],
        mask: &Mask<'c>,
        others: Option<&[Parts<'c>]>,
    ) -> Option<FallThrough<'c>> {
        let mut skip = self.new_skip(others);
        self.skip_if_none(&mut skip, mask);
        let falls = self.sequence(rest, mask.clone());
        self.join_skip(&skip, rest, falls, others)
    }

    /// Code that may be stepped over, before anything asks whether it is.
    fn new_skip(&self, others: Option<&[Parts<'c>]>) -> Skip<'c> {
        let others = others.unwrap_or_default().iter();
        Skip {
            lanes: Vec::new(),
            values: others
                .flat_map(|parts| self.lower(parts, Class::Varying))
                .collect(),
            before: Vec::new(),
            join: self.e.block("rest"),
        }
    }

    /// Goes on where a lane of a mask is on.
    fn skip_if_none(&self, skip: &mut Skip<'c>, mask: &Mask<'c>) {
        skip.lanes = self.lanes(mask);
        let some = self.e.block("some");
        let any = self.e.any(&skip.lanes);
        skip.before.push(self.e.here());
        self.e.branch_if(any, some, skip.join);
        self.e.go(some);
    }

    /// Goes on where the lanes of a skip and those that were stepped over come together, with what falls out
    /// at the end of `insts`.
    fn join_skip(
        &mut self,
        skip: &Skip<'c>,
        insts: &[Inst],
        falls: Option<FallThrough<'c>>,
        others: Option<&[Parts<'c>]>,
    ) -> Option<FallThrough<'c>> {
        let Some(falls) = falls else {
            if self.e.is_open() {
                self.e.branch(skip.join);
            }
            self.e.go(skip.join);
            return None;
        };
        let (values, classes) = match others {
            Some(others) => {
                let pairs = falls.values.iter().zip(others);
                let picked = pairs.map(|(y, n)| self.pick(&skip.lanes, y, n)).collect();
                (picked, vec![Class::Varying; others.len()])
            }
            None => (falls.values, self.yield_classes(insts)),
        };
        let mut pieces: Vec<BasicValueEnum<'c>> = Vec::new();
        let mut counts = Vec::new();
        for (parts, class) in values.iter().zip(&classes) {
            let lowered = self.lower(parts, *class);
            counts.push(lowered.len());
            pieces.extend(lowered);
        }
        pieces.extend(
            self.lanes(&falls.mask)
                .into_iter()
                .map(BasicValueEnum::from),
        );
        let after = self.e.here();
        self.e.branch(skip.join);
        self.e.go(skip.join);
        let merged: Vec<_> = pieces
            .iter()
            .enumerate()
            .map(|(i, piece)| {
                let zero = piece.get_type().const_zero();
                let other = skip.values.get(i).copied().unwrap_or(zero);
                let skipped = skip.before.iter().map(|block| (other, *block));
                let ways: Vec<_> = std::iter::once((*piece, after)).chain(skipped).collect();
                self.e.phi(&ways)
            })
            .collect();
        let mut at = 0;
        let mut values = Vec::new();
        for (class, count) in classes.iter().zip(counts) {
            values.push(self.raise(&merged[at..at + count], *class));
            at += count;
        }
        let lanes = merged[at..].iter().map(|v| v.into_vector_value()).collect();
        Some(FallThrough {
            mask: Mask::Some(lanes),
            values,
        })
    }

    fn yield_classes(&self, insts: &[Inst]) -> Vec<Class> {
        match insts.last().map(|i| &i.kind) {
            Some(InstKind::Yield(values)) => values.iter().map(|v| self.class_of(*v)).collect(),
            _yields_nothing => Vec::new(),
        }
    }

    /// Leaves the iteration or the loop. The values are written in the lanes of `around`: those that leave,
    /// and others that will write again when they do.
    fn leave(&mut self, values: &[Value], mask: &Mask<'c>, around: &Mask<'c>, breaks: bool) {
        let parts: Vec<_> = values.iter().map(|v| self.get(*v)).collect();
        let frame = self.chunk_ref().frames.last().expect("a loop around");
        let cells = if breaks {
            &frame.results
        } else {
            &frame.carried
        }
        .clone();
        match frame.masks.clone() {
            None => {
                let to = if breaks { frame.exit } else { frame.next };
                for (cells, parts) in cells.iter().zip(&parts) {
                    self.write(cells, parts);
                }
                self.e.branch(to);
            }
            Some(masks) => {
                for (cells, parts) in cells.iter().zip(&parts) {
                    self.write_lanes(cells, parts, around);
                }
                let target = if breaks {
                    &masks.left
                } else {
                    &masks.continued
                };
                self.add_to_mask(target, &self.lanes(mask));
            }
        }
    }

    // ---- if ----

    /// An `if`; gives the lanes that come out of it.
    fn branch(&mut self, inst: &'k Inst, mask: &Mask<'c>) -> Option<Mask<'c>> {
        let InstKind::If {
            condition,
            then,
            otherwise,
        } = &inst.kind
        else {
            unreachable!("an `if`");
        };
        let may_deactivate_lanes = inst.exits().any();
        let parts = self.get(*condition);
        if parts.is_uniform() && self.class_of(*condition) == Class::Uniform {
            let Part::Scalar(condition) = parts.part(0, 0) else {
                unreachable!("a value of the chunk");
            };
            return self.branch_together(
                inst,
                [then, otherwise],
                condition,
                mask,
                may_deactivate_lanes,
            );
        }
        let condition = match self.leave_together([then, otherwise], *condition, mask) {
            Some(rest) => rest,
            None => self.vectors(&parts),
        };
        if self.branch_or_retreat(inst, then) {
            return Some(mask.clone());
        }
        if !may_deactivate_lanes && self.is_often_whole(then, otherwise, mask) {
            self.branch_whole(inst, [then, otherwise], &condition);
            return Some(mask.clone());
        }
        let (merged, out) =
            self.branch_apart([then, otherwise], &condition, mask, may_deactivate_lanes)?;
        for (result, parts) in inst.results.iter().zip::<Vec<Parts<'c>>>(merged) {
            self.define(*result, parts, mask);
        }
        Some(if may_deactivate_lanes {
            out
        } else {
            mask.clone()
        })
    }

    /// Breaks for all lanes at once where part of an `if`'s condition is the same for them. Gives the
    /// condition where they do not.
    fn leave_together(
        &mut self,
        sides: [&'k Region; 2],
        condition: Value,
        mask: &Mask<'c>,
    ) -> Option<Vec<VectorValue<'c>>> {
        let chunk = self.chunk_ref();
        let frame = chunk.frames.last()?;
        let masks = frame.masks.as_ref()?;
        // All lanes that are still in the loop must be here.
        if masks.continues || masks.divergence != chunk.divergence {
            return None;
        }
        let exit = frame.exit;
        let (region, when) = sides
            .into_iter()
            .zip([true, false])
            .find(|(region, _)| breaks(region) && is_cheap(region))?;
        let (same, differs, value) = self.parts_of_exit(condition, when)?;
        let (same, differs) = (self.known(same)?, self.known(differs)?);
        let Part::Scalar(same) = same.part(0, 0) else {
            unreachable!("the same for all lanes");
        };
        let (all, some) = (self.e.block("leave.all"), self.e.block("leave.some"));
        let blocks = if value { [all, some] } else { [some, all] };
        self.e
            .branch_if(same.into_int_value(), blocks[0], blocks[1]);
        self.e.go(all);
        self.sequence(&region.insts, mask.clone());
        // The region is gone through once more for the other lanes, and what is known of it here is not there.
        for value in region.insts.iter().flat_map(|inst| &inst.results) {
            self.chunk().values.remove(value);
        }
        self.e.branch(exit);
        self.e.go(some);
        let differs = self.vectors(&differs);
        Some(if value == when {
            differs
        } else {
            self.inverse(&differs)
        })
    }

    /// Two conditions of which one is the same for all lanes and the other is not, and the value of
    /// either that gives `condition` the value `when`.
    fn parts_of_exit(&self, condition: Value, when: bool) -> Option<(Value, Value, bool)> {
        let (mut condition, mut when) = (condition, when);
        let (op, args) = loop {
            let (op, _, args) = self
                .analysis
                .plan
                .definitions
                .get(&condition)?
                .kind
                .as_op()?;
            match (op, args) {
                (Op::Not, [inner]) => (condition, when) = (*inner, !when),
                _other => break (op, args),
            }
        };
        match (op, args, when) {
            (Op::Or, [a, b], true) | (Op::And, [a, b], false) => {
                let same = |v: Value| self.class_of(v) == Class::Uniform;
                match (same(*a), same(*b)) {
                    (true, false) => Some((*a, *b, when)),
                    (false, true) => Some((*b, *a, when)),
                    (true, true) | (false, false) => None,
                }
            }
            _others => None,
        }
    }

    /// An `if` on which the lanes differ: what it yields, and the lanes that come out of it.
    fn branch_apart(
        &mut self,
        [then, otherwise]: [&'k Region; 2],
        condition: &[VectorValue<'c>],
        mask: &Mask<'c>,
        may_deactivate_lanes: bool,
    ) -> Option<(Vec<Parts<'c>>, Mask<'c>)> {
        let masks = [
            self.both_masks(mask, condition),
            self.both_masks(mask, &self.inverse(condition)),
        ];
        self.chunk().divergence += 1;
        // What lanes of the first side left the loop with, the second must not write over.
        let apart = then.exits().breaks.then(|| Mask::Some(masks[1].clone()));
        let around = apart.as_ref().unwrap_or(mask);
        // What a side without instructions yields is there before the other one, which may be skipped.
        let at_once = is_trivial(otherwise) && !is_stepped_through(then);
        let (yes, no) = if at_once {
            let no = self.side(otherwise, &masks[1], around);
            let others = no.as_ref().map(|no| &no.values[..]);
            let lanes = Mask::Some(masks[0].clone());
            (self.if_any(&then.insts, &lanes, others), no)
        } else {
            let yes = self.side(then, &masks[0], mask);
            (yes, self.side(otherwise, &masks[1], around))
        };
        self.chunk().divergence -= 1;
        Some(match (yes, no) {
            (None, None) => return None,
            (Some(one), None) | (None, Some(one)) => (one.values, one.mask),
            (Some(yes), Some(no)) => {
                let merged = if at_once {
                    yes.values
                } else {
                    let pairs = yes.values.iter().zip(&no.values);
                    pairs.map(|(y, n)| self.pick(condition, y, n)).collect()
                };
                let pairs = self.lanes(&yes.mask).into_iter().zip(self.lanes(&no.mask));
                let out = if may_deactivate_lanes {
                    pairs.map(|(a, b)| self.e.or(a, b)).collect()
                } else {
                    Vec::new()
                };
                (merged, Mask::Some(out))
            }
        })
    }

    /// Whether the code of an `if` is made once more for chunks of which all lanes take it: one without
    /// an `else` that accesses memory.
    fn is_often_whole(&self, then: &Region, otherwise: &Region, mask: &Mask<'c>) -> bool {
        let accesses = |i: &Inst| i.kind.is_of_one_thread() && !i.kind.accesses().is_empty();
        *mask == Mask::All
            && self.chunk_ref().fast
            && self.chunk_ref().twice < DEEPEST_TWICE
            && is_trivial(otherwise)
            && then.insts.len() <= MOST_TWICE
            && self.made_twice <= self.analysis.most_twice
            && then.insts.iter().any(accesses)
    }

    /// An `if` that a full chunk need not go through with a mask, because where not all its threads take it the
    /// code for any chunk is for it, if their places tell.
    fn branch_or_retreat(&mut self, inst: &'k Inst, then: &'k Region) -> bool {
        let InstKind::If { condition, .. } = &inst.kind else {
            unreachable!("an `if`");
        };
        let any = match self.chunk_ref().retreat {
            Some((key, any)) if key == std::ptr::from_ref(inst) => any,
            Some(_) | None => return false,
        };
        let Some(all) = self.holds_for_all(*condition) else {
            return false;
        };
        let whole = self.e.block("then.whole");
        self.e.branch_mostly(all, whole, any);
        self.e.go(whole);
        let falls = self.sequence(&then.insts, Mask::All);
        let falls = falls.expect("a way that goes on");
        for (result, parts) in inst.results.iter().zip(&falls.values) {
            let class = self.class_of(*result);
            let parts = self.raise(&self.lower(parts, class), class);
            self.define(*result, parts, &Mask::All);
        }
        true
    }

    /// Such an `if`: without a mask where all lanes take it.
    fn branch_whole(
        &mut self,
        inst: &'k Inst,
        [then, otherwise]: [&'k Region; 2],
        condition: &[VectorValue<'c>],
    ) {
        let [whole, apart, join] = ["then.whole", "then.apart", "join"].map(|n| self.e.block(n));
        let InstKind::If {
            condition: of_all, ..
        } = &inst.kind
        else {
            unreachable!("an `if`");
        };
        match self.holds_for_all(*of_all) {
            Some(all) => self.e.branch_if(all, whole, apart),
            None => {
                let off = self.e.any(&self.inverse(condition));
                self.e.branch_if(off, apart, whole);
            }
        }
        let classes: Vec<Class> = inst.results.iter().map(|r| self.class_of(*r)).collect();
        let mut incoming: Vec<(Vec<BasicValueEnum<'c>>, BasicBlock<'c>)> = Vec::new();
        for block in [whole, apart] {
            self.e.go(block);
            let values = if block == whole {
                self.made_twice += then.insts.len();
                self.chunk().twice += 1;
                let falls = self.sequence(&then.insts, Mask::All);
                self.chunk().twice -= 1;
                falls.map(|falls| falls.values)
            } else {
                let both = self.branch_apart([then, otherwise], condition, &Mask::All, false);
                both.map(|(values, _)| values)
            };
            let values = values.expect("a way that ends where it joins the other");
            let pairs = values.iter().zip(&classes);
            let pieces = pairs.flat_map(|(v, c)| self.lower(v, *c)).collect();
            incoming.push((pieces, self.e.here()));
            self.e.branch(join);
        }
        self.e.go(join);
        let merged: Vec<_> = (0..incoming[0].0.len())
            .map(|i| {
                let ways: Vec<_> = incoming.iter().map(|(p, block)| (p[i], *block)).collect();
                self.e.phi(&ways)
            })
            .collect();
        let mut at = 0;
        for (result, class) in inst.results.iter().zip(&classes) {
            let count = self
                .lowered_types(self.analysis.kernel.ty(*result), *class)
                .len();
            let parts = self.raise(&merged[at..at + count], *class);
            at += count;
            self.define(*result, parts, &Mask::All);
        }
    }

    /// One side of an `if` on which the lanes differ, of those around it.
    fn side(
        &mut self,
        region: &'k Region,
        lanes: &[VectorValue<'c>],
        around: &Mask<'c>,
    ) -> Option<FallThrough<'c>> {
        let mask = Mask::Some(lanes.to_vec());
        if is_stepped_through(region) {
            if let Some((last, rest)) = region.insts.split_last()
                && let InstKind::Break(values) = &last.kind
            {
                self.sequence(rest, mask.clone());
                self.leave(values, &mask, around, true);
                return None;
            }
            return self.sequence(&region.insts, mask);
        }
        self.if_any(&region.insts, &mask, None)
    }

    /// An `if` on which all lanes agree.
    fn branch_together(
        &mut self,
        inst: &'k Inst,
        regions: [&'k Region; 2],
        condition: BasicValueEnum<'c>,
        mask: &Mask<'c>,
        may_deactivate_lanes: bool,
    ) -> Option<Mask<'c>> {
        let blocks = [self.e.block("then"), self.e.block("else")];
        let join = self.e.block("join");
        self.e
            .branch_if(condition.into_int_value(), blocks[0], blocks[1]);
        let classes: Vec<Class> = inst.results.iter().map(|r| self.class_of(*r)).collect();
        // The pieces of the results and the mask of each side that reaches the join; the pieces are
        // `None` where no lane does, though control does.
        let mut incoming: Vec<(Option<Vec<BasicValueEnum<'c>>>, BasicBlock<'c>)> = Vec::new();
        for (block, region) in blocks.into_iter().zip(regions) {
            self.e.go(block);
            let falls = self.sequence(&region.insts, mask.clone());
            if !self.e.is_open() {
                continue;
            }
            let pieces = falls.map(|falls| {
                let mut pieces = Vec::new();
                for (parts, class) in falls.values.iter().zip(&classes) {
                    pieces.extend(self.lower(parts, *class));
                }
                if may_deactivate_lanes {
                    pieces.extend(
                        self.lanes(&falls.mask)
                            .into_iter()
                            .map(BasicValueEnum::from),
                    );
                }
                pieces
            });
            incoming.push((pieces, self.e.here()));
            self.e.branch(join);
        }
        self.e.go(join);
        let Some(some) = incoming.iter().find_map(|(pieces, _)| pieces.clone()) else {
            if incoming.is_empty() {
                self.e.builder.build_unreachable().expect(BUILT);
            }
            return None;
        };
        let merged: Vec<_> = (0..some.len())
            .map(|i| {
                let ways: Vec<_> = incoming
                    .iter()
                    .map(|(pieces, block)| {
                        let zero = some[i].get_type().const_zero();
                        (pieces.as_ref().map_or(zero, |p| p[i]), *block)
                    })
                    .collect();
                if ways.len() == 1 {
                    ways[0].0
                } else {
                    self.e.phi(&ways)
                }
            })
            .collect();
        let mut at = 0;
        for (result, class) in inst.results.iter().zip(&classes) {
            let count = self
                .lowered_types(self.analysis.kernel.ty(*result), *class)
                .len();
            let parts = self.raise(&merged[at..at + count], *class);
            at += count;
            self.define(*result, parts, mask);
        }
        Some(if may_deactivate_lanes {
            Mask::Some(merged[at..].iter().map(|v| v.into_vector_value()).collect())
        } else {
            mask.clone()
        })
    }

    // ---- loops ----
}

/// Whether memory may hold something else after an instruction, or after one of its regions.
fn may_write(inst: &Inst) -> bool {
    inst.kind.may_change_memory() || inst.kind.has_regions()
}

/// Whether an instruction may not run under an empty mask, or not for nothing. A load may be proved to be in
/// bounds for the lanes that make it only.
fn has_effect(inst: &Inst) -> bool {
    let kind = &inst.kind;
    let mut inner = kind.regions().into_iter().flat_map(|region| &region.insts);
    kind.is_loop() || kind.meets().is_some() || !kind.accesses().is_empty() || inner.any(has_effect)
}

/// Whether a region ends by leaving its loop.
fn breaks(region: &Region) -> bool {
    let last = region.insts.last();
    last.is_some_and(|inst| matches!(inst.kind, InstKind::Break(_)))
}

/// Whether a region only yields.
fn is_trivial(region: &Region) -> bool {
    matches!(region.insts[0].kind, InstKind::Yield(_))
}

/// Whether a side of an `if` is run without asking whether a lane takes it.
fn is_stepped_through(region: &Region) -> bool {
    is_trivial(region) || is_cheap(region)
}
