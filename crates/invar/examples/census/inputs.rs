//! Inputs that are made up, and results that are compared.

use invar::f16;
use invar::wgsl::Resource;
use invar_ir::text::data::random_scalar;
use invar_ir::{ElementType, Kernel, Module, ParamKind, Scalar};

/// Elements of a buffer of no fixed length.
const ELEMENTS: u32 = 1024;

/// What one parameter holds.
#[derive(Clone)]
pub struct Input {
    pub element: ElementType,
    pub bytes: Vec<u8>,
    pub writable: bool,
    pub uniform: bool,
}

/// Small numbers, so that what is an index or a count is a likely one.
fn made_up(module: &Module, element: &ElementType, count: u32, seed: u64) -> Vec<u8> {
    let Some(extent) = element.extent(&module.structs) else {
        return Vec::new();
    };
    let mut bytes = vec![0; (extent.size_bytes * u64::from(count)) as usize];
    let locations = element.locations(&module.structs);
    let mut number = 0;
    for chunk in bytes.chunks_mut(extent.size_bytes as usize) {
        for (offset, scalar) in &locations {
            let mut bits = random_scalar(*scalar, seed, number).bits;
            if scalar.is_integer() {
                bits %= 64;
            }
            number += 1;
            let size = scalar.size_bytes() as usize;
            let at = *offset as usize;
            chunk[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }
    bytes
}

/// An input for each parameter; `None` if one is no buffer, which no shader has.
pub fn inputs(module: &Module, kernel: &Kernel, resources: &[Resource]) -> Option<Vec<Input>> {
    let all = kernel.params.iter().enumerate().map(|(number, param)| {
        let mut of = resources
            .iter()
            .filter(|r| r.params.contains(&param.name.to_string()));
        let count = of.next().and_then(|r| match r.head_bytes {
            Some(_) if r.params.first().map(String::as_str) == Some(&param.name) => Some(1),
            Some(_) => None,
            None => r.length,
        });
        let (element, writable, uniform) = match &param.kind {
            ParamKind::Buffer { access, element } => (element, access.can_write(), false),
            ParamKind::Constant { element } => (element, false, true),
            ParamKind::Threadgroup { .. }
            | ParamKind::Scalar { .. }
            | ParamKind::Texture(_)
            | ParamKind::Sampler => {
                return None;
            }
        };
        Some(Input {
            element: element.clone(),
            bytes: made_up(module, element, count.unwrap_or(ELEMENTS), number as u64),
            writable,
            uniform,
        })
    });
    all.collect()
}

/// How two results compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    Equal,
    /// But for the rounding of floats.
    Close,
    Different,
}

impl Likeness {
    pub fn name(self) -> &'static str {
        match self {
            Likeness::Equal => "equal",
            Likeness::Close => "close",
            Likeness::Different => "differs",
        }
    }
}

fn float(scalar: Scalar, bits: u64) -> Option<f64> {
    match scalar {
        Scalar::F32 => Some(f32::from_bits(bits as u32).into()),
        Scalar::F16 => Some(f16::from_bits(bits as u16).to_f64()),
        Scalar::F64 => Some(f64::from_bits(bits)),
        _integer => None,
    }
}

fn likeness_of(scalar: Scalar, a: u64, b: u64) -> Likeness {
    if a == b {
        return Likeness::Equal;
    }
    let (Some(a), Some(b)) = (float(scalar, a), float(scalar, b)) else {
        return Likeness::Different;
    };
    let bound = if scalar == Scalar::F16 { 1e-2 } else { 1e-4 };
    if a.is_nan() && b.is_nan() {
        Likeness::Equal
    } else if (a - b).abs() <= bound * a.abs().max(b.abs()).max(1e-2) {
        Likeness::Close
    } else {
        Likeness::Different
    }
}

/// How results compare with those wanted, and the place of the first that differs most.
pub fn compare(
    module: &Module,
    kernel: &Kernel,
    inputs: &[Input],
    wanted: &[Vec<u8>],
    found: &[Vec<u8>],
) -> (Likeness, String) {
    let mut worst = (Likeness::Equal, String::new());
    for (number, input) in inputs.iter().enumerate().filter(|(_, i)| i.writable) {
        let size = input.element.extent(&module.structs);
        let size = size.map_or(1, |e| e.size_bytes.max(1)) as usize;
        let locations = input.element.locations(&module.structs);
        let pairs = wanted[number]
            .chunks(size)
            .zip(found[number].chunks(size))
            .enumerate();
        for (index, (a, b)) in pairs.filter(|(_, (a, b))| a != b) {
            for (offset, scalar) in &locations {
                let bits = |of: &[u8]| {
                    let mut bits = [0; 8];
                    let size = scalar.size_bytes() as usize;
                    let at = *offset as usize;
                    bits[..size].copy_from_slice(&of[at..at + size]);
                    u64::from_le_bytes(bits)
                };
                let (a, b) = (bits(a), bits(b));
                let likeness = likeness_of(*scalar, a, b);
                if likeness > worst.0 {
                    let shown = |bits| match float(*scalar, bits) {
                        Some(number) => number.to_string(),
                        None => bits.to_string(),
                    };
                    let name = &kernel.params[number].name;
                    let (a, b) = (shown(a), shown(b));
                    let place = format!("{name}[{index}] at byte {offset}: {a}, found {b}");
                    worst = (likeness, place);
                }
            }
        }
    }
    worst
}
