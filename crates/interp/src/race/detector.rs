//! The detector: running threadgroups and simdgroups, their barriers, and the ways an access
//! takes to the state of its location.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::atomics::Changes;
use super::clock::{Clock, Joiner, Knowledge, Part, join};
use super::fast::Run;
use super::memory::{Memory, Recorder};
use super::release::{MESSAGE_SPACES, Message, Released};
use super::report::Reports;
use super::shadow::{Clocks, Sizes, View};
use super::watch::{Pairs, Watch};
use super::word::{
    ATOMIC_READ, ATOMIC_WRITE, COLLECTIVE, COPY, LANE, Layout, READ, WRITE, kind_of,
};
use super::{
    Atomic, AtomicAccess, Batch, Commuting, Config, CopyId, Declaration, Error, Lanes, Object,
    RacyLocation, Region, Simdgroup, Site, Space, Spaces, Threadgroup, Verdict,
};

/// The happens-before in which accesses to a space are ordered by acquire and release too.
fn message_index(space: Space) -> Option<usize> {
    match space {
        Space::Device => Some(0),
        Space::Threadgroup => Some(1),
        Space::Texture | Space::Imageblock => None,
    }
}

#[derive(Debug)]
struct Running {
    /// The number in the grid; none while the place is free.
    threadgroup: Option<u64>,
    now: u64,
    simdgroups: u32,
    /// Its copies in flight.
    copies: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Simd {
    /// Threadgroup, simdgroup and time of a new access by lane 0, by space.
    base: [u64; 4],
    /// Times, in place in a word, of the last barriers that name a space, by space.
    threadgroup_time: [u64; 4],
    simdgroup_time: [u64; 4],
    lanes: u32,
    mask: u128,
    /// Its number in the threadgroup.
    number: u32,
    /// With acquire and release: what each lane knows, by message space.
    knowledge: Vec<[Knowledge; 2]>,
}

impl Simd {
    fn view<'a>(&self, layout: &Layout, space: Space, site: Site, me: u64) -> View<'a> {
        let s = space.index();
        View {
            layout: *layout,
            me: self.base[s] | layout.site(site) | me,
            threadgroup_time: self.threadgroup_time[s],
            simdgroup_time: self.simdgroup_time[s],
            single: true,
            clocks: None,
        }
    }

    /// A view for an access that some lane makes, as `performer`.
    fn collective_view<'a>(
        &self,
        layout: &Layout,
        space: Space,
        site: Site,
        performer: u64,
    ) -> View<'a> {
        let single = self.lanes == 1;
        let performer = if single && performer == COLLECTIVE {
            LANE
        } else {
            performer
        };
        View {
            single,
            ..self.view(layout, space, site, performer)
        }
    }

    /// The clocks of all lanes, for an access to `space` by an unknown one.
    fn clocks(&self, space: Space) -> Vec<Arc<Clock>> {
        match message_index(space) {
            Some(m) => self
                .knowledge
                .iter()
                .map(|k| k[m].clock_with_pending())
                .collect(),
            None => Vec::new(),
        }
    }
}

#[derive(Debug)]
struct CopyInFlight {
    simdgroup: Simdgroup,
    objects: Vec<Object>,
}

