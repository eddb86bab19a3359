//! Nested tuples in flat storage, which every other module builds on.
//!
//! A tree is two short lists: its nodes in pre-order (a leaf, or a tuple and how many children it
//! has) and its leaves from left to right. Small trees live inline, so the usual operations
//! allocate nothing. Functions take a `View`, a borrowed subtree, so that looking at a mode copies
//! nothing.
//!
//! Invariants: the nodes form exactly one tree, the number of leaf nodes is the number of leaves,
//! and the limits hold. The depth limit is what lets functions recurse. Absent: mutation in place.

use crate::error::{Error, Result};
use smallvec::SmallVec;

/// The most integers in one tuple, and modes in one layout.
pub const MAX_LEAVES: usize = 4096;
/// The deepest nesting of parentheses.
pub const MAX_DEPTH: usize = 64;
/// The most integers and parentheses together.
pub const MAX_NODES: usize = 8192;

const LEAF: u16 = u16::MAX;

type Nodes = SmallVec<[u16; 16]>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Nested<T> {
    nodes: Nodes,
    leaves: SmallVec<[T; 8]>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a, T> {
    nodes: &'a [u16],
    leaves: &'a [T],
}

/// A tuple that was opened without knowing how many children it gets.
pub(crate) struct Open(usize);

impl<T: Copy> Nested<T> {
    pub fn new() -> Self {
        Nested {
            nodes: Nodes::new(),
            leaves: SmallVec::new(),
        }
    }

    pub fn leaf(value: T) -> Self {
        let mut tree = Self::new();
        tree.nodes.push(LEAF);
        tree.leaves.push(value);
        tree
    }

    pub fn view(&self) -> View<'_, T> {
        View {
            nodes: &self.nodes,
            leaves: &self.leaves,
        }
    }

    pub fn leaves(&self) -> &[T] {
        &self.leaves
    }

    pub fn push_leaf(&mut self, value: T) -> Result<()> {
        if self.leaves.len() == MAX_LEAVES {
            return Err(Error::Limit {
                what: "integers in one tuple",
                limit: MAX_LEAVES,
            });
        }
        self.push_node(LEAF)?;
        self.leaves.push(value);
        Ok(())
    }

    /// Starts a tuple whose `rank` children follow.
    pub fn push_tuple(&mut self, rank: usize) -> Result<()> {
        // A rank past the node limit cannot be completed, and a smaller one fits u16.
        self.push_node(u16::try_from(rank.min(MAX_NODES)).unwrap_or(LEAF - 1))
    }

    pub fn open(&mut self) -> Result<Open> {
        self.push_node(0)?;
        Ok(Open(self.nodes.len() - 1))
    }

    /// Records one more child of an open tuple.
    pub fn count(&mut self, open: &Open) {
        self.nodes[open.0] += 1;
    }

    /// How many children an open tuple has so far.
    pub fn rank_of(&self, open: &Open) -> usize {
        usize::from(self.nodes[open.0])
    }

    /// Gives an open tuple up: with exactly one child, the child stands in its place.
    pub fn unwrap_single(&mut self, open: Open) {
        if self.nodes[open.0] == 1 {
            self.nodes.remove(open.0);
        }
    }

    pub fn push_view(&mut self, view: View<'_, T>) -> Result<()> {
        if self.nodes.len() + view.nodes.len() > MAX_NODES
            || self.leaves.len() + view.leaves.len() > MAX_LEAVES
        {
            return Err(Error::Limit {
                what: "integers in one tuple",
                limit: MAX_LEAVES,
            });
        }
        self.nodes.extend_from_slice(view.nodes);
        self.leaves.extend_from_slice(view.leaves);
        Ok(())
    }

    fn push_node(&mut self, node: u16) -> Result<()> {
        if self.nodes.len() == MAX_NODES {
            return Err(Error::Limit {
                what: "integers and parentheses",
                limit: MAX_NODES,
            });
        }
        self.nodes.push(node);
        Ok(())
    }

    /// Checks the depth limit, which pushes alone do not.
    pub fn check_depth(&self) -> Result<()> {
        let tuples = self.nodes.len() - self.leaves.len();
        if tuples > MAX_DEPTH && self.view().depth() > MAX_DEPTH {
            return Err(Error::Limit {
                what: "levels of nesting",
                limit: MAX_DEPTH,
            });
        }
        Ok(())
    }

    /// The same nesting with every leaf replaced.
    pub fn map<U: Copy>(&self, f: impl FnMut(T) -> U) -> Nested<U> {
        self.view().map(f)
    }
}

