//! Loops that each lane makes by itself: counted ones that begin where the data say and go along memory from there.
//!
//! This is for rows of different lengths one behind another, such as those of sparse matrices and the neighbours of a
//! graph. Lanes side by side would gather from as many places in every iteration, and wait for the longest row; a lane
//! by itself reads on.
//!
//! What the loop takes of all lanes lies in arrays meanwhile, an element for each lane, and what it gives is put there.
//! While code is made for one lane every value is one for the chunk.
//!
//! Deliberately absent: the loop itself (`loops.rs`); iterations with loops or effects of their own.

use std::collections::HashSet;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use invar_codegen::analysis::lanes::Class;
use invar_ir::inst::{InstKind, Region, Value, Width};
use invar_ir::{Inst, Op, Scalar, Type};

use crate::cells::ALIGN;
use crate::emit::{BUILT, vector_of};
use crate::function::FunctionLowering;
use crate::value::{Mask, Part, Parts};

/// An element of a value for each lane of the chunk.
pub(crate) struct LaneArray<'c> {
    pointer: PointerValue<'c>,
    ty: BasicTypeEnum<'c>,
    bytes: u64,
}

/// A loop over the lanes whose code is being made.
pub(crate) struct LaneLoop<'c> {
    lane: IntValue<'c>,
    variable: PointerValue<'c>,
    head: BasicBlock<'c>,
    next: BasicBlock<'c>,
    /// The values of all lanes, for those that are one lane's meanwhile.
    outside: Vec<(Value, Parts<'c>)>,
}

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Whether lanes had better make a counted loop one by one.
    pub fn goes_lane_by_lane(&self, inst: &'k Inst) -> bool {
        let InstKind::For {
            lower, body, init, ..
        } = &inst.kind
        else {
            return false;
        };
        let kernel = self.analysis.kernel;
        let is_number = |v: &Value| match kernel.ty(*v) {
            Type::Scalar(scalar) => scalar != Scalar::Bool,
            _other => false,
        };
        if self.chunk_ref().one_lane {
            return false;
        }
        let classes = self.classes();
        let index = body.params[0];
        let moves = |inst: &Inst| match &inst.kind {
            InstKind::Load(place) => self.goes_on_with(place.index, index),
            _other => false,
        };
        classes.is_masked(inst)
            && classes.of(*lower) == Class::Varying
            && body.insts.iter().any(moves)
            && self.is_plain(body)
            && body.params.iter().chain(init).all(is_number)
            && self.taken(inst, body).iter().all(is_number)
    }

    /// Whether a region does nothing but to compute, to load numbers and to leave a loop early.
    fn is_plain(&self, region: &Region) -> bool {
        region.insts.iter().all(|inst| match &inst.kind {
            InstKind::Load(place) => {
                let global = self.launch.objects[&place.memory].thread.is_none();
                place.width == Width::One && place.path.is_empty() && global
            }
            InstKind::Yield(_) | InstKind::Break(_) | InstKind::Continue(_) => true,
            InstKind::Const(_) => true,
            InstKind::Op { .. } => inst.kind.is_removable() && inst.kind.is_of_one_thread(),
            InstKind::If {
                then, otherwise, ..
            } => self.is_plain(then) && self.is_plain(otherwise),
            _other => false,
        })
    }

    /// Whether a place lies as far behind another in every lane.
    fn goes_on_with(&self, place: Value, index: Value) -> bool {
        let definition = self.analysis.plan.definitions.get(&place);
        let sum = definition.and_then(|inst| inst.kind.as_op());
        place == index || matches!(sum, Some((Op::Add, _, args)) if args.contains(&index))
    }

    /// What a loop takes from outside, that lanes may have different values of.
    fn taken(&self, inst: &Inst, body: &Region) -> Vec<Value> {
        let mut own = HashSet::new();
        let mut used = Vec::new();
        inst.kind.for_each_use(|v| used.push(v));
        walk(body, &mut own, &mut used);
        let mut taken = Vec::new();
        for value in used {
            let varies = || self.known(value).is_none_or(|parts| !parts.is_uniform());
            if !own.contains(&value) && !taken.contains(&value) && varies() {
                taken.push(value);
            }
        }
        taken
    }

    fn lane_array(&self, ty: BasicTypeEnum<'c>, bytes: u64) -> LaneArray<'c> {
        let lanes = self.shape.lanes();
        let array = match ty {
            BasicTypeEnum::FloatType(ty) => ty.array_type(lanes),
            BasicTypeEnum::IntType(ty) => ty.array_type(lanes),
            _other => unreachable!("numbers"),
        };
        LaneArray {
            pointer: self.alloca(array.into(), ALIGN),
            ty,
            bytes,
        }
    }

    /// An array of a value of all lanes.
    pub fn spread_out(&self, value: Value, parts: &Parts<'c>) -> LaneArray<'c> {
        let ty = self.analysis.kernel.ty(value);
        let bytes = ty.scalar().map_or(0, |scalar| scalar.size_bytes());
        let array = self.lane_array(self.e.component_type(ty), bytes);
        for u in 0..self.shape.parts() {
            let vector = self.e.vector(parts.part(0, u as usize), self.shape.width);
            let at = self.vector_of_array(&array, u);
            self.e.store(vector.into(), at, bytes as u32);
        }
        array
    }

    fn vector_of_array(&self, array: &LaneArray<'c>, u: u32) -> PointerValue<'c> {
        let offset = u64::from(u * self.shape.width) * array.bytes;
        self.e.byte_offset(array.pointer, self.e.i64(offset))
    }

    /// The value of all lanes that an array has.
    pub fn put_together(&self, array: &LaneArray<'c>) -> Parts<'c> {
        let ty = vector_of(array.ty, self.shape.width).into();
        let part = |u: u32| {
            let at = self.vector_of_array(array, u);
            let vector = self.e.load(ty, at, array.bytes as u32);
            Part::Vector(vector.into_vector_value())
        };
        let count = self.shape.parts();
        Parts::of((0..count).map(part).collect(), count as usize)
    }

    fn element_of(&self, array: &LaneArray<'c>, lane: IntValue<'c>) -> PointerValue<'c> {
        let e = &self.e;
        let offset = e.mul(e.widen(lane), e.i64(array.bytes));
        e.byte_offset(array.pointer, offset)
    }

    /// Begins a loop over the lanes that are on: what follows is made for one, of which everything that the counted
    /// loop takes is known.
    pub fn begin_lanes(
        &mut self,
        inst: &'k Inst,
        body: &'k Region,
        mask: &Mask<'c>,
    ) -> LaneLoop<'c> {
        let taken = self.taken(inst, body);
        let mut arrays = Vec::new();
        for value in taken {
            let parts = self.get(value);
            arrays.push((value, self.spread_out(value, &parts), parts));
        }
        let on = match mask {
            Mask::All => None,
            Mask::Some(vectors) => {
                let byte = self.e.context.i8_type();
                let on = self.lane_array(byte.into(), 1);
                for (u, vector) in (0..).zip(vectors) {
                    let ty = vector_of(byte.into(), self.shape.width);
                    let bytes = self.e.builder.build_int_z_extend(*vector, ty, "");
                    let at = self.vector_of_array(&on, u);
                    self.e.store(bytes.expect(BUILT).into(), at, 1);
                }
                Some(on)
            }
        };
        let word = self.e.context.i32_type();
        let variable = self.cell(word.into());
        self.e.store(self.e.i32(0).into(), variable, ALIGN);
        let [head, own, next] = ["lane", "lane.on", "lane.next"].map(|name| self.e.block(name));
        self.e.branch(head);
        self.e.go(head);
        let lane = self.e.load(word.into(), variable, ALIGN).into_int_value();
        match &on {
            Some(on) => {
                let at = self.element_of(on, lane);
                let byte = self.e.load(on.ty, at, 1).into_int_value();
                let zero = self.e.context.i8_type().const_zero();
                let is_on = self.e.compare(IntPredicate::NE, byte, zero);
                self.e.branch_if(is_on, own, next);
            }
            None => self.e.branch(own),
        }
        self.e.go(own);
        let mut outside = Vec::new();
        for (value, array, parts) in arrays {
            let at = self.element_of(&array, lane);
            let one = self.e.load(array.ty, at, array.bytes as u32);
            self.chunk().values.insert(value, Parts::uniform(vec![one]));
            outside.push((value, parts));
        }
        self.chunk().divergence += 1;
        self.chunk().one_lane = true;
        LaneLoop {
            lane,
            variable,
            head,
            next,
            outside,
        }
    }

    /// Puts one lane's value into an array.
    pub fn give(&self, lanes: &LaneLoop<'c>, array: &LaneArray<'c>, value: BasicValueEnum<'c>) {
        let at = self.element_of(array, lanes.lane);
        self.e.store(value, at, array.bytes as u32);
    }

    /// Ends a loop over the lanes.
    pub fn end_lanes(&mut self, lanes: LaneLoop<'c>) {
        self.chunk().divergence -= 1;
        self.chunk().one_lane = false;
        self.e.branch(lanes.next);
        self.e.go(lanes.next);
        let following = self.e.add(lanes.lane, self.e.i32(1));
        self.e.store(following.into(), lanes.variable, ALIGN);
        let all = self.e.i32(self.shape.lanes());
        let more = self.e.compare(IntPredicate::ULT, following, all);
        let over = self.e.block("lanes.over");
        self.e.branch_if(more, lanes.head, over);
        self.e.go(over);
        let word = self.e.context.i32_type().into();
        self.free_cell(lanes.variable, word);
        self.chunk().values.extend(lanes.outside);
    }
}

/// The values that a region defines, and those that it uses.
fn walk(region: &Region, own: &mut HashSet<Value>, used: &mut Vec<Value>) {
    own.extend(&region.params);
    for inst in &region.insts {
        inst.kind.for_each_use(|v| used.push(v));
        own.extend(&inst.results);
        for inner in inst.kind.regions() {
            walk(inner, own, used);
        }
    }
}
