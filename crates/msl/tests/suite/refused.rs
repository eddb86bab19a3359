//! What Metal has and kernels here have not: each is refused in a sentence, and other kernels of the source are read
//! all the same.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use invar_ir::{Diagnostics, Span};
use invar_msl::{Library, find_clang};

/// What a kernel does with `t`, a texture of this type, and what is said of it.
const REFUSED: [(&str, &str, &str); 18] = [
    (
        "texture2d<float>",
        "t.sample(sampler(s_address::repeat, t_address::clamp_to_edge), float2(0.5)).x",
        "address modes differ",
    ),
    (
        "texture2d<float>",
        "t.sample(how, float2(0.5), int2(8, 0)).x",
        "an offset beyond -8 to 7",
    ),
    (
        "texture2d<float>",
        "t.sample(how, float2(0.5), int2(int(y[0]), 0)).x",
        "an offset that is computed",
    ),
    (
        "texture2d<float>",
        "t.sample(how, float2(0.5), bias(1)).x",
        "`bias`",
    ),
    (
        "texture2d<float>",
        "t.sample(how, float2(0.5), min_lod_clamp(1)).x",
        "`min_lod_clamp`",
    ),
    (
        "texture2d<float>",
        "t.sample(sampler(mip_filter::linear, lod_clamp(2, 1)), float2(0.5), level(1)).x",
        "`lod_clamp(2.0, 1.0)`",
    ),
    (
        "texture2d<float>",
        "t.sample(sampler(max_anisotropy(4)), float2(0.5)).x",
        "`max_anisotropy`",
    ),
    (
        "depth2d_ms<float>",
        "t.read(uint2(0), 0)",
        "depths with several samples",
    ),
    (
        "depth2d<float>",
        "t.gather(how, float2(0.5), int2(0), component::y).x",
        "a gather of another component than `x` of a `depth2d`",
    ),
    (
        "depthcube<float>",
        "t.gather(how, float3(0.5), component::w).x",
        "a gather of another component than `x` of a `depthcube`",
    ),
    (
        "texture2d<float>",
        "t.sample(sampler(coord::pixel), float2(0.5), gradient2d(float2(1), float2(1))).x",
        "`coord::pixel` with gradients",
    ),
    (
        "texture3d<float>",
        "t.sample(sampler(coord::pixel), float3(0.5), gradient3d(float3(1), float3(1))).x",
        "`coord::pixel` with gradients",
    ),
    (
        "texturecube<float>",
        "t.sample(sampler(coord::pixel), float3(0.5)).x",
        "`coord::pixel` of a cube",
    ),
    (
        "depthcube<float>",
        "t.gather_compare(sampler(coord::pixel, compare_func::less), float3(0.5), 1).x",
        "`coord::pixel` of a cube",
    ),
    (
        "texture2d<float>",
        "t.sample(sampler(coord::pixel, address::repeat), float2(0.5)).x",
        "`coord::pixel` with addresses that repeat",
    ),
    (
        "texture1d<float>",
        "t.sample(sampler(coord::pixel, s_address::mirrored_repeat), 0.5f).x",
        "`coord::pixel` with addresses that repeat",
    ),
    (
        "texture2d<float>",
        "t.sample(sampler(coord::pixel, mip_filter::nearest), float2(0.5), level(1)).x",
        "`coord::pixel` with a `mip_filter`",
    ),
    (
        "texture2d<float>",
        "t.sample(sampler(coord::pixel, mag_filter::linear), float2(0.5)).x",
        "`coord::pixel` with two filters",
    ),
];

#[test]
fn what_textures_have_not_is_refused_by_name_on_its_line() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let kernel = |(number, (ty, value, _)): (usize, &(&str, &str, &str))| {
        format!(
            "kernel void k{number}({ty} t [[texture(0)]], sampler how [[sampler(0)]], \
             device float *y [[buffer(0)]]) {{ y[0] = {value}; }}\n"
        )
    };
    let head = "#include <metal_stdlib>\nusing namespace metal;\n";
    let kernels: String = REFUSED.iter().enumerate().map(kernel).collect();
    let library = Library {
        name: "refused.metal".to_string(),
        text: format!(
            "{head}{kernels}kernel void last(device float *y [[buffer(0)]]) {{ y[0] = 1; }}\n"
        ),
        ..Library::default()
    };
    for (number, (_, value, words)) in REFUSED.iter().enumerate() {
        let found = library.kernels(Some(&format!("k{number}")));
        let found = found
            .err()
            .unwrap_or_else(|| panic!("{value} is not refused"));
        let first = &found.0[0];
        assert!(first.message.contains(words), "{value}: {}", first.message);
        let line = number as u32 + 3;
        assert_eq!(first.span().start.line, line, "{value}: {}", first.message);
    }
    assert!(library.kernels(Some("last")).is_ok());
}

/// A launch that gives such a sampler of pixel coordinates is refused (V21).
#[test]
fn gradients_by_a_sampler_of_the_launch_are_of_normalized_coordinates() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let library = Library {
        name: "graded.metal".to_string(),
        text: "#include <metal_stdlib>\nusing namespace metal;\n\
               kernel void graded(texture2d<float> t [[texture(0)]], sampler how [[sampler(0)]], device float *y [[buffer(0)]]) {\n\
               y[0] = t.sample(how, float2(0.5), gradient2d(float2(1), float2(1))).x;\n\
               y[1] = t.sample(how, float2(0.5), level(1)).x;\n}\n"
            .to_string(),
        ..Library::default()
    };
    let kernels = library.kernels(None).expect("a kernel");
    let text = kernels.module.to_string();
    assert_eq!(text.matches("%how normalized\n").count(), 1, "{text}");
    assert_eq!(text.matches("%how\n").count(), 1, "{text}");
}

