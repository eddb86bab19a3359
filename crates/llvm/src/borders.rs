//! What threads at the border of a grid have to do with chunks: where these may begin, and whether they may overlap.
//!
//! Where all that a segment does stands under conditions that tell threads by their positions, such as `x > 0 && x < n - 1`,
//! the threads that do anything lie in a box ([`crate::sides`]). Chunks begin where the box does, so that the first of a
//! row is full, as those behind it are. And where everything may be done twice, since the kernel reads nothing that it
//! writes, the last chunk of a row and the last rows of a threadgroup reach back into those before, so that these are full
//! too: in code for chunks that are not, each vector takes several times as long. For stencils and filters that leave out
//! the border, and for grids larger than what they work on: 7 points of 256 by 256 by 256 take a fifth less time on an AMD
//! EPYC 7003.
//!
//! Deliberately absent: kernels in which the place of a lane in its vector says anything: those that exchange values
//! between lanes, and those that ask for bits or parts of positions, where classes of lanes
//! ([`invar_codegen::analysis::lanes`]) follow from where vectors begin.

use invar_codegen::analysis::lanes::{Class, Classes};
use invar_ir::inst::Value;
use invar_ir::{AccessMode, AddressSpace, Kernel, Module, Op};

/// Whether chunks may begin with any thread of a row.
pub(crate) fn may_begin_anywhere(kernel: &Kernel, classes: &Classes) -> bool {
    let mut aligned = kernel.tells_simdgroups();
    kernel.for_each_inst(&mut |inst| {
        let Some((op, _, args)) = inst.kind.as_op() else {
            return;
        };
        let by_bits = matches!(
            op,
            Op::Div | Op::Rem | Op::Shr | Op::ShrExact | Op::And | Op::Or | Op::Xor
        );
        let is_integer = |v: &Value| kernel.ty(*v).scalar().is_some_and(|s| s.is_integer());
        let same = |v: &Value| classes.of(*v) == Class::Uniform || !is_integer(v);
        aligned |= op == Op::ThreadIndexInThreadgroup || by_bits && !args.iter().all(same);
    });
    !aligned
}

/// Whether a thread of a kernel may do all that it does twice in a row: what it writes is in buffers of which it reads
/// nothing (S3 keeps other arguments away from them), and nobody else is told anything.
pub(crate) fn may_be_repeated(module: &Module, kernel: &Kernel) -> bool {
    let mut may = !kernel.prints();
    let (mut read, mut written) = (Vec::new(), Vec::new());
    kernel.for_each_inst(&mut |inst| {
        may &= !inst.kind.orders_memory();
        for access in inst.kind.accesses() {
            let space = module.memory(kernel, access.memory).map(|info| info.space);
            match (space, access.mode) {
                // Its own.
                (Some(AddressSpace::Thread), _) => {}
                (_, AccessMode::Read) => read.push(access.memory),
                (Some(AddressSpace::Device), AccessMode::Write) => written.push(access.memory),
                _anything_else => may = false,
            }
        }
    });
    may && !written.iter().any(|memory| read.contains(memory))
}
