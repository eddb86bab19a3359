//! The faces of cubes: which face a direction leads to and where on it, and which texel stands for one beyond an edge.
//!
//! Faces are those of Metal and Vulkan ("Cube Map Face Selection"): 0 to 5 look along +x, -x, +y, -y, +z and -z. Of a
//! direction `(x, y, z)` the largest magnitude chooses the axis, of equal ones z before y before x, and its sign the
//! face; with `+` for a face that looks along `+` and `-` for the other:
//!
//! | axis | across | down | along |
//! |---|---|---|---|
//! | x | `-+z` | `-y` | `x` |
//! | y | `x` | `+-z` | `y` |
//! | z | `+-x` | `-y` | `z` |
//!
//! Where on the face it is: `fma(across / |along|, 0.5, 0.5)` and the same of `down`, as normalized coordinates.
//!
//! A texel beyond an edge is one of the face that lies there: the one beside it. With `n` texels in a row, texel
//! `(i, j)` lies in the direction `(2i + 1 - n, 2j + 1 - n)` of a face that is `n` away. Beyond an edge across it lies
//! at `n` across, down as far as there are texels, and `n - 1` along; else beyond an edge down, `n` down and `n - 1`
//! along. The face and texel of that direction are found as above, exactly in integers. So of the four texels at a
//! corner of the cube, where three faces meet, the fourth is that of the face across.

/// A face, and whether it looks along the negative axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Face {
    /// 0 for x, 1 for y, 2 for z.
    axis: u32,
    negative: bool,
}

impl Face {
    const fn number(self) -> u32 {
        self.axis * 2 + self.negative as u32
    }

    fn of<N: Copy + PartialOrd + std::ops::Neg<Output = N> + Default>(direction: [N; 3]) -> Face {
        let magnitude = |c: N| if c < N::default() { -c } else { c };
        let [x, y, z] = direction.map(magnitude);
        let axis = match (z >= y && z >= x, y >= x) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        };
        Face {
            axis,
            negative: direction[axis as usize] < N::default(),
        }
    }

    /// Across and down of a direction.
    fn seen<N: Copy + std::ops::Neg<Output = N>>(self, [x, y, z]: [N; 3]) -> [N; 2] {
        let signed = |c: N| if self.negative { -c } else { c };
        match self.axis {
            0 => [-signed(z), -y],
            1 => [x, signed(z)],
            _ => [signed(x), -y],
        }
    }

    /// The direction of what is seen, so far along.
    fn direction(self, [across, down]: [i64; 2], along: i64) -> [i64; 3] {
        let signed = |c: i64| if self.negative { -c } else { c };
        match self.axis {
            0 => [signed(along), -down, -signed(across)],
            1 => [across, signed(along), signed(down)],
            _ => [signed(across), -down, signed(along)],
        }
    }
}

/// The face that a direction leads to, and the normalized coordinates there.
///
/// ```
/// use invar_texture::cube::place;
/// assert_eq!(place([2.0, 0.0, -1.0]), (0, [0.75, 0.5]));
/// ```
pub fn place(direction: [f32; 3]) -> (u32, [f32; 2]) {
    let face = Face::of(direction);
    let along = direction[face.axis as usize].abs();
    let coordinates = face.seen(direction).map(|c| (c / along).mul_add(0.5, 0.5));
    (face.number(), coordinates)
}

/// The texel of a face that stands for `(i, j)`, of which each is between -1 and `n`: its column, row and face.
///
/// ```
/// use invar_texture::cube::texel;
/// assert_eq!(texel(4, [1, 0], 2), [1, 0, 4]);
/// assert_eq!(texel(4, [2, 0], 2), [0, 0, 0]);
/// ```
pub fn texel(face: u32, [i, j]: [i64; 2], n: u32) -> [u32; 3] {
    let n = i64::from(n);
    let from = Face {
        axis: face / 2,
        negative: face % 2 == 1,
    };
    let (a, b) = (2 * i + 1 - n, 2 * j + 1 - n);
    let beyond_across = a.abs() > n;
    let most = if beyond_across { n - 1 } else { n };
    let (across, down) = (a.clamp(-n, n), b.clamp(-most, most));
    let beyond_down = !beyond_across && b.abs() > n;
    let along = if beyond_across || beyond_down {
        n - 1
    } else {
        n
    };
    let direction = from.direction([across, down], along);
    let face = Face::of(direction);
    let [i, j] = face.seen(direction).map(|c| ((c + n - 1) / 2) as u32);
    [i, j, face.number()]
}
