//! The race detector against brute force: random small programs, happens-before by its definition
//! (O7: the closure of O1, O2, O4 and O5 over all accesses, by space) and races by theirs (R1).
//!
//! `INVAR_RACE_PROGRAMS` sets how many programs of each kind to try, `INVAR_RACE_SEED` where to
//! begin.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::common::Random;
use invar_interp::race::{
    Access, Atomic, AtomicAccess, Batch, Class, Config, CopyId, Declaration, Detector, Lanes,
    Object, Order, Performer, RacingAccess, Region, Scope, Simdgroup, Site, Space, Spaces,
};

const SIMDGROUP_SIZE: u32 = 4;
const LOCATIONS: u32 = 8;

/// The objects of every program, by number.
const OBJECTS: [Space; 4] = [
    Space::Device,
    Space::Threadgroup,
    Space::Texture,
    Space::Imageblock,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Atomic(Atomic),
}

impl Kind {
    fn writes(self) -> bool {
        match self {
            Self::Read => false,
            Self::Write => true,
            Self::Atomic(atomic) => atomic.access != AtomicAccess::Load,
        }
    }

    fn access(self) -> Access {
        match self {
            Self::Read => Access::Read,
            Self::Write => Access::Write,
            Self::Atomic(_) if self.writes() => Access::AtomicWrite,
            Self::Atomic(_) => Access::AtomicRead,
        }
    }
}

type Part = Option<(u32, Range<u32>)>;

/// What a simdgroup does next.
#[derive(Clone, Debug)]
enum Item {
    /// Lane, first location and value of each.
    Lanes {
        object: u32,
        kind: Kind,
        lanes: Vec<(u8, u32, u32)>,
        width: u32,
        form: Form,
    },
    Collective {
        object: u32,
        kind: Kind,
        range: Range<u32>,
        value: u32,
    },
    Issue {
        copy: usize,
        source: Part,
        destination: Part,
    },
    Wait(usize),
    Barrier(Spaces),
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Affine { base: i64, stride: i64 },
    Each,
}

/// The items of each simdgroup up to a threadgroup barrier, and what that names.
type Phase<T> = (Vec<Vec<T>>, Spaces);

#[derive(Clone, Debug)]
struct Program {
    /// By threadgroup: its threads and what they do.
    threadgroups: Vec<(u32, Vec<Phase<Item>>)>,
    acquire_release: bool,
    /// Each barrier is executed this many times over.
    repeat: u32,
    copies: usize,
}

#[derive(Clone, Copy)]
struct Shape {
    acquire_release: bool,
    atomics: bool,
    collectives: bool,
    copies: bool,
    /// Whether barriers may name any set of spaces.
    any_spaces: bool,
    /// How many of `OBJECTS` to use, and locations in each.
    objects: usize,
    locations: u32,
    max_items: usize,
    max_phases: usize,
}

fn random_spaces(random: &mut Random, shape: &Shape) -> Spaces {
    if !shape.any_spaces || random.chance(40) {
        return Spaces::DEVICE_AND_THREADGROUP;
    }
    let mut spaces = Spaces::NONE;
    for &space in &OBJECTS[..shape.objects.max(2)] {
        if random.chance(50) {
            spaces = spaces.with(space);
        }
    }
    spaces
}

fn random_kind(random: &mut Random, shape: &Shape, object: u32) -> Kind {
    let plain = random.pick(&[Kind::Read, Kind::Write]);
    if !shape.atomics || object > 1 || random.chance(50) {
        return plain;
    }
    let access = random.pick(&[
        AtomicAccess::Load,
        AtomicAccess::Store,
        AtomicAccess::Update,
    ]);
    if !shape.acquire_release || random.chance(25) {
        return Kind::Atomic(Atomic::relaxed(access));
    }
    let order = match access {
        AtomicAccess::Load => Order::Acquire,
        AtomicAccess::Store => Order::Release,
        AtomicAccess::Update => random.pick(&[
            Order::Acquire,
            Order::Release,
            Order::AcquireRelease,
            Order::SequentiallyConsistent,
        ]),
    };
    let scope = random.pick(&[Scope::Device, Scope::Device, Scope::Threadgroup]);
    Kind::Atomic(Atomic {
        access,
        order,
        scope,
    })
}

