//! Uniformity against brute force: random kernels are run thread by thread, and everything that the
//! analysis calls the same is compared between the threads.

use std::collections::{BTreeMap, HashMap};

use invar_ir::random::split_mix_64;
use invar_ir::{
    Access, Const, Dim, Inst, InstKind, Kernel, KernelBuilder, Level, Memory, Module, Op, Place,
    Region, Scalar, Value, Values, analyse, verify,
};

/// A sequence of choices.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        (split_mix_64(&mut self.0) % n.max(1) as u64) as usize
    }
}

const SIMDGROUP: u32 = 4;
const GROUP: u32 = 8;
const THREADS: u32 = 16;

// ---- random kernels ----

/// Builds a random kernel of u32 values.
struct Generator<'r> {
    random: &'r mut Random,
    /// What can be used here.
    values: Vec<Value>,
    arrays: Vec<Memory>,
    table: Memory,
    budget: usize,
    /// How many values each loop around carries, and whether `continue` is safe in it.
    loops: Vec<(usize, bool)>,
}

impl Generator<'_> {
    fn value(&mut self) -> Value {
        // Recent values are used more, so that chains grow.
        let n = self.values.len();
        let i = if self.random.below(2) == 0 {
            n - 1 - self.random.below(n.min(4))
        } else {
            self.random.below(n)
        };
        self.values[i]
    }

    fn list(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.value()).collect()
    }

    fn condition(&mut self, k: &mut KernelBuilder) -> Value {
        let (a, b) = (self.value(), self.value());
        if self.random.below(2) == 0 {
            k.lt(a, b)
        } else {
            k.eq(a, b)
        }
    }

    /// A value below 4.
    fn small(&mut self, k: &mut KernelBuilder) -> Value {
        if self.random.below(2) == 0 {
            return k.const_u32(self.random.below(4) as u32);
        }
        let v = self.value();
        let four = k.const_u32(4);
        k.rem(v, four)
    }

    fn statements(&mut self, k: &mut KernelBuilder, depth: usize) {
        for _ in 0..2 + self.random.below(4) {
            if self.budget == 0 || k.terminated() {
                return;
            }
            self.budget -= 1;
            self.statement(k, depth);
        }
    }

    /// A block that gives that many values; what it defines cannot be used afterwards.
    fn block(&mut self, k: &mut KernelBuilder, depth: usize, count: usize) -> Vec<Value> {
        let (values, arrays) = (self.values.len(), self.arrays.len());
        self.statements(k, depth + 1);
        if !k.terminated() && depth > 0 && self.random.below(3) == 0 {
            match (self.loops.last().copied(), self.random.below(5)) {
                (Some((n, _)), 0 | 1) => {
                    let values = self.list(n);
                    k.break_(&values);
                }
                (Some((n, true)), 2 | 3) => {
                    let values = self.list(n);
                    k.continue_(&values);
                }
                _ => k.return_(),
            }
        }
        let given = self.list(count);
        self.arrays.truncate(arrays);
        self.values.truncate(values);
        given
    }

    fn statement(&mut self, k: &mut KernelBuilder, depth: usize) {
        match self.random.below(20) {
            0 => {
                let v = k.const_u32(self.random.below(5) as u32);
                self.values.push(v);
            }
            1 => {
                let v = k.thread_index_in_threadgroup();
                self.values.push(v);
            }
            2 => {
                let v = k.threadgroup_position_in_grid(Dim::X);
                self.values.push(v);
            }
            3 => {
                let t = k.thread_index_in_threadgroup();
                let size = k.const_u32(SIMDGROUP);
                let v = k.div(t, size);
                self.values.push(v);
            }
            4..=6 => {
                let (a, b) = (self.value(), self.value());
                let v = if self.random.below(2) == 0 {
                    k.add(a, b)
                } else {
                    k.rem(a, b)
                };
                self.values.push(v);
            }
            7 => {
                let i = self.value();
                let v = k.load(Place::element(self.table, i));
                self.values.push(v);
            }
            8 | 19 => {
                let array = k.alloc_thread("array", Scalar::U32, 4);
                self.arrays.push(array);
            }
            9 | 10 | 16 | 17 if !self.arrays.is_empty() => {
                let array = self.arrays[self.random.below(self.arrays.len())];
                let (i, v) = (self.small(k), self.small(k));
                k.store(Place::element(array, i), v);
            }
            11 | 18 if !self.arrays.is_empty() => {
                let array = self.arrays[self.random.below(self.arrays.len())];
                let i = self.small(k);
                let v = k.load(Place::element(array, i));
                self.values.push(v);
            }
            12 | 13 if depth < 4 => self.if_(k, depth),
            14 if depth < 4 => self.for_(k, depth),
            15 if depth < 4 => self.loop_(k, depth),
            _ => {
                let (a, b) = (self.value(), self.value());
                let v = k.add(a, b);
                self.values.push(v);
            }
        }
    }

    fn if_(&mut self, k: &mut KernelBuilder, depth: usize) {
        let condition = self.condition(k);
        let count = self.random.below(3);
        let mut regions = Vec::new();
        for _ in 0..2 {
            k.open_region(&[]);
            let values = self.block(k, depth, count);
            k.yield_(&values);
            regions.push(k.close_region());
        }
        let otherwise = regions.pop().unwrap();
        let then = regions.pop().unwrap();
        let results = k.if_regions(condition, then, otherwise);
        self.values.extend(results);
    }

    fn for_(&mut self, k: &mut KernelBuilder, depth: usize) {
        let (lower, upper) = (self.small(k), self.small(k));
        let step = k.const_u32(1);
        let count = self.random.below(3);
        let init = self.list(count);
        let results = k.for_(lower, upper, step, &init, |k, index, carried| {
            let here = self.values.len();
            self.values.push(index);
            self.values.extend(carried);
            self.loops.push((count, true));
            let next = self.block(k, depth, count);
            self.loops.pop();
            self.values.truncate(here);
            next
        });
        self.values.extend(results);
    }

    /// A loop with a counter that ends it; the counter is its first carried value.
    fn loop_(&mut self, k: &mut KernelBuilder, depth: usize) {
        let limit = self.small(k);
        let zero = k.const_u32(0);
        let one = k.const_u32(1);
        let count = self.random.below(3);
        let mut init = vec![zero];
        init.extend(self.list(count));
        let results = k.loop_(&init, |k, carried| {
            let here = self.values.len();
            self.values.extend(carried);
            let next_index = k.add(carried[0], one);
            let more = k.lt(carried[0], limit);
            let mut left = vec![carried[0]];
            left.extend(self.list(count));
            k.if_else(more, |_| {}, |k| k.break_(&left));
            // Only the end of the body begins the next iteration, so that the loop ends.
            self.loops.push((count + 1, false));
            let mut next = vec![next_index];
            next.extend(self.block(k, depth, count));
            self.loops.pop();
            self.values.truncate(here);
            next
        });
        self.values.extend(results);
    }
}

