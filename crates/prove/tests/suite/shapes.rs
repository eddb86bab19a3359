//! Random kernels of the shapes that the prover knows: a few phrases each, such as a guarded store to rows, an exchange
//! through threadgroup memory or a loop over strides, in many of them with something that is wrong by a little. How
//! long buffers have to be stands in about half of them.
//!
//! Each is text, with what it requires of buffers once more as data, from which launches at the edge are made.

use std::collections::{BTreeMap, BTreeSet};

use crate::solver::Random;

/// A permutation, one but for a number, and one in the vectors of structs.
const TURNED: &str = "constant @turned: u32[32] = [3, 10, 17, 24, 31, 6, 13, 20, 27, 2, 9, 16, 23, 30, 5, 12, 19, 26, 1, \
    8, 15, 22, 29, 4, 11, 18, 25, 0, 7, 14, 21, 28]";
const MOSTLY: &str = "constant @mostly: u32[32] = [3, 10, 17, 24, 31, 6, 13, 20, 27, 2, 9, 16, 23, 30, 5, 12, 19, 26, 1, \
    8, 15, 31, 29, 4, 11, 18, 25, 0, 7, 14, 21, 28]";
const SPOTS: &str = "struct @Spot { a: u32, b: u32x2 }\nconstant @spots: @Spot[32] = [0, 0, 5, 0, 1, 16, 0, 2, 27, 1, 3, \
    6, 1, 4, 17, 1, 0, 28, 2, 1, 7, 2, 2, 18, 2, 3, 29, 3, 4, 8, 3, 0, 19, 3, 1, 30, 4, 2, 9, 4, 3, 20, \
    4, 4, 31, 5, 0, 10, 5, 1, 21, 5, 2, 0, 6, 3, 11, 6, 4, 22, 6, 0, 1, 7, 1, 12, 7, 2, 23, 7, 3, 2, 8, \
    4, 13, 8, 0, 24, 8, 1, 3, 9, 2, 14, 9, 3, 25, 9, 4, 4, 10, 0, 15, 10, 1, 26]";

/// A number of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    GridX,
    GridY,
    GroupsX,
    N,
    M,
}

impl Factor {
    fn text(self) -> &'static str {
        match self {
            Factor::GridX => "grid.x",
            Factor::GridY => "grid.y",
            Factor::GroupsX => "groups.x",
            Factor::N => "%n",
            Factor::M => "%m",
        }
    }
}

/// So many elements: a product.
pub type Room = (u32, Vec<Factor>);

/// A kernel.
#[derive(Debug)]
pub struct Made {
    /// Its text.
    pub text: String,
    /// How many elements buffers have, by name, as far as the kernel requires it.
    pub rooms: Vec<(String, Room)>,
    /// Buffers whose elements are less than another's length.
    pub indices: Vec<(String, String)>,
    /// Whether what is passed is to be large at times.
    pub large: bool,
    /// The phrases that it is made of.
    pub phrases: Vec<&'static str>,
}

/// Where each thread has a place of its own, if nothing is wrong: which way to say it, and two constants.
#[derive(Clone, Copy)]
struct Spot {
    way: u64,
    a: u32,
    b: u32,
}

struct Writer {
    random: Random,
    params: BTreeMap<String, String>,
    module: BTreeSet<&'static str>,
    head: Vec<String>,
    known: BTreeSet<String>,
    body: Vec<String>,
    depth: usize,
    count: u32,
    /// Threads of a threadgroup, if the kernel says it: a power of two.
    size: Option<u32>,
    simdgroup: bool,
    plane: bool,
    /// Whether something may be wrong.
    errs: bool,
    states_rooms: bool,
    rooms: Vec<(String, Room)>,
    indices: Vec<(String, String)>,
    large: bool,
    stored: Vec<(String, Spot)>,
}

/// A kernel of a seed.
pub fn made(seed: u64) -> Made {
    let mut random = Random(seed ^ 0x5bd1_e995_7c15_9e37);
    let size = (random.below(3) > 0).then(|| [4, 8, 8, 16, 32][random.below(5) as usize]);
    let mut w = Writer {
        params: BTreeMap::new(),
        module: BTreeSet::new(),
        head: Vec::new(),
        known: BTreeSet::new(),
        body: Vec::new(),
        depth: 1,
        count: 0,
        size,
        simdgroup: size.is_some() && random.below(4) == 0,
        plane: random.below(4) == 0,
        errs: random.below(2) == 0,
        states_rooms: random.below(4) > 0,
        rooms: Vec::new(),
        indices: Vec::new(),
        large: false,
        stored: Vec::new(),
        random,
    };
    let mut phrases = Vec::new();
    for _ in 0..[1, 1, 1, 2, 2, 3][w.random.below(6) as usize] {
        phrases.push(w.phrase());
        while w.depth > 1 {
            w.close();
        }
    }
    w.finish(phrases)
}

