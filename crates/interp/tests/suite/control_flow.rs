//! Random programs of nested `if`, `for` and `loop` with `break`, `continue`, `yield` and `return`,
//! against an interpreter that walks the structured instructions one thread at a time: it knows
//! neither masks nor columns nor the flat program.

use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::random::split_mix_64;
use invar_ir::{
    Access, InstKind, Kernel, KernelBuilder, Memory, Module, Op, Place, Region, Scalar, Value,
    verify,
};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        split_mix_64(&mut self.0) % n
    }
}

const OUTPUTS: u32 = 4;
const THREADS: u32 = 13;

/// Builds random code.
struct Maker {
    random: Random,
    out: Memory,
    own: Memory,
    first_output: Value,
    /// Instructions left to build.
    budget: u32,
}

impl Maker {
    fn pick(&mut self, values: &[Value]) -> Value {
        values[self.random.below(values.len() as u64) as usize]
    }

    fn pick_some(&mut self, values: &[Value], count: usize) -> Vec<Value> {
        (0..count).map(|_| self.pick(values)).collect()
    }

    fn condition(&mut self, k: &mut KernelBuilder, values: &[Value]) -> Value {
        let (a, b) = (self.pick(values), self.pick(values));
        let three = k.const_u32(3);
        let (a, b) = (k.rem(a, three), k.rem(b, three));
        if self.random.below(2) == 0 {
            k.lt(a, b)
        } else {
            k.eq(a, b)
        }
    }

    /// A block of code that sees `values`; `carried` is how many values the loop around it carries,
    /// after its counter.
    fn block(
        &mut self,
        k: &mut KernelBuilder,
        values: &[Value],
        depth: u32,
        carried: Option<(usize, Value)>,
    ) -> Vec<Value> {
        let mut values = values.to_vec();
        for _ in 0..2 + self.random.below(8) {
            if self.budget == 0 || k.terminated() {
                break;
            }
            self.budget -= 1;
            self.statement(k, &mut values, depth, carried);
        }
        values
    }

    fn statement(
        &mut self,
        k: &mut KernelBuilder,
        values: &mut Vec<Value>,
        depth: u32,
        carried: Option<(usize, Value)>,
    ) {
        match self.random.below(if depth == 0 { 4 } else { 12 }) {
            0 => {
                let (a, b) = (self.pick(values), self.pick(values));
                let v = match self.random.below(3) {
                    0 => k.add(a, b),
                    1 => k.mul(a, b),
                    _ => k.rem(a, b),
                };
                values.push(v);
            }
            1 => {
                let c = k.const_u32(self.random.below(9) as u32);
                values.push(c);
            }
            2 => {
                // Places of the thread's own: a race-free buffer row, and an array of the thread's.
                let four = k.const_u32(OUTPUTS);
                let slot = self.pick(values);
                let slot = k.rem(slot, four);
                let value = self.pick(values);
                if self.random.below(2) == 0 {
                    let at = k.add(self.first_output, slot);
                    k.store(Place::element(self.out, at), value);
                } else {
                    k.store(Place::element(self.own, slot), value);
                }
            }
            3 => {
                let four = k.const_u32(OUTPUTS);
                let slot = self.pick(values);
                let slot = k.rem(slot, four);
                let v = if self.random.below(2) == 0 {
                    let at = k.add(self.first_output, slot);
                    k.load(Place::element(self.out, at))
                } else {
                    k.load(Place::element(self.own, slot))
                };
                values.push(v);
            }
            4..=6 => {
                let condition = self.condition(k, values);
                let results = self.random.below(3) as usize;
                let mut regions = Vec::new();
                for _ in 0..2 {
                    k.open_region(&[]);
                    let inner = self.block(k, values, depth - 1, carried);
                    self.end(k, &inner, carried);
                    let given = self.pick_some(&inner, results);
                    k.yield_(&given);
                    regions.push(k.close_region());
                }
                let otherwise = regions.pop().unwrap();
                let then = regions.pop().unwrap();
                let yields = |r: &Region| {
                    matches!(r.insts.last().map(|i| &i.kind), Some(InstKind::Yield(_)))
                };
                let some = yields(&then) || yields(&otherwise);
                let given = k.if_regions(condition, then, otherwise);
                if some {
                    values.extend(given);
                }
            }
            7 | 8 => {
                let (lower, upper) = (self.pick(values), self.pick(values));
                let seven = k.const_u32(7);
                let (lower, upper) = (k.rem(lower, seven), k.rem(upper, seven));
                let step = k.const_u32(1 + self.random.below(3) as u32);
                let count = self.random.below(3) as usize;
                let init = self.pick_some(values, count);
                let outer = values.clone();
                let given = k.for_(lower, upper, step, &init, |k, index, own| {
                    let mut seen = outer.clone();
                    seen.push(index);
                    seen.extend(own);
                    // A `for` has no counter among its carried values.
                    let inner = self.block(k, &seen, depth - 1, Some((count, index)));
                    self.pick_some(&inner, count)
                });
                values.extend(given);
            }
            _ => {
                // A loop that ends by itself: its first carried value counts the iterations.
                let zero = k.const_u32(0);
                let one = k.const_u32(1);
                let limit = k.const_u32(1 + self.random.below(6) as u32);
                let extra = self.random.below(2) as usize;
                let mut init = vec![zero];
                init.extend(self.pick_some(values, extra));
                let outer = values.clone();
                let given = k.loop_(&init, |k, own| {
                    let mut seen = outer.clone();
                    seen.extend(own);
                    let go = k.lt(own[0], limit);
                    k.if_else(go, |_| {}, |k| k.break_(own));
                    let next = k.add(own[0], one);
                    let inner = self.block(k, &seen, depth - 1, None);
                    let mut all = vec![next];
                    all.extend(self.pick_some(&inner, extra));
                    all
                });
                values.extend(given);
            }
        }
    }