/// Finds data races in one dispatch on the reference machine.
///
/// The machine says what runs: [`begin_threadgroup`](Self::begin_threadgroup), then accesses
/// and barriers in the order in which they execute, then
/// [`end_threadgroup`](Self::end_threadgroup); and in the end asks for the verdict.
/// Threadgroups and simdgroups may be interleaved in any way that barriers allow.
///
/// ```
/// use invar_interp::race::*;
///
/// // Every thread writes its own element of a threadgroup array and reads its neighbour's.
/// let check = |barrier: bool| -> Result<Verdict, Error> {
///     let tile = Declaration { space: Space::Threadgroup, locations: 64, writable: true };
///     let mut detector = Detector::new(
///         &Config {
///             threadgroups: 1,
///             threads_per_threadgroup: 64,
///             simdgroup_size: 32,
///             sites: 2,
///             acquire_release: false,
///             report_limit: 20,
///             memory_limit_bytes: 1 << 20,
///         },
///         &[tile],
///     )?;
///     let threadgroup = detector.begin_threadgroup(0, 64)?;
///     let batch = |simdgroup, site, base| Batch {
///         simdgroup,
///         site: Site(site),
///         object: Object(0),
///         lanes: Lanes::Affine { mask: 0xffff_ffff, base, stride: 1 },
///         width: 1,
///     };
///     for s in 0..2 {
///         let simdgroup = detector.simdgroup(threadgroup, s);
///         detector.write(&batch(simdgroup, 0, i64::from(s) * 32), |_, _| false);
///     }
///     if barrier {
///         detector.threadgroup_barrier(threadgroup, Spaces::DEVICE_AND_THREADGROUP)?;
///     }
///     for s in 0..2 {
///         let simdgroup = detector.simdgroup(threadgroup, s);
///         detector.read(&batch(simdgroup, 1, (i64::from(s) * 32 + 1) % 33));
///     }
///     detector.end_threadgroup(threadgroup);
///     detector.finish()
/// };
/// assert_eq!(check(true)?.data_races, 0);
/// let verdict = check(false)?;
/// assert!(verdict.data_races > 0);
/// assert_eq!(verdict.reports[0].first.site, Site(0));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Detector {
    layout: Layout,
    config: Config,
    memory: Memory,
    running: Vec<Running>,
    /// Slots in `running` that are free.
    free: Vec<usize>,
    /// The numbers of the running threadgroups.
    live: HashSet<u64>,
    simds: Vec<Simd>,
    /// Entries of `simds` for each of `running`.
    simds_each: u32,
    copies: HashMap<u64, CopyInFlight>,
    next_copy: u64,
    /// By object, then by slot of the threadgroup (0 for the grid's objects) and location.
    released: Vec<HashMap<(u32, u32), Released>>,
    /// By object: the atomics that change it, where they are noted.
    changes: Vec<Changes>,
    nothing: Arc<Clock>,
    /// By message space.
    joiners: [Joiner; 2],
    sizes: Sizes,
    fault: Option<Error>,
}

impl Detector {
    /// A detector for one dispatch.
    ///
    /// # Errors
    /// The simdgroup size is unknown, the grid too large to number, or the state of the grid's
    /// objects larger than the memory limit.
    pub fn new(config: &Config, objects: &[Declaration]) -> Result<Self, Error> {
        let reports = Reports::new(config.report_limit);
        Ok(Self {
            layout: Layout::new(config)?,
            config: *config,
            memory: Memory::new(objects, reports, config.memory_limit_bytes)?,
            running: Vec::new(),
            free: Vec::new(),
            live: HashSet::new(),
            simds: Vec::new(),
            simds_each: config
                .threads_per_threadgroup
                .div_ceil(config.simdgroup_size),
            copies: HashMap::new(),
            next_copy: 0,
            released: objects.iter().map(|_| HashMap::new()).collect(),
            changes: objects.iter().map(|_| Changes::default()).collect(),
            nothing: Arc::new(Clock::default()),
            joiners: Default::default(),
            sizes: Sizes {
                simdgroup: config.simdgroup_size,
                nominal: config.threads_per_threadgroup,
                other: HashMap::new(),
            },
            fault: None,
        })
    }

    /// A detector for a second look at a schedule that has races: it finds every pair of sites that
    /// races at these locations, of accesses that are not too many, and nothing else; ask it for its
    /// pairs.
    ///
    /// # Errors
    /// As [`Detector::new`].
    pub fn watching(
        config: &Config,
        objects: &[Declaration],
        racy: &[RacyLocation],
    ) -> Result<Self, Error> {
        let mut detector = Self::new(config, objects)?;
        detector.memory.watch = Some(Watch::new(racy, objects));
        Ok(detector)
    }

    /// What a second look has found.
    pub(crate) fn pairs(self) -> Pairs {
        self.memory.watch.map_or(Pairs::default(), Watch::found)
    }

    /// A threadgroup starts: the one with this number in the grid and this many threads.
    ///
    /// # Errors
    /// It is not one of the grid announced, or its memory's state exceeds the limit.
    pub fn begin_threadgroup(
        &mut self,
        threadgroup: u64,
        threads: u32,
    ) -> Result<Threadgroup, Error> {
        let nominal = self.config.threads_per_threadgroup;
        if threadgroup >= self.config.threadgroups || threads == 0 || threads > nominal {
            return Err(Error::Threads {
                threadgroup,
                threads,
            });
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.new_slot()?,
        };
        if self.config.acquire_release {
            self.live.insert(threadgroup);
            if threads != nominal {
                self.sizes.other.insert(threadgroup, threads);
            }
        }
        let size = self.config.simdgroup_size;
        let simdgroups = threads.div_ceil(size);
        let running = &mut self.running[slot];
        running.threadgroup = Some(threadgroup);
        running.now = 0;
        running.simdgroups = simdgroups;
        let first = slot * self.simds_each as usize;
        for number in 0..simdgroups {
            let lanes = (threads - number * size).min(size);
            let base = threadgroup << self.layout.threadgroup_shift
                | u64::from(number) << self.layout.simdgroup_shift;
            let knows_nothing = || [Knowledge::new(&self.nothing), Knowledge::new(&self.nothing)];
            let clocked = if self.config.acquire_release {
                lanes
            } else {
                0
            };
            self.simds[first + number as usize] = Simd {
                base: [base; 4],
                threadgroup_time: [0; 4],
                simdgroup_time: [0; 4],
                lanes,
                mask: u128::MAX >> (128 - lanes),
                number,
                knowledge: (0..clocked).map(|_| knows_nothing()).collect(),
            };
        }
        Ok(Threadgroup(slot as u32))
    }

