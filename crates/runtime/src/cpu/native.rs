//! Programs of machine code, and calls of them.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use invar_interp::GridSizes;
use invar_ir::room::with_room;
use invar_ir::{InstKind, Region, Rule, Verified};
use invar_llvm::abi::{Argument, ColdPaths, Entry, Launch, NO_COLD_PATH, SCRATCH_ALIGNMENT};
use invar_prove::condition::Launches;

use super::regrouping::Regrouping;
use super::streaming::least_bytes;
use crate::backend::{Backend, Call, CompileOptions, Executable, Ready, Source};
use crate::compiling::{Compilation, Patience};
use crate::error::failed;
use crate::proof::{KnownArgument, Proof, Proved, is_in_bounds, note_without_checks};
use crate::sync::lock;
use crate::task::{self, JobSlot, Task};
use crate::{Arg, Capabilities, Error, environment};

/// What is left beside for signal handlers, and for the few functions of the C library that code calls.
const MARGIN_BYTES: usize = 64 << 10;

/// Makes machine code of kernels.
pub(crate) trait Compiler: Send + Sync {
    /// Code for a kernel of a module without function constants, for a threadgroup size or for any. Without bounds
    /// checks it may run in the launches of [`Compiler::in_bounds_in`] alone.
    fn compile(
        &self,
        module: &Verified,
        kernel: usize,
        threadgroup_size: Option<[u32; 3]>,
        checks: bool,
    ) -> Result<Arc<dyn Code>, Error>;

    /// The launches in which no access of the code for a kernel is out of bounds, if any are known.
    fn in_bounds_in(&self, _module: &Verified, _kernel: usize) -> Option<Launches> {
        None
    }
}

/// A device that runs machine code on the threads of the host.
pub(crate) struct Native {
    pub(crate) capabilities: Capabilities,
    pub(crate) compiler: Arc<dyn Compiler>,
}

impl Backend for Native {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn compile(
        &self,
        source: &Source,
        options: &CompileOptions,
    ) -> Result<Box<dyn Executable>, Error> {
        let program = NativeProgram::new(source, &self.compiler, options.prove);
        let size = options.threadgroup_size;
        if let Some(size) = size.or(source.kernel().threadgroup_size) {
            let limit = options.time_limit.or_else(environment::time_limit);
            let regrouped = program.regrouping.of_size(size);
            let (form, shape) = match &regrouped {
                Some((form, shape)) => (&**form, *shape),
                None => (&program.written, size),
            };
            // What is proved will most likely run.
            let checks = !options.prove || program.proved(form, limit)?.is_none();
            program.code(form, shape, checks, limit)?;
        }
        Ok(Box::new(program))
    }

    fn takes_proofs(&self) -> bool {
        true
    }
}

/// Machine code of a kernel.
///
/// # Safety
/// The entry must do what `invar_llvm::abi` says, for arguments that fit the kernel's parameters, and
/// use no more scratch memory than stated.
pub(crate) unsafe trait Code: Send + Sync {
    /// What to call.
    fn entry(&self) -> Entry;
    /// How much of the stack it takes, in bytes, without its cold paths.
    fn stack_bytes(&self) -> u64;
    /// What runs its cold paths, and how much of the stack that takes, in bytes, if that needs no compiling.
    fn cold_paths_now(&self) -> Option<(ColdPaths, u64)>;
    /// The same, compiled first where needed, for who has that patience.
    fn cold_paths(&self, patience: &Patience<'_>) -> Result<(ColdPaths, u64), Error>;
    /// Scratch memory that each worker needs for this launch, in bytes.
    ///
    /// # Safety
    /// The launch's arguments must be as many as the kernel's parameters.
    unsafe fn scratch_bytes(&self, launch: &Launch) -> u64;
}

/// A call of a kernel whose cold paths may still have to be compiled: what [`find_cold_paths`] is called with.
#[repr(C)]
struct Running<'a> {
    launch: Launch,
    kernel: &'a str,
    code: &'a dyn Code,
    task: &'a Task,
}

