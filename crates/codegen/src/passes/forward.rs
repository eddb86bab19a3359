//! Forwarding: what a thread loads from threadgroup memory after a barrier is loaded from where another
//! thread took it before the barrier. For targets on which threadgroup memory is memory like any other:
//! there a tile's detour through it costs time and saves none.
//!
//! In a threadgroup of X x Y threads, let an array be stored to in one place only, `A[y*P + x] = B[g(x, y)]`
//! with P >= X, B memory that the dispatch does not write, and g computed from where the thread
//! stands and from what is the same for the threadgroup. Behind a barrier
//!
//! ```text
//! A[k*P + x]  ->  B[g(x, k)]   for k < Y
//! ```
//!
//! since y*P + x tells the threads of a full threadgroup apart, so that thread (x, k) stored that element
//! and no other thread did. Only whole rows of a tile are forwarded: what the threads of a row load is then one
//! row of B, as the tile's was. What threads of a column have in common comes from as many lines of B as
//! there are threads, and is better kept together.
//!
//! An element that no thread stored is not forwarded: a threadgroup at an edge of the grid goes the old
//! way, and so does an iteration whose last load would be out of bounds, which targets are slow at. Both is one
//! condition that is the same for the threadgroup, and where it holds nothing is stored.
//!
//! Barriers stay. Deliberately absent: arrays that are stored to in several places, and a second array of
//! the kernel, of which each would double the code of what loads them.

use std::collections::{HashMap, HashSet};

use invar_ir::ops::{Meaning, ResultUniformity};
use invar_ir::{
    AddressSpace, Const, Dim, ElementType, Imm, Inst, InstKind, Kernel, Level, Memory, Module, Op,
    Place, Region, Scalar, Scope, Spaces, Span, Type, Uniformity, Value, ValueInfo, Values, Width,
    analyse,
};

use super::common::{Map, clone_region, constants, integer, new_value, push_const, substitute};
use crate::analysis::affine::{self, Affine, Product, Sum, Symbol};
use crate::analysis::ranges::{self, Known};
use crate::tuning::FORWARDING_THREADS;

/// How deep an index is looked into.
const DEPTH: u32 = 16;

pub(super) fn run(module: &Module, kernel: &mut Kernel) {
    if let Some(plan) = find(module, kernel) {
        let mut body = std::mem::take(&mut kernel.body);
        apply(&mut kernel.values, &mut body, &plan);
        kernel.body = body;
    }
}

// ---- what to do ----

/// A tile that can be forwarded.
struct Plan {
    array: Memory,
    /// Full threadgroups, along x and y.
    size: [u32; 2],
    /// In the region that stores to the array, by number: the load of what is stored, the store, and the
    /// loop with the loads.
    load: usize,
    store: usize,
    user: usize,
    /// What is computed of the load's index from where the thread stands, in order.
    nodes: Vec<Node>,
    source: Place,
    /// The loads from the array, by their results, with the row that each is from.
    rows: HashMap<Value, Value>,
}

/// A step of an index's computation.
struct Node {
    inst: Inst,
    /// Whether it differs along x and along y.
    along: [bool; 2],
}

fn find(module: &Module, kernel: &Kernel) -> Option<Plan> {
    let [x, y, 1] = kernel.threadgroup_size? else {
        return None;
    };
    if x < 2 || y < 2 || x.checked_mul(y)? > FORWARDING_THREADS {
        return None;
    }
    let arrays: Vec<Memory> = (0..kernel.allocs.len())
        .filter(|i| {
            let alloc = &kernel.allocs[*i];
            alloc.space == AddressSpace::Threadgroup
                && matches!(alloc.element, ElementType::Value(Type::Scalar(_)))
        })
        .map(|i| Memory::Alloc(i as u32))
        .collect();
    if arrays.is_empty() {
        return None;
    }
    let known = Known {
        threadgroup_size: kernel.threadgroup_size,
        threads: None,
    };
    let ranges = ranges::analyse(kernel, &known);
    let mut look = Look {
        module,
        kernel,
        size: [x, y],
        uniformity: analyse(module, kernel),
        constants: constants(kernel),
        affine: affine::analyse(kernel, &ranges, known.threadgroup_size),
        uses: HashMap::new(),
    };
    kernel.for_each_inst(&mut |inst| {
        inst.kind
            .for_each_use(|v| *look.uses.entry(v).or_insert(0u32) += 1);
    });
    arrays.into_iter().find_map(|array| look.plan(array))
}

