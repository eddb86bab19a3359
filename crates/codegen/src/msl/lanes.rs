//! Exchange between the lanes of a simdgroup or quadgroup (A11, X6).
//!
//! Metal's own functions serve where their order of combining cannot be seen: on integers of up to 32 bits. Floats
//! are combined by shuffles in A11's order. With a partial simdgroup the xor tree has lanes that do not exist; what
//! such a lane would hold is held by the first lane of its block as well, bit for bit, since sums and products
//! commute. So each step reads the first lane of the other block, and where that one is missing the whole block is
//! and leaves the value as it is.

use std::fmt::Write as _;

use invar_ir::ops::lanes::{identity, scan_start};
use invar_ir::ops::{Group, LaneRule, Op};
use invar_ir::{Const, FloatMode, Scalar, Type, Value};

use super::types;
use super::writer::{LANES, Writer};

/// The words of a group: the prefix of Metal's functions, and its size.
fn words(group: Group) -> (&'static str, u32) {
    match group {
        Group::Simdgroup => ("simd", LANES),
        Group::Quadgroup => ("quad", 4),
    }
}

/// A scalar as something that Metal moves between lanes.
fn carried(s: Scalar, text: &str) -> String {
    match s {
        Scalar::Bool => format!("uint({text})"),
        Scalar::BF16 => format!("as_type<ushort>({text})"),
        Scalar::I64 | Scalar::U64 => format!("as_type<uint2>({text})"),
        _ => text.to_string(),
    }
}

/// The scalar back again.
fn delivered(s: Scalar, text: &str) -> String {
    match s {
        Scalar::Bool => format!("{text} != 0u"),
        Scalar::BF16 => format!("as_type<bfloat>({text})"),
        Scalar::I64 | Scalar::U64 => format!("as_type<{}>({text})", types::scalar(s)),
        _ => text.to_string(),
    }
}

