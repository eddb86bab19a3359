"""Proofs: verdicts, conditions, and launches that break a kernel."""

import numpy
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
    assert proof.command.startswith("invar check ") and proof.command.endswith(proof.launch)
    assert f"test_prove.py:clash {proof.launch}" in str(proof) and "test_prove.py:clash" in proof._repr_html_()
    assert any(finding.rule == "data-race" for finding in proof.findings)
    assert "error[data-race]" in str(proof) and "broken" in proof._repr_html_()


def test_kernels_of_files_are_proved():
    text = "kernel @k(%x: device write u32) {\n%i = thread_position_in_grid x\nstore %x[%i], %i\n}\n"
    proof = iv.prove(iv.load("k.inv", text=text)["k"])
    assert proof.conditions == ["grid.x <= length(x)"]


def test_the_command_of_a_broken_kernel_names_its_file_if_it_has_one(tmp_path):
    text = "kernel @k(%x: device write u32) {\n%i = thread_position_in_grid x\n%n = const u32 0\nstore %x[%n], %i\n}\n"
    file = tmp_path / "a file.inv"
    file.write_text(text)
    loaded = iv.prove(iv.load(file)["k"])
    assert loaded.command == f"invar check '{file}' {loaded.launch}" and loaded.command in str(loaded)
    # Nobody finds a kernel of a text, of a function or of given values by its name.
    assert iv.prove(iv.load("k.inv", text=text)["k"]).command == ""
    assert iv.prove(strided.specialise(width=0)).command == ""

    @iv.kernel
    def clash(x: iv.Buffer[iv.u32]):
        x[0] = iv.thread_position_in_grid.x

    assert iv.prove(clash).launch and iv.prove(clash).command == ""


def test_shaders_are_proved_for_whole_workgroups_and_launched_as_before():
    text = """
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        var<workgroup> kept: array<u32, 64>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
            kept[i] = i;
            workgroupBarrier();
            y[id.x] = kept[63 - i];
        }
    """
    shader = iv.load("turn.wgsl", text=text)["main"]
    proof = iv.prove(shader)
    assert proof and "dispatch of whole workgroups" in str(proof)
    y = numpy.zeros(100, numpy.uint32)
    shader[100, 64](y)
    assert (y[:64] == numpy.arange(64)[::-1]).all()


def test_what_is_compiled_for_each_value_is_proved_for_one():
    assert iv.prove(strided.specialise(width=4))
    assert iv.prove(strided.specialise(width=0)).verdict == "broken"
    with pytest.raises(iv.Error, match=r"iv\.prove\(kernel\.specialise"):
        iv.prove(strided)
    with pytest.raises(iv.ArgumentError, match="takes a kernel"):
        iv.prove(scale.ir)


def test_launches_of_what_is_proved_leave_the_same_arrays():
    x = numpy.arange(1, 101, dtype=numpy.float32)
    for device in iv.devices():
        if device.name == "checked":
            continue
        # Within the conditions, and beyond one end or the other: 0 (B1), and nothing (B2).
        for length, grid in [(100, 100), (64, 40), (99, 100), (120, 110)]:
            outs = []
            for prove in [False, True]:
                out = numpy.full(length, 7, numpy.float32)
                scale[grid, 32].prepare(x, out, 2.0, device=device, prove=prove)()
                outs.append(out)
            places = numpy.arange(length)
            expected = numpy.where(places < grid, numpy.where(places < 100, 2 * places + 2, 0), 7)
            assert (outs[0] == expected).all() and (outs[1] == expected).all(), (device, length, grid)


def test_what_a_proof_saves_is_measured():
    x, out = numpy.ones(64, numpy.float32), numpy.zeros(64, numpy.float32)
    measured = iv.bench(scale, grid=64, threadgroup=32, runs=3, prove=True)(x, out, 3.0)
    assert len(measured.times) == 3 and (out == 3).all()


def test_a_proof_is_asked_for_with_a_word_and_not_of_the_checked_device():
    x, out = numpy.ones(64, numpy.float32), numpy.zeros(64, numpy.float32)
    with pytest.raises(iv.ArgumentError, match="prove=1: write True or False"):
        scale[64, 32].prepare(x, out, 3.0, prove=1)
    with pytest.raises(iv.Error, match="a proof saves nothing on the device `checked`"):
        scale[64, 32].prepare(x, out, 3.0, device="checked", prove=True)


@iv.kernel
def gather(x: iv.Buffer[iv.f32], index: iv.Buffer[iv.u32], y: iv.Buffer[iv.f32]):
    iv.requires("grid.x <= length(index)", "grid.x <= length(y)")
    iv.requires("each i of index: i < length(x)")
    t = iv.thread_position_in_grid.x
    y[t] = x[index[t]]


def test_what_a_kernel_requires_is_given():
    proof = iv.prove(gather)
    assert proof, str(proof)
    assert proof.conditions == []
    assert proof.requires == [
        "grid.x <= length(index)",
        "grid.x <= length(y)",
        "each i of index: i < length(x)",
    ]
    assert "that fulfils its requires(grid.x <= length(index), " in str(proof)