    fn new_slot(&mut self) -> Result<usize, Error> {
        self.memory.add_slot()?;
        self.running.push(Running {
            threadgroup: None,
            now: 0,
            simdgroups: 0,
            copies: Vec::new(),
        });
        let unused = Simd {
            base: [0; 4],
            threadgroup_time: [0; 4],
            simdgroup_time: [0; 4],
            lanes: 0,
            mask: 0,
            number: 0,
            knowledge: Vec::new(),
        };
        let simds = self.simds.len() + self.simds_each as usize;
        self.simds.resize(simds, unused);
        Ok(self.running.len() - 1)
    }

    /// The simdgroup with this number in a running threadgroup.
    ///
    /// # Panics
    /// The threadgroup has no such simdgroup or has ended.
    pub fn simdgroup(&self, threadgroup: Threadgroup, number: u32) -> Simdgroup {
        let running = &self.running[threadgroup.0 as usize];
        assert!(
            running.threadgroup.is_some() && number < running.simdgroups,
            "simdgroup {number} of a threadgroup with {}",
            running.simdgroups
        );
        Simdgroup(threadgroup.0 * self.simds_each + number)
    }

    /// A threadgroup ends. Its copies in flight are finished (O5), its memory is forgotten.
    pub fn end_threadgroup(&mut self, threadgroup: Threadgroup) {
        let slot = threadgroup.0 as usize;
        for copy in std::mem::take(&mut self.running[slot].copies) {
            self.finish_copy(copy);
        }
        if let Some(number) = self.running[slot].threadgroup.take() {
            self.free.push(slot);
            self.live.remove(&number);
            self.memory.clear_slot(slot);
        }
        let of_objects = self.released.iter_mut().zip(&mut self.changes);
        for ((released, changes), object) in of_objects.zip(0..) {
            let declaration = self.memory.declaration(Object(object));
            if declaration.space.is_of_threadgroup() {
                if !released.is_empty() {
                    released.retain(|&(other, _), _| other != threadgroup.0);
                }
                changes.forget(threadgroup.0);
            }
        }
    }

    fn members(&self, threadgroup: Threadgroup) -> Range<usize> {
        let first = threadgroup.0 as usize * self.simds_each as usize;
        first..first + self.running[threadgroup.0 as usize].simdgroups as usize
    }

    /// Every thread of the threadgroup reaches a barrier of its scope (O2).
    ///
    /// # Errors
    /// The kernel acquires or releases and barriers are too many to number.
    pub fn threadgroup_barrier(
        &mut self,
        threadgroup: Threadgroup,
        spaces: Spaces,
    ) -> Result<(), Error> {
        if spaces.is_empty() {
            return Ok(());
        }
        let number = self.running[threadgroup.0 as usize].threadgroup;
        let part = Part::threadgroup(number.expect("the threadgroup is running"));
        self.barrier(threadgroup, self.members(threadgroup), part, spaces, true)
    }

    /// Every thread of the simdgroup reaches a barrier of its scope (O2).
    ///
    /// # Errors
    /// The kernel acquires or releases and barriers are too many to number.
    pub fn simdgroup_barrier(&mut self, simdgroup: Simdgroup, spaces: Spaces) -> Result<(), Error> {
        if spaces.is_empty() {
            return Ok(());
        }
        let threadgroup = self.threadgroup_of(simdgroup);
        let at = simdgroup.0 as usize;
        let number = self.running[threadgroup.0 as usize].threadgroup;
        let number = number.expect("the threadgroup is running");
        let part = Part::simdgroup(number, u64::from(self.simds[at].number));
        self.barrier(threadgroup, at..at + 1, part, spaces, false)
    }

    fn threadgroup_of(&self, simdgroup: Simdgroup) -> Threadgroup {
        Threadgroup(simdgroup.0 / self.simds_each)
    }

