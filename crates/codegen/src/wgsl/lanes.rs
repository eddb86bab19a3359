//! Where a thread stands, and what lanes exchange.
//!
//! A simdgroup is a run of threads by their numbers (X2). Where the target's subgroups have the right
//! size the numbers come from them, and lanes exchange values by its shuffles; elsewhere simdgroups are
//! runs all the same, and lanes exchange values through threadgroup memory, which takes a barrier of the
//! whole threadgroup. Everything else is written in terms of one shuffle, in the order that A11 says.
//!
//! A lane that does not exist is never read: lanes of a reduction take the partner block's first lane,
//! which has the block's value as every lane of it has, for all operations that combine commute.

use invar_ir::ops::lanes::{identity, scan_start};
use invar_ir::ops::{Group, LaneRule};
use invar_ir::{Const, Dim, Imm, Inst, Op, Scalar, Scope, Span, Type, Value};

use super::helpers::Helper;
use super::types;
use super::types::{splat, tag, value as wgsl_type, zero};
use super::writer::{Exchange, Identity, Writer};

impl Writer<'_> {
    // ---- where a thread stands ----

    pub(super) fn query(&mut self, op: Op, imm: Imm) -> String {
        let dim = match imm {
            Imm::Dim(dim) => dim,
            Imm::None | Imm::Type(_) | Imm::Swizzle(_) => Dim::X,
        };
        let component = dim.name();
        let d = Dim::ALL.iter().position(|x| *x == dim).unwrap_or(0);
        let nominal = self.options.threadgroup_size;
        let nominal_count: u32 = nominal.iter().product();
        let size = self.simdgroup_size;
        match op {
            Op::ThreadPositionInGrid => {
                self.identity
                    .extend([Identity::Threadgroup, Identity::Position]);
                let n = nominal[d];
                format!("threadgroup.{component} * {n}u + position.{component}")
            }
            Op::ThreadPositionInThreadgroup => {
                self.identity.insert(Identity::Position);
                format!("position.{component}")
            }
            Op::ThreadIndexInThreadgroup => self.thread(),
            Op::ThreadgroupPositionInGrid => {
                self.identity.insert(Identity::Threadgroup);
                format!("threadgroup.{component}")
            }
            Op::ThreadsPerThreadgroup if self.full => format!("{}u", nominal[d]),
            Op::ThreadsPerThreadgroup => {
                self.identity.insert(Identity::Size);
                format!("threadgroup_size.{component}")
            }
            Op::DispatchThreadsPerThreadgroup => format!("{}u", nominal[d]),
            Op::ThreadsPerGrid => format!("constants.threads_{component}"),
            Op::ThreadgroupsPerGrid => format!("constants.threadgroups_{component}"),
            Op::ThreadIndexInSimdgroup => format!("{} % {size}u", self.thread()),
            Op::SimdgroupIndexInThreadgroup => format!("{} / {size}u", self.thread()),
            Op::SimdgroupsPerThreadgroup => {
                format!("({} + {}u) / {size}u", self.thread_count(), size - 1)
            }
            Op::DispatchSimdgroupsPerThreadgroup => {
                format!("{}u", nominal_count.div_ceil(size))
            }
            Op::ThreadsPerSimdgroup => format!("{size}u"),
            Op::ThreadIndexInQuadgroup => format!("{} % 4u", self.thread()),
            Op::QuadgroupIndexInThreadgroup => format!("{} / 4u", self.thread()),
            Op::QuadgroupsPerThreadgroup => format!("({} + 3u) / 4u", self.thread_count()),
            Op::DispatchQuadgroupsPerThreadgroup => format!("{}u", nominal_count.div_ceil(4)),
            other => self.lacks(
                Span::NONE,
                format!("the WGSL writer has no query `{other}`"),
            ),
        }
    }

    pub(super) fn thread(&mut self) -> String {
        self.identity.insert(Identity::Thread);
        "thread".to_string()
    }

    pub(super) fn thread_count(&mut self) -> String {
        if self.full {
            let count: u32 = self.options.threadgroup_size.iter().product();
            return format!("{count}u");
        }
        self.identity.insert(Identity::Count);
        "thread_count".to_string()
    }

    // ---- between lanes ----

    /// The name of a function by which each thread reads a value of the lane `source` of its simdgroup,
    /// which must be one of a full simdgroup's; what a missing lane has is anything.
    fn shuffle(&mut self, ty: Type) -> String {
        let name = format!("{}__shuffle", tag(ty));
        if self.helpers.has(&name) {
            return name;
        }
        let holds = wgsl_type(ty);
        let scalar = ty.component_scalar();
        match self.exchange {
            Exchange::Subgroups => {
                self.uses_subgroups = true;
                let body = match scalar {
                    Scalar::Bool => {
                        let (no, yes) = (splat_u32_like(ty, "0u"), splat_u32_like(ty, "1u"));
                        format!("subgroupShuffle(select({no}, {yes}, x), source) != {no}")
                    }
                    Scalar::I64 | Scalar::U64 if matches!(ty, Type::Scalar(_)) => {
                        let words: Vec<String> = types::to_words(scalar, "x")
                            .iter()
                            .map(|w| format!("subgroupShuffle({w}, source)"))
                            .collect();
                        types::from_words(scalar, &words)
                    }
                    Scalar::I64 | Scalar::U64 => {
                        let one = self.shuffle(Type::Scalar(scalar));
                        let parts: Vec<String> = types::parts(ty, "x")
                            .iter()
                            .map(|p| format!("{one}({p}, source)"))
                            .collect();
                        types::assemble(ty, &parts)
                    }
                    // Subgroups need not exchange 16 bits.
                    Scalar::F16 if self.options.features.f16 => {
                        let x = self.in_f32(ty, "x");
                        format!("{holds}(subgroupShuffle({x}, source))")
                    }
                    _word => "subgroupShuffle(x, source)".to_string(),
                };
                self.helper(&name, |_| {
                    format!(
                        "fn {name}(x: {holds}, source: u32) -> {holds} {{\n    return {body};\n}}\n"
                    )
                });
            }
            Exchange::Memory => {
                let thread = self.thread();
                let threads = self.threads;
                let size = self.simdgroup_size;
                let each = types::held_bytes(scalar, self.options.features)
                    * u64::from(ty.component_count());
                self.helper_bytes += each * u64::from(threads);
                self.helper(&name, |_| {
                    format!(
                        "var<workgroup> {name}_of: array<{holds}, {threads}>;\n\n\
                         fn {name}(x: {holds}, source: u32) -> {holds} {{\n    \
                         {name}_of[{thread}] = x;\n    workgroupBarrier();\n    \
                         let y = {name}_of[min({thread} / {size}u * {size}u + source, {}u)];\n    \
                         workgroupBarrier();\n    return y;\n}}\n",
                        threads - 1
                    )
                });
            }
        }
        name
    }

    /// An operation between lanes.
    pub(super) fn lanes(
        &mut self,
        inst: &Inst,
        group: Group,
        rule: LaneRule,
        args: &[Value],
    ) -> String {
        let name = inst.kind.as_op().map_or("", |(op, ..)| op.name());
        if self.exchange == Exchange::Memory && !self.threadgroup_together() {
            let why = match self.options.features.subgroup_size {
                Some(size) => format!("the target's subgroups have {size} lanes"),
                None => "the target has no subgroups".to_string(),
            };
            return self.lacks(
                inst.span,
                format!(
                    "`{name}` stands where only a part of the threadgroup comes, and simdgroups are of {}, \
                     but {why}",
                    self.simdgroup_size
                ),
            );
        }
        let ty = self.ty(args[0]);
        let value = self.value(args[0]);
        let mut operands = vec![value];
        if let Some(by) = args.get(1) {
            operands.push(self.by(rule, *by));
        }
        let helper = self.lanes_helper(name, group, rule, ty, inst.span);
        format!("{helper}({})", operands.join(", "))
    }

    /// What says which lane, as the helper takes it: an index, or a distance as `i32` that is exact as
    /// far as lanes are apart.
    fn by(&mut self, rule: LaneRule, by: Value) -> String {
        let scalar = self.ty(by).component_scalar();
        let constant = self.constant(by).map(|c| scalar.integer(c.bits));
        match rule {
            LaneRule::ShuffleUp | LaneRule::ShuffleDown if constant.is_some() => {
                format!("{}i", constant.unwrap_or(0).clamp(-256, 256))
            }
            LaneRule::RotateUp | LaneRule::RotateDown if constant.is_some() => {
                format!("{}i", constant.unwrap_or(0) & 0xff)
            }
            LaneRule::ShuffleUp | LaneRule::ShuffleDown => {
                let text = self.value(by);
                match scalar {
                    Scalar::I64 => format!("i32(clamp({text}, (-256li), 256li))"),
                    Scalar::U64 => format!("i32(u32(min({text}, 256lu)))"),
                    s if s.is_signed_integer() => format!("clamp({text}, -256i, 256i)"),
                    _unsigned => format!("i32(min({text}, 256u))"),
                }
            }
            // Only the place in the group counts.
            LaneRule::RotateUp | LaneRule::RotateDown => {
                let text = self.value(by);
                match scalar {
                    Scalar::I64 | Scalar::U64 => format!("i32(u32(u64({text}) & 0xfflu))"),
                    _short => format!("i32({text})"),
                }
            }
            _index => self.index(by),
        }
    }

    fn lanes_helper(
        &mut self,
        op: &str,
        group: Group,
        rule: LaneRule,
        ty: Type,
        span: Span,
    ) -> String {
        let name = format!("{}__{op}", tag(ty));
        if self.helpers.has(&name) {
            return name;
        }
        let size = match group {
            Group::Simdgroup => self.simdgroup_size,
            Group::Quadgroup => 4,
        };
        let holds = wgsl_type(ty);
        let thread = self.thread();
        let count = self.thread_count();
        // The place in the group, the group's first lane in the simdgroup, and how many lanes the group
        // has that exist.
        let simdgroup = self.simdgroup_size;
        let existing = if self.full {
            format!("{size}u")
        } else {
            format!("min({count} - min({thread} - place, {count}), {size}u)")
        };
        let place = format!(
            "    let place = {thread} % {size}u;\n    \
             let first = {thread} % {simdgroup}u - place;\n    \
             let count = {existing};\n"
        );
        let read = |shuffle: &str| {
            format!(
                "    return select({}, {shuffle}(x, first + min(source, {}u)), source < count);\n",
                zero_vector(ty),
                size - 1
            )
        };
        let native = self.full && self.exchange == Exchange::Subgroups && group == Group::Simdgroup;
        let (by, result, body) = match rule {
            LaneRule::Reduce(combine)
                if native && let Some(body) = self.own_reduction(combine, ty) =>
            {
                self.uses_subgroups = true;
                ("", holds.clone(), body)
            }
            LaneRule::Reduce(combine) => {
                let body = self.reduction(combine, ty, size, span);
                ("", holds.clone(), body)
            }
            LaneRule::InclusiveScan(combine) | LaneRule::ExclusiveScan(combine) => {
                let body = self.scan(rule, combine, ty, size, span);
                ("", holds.clone(), body)
            }
            LaneRule::Shuffle => {
                let shuffle = self.shuffle(ty);
                (", source: u32", holds.clone(), read(&shuffle))
            }
            LaneRule::ShuffleXor => {
                let shuffle = self.shuffle(ty);
                let body = format!("    let source = place ^ mask;\n{}", read(&shuffle));
                (", mask: u32", holds.clone(), body)
            }
            LaneRule::ShuffleUp | LaneRule::ShuffleDown => {
                let shuffle = self.shuffle(ty);
                let sign = if rule == LaneRule::ShuffleUp {
                    "-"
                } else {
                    "+"
                };
                // A negative number is large as a u32.
                let body = format!(
                    "    let source = u32(i32(place) {sign} delta);\n{}",
                    read(&shuffle)
                );
                (", delta: i32", holds.clone(), body)
            }
            LaneRule::RotateUp | LaneRule::RotateDown => {
                let shuffle = self.shuffle(ty);
                let sign = if rule == LaneRule::RotateUp { "-" } else { "+" };
                let body = format!(
                    "    let source = u32(i32(place) {sign} delta) & {}u;\n{}",
                    size - 1,
                    read(&shuffle)
                );
                (", delta: i32", holds.clone(), body)
            }
            LaneRule::Broadcast => {
                let shuffle = self.shuffle(ty);
                let index = self.shuffle(Type::U32);
                let body = format!("    let source = {index}(lane, first);\n{}", read(&shuffle));
                (", lane: u32", holds.clone(), body)
            }
            LaneRule::BroadcastFirst => {
                let shuffle = self.shuffle(ty);
                (
                    "",
                    holds.clone(),
                    format!("    return {shuffle}(x, first);\n"),
                )
            }
            LaneRule::Ballot => {
                let four = Type::Vector(Scalar::U32, 4);
                let body = if self.exchange == Exchange::Subgroups {
                    self.uses_subgroups = true;
                    let all = "subgroupBallot(x && place < count)";
                    match group {
                        Group::Simdgroup => format!("    return {all};\n"),
                        Group::Quadgroup => format!(
                            "    let all_of = {all};\n    \
                             return vec4<u32>((all_of[first / 32u] >> (first % 32u)) & 0xfu, 0u, 0u, 0u);\n"
                        ),
                    }
                } else {
                    let union = self.lanes_helper(
                        union_name(group),
                        group,
                        LaneRule::Reduce(Op::Or),
                        four,
                        span,
                    );
                    format!(
                        "    var mine = vec4<u32>();\n    \
                         mine[place / 32u] = select(0u, 1u, x) << (place % 32u);\n    \
                         return {union}(mine);\n"
                    )
                };
                ("", wgsl_type(four), body)
            }
            LaneRule::All | LaneRule::Any => {
                let body = self.vote(rule == LaneRule::All, group, span);
                ("", "bool".to_string(), body)
            }
        };
        let asks = ["place", "first", "count"].iter().any(|n| body.contains(n));
        let place = if asks { place } else { String::new() };
        self.helper(&name, |_| {
            format!("fn {name}(x: {holds}{by}) -> {result} {{\n{place}{body}}}\n")
        });
        name
    }

    /// The head of a loop over the powers of two below `size`, by which lanes are apart.
    fn each_distance(&self, size: u32) -> String {
        self.loops
            .counted(format!("d = 1u; d < {size}u; d = d * 2u"))
    }

    /// The body of a scan over `size` lanes.
    fn scan(&mut self, rule: LaneRule, combine: Op, ty: Type, size: u32, span: Span) -> String {
        let shuffle = self.shuffle(ty);
        let step = self.evaluate(
            combine,
            span,
            (ty, ty),
            &["below".into(), "all_of".into()],
            None,
        );
        let each = self.each_distance(size);
        let mut body = format!(
            "    var all_of = x;\n    {each}\n        \
             let below = {shuffle}(all_of, first + place - min(d, place));\n        \
             if (place >= d) {{\n            all_of = {step};\n        }}\n    }}\n"
        );
        if matches!(rule, LaneRule::ExclusiveScan(_)) {
            let scalar = ty.component_scalar();
            let bits = scan_start(combine, scalar);
            let text = self.literal(Const { scalar, bits });
            let start = splat(ty, &text);
            body.push_str(&format!(
                "    let before = {shuffle}(all_of, first + place - min(1u, place));\n    \
                 return select({start}, before, place > 0u);\n"
            ));
        } else {
            body.push_str("    return all_of;\n");
        }
        body
    }

    /// What all lanes make together, in a group of so many.
    fn reduction(&mut self, combine: Op, ty: Type, size: u32, span: Span) -> String {
        let scalar = ty.component_scalar();
        let shuffle = self.shuffle(ty);
        let missing = {
            let bits = identity(combine, scalar);
            splat(ty, &self.literal(Const { scalar, bits }))
        };
        let step = self.evaluate(
            combine,
            span,
            (ty, ty),
            &["all_of".into(), "other".into()],
            None,
        );
        if self.full {
            // Every lane of the partner's block has the block's value.
            let word = match scalar {
                Scalar::Bool => false,
                Scalar::F16 => !self.options.features.f16,
                other => other.size_bytes() < 8,
            };
            let mut body = "    var all_of = x;\n".to_string();
            for d in (0..size.ilog2()).map(|i| 1 << i) {
                let other = if word && self.exchange == Exchange::Subgroups {
                    format!("subgroupShuffleXor(all_of, {d}u)")
                } else {
                    format!("{shuffle}(all_of, first + (place ^ {d}u))")
                };
                body.push_str(&format!(
                    "    {{\n        let other = {other};\n        all_of = {step};\n    }}\n"
                ));
            }
            body.push_str("    return all_of;\n");
            body
        } else {
            let each = self.each_distance(size);
            format!(
                "    var all_of = select({missing}, x, place < count);\n    {each}\n        \
                 let source = (place ^ d) & ~(d - 1u);\n        \
                 let theirs = {shuffle}(all_of, first + source);\n        \
                 let other = select({missing}, theirs, source < count);\n        \
                 all_of = {step};\n    }}\n    return all_of;\n"
            )
        }
    }

    /// Whether something holds in all lanes that exist, or in any.
    fn vote(&mut self, all: bool, group: Group, span: Span) -> String {
        let mine = if all {
            "x || place >= count"
        } else {
            "x && place < count"
        };
        if self.exchange == Exchange::Subgroups && group == Group::Simdgroup {
            self.uses_subgroups = true;
            let function = if all { "subgroupAll" } else { "subgroupAny" };
            format!("    return {function}({mine});\n")
        } else {
            let u32_type = Type::U32;
            // All hold if none fails.
            let union = self.lanes_helper(
                union_name(group),
                group,
                LaneRule::Reduce(Op::Or),
                u32_type,
                span,
            );
            if all {
                format!("    return {union}(select(1u, 0u, {mine})) == 0u;\n")
            } else {
                format!("    return {union}(select(0u, 1u, {mine})) != 0u;\n")
            }
        }
    }

    /// The body of a reduction by the target's own one, over a simdgroup whose lanes all exist, where the
    /// order of combination makes no difference: of integers, and the least and the greatest of floats,
    /// in their order as integers (A7).
    fn own_reduction(&mut self, combine: Op, ty: Type) -> Option<String> {
        let scalar = ty.scalar()?;
        let least = matches!(combine, Op::Min | Op::Fmin);
        let function = match combine {
            Op::Add => "subgroupAdd",
            Op::And => "subgroupAnd",
            Op::Or => "subgroupOr",
            Op::Xor => "subgroupXor",
            Op::Min | Op::Fmin => "subgroupMin",
            Op::Max | Op::Fmax => "subgroupMax",
            _other => return None,
        };
        match scalar {
            Scalar::I32 | Scalar::U32 => Some(format!("    return {function}(x);\n")),
            Scalar::F32 if function == "subgroupMax" && matches!(ty, Type::Scalar(_)) => {
                self.need(Helper::Order);
                self.need(Helper::Unorder);
                Some("    return f32__unorder(subgroupMax(f32__order(x)));\n".to_string())
            }
            // NaN comes last in the order of what is turned round.
            Scalar::F32 if least && matches!(ty, Type::Scalar(_)) => {
                self.need(Helper::Order);
                self.need(Helper::Unorder);
                Some("    return -f32__unorder(subgroupMax(f32__order(-x)));\n".to_string())
            }
            _other => None,
        }
    }

    // ---- asserted uniformity ----

    /// X5: every thread gets the value of one thread of the scope that exists.
    pub(super) fn assert_uniform(&mut self, span: Span, value: Value, scope: Scope) -> String {
        let ty = self.ty(value);
        let text = self.value(value);
        if ty.scalar().is_none() || matches!(ty, Type::SimdgroupMatrix { .. }) {
            // An event stands for nothing; a simdgroup's matrix is the same for its lanes.
            return text;
        }
        match scope {
            Scope::Simdgroup => {
                if self.exchange == Exchange::Memory && !self.threadgroup_together() {
                    return self.lacks(
                        span,
                        "`assert_uniform simdgroup` stands where only a part of the threadgroup comes, \
                         and the target has no subgroups of the right size",
                    );
                }
                if let Type::Matrix {
                    columns,
                    rows,
                    scalar,
                } = ty
                {
                    let shuffle = self.shuffle(Type::Vector(scalar, rows));
                    let parts: Vec<String> = (0..columns)
                        .map(|c| format!("{shuffle}({text}[{c}], 0u)"))
                        .collect();
                    return format!("{}({})", wgsl_type(ty), parts.join(", "));
                }
                let shuffle = self.shuffle(ty);
                format!("{shuffle}({text}, 0u)")
            }
            Scope::Threadgroup | Scope::Device => {
                let name = format!("{}__uniform", tag(ty));
                let holds = wgsl_type(ty);
                let thread = self.thread();
                let scalar = ty.component_scalar();
                if !self.helpers.has(&name) {
                    self.helper_bytes += types::held_bytes(scalar, self.options.features)
                        * u64::from(ty.component_count());
                }
                self.helper(&name, |_| {
                    format!(
                        "var<workgroup> {name}_value: {holds};\n\n\
                         fn {name}(x: {holds}) -> {holds} {{\n    \
                         if ({thread} == 0u) {{\n        {name}_value = x;\n    }}\n    \
                         return workgroupUniformLoad(&{name}_value);\n}}\n"
                    )
                });
                format!("{name}({text})")
            }
        }
    }
}

fn union_name(group: Group) -> &'static str {
    match group {
        Group::Simdgroup => "simd_or",
        Group::Quadgroup => "quad_or",
    }
}

fn splat_u32_like(ty: Type, text: &str) -> String {
    types::splat_u32(ty, text)
}

/// Zero of a scalar or vector, as `select` wants it.
fn zero_vector(ty: Type) -> String {
    match ty {
        Type::Vector(s, n) => format!("vec{n}<{}>()", types::scalar(s)),
        other => zero(other),
    }
}
