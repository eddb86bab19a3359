//! The verifier on modules that no text can say: made wrong by hand, mutated at random, very large.
//! And `Verified::specialise`.

use invar_ir::inst::MAX_NESTING;
use invar_ir::random::split_mix_64;
use invar_ir::verify::MAX_ERRORS;
use invar_ir::{
    Access, Call, CallId, Const, ConstantKey, Diagnostic, ElementType, FunctionConstant, InstKind,
    KernelBuilder, Memory, Module, Op, Place, Position, Region, Rule, Scalar, Scope, Source,
    SourceId, Span, Step, StructDef, StructId, Type, Value, Verified, analyse, text, verify,
};

fn parsed(source: &str) -> Module {
    text::parse("test.inv", source).unwrap_or_else(|e| panic!("{e}"))
}

fn errors(module: Module) -> Vec<Diagnostic> {
    verify(module).map_or_else(|e| e.0, |_| Vec::new())
}

fn rules(module: Module) -> Vec<Rule> {
    errors(module).iter().map(|e| e.rule).collect()
}

/// A kernel with a parameter, an `if`, an array and a loop.
fn sample() -> Module {
    parsed(
        "function_constant @SIZE: u32 = 4 id(3)
        constant @weights: f32[2] = [0.5, 0.5]
        kernel @k(%x: device read_write u32, %n: u32) {
            %mine = alloc thread u32[4]
            %t = thread_index_in_threadgroup
            %size = function_constant @SIZE
            %p = lt %t, %n
            %a = if %p {
                %one = const u32 1
                yield %one
            } else {
                yield %n
            }
            %zero = const u32 0
            %sum = for %i = %zero to %n step %a carry(%acc = %zero) {
                %next = add %acc, %i
                yield %next
            }
            store %mine[%t], %sum
            store %x[%t], %a
        }",
    )
}

/// The sample with a change.
fn changed(change: impl FnOnce(&mut Module)) -> Vec<Rule> {
    let mut module = sample();
    change(&mut module);
    rules(module)
}

fn body(module: &mut Module) -> &mut Region {
    &mut module.kernels[0].body
}

#[test]
fn the_sample_is_valid() {
    assert_eq!(changed(|_| ()), []);
}

#[test]
fn ids_out_of_range_are_malformed() {
    let malformed = [Rule::MalformedModule];
    assert_eq!(
        changed(
            |m| body(m).insts[1].kind.clone_from(&InstKind::AssertUniform {
                value: Value(999),
                scope: Scope::Simdgroup
            })
        ),
        malformed
    );
    assert_eq!(
        changed(|m| body(m).insts[2].kind = InstKind::FunctionConstant(7)),
        malformed
    );
    for memory in [
        Memory::Param(9),
        Memory::Param(1),
        Memory::Alloc(5),
        Memory::Constant(1),
    ] {
        let found = changed(|m| {
            body(m).insts[1].kind = InstKind::Load(Place::element(memory, Value(0)));
        });
        assert_eq!(found, malformed, "{memory:?}");
    }
    assert_eq!(
        changed(|m| m.kernels[0].allocs[0].element = ElementType::Struct(StructId(0))),
        malformed
    );
}

#[test]
fn numbering_is_that_of_the_text() {
    let malformed = [Rule::MalformedModule];
    // Two definitions change places.
    assert_eq!(
        changed(|m| {
            let (one, other) = (Value(1), Value(2));
            body(m).insts[1].results[0] = other;
            body(m).insts[2].results[0] = one;
        }),
        malformed
    );
    // A value and an array too many.
    assert_eq!(
        changed(|m| {
            let info = m.kernels[0].values[0].clone();
            m.kernels[0]
                .values
                .push(invar_ir::ValueInfo { name: None, ..info });
        }),
        malformed
    );
    assert_eq!(
        changed(|m| {
            let mut array = m.kernels[0].allocs[0].clone();
            array.name = "other".into();
            m.kernels[0].allocs.push(array);
        }),
        malformed
    );
    // A definition dropped: renumbering says who misses it.
    let found = changed(|m| {
        body(m).insts.remove(1);
        m.kernels[0].renumber();
    });
    assert!(
        !found.is_empty() && found.iter().all(|r| *r == Rule::UndefinedName),
        "{found:?}"
    );
}

