//! Iterations written out become a loop again: a sum whose terms are loaded at indices that grow from term to term by
//! the same.
//!
//! ```text
//! s + A[i]*B[j] + A[i + 1]*B[j + 16] + ...   ->   for r = 0 to 16 carry s { s + A[i + r]*B[j + 16*r] }
//! ```
//!
//! This is for products by tiles whose innermost loop is written out, by hand or by the language that the kernel was
//! written in: without their tiles (`untile.rs`, which asks for this) they are then what the others are, and small.
//! Where tiles stay, longer sums than are unrolled become loops too: more rows of threads then share what they load.
//! Several sums of one length are one loop where they stand among each other, as those of a thread with several
//! elements do.
//!
//! A sum is a chain of additions, or of fused ones, each of which is the next one's addend and nothing else's. Of what
//! else the links use, those of all iterations must be the same, integers a constant apart, loads from one object, or
//! one operation on such. The loop stands where the last link did, so that between the first load and that nothing may
//! write, meet or leave. No addition changes its place in the sum.
//!
//! Deliberately absent: sums of which no iteration loads from threadgroup memory; chains of anything but sums;
//! iterations that store.

use std::collections::{HashMap, HashSet};

use invar_ir::ops::Meaning;
use invar_ir::{
    AddressSpace, Const, Imm, Inst, InstKind, Kernel, Memory, Module, Op, Place, Region, Span,
    Type, Value, ValueInfo, Values,
};

use super::common::{constants, new_value, push_const, push_inst};
use super::dead;
use super::forward::is_element;
use crate::analysis::affine::{self, Affine};
use crate::analysis::ranges::{self, Known};

/// Rewrites a kernel for threadgroups of a size, if that is known, where at least so many iterations load from
/// threadgroup memory; whether anything was changed.
pub(super) fn run(
    module: &Module,
    kernel: &mut Kernel,
    size: Option<[u32; 3]>,
    least: usize,
) -> bool {
    let of_threadgroup = |memory| {
        let info = module.memory(kernel, memory);
        info.is_some_and(|info| info.space == AddressSpace::Threadgroup)
    };
    let mut memories = HashSet::new();
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Load(place) = &inst.kind
            && of_threadgroup(place.memory)
        {
            memories.insert(place.memory);
        }
    });
    if memories.is_empty() {
        return false;
    }
    let known = Known {
        threadgroup_size: size,
        threads: None,
    };
    let ranges = ranges::analyse(kernel, &known);
    let mut look = Look {
        kernel,
        affine: affine::analyse(kernel, &ranges, size),
        constants: constants(kernel),
        uses: vec![0; kernel.values.len()],
        asked: &memories,
        least,
    };
    kernel.for_each_inst(&mut |inst| {
        (inst.kind).for_each_use(|value| look.uses[value.0 as usize] += 1);
    });
    let mut loops = HashMap::new();
    look.region(&kernel.body, &mut loops);
    if loops.is_empty() {
        return false;
    }
    let mut body = std::mem::take(&mut kernel.body);
    apply(&mut kernel.values, &mut body, &loops);
    kernel.body = body;
    dead::run(kernel);
    true
}

// ---- what to do ----

/// Chains that become one loop.
struct Rolled {
    chains: Vec<Chain>,
    iterations: usize,
    /// What an iteration computes, each from those before it.
    nodes: Vec<Node>,
    /// The type of its index.
    index: Type,
}

/// A sum.
struct Chain {
    /// The last link; the first is the same but for its operands.
    last: Inst,
    /// Which operand is the sum so far.
    carried: usize,
    init: Value,
    /// The other operands, as nodes.
    terms: Vec<(usize, usize)>,
    /// The result's type.
    ty: Type,
}

/// What something in an iteration is.
enum Node {
    /// The same in all iterations.
    Same(Value),
    /// The first iteration's, and so much more from iteration to iteration.
    Step { first: Value, by: i64 },
    /// Loaded from a place whose index is a node.
    Load {
        place: Place,
        index: usize,
        ty: Type,
        span: Span,
    },
    /// An operation on nodes.
    Op {
        op: Op,
        imm: Imm,
        args: Vec<usize>,
        ty: Type,
        span: Span,
    },
}

struct Look<'a, 'k> {
    kernel: &'k Kernel,
    affine: Affine<'k>,
    constants: HashMap<Value, Const>,
    /// How often each value is used.
    uses: Vec<u32>,
    /// What iterations may load from.
    asked: &'a HashSet<Memory>,
    /// Links of a chain that are worth a loop, at least.
    least: usize,
}

