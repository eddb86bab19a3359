//! Proofs that pay: of which dispatches no access of a kernel can be out of bounds. Devices run code without checks
//! there, and everywhere else the code that they would run anyway.
//!
//! A form of a kernel is proved once, in the background ([`Proof`]). What is proved has conditions, which are looked at
//! for each dispatch: on numbers of the launch alone, for what buffers hold is not known before the dispatches in front
//! of this one have run.

use std::sync::{Arc, Mutex};

use invar_interp::GridSizes;
use invar_ir::{Const, Module, verify};
use invar_prove::condition::{Launches, Number};

use crate::compiling::{Compilation, Patience};
use crate::sync::lock;
use crate::{Arg, Error};

/// The most problems that are put to the prover for a kernel, and the most accesses of one that it is asked of: of more
/// it takes long, as any two may race.
const MOST_PROBLEMS: usize = 300;
const MOST_ACCESSES: usize = 48;

/// The launches in which accesses are in bounds, if any are known.
pub(crate) type Proved = Option<Arc<Launches>>;

#[cfg(feature = "testing")]
thread_local! {
    static WITHOUT_CHECKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// What is proved of a form of a kernel, once somebody asks.
#[derive(Default)]
pub(crate) struct Proof(Mutex<Option<Arc<Compilation<Proved>>>>);

impl Proof {
    /// The launches in which its accesses are in bounds, for who has patience; `prove` finds them if nobody has asked
    /// before.
    pub(crate) fn of(
        &self,
        patience: &Patience<'_>,
        prove: impl FnOnce() -> Option<Launches> + Send + 'static,
    ) -> Result<Proved, Error> {
        let compilation = {
            let mut proof = lock(&self.0);
            // A child of `fork` proves what its parent was about to.
            proof.take_if(|proof| !proof.is_here());
            let begin = || Compilation::begin(move || Ok(prove().map(Arc::new)));
            proof.get_or_insert_with(begin).clone()
        };
        compilation.wait(patience)
    }
}

/// Proves in which launches no access of a kernel is out of bounds: of the kernel as code is made of it. That it has no
/// races may be proved of what passes made it from, for they make none.
pub(crate) fn in_bounds_in(
    kernel: &str,
    module: Module,
    made_from: Option<Module>,
) -> Option<Launches> {
    let mut accesses = 0;
    let found = module.kernels.iter().find(|k| *k.name == *kernel)?;
    found.for_each_inst(&mut |inst| accesses += inst.kind.accesses().len());
    if accesses > MOST_ACCESSES {
        return None;
    }
    let options = invar_prove::Options {
        refute: false,
        problems: MOST_PROBLEMS,
        // What buffers hold is not looked at before a dispatch.
        contents: false,
        ..invar_prove::Options::default()
    };
    let prove = |mut module: Module| {
        // Of what buffers hold nobody makes sure here, and another form may have another grid.
        for kernel in &mut module.kernels {
            kernel.requires.clear();
        }
        invar_prove::prove(&verify(module).ok()?, kernel, &[], options).ok()
    };
    let report = prove(module)?;
    if report.in_bounds != report.accesses {
        return None;
    }
    let in_bounds = report.in_bounds_in();
    in_bounds.or_else(|| report.in_bounds_as_made_from(&prove(made_from?)?))
}

/// What of an argument is known before its dispatch runs.
pub(crate) enum KnownArgument {
    /// The size of a buffer.
    Bytes(u64),
    /// The length of a threadgroup parameter.
    Elements(u64),
    /// A value, if it has one component.
    Value(Option<Const>),
}

impl From<&Arg<'_>> for KnownArgument {
    #[inline]
    fn from(arg: &Arg<'_>) -> KnownArgument {
        match arg {
            Arg::Buffer(slice) => KnownArgument::Bytes(slice.size_bytes() as u64),
            Arg::ThreadgroupLength(length) => KnownArgument::Elements(*length),
            Arg::Scalar(components) => KnownArgument::Value(match components.as_slice() {
                [one] => Some(*one),
                _several => None,
            }),
        }
    }
}

/// Whether a dispatch is one of the launches in which accesses are in bounds. `element_bytes` has an entry for each
/// argument; no length may be more than `longest` elements.
pub(crate) fn is_in_bounds(
    proved: &Launches,
    grid: &GridSizes,
    element_bytes: &[u64],
    argument: &impl Fn(usize) -> Option<KnownArgument>,
    longest: u64,
) -> bool {
    let is_long = |(i, size): (usize, &u64)| match argument(i) {
        Some(KnownArgument::Bytes(bytes)) => bytes >= (longest + 1).saturating_mul(*size),
        Some(KnownArgument::Elements(length)) => length > longest,
        Some(KnownArgument::Value(_)) => false,
        None => true,
    };
    let number = |number| match number {
        Number::Grid(d) => Some(u64::from(grid.threads[d as usize])),
        Number::Groups(d) => Some(u64::from(grid.threadgroups[d as usize])),
        Number::Threadgroup(d) => Some(u64::from(grid.threadgroup[d as usize])),
        Number::Argument(i) => match argument(i)? {
            KnownArgument::Value(Some(one)) if one.scalar.is_integer() => {
                u64::try_from(one.scalar.integer(one.bits)).ok()
            }
            KnownArgument::Value(_) | KnownArgument::Bytes(_) | KnownArgument::Elements(_) => None,
        },
        Number::Length(i) => match (argument(i)?, element_bytes.get(i)?) {
            // A division takes as long as all else.
            (KnownArgument::Bytes(bytes), size) if size.is_power_of_two() => {
                Some(bytes >> size.trailing_zeros())
            }
            (KnownArgument::Bytes(bytes), size) => Some(bytes / size),
            (KnownArgument::Elements(length), _) => Some(length),
            (KnownArgument::Value(_), _) => None,
        },
        // Function constants are values, and textures buffers, before code is made.
        Number::Constant(_) | Number::Texels(..) | Number::Levels(_) | Number::Field(..) => None,
    };
    !element_bytes.iter().enumerate().any(is_long) && proved.have(&number)
}

/// Counts a dispatch of this thread that runs without checks, for tests.
pub(crate) fn note_without_checks() {
    #[cfg(feature = "testing")]
    WITHOUT_CHECKS.set(WITHOUT_CHECKS.get() + 1);
}

impl crate::Device {
    /// How many dispatches that this thread submitted ran without bounds checks, for a proof said that they need none.
    #[cfg(feature = "testing")]
    pub fn dispatches_without_checks() -> u64 {
        WITHOUT_CHECKS.get()
    }
}