struct Look<'k> {
    module: &'k Module,
    kernel: &'k Kernel,
    size: [u32; 2],
    uniformity: Uniformity,
    constants: HashMap<Value, Const>,
    affine: Affine<'k>,
    uses: HashMap<Value, u32>,
}

impl<'k> Look<'k> {
    fn plan(&self, array: Memory) -> Option<Plan> {
        let accesses = self.accesses(array)?;
        let region = holder(&self.kernel.body, array)?;
        let store = region.insts.iter().position(|inst| stores(inst, array))?;
        let InstKind::Store { place, value } = &region.insts[store].kind else {
            return None;
        };
        let pitch = self.pitch(array, place)?;
        let barrier = store + region.insts[store..].iter().position(orders_threadgroup)?;
        let is_user = |inst: &Inst| loads(inst, array) == accesses && can_be_twice(inst);
        let user = barrier + region.insts[barrier..].iter().position(is_user)?;
        let rows = self.rows(&region.insts[user], array, pitch)?;

        let from = |inst: &Inst| inst.results[..] == [*value];
        let load = region.insts[..store].iter().position(from)?;
        let InstKind::Load(source) = &region.insts[load].kind else {
            return None;
        };
        if !is_element(source) || self.uses.get(value) != Some(&1) || !self.is_input(source.memory)
        {
            return None;
        }
        let mut nodes = Vec::new();
        let mut seen = HashMap::new();
        self.visit(source.index, DEPTH, &mut nodes, &mut seen)?;
        let plan = Plan {
            array,
            size: self.size,
            load,
            store,
            user,
            nodes,
            source: source.clone(),
            rows,
        };
        self.is_row(source.index, &seen).then_some(plan)
    }

    /// How often an array is loaded from, if it is stored to in one place and otherwise not used.
    fn accesses(&self, array: Memory) -> Option<usize> {
        let (mut stores, mut loads, mut others) = (0, 0, 0);
        self.kernel.for_each_inst(&mut |inst| match &inst.kind {
            InstKind::Store { place, .. } if place.memory == array => stores += 1,
            InstKind::Load(place) if place.memory == array => loads += 1,
            InstKind::Load(_) | InstKind::Store { .. } | InstKind::Alloc(_) => {}
            other => other.for_each_memory(|memory| others += u32::from(memory == array)),
        });
        (stores == 1 && others == 0 && loads > 0).then_some(loads)
    }

    /// The distance of rows in an array that is stored to by every thread at a place of its own.
    fn pitch(&self, array: Memory, place: &Place) -> Option<u32> {
        let Memory::Alloc(id) = array else {
            return None;
        };
        let (pitch, row) = self.row(place.index)?;
        let [x, y] = self.size;
        let end = u64::from(pitch) * u64::from(y - 1) + u64::from(x);
        let inside = end <= u64::from(self.kernel.allocs[id as usize].length);
        let is_own = row == Sum::of(Product::of(Symbol::Thread(Dim::Y)));
        let fits = is_own && pitch >= x && inside && is_element(place);
        fits.then_some(pitch)
    }

    /// The loads from the array in a loop, if each is of a row that a thread of a full threadgroup stored.
    fn rows(&self, user: &Inst, array: Memory, pitch: u32) -> Option<HashMap<Value, Value>> {
        let mut counters = HashSet::new();
        let mut rows = HashMap::new();
        self.rows_in(user, array, pitch, &mut counters, &mut rows)?;
        Some(rows)
    }

