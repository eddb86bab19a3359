//! What blocks lead to, which dominate which, and the loops among them.
//!
//! Invariant: there is one way into each loop, which LLVM's passes saw to.

use std::collections::{BTreeSet, HashMap, HashSet};

use invar_llvm::foreign::{Function, Kind};

/// A loop that leaves to more blocks has what stands behind its ways out inside, where that may be.
const MANY_EXITS: usize = 16;

/// Whether threads meet in a block.
fn meets(f: &Function, block: usize) -> bool {
    let names = ["threadgroup_barrier", "simd", "quad", "sgm"];
    f.blocks[block]
        .insts
        .iter()
        .any(|inst| match &f.insts[*inst].kind {
            Kind::Call(name) => {
                let name = name.strip_prefix("invar.").unwrap_or_default();
                names.iter().any(|prefix| name.starts_with(prefix))
            }
            _other => false,
        })
}

/// The blocks of a function that can be reached, as a graph.
pub(crate) struct Graph {
    successors: Vec<Vec<usize>>,
    /// The blocks that lead to each.
    before: Vec<Vec<usize>>,
    /// The place of each block in an order in which a block comes before what it leads to, but for the ways
    /// back of loops; blocks that are not reached have none.
    order: Vec<Option<usize>>,
    dominators: Vec<Option<usize>>,
    /// The blocks that each dominates at once, in order.
    dominated: Vec<Vec<usize>>,
    /// The places of each block and of the last that it dominates, where a block comes before what it dominates
    /// and what it does not comes after all of that.
    spans: Vec<(usize, usize)>,
    /// The blocks of each loop, by the first, and what was taken in.
    pub loops: HashMap<usize, BTreeSet<usize>>,
    in_loops: HashSet<usize>,
    /// How many ways lead to each block without going back.
    entries: Vec<usize>,
}

impl Graph {
    pub fn of(f: &Function) -> Graph {
        let count = f.blocks.len();
        let successors: Vec<Vec<usize>> = f
            .blocks
            .iter()
            .map(
                |block| match block.insts.last().map(|i| &f.insts[*i].kind) {
                    Some(Kind::Jump(to)) => vec![*to],
                    Some(Kind::Branch(yes, no)) => vec![*yes, *no],
                    _ends => Vec::new(),
                },
            )
            .collect();
        let mut graph = Graph {
            before: vec![Vec::new(); count],
            order: vec![None; count],
            dominators: vec![None; count],
            dominated: vec![Vec::new(); count],
            spans: vec![(0, 0); count],
            loops: HashMap::new(),
            in_loops: HashSet::new(),
            entries: vec![0; count],
            successors,
        };
        if count > 0 {
            let sorted = graph.sort();
            graph.dominate(&sorted);
            graph.number(&sorted);
            graph.find_loops(&sorted);
            graph.take_in(f);
        }
        graph
    }

