//! The data-race checker (R1 to R3): hands the run to the detector and words its findings.
//!
//! Where a schedule has races, a second look at it ([`DataRaces::second_look`]) finds every pair of
//! places that races at those locations, and why atomics of the threads that race do not order them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use invar_ir::{
    AddressSpace, AtomicOp, Diagnostic, InstKind, Kernel, Memory, Order, Rule, Scope, Spaces, Span,
};

use crate::advice::Advice;
use crate::dispatch::GridSizes;
use crate::observe::{
    Access, AsyncCopy, Kind, Launch, ObjectInfo, Observer, SiteInfo, SiteKind, Touched, Who,
};
use crate::pairs::{Pair, Pairs, Place};
use crate::race::{
    self, Atomic, AtomicAccess, Batch, Class, Config, CopyId, Declaration, Detector, Lanes, Object,
    Performer, RacingAccess, RacyLocation, Region, Report, Simdgroup, Site, Space, Threadgroup,
};
use crate::unpaired::Unpaired;
use crate::verdict::{commuting, holds_floats, mixed_atomics};

/// Reports data races, and stores of equal values to one location.
///
/// Its state costs up to 32 bytes a location of memory that the kernel can write.
pub struct DataRaces {
    memory_limit_bytes: u64,
    /// Objects that are known to have none.
    race_free: Vec<Memory>,
    detector: Option<Detector>,
    /// The detector's number of each object that can race.
    objects: Vec<Option<Object>>,
    about: Vec<ObjectInfo>,
    sites: Vec<SiteInfo>,
    grid: Option<GridSizes>,
    simdgroup_size: u32,
    /// What runs in each slot.
    running: Vec<Option<Threadgroup>>,
    copies: HashMap<u64, CopyId>,
    lanes: Vec<u8>,
    locations: Vec<u32>,
    ranges: [Vec<Range<u32>>; 2],
    fault: Option<race::Error>,
    kernel: Span,
    /// Of each object, where atomics on it do not all commute: whether it holds floats.
    mixed: Vec<Option<bool>>,
    advice: Option<Advice>,
    outcome: Outcome,
    /// In a second look: at which locations, and the atomics of which threads.
    look_at: Option<(Vec<RacyLocation>, Unpaired)>,
    /// In a second look: take each barrier as one that names every space.
    names_all: bool,
    barriers: Vec<Barrier>,
    /// The instructions of each loop's body, by their numbers.
    loops: Vec<Range<u32>>,
}

/// A barrier of the kernel.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    instruction: u32,
    span: Span,
    scope: Scope,
    spaces: race::Spaces,
}

/// Every space that a barrier can name.
const ALL_SPACES: race::Spaces = race::Spaces::DEVICE_AND_THREADGROUP
    .with(Space::Texture)
    .with(Space::Imageblock);

/// What a run has shown.
#[derive(Debug, Default)]
struct Outcome {
    races: Vec<Race>,
    /// Findings at further pairs of places.
    not_kept: u64,
    /// Objects at which a second look did not find every pair of places.
    cut: HashSet<Object>,
    racy: Vec<RacyLocation>,
    equal_stores: Vec<u32>,
    data_races: Vec<u32>,
    unordered_atomics: Vec<u32>,
}

/// Two places that race.
#[derive(Clone, Debug)]
pub(crate) struct Race {
    /// What reads, or else what stands last, is its second party, for there the wrong value shows.
    report: Report,
    /// The second party was executed first.
    swapped: bool,
    /// Found only in a second look: other places were the first to race at these locations.
    further: bool,
    /// Why the threads' atomics do not order the two.
    why: Option<String>,
    /// A barrier between the two that would order them if it named their space (R6).
    barrier: Option<Barrier>,
}

/// How many pairs of places are found out.
const REPORT_LIMIT: usize = 64;

impl Default for DataRaces {
    /// With room for 4 GiB of state.
    fn default() -> DataRaces {
        DataRaces::new(4 << 30)
    }
}

impl DataRaces {
    /// A checker whose state takes at most that much memory.
    pub fn new(memory_limit_bytes: u64) -> DataRaces {
        DataRaces {
            memory_limit_bytes,
            race_free: Vec::new(),
            detector: None,
            objects: Vec::new(),
            about: Vec::new(),
            sites: Vec::new(),
            grid: None,
            simdgroup_size: 0,
            running: Vec::new(),
            copies: HashMap::new(),
            lanes: Vec::new(),
            locations: Vec::new(),
            ranges: Default::default(),
            fault: None,
            kernel: Span::NONE,
            mixed: Vec::new(),
            advice: None,
            outcome: Outcome::default(),
            look_at: None,
            names_all: false,
            barriers: Vec::new(),
            loops: Vec::new(),
        }
    }

    /// The same, without these objects, on which no two threads race.
    pub(crate) fn but(mut self, race_free: Vec<Memory>) -> DataRaces {
        self.race_free = race_free;
        self
    }

