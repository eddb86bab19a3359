//! Threadgroups at the edge of the grid where a host launches whole ones only (X2).
//!
//! A thread's number is its place in what is launched, and its position follows from the number by the edge
//! threadgroup's own size; so the threads outside the grid come last. They leave at once where no thread waits for
//! them. Else they go along: through everything that is uniform over the threadgroup, where they compute what the
//! others do, and, in simdgroups of which some threads exist, through what is uniform over the simdgroup, where they
//! take what its first lane has. They never enter what threads may part in, store nothing, and count for nothing
//! among lanes.

use invar_ir::ops::Op;
use invar_ir::{AddressSpace, Kernel, Level, Memory, Type, Value};

use super::interface::Input;
use super::writer::{LANES, Reach, Writer};

/// Whether threads of a kernel wait for each other anywhere.
fn meets(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.for_each_inst(&mut |inst| found |= inst.kind.meets().is_some());
    found
}

impl Writer<'_> {
    /// Whether threads outside the grid may be launched.
    pub(super) fn has_surplus(&self) -> bool {
        self.options.whole_threadgroups && !self.options.full_threadgroups
    }

    /// Whether accesses are guarded: threads outside the grid that go along may have any index.
    pub(super) fn has_guards(&self) -> bool {
        self.options.guards || (self.has_surplus() && meets(self.kernel))
    }

    /// Lets the threads outside the grid go, or lets them go along.
    pub(super) fn begin(&mut self) {
        if !self.has_surplus() {
            return;
        }
        if meets(self.kernel) {
            self.reach = Reach::Everyone;
        } else {
            let exists = self.exists();
            self.line(&format!("if (!{exists}) return;"));
        }
    }

    fn exists(&mut self) -> &'static str {
        self.uses_exists = true;
        self.uses_thread_count = true;
        self.input(Op::ThreadIndexInThreadgroup);
        "exists"
    }

    fn simdgroup_exists(&mut self) -> &'static str {
        self.uses_simdgroup_exists = true;
        self.uses_thread_count = true;
        self.input(Op::SimdgroupIndexInThreadgroup);
        "simdgroup_exists"
    }

    /// Over whom the region that comes next is uniform.
    fn next_level(&self) -> Level {
        let region = self.uniformity.region(self.next_region);
        region.entry.min(region.control)
    }

    /// Begins code that only some go into, by what is known of the region that comes next. Gives what
    /// [`Writer::leave`] takes.
    pub(super) fn enter(&mut self) -> Reach {
        let before = self.reach;
        let reach = match self.next_level() {
            Level::Varying => Reach::Existing,
            Level::Simdgroup => Reach::Simdgroups,
            Level::Threadgroup | Level::Grid => Reach::Everyone,
        };
        if reach < before {
            let who = match reach {
                Reach::Existing => self.exists(),
                Reach::Simdgroups | Reach::Everyone => self.simdgroup_exists(),
            };
            self.line(&format!("if ({who}) {{"));
            self.depth += 1;
            self.reach = reach;
        }
        before
    }

    pub(super) fn leave(&mut self, before: Reach) {
        if self.reach != before {
            self.reach = before;
            self.depth -= 1;
            self.line("}");
        }
    }

    /// Whether what comes next is entered by some of those who are here, so that results need a value before.
    pub(super) fn some_stay_out(&self) -> bool {
        let level = self.next_level();
        (level == Level::Varying && self.reach > Reach::Existing)
            || (level == Level::Simdgroup && self.reach > Reach::Simdgroups)
    }

    /// A value that decides where the region that comes next leads: one that is the simdgroup's own is taken from its
    /// first lane, which exists.
    pub(super) fn deciding(&mut self, value: Value) -> String {
        let text = self.v(value);
        let constant = self.constants[value.0 as usize].is_some();
        if constant || self.reach == Reach::Existing || self.next_level() != Level::Simdgroup {
            return text;
        }
        let ty = self.ty(value);
        self.broadcast_first(&text, ty)
    }

    /// What must hold for a thread to change memory here.
    pub(super) fn may_write(&mut self, memory: Memory) -> Option<String> {
        let (space, ..) = self.object_info(memory);
        let shared = space != AddressSpace::Thread;
        (shared && self.reach != Reach::Existing).then(|| self.exists().to_string())
    }

    /// What must hold for a simdgroup to change memory together here.
    pub(super) fn simdgroup_may_write(&mut self) -> Option<&'static str> {
        (self.reach == Reach::Everyone).then(|| self.simdgroup_exists())
    }

    /// Whether this lane counts in its simdgroup. In a simdgroup of which no thread exists all do, so that what is
    /// the same for the threadgroup comes out the same there.
    pub(super) fn lane_counts(&mut self) -> Option<String> {
        (self.reach != Reach::Existing).then(|| {
            self.uses_lane_count = true;
            let lane = self.input(Op::ThreadIndexInSimdgroup);
            format!("{lane} < lane_count")
        })
    }

    /// The size of a full threadgroup.
    pub(super) fn full_size(&mut self) -> String {
        match self.threadgroup_size() {
            Some([x, y, z]) => format!("uint3({x}u, {y}u, {z}u)"),
            None => self.input(Op::DispatchThreadsPerThreadgroup).to_string(),
        }
    }

    /// The definitions that everything refers to, at the beginning of the function.
    pub(super) fn definitions(&mut self) -> String {
        let mut lines = Vec::new();
        let index = Op::ThreadIndexInThreadgroup.name();
        let simdgroup = Op::SimdgroupIndexInThreadgroup.name();
        let surplus = self.has_surplus();
        if self.uses_lane_count {
            self.uses_thread_count = true;
            self.input(Op::SimdgroupIndexInThreadgroup);
            self.uses_simdgroup_exists |= surplus;
        }
        let uses = |w: &Self, op: Op| w.inputs.contains(&Input(op));
        if surplus {
            let counts = [
                Op::SimdgroupsPerThreadgroup,
                Op::QuadgroupsPerThreadgroup,
                Op::ThreadPositionInGrid,
                Op::ThreadPositionInThreadgroup,
            ];
            self.uses_thread_count |= counts.iter().any(|op| uses(self, *op));
        }
        let size = Op::ThreadsPerThreadgroup.name();
        if self.uses_thread_count {
            self.input(Op::ThreadsPerThreadgroup);
        }
        if surplus {
            let wants_size = uses(self, Op::ThreadsPerThreadgroup);
            let wants_grid = wants_size || uses(self, Op::ThreadsPerGrid);
            self.uses_grid_size = wants_grid;
            let in_grid = uses(self, Op::ThreadPositionInGrid);
            let in_threadgroup = in_grid || uses(self, Op::ThreadPositionInThreadgroup);
            // What Metal would say of the threadgroups that it launched is defined here instead.
            for op in [
                Op::ThreadsPerGrid,
                Op::ThreadsPerThreadgroup,
                Op::ThreadPositionInGrid,
                Op::ThreadPositionInThreadgroup,
            ] {
                self.inputs.remove(&Input(op));
            }
            if wants_grid {
                lines.push(
                    "const uint3 threads_per_grid = uint3(lengths.threads_per_grid[0], \
                     lengths.threads_per_grid[1], lengths.threads_per_grid[2]);"
                        .to_string(),
                );
            }
            let full = self.full_size();
            if wants_size {
                let group = self.input(Op::ThreadgroupPositionInGrid);
                lines.push(format!(
                    "const uint3 {size} = min({full}, threads_per_grid - {group} * {full});"
                ));
            }
            let position = Op::ThreadPositionInThreadgroup.name();
            if in_threadgroup {
                self.input(Op::ThreadIndexInThreadgroup);
                lines.push(match self.threadgroup_size() {
                    Some([_, 1, 1]) => format!("const uint3 {position} = uint3({index}, 0u, 0u);"),
                    _ => format!(
                        "const uint3 {position} = uint3({index} % {size}.x, {index} / {size}.x % {size}.y, \
                         {index} / ({size}.x * {size}.y));"
                    ),
                });
            }
            if in_grid {
                let group = self.input(Op::ThreadgroupPositionInGrid);
                lines.push(format!(
                    "const uint3 {} = {group} * {full} + {position};",
                    Op::ThreadPositionInGrid.name()
                ));
            }
        }
        if self.uses_thread_count {
            lines.push(format!(
                "const uint thread_count = {size}.x * {size}.y * {size}.z;"
            ));
        }
        if surplus {
            for (op, lanes) in [
                (Op::SimdgroupsPerThreadgroup, LANES),
                (Op::QuadgroupsPerThreadgroup, 4),
            ] {
                if self.inputs.remove(&Input(op)) {
                    lines.push(format!(
                        "const uint {} = (thread_count + {}u) / {lanes}u;",
                        op.name(),
                        lanes - 1
                    ));
                }
            }
        }
        if self.uses_exists {
            lines.push(format!("const bool exists = {index} < thread_count;"));
        }
        if self.uses_simdgroup_exists {
            lines.push(format!(
                "const bool simdgroup_exists = {LANES}u * {simdgroup} < thread_count;"
            ));
        }
        if self.uses_lane_count {
            let count = format!("min({LANES}u, thread_count - {LANES}u * {simdgroup})");
            lines.push(if surplus {
                format!("const uint lane_count = simdgroup_exists ? {count} : {LANES}u;")
            } else {
                format!("const uint lane_count = {count};")
            });
        }
        let lines = lines.iter().map(|line| format!("    {line}\n"));
        lines.collect()
    }

    /// A value that results of this type may have where they are not used.
    pub(super) fn anything(ty: Type) -> Option<String> {
        match ty {
            Type::SimdgroupMatrix { .. } | Type::Event => None,
            Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. } => {
                Some(super::types::zero(ty))
            }
        }
    }
}
