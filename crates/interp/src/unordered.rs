//! Atomics whose order shows (R5): two on one location, by different threads, that do not commute and that
//! no barrier orders. They are not a race, but what they leave or return depends on the schedule.
//!
//! What commutes is told from the instructions: read-modify-writes of one kind, what they return included,
//! since handing out places and claims is what it is for; stores and exchanges of one constant;
//! compare-exchanges of the same two constants; loads, with each other, those whose results nothing uses, with
//! everything, and those of which only some bits count, with what by its constant leaves these as they are. Of a run
//! it is also told that a read-modify-write left the location as it was, which no load notices: what it would have
//! changed earlier, another has changed, and that one is looked at as well. An atomic whose result decides whether a
//! loop around it goes on waits or tries again: its order is meant. So it is in kernels that acquire or release, of which nothing is said.
//!
//! For each location a few accesses of each kind are kept, the latest of those that any later one could be
//! unordered with; of a run with more locations than [`MOST_LOCATIONS`] the rest is not looked at.

use std::collections::{BTreeMap, HashMap, HashSet};

use invar_ir::{
    AddressSpace, AtomicOp, Diagnostic, InstKind, Kernel, Memory, Module, Op, ParamKind, Region,
    Rule, Scope, Spaces, Value,
};

use crate::checkers::About;
use crate::observe::{Access, Kind as Way, Launch, ObjectInfo, Observer, Who};
use crate::race::Commuting;
use crate::verdict::{commuting, orders_anything};

/// The most locations that are looked at.
const MOST_LOCATIONS: usize = 1 << 20;

/// A value that is the same for all threads: its bits, or a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fixed {
    Bits(u64),
    Parameter(Value),
}

/// What an atomic does, as far as its order with others shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Gives what is there to something that uses these bits of it.
    Load(u64),
    /// Combines what is there with a value, which may change these bits; floats are added up to rounding.
    Combine(Commuting, u64),
    /// Leaves a value, whatever was there; one that is fixed, if any.
    Set(Option<Fixed>),
    /// Leaves the second if the first is there.
    Replace(Option<(Fixed, Fixed)>),
}

impl Kind {
    fn commutes(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::Set(None), _) | (Kind::Replace(None), _) => false,
            (Kind::Load(_), Kind::Load(_)) => true,
            (Kind::Load(used), Kind::Combine(_, changed))
            | (Kind::Combine(_, changed), Kind::Load(used)) => used & changed == 0,
            (Kind::Combine(a, _), Kind::Combine(b, _)) => a == b,
            (a, b) => a == b,
        }
    }
}

/// The kinds of a kernel's atomics, by the numbers of their instructions.
fn kinds(module: &Module, kernel: &Kernel) -> HashMap<u32, (Kind, Memory)> {
    let mut used: HashMap<Value, u64> = HashMap::new();
    let mut fixed = HashMap::new();
    for param in &kernel.params {
        if let ParamKind::Scalar { value } = param.kind {
            fixed.insert(value, Fixed::Parameter(value));
        }
    }
    let mut retried = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        inst.kind.for_each_use(|value| {
            *used.entry(value).or_default() |= bits_used(&inst.kind, value, &fixed);
        });
        if let InstKind::Const(constant) = &inst.kind {
            fixed.insert(inst.results[0], Fixed::Bits(constant.bits));
        }
        if inst.kind.is_loop() {
            for body in inst.kind.regions() {
                retries(body, &mut retried);
            }
        }
    });
    let mut kinds = HashMap::new();
    let mut number = 0;
    kernel.for_each_inst(&mut |inst| {
        let this = number;
        number += 1;
        let InstKind::Atomic {
            op, place, args, ..
        } = &inst.kind
        else {
            return;
        };
        if inst.results.iter().any(|result| retried.contains(result)) {
            return;
        }
        let value = |i: usize| args.get(i).and_then(|v| fixed.get(v)).copied();
        let kind = match op {
            AtomicOp::Load => match inst.results.iter().find_map(|r| used.get(r)) {
                Some(bits) => Kind::Load(*bits),
                None => return,
            },
            AtomicOp::Store | AtomicOp::Exchange => Kind::Set(value(0)),
            AtomicOp::CompareExchange => Kind::Replace(value(0).zip(value(1))),
            combines => match commuting(*combines, false) {
                Some(kind) => Kind::Combine(kind, bits_changed(*combines, value(0))),
                None => Kind::Set(None),
            },
        };
        kinds.insert(this, (kind, place.memory));
    });
    // Where all commute nothing shows.
    let mut all: HashMap<Memory, Kinds> = HashMap::new();
    for (kind, memory) in kinds.values() {
        all.entry(*memory).or_default().insert(*kind);
    }
    kinds.retain(|_, (kind, memory)| {
        module.memory(kernel, *memory).is_some() && !all[memory].commute(*kind)
    });
    kinds
}