    /// Checkers that look at the schedule of a run again, which this one has seen and found races
    /// in; none if it found none. Hand them back with [`DataRaces::learn`] after the run.
    ///
    /// The first finds every pair of places at the racy locations. Where a barrier leaves out the space of a
    /// racy location, the others take each barrier as one of every space: they find what is left at these
    /// locations, and at all.
    pub(crate) fn second_look(&self) -> Vec<DataRaces> {
        if self.outcome.racy.is_empty() {
            return Vec::new();
        }
        let reports: Vec<Report> = self.outcome.races.iter().map(Race::in_order).collect();
        let look = |names_all, watches| {
            let unpaired = || Unpaired::new(&reports, |r| self.number(r.object));
            let racy = || self.outcome.racy.clone();
            DataRaces {
                look_at: if watches {
                    Some((racy(), unpaired()))
                } else {
                    None
                },
                names_all,
                ..DataRaces::new(self.memory_limit_bytes).but(self.race_free.clone())
            }
        };
        let leaves_out = |r: &Report| self.barriers.iter().any(|b| !self.names(b, r.object));
        match reports.iter().any(leaves_out) {
            true => vec![look(false, true), look(true, true), look(true, false)],
            false => vec![look(false, true)],
        }
    }

    /// Whether a barrier names the space of an object.
    fn names(&self, barrier: &Barrier, object: Object) -> bool {
        let space = space_of(&self.about[self.number(object) as usize]);
        space.is_some_and(|space| barrier.spaces.contains(space))
    }

    /// Takes what a second look has found.
    pub(crate) fn learn(&mut self, second: Vec<DataRaces>) {
        let mut looks = second.into_iter();
        if let Some(every_pair) = looks.next() {
            let seen = self.learn_pairs(every_pair);
            if let Some((watching, all)) = looks.next().zip(looks.next()) {
                self.learn_barriers(&seen, watching, all);
            }
        }
    }

    /// Finds the races that barriers would order if they named every space: those of `seen` that neither of two
    /// looks has found which take them so.
    fn learn_barriers(&mut self, seen: &HashSet<RaceKey>, watching: DataRaces, mut all: DataRaces) {
        let (Some(detector), Ok(())) = (watching.detector, all.conclude()) else {
            return;
        };
        let pairs = detector.pairs();
        let mut left: HashSet<RaceKey> = all.keys().collect();
        left.extend(self.merged(pairs.reports).iter().map(|race| self.key(race)));
        // Pairs of places may be missing there.
        let is_sure = all.outcome.not_kept == 0;
        for i in 0..self.outcome.races.len() {
            let race = &self.outcome.races[i];
            let (key, report) = (self.key(race), race.in_order());
            let orders = is_sure
                && report.class == Class::DataRace
                && seen.contains(&key)
                && !left.contains(&key)
                && !pairs.cut.contains(&report.object);
            self.outcome.races[i].barrier = orders.then(|| self.barrier_between(&report)).flatten();
        }
    }

    /// The first barrier on the way from the first of two accesses to the second that leaves out their space. The
    /// way leads straight on, or round the innermost loop that holds both and such a barrier. Where threads of
    /// several simdgroups race, one at which they meet counts first.
    fn barrier_between(&self, report: &Report) -> Option<Barrier> {
        let [first, second] =
            [&report.first, &report.second].map(|party| self.site(party).instruction);
        let rank = |b: &&Barrier| {
            let at = b.instruction;
            let meet = report.within_simdgroup || b.scope != Scope::Simdgroup;
            let all = |l: &&Range<u32>| [first, second, at].iter().all(|i| l.contains(i));
            let iteration = self.loops.iter().filter(all).map(|l| l.len()).min();
            // The loop's length; those behind the first access come before those at the loop's head.
            let way = match first < at && at < second {
                true => (0, false),
                false => (iteration.unwrap_or(usize::MAX), at < first),
            };
            (!meet, way, at)
        };
        let leaves_out = |b: &&Barrier| !self.names(b, report.object);
        let candidates = self.barriers.iter().filter(leaves_out);
        candidates.min_by_key(rank).copied()
    }

    /// Takes what a look at the racy locations has found: all pairs of places, which it gives.
    fn learn_pairs(&mut self, second: DataRaces) -> HashSet<RaceKey> {
        let mut seen = HashSet::new();
        let (Some(detector), Some((_, unpaired))) = (second.detector, second.look_at) else {
            return seen;
        };
        for (i, race) in self.outcome.races.iter_mut().enumerate() {
            let line = |site: u32| match self.sites[site as usize].span {
                span if span.source.is_some() => format!(" on line {}", span.start.line),
                _ => String::new(),
            };
            let name = |object: u32, at| self.about[object as usize].location_name(at);
            let object = self
                .objects
                .iter()
                .position(|o| *o == Some(race.report.object));
            let space = self.about[object.unwrap_or(0)].space;
            race.why = unpaired.why(i, line, name, space);
        }
        let known: HashMap<_, _> = self.keys().zip(0..).collect();
        let pairs = detector.pairs();
        self.outcome.cut = pairs.cut;
        for mut race in self.merged(pairs.reports) {
            seen.insert(self.key(&race));
            match known.get(&self.key(&race)) {
                // Other places may have been the first to race at some of its locations.
                Some(at) => {
                    let known = &mut self.outcome.races[*at].report;
                    known.locations = race.report.locations.max(known.locations);
                    known.within_simdgroup &= race.report.within_simdgroup;
                    known.within_threadgroup &= race.report.within_threadgroup;
                }
                None => {
                    race.further = true;
                    self.outcome.races.push(race);
                }
            }
        }
        seen
    }

