//! The WGSL writer: what it writes is valid, and is what golden files say.
//!
//! `naga` validates the text of every kernel of `tests/ir/run` and `tests/ir/emit`, with and without the
//! optional features of targets. `BLESS=1` rewrites golden files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use invar_codegen::wgsl::{Bound, CooperativeMatrices, Features, Fma, Source, WgslOptions, write};
use invar_ir::text::{case::cases, parse};
use invar_ir::{
    Access, Diagnostics, FloatMode, Imm, Kernel, KernelBuilder, Module, Op, ParamKind, Place,
    Scalar, TextureAccess, Type, Verified, verify,
};
use invar_texture::PixelFormat;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/ir")
        .join(folder);
    invar_ir::text::case::files(&folder).expect("the folder of file tests")
}

fn try_load(path: &Path) -> Result<(Verified, String), Diagnostics> {
    let source = std::fs::read_to_string(path).unwrap();
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let module = parse(name, &source).and_then(verify)?;
    Ok((module, source))
}

fn load(path: &Path) -> (Verified, String) {
    try_load(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Everything that a target may have.
const ALL: Features = Features {
    int64: true,
    int64_atomics: true,
    subgroup_size: Some(32),
    coherent: true,
    f16: true,
    cooperative_matrices: Features::DESKTOP.cooperative_matrices,
    barrier_multiple: None,
    ends_loops: false,
    fma: Fma::Fused,
    keeps_floats: false,
    matrices_in_place: false,
    clears_arrays: false,
    hides_zeros: false,
    follows_uniforms: false,
    hides_extensions: false,
};

/// Matrices of the target's too.
const MATRICES: Features = Features {
    cooperative_matrices: CooperativeMatrices::ALL,
    ..ALL
};

/// Subgroups of a size that few kernels want.
const SMALL: Features = Features {
    subgroup_size: Some(8),
    fma: Fma::InF64,
    keeps_floats: true,
    ..ALL
};

/// No subgroups, and a driver that ends loops and wants matrices to stay where they lie.
const INT64: Features = Features {
    subgroup_size: None,
    int64_atomics: false,
    coherent: false,
    f16: false,
    cooperative_matrices: ALL.cooperative_matrices,
    int64: true,
    barrier_multiple: Some(8),
    ends_loops: true,
    fma: Fma::InIntegers,
    keeps_floats: false,
    matrices_in_place: true,
    clears_arrays: true,
    hides_zeros: true,
    follows_uniforms: true,
    hides_extensions: true,
};

pub fn options(kernel: &Kernel, features: Features, size: Option<[u32; 3]>) -> WgslOptions {
    let size = kernel.threadgroup_size.or(size).unwrap_or([64, 1, 1]);
    let count = kernel
        .params
        .iter()
        .filter(|p| matches!(p.kind, ParamKind::Threadgroup { .. }))
        .count();
    let written = kernel.params.iter().enumerate().filter_map(|(number, p)| {
        let ParamKind::Texture(ty) = p.kind else {
            return None;
        };
        let format = match (ty.access, ty.component) {
            (TextureAccess::Read | TextureAccess::Sample, _) => return None,
            (TextureAccess::Write, Scalar::F32) => PixelFormat::Rgba8Unorm,
            (_, Scalar::I32) => PixelFormat::R32Sint,
            (_, Scalar::U32) => PixelFormat::R32Uint,
            _float => PixelFormat::R32Float,
        };
        Some((number, format))
    });
    WgslOptions {
        texture_formats: written.collect(),
        threadgroup_lengths: vec![16; count],
        ..WgslOptions::new(features, size)
    }
}

pub fn validate(text: &str) -> Result<(), String> {
    validated(text).map(|_| ())
}

fn validated(text: &str) -> Result<naga::Module, String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|e| e.emit_to_string(text))?;
    let mut validator = naga::valid::Validator::new(
        naga::valid::ValidationFlags::all(),
        naga::valid::Capabilities::all(),
    );
    validator
        .subgroup_stages(naga::valid::ShaderStages::all())
        .subgroup_operations(naga::valid::SubgroupOperationSet::all());
    match validator.validate(&module) {
        Ok(_) => Ok(module),
        Err(e) => Err(e.emit_to_string(text)),
    }
}

