//! Runs of powers of e, as loops over rows that are written out leave them: one question decides for all of
//! them whether their arguments are near 0, where a power takes a third less.
//!
//! What computes from a run's results comes after it; everything else stays in its order.

use std::collections::HashSet;

use invar_ir::{FloatMode, Inst, InstKind, Op, Region, Type, Value};

use super::helpers::Helper;
use super::writer::Writer;
use crate::tuning::{LEAST_RUN, MOST_RUN};

impl Writer<'_> {
    /// Writes the run that begins with an instruction of a region, and gives how many instructions that
    /// are: 0 if none begins there.
    pub(super) fn run(&mut self, region: &Region, at: usize) -> usize {
        if !self.is_exp(&region.insts[at]) {
            return 0;
        }
        let mut members: Vec<&Inst> = Vec::new();
        let mut length = 0;
        let mut after: HashSet<Value> = HashSet::new();
        // What else is there, and whether it computes from a result.
        let mut others: Vec<(usize, &Inst, bool)> = Vec::new();
        for (i, inst) in region.insts[at..].iter().enumerate() {
            let mut waits = false;
            inst.kind.for_each_use(|v| waits |= after.contains(&v));
            let member = self.is_exp(inst);
            if members.len() == MOST_RUN {
                break;
            }
            if member && !waits {
                members.push(inst);
                length = i + 1;
                after.extend(inst.results.iter().copied());
                continue;
            }
            if member || !inst.kind.is_speculatable() {
                break;
            }
            if waits {
                after.extend(inst.results.iter().copied());
            }
            others.push((i, inst, waits));
        }
        if members.len() < LEAST_RUN {
            return 0;
        }
        others.retain(|(i, ..)| *i < length);
        for (_, inst, _) in others.iter().filter(|(.., waits)| !waits) {
            self.inst(inst);
        }
        self.next_inst += members.len();
        self.exps(&members);
        for (_, inst, _) in others.iter().filter(|(.., waits)| *waits) {
            self.inst(inst);
        }
        length
    }

    fn is_exp(&self, inst: &Inst) -> bool {
        match &inst.kind {
            InstKind::Op {
                op: Op::Exp, args, ..
            } => self.ty(args[0]) == Type::F32 && self.kernel.float_mode != FloatMode::Fast,
            _other => false,
        }
    }

    fn exps(&mut self, members: &[&Inst]) {
        self.need(Helper::Exp);
        self.quote(members[0].span);
        let mut all = Vec::new();
        for inst in members {
            if let (InstKind::Op { args, .. }, Some(result)) = (&inst.kind, inst.results.first()) {
                let x = self.value(args[0]);
                all.push((self.variable(*result, None), x));
            }
        }
        // One NaN or infinity makes the sum one, whose bits are more than any number's.
        let mut squares = String::new();
        for (_, x) in &all {
            squares = if squares.is_empty() {
                format!("{x} * {x}")
            } else {
                format!("fma({x}, {x}, {squares})")
            };
        }
        self.line(format!(
            "if (bitcast<u32>({squares}) <= f32__exp_near_squares) {{"
        ));
        for (name, x) in &all {
            self.line(format!("    {name} = f32__exp_near({x});"));
        }
        self.line("} else {");
        for (name, x) in &all {
            self.line(format!("    {name} = f32__exp_far({x});"));
        }
        self.line("}");
        for inst in members {
            for result in &inst.results {
                self.end_walk(*result);
            }
        }
    }
}
