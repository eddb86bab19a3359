//! Indices and accesses that keep to what a thread may touch of an object.

use invar_ir::{
    AtomicOp, Const, CopyOperands, Dim, ElementType, Level, Order, Place, Scalar, Scope, Step,
    Type, Value, Width,
};

use super::generator::Generator;
use super::objects::{AtomicKind, Object, Owner, Phase, STRIDE};

impl Generator<'_> {
    /// Any index, in most threads one below `length`.
    pub(super) fn free_index(&mut self, length: u64) -> Value {
        let scalar = self.integer_type();
        let from = self.get(Type::Scalar(scalar)).value;
        if self.random.one_in(4) {
            return from;
        }
        let most = u64::MAX >> (65 - scalar.bits());
        let bits = (length + 1).min(most);
        let divisor = self.k.constant(Const { scalar, bits });
        self.k.rem(from, divisor)
    }

    /// An index from which `reach` elements on there is certainly none.
    fn nowhere(&mut self, reach: u8) -> Value {
        let mut choices = vec![
            Const::from(-i32::from(reach)),
            Const::from(i32::MIN),
            Const::from(0x8000_0000u32),
            Const::from(u32::MAX),
        ];
        if self.wide() {
            choices.extend([
                Const::from(-i64::from(reach)),
                Const::from(i64::MIN),
                Const::from(0x4000_0000_0000_0000u64),
                Const::from(1u64 << 40),
                Const::from(u64::MAX),
            ]);
        }
        let constant = self.random.pick(&choices);
        self.k.constant(constant)
    }

    /// `base * stride + value % count`: an index in one's own part, sometimes turned into one from
    /// which `reach` elements on there is none.
    fn part(&mut self, base: Value, stride: u32, count: u32, reach: u8) -> Value {
        let stride = self.constant_u32(stride);
        let first = self.k.mul(base, stride);
        let offset = if self.random.one_in(2) {
            let offset = self.random_small(count as usize);
            self.constant_u32(offset)
        } else {
            let any = self.get(Type::U32).value;
            let count = self.constant_u32(count.max(1));
            self.k.rem(any, count)
        };
        let own = self.k.add(first, offset);
        if self.random.one_in(8) {
            let nowhere = self.nowhere(reach);
            let ty = self.k.ty(nowhere);
            let own = self.k.cast(own, ty);
            let outside = self.condition();
            return self.k.select(own, nowhere, outside);
        }
        let ty = match self.random.below(4) {
            0 => Type::I32,
            1 if self.wide() => Type::U64,
            2 if self.wide() => Type::Scalar(Scalar::I64),
            _ => return own,
        };
        self.k.cast(own, ty)
    }

    /// Index and width of an access to an object that this thread may make now.
    fn index(&mut self, object: &Object, store: bool) -> (Value, Width) {
        let scalars = matches!(object.element, ElementType::Value(Type::Scalar(_)));
        if object.owner == Owner::Imageblock {
            return (self.position(object), Width::One);
        }
        let count = 2 + self.random.below(3) as u8;
        let width = match self.random.below(4) {
            0 if scalars => Width::Run(count),
            1 if scalars => Width::Group(count),
            _ => Width::One,
        };
        let free = |maker: &mut Self, length: u64| {
            let length = match width {
                Width::One | Width::Run(_) => length,
                Width::Group(n) => length / u64::from(n),
            };
            (maker.free_index(length), width)
        };
        let n = u32::from(width.count());
        let in_part = |maker: &mut Self, base: Value, stride: u32| match width {
            // Only `Run` may begin at any element; the others need the part to be whole groups.
            Width::Group(_) if stride.is_multiple_of(n) => {
                (maker.part(base, stride / n, stride / n, 1), width)
            }
            Width::Run(_) if stride >= n => {
                (maker.part(base, stride, stride - n + 1, n as u8), width)
            }
            Width::One | Width::Run(_) | Width::Group(_) => {
                (maker.part(base, stride, stride, 1), Width::One)
            }
        };
        match (object.owner, object.phase) {
            (Owner::Input | Owner::Thread | Owner::DeviceAtomic(_) | Owner::Imageblock, _)
            | (Owner::ThreadgroupAtomic(_), _) => free(self, object.length),
            (Owner::Device { .. }, Phase::Own) => in_part(self, self.thread, STRIDE),
            (Owner::Threadgroup { stride }, Phase::Own) => in_part(self, self.lane, stride),
            (Owner::Threadgroup { .. }, Phase::Shared) => {
                debug_assert!(!store);
                free(self, object.length)
            }
            (Owner::Device { .. }, Phase::Shared) => {
                let stride = STRIDE * self.threads;
                in_part(self, self.group, stride)
            }
            (Owner::Threadgroup { stride }, _) => {
                let size = self.simdgroup.unwrap_or(1);
                let simdgroup = self.k.simdgroup_index_in_threadgroup();
                in_part(self, simdgroup, stride * size)
            }
            (Owner::Device { .. }, _) => in_part(self, self.thread, STRIDE),
        }
    }

    /// An element of an imageblock that this thread may access now: that at its position, or any, which may be none.
    fn position(&mut self, object: &Object) -> Value {
        let at = match object.phase {
            Phase::Shared => {
                let [width, height] = self.k.kernel().imageblock_size();
                [
                    self.free_index(width.into()),
                    self.free_index(height.into()),
                ]
            }
            Phase::Own | Phase::SharedInSimdgroup | Phase::Closed => {
                [Dim::X, Dim::Y].map(|dim| self.k.thread_position_in_threadgroup(dim))
            }
        };
        self.k.imageblock_element(object.memory, at)
    }

    /// A place in an object, down to a value.
    fn place(&mut self, object: &Object, store: bool) -> Place {
        let (index, width) = self.index(object, store);
        let mut place = Place {
            memory: object.memory,
            index,
            width,
            path: Default::default(),
        };
        if width == Width::One {
            self.descend(&object.element, &mut place);
        }
        place
    }

    fn descend(&mut self, element: &ElementType, place: &mut Place) {
        match element {
            ElementType::Struct(id) => {
                let def = &self.k.module().structs[id.0 as usize];
                let count = def.fields.len();
                let field = self.random.below(count);
                let inner = self.k.module().structs[id.0 as usize].fields[field]
                    .1
                    .clone();
                place.path.push(Step::Field(field as u32));
                self.descend(&inner, place);
            }
            ElementType::Array(inner, length) => {
                let index = self.free_index(u64::from(*length));
                place.path.push(Step::Index(index));
                self.descend(inner, place);
            }
            ElementType::Value(ty @ (Type::Vector(..) | Type::Matrix { .. })) => {
                if self.random.one_in(3) {
                    let index = self.free_index(4);
                    place.path.push(Step::Index(index));
                    if let Type::Matrix { scalar, rows, .. } = ty {
                        let column = ElementType::Value(Type::Vector(*scalar, *rows));
                        self.descend(&column, place);
                    }
                }
            }
            ElementType::Value(Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event) => {}
        }
    }

    pub(super) fn load(&mut self) {
        let Some(object) = self.choose(Object::can_load) else {
            return;
        };
        let place = self.place(&object, false);
        let value = self.k.load(place);
        self.add(value, Level::Varying);
    }

    /// A load from what the dispatch does not write, at an index that is the same for the threadgroup.
    pub(super) fn uniform_load(&mut self) {
        let Some(object) = self.choose(|o| o.owner == Owner::Input) else {
            return;
        };
        let index = self.uniform(Scalar::U32);
        let length = self.constant_u32(object.length as u32 + 1);
        let index = self.k.rem(index, length);
        let mut place = Place::element(object.memory, index);
        self.first_value(object.element, index, &mut place);
        let value = self.k.load(place);
        self.add(value, Level::Threadgroup);
    }

    /// The way to a value of an element, by first fields and this index of arrays.
    pub(super) fn first_value(
        &self,
        mut element: ElementType,
        index: Value,
        place: &mut Place,
    ) -> Type {
        loop {
            element = match element {
                ElementType::Struct(id) => {
                    place.path.push(Step::Field(0));
                    self.k.module().structs[id.0 as usize].fields[0].1.clone()
                }
                ElementType::Array(inner, _) => {
                    place.path.push(Step::Index(index));
                    (*inner).clone()
                }
                ElementType::Value(ty) => return ty,
            };
        }
    }

    pub(super) fn store(&mut self) {
        let Some(object) = self.choose(Object::can_store) else {
            return;
        };
        self.store_to(&object);
    }

    pub(super) fn store_to(&mut self, object: &Object) {
        let place = self.place(object, true);
        let ty = self.k.place_type(&place);
        let value = self.get(ty).value;
        self.k.store(place, value);
    }

    pub(super) fn atomic(&mut self) {
        let free = |o: &Object| match o.owner {
            Owner::DeviceAtomic(_) => true,
            Owner::ThreadgroupAtomic(_) => o.phase == Phase::Own,
            Owner::Input
            | Owner::Thread
            | Owner::Device { .. }
            | Owner::Threadgroup { .. }
            | Owner::Imageblock => false,
        };
        if let Some(object) = self.choose(free)
            && !self.random.one_in(3)
        {
            self.shared_atomic(&object);
            return;
        }
        self.own_atomic();
    }

    /// An atomic that any thread may make, of which nothing is used.
    fn shared_atomic(&mut self, object: &Object) {
        let (Owner::DeviceAtomic(kind) | Owner::ThreadgroupAtomic(kind)) = object.owner else {
            return;
        };
        let index = self.free_index(object.length);
        let mut place = Place::element(object.memory, index);
        let mut ty = self.k.place_type(&place);
        if let Type::Vector(scalar, n) = ty {
            let component = self.free_index(u64::from(n));
            place.path.push(Step::Index(component));
            ty = Type::Scalar(scalar);
        }
        let op = match kind {
            AtomicKind::Sum => self.random.pick(&[AtomicOp::Add, AtomicOp::Sub]),
            AtomicKind::One(op) => op,
        };
        let scope = match object.owner {
            Owner::DeviceAtomic(_) => Scope::Device,
            _threadgroup => Scope::Threadgroup,
        };
        let value = self.get(ty).value;
        self.k.atomic(op, place, &[value], Order::Relaxed, scope);
    }

    /// An atomic on an element of the thread's own, whose result is as certain as a load's.
    fn own_atomic(&mut self) {
        let wide = self.options.wide_atomics;
        let fits = |o: &Object| {
            let scalar = match o.element {
                ElementType::Value(Type::Scalar(s)) => s,
                _ => return false,
            };
            let wide = wide && matches!(scalar, Scalar::I64 | Scalar::U64);
            let known = wide || matches!(scalar, Scalar::I32 | Scalar::U32);
            let shared = !matches!(o.owner, Owner::Thread | Owner::Imageblock);
            known && shared && o.can_store() && o.can_load()
        };
        let Some(object) = self.choose(fits) else {
            return;
        };
        let (base, scope) = match object.owner {
            Owner::Device { .. } => (self.thread, Scope::Device),
            _threadgroup => (self.lane, Scope::Threadgroup),
        };
        let stride = object.stride().unwrap_or(1);
        let index = self.part(base, stride, stride, 1);
        let place = Place::element(object.memory, index);
        let ty = self.k.place_type(&place);
        let op = self.random.pick(&AtomicOp::ALL);
        let args: Vec<Value> = (0..op.operand_count())
            .map(|_| self.get(ty).value)
            .collect();
        let mut order = Order::Relaxed;
        if self.options.memory_orders && self.random.one_in(6) {
            order = match op {
                AtomicOp::Load => self.random.pick(&[Order::Acquire, Order::SeqCst]),
                AtomicOp::Store => self.random.pick(&[Order::Release, Order::SeqCst]),
                _both => self.random.pick(&Order::ALL),
            };
        }
        for value in self.k.atomic(op, place, &args, order, scope) {
            self.add(value, Level::Varying);
        }
    }

    /// A thread array, in reach until the block ends.
    pub(super) fn thread_array(&mut self) {
        let element = self.element_type();
        let length = 1 + self.random_small(6);
        let memory = self.k.alloc_thread("own", element.clone(), length);
        self.object(memory, element, u64::from(length), Owner::Thread);
        for _ in 0..self.random.below(3) {
            if let Some(object) = self.objects.last().cloned() {
                self.store_to(&object);
            }
        }
    }

    /// A copy by one thread, to elements of its own.
    pub(super) fn copy(&mut self) {
        let copies_reach = |o: &Object| o.owner != Owner::Imageblock;
        let Some(to) = self.choose(|o| copies_reach(o) && o.can_store()) else {
            return;
        };
        let element = to.element.clone();
        let same = |o: &Object| copies_reach(o) && o.can_load() && o.element == element;
        let Some(from) = self.choose(same) else {
            return;
        };
        // A copy within one part of a buffer overlaps itself; of a thread array it may.
        if from.memory == to.memory && to.owner != Owner::Thread {
            return;
        }
        let most = to
            .stride()
            .unwrap_or(6)
            .min(from.stride().unwrap_or(6))
            .min(6);
        let count = self.random_small(most as usize + 1);
        let destination_index = self.copy_index(&to, count);
        let source_index = self.copy_index(&from, count);
        let count = if self.random.one_in(8) {
            self.k.const_i32(-3)
        } else {
            self.constant_u32(count)
        };
        let operands = CopyOperands {
            destination: to.memory,
            destination_index,
            source: from.memory,
            source_index,
        };
        self.k.copy(operands, count);
    }

    /// The first of `count` elements that the thread may touch.
    fn copy_index(&mut self, object: &Object, count: u32) -> Value {
        let part = |maker: &mut Self, base: Value, stride: u32| {
            let stride_value = maker.constant_u32(stride);
            let first = maker.k.mul(base, stride_value);
            let offset = maker.random_small((stride - count) as usize + 1);
            let offset = maker.constant_u32(offset);
            maker.k.add(first, offset)
        };
        match (object.owner, object.phase) {
            (Owner::Device { .. }, _) => part(self, self.thread, STRIDE),
            (Owner::Threadgroup { stride }, Phase::Own | Phase::SharedInSimdgroup) => {
                part(self, self.lane, stride)
            }
            (Owner::Threadgroup { .. }, Phase::Shared | Phase::Closed)
            | (Owner::Input | Owner::Thread | Owner::Imageblock, _)
            | (Owner::DeviceAtomic(_) | Owner::ThreadgroupAtomic(_), _) => {
                self.free_index(object.length)
            }
        }
    }
}