/// Runs a cold path after having it compiled. The dispatch's time stands still meanwhile.
unsafe extern "C" fn find_cold_paths(launch: *const Launch, number: u32, frame: *mut u8) -> u32 {
    // SAFETY: only `Job::run` hands this function out, in a launch that begins a `Running`.
    let running = unsafe { &*launch.cast::<Running<'_>>() };
    let run = || {
        let patience = Patience {
            kernel: running.kernel,
            limit: running.task.time_limit,
            is_wanted: &|| !running.task.is_asked_to_stop(),
        };
        let (cold_paths, stack_bytes) = {
            let _pause = running.task.pause();
            running.code.cold_paths(&patience)?
        };
        // SAFETY: the caller is the kernel's code, of the same compilation.
        let run = || unsafe { cold_paths(launch, number, frame) };
        Ok(with_room(stack_bytes as usize + MARGIN_BYTES, run))
    };
    let done = catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(failed("compiler", &*panic)));
    done.unwrap_or_else(|error| {
        // Who asked it to stop knows why.
        if !running.task.is_asked_to_stop() {
            running.task.give_up(error);
        }
        NO_COLD_PATH
    })
}

/// What cold paths may take of the stack for which each launch has room.
const COLD_PATH_BYTES: u64 = MARGIN_BYTES as u64 / 2;

/// The bytes of a value, aligned for any.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct ValueBytes([u8; 128]);

/// A call; its lists are kept from one use to the next.
struct Job {
    code: Option<Arc<dyn Code>>,
    kernel: Arc<str>,
    arguments: Vec<Argument>,
    values: Vec<ValueBytes>,
    threads: [u32; 3],
    threadgroup: [u32; 3],
    threadgroups: [u32; 3],
    scratch_bytes: u64,
}

// SAFETY: the addresses are of the job's own values and of memory that its task keeps alive, used in the order of
// dispatches.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Default for Job {
    fn default() -> Job {
        Job {
            code: None,
            kernel: "".into(),
            arguments: Vec::new(),
            values: Vec::new(),
            threads: [0; 3],
            threadgroup: [0; 3],
            threadgroups: [0; 3],
            scratch_bytes: 0,
        }
    }
}

impl Job {
    /// Fills it in for a dispatch whose arguments fit; `element_bytes` has an entry for each.
    fn fill(
        &mut self,
        code: &Arc<dyn Code>,
        grid: &GridSizes,
        args: &[Arg],
        element_bytes: &[u64],
    ) {
        self.arguments.clear();
        self.values.clear();
        // The values must not move once their addresses are taken.
        self.values.reserve(args.len());
        for (arg, size) in args.iter().zip(element_bytes) {
            self.arguments.push(match arg {
                Arg::Buffer(slice) => Argument {
                    data: slice.start(),
                    length: slice.size_bytes() as u64 / size,
                },
                Arg::Scalar(components) => {
                    self.values.push(ValueBytes(components.bytes()));
                    let last = self.values.len() - 1;
                    Argument {
                        data: (&raw mut self.values[last]).cast(),
                        length: 1,
                    }
                }
                Arg::ThreadgroupLength(length) => Argument {
                    data: std::ptr::null_mut(),
                    length: *length,
                },
            });
        }
        self.threads = grid.threads;
        self.threadgroup = grid.threadgroup;
        self.threadgroups = grid.threadgroups;
        let stop = std::sync::atomic::AtomicU32::new(0);
        // SAFETY: the arguments are as many as the parameters.
        self.scratch_bytes = unsafe { code.scratch_bytes(&self.launch(&**code, &stop)) };
        self.code = Some(code.clone());
    }

