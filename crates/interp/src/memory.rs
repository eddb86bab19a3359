//! Loads, stores and atomics of a simdgroup, and what observers are shown of them.

use invar_ir::ops::Meaning;
use invar_ir::{AtomicOp, Op, Order, Scalar, Scope};

use crate::access::{self, NOWHERE, for_each_lane};
use crate::observe::{self, Kind};
use crate::program::{Access, Column, Index, Reach, Slot, Texture};
use crate::state::{Place, Run, Simdgroup, bytes_of, bytes_of_mut};

/// An atomic instruction, less its place.
#[derive(Clone, Copy)]
pub(crate) struct Atomic {
    pub op: AtomicOp,
    pub args: [Column; 2],
    pub order: Order,
    pub scope: Scope,
    pub destination: Column,
    pub success: Column,
}

/// What an atomic leaves in a location that held `old`; `None` if it leaves it alone.
fn atomic_result(op: AtomicOp, scalar: Scalar, old: u64, a: u64, b: u64) -> Option<u64> {
    let by_op = |op: Op| {
        let Meaning::Eval(evaluator) = op.row().meaning else {
            unreachable!("`{op}` has an evaluator")
        };
        let mut out = [0];
        evaluator(scalar, scalar, &[&[old], &[a]], &mut out);
        Some(out[0])
    };
    match op {
        AtomicOp::Load => None,
        AtomicOp::Store | AtomicOp::Exchange => Some(a),
        AtomicOp::CompareExchange => (old == a).then_some(b),
        AtomicOp::Add => by_op(Op::Add),
        AtomicOp::Sub => by_op(Op::Sub),
        AtomicOp::Min => by_op(Op::Min),
        AtomicOp::Max => by_op(Op::Max),
        AtomicOp::And => Some(old & a),
        AtomicOp::Or => Some(old | a),
        AtomicOp::Xor => Some(old ^ a),
    }
}

/// What a digest begins with: one of nothing is not that of a site that has seen nothing yet.
const FIRST_DIGEST: u64 = 0x6a09_e667_f3bc_c908;

