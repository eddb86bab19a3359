//! Control flow inside of a chunk: branches where its threads agree, masks where they do not.
//!
//! Invariant: wherever code has an effect or loops, at least one lane of its mask is on. What a mask may
//! have emptied is stepped over by a branch.

use inkwell::basic_block::BasicBlock;
use inkwell::types::{AsTypeRef, BasicTypeEnum};
use inkwell::values::{BasicValueEnum, PointerValue, VectorValue};
use invar_codegen::analysis::lanes::Class;
use invar_codegen::passes::cost::is_cheap;
use invar_ir::inst::{InstKind, Region, Value};
use invar_ir::{Inst, Op, Scalar};

use crate::emit::{BUILT, vector_of};
use crate::iterations::Counted;
use crate::kernel::FunctionLowering;
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

/// A value that changes: one cell for each lowered piece.
#[derive(Clone)]
pub(crate) struct Cells<'c> {
    pub class: Class,
    cells: Vec<(PointerValue<'c>, BasicTypeEnum<'c>)>,
}

impl<'c> Cells<'c> {
    /// How many of a chunk's vectors are kept apart.
    pub fn parts(&self, parts: u32) -> u32 {
        match self.class {
            Class::Uniform => 1,
            Class::Line(_) | Class::Varying => parts,
        }
    }

    /// Components of the value.
    pub fn components(&self, parts: u32) -> u32 {
        self.cells.len() as u32 / self.parts(parts)
    }

    /// The type of its pieces.
    pub fn piece_type(&self) -> BasicTypeEnum<'c> {
        self.cells[0].1
    }
}

/// A loop around.
pub(crate) struct Frame<'c> {
    pub carried: Vec<Cells<'c>>,
    pub results: Vec<Cells<'c>>,
    pub masks: Option<FrameMasks<'c>>,
    pub next: BasicBlock<'c>,
    pub exit: BasicBlock<'c>,
}

/// The masks of a loop whose threads take different numbers of rounds.
#[derive(Clone)]
pub(crate) struct FrameMasks<'c> {
    /// How many divergent ifs and masked loops are around what its rounds do for all their lanes.
    divergence: u32,
    /// Whether lanes may continue early with the next round.
    continues: bool,
    /// Lanes that continue early with the next round.
    continued: Cells<'c>,
    /// Lanes that left the loop by its end or a `break`.
    pub left: Cells<'c>,
}

impl<'c> FrameMasks<'c> {
    fn cells(&self) -> [&Cells<'c>; 2] {
        [&self.continued, &self.left]
    }
}

const ALIGN: u32 = 64;

impl<'c, 'k> FunctionLowering<'c, 'k> {
    // ---- cells ----

    fn cells(&mut self, types: Vec<BasicTypeEnum<'c>>, class: Class) -> Cells<'c> {
        let cells = types.into_iter().map(|ty| (self.cell(ty), ty)).collect();
        Cells { class, cells }
    }

    /// A variable of the chunk's code.
    pub fn cell(&mut self, ty: BasicTypeEnum<'c>) -> PointerValue<'c> {
        let spare = &mut self.chunk().spare_cells;
        let found = spare.get_mut(&ty.as_type_ref()).and_then(Vec::pop);
        found.unwrap_or_else(|| self.alloca(ty, ALIGN))
    }

    /// Leaves it to whoever needs one next: nobody reads it any more before it is written. For what LLVM takes
    /// to make values of variables grows with their number times that of blocks.
    pub fn free_cell(&mut self, pointer: PointerValue<'c>, ty: BasicTypeEnum<'c>) {
        let spare = &mut self.chunk().spare_cells;
        spare.entry(ty.as_type_ref()).or_default().push(pointer);
    }

    fn free<'a>(&mut self, list: impl IntoIterator<Item = &'a Cells<'c>>)
    where
        'c: 'a,
    {
        for (pointer, ty) in list.into_iter().flat_map(|cells| &cells.cells) {
            self.free_cell(*pointer, *ty);
        }
    }

    fn cells_of(&mut self, value: Value) -> Cells<'c> {
        let class = self.classes().of(value);
        self.cells(self.lowered_types(self.kernel.ty(value), class), class)
    }

    fn mask_cells(&mut self) -> Cells<'c> {
        let ty = vector_of(self.e.context.bool_type().into(), self.shape.width).into();
        let types = vec![ty; self.shape.parts() as usize];
        self.cells(types, Class::Varying)
    }