/// Links of one chain, by where they stand in their region.
struct Links {
    at: Vec<usize>,
    carried: usize,
}

impl Look<'_, '_> {
    /// Finds loops in a region, each by the last link that it takes the place of.
    fn region(&self, region: &Region, found: &mut HashMap<Value, Rolled>) {
        for inner in region.insts.iter().flat_map(|inst| inst.kind.regions()) {
            self.region(inner, found);
        }
        let mut at = HashMap::new();
        for (n, inst) in region.insts.iter().enumerate() {
            at.extend(inst.results.iter().map(|value| (*value, n)));
        }
        let mut chains = self.chains(region, &at);
        // From the one that ends last: each with those of as many links that stand among its own.
        chains.sort_by_key(|links| std::cmp::Reverse(links.at.last().copied()));
        while !chains.is_empty() {
            let first = chains.remove(0);
            let (begin, iterations) = (first.at[0], first.at.len());
            let among =
                |links: &Links| links.at.len() == iterations && links.at.last() > Some(&begin);
            let (mut group, others) = chains.into_iter().partition::<Vec<_>, _>(among);
            chains = others;
            group.insert(0, first);
            if let Some(rolled) = self.rolled(region, &at, &group) {
                found.insert(rolled.chains[0].last.results[0], rolled);
            }
        }
    }

    /// The longest chains of a region.
    fn chains(&self, region: &Region, at: &HashMap<Value, usize>) -> Vec<Links> {
        let mut taken = vec![false; region.insts.len()];
        let mut chains = Vec::new();
        for last in (0..region.insts.len()).rev() {
            if taken[last] {
                continue;
            }
            let links = (self.carried(region, at, last).into_iter())
                .map(|carried| self.links(region, at, last, carried))
                .max_by_key(|links| links.at.len());
            if let Some(links) = links.filter(|links| links.at.len() >= self.least) {
                links.at.iter().for_each(|link| taken[*link] = true);
                chains.push(links);
            }
        }
        chains
    }

    /// Which operands of an instruction may be the sum so far.
    fn carried(&self, region: &Region, at: &HashMap<Value, usize>, link: usize) -> Vec<usize> {
        let candidates: &[usize] = match region.insts[link].kind.as_op() {
            Some((Op::Fma, ..)) => &[2],
            Some((Op::Add, ..)) => &[0, 1],
            _no_sum => &[],
        };
        let is_link = |carried: &&usize| self.previous(region, at, link, **carried).is_some();
        candidates.iter().filter(is_link).copied().collect()
    }

    /// The link before another.
    fn previous(
        &self,
        region: &Region,
        at: &HashMap<Value, usize>,
        link: usize,
        carried: usize,
    ) -> Option<usize> {
        let inst = &region.insts[link];
        let (op, imm, args) = inst.kind.as_op()?;
        let sum = args[carried];
        let before = *at.get(&sum)?;
        let kind = &region.insts[before].kind;
        let same = kind.as_op().is_some_and(|(o, i, _)| (o, i) == (op, imm));
        let alone = self.uses[sum.0 as usize] == 1;
        let typed = self.kernel.ty(sum) == self.kernel.ty(inst.results[0]);
        (same && alone && typed).then_some(before)
    }

    /// The chain that ends in a link.
    fn links(
        &self,
        region: &Region,
        at: &HashMap<Value, usize>,
        last: usize,
        carried: usize,
    ) -> Links {
        let mut links = vec![last];
        while let Some(before) = self.previous(region, at, links[links.len() - 1], carried) {
            links.push(before);
        }
        links.reverse();
        Links { at: links, carried }
    }

