//! The race detector, rule by rule: each with a race and the control that has none.

use std::ops::Range;

use invar_interp::race::{
    Access, Atomic, AtomicAccess, Batch, Class, Config, CopyId, Declaration, Detector, Error,
    Lanes, Object, Order, Performer, Region, Scope, Simdgroup, Site, Space, Spaces, Threadgroup,
    Verdict,
};

const DEVICE: u32 = 0;
const TILE: u32 = 1;
const TEXTURE: u32 = 2;
const IMAGEBLOCK: u32 = 3;

fn config() -> Config {
    Config {
        threadgroups: 4,
        threads_per_threadgroup: 16,
        simdgroup_size: 8,
        sites: 100,
        acquire_release: false,
        report_limit: 10,
        memory_limit_bytes: 1 << 20,
    }
}

fn declarations() -> [Declaration; 4] {
    [
        Space::Device,
        Space::Threadgroup,
        Space::Texture,
        Space::Imageblock,
    ]
    .map(|space| Declaration {
        space,
        locations: 64,
        writable: true,
    })
}

/// Two threadgroups of two simdgroups, run by hand. A thread is (threadgroup, simdgroup, lane).
/// Sites count up from 0, one for each access.
struct Run {
    detector: Detector,
    threadgroups: Vec<Threadgroup>,
    site: u32,
}

type Thread = (usize, u32, u8);

impl Run {
    fn new(acquire_release: bool) -> Self {
        Self::with_threads(acquire_release, 16)
    }

    fn with_threads(acquire_release: bool, threads: u32) -> Self {
        let config = Config {
            acquire_release,
            ..config()
        };
        let mut detector = Detector::new(&config, &declarations()).expect("it fits");
        let threadgroups = (0..2)
            .map(|g| detector.begin_threadgroup(g, threads).expect("in the grid"))
            .collect();
        Self {
            detector,
            threadgroups,
            site: 0,
        }
    }

    fn simdgroup(&self, (g, s, _): Thread) -> Simdgroup {
        self.detector.simdgroup(self.threadgroups[g], s)
    }

    fn next_site(&mut self) -> Site {
        self.site += 1;
        Site(self.site - 1)
    }

    fn batch(&mut self, thread: Thread, object: u32, location: u32) -> Batch<'static> {
        Batch {
            simdgroup: self.simdgroup(thread),
            site: self.next_site(),
            object: Object(object),
            lanes: Lanes::Affine {
                mask: 1 << thread.2,
                base: i64::from(location),
                stride: 0,
            },
            width: 1,
        }
    }

    fn read(&mut self, thread: Thread, object: u32, location: u32) -> &mut Self {
        let batch = self.batch(thread, object, location);
        self.detector.read(&batch);
        self
    }

    fn write(&mut self, thread: Thread, object: u32, location: u32) -> &mut Self {
        self.store(thread, object, location, false)
    }

    fn store(&mut self, thread: Thread, object: u32, at: u32, unchanged: bool) -> &mut Self {
        let batch = self.batch(thread, object, at);
        self.detector.write(&batch, |_, _| unchanged);
        self
    }

    fn atomic(
        &mut self,
        thread: Thread,
        object: u32,
        access: AtomicAccess,
        order: Order,
        scope: Scope,
    ) -> &mut Self {
        let batch = self.batch(thread, object, 9);
        let atomic = Atomic {
            access,
            order,
            scope,
        };
        self.detector.atomic(&batch, atomic);
        self
    }

    fn release(&mut self, thread: Thread, object: u32) -> &mut Self {
        self.atomic(
            thread,
            object,
            AtomicAccess::Store,
            Order::Release,
            Scope::Device,
        )
    }

    fn acquire(&mut self, thread: Thread, object: u32) -> &mut Self {
        self.atomic(
            thread,
            object,
            AtomicAccess::Load,
            Order::Acquire,
            Scope::Device,
        )
    }

    fn barrier(&mut self, g: usize, spaces: Spaces) -> &mut Self {
        let reached = self
            .detector
            .threadgroup_barrier(self.threadgroups[g], spaces);
        reached.expect("time does not run out");
        self
    }

    fn simdgroup_barrier(&mut self, thread: Thread, spaces: Spaces) -> &mut Self {
        let simdgroup = self.simdgroup(thread);
        let reached = self.detector.simdgroup_barrier(simdgroup, spaces);
        reached.expect("time does not run out");
        self
    }

    fn collective_write(&mut self, thread: Thread, object: u32, range: Range<u32>) -> &mut Self {
        let (simdgroup, site) = (self.simdgroup(thread), self.next_site());
        let region = Region {
            object: Object(object),
            ranges: std::slice::from_ref(&range),
        };
        self.detector
            .collective_write(simdgroup, site, region, |_| false);
        self
    }

    fn copy(&mut self, thread: Thread, from: (u32, Range<u32>), to: (u32, Range<u32>)) -> CopyId {
        let (simdgroup, site) = (self.simdgroup(thread), self.next_site());
        let [from, to] = [&from, &to].map(|(object, range)| {
            Some(Region {
                object: Object(*object),
                ranges: std::slice::from_ref(range),
            })
        });
        self.detector.issue_copy(simdgroup, site, from, to)
    }

    fn wait(&mut self, copy: CopyId) -> &mut Self {
        self.detector.wait_copy(copy);
        self
    }

    fn verdict(&mut self) -> Verdict {
        let empty = Detector::new(&config(), &[]).expect("it fits");
        let mut detector = std::mem::replace(&mut self.detector, empty);
        for &threadgroup in &self.threadgroups {
            detector.end_threadgroup(threadgroup);
        }
        detector.finish().expect("within all limits")
    }

    /// Locations with a data race.
    fn races(&mut self) -> u64 {
        let verdict = self.verdict();
        assert_eq!(verdict.equal_stores, 0);
        verdict.data_races
    }
}