    /// The blocks that can be reached, each before what it leads to.
    fn sort(&mut self) -> Vec<usize> {
        let mut seen = vec![false; self.successors.len()];
        let mut open = vec![(0_usize, 0_usize)];
        let mut sorted = Vec::new();
        seen[0] = true;
        while let Some((block, next)) = open.last_mut() {
            match self.successors[*block].get(*next) {
                Some(to) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[*to], true) {
                        open.push((*to, 0));
                    }
                }
                None => {
                    sorted.push(*block);
                    open.pop();
                }
            }
        }
        sorted.reverse();
        for (place, block) in sorted.iter().enumerate() {
            self.order[*block] = Some(place);
        }
        sorted
    }

    fn dominate(&mut self, sorted: &[usize]) {
        for block in sorted {
            for to in &self.successors[*block] {
                self.before[*to].push(*block);
            }
        }
        self.dominators[0] = Some(0);
        loop {
            let mut changed = false;
            for block in &sorted[1..] {
                let mut common = None;
                for from in &self.before[*block] {
                    if self.dominators[*from].is_none() {
                        continue;
                    }
                    common = Some(match common {
                        None => *from,
                        Some(other) => self.common(*from, other),
                    });
                }
                if self.dominators[*block] != common {
                    self.dominators[*block] = common;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        for block in sorted {
            for to in &self.successors[*block] {
                if self.order[*to] > self.order[*block] {
                    self.entries[*to] += 1;
                }
            }
        }
    }

    fn common(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            let later = if self.order[a] > self.order[b] {
                &mut a
            } else {
                &mut b
            };
            match self.dominators[*later] {
                Some(up) if up != *later => *later = up,
                _top => return 0,
            }
        }
        a
    }

    /// Numbers the blocks so that it shows which dominate which.
    fn number(&mut self, sorted: &[usize]) {
        for block in &sorted[1..] {
            if let Some(up) = self.dominators[*block] {
                self.dominated[up].push(*block);
            }
        }
        let mut next = 0;
        let mut open = vec![(0_usize, 0_usize)];
        while let Some((block, child)) = open.last_mut() {
            if *child == 0 {
                self.spans[*block].0 = next;
                next += 1;
            }
            match self.dominated[*block].get(*child) {
                Some(below) => {
                    *child += 1;
                    open.push((*below, 0));
                }
                None => {
                    self.spans[*block].1 = next - 1;
                    open.pop();
                }
            }
        }
    }

    fn find_loops(&mut self, sorted: &[usize]) {
        for block in sorted {
            for to in self.successors[*block].clone() {
                if self.order[to] <= self.order[*block] && self.dominates(to, *block) {
                    let mut open = vec![*block];
                    let mut body = self.loops.remove(&to).unwrap_or_default();
                    body.insert(to);
                    while let Some(at) = open.pop() {
                        if body.insert(at) {
                            open.extend(&self.before[at]);
                        }
                    }
                    self.loops.insert(to, body);
                }
            }
        }
        self.in_loops = self.loops.values().flatten().copied().collect();
    }

    /// Takes into loops what stands behind one of very many ways out of them and leads to where others do too: else
    /// each way would hand on the values of all. What threads meet in stays outside.
    fn take_in(&mut self, f: &Function) {
        let headers: Vec<usize> = self.loops.keys().copied().collect();
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        for header in headers {
            let exits = self.exits(header);
            if exits.len() > MANY_EXITS {
                let ends_soon = |exit: &usize| {
                    let ways = &self.before[*exit];
                    let joins = |to: &usize| to != exit && self.before[*to].len() > 1;
                    let is_header = self.loops.contains_key(exit);
                    ways.len() == 1 && !is_header && self.successors[*exit].iter().all(joins)
                };
                let alone = exits.into_iter().filter(ends_soon);
                taken.extend(alone.filter(|exit| !meets(f, *exit)));
            }
        }
        for body in self.loops.values_mut() {
            let inside = |block: &&usize| body.contains(&self.before[**block][0]);
            let own: Vec<usize> = taken.iter().filter(inside).copied().collect();
            body.extend(own);
        }
    }

    /// Whether each way to the other block, which can be reached, comes by the first.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        let (first, last) = self.spans[a];
        (first..=last).contains(&self.spans[b].0)
    }

    /// A way back into a loop from a block that the loop's first does not dominate.
    pub fn is_irreducible(&self) -> bool {
        (0..self.successors.len()).any(|block| {
            self.order[block].is_some()
                && self.successors[block]
                    .iter()
                    .any(|to| self.order[*to] <= self.order[block] && !self.dominates(*to, block))
        })
    }

    /// The place of a block in an order in which it comes before what it leads to.
    pub fn position(&self, block: usize) -> Option<usize> {
        self.order[block]
    }

    pub fn is_in_loop(&self, block: usize) -> bool {
        self.in_loops.contains(&block)
    }

    /// The blocks that are to be written behind a block, in order: those that it dominates at once, in the
    /// loop around it, and to which several ways lead. Behind a loop, everything that it leaves to and that
    /// it dominates.
    pub fn followers(&self, block: usize, around: Option<usize>) -> Vec<usize> {
        let inside = self.loops.get(&block).filter(|_| around != Some(block));
        let around = around.and_then(|header| self.loops.get(&header));
        let mut all: Vec<usize> = match inside {
            Some(body) => {
                let below = body.iter().flat_map(|b| &self.dominated[*b]);
                below.copied().filter(|b| !body.contains(b)).collect()
            }
            None => {
                let below = self.dominated[block].iter().copied();
                below.filter(|b| self.entries[*b] > 1).collect()
            }
        };
        all.retain(|b| around.is_none_or(|body| body.contains(b)));
        all.sort_by_key(|b| self.order[*b]);
        all
    }

    /// The blocks that a loop leaves to.
    pub fn exits(&self, header: usize) -> Vec<usize> {
        let body = &self.loops[&header];
        let mut all: Vec<usize> = body
            .iter()
            .flat_map(|b| &self.successors[*b])
            .filter(|to| !body.contains(to))
            .copied()
            .collect();
        all.sort_by_key(|b| self.order[*b]);
        all.dedup();
        all
    }
}
