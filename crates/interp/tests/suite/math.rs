//! Math functions whose expansions branch and loop, in kernels: lanes that take different ways
//! come out as they do alone.

use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::ops::evaluate::Program;
use invar_ir::{Access, Dim, Imm, KernelBuilder, Module, Op, Place, Scalar, Type, verify};

/// Of every size, so that neighbours need short and long reductions and different iterations.
fn operands(count: u32, seed: u32) -> Vec<f32> {
    (0..count)
        .map(|i| f32::from_bits((i ^ seed).wrapping_mul(0x9e37_79b9)))
        .collect()
}

#[test]
fn lanes_of_a_kernel_get_what_the_operation_gives_alone() {
    const COUNT: u32 = 200;
    let (x, y) = (operands(COUNT, 1), operands(COUNT, 77));
    for op in [Op::Sin, Op::Cos, Op::Tan, Op::Fmod, Op::Pow, Op::Exp] {
        let binary = op.row().signature.operand_count().0 == 2;
        let mut k = KernelBuilder::new(Module::default(), "apply");
        let [xs, ys] = ["x", "y"].map(|name| k.buffer(name, Access::Read, Scalar::F32));
        let out = k.buffer("out", Access::Write, Scalar::F32);
        let i = k.thread_position_in_grid(Dim::X);
        let mut args = vec![k.load(Place::element(xs, i))];
        if binary {
            args.push(k.load(Place::element(ys, i)));
        }
        let result = k.op(op, (), &args);
        k.store(Place::element(out, i), result);
        let module = verify(k.finish().expect("a kernel")).expect("a sound kernel");

        let bits = |list: &[f32]| -> Vec<u64> { list.iter().map(|f| f.to_bits().into()).collect() };
        let program = Program::compile(op, Imm::None, &vec![Type::F32; args.len()])
            .expect("operands that it takes");
        let columns = [bits(&x), bits(&y)];
        let columns: Vec<&[u64]> = columns[..args.len()].iter().map(Vec::as_slice).collect();
        let mut expected = vec![0; COUNT as usize];
        program.run(&columns, &mut [&mut expected]);

        let bytes =
            |list: &[f32]| -> Vec<u8> { list.iter().flat_map(|f| f.to_ne_bytes()).collect() };
        let (mut x, mut y, mut got) = (bytes(&x), bytes(&y), vec![0; 4 * COUNT as usize]);
        run(
            &module,
            "apply",
            &Dispatch::linear(COUNT, 64),
            &mut [
                Arg::Buffer(&mut x),
                Arg::Buffer(&mut y),
                Arg::Buffer(&mut got),
            ],
            &Options::default(),
            &mut [],
        )
        .expect("a run without faults");
        let got: Vec<u64> = got
            .chunks_exact(4)
            .map(|c| u32::from_ne_bytes([c[0], c[1], c[2], c[3]]).into())
            .collect();
        assert_eq!(got, expected, "{op}");
    }
}