fn run() -> Run {
    Run::new(false)
}

const BOTH: Spaces = Spaces::DEVICE_AND_THREADGROUP;

#[test]
fn r1_two_reads_do_not_race_and_a_write_with_either_does() {
    let (a, b) = ((0, 0, 0), (0, 1, 0));
    assert_eq!(run().read(a, DEVICE, 5).read(b, DEVICE, 5).races(), 0);
    assert_eq!(run().read(a, DEVICE, 5).write(b, DEVICE, 5).races(), 1);
    assert_eq!(run().write(a, DEVICE, 5).read(b, DEVICE, 5).races(), 1);
    assert_eq!(run().write(a, DEVICE, 5).write(b, DEVICE, 5).races(), 1);
}

#[test]
fn r1_threadgroup_memory_is_each_threadgroups_own() {
    let (a, b) = ((0, 0, 0), (1, 0, 0));
    for object in [TILE, IMAGEBLOCK] {
        assert_eq!(run().write(a, object, 5).write(b, object, 5).races(), 0);
    }
    for object in [DEVICE, TEXTURE] {
        assert_eq!(run().write(a, object, 5).write(b, object, 5).races(), 1);
    }
}

#[test]
fn l1_neighbouring_locations_are_apart() {
    let (a, b) = ((0, 0, 0), (0, 1, 0));
    assert_eq!(run().write(a, DEVICE, 5).write(b, DEVICE, 6).races(), 0);
}

#[test]
fn l3_components_of_a_vector_access_are_locations_each() {
    let mut run = run();
    let batch = run.batch((0, 0, 0), DEVICE, 8);
    run.detector
        .write(&Batch { width: 4, ..batch }, |_, _| false);
    run.read((0, 1, 0), DEVICE, 7);
    run.read((0, 1, 0), DEVICE, 12);
    run.read((0, 1, 0), DEVICE, 11);
    assert_eq!(run.races(), 1);
}

#[test]
fn o1_a_thread_does_not_race_with_itself() {
    let a = (0, 0, 3);
    let mut run = run();
    run.write(a, DEVICE, 5)
        .read(a, DEVICE, 5)
        .write(a, DEVICE, 5);
    run.barrier(0, Spaces::NONE).write(a, DEVICE, 5);
    assert_eq!(run.races(), 0);
}

#[test]
fn o2_a_threadgroup_barrier_orders_the_spaces_it_names() {
    let (a, b) = ((0, 0, 0), (0, 1, 0));
    let device = Spaces::of(Space::Device);
    let tile = Spaces::of(Space::Threadgroup);
    for (object, spaces, races) in [
        (DEVICE, device, 0),
        (DEVICE, tile, 1),
        (DEVICE, BOTH, 0),
        (DEVICE, Spaces::NONE, 1),
        (TILE, tile, 0),
        (TILE, device, 1),
        (TEXTURE, BOTH, 1),
        (TEXTURE, Spaces::of(Space::Texture), 0),
        (IMAGEBLOCK, BOTH, 1),
        (IMAGEBLOCK, Spaces::of(Space::Imageblock), 0),
    ] {
        let mut run = run();
        run.write(a, object, 5)
            .barrier(0, spaces)
            .read(b, object, 5);
        assert_eq!(run.races(), races, "object {object}, {spaces:?}");
    }
}

#[test]
fn o2_a_simdgroup_barrier_orders_its_simdgroup_only() {
    let (a, near, far) = ((0, 0, 0), (0, 0, 1), (0, 1, 0));
    for (b, races) in [(near, 0), (far, 1)] {
        let mut run = run();
        run.write(a, TILE, 5).simdgroup_barrier(a, BOTH);
        assert_eq!(run.read(b, TILE, 5).races(), races);
    }
    assert_eq!(run().write(a, TILE, 5).read(near, TILE, 5).races(), 1);
}