@pytest.mark.parametrize("device", ["cpu", "checked"])
def test_a_launch_that_breaks_what_is_required_is_refused(device):
    x = numpy.arange(4, dtype=numpy.float32)
    index, y = numpy.array([3, 0, 1], numpy.uint32), numpy.zeros(3, numpy.float32)
    gather[3, 1](x, index, y, device=device)
    assert y.tolist() == [3, 0, 1]
    message = r"requires grid.x <= length\(index\), but grid.x is 4 and length\(index\) is 3"
    with pytest.raises(iv.LaunchError, match=message):
        gather[4, 1](x, index, y, device=device)


def test_the_checked_device_looks_at_what_buffers_hold():
    x, y = numpy.zeros(4, numpy.float32), numpy.zeros(1, numpy.float32)
    with pytest.raises(iv.LaunchError, match=r"but index\[0\] is 4 and length\(x\) is 4"):
        gather[1, 1](x, numpy.array([4], numpy.uint32), y, device="checked")


PICTURE = numpy.dtype([("width", numpy.uint32), ("size", numpy.uint32, 2)])


@iv.kernel
def brighten(p: iv.Buffer[PICTURE], n: iv.Buffer[iv.u32], y: iv.Buffer[iv.f32]):
    iv.requires("p.width * n[0] <= length(y)")
    iv.requires("p.width <= 1000")
    iv.requires("n[0] <= 1000")
    at = iv.thread_position_in_grid
    if (at.x < p[0].width) & (at.y < n[0]):
        i = at.y * p[0].width + at.x
        y[i] = y[i] + 1.0


@iv.kernel
def brighten_rows(p: iv.Buffer[PICTURE], n: iv.Buffer[iv.u32], y: iv.Buffer[iv.f32]):
    iv.requires("p.width <= length(y)")
    iv.requires("p.width <= 1000")
    iv.requires("n[0] <= 1000")
    at = iv.thread_position_in_grid
    if (at.x < p[0].width) & (at.y < n[0]):
        i = at.y * p[0].width + at.x
        y[i] = y[i] + 1.0


def test_what_is_required_of_fields_is_given():
    proof = iv.prove(brighten)
    assert proof, str(proof)
    assert proof.conditions == ["1 <= length(p)", "1 <= length(n)"]
    assert proof.requires[0] == "p.width * n[0] <= length(y)"
    # The rows after the first are beyond the buffer.
    proof = iv.prove(brighten_rows)
    assert proof.verdict == "broken", str(proof)
    assert any(finding.rule == "out-of-bounds" for finding in proof.findings)


@pytest.mark.parametrize("device", ["cpu", "checked"])
def test_the_checked_device_looks_at_fields(device):
    p, n = numpy.zeros(1, PICTURE), numpy.array([3], numpy.uint32)
    p["width"], y = 4, numpy.zeros(12, numpy.float32)
    brighten[(4, 4), (4, 4)](p, n, y, device=device)
    assert (y == 1).all()
    n[0] = 4
    if device == "checked":
        message = r"but p\.width is 4, n\[0\] is 4 and length\(y\) is 12"
        with pytest.raises(iv.LaunchError, match=message):
            brighten[(4, 4), (4, 4)](p, n, y, device=device)
    else:
        # Elsewhere what is beyond is not stored (B2).
        brighten[(4, 4), (4, 4)](p, n, y, device=device)
        assert (y == 2).all()


@iv.kernel
def fields_unread(p: iv.Buffer[PICTURE], y: iv.Buffer[iv.f32]):
    at = iv.thread_position_in_grid
    if at.x < p[0].width:
        y[at.x] = 1.0


def test_a_field_may_be_a_condition():
    proof = iv.prove(fields_unread)
    assert proof, str(proof)
    assert proof.conditions == ["1 <= length(p)", "p.width <= length(y)"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("p.depth <= length(y)", "depth"),
        ("p.size <= length(y)", "size"),
        ("y[0] <= length(p)", "y"),
    ],
)
def test_fields_that_are_none_are_refused(words, why):
    @iv.kernel
    def wrong(p: iv.Buffer[PICTURE], y: iv.Buffer[iv.f32]):
        iv.requires(words)
        y[0] = 1.0

    with pytest.raises(iv.VerifyError, match=why):
        iv.prove(wrong)


def test_requirements_that_mean_nothing_are_refused():
    @iv.kernel
    def unknown(x: iv.Buffer[iv.f32]):
        iv.requires("n <= length(x)")
        x[0] = 1.0

    with pytest.raises(iv.VerifyError, match="there is no parameter `n`"):
        iv.prove(unknown)

    @iv.kernel
    def inside(x: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        if n > iv.thread_position_in_grid.x:
            iv.requires("n <= length(x)")
        x[0] = 1.0

    with pytest.raises(iv.KernelError, match="in front of branches and loops"):
        iv.prove(inside)

    @iv.kernel
    def no_text(x: iv.Buffer[iv.f32], n: iv.Scalar[iv.u32]):
        iv.requires(n > 0)
        x[0] = 1.0

    with pytest.raises(iv.KernelError, match="takes each condition as a string"):
        iv.prove(no_text)

    @iv.kernel
    def nothing(x: iv.Buffer[iv.f32]):
        iv.requires()
        x[0] = 1.0

    with pytest.raises(iv.KernelError, match="one condition or more"):
        iv.prove(nothing)
