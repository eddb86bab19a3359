//! The op table: one row for each elementwise, simdgroup, quadgroup and query operation.
//!
//! A row says all there is to say of an operation: its name, what it takes and gives, how it is
//! computed (an evaluator, or the expansion that defines it), how far from exact it may be, over
//! which threads its result is uniform, what a device must have for it, and its documentation.
//! The builder's methods, the parser, the printer, the verifier, the constant folder and the
//! reference machine all read the row; nothing else lists operations.
//!
//! Files: `table.rs` holds the rows, `signature.rs` the rules for types, `instances.rs` every type
//! that they admit, `eval.rs` the evaluators of columns of scalars, `lanes.rs` the one between
//! lanes, `evaluate.rs` operations on columns of whole values; expansions live in
//! [`crate::expand`]. Instructions with an effect, a region or a memory operand are not here but in
//! [`crate::InstKind`].

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::builder::KernelBuilder;
use crate::inst::{Scope, Value};
use crate::types::{Scalar, Type};

pub mod eval;
pub mod evaluate;
mod instances;
pub mod lanes;
mod scalar;
mod signature;
mod table;

pub use instances::Instance;
pub use signature::{Classes, Signature, SignatureError};
pub use table::Op;

/// What an operation takes beside values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Imm {
    /// Nothing.
    None,
    /// The result's type: `cast f32 %x`.
    Type(Type),
    /// A component of a grid position or size: `thread_position_in_grid x`.
    Dim(Dim),
    /// Components in order: `swizzle zyx %v`.
    Swizzle(Swizzle),
}

/// A component of a grid position or size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Dim {
    /// The first, which varies fastest.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

impl Dim {
    /// All three.
    pub const ALL: [Dim; 3] = [Dim::X, Dim::Y, Dim::Z];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Dim::X => "x",
            Dim::Y => "y",
            Dim::Z => "z",
        }
    }
}

/// One to four components of a vector, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct Swizzle {
    components: [u8; 4],
    count: u8,
}

impl Swizzle {
    /// The swizzle of that name, such as `x`, `zyx` or `rgba`; `None` for anything else.
    pub fn parse(name: &str) -> Option<Swizzle> {
        let mut components = [0; 4];
        if name.is_empty() || name.len() > 4 {
            return None;
        }
        for set in ["xyzw", "rgba"] {
            if name.chars().all(|c| set.contains(c)) {
                for (slot, c) in components.iter_mut().zip(name.chars()) {
                    *slot = set.find(c)? as u8;
                }
                return Some(Swizzle {
                    components,
                    count: name.len() as u8,
                });
            }
        }
        None
    }

    /// The swizzle of those components, each below 4; `None` unless there are 1 to 4.
    pub fn new(list: &[u8]) -> Option<Swizzle> {
        let mut components = [0; 4];
        if list.is_empty() || list.len() > 4 || list.iter().any(|&c| c > 3) {
            return None;
        }
        components[..list.len()].copy_from_slice(list);
        Some(Swizzle {
            components,
            count: list.len() as u8,
        })
    }

    /// The components, each below 4.
    pub fn components(&self) -> &[u8] {
        &self.components[..usize::from(self.count)]
    }
}

impl From<Swizzle> for Vec<u8> {
    fn from(swizzle: Swizzle) -> Vec<u8> {
        swizzle.components().to_vec()
    }
}

impl TryFrom<Vec<u8>> for Swizzle {
    type Error = &'static str;

    fn try_from(components: Vec<u8>) -> Result<Swizzle, Self::Error> {
        Swizzle::new(&components).ok_or("these are not components")
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.components()
            .iter()
            .try_for_each(|&c| f.write_str(["x", "y", "z", "w"][usize::from(c)]))
    }
}

impl From<()> for Imm {
    fn from((): ()) -> Imm {
        Imm::None
    }
}

impl From<Type> for Imm {
    fn from(ty: Type) -> Imm {
        Imm::Type(ty)
    }
}

impl From<Dim> for Imm {
    fn from(dim: Dim) -> Imm {
        Imm::Dim(dim)
    }
}

impl From<Swizzle> for Imm {
    fn from(swizzle: Swizzle) -> Imm {
        Imm::Swizzle(swizzle)
    }
}

