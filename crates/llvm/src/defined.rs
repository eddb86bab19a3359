//! Functions of floats that many places of a kernel call: each is one function of the module, of one vector of threads
//! or of one value, made of the expansion that defines it (A10). Written out at each place they would be most of a
//! long kernel, and of the time to compile it; a call keeps what is computed, bit by bit. Those that are defined
//! component by component, such as `sin`, are functions of one component; those of whole vectors and matrices, such
//! as `normalize`, of all components of each operand.
//!
//! Invariant: what is made here touches no memory and computes for every lane, as operations do.
//!
//! Deliberately absent: functions that compute little beside what a call hands over, such as `dot` and products of
//! matrices, which are written out everywhere.

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValueEnum, IntValue};
use invar_ir::expand::expand;
use invar_ir::ops::{Imm, Meaning, Signature};
use invar_ir::{Inst, InstKind, Kernel, Module, Op, ParamKind, Region, Scalar, Type, Value, text};

use crate::emit::{BUILT, Emit, vector_of};
use crate::tuning::{LEAST_CALLED, LEAST_OF_WHOLE, MOST_WRITTEN_OUT};

/// The operations of a kernel that stay calls of functions.
pub(crate) struct Calls {
    /// There are so many that all of these do.
    many: bool,
    /// Whether a function of operands of these types can be one.
    known: RefCell<HashMap<(Op, Vec<Type>), bool>>,
}

impl Calls {
    /// Looks at the one kernel of a module, in which nothing is written out yet.
    pub fn of(module: &Module) -> Calls {
        let mut calls = Calls {
            many: true,
            known: RefCell::default(),
        };
        let kernel = &module.kernels[0];
        let places = |is_one: &dyn Fn(Op, &[Type]) -> bool| {
            let mut places = 0;
            kernel.for_each_inst(&mut |inst| {
                if let InstKind::Op { op, args, .. } = &inst.kind {
                    let types: Vec<Type> = args.iter().map(|v| kernel.ty(*v)).collect();
                    let components = types.first().map_or(0, |ty| ty.component_count());
                    places += if is_one(*op, &types) { components } else { 0 };
                }
            });
            places
        };
        // Most kernels have few, of which nobody needs to know what defines them.
        calls.many = places(&|op, types| operands(op, types).is_some()) > MOST_WRITTEN_OUT
            && places(&|op, types| calls.keep(op, types)) > MOST_WRITTEN_OUT;
        calls
    }

    /// Whether an operation on operands of these types stays.
    pub fn keep(&self, op: Op, types: &[Type]) -> bool {
        let Some(own) = operands(op, types).filter(|_| self.many) else {
            return false;
        };
        let mut known = self.known.borrow_mut();
        let is_one = known.get(&(op, own.clone())).copied();
        is_one.unwrap_or_else(|| {
            let is_one = definition(op, &own).is_some();
            known.insert((op, own), is_one);
            is_one
        })
    }
}

/// What the function that an operation on floats calls has operands of: one component of each, or the whole.
pub(crate) fn operands(op: Op, types: &[Type]) -> Option<Vec<Type>> {
    let row = op.row();
    let is_float = |ty: &Type| match ty {
        Type::Scalar(scalar) | Type::Vector(scalar, _) | Type::Matrix { scalar, .. } => {
            scalar.is_float()
        }
        Type::SimdgroupMatrix { .. } | Type::Event => false,
    };
    let is_function = matches!(row.meaning, Meaning::Expand(_));
    if !is_function || types.is_empty() || !types.iter().all(is_float) {
        return None;
    }
    let by_component = |ty: &Type| match row.signature {
        Signature::Same(_, classes) => classes.contains(Type::Scalar(ty.component_scalar())),
        _others => false,
    };
    Some(match types.iter().all(by_component) {
        true => types
            .iter()
            .map(|ty| Type::Scalar(ty.component_scalar()))
            .collect(),
        false => types.to_vec(),
    })
}

/// The operands of the function that an operation on whole vectors or matrices calls, if it is none of components.
pub(crate) fn whole(op: Op, types: &[Type]) -> Option<Vec<Type>> {
    let is_scalar = |ty: &Type| matches!(ty, Type::Scalar(_));
    operands(op, types).filter(|own| !own.iter().all(is_scalar))
}

