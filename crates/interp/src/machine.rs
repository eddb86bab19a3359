//! One simdgroup at work: the instructions of the flat program, all lanes at a time under a mask.
//!
//! A simdgroup is a coroutine: its place in the program, its mask and its open `if`s and loops are
//! data, so that it can stop at a barrier and go on later. [`Run::strand`] runs it until it must
//! wait, has seen that it waits in vain, or is done.
//!
//! Lanes that part at an `if` run one side after the other and meet at its end; those that leave a
//! loop wait behind it for the rest. A lane that returns is in no mask any more.

use invar_ir::ops::evaluate::as_type;
use invar_ir::ops::lanes::MAX_LANES;
use invar_ir::ops::{Group, lanes};
use invar_ir::{Const, Diagnostics, Op, Scalar, Scope};

use crate::access::{clamped, first_lanes, for_each_lane, lanes_where};
use crate::memory::Atomic;
use crate::observe::Printing;
use crate::program::{Access, Code, Column, Counter, Index, Lanes, Moves, Print, Query, Target};
use crate::state::{Frame, Place, Run, Simdgroup, Stop};

/// After how many atomics inside loops a simdgroup lets others run even if it sees changes.
const ATOMICS_A_TURN: u32 = 1024;

/// After how many plain loads in a row that saw nothing new a simdgroup counts as spinning. A loop
/// may read its bound from memory in every iteration, so it takes more than one.
const REPEATS: u32 = 1024;

/// Exchanges values between lanes, component by component.
fn exchange(lanes: &Lanes, simd: &mut Simdgroup, size: usize) {
    let (before, out) = simd.registers.split_at_mut(lanes.destination as usize);
    let column = |c: Column| &before[c as usize..c as usize + size];
    let by = lanes.by.map(|by| (by.scalar, column(by.column)));
    let group_size = match lanes.group {
        Group::Simdgroup => size,
        Group::Quadgroup => 4,
    };
    // A ballot makes four columns of one component; everything else one of each.
    let each = lanes.columns / lanes.components;
    for component in 0..lanes.components as usize {
        let value = column(lanes.value + (component * size) as Column);
        let out = &mut out[component * size..][..each as usize * size];
        let mut out: Vec<&mut [u64]> = out.chunks_mut(size).collect();
        let (rule, scalar) = (lanes.rule, lanes.scalar);
        lanes::evaluate(rule, group_size, scalar, simd.mask, value, by, &mut out);
    }
}

/// Copies what joins, all at once, for the lanes of a mask.
fn copy_moves(
    moves: &Moves,
    mask: u128,
    size: usize,
    simd: &mut Simdgroup,
    scratch: &mut Vec<u64>,
) {
    let registers = &mut simd.registers;
    // Lanes that do not exist may get anything.
    let all = mask == simd.existing;
    // What belongs to the simdgroup is moved once: each strand moves what lies in its lanes, and that
    // of the first lane what lies in missing ones.
    let strands = !simd.parked.is_empty();
    let first = simd.existing & simd.existing.wrapping_neg();
    let missing = first_lanes(size as u32) & !simd.existing;
    let own = if mask & first != 0 {
        mask | missing
    } else {
        mask
    };
    if moves.overlap {
        scratch.clear();
        for m in &moves.list {
            let source = m.source as usize;
            scratch.extend_from_slice(&registers[source..source + m.columns as usize * size]);
        }
        let mut from = 0;
        for m in &moves.list {
            let length = m.columns as usize * size;
            let target = &mut registers[m.destination as usize..m.destination as usize + length];
            let source = &scratch[from..from + length];
            if all || (m.whole && !strands) {
                target.copy_from_slice(source);
            } else {
                let lanes = if m.whole { own } else { mask };
                for start in (0..length).step_by(size) {
                    for_each_lane(lanes, |lane| target[start + lane] = source[start + lane]);
                }
            }
            from += length;
        }
        return;
    }
    for m in &moves.list {
        let length = m.columns as usize * size;
        let (source, target) = (m.source as usize, m.destination as usize);
        if all || (m.whole && !strands) {
            registers.copy_within(source..source + length, target);
        } else {
            let lanes = if m.whole { own } else { mask };
            for start in (0..length).step_by(size) {
                for_each_lane(lanes, |lane| {
                    registers[target + start + lane] = registers[source + start + lane];
                });
            }
        }
    }
}