impl Writer<'_> {
    pub(super) fn lanes(&mut self, result: Value, group: Group, rule: LaneRule, args: &[Value]) {
        let ty = self.ty(args[0]);
        let text = self.v(args[0]);
        let (prefix, _) = words(group);
        match rule {
            LaneRule::Ballot => {
                let text = self.with_lane_counts(&text, true);
                let bits = format!("uint({prefix}_vote::vote_t({prefix}_ballot({text})))");
                self.define(result, &format!("uint4({bits}, 0u, 0u, 0u)"));
            }
            LaneRule::All => {
                let text = self.with_lane_counts(&text, false);
                self.define(result, &format!("{prefix}_all({text})"));
            }
            LaneRule::Any => {
                let text = self.with_lane_counts(&text, true);
                self.define(result, &format!("{prefix}_any({text})"));
            }
            LaneRule::Shuffle
            | LaneRule::ShuffleDown
            | LaneRule::ShuffleUp
            | LaneRule::ShuffleXor
            | LaneRule::RotateDown
            | LaneRule::RotateUp
            | LaneRule::Broadcast => {
                let from = self.source_lane(group, rule, args[1]);
                let count = self.existing_lanes(group);
                self.shuffle_helper(group);
                let all = self.each_component(ty, &text, |_, s, x| {
                    let moved =
                        format!("invar_{prefix}_shuffle({}, {from}, {count})", carried(s, x));
                    delivered(s, &moved)
                });
                self.define(result, &all);
            }
            LaneRule::BroadcastFirst => {
                let all = match group {
                    Group::Simdgroup => self.broadcast_first(&text, ty),
                    Group::Quadgroup => self.each_component(ty, &text, |_, s, x| {
                        delivered(s, &format!("quad_shuffle({}, ushort(0))", carried(s, x)))
                    }),
                };
                self.define(result, &all);
            }
            LaneRule::Reduce(_) | LaneRule::InclusiveScan(_) | LaneRule::ExclusiveScan(_) => {
                let all = self.each_component(ty, &text, |w, s, x| w.combine(group, rule, s, x));
                self.define(result, &all);
            }
        }
    }

    /// A `bool` that is false, or true, in lanes that do not count.
    fn with_lane_counts(&mut self, text: &str, else_false: bool) -> String {
        match self.lane_counts() {
            None => text.to_string(),
            Some(counts) if else_false => format!("{counts} && {text}"),
            Some(counts) => format!("!({counts}) || {text}"),
        }
    }

    /// The value of the first lane, for all of the simdgroup.
    pub(super) fn broadcast_first(&mut self, text: &str, ty: Type) -> String {
        self.each_component(ty, text, |_, s, x| {
            delivered(s, &format!("simd_broadcast_first({})", carried(s, x)))
        })
    }

    /// A scalar, or a vector of what `f` makes of each component.
    fn each_component(
        &mut self,
        ty: Type,
        text: &str,
        mut f: impl FnMut(&mut Self, Scalar, &str) -> String,
    ) -> String {
        match ty {
            Type::Vector(s, n) => {
                let parts: Vec<String> = types::COMPONENTS[..usize::from(n)]
                    .iter()
                    .map(|c| f(self, s, &format!("{text}.{c}")))
                    .collect();
                self.make(ty, &parts)
            }
            Type::Matrix {
                scalar,
                columns,
                rows,
            } => {
                let mut parts = Vec::new();
                for k in 0..columns {
                    let column = types::column(text, scalar, &k.to_string());
                    let components: Vec<String> = types::COMPONENTS[..usize::from(rows)]
                        .iter()
                        .map(|c| f(self, scalar, &format!("{column}.{c}")))
                        .collect();
                    parts.push(self.make(Type::Vector(scalar, rows), &components));
                }
                self.make(ty, &parts)
            }
            Type::Scalar(scalar) | Type::SimdgroupMatrix { scalar, .. } => f(self, scalar, text),
            Type::Event => unreachable!("no operation takes events"),
        }
    }

    /// The thread's place in its group.
    fn own_lane(&mut self, group: Group) -> &'static str {
        self.input(match group {
            Group::Simdgroup => Op::ThreadIndexInSimdgroup,
            Group::Quadgroup => Op::ThreadIndexInQuadgroup,
        })
    }

    /// How many lanes of the thread's group exist.
    pub(super) fn existing_lanes(&mut self, group: Group) -> String {
        self.uses_lane_count = true;
        match group {
            Group::Simdgroup => "lane_count".to_string(),
            Group::Quadgroup => {
                let lane = self.input(Op::ThreadIndexInSimdgroup);
                format!("min(4u, lane_count - ({lane} & ~3u))")
            }
        }
    }

    /// Which lane is read, as a `ulong`; one that does not exist is at least as large as the group.
    fn source_lane(&mut self, group: Group, rule: LaneRule, by: Value) -> String {
        let (prefix, size) = words(group);
        let mask = size - 1;
        let text = self.v(by);
        let Type::Scalar(s) = self.ty(by) else {
            unreachable!("the signature passes only integers");
        };
        // As a `long`; far numbers of u64 stay far.
        let number = match self.constants[by.0 as usize] {
            Some(c) => c
                .scalar
                .integer(c.bits)
                .clamp(-1 << 40, 1 << 40)
                .to_string(),
            None if s == Scalar::U64 => format!("long(min({text}, 64ul))"),
            None => format!("long({text})"),
        };
        let lane = self.own_lane(group);
        match rule {
            LaneRule::Shuffle => format!("ulong({number})"),
            LaneRule::ShuffleUp => format!("ulong(long({lane}) - {number})"),
            LaneRule::ShuffleDown => format!("ulong(long({lane}) + {number})"),
            LaneRule::ShuffleXor => format!("ulong(long({lane}) ^ {number})"),
            LaneRule::RotateUp => format!("ulong(({lane} - uint({text})) & {mask}u)"),
            LaneRule::RotateDown => format!("ulong(({lane} + uint({text})) & {mask}u)"),
            LaneRule::Broadcast => {
                let near = match self.constants[by.0 as usize] {
                    Some(_) => return format!("ulong({number})"),
                    None if s == Scalar::U64 => format!("int(min({text}, 64ul))"),
                    None => format!("int(clamp(long({text}), -1l, 64l))"),
                };
                match group {
                    Group::Simdgroup => format!("ulong(long({prefix}_broadcast_first({near})))"),
                    Group::Quadgroup => format!("ulong(long(quad_shuffle({near}, ushort(0))))"),
                }
            }
            LaneRule::Reduce(_)
            | LaneRule::InclusiveScan(_)
            | LaneRule::ExclusiveScan(_)
            | LaneRule::BroadcastFirst
            | LaneRule::Ballot
            | LaneRule::All
            | LaneRule::Any => unreachable!("this rule takes no lane"),
        }
    }

    fn shuffle_helper(&mut self, group: Group) {
        let (prefix, size) = words(group);
        self.helpers.add(&format!("{prefix} shuffle"), || {
            format!(
                "// The value of a lane; 0 if there is none of that number.
template <typename T>
static inline T invar_{prefix}_shuffle(T x, ulong from, uint count) {{
    const T got = {prefix}_shuffle(x, ushort(from & {}ul));
    return from < count ? got : T();
}}",
                size - 1
            )
        });
    }

    /// A reduction or scan of one scalar.
    fn combine(&mut self, group: Group, rule: LaneRule, s: Scalar, x: &str) -> String {
        let (prefix, size) = words(group);
        let Some(op) = Self::combining(rule) else {
            unreachable!("only reductions and scans combine");
        };
        let kind = match rule {
            LaneRule::InclusiveScan(_) => "prefix_inclusive_",
            LaneRule::ExclusiveScan(_) => "prefix_exclusive_",
            _ => "",
        };
        let verb = match op {
            Op::Add => "sum",
            Op::Mul => "product",
            Op::Min => "min",
            Op::Max => "max",
            Op::And => "and",
            Op::Or => "or",
            Op::Xor => "xor",
            other => unreachable!("lanes are not combined by {other}"),
        };
        let name = format!("{prefix}_{kind}{verb}");
        let ty = types::scalar(s);
        let fast = self.kernel.float_mode == FloatMode::Fast;
        let by_metal = s == Scalar::Bool
            || (s.is_integer() && s.bits() <= 32)
            || (fast && matches!(s, Scalar::F32 | Scalar::F16));
        // Scans see only lanes before them, which exist.
        let counts = self
            .lane_counts()
            .filter(|_| by_metal && matches!(rule, LaneRule::Reduce(_)));
        let counted;
        let x = match counts {
            None => x,
            Some(counts) => {
                let bits = if s == Scalar::Bool {
                    u64::from(op == Op::And)
                } else {
                    identity(op, s)
                };
                let nothing = types::constant(Const { scalar: s, bits });
                counted = format!("{counts} ? {x} : {nothing}");
                &counted
            }
        };
        if s == Scalar::Bool {
            return format!("{name}(uint({x})) != 0u");
        }
        if s.is_integer() && s.bits() <= 32 {
            // Sums wrap; limits need the sign.
            let signed = s.is_signed_integer() && matches!(op, Op::Min | Op::Max);
            let wide = if signed { "int" } else { "uint" };
            return match s {
                Scalar::U32 => format!("{name}({x})"),
                _ => format!("{ty}({name}({wide}({x})))"),
            };
        }
        if fast && matches!(s, Scalar::F32 | Scalar::F16) {
            return format!("{name}({x})");
        }
        let lane = self.own_lane(group);
        let count = self.existing_lanes(group);
        let scalar = Type::Scalar(s);
        let operands = |a: &str, b: &str| [a.to_string(), b.to_string()];
        let reduces = matches!(rule, LaneRule::Reduce(_));
        let order = if reduces {
            operands("x", "other")
        } else {
            operands("other", "x")
        };
        let sum = self.basic(op, scalar, &[scalar, scalar], &order);
        let shuffled = |from: &str| {
            delivered(
                s,
                &format!("{prefix}_shuffle({}, ushort({from}))", carried(s, "x")),
            )
        };
        let mut text = String::new();
        let _ = writeln!(
            text,
            "// Combines lanes {}, ...",
            if reduces {
                "by xor 1, 2, 4"
            } else {
                "that are apart by 1, 2, 4"
            }
        );
        let _ = writeln!(
            text,
            "static inline {ty} invar_{name}({ty} x, uint lane, uint count) {{"
        );
        let _ = writeln!(text, "    for (uint d = 1; d < {size}; d *= 2) {{");
        if reduces {
            let _ = writeln!(text, "        const uint from = (lane ^ d) & ~(d - 1);");
            let _ = writeln!(text, "        const {ty} other = {};", shuffled("from"));
            let _ = writeln!(text, "        x = from < count ? {sum} : x;\n    }}");
        } else {
            let from = format!("(lane - d) & {}u", size - 1);
            let _ = writeln!(text, "        const {ty} other = {};", shuffled(&from));
            let _ = writeln!(text, "        x = lane >= d ? {sum} : x;\n    }}");
        }
        if matches!(rule, LaneRule::ExclusiveScan(_)) {
            let start = types::constant(Const {
                scalar: s,
                bits: scan_start(op, s),
            });
            let before = shuffled(&format!("(lane - 1) & {}u", size - 1));
            let _ = writeln!(text, "    const {ty} before = {before};");
            let _ = writeln!(text, "    return lane == 0 ? {start} : before;\n}}");
        } else {
            text.push_str("    return x;\n}");
        }
        self.helpers.add(&format!("{name} {ty}"), || text);
        format!("invar_{name}({x}, {lane}, {count})")
    }

    /// What a scan or reduction combines by.
    fn combining(rule: LaneRule) -> Option<Op> {
        match rule {
            LaneRule::Reduce(op) | LaneRule::InclusiveScan(op) | LaneRule::ExclusiveScan(op) => {
                Some(op)
            }
            LaneRule::Shuffle
            | LaneRule::ShuffleDown
            | LaneRule::ShuffleUp
            | LaneRule::ShuffleXor
            | LaneRule::RotateDown
            | LaneRule::RotateUp
            | LaneRule::Broadcast
            | LaneRule::BroadcastFirst
            | LaneRule::Ballot
            | LaneRule::All
            | LaneRule::Any => None,
        }
    }
}