    /// The number by which the run calls an object of the detector's.
    fn number(&self, object: Object) -> u32 {
        let number = self.objects.iter().position(|known| *known == Some(object));
        number.unwrap_or(0) as u32
    }

    /// The objects, by their places in [`Launch::objects`], in which the run that ended last left
    /// locations with equal stores and no data race.
    pub fn equal_stores(&self) -> &[u32] {
        &self.outcome.equal_stores
    }

    /// The objects with a data race, also one that a barrier of more spaces would order.
    pub fn data_races(&self) -> &[u32] {
        &self.outcome.data_races
    }

    /// The objects with a location that atomics changed which do not commute and which no barrier
    /// orders.
    pub fn unordered_atomics(&self) -> &[u32] {
        &self.outcome.unordered_atomics
    }

    /// What two races have in common that are one to the reader: their class, their object, and what
    /// is done where.
    pub(crate) fn keys(&self) -> impl Iterator<Item = RaceKey> + '_ {
        self.outcome.races.iter().map(|race| self.key(race))
    }

    /// The same, of races that no barrier would order if it named more spaces.
    pub(crate) fn keys_of_data_races(&self) -> impl Iterator<Item = RaceKey> + '_ {
        let races = self.outcome.races.iter();
        races.filter(|r| r.barrier.is_none()).map(|r| self.key(r))
    }

    fn key(&self, race: &Race) -> RaceKey {
        let of = |p: &RacingAccess| {
            let span = self.site(p).span;
            (span, span.source.is_none().then_some(p.site), p.access)
        };
        let Report {
            class,
            object,
            first,
            second,
            ..
        } = &race.report;
        (*class, *object, of(first), of(second))
    }

    /// Makes one race of those at the same two places, whichever of them was executed first.
    fn merged(&self, reports: Vec<Report>) -> Vec<Race> {
        let mut merged: Vec<Race> = Vec::new();
        let mut places: HashMap<RaceKey, usize> = HashMap::new();
        for report in reports {
            let race = Race::of(report);
            match places.get(&self.key(&race)) {
                Some(at) => {
                    let known = &mut merged[*at].report;
                    known.locations += race.report.locations;
                    known.within_simdgroup &= race.report.within_simdgroup;
                    known.within_threadgroup &= race.report.within_threadgroup;
                }
                None => {
                    places.insert(self.key(&race), merged.len());
                    merged.push(race);
                }
            }
        }
        merged
    }

    /// The races of the run that ended last.
    pub(crate) fn races(&self) -> &[Race] {
        &self.outcome.races
    }

    /// The pair of places of a race, which is the same whichever access came first.
    pub(crate) fn pair(&self, race: &Race) -> Pair {
        let place = |p: &RacingAccess| {
            let span = self.site(p).span;
            (span, span.source.is_none().then_some(p.site))
        };
        let (first, second) = (&race.report.first, &race.report.second);
        let (a, b) = (place(first), place(second));
        let order = |(span, site): &Place| {
            let call = span.call.map(|call| call.0);
            let site = site.map(|site| site.0);
            (span.source, span.start, span.end, call, site)
        };
        let (a, b) = match order(&a) <= order(&b) {
            true => (a, b),
            false => (b, a),
        };
        let deed = |p: &RacingAccess| DataRaces::deed(p.access, self.site(p).kind);
        let alike = a == b && deed(first) == deed(second);
        (self.number(race.report.object), a, b, alike)
    }

    /// Whether more places may race at a race's object than were found.
    pub(crate) fn misses_pairs_at(&self, race: &Race) -> bool {
        self.outcome.not_kept > 0 || self.outcome.cut.contains(&race.report.object)
    }

    /// What an object of the run is called.
    pub(crate) fn name(&self, number: u32) -> &str {
        &self.about[number as usize].name
    }

    pub(crate) fn kernel(&self) -> Span {
        self.kernel
    }

    /// Says that places are missing among the races, if some are.
    pub(crate) fn not_listed(&self) -> Option<Diagnostic> {
        let message = format!(
            "{} more racy locations, at other pairs of places, are not listed",
            self.outcome.not_kept
        );
        let more = Diagnostic::error(Rule::DataRace, self.kernel, message);
        (self.outcome.not_kept > 0).then_some(more)
    }

    fn simdgroup(&self, detector: &Detector, who: Who) -> Option<Simdgroup> {
        let threadgroup = self.running.get(who.slot as usize).copied().flatten()?;
        Some(detector.simdgroup(threadgroup, who.simdgroup))
    }

    fn limit(&self, error: &race::Error) -> Diagnostic {
        let rule = match error {
            race::Error::NoMemory { .. } => Rule::OutOfMemory,
            _own_limit => Rule::CheckLimit,
        };
        Diagnostic::error(rule, self.kernel, error.to_string())
    }

    // ---- wording ----

    fn thread(&self, party: &RacingAccess) -> String {
        let Some(grid) = self.grid else {
            return String::new();
        };
        let position = grid.position(party.threadgroup);
        let text = |p: [u32; 3]| format!("({}, {}, {})", p[0], p[1], p[2]);
        match party.performer {
            Performer::Lane(lane) => {
                let number = party.simdgroup * self.simdgroup_size + lane;
                let thread = GridSizes::thread_position(grid.size(position), number);
                format!("thread {} of threadgroup {}", text(thread), text(position))
            }
            Performer::SomeLane => format!(
                "a thread of simdgroup {} of threadgroup {}",
                party.simdgroup,
                text(position)
            ),
        }
    }

    fn site(&self, party: &RacingAccess) -> SiteInfo {
        self.sites[party.site.0 as usize]
    }

    fn deed(access: race::Access, kind: SiteKind) -> &'static str {
        match (access, kind) {
            (race::Access::Read, SiteKind::AsyncCopy) => "read by an async copy",
            (race::Access::Write, SiteKind::AsyncCopy) => "written by an async copy",
            (race::Access::Read, _) => "read",
            (race::Access::Write, _) => "written",
            (race::Access::AtomicRead, _) => "read atomically",
            (race::Access::AtomicWrite, _) => "changed atomically",
        }
    }

    fn help(&self, race: &Race, space: AddressSpace) -> String {
        let advised = self.advised(race, space);
        if race.report.within_threadgroup || !advised.contains("`barrier ") {
            return advised;
        }
        format!(
            "{advised}; threads of different threadgroups race here too, and no barrier reaches from one to another: \
             make every access to it atomic, or use two dispatches"
        )
    }

    fn advised(&self, race: &Race, space: AddressSpace) -> String {
        let report = race.in_order();
        let (first, second) = (&report.first, &report.second);
        let atomic = |p: &RacingAccess| match p.access {
            race::Access::AtomicRead | race::Access::AtomicWrite => true,
            race::Access::Read | race::Access::Write => false,
        };
        if report.class == Class::EqualStores {
            return "let one thread store it; if it is meant, allow `equal-stores`".to_string();
        }
        if let Some(why) = &race.why {
            return why.clone();
        }
        if let Some(barrier) = &race.barrier {
            let line = match barrier.span {
                span if span.source.is_some() => format!(" on line {}", span.start.line),
                _ => String::new(),
            };
            return format!(
                "put `barrier {} [{}]` beside the barrier{line}",
                barrier.scope.name(),
                space.name()
            );
        }
        let instruction = |p: &RacingAccess| self.site(p).instruction;
        let (a, b) = (instruction(first), instruction(second));
        let advice = self.advice.as_ref();
        if advice.is_some_and(|advice| advice.waits(a, b)) {
            return "wait by an atomic: load it with `acquire` in the loop, and store it atomically \
                    with `release`"
                .to_string();
        }
        if let Some(update) = advice.and_then(|advice| advice.update(a, b)) {
            return update;
        }
        let near = first.threadgroup == second.threadgroup && first.simdgroup == second.simdgroup;
        let is_copy = |p: &RacingAccess| self.site(p).kind == SiteKind::AsyncCopy;
        if near && first.site == second.site && is_copy(first) {
            return "the rows of the copy meet, and which comes last is not known: give each row room \
                    of its own"
                .to_string();
        }
        if !near
            && first.threadgroup == second.threadgroup
            && first.site == second.site
            && is_copy(first)
        {
            return "each simdgroup makes the copy: let one of them make it, or give each a part of its own"
                .to_string();
        }
        if first.threadgroup != second.threadgroup {
            return "no barrier reaches from one threadgroup to another: make every access to it \
                    atomic, give each threadgroup a location of its own, or use two dispatches"
                .to_string();
        }
        let barrier = || match advice {
            Some(advice) => advice.barrier((a, b), report.within_simdgroup, space.name()),
            None => format!("put `barrier threadgroup [{}]` between them", space.name()),
        };
        if is_copy(first) {
            return match near {
                true => "`wait` for the copy's event between the two".to_string(),
                false => format!(
                    "`wait` for the copy's event, and then put `barrier threadgroup [{}]` between \
                     the two",
                    space.name()
                ),
            };
        }
        if is_copy(second) {
            // A lane's share is not known, so what others did needs a barrier.
            return format!("{}, before the copy", barrier());
        }
        let one_place = first.site == second.site;
        if one_place && self.site(first).kind == SiteKind::Matrix && near {
            return "entries of the matrix meet, and which comes last is not known: give each row room \
                    of its own"
                .to_string();
        }
        if one_place && first.performer != second.performer {
            return "give each thread a location of its own, or use an atomic".to_string();
        }
        if one_place && first.simdgroup != second.simdgroup {
            // What all threads of a simdgroup do together, so that no thread has a part of it.
            return "give each simdgroup a location of its own, or let one simdgroup do it"
                .to_string();
        }
        if atomic(first) != atomic(second) {
            return format!("make both accesses atomic, or {}", barrier());
        }
        barrier()
    }

    /// What is said of a race.
    pub(crate) fn word(&self, race: &Race) -> Diagnostic {
        let report = &race.report;
        let about = &self.about[self.number(report.object) as usize];
        let location = about.location_name(report.location.into());
        let (first, second) = (&report.first, &report.second);
        let (a, b) = (self.site(first), self.site(second));
        let (did, then) = (
            DataRaces::deed(first.access, a.kind),
            DataRaces::deed(second.access, b.kind),
        );
        let (who, whom) = (self.thread(first), self.thread(second));
        let more = match report.locations {
            0 | 1 => String::new(),
            // Not all locations were looked at again.
            _ if race.further => "; the same happens at other locations".to_string(),
            2 => "; the same happens at 1 more location".to_string(),
            n => format!("; the same happens at {} more locations", n - 1),
        };
        let message = match race.rule() {
            Rule::EqualStores => format!(
                "`{location}` is {then} by {whom} and by {who} with the same value, and nothing orders the \
                 two{more}"
            ),
            Rule::DataRace if race.is_of_one_instruction() => format!(
                "`{location}` is {then} twice, by {whom} and by another, and nothing orders the two{more}"
            ),
            Rule::ExecutionOnlyBarrier => format!(
                "`{location}` is {then} by {whom} and {did} by {who}, and the barrier between the two does \
                 not order `{}`{more}",
                about.name
            ),
            _data_race => format!(
                "`{location}` is {then} by {whom} and {did} by {who}, and nothing orders the two{more}"
            ),
        };
        let diagnostic = Diagnostic::error(race.rule(), b.span, message)
            .labelled(format!("{then} here by {whom}"))
            .help(self.help(race, about.space));
        let diagnostic = match a.span == b.span && did == then {
            true => diagnostic,
            false => diagnostic.and(a.span, format!("{did} here by {who}")),
        };
        match &race.barrier {
            Some(barrier) => diagnostic.and(
                barrier.span,
                format!("this barrier does not order `{}`", about.name),
            ),
            None => diagnostic,
        }
    }
}