/// Evaluates an operation on columns of scalars: `out[i]` from `args[k][i]`. `from` is the scalar
/// type of the first operand, `to` that of the result. Scalars are bits in the low end of a `u64`,
/// the bits above the type's width 0.
pub type Evaluator = fn(from: Scalar, to: Scalar, args: &[&[u64]], out: &mut [u64]);

/// Writes an operation in terms of others, at the builder's current place.
pub type Expansion = fn(&mut KernelBuilder, imm: Imm, args: &[Value]) -> Value;

/// How an operation is computed.
#[derive(Clone, Copy)]
pub enum Meaning {
    /// Component by component, by an evaluator: the correctly rounded basic operations.
    Eval(Evaluator),
    /// By other operations, which define it (A10).
    Expand(Expansion),
    /// Moves components or bits about and computes nothing: construct, extract, insert, swizzle,
    /// as_type ([`evaluate::as_type`]).
    Arrange,
    /// Exchanges values between the lanes of a simdgroup or quadgroup ([`lanes::evaluate`]).
    Lanes(Group, LaneRule),
    /// Asks where a thread stands.
    Query,
}

/// What an operation that arranges ([`Meaning::Arrange`]) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Puts components or columns together.
    Construct,
    /// Takes one component or column.
    Extract,
    /// Replaces one component or column.
    Insert,
    /// Names components in order.
    Swizzle(Swizzle),
    /// Takes the bits for another type's.
    AsType,
}

/// Between whom lanes exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A simdgroup.
    Simdgroup,
    /// A quadgroup: consecutive fours.
    Quadgroup,
}

/// What lanes exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneRule {
    /// Combines all lanes by xor 1, 2, 4, ... (A11); missing lanes give the identity (X6,
    /// [`lanes::identity`]).
    Reduce(Op),
    /// Scans by doubling (A11), with the lane's own value.
    InclusiveScan(Op),
    /// The inclusive scan of the lane before; the first lane gets 0 of a sum, 1 of a product
    /// ([`lanes::scan_start`]).
    ExclusiveScan(Op),
    /// From the lane whose number is the second operand; 0 from a lane that does not exist.
    Shuffle,
    /// From the lane that many places higher; 0 from a lane that does not exist.
    ShuffleDown,
    /// From the lane that many places lower; 0 from a lane that does not exist.
    ShuffleUp,
    /// From the lane whose number is one's own xor the second operand; 0 from a lane that does not
    /// exist.
    ShuffleXor,
    /// From the lane that many places higher, counted around the group's full size; 0 from a lane
    /// that does not exist.
    RotateDown,
    /// From the lane that many places lower, counted around the group's full size; 0 from a lane
    /// that does not exist.
    RotateUp,
    /// From the lane whose number is the second operand of the lowest lane; 0 from a lane that does
    /// not exist.
    Broadcast,
    /// From the lowest lane.
    BroadcastFirst,
    /// One bit a lane.
    Ballot,
    /// Whether it holds for every existing lane.
    All,
    /// Whether it holds for some lane.
    Any,
}

/// How far a result may be from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accuracy {
    /// Exact, or correctly rounded.
    Exact,
    /// The expansion's largest error in units in the last place: measured over all inputs for f32
    /// functions of one argument, over the golden and random inputs elsewhere. f16 and bf16 go
    /// through f32 and are rounded once more.
    Ulp {
        /// For f32.
        f32: f32,
        /// For f64.
        f64: f32,
    },
    /// The result is a sum whose terms may cancel: its largest error in units in the last place of
    /// the sum of the terms' magnitudes. f16 and bf16 go through f32 and are rounded once more.
    Terms(f32),
    /// As `Ulp`, or, where that is more, 2^-42 (f32) or 2^-100 (f64) of the sum of the terms'
    /// magnitudes: the result is a sum whose terms may cancel, and what rounding loses of them is kept,
    /// to about twice the digits of the format. f16 and bf16 go through f32 and are rounded once more.
    Twofold(f32),
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accuracy::Exact => f.write_str("exact or correctly rounded"),
            Accuracy::Ulp { f32, f64 } if f32 == f64 => write!(f, "at most {f32} ulp"),
            Accuracy::Ulp { f32, f64 } => {
                write!(f, "at most {f32} ulp in f32, {f64} in f64")
            }
            Accuracy::Terms(bound) => {
                write!(f, "at most {bound} ulp of the sum of its terms' magnitudes")
            }
            Accuracy::Twofold(bound) => write!(
                f,
                "at most {bound} ulp or, where its terms cancel and that is more, 2^-42 (in f64 2^-100) \
                 of the sum of their magnitudes"
            ),
        }
    }
}

