//! The checker of proofs, which must accept no proof that is none.

use invar_ir::{Dim, text, verify};
use invar_prove::certificate::{Proof, check};
use invar_prove::file::{Certificate, write};
use invar_prove::launch::Launch;
use invar_prove::linear::{Formula, Linear, Problem};
use invar_prove::solve::{Answer, Limits, solve};
use invar_prove::{Options, Verdict, prove, read_certificates, verify_certificate};

use crate::solver::{Random, problem};

/// Changes one number of a proof.
fn damage(proof: &mut Proof, random: &mut Random) {
    match proof {
        Proof::Sum(parts) => {
            if parts.is_empty() {
                return;
            }
            let at = random.below(parts.len() as u64) as usize;
            match random.below(3) {
                0 => parts[at].1 += 1 + random.below(3) as i128,
                1 => parts[at].0 += 1,
                _ => {
                    parts.remove(at);
                }
            }
        }
        Proof::Product { a, b, label, then } => match random.below(4) {
            0 => *a += 1,
            1 => *b += 1,
            2 => *label += 1,
            _ => damage(then, random),
        },
        Proof::Branch {
            form,
            at_least,
            below,
            ..
        } => match random.below(3) {
            0 => form.constant += 1,
            1 => damage(at_least, random),
            _ => damage(below, random),
        },
        Proof::Cases { of, cases, .. } => match random.below(3) {
            0 => *of += 1,
            1 if !cases.is_empty() => {
                let at = random.below(cases.len() as u64) as usize;
                damage(&mut cases[at], random);
            }
            _ => {
                cases.pop();
            }
        },
    }
}

/// A proof that is accepted is one, damaged or not: it is never accepted of a problem with an answer.
#[test]
fn no_proof_is_accepted_of_what_has_an_answer() {
    let limits = Limits {
        nodes: 500,
        pivots: 20_000,
    };
    let mut proofs = Vec::new();
    let mut answered = Vec::new();
    for seed in 0..1500 {
        let problem = problem(seed);
        match solve(&problem, limits) {
            Answer::Refuted(proof) => proofs.push((problem, proof)),
            Answer::Values(_) => answered.push(problem),
            Answer::Unknown => {}
        }
    }
    let mut random = Random(1);
    let mut rejected = 0;
    for (own, proof) in &proofs {
        for _ in 0..4 {
            let mut damaged = proof.clone();
            damage(&mut damaged, &mut random);
            rejected += usize::from(check(own, &damaged).is_err());
        }
        for _ in 0..20 {
            let other = &answered[random.below(answered.len() as u64) as usize];
            assert!(
                check(other, proof).is_err(),
                "accepted of a problem with an answer"
            );
        }
    }
    assert!(
        rejected > proofs.len(),
        "only {rejected} of {} x 4 rejected",
        proofs.len()
    );
}

/// What is written is what is asked for when it is read: nothing of what was tried on the way to the conditions.
#[test]
fn certificates_hold_no_proof_that_nobody_asks_for() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scan.inv");
    let source = std::fs::read_to_string(file).expect("a file");
    let module = verify(text::parse("scan.inv", &source).expect("it parses")).expect("it is valid");
    let cases = text::cases(&source).expect("its directives");
    for kernel in &module.kernels {
        let report = prove(&module, &kernel.name, &cases, Options::default()).expect("it is there");
        assert_eq!(report.verdict, Verdict::Proved, "{}", kernel.name);
        let again = |proofs| {
            let certificate = Certificate {
                kernel: kernel.name.to_string(),
                conditions: report.conditions.clone(),
                launch: report.witness.clone(),
                proofs,
            };
            verify_certificate(&module, &cases, &certificate).expect("it is there")
        };
        let read = again(report.proofs.clone());
        assert_eq!(read.verdict, Verdict::Proved);
        let keys = |of: &invar_prove::Report| of.proofs.keys().copied().collect::<Vec<_>>();
        assert_eq!(keys(&read), keys(&report), "{}", kernel.name);
        // Without one of them it is open, or that one was needed for nothing.
        let mut open = 0;
        for key in report.proofs.keys() {
            let mut fewer = report.proofs.clone();
            fewer.remove(key);
            open += usize::from(again(fewer).verdict == Verdict::Open);
        }
        assert!(
            2 * open > report.proofs.len(),
            "{open} of {}",
            report.proofs.len()
        );
    }
}

const KERNEL: &str =
    "kernel @rows(%x: device read f32, %y: device write f32, %n: u32) threadgroup(64) {
    %row = threadgroup_position_in_grid x
    %t = thread_position_in_threadgroup x
    %start = mul %row, %n
    %inside = lt %t, %n
    if %inside {
        %i = add %start, %t
        %v = load %x[%i]
        store %y[%i], %v
    }
}";

