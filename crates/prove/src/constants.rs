//! The constants of a kernel that conditions on its launches speak of.

use std::collections::{BTreeSet, HashMap};

use invar_ir::{InstKind, Op, Type, Value, Width};

use crate::shape::Statement;
use crate::subject::{Extent, Site, Subject};
use crate::thread::{LARGEST_THREADGROUP, range};

/// Rows and columns of a simdgroup matrix.
const MATRIX_SIDE: i128 = 8;

impl Subject<'_> {
    /// Constants of the kernel that a condition may speak of, and widths of its accesses beside 1.
    pub fn constants(&self) -> (Vec<i128>, Vec<i128>) {
        let mut found = BTreeSet::new();
        let mut widths = BTreeSet::new();
        for statement in &self.shape.statements {
            if let InstKind::Const(constant) = &statement.inst.kind
                && constant.scalar.is_integer()
            {
                let number = constant.scalar.integer(constant.bits);
                if (2..=1 << 20).contains(&number) {
                    found.insert(number);
                }
                // What a mask keeps is less than this.
                if (3..1 << 20).contains(&number) && number & (number + 1) == 0 {
                    found.insert(number + 1);
                }
            }
        }
        for statement in &self.shape.statements {
            if let InstKind::Op { op, args, .. } = &statement.inst.kind
                && matches!(op, Op::Shl | Op::Shr | Op::ShrExact)
                && let Some(count) = self.run(args[1], &HashMap::new(), 0)
                && (1..=20).contains(&count)
            {
                found.insert(1 << count);
            }
        }
        if let Some(size) = self.kernel.threadgroup_size {
            found.extend(size.into_iter().filter(|s| *s > 1).map(i128::from));
        }
        for site in &self.sites {
            if let Extent::Width(width) = site.extent
                && width.count() > 1
            {
                widths.insert(i128::from(width.count()));
            }
        }
        let constants = found.into_iter().rev().take(7).collect();
        (constants, widths.into_iter().collect())
    }

    /// How many rows an access reaches, beside 1: of a simdgroup matrix.
    pub fn rows_reached(&self) -> Vec<i128> {
        let has_rows = |site: &Site<'_>| matches!(site.extent, Extent::Matrix(_));
        let is_of_matrices = self.sites.iter().any(has_rows);
        is_of_matrices.then_some(MATRIX_SIDE).into_iter().collect()
    }

    /// How many elements of a row threads reach: the sides of threadgroups and all their threads, the widths of accesses,
    /// and what indices are compared with. The least first.
    pub fn floors(&self) -> Vec<i128> {
        const MOST: usize = 6;
        let mut found = BTreeSet::new();
        if let Some(size) = self.kernel.threadgroup_size {
            let sides = size.map(i128::from);
            found.extend(sides);
            found.insert(sides.iter().product());
        }
        found.extend(self.constants().1);
        found.extend(self.rows_reached());
        let number = |value| self.run(value, &HashMap::new(), 0);
        for statement in &self.shape.statements {
            if let InstKind::Op { op, args, .. } = &statement.inst.kind
                && matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Add)
                && self.kernel.ty(args[0]).is_integer_scalar()
            {
                found.extend(args.iter().find_map(|v| number(*v)));
            }
        }
        found.retain(|n| (2..=LARGEST_THREADGROUP).contains(n));
        found.into_iter().take(MOST).collect()
    }

    /// Constants that something is multiplied by, the largest first.
    pub fn factors(&self) -> Vec<i128> {
        let mut found = BTreeSet::new();
        let number = |value| self.run(value, &HashMap::new(), 0);
        for statement in &self.shape.statements {
            if let InstKind::Op { op, args, .. } = &statement.inst.kind {
                found.extend(match op {
                    Op::Mul => args.iter().find_map(|v| number(*v)),
                    Op::Shl => number(args[1]).filter(|n| *n <= 20).map(|n| 1 << n),
                    _another => None,
                });
            }
        }
        for site in &self.sites {
            if let Extent::Width(Width::Group(count)) = site.extent {
                found.insert(i128::from(count));
            }
        }
        found.extend(self.iterations_of_tickets());
        found.retain(|n| (2..=1 << 20).contains(n));
        found.into_iter().rev().collect()
    }

    /// How many numbers those types of 16 bits have that a cast makes of larger ones.
    pub fn narrow(&self) -> Vec<i128> {
        let mut found = BTreeSet::new();
        for statement in &self.shape.statements {
            if let InstKind::Op {
                op: Op::Cast, args, ..
            } = &statement.inst.kind
                && let Some(result) = statement.inst.results.first()
                && let (Type::Scalar(from), Type::Scalar(to)) =
                    (self.kernel.ty(args[0]), self.kernel.ty(*result))
                && from.is_integer()
                && to.is_integer()
                && to.bits() == 16
                && from.bits() > 16
            {
                found.insert(range(to).1 + 1);
            }
        }
        found.into_iter().rev().collect()
    }

    /// The largest numbers of those types of 8 and 16 bits of which a cast makes larger ones: how far those reach.
    pub fn widened(&self) -> BTreeSet<i128> {
        let of_statement = |statement: &Statement<'_>| {
            let InstKind::Op {
                op: Op::Cast, args, ..
            } = &statement.inst.kind
            else {
                return None;
            };
            let scalar = |value: Value| self.kernel.ty(value).scalar();
            let scalars = (scalar(args[0])?, scalar(*statement.inst.results.first()?)?);
            let (from, to) = scalars;
            let is_wider = from.is_integer() && to.is_integer() && from.bits() < to.bits();
            (is_wider && from.bits() <= 16).then(|| range(from).1)
        };
        self.shape
            .statements
            .iter()
            .filter_map(of_statement)
            .collect()
    }
}