fn random_lanes(random: &mut Random, shape: &Shape, lane_count: u32) -> Item {
    let object = random.below(shape.objects) as u32;
    let kind = random_kind(random, shape, object);
    let n = shape.locations;
    let width = if random.chance(15) && n > 1 { 2 } else { 1 };
    let mut mask: Vec<u8> = (0..lane_count as u8)
        .filter(|_| random.chance(60))
        .collect();
    let mut lanes = Vec::new();
    let mut form = Form::Each;
    if random.chance(60) || mask.is_empty() {
        let lane = random.below(lane_count as usize) as u8;
        let at = random.below((n - width + 1) as usize) as u32;
        lanes.push((lane, at, random.below(2) as u32));
    } else {
        if random.chance(30) {
            mask = (0..lane_count as u8).collect();
        }
        let stride = random.pick(&[0, 0, 1, 1, -1, 2]) * i64::from(width);
        let base = random.below(2 * n as usize) as i64 - i64::from(n) / 2;
        let same = random.chance(50).then(|| random.below(2) as u32);
        for lane in mask {
            let at = base + i64::from(lane) * stride;
            if at >= 0 && at + i64::from(width) <= i64::from(n) {
                let value = same.unwrap_or_else(|| random.below(2) as u32);
                lanes.push((lane, at as u32, value));
            }
        }
        if random.chance(70) {
            form = Form::Affine { base, stride };
        } else {
            lanes.reverse();
        }
    }
    Item::Lanes {
        object,
        kind,
        lanes,
        width,
        form,
    }
}

fn random_range(random: &mut Random, shape: &Shape) -> Range<u32> {
    let start = random.below(shape.locations as usize) as u32;
    let length = 1 + random.below(2) as u32;
    start..(start + length).min(shape.locations)
}

fn random_program(random: &mut Random, shape: &Shape) -> Program {
    let mut copies = 0;
    let mut threadgroups = Vec::new();
    for _ in 0..1 + random.below(2) {
        let threads = random.pick(&[4_u32, 5, 6, 8, 8, 8]);
        let mut phases = Vec::new();
        let mut in_flight: Vec<Vec<usize>> = vec![Vec::new(); 2];
        for _ in 0..1 + random.below(shape.max_phases) {
            let mut simds = Vec::new();
            for simd in 0..threads.div_ceil(SIMDGROUP_SIZE) {
                let lanes = (threads - SIMDGROUP_SIZE * simd).min(SIMDGROUP_SIZE);
                let in_flight = &mut in_flight[simd as usize];
                let mut items = Vec::new();
                for _ in 0..random.below(shape.max_items + 1) {
                    let roll = random.below(100);
                    items.push(if roll < 15 {
                        Item::Barrier(random_spaces(random, shape))
                    } else if roll < 25 && shape.collectives {
                        Item::Collective {
                            object: random.below(shape.objects) as u32,
                            kind: random.pick(&[Kind::Read, Kind::Write]),
                            range: random_range(random, shape),
                            value: random.below(2) as u32,
                        }
                    } else if roll < 40 && shape.copies {
                        let mut part = |percent| {
                            let object = random.below(shape.objects) as u32;
                            let range = random_range(random, shape);
                            random.chance(percent).then_some((object, range))
                        };
                        in_flight.push(copies);
                        copies += 1;
                        Item::Issue {
                            copy: copies - 1,
                            source: part(80),
                            destination: part(60),
                        }
                    } else if roll < 55 && !in_flight.is_empty() {
                        let at = random.below(in_flight.len());
                        // Now and then a copy is waited for twice.
                        if random.chance(90) {
                            Item::Wait(in_flight.swap_remove(at))
                        } else {
                            Item::Wait(in_flight[at])
                        }
                    } else {
                        random_lanes(random, shape, lanes)
                    });
                }
                simds.push(items);
            }
            phases.push((simds, random_spaces(random, shape)));
        }
        threadgroups.push((threads, phases));
    }
    Program {
        threadgroups,
        acquire_release: shape.acquire_release,
        repeat: if random.chance(20) { 7 } else { 1 },
        copies,
    }
}