    pub fn write(&self, cells: &Cells<'c>, parts: &Parts<'c>) {
        for ((cell, _), piece) in cells.cells.iter().zip(self.lower(parts, cells.class)) {
            self.e.store(piece, *cell, ALIGN);
        }
    }

    /// Writes the lanes of a mask.
    fn write_lanes(&self, cells: &Cells<'c>, parts: &Parts<'c>, mask: &Mask<'c>) {
        let pieces = self.lower(parts, cells.class);
        for (i, ((cell, ty), piece)) in cells.cells.iter().zip(pieces).enumerate() {
            let part = i % self.shape.parts() as usize;
            let piece = match mask.part(part) {
                None => piece,
                Some(lanes) => {
                    debug_assert!(cells.class == Class::Varying, "lanes of a vector");
                    let old = self.e.load(*ty, *cell, ALIGN);
                    self.e.select(lanes.into(), piece, old)
                }
            };
            self.e.store(piece, *cell, ALIGN);
        }
    }

    pub fn read(&self, cells: &Cells<'c>) -> Parts<'c> {
        let pieces: Vec<_> = cells
            .cells
            .iter()
            .map(|(cell, ty)| self.e.load(*ty, *cell, ALIGN))
            .collect();
        self.raise(&pieces, cells.class)
    }

    pub fn write_mask(&self, cells: &Cells<'c>, mask: &[VectorValue<'c>]) {
        for ((cell, _), lanes) in cells.cells.iter().zip(mask) {
            self.e.store((*lanes).into(), *cell, ALIGN);
        }
    }

    pub fn read_mask(&self, cells: &Cells<'c>) -> Vec<VectorValue<'c>> {
        let load = |(cell, ty): &(PointerValue<'c>, BasicTypeEnum<'c>)| {
            self.e.load(*ty, *cell, ALIGN).into_vector_value()
        };
        cells.cells.iter().map(load).collect()
    }

    fn add_to_mask(&self, cells: &Cells<'c>, mask: &[VectorValue<'c>]) {
        let old = self.read_mask(cells);
        let both: Vec<_> = old
            .iter()
            .zip(mask)
            .map(|(a, b)| self.e.or(*a, *b))
            .collect();
        self.write_mask(cells, &both);
    }

    // ---- masks ----

