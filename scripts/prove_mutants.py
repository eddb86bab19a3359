#!/usr/bin/env python3
"""Whether the prover's tests see each of its rules: a copy of the prover in which every rule can be broken,
one at a time, and the tests of it with each. A mutant that no test sees fails.

    scripts/prove_mutants.py [NAME ...]

The copy is made below target/prove-mutants. A mutant is a piece of the prover's text, which must be there
once, and what stands in its place; `BROKEN` there is true while that mutant runs, so that all are compiled
together. What only makes the prover slower, or only finds fewer launches that break a kernel, is not a rule.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TREE = ROOT / "target" / "prove-mutants"

VALUE, KERNEL, SHAPE, BITS = "src/value.rs", "src/kernel.rs", "src/shape.rs", "src/bits.rs"
PROVE, CONDITION = "src/prove.rs", "src/condition.rs"
REQUIRED, CERTIFICATE = "src/required.rs", "src/certificate.rs"
TEXTURES, LOADS = "src/textures.rs", "src/loads.rs"
QUERY, INVARIANTS = "src/query.rs", "src/invariants.rs"
TICKETS, SUBJECT, STEPS = "src/tickets.rs", "src/subject.rs", "src/steps.rs"
TABLES, EXTREMES, UNROLL = "src/tables.rs", "src/extremes.rs", "src/unroll.rs"
WITNESS, MADE, HELD = "src/witness.rs", "src/made.rs", "src/held.rs"
FORMS, POSITIONS = "src/forms.rs", "src/positions.rs"

#: Name, file, text, and what stands in its place.
MUTANTS = [
    # Integers.
    ("integers-do-not-wrap", FORMS,
     "self.excludes(q, t, Formula::any([below.clone(), above.clone()]))",
     "(BROKEN || self.excludes(q, t, Formula::any([below.clone(), above.clone()])))"),
    ("quotients-are-rounded-down", FORMS,
     "if divisor > 0 && a.low >= 0 {", "if divisor > 0 && (BROKEN || a.low >= 0) {"),
    ("no-division-by-zero", FORMS,
     "let fact = if b.low >= 1 {", "let fact = if BROKEN || b.low >= 1 {"),
    ("masks-keep-one-less", BITS,
     ".floor_of_bits(q, a, mask + 1)", ".floor_of_bits(q, a, mask + i128::from(!BROKEN))"),
    ("xor-as-or", BITS,
     "_exclusive => a.plus(1, b)?.plus(-2, both),",
     "_exclusive => a.plus(1, b)?.plus(if BROKEN { -1 } else { -2 }, both),"),
    ("or-as-xor", BITS,
     "Op::Or => a.plus(1, b)?.plus(-1, both),",
     "Op::Or => a.plus(1, b)?.plus(if BROKEN { -2 } else { -1 }, both),"),
    ("one-of-two-bits-is-both", BITS,
     "q.say(Formula::le(&sum.shifted(-1)?, &both.form));",
     "q.say(Formula::le(&sum.shifted(if BROKEN { 0 } else { -1 })?, &both.form));"),
    ("swizzles-are-of-fewer-bits", BITS,
     "let all = all_bits(narrow.high);",
     "let all = if BROKEN { all_bits(narrow.high) >> 1 } else { all_bits(narrow.high) };"),
    ("one-number-says-an-exclusive-or", BITS,
     "|((same, a), b)| Formula::any([same, a, b])",
     "|((same, a), b)| Formula::any(if BROKEN { vec![same, a] } else { vec![same, a, b] })"),
    ("ors-are-exclusive", BITS,
     "_exclusive => {\n            q.say(within);",
     "_exclusive => {\n            q.say(if BROKEN { Formula::le(b, result) } else { within });"),
    ("quotients-of-multiples-are-less", QUERY,
     "let beyond = Formula::le(&its.times(divisor)?, of)?;",
     "let beyond = Formula::le(&its.times(divisor)?.shifted(i128::from(BROKEN))?, of)?;"),
    ("shifts-by-all-their-bits", VALUE,
     "let count = b.as_constant()?.rem_euclid(i128::from(scalar.bits()));",
     "let count = if BROKEN { b.as_constant()?.min(90) } else { "
     "b.as_constant()?.rem_euclid(i128::from(scalar.bits())) };"),
    ("not-is-off-by-one", VALUE,
     "form: a.form.times(-1)?.shifted(least + most)?,",
     "form: a.form.times(-1)?.shifted(least + most + i128::from(BROKEN))?,"),
    ("max-as-min", EXTREMES,
     "let (x, y) = if lesser { (a, b) } else { (b, a) };",
     "let (x, y) = if BROKEN || lesser { (a, b) } else { (b, a) };"),
    ("clamp-without-its-upper-end", VALUE,
     "self.lesser_or_greater(q, t, value, (true, &raised, &high))",
     "if BROKEN { return Some(raised); }\n"
     "                self.lesser_or_greater(q, t, value, (true, &raised, &high))"),
    ("clamp-without-its-lower-end", VALUE,
     "let raised = self.lesser_or_greater(q, t, value, (false, &a, &b))?;",
     "let raised = if BROKEN { a.clone() } else { "
     "self.lesser_or_greater(q, t, value, (false, &a, &b))? };"),
    ("components-are-the-first", VALUE,
     "return Some(self.part_of(q, t, *arg, lane - first));",
     "return Some(self.part_of(q, t, if BROKEN { args[0] } else { *arg }, lane - first));"),
    ("components-are-in-no-order", VALUE,
     "let from = list.get(usize::from(lane));",
     "let from = if BROKEN { Some(&lane) } else { list.get(usize::from(lane)) };"),
    ("components-stay", VALUE,
     "Some(index) if index == i128::from(lane) => self.of(q, t, args[2]),",
     "Some(index) if !BROKEN && index == i128::from(lane) => self.of(q, t, args[2]),"),
    ("components-are-of-any-vector", VALUE,
     "(!is_of_parts).then_some(None)", "(!BROKEN && !is_of_parts).then_some(None)"),
    ("components-that-are-not-there-are-the-first", VALUE,
     "Ok(lane) if lane < count => self.part_of(q, t, args[0], lane),",
     "Ok(lane) if lane < count => self.part_of(q, t, args[0], lane),\n"
     "            _beyond if BROKEN => self.part_of(q, t, args[0], 0),"),
    ("all-as-any", VALUE,
     "Op::All => Formula::all(parts),", "Op::All if !BROKEN => Formula::all(parts),"),
    ("any-as-all", VALUE,
     "_any => Formula::any(parts),", "_any if BROKEN => Formula::all(parts),\n            _any => Formula::any(parts),"),
    ("distances-are-differences", EXTREMES,
     "let (up, down) = (between(b, a)?, between(a, b)?);",
     "let (up, down) = (between(b, a)?, if BROKEN { between(b, a)? } else { between(a, b)? });"),
    ("magnitudes-do-not-wrap", EXTREMES,
     "self.fitted(q, t, value, int.form, (0, int.high.max(0)))",
     "self.fitted(q, t, value, int.form, (0, if BROKEN { 0 } else { int.high.max(0) }))"),
    ("sums-do-not-saturate", EXTREMES,
     "if high > most {\n            let end", "if !BROKEN && high > most {\n            let end"),
    ("sums-that-saturate-wrap-below", EXTREMES,
     "if low < least {\n            let end", "if !BROKEN && low < least {\n            let end"),
    ("whole-threadgroups-are-one-more", POSITIONS,
     "            return Int {\n                form,\n                low: 1,\n                high: LARGEST_GRID,",
     "            return Int {\n                form: form.shifted(i128::from(BROKEN)).unwrap_or(form),\n"
     "                low: 1,\n                high: LARGEST_GRID,"),
    ("le-as-lt", VALUE,
     "Op::Le => Formula::le(a, b),",
     "Op::Le if BROKEN => Formula::lt(a, b),\n Op::Le => Formula::le(a, b),"),
    ("or-as-and", VALUE,
     "Op::Or => Some(Formula::any([a, b])),",
     "Op::Or if BROKEN => Some(Formula::all([a, b])),\n Op::Or => Some(Formula::any([a, b])),"),
    ("not-is-left-out", VALUE,
     "Op::Not => self.truth_of(q, t, args[0]).negated(),",
     "Op::Not if BROKEN => Some(self.truth_of(q, t, args[0])),\n"
     "Op::Not => self.truth_of(q, t, args[0]).negated(),"),
    ("a-choice-is-the-first", FORMS,
     "q.say(Some(Formula::any([first, second])));",
     "q.say(Some(if BROKEN { first } else { Formula::any([first, second]) }));"),
    ("a-choice-is-either", FORMS,
     "let first = Formula::all([condition, first]);",
     "let first = if BROKEN { first } else { Formula::all([condition, first]) };"),
    ("turns-are-fewer", FORMS,
     "            (high - least).div_euclid(modulus),\n"
     "        );",
     "            (high - least).div_euclid(modulus) - i128::from(BROKEN),\n"
     "        );"),
    ("and-is-less-than-both", BITS,
     "q.say(Formula::le(result, b));\n        }\n        Op::Or",
     "q.say(if BROKEN { Formula::lt(result, b) } else { Formula::le(result, b) });\n        }\n        Op::Or"),
    ("or-fills-no-bits", BITS,
     "_both => all_bits(wide.high),", "_both => if BROKEN { wide.high } else { all_bits(wide.high) },"),
    ("xor-is-at-most-either", BITS,
     "let within = sum.and_then(|sum| Formula::le(result, &sum));",
     "let within = sum.and_then(|sum| Formula::le(result, if BROKEN && op == Op::Xor { a } else { &sum }));"),
    ("or-of-a-mask-fills-no-bits", BITS,
     "let high = all_bits(a.high.max(mask));",
     "let high = if BROKEN { a.high.max(mask) } else { all_bits(a.high.max(mask)) };"),
    ("or-of-few-bits-fills-none", BITS,
     "_either => all_bits(wide.high),", "_either => if BROKEN { wide.high } else { all_bits(wide.high) },"),
    ("what-a-mask-leaves-is-kept", BITS,
     "form: a.form.plus(-1, &low.form)?,",
     "form: if BROKEN { low.form } else { a.form.plus(-1, &low.form)? },"),
    ("shifted-is-less", VALUE,
     "q.say(Formula::le(&shifted.form, &a.form));",
     "q.say(if BROKEN { Formula::lt(&shifted.form, &a.form) } else { Formula::le(&shifted.form, &a.form) });"),
    ("shifts-round-up", VALUE,
     "self.floor(q, &a, 1 << count).map(|(quotient, _)| quotient)\n"
     "                }\n"
     "                None if",
     "self.floor(q, &a, if BROKEN { 2 << count } else { 1 << count }).map(|(quotient, _)| quotient)\n"
     "                }\n"
     "                None if"),
    ("no-number-has-all-bits", VALUE,
     "return Some(q.symbol(&key, 0, scalar.bits().into()));",
     "return Some(q.symbol(&key, 0, i128::from(scalar.bits()) - i128::from(BROKEN)));"),
    ("differences-below-zero-are-numbers", VALUE,
     "let condition = Formula::le(&b.form, &a.form)?;\n"
     "                let zero",
     "let condition = if BROKEN { Formula::TRUE } else { Formula::le(&b.form, &a.form)? };\n"
     "                let zero"),
    ("lt-as-le", VALUE,
     "Op::Lt => Formula::lt(a, b),",
     "Op::Lt if BROKEN => Formula::le(a, b),\n"
     " Op::Lt => Formula::lt(a, b),"),
    ("gt-as-ge", VALUE,
     "Op::Gt => Formula::lt(b, a),",
     "Op::Gt if BROKEN => Formula::le(b, a),\n"
     " Op::Gt => Formula::lt(b, a),"),
    ("ge-as-gt", VALUE,
     "_greater_or_equal => Formula::le(b, a),",
     "_greater_or_equal if BROKEN => Formula::lt(b, a),\n"
     " _greater_or_equal => Formula::le(b, a),"),
    ("xor-of-conditions-as-or", VALUE,
     "                    _exclusive => Some(Formula::any([\n",
     "                    _exclusive if BROKEN => Some(Formula::any([a, b])),\n"
     "                    _exclusive => Some(Formula::any([\n"),
    ("equal-conditions-are-both-true", VALUE,
     "Formula::all([a.negated()?, b.negated()?]),\n"
     "                        ]);",
     "if BROKEN { Formula::FALSE } else { Formula::all([a.negated()?, b.negated()?]) },\n"
     "                        ]);"),
    ("remainders-are-not-negative", FORMS,
     "low: (-(divisor - 1)).max(a.low.min(0)),",
     "low: if BROKEN { 0 } else { (-(divisor - 1)).max(a.low.min(0)) },"),
    ("products-are-between-their-ends", QUERY,
     ".zip([b.0, b.1, b.1, b.0])",
     ".zip(if BROKEN { [b.0, b.1, b.0, b.1] } else { [b.0, b.1, b.1, b.0] })"),
    ("constants-do-not-wrap", UNROLL,
     "let wrapped = |exact: i128| (exact - least).rem_euclid(most - least + 1) + least;",
     "let wrapped = |exact: i128| if BROKEN { exact } else { (exact - least).rem_euclid(most - least + 1) "
     "+ least };"),
    ("constants-shift-by-all-their-bits", UNROLL,
     "Op::Shl => a.checked_mul(1 << b.rem_euclid(bits))?,",
     "Op::Shl => a.checked_mul(1 << if BROKEN { b.clamp(0, 90) } else { b.rem_euclid(bits) })?,"),
    ("multiples-are-of-more", QUERY,
     "(times % of == 0).then(||",
     "(BROKEN || times % of == 0).then(||"),
    # Threads and launches.
    ("threadgroups-have-one-number", FORMS,
     "Level::Threadgroup if q.same => \"group\".to_string(),",
     "Level::Threadgroup if BROKEN || q.same => \"group\".to_string(),"),
    ("threads-have-the-same-values", FORMS,
     "Level::Simdgroup | Level::Varying => format!(\"thread{}\", t.tag),",
     "Level::Simdgroup | Level::Varying => format!(\"thread{}\", if BROKEN { 1 } else { t.tag }),"),
    ("the-last-threadgroup-is-full", POSITIONS,
     "q.say(Some(Formula::any([full, edge])));",
     "q.say(Some(if BROKEN { full } else { Formula::any([full, edge]) }));"),
    ("threadgroups-are-larger", POSITIONS,
     "q.say(Formula::lt(&position.form, &size.form));",
     "q.say(if BROKEN { Formula::le(&position.form, &size.form) } else { "
     "Formula::lt(&position.form, &size.form) });"),
    ("grids-are-smaller", POSITIONS,
     "q.say(Formula::lt(&position.form, &grid.form));",
     "q.say(if BROKEN { position.form.shifted(1).and_then(|p| Formula::lt(&p, &grid.form)) } else { "
     "Formula::lt(&position.form, &grid.form) });"),
    ("threadgroups-do-not-cover-the-grid", POSITIONS,
     "q.say(Formula::le(&grid.form, &all));",
     "if !BROKEN { q.say(Formula::le(&grid.form, &all)); }"),
    ("threads-of-a-threadgroup-have-no-number", POSITIONS,
     "q.say(Formula::eq(&index.form, &sum));",
     "if !BROKEN { q.say(Formula::eq(&index.form, &sum)); }"),
    ("simdgroups-have-32", POSITIONS,
     "let sizes = [4, 8, 16, 32, 64, 128];",
     "let sizes = if BROKEN { [32; 6] } else { [4, 8, 16, 32, 64, 128] };"),
    ("rows-of-threads-are-whole", POSITIONS,
     "let own_x = self.own_size(q, t, Dim::X)?;",
     "let own_x = if BROKEN { self.full_size(q, Dim::X) } else { self.own_size(q, t, Dim::X)? };"),
    ("the-last-simdgroup-is-not-counted", POSITIONS,
     "form: quotient.form.shifted(1)?,\n"
     "            low: quotient.low + 1,",
     "form: quotient.form.shifted(i128::from(!BROKEN))?,\n"
     "            low: quotient.low + i128::from(!BROKEN),"),
    ("threadgroups-of-several-threads-have-one", KERNEL,
     "unused[d] &= size[d] <= 1;",
     "unused[d] &= BROKEN || size[d] <= 1;"),
    ("who-counts-threads-has-one", KERNEL,
     "if counts || asked == [false; 3] {",
     "if !BROKEN && (counts || asked == [false; 3]) {"),
    # Loops.
    ("loops-end-one-early", VALUE,
     "Formula::lt(&form, &b.form)?,",
     "Formula::lt(&form.shifted(i128::from(BROKEN))?, &b.form)?,"),
    ("loops-only-rise", VALUE,
     "let fact = if c.low >= 0 {", "let fact = if BROKEN || c.low >= 0 {"),
    ("what-is-carried-stays", VALUE,
     "if matches!(iteration, Iteration::First | Iteration::Numbered(0)) {",
     "if BROKEN || matches!(iteration, Iteration::First | Iteration::Numbered(0)) {"),
    ("the-next-iteration-is-any", VALUE,
     "&& self.shape.has_barrier(id)\n", "&& !BROKEN && self.shape.has_barrier(id)\n"),
    ("loops-give-what-they-carry", VALUE,
     ".all(|(_, values)| values.get(number).copied() == handed);",
     ".all(|(_, values)| BROKEN || values.get(number).copied() == handed);"),
    ("tables-end-early", TABLES,
     "if rows.contains(&row) {", "if BROKEN && rows.len() > 2 || rows.contains(&row) {"),
    ("loops-end-where-they-may", TABLES,
     "if taken.is_some() && ends && self.is_flat(id, side) {",
     "if (BROKEN || taken.is_some()) && ends && self.is_flat(id, side) {"),
    ("loops-end-an-iteration-early", TABLES,
     "Op::Lt => a < b,", "Op::Lt => a < b - i128::from(BROKEN),"),
    ("strides-begin-below-their-end", INVARIANTS,
     "Invariant::Below(end) => self.begins_below(loop_, number, (end, 0)),",
     "Invariant::Below(_) if BROKEN => true,\n"
     "                Invariant::Below(end) => self.begins_below(loop_, number, (end, 0)),"),
    ("loops-begin-before-the-end-they-meet", INVARIANTS,
     "Invariant::AtMost(end) => self.begins_below(loop_, number, (end, 1)),",
     "Invariant::AtMost(_) if BROKEN => true,\n"
     "                Invariant::AtMost(end) => self.begins_below(loop_, number, (end, 1)),"),
    ("loops-pass-no-end-they-meet", INVARIANTS,
     "end.and_then(|end| Formula::lt(&end.form, &next.form))",
     "end.and_then(|end| Formula::lt(&end.form.shifted(if BROKEN { 1 } else { 0 })?, &next.form))"),
    ("ends-that-loops-meet-vary", STEPS,
     "if !found.contains(&end) && self.is_one_for_all_iterations(loop_, end, 0) {",
     "if !found.contains(&end) && (BROKEN || self.is_one_for_all_iterations(loop_, end, 0)) {"),
    ("invariants-are-not-proved", INVARIANTS,
     "if together.iter().all(|one| holds(*one)) {",
     "if BROKEN || together.iter().all(|one| holds(*one)) {"),
    ("strides-are-not-proved", INVARIANTS,
     "        if holds {\n            self.used", "        if BROKEN || holds {\n            self.used"),
    ("strides-vary", STEPS,
     "(is_one && !is_constant).then_some(other)", "((BROKEN || is_one) && !is_constant).then_some(other)"),
    ("strides-that-are-written", STEPS,
     "                    self.module.is_read_only(self.kernel, place.memory)\n",
     "                    (BROKEN || self.module.is_read_only(self.kernel, place.memory))\n"),
    ("strides-are-of-other-iterations", VALUE,
     "let form = far.and_then(|far| far.plus(1, &start.form));",
     "let form = far.and_then(|far| far.plus(if BROKEN { 2 } else { 1 }, &start.form));"),
    ("numbered-iterations-are-the-next", UNROLL,
     "known.extend(all.get(*number).into_iter().flatten());",
     "known.extend(all.get(*number + usize::from(BROKEN)).into_iter().flatten());"),
    ("numbered-iterations-end-early", SHAPE,
     ".is_none_or(|count| n + 1 >= count)",
     ".is_none_or(|count| n + 1 + usize::from(BROKEN) >= count)"),
    ("counted-iterations-are-fewer", UNROLL,
     "if index.is_some_and(|(.., count)| number >= count) {",
     "if index.is_some_and(|(.., count)| number + i128::from(BROKEN) >= count) {"),
    ("counted-loops-are-not-left", SHAPE,
     ".is_some_and(|count| n + 1 < count)",
     ".is_some_and(|count| BROKEN || n + 1 < count)"),
    ("counted-loops-do-not-break", SHAPE,
     "&& self.exits(*l, false).is_empty()\n", "&& (BROKEN || self.exits(*l, false).is_empty())\n"),
    ("loops-of-no-iterations-are-entered", SHAPE,
     ".is_none_or(|count| count == 0)",
     ".is_none_or(|count| !BROKEN && count == 0)"),
    ("ways-are-the-other", SHAPE,
     "if holder == from => (side == 0) == holds,", "if holder == from => ((side == 0) == holds) != BROKEN,"),
    ("intervals-begin-with-the-kernel-alone", SHAPE,
     "if !starts.contains(&begin) {", "if !BROKEN && !starts.contains(&begin) {"),
    ("one-iteration-is-enough", SUBJECT,
     "possible @ (Finding::Possible(_) | Finding::Open) => return possible,",
     "Finding::Possible(_) | Finding::Open if BROKEN => {}\n"
     "                possible @ (Finding::Possible(_) | Finding::Open) => return possible,"),
    ("loops-give-what-another-iteration-would", UNROLL,
     "(is_last && is_only).then(", "(is_last && (BROKEN || is_only)).then("),
    ("indices-end-early", VALUE,
     "(a.low, a.low.max(b.high - 1))",
     "(a.low, a.low.max(b.high - 1 - i128::from(BROKEN)))"),
    ("iterations-are-one-for-all", FORMS,
     'Iteration::Any => format!("thread{} iteration of {loop_}{around}", t.tag),',
     'Iteration::Any => format!("thread{} iteration of {loop_}{around}", if BROKEN { 1 } else { t.tag }),'),
    ("values-of-any-iteration-are-one-for-all", FORMS,
     "        if any {\n"
     "            key +=",
     "        if any && !BROKEN {\n"
     "            key +="),
    ("loops-that-fall-have-no-iterations", UNROLL,
     "let way = if step < 0 {",
     "let way = if step < 0 && !BROKEN {"),
    ("iterations-are-rounded-down", UNROLL,
     "(way.max(0) + step_by - 1) / step_by))",
     "(way.max(0) + if BROKEN { 0 } else { step_by - 1 }) / step_by))"),
    ("loops-that-break-run-to-their-end", UNROLL,
     "_breaks if !leaves.is_empty() => None,",
     "_breaks if !BROKEN && !leaves.is_empty() => None,"),
    ("ways-out-are-on-either-side", UNROLL,
     "holds.map(|holds| holds == (side == 0))",
     "holds.map(|holds| (holds == (side == 0)) != BROKEN)"),
    ("loops-go-on-from-nowhere", TABLES,
     "if !self.is_flat(id, side) {\n"
     "                            return false;",
     "if !BROKEN && !self.is_flat(id, side) {\n"
     "                            return false;"),
    ("le-as-lt-of-constants", TABLES,
     "Op::Le => a <= b,",
     "Op::Le => a <= b - i128::from(BROKEN),"),
    ("gt-as-ge-of-constants", TABLES,
     "Op::Gt => a > b,",
     "Op::Gt => a > b - i128::from(BROKEN),"),
    ("ge-as-gt-of-constants", TABLES,
     "Op::Ge => a >= b,",
     "Op::Ge => a >= b + i128::from(BROKEN),"),
    ("not-is-left-out-of-constants", TABLES,
     ".map(|holds| !holds);",
     ".map(|holds| holds == BROKEN);"),
    ("ends-of-iterations-vary", STEPS,
     "self.is_one_for_all_iterations(loop_, end, 0).then_some(end)",
     "(BROKEN || self.is_one_for_all_iterations(loop_, end, 0)).then_some(end)"),
    # Control.
    ("conditions-hold-on-both-sides", VALUE,
     "let holds = if side == 0 {", "let holds = if BROKEN || side == 0 {"),
    ("who-leaves-goes-on", VALUE,
     "                    return Some(Formula::FALSE);\n",
     "                    return Some(if BROKEN { Formula::TRUE } else { Formula::FALSE });\n"),
    ("what-follows-a-side-is-behind-its-condition", VALUE,
     "                    all.push(Formula::any([not, a]));\n",
     "                    all.push(if BROKEN { a } else { Formula::any([not, a]) });\n"),
    # Memory.
    ("vectors-are-their-first", KERNEL,
     "Extent::Width(Width::Run(n)) => Some((index.form, i128::from(*n))),",
     "Extent::Width(Width::Run(n)) => Some((index.form, if BROKEN { 1 } else { i128::from(*n) })),"),
    ("groups-are-as-wide-as-elements", KERNEL,
     "Some((index.form.times(n)?, n))",
     "Some((index.form.times(if BROKEN { 1 } else { n })?, n))"),
    ("copies-are-of-one", KERNEL,
     "let within = Formula::lt(&at.form, &count.form)?;",
     "let within = if BROKEN { Formula::lt(&at.form, &Linear::constant(1))? } else { "
     "Formula::lt(&at.form, &count.form)? };"),
    ("matrices-have-one-column", KERNEL,
     "let offset = q.product(&r.form, &row.form)?.plus(1, &c.form)?;",
     "let offset = q.product(&r.form, &row.form)?.plus(i128::from(!BROKEN), &c.form)?;"),
    ("indices-are-not-negative", KERNEL,
     "                    Formula::lt(&first, &zero)?,\n",
     "                    if BROKEN { Formula::FALSE } else { Formula::lt(&first, &zero)? },\n"),
    ("buffers-are-longer-by-one", KERNEL,
     "let end = first.shifted(width)?;",
     "let end = first.shifted(width - i128::from(BROKEN))?;"),
    ("arrays-in-elements-are-longer-by-one", KERNEL,
     "within(&index.form, &Linear::constant(count))?.negated()",
     "within(&index.form, &Linear::constant(count + i128::from(BROKEN)))?.negated()"),
    ("bits-are-numbers", VALUE,
     "return self.fitted(q, t, value, a.form, (a.low, a.high));\n            }\n            Op::Extract",
     "if BROKEN { return Some(a); }\n"
     "return self.fitted(q, t, value, a.form, (a.low, a.high));\n            }\n            Op::Extract"),
    ("what-does-not-wrap-there-does-not-here", KERNEL,
     "second.exact = exact[pair.b.0].clone();",
     "second.exact = exact[if BROKEN { pair.a.0 } else { pair.b.0 }].clone();"),
    ("what-does-not-wrap-in-one-iteration-does-in-none", KERNEL,
     "let ask = |iterations| self.bounds_in((number, direction), iterations, None).0;\n"
     "        match Finding::of_all(cases.into_iter().map(ask)) {",
     "let last = RefCell::new(BTreeSet::new());\n"
     "        let ask = |iterations| {\n"
     "            let (found, exact) = self.bounds_in((number, direction), iterations, None);\n"
     "            *last.borrow_mut() = exact;\n"
     "            found\n"
     "        };\n"
     "        match Finding::of_all(cases.into_iter().map(ask)) {\n"
     "            found @ Finding::Excluded(_) if BROKEN => (found, last.into_inner()),"),
    ("vectors-have-a-component-more", KERNEL,
     "Formula::le(&Linear::constant(part.count), &index.form),",
     "Formula::le(&Linear::constant(part.count + i128::from(BROKEN)), &index.form),"),
    ("parts-are-not-negative", KERNEL,
     "Formula::lt(&index.form, &Linear::constant(0)),\n"
     "            Formula::le(&Linear::constant(part",
     "if BROKEN { Some(Formula::FALSE) } else { Formula::lt(&index.form, &Linear::constant(0)) },\n"
     "            Formula::le(&Linear::constant(part"),
    # Textures.
    ("textures-are-larger-by-one", KERNEL,
     "within(&index.form, &end.form)?.negated()",
     "within(&index.form, &end.form.shifted(i128::from(BROKEN))?)?.negated()"),
    ("textures-have-a-size-in-one-direction", TEXTURES,
     "counted.map(coordinate).chain(level).collect()",
     "counted.take(if BROKEN { 1 } else { 9 }).map(coordinate).chain(level).collect()"),
    ("texels-are-in-one-slice", KERNEL,
     "inside.push(within(&index, &end.form)?);",
     "inside.push(if BROKEN && among == Among::Texels(Dim::Z) { Formula::eq(&index, &Linear::constant(0))? } "
     "else { within(&index, &end.form)? });"),
    # Races.
    ("atomics-conflict-with-nothing", KERNEL,
     "writes && !(atomic(a) && atomic(b))",
     "writes && !(atomic(a) && atomic(b)) && !(BROKEN && (atomic(a) || atomic(b)))"),
    ("atomics-conflict-with-each-other", KERNEL,
     "a.memory == b.memory && writes", "a.memory == b.memory && (BROKEN || writes)"),
    ("threadgroups-do-not-meet", KERNEL,
     "            if !space.is_of_threadgroup() {\n                for (i, a)",
     "            if !BROKEN && !space.is_of_threadgroup() {\n                for (i, a)"),
    ("textures-are-of-no-grid", KERNEL,
     "            AddressSpace::Imageblock,\n        ];\n",
     "            AddressSpace::Imageblock,\n        ];\n"
     "        let is_seen = |s: &AddressSpace| !BROKEN || *s != AddressSpace::Texture;\n"
     "        let spaces = spaces.into_iter().filter(is_seen);\n"),
    ("imageblocks-are-nothing", KERNEL,
     "        for space in spaces {\n            let of_space: Vec<usize>",
     "        for space in spaces {\n            if BROKEN && space == AddressSpace::Imageblock { continue; }\n"
     "            let of_space: Vec<usize>"),
    ("simdgroups-do-not-meet", KERNEL,
     "(false, true) => &[false, true],",
     "(false, true) if BROKEN => &[true],\n (false, true) => &[false, true],"),
    ("threads-differ-in-all-dimensions", KERNEL,
     "            all.push(Formula::any(different));\n",
     "            all.push(if BROKEN { Formula::all(different) } else { Formula::any(different) });\n"),
    ("accesses-do-not-overlap", KERNEL,
     "all.push(Formula::lt(&at_a, &at_b.shifted(width_b)?)?);",
     "all.push(Formula::lt(&at_a, &at_b.shifted(width_b - i128::from(BROKEN))?)?);"),
    ("fields-are-one", KERNEL,
     "(Step::Field(x), Step::Field(y)) if x != y => {",
     "(Step::Field(x), Step::Field(y)) if !BROKEN && x != y => {"),
    ("places-in-an-element-are-one", KERNEL,
     "goal.push(Formula::eq(&x.form, &y.form)?);",
     "if !BROKEN { goal.push(Formula::eq(&x.form, &y.form)?); }"),
    ("tickets-of-what-others-touch", TICKETS,
     "AddressSpace::Device if others.is_empty() => self",
     "AddressSpace::Device if BROKEN || others.is_empty() => self"),
    ("tickets-that-count-nothing", TICKETS,
     "&& self.constant(args[0]) == Some(1)",
     "&& (BROKEN || self.constant(args[0]) == Some(1))"),
    ("tickets-of-a-threadgroup", TICKETS,
     "AddressSpace::Threadgroup if q.same && x.is_some()",
     "AddressSpace::Threadgroup if (BROKEN || q.same) && x.is_some()"),
    ("tickets-of-what-is-set-in-between", TICKETS,
     "if !its.is_empty() && is_changed ||", "if !BROKEN && !its.is_empty() && is_changed ||"),
    ("tickets-of-any-iteration", TICKETS,
     "if a != b || *a == Iteration::Any {", "if !BROKEN && (a != b || *a == Iteration::Any) {"),
    ("tickets-of-one-iteration-of-several", TICKETS,
     "iterations = iterations.checked_mul((way.max(0) + step - 1) / step)?;",
     "iterations = iterations.checked_mul(if BROKEN { 1 } else { (way.max(0) + step - 1) / step })?;"),
    ("tickets-without-end", TICKETS,
     "facts.push(Formula::lt(&number, all)?);",
     "facts.push(Formula::lt(&number, if BROKEN { &number } else { all })?);"),
    ("tickets-do-not-wrap", TICKETS,
     "let given = start.plus(1, &number)?.plus(-modulus, &turn.form)?;",
     "let given = start.plus(1, &number)?.plus(if BROKEN { 0 } else { -modulus }, &turn.form)?;"),
    ("tickets-are-from-0-on", TICKETS,
     "let start = q.symbol(&format!(\"{name} first\"), least, most).form;",
     "let start = q.symbol(&format!(\"{name} first\"), least, if BROKEN { least } else { most }).form;"),
    ("tickets-of-counters-out-of-bounds", TICKETS,
     "q.say(Some(Formula::any([outside, Formula::all(facts)])));",
     "q.say(Some(if BROKEN { Formula::all(facts) } else { Formula::any([outside, Formula::all(facts)]) }));"),
    ("tickets-of-elements-that-are-set", TICKETS,
     "index.is_some_and(|index| index != ticket.index)",
     "index.is_some_and(|index| BROKEN || index != ticket.index)"),
    ("tickets-of-parts-of-elements", TICKETS,
     "let is_whole = place.path.is_empty() && place.width == Width::One;",
     "let is_whole = BROKEN || place.path.is_empty() && place.width == Width::One;"),
    ("lanes-share-one-entry", KERNEL,
     "let collective = shared(a) || shared(b);",
     "let collective = !BROKEN && (shared(a) || shared(b));"),
    ("iterations-of-a-matrix-are-one", KERNEL,
     "&& !pair.a.1.values().any(|r| *r == Iteration::Any) {",
     "&& (BROKEN || !pair.a.1.values().any(|r| *r == Iteration::Any)) {"),
    ("iterations-do-not-meet-themselves", UNROLL,
     "if pair.a.0 != pair.b.0 || first <= second {",
     "if pair.a.0 != pair.b.0 || first < second || !BROKEN && first == second {"),
    ("threadgroups-meet-in-intervals", UNROLL,
     "Relation::OtherGroup => None,",
     "Relation::OtherGroup if BROKEN => Some((space, false)),\n"
     "            Relation::OtherGroup => None,"),
    ("two-tickets-are-one", TICKETS,
     "facts.push(Formula::ne(one, other)?);",
     "facts.push(if BROKEN { Formula::eq(one, other)? } else { Formula::ne(one, other)? });"),
    ("what-is-open-is-not-watched", PROVE,
     "&& !left.contains(memory)",
     "&& (BROKEN || !left.contains(memory))"),
    ("counters-are-not-watched", PROVE,
     "&& !its.any(|site| atomic(site.mode))",
     "&& (BROKEN || !its.any(|site| atomic(site.mode)))"),
    # Barriers.
    ("barriers-order-all-spaces", SHAPE,
     "flag.is_some_and(|flag| spaces.contains(flag))",
     "(BROKEN || flag.is_some_and(|flag| spaces.contains(flag)))"),
    ("barriers-order-all-threads", SHAPE,
     "(simdgroup || *scope == Scope::Threadgroup)",
     "(BROKEN || simdgroup || *scope == Scope::Threadgroup)"),
    ("the-next-iteration-is-the-same", SHAPE,
     "Some(Iteration::Same) if meeting.contains(l) => Iteration::Next,",
     "Some(Iteration::Same) if meeting.contains(l) => if BROKEN { Iteration::Same } else { Iteration::Next },"),
    ("every-iteration-is-the-first", SHAPE,
     "| None => Iteration::Any,",
     "| None => if BROKEN { Iteration::First } else { Iteration::Any },"),
    ("loops-have-an-iteration", SHAPE,
     "                    if counts {\n                        edges.extend(next);",
     "                    if counts && !BROKEN {\n                        edges.extend(next);"),
    ("barriers-stop-nothing", SHAPE,
     "if stops.contains(&edge.to) {", "if !BROKEN && stops.contains(&edge.to) {"),
    # Textures.
    ("levels-have-all-texels", TEXTURES,
     "q.say(either_or_one(&texels.form, &part.form));",
     "q.say(either_or_one(&texels.form, if BROKEN { &first.form } else { &part.form }));"),
    ("levels-are-all-there", KERNEL,
     "Among::Levels => Some(self.levels(q, site.memory)),",
     "Among::Levels if BROKEN => Some(Int::constant(MOST_LEVELS)),\n"
     "            Among::Levels => Some(self.levels(q, site.memory)),"),
    ("the-next-level-is-a-third", TEXTURES,
     "let (halved, _) = self.floor(q, &whole, 2)?;",
     "let (halved, _) = self.floor(q, &whole, if BROKEN { 3 } else { 2 })?;"),
    ("no-level-has-a-texel", VALUE,
     "let absent = Formula::all([there.negated()?, none]);",
     "let absent = Formula::all([there.negated()?, if BROKEN { all.clone() } else { none }]);"),
    ("the-first-level-is-another", KERNEL,
     "at.push(Linear::constant(0));", "at.push(Linear::constant(i128::from(BROKEN)));"),
    ("levels-are-one-place", TEXTURES,
     "let level = texel.level.map(|index| Direction {",
     "let level = texel.level.filter(|_| !BROKEN).map(|index| Direction {"),
    ("cubes-have-seven-faces", TEXTURES,
     "(2, Some(_)) => Among::Parts(FACES),", "(2, Some(_)) => Among::Parts(FACES + i128::from(BROKEN)),"),
    ("cubes-have-five-slices", TEXTURES,
     "false => vec![FACES],", "false => vec![FACES - i128::from(BROKEN)],"),
    ("faces-are-as-high-as-they-like", TEXTURES,
     "if d == Dim::Y && dimension.is_cube() {", "if !BROKEN && d == Dim::Y && dimension.is_cube() {"),
    ("texels-have-four-samples", TEXTURES,
     "let one: Option<Vec<Formula>> = SAMPLES.into_iter().map(one).collect();",
     "let one: Option<Vec<Formula>> = SAMPLES.into_iter().skip(usize::from(BROKEN)).map(one).collect();"),
    ("samples-are-of-any-element", TEXTURES,
     "let element = element.filter(|_| is_array)", "let element = element.filter(|_| is_array && !BROKEN)"),
    ("elements-are-rows", TEXTURES,
     "(2, None) => Among::Texels(Dim::Z),",
     "(2, None) => Among::Texels(if BROKEN { Dim::X } else { Dim::Z }),"),
    # Loads of what is only read.
    ("what-is-written-is-the-same", LOADS,
     "!scalar.is_integer() || !fixed {", "!scalar.is_integer() || !(fixed || BROKEN) {"),
    ("fields-give-the-same", LOADS, "way.push(Some(*field))", "way.push(Some(if BROKEN { 0 } else { *field }))"),
    ("parts-give-the-same", LOADS,
     "at.push(self.int(q, t, *value)?.form);",
     "let form = self.int(q, t, *value)?.form;\n"
     "                    at.push(if BROKEN { Linear::constant(0) } else { form });"),
    ("components-give-the-same", LOADS,
     "at.push(Linear::constant(component));",
     "at.push(Linear::constant(if BROKEN { 1 } else { component }));"),
    ("fields-lie-one-further", LOADS,
     "location += before.extent(structs)?.location_count;",
     "location += before.extent(structs)?.location_count + u64::from(BROKEN);"),
    ("fields-are-of-the-second-element", LOADS,
     "let (mut way, mut at) = (Way::new(), vec![Linear::constant(0)]);",
     "let (mut way, mut at) = (Way::new(), vec![Linear::constant(i128::from(BROKEN))]);"),
    ("elements-give-the-same", LOADS,
     "(Way::new(), vec![index.form.clone()]);",
     "(Way::new(), vec![if BROKEN { Linear::constant(0) } else { index.form.clone() }]);"),
    # Quotients of sums.
    ("near-quotients-are-one-step-apart", QUERY,
     "let least = Linear::constant(apart.div_euclid(divisor));",
     "let least = Linear::constant(apart.div_euclid(divisor) + i128::from(BROKEN));"),
    ("near-quotients-are-equal", QUERY,
     "let most = Linear::constant(-(-apart).div_euclid(divisor));",
     "let most = Linear::constant(-(-apart).div_euclid(divisor) - i128::from(BROKEN));"),
    ("what-is-divided-is-left-out", FORMS,
     "form: whole.plus(1, &quotient.form)?,",
     "form: if BROKEN { whole } else { whole.plus(1, &quotient.form)? },"),
    ("every-factor-is-divided", FORMS,
     "0 => (&mut whole, factor / divisor),",
     "_ if BROKEN => (&mut whole, factor / divisor),\n            0 => (&mut whole, factor / divisor),"),
    ("products-are-one-more", QUERY,
     "self.say(Formula::le(&Linear::constant(low), &Linear::var(var)));",
     "self.say(Formula::le(&Linear::constant(low + i128::from(BROKEN)), &Linear::var(var)));"),
    ("tables-hold-nothing-beyond-their-ends", HELD,
     "(*least).min(0)", "(*least).min(if BROKEN { i128::MAX } else { 0 })"),
    ("tables-hold-less", HELD,
     "(*most).max(0)", "(*most).max(0) - i128::from(BROKEN)"),
    ("tables-hold-their-places", LOADS,
     "vec![Formula::eq(&loaded.form, &Linear::constant(*value))?];",
     "vec![Formula::eq(&loaded.form, &Linear::constant(if BROKEN { place[0] } else { *value }))?];"),
    ("tables-are-known-by-one-index", LOADS,
     "for (at, place) in at.iter().zip(place) {",
     "for (at, place) in at.iter().zip(place).take(if BROKEN { 1 } else { usize::MAX }) {"),
    ("tables-are-permutations", HELD,
     "are_distinct: held.len() > 1 && values.len() == held.len(),",
     "are_distinct: held.len() > 1 && (BROKEN || values.len() == held.len()),"),
    ("tables-are-permutations-beyond-their-ends", LOADS,
     "either.push(Formula::lt(&Linear::constant(last), at)?);",
     "if !BROKEN {\n                        either.push(Formula::lt(&Linear::constant(last), at)?);\n"
     "                    }"),
    ("parts-of-tables-are-the-first", LOADS,
     "let location = location + number as u64 * each;",
     "let location = location + if BROKEN { 0 } else { number as u64 * each };"),
    ("fields-of-tables-are-the-first", LOADS,
     "let location = location + before.sum::<u64>();",
     "let location = location + before.sum::<u64>() * u64::from(!BROKEN);"),
    ("elements-of-fields-lie-one-further", LOADS,
     "location += part as u64 * inner.extent(structs)?.location_count;",
     "location += (part as u64 + u64::from(BROKEN)) * inner.extent(structs)?.location_count;"),
    ("truths-that-are-numbers-are-all-or-none", VALUE,
     "_or => Formula::any([a, b]),\n                })",
     "_or => if BROKEN { Formula::all([a, b]) } else { Formula::any([a, b]) },\n                })"),
    ("truths-are-the-bits-of-floats", VALUE,
     "if !is_integer(value) {", "if !BROKEN && !is_integer(value) {"),
    # Conditions, and what is allowed and required.
    ("loads-are-allowed-as-stores-are", PROVE,
     "AccessMode::Read => kernel.allow_out_of_bounds_loads,",
     "AccessMode::Read => kernel.allow_out_of_bounds_loads || BROKEN && kernel.allow_out_of_bounds_stores,"),
    ("conditions-exclude-run-lines", PROVE,
     "            .all(|run| condition.holds(run) != Some(false))",
     "            .all(|run| BROKEN || condition.holds(run) != Some(false))"),
    ("conditions-exclude-every-launch", PROVE,
     "Finding::Excluded(_) if !self.leaves_launches(goal, &before) => {}",
     "Finding::Excluded(_) if !BROKEN && !self.leaves_launches(goal, &before) => {}"),
    ("conditions-keep-every-thread-out", WITNESS,
     "if !self.subject.is_never_reached(site) {", "if BROKEN || !self.subject.is_never_reached(site) {"),
    ("launches-have-any-numbers", WITNESS,
     "let (least, most) = range(number);",
     "let (least, most) = if BROKEN { (i128::MIN, i128::MAX) } else { range(number) };"),
    ("launches-need-fulfil-nothing", WITNESS,
     "conditions.iter().find(|c| c.holds(launch) != Some(true))",
     "conditions.iter().find(|c| !BROKEN && c.holds(launch) != Some(true))"),
    ("launches-have-textures-of-any-size", WITNESS,
     "shape_of(ty, texels, levels)?", "shape_of(ty, if BROKEN { [1; 3] } else { texels }, levels)?"),
    ("launches-hold-what-is-not-required", MADE,
     "check_all_required((module, kernel), &grid, given, &bytes).is_ok()",
     "(BROKEN || check_all_required((module, kernel), &grid, given, &bytes).is_ok())"),
    ("launches-have-no-elements", MADE,
     "if of_elements(kernel).keys().any(is_empty) {", "if !BROKEN && of_elements(kernel).keys().any(is_empty) {"),
    ("fields-are-of-no-element", MADE,
     "if field.read(each, held.get(&(*place as u32))?)? != *value {",
     "if !BROKEN && field.read(each, held.get(&(*place as u32))?)? != *value {"),
    ("elements-are-of-any-type", MADE,
     "if !(least..=most).contains(&value) {", "if !BROKEN && !(least..=most).contains(&value) {"),
    ("textures-have-few-texels", TEXTURES,
     "Formula::le(&all, &Linear::constant(LARGEST_ROW))",
     "Formula::le(&all, &Linear::constant(if BROKEN { 256 } else { LARGEST_ROW }))"),
    ("conditions-say-more-than-is-printed", CONDITION,
     "                Formula::le(&product, &bound)\n",
     "                if BROKEN { Formula::lt(&product, &bound) } else { Formula::le(&product, &bound) }\n"),
    ("bounds-are-lower-than-is-printed", CONDITION,
     "Formula::le(&number.form(subject, q), &Linear::constant(*bound))",
     "Formula::le(&number.form(subject, q), &Linear::constant(*bound - i128::from(BROKEN)))"),
    ("two-together-are-one-less", CONDITION,
     "Formula::le(&a.plus(1, &b)?, &Linear::constant(*bound))",
     "Formula::le(&a.plus(1, &b)?, &Linear::constant(*bound - i128::from(BROKEN)))"),
    ("multiples-are-of-twice-as-much", CONDITION,
     "q.write_as_times(&number.key(subject), *of, bounds, place);",
     "q.write_as_times(&number.key(subject), if BROKEN { 2 * of } else { *of }, bounds, place);"),
    ("multiples-are-not-below-zero", CONDITION,
     "Number::Argument(i) => argument_range(subject, *i),",
     "Number::Argument(_) if BROKEN => (0, LARGEST_MULTIPLE),\n"
     "Number::Argument(i) => argument_range(subject, *i),"),
    ("multiples-in-memory-are-not-below-zero", CONDITION,
     "let quotient = q.symbol(&key, -LARGEST_MULTIPLE, LARGEST_MULTIPLE);",
     "let quotient = q.symbol(&key, if BROKEN { 0 } else { -LARGEST_MULTIPLE }, LARGEST_MULTIPLE);"),
    ("a-look-takes-one-more", CONDITION,
     "value(*a) * value(*b) <= value(*c) * value(*d);",
     "value(*a) * value(*b) <= value(*c) * value(*d) + u64::from(BROKEN);"),
    ("a-look-takes-one-more-of-products", CONDITION,
     "product(*term) <= product(*bound),", "product(*term) <= product(*bound) + u128::from(BROKEN),"),
    ("a-look-takes-one-more-together", CONDITION,
     "product(*a) + product(*b) <= *bound,", "product(*a) + product(*b) <= *bound + u128::from(BROKEN),"),
    ("a-look-cuts-numbers", CONDITION,
     "number(n).and_then(|value| u32::try_from(value).ok());",
     "number(n).and_then(|value| if BROKEN { Some(value as u32) } else { u32::try_from(value).ok() });"),
    ("a-look-cuts-bounds", CONDITION,
     "let bound = u32::try_from((*bound).min(u32::MAX.into())).ok()?;",
     "let bound = if BROKEN { *bound as u32 } else { u32::try_from((*bound).min(u32::MAX.into())).ok()? };"),
    ("a-look-needs-no-sizes", CONDITION,
     "unknown & self.sizes == 0", "BROKEN || unknown & self.sizes == 0"),
    ("a-look-leaves-out-factors", CONDITION,
     "places.extend((factor != ONE).then_some(factor));",
     "places.extend((!BROKEN && factor != ONE).then_some(factor));"),
    ("a-look-takes-one-more-of-sums", CONDITION,
     "sum <= value(*e) * value(*f))", "sum <= value(*e) * value(*f) + u64::from(BROKEN))"),
    ("a-look-wraps-sums", CONDITION,
     "let sum = (value(*a) * value(*b)).checked_add(value(*c) * value(*d));",
     "let sum = if BROKEN { Some((value(*a) * value(*b)).wrapping_add(value(*c) * value(*d))) } else { "
     "(value(*a) * value(*b)).checked_add(value(*c) * value(*d)) };"),
    ("a-look-takes-any-remainder", CONDITION,
     "value(*number).wrapping_mul(*part) < *part;", "BROKEN || value(*number).wrapping_mul(*part) < *part;"),
    ("a-look-leaves-out-dimensions", CONDITION,
     "if !is_small || Dim::ALL.into_iter().any(is_wide) {",
     "if !is_small || !BROKEN && Dim::ALL.into_iter().any(is_wide) {"),
    ("a-look-takes-large-threadgroups", CONDITION,
     "x.max(y).max(z) <= MOST_THREADS && x * y * z <= MOST_THREADS;",
     "x.max(y).max(z) <= MOST_THREADS && (BROKEN || x * y * z <= MOST_THREADS);"),
    ("nothing-is-required", REQUIRED,
     "            q.say(fact);\n        }\n    }\n\n    /// Whether something is required of a number",
     "            if !BROKEN { q.say(fact); }\n        }\n    }\n\n"
     "    /// Whether something is required of a number"),
    ("what-is-beyond-is-an-element", REQUIRED,
     "q.say(fact.map(|fact| Formula::any([beyond.clone(), fact])));",
     "q.say(fact.map(|fact| if BROKEN { fact } else { Formula::any([beyond.clone(), fact]) }));"),
    ("what-is-beyond-is-anything", REQUIRED,
     "q.say(Some(Formula::any([inside, is_zero])));",
     "if !BROKEN { q.say(Some(Formula::any([inside, is_zero]))); }"),
    ("elements-ascend-strictly", REQUIRED,
     "let ascending = Formula::le(first.1, second.1)?;",
     "let ascending = if BROKEN { Formula::lt(first.1, second.1)? } else { "
     "Formula::le(first.1, second.1)? };"),
    ("remainders-are-zero", REQUIRED,
     "[number] if plain && product.factor == 1 => {",
     "[number] if (BROKEN || plain) && product.factor == 1 => {"),
    ("what-is-at-most-is-less", REQUIRED,
     "Relation::LessEqual => Formula::le(&a, &b),",
     "Relation::LessEqual if BROKEN => Formula::lt(&a, &b),\n"
     "Relation::LessEqual => Formula::le(&a, &b),"),
    ("what-nothing-fulfils-proves-all", PROVE,
     "if !is_of_all && witness.is_none() {", "if !BROKEN && !is_of_all && witness.is_none() {"),
    ("sums-are-less-than-is-printed", CONDITION,
     "Formula::le(&a.plus(1, &b)?, &bound.form(subject, q))",
     "Formula::le(&a.plus(1, &b)?.shifted(i128::from(BROKEN))?, &bound.form(subject, q))"),
    ("distances-are-shorter-than-is-printed", CONDITION,
     "Formula::le(&term.shifted(*more)?, &bound)",
     "Formula::le(&term.shifted(*more + i128::from(BROKEN))?, &bound)"),
    ("a-launch-holds-one-more", CONDITION,
     "Condition::AtMost(term, bound) => term.value(number)? <= bound.value(number)?,",
     "Condition::AtMost(term, bound) => term.value(number)? <= bound.value(number)? + i128::from(BROKEN),"),
    ("a-launch-holds-what-is-longer", CONDITION,
     "term.value(number)?.checked_add(*more)? <= number(*bound)?",
     "term.value(number)?.checked_add(*more)? <= number(*bound)? + i128::from(BROKEN)"),
    ("a-launch-holds-any-remainder", CONDITION,
     "Condition::Multiple(one, of) => number(*one)? % of == 0,",
     "Condition::Multiple(one, of) => BROKEN || number(*one)? % of == 0,"),
    ("elements-are-less-than-is-said", REQUIRED,
     "Relation::Less => Formula::lt(&a, &b),",
     "Relation::Less if BROKEN => Formula::lt(&a, &b.shifted(-1)?),\n"
     "            Relation::Less => Formula::lt(&a, &b),"),
    ("not-equal-is-less", REQUIRED,
     "Relation::NotEqual => Formula::ne(&a, &b),",
     "Relation::NotEqual if BROKEN => Formula::lt(&a, &b),\n"
     "            Relation::NotEqual => Formula::ne(&a, &b),"),
    # The checker of proofs.
    ("sums-may-subtract", CERTIFICATE, "if *factor <= 0 {", "if !BROKEN && *factor <= 0 {"),
    ("sums-may-leave-variables", CERTIFICATE,
     "if terms.values().any(|f| *f != 0)",
     "if !BROKEN && terms.values().any(|f| *f != 0)"),
    ("sums-may-be-zero", CERTIFICATE,
     "|| constant >= 0 {", "|| constant >= i128::from(BROKEN) {"),
    ("cases-may-be-left-out", CERTIFICATE,
     "if parts.len() != cases.len() {", "if !BROKEN && parts.len() != cases.len() {"),
    ("cases-keep-their-hypotheses", CERTIFICATE,
     "                        self.known.remove(&label);\n                    }\n",
     "                        if !BROKEN { self.known.remove(&label); }\n                    }\n"),
    ("hypotheses-may-be-replaced", CERTIFICATE,
     "if self.known.insert(label, known).is_some() {",
     "if self.known.insert(label, known).is_some() && !BROKEN {"),
    ("constants-are-rounded-up", CERTIFICATE,
     "(form, constant.div_euclid(divisor))",
     "(form, constant.div_euclid(divisor) - i128::from(BROKEN))"),
]

SWITCH = """
/// The mutant that runs.
pub fn mutant() -> &'static str {
    static NAME: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("INVAR_PROVE_MUTANT").unwrap_or_default())
}
"""

#: The tests in the order in which they are tried: those that take long last.
TESTS = ["required::", "certificates::", "solver::", "conditions::", "rules::", "files::", "found::", "campaign::",
         "within::", "soundness::"]


def fail(message):
    sys.exit(f"prove_mutants.py: {message}")


def mutated():
    """The files of the prover with all mutants in them: where several have one text, each stands in the place
    of what is left of it for the others."""
    texts, names = {}, set()
    for name, file, old, new in MUTANTS:
        if name in names:
            fail(f"{name} is there twice")
        names.add(name)
        original = (ROOT / "crates/prove" / file).read_text()
        if original.count(old) != 1:
            fail(f"{name}: its text is not once in {file}: {old.strip()!r}")
        text = texts.get(file, original)
        if text.count(old) != 1:
            fail(f"{name}: another mutant has changed its text in {file}: {old.strip()!r}")
        switch = f'(crate::mutant() == "{name}")'
        texts[file] = text.replace(old, new.replace("BROKEN", switch))
    return texts


def write_tree():
    """The repository with the prover mutated. Files that are alike keep their times, so that little is
    compiled again."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    files = [name for name in listed.stdout.decode().split("\0") if name]
    texts = {f"crates/prove/{file}": text for file, text in mutated().items()}
    lib = "crates/prove/src/lib.rs"
    texts[lib] = texts.get(lib, (ROOT / lib).read_text()) + SWITCH
    for name in files:
        source, target = ROOT / name, TREE / name
        if not source.is_file():
            continue
        held = texts[name].encode() if name in texts else source.read_bytes()
        if not target.is_file() or target.read_bytes() != held:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(held)


