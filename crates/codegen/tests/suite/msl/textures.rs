//! Textures in MSL: Metal's own types and functions, and what it does not have, refused by name. (What they compute,
//! the reader of Metal's language tests.)

use invar_codegen::msl::{Argument, MslOptions, write};
use invar_ir::text::parse;
use invar_ir::{Rule, verify};

fn written(kernel: &str) -> Result<(String, Vec<Argument>), Vec<String>> {
    let module = parse("textures.inv", kernel).and_then(verify);
    let module = module.unwrap_or_else(|e| panic!("{e}"));
    match write(&module, "k", &MslOptions::default()) {
        Ok(source) => Ok((source.text, source.arguments)),
        Err(errors) => Err(errors
            .0
            .into_iter()
            .map(|error| {
                assert_eq!(error.rule, Rule::UnsupportedFeature);
                error.message
            })
            .collect()),
    }
}

#[test]
fn textures_and_samplers_are_metals_own() {
    let (text, arguments) = written(
        "kernel @k(%src: texture2d_array f32 sample, %x: device read f32, %dst: texture2d u32 read_write, %s: sampler) {
            %i = thread_position_in_grid x
            %j = thread_position_in_grid y
            %u = load %x[%i]
            %minus = const i32 -1
            %a = texture_sample %src[%u, %u, %minus] linear repeat
            %b = texture_sample %src[%u, %u, %minus] offset(1, -1) linear repeat
            %c = texture_gather %src[%u, %u, %i] y %s
            %sum = add %a, %b
            %all = add %sum, %c
            %codes = cast u32x4 %all
            %before = texture_read %dst[%i, %j]
            %after = add %before, %codes
            texture_write %dst[%i, %j], %after
        }",
    )
    .expect("Metal has all of it");
    let bound = [
        Argument::Texture(0),
        Argument::Buffer(0),
        Argument::Texture(1),
        Argument::Sampler(0),
    ];
    assert_eq!(arguments, bound);
    for line in [
        "texture2d_array<float, access::sample> src [[texture(0)]],",
        "texture2d<uint, access::read_write> dst [[texture(1)]],",
        "sampler s [[sampler(0)]],",
        "constexpr sampler invar_sampler_0(coord::normalized, address::repeat, filter::linear, mip_filter::none);",
        "const float4 a = uint(-1) < src.get_array_size() ? src.sample(invar_sampler_0, float2(u, u), uint(-1)) : float4(0.0f);",
        "src.sample(invar_sampler_0, float2(u, u), uint(-1), int2(1, -1))",
        "src.gather(s, float2(u, u), i, int2(0, 0), component::y)",
        "const uint4 before = i < dst.get_width() && j < dst.get_height() ? dst.read(uint2(i, j)) : uint4(0u);",
        "if (i < dst.get_width() && j < dst.get_height()) { dst.write(after, uint2(i, j)); dst.fence(); }",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    // It is declared once.
    assert_eq!(text.matches("constexpr sampler").count(), 1, "{text}");
}

#[test]
fn levels_samples_and_depths_are_guarded_by_what_there_is() {
    let (text, _) = written(
        "kernel @k(%t: texture2d f32 read, %m: texture2d_ms_array i32 read, %d: depth2d f32 sample, %to: device write f32x4) {
            %i = thread_position_in_grid x
            %l = cast i64 %i
            %a = texture_read %t[%i, %i] level %l
            %w = texture_width %t level %i
            %b = texture_read %m[%i, %i, %w, %l]
            %c = cast f32x4 %b
            %u = cast f32 %w
            %r = texture_sample_compare %d[%u, %u] level %u, %u linear compare_less mip_nearest
            %all = construct f32x4 %r
            %sum = add %a, %c
            %more = add %sum, %all
            store %to[%i], %more
        }",
    )
    .expect("Metal has all of it");
    for line in [
        "ulong(l) < ulong(t.get_num_mip_levels()) && i < t.get_width(uint(l)) && i < t.get_height(uint(l)) ? t.read(uint2(i, i), uint(l)) : float4(0.0f);",
        "const uint w = i < t.get_num_mip_levels() ? t.get_width(i) : 0u;",
        "w < m.get_num_samples() && ulong(l) < ulong(m.get_array_size()) ? m.read(uint2(i, i), uint(l), w) : int4(0);",
        "mip_filter::nearest, compare_func::less);",
        "d.sample_compare(invar_sampler_0, float2(u, u), u, metal::level(u));",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

#[test]
fn what_metal_does_not_have_is_refused_by_name() {
    let refused = |params: &str, line: &str| {
        let kernel = format!(
            "kernel @k({params}) {{
                %i = thread_position_in_grid x
                %u = cast f32 %i
                {line}
            }}"
        );
        written(&kernel).expect_err(line).join("; ")
    };
    let line = "%t: texture1d f32 sample";
    let why = refused(line, "%v = texture_sample %t[%u] offset(1)");
    assert!(
        why.contains("`texture_sample`: Metal has no offset of one dimension"),
        "{why}"
    );
    let flat = "%t: texture2d f32 sample";
    let why = refused(flat, "%v = texture_sample %t[%u, %u] pixel repeat");
    assert!(why.contains("pixel coordinates do not repeat"), "{why}");
    let why = refused(
        flat,
        "%v = texture_sample %t[%u, %u] level %u pixel mip_nearest",
    );
    assert!(why.contains("of the first level"), "{why}");
    let bins = "%t: texture1d u32 read_write";
    let why = refused(bins, "%v = atomic_add %t[%i], %i");
    assert!(why.contains("`atomic_add` on a texel"), "{why}");
    let many: Vec<String> = (0..17).map(|n| format!("%s{n}: sampler")).collect();
    let why = refused(&many.join(", "), "");
    assert!(why.contains("Metal binds at most 16"), "{why}");
}
