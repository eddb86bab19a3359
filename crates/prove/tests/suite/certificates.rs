//! The checker of proofs, which must accept no proof that is none.

use invar_ir::{text, verify};
use invar_prove::certificate::{Proof, check};
use invar_prove::file::{Certificate, write};
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
        proofs: report.proofs.clone(),
    };
    let written = write(std::slice::from_ref(&certificate));
    let read = read_certificates(&written).expect("it is well formed");
    assert_eq!(read, [certificate]);
    let verified = |text: &str, conditions: &[_]| {
        let module =
            verify(text::parse("rows.inv", text).expect("it parses")).expect("it is valid");
        let proofs = read[0].proofs.clone();
        let report = verify_certificate(&module, "rows", &[], conditions, proofs);
        report.expect("it is there").verdict
    };
    assert_eq!(verified(KERNEL, &read[0].conditions), Verdict::Proved);
    // Without a condition the problems are others, and their proofs are not there.
    assert_eq!(verified(KERNEL, &read[0].conditions[1..]), Verdict::Open);
    let other = KERNEL.replace("lt %t, %n", "le %t, %n");
    assert_eq!(verified(&other, &read[0].conditions), Verdict::Open);
}

#[test]
fn what_is_no_certificate_is_refused_by_its_line() {
    let error = |text: &str| read_certificates(text).expect_err("it is none");
    assert!(error("kernel @k").contains("the first line"));
    let wrong = "invar-certificate 1\nkernel k\nproof zz (sum)";
    assert_eq!(error(wrong), "line 3: not a line of a certificate");
    let wrong = "invar-certificate 1\nkernel k\ncondition multiple grid.x 0";
    assert_eq!(error(wrong), "line 3: not a line of a certificate");
    let wrong = "invar-certificate 1\nproof 0 (sum)";
    assert_eq!(error(wrong), "line 2: not a line of a certificate");
}
