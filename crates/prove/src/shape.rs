//! The structure of a kernel: its instructions in a list, where its values are defined, how control goes
//! from one instruction to the next, and the intervals between barriers.
//!
//! An *interval* is what a thread may reach from one barrier, or from the start of the kernel, without
//! passing another barrier that orders the space asked about. All threads of a scope pass a barrier
//! together (X4), in the same iteration of the same loops, so two accesses that no barrier orders lie in an
//! interval that begins at one and the same place. Intervals that run around the end of a loop's body are
//! told apart by [`Iteration`]. Compare Betts et al., "GPUVerify" (OOPSLA 2012), which has two threads stand
//! for all in the same way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use invar_ir::{AddressSpace, Inst, InstKind, Kernel, Region, Scope, Value};

/// An instruction, by its place in the order of [`Kernel::for_each_inst`].
pub type Id = usize;

/// Where control goes when the kernel ends.
const END: Id = usize::MAX;

/// Which iteration of a loop an access is made in, seen from where its interval begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Iteration {
    /// The first: the interval began in front of the loop.
    First,
    /// The one in which the interval begins.
    Same,
    /// The one after that.
    Next,
    /// Any: nothing is known.
    Any,
    /// The one of this number, from 0, of a loop that constants run.
    Numbered(usize),
}

/// The iterations of the loops around an instruction.
pub type Iterations = BTreeMap<Id, Iteration>;

/// What defines a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// A parameter of the kernel, by its place.
    Parameter(usize),
    /// An instruction, and which of its results it is.
    Result(Id, usize),
    /// The index of a `for`.
    Counter(Id),
    /// What a loop carries, and which of its carried values it is.
    Carried(Id, usize),
}

/// An instruction in its place.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'k> {
    /// What it is.
    pub inst: &'k Inst,
    /// The instruction that holds its region, and which of the regions it is.
    pub parent: Option<(Id, usize)>,
    /// How many instructions of its region stand before it.
    pub place: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Enter(Id),
    Again(Id),
    Leave(Id),
}

/// Where an interval begins: at a barrier, or with the kernel, and in which iterations.
type Start = (Option<Id>, Iterations);

#[derive(Clone, Debug)]
struct Edge {
    to: Id,
    events: Vec<Event>,
}

/// The structure of a kernel.
#[derive(Debug)]
pub struct Shape<'k> {
    /// All instructions.
    pub statements: Vec<Statement<'k>>,
    /// The instructions of each region, by the instruction that holds it and the number of the region.
    pub regions: HashMap<(Option<Id>, usize), Vec<Id>>,
    definitions: HashMap<Value, Definition>,
    successors: Vec<Vec<Edge>>,
    /// The barriers.
    pub barriers: Vec<Id>,
}

impl<'k> Shape<'k> {
    /// Looks through a kernel.
    pub fn of(kernel: &'k Kernel) -> Shape<'k> {
        let mut shape = Shape {
            statements: Vec::new(),
            regions: HashMap::new(),
            definitions: HashMap::new(),
            successors: Vec::new(),
            barriers: Vec::new(),
        };
        for (number, param) in kernel.params.iter().enumerate() {
            if let invar_ir::ParamKind::Scalar { value } = param.kind {
                let definition = Definition::Parameter(number);
                shape.definitions.insert(value, definition);
            }
        }
        shape.list(&kernel.body, None, 0);
        shape.successors = vec![Vec::new(); shape.statements.len()];
        let body = shape.region(None, 0).to_vec();
        let end = [Edge {
            to: END,
            events: Vec::new(),
        }];
        shape.connect(&body, &end, &[], &[]);
        shape
    }

    fn list(&mut self, region: &'k Region, parent: Option<Id>, number: usize) {
        let mut ids = Vec::new();
        for (place, inst) in region.insts.iter().enumerate() {
            let id = self.statements.len();
            ids.push(id);
            self.statements.push(Statement {
                inst,
                parent: parent.map(|p| (p, number)),
                place,
            });
            for (i, result) in inst.results.iter().enumerate() {
                self.definitions.insert(*result, Definition::Result(id, i));
            }
            if matches!(inst.kind, InstKind::Barrier { .. }) {
                self.barriers.push(id);
            }
            for (n, inner) in inst.kind.regions().into_iter().enumerate() {
                let mut params = inner.params.iter();
                if matches!(inst.kind, InstKind::For { .. })
                    && let Some(counter) = params.next()
                {
                    self.definitions.insert(*counter, Definition::Counter(id));
                }
                for (i, param) in params.enumerate() {
                    self.definitions.insert(*param, Definition::Carried(id, i));
                }
                self.list(inner, Some(id), n);
            }
        }
        self.regions.insert((parent, number), ids);
    }

    /// The instructions of a region; of the body, without a holder.
    pub fn region(&self, holder: Option<Id>, number: usize) -> &[Id] {
        self.regions.get(&(holder, number)).map_or(&[], |r| r)
    }

    /// What an instruction is.
    pub fn kind(&self, id: Id) -> &'k InstKind {
        &self.statements[id].inst.kind
    }

