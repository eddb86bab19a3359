//! Devices, programs and launches.
//!
//! An array comes as NumPy's array interface (a capsule), whose memory is used in place; the Python
//! side holds the array until the submission has ended. A texture is such an array with a format and a size. A
//! value comes as its components' bits, and the length of a threadgroup parameter as a number.

use std::time::Duration;

use invar::{Arg, ByteBuffer, CompileOptions, Dispatch, Error, Grid, TextureShape};
use invar_interp::CheckOptions;
use invar_ir::{Const, Kernel, ParamKind, Scalar, Type};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use pyo3::{create_exception, ffi};

use crate::away::{LOOK, away, interruptible};
use crate::convert::{diagnostics, refuse};
use crate::run::{Module, named_constants};
use crate::texture;

create_exception!(
    _invar,
    DeviceError,
    PyValueError,
    "What a device refuses or fails at: `args` are the sentence and the rule's name."
);

/// A device.
#[pyclass(module = "invar._invar", frozen)]
pub struct Device {
    device: invar::Device,
}

/// Memory of a device, which stays there between launches.
#[pyclass(module = "invar._invar", frozen)]
pub struct Memory {
    buffer: ByteBuffer,
}

/// A grid and a threadgroup size.
#[pyclass(module = "invar._invar", frozen)]
pub struct Sizes {
    /// Both.
    pub dispatch: Dispatch,
}

/// A kernel compiled for a device.
#[pyclass(module = "invar._invar", frozen)]
pub struct Program {
    program: invar::Program,
    queue: invar::Queue,
}

/// A launch that may still run.
#[pyclass(module = "invar._invar", frozen)]
pub struct Submission {
    submission: invar::Submission,
    program: invar::Program,
}

/// The exception for what a device refused or found.
fn failed(program: &invar::Program, error: Error) -> PyErr {
    match error {
        Error::Runtime { rule, message } => DeviceError::new_err((message, rule.name())),
        Error::Diagnostics(all) => diagnostics(program.module(), &all),
    }
}

fn device_error(error: Error) -> PyErr {
    let rule = error.rule().map_or("", |rule| rule.name());
    let message = match &error {
        Error::Runtime { message, .. } => message.clone(),
        Error::Diagnostics(all) => {
            let sentences: Vec<String> = all.0.iter().map(|d| d.message.clone()).collect();
            sentences.join("; ")
        }
    };
    DeviceError::new_err((message, rule))
}

#[pymethods]
impl Sizes {
    #[new]
    fn new(grid: [u32; 3], threadgroups: bool, threadgroup: [u32; 3]) -> Sizes {
        let grid = if threadgroups {
            Grid::Threadgroups(grid)
        } else {
            Grid::Threads(grid)
        };
        Sizes {
            dispatch: Dispatch { grid, threadgroup },
        }
    }
}

/// Every device of this machine, the default one first.
#[pyfunction]
pub fn devices() -> Vec<Device> {
    let all = invar::Device::all().into_iter();
    all.map(|device| Device { device }).collect()
}

#[pymethods]
impl Device {
    /// The device of that name, or `default`.
    #[staticmethod]
    fn named(name: &str) -> PyResult<Device> {
        let device = invar::Device::named(name).map_err(device_error)?;
        Ok(Device { device })
    }

    /// The checked device with a certain order of threads and simdgroup size.
    #[staticmethod]
    fn checked(seed: u64, simdgroup: Option<u32>) -> Device {
        let mut options = CheckOptions::default();
        options.run.seed = seed;
        options.run.simdgroup_size = simdgroup;
        Device {
            device: invar::Device::checked_with(options),
        }
    }

    #[getter]
    fn name(&self) -> &str {
        &self.device.capabilities().name
    }

