//! Odd kernels: of one kind of instruction each, and as long as is asked for.
//!
//! Invariants: a kernel of size n has about n instructions, and twice as many for twice the size; it verifies;
//! and a thread comes to its end about as fast as it can read them.

use std::fmt::Write;

/// A kind of kernel.
pub struct Kind {
    /// What there is much of.
    pub name: &'static str,
    /// The largest size; 100,000 unless something that the language states is nearer.
    pub most: usize,
    pub language: Language,
    pub make: fn(&mut Text, usize),
}

/// What a kernel is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Invar's own text.
    Text,
    /// A shader.
    Wgsl,
    Metal,
}

impl Kind {
    /// A module with a kernel `@k` of this kind.
    pub fn text(&self, size: usize) -> String {
        let mut text = Text::default();
        (self.make)(&mut text, size);
        match self.language {
            Language::Text => text.finish(),
            Language::Wgsl => text.finish_shader(),
            Language::Metal => text.finish_metal(),
        }
    }
}

/// The largest size where nothing is in the way.
pub const MOST: usize = 100_000;
/// Loops and conditions within each other: as deep as they go, less what is around them.
const DEEP: usize = 60;
/// Instructions that a function of floats counts for: what it is written out as has that many or more.
pub const FUNCTION: usize = 50;

/// A kernel in the making.
#[derive(Default)]
pub struct Text {
    pub declarations: String,
    pub params: String,
    body: String,
}

impl Text {
    pub fn line(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
    }

    /// Lines with `#` in the place of each number, and `#-` in that of the number before it.
    pub fn repeat(&mut self, count: usize, lines: &str) {
        for i in 1..=count {
            let own = lines.replace("#-", &(i - 1).to_string());
            self.line(&own.replace('#', &i.to_string()));
        }
    }

    /// The same, of one of several variants in turn.
    pub fn cycle(&mut self, count: usize, variants: &[&str]) {
        for i in 1..=count {
            let own = variants[i % variants.len()].replace("#-", &(i - 1).to_string());
            self.line(&own.replace('#', &i.to_string()));
        }
    }

    /// Textures to read, to write and to sample.
    fn textures(&mut self) {
        let textures =
            ", %p: texture2d f32 read, %q: texture2d f32 write, %r: texture2d f32 sample";
        self.params.push_str(textures);
    }

    fn finish(self) -> String {
        let Text {
            declarations,
            params,
            body,
        } = self;
        format!(
            "{declarations}\
             kernel @k(%x: device read f32, %y: device write f32, %z: device read_write u32, \
             %n: u32, %f: f32{params}) {{
                 %i = thread_position_in_grid x
                 %t = thread_position_in_threadgroup x
                 %zero = const u32 0
                 %one = const u32 1
                 %two = const u32 2
                 %three = const u32 3
                 %c = load %z[%i]
                 %s = load %x[%i]
                 %low = lt %c, %n
                 {body}}}\n"
        )
    }

    /// What is declared, and an entry point.
    fn finish_shader(self) -> String {
        let Text {
            declarations, body, ..
        } = self;
        format!(
            "@group(0) @binding(0) var<storage, read_write> z: array<u32>;
             {declarations}
             @compute @workgroup_size(64)
             fn k(@builtin(global_invocation_id) id: vec3u) {{ let i = id.x;
                 var v = z[i];
                 {body}
                 z[i] = v;
             }}\n"
        )
    }

    /// What is declared, and a kernel. That it asks for files keeps it from being kept on disk.
    fn finish_metal(self) -> String {
        let Text {
            declarations,
            params,
            body,
        } = self;
        format!(
            "#include <metal_stdlib>
             // __has_include
             using namespace metal;
             {declarations}
             kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                 device uint *z [[buffer(2)]], constant uint &n [[buffer(3)]], constant float &f [[buffer(4)]]{params},
                 uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]])
             {{
                 uint c = z[i], v = c;
                 float s = x[i], w = s;
                 {body}
                 z[i] = v;
                 y[i] = w;
             }}\n"
        )
    }
}

const fn kind(name: &'static str, make: fn(&mut Text, usize)) -> Kind {
    limited(name, MOST, make)
}

const fn limited(name: &'static str, most: usize, make: fn(&mut Text, usize)) -> Kind {
    Kind {
        name,
        most,
        language: Language::Text,
        make,
    }
}

const fn shader(name: &'static str, make: fn(&mut Text, usize)) -> Kind {
    Kind {
        language: Language::Wgsl,
        ..kind(name, make)
    }
}