fn has_loop(block: &naga::Block) -> bool {
    block.iter().any(|statement| match statement {
        naga::Statement::Loop { .. } => true,
        naga::Statement::Block(inner) => has_loop(inner),
        naga::Statement::If { accept, reject, .. } => has_loop(accept) || has_loop(reject),
        naga::Statement::Switch { cases, .. } => cases.iter().any(|case| has_loop(&case.body)),
        _ => false,
    })
}

/// What is written is valid, and watched if the driver ends loops and there are some. Gives whether it is.
fn check(name: &str, source: &Source, features: Features) -> bool {
    let module =
        validated(&source.text).unwrap_or_else(|e| panic!("{name}:\n{e}\n{}", source.text));
    let mut bound = source.bindings.iter().map(|binding| &binding.bound);
    let watched = bound.any(|bound| *bound == Bound::IterationGuard);
    // Who watches has a loop for that.
    let watching = module.entry_points.iter().map(|entry| &entry.function);
    let functions = module.functions.iter().map(|(_, function)| function);
    let mut functions = functions.chain(watching.filter(|_| !watched));
    let loops = functions.any(|function| has_loop(&function.body));
    assert_eq!(
        watched,
        features.ends_loops && loops,
        "{name} is watched for nothing, or is not:\n{}",
        source.text
    );
    watched
}

/// Writes and validates every kernel of a folder; gives the refusals, how many were written, and how many of these
/// watch their loops.
fn validate_folder(folder: &str, features: Features) -> (Vec<String>, u32, u32) {
    let (mut refusals, mut written, mut watched) = (Vec::new(), 0, 0);
    for path in files(folder) {
        // Some files of races do not even pass the verifier; that is what they show.
        let Ok((module, source)) = try_load(&path) else {
            continue;
        };
        let sizes: BTreeMap<String, [u32; 3]> = cases(&source)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|case| Some((case.kernel.name.clone(), case.threadgroup?)))
            .collect();
        for kernel in &module.kernels {
            let size = sizes.get(&*kernel.name).copied();
            let mut options = options(kernel, features, size);
            let name = format!("{} @{}", path.file_stem().unwrap().display(), kernel.name);
            match write(&module, &kernel.name, &options) {
                Ok(source) => {
                    watched += u32::from(check(&name, &source, features));
                    let again = write(&module, &kernel.name, &options).unwrap();
                    assert_eq!(source, again, "{name} is written differently each time");
                    options.full_threadgroups = true;
                    options.threadgroups_per_workgroup = 4;
                    options.unroll_rows = true;
                    let full = write(&module, &kernel.name, &options)
                        .unwrap_or_else(|e| panic!("{name}: {e}"));
                    check(&name, &full, features);
                    options.guards = false;
                    let bare = write(&module, &kernel.name, &options)
                        .unwrap_or_else(|e| panic!("{name}: {e}"));
                    check(&name, &bare, features);
                    written += 1;
                }
                Err(Diagnostics(errors)) => {
                    let rule = errors[0].rule.name();
                    assert!(rule.starts_with("unsupported-"), "{name}: {}", errors[0]);
                    refusals.push(format!("{name}: {rule}: {}", errors[0].message));
                }
            }
        }
    }
    (refusals, written, watched)
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "a test says what it did not do, and why"
)]
fn every_kernel_is_written_or_refused_with_a_reason() {
    let ends_loops = Features {
        ends_loops: true,
        ..MATRICES
    };
    // At most that many refusals for each target, so that none creeps in.
    for (target, features, run, race) in [
        ("all", ALL, 11, 25),
        ("matrices", ends_loops, 11, 25),
        ("small", SMALL, 11, 25),
        ("int64", INT64, 14, 25),
    ] {
        for (folder, most, least) in [("run", run, 110), ("race", race, 110), ("textures", 24, 20)]
        {
            let (refusals, written, watched) = validate_folder(folder, features);
            println!(
                "{target}, {folder}: {written} written, {watched} of them watched, {} refused",
                refusals.len()
            );
            for refusal in &refusals {
                println!("  {refusal}");
            }
            assert!(written >= least, "only {written} kernels written");
            assert!(refusals.len() <= most, "{} refusals", refusals.len());
            assert_eq!(watched > 0, features.ends_loops, "{target}, {folder}");
        }
    }
}