fn kernel(random: &mut Random) -> Module {
    let mut k = KernelBuilder::new(Module::default(), "k");
    k.kernel_mut().simdgroup_size = Some(SIMDGROUP);
    let table = k.buffer("table", Access::Read, Scalar::U32);
    let n = k.scalar("n", Scalar::U32);
    let mut generator = Generator {
        random,
        values: vec![n],
        arrays: Vec::new(),
        table,
        budget: 60,
        loops: Vec::new(),
    };
    generator.statements(&mut k, 0);
    k.finish().unwrap()
}

// ---- one thread ----

/// A place in the run of a thread: an instruction's number and the iterations of the loops around.
type Instance = (usize, Vec<u32>);

struct Thread<'a> {
    kernel: &'a Kernel,
    number: u32,
    numbers: &'a HashMap<*const Inst, usize>,
    regions: &'a HashMap<*const Region, usize>,
    values: Vec<u64>,
    arrays: Vec<[u64; 4]>,
    iterations: Vec<u32>,
    /// The results of what ran.
    trace: BTreeMap<Instance, Vec<u64>>,
    /// The parameters of the regions that ran.
    begun: BTreeMap<Instance, Vec<u64>>,
    /// What thread arrays held at each load.
    loads: BTreeMap<Instance, (u32, [u64; 4])>,
}