    /// Perhaps leaves the loop, its iteration or the kernel.
    fn end(&mut self, k: &mut KernelBuilder, values: &[Value], carried: Option<(usize, Value)>) {
        if k.terminated() {
            return;
        }
        match (self.random.below(8), carried) {
            (0, Some((count, _))) => {
                let given = self.pick_some(values, count);
                k.break_(&given);
            }
            (1, Some((count, _))) => {
                let given = self.pick_some(values, count);
                k.continue_(&given);
            }
            (2, _) if self.random.below(3) == 0 => k.return_(),
            _ => {}
        }
    }
}

fn make(seed: u64) -> Module {
    let mut k = KernelBuilder::new(Module::default(), "k");
    let out = k.buffer("out", Access::ReadWrite, Scalar::U32);
    let own = k.alloc_thread("own", Scalar::U32, OUTPUTS);
    let i = k.thread_index_in_threadgroup();
    let four = k.const_u32(OUTPUTS);
    let first_output = k.mul(i, four);
    let mut maker = Maker {
        random: Random(seed),
        out,
        own,
        first_output,
        budget: 60,
    };
    let values = vec![i, four];
    let values = maker.block(&mut k, &values, 4, None);
    if !k.terminated() {
        let last = maker.pick(&values);
        k.store(Place::element(out, first_output), last);
    }
    k.finish().expect("builds")
}

// ---- the other interpreter: one thread, straight from the definition ----

enum Flow {
    Yield(Vec<u64>),
    Break(Vec<u64>),
    Continue(Vec<u64>),
    Return,
}

struct Thread<'a> {
    values: Vec<u64>,
    number: u64,
    own: Vec<u64>,
    out: &'a mut [u32],
}