#[test]
fn bits_outside_a_constants_type_are_malformed() {
    for (scalar, bits, fine) in [
        (Scalar::U8, 255, true),
        (Scalar::U8, 256, false),
        (Scalar::Bool, 1, true),
        (Scalar::Bool, 2, false),
        (Scalar::F32, 0xffff_ffff, true),
        (Scalar::F32, 0x1_0000_0000, false),
        (Scalar::U64, u64::MAX, true),
    ] {
        let mut k = KernelBuilder::new(Module::default(), "k");
        k.constant(Const { scalar, bits });
        let found = rules(k.finish().unwrap());
        let expected: &[Rule] = if fine { &[] } else { &[Rule::MalformedModule] };
        assert_eq!(found, expected, "{scalar} {bits:#x}");
    }
    assert_eq!(
        changed(|m| m.function_constants[0].default = Some(Const {
            scalar: Scalar::U32,
            bits: 1 << 40
        })),
        [Rule::MalformedModule]
    );
}

#[test]
fn spans_and_calls_name_what_is_there() {
    let span = |source: Option<u32>, call: Option<u32>| Span {
        source: source.map(SourceId),
        start: Position { line: 1, column: 1 },
        end: Position { line: 1, column: 2 },
        call: call.map(CallId),
    };
    let with = |at: Span, calls: &[Span]| {
        changed(|m| {
            m.sources = vec![Source {
                name: "a".into(),
                text: "a".into(),
            }];
            m.calls = calls
                .iter()
                .map(|site| Call {
                    function: "f".into(),
                    site: *site,
                })
                .collect();
            body(m).insts[0].span = at;
        })
    };
    let malformed = [Rule::MalformedModule];
    assert_eq!(with(span(Some(0), None), &[]), []);
    assert_eq!(with(span(Some(1), None), &[]), malformed);
    assert_eq!(with(span(None, Some(0)), &[]), malformed);
    let outer = span(Some(0), None);
    assert_eq!(with(span(None, Some(1)), &[outer, span(None, Some(0))]), []);
    // A call that is its own caller, and one that comes before its caller.
    assert_eq!(with(outer, &[span(None, Some(0))]), malformed);
    assert_eq!(with(outer, &[span(None, Some(1)), outer]), malformed);
}

#[test]
fn the_shape_of_regions_is_checked() {
    // An empty region, one without an end, one with a parameter too many.
    let region = |m: &mut Module, change: &dyn Fn(&mut Region)| {
        let mut regions = body(m).insts[4].kind.regions_mut();
        change(regions[1]);
    };
    let ends = [Rule::MisplacedTerminator];
    assert_eq!(changed(|m| region(m, &|r| r.insts.clear())), ends);
    assert_eq!(
        changed(|m| {
            body(m).insts.pop();
        }),
        ends
    );
    let found = changed(|m| region(m, &|r| r.params.push(Value(4))));
    assert!(found.contains(&Rule::MalformedModule), "{found:?}");
}

#[test]
fn results_have_the_types_that_instructions_give() {
    assert_eq!(
        changed(|m| m.kernels[0].values[1].ty = Type::F32),
        [
            Rule::TypeMismatch,
            Rule::TypeMismatch,
            Rule::TypeMismatch,
            Rule::TypeMismatch
        ],
        "the query's own, the comparison's operand, two indices"
    );
    assert_eq!(
        changed(|m| m.kernels[0].values[2].ty = Type::Vector(Scalar::U32, 7)),
        [Rule::InvalidType],
        "a type that cannot exist is all that is said"
    );
    let mut too_few = sample();
    body(&mut too_few).insts[1].results.clear();
    assert!(!rules(too_few).is_empty());
}

#[test]
fn names_are_there_and_their_own() {
    assert_eq!(
        changed(|m| m.kernels[0].params[0].name = "".into()),
        [Rule::MalformedModule]
    );
    assert_eq!(
        changed(|m| m.kernels[0].name = "".into()),
        [Rule::MalformedModule]
    );
    assert_eq!(
        changed(|m| m.kernels[0].params[1].name = "m".into()),
        [Rule::MalformedModule]
    );
    assert_eq!(
        changed(|m| m.kernels[0].values[2].name = Some("x".into())),
        [Rule::DuplicateName]
    );
}

