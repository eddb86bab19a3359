//! What is not supported is refused with its name and line; nothing panics.

use invar_ir::{Diagnostics, ParamKind, Rule, verify};
use invar_wgsl::{Shader, read};

fn refused(text: &str) -> (Rule, u32, String) {
    let Err(Diagnostics(all)) = read("refused.wgsl", text) else {
        panic!("it was taken: {text}");
    };
    (
        all[0].rule,
        all[0].span().start.line,
        all[0].message.clone(),
    )
}

#[test]
fn textures_that_are_not_supported_are_refused_by_name() {
    let (rule, line, message) = refused(
        "@group(0) @binding(0) var picture: texture_external;
         @compute @workgroup_size(1)
         fn main() { let x = textureLoad(picture, vec2u()); }",
    );
    assert_eq!(rule, Rule::UnsupportedFeature, "{line}: {message}");
    assert!(message.contains("texture_external"), "{message}");
}

#[test]
fn a_sample_by_neighbours_is_refused_with_its_name_and_line() {
    let text = "
        @group(0) @binding(0) var picture: texture_2d<f32>;
        @group(0) @binding(1) var how: sampler;
        fn helper(x: f32) -> f32 {
            return textureSample(picture, how, vec2f(x, 0.5)).x;
        }
        @compute @workgroup_size(1) fn samples() { let x = helper(0.5); }
        @compute @workgroup_size(1) fn derives() { let x = dpdx(0.5); }
        @compute @workgroup_size(1) fn computes() { let x = textureSampleLevel(picture, how, vec2f(), 0); }
        @fragment fn shades() -> @location(0) vec4f { return vec4f(helper(0.5)); }";
    let shader = Shader::parse("samples.wgsl", text).expect("a shader");
    assert!(shader.kernels(Some("computes"), &[]).is_ok());
    let wrong = |entry: &str| {
        let Err(Diagnostics(all)) = shader.kernels(Some(entry), &[]) else {
            panic!("{entry} was taken");
        };
        (all[0].span().start.line, all[0].message.clone())
    };
    let (line, message) = wrong("samples");
    assert_eq!(line, 5);
    assert!(
        message.starts_with("`textureSample` chooses its level"),
        "{message}"
    );
    let (line, message) = wrong("derives");
    assert_eq!(
        (line, &*message),
        (8, "a derivative is not supported in a shader")
    );
}

#[test]
fn other_entry_points_of_a_file_with_depths_are_taken() {
    let text = "
        @group(0) @binding(0) var sky: texture_depth_cube;
        @group(0) @binding(1) var how: sampler_comparison;
        @compute @workgroup_size(1) fn looks() { let sky = textureSampleCompare(sky, how, vec3f(1), 0.5); }
        @compute @workgroup_size(1) fn computes() {}
        @fragment fn shades() {}";
    let shader = Shader::parse("both.wgsl", text).expect("a shader");
    assert_eq!(shader.entries().collect::<Vec<_>>(), ["looks", "computes"]);
    assert!(shader.kernels(Some("computes"), &[]).is_ok());
    assert!(shader.kernels(Some("looks"), &[]).is_err());
    assert!(shader.kernels(Some("shades"), &[]).is_err());
}

#[test]
fn a_storage_texture_demands_a_format() {
    let text = "
        @group(0) @binding(3) var small: texture_storage_2d<rg11b10ufloat, write>;
        @group(1) @binding(0) var whole: texture_2d<u32>;
        @compute @workgroup_size(1) fn draws() {
            textureStore(small, vec2u(), vec4f(textureLoad(whole, vec2u(), 0)));
        }";
    let shader = Shader::parse("draws.wgsl", text).expect("a shader");
    let kernels = shader.kernels(None, &[]).expect("kernels");
    let resources = &kernels.entries[0].resources;
    let formats = resources.iter().map(|r| r.format.map(|f| f.name()));
    assert_eq!(formats.collect::<Vec<_>>(), [Some("rg11b10float"), None]);
    assert_eq!(
        (resources[0].group, resources[0].binding),
        (Some(0), Some(3))
    );
    let params = &kernels.module.kernels[0].params;
    let types = params.iter().map(|p| match &p.kind {
        ParamKind::Texture(ty) => ty.to_string(),
        _none => String::new(),
    });
    assert_eq!(
        types.collect::<Vec<_>>(),
        ["texture2d f32 write", "texture2d u32 sample"]
    );
}

