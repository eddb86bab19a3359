//! What a loop may add to an integer that it carries, and what it may end at, as its instructions say: each is still to
//! be proved (`invariants.rs`).

use std::collections::HashMap;

use invar_ir::{InstKind, Op, Value};

use crate::shape::Id;
use crate::subject::Subject;

impl Subject<'_> {
    /// What is compared with the index of the next iteration where a loop goes on: `if next < end { continue next }`.
    pub fn end_of_iterations(&self, loop_: Id, exit: Id, next: Value) -> Option<Value> {
        let (holder, side) = self.shape.statements[exit].parent?;
        let InstKind::If { condition, .. } = self.shape.kind(holder) else {
            return None;
        };
        let InstKind::Op { op, args, .. } = self.shape.defining(*condition)? else {
            return None;
        };
        let end = match (op, side, &args[..]) {
            (Op::Lt | Op::Ne, 0, [a, b]) | (Op::Ge | Op::Eq, 1, [a, b]) if *a == next => *b,
            (Op::Gt, 0, [a, b]) | (Op::Le, 1, [a, b]) if *b == next => *a,
            _another => return None,
        };
        self.is_one_for_all_iterations(loop_, end, 0).then_some(end)
    }

    /// What an integer that a loop carries is compared with: `if index != end { continue index + 1 }`.
    pub fn ends_where_equal(&self, loop_: Id, carried: Value) -> Vec<Value> {
        let mut found = Vec::new();
        for statement in &self.shape.statements {
            let InstKind::Op {
                op: Op::Eq | Op::Ne,
                args,
                ..
            } = &statement.inst.kind
            else {
                continue;
            };
            let end = match &args[..] {
                [a, b] if *a == carried => *b,
                [a, b] if *b == carried => *a,
                _others => continue,
            };
            if !found.contains(&end) && self.is_one_for_all_iterations(loop_, end, 0) {
                found.push(end);
            }
        }
        found
    }

    pub(crate) fn step_of(&self, carried: Value, next: Value) -> Option<i128> {
        let InstKind::Op { op, args, .. } = self.shape.defining(next)? else {
            return None;
        };
        let [a, b] = args[..] else {
            return None;
        };
        let number = |value| self.run(value, &HashMap::new(), 0);
        match op {
            Op::Add if a == carried => number(b),
            Op::Add if b == carried => number(a),
            Op::Sub if a == carried => number(b).map(|n| -n),
            _another => None,
        }
    }

    /// What a loop adds to what it carries in each iteration, if it is one value for all iterations and no constant.
    pub(crate) fn stride_of(&self, loop_: Id, carried: Value, next: Value) -> Option<Value> {
        let InstKind::Op {
            op: Op::Add, args, ..
        } = self.shape.defining(next)?
        else {
            return None;
        };
        let [a, b] = args[..] else {
            return None;
        };
        let other = match carried {
            carried if a == carried => b,
            carried if b == carried => a,
            _another => return None,
        };
        let is_one = self.is_one_for_all_iterations(loop_, other, 0);
        let is_constant = self.run(other, &HashMap::new(), 0).is_some();
        (is_one && !is_constant).then_some(other)
    }

    /// Whether a value is the same in all iterations of a loop, though it may be computed anew in each.
    fn is_one_for_all_iterations(&self, loop_: Id, value: Value, depth: usize) -> bool {
        const DEEPEST: usize = 8;
        if !self.shape.loops_of(value).contains(&loop_) {
            return true;
        }
        let is_one = |value: &Value| self.is_one_for_all_iterations(loop_, *value, depth + 1);
        depth < DEEPEST
            && match self.shape.defining(value) {
                Some(
                    InstKind::Const(_) | InstKind::FunctionConstant(_) | InstKind::BufferLength(_),
                ) => true,
                Some(InstKind::Op { op, args, .. }) => {
                    let is_arithmetic = matches!(
                        op,
                        Op::Add
                            | Op::Sub
                            | Op::Mul
                            | Op::Div
                            | Op::Shl
                            | Op::Shr
                            | Op::Min
                            | Op::Max
                            | Op::Cast
                            | Op::AsType
                            | Op::ThreadsPerGrid
                            | Op::ThreadgroupsPerGrid
                            | Op::ThreadsPerThreadgroup
                            | Op::DispatchThreadsPerThreadgroup
                            | Op::ThreadsPerSimdgroup
                            | Op::SimdgroupsPerThreadgroup
                            | Op::Extract
                    );
                    is_arithmetic && args.iter().all(is_one)
                }
                Some(InstKind::Load(place)) => {
                    self.module.is_read_only(self.kernel, place.memory)
                        && is_one(&place.index)
                        && Subject::steps(&place.path).all(|value| is_one(&value))
                }
                Some(_) | None => false,
            }
    }
}