fn space_of(object: &ObjectInfo) -> Option<Space> {
    match object.space {
        AddressSpace::Device => Some(Space::Device),
        AddressSpace::Threadgroup => Some(Space::Threadgroup),
        AddressSpace::Texture => Some(Space::Texture),
        AddressSpace::Imageblock => Some(Space::Imageblock),
        AddressSpace::Constant | AddressSpace::Thread => None,
    }
}

fn spaces_of(spaces: Spaces) -> race::Spaces {
    let pairs = [
        (Spaces::DEVICE, Space::Device),
        (Spaces::THREADGROUP, Space::Threadgroup),
        (Spaces::TEXTURE, Space::Texture),
        (Spaces::IMAGEBLOCK, Space::Imageblock),
    ];
    let named = pairs.into_iter().filter(|(s, _)| spaces.contains(*s));
    named.fold(race::Spaces::NONE, |all, (_, space)| all.with(space))
}

fn barriers_of(kernel: &Kernel) -> Vec<Barrier> {
    let mut barriers = Vec::new();
    let mut instruction = 0;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Barrier { scope, spaces } = inst.kind {
            barriers.push(Barrier {
                instruction,
                span: inst.span,
                scope,
                spaces: spaces_of(spaces),
            });
        }
        instruction += 1;
    });
    barriers
}