/// One thread's access, or what it would be if this lane made it.
#[derive(Clone, Debug)]
struct Node {
    /// Threadgroup, simdgroup, lane.
    thread: (usize, usize, u8),
    /// An access by an unknown lane has one node for each lane, with the same number.
    access: usize,
    object: u32,
    location: u32,
    kind: Kind,
    value: u32,
    site: u32,
    copy: Option<usize>,
    /// Whether this lane makes the access in every assignment of lanes. If not, then for every two
    /// other accesses there is an assignment in which it does not come between them.
    certain: bool,
    /// When it is issued and when it is over, in the order of execution.
    begin: usize,
    end: usize,
    /// The atomics whose release it acquires.
    acquires: Vec<usize>,
}

struct Fence {
    when: usize,
    threadgroup: usize,
    simd: Option<usize>,
    spaces: Spaces,
}

/// Something executed, in order.
enum Step {
    Item(usize, usize, Item, u32),
    Barrier(usize, Spaces),
    End(usize),
}

/// The items of a simdgroup that may come next: items of different lanes may change places, unless
/// the whole simdgroup stands between.
fn next_items(items: &[(Item, u32)]) -> Vec<usize> {
    let mut free = Vec::new();
    let mut busy = 0_u8;
    for (i, (item, _)) in items.iter().enumerate() {
        let Item::Lanes { lanes, .. } = item else {
            if i == 0 {
                free.push(0);
            }
            break;
        };
        let mask = lanes.iter().fold(0, |mask, (lane, ..)| mask | 1 << lane);
        if mask & busy == 0 {
            free.push(i);
        }
        busy |= mask;
    }
    free
}

/// A random order of execution that program order and barriers allow.
fn schedule(random: &mut Random, program: &Program) -> Vec<Step> {
    let mut sites = 0;
    // What is left, each item with its site; the phases in reverse.
    let mut left: Vec<Vec<Phase<(Item, u32)>>> = Vec::new();
    for (_, phases) in &program.threadgroups {
        let mut numbered = Vec::new();
        for (simds, spaces) in phases {
            let mut number = |item: &Item| {
                sites += 1;
                (item.clone(), sites - 1)
            };
            let simds = simds
                .iter()
                .map(|items| items.iter().map(&mut number).collect());
            numbered.push((simds.collect(), *spaces));
        }
        numbered.reverse();
        left.push(numbered);
    }
    let mut steps = Vec::new();
    // In some schedules threadgroups run one after the other, in others they mix.
    let eager = random.chance(30);
    let last_first = random.chance(50);
    loop {
        let mut running: Vec<_> = (0..left.len()).filter(|&g| !left[g].is_empty()).collect();
        if running.is_empty() {
            return steps;
        }
        if last_first {
            running.reverse();
        }
        let g = if eager && random.chance(90) {
            running[0]
        } else {
            random.pick(&running)
        };
        let (simds, spaces) = left[g].last_mut().expect("it is running");
        let ready: Vec<_> = (0..simds.len()).filter(|&s| !simds[s].is_empty()).collect();
        if ready.is_empty() {
            steps.push(Step::Barrier(g, *spaces));
            left[g].pop();
            if left[g].is_empty() {
                steps.push(Step::End(g));
            }
            continue;
        }
        let s = random.pick(&ready);
        let next = random.pick(&next_items(&simds[s]));
        let (item, site) = simds[s].remove(next);
        steps.push(Step::Item(g, s, item, site));
    }
}

/// A location: the threadgroup that has its own, or 0; the object; the index.
type Location = (usize, u32, u32);

fn location(threadgroup: usize, object: u32, index: u32) -> Location {
    let own = matches!(
        OBJECTS[object as usize],
        Space::Threadgroup | Space::Imageblock
    );
    (if own { threadgroup } else { 0 }, object, index)
}

