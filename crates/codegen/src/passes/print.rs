//! `print` as atomics and stores: for targets that have no way of their own to hand lines to the host.
//!
//! The kernel gets one more parameter, its last: a `read_write` buffer of `u32` that begins as zeros and
//! holds, after the dispatch, what was printed.
//!
//! | word | holds |
//! |---|---|
//! | 0 | how many words were asked for |
//! | 1, 2 | how many lines found no room, low word first |
//! | 3 on | the lines, one behind another |
//!
//! A line is the number of its `print`, counted from 1 in the kernel's text; the thread's position in the
//! grid, x, y and z; and the scalars of its values: one word each, two, low first, where they have 64 bits.
//! 16-bit floats are widened to `f32`, short integers to 32 bits, `bool` is 0 or 1. Its first word is
//! stored last, so a line that a thread did not come to finish begins with 0.
//!
//! A thread takes its place in the buffer with one atomic, so its own lines follow one another (P3), and a
//! barrier that names device memory orders lines as it orders the atomics. Once a line has found no room
//! word 0 is past the end, and no later one asks.

use invar_ir::inst::{AtomicOp, InstKind, Memory, Order, Place, Scope, Value};
use invar_ir::ops::evaluate::evaluate;
use invar_ir::print::{LIMIT_BYTES, Line, Printed, Template, line_bytes};
use invar_ir::rewrite::rewrite;
use invar_ir::{
    Access, Const, Diagnostics, Dim, Imm, Kernel, KernelBuilder, Module, Op, Param, ParamKind,
    Scalar, Span, Type,
};

/// Words before the lines.
const HEADER_WORDS: u32 = 3;
/// Words of all lines together (P5).
const LIMIT_WORDS: u32 = LIMIT_BYTES / 4;
/// The size of the buffer.
pub const BUFFER_BYTES: usize = (HEADER_WORDS + LIMIT_WORDS) as usize * 4;

/// What a kernel's buffer of lines means: its `print`s, in the order of its text.
#[derive(Clone, Debug)]
pub struct Prints(Vec<Print>);

#[derive(Clone, Debug)]
struct Print {
    template: Template,
    types: Vec<Type>,
    span: Span,
}

impl Prints {
    fn of(kernel: &Kernel) -> Prints {
        let mut prints = Vec::new();
        kernel.for_each_inst(&mut |inst| {
            if let InstKind::Print { text, values } = &inst.kind {
                prints.push(Print {
                    template: match Template::parse(text) {
                        Ok(template) => template,
                        Err(why) => {
                            unreachable!("the verifier keeps out a text of which is said: {why}")
                        }
                    },
                    types: values.iter().map(|v| kernel.ty(*v)).collect(),
                    span: inst.span,
                });
            }
        });
        Prints(prints)
    }

    /// What the buffer of a dispatch says was printed.
    pub fn read(&self, buffer: &[u32]) -> Printed {
        let mut printed = Printed::default();
        let [_, low, high, lines @ ..] = buffer else {
            return printed;
        };
        let mut lines = lines;
        // A dispatch that was stopped may have left a line unwritten, whose length nothing says.
        while let [number, x, y, z, rest @ ..] = lines
            && let Some(number) = number.checked_sub(1)
            && let Some(print) = self.0.get(number as usize)
        {
            let size_bytes = line_bytes(&print.types);
            let words = size_bytes as usize / 4 - 4;
            if words > rest.len() {
                break;
            }
            let (values, next) = rest.split_at(words);
            printed.push(size_bytes, || Line {
                thread: [*x, *y, *z],
                span: print.span,
                text: print
                    .template
                    .line(&print.types, &scalars(&print.types, values)),
            });
            lines = next;
        }
        printed.lost += u64::from(*low) | u64::from(*high) << 32;
        printed
    }
}

/// The scalars that words stand for.
fn scalars(types: &[Type], words: &[u32]) -> Vec<Const> {
    let mut words = words.iter().map(|word| u64::from(*word));
    let mut next = || words.next().unwrap_or_default();
    let mut out = Vec::new();
    for ty in types {
        let scalar = ty.component_scalar();
        for _ in 0..ty.component_count() {
            let low = next();
            let bits = match scalar {
                Scalar::F16 | Scalar::BF16 => narrowed(scalar, low),
                _whole if scalar.bits() == 64 => low | next() << 32,
                _short => low & (u64::MAX >> (64 - scalar.bits())),
            };
            out.push(Const { scalar, bits });
        }
    }
    out
}

/// A 16-bit float from the `f32` of its value.
fn narrowed(scalar: Scalar, bits: u64) -> u64 {
    let to = Imm::Type(Type::Scalar(scalar));
    match evaluate(Op::Cast, to, &[Type::F32], &[&[bits]]) {
        Ok(columns) => columns[0][0],
        Err(error) => unreachable!("an f32 can be cast to {scalar}, but: {error:?}"),
    }
}