#[test]
fn a_kernel_with_an_imageblock_is_refused_and_others_of_the_file_are_not() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let library = Library {
        name: "blocks.metal".to_string(),
        text: "#include <metal_stdlib>\n#include <metal_imageblocks>\nusing namespace metal;\n\
               struct Pixel { half4 colour; ushort depth; };\n\
               kernel void keeps(imageblock<Pixel, imageblock_layout_explicit> block,\n\
               texture2d<half, access::write> out [[texture(0)]],\n\
               ushort2 at [[thread_position_in_threadgroup]]) {\n\
               threadgroup_imageblock Pixel *f = block.data(at);\n    f->colour = half4(block.get_width());\n\
               threadgroup_barrier(mem_flags::mem_threadgroup_imageblock);\n\
               if (at.x + at.y == 0) out.write(block.slice(f->colour), uint2(at));\n}\n\
               kernel void reads(imageblock<half4, imageblock_layout_implicit> block, device half *y [[buffer(0)]],\n\
               ushort2 at [[thread_position_in_threadgroup]]) {\n\
               half4 c = block.read(at);\n    block.write(c * 2, at);\n    y[0] = c.x;\n}\n\
               struct Stored { rgba8unorm<half4> colour [[raster_order_group(0)]]; rgb10a2<float4> at; r16snorm<float> x; float at_all; };\n\
               kernel void stores(imageblock<Stored> block, texture2d<half> in [[texture(0)]],\n\
               ushort2 at [[thread_position_in_threadgroup]], device half4 *y [[buffer(0)]]) {\n\
               threadgroup_imageblock Stored *f = block.data(at);\n    f->colour = in.read(uint2(at));\n\
               Stored s = block.read(at);\n    s.x = 0.5f;\n    half4 c = s.colour;\n\
               if (all(f->colour == c)) block.write(s, at);\n    y[0] = half4(s.colour);\n}\n\
               kernel void plain(device float *y [[buffer(0)]]) { y[0] = 1; }\n\
               kernel void beside(device Stored *s [[buffer(0)]]) { s[1].at_all = 1; }\n\
               kernel void packed(device Stored *s [[buffer(0)]]) { s[0].x = 1; }\n"
            .to_string(),
        ..Library::default()
    };
    for (kernel, line) in [("keeps", 5), ("reads", 13), ("stores", 20)] {
        let found = library.kernels(Some(kernel)).err().expect("it is refused");
        assert_eq!(found.0.len(), 1, "{found}");
        let first = &found.0[0];
        assert!(
            first
                .message
                .contains("the imageblock `block` is not supported"),
            "{}",
            first.message
        );
        assert_eq!(first.span().start.line, line, "{}", first.message);
    }
    assert!(library.kernels(Some("plain")).is_ok());
    let beside = library.kernels(Some("beside"));
    assert!(beside.is_ok(), "{:?}", beside.err());
    let found = library.kernels(Some("packed")).err();
    let found = found.expect("it is refused");
    let first = &found.0[0];
    assert!(
        first.message.contains("the pixel data type `r16snorm`"),
        "{}",
        first.message
    );
    assert_eq!(first.span().start.line, 32, "{}", first.message);
}

#[test]
fn more_loops_than_passes_get_through_are_refused() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    // Each call is inlined: 64 loops of it.
    let loops: String = (0..64)
        .map(|at| format!("    while (y[{at}] > {at}) {{ y[{at}] -= n; }}\n"))
        .collect();
    let calls = |count: usize| "    many(y, n);\n".repeat(count);
    let kernel = |name: &str, count: usize| {
        format!(
            "kernel void {name}(device int *y [[buffer(0)]], constant int &n [[buffer(1)]]) {{\n{}}}\n",
            calls(count)
        )
    };
    let library = Library {
        name: "loops.metal".to_string(),
        text: format!(
            "#include <metal_stdlib>\nusing namespace metal;\n\
             void many(device int *y, int n) {{\n{loops}}}\n{}{}",
            kernel("all", 65),
            kernel("some", 2)
        ),
        ..Library::default()
    };
    let found = library.kernels(Some("all")).err();
    let found = found.expect("4,160 loops are too many");
    assert_eq!(
        found.0[0].message,
        "kernel `all` has 4160 loops with every call inlined; the limit is 4096"
    );
    assert!(library.kernels(Some("some")).is_ok());
}

#[test]
fn a_refusal_names_the_constants_that_the_kernel_reads() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let constants: String = (0..30)
        .map(|n| format!("constant int c{n} [[function_constant({n})]];\n"))
        .collect();
    let sum = |numbers: std::ops::Range<u32>| {
        let all: Vec<String> = numbers.map(|n| format!("c{n}")).collect();
        all.join(" + ")
    };
    let library = Library {
        name: "constants.metal".to_string(),
        text: format!(
            "#include <metal_stdlib>\nusing namespace metal;\n{constants}\
             constant int both = c3 + c4;\n\
             kernel void two(device int *y) {{ y[0] = c1 + c2; }}\n\
             kernel void one(device int *y) {{ y[0] = c7; }}\n\
             kernel void computed(device int *y) {{ y[0] = both; }}\n\
             kernel void unused(device int *y) {{ int x = c7; y[0] = x * 0; for (int i = 0; i < 3; i++) y[i] = i; }}\n\
             kernel void unread(device int *y) {{ int t[4]; t[y[0] & 3] = c7; for (int i = 0; i < 3; i++) y[i] = i; }}\n\
             kernel void looped(device int *y) {{ for (int i = 0; i < 3; i++) y[i] = c5; }}\n\
             kernel void part(device int *y [[function_constant(c6)]], device int *z) {{ z[0] = 1; }}\n\
             kernel void many(device int *y) {{ y[0] = {}; }}\n",
            sum(0..20)
        ),
        ..Library::default()
    };
    let said = |kernel: &str| {
        let found = library.kernels(Some(kernel)).err();
        let found = found.unwrap_or_else(|| panic!("{kernel} is not refused"));
        found.0[0].message.clone()
    };
    assert_eq!(
        said("two"),
        "the kernel depends on `c1`, and these function constants that the kernel reads have no value: `c1`, `c2`"
    );
    assert_eq!(
        said("one"),
        "the kernel depends on `c7`, a function constant without a value"
    );
    assert_eq!(
        said("computed"),
        "the kernel depends on `both`, and these function constants that the kernel reads have no value: `c3`, `c4`"
    );
    assert_eq!(
        said("looped"),
        "the kernel depends on `c5`, a function constant without a value"
    );
    assert_eq!(
        said("part"),
        "whether there is a parameter `y` depends on `c6`, a function constant without a value"
    );
    let many = said("many");
    assert!(many.ends_with("`c10`, `c11`, and 8 more"), "{many}");
    // What is read for nothing keeps no loop from being written out.
    for kernel in ["unused", "unread"] {
        let made = library.kernels(Some(kernel)).map(|all| all.module);
        let text = made
            .unwrap_or_else(|why| panic!("{kernel}: {why}"))
            .to_string();
        assert!(!text.contains("for "), "{kernel}: {text}");
    }
    let mut given = library.clone();
    given.constants = vec![("c99".to_string(), "1".to_string())];
    let text = given.kernels(Some("one")).err().expect("there is no c99").0[0]
        .message
        .clone();
    assert!(text.ends_with("`c11`, and 18 more"), "{text}");
}

