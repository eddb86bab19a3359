//! The processors that code is made for, and what each can do.

use inkwell::OptimizationLevel;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine,
    TargetMachineOptions, TargetTriple,
};
use invar_ir::once::Once;

use crate::library::{self, load};

/// What processors move between caches at once.
pub(crate) const CACHE_LINE_BYTES: u64 = 64;

/// A processor to compile for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// The one that this runs on.
    #[default]
    Native,
    /// Any x86-64: 128-bit vectors, no fused multiply-add.
    X86V1,
    /// x86-64-v3: AVX2 and fused multiply-add.
    X86V3,
    /// x86-64-v4: AVX-512.
    X86V4,
    /// Any AArch64: 128-bit vectors.
    Aarch64,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 5] = [
        Target::Native,
        Target::X86V1,
        Target::X86V3,
        Target::X86V4,
        Target::Aarch64,
    ];

    /// The name by which a user asks for it.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Native => "native",
            Target::X86V1 => "x86-64",
            Target::X86V3 => "x86-64-v3",
            Target::X86V4 => "x86-64-v4",
            Target::Aarch64 => "aarch64",
        }
    }

    /// The target of that name.
    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Whether code for it runs on this machine.
    pub fn runs_here(self) -> bool {
        match self {
            Target::Native => true,
            #[cfg(target_arch = "x86_64")]
            Target::X86V1 => true,
            #[cfg(target_arch = "x86_64")]
            Target::X86V3 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("f16c")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("movbe")
            }
            #[cfg(target_arch = "x86_64")]
            Target::X86V4 => {
                Target::X86V3.runs_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Target::X86V1 | Target::X86V3 | Target::X86V4 => false,
            Target::Aarch64 => cfg!(target_arch = "aarch64"),
        }
    }

    /// The processor in words, for people, or why there is no code for it.
    pub fn description(self) -> String {
        let described = match self {
            Target::Native => own_description(),
            _ => load().map(|()| {
                let processor = self.processor();
                (processor.cpu.clone(), processor.capabilities().vector_bits)
            }),
        };
        match described {
            Ok((name, bits)) => format!("{name} with vectors of {bits} bits, compiled by LLVM"),
            Err(why) => why,
        }
    }

    /// Everything about the processor and the code generator that compiled code depends on, for the
    /// key of a cache.
    ///
    /// # Errors
    /// As [`crate::look_for`].
    pub fn fingerprint(self) -> Result<String, String> {
        let library = library::identity()?;
        let processor = match self {
            Target::Native => host()?,
            _ => self.name().to_string(),
        };
        Ok(format!("{library}, {processor}"))
    }

    /// The processor as LLVM names it, and its features.
    pub(crate) fn processor(self) -> Processor {
        match self {
            Target::Native => native().clone(),
            Target::X86V1 | Target::X86V3 | Target::X86V4 => {
                Processor::new("x86_64-unknown-linux-gnu", self.name(), "")
            }
            // The baseline of the architecture has fused multiply-add.
            Target::Aarch64 => Processor::new("aarch64-unknown-linux-gnu", "generic", "+neon"),
        }
    }
}

/// What the target can do that changes what is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    /// Bits of its widest vector register that is worth using.
    pub vector_bits: u32,
    /// Fused multiply-add of f32 and f64.
    pub has_fma: bool,
    /// Conversions between f16 and f32.
    pub has_f16_conversions: bool,
    /// Arithmetic of f16.
    pub has_f16: bool,
    /// Conversions to bf16 that round to nearest even and keep subnormals.
    pub has_bf16: bool,
    /// AVX-512 F, BW, DQ, VL: masks in registers, scatters.
    pub has_avx512: bool,
    /// AVX2: gathers, 256-bit integers.
    pub has_avx2: bool,
    /// An x86-64, whose plain vector loads tear only between elements.
    pub is_x86: bool,
    /// Loads wait for a store of 512 bits that they take a part of, and not for two of 256.
    pub forwards_halves: bool,
}

/// A processor in LLVM's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Processor {
    pub triple: String,
    pub cpu: String,
    pub features: String,
}

/// What this processor says of itself, which is all that LLVM knows it by: its vendor, model and features.
#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "elsewhere LLVM is asked, which may not be there"
)]
fn host() -> Result<String, String> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // (leaf, part, which of the four registers): the others number the cores, or say what runs on them now.
    const LEAVES: [(u32, u32, [bool; 4]); 8] = [
        (0, 0, [true; 4]),
        (1, 0, [true, false, true, true]),
        (7, 0, [true; 4]),
        (7, 1, [true; 4]),
        (0x14, 0, [true; 4]),
        (0x24, 0, [true; 4]),
        (0x8000_0001, 0, [true; 4]),
        (0x8000_0008, 0, [false, true, false, false]),
    ];
    let mut words = Vec::new();
    for (leaf, part, wanted) in LEAVES {
        // Beyond the last leaf a processor answers with another one's.
        if leaf > __cpuid(leaf & 0x8000_0000).eax {
            continue;
        }
        let found = __cpuid_count(leaf, part);
        let registers = [found.eax, found.ebx, found.ecx, found.edx];
        let kept = registers
            .into_iter()
            .zip(wanted)
            .filter(|(_, wanted)| *wanted);
        words.extend(kept.map(|(register, _)| format!("{register:08x}")));
    }
    // Registers that the system does not keep cannot be used.
    let kept = [
        is_x86_feature_detected!("avx"),
        is_x86_feature_detected!("avx512f"),
    ];
    Ok(format!("{} {kept:?}", words.join(" ")))
}