#[test]
fn mistakes_are_told_with_their_line() {
    let (rule, line, _) = refused("fn f() -> u32 {\n  return 1.5;\n}");
    assert_eq!((rule, line), (Rule::Syntax, 2));
    let (rule, line, _) = refused("@compute @workgroup_size(1)\nfn f() {\n  let x = y;\n}");
    assert_eq!((rule, line), (Rule::Syntax, 3));
    for none in ["", "@fragment fn f() {}"] {
        let (rule, line, _) = refused(none);
        assert_eq!((rule, line), (Rule::NoKernel, 1));
    }
    let (_, line, message) = refused("\n@compute @workgroup_size(0)\nfn f() {}");
    assert_eq!(line, 3, "{message}");
    for large in [
        "var<workgroup> few: array<u32, 4>;\nvar<workgroup> many: array<u32, 4294967295>;\n
         @compute @workgroup_size(1) fn f() { many[0] = few[1]; }",
        "alias few = array<u32, 4>;\n@group(0) @binding(0) var<storage, read_write> many: array<few, 4000000000>;\n
         @compute @workgroup_size(1) fn f() { many[0][0] = 1u; }",
    ] {
        let (_, line, message) = refused(large);
        assert_eq!(line, 2, "{message}");
        assert!(message.contains("too large"), "{message}");
    }
}

/// As findings do, a refusal says by which calls it was reached.
#[test]
fn refusals_name_the_calls_that_lead_to_them() {
    let text = "
        @group(0) @binding(0) var picture: texture_2d<f32>;
        @group(0) @binding(1) var how: sampler;
        fn inner(x: f32) -> f32 {
            return textureSample(picture, how, vec2f(x)).x;
        }
        fn fine(x: f32) -> f32 { return x; }
        fn outer(x: f32) -> f32 {
            return fine(x) + inner(x);
        }
        @compute @workgroup_size(1) fn main() { let x = outer(fine(0.5)); }
        @compute @workgroup_size(1) fn derives() { let x = dpdx(fine(0.5)); }";
    let shader = Shader::parse("calls.wgsl", text).expect("a shader");
    let calls = |entry: &str| {
        let Err(Diagnostics(all)) = shader.kernels(Some(entry), &[]) else {
            panic!("{entry} was taken");
        };
        let (mut chain, mut at) = (Vec::new(), all[0].span().call);
        while let Some(id) = at {
            let call = &all[0].calls[id.0 as usize];
            chain.push((call.function.to_string(), call.site.start.line));
            at = call.site.call;
        }
        (all[0].calls.len(), chain)
    };
    let expected = [("inner", 9), ("outer", 11)].map(|(name, line)| (name.to_string(), line));
    assert_eq!(calls("main"), (2, expected.to_vec()));
    assert_eq!(calls("derives"), (0, Vec::new()));
}

/// Naga has one block where the standard has two: the refusal says so, where that is why.
#[test]
fn a_name_that_continuing_has_again_is_refused_with_the_reason() {
    let with = |body: &str| {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
             @compute @workgroup_size(1) fn main() {{
             var i = 0u;
             {body}
             y[0] = i; }}"
        );
        read("names.wgsl", &text)
    };
    let reason = "naga reads the body of a loop and its `continuing` as one block";
    let shadows = "loop { let x = y[i]; if x > 1u { i = x; }
        // continuing {
        continuing { let x = y[i + 1u]; i += x; break if i > 9u; } }";
    let twice = "loop { let x = y[i]; let x = 2u; continuing { i += x; break if i > 9u; } }";
    let nested =
        "loop { let x = y[i]; continuing { { let x = y[i + 1u]; i += x; } break if i > 9u; } }";
    let both = "loop { continuing { let x = 1u; let x = 2u; i += x; break if i > 9u; } }";
    let Err(Diagnostics(all)) = with(shadows) else {
        panic!("naga takes it: so may we");
    };
    assert_eq!(all[0].span().start.line, 6);
    assert!(
        all[0].help.as_ref().is_some_and(|h| h.contains(reason)),
        "{all:?}"
    );
    assert!(with(nested).is_ok());
    for wrong in [twice, both] {
        let Err(Diagnostics(all)) = with(wrong) else {
            panic!("it was taken: {wrong}");
        };
        assert!(
            !all[0].help.as_ref().is_some_and(|h| h.contains(reason)),
            "{all:?}"
        );
    }
}