/// Each way out hands on values for all that something is done after which threads meet in.
#[test]
fn a_loop_that_is_left_to_very_many_places_is_refused() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let source = |count: u32| {
        let ways = (0..count)
            .map(|way| format!("if (v == {way}) {{ w += simd_sum(w) * {way}; break; }}\n"));
        let ways: String = ways.collect();
        let text = format!(
            "#include <metal_stdlib>\nusing namespace metal;\n\
             kernel void k(device int *y [[buffer(0)]]) {{\n\
                 int v = y[0], w = y[1];\n\
                 for (int j = 0; j < y[2]; ++j) {{ v = v * 3 + 1;\n{ways} }}\n\
                 y[0] = v; y[1] = w;\n\
             }}\n"
        );
        Library {
            name: "ways.metal".into(),
            text,
            ..Library::default()
        }
    };
    assert!(source(40).kernels(None).is_ok());
    let refused = source(300).kernels(None).err().expect("it is refused");
    let said = &refused.0[0].message;
    assert_eq!(
        said,
        "a loop is left to at most 256 places, after each of which something else is done"
    );
}

/// Templates of the library are instantiated at a line of the source, which is what its author can change.
#[test]
fn what_is_wrong_in_the_library_is_told_at_the_line_that_asks_for_it() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let head = "#include <metal_stdlib>\nusing namespace metal;\n\
                template <class T> T half_way(T a, T b) {\n    return mix(a, b, half(0.5));\n}\n";
    let told = |body: &str| {
        let text = format!(
            "{head}kernel void k(device rgba8unorm<half4> *p [[buffer(0)]], device uint *y [[buffer(1)]]) {{\n\
             y[0] = 1;\n{body}\n}}\n"
        );
        let library = Library {
            name: "library.metal".to_string(),
            text,
            ..Library::default()
        };
        let Diagnostics(all) = library.kernels(None).err().expect("it is refused");
        all
    };
    for (body, line, within) in [
        ("half4 v = mix(p[0], p[1], 0.5h);", 8, "'metal::mix<"),
        ("y[0] = as_type<uint>(p[0]);", 8, "as_type<"),
        // Of calls within the source the innermost.
        ("half4 v = half_way(p[0], p[1]);", 4, "'metal::mix<"),
    ] {
        let all = told(body);
        for found in &all {
            assert_eq!(found.span().start.line, line, "{body}: {found}");
            assert!(!found.message.contains("invar-msl-"), "{body}: {found}");
            let label = &found.labels[0].text;
            assert!(label.contains(within), "{body}: {label}");
        }
        assert!(!all.is_empty());
    }
    // What is the source's own is as it was, whatever else clang notes of it.
    let all = told("y[0] = clamp(1, 2);");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].span().start.line, 8, "{all:?}");
    assert_eq!(all[0].labels[0].text, "", "{all:?}");
}

/// As findings do, a refusal says by which calls it was reached, in which files.
#[test]
fn refusals_name_the_calls_that_lead_to_them() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inner = "static float inner(metal::texture2d<float> t, metal::sampler s, float x) {\n    \
                 return t.sample(s, metal::float2(x), metal::bias(1)).x;\n}\n";
    std::fs::write(folder.path().join("inner.h"), inner).expect("written");
    let other = "static float other(metal::texture2d<float> t) {\n\n\n    return t.read(metal::uint2(0)).x;\n}\n";
    std::fs::write(folder.path().join("other.h"), other).expect("written");
    let library = Library {
        name: "calls.metal".to_string(),
        text: "#include <metal_stdlib>\n#include \"inner.h\"\n#include \"other.h\"\nusing namespace metal;\n\
               static float outer(texture2d<float> t, sampler s, float x) {\n    return x + inner(t, s, x);\n}\n\
               kernel void reached(texture2d<float> t [[texture(0)]], sampler s [[sampler(0)]], device float *y [[buffer(0)]]) {\n\
               y[0] = outer(t, s, 1);\n}\n\
               kernel void here(texture2d<float> t [[texture(0)]], sampler s [[sampler(0)]], device float *y [[buffer(0)]]) {\n\
               y[0] = t.sample(s, float2(y[1]), bias(1)).x;\n}\n\
               kernel void fine(texture2d<float> t [[texture(0)]], device float *y [[buffer(0)]]) {\n\
               y[0] = other(t);\n}\n"
            .to_string(),
        includes: vec![folder.path().to_path_buf()],
        ..Library::default()
    };
    // Twice: from disk what is refused is the same.
    for _ in 0..2 {
        let kernels = library.possible(None).expect("kernels");
        assert_eq!(kernels.entries.len(), 1);
        let file = |span: Span| {
            let source = span.source.map(|id| &kernels.module.sources[id.0 as usize]);
            let name = source.map_or("", |s| &*s.name);
            name.rsplit('/').next().unwrap_or_default().to_string()
        };
        let told = |number: usize| {
            let (name, Diagnostics(all)) = &kernels.refused[number];
            let mut told = format!(
                "{name} {}:{}",
                file(all[0].span()),
                all[0].span().start.line
            );
            let mut at = all[0].span().call;
            while let Some(id) = at {
                let call = &all[0].calls[id.0 as usize];
                told += &format!(
                    ", {} {}:{}",
                    call.function,
                    file(call.site),
                    call.site.start.line
                );
                at = call.site.call;
            }
            told
        };
        assert_eq!(
            told(0),
            "reached inner.h:2, inner calls.metal:6, outer calls.metal:9"
        );
        assert_eq!(told(1), "here calls.metal:12");
        let loads = &kernels.module.kernels[0];
        let mut files = Vec::new();
        loads.for_each_inst(&mut |inst| files.push(file(inst.span)));
        assert!(files.contains(&"other.h".to_string()), "{files:?}");
    }
    let only = library.possible(Some("reached")).expect("its refusal");
    assert!(only.entries.is_empty());
    let source = only.refusals().0[0].span().source.expect("a place");
    assert!(
        only.module.sources[source.0 as usize]
            .name
            .ends_with("inner.h")
    );
}

