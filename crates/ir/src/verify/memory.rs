//! What may be done where: access, address spaces, and what atomics, barriers and assertions name.

use super::{Errors, textures};
use crate::diagnostic::Diagnostic;
use crate::effects::{AccessMode, Elements};
use crate::inst::{AtomicOp, CopyOperands, Inst, InstKind, Memory, Order, Place, Scope, Width};
use crate::memory_layout::MAX_COPIED_ELEMENT_BYTES;
use crate::module::{AddressSpace, Kernel, MemoryInfo, Module};
use crate::place_type::place_type;
use crate::rules::Rule;
use crate::span::Span;
use crate::types::{Scalar, Type};

/// Checks it. All ids are in range.
pub(super) fn check(module: &Module, kernel: &Kernel, errors: &mut Errors) {
    let mut check = Check {
        module,
        kernel,
        errors,
    };
    kernel.for_each_inst(&mut |inst| check.inst(inst));
}

/// What an instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    Atomic,
}

struct Check<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    errors: &'a mut Errors,
}

impl<'a> Check<'a> {
    fn error(&mut self, rule: Rule, span: Span, message: String, help: &str) {
        self.errors
            .push(Diagnostic::error(rule, span, message).help(help));
    }

    fn info(&self, memory: Memory) -> Option<MemoryInfo<'a>> {
        self.module.memory(self.kernel, memory)
    }

    fn inst(&mut self, inst: &Inst) {
        let span = inst.span;
        textures::check_use(self.kernel, inst, self.errors);
        match &inst.kind {
            // With its types.
            InstKind::Texture { .. } => {}
            InstKind::Atomic {
                op,
                place,
                order,
                scope,
                ..
            } => self.atomic(*op, place, *order, *scope, span),
            InstKind::Copy { operands, .. } => self.copy(operands, span),
            InstKind::AsyncCopy { operands, .. } => {
                self.copy(operands, span);
                self.async_spaces(operands, span);
            }
            InstKind::Barrier { scope, .. } => {
                if *scope == Scope::Device {
                    self.error(
                        Rule::InvalidScope,
                        span,
                        "there is no barrier across threadgroups".to_string(),
                        "use a `threadgroup` barrier, or end the kernel and dispatch another",
                    );
                }
            }
            InstKind::AssertUniform { value, scope } => {
                if *scope == Scope::Device {
                    let message = format!(
                        "`{}` cannot be asserted uniform over the device: threadgroups do not meet",
                        self.module.called(self.kernel, *value)
                    );
                    let help = "assert it over `threadgroup` or `simdgroup`";
                    self.error(Rule::InvalidScope, span, message, help);
                }
            }
            other => {
                for access in other.accesses() {
                    match access.mode {
                        AccessMode::Read => {
                            self.access(access.memory, Use::Read, "this loads from", span);
                        }
                        AccessMode::Write => {
                            self.access(access.memory, Use::Write, "this stores to", span);
                        }
                        AccessMode::Atomic { .. } => {
                            self.access(access.memory, Use::Atomic, "this acts on", span);
                        }
                    }
                    if let Elements::Shared(_) = access.elements {
                        self.matrix_space(access.memory, span);
                    }
                }
            }
        }
    }

    /// S2.
    fn access(&mut self, memory: Memory, how: Use, what: &str, span: Span) {
        let Some(info) = self.info(memory) else {
            return;
        };
        let (fits, wanted) = match how {
            Use::Read => (info.access.can_read(), "`read` or `read_write`"),
            Use::Write => (info.access.can_write(), "`write` or `read_write`"),
            Use::Atomic => (
                info.access.can_read() && info.access.can_write(),
                "`read_write`",
            ),
        };
        if fits {
            return;
        }
        let name = info.name;
        let (message, help) = if info.space == AddressSpace::Constant {
            (
                format!("{what} `{name}`, which is in constant memory"),
                "pass it as a `device` buffer".to_string(),
            )
        } else {
            (
                format!(
                    "{what} `{name}`, which is declared `{}`",
                    info.access.name()
                ),
                format!("declare it {wanted}"),
            )
        };
        let mut error = Diagnostic::error(Rule::AccessViolation, span, message).help(help);
        match memory {
            Memory::Param(i) => {
                error = error.and(self.kernel.params[i as usize].span, "declared here");
            }
            Memory::Constant(i) => {
                error = error.and(self.module.constants[i as usize].span, "declared here");
            }
            Memory::Alloc(_) => {}
        }
        self.errors.push(error);
    }

    fn copy(&mut self, operands: &CopyOperands, span: Span) {
        for memory in [operands.destination, operands.source] {
            if let Some(info) = self.info(memory)
                && info.space == AddressSpace::Imageblock
            {
                let message = format!(
                    "`{}` is an imageblock, which copies do not reach",
                    info.name
                );
                let help = "read and write its elements by `load` and `store`";
                self.error(Rule::WrongAddressSpace, span, message, help);
                return;
            }
        }
        // What it goes to has elements of the same type.
        if let Some(info) = self.info(operands.source)
            && let Some(extent) = info.element.extent(&self.module.structs)
            && extent.size_bytes > MAX_COPIED_ELEMENT_BYTES
        {
            let message = format!(
                "an element of `{}` has {} bytes, and a copy is of elements of at most {MAX_COPIED_ELEMENT_BYTES}",
                info.name, extent.size_bytes
            );
            let help = "copy buffers of smaller elements, or load and store";
            self.error(Rule::LimitExceeded, span, message, help);
        }
        self.access(operands.destination, Use::Write, "this copies to", span);
        self.access(operands.source, Use::Read, "this copies from", span);
    }

    /// O5: between device and threadgroup memory.
    fn async_spaces(&mut self, operands: &CopyOperands, span: Span) {
        let (Some(to), Some(from)) = (self.info(operands.destination), self.info(operands.source))
        else {
            return;
        };
        match (to.space, from.space) {
            (AddressSpace::Device, AddressSpace::Threadgroup)
            | (AddressSpace::Threadgroup, AddressSpace::Device)
            // Already reported: nothing is written there, textures have functions of their own, and copies do
            // not reach imageblocks.
            | (AddressSpace::Constant | AddressSpace::Texture | AddressSpace::Imageblock, _)
            | (_, AddressSpace::Texture | AddressSpace::Imageblock) => {}
            (to_space, from_space) => {
                let message = format!(
                    "an async copy goes from `{}` in {} memory to `{}` in {} memory",
                    from.name,
                    from_space.name(),
                    to.name,
                    to_space.name()
                );
                let help = "copy between device and threadgroup memory, or use `copy`";
                self.error(Rule::WrongAddressSpace, span, message, help);
            }
        }
    }

    /// O6: lanes that the program cannot know make the accesses, so the memory must be theirs in
    /// common.
    fn matrix_space(&mut self, memory: Memory, span: Span) {
        let Some(info) = self.info(memory) else {
            return;
        };
        match info.space {
            // Of a texture it is said that it is one.
            AddressSpace::Device | AddressSpace::Threadgroup | AddressSpace::Texture => {}
            AddressSpace::Constant | AddressSpace::Thread | AddressSpace::Imageblock => {
                let message = format!(
                    "`{}` is in {} memory, where simdgroup matrices cannot lie",
                    info.name,
                    info.space.name()
                );
                let help = "keep the matrix in device or threadgroup memory";
                self.error(Rule::WrongAddressSpace, span, message, help);
            }
        }
    }

    /// T1, T3, S2.
    fn atomic(&mut self, op: AtomicOp, place: &Place, order: Order, scope: Scope, span: Span) {
        let name = op.name();
        if let Some(info) = self.info(place.memory)
            && info.space == AddressSpace::Thread
        {
            let message = format!(
                "`{name}` acts on `{}`, which is the thread's own",
                info.name
            );
            let help = "use `load` and `store`, or a threadgroup array";
            self.error(Rule::WrongAddressSpace, span, message, help);
        } else if let Some(info) = self.info(place.memory)
            && info.space == AddressSpace::Imageblock
        {
            let message = format!(
                "`{name}` acts on `{}`, which is an imageblock: there are no atomics on its elements",
                info.name
            );
            let help = "use `load` and `store` with barriers that name `imageblock`, or a threadgroup array";
            self.error(Rule::WrongAddressSpace, span, message, help);
        } else {
            let what = format!("`{name}` acts on");
            self.access(place.memory, Use::Atomic, &what, span);
        }
        // A place that makes no sense is reported with the types.
        // So are those on texels, with textures.
        if let Ok(ty) = place_type(self.module, self.kernel, place)
            && self.kernel.texture(place.memory).is_none()
        {
            self.atomic_type(op, place, ty, span);
        }
        let wrong = match op {
            AtomicOp::Load if matches!(order, Order::Release | Order::AcqRel) => Some("release"),
            AtomicOp::Store if matches!(order, Order::Acquire | Order::AcqRel) => Some("acquire"),
            AtomicOp::Load
            | AtomicOp::Store
            | AtomicOp::Exchange
            | AtomicOp::CompareExchange
            | AtomicOp::Add
            | AtomicOp::Sub
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => None,
        };
        if let Some(wrong) = wrong {
            let message = format!(
                "`{name}` has the order `{}`, but cannot {wrong}",
                order.name()
            );
            let help = match op {
                AtomicOp::Load => "use `relaxed`, `acquire` or `seq_cst`",
                _store => "use `relaxed`, `release` or `seq_cst`",
            };
            self.error(Rule::AtomicOrder, span, message, help);
        }
        if scope == Scope::Simdgroup {
            let message = format!("the order of `{name}` cannot reach a simdgroup only");
            let help = "name the scope `threadgroup` or `device`";
            self.error(Rule::InvalidScope, span, message, help);
        }
    }

    fn atomic_type(&mut self, op: AtomicOp, place: &Place, ty: Type, span: Span) {
        let name = op.name();
        let Type::Scalar(scalar) = ty else {
            let message = format!("`{name}` acts on one scalar, not on {ty}");
            let help = match place.width {
                Width::One => "name a component: `[...]` after the element",
                Width::Run(_) | Width::Group(_) => "name one element",
            };
            self.error(Rule::AtomicType, span, message, help);
            return;
        };
        let moves = match op {
            AtomicOp::Load | AtomicOp::Store | AtomicOp::Exchange | AtomicOp::Add => true,
            AtomicOp::CompareExchange
            | AtomicOp::Sub
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => false,
        };
        let (why, help) = match scalar {
            Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 => return,
            Scalar::F32 | Scalar::F64 if moves => return,
            Scalar::F32 | Scalar::F64 => (
                format!("there is no `{name}` on {scalar}"),
                "use load, store, exchange or add, or an integer of the float's bits",
            ),
            Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::U8
            | Scalar::U16
            | Scalar::F16
            | Scalar::BF16 => (
                format!("there are no atomics on {scalar}"),
                "keep the location as a 32-bit integer",
            ),
        };
        self.error(Rule::AtomicType, span, why, help);
    }
}
