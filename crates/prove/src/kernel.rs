//! A kernel under proof: what is known of it once for all questions, and the questions themselves.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use invar_ir::texture::extent_name;
use invar_ir::{
    AccessMode, AddressSpace, Dim, ElementType, Elements, InstKind, Kernel, MatrixPlace, Memory,
    MemoryAccess, Module, Op, Order, ParamKind, Step, Type, Value, Width, analyse,
};

use crate::condition::Number;
use crate::held::AllReached;
use crate::iterations::{Unrolled, relate};
use crate::launch::Launch;
use crate::linear::{Formula, Linear, Problem, within};
use crate::query::{Int, Query};
use crate::shape::{Definition, Id, Iteration, Iterations, Shape};
use crate::solve::Answer;
use crate::subject::{
    ASIDE, Among, Direction, Engine, Extent, Finding, MAIN, Pair, Part, Relation, Site, Subject,
    Texel,
};
use crate::thread::{LARGEST_TEXTURE, Slot, Thread};

impl<'k> Subject<'k> {
    /// Looks at a kernel of a verified module.
    /// `wide` are dimensions in which its author launches it with more than one thread.
    pub fn new(
        module: &'k Module,
        kernel: &'k Kernel,
        engine: Engine,
        wide: [bool; 3],
    ) -> Subject<'k> {
        let shape = Shape::of(kernel);
        let uniformity = analyse(module, kernel);
        let (mut asked, mut flat, mut counts) = ([false; 3], true, false);
        kernel.for_each_inst(&mut |inst| match &inst.kind {
            InstKind::Op { op, imm, .. } => {
                let dim = match imm {
                    invar_ir::Imm::Dim(d) => *d as usize,
                    invar_ir::Imm::None | invar_ir::Imm::Type(_) | invar_ir::Imm::Swizzle(_) => 0,
                };
                match op {
                    Op::ThreadPositionInGrid => asked[dim] = true,
                    Op::ThreadPositionInThreadgroup | Op::ThreadgroupPositionInGrid => {
                        asked[dim] = true;
                        flat = false;
                    }
                    Op::ThreadsPerThreadgroup
                    | Op::ThreadgroupsPerGrid
                    | Op::DispatchThreadsPerThreadgroup => flat = false,
                    op if op.row().capability != invar_ir::ops::Capability::Core => {
                        counts = true;
                        flat = false;
                    }
                    Op::ThreadIndexInThreadgroup => {
                        counts = true;
                        flat = false;
                    }
                    _elementwise => {}
                }
            }
            InstKind::Barrier { .. } => flat = false,
            kind if kind.meets().is_some() => {
                counts = true;
                flat = false;
            }
            _flat => {}
        });
        let threadgroup_memory = AddressSpace::is_of_threadgroup;
        flat &= !kernel.allocs.iter().any(|a| threadgroup_memory(a.space));
        flat &= !(kernel.params.iter()).any(|p| matches!(p.kind, ParamKind::Threadgroup { .. }));
        let mut unused = [0, 1, 2].map(|d| !asked[d] && !wide[d]);
        if counts || asked == [false; 3] {
            unused[0] = false;
        }
        if counts && let Some(size) = kernel.threadgroup_size {
            for d in 0..3 {
                unused[d] &= size[d] <= 1;
            }
        }
        let mut subject = Subject {
            module,
            kernel,
            shape,
            uniformity,
            unused,
            flat,
            sites: Vec::new(),
            parts: Vec::new(),
            offsets: Vec::new(),
            conditions: RefCell::new(Vec::new()),
            engine,
            proofs: RefCell::new(BTreeMap::new()),
            needed: RefCell::new(BTreeSet::new()),
            used: RefCell::new(BTreeSet::new()),
            held: RefCell::new(AllReached::new()),
            tables: RefCell::new(HashMap::new()),
            unrolled: Unrolled::default(),
            invariants: RefCell::new(HashMap::new()),
            strides: RefCell::new(HashMap::new()),
            proving_invariant: Cell::new(false),
            tops: RefCell::new(BTreeSet::new()),
            asked: Cell::new(0),
            pivots: Cell::new(0),
            hurried: Cell::new(false),
            decided: RefCell::new(None),
        };
        subject.find_sites();
        subject.find_parts();
        subject.find_offsets();
        for id in 0..subject.shape.statements.len() {
            for number in 0..subject.shape.carried(id).len() {
                subject.invariants(id, number);
            }
        }
        subject
    }

    fn find_sites(&mut self) {
        for (id, statement) in self.shape.statements.iter().enumerate() {
            let kind = &statement.inst.kind;
            for MemoryAccess {
                memory,
                mode,
                elements,
            } in kind.accesses()
            {
                let texels = self.texels_of(memory, kind).map(|texels| (texels, &[][..]));
                let (extent, path): (Extent, &'k [Step]) = texels.unwrap_or_else(|| match kind {
                    InstKind::Load(place)
                    | InstKind::Store { place, .. }
                    | InstKind::Atomic { place, .. } => (Extent::Width(place.width), &place.path),
                    InstKind::Copy { count, .. } => (Extent::Count(*count), &[]),
                    InstKind::MatrixLoad {
                        place: MatrixPlace { row, .. },
                    }
                    | InstKind::MatrixStore {
                        place: MatrixPlace { row, .. },
                        ..
                    } => (Extent::Matrix(*row), &[]),
                    _async_copy => (Extent::Open, &[]),
                });
                let index = match elements {
                    Elements::Place(place) => place.index,
                    Elements::Run(first) | Elements::Shared(first) | Elements::Texels(first) => {
                        first
                    }
                };
                self.sites.push(Site {
                    id,
                    memory,
                    mode,
                    index,
                    extent,
                    path,
                });
            }
        }
    }

    fn find_parts(&mut self) {
        for (id, statement) in self.shape.statements.iter().enumerate() {
            let InstKind::Op { op, args, .. } = &statement.inst.kind else {
                continue;
            };
            let Some(operand) = op.part_operand() else {
                continue;
            };
            let count = match self.kernel.ty(args[0]) {
                Type::Vector(_, count) => count,
                Type::Matrix { columns, .. } => columns,
                Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => continue,
            };
            self.parts.push(Part {
                id,
                index: args[operand],
                count: i128::from(count),
                is_taken: *op == Op::Extract,
            });
        }
    }

    /// Whether there may be a launch that fulfils the conditions, with elements of which the kernel requires something.
    pub fn is_possible(&self) -> bool {
        let (mut q, _) = self.query(true);
        self.say_held(&mut q);
        self.refuted(&q.problem, ASIDE).is_err()
    }

    /// A model of the conditions with numbers of the launch within a limit, if there is one; what they do not speak of
    /// is left open.
    pub fn model(&self, limit: Option<i128>) -> Option<Launch> {
        let (mut q, _) = self.query(true);
        self.say_held(&mut q);
        let mut problem = q.problem.clone();
        limit_launch(&q, &mut problem, limit);
        match self.solved(&problem, ASIDE) {
            Answer::Values(values) => Some(self.launch(&q, &values)),
            Answer::Refuted(_) | Answer::Unknown => None,
        }
    }

    /// Whether no thread gets to an access in any launch that fulfils the conditions. It proves nothing of the kernel.
    pub fn is_never_reached(&self, number: usize) -> bool {
        let kept = (self.used.borrow().clone(), self.needed.borrow().clone());
        let id = self.sites[number].id;
        let (mut q, _) = self.query(true);
        let mut t = Thread::new(1, self.any_iterations(id));
        self.reach(&mut q, &mut t, id);
        let mut problem = q.problem.clone();
        problem.facts.extend(t.path.iter().cloned());
        let answer = self.solved(&problem, ASIDE);
        self.used.replace(kept.0);
        self.needed.replace(kept.1);
        matches!(answer, Answer::Refuted(_))
    }

    /// The first element of an access and how many there are.
    fn location(&self, q: &mut Query, t: &mut Thread, site: &Site<'_>) -> Option<(Linear, i128)> {
        let index = self.int(q, t, site.index)?;
        if index.high < 1 << 20 {
            self.tops.borrow_mut().insert(index.high + 1);
        }
        match &site.extent {
            Extent::Width(Width::One) => Some((index.form, 1)),
            Extent::Width(Width::Run(n)) => Some((index.form, i128::from(*n))),
            Extent::Width(Width::Group(n)) => {
                let n = i128::from(*n);
                Some((index.form.times(n)?, n))
            }
            Extent::Count(count) => {
                let count = self.int(q, t, *count)?;
                let key = format!(
                    "thread{} element of {} {:?}",
                    t.tag,
                    site.id,
                    site.mode.reads()
                );
                let at = q.symbol(&key, 0, 1 << 64);
                let within = Formula::lt(&at.form, &count.form)?;
                t.path.push(within);
                Some((index.form.plus(1, &at.form)?, 1))
            }
            Extent::Matrix(row) => {
                let row = self.int(q, t, *row)?;
                let key = format!("thread{} entry of {}", t.tag, site.id);
                let r = q.symbol(&format!("{key}, row"), 0, 7);
                let c = q.symbol(&format!("{key}, column"), 0, 7);
                let offset = q.product(&r.form, &row.form)?.plus(1, &c.form)?;
                Some((index.form.plus(1, &offset)?, 1))
            }
            Extent::Texel(_) | Extent::Sample(_) | Extent::Open => None,
        }
    }

    /// How many there are of what an index of an access to a texture counts.
    pub fn end_of(
        &self,
        q: &mut Query,
        t: &mut Thread,
        site: &Site<'_>,
        among: Among,
    ) -> Option<Int> {
        match among {
            Among::Texels(d) => {
                let level = match &site.extent {
                    Extent::Texel(Texel {
                        level: Some(level), ..
                    }) => self.int(q, t, *level)?,
                    _first => Int::constant(0),
                };
                self.texels_of_level(q, site.memory, d, &level)
            }
            Among::OfArray => Some(self.elements(q, site.memory)),
            Among::Samples => Some(self.samples(q, site.memory)),
            Among::Levels => Some(self.levels(q, site.memory)),
            Among::Parts(count) => Some(Int::constant(count)),
            Among::Elements => None,
        }
    }

    /// The coordinates and the level of the texel of an access, which is one that there is by what is said of it. A
    /// texture that is sampled is never written: with which texels does not matter.
    pub fn texel(
        &self,
        q: &mut Query,
        t: &mut Thread,
        site: &Site<'_>,
    ) -> Option<(Vec<Linear>, Vec<Formula>)> {
        let Extent::Texel(texel) = &site.extent else {
            return None;
        };
        let (mut at, mut inside) = (Vec::new(), Vec::new());
        for Direction { index, among } in self.directions_of_texel(site.memory, texel) {
            let index = self.int(q, t, index)?.form;
            let end = self.end_of(q, t, site, among)?;
            inside.push(within(&index, &end.form)?);
            at.push(index);
        }
        // Without a level it is the first.
        if texel.level.is_none() {
            at.push(Linear::constant(0));
        }
        Some((at, inside))
    }

    /// The directions in which an access may be out of bounds.
    pub fn directions(&self, number: usize) -> Vec<Direction> {
        let site = &self.sites[number];
        match &site.extent {
            Extent::Texel(texel) => self.directions_of_texel(site.memory, texel),
            Extent::Sample(element) => self.directions_of_sample(site.memory, *element),
            Extent::Width(_) | Extent::Count(_) | Extent::Matrix(_) | Extent::Open => {
                let element = Direction {
                    index: site.index,
                    among: Among::Elements,
                };
                let mut all = vec![element];
                all.extend(self.parts_of(site));
                all
            }
        }
    }

    /// Whether an access can be out of bounds in one of its directions; and the values that do not wrap where
    /// it is made.
    pub fn bounds(
        &self,
        number: usize,
        direction: usize,
        limits: Option<i128>,
    ) -> (Finding, BTreeSet<Slot>) {
        self.used.borrow_mut().clear();
        let id = self.sites[number].id;
        let index = self.directions(number).get(direction).map(|d| d.index);
        let cases = index.filter(|_| limits.is_none());
        let cases = cases.and_then(|index| self.cases_of(id, index));
        let any = |limits| self.bounds_in((number, direction), self.any_iterations(id), limits);
        let Some(cases) = cases else {
            return any(limits);
        };
        let ask = |iterations| self.bounds_in((number, direction), iterations, None).0;
        match Finding::of_all(cases.into_iter().map(ask)) {
            Finding::Open => any(None),
            // What does not wrap in one iteration may in another.
            found => (found, BTreeSet::new()),
        }
    }

    /// As [`Subject::bounds`], in these iterations of the loops around.
    fn bounds_in(
        &self,
        (number, direction): (usize, usize),
        iterations: Iterations,
        limits: Option<i128>,
    ) -> (Finding, BTreeSet<Slot>) {
        let site = &self.sites[number];
        let (mut q, marks) = self.query(true);
        q.condition_facts = marks;
        let mut t = Thread::new(1, iterations);
        t.asks = true;
        self.reach(&mut q, &mut t, site.id);
        let directions = self.directions(number);
        let Some(direction) = directions.get(direction) else {
            // No index of it says where it is: it is brought into its object.
            return (Finding::Excluded(BTreeSet::new()), t.exact);
        };
        // Of all indices it is found out whether they wrap, whichever this is about.
        let indices = directions.iter();
        let indices: Option<Vec<Int>> =
            indices.map(|d| self.int(&mut q, &mut t, d.index)).collect();
        let outside = indices.and_then(|_| self.outside(&mut q, &mut t, site, direction));
        let finding = outside.map_or(Finding::Open, |bad| self.ask(&q, &t.path, bad, limits));
        (finding, t.exact)
    }

    /// That an access is out of bounds in one of its directions.
    fn outside(
        &self,
        q: &mut Query,
        t: &mut Thread,
        site: &Site<'_>,
        direction: &Direction,
    ) -> Option<Formula> {
        match direction.among {
            Among::Elements => {
                let (first, width) = self.location(q, t, site)?;
                let length = self.length(q, site.memory);
                let end = first.shifted(width)?;
                let zero = Linear::constant(0);
                let sides = [
                    Formula::lt(&first, &zero)?,
                    Formula::lt(&length.form, &end)?,
                ];
                Some(Formula::any(sides))
            }
            Among::Parts(count) => {
                let index = self.int(q, t, direction.index)?;
                within(&index.form, &Linear::constant(count))?.negated()
            }
            Among::Texels(_) | Among::OfArray | Among::Samples | Among::Levels => {
                let index = self.int(q, t, direction.index)?;
                // A texture that is as large as any has no others of its size.
                if index.high + 1 < LARGEST_TEXTURE {
                    self.tops.borrow_mut().insert(index.high + 1);
                }
                let end = self.end_of(q, t, site, direction.among)?;
                within(&index.form, &end.form)?.negated()
            }
        }
    }

    /// Whether a part that is taken or replaced can be one that the value does not have.
    pub fn part(&self, number: usize, limits: Option<i128>) -> Finding {
        let part = self.parts[number];
        self.used.borrow_mut().clear();
        let (mut q, marks) = self.query(true);
        q.condition_facts = marks;
        let mut t = Thread::new(1, self.any_iterations(part.id));
        t.asks = true;
        self.reach(&mut q, &mut t, part.id);
        let Some(index) = self.int(&mut q, &mut t, part.index) else {
            return Finding::Open;
        };
        if let Some(index) = index.as_constant()
            && (0..part.count).contains(&index)
        {
            return Finding::Excluded(BTreeSet::new());
        }
        let outside = [
            Formula::lt(&index.form, &Linear::constant(0)),
            Formula::le(&Linear::constant(part.count), &index.form),
        ];
        let outside: Vec<Formula> = outside.into_iter().flatten().collect();
        if outside.len() < 2 {
            return Finding::Open;
        }
        self.ask(&q, &t.path, Formula::any(outside), limits)
    }

    /// The indices of a path into an element, each among so many parts.
    fn parts_of(&self, site: &Site<'_>) -> Vec<Direction> {
        let Some(info) = self.module.memory(self.kernel, site.memory) else {
            return Vec::new();
        };
        let part = |index, count| Direction {
            index,
            among: Among::Parts(i128::from(count)),
        };
        let mut found = Vec::new();
        let mut element = info.element.clone();
        for step in site.path {
            let next = match (&element, step) {
                (ElementType::Struct(id), Step::Field(field)) => {
                    let fields = &self.module.structs[id.0 as usize].fields;
                    fields[*field as usize].1.clone()
                }
                (ElementType::Array(inner, count), Step::Index(value)) => {
                    found.push(part(*value, *count));
                    (**inner).clone()
                }
                (ElementType::Value(Type::Vector(scalar, count)), Step::Index(value)) => {
                    found.push(part(*value, u32::from(*count)));
                    ElementType::Value(Type::Scalar(*scalar))
                }
                (
                    ElementType::Value(Type::Matrix {
                        scalar,
                        columns,
                        rows,
                    }),
                    Step::Index(value),
                ) => {
                    found.push(part(*value, u32::from(*columns)));
                    ElementType::Value(Type::Vector(*scalar, *rows))
                }
                (ElementType::Value(_) | ElementType::Array(..) | ElementType::Struct(_), _) => {
                    break;
                }
            };
            element = next;
        }
        found
    }

    /// Whether something can be, of a thread or two that are at their places; a model within limits, if
    /// there are any.
    pub fn ask(&self, q: &Query, path: &[Formula], bad: Formula, limits: Option<i128>) -> Finding {
        let mut problem = q.problem.clone();
        problem.facts.extend(path.iter().cloned());
        problem.facts.push(bad);
        limit_launch(q, &mut problem, limits);
        let enough = if self.hurried.get() { ASIDE } else { MAIN };
        match self.refuted(&problem, enough) {
            Ok(used) => {
                let mut conditions = self.used.borrow().clone();
                let marks = q.condition_facts.iter();
                let marks = marks.filter(|(fact, _)| used.contains(fact));
                conditions.extend(marks.map(|(_, c)| *c));
                conditions.extend(q.ways(&problem, &used));
                Finding::Excluded(conditions)
            }
            Err(Answer::Values(values)) => Finding::Possible(Box::new(self.launch(q, &values))),
            Err(Answer::Refuted(_) | Answer::Unknown) => Finding::Open,
        }
    }

    /// The launch of a model.
    fn launch(&self, q: &Query, values: &[i128]) -> Launch {
        let value = |name: &str| q.form(name).and_then(|form| form.value(values));
        let mut launch = Launch {
            simdgroup: value("simdgroup"),
            ..Launch::default()
        };
        for d in Dim::ALL {
            let i = d as usize;
            launch.grid[i] = value(&format!("grid.{}", d.name()));
            launch.threadgroup[i] = match self.kernel.threadgroup_size {
                Some(size) => Some(i128::from(size[i])),
                None => value(&format!("threadgroup.{}", d.name())),
            };
            launch.groups[i] = value(&format!("groups.{}", d.name()));
            if self.unused[i] {
                launch.grid[i] = Some(1);
                launch.groups[i] = Some(1);
                if self.kernel.threadgroup_size.is_none() {
                    launch.threadgroup[i] = launch.threadgroup[i].or(Some(1));
                }
            }
        }
        for param in &self.kernel.params {
            launch.numbers.push(match &param.kind {
                ParamKind::Scalar { .. } => value(&format!("%{}", param.name)),
                ParamKind::Buffer { .. }
                | ParamKind::Constant { .. }
                | ParamKind::Threadgroup { .. } => value(&format!("length({})", param.name)),
                ParamKind::Texture(_) | ParamKind::Sampler => None,
            });
        }
        for (i, param) in self.kernel.params.iter().enumerate() {
            for d in Dim::ALL {
                let texels = value(&format!("{}({})", extent_name(d), param.name));
                launch.texels.extend(texels.map(|n| ((i, d), n)));
            }
            let levels = value(&format!("levels({})", param.name));
            launch.levels.extend(levels.map(|n| (i, n)));
            let samples = value(&format!("samples({})", param.name));
            launch.samples.extend(samples.map(|n| (i, n)));
        }
        for ((memory, way), loads) in &q.loads {
            let Memory::Param(place) = memory else {
                continue;
            };
            for (at, loaded) in loads {
                let at: Option<Vec<i128>> = at.iter().map(|form| form.value(values)).collect();
                let number = at.and_then(|at| self.field_at(*place, way, &at));
                if let (Some(location), Some(loaded)) = (number, loaded.value(values)) {
                    launch.fields.insert((*place as usize, location), loaded);
                }
            }
        }
        for (memory, index, first) in &q.firsts {
            if let (Ok(index), Some(first)) = (u64::try_from(*index), first.value(values)) {
                let contents = launch.contents.entry(*memory).or_default();
                contents.insert(index, first);
            }
        }
        for constant in &self.module.function_constants {
            launch.constants.push(value(&format!("@{}", constant.name)));
        }
        let whole = q.loads.iter().filter(|((_, way), _)| way.is_empty());
        for ((memory, _), loads) in whole {
            let mut contents = BTreeMap::new();
            for (at, loaded) in loads {
                let index = at.first().and_then(|index| index.value(values));
                if let (Some(index), Some(loaded)) = (index, loaded.value(values))
                    && let Ok(index) = u64::try_from(index)
                {
                    contents.insert(index, loaded);
                }
            }
            launch.contents.insert(*memory, contents);
        }
        launch
    }

    /// Whether threads can race on an object.
    pub fn is_shared_memory(&self, memory: Memory) -> bool {
        let space = self.space(memory);
        space.is_some_and(|(space, _)| Subject::is_shared(space))
    }

    /// Whether two accesses conflict (R1), wherever they are.
    pub fn conflict(a: &Site<'_>, b: &Site<'_>) -> bool {
        let atomic = |site: &Site<'_>| matches!(site.mode, AccessMode::Atomic { .. });
        let writes = a.mode.writes() || b.mode.writes();
        a.memory == b.memory && writes && !(atomic(a) && atomic(b))
    }

    /// The pairs of accesses that may touch one location without order.
    pub fn pairs(&self) -> Vec<Pair> {
        let mut found: Vec<Pair> = Vec::new();
        let mut seen: BTreeSet<(usize, Iterations, usize, Iterations, Relation)> = BTreeSet::new();
        let has_simdgroups = self.shape.has_simdgroup_barriers();
        let spaces = [
            AddressSpace::Threadgroup,
            AddressSpace::Device,
            AddressSpace::Texture,
            AddressSpace::Imageblock,
        ];
        for space in spaces {
            let of_space: Vec<usize> = (0..self.sites.len())
                .filter(|s| {
                    self.space(self.sites[*s].memory)
                        .is_some_and(|(s, _)| s == space)
                })
                .collect();
            let mut at: HashMap<Id, Vec<usize>> = HashMap::new();
            for site in &of_space {
                at.entry(self.sites[*site].id).or_default().push(*site);
            }
            let inside: &[bool] = match (self.flat, has_simdgroups) {
                (true, _) => &[],
                (false, false) => &[false],
                (false, true) => &[false, true],
            };
            for &simdgroup in inside {
                let relation = match (has_simdgroups, simdgroup) {
                    (false, _) => Relation::SameGroup,
                    (true, false) => Relation::OtherSimdgroup,
                    (true, true) => Relation::SameSimdgroup,
                };
                for interval in self.shape.intervals(space, simdgroup) {
                    let items: Vec<(usize, &Iterations)> = (interval.iter())
                        .flat_map(|(id, iterations)| {
                            at.get(id)
                                .into_iter()
                                .flatten()
                                .map(move |s| (*s, iterations))
                        })
                        .collect();
                    for (i, (a, first)) in items.iter().enumerate() {
                        for (b, second) in &items[i..] {
                            if !Subject::conflict(&self.sites[*a], &self.sites[*b]) {
                                continue;
                            }
                            let (first, second) = relate(first, second);
                            let key = (*a, first.clone(), *b, second.clone(), relation);
                            if seen.insert(key) {
                                found.push(Pair {
                                    a: (*a, first),
                                    b: (*b, second),
                                    relation,
                                });
                            }
                        }
                    }
                }
            }
            if !space.is_of_threadgroup() {
                for (i, a) in of_space.iter().enumerate() {
                    for b in &of_space[i..] {
                        if Subject::conflict(&self.sites[*a], &self.sites[*b]) {
                            found.push(Pair {
                                a: (*a, self.any_iterations(self.sites[*a].id)),
                                b: (*b, self.any_iterations(self.sites[*b].id)),
                                relation: Relation::OtherGroup,
                            });
                        }
                    }
                }
            }
        }
        found
    }

    /// Whether two threads can make two accesses to one location that no barrier orders.
    pub fn race(&self, pair: &Pair, exact: &[BTreeSet<Slot>], limits: Option<i128>) -> Finding {
        self.used.borrow_mut().clear();
        if limits.is_some() || !self.has_numbered_loops() {
            return self.race_in(pair, exact, limits, false);
        }
        let by_cases = || {
            let ask = |case: &Pair| self.race_in(case, exact, None, true);
            let cases = self.cases_of_pair(pair);
            cases.map_or(Finding::Open, |cases| {
                Finding::of_all(cases.iter().map(ask))
            })
        };
        // What the iterations say is asked first where it is about their numbers.
        let (a, b) = (&self.sites[pair.a.0], &self.sites[pair.b.0]);
        if self.is_of_numbered(a.index) || self.is_of_numbered(b.index) {
            match by_cases() {
                Finding::Open => self.race_in(pair, exact, None, false),
                found => found,
            }
        } else {
            match (self.race_in(pair, exact, None, false), by_cases) {
                (found @ Finding::Excluded(_), _) => found,
                (found, by_cases) => match by_cases() {
                    Finding::Open => found,
                    found => found,
                },
            }
        }
    }

    /// As [`Subject::race`], in the iterations of the pair; whether it is asked of further values if they wrap.
    fn race_in(
        &self,
        pair: &Pair,
        exact: &[BTreeSet<Slot>],
        limits: Option<i128>,
        asks: bool,
    ) -> Finding {
        let (found, has_parts) = self.race_as(pair, exact, limits, (asks, asks, false));
        if !has_parts || limits.is_some() || !matches!(found, Finding::Open) {
            return found;
        }
        // Of parts of indices that are mapped one to one it says most how far the others are apart.
        self.race_as(pair, exact, limits, (asks, true, true)).0
    }

    /// As [`Subject::race_in`], as [`Subject::race_problem`] is asked; and whether something is mapped one to one.
    fn race_as(
        &self,
        pair: &Pair,
        exact: &[BTreeSet<Slot>],
        limits: Option<i128>,
        how: (bool, bool, bool),
    ) -> (Finding, bool) {
        match self.race_problem(pair, exact, how) {
            None => (Finding::Open, false),
            Some((_, goal, _)) if goal.is_false() => (Finding::Excluded(BTreeSet::new()), false),
            Some((_, _, path)) if path.iter().any(Formula::is_false) => {
                (Finding::Excluded(self.used.borrow().clone()), false)
            }
            Some((q, goal, path)) => (self.ask(&q, &path, goal, limits), q.maps_one_to_one()),
        }
    }

    /// The question of two threads that make a pair of accesses to one location: whether it is asked of further values if
    /// they wrap, whether quotients of the two are pairs, and whether of what is mapped one to one nothing else is said.
    fn race_problem(
        &self,
        pair: &Pair,
        exact: &[BTreeSet<Slot>],
        (asks, pairs_quotients, only_one_to_one): (bool, bool, bool),
    ) -> Option<(Query, Formula, Vec<Formula>)> {
        let (a, b) = (&self.sites[pair.a.0], &self.sites[pair.b.0]);
        let (mut q, marks) = self.query(pair.relation != Relation::OtherGroup);
        q.condition_facts = marks;
        let q = &mut q;
        let mut first = Thread::new(1, pair.a.1.clone());
        let mut second = Thread::new(2, pair.b.1.clone());
        first.exact = exact[pair.a.0].clone();
        second.exact = exact[pair.b.0].clone();
        (first.asks, second.asks) = (asks, asks);
        (q.pairs_quotients, q.only_one_to_one) = (pairs_quotients, only_one_to_one);
        self.reach(q, &mut first, a.id);
        self.reach(q, &mut second, b.id);
        let overlap = self.overlap(q, (&mut first, a), (&mut second, b))?;
        let mut goal = vec![self.apart(q, pair, &first, &second)?];
        goal.extend(overlap);
        for (x, y) in a.path.iter().zip(b.path) {
            match (x, y) {
                (Step::Field(x), Step::Field(y)) if x != y => {
                    return Some((q.clone(), Formula::FALSE, Vec::new()));
                }
                (Step::Index(x), Step::Index(y)) => {
                    let x = self.int(q, &mut first, *x);
                    let y = self.int(q, &mut second, *y);
                    if let (Some(x), Some(y)) = (x, y) {
                        goal.push(Formula::eq(&x.form, &y.form)?);
                    }
                }
                (Step::Field(_) | Step::Index(_), Step::Field(_) | Step::Index(_)) => {}
            }
        }
        self.say_tickets(q, &first, &second)?;
        let path = first.path.iter().chain(&second.path).cloned().collect();
        Some((q.clone(), Formula::all(goal), path))
    }

    /// That two accesses to one object touch one location of it.
    fn overlap(
        &self,
        q: &mut Query,
        (first, a): (&mut Thread, &Site<'_>),
        (second, b): (&mut Thread, &Site<'_>),
    ) -> Option<Vec<Formula>> {
        let mut all = Vec::new();
        if self.kernel.texture(a.memory).is_some() {
            let (at_a, inside) = self.texel(q, first, a)?;
            let (at_b, _) = self.texel(q, second, b)?;
            all.extend(inside);
            for (at_a, at_b) in at_a.iter().zip(&at_b) {
                all.push(Formula::eq(at_a, at_b)?);
            }
            return Some(all);
        }
        let (at_a, width_a) = self.location(q, first, a)?;
        let (at_b, width_b) = self.location(q, second, b)?;
        let length = self.length(q, a.memory);
        all.push(Formula::lt(&at_a, &at_b.shifted(width_b)?)?);
        all.push(Formula::lt(&at_b, &at_a.shifted(width_a)?)?);
        for (at, width) in [(&at_a, width_a), (&at_b, width_b)] {
            all.push(Formula::lt(&Linear::constant(-width), at)?);
            all.push(Formula::lt(at, &length.form)?);
        }
        Some(all)
    }

    /// That the two are two threads, related as the pair says.
    fn apart(
        &self,
        q: &mut Query,
        pair: &Pair,
        first: &Thread,
        second: &Thread,
    ) -> Option<Formula> {
        let (a, b) = (&self.sites[pair.a.0], &self.sites[pair.b.0]);
        let shared = |site: &Site<'_>| matches!(site.extent, Extent::Matrix(_) | Extent::Open);
        let collective = shared(a) || shared(b);
        let dims = Dim::ALL.into_iter().filter(|d| !self.unused[*d as usize]);
        let ops: &dyn Fn(&mut Query, &Thread, Dim) -> Option<Linear> = if self.flat {
            &|q, t, d| self.position(q, t, d).map(|p| p.form)
        } else if pair.relation == Relation::OtherGroup {
            &|q, t, d| {
                self.place_in_group(q, t, d);
                Some(self.place_of_group(q, t, d))
            }
        } else {
            &|q, t, d| Some(self.place_in_group(q, t, d))
        };
        let mut different = Vec::new();
        for d in dims {
            let (x, y) = (ops(q, first, d)?, ops(q, second, d)?);
            different.push(Formula::ne(&x, &y)?);
        }
        let mut all = Vec::new();
        if pair.relation == Relation::OtherGroup || self.flat || !collective {
            all.push(Formula::any(different));
        } else if pair.a == pair.b && !pair.a.1.values().any(|r| *r == Iteration::Any) {
            // One access of a simdgroup: its lanes conflict with each other where two entries are one
            // element, but an entry does not with itself.
            let x = self.simdgroup_index(q, first)?;
            let y = self.simdgroup_index(q, second)?;
            let mut others = vec![Formula::ne(&x.form, &y.form)?];
            for part in ["row", "column"] {
                let mut entry = |tag| {
                    let key = format!("thread{tag} entry of {}, {part}", a.id);
                    q.symbol(&key, 0, 7).form
                };
                others.push(Formula::ne(&entry(1), &entry(2))?);
            }
            all.push(Formula::any(others));
        }
        match pair.relation {
            Relation::SameGroup | Relation::OtherGroup => {}
            Relation::SameSimdgroup | Relation::OtherSimdgroup => {
                let x = self.simdgroup_index(q, first)?;
                let y = self.simdgroup_index(q, second)?;
                all.push(if pair.relation == Relation::SameSimdgroup {
                    Formula::eq(&x.form, &y.form)?
                } else {
                    Formula::ne(&x.form, &y.form)?
                });
            }
        }
        Some(Formula::all(all))
    }

    /// Whether an access is one of which nothing is proved, and why.
    pub fn beyond(&self, number: usize) -> Option<&'static str> {
        match self.sites[number].extent {
            Extent::Open => Some("async copies are not proved"),
            Extent::Width(_)
            | Extent::Count(_)
            | Extent::Matrix(_)
            | Extent::Texel(_)
            | Extent::Sample(_) => match self.sites[number].mode {
                AccessMode::Atomic { order, .. } if order != Order::Relaxed => {
                    Some("what acquire and release order is not proved")
                }
                AccessMode::Atomic { .. } | AccessMode::Read | AccessMode::Write => None,
            },
        }
    }

    /// What a launch says of how large the object of an access is in one of its directions.
    pub fn room(&self, number: usize, direction: usize) -> Option<Number> {
        let memory = self.sites[number].memory;
        let Memory::Param(i) = memory else {
            return None;
        };
        match self.directions(number).get(direction)?.among {
            Among::Elements => Some(Number::Length(i as usize)),
            Among::Texels(d) => Some(Number::Texels(i as usize, d)),
            Among::OfArray => Some(Number::Texels(i as usize, Dim::Z)),
            Among::Levels => Some(Number::Levels(i as usize)),
            Among::Samples | Among::Parts(_) => None,
        }
    }

    /// Whether an index follows from what memory holds beside numbers by reference, for messages.
    pub fn depends_on_memory(&self, index: Value) -> bool {
        let mut open = vec![index];
        let mut seen = BTreeSet::new();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.shape.definition(value) {
                Some(Definition::Result(id, _)) => {
                    let kind = self.shape.kind(id);
                    let loads = kind.accesses().iter().any(|a| a.mode.reads());
                    if loads && !self.is_passed(kind) && !Self::is_of_a_constant(kind) {
                        return true;
                    }
                    kind.for_each_use(|v| open.push(v));
                }
                Some(
                    Definition::Counter(_) | Definition::Carried(..) | Definition::Parameter(_),
                )
                | None => {}
            }
        }
        false
    }
}

/// Says that no number of the launch is further from 0 than a limit, if there is one.
fn limit_launch(q: &Query, problem: &mut Problem, limit: Option<i128>) {
    let Some(limit) = limit else {
        return;
    };
    for (name, form) in q.forms() {
        if is_of_launch(name) {
            let facts = [
                Formula::le(&form, &Linear::constant(limit)),
                Formula::le(&Linear::constant(-limit), &form),
            ];
            problem.facts.extend(facts.into_iter().flatten());
        }
    }
}

/// Whether a variable is a number of the launch.
fn is_of_launch(name: &str) -> bool {
    let starts = [
        "grid.",
        "groups.",
        "threadgroup.",
        "length(",
        "levels(",
        "samples(",
        "elements(",
        "field ",
        "%",
        "@",
    ];
    let of_textures = Dim::ALL.map(|d| format!("{}(", extent_name(d)));
    let of_textures = of_textures.iter().map(String::as_str);
    (starts.into_iter().chain(of_textures)).any(|s| name.starts_with(s)) && !name.contains('*')
}
