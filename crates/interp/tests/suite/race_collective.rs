//! R3 for what simdgroups do as a whole: random kernels with async copies of rows, simdgroup matrices
//! and plain accesses between barriers, checked through the public [`check`], against races by their
//! definition (O1, O2, O5, O6, O7, R1). What is accessed and what is ordered is the same in every
//! schedule, so the verdict must hold for all, and every pair of lines that races must be named.
//!
//! Then kernels that branch on a value asserted to be uniform (X5), against all choices of the thread
//! whose value all get.
//!
//! `INVAR_RACE_PROGRAMS` sets how many programs to try, `INVAR_RACE_SEED` where to begin.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::common::Random;
use invar_interp::{Arg, CheckOptions, Dispatch, Options, Report, Schedules, check};
use invar_ir::text::parse;
use invar_ir::{Rule, verify};

const LANES: u32 = 4;
const THREADS: u32 = 8;
/// Elements of each object.
const LENGTH: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    X,
    Tile,
}

impl Object {
    fn name(self) -> &'static str {
        match self {
            Object::X => "%x",
            Object::Tile => "%tile",
        }
    }
}

/// A place and the distance of its rows.
#[derive(Clone, Copy, Debug)]
struct Rows {
    object: Object,
    start: u32,
    row: u32,
}

#[derive(Clone, Copy, Debug)]
enum Item {
    /// One thread of the grid loads, or stores a number.
    Plain {
        thread: u32,
        object: Object,
        index: u32,
        stores: Option<u32>,
    },
    Barrier {
        simdgroup: bool,
        /// Device and threadgroup.
        spaces: [bool; 2],
    },
    /// Every simdgroup issues a copy; its event has the number of the item.
    Issue {
        to: Rows,
        from: Rows,
        columns: u32,
        rows: u32,
    },
    Wait(usize),
    MatrixLoad(Rows),
    /// All entries are this number, or each its own if there is none.
    MatrixStore(Rows, Option<u32>),
}

fn random_rows(random: &mut Random) -> Rows {
    Rows {
        object: random.pick(&[Object::X, Object::Tile]),
        start: random.below(LENGTH as usize) as u32,
        row: random.pick(&[0, 0, 1, 2, 3, 4, 8, 16]),
    }
}

fn random_items(random: &mut Random, groups: u32) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for number in 0..2 + random.below(6) {
        let item = match random.below(10) {
            0..=2 => Item::Plain {
                thread: random.below((THREADS * groups) as usize) as u32,
                object: random.pick(&[Object::X, Object::Tile]),
                index: random.below(6) as u32,
                stores: random.chance(60).then(|| random.below(2) as u32),
            },
            3 | 4 => Item::Barrier {
                simdgroup: random.chance(40),
                spaces: [random.chance(70), random.chance(70)],
            },
            5 | 6 => {
                open.push(number);
                let to = random_rows(random);
                let from = Rows {
                    object: match to.object {
                        Object::X => Object::Tile,
                        Object::Tile => Object::X,
                    },
                    ..random_rows(random)
                };
                Item::Issue {
                    to,
                    from,
                    columns: 1 + random.below(3) as u32,
                    rows: 1 + random.below(3) as u32,
                }
            }
            7 if !open.is_empty() => Item::Wait(open.remove(random.below(open.len()))),
            8 => Item::MatrixLoad(random_rows(random)),
            _ => Item::MatrixStore(
                random_rows(random),
                random.chance(50).then(|| random.below(2) as u32),
            ),
        };
        items.push(item);
    }
    items
}