/// Types are spelled as in the source, and functions that are not the one that is called are told at their places.
#[test]
fn what_clang_says_is_in_the_words_of_the_language() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let told = |line: &str| {
        let library = Library {
            name: "words.metal".to_string(),
            text: format!(
                "#include <metal_stdlib>\nusing namespace metal;\nstruct S {{ float a; }};\n\
                 static half4 low(half4 x) {{ return x; }}\n\
                 kernel void k(device float4 *y, device half4 *h, S s) {{\n{line}\n}}\n"
            ),
            ..Library::default()
        };
        let Diagnostics(all) = library.kernels(None).err().expect("it is refused");
        let first = all.into_iter().next().expect("a reason");
        assert_eq!(first.span().start.line, 6, "{first}");
        first
    };
    for (line, said) in [
        ("y[0].foo = 1;", "no member named 'foo' in 'float4'"),
        (
            "float2 q = h[0].xyz;",
            "no viable conversion from 'half3' to 'float2'",
        ),
        (
            "packed_float3 p = h[0];",
            "no viable conversion from 'half4' to 'packed_float3'",
        ),
        (
            "half3x3 m = y[0];",
            "no viable conversion from 'float4' to 'half3x3'",
        ),
        (
            "float2 v = 1; y[0].xyz = v.xyz;",
            "'xyz' names a component that the vector does not have",
        ),
        (
            "float3 v = 1; v.xw = 2; y[0].xyz = v;",
            "'xw' names a component that the vector does not have",
        ),
        (
            "float2 v = 1; y[0] = v.yyyz;",
            "'yyyz' names a component that the vector does not have",
        ),
        (
            "struct { float3 rgb; } t = { 1 }; float2 v = t.rgb.xy; t.rgb = v.rgb;",
            "'rgb' names a component that the vector does not have",
        ),
        ("float x = s.xy;", "no member named 'xy' in 'S'"),
        ("s.yx = 1;", "no member named 'yx' in 'S'"),
    ] {
        assert_eq!(told(line).message, said, "{line}");
    }
    let why = told("y[0] = h[0];");
    assert!(why.message.contains("overloaded '='"), "{why}");
    let label = &why.labels[0].text;
    assert!(
        label.starts_with("no known conversion from 'half4' to 'const float4"),
        "{label}"
    );
    let why = told("low(y[0]);");
    assert_eq!(why.message, "no matching function for call to 'low'");
    assert_eq!(why.labels[1].span.start.line, 4);
    let label = &why.labels[1].text;
    assert!(
        label.contains("no known conversion from 'float4' to 'half4'"),
        "{label}"
    );
    // As many components as there are places for.
    let why = told("y[0].xyz = float2(1);");
    assert_eq!(why.message, "no viable overloaded '='");
    let label = &why.labels[0].text;
    assert!(
        label.starts_with("no known conversion from 'float2' to 'const float3"),
        "{label}"
    );
}

/// What is wrong in a file that is included is told with that file's line.
#[test]
fn errors_in_included_files_bring_these_along() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "\nstatic float inner(float x) {\n    return x.nothing;\n}\n";
    std::fs::write(folder.path().join("inner.h"), text).expect("written");
    let library = Library {
        name: "outer.metal".to_string(),
        text: "#include <metal_stdlib>\n#include \"inner.h\"\n\
               kernel void k(device float *y) { y[0] = inner(1); y[1] = nowhere; }\n"
            .to_string(),
        includes: vec![folder.path().to_path_buf()],
        ..Library::default()
    };
    let wrong = library.possible(None).err().expect("it is refused");
    let Diagnostics(all) = &wrong.diagnostics;
    let file = |span: Span| &wrong.sources[span.source.expect("a place").0 as usize];
    assert_eq!(all.len(), 2, "{all:?}");
    let first = file(all[0].span());
    assert!(first.name.ends_with("inner.h"), "{}", first.name);
    assert_eq!(&*first.text, text);
    assert_eq!(all[0].span().start.line, 3);
    assert!(!all[0].message.contains("inner.h"), "{}", all[0].message);
    assert_eq!(&*file(all[1].span()).name, "outer.metal");
    assert_eq!(&*wrong.sources[0].name, "outer.metal");
}

/// A struct is one by its fields also where a loop and what is behind it load the same of them.
#[test]
fn fields_that_are_loaded_in_a_loop_and_behind_it_are_of_a_struct() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let library = Library {
        name: "bounds.metal".to_string(),
        text: "#include <metal_stdlib>\nusing namespace metal;\nstruct Sizes { int rows; int count; float scale; };\n\
               kernel void k(constant Sizes &s [[buffer(0)]], device const float *x [[buffer(1)]], device float *y [[buffer(2)]],\n\
               uint i [[thread_position_in_threadgroup]]) {\n\
               float sum = 0;\n    for (int k = i; k < s.count; k += 32) sum += x[k];\n\
               sum = simd_sum(sum) * s.scale;\n    for (int k = i; k < s.count; k += 32) y[k] = x[k] * sum;\n}\n"
            .to_string(),
        ..Library::default()
    };
    let kernels = library.kernels(None).expect("a kernel");
    let text = kernels.module.to_string();
    assert!(text.contains("%s: constant @Sizes"), "{text}");
}

/// Of an address as a number only what does not depend on where objects lie has a meaning.
#[test]
fn numbers_of_addresses_that_say_where_objects_lie_are_refused() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let what = "an address as a number";
    for (line, said) in [
        ("z[0] = ulong(x) * 3;", what),
        ("z[0] = ulong(x);", what),
        ("z[0] = ulong(x) & 4095;", what),
        ("z[0] = ulong(x) - ulong(z);", what),
        ("z[0] = ulong(x) == 4096;", what),
        ("*(device float *)z[0] = 1;", "a number as an address"),
    ] {
        let library = Library {
            name: "numbers.metal".to_string(),
            text: format!(
                "#include <metal_stdlib>\n\
                 kernel void k(device float *x [[buffer(0)]], device ulong *z [[buffer(1)]]) {{\n{line}\n}}\n"
            ),
            ..Library::default()
        };
        let Diagnostics(all) = library.kernels(None).err().expect("it is refused");
        assert_eq!(all.len(), 1, "{line}");
        assert!(
            all[0].message.starts_with(said),
            "{line}: {}",
            all[0].message
        );
        assert_eq!(all[0].span().start.line, 3, "{line}: {}", all[0].message);
    }
}

