//! Imageblocks: memory of a threadgroup with an element for each of its positions (section 11 of the memory
//! model).
//!
//! An imageblock is an array in a space of its own ([`AddressSpace::Imageblock`]), row by row, of as many elements
//! as the kernel's threadgroup has positions, and is declared at the beginning of the kernel. An access is one to an
//! element of an array; what speaks of two coordinates is written out here, with the kernel's other instructions:
//! the element at a coordinate, and the copy of a slice to a texture. Hence whatever reads kernels knows imageblocks
//! by their space, and has no other rule for them.
//!
//! Deliberately absent: more than one sample a position, and so coverage of colours; sizes other than the
//! threadgroup's.

use smallvec::SmallVec;

use crate::builder::KernelBuilder;
use crate::diagnostic::Diagnostic;
use crate::inst::{Const, Inst, InstKind, Memory, Place, Step, Value, Width};
use crate::module::{AddressSpace, Kernel};
use crate::ops::{Dim, Op};
use crate::rules::Rule;
use crate::texture::Dimension;
use crate::types::{ElementType, Scalar, Type};

/// What stands for the element at coordinates that no element has: no imageblock has so many.
pub const OUTSIDE: u32 = u32::MAX;

/// A rectangle of one field of an imageblock's elements.
#[derive(Clone, Debug)]
pub struct ImageblockSlice {
    /// The imageblock.
    pub memory: Memory,
    /// The way from an element to the field.
    pub path: SmallVec<[Step; 2]>,
    /// The coordinates of its first element, and how many elements it has in x and y, each a `u32`; without, it has
    /// those at the positions of the threadgroup's own threads.
    pub region: Option<[[Value; 2]; 2]>,
}

impl Kernel {
    /// Positions of an imageblock in x and y: those of the threadgroup; none of a kernel that does not say the size
    /// of its threadgroup.
    ///
    /// ```
    /// let kernel = invar_ir::Kernel::new("example");
    /// assert_eq!(kernel.imageblock_size(), [0, 0]);
    /// ```
    pub fn imageblock_size(&self) -> [u32; 2] {
        self.threadgroup_size.map_or([0; 2], |[x, y, _]| [x, y])
    }

    /// Whether it has imageblocks.
    pub fn has_imageblocks(&self) -> bool {
        let mut allocs = self.allocs.iter();
        allocs.any(|alloc| alloc.space == AddressSpace::Imageblock)
    }
}

impl KernelBuilder {
    /// An imageblock, all zeros when the threadgroup starts (I2), with an element for each position of the
    /// threadgroup, whose size the kernel says before.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.kernel_mut().threadgroup_size = Some([16, 8, 1]);
    /// let block = k.imageblock("block", Scalar::F32);
    /// let (x, y) = (k.thread_position_in_threadgroup(Dim::X), k.thread_position_in_threadgroup(Dim::Y));
    /// let (v, at) = (k.const_f32(1.0), k.imageblock_element(block, [x, y]));
    /// k.store(Place::element(block, at), v);
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn imageblock(&mut self, name: &str, element: impl Into<ElementType>) -> Memory {
        let [width, height] = self.kernel().imageblock_size();
        let length = width.checked_mul(height).unwrap_or(0);
        let space = AddressSpace::Imageblock;
        let id = self.declare_array(name, space, element.into(), length);
        let span = self.span();
        self.imageblocks.declared.push(Inst {
            kind: InstKind::Alloc(id),
            results: SmallVec::new(),
            span,
        });
        Memory::Alloc(id)
    }

    /// The width of an imageblock, as `u32`.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.kernel_mut().threadgroup_size = Some([16, 8, 1]);
    /// let block = k.imageblock("block", Scalar::F32);
    /// let sizes = [k.imageblock_width(block), k.imageblock_height(block), k.imageblock_samples(block)];
    /// assert_eq!(sizes.map(|size| k.evaluate(size)), [16u32, 8, 1].map(|n| Some(n.components())));
    /// ```
    pub fn imageblock_width(&mut self, memory: Memory) -> Value {
        self.imageblock_number(memory, |[width, _]| width)
    }

    /// The height of an imageblock, as `u32`; see [`KernelBuilder::imageblock_width`].
    pub fn imageblock_height(&mut self, memory: Memory) -> Value {
        self.imageblock_number(memory, |[_, height]| height)
    }

    /// How many samples a position of an imageblock has, as `u32`: 1.
    pub fn imageblock_samples(&mut self, memory: Memory) -> Value {
        self.imageblock_number(memory, |_| 1)
    }

    fn imageblock_number(&mut self, memory: Memory, number: fn([u32; 2]) -> u32) -> Value {
        if !self.expect_imageblock(memory) {
            return self.poison(Type::U32);
        }
        let number = number(self.kernel().imageblock_size());
        self.const_u32(number)
    }