/// The kernel, and the line of each item.
fn kernel(items: &[Item]) -> (String, Vec<u32>) {
    let mut text = String::from(
        "kernel @k(%x: device read_write f32, %r: device read f32) threadgroup(8) simdgroup(4) \
         allow(out_of_bounds_loads, out_of_bounds_stores) {\n\
         %tile = alloc threadgroup f32[16]\n\
         %i = thread_position_in_grid x\n",
    );
    for c in 0..=16 {
        writeln!(text, "%c{c} = const u32 {c}").unwrap();
    }
    text.push_str("%f0 = const f32 0.0\n%f1 = const f32 1.0\n");
    let mut lines = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let place = |r: &Rows| format!("{}[%c{}] row %c{}", r.object.name(), r.start, r.row);
        match item {
            Item::Plain { thread, .. } => {
                writeln!(text, "%t{n} = eq %i, %c{thread}\nif %t{n} {{").unwrap();
            }
            Item::MatrixStore(_, None) => {
                writeln!(
                    text,
                    "%m{n} = matrix_load simdgroup_f32x8x8 %r[%c0] row %c8"
                )
                .unwrap();
            }
            Item::MatrixStore(_, Some(value)) => {
                writeln!(text, "%m{n} = matrix_fill simdgroup_f32x8x8 %f{value}").unwrap();
            }
            _ => {}
        }
        lines.push(text.lines().count() as u32 + 1);
        match item {
            Item::Plain {
                object,
                index,
                stores,
                ..
            } => {
                let place = format!("{}[%c{index}]", object.name());
                match stores {
                    Some(value) => writeln!(text, "store {place}, %f{value}\n}}").unwrap(),
                    None => writeln!(text, "%v{n} = load {place}\n}}").unwrap(),
                }
            }
            Item::Barrier { simdgroup, spaces } => {
                let scope = if *simdgroup {
                    "simdgroup"
                } else {
                    "threadgroup"
                };
                let names: Vec<&str> = ["device", "threadgroup"]
                    .into_iter()
                    .zip(spaces)
                    .filter_map(|(name, named)| named.then_some(name))
                    .collect();
                writeln!(text, "barrier {scope} [{}]", names.join(", ")).unwrap();
            }
            Item::Issue {
                to,
                from,
                columns,
                rows,
            } => {
                let (to, from) = (place(to), place(from));
                let copy = format!("async_copy_2d {to}, {from}, %c{columns}, %c{rows}");
                writeln!(text, "%e{n} = {copy}").unwrap();
            }
            Item::Wait(event) => writeln!(text, "wait %e{event}").unwrap(),
            Item::MatrixLoad(rows) => {
                let place = place(rows);
                writeln!(text, "%l{n} = matrix_load simdgroup_f32x8x8 {place}").unwrap();
            }
            Item::MatrixStore(rows, _) => {
                writeln!(text, "matrix_store {}, %m{n}", place(rows)).unwrap();
            }
        }
    }
    text.push_str("}\n");
    (text, lines)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Read,
    /// A store of this number.
    Write(u32),
    /// An async copy writes.
    CopyWrite,
}

#[derive(Clone, Copy)]
struct Event {
    group: u32,
    simdgroup: u32,
    /// The lane, where the program knows it.
    lane: Option<u32>,
    copy: bool,
    object: Object,
    index: u32,
    deed: Deed,
    /// The items between which it takes place: that of the access, or issue and wait.
    begin: usize,
    end: usize,
}