#[test]
fn lanes_that_are_no_integers_or_no_constants_are_refused() {
    let with = |call: &str| {
        format!(
            "enable subgroups;
            @group(0) @binding(0) var<storage, read_write> y: array<u32>;
            fn ends(x: u32) -> u32 {{ loop {{ if x > 1u {{ return x; }} }} }}
            @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {{
                y[i] = {call};
            }}"
        )
    };
    for taken in ["subgroupShuffle(i, i32(i))", "subgroupBroadcast(i, 1)"] {
        assert!(read("lanes.wgsl", &with(taken)).is_ok(), "{taken}");
    }
    for wrong in [
        "subgroupShuffle(i, 1.5)",
        "subgroupShuffle(i, vec2i(1))",
        "subgroupShuffle(i, i == 1u)",
        "subgroupBroadcast(i, i32(i))",
        "quadBroadcast(i, 1f)",
    ] {
        let (rule, line, message) = refused(&with(wrong));
        assert_eq!((rule, line), (Rule::TypeMismatch, 5), "{wrong}: {message}");
    }
    let (rule, line, message) =
        refused("fn f(x: u32) -> u32 {\n  loop { if x > 1u { break; } return x; }\n}");
    assert_eq!((rule, line), (Rule::TypeMismatch, 1), "{message}");
}

/// Naga says `see msg` at the place of a constant that cannot be.
#[test]
fn what_stands_at_a_place_says_something_or_nothing() {
    let text = "const a = 1u / 0u;\n@compute @workgroup_size(1) fn main() { _ = a; }";
    let refused = Shader::parse("zero.wgsl", text).err().expect("it is none");
    assert_eq!(refused.0[0].labels[0].text, "", "{refused:?}");
    assert_eq!(refused.0[0].span().start.line, 1);
}

#[test]
fn an_override_gets_one_value() {
    let text = "@id(3) override n = 1u;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() { y[0] = n; }";
    let shader = Shader::parse("twice.wgsl", text).expect("a shader");
    let value = |name: &str| (name.to_string(), 2.0);
    for name in ["n", "3"] {
        let kernels = shader.kernels(None, &[value(name)]).expect("kernels");
        let default = kernels.module.function_constants[0].default;
        assert_eq!(default, Some(2u32.into()));
    }
    for twice in [["n", "3"], ["3", "n"], ["n", "n"]] {
        let given = twice.map(value);
        let Err(Diagnostics(all)) = shader.kernels(None, &given) else {
            panic!("{twice:?} is taken");
        };
        assert!(all[0].message.contains("two values"), "{}", all[0].message);
    }
}

#[test]
fn arrays_of_a_workgroup_have_elements() {
    let (rule, _, message) = refused(
        "override n = 0u; var<workgroup> few: array<u32, n>;
        @compute @workgroup_size(1) fn main() { few[0] = 1u; }",
    );
    assert_eq!(rule, Rule::UnsupportedFeature);
    assert!(message.contains("has no elements"), "{message}");
}