/// What this processor calls itself, and how wide its vectors are, in bits.
#[cfg(target_arch = "x86_64")]
fn own_description() -> Result<(String, u32), String> {
    use std::arch::x86_64::__cpuid;
    // Three leaves of four registers have its name, which ends where the first zero is.
    const NAMES: std::ops::RangeInclusive<u32> = 0x8000_0002..=0x8000_0004;
    library::look_for()?;
    let has_name = __cpuid(0x8000_0000).eax >= *NAMES.end();
    let registers = NAMES.filter(|_| has_name).flat_map(|leaf| {
        let found = __cpuid(leaf);
        [found.eax, found.ebx, found.ecx, found.edx]
    });
    let bytes: Vec<u8> = registers.flat_map(u32::to_le_bytes).collect();
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).trim().to_string();
    let has_512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let bits = if has_512 {
        512
    } else if is_x86_feature_detected!("avx2") {
        256
    } else {
        128
    };
    let name = if name.is_empty() {
        "x86-64".to_string()
    } else {
        name
    };
    Ok((name, bits))
}

/// What LLVM calls this processor, and how wide its vectors are, in bits.
#[cfg(not(target_arch = "x86_64"))]
fn own_description() -> Result<(String, u32), String> {
    load()?;
    let processor = native();
    Ok((processor.cpu.clone(), processor.capabilities().vector_bits))
}

/// This processor as LLVM names it.
#[cfg(not(target_arch = "x86_64"))]
fn host() -> Result<String, String> {
    load()?;
    let Processor {
        triple,
        cpu,
        features,
    } = native();
    Ok(format!("{triple}, {cpu}, {features}"))
}

fn native() -> &'static Processor {
    static NATIVE: Once<Processor> = Once::new();
    NATIVE.get_or_make(|| {
        let triple = TargetMachine::get_default_triple();
        let features = TargetMachine::get_host_cpu_features();
        Processor::new(
            &triple.as_str().to_string_lossy(),
            &TargetMachine::get_host_cpu_name().to_string_lossy(),
            // LLVM 19 shifts bytes by different amounts with one GFNI matrix, which is one amount.
            &features.to_string_lossy().replace("+gfni", "-gfni"),
        )
    })
}

impl Processor {
    fn new(triple: &str, cpu: &str, features: &str) -> Processor {
        Processor {
            triple: triple.to_string(),
            cpu: cpu.to_string(),
            features: features.to_string(),
        }
    }

    /// What it can do, from its level or from its list of features.
    pub fn capabilities(&self) -> Features {
        let listed = |name: &str| self.features.split(',').any(|f| f == name);
        let level = |least: u32| {
            let own = self.cpu.strip_prefix("x86-64-v").map(str::parse::<u32>);
            own.is_some_and(|own| own.is_ok_and(|own| own >= least))
        };
        if self.is_arm() {
            return Features {
                vector_bits: 128,
                has_fma: true,
                has_f16_conversions: true,
                has_f16: listed("+fullfp16"),
                has_bf16: false,
                has_avx512: false,
                has_avx2: false,
                is_x86: false,
                forwards_halves: false,
            };
        }
        let has_avx512 = level(4)
            || ["+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"]
                .iter()
                .all(|f| listed(f));
        let has_avx2 = level(3) || listed("+avx2");
        Features {
            vector_bits: if has_avx512 {
                512
            } else if has_avx2 {
                256
            } else {
                128
            },
            has_fma: level(3) || listed("+fma"),
            has_f16_conversions: level(3) || listed("+f16c"),
            has_f16: listed("+avx512fp16"),
            // `vcvtneps2bf16` flushes subnormals, so it cannot stand in (A9).
            has_bf16: false,
            has_avx512,
            has_avx2,
            is_x86: true,
            forwards_halves: has_avx512 && self.cpu == "znver4",
        }
    }

    fn is_arm(&self) -> bool {
        self.triple.starts_with("aarch64") || self.triple.starts_with("arm64")
    }

    /// Makes LLVM know the architecture. Each is made known when it is first needed: it takes a tenth of a
    /// millisecond.
    ///
    /// # Errors
    /// A sentence, if LLVM's library was built without it.
    pub fn initialise(&self) -> Result<(), String> {
        let architecture = if self.is_arm() { "AArch64" } else { "X86" };
        if !library::has(&format!("LLVMInitialize{architecture}Target")) {
            return Err(format!(
                "LLVM's library was built without {architecture}, for which this is: give the path of one that has \
                 it in INVAR_LLVM"
            ));
        }
        static X86: Once<()> = Once::new();
        static ARM: Once<()> = Once::new();
        let config = InitializationConfig {
            disassembler: false,
            ..InitializationConfig::default()
        };
        if self.is_arm() {
            ARM.get_or_make(|| LlvmTarget::initialize_aarch64(&config));
        } else {
            X86.get_or_make(|| LlvmTarget::initialize_x86(&config));
        }
        Ok(())
    }

    /// What makes machine code for it.
    pub fn machine(&self, level: OptimizationLevel) -> Result<TargetMachine, String> {
        self.initialise()?;
        let triple = TargetTriple::create(&self.triple);
        let target = LlvmTarget::from_triple(&triple).map_err(|e| e.to_string())?;
        let options = TargetMachineOptions::new()
            .set_cpu(&self.cpu)
            .set_features(&self.features)
            .set_level(level)
            .set_reloc_mode(RelocMode::PIC)
            .set_code_model(CodeModel::Small);
        target
            .create_target_machine_from_options(&triple, options)
            .ok_or_else(|| format!("LLVM makes no code for {}", self.triple))
    }
}