    /// What it can do: names and what they have, as numbers, strings and lists of strings.
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let c = self.device.capabilities();
        let names = |all: &[Scalar]| all.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let dict = pyo3::types::PyDict::new(py);
        dict.set_item("name", &c.name)?;
        dict.set_item("family", &c.family)?;
        dict.set_item("description", &c.description)?;
        dict.set_item("host_threads", c.host_threads)?;
        dict.set_item("simdgroup_size", c.simdgroup_size)?;
        dict.set_item("simdgroup_sizes", c.simdgroup_sizes.clone())?;
        dict.set_item("threadgroup_memory_bytes", c.threadgroup_memory_bytes)?;
        dict.set_item("thread_memory_bytes", c.thread_memory_bytes)?;
        dict.set_item("threads_per_threadgroup", c.threads_per_threadgroup)?;
        dict.set_item("buffer_bytes", c.buffer_bytes)?;
        dict.set_item("constant_buffer_bytes", c.constant_buffer_bytes)?;
        dict.set_item("constant_offset_bytes", c.constant_offset_bytes)?;
        dict.set_item("types", names(&c.types))?;
        dict.set_item("ieee_float", names(&c.ieee_float))?;
        dict.set_item("atomics", names(&c.atomics))?;
        let orders: Vec<&str> = c.memory_orders.iter().map(|o| o.name()).collect();
        dict.set_item("memory_orders", orders)?;
        let matrices: Vec<String> = c.simdgroup_matrices.iter().map(Type::to_string).collect();
        dict.set_item("simdgroup_matrices", matrices)?;
        dict.set_item("async_copy", c.async_copy)?;
        dict.set_item("threadgroup_progress", c.threadgroup_progress)?;
        dict.set_item("own_clock", c.own_clock)?;
        Ok(dict)
    }

    /// Memory of so many bytes, all zeros.
    fn memory(&self, py: Python<'_>, size_bytes: usize) -> PyResult<Memory> {
        let buffer = away(py, || ByteBuffer::zeroed(&self.device, size_bytes));
        let buffer = buffer.map_err(device_error)?;
        Ok(Memory { buffer })
    }

    /// Compiles a kernel of a module, within about as many seconds as a launch may take. `prove`: launches that a proof
    /// says are in bounds run code without bounds checks.
    #[pyo3(signature = (module, kernel, constants, time_limit=None, prove=false))]
    fn compile(
        &self,
        py: Python<'_>,
        module: &Module,
        kernel: &str,
        constants: Vec<(String, String, u64)>,
        time_limit: Option<f64>,
        prove: bool,
    ) -> PyResult<Program> {
        let options = CompileOptions {
            constants: named_constants(constants)?,
            time_limit: time_limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            prove,
            ..CompileOptions::default()
        };
        let verified = module.verified()?;
        interruptible(py, || {
            let program = self.device.compile_with(verified, kernel, &options);
            let program = program.map_err(|error| match error {
                Error::Runtime { .. } => device_error(error),
                Error::Diagnostics(all) => diagnostics(verified, &all),
            })?;
            Ok(Program {
                program,
                queue: self.device.queue(),
            })
        })?
    }
}

#[pymethods]
impl Memory {
    /// Replaces all of it by an array's bytes.
    fn write(&self, py: Python<'_>, array: &Bound<'_, PyCapsule>) -> PyResult<()> {
        let (start, size) = array_bytes(array)?;
        let start = start as usize;
        interruptible(py, || {
            let bytes = match size {
                0 => &[][..],
                // SAFETY: the caller holds the array until this returns.
                _ => unsafe { std::slice::from_raw_parts(start as *const u8, size) },
            };
            self.buffer.write_bytes(0, bytes)
        })?
        .map_err(device_error)
    }

    /// Copies it into an array that may be written, as the launches submitted so far leave it.
    fn read(&self, py: Python<'_>, array: &Bound<'_, PyCapsule>) -> PyResult<()> {
        let (start, size) = array_bytes(array)?;
        let start = start as usize;
        interruptible(py, || {
            let bytes = match size {
                0 => &mut [][..],
                // SAFETY: the caller made the array for this and holds it until this returns.
                _ => unsafe { std::slice::from_raw_parts_mut(start as *mut u8, size) },
            };
            self.buffer.read_bytes(0, bytes)
        })?
        .map_err(device_error)
    }
}

/// NumPy's array interface, as its C API defines it.
#[repr(C)]
struct ArrayInterface {
    two: i32,
    dimensions: i32,
    kind: u8,
    item_size: i32,
    flags: i32,
    shape: *const isize,
    strides: *const isize,
    data: *mut u8,
    description: *mut ffi::PyObject,
}