/// The instructions of each loop's body, by their numbers.
fn loops_of(kernel: &Kernel) -> Vec<Range<u32>> {
    let mut loops: Vec<Range<u32>> = Vec::new();
    let mut number = 0;
    // The regions that are open, and the loop of which each is the body.
    let mut open: Vec<(_, Option<usize>)> = vec![(kernel.body.insts.iter(), None)];
    while let Some((insts, of)) = open.last_mut() {
        let Some(inst) = insts.next() else {
            if let Some(at) = *of {
                loops[at].end = number;
            }
            open.pop();
            continue;
        };
        number += 1;
        let is_loop = matches!(inst.kind, InstKind::For { .. } | InstKind::Loop { .. });
        let of = is_loop.then(|| {
            loops.push(number..number);
            loops.len() - 1
        });
        let inner = inst.kind.regions().into_iter().rev();
        open.extend(inner.map(|region| (region.insts.iter(), of)));
    }
    loops
}

fn order_of(order: Order) -> race::Order {
    match order {
        Order::Relaxed => race::Order::Relaxed,
        Order::Acquire => race::Order::Acquire,
        Order::Release => race::Order::Release,
        Order::AcqRel => race::Order::AcquireRelease,
        Order::SeqCst => race::Order::SequentiallyConsistent,
    }
}

fn scope_of(scope: Scope) -> race::Scope {
    match scope {
        Scope::Simdgroup | Scope::Threadgroup => race::Scope::Threadgroup,
        Scope::Device => race::Scope::Device,
    }
}

/// Lanes in a row whose locations grow by one stride.
#[derive(Clone, Copy)]
struct Stretch {
    mask: u128,
    base: i64,
    stride: i64,
}