#[test]
fn o2_no_barrier_reaches_another_threadgroup() {
    let mut run = run();
    run.write((0, 0, 0), DEVICE, 5)
        .barrier(0, BOTH)
        .barrier(1, BOTH);
    assert_eq!(run.read((1, 0, 0), DEVICE, 5).races(), 1);
}

#[test]
fn o2_all_reads_before_a_barrier_are_ordered_and_one_after_it_is_not() {
    let mut first = run();
    for lane in 0..8 {
        first
            .read((0, 0, lane), TILE, 5)
            .read((0, 1, lane), TILE, 5);
    }
    first.barrier(0, BOTH).write((0, 0, 0), TILE, 5);
    assert_eq!(first.races(), 0);
    let mut second = run();
    for lane in 0..8 {
        second.read((0, 0, lane), TILE, 5);
    }
    second.barrier(0, BOTH).read((0, 1, 7), TILE, 5);
    assert_eq!(second.write((0, 0, 0), TILE, 5).races(), 1);
}

#[test]
fn t2_atomics_do_not_race_with_each_other_and_do_with_plain_accesses() {
    let (a, b) = ((0, 0, 0), (1, 0, 0));
    let accesses = [
        AtomicAccess::Load,
        AtomicAccess::Store,
        AtomicAccess::Update,
    ];
    for x in accesses {
        for y in accesses {
            let mut run = run();
            run.atomic(a, DEVICE, x, Order::Relaxed, Scope::Device);
            run.atomic(b, DEVICE, y, Order::Relaxed, Scope::Device);
            assert_eq!(run.races(), 0);
        }
        let reads = u64::from(x != AtomicAccess::Load);
        let mut plain = run();
        plain.atomic(a, DEVICE, x, Order::Relaxed, Scope::Device);
        assert_eq!(plain.read(b, DEVICE, 9).races(), reads);
        let mut plain = run();
        plain.write(b, DEVICE, 9);
        plain.atomic(a, DEVICE, x, Order::Relaxed, Scope::Device);
        assert_eq!(plain.races(), 1);
    }
}

/// Publishes data from thread `a` to thread `b` of another threadgroup and gives the races.
fn publish(between: impl Fn(&mut Run, Thread, Thread)) -> u64 {
    let (a, b) = ((0, 0, 0), (1, 0, 0));
    let mut run = Run::new(true);
    run.write(a, DEVICE, 5);
    between(&mut run, a, b);
    run.read(b, DEVICE, 5).races()
}

#[test]
fn o4_an_acquire_that_reads_a_release_orders() {
    use AtomicAccess::{Load, Store, Update};
    use Order::{Acquire, AcquireRelease, Relaxed, Release, SequentiallyConsistent};
    let pass = |store, load| {
        publish(|run, a, b| {
            run.atomic(a, DEVICE, Store, store, Scope::Device);
            run.atomic(b, DEVICE, Load, load, Scope::Device);
        })
    };
    assert_eq!(pass(Release, Acquire), 0);
    assert_eq!(pass(SequentiallyConsistent, SequentiallyConsistent), 0);
    assert_eq!(pass(Relaxed, Acquire), 1);
    assert_eq!(pass(Release, Relaxed), 1);
    let update = |order| {
        publish(|run, a, b| {
            run.atomic(a, DEVICE, Update, order, Scope::Device);
            run.atomic(b, DEVICE, Update, order, Scope::Device);
        })
    };
    assert_eq!(update(AcquireRelease), 0);
    assert_eq!(update(Release), 1);
    assert_eq!(update(Acquire), 1);
    let backwards = publish(|run, a, b| {
        run.acquire(b, DEVICE).release(a, DEVICE);
    });
    assert_eq!(backwards, 1);
}

#[test]
fn o4_a_chain_of_updates_carries_a_release_and_a_store_ends_it() {
    use AtomicAccess::{Store, Update};
    let third = (1, 1, 2);
    let through = |access| {
        publish(|run, a, b| {
            run.release(a, DEVICE);
            run.atomic(third, DEVICE, access, Order::Relaxed, Scope::Device);
            run.acquire(b, DEVICE);
        })
    };
    assert_eq!(through(Update), 0);
    assert_eq!(through(Store), 1);
    let (a, b) = ((0, 0, 0), (1, 0, 0));
    // A plain store ends it too. It is ordered after the release, so it is not a race itself.
    let mut run = Run::new(true);
    run.write(a, DEVICE, 5)
        .release(a, DEVICE)
        .write(a, DEVICE, 9);
    let verdict = run.acquire(b, DEVICE).read(b, DEVICE, 5).verdict();
    assert_eq!(verdict.data_races, 2);
}