/// The accesses of one execution and the races among them, by definition.
#[derive(Default)]
struct Oracle {
    nodes: Vec<Node>,
    fences: Vec<Fence>,
    /// By space: the nodes that each node happens before.
    after: [Vec<u128>; 4],
}

impl Oracle {
    fn happens_before(&self, x: usize, y: usize) -> bool {
        let space = self.nodes[x].object as usize;
        self.after[space][x] >> y & 1 == 1
    }

    fn location(&self, x: usize) -> Location {
        let node = &self.nodes[x];
        location(node.thread.0, node.object, node.location)
    }

    /// Whether two nodes race (R1; O5 for what is in flight), and if so how.
    fn race(&self, x: usize, y: usize) -> Option<Class> {
        let (a, b) = (&self.nodes[x], &self.nodes[y]);
        if a.access == b.access || self.location(x) != self.location(y) {
            return None;
        }
        if !a.kind.writes() && !b.kind.writes() {
            return None;
        }
        if matches!((a.kind, b.kind), (Kind::Atomic(_), Kind::Atomic(_))) {
            return None;
        }
        if a.copy.is_some() && a.copy == b.copy && a.thread == b.thread {
            return None; // a lane makes its own share in order
        }
        if self.happens_before(x, y) || self.happens_before(y, x) {
            return None;
        }
        let stores = (a.kind, b.kind) == (Kind::Write, Kind::Write);
        let by_copy = a.copy.is_some() || b.copy.is_some();
        if stores && !by_copy && a.value == b.value {
            Some(Class::EqualStores)
        } else {
            Some(Class::DataRace)
        }
    }

    /// Whether the happens-before of `space` has an edge from `x` to `y`.
    fn edge(&self, space: usize, x: usize, y: usize) -> bool {
        let (a, b) = (&self.nodes[x], &self.nodes[y]);
        // O1. Of a copy, O5: after the lane's own accesses, before what any lane does later.
        let same_simdgroup = (a.thread.0, a.thread.1) == (b.thread.0, b.thread.1);
        if a.end < b.begin && (a.thread == b.thread || (a.copy.is_some() && same_simdgroup)) {
            return true;
        }
        // O4.
        if b.acquires.contains(&x) {
            return matches!(OBJECTS[space], Space::Device | Space::Threadgroup);
        }
        // O2.
        self.fences.iter().any(|fence| {
            let member = |node: &Node| {
                node.thread.0 == fence.threadgroup
                    && fence.simd.is_none_or(|simd| simd == node.thread.1)
                    && fence.spaces.contains(OBJECTS[node.object as usize])
            };
            fence.spaces.contains(OBJECTS[space])
                && (a.end < fence.when && fence.when < b.begin)
                && member(a)
                && member(b)
        })
    }

    fn close(&mut self) {
        let n = self.nodes.len();
        // Edges lead to what begins later, so the last nodes are closed first.
        let mut order: Vec<_> = (0..n).collect();
        order.sort_by_key(|&x| std::cmp::Reverse(self.nodes[x].begin));
        for space in 0..OBJECTS.len() {
            let mut after = vec![0_u128; n];
            for &x in &order {
                let mut reached = 0;
                for (y, beyond) in after.iter().enumerate() {
                    if self.edge(space, x, y) {
                        reached |= 1 << y;
                        if self.nodes[y].certain {
                            reached |= beyond;
                        }
                    }
                }
                after[x] = reached;
            }
            self.after[space] = after;
        }
    }

    /// The racy locations, each with its class.
    fn verdict(&self) -> BTreeMap<Location, Class> {
        let mut found = BTreeMap::new();
        for x in 0..self.nodes.len() {
            for y in 0..x {
                if let Some(class) = self.race(x, y) {
                    let entry = found.entry(self.location(x)).or_insert(class);
                    if class == Class::DataRace {
                        *entry = class;
                    }
                }
            }
        }
        found
    }

