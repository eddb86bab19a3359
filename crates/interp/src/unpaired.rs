//! Why a release and an acquire between two threads that race do not order them (O4, T3): their
//! orders, their scopes, their locations, or when they come; or that a thread releases or acquires for
//! others of its threadgroup, which no barrier has meet it.
//!
//! Gathered in a second look at a schedule, when the threads that race are known.

use std::collections::HashMap;

use invar_ir::{AddressSpace, AtomicOp, Order, Scope};

use crate::observe::{Access, Kind, Who};
use crate::race::{Performer, RacingAccess, Report};

/// A thread: its threadgroup, its simdgroup and its lane.
type Thread = (u64, u32, u32);

/// The most atomics of one thread that are looked at.
const MOST: usize = 256;

/// An atomic by a thread that races.
#[derive(Clone, Copy, Debug)]
struct Note {
    when: u64,
    site: u32,
    op: AtomicOp,
    order: Order,
    scope: Scope,
    object: u32,
    location: u64,
    /// How many barriers its threadgroup has come to.
    barriers: u64,
}

impl Note {
    fn writes(&self) -> bool {
        self.op != AtomicOp::Load
    }

    fn reads(&self) -> bool {
        self.op != AtomicOp::Store
    }
}

/// Two accesses that race, and when they were made.
#[derive(Debug)]
struct Race {
    first: Thread,
    second: Thread,
    sites: [u32; 2],
    place: (u32, u64),
    when: [Option<u64>; 2],
    /// How many barriers each one's threadgroup had come to.
    barriers: [u64; 2],
}

/// What is seen of the atomics of threads that race.
#[derive(Debug, Default)]
pub(crate) struct Unpaired {
    races: Vec<Option<Race>>,
    notes: HashMap<Thread, Vec<Note>>,
    /// By threadgroup with a thread that races: the releases and acquires of all its threads.
    of_threadgroup: HashMap<u64, Vec<(Thread, Note)>>,
    /// How many threadgroup barriers a threadgroup with a thread that races has come to.
    barriers: HashMap<u64, u64>,
    events: u64,
}

fn thread(party: &RacingAccess) -> Option<Thread> {
    match party.performer {
        Performer::Lane(lane) => Some((party.threadgroup, party.simdgroup, lane)),
        Performer::SomeLane => None,
    }
}

impl Unpaired {
    /// For races in the order of these reports; `object` gives the number by which a run calls one.
    pub(crate) fn new(reports: &[Report], object: impl Fn(&Report) -> u32) -> Unpaired {
        let mut unpaired = Unpaired::default();
        for report in reports {
            let threads = thread(&report.first).zip(thread(&report.second));
            unpaired.races.push(threads.map(|(first, second)| Race {
                first,
                second,
                sites: [report.first.site.0, report.second.site.0],
                place: (object(report), report.location.into()),
                when: [None; 2],
                barriers: [0; 2],
            }));
            for thread in threads.into_iter().flat_map(|(a, b)| [a, b]) {
                unpaired.notes.insert(thread, Vec::new());
                unpaired.of_threadgroup.insert(thread.0, Vec::new());
                unpaired.barriers.insert(thread.0, 0);
            }
        }
        unpaired
    }

    /// A threadgroup has met at a barrier.
    pub(crate) fn barrier(&mut self, threadgroup: u64) {
        if let Some(count) = self.barriers.get_mut(&threadgroup) {
            *count += 1;
        }
    }

    /// An access, in the order in which they take place.
    pub(crate) fn access(&mut self, access: &Access) {
        let Who {
            threadgroup,
            simdgroup,
            ..
        } = access.who;
        let Some(group) = self.of_threadgroup.get_mut(&threadgroup) else {
            self.events += u64::from(access.lanes.count_ones());
            return;
        };
        let barriers = self.barriers.get(&threadgroup).copied().unwrap_or_default();
        for lane in access.order {
            if access.lanes >> lane & 1 == 0 {
                continue;
            }
            let thread = (threadgroup, simdgroup, u32::from(*lane));
            self.events += 1;
            let location = access.locations[usize::from(*lane)];
            let note = match access.kind {
                Kind::Atomic {
                    op, order, scope, ..
                } => Some(Note {
                    when: self.events,
                    site: access.site,
                    op,
                    order,
                    scope,
                    object: access.object,
                    location,
                    barriers,
                }),
                Kind::Read | Kind::Write => None,
            };
            if let Some(note) = note
                && (note.order.releases() || note.order.acquires())
                && group.len() < MOST
            {
                group.push((thread, note));
            }
            let Some(notes) = self.notes.get_mut(&thread) else {
                continue;
            };
            if let Some(note) = note
                && notes.len() < MOST
            {
                notes.push(note);
            }
            let touches = location..location + u64::from(access.width);
            for race in self.races.iter_mut().flatten() {
                if race.place.0 != access.object || !touches.contains(&race.place.1) {
                    continue;
                }
                let [first, second] = &mut race.when;
                if second.is_some() {
                    continue;
                }
                if (race.first, race.sites[0]) == (thread, access.site) {
                    *first = Some(self.events);
                    race.barriers[0] = barriers;
                } else if first.is_some() && (race.second, race.sites[1]) == (thread, access.site) {
                    *second = Some(self.events);
                    race.barriers[1] = barriers;
                }
            }
        }
    }

