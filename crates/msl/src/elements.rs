//! The elements of simdgroup matrices by lane, `thread_elements()`.
//!
//! Lane `l` has two neighbours of one row: of row `(l / 4 & 4) + l / 2 % 4` those in the columns
//! `(l / 4 & 2) * 2 + l % 2 * 2` and one further. A matrix and its elements are turned into one another through
//! threadgroup memory of the simdgroup, between barriers of it.
//!
//! Invariant: a matrix of which elements are asked for is taken apart where it is computed, which all lanes
//! reach; so a lane may then do with its elements what others do not.

use invar_ir::{MatrixPlace, Memory, Op, Place, Scalar, Scope, Spaces, Type, Value, Width};
use invar_llvm::foreign::{self, Kind, Operand};
use smallvec::SmallVec;

use crate::lanes::{is_matrix, is_mixed, matrix_scalar};
use crate::translator::{Done, Translator};
use crate::value::{Address, Val};

/// Metal has at most so many simdgroups in a threadgroup.
const SIMDGROUPS: u32 = 32;
/// Entries of a matrix.
const ENTRIES: u32 = 64;

impl Translator<'_> {
    /// Makes room for the matrices of which lanes have elements.
    pub fn declare_lanes(&mut self) -> Done<()> {
        let f = self.f;
        let all = self.lanes.together.iter().chain(&self.lanes.apart);
        let mut scalars: Vec<Scalar> = Vec::new();
        for number in all {
            scalars.extend(matrix_scalar(f.insts[*number].ty));
        }
        scalars.extend(self.matrices_by_lane());
        scalars.sort_unstable();
        scalars.dedup();
        for scalar in &scalars {
            let name = format!("matrices.{}", scalar.name());
            let room = self
                .k
                .alloc_threadgroup(&name, *scalar, SIMDGROUPS * ENTRIES);
            self.lanes.room.insert(*scalar, room);
        }
        if scalars.is_empty() {
            return Ok(());
        }
        let mut number = |n: u64| self.bits(Scalar::U32, n);
        let (one, two, three, four) = (number(1), number(2), number(3), number(4));
        let entries = number(u64::from(ENTRIES));
        let group = self.op(Op::SimdgroupIndexInThreadgroup, &[]);
        let start = self.op(Op::Mul, &[group, entries]);
        let lane = self.op(Op::ThreadIndexInSimdgroup, &[]);
        let quad = self.op(Op::Shr, &[lane, two]);
        let row = self.op(Op::And, &[quad, four]);
        let half = self.op(Op::Shr, &[lane, one]);
        let low = self.op(Op::And, &[half, three]);
        let row = self.op(Op::Add, &[row, low]);
        let column = self.op(Op::And, &[quad, two]);
        let odd = self.op(Op::And, &[lane, one]);
        let column = self.op(Op::Add, &[column, odd]);
        let column = self.op(Op::Shl, &[column, one]);
        self.lanes.place = Some((start, row, column));
        Ok(())
    }

    /// The scalars of matrices that are not accessed as they are: those of memory with other granules, and
    /// diagonal ones.
    fn matrices_by_lane(&self) -> Vec<Scalar> {
        let mut all = Vec::new();
        for inst in &self.f.insts {
            let Kind::Call(name) = &inst.kind else {
                continue;
            };
            let Some((what, scalar)) = name
                .strip_prefix("invar.sgm.")
                .and_then(|rest| rest.split_once('.'))
            else {
                continue;
            };
            let operand = match what {
                "load" => 0,
                "store" => 1,
                "diagonal" => {
                    all.extend(Scalar::from_name(scalar));
                    continue;
                }
                "mma" => {
                    let scalars: Vec<&str> = scalar.split('.').collect();
                    if let [d, a, b] = scalars[..]
                        && is_mixed(d, a, b)
                    {
                        all.extend([d, a, b].into_iter().filter_map(Scalar::from_name));
                        all.push(Scalar::F32);
                    }
                    continue;
                }
                _other => continue,
            };
            let scalar = Scalar::from_name(scalar);
            let roots = self.objects.roots_of(&inst.operands[operand]);
            let is_other = |root| {
                let object = self.memory.get(root);
                object.is_some_and(|o| Some(o.scalar) != scalar)
            };
            if roots.iter().any(is_other) {
                all.extend(scalar);
            }
        }
        all
    }

    fn room(&self, scalar: Scalar) -> Done<(Memory, Value, Value, Value)> {
        match (self.lanes.room.get(&scalar), self.lanes.place) {
            (Some(room), Some((start, row, column))) => Ok((*room, start, row, column)),
            _none => Err(self.refuse("`thread_elements()` of this simdgroup matrix")),
        }
    }

    /// The place of the lane's two elements, and that of the matrix.
    fn room_places(&mut self, scalar: Scalar) -> Done<(Place, MatrixPlace)> {
        let (memory, start, row, column) = self.room(scalar)?;
        let eight = self.bits(Scalar::U32, 8);
        let first = self.op(Op::Mul, &[row, eight]);
        let first = self.op(Op::Add, &[first, column]);
        let first = self.op(Op::Add, &[start, first]);
        let own = Place {
            memory,
            index: first,
            width: Width::Run(2),
            path: SmallVec::new(),
        };
        let whole = MatrixPlace {
            memory,
            index: start,
            row: eight,
            transpose: false,
        };
        Ok((own, whole))
    }

    /// Takes a matrix apart if its elements are asked for; all lanes are here.
    pub fn take_apart(&mut self, inst: usize) -> Done<()> {
        if !self.lanes.apart.contains(&inst) {
            return Ok(());
        }
        match self.values.get(&inst) {
            Some(Val::One(matrix)) => {
                let matrix = *matrix;
                self.elements_of(matrix).map(|_| ())
            }
            _other => Ok(()),
        }
    }

    fn elements_of(&mut self, matrix: Value) -> Done<[Value; 2]> {
        if let Some(known) = self.known_elements(matrix) {
            return Ok(known);
        }
        let Some(scalar) = self.k.ty(matrix).scalar() else {
            return Err(self.refuse("`thread_elements()` of this simdgroup matrix"));
        };
        let (own, whole) = self.room_places(scalar)?;
        // What was there was read.
        self.k.barrier(Scope::Simdgroup, Spaces::THREADGROUP);
        self.k.matrix_store(whole, matrix);
        self.k.barrier(Scope::Simdgroup, Spaces::THREADGROUP);
        let both = self.k.load(own);
        let elements = [0_u32, 1].map(|n| {
            let n = self.bits(Scalar::U32, n.into());
            self.op(Op::Extract, &[both, n])
        });
        self.know(matrix, elements);
        Ok(elements)
    }

    /// The lane's elements of an operand that is a matrix.
    pub fn lane_elements(&mut self, value: Val, ty: foreign::Type) -> Done<[Value; 2]> {
        let Some(scalar) = matrix_scalar(ty) else {
            return Err(self.refuse("a vector of LLVM's that is not a simdgroup matrix"));
        };
        match value {
            Val::Lanes(elements) => Ok(elements),
            Val::One(matrix) => self.elements_of(matrix),
            // A variable without a value is 0 (I3).
            Val::Undefined => Ok([self.bits(scalar, 0); 2]),
            Val::Parts(parts) => {
                let mut elements = [self.bits(scalar, 0); 2];
                for (at, part) in parts {
                    if let ([at], Val::One(part)) = (&at[..], part) {
                        elements[*at as usize & 1] = self.as_scalar(part, scalar);
                    }
                }
                Ok(elements)
            }
            Val::Address(_) => Err(self.refuse("an address as a number")),
        }
    }

    /// The matrix whose elements lanes have.
    pub fn put_together(&mut self, elements: [Value; 2], ty: foreign::Type) -> Done<Value> {
        let matrix = self.value_type(ty)?;
        self.together_as(elements, matrix)
    }

    /// The same, by the type of the matrix.
    pub fn together_as(&mut self, elements: [Value; 2], matrix: Type) -> Done<Value> {
        if let Some(known) = self.known_matrix(elements) {
            return Ok(known);
        }
        let Some(scalar) = matrix.scalar() else {
            return Err(self.refuse("a vector of LLVM's that is not a simdgroup matrix"));
        };
        if elements[0] == elements[1] && self.known_constant(elements[0]).is_some() {
            return Ok(self.k.matrix_fill(matrix, elements[0]));
        }
        let (own, whole) = self.room_places(scalar)?;
        self.k.barrier(Scope::Simdgroup, Spaces::THREADGROUP);
        let both = self.k.construct(Type::Vector(scalar, 2), &elements);
        self.k.store(own, both);
        self.k.barrier(Scope::Simdgroup, Spaces::THREADGROUP);
        let result = self.k.matrix_load(matrix, whole);
        self.know(result, elements);
        Ok(result)
    }

    /// A matrix with entries of another float.
    pub fn matrix_of(&mut self, matrix: Value, scalar: Scalar) -> Done<Value> {
        if self.k.ty(matrix).scalar() == Some(scalar) {
            return Ok(matrix);
        }
        let elements = self
            .elements_of(matrix)?
            .map(|x| self.k.cast(x, Type::Scalar(scalar)));
        let ty = Type::SimdgroupMatrix {
            scalar,
            rows: 8,
            columns: 8,
        };
        self.together_as(elements, ty)
    }

    // ---- instructions ----

    /// An operand of an instruction that is one value of a scalar, or a matrix of a simdgroup.
    pub fn one(&mut self, inst: usize, operand: usize) -> Done<Value> {
        let f = self.f;
        let ty = f.insts[inst].types[operand];
        match self.operand(&f.insts[inst].operands[operand])? {
            Val::One(value) => Ok(value),
            Val::Lanes(elements) => self.put_together(elements, ty),
            parts @ Val::Parts(_) if matches!(ty, foreign::Type::Vector(..)) => {
                let elements = self.lane_elements(parts, ty)?;
                self.put_together(elements, ty)
            }
            Val::Undefined => Err(self.undefined()),
            Val::Address(_) => Err(self.refuse("an address as a number")),
            Val::Parts(_) => Err(self.refuse("a struct as a value")),
        }
    }

    pub fn extract_element(&mut self, number: usize) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let of = self.operand(&inst.operands[0])?;
        let [first, second] = self.lane_elements(of, inst.types[0])?;
        Ok(Val::One(match &inst.operands[1] {
            Operand::Bits(_, 0) => first,
            Operand::Bits(..) => second,
            _computed => {
                let is_second = self.is_second(number, 1)?;
                self.op(Op::Select, &[first, second, is_second])
            }
        }))
    }

    pub fn insert_element(&mut self, number: usize) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        let of = self.operand(&inst.operands[0])?;
        let [first, second] = self.lane_elements(of, inst.types[0])?;
        let value = match self.operand(&inst.operands[1])? {
            // What nobody gave is 0 (I3).
            Val::Undefined => first,
            _given => self.one(number, 1)?,
        };
        Ok(Val::Lanes(match &inst.operands[2] {
            Operand::Bits(_, 0) => [value, second],
            Operand::Bits(..) => [first, value],
            _computed => {
                let is_second = self.is_second(number, 2)?;
                [
                    self.op(Op::Select, &[value, first, is_second]),
                    self.op(Op::Select, &[second, value, is_second]),
                ]
            }
        }))
    }

    fn is_second(&mut self, number: usize, operand: usize) -> Done<Value> {
        let index = self.one(number, operand)?;
        let index = self.signed(index, false);
        let Some(scalar) = self.scalar(index) else {
            return Err(self.refuse("an element at an index of this type"));
        };
        let one = self.bits(scalar, 1);
        Ok(self.op(Op::Eq, &[index, one]))
    }

    /// Both elements as the bits of a number, or the other way round.
    pub fn element_bits(&mut self, number: usize) -> Done<Val> {
        let f = self.f;
        let inst = &f.insts[number];
        if is_matrix(inst.types[0]) {
            let of = self.operand(&inst.operands[0])?;
            let elements = self.lane_elements(of, inst.types[0])?;
            let Some(scalar) = self.scalar(elements[0]) else {
                return Err(self.refuse("the bits of a simdgroup matrix"));
            };
            if is_matrix(inst.ty) {
                return Err(self.refuse("a simdgroup matrix as one of another type"));
            }
            let to = self.value_type(inst.ty)?;
            let both = self.k.construct(Type::Vector(scalar, 2), &elements);
            return Ok(Val::One(self.k.as_type(both, to)));
        }
        let bits = self.one(number, 0)?;
        let Some(scalar) = matrix_scalar(inst.ty) else {
            return Err(self.refuse("the bits of a simdgroup matrix"));
        };
        let both = self.k.as_type(bits, Type::Vector(scalar, 2));
        Ok(Val::Lanes([0_u32, 1].map(|n| {
            let n = self.bits(Scalar::U32, n.into());
            self.op(Op::Extract, &[both, n])
        })))
    }

    /// A matrix from memory whose granules are not its elements: each lane loads its own.
    pub fn load_by_lane(
        &mut self,
        scalar: Scalar,
        address: &Address,
        row: Value,
        transpose: bool,
    ) -> Done<[Value; 2]> {
        let places = self.places_of_lane(scalar, address, row, transpose)?;
        let mut elements = [row; 2];
        for (element, place) in elements.iter_mut().zip(places) {
            let value = self.load_from(&place, element_type(scalar))?;
            *element = self.as_scalar(value, scalar);
        }
        Ok(elements)
    }

    /// Stores a matrix so.
    pub fn store_by_lane(
        &mut self,
        scalar: Scalar,
        address: &Address,
        row: Value,
        transpose: bool,
        matrix: Value,
    ) -> Done<()> {
        let elements = self.elements_of(matrix)?;
        let places = self.places_of_lane(scalar, address, row, transpose)?;
        for (element, place) in elements.into_iter().zip(places) {
            self.store_to(&place, element, element_type(scalar))?;
        }
        Ok(())
    }

    /// Where the lane's two elements of a matrix in memory are.
    fn places_of_lane(
        &mut self,
        scalar: Scalar,
        address: &Address,
        row_length: Value,
        transpose: bool,
    ) -> Done<[Address; 2]> {
        let (_, _, row, column) = self.room(scalar)?;
        let size = scalar.size_bytes() as i64;
        let row_length = self.wide(row_length);
        Ok([0, 1].map(|n| {
            let n = self.bits(Scalar::U32, n);
            let column = self.op(Op::Add, &[column, n]);
            let (along, across) = match transpose {
                false => (column, row),
                true => (row, column),
            };
            let (along, across) = (self.wide(along), self.wide(across));
            let rows = self.op(Op::Mul, &[across, row_length]);
            let mut place = address.clone();
            place.add(rows, size);
            place.add(along, size);
            place
        }))
    }

    /// A matrix with a value on its diagonal and 0 elsewhere.
    pub fn diagonal(&mut self, value: Value, ty: foreign::Type) -> Done<Value> {
        let Some(scalar) = matrix_scalar(ty) else {
            return Err(self.refuse("a simdgroup matrix of this type"));
        };
        let (_, _, row, column) = self.room(scalar)?;
        let zero = self.bits(scalar, 0);
        let elements = [0, 1].map(|n| {
            let n = self.bits(Scalar::U32, n);
            let column = self.op(Op::Add, &[column, n]);
            let is_on = self.op(Op::Eq, &[row, column]);
            self.op(Op::Select, &[zero, value, is_on])
        });
        self.put_together(elements, ty)
    }

    fn wide(&mut self, value: Value) -> Value {
        let wide = self.k.cast(value, Type::Scalar(Scalar::I64));
        self.signed(wide, true)
    }
}

/// LLVM's type of a matrix's elements.
fn element_type(scalar: Scalar) -> foreign::Type {
    match scalar {
        Scalar::F16 => foreign::Type::Half,
        Scalar::BF16 => foreign::Type::BFloat,
        _float => foreign::Type::Float,
    }
}
