//! Which functions and samplers textures of each arrangement have: `+` where the kernel is sound and both Metal and WGSL
//! have it, `m` where of the two Metal alone has it, `w` WGSL alone, `.` neither, and `-` where the verifier refuses it.
//! What is written as WGSL is checked by naga.

use invar_codegen::msl::{MslOptions, write as write_msl};
use invar_codegen::wgsl::{Features, write as write_wgsl};
use invar_ir::text::parse;
use invar_ir::{Dimension, Scalar, TextureAccess, TextureType, verify};

use crate::wgsl::{options, validate};

/// Every arrangement, depths behind the others.
fn arrangements() -> Vec<TextureType> {
    let sampled = |dimension: Dimension| {
        let access = match dimension.axes() {
            0 => TextureAccess::Read,
            _sampled => TextureAccess::Sample,
        };
        TextureType::new(dimension, Scalar::F32, access)
    };
    let depths = Dimension::DEPTHS.map(|d| sampled(d).of_depths());
    Dimension::ALL
        .map(sampled)
        .into_iter()
        .chain(depths)
        .collect()
}

/// Coordinates of a texel, or of a sample.
fn place(ty: TextureType, is_sample: bool) -> String {
    let between = if is_sample { ty.dimension.axes() } else { 0 };
    let at = (0..ty.dimension.coordinates()).map(|n| match n < between {
        true => "%c",
        false => "%x",
    });
    format!("[{}]", at.collect::<Vec<_>>().join(", "))
}

/// What becomes of a kernel that does that with a texture `%t`.
fn verdict(ty: TextureType, line: &str) -> char {
    let source = format!(
        "kernel @k(%t: {ty}, %x: u32, %c: f32, %s: sampler, %v: f32x4, %to: device write u32)
            threadgroup(8) allow(out_of_bounds_stores) {{
            {line}
            store %to[%x], %x
        }}"
    );
    let Ok(module) = parse("k.inv", &source).and_then(verify) else {
        return '-';
    };
    let metal = write_msl(&module, "k", &MslOptions::default()).is_ok();
    let kernel = module.kernel("k").expect("it was parsed");
    let wgsl = write_wgsl(&module, "k", &options(kernel, Features::DESKTOP, None));
    if let Ok(written) = &wgsl {
        let valid = validate(&written.text);
        valid.unwrap_or_else(|e| panic!("{source}\n{}\n{e}", written.text));
    }
    match (metal, wgsl.is_ok()) {
        (true, true) => '+',
        (true, false) => 'm',
        (false, true) => 'w',
        (false, false) => '.',
    }
}

/// Compares a table with what is so: a line for each row, and in it a letter for each column.
fn compare(rows: &[(String, String)], expected: &str) {
    let found: Vec<String> = rows
        .iter()
        .map(|(name, letters)| format!("{name:18} {letters}"))
        .collect();
    let expected: Vec<&str> = expected
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    assert_eq!(found, expected, "\n{}\n", found.join("\n"));
}

#[test]
fn functions_of_every_arrangement() {
    let with = |ty: TextureType, access| TextureType { access, ..ty };
    let rows: Vec<(String, String)> = arrangements()
        .into_iter()
        .map(|ty| {
            let (texel, at) = (place(ty, false), place(ty, true));
            let written = with(ty, TextureAccess::Write);
            let both = with(ty, TextureAccess::ReadWrite);
            let words = with(
                TextureType {
                    component: Scalar::U32,
                    ..ty
                },
                TextureAccess::ReadWrite,
            );
            let read = with(ty, TextureAccess::Read);
            let axes = vec!["%c"; ty.dimension.axes()].join(", ");
            let cells = [
                (ty, format!("%r = texture_read %t{texel}")),
                (ty, format!("%r = texture_read %t{texel} level %x")),
                (written, format!("texture_write %t{texel}, %v")),
                (written, format!("texture_write %t{texel} level %x, %v")),
                (
                    both,
                    format!("%r = texture_read %t{texel}\n texture_write %t{texel}, %r"),
                ),
                (both, "texture_fence %t".to_string()),
                (words, format!("%r = atomic_add %t{texel}, %x")),
                (read, "%r = texture_width %t".to_string()),
                (read, "%r = texture_height %t".to_string()),
                (read, "%r = texture_depth %t".to_string()),
                (read, "%r = texture_array_size %t".to_string()),
                (read, "%r = texture_levels %t".to_string()),
                (read, "%r = texture_samples %t".to_string()),
                (ty, format!("%r = texture_sample %t{at} linear")),
                (
                    ty,
                    format!("%r = texture_sample %t{at} level %c linear mip_linear"),
                ),
                (
                    ty,
                    format!("%r = texture_sample %t{at} gradient [{axes}], [{axes}] mip_linear"),
                ),
                (ty, format!("%r = texture_sample %t{at} offset(1) linear")),
                (ty, format!("%r = texture_gather %t{at}")),
                (ty, format!("%r = texture_gather %t{at} y")),
                (ty, format!("%r = texture_gather %t{at} offset(1) x")),
                (
                    ty,
                    format!("%r = texture_sample_compare %t{at}, %c compare_less"),
                ),
                (
                    ty,
                    format!(
                        "%r = texture_sample_compare %t{at} level %c, %c compare_less mip_nearest"
                    ),
                ),
                (
                    ty,
                    format!("%r = texture_gather_compare %t{at}, %c compare_less"),
                ),
            ];
            let letters = cells.iter().map(|(ty, line)| verdict(*ty, line));
            (ty.name().to_string(), letters.collect())
        })
        .collect();
    // Texels read and of a level, written and of a level, both, fences, atomics; sizes, levels, samples; samples, of a
    // level, with gradients, with offsets; gathers, of another component, with offsets; comparisons, of a level, gathers.
    compare(
        &rows,
        "
        texture1d          +-+-++.+-----m--.------
        texture1d_array    m-m-mm.m--m--m--.------
        texture2d          +++m++.++--+-+++++++---
        texture2d_array    +++m++.++-++-+++++++---
        texture2d_ms       +------++---+----------
        texture2d_ms_array m------mm-m-m----------
        texture3d          +++m++.+++-+-++++------
        texturecube        mmmmmm-++--+-+++-++----
        texturecube_array  mmmmmm-++-++-+++-++----
        texture_buffer     m-m-mm.m---------------
        depth2d            ++-----++--+-+mm++-++m+
        depth2d_array      ++-----++-++-+mm++-++m+
        depthcube          mm-----++--+-+mm-+--+m+
        depthcube_array    mm-----++-++-+mm-+--+m+
        ",
    );
}