impl Thread<'_> {
    fn get(&self, v: Value) -> u64 {
        self.values[v.0 as usize]
    }

    fn all(&self, list: &[Value]) -> Vec<u64> {
        list.iter().map(|v| self.get(*v)).collect()
    }

    fn set(&mut self, list: &[Value], given: &[u64]) {
        for (v, x) in list.iter().zip(given) {
            self.values[v.0 as usize] = *x;
        }
    }

    fn region(&mut self, region: &Region) -> Flow {
        for inst in &region.insts {
            match &inst.kind {
                InstKind::Const(c) => self.set(&inst.results, &[c.bits]),
                InstKind::Op { op, args, .. } => {
                    let a: Vec<u32> = self.all(args).iter().map(|x| *x as u32).collect();
                    let x = match op {
                        Op::Add => a[0].wrapping_add(a[1]),
                        Op::Mul => a[0].wrapping_mul(a[1]),
                        Op::Rem => a[0].checked_rem(a[1]).unwrap_or(0),
                        Op::Lt => u32::from(a[0] < a[1]),
                        Op::Eq => u32::from(a[0] == a[1]),
                        Op::ThreadIndexInThreadgroup => self.number as u32,
                        other => panic!("{other} is not made"),
                    };
                    self.set(&inst.results, &[x.into()]);
                }
                InstKind::Alloc(_) => self.own.fill(0),
                InstKind::Load(place) => {
                    let at = self.get(place.index) as usize;
                    let x = match place.memory {
                        Memory::Param(_) => self.out[at].into(),
                        Memory::Alloc(_) | Memory::Constant(_) => self.own[at],
                    };
                    self.set(&inst.results, &[x]);
                }
                InstKind::Store { place, value } => {
                    let (at, x) = (self.get(place.index) as usize, self.get(*value));
                    match place.memory {
                        Memory::Param(_) => self.out[at] = x as u32,
                        Memory::Alloc(_) | Memory::Constant(_) => self.own[at] = x,
                    }
                }
                InstKind::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let side = if self.get(*condition) != 0 {
                        then
                    } else {
                        otherwise
                    };
                    match self.region(side) {
                        Flow::Yield(given) => self.set(&inst.results, &given),
                        leaves => return leaves,
                    }
                }
                InstKind::For {
                    lower,
                    upper,
                    step,
                    init,
                    body,
                } => {
                    let (mut i, upper, step) =
                        (self.get(*lower), self.get(*upper), self.get(*step));
                    let mut carried = self.all(init);
                    while i < upper {
                        self.set(&body.params[..1], &[i]);
                        self.set(&body.params[1..], &carried);
                        match self.region(body) {
                            Flow::Yield(next) | Flow::Continue(next) => carried = next,
                            Flow::Break(given) => {
                                carried = given;
                                break;
                            }
                            Flow::Return => return Flow::Return,
                        }
                        i += step;
                    }
                    self.set(&inst.results, &carried);
                }
                InstKind::Loop { init, body } => {
                    let mut carried = self.all(init);
                    loop {
                        self.set(&body.params, &carried);
                        match self.region(body) {
                            Flow::Yield(next) | Flow::Continue(next) => carried = next,
                            Flow::Break(given) => {
                                self.set(&inst.results, &given);
                                break;
                            }
                            Flow::Return => return Flow::Return,
                        }
                    }
                }
                InstKind::Yield(list) => return Flow::Yield(self.all(list)),
                InstKind::Break(list) => return Flow::Break(self.all(list)),
                InstKind::Continue(list) => return Flow::Continue(self.all(list)),
                InstKind::Return => return Flow::Return,
                other => panic!("{other:?} is not made"),
            }
        }
        Flow::Return
    }
}

fn by_threads(kernel: &Kernel) -> Vec<u32> {
    let mut out = vec![0; (THREADS * OUTPUTS) as usize];
    for number in 0..THREADS.into() {
        let mut thread = Thread {
            values: vec![0; kernel.values.len()],
            number,
            own: vec![0; OUTPUTS as usize],
            out: &mut out,
        };
        thread.region(&kernel.body);
    }
    out
}

#[test]
fn masks_do_what_each_thread_alone_would() {
    let mut different = std::collections::HashSet::new();
    for seed in 0..1500 {
        let module = make(seed);
        let expected = by_threads(&module.kernels[0]);
        let module = verify(module).unwrap_or_else(|e| panic!("program {seed}: {e}"));
        let case = seed % 4;
        let options = Options {
            seed: case,
            simdgroup_size: Some([4, 8, 32, 128][case as usize]),
            ..Options::default()
        };
        let mut args = [Arg::zeros((THREADS * OUTPUTS * 4) as usize)];
        run(
            &module,
            "k",
            &Dispatch::linear(THREADS, THREADS),
            &mut args,
            &options,
            &mut [],
        )
        .unwrap_or_else(|e| panic!("program {seed}: {e}"));
        let actual: Vec<u32> = args[0]
            .bytes()
            .chunks(4)
            .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
            .collect();
        assert_eq!(actual, expected, "program {seed}:\n{}", *module);
        different.insert(expected);
    }
    // Programs that all do the same would show nothing.
    assert!(
        different.len() > 500,
        "only {} different results",
        different.len()
    );
}
