"""Runs a checkout of the Enigma DSL on ``invar.enigma``; see ``scripts/enigma.sh``.

What is exempt stands below, each with its reason, and still runs: it has to fail in the way that its reason
says, so that nothing else hides behind it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import io
import json
import linecache
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import numpy as np

#: Seconds that one program may take.
TIME_LIMIT = 900

#: Examples by name: what each prints or asserts when its result is NumPy's.
EXAMPLES = {
    "vector_add": r"PASSED",
    "vector_add_tv": r"PASSED",
    "vector_add_mlx": r"PASSED",
    "conv1d_laplacian": r"PASSED",
    "heat_equation": r"max\|err\| = .*PASS",
    "showcase_attention": r"TV vs naive speedup",
    "qwen_megakernel": r"fused vs NumPy .*OK[\s\S]*tok/s",
    "async_copy_gemm": r"pipeline verified",
    "benchmark_naive_vs_tv": r"Naive: +correct\nfloat4: +correct\nTV: +correct",
    "benchmark_rmsnorm": r"Enigma: .*PASS",
    "benchmark_sdpa": r"Enigma: .*PASS",
}

#: Examples that go on, after Enigma's kernel, with a handwritten Metal kernel: how they end here.
HANDWRITTEN = {
    name: (
        r"was not made by compile\(\), so there is no kernel to execute",
        "then runs handwritten Metal, which needs Apple's compiler and a Mac",
    )
    for name in ("benchmark_rmsnorm", "benchmark_sdpa")
}

#: The tracer's list of operations, which Invar does not have.
OPERATIONS = "'KernelBuilder' object has no attribute '(ops|_region_stack)'"

#: Tests that fail: reason, how they end, and their names.
TESTS = [
    (
        "reads the tracer's list of operations, after it has traced",
        OPERATIONS,
        """
        test_preprocessor.TestEnigmaRange.test_simple_accumulator
        test_preprocessor.TestEnigmaRange.test_multiple_carries
        test_preprocessor.TestEnigmaRange.test_no_carry
        test_preprocessor.TestRangeConstexpr.test_unrolls
        test_async_copy.TestAsyncCopyTracing.test_trace_records_1d_d2t_and_wait
        test_async_copy.TestAsyncCopyTracing.test_trace_records_all_directions
        test_control_flow.TestForRange.test_basic_for_traces
        test_control_flow.TestForRange.test_for_body_ops_not_in_top_level
        test_control_flow.TestForRange.test_for_with_irvalue_bounds
        test_control_flow.TestForRange.test_for_custom_dtype
        test_control_flow.TestIf.test_if_simple
        test_control_flow.TestIf.test_if_else
        test_control_flow.TestIf.test_if_body_not_in_top_level
        test_control_flow.TestWhile.test_while_traces
        test_control_flow.TestNestedControlFlow.test_for_with_nested_if
        test_control_flow.TestNestedControlFlow.test_nested_for_loops
        test_control_flow.TestNestedControlFlow.test_sequential_for_loops
        test_control_flow.TestNestedControlFlow.test_if_inside_while
        test_control_flow.TestRegionStack.test_region_stack_balanced
        test_control_flow.TestRegionStack.test_ops_after_for_at_top_level
        test_dsl_extensions.TestForRangeIterArgs.test_init_produces_iter_args_and_results
        test_dsl_extensions.TestForRangeIterArgs.test_carry_rebound_after_exit
        test_dsl_extensions.TestRegisterTensor.test_register_tensor_indexing_emits_ops
        test_dsl_extensions.TestCopy.test_copy_emits_for_loop
        test_dsl_extensions.TestLoadStoreIf.test_store_if_wraps_store_in_scf_if
        test_dsl_extensions.TestLoadStoreIf.test_load_if_uses_select
        test_new_features.TestGemmTraceOnly.test_gemm_simdgroup_path_emits_simdgroup_ops
        test_new_features.TestGemmTraceOnly.test_gemm_scalar_path_emits_for_loops
        test_new_features.TestGemmTraceOnly.test_gemm_non_8x8x8_falls_back_to_scalar
        test_new_features.TestCopyCoalescedWidth.test_coalesced_width_iterates_count_div_width
        test_new_features.TestCopyCoalescedWidth.test_coalesced_width_one_iterates_count_times
        test_new_features.TestQuantizationHelpers.test_pack_uint8x4_emits_insert_bits
        test_new_features.TestQuantizationHelpers.test_unpack_uint8x4_emits_extract_bits
        test_new_features.TestQuantizationHelpers.test_pack_int4x2_round_trip_traces
        test_new_features.TestQuantizationHelpers.test_dequantize_int8
        test_vector_add_compile.TestTracingIR.test_trace_records_ops
        test_gemm_matmul_runtime.TestSimdgroupMatrixOpsMLIR.test_simdgroup_gemm_traces
        """,
    ),
    (
        "looks into a pipeline, whose stages are one array here and whose phase the kernel carries",
        "'Pipeline' object has no attribute '_buffers'",
        """
        test_dsl_extensions.TestPipeline.test_pipeline_has_front_back
        test_new_features.TestMultistagePipeline.test_pipeline_three_stages
        test_new_features.TestMultistagePipeline.test_pipeline_two_stage_swap_alias
        """,
    ),
    (
        "calls the function that packs constants for Apple's bridge",
        "cannot import name '_pack_constants'",
        """
        test_dsl_extensions.TestConstantPacking.test_pack_constants_empty
        test_dsl_extensions.TestConstantPacking.test_pack_constants_float
        test_dsl_extensions.TestConstantPacking.test_pack_constants_unknown_type_raises
        """,
    ),
    (
        "expects the very text of the original's Metal source or MLIR",
        r"AssertionError: '(_tpg\.y|device float\* v0 \[\[buffer\(0\)\]\]|vector<4xf32>)' not found in",
        """
        test_gemm_matmul_runtime.TestMatMulCompile.test_2d_grid
        test_vector_add_runtime.TestVectorAddCompile.test_metal_source_generation
        test_mlir_dsl_surfaces_runtime.TestVecWidthCompile.test_float4_emits_vec_buffer
        """,
    ),
]
EXEMPT = {name: (reason, end) for reason, end, names in TESTS for name in names.split()}


class Table:
    """What was run, by part."""

    def __init__(self):
        self.rows, self.wrong = {}, []

    def add(self, part, name, right, said=""):
        """One program: right, exempt (``None``) or wrong, and what to say of it."""
        row = self.rows.setdefault(part, [0, 0, 0])
        row[0 if right else 1 if right is None else 2] += 1
        word = "right " if right else "exempt" if right is None else "WRONG "
        print(f"  {word}  {name}{': ' + said if said else ''}", flush=True)
        if right is False:
            self.wrong.append(f"{part}: {name}: {said}")

    def print(self):
        """The table; gives the exit code."""
        print(f"\n{'':12}{'programs':>10}{'right':>8}{'exempt':>8}{'wrong':>8}")
        for part, counts in self.rows.items():
            print(f"{part:12}{sum(counts):>10}" + "".join(f"{n:>8}" for n in counts))
        return 1 if self.wrong else 0


def enigma(*arguments, device, **options):
    """The command that runs a program with ``import enigma`` as ours."""
    chosen = ["--device", device] if device else []
    return subprocess.run(
        [sys.executable, "-m", "invar.enigma", *chosen, *arguments],
        capture_output=True, text=True, timeout=TIME_LIMIT, **options,
    )  # fmt: skip


def last_line(text):
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing was said"


# ---- examples ----


def stand_in_for_xcrun(folder):
    """A folder with a command ``xcrun`` that makes empty files, so that a program gets as far as it can."""
    tool = folder / "xcrun"
    tool.write_text('#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done\n')
    tool.chmod(0o755)
    return folder


def examples(checkout, table, device):
    """Each example as a program of its own."""
    tools = pathlib.Path(tempfile.mkdtemp())
    path = f"{stand_in_for_xcrun(tools)}{os.pathsep}{os.environ['PATH']}"
    found = sorted(p.stem for p in (checkout / "examples").glob("*.py"))
    for name in found:
        script = f"examples/{name}.py"
        start = time.monotonic()
        try:
            done = enigma(script, device=device, cwd=checkout, env={**os.environ, "PATH": path})
        except subprocess.TimeoutExpired:
            table.add("examples", name, False, f"did not end within {TIME_LIMIT} s")
            continue
        seconds = f"{time.monotonic() - start:.0f} s"
        if name == "vector_add_mlx" and "No module named 'mlx" in done.stderr:
            table.add("examples", name, None, "MLX is not installed")
            continue
        right = re.search(EXAMPLES.get(name, r"PASS"), done.stdout) is not None
        said = "; ".join(re.findall(r"max ?\|?\s?\|?err\w*\|?\s*=\s*\S+", done.stdout)[:3])
        if name in HANDWRITTEN and right:
            end, reason = HANDWRITTEN[name]
            right, said = re.search(end, done.stderr) is not None, f"{said}; {reason} (exempt)"
        elif done.returncode:
            right = False
        if not right:
            said = last_line(done.stderr if done.returncode else done.stdout)
        table.add("examples", name, right, f"{said}{', ' if said else ''}{seconds}")
    shutil.rmtree(tools)


# ---- tests ----


def tests(checkout, table, device):
    """All tests in one run; those that are exempt have to fail as their reasons say."""
    report = pathlib.Path(tempfile.mkdtemp()) / "tests.xml"
    done = enigma(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "tests",
        device=device, cwd=checkout,
    )  # fmt: skip
    if not report.is_file():
        table.add("tests", "pytest", False, last_line(done.stdout + done.stderr))
        return
    seen = set()
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('tests.')}.{case.get('name')}"
        name = re.sub(r"^(portable|metal)\.", "", name)
        bad = [x for kind in ("failure", "error") for x in case.findall(kind)]
        seen.add(name)
        if case.find("skipped") is not None:
            table.add("tests", name, None, f"skips itself: {case.find('skipped').get('message')}")
        elif not bad:
            stale = name in EXEMPT
            table.add("tests", name, not stale, "passes, and is exempt nevertheless" if stale else "")
        else:
            reason, end = EXEMPT.get(name, ("", None))
            text = f"{bad[0].get('message')}\n{bad[0].text}"
            if end is not None and re.search(end, text):
                table.add("tests", name, None, reason)
            else:
                table.add("tests", name, False, (bad[0].get("message") or "").splitlines()[0][:200])
    for name in sorted(set(EXEMPT) - seen):
        table.add("tests", name, False, "is exempt, but there is no such test")
    shutil.rmtree(report.parent)


# ---- documents ----

#: A block with one of these is a program of its own, or goes on with those before it; others are lines
#: of a kernel.
PROGRAM = re.compile(r"@enigma\.|\bimport\b|compile|runtime|\brt\b|\bpk\b|[Ll]ayout")

#: What a document's programs name and do not define.
AROUND = '''
import numpy as np
import enigma

N = 1024
A = np.random.randn(N).astype(np.float32)
B = np.random.randn(N).astype(np.float32)

@enigma.kernel
def my_kernel(A: enigma.f32, B: enigma.f32, C: enigma.f32):
    i = enigma.thread_position_in_grid
    C[i] = A[i] + B[i]

@enigma.kernel
def add_tv(gA, gB, gC, tv_layout, tiler):
    thread, block = enigma.arch.thread_idx()[0], enigma.arch.block_idx()[0]
    parts = [
        enigma.tensor_composition(t[((None, None), block)], tv_layout, tiler)[(thread, None)]
        for t in (gA, gB, gC)
    ]
    parts[2].store(parts[0].load() + parts[1].load())

compiled = enigma.compile(my_kernel)
runtime = rt = enigma.MetalRuntime()
'''

#: What lines of a kernel name and do not define; the lines follow.
KERNEL = '''
import enigma

@enigma.kernel
def lines(A: enigma.f32, B: enigma.f32, Out: enigma.f32):
    tid = index = enigma.thread_position_in_grid
    value = float_val = r = g = a = A[tid]
    b = c = B[tid]
    ten = enigma.metal_cast(10, "int")
'''

#: What kernels of documents compute from their inputs, where every thread has one element: by name.
COMPUTED = {
    "vector_add": lambda a, b: a + b,
    "my_kernel": lambda a, b: a + b,
    "add": lambda a, b: a + b,
    "apply_sqrt": np.sqrt,
    "elem_max": np.maximum,
    "vec_example": lambda x, y, z: x + y + z,
    "dot_kernel": lambda *v: sum(x * y for x, y in zip(v[:3], v[3:])),
    "reverse": lambda a: a[::-1],
    "k": lambda a: a,
}

#: A block that shows a refusal: what it has, and what is then said.
REFUSED = (r"stages=3[\s\S]*pipe\.swap\(\)", "swap() is for pipelines of two stages")


def blocks(document):
    """The blocks of Python: first line and text."""
    text = document.read_text()
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M):
        yield text[: match.start()].count("\n") + 2, match[1]


def documents(checkout, table, device):
    """Every block of every document, one process for each document."""
    found = [checkout / "README.md", *sorted((checkout / "docs").glob("*.md"))]
    for document in found:
        name = str(document.relative_to(checkout))
        with tempfile.TemporaryDirectory() as folder:
            done = enigma(str(pathlib.Path(__file__).resolve()), "--document", str(document), device=device, cwd=folder)
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                one = json.loads(line)
                table.add("documents", f"{name}:{one['line']}", one["right"], one["said"])
        if done.returncode:
            table.add("documents", name, False, last_line(done.stderr))


def run_document(document):
    """Runs the blocks of a document, in the process that has ``import enigma`` as ours."""
    shared = {"__name__": "__document__"}
    run_text(AROUND, "around", shared)
    for line, text in blocks(document):
        right, said = True, ""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                said = run_block(text, f"{document.name} block {line}", shared)
        except Exception as e:
            right, said = False, f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        print(json.dumps({"line": line, "right": right, "said": said}), flush=True)


def run_text(text, name, scope):
    """Runs a program whose kernels' lines can be had."""
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec", dont_inherit=True), scope)


