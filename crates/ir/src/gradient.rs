//! The levels that samples with gradients are of, built as operations: "Scale Factor Operation" and "Level-of-Detail
//! Operation" of the Vulkan specification, and of cubes its "Cube Map Derivative Transformation" before them.

use crate::builder::KernelBuilder;
use crate::diagnostic::Diagnostic;
use crate::inst::{Memory, Value};
use crate::ops::Op;
use crate::rules::Rule;
use crate::texture::{Coordinates, Dimension, TextureFunction, TextureType};
use crate::types::Type;

/// The face of a cube that a direction leads to, and where on it.
struct OnFace {
    is_z: Value,
    /// If it is not z.
    is_y: Value,
    negative: Value,
    /// How far the direction goes along the face's axis.
    along: Value,
    /// Across and down of the direction, as parts of that.
    place: [Value; 2],
}

impl KernelBuilder {
    /// The level whose texels are as far apart as samples of neighbours, by how much the coordinates `at` of a sample,
    /// normalized or a cube's direction, change from one to the next along two directions: as many numbers each. It is
    /// a sample's level: a sample of it by a sampler of pixel coordinates is an error, and a launch that gives one is
    /// refused (V21).
    ///
    /// ```text
    /// x     = fma(dx0 * width, dx0 * width, (dx1 * height) * (dx1 * height))     of y the same
    /// level = log2(fmax(x, y)) * 0.5
    /// ```
    ///
    /// In three dimensions `x = fma(dx0 * width, dx0 * width, fma(dx1 * height, dx1 * height, (dx2 * depth) * (dx2 *
    /// depth)))`. Of a cube the numbers are first those by which the place on the face changes. With `across`, `down`
    /// and `along` of the direction, as [`invar_texture::cube`] has them, and of `dx` with the sign that makes `along`
    /// grow away from the middle of the cube:
    ///
    /// ```text
    /// dx0 = (fma(-(across / |along|), dx_along, dx_across) / |along|) * 0.5
    /// dx1 = (fma(-(down / |along|), dx_along, dx_down) / |along|) * 0.5
    /// ```
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let source = k.texture("source", TextureType::d2(Scalar::F32, TextureAccess::Sample));
    /// let (none, quarter) = (k.const_f32(0.0), k.const_f32(0.25));
    /// let level = k.texture_gradient_level(source, &[none, none], &[quarter, none], &[none, quarter]);
    /// assert_eq!(k.ty(level), Type::F32);
    /// ```
    pub fn texture_gradient_level(
        &mut self,
        texture: Memory,
        at: &[Value],
        dx: &[Value],
        dy: &[Value],
    ) -> Value {
        // What is not a texture is reported by the verifier.
        let ty = self.kernel().texture(texture);
        if let Some(defect) = ty.and_then(|ty| self.gradient_defect(ty, at, [dx, dy])) {
            self.error(defect);
            return self.const_f32(0.0);
        }
        let dimension = ty.map_or(Dimension::D2, |ty| ty.dimension);
        let mut changes = [dx.to_vec(), dy.to_vec()];
        if dimension.is_cube() {
            let face = self.on_face([at[0], at[1], at[2]]);
            changes = changes.map(|by| self.change_on_face(&face, [by[0], by[1], by[2]]).to_vec());
        }
        let mut sizes = vec![self.texture_width(texture), self.texture_height(texture)];
        if dimension == Dimension::D3 {
            sizes.push(self.texture_depth(texture));
        }
        let sizes: Vec<Value> = (sizes.into_iter())
            .map(|size| self.cast(size, Type::F32))
            .collect();
        let [x, y] = changes.map(|by| self.square_of_texels(&by, &sizes));
        let most = self.op(Op::Fmax, (), &[x, y]);
        let level = self.op(Op::Log2, (), &[most]);
        let half = self.const_f32(0.5);
        let level = self.op(Op::Mul, (), &[level, half]);
        self.gradient_levels.insert(level);
        level
    }

    /// A function, which is of normalized coordinates if its level is one that gradients lead to (V21).
    pub(crate) fn of_gradient(
        &mut self,
        ty: TextureType,
        function: TextureFunction,
        args: &[Value],
    ) -> TextureFunction {
        let level = function.operands(ty.dimension, args).level;
        if !level.is_some_and(|level| self.gradient_levels.contains(&level)) {
            return function;
        }
        let sampler = function.sampler().and_then(|source| source.constant());
        // Of cubes the verifier says so, of any sample.
        if sampler.is_some_and(|sampler| sampler.coordinates == Coordinates::Pixel)
            && !ty.dimension.is_cube()
        {
            let message = "gradients by a sampler of pixel coordinates".to_string();
            let error = Diagnostic::error(Rule::TypeMismatch, self.span(), message);
            self.error(error.help(
                "divide coordinates and gradients by the size and leave out `pixel`, or say the level: `level %l`",
            ));
        }
        function.normalized()
    }