impl Writer {
    fn finish(self, phrases: Vec<&'static str>) -> Made {
        let params: Vec<String> = (self.params.iter())
            .map(|(name, ty)| format!("%{name}: {ty}"))
            .collect();
        let mut text: String = self.module.iter().map(|s| format!("{s}\n")).collect();
        text += &format!("kernel @k({})", params.join(", "));
        if let Some(size) = self.size {
            text += &format!(" threadgroup({size})");
        }
        if self.simdgroup {
            text += " simdgroup(4)";
        }
        let mut required: Vec<String> = Vec::new();
        if self.states_rooms {
            for (buffer, (factor, numbers)) in &self.rooms {
                let mut product = factor.to_string();
                for number in numbers {
                    product += &format!(" * {}", number.text());
                }
                required.push(format!("{product} <= length(%{buffer})"));
            }
        }
        for (buffer, of) in &self.indices {
            required.push(format!("each %e of %{buffer}: %e < length(%{of})"));
        }
        if !required.is_empty() {
            text += &format!(" requires({})", required.join(", "));
        }
        text += " {\n";
        for line in self.head.iter().chain(&self.body) {
            text += line;
            text.push('\n');
        }
        text += "}\n";
        Made {
            text,
            rooms: if self.states_rooms {
                self.rooms
            } else {
                Vec::new()
            },
            indices: self.indices,
            large: self.large,
            phrases,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    /// Whether this is what goes wrong.
    fn slips(&mut self) -> bool {
        self.errs && self.below(7) == 0
    }

    fn line(&mut self, line: &str) {
        let indent = "    ".repeat(self.depth);
        self.body.push(format!("{indent}{line}"));
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("%v{}", self.count)
    }

    fn op(&mut self, text: &str) -> String {
        let name = self.fresh();
        self.line(&format!("{name} = {text}"));
        name
    }

    /// What stands at the beginning of the kernel, once.
    fn first(&mut self, name: &str, text: &str) -> String {
        if self.known.insert(name.to_string()) {
            self.head.push(format!("    {name} = {text}"));
        }
        name.to_string()
    }

    fn constant(&mut self, n: u32) -> String {
        let n = match self.slips() {
            true if self.below(2) == 0 => n + 1,
            true => n.saturating_sub(1),
            false => n,
        };
        self.first(&format!("%c{n}"), &format!("const u32 {n}"))
    }

    fn x(&mut self) -> String {
        self.first("%x", "thread_position_in_grid x")
    }

    fn y(&mut self) -> String {
        self.first("%y", "thread_position_in_grid y")
    }

    fn t(&mut self) -> String {
        self.first("%t", "thread_position_in_threadgroup x")
    }

    fn group(&mut self) -> String {
        self.first("%g", "threadgroup_position_in_grid x")
    }

    fn all(&mut self) -> String {
        self.first("%all", "threads_per_grid x")
    }

    fn scalar(&mut self, name: &str) -> String {
        self.params.insert(name.to_string(), "u32".to_string());
        format!("%{name}")
    }

    fn buffer(&mut self, access: &str) -> String {
        let name = format!("b{}", self.params.len());
        let ty = format!("device {access} u32");
        self.params.insert(name.clone(), ty);
        name
    }

    fn room(&mut self, buffer: &str, factor: u32, numbers: &[Factor]) {
        let factor = if self.slips() {
            factor.saturating_sub(1)
        } else {
            factor
        };
        let room = (buffer.to_string(), (factor, numbers.to_vec()));
        if !self.rooms.contains(&room) {
            self.rooms.push(room);
        }
    }

    fn open(&mut self, condition: &str) {
        self.line(&format!("if {condition} {{"));
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// A guard that one number is less than another.
    fn guard(&mut self, a: &str, b: &str) {
        if self.slips() && self.below(2) == 0 {
            return;
        }
        let op = if self.slips() { "le" } else { "lt" };
        let condition = match self.below(5) {
            0 => {
                let not = self.op(&format!("ge {a}, {b}"));
                self.op(&format!("not {not}"))
            }
            1 => self.op(&format!("gt {b}, {a}")),
            _ => self.op(&format!("{op} {a}, {b}")),
        };
        self.open(&condition);
    }

    fn guard_by_length(&mut self, index: &str, buffer: &str) {
        let length = self.op(&format!("buffer_length %{buffer}"));
        let index = self.op(&format!("cast u64 {index}"));
        self.guard(&index, &length);
    }

    fn barrier(&mut self, space: &str) {
        if !self.slips() {
            self.line(&format!("barrier threadgroup [{space}]"));
        }
    }

    fn spot(&mut self) -> Spot {
        let way = if self.plane {
            8 + self.below(3)
        } else {
            self.below(20)
        };
        let a = 2 + self.below(4) as u32;
        Spot {
            way,
            a,
            b: self.below(u64::from(a)) as u32,
        }
    }

    /// The index of a place, of which a buffer has so many; it may open guards.
    fn at(&mut self, buffer: &str, spot: Spot) -> String {
        let Spot { way, a, b } = spot;
        let x = self.x();
        let room = |w: &mut Writer, factor, numbers: &[Factor]| w.room(buffer, factor, numbers);
        match way {
            1 | 2 => {
                room(self, a, &[Factor::GridX]);
                let (a, b) = (self.constant(a), self.constant(b));
                let wide = self.op(&format!("mul {x}, {a}"));
                self.op(&format!("add {wide}, {b}"))
            }
            3 | 4 => {
                room(self, 1, &[Factor::N]);
                let n = self.scalar("n");
                self.guard(&x, &n);
                if way == 3 {
                    return x;
                }
                let one = self.constant(1);
                let last = self.op(&format!("sub {n}, {one}"));
                self.op(&format!("sub {last}, {x}"))
            }
            5 => {
                let mask = [1, 3][b as usize % 2];
                room(self, mask + 1, &[Factor::GridX]);
                let mask = self.constant(mask);
                self.op(&format!("xor {x}, {mask}"))
            }
            6 => {
                room(self, 4, &[Factor::GridX]);
                let (two, part) = (self.constant(2), self.constant(b & 3));
                let wide = self.op(&format!("shl {x}, {two}"));
                self.op(&format!("or {wide}, {part}"))
            }
            7 => {
                room(self, 1, &[Factor::GridX]);
                let a = self.constant(a);
                let row = self.op(&format!("div {x}, {a}"));
                let column = self.op(&format!("rem {x}, {a}"));
                let start = self.op(&format!("mul {row}, {a}"));
                self.op(&format!("add {start}, {column}"))
            }
            8 | 9 if self.plane => {
                room(self, 1, &[Factor::N, Factor::M]);
                let (y, n, m) = (self.y(), self.scalar("n"), self.scalar("m"));
                self.guard(&x, &n);
                self.guard(&y, &m);
                let (row, wide, column) = if way == 8 { (y, n, x) } else { (x, m, y) };
                let start = self.op(&format!("mul {row}, {wide}"));
                self.op(&format!("add {start}, {column}"))
            }
            10 if self.plane => {
                room(self, 1, &[Factor::GridX, Factor::GridY]);
                let (y, all) = (self.y(), self.all());
                let start = self.op(&format!("mul {y}, {all}"));
                self.op(&format!("add {start}, {x}"))
            }
            11..=13 if self.size.is_some() => {
                let size = self.size.unwrap_or(1);
                room(self, size, &[Factor::GroupsX]);
                let (t, group, wide) = (self.t(), self.group(), self.constant(size));
                let other = match way {
                    11 => {
                        let last = self.constant(size - 1);
                        self.op(&format!("sub {last}, {t}"))
                    }
                    12 => {
                        let mask = self.constant(b & (size - 1));
                        self.op(&format!("xor {t}, {mask}"))
                    }
                    _ => {
                        let (b, mask) = (self.constant(b), self.constant(size - 1));
                        let next = self.op(&format!("add {t}, {b}"));
                        self.op(&format!("and {next}, {mask}"))
                    }
                };
                let start = self.op(&format!("mul {group}, {wide}"));
                self.op(&format!("add {start}, {other}"))
            }
            14 => {
                room(self, 2, &[Factor::GridX]);
                let (n, all) = (self.scalar("n"), self.all());
                let inside = self.op(&format!("lt {x}, {n}"));
                let far = self.op(&format!("add {x}, {all}"));
                self.op(&format!("select {x}, {far}, {inside}"))
            }
            15 => {
                room(self, a, &[Factor::GridX]);
                let (a, b) = (self.constant(a), self.constant(b));
                let [x, a, b] = [x, a, b].map(|v| self.op(&format!("cast u64 {v}")));
                let wide = self.op(&format!("mul {x}, {a}"));
                self.op(&format!("add {wide}, {b}"))
            }
            16 => {
                room(self, a, &[Factor::GridX]);
                let (all, b) = (self.all(), self.constant(b));
                let far = self.op(&format!("mul {all}, {b}"));
                self.op(&format!("add {far}, {x}"))
            }
            17 => {
                room(self, 1, &[Factor::GridX]);
                let (zero, one) = (self.constant(0), self.constant(1));
                let inside = self.op(&format!("gt {x}, {zero}"));
                self.open(&inside);
                self.op(&format!("sub {x}, {one}"))
            }
            18 => {
                room(self, 1, &[Factor::GroupsX]);
                let (t, group, zero) = (self.t(), self.group(), self.constant(0));
                let first = self.op(&format!("eq {t}, {zero}"));
                self.open(&first);
                group
            }
            19 => {
                self.guard_by_length(&x, buffer);
                x
            }
            _ => {
                room(self, 1, &[Factor::GridX]);
                x
            }
        }
    }

    /// Anything to store.
    fn value(&mut self) -> String {
        match self.below(3) {
            0 => {
                let buffer = self.buffer("read");
                let spot = self.spot();
                let at = self.at(&buffer, spot);
                self.op(&format!("load %{buffer}[{at}]"))
            }
            1 => self.scalar("n"),
            _ => self.x(),
        }
    }

    fn phrase(&mut self) -> &'static str {
        if self.plane {
            return match self.below(9) {
                8 => self.takes_tickets(),
                6 | 7 => self.swizzles_rows(),
                0 => self.paints(),
                1 => self.reads_and_stores(),
                2 => self.works_in_place(),
                3 => self.counts_rows_with_signs(),
                _ => self.stores(),
            };
        }
        match self.below(32) {
            29 | 30 => self.steps_through_rows(),
            31 => self.steps_far(),
            26 => self.permutes_parts(),
            27 | 28 => self.swizzles(),
            22 => self.sorts(),
            23 => self.scans(),
            24 => self.sums_by_shifts(),
            25 => self.permutes(),
            0 => self.reads_and_stores(),
            1 | 2 => self.exchanges(),
            3 => self.sums_a_row(),
            4 => self.halves(),
            5 => self.counts(),
            6 => self.takes_tickets(),
            7 => self.sums_simdgroups(),
            8 => self.looks_up(),
            9 => self.has_fields(),
            10 => self.has_an_array(),
            11 => self.alternates(),
            12 => self.gathers(),
            13 => self.strides(),
            14 => self.loops_by_strides(),
            15 => self.exchanges_in_device_memory(),
            16 => self.wraps(),
            17 => self.is_a_stencil(),
            18 => self.copies(),
            19 => self.has_vectors(),
            20 => self.works_in_place(),
            _ => self.stores(),
        }
    }

    fn stores(&mut self) -> &'static str {
        let value = self.value();
        let buffer = self.buffer("write");
        let spot = self.spot();
        let at = self.at(&buffer, spot);
        self.line(&format!("store %{buffer}[{at}], {value}"));
        self.stored.push((buffer, spot));
        "store"
    }

    fn reads_and_stores(&mut self) -> &'static str {
        let buffer = self.buffer("read_write");
        let spot = self.spot();
        let at = self.at(&buffer, spot);
        let value = self.op(&format!("load %{buffer}[{at}]"));
        let other = if self.slips() { self.x() } else { at };
        self.line(&format!("store %{buffer}[{other}], {value}"));
        "in place"
    }

