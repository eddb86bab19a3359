//! What is known of a kernel under proof, and what decides questions of it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use invar_ir::{
    Access, AccessMode, AddressSpace, Dim, Kernel, Memory, Module, Step, Uniformity, Value, Values,
    Width,
};

use crate::certificate::{self, Proof};
use crate::condition::Condition;
use crate::held::AllReached;
use crate::iterations::Unrolled;
use crate::launch::Launch;
use crate::linear::{Formula, Problem};
use crate::query::Query;
use crate::shape::{Id, Iteration, Iterations, Shape};
use crate::solve::{Answer, Limits, solve_counted};
use crate::thread::Thread;

/// What holds of an integer that a loop carries, in every iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// At least what it began with.
    NotBelow,
    /// At most what it began with.
    NotAbove,
    /// Less than a value that is one for all iterations.
    Below(Value),
    /// It is at most this value, with which it is compared: a loop that ends where it is that.
    AtMost(Value),
    /// What it began with, and this much more each iteration.
    Step(i128),
    /// The same with a value that is one for all iterations.
    Stride(Value),
}

/// An access of a kernel, as the prover sees it.
#[derive(Clone, Debug)]
pub struct Site<'k> {
    /// The instruction.
    pub id: Id,
    /// To what.
    pub memory: Memory,
    /// How.
    pub mode: AccessMode,
    /// The first element; of a texel or a sample the first coordinate.
    pub index: Value,
    /// How many elements follow it, and how.
    pub extent: Extent,
    /// The way into the element.
    pub path: &'k [Step],
}

/// A component or column of a value that an instruction takes or replaces by an index, which is out of bounds
/// like that of an element of an array.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The instruction.
    pub id: Id,
    /// Which.
    pub index: Value,
    /// How many the value has.
    pub count: i128,
    /// Whether it is taken, not replaced.
    pub is_taken: bool,
}

/// An offset in bytes that has to be a multiple (L4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The instruction that says so.
    pub id: Id,
    /// The offset.
    pub value: Value,
    /// Of what, if that is a constant.
    pub of: Option<i128>,
}

/// How many elements an access touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A place's width.
    Width(Width),
    /// As many as a value says.
    Count(Value),
    /// 8 rows of 8, so far apart; by lanes that are not specified (O6).
    Matrix(Value),
    /// A texel.
    Texel(Texel),
    /// Any texels of a texture: a sample. Of an array, those of this element.
    Sample(Option<Value>),
    /// Unknown: an async copy.
    Open,
}

/// Where a texel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texel {
    /// Its coordinates.
    pub at: Values,
    /// Its level, if not the first.
    pub level: Option<Value>,
}

/// A way in which an access may be out of bounds.
#[derive(Clone, Copy, Debug)]
pub struct Direction {
    /// The index that says where it is.
    pub index: Value,
    /// Among what.
    pub among: Among,
}

/// What an index counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Elements of the object.
    Elements,
    /// Texels in a direction.
    Texels(Dim),
    /// Elements of an array of textures.
    OfArray,
    /// Samples of a texel.
    Samples,
    /// Levels of a texture.
    Levels,
    /// So many parts of an array, a vector or a matrix, or faces of a cube.
    Parts(i128),
}

/// How two threads that meet are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// Of one threadgroup.
    SameGroup,
    /// Of one simdgroup.
    SameSimdgroup,
    /// Of two simdgroups of one threadgroup.
    OtherSimdgroup,
    /// Of two threadgroups.
    OtherGroup,
}

/// Two accesses that may touch one location without order.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The first access, by its place in the list, and the iterations of its loops.
    pub a: (usize, Iterations),
    /// The second.
    pub b: (usize, Iterations),
    /// Whose they are.
    pub relation: Relation,
}

/// How a question came out.
#[derive(Clone, Debug)]
pub enum Finding {
    /// It cannot be, if these conditions hold (by their places).
    Excluded(BTreeSet<usize>),
    /// It can be in a launch with these numbers, as far as the model goes.
    Possible(Box<Launch>),
    /// Not found out.
    Open,
}