#[test]
fn overrides_that_decide_a_size_need_a_value() {
    let text = "override n: u32;
        override k = 3u;
        var<workgroup> tile: array<u32, n>;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(n) fn main() { y[k] = tile[0]; }";
    let shader = Shader::parse("sizes.wgsl", text).expect("a shader");
    let Err(Diagnostics(all)) = shader.kernels(None, &[]) else {
        panic!("n has no value");
    };
    assert_eq!(
        (all[0].rule, all[0].span().start.line),
        (Rule::FunctionConstant, 1)
    );
    let kernels = shader
        .kernels(None, &[("n".to_string(), 16.0)])
        .expect("kernels");
    assert_eq!(kernels.module.kernels[0].threadgroup_size, Some([16, 1, 1]));
    assert_eq!(kernels.module.kernels[0].allocs[0].length, 16);
    let constants = &kernels.module.function_constants;
    assert_eq!(constants.len(), 1);
    assert_eq!(&*constants[0].name, "k");
    for bad in [("m", 1.0), ("n", 1.5), ("n", -1.0), ("n", f64::NAN)] {
        let given = [(bad.0.to_string(), bad.1)];
        assert!(shader.kernels(None, &given).is_err(), "{bad:?}");
    }
}

/// Of all entry points those are made that can be; the others come with what is wrong with each.
#[test]
fn of_all_entry_points_those_are_made_that_can_be() {
    let text = "override n: u32;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(n) fn sized() { y[0] = 1u; }
        @compute @workgroup_size(1) fn first() { y[0] = 1u; }
        fn helper(x: f32) -> f32 { let many = array<f32, 3>(x, x, x); return dpdx(many[u32(x)]); }
        @compute @workgroup_size(1) fn derives() { y[0] = u32(helper(1.0)); }
        @compute @workgroup_size(1) fn last() { y[0] = 2u; }";
    let shader = Shader::parse("all.wgsl", text).expect("a shader");
    let told = |given: &[(String, f64)]| {
        let kernels = shader.kernels(None, given).expect("kernels");
        let names = |k: &invar_wgsl::Kernels| -> Vec<String> {
            k.entries.iter().map(|e| e.name.clone()).collect()
        };
        let made = names(&kernels);
        let lines = kernels.refused.iter();
        let lines: Vec<(String, u32)> = lines
            .map(|(name, why)| (name.clone(), why.0[0].span().start.line))
            .collect();
        let module = verify(kernels.module).expect("it is right");
        let in_module: Vec<&str> = module.kernels.iter().map(|k| &*k.name).collect();
        assert_eq!(made, in_module);
        // Nothing of what is refused is left behind.
        assert!(module.calls.is_empty());
        (made.join(" "), lines)
    };
    let (sized, derives) = (("sized".to_string(), 1), ("derives".to_string(), 5));
    assert_eq!(
        told(&[]),
        ("first last".to_string(), vec![sized, derives.clone()])
    );
    let given = [("n".to_string(), 4.0)];
    assert_eq!(
        told(&given),
        ("sized first last".to_string(), vec![derives])
    );
    // What is wrong with the values is not of one entry point.
    let given = [("m".to_string(), 4.0)];
    let Err(Diagnostics(all)) = shader.kernels(None, &given) else {
        panic!("there is no `m`");
    };
    assert_eq!(all.len(), 1, "{all:?}");
}

#[test]
fn calls_that_double_at_every_level_are_refused() {
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\nfn f0() { y[0] += 1u; }\n",
    );
    for i in 1..28 {
        text += &format!("fn f{i}() {{ f{0}(); f{0}(); }}\n", i - 1);
    }
    text += "@compute @workgroup_size(1) fn main() { f27(); }";
    assert_eq!(refused(&text).0, Rule::LimitExceeded);
}

#[test]
fn blocks_that_nest_too_deep_are_refused() {
    let nested = |count: usize| {
        let loops = "loop { if x > 3u { break; } ".repeat(count);
        let ends = "}".repeat(count);
        format!("@compute @workgroup_size(1) fn main() {{ var x = 1u;\n{loops}{ends}}}")
    };
    for count in [31, 32, 63] {
        let module = read("loops.wgsl", &nested(count)).expect("kernels");
        assert!(verify(module).is_ok(), "{count}");
    }
    assert_eq!(refused(&nested(64)).0, Rule::LimitExceeded);
}

/// A shader whose kernel is `body`, behind `before`.
fn around(before: &str, body: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        {before}
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ {body} }}",
    )
}