    /// What an earlier phrase stored, where it stored it.
    fn works_in_place(&mut self) -> &'static str {
        let Some((buffer, spot)) = self.stored.last().cloned() else {
            return self.stores();
        };
        let ty = "device read_write u32".to_string();
        self.params.insert(buffer.clone(), ty);
        let at = self.at(&buffer, spot);
        let old = self.op(&format!("load %{buffer}[{at}]"));
        let x = self.x();
        let new = self.op(&format!("add {old}, {x}"));
        self.line(&format!("store %{buffer}[{at}], {new}"));
        "again"
    }

    fn tile(&mut self, length: u32) -> String {
        let length = if self.slips() { length - 1 } else { length };
        let name = format!("%tile{}", self.head.len());
        self.head.push(format!(
            "    {name} = alloc threadgroup u32[{}]",
            length.max(1)
        ));
        name
    }

    /// A place in the threadgroup for each of its threads, full or not.
    fn other_thread(&mut self, size: u32) -> String {
        let t = self.t();
        match self.below(4) {
            0 => {
                let last = self.constant(size - 1);
                self.op(&format!("sub {last}, {t}"))
            }
            1 => {
                let mask = 1 + self.below(u64::from(size) - 1) as u32;
                let mask = self.constant(mask);
                self.op(&format!("xor {t}, {mask}"))
            }
            2 => {
                let (by, mask) = (self.constant(1), self.constant(size - 1));
                let next = self.op(&format!("add {t}, {by}"));
                self.op(&format!("and {next}, {mask}"))
            }
            _ => t,
        }
    }

    fn exchanges(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.stores();
        };
        let tile = self.tile(size);
        let (x, mine, theirs) = (self.x(), self.t(), self.other_thread(size));
        let iterations = self.below(3) == 0;
        if iterations {
            let (zero, one, n) = (self.constant(0), self.constant(1), self.scalar("n"));
            self.line(&format!(
                "for %k{} = {zero} to {n} step {one} {{",
                self.count
            ));
            self.depth += 1;
        }
        self.line(&format!("store {tile}[{mine}], {x}"));
        self.barrier("threadgroup");
        let value = self.op(&format!("load {tile}[{theirs}]"));
        if iterations {
            self.barrier("threadgroup");
            self.close();
            return "exchange in iterations";
        }
        let buffer = self.buffer("write");
        self.room(&buffer, 1, &[Factor::GridX]);
        self.line(&format!("store %{buffer}[{x}], {value}"));
        "exchange"
    }

    fn sums_a_row(&mut self) -> &'static str {
        let (from, to) = (self.buffer("read"), self.buffer("write"));
        let (x, n) = (self.x(), self.scalar("n"));
        let (zero, one) = (self.constant(0), self.constant(1));
        self.room(&from, 1, &[Factor::GridX, Factor::N]);
        let columns = self.below(2) == 0;
        let (step, start) = if columns {
            (self.all(), x.clone())
        } else {
            (one.clone(), self.op(&format!("mul {x}, {n}")))
        };
        let sum = self.fresh();
        self.line(&format!(
            "{sum} = for {sum}k = {zero} to {n} step {one} carry({sum}s = {zero}) {{"
        ));
        self.depth += 1;
        let far = self.op(&format!("mul {sum}k, {step}"));
        let at = self.op(&format!("add {start}, {far}"));
        let value = self.op(&format!("load %{from}[{at}]"));
        let next = self.op(&format!("add {sum}s, {value}"));
        self.line(&format!("yield {next}"));
        self.close();
        self.room(&to, 1, &[Factor::GridX]);
        self.line(&format!("store %{to}[{x}], {sum}"));
        "row"
    }

    /// A tree of sums in threadgroup memory.
    fn halves(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.sums_a_row();
        };
        let tile = self.tile(size);
        let (x, t, group) = (self.x(), self.t(), self.group());
        let (half, one, zero) = (self.constant(size / 2), self.constant(1), self.constant(0));
        self.line(&format!("store {tile}[{t}], {x}"));
        self.barrier("threadgroup");
        let out = self.fresh();
        self.line(&format!("{out} = loop carry({out}s = {half}) {{"));
        self.depth += 1;
        let last = self.op(&format!("eq {out}s, {zero}"));
        self.line(&format!("if {last} {{ break {out}s }}"));
        let low = self.op(&format!("lt {t}, {out}s"));
        self.open(&low);
        let other = self.op(&format!("add {t}, {out}s"));
        let a = self.op(&format!("load {tile}[{t}]"));
        let b = self.op(&format!("load {tile}[{other}]"));
        let sum = self.op(&format!("add {a}, {b}"));
        self.line(&format!("store {tile}[{t}], {sum}"));
        self.close();
        self.barrier("threadgroup");
        let next = self.op(&format!("shr {out}s, {one}"));
        self.line(&format!("yield {next}"));
        self.close();
        let buffer = self.buffer("write");
        self.room(&buffer, 1, &[Factor::GroupsX]);
        let first = self.op(&format!("eq {t}, {zero}"));
        self.open(&first);
        let sum = self.op(&format!("load {tile}[{zero}]"));
        self.line(&format!("store %{buffer}[{group}], {sum}"));
        "tree"
    }

    fn counts(&mut self) -> &'static str {
        let bins = self.buffer("read_write");
        let bits = 1 + self.below(3) as u32;
        let count = 1 << bits;
        self.room(&bins, count, &[]);
        if let Some(size) = self.size.filter(|size| *size >= count)
            && self.below(2) == 0
        {
            let tile = self.tile(count);
            let (t, x, count) = (self.t(), self.x(), self.constant(count));
            let (zero, one) = (self.constant(0), self.constant(1));
            let _whole = size;
            let clears = self.op(&format!("lt {t}, {count}"));
            self.open(&clears);
            self.line(&format!("store {tile}[{t}], {zero}"));
            self.close();
            self.barrier("threadgroup");
            let bin = self.op(&format!("rem {x}, {count}"));
            self.line(&format!("atomic_add {tile}[{bin}], {one}"));
            self.barrier("threadgroup");
            self.open(&clears);
            let sum = self.op(&format!("load {tile}[{t}]"));
            self.line(&format!("atomic_add %{bins}[{t}], {sum}"));
            return "histogram of threadgroups";
        }
        let value = self.value();
        let (mask, one) = (self.constant(count - 1), self.constant(1));
        let bin = self.op(&format!("and {value}, {mask}"));
        if self.slips() {
            self.line(&format!("store %{bins}[{bin}], {one}"));
        } else {
            self.line(&format!("atomic_add %{bins}[{bin}], {one}"));
        }
        "histogram"
    }

    fn takes_tickets(&mut self) -> &'static str {
        let (counter, to) = (self.buffer("read_write"), self.buffer("write"));
        self.room(&counter, 1, &[]);
        let (x, zero, one) = (self.x(), self.constant(0), self.constant(1));
        let old = self.op(&format!("atomic_add %{counter}[{zero}], {one}"));
        self.guard_by_length(&old, &to);
        self.line(&format!("store %{to}[{old}], {x}"));
        "ticket"
    }

    fn sums_simdgroups(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.counts();
        };
        self.simdgroup = true;
        let parts = size / 4;
        let tile = self.tile(parts);
        let x = self.x();
        let sum = self.op(&format!("simd_sum {x}"));
        let lane = self.first("%lane", "thread_index_in_simdgroup");
        let number = self.first("%number", "simdgroup_index_in_threadgroup");
        let zero = self.constant(0);
        let leads = self.op(&format!("eq {lane}, {zero}"));
        self.open(&leads);
        self.line(&format!("store {tile}[{number}], {sum}"));
        self.close();
        self.barrier("threadgroup");
        let value = self.op(&format!("load {tile}[{zero}]"));
        let to = self.buffer("write");
        self.room(&to, 1, &[Factor::GridX]);
        self.line(&format!("store %{to}[{x}], {value}"));
        "simdgroups"
    }

    fn paints(&mut self) -> &'static str {
        let name = format!("p{}", self.params.len());
        let access = if self.below(2) == 0 {
            "read_write"
        } else {
            "write"
        };
        self.params
            .insert(name.clone(), format!("texture2d u32 {access}"));
        let (x, y) = (self.x(), self.y());
        let width = self.op(&format!("texture_width %{name}"));
        let height = self.op(&format!("texture_height %{name}"));
        self.guard(&x, &width);
        self.guard(&y, &height);
        let (mut column, mut row) = (x.clone(), y);
        if self.below(3) == 0 {
            let one = self.constant(1);
            let last = self.op(&format!("sub {width}, {one}"));
            column = self.op(&format!("sub {last}, {column}"));
        }
        if self.slips() {
            (column, row) = (row, column);
        }
        let value = if access == "write" {
            self.op(&format!("construct u32x4 {x}"))
        } else {
            self.op(&format!("texture_read %{name}[{column}, {row}]"))
        };
        self.line(&format!("texture_write %{name}[{column}, {row}], {value}"));
        "texture"
    }

    /// In a table of constants, or by a function constant.
    fn looks_up(&mut self) -> &'static str {
        let to = self.buffer("write");
        let x = self.x();
        if self.below(2) == 0 {
            self.module.insert("constant @table: u32[4] = [1, 2, 3, 5]");
            let mask = self.constant(3);
            let at = self.op(&format!("and {x}, {mask}"));
            let value = self.op(&format!("load @table[{at}]"));
            self.room(&to, 1, &[Factor::GridX]);
            self.line(&format!("store %{to}[{x}], {value}"));
            return "table";
        }
        self.module
            .insert("function_constant @WIDTH: u32 = 3 id(0)");
        let width = self.first("%width", "function_constant @WIDTH");
        let zero = self.constant(0);
        let (row, column) = (
            self.op(&format!("div {x}, {width}")),
            self.op(&format!("rem {x}, {width}")),
        );
        let start = self.op(&format!("mul {row}, {width}"));
        let at = self.op(&format!("add {start}, {column}"));
        let some = self.op(&format!("ne {width}, {zero}"));
        self.room(&to, 1, &[Factor::GridX]);
        self.open(&some);
        self.line(&format!("store %{to}[{at}], {x}"));
        "function constant"
    }

    /// A table says which place of its threadgroup's a thread has.
    fn permutes(&mut self) -> &'static str {
        let to = self.buffer("write");
        let (x, t, group) = (self.x(), self.t(), self.group());
        let (mask, many) = (self.constant(31), self.constant(32));
        let at = match self.size.is_some() && self.below(2) == 0 {
            true => t,
            false => self.op(&format!("and {t}, {mask}")),
        };
        let place = match self.below(3) {
            0 => {
                self.module.insert(SPOTS);
                let one = self.constant(1);
                match self.below(2) {
                    0 => self.op(&format!("load @spots[{at}].b[{one}]")),
                    _ => {
                        let vector = self.op(&format!("load @spots[{at}].b"));
                        self.op(&format!("extract {vector}, {one}"))
                    }
                }
            }
            _ if self.slips() => {
                self.module.insert(MOSTLY);
                self.op(&format!("load @mostly[{at}]"))
            }
            _ => {
                self.module.insert(TURNED);
                self.op(&format!("load @turned[{at}]"))
            }
        };
        let start = self.op(&format!("mul {group}, {many}"));
        let index = self.op(&format!("add {start}, {place}"));
        self.room(&to, 32, &[Factor::GroupsX]);
        self.line(&format!("store %{to}[{index}], {x}"));
        "permutation"
    }

    /// As that, of the last bits of positions in the grid.
    fn permutes_parts(&mut self) -> &'static str {
        let to = self.buffer("write");
        let x = self.x();
        let (mask, many) = (self.constant(31), self.constant(32));
        let rest = match self.below(2) {
            0 => self.op(&format!("and {x}, {mask}")),
            _ => self.op(&format!("rem {x}, {many}")),
        };
        let (definition, table) = match self.slips() {
            true => (MOSTLY, "mostly"),
            false => (TURNED, "turned"),
        };
        self.module.insert(definition);
        let place = self.op(&format!("load @{table}[{rest}]"));
        let index = match self.below(3) {
            0 => {
                let start = self.op(&format!("sub {x}, {rest}"));
                self.op(&format!("add {start}, {place}"))
            }
            1 => {
                let start = self.op(&format!("sub {x}, {rest}"));
                self.op(&format!("or {start}, {place}"))
            }
            _ => {
                let part = self.op(&format!("div {x}, {many}"));
                let start = self.op(&format!("mul {part}, {many}"));
                self.op(&format!("add {start}, {place}"))
            }
        };
        if self.below(2) == 0 {
            self.guard_by_length(&index, &to);
        } else {
            self.room(&to, 32, &[Factor::GridX]);
        }
        self.line(&format!("store %{to}[{index}], {x}"));
        "permutation of parts"
    }

    /// What swizzles are made by: an exclusive or, or what goes wrong.
    fn mixed(&mut self, a: &str, b: &str) -> String {
        let op = match self.slips() {
            true => ["or", "and"][self.below(2) as usize],
            false => "xor",
        };
        self.op(&format!("{op} {a}, {b}"))
    }

    /// Threads of a threadgroup store where a few bits say, of their position, of a number or of both.
    fn swizzles(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.stores();
        };
        let (tile, t, x) = (self.tile(size), self.t(), self.x());
        let few = [1, 3, 7, size - 1][self.below(4) as usize];
        let few = self.constant(few.min(size - 1));
        let by = match self.below(4) {
            0 => {
                let count = 1 + self.below(3) as u32;
                let count = self.constant(count);
                self.op(&format!("shr {t}, {count}"))
            }
            1 => {
                let group = self.group();
                self.op(&format!("and {group}, {few}"))
            }
            2 => {
                let n = self.scalar("n");
                self.op(&format!("and {n}, {few}"))
            }
            _ => {
                let n = self.scalar("n");
                let place = self.op(&format!("add {t}, {n}"));
                self.op(&format!("and {place}, {few}"))
            }
        };
        let at = self.mixed(&t, &by);
        self.line(&format!("store {tile}[{at}], {x}"));
        self.barrier("threadgroup");
        let buffer = self.buffer("write");
        let other = match self.below(2) {
            0 => at,
            _ => t,
        };
        let value = self.op(&format!("load {tile}[{other}]"));
        self.room(&buffer, 1, &[Factor::GridX]);
        self.line(&format!("store %{buffer}[{x}], {value}"));
        "swizzle"
    }

    /// Rows whose columns are swizzled by the number of the row.
    fn swizzles_rows(&mut self) -> &'static str {
        let buffer = self.buffer("write");
        let (x, y) = (self.x(), self.y());
        let (wide, high) = match self.below(3) {
            0 => (self.all(), None),
            _ => (self.scalar("n"), Some(self.scalar("m"))),
        };
        if let Some(high) = &high {
            self.guard(&x, &wide);
            self.guard(&y, high);
        }
        let few = [1, 3, 7][self.below(3) as usize];
        let few = self.constant(few);
        let by = self.op(&format!("and {y}, {few}"));
        let column = self.mixed(&x, &by);
        let row = self.op(&format!("mul {y}, {wide}"));
        let at = self.op(&format!("add {row}, {column}"));
        match (high, self.below(2)) {
            (Some(_), 0) => self.room(&buffer, 1, &[Factor::N, Factor::M]),
            (None, 0) => self.room(&buffer, 1, &[Factor::GridX, Factor::GridY]),
            _ => self.guard_by_length(&at, &buffer),
        }
        self.line(&format!("store %{buffer}[{at}], {x}"));
        "swizzled rows"
    }

    fn has_fields(&mut self) -> &'static str {
        self.module
            .insert("struct @S { a: u32, b: u32[4], n: u32 }");
        let name = format!("s{}", self.params.len());
        let x = self.x();
        let zero = self.constant(0);
        if self.below(2) == 0 {
            // Parameters in a struct.
            self.params
                .insert(name.clone(), "device read @S".to_string());
            let to = self.buffer("write");
            let n = self.op(&format!("load %{name}[{zero}].n"));
            self.guard(&x, &n);
            let again = self.op(&format!("load %{name}[{zero}].n"));
            let one = self.constant(1);
            let last = self.op(&format!("sub {again}, {one}"));
            let at = self.op(&format!("sub {last}, {x}"));
            self.guard_by_length(&at, &to);
            self.line(&format!("store %{to}[{at}], {x}"));
            return "parameters in a struct";
        }
        self.params
            .insert(name.clone(), "device read_write @S".to_string());
        self.room(&name, 1, &[Factor::GridX]);
        let part = self.below(4) as u32;
        let part = self.constant(part);
        let field = if self.slips() { "b[%c0]" } else { "a" };
        self.constant(0);
        let value = self.op(&format!(
            "load %{name}[{zero}].{}",
            field.replace("%c0", &zero)
        ));
        self.line(&format!("store %{name}[{x}].b[{part}], {value}"));
        "fields"
    }

    fn has_an_array(&mut self) -> &'static str {
        let array = format!("%own{}", self.head.len());
        self.head.push(format!("    {array} = alloc thread u32[4]"));
        let (x, mask) = (self.x(), self.constant(3));
        let at = match self.below(4) {
            0 => self.op(&format!("and {x}, {mask}")),
            1 => {
                let least = self.below(3) as u32;
                let (least, most) = (self.constant(least), if self.slips() { 4 } else { 3 });
                let most = self.constant(most);
                self.op(&format!("clamp {x}, {least}, {most}"))
            }
            2 => {
                let four = self.constant(4);
                self.op(&format!("rem {x}, {four}"))
            }
            _ => self.op(&format!("min {x}, {mask}")),
        };
        self.line(&format!("store {array}[{at}], {x}"));
        let value = self.op(&format!("load {array}[{at}]"));
        let to = self.buffer("write");
        let spot = self.spot();
        let place = self.at(&to, spot);
        self.line(&format!("store %{to}[{place}], {value}"));
        "array of a thread"
    }

    /// Two halves of a tile in turn.
    fn alternates(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.strides();
        };
        let tile = self.tile(2 * size);
        let (t, theirs) = (self.t(), self.other_thread(size));
        let (zero, one, half) = (self.constant(0), self.constant(1), self.constant(size));
        let n = self.scalar("n");
        let end = self.fresh();
        self.line(&format!(
            "{end} = for {end}k = {zero} to {n} step {one} carry({end}p = {zero}) {{"
        ));
        self.depth += 1;
        let mine = self.op(&format!("add {end}p, {t}"));
        let other = self.op(&format!("add {end}p, {theirs}"));
        self.line(&format!("store {tile}[{mine}], {end}k"));
        self.barrier("threadgroup");
        self.op(&format!("load {tile}[{other}]"));
        let next = self.op(&format!("xor {end}p, {half}"));
        self.line(&format!("yield {next}"));
        self.close();
        "double buffer"
    }

    fn gathers(&mut self) -> &'static str {
        let (index, from, to) = (
            self.buffer("read"),
            self.buffer("read"),
            self.buffer("write"),
        );
        self.room(&index, 1, &[Factor::GridX]);
        self.room(&to, 1, &[Factor::GridX]);
        let x = self.x();
        let at = self.op(&format!("load %{index}[{x}]"));
        let at = if self.slips() {
            let one = self.constant(1);
            self.op(&format!("add {at}, {one}"))
        } else {
            at
        };
        let value = self.op(&format!("load %{from}[{at}]"));
        self.line(&format!("store %{to}[{x}], {value}"));
        self.indices.push((index, from));
        "gather"
    }

    fn strides(&mut self) -> &'static str {
        let to = self.buffer("read_write");
        let (x, all, n) = (self.x(), self.all(), self.scalar("n"));
        self.room(&to, 1, &[Factor::N]);
        let step = if self.slips() { self.constant(1) } else { all };
        let k = format!("{}k", self.fresh());
        self.line(&format!("for {k} = {x} to {n} step {step} {{"));
        self.depth += 1;
        let old = self.op(&format!("load %{to}[{k}]"));
        let new = self.op(&format!("add {old}, {x}"));
        self.line(&format!("store %{to}[{k}], {new}"));
        self.close();
        "strides"
    }

    /// The threads of a threadgroup go through a row of its own, each by as many as there are.
    fn steps_through_rows(&mut self) -> &'static str {
        let to = self.buffer("write");
        let (t, group, n) = (self.t(), self.group(), self.scalar("n"));
        let ty = ["u32", "i32"][usize::from(self.below(3) == 0)];
        self.room(&to, 1, &[Factor::GroupsX, Factor::N]);
        let is_constant = self.below(3) > 0;
        let constant = self.size.filter(|_| is_constant);
        let step = match constant {
            Some(size) => {
                let less = u32::from(self.slips());
                self.constant(size - less)
            }
            None => self.first("%threads", "threads_per_threadgroup x"),
        };
        let row = self.op(&format!("mul {group}, {n}"));
        let [start, end, step] = [t, n, step].map(|n| match ty {
            "i32" => self.op(&format!("cast i32 {n}")),
            _itself => n,
        });
        let k = format!("{}k", self.fresh());
        self.line(&format!("{k}.end = loop carry({k} = {start}) {{"));
        self.depth += 1;
        self.ends_loop(&k, &end);
        let place = match ty {
            "i32" => self.op(&format!("cast u32 {k}")),
            _itself => k.clone(),
        };
        let at = self.op(&format!("add {row}, {place}"));
        self.line(&format!("store %{to}[{at}], {row}"));
        let next = self.op(&format!("add {k}, {step}"));
        self.line(&format!("yield {next}"));
        self.close();
        "steps through rows"
    }

    /// Steps so far that an index leaves its type after a few iterations, and would then be that of another thread.
    fn steps_far(&mut self) -> &'static str {
        let (t, n) = (self.t(), self.scalar("n"));
        let size = self.size.unwrap_or(32);
        let tile = self.tile(size);
        let (ty, far) = match self.below(3) {
            0 => ("i32", 1 << 29),
            _unsigned => ("u32", 1 << 30),
        };
        let more = 1 + self.below(4) as u32;
        let step = self.constant(far + more);
        let [start, end, step] = [t.clone(), n, step].map(|n| match ty {
            "i32" => self.op(&format!("as_type i32 {n}")),
            _itself => n,
        });
        let k = format!("{}k", self.fresh());
        self.line(&format!("{k}.end = loop carry({k} = {start}) {{"));
        self.depth += 1;
        self.ends_loop(&k, &end);
        let place = match ty {
            "i32" => self.op(&format!("as_type u32 {k}")),
            _itself => k.clone(),
        };
        let all = self.constant(size);
        let near = self.op(&format!("lt {place}, {all}"));
        self.open(&near);
        self.line(&format!("store {tile}[{place}], {t}"));
        self.close();
        let next = self.op(&format!("add {k}, {step}"));
        self.line(&format!("yield {next}"));
        self.close();
        self.large = true;
        "steps far"
    }

    /// Ends a loop whose index is no longer below a number; where it slips, behind that.
    fn ends_loop(&mut self, index: &str, end: &str) {
        let op = if self.slips() { "gt" } else { "ge" };
        let done = self.op(&format!("{op} {index}, {end}"));
        self.line(&format!("if {done} {{ break {index} }}"));
    }

    /// Strides of the grid in a loop whose index is carried.
    fn loops_by_strides(&mut self) -> &'static str {
        let to = self.buffer("write");
        let (x, all, n) = (self.x(), self.all(), self.scalar("n"));
        self.room(&to, 1, &[Factor::N]);
        let step = if self.slips() { self.constant(1) } else { all };
        let k = format!("{}k", self.fresh());
        self.line(&format!("{k}.end = loop carry({k} = {x}) {{"));
        self.depth += 1;
        self.ends_loop(&k, &n);
        self.line(&format!("store %{to}[{k}], {x}"));
        let next = self.op(&format!("add {k}, {step}"));
        self.line(&format!("yield {next}"));
        self.close();
        "strides in a loop"
    }

    fn exchanges_in_device_memory(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.reads_and_stores();
        };
        let (memory, to) = (self.buffer("read_write"), self.buffer("write"));
        self.room(&memory, size, &[Factor::GroupsX]);
        self.room(&to, 1, &[Factor::GridX]);
        let (x, group, wide) = (self.x(), self.group(), self.constant(size));
        let theirs = self.other_thread(size);
        let start = self.op(&format!("mul {group}, {wide}"));
        let at = self.op(&format!("add {start}, {theirs}"));
        self.line(&format!("store %{memory}[{x}], {x}"));
        self.barrier("device");
        let value = self.op(&format!("load %{memory}[{at}]"));
        self.line(&format!("store %{to}[{x}], {value}"));
        "exchange in device memory"
    }

    fn wraps(&mut self) -> &'static str {
        let (table, to) = (self.buffer("read"), self.buffer("write"));
        let x = self.x();
        self.room(&to, 1, &[Factor::GridX]);
        let a = 2 + self.below(300) as u32;
        let a = self.constant(a);
        let wide = match self.below(3) {
            0 => self.op(&format!("mul {x}, {a}")),
            1 => self.op(&format!("sub {x}, {a}")),
            _ => self.op(&format!("add {x}, {a}")),
        };
        let (ty, most) = [("u8", 256), ("i8", 128), ("u16", 65536)][self.below(3) as usize];
        let narrow = self.op(&format!("cast {ty} {wide}"));
        let mut at = self.op(&format!("cast u32 {narrow}"));
        if ty == "i8" {
            let mask = self.constant(127);
            at = self.op(&format!("and {at}, {mask}"));
        }
        if most > 256 {
            let eight = self.constant(8);
            at = self.op(&format!("shr {at}, {eight}"));
        }
        self.room(&table, most.min(256), &[]);
        let value = self.op(&format!("load %{table}[{at}]"));
        self.line(&format!("store %{to}[{x}], {value}"));
        "wraps"
    }

    /// One to four numbers for each place in rows of `n`, of which there are `m`, all in integers with a sign.
    fn counts_rows_with_signs(&mut self) -> &'static str {
        let (x, y, n, m) = (self.x(), self.y(), self.scalar("n"), self.scalar("m"));
        let signed = |w: &mut Writer, value: &str| {
            let op = ["cast", "as_type"][w.below(2) as usize];
            w.op(&format!("{op} i32 {value}"))
        };
        let (column, row) = (signed(self, &x), signed(self, &y));
        let (width, height) = (signed(self, &n), signed(self, &m));
        self.guard(&column, &width);
        self.guard(&row, &height);
        let to = self.buffer("write");
        let each = 1 + self.below(4) as u32;
        self.room(&to, each, &[Factor::N, Factor::M]);
        let start = self.op(&format!("mul {row}, {width}"));
        let mut at = self.op(&format!("add {start}, {column}"));
        if each > 1 {
            let times = self.constant(each);
            let times = signed(self, &times);
            at = self.op(&format!("mul {at}, {times}"));
            let last = if self.slips() { each } else { each - 1 };
            let last = self.constant(last);
            let last = signed(self, &last);
            at = self.op(&format!("add {at}, {last}"));
        }
        self.line(&format!("store %{to}[{at}], {x}"));
        "rows with signs"
    }

    fn is_a_stencil(&mut self) -> &'static str {
        let (from, to) = (self.buffer("read"), self.buffer("write"));
        let (x, n) = (self.x(), self.scalar("n"));
        let (zero, one) = (self.constant(0), self.constant(1));
        self.room(&from, 1, &[Factor::N]);
        self.room(&to, 1, &[Factor::N]);
        let inside = self.op(&format!("gt {x}, {zero}"));
        self.open(&inside);
        let next = self.op(&format!("add {x}, {one}"));
        self.guard(&next, &n);
        let before = self.op(&format!("sub {x}, {one}"));
        let a = self.op(&format!("load %{from}[{before}]"));
        let b = self.op(&format!("load %{from}[{next}]"));
        let sum = self.op(&format!("add {a}, {b}"));
        self.line(&format!("store %{to}[{x}], {sum}"));
        "stencil"
    }

    fn copies(&mut self) -> &'static str {
        let (from, to) = (self.buffer("read"), self.buffer("write"));
        let x = self.x();
        let count = 1 + self.below(4) as u32;
        self.room(&from, count, &[Factor::GridX]);
        self.room(&to, count, &[Factor::GridX]);
        let (wide, count) = (self.constant(count), self.constant(count));
        let start = self.op(&format!("mul {x}, {wide}"));
        self.line(&format!("copy %{to}[{start}], %{from}[{start}], {count}"));
        "copy"
    }

    fn has_vectors(&mut self) -> &'static str {
        let (from, to) = (self.buffer("read"), self.buffer("write"));
        let x = self.x();
        let wide = 2 + self.below(3) as u32;
        self.room(&from, wide, &[Factor::GridX]);
        self.room(&to, wide, &[Factor::GridX]);
        if self.below(2) == 0 {
            let value = self.op(&format!("load %{from}[{x} * {wide}]"));
            self.line(&format!("store %{to}[{x} * {wide}], {value}"));
        } else {
            let factor = self.constant(wide);
            let start = self.op(&format!("mul {x}, {factor}"));
            let value = self.op(&format!("load %{from}[{start} : {wide}]"));
            self.line(&format!("store %{to}[{start} : {wide}], {value}"));
        }
        "vectors"
    }

    /// A bitonic sort in threadgroup memory: partners are apart in one bit.
    fn sorts(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.wraps();
        };
        let tile = self.tile(size);
        let (x, t) = (self.x(), self.t());
        let (zero, one, two) = (self.constant(0), self.constant(1), self.constant(2));
        let end = self.constant(size);
        self.line(&format!("store {tile}[{t}], {x}"));
        self.barrier("threadgroup");
        let k = self.fresh();
        self.line(&format!("{k}.end = loop carry({k} = {two}) {{"));
        self.depth += 1;
        let over = self.op(&format!("gt {k}, {end}"));
        self.line(&format!("if {over} {{ break {k} }}"));
        let half = self.op(&format!("shr {k}, {one}"));
        let j = self.fresh();
        self.line(&format!("{j}.end = loop carry({j} = {half}) {{"));
        self.depth += 1;
        let empty = self.op(&format!("eq {j}, {zero}"));
        self.line(&format!("if {empty} {{ break {j} }}"));
        let op = if self.slips() { "add" } else { "xor" };
        let partner = self.op(&format!("{op} {t}, {j}"));
        // The last threadgroup may be smaller.
        let last = self.first("%threads", "threads_per_threadgroup x");
        let op = if self.slips() { "ge" } else { "gt" };
        let ahead = self.op(&format!("{op} {partner}, {t}"));
        let there = match self.slips() {
            true => self.op(&format!("le {partner}, {last}")),
            false => self.op(&format!("lt {partner}, {last}")),
        };
        let both = self.op(&format!("and {ahead}, {there}"));
        self.open(&both);
        let a = self.op(&format!("load {tile}[{t}]"));
        let b = self.op(&format!("load {tile}[{partner}]"));
        self.line(&format!("store {tile}[{t}], {b}"));
        self.line(&format!("store {tile}[{partner}], {a}"));
        self.close();
        self.barrier("threadgroup");
        let next = self.op(&format!("shr {j}, {one}"));
        self.line(&format!("yield {next}"));
        self.close();
        let next = self.op(&format!("shl {k}, {one}"));
        self.line(&format!("yield {next}"));
        self.close();
        let sorted = self.op(&format!("load {tile}[{t}]"));
        let to = self.buffer("write");
        self.room(&to, 1, &[Factor::GridX]);
        self.line(&format!("store %{to}[{x}], {sorted}"));
        "sort"
    }

    /// One way of a scan: strides by which places are multiplied, up a tree or down.
    fn passes(&mut self, tile: &str, (stride, many): (&str, &str), up: bool) -> String {
        let t = self.t();
        let (zero, one, two) = (self.constant(0), self.constant(1), self.constant(2));
        let out = self.fresh();
        self.line(&format!(
            "{out}, {out}.many = loop carry({out}s = {stride}, {out}d = {many}) {{"
        ));
        self.depth += 1;
        let over = if up {
            self.op(&format!("eq {out}d, {zero}"))
        } else {
            let end = self.constant(self.size.unwrap_or(1));
            self.op(&format!("ge {out}d, {end}"))
        };
        self.line(&format!("if {over} {{ break {out}s, {out}d }}"));
        let mut stride = format!("{out}s");
        if !up && !self.slips() {
            stride = self.op(&format!("shr {stride}, {one}"));
        }
        self.barrier("threadgroup");
        let depth = self.depth;
        self.guard(&t, &format!("{out}d"));
        let twice = self.op(&format!("mul {t}, {two}"));
        let near = self.op(&format!("add {twice}, {one}"));
        let far = self.op(&format!("add {twice}, {two}"));
        let [a, b] = [near, far].map(|place| {
            let end = self.op(&format!("mul {stride}, {place}"));
            self.op(&format!("sub {end}, {one}"))
        });
        let p = self.op(&format!("load {tile}[{a}]"));
        let q = self.op(&format!("load {tile}[{b}]"));
        let sum = self.op(&format!("add {p}, {q}"));
        if !up {
            self.line(&format!("store {tile}[{a}], {q}"));
        }
        self.line(&format!("store {tile}[{b}], {sum}"));
        while self.depth > depth {
            self.close();
        }
        let next = if up {
            let more = self.op(&format!("mul {stride}, {two}"));
            let less = self.op(&format!("shr {out}d, {one}"));
            [more, less]
        } else {
            let more = self.op(&format!("shl {out}d, {one}"));
            [stride, more]
        };
        self.line(&format!("yield {}", next.join(", ")));
        self.close();
        out
    }

    /// The scan of Blelloch.
    fn scans(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.copies();
        };
        let tile = self.tile(size);
        let (x, t) = (self.x(), self.t());
        self.line(&format!("store {tile}[{t}], {x}"));
        let (half, one) = (self.constant(size / 2), self.constant(1));
        let root = self.passes(&tile, (&one, &half), true);
        let zero = self.constant(0);
        let first = self.op(&format!("eq {t}, {zero}"));
        self.open(&first);
        let last = self.constant(size - 1);
        self.line(&format!("store {tile}[{last}], {zero}"));
        self.close();
        self.passes(&tile, (&root, &one), false);
        self.barrier("threadgroup");
        let sum = self.op(&format!("load {tile}[{t}]"));
        let to = self.buffer("write");
        self.room(&to, 1, &[Factor::GridX]);
        self.line(&format!("store %{to}[{x}], {sum}"));
        "scan"
    }

    /// A tree of sums whose strides are shifted by the index of a `for`.
    fn sums_by_shifts(&mut self) -> &'static str {
        let Some(size) = self.size else {
            return self.gathers();
        };
        let tile = self.tile(size);
        let (x, t, group) = (self.x(), self.t(), self.group());
        let (zero, one, end) = (self.constant(0), self.constant(1), self.constant(size));
        let iterations = self.constant(size.ilog2());
        self.line(&format!("store {tile}[{t}], {x}"));
        let k = self.fresh();
        self.line(&format!("for {k} = {zero} to {iterations} step {one} {{"));
        self.depth += 1;
        self.barrier("threadgroup");
        let near = self.op(&format!("shl {one}, {k}"));
        let far = self.op(&format!("add {near}, {near}"));
        let at = self.op(&format!("mul {t}, {far}"));
        let other = self.op(&format!("add {at}, {near}"));
        let inside = match self.slips() {
            true => self.op(&format!("le {other}, {end}")),
            false => self.op(&format!("lt {other}, {end}")),
        };
        self.open(&inside);
        let a = self.op(&format!("load {tile}[{at}]"));
        let b = self.op(&format!("load {tile}[{other}]"));
        let sum = self.op(&format!("add {a}, {b}"));
        self.line(&format!("store {tile}[{at}], {sum}"));
        self.close();
        self.close();
        let buffer = self.buffer("write");
        self.room(&buffer, 1, &[Factor::GroupsX]);
        let first = self.op(&format!("eq {t}, {zero}"));
        self.open(&first);
        let sum = self.op(&format!("load {tile}[{zero}]"));
        self.line(&format!("store %{buffer}[{group}], {sum}"));
        "sums by shifts"
    }
}
