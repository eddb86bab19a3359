"""Proofs: verdicts, conditions, and launches that break a kernel."""

import pytest

import invar as iv


@iv.kernel
def scale(x: iv.Buffer[iv.f32], y: iv.Buffer[iv.f32], by: iv.Scalar[iv.f32]):
    i = iv.thread_position_in_grid.x
    y[i] = x[i] * by


@iv.kernel
def clash(x: iv.Buffer[iv.u32]):
    x[0] = iv.thread_position_in_grid.x


@iv.kernel
def strided(x: iv.Buffer[iv.f32], width):
    i = iv.thread_position_in_grid.x
    x[i * width] = 1.0


def test_a_proof_is_true_and_has_the_conditions():
    proof = iv.prove(scale)
    assert proof and proof.verdict == "proved"
    assert proof.conditions == ["grid.x <= length(x)", "grid.x <= length(y)"]
    assert str(proof).startswith("proved @scale: no data race, all 2 accesses in bounds, for every")
    assert "grid.x &lt;= length(x)" in proof._repr_html_()


def test_a_broken_kernel_has_the_launch_and_what_is_found():
    proof = iv.prove(clash)
    assert not proof and proof.verdict == "broken"
    assert proof.launch.startswith("--kernel clash --grid ")
    assert any(finding.rule == "data-race" for finding in proof.findings)
    assert "error[data-race]" in str(proof) and "broken" in proof._repr_html_()


def test_what_is_compiled_for_each_value_is_proved_for_one():
    assert iv.prove(strided.specialise(width=4))
    assert iv.prove(strided.specialise(width=0)).verdict == "broken"
    with pytest.raises(iv.Error, match=r"iv\.prove\(kernel\.specialise"):
        iv.prove(strided)
    with pytest.raises(iv.ArgumentError, match="takes a kernel"):
        iv.prove(scale.ir)
