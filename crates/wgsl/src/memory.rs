//! Variables, pointers, parts of values, loads and stores.

use std::rc::Rc;

use invar_ir::{
    AddressSpace, AtomicOp, InstKind, Memory, Op, Order, Place, Scope, Step, Type, Value, Values,
};
use naga::{Handle, TypeInner};
use smallvec::SmallVec;

use crate::translator::{Done, Translator};
use crate::types::{describe, field_name, part_type, value_type};
use crate::value::{At, Index, Layout, MemPtr, Ptr, Tree, Val};

/// Arrays up to so many elements are handled element by element; longer ones by a loop.
const MAX_UNROLLED: u32 = 16;

impl<'a> Translator<'a> {
    /// A variable of the thread, all zeros.
    pub fn variable(&mut self, name: &str, ty: Handle<naga::Type>) -> Done<Rc<Tree>> {
        let inner = &self.shader.types[ty].inner;
        if let Some(value) = value_type(inner) {
            let slot = self.slot(name);
            let zero = self.zero_of(value)?;
            self.env.insert(slot, zero);
            return Ok(Rc::new(Tree::Slot(slot)));
        }
        match inner {
            TypeInner::Struct { members, .. } => {
                let mut tree = Vec::new();
                for (number, member) in members.iter().enumerate() {
                    let name = format!("{name}.{}", field_name(member, number));
                    tree.push(self.variable(&name, member.ty)?);
                }
                Ok(Rc::new(Tree::Many(tree)))
            }
            TypeInner::Array { base, size, .. } => {
                let Some(length) = self.array_length(*size) else {
                    return Err(self.unexpected("a variable without a size"));
                };
                let element = self.array_element(*base, Layout::Own)?;
                let name = if name.is_empty() { "array" } else { name };
                let memory = self.k.alloc_thread(name, element, length);
                Ok(Rc::new(Tree::Memory(MemPtr {
                    memory,
                    index: None,
                    path: SmallVec::new(),
                    at: At::Type(ty, Layout::Own),
                })))
            }
            other => Err(self.refuse(&format!("{} as a variable", describe(other)))),
        }
    }

    /// A part of a value.
    pub fn part(&mut self, val: &Val, index: Index) -> Done<Val> {
        match val {
            Val::Pointer(ptr) => Ok(Val::Pointer(self.step(ptr, index)?)),
            Val::Texture(_) | Val::Sampler(_) => Err(self.unexpected("a part of a texture")),
            Val::Stored(ptr) => {
                let part = self.step(&Ptr::Memory(ptr.clone()), index)?;
                self.load(&part)
            }
            Val::Many(members) => match index {
                Index::Constant(i) => match members.get(i as usize) {
                    Some(member) => Ok(member.clone()),
                    None => Err(self.unexpected("a member that is not there")),
                },
                Index::Value(_) => Err(self.unexpected("a struct with a computed index")),
            },
            Val::One(value) => {
                if let Index::Constant(i) = index
                    && let Some(part) = self.parts.get(value).and_then(|p| p.get(i as usize))
                {
                    return Ok(Val::One(*part));
                }
                let index = self.index_value(index);
                Ok(Val::One(self.op(Op::Extract, &[*value, index])))
            }
        }
    }

    /// Follows an index.
    pub fn step(&mut self, ptr: &Ptr, index: Index) -> Done<Ptr> {
        match ptr {
            Ptr::Tree(tree) => match (&**tree, index) {
                (Tree::Many(members), Index::Constant(i)) => match members.get(i as usize) {
                    Some(member) => Ok(Ptr::Tree(member.clone())),
                    None => Err(self.unexpected("a member that is not there")),
                },
                (Tree::Many(_), Index::Value(_)) => {
                    Err(self.unexpected("a struct with a computed index"))
                }
                (Tree::Slot(slot), index) => {
                    let index = self.index_value(index);
                    Ok(Ptr::Part(*slot, SmallVec::from_slice(&[index])))
                }
                (Tree::Memory(memory), index) => {
                    let memory = memory.clone();
                    Ok(Ptr::Memory(self.memory_step(&memory, index)?))
                }
            },
            Ptr::Part(slot, path) => {
                let (slot, mut path) = (*slot, path.clone());
                path.push(self.index_value(index));
                Ok(Ptr::Part(slot, path))
            }
            Ptr::Memory(memory) => Ok(Ptr::Memory(self.memory_step(memory, index)?)),
        }
    }