    /// What defines a value.
    pub fn definition(&self, value: Value) -> Option<Definition> {
        self.definitions.get(&value).copied()
    }

    /// What defines a value, if that is an instruction.
    pub fn defining(&self, value: Value) -> Option<&'k InstKind> {
        match self.definition(value) {
            Some(Definition::Result(id, _)) => Some(self.kind(id)),
            Some(Definition::Parameter(_) | Definition::Counter(_) | Definition::Carried(..))
            | None => None,
        }
    }

    /// The loops around an instruction, the outermost first.
    pub fn loops_around(&self, id: Id) -> Vec<Id> {
        let mut loops = Vec::new();
        let mut at = self.statements[id].parent;
        while let Some((holder, _)) = at {
            if self.kind(holder).is_loop() {
                loops.push(holder);
            }
            at = self.statements[holder].parent;
        }
        loops.reverse();
        loops
    }

    /// The loops in whose iterations a value is defined, the outermost first.
    pub fn loops_of(&self, value: Value) -> Vec<Id> {
        match self.definition(value) {
            None | Some(Definition::Parameter(_)) => Vec::new(),
            Some(Definition::Result(id, _)) => self.loops_around(id),
            Some(Definition::Counter(id) | Definition::Carried(id, _)) => {
                let mut loops = self.loops_around(id);
                loops.push(id);
                loops
            }
        }
    }

    /// The initial values that a loop carries.
    pub fn initial(&self, id: Id) -> &'k [Value] {
        match self.kind(id) {
            InstKind::For { init, .. } | InstKind::Loop { init, .. } => init,
            _no_loop => &[],
        }
    }

    /// What a loop carries, as its body knows it.
    pub fn carried(&self, id: Id) -> &'k [Value] {
        match self.kind(id) {
            InstKind::For { body, .. } => body.params.get(1..).unwrap_or(&[]),
            InstKind::Loop { body, .. } => &body.params,
            _no_loop => &[],
        }
    }

    /// The ways out of a loop's iteration: the instruction, and what it hands on. `again` asks for those
    /// into the next iteration, else for those that leave the loop.
    pub fn exits(&self, loop_: Id, again: bool) -> Vec<(Id, &'k [Value])> {
        let mut found = Vec::new();
        self.collect_exits(loop_, 0, again, true, &mut found);
        found
    }

    fn collect_exits(
        &self,
        holder: Id,
        number: usize,
        again: bool,
        outermost: bool,
        found: &mut Vec<(Id, &'k [Value])>,
    ) {
        for &id in self.region(Some(holder), number) {
            match self.kind(id) {
                InstKind::Continue(values) if again => found.push((id, values)),
                InstKind::Yield(values) if again && outermost => found.push((id, values)),
                InstKind::Break(values) if !again => found.push((id, values)),
                InstKind::If { .. } => {
                    for side in 0..2 {
                        self.collect_exits(id, side, again, false, found);
                    }
                }
                _another => {}
            }
        }
    }

    fn connect(&mut self, ids: &[Id], follow: &[Edge], again: &[Edge], out: &[Edge]) {
        for (i, &id) in ids.iter().enumerate() {
            let next: Vec<Edge> = match ids.get(i + 1) {
                Some(&to) => vec![Edge {
                    to,
                    events: Vec::new(),
                }],
                None => follow.to_vec(),
            };
            let kind = self.kind(id);
            let edges = match kind {
                InstKind::If { .. } => {
                    let mut edges = Vec::new();
                    for side in 0..2 {
                        let inner = self.region(Some(id), side).to_vec();
                        if let Some(&to) = inner.first() {
                            edges.push(Edge {
                                to,
                                events: Vec::new(),
                            });
                        }
                        self.connect(&inner, &next, again, out);
                    }
                    edges
                }
                InstKind::For { .. } | InstKind::Loop { .. } => {
                    let counts = matches!(kind, InstKind::For { .. });
                    let inner = self.region(Some(id), 0).to_vec();
                    let mut edges = Vec::new();
                    let leave: Vec<Edge> = (next.iter())
                        .map(|edge| {
                            let mut events = vec![Event::Leave(id)];
                            events.extend(&edge.events);
                            Edge {
                                to: edge.to,
                                events,
                            }
                        })
                        .collect();
                    if let Some(&to) = inner.first() {
                        let begin = |event| Edge {
                            to,
                            events: vec![event],
                        };
                        edges.push(begin(Event::Enter(id)));
                        let mut ends = vec![begin(Event::Again(id))];
                        if counts {
                            ends.extend(leave.clone());
                        }
                        self.connect(&inner, &ends, &ends, &leave);
                    }
                    if counts {
                        edges.extend(next);
                    }
                    edges
                }
                InstKind::Yield(_) => follow.to_vec(),
                InstKind::Continue(_) => again.to_vec(),
                InstKind::Break(_) => out.to_vec(),
                InstKind::Return => vec![Edge {
                    to: END,
                    events: Vec::new(),
                }],
                _flat => next,
            };
            self.successors[id] = edges;
        }
    }

    /// Whether a barrier orders a space for threads of a simdgroup, or of a threadgroup.
    fn orders(&self, barrier: Id, space: AddressSpace, simdgroup: bool) -> bool {
        match self.kind(barrier) {
            InstKind::Barrier { scope, spaces } => {
                let flag = space.barrier_flag();
                flag.is_some_and(|flag| spaces.contains(flag))
                    && (simdgroup || *scope == Scope::Threadgroup)
            }
            _no_barrier => false,
        }
    }

    /// Whether there is a barrier of simdgroups.
    pub fn has_simdgroup_barriers(&self) -> bool {
        self.barriers.iter().any(|b| match self.kind(*b) {
            InstKind::Barrier { scope, .. } => *scope == Scope::Simdgroup,
            _no_barrier => false,
        })
    }

    /// Whether a loop has a barrier in it.
    pub fn has_barrier(&self, loop_: Id) -> bool {
        (self.barriers.iter()).any(|b| self.loops_around(*b).contains(&loop_))
    }

    /// The intervals between barriers that order a space, for threads of one simdgroup or of one
    /// threadgroup: the instructions that each may reach, with the iterations of the loops around them.
    pub fn intervals(
        &self,
        space: AddressSpace,
        simdgroup: bool,
    ) -> Vec<BTreeSet<(Id, Iterations)>> {
        let stops = self.barriers.iter().copied();
        let stops: BTreeSet<Id> = stops
            .filter(|b| self.orders(*b, space, simdgroup))
            .collect();
        let at = |stop: &Id| {
            let loops = self.loops_around(*stop).into_iter();
            (Some(*stop), loops.map(|l| (l, Iteration::Same)).collect())
        };
        let mut starts: Vec<Start> = vec![(None, Iterations::new())];
        starts.extend(stops.iter().map(at));
        self.intervals_between(&stops, starts, &Unguided)
            .unwrap_or_default()
    }

    /// As [`Shape::intervals`], where a guide says what is known of loops and ways; `None` if those are more than it
    /// wants. Each begins at a stop in iterations in which some other reaches it.
    pub fn guided_intervals(
        &self,
        among: Option<(AddressSpace, bool)>,
        guide: &impl Guide,
    ) -> Option<Vec<BTreeSet<(Id, Iterations)>>> {
        let stops = self.barriers.iter().copied();
        let orders =
            |b: &Id| among.is_some_and(|(space, simdgroup)| self.orders(*b, space, simdgroup));
        let starts = vec![(None, Iterations::new())];
        self.intervals_between(&stops.filter(orders).collect(), starts, guide)
    }

    /// Those that begin at these stops, and at others that are reached from there.
    fn intervals_between(
        &self,
        stops: &BTreeSet<Id>,
        mut starts: Vec<Start>,
        guide: &impl Guide,
    ) -> Option<Vec<BTreeSet<(Id, Iterations)>>> {
        let mut meeting: HashSet<Id> = HashSet::new();
        for stop in stops {
            meeting.extend(self.loops_around(*stop));
        }
        let mut intervals = Vec::new();
        let mut states = 0;
        let mut next_start = 0;
        while let Some((start, iterations)) = starts.get(next_start).cloned() {
            next_start += 1;
            let mut open: Vec<(Edge, Iterations)> = match start {
                Some(stop) => (self.successors[stop].iter())
                    .map(|edge| (edge.clone(), iterations.clone()))
                    .collect(),
                None => (self.region(None, 0).first().into_iter())
                    .map(|&to| {
                        let events = Vec::new();
                        (Edge { to, events }, Iterations::new())
                    })
                    .collect(),
            };
            let mut found: BTreeSet<(Id, Iterations)> = BTreeSet::new();
            while let Some((edge, iterations)) = open.pop() {
                let Some(iterations) = self.follow(&edge, iterations, &meeting, guide) else {
                    continue;
                };
                if edge.to == END || !found.insert((edge.to, iterations.clone())) {
                    continue;
                }
                if stops.contains(&edge.to) {
                    let begin = (Some(edge.to), as_begun(&iterations));
                    if !starts.contains(&begin) {
                        starts.push(begin);
                    }
                    continue;
                }
                for next in &self.successors[edge.to] {
                    if self.is_way(edge.to, next, &iterations, guide) {
                        open.push((next.clone(), iterations.clone()));
                    }
                }
            }
            states += found.len();
            if states > guide.most_states() {
                return None;
            }
            intervals.push(found);
        }
        Some(intervals)
    }

    /// The iterations behind a way, or `None` if there is none.
    fn follow(
        &self,
        edge: &Edge,
        mut iterations: Iterations,
        meeting: &HashSet<Id>,
        guide: &impl Guide,
    ) -> Option<Iterations> {
        for event in &edge.events {
            match event {
                Event::Enter(l) => {
                    let iteration = match guide.iterations(*l, &iterations) {
                        Some(0) => return None,
                        Some(_) => Iteration::Numbered(0),
                        None if meeting.contains(l) => Iteration::First,
                        None => Iteration::Any,
                    };
                    iterations.insert(*l, iteration);
                }
                Event::Again(l) => {
                    let from = iterations.remove(l);
                    let next = match from {
                        Some(Iteration::Numbered(n)) => {
                            if guide
                                .iterations(*l, &iterations)
                                .is_none_or(|count| n + 1 >= count)
                            {
                                return None;
                            }
                            Iteration::Numbered(n + 1)
                        }
                        Some(Iteration::Same) if meeting.contains(l) => Iteration::Next,
                        Some(
                            Iteration::First | Iteration::Same | Iteration::Next | Iteration::Any,
                        )
                        | None => Iteration::Any,
                    };
                    iterations.insert(*l, next);
                }
                Event::Leave(l) => {
                    let from = iterations.remove(l);
                    // A `for` is left behind its last iteration, if nothing in it breaks off.
                    if matches!(self.kind(*l), InstKind::For { .. })
                        && self.exits(*l, false).is_empty()
                        && let Some(Iteration::Numbered(n)) = from
                        && guide
                            .iterations(*l, &iterations)
                            .is_some_and(|count| n + 1 < count)
                    {
                        return None;
                    }
                }
            }
        }
        Some(iterations)
    }

    /// Whether control may go this way from an instruction, as far as a guide says.
    fn is_way(&self, from: Id, to: &Edge, iterations: &Iterations, guide: &impl Guide) -> bool {
        match self.kind(from) {
            InstKind::If { condition, .. } => {
                let side = self.statements.get(to.to).and_then(|s| s.parent);
                match (side, guide.holds(*condition, iterations)) {
                    (Some((holder, side)), Some(holds)) if holder == from => (side == 0) == holds,
                    _not_known => true,
                }
            }
            InstKind::For { .. } => {
                let enters = to.events.contains(&Event::Enter(from));
                enters
                    || guide
                        .iterations(from, iterations)
                        .is_none_or(|count| count == 0)
            }
            _flat_or_loop => true,
        }
    }
}

/// The iterations in which an interval begins at a stop that is reached in these.
fn as_begun(iterations: &Iterations) -> Iterations {
    let begun = iterations.iter().map(|(l, iteration)| match iteration {
        Iteration::Numbered(n) => (*l, Iteration::Numbered(*n)),
        Iteration::First | Iteration::Same | Iteration::Next | Iteration::Any => {
            (*l, Iteration::Same)
        }
    });
    begun.collect()
}

/// What is known of the ways through a kernel.
pub trait Guide {
    /// How many iterations a loop has at most, in these of the loops around, if they are to be told by their numbers.
    fn iterations(&self, loop_: Id, around: &Iterations) -> Option<usize>;
    /// Whether a condition holds in these iterations, if that is known.
    fn holds(&self, condition: Value, iterations: &Iterations) -> Option<bool>;
    /// How many instructions in their iterations are looked at.
    fn most_states(&self) -> usize;
}

/// Nothing is known.
struct Unguided;

impl Guide for Unguided {
    fn iterations(&self, _loop: Id, _around: &Iterations) -> Option<usize> {
        None
    }

    fn holds(&self, _condition: Value, _iterations: &Iterations) -> Option<bool> {
        None
    }

    fn most_states(&self) -> usize {
        usize::MAX
    }
}