#[test]
fn o4_both_scopes_must_include_the_other_thread() {
    let (a, near, far) = ((0, 0, 0), (0, 1, 0), (1, 0, 0));
    for (b, release, acquire, races) in [
        (far, Scope::Device, Scope::Device, 0),
        (far, Scope::Threadgroup, Scope::Device, 1),
        (far, Scope::Device, Scope::Threadgroup, 1),
        (near, Scope::Threadgroup, Scope::Threadgroup, 0),
        (near, Scope::Device, Scope::Threadgroup, 0),
        (near, Scope::Threadgroup, Scope::Device, 0),
    ] {
        let mut run = Run::new(true);
        run.write(a, DEVICE, 5);
        run.atomic(a, DEVICE, AtomicAccess::Store, Order::Release, release);
        run.atomic(b, DEVICE, AtomicAccess::Load, Order::Acquire, acquire);
        let found = run.read(b, DEVICE, 5).races();
        assert_eq!(found, races, "{b:?} {release:?} {acquire:?}");
    }
}

#[test]
fn o4_orders_device_and_threadgroup_memory_but_not_textures() {
    let (a, b) = ((0, 0, 0), (0, 1, 0));
    for flag in [DEVICE, TILE] {
        for (object, races) in [(DEVICE, 0), (TILE, 0), (TEXTURE, 1), (IMAGEBLOCK, 1)] {
            let mut run = Run::new(true);
            run.write(a, object, 5).release(a, flag).acquire(b, flag);
            assert_eq!(run.read(b, object, 5).races(), races, "{flag} {object}");
        }
    }
}

#[test]
fn o4_only_what_was_done_before_the_release_is_ordered() {
    let late = publish(|run, a, b| {
        run.release(a, DEVICE)
            .write(a, DEVICE, 5)
            .acquire(b, DEVICE);
    });
    assert_eq!(late, 1);
    // Another lane of the releasing simdgroup has released nothing.
    let other_lane = publish(|run, _, b| {
        run.release((0, 0, 1), DEVICE).acquire(b, DEVICE);
    });
    assert_eq!(other_lane, 1);
    let after_barrier = publish(|run, a, b| {
        run.simdgroup_barrier(a, BOTH);
        run.release((0, 0, 1), DEVICE).acquire(b, DEVICE);
    });
    assert_eq!(after_barrier, 0);
}

#[test]
fn o4_what_was_acquired_passes_on_through_barriers_and_releases() {
    let (b, c) = ((1, 0, 0), (1, 1, 3));
    let through = |spaces| {
        let mut run = Run::new(true);
        run.write((0, 0, 0), DEVICE, 5).release((0, 0, 0), DEVICE);
        run.acquire(b, DEVICE).barrier(1, spaces);
        run.read(c, DEVICE, 5).races()
    };
    assert_eq!(through(BOTH), 0);
    assert_eq!(through(Spaces::of(Space::Threadgroup)), 1);
}

#[test]
fn o7_a_barrier_orders_accesses_to_the_named_spaces_and_those_alone() {
    // Thread b follows a barrier that names device memory, releases in threadgroup memory, and
    // did not access device memory in between: nothing connects the two.
    let (a, b, c) = ((0, 0, 0), (0, 0, 1), (0, 1, 0));
    for (between, races) in [(false, 1), (true, 0)] {
        let mut run = Run::new(true);
        run.write(a, DEVICE, 5);
        run.simdgroup_barrier(a, Spaces::of(Space::Device));
        if between {
            run.read(b, DEVICE, 60);
        }
        run.release(b, TILE).acquire(c, TILE);
        assert_eq!(run.read(c, DEVICE, 5).races(), races);
    }
}

#[test]
fn o7_each_space_has_its_own_happens_before() {
    // What orders device memory says nothing of textures, on the way through a third thread.
    let (a, b) = ((0, 0, 0), (0, 1, 0));
    let mut run = run();
    run.write(a, DEVICE, 5).write(a, TEXTURE, 5);
    run.barrier(0, Spaces::of(Space::Device));
    run.read(b, DEVICE, 5).read(b, TEXTURE, 5);
    let verdict = run.verdict();
    assert_eq!(verdict.data_races, 1);
    assert_eq!(verdict.reports[0].object, Object(TEXTURE));
}