    fn rows_in(
        &self,
        inst: &Inst,
        array: Memory,
        pitch: u32,
        counters: &mut HashSet<Value>,
        rows: &mut HashMap<Value, Value>,
    ) -> Option<()> {
        match &inst.kind {
            InstKind::For {
                lower,
                upper,
                step,
                body,
                ..
            } => {
                let bounds = [lower, upper, step].map(|v| integer(*self.constants.get(v)?));
                if let [Some(lower), Some(upper), Some(step)] = bounds
                    && lower >= 0
                    && upper <= i128::from(self.size[1])
                    && step > 0
                {
                    counters.insert(body.params[0]);
                }
            }
            InstKind::Load(place) if place.memory == array => {
                let rest = self.sum(place.index)?;
                let rest = rest.plus(&Sum::of(Product::of(Symbol::Thread(Dim::X))), -1);
                // Of one counter there are rows, of which each is its pitch from the next.
                let row = counters.iter().find(|row| {
                    let rows = self.affine.of(**row).sum;
                    rest.clone().plus(&rows, -i64::from(pitch)) == Sum::constant(0)
                })?;
                if !is_element(place) {
                    return None;
                }
                rows.insert(inst.results[0], *row);
            }
            _other => {}
        }
        let mut inner = inst.kind.regions().into_iter().flat_map(|r| &r.insts);
        inner.try_for_each(|inst| self.rows_in(inst, array, pitch, counters, rows))
    }

    /// A buffer that the dispatch does not write.
    fn is_input(&self, memory: Memory) -> bool {
        matches!(memory, Memory::Param(_)) && self.module.is_read_only(self.kernel, memory)
    }

    fn is_uniform(&self, value: Value) -> bool {
        self.uniformity.of(value) >= Level::Threadgroup
    }

    /// What an index is the sum of, modulo two to the 32, in full threadgroups.
    fn sum(&self, index: Value) -> Option<Sum<Product>> {
        let form = self.affine.of(index);
        let fits = self.kernel.ty(index) == Type::Scalar(Scalar::U32) && form.bits >= 32;
        fits.then_some(form.sum)
    }

    /// The pitch and the row of an index `x + pitch*row`, where the row has one symbol, and counts from 0 by 1.
    fn row(&self, index: Value) -> Option<(u32, Sum<Product>)> {
        let x = Product::of(Symbol::Thread(Dim::X));
        let rest = self.sum(index)?.plus(&Sum::of(x), -1);
        match rest.terms() {
            [(row, pitch)] if rest.offset() == 0 && *row != x => {
                let pitch = u32::try_from(*pitch).ok()?;
                Some((pitch, Sum::of(*row)))
            }
            [..] => None,
        }
    }

    /// Lists what an index is computed by from where the thread stands; `None` if that cannot be told.
    fn visit(
        &self,
        value: Value,
        depth: u32,
        nodes: &mut Vec<Node>,
        seen: &mut HashMap<Value, [bool; 2]>,
    ) -> Option<[bool; 2]> {
        if let Some(along) = seen.get(&value) {
            return Some(*along);
        }
        let depth = depth.checked_sub(1)?;
        let along = if self.is_uniform(value) {
            [false; 2]
        } else {
            let inst = self.affine.definition(value)?;
            let along = match &inst.kind {
                InstKind::Op { op, imm, args } => match (op, imm) {
                    (Op::ThreadPositionInThreadgroup | Op::ThreadPositionInGrid, Imm::Dim(dim)) => {
                        [*dim == Dim::X, *dim == Dim::Y]
                    }
                    (Op::ThreadIndexInThreadgroup, _) => [true; 2],
                    _other if matches!(op.row().meaning, Meaning::Query) => return None,
                    _other if !op.exchanges_lanes() => self.all(args, depth, nodes, seen)?,
                    _other => return None,
                },
                InstKind::Load(place) if self.is_input(place.memory) && is_element(place) => {
                    self.all(&[place.index], depth, nodes, seen)?
                }
                _other => return None,
            };
            if along != [false; 2] {
                let inst = inst.clone();
                nodes.push(Node { inst, along });
            }
            along
        };
        seen.insert(value, along);
        Some(along)
    }