impl Finding {
    /// That none of these can be, or the first that may.
    pub fn of_all(findings: impl Iterator<Item = Finding>) -> Finding {
        let mut conditions = BTreeSet::new();
        for finding in findings {
            match finding {
                Finding::Excluded(more) => conditions.extend(more),
                possible @ (Finding::Possible(_) | Finding::Open) => return possible,
            }
        }
        Finding::Excluded(conditions)
    }
}

/// What decides questions.
#[derive(Debug)]
pub enum Engine {
    /// The solver; every proof of it is checked.
    Solver,
    /// Proofs that were written down, by the problem's fingerprint.
    Certificate(HashMap<u128, Proof>),
}

/// What a loop carries at the beginning of each iteration, by iterations: none where constants do not say in all of
/// them.
pub type Table = Vec<Vec<Option<i128>>>;

/// Whether a stride holds under these conditions, and the places of those that it needs.
pub type Strided = (Vec<Condition>, bool, BTreeSet<usize>);

/// A kernel under proof.
pub struct Subject<'k> {
    /// Its module.
    pub module: &'k Module,
    /// The kernel.
    pub kernel: &'k Kernel,
    /// Its structure.
    pub shape: Shape<'k>,
    /// Over which threads its values are the same.
    pub uniformity: Uniformity,
    /// Dimensions that it does not ask for: nothing is proved of a grid with more than 1 in them.
    pub unused: [bool; 3],
    /// Whether it sees nothing of threadgroups.
    pub flat: bool,
    /// Its accesses.
    pub sites: Vec<Site<'k>>,
    /// The parts of values that it takes or replaces.
    pub parts: Vec<Part>,
    /// What has to be a multiple, once for all of a list of instructions.
    pub offsets: Vec<Offset>,
    /// What is assumed of the launch.
    pub conditions: RefCell<Vec<Condition>>,
    /// Who decides.
    pub engine: Engine,
    /// The proofs of the problems decided so far.
    pub proofs: RefCell<BTreeMap<u128, Option<Proof>>>,
    /// The problems of which the proofs are needed.
    pub needed: RefCell<BTreeSet<u128>>,
    /// Conditions used by proofs that values do not wrap, of the question at hand.
    pub used: RefCell<BTreeSet<usize>>,
    pub(crate) held: RefCell<AllReached>,
    pub(crate) tables: RefCell<HashMap<Id, Table>>,
    pub(crate) unrolled: Unrolled,
    pub(crate) invariants: RefCell<HashMap<(Id, usize), Vec<Invariant>>>,
    /// Strides that hold under conditions: those, whether it does, and which of them it needs.
    pub(crate) strides: RefCell<HashMap<(Id, usize), Strided>>,
    pub(crate) proving_invariant: Cell<bool>,
    /// Sizes that indices stay below.
    pub tops: RefCell<BTreeSet<i128>>,
    /// How many problems were put to the engine.
    pub asked: Cell<usize>,
    /// How many pivots those took.
    pub pivots: Cell<u64>,
    /// Whether questions get less time: many conditions at once make each step dear.
    pub hurried: Cell<bool>,
    /// The problems that the solver decided, if they are to be kept: whether it refuted each.
    pub decided: RefCell<Option<Vec<(Problem, bool)>>>,
}

pub const ASIDE: Limits = Limits {
    nodes: 120,
    pivots: 4_000,
};
pub const MAIN: Limits = Limits {
    nodes: 600,
    pivots: 20_000,
};

/// A number that tells problems apart: FNV-1a of 128 bits over their text.
fn fingerprint(problem: &Problem) -> u128 {
    struct Hash(u128);
    impl std::fmt::Write for Hash {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for byte in text.bytes() {
                self.0 ^= u128::from(byte);
                self.0 = self
                    .0
                    .wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            }
            Ok(())
        }
    }
    let mut hash = Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    let products: BTreeMap<_, _> = problem.products.factors.iter().collect();
    // Writing to it never fails.
    let _ = std::fmt::Write::write_fmt(&mut hash, format_args!("{products:?}{:?}", problem.facts));
    hash.0
}