/// Replaces the `print`s of a module's kernel; of one without any, nothing changes.
///
/// # Errors
/// What the builder found wrong with what this built, which is nothing.
pub fn expand(mut module: Module, kernel: usize) -> Result<(Module, Option<Prints>), Diagnostics> {
    if !module.kernels[kernel].prints() {
        return Ok((module, None));
    }
    let prints = Prints::of(&module.kernels[kernel]);
    let found = &mut module.kernels[kernel];
    let buffer = Memory::Param(found.params.len() as u32);
    found.params.push(Param {
        name: unused_name(found).into(),
        kind: ParamKind::Buffer {
            access: Access::ReadWrite,
            element: Scalar::U32.into(),
        },
        binding: None,
        span: Span::NONE,
    });
    let mut number = 0;
    let module = rewrite(module, kernel, &mut |b, inst| {
        let InstKind::Print { values, .. } = &inst.kind else {
            return None;
        };
        number += 1;
        line(b, buffer, number, values);
        Some(Default::default())
    })?;
    Ok((module, Some(prints)))
}

/// A name for the buffer that nothing in the kernel has.
fn unused_name(kernel: &Kernel) -> String {
    let values = kernel.values.iter().filter_map(|v| v.name.as_deref());
    let params = kernel.params.iter().map(|p| &*p.name);
    let allocs = kernel.allocs.iter().map(|a| &*a.name);
    let taken: std::collections::HashSet<&str> = values.chain(params).chain(allocs).collect();
    let mut name = "printed".to_string();
    while taken.contains(&*name) {
        name.push('_');
    }
    name
}

/// Writes the line of one `print`.
fn line(b: &mut KernelBuilder, buffer: Memory, number: u32, values: &[Value]) {
    let types: Vec<Type> = values.iter().map(|v| b.ty(*v)).collect();
    let size = line_bytes(&types) / 4;
    let zero = b.const_u32(0);
    let asked = atomic(b, AtomicOp::Load, buffer, zero, &[]);
    let limit = b.const_u32(LIMIT_WORDS);
    let open = b.lt(asked, limit);
    let taken = b.if_values(
        open,
        |b| {
            let size_words = b.const_u32(size);
            let at = atomic(b, AtomicOp::Add, buffer, zero, &[size_words]);
            let last = b.const_u32(LIMIT_WORDS - size);
            let fits = b.le(at, last);
            vec![at, fits]
        },
        |b| vec![zero, b.const_bool(false)],
    );
    b.if_else(
        taken[1],
        |b| {
            let header = b.const_u32(HEADER_WORDS);
            let at = b.add(taken[0], header);
            let mut words = [Dim::X, Dim::Y, Dim::Z]
                .map(|dim| b.thread_position_in_grid(dim))
                .to_vec();
            for (value, ty) in values.iter().zip(&types) {
                words_of(b, *value, *ty, &mut words);
            }
            for (i, word) in (1..).zip(words) {
                let offset = b.const_u32(i);
                let place = b.add(at, offset);
                b.store(Place::element(buffer, place), word);
            }
            let number = b.const_u32(number);
            b.store(Place::element(buffer, at), number);
        },
        |b| {
            let one = b.const_u32(1);
            let before = atomic(b, AtomicOp::Add, buffer, one, &[one]);
            let most = b.const_u32(u32::MAX);
            let carries = b.eq(before, most);
            b.if_(carries, |b| {
                let high = b.const_u32(2);
                atomic(b, AtomicOp::Add, buffer, high, &[one]);
            });
        },
    );
}

fn atomic(
    b: &mut KernelBuilder,
    op: AtomicOp,
    buffer: Memory,
    index: Value,
    args: &[Value],
) -> Value {
    let place = Place::element(buffer, index);
    b.atomic(op, place, args, Order::Relaxed, Scope::Device)[0]
}

/// The words of a value.
fn words_of(b: &mut KernelBuilder, value: Value, ty: Type, words: &mut Vec<Value>) {
    for component in 0..ty.component_count() {
        let part = match ty {
            Type::Scalar(_) => value,
            _vector => {
                let component = b.const_u32(component);
                b.extract(value, component)
            }
        };
        let scalar = ty.component_scalar();
        if scalar.bits() == 64 {
            let whole = b.as_type(part, Type::Scalar(Scalar::U64));
            let half = b.constant(Const {
                scalar: Scalar::U64,
                bits: 32,
            });
            let high = b.shr(whole, half);
            words.extend([whole, high].map(|v| b.cast(v, Type::U32)));
        } else if scalar.is_float() {
            let single = if scalar == Scalar::F32 {
                part
            } else {
                b.cast(part, Type::F32)
            };
            words.push(b.as_type(single, Type::U32));
        } else if scalar == Scalar::U32 {
            words.push(part);
        } else {
            words.push(b.cast(part, Type::U32));
        }
    }
}
