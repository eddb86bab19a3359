//! Modules of kernels, their types, and what is wrong with them.
//!
//! ```
//! use invar::ir::{text, verify};
//!
//! let module = text::parse("empty.inv", "kernel @empty() {\n}\n")?;
//! assert!(verify(module)?.kernel("empty").is_some());
//! # Ok::<(), invar::Error>(())
//! ```

pub use invar_ir::{
    Access, AddressSpace, AtomicOp, Const, ConstantKey, Diagnostic, Diagnostics, Dim, ElementType,
    FloatMode, Kernel, Module, Order, Place, Rule, Scalar, Scope, Severity, Source, Spaces, Span,
    Type, Value, Verified, verify,
};

/// The binary form: a module as bytes.
pub mod binary {
    pub use invar_ir::binary::{DecodeError, decode, encode};
}

/// The text form.
pub mod text {
    pub use invar_ir::text::parse;
}
