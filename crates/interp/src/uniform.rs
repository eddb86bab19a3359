//! `assert_uniform` (X5): all threads of the scope get the value of one of them, and observers are
//! told where they disagree.
//!
//! The scope is a simdgroup or a threadgroup, whose threads meet; those of the grid cannot.

use invar_ir::Scope;

use crate::access::for_each_lane;
use crate::state::{Place, Run, Simdgroup};

impl Run<'_, '_, '_> {
    fn disagree(
        &mut self,
        group: &Place,
        simd: &Simdgroup,
        site: u32,
        scope: Scope,
        values: [u64; 2],
    ) {
        let who = group.who(simd);
        for observer in self.observers.iter_mut() {
            observer.not_uniform(who, site, scope, values);
        }
    }

    /// Makes `columns` columns at `at` one value over the simdgroup. They are asserted to be one over the scope.
    pub(crate) fn agree_in_simdgroup(
        &mut self,
        group: &Place,
        simd: &mut Simdgroup,
        (site, scope): (u32, Scope),
        at: usize,
        columns: usize,
    ) {
        let size = self.program.simdgroup_size as usize;
        let chosen = self.random_lane(simd);
        let mut apart = None;
        for column in simd.registers[at..at + columns * size].chunks_mut(size) {
            let value = column[chosen];
            for_each_lane(simd.mask, |lane| {
                if column[lane] != value {
                    apart = apart.or(Some([value, column[lane]]));
                }
            });
            column.fill(value);
        }
        if let Some(values) = apart {
            self.disagree(group, simd, site, scope, values);
        }
    }

    fn random_lane(&mut self, simd: &Simdgroup) -> usize {
        if self.options.seed == 0 {
            return simd.mask.trailing_zeros() as usize;
        }
        let mut skip = self.random.below(simd.mask.count_ones().into());
        let mut mask = simd.mask;
        while skip > 0 {
            mask &= mask - 1;
            skip -= 1;
        }
        mask.trailing_zeros() as usize
    }

    /// Makes the columns one value over the simdgroups of a threadgroup, each of which agrees
    /// already.
    pub(crate) fn agree_in_threadgroup(
        &mut self,
        group: &Place,
        simds: &mut [Simdgroup],
        site: u32,
        at: usize,
        columns: usize,
    ) {
        let chosen = match self.options.seed {
            0 => 0,
            _ => self.random.below(simds.len() as u64) as usize,
        };
        let length = columns * self.program.simdgroup_size as usize;
        let values = simds[chosen].registers[at..at + length].to_vec();
        for simd in simds {
            let own = &mut simd.registers[at..at + length];
            let apart = values.iter().zip(&*own).find(|(a, b)| a != b);
            let apart = apart.map(|(a, b)| [*a, *b]);
            own.copy_from_slice(&values);
            if let Some(values) = apart {
                self.disagree(group, simd, site, Scope::Threadgroup, values);
            }
        }
    }
}