    fn all(
        &self,
        values: &[Value],
        depth: u32,
        nodes: &mut Vec<Node>,
        seen: &mut HashMap<Value, [bool; 2]>,
    ) -> Option<[bool; 2]> {
        let mut along = [false; 2];
        for value in values {
            let own = self.visit(*value, depth, nodes, seen)?;
            along = [along[0] | own[0], along[1] | own[1]];
        }
        Some(along)
    }

    /// Whether the threads of a row load what lies side by side.
    fn is_row(&self, index: Value, seen: &HashMap<Value, [bool; 2]>) -> bool {
        let x = Symbol::Thread(Dim::X);
        let Some(sum) = self.sum(index) else {
            return false;
        };
        let Some(1) = sum.coefficient(x).and_then(|by| by.as_constant()) else {
            return false;
        };
        let others = sum.symbols().filter(|symbol| *symbol != x);
        let is_same_along_x = |symbol| match symbol {
            Symbol::Thread(dim) => dim != Dim::X,
            Symbol::Threadgroup(_) | Symbol::Size(_) => true,
            Symbol::Query(op, _) => matches!(
                op.row().uniformity,
                ResultUniformity::Over(scope) if scope >= Scope::Threadgroup
            ),
            Symbol::Iteration(value) | Symbol::Power(value, _) => self.is_uniform(value),
            Symbol::Value(value) => match seen.get(&value) {
                Some([along_x, _]) => !along_x,
                None => self.is_uniform(value),
            },
        };
        others.into_iter().all(is_same_along_x)
    }
}

pub(super) fn is_element(place: &Place) -> bool {
    place.width == Width::One && place.path.is_empty()
}

pub(super) fn stores(inst: &Inst, array: Memory) -> bool {
    matches!(&inst.kind, InstKind::Store { place, .. } if place.memory == array)
}

/// The region that an array is stored to in.
pub(super) fn holder(region: &Region, array: Memory) -> Option<&Region> {
    if region.insts.iter().any(|inst| stores(inst, array)) {
        return Some(region);
    }
    let mut inner = region.insts.iter().flat_map(|inst| inst.kind.regions());
    inner.find_map(|region| holder(region, array))
}

/// Whether it is a barrier of the threadgroup, for its memory.
pub(super) fn orders_threadgroup(inst: &Inst) -> bool {
    matches!(inst.kind, InstKind::Barrier { scope, spaces }
        if scope >= Scope::Threadgroup && spaces.contains(Spaces::THREADGROUP))
}

/// How many loads from an array are in a loop.
fn loads(inst: &Inst, array: Memory) -> usize {
    let own = matches!(&inst.kind, InstKind::Load(place) if place.memory == array);
    let inner = inst.kind.regions().into_iter().flat_map(|r| &r.insts);
    usize::from(own) + inner.map(|inst| loads(inst, array)).sum::<usize>()
}

/// Whether it is a loop whose code may stand in two places, of which one runs.
fn can_be_twice(inst: &Inst) -> bool {
    fn plain(region: &Region) -> bool {
        region.insts.iter().all(|inst| match &inst.kind {
            InstKind::Alloc(_) | InstKind::Barrier { .. } | InstKind::Return => false,
            kind => kind.regions().into_iter().all(plain),
        })
    }
    matches!(&inst.kind, InstKind::For { body, .. } if plain(body))
}

// ---- doing it ----