    fn launch(&self, code: &dyn Code, stop: &std::sync::atomic::AtomicU32) -> Launch {
        Launch {
            arguments: self.arguments.as_ptr(),
            stop,
            least_streamed_bytes: least_bytes(),
            // Cold paths that take little run at once: there is room for those.
            cold_paths: match code.cold_paths_now() {
                Some((cold_paths, stack_bytes)) if stack_bytes <= COLD_PATH_BYTES => cold_paths,
                Some(_) | None => find_cold_paths,
            },
            threads: self.threads,
            threadgroup: self.threadgroup,
            threadgroups: self.threadgroups,
        }
    }
}

impl task::Job for Job {
    fn run(&self, task: &Arc<Task>, first: u64, count: u64) -> Result<(), Error> {
        let Some(code) = &self.code else {
            return Ok(());
        };
        let running = Running {
            launch: self.launch(&**code, &task.stop),
            kernel: &self.kernel,
            code: &**code,
            task,
        };
        let ran = with_scratch(self.scratch_bytes, |scratch| {
            let launch = (&raw const running).cast();
            let run = || {
                // SAFETY: the launch was checked against the kernel's parameters, the task keeps its
                // memory alive, and the scratch memory is this thread's. That it stopped early is told
                // by what made it, a flag or a failure.
                unsafe { (code.entry())(launch, first, count, scratch) };
            };
            let stack_bytes = code.stack_bytes() as usize + MARGIN_BYTES;
            // Where there is no memory for a stack.
            catch_unwind(AssertUnwindSafe(|| with_room(stack_bytes, run)))
                .map_err(|panic| no_stack(stack_bytes, &*panic))
        });
        ran?
    }

    fn release(&mut self) {
        self.code = None;
        self.arguments.clear();
        self.values.clear();
    }
}

fn no_stack(bytes: usize, panic: &(dyn std::any::Any + Send)) -> Error {
    let failed = failed("kernel", panic);
    let why = format!(
        "there is no memory for a stack of {bytes} bytes, which the kernel needs: {failed}"
    );
    Error::new(Rule::OutOfMemory, why)
}

/// Scratch memory of a thread, kept for the next kernel.
struct Scratch {
    start: NonNull<u8>,
    layout: Layout,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: allocated in `with_scratch` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Gives a thread's own scratch memory of at least so many bytes.
fn with_scratch<R>(bytes: u64, f: impl FnOnce(*mut u8) -> R) -> Result<R, Error> {
    thread_local! {
        static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
    }
    if bytes == 0 {
        return Ok(f(std::ptr::without_provenance_mut(SCRATCH_ALIGNMENT)));
    }
    SCRATCH.with(|cell| {
        // Kernels call nothing back, so this thread does not come here again meanwhile.
        let mut own = cell.borrow_mut();
        if own
            .as_ref()
            .is_none_or(|s| (s.layout.size() as u64) < bytes)
        {
            let missing = || {
                Error::new(
                    Rule::OutOfMemory,
                    format!("there is no memory for the {bytes} bytes of a threadgroup's values"),
                )
            };
            *own = None;
            // No more than stated: a thread's memory grows once for each larger kernel.
            let size = usize::try_from(bytes).map_err(|_| missing())?;
            let layout = Layout::from_size_align(size, SCRATCH_ALIGNMENT).map_err(|_| missing())?;
            // SAFETY: the size is not 0.
            let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(missing)?;
            *own = Some(Scratch { start, layout });
        }
        match &*own {
            Some(scratch) => Ok(f(scratch.start.as_ptr())),
            None => unreachable!("it was made above"),
        }
    })
}

/// A kernel as machine code.
struct NativeProgram {
    /// As it was written.
    written: Form,
    regrouping: Regrouping,
    compiler: Arc<dyn Compiler>,
    /// The kernel's.
    name: Arc<str>,
    /// Bytes of one element of each parameter's buffer.
    element_bytes: Vec<u64>,
    /// Instructions of one thread, where no loop makes that unknown.
    instructions: Option<u64>,
    /// Whether it is to be proved of which launches accesses are in bounds.
    prove: bool,
}

/// A form of the kernel, and its code.
pub(super) struct Form {
    pub(super) source: Source,
    /// With bounds checks.
    variants: Mutex<Vec<Variant>>,
    /// Without.
    unchecked: Mutex<Vec<Variant>>,
    /// In which launches its accesses are in bounds, once that was asked.
    proved: Proof,
}

/// Code for a threadgroup size, or for any; it may still be compiled.
type Variant = (Option<[u32; 3]>, Arc<Compilation<Arc<dyn Code>>>);

/// The longest buffer, in elements, that code without bounds checks takes: indices are told apart by their low 32 bits.
const MOST_UNCHECKED: u64 = i32::MAX as u64;

/// So many threadgroup sizes get code of their own; further ones share code that reads the size.
const VARIANTS: usize = 8;

/// Work of at most so many instructions, all threads together, is not worth waking another thread.
const SMALL: u64 = 1 << 17;

impl Form {
    pub(super) fn of(source: Source) -> Form {
        Form {
            source,
            variants: Mutex::default(),
            unchecked: Mutex::default(),
            proved: Proof::default(),
        }
    }