/// The kinds of all atomics on an object, as far as one needs to know them to tell whether it commutes with each.
#[derive(Default)]
struct Kinds {
    /// Whether there are loads, and the bits that they use.
    loads: bool,
    used: u64,
    /// Ways to combine, and the bits that they may change.
    combine: HashSet<Commuting>,
    changed: u64,
    /// All others.
    leave: HashSet<Kind>,
    /// Whether one of them commutes with nothing, nor with itself.
    leave_any: bool,
}

impl Kinds {
    fn insert(&mut self, kind: Kind) {
        match kind {
            Kind::Load(used) => {
                self.loads = true;
                self.used |= used;
            }
            Kind::Combine(way, changed) => {
                self.combine.insert(way);
                self.changed |= changed;
            }
            Kind::Set(_) | Kind::Replace(_) => {
                self.leave_any |= !kind.commutes(kind);
                self.leave.insert(kind);
            }
        }
    }

    /// Whether one of them commutes with all.
    fn commute(&self, kind: Kind) -> bool {
        match kind {
            Kind::Load(used) => self.leave.is_empty() && used & self.changed == 0,
            Kind::Combine(_, changed) => {
                self.leave.is_empty() && self.combine.len() == 1 && changed & self.used == 0
            }
            Kind::Set(_) | Kind::Replace(_) => {
                !self.loads && self.combine.is_empty() && self.leave.len() == 1 && !self.leave_any
            }
        }
    }
}

/// The bits of a value that decide what an instruction does with it: of an `and` with a constant its own.
fn bits_used(kind: &InstKind, value: Value, fixed: &HashMap<Value, Fixed>) -> u64 {
    let InstKind::Op {
        op: Op::And, args, ..
    } = kind
    else {
        return u64::MAX;
    };
    let mut others = args.iter().filter(|arg| **arg != value);
    match others.next().and_then(|other| fixed.get(other)) {
        Some(Fixed::Bits(bits)) => *bits,
        Some(Fixed::Parameter(_)) | None => u64::MAX,
    }
}

/// The bits that a read-modify-write may change, by its value.
fn bits_changed(op: AtomicOp, value: Option<Fixed>) -> u64 {
    match (op, value) {
        (AtomicOp::Or | AtomicOp::Xor, Some(Fixed::Bits(bits))) => bits,
        (AtomicOp::And, Some(Fixed::Bits(bits))) => !bits,
        _any_bits => u64::MAX,
    }
}

/// The results of atomics in a loop's body that decide whether it goes on. What a block gives depends on all that
/// it is given, which errs towards more.
fn retries(body: &Region, found: &mut HashSet<Value>) {
    let mut sources: Vec<Vec<Value>> = Vec::new();
    let mut sources_of: HashMap<Value, usize> = HashMap::new();
    let mut atomics = Vec::new();
    let mut decide = Vec::new();
    for_each(body, &mut |inst| {
        match &inst.kind {
            InstKind::Atomic { .. } => atomics.push(&inst.results),
            InstKind::If { condition, .. } if inst.exits().any() => decide.push(*condition),
            _others => {}
        }
        let given = inst.results.iter().chain(inst.carried());
        sources_of.extend(given.map(|value| (*value, sources.len())));
        let mut from = Vec::new();
        inst.kind.for_each_use(|value| from.push(value));
        for inner in inst.kind.regions() {
            for_each(inner, &mut |inst| {
                if inst.kind.is_terminator() {
                    inst.kind.for_each_use(|value| from.push(value));
                }
            });
        }
        sources.push(from);
    });
    let mut decides = HashSet::new();
    while let Some(value) = decide.pop() {
        if decides.insert(value)
            && let Some(number) = sources_of.get(&value)
        {
            decide.append(&mut sources[*number]);
        }
    }
    for results in atomics {
        if results.iter().any(|result| decides.contains(result)) {
            found.extend(results);
        }
    }
}