#[test]
fn o5_what_a_copy_touches_is_unordered_until_the_wait() {
    let lanes = (0, 0, 0);
    let outcome = |wait_first: bool, write: bool, object: u32, at: u32| {
        let mut run = run();
        let copy = run.copy(lanes, (DEVICE, 0..8), (TILE, 16..24));
        if wait_first {
            run.wait(copy);
        }
        if write {
            run.write(lanes, object, at);
        } else {
            run.read(lanes, object, at);
        }
        run.wait(copy).races()
    };
    for at in [0, 7] {
        assert_eq!(outcome(false, true, DEVICE, at), 1);
        assert_eq!(outcome(false, false, DEVICE, at), 0);
        assert_eq!(outcome(true, true, DEVICE, at), 0);
    }
    assert_eq!(outcome(false, true, DEVICE, 8), 0);
    for at in [16, 23] {
        assert_eq!(outcome(false, true, TILE, at), 1);
        assert_eq!(outcome(false, false, TILE, at), 1);
        assert_eq!(outcome(true, false, TILE, at), 0);
    }
    assert_eq!(outcome(false, false, TILE, 15), 0);
    assert_eq!(outcome(false, false, TILE, 24), 0);
}

#[test]
fn o5_a_source_written_by_a_lane_needs_a_barrier_before_the_issue() {
    let lanes = (0, 0, 0);
    for (barrier, races) in [(true, 0), (false, 1)] {
        let mut run = run();
        run.write(lanes, DEVICE, 3);
        if barrier {
            run.simdgroup_barrier(lanes, BOTH);
        }
        run.copy(lanes, (DEVICE, 0..8), (TILE, 0..8));
        assert_eq!(run.races(), races);
    }
    // The only lane of its simdgroup copies everything itself.
    let mut alone = Run::with_threads(false, 9);
    alone.write((0, 1, 0), DEVICE, 3);
    alone.copy((0, 1, 0), (DEVICE, 0..8), (TILE, 0..8));
    assert_eq!(alone.races(), 0);
}

#[test]
fn o5_a_barrier_does_not_end_a_copy_in_flight() {
    let (lanes, other) = ((0, 0, 0), (0, 1, 0));
    for (waits_before, races) in [(true, 0), (false, 1)] {
        let mut run = run();
        let copy = run.copy(lanes, (DEVICE, 0..8), (TILE, 0..8));
        if waits_before {
            run.wait(copy).barrier(0, BOTH);
        } else {
            run.barrier(0, BOTH).wait(copy);
        }
        assert_eq!(run.read(other, TILE, 2).races(), races);
    }
}

#[test]
fn o5_two_copies_in_flight_race_where_one_writes() {
    let outcome = |to: Range<u32>, same_simdgroup: bool, wait: bool| {
        let mut run = run();
        let second = (0, u32::from(!same_simdgroup), 0);
        let copy = run.copy((0, 0, 0), (DEVICE, 0..8), (TILE, 0..8));
        if wait {
            run.wait(copy);
        }
        run.copy(second, (DEVICE, 4..12), (TILE, to));
        run.races()
    };
    assert_eq!(outcome(7..15, true, false), 1);
    assert_eq!(outcome(8..16, true, false), 0);
    assert_eq!(outcome(7..15, true, true), 0);
    assert_eq!(outcome(7..15, false, true), 1);
}

#[test]
fn o5_a_copy_onto_its_own_source_races_with_itself() {
    let mut run = run();
    run.copy((0, 0, 0), (DEVICE, 0..8), (DEVICE, 4..12));
    assert_eq!(run.races(), 4);
}

#[test]
fn o5_waiting_twice_has_no_further_effect() {
    let (lanes, other) = ((0, 0, 0), (0, 1, 0));
    let mut run = run();
    let copy = run.copy(lanes, (DEVICE, 0..8), (TILE, 0..8));
    run.wait(copy).barrier(0, BOTH).wait(copy);
    assert_eq!(run.read(other, TILE, 2).races(), 0);
}

#[test]
fn o5_a_copy_ends_with_its_threadgroup_and_still_races_with_others() {
    let mut run = run();
    run.copy((0, 0, 0), (TILE, 0..8), (DEVICE, 0..8));
    run.detector.end_threadgroup(run.threadgroups[0]);
    run.read((1, 0, 0), DEVICE, 2);
    run.read((1, 0, 0), DEVICE, 8);
    run.threadgroups.remove(0);
    assert_eq!(run.races(), 1);
}

#[test]
fn o6_a_collective_access_races_with_its_own_lanes() {
    let lanes = (0, 0, 0);
    assert_eq!(
        run()
            .collective_write(lanes, TILE, 0..8)
            .read(lanes, TILE, 3)
            .races(),
        1
    );
    assert_eq!(
        run()
            .read(lanes, TILE, 3)
            .collective_write(lanes, TILE, 0..8)
            .races(),
        1
    );
    let mut ordered = run();
    ordered.collective_write(lanes, TILE, 0..8);
    ordered.simdgroup_barrier(lanes, BOTH).read(lanes, TILE, 3);
    assert_eq!(ordered.races(), 0);
    let mut alone = Run::with_threads(false, 9);
    alone.collective_write((0, 1, 0), TILE, 0..8);
    assert_eq!(alone.read((0, 1, 0), TILE, 3).races(), 0);
}