    /// Its code, with bounds checks or without.
    fn variants(&self, checks: bool) -> &Mutex<Vec<Variant>> {
        match checks {
            true => &self.variants,
            false => &self.unchecked,
        }
    }

    /// What gives the code for a threadgroup size: two threads that need the same wait for one compilation.
    fn compilation(&self, compiler: &Arc<dyn Compiler>, size: [u32; 3], checks: bool) -> Variant {
        let mut list = lock(self.variants(checks));
        // A child of `fork` compiles what its parent was about to.
        list.retain(|(_, compilation)| compilation.is_here());
        let find = |list: &[Variant], size| list.iter().find(|(s, _)| *s == size).cloned();
        if let Some(found) = find(&list, Some(size)) {
            return found;
        }
        let size = (list.len() < VARIANTS).then_some(size);
        if let Some(found) = find(&list, size) {
            return found;
        }
        let (compiler, source) = (compiler.clone(), self.source.clone());
        let compilation = Compilation::begin(move || {
            compiler.compile(&source.module, source.kernel, size, checks)
        });
        list.push((size, compilation.clone()));
        (size, compilation)
    }
}

impl NativeProgram {
    fn new(source: &Source, compiler: &Arc<dyn Compiler>, prove: bool) -> NativeProgram {
        let kernel = source.kernel();
        let extents = source.extents().into_iter();
        NativeProgram {
            compiler: compiler.clone(),
            prove,
            name: kernel.name.clone(),
            element_bytes: extents.map(|e| e.size_bytes).collect(),
            instructions: instructions(&kernel.body),
            regrouping: Regrouping::of(source),
            written: Form::of(source.clone()),
        }
    }

    /// The code of a form for a threadgroup size, compiled if it is not there, for who has patience for at most so
    /// long.
    fn code(
        &self,
        form: &Form,
        size: [u32; 3],
        checks: bool,
        limit: Option<Duration>,
    ) -> Result<Arc<dyn Code>, Error> {
        let (size, compilation) = form.compilation(&self.compiler, size, checks);
        let result = compilation.wait(&Patience {
            kernel: &self.name,
            limit,
            is_wanted: &|| true,
        });
        // What failed is tried again, if somebody asks again; what was left goes on.
        if result.is_err() && compilation.has_failed() {
            let mut list = lock(form.variants(checks));
            list.retain(|(s, c)| *s != size || !Arc::ptr_eq(c, &compilation));
        }
        result
    }

    /// The launches in which the accesses of a form are in bounds, proved if they are not known, for who has patience
    /// for at most so long.
    fn proved(&self, form: &Form, limit: Option<Duration>) -> Result<Proved, Error> {
        let patience = Patience {
            kernel: &self.name,
            limit,
            is_wanted: &|| true,
        };
        let (compiler, source) = (self.compiler.clone(), form.source.clone());
        form.proved.of(&patience, move || {
            compiler.in_bounds_in(&source.module, source.kernel)
        })
    }