    fn barrier(
        &mut self,
        threadgroup: Threadgroup,
        members: Range<usize>,
        part: Part,
        spaces: Spaces,
        of_threadgroup: bool,
    ) -> Result<(), Error> {
        let now = self.advance(threadgroup)?;
        let time = now << self.layout.time_shift;
        for simd in &mut self.simds[members.clone()] {
            for space in Space::ALL {
                let s = space.index();
                if !spaces.contains(space) {
                    continue;
                }
                if of_threadgroup {
                    simd.threadgroup_time[s] = time;
                } else {
                    simd.simdgroup_time[s] = time;
                }
                simd.base[s] = simd.base[s] & !self.layout.time_mask | time;
            }
        }
        if !self.config.acquire_release {
            return Ok(());
        }
        let now = u32::try_from(now).expect("time has at most 32 bits");
        for (m, space) in [(0, Space::Device), (1, Space::Threadgroup)] {
            if !spaces.contains(space) {
                continue;
            }
            let mut known = Arc::new(self.nothing.with(part, now));
            let mut last: Option<&Arc<Clock>> = None;
            for simd in &self.simds[members.clone()] {
                for lane in &simd.knowledge {
                    let Some(clock) = lane[m].known_at(spaces) else {
                        continue;
                    };
                    // Lanes mostly share what they know.
                    if !last.is_some_and(|last| Arc::ptr_eq(last, clock)) {
                        known = join(&known, clock);
                        last = Some(clock);
                    }
                }
            }
            for simd in &mut self.simds[members.clone()] {
                for lane in &mut simd.knowledge {
                    lane[m].bring(&known, spaces, &mut self.joiners[m]);
                }
            }
        }
        Ok(())
    }

    /// The next moment in a threadgroup's time.
    fn advance(&mut self, threadgroup: Threadgroup) -> Result<u64, Error> {
        let slot = threadgroup.0 as usize;
        if self.running[slot].now == self.layout.last_time() {
            if self.config.acquire_release {
                return Err(Error::TooManyBarriers {
                    threadgroup: self.running[slot].threadgroup.unwrap_or(0),
                    limit: self.layout.last_time(),
                });
            }
            self.renumber(threadgroup);
        }
        self.running[slot].now += 1;
        Ok(self.running[slot].now)
    }

    /// Maps the times of a threadgroup to the three that still matter.
    fn renumber(&mut self, threadgroup: Threadgroup) {
        let members = self.members(threadgroup);
        let layout = self.layout;
        let running = &mut self.running[threadgroup.0 as usize];
        let number = running.threadgroup.expect("the threadgroup is running");
        let simds = &mut self.simds[members];
        for (declaration, shadow) in self.memory.shadows(threadgroup.0 as usize) {
            let s = declaration.space.index();
            shadow.renumber(&layout, number, simds[0].threadgroup_time[s], |simdgroup| {
                simds[simdgroup as usize].simdgroup_time[s]
            });
        }
        let time = |now: u64| [now << layout.time_shift; 4];
        for simd in simds {
            simd.threadgroup_time = time(1);
            simd.simdgroup_time = time(2);
            for base in &mut simd.base {
                *base = *base & !layout.time_mask | 2 << layout.time_shift;
            }
        }
        running.now = 2;
    }

    /// The lanes read.
    ///
    /// # Panics
    /// A location is not in the object; so for every access.
    pub fn read(&mut self, batch: &Batch) {
        self.access::<READ>(batch, None, |_, _| false);
    }

    /// The lanes write. `unchanged(lane, component)` says whether the store of this lane to the
    /// `component`th of its locations leaves the bits there as they are, the stores of the batch
    /// being made in the order of the lanes as given. It is asked only where it matters.
    pub fn write(&mut self, batch: &Batch, unchanged: impl FnMut(u32, u32) -> bool) {
        self.access::<WRITE>(batch, None, unchanged);
    }

    /// The lanes make an atomic access, in the order given.
    pub fn atomic(&mut self, batch: &Batch, atomic: Atomic) {
        match atomic.access {
            AtomicAccess::Load => self.access::<ATOMIC_READ>(batch, Some(atomic), |_, _| false),
            AtomicAccess::Store | AtomicAccess::Update => {
                self.access::<ATOMIC_WRITE>(batch, Some(atomic), |_, _| false);
            }
        }
    }

