//! Samples against the formulas of the Vulkan specification ("Texel Filtering", "Wrapping Operation") in double
//! precision.

use invar_texture::{
    Address, Border, Coordinates, Filter, PixelFormat, Place, Sampler, TextureShape, axis, gather,
    sample,
};

const WIDTH: u32 = 5;
const HEIGHT: u32 = 3;

fn texture() -> (TextureShape, Vec<u8>) {
    let shape = TextureShape::new(PixelFormat::R32Float, WIDTH, HEIGHT).expect("a texture");
    let texels = (0..shape.texels()).map(|i| ((i * 37 % 11) as f32) - 4.0);
    (shape, texels.flat_map(f32::to_le_bytes).collect())
}

/// The texel at integer coordinates, which may lie beyond the edges.
fn texel(bytes: &[u8], address: Address, x: i64, y: i64) -> f64 {
    let wrapped = |i: i64, n: i64| match address {
        Address::ClampToEdge => Some(i.clamp(0, n - 1)),
        Address::ClampToZero | Address::ClampToBorder => (0..n).contains(&i).then_some(i),
        Address::Repeat => Some((i % n + n) % n),
        Address::MirroredRepeat => {
            // (n - 1) - mirror((i mod 2n) - n), where mirror(k) is k, or -(1 + k) if it is negative.
            let k = (i % (2 * n) + 2 * n) % (2 * n) - n;
            let mirrored = if k >= 0 { k } else { -(1 + k) };
            Some(n - 1 - mirrored)
        }
    };
    let places = (wrapped(x, WIDTH.into()), wrapped(y, HEIGHT.into()));
    let (Some(x), Some(y)) = places else {
        return 0.0;
    };
    let at = (y * i64::from(WIDTH) + x) as usize * 4;
    let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    f32::from_le_bytes(bytes).into()
}

/// A sample, and how much it may change by the rounding of the coordinates.
fn golden(bytes: &[u8], sampler: Sampler, u: f64, v: f64) -> f64 {
    let (u, v) = match sampler.coordinates {
        Coordinates::Normalized => (u * f64::from(WIDTH), v * f64::from(HEIGHT)),
        Coordinates::Pixel => (u, v),
    };
    let at = |x: i64, y: i64| texel(bytes, sampler.address, x, y);
    match sampler.filter {
        Filter::Nearest => at(u.floor() as i64, v.floor() as i64),
        Filter::Linear => {
            let (u, v) = (u - 0.5, v - 0.5);
            let (i, j) = (u.floor(), v.floor());
            let (a, b) = (u - i, v - j);
            let (i, j) = (i as i64, j as i64);
            (1.0 - a) * (1.0 - b) * at(i, j)
                + a * (1.0 - b) * at(i + 1, j)
                + (1.0 - a) * b * at(i, j + 1)
                + a * b * at(i + 1, j + 1)
        }
    }
}

#[test]
fn samples_are_those_of_the_specification() {
    let (shape, bytes) = texture();
    let mut seen = 0;
    for filter in Filter::ALL {
        for address in Address::ALL {
            for coordinates in Coordinates::ALL {
                let sampler = Sampler {
                    filter,
                    address,
                    coordinates,
                    ..Sampler::default()
                };
                // Odd parts of a size that is none: no coordinate lies on an edge between texels.
                for i in -60..60 {
                    for j in -20..20 {
                        let scale = match coordinates {
                            Coordinates::Normalized => 1.0,
                            Coordinates::Pixel => 5.0,
                        };
                        let (u, v) = (i as f32 / 23.0 * scale, j as f32 / 13.0 * scale);
                        let got = sample(shape, &bytes, sampler, Place::d2(u, v)).components[0];
                        let got = f64::from(f32::from_bits(got));
                        let expected = golden(&bytes, sampler, u.into(), v.into());
                        assert!(
                            (got - expected).abs() < 1e-4,
                            "{sampler:?} at {u}, {v}: {got}, expected {expected}"
                        );
                        seen += 1;
                    }
                }
            }
        }
    }
    assert_eq!(seen, 2 * 5 * 2 * 120 * 40);
}

#[test]
fn coordinates_that_are_no_places_lead_to_texels_all_the_same() {
    let (shape, bytes) = texture();
    for filter in Filter::ALL {
        for address in Address::ALL {
            let sampler = Sampler {
                filter,
                address,
                coordinates: Coordinates::Normalized,
                ..Sampler::default()
            };
            for coordinate in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38, -1e38] {
                let x = axis(coordinate, WIDTH, sampler);
                assert!((0.0..1.0).contains(&x.weight));
                let inside = |texel: &Option<u32>| texel.is_none_or(|x| x < WIDTH);
                assert!(x.texels.iter().all(inside));
                let sampled = sample(shape, &bytes, sampler, Place::d2(coordinate, coordinate));
                assert!(f32::from_bits(sampled.components[0]).is_finite());
            }
        }
    }
}

#[test]
fn a_texture_of_one_value_is_sampled_as_it() {
    let shape = TextureShape::new(PixelFormat::R32Float, WIDTH, HEIGHT).expect("a texture");
    let value = 0.1f32;
    let bytes: Vec<u8> = (0..shape.texels())
        .flat_map(|_| value.to_le_bytes())
        .collect();
    let sampler = Sampler {
        filter: Filter::Linear,
        ..Sampler::default()
    };
    for i in 0..1000 {
        let place = Place::d2(i as f32 / 777.0, i as f32 / 333.0);
        let got = sample(shape, &bytes, sampler, place).components[0];
        assert_eq!(f32::from_bits(got), value);
    }
}

