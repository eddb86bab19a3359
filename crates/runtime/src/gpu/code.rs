//! What a kernel is in the language that its GPU takes: WGSL everywhere, and MSL through wgpu to Metal as it
//! is, for dispatches that MSL can be launched for so.
//!
//! MSL goes that way where whole threadgroups can be launched in one part, the kernel has no threadgroup
//! parameters, whose sizes wgpu does not hand on, and the writer has words for it; everything else is WGSL
//! there, too, and so is a kernel whose MSL the system's compiler does not take.
//!
//! Deliberately absent: Metal's wider capabilities (memory orders beyond relaxed): a device can do what all
//! its kernels can, in either language.

use invar_codegen::analysis::order::LaunchOrder;
use invar_codegen::msl::{self, Argument, MslOptions};
use invar_codegen::wgsl::{self, Bound, Given, Launch};
use invar_ir::{Const, Kernel, ParamKind, Verified};

/// What of a dispatch is fixed when a pipeline is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The size of a full threadgroup.
    pub threadgroup: [u32; 3],
    /// The length in elements of each threadgroup parameter.
    pub lengths: Vec<u64>,
    /// Whether all threadgroups are full.
    pub full: bool,
    /// How many threadgroups in x a workgroup runs.
    pub threadgroups_per_workgroup: u32,
    /// How many threads of a threadgroup an invocation runs.
    pub threads_per_invocation: u32,
    /// Whether loops over rows of buffers are written out.
    pub unroll_rows: bool,
    /// `Scalar` parameters with a fixed value.
    pub fixed_scalars: Vec<(usize, Const)>,
    /// Whether its code is MSL, where that can be; else it is WGSL.
    pub msl: bool,
    /// Whether accesses are guarded. Without, all accesses of its dispatches have to be in bounds.
    pub guards: bool,
}

/// Code of a kernel for dispatches of one shape.
pub(crate) enum Code {
    Wgsl(wgsl::Source),
    Msl(Msl),
}

/// A kernel as MSL.
pub(crate) struct Msl {
    source: msl::Source,
    text: String,
    threadgroup: [u32; 3],
    bindings: Vec<Binding>,
}

/// What is bound, in the order of the bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// The buffer given for a parameter, which the kernel may write or not.
    Param(usize, bool),
    /// The contents of a program-scope constant.
    Contents(Vec<u8>),
    /// The next of [`Code::values`].
    Values,
    /// What says whether the driver has ended a loop too early.
    IterationGuard,
}

/// Older compilers read past the pragma by which the text asks for safe mathematics.
const NEWER: &str = "#if __METAL_VERSION__ < 320\n#error \"this text is for Metal 3.2\"\n#endif\n";

impl Msl {
    /// A kernel as MSL, if that can be launched for dispatches of this shape and takes at most so many values.
    pub(crate) fn of(
        module: &Verified,
        kernel: &Kernel,
        shape: &Shape,
        most_values: usize,
    ) -> Option<Msl> {
        let options = MslOptions {
            threadgroup_size: Some(shape.threadgroup),
            full_threadgroups: shape.full,
            whole_threadgroups: true,
            guards: shape.guards,
            ..MslOptions::default()
        };
        let source = msl::write(module, &kernel.name, &options).ok()?;
        let threads: u32 = shape.threadgroup.iter().product();
        if source.full_simdgroups && !threads.is_multiple_of(32) {
            return None;
        }
        let mut bindings = Vec::new();
        for (i, (param, place)) in kernel.params.iter().zip(&source.arguments).enumerate() {
            bindings.push(match (&param.kind, place) {
                (ParamKind::Buffer { access, .. }, Argument::Buffer(_)) => {
                    Binding::Param(i, access.can_write())
                }
                (ParamKind::Constant { .. }, Argument::Buffer(_)) => Binding::Param(i, false),
                (ParamKind::Scalar { .. }, Argument::Buffer(_)) => Binding::Values,
                (_, Argument::Threadgroup(_) | Argument::Texture(_) | Argument::Sampler(_))
                | (ParamKind::Threadgroup { .. } | ParamKind::Texture(_) | ParamKind::Sampler, _) =>
                {
                    return None;
                }
            });
        }
        if source.lengths.is_some() {
            bindings.push(Binding::Values);
        }
        let is_value = |binding: &&Binding| **binding == Binding::Values;
        if bindings.iter().filter(is_value).count() > most_values {
            return None;
        }
        Some(Msl {
            text: format!("{NEWER}{}", source.text),
            source,
            threadgroup: shape.threadgroup,
            bindings,
        })
    }