/// What defines a function of such operands, if this can make code of it: a kernel that stores its result.
fn definition(op: Op, types: &[Type]) -> Option<Kernel> {
    let names: Vec<String> = (0..types.len()).map(|i| format!("%x{i}")).collect();
    let params: Vec<String> = names
        .iter()
        .zip(types)
        .map(|(name, ty)| format!("{name}: {ty}"))
        .collect();
    let (params, args) = (params.join(", "), names.join(", "));
    let parse = |text: &str| text::parse("defined.inv", text).ok();
    let alone = parse(&format!(
        "kernel @defined({params}) {{ %result = {op} {args} }}"
    ))?;
    let alone = &alone.kernels[0];
    let result = alone.ty(*alone.body.insts.first()?.results.first()?);
    let module = parse(&format!(
        "kernel @defined(%to: device write {result}, {params}) {{
             %zero = const u32 0
             %result = {op} {args}
             store %to[%zero], %result
         }}"
    ))?;
    let module = expand(module, &|_, _, _| false).ok()?;
    let kernel = module.kernels.into_iter().next()?;
    if !is_made(&kernel, &kernel.body) {
        return None;
    }
    let (mut count, mut work) = (0, 0);
    kernel.for_each_inst(&mut |inst| {
        count += 1;
        let computes = |op: Op| matches!(op.row().meaning, Meaning::Eval(_));
        if inst.kind.as_op().is_some_and(|(op, ..)| computes(op)) {
            work += kernel.ty(inst.results[0]).component_count() as usize;
        }
    });
    let is_whole = whole(op, types).is_some();
    let handed: u32 = types.iter().map(|ty| ty.component_count()).sum();
    let is_long = match is_whole {
        true => work >= LEAST_CALLED.max(LEAST_OF_WHOLE * handed as usize),
        false => count >= LEAST_CALLED,
    };
    is_long.then_some(kernel)
}

fn is_made(kernel: &Kernel, region: &Region) -> bool {
    let is_value = |v: &Value| {
        matches!(
            kernel.ty(*v),
            Type::Scalar(_) | Type::Vector(..) | Type::Matrix { .. }
        )
    };
    region.insts.iter().all(|inst| {
        let is_known = match &inst.kind {
            InstKind::Const(_) | InstKind::Store { .. } | InstKind::Yield(_) | InstKind::Return => {
                true
            }
            InstKind::Op { op, args, .. } => match op {
                Op::Construct | Op::Swizzle => true,
                Op::Extract => constant(&kernel.body, args[1]).is_some(),
                Op::AsType => {
                    let count = |v: Value| kernel.ty(v).component_count();
                    count(args[0]) == count(inst.results[0])
                }
                other => matches!(other.row().meaning, Meaning::Eval(_)),
            },
            InstKind::If {
                then, otherwise, ..
            } => is_made(kernel, then) && is_made(kernel, otherwise),
            // It counts down to 0, which every lane reaches by itself.
            InstKind::For {
                lower, step, body, ..
            } => {
                let is_down = constant(&kernel.body, *step).is_some_and(|bits| {
                    kernel.ty(*lower) == Type::Scalar(Scalar::I32) && (bits as i32) < 0
                });
                is_down && !body.exits().leaves_loop() && is_made(kernel, body)
            }
            _others => false,
        };
        is_known && inst.results.iter().all(is_value)
    })
}

/// The bits of a constant.
fn constant(region: &Region, value: Value) -> Option<u64> {
    region.insts.iter().find_map(|inst| match &inst.kind {
        InstKind::Const(constant) if inst.results[0] == value => Some(constant.bits),
        other => other.regions().iter().find_map(|r| constant(r, value)),
    })
}

/// A call of the function that an operation is, on what it has operands of: scalars, or as many lanes, component by
/// component. Gives the components of its result. The function is made on the first call.
pub(crate) fn call<'c>(
    e: &Emit<'c>,
    op: Op,
    types: &[Type],
    args: &[BasicValueEnum<'c>],
) -> Vec<BasicValueEnum<'c>> {
    let lanes = lanes_of(args[0]);
    let of_types: Vec<String> = types.iter().map(|ty| ty.to_string()).collect();
    let name = format!("defined.{op}.{}.{}", of_types.join("."), lanes.unwrap_or(0));
    let function = e.module.get_function(&name).unwrap_or_else(|| {
        let kernel = definition(op, types).expect("it was looked at before");
        let mut body = Body {
            e,
            kernel: &kernel,
            lanes,
            values: HashMap::new(),
        };
        let result = kernel.body.insts.iter().find_map(|inst| match &inst.kind {
            InstKind::Store { value, .. } => Some(*value),
            _others => None,
        });
        let result = result.expect("it stores its result");
        let count = kernel.ty(result).component_count() as usize;
        let component = body.ty(kernel.ty(result).component_scalar());
        let params: Vec<_> = args.iter().map(|a| a.get_type().into()).collect();
        let ty = match count {
            1 => component.fn_type(&params, false),
            _several => {
                let all = e.context.struct_type(&vec![component; count], false);
                all.fn_type(&params, false)
            }
        };
        let function = e.function_like(&name, ty, Some(Linkage::Internal));
        let kind = Attribute::get_named_enum_kind_id("noinline");
        let attribute = e.context.create_enum_attribute(kind, 0);
        function.add_attribute(AttributeLoc::Function, attribute);
        let (outside, here) = (e.function.replace(function), e.here());
        e.go(e.block("entry"));
        let mut given = function.get_param_iter();
        for param in &kernel.params {
            if let ParamKind::Scalar { value } = param.kind {
                let count = kernel.ty(value).component_count() as usize;
                body.values
                    .insert(value, given.by_ref().take(count).collect());
            }
        }
        let results = body.region(&kernel.body).concat();
        let built = match results.as_slice() {
            [one] => e.builder.build_return(Some(one)),
            several => e.builder.build_aggregate_return(several),
        };
        built.expect(BUILT);
        e.function.set(outside);
        e.go(here);
        function
    });
    let args: Vec<_> = args.iter().map(|a| (*a).into()).collect();
    let call = e.builder.build_call(function, &args, "").expect(BUILT);
    match call.try_as_basic_value().basic().expect("a value") {
        BasicValueEnum::StructValue(all) => (0..all.get_type().count_fields())
            .map(|k| e.builder.build_extract_value(all, k, "").expect(BUILT))
            .collect(),
        one => vec![one],
    }
}