#[test]
fn golden_files() {
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files("emit") {
        let (module, source) = load(&path);
        let mut text = String::new();
        for kernel in &module.kernels {
            let features = Features {
                f16: !source.contains("; without f16\n"),
                ..if source.contains("; cooperative matrices\n") {
                    MATRICES
                } else {
                    ALL
                }
            };
            let options = WgslOptions {
                full_threadgroups: source.contains("; threadgroups: full\n"),
                threadgroups_per_workgroup: 1 + 3 * u32::from(source.contains("; coarse\n")),
                unroll_rows: source.contains("; rows: written out\n"),
                ..options(kernel, features, None)
            };
            match write(&module, &kernel.name, &options) {
                Ok(source) => {
                    validate(&source.text).unwrap_or_else(|e| panic!("{}:\n{e}", path.display()));
                    text.push_str(&source.text);
                }
                Err(errors) => text.push_str(&format!("// {errors}\n")),
            }
        }
        let golden = path.with_extension("wgsl");
        count += 1;
        if bless {
            std::fs::write(&golden, &text).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != text {
            wrong.push(golden.display().to_string());
        }
    }
    assert!(count >= 21, "only {count} golden files");
    assert!(
        wrong.is_empty(),
        "these differ (BLESS=1 rewrites them): {}",
        wrong.join(", ")
    );
}

/// A product of matrices of one type, with text around it and a line instead of one of its loads.
fn product(scalar: &str, before: &str, left: &str, after: &str) -> String {
    format!(
        "kernel @k(%x: device read {scalar}, %y: device write {scalar}, %u: u32) threadgroup(64) simdgroup(32) {{
            %zero = const u32 0
            %row = const u32 8
            %none = const {scalar} 0.0
            %g = simdgroup_index_in_threadgroup
            %tile = alloc threadgroup {scalar}[64]
            {before}
            {left}
            %b = matrix_load simdgroup_{scalar}x8x8 %x[%zero] row %row
            %c = matrix_fill simdgroup_{scalar}x8x8 %none
            %d = matrix_multiply_accumulate %a, %b, %c
            matrix_store %y[%zero] row %row, %d
            {after}
        }}"
    )
}

/// The text of a kernel, in threadgroups of 64 where it does not say; valid.
fn written(text: &str, features: Features) -> String {
    let module = parse("k.inv", text)
        .and_then(verify)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let size = module.kernels[0].threadgroup_size.unwrap_or([64, 1, 1]);
    let source = write(&module, "k", &WgslOptions::new(features, size))
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&source.text).unwrap_or_else(|e| panic!("{e}\n{}", source.text));
    source.text
}

#[test]
fn workgroups_with_barriers_are_rounded_up_where_the_target_needs_it() {
    let kernel = |before: &str| {
        let text = format!(
            "kernel @k(%x: device read u32, %y: device write u32) threadgroup(9) simdgroup(32) {{
                %t = thread_index_in_threadgroup
                %v = load %x[%t]
                {before}
                store %y[%t], %v
            }}"
        );
        written(&text, INT64)
    };
    assert!(kernel("").contains("@workgroup_size(9)"));
    let barrier = kernel("barrier threadgroup");
    assert!(barrier.contains("@workgroup_size(16)"));
    assert!(barrier.contains("exists = thread < thread_count;"));
    // What lanes exchange has room for the threads that round it up.
    assert!(kernel("%sum = simd_sum %v").contains("shuffle_of: array<u32, 16>;"));
}

#[test]
fn loops_are_watched_where_the_driver_ends_them() {
    let kernel = |body: &str| {
        let text = format!("kernel @k(%y: device write u32, %n: u32) {{\n{body}\n}}");
        verify(parse("k.inv", &text).unwrap()).unwrap()
    };
    let loops = kernel(
        "    %zero = const u32 0
    %one = const u32 1
    for %i = %zero to %n step %one {
        store %y[%i], %i
    }",
    );
    let straight = kernel("    store %y[%n], %n");
    for (module, features, watched) in [
        (&loops, INT64, true),
        (&straight, INT64, false),
        (&loops, ALL, false),
    ] {
        let source = write(module, "k", &WgslOptions::new(features, [64, 1, 1])).unwrap();
        validate(&source.text).unwrap();
        let bound: Vec<(&Bound, bool)> = source
            .bindings
            .iter()
            .map(|binding| (&binding.bound, binding.writable))
            .collect();
        let mut expected = vec![(&Bound::Param(0), true), (&Bound::Constants, false)];
        expected.extend(watched.then_some((&Bound::IterationGuard, true)));
        assert_eq!(bound, expected);
        assert_eq!(source.text.contains("iterations__left"), watched);
    }
}