    /// The number of the element at coordinates, which are integers of any type; [`OUTSIDE`] where there is none.
    ///
    /// ```text
    /// y * width + x   if 0 <= x < width and 0 <= y < height
    /// ```
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// k.kernel_mut().threadgroup_size = Some([16, 8, 1]);
    /// let block = k.imageblock("block", Scalar::F32);
    /// let (x, y, left) = (k.const_u32(3), k.const_u32(2), k.const_i32(-1));
    /// let (inside, outside) = (k.imageblock_element(block, [x, y]), k.imageblock_element(block, [left, y]));
    /// assert_eq!(k.evaluate(inside), Some(35u32.components()));
    /// assert_eq!(k.evaluate(outside), Some(u32::MAX.components()));
    /// ```
    pub fn imageblock_element(&mut self, memory: Memory, at: [Value; 2]) -> Value {
        if !self.expect_imageblock(memory) {
            return self.poison(Type::U32);
        }
        for (coordinate, name) in at.into_iter().zip(["x", "y"]) {
            if self.is_poison(coordinate) {
                return self.poison(Type::U32);
            }
            let ty = self.ty(coordinate);
            if !ty.is_integer_scalar() {
                let message = format!(
                    "the {name} coordinate (`{}`) has type {ty}, expected an integer scalar",
                    self.called(coordinate)
                );
                let error = Diagnostic::error(Rule::TypeMismatch, self.span(), message);
                self.error(error.help("convert it with `cast u32`"));
                return self.poison(Type::U32);
            }
        }
        let size = self.kernel().imageblock_size();
        let [(x, in_x), (y, in_y)] = [0, 1].map(|d| self.below(at[d], size[d]));
        let inside = self.and(in_x, in_y);
        let width = self.const_u32(size[0]);
        let row = self.mul(y, width);
        let element = self.add(row, x);
        let outside = self.const_u32(OUTSIDE);
        self.op(Op::Select, (), &[outside, element, inside])
    }

    /// A coordinate as `u32`, and whether it is, as a mathematical integer, at least 0 and below a limit. Of a
    /// negative one the bits stand for a number beyond all limits.
    fn below(&mut self, coordinate: Value, limit: u32) -> (Value, Value) {
        match self.ty(coordinate) {
            Type::U32 => {
                let limit = self.const_u32(limit);
                (coordinate, self.lt(coordinate, limit))
            }
            Type::Scalar(Scalar::I64 | Scalar::U64) => {
                let wide = self.cast(coordinate, Type::Scalar(Scalar::U64));
                let limit = self.literal(u64::from(limit));
                (self.cast(coordinate, Type::U32), self.lt(wide, limit))
            }
            _at_most_32_bits => {
                let bits = self.cast(coordinate, Type::U32);
                let limit = self.const_u32(limit);
                (bits, self.lt(bits, limit))
            }
        }
    }

