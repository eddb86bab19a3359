//! The state of all memory objects, and the recording of accesses in it.

use super::fast::Run;
use super::report::Reports;
use super::shadow::{Met, Shadow, View};
use super::watch::Watch;
use super::word::{Layout, WRITE};
use super::{Class, Declaration, Error, Object};

/// Bytes of state a location.
const BYTES_PER_LOCATION: u64 = 32;
/// What a word of the side table takes, with room to grow and its share of key and vector.
const BYTES_PER_SPILLED_WORD: u64 = 24;

/// An object and where its state is.
#[derive(Debug)]
struct Place {
    declaration: Declaration,
    /// Its position among the grid's objects or among each threadgroup's.
    index: usize,
}

#[derive(Debug)]
pub(super) struct Memory {
    places: Vec<Place>,
    grid: Vec<Shadow>,
    /// By slot of a running threadgroup.
    threadgroups: Vec<Vec<Shadow>>,
    pub(super) reports: Reports,
    /// If this is a second look, what it looks at.
    pub(super) watch: Option<Watch>,
    words: Vec<u64>,
    bytes: u64,
    limit_bytes: u64,
    spilled_words: usize,
}

impl Memory {
    pub(super) fn new(
        objects: &[Declaration],
        reports: Reports,
        limit_bytes: u64,
    ) -> Result<Self, Error> {
        let mut memory = Self {
            places: Vec::new(),
            grid: Vec::new(),
            threadgroups: Vec::new(),
            reports,
            watch: None,
            words: Vec::new(),
            bytes: 0,
            limit_bytes,
            spilled_words: 0,
        };
        let mut of_threadgroup = 0;
        for &declaration in objects {
            let index = if declaration.space.is_of_threadgroup() {
                of_threadgroup += 1;
                of_threadgroup - 1
            } else {
                let shadow = memory.shadow(&declaration)?;
                memory.grid.push(shadow);
                memory.grid.len() - 1
            };
            memory.places.push(Place { declaration, index });
        }
        Ok(memory)
    }

    fn shadow(&mut self, declaration: &Declaration) -> Result<Shadow, Error> {
        if !declaration.writable {
            return Ok(Shadow::default());
        }
        self.bytes += u64::from(declaration.locations) * BYTES_PER_LOCATION;
        self.check_limit()?;
        let needed = u64::from(declaration.locations) * BYTES_PER_LOCATION;
        if !invar_ir::memory_layout::has_room(needed) {
            return Err(Error::NoMemory { needed });
        }
        Ok(Shadow::new(declaration.locations))
    }

    pub(super) fn check_limit(&self) -> Result<(), Error> {
        let needed = self.bytes + self.spilled_words as u64 * BYTES_PER_SPILLED_WORD;
        let limit = self.limit_bytes;
        if needed > limit {
            return Err(Error::Memory { needed, limit });
        }
        Ok(())
    }

    /// Room for the memory of one more running threadgroup.
    pub(super) fn add_slot(&mut self) -> Result<(), Error> {
        let mut shadows = Vec::new();
        for at in 0..self.places.len() {
            let declaration = self.places[at].declaration;
            if declaration.space.is_of_threadgroup() {
                shadows.push(self.shadow(&declaration)?);
            }
        }
        self.threadgroups.push(shadows);
        Ok(())
    }

    /// Forgets the memory of the threadgroup in a slot.
    pub(super) fn clear_slot(&mut self, slot: usize) {
        for shadow in &mut self.threadgroups[slot] {
            self.spilled_words -= shadow.spilled_words;
            shadow.clear();
        }
    }

    pub(super) fn declaration(&self, object: Object) -> &Declaration {
        &self.places[object.0 as usize].declaration
    }

    /// Every object that the threadgroup in a slot can access.
    pub(super) fn shadows(
        &mut self,
        slot: usize,
    ) -> impl Iterator<Item = (&Declaration, &mut Shadow)> {
        let mut grid = self.grid.iter_mut();
        let mut own = self.threadgroups[slot].iter_mut();
        self.places.iter().map(move |place| {
            let declaration = &place.declaration;
            let shadow = if declaration.space.is_of_threadgroup() {
                own.next()
            } else {
                grid.next()
            };
            (declaration, shadow.expect("places are in this order"))
        })
    }

    /// What records accesses to an object by the threadgroup in a slot.
    #[inline]
    pub(super) fn recorder<'a>(
        &'a mut self,
        layout: &'a Layout,
        slot: usize,
        object: Object,
    ) -> Recorder<'a> {
        let place = &self.places[object.0 as usize];
        let shadow = if place.declaration.space.is_of_threadgroup() {
            &mut self.threadgroups[slot][place.index]
        } else {
            &mut self.grid[place.index]
        };
        Recorder {
            shadow,
            reports: &mut self.reports,
            watch: self.watch.as_mut(),
            of_threadgroup: place.declaration.space.is_of_threadgroup(),
            words: &mut self.words,
            layout,
            object,
            spilled_words: &mut self.spilled_words,
        }
    }
}