    fn is(&self, x: usize, party: &RacingAccess) -> bool {
        let node = &self.nodes[x];
        node.site == party.site.0
            && node.thread.0 as u64 == party.threadgroup
            && node.thread.1 as u32 == party.simdgroup
            && node.kind.access() == party.access
            && match party.performer {
                Performer::Lane(lane) => u32::from(node.thread.2) == lane,
                Performer::SomeLane => true,
            }
    }
}

#[derive(Debug, Default)]
struct Counts {
    executions: u64,
    accesses: u64,
    data_races: u64,
    equal_stores: u64,
    ordered_by_messages: u64,
    too_large: u64,
}

/// Runs a program in a random schedule, under the detector and the oracle; gives the racy
/// locations if both agree, none if the program is too large.
fn execute(
    program: &Program,
    random: &mut Random,
    counts: &mut Counts,
) -> Result<Option<BTreeMap<Location, Class>>, String> {
    let text = |error: invar_interp::race::Error| error.to_string();
    let steps = schedule(random, program);
    let narrow = !program.acquire_release && random.chance(30);
    let config = Config {
        // Large numbers leave few bits for time, so that it has to be renumbered.
        threadgroups: if narrow { (1 << 20) - 1 } else { 2 },
        threads_per_threadgroup: 8,
        simdgroup_size: SIMDGROUP_SIZE,
        sites: if narrow { u32::MAX } else { 1000 },
        acquire_release: program.acquire_release,
        report_limit: 1000,
        memory_limit_bytes: 1 << 30,
    };
    let declarations = OBJECTS.map(|space| Declaration {
        space,
        locations: LOCATIONS,
        writable: true,
    });
    let mut detector = Detector::new(&config, &declarations).map_err(text)?;
    let mut handles = Vec::new();
    for (g, (threads, _)) in program.threadgroups.iter().enumerate() {
        handles.push(
            detector
                .begin_threadgroup(g as u64, *threads)
                .map_err(text)?,
        );
    }
    let mut execution = Execution {
        detector,
        oracle: Oracle::default(),
        values: BTreeMap::new(),
        chains: BTreeMap::new(),
        accesses: 0,
        copies: vec![None; program.copies],
        when: 0,
        repeat: program.repeat,
    };
    for step in steps {
        execution.when += 1;
        match step {
            Step::Barrier(g, spaces) => {
                for _ in 0..program.repeat {
                    let reached = execution.detector.threadgroup_barrier(handles[g], spaces);
                    reached.map_err(text)?;
                }
                execution.oracle.fences.push(Fence {
                    when: execution.when,
                    threadgroup: g,
                    simd: None,
                    spaces,
                });
            }
            Step::End(g) => execution.detector.end_threadgroup(handles[g]),
            Step::Item(g, s, item, site) => {
                let threads = program.threadgroups[g].0;
                let by = By {
                    g,
                    s,
                    lanes: (threads - SIMDGROUP_SIZE * s as u32).min(SIMDGROUP_SIZE) as u8,
                    simdgroup: execution.detector.simdgroup(handles[g], s as u32),
                    site,
                };
                execution.item(&by, item).map_err(text)?;
            }
        }
        if execution.oracle.nodes.len() > 127 {
            counts.too_large += 1;
            return Ok(None);
        }
    }
    let verdict = execution.detector.finish().map_err(text)?;
    let mut oracle = execution.oracle;
    oracle.close();
    let expected = oracle.verdict();
    let of = |class| expected.values().filter(|&&c| c == class).count() as u64;
    counts.executions += 1;
    counts.accesses += execution.accesses as u64;
    counts.data_races += of(Class::DataRace);
    counts.equal_stores += of(Class::EqualStores);
    let messages = oracle.nodes.iter().filter(|n| !n.acquires.is_empty());
    counts.ordered_by_messages += messages.count() as u64;
    let found = (verdict.data_races, verdict.equal_stores);
    if found != (of(Class::DataRace), of(Class::EqualStores)) {
        return Err(format!(
            "found {found:?}, expected {expected:?}\n{:?}",
            verdict.reports
        ));
    }
    let n = oracle.nodes.len();
    for report in &verdict.reports {
        let at = |x: usize| {
            oracle.nodes[x].object == report.object.0 && oracle.nodes[x].location == report.location
        };
        let with = |x: usize, y: usize| {
            let class = oracle.race(x, y);
            // The class is the location's; a pair of equal stores may stand for a worse one.
            oracle.is(y, &report.second)
                && (class == Some(report.class)
                    || class.is_some() && report.class == Class::DataRace)
        };
        if !(0..n).any(|x| at(x) && oracle.is(x, &report.first) && (0..n).any(|y| with(x, y))) {
            return Err(format!("not a race: {report:?}"));
        }
    }
    Ok(Some(expected))
}