#[test]
fn samplers_of_every_arrangement() {
    let how = [
        "nearest",
        "linear",
        "clamp_to_zero",
        "clamp_to_border border_opaque_white",
        "border_opaque_black",
        "repeat",
        "mirrored_repeat",
        "mip_nearest",
        "mip_linear",
        "linear mip_linear lod_clamp(0.5, 2)",
        "lod_clamp(0.5, 2)",
        "compare_less",
        "pixel",
        "pixel clamp_to_zero",
        "pixel repeat",
        "pixel mip_nearest",
        "%s",
        "%s normalized",
    ];
    let mut rows = Vec::new();
    for ty in arrangements()
        .into_iter()
        .filter(|ty| ty.dimension.axes() > 0)
    {
        let at = place(ty, true);
        let all = |component, function: &str| {
            let ty = TextureType { component, ..ty };
            let all = how.iter().map(|how| {
                let compares = match function.starts_with("sample_compare") && !how.starts_with('%')
                {
                    true => "compare_less",
                    false => "",
                };
                verdict(ty, &format!("%r = texture_{function} {compares} {how}"))
            });
            all.collect::<String>()
        };
        let sample = format!("sample %t{at}");
        let gather = format!("gather %t{at} x");
        let compared = format!("sample_compare %t{at}, %c");
        rows.push((ty.name().to_string(), all(Scalar::F32, &sample)));
        if !ty.is_depth {
            rows.push(("of integers".to_string(), all(Scalar::U32, &sample)));
        }
        if all(Scalar::F32, &gather).contains(|letter| letter != '-') {
            rows.push(("gather".to_string(), all(Scalar::F32, &gather)));
        }
        if ty.is_depth {
            rows.push(("compare".to_string(), all(Scalar::F32, &compared)));
        }
    }
    compare(
        &rows,
        "
        texture1d          mmmmmmm---mmmm.-mm
        of integers        m-mmmmm---mmmm.-mm
        texture1d_array    mmmmmmm---mm...-mm
        of integers        m-mmmmm---mm...-mm
        texture2d          ++mm++++++++mm..++
        of integers        m-mmmmmm--mmmm..mm
        gather             ++mm++++++++mm..++
        texture2d_array    ++mm++++++++....++
        of integers        m-mmmmmm--mm....mm
        gather             ++mm++++++++....++
        texture3d          ++mm++++++++....++
        of integers        m-mmmmmm--mm....mm
        texturecube        ++++++++++++----++
        of integers        m-mmmmmm--mm----mm
        gather             ++++++++++++----++
        texturecube_array  ++++++++++++----++
        of integers        m-mmmmmm--mm----mm
        gather             ++++++++++++----++
        depth2d            ++mm++++++++mm..++
        gather             ++mm++++++++mm..++
        compare            ++mm++++++++mm..++
        depth2d_array      ++mm++++++++....++
        gather             ++mm++++++++....++
        compare            ++mm++++++++....++
        depthcube          ++++++++++++----++
        gather             ++++++++++++----++
        compare            ++++++++++++----++
        depthcube_array    ++++++++++++----++
        gather             ++++++++++++----++
        compare            ++++++++++++----++
        ",
    );
}