    /// Copies a slice to a texture of two dimensions, from integer coordinates on, behind which the texture's array
    /// element and level may stand: made by the calling thread, row by row, as a read and a write of each element.
    /// Components that the field lacks are 0, alpha 1.
    ///
    /// ```
    /// # use invar_ir::*;
    /// # let mut k = KernelBuilder::new(Module::default(), "example");
    /// let image = k.texture("image", TextureType::d2(Scalar::F32, TextureAccess::Write));
    /// k.kernel_mut().threadgroup_size = Some([16, 8, 1]);
    /// let memory = k.imageblock("block", Type::Vector(Scalar::F32, 4));
    /// let corner = k.const_u32(0);
    /// let slice = ImageblockSlice { memory, path: Default::default(), region: None };
    /// k.texture_write_slice(image, &[corner, corner], &slice);
    /// assert!(verify(k.finish()?).is_ok());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn texture_write_slice(&mut self, texture: Memory, at: &[Value], slice: &ImageblockSlice) {
        if !self.expect_imageblock(slice.memory) {
            return;
        }
        let (Some(component), &[left, top, ref rest @ ..]) = (self.slice_component(texture), at)
        else {
            let message = "a slice is written to a texture of two dimensions".to_string();
            let error = Diagnostic::error(Rule::TypeMismatch, self.span(), message);
            self.error(error.help(
                "name a `texture2d` or `texture2d_array`, and the coordinates of the first texel",
            ));
            return;
        };
        let (zero, one) = (self.const_u32(0), self.const_u32(1));
        let [origin, size] = slice.region.unwrap_or_else(|| {
            let size = [Dim::X, Dim::Y].map(|dim| self.threads_per_threadgroup(dim));
            [[zero; 2], size]
        });
        for value in [origin, size].as_flattened() {
            if self.is_poison(*value) {
                return;
            }
            if self.ty(*value) != Type::U32 {
                let message = format!(
                    "`{}` has type {}, but the region of a slice is of `u32`s",
                    self.called(*value),
                    self.ty(*value)
                );
                let error = Diagnostic::error(Rule::TypeMismatch, self.span(), message);
                self.error(error.help("convert it with `cast u32`"));
                return;
            }
        }
        self.for_(zero, size[1], one, &[], |k, y, _| {
            let (from_y, to_y) = (k.further(origin[1], y), k.further(top, y));
            k.for_(zero, size[0], one, &[], |k, x, _| {
                let from = [k.further(origin[0], x), from_y];
                let place = Place {
                    memory: slice.memory,
                    index: k.imageblock_element(slice.memory, from),
                    width: Width::One,
                    path: slice.path.clone(),
                };
                let value = k.load(place);
                let texel = k.texel_of(value, component);
                let mut to = vec![k.further(left, x), to_y];
                to.extend(rest);
                k.texture_write(texture, &to, texel);
                Vec::new()
            });
            Vec::new()
        });
    }

    /// A coordinate that lies `distance`, a `u32`, behind another: the sum as mathematical integers, or one that is
    /// beyond every size. What is not an integer stays as it is, for the verifier to refuse.
    fn further(&mut self, first: Value, distance: Value) -> Value {
        let Type::Scalar(scalar) = self.ty(first) else {
            return first;
        };
        let wide = match scalar {
            Scalar::I8 | Scalar::I16 | Scalar::I32 => Scalar::I32,
            Scalar::U8 | Scalar::U16 | Scalar::U32 => Scalar::U32,
            Scalar::I64 | Scalar::U64 => scalar,
            Scalar::Bool | Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => return first,
        };
        let [first, distance] = [first, distance].map(|value| self.as_scalar(value, wide));
        let sum = self.add(first, distance);
        if matches!(wide, Scalar::I32 | Scalar::I64) {
            // A sum beyond the largest is negative.
            return sum;
        }
        let wrapped = self.lt(sum, first);
        let bits = u64::MAX >> (64 - wide.bits());
        let largest = self.constant(Const { scalar: wide, bits });
        self.op(Op::Select, (), &[sum, largest, wrapped])
    }

    fn as_scalar(&mut self, value: Value, scalar: Scalar) -> Value {
        if self.ty(value) == Type::Scalar(scalar) {
            value
        } else {
            self.cast(value, Type::Scalar(scalar))
        }
    }

    /// The component of a texture that slices can be written to.
    fn slice_component(&self, texture: Memory) -> Option<Scalar> {
        let ty = self.kernel().texture(texture)?;
        let is_flat = matches!(ty.dimension, Dimension::D2 | Dimension::D2Array);
        (is_flat && !ty.is_depth).then_some(ty.component)
    }

    /// The four components of a texel of a field's value; the value itself, for the verifier to refuse, where a
    /// texel cannot be of its type.
    fn texel_of(&mut self, value: Value, component: Scalar) -> Value {
        let (scalar, count) = match self.ty(value) {
            Type::Scalar(scalar) => (scalar, 1),
            Type::Vector(scalar, count) => (scalar, count),
            Type::Matrix { .. } | Type::SimdgroupMatrix { .. } | Type::Event => return value,
        };
        let floats = [scalar, component].map(|s| matches!(s, Scalar::F16 | Scalar::F32));
        if scalar != component && floats != [true; 2] {
            return value;
        }
        let converted = match self.ty(value) {
            Type::Vector(_, n) if scalar != component => {
                self.cast(value, Type::Vector(component, n))
            }
            _scalar if scalar != component => self.cast(value, Type::Scalar(component)),
            _alike => value,
        };
        if count == 4 {
            return converted;
        }
        let [zero, one] = [0u32, 1].map(|n| {
            let n = self.const_u32(n);
            self.as_scalar(n, component)
        });
        let mut parts = vec![converted];
        parts.extend((count..3).map(|_| zero));
        parts.push(one);
        self.op(Op::Construct, Type::Vector(component, 4), &parts)
    }

    /// Whether it is an imageblock; else says that it is none.
    fn expect_imageblock(&mut self, memory: Memory) -> bool {
        let Some(info) = self.memory(memory) else {
            return false;
        };
        if info.space == AddressSpace::Imageblock {
            return true;
        }
        let message = format!("`{}` is not an imageblock", info.name);
        let error = Diagnostic::error(Rule::WrongAddressSpace, self.span(), message);
        self.error(error.help("declare one among the parameters: `%block: imageblock @Pixel`"));
        false
    }
}