#[test]
fn what_is_long_is_read_on_any_stack() {
    let sum = " + id.x".repeat(4_500);
    let signs = "- ".repeat(9_000);
    let both = " && id.x == 1u".repeat(1_900);
    let declarations: String = (1..20_000)
        .rev()
        .map(|i| format!("const a{i} = a{} + 1u;\n", i - 1))
        .collect();
    let shaders = [
        around("", &format!("y[0] = id.x{sum};")),
        around("", &format!("y[0] = u32({signs}i32(id.x));")),
        around(
            "",
            &format!("y[0] = u32({}(id.x == 0u));", "!".repeat(9_000)),
        ),
        around("", &format!("y[0] = id{}.x;", ".xyz".repeat(9_000))),
        around("", &format!("if id.x == 0u{both} {{ y[0] = 1u; }}")),
        around(
            &format!("const a = 1u{};", " + 1u".repeat(9_000)),
            "y[0] = a;",
        ),
        around(&format!("{declarations} const a0 = 1u;"), "y[0] = a19999;"),
    ];
    let thread = std::thread::Builder::new().stack_size(64 << 10);
    let small = thread.spawn(move || {
        for text in shaders {
            let shader = Shader::parse("long.wgsl", &text).expect("a shader");
            shader.lints();
            shader.kernels(None, &[]).expect("kernels");
        }
    });
    small.expect("started").join().expect("it ends");
}

#[test]
fn what_is_too_long_is_refused() {
    let others: String = (0..20_000)
        .map(|i| format!("else if id.x == {i}u {{ y[0] = {i}u; }}\n"))
        .collect();
    let functions: String = (1..100_000)
        .map(|i| format!("fn f{i}() {{ f{}(); }}\n", i - 1))
        .collect();
    for (text, line, says) in [
        (
            around("", &format!("y[0] = id.x{};", " + id.x".repeat(20_000))),
            3,
            "10000 operators",
        ),
        (
            around("", &format!("y[0] = {}1u;", "&*".repeat(20_000))),
            3,
            "10000 operators",
        ),
        (
            around("", &format!("if id.x == 0u {{}} {others}")),
            2_000,
            "10000 operators",
        ),
        (around(&functions, ""), 0, "more than 65536 declarations"),
        (
            around(
                "",
                &format!("y[0] = {}1u{};", "(".repeat(999), ")".repeat(999)),
            ),
            3,
            "about 200 levels",
        ),
    ] {
        let (rule, at, message) = refused(&text);
        assert_eq!(rule, Rule::LimitExceeded, "{message}");
        assert!(message.contains(says), "{message}");
        let near = if line > 3 {
            at > line && at < 6 * line
        } else {
            at == line
        };
        assert!(near, "{message}: line {at}");
    }
}

#[test]
fn only_workgroup_memory_has_arrays_whose_length_is_an_override() {
    let (rule, line, message) = refused(
        "override n = 4u;
         @group(0) @binding(0) var<storage, read_write> y: array<u32, n>;
         @compute @workgroup_size(4) fn f() { y[0] = 1u; }",
    );
    assert_eq!((rule, line), (Rule::TypeMismatch, 2));
    assert_eq!(
        message,
        "the length of `y` is an override: only arrays in workgroup memory may have such a length"
    );
}

/// Each link of a chain is an `else` and a bracket.
#[test]
fn chains_of_else_are_as_long_as_the_refusal_says() {
    let chain = |links: usize| {
        let links = "else if (x == 1u) { x = 2u; } ".repeat(links);
        format!("@compute @workgroup_size(1) fn f() {{ var x = 0u; if (x == 3u) {{ }} {links} }}")
    };
    assert!(Shader::parse("chain.wgsl", &chain(4_950)).is_ok());
    let (rule, _, message) = refused(&chain(5_000));
    assert_eq!(rule, Rule::LimitExceeded);
    assert!(
        message.starts_with("more than 10000 operators, brackets and `else`s"),
        "{message}"
    );
}

