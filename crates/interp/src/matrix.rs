//! Simdgroup matrices: 8x8 entries, by rows, side by side in the simdgroup's registers.
//!
//! They belong to the simdgroup as a whole, so a partial one works on them as a full one does (X6).

use invar_ir::ops::Meaning;
use invar_ir::{Op, Scalar};

use crate::access::{self, NOWHERE};
use crate::observe::{self, Kind, Touched};
use crate::program::{Column, Index, MatrixAccess};
use crate::state::{Place, Run, Simdgroup, bytes_of, bytes_of_mut};

fn evaluate(op: Op, from: Scalar, to: Scalar, args: &[&[u64]], out: &mut [u64]) {
    match op.row().meaning {
        Meaning::Eval(evaluator) => evaluator(from, to, args, out),
        Meaning::Expand(_) | Meaning::Arrange | Meaning::Lanes(..) | Meaning::Query => {
            unreachable!("`{op}` has an evaluator")
        }
    }
}

/// `destination = a * b + c`: for each entry `fma` in the order of the shared index, in the type of
/// `c`, to which the factors are converted first. `shape` is the rows of `a`, the columns of `b` and
/// what they share.
pub(crate) fn multiply(
    registers: &mut [u64],
    a: (Column, Scalar),
    b: (Column, Scalar),
    c: (Column, Scalar),
    destination: Column,
    shape: (u8, u8, u8),
) {
    let (rows, columns, inner) = (shape.0 as usize, shape.1 as usize, shape.2 as usize);
    let scalar = c.1;
    let matrix = |(column, from): (Column, Scalar), count: usize| {
        let entries = &registers[column as usize..column as usize + count];
        if from == scalar {
            return entries.to_vec();
        }
        let mut out = vec![0; count];
        evaluate(Op::Cast, from, scalar, &[entries], &mut out);
        out
    };
    let left = matrix(a, rows * inner);
    let right = matrix(b, inner * columns);
    let mut sum = matrix(c, rows * columns);
    let mut next = vec![0; rows * columns];
    for k in 0..inner {
        let entries = |f: &dyn Fn(usize, usize) -> u64| -> Vec<u64> {
            (0..rows * columns)
                .map(|e| f(e / columns, e % columns))
                .collect()
        };
        let x = entries(&|r, _| left[r * inner + k]);
        let y = entries(&|_, c| right[k * columns + c]);
        evaluate(Op::Fma, scalar, scalar, &[&x, &y, &sum], &mut next);
        std::mem::swap(&mut sum, &mut next);
    }
    let to = destination as usize;
    registers[to..to + rows * columns].copy_from_slice(&sum);
}

impl Run<'_, '_, '_> {
    /// The element of each entry, as a mathematical integer.
    fn entries(&self, simd: &Simdgroup, access: &MatrixAccess) -> Vec<i128> {
        let lane = simd.mask.trailing_zeros() as usize;
        let value = |i: Index| i.scalar.integer(simd.registers[i.column as usize + lane]);
        let (start, stride) = (value(access.index), value(access.row));
        let (rows, columns) = (i128::from(access.rows), i128::from(access.columns));
        (0..rows * columns)
            .map(|entry| {
                let (r, c) = (entry / columns, entry % columns);
                let (along, across) = if access.transpose { (c, r) } else { (r, c) };
                start + along * stride + across
            })
            .collect()
    }

    /// Addresses of the entries; shows observers those that have none.
    fn entry_addresses(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        access: &MatrixAccess,
        elements: &[i128],
        load: bool,
    ) -> Vec<u64> {
        let length = self.lengths[access.object as usize];
        let object = &self.program.objects[access.object as usize];
        let inside = |e: &&i128| (0..i128::from(length)).contains(*e);
        if let Some(outside) = elements.iter().find(|e| !inside(e)) {
            let event = observe::OutOfBounds {
                who: group.who(simd),
                site: access.site,
                object: Some(access.object),
                load,
                lane: simd.mask.trailing_zeros(),
                lanes: simd.mask,
                count: simd.mask.count_ones().into(),
                index: *outside,
                length,
                what: "element",
                within: None,
            };
            for observer in self.observers.iter_mut() {
                observer.out_of_bounds(&event);
            }
        }
        elements
            .iter()
            .map(|e| match inside(&e) {
                true => *e as u64 * object.element_bytes,
                false => NOWHERE,
            })
            .collect()
    }

    fn show_entries(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        access: &MatrixAccess,
        (elements, addresses): (&[i128], &[u64]),
        kind: Kind,
        unchanged: &[bool],
    ) {
        if !self.watched[access.object as usize] {
            return;
        }
        let present = || (0..addresses.len()).filter(|i| addresses[*i] != NOWHERE);
        let ranges: Vec<_> = present()
            .map(|i| elements[i] as u64..elements[i] as u64 + 1)
            .collect();
        let unchanged: Vec<bool> = present()
            .filter_map(|i| unchanged.get(i).copied())
            .collect();
        let region = Touched {
            object: access.object,
            ranges: &ranges,
        };
        let who = group.who(simd);
        for observer in self.observers.iter_mut() {
            observer.collective(who, access.site, kind, region, &unchanged);
        }
    }

    pub(crate) fn matrix_load(
        &mut self,
        group: &Place,
        simd: &mut Simdgroup,
        access: &MatrixAccess,
        destination: Column,
    ) {
        let elements = self.entries(simd, access);
        let addresses = self.entry_addresses(group, simd, access, &elements, true);
        let kind = Kind::Read;
        self.show_entries(group, simd, access, (&elements, &addresses), kind, &[]);
        let slot = self.program.objects[access.object as usize].slot;
        let thread = &simd.thread_memory;
        let memory = bytes_of(slot, self.program, self.args, &group.memory, thread);
        let to = destination as usize;
        let out = &mut simd.registers[to..to + addresses.len()];
        access::gather(memory, &addresses, 0, access.scalar, out);
    }

    pub(crate) fn matrix_store(
        &mut self,
        group: &mut Place,
        simd: &mut Simdgroup,
        access: &MatrixAccess,
        source: Column,
    ) {
        let elements = self.entries(simd, access);
        let addresses = self.entry_addresses(group, simd, access, &elements, false);
        let slot = self.program.objects[access.object as usize].slot;
        let memory = bytes_of_mut(slot, self.args, &mut group.memory, &mut simd.thread_memory);
        let mut unchanged = Vec::new();
        for (address, value) in addresses.iter().zip(&simd.registers[source as usize..]) {
            let same = access::read(memory, *address, access.scalar) == *value;
            unchanged.push(same);
            access::write(memory, *address, access.scalar, *value);
            if !same && *address != NOWHERE {
                let bytes = access.scalar.size_bytes();
                self.changes.note(slot, *address, bytes);
            }
        }
        let kind = Kind::Write;
        self.show_entries(
            group,
            simd,
            access,
            (&elements, &addresses),
            kind,
            &unchanged,
        );
    }
}