fn for_each<'a>(region: &'a Region, f: &mut dyn FnMut(&'a invar_ir::Inst)) {
    for inst in &region.insts {
        f(inst);
        for inner in inst.kind.regions() {
            for_each(inner, f);
        }
    }
}

/// How many barriers its threadgroup, and its simdgroup, had passed.
type Time = (u32, u32);

/// An access to a location.
#[derive(Clone, Copy, Debug)]
struct Done {
    kind: Kind,
    site: u32,
    who: Who,
    lane: u32,
    time: Time,
}

impl Done {
    fn same_threadgroup(&self, other: &Done) -> bool {
        self.who.threadgroup == other.who.threadgroup
    }

    fn same_simdgroup(&self, other: &Done) -> bool {
        self.same_threadgroup(other) && self.who.simdgroup == other.who.simdgroup
    }

    fn same_thread(&self, other: &Done) -> bool {
        self.same_simdgroup(other) && self.lane == other.lane
    }

    /// Whether nothing orders the two, of which this is the earlier.
    fn unordered(&self, later: &Done) -> bool {
        if !self.same_threadgroup(later) {
            return true;
        }
        !self.same_thread(later)
            && self.time.0 == later.time.0
            && (!self.same_simdgroup(later) || self.time.1 == later.time.1)
    }
}

/// The barriers that a threadgroup and its simdgroups have passed, of each space.
#[derive(Clone, Debug, Default)]
struct Passed {
    threadgroup: [u32; 2],
    simdgroups: HashMap<u32, [u32; 2]>,
}

/// Two sites and what is said of them.
struct Pair {
    message: String,
    object: u32,
}

/// Warns of them.
#[derive(Default)]
pub struct UnorderedAtomics {
    about: About,
    /// The kind of each site that counts.
    sites: Vec<Option<Kind>>,
    /// Objects with such sites.
    objects: HashSet<u32>,
    names: HashSet<String>,
    /// By the threadgroup's slot.
    passed: HashMap<u32, Passed>,
    /// By object, slot of a threadgroup whose own it is, and location.
    locations: HashMap<(u32, u32, u64), Vec<Done>>,
    found: BTreeMap<(u32, u32), Pair>,
}

impl Observer for UnorderedAtomics {
    fn wants(&self, object: &ObjectInfo) -> bool {
        self.names.contains(&object.name)
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        *self = UnorderedAtomics::default();
        self.about = About::of(launch);
        if orders_anything(launch.kernel) {
            return Ok(());
        }
        let kinds = kinds(launch.module, launch.kernel);
        let kind = |site: &crate::observe::SiteInfo| Some(kinds.get(&site.instruction)?.0);
        self.sites = launch.sites.iter().map(kind).collect();
        let number = |memory| match memory {
            Memory::Param(i) => Some(i),
            Memory::Alloc(i) => Some(launch.kernel.params.len() as u32 + i),
            Memory::Constant(_) => None,
        };
        self.objects = kinds.values().filter_map(|(_, m)| number(*m)).collect();
        let names = self.objects.iter().map(|o| &launch.objects[*o as usize]);
        self.names = names.map(|object| object.name.clone()).collect();
        Ok(())
    }

    fn begin_threadgroup(&mut self, who: Who, _threads: u32) {
        if !self.objects.is_empty() {
            self.passed.insert(who.slot, Passed::default());
            self.locations.retain(|(_, slot, _), _| *slot != who.slot);
        }
    }

    fn barrier(&mut self, who: Who, _site: u32, scope: Scope, spaces: Spaces) {
        if self.objects.is_empty() {
            return;
        }
        let passed = self.passed.entry(who.slot).or_default();
        let times = match scope {
            Scope::Simdgroup => passed.simdgroups.entry(who.simdgroup).or_default(),
            Scope::Threadgroup | Scope::Device => &mut passed.threadgroup,
        };
        for (time, space) in times.iter_mut().zip([Spaces::DEVICE, Spaces::THREADGROUP]) {
            *time += u32::from(spaces.contains(space));
        }
    }