/// The most stretches that are worth more than a list of lanes.
const MAX_STRETCHES: usize = 4;

/// The lanes as stretches, from the lowest on, as long as each can be; `None` if they are too many.
fn stretches(access: &Access) -> Option<([Stretch; MAX_STRETCHES], usize)> {
    let mut found = [Stretch {
        mask: 0,
        base: 0,
        stride: 0,
    }; MAX_STRETCHES];
    let mut count = 0;
    let mut rest = access.lanes;
    while rest != 0 {
        if count == MAX_STRETCHES {
            return None;
        }
        let first = rest.trailing_zeros() as usize;
        let at = |lane: usize| access.locations[lane] as i64;
        rest &= rest - 1;
        let mut mask = 1 << first;
        let mut stride = i64::from(access.width);
        if rest != 0 {
            let next = rest.trailing_zeros() as usize;
            let (gap, lanes) = (at(next) - at(first), (next - first) as i64);
            if gap % lanes == 0 {
                stride = gap / lanes;
                while rest != 0 {
                    let lane = rest.trailing_zeros() as usize;
                    if at(lane) - at(first) != stride * (lane - first) as i64 {
                        break;
                    }
                    mask |= 1 << lane;
                    rest &= rest - 1;
                }
            }
        }
        found[count] = Stretch {
            mask,
            base: at(first) - stride * first as i64,
            stride,
        };
        count += 1;
    }
    Some((found, count))
}

impl Observer for DataRaces {
    fn wants(&self, object: &ObjectInfo) -> bool {
        object.writable && space_of(object).is_some() && !self.race_free.contains(&object.memory)
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        let look_at = self.look_at.take();
        let race_free = std::mem::take(&mut self.race_free);
        *self = DataRaces {
            names_all: self.names_all,
            ..DataRaces::new(self.memory_limit_bytes).but(race_free)
        };
        let (module, kernel) = (launch.module, launch.kernel);
        // Acquire and release make the verdict one of the schedules tried anyway.
        let mixed = match crate::verdict::orders_anything(kernel) {
            true => HashSet::new(),
            false => mixed_atomics(module, kernel),
        };
        let memories = crate::objects::all_memories(module, kernel);
        let floats = |m: Memory| mixed.contains(&m).then(|| holds_floats(module, kernel, m));
        self.mixed = memories.map(floats).collect();
        self.kernel = launch.kernel.span;
        let mut declarations = Vec::new();
        for object in launch.objects {
            let space = space_of(object).filter(|_| !self.race_free.contains(&object.memory));
            let Some(space) = space else {
                self.objects.push(None);
                continue;
            };
            let locations = object.length * object.element_locations;
            let Ok(locations) = u32::try_from(locations) else {
                return Err(Diagnostic::error(
                    Rule::CheckLimit,
                    self.kernel,
                    format!(
                        "`{}` has {locations} scalars, too many to check for data races",
                        object.name
                    ),
                )
                .help("check a smaller dispatch, or without the data-race checker"));
            };
            self.objects.push(Some(Object(declarations.len() as u32)));
            declarations.push(Declaration {
                space,
                locations,
                writable: object.writable,
            });
        }
        let threads = launch.grid.threadgroup.iter().product();
        let config = Config {
            threadgroups: launch.threadgroups,
            threads_per_threadgroup: threads,
            simdgroup_size: launch.simdgroup_size,
            sites: launch.sites.len() as u32,
            acquire_release: crate::verdict::orders_anything(launch.kernel),
            report_limit: REPORT_LIMIT,
            memory_limit_bytes: self.memory_limit_bytes,
        };
        let detector = match &look_at {
            None => Detector::new(&config, &declarations),
            Some((racy, _)) => Detector::watching(&config, &declarations, racy),
        };
        let detector = detector.map_err(|e| self.limit(&e))?;
        self.advice = look_at.is_none().then(|| Advice::of(module, kernel));
        self.barriers = barriers_of(kernel);
        self.loops = loops_of(kernel);
        self.look_at = look_at;
        self.detector = Some(detector);
        self.about = launch.objects.to_vec();
        self.sites = launch.sites.to_vec();
        self.grid = Some(launch.grid);
        self.simdgroup_size = launch.simdgroup_size;
        Ok(())
    }

    fn begin_threadgroup(&mut self, who: Who, threads: u32) {
        if let Some(detector) = &mut self.detector {
            let slot = who.slot as usize;
            if self.running.len() <= slot {
                self.running.resize(slot + 1, None);
            }
            match detector.begin_threadgroup(who.threadgroup, threads) {
                Ok(threadgroup) => self.running[slot] = Some(threadgroup),
                Err(error) => self.fault = self.fault.take().or(Some(error)),
            }
        }
    }

    fn end_threadgroup(&mut self, who: Who) {
        let running = self
            .running
            .get_mut(who.slot as usize)
            .and_then(Option::take);
        if let (Some(detector), Some(threadgroup)) = (&mut self.detector, running) {
            detector.end_threadgroup(threadgroup);
        }
    }

