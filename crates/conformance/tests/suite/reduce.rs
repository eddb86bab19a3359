//! A target that is wrong on purpose: it is found out, and what is reported is small.

use invar_conformance::{Floats, Options, Trial, compare, compare_case};
use invar_ir::rewrite::rewrite;
use invar_ir::{Diagnostic, Diagnostics, Op, Rule, Span, Verified, verify};
use smallvec::smallvec;

fn reference(
    module: &Verified,
    kernel: &str,
    dispatch: &invar_interp::Dispatch,
    args: &mut [invar_interp::Arg<'static>],
) -> Result<(), Diagnostics> {
    let options = invar_interp::Options::default();
    invar_interp::run(module, kernel, dispatch, args, &options, &mut []).map(|_| ())
}

/// The reference machine with the operands of every `sub` exchanged.
fn flipped_sub(module: &Verified) -> Result<Verified, Diagnostics> {
    let module = rewrite(
        module.clone().into_module(),
        0,
        &mut |b, inst| match inst.kind.as_op()? {
            (Op::Sub, _, &[left, right]) => Some(smallvec![b.sub(right, left)]),
            _other => None,
        },
    )?;
    verify(module)
}

#[test]
fn a_wrong_operation_is_found_and_reduced() {
    let mut target = |module: &Verified, kernel: &str, dispatch: &_, args: &mut [_]| {
        reference(&flipped_sub(module)?, kernel, dispatch, args)
    };
    let options = Options {
        floats: Floats::None,
        ..Options::default()
    };
    let failure = compare(&mut target, &options, 0..500).expect_err("the target is wrong");
    assert!(matches!(failure.trial, Trial::Differs(_)), "{failure}");
    let mut count = 0;
    let mut subs = 0;
    failure.reduced.kernel().for_each_inst(&mut |inst| {
        count += 1;
        subs += u32::from(inst.kind.as_op().is_some_and(|(op, ..)| op == Op::Sub));
    });
    assert!(subs >= 1, "{failure}");
    assert!(count <= 14, "{count} instructions are left:\n{failure}");
    // What is left shows the error, and nothing else is wrong with it.
    let again = compare_case(&failure.reduced, &mut target);
    assert!(again.is_failure(), "{failure}");
    assert_eq!(compare_case(&failure.reduced, &mut reference), Trial::Same);
}

#[test]
fn a_panic_of_the_target_is_a_failure_and_a_refusal_is_none() {
    let mut panics = |_: &Verified, _: &str, _: &_, _: &mut [_]| panic!("no such instruction");
    let failure = compare(&mut panics, &Options::default(), 0..1).expect_err("it panics");
    let expected = Trial::Failed("panic: no such instruction".to_string());
    assert_eq!(failure.trial, expected);
    let mut refuses = |_: &Verified, _: &str, _: &_, _: &mut [_]| {
        let lacking = Diagnostic::error(Rule::UnsupportedFeature, Span::NONE, "no f64 here");
        Err(Diagnostics(vec![lacking]))
    };
    let summary = compare(&mut refuses, &Options::default(), 0..3).expect("no failure");
    assert_eq!(
        (summary.same, summary.refused.get("no f64 here")),
        (0, Some(&3))
    );
}
