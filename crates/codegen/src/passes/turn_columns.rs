//! Threadgroups that go down the columns of a matrix of tiles go along its rows instead.
//!
//! ```text
//! row = place % height, column = place / height   ->   row = place / width, column = place % width
//! width = threadgroups / height
//! ```
//!
//! This is for kernels whose grid is one line of threadgroups, of which each divides its place into a row and a column
//! of tiles as layouts count them, the rows first, where memory lies side by side along rows. One after another, such
//! threadgroups come to a page of memory for one row of a tile, and come back to it a column later.
//!
//! Each place is still that of one threadgroup, and no order of threadgroups is promised (X3). The equation holds where
//! the height divides the number of threadgroups, and all are full; elsewhere a `select` keeps what was written. The
//! place must be asked for by such quotients and remainders alone, and no thread may wait for another threadgroup.
//!
//! It is done where every access to a buffer that moves with the place moves less from column to column than from row
//! to row. Products by tiles keep their order: one factor stays in the caches from row to row.
//!
//! Deliberately absent: places in the grid of threads, which `regroup.rs` divides; heights that are not constants.

use std::collections::{HashMap, HashSet};

use invar_ir::{
    AccessMode, AddressSpace, Const, Dim, Imm, Inst, InstKind, Kernel, Module, Op, Region, Scalar,
    Span, Type, Value, ValueInfo, Values,
};

use super::common::{constants, integer, push_const, push_inst};
use crate::analysis::affine::{self, Affine, Product, Sum, Symbol};
use crate::analysis::ranges::{self, Known};

pub(super) fn run(module: &Module, kernel: &mut Kernel) {
    if waits(kernel) {
        return;
    }
    let Some(divided) = Divided::of(kernel) else {
        return;
    };
    if !divided.is_nearer_along_rows(module, kernel) {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    rewrite(&mut body, &mut kernel.values, &divided);
    kernel.body = body;
}

/// Whether a threadgroup may wait for another one.
fn waits(kernel: &Kernel) -> bool {
    let mut used = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        inst.kind.for_each_use(|v| {
            used.insert(v);
        });
    });
    let mut waits = false;
    kernel.for_each_inst(&mut |inst| {
        let meets_own = matches!(inst.kind, InstKind::Barrier { .. });
        waits |= inst.kind.orders_memory() && !meets_own;
        let asks = (inst.kind.accesses().iter())
            .any(|a| matches!(a.mode, AccessMode::Atomic { .. }) && a.mode.reads());
        waits |= asks && inst.results.iter().any(|v| used.contains(v));
    });
    waits
}

/// How a kernel's threadgroups divide their place.
struct Divided {
    height: u32,
    rows: HashSet<Value>,
    columns: HashSet<Value>,
}

impl Divided {
    fn of(kernel: &Kernel) -> Option<Divided> {
        let constants = constants(kernel);
        let mut places = HashSet::new();
        let mut others = false;
        kernel.for_each_inst(&mut |inst| {
            if let Some((op, imm, _)) = inst.kind.as_op() {
                let of_x = imm == Imm::Dim(Dim::X);
                if op == Op::ThreadgroupPositionInGrid && of_x {
                    places.extend(inst.results.iter().copied());
                }
                others |= op == Op::ThreadPositionInGrid && of_x;
            }
        });
        if places.is_empty() || others {
            return None;
        }
        let mut found = Divided {
            height: 0,
            rows: HashSet::new(),
            columns: HashSet::new(),
        };
        let mut only = true;
        kernel.for_each_inst(&mut |inst| {
            let mut uses = 0;
            inst.kind
                .for_each_use(|v| uses += usize::from(places.contains(&v)));
            if uses == 0 {
                return;
            }
            only &= uses == 1 && found.add(inst, &places, &constants);
        });
        let divides = found.height > 1 && !found.rows.is_empty() && !found.columns.is_empty();
        (only && divides).then_some(found)
    }

    /// Takes a quotient or a remainder of a place; gives whether it is one.
    fn add(
        &mut self,
        inst: &Inst,
        places: &HashSet<Value>,
        constants: &HashMap<Value, Const>,
    ) -> bool {
        let Some((op, _, &[place, by])) = inst.kind.as_op() else {
            return false;
        };
        let by = constants.get(&by).copied().and_then(integer);
        let (Some(by), true) = (by, places.contains(&place)) else {
            return false;
        };
        let (height, all) = match op {
            Op::Rem => (by, &mut self.rows),
            Op::And => (by + 1, &mut self.rows),
            Op::Div => (by, &mut self.columns),
            Op::Shr | Op::ShrExact if (0..31).contains(&by) => (1 << by, &mut self.columns),
            _other => return false,
        };
        let is_power = height > 0 && height & (height - 1) == 0;
        let Ok(height) = u32::try_from(height) else {
            return false;
        };
        all.extend(inst.results.iter().copied());
        let same = self.height == 0 || self.height == height;
        self.height = height;
        same && (op != Op::And || is_power)
    }