/// Over which threads a result is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultUniformity {
    /// Over those over which all operands are.
    Operands,
    /// Over this scope at least.
    Over(Scope),
    /// Differs from thread to thread.
    Varying,
}

/// What a device must have to run an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Nothing but its operand types.
    Core,
    /// Simdgroups that X2 can describe.
    Simdgroup,
    /// Quadgroups.
    Quadgroup,
}

/// A row of the op table.
pub struct OpRow {
    /// Its operation.
    pub op: Op,
    /// Its name in the text form, in Metal's dialect.
    pub name: &'static str,
    /// What its operands are called; empty where any number may stand there.
    pub operands: &'static [&'static str],
    /// What it takes and gives.
    pub signature: Signature,
    /// How it is computed.
    pub meaning: Meaning,
    /// How exact it is.
    pub accuracy: Accuracy,
    /// Over whom its result is uniform.
    pub uniformity: ResultUniformity,
    /// What a device needs for it.
    pub capability: Capability,
    /// Its documentation, in Markdown.
    pub doc: &'static str,
}

impl OpRow {
    /// Its documentation for those who read it elsewhere than in rustdoc, whose links lead nowhere there:
    /// `` [`min`](KernelBuilder::min) `` is `` `min` ``.
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self
            .doc
            .lines()
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        let lines = lines.join("\n");
        let mut out = String::new();
        let mut rest = lines.trim();
        while let Some((before, from)) = rest.split_once('[') {
            out.push_str(before);
            let link = from
                .split_once("](KernelBuilder::")
                .and_then(|(name, to)| Some((name, to.split_once(')')?.1)))
                .filter(|(name, _)| !name.contains(['[', ']']));
            match link {
                Some((name, after)) => {
                    out.push_str(name);
                    rest = after;
                }
                None => {
                    out.push('[');
                    rest = from;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

impl Op {
    /// Its row.
    pub fn row(self) -> &'static OpRow {
        &table::TABLE[self as usize]
    }

    /// Its name in the text form.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Every operation, in the order of the table.
    pub fn all() -> impl ExactSizeIterator<Item = Op> {
        table::TABLE.iter().map(|row| row.op)
    }

    /// The operation of that name.
    pub fn from_name(name: &str) -> Option<Op> {
        use std::collections::HashMap;
        use std::sync::LazyLock;
        static BY_NAME: LazyLock<HashMap<&'static str, Op>> =
            LazyLock::new(|| table::TABLE.iter().map(|row| (row.name, row.op)).collect());
        BY_NAME.get(name).copied()
    }

    /// What it does, if it arranges components or bits; `None` if it computes, exchanges or asks.
    pub fn arrangement(self, imm: Imm) -> Option<Arrangement> {
        match (self, imm) {
            (Op::Construct, _) => Some(Arrangement::Construct),
            (Op::Extract, _) => Some(Arrangement::Extract),
            (Op::Insert, _) => Some(Arrangement::Insert),
            (Op::Swizzle, Imm::Swizzle(swizzle)) => Some(Arrangement::Swizzle(swizzle)),
            (Op::AsType, _) => Some(Arrangement::AsType),
            (_, _) => None,
        }
    }

    /// The type of its result for operands of these types.
    ///
    /// # Errors
    /// The operand that does not fit, and what was expected.
    pub fn result_type(self, imm: Imm, args: &[Type]) -> Result<Type, SignatureError> {
        self.row().signature.result_type(imm, args)
    }
}

/// By its name, which later versions of the table have too.
impl Serialize for Op {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Op, D::Error> {
        let name = <&str>::deserialize(from)?;
        let unknown = || D::Error::custom(format_args!("there is no operation `{name}`"));
        Op::from_name(name).ok_or_else(unknown)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
