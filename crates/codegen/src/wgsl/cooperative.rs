//! Simdgroup matrices as the target's cooperative matrices.
//!
//! A cooperative matrix has its place in products, as the left or right factor or as the sum, in its type. So
//! a kernel is written with them if each of its matrices, with all that it is carried into, has one place, and
//! if all its products are of types that the target multiplies. Any other kernel has its matrices in plain
//! code (`collective.rs`), as has one that meets them where only a part of the threadgroup comes: the target
//! wants whole subgroups, and what is staged takes barriers of the threadgroup.
//!
//! The target's own load or store takes a matrix that is wholly in bounds, by one question for all its lanes
//! (B1, B2, B5). Any other one goes through threadgroup memory, entry by entry under the guards of plain
//! code; so does one that is not aligned as Vulkan wants it, one that lies in atomics, words, vectors or
//! threadgroup memory, and what `matrix_fill` makes. A simdgroup outside the grid stores nothing.

use invar_ir::{AddressSpace, MatrixPlace, Scalar, Value};

use super::plan::Storage;
use super::roles::Role;
use super::types::{MATRIX_ENTRIES, scalar as wgsl_scalar, tag, zero_extended};
use super::values::matrix_type;
use super::writer::{Identity, Writer};

/// Words of the target's that mean something where it has cooperative matrices.
pub(super) const WORDS: &[&str] = &[
    "A",
    "B",
    "C",
    "coop_mat8x8",
    "coopLoad",
    "coopLoadT",
    "coopMultiplyAdd",
    "coopStore",
    "coopStoreT",
];

/// What the target calls an access to a matrix whose rows, or else columns, lie one after another.
fn suffix(transpose: bool) -> &'static str {
    if transpose { "" } else { "T" }
}

