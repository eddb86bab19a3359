//! Samples against the formulas of the Vulkan specification ("Texel Filtering", "Wrapping Operation") in double
//! precision.

use invar_texture::{
    Address, Coordinates, Filter, PixelFormat, Sampler, TextureShape, axis, sample,
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
        Address::ClampToZero => (0..n).contains(&i).then_some(i),
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
                };
                // Odd parts of a size that is none: no coordinate lies on an edge between texels.
                for i in -60..60 {
                    for j in -20..20 {
                        let scale = match coordinates {
                            Coordinates::Normalized => 1.0,
                            Coordinates::Pixel => 5.0,
                        };
                        let (u, v) = (i as f32 / 23.0 * scale, j as f32 / 13.0 * scale);
                        let got = sample(shape, &bytes, sampler, [u, v]).components[0];
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
    assert_eq!(seen, 2 * 4 * 2 * 120 * 40);
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
            };
            for coordinate in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38, -1e38] {
                let x = axis(coordinate, WIDTH, sampler);
                assert!((0.0..1.0).contains(&x.weight));
                let inside = |texel: &Option<u32>| texel.is_none_or(|x| x < WIDTH);
                assert!(x.texels.iter().all(inside));
                let sampled = sample(shape, &bytes, sampler, [coordinate, coordinate]);
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
        let at = [i as f32 / 777.0, i as f32 / 333.0];
        let got = sample(shape, &bytes, sampler, at).components[0];
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