def run_block(text, name, shared):
    """Runs a block; gives what was seen to be right besides."""
    import enigma

    if PROGRAM.search(text):
        before = dict(shared)
        run_text(text, name, shared)
        made = [
            thing
            for key, thing in shared.items()
            if type(thing).__name__ == "Kernel" and before.get(key) is not thing
        ]
        return "; ".join(filter(None, (run_kernel(kernel) for kernel in made)))
    program = KERNEL + "".join(f"    {line}" if line.strip() else line for line in text.splitlines(True))
    scope = {"__name__": "__document__"}
    run_text(program, name, scope)
    pattern, sentence = REFUSED
    try:
        enigma.compile(scope["lines"])
    except enigma.EnigmaError as e:
        if re.search(pattern, text) and sentence in str(e):
            return "refused, as the text says"
        raise
    if re.search(pattern, text):
        raise AssertionError("the text says that this is refused")
    return "lines of a kernel, compiled"


def run_kernel(kernel):
    """Compiles and runs a kernel of a document on random numbers, and compares what it is known to
    compute."""
    import enigma

    kinds = list(kernel.fn.__annotations__.values())
    if len(kinds) != kernel.fn.__code__.co_argcount:
        return ""  # Its tensors come from a function with @enigma.jit.
    compiled = enigma.compile(kernel)
    if is_empty(kernel.fn):
        return "compiled"
    count, rng = 256, np.random.default_rng(0)
    dtypes = [np.dtype(kind.type.numpy()) for kind in kinds]
    inputs = [(rng.random(count) * 9 + 1).astype(dtype) for dtype in dtypes[:-1]]
    raw = enigma.MetalRuntime().execute(
        compiled, inputs, count * dtypes[-1].itemsize, grid=(count, 1, 1), threads=(count, 1, 1)
    )
    wanted = COMPUTED.get(kernel.name)
    if wanted is None:
        return "run"
    np.testing.assert_allclose(np.frombuffer(raw, dtypes[-1]), wanted(*inputs), rtol=1e-5)
    return "as NumPy computes it"


def is_empty(function):
    """Whether a function's body is only ``...``."""
    lines = linecache.getlines(function.__code__.co_filename)[function.__code__.co_firstlineno - 1 :]
    (made,) = ast.parse("".join(inspect.getblock(lines))).body
    return all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in made.body)


def main():
    """Runs what is asked for; the exit code is 1 if anything but what is exempt fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["examples", "tests", "documents"])
    parser.add_argument("--device")
    parser.add_argument("--document", type=pathlib.Path)
    parser.add_argument("checkout", type=pathlib.Path, nargs="?")
    given = parser.parse_args()
    if given.document:
        run_document(given.document)
        return 0
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        # Examples write beside themselves.
        copy = pathlib.Path(folder) / "checkout"
        ignore = shutil.ignore_patterns(".git", "__pycache__")
        shutil.copytree(given.checkout, copy, ignore=ignore)
        for part in (examples, tests, documents):
            if given.only in (None, part.__name__):
                print(part.__name__, flush=True)
                part(copy, table, given.device)
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