/// The accesses of all threads, elements out of bounds left out.
fn events(items: &[Item], groups: u32) -> Vec<Event> {
    let mut events = Vec::new();
    for simdgroup in 0..groups * THREADS / LANES {
        for (n, item) in items.iter().enumerate() {
            let mut add = |lane, copy, rows: Rows, entry: (u32, u32), deed| {
                let index = rows.start + entry.0 * rows.row + entry.1;
                let waits = |i: &Item| matches!(i, Item::Wait(event) if *event == n);
                let end = match copy {
                    true => items.iter().position(waits).unwrap_or(usize::MAX),
                    false => n,
                };
                if index < LENGTH {
                    events.push(Event {
                        group: simdgroup * LANES / THREADS,
                        simdgroup,
                        lane,
                        copy,
                        object: rows.object,
                        index,
                        deed,
                        begin: n,
                        end,
                    });
                }
            };
            let entries =
                |rows, columns| (0..rows).flat_map(move |r| (0..columns).map(move |c| (r, c)));
            match *item {
                Item::Plain {
                    thread,
                    object,
                    index,
                    stores,
                } => {
                    let rows = Rows {
                        object,
                        start: index,
                        row: 0,
                    };
                    if thread / LANES == simdgroup {
                        let deed = stores.map_or(Deed::Read, Deed::Write);
                        add(Some(thread % LANES), false, rows, (0, 0), deed);
                    }
                }
                Item::Barrier { .. } | Item::Wait(_) => {}
                Item::Issue {
                    to,
                    from,
                    columns,
                    rows,
                } => {
                    for entry in entries(rows, columns) {
                        // What lies outside the destination is not read either.
                        if to.start + entry.0 * to.row + entry.1 < LENGTH {
                            add(None, true, from, entry, Deed::Read);
                            add(None, true, to, entry, Deed::CopyWrite);
                        }
                    }
                }
                Item::MatrixLoad(rows) => {
                    for entry in entries(8, 8) {
                        add(None, false, rows, entry, Deed::Read);
                    }
                }
                Item::MatrixStore(rows, value) => {
                    for entry in entries(8, 8) {
                        // The entries of `%r` are 2, 3, 4 and so on.
                        let value = value.unwrap_or(2 + entry.0 * 8 + entry.1);
                        add(None, false, rows, entry, Deed::Write(value));
                    }
                }
            }
        }
    }
    events
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    None,
    EqualStores,
    DataRace,
}

type Pairs = BTreeSet<(Object, [u32; 2])>;

/// The worst race of all, and the pairs of lines that race in each object.
fn races(items: &[Item], lines: &[u32], groups: u32) -> (Class, Pairs) {
    let events = events(items, groups);
    let n = events.len();
    let (mut worst, mut pairs) = (Class::None, Pairs::new());
    for space in [Object::X, Object::Tile] {
        let edge = |a: &Event, b: &Event| {
            let together = a.simdgroup == b.simdgroup;
            if together && a.copy && a.end < b.begin {
                return true; // O5
            }
            if together && !a.copy && a.begin < b.begin && a.lane.is_some() && a.lane == b.lane {
                return true; // O1
            }
            // O2
            (a.end.saturating_add(1)..b.begin).any(|at| match items[at] {
                Item::Barrier { simdgroup, spaces } => {
                    let reaches = if simdgroup {
                        together
                    } else {
                        a.group == b.group
                    };
                    let named = |o: Object| spaces[o as usize];
                    reaches && named(space) && named(a.object) && named(b.object)
                }
                _ => false,
            })
        };
        let words = n.div_ceil(64);
        // By the item at which they begin, latest first: what comes after is known then.
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|i| std::cmp::Reverse(events[*i].begin));
        let mut after = vec![vec![0_u64; words]; n];
        for &x in &order {
            let mut reached = vec![0_u64; words];
            for y in 0..n {
                if events[y].begin > events[x].begin && edge(&events[x], &events[y]) {
                    reached[y / 64] |= 1 << (y % 64);
                    reached.iter_mut().zip(&after[y]).for_each(|(r, a)| *r |= a);
                }
            }
            after[x] = reached;
        }
        let ordered = |x: usize, y: usize| after[x][y / 64] >> (y % 64) & 1 == 1;
        for x in 0..n {
            for y in x + 1..n {
                let (a, b) = (&events[x], &events[y]);
                let own = a.object == Object::X || a.group == b.group;
                if a.object != space || b.object != space || a.index != b.index || !own {
                    continue;
                }
                let one = a.simdgroup == b.simdgroup && a.lane.is_some() && a.lane == b.lane;
                let class = match (a.deed, b.deed) {
                    (Deed::Read, Deed::Read) => continue,
                    (Deed::Write(v), Deed::Write(w)) if v == w => Class::EqualStores,
                    _ => Class::DataRace,
                };
                if one || ordered(x, y) || ordered(y, x) {
                    continue;
                }
                worst = worst.max(class);
                let (p, q) = (lines[a.begin], lines[b.begin]);
                pairs.insert((space, [p.min(q), p.max(q)]));
            }
        }
    }
    (worst, pairs)
}