    fn memory_step(&mut self, ptr: &MemPtr, index: Index) -> Done<MemPtr> {
        let shader = self.shader;
        let (ty, layout) = match ptr.at {
            At::Type(ty, layout) => (ty, layout),
            At::Part(ty) => {
                let Some(part) = part_type(ty) else {
                    return Err(self.unexpected("a part of a scalar"));
                };
                let step = self.index_step(index);
                return Ok(ptr.step(&[step], At::Part(part)));
            }
        };
        let inner = &shader.types[ty].inner;
        match inner {
            TypeInner::Array { base, .. } => {
                let at = At::Type(*base, layout);
                let wrapped = self.is_wrapped(*base, layout);
                let mut part = if ptr.index.is_none() {
                    let index = self.index_value(index);
                    MemPtr {
                        index: Some(index),
                        at,
                        ..ptr.clone()
                    }
                } else {
                    let step = self.index_step(index);
                    ptr.step(&[step], at)
                };
                if wrapped {
                    part.path.push(Step::Field(0));
                }
                Ok(part)
            }
            TypeInner::Struct { members, .. } => {
                let Index::Constant(number) = index else {
                    return Err(self.unexpected("a struct with a computed index"));
                };
                let Some(member) = members.get(number as usize) else {
                    return Err(self.unexpected("a member that is not there"));
                };
                let at = At::Type(member.ty, layout);
                let last = number as usize + 1 == members.len();
                if let Some(tail) = self.tails.get(&(ptr.memory, ty))
                    && last
                    && ptr.path.is_empty()
                {
                    return Ok(MemPtr {
                        memory: *tail,
                        index: None,
                        path: SmallVec::new(),
                        at,
                    });
                }
                let field = self.field_number(members, number, layout);
                Ok(ptr.step(&[Step::Field(field)], at))
            }
            TypeInner::Matrix { .. } | TypeInner::Vector { .. } => {
                let Some(part) = value_type(inner).and_then(part_type) else {
                    return Err(self.unexpected("a part of a scalar"));
                };
                let step = self.index_step(index);
                if Self::is_column_array(inner, layout) {
                    return Ok(ptr.step(&[step, Step::Field(0)], At::Part(part)));
                }
                Ok(ptr.step(&[step], At::Part(part)))
            }
            other => Err(self.unexpected(&format!("an index into {}", describe(other)))),
        }
    }

    /// How many parts a value in memory is handled as, if it is not a value of Invar.
    fn part_count(&self, ptr: &MemPtr) -> Option<u32> {
        let At::Type(ty, layout) = ptr.at else {
            return None;
        };
        match &self.shader.types[ty].inner {
            TypeInner::Array { size, .. } => self.array_length(*size),
            TypeInner::Struct { members, .. } => Some(members.len() as u32),
            inner @ TypeInner::Matrix { columns, .. } if Self::is_column_array(inner, layout) => {
                Some(*columns as u32)
            }
            _one_value => None,
        }
    }

    /// The type of what a load gives, if it is one value; of a matrix also where it is kept by column.
    fn value_at(&self, ptr: &MemPtr) -> Option<Type> {
        match ptr.at {
            At::Part(ty) => Some(ty),
            At::Type(ty, _) => value_type(&self.shader.types[ty].inner),
        }
    }

    fn is_atomic(&self, ptr: &MemPtr) -> bool {
        matches!(ptr.at, At::Type(ty, _) if matches!(self.shader.types[ty].inner, TypeInner::Atomic(_)))
    }