/// Who executes an item.
struct By {
    g: usize,
    s: usize,
    lanes: u8,
    simdgroup: Simdgroup,
    site: u32,
}

struct Execution {
    detector: Detector,
    oracle: Oracle,
    values: BTreeMap<Location, u32>,
    /// The last store, if atomic, and the updates since.
    chains: BTreeMap<Location, Vec<usize>>,
    accesses: usize,
    copies: Vec<Option<CopyId>>,
    when: usize,
    repeat: u32,
}

impl Execution {
    /// Adds an access, by one lane or by any.
    fn node(&mut self, by: &By, lane: Option<u8>, at: (u32, u32), kind: Kind, value: u32) {
        for l in lane.map_or(0..by.lanes, |lane| lane..lane + 1) {
            self.oracle.nodes.push(Node {
                thread: (by.g, by.s, l),
                access: self.accesses,
                object: at.0,
                location: at.1,
                kind,
                value,
                site: by.site,
                copy: None,
                certain: lane.is_some() || by.lanes == 1,
                begin: self.when,
                end: self.when,
                acquires: Vec::new(),
            });
        }
        self.accesses += 1;
    }

    /// A plain store; says whether the value was there already.
    fn store(&mut self, at: Location, value: u32) -> bool {
        self.chains.remove(&at);
        self.values.insert(at, value).unwrap_or(0) == value
    }

    /// O4: what the atomic just added acquires, and what it leaves to be acquired.
    fn synchronise(&mut self, atomic: Atomic, at: Location) {
        let both = [Order::AcquireRelease, Order::SequentiallyConsistent];
        let me = self.oracle.nodes.len() - 1;
        let nodes = &self.oracle.nodes;
        let chain = self.chains.entry(at).or_default();
        let acquires = atomic.order == Order::Acquire || both.contains(&atomic.order);
        if atomic.access != AtomicAccess::Store && acquires {
            let releases = |&x: &usize| {
                let Kind::Atomic(other) = nodes[x].kind else {
                    return false;
                };
                let near = nodes[x].thread.0 == nodes[me].thread.0;
                let includes = |scope| scope == Scope::Device || near;
                (other.order == Order::Release || both.contains(&other.order))
                    && includes(other.scope)
                    && includes(atomic.scope)
            };
            let acquired: Vec<_> = chain.iter().copied().filter(releases).collect();
            self.oracle.nodes[me].acquires = acquired;
        }
        match atomic.access {
            AtomicAccess::Load => {}
            AtomicAccess::Store => *chain = vec![me],
            AtomicAccess::Update => chain.push(me),
        }
    }