enum End {
    Yield(Vec<u64>),
    Break(Vec<u64>),
    Continue(Vec<u64>),
    Return,
}

const TABLE: [u64; 5] = [3, 1, 0, 2, 4];
const N: u64 = 2;

impl Thread<'_> {
    fn get(&self, values: &Values) -> Vec<u64> {
        values.iter().map(|v| self.values[v.0 as usize]).collect()
    }

    fn set(&mut self, values: &[Value], to: &[u64]) {
        assert_eq!(values.len(), to.len());
        for (value, to) in values.iter().zip(to) {
            self.values[value.0 as usize] = *to;
        }
    }

    fn begin(&mut self, region: &Region) {
        let at = (
            self.regions[&std::ptr::from_ref(region)],
            self.iterations.clone(),
        );
        let params = region.params.iter().map(|v| self.values[v.0 as usize]);
        let params = params.collect();
        self.begun.insert(at, params);
    }

    fn region(&mut self, region: &Region) -> End {
        self.begin(region);
        for inst in &region.insts {
            let at = (
                self.numbers[&std::ptr::from_ref(inst)],
                self.iterations.clone(),
            );
            self.trace.insert(at.clone(), Vec::new());
            if let Some(end) = self.inst(inst, &at) {
                return end;
            }
            let results = inst
                .results
                .iter()
                .map(|v| self.values[v.0 as usize])
                .collect();
            self.trace.insert(at, results);
        }
        unreachable!("a region has an end")
    }

    fn inst(&mut self, inst: &Inst, at: &Instance) -> Option<End> {
        let v = |value: Value| self.values[value.0 as usize];
        let result = match &inst.kind {
            InstKind::Const(c) => c.bits,
            InstKind::Op { op, args, .. } => match (*op, args.as_slice()) {
                (Op::ThreadIndexInThreadgroup, _) => u64::from(self.number % GROUP),
                (Op::ThreadgroupPositionInGrid, _) => u64::from(self.number / GROUP),
                (Op::Add, [a, b]) => u64::from((v(*a) as u32).wrapping_add(v(*b) as u32)),
                (Op::Div, [a, b]) => v(*a).checked_div(v(*b)).unwrap_or(0),
                (Op::Rem, [a, b]) => v(*a).checked_rem(v(*b)).unwrap_or(0),
                (Op::Lt, [a, b]) => u64::from(v(*a) < v(*b)),
                (Op::Eq, [a, b]) => u64::from(v(*a) == v(*b)),
                other => panic!("{other:?} is not generated"),
            },
            InstKind::Load(place) => match place.memory {
                Memory::Alloc(id) => {
                    let array = self.arrays[id as usize];
                    self.loads.insert(at.clone(), (id, array));
                    array[v(place.index) as usize]
                }
                _ => TABLE.get(v(place.index) as usize).copied().unwrap_or(0),
            },
            InstKind::Store { place, value } => {
                let Memory::Alloc(id) = place.memory else {
                    panic!("only arrays are stored to");
                };
                self.arrays[id as usize][v(place.index) as usize] = v(*value);
                return None;
            }
            InstKind::Alloc(id) => {
                self.arrays[*id as usize] = [0; 4];
                return None;
            }
            InstKind::If {
                condition,
                then,
                otherwise,
            } => {
                let side = if v(*condition) == 1 { then } else { otherwise };
                match self.region(side) {
                    End::Yield(values) => self.set(&inst.results, &values),
                    end => return Some(end),
                }
                return None;
            }
            InstKind::For {
                lower,
                upper,
                init,
                body,
                ..
            } => {
                let (lower, upper) = (v(*lower), v(*upper));
                let mut carried = self.get(init);
                self.iterations.push(0);
                for index in lower..upper {
                    let mut params = vec![index];
                    params.extend(&carried);
                    self.set(&body.params, &params);
                    match self.region(body) {
                        End::Yield(values) | End::Continue(values) => carried = values,
                        End::Break(values) => {
                            carried = values;
                            break;
                        }
                        End::Return => return Some(End::Return),
                    }
                    *self.iterations.last_mut().unwrap() += 1;
                }
                self.iterations.pop();
                self.set(&inst.results, &carried);
                return None;
            }
            InstKind::Loop { init, body } => {
                let mut carried = self.get(init);
                self.iterations.push(0);
                loop {
                    self.set(&body.params, &carried);
                    match self.region(body) {
                        End::Yield(values) | End::Continue(values) => carried = values,
                        End::Break(values) => {
                            carried = values;
                            break;
                        }
                        End::Return => return Some(End::Return),
                    }
                    *self.iterations.last_mut().unwrap() += 1;
                }
                self.iterations.pop();
                self.set(&inst.results, &carried);
                return None;
            }
            InstKind::Yield(values) => return Some(End::Yield(self.get(values))),
            InstKind::Break(values) => return Some(End::Break(self.get(values))),
            InstKind::Continue(values) => return Some(End::Continue(self.get(values))),
            InstKind::Return => return Some(End::Return),
            other => panic!("{other:?} is not generated"),
        };
        self.set(&inst.results, &[result]);
        None
    }
}