    fn place(&self, ptr: &MemPtr) -> Done<Place> {
        match ptr.place() {
            Some(place) => Ok(place),
            None => Err(self.unexpected("an access to a whole object")),
        }
    }

    /// The scope that atomics on a place have: everybody who can see it.
    fn scope(&self, memory: Memory) -> Scope {
        match self.k.memory(memory).map(|info| info.space) {
            Some(AddressSpace::Threadgroup) => Scope::Threadgroup,
            Some(
                AddressSpace::Device
                | AddressSpace::Constant
                | AddressSpace::Thread
                | AddressSpace::Texture
                | AddressSpace::Imageblock,
            )
            | None => Scope::Device,
        }
    }

    /// Reads what a pointer leads to.
    pub fn load(&mut self, ptr: &Ptr) -> Done<Val> {
        self.count()?;
        match ptr {
            Ptr::Tree(tree) => match &**tree {
                Tree::Slot(slot) => Ok(Val::One(self.current(*slot)?)),
                Tree::Many(members) => {
                    let mut values = Vec::new();
                    for member in members {
                        values.push(self.load(&Ptr::Tree(member.clone()))?);
                    }
                    Ok(Val::Many(values.into()))
                }
                Tree::Memory(memory) => self.load_memory(&memory.clone()),
            },
            Ptr::Part(slot, path) => {
                let mut value = self.current(*slot)?;
                for index in path {
                    let index = match self.known.get(index) {
                        Some(known) => Index::Constant(known.bits as u32),
                        None => Index::Value(*index),
                    };
                    let part = self.part(&Val::One(value), index)?;
                    value = self.one(&part)?;
                }
                Ok(Val::One(value))
            }
            Ptr::Memory(memory) => self.load_memory(memory),
        }
    }

    fn current(&self, slot: crate::value::Slot) -> Done<Value> {
        self.env
            .get(slot)
            .ok_or_else(|| self.unexpected("a variable that is gone"))
    }

    fn load_memory(&mut self, ptr: &MemPtr) -> Done<Val> {
        if self.is_atomic(ptr) {
            let place = self.place(ptr)?;
            let scope = self.scope(ptr.memory);
            let old = self
                .k
                .atomic(AtomicOp::Load, place, &[], Order::Relaxed, scope);
            return Ok(Val::One(old[0]));
        }
        let Some(count) = self.part_count(ptr) else {
            if self.value_at(ptr).is_none() {
                return Err(self.unexpected("a load of what is not a value"));
            }
            let place = self.place(ptr)?;
            return Ok(Val::One(self.k.load(place)));
        };
        if matches!(ptr.memory, Memory::Constant(_)) {
            return Ok(Val::Stored(ptr.clone()));
        }
        if let Some(ty) = self.value_at(ptr) {
            let mut columns = Vec::new();
            for i in 0..count {
                let column = self.memory_step(ptr, Index::Constant(i))?;
                let column = self.load_memory(&column)?;
                columns.push(self.one(&column)?);
            }
            return Ok(Val::One(self.construct(ty, &columns)));
        }
        if count > MAX_UNROLLED
            && let At::Type(ty, _) = ptr.at
            && matches!(self.shader.types[ty].inner, TypeInner::Array { .. })
        {
            // A long array: its contents as they are now.
            let whole = self.k.memory(ptr.memory).map(|info| info.name.to_string());
            let copy = format!("{}.copy", whole.as_deref().unwrap_or("array"));
            let copy = self.variable(&copy, ty)?;
            if let Tree::Memory(to) = &*copy {
                let to = to.clone();
                self.copy_elements(&to, ptr, count)?;
                return Ok(Val::Stored(to));
            }
        }
        let mut parts = Vec::new();
        for i in 0..count {
            let part = self.memory_step(ptr, Index::Constant(i))?;
            parts.push(self.load_memory(&part)?);
        }
        Ok(Val::Many(parts.into()))
    }