#[test]
fn structs_hold_only_earlier_structs() {
    let def = |name: &str, fields: &[(&str, ElementType)]| StructDef {
        name: name.into(),
        fields: fields
            .iter()
            .map(|(n, ty)| ((*n).into(), ty.clone()))
            .collect(),
        span: Span::NONE,
    };
    let with = |structs: Vec<StructDef>| {
        let mut module = sample();
        module.structs = structs;
        rules(module)
    };
    let f32 = ElementType::from(Scalar::F32);
    let of = |id| ElementType::Struct(StructId(id));
    assert_eq!(
        with(vec![
            def("A", &[("x", f32.clone())]),
            def("B", &[("a", of(0))])
        ]),
        []
    );
    let invalid = [Rule::InvalidType];
    assert_eq!(with(vec![def("A", &[("a", of(0))])]), invalid, "itself");
    assert_eq!(
        with(vec![
            def("A", &[("b", of(1))]),
            def("B", &[("x", f32.clone())])
        ]),
        invalid
    );
    assert_eq!(
        with(vec![def("A", &[("b", of(7))])]),
        [Rule::MalformedModule]
    );
    assert_eq!(
        with(vec![def("A", &[("x", f32.clone()), ("x", f32.clone())])]),
        [Rule::DuplicateName]
    );
    // Each level holds the last one twice: 2^12 parts are allowed, more are not.
    let tower = |levels: u32| {
        let mut structs = vec![def("S0", &[("x", f32.clone()), ("y", f32.clone())])];
        for i in 1..levels {
            structs.push(def(&format!("S{i}"), &[("a", of(i - 1)), ("b", of(i - 1))]));
        }
        structs
    };
    assert_eq!(with(tower(10)), []);
    assert_eq!(with(tower(15)).first(), Some(&Rule::LimitExceeded));
    // Arrays of arrays.
    let nested = |depth: u32| {
        let mut ty = f32.clone();
        for _ in 1..depth {
            ty = ElementType::Array(ty.into(), 1);
        }
        with(vec![def("A", &[("x", ty)])])
    };
    assert_eq!(nested(15), []);
    assert_eq!(nested(17), [Rule::LimitExceeded]);
}

#[test]
fn arrays_are_declared_in_threadgroup_or_thread_memory() {
    use invar_ir::AddressSpace;
    for space in [AddressSpace::Device, AddressSpace::Constant] {
        let found = changed(|m| m.kernels[0].allocs[0].space = space);
        assert!(found.contains(&Rule::WrongAddressSpace), "{found:?}");
    }
    assert_eq!(
        changed(|m| m.kernels[0].allocs[0].space = AddressSpace::Threadgroup),
        []
    );
}

#[test]
fn constants_have_values_of_their_type() {
    let value = |v: f32| Const::from(v);
    let with = |values: Vec<Const>| changed(|m| m.constants[0].values = values);
    assert_eq!(with(vec![value(1.0), value(2.0)]), []);
    assert_eq!(
        with(vec![value(1.0), Const::from(2u32)]),
        [Rule::ConstantInitialiser]
    );
    assert_eq!(with(vec![value(1.0)]), [Rule::ConstantInitialiser]);
    assert_eq!(with(vec![value(1.0); 3]), [Rule::ConstantInitialiser]);
    let default = |c: Const| changed(|m| m.function_constants[0].default = Some(c));
    assert_eq!(default(Const::from(1u32)), []);
    assert_eq!(default(Const::from(1i32)), [Rule::FunctionConstant]);
    // A length that no memory could hold the values of.
    assert_eq!(
        changed(|m| m.constants[0].length = u32::MAX),
        [Rule::ConstantInitialiser]
    );
}

#[test]
fn nesting_ends_at_the_limit() {
    // By hand: the builder has a limit of its own.
    let nested = |depth: usize| {
        let mut module = parsed("kernel @k(%p: bool) {\n}");
        let done = body(&mut module).insts[0].clone();
        let region = |inst: Option<invar_ir::Inst>| Region {
            params: Vec::new(),
            insts: inst
                .into_iter()
                .chain([invar_ir::Inst {
                    kind: InstKind::Yield(Default::default()),
                    ..done.clone()
                }])
                .collect(),
        };
        let mut inner = None;
        for _ in 0..depth {
            inner = Some(invar_ir::Inst {
                kind: InstKind::If {
                    condition: Value(0),
                    then: region(inner.take()),
                    otherwise: region(None),
                },
                results: Default::default(),
                span: Span::NONE,
            });
        }
        body(&mut module).insts.splice(0..0, inner);
        rules(module)
    };
    assert_eq!(nested(MAX_NESTING), []);
    assert_eq!(nested(MAX_NESTING + 1), [Rule::LimitExceeded]);
    assert_eq!(nested(1000), [Rule::LimitExceeded]);
}

