//! Levels: what the box filter makes, which of them a number chooses, and what a sample between two of them is, in
//! double precision.

use invar_texture::{
    Filter, LodClamp, Mip, PixelFormat, Place, Sampler, TextureShape, chosen_levels, fill_levels,
    sample,
};

fn shape(format: PixelFormat, width: u32, height: u32) -> TextureShape {
    let flat = TextureShape::new(format, width, height).expect("a texture");
    flat.with_levels(flat.most_levels())
        .expect("all its levels")
}

/// A level's texels of one channel of floats.
fn level(shape: TextureShape, bytes: &[u8], level: u32) -> Vec<f32> {
    let floats = bytes
        .chunks(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let start = shape.level_start(level) as usize;
    let [width, height, depth] = shape.level_extents(level);
    floats
        .skip(start)
        .take((width * height * depth) as usize)
        .collect()
}

#[test]
fn v8_each_level_has_the_means_of_the_one_before() {
    for (width, height) in [(8, 8), (7, 5), (1, 9), (6, 1), (3, 2), (1, 1)] {
        let shape = shape(PixelFormat::R32Float, width, height);
        let first = (0..width * height).map(|i| ((i * 37 % 101) as f32) / 7.0);
        let mut bytes: Vec<u8> = first.flat_map(f32::to_le_bytes).collect();
        bytes.resize(shape.size_bytes() as usize, 0xee);
        fill_levels(shape, &mut bytes).expect("floats have means");
        for l in 1..shape.levels {
            let [columns, rows, _] = shape.level_extents(l - 1).map(|n| n as usize);
            let [width, height, _] = shape.level_extents(l).map(|n| n as usize);
            let before = level(shape, &bytes, l - 1);
            // How much of texel `of` of a row of `n` lies in texel `i` of as long a row of `m`, of all that does.
            let share = |of: usize, n: usize, i: usize, m: usize| {
                let (start, end) = (of as f64 / n as f64, (of + 1) as f64 / n as f64);
                let (from, to) = (i as f64 / m as f64, (i + 1) as f64 / m as f64);
                (end.min(to) - start.max(from)).max(0.0) * m as f64
            };
            for (i, got) in level(shape, &bytes, l).into_iter().enumerate() {
                let (x, y) = (i % width, i / width);
                let parts = before.iter().enumerate().map(|(j, texel)| {
                    let across = share(j % columns, columns, x, width);
                    across * share(j / columns, rows, y, height) * f64::from(*texel)
                });
                let mean: f64 = parts.sum();
                assert!(
                    (f64::from(got) - mean).abs() < 1e-5,
                    "{width}x{height} level {l}"
                );
            }
        }
    }
}

#[test]
fn v8_the_last_column_of_an_odd_number_is_not_left_out() {
    let shape = shape(PixelFormat::R8Unorm, 3, 1);
    let mut bytes = vec![0, 0, 240, 0];
    fill_levels(shape, &mut bytes).expect("numbers have a mean");
    assert_eq!(bytes[3], 80);
}

#[test]
fn v8_srgb_is_averaged_as_light() {
    let shape = shape(PixelFormat::Rgba8UnormSrgb, 2, 1);
    let mut bytes = vec![0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0];
    fill_levels(shape, &mut bytes).expect("light has a mean");
    // Half of the light is code 188, half of alpha 128.
    assert_eq!(bytes[8..], [188, 188, 188, 128]);
    let integers = TextureShape::new(PixelFormat::R8Uint, 2, 1).expect("a texture");
    assert!(fill_levels(integers, &mut [0, 0]).is_err());
}

#[test]
fn v8_a_number_chooses_levels_as_the_specification_has_it() {
    // "Level-of-Detail Operation" and "Image Level(s) Selection" of the Vulkan specification.
    for i in -40..200 {
        let lod = i as f32 / 16.0;
        let d = f64::from(lod).clamp(0.0, 5.0);
        let nearest = ((d + 0.5).ceil() - 1.0).max(0.0) as u32;
        assert_eq!(
            chosen_levels(lod, 6, Mip::Nearest, LodClamp::ALL),
            (nearest, None),
            "{lod}"
        );
        let first = d.floor() as u32;
        let (got, second) = chosen_levels(lod, 6, Mip::Linear, LodClamp::ALL);
        assert_eq!(got, first);
        assert_eq!(
            second,
            Some(((first + 1).min(5), (d - d.floor()) as f32)),
            "{lod}"
        );
        assert_eq!(chosen_levels(lod, 6, Mip::None, LodClamp::ALL), (0, None));
        assert_eq!(chosen_levels(lod, 1, Mip::Linear, LodClamp::ALL), (0, None));
    }
    for (lod, level) in [(f32::NAN, 0), (f32::INFINITY, 5), (f32::NEG_INFINITY, 0)] {
        assert_eq!(
            chosen_levels(lod, 6, Mip::Nearest, LodClamp::ALL),
            (level, None)
        );
    }
}

#[test]
fn v8_a_sample_between_levels_is_of_both() {
    let shape = shape(PixelFormat::R32Float, 4, 4);
    let mut bytes: Vec<u8> = (0..16).flat_map(|i| (i as f32).to_le_bytes()).collect();
    bytes.resize(shape.size_bytes() as usize, 0);
    fill_levels(shape, &mut bytes).expect("floats have means");
    let sampler = Sampler {
        filter: Filter::Linear,
        mip: Mip::Linear,
        ..Sampler::default()
    };
    let of = |lod| {
        let place = Place {
            lod: Some(lod),
            ..Place::d2(0.3, 0.6)
        };
        sample(shape, &bytes, sampler, place)
    };
    let value = |lod| f64::from(f32::from_bits(of(lod).components[0]));
    let (first, second) = (value(0.0), value(1.0));
    assert!((value(0.25) - (0.75 * first + 0.25 * second)).abs() < 1e-6);
    // Four texels of each level, the second behind all of the first.
    let texels = of(0.25).texels;
    let texel = |t: &Option<u64>| t.expect("a texel");
    assert!(texels[..4].iter().map(texel).all(|t| t < 16));
    assert!(
        texels[8..12]
            .iter()
            .map(texel)
            .all(|t| (16..20).contains(&t))
    );
    assert!([4..8, 12..16].into_iter().all(|r| texels[r] == [None; 4]));
}

#[test]
fn v18_each_level_of_a_volume_has_the_means_of_the_one_before() {
    // Each texel of a level is the integral of the one before over its box, in double precision.
    let sizes = [
        (4, 4, 4),
        (5, 3, 7),
        (1, 1, 6),
        (2, 6, 1),
        (3, 1, 4),
        (8, 2, 3),
        (1, 1, 1),
    ];
    for (width, height, depth) in sizes {
        let shape = TextureShape::volume(PixelFormat::R32Float, width, height, depth);
        let shape = shape.and_then(|s| s.with_levels(s.most_levels()));
        let shape = shape.expect("all its levels");
        let first = (0..width * height * depth).map(|i| ((i * 37 % 101) as f32) / 7.0);
        let mut bytes: Vec<u8> = first.flat_map(f32::to_le_bytes).collect();
        bytes.resize(shape.size_bytes() as usize, 0xee);
        fill_levels(shape, &mut bytes).expect("floats have means");
        assert_eq!(shape.level_extents(shape.levels - 1), [1, 1, 1]);
        for l in 1..shape.levels {
            let from = shape.level_extents(l - 1).map(|n| n as usize);
            let to = shape.level_extents(l).map(|n| n as usize);
            let before = level(shape, &bytes, l - 1);
            // How much of a place along an axis of `n` lies in place `i` of `m`, of all that does.
            let share = |of: usize, n: usize, i: usize, m: usize| {
                let (start, end) = (of as f64 / n as f64, (of + 1) as f64 / n as f64);
                let (from, to) = (i as f64 / m as f64, (i + 1) as f64 / m as f64);
                (end.min(to) - start.max(from)).max(0.0) * m as f64
            };
            let place = |i: usize, [w, h, _]: [usize; 3]| [i % w, i / w % h, i / w / h];
            for (i, got) in level(shape, &bytes, l).into_iter().enumerate() {
                let at = place(i, to);
                let parts = before.iter().enumerate().map(|(j, texel)| {
                    let of = place(j, from);
                    let shares = [0, 1, 2].map(|d| share(of[d], from[d], at[d], to[d]));
                    shares.iter().product::<f64>() * f64::from(*texel)
                });
                let mean: f64 = parts.sum();
                assert!(
                    (f64::from(got) - mean).abs() < 1e-5,
                    "{width}x{height}x{depth} level {l}: {got}, not {mean}"
                );
            }
        }
    }
}

#[test]
fn v18_a_sample_between_levels_of_a_volume_is_of_sixteen_texels() {
    let shape = TextureShape::volume(PixelFormat::R32Float, 4, 4, 4);
    let shape = shape.and_then(|s| s.with_levels(2)).expect("a volume");
    let mut bytes: Vec<u8> = (0..64).flat_map(|i| (i as f32).to_le_bytes()).collect();
    bytes.resize(shape.size_bytes() as usize, 0);
    fill_levels(shape, &mut bytes).expect("floats have means");
    let sampler = Sampler {
        filter: Filter::Linear,
        mip: Mip::Linear,
        ..Sampler::default()
    };
    let of = |lod| {
        let place = Place {
            at: [0.3, 0.6, 0.4],
            axes: 3,
            lod: Some(lod),
            ..Place::d2(0.0, 0.0)
        };
        sample(shape, &bytes, sampler, place)
    };
    // Inside, the numbers grow evenly along each axis, and a sample is the number at its place; the means too.
    let value = |lod| f64::from(f32::from_bits(of(lod).components[0]));
    let at = |u: f64| u * 4.0 - 0.5;
    let exact = at(0.3) + 4.0 * at(0.6) + 16.0 * at(0.4);
    for lod in [0.0, 0.25, 1.0] {
        assert!((value(lod) - exact).abs() < 1e-4, "{lod}: {}", value(lod));
    }
    let texels = of(0.25).texels.map(|t| t.expect("a texel"));
    assert!(texels[..8].iter().all(|t| *t < 64));
    assert!(texels[8..].iter().all(|t| (64..72).contains(t)));
}

#[test]
fn v18_places_of_texels_of_volumes_are_found_again() {
    let shape = TextureShape::volume(PixelFormat::R8Unorm, 5, 3, 6);
    let shape = shape.and_then(|s| s.with_levels(3)).expect("a volume");
    assert_eq!(shape.texels(), 90 + 2 * 3 + 1);
    for texel in 0..shape.texels() {
        let ([x, y, z], level) = shape.place(texel);
        let at = [x, y, z].map(i128::from);
        assert_eq!(shape.texel(at, level.into()), Some(texel));
    }
    let many = TextureShape::volume(PixelFormat::R8Unorm, 1, 2, 4).and_then(|s| s.with_levels(4));
    let why = "a texture of 1x2x4 has 1 to 3 levels, not 4";
    assert_eq!(many.expect_err("there are three"), why);
}

#[test]
fn v8_places_of_texels_are_found_again() {
    let shape = shape(PixelFormat::R8Unorm, 5, 3)
        .with_depth(2)
        .expect("two elements");
    for texel in 0..shape.texels() {
        let ([x, y, z], level) = shape.place(texel);
        let at = [x, y, z].map(i128::from);
        assert_eq!(shape.texel(at, level.into()), Some(texel));
    }
    assert_eq!(shape.texel([0; 3], shape.levels.into()), None);
    assert_eq!(shape.texel([0; 3], -1), None);
}