    fn access(&mut self, access: &Access) {
        let Some(mut detector) = self.detector.take() else {
            return;
        };
        if let Some((_, unpaired)) = &mut self.look_at {
            unpaired.access(access);
        }
        if let (Some(object), Some(simdgroup)) = (
            self.objects[access.object as usize],
            self.simdgroup(&detector, access.who),
        ) {
            let mixed = self.mixed[access.object as usize];
            let ordering = match access.kind {
                Kind::Atomic { order, .. } => order.acquires() || order.releases(),
                Kind::Read | Kind::Write => false,
            };
            let unchanged =
                |lane: u32, component: u32| access.unchanged[component as usize] >> lane & 1 == 1;
            // Stretches are in the order of lanes; where lanes meet, theirs counts.
            let meet = |stride: i64| stride.unsigned_abs() < u64::from(access.width);
            let form = if ordering { None } else { stretches(access) };
            let form = form.filter(|(list, count)| {
                access.kind == Kind::Read || (*count == 1 && !meet(list[0].stride))
            });
            let each = |lanes: Lanes, wrote: bool, detector: &mut Detector| {
                let batch = Batch {
                    simdgroup,
                    site: Site(access.site),
                    object,
                    lanes,
                    width: access.width,
                };
                match access.kind {
                    Kind::Read => detector.read(&batch),
                    Kind::Write => detector.write(&batch, unchanged),
                    Kind::Atomic {
                        op, order, scope, ..
                    } => {
                        let access = match op {
                            AtomicOp::Load => AtomicAccess::Load,
                            AtomicOp::Store => AtomicAccess::Store,
                            AtomicOp::CompareExchange if !wrote => AtomicAccess::Load,
                            AtomicOp::Exchange
                            | AtomicOp::CompareExchange
                            | AtomicOp::Add
                            | AtomicOp::Sub
                            | AtomicOp::Min
                            | AtomicOp::Max
                            | AtomicOp::And
                            | AtomicOp::Or
                            | AtomicOp::Xor => AtomicAccess::Update,
                        };
                        // One that fails may succeed in another schedule.
                        if let Some(floats) = mixed.filter(|_| op != AtomicOp::Load) {
                            detector.note_atomics(&batch, commuting(op, floats));
                        }
                        let (order, scope) = (order_of(order), scope_of(scope));
                        detector.atomic(
                            &batch,
                            Atomic {
                                access,
                                order,
                                scope,
                            },
                        );
                    }
                }
            };
            let mixed = match access.kind {
                Kind::Atomic {
                    op: AtomicOp::CompareExchange,
                    effective,
                    ..
                } => effective,
                Kind::Atomic { .. } | Kind::Read | Kind::Write => access.lanes,
            };
            match form {
                Some((list, count)) if mixed == access.lanes => {
                    for Stretch { mask, base, stride } in &list[..count] {
                        let (mask, base, stride) = (*mask, *base, *stride);
                        each(Lanes::Affine { mask, base, stride }, true, &mut detector);
                    }
                }
                _ => {
                    // In the order in which they took place, those that wrote apart from those
                    // that did not.
                    let mut wrote = true;
                    self.lanes.clear();
                    self.locations.clear();
                    for lane in access.order {
                        if access.lanes >> lane & 1 == 0 {
                            continue;
                        }
                        let writes = mixed >> lane & 1 == 1;
                        if writes != wrote && !self.lanes.is_empty() {
                            let (lanes, locations) = (&*self.lanes, &*self.locations);
                            each(Lanes::Each { lanes, locations }, wrote, &mut detector);
                            self.lanes.clear();
                            self.locations.clear();
                        }
                        wrote = writes;
                        self.lanes.push(*lane);
                        let location = access.locations[usize::from(*lane)];
                        self.locations.push(location as u32);
                    }
                    let (lanes, locations) = (&*self.lanes, &*self.locations);
                    each(Lanes::Each { lanes, locations }, wrote, &mut detector);
                }
            }
        }
        self.detector = Some(detector);
    }

    fn collective(&mut self, who: Who, site: u32, kind: Kind, region: Touched, unchanged: &[bool]) {
        let Some(mut detector) = self.detector.take() else {
            return;
        };
        if let (Some(object), Some(simdgroup)) = (
            self.objects[region.object as usize],
            self.simdgroup(&detector, who),
        ) {
            narrow(region.ranges, &mut self.ranges[0]);
            let ranges = &*self.ranges[0];
            let region = Region { object, ranges };
            let site = Site(site);
            if kind == Kind::Read {
                detector.collective_read(simdgroup, site, region);
            } else {
                // Each range is one entry of one location, and several may be of the same.
                let same = |entry: usize| unchanged.get(entry).is_some_and(|same| *same);
                detector.collective_write(simdgroup, site, region, same);
            }
        }
        self.detector = Some(detector);
    }

