//! The data-race checker (R1 to R3): hands the run to the detector and words its findings.

use std::collections::HashMap;
use std::ops::Range;

use invar_ir::{AddressSpace, AtomicOp, Diagnostic, Order, Rule, Scope, Spaces, Span};

use crate::dispatch::GridSizes;
use crate::observe::{
    Access, AsyncCopy, Kind, Launch, ObjectInfo, Observer, SiteInfo, SiteKind, Touched, Who,
};
use crate::race::{
    self, Atomic, AtomicAccess, Batch, Class, Config, CopyId, Declaration, Detector, Lanes, Object,
    Party, Performer, Region, Report, Simdgroup, Site, Space, Threadgroup,
};

/// Reports data races, and stores of equal values to one location.
///
/// Its state costs up to 32 bytes a location of memory that the kernel can write.
pub struct DataRaces {
    memory_limit_bytes: u64,
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
    equal_stores: Vec<u32>,
    kernel: Span,
}

/// How many pairs of places are reported.
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
            equal_stores: Vec::new(),
            kernel: Span::NONE,
        }
    }

    /// The objects, by their places in [`Launch::objects`], in which the run that ended last left
    /// locations with equal stores and no data race.
    pub fn equal_stores(&self) -> &[u32] {
        &self.equal_stores
    }

    fn simdgroup(&self, detector: &Detector, who: Who) -> Option<Simdgroup> {
        let threadgroup = self.running.get(who.slot as usize).copied().flatten()?;
        Some(detector.simdgroup(threadgroup, who.simdgroup))
    }

    fn limit(&self, error: &race::Error) -> Diagnostic {
        Diagnostic::error(Rule::CheckLimit, self.kernel, error.to_string())
    }

    // ---- wording ----

    fn thread(&self, party: &Party) -> String {
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

    fn site(&self, party: &Party) -> SiteInfo {
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

    fn help(&self, report: &Report, space: AddressSpace) -> String {
        let (first, second) = (&report.first, &report.second);
        let atomic = |p: &Party| match p.access {
            race::Access::AtomicRead | race::Access::AtomicWrite => true,
            race::Access::Read | race::Access::Write => false,
        };
        if report.class == Class::EqualStores {
            return "let one thread store it; if it is meant, allow `equal-stores`".to_string();
        }
        if first.threadgroup != second.threadgroup {
            return "no barrier reaches from one threadgroup to another: make every access to it \
                    atomic, give each threadgroup a location of its own, or use two dispatches"
                .to_string();
        }
        let copy = [first, second]
            .into_iter()
            .find(|p| self.site(p).kind == SiteKind::AsyncCopy);
        if let Some(copy) = copy {
            let within = first.simdgroup == second.simdgroup;
            return match copy.access {
                _ if !within => format!(
                    "`wait` for the copy's event, and then put `barrier threadgroup [{}]` between \
                     the two",
                    space.name()
                ),
                race::Access::Write | race::Access::AtomicWrite => {
                    "`wait` for the copy's event between the two".to_string()
                }
                race::Access::Read | race::Access::AtomicRead => format!(
                    "put `barrier simdgroup [{}]` before the copy, or `wait` for it before the \
                     store",
                    space.name()
                ),
            };
        }
        if first.site == second.site && first.performer != second.performer {
            return "give each thread a location of its own, or use an atomic".to_string();
        }
        if atomic(first) != atomic(second) {
            return format!(
                "make both accesses atomic, or put `barrier threadgroup [{}]` between them",
                space.name()
            );
        }
        // The smaller barrier is enough only where no other location's threads are further apart.
        let scope = if first.simdgroup == second.simdgroup && report.locations <= 1 {
            Scope::Simdgroup
        } else {
            Scope::Threadgroup
        };
        format!(
            "put `barrier {} [{}]` between them",
            scope.name(),
            space.name()
        )
    }

    fn word(&self, report: &Report) -> Diagnostic {
        let number = self.objects.iter().position(|o| *o == Some(report.object));
        let about = &self.about[number.unwrap_or(0)];
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
            n => format!("; so are {} more locations", n - 1),
        };
        let (rule, message) = match report.class {
            Class::DataRace => (
                Rule::DataRace,
                format!(
                    "`{location}` is {then} by {whom} and {did} by {who}, and nothing orders the \
                     two{more}"
                ),
            ),
            Class::EqualStores => (
                Rule::EqualStores,
                format!(
                    "`{location}` is {then} by {whom} and by {who} with the same value, and \
                     nothing orders the two{more}"
                ),
            ),
        };
        let diagnostic = Diagnostic::error(rule, b.span, message)
            .labelled(format!("{then} here by {whom}"))
            .help(self.help(report, about.space));
        if a.span == b.span && did == then {
            return diagnostic;
        }
        diagnostic.and(a.span, format!("{did} here by {who}"))
    }
}

