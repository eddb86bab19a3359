//! What to say when threads that must meet do not (X4).

use invar_ir::{Diagnostic, Diagnostics, Rule, Scope, Span};

use crate::program::{Code, Program, Target};
use crate::state::{Frame, Place, Simdgroup, State};

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
        _of_one_thread => "this instruction",
    }
}

const HELP: &str = "move it to where every thread of the scope comes in the same iterations of the \
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
                (at, next | left, "left this loop or its iteration before")
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
            Some(_) if !simd.iterations().eq(first.iterations()) => {
                format!("{who} wait here in another iteration of a loop")
            }
            Some(_) => continue,
        };
        if message.is_empty() {
            message = match here(simd) {
                None => format!("{who} have returned"),
                Some(_) => format!("{who} wait in another place or iteration"),
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

#[cfg(test)]
mod tests {
    //! The verifier keeps all of this out, so these run what it has not seen.

    use invar_ir::text;

    use crate::dispatch::{Arg, Dispatch, Options};
    use crate::schedule::{prepare_fixed, run_program};

    /// The message of running it on 64 threads, in one threadgroup of two simdgroups.
    fn message(body: &str) -> Result<(), String> {
        let source = format!(
            "kernel @k(%x: device read_write u32) {{
                %t = thread_index_in_threadgroup
                %zero = const u32 0
                %one = const u32 1
                %two = const u32 2
                %n = const u32 32
                {body}
            }}"
        );
        let module = text::parse("k.inv", &source).expect("parses");
        let program = prepare_fixed(&module, "k", &Options::default()).expect("compiles");
        let mut args = [Arg::zeros(256)];
        let options = Options {
            step_limit: 100_000,
            ..Options::default()
        };
        match run_program(
            &program,
            &Dispatch::linear(64, 64),
            &mut args,
            &options,
            false,
            &mut [],
        ) {
            Ok(_) => Ok(()),
            Err(errors) => {
                assert_eq!(errors.0[0].rule.name(), "barrier-divergence", "{errors}");
                Err(errors.0[0].message.clone())
            }
        }
    }

    #[test]
    fn x4_a_barrier_that_only_some_lanes_reach() {
        let error = message(
            "%m = rem %t, %two
             %odd = eq %m, %one
             if %odd { barrier threadgroup [] }",
        );
        assert_eq!(
            error.unwrap_err(),
            "this threadgroup barrier is reached by thread (1, 0, 0) and 15 others of threadgroup \
             (0, 0, 0) but not by thread (0, 0, 0) and 15 others"
        );
    }

    #[test]
    fn x4_a_barrier_that_only_some_simdgroups_reach() {
        let low = "%low = lt %t, %n";
        let error = message(&format!("{low}\n if %low {{ barrier threadgroup [] }}"));
        assert_eq!(
            error.unwrap_err(),
            "this threadgroup barrier is reached by thread (0, 0, 0) and 31 others of threadgroup \
             (0, 0, 0), while thread (32, 0, 0) and 31 others have returned"
        );
        let both = format!(
            "{low}
             if %low {{ barrier threadgroup [] }} else {{ barrier threadgroup [] }}"
        );
        assert!(
            message(&both)
                .unwrap_err()
                .contains("wait in another place")
        );
    }

    #[test]
    fn x4_a_barrier_in_different_rounds_of_a_loop() {
        // The second simdgroup skips the barrier of the first iteration.
        let skip = "for %i = %zero to %two step %one {
                        %first = eq %i, %zero
                        %late = lt %t, %n
                        %same = eq %first, %late
                        if %same { barrier threadgroup [] }
                    }";
        assert!(
            message(skip)
                .unwrap_err()
                .contains("another place or iteration")
        );
        let all = "for %i = %zero to %two step %one { barrier threadgroup [] }";
        assert_eq!(message(all), Ok(()));
    }

    #[test]
    fn x4_simdgroup_operations_need_every_existing_lane() {
        let uniform = "%low = lt %t, %n\n if %low { barrier simdgroup [] }";
        assert_eq!(message(uniform), Ok(()));
        let varying = "%low = lt %t, %two\n if %low { barrier simdgroup [] }";
        assert!(
            message(varying)
                .unwrap_err()
                .starts_with("this simdgroup barrier")
        );
        let returned = "%low = lt %t, %two\n if %low { return }\n barrier simdgroup []";
        assert!(
            message(returned)
                .unwrap_err()
                .contains("but not by thread (0, 0, 0) and 1 other")
        );
        let fill = "%low = lt %t, %two
                    %f = const f32 1.0
                    if %low { %m = matrix_fill simdgroup_f32x8x8 %f }";
        assert!(
            message(fill)
                .unwrap_err()
                .starts_with("a simdgroup-matrix operation")
        );
        let wait = "%tile = alloc threadgroup u32[4]
                    %e = async_copy %tile[%zero], %x[%zero], %two
                    %low = lt %t, %two
                    if %low { wait %e }";
        assert!(
            message(wait)
                .unwrap_err()
                .starts_with("the wait for an async copy")
        );
    }
}