    /// Writes to where a pointer leads.
    pub fn store(&mut self, ptr: &Ptr, value: &Val) -> Done<()> {
        self.count()?;
        match ptr {
            Ptr::Tree(tree) => match &**tree {
                Tree::Slot(slot) => {
                    let value = self.one(value)?;
                    self.set(*slot, value);
                    Ok(())
                }
                Tree::Many(members) => {
                    for (i, member) in members.iter().enumerate() {
                        let part = self.part(value, Index::Constant(i as u32))?;
                        self.store(&Ptr::Tree(member.clone()), &part)?;
                    }
                    Ok(())
                }
                Tree::Memory(memory) => self.store_memory(&memory.clone(), value),
            },
            Ptr::Part(slot, path) => {
                let old = self.current(*slot)?;
                let value = self.one(value)?;
                let new = match path[..] {
                    [index] => self.insert(old, index, value),
                    [column, index] => {
                        let inner = self.op(Op::Extract, &[old, column]);
                        let inner = self.insert(inner, index, value);
                        self.insert(old, column, inner)
                    }
                    [..] => return Err(self.unexpected("a part of a part of a part")),
                };
                self.set(*slot, new);
                Ok(())
            }
            Ptr::Memory(memory) => self.store_memory(memory, value),
        }
    }

    /// A vector or matrix with a part replaced.
    fn insert(&mut self, old: Value, index: Value, part: Value) -> Value {
        let new = self.op(Op::Insert, &[old, index, part]);
        if let (Some(known), Some(parts)) = (self.known.get(&index), self.parts.get(&old)) {
            let mut parts = parts.clone();
            if let Some(slot) = parts.get_mut(known.bits as usize) {
                *slot = part;
            }
            self.parts.insert(new, parts);
        }
        new
    }

    fn store_memory(&mut self, ptr: &MemPtr, value: &Val) -> Done<()> {
        if self.is_atomic(ptr) {
            let place = self.place(ptr)?;
            let scope = self.scope(ptr.memory);
            let value = self.one(value)?;
            self.k
                .atomic(AtomicOp::Store, place, &[value], Order::Relaxed, scope);
            return Ok(());
        }
        let Some(count) = self.part_count(ptr) else {
            let place = self.place(ptr)?;
            let value = self.one(value)?;
            self.k.store(place, value);
            return Ok(());
        };
        if let Val::Stored(from) = value
            && count > MAX_UNROLLED
        {
            return self.copy_elements(ptr, from, count);
        }
        for i in 0..count {
            self.count()?;
            let to = self.memory_step(ptr, Index::Constant(i))?;
            let part = self.part(value, Index::Constant(i))?;
            self.store_memory(&to, &part)?;
        }
        Ok(())
    }

    /// Makes what a pointer leads to zero, also where there is no value for it.
    pub fn store_zero(&mut self, ptr: &Ptr, ty: Handle<naga::Type>) -> Done<()> {
        let memory = match ptr {
            Ptr::Tree(tree) => match &**tree {
                Tree::Many(members) => {
                    let TypeInner::Struct { members: types, .. } = &self.shader.types[ty].inner
                    else {
                        return Err(self.unexpected("members of what is not a struct"));
                    };
                    for (member, ty) in members.iter().zip(types) {
                        self.store_zero(&Ptr::Tree(member.clone()), ty.ty)?;
                    }
                    return Ok(());
                }
                Tree::Slot(_) => None,
                Tree::Memory(memory) => Some(memory.clone()),
            },
            Ptr::Part(..) => None,
            Ptr::Memory(memory) => Some(memory.clone()),
        };
        if let (Some(memory), TypeInner::Array { base, .. }) =
            (memory, &self.shader.types[ty].inner)
            && let Some(count) = self.part_count(&memory)
            && count > MAX_UNROLLED
        {
            let base = *base;
            return self.each(count, |t, i| {
                let element = t.memory_step(&memory, i)?;
                t.store_zero(&Ptr::Memory(element), base)
            });
        }
        let zero = self.zero(ty, "array")?;
        self.store(ptr, &zero)
    }