fn lanes_of(value: BasicValueEnum<'_>) -> Option<u32> {
    match value {
        BasicValueEnum::VectorValue(vector) => Some(vector.get_type().get_size()),
        _scalar => None,
    }
}

/// The components of a value.
type Components<'c> = Vec<BasicValueEnum<'c>>;

/// A function in the making.
struct Body<'a, 'c> {
    e: &'a Emit<'c>,
    kernel: &'a Kernel,
    /// Of one value, if none.
    lanes: Option<u32>,
    values: HashMap<Value, Components<'c>>,
}

impl<'c> Body<'_, 'c> {
    fn scalar(&self, value: Value) -> Scalar {
        self.kernel.ty(value).component_scalar()
    }

    fn ty(&self, scalar: Scalar) -> BasicTypeEnum<'c> {
        let scalar = self.e.scalar_type(scalar);
        match self.lanes {
            Some(lanes) => vector_of(scalar, lanes).into(),
            None => scalar,
        }
    }

    fn get(&self, values: &[Value]) -> Vec<Components<'c>> {
        values
            .iter()
            .map(|value| self.values[value].clone())
            .collect()
    }

    /// What a region gives at its end: a value that is stored, or those that are handed on.
    fn region(&mut self, region: &Region) -> Vec<Components<'c>> {
        for inst in &region.insts {
            match &inst.kind {
                InstKind::Store { value, .. } => return self.get(&[*value]),
                InstKind::Yield(values) => return self.get(values),
                InstKind::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let chosen = self.choice(inst, *condition, [then, otherwise]);
                    self.values.extend(inst.results.iter().copied().zip(chosen));
                }
                InstKind::For { .. } => {
                    let carried = self.iterations(inst);
                    self.values
                        .extend(inst.results.iter().copied().zip(carried));
                }
                kind => {
                    let value = self.operation(kind, inst);
                    self.values.insert(inst.results[0], value);
                }
            }
        }
        Vec::new()
    }

    fn operation(&self, kind: &InstKind, inst: &Inst) -> Components<'c> {
        let result = self.kernel.ty(inst.results[0]);
        let to = result.component_scalar();
        let count = result.component_count() as usize;
        match kind {
            InstKind::Const(constant) => {
                let value = self.e.constant(constant.scalar, constant.bits);
                vec![match self.lanes {
                    Some(lanes) => self.e.splat(value, lanes).into(),
                    None => value,
                }]
            }
            InstKind::Op { op, imm, args } => {
                let operands = self.get(args);
                match (op, imm) {
                    (Op::Construct, _) => {
                        let all = operands.concat();
                        match all.len() {
                            1 => vec![all[0]; count],
                            _several => all,
                        }
                    }
                    (Op::Swizzle, Imm::Swizzle(swizzle)) => {
                        let picked = swizzle.components().iter();
                        picked.map(|c| operands[0][usize::from(*c)]).collect()
                    }
                    (Op::Extract, _) => {
                        let k = constant(&self.kernel.body, args[1]).expect("it was looked at");
                        let from = k as usize * count;
                        operands[0][from..from + count].to_vec()
                    }
                    (Op::AsType, _) => {
                        let cast = |x: &BasicValueEnum<'c>| {
                            let cast = self.e.builder.build_bit_cast(*x, self.ty(to), "");
                            cast.expect("same width")
                        };
                        operands[0].iter().map(cast).collect()
                    }
                    (op, _) => (0..count)
                        .map(|c| {
                            let of = |x: &Components<'c>| x[if x.len() == 1 { 0 } else { c }];
                            let operands: Vec<_> = operands.iter().map(of).collect();
                            self.e.eval(*op, self.scalar(args[0]), to, &operands)
                        })
                        .collect(),
                }
            }
            other => unreachable!("`{}` is in no definition", other.name()),
        }
    }

    /// What an `if` gives: each side is computed if a lane takes it.
    fn choice(
        &mut self,
        inst: &Inst,
        condition: Value,
        sides: [&Region; 2],
    ) -> Vec<Components<'c>> {
        let e = self.e;
        let condition = self.values[&condition][0];
        let inverse = e.eval(Op::Not, Scalar::Bool, Scalar::Bool, &[condition]);
        let mut given = Vec::new();
        for (region, taken) in sides.into_iter().zip([condition, inverse]) {
            let before = e.here();
            let (side, after) = (e.block("side"), e.block("after"));
            e.branch_if(self.any(taken), side, after);
            e.go(side);
            let values = self.region(region);
            let end = e.here();
            e.branch(after);
            e.go(after);
            let joined = |value: &BasicValueEnum<'c>| {
                let ty = value.get_type();
                let phi = e.builder.build_phi(ty, "").expect(BUILT);
                phi.add_incoming(&[(value, end), (&ty.const_zero(), before)]);
                phi.as_basic_value()
            };
            let values = values.iter();
            given.push(
                values
                    .map(|value| value.iter().map(joined).collect())
                    .collect::<Vec<Components<'c>>>(),
            );
        }
        let (yes, no) = (&given[0], &given[1]);
        self.chosen(&inst.results, condition, yes, no)
    }

    /// `yes` where the condition holds, else `no`.
    fn chosen(
        &self,
        results: &[Value],
        condition: BasicValueEnum<'c>,
        yes: &[Components<'c>],
        no: &[Components<'c>],
    ) -> Vec<Components<'c>> {
        let of = |(result, (yes, no)): (&Value, (&Components<'c>, &Components<'c>))| {
            let scalar = self.scalar(*result);
            let pairs = yes.iter().zip(no);
            pairs
                .map(|(yes, no)| {
                    self.e
                        .eval(Op::Select, scalar, scalar, &[*no, *yes, condition])
                })
                .collect()
        };
        results.iter().zip(yes.iter().zip(no)).map(of).collect()
    }

    /// What a loop that counts down carries out of its last iteration: iterations are made while a lane needs one, and
    /// change nothing in lanes that need none.
    fn iterations(&mut self, inst: &Inst) -> Vec<Components<'c>> {
        let InstKind::For {
            lower,
            upper,
            step,
            init,
            body,
        } = &inst.kind
        else {
            unreachable!("it is a loop");
        };
        let e = self.e;
        let one = |this: &Self, value: &Value| this.values[value][0];
        let (first, last, step) = (one(self, lower), one(self, upper), one(self, step));
        let counts = self.scalar(*lower);
        let before = e.here();
        let (head, iteration, after) = (e.block("head"), e.block("iteration"), e.block("after"));
        e.branch(head);
        e.go(head);
        let phi = |value: BasicValueEnum<'c>| {
            let phi = e.builder.build_phi(value.get_type(), "").expect(BUILT);
            phi.add_incoming(&[(&value, before)]);
            phi
        };
        let count = phi(first);
        let carried: Vec<Vec<_>> = self
            .get(init)
            .into_iter()
            .map(|value| value.into_iter().map(phi).collect())
            .collect();
        let old: Vec<Components<'c>> = carried
            .iter()
            .map(|value| value.iter().map(|phi| phi.as_basic_value()).collect())
            .collect();
        let here = count.as_basic_value();
        let goes_on = e.eval(Op::Gt, counts, Scalar::Bool, &[here, last]);
        e.branch_if(self.any(goes_on), iteration, after);
        e.go(iteration);
        self.values.insert(body.params[0], vec![here]);
        let params = body.params[1..].iter().copied();
        self.values.extend(params.zip(old.iter().cloned()));
        let next = self.region(body);
        let next = self.chosen(&inst.results, goes_on, &next, &old);
        let down = e.eval(Op::Add, counts, counts, &[here, step]);
        let down = e.eval(Op::Select, counts, counts, &[here, down, goes_on]);
        let end = e.here();
        count.add_incoming(&[(&down, end)]);
        for (phi, next) in carried.iter().flatten().zip(next.iter().flatten()) {
            phi.add_incoming(&[(next, end)]);
        }
        e.branch(head);
        e.go(after);
        old
    }

    /// Whether one of the lanes.
    fn any(&self, taken: BasicValueEnum<'c>) -> IntValue<'c> {
        let any = match taken {
            BasicValueEnum::VectorValue(_) => {
                let name = "llvm.vector.reduce.or";
                let any = self.e.intrinsic(name, &[taken.get_type()], &[taken]);
                any.expect("a value")
            }
            one => one,
        };
        any.into_int_value()
    }
}