    /// The loop that chains become; that of the last link comes first.
    fn rolled(
        &self,
        region: &Region,
        at: &HashMap<Value, usize>,
        group: &[Links],
    ) -> Option<Rolled> {
        let iterations = group[0].at.len();
        let end = *group[0].at.last()?;
        let mut build = Build {
            look: self,
            at,
            nodes: Vec::new(),
            seen: HashMap::new(),
            begin: group.iter().map(|links| links.at[0]).min()?,
            index: None,
            asked: false,
        };
        let mut chains = Vec::new();
        for links in group {
            let last = &region.insts[*links.at.last()?];
            let first = &region.insts[links.at[0]];
            let args = |link: usize| args_of(&region.insts[link]);
            let mut terms = Vec::new();
            for operand in 0..args(links.at[0])?.len() {
                if operand != links.carried {
                    let column = links.at.iter().map(|link| Some(args(*link)?[operand]));
                    let node = build.node(&column.collect::<Option<Vec<_>>>()?)?;
                    terms.push((operand, node));
                }
            }
            chains.push(Chain {
                last: last.clone(),
                carried: links.carried,
                init: args_of(first)?[links.carried],
                terms,
                ty: self.kernel.ty(last.results[0]),
            });
        }
        // The number of iterations is one of the index's type.
        let index = build.index?;
        let fits = iterations < 1 << (index.scalar()?.bits() - 1).min(31);
        if !build.asked || !fits {
            return None;
        }
        // Nothing between may write or ask for the sums, but for the last.
        let sums: Vec<Value> = chains.iter().map(|chain| chain.last.results[0]).collect();
        for inst in &region.insts[build.begin..=end] {
            let mut early = false;
            inst.kind
                .for_each_use(|value| early |= sums.contains(&value));
            let quiet = inst.kind.is_removable()
                && inst.kind.meets().is_none()
                && inst.kind.regions().is_empty();
            if early || !quiet {
                return None;
            }
        }
        Some(Rolled {
            chains,
            iterations,
            index,
            nodes: build.nodes,
        })
    }
}

fn args_of(inst: &Inst) -> Option<&[Value]> {
    inst.kind.as_op().map(|(_, _, args)| args)
}

/// The nodes of a loop.
struct Build<'a, 'b, 'k> {
    look: &'a Look<'b, 'k>,
    /// Where values are in the region.
    at: &'a HashMap<Value, usize>,
    nodes: Vec<Node>,
    /// Nodes by their values in all iterations.
    seen: HashMap<Vec<Value>, usize>,
    /// The first instruction that moves.
    begin: usize,
    /// The type of what grows.
    index: Option<Type>,
    /// Something is loaded from an object that is asked for.
    asked: bool,
}

impl Build<'_, '_, '_> {
    /// The node that has these values in the iterations.
    fn node(&mut self, column: &[Value]) -> Option<usize> {
        if let Some(node) = self.seen.get(column) {
            return Some(*node);
        }
        let node = (self.same(column))
            .or_else(|| self.step(column))
            .or_else(|| self.instruction(column))?;
        self.nodes.push(node);
        self.seen.insert(column.to_vec(), self.nodes.len() - 1);
        Some(self.nodes.len() - 1)
    }

    fn same(&self, column: &[Value]) -> Option<Node> {
        let constant = |value: &Value| self.look.constants.get(value).copied();
        let first = column[0];
        let same = |value: &Value| {
            *value == first || constant(value).is_some() && constant(value) == constant(&first)
        };
        column.iter().all(same).then_some(Node::Same(first))
    }

    fn step(&mut self, column: &[Value]) -> Option<Node> {
        let ty = self.look.kernel.ty(column[0]);
        let scalar = ty
            .scalar()
            .filter(|s| s.is_integer() && ty == Type::Scalar(*s))?;
        if self.index.is_some_and(|index| index != ty) {
            return None;
        }
        let forms: Vec<_> = column.iter().map(|v| self.look.affine.of(*v)).collect();
        let distance = |n: usize| forms[n].sum.clone().plus(&forms[0].sum, -1).as_constant();
        let by = distance(1)?;
        for (n, form) in forms.iter().enumerate() {
            let known = form.exact || form.bits >= scalar.bits();
            if !known || distance(n)? != by.checked_mul(n as i64)? {
                return None;
            }
        }
        self.index = Some(ty);
        let first = column[0];
        Some(Node::Step { first, by })
    }

    fn instruction(&mut self, column: &[Value]) -> Option<Node> {
        let look = self.look;
        let ty = look.kernel.ty(column[0]);
        let insts = column.iter().map(|value| look.affine.definition(*value));
        let insts = insts.collect::<Option<Vec<_>>>()?;
        let span = insts[0].span;
        match &insts[0].kind {
            InstKind::Load(place) => {
                let mut indices = Vec::new();
                for (value, inst) in column.iter().zip(&insts) {
                    let InstKind::Load(other) = &inst.kind else {
                        return None;
                    };
                    if other.memory != place.memory || !is_element(other) {
                        return None;
                    }
                    self.begin = self.begin.min(*self.at.get(value)?);
                    indices.push(other.index);
                }
                self.asked |= look.asked.contains(&place.memory);
                Some(Node::Load {
                    place: place.clone(),
                    index: self.node(&indices)?,
                    ty,
                    span,
                })
            }
            InstKind::Op { op, imm, args } => {
                if !matches!(op.row().meaning, Meaning::Eval(_) | Meaning::Arrange) {
                    return None;
                }
                let same = |inst: &&&Inst| {
                    let other = inst.kind.as_op();
                    other.is_some_and(|(o, i, a)| (o, i, a.len()) == (*op, *imm, args.len()))
                };
                if insts.iter().filter(same).count() != insts.len() {
                    return None;
                }
                let mut nodes = Vec::new();
                for n in 0..args.len() {
                    let column = insts.iter().map(|inst| Some(args_of(inst)?[n]));
                    nodes.push(self.node(&column.collect::<Option<Vec<_>>>()?)?);
                }
                Some(Node::Op {
                    op: *op,
                    imm: *imm,
                    args: nodes,
                    ty,
                    span,
                })
            }
            _neither => None,
        }
    }
}