    fn access(&mut self, access: &Access) {
        let Some(kind) = self.sites.get(access.site as usize).copied().flatten() else {
            return;
        };
        if !matches!(access.kind, Way::Atomic { .. }) {
            return;
        }
        let own = self.about.objects[access.object as usize].space == AddressSpace::Threadgroup;
        let time = self.passed.get(&access.who.slot).map_or((0, 0), |passed| {
            let at = usize::from(own);
            let simdgroup = passed.simdgroups.get(&access.who.simdgroup);
            (
                passed.threadgroup[at],
                simdgroup.map_or(0, |times| times[at]),
            )
        });
        let slot = if own { access.who.slot } else { u32::MAX };
        let lanes = access.order.iter().copied().map(u32::from);
        let unchanged = access.unchanged.first().copied().unwrap_or(0);
        for lane in lanes.filter(|lane| access.lanes >> lane & 1 == 1) {
            let location = access.locations[lane as usize];
            let done = Done {
                kind: match kind {
                    Kind::Combine(way, _) if unchanged >> lane & 1 == 1 => Kind::Combine(way, 0),
                    other => other,
                },
                site: access.site,
                who: access.who,
                lane,
                time,
            };
            self.note(access.object, slot, location, done);
        }
    }

    fn finish(&mut self) -> Vec<Diagnostic> {
        self.found().into_iter().map(|(_, d)| d).collect()
    }
}

impl UnorderedAtomics {
    fn note(&mut self, object: u32, slot: u32, location: u64, done: Done) {
        let key = (object, slot, location);
        if self.locations.len() >= MOST_LOCATIONS && !self.locations.contains_key(&key) {
            return;
        }
        let kept = self.locations.entry(key).or_default();
        let shows = |before: &&Done| !before.kind.commutes(done.kind) && before.unordered(&done);
        if let Some(before) = kept.iter().copied().find(|before| shows(&before)) {
            let sites = (before.site.min(done.site), before.site.max(done.site));
            let about = &self.about;
            self.found.entry(sites).or_insert_with(|| {
                let name = about.objects[object as usize].location_name(location);
                let (a, b) = if before.site <= done.site {
                    (before, done)
                } else {
                    (done, before)
                };
                let message = format!(
                    "the order of two atomics on `{name}`, by {} and by {}, shows in what they leave or \
                     return, and nothing orders the two",
                    about.thread(a.who, a.lane),
                    about.thread(b.who, b.lane),
                );
                Pair { message, object }
            });
        }
        // For what comes later, two threads of a kind and of a threadgroup stand for all, and two
        // threadgroups for all.
        let same = |other: &Done| other.kind == done.kind && other.same_threadgroup(&done);
        kept.retain(|other| {
            !(same(other) && (other.time.0 != done.time.0 || other.same_thread(&done)))
        });
        if kept.iter().filter(|other| same(other)).count() >= 2
            && let Some(first) = kept.iter().position(same)
        {
            kept.remove(first);
        }
        let elsewhere = |other: &Done| other.kind == done.kind && !other.same_threadgroup(&done);
        while kept.iter().filter(|other| elsewhere(other)).count() > 2
            && let Some(first) = kept.iter().position(&elsewhere)
        {
            kept.remove(first);
        }
        kept.push(done);
    }

    /// What was found, each with its object.
    pub(crate) fn found(&mut self) -> Vec<(Option<u32>, Diagnostic)> {
        let found = std::mem::take(&mut self.found).into_iter();
        let found = found.map(|((first, second), Pair { message, object })| {
            let span = |site: u32| self.about.sites[site as usize].span;
            let warning = Diagnostic::warning(Rule::UnorderedAtomics, span(second), message);
            let other = if first == second {
                "by both threads here"
            } else {
                "the other is here"
            };
            let warning = warning.and(span(first), other).help(
                "put a barrier between the two; threads of different threadgroups meet in another \
                 dispatch only; if either order will do, allow `unordered-atomics`",
            );
            (Some(object), warning)
        });
        found.collect()
    }
}