#[test]
fn independent_errors_are_reported_at_once_and_bounded() {
    let mut k = KernelBuilder::new(Module::default(), "k");
    let x = k.buffer("x", Access::Read, Scalar::U32);
    let i = k.thread_index_in_threadgroup();
    for line in 1..=1000 {
        k.set_span(Span {
            start: Position { line, column: 1 },
            ..Span::NONE
        });
        k.store(Place::element(x, i), i);
    }
    let found = errors(k.finish().unwrap());
    assert_eq!(found.len(), MAX_ERRORS + 1);
    let (last, kept) = found.split_last().unwrap();
    assert!(kept.iter().all(|e| e.rule == Rule::AccessViolation));
    assert_eq!(
        last.message,
        format!("{} more errors are not shown", 1000 - MAX_ERRORS)
    );
}

#[test]
fn work_grows_with_the_size_only() {
    // Long chains of carried values, which a fixpoint over the text would go round once for each.
    let time = |n: usize| {
        let mut k = KernelBuilder::new(Module::default(), "k");
        let zero = k.const_u32(0);
        let bound = k.const_u32(7);
        let t = k.thread_index_in_threadgroup();
        let init = vec![zero; n];
        k.for_(zero, bound, bound, &init, |_, _, carried| {
            let mut next = carried[1..].to_vec();
            next.push(t);
            next
        });
        let module = k.finish().unwrap();
        let start = std::time::Instant::now();
        let uniformity = analyse(&module, &module.kernels[0]);
        let first = module.kernels[0].body.insts[3].results[0];
        assert_eq!(uniformity.of(first), invar_ir::Level::Varying);
        verify(module).unwrap();
        start.elapsed().as_secs_f64()
    };
    time(1000);
    let small = time(10_000);
    let large = time(100_000);
    assert!(
        large < small * 60.0 + 0.2,
        "{small} s for 10,000, {large} s for 100,000"
    );
}

// ---- mutation ----

/// A sequence of choices.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        split_mix_64(&mut self.0)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// A small number, sometimes a very large one.
    fn id(&mut self, count: usize) -> u32 {
        match self.below(8) {
            0 => u32::MAX,
            1 => count as u32,
            _ => self.below(count) as u32,
        }
    }

    fn ty(&mut self) -> Type {
        let scalar = self.pick(&Scalar::ALL);
        let n = self.below(7) as u8;
        match self.below(6) {
            0 => Type::Vector(scalar, n),
            1 => Type::Matrix {
                scalar,
                columns: n,
                rows: 3,
            },
            2 => Type::SimdgroupMatrix {
                scalar,
                rows: 8,
                columns: 8,
            },
            3 => Type::Event,
            _ => Type::Scalar(scalar),
        }
    }

    fn memory(&mut self) -> Memory {
        let id = self.id(4);
        self.pick(&[Memory::Param(id), Memory::Alloc(id), Memory::Constant(id)])
    }
}

/// All regions of a kernel in order, by the path of instructions and regions that leads there.
fn paths(region: &Region, here: &mut Vec<(usize, usize)>, out: &mut Vec<Vec<(usize, usize)>>) {
    out.push(here.clone());
    for (i, inst) in region.insts.iter().enumerate() {
        for (j, inner) in inst.kind.regions().into_iter().enumerate() {
            here.push((i, j));
            paths(inner, here, out);
            here.pop();
        }
    }
}

fn at<'a>(mut region: &'a mut Region, path: &[(usize, usize)]) -> &'a mut Region {
    for (i, j) in path {
        region = region.insts[*i].kind.regions_mut().swap_remove(*j);
    }
    region
}

