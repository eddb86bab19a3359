//! What a device can do, and whether that is enough for a kernel.
//!
//! Invariant: what a device does not state here, it refuses before anything runs; no rule of the
//! memory model is ever weakened instead.

use std::fmt;

use invar_ir::{
    AddressSpace, Diagnostic, Diagnostics, FloatMode, InstKind, Kernel, Module, Order, Rule,
    Scalar, Span, Type,
};

use crate::Error;

/// What a device can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How the device is called: `cpu`, `checked`, `gpu`.
    pub name: String,
    /// The family it belongs to, for code that chooses by it: `x86-64`, `reference`.
    pub family: String,
    /// What it is, for people.
    pub description: String,
    /// How many threads of the host it computes with; none on a GPU.
    pub host_threads: u32,
    /// The simdgroup size of a kernel that requires none.
    pub simdgroup_size: u32,
    /// Every simdgroup size that a kernel may require.
    pub simdgroup_sizes: Vec<u32>,
    /// The most threadgroup memory of a threadgroup, in bytes by L3's layout (S4).
    pub threadgroup_memory_bytes: u64,
    /// The most thread memory that the arrays of a kernel may take together, for each thread, in bytes by L3's
    /// layout (S4).
    pub thread_memory_bytes: u64,
    /// The most threads of a threadgroup (S4).
    pub threads_per_threadgroup: u32,
    /// The largest buffer, in bytes.
    pub buffer_bytes: u64,
    /// The largest constant buffer, in bytes.
    pub constant_buffer_bytes: u64,
    /// What the offset of a part of a buffer must be a multiple of where it is bound to a constant
    /// parameter, in bytes; beside that an element's own alignment holds.
    pub constant_offset_bytes: u64,
    /// Types that values and memory may have.
    pub types: Vec<Scalar>,
    /// Types for which it claims `ieee-float` (A9).
    pub ieee_float: Vec<Scalar>,
    /// Types that atomics act on (T1).
    pub atomics: Vec<Scalar>,
    /// Orders of atomics (T3).
    pub memory_orders: Vec<Order>,
    /// Types of simdgroup matrices.
    pub simdgroup_matrices: Vec<Type>,
    /// Whether it has async copies (O5).
    pub async_copy: bool,
    /// Whether a threadgroup that has begun keeps making progress (X3).
    pub threadgroup_progress: bool,
    /// Whether the times of dispatches ([`crate::Timestamps`]) are by a clock of its own; else they are by the
    /// host's, as it sends a dispatch and sees its end.
    pub own_clock: bool,
}

/// Types that atomics act on, on every device that has all of them.
pub(crate) const ALL_ATOMICS: [Scalar; 6] = [
    Scalar::I32,
    Scalar::U32,
    Scalar::I64,
    Scalar::U64,
    Scalar::F32,
    Scalar::F64,
];

/// Something that a device has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Values and memory of a type.
    Type(Scalar),
    /// `ieee-float` for a type (A9).
    IeeeFloat(Scalar),
    /// Atomics on a type (T1).
    Atomic(Scalar),
    /// An order of atomics (T3).
    MemoryOrder(Order),
    /// A simdgroup size.
    SimdgroupSize(u32),
    /// Simdgroup matrices of a type.
    SimdgroupMatrix(Type),
    /// Async copies (O5).
    AsyncCopy,
    /// Progress of threadgroups that have begun (X3).
    ThreadgroupProgress,
    /// That much threadgroup memory, in bytes (S4).
    ThreadgroupMemory(u64),
    /// That much thread memory, in bytes for each thread (S4).
    ThreadMemory(u64),
    /// That many threads in a threadgroup (S4).
    ThreadsPerThreadgroup(u32),
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Feature::Type(scalar) => write!(f, "values of type {scalar}"),
            Feature::IeeeFloat(scalar) => write!(f, "ieee-float for {scalar}"),
            Feature::Atomic(scalar) => write!(f, "atomics on {scalar}"),
            Feature::MemoryOrder(order) => write!(f, "memory order {}", order.name()),
            Feature::SimdgroupSize(size) => write!(f, "simdgroups of {size} threads"),
            Feature::SimdgroupMatrix(ty) => write!(f, "simdgroup matrices of type {ty}"),
            Feature::AsyncCopy => f.write_str("async copies"),
            Feature::ThreadgroupProgress => f.write_str("threadgroup-progress"),
            Feature::ThreadgroupMemory(bytes) => write!(f, "{bytes} bytes of threadgroup memory"),
            Feature::ThreadMemory(bytes) => write!(f, "{bytes} bytes of thread memory"),
            Feature::ThreadsPerThreadgroup(threads) => {
                write!(f, "threadgroups of {threads} threads")
            }
        }
    }
}