/// Where an array's memory begins, and its bytes; the array is contiguous, and writable if the kernel
/// writes it, which the Python side has checked. (NumPy's flags are not set here for arrays of structs.)
fn array_bytes(capsule: &Bound<'_, PyCapsule>) -> PyResult<(*mut u8, usize)> {
    // SAFETY: a capsule is an object; without a name the pointer is what its maker put in.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()) };
    if pointer.is_null() {
        return Err(PyErr::fetch(capsule.py()));
    }
    // SAFETY: the Python side passes what `ndarray.__array_struct__` gave, which is this struct and
    // lives as long as the capsule.
    let array = unsafe { &*pointer.cast::<ArrayInterface>() };
    if array.two != 2 || array.item_size < 0 {
        return Err(refuse("an argument is not an array"));
    }
    let dimensions = usize::try_from(array.dimensions).unwrap_or(0);
    let shape: &[isize] = if dimensions == 0 {
        &[]
    } else {
        // SAFETY: the interface has so many extents.
        unsafe { std::slice::from_raw_parts(array.shape, dimensions) }
    };
    let mut size = array.item_size as usize;
    for extent in shape {
        size = usize::try_from(*extent)
            .ok()
            .and_then(|extent| size.checked_mul(extent))
            .ok_or_else(|| refuse("an array is larger than memory"))?;
    }
    Ok((array.data, size))
}

/// What is passed for a buffer: an array's interface, or memory of a device.
fn memory_of(arg: &Bound<'_, PyAny>, writes: bool) -> PyResult<Given> {
    if let Ok(memory) = arg.cast::<Memory>() {
        return Ok(Given::Memory(memory.clone().unbind()));
    }
    let (start, size) = array_bytes(arg.cast::<PyCapsule>()?)?;
    Ok(Given::Buffer(start, size, writes))
}

/// An argument as Python passed it.
pub enum Given {
    /// Where the array's memory begins, its size in bytes, and whether it may be written.
    Buffer(*mut u8, usize, bool),
    /// The same of a texture.
    Texture(*mut u8, usize, bool, TextureShape),
    /// Memory of the device.
    Memory(Py<Memory>),
    /// A value's components.
    Scalar(Vec<Const>),
    /// The elements of a threadgroup parameter.
    Length(u64),
}

