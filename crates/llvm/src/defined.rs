//! Functions of floats that many places of a kernel call: each is one function of the module, of one vector of threads
//! or of one value, made of the expansion that defines it (A10). Written out at each place they would be most of a
//! long kernel, and of the time to compile it; a call keeps what is computed, bit by bit.
//!
//! Invariant: what is made here touches no memory and computes for every lane, as operations do.
//!
//! Deliberately absent: functions of whole vectors such as `normalize`, expansions with loops, and short ones, which
//! are written out everywhere.

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValueEnum, IntValue};
use invar_ir::expand::expand;
use invar_ir::ops::{Meaning, Signature};
use invar_ir::{Inst, InstKind, Kernel, Module, Op, ParamKind, Region, Scalar, Type, Value, text};

use crate::emit::{BUILT, Emit, vector_of};
use crate::tuning::{LEAST_CALLED, MOST_WRITTEN_OUT};

/// The operations of a kernel that stay calls of functions.
pub(crate) struct Calls {
    /// There are so many that all of these do.
    many: bool,
    /// Whether an operation on a scalar of a type can be one.
    known: RefCell<HashMap<(Op, Scalar), bool>>,
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
        calls.many = places(&|op, types| by_component(op, types).is_some()) > MOST_WRITTEN_OUT
            && places(&|op, types| calls.keep(op, types)) > MOST_WRITTEN_OUT;
        calls
    }

    /// Whether an operation on operands of these types stays.
    pub fn keep(&self, op: Op, types: &[Type]) -> bool {
        let Some(scalar) = by_component(op, types).filter(|_| self.many) else {
            return false;
        };
        let mut known = self.known.borrow_mut();
        *known
            .entry((op, scalar))
            .or_insert_with(|| definition(op, scalar, types.len()).is_some())
    }
}

/// The float of a function that an expansion defines component by component.
fn by_component(op: Op, types: &[Type]) -> Option<Scalar> {
    let row = op.row();
    let Signature::Same(_, classes) = row.signature else {
        return None;
    };
    let (Type::Scalar(scalar) | Type::Vector(scalar, _)) = *types.first()? else {
        return None;
    };
    let is_function = matches!(row.meaning, Meaning::Expand(_));
    let is_one = is_function && scalar.is_float() && classes.contains(Type::Scalar(scalar));
    is_one.then_some(scalar)
}

/// What defines a function of so many scalars, if this can make code of it: a kernel that stores its result.
fn definition(op: Op, scalar: Scalar, count: usize) -> Option<Kernel> {
    let names: Vec<String> = (0..count).map(|i| format!("%x{i}")).collect();
    let params: Vec<String> = names
        .iter()
        .map(|name| format!("{name}: {scalar}"))
        .collect();
    let text = format!(
        "kernel @defined(%to: device write {scalar}, {}) {{
             %zero = const u32 0
             %result = {op} {}
             store %to[%zero], %result
         }}",
        params.join(", "),
        names.join(", ")
    );
    let module = text::parse("defined.inv", &text).ok()?;
    let module = expand(module, &|_, _, _| false).ok()?;
    let kernel = module.kernels.into_iter().next()?;
    let mut count = 0;
    kernel.for_each_inst(&mut |_| count += 1);
    (count >= LEAST_CALLED && is_made(&kernel, &kernel.body)).then_some(kernel)
}

fn is_made(kernel: &Kernel, region: &Region) -> bool {
    let is_scalar = |v: &Value| matches!(kernel.ty(*v), Type::Scalar(_));
    region.insts.iter().all(|inst| {
        let is_known = match &inst.kind {
            InstKind::Const(_) | InstKind::Store { .. } | InstKind::Yield(_) | InstKind::Return => {
                true
            }
            InstKind::Op { op, .. } => {
                matches!(op.row().meaning, Meaning::Eval(_)) || *op == Op::AsType
            }
            InstKind::If {
                then, otherwise, ..
            } => is_made(kernel, then) && is_made(kernel, otherwise),
            _others => false,
        };
        is_known && inst.results.iter().all(is_scalar)
    })
}

