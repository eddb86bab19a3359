//! Where in a threadgroup there is something to do, by the positions that conditions let through ([`crate::borders`]).
//!
//! Deliberately absent: conditions on sums of positions.

use inkwell::IntPredicate;
use inkwell::values::IntValue;

use crate::emit::BUILT;
use crate::function::FunctionLowering;
use crate::guards::Interval;

/// From which thread of a threadgroup on there is something to do, and where that ends, in a dimension.
#[derive(Clone, Copy)]
pub(crate) struct Side<'c> {
    pub low: IntValue<'c>,
    pub high: IntValue<'c>,
}

impl<'c> FunctionLowering<'c, '_> {
    /// The sides of what of a threadgroup has something to do, if positions lie between these and all is proved;
    /// else the threadgroup's own.
    pub fn sides(
        &self,
        places: [Option<Interval<'c>>; 3],
        proved: Option<IntValue<'c>>,
    ) -> [Option<Side<'c>>; 3] {
        let e = &self.e;
        let Some(proved) = proved else {
            return [None; 3];
        };
        let side = |dim: usize, place: Interval<'c>| {
            let ty = place.low.get_type();
            let unsigned = |n: IntValue<'c>| {
                let wide = e.builder.build_int_z_extend(n, ty, "");
                wide.expect(BUILT)
            };
            let size = self.group.size[dim];
            let (first, all) = (unsigned(self.group.origin[dim]), unsigned(size));
            let zero = ty.const_zero();
            // From the first thread, and between none and all.
            let within = |n: IntValue<'c>, otherwise: IntValue<'c>| {
                let n = e.sub(n, first);
                let below = e.compare(IntPredicate::SLT, n, zero);
                let above = e.compare(IntPredicate::SGT, n, all);
                let n = e
                    .select(below.into(), zero.into(), n.into())
                    .into_int_value();
                let n = e
                    .select(above.into(), all.into(), n.into())
                    .into_int_value();
                let narrow = e.builder.build_int_truncate(n, e.context.i32_type(), "");
                let narrow = narrow.expect(BUILT);
                e.select(proved.into(), narrow.into(), otherwise.into())
                    .into_int_value()
            };
            Side {
                low: within(place.low, e.i32(0)),
                high: within(e.add(place.high, ty.const_int(1, false)), size),
            }
        };
        let mut sides = [None; 3];
        for (dim, place) in places.into_iter().enumerate() {
            sides[dim] = place.map(|place| side(dim, place));
        }
        sides
    }
}