/// LLVM leaves out what is made of values that C++ does not have: where the source says them, clang says so.
#[test]
fn what_has_no_value_is_an_error_at_its_line() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    for (line, said) in [
        ("int a[4]; x[i] = a[7];", "array index 7 is past the end"),
        (
            "int a; x[i] = a + 1;",
            "variable 'a' is uninitialized when used here",
        ),
        (
            "x[i] = table[-1];",
            "array index -1 is before the beginning",
        ),
        ("x[i] = 5 / 0;", "division by zero"),
        ("x[i] = x[i] % 0;", "remainder by zero"),
        ("x[i] = x[i] << 33;", "shift count >= width of type"),
        ("x[i] = x[i] >> -1;", "shift count is negative"),
        (
            "auto f = [](int q) -> int { if (q) return 1; }; x[i] = f(i);",
            "lambda",
        ),
    ] {
        let library = Library {
            name: "without.metal".to_string(),
            text: format!(
                "constant int table[4] = {{1, 2, 3, 4}};\n\
                 kernel void k(device int *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{\n{line}\n}}\n"
            ),
            ..Library::default()
        };
        let Diagnostics(all) = library.kernels(None).err().expect("it is refused");
        assert!(all[0].message.contains(said), "{line}: {}", all[0].message);
        assert_eq!(all[0].span().start.line, 3, "{line}: {}", all[0].message);
    }
    // What is never reached is none.
    let library = Library {
        name: "within.metal".to_string(),
        text:
            "template <int N> static int at(thread int *a) { return N > 3 ? a[N % 4] : 1 << N; }\n\
               kernel void k(device int *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n\
                   int a[4] = {1, 2, 3, 4};\n\
                   x[i] = at<40>(a) + (sizeof(int) > 4 ? 1 << 40 : 2);\n\
               }\n"
            .to_string(),
        ..Library::default()
    };
    assert!(library.kernels(None).is_ok());
}

/// A value is never bent to a type.
#[test]
fn function_constants_hold_what_they_are_given() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    for (name, value, is_held) in [
        ("w", "3", true),
        ("w", "3.5", false),
        ("w", "3000000000", false),
        ("w", "true", true),
        ("0", "3.5", false),
        ("u", "3000000000", true),
        ("u", "-1", false),
        ("flag", "true", true),
        ("flag", "1", true),
        ("flag", "2", false),
        ("scale", "0.1", true),
        ("scale", "3", true),
        ("small", "0.1", true),
        ("dims", "[1, 20]", true),
        ("dims", "[1, -20]", false),
    ] {
        let library = Library {
            name: "constants.metal".to_string(),
            text: "constant int w [[function_constant(0)]];\nconstant uint u [[function_constant(1)]];\n\
                   constant bool flag [[function_constant(2)]];\nconstant float scale [[function_constant(3)]];\n\
                   constant half small [[function_constant(4)]];\nconstant uint2 dims [[function_constant(5)]];\n\
                   kernel void k(device int *x [[buffer(0)]]) { x[0] = 1; }\n"
                .to_string(),
            constants: vec![(name.to_string(), value.to_string())],
            ..Library::default()
        };
        let found = library.kernels(None);
        assert_eq!(found.is_ok(), is_held, "{name}={value}: {:?}", found.err());
        if let Err(Diagnostics(all)) = library.kernels(None) {
            let called = if name == "0" { "w" } else { name };
            assert_eq!(
                all[0].message,
                format!("the function constant `{called}` has a type that does not hold {value}")
            );
        }
    }
}

/// LLVM gives these no meaning, and leaves out what is made of them where it knows the numbers.
#[test]
fn what_llvm_knows_to_be_outside_stays() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let text = |body: &str| {
        let library = Library {
            name: "outside.metal".to_string(),
            text: format!(
                "kernel void k(device int *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{\n{body}\n}}\n"
            ),
            ..Library::default()
        };
        let made = library.kernels(None).map(|all| all.module.to_string());
        made.unwrap_or_else(|why| panic!("{body}: {why}"))
    };
    // The round too much writes outside of the array.
    let rounds = |test: &str| {
        text(&format!(
            "int a[4]; for (int k = 0; {test}; k++) a[k] = k * x[i];\n\
             int s = 0; for (int k = 0; k < 4; k++) s += a[k]; x[i] = s;"
        ))
    };
    let (right, wrong) = (rounds("k < 4"), rounds("k <= 4"));
    assert!(!right.contains("alloc thread"), "{right}");
    assert!(wrong.contains("const i64 4"), "{wrong}");
    assert!(wrong.contains("store %a["), "{wrong}");
    let index = text("int k = 7; int a[4] = {1, 2, 3, 4}; x[i] = a[k];");
    assert!(index.contains("const i64 7"), "{index}");
    assert!(index.contains("load %a["), "{index}");
    // A conversion saturates, also one of a number that is known.
    let converted = text("x[i] = int(3e10f); x[i + 1] = int(uint(-5.0f));");
    assert!(converted.contains("2147483647"), "{converted}");
    assert_eq!(converted.matches("store").count(), 2, "{converted}");
}

/// As compilers of the language refuse it: by the kernel, and not by the file.
#[test]
fn parameters_have_what_the_language_gives_them() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    for (kernel, said, help) in [
        (
            "kernel void k(device uint *x, uint i [[thread_positoin_in_grid]]) { x[i] = 1; }",
            "`i` has the attribute [[thread_positoin_in_grid]], which parameters of kernels do not have",
            "write [[thread_position_in_grid]]",
        ),
        (
            "kernel void k(device uint *x, uint i [[vertex_id]]) { x[i] = 1; }",
            "`i` has the attribute [[vertex_id]], which parameters of kernels do not have",
            "parameters of kernels have [[buffer(n)]] and its like",
        ),
        (
            "kernel void k(device uint *x, uint i) { x[i] = 1; }",
            "`i` is a value without an attribute that says which",
            "write `constant T &i` for what the host gives",
        ),
        (
            "kernel void k(device uint *x, uint i [[buffer(1)]]) { x[i] = 1; }",
            "`i` is a value, and [[buffer]] is of what is in memory",
            "write `constant T &i`",
        ),
        (
            "kernel void k(device uint *x [[buffer(0)]], device uint *y [[buffer(0)]]) { x[0] = y[0]; }",
            "`x` and `y` both have [[buffer(0)]]",
            "give each a number of its own",
        ),
        (
            "kernel void k(device uint *x [[buffer(31)]]) { x[0] = 1; }",
            "`x` has [[buffer(31)]]: numbers are 0 to 30",
            "give it another number",
        ),
        (
            "kernel int k(device uint *x) { x[0] = 1; return 1; }",
            "a kernel has no result",
            "write `kernel void`",
        ),
        (
            "kernel void k(device double *x) { x[0] = 1; }",
            "`x` leads to `double`, a type that the language does not have",
            "use `float`",
        ),
        (
            "kernel void k(device float *x, float2 n [[threads_per_grid]]) { x[0] = n.x; }",
            "`n` has [[threads_per_grid]] and a type that this does not have",
            "it is `uint`, `uint2`, `uint3`",
        ),
        (
            "kernel void k(device uint *x, uint2 n [[thread_index_in_simdgroup]]) { x[0] = n.x; }",
            "`n` has [[thread_index_in_simdgroup]] and a type that this does not have",
            "it is `uint` or `ushort`",
        ),
    ] {
        let library = Library {
            name: "parameters.metal".to_string(),
            text: format!(
                "#include <metal_stdlib>\nusing namespace metal;\n{kernel}\n\
                 kernel void other(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{ x[i] = i; }}\n"
            ),
            ..Library::default()
        };
        let all = library.kernels(None).expect("the other is one");
        assert_eq!(all.entries.len(), 1, "{kernel}");
        let [(_, Diagnostics(errors))] = &all.refused[..] else {
            panic!("{kernel}: {:?}", all.refused);
        };
        assert!(
            errors[0].message.starts_with(said),
            "{kernel}: {}",
            errors[0].message
        );
        let given = errors[0].help.clone().unwrap_or_default();
        assert!(given.starts_with(help), "{kernel}: {given}");
        assert_eq!(errors[0].span().start.line, 3, "{kernel}");
    }
    // Of two that depend on a constant one may be there.
    let library = Library {
        name: "either.metal".to_string(),
        text: "#include <metal_stdlib>\nusing namespace metal;\n\
               constant bool wide [[function_constant(0)]];\nconstant bool narrow = !wide;\n\
               kernel void k(device uint *x [[buffer(0), function_constant(wide)]],\n\
                             device ushort *y [[buffer(0), function_constant(narrow)]]) {\n\
                   if (wide) x[0] = 1; else y[0] = 1;\n}\n"
            .to_string(),
        constants: vec![("wide".to_string(), "true".to_string())],
        ..Library::default()
    };
    assert!(library.kernels(None).is_ok());
}