    pub fn constant_mask(&self, on: bool) -> Vec<VectorValue<'c>> {
        let ty = self.e.context.bool_type();
        let lane = if on {
            ty.const_all_ones()
        } else {
            ty.const_zero()
        };
        let lanes = vec![lane; self.shape.width as usize];
        vec![inkwell::types::VectorType::const_vector(&lanes); self.shape.parts() as usize]
    }

    /// A mask as vectors.
    pub fn lanes(&self, mask: &Mask<'c>) -> Vec<VectorValue<'c>> {
        match mask {
            Mask::All => self.constant_mask(true),
            Mask::Some(list) => list.clone(),
        }
    }

    fn both_masks(&self, mask: &Mask<'c>, other: &[VectorValue<'c>]) -> Vec<VectorValue<'c>> {
        match mask {
            Mask::All => other.to_vec(),
            Mask::Some(list) => {
                let pairs = list.iter().zip(other);
                pairs.map(|(a, b)| self.e.and(*a, *b)).collect()
            }
        }
    }

    fn inverse(&self, mask: &[VectorValue<'c>]) -> Vec<VectorValue<'c>> {
        mask.iter().map(|m| self.e.not(*m)).collect()
    }

    fn vectors(&self, parts: &Parts<'c>) -> Vec<VectorValue<'c>> {
        (0..self.shape.parts() as usize)
            .map(|u| self.e.vector(parts.part(0, u), self.shape.width))
            .collect()
    }

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
                    if !self.plan.is_hoisted(inst) {
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
                self.phi(&ways)
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
            Some(InstKind::Yield(values)) => values.iter().map(|v| self.classes().of(*v)).collect(),
            _yields_nothing => Vec::new(),
        }
    }

    fn phi(&self, incoming: &[(BasicValueEnum<'c>, BasicBlock<'c>)]) -> BasicValueEnum<'c> {
        let ty = incoming[0].0.get_type();
        let phi = self.e.builder.build_phi(ty, "").expect(BUILT);
        for (value, block) in incoming {
            phi.add_incoming(&[(value, *block)]);
        }
        phi.as_basic_value()
    }

    /// Leaves the round or the loop. The values are written in the lanes of `around`: those that leave,
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
        if parts.is_uniform() && self.classes().of(*condition) == Class::Uniform {
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
            let (op, _, args) = self.plan.definitions.get(&condition)?.kind.as_op()?;
            match (op, args) {
                (Op::Not, [inner]) => (condition, when) = (*inner, !when),
                _other => break (op, args),
            }
        };
        match (op, args, when) {
            (Op::Or, [a, b], true) | (Op::And, [a, b], false) => {
                let same = |v: Value| self.classes().of(v) == Class::Uniform;
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
        const MOST: usize = 48;
        // What is inside is made once more at each depth.
        const DEEPEST: u32 = 3;
        let accesses = |i: &Inst| i.kind.is_of_one_thread() && !i.kind.accesses().is_empty();
        *mask == Mask::All
            && self.chunk_ref().fast
            && self.chunk_ref().twice < DEEPEST
            && is_trivial(otherwise)
            && then.insts.len() <= MOST
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
        self.branch_mostly(all, whole, any);
        self.e.go(whole);
        let falls = self.sequence(&then.insts, Mask::All);
        let falls = falls.expect("a way that goes on");
        for (result, parts) in inst.results.iter().zip(&falls.values) {
            let class = self.classes().of(*result);
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
        let classes: Vec<Class> = inst.results.iter().map(|r| self.classes().of(*r)).collect();
        let mut incoming: Vec<(Vec<BasicValueEnum<'c>>, BasicBlock<'c>)> = Vec::new();
        for block in [whole, apart] {
            self.e.go(block);
            let values = if block == whole {
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
                self.phi(&ways)
            })
            .collect();
        let mut at = 0;
        for (result, class) in inst.results.iter().zip(&classes) {
            let count = self.lowered_types(self.kernel.ty(*result), *class).len();
            let parts = self.raise(&merged[at..at + count], *class);
            at += count;
            self.define(*result, parts, &Mask::All);
        }
    }

    /// Lane by lane one of two values.
    fn pick(&self, condition: &[VectorValue<'c>], yes: &Parts<'c>, no: &Parts<'c>) -> Parts<'c> {
        if yes == no {
            return yes.clone();
        }
        let count = self.shape.parts() as usize;
        let mut list = Vec::new();
        for c in 0..yes.components() {
            for (u, lanes) in condition.iter().enumerate() {
                let [a, b] = [yes, no].map(|p| self.e.vector(p.part(c, u), self.shape.width));
                let picked = self.e.select((*lanes).into(), a.into(), b.into());
                list.push(Part::Vector(picked.into_vector_value()));
            }
        }
        if list.is_empty() {
            return yes.clone();
        }
        Parts::of(list, count)
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
        let classes: Vec<Class> = inst.results.iter().map(|r| self.classes().of(*r)).collect();
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
                    self.phi(&ways)
                }
            })
            .collect();
        let mut at = 0;
        for (result, class) in inst.results.iter().zip(&classes) {
            let count = self.lowered_types(self.kernel.ty(*result), *class).len();
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

    pub fn frame(&mut self, inst: &Inst, body: &Region, masked: bool) -> Frame<'c> {
        let carried = inst.carried().iter();
        let carried = carried.map(|v| self.cells_of(*v)).collect();
        let results = inst.results.iter();
        let results = results.map(|v| self.cells_of(*v)).collect();
        let masks = masked.then(|| FrameMasks {
            divergence: self.chunk_ref().divergence + 1,
            continues: body.exits().continues,
            continued: self.mask_cells(),
            left: self.mask_cells(),
        });
        Frame {
            carried,
            results,
            masks,
            next: self.e.block("next"),
            exit: self.e.block("left"),
        }
    }

    /// Runs a round: reads what is carried, runs the body, and writes what the next round gets. Gives
    /// the lanes of the next round, if the loop has masks.
    pub fn iteration(
        &mut self,
        body: &'k Region,
        frame: Frame<'c>,
        first: usize,
        mask: Mask<'c>,
    ) -> Option<Vec<VectorValue<'c>>> {
        let carried = frame.carried.clone();
        let (masks, next) = (frame.masks.clone(), frame.next);
        for (param, cells) in body.params[first..].iter().zip(&carried) {
            let parts = self.read(cells);
            self.define(*param, parts, &mask);
        }
        let continues = body.exits().continues;
        if let Some(masks) = &masks {
            self.write_mask(&masks.continued, &self.constant_mask(false));
        }
        self.chunk().divergence += u32::from(masks.is_some());
        self.chunk().frames.push(frame);
        let falls = self.sequence(&body.insts, mask);
        self.chunk().frames.pop();
        self.chunk().divergence -= u32::from(masks.is_some());
        let fell = masks.as_ref().map(|_| self.mask_cells());
        if let Some(falls) = &falls {
            for (cells, parts) in carried.iter().zip(&falls.values) {
                if masks.is_some() && continues {
                    self.write_lanes(cells, parts, &falls.mask);
                } else {
                    self.write(cells, parts);
                }
            }
        }
        if self.e.is_open() {
            if let Some(fell) = &fell {
                let none = || self.constant_mask(false);
                let lanes = falls.map_or_else(none, |falls| self.lanes(&falls.mask));
                self.write_mask(fell, &lanes);
            }
            self.e.branch(next);
        }
        self.e.go(next);
        let (Some(masks), Some(fell)) = (masks, fell) else {
            return None;
        };
        let cells = fell;
        let fell = self.read_mask(&cells);
        self.free([&cells]);
        if !continues {
            return Some(fell);
        }
        let continued = self.read_mask(&masks.continued);
        let pairs = fell.iter().zip(&continued);
        Some(pairs.map(|(a, b)| self.e.or(*a, *b)).collect())
    }

    /// The results of a loop, and the lanes that come out of it.
    fn after(
        &mut self,
        inst: &'k Inst,
        results: &[Cells<'c>],
        left: Option<&Cells<'c>>,
        mask: &Mask<'c>,
    ) -> Mask<'c> {
        for (result, cells) in inst.results.iter().zip(results) {
            let parts = self.read(cells);
            self.define(*result, parts, mask);
        }
        match left {
            Some(left) if inst.exits().returns => Mask::Some(self.read_mask(left)),
            Some(_) | None => mask.clone(),
        }
    }

    /// A `loop`.
    fn repeat(&mut self, inst: &'k Inst, mask: &Mask<'c>) -> Mask<'c> {
        let InstKind::Loop { init, body } = &inst.kind else {
            unreachable!("a `loop`");
        };
        let masked = self.classes().is_masked(inst);
        let frame = self.frame(inst, body, masked);
        let (carried, results) = (frame.carried.clone(), frame.results.clone());
        let (masks, exit) = (frame.masks.clone(), frame.exit);
        for (cells, value) in carried.iter().zip(init) {
            let parts = self.get(*value);
            self.write(cells, &parts);
        }
        self.zero(&results);
        let head = self.e.block("loop");
        let live = self.mask_cells();
        if let Some(masks) = &masks {
            self.write_mask(&live, &self.lanes(mask));
            self.write_mask(&masks.left, &self.constant_mask(false));
        }
        self.e.branch(head);
        self.e.go(head);
        let inside = if masked {
            Mask::Some(self.read_mask(&live))
        } else {
            mask.clone()
        };
        let on = self.iteration(body, frame, 0, inside);
        self.poll();
        match on {
            Some(on) => {
                self.write_mask(&live, &on);
                let any = self.e.any(&on);
                self.e.branch_if(any, head, exit);
            }
            None => self.e.branch(head),
        }
        self.e.go(exit);
        let out = self.after(inst, &results, masks.as_ref().map(|m| &m.left), mask);
        self.free(carried.iter().chain(&results).chain([&live]));
        self.free(masks.iter().flat_map(FrameMasks::cells));
        out
    }

    /// Cells that may be read where nothing was written hold zeros.
    pub fn zero(&self, list: &[Cells<'c>]) {
        for (cell, ty) in list.iter().flat_map(|c| &c.cells) {
            self.e.store(ty.const_zero(), *cell, ALIGN);
        }
    }

    /// A `for`.
    fn count(&mut self, inst: &'k Inst, mask: &Mask<'c>) -> Mask<'c> {
        let InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        } = &inst.kind
        else {
            unreachable!("a `for`");
        };
        let masked = self.classes().is_masked(inst);
        let frame = self.frame(inst, body, masked);
        let (carried, results) = (frame.carried.clone(), frame.results.clone());
        let (masks, exit, next) = (frame.masks.clone(), frame.exit, frame.next);
        let scalar = self.kernel.ty(*lower).scalar().unwrap_or(Scalar::U32);
        let step_scalar = self.kernel.ty(*step).scalar().unwrap_or(scalar);
        let index = self.cells_of(body.params[0]);
        let bounds = [*lower, *upper, *step].map(|v| self.get(v));
        self.write(&index, &bounds[0]);
        for (cells, value) in carried.iter().zip(init) {
            let parts = self.get(*value);
            self.write(cells, &parts);
        }
        let head = self.e.block("for");
        let live = self.mask_cells();
        self.zero(&results);
        let counted = Counted {
            inst,
            index: &index,
            bounds: &bounds,
            scalars: [scalar, step_scalar],
            carried: &carried,
            results: &results,
            masks: masks.as_ref(),
            exit,
        };
        // Rounds that all lanes make come first, without masks.
        let narrow = scalar.bits().max(step_scalar.bits()) <= 32;
        let latch = if masked && self.begins_unmasked(body, narrow, &bounds, mask) {
            let latch = self.unmasked_iterations(body, &counted, mask);
            if latch.is_none() {
                self.close(&[head, next]);
                return self.after_counted(inst, &counted, &live, mask);
            }
            latch
        } else {
            self.iterations_made(&counted)
        };
        let goes = self.for_each_part(&bounds, |m, b| m.goes(scalar, step_scalar, b));
        match &masks {
            None => {
                let Part::Scalar(goes) = goes.part(0, 0) else {
                    unreachable!("a value of the chunk");
                };
                for (result, cells) in results.iter().zip(&carried) {
                    let parts = self.read(cells);
                    self.write(result, &parts);
                }
                self.e.branch_if(goes.into_int_value(), head, exit);
            }
            Some(masks) => {
                let goes = self.vectors(&goes);
                let on = self.both_masks(mask, &goes);
                let done = self.both_masks(mask, &self.inverse(&goes));
                self.finish_lanes(&results, &carried, &done);
                self.write_mask(&masks.left, &done);
                self.write_mask(&live, &on);
                let any = self.e.any(&on);
                self.e.branch_if(any, head, exit);
            }
        }
        if let (Some(latch), Some(masks)) = (latch, &masks) {
            // Lanes that made their last round together with others go apart.
            self.e.go(latch);
            self.take_over(&counted);
            self.write_mask(&masks.left, &self.constant_mask(false));
            self.next_lanes(&counted, masks, &live, self.lanes(mask), head);
        }
        self.e.go(head);
        let now = self.read_index(&index, &bounds[0]);
        let inside = if masked {
            Mask::Some(self.read_mask(&live))
        } else {
            mask.clone()
        };
        if self.is_small(body.params[0], &inside) && now.is_uniform() {
            self.note_small(now.part(0, 0));
        }
        self.define(body.params[0], now, mask);
        let on = self.iteration(body, frame, 1, inside);
        self.poll_sometimes();
        match (&masks, on) {
            (Some(masks), Some(on)) => self.next_lanes(&counted, masks, &live, on, head),
            (_, _) => {
                let more = self.advance(&counted);
                let Part::Scalar(more) = more.part(0, 0) else {
                    unreachable!("a value of the chunk");
                };
                for (result, cells) in results.iter().zip(&carried) {
                    let parts = self.read(cells);
                    self.write(result, &parts);
                }
                self.e.branch_if(more.into_int_value(), head, exit);
            }
        }
        self.after_counted(inst, &counted, &live, mask)
    }

    /// Goes on behind a `for`.
    fn after_counted(
        &mut self,
        inst: &'k Inst,
        counted: &Counted<'_, 'c>,
        live: &Cells<'c>,
        mask: &Mask<'c>,
    ) -> Mask<'c> {
        self.e.go(counted.exit);
        let left = counted.masks.map(|m| &m.left);
        let out = self.after(inst, counted.results, left, mask);
        let both = counted.carried.iter().chain(counted.results);
        self.free(both.chain([counted.index, live]));
        self.free(counted.masks.into_iter().flat_map(FrameMasks::cells));
        out
    }

    /// The index of the next round; gives whether there is one.
    fn advance(&self, counted: &Counted<'_, 'c>) -> Parts<'c> {
        let [scalar, step_scalar] = counted.scalars;
        let [first, upper, step] = counted.bounds;
        let now = self.read_index(counted.index, first);
        let bounds = [now, upper.clone(), step.clone()];
        let more = self.for_each_part(&bounds, |m, b| m.following(scalar, step_scalar, b).0);
        let following = self.next_index(counted.index, &bounds, scalar, step_scalar);
        self.write(counted.index, &following);
        more
    }

    /// Ends a round of the lanes `on`: those that have another one go on with the loop.
    fn next_lanes(
        &self,
        counted: &Counted<'_, 'c>,
        masks: &FrameMasks<'c>,
        live: &Cells<'c>,
        on: Vec<VectorValue<'c>>,
        head: BasicBlock<'c>,
    ) {
        let more = self.vectors(&self.advance(counted));
        let pairs = || on.iter().zip(&more);
        let stay: Vec<_> = pairs().map(|(a, b)| self.e.and(*a, *b)).collect();
        let done: Vec<_> = pairs()
            .map(|(a, b)| self.e.and(*a, self.e.not(*b)))
            .collect();
        self.finish_lanes(counted.results, counted.carried, &done);
        self.add_to_mask(&masks.left, &done);
        self.write_mask(live, &stay);
        let any = self.e.any(&stay);
        self.e.branch_if(any, head, counted.exit);
    }

    /// Lanes that leave a counted loop by its end take what it carries.
    fn finish_lanes(&self, results: &[Cells<'c>], carried: &[Cells<'c>], done: &[VectorValue<'c>]) {
        let mask = Mask::Some(done.to_vec());
        for (result, cells) in results.iter().zip(carried) {
            let parts = self.read(cells);
            self.write_lanes(result, &parts, &mask);
        }
    }

    /// Applies a function to scalars or vectors, part by part.
    pub fn for_each_part(
        &self,
        values: &[Parts<'c>; 3],
        f: impl Fn(&Self, [BasicValueEnum<'c>; 3]) -> BasicValueEnum<'c>,
    ) -> Parts<'c> {
        let whole = values.iter().all(Parts::is_uniform);
        let count = if whole {
            1
        } else {
            self.shape.parts() as usize
        };
        let list = (0..count)
            .map(|u| {
                let parts = [0, 1, 2].map(|i| values[i].part(0, u));
                let scalars = parts.map(|p| match p {
                    Part::Scalar(s) => Some(s),
                    Part::Affine { .. } | Part::Vector(_) => None,
                });
                if let [Some(a), Some(b), Some(c)] = scalars {
                    return Part::Scalar(f(self, [a, b, c]));
                }
                let vectors = parts.map(|p| self.e.vector(p, self.shape.width).into());
                Part::Vector(f(self, vectors).into_vector_value())
            })
            .collect();
        Parts::of(list, count)
    }

    /// The index of a round. Its vectors stay as far from each other as they were in the first.
    pub fn read_index(&self, index: &Cells<'c>, first: &Parts<'c>) -> Parts<'c> {
        let now = self.read(index);
        let along = self.shape.along as usize;
        if now.is_uniform() || along == 1 {
            return now;
        }
        let count = self.shape.parts() as usize;
        let list = (0..count)
            .map(|u| {
                let beside = [u, u - u % along].map(|u| match (first.part(0, u), now.part(0, u)) {
                    (Part::Affine { base, .. }, Part::Affine { base: now, .. }) => {
                        Some((base, now))
                    }
                    _other => None,
                });
                match (beside, now.part(0, u)) {
                    (
                        [Some((own, _)), Some((first, now))],
                        Part::Affine {
                            stride,
                            exact,
                            aligned,
                            ..
                        },
                    ) => self.difference(own, first).map(|by| Part::Affine {
                        base: self.plus(now, by),
                        stride,
                        exact,
                        aligned,
                    }),
                    _other => None,
                }
                .unwrap_or_else(|| now.part(0, u))
            })
            .collect();
        Parts::of(list, count)
    }

    /// The index of the next round; it keeps its stride.
    pub fn next_index(
        &self,
        index: &Cells<'c>,
        bounds: &[Parts<'c>; 3],
        scalar: Scalar,
        step_scalar: Scalar,
    ) -> Parts<'c> {
        if let Class::Line(line) = index.class
            && line.stride != 0
        {
            let count = self.shape.parts() as usize;
            let step = |u: usize| match bounds[2].part(0, u) {
                Part::Scalar(s) => s.into_int_value(),
                Part::Affine { .. } | Part::Vector(_) => unreachable!("one step for all"),
            };
            let list = (0..count)
                .map(|u| match bounds[0].part(0, u) {
                    Part::Affine { base, .. } => Part::Affine {
                        base: self.e.add(base, step(u)),
                        stride: line.stride,
                        exact: line.exact,
                        aligned: line.aligned,
                    },
                    other => other,
                })
                .collect();
            return Parts::of(list, count);
        }
        // The end does not matter here, and may differ where the index does not.
        let [index, _, step] = bounds.clone();
        let bounds = [index.clone(), index, step];
        self.for_each_part(&bounds, |m, b| m.following(scalar, step_scalar, b).1)
    }

    /// Whether a counted loop has a first round: `[lower, upper, step]`.
    pub fn goes(
        &self,
        scalar: Scalar,
        step_scalar: Scalar,
        [lower, upper, step]: [BasicValueEnum<'c>; 3],
    ) -> BasicValueEnum<'c> {
        let zero = step.get_type().const_zero();
        let below = self.eval(Op::Lt, scalar, Scalar::Bool, &[lower, upper]);
        let above = self.eval(Op::Gt, scalar, Scalar::Bool, &[lower, upper]);
        let up = self.eval(Op::Gt, step_scalar, Scalar::Bool, &[step, zero]);
        let down = self.eval(Op::Lt, step_scalar, Scalar::Bool, &[step, zero]);
        let and = |a, b| self.eval(Op::And, Scalar::Bool, Scalar::Bool, &[a, b]);
        let up = and(up, below);
        if !step_scalar.is_signed_integer() {
            return up;
        }
        let down = and(down, above);
        self.eval(Op::Or, Scalar::Bool, Scalar::Bool, &[up, down])
    }

    /// Whether a counted loop has a further round, and its index then: `[index, upper, step]`. The index
    /// is inside its bounds, so that the distance to the end does not wrap.
    pub fn following(
        &self,
        scalar: Scalar,
        step_scalar: Scalar,
        [index, upper, step]: [BasicValueEnum<'c>; 3],
    ) -> (BasicValueEnum<'c>, BasicValueEnum<'c>) {
        let unsigned = match scalar.bits() {
            8 => Scalar::U8,
            16 => Scalar::U16,
            32 => Scalar::U32,
            _ => Scalar::U64,
        };
        let sub = |a, b| self.eval(Op::Sub, unsigned, unsigned, &[a, b]);
        let less = |a, b| self.eval(Op::Lt, unsigned, Scalar::Bool, &[a, b]);
        let next = self.eval(Op::Add, unsigned, unsigned, &[index, step]);
        let up = less(step, sub(upper, index));
        if !step_scalar.is_signed_integer() {
            return (up, next);
        }
        let zero = step.get_type().const_zero();
        let down = less(sub(zero, step), sub(index, upper));
        let rises = self.eval(Op::Gt, step_scalar, Scalar::Bool, &[step, zero]);
        (self.e.select(rises, up, down), next)
    }

    /// One component of an operation, of scalars or vectors.
    pub fn eval(
        &self,
        op: Op,
        from: Scalar,
        to: Scalar,
        args: &[BasicValueEnum<'c>],
    ) -> BasicValueEnum<'c> {
        crate::ops::eval(&self.e, op, from, to, args)
    }
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
