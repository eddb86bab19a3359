//! Loads and stores of the objects of memory.

use invar_ir::{Const, Dim, ElementType, Memory, Op, Place, Scalar, Step, Type, Value, Width};
use invar_llvm::foreign::{self, DebugType, Operand};
use smallvec::SmallVec;

use crate::declared::vector;
use crate::fields::size;
use crate::objects::{odd_bits, scalar_of, written_scalar};
use crate::translator::{Done, Translator, describe};
use crate::value::{Address, Object, What};

/// More granules than these are not copied one by one.
const MAX_COPIED: u64 = 4096;

impl Translator<'_> {
    /// The index in an object that an access of so many bytes is made at. If its address is not a multiple of them, a
    /// check says so.
    fn index_of_access(&mut self, address: &Address, bytes: u64, object: &Object) -> Value {
        let (bytes, granule) = (bytes as i64, object.granule_bytes as i64);
        let is_multiple = address.constant % bytes == 0
            && address.terms.iter().all(|(_, scale)| scale % bytes == 0);
        if bytes > granule && self.asks_alignment && !is_multiple {
            self.distance_by(address, bytes, Op::ShrExact);
        }
        let op = match self.asks_alignment {
            true => Op::ShrExact,
            false => Op::Shr,
        };
        self.distance_by(address, granule, op)
    }

    /// The memory and index of granules that an access of so many bytes is made at.
    pub fn granules(&mut self, address: &Address, bytes: u64) -> Done<(Memory, Value, Object)> {
        let object = self.object(address)?;
        match object.what {
            What::Granules(memory) => {
                let index = self.index_of_access(address, bytes, &object);
                Ok((memory, index, object))
            }
            What::Unset(ref name) => Err(self.unset(name)),
            What::Fields(..) | What::Position(..) | What::Texture(..) | What::Sampler(_) => {
                Err(self.refuse("an access of this kind to a parameter"))
            }
        }
    }

    /// The place of a field, by the bytes before it.
    fn field_place(
        &mut self,
        memory: Memory,
        ty: &DebugType,
        offset: u64,
    ) -> Done<(Place, Scalar)> {
        let Some((steps, scalar)) = field(ty, offset) else {
            return Err(self.refuse("an access beside the fields of a struct"));
        };
        let index = self.constant(Const::from(0u32));
        let mut path: SmallVec<[Step; 2]> = SmallVec::new();
        let mut at = self.k.memory(memory).map(|m| m.element.clone());
        for step in steps {
            let next = match (&at, step) {
                (Some(ElementType::Struct(id)), By::Name(name)) => {
                    let def = &self.k.module().structs[id.0 as usize];
                    let found = def.fields.iter().position(|(n, _)| **n == *name);
                    let found = found.unwrap_or(0);
                    let ty = def.fields[found].1.clone();
                    path.push(Step::Field(found as u32));
                    Some(ty)
                }
                (Some(ElementType::Array(element, _)), By::Number(number)) => {
                    let element = (**element).clone();
                    let number = self.constant(Const::from(number as u32));
                    path.push(Step::Index(number));
                    Some(element)
                }
                _other => return Err(self.refuse("an access beside the fields of a struct")),
            };
            at = next;
        }
        let place = Place {
            memory,
            index,
            width: Width::One,
            path,
        };
        Ok((place, scalar))
    }

    /// A value of a type of LLVM's from an address.
    pub fn load_from(&mut self, address: &Address, ty: foreign::Type) -> Done<Value> {
        let Some(scalar) = scalar_of(ty).filter(|_| odd_bits(ty).is_none()) else {
            return Err(self.refuse(&describe(ty)));
        };
        if let Some(parts) = self.first_and_rest(address) {
            let (is_first, first, rest) = parts;
            self.open(&[]);
            let value = self.load_from(&first, ty)?;
            let value = self.as_scalar(value, scalar);
            self.k.yield_(&[value]);
            let yes = self.close();
            self.open(&[]);
            let value = self.load_from(&rest, ty)?;
            let value = self.as_scalar(value, scalar);
            self.k.yield_(&[value]);
            let no = self.close();
            return Ok(self.k.if_regions(is_first, yes, no)[0]);
        }
        let object = self.object(address)?;
        match object.what {
            What::Granules(memory) => {
                let first = self.index_of_access(address, ty.size_bytes(), &object);
                let count = ty.size_bytes() / object.granule_bytes;
                self.load_granules(memory, first, count, &object, scalar)
            }
            What::Fields(memory, debug) => {
                let offset = u64::try_from(address.constant)
                    .ok()
                    .filter(|_| address.terms.is_empty());
                let Some(offset) = offset else {
                    return Err(self.refuse("an index into a struct"));
                };
                let (place, _) = self.field_place(memory, &debug, offset)?;
                Ok(self.k.load(place)).map(|v| self.like(v, scalar))
            }
            What::Position(op, count) => self.load_position((op, count), &object, address, scalar),
            What::Texture(..) | What::Sampler(_) => {
                Err(self.refuse("a texture or sampler as a number"))
            }
            What::Unset(name) => Err(self.unset(&name)),
        }
    }

    /// Components of a position, as many as a scalar has room for; behind the third there is nothing.
    fn load_position(
        &mut self,
        (op, count): (Op, u32),
        object: &Object,
        address: &Address,
        scalar: Scalar,
    ) -> Done<Value> {
        let component = object.scalar;
        let (size, wanted) = (component.size_bytes() as i64, scalar.size_bytes() as i64);
        if address.constant % size != 0 || wanted % size != 0 {
            return Err(self.refuse("a part of a component of a position"));
        }
        let parts = wanted / size;
        let all: Vec<Value> = if address.terms.is_empty() {
            let first = address.constant / size;
            let parts = first..first + parts;
            parts
                .map(|number| self.position_component(op, component, number))
                .collect()
        } else {
            let first = self.index_of_access(address, wanted as u64, object);
            let whole: Vec<Value> = (0..i64::from(count))
                .map(|number| self.position_component(op, component, number))
                .collect();
            let ty = Type::Vector(component, whole.len() as u8);
            let whole = self.k.construct(ty, &whole);
            let part = |number: i64| {
                let index = self.sum(Some(first), &[], 1, number);
                self.op(Op::Extract, &[whole, index])
            };
            (0..parts).map(part).collect()
        };
        match &all[..] {
            [one] => Ok(self.as_scalar(*one, scalar)),
            [_, _] | [_, _, _, _] => {
                let all = self
                    .k
                    .construct(Type::Vector(component, all.len() as u8), &all);
                Ok(self.k.as_type(all, Type::Scalar(scalar)))
            }
            _other => Err(self.refuse("a part of a component of a position")),
        }
    }

    fn position_component(&mut self, op: Op, component: Scalar, number: i64) -> Value {
        let dim = usize::try_from(number)
            .ok()
            .and_then(|n| [Dim::X, Dim::Y, Dim::Z].get(n).copied());
        match dim {
            Some(dim) => {
                let value = self.k.op(op, dim, &[]);
                self.k.cast(value, Type::Scalar(component))
            }
            None => self.bits(component, 0),
        }
    }

    /// A value that was loaded, as an integer or float as asked; the sign stays.
    fn like(&mut self, value: Value, scalar: Scalar) -> Value {
        match self.scalar(value) {
            Some(found) if found.is_integer() && scalar.is_integer() => value,
            _other => self.as_scalar(value, scalar),
        }
    }

    fn load_granules(
        &mut self,
        memory: Memory,
        first: Value,
        count: u64,
        object: &Object,
        scalar: Scalar,
    ) -> Done<Value> {
        let run = |memory, index, n: u64| Place {
            memory,
            index,
            width: if n == 1 {
                Width::One
            } else {
                Width::Run(n as u8)
            },
            path: SmallVec::new(),
        };
        match count {
            1 => {
                let value = self.k.load(run(memory, first, 1));
                Ok(self.like(value, scalar))
            }
            2 | 4 => {
                let value = self.k.load(run(memory, first, count));
                Ok(self.k.as_type(value, Type::Scalar(scalar)))
            }
            8 if object.granule_bytes == 1 => {
                let four = self.bits(Scalar::I64, 4);
                let second = self.op(Op::Add, &[first, four]);
                let halves = [first, second].map(|index| {
                    let value = self.k.load(run(memory, index, 4));
                    self.k.as_type(value, Type::Scalar(Scalar::U32))
                });
                let both = self.k.construct(Type::Vector(Scalar::U32, 2), &halves);
                Ok(self.k.as_type(both, Type::Scalar(scalar)))
            }
            _other => Err(self.refuse("an access of this width")),
        }
    }

    /// Stores a value of a type of LLVM's at an address.
    pub fn store_to(&mut self, address: &Address, value: Value, ty: foreign::Type) -> Done<()> {
        if odd_bits(ty).is_some() {
            return Err(self.refuse(&describe(ty)));
        }
        if let Some((is_first, first, rest)) = self.first_and_rest(address) {
            self.open(&[]);
            self.store_to(&first, value, ty)?;
            let yes = self.close();
            self.open(&[]);
            self.store_to(&rest, value, ty)?;
            let no = self.close();
            self.k.if_regions(is_first, yes, no);
            return Ok(());
        }
        let (memory, first, object) = self.granules(address, ty.size_bytes())?;
        let count = ty.size_bytes() / object.granule_bytes;
        let place = |index, n: u64| Place {
            memory,
            index,
            width: if n == 1 {
                Width::One
            } else {
                Width::Run(n as u8)
            },
            path: SmallVec::new(),
        };
        let bits = self.scalar(value);
        match count {
            1 => {
                let value = match bits {
                    Some(Scalar::Bool) => self.k.cast(value, Type::Scalar(object.scalar)),
                    _other => self.as_scalar(value, object.scalar),
                };
                self.k.store(place(first, 1), value);
            }
            2 | 4 => {
                let parts = self
                    .k
                    .as_type(value, Type::Vector(object.scalar, count as u8));
                self.k.store(place(first, count), parts);
            }
            8 if object.granule_bytes == 1 => {
                let four = self.bits(Scalar::I64, 4);
                let second = self.op(Op::Add, &[first, four]);
                let both = self.k.as_type(value, Type::Vector(Scalar::U32, 2));
                for (number, index) in [first, second].into_iter().enumerate() {
                    let number = self.constant(Const::from(number as u32));
                    let half = self.op(Op::Extract, &[both, number]);
                    let parts = self.k.as_type(half, Type::Vector(object.scalar, 4));
                    self.k.store(place(index, 4), parts);
                }
            }
            _other => return Err(self.refuse("an access of this width")),
        }
        Ok(())
    }

    /// `memcpy` and `memset` of so many bytes.
    pub fn copy_bytes(&mut self, number: usize, is_set: bool) -> Done<()> {
        let f = self.f;
        let inst = &f.insts[number];
        let Some(Operand::Bits(_, bytes)) = inst.operands.get(2) else {
            return Err(self.refuse("a copy of a length that is computed"));
        };
        let to = self.address(&inst.operands[0])?;
        let target = self.object(&to)?;
        let mut unit = target.granule_bytes;
        let from = match is_set {
            true => None,
            false => {
                let from = self.address(&inst.operands[1])?;
                unit = unit.max(self.object(&from)?.granule_bytes);
                Some(from)
            }
        };
        if bytes % unit != 0 || bytes / unit > MAX_COPIED {
            return Err(self.refuse(&format!("a copy of {bytes} bytes at once")));
        }
        let ty = foreign::Type::Int(unit as u32 * 8);
        let same = match &inst.operands[1] {
            Operand::Bits(_, byte) if is_set => {
                let all = u64::from_le_bytes([*byte as u8; 8]);
                let scalar = scalar_of(ty).unwrap_or(Scalar::U8);
                Some(self.bits(scalar, all))
            }
            _ if is_set => return Err(self.refuse("`memset` by a value that is computed")),
            _copied => None,
        };
        // Of a struct whose fields are narrower it is not an access in that width.
        self.asks_alignment = false;
        let copied = self.copy_units(*bytes, (&to, from.as_ref()), same, ty);
        self.asks_alignment = true;
        copied
    }

    /// Copies one after another as many as fit so many bytes, or stores one value.
    fn copy_units(
        &mut self,
        bytes: u64,
        (to, from): (&Address, Option<&Address>),
        same: Option<Value>,
        ty: foreign::Type,
    ) -> Done<()> {
        for at in (0..bytes).step_by(ty.size_bytes() as usize) {
            let mut to = to.clone();
            to.constant += at as i64;
            let value = match (same, from) {
                (Some(value), _) => value,
                (None, Some(from)) => {
                    let mut from = from.clone();
                    from.constant += at as i64;
                    self.load_from(&from, ty)?
                }
                (None, None) => continue,
            };
            self.store_to(&to, value, ty)?;
        }
        Ok(())
    }
}