    fn item(&mut self, by: &By, item: Item) -> Result<(), invar_interp::race::Error> {
        match item {
            Item::Lanes {
                object,
                kind,
                lanes,
                width,
                form,
            } => self.lanes(by, object, kind, &lanes, width, form),
            Item::Collective {
                object,
                kind,
                range,
                value,
            } => {
                let mut unchanged = Vec::new();
                for at in range.clone() {
                    self.node(by, None, (object, at), kind, value);
                    if kind == Kind::Write {
                        unchanged.push(self.store(location(by.g, object, at), value));
                    }
                }
                let region = Region {
                    object: Object(object),
                    ranges: std::slice::from_ref(&range),
                };
                let site = Site(by.site);
                if kind == Kind::Write {
                    let met = |number: usize| unchanged[number];
                    self.detector
                        .collective_write(by.simdgroup, site, region, met);
                } else {
                    self.detector.collective_read(by.simdgroup, site, region);
                }
            }
            Item::Issue {
                copy,
                source,
                destination,
            } => {
                for (part, kind) in [(&source, Kind::Read), (&destination, Kind::Write)] {
                    for (object, at) in part
                        .iter()
                        .flat_map(|(o, range)| range.clone().map(move |at| (*o, at)))
                    {
                        let first = self.oracle.nodes.len();
                        self.node(by, None, (object, at), kind, 0);
                        for node in &mut self.oracle.nodes[first..] {
                            node.copy = Some(copy);
                            node.end = usize::MAX;
                        }
                    }
                }
                fn region(part: &Part) -> Option<Region<'_>> {
                    part.as_ref().map(|(object, range)| Region {
                        object: Object(*object),
                        ranges: std::slice::from_ref(range),
                    })
                }
                self.copies[copy] = Some(self.detector.issue_copy(
                    by.simdgroup,
                    Site(by.site),
                    region(&source),
                    region(&destination),
                ));
            }
            Item::Wait(copy) => {
                let issued = self.copies[copy].expect("a simdgroup issues before it waits");
                self.detector.wait_copy(issued);
                let mut stored = Vec::new();
                for node in &mut self.oracle.nodes {
                    if node.copy == Some(copy) && node.end == usize::MAX {
                        node.end = self.when;
                        if node.kind == Kind::Write {
                            stored.push(location(by.g, node.object, node.location));
                        }
                    }
                }
                for at in stored {
                    self.store(at, 0);
                }
            }
            Item::Barrier(spaces) => {
                for _ in 0..self.repeat {
                    self.detector.simdgroup_barrier(by.simdgroup, spaces)?;
                }
                self.oracle.fences.push(Fence {
                    when: self.when,
                    threadgroup: by.g,
                    simd: Some(by.s),
                    spaces,
                });
            }
        }
        Ok(())
    }

    fn lanes(
        &mut self,
        by: &By,
        object: u32,
        kind: Kind,
        lanes: &[(u8, u32, u32)],
        width: u32,
        form: Form,
    ) {
        let mut unchanged = BTreeMap::new();
        for &(lane, first, value) in lanes {
            for component in 0..width {
                let at = location(by.g, object, first + component);
                self.node(by, Some(lane), (object, at.2), kind, value);
                match kind {
                    Kind::Read => {}
                    Kind::Write => {
                        let met = self.store(at, value);
                        unchanged.insert((u32::from(lane), component), met);
                    }
                    Kind::Atomic(atomic) => {
                        self.synchronise(atomic, at);
                        if kind.writes() {
                            self.values.insert(at, value);
                        }
                    }
                }
                self.when += 1;
            }
        }
        let numbers: Vec<_> = lanes.iter().map(|&(lane, ..)| lane).collect();
        let locations: Vec<_> = lanes.iter().map(|&(_, at, _)| at).collect();
        let batch = Batch {
            simdgroup: by.simdgroup,
            site: Site(by.site),
            object: Object(object),
            lanes: match form {
                Form::Affine { base, stride } => Lanes::Affine {
                    mask: numbers.iter().fold(0, |mask, lane| mask | 1 << lane),
                    base,
                    stride,
                },
                Form::Each => Lanes::Each {
                    lanes: &numbers,
                    locations: &locations,
                },
            },
            width,
        };
        match kind {
            Kind::Read => self.detector.read(&batch),
            Kind::Write => self
                .detector
                .write(&batch, |lane, component| unchanged[&(lane, component)]),
            Kind::Atomic(atomic) => self.detector.atomic(&batch, atomic),
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |v| v.parse().expect("a number"))
}

/// The first failure of a program in a few schedules.
fn failure(program: &Program, seed: u64) -> Option<String> {
    let mut random = Random(seed);
    let mut attempts = (0..30).map(|_| execute(program, &mut random, &mut Counts::default()));
    attempts.find_map(Result::err)
}