/// What has to be in registers has no place behind it.
#[test]
fn accesses_beyond_registers_are_refused_at_their_line() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let library = Library {
        name: "matrices.metal".to_string(),
        text: "#include <metal_stdlib>\nusing namespace metal;\n\
               kernel void k(device float *x [[buffer(0)]]) {\n\
                   simdgroup_float8x8 m[2];\n\
                   for (int k = 0; k <= 2; k++)\n\
                       simdgroup_load(m[k], x + 64 * k, 8);\n\
                   simdgroup_store(m[0], x, 8);\n}\n"
            .to_string(),
        ..Library::default()
    };
    let Diagnostics(all) = library.kernels(None).err().expect("it is refused");
    assert_eq!(
        all[0].message,
        "an element is accessed here that the array does not have"
    );
    assert_eq!(all[0].span().start.line, 6);
}

/// Pointers that are not known by then are refused where they are used.
#[test]
fn pointers_to_one_of_several_are_refused_at_their_line() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    for (lines, said) in [
        (
            "device float *p[2] = {x, y};\np[i & 1][2] = 1;",
            "an array of pointers, or a pointer at an index that is computed,",
        ),
        (
            "device float *p = i & 1 ? x : y, *q = i & 2 ? x : y;\nif (p < q) x[i] = 1;",
            "an order of two pointers that may lead to different objects",
        ),
        (
            "device float *p = i & 1 ? x : y, *q = i & 2 ? x : y;\nx[i] = p - q;",
            "the distance of two pointers that may lead to different objects",
        ),
        (
            "metal::atomic_fetch_add_explicit((device metal::atomic_float *)x, 1.0f, metal::memory_order_relaxed);\n\
             metal::atomic_fetch_add_explicit((device metal::atomic_uint *)x, 1u, metal::memory_order_relaxed);",
            "an atomic sum of floats on memory with atomics of integers",
        ),
        (
            "uint j = i * 2;\nx[i] = *lists[j];",
            "a pointer in memory (of `lists`)",
        ),
    ] {
        let library = Library {
            name: "pointers.metal".to_string(),
            text: format!(
                "#include <metal_stdlib>\n\
                 kernel void k(device float *x [[buffer(0)]], device float *y [[buffer(1)]], \
                               device float *device *lists [[buffer(2)]], uint i [[thread_position_in_grid]]) {{\n\
                 {lines}\n}}\n"
            ),
            ..Library::default()
        };
        let Diagnostics(all) = library.kernels(None).err().expect("it is refused");
        assert_eq!(all.len(), 1, "{lines}");
        let message = &all[0].message;
        assert!(message.starts_with(said), "{lines}: {message}");
        assert_eq!(all[0].span().start.line, 4, "{lines}: {message}");
    }
}

/// Also where the source is named by a relative path.
#[test]
fn included_files_are_shown_as_the_source_is_named() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir_in(".").expect("a temporary folder");
    let file = |name: &str| {
        let path = folder.path().join(name);
        let here = std::env::current_dir().expect("a folder");
        let path = path.strip_prefix(here).unwrap_or(&path);
        path.to_string_lossy().into_owned()
    };
    std::fs::write(file("inner.h"), "static int seven() { return missing; }\n").expect("written");
    let library = Library {
        name: file("outer.metal"),
        text:
            "#include \"inner.h\"\nkernel void k(device int *x [[buffer(0)]]) { x[0] = seven(); }\n"
                .to_string(),
        ..Library::default()
    };
    let wrong = library.possible(None).err().expect("it is wrong");
    let shown: Vec<String> = wrong.sources.iter().map(|s| s.name.to_string()).collect();
    assert!(shown.contains(&file("inner.h")), "{shown:?}");
}

/// Where the author wrote it, and not where the function ends.
#[test]
fn an_early_return_is_where_it_was_written() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let library = Library {
        name: "early.metal".to_string(),
        text: "#include <metal_stdlib>\nusing namespace metal;\n\
               kernel void k(device int *x [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {\n\
               if (t >= 4)\nreturn;\n\
               threadgroup_barrier(mem_flags::mem_device);\n\
               x[t] = 1;\n}\n"
            .to_string(),
        ..Library::default()
    };
    let module = library.kernels(None).expect("a kernel").module;
    let Diagnostics(all) = invar_ir::verify(module).expect_err("not all reach it");
    let lines: Vec<u32> = all[0].labels.iter().map(|l| l.span.start.line).collect();
    assert!(lines.contains(&4) && !lines.contains(&8), "{lines:?}");
}