#[test]
fn matrices_are_the_targets_where_each_has_one_place() {
    let own = |text: &str, features| written(text, features).contains("coopMultiplyAdd(");
    let load = "%a = matrix_load simdgroup_f32x8x8 %x[%zero] row %row";
    let plain = product("f32", "", load, "");
    assert!(own(&plain, MATRICES));
    assert!(!own(&plain, ALL), "the target has none");
    let f16_only = Features {
        cooperative_matrices: CooperativeMatrices {
            f16: true,
            ..CooperativeMatrices::default()
        },
        ..ALL
    };
    assert!(!own(&plain, f16_only), "it has none of this type");
    let half = load.replace("f32", "f16");
    assert!(own(&product("f16", "", &half, ""), f16_only));
    let brain = load.replace("f32", "bf16");
    assert!(!own(&product("bf16", "", &brain, ""), MATRICES));
    let other_size = Features {
        subgroup_size: Some(16),
        ..MATRICES
    };
    assert!(!own(&plain, other_size), "its subgroups have another size");
    let other_place = "%e = matrix_multiply_accumulate %a, %d, %c
            matrix_store %y[%zero] row %row, %e";
    assert!(
        !own(&product("f32", "", load, other_place), MATRICES),
        "a sum is a factor too"
    );
    // Where only some simdgroups come there is no barrier; where all do there is.
    let some = |condition: &str| {
        let before = format!("%some = {condition}\nif %some {{");
        own(&product("f32", &before, load, "}"), MATRICES)
    };
    assert!(some("eq %u, %zero"));
    assert!(!some("eq %g, %zero"));
}

#[test]
fn lengths_that_are_counted_in_words_need_no_64_bits() {
    let kernel = |params: &str, stored: &str| {
        format!(
            "kernel @k(%x: device read_write u32{params}) {{
    %n = buffer_length %x
    %m = cast u32 %n
    %i = thread_position_in_grid x
    %j = rem %i, %m
    store %x[%j], %m
    {stored}
}}"
        )
    };
    let (narrow, wide) = (
        kernel("", ""),
        kernel(", %y: device write u64", "store %y[%j], %n"),
    );
    for features in [Features::default(), ALL] {
        let text = written(&narrow, features);
        assert!(!text.contains("u64"), "{text}");
        assert_eq!(validate(&text), Ok(()));
    }
    assert!(written(&wide, ALL).contains("u64(constants.x__length)"));
    let module = verify(parse("k.inv", &wide).unwrap()).unwrap();
    let options = WgslOptions::new(Features::default(), [64, 1, 1]);
    let refused = write(&module, "k", &options).expect_err("64 bits");
    assert!(
        refused
            .to_string()
            .contains("`%n` has type u64, but the target has no 64-bit integers"),
        "{refused}"
    );
}

#[test]
fn a_matrix_that_may_be_out_of_bounds_is_staged() {
    let load = "%a = matrix_load simdgroup_f32x8x8 %x[%zero] row %row";
    let text = written(&product("f32", "", load, ""), MATRICES);
    let helper = |name: &str| {
        let from = text.find(&format!("fn {name}(")).expect(name);
        text[from..].split("\n}\n").next().unwrap().to_string()
    };
    for (name, length) in [("x__load_matrix_A", "x"), ("y__store_matrix_C", "y")] {
        let body = helper(name);
        let bound = format!("start + row * 7li + 7li < i64(u64(constants.{length}__length))");
        assert!(
            body.contains("start >= 0li") && body.contains(&bound),
            "{body}"
        );
        assert!(body.contains("if (!inside) {"), "{body}");
        // A simdgroup outside the grid neither stores nor decides.
        assert!(body.contains("thread / 32u * 32u < thread_count"), "{body}");
    }
    // Threadgroup memory need not be aligned as the target wants it.
    let tile = "%a = matrix_load simdgroup_f32x8x8 %tile[%zero] row %row";
    let text = written(&product("f32", "", tile, ""), MATRICES);
    assert!(!text.contains("&tile["), "{text}");
    assert!(text.contains("tile__load(i64__index("), "{text}");
}

