//! What to say when threads that must meet do not (X4).

use invar_ir::{Diagnostic, Diagnostics, Rule, Scope, Span};

use crate::machine::{Frame, Place, Simdgroup, State};
use crate::program::{Code, Program, Target};

/// A thread and how many like it: `thread (4, 0, 0) and 3 others`.
fn threads(simd: &Simdgroup, lanes: u128) -> String {
    let [x, y, z] = simd.positions[lanes.trailing_zeros() as usize];
    match lanes.count_ones() {
        1 => format!("thread ({x}, {y}, {z})"),
        2 => format!("thread ({x}, {y}, {z}) and 1 other"),
        n => format!("thread ({x}, {y}, {z}) and {} others", n - 1),
    }
}

/// What an instruction that brings threads together is called.
fn name(code: &Code) -> &'static str {
    match code {
        Code::Barrier { scope, .. } => match scope {
            Scope::Simdgroup => "this simdgroup barrier",
            Scope::Threadgroup | Scope::Device => "this threadgroup barrier",
        },
        Code::AsyncCopy { .. } => "the issue of an async copy",
        Code::Wait { .. } => "the wait for an async copy",
        Code::Lanes(_) => "a simdgroup or quadgroup function",
        Code::MatrixFill { .. }
        | Code::MatrixLoad { .. }
        | Code::MatrixStore { .. }
        | Code::MatrixMultiplyAccumulate { .. } => "a simdgroup-matrix operation",
        Code::AssertUniform { .. } => "`assert_uniform`",
        Code::Eval { .. }
        | Code::Gather { .. }
        | Code::Extract { .. }
        | Code::Insert { .. }
        | Code::Query { .. }
        | Code::Load { .. }
        | Code::Store { .. }
        | Code::Atomic { .. }
        | Code::Zero { .. }
        | Code::Copy(_)
        | Code::Move(_)
        | Code::If { .. }
        | Code::EndSide
        | Code::Loop { .. }
        | Code::Next { .. }
        | Code::Break { .. }
        | Code::Return => "this instruction",
    }
}

const HELP: &str = "move it to where every thread of the scope comes in the same rounds of the \
                    same loops, or make the condition uniform (X4)";

/// Lanes of one simdgroup are not together at `at`.
pub(crate) fn lanes_apart(
    program: &Program,
    group: &Place,
    simd: &Simdgroup,
    at: Target,
) -> Diagnostics {
    let [x, y, z] = group.position;
    let what = name(&program.code[at as usize]);
    let missing = simd.existing & !simd.mask;
    let mut diagnostic = Diagnostic::error(
        Rule::BarrierDivergence,
        program.spans[at as usize],
        format!(
            "{what} is reached by {} of threadgroup ({x}, {y}, {z}) but not by {}",
            threads(simd, simd.mask),
            threads(simd, missing),
        ),
    )
    .labelled(format!("{} wait here", threads(simd, simd.mask)))
    .help(HELP);
    let mut returned = missing;
    for frame in simd.frames.iter().rev() {
        let (at, lanes, how) = match frame {
            Frame::If {
                at,
                joined,
                pending,
                ..
            } => (at, joined | pending, "took the other way here"),
            Frame::Loop { at, next, left, .. } => {
                (at, next | left, "left this loop or its round before")
            }
        };
        let lanes = lanes & returned;
        if lanes != 0 {
            let text = format!("{} {how}", threads(simd, lanes));
            diagnostic = diagnostic.and(program.spans[*at as usize], text);
        }
        returned &= !lanes;
    }
    if returned != 0 {
        let text = format!("{} had returned", threads(simd, returned));
        diagnostic = diagnostic.and(program.kernel().span, text);
    }
    Diagnostics(vec![diagnostic])
}

/// Simdgroups of one threadgroup wait in different places, or some are done.
pub(crate) fn simdgroups_apart(
    program: &Program,
    group: &Place,
    simds: &[Simdgroup],
) -> Diagnostics {
    let [x, y, z] = group.position;
    let here = |s: &Simdgroup| (s.state == State::Waiting).then(|| s.pc - 1);
    let Some(first) = simds.iter().find(|s| s.state == State::Waiting) else {
        return Diagnostics(Vec::new());
    };
    let span = |s: &Simdgroup| here(s).map_or(Span::NONE, |at| program.spans[at as usize]);
    let mut message = String::new();
    let mut others: Vec<(Span, String)> = Vec::new();
    for simd in simds {
        let who = threads(simd, simd.existing);
        let what = match here(simd) {
            None => format!("{who} have returned"),
            Some(_) if simd.pc != first.pc => format!("{who} wait here"),
            Some(_) if !simd.rounds().eq(first.rounds()) => {
                format!("{who} wait here in another round of a loop")
            }
            Some(_) => continue,
        };
        if message.is_empty() {
            message = match here(simd) {
                None => format!("{who} have returned"),
                Some(_) => format!("{who} wait in another place or round"),
            };
        }
        if others.len() < 4 {
            let at = match here(simd) {
                None => program.kernel().span,
                Some(_) => span(simd),
            };
            others.push((at, what));
        }
    }
    let what = name(&program.code[first.pc as usize - 1]);
    let mut diagnostic = Diagnostic::error(
        Rule::BarrierDivergence,
        span(first),
        format!(
            "{what} is reached by {} of threadgroup ({x}, {y}, {z}), while {message}",
            threads(first, first.existing),
        ),
    )
    .labelled(format!("{} wait here", threads(first, first.existing)))
    .help(HELP);
    for (span, text) in others {
        diagnostic = diagnostic.and(span, text);
    }
    Diagnostics(vec![diagnostic])
}