/// The worst race that a report names, and its pairs of lines; `None` if it names not all.
fn named(report: &Report) -> (Class, Option<Pairs>) {
    let (mut worst, mut pairs) = (Class::None, Some(Pairs::new()));
    for d in &report.diagnostics {
        let class = match d.rule {
            Rule::DataRace | Rule::ExecutionOnlyBarrier => Class::DataRace,
            Rule::EqualStores => Class::EqualStores,
            Rule::UninitialisedRead
            | Rule::NeverWaited
            | Rule::ScheduleDependent
            | Rule::UniformityDisagreement => continue,
            other => panic!("not expected: {other}"),
        };
        worst = worst.max(class);
        if d.message.contains("more pairs of places") {
            pairs = None;
        }
        let Some(pairs) = &mut pairs else {
            continue;
        };
        let location = d.message.split('`').nth(1).expect("a location");
        let object = match location.starts_with('x') {
            true => Object::X,
            false => Object::Tile,
        };
        let lines = d.labels.iter().map(|l| l.span.start.line);
        let (first, last) = (lines.clone().min(), lines.max());
        pairs.insert((object, [first, last].map(|line| line.expect("a label"))));
    }
    (worst, pairs)
}

fn checked(source: &str, threads: u32, args: &[Arg], seed: u64, seeds: Option<u32>) -> Report {
    let module = parse("program.inv", source).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{e}\n{source}"));
    let options = CheckOptions {
        run: Options {
            seed,
            ..Options::default()
        },
        seeds,
        ..CheckOptions::default()
    };
    let dispatch = Dispatch::linear(threads, THREADS);
    check(&module, "k", &dispatch, args, &options).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

fn compare(items: &[Item], groups: u32, seed: u64) -> Result<Class, String> {
    let (source, lines) = kernel(items);
    let (worst, pairs) = races(items, &lines, groups);
    let entries = (2..66).flat_map(|v| (v as f32).to_ne_bytes()).collect();
    let args = [Arg::zeros(4 * LENGTH as usize), Arg::OwnedBuffer(entries)];
    let report = checked(&source, THREADS * groups, &args, seed, None);
    let (found_worst, found) = named(&report);
    // Copies may store what others race for, equal or not as the schedule has it.
    let racing = "of equal value depends on what was loaded where there is a race";
    let reach = report.reach();
    let every =
        report.schedules == Schedules::All || worst == Class::DataRace && reach.contains(racing);
    if every && found_worst == worst && found.as_ref().is_none_or(|found| *found == pairs) {
        return Ok(worst);
    }
    Err(format!(
        "expected {worst:?} {pairs:?}\nfound {found_worst:?} {found:?}\n{reach}\n{groups} threadgroups, \
         seed {seed}\n{source}"
    ))
}

/// A smaller program that fails too, and how.
fn shrink(mut items: Vec<Item>, groups: u32, seed: u64, mut error: String) -> String {
    loop {
        let smaller = (0..items.len()).find_map(|gone| {
            let mut fewer = items.clone();
            fewer.remove(gone);
            // Waits go by the numbers of items.
            for item in &mut fewer {
                if let Item::Wait(event) = item {
                    if *event == gone {
                        return None;
                    }
                    *event -= usize::from(*event > gone);
                }
            }
            let error = compare(&fewer, groups, seed).err()?;
            Some((fewer, error))
        });
        match smaller {
            Some((fewer, now)) => (items, error) = (fewer, now),
            None => return error,
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |v| v.parse().expect("a number"))
}

#[test]
fn o5_o6_every_pair_of_lines_of_copies_and_matrices_is_named() {
    let programs = setting("INVAR_RACE_PROGRAMS", 1500);
    let first = setting("INVAR_RACE_SEED", 1);
    let mut counts = [0; 3];
    for number in 0..programs {
        let mut random = Random(first << 40 ^ number);
        let groups = random.pick(&[1, 1, 2]);
        let items = random_items(&mut random, groups);
        let seed = random.next() * u64::from(random.chance(50));
        match compare(&items, groups, seed) {
            Ok(class) => counts[class as usize] += 1,
            Err(error) => {
                let error = shrink(items, groups, seed, error);
                panic!("program {number}: {error}");
            }
        }
    }
    // The programs are of use only if all kinds of them are many.
    let [clean, equal, racy] = counts;
    assert!(clean > programs / 20, "{counts:?}");
    assert!(equal > programs / 100, "{counts:?}");
    assert!(racy > programs / 5, "{counts:?}");
}

/// A kernel that asserts a value to be uniform and stores by it: to a location of its own, or where
/// others do.
struct Assertion {
    simdgroup: bool,
    /// What is asserted: the number of a thread, divided by this.
    divisor: u32,
    /// The value that makes a thread store to a place that it may share.
    meets: u32,
    /// Threads of one place: all whose number divided by this is the same.
    share: u32,
}

impl Assertion {
    fn source(&self) -> String {
        let Assertion {
            simdgroup,
            divisor,
            meets,
            share,
        } = self;
        let scope = if *simdgroup {
            "simdgroup"
        } else {
            "threadgroup"
        };
        format!(
            "kernel @k(%x: device write u32) threadgroup(8) simdgroup(4) {{
                %i = thread_position_in_grid x
                %by = const u32 {divisor}
                %share = const u32 {share}
                %meets = const u32 {meets}
                %v = div %i, %by
                %u = assert_uniform {scope} %v
                %same = eq %u, %meets
                %place = div %i, %share
                %at = select %i, %place, %same
                store %x[%at], %i
            }}"
        )
    }

    /// Whether threads disagree, the mildest outcome of all choices, and the worst.
    fn outcomes(&self, threads: u32) -> (bool, Class, Class) {
        let size = if self.simdgroup { LANES } else { THREADS };
        let scopes: Vec<BTreeSet<u32>> = (0..threads / size)
            .map(|s| {
                (s * size..(s + 1) * size)
                    .map(|i| i / self.divisor)
                    .collect()
            })
            .collect();
        let choices: usize = scopes.iter().map(BTreeSet::len).product();
        let (mut least, mut worst) = (Class::DataRace, Class::None);
        for mut choice in 0..choices {
            let mut chosen: Vec<u32> = Vec::new();
            for scope in &scopes {
                chosen.extend(scope.iter().nth(choice % scope.len()));
                choice /= scope.len();
            }
            let place = |i: u32| match chosen[(i / size) as usize] == self.meets {
                true => i / self.share,
                false => i,
            };
            let places: BTreeSet<u32> = (0..threads).map(place).collect();
            let class = match places.len() as u32 == threads {
                true => Class::None,
                false => Class::DataRace,
            };
            (least, worst) = (least.min(class), worst.max(class));
        }
        (scopes.iter().any(|scope| scope.len() > 1), least, worst)
    }
}