fn space_of(object: &ObjectInfo) -> Option<Space> {
    match object.space {
        AddressSpace::Device => Some(Space::Device),
        AddressSpace::Threadgroup => Some(Space::Threadgroup),
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
        object.writable && space_of(object).is_some()
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        *self = DataRaces::new(self.memory_limit_bytes);
        self.kernel = launch.kernel.span;
        let mut declarations = Vec::new();
        for object in launch.objects {
            let Some(space) = space_of(object) else {
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
        let detector = Detector::new(&config, &declarations).map_err(|e| self.limit(&e))?;
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
        if let (Some(object), Some(simdgroup)) = (
            self.objects[access.object as usize],
            self.simdgroup(&detector, access.who),
        ) {
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
                // Each range is one entry.
                let same = |location: u32| {
                    let entry = ranges.iter().position(|r| r.contains(&location));
                    entry.is_some_and(|i| unchanged[i])
                };
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
        if let Some(detector) = &mut self.detector {
            let spaces = spaces_of(spaces);
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
        if let Some(error) = self.fault.take() {
            return vec![self.limit(&error)];
        }
        let Some(detector) = self.detector.take() else {
            return Vec::new();
        };
        match detector.finish() {
            Err(error) => vec![self.limit(&error)],
            Ok(verdict) => {
                let number = |o: &Object| self.objects.iter().position(|known| *known == Some(*o));
                let equal = verdict.equal_stores_in.iter().filter_map(number);
                self.equal_stores = equal.map(|object| object as u32).collect();
                let reports = merge(verdict.reports);
                let mut found: Vec<Diagnostic> = reports.iter().map(|r| self.word(r)).collect();
                if verdict.not_kept > 0 {
                    found.push(Diagnostic::error(
                        Rule::DataRace,
                        self.kernel,
                        format!(
                            "{} more racy locations, at other pairs of places, are not listed",
                            verdict.not_kept
                        ),
                    ));
                }
                found
            }
        }
    }
}

/// Makes one report of those for the same two places, whichever of them was executed first. What
/// reads comes last, for there the wrong value shows; else what stands last.
fn merge(reports: Vec<Report>) -> Vec<Report> {
    let reads = |party: &Party| match party.access {
        race::Access::Read | race::Access::AtomicRead => true,
        race::Access::Write | race::Access::AtomicWrite => false,
    };
    let mut merged: Vec<Report> = Vec::new();
    for mut report in reports {
        let rank = |party: &Party| (reads(party), party.site.0);
        if rank(&report.first) > rank(&report.second) {
            std::mem::swap(&mut report.first, &mut report.second);
        }
        let key = |r: &Report| {
            let of = |p: &Party| (p.site, p.access);
            (r.class, r.object, of(&r.first), of(&r.second))
        };
        match merged.iter_mut().find(|known| key(known) == key(&report)) {
            Some(known) => known.locations += report.locations,
            None => merged.push(report),
        }
    }
    merged
}

/// Ranges of locations in the detector's numbers; objects with more are refused at the start.
fn narrow(ranges: &[Range<u64>], out: &mut Vec<Range<u32>>) {
    out.clear();
    out.extend(ranges.iter().map(|r| r.start as u32..r.end as u32));
}