/// A kernel of one operation, in `fast` mode or not.
fn one_operation(op: Op, imm: Imm, types: &[Type], mode: FloatMode) -> Verified {
    let mut k = KernelBuilder::new(Module::default(), "k");
    k.kernel_mut().float_mode = mode;
    k.kernel_mut().simdgroup_size = Some(32);
    let params: Vec<_> = types
        .iter()
        .map(|ty| k.buffer("x", Access::Read, *ty))
        .collect();
    let result = op.result_type(imm, types).unwrap();
    let out = k.buffer("out", Access::Write, result);
    let i = k.thread_index_in_threadgroup();
    let args: Vec<_> = params
        .iter()
        .map(|p| k.load(Place::element(*p, i)))
        .collect();
    let value = k.op(op, imm, &args);
    k.store(Place::element(out, i), value);
    k.finish()
        .and_then(verify)
        .unwrap_or_else(|e| panic!("{op} of {types:?}: {e}"))
}

#[test]
fn every_operation_on_every_type_is_valid() {
    let mut count = 0;
    for op in Op::all() {
        for (imm, types) in op.row().signature.instances() {
            let result = op.result_type(imm, &types).unwrap();
            // WGSL has no f64.
            if types
                .iter()
                .chain([&result])
                .any(|ty| ty.scalar() == Some(Scalar::F64))
            {
                continue;
            }
            let wide = types.iter().any(|ty| ty.component_count() > 2);
            for (mode, features) in [
                (FloatMode::Contract, ALL),
                (FloatMode::Fast, ALL),
                (FloatMode::Contract, INT64),
            ] {
                // Other modes and targets differ in helpers, which small types show as well.
                if wide && (mode, features) != (FloatMode::Contract, ALL) {
                    continue;
                }
                let module = one_operation(op, imm, &types, mode);
                let options = WgslOptions {
                    full_threadgroups: mode == FloatMode::Fast,
                    ..WgslOptions::new(features, [64, 1, 1])
                };
                let source = write(&module, "k", &options)
                    .unwrap_or_else(|e| panic!("{op} {imm:?} of {types:?}: {e}"));
                if let Err(e) = validate(&source.text) {
                    panic!("{op} {imm:?} of {types:?}:\n{e}\n{}", source.text);
                }
                count += 1;
            }
        }
    }
    assert!(count > 4000, "only {count}");
}

/// `(a + b) - a` is `b` to some compilers, which round a product in an `fma` too.
#[test]
fn what_rounding_lost_is_kept_from_being_cancelled() {
    let text = "kernel @k(%x: device read f32, %y: device write f32) {
        %i = thread_position_in_grid x
        %j = thread_position_in_grid y
        %a = load %x[%i]
        %b = load %x[%j]
        %sum = add %a, %b
        %term = neg %a
        %of = add %sum, %term
        %rest = sub %b, %of
        store %y[%i], %rest
    }";
    let sums = |fma| {
        let text = written(text, Features { fma, ..ALL });
        let body = text.split("@compute").nth(1).unwrap();
        body.matches("f32__sum(").count()
    };
    // Only the first one has a term that is taken from it again.
    assert_eq!(
        [Fma::Fused, Fma::InF64, Fma::InIntegers].map(sums),
        [1, 1, 1]
    );
}