#[test]
fn proofs_are_read_as_they_were_written_and_verify_only_their_kernel() {
    let module = verify(text::parse("rows.inv", KERNEL).expect("it parses")).expect("it is valid");
    let report = prove(&module, "rows", &[], Options::default()).expect("it is there");
    assert_eq!(report.verdict, Verdict::Proved);
    assert_eq!(
        report.texts,
        ["n * groups.x <= length(x)", "n * groups.x <= length(y)"]
    );
    let certificate = Certificate {
        kernel: report.kernel.clone(),
        conditions: report.conditions.clone(),
        launch: report.witness.clone(),
        proofs: report.proofs.clone(),
    };
    assert!(certificate.launch.is_some());
    let written = write(std::slice::from_ref(&certificate));
    let read = read_certificates(&written).expect("it is well formed");
    assert_eq!(read, [certificate]);
    let verified = |text: &str, conditions: &[_]| {
        let module =
            verify(text::parse("rows.inv", text).expect("it parses")).expect("it is valid");
        let certificate = Certificate {
            conditions: conditions.to_vec(),
            ..read[0].clone()
        };
        let report = verify_certificate(&module, &[], &certificate);
        report.expect("it is there").verdict
    };
    assert_eq!(verified(KERNEL, &read[0].conditions), Verdict::Proved);
    // Without a condition the problems are others, and their proofs are not there.
    assert_eq!(verified(KERNEL, &read[0].conditions[1..]), Verdict::Open);
    let other = KERNEL.replace("lt %t, %n", "le %t, %n");
    assert_eq!(verified(&other, &read[0].conditions), Verdict::Open);
}

/// Of launches that there are none of anything can be proved: a certificate names one, which is looked at.
#[test]
fn a_certificate_has_a_launch_that_fulfils_its_conditions() {
    let module = verify(text::parse("rows.inv", KERNEL).expect("it parses")).expect("it is valid");
    let report = prove(&module, "rows", &[], Options::default()).expect("it is there");
    let verified = |change: &dyn Fn(&mut Launch)| {
        let mut launch = report.witness.clone().expect("a launch");
        change(&mut launch);
        let certificate = Certificate {
            kernel: "rows".to_string(),
            conditions: report.conditions.clone(),
            launch: Some(launch),
            proofs: report.proofs.clone(),
        };
        let again = verify_certificate(&module, &[], &certificate).expect("it is there");
        assert_eq!(
            again.verdict == Verdict::Proved,
            again.doubts.is_empty(),
            "{:?}",
            again.doubts
        );
        let said = again.doubts.iter().map(|d| d.what.clone());
        let said: Vec<String> = said.collect();
        (again.verdict, said.join("; "))
    };
    let proved = (Verdict::Proved, String::new());
    assert_eq!(verified(&|_| {}), proved);
    let longer: &dyn Fn(&mut _) = &|l: &mut Launch| l.numbers[0] = Some(1 << 20);
    assert_eq!(verified(longer), proved);
    // Too short, of no length, longer than any, of another threadgroup, of rows that it does not have.
    for (change, why) in [
        (
            &|l: &mut Launch| {
                (l.numbers[0], l.numbers[2]) = (Some(3), Some(4));
            },
            "it breaks the condition `",
        ),
        (&|l: &mut _| l.numbers[1] = None, "it does not say length("),
        (
            &|l: &mut _| l.numbers[0] = Some(1 << 40),
            ") cannot be 1099511627776",
        ),
        (
            &|l: &mut _| l.threadgroup[0] = Some(32),
            "threadgroup.x is 32 there, not ",
        ),
        (&|l: &mut _| l.grid[1] = Some(2), "grid.y is 2 there, not 1"),
        (&|l: &mut _| l.numbers[2] = Some(-1), " cannot be -1"),
    ] as [(&dyn Fn(&mut Launch), &str); 6]
    {
        let (verdict, said) = verified(change);
        assert_eq!(verdict, Verdict::Open);
        let begins = said.starts_with("the certificate's launch is none of these: ");
        assert!(begins && said.contains(why), "{said}");
    }
    let square = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/ir/conditions/textures.inv");
    let source = std::fs::read_to_string(square).expect("a file");
    let textures = verify(text::parse("t.inv", &source).expect("it parses")).expect("it is valid");
    let turned = prove(&textures, "rot90", &[], Options::default()).expect("it is there");
    for (texels, verdict) in [(300, Verdict::Proved), (65536, Verdict::Open)] {
        let mut launch = turned.witness.clone().expect("a launch");
        launch.texels.insert((0, Dim::X), texels);
        launch.texels.insert((0, Dim::Y), texels);
        let certificate = Certificate {
            kernel: "rot90".to_string(),
            conditions: turned.conditions.clone(),
            launch: Some(launch),
            proofs: turned.proofs.clone(),
        };
        let again = verify_certificate(&textures, &[], &certificate).expect("it is there");
        assert_eq!(again.verdict, verdict, "{texels}");
    }
    let none = Certificate {
        kernel: "rows".to_string(),
        conditions: report.conditions.clone(),
        launch: None,
        proofs: report.proofs.clone(),
    };
    let again = verify_certificate(&module, &[], &none).expect("it is there");
    assert_eq!(again.verdict, Verdict::Open);
}