    /// Whether a dispatch needs code with bounds checks.
    fn needs_checks(&self, form: &Form, grid: &GridSizes, call: &Call<'_>) -> Result<bool, Error> {
        if !self.prove {
            return Ok(true);
        }
        let Some(proved) = self.proved(form, call.time_limit)? else {
            return Ok(true);
        };
        let argument = |i: usize| call.args.get(i).map(KnownArgument::from);
        let sizes = &self.element_bytes;
        if !is_in_bounds(&proved, grid, sizes, &argument, MOST_UNCHECKED) {
            return Ok(true);
        }
        note_without_checks();
        Ok(false)
    }

    /// Whether a grid is not worth dividing among threads.
    fn is_small(&self, grid: &GridSizes) -> bool {
        let threads = grid.threads.iter().map(|n| u64::from(*n));
        let threads = threads.fold(1, u64::saturating_mul);
        let all = self.instructions.map(|n| n.saturating_mul(threads));
        all.is_some_and(|n| n <= SMALL)
    }
}

impl Executable for NativeProgram {
    fn prepare(&self, call: &Call<'_>, job: &mut JobSlot) -> Result<Ready, Error> {
        let mut parts = call.threadgroups();
        if parts > 0 {
            let regrouped = self.regrouping.of_grid(call.grid, call.args);
            let (form, grid) = match &regrouped {
                Some((form, grid)) => (&**form, grid),
                None => (&self.written, call.grid),
            };
            let checks = self.needs_checks(form, grid, call)?;
            let code = self.code(form, grid.threadgroup, checks, call.time_limit)?;
            let job = job.of::<Job>();
            job.kernel = self.name.clone();
            job.fill(&code, grid, call.args, &self.element_bytes);
            parts = grid.count() as u64;
        }
        Ok(Ready {
            parts,
            small: self.is_small(call.grid),
            time_limit: call.time_limit,
            in_order: None,
        })
    }
}

/// Instructions of a region, if no loop is in it.
fn instructions(region: &Region) -> Option<u64> {
    let mut total = 0u64;
    for inst in &region.insts {
        total += 1;
        match &inst.kind {
            InstKind::For { .. } | InstKind::Loop { .. } => return None,
            // Their length is an operand.
            InstKind::Copy { .. } | InstKind::AsyncCopy { .. } => return None,
            other => {
                for region in other.regions() {
                    total += instructions(region)?;
                }
            }
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    //! Calls of code written here, to see how the executor divides and orders them.

    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    use std::time::Duration;

    use invar_interp::{Dispatch, Grid};
    use invar_ir::{text, verify};

    use super::*;
    use crate::{Buffer, Device};

    /// Does what a compiled kernel would: `increment` adds 1 to the element of each threadgroup's
    /// number and notes the scratch memory; `spin` never ends by itself; `around` takes a cold path.
    struct Written {
        entry: Entry,
        /// What it takes long to compile.
        cold_paths: OnceLock<Result<ColdPaths, Error>>,
    }

    // SAFETY: the functions below keep to what the interface says.
    unsafe impl Code for Written {
        fn entry(&self) -> Entry {
            self.entry
        }

        fn stack_bytes(&self) -> u64 {
            0
        }

        fn cold_paths_now(&self) -> Option<(ColdPaths, u64)> {
            Some((self.cold_paths.get()?.as_ref().ok().copied()?, 0))
        }

        fn cold_paths(&self, _patience: &Patience<'_>) -> Result<(ColdPaths, u64), Error> {
            let compile = || {
                std::thread::sleep(3 * LIMIT);
                let refused = || Error::new(Rule::DeviceLost, "no cold paths today");
                HAS_COLD_PATHS
                    .load(Ordering::SeqCst)
                    .then_some(mark as ColdPaths)
                    .ok_or_else(refused)
            };
            Ok((self.cold_paths.get_or_init(compile).clone()?, 0))
        }

        unsafe fn scratch_bytes(&self, _launch: &Launch) -> u64 {
            192
        }
    }

    unsafe extern "C" fn increment(
        launch: *const Launch,
        first: u64,
        count: u64,
        scratch: *mut u8,
    ) -> u32 {
        assert_eq!(scratch as usize % SCRATCH_ALIGNMENT, 0);
        // SAFETY: the buffer has as many elements as there are threadgroups, and the scratch
        // memory 192 bytes.
        unsafe {
            scratch.write_bytes(0xFF, 192);
            let buffer = *(*launch).arguments;
            let by = (*(*launch).arguments.add(1)).data.cast::<u32>().read();
            for group in first..first + count {
                assert!(group < buffer.length);
                let element = buffer.data.cast::<u32>().add(group as usize);
                // Plain: two at once would be a mistake that sometimes shows.
                element.write(element.read() + by);
            }
        }
        invar_llvm::abi::DONE
    }

    /// Longer than a few threadgroups take on any machine.
    const LIMIT: Duration = Duration::from_millis(300);
    static HAS_COLD_PATHS: AtomicBool = AtomicBool::new(true);

    /// Takes a cold path for each threadgroup, whose frame is a pointer to its element.
    unsafe extern "C" fn around(launch: *const Launch, first: u64, count: u64, _: *mut u8) -> u32 {
        for group in first..first + count {
            // SAFETY: the buffer has as many elements as there are threadgroups.
            let went = unsafe {
                let buffer = *(*launch).arguments;
                let element = buffer.data.cast::<u32>().add(group as usize);
                ((*launch).cold_paths)(launch, 7, element.cast())
            };
            if went == NO_COLD_PATH {
                return invar_llvm::abi::STOPPED;
            }
        }
        invar_llvm::abi::DONE
    }

    unsafe extern "C" fn mark(_: *const Launch, number: u32, frame: *mut u8) -> u32 {
        // SAFETY: it is an element of the buffer.
        unsafe { frame.cast::<u32>().write(number) };
        0
    }

    #[test]
    fn cold_paths_are_compiled_once_and_not_in_the_time_of_a_dispatch() {
        let (device, _) = device(around);
        let program = program(&device, true);
        let queue = device.queue().with_time_limit(Some(LIMIT));
        let x = Buffer::<u32>::zeroed(&device, 50).expect("a buffer");
        let args = [Arg::from(&x), Arg::from(1u32)];
        // At first compiling takes longer than the limit.
        for _ in 0..2 {
            queue.run(&program, groups(50), &args).expect("it runs");
            assert_eq!(x.read().expect("read"), [7; 50]);
        }
        HAS_COLD_PATHS.store(false, Ordering::SeqCst);
        let (device, _) = self::device(around);
        let program = self::program(&device, true);
        for _ in 0..2 {
            let failed = device.queue().run(&program, groups(50), &args);
            let error = failed.expect_err("it has no cold paths");
            assert!(error.to_string().contains("no cold paths today"), "{error}");
        }
    }

    unsafe extern "C" fn spin(launch: *const Launch, _: u64, _: u64, _: *mut u8) -> u32 {
        // SAFETY: the flag lives as long as the call.
        while unsafe { (*(*launch).stop).load(Ordering::Acquire) } == 0 {
            std::thread::yield_now();
        }
        invar_llvm::abi::STOPPED
    }

    /// Gives the same code for everything, and notes what was asked for.
    struct Fixed(Entry, Mutex<Vec<Option<[u32; 3]>>>);

    impl Compiler for &'static Fixed {
        fn compile(
            &self,
            _module: &Verified,
            _kernel: usize,
            size: Option<[u32; 3]>,
            _checks: bool,
        ) -> Result<Arc<dyn Code>, Error> {
            self.1.lock().expect("no panic").push(size);
            Ok(Arc::new(Written {
                entry: self.0,
                cold_paths: OnceLock::new(),
            }))
        }
    }

    fn device(entry: Entry) -> (Device, &'static Fixed) {
        let fixed: &Fixed = Box::leak(Box::new(Fixed(entry, Mutex::default())));
        (on_host(Arc::new(fixed)), fixed)
    }

    /// A device with a compiler of the tests.
    fn on_host(compiler: Arc<dyn Compiler>) -> Device {
        Device::of(Native {
            capabilities: Device::checked().capabilities().clone(),
            compiler,
        })
    }

    fn program(device: &Device, looping: bool) -> crate::Program {
        let body = if looping { "loop {\n break\n }\n" } else { "" };
        let source = format!("kernel @k(%x: device read_write u32, %by: u32) {{\n{body}}}\n");
        let module = verify(text::parse("k.inv", &source).expect("parsed")).expect("verified");
        device.compile(&module, "k").expect("compiled")
    }

    fn groups(n: u32) -> Dispatch {
        Dispatch {
            grid: Grid::Threadgroups([n, 1, 1]),
            threadgroup: [1, 1, 1],
        }
    }

    #[test]
    fn every_threadgroup_runs_once() {
        let (device, _) = device(increment);
        let queue = device.queue();
        for looping in [false, true] {
            let program = program(&device, looping);
            for n in [1, 2, 3, 7, 8, 64, 1000, 5000, 300_000] {
                let x = Buffer::<u32>::zeroed(&device, n).expect("a buffer");
                let args = [Arg::from(&x), Arg::from(3u32)];
                queue
                    .run(&program, groups(n as u32), &args)
                    .expect("it runs");
                queue
                    .dispatch(&program, groups(n as u32), &args)
                    .expect("it fits");
                let all = x.read().expect("read");
                assert!(all.iter().all(|v| *v == 6), "{n} threadgroups");
            }
        }
    }

    #[test]
    fn o3_many_dispatches_in_flight_keep_their_order() {
        let (device, _) = device(increment);
        let program = program(&device, true);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let queue = device.queue();
                    let x = Buffer::<u32>::zeroed(&device, 100).expect("a buffer");
                    let y = Buffer::<u32>::zeroed(&device, 10).expect("a buffer");
                    for _ in 0..3000 {
                        for (buffer, n) in [(&x, 100), (&y, 10)] {
                            let args = [Arg::from(buffer), Arg::from(1u32)];
                            queue.dispatch(&program, groups(n), &args).expect("it fits");
                        }
                    }
                    queue.wait().expect("all ran");
                    assert_eq!(x.read().expect("read"), [3000; 100]);
                    assert_eq!(y.read().expect("read"), [3000; 10]);
                });
            }
        });
    }

    #[test]
    fn a_limit_stops_all_participants() {
        let (device, _) = device(spin);
        let program = program(&device, true);
        let limit = Duration::from_millis(20);
        let queue = device.queue().with_time_limit(Some(limit));
        let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let args = [Arg::from(&x), Arg::from(1u32)];
        let first = queue
            .dispatch(&program, groups(1000), &args)
            .expect("it fits");
        // It waits for the first, and its time begins only then.
        let second = queue
            .dispatch(&program, groups(1000), &args)
            .expect("it fits");
        for submission in [first, second] {
            let error = submission.wait().expect_err("it never ends");
            assert_eq!(error.rule(), Some(Rule::DeadlineExceeded));
        }
    }

    #[test]
    fn each_threadgroup_size_gets_code_of_its_own_up_to_a_number() {
        let (device, fixed) = device(increment);
        let program = program(&device, false);
        let x = Buffer::<u32>::zeroed(&device, 64).expect("a buffer");
        let queue = device.queue();
        let args = [Arg::from(&x), Arg::from(1u32)];
        for _ in 0..2 {
            for size in 1..=12 {
                queue
                    .run(&program, Dispatch::linear(12, size), &args)
                    .expect("it runs");
            }
        }
        let asked = fixed.1.lock().expect("no panic");
        let mut expected: Vec<_> = (1..=8).map(|n| Some([n, 1, 1])).collect();
        expected.push(None);
        assert_eq!(*asked, expected);
    }

    /// Takes long, once.
    struct Slow(AtomicBool);

    impl Compiler for &'static Slow {
        fn compile(
            &self,
            _module: &Verified,
            _kernel: usize,
            _size: Option<[u32; 3]>,
            _checks: bool,
        ) -> Result<Arc<dyn Code>, Error> {
            assert!(!self.0.swap(true, Ordering::SeqCst), "it is compiled once");
            std::thread::sleep(Duration::from_secs(4));
            Ok(Arc::new(Written {
                entry: increment,
                cold_paths: OnceLock::new(),
            }))
        }
    }

    #[test]
    fn who_waits_for_a_compilation_can_leave() {
        let slow: &Slow = Box::leak(Box::new(Slow(AtomicBool::new(false))));
        let device = on_host(Arc::new(slow));
        let program = program(&device, false);
        let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let args = [Arg::from(&x), Arg::from(1u32)];
        let limited = device.queue().with_time_limit(Some(LIMIT));
        let run = |queue: &crate::Queue| queue.run(&program, groups(1), &args);
        let start = std::time::Instant::now();
        let asked = crate::interruptible(&|| true, || run(&device.queue()));
        assert_eq!(
            asked.expect_err("it is asked to").rule(),
            Some(Rule::Cancelled)
        );
        let late = run(&limited).expect_err("it takes longer");
        assert_eq!(late.rule(), Some(Rule::DeadlineExceeded));
        assert!(start.elapsed() < Duration::from_secs(4));
        run(&device.queue()).expect("it runs");
        run(&limited).expect("it runs");
        assert_eq!(x.read().expect("read"), [2]);
    }

    static LONGEST: AtomicU32 = AtomicU32::new(0);
    static NOW: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn count_threads(_: *const Launch, _: u64, _: u64, _: *mut u8) -> u32 {
        let now = NOW.fetch_add(1, Ordering::SeqCst) + 1;
        LONGEST.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(Duration::from_micros(50));
        NOW.fetch_sub(1, Ordering::SeqCst);
        invar_llvm::abi::DONE
    }

    #[test]
    fn no_more_threads_compute_than_allowed() {
        let (device, _) = device(count_threads);
        let program = program(&device, true);
        let buffers: Vec<_> = (0..6)
            .map(|_| Buffer::<u32>::zeroed(&device, 1).expect("a buffer"))
            .collect();
        std::thread::scope(|scope| {
            for buffer in &buffers {
                let (device, program) = (&device, &program);
                scope.spawn(move || {
                    let args = [Arg::from(buffer), Arg::from(1u32)];
                    for _ in 0..20 {
                        device
                            .queue()
                            .run(program, groups(40), &args)
                            .expect("it runs");
                    }
                });
            }
        });
        let longest = LONGEST.load(Ordering::SeqCst) as usize;
        // Other tests run on the same executor, so fewer may be left for this one.
        assert!((1..=crate::executor::thread_limit()).contains(&longest));
    }

    static CALLS: AtomicU64 = AtomicU64::new(0);

    unsafe extern "C" fn panic_free(_: *const Launch, _: u64, count: u64, _: *mut u8) -> u32 {
        CALLS.fetch_add(count, Ordering::Relaxed);
        invar_llvm::abi::DONE
    }

    #[test]
    fn a_grid_with_more_threadgroups_than_fit_32_bits_is_divided_into_units() {
        let (device, _) = device(panic_free);
        let program = program(&device, true);
        let x = Buffer::<u32>::zeroed(&device, 1).expect("a buffer");
        let args = [Arg::from(&x), Arg::from(1u32)];
        let dispatch = Dispatch {
            grid: Grid::Threadgroups([1 << 20, 1 << 13, 3]),
            threadgroup: [1, 1, 1],
        };
        device
            .queue()
            .run(&program, dispatch, &args)
            .expect("it runs");
        assert_eq!(CALLS.load(Ordering::Relaxed), 3 << 33);
    }
}