/// A driver may take a product of a zero that it knows for zero, whatever it is multiplied by.
#[test]
fn zeros_are_hidden_from_a_driver_that_takes_their_products_for_zero() {
    let text = "kernel @k(%x: device read f32, %y: device write f32) {
        %i = thread_position_in_grid x
        %a = load %x[%i]
        %zero = const f32 0.0
        %half = const f32 0.5
        %p = mul %a, %zero
        %none = sub %half, %half
        %q = mul %p, %none
        %r = mul %q, %half
        store %y[%i], %r
    }";
    let hidden = |hides_zeros| {
        let text = written(text, Features { hides_zeros, ..ALL });
        let body = text.split("@compute").nth(1).unwrap();
        ["hidden_bits(0x0u)", "hidden_bits(0x3f000000u)"].map(|text| body.matches(text).count())
    };
    // Of what is not a zero only what is computed of constants alone.
    assert_eq!([false, true].map(hidden), [[0, 0], [1, 2]]);
}

/// How often an expression that a driver would follow ends there, for a chain of so many squares of which
/// `rest` makes use as `%s`.
fn ends_of_walks(squares: usize, rest: &str, follows_uniforms: bool) -> usize {
    let squares: String = (0..squares)
        .map(|n| format!("%x{} = mul %x{n}, %x{n}\n", n + 1))
        .chain([format!("%s = add %x{squares}, %x0\n")])
        .collect();
    let text = format!(
        "kernel @k(%x0: u32, %y: device read_write u32) {{
            %i = thread_position_in_grid x
            %zero = const u32 0
            %one = const u32 1
            %many = const u32 30
            {squares}
            {rest}
        }}"
    );
    let features = Features {
        follows_uniforms,
        ..ALL
    };
    written(&text, features).matches(", elsewhere)").count()
}

/// Ten squares have 1,024 operands and 1,023 products below them; of what is squared further, a walk comes to
/// the tenth first.
#[test]
fn what_a_driver_would_follow_for_long_ends_where_it_is_computed() {
    let rest = "%c = lt %s, %x0
        if %c {
            store %y[%s], %s
        }";
    assert_eq!(ends_of_walks(30, rest, true), 1);
    assert_eq!(ends_of_walks(30, rest, false), 0);
    assert_eq!(ends_of_walks(8, rest, true), 0);
}

/// Iterations that the driver writes out double what they use twice.
#[test]
fn what_a_driver_would_follow_through_iterations_ends_in_each() {
    let round = |next: &str| {
        let rest = format!(
            "%a = for %j = %zero to %many step %one carry(%p = %x0) {{
                %q = {next}
                yield %q
            }}
            store %y[%i], %a"
        );
        ends_of_walks(0, &rest, true)
    };
    assert_eq!(round("mul %p, %p"), 1);
    assert_eq!(round("add %p, %x0"), 0);
}

/// In an iteration that the driver writes out it may know what varies from round to round, or that what varies
/// from thread to thread is multiplied by 0.
#[test]
fn what_a_driver_would_follow_in_an_iteration_that_it_knows_ends_there() {
    let of = |first: &str, next: &str| {
        let squares: String = (0..30)
            .map(|n| format!("%q{} = mul %q{n}, %q{n}\n", n + 1))
            .collect();
        let rest = format!(
            "%v = load %y[%i]
            %a = for %j = %zero to %many step %one carry(%p = %x0) {{
                {first}
                {squares}
                %c = lt %q30, %x0
                if %c {{
                    store %y[%j], %one
                }}
                yield {next}
            }}"
        );
        ends_of_walks(0, &rest, true)
    };
    assert_eq!(of("%q0 = add %p, %zero", "%i"), 1);
    assert_eq!(of("%m = mul %v, %j\n%q0 = add %m, %x0", "%i"), 1);
    assert_eq!(of("%q0 = add %v, %v", "%i"), 0);
}

/// A driver that writes out the iterations of a quotient may know then what its operands are.
#[test]
fn what_a_driver_would_follow_into_a_wide_quotient_ends_after_it() {
    let of = |op: &str, ty: &str| {
        let rest = format!(
            "%seven = const {ty} 7
            %v = load %y[%i]
            %w = cast {ty} %v
            %a = {op} %w, %w
            %b = {op} %seven, %seven
            %c = cast u32 %a
            %d = cast u32 %b
            %e = add %c, %d
            store %y[%i], %e"
        );
        ends_of_walks(0, &rest, true)
    };
    assert_eq!(of("div", "u64"), 2);
    assert_eq!(of("rem", "i64"), 2);
    assert_eq!(of("div", "u32"), 0);
    assert_eq!(of("mul", "u64"), 0);
}