/// A smaller program that fails too: without all items whose absence does not help.
fn shrink(mut program: Program, seed: u64) -> String {
    let mut last = None;
    loop {
        let mut smaller = None;
        for g in 0..program.threadgroups.len() {
            for phase in 0..program.threadgroups[g].1.len() {
                for s in 0..program.threadgroups[g].1[phase].0.len() {
                    for i in 0..program.threadgroups[g].1[phase].0[s].len() {
                        let mut candidate = program.clone();
                        let removed = candidate.threadgroups[g].1[phase].0[s].remove(i);
                        if matches!(removed, Item::Issue { .. }) {
                            continue; // its wait would have nothing to wait for
                        }
                        if let Some(error) = failure(&candidate, seed) {
                            smaller = Some((candidate, error));
                        }
                    }
                }
            }
        }
        match smaller {
            Some((candidate, error)) => {
                program = candidate;
                last = Some(error);
            }
            None => return format!("{}\n{program:?}", last.unwrap_or_default()),
        }
    }
}

/// Tries random programs of a shape, each in a few schedules.
fn campaign(name: &str, shape: &Shape, default_programs: u64) -> Counts {
    let programs = setting("INVAR_RACE_PROGRAMS", default_programs);
    let seed = setting("INVAR_RACE_SEED", 1);
    let mut counts = Counts::default();
    for number in 0..programs {
        let mut random = Random(seed << 40 ^ number);
        let program = random_program(&mut random, shape);
        let mut first = None;
        for _ in 0..3 {
            let found = match execute(&program, &mut random, &mut counts) {
                Ok(found) => found,
                Err(error) => panic!(
                    "{name}, program {number}: {error}\nshrunk: {}",
                    shrink(program, seed)
                ),
            };
            if !shape.acquire_release {
                let first = first.get_or_insert_with(|| found.clone());
                assert_eq!(
                    *first, found,
                    "{name}, program {number}: schedules disagree"
                );
            }
        }
    }
    // The programs are of use only if many locations race and many do not.
    assert!(counts.data_races > programs / 10, "{counts:?}");
    assert!(counts.equal_stores > programs / 100, "{counts:?}");
    assert!(counts.too_large < counts.executions / 4, "{counts:?}");
    counts
}

const PLAIN: Shape = Shape {
    acquire_release: false,
    atomics: true,
    collectives: false,
    copies: false,
    any_spaces: true,
    objects: 2,
    locations: 2,
    max_items: 4,
    max_phases: 4,
};

#[test]
fn r3_exact_in_every_schedule_of_kernels_with_barriers_and_relaxed_atomics() {
    campaign("plain", &PLAIN, 60_000);
}

#[test]
fn r3_exact_at_one_location_of_device_memory() {
    let shape = Shape {
        objects: 1,
        locations: 1,
        max_items: 3,
        max_phases: 5,
        ..PLAIN
    };
    campaign("one location", &shape, 30_000);
}

#[test]
fn r3_exact_over_runs_of_locations_in_all_spaces() {
    let shape = Shape {
        objects: 4,
        locations: LOCATIONS,
        max_items: 5,
        max_phases: 3,
        ..PLAIN
    };
    campaign("runs", &shape, 20_000);
}

#[test]
fn o5_o6_exact_with_collective_accesses_and_async_copies() {
    let shape = Shape {
        collectives: true,
        copies: true,
        max_items: 3,
        max_phases: 3,
        ..PLAIN
    };
    campaign("copies", &shape, 30_000);
}

#[test]
fn o4_right_for_the_schedule_of_kernels_with_acquire_and_release() {
    let shape = Shape {
        acquire_release: true,
        max_phases: 3,
        ..PLAIN
    };
    let counts = campaign("messages", &shape, 30_000);
    assert!(counts.ordered_by_messages > counts.executions / 10);
}

#[test]
fn o4_o5_o6_right_with_acquire_release_and_copies() {
    let shape = Shape {
        acquire_release: true,
        collectives: true,
        copies: true,
        // An unknown lane's access does not make known to others what a barrier of other spaces
        // brought, so with all spaces named the definition needs no lane assignments.
        any_spaces: false,
        max_items: 3,
        max_phases: 3,
        ..PLAIN
    };
    campaign("messages and copies", &shape, 30_000);
}