/// The group of a thread over which a level is claimed; none if nothing is.
fn group(level: Level, thread: u32) -> Option<u32> {
    match level {
        Level::Varying => None,
        Level::Simdgroup => Some(thread / SIMDGROUP),
        Level::Threadgroup => Some(thread / GROUP),
        Level::Grid => Some(0),
    }
}

/// How many threads a group of that level has.
fn size(level: Level) -> usize {
    match level {
        Level::Varying => 1,
        Level::Simdgroup => SIMDGROUP as usize,
        Level::Threadgroup => GROUP as usize,
        Level::Grid => THREADS as usize,
    }
}

/// What was claimed and held, by level.
#[derive(Default)]
struct Claims {
    values: [usize; 4],
    controls: [usize; 4],
}

fn check(module: Module, claims: &mut Claims) {
    let verified = verify(module).unwrap_or_else(|e| panic!("{e}"));
    let kernel = &verified.kernels[0];
    let uniformity = analyse(&verified, kernel);
    let mut insts = Vec::new();
    let mut regions = vec![&kernel.body];
    kernel.for_each_inst(&mut |inst| {
        insts.push(inst);
    });
    fn inner<'a>(region: &'a Region, out: &mut Vec<&'a Region>) {
        for inst in &region.insts {
            for region in inst.kind.regions() {
                out.push(region);
                inner(region, out);
            }
        }
    }
    inner(&kernel.body, &mut regions);
    let numbers: HashMap<*const Inst, usize> = insts
        .iter()
        .enumerate()
        .map(|(i, inst)| (std::ptr::from_ref(*inst), i))
        .collect();
    let region_numbers: HashMap<*const Region, usize> = regions
        .iter()
        .enumerate()
        .map(|(i, region)| (std::ptr::from_ref(*region), i))
        .collect();

    // By place and group of threads: what the first thread found, and how many came.
    let mut values: HashMap<(Value, Vec<u32>, u32), u64> = HashMap::new();
    let mut arrivals: HashMap<(bool, Instance, u32), usize> = HashMap::new();
    let mut arrays: HashMap<(Instance, u32), [u64; 4]> = HashMap::new();
    for number in 0..THREADS {
        let mut thread = Thread {
            kernel,
            number,
            numbers: &numbers,
            regions: &region_numbers,
            values: vec![0; kernel.values.len()],
            arrays: vec![[0; 4]; kernel.allocs.len()],
            iterations: Vec::new(),
            trace: BTreeMap::new(),
            begun: BTreeMap::new(),
            loads: BTreeMap::new(),
        };
        thread.values[0] = N;
        assert_eq!(thread.kernel.params.len(), 2);
        thread.region(&kernel.body);
        let mut compare = |of: &[Value], found: &[u64], iterations: &[u32]| {
            for (value, found) in of.iter().zip(found) {
                let level = uniformity.of(*value);
                claims.values[level as usize] += 1;
                if let Some(group) = group(level, number) {
                    let first = values
                        .entry((*value, iterations.to_vec(), group))
                        .or_insert(*found);
                    assert_eq!(
                        first,
                        found,
                        "{} is claimed {level:?}:\n{}",
                        kernel.value_name(*value),
                        *verified
                    );
                }
            }
        };
        for ((i, iterations), found) in &thread.trace {
            compare(&insts[*i].results, found, iterations);
            let level = uniformity.control(*i);
            claims.controls[level as usize] += 1;
            if let Some(group) = group(level, number) {
                *arrivals
                    .entry((false, (*i, iterations.clone()), group))
                    .or_default() += 1;
            }
        }
        for ((i, iterations), found) in &thread.begun {
            compare(&regions[*i].params, found, iterations);
            if let Some(group) = group(uniformity.region(*i).control, number) {
                *arrivals
                    .entry((true, (*i, iterations.clone()), group))
                    .or_default() += 1;
            }
        }
        for (at, (array, found)) in &thread.loads {
            if let Some(group) = group(uniformity.array(*array), number) {
                let first = arrays.entry((at.clone(), group)).or_insert(*found);
                assert_eq!(first, found, "array {array} at {at:?}:\n{}", *verified);
            }
        }
    }
    // Where the control is claimed, all threads of a group came, or none.
    for ((is_region, at, _), count) in arrivals {
        let level = if is_region {
            uniformity.region(at.0).control
        } else {
            uniformity.control(at.0)
        };
        assert_eq!(
            count,
            size(level),
            "control of {} {} in iterations {:?} is claimed {level:?}:\n{}",
            if is_region { "region" } else { "instruction" },
            at.0,
            at.1,
            *verified
        );
    }
}