#[test]
fn what_is_said_to_loggers_is_printed() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let of = |said: &str| Library {
        name: "logging.metal".to_string(),
        text: format!(
            "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n\
             kernel void k(device float *x [[buffer(0)]]) {{\n{said}\n}}\n"
        ),
        ..Library::default()
    };
    let library = of("os_log_default.log(\"%d {%.2f} %v2hf %x%%\", -1, x[0], half2(1, 2), 255u);");
    let printed = library.kernels(None).expect("a kernel").module.to_string();
    assert!(
        printed.contains("print \"{} {{{}}} {},{} {:x}%\""),
        "{printed}"
    );
    let library = of("os_log_default.log(\"%c%c %u %d\", 'a', 98, -1, 3000000000u);");
    let printed = library.kernels(None).expect("a kernel").module.to_string();
    assert!(printed.contains("print \"{:c}{:c} {} {}\""), "{printed}");
    assert!(printed.contains("const u32 4294967295"), "{printed}");
    assert!(printed.contains("const i32 -1294967296"), "{printed}");
    for (said, why) in [
        (
            "os_log_default.log(\"%d\");",
            "logging of fewer values than its text takes",
        ),
        (
            "os_log_default.log(\"\", 1);",
            "logging of more values than its text takes",
        ),
        ("os_log_default.log(\"%s\", 1);", "logging of `%s`"),
        (
            "os_log_default.log(\"%s\", \"text\");",
            "logging takes numbers and vectors of numbers",
        ),
    ] {
        let Diagnostics(all) = of(said).kernels(None).err().expect("it is refused");
        assert!(
            all[0].message.starts_with(why),
            "{said}: {}",
            all[0].message
        );
        assert_eq!(all[0].span().start.line, 5);
    }
}

/// The compiler has no address spaces: where it would take one function for another, it is told.
#[test]
fn functions_that_only_address_spaces_distinguish_do_the_same() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let of = |functions: &str, calls: &str| Library {
        name: "spaces.metal".to_string(),
        text: format!(
            "#include <metal_stdlib>\nusing namespace metal;\n{functions}\n\
             kernel void k(device float *x [[buffer(0)]]) {{ x[0] = 1; }}\n\
             {calls}\n"
        ),
        ..Library::default()
    };
    for (functions, name, line) in [
        (
            "float f(device float *p) { return p[0]; }\nfloat f(threadgroup float *p) { return p[1]; }",
            "f",
            4,
        ),
        (
            "float f(device float *p) { return p[0]; }\n\nfloat f(const threadgroup float *q) { return q[1]; }",
            "f",
            5,
        ),
        (
            "struct A { float s;\nfloat get() const thread { return s; }\nfloat get() const device { return 3 * s; } };",
            "get",
            5,
        ),
        (
            "struct A { float s;\npublic: A operator+(A b) const { return b; }\nA operator+(A b) const device { return A{s}; } };",
            "operator+",
            5,
        ),
    ] {
        let call = match name {
            "f" => "f(x)",
            "get" => "a[0].get()",
            _operator => "(a[0] + a[1]).s",
        };
        let params = match name {
            "f" => "device float *x [[buffer(0)]]",
            _of_a => "device float *x [[buffer(0)]], device A *a [[buffer(1)]]",
        };
        let library = of(
            functions,
            &format!("kernel void calls({params}) {{ x[0] = {call}; }}"),
        );
        let kernels = library
            .kernels(None)
            .expect("who calls none of them is made");
        assert_eq!(kernels.entries.len(), 1, "{functions}");
        let [(refused, Diagnostics(all))] = &kernels.refused[..] else {
            panic!("{functions}: {:?}", kernels.refused);
        };
        assert_eq!(refused, "calls");
        assert_eq!(
            all[0].message,
            format!(
                "address spaces alone distinguish the `{name}` here and that of line {line}, and they do different \
                 things: give one of them another name"
            ),
            "{functions}"
        );
        let first = if name == "f" { 3 } else { 4 };
        assert_eq!(all[0].span().start.line, first, "{functions}");
        assert_eq!(all.len(), 1, "{functions}");
    }
    // Of classes there may be more than functions see.
    let two = "template <typename T> struct D;\ntemplate <typename T> struct D<device T *> { enum { n = 1 }; };\n\
               template <typename T> struct D<thread T *> { enum { n = 2 }; };";
    let Diagnostics(all) = of(two, "").kernels(None).err().expect("it is refused");
    let said = "address spaces alone distinguish the `D<thread T *>` here and that of line 4, and they do different things: \
                give one of them another name";
    assert_eq!((&*all[0].message, all[0].span().start.line), (said, 5));
    assert_eq!(all.len(), 1);
    for functions in [
        "float f(device float *p) { return p[0]; }\nfloat f(threadgroup float *q) { return q[0]; }",
        "float f(device float *p) { return p[0]; }\nfloat f(device const float *p) { return p[1]; }",
        "#if 0\nfloat f(device float *p) { return p[0]; }\n#else\nfloat f(threadgroup float *p) { return p[1]; }\n#endif",
    ] {
        let kernels = of(functions, "").kernels(None);
        assert!(kernels.is_ok(), "{functions}: {:?}", kernels.err());
    }
}

/// One for some spaces is taken for all, which is wrong where something else is for the others.
#[test]
fn specialisations_for_some_address_spaces_are_refused() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let of = |classes: &str| Library {
        name: "lone.metal".to_string(),
        text: format!(
            "#include <metal_stdlib>\nusing namespace metal;\n{classes}\n\
             kernel void plain(device float *x [[buffer(0)]]) {{ x[0] = 1; }}\n\
             kernel void asks(device float *x [[buffer(0)]]) {{ x[0] = S<device float *>::n; }}\n"
        ),
        ..Library::default()
    };
    let for_space = |space: &str| {
        format!("template <class T> struct S<{space} T *> {{ enum {{ n = 2 }}; }};\n")
    };
    let primary = "template <class T> struct S { enum { n = 1 }; };\n";
    let all = ["device", "threadgroup", "constant", "thread"]
        .map(for_space)
        .concat();
    let kernels = of(&(primary.to_string() + &for_space("device") + &for_space("threadgroup")))
        .kernels(None)
        .expect("one does not ask for it");
    let [(refused, Diagnostics(errors))] = &kernels.refused[..] else {
        panic!("{:?}", kernels.refused);
    };
    assert_eq!(refused, "asks");
    assert_eq!(
        errors[0].message,
        "the specialisation `S<device T *>` would be taken for addresses in constant and thread memory too: write it for \
         each of device, threadgroup, constant and thread, all with the same in it"
    );
    assert_eq!(errors[0].span().start.line, 4, "{errors:?}");
    let declared = "template <class T> struct S;\n".to_string() + &for_space("device");
    for classes in [primary.to_string() + &all, declared] {
        let kernels = of(&classes).kernels(None).expect("kernels");
        assert_eq!(kernels.entries.len(), 2, "{classes}: {:?}", kernels.refused);
    }
}