#[test]
fn what_is_no_certificate_is_refused_by_its_line() {
    let error = |text: &str| read_certificates(text).expect_err("it is none");
    assert!(error("kernel @k").contains("the first line"));
    let wrong = "invar-certificate 1\nkernel k\nproof zz (sum)";
    assert_eq!(error(wrong), "line 3: not a line of a certificate");
    let wrong = "invar-certificate 1\nkernel k\ncondition multiple grid.x 0";
    assert_eq!(error(wrong), "line 3: not a line of a certificate");
    let wrong = "invar-certificate 1\nkernel k\nlaunch grid.x";
    assert_eq!(error(wrong), "line 3: not a line of a certificate");
    let wrong = "invar-certificate 1\nkernel k\nlaunch length.99999999999:1";
    assert_eq!(error(wrong), "line 3: not a line of a certificate");
    let wrong = "invar-certificate 1\nproof 0 (sum)";
    assert_eq!(error(wrong), "line 2: not a line of a certificate");
}

/// A problem of a variable or two, by facts `constant + factors * variables >= 0`, or one of several such.
fn of_facts(facts: &[&[(i128, [i128; 2])]]) -> Problem {
    let form = |(constant, factors): &(i128, [i128; 2])| {
        let terms = (0..).zip(factors.iter().copied());
        Linear {
            terms: terms.filter(|(_, factor)| *factor != 0).collect(),
            constant: *constant,
        }
    };
    let mut problem = Problem::default();
    problem.names.extend(["x".to_string(), "y".to_string()]);
    for fact in facts {
        let parts = fact.iter().map(|part| Formula::AtLeast(form(part)));
        let mut parts: Vec<Formula> = parts.collect();
        problem.facts.push(match parts.len() {
            1 => parts.remove(0),
            _ => Formula::Any(parts),
        });
    }
    problem
}

/// Each step of a proof that does not hold, of a problem that has an answer.
#[test]
fn steps_that_do_not_hold_are_rejected() {
    let sum = |parts: &[(usize, i128)]| Proof::Sum(parts.to_vec());
    let rejected = |problem: &Problem, proof: &Proof| {
        assert!(check(problem, proof).is_err(), "accepted: {proof:?}");
    };
    // x >= 0 and x >= -3: the first less the second is -3.
    let below = of_facts(&[&[(0, [1, 0])], &[(3, [1, 0])]]);
    rejected(&below, &sum(&[(0, 1), (1, -1)]));
    rejected(&below, &sum(&[(0, 0), (1, 0)]));
    // x >= 7 has a negative constant, and a variable beside it.
    rejected(&of_facts(&[&[(-7, [1, 0])]]), &sum(&[(0, 1)]));
    // x >= 0 and x <= 0 come to 0, which is not a contradiction.
    let zero = of_facts(&[&[(0, [1, 0])], &[(0, [-1, 0])]]);
    rejected(&zero, &sum(&[(0, 1), (1, 1)]));
    // x <= -1 or x >= 1, and x >= 0: one case is not a contradiction, and may not be left out.
    let sides = of_facts(&[&[(-1, [-1, 0]), (-1, [1, 0])], &[(0, [1, 0])]]);
    let first = sum(&[(2, 1), (1, 1)]);
    let cases = |cases: Vec<Proof>| Proof::Cases {
        of: 0,
        label: 2,
        cases,
    };
    rejected(&sides, &cases(vec![first.clone()]));
    // What the first case says is not known in the second.
    rejected(&sides, &cases(vec![first.clone(), first.clone()]));
    let both = of_facts(&[
        &[(-1, [-1, 0]), (-1, [1, 0])],
        &[(0, [1, 0])],
        &[(0, [-1, 0])],
    ]);
    let second = Proof::Cases {
        of: 0,
        label: 3,
        cases: vec![sum(&[(3, 1), (1, 1)]), sum(&[(3, 1), (2, 1)])],
    };
    assert!(check(&both, &second).is_ok());
    // A label that is taken may not be given again, though all else is right.
    let twice = of_facts(&[&[(-1, [1, 0])], &[(0, [-1, 0])], &[(-1, [1, 0])]]);
    let contradiction = || Box::new(sum(&[(1, 1), (2, 1)]));
    let branch = |label| Proof::Branch {
        form: Linear::var(0),
        label,
        at_least: contradiction(),
        below: contradiction(),
    };
    rejected(&twice, &branch(0));
    assert!(check(&twice, &branch(3)).is_ok());
    // 2x <= 1 is x <= 0, and not less.
    let halves = of_facts(&[&[(1, [-2, 0])], &[(0, [1, 0])]]);
    rejected(&halves, &sum(&[(0, 1), (1, 1)]));
    // 2x <= -1 is x <= -1.
    let negative = of_facts(&[&[(-1, [-2, 0])], &[(0, [1, 0])]]);
    assert!(check(&negative, &sum(&[(0, 1), (1, 1)])).is_ok());
}