    /// Why there are no such gradients, if there are none.
    pub(crate) fn gradient_defect(
        &self,
        ty: TextureType,
        at: &[Value],
        changes: [&[Value]; 2],
    ) -> Option<Diagnostic> {
        let (axes, name) = (ty.dimension.axes(), ty.name());
        if !ty.dimension.has_levels() {
            let message = format!("gradients of a {name}");
            let error = Diagnostic::error(Rule::TypeMismatch, self.span(), message);
            return Some(error.help("leave them out: it has one level"));
        }
        let found = [at, changes[0], changes[1]].map(<[Value]>::len);
        if found.iter().all(|count| *count == axes) {
            return None;
        }
        let message = format!("a gradient of a {name} is of {axes} numbers along each direction");
        let help = match axes {
            2 => "write it as in `gradient [%ax, %ay], [%bx, %by]`",
            _three => "write it as in `gradient [%ax, %ay, %az], [%bx, %by, %bz]`",
        };
        Some(Diagnostic::error(Rule::TypeMismatch, self.span(), message).help(help))
    }

    /// The square of how many texels a change of coordinates goes on.
    fn square_of_texels(&mut self, change: &[Value], sizes: &[Value]) -> Value {
        let texels: Vec<Value> = (change.iter().zip(sizes))
            .map(|(part, size)| self.op(Op::Mul, (), &[*part, *size]))
            .collect();
        let mut sum = None;
        for part in texels.into_iter().rev() {
            sum = Some(match sum {
                None => self.op(Op::Mul, (), &[part, part]),
                Some(others) => self.op(Op::Fma, (), &[part, part, others]),
            });
        }
        sum.unwrap_or_else(|| unreachable!("every texture with levels has an axis"))
    }

    fn on_face(&mut self, direction: [Value; 3]) -> OnFace {
        let [x, y, z] = direction.map(|c| self.op(Op::Abs, (), &[c]));
        let above_y = self.op(Op::Ge, (), &[z, y]);
        let above_x = self.op(Op::Ge, (), &[z, x]);
        let is_z = self.op(Op::And, (), &[above_y, above_x]);
        let is_y = self.op(Op::Ge, (), &[y, x]);
        let zero = self.const_f32(0.0);
        let mut face = OnFace {
            is_z,
            is_y,
            negative: is_z,
            along: zero,
            place: [zero; 2],
        };
        let along = self.along(&face, direction);
        face.negative = self.op(Op::Lt, (), &[along, zero]);
        face.along = self.op(Op::Abs, (), &[along]);
        let seen = self.seen_on(&face, direction);
        face.place = seen.map(|c| self.op(Op::Div, (), &[c, face.along]));
        face
    }

    /// How much across and down of the place on the face change.
    fn change_on_face(&mut self, face: &OnFace, change: [Value; 3]) -> [Value; 2] {
        let along = self.along(face, change);
        let along = self.facing(face, along);
        let [across, down] = self.seen_on(face, change);
        [(face.place[0], across), (face.place[1], down)].map(|(place, change)| {
            let back = self.op(Op::Neg, (), &[place]);
            let moved = self.op(Op::Fma, (), &[back, along, change]);
            let part = self.op(Op::Div, (), &[moved, face.along]);
            let half = self.const_f32(0.5);
            self.op(Op::Mul, (), &[part, half])
        })
    }

    /// The component along the axis of a face.
    fn along(&mut self, face: &OnFace, [x, y, z]: [Value; 3]) -> Value {
        let x_or_y = self.op(Op::Select, (), &[x, y, face.is_y]);
        self.op(Op::Select, (), &[x_or_y, z, face.is_z])
    }

    /// A number, or of a face that looks along the negative axis its negative.
    fn facing(&mut self, face: &OnFace, number: Value) -> Value {
        let negative = self.op(Op::Neg, (), &[number]);
        self.op(Op::Select, (), &[number, negative, face.negative])
    }

    /// Across and down of a direction as they are on a face.
    fn seen_on(&mut self, face: &OnFace, [x, y, z]: [Value; 3]) -> [Value; 2] {
        let (along_z, along_x) = (self.facing(face, z), self.facing(face, x));
        let up = self.op(Op::Neg, (), &[y]);
        let back = self.op(Op::Neg, (), &[along_z]);
        let across = self.op(Op::Select, (), &[back, x, face.is_y]);
        let across = self.op(Op::Select, (), &[across, along_x, face.is_z]);
        let down = self.op(Op::Select, (), &[up, along_z, face.is_y]);
        [across, self.op(Op::Select, (), &[down, up, face.is_z])]
    }
}