/// A step into a struct.
pub(crate) enum By {
    Name(String),
    Number(u64),
}

/// The way to the scalar that stands so many bytes into a type.
pub(crate) fn field(ty: &DebugType, offset: u64) -> Option<(Vec<By>, Scalar)> {
    match ty {
        DebugType::Scalar(name, bytes) => {
            let scalar = written_scalar(name, *bytes)?;
            (offset == 0).then(|| (Vec::new(), scalar))
        }
        DebugType::Array(element, count) => {
            let step = size(element).max(1);
            let number = offset / step;
            let (mut path, scalar) = field(element, offset % step)?;
            path.insert(0, By::Number(number));
            (number < *count).then_some((path, scalar))
        }
        DebugType::Struct(name, bytes, fields) => {
            if let Some((scalar, _)) = vector(name) {
                let number = offset / scalar.size_bytes();
                let inside = offset < *bytes && offset.is_multiple_of(scalar.size_bytes());
                return inside.then(|| (vec![By::Number(number)], scalar));
            }
            let (number, found) = fields.iter().enumerate().find(|(_, f)| {
                (f.offset_bytes..f.offset_bytes + size(&f.ty).max(1)).contains(&offset)
            })?;
            let (mut path, scalar) = field(&found.ty, offset - found.offset_bytes)?;
            let name = match &*found.name {
                "" => format!("base.{number}"),
                name => name.to_string(),
            };
            path.insert(0, By::Name(name));
            Some((path, scalar))
        }
        DebugType::Pointer(_) | DebugType::Other(..) => None,
    }
}