#[test]
fn r3_reports_both_sites_threads_kinds_and_the_location() {
    let mut run = run();
    run.write((0, 0, 2), DEVICE, 40);
    run.atomic(
        (1, 1, 5),
        DEVICE,
        AtomicAccess::Update,
        Order::Relaxed,
        Scope::Device,
    );
    run.read((1, 1, 6), DEVICE, 40);
    let verdict = run.verdict();
    assert_eq!(verdict.reports.len(), 1);
    assert!(!verdict.only_this_schedule);
    let report = verdict.reports[0];
    assert_eq!((report.object, report.location), (Object(DEVICE), 40));
    assert_eq!((report.class, report.locations), (Class::DataRace, 1));
    let (first, second) = (report.first, report.second);
    assert_eq!((first.site, second.site), (Site(0), Site(2)));
    assert_eq!((first.threadgroup, second.threadgroup), (0, 1));
    assert_eq!((first.simdgroup, second.simdgroup), (0, 1));
    assert_eq!(first.performer, Performer::Lane(2));
    assert_eq!(second.performer, Performer::Lane(6));
    assert_eq!((first.access, second.access), (Access::Write, Access::Read));
}

#[test]
fn r3_reports_a_reader_that_really_raced_when_the_writer_read_too() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut run = run();
        for lane in order {
            run.read((0, 0, lane), DEVICE, 5);
        }
        let report = run.write((0, 0, 1), DEVICE, 5).verdict().reports[0];
        assert_ne!(report.first.performer, Performer::Lane(1));
    }
}

#[test]
fn r3_each_racy_location_is_reported_once_and_counted_by_pair_of_sites() {
    let mut run = run();
    let all = |run: &mut Run, s: u32| Batch {
        simdgroup: run.simdgroup((0, s, 0)),
        site: run.next_site(),
        object: Object(DEVICE),
        lanes: Lanes::Affine {
            mask: u128::MAX, // lanes that do not exist take no part
            base: 0,
            stride: 1,
        },
        width: 1,
    };
    for s in [0, 1, 0, 1] {
        let batch = all(&mut run, s);
        run.detector.write(&batch, |_, _| false);
    }
    let verdict = run.verdict();
    assert_eq!(verdict.data_races, 8);
    assert_eq!(verdict.reports.len(), 1);
    assert_eq!(verdict.reports[0].locations, 8);
}

#[test]
fn r3_reports_beyond_the_limit_are_counted() {
    let mut run = run();
    for at in 0..25 {
        run.write((0, 0, 0), DEVICE, at)
            .write((0, 1, 0), DEVICE, at);
    }
    let verdict = run.verdict();
    assert_eq!(verdict.data_races, 25);
    assert_eq!(verdict.reports.len(), 10);
    assert_eq!(verdict.not_kept, 15);
}

#[test]
fn r3_stores_of_equal_value_are_a_class_of_their_own() {
    let threads = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)];
    for acquire_release in [false, true] {
        let mut run = Run::new(acquire_release);
        for (i, thread) in threads.into_iter().enumerate() {
            run.store(thread, DEVICE, 5, i != 0);
        }
        let verdict = run.verdict();
        assert_eq!((verdict.data_races, verdict.equal_stores), (0, 1));
        assert_eq!(verdict.reports.len(), 1);
        assert_eq!(verdict.reports[0].class, Class::EqualStores);
        assert_eq!(verdict.only_this_schedule, acquire_release);
    }
}

#[test]
fn r3_one_store_of_another_value_makes_equal_stores_a_data_race() {
    let threads = [(0, 0, 0), (0, 0, 1), (1, 0, 0)];
    for acquire_release in [false, true] {
        for other in 1..3 {
            let mut run = Run::new(acquire_release);
            for (i, thread) in threads.into_iter().enumerate() {
                run.store(thread, DEVICE, 5, i != 0 && i != other);
            }
            let verdict = run.verdict();
            assert_eq!((verdict.data_races, verdict.equal_stores), (1, 0));
        }
    }
}

#[test]
fn r3_an_earlier_store_of_another_value_or_a_read_is_no_equal_store() {
    let (a, b) = ((0, 0, 0), (0, 1, 0));
    for acquire_release in [false, true] {
        let run = || Run::new(acquire_release);
        // 0, then 1; and 1 by another thread, which races with both.
        let mut two = run();
        two.write(a, TILE, 5)
            .write(a, TILE, 5)
            .store(b, TILE, 5, true);
        assert_eq!(two.races(), 1);
        // 1, then 1 again.
        let mut same = run();
        same.write(a, TILE, 5)
            .store(a, TILE, 5, true)
            .store(b, TILE, 5, true);
        assert_eq!(same.verdict().equal_stores, 1);
        let mut read = run();
        read.read(a, TILE, 5)
            .write(a, TILE, 5)
            .store(b, TILE, 5, true);
        assert_eq!(read.races(), 1);
        // What a barrier ordered before all of them does not count.
        let mut before = run();
        before.read(a, TILE, 5).write(b, TILE, 6).barrier(0, BOTH);
        before.write(a, TILE, 5).store(b, TILE, 5, true);
        assert_eq!(before.verdict().equal_stores, 1);
    }
}

