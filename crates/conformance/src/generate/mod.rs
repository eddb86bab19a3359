//! A random valid kernel from a seed, with its arguments and its dispatch.
//!
//! Why a generated kernel races with nothing (R1): threads are numbered over the whole grid, and
//! each stores only to its own elements of a buffer or threadgroup array. Other threads' elements
//! are read only between two barriers of which no store lies between. Atomics without a result act
//! anywhere, but those on one buffer are of one kind, and nothing reads it.
//!
//! Why it ends: every `loop` counts its iterations, and the bounds of every `for` are a few iterations apart.
//!
//! Why it obeys R4: it uses what an atomic returns only of its thread's own elements; simdgroups only
//! with a required size; and the bits of a NaN never reach an integer: a float whose bits are looked
//! at is 0 where it is NaN ([`Generator::without_nan`]).
//!
//! Files: `objects.rs` memory; `generator.rs` what is known; `values.rs` operations and constants; `memory.rs` indices,
//! loads, stores, atomics and copies; `control.rs` blocks, `if` and loops; `collective.rs` what a threadgroup or simdgroup
//! does together; `tile.rs` tiles of a buffer in threadgroup memory; `rows.rs` what
//! rows of threads carry around barriers; `textures.rs` textures; `ends.rs` numbers whose sums wrap; `edges.rs` elements that only
//! some threads have.

mod collective;
mod control;
mod edges;
mod ends;
mod generator;
mod memory;
mod objects;
mod rows;
mod textures;
mod tile;
mod values;

use std::collections::BTreeSet;

use invar_interp::{Dispatch, Grid};
use invar_ir::{
    Access, Const, ConstantArray, ConstantKey, Dim, ElementType, FloatMode, FunctionConstant,
    KernelBuilder, Level, Module, Place, Scalar, Span, StructDef, Type, Value,
};

use crate::case::{Case, Data};
use crate::random::Random;
use generator::{AFTER, Generator, Known};
pub use generator::{Floats, Options};
use objects::{Owner, STRIDE};

/// Elements of the last output that belong to one thread.
const SINK: u32 = 16;
/// One in so many kernels is about rows of threads.
const ROWS: usize = 6;
/// One in so many of the others is about edges.
const EDGES: usize = 6;
/// One in so many kernels has many numbers near the ends of their types.
const ENDS: usize = 6;