impl Writer<'_> {
    /// The threadgroup array in which the simdgroups stage matrices of a type, 64 entries each.
    fn staging(&mut self, scalar: Scalar) -> String {
        let name = format!("{scalar}__staged");
        let threads: u32 = self.options.threadgroup_size.iter().product();
        let entries = threads.div_ceil(self.simdgroup_size) * MATRIX_ENTRIES;
        if !self.helpers.has(&name) {
            self.helper_bytes +=
                u64::from(entries) * super::types::held_bytes(scalar, self.options.features);
        }
        let holds = wgsl_scalar(scalar);
        self.helper(&name, |_| {
            format!("var<workgroup> {name}: array<{holds}, {entries}>;\n")
        });
        name
    }

    /// The loop over the entries that a lane stages, for threads that exist.
    fn each_entry(&mut self, statement: &str, pad: &str) -> String {
        let (lane, lanes) = self.lane();
        let end = if self.surplus {
            self.identity.insert(Identity::Count);
            format!("select(0u, {MATRIX_ENTRIES}u, exists)")
        } else {
            format!("{MATRIX_ENTRIES}u")
        };
        let each = self
            .loops
            .counted(format!("e = {lane}; e < end; e = e + step"));
        format!(
            "{pad}let step = {lanes};\n{pad}let end = {end};\n{pad}{each}\n{pad}    {statement}\n{pad}}}\n"
        )
    }

    /// The condition under which the simdgroup's own access to a matrix at `start` with rows of `row` elements
    /// is allowed; none if it never is.
    fn own_access(&mut self, place: &MatrixPlace, scalar: Scalar) -> Option<String> {
        let info = self.module.memory(self.kernel, place.memory)?;
        let is_buffer = matches!(info.space, AddressSpace::Device | AddressSpace::Constant);
        if !is_buffer || self.plan.object(place.memory).storage != Storage::Scalars(scalar) {
            return None;
        }
        let mut all = Vec::new();
        if self.surplus {
            let (thread, size) = (self.thread(), self.simdgroup_size);
            let count = self.thread_count();
            all.push(format!("{thread} / {size}u * {size}u < {count}"));
        }
        // Vulkan wants rows to begin at multiples of 16 bytes.
        let low_bits = 16 / scalar.size_bytes() - 1;
        all.push("start >= 0li && row >= 8li".to_string());
        all.push(format!("((start | row) & {low_bits}li) == 0li"));
        let length = zero_extended(&self.length(place.memory));
        all.push(format!("start + row * 7li + 7li < {length}"));
        Some(all.join(" && "))
    }

    /// Where the simdgroup's entries begin in the array in which it stages them.
    fn staged(&mut self, scalar: Scalar) -> String {
        let array = self.staging(scalar);
        let (thread, size) = (self.thread(), self.simdgroup_size);
        format!("{array}[{thread} / {size}u * {MATRIX_ENTRIES}u")
    }

    /// The name of a function that has to do with a memory object's matrices there.
    fn move_name(&self, place: &MatrixPlace, what: &str, role: Role) -> String {
        let transposed = if place.transpose { "_transposed" } else { "" };
        let array = self.memory_name(place.memory);
        format!("{array}__{what}_matrix_{}{transposed}", role.wgsl())
    }

    /// As [`Writer::matrix_fill`], of a cooperative matrix.
    pub(super) fn cooperative_fill(&mut self, value: Value, role: Role) -> String {
        let entry = self.ty(value);
        let scalar = entry.scalar().unwrap_or(Scalar::F32);
        let name = format!("{}__fill_matrix_{}", tag(entry), role.wgsl());
        let (holds, matrix) = (wgsl_scalar(scalar), matrix_type(scalar, role));
        let staged = self.staged(scalar);
        let stage = self.each_entry(&format!("{staged} + e] = x;"), "    ");
        self.helper(&name, |_| {
            format!(
                "fn {name}(x: {holds}) -> {matrix} {{\n{stage}    workgroupBarrier();\n    \
                 let m = coopLoadT<{matrix}>(&{staged}], 8u);\n    workgroupBarrier();\n    return m;\n}}\n"
            )
        });
        format!("{name}({})", self.value(value))
    }

    /// A function of the index and the row length that loads a matrix.
    pub(super) fn cooperative_load(
        &mut self,
        place: &MatrixPlace,
        scalar: Scalar,
        role: Role,
    ) -> String {
        self.uses_subgroups = true;
        let name = self.move_name(place, "load", role);
        let way = self.way_of(place.memory, &[]);
        let load = self.load_helper(place.memory, &way);
        let matrix = matrix_type(scalar, role);
        let entry = Self::entry(place.transpose);
        let staged = self.staged(scalar);
        let stage = self.each_entry(&format!("{staged} + e] = {load}({entry});"), "        ");
        let array = self.memory_name(place.memory);
        let own = self.own_access(place, scalar).map(|condition| {
            let access = format!(
                "coopLoad{}<{matrix}>(&{array}[u32(start)], u32(row))",
                suffix(place.transpose)
            );
            (condition, access)
        });
        let (condition, access) = own.unzip();
        let inside = inside(condition);
        let own = access.map_or(String::new(), |access| {
            format!("    if (inside) {{\n        m = {access};\n    }}\n")
        });
        self.helper(&name, |_| {
            format!(
                "fn {name}(start: i64, row: i64) -> {matrix} {{\n{inside}    if (!inside) {{\n{stage}    }}\n    \
                 workgroupBarrier();\n    var m = coopLoadT<{matrix}>(&{staged}], 8u);\n{own}    \
                 workgroupBarrier();\n    return m;\n}}\n"
            )
        });
        name
    }

    /// A function of the index, the row length and a matrix that stores it.
    pub(super) fn cooperative_store(
        &mut self,
        place: &MatrixPlace,
        scalar: Scalar,
        role: Role,
    ) -> String {
        self.uses_subgroups = true;
        let name = self.move_name(place, "store", role);
        let way = self.way_of(place.memory, &[]);
        let store = self.store_helper(place.memory, &way);
        let matrix = matrix_type(scalar, role);
        let entry = Self::entry(place.transpose);
        let staged = self.staged(scalar);
        let unstage = self.each_entry(&format!("{store}({entry}, {staged} + e]);"), "        ");
        let array = self.memory_name(place.memory);
        let condition = self.own_access(place, scalar);
        let own = condition.as_ref().map_or(String::new(), |_| {
            format!(
                "    if (inside) {{\n        coopStore{}(m, &{array}[u32(start)], u32(row));\n    }}\n",
                suffix(place.transpose)
            )
        });
        let inside = inside(condition);
        self.helper(&name, |_| {
            format!(
                "fn {name}(start: i64, row: i64, m: {matrix}) {{\n{inside}{own}    \
                 coopStoreT(m, &{staged}], 8u);\n    workgroupBarrier();\n    if (!inside) {{\n{unstage}    }}\n    \
                 workgroupBarrier();\n}}\n"
            )
        });
        name
    }
}

/// The statement that asks once for all lanes.
fn inside(condition: Option<String>) -> String {
    let text = condition.map_or("false".to_string(), |c| format!("subgroupAll({c})"));
    format!("    let inside = {text};\n")
}