#[test]
fn r3_a_read_of_equal_stores_is_a_data_race() {
    let mut run = run();
    run.write((0, 0, 0), DEVICE, 5)
        .store((0, 1, 0), DEVICE, 5, true);
    let verdict = run.read((1, 0, 0), DEVICE, 5).verdict();
    assert_eq!((verdict.data_races, verdict.equal_stores), (1, 0));
    // Nothing is said of equal stores where there are none in the end.
    assert_eq!(verdict.reports.len(), 1);
    assert_eq!(verdict.reports[0].class, Class::DataRace);
}

#[test]
fn r3_equal_stores_are_reported_where_they_stay_so() {
    let mut run = run();
    for location in [5, 6] {
        run.write((0, 0, 0), DEVICE, location)
            .store((0, 1, 0), DEVICE, location, true);
    }
    let verdict = run.read((1, 0, 0), DEVICE, 5).verdict();
    assert_eq!((verdict.data_races, verdict.equal_stores), (1, 1));
    let of = |class| verdict.reports.iter().find(|r| r.class == class);
    let equal = of(Class::EqualStores).expect("a report");
    assert_eq!((equal.location, equal.locations), (6, 1));
    let race = of(Class::DataRace).expect("a report");
    assert_eq!((race.location, race.locations), (5, 1));
}

#[test]
fn i2_threadgroup_memory_starts_afresh_with_each_threadgroup() {
    let mut detector = Detector::new(&config(), &declarations()).expect("it fits");
    for g in 0..4 {
        let threadgroup = detector.begin_threadgroup(g, 16).expect("in the grid");
        let lane = u32::try_from(g).expect("few") % 2;
        let batch = Batch {
            simdgroup: detector.simdgroup(threadgroup, lane),
            site: Site(0),
            object: Object(TILE),
            lanes: Lanes::Each {
                lanes: &[0, 1],
                locations: &[3, 4],
            },
            width: 1,
        };
        detector.write(&batch, |_, _| false);
        detector.read(&batch);
        detector.end_threadgroup(threadgroup);
    }
    let verdict = detector.finish().expect("within all limits");
    assert_eq!(verdict.data_races + verdict.equal_stores, 0);
}

#[test]
fn s3_an_object_that_is_never_written_costs_nothing() {
    let read_only = Declaration {
        space: Space::Device,
        locations: u32::MAX,
        writable: false,
    };
    let mut detector = Detector::new(&config(), &[read_only]).expect("no state is kept");
    let threadgroup = detector.begin_threadgroup(0, 16).expect("in the grid");
    let batch = Batch {
        simdgroup: detector.simdgroup(threadgroup, 0),
        site: Site(0),
        object: Object(0),
        lanes: Lanes::Affine {
            mask: 0xff,
            base: 1 << 31,
            stride: 1,
        },
        width: 1,
    };
    detector.read(&batch);
    detector.write(&batch, |_, _| false);
    let error = detector.finish().expect_err("it is never written");
    assert!(matches!(error, Error::UnexpectedWrite { .. }), "{error}");
}

#[test]
fn what_does_not_fit_is_an_error() {
    let new = |config: Config| Detector::new(&config, &declarations()).map(|_| ());
    for size in [0, 2, 24, 256] {
        let config = Config {
            simdgroup_size: size,
            ..config()
        };
        assert_eq!(new(config), Err(Error::SimdgroupSize { size }));
    }
    for size in [4, 8, 64, 128] {
        let config = Config {
            simdgroup_size: size,
            ..config()
        };
        assert_eq!(new(config), Ok(()));
    }
    let large = Config {
        threadgroups: 1 << 40,
        sites: 1 << 20,
        ..config()
    };
    assert!(matches!(new(large), Err(Error::TooLarge { .. })));
    let large = Config {
        threadgroups: 1 << 24,
        sites: 1 << 16,
        threads_per_threadgroup: 1024,
        ..config()
    };
    assert_eq!(new(large), Ok(()));
    // Two objects of the grid with 64 locations of 32 bytes.
    let memory = |limit| Config {
        memory_limit_bytes: limit,
        ..config()
    };
    assert_eq!(new(memory(2 * 64 * 32)), Ok(()));
    assert!(matches!(
        new(memory(2 * 64 * 32 - 1)),
        Err(Error::Memory { .. })
    ));
}

