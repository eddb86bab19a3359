//! Control flow by variables: what regions give their values to, and several variables that change at once.

use std::collections::HashSet;

use invar_ir::Value;

/// What a region's `yield`, `break` and `continue` give their values to.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// The variables of an `if`'s results.
    If(Vec<String>),
    /// Those of what a loop carries, which is also what it gives.
    Loop(Vec<String>),
}

/// The regions around the current place, but for the kernel's body.
#[derive(Debug, Default)]
pub(crate) struct Frames(Vec<Frame>);

impl Frames {
    /// Enters a region.
    pub(crate) fn push(&mut self, frame: Frame) {
        self.0.push(frame);
    }

    /// Leaves it.
    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// Whether this is the kernel's body.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is in a loop.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.0.iter().any(|frame| matches!(frame, Frame::Loop(_)))
    }

    /// What a `yield` gives to; a kernel's body gives nothing.
    pub(crate) fn of_yield(&self) -> Vec<String> {
        match self.0.last() {
            Some(Frame::If(targets) | Frame::Loop(targets)) => targets.clone(),
            None => Vec::new(),
        }
    }

    /// What a `break` or `continue` gives to.
    pub(crate) fn of_loop(&self) -> Vec<String> {
        let found = self.0.iter().rev().find_map(|frame| match frame {
            Frame::Loop(targets) => Some(targets.clone()),
            Frame::If(_) => None,
        });
        found.unwrap_or_default()
    }
}

/// A variable that is given a value.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) target: String,
    /// What it is given.
    pub(crate) text: String,
    pub(crate) value: Value,
    /// What it is given is a variable that a move before it changes, and so must be kept first.
    pub(crate) is_overwritten: bool,
}

/// The moves that give values, each with its text, to variables all at once, in an order to be made one after another.
/// What a variable holds already is left out.
pub(crate) fn moves(
    targets: &[String],
    values: impl Iterator<Item = (String, Value)>,
) -> Vec<Move> {
    let mut given: HashSet<&str> = HashSet::new();
    let mut moves = Vec::new();
    for (target, (text, value)) in targets.iter().zip(values) {
        if *target != text {
            let is_overwritten = given.contains(&text[..]);
            given.insert(target);
            moves.push(Move {
                target: target.clone(),
                text,
                value,
                is_overwritten,
            });
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_move_changes_is_kept() {
        let targets = ["a", "b", "c", "d"].map(str::to_string);
        let values = ["b", "a", "c", "x"].map(|text| (text.to_string(), Value(0)));
        let moves = moves(&targets, values.into_iter());
        let found = moves.iter().map(|m| (&m.target[..], m.is_overwritten));
        let expected = [("a", false), ("b", true), ("d", false)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