    /// The zero of a type. Arrays of it have the name, where they are long.
    pub fn zero(&mut self, ty: Handle<naga::Type>, name: &str) -> Done<Val> {
        let inner = &self.shader.types[ty].inner;
        if let Some(value) = value_type(inner) {
            return Ok(Val::One(self.zero_of(value)?));
        }
        match inner {
            TypeInner::Struct { members, .. } => {
                let mut values = Vec::new();
                for member in members {
                    values.push(self.zero(member.ty, name)?);
                }
                Ok(Val::Many(values.into()))
            }
            TypeInner::Array { base, size, .. } => {
                let Some(length) = self.array_length(*size) else {
                    return Err(self.unexpected("a zero of no size"));
                };
                if length > MAX_UNROLLED {
                    // Thread memory is all zeros where it begins (I3).
                    let tree = self.variable(name, ty)?;
                    if let Tree::Memory(memory) = &*tree {
                        return Ok(Val::Stored(memory.clone()));
                    }
                }
                let zero = self.zero(*base, name)?;
                Ok(Val::Many(vec![zero; length as usize].into()))
            }
            other => Err(self.refuse(&format!("a zero of {}", describe(other)))),
        }
    }

    fn copy_elements(&mut self, to: &MemPtr, from: &MemPtr, count: u32) -> Done<()> {
        let (to, from) = (to.clone(), from.clone());
        self.each(count, |t, i| {
            let from = t.memory_step(&from, i)?;
            let value = t.load_memory(&from)?;
            let to = t.memory_step(&to, i)?;
            t.store_memory(&to, &value)
        })
    }

    /// Builds a loop over the indices of an array.
    fn each(&mut self, count: u32, body: impl FnOnce(&mut Self, Index) -> Done<()>) -> Done<()> {
        let (lower, upper, step) = (self.number(0), self.number(count), self.number(1));
        let index = self.open(&[Type::U32])[0];
        let done = body(self, Index::Value(index));
        let body = self.close();
        done?;
        self.k.push(
            InstKind::For {
                lower,
                upper,
                step,
                init: Values::new(),
                body,
            },
            &[],
        );
        Ok(())
    }

    /// An array in memory of that name, so that it can be reached by a computed index.
    pub fn spill(&mut self, array: &Val, ty: Handle<naga::Type>, name: &str) -> Done<Val> {
        let tree = self.variable(name, ty)?;
        self.store(&Ptr::Tree(tree.clone()), array)?;
        match &*tree {
            Tree::Memory(memory) => Ok(Val::Stored(memory.clone())),
            Tree::Slot(_) | Tree::Many(_) => Err(self.unexpected("expected an array")),
        }
    }

    /// An atomic operation.
    pub fn atomic(&mut self, ptr: &Ptr, op: AtomicOp, args: &[Value]) -> Done<Val> {
        let Ptr::Memory(memory) = ptr else {
            return Err(self.unexpected("an atomic that is not in memory"));
        };
        let place = self.place(memory)?;
        let scope = self.scope(memory.memory);
        let results = self.k.atomic(op, place, args, Order::Relaxed, scope);
        Ok(match results[..] {
            [old, exchanged] => Val::Many(vec![Val::One(old), Val::One(exchanged)].into()),
            [old] => Val::One(old),
            [..] => Val::Many(Vec::new().into()),
        })
    }

    /// Every thread's copy of a value that is the same for the threadgroup.
    pub fn uniform(&mut self, val: &Val) -> Done<Val> {
        match val {
            Val::One(value) => Ok(Val::One(self.k.assert_uniform(*value, Scope::Threadgroup))),
            Val::Many(members) => {
                let mut values = Vec::new();
                for member in members.iter() {
                    values.push(self.uniform(member)?);
                }
                Ok(Val::Many(values.into()))
            }
            Val::Stored(_) | Val::Pointer(_) | Val::Texture(_) | Val::Sampler(_) => {
                Err(self.refuse("`workgroupUniformLoad` of a long array"))
            }
        }
    }
}