#[test]
fn what_was_not_announced_is_an_error() {
    let mut detector = Detector::new(&config(), &declarations()).expect("it fits");
    for (number, threads) in [(4, 16), (0, 0), (0, 17)] {
        let begun = detector.begin_threadgroup(number, threads);
        assert!(matches!(begun, Err(Error::Threads { .. })));
    }
    let mut ordered = run();
    ordered.release((0, 0, 0), DEVICE);
    let error = ordered.detector.finish().expect_err("it releases");
    assert!(matches!(error, Error::UnexpectedOrder { .. }), "{error}");
    for (site, fits) in [(99, true), (100, false)] {
        let mut run = run();
        run.site = site;
        run.read((0, 0, 0), DEVICE, 0);
        let error = run.detector.finish().err();
        let site = Site(site);
        assert_eq!(error, (!fits).then_some(Error::Site { site, sites: 100 }));
    }
}

/// A grid that leaves few bits for time.
fn narrow(acquire_release: bool, threadgroups: u64, sites: u32) -> Config {
    Config {
        acquire_release,
        threadgroups,
        sites,
        ..config()
    }
}

#[test]
fn any_number_of_barriers_keeps_the_verdict_exact() {
    // Of 64 bits, 55 for all but time and flags.
    let config = narrow(false, (1 << 19) - 1, u32::MAX);
    for barrier_between in [false, true] {
        let mut detector = Detector::new(&config, &declarations()).expect("it fits");
        let threadgroup = detector.begin_threadgroup(77, 16).expect("in the grid");
        let at = |s: u32, write: bool, detector: &mut Detector| {
            let batch = Batch {
                simdgroup: detector.simdgroup(threadgroup, s),
                site: Site(7),
                object: Object(TILE),
                lanes: Lanes::Affine {
                    mask: 0xff,
                    base: 0,
                    stride: 1,
                },
                width: 1,
            };
            if write {
                detector.write(&batch, |_, _| false);
            } else {
                detector.read(&batch);
            }
        };
        for i in 0..1000 {
            at(i % 2, true, &mut detector);
            for s in 0..2 {
                let simdgroup = detector.simdgroup(threadgroup, s);
                let reached = detector.simdgroup_barrier(simdgroup, BOTH);
                reached.expect("time is renumbered");
            }
            if i != 999 || barrier_between {
                let reached = detector.threadgroup_barrier(threadgroup, BOTH);
                reached.expect("time is renumbered");
            }
            at((i + 1) % 2, false, &mut detector);
        }
        let verdict = detector.finish().expect("within all limits");
        assert_eq!(verdict.data_races, if barrier_between { 0 } else { 8 });
    }
}

#[test]
fn with_acquire_and_release_too_many_barriers_are_an_error() {
    // 32 bits of sites, 4 of threads, 11 of threadgroups and 5 of flags leave 12 for time.
    let config = narrow(true, (1 << 11) - 1, u32::MAX);
    let mut detector = Detector::new(&config, &declarations()).expect("it fits");
    let threadgroup = detector.begin_threadgroup(0, 16).expect("in the grid");
    for _ in 0..4095 {
        let reached = detector.threadgroup_barrier(threadgroup, BOTH);
        reached.expect("it can be numbered");
    }
    let error = detector.threadgroup_barrier(threadgroup, BOTH);
    let limit = 4095;
    let threadgroup = 0;
    assert_eq!(error, Err(Error::TooManyBarriers { threadgroup, limit }));
    let larger = narrow(true, 1 << 11, u32::MAX);
    assert!(Detector::new(&larger, &declarations()).is_err());
}

#[test]
fn the_side_table_counts_against_the_memory_limit() {
    // Every thread of many threadgroups reads one location, and may yet release.
    let limit = 4 * 64 * 32 + 20_000;
    let config = Config {
        threadgroups: 1 << 12,
        memory_limit_bytes: limit,
        acquire_release: true,
        ..config()
    };
    for (threadgroups, fits) in [(10, true), (1 << 12, false)] {
        let mut detector = Detector::new(&config, &declarations()).expect("it fits");
        for g in 0..threadgroups {
            let threadgroup = detector.begin_threadgroup(g, 16).expect("in the grid");
            detector.read(&Batch {
                simdgroup: detector.simdgroup(threadgroup, 0),
                site: Site(0),
                object: Object(DEVICE),
                lanes: Lanes::Affine {
                    mask: 1,
                    base: 0,
                    stride: 1,
                },
                width: 1,
            });
            detector.end_threadgroup(threadgroup);
        }
        let error = detector.finish().err();
        assert_eq!(error.is_none(), fits, "{error:?}");
        if let Some(error) = error {
            assert!(matches!(error, Error::Memory { .. }), "{error}");
        }
    }
}