/// The lanes of a mask whose `for` goes on; `advance` first adds the step to their index. Computed
/// as mathematical integers: an index that goes on fits its type, since it lies between bounds that
/// do.
fn count(simd: &mut Simdgroup, counter: &Counter, size: usize, mask: u128, advance: bool) -> u128 {
    let Counter { index, upper, step } = *counter;
    let keep = u64::MAX >> (64 - index.scalar.bits());
    let mut next = [0; MAX_LANES];
    let mut on = [0; MAX_LANES];
    let column = |i: Index| &simd.registers[i.column as usize..i.column as usize + size];
    let lanes = column(index).iter().zip(column(upper)).zip(column(step));
    let lanes = next.iter_mut().zip(&mut on).zip(lanes);
    if index.scalar.bits() <= 32 && step.scalar.bits() <= 32 {
        for ((next, on), ((at, upper_bits), step_bits)) in lanes {
            let upper = clamped(*upper_bits, upper.scalar);
            let step = clamped(*step_bits, step.scalar);
            let value = clamped(*at, index.scalar) + if advance { step } else { 0 };
            *on = u64::from((step > 0 && value < upper) | (step < 0 && value > upper));
            *next = value as u64 & keep;
        }
    } else {
        for ((next, on), ((at, upper_bits), step_bits)) in lanes {
            let upper = upper.scalar.integer(*upper_bits);
            let step = step.scalar.integer(*step_bits);
            let value = index.scalar.integer(*at) + if advance { step } else { 0 };
            *on = u64::from((step > 0 && value < upper) | (step < 0 && value > upper));
            *next = value as u64 & keep;
        }
    }
    let go = mask & lanes_where(&on[..size], |on| on != 0);
    let to = index.column as usize;
    if go == simd.existing {
        simd.registers[to..to + size].copy_from_slice(&next[..size]);
    } else {
        for_each_lane(go, |lane| simd.registers[to + lane] = next[lane]);
    }
    go
}