#[test]
fn sizes_are_limited() {
    let of = |w, h| TextureShape::new(PixelFormat::R8Unorm, w, h);
    assert!(of(1, 1).is_ok() && of(65536, 16384).is_ok());
    assert!(of(0, 1).is_err() && of(1, 0).is_err() && of(65537, 1).is_err());
    let error = of(65536, 65536).expect_err("too many");
    assert_eq!(
        error,
        "a texture has at most 1073741824 texels; 65536x65536 are 4294967296"
    );
}

/// A texture of slices whose texels are numbered.
fn numbered(width: u32, height: u32, depth: u32) -> (TextureShape, Vec<u8>) {
    let shape = TextureShape::new(PixelFormat::R32Float, width, height).expect("a texture");
    let shape = shape.with_depth(depth).expect("a texture");
    let texels = (0..shape.texels()).map(|i| (i * i % 23) as f32);
    (shape, texels.flat_map(f32::to_le_bytes).collect())
}

#[test]
fn v5_samples_of_one_and_three_dimensions_weigh_what_is_around() {
    let linear = Sampler {
        filter: Filter::Linear,
        coordinates: Coordinates::Pixel,
        ..Sampler::default()
    };
    let (shape, bytes) = numbered(5, 4, 3);
    let value = |x: usize, y: usize, z: usize| {
        let i = (z * 4 + y) * 5 + x;
        (i * i % 23) as f64
    };
    for (x, y, z) in [(1.75, 2.25, 1.9), (0.5, 0.5, 0.5), (3.3, 1.1, 2.2)] {
        let place = Place {
            at: [x, y, z],
            axes: 3,
            element: None,
            lod: None,
            is_cube: false,
            reference: None,
            offset: [0; 3],
        };
        let got = f32::from_bits(sample(shape, &bytes, linear, place).components[0]);
        let mut expected = 0.0;
        let part = |at: f32, i: usize| {
            let u = f64::from(at) - 0.5;
            let a = u - u.floor();
            (u.floor() as usize + i, if i == 0 { 1.0 - a } else { a })
        };
        for corner in 0..8 {
            let (i, a) = part(x, corner & 1);
            let (j, b) = part(y, corner >> 1 & 1);
            let (k, c) = part(z, corner >> 2);
            expected += a * b * c * value(i.min(4), j.min(3), k.min(2));
        }
        assert!(
            (f64::from(got) - expected).abs() < 1e-4,
            "{got}, {expected}"
        );
    }
    let (row, bytes) = numbered(5, 1, 1);
    let place = Place {
        at: [1.25, 0.0, 0.0],
        axes: 1,
        element: None,
        lod: None,
        is_cube: false,
        reference: None,
        offset: [0; 3],
    };
    let got = sample(row, &bytes, linear, place);
    assert_eq!(f32::from_bits(got.components[0]), 0.25 * 0.0 + 0.75 * 1.0);
    assert_eq!(got.texels[..2], [Some(0), Some(1)]);
}

#[test]
fn an_array_has_elements_that_do_not_mix() {
    let (shape, bytes) = numbered(2, 1, 3);
    let linear = Sampler {
        filter: Filter::Linear,
        ..Sampler::default()
    };
    let of = |element| {
        let place = Place {
            at: [0.5, 0.5, 0.0],
            axes: 2,
            element: Some(element),
            lod: None,
            is_cube: false,
            reference: None,
            offset: [0; 3],
        };
        sample(shape, &bytes, linear, place)
    };
    // Squares modulo 23 of 2, 3 and of 4, 5.
    assert_eq!(f32::from_bits(of(1).components[0]), (4.0 + 9.0) / 2.0);
    assert_eq!(f32::from_bits(of(2).components[0]), (16.0 + 2.0) / 2.0);
    for beyond in [-1, 3, i128::MAX] {
        assert_eq!(of(beyond).components, [0; 4]);
        assert_eq!(of(beyond).texels, [None; 16]);
    }
}

#[test]
fn v6_a_gather_goes_around_from_the_lower_left() {
    let (shape, bytes) = numbered(2, 2, 1);
    let got = gather(shape, &bytes, Sampler::default(), Place::d2(0.5, 0.5), 0);
    // Rows 0, 1 and 4, 9.
    assert_eq!(got.components.map(f32::from_bits), [4.0, 9.0, 1.0, 0.0]);
    let alpha = gather(shape, &bytes, Sampler::default(), Place::d2(0.5, 0.5), 3);
    assert_eq!(alpha.components.map(f32::from_bits), [1.0; 4]);
}

#[test]
fn v14_beyond_the_edges_lies_the_colour_of_the_border() {
    let (shape, bytes) = numbered(2, 1, 1);
    for (border, colour) in [
        (Border::TransparentBlack, [0.0, 0.0, 0.0, 0.0]),
        (Border::OpaqueBlack, [0.0, 0.0, 0.0, 1.0]),
        (Border::OpaqueWhite, [1.0; 4]),
    ] {
        let sampler = Sampler {
            address: Address::ClampToBorder,
            border,
            ..Sampler::default()
        };
        let beyond = sample(shape, &bytes, sampler, Place::d2(1.5, 0.5));
        assert_eq!(beyond.components.map(f32::from_bits), colour);
        assert_eq!(beyond.texels, [None; 16]);
        let inside = sample(shape, &bytes, sampler, Place::d2(0.75, 0.5));
        assert_eq!(inside.components.map(f32::from_bits), [1.0, 0.0, 0.0, 1.0]);
    }
}
