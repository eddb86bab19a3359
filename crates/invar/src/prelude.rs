//! What a file with kernels needs: `use invar::prelude::*;`.
//!
//! ```
//! use invar::prelude::*;
//!
//! #[kernel]
//! fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
//!     let i = thread_position_in_grid().x;
//!     y[i] = a * x[i] + y[i];
//! }
//!
//! fn main() -> invar::Result<()> {
//!     let device = Device::default()?;
//!     let x = device.buffer_from(&vec![1.0f32; 1 << 10])?;
//!     let mut y = device.buffer_zeroed::<f32>(1 << 10)?;
//!     saxpy::launch(&device, Grid::threads(1 << 10), 2.0, &x, &mut y)?.wait()?;
//!     assert_eq!(y.read()?[0], 2.0);
//!     Ok(())
//! }
//! ```

pub use crate::kernel::ops::*;
pub use crate::kernel::{
    AtomicInteger, AtomicNumber, Beside, Bits, Constants, Data, Depth2d, Depth2dArray, DepthCube,
    DepthCubeArray, Event, Findings, Float, FunctionConstant, Imageblock, Integer, Kernel, Number,
    Prepared, Scalar, Signed, SimdgroupMatrix, Slice, SliceMut, Stored, Texture1d, Texture1dArray,
    Texture2d, Texture2dArray, Texture2dMs, Texture2dMsArray, Texture3d, TextureBuffer,
    TextureCube, TextureCubeArray, ThreadArray, ThreadgroupArray, Val,
};
pub use crate::{Buffer, Device, Dispatch, Grid, PixelFormat, Queue, Texture, bf16, f16};
pub use invar_ir::texture::{
    Address, Border, Compare, Coordinates, Filter, LodClamp, Mip, Sampler,
};
pub use invar_ir::{Order, Scope, Spaces};
pub use invar_macros::{KernelData, device_fn, function_constant, kernel, requires};