/// The case of that seed. The same seed and options give the same case.
///
/// ```
/// use invar_conformance::{Options, generate};
///
/// let case = generate(7, &Options::default());
/// assert_eq!(case, generate(7, &Options::default()));
/// assert!(case.to_string().contains("; run: @random("));
/// invar_ir::verify(case.module)?;
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
///
/// # Panics
/// If it built what the builder refuses, which a test of thousands of seeds rules out.
pub fn generate(seed: u64, options: &Options) -> Case {
    let mut random = Random::new(seed);
    let mut palette: BTreeSet<Scalar> = [Scalar::Bool, Scalar::I32, Scalar::U32].into();
    let allowed = options.scalars.iter().copied();
    let allowed: Vec<Scalar> = allowed
        .filter(|s| options.floats == Floats::Ieee || !s.is_float())
        .collect();
    if !allowed.is_empty() {
        for _ in 0..2 + random.below(3) {
            palette.insert(random.pick(&allowed));
        }
    }
    let sizes: Vec<[u32; 3]> = [
        [1, 1, 1],
        [3, 1, 1],
        [7, 1, 1],
        [16, 1, 1],
        [32, 1, 1],
        [33, 1, 1],
        [64, 1, 1],
        [100, 1, 1],
        [8, 4, 1],
        [4, 3, 2],
        [5, 5, 1],
        [1, 9, 3],
        [16, 4, 1],
        [2, 32, 1],
        [32, 1, 4],
        [32, 4, 1],
    ]
    .into_iter()
    .filter(|[x, y, z]| x * y * z <= options.threads_per_threadgroup.max(1))
    .collect();
    let of_rows = if random.one_in(ROWS) {
        rows::threadgroup_of_rows(&mut random, options.threads_per_threadgroup)
    } else {
        None
    };
    let with_edges = if of_rows.is_none() && random.one_in(EDGES) {
        edges::threadgroup_with_edges(&mut random, options.threads_per_threadgroup)
    } else {
        None
    };
    let (threadgroup, grid) = of_rows.or(with_edges).unwrap_or_else(|| {
        let threadgroup = random.pick(&sizes);
        (threadgroup, grid(&mut random, threadgroup))
    });
    let dispatch = Dispatch { grid, threadgroup };
    let groups: [u32; 3] = match grid {
        Grid::Threads(n) => std::array::from_fn(|d| n[d].div_ceil(threadgroup[d])),
        Grid::Threadgroups(n) => n,
    };
    let groups: u64 = groups.into_iter().map(u64::from).product();

    let mut k = KernelBuilder::new(Module::default(), "random");
    // Where a kernel looks at simdgroups, threads are not rows to a compiler.
    let with_simdgroups = of_rows.or(with_edges).is_none() || random.one_in(8);
    let simdgroup = options
        .simdgroup_size
        .filter(|_| with_simdgroups && !random.one_in(3));
    k.kernel_mut().simdgroup_size = simdgroup;
    if random.one_in(3) {
        k.kernel_mut().threadgroup_size = Some(threadgroup);
    }
    k.kernel_mut().float_mode = match options.floats {
        Floats::Ieee if random.one_in(3) => FloatMode::Strict,
        Floats::Ieee | Floats::Exact | Floats::None => FloatMode::Contract,
    };
    k.kernel_mut().allow_out_of_bounds_loads = true;
    k.kernel_mut().allow_out_of_bounds_stores = true;
    let about_ends = random.one_in(ENDS);
    let mut maker = Generator {
        k,
        random,
        options,
        palette: palette.into_iter().collect(),
        known: Vec::new(),
        objects: Vec::new(),
        pictures: Vec::new(),
        samplers: Vec::new(),
        control: Level::Grid,
        around: None,
        tail: false,
        budget: options.instructions,
        about_ends,
        size: threadgroup,
        threads: threadgroup.iter().product(),
        simdgroup,
        thread: Value(0),
        group: Value(0),
        lane: Value(0),
        data: Vec::new(),
        constants: Vec::new(),
    };
    maker.declare(groups * u64::from(maker.threads));
    maker.declare_textures(groups * u64::from(maker.threads));
    let sink = maker.sink_buffer(groups * u64::from(maker.threads));
    maker.numbers();
    maker.local_arrays();
    let after = if of_rows.is_some() {
        maker.about_rows()
    } else if with_edges.is_some() {
        maker.about_edges()
    } else {
        maker.body(3);
        AFTER
    };
    maker.tail = true;
    maker.control = Level::Varying;
    maker.budget += after;
    maker.body(3);
    maker.sink(sink);
    let (data, constants) = (maker.data, maker.constants);
    match maker.k.finish() {
        Ok(module) => Case {
            module,
            data,
            dispatch,
            constants,
        },
        Err(errors) => panic!("seed {seed}: {errors}"),
    }
}

/// One to a few threadgroups, seldom none; in threads, the last ones may be smaller.
fn grid(random: &mut Random, threadgroup: [u32; 3]) -> Grid {
    let mut groups = [1 + random.below(3) as u32, 1, 1];
    if random.one_in(4) {
        groups[1] = 1 + random.below(2) as u32;
        groups[2] = 1 + random.below(2) as u32;
    }
    if random.one_in(40) {
        groups[random.below(3)] = 0;
    }
    if random.one_in(3) {
        return Grid::Threadgroups(groups);
    }
    Grid::Threads(std::array::from_fn(|d| {
        let full = groups[d] * threadgroup[d];
        let missing = random.below(threadgroup[d] as usize) as u32;
        full.saturating_sub(if random.one_in(2) { 0 } else { missing })
    }))
}