/// Every kind.
pub const KINDS: &[Kind] = &[
    // ---- computing ----
    kind("floats", |k, n| {
        k.line("%v0 = mul %s, %f");
        k.cycle(
            n,
            &[
                "%v# = add %v#-, %s",
                "%v# = mul %v#-, %f",
                "%v# = sub %s, %v#-",
                "%v# = fma %v#-, %f, %s",
                "%v# = fmin %v#-, %f",
            ],
        );
        k.line(&format!("store %y[%i], %v{n}"));
    }),
    kind("sums of products by a constant", |k, n| {
        k.line("%half = const f32 0.5\n%v0 = mul %s, %f");
        k.repeat(n, "%v# = fma %v#-, %s, %half");
        k.line(&format!("store %y[%i], %v{n}"));
    }),
    kind("integers", |k, n| {
        k.line("%v0 = mul %c, %n");
        k.cycle(
            n,
            &[
                "%v# = add %v#-, %c",
                "%v# = mul %v#-, %n",
                "%v# = xor %c, %v#-",
                "%v# = shl %v#-, %two",
                "%v# = sub %n, %v#-",
                "%v# = popcount %v#-",
            ],
        );
        k.line(&format!("store %z[%i], %v{n}"));
    }),
    kind("quotients", |k, n| {
        k.line("%v0 = mul %c, %n");
        k.cycle(n, &["%v# = div %v#-, %c", "%v# = rem %n, %v#-"]);
        k.line(&format!("store %z[%i], %v{n}"));
    }),
    kind("conversions", |k, n| {
        k.line("%v0 = add %c, %n");
        k.repeat(
            n / 5,
            "%a# = cast i8 %v#-
             %b# = cast f32 %a#
             %c# = cast f16 %b#
             %d# = cast i64 %c#
             %v# = cast u32 %d#",
        );
        k.line(&format!("store %z[%i], %v{}", n / 5));
    }),
    kind("constants", |k, n| {
        k.line("%v0 = add %s, %f");
        k.repeat(n / 2, "%k# = const f32 #.0\n%v# = add %v#-, %k#");
        k.line(&format!("store %y[%i], %v{}", n / 2));
    }),
    kind("constants alone", |k, n| {
        k.line("%v0 = const u32 7");
        k.repeat(n / 2, "%k# = const u32 #\n%v# = add %v#-, %k#");
        k.line(&format!("store %z[%i], %v{}", n / 2));
    }),
    kind("sums of equals", |k, n| {
        k.line("%v0 = add %t, %n");
        k.repeat(n, "%v# = add %v#-, %v#-");
        k.line(&format!("store %z[%v{n}], %one"));
    }),
    kind("conditions of equals", |k, n| {
        k.line("%v0 = lt %t, %n");
        k.cycle(n, &["%v# = and %v#-, %v#-", "%v# = or %v#-, %low"]);
        k.line(&format!("if %v{n} {{ store %z[%i], %one }}"));
    }),
    kind("selections", |k, n| {
        k.line("%v0 = add %c, %n");
        k.repeat(n / 2, "%l# = lt %v#-, %c\n%v# = select %v#-, %n, %l#");
        k.line(&format!("store %z[%i], %v{}", n / 2));
    }),
    kind("vectors", |k, n| {
        k.line("%v0 = construct f32x4 %s, %f, %s, %s");
        k.repeat(
            n / 5,
            "%a# = add %v#-, %v0
             %b# = swizzle yzwx %a#
             %c# = extract %b#, %two
             %d# = insert %b#, %two, %c#
             %v# = mul %d#, %a#",
        );
        k.line(&format!("%v = extract %v{}, %one\nstore %y[%i], %v", n / 5));
    }),
    kind("matrices", |k, n| {
        let n = n / FUNCTION;
        k.line("%w = construct f32x4 %s, %f, %s, %s");
        k.line("%v0 = construct f32x4x4 %w, %w, %w, %w");
        k.repeat(n, "%v# = matrix_multiply %v#-, %v0");
        k.line(&format!(
            "%m = extract %v{n}, %one\n%v = extract %m, %one\nstore %y[%i], %v"
        ));
    }),
    kind("functions of floats", |k, n| {
        let n = n / FUNCTION;
        k.line("%v0 = mul %s, %f");
        k.cycle(
            n,
            &[
                "%v# = sin %v#-",
                "%v# = exp %v#-",
                "%v# = pow %v#-, %f",
                "%v# = atan2 %v#-, %s",
                "%v# = tanh %v#-",
            ],
        );
        k.line(&format!("store %y[%i], %v{n}"));
    }),
    kind("half precision", |k, n| {
        k.line("%h = cast f16 %s\n%v0 = mul %h, %h");
        k.cycle(
            n,
            &[
                "%v# = add %v#-, %h",
                "%v# = mul %v#-, %h",
                "%v# = fma %h, %v#-, %h",
            ],
        );
        k.line(&format!("%v = cast f32 %v{n}\nstore %y[%i], %v"));
    }),
    // ---- control flow ----
    kind("ifs", |k, n| {
        k.repeat(
            n / 5,
            "%k# = const u32 #
             %l# = lt %c, %k#
             if %l# { store %y[%k#], %s }",
        );
    }),
    kind("ifs of one condition", |k, n| {
        k.repeat(n / 4, "%v# = add %c, %n\nif %low { store %z[%v#], %n }");
    }),
    kind("uniform ifs", |k, n| {
        k.repeat(
            n / 5,
            "%k# = const u32 #
             %l# = lt %n, %k#
             if %l# { store %y[%i], %s }",
        );
    }),
    kind("ifs with values", |k, n| {
        k.line("%v0 = mul %c, %n");
        k.repeat(
            n / 15,
            "%k# = const u32 #
             %l# = lt %v#-, %k#
             %v# = if %l# {
                 %a# = mul %v#-, %v#-
                 %b# = add %a#, %n
                 %c# = mul %b#, %c
                 %d# = xor %c#, %v#-
                 %e# = mul %d#, %n
                 %f# = sub %e#, %c
                 %g# = mul %f#, %f#
                 yield %g#
             } else {
                 %h# = mul %v#-, %c
                 yield %h#
             }",
        );
        k.line(&format!("store %z[%i], %v{}", n / 15));
    }),
    kind("one of many cases", |k, n| {
        let deep = DEEP / 2;
        k.line("%v0 = add %c, %n");
        for i in 1..=n / (deep * 6) {
            for case in 0..deep {
                k.line(&format!(
                    "%k{i}_{case} = const u32 {case}
                     %l{i}_{case} = eq %v{}, %k{i}_{case}
                     %r{i}_{case} = if %l{i}_{case} {{
                         %a{i}_{case} = mul %c, %k{i}_{case}
                         yield %a{i}_{case}
                     }} else {{",
                    i - 1
                ));
            }
            k.line("yield %c");
            for case in (1..deep).rev() {
                k.line(&format!("}}\nyield %r{i}_{case}"));
            }
            k.line(&format!("}}\n%v{i} = add %r{i}_0, %one"));
        }
        k.line(&format!("store %z[%i], %v{}", n / (deep * 6)));
    }),
    kind("ifs within ifs", |k, n| {
        for i in 1..=n / (DEEP * 4) {
            for deep in 0..DEEP {
                k.line(&format!(
                    "%k{i}_{deep} = const u32 {deep}
                     %l{i}_{deep} = gt %c, %k{i}_{deep}
                     if %l{i}_{deep} {{"
                ));
            }
            k.line("store %y[%i], %s");
            k.line(&"}\n".repeat(DEEP));
        }
    }),
    kind("loops", |k, n| {
        k.line("%v0 = add %s, %f");
        k.repeat(
            n / 5,
            "%v# = for %j# = %zero to %one step %one carry(%a# = %v#-) {
                 %b# = add %a#, %s
                 %d# = mul %b#, %f
                 %e# = sub %d#, %s
                 yield %e#
             }",
        );
        k.line(&format!("store %y[%i], %v{}", n / 5));
    }),
    kind("loops that are unrolled", |k, n| {
        k.line("%v0 = add %s, %f");
        k.repeat(
            n / 9,
            "%v# = for %j# = %zero to %three step %one carry(%a# = %v#-) {
                 %b# = add %a#, %s
                 %d# = mul %b#, %f
                 yield %d#
             }",
        );
        k.line(&format!("store %y[%i], %v{}", n / 9));
    }),
    kind("loops over buffers", |k, n| {
        k.line("%v0 = add %s, %f");
        k.repeat(
            n / 5,
            "%v# = for %j# = %zero to %n step %one carry(%a# = %v#-) {
                 %o# = add %i, %j#
                 %b# = load %x[%o#]
                 %d# = add %a#, %b#
                 yield %d#
             }",
        );
        k.line(&format!("store %y[%i], %v{}", n / 5));
    }),
    kind("loops within loops", |k, n| {
        k.line("%v0 = add %c, %n");
        for i in 1..=n / (DEEP * 4) {
            let mut carried = format!("%v{}", i - 1);
            for deep in 0..DEEP {
                k.line(&format!(
                    "%{}{i}_{deep} = for %j{i}_{deep} = %zero to %n step %one carry(%a{i}_{deep} = {carried}) {{
                     %b{i}_{deep} = add %a{i}_{deep}, %c",
                    if deep == 0 { "r" } else { "q" }
                ));
                carried = format!("%b{i}_{deep}");
            }
            k.line(&format!("yield {carried}"));
            for deep in (1..DEEP).rev() {
                k.line(&format!("}}\nyield %q{i}_{deep}"));
            }
            k.line(&format!("}}\n%v{i} = add %r{i}_0, %one"));
        }
        k.line(&format!("store %z[%i], %v{}", n / (DEEP * 4)));
    }),
    kind("loops of each thread's own", |k, n| {
        k.line("%v0 = add %c, %n");
        k.repeat(
            n / 6,
            "%v# = loop carry(%a# = %v#-) {
                 %l# = le %a#, %c
                 if %l# { break %a# }
                 %b# = shr %a#, %one
                 yield %b#
             }",
        );
        k.line(&format!("store %z[%i], %v{}", n / 6));
    }),
    kind("ways out of a loop", |k, n| {
        k.line("%v0 = loop carry(%w0 = %c) {");
        k.repeat(
            n / 5,
            "%w# = add %w#-, %one
             %l# = lt %w#, %n
             if %l# { break %w# }",
        );
        k.line("break %c\n}\nstore %z[%i], %v0");
    }),
    kind("next iterations", |k, n| {
        k.line("%v0 = for %j = %zero to %one step %one carry(%w0 = %c) {");
        k.repeat(
            n / 5,
            "%w# = add %w#-, %one
             %l# = lt %w#, %n
             if %l# { continue %w# }",
        );
        k.line(&format!("yield %w{}\n}}\nstore %z[%i], %v0", n / 5));
    }),
    kind("returns", |k, n| {
        k.line("%w0 = add %c, %n");
        k.repeat(
            n / 5,
            "%w# = add %w#-, %one
             %l# = lt %w#, %n
             if %l# { return }",
        );
        k.line(&format!("store %z[%i], %w{}", n / 5));
    }),
    kind("carried values", |k, n| {
        let n = (n / 4).max(2);
        let list = |prefix: &str| -> String {
            let names: Vec<String> = (0..n).map(|i| format!("%{prefix}{i}")).collect();
            names.join(", ")
        };
        for i in 0..n {
            k.line(&format!("%v{i} = add %c, %n"));
        }
        let carried: Vec<String> = (0..n).map(|i| format!("%a{i} = %v{i}")).collect();
        k.line(&format!(
            "{} = for %j = %zero to %two step %one carry({}) {{",
            list("r"),
            carried.join(", ")
        ));
        for i in 0..n {
            k.line(&format!("%b{i} = add %a{}, %c", (i + 1) % n));
        }
        k.line(&format!("yield {}\n}}", list("b")));
        k.line("%w0 = add %r0, %c");
        k.repeat(n - 1, "%w# = xor %w#-, %r#");
        k.line(&format!("store %z[%i], %w{}", n - 1));
    }),
    // ---- memory ----
    kind("loads", |k, n| {
        k.line("%v0 = add %s, %f");
        k.repeat(
            n / 4,
            "%k# = const u32 #
             %o# = add %i, %k#
             %a# = load %x[%o#]
             %v# = add %v#-, %a#",
        );
        k.line(&format!("store %y[%i], %v{}", n / 4));
    }),
    kind("stores", |k, n| {
        k.repeat(
            n / 3,
            "%k# = const u32 #
             %o# = add %i, %k#
             store %y[%o#], %s",
        );
    }),
    kind("loads and stores", |k, n| {
        k.repeat(
            n / 4,
            "%k# = const u32 #
             %o# = add %i, %k#
             %a# = load %x[%o#]
             store %y[%o#], %a#",
        );
    }),
    kind("constant places", |k, n| {
        k.repeat(
            n / 3,
            "%k# = const u32 #
             %a# = load %x[%k#]
             store %y[%k#], %a#",
        );
    }),
    kind("strided floats", |k, n| strided(k, n, "f32")),
    kind("strided bytes", |k, n| strided(k, n, "u8")),
    kind("strided halves", |k, n| strided(k, n, "f16")),
    kind("strided words of 16 bits", |k, n| strided(k, n, "u16")),
    kind("strided words of 64 bits", |k, n| strided(k, n, "i64")),
    kind("bytes side by side", |k, n| {
        k.params
            .push_str(", %p: device read u8, %q: device write u8");
        k.repeat(
            n / 4,
            "%k# = const u32 #
             %o# = add %i, %k#
             %a# = load %p[%o#]
             store %q[%o#], %a#",
        );
    }),
    kind("places that are loaded", |k, n| {
        k.line("%v0 = add %c, %n");
        k.repeat(n / 2, "%v# = load %z[%v#-]\nstore %y[%v#], %s");
    }),
    kind("indices of 64 bits", |k, n| {
        k.line("%j = cast i64 %i\n%m = cast i64 %n");
        k.repeat(
            n / 5,
            "%k# = const i64 #
             %p# = mul %m, %k#
             %o# = add %p#, %j
             %a# = load %x[%o#]
             store %y[%o#], %a#",
        );
    }),
    kind("long indices", |k, n| {
        k.line("%o0 = add %i, %n");
        k.repeat(
            n / 4,
            "%p# = mul %o#-, %n
             %o# = add %p#, %t
             %a# = load %x[%o#]
             store %y[%o#], %a#",
        );
    }),
    kind("accesses of vectors", |k, n| {
        k.repeat(
            n / 4,
            "%k# = const u32 #
             %o# = add %i, %k#
             %a# = load %x[%o# : 3]
             store %y[%o# * 3], %a#",
        );
    }),
    kind("accesses under conditions", |k, n| {
        k.repeat(
            n / 7,
            "%k# = const u32 #
             %o# = add %i, %k#
             %l# = lt %o#, %n
             if %l# {
                 %a# = load %x[%o#]
                 store %y[%o#], %a#
             }",
        );
    }),
    kind("a thread array", |k, n| {
        k.line("%own = alloc thread f32[64]");
        k.repeat(
            n / 4,
            "%k# = const u32 #
             %o# = add %c, %k#
             %a# = load %own[%o#]
             store %own[%k#], %a#",
        );
        k.line("%v = load %own[%c]\nstore %y[%i], %v");
    }),
    limited("thread arrays", 1 << 15, |k, n| {
        k.repeat(
            n / 4,
            "%own# = alloc thread f32[2]
             store %own#[%c], %s
             %a# = load %own#[%n]
             store %y[%i], %a#",
        );
    }),
    limited("thread arrays that become values", 1 << 15, |k, n| {
        k.repeat(
            n / 8,
            "%own# = alloc thread f32[2]
             store %own#[%one], %s
             if %low {
                 store %own#[%zero], %f
                 store %own#[%one], %f
             }
             %a# = load %own#[%one]
             store %y[%i], %a#",
        );
    }),
    limited("threadgroup arrays", 1 << 14, |k, n| {
        k.repeat(n / 4, "%own# = alloc threadgroup u32[1]");
        k.repeat(n / 4, "store %own#[%t], %c");
        k.line("barrier threadgroup");
        k.repeat(n / 4, "%a# = load %own#[%zero]\nstore %z[%i], %a#");
    }),
    kind("barriers", |k, n| {
        k.line("%tile = alloc threadgroup f32[64]\n%v0 = add %s, %f");
        k.repeat(
            n / 5,
            "store %tile[%t], %v#-
             barrier threadgroup [threadgroup]
             %a# = load %tile[%one]
             %v# = add %v#-, %a#
             barrier threadgroup [threadgroup]",
        );
        k.line(&format!("store %y[%i], %v{}", n / 5));
    }),
    kind("values across barriers", |k, n| {
        k.line("%tile = alloc threadgroup f32[64]\n%v0 = add %s, %f");
        k.repeat(n / 5, "%k# = const f32 #.0\n%v# = mul %v#-, %k#");
        k.repeat(
            n / 5,
            "barrier threadgroup
             %a# = add %v#, %f
             store %y[%i], %a#",
        );
    }),
    kind("loops with barriers", |k, n| {
        k.line("%tile = alloc threadgroup f32[64]\n%v0 = add %s, %f");
        k.repeat(
            n / 6,
            "%v# = for %j# = %zero to %n step %one carry(%b# = %v#-) {
                 store %tile[%t], %b#
                 barrier threadgroup
                 %a# = load %tile[%one]
                 barrier threadgroup
                 yield %a#
             }",
        );
        k.line(&format!("store %y[%i], %v{}", n / 6));
    }),
    limited("a struct's copy", 4096, |k, n| {
        structs(k, n);
        k.line("copy %q[%i], %p[%i], %one");
    }),
    kind("fields", |k, n| {
        structs(k, (n / 2).clamp(1, 512));
        for i in 1..=n / 2 {
            let field = i % (n / 2).clamp(1, 512);
            k.line(&format!(
                "%a{i} = load %p[%i].f{field}\nstore %q[%i].f{field}, %a{i}"
            ));
        }
    }),
    kind("arrays in structs", |k, n| {
        k.declarations.push_str(
            "struct @Inner { b: f32[5], c: u8 }\nstruct @Outer { a: @Inner[7], d: f32x3 }\n",
        );
        k.params
            .push_str(", %p: device read @Outer, %q: device read_write @Outer");
        k.repeat(
            n / 4,
            "%k# = const u32 #
             %o# = add %c, %k#
             %a# = load %p[%i].a[%o#].b[%c]
             store %q[%i].a[%c].b[%o#], %a#",
        );
    }),
    kind("copies", |k, n| {
        k.repeat(
            n / 3,
            "%k# = const u32 #
             %o# = add %i, %k#
             copy %y[%o#], %x[%o#], %two",
        );
    }),
    kind("atomics", |k, n| {
        k.line("%v0 = add %c, %n");
        k.cycle(
            n,
            &[
                "%v# = atomic_add %z[%v#-], %one",
                "%v# = atomic_max %z[%i], %v#-",
                "%v#, %d# = atomic_compare_exchange %z[%i], %v#-, %c",
                "%v# = atomic_exchange %z[%zero], %v#-",
                "%v# = atomic_load %z[%v#-]",
            ],
        );
    }),
    kind("atomics on threadgroup memory", |k, n| {
        k.line("%bins = alloc threadgroup u32[64]\n%v0 = add %c, %n");
        k.cycle(
            n,
            &[
                "%v# = atomic_add %bins[%v#-], %one",
                "%v# = atomic_or %bins[%t], %v#-",
            ],
        );
    }),
    kind("atomics at one place", |k, n| {
        k.repeat(n, "%v# = atomic_add %z[%i], %one");
    }),
    kind("atomics at one place under a condition", |k, n| {
        k.repeat(
            n / 2,
            "if %low { %v#, %d# = atomic_compare_exchange %z[%i], %c, %n }",
        );
    }),
    kind("atomics in order", |k, n| {
        k.line("%v0 = add %c, %n");
        k.cycle(
            n,
            &[
                "%v# = atomic_load %z[%v#-] acquire device",
                "atomic_store %z[%i], %v#- release device\n%v# = add %v#-, %one",
                "%v# = atomic_add %z[%one], %v#- acq_rel threadgroup",
                "%v#, %d# = atomic_compare_exchange %z[%i], %v#-, %c seq_cst device",
            ],
        );
    }),
    // ---- together ----
    kind("sums of simdgroups", |k, n| {
        k.line("%v0 = add %s, %f");
        k.repeat(n / 2, "%a# = simd_sum %v#-\n%v# = mul %a#, %s");
        k.line(&format!("store %y[%i], %v{}", n / 2));
    }),
    kind("shuffles", |k, n| {
        k.line("%v0 = add %s, %f");
        k.cycle(
            n,
            &[
                "%v# = simd_shuffle_xor %v#-, %one",
                "%v# = simd_shuffle %v#-, %c",
                "%v# = simd_prefix_inclusive_sum %v#-",
                "%v# = quad_sum %v#-",
            ],
        );
        k.line(&format!("store %y[%i], %v{n}"));
    }),
    kind("scans", |k, n| {
        k.line("%v0 = add %c, %n");
        k.cycle(
            n,
            &[
                "%v# = simd_prefix_exclusive_sum %v#-",
                "%v# = simd_prefix_inclusive_product %v#-",
                "%v# = quad_prefix_exclusive_sum %v#-",
                "%v# = quad_prefix_inclusive_product %v#-",
            ],
        );
        k.line(&format!("store %z[%i], %v{n}"));
    }),
    kind("votes", |k, n| {
        k.line("%l0 = lt %c, %n");
        k.cycle(
            n / 2,
            &[
                "%a# = simd_any %l#-\n%l# = ne %a#, %low",
                "%a# = simd_all %l#-\n%l# = ne %a#, %low",
                "%a# = quad_any %l#-\n%l# = ne %a#, %low",
                "%b# = simd_ballot %l#-\n%a# = swizzle x %b#\n%l# = lt %a#, %c",
                "%b# = quad_ballot %l#-\n%a# = swizzle x %b#\n%l# = lt %a#, %c",
            ],
        );
        k.line(&format!("%v = cast u32 %l{}\nstore %z[%i], %v", n / 2));
    }),
    kind("other reductions", |k, n| {
        k.line("%v0 = add %c, %n");
        k.cycle(
            n / 2,
            &[
                "%a# = simd_product %v#-\n%v# = add %a#, %c",
                "%a# = simd_max %v#-\n%v# = add %a#, %c",
                "%a# = simd_xor %v#-\n%v# = add %a#, %c",
                "%a# = quad_product %v#-\n%v# = add %a#, %c",
                "%a# = quad_min %v#-\n%v# = add %a#, %c",
                "%a# = quad_or %v#-\n%v# = add %a#, %c",
            ],
        );
        k.line(&format!("store %z[%i], %v{}", n / 2));
    }),
    kind("other shuffles", |k, n| {
        k.line("%v0 = add %s, %f");
        k.cycle(
            n,
            &[
                "%v# = simd_shuffle_up %v#-, %one",
                "%v# = simd_shuffle_rotate_down %v#-, %n",
                "%v# = simd_broadcast %v#-, %two",
                "%v# = simd_broadcast_first %v#-",
                "%v# = quad_shuffle %v#-, %c",
                "%v# = quad_shuffle_xor %v#-, %one",
                "%v# = quad_broadcast_first %v#-",
            ],
        );
        k.line(&format!("store %y[%i], %v{n}"));
    }),
    kind("barriers of simdgroups", |k, n| {
        k.line("%tile = alloc threadgroup f32[64]\n%v0 = add %s, %f");
        k.repeat(
            n / 5,
            "store %tile[%t], %v#-
             barrier simdgroup [threadgroup]
             %a# = load %tile[%one]
             %v# = add %v#-, %a#
             barrier simdgroup",
        );
        k.line(&format!("store %y[%i], %v{}", n / 5));
    }),
    kind("barriers for device memory", |k, n| {
        k.repeat(
            n / 4,
            "%a# = atomic_load %z[%one]
             atomic_store %z[%i], %a#
             barrier threadgroup [device, threadgroup]
             barrier threadgroup []",
        );
    }),
    kind("products of simdgroup matrices", |k, n| {
        k.line("%m0 = matrix_fill simdgroup_f32x8x8 %f");
        k.line("%a = matrix_load simdgroup_f32x8x8 %x[%zero] row %n transpose");
        k.repeat(n, "%m# = matrix_multiply_accumulate %a, %m#-, %a");
        k.line(&format!("matrix_store %y[%zero] row %n, %m{n}"));
    }),
    kind("simdgroup matrices", |k, n| {
        k.line("%m0 = matrix_fill simdgroup_f32x8x8 %f");
        k.repeat(
            n / 4,
            "%k# = const u32 #
             %a# = matrix_load simdgroup_f32x8x8 %x[%k#] row %n
             %m# = matrix_multiply_accumulate %a#, %a#, %m#-
             matrix_store %y[%k#] row %n, %m#",
        );
    }),
    kind("async copies", |k, n| {
        k.line("%tile = alloc threadgroup f32[64]");
        k.repeat(
            n / 2,
            "%e# = async_copy %tile[%zero], %x[%n], %two\nwait %e#",
        );
    }),
    kind("async copies of rows", |k, n| {
        k.line("%tile = alloc threadgroup f32[64]");
        k.repeat(
            n / 2,
            "%e# = async_copy_2d %tile[%zero] row %three, %x[%n] row %n, %two, %three\nwait %e#",
        );
    }),
    kind("async copies under way", |k, n| {
        k.line("%tile = alloc threadgroup f32[64]");
        k.repeat(n / 2, "%e# = async_copy %tile[%zero], %x[%n], %zero");
        k.repeat(n / 2, "wait %e#");
    }),
    kind("printed lines", |k, n| {
        k.repeat(n, "print \"line #: {} of {}\" %c, %n");
    }),
    kind("texels", |k, n| {
        k.textures();
        k.repeat(
            n / 3,
            "%a# = texture_read %p[%c, %n]
             %b# = texture_width %p
             texture_write %q[%i, %b#], %a#",
        );
    }),
    kind("samples", |k, n| {
        k.textures();
        k.line("%v0 = add %s, %f");
        k.cycle(
            n / 3,
            &[
                "%a# = texture_sample %r[%v#-, %s] linear\n%b# = swizzle x %a#\n%v# = add %b#, %s",
                "%a# = texture_sample %r[%v#-, %s] nearest repeat\n%b# = swizzle y %a#\n%v# = add %b#, %s",
                "%a# = texture_gather %r[%v#-, %s] x\n%b# = swizzle z %a#\n%v# = add %b#, %s",
            ],
        );
        k.line(&format!("store %y[%i], %v{}", n / 3));
    }),
    kind("asserted values", |k, n| {
        k.line("%v0 = add %n, %one");
        k.repeat(
            n / 2,
            "%a# = add %v#-, %one\n%v# = assert_uniform simdgroup %a#",
        );
        k.line(&format!("store %z[%i], %v{}", n / 2));
    }),
    // ---- declarations ----
    kind("buffers", |k, n| {
        for i in 1..=n / 2 {
            let _ = write!(k.params, ", %p{i}: device read f32");
        }
        k.line("%v0 = add %s, %f");
        k.repeat(n / 2, "%a# = load %p#[%i]\n%v# = add %v#-, %a#");
        k.line(&format!("store %y[%i], %v{}", n / 2));
    }),
    kind("scalar parameters", |k, n| {
        for i in 1..=n / 2 {
            let _ = write!(k.params, ", %p{i}: f32");
        }
        k.line("%v0 = add %s, %f");
        k.repeat(n / 2, "%v# = add %v#-, %p#");
        k.line(&format!("store %y[%i], %v{}", n / 2));
    }),
    kind("function constants", |k, n| {
        for i in 1..=n / 3 {
            let _ = writeln!(
                k.declarations,
                "function_constant @c{i}: f32 = {i}.5 id({i})"
            );
        }
        k.line("%v0 = add %s, %f");
        k.repeat(n / 3, "%a# = function_constant @c#\n%v# = mul %v#-, %a#");
        k.line(&format!("store %y[%i], %v{}", n / 3));
    }),
    kind("program-scope constants", |k, n| {
        for i in 1..=n / 3 {
            let _ = writeln!(k.declarations, "constant @c{i}: f32[2] = [{i}.5, 1.0]");
        }
        k.line("%v0 = add %s, %f");
        k.repeat(n / 3, "%a# = load @c#[%c]\n%v# = mul %v#-, %a#");
        k.line(&format!("store %y[%i], %v{}", n / 3));
    }),
    kind("structs", |k, n| {
        for i in 1..=n / 3 {
            let _ = writeln!(k.declarations, "struct @S{i} {{ a: f32, b: u8 }}");
            let _ = write!(k.params, ", %p{i}: device read @S{i}");
        }
        k.line("%v0 = add %s, %f");
        k.repeat(n / 3, "%a# = load %p#[%i].a\n%v# = mul %v#-, %a#");
        k.line(&format!("store %y[%i], %v{}", n / 3));
    }),
    kind("kernels", |k, n| {
        for i in 1..=n / 10 {
            let _ = writeln!(
                k.declarations,
                "kernel @k{i}(%x: device read_write f32) {{
                     %i = thread_position_in_grid x
                     %v0 = load %x[%i]
                     %v1 = add %v0, %v0
                     %v2 = mul %v1, %v0
                     %v3 = add %v2, %v1
                     %v4 = mul %v3, %v2
                     %v5 = add %v4, %v3
                     %v6 = mul %v5, %v4
                     store %x[%i], %v6
                 }}"
            );
        }
        k.line("store %y[%i], %s");
    }),
    // ---- shaders ----
    shader("functions of a shader", |k, n| {
        for i in 1..=n / 5 {
            let _ = writeln!(
                k.declarations,
                "fn f{i}(a: u32, b: u32) -> u32 {{ let c = a ^ b; return c * 3u + {i}u; }}"
            );
        }
        k.repeat(n / 5, "v = f#(v, i);");
    }),
    shader("calls of a function", |k, n| {
        k.declarations.push_str(
            "fn f(a: u32, b: u32) -> u32 { if a < b { return a; } var c = a; c += b; return c; }",
        );
        k.repeat(n / 8, "v = f(v, i) + #u;");
    }),
    shader("calls within calls", |k, n| {
        k.declarations
            .push_str("fn f0(a: u32) -> u32 { return a + 1u; }\n");
        for i in 1..=8 {
            let _ = writeln!(
                k.declarations,
                "fn f{i}(a: u32) -> u32 {{ return f{}(a ^ {i}u); }}",
                i - 1
            );
        }
        k.repeat(n / 20, "v = f8(v);");
    }),
    shader("variables of a shader", |k, n| {
        k.repeat(n / 6, "var a# = v; if v < #u { a# += i; } v ^= a#;");
    }),
    shader("loops of a shader", |k, n| {
        k.repeat(
            n / 10,
            "for (var j = 0u; j < i; j++) { if v == j { continue; } if v > #u { break; } v += j; }",
        );
    }),
    kind("names that are not words there", |k, n| {
        k.line("%\"v+0\" = add %s, %f");
        for i in 1..=n {
            // The same but for what a shading language has no letters for.
            let name = |i: usize| -> String {
                let signs = ['+', '-', '*', '/', '!', '?', '=', '~'];
                (0..6).map(|digit| signs[i >> (3 * digit) & 7]).collect()
            };
            let before = if i == 1 {
                "v+0".to_string()
            } else {
                name(i - 1)
            };
            k.line(&format!("%\"{}\" = add %\"{before}\", %s", name(i)));
        }
    }),
];

/// Loads and stores of elements three apart.
fn strided(k: &mut Text, n: usize, scalar: &str) {
    let _ = write!(
        k.params,
        ", %p: device read {scalar}, %q: device write {scalar}"
    );
    k.line("%base = mul %i, %three");
    k.repeat(
        n / 4,
        "%k# = const u32 #
         %o# = add %base, %k#
         %a# = load %p[%o#]
         store %q[%o#], %a#",
    );
}

/// A struct of so many mixed fields, and two buffers of it.
fn structs(k: &mut Text, fields: usize) {
    let types = ["f32", "u8", "f16", "i64", "u16", "bool", "i32"];
    let fields: Vec<String> = (0..fields)
        .map(|i| format!("f{i}: {}", types[i % types.len()]))
        .collect();
    let _ = writeln!(k.declarations, "struct @S {{ {} }}", fields.join(", "));
    k.params
        .push_str(", %p: device read @S, %q: device write @S");
}
