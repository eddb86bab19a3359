//! Odd kernels in Metal's language, as those of `odd.rs` are in text.

use std::fmt::Write;

use crate::odd::{FUNCTION, Kind, Language, Text};

/// The largest size, since clang takes long for what is larger.
const MOST: usize = 10_000;
/// Blocks within each other: clang takes 256.
const DEEP: usize = 60;

const fn kind(name: &'static str, make: fn(&mut Text, usize)) -> Kind {
    Kind {
        name,
        most: MOST,
        language: Language::Metal,
        make,
    }
}

/// Every kind.
pub const KINDS: &[Kind] = &[
    // ---- functions ----
    kind("a chain of functions, Metal", |k, n| {
        k.declarations
            .push_str("float f0(float a, float b) { return a * b; }\n");
        for i in 1..=n / 3 {
            let _ = writeln!(
                k.declarations,
                "float f{i}(float a, float b) {{ return f{}(b, a) * a + {i}.5f; }}",
                i - 1
            );
        }
        k.line(&format!("w = f{}(w, s);", n / 3));
    }),
    kind("functions, Metal", |k, n| {
        for i in 1..=n / 4 {
            let _ = writeln!(
                k.declarations,
                "uint f{i}(uint a, uint b) {{ if (a < b) return a + {i}; return a ^ b; }}"
            );
        }
        k.repeat(n / 4, "v = f#(v, c);");
    }),
    kind("calls of a function, Metal", |k, n| {
        k.declarations.push_str(
            "uint g(uint a, uint b) { if (a < b) return a; uint c = a; c += b; return c; }\n",
        );
        k.repeat(n / 5, "v = g(v, c) + #;");
    }),
    kind("instances of a template", |k, n| {
        k.declarations
            .push_str("template <int N, typename T> T g(T a) { return a * T(N) + T(N + 1); }\n");
        k.repeat(n / 2, "w = g<#>(w);");
    }),
    kind("functions of floats, Metal", |k, n| {
        k.cycle(
            n / FUNCTION,
            &[
                "w = sin(w);",
                "w = exp(w) + f;",
                "w = pow(w, s);",
                "w = fast::cos(w);",
                "w = normalize(float3(w, s, f)).y;",
            ],
        );
    }),
    // ---- computing ----
    kind("floats, Metal", |k, n| {
        k.cycle(
            n,
            &[
                "w += s;",
                "w *= f;",
                "w = s - w;",
                "w = fma(w, f, s);",
                "w = min(w, f);",
            ],
        );
    }),
    kind("integers, Metal", |k, n| {
        k.cycle(
            n,
            &[
                "v += c;",
                "v *= n;",
                "v ^= c;",
                "v <<= 2;",
                "v = n - v;",
                "v = popcount(v);",
            ],
        );
    }),
    kind("vectors, Metal", |k, n| {
        k.line("float4 a = float4(w, s, f, w);");
        k.repeat(n / 12, "a = a.yzwx * s + a; a.z = #;");
        k.line("w = a.x + a.y;");
    }),
    kind("selections, Metal", |k, n| {
        k.repeat(n / 2, "v = v < c + # ? v + c : n;");
    }),
    kind("conditions, Metal", |k, n| {
        k.repeat(n / 6, "if (v < c && (v != # || w < s)) v += n;");
    }),
    kind("one long condition, Metal", |k, n| {
        k.line("if (v < c");
        k.cycle(n / 3, &["&& v != #", "|| w > #"]);
        k.line(") v += n;");
    }),
    // ---- control flow ----
    kind("ifs, Metal", |k, n| {
        k.repeat(n / 5, "if (v < #) { v += c; y[i + #] = w; }");
    }),
    kind("ifs with values, Metal", |k, n| {
        k.repeat(
            n / 10,
            "if (v < #) { v += c * n; w = s; } else { v ^= n; w += f; }",
        );
    }),
    kind("ifs within ifs, Metal", |k, n| {
        for _ in 0..n / (DEEP * 4) {
            for deep in 0..DEEP {
                k.line(&format!("if (v > {deep}) {{ v += c;"));
            }
            k.line("w += s;");
            k.line(&"}".repeat(DEEP));
        }
    }),
    kind("one after another or else, Metal", |k, n| {
        k.line("if (v == 0) { w = s; }");
        for i in 1..=(n / 4).min(DEEP / 2) {
            k.line(&format!("else if (v == {i}) {{ w += {i}; }}"));
        }
        k.repeat(
            n / 4,
            "if (v == #) { w += #; } else if (v == n) { w *= s; }",
        );
    }),
    kind("cases of a switch", |k, n| {
        k.line("switch (v) {");
        k.repeat(n / 4, "case #: v = v * c + #; w += s; break;");
        k.line("default: v = n; }");
    }),
    kind("cases that fall through", |k, n| {
        k.line("switch (v) {");
        k.repeat(n / 3, "case #: v = v * c + #;");
        k.line("default: v += n; }");
    }),
    kind("switches", |k, n| {
        k.repeat(
            n / 16,
            "switch (v) { case 0: v += c; break; case 1: v ^= #; case 2: w += s; break; default: v -= n; }",
        );
    }),
    kind("loops, Metal", |k, n| {
        k.repeat(n / 6, "for (uint j = 0; j < n; ++j) { v = v * c + j; }");
    }),
    kind("loops of each thread's own, Metal", |k, n| {
        k.repeat(n / 6, "while (v > c) { v >>= 1; v ^= #; }");
    }),
    kind("loops within loops, Metal", |k, n| {
        for i in 0..n / (20 * 6) {
            for deep in 0..20 {
                k.line(&format!(
                    "for (uint j{deep} = 0; j{deep} < n; ++j{deep}) {{ v += c + {i};"
                ));
            }
            k.line(&"}".repeat(20));
        }
    }),
    kind("ways out of a loop, Metal", |k, n| {
        k.line("for (uint j = 0; j < n; ++j) {");
        k.repeat(n / 5, "v = v * 3 + c; if (v < #) break;");
        k.line("}");
    }),
    kind("ways out with values", |k, n| {
        k.line("for (uint j = 0; j < n; ++j) {");
        k.repeat(n / 6, "v = v * 3 + c; if (v < #) { w = #; v += #; break; }");
        k.line("}");
    }),
    kind("next iterations, Metal", |k, n| {
        k.line("for (uint j = 0; j < n; ++j) {");
        k.repeat(n / 5, "v = v * 3 + c; if (v < #) continue;");
        k.line("w += s; }");
    }),
    kind("jumps of all kinds", |k, n| {
        k.line("for (uint j = 0; j < n; ++j) {");
        k.cycle(
            n / 5,
            &[
                "v = v * 3 + c; if (v < #) break;",
                "v = v * 3 + c; if (v < #) continue;",
                "w = w * s + f; if (w < #) return;",
            ],
        );
        k.line("w += s; }");
    }),
    kind("returns, Metal", |k, n| {
        k.repeat(n / 5, "v = v * 3 + c; if (v < #) return;");
    }),
    kind("returns of a function", |k, n| {
        k.declarations.push_str("uint g(uint v, uint c) {\n");
        for i in 1..=n / 5 {
            let _ = writeln!(
                k.declarations,
                "v = v * 3 + c; if (v < {i}) return v ^ {i};"
            );
        }
        k.declarations.push_str("return c; }\n");
        k.line("v = g(v, c);");
    }),
    kind("carried values, Metal", |k, n| {
        k.repeat(n / 4, "uint a# = v + #;");
        k.line("for (uint j = 0; j < n; ++j) {");
        k.repeat(n / 4, "a# = a# * c + j;");
        k.line("}");
        k.repeat(n / 4, "v ^= a#;");
    }),
    // ---- memory ----
    kind("loads and stores, Metal", |k, n| {
        k.repeat(n / 4, "y[i + #] = x[i + v + #];");
    }),
    kind("local structs", |k, n| {
        k.declarations
            .push_str("struct S { float a; uint b; float2 c; };\n");
        k.repeat(
            n / 8,
            "S s#; s#.a = w; s#.b = v; s#.c = float2(s, #); w += s#.a + s#.c.y; v ^= s#.b;",
        );
    }),
    kind("local structs at once", |k, n| {
        k.declarations
            .push_str("struct S { float a; uint b; float2 c; };\n");
        k.repeat(n / 8, "S s#; s#.a = w + #; s#.b = v; s#.c = float2(s, #);");
        k.repeat(n / 8, "w += s#.a + s#.c.y; v ^= s#.b;");
    }),
    kind("structs that functions give", |k, n| {
        k.declarations.push_str(
            "struct S { float a; uint b; };
             S g(S s, uint c) { s.a *= 2; s.b += c; return s; }
             S s0(float w, uint v) { S s; s.a = w; s.b = v; return s; }\n",
        );
        k.line("S a0 = s0(w, v);");
        k.repeat(n / 8, "S a# = g(a#-, v + #);");
        k.line(&format!("w = a{}.a; v = a{}.b;", n / 8, n / 8));
    }),
    kind("local arrays", |k, n| {
        k.repeat(
            n / 8,
            "uint a#[4] = {v, c, n, #}; a#[v & 3] = c; v += a#[c & 3];",
        );
    }),
    kind("local arrays in registers", |k, n| {
        k.repeat(
            n / 8,
            "uint a#[4] = {v, c, n, #}; a#[1] += a#[0]; v ^= a#[1] * a#[3];",
        );
    }),
    kind("variables, Metal", |k, n| {
        k.repeat(n / 4, "uint a# = v; if (v < #) a# += c; v ^= a#;");
    }),
    kind("threadgroup memory, Metal", |k, n| {
        k.line("threadgroup float tile[64];");
        k.repeat(
            n / 5,
            "tile[t] = w; threadgroup_barrier(mem_flags::mem_threadgroup); w += tile[(t + #) & 63];
             threadgroup_barrier(mem_flags::mem_threadgroup);",
        );
    }),
    kind("threadgroup arrays, Metal", |k, n| {
        k.repeat(
            n / 4,
            "threadgroup float tile#[1]; tile#[0] = w; w += tile#[t];",
        );
    }),
    kind("pointers", |k, n| {
        k.line("device const float *p0 = x;");
        k.repeat(n / 4, "device const float *p# = p#- + c; w += p#[#];");
    }),
    kind("pointers that are chosen", |k, n| {
        k.line("device const float *p0 = x;");
        k.repeat(
            n / 5,
            "device const float *p# = v < # ? p#- + 1 : y + c; w += p#[0]; v ^= c;",
        );
    }),
    kind("atomics, Metal", |k, n| {
        k.line("device atomic_uint *a = (device atomic_uint *)z;");
        k.repeat(
            n / 2,
            "v ^= atomic_fetch_add_explicit(a + #, v, memory_order_relaxed);",
        );
    }),
    kind("simdgroups, Metal", |k, n| {
        k.cycle(
            n / 2,
            &["w += simd_sum(w);", "w += simd_shuffle_xor(w, 1);"],
        );
    }),
    kind("simdgroup matrices, Metal", |k, n| {
        k.line("simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8>(1.f);");
        k.repeat(
            n / 4,
            "simdgroup_float8x8 a#; simdgroup_load(a#, x + #, 8); simdgroup_multiply_accumulate(m, a#, a#, m);",
        );
        k.line("simdgroup_store(m, y, 8);");
    }),
    kind("elements of simdgroup matrices", |k, n| {
        k.line("simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8>(1.f);");
        k.repeat(
            n / 8,
            "m.thread_elements()[0] *= s; m.thread_elements()[1] += #;",
        );
        k.line("simdgroup_store(m, y, 8);");
    }),
    kind("texels, Metal", |k, n| {
        k.params.push_str(
            ", texture2d<float> p [[texture(0)]], texture2d<float, access::write> q [[texture(1)]]",
        );
        k.repeat(n / 8, "q.write(p.read(uint2(v, c + #)), uint2(i, #));");
    }),
    // ---- declarations ----
    kind("buffers, Metal", |k, n| {
        for i in 1..=n / 3 {
            let _ = write!(k.params, ", device float *p{i} [[buffer({})]]", i + 10);
        }
        k.repeat(n / 3, "w += p#[i];");
    }),
    kind("program-scope constants, Metal", |k, n| {
        for i in 1..=n / 3 {
            let _ = writeln!(k.declarations, "constant float c{i}[2] = {{{i}.5f, 1.0f}};");
        }
        k.repeat(n / 3, "w *= c#[v & 1];");
    }),
    kind("macros", |k, n| {
        for i in 1..=n / 4 {
            let _ = writeln!(k.declarations, "#define M{i}(a) ((a) * c + {i}u)");
        }
        k.repeat(n / 4, "v ^= M#(v);");
    }),
    kind("fields of a struct, Metal", |k, n| {
        let types = ["float", "uchar", "half", "long", "ushort", "float3"];
        k.declarations.push_str("struct S {\n");
        for i in 1..=n / 4 {
            let _ = writeln!(k.declarations, "{} f{i};", types[i % types.len()]);
        }
        k.declarations.push_str("};\n");
        k.params
            .push_str(", constant S &b [[buffer(8)]], device S *d [[buffer(9)]]");
        for i in 1..=n / 4 {
            let component = if types[i % types.len()] == "float3" {
                ".y"
            } else {
                ""
            };
            k.line(&format!("w += b.f{i}{component}; d[i].f{i} = b.f{i};"));
        }
    }),
    kind("one line, Metal", |k, n| {
        let all: Vec<String> = (1..=n).map(|i| format!("v += {i};")).collect();
        k.line(&all.join(" "));
    }),
    kind("kernels, Metal", |k, n| {
        for i in 1..=n / 10 {
            let _ = writeln!(
                k.declarations,
                "kernel void k{i}(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{
                     float a = x[i]; a = a * a + a; a = a * a - x[0]; x[i] = a * {i}.5f;
                 }}"
            );
        }
    }),
];