    /// Each scalar parameter's bytes, then the lengths and the grid's size.
    fn values(&self, launch: &Launch<'_>) -> Vec<Vec<u8>> {
        let mut all: Vec<Vec<u8>> = launch
            .given
            .iter()
            .filter_map(|given| match given {
                Given::Elements(_) => None,
                Given::Scalar(parts) => Some(parts),
            })
            .map(|parts| {
                let bytes = parts.iter().flat_map(|part| {
                    part.bits.to_le_bytes()[..part.scalar.size_bytes() as usize].to_vec()
                });
                bytes.collect()
            })
            .collect();
        if let Some(hidden) = &self.source.lengths {
            let length = |param: &u32| match launch.given.get(*param as usize) {
                Some(Given::Elements(n)) => *n,
                Some(Given::Scalar(_)) | None => 1,
            };
            let mut bytes: Vec<u8> = hidden
                .params
                .iter()
                .flat_map(|param| length(param).to_le_bytes())
                .collect();
            if hidden.grid {
                bytes.extend(launch.threads.iter().flat_map(|n| n.to_le_bytes()));
            }
            all.push(bytes);
        }
        all
    }
}

impl Code {
    pub(crate) fn text(&self) -> &str {
        match self {
            Code::Wgsl(source) => &source.text,
            Code::Msl(code) => &code.text,
        }
    }

    /// Whether its accesses are guarded.
    pub(crate) fn has_guards(&self) -> bool {
        match self {
            Code::Wgsl(source) => source.guards,
            Code::Msl(code) => code.source.guards,
        }
    }

    pub(crate) fn entry_point(&self) -> &str {
        match self {
            Code::Wgsl(source) => &source.entry_point,
            Code::Msl(code) => &code.source.entry,
        }
    }

    pub(crate) fn bindings(&self) -> Vec<Binding> {
        match self {
            Code::Wgsl(source) => source
                .bindings
                .iter()
                .map(|binding| match &binding.bound {
                    Bound::Param(param) => Binding::Param(*param, binding.writable),
                    Bound::Contents(bytes) => Binding::Contents(bytes.clone()),
                    Bound::Sampler(_) => unreachable!("textures have become buffers before"),
                    Bound::Constants => Binding::Values,
                    Bound::IterationGuard => Binding::IterationGuard,
                })
                .collect(),
            Code::Msl(code) => code.bindings.clone(),
        }
    }

    /// The bytes of values and sizes for a launch, one for each [`Binding::Values`], in order.
    pub(crate) fn values(&self, launch: &Launch<'_>) -> Vec<Vec<u8>> {
        match self {
            Code::Wgsl(source) => vec![source.constants.bytes(launch)],
            Code::Msl(code) => code.values(launch),
        }
    }

    /// The size of a workgroup, as it is launched.
    pub(crate) fn workgroup(&self) -> [u32; 3] {
        match self {
            Code::Wgsl(source) => [source.workgroup_threads, 1, 1],
            Code::Msl(code) => code.threadgroup,
        }
    }

    /// Bytes of workgroup memory.
    pub(crate) fn workgroup_bytes(&self) -> u64 {
        match self {
            Code::Wgsl(source) => source.workgroup_bytes,
            Code::Msl(code) => code.source.threadgroup_bytes,
        }
    }

    /// The order in which workgroups are launched.
    pub(crate) fn launch_order(&self) -> LaunchOrder {
        match self {
            Code::Wgsl(source) => source.launch_order,
            Code::Msl(_) => LaunchOrder::RowMajor,
        }
    }
}

#[cfg(test)]
mod tests {
    use invar_codegen::wgsl::DispatchPart;
    use invar_ir::text::parse;
    use invar_ir::{Const, verify};

    use super::*;

    fn shape(threadgroup: [u32; 3], full: bool) -> Shape {
        Shape {
            threadgroup,
            lengths: Vec::new(),
            full,
            threadgroups_per_workgroup: 1,
            threads_per_invocation: 1,
            unroll_rows: false,
            fixed_scalars: Vec::new(),
            msl: true,
            guards: true,
        }
    }

    fn msl(source: &str, shape: &Shape) -> Option<Msl> {
        let module = verify(parse("k.inv", source).unwrap()).unwrap();
        Msl::of(&module, &module.kernels[0], shape, 8)
    }