fn add_to_digest(digest: u64, address: u64, value: u64) -> u64 {
    (digest ^ address.rotate_left(32) ^ value)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

impl Run<'_, '_, '_> {
    fn resolve(&mut self, simd: &Simdgroup, access: &Access, component: u32, located: bool) {
        let object = &self.program.objects[access.object as usize];
        let lane_bytes = match object.slot {
            Slot::Thread { .. } => self.program.thread_bytes,
            Slot::Argument(_) | Slot::Constant(_) | Slot::Threadgroup(_) => 0,
        };
        self.addresses.resolve(
            access,
            component,
            object,
            self.lengths[access.object as usize],
            lane_bytes,
            &simd.registers,
            simd.mask,
            located,
        );
    }

    /// Loads; if `digest`, gives one of where it read and what, by which a simdgroup knows that nothing
    /// has changed since the last time.
    pub(crate) fn load(
        &mut self,
        group: &Place,
        simd: &mut Simdgroup,
        access: &Access,
        destination: Column,
        digest: bool,
    ) -> u64 {
        let mut seen =
            FIRST_DIGEST ^ (simd.mask as u64) ^ ((simd.mask >> 64) as u64).rotate_left(7);
        let size = self.program.simdgroup_size as usize;
        let watched = self.watched[access.object as usize];
        let slot = self.program.objects[access.object as usize].slot;
        let whole = access.reach == Reach::Part;
        for component in 0..access.components {
            let mut offset = 0;
            if component == 0 || !whole {
                self.resolve(simd, access, component, watched);
                if self.observed() {
                    self.show(group, simd, access, component, Kind::Read, 0, &[]);
                }
            } else {
                offset = u64::from(component) * access.scalar.size_bytes();
            }
            let thread = &simd.thread_memory;
            let memory = bytes_of(slot, self.program, self.args, &group.memory, thread);
            let out = destination as usize + component as usize * size;
            let out = &mut simd.registers[out..out + size];
            let addresses = &self.addresses.bytes;
            if simd.parked.is_empty() {
                access::gather(memory, addresses, offset, access.scalar, out);
            } else {
                // The other strands' lanes keep what they have loaded.
                for_each_lane(simd.mask, |lane| {
                    let address = addresses[lane].saturating_add(offset);
                    out[lane] = access::read(memory, address, access.scalar);
                });
            }
            if digest {
                for_each_lane(simd.mask, |lane| {
                    seen = add_to_digest(seen, addresses[lane], out[lane]);
                });
            }
        }
        seen
    }

    pub(crate) fn store(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        access: &Access,
        source: Column,
    ) {
        let size = self.program.simdgroup_size as usize;
        let watched = self.watched[access.object as usize];
        let slot = self.program.objects[access.object as usize].slot;
        let whole = access.reach == Reach::Part;
        let order = self.random.below(self.orders.len() as u64) as usize;
        let mut unchanged = [0; 16];
        for component in 0..access.components {
            let mut offset = 0;
            if component == 0 || !whole {
                self.resolve(simd, access, component, watched);
            } else {
                offset = u64::from(component) * access.scalar.size_bytes();
            }
            let memory = bytes_of_mut(slot, self.args, &mut group.memory, &mut simd.thread_memory);
            let from = source as usize + component as usize * size;
            let values = &simd.registers[from..from + size];
            let (addresses, scalar) = (&self.addresses.bytes, access.scalar);
            let lanes = &self.orders[order];
            if watched {
                let same =
                    access::scatter_watched(memory, addresses, offset, scalar, values, lanes);
                unchanged[component as usize] = same;
            } else {
                access::scatter(memory, addresses, offset, scalar, values, lanes);
            }
            if !matches!(slot, Slot::Thread { .. }) {
                let changed = simd.mask & !unchanged[component as usize];
                let bytes = scalar.size_bytes();
                self.changes
                    .note_lanes(slot, changed, addresses, offset, bytes);
            }
            if self.observed() && !whole {
                let unchanged = &unchanged[component as usize..=component as usize];
                self.show(
                    group,
                    simd,
                    access,
                    component,
                    Kind::Write,
                    order,
                    unchanged,
                );
            }
        }
        if self.observed() && whole {
            let unchanged = &unchanged[..access.components as usize];
            self.show(group, simd, access, 0, Kind::Write, order, unchanged);
        }
    }

    /// Performs an atomic; gives a digest of where it went and what it read, by which a simdgroup
    /// knows that nothing has changed since the last time.
    pub(crate) fn atomic(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        access: &Access,
        texel: Option<&Texture>,
        atomic: &Atomic,
    ) -> u64 {
        let watched = self.watched[access.object as usize];
        let slot = self.program.objects[access.object as usize].slot;
        match texel {
            Some(texel) => self.place_texel(simd, texel),
            None => self.resolve(simd, access, 0, watched),
        }
        let order = self.random.below(self.orders.len() as u64) as usize;
        let memory = bytes_of_mut(slot, self.args, &mut group.memory, &mut simd.thread_memory);
        let scalar = access.scalar;
        let (mut effective, mut unchanged) = (0, 0);
        let mut digest =
            FIRST_DIGEST ^ (simd.mask as u64) ^ ((simd.mask >> 64) as u64).rotate_left(7);
        let arg = |registers: &[u64], i: usize, lane: usize| match atomic.args[i] {
            Column::MAX => 0,
            column => registers[column as usize + lane],
        };
        for lane in &self.orders[order] {
            let lane = usize::from(*lane);
            if simd.mask >> lane & 1 == 0 {
                continue;
            }
            let address = self.addresses.bytes[lane];
            let (mut old, mut exchanged) = (0, false);
            if address != NOWHERE {
                old = access::read(memory, address, scalar);
                let (a, b) = (arg(&simd.registers, 0, lane), arg(&simd.registers, 1, lane));
                if let Some(new) = atomic_result(atomic.op, scalar, old, a, b) {
                    access::write(memory, address, scalar, new);
                    if new != old {
                        self.changes.note(slot, address, scalar.size_bytes());
                    }
                    exchanged = true;
                    effective |= 1 << lane;
                    unchanged |= u128::from(new == old) << lane;
                }
            }
            if atomic.destination != Column::MAX {
                simd.registers[atomic.destination as usize + lane] = old;
            }
            if atomic.success != Column::MAX {
                simd.registers[atomic.success as usize + lane] = exchanged.into();
            }
            digest = add_to_digest(digest, address, old);
        }
        if self.observed() {
            let kind = Kind::Atomic {
                op: atomic.op,
                order: atomic.order,
                scope: atomic.scope,
                effective,
            };
            match texel {
                Some(texel) => self.show_texel(group, simd, texel, kind, order),
                None => self.show(group, simd, access, 0, kind, order, &[unchanged]),
            }
        }
        digest
    }

    /// Shows observers the access whose addresses were just computed: what is out of bounds, and,
    /// for objects that are watched, what is not. Of an access to side-by-side components,
    /// component 0 stands for all.
    #[expect(clippy::too_many_arguments, reason = "an event has many sides")]
    fn show(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        access: &Access,
        component: u32,
        kind: Kind,
        order: usize,
        unchanged: &[u128],
    ) {
        let present = self.addresses.present();
        let who = group.who(simd);
        if present != simd.mask {
            self.show_outside(group, simd, access, component, kind, simd.mask & !present);
        }
        if present != 0 && self.watched[access.object as usize] {
            let event = observe::Access {
                who,
                site: access.site,
                object: access.object,
                kind,
                lanes: present,
                locations: &self.addresses.locations,
                width: match access.reach {
                    Reach::Part => access.components,
                    Reach::Run | Reach::Group(_) => 1,
                },
                order: &self.orders[order],
                unchanged,
            };
            for observer in self.observers.iter_mut() {
                observer.access(&event);
            }
        }
    }

    #[cold]
    fn show_outside(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        access: &Access,
        component: u32,
        kind: Kind,
        outside: u128,
    ) {
        let lane = outside.trailing_zeros();
        let value = |i: Index| {
            i.scalar
                .integer(simd.registers[i.column as usize + lane as usize])
        };
        let index = match access.reach {
            Reach::Part => value(access.index),
            Reach::Run => value(access.index) + i128::from(component),
            Reach::Group(k) => value(access.index) * i128::from(k) + i128::from(component),
        };
        let length = self.lengths[access.object as usize];
        let mut event = observe::OutOfBounds {
            who: group.who(simd),
            site: access.site,
            object: Some(access.object),
            load: kind == Kind::Read,
            lane,
            lanes: outside,
            count: outside.count_ones().into(),
            index,
            length,
            what: "element",
            within: None,
        };
        let mut within = String::new();
        if (0..i128::from(length)).contains(&index) {
            for step in &access.path {
                let inner = value(step.index);
                within.push_str(&step.fields);
                if !(0..i128::from(step.count)).contains(&inner) {
                    event.index = inner;
                    event.length = step.count;
                    event.what = step.what;
                    event.within = Some((index as u64, &within));
                    break;
                }
                within.push_str(&format!("[{inner}]"));
            }
        }
        for observer in self.observers.iter_mut() {
            observer.out_of_bounds(&event);
        }
    }

    /// The lanes whose offset is not a multiple of what a shift divides it by; shows them to observers.
    pub(crate) fn misaligned(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        site: u32,
        scalar: Scalar,
        (offset, count, columns): (Column, Column, u32),
    ) {
        if !self.observed() {
            return;
        }
        let size = self.program.simdgroup_size as usize;
        for column in 0..columns as usize {
            let at = |from: Column, lane| {
                let bits = simd.registers[from as usize + column * size + lane];
                scalar.integer(bits)
            };
            let by = |lane| 1i128 << at(count, lane).rem_euclid(i128::from(scalar.bits()));
            let mut lanes = 0u128;
            for_each_lane(simd.mask, |lane| {
                let is_multiple = at(offset, lane).rem_euclid(by(lane)) == 0;
                lanes |= u128::from(!is_multiple) << lane;
            });
            if lanes == 0 {
                continue;
            }
            let lane = lanes.trailing_zeros();
            let event = observe::Misaligned {
                who: group.who(simd),
                site,
                lane,
                count: lanes.count_ones().into(),
                offset: at(offset, lane as usize),
                width: by(lane as usize),
            };
            for observer in self.observers.iter_mut() {
                observer.misaligned(&event);
            }
        }
    }

    /// The lanes whose index of a part of a value is out of bounds; shows them to observers.
    pub(crate) fn parts_outside(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        site: u32,
        index: Index,
        parts: u32,
        load: bool,
    ) {
        if !self.observed() {
            return;
        }
        let value = |lane: usize| {
            index
                .scalar
                .integer(simd.registers[index.column as usize + lane])
        };
        let mut outside = 0u128;
        for_each_lane(simd.mask, |lane| {
            let inside = (0..i128::from(parts)).contains(&value(lane));
            outside |= u128::from(!inside) << lane;
        });
        if outside == 0 {
            return;
        }
        let lane = outside.trailing_zeros();
        let event = observe::OutOfBounds {
            who: group.who(simd),
            site,
            object: None,
            load,
            lane,
            lanes: outside,
            count: outside.count_ones().into(),
            index: value(lane as usize),
            length: parts.into(),
            what: "component",
            within: None,
        };
        for observer in self.observers.iter_mut() {
            observer.out_of_bounds(&event);
        }
    }
}