fn apply(values: &mut Vec<ValueInfo>, region: &mut Region, plan: &Plan) {
    let holds = |region: &Region| holder(region, plan.array).is_some();
    if !region.insts.iter().any(|inst| stores(inst, plan.array)) {
        let inner = region.insts.iter_mut().flat_map(|i| i.kind.regions_mut());
        for region in inner.filter(|region| holds(region)) {
            apply(values, region, plan);
        }
        return;
    }
    let mut forwards = None;
    let mut load = None;
    for (at, inst) in std::mem::take(&mut region.insts).into_iter().enumerate() {
        if at == plan.load {
            load = Some(inst);
        } else if at == plan.store {
            let mut build = Build {
                values,
                out: &mut region.insts,
                span: inst.span,
            };
            let condition = build.condition(plan);
            forwards = Some(condition);
            // What is not stored need not be loaded.
            let copy = load.take().into_iter().chain([inst]).collect();
            let sides = [Vec::new(), copy].map(|insts| (insts, Values::new()));
            build.branch(condition, sides, []);
        } else if let Some(condition) = forwards.filter(|_| at == plan.user) {
            use_twice(values, inst, condition, plan, &mut region.insts);
        } else {
            region.insts.push(inst);
        }
    }
}

/// A loop that loads what was forwarded where the condition holds, and else what it did.
fn use_twice(
    values: &mut Vec<ValueInfo>,
    mut user: Inst,
    condition: Value,
    plan: &Plan,
    out: &mut Vec<Inst>,
) {
    let results = user.results.clone();
    let span = user.span;
    let mut map = Map::new();
    let once = Region {
        params: Vec::new(),
        insts: vec![user.clone()],
    };
    let mut forwarded = clone_region(values, &once, &mut map);
    let of = |value: &Value| map.get(value).copied().unwrap_or(*value);
    let rows = plan.rows.iter().map(|(load, row)| (of(load), of(row)));
    load_again(values, &mut forwarded, &rows.collect(), plan);
    for result in &mut user.results {
        *result = new_value(values, values[result.0 as usize].ty);
    }
    let given = [
        results.iter().map(of).collect(),
        user.results.iter().copied().collect(),
    ];
    let [then, otherwise] = given;
    let sides = [(forwarded.insts, then), (vec![user], otherwise)];
    let mut build = Build { values, out, span };
    build.branch(condition, sides, results);
}

/// Loads from the source what a region loads from the array.
fn load_again(
    values: &mut Vec<ValueInfo>,
    region: &mut Region,
    rows: &HashMap<Value, Value>,
    plan: &Plan,
) {
    for mut inst in std::mem::take(&mut region.insts) {
        for inner in inst.kind.regions_mut() {
            load_again(values, inner, rows, plan);
        }
        if let InstKind::Load(place) = &mut inst.kind
            && place.memory == plan.array
        {
            let mut build = Build {
                values,
                out: &mut region.insts,
                span: inst.span,
            };
            let index = build.index_at(plan, None, rows[&inst.results[0]]);
            *place = Place::element(plan.source.memory, index);
        }
        region.insts.push(inst);
    }
}

/// Instructions at the end of a list.
struct Build<'a> {
    values: &'a mut Vec<ValueInfo>,
    out: &'a mut Vec<Inst>,
    span: Span,
}