    fn issue(&mut self, copy: &AsyncCopy) {
        let Some(mut detector) = self.detector.take() else {
            return;
        };
        if let Some(simdgroup) = self.simdgroup(&detector, copy.who) {
            narrow(copy.source.ranges, &mut self.ranges[0]);
            narrow(copy.destination.ranges, &mut self.ranges[1]);
            let [source, destination] = &self.ranges;
            let region = |object: u32, ranges| {
                let object = self.objects[object as usize]?;
                Some(Region { object, ranges })
            };
            let id = detector.issue_copy(
                simdgroup,
                Site(copy.site),
                region(copy.source.object, source),
                region(copy.destination.object, destination),
            );
            self.copies.insert(copy.copy, id);
        }
        self.detector = Some(detector);
    }

    fn complete(&mut self, _who: Who, copy: u64) {
        if let (Some(detector), Some(id)) = (&mut self.detector, self.copies.remove(&copy)) {
            detector.wait_copy(id);
        }
    }

    fn barrier(&mut self, who: Who, _site: u32, scope: Scope, spaces: Spaces) {
        let Some(threadgroup) = self.running.get(who.slot as usize).copied().flatten() else {
            return;
        };
        if let Some((_, unpaired)) = &mut self.look_at
            && scope != Scope::Simdgroup
        {
            unpaired.barrier(who.threadgroup);
        }
        if let Some(detector) = &mut self.detector {
            let spaces = match self.names_all {
                true => ALL_SPACES,
                false => spaces_of(spaces),
            };
            let result = match scope {
                Scope::Simdgroup => {
                    let simdgroup = detector.simdgroup(threadgroup, who.simdgroup);
                    detector.simdgroup_barrier(simdgroup, spaces)
                }
                Scope::Threadgroup | Scope::Device => {
                    detector.threadgroup_barrier(threadgroup, spaces)
                }
            };
            if let Err(error) = result {
                self.fault = self.fault.take().or(Some(error));
            }
        }
    }

    fn finish(&mut self) -> Vec<Diagnostic> {
        match self.conclude() {
            Err(limit) => vec![limit],
            Ok(()) => {
                let mut found = Vec::new();
                let mut pairs = Pairs::default();
                pairs.add(self, &mut found);
                pairs.tell_of_more(&mut found);
                found.extend(self.not_listed());
                found
            }
        }
    }
}

impl DataRaces {
    /// The run has ended: what it has shown can be asked for.
    ///
    /// # Errors
    /// `check-limit` or `out-of-memory`: the run was too much for the detector.
    pub(crate) fn conclude(&mut self) -> Result<(), Diagnostic> {
        if let Some(error) = self.fault.take() {
            return Err(self.limit(&error));
        }
        let Some(detector) = self.detector.take() else {
            return Ok(());
        };
        let verdict = detector.finish().map_err(|error| self.limit(&error))?;
        let numbers = |objects: &[Object]| objects.iter().map(|o| self.number(*o)).collect();
        self.outcome = Outcome {
            equal_stores: numbers(&verdict.equal_stores_in),
            data_races: numbers(&verdict.data_races_in),
            unordered_atomics: numbers(&verdict.unordered_atomics_in),
            races: self.merged(verdict.reports),
            not_kept: verdict.not_kept,
            cut: HashSet::new(),
            racy: verdict.racy,
        };
        Ok(())
    }
}

/// A place in the author's text, or in the kernel if no author wrote it, and what is done there.
type Doing = (Span, Option<Site>, race::Access);

/// What races that are one to the reader have in common.
pub(crate) type RaceKey = (Class, Object, Doing, Doing);

impl Race {
    fn of(mut report: Report) -> Race {
        let reads = |party: &RacingAccess| match party.access {
            race::Access::Read | race::Access::AtomicRead => true,
            race::Access::Write | race::Access::AtomicWrite => false,
        };
        let rank = |party: &RacingAccess| (reads(party), party.site.0);
        let swapped = rank(&report.first) > rank(&report.second);
        if swapped {
            std::mem::swap(&mut report.first, &mut report.second);
        }
        Race {
            report,
            swapped,
            further: false,
            why: None,
            barrier: None,
        }
    }

    pub(crate) fn class(&self) -> Class {
        self.report.class
    }

    pub(crate) fn rule(&self) -> Rule {
        match (self.class(), &self.barrier) {
            (Class::EqualStores, _) => Rule::EqualStores,
            (Class::DataRace, Some(_)) if !self.is_of_one_instruction() => {
                Rule::ExecutionOnlyBarrier
            }
            (Class::DataRace, _) => Rule::DataRace,
        }
    }

    /// Whether its accesses are of one instruction, whose lanes share the work.
    fn is_of_one_instruction(&self) -> bool {
        let (first, second) = (&self.report.first, &self.report.second);
        let what = |p: &RacingAccess| (p.site, p.threadgroup, p.simdgroup, p.access, p.performer);
        first.performer == Performer::SomeLane && what(first) == what(second)
    }

    /// The report with its parties in the order in which they were executed.
    fn in_order(&self) -> Report {
        let mut report = self.report;
        if self.swapped {
            std::mem::swap(&mut report.first, &mut report.second);
        }
        report
    }
}

/// Ranges of locations in the detector's numbers; objects with more are refused at the start.
fn narrow(ranges: &[Range<u64>], out: &mut Vec<Range<u32>>) {
    out.clear();
    out.extend(ranges.iter().map(|r| r.start as u32..r.end as u32));
}