// ---- doing it ----

fn apply(values: &mut Vec<ValueInfo>, region: &mut Region, loops: &HashMap<Value, Rolled>) {
    // A sum that ends before the loop does is the loop's result too.
    let replaced: Vec<Value> = (loops.values())
        .flat_map(|rolled| &rolled.chains)
        .map(|chain| chain.last.results[0])
        .collect();
    change(values, region, loops, &replaced);
}

fn change(
    values: &mut Vec<ValueInfo>,
    region: &mut Region,
    loops: &HashMap<Value, Rolled>,
    replaced: &[Value],
) {
    for mut inst in std::mem::take(&mut region.insts) {
        for inner in inst.kind.regions_mut() {
            change(values, inner, loops, replaced);
        }
        match inst.results.first() {
            Some(value) if loops.contains_key(value) => {
                push_loop(values, &mut region.insts, &loops[value]);
            }
            Some(value) if replaced.contains(value) => {}
            _other => region.insts.push(inst),
        }
    }
}

fn push_loop(values: &mut Vec<ValueInfo>, out: &mut Vec<Inst>, rolled: &Rolled) {
    let span = rolled.chains[0].last.span;
    let scalar = rolled.index.scalar().expect("an integer");
    let number = |n: u64| Const {
        scalar,
        bits: n & (u64::MAX >> (64 - scalar.bits())),
    };
    let [lower, upper, step] =
        [0, rolled.iterations as u64, 1].map(|n| push_const(values, out, number(n), span));
    let index = new_value(values, rolled.index);
    let mut body = Region {
        params: vec![index],
        insts: Vec::new(),
    };
    let insts = &mut body.insts;
    let mut made: Vec<Value> = Vec::new();
    for node in &rolled.nodes {
        let op = |op, args: &[Value]| InstKind::Op {
            op,
            imm: Imm::None,
            args: Values::from_slice(args),
        };
        made.push(match node {
            Node::Same(value) => *value,
            Node::Step { first, by } => {
                let mut more = index;
                if *by != 1 {
                    let by = push_const(values, insts, number(*by as u64), span);
                    more = push_inst(values, insts, op(Op::Mul, &[index, by]), rolled.index, span);
                }
                push_inst(
                    values,
                    insts,
                    op(Op::Add, &[*first, more]),
                    rolled.index,
                    span,
                )
            }
            Node::Load {
                place,
                index,
                ty,
                span,
            } => {
                let mut place = place.clone();
                place.index = made[*index];
                push_inst(values, insts, InstKind::Load(place), *ty, *span)
            }
            Node::Op {
                op,
                imm,
                args,
                ty,
                span,
            } => {
                let kind = InstKind::Op {
                    op: *op,
                    imm: *imm,
                    args: args.iter().map(|arg| made[*arg]).collect(),
                };
                push_inst(values, insts, kind, *ty, *span)
            }
        });
    }
    let mut sums = Values::new();
    for chain in &rolled.chains {
        let sum = new_value(values, chain.ty);
        body.params.push(sum);
        let mut kind = chain.last.kind.clone();
        let InstKind::Op { args, .. } = &mut kind else {
            unreachable!("a link is an operation")
        };
        args[chain.carried] = sum;
        for (operand, node) in &chain.terms {
            args[*operand] = made[*node];
        }
        sums.push(push_inst(
            values,
            &mut body.insts,
            kind,
            chain.ty,
            chain.last.span,
        ));
    }
    body.insts.push(Inst {
        kind: InstKind::Yield(sums),
        results: Default::default(),
        span,
    });
    out.push(Inst {
        kind: InstKind::For {
            lower,
            upper,
            step,
            init: rolled.chains.iter().map(|chain| chain.init).collect(),
            body,
        },
        results: (rolled.chains.iter())
            .map(|chain| chain.last.results[0])
            .collect(),
        span,
    });
}