fn mutate(module: &mut Module, random: &mut Random) {
    let kernel_number = random.below(module.kernels.len());
    let donor = module.kernels[random.below(module.kernels.len())].clone();
    let structs = module.structs.len();
    let kernel = &mut module.kernels[kernel_number];
    let count = kernel.values.len();
    let mut all = Vec::new();
    paths(&kernel.body, &mut Vec::new(), &mut all);
    let path = random.pick(&all);
    match random.below(16) {
        0 if count > 0 => {
            let i = random.below(count);
            kernel.values[i].ty = random.ty();
        }
        1 if count > 0 => {
            let i = random.below(count);
            let name = random.pick(&["x", "", "k", "a b"]);
            kernel.values[i].name = Some(name.into());
        }
        2 => {
            let id = random.id(count);
            let region = at(&mut kernel.body, &path);
            region.params.push(Value(id));
        }
        3 => drop(kernel.values.pop()),
        4 if !kernel.allocs.is_empty() => {
            let i = random.below(kernel.allocs.len());
            kernel.allocs[i].length = random.pick(&[0, 1, u32::MAX]);
        }
        5 if !kernel.params.is_empty() => {
            let i = random.below(kernel.params.len());
            let id = random.id(count);
            kernel.params[i].kind = invar_ir::ParamKind::Scalar { value: Value(id) };
        }
        6 => {
            kernel.threadgroup_size =
                Some(random.pick(&[[0; 3], [1; 3], [u32::MAX; 3], [32, 1, 1]]))
        }
        7 => kernel.simdgroup_size = Some(random.pick(&[0, 1, 4, 32, 33, u32::MAX])),
        8 if !kernel.params.is_empty() => {
            let i = random.below(kernel.params.len());
            let element = random.pick(&[
                ElementType::Struct(StructId(structs as u32)),
                ElementType::Value(Type::Event),
                ElementType::Array(ElementType::from(Scalar::U8).into(), 0),
                ElementType::Array(ElementType::from(Scalar::U8).into(), u32::MAX),
                ElementType::from(Scalar::F16),
            ]);
            kernel.params[i].kind = invar_ir::ParamKind::Buffer {
                access: random.pick(&[Access::Read, Access::Write, Access::ReadWrite]),
                element,
            };
        }
        _ => mutate_inst(at(&mut kernel.body, &path), count, &donor.body, random),
    }
}

fn mutate_inst(region: &mut Region, count: usize, donor: &Region, random: &mut Random) {
    if region.insts.is_empty() {
        return;
    }
    let i = random.below(region.insts.len());
    let inst = &mut region.insts[i];
    match random.below(12) {
        0..=2 => {
            let (victim, new) = (random.below(4), random.id(count));
            let mut k = 0;
            inst.kind.for_each_use_mut(|v| {
                if k == victim {
                    *v = Value(new);
                }
                k += 1;
            });
        }
        3 => {
            let memory = random.memory();
            inst.kind.for_each_memory_mut(|m| *m = memory);
        }
        4 => {
            let id = random.id(count);
            inst.results.push(Value(id));
        }
        5 => drop(inst.results.pop()),
        6 => drop(region.insts.remove(i)),
        7 => {
            let copy = inst.clone();
            region.insts.insert(i, copy);
        }
        8 => {
            let j = random.below(region.insts.len());
            region.insts.swap(i, j);
        }
        9 => {
            if let InstKind::Op { op, imm, args } = &mut inst.kind {
                *op = random.pick(&Op::all().collect::<Vec<_>>());
                if random.below(3) == 0 {
                    *imm = invar_ir::Imm::Type(random.ty());
                }
                if random.below(3) == 0 {
                    args.pop();
                }
            }
        }
        10 => {
            if let InstKind::Load(place) | InstKind::Store { place, .. } = &mut inst.kind {
                let id = random.id(count);
                place
                    .path
                    .push(random.pick(&[Step::Field(id), Step::Index(Value(id))]));
                place.width = random.pick(&[
                    invar_ir::Width::One,
                    invar_ir::Width::Run(0),
                    invar_ir::Width::Group(255),
                ]);
            }
        }
        _ if !donor.insts.is_empty() => {
            let other = random.pick(&donor.insts);
            region.insts[i] = other;
        }
        _ => {}
    }
}