    /// Atomics that change the object, or would with another value: tells whether those that do not
    /// commute are ordered by barriers, in a kernel without acquire and release. `kind`: what they
    /// commute with.
    pub fn note_atomics(&mut self, batch: &Batch, kind: Option<Commuting>) {
        let simd = &self.simds[batch.simdgroup.0 as usize];
        let space = self.memory.declaration(batch.object).space;
        let slot = match space.is_of_threadgroup() {
            true => self.threadgroup_of(batch.simdgroup).0,
            false => 0,
        };
        let changes = &mut self.changes[batch.object.0 as usize];
        let mut note = |lane: u32, at: u32| {
            if simd.mask >> lane & 1 == 1 {
                let me = LANE | self.layout.lane(lane);
                let view = simd.view(&self.layout, space, batch.site, me);
                changes.note((slot, at), &view, kind);
            }
        };
        match batch.lanes {
            Lanes::Affine { mask, base, stride } => {
                for (first, count) in runs(mask) {
                    for lane in first..first + count {
                        note(lane, to_location(base + i64::from(lane) * stride) as u32);
                    }
                }
            }
            Lanes::Each { lanes, locations } => {
                for (lane, at) in lanes.iter().zip(locations) {
                    note(u32::from(*lane), *at);
                }
            }
        }
    }

    /// Whether the access is to be recorded at all; takes note of an impossible one.
    fn admit(&mut self, site: Site, object: Object, writes: bool) -> bool {
        if self.fault.is_some() {
            return false;
        }
        let sites = self.config.sites;
        if site.0 >= sites {
            self.fault = Some(Error::Site { site, sites });
            return false;
        }
        let writable = self.memory.declaration(object).writable;
        if !writable && writes {
            self.fault = Some(Error::UnexpectedWrite { site, object });
        }
        writable
    }

    fn access<const KIND: u64>(
        &mut self,
        batch: &Batch,
        atomic: Option<Atomic>,
        mut unchanged: impl FnMut(u32, u32) -> bool,
    ) {
        let Batch {
            simdgroup,
            site,
            object,
            lanes,
            width,
        } = *batch;
        if !self.admit(site, object, KIND == WRITE || KIND == ATOMIC_WRITE) {
            return;
        }
        if self.config.acquire_release {
            self.access_clocked(batch, KIND, atomic, &mut unchanged);
            return;
        }
        if atomic.is_some_and(|a| a.order != super::Order::Relaxed) {
            self.fault = Some(Error::UnexpectedOrder { site });
            return;
        }
        let simd = &self.simds[simdgroup.0 as usize];
        let space = self.memory.declaration(object).space;
        let view = simd.view(&self.layout, space, site, LANE);
        let (exists, lane_count) = (simd.mask, simd.lanes);
        let mut recorder = self.recorder(simdgroup, object);
        match lanes {
            Lanes::Affine { mask, base, stride } => {
                let mask = mask & exists;
                if mask == 0 || width == 0 {
                    return;
                }
                let first = i64::from(mask.trailing_zeros());
                let last = i64::from(127 - mask.leading_zeros());
                let ends = (base + first * stride, base + last * stride);
                let low = ends.0.min(ends.1);
                let high = ends.0.max(ends.1) + i64::from(width) - 1;
                let careful = recorder.shadow.in_flight(low, high);
                if stride == i64::from(width) && !careful {
                    for (first_lane, lanes) in runs(mask) {
                        let run = Run {
                            location: to_location(base + i64::from(first_lane) * stride),
                            lanes,
                            first_lane,
                            width,
                        };
                        recorder.run::<KIND>(run, &view, &mut unchanged);
                    }
                    return;
                }
                // Of lanes that read one location, the first and the last tell as much as all.
                let mask = if stride == 0 && KIND != WRITE && !recorder.is_second_look() {
                    1 << first | 1 << last
                } else {
                    mask
                };
                for (first_lane, lanes) in runs(mask) {
                    for lane in first_lane..first_lane + lanes {
                        let at = to_location(base + i64::from(lane) * stride);
                        recorder.lane::<KIND>(lane, at, width, &view, careful, &mut unchanged);
                    }
                }
            }
            Lanes::Each { lanes, locations } => {
                let careful = !recorder.shadow.flights.is_empty();
                for (&lane, &at) in lanes.iter().zip(locations) {
                    let lane = u32::from(lane);
                    if lane < lane_count {
                        let at = at as usize;
                        recorder.lane::<KIND>(lane, at, width, &view, careful, &mut unchanged);
                    }
                }
            }
        }
        self.after_recording();
    }

