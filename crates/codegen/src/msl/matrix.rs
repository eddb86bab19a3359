//! Simdgroup matrices: Metal's own, with guards around their loads and stores.
//!
//! A matrix that lies inside its memory is loaded and stored by Metal's function. One that does not is loaded and
//! stored entry by entry: each lane those that it holds, by the places that Apple's devices give them.

use invar_ir::ops::Op;
use invar_ir::{MatrixPlace, Memory, Scalar, Type, Value};

use super::types;
use super::writer::Writer;

impl Writer<'_> {
    /// An index, stride or count as a `long`. What is beyond 2^58 is put there: far outside of all memory, and
    /// sums of a few such numbers do not wrap. What could come back was brought near before ([`crate::wide_indices`]).
    pub(super) fn far(&self, value: Value) -> String {
        const FAR: i128 = 1 << 58;
        if let Some(constant) = self.constants[value.0 as usize] {
            let number = constant.scalar.integer(constant.bits).clamp(-FAR, FAR);
            return if number < 0 {
                format!("({number}l)")
            } else {
                format!("{number}l")
            };
        }
        let text = self.v(value);
        match self.ty(value) {
            Type::Scalar(Scalar::U64) => format!("long(min({text}, {FAR}ul))"),
            Type::Scalar(Scalar::I64) => format!("clamp({text}, -{FAR}l, {FAR}l)"),
            _ => format!("long({text})"),
        }
    }

    pub(super) fn matrix_fill(&mut self, result: Value, value: Value) {
        let scalar = self.scalar_of(result);
        let text = self.v(value);
        let ty = types::scalar(scalar);
        self.define(
            result,
            &format!("make_filled_simdgroup_matrix<{ty}, 8, 8>({text})"),
        );
        self.uses_simdgroup_matrices = true;
    }

    pub(super) fn matrix_multiply_accumulate(
        &mut self,
        result: Value,
        a: Value,
        b: Value,
        c: Value,
    ) {
        let (a, b, c) = (self.v(a), self.v(b), self.v(c));
        let name = self.declare(result, None);
        self.line(&format!(
            "simdgroup_multiply_accumulate({name}, {a}, {b}, {c});"
        ));
        self.uses_simdgroup_matrices = true;
    }

    pub(super) fn matrix_load(&mut self, result: Value, place: &MatrixPlace) {
        let call = self.matrix_access(place, self.scalar_of(result), None);
        self.define(result, &call);
    }

    pub(super) fn matrix_store(&mut self, place: &MatrixPlace, matrix: Value) {
        let text = self.v(matrix);
        let call = self.matrix_access(place, self.scalar_of(matrix), Some(&text));
        match self.simdgroup_may_write() {
            None => self.line(&format!("{call};")),
            Some(exists) => self.line(&format!("if ({exists}) {call};")),
        }
    }

    fn scalar_of(&self, value: Value) -> Scalar {
        self.ty(value).scalar().unwrap_or(Scalar::F32)
    }

    fn matrix_access(&mut self, place: &MatrixPlace, s: Scalar, stored: Option<&str>) -> String {
        self.uses_simdgroup_matrices = true;
        let space = self.qualifiers(place.memory);
        let object = self.object(place.memory);
        let length = self.length_of(place.memory);
        let (index, row) = (self.far(place.index), self.far(place.row));
        let lane = self.input(Op::ThreadIndexInSimdgroup);
        let transpose = place.transpose;
        self.matrix_helper(space, s, stored.is_none());
        match stored {
            None => format!(
                "invar_matrix_load({object}, {length}, {index}, {row}, {transpose}, {lane})"
            ),
            Some(matrix) => format!(
                "invar_matrix_store({matrix}, {object}, {length}, {index}, {row}, {transpose}, {lane})"
            ),
        }
    }

    /// The length of an object as a `ulong`.
    pub(super) fn length_of(&mut self, memory: Memory) -> String {
        match memory {
            Memory::Param(_) => self.length(memory),
            Memory::Alloc(_) | Memory::Constant(_) => {
                format!("{}l", self.length(memory))
            }
        }
    }

    fn matrix_helper(&mut self, space: &str, s: Scalar, load: bool) {
        self.helpers.add("matrix entry", || {
            "// Row and column of the first of the two neighbouring entries that a lane holds.
static inline uint2 invar_matrix_entry(uint lane) {
    const uint quad = lane / 4;
    return uint2((quad & 4) + lane / 2 % 4, (quad & 2) * 2 + lane % 2 * 2);
}"
            .to_string()
        });
        let ty = types::scalar(s);
        let matrix = format!("simdgroup_{ty}8x8");
        let guards = self.has_guards();
        let inside = if guards {
            "index >= 0 && row >= 0 && ulong(index + 7 * row + 7) < length"
        } else {
            // Rows that go backwards are not Metal's.
            "row >= 0"
        };
        if load {
            self.helpers.add(&format!("matrix load {space} {ty}"), || {
                format!(
                    "// Entry (r, c) is element index + r row + c, transposed index + c row + r; 0 where there is none.
static inline {matrix} invar_matrix_load({space} {ty}* x, ulong length, long index, long row, bool transpose, uint lane) {{
    {matrix} m;
    if ({inside}) {{
        simdgroup_load(m, x + index, ulong(row), ulong2(0), transpose);
        return m;
    }}
    const uint2 entry = invar_matrix_entry(lane);
    for (uint k = 0; k < 2; ++k) {{
        const long r = entry.x;
        const long c = entry.y + k;
        const ulong at = ulong(index + (transpose ? c * row + r : r * row + c));
        m.thread_elements()[k] = at < length ? x[at] : {};
    }}
    return m;
}}",
                    types::zero(Type::Scalar(s))
                )
            });
        } else {
            self.helpers.add(&format!("matrix store {space} {ty}"), || {
                format!(
                    "// Entry (r, c) goes to element index + r row + c, transposed index + c row + r, where there is one.
static inline void invar_matrix_store({matrix} m, {space} {ty}* x, ulong length, long index, long row, bool transpose, uint lane) {{
    if ({inside}) {{
        simdgroup_store(m, x + index, ulong(row), ulong2(0), transpose);
        return;
    }}
    const uint2 entry = invar_matrix_entry(lane);
    for (uint k = 0; k < 2; ++k) {{
        const long r = entry.x;
        const long c = entry.y + k;
        const ulong at = ulong(index + (transpose ? c * row + r : r * row + c));
        if (at < length) x[at] = m.thread_elements()[k];
    }}
}}"
                )
            });
        }
    }
}