impl Run<'_, '_, '_> {
    /// Runs a simdgroup, or the strand of it that is at work, until it stops.
    pub(crate) fn strand(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
    ) -> Result<Stop, Diagnostics> {
        let program = self.program;
        loop {
            if simd.mask == 0 && self.go_on(simd) {
                return Ok(Stop::Finished);
            }
            let at = simd.pc;
            self.step(1, at)?;
            let code = &program.code[at as usize];
            if !simd.parked.is_empty()
                && code.brings_together()
                && !self.assemble(group, simd, at)?
            {
                continue;
            }
            simd.pc += 1;
            match code {
                Code::Eval {
                    evaluator,
                    from,
                    to,
                    args,
                    destination,
                    length,
                } => {
                    let length = *length as usize;
                    let (before, out) = simd.registers.split_at_mut(*destination as usize);
                    let out = &mut out[..length];
                    let column = |c: Column| &before[c as usize..c as usize + length];
                    match **args {
                        [a] => evaluator(*from, *to, &[column(a)], out),
                        [a, b] => evaluator(*from, *to, &[column(a), column(b)], out),
                        [a, b, c] => {
                            evaluator(*from, *to, &[column(a), column(b), column(c)], out);
                        }
                        _ => {
                            let args: Vec<&[u64]> = args.iter().map(|a| column(*a)).collect();
                            evaluator(*from, *to, &args, out);
                        }
                    }
                }
                Code::Gather { .. }
                | Code::AsType { .. }
                | Code::Query { .. }
                | Code::Extract { .. }
                | Code::Insert { .. }
                | Code::Zero { .. }
                | Code::Move(_) => {
                    self.compute(group, simd, code);
                }
                Code::Load { .. } | Code::Atomic { .. } => {
                    if let Some(stop) = self.access_memory(group, simd, code, at) {
                        return Ok(stop);
                    }
                }
                Code::Store { access, source } => self.store(group, simd, access, *source),
                Code::If { .. }
                | Code::EndSide
                | Code::Loop { .. }
                | Code::Next { .. }
                | Code::Break { .. }
                | Code::Return => {
                    if self.jump(simd, code, at) {
                        return Ok(Stop::Finished);
                    }
                }
                Code::Print(print) => self.print(group, simd, print, at),
                Code::Texture(texture) => self.texture(group, simd, texture),
                Code::Selected {
                    site,
                    condition,
                    length,
                    when,
                } => self.selected(group, simd, *site, (*condition, *length), *when),
                Code::Misaligned {
                    site,
                    scalar,
                    offset,
                    count,
                    columns,
                } => self.misaligned(group, simd, *site, *scalar, (*offset, *count, *columns)),
                Code::Copy(copy) => self.copy_by_threads(group, simd, copy, at)?,
                Code::AsyncCopy { .. }
                | Code::Wait { .. }
                | Code::Barrier { .. }
                | Code::Lanes(_)
                | Code::MatrixFill { .. }
                | Code::MatrixLoad { .. }
                | Code::MatrixStore { .. }
                | Code::MatrixMultiplyAccumulate { .. }
                | Code::AssertUniform { .. } => {
                    let active = self.program.kernel().active_collectives;
                    if !(active && matches!(code, Code::Lanes(_))) {
                        self.together(group, simd, at)?;
                    }
                    if let Some(stop) = self.of_simdgroup(group, simd, code, at)? {
                        return Ok(stop);
                    }
                }
            }
        }
    }

    /// What only computes, or moves values from registers to registers.
    fn compute(&mut self, group: &Place, simd: &mut Simdgroup, code: &Code) {
        let program = self.program;
        let size = program.simdgroup_size as usize;
        match code {
            Code::Gather {
                destination,
                sources,
            } => {
                for (i, source) in sources.iter().enumerate() {
                    let source = *source as usize;
                    let to = *destination as usize + i * size;
                    simd.registers.copy_within(source..source + size, to);
                }
            }
            Code::AsType {
                from,
                to,
                source,
                source_columns,
                destination,
                columns,
            } => {
                let (before, out) = simd.registers.split_at_mut(*destination as usize);
                let source = &before[*source as usize..][..*source_columns as usize * size];
                let args: Vec<&[u64]> = source.chunks(size).collect();
                let out = &mut out[..*columns as usize * size];
                let mut out: Vec<&mut [u64]> = out.chunks_mut(size).collect();
                as_type(*from, *to, &args, &mut out);
            }
            Code::Query { destination, query } => {
                let out = *destination as usize;
                for lane in 0..size {
                    simd.registers[out + lane] =
                        self.query(*query, group, simd.number, simd.positions[lane], lane);
                }
            }
            Code::Extract {
                site,
                destination,
                source,
                index,
                parts,
                columns,
            } => {
                self.parts_outside(group, simd, *site, *index, *parts, true);
                for lane in 0..size {
                    let bits = simd.registers[index.column as usize + lane];
                    let part = index.scalar.integer(bits);
                    let part = usize::try_from(part).ok().filter(|p| *p < *parts as usize);
                    for c in 0..*columns as usize {
                        let value = part.map_or(0, |part| {
                            let from = (part * *columns as usize + c) * size;
                            simd.registers[*source as usize + from + lane]
                        });
                        simd.registers[*destination as usize + c * size + lane] = value;
                    }
                }
            }
            Code::Insert {
                site,
                destination,
                source,
                part,
                index,
                parts,
                columns,
            } => {
                self.parts_outside(group, simd, *site, *index, *parts, false);
                let length = (*parts * *columns) as usize * size;
                let source = *source as usize;
                simd.registers
                    .copy_within(source..source + length, *destination as usize);
                for lane in 0..size {
                    let bits = simd.registers[index.column as usize + lane];
                    let at = index.scalar.integer(bits);
                    if (0..i128::from(*parts)).contains(&at) {
                        for c in 0..*columns as usize {
                            let to = *destination as usize
                                + (at as usize * *columns as usize + c) * size;
                            simd.registers[to + lane] =
                                simd.registers[*part as usize + c * size + lane];
                        }
                    }
                }
            }
            Code::Zero { offset, bytes } => for_each_lane(simd.mask, |lane| {
                let start = lane * program.thread_bytes as usize + *offset as usize;
                simd.thread_memory[start..start + *bytes as usize].fill(0);
            }),
            Code::Move(moves) => {
                copy_moves(moves, simd.mask, size, simd, &mut self.scratch);
            }
            other => unreachable!("{other:?} does more than compute"),
        }
    }

    /// Loads and atomics, of which one that finds nothing new for long lets others run.
    fn access_memory(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        code: &Code,
        at: Target,
    ) -> Option<Stop> {
        match code {
            Code::Load {
                access,
                destination,
                spin,
            } => {
                let seen = self.load(group, simd, access, *destination, spin.is_some());
                if let Some(site) = spin {
                    let last = &mut simd.seen[*site as usize];
                    if *last == seen {
                        simd.repeats += 1;
                    } else {
                        simd.repeats = 0;
                        simd.spin.end();
                    }
                    *last = seen;
                    if simd.repeats >= REPEATS {
                        simd.repeats = 0;
                        self.look_at_nothing_new(simd, access, *site);
                        return Some(Stop::Spinning);
                    }
                }
            }
            Code::Atomic {
                access,
                texel,
                op,
                args,
                order,
                scope,
                destination,
                success,
                spin,
            } => {
                if self.options.seed != 0 && self.part_lanes(simd, at) {
                    return None;
                }
                let atomic = Atomic {
                    op: *op,
                    args: *args,
                    order: *order,
                    scope: *scope,
                    destination: *destination,
                    success: *success,
                };
                let seen = self.atomic(group, simd, access, texel.as_deref(), &atomic);
                if let Some(site) = spin {
                    let last = &mut simd.seen[*site as usize];
                    simd.atomics += 1;
                    if *last == seen {
                        self.look_at_nothing_new(simd, access, *site);
                        return Some(Stop::Spinning);
                    }
                    *last = seen;
                    simd.spin.end();
                    if simd.atomics >= ATOMICS_A_TURN {
                        simd.atomics = 0;
                        return Some(Stop::LongTurn);
                    }
                }
                if self.options.seed != 0 && self.random.below(4) == 0 {
                    return Some(Stop::Preempted);
                }
            }
            other => unreachable!("{other:?} is not a load and no atomic"),
        }
        None
    }

    /// Control flow; says whether no lane is left.
    fn jump(&mut self, simd: &mut Simdgroup, code: &Code, at: Target) -> bool {
        let size = self.program.simdgroup_size as usize;
        match code {
            Code::If {
                condition,
                otherwise,
                end,
            } => {
                if self.options.seed != 0 && self.part_lanes(simd, at) {
                    return false;
                }
                let column = *condition as usize;
                let holds = lanes_where(&simd.registers[column..column + size], |c| c != 0);
                let yes = simd.mask & holds;
                let no = simd.mask & !holds;
                let otherwise_first =
                    yes == 0 || (no != 0 && self.options.seed != 0 && self.random.flip());
                let (mask, pending, other) = if otherwise_first {
                    simd.pc = *otherwise;
                    (no, yes, at + 1)
                } else {
                    (yes, no, *otherwise)
                };
                simd.mask = mask;
                simd.frames.push(Frame::If {
                    at,
                    joined: 0,
                    pending,
                    other,
                    end: *end,
                });
            }
            Code::EndSide => {
                if let Some(Frame::If { joined, .. }) = simd.frames.last_mut() {
                    *joined |= simd.mask;
                }
                simd.mask = 0;
                if self.go_on(simd) {
                    return true;
                }
            }
            Code::Loop { counter, .. } => {
                let mut left = 0;
                if let Some(counter) = counter {
                    let (counter, moves) = &**counter;
                    let go = count(simd, counter, size, simd.mask, false);
                    left = simd.mask & !go;
                    if left != 0 {
                        copy_moves(moves, left, size, simd, &mut self.scratch);
                    }
                    simd.mask = go;
                }
                simd.frames.push(Frame::Loop {
                    at,
                    next: 0,
                    left,
                    iteration: 0,
                });
                if simd.mask == 0 && self.go_on(simd) {
                    return true;
                }
            }
            Code::Next { depth } => {
                let outer = simd.frames.len() - 1 - *depth as usize;
                if let Frame::Loop { next, .. } = &mut simd.frames[outer] {
                    *next |= simd.mask;
                }
                simd.mask = 0;
                if self.go_on(simd) {
                    return true;
                }
            }
            Code::Break { depth } => {
                let outer = simd.frames.len() - 1 - *depth as usize;
                if let Frame::Loop { left, .. } = &mut simd.frames[outer] {
                    *left |= simd.mask;
                }
                simd.mask = 0;
                if self.go_on(simd) {
                    return true;
                }
            }
            Code::Return => {
                simd.mask = 0;
                if self.go_on(simd) {
                    return true;
                }
            }
            other => unreachable!("{other:?} is not control flow"),
        }
        false
    }

    /// What the lanes of a simdgroup do together.
    fn of_simdgroup(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        code: &Code,
        at: Target,
    ) -> Result<Option<Stop>, Diagnostics> {
        let size = self.program.simdgroup_size as usize;
        match code {
            Code::AsyncCopy { copy, event } => {
                self.issue(group, simd, copy, *event, at)?;
            }
            Code::Wait { events } => {
                self.wait(group, simd, events, at)?;
            }
            Code::Barrier {
                site,
                scope,
                spaces,
            } => match scope {
                Scope::Simdgroup => {
                    let who = group.who(simd);
                    for observer in self.observers.iter_mut() {
                        observer.barrier(who, *site, *scope, *spaces);
                    }
                }
                Scope::Threadgroup | Scope::Device => return Ok(Some(Stop::Rendezvous)),
            },
            Code::Lanes(lanes) => {
                exchange(lanes, simd, size);
            }
            Code::MatrixFill {
                value,
                destination,
                entries,
            } => {
                let lane = simd.mask.trailing_zeros() as usize;
                let bits = simd.registers[*value as usize + lane];
                let start = *destination as usize;
                simd.registers[start..start + *entries as usize].fill(bits);
            }
            Code::MatrixLoad {
                access,
                destination,
            } => {
                self.matrix_load(group, simd, access, *destination);
            }
            Code::MatrixStore { access, source } => {
                self.matrix_store(group, simd, access, *source);
            }
            Code::MatrixMultiplyAccumulate {
                a,
                b,
                c,
                destination,
                shape,
            } => {
                crate::matrix::multiply(&mut simd.registers, *a, *b, *c, *destination, *shape);
            }
            Code::AssertUniform {
                site,
                scope,
                value,
                destination,
                columns,
            } => {
                let (value, to) = (*value as usize, *destination as usize);
                let length = *columns as usize * size;
                simd.registers.copy_within(value..value + length, to);
                self.agree_in_simdgroup(group, simd, (*site, *scope), to, *columns as usize);
                match scope {
                    Scope::Simdgroup => {}
                    Scope::Threadgroup | Scope::Device => return Ok(Some(Stop::Rendezvous)),
                }
            }
            other => unreachable!("{other:?} is of each lane"),
        }
        Ok(None)
    }

    /// The access whose addresses were just computed saw what it saw the last time.
    #[cold]
    fn look_at_nothing_new(&self, simd: &mut Simdgroup, access: &Access, site: u32) {
        let slot = self.program.objects[access.object as usize].slot;
        let bytes = access.scalar.size_bytes() * u64::from(access.components);
        let addresses = &self.addresses.bytes;
        simd.spin.note(site, slot, simd.mask, addresses, bytes);
    }

    /// Shows observers in which lanes a `select` took what a load gave: where its condition is `when`.
    fn selected(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        site: u32,
        (condition, length): (Column, u32),
        when: bool,
    ) {
        if !self.observed() {
            return;
        }
        let size = self.program.simdgroup_size as usize;
        let columns = &simd.registers[condition as usize..][..length as usize];
        let takes = columns
            .chunks(size)
            .map(|c| lanes_where(c, |c| (c != 0) == when));
        let taken = takes.fold(0, |all, lanes| all | lanes) & simd.mask;
        let who = group.who(simd);
        for observer in self.observers.iter_mut() {
            observer.selected(who, site, simd.mask, taken);
        }
    }

    /// Shows observers the line of each active lane.
    fn print(&mut self, group: &Place, simd: &Simdgroup, print: &Print, at: Target) {
        let span = self.program.spans[at as usize];
        for_each_lane(simd.mask, |lane| {
            let scalar = |(column, scalar): &(Column, Scalar)| Const {
                scalar: *scalar,
                bits: simd.registers[*column as usize + lane],
            };
            let scalars: Vec<Const> = print.columns.iter().map(scalar).collect();
            let printing = Printing {
                span,
                thread: self.grid.thread(group.position, simd.positions[lane]),
                template: &print.template,
                types: &print.types,
                scalars: &scalars,
            };
            for observer in self.observers.iter_mut() {
                observer.print(&printing);
            }
        });
    }

    /// No lane of the strand is active: takes up those that wait nearest. Whether all are done.
    pub(crate) fn take_up(&mut self, simd: &mut Simdgroup) -> bool {
        let size = self.program.simdgroup_size as usize;
        loop {
            let Some(frame) = simd.frames.last_mut() else {
                return true;
            };
            match frame {
                Frame::If {
                    joined,
                    pending,
                    other,
                    end,
                    ..
                } => {
                    if *pending != 0 {
                        simd.mask = std::mem::take(pending);
                        simd.pc = *other;
                        return false;
                    }
                    let (joined, end) = (*joined, *end);
                    simd.frames.pop();
                    if joined != 0 {
                        simd.mask = joined;
                        simd.pc = end;
                        return false;
                    }
                }
                Frame::Loop {
                    at,
                    next,
                    iteration,
                    ..
                } => {
                    let at = *at;
                    let mut live = std::mem::take(next);
                    *iteration += 1;
                    let Code::Loop { end, counter } = &self.program.code[at as usize] else {
                        unreachable!("a loop's frame stands for a loop")
                    };
                    if let Some(counter) = counter {
                        let (counter, moves) = &**counter;
                        let go = count(simd, counter, size, live, true);
                        let out = live & !go;
                        if out != 0 {
                            copy_moves(moves, out, size, simd, &mut self.scratch);
                            if let Some(Frame::Loop { left, .. }) = simd.frames.last_mut() {
                                *left |= out;
                            }
                        }
                        live = go;
                    }
                    if live != 0 {
                        simd.mask = live;
                        simd.pc = at + 1;
                        return false;
                    }
                    if let Some(Frame::Loop { left, .. }) = simd.frames.pop()
                        && left != 0
                    {
                        simd.mask = left;
                        simd.pc = *end;
                        return false;
                    }
                }
            }
        }
    }

    /// Insists that every existing lane is here (X4).
    fn together(&self, group: &Place, simd: &Simdgroup, at: Target) -> Result<(), Diagnostics> {
        if simd.mask == simd.existing {
            return Ok(());
        }
        Err(crate::diverge::lanes_apart(self.program, group, simd, at))
    }

    fn query(
        &self,
        query: Query,
        group: &Place,
        simdgroup: u32,
        position: [u32; 3],
        lane: usize,
    ) -> u64 {
        let d = query.dim as usize;
        let grid = &self.grid;
        let size = self.program.simdgroup_size;
        let number = simdgroup * size + lane as u32;
        let threads = |size: [u32; 3]| size[0] * size[1] * size[2];
        let value = match query.op {
            // A missing lane's may be past any grid.
            Op::ThreadPositionInGrid => {
                (group.position[d] * grid.threadgroup[d]).wrapping_add(position[d])
            }
            Op::ThreadPositionInThreadgroup => position[d],
            Op::ThreadIndexInThreadgroup => number,
            Op::ThreadgroupPositionInGrid => group.position[d],
            Op::ThreadsPerThreadgroup => group.size[d],
            Op::DispatchThreadsPerThreadgroup => grid.threadgroup[d],
            Op::ThreadsPerGrid => grid.threads[d],
            Op::ThreadgroupsPerGrid => grid.threadgroups[d],
            Op::ThreadIndexInSimdgroup => lane as u32,
            Op::SimdgroupIndexInThreadgroup => simdgroup,
            Op::SimdgroupsPerThreadgroup => threads(group.size).div_ceil(size),
            Op::DispatchSimdgroupsPerThreadgroup => threads(grid.threadgroup).div_ceil(size),
            Op::ThreadsPerSimdgroup => size,
            Op::ThreadIndexInQuadgroup => number % 4,
            Op::QuadgroupIndexInThreadgroup => number / 4,
            Op::QuadgroupsPerThreadgroup => threads(group.size).div_ceil(4),
            Op::DispatchQuadgroupsPerThreadgroup => threads(grid.threadgroup).div_ceil(4),
            other => unreachable!("`{other}` is not a query that the machine knows"),
        };
        value.into()
    }
}
