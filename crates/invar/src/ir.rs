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
    Access, AddressSpace, AtomicOp, Const, ConstantArray, ConstantKey, CopyOperands, CopyShape,
    Diagnostic, Diagnostics, Dim, ElementType, FloatMode, Kernel, KernelBuilder, Literal,
    MatrixPlace, Memory, Module, Order, Place, Region, Rule, Scalar, ScalarLiteral, Scope,
    Severity, Source, Spaces, Span, Step, StructDef, StructId, Swizzle, Type, Value, Verified,
    Width, verify,
};

/// The binary form: a module as bytes.
pub mod binary {
    pub use invar_ir::binary::{DecodeError, decode, encode};
}

/// The types of textures, and how they are sampled.
pub mod texture {
    pub use invar_ir::texture::{
        Address, Border, Compare, Coordinates, Dimension, Filter, LodClamp, Mip, Sampler,
        SamplerSource, Sampling, TextureAccess, TextureFunction, TextureType,
    };
}

/// The text form.
pub mod text {
    pub use invar_ir::text::parse;
}