impl Generator<'_> {
    /// Structs, constants and parameters. `total` is how many threads the grid's threadgroups have
    /// when full.
    fn declare(&mut self, total: u64) {
        for i in 0..self.random.below(3) {
            let fields = 1 + self.random.below(4);
            let fields = (0..fields).map(|f| (format!("f{f}").into(), self.element_type()));
            let fields = fields.collect();
            let def = StructDef {
                name: format!("S{i}").into(),
                fields,
                span: Span::NONE,
            };
            self.k.module_mut().structs.push(def);
        }
        for i in 0..self.random.below(3) {
            let scalar = self.random.pick(&self.palette);
            let default = self.interesting(scalar);
            let default = (!self.random.one_in(3)).then_some(default);
            let name = format!("C{i}");
            if default.is_none() || self.random.one_in(2) {
                let value = self.interesting(scalar);
                let key = ConstantKey::Name(name.as_str().into());
                self.constants.push((key, value));
            }
            self.k
                .module_mut()
                .function_constants
                .push(FunctionConstant {
                    name: name.into(),
                    id: i as u32,
                    scalar,
                    default,
                    span: Span::NONE,
                });
            let value = self.k.function_constant(i as u32);
            self.add(value, Level::Grid);
        }
        for i in 0..self.random.below(2) {
            let element = ElementType::Value(self.simple_type());
            let length = 1 + self.random.below(9) as u32;
            let locations = element.locations(&[]);
            let values = (0..length as usize).flat_map(|_| &locations);
            let scalars: Vec<Scalar> = values.map(|(_, scalar)| *scalar).collect();
            let values = scalars.into_iter().map(|s| self.interesting(s)).collect();
            self.k.module_mut().constants.push(ConstantArray {
                name: format!("table{i}").into(),
                element: element.clone(),
                length,
                values,
                span: Span::NONE,
            });
            let memory = invar_ir::Memory::Constant(i as u32);
            self.object(memory, element, u64::from(length), Owner::Input);
        }
        for i in 0..1 + self.random.below(2) {
            let ty = self.simple_type();
            let value = self.k.scalar(&format!("n{i}"), ty);
            let scalar = ty.component_scalar();
            let components = (0..ty.component_count()).map(|_| self.interesting(scalar));
            let components = components.collect();
            self.data.push(Data::Scalar(components));
            self.add(value, Level::Grid);
        }
        for i in 0..1 + self.random.below(3) {
            let element = self.element_type();
            let name = format!("in{i}");
            let memory = if self.random.one_in(4) {
                self.k.constant_buffer(&name, element.clone())
            } else {
                self.k.buffer(&name, Access::Read, element.clone())
            };
            let length = self.input(&element);
            self.object(memory, element, length, Owner::Input);
        }
        for i in 0..1 + self.random.below(3) {
            let element = self.element_type();
            let access = self
                .random
                .pick(&[Access::ReadWrite, Access::ReadWrite, Access::Write]);
            let memory = self.k.buffer(&format!("out{i}"), access, element.clone());
            let full = total * u64::from(STRIDE);
            let length = match self.random.below(6) {
                0 => 0,
                1 => full / 2 + 1,
                2 => full + 5,
                _ => full,
            };
            let seed = self.random.below(1000) as u64;
            self.data.push(Data::Random {
                count: length,
                seed,
            });
            let owner = Owner::Device {
                readable: access == Access::ReadWrite,
            };
            self.object(memory, element, length, owner);
        }
        let sums = self.random.below(3);
        for i in 0..if self.options.atomics { sums } else { 0 } {
            let mut scalars = vec![Scalar::I32, Scalar::U32];
            if self.options.wide_atomics {
                let wide = [Scalar::I64, Scalar::U64];
                let allowed = wide.iter().filter(|s| self.options.scalars.contains(s));
                scalars.extend(allowed);
            }
            let scalar = self.random.pick(&scalars);
            let ty = match self.random.below(4) {
                0 => Type::Vector(scalar, 2),
                _ => Type::Scalar(scalar),
            };
            let element = ElementType::Value(ty);
            let name = format!("sum{i}");
            let memory = self.k.buffer(&name, Access::ReadWrite, element.clone());
            let length = self.random.pick(&[0, 1, 7, 40]);
            let seed = self.random.below(1000) as u64;
            self.data.push(Data::Random {
                count: length,
                seed,
            });
            let kind = self.atomic_kind();
            self.object(memory, element, length, Owner::DeviceAtomic(kind));
        }
        if self.random.one_in(5) {
            let element = ElementType::Value(self.simple_type());
            let memory = self.k.threadgroup_param("dynamic", element.clone());
            let most = u64::from(self.threads) * 2;
            let length = self.random.pick(&[0, 1, most / 2, most]);
            self.data.push(Data::Length(length));
            self.object(memory, element, length, Owner::Threadgroup { stride: 2 });
        }
        for object in self.objects.clone() {
            if matches!(object.memory, invar_ir::Memory::Param(_)) && self.random.one_in(2) {
                let length = self.k.buffer_length(object.memory);
                if self.wide() {
                    self.add(length, Level::Grid);
                } else {
                    let length = self.k.cast(length, Type::U32);
                    self.add(length, Level::Grid);
                }
            }
        }
    }

    fn bytes(&self, element: &ElementType) -> u64 {
        let extent = element.extent(&self.k.module().structs);
        extent.map_or(0, |e| e.size_bytes)
    }

    /// What an input buffer holds, and how many elements.
    fn input(&mut self, element: &ElementType) -> u64 {
        let structs = self.k.module().structs.clone();
        let length = self.random.pick(&[0, 1, 5, 17, 64, 150]);
        let seed = self.random.below(1000) as u64;
        let data = match self.random.below(4) {
            0 => Data::Iota(length),
            1 | 2 if length <= 17 => {
                let locations = element.locations(&structs);
                let scalars = (0..length).flat_map(|_| &locations).map(|(_, s)| *s);
                let scalars: Vec<Scalar> = scalars.collect();
                Data::List(scalars.into_iter().map(|s| self.interesting(s)).collect())
            }
            _ => Data::Random {
                count: length,
                seed,
            },
        };
        self.data.push(data);
        length
    }

    /// The buffer that takes what is known at the end.
    fn sink_buffer(&mut self, total: u64) -> (invar_ir::Memory, Scalar) {
        let scalar = if self.wide() {
            Scalar::U64
        } else {
            Scalar::U32
        };
        let memory = self.k.buffer("sink", Access::Write, scalar);
        self.data.push(Data::Zeros(total * u64::from(SINK)));
        (memory, scalar)
    }

    /// The thread's numbers (X2): every thread of the grid has its own, edge threadgroups leave gaps.
    fn numbers(&mut self) {
        let k = &mut self.k;
        let mut group = k.threadgroup_position_in_grid(Dim::Z);
        for dim in [Dim::Y, Dim::X] {
            let size = k.threadgroups_per_grid(dim);
            let row = k.mul(group, size);
            let at = k.threadgroup_position_in_grid(dim);
            group = k.add(row, at);
        }
        let lane = k.thread_index_in_threadgroup();
        let mut threads = k.dispatch_threads_per_threadgroup(Dim::X);
        for dim in [Dim::Y, Dim::Z] {
            let size = k.dispatch_threads_per_threadgroup(dim);
            threads = k.mul(threads, size);
        }
        let first = k.mul(group, threads);
        let thread = k.add(first, lane);
        k.name(thread, "thread");
        (self.thread, self.group, self.lane) = (thread, group, lane);
        self.add(group, Level::Threadgroup);
        self.add(lane, Level::Varying);
        self.add(thread, Level::Varying);
    }

    /// Threadgroup arrays, which together fit: what no longer does is one element long.
    fn local_arrays(&mut self) {
        let dynamic = self.objects.iter();
        let dynamic = dynamic.filter(|o| matches!(o.owner, Owner::Threadgroup { .. }));
        let bytes = dynamic.map(|o| self.bytes(&o.element) * o.length);
        let mut left = (self.options.threadgroup_bytes).saturating_sub(bytes.sum());
        for i in 0..self.random.below(3) {
            let element = self.element_type();
            let stride = 1 + self.random.below(3) as u32;
            let mut length = self.random.pick(&[1, self.threads, self.threads * stride]);
            let bytes = self.bytes(&element);
            if bytes * u64::from(length) > left {
                length = 1;
            }
            let name = format!("shared{i}");
            // Some are imageblocks, where the threadgroup is flat.
            let all = bytes * u64::from(self.threads);
            let flat = self
                .k
                .kernel()
                .threadgroup_size
                .is_some_and(|[.., z]| z == 1);
            if i == 1 && stride == 3 && flat && all <= left {
                left -= all;
                let memory = self.k.imageblock(&name, element.clone());
                let owner = Owner::Imageblock;
                self.object(memory, element, u64::from(self.threads), owner);
                continue;
            }
            left = left.saturating_sub(bytes * u64::from(length));
            let memory = self.k.alloc_threadgroup(&name, element.clone(), length);
            let owner = Owner::Threadgroup { stride };
            self.object(memory, element, u64::from(length), owner);
        }
        if self.random.one_in(3) && self.options.atomics {
            let scalar = self.random.pick(&[Scalar::I32, Scalar::U32]);
            let memory = self.k.alloc_threadgroup("tally", scalar, 5);
            let kind = self.atomic_kind();
            self.object(memory, scalar.into(), 5, Owner::ThreadgroupAtomic(kind));
        }
    }

    /// Stores the bits of some of what is known where the host can see it.
    fn sink(&mut self, (memory, scalar): (invar_ir::Memory, Scalar)) {
        if self.k.terminated() {
            return;
        }
        let stride = self.constant_u32(SINK);
        let base = self.k.mul(self.thread, stride);
        let mut known = self.known.clone();
        known.reverse();
        for slot in 0..SINK {
            if known.is_empty() {
                return;
            }
            let at = self.random.below(known.len().min(24));
            let Known { value, ty, .. } = known.remove(at);
            let bits = self.bits_of(value, ty, scalar);
            let offset = self.constant_u32(slot);
            let index = self.k.add(base, offset);
            self.k.store(Place::element(memory, index), bits);
        }
    }

    /// All scalars of a value mixed into one integer, a NaN as 0.
    fn bits_of(&mut self, value: Value, ty: Type, scalar: Scalar) -> Value {
        match ty {
            Type::Matrix { columns, rows, .. } => {
                let parts = (0..columns).map(|c| {
                    let index = self.k.const_u32(u32::from(c));
                    let column = self.k.extract(value, index);
                    let s = ty.scalar().unwrap_or(Scalar::F32);
                    self.bits_of(column, Type::Vector(s, rows), scalar)
                });
                let parts: Vec<Value> = parts.collect();
                self.mix(&parts, scalar)
            }
            Type::Vector(s, n) => {
                let parts = (0..n).map(|c| {
                    let index = self.k.const_u32(u32::from(c));
                    let part = self.k.extract(value, index);
                    self.bits_of(part, Type::Scalar(s), scalar)
                });
                let parts: Vec<Value> = parts.collect();
                self.mix(&parts, scalar)
            }
            Type::Scalar(s) => {
                let mut value = value;
                if s.is_float() {
                    value = self.without_nan(value);
                    let bits = match s.bits() {
                        16 => Scalar::U16,
                        32 => Scalar::U32,
                        _wide => Scalar::U64,
                    };
                    value = self.k.as_type(value, Type::Scalar(bits));
                }
                self.k.cast(value, Type::Scalar(scalar))
            }
            Type::SimdgroupMatrix { .. } | Type::Event => value,
        }
    }

    fn mix(&mut self, parts: &[Value], scalar: Scalar) -> Value {
        let factor = self.k.constant(Const {
            scalar,
            bits: 0x0100_0193,
        });
        let mut sum = parts[0];
        for part in &parts[1..] {
            let scaled = self.k.mul(sum, factor);
            sum = self.k.xor(scaled, *part);
        }
        sum
    }
}