/// The arguments that Python passed for a kernel's parameters.
pub fn given(kernel: &Kernel, args: &Bound<'_, PyList>) -> PyResult<Vec<Given>> {
    let pairs = kernel.params.iter().zip(args.iter());
    pairs
        .map(|(param, arg)| match &param.kind {
            ParamKind::Buffer { access, .. } => memory_of(&arg, access.can_write()),
            ParamKind::Constant { .. } => memory_of(&arg, false),
            ParamKind::Scalar { value } => {
                let scalar = kernel.ty(*value).scalar();
                let scalar = scalar.ok_or_else(|| refuse("a value has no scalar"))?;
                let parts = arg.cast::<PyTuple>()?.iter();
                let parts = parts.map(|bits| {
                    Ok(Const {
                        scalar,
                        bits: bits.extract()?,
                    })
                });
                Ok(Given::Scalar(parts.collect::<PyResult<_>>()?))
            }
            ParamKind::Threadgroup { .. } => Ok(Given::Length(arg.extract()?)),
            ParamKind::Sampler => {
                let words: Vec<String> = arg.extract()?;
                let code = texture::sampler(&words)?.code();
                Ok(Given::Scalar(code.map(Const::from).to_vec()))
            }
            ParamKind::Texture(texture) => {
                let (array, shape): (Bound<'_, PyCapsule>, texture::Size) = arg.extract()?;
                let (start, size) = array_bytes(&array)?;
                let writes = texture.access.memory().can_write();
                Ok(Given::Texture(start, size, writes, shape.shape()?))
            }
        })
        .collect()
}

/// Cancels a launch that Ctrl-C ends, whose arrays are in use until it has ended.
fn stop(py: Python<'_>, submission: &invar::Submission) {
    submission.cancel();
    let _cancelled = away(py, || submission.wait());
}

impl Program {
    fn start(
        &self,
        py: Python<'_>,
        sizes: &Sizes,
        args: &Bound<'_, PyList>,
        time_limit: Option<f64>,
    ) -> PyResult<Submission> {
        let given = given(self.program.kernel(), args)?;
        let buffers = given.iter().filter_map(|g| match g {
            Given::Buffer(start, size, writable) | Given::Texture(start, size, writable, _) => {
                // SAFETY: the Python side keeps the array until the submission has ended; what
                // others do with its memory meanwhile is the author's promise (F2).
                Some(unsafe {
                    ByteBuffer::from_raw(self.program.device(), *start, *size, *writable)
                })
            }
            Given::Memory(_) | Given::Scalar(_) | Given::Length(_) => None,
        });
        let buffers = buffers
            .collect::<Result<Vec<_>, _>>()
            .map_err(device_error)?;
        let mut buffer = buffers.iter();
        let mut next = || {
            let next = buffer.next();
            next.ok_or_else(|| refuse("there are fewer buffers than parameters"))
        };
        let args = given.iter().map(|g| match g {
            Given::Buffer(..) => next().map(Arg::from),
            Given::Texture(.., shape) => next().map(|buffer| buffer.as_texture(*shape)),
            Given::Memory(memory) => Ok(Arg::from(&memory.get().buffer)),
            Given::Scalar(parts) => Arg::components(parts).map_err(device_error),
            Given::Length(n) => Ok(Arg::ThreadgroupLength(*n)),
        });
        let args = args.collect::<PyResult<Vec<Arg>>>()?;
        let limited;
        let queue = match time_limit {
            None => &self.queue,
            Some(seconds) => {
                let limit = Duration::try_from_secs_f64(seconds)
                    .map_err(|_| refuse(format!("{seconds} seconds is not a time limit")))?;
                limited = self.program.device().queue().with_time_limit(Some(limit));
                &limited
            }
        };
        // Code for a threadgroup size that comes for the first time is compiled here.
        let mut dispatched = None;
        let left = interruptible(py, || {
            dispatched = Some(queue.dispatch(&self.program, sizes.dispatch, &args));
        });
        // One that prints may still run.
        if let (Err(_), Some(Ok(submission))) = (&left, &dispatched) {
            stop(py, submission);
        }
        left?;
        let Some(dispatched) = dispatched else {
            unreachable!("what is not left was dispatched");
        };
        Ok(Submission {
            submission: dispatched.map_err(|error| failed(&self.program, error))?,
            program: self.program.clone(),
        })
    }
}

#[pymethods]
impl Program {
    /// Starts a launch.
    #[pyo3(signature = (sizes, args, time_limit=None))]
    fn submit(
        &self,
        py: Python<'_>,
        sizes: &Sizes,
        args: &Bound<'_, PyList>,
        time_limit: Option<f64>,
    ) -> PyResult<Submission> {
        self.start(py, sizes, args, time_limit)
    }

    /// Runs a launch; gives the seconds that it took on the device.
    #[pyo3(signature = (sizes, args, time_limit=None))]
    fn run(
        &self,
        py: Python<'_>,
        sizes: &Sizes,
        args: &Bound<'_, PyList>,
        time_limit: Option<f64>,
    ) -> PyResult<f64> {
        self.start(py, sizes, args, time_limit)?.wait(py, None)
    }
}

#[pymethods]
impl Submission {
    /// Whether it has ended.
    fn done(&self) -> bool {
        self.submission.is_done()
    }

    /// Asks it to end.
    fn cancel(&self) {
        self.submission.cancel();
    }

    /// Waits at most so many seconds for its end; gives whether it has ended. Ctrl-C ends the wait
    /// and leaves it running.
    fn join(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let mut left = match timeout {
            None => None,
            Some(seconds) => Some(
                Duration::try_from_secs_f64(seconds.max(0.0))
                    .map_err(|_| refuse(format!("{seconds} seconds is not a timeout")))?,
            ),
        };
        loop {
            if self.submission.is_done() {
                return Ok(true);
            }
            let now = left.map_or(LOOK, |left| left.min(LOOK));
            if away(py, || self.submission.wait_timeout(now)) {
                return Ok(true);
            }
            py.check_signals()?;
            if let Some(left) = &mut left {
                *left = left.saturating_sub(LOOK);
                if left.is_zero() {
                    return Ok(false);
                }
            }
        }
    }

    /// Waits for its end; gives the seconds that it took on the device. Ctrl-C cancels it.
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<f64> {
        match self.join(py, timeout) {
            Ok(true) => {}
            Ok(false) => return Err(pyo3::exceptions::PyTimeoutError::new_err(())),
            Err(interrupted) => {
                stop(py, &self.submission);
                return Err(interrupted);
            }
        }
        match self.submission.wait() {
            Ok(times) => Ok(times.duration().as_secs_f64()),
            Err(error) => Err(failed(&self.program, error)),
        }
    }
}