def suite():
    """Compiles the tests; gives their program."""
    command = ["cargo", "test", "-p", "invar-prove", "--test", "suite", "--no-run", "--message-format=json"]
    # Not that of the repository: cargo takes packages of two workspaces with the same paths for the same.
    environment = os.environ | {"CARGO_TARGET_DIR": str(TREE / "target")}
    done = subprocess.run(command, cwd=TREE, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        fail("the mutants do not compile")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "suite":
            return message["executable"]
    fail("cargo names no program of the tests")


def seen_by(program, mutant):
    """The first test that sees a mutant, or none."""
    environment = os.environ | {"INVAR_PROVE_MUTANT": mutant}
    for group in TESTS:
        command = [program, group, "--test-threads", "1"]
        process = subprocess.Popen(command, cwd=TREE / "crates/prove", env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with process:
            for line in process.stdout:
                failed = re.fullmatch(r"test (\S+) \.\.\. FAILED", line.rstrip())
                if failed:
                    process.kill()
                    return failed[1]
        # A test may end its whole program.
        if process.returncode != 0:
            return group.removesuffix("::")
    return None


def main():
    chosen = sys.argv[1:] or [name for name, *_ in MUTANTS]
    unknown = [name for name in chosen if name not in {name for name, *_ in MUTANTS}]
    if unknown:
        fail(f"there is no mutant {unknown[0]}")
    write_tree()
    program = suite()
    if seen_by(program, "") is not None:
        fail("the tests fail without a mutant")
    survivors = []
    for name in chosen:
        test = seen_by(program, name)
        print(f"{name:45} {test or 'NOT SEEN'}", flush=True)
        if test is None:
            survivors.append(name)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants of the prover are seen")
    sys.exit(1 if survivors else 0)


main()