    fn recorder(&mut self, simdgroup: Simdgroup, object: Object) -> Recorder<'_> {
        let slot = self.threadgroup_of(simdgroup).0 as usize;
        self.memory.recorder(&self.layout, slot, object)
    }

    fn after_recording(&mut self) {
        if let Err(error) = self.memory.check_limit() {
            self.fault = Some(error);
        }
    }

    /// The way of every access in a kernel with acquire or release: lane by lane, since each lane
    /// may know something else.
    fn access_clocked(
        &mut self,
        batch: &Batch,
        kind: u64,
        atomic: Option<Atomic>,
        unchanged: &mut dyn FnMut(u32, u32) -> bool,
    ) {
        let simd = &self.simds[batch.simdgroup.0 as usize];
        let exists = simd.mask;
        match batch.lanes {
            Lanes::Affine { mask, base, stride } => {
                let mask = mask & exists;
                let all = mask == exists && simd.lanes > 1 && self.memory.watch.is_none();
                if stride == 0 && all && kind == READ {
                    // If all lanes read a location, some lane does and it may be any of them.
                    self.read_by_all(batch, to_location(base) as u32);
                    return;
                }
                for (first_lane, lanes) in runs(mask) {
                    for lane in first_lane..first_lane + lanes {
                        let at = to_location(base + i64::from(lane) * stride) as u32;
                        self.lane_clocked(batch, lane, at, kind, atomic, unchanged);
                    }
                }
            }
            Lanes::Each { lanes, locations } => {
                for (&lane, &at) in lanes.iter().zip(locations) {
                    let lane = u32::from(lane);
                    if exists >> lane & 1 == 1 {
                        self.lane_clocked(batch, lane, at, kind, atomic, unchanged);
                    }
                }
            }
        }
        self.after_recording();
    }

    fn read_by_all(&mut self, batch: &Batch, at: u32) {
        let object = batch.object;
        let space = self.memory.declaration(object).space;
        let simd = &mut self.simds[batch.simdgroup.0 as usize];
        for lane in &mut simd.knowledge {
            for (known, joiner) in lane.iter_mut().zip(&mut self.joiners) {
                known.access(space, joiner);
            }
        }
        let range = at..at + batch.width;
        let ranges = std::slice::from_ref(&range);
        self.collective_read(batch.simdgroup, batch.site, Region { object, ranges });
    }

    fn lane_clocked(
        &mut self,
        batch: &Batch,
        lane: u32,
        first: u32,
        kind: u64,
        atomic: Option<Atomic>,
        unchanged: &mut dyn FnMut(u32, u32) -> bool,
    ) {
        let Batch {
            simdgroup,
            site,
            object,
            width,
            ..
        } = *batch;
        let space = self.memory.declaration(object).space;
        let slot = self.threadgroup_of(simdgroup).0;
        let number = self.running[slot as usize].threadgroup;
        let number = number.expect("the threadgroup is running");
        let slot_of_object = if space.is_of_threadgroup() { slot } else { 0 };
        let atomic = atomic.filter(|_| MESSAGE_SPACES.contains(space));
        for component in 0..width {
            let at = first + component;
            let key = (slot_of_object, at);
            let simd = &mut self.simds[simdgroup.0 as usize];
            let me = LANE | self.layout.lane(lane);
            let mut view = simd.view(&self.layout, space, site, me);
            let knowledge = &mut simd.knowledge[lane as usize];
            for (known, joiner) in knowledge.iter_mut().zip(&mut self.joiners) {
                known.access(space, joiner);
            }
            let released = &mut self.released[object.0 as usize];
            if let Some(atomic) = atomic
                && atomic.order.acquires()
                && atomic.access != AtomicAccess::Store
                && let Some(released) = released.get(&key)
            {
                for message in released.acquire(number, atomic.scope) {
                    for (knowledge, message) in knowledge.iter_mut().zip(message) {
                        knowledge.acquire(message, space);
                    }
                }
            }
            view.clocks = message_index(space).map(|m| Clocks {
                clocks: std::slice::from_ref(knowledge[m].clock()),
                sizes: &self.sizes,
            });
            let mut recorder = self.memory.recorder(&self.layout, slot as usize, object);
            if recorder.is_second_look() || !recorder.shadow.access_simple(at as usize, &view, kind)
            {
                let unchanged = kind == WRITE && unchanged(lane, component);
                recorder.general(at, &view, view.me, kind, unchanged);
            }
            // What the location carried is gone when something else is stored there.
            let stores = atomic.is_none_or(|a| a.access == AtomicAccess::Store);
            if stores && kind != READ && !released.is_empty() {
                released.remove(&key);
            }
            if let Some(atomic) = atomic
                && kind == ATOMIC_WRITE
                && atomic.order.releases()
            {
                self.release(simdgroup, lane, object, key, atomic);
            }
        }
    }

    fn release(
        &mut self,
        simdgroup: Simdgroup,
        lane: u32,
        object: Object,
        key: (u32, u32),
        atomic: Atomic,
    ) {
        let threadgroup = self.threadgroup_of(simdgroup);
        let number = self.running[threadgroup.0 as usize].threadgroup;
        let number = number.expect("the threadgroup is running");
        let now = match self.advance(threadgroup) {
            Ok(now) => now,
            Err(error) => {
                self.fault = Some(error);
                return;
            }
        };
        let time = now << self.layout.time_shift;
        let simd = &mut self.simds[simdgroup.0 as usize];
        // The other lanes' later accesses may carry the later time as well: it still tells them
        // from what each released before.
        for base in &mut simd.base {
            *base = *base & !self.layout.time_mask | time;
        }
        let part = Part::lane(number, u64::from(simd.number), u64::from(lane));
        let now = u32::try_from(now).expect("time has at most 32 bits");
        let known = &simd.knowledge[lane as usize];
        let message: Message = [0, 1].map(|m| Arc::new(known[m].clock().with(part, now)));
        let live = &self.live;
        let released = self.released[object.0 as usize].entry(key).or_default();
        released.release(number, atomic.scope, &message, |other| {
            live.contains(&other)
        });
    }

    /// Some lane of the simdgroup, which the program cannot know, reads each of these locations
    /// (O6): a simdgroup-matrix load, or the source of a cooperative copy.
    pub fn collective_read(&mut self, simdgroup: Simdgroup, site: Site, region: Region) {
        self.collective_region(simdgroup, site, region, READ, |_| false);
    }

    /// Some lane of the simdgroup, which the program cannot know, writes each of these locations
    /// (O6): a simdgroup-matrix store, or the destination of a cooperative copy.
    /// `unchanged(n)` as for [`write`](Self::write), for the `n`th location in the order given.
    pub fn collective_write(
        &mut self,
        simdgroup: Simdgroup,
        site: Site,
        region: Region,
        unchanged: impl FnMut(usize) -> bool,
    ) {
        self.collective_region(simdgroup, site, region, WRITE, unchanged);
    }

    fn collective_region(
        &mut self,
        simdgroup: Simdgroup,
        site: Site,
        region: Region,
        kind: u64,
        mut unchanged: impl FnMut(usize) -> bool,
    ) {
        if !self.admit(site, region.object, kind == WRITE) {
            return;
        }
        let object = region.object;
        self.by_some_lane(simdgroup, site, object, COLLECTIVE, |recorder, view| {
            for (number, at) in region.ranges.iter().cloned().flatten().enumerate() {
                let unchanged = kind == WRITE && unchanged(number);
                recorder.general(at, view, view.me, kind, unchanged);
            }
        });
        if kind == WRITE {
            let touched = |at| region.ranges.iter().any(|range| range.contains(&at));
            self.forget_released(simdgroup, object, touched);
        }
        self.after_recording();
    }

    /// What these locations carried is gone: something else was stored there.
    fn forget_released(
        &mut self,
        simdgroup: Simdgroup,
        object: Object,
        touched: impl Fn(u32) -> bool,
    ) {
        let own = self.memory.declaration(object).space.is_of_threadgroup();
        let slot = if own {
            self.threadgroup_of(simdgroup).0
        } else {
            0
        };
        let released = &mut self.released[object.0 as usize];
        released.retain(|&(other, at), _| other != slot || !touched(at));
    }

    /// Gives `record` the view of an unknown lane of the simdgroup.
    fn by_some_lane(
        &mut self,
        simdgroup: Simdgroup,
        site: Site,
        object: Object,
        performer: u64,
        record: impl FnOnce(&mut Recorder, &View),
    ) {
        let space = self.memory.declaration(object).space;
        let simd = &self.simds[simdgroup.0 as usize];
        let mut view = simd.collective_view(&self.layout, space, site, performer);
        let clocks = simd.clocks(space);
        view.clocks = (!clocks.is_empty()).then_some(Clocks {
            clocks: &clocks,
            sizes: &self.sizes,
        });
        let slot = self.threadgroup_of(simdgroup).0 as usize;
        record(&mut self.memory.recorder(&self.layout, slot, object), &view);
    }

    /// All lanes of the simdgroup issue an async copy (O5), which reads `source` and writes
    /// `destination`.
    pub fn issue_copy(
        &mut self,
        simdgroup: Simdgroup,
        site: Site,
        source: Option<Region>,
        destination: Option<Region>,
    ) -> CopyId {
        let copy = self.next_copy;
        self.next_copy += 1;
        let mut objects = Vec::new();
        let parts = [(source, READ), (destination, WRITE)];
        for (region, kind) in parts.into_iter().filter_map(|(r, k)| Some((r?, k))) {
            if !self.admit(site, region.object, kind == WRITE) {
                continue;
            }
            self.issue_part(copy, simdgroup, site, region, kind);
            objects.push(region.object);
        }
        let running = self.threadgroup_of(simdgroup);
        self.running[running.0 as usize].copies.push(copy);
        let in_flight = CopyInFlight { simdgroup, objects };
        self.copies.insert(copy, in_flight);
        CopyId(copy)
    }

    fn issue_part(
        &mut self,
        copy: u64,
        simdgroup: Simdgroup,
        site: Site,
        region: Region,
        kind: u64,
    ) {
        // What one lane alone copies, it copies in order.
        let alone = self.simds[simdgroup.0 as usize].lanes == 1;
        let own = alone.then_some(copy);
        self.by_some_lane(simdgroup, site, region.object, COPY, |recorder, view| {
            for range in region.ranges.iter().filter(|range| !range.is_empty()) {
                for at in range.clone() {
                    recorder.check(at, view, kind, own);
                }
                // One range after the other, so that those of one copy meet each other.
                let word = view.me | kind;
                recorder.shadow.begin_flight(copy, word, range.clone());
            }
        });
    }

    /// All lanes of the simdgroup wait for a copy. To wait again has no effect.
    pub fn wait_copy(&mut self, copy: CopyId) {
        if let Some(in_flight) = self.copies.get(&copy.0) {
            let running = self.threadgroup_of(in_flight.simdgroup);
            let copies = &mut self.running[running.0 as usize].copies;
            copies.retain(|&other| other != copy.0);
            self.finish_copy(copy.0);
        }
    }

    /// The copy is an access made now by some lane, and known to all lanes of its simdgroup.
    fn finish_copy(&mut self, copy: u64) {
        let Some(CopyInFlight { simdgroup, objects }) = self.copies.remove(&copy) else {
            return;
        };
        let now = self.running[self.threadgroup_of(simdgroup).0 as usize].now;
        for object in objects {
            let flights = &mut self.recorder(simdgroup, object).shadow.flights;
            let finished: Vec<_> = flights.extract_if(.., |f| f.copy == copy).collect();
            for flight in finished {
                let (site, kind) = (self.layout.party(flight.word).site, kind_of(flight.word));
                let layout = self.layout;
                self.by_some_lane(simdgroup, site, object, COPY, |recorder, view| {
                    let me = view.me & !layout.time_mask | now << layout.time_shift;
                    let view = View { me, ..*view };
                    for at in flight.runs().flatten() {
                        recorder.record(at, &view, kind, false);
                    }
                });
                if kind == WRITE {
                    self.forget_released(simdgroup, object, |at| flight.touches(at));
                }
            }
        }
        self.after_recording();
    }

    /// The verdict on the dispatch, once all its threadgroups have ended.
    ///
    /// # Errors
    /// A limit was exceeded, or an access did not fit what was announced.
    pub fn finish(self) -> Result<Verdict, Error> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let unordered = self.changes.iter().zip(0..).filter(|(c, _)| c.unordered);
        Ok(Verdict {
            unordered_atomics_in: unordered.map(|(_, object)| Object(object)).collect(),
            racy: self.memory.reports.racy,
            reports: Reports::of_locations(self.memory.reports.kept),
            data_races: self.memory.reports.data_races,
            data_races_in: (self.memory.reports.data_races_in.iter())
                .map(|object| Object(*object))
                .collect(),
            equal_stores: self.memory.reports.equal_stores,
            equal_stores_in: (self.memory.reports.equal_stores_in.iter())
                .filter(|(_, count)| **count > 0)
                .map(|(object, _)| Object(*object))
                .collect(),
            not_kept: self.memory.reports.not_kept,
            only_this_schedule: self.config.acquire_release,
        })
    }
}

fn to_location(at: i64) -> usize {
    usize::try_from(at).expect("an access out of bounds is not passed to the race detector")
}

/// The runs of ones in a mask: first bit and length.
fn runs(mut mask: u128) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let first = mask.trailing_zeros();
        let length = (mask >> first).trailing_ones();
        // The sum carries the lowest run of ones away.
        mask &= mask.wrapping_add(1 << first);
        Some((first, length))
    })
}