#[test]
fn what_is_called_uniform_is_the_same_for_all_threads() {
    let mut claims = Claims::default();
    for seed in 0..10_000 {
        check(kernel(&mut Random(seed)), &mut claims);
    }
    // Every level must be claimed often, or nothing was tested.
    let all: usize = claims.values.iter().sum();
    for (level, count) in claims.values.iter().enumerate() {
        assert!(count * 50 > all, "level {level}: {:?}", claims.values);
    }
    let all: usize = claims.controls.iter().sum();
    for (level, count) in claims.controls.iter().enumerate() {
        assert!(count * 100 > all, "level {level}: {:?}", claims.controls);
    }
}

#[test]
fn regions_say_over_whom_they_are_entered() {
    let mut k = KernelBuilder::new(Module::default(), "k");
    let n = k.scalar("n", Scalar::U32);
    let t = k.thread_index_in_threadgroup();
    let g = k.threadgroup_position_in_grid(Dim::X);
    let by_group = k.lt(g, n);
    let by_thread = k.lt(t, n);
    k.if_(by_group, |k| {
        k.if_(by_thread, |k| {
            k.constant(Const::from(1u32));
        });
    });
    k.for_(n, n, n, &[], |_, _, _| Vec::new());
    let module = k.finish().unwrap();
    let uniformity = analyse(&module, &module.kernels[0]);
    let found: Vec<(Level, Level)> = (0..6)
        .map(|i| uniformity.region(i))
        .map(|region| (region.entry, region.control))
        .collect();
    use Level::{Grid, Threadgroup, Varying};
    assert_eq!(
        found,
        [
            (Grid, Grid),
            (Threadgroup, Threadgroup),
            (Varying, Varying),
            (Varying, Varying),
            (Threadgroup, Threadgroup),
            (Grid, Grid),
        ],
        "the body, the outer `if`'s first side, the inner `if`'s two, the outer's second, the loop"
    );
}