    /// Metal counts buffers in the order of wgpu's bindings, and so does the writer.
    #[test]
    fn msl_is_bound_in_the_order_of_its_arguments() {
        let code = msl(
            "kernel @k(%a: f32, %x: device read f32, %c: constant f32, %n: bool, %y: device write f32) {
                %i = thread_position_in_grid x
                %v = load %x[%i]
                %w = load %c[%i]
                %p = mul %v, %a
                %q = add %p, %w
                %r = select %v, %q, %n
                store %y[%i], %r
            }",
            &shape([8, 4, 1], false),
        )
        .unwrap();
        let places = [0, 1, 2, 3, 4].map(Argument::Buffer);
        assert_eq!(code.source.arguments, places);
        let hidden = code.source.lengths.clone().unwrap();
        assert_eq!((hidden.buffer, &hidden.params), (5, &vec![1, 2, 4]));
        assert_eq!(
            code.bindings,
            [
                Binding::Values,
                Binding::Param(1, false),
                Binding::Param(2, false),
                Binding::Values,
                Binding::Param(4, true),
                Binding::Values,
            ]
        );
        let (a, n) = ([Const::from(1.5f32)], [Const::from(true)]);
        let launch = Launch {
            threads: [70, 3, 1],
            threadgroups: [9, 1, 1],
            part: DispatchPart {
                first_threadgroup: [0; 3],
                workgroups: [9, 1, 1],
                row: 9,
            },
            given: &[
                Given::Scalar(&a),
                Given::Elements(70),
                Given::Elements(4),
                Given::Scalar(&n),
                Given::Elements(60),
            ],
        };
        let mut lengths: Vec<u8> = [70u64, 4, 60]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        if hidden.grid {
            lengths.extend([70u32, 3, 1].iter().flat_map(|n| n.to_le_bytes()));
        }
        assert!(
            hidden.grid,
            "whole threadgroups are launched, so threads outside the grid are found"
        );
        let values = Code::Msl(code).values(&launch);
        assert_eq!(values, [1.5f32.to_le_bytes().to_vec(), vec![1], lengths]);
    }

    #[test]
    fn what_cannot_go_to_metal_as_it_is_stays_wgsl() {
        let parameter = "kernel @k(%s: threadgroup f32, %y: device write f32) {
            %t = thread_index_in_threadgroup
            %v = load %s[%t]
            store %y[%t], %v
        }";
        assert!(msl(parameter, &shape([32, 1, 1], true)).is_none());
        let simdgroups = "kernel @k(%y: device write u32) simdgroup(16) {
            %t = thread_index_in_simdgroup
            %i = thread_position_in_grid x
            store %y[%i], %t
        }";
        assert!(msl(simdgroups, &shape([32, 1, 1], true)).is_none());
        let thirty_two = simdgroups.replace("16", "32");
        assert!(msl(&thirty_two, &shape([32, 1, 1], true)).is_some());
    }

    /// Threads outside the grid that go along may have any index, whatever is proved of the others.
    #[test]
    fn guards_stay_where_threads_outside_the_grid_go_along() {
        let alone = "kernel @copy(%x: device read f32, %y: device write f32) {
            %i = thread_position_in_grid x
            %v = load %x[%i]
            store %y[%i], %v
        }";
        let together = alone.replace("store", "barrier threadgroup\nstore");
        for (source, full, guards) in [
            (alone, false, false),
            (alone, true, false),
            (&together, true, false),
            (&together, false, true),
        ] {
            let shape = Shape {
                guards: false,
                ..shape([32, 1, 1], full)
            };
            let code = msl(source, &shape).unwrap();
            assert_eq!(code.source.guards, guards, "{}", code.text);
            let looks = code.text.contains("< lengths.");
            assert_eq!(looks, guards, "{}", code.text);
        }
    }

    /// Each scalar is a buffer of values of its own there, and so are the lengths.
    #[test]
    fn more_values_than_a_pipeline_takes_stay_wgsl() {
        let kernel = |count: u32| {
            let scalars: String = (0..count).map(|i| format!("%s{i}: f32, ")).collect();
            format!(
                "kernel @k({scalars}%y: device write f32) {{
                    %i = thread_position_in_grid x
                    store %y[%i], %s0
                }}"
            )
        };
        assert!(msl(&kernel(7), &shape([32, 1, 1], true)).is_some());
        assert!(msl(&kernel(8), &shape([32, 1, 1], true)).is_none());
    }
}