impl Build<'_> {
    fn inst(&mut self, kind: InstKind, ty: Type) -> Value {
        let value = new_value(self.values, ty);
        self.out.push(Inst {
            kind,
            results: [value].into_iter().collect(),
            span: self.span,
        });
        value
    }

    fn op(&mut self, op: Op, imm: Imm, args: &[Value], scalar: Scalar) -> Value {
        let args = Values::from_slice(args);
        self.inst(InstKind::Op { op, imm, args }, Type::Scalar(scalar))
    }

    fn constant(&mut self, value: u32) -> Value {
        let scalar = Scalar::U32;
        let bits = value.into();
        push_const(self.values, self.out, Const { scalar, bits }, self.span)
    }

    fn branch(
        &mut self,
        condition: Value,
        sides: [(Vec<Inst>, Values); 2],
        results: impl IntoIterator<Item = Value>,
    ) {
        let span = self.span;
        let [then, otherwise] = sides.map(|(mut insts, yielded)| {
            insts.push(Inst {
                kind: InstKind::Yield(yielded),
                results: [].into_iter().collect(),
                span,
            });
            Region {
                params: Vec::new(),
                insts,
            }
        });
        self.out.push(Inst {
            kind: InstKind::If {
                condition,
                then,
                otherwise,
            },
            results: results.into_iter().collect(),
            span,
        });
    }

    /// Whether the threadgroup is full and its last thread's load in bounds.
    fn condition(&mut self, plan: &Plan) -> Value {
        let mut holds = None;
        for (dim, size) in [Dim::X, Dim::Y].into_iter().zip(plan.size) {
            let own = self.op(Op::ThreadsPerThreadgroup, Imm::Dim(dim), &[], Scalar::U32);
            let full = self.constant(size);
            let is_full = self.op(Op::Eq, Imm::None, &[own, full], Scalar::Bool);
            holds = Some(match holds {
                Some(other) => self.op(Op::And, Imm::None, &[other, is_full], Scalar::Bool),
                None => is_full,
            });
        }
        let [x, y] = plan.size.map(|size| self.constant(size - 1));
        let last = self.index_at(plan, Some(x), y);
        let wide = Imm::Type(Type::Scalar(Scalar::U64));
        let last = self.op(Op::Cast, wide, &[last], Scalar::U64);
        let length = InstKind::BufferLength(plan.source.memory);
        let length = self.inst(length, Type::Scalar(Scalar::U64));
        let inside = self.op(Op::Lt, Imm::None, &[last, length], Scalar::Bool);
        let holds = holds.into_iter().chain([inside]).collect::<Vec<_>>();
        self.op(Op::And, Imm::None, &holds, Scalar::Bool)
    }

    /// The index that the thread at another place computes: in row `y`, and in column `x` unless that is
    /// the thread's own.
    fn index_at(&mut self, plan: &Plan, x: Option<Value>, y: Value) -> Value {
        let mut map = Map::new();
        for node in &plan.nodes {
            let [along_x, along_y] = node.along;
            let differs = along_y || along_x && x.is_some();
            if !differs {
                continue;
            }
            let own = node.inst.results[0];
            let again = match &node.inst.kind {
                InstKind::Op { op, imm, .. } if matches!(op.row().meaning, Meaning::Query) => {
                    self.position_at(*op, *imm, plan.size, x, y)
                }
                kind => {
                    let mut kind = kind.clone();
                    substitute(&map, &mut kind);
                    let ty = self.values[own.0 as usize].ty;
                    self.inst(kind, ty)
                }
            };
            map.insert(own, again);
        }
        let index = plan.source.index;
        map.get(&index).copied().unwrap_or(index)
    }

    /// Where the thread at another place of a full threadgroup stands.
    fn position_at(
        &mut self,
        op: Op,
        imm: Imm,
        [width, height]: [u32; 2],
        x: Option<Value>,
        y: Value,
    ) -> Value {
        let column = |build: &mut Self| match x {
            Some(x) => x,
            None => {
                let own = Op::ThreadPositionInThreadgroup;
                build.op(own, Imm::Dim(Dim::X), &[], Scalar::U32)
            }
        };
        if op == Op::ThreadIndexInThreadgroup {
            let x = column(self);
            return self.sum(y, width, x);
        }
        let (position, size) = match imm {
            Imm::Dim(Dim::X) => (column(self), width),
            _row => (y, height),
        };
        if op == Op::ThreadPositionInThreadgroup {
            return position;
        }
        let group = self.op(Op::ThreadgroupPositionInGrid, imm, &[], Scalar::U32);
        self.sum(group, size, position)
    }

    /// `a*factor + b`.
    fn sum(&mut self, a: Value, factor: u32, b: Value) -> Value {
        let factor = self.constant(factor);
        let product = self.op(Op::Mul, Imm::None, &[a, factor], Scalar::U32);
        self.op(Op::Add, Imm::None, &[product, b], Scalar::U32)
    }
}