/// A call of the function that an operation on scalars, or on as many lanes, is; the function is made on the first.
pub(crate) fn call<'c>(
    e: &Emit<'c>,
    op: Op,
    scalar: Scalar,
    args: &[BasicValueEnum<'c>],
) -> BasicValueEnum<'c> {
    let lanes = lanes_of(args[0]);
    let name = format!("defined.{op}.{scalar}.{}", lanes.unwrap_or(0));
    let function = e.module.get_function(&name).unwrap_or_else(|| {
        let kernel = definition(op, scalar, args.len()).expect("it was looked at before");
        let types: Vec<_> = args.iter().map(|a| a.get_type().into()).collect();
        let ty = args[0].get_type().fn_type(&types, false);
        let function = e.function_like(&name, ty, Some(Linkage::Internal));
        let kind = Attribute::get_named_enum_kind_id("noinline");
        let attribute = e.context.create_enum_attribute(kind, 0);
        function.add_attribute(AttributeLoc::Function, attribute);
        let (outside, here) = (e.function.replace(function), e.here());
        e.go(e.block("entry"));
        let mut body = Body {
            e,
            kernel: &kernel,
            lanes,
            values: HashMap::new(),
        };
        let params = kernel.params.iter().filter_map(|p| match &p.kind {
            ParamKind::Scalar { value } => Some(*value),
            _buffer => None,
        });
        body.values.extend(params.zip(function.get_params()));
        let result = body.region(&kernel.body);
        e.builder.build_return(Some(&result[0])).expect(BUILT);
        e.function.set(outside);
        e.go(here);
        function
    });
    let args: Vec<_> = args.iter().map(|a| (*a).into()).collect();
    let call = e.builder.build_call(function, &args, "").expect(BUILT);
    call.try_as_basic_value().basic().expect("a value")
}

fn lanes_of(value: BasicValueEnum<'_>) -> Option<u32> {
    match value {
        BasicValueEnum::VectorValue(vector) => Some(vector.get_type().get_size()),
        _scalar => None,
    }
}

/// A function in the making.
struct Body<'a, 'c> {
    e: &'a Emit<'c>,
    kernel: &'a Kernel,
    /// Of one value, if none.
    lanes: Option<u32>,
    values: HashMap<Value, BasicValueEnum<'c>>,
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

    fn get(&self, values: &[Value]) -> Vec<BasicValueEnum<'c>> {
        values.iter().map(|value| self.values[value]).collect()
    }

    /// What a region gives at its end: a value that is stored, or those that are handed on.
    fn region(&mut self, region: &Region) -> Vec<BasicValueEnum<'c>> {
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
                kind => {
                    let value = self.operation(kind, inst);
                    self.values.insert(inst.results[0], value);
                }
            }
        }
        Vec::new()
    }

    fn operation(&self, kind: &InstKind, inst: &Inst) -> BasicValueEnum<'c> {
        let to = self.scalar(inst.results[0]);
        match kind {
            InstKind::Const(constant) => {
                let value = self.e.constant(constant.scalar, constant.bits);
                match self.lanes {
                    Some(lanes) => self.e.splat(value, lanes).into(),
                    None => value,
                }
            }
            InstKind::Op { op, args, .. } => {
                let operands = self.get(args);
                if *op == Op::AsType {
                    let cast = self.e.builder.build_bit_cast(operands[0], self.ty(to), "");
                    return cast.expect("same width");
                }
                self.e.eval(*op, self.scalar(args[0]), to, &operands)
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
    ) -> Vec<BasicValueEnum<'c>> {
        let e = self.e;
        let condition = self.values[&condition];
        let inverse = e.eval(Op::Not, Scalar::Bool, Scalar::Bool, &[condition]);
        let types: Vec<BasicTypeEnum<'c>> = inst
            .results
            .iter()
            .map(|result| self.ty(self.scalar(*result)))
            .collect();
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
            let joined = types.iter().zip(values).map(|(ty, value)| {
                let phi = e.builder.build_phi(*ty, "").expect(BUILT);
                phi.add_incoming(&[(&value, end), (&ty.const_zero(), before)]);
                phi.as_basic_value()
            });
            given.push(joined.collect::<Vec<_>>());
        }
        let (yes, no) = (&given[0], &given[1]);
        let results = inst.results.iter().zip(yes.iter().zip(no));
        results
            .map(|(result, (yes, no))| {
                let scalar = self.scalar(*result);
                e.eval(Op::Select, scalar, scalar, &[*no, *yes, condition])
            })
            .collect()
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