#[test]
fn x5_a_disagreement_is_found_and_its_verdict_is_for_schedules_tried() {
    let (mut decided, mut open) = (0, 0);
    for simdgroup in [false, true] {
        for divisor in [1, 2, 4, 8, 16] {
            for meets in 0..4 {
                for share in [1, 2, 8] {
                    let assertion = Assertion {
                        simdgroup,
                        divisor,
                        meets,
                        share,
                    };
                    let source = assertion.source();
                    let (disagree, least, worst) = assertion.outcomes(16);
                    let report = checked(&source, 16, &[Arg::zeros(64)], 0, None);
                    let (found, _) = named(&report);
                    let says = report.diagnostics.iter();
                    let says = says
                        .map(|d| d.rule)
                        .any(|r| r == Rule::UniformityDisagreement);
                    assert_eq!(says, disagree, "{source}");
                    assert!((least..=worst).contains(&found), "{found:?}\n{source}");
                    let every = report.schedules == Schedules::All;
                    assert_eq!(every, !disagree, "{}\n{source}", report.reach());
                    if every {
                        assert_eq!(found, worst, "{source}");
                        decided += 1;
                    } else {
                        open += 1;
                    }
                }
            }
        }
    }
    assert!(decided > 20 && open > 20, "{decided} {open}");
}
