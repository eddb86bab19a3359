//! Functions that Metal defines: the headers leave them as calls of `invar.NAME.TYPE`, and LLVM has a few of
//! its own.

use invar_ir::{Const, Diagnostic, MatrixPlace, Op, Rule, Scalar, Scope, Spaces, Type, Value};
use invar_llvm::foreign::{Block, Operand, function_name};

use crate::atomics::suffix;
use crate::objects::Root;
use crate::translator::{Done, Translator};
use crate::value::{Address, Val};

impl Translator<'_> {
    /// Translates a call; `None` if it gives nothing.
    pub fn call(&mut self, number: usize, name: &str) -> Done<Option<Val>> {
        let parts: Vec<&str> = name.split('.').collect();
        match parts[..] {
            ["invar", "threadgroup_barrier"] => self.barrier(number, Scope::Threadgroup),
            ["invar", "simdgroup_barrier"] => self.barrier(number, Scope::Simdgroup),
            ["invar", "sgm", ref what @ ..] => self.matrix(number, what),
            ["invar", "texture", ref what @ ..] => self.texture(number, what),
            ["invar", "atomic", op, scalar] => self.atomic(number, op, scalar),
            ["invar", "simd_ballot", _] => self.ballot(number).map(Some),
            ["invar", "simd_is_first", _] => {
                // Of the threads that come here.
                let lane = self.op(Op::ThreadIndexInSimdgroup, &[]);
                let first = self.op(Op::SimdBroadcastFirst, &[lane]);
                Ok(Some(Val::One(self.op(Op::Eq, &[lane, first]))))
            }
            ["invar", "pixel", name] => Err(self.refuse(&format!("the pixel data type `{name}`"))),
            // Only LLVM is not to know it.
            ["invar", "said", what] => self.log(number, what).map(|()| None),
            ["invar", "outside"] => Err(self.outside()),
            ["invar", "kept", _] => Ok(Some(Val::One(self.one(number, 0)?))),
            ["invar", op, scalar] => self.function(number, op, scalar).map(Some),
            ["llvm", "memcpy" | "memmove", ..] => self.copy_bytes(number, false).map(|()| None),
            ["llvm", "memset", ..] => self.set_bytes(number).map(|()| None),
            ["llvm", op, ..] => self.intrinsic(number, op),
            // Every other call of the source's own functions is inlined.
            _ if name.starts_with("_Z") => {
                let name = function_name(name);
                let what = format!("the function `{name}`, which calls itself or has no body,");
                Err(self.refuse(&what))
            }
            _ => Err(self.refuse(&format!("the function `{}`", spelled(name)))),
        }
    }

    fn outside(&self) -> Diagnostic {
        Diagnostic::error(
            Rule::OutOfBounds,
            self.k.span(),
            "an element is accessed here that the array does not have",
        )
        .help("give the array that many elements, or check the index before")
    }

    /// A variable of the thread is all zeros when it begins, so zeros need not be stored once more.
    fn set_bytes(&mut self, number: usize) -> Done<()> {
        let f = self.f;
        let inst = &f.insts[number];
        let is_zero = matches!(inst.operands[1], Operand::Bits(_, 0));
        let address = self.address(&inst.operands[0])?;
        let is_own = matches!(address.root, Some(Root::Variable(_)));
        // Blocks have the instructions in order.
        let up_to = |block: &Block| block.insts.first().is_some_and(|first| *first <= number);
        let block = f.blocks.partition_point(up_to).checked_sub(1);
        let is_once = block.is_some_and(|b| !self.graph.is_in_loop(b));
        if is_zero && is_own && is_once {
            return Ok(());
        }
        // Nobody reads what is not declared.
        if is_own
            && address
                .root
                .is_some_and(|root| !self.memory.contains_key(&root))
        {
            return Ok(());
        }
        self.copy_bytes(number, true)
    }

    fn flags(&self, number: usize) -> Done<Spaces> {
        match self.f.insts[number].operands.first() {
            Some(Operand::Bits(_, flags)) => {
                let known = [
                    (1, Spaces::DEVICE),
                    (2, Spaces::THREADGROUP),
                    (4, Spaces::TEXTURE),
                    (8, Spaces::IMAGEBLOCK),
                ];
                let named = known.iter().filter(|(bit, _)| flags & bit != 0);
                Ok(named.fold(Spaces::NONE, |all, (_, one)| all.with(*one)))
            }
            _computed => Err(self.refuse("a barrier whose flags are computed")),
        }
    }

    fn barrier(&mut self, number: usize, scope: Scope) -> Done<Option<Val>> {
        let spaces = self.flags(number)?;
        self.k.barrier(scope, spaces);
        Ok(None)
    }

    // ---- simdgroup matrices ----

    fn matrix(&mut self, number: usize, what: &[&str]) -> Done<Option<Val>> {
        let f = self.f;
        let operands = &f.insts[number].operands;
        let matrix = |s: &str| {
            Scalar::from_name(s).map(|scalar| Type::SimdgroupMatrix {
                scalar,
                rows: 8,
                columns: 8,
            })
        };
        let place = |t: &mut Self, first: usize| -> Done<(Address, Value, bool)> {
            let address = t.address(&operands[first])?;
            let row = t.one(number, first + 1)?;
            match operands[first + 2] {
                Operand::Bits(_, bit) => Ok((address, row, bit != 0)),
                _ => Err(t.refuse("a matrix that is transposed by a value")),
            }
        };
        match what {
            ["load", s] => {
                let Some(ty) = matrix(s) else {
                    return Err(self.refuse("a simdgroup matrix of this type"));
                };
                let (address, row, transpose) = place(self, 0)?;
                let value = self.load_matrix(ty, &address, row, transpose)?;
                Ok(Some(Val::One(value)))
            }
            ["store", _] => {
                let value = self.one(number, 0)?;
                let (address, row, transpose) = place(self, 1)?;
                self.store_matrix(value, &address, row, transpose)
                    .map(|()| None)
            }
            ["fill", s] => {
                let value = self.one(number, 0)?;
                match matrix(s) {
                    Some(ty) => Ok(Some(Val::One(self.k.matrix_fill(ty, value)))),
                    None => Err(self.refuse("a simdgroup matrix of this type")),
                }
            }
            ["mma", d, a, b] => {
                let is_mixed = crate::lanes::is_mixed(d, a, b);
                let (a, b, c) = (
                    self.one(number, 0)?,
                    self.one(number, 1)?,
                    self.one(number, 2)?,
                );
                if !is_mixed {
                    return Ok(Some(Val::One(self.k.matrix_multiply_accumulate(a, b, c))));
                }
                // Products and sums of different floats are of the widest.
                let [a, b, wide] = [
                    self.matrix_of(a, Scalar::F32)?,
                    self.matrix_of(b, Scalar::F32)?,
                    self.matrix_of(c, Scalar::F32)?,
                ];
                let sum = self.k.matrix_multiply_accumulate(a, b, wide);
                let scalar = self.k.ty(c).scalar().unwrap_or(Scalar::F32);
                Ok(Some(Val::One(self.matrix_of(sum, scalar)?)))
            }
            ["diagonal", _] => {
                let value = self.one(number, 0)?;
                let matrix = self.diagonal(value, f.insts[number].ty)?;
                Ok(Some(Val::One(matrix)))
            }
            _other => Err(self.refuse("this function of simdgroup matrices")),
        }
    }

    /// A matrix from an address, which may lead to one of several objects.
    fn load_matrix(
        &mut self,
        ty: Type,
        address: &Address,
        row: Value,
        transpose: bool,
    ) -> Done<Value> {
        if let Some((is_first, first, rest)) = self.first_and_rest(address) {
            let mut sides = Vec::new();
            for side in [first, rest] {
                self.open(&[]);
                let value = self.load_matrix(ty, &side, row, transpose)?;
                self.k.yield_(&[value]);
                sides.push(self.close());
            }
            let no = sides.pop().unwrap_or_default();
            let yes = sides.pop().unwrap_or_default();
            return Ok(self.k.if_regions(is_first, yes, no)[0]);
        }
        let bytes = ty.scalar().map_or(1, Scalar::size_bytes);
        let (memory, index, object) = self.granules(address, bytes)?;
        if let Some(scalar) = ty.scalar()
            && scalar != object.scalar
        {
            let elements = self.load_by_lane(scalar, address, row, transpose)?;
            return self.together_as(elements, ty);
        }
        let place = MatrixPlace {
            memory,
            index,
            row,
            transpose,
        };
        Ok(self.k.matrix_load(ty, place))
    }

    /// A matrix to an address, which may lead to one of several objects.
    fn store_matrix(
        &mut self,
        value: Value,
        address: &Address,
        row: Value,
        transpose: bool,
    ) -> Done<()> {
        if let Some((is_first, first, rest)) = self.first_and_rest(address) {
            self.open(&[]);
            self.store_matrix(value, &first, row, transpose)?;
            let yes = self.close();
            self.open(&[]);
            self.store_matrix(value, &rest, row, transpose)?;
            let no = self.close();
            self.k.if_regions(is_first, yes, no);
            return Ok(());
        }
        let bytes = self.k.ty(value).scalar().map_or(1, Scalar::size_bytes);
        let (memory, index, object) = self.granules(address, bytes)?;
        if let Some(scalar) = self.k.ty(value).scalar()
            && scalar != object.scalar
        {
            return self.store_by_lane(scalar, address, row, transpose, value);
        }
        let place = MatrixPlace {
            memory,
            index,
            row,
            transpose,
        };
        self.k.matrix_store(place, value);
        Ok(())
    }

    // ---- functions ----

    fn ballot(&mut self, number: usize) -> Done<Val> {
        let condition = self.one(number, 0)?;
        let all = self.op(Op::SimdBallot, &[condition]);
        let words = [0_u32, 1].map(|word| {
            let word = self.constant(Const::from(word));
            self.op(Op::Extract, &[all, word])
        });
        let both = self.k.construct(Type::Vector(Scalar::U32, 2), &words);
        Ok(Val::One(self.k.as_type(both, Type::Scalar(Scalar::U64))))
    }

    /// A function of the headers that is an operation by its name.
    fn function(&mut self, number: usize, name: &str, scalar: &str) -> Done<Val> {
        let inst = &self.f.insts[number];
        let unknown = |t: &Self| t.refuse(&format!("the function `{name}` of `{scalar}`"));
        let Some(scalar) = suffix(scalar) else {
            return Err(unknown(self));
        };
        if name == "simd_shuffle_and_fill_up" || name == "simd_shuffle_and_fill_down" {
            return self.shuffle_and_fill(number, name == "simd_shuffle_and_fill_up", scalar);
        }
        if name == "nextafter" {
            return self.next_after(number, scalar);
        }
        if name == "fdim" {
            return self.positive_difference(number);
        }
        let name = if name == "fabs" { "abs" } else { name };
        let Some(op) = Op::from_name(name) else {
            return Err(unknown(self));
        };
        let mut arguments = Vec::new();
        for operand in 0..inst.operands.len() {
            let value = self.one(number, operand)?;
            let is_first = operand == 0 || inst.types[operand] == inst.types[0];
            let by_lane = name.starts_with("simd_") || name.starts_with("quad_");
            arguments.push(match self.scalar(value) {
                Some(found) if operand > 0 && by_lane && found.is_integer() => {
                    self.signed(value, false)
                }
                Some(_) if name == "ldexp" && operand == 1 => self.signed(value, true),
                Some(found) if is_first && found.bits() == scalar.bits() => {
                    self.as_scalar(value, scalar)
                }
                _other => value,
            });
        }
        Ok(Val::One(self.op(op, &arguments)))
    }

    /// How much more the first is than the second: 0 where it is not more.
    fn positive_difference(&mut self, number: usize) -> Done<Val> {
        let (x, y) = (self.one(number, 0)?, self.one(number, 1)?);
        let zero = self.zero(self.k.ty(x))?;
        let is_not_more = self.op(Op::Le, &[x, y]);
        let more = self.op(Op::Sub, &[x, y]);
        Ok(Val::One(self.op(Op::Select, &[more, zero, is_not_more])))
    }

    /// The number next to the first towards the second: the one whose bits are one more or less.
    fn next_after(&mut self, number: usize, scalar: Scalar) -> Done<Val> {
        let (x, y) = (self.one(number, 0)?, self.one(number, 1)?);
        let (bits, sign) = match scalar {
            Scalar::F16 => (Scalar::I16, 1 << 15),
            Scalar::F32 => (Scalar::I32, 1 << 31),
            _other => return Err(self.refuse("`nextafter` of this type")),
        };
        let zero = self.bits(scalar, 0);
        let [x_bits, y_bits] = [x, y].map(|v| self.as_scalar(v, bits));
        let (one, minus_one) = (self.bits(bits, 1), self.bits(bits, u64::MAX));
        let less = self.op(Op::Lt, &[x, y]);
        let positive = self.op(Op::Gt, &[x, zero]);
        let grows = self.op(Op::Eq, &[less, positive]);
        let step = self.op(Op::Select, &[minus_one, one, grows]);
        let next = self.op(Op::Add, &[x_bits, step]);
        // Next to 0 is the smallest number with the other's sign.
        let sign = self.bits(bits, sign);
        let side = self.op(Op::And, &[y_bits, sign]);
        let smallest = self.op(Op::Or, &[side, one]);
        let is_zero = self.op(Op::Eq, &[x, zero]);
        let next = self.op(Op::Select, &[next, smallest, is_zero]);
        let next = self.as_scalar(next, scalar);
        let equal = self.op(Op::Eq, &[x, y]);
        let next = self.op(Op::Select, &[next, y, equal]);
        // Of a NaN the sum, which is one.
        let sum = self.op(Op::Add, &[x, y]);
        let unordered = {
            let (a, b) = (self.op(Op::IsNan, &[x]), self.op(Op::IsNan, &[y]));
            self.op(Op::Or, &[a, b])
        };
        Ok(Val::One(self.op(Op::Select, &[next, sum, unordered])))
    }

    /// A shuffle whose lanes beyond the simdgroup come from another value: lane `i` of the first, of the
    /// second where that is outside.
    fn shuffle_and_fill(&mut self, number: usize, up: bool, scalar: Scalar) -> Done<Val> {
        let (x, fill, delta) = (
            self.one(number, 0)?,
            self.one(number, 1)?,
            self.one(number, 2)?,
        );
        let (x, fill) = (self.as_scalar(x, scalar), self.as_scalar(fill, scalar));
        let delta = self.signed(delta, false);
        let delta = self.k.cast(delta, Type::U32);
        let lane = self.op(Op::ThreadIndexInSimdgroup, &[]);
        let size = self.op(Op::ThreadsPerSimdgroup, &[]);
        let one = self.bits(Scalar::U32, 1);
        let last = self.op(Op::Sub, &[size, one]);
        let (from, is_outside) = if up {
            let from = self.op(Op::Sub, &[lane, delta]);
            (from, self.op(Op::Lt, &[lane, delta]))
        } else {
            let from = self.op(Op::Add, &[lane, delta]);
            (from, self.op(Op::Ge, &[from, size]))
        };
        let from = self.op(Op::And, &[from, last]);
        let inside = self.op(Op::SimdShuffle, &[x, from]);
        let outside = self.op(Op::SimdShuffle, &[fill, from]);
        Ok(Val::One(
            self.op(Op::Select, &[inside, outside, is_outside]),
        ))
    }

    /// A function of LLVM's own.
    fn intrinsic(&mut self, number: usize, name: &str) -> Done<Option<Val>> {
        let inst = &self.f.insts[number];
        let (op, sign) = match name {
            "fabs" => (Op::Abs, None),
            "sqrt" => (Op::Sqrt, None),
            "fma" | "fmuladd" => (Op::Fma, None),
            "abs" => (Op::Abs, Some(true)),
            "smin" => (Op::Min, Some(true)),
            "smax" => (Op::Max, Some(true)),
            "umin" => (Op::Min, Some(false)),
            "umax" => (Op::Max, Some(false)),
            "ctpop" => (Op::Popcount, Some(false)),
            "ctlz" => (Op::Clz, Some(false)),
            "cttz" => (Op::Ctz, Some(false)),
            "bitreverse" => (Op::ReverseBits, Some(false)),
            "fshl" if inst.operands.first() == inst.operands.get(1) => {
                let (x, by) = (self.one(number, 0)?, self.one(number, 2)?);
                let (x, by) = (self.signed(x, false), self.signed(by, false));
                return Ok(Some(Val::One(self.op(Op::Rotate, &[x, by]))));
            }
            other => return Err(self.refuse(&format!("LLVM's function `{other}`"))),
        };
        let count = match name {
            "abs" | "ctlz" | "cttz" => 1,
            _all => inst.operands.len(),
        };
        let mut arguments = Vec::new();
        for operand in 0..count {
            let value = self.one(number, operand)?;
            arguments.push(match sign {
                Some(sign) => self.signed(value, sign),
                None => value,
            });
        }
        Ok(Some(Val::One(self.op(op, &arguments))))
    }
}

/// A function's name as it may have been written.
fn spelled(name: &str) -> &str {
    name.trim_start_matches("invar.")
}