/// What may be asked of a module that passed.
fn use_it(verified: Verified) {
    for kernel in &verified.kernels {
        let uniformity = analyse(&verified, kernel);
        for i in 0..kernel.values.len() {
            uniformity.of(Value(i as u32));
        }
    }
    let printed = verified.to_string();
    let again = text::parse("again.inv", &printed);
    assert!(
        again.is_ok(),
        "a valid module does not parse:\n{printed}\n{}",
        again.unwrap_err()
    );
    verify(again.unwrap())
        .unwrap_or_else(|e| panic!("a valid module printed is not:\n{printed}\n{e}"));
    let constants: Vec<(ConstantKey, Const)> = Vec::new();
    if verified
        .function_constants
        .iter()
        .all(|c| c.default.is_some())
    {
        verified.specialise(&constants).unwrap();
    }
}

#[test]
fn mutated_modules_never_panic() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/verify");
    let mut modules = vec![sample()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        modules.extend(
            text::parse("file.inv", &source)
                .ok()
                .filter(|m| !m.kernels.is_empty()),
        );
    }
    assert!(modules.len() > 10);
    let (mut passed, mut failed) = (0, 0);
    for seed in 0..30_000 {
        let mut random = Random(seed);
        let mut module = random.pick(&modules);
        for _ in 0..=random.below(3) {
            mutate(&mut module, &mut random);
        }
        if random.below(3) == 0 {
            let i = random.below(module.kernels.len());
            module.kernels[i].renumber();
        }
        match verify(module) {
            Ok(verified) => {
                passed += 1;
                use_it(verified);
            }
            Err(found) => {
                failed += 1;
                assert!(!found.0.is_empty() && found.0.len() <= MAX_ERRORS + 1);
                assert!(!found.to_string().is_empty());
            }
        }
    }
    // Both outcomes must be common, or the mutations are too weak or too strong.
    assert!(
        passed > 500 && failed > 10_000,
        "{passed} passed, {failed} failed"
    );
}

// ---- specialisation ----

fn constants() -> Verified {
    let mut module = sample();
    module.function_constants.push(FunctionConstant {
        name: "SCALE".into(),
        id: 8,
        scalar: Scalar::F32,
        default: None,
        span: Span::NONE,
    });
    verify(module).unwrap()
}

fn fixed(verified: Verified, given: &[(ConstantKey, Const)]) -> Const {
    let verified = verified.specialise(given).unwrap_or_else(|e| panic!("{e}"));
    assert!(verified.function_constants.is_empty());
    let InstKind::Const(constant) = verified.kernels[0].body.insts[2].kind else {
        panic!("the function constant is still there");
    };
    verify(verified.into_module()).unwrap_or_else(|e| panic!("{e}"));
    constant
}

#[test]
fn specialising_fixes_function_constants_by_name_or_id_or_default() {
    let scale = ("SCALE".into(), Const::from(1.5f32));
    assert_eq!(
        fixed(constants(), std::slice::from_ref(&scale)),
        Const::from(4u32)
    );
    let by_name = ("SIZE".into(), Const::from(9u32));
    assert_eq!(
        fixed(constants(), &[scale.clone(), by_name]),
        Const::from(9u32)
    );
    let by_id = (3.into(), Const::from(10u32));
    assert_eq!(fixed(constants(), &[scale, by_id]), Const::from(10u32));
}

#[test]
fn specialising_refuses_what_is_missing_unknown_or_of_another_type() {
    let message = |given: &[(ConstantKey, Const)]| {
        let errors = constants().specialise(given).unwrap_err();
        assert!(
            errors.0.iter().all(|e| e.rule == Rule::FunctionConstant),
            "{errors}"
        );
        errors.to_string()
    };
    let scale = ("SCALE".into(), Const::from(1.5f32));
    assert!(message(&[]).contains("`@SCALE` (id 8) has no value and no default"));
    let unknown = message(&[scale.clone(), ("WIDTH".into(), Const::from(1u32))]);
    assert!(
        unknown.contains("there is no function constant `@WIDTH`"),
        "{unknown}"
    );
    assert!(unknown.contains("`@SIZE` (id 3)"), "{unknown}");
    assert!(message(&[scale.clone(), (4.into(), Const::from(1u32))]).contains("id 4"));
    let wrong = message(&[scale.clone(), ("SIZE".into(), Const::from(1i32))]);
    assert!(
        wrong.contains("`@SIZE` has type u32, but is given a i32"),
        "{wrong}"
    );
    let twice = message(&[
        scale,
        ("SIZE".into(), Const::from(1u32)),
        (3.into(), Const::from(1u32)),
    ]);
    assert!(twice.contains("given a value twice"), "{twice}");
}
