//! Samples of cubes, as [`invar_texture::cube`] has them.

use invar_ir::{Const, Op, Scalar, Value};
use invar_texture::sample::GATHERED;
use invar_texture::{Filter, Sampler};

use super::writer::Writer;

/// A face of a cube: which axis it lies on, x where nothing is, and whether it looks along the negative one.
#[derive(Clone, Copy)]
pub(super) struct Face {
    pub(super) is_z: Value,
    /// If it is not z.
    pub(super) is_y: Value,
    pub(super) negative: Value,
}

/// What the direction of a sample leads to.
struct Direction {
    face: Face,
    /// The column and row on the face, which may be beyond an edge by one.
    indices: [Value; 2],
    /// Of a linear sample how much it has of the next.
    weights: [Option<Value>; 2],
    /// Texels in a row and in a column.
    extent: Value,
    /// Of an array the element, and whether there is one.
    element: Option<(Value, Value)>,
}

impl Writer<'_> {
    /// As [`invar_texture::cube`] says, operation by operation.
    pub(super) fn sample_cube(&mut self, sampler: Sampler, args: &[Value]) -> [Value; 4] {
        let found = self.direction(sampler.filter, args);
        if sampler.filter == Filter::Nearest {
            let (zero, one) = (self.i32(0), self.i32(1));
            let last = self.op(Op::Sub, &[found.extent, one]);
            let [i, j] = found.indices.map(|index| {
                let above = self.op(Op::Max, &[index, zero]);
                self.op(Op::Min, &[above, last])
            });
            let number = self.face_number(found.face);
            let texel = self.cube_texel([i, j, number], found.element);
            return self.there(found.element, texel);
        }
        let corners = [0, 1, 2, 3].map(|corner| self.cube_corner(&found, corner));
        let weights = found.weights.map(|weight| match weight {
            Some(weight) => weight,
            None => unreachable!("a linear sample has weights"),
        });
        let mixed = [0, 1, 2, 3].map(|c| {
            let top = self.between(corners[0][c], corners[1][c], weights[0]);
            let bottom = self.between(corners[2][c], corners[3][c], weights[0]);
            self.between(top, bottom, weights[1])
        });
        self.there(found.element, mixed)
    }

    /// A component of the four texels that a linear sample is made of.
    pub(super) fn gather_cube(&mut self, args: &[Value], component: usize) -> [Value; 4] {
        let found = self.direction(Filter::Linear, args);
        let gathered = GATHERED.map(|corner| self.cube_corner(&found, corner as i32)[component]);
        self.there(found.element, gathered)
    }

    /// What a direction, and behind it the element of an array, leads to.
    fn direction(&mut self, filter: Filter, args: &[Value]) -> Direction {
        let element = args.get(3).map(|element| {
            let extent = self.elements();
            let (element, inside) = self.coordinate(*element, extent);
            (self.cast(Scalar::I32, element), inside)
        });
        let extent = self.extent(0);
        let extent = self.cast(Scalar::I32, extent);
        let direction = [args[0], args[1], args[2]];
        let (face, along) = self.face_of(direction);
        let seen = self.seen(face, direction);
        let along = self.op(Op::Abs, &[along]);
        let half = self.f32(0.5);
        let [x, y] = seen.map(|c| {
            let part = self.op(Op::Div, &[c, along]);
            let place = self.op(Op::Fma, &[part, half, half]);
            self.whole(filter, place, extent)
        });
        Direction {
            face,
            indices: [x.0, y.0],
            weights: [x.1, y.1],
            extent,
            element,
        }
    }

    /// One of the four texels around, by the bits of the corner.
    fn cube_corner(&mut self, found: &Direction, corner: i32) -> [Value; 4] {
        let least = self.i32(-1);
        let mut index = |index: Value, beside: i32| {
            let beside = self.i32(beside);
            let next = self.op(Op::Add, &[index, beside]);
            let above = self.op(Op::Max, &[next, least]);
            self.op(Op::Min, &[above, found.extent])
        };
        let i = index(found.indices[0], corner & 1);
        let j = index(found.indices[1], corner >> 1);
        let place = self.across_edges(found.face, [i, j], found.extent);
        self.cube_texel(place, found.element)
    }

    /// The texel of a column, row and face.
    pub(super) fn cube_texel(
        &mut self,
        [i, j, face]: [Value; 3],
        element: Option<(Value, Value)>,
    ) -> [Value; 4] {
        let mut places = vec![i, j, face];
        places.extend(element.map(|(element, _)| element));
        let number = self.number(&places);
        let number = self.cast(Scalar::U32, number);
        self.sampled_texel(number, None)
    }

    /// The face of a direction, and how far it goes along its axis.
    pub(super) fn face_of(&mut self, direction: [Value; 3]) -> (Face, Value) {
        let [x, y, z] = direction.map(|c| self.op(Op::Abs, &[c]));
        let above_y = self.op(Op::Ge, &[z, y]);
        let above_x = self.op(Op::Ge, &[z, x]);
        let is_z = self.op(Op::And, &[above_y, above_x]);
        let is_y = self.op(Op::Ge, &[y, x]);
        let [x, y, z] = direction;
        let x_or_y = self.select(is_y, y, x);
        let along = self.select(is_z, z, x_or_y);
        let scalar = self.b.ty(along).component_scalar();
        let zero = self.b.constant(Const { scalar, bits: 0 });
        let negative = self.op(Op::Lt, &[along, zero]);
        let face = Face {
            is_z,
            is_y,
            negative,
        };
        (face, along)
    }

    /// The number of a face, as `i32`.
    pub(super) fn face_number(&mut self, face: Face) -> Value {
        let [x, y, z] = [0, 2, 4].map(|number| self.i32(number));
        let first = self.select(face.is_y, y, x);
        let first = self.select(face.is_z, z, first);
        let negative = self.cast(Scalar::I32, face.negative);
        self.op(Op::Add, &[first, negative])
    }

    /// A number, or of a face that looks along the negative axis its negative.
    pub(super) fn facing(&mut self, face: Face, number: Value) -> Value {
        let negative = self.op(Op::Neg, &[number]);
        self.select(face.negative, negative, number)
    }

    /// Across and down of a direction on a face.
    pub(super) fn seen(&mut self, face: Face, [x, y, z]: [Value; 3]) -> [Value; 2] {
        let (along_z, along_x) = (self.facing(face, z), self.facing(face, x));
        let (up, back) = (self.op(Op::Neg, &[y]), self.op(Op::Neg, &[along_z]));
        let across = self.select(face.is_y, x, back);
        let across = self.select(face.is_z, along_x, across);
        let down = self.select(face.is_y, along_z, up);
        [across, self.select(face.is_z, up, down)]
    }

    /// The column, row and face of a texel that may lie beyond an edge of a face.
    pub(super) fn across_edges(&mut self, face: Face, at: [Value; 2], extent: Value) -> [Value; 3] {
        let one = self.i32(1);
        let inner = self.op(Op::Sub, &[extent, one]);
        let outer = self.op(Op::Neg, &[extent]);
        let [a, b] = at.map(|index| {
            let twice = self.op(Op::Add, &[index, index]);
            self.op(Op::Sub, &[twice, inner])
        });
        let [far_a, far_b] = [a, b].map(|c| {
            let magnitude = self.op(Op::Abs, &[c]);
            self.op(Op::Gt, &[magnitude, extent])
        });
        let most = self.select(far_a, inner, extent);
        let least = self.op(Op::Neg, &[most]);
        let across = self.op(Op::Max, &[a, outer]);
        let across = self.op(Op::Min, &[across, extent]);
        let down = self.op(Op::Max, &[b, least]);
        let down = self.op(Op::Min, &[down, most]);
        let beyond = self.op(Op::Or, &[far_a, far_b]);
        let along = self.select(beyond, inner, extent);
        let along = self.facing(face, along);
        let (up, signed_across) = (self.op(Op::Neg, &[down]), self.facing(face, across));
        let (back, signed_down) = (self.op(Op::Neg, &[signed_across]), self.facing(face, down));
        let mut choose = |of_x, of_y, of_z| {
            let x_or_y = self.select(face.is_y, of_y, of_x);
            self.select(face.is_z, of_z, x_or_y)
        };
        let direction = [
            choose(along, across, signed_across),
            choose(up, along, up),
            choose(back, signed_down, along),
        ];
        let (face, _) = self.face_of(direction);
        let seen = self.seen(face, direction);
        let [i, j] = seen.map(|c| {
            let twice = self.op(Op::Add, &[c, inner]);
            self.op(Op::Shr, &[twice, one])
        });
        [i, j, self.face_number(face)]
    }
}