impl Capabilities {
    /// Whether the device has a feature.
    pub fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::Type(scalar) => self.types.contains(&scalar),
            Feature::IeeeFloat(scalar) => self.ieee_float.contains(&scalar),
            Feature::Atomic(scalar) => self.atomics.contains(&scalar),
            Feature::MemoryOrder(order) => self.memory_orders.contains(&order),
            Feature::SimdgroupSize(size) => self.simdgroup_sizes.contains(&size),
            Feature::SimdgroupMatrix(ty) => self.simdgroup_matrices.contains(&ty),
            Feature::AsyncCopy => self.async_copy,
            Feature::ThreadgroupProgress => self.threadgroup_progress,
            Feature::ThreadgroupMemory(bytes) => bytes <= self.threadgroup_memory_bytes,
            Feature::ThreadMemory(bytes) => bytes <= self.thread_memory_bytes,
            Feature::ThreadsPerThreadgroup(threads) => threads <= self.threads_per_threadgroup,
        }
    }

    /// Fails unless the device has a feature.
    ///
    /// ```
    /// use invar_runtime::{Device, Feature};
    ///
    /// let device = Device::checked();
    /// device.capabilities().require(Feature::SimdgroupSize(32))?;
    /// let missing = device.capabilities().require(Feature::SimdgroupSize(48)).unwrap_err();
    /// assert_eq!(
    ///     missing.to_string(),
    ///     "error[unsupported-feature]: device `checked` has no simdgroups of 48 threads; \
    ///      it has those of 4, 8, 16, 32, 64, 128"
    /// );
    /// # Ok::<(), invar_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// `unsupported-feature` or `unsupported-memory-order`, saying what there is instead.
    pub fn require(&self, feature: Feature) -> Result<(), Error> {
        if self.supports(feature) {
            return Ok(());
        }
        let rule = match feature {
            Feature::MemoryOrder(_) => Rule::UnsupportedMemoryOrder,
            Feature::IeeeFloat(_) => Rule::UnsupportedFloatMode,
            Feature::Type(_)
            | Feature::Atomic(_)
            | Feature::SimdgroupSize(_)
            | Feature::SimdgroupMatrix(_)
            | Feature::AsyncCopy
            | Feature::ThreadgroupProgress
            | Feature::ThreadgroupMemory(_)
            | Feature::ThreadMemory(_)
            | Feature::ThreadsPerThreadgroup(_) => Rule::UnsupportedFeature,
        };
        Err(Error::new(rule, self.missing(feature)))
    }

    /// "device `x` has no ...; it has ...".
    fn missing(&self, feature: Feature) -> String {
        fn list<T>(items: &[T], name: impl Fn(&T) -> String) -> String {
            let names: Vec<String> = items.iter().map(name).collect();
            names.join(", ")
        }
        let scalars = |s: &[Scalar]| list(s, |s| s.to_string());
        let instead = match feature {
            Feature::Type(_) => scalars(&self.types),
            Feature::IeeeFloat(_) => scalars(&self.ieee_float),
            Feature::Atomic(_) => scalars(&self.atomics),
            Feature::MemoryOrder(_) => list(&self.memory_orders, |o| o.name().to_string()),
            Feature::SimdgroupSize(_) => {
                format!(
                    "those of {}",
                    list(&self.simdgroup_sizes, |n| n.to_string())
                )
            }
            Feature::SimdgroupMatrix(_) => list(&self.simdgroup_matrices, |t| t.to_string()),
            Feature::AsyncCopy | Feature::ThreadgroupProgress => String::new(),
            Feature::ThreadgroupMemory(_) => format!("{} bytes", self.threadgroup_memory_bytes),
            Feature::ThreadMemory(_) => format!("{} bytes", self.thread_memory_bytes),
            Feature::ThreadsPerThreadgroup(_) => {
                format!("at most {}", self.threads_per_threadgroup)
            }
        };
        let instead = match instead.as_str() {
            "" => String::new(),
            "those of " => "; it has no such thing of any size".to_string(),
            list => format!("; it has {list}"),
        };
        format!("device `{}` has no {feature}{instead}", self.name)
    }

    /// Whether the device can run a kernel of a module, as far as the kernel alone tells.
    pub(crate) fn check(&self, module: &Module, kernel: &Kernel) -> Result<(), Diagnostics> {
        let mut found: Vec<Diagnostic> = Vec::new();
        let mut need = |feature: Feature, span: Span| {
            if let Err(Error::Runtime { rule, message }) = self.require(feature)
                && !found.iter().any(|d| d.message == message)
            {
                found.push(Diagnostic::error(rule, span, message));
            }
        };
        if let Some(size) = kernel.simdgroup_size {
            need(Feature::SimdgroupSize(size), kernel.span);
        }
        need(
            Feature::ThreadMemory(thread_memory_bytes(module, kernel)),
            kernel.span,
        );
        for value in &kernel.values {
            if let Some(scalar) = value.ty.scalar() {
                need(Feature::Type(scalar), kernel.span);
                if kernel.float_mode == FloatMode::Strict && scalar.is_float() {
                    need(Feature::IeeeFloat(scalar), kernel.span);
                }
            }
            if let Type::SimdgroupMatrix { .. } = value.ty {
                need(Feature::SimdgroupMatrix(value.ty), kernel.span);
            }
        }
        kernel.for_each_inst(&mut |inst| match &inst.kind {
            InstKind::Atomic { order, .. } => {
                need(Feature::MemoryOrder(*order), inst.span);
                for result in &inst.results {
                    if let Some(scalar) = kernel.ty(*result).scalar()
                        && scalar != Scalar::Bool
                    {
                        need(Feature::Atomic(scalar), inst.span);
                    }
                }
            }
            InstKind::AsyncCopy { .. } => need(Feature::AsyncCopy, inst.span),
            _every_device_has_it => {}
        });
        if found.is_empty() {
            Ok(())
        } else {
            Err(Diagnostics(found))
        }
    }
}

/// What the thread arrays of a kernel take for each thread, in bytes by L3's layout.
fn thread_memory_bytes(module: &Module, kernel: &Kernel) -> u64 {
    let arrays = kernel.allocs.iter();
    let arrays = arrays.filter(|array| array.space == AddressSpace::Thread);
    let bytes = arrays.map(|array| {
        let extent = array.element.extent(&module.structs);
        extent.map_or(0, |e| e.size_bytes) * u64::from(array.length)
    });
    bytes.sum()
}