/// A body with something wrong in it is left out, and with it the kernels that come to it.
#[test]
fn what_is_wrong_in_a_body_refuses_the_kernels_that_come_to_it() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let params = "(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]])";
    let text = format!(
        "#include <metal_stdlib>\nusing namespace metal;\n\
         template <class T> T part(T x) {{ return x.missing; }}\n\
         static float helper(float x) {{\n    return unheard_of(x);\n}}\n\
         struct S {{ float v; float f() const device {{ return v.none; }} }};\n\
         kernel void good{params} {{ y[i] = 2 * y[i]; }}\n\
         kernel void own{params} {{\n    y[i] = nothing_like_it(y[i]);\n    half h = \"x\";\n}}\n\
         kernel void calls{params} {{ y[i] = helper(y[i]); }}\n\
         kernel void asks{params} {{ y[i] = part(y[i]); }}\n\
         kernel void asks_too{params} {{ y[i] = part(y[i]); }}\n\
         kernel void method(device S *s [[buffer(0)]]) {{ s[0].v = s[1].f(); }}\n\
         kernel void unset{params} {{ float z; y[i] = z; }}\n\
         template <class T> kernel void typed(device T *y [[buffer(0)]]) {{ y[0] = T(1).none; }}\n\
         template [[host_name(\"typed_f\")]] kernel void typed<float>(device float *y [[buffer(0)]]);\n\
         #define SAME(NAME) template [[host_name(\"same_\" #NAME)]] kernel void same<NAME>(device NAME *y [[buffer(0)]]);\n\
         template <class T> kernel void same(device T *y [[buffer(0)]]) {{ y[0] = T(3); }}\n\
         SAME(float)\n\
         kernel void last{params} {{ if (false) {{ y[i] = helper(1); }} y[i] = 1; }}\n"
    );
    let library = Library {
        name: "bodies.metal".to_string(),
        text: text.clone(),
        ..Library::default()
    };
    let all = library.kernels(None).expect("some are made");
    let made: Vec<&str> = all.entries.iter().map(|e| &*e.name).collect();
    assert_eq!(made, ["good", "same_float", "last"]);
    let expected = [
        ("own", 10, "use of undeclared identifier 'nothing_like_it'"),
        ("calls", 5, "use of undeclared identifier 'unheard_of'"),
        ("asks", 3, "member reference base type 'float'"),
        ("asks_too", 3, "member reference base type 'float'"),
        ("method", 7, "member reference base type 'const float'"),
        ("unset", 17, "variable 'z' is uninitialized"),
        ("typed_f", 18, "member reference base type 'float'"),
    ];
    let refused: Vec<&str> = all.refused.iter().map(|(name, _)| &**name).collect();
    assert_eq!(refused, expected.map(|(name, ..)| name));
    for (name, line, words) in expected {
        // Also when it is asked for alone.
        let alone = library.kernels(Some(name)).err().expect("it is refused");
        let among = all.refused.iter().find(|(known, _)| known == name);
        for Diagnostics(found) in [&alone, &among.expect("as before").1] {
            let first = &found[0];
            assert!(first.message.contains(words), "{name}: {first}");
            assert_eq!(first.span().start.line, line, "{name}: {first}");
        }
    }
    let own = library.kernels(Some("own")).err().expect("it is refused");
    assert_eq!(own.0.len(), 2, "{own}");
    let names = library.names().expect("they have names");
    assert_eq!(names.len(), made.len() + refused.len());
    for name in made {
        assert!(library.kernels(Some(name)).is_ok(), "{name}");
    }
    // Where nothing is made, all that is wrong is told.
    let both = Library {
        text: format!(
            "#include <metal_stdlib>\nstatic float f(float x) {{ return nowhere; }}\n\
             kernel void k{params} {{\n    y[i] = metal::nothing(f(1));\n}}\n"
        ),
        ..library.clone()
    };
    let Diagnostics(all) = both.kernels(None).err().expect("it is refused");
    let lines: Vec<u32> = all.iter().map(|d| d.span().start.line).collect();
    assert_eq!(lines, [2, 4]);
    // What is wrong outside of functions is so for all.
    let library = Library {
        text: text + "constant int outside = nothing_outside;\n",
        ..library
    };
    let wrong = library.kernels(Some("good")).err().expect("it is refused");
    let outside = wrong
        .0
        .iter()
        .find(|d| d.message.contains("nothing_outside"));
    assert_eq!(outside.map(|d| d.span().start.line), Some(24), "{wrong}");
}

#[test]
fn a_source_that_ends_too_early_is_told_at_its_end() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    for (end, line, opened) in [
        ("kernel void k(", 2, None),
        (
            "kernel void k(device float *y [[buffer(0)]]) {\n    if (y[0] > 1) {\n    y[0] = 1;\n}\n\n",
            5,
            Some(2),
        ),
        ("namespace n {\nvoid f() {}", 3, Some(2)),
    ] {
        let library = Library {
            name: "early.metal".to_string(),
            text: format!("#include <metal_stdlib>\n{end}"),
            ..Library::default()
        };
        let Diagnostics(all) = library.kernels(None).err().expect("it is refused");
        assert!(
            all.iter().all(|d| !d.message.contains("invar-msl")),
            "{all:?}"
        );
        let last = all
            .iter()
            .find(|d| d.labels[0].text == "the source ends here");
        let last = last.unwrap_or_else(|| panic!("{all:?}"));
        assert_eq!(last.span().start.line, line, "{last}");
        let noted = last.labels.get(1).map(|label| label.span.start.line);
        assert_eq!(noted, opened, "{last}");
    }
}

/// A parameter that is called like a macro is not that parameter: what is wrong then also has the macro's line.
#[test]
fn macros_that_make_an_error_are_told() {
    if let Err(why) = find_clang() {
        println!("skipped: {why}");
        return;
    }
    let of = |parameter: &str| Library {
        name: "macro.metal".to_string(),
        text: format!(
            "#include <metal_stdlib>\n#define N 16\n#define count(x) (x)\n#define PLACE place\n\
             kernel void k(device uint *y [[buffer(0)]], constant uint &{parameter} [[buffer(1)]]) {{\n\
             y[0] = {parameter};\n}}\n"
        ),
        ..Library::default()
    };
    for (parameter, name) in [("count", "count"), ("PLACE", "place"), ("n", "n")] {
        let kernels = of(parameter).kernels(None).expect("a kernel");
        assert_eq!(&*kernels.module.kernels[0].params[1].name, name);
    }
    let Diagnostics(all) = of("N").kernels(None).err().expect("it is refused");
    assert_eq!(all[0].span().start.line, 5, "{:?}", all[0]);
    let labels = all[0].labels.iter();
    let told = labels.filter(|l| l.text == "expanded from macro 'N'");
    let lines: Vec<u32> = told.map(|l| l.span.start.line).collect();
    assert_eq!(lines, [2], "{:?}", all[0].labels);
}
