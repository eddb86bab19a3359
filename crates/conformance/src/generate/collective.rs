//! What a threadgroup or a simdgroup does together: barriers with reads of each other's elements
//! between them, async copies, simdgroup matrices, assertions of uniformity. The statements between two
//! barriers are those of whoever calls.

use invar_ir::{
    Access, Const, CopyOperands, CopyShape, Level, MatrixPlace, Memory, Scalar, Scope, Spaces,
    Type, Value,
};

use super::generator::Generator;
use super::objects::{Owner, Phase, STRIDE};
use crate::case::Data;

/// An object that threads read of each other and that none writes, until [`Generator::end_sharing`].
#[must_use]
pub(super) struct Shared {
    /// Its number among the objects.
    object: usize,
    /// The barrier at the end.
    scope: Scope,
    spaces: Spaces,
}

impl Generator<'_> {
    /// Something that threads do together. Where an object is shared then, a few statements may follow that
    /// read it.
    pub(super) fn together(&mut self) -> Option<Shared> {
        let threadgroup = self.control >= Level::Threadgroup;
        let simdgroup = self.control >= Level::Simdgroup && self.simdgroup.is_some();
        match self.random.below(8) {
            0..=2 if threadgroup => return self.exchange(),
            3 if threadgroup => {
                let sets = [
                    Spaces::NONE,
                    Spaces::DEVICE,
                    Spaces::THREADGROUP,
                    Spaces::DEFAULT,
                ];
                let spaces = self.random.pick(&sets);
                self.k.barrier(Scope::Threadgroup, spaces);
            }
            4 if threadgroup => {
                let scalar = self.random.pick(&self.palette);
                let known = self.uniforms(Type::Scalar(scalar));
                if let Some(known) = known.last() {
                    let scope = match self.simdgroup.is_some() && self.random.one_in(2) {
                        true => Scope::Simdgroup,
                        false => Scope::Threadgroup,
                    };
                    let value = self.k.assert_uniform(known.value, scope);
                    self.add(value, Level::Threadgroup);
                }
            }
            5 if simdgroup => return self.exchange_in_simdgroup(),
            6 if simdgroup && threadgroup => return self.async_copy(),
            7 if simdgroup => self.matrices(),
            _not_here => self.operation(),
        }
        None
    }

    /// From here on each thread has its own elements of the object.
    pub(super) fn end_sharing(&mut self, shared: Shared) {
        if !self.k.terminated() {
            self.k.barrier(shared.scope, shared.spaces);
        }
        self.objects[shared.object].phase = Phase::Own;
    }

    /// A barrier behind which threads read the threadgroup's elements.
    fn exchange(&mut self) -> Option<Shared> {
        let shareable: Vec<usize> = (0..self.objects.len())
            .filter(|i| match self.objects[*i].owner {
                Owner::Device { readable } => readable && self.objects[*i].phase == Phase::Own,
                Owner::Threadgroup { .. } | Owner::ThreadgroupAtomic(_) | Owner::Imageblock => {
                    self.objects[*i].phase == Phase::Own
                }
                Owner::Input | Owner::Thread | Owner::DeviceAtomic(_) => false,
            })
            .collect();
        if shareable.is_empty() {
            return None;
        }
        let at = self.random.pick(&shareable);
        let object = self.objects[at].clone();
        let space = match object.owner {
            Owner::Device { .. } => Spaces::DEVICE,
            Owner::Imageblock => Spaces::IMAGEBLOCK,
            _threadgroup => Spaces::THREADGROUP,
        };
        let spaces = match self.random.below(3) {
            0 => Spaces::DEFAULT.with(space),
            _ => space,
        };
        if object.stride().is_some() {
            self.store_to(&object);
        }
        self.k.barrier(Scope::Threadgroup, spaces);
        self.objects[at].phase = Phase::Shared;
        Some(Shared {
            object: at,
            scope: Scope::Threadgroup,
            spaces,
        })
    }

    /// The same within a simdgroup.
    fn exchange_in_simdgroup(&mut self) -> Option<Shared> {
        let shareable: Vec<usize> = (0..self.objects.len())
            .filter(|i| {
                let object = &self.objects[*i];
                matches!(object.owner, Owner::Threadgroup { .. }) && object.phase == Phase::Own
            })
            .collect();
        if shareable.is_empty() {
            self.k.barrier(Scope::Simdgroup, Spaces::DEFAULT);
            return None;
        }
        let at = self.random.pick(&shareable);
        let object = self.objects[at].clone();
        self.store_to(&object);
        self.k.barrier(Scope::Simdgroup, Spaces::THREADGROUP);
        self.objects[at].phase = Phase::SharedInSimdgroup;
        Some(Shared {
            object: at,
            scope: Scope::Simdgroup,
            spaces: Spaces::THREADGROUP,
        })
    }

    /// Copies of which each simdgroup makes its own, from an input to a threadgroup array, or from
    /// there to the elements of its first thread.
    fn async_copy(&mut self) -> Option<Shared> {
        let size = self
            .simdgroup
            .filter(|_| self.options.matrices_and_async_copies)?;
        let find = |maker: &Self| {
            let mut pairs = Vec::new();
            for (t, tile) in maker.objects.iter().enumerate() {
                let Owner::Threadgroup { stride } = tile.owner else {
                    continue;
                };
                for (d, device) in maker.objects.iter().enumerate() {
                    let fits = match device.owner {
                        Owner::Input => maker.is_device(device.memory),
                        Owner::Device { .. } => true,
                        Owner::Thread
                        | Owner::Threadgroup { .. }
                        | Owner::Imageblock
                        | Owner::DeviceAtomic(_)
                        | Owner::ThreadgroupAtomic(_) => false,
                    };
                    let own = tile.phase == Phase::Own && device.phase == Phase::Own;
                    if fits && own && tile.element == device.element {
                        pairs.push((t, d, stride));
                    }
                }
            }
            pairs
        };
        let pairs = find(self);
        if pairs.is_empty() {
            return None;
        }
        let (t, d, stride) = self.random.pick(&pairs);
        let (tile, device) = (self.objects[t].memory, self.objects[d].memory);
        let into_tile = self.objects[d].owner == Owner::Input;
        let simdgroup = self.k.simdgroup_index_in_threadgroup();
        self.k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
        let (operands, most) = if into_tile {
            let most = stride * size;
            let each = self.constant_u32(most);
            let destination_index = self.k.mul(simdgroup, each);
            let source_index = self.uniform(Scalar::I32);
            let limit = self.k.const_i32(self.objects[d].length as i32 + 3);
            let source_index = self.k.rem(source_index, limit);
            let operands = CopyOperands {
                destination: tile,
                destination_index,
                source: device,
                source_index,
            };
            (operands, most)
        } else {
            let threads = self.constant_u32(self.threads);
            let first = self.k.mul(self.group, threads);
            let lanes = self.constant_u32(size);
            let lane = self.k.mul(simdgroup, lanes);
            let thread = self.k.add(first, lane);
            let each = self.constant_u32(STRIDE);
            let destination_index = self.k.mul(thread, each);
            let source_index = self.k.mul(simdgroup, lanes);
            let operands = CopyOperands {
                destination: device,
                destination_index,
                source: tile,
                source_index,
            };
            (operands, STRIDE)
        };
        let shape = if self.random.one_in(2) {
            let count = self.random_small(most as usize + 1);
            CopyShape::Linear {
                count: self.constant_u32(count),
            }
        } else {
            let row = 1 + self.random_small(most.min(6) as usize);
            let columns = self.random_small(row as usize + 1);
            let rows = self.random_small((most / row) as usize + 1);
            let source_row = self.random_small(9) as i32 - 1;
            CopyShape::Tile {
                destination_row: self.constant_u32(row),
                source_row: self.k.const_i32(source_row),
                columns: self.constant_u32(columns),
                rows: self.constant_u32(rows),
            }
        };
        self.objects[t].phase = Phase::Closed;
        if !into_tile {
            self.objects[d].phase = Phase::Closed;
        }
        let event = self.k.async_copy(operands, shape);
        if self.random.one_in(2) {
            self.operation();
        }
        self.k.wait(&[event]);
        self.k.barrier(Scope::Threadgroup, Spaces::DEFAULT);
        self.objects[d].phase = Phase::Own;
        if into_tile {
            self.objects[t].phase = Phase::Shared;
            return Some(Shared {
                object: t,
                scope: Scope::Threadgroup,
                spaces: Spaces::THREADGROUP,
            });
        }
        // What the copy read must not be overwritten before it has been read.
        self.k.barrier(Scope::Threadgroup, Spaces::THREADGROUP);
        self.objects[t].phase = Phase::Own;
        None
    }

    /// Whether a memory object is a buffer in device memory.
    fn is_device(&self, memory: Memory) -> bool {
        self.k
            .memory(memory)
            .is_some_and(|info| info.space == invar_ir::AddressSpace::Device)
    }

    /// A product of simdgroup matrices of small integers, exact in every float type, stored to a
    /// buffer of which each simdgroup has a part.
    fn matrices(&mut self) {
        if !self.options.matrices_and_async_copies || self.k.kernel().params.len() > 12 {
            return;
        }
        let floats = self.options.scalars.iter().copied();
        let floats: Vec<Scalar> = floats.filter(|s| s.is_float()).collect();
        if floats.is_empty() || self.in_loop() {
            return;
        }
        let scalar = self.random.pick(&floats);
        let ty = Type::SimdgroupMatrix {
            scalar,
            rows: 8,
            columns: 8,
        };
        let number = self.k.kernel().params.len();
        let name = format!("entries{number}");
        let source = self.k.buffer(&name, Access::Read, scalar);
        let ones = (0..40).map(|_| self.small_float(scalar));
        let ones: Vec<Const> = ones.collect();
        self.data.push(Data::List(ones));
        let name = format!("product{number}");
        let out = self.k.buffer(&name, Access::Write, scalar);
        self.data.push(Data::Zeros(64 * 20));
        let mut matrices: Vec<Value> = Vec::new();
        for _ in 0..3 {
            let matrix = if self.random.one_in(3) {
                let entry = self.small_float(scalar);
                let entry = self.k.constant(entry);
                self.k.matrix_fill(ty, entry)
            } else {
                let index = self.k.const_i32(0);
                let offset = self.random_small(12) as i32 - 4;
                let offset = self.k.const_i32(offset);
                let index = self.k.add(index, offset);
                let row = self.random_small(10) as i32 - 1;
                let place = MatrixPlace {
                    memory: source,
                    index,
                    row: self.k.const_i32(row),
                    transpose: self.random.one_in(2),
                };
                self.k.matrix_load(ty, place)
            };
            matrices.push(matrix);
        }
        let product = self
            .k
            .matrix_multiply_accumulate(matrices[0], matrices[1], matrices[2]);
        // Element 64 times the simdgroup's number in the grid.
        let simdgroups = self.k.dispatch_simdgroups_per_threadgroup();
        let first = self.k.mul(self.group, simdgroups);
        let simdgroup = self.k.simdgroup_index_in_threadgroup();
        let number = self.k.add(first, simdgroup);
        let size = self.constant_u32(64);
        let index = self.k.mul(number, size);
        let place = MatrixPlace {
            memory: out,
            index,
            row: self.constant_u32(8),
            transpose: self.random.one_in(2),
        };
        self.k.matrix_store(place, product);
    }

    fn in_loop(&self) -> bool {
        self.around.is_some()
    }

    /// An integer from -3 to 3.
    fn small_float(&mut self, scalar: Scalar) -> Const {
        let number = self.random_small(7) as i64 - 3;
        let bits = match scalar {
            Scalar::F16 => Const::from(half::f16::from_f32(number as f32)),
            Scalar::BF16 => Const::from(half::bf16::from_f32(number as f32)),
            Scalar::F64 => Const::from(number as f64),
            _single => Const::from(number as f32),
        };
        Const {
            scalar,
            bits: bits.bits,
        }
    }
}