    /// Whether accesses lie nearer together along rows of tiles.
    fn is_nearer_along_rows(&self, module: &Module, kernel: &Kernel) -> bool {
        let ranges = ranges::analyse(kernel, &Known::default());
        let affine = affine::analyse(kernel, &ranges, None);
        let (mut nearer, mut farther) = (false, false);
        kernel.for_each_inst(&mut |inst| {
            for access in inst.kind.accesses() {
                let info = module.memory(kernel, access.memory);
                if !info.is_some_and(|info| info.space == AddressSpace::Device) {
                    continue;
                }
                match self.moves(&affine, access.elements.first()) {
                    Some([Some(0), Some(0)]) => {}
                    Some([row, Some(column)]) if row.is_none_or(|row| row > column) => {
                        nearer |= column != 0;
                    }
                    _along_columns_or_anyhow => farther = true,
                }
            }
        });
        nearer && !farther
    }

    /// How far an index moves from row to row and from column to column, where that is a known number; none if it moves
    /// in another way.
    fn moves(&self, affine: &Affine<'_>, index: Value) -> Option<[Option<u64>; 2]> {
        let sum = affine.of(index).sum;
        let is_own = |value: &Value| self.rows.contains(value) || self.columns.contains(value);
        for symbol in sum.symbols() {
            if matches!(symbol, Symbol::Value(value) if is_own(&value)) {
                continue;
            }
            let mut stays = |symbol| symbol != Symbol::Threadgroup(Dim::X);
            if !affine.depends_only_on(&Sum::of(Product::of(symbol)), &mut stays) {
                return None;
            }
        }
        let [rows, columns] = [&self.rows, &self.columns].map(|values| {
            let by = values.iter().try_fold(Sum::constant(0), |all, value| {
                Some(all.plus(&sum.coefficient(Symbol::Value(*value))?, 1))
            })?;
            Some(by.as_constant().map(i64::unsigned_abs))
        });
        Some([rows?, columns?])
    }
}

fn rewrite(region: &mut Region, values: &mut Vec<ValueInfo>, divided: &Divided) {
    for mut inst in std::mem::take(&mut region.insts) {
        for inner in inst.kind.regions_mut() {
            rewrite(inner, values, divided);
        }
        let result = inst.results.first().copied();
        let is_row = result.is_some_and(|v| divided.rows.contains(&v));
        let is_column = result.is_some_and(|v| divided.columns.contains(&v));
        let (Some(result), true) = (result, is_row || is_column) else {
            region.insts.push(inst);
            continue;
        };
        let mut build = Build {
            values,
            out: &mut region.insts,
            span: inst.span,
        };
        let place = build.query(Op::ThreadgroupPositionInGrid);
        let groups = build.query(Op::ThreadgroupsPerGrid);
        let height = build.constant(divided.height);
        let width = build.op(Op::Div, &[groups, height], Type::U32);
        let holds = build.holds(groups, height);
        let (written, turned) = if is_row {
            let last = build.constant(divided.height - 1);
            let row = build.op(Op::Div, &[place, width], Type::U32);
            // It is no more where this holds; so the same is known of it as of the remainder.
            let turned = build.op(Op::Min, &[row, last], Type::U32);
            (build.op(Op::Rem, &[place, height], Type::U32), turned)
        } else {
            let turned = build.op(Op::Rem, &[place, width], Type::U32);
            (build.op(Op::Div, &[place, height], Type::U32), turned)
        };
        inst.kind = InstKind::Op {
            op: Op::Select,
            imm: Imm::None,
            args: Values::from_slice(&[written, turned, holds]),
        };
        inst.results = [result].into_iter().collect();
        region.insts.push(inst);
    }
}

/// Instructions at the end of a list.
struct Build<'a> {
    values: &'a mut Vec<ValueInfo>,
    out: &'a mut Vec<Inst>,
    span: Span,
}

impl Build<'_> {
    /// Whether the height divides the threadgroups, and these are full.
    fn holds(&mut self, groups: Value, height: Value) -> Value {
        let bool = Type::Scalar(Scalar::Bool);
        let (threads, size) = (
            self.query(Op::ThreadsPerGrid),
            self.query(Op::DispatchThreadsPerThreadgroup),
        );
        let zero = self.constant(0);
        let [divides, full] = [(groups, height), (threads, size)].map(|(all, by)| {
            let rest = self.op(Op::Rem, &[all, by], Type::U32);
            self.op(Op::Eq, &[rest, zero], bool)
        });
        self.op(Op::And, &[divides, full], bool)
    }

    fn query(&mut self, op: Op) -> Value {
        self.push(op, Imm::Dim(Dim::X), &[], Type::U32)
    }

    fn op(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.push(op, Imm::None, args, ty)
    }

    fn push(&mut self, op: Op, imm: Imm, args: &[Value], ty: Type) -> Value {
        let args = Values::from_slice(args);
        let kind = InstKind::Op { op, imm, args };
        push_inst(self.values, self.out, kind, ty, self.span)
    }

    fn constant(&mut self, bits: u32) -> Value {
        let constant = Const {
            scalar: Scalar::U32,
            bits: bits.into(),
        };
        push_const(self.values, self.out, constant, self.span)
    }
}
