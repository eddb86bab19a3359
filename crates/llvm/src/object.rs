//! What the compiler gives: an object file, and what a caller must know of it.

use std::ops::Range;

use crate::abi::Launch;
use crate::target::Target;
use crate::zones::Zones;

/// A compiled kernel as a relocatable object file. It can be kept on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The object file.
    pub bytes: Vec<u8>,
    /// What chunks of threads that are not full run, where it is not in the object file: for
    /// [`crate::compile_cold_paths`].
    pub cold_paths: Option<Vec<u8>>,
    /// What a caller must know.
    pub info: KernelInfo,
}

/// What a caller must know of a compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// What it is compiled for.
    pub target: Target,
    /// The only threadgroup size it may be launched with, if it is compiled for one.
    pub threadgroup_size: Option<[u32; 3]>,
    /// Threads of a simdgroup.
    pub simdgroup_size: u32,
    /// Threadgroup memory of its own arrays, in bytes.
    pub threadgroup_bytes: u64,
    /// What its code takes of the stack of its caller, in bytes, without its cold paths.
    pub stack_bytes: u64,
    pub(crate) scratch: Scratch,
    pub(crate) zones: Zones,
}

/// How a worker's scratch memory is laid out: large thread arrays of the chunk that runs, threadgroup arrays,
/// threadgroup parameters, then the values and thread arrays of each chunk of threads that live across barriers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scratch {
    /// Of large thread arrays; they come first.
    pub apart_bytes: u64,
    /// What does not depend on the launch, these included.
    pub fixed_bytes: u64,
    /// Each threadgroup parameter's number and the bytes of one element.
    pub parameters: Vec<(u32, u64)>,
    /// For each chunk.
    pub chunk_bytes: u64,
    /// Threads of a chunk along x and y; if `linear`, all that count in a row of the whole threadgroup.
    pub chunk: [u32; 2],
    /// Chunks are cut from the threads in the order of their numbers, not from rows.
    pub linear: bool,
}

/// Alignment of every part of the scratch memory.
pub(crate) const ALIGN: u64 = crate::abi::SCRATCH_ALIGNMENT as u64;

impl KernelInfo {
    /// # Safety
    /// The launch's arguments must be as many as the kernel's parameters.
    pub(crate) unsafe fn scratch_bytes(&self, launch: &Launch) -> u64 {
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.parameters_end(launch, &mut |_| {}) };
        let s = &self.scratch;
        let [x, y, z] = launch.threadgroup.map(u64::from);
        let [cx, cy] = s.chunk.map(|n| u64::from(n.max(1)));
        let chunks = if s.linear {
            (x * y * z).div_ceil(cx)
        } else {
            x.div_ceil(cx) * y.div_ceil(cy) * z
        };
        bytes.saturating_add(chunks.saturating_mul(s.chunk_bytes))
    }

    /// Where threadgroup parameters end in scratch memory; `tell` gets the zone behind each of them.
    ///
    /// # Safety
    /// As above.
    unsafe fn parameters_end(&self, launch: &Launch, tell: &mut dyn FnMut(Range<u64>)) -> u64 {
        let mut bytes = self.scratch.fixed_bytes;
        for (parameter, element_bytes) in &self.scratch.parameters {
            // SAFETY: the caller's promise, and the parameter is one of the kernel's.
            let argument = unsafe { *launch.arguments.add(*parameter as usize) };
            let own = argument.length.saturating_mul(*element_bytes);
            let zone = bytes.saturating_add(own);
            bytes = bytes.saturating_add(own.div_ceil(ALIGN).saturating_mul(ALIGN));
            bytes = bytes.saturating_add(self.zones.each_bytes());
            tell(zone..bytes);
        }
        bytes
    }

    /// The red zones of a worker's scratch memory: none unless they were asked for.
    ///
    /// # Safety
    /// As above.
    pub(crate) unsafe fn red_zones(&self, launch: &Launch) -> Vec<Range<u64>> {
        let mut parameters = Vec::new();
        // SAFETY: the caller's promise.
        let (chunks, end) = unsafe {
            let chunks = self.parameters_end(launch, &mut |zone| parameters.push(zone));
            (chunks, self.scratch_bytes(launch))
        };
        self.zones.all(&parameters, chunks, end)
    }

    /// The information as bytes, to be kept beside the object.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut word = |w: u64| out.extend_from_slice(&w.to_le_bytes());
        let target = Target::ALL.iter().position(|t| *t == self.target);
        word(target.unwrap_or(0) as u64);
        word(u64::from(self.threadgroup_size.is_some()));
        for n in self.threadgroup_size.unwrap_or([0; 3]) {
            word(n.into());
        }
        word(self.simdgroup_size.into());
        word(self.threadgroup_bytes);
        word(self.stack_bytes);
        let s = &self.scratch;
        word(s.apart_bytes);
        word(s.fixed_bytes);
        word(s.chunk_bytes);
        word(s.chunk[0].into());
        word(s.chunk[1].into());
        word(s.linear.into());
        word(s.parameters.len() as u64);
        for (parameter, bytes) in &s.parameters {
            word((*parameter).into());
            word(*bytes);
        }
        self.zones.to_words().into_iter().for_each(word);
        out
    }

    /// What [`KernelInfo::to_bytes`] wrote; `None` if the bytes are anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<KernelInfo> {
        let mut words = bytes.chunks_exact(8).map(|c| {
            let mut word = [0; 8];
            word.copy_from_slice(c);
            u64::from_le_bytes(word)
        });
        let small = |w: u64| u32::try_from(w).ok();
        let target = *Target::ALL.get(words.next()? as usize)?;
        let sized = words.next()? != 0;
        let size = [
            small(words.next()?)?,
            small(words.next()?)?,
            small(words.next()?)?,
        ];
        let simdgroup_size = small(words.next()?)?;
        let threadgroup_bytes = words.next()?;
        let stack_bytes = words.next()?;
        let mut scratch = Scratch {
            apart_bytes: words.next()?,
            fixed_bytes: words.next()?,
            chunk_bytes: words.next()?,
            chunk: [small(words.next()?)?, small(words.next()?)?],
            linear: words.next()? != 0,
            parameters: Vec::new(),
        };
        for _ in 0..words.next()? {
            scratch
                .parameters
                .push((small(words.next()?)?, words.next()?));
        }
        let zones = Zones::from_words(&mut words)?;
        let ended = words.next().is_none() && bytes.len().is_multiple_of(8);
        ended.then_some(KernelInfo {
            target,
            threadgroup_size: sized.then_some(size),
            simdgroup_size,
            threadgroup_bytes,
            stack_bytes,
            scratch,
            zones,
        })
    }
}
