//! Cubes against the table of the Vulkan specification ("Cube Map Face Selection and Transformations"), in double
//! precision, and edges against what lies beside them in space.

use invar_texture::{Filter, PixelFormat, Place, Sampler, TextureShape, cube, sample};

/// The rows of the table: the axis of the largest coordinate and its sign, and by axis and sign what is across and down.
type Row = ((usize, f64), (usize, f64), (usize, f64));
const TABLE: [Row; 6] = [
    ((0, 1.0), (2, -1.0), (1, -1.0)),
    ((0, -1.0), (2, 1.0), (1, -1.0)),
    ((1, 1.0), (0, 1.0), (2, 1.0)),
    ((1, -1.0), (0, 1.0), (2, -1.0)),
    ((2, 1.0), (0, 1.0), (1, -1.0)),
    ((2, -1.0), (0, -1.0), (1, -1.0)),
];

fn golden(direction: [f64; 3]) -> (u32, [f64; 2]) {
    let mut axis = 2;
    for other in [1, 0] {
        if direction[other].abs() > direction[axis].abs() {
            axis = other;
        }
    }
    let sign = if direction[axis] < 0.0 { -1.0 } else { 1.0 };
    let face = TABLE
        .iter()
        .position(|row| row.0 == (axis, sign))
        .expect("a face");
    let (_, across, down) = TABLE[face];
    let along = direction[axis].abs();
    let place = |(axis, sign): (usize, f64)| 0.5 * (sign * direction[axis] / along) + 0.5;
    (face as u32, [place(across), place(down)])
}

#[test]
fn v11_a_direction_leads_to_the_face_of_the_table() {
    let mut seen = [0; 6];
    for i in -9..=9 {
        for j in -9..=9 {
            for k in -9..=9 {
                if (i, j, k) == (0, 0, 0) {
                    continue;
                }
                let direction = [i as f32 / 7.0, j as f32 / 7.0, k as f32 / 7.0];
                let (face, place) = cube::place(direction);
                let (expected, at) = golden(direction.map(f64::from));
                assert_eq!(face, expected, "{direction:?}");
                for (got, expected) in place.into_iter().zip(at) {
                    assert!((f64::from(got) - expected).abs() < 1e-6, "{direction:?}");
                }
                seen[face as usize] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 900), "{seen:?}");
}

/// The middle of a texel of a cube whose faces are 1 away from its middle.
fn middle([i, j, face]: [u32; 3], n: u32) -> [f64; 3] {
    let ((axis, sign), across, down) = TABLE[face as usize];
    let mut point = [0.0; 3];
    point[axis] = sign;
    for ((axis, sign), index) in [(across, i), (down, j)] {
        point[axis] = sign * ((2.0 * f64::from(index) + 1.0) / f64::from(n) - 1.0);
    }
    point
}

#[test]
fn v11_beyond_an_edge_lies_the_texel_beside_it() {
    let distance = |a: [f64; 3], b: [f64; 3]| {
        let squares = a.into_iter().zip(b).map(|(a, b)| (a - b) * (a - b));
        squares.sum::<f64>().sqrt()
    };
    for n in [1, 2, 3, 8] {
        let last = n - 1;
        for face in 0..6 {
            for along in 0..n {
                let l = i64::from(along);
                let edges = [
                    ([-1, l], [0, along]),
                    ([i64::from(n), l], [last, along]),
                    ([l, -1], [along, 0]),
                    ([l, i64::from(n)], [along, last]),
                ];
                for (beyond, [i, j]) in edges {
                    let found = cube::texel(face, beyond, n);
                    assert_ne!(found[2], face);
                    // Both middles are half a texel from the edge that they share.
                    let apart = distance(middle(found, n), middle([i, j, face], n));
                    let expected = 2f64.sqrt() / f64::from(n);
                    assert!(
                        (apart - expected).abs() < 1e-9,
                        "{face} {beyond:?}: {found:?}"
                    );
                }
                let inside = cube::texel(face, [l, 0], n);
                assert_eq!(inside, [along, 0, face]);
            }
        }
    }
}

#[test]
fn v11_a_linear_sample_at_an_edge_mixes_two_faces() {
    let shape = TextureShape::new(PixelFormat::R32Float, 2, 2).and_then(|s| s.with_depth(12));
    let shape = shape.expect("two cubes");
    // Each texel is the number of its slice.
    let texels = (0..48).map(|i| (i / 4) as f32);
    let bytes: Vec<u8> = texels.flat_map(f32::to_le_bytes).collect();
    let linear = Sampler {
        filter: Filter::Linear,
        ..Sampler::default()
    };
    let of = |at, element| {
        let place = Place {
            at,
            axes: 3,
            element,
            is_cube: true,
            ..Place::d2(0.0, 0.0)
        };
        sample(shape, &bytes, linear, place)
    };
    let value = |at, element| f32::from_bits(of(at, element).components[0]);
    assert_eq!(value([1.0, 0.0, 0.0], Some(0)), 0.0);
    // Between the faces of +x and +z, and of the second cube.
    assert_eq!(value([1.0, 0.0, 1.0], Some(0)), 2.0);
    assert_eq!(value([1.0, 0.0, 1.0], Some(1)), 8.0);
    assert_eq!(of([1.0, 0.0, 0.0], Some(2)).components, [0; 4]);
    assert_eq!(of([1.0, 0.0, 0.0], Some(-1)).texels, [None; 16]);
    for at in [
        [f32::NAN; 3],
        [0.0; 3],
        [f32::INFINITY; 3],
        [1e38, -1e38, 1e38],
    ] {
        assert!((0.0..6.0).contains(&value(at, Some(0))), "{at:?}");
    }
}