impl Subject<'_> {
    /// Puts a problem to the engine: whether it is refuted, by which of its facts.
    pub fn refuted(&self, problem: &Problem, limits: Limits) -> Result<BTreeSet<usize>, Answer> {
        self.asked.set(self.asked.get() + 1);
        let key = fingerprint(problem);
        let proof = match &self.engine {
            Engine::Certificate(proofs) => proofs.get(&key).cloned().ok_or(Answer::Unknown)?,
            Engine::Solver => {
                // With other hints it may be found.
                let failed = key.wrapping_add(problem.twins.len() as u128 + 1);
                let before = self.proofs.borrow().get(&key).cloned();
                let has_failed = self.proofs.borrow().get(&failed) == Some(&None);
                match before {
                    Some(Some(proof)) => proof,
                    _unproved if has_failed => return Err(Answer::Unknown),
                    _unproved => match self.solved(problem, limits) {
                        Answer::Refuted(proof) => proof,
                        Answer::Unknown if self.hurried.get() => return Err(Answer::Unknown),
                        Answer::Unknown => {
                            self.proofs.borrow_mut().insert(failed, None);
                            return Err(Answer::Unknown);
                        }
                        values @ Answer::Values(_) => return Err(values),
                    },
                }
            }
        };
        match certificate::check(problem, &proof) {
            Ok(used) => {
                self.proofs.borrow_mut().insert(key, Some(proof));
                self.needed.borrow_mut().insert(key);
                Ok(used)
            }
            Err(_) => Err(Answer::Unknown),
        }
    }

    /// What the solver says of a problem.
    pub fn solved(&self, problem: &Problem, limits: Limits) -> Answer {
        let (answer, pivots) = solve_counted(problem, limits);
        self.pivots.set(self.pivots.get() + pivots);
        if let Some(decided) = &mut *self.decided.borrow_mut() {
            let kept = |refuted| (problem.clone(), refuted);
            match answer {
                Answer::Refuted(_) => decided.push(kept(true)),
                Answer::Values(_) => decided.push(kept(false)),
                Answer::Unknown => {}
            }
        }
        answer
    }

    /// Whether something cannot be where a thread is.
    pub fn excludes(&self, q: &Query, t: &Thread, bad: Formula) -> bool {
        let mut problem = q.problem.clone();
        problem.facts.extend(t.path.iter().cloned());
        problem.facts.push(bad);
        match self.refuted(&problem, ASIDE) {
            Ok(used) => {
                let conditions = self.conditions.borrow().len();
                // Conditions are the first facts of every question.
                let mut all = self.used.borrow_mut();
                let marks = q.condition_facts.iter();
                let marks = marks.filter(|(fact, _)| used.contains(fact));
                all.extend(marks.map(|(_, c)| *c).filter(|c| *c < conditions));
                all.extend(q.ways(&problem, &used));
                true
            }
            Err(_) => false,
        }
    }

    /// Any iteration of every loop around an instruction.
    pub fn any_iterations(&self, id: Id) -> Iterations {
        let loops = self.shape.loops_around(id).into_iter();
        loops.map(|l| (l, Iteration::Any)).collect()
    }

    /// The address space of an object, and how it is accessed.
    pub fn space(&self, memory: Memory) -> Option<(AddressSpace, Access)> {
        let info = self.module.memory(self.kernel, memory)?;
        Some((info.space, info.access))
    }

    /// The values that a path into an element is made of.
    pub fn steps(path: &[Step]) -> impl Iterator<Item = Value> + '_ {
        path.iter().filter_map(|step| match step {
            Step::Index(value) => Some(*value),
            Step::Field(_) => None,
        })
    }

    /// Whether races on a space's objects can be.
    pub fn is_shared(space: AddressSpace) -> bool {
        matches!(
            space,
            AddressSpace::Device
                | AddressSpace::Threadgroup
                | AddressSpace::Texture
                | AddressSpace::Imageblock
        )
    }
}