    /// Why the atomics of a race's threads do not order the two accesses, with what to change. `line`
    /// says where a site is, `name` what an object's location is called, `space` is that of the location
    /// that races.
    pub(crate) fn why(
        &self,
        race: usize,
        line: impl Fn(u32) -> String,
        name: impl Fn(u32, u64) -> String,
        space: AddressSpace,
    ) -> Option<String> {
        let race = self.races.get(race)?.as_ref()?;
        let (Some(first), Some(second)) = (race.when[0], race.when[1]) else {
            return None;
        };
        // Only what is not a race itself could order the two.
        let of = |thread| self.notes.get(&thread).into_iter().flatten();
        let elsewhere = |n: &&Note| (n.object, n.location) != race.place;
        let writes = of(race.first).filter(|n| n.writes() && n.when > first && elsewhere(n));
        let writes: Vec<&Note> = writes.collect();
        let reads = of(race.second).filter(|n| n.reads() && n.when < second && elsewhere(n));
        let reads: Vec<&Note> = reads.collect();
        let told = |n: &Note| format!("`{}`{}", n.op.name(), line(n.site));
        if let Some((release, acquire)) = latest_pair(&writes, &reads) {
            let far = race.first.0 != race.second.0;
            let near = |n: &Note| n.scope != Scope::Device;
            let mut wrong = Vec::new();
            if !release.order.releases() {
                let order = match release.reads() && release.order.acquires() {
                    true => "acq_rel",
                    false => "release",
                };
                wrong.push(format!(
                    "{} does not release: make it `{order}`",
                    told(release)
                ));
            }
            if !acquire.order.acquires() {
                let order = match acquire.writes() && acquire.order.releases() {
                    true => "acq_rel",
                    false => "acquire",
                };
                wrong.push(format!(
                    "{} does not acquire: make it `{order}`",
                    told(acquire)
                ));
            }
            let mut scopes: Vec<&Note> = vec![release, acquire];
            scopes.retain(|n| far && near(n));
            scopes.dedup_by_key(|n| n.site);
            for note in scopes {
                wrong.push(format!(
                    "the scope of {} is `threadgroup`, and the other thread is of another: make it \
                     `device`",
                    told(note)
                ));
            }
            if wrong.is_empty() {
                return Some(format!(
                    "{} did not read what {} released: something else was stored there in between",
                    told(acquire),
                    told(release)
                ));
            }
            return Some(wrong.join("; "));
        }
        let release = writes.into_iter().find(|n| n.order.releases());
        let acquire = reads.into_iter().rfind(|n| n.order.acquires());
        if let (Some(release), Some(acquire)) = (release, acquire) {
            let (at, from) = (
                name(release.object, release.location),
                name(acquire.object, acquire.location),
            );
            return Some(if at == from {
                format!(
                    "{} read `{from}` before {} released it: read it again until the value is there, \
                     and go on only then",
                    told(acquire),
                    told(release)
                )
            } else {
                format!(
                    "{} releases `{at}` and {} acquires `{from}`: the two order nothing unless they \
                     are of one location",
                    told(release),
                    told(acquire)
                )
            });
        }
        let mut early =
            of(race.first).filter(|n| n.writes() && n.order.releases() && n.when < first);
        if let (Some(release), Some(_), None) = (early.next_back(), acquire, release) {
            return Some(format!(
                "{} releases before the access: put it behind",
                told(release)
            ));
        }
        let late = of(race.second).find(|n| n.reads() && n.order.acquires() && n.when > second);
        if let (Some(_), None, Some(acquire)) = (release, acquire, late) {
            return Some(format!(
                "{} acquires only after the access: put it before",
                told(acquire)
            ));
        }
        self.for_others(race, first, second, &told, space)
    }

    /// What is missing where a thread releases what another of its threadgroup wrote, or acquires what
    /// another reads: the barrier by which the two meet.
    fn for_others(
        &self,
        race: &Race,
        first: u64,
        second: u64,
        told: &dyn Fn(&Note) -> String,
        space: AddressSpace,
    ) -> Option<String> {
        if !matches!(space, AddressSpace::Device | AddressSpace::Threadgroup) {
            return None;
        }
        let space = space.name();
        let of = |thread: Thread| self.of_threadgroup.get(&thread.0).into_iter().flatten();
        let reads = |n: &Note| n.reads() && n.order.acquires() && n.when < second;
        let mut acquires = of(race.second).rev().filter(|(_, n)| reads(n));
        let writes = |n: &Note| n.writes() && n.order.releases() && n.when > first;
        let (release, acquire) = acquires.find_map(|acquire| {
            let pairs = |n: &Note| {
                (n.object, n.location) == (acquire.1.object, acquire.1.location)
                    && n.when < acquire.1.when
            };
            let release = of(race.first).find(|(_, n)| writes(n) && pairs(n))?;
            Some((release, acquire))
        })?;
        let mut missing = Vec::new();
        if release.0 != race.first && release.1.barriers == race.barriers[0] {
            missing.push(format!(
                "put `barrier threadgroup [{space}]` before {}, which releases only what its own thread \
                 wrote and what a barrier has ordered before it",
                told(&release.1)
            ));
        }
        if acquire.0 != race.second && acquire.1.barriers == race.barriers[1] {
            missing.push(format!(
                "put `barrier threadgroup [{space}]` behind {}, which acquires only for its own thread and \
                 what a barrier orders behind it",
                told(&acquire.1)
            ));
        }
        (!missing.is_empty()).then(|| missing.join("; "))
    }
}

/// Of writes and reads of one location, the latest read and the latest write before it.
fn latest_pair<'n>(writes: &[&'n Note], reads: &[&'n Note]) -> Option<(&'n Note, &'n Note)> {
    reads.iter().rev().find_map(|read| {
        let place = |n: &Note| (n.object, n.location);
        let before = |w: &&&Note| place(w) == place(read) && w.when < read.when;
        let write = writes.iter().rev().find(before)?;
        Some((*write, *read))
    })
}