/// One object's state, and where what is found goes.
pub(super) struct Recorder<'a> {
    pub(super) shadow: &'a mut Shadow,
    reports: &'a mut Reports,
    watch: Option<&'a mut Watch>,
    of_threadgroup: bool,
    words: &'a mut Vec<u64>,
    layout: &'a Layout,
    object: Object,
    spilled_words: &'a mut usize,
}

impl Recorder<'_> {
    /// Accesses by a run of lanes, none to a location that a copy in flight may touch.
    #[inline(always)]
    pub(super) fn run<const KIND: u64>(
        &mut self,
        run: Run,
        view: &View,
        unchanged: &mut impl FnMut(u32, u32) -> bool,
    ) {
        if self.watch.is_none() && self.shadow.run_fast::<KIND>(run, view) {
            return;
        }
        let mut at = run.location;
        for lane in run.first_lane..run.first_lane + run.lanes {
            self.lane::<KIND>(lane, at, run.width, view, false, unchanged);
            at += run.width as usize;
        }
    }

    /// Accesses to the locations of one lane. `careful`: a copy in flight may touch one of them.
    #[inline(always)]
    pub(super) fn lane<const KIND: u64>(
        &mut self,
        lane: u32,
        at: usize,
        width: u32,
        view: &View,
        careful: bool,
        unchanged: &mut impl FnMut(u32, u32) -> bool,
    ) {
        let me = view.me | self.layout.lane(lane);
        let careful = careful || self.watch.is_some();
        for component in 0..width {
            let at = at + component as usize;
            let met = || unchanged(lane, component);
            if careful || !self.shadow.access_fast::<KIND>(at, view, me, met) {
                let unchanged = KIND == WRITE && unchanged(lane, component);
                self.general(at as u32, view, me, KIND, unchanged);
            }
        }
    }

    /// Checks an access, `me`, against the copies in flight, then by the general rule.
    #[cold]
    #[inline(never)]
    pub(super) fn general(&mut self, at: u32, view: &View, me: u64, kind: u64, unchanged: bool) {
        let view = View { me, ..*view };
        if self.look(at, &view, kind, None, true) {
            return;
        }
        if !self.meets_flight(at, &view, kind, None) {
            self.record(at, &view, kind, unchanged);
        }
    }

    /// Whether this is a second look; then that is all there is to do with an access. `own` as for
    /// [`Self::check`]; `record`: later accesses may race with it.
    fn look(&mut self, at: u32, view: &View, kind: u64, own: Option<u64>, record: bool) -> bool {
        let Some(watch) = &mut self.watch else {
            return false;
        };
        let threadgroup = self.layout.threadgroup_of(view.me);
        let key = (
            self.object.0,
            self.of_threadgroup.then_some(threadgroup),
            at,
        );
        watch.look(key, view, kind, (&self.shadow.flights, own), record);
        true
    }

    /// Whether accesses must be recorded one by one.
    pub(super) fn is_second_look(&self) -> bool {
        self.watch.is_some()
    }

    /// Checks and records an access by the general rule.
    pub(super) fn record(&mut self, at: u32, view: &View, kind: u64, unchanged: bool) {
        if self.look(at, view, kind, None, true) {
            return;
        }
        *self.spilled_words -= self.shadow.spilled_words;
        let shadow = &mut *self.shadow;
        let met = shadow.access(at as usize, view, kind, unchanged, self.words);
        *self.spilled_words += self.shadow.spilled_words;
        match met {
            Met::Nothing => {}
            Met::EqualStores(with) => self.report(Class::EqualStores, at, with, view, kind, false),
            Met::Race { with, upgraded } => {
                self.report(Class::DataRace, at, with, view, kind, upgraded);
            }
        }
    }

    /// Checks an access without recording it: the issue of a copy, which does not race with what
    /// is already in flight for `own`.
    pub(super) fn check(&mut self, at: u32, view: &View, kind: u64, own: Option<u64>) {
        if self.look(at, view, kind, own, false) {
            return;
        }
        if self.shadow.is_done(at as usize) || self.meets_flight(at, view, kind, own) {
            return;
        }
        let shadow = &*self.shadow;
        if let Some(with) = shadow.race_against(at as usize, view, kind, self.words) {
            self.race(at, with, view, kind);
        }
    }

    fn meets_flight(&mut self, at: u32, view: &View, kind: u64, own: Option<u64>) -> bool {
        if self.shadow.flights.is_empty() || self.shadow.is_done(at as usize) {
            return false;
        }
        let Some(with) = self.shadow.flight_against(at, kind, own) else {
            return false;
        };
        self.race(at, with, view, kind);
        true
    }

    fn race(&mut self, at: u32, with: u64, view: &View, kind: u64) {
        *self.spilled_words -= self.shadow.spilled_words;
        let upgraded = self.shadow.finish(at as usize);
        *self.spilled_words += self.shadow.spilled_words;
        self.report(Class::DataRace, at, with, view, kind, upgraded);
    }

    fn report(&mut self, class: Class, at: u32, with: u64, view: &View, kind: u64, upgraded: bool) {
        let threadgroup = self.layout.threadgroup_of(view.me);
        let key = (
            self.object.0,
            self.of_threadgroup.then_some(threadgroup),
            at,
        );
        let pair = (with, view.me | kind);
        self.reports.add(self.layout, class, key, pair, upgraded);
    }
}
