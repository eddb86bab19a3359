//! What naga finds wrong is told in the standard's words, with the author's names and lines.

use invar_ir::{Diagnostic, Diagnostics};
use invar_wgsl::{Shader, read};

const HEAD: &str = "\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var drawn: texture_storage_2d<r32float, write>;
@group(0) @binding(3) var seen: texture_storage_2d<r32float, read>;
@group(0) @binding(4) var how: sampler;
@group(0) @binding(5) var depth: texture_depth_2d; @group(0) @binding(7) var picture: texture_2d<f32>;
@group(0) @binding(6) var<uniform> scale: vec4f;
var<workgroup> w: array<u32, 4>; @group(0) @binding(8) var layers: texture_2d_array<f32>;
fn half(n: u32) -> u32 { return n / 2u; }
fn one(p: ptr<function, u32>) { *p = 1u; }
fn put(t: texture_storage_2d<r32float, write>) { textureStore(t, vec2u(), vec4f()); }
fn all(p: ptr<storage, array<u32>, read_write>) { (*p)[0] = 1u; }
fn fetch(t: texture_storage_2d<r32float, write>) -> f32 {
  return textureLoad(t, vec2u()).x;
}
@compute @workgroup_size(1)
fn main() {
";

/// The line of the first statement of `main`.
const LINE: u32 = 18;

fn wrong(text: &str) -> Diagnostic {
    let Err(Diagnostics(mut all)) = read("wrong.wgsl", text) else {
        panic!("it was taken: {text}");
    };
    let told = |one: &Diagnostic| {
        let labels: Vec<&str> = one.labels.iter().map(|l| &*l.text).collect();
        format!(
            "{} {labels:?} {}",
            one.message,
            one.help.clone().unwrap_or_default()
        )
    };
    let told: String = all.iter().map(told).collect();
    for inside in [
        "naga",
        "[0]",
        "[1]",
        "[2]",
        "Expression",
        "Scalar",
        "Some(",
        "is invalid",
    ] {
        assert!(!told.contains(inside), "{inside} is in {told}");
    }
    all.remove(0)
}

fn told(statement: &str, expected: &str) {
    let found = wrong(&format!("{HEAD}  {statement}\n}}\n"));
    assert_eq!(
        (found.span().start.line, &*found.message),
        (LINE, expected),
        "{statement}"
    );
}

#[test]
fn arguments_of_another_type_are_named_with_both_types() {
    for (statement, expected) in [
        (
            "var q = 1.5; y[0] = half(q);",
            "argument 1 of `half`: `q` has type `f32`, expected `u32`",
        ),
        (
            "var q = 1.5; one(&q);",
            "argument 1 of `one`: `&q` has type `ptr<function, f32>`, expected `ptr<function, u32>`",
        ),
        (
            "put(seen);",
            "argument 1 of `put`: `seen` has type `texture_storage_2d<r32float, read>`, expected `texture_storage_2d<r32float, write>`",
        ),
        (
            "put(depth);",
            "argument 1 of `put`: `depth` has type `texture_depth_2d`, expected `texture_storage_2d<r32float, write>`",
        ),
        (
            "y[0] = half(1u, 2u);",
            "`half` takes 1 argument, and gets 2",
        ),
    ] {
        told(statement, expected);
    }
    // Naga does not look at these.
    for (statement, of) in [("all(&w);", "`&w` has type"), ("all(&x);", "`&x` has type")] {
        let found = wrong(&format!("{HEAD}  {statement}\n}}\n"));
        assert_eq!(found.span().start.line, LINE, "{statement}");
        assert!(
            found.message.starts_with("argument 1 of `all`: "),
            "{}",
            found.message
        );
        assert!(found.message.contains(of), "{}", found.message);
    }
}

#[test]
fn operators_and_indices_are_named_with_their_types() {
    for (statement, expected) in [
        ("y[0] = y[0] + x[0];", "`+` cannot be of `u32` and `f32`"),
        (
            "var q = vec2f() * vec3f();",
            "`*` cannot be of `vec2<f32>` and `vec3<f32>`",
        ),
        ("y[0] = -y[0];", "`-` cannot be of `u32`"),
        (
            "y[0] = w[7];",
            "the index 7 is out of bounds of `w`, which is `array<u32, 4>`",
        ),
        (
            "y[0] = y[0] << 33u;",
            "the shift is by as many bits as a `u32` has, or more",
        ),
        (
            "y[0] = select(1u, y[0], y[1]);",
            "the condition of `select` has type `u32`, expected `bool`",
        ),
        (
            "if (1u) { }",
            "the condition: `1u` has type `u32`, expected `bool`",
        ),
        (
            "for (var i = 0u; i; i++) { }",
            "the condition: `i` has type `u32`, expected `bool`",
        ),
        (
            "switch y[0] { case 1u { } case 1u { } default { } }",
            "two cases of this `switch` are for 1",
        ),
        (
            "y[0] = u32(y[0] && true);",
            "`&&` cannot be of `u32` and another type",
        ),
        ("y[0] = u32(scale[5]);", "Index 5 is out of bounds"),
        (
            "return 1u;",
            "`1u` has type `u32`, and `main` returns nothing",
        ),
        (
            "let s = array<u32, 2>(1u);",
            "`array<u32, 2>` is made of 2, and gets 1",
        ),
    ] {
        told(statement, expected);
    }
}

#[test]
fn what_memory_and_textures_do_not_take_is_named() {
    for (statement, expected) in [
        (
            "x[0] = 1.0;",
            "this stores to `x`, which is declared `read`",
        ),
        (
            "scale.x = 1.0;",
            "this stores to `scale`, which is a uniform",
        ),
        (
            "textureStore(drawn, vec2f(), vec4f());",
            "the coordinates: `vec2f()` has type `vec2<f32>`, expected `vec2<i32>` or `vec2<u32>`",
        ),
        (
            "y[0] = u32(textureLoad(drawn, vec2u()).x);",
            "this reads `drawn`, which is declared `write`",
        ),
        (
            "textureStore(seen, vec2u(), vec4f());",
            "this stores to `seen`, which is declared `read`",
        ),
        (
            "y[0] = u32(textureSampleCompareLevel(depth, how, vec2f(), 0.0));",
            "`textureSampleCompareLevel` takes a depth texture and a `sampler_comparison`, and gets `texture_depth_2d` and `sampler`",
        ),
        (
            "y[0] = u32(textureLoad(picture, vec2u(), 0.5).x);",
            "the level: `0.5` has type `f32`, expected `i32` or `u32`",
        ),
        (
            "y[0] = u32(textureLoad(layers, vec2u(), 0.5, 0).x);",
            "the array index: `0.5` has type `f32`, expected `i32` or `u32`",
        ),
        (
            "y[0] = u32(textureSampleLevel(depth, how, vec2f(), 0.0));",
            "the level: `0.0` has type `f32`, expected `i32` or `u32`",
        ),
        (
            "y[0] = u32(textureSampleLevel(picture, how, vec2f(), vec2f()).x);",
            "the level: `vec2f()` has type `vec2<f32>`, expected `f32`",
        ),
        (
            "y[0] = u32(textureSampleLevel(picture, picture, vec2f(), 0).x);",
            "`picture` has type `texture_2d<f32>`, expected a sampler",
        ),
        (
            "textureStore(drawn, vec2u(), vec3f());",
            "what is stored: `vec3f()` has type `vec3<f32>`, expected `vec4<f32>`",
        ),
        (
            "var q: atomic<u32>;",
            "`q` has type `atomic<u32>`, and no `var` of a function can have it",
        ),
    ] {
        told(statement, expected);
    }
    let text = format!(
        "{HEAD}  let at = vec2i();\n  y[0] = u32(\n    textureSampleLevel(picture, how, at, 0).x);\n}}\n"
    );
    let found = wrong(&text);
    let line = HEAD.lines().count() as u32;
    let others: Vec<u32> = found.labels.iter().map(|l| l.span.start.line).collect();
    assert_eq!(
        (found.span().start.line, others),
        (line + 2, vec![line + 2, line + 1])
    );
    let found = wrong(&format!("{HEAD}  y[0] = u32(fetch(drawn));\n}}\n"));
    let said = (found.span().start.line, &*found.message);
    assert_eq!(said, (14, "this reads `t`, which is declared `write`"));
}

#[test]
fn declarations_are_named_on_their_lines() {
    let main = "@compute @workgroup_size(1) fn main() { }";
    for (declaration, expected) in [
        (
            "fn f(t: array<texture_2d<f32>, 4>) { }",
            "there can be no array of `texture_2d<f32>`",
        ),
        (
            "struct A { t: texture_2d<f32> }",
            "there can be no struct with a `texture_2d<f32>` in it",
        ),
        (
            "var<workgroup> q: u32 = 1u;",
            "`q` is in workgroup memory and can have no initial value",
        ),
        (
            "var<storage> q: array<u32>;",
            "`q` is in storage and has no `@group` and `@binding`",
        ),
        (
            "@group(0) @binding(0) var<uniform> q: array<u32>;",
            "`q` has type `array<u32>`, and no variable that is a uniform can have it",
        ),
        (
            "@group(0) @binding(0) var<storage> q: array<bool>;",
            "`q` has type `array<bool>`, and no variable that is in storage can have it",
        ),
        (
            "fn f() -> u32 { }",
            "`f` returns `u32`, and can end without",
        ),
        (
            "override q: vec2f;",
            "the override `q` has type `vec2<f32>`, and only scalars can be overrides",
        ),
    ] {
        let found = wrong(&format!("{main}\n\n{declaration}\n"));
        assert_eq!((found.span().start.line, &*found.message), (3, expected));
    }
    for (parameters, expected) in [
        (
            "id: vec3u",
            "`id` is a parameter of an entry point and has no `@builtin`",
        ),
        (
            "@builtin(global_invocation_id) id: vec2u",
            "`id` has type `vec2<u32>`, which `global_invocation_id` is not of",
        ),
        (
            "@builtin(position) at: vec4f",
            "`at` is `position`, which compute shaders do not have",
        ),
        (
            "@builtin(workgroup_index) n: f32",
            "`n` is `workgroup_index`, which compute shaders do not have",
        ),
    ] {
        let found = wrong(&format!(
            "\n@compute @workgroup_size(1)\nfn main({parameters}) {{ }}\n"
        ));
        assert_eq!((found.span().start.line, &*found.message), (3, expected));
    }
}

#[test]
fn what_is_for_a_preprocessor_is_named() {
    let main = "@compute @workgroup_size(1)\nfn main() {\n";
    for (text, line, name) in [
        (
            "#import bevy_pbr::utils\n".to_string() + main + "}",
            1,
            "#import",
        ),
        (
            main.to_string() + "#ifdef A\n  return;\n#endif\n}",
            3,
            "#ifdef",
        ),
        (main.to_string() + "  let a = #{A};\n}", 3, "#"),
    ] {
        let found = wrong(&text);
        let message = format!("WGSL has no preprocessor, and no `{name}`");
        assert_eq!((found.span().start.line, found.message), (line, message));
    }
}

#[test]
fn language_extensions_of_the_standard_are_taken_and_others_refused() {
    let with =
        |name: &str| format!("requires {name};\n@compute @workgroup_size(1) fn main() {{ }}\n");
    for name in [
        "readonly_and_readwrite_storage_textures",
        "packed_4x8_integer_dot_product",
        "unrestricted_pointer_parameters",
        "pointer_composite_access",
        "uniform_buffer_standard_layout",
        "subgroup_id",
        "subgroup_uniformity",
        "texture_and_sampler_let",
        "texture_formats_tier1",
        "linear_indexing",
        "immediate_address_space",
        "fragment_depth",
        "swizzle_assignment",
        "subgroup_id, swizzle_assignment",
    ] {
        assert!(read("requires.wgsl", &with(name)).is_ok(), "{name}");
    }
    for name in ["buffer_view", "swizzles"] {
        let found = wrong(&with(name));
        let said = (found.span().start.line, found.message.contains(name));
        assert_eq!(said, (1, true), "{}", found.message);
    }
    let found = wrong(&with("buffer_view"));
    assert_eq!(
        found.message,
        "the language extension `buffer_view` is not supported"
    );
}

#[test]
fn assignments_to_components_that_do_not_fit_are_told_on_their_line() {
    for (statement, expected) in [
        (
            "v.xy = 1u;",
            "what `v.xy` is assigned is not 2 numbers of its type",
        ),
        (
            "v.xy = vec3u();",
            "what `v.xy` is assigned is not 2 numbers of its type",
        ),
        (
            "v.xy = vec3(1, 2, 3);",
            "what `v.xy` is assigned is not 2 numbers of its type",
        ),
        ("v.xx = vec2u();", "invalid left-hand side of assignment"),
        (
            "v.xy = nothing;",
            "no definition in scope for identifier: `nothing`",
        ),
    ] {
        let head =
            "@compute @workgroup_size(1)\nfn main() {\n  var v = vec4u();\n  v.zw = v.xy;\n  ";
        let found = wrong(&format!("{head}{statement}\n}}\n"));
        assert_eq!(
            (found.span().start.line, &*found.message),
            (5, expected),
            "{statement}"
        );
    }
}

#[test]
fn the_value_that_is_advised_is_of_the_type() {
    for (ty, expected) in [("bool", "true"), ("u32", "64")] {
        let text = format!(
            "override n: {ty};
             override m = select(1u, 2u, n == {ty}(1));
             @compute @workgroup_size(m) fn main() {{ }}"
        );
        let shader = Shader::parse("advice.wgsl", &text).expect("a shader");
        let Err(Diagnostics(all)) = shader.kernels(Some("main"), &[]) else {
            panic!("it was taken");
        };
        assert_eq!(all[0].help, Some(format!("give one: --const n={expected}")));
    }
}