/// What the verifier refuses is left out as what cannot be made is, with all that only it has.
#[test]
fn entry_points_that_the_verifier_refuses_are_left_out() {
    let head = "
        struct Large { all: array<vec4f, 1048577> }
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> large: Large;
        fn waits(i: u32) { if (i < 2u) { workgroupBarrier(); } }";
    let wrong = "
        @compute @workgroup_size(4) fn moves(@builtin(local_invocation_index) i: u32) { large.all[i].x = 1.0; }
        @compute @workgroup_size(4) fn misses(@builtin(local_invocation_index) i: u32) { waits(i); }";
    let right = |name: &str| format!("@compute @workgroup_size(4) fn {name}() {{ x[0] = 1.0; }}");
    let text = format!("{head}{}{wrong}{}", right("first"), right("last"));
    let shader = Shader::parse("some.wgsl", &text).expect("a shader");
    let kernels = shader.kernels(None, &[]).expect("kernels");
    let refused = kernels.refused.iter();
    let refused =
        refused.map(|(name, Diagnostics(all))| (&**name, all[0].rule, all[0].calls.len()));
    assert_eq!(
        refused.collect::<Vec<_>>(),
        [
            ("moves", Rule::LimitExceeded, 0),
            ("misses", Rule::BarrierNotUniform, 1),
        ]
    );
    let entries = kernels.entries.iter().map(|e| &*e.name);
    assert_eq!(entries.collect::<Vec<_>>(), ["first", "last"]);
    assert!(kernels.module.structs.is_empty() && kernels.module.calls.is_empty());
    assert!(verify(kernels.module).is_ok());

    // By itself one is made as ever, and what is wrong with it is the verifier's to say.
    let alone = shader.kernels(Some("misses"), &[]).expect("a kernel");
    assert!(verify(alone.module).is_err());
    // Where none is left, each is told.
    let shader = Shader::parse("none.wgsl", &format!("{head}{wrong}")).expect("a shader");
    let Err(Diagnostics(all)) = shader.kernels(None, &[]) else {
        panic!("some are made");
    };
    let rules = all.iter().map(|error| error.rule);
    assert_eq!(
        rules.collect::<Vec<_>>(),
        [Rule::LimitExceeded, Rule::BarrierNotUniform]
    );
}

/// A texture that a function takes is of the type that its parameter says.
#[test]
fn textures_of_other_types_are_no_arguments() {
    let with = |given: &str| {
        format!(
            "@group(0) @binding(0) var a: texture_storage_2d<r32float, write>;
@group(0) @binding(1) var b: texture_storage_2d<rgba8unorm, write>;
fn put(t: texture_storage_2d<r32float, write>, p: vec2u) {{ textureStore(t, p, vec4f()); }}
@compute @workgroup_size(1) fn main() {{ put({given}, vec2u()); }}"
        )
    };
    assert!(read("right.wgsl", &with("a")).is_ok());
    let (rule, line, message) = refused(&with("b"));
    assert_eq!((rule, line), (Rule::TypeMismatch, 4), "{message}");
}

/// The address space that WGSL took over from other languages has another name in the standard.
#[test]
fn immediates_are_named_where_they_have_their_old_name() {
    let text = "var<push_constant> n: u32;\n@compute @workgroup_size(1) fn main() { let m = n; }";
    let Err(Diagnostics(all)) = read("old.wgsl", text) else {
        panic!("it was taken");
    };
    let help = all[0].help.as_deref().unwrap_or_default();
    assert!(help.contains("`var<immediate>`"), "{help}");
    assert!(read("new.wgsl", &text.replace("push_constant", "immediate")).is_ok());
}

/// An array that is loaded whole is a copy, which is called as what it is a copy of.
#[test]
fn copies_of_whole_arrays_are_called_as_their_variables() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> to: array<u32, 70000>;
        @group(0) @binding(1) var<storage, read> whole: array<u32, 70000>;
        @compute @workgroup_size(1) fn main() { to = whole; }";
    let module = read("copy.wgsl", text).expect("a kernel");
    let Diagnostics(all) = verify(module).expect_err("more than a thread has");
    assert_eq!(all[0].rule, Rule::LimitExceeded);
    let message = "with `%whole.copy` the thread arrays of `@main` take 280000 bytes";
    assert!(all[0].message.starts_with(message), "{}", all[0].message);
}