impl<'a, T: Copy> View<'a, T> {
    pub fn leaves(self) -> &'a [T] {
        self.leaves
    }

    /// The value, if this is a leaf.
    pub fn as_leaf(self) -> Option<T> {
        if self.nodes[0] == LEAF {
            Some(self.leaves[0])
        } else {
            None
        }
    }

    /// The number of children; 1 for a leaf, which counts as its own only mode.
    pub fn rank(self) -> usize {
        if self.nodes[0] == LEAF {
            1
        } else {
            usize::from(self.nodes[0])
        }
    }

    /// The children of a tuple; a leaf is its own only child.
    pub fn modes(self) -> Modes<'a, T> {
        if self.nodes[0] == LEAF {
            Modes {
                rest: self,
                left: 1,
            }
        } else {
            let rest = View {
                nodes: &self.nodes[1..],
                leaves: self.leaves,
            };
            Modes {
                rest,
                left: usize::from(self.nodes[0]),
            }
        }
    }

    pub fn mode(self, index: usize) -> Option<View<'a, T>> {
        self.modes().nth(index)
    }

    /// Levels of parentheses: 0 for a leaf, 1 for a flat tuple.
    pub fn depth(self) -> usize {
        // How many children each open tuple still waits for.
        let mut waiting: SmallVec<[u16; 16]> = SmallVec::new();
        let mut depth = 0;
        for &node in self.nodes {
            if node == LEAF {
                close(&mut waiting);
            } else {
                depth = depth.max(waiting.len() + 1);
                if node == 0 {
                    close(&mut waiting);
                } else {
                    waiting.push(node);
                }
            }
        }
        depth
    }

    pub fn congruent<U: Copy>(self, other: View<'_, U>) -> bool {
        self.nodes == other.nodes
    }

    pub fn to_nested(self) -> Nested<T> {
        Nested {
            nodes: SmallVec::from_slice(self.nodes),
            leaves: SmallVec::from_slice(self.leaves),
        }
    }

    pub fn map<U: Copy>(self, f: impl FnMut(T) -> U) -> Nested<U> {
        Nested {
            nodes: SmallVec::from_slice(self.nodes),
            leaves: self.leaves.iter().copied().map(f).collect(),
        }
    }

    pub fn zip_map<U: Copy, V: Copy>(
        self,
        other: View<'_, U>,
        mut f: impl FnMut(T, U) -> V,
    ) -> Option<Nested<V>> {
        if !self.congruent(other) {
            return None;
        }
        let leaves = self
            .leaves
            .iter()
            .zip(other.leaves)
            .map(|(&a, &b)| f(a, b))
            .collect();
        Some(Nested {
            nodes: SmallVec::from_slice(self.nodes),
            leaves,
        })
    }

    /// Writes `(a,(b,c))` with `leaf` writing each value.
    pub fn write(
        self,
        f: &mut std::fmt::Formatter<'_>,
        leaf: impl Fn(&T, &mut std::fmt::Formatter<'_>) -> std::fmt::Result,
    ) -> std::fmt::Result {
        let mut waiting: SmallVec<[u16; 16]> = SmallVec::new();
        let mut next = 0;
        let mut first = true;
        for &node in self.nodes {
            if !first {
                f.write_str(",")?;
            }
            first = node != LEAF;
            if node == LEAF {
                leaf(&self.leaves[next], f)?;
                next += 1;
            } else {
                f.write_str("(")?;
                if node > 0 {
                    waiting.push(node);
                    continue;
                }
                f.write_str(")")?;
                first = false;
            }
            for _ in 0..close(&mut waiting) {
                f.write_str(")")?;
            }
        }
        Ok(())
    }
}

/// Counts a finished child; says how many tuples that finishes.
fn close(waiting: &mut SmallVec<[u16; 16]>) -> usize {
    let mut closed = 0;
    while let Some(last) = waiting.last_mut() {
        *last -= 1;
        if *last > 0 {
            break;
        }
        waiting.pop();
        closed += 1;
    }
    closed
}

pub(crate) struct Modes<'a, T> {
    rest: View<'a, T>,
    left: usize,
}

impl<'a, T: Copy> Iterator for Modes<'a, T> {
    type Item = View<'a, T>;

    #[inline]
    fn next(&mut self) -> Option<View<'a, T>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (mut nodes, mut leaves, mut open) = (0, 0, 1usize);
        while open > 0 {
            let node = self.rest.nodes[nodes];
            nodes += 1;
            open -= 1;
            if node == LEAF {
                leaves += 1;
            } else {
                open += usize::from(node);
            }
        }
        let (a, b) = self.rest.nodes.split_at(nodes);
        let (c, d) = self.rest.leaves.split_at(leaves);
        self.rest = View {
            nodes: b,
            leaves: d,
        };
        Some(View {
            nodes: a,
            leaves: c,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Copy> ExactSizeIterator for Modes<'_, T> {}
