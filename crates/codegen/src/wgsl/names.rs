//! Names: the author's, made fit for WGSL. Names of ours that an author's could meet are reserved; the
//! functions that belong to an object are called `object__function`, and two underscores in a row occur
//! in no author's name.

use crate::shading::names::{self as shading, Language};

/// Words that mean something else in WGSL, or in what this writer puts around a kernel.
const RESERVED: &str = "
alias break case const const_assert continue continuing default diagnostic discard else enable false fn
for if let loop override requires return struct switch true var while NULL Self abstract active alignas
alignof as asm asm_fragment async attribute auto await become cast catch class co_await co_return
co_yield coherent column_major common compile compile_fragment concept const_cast consteval constexpr
constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export
extends extern external fallthrough filter final finally friend from fxgroup get goto groupshared highp
impl implements import inline instanceof interface layout lowp macro macro_rules match mediump meta mod
module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent
noperspective null nullptr of operator package packoffset partition pass patch pixelfragment precise
precision premerge priv protected pub public readonly ref regardless register reinterpret_cast require
resource restrict self set shared sizeof smooth snorm static static_assert static_cast std subroutine
super target template this thread_local throw trait try type typedef typeid typename typeof union unless
unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield bool i32 u32 f32
f16 i64 u64 f64 i16 u16 array atomic vec2 vec3 vec4 mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2
mat4x3 mat4x4 ptr sampler sampler_comparison texture_1d texture_2d texture_2d_array texture_3d
texture_cube texture_cube_array texture_multisampled_2d texture_depth_2d texture_depth_2d_array
texture_depth_cube texture_depth_cube_array texture_storage_1d texture_storage_2d texture_storage_2d_array
texture_storage_3d rgba8unorm rgba8snorm rgba8uint rgba8sint bgra8unorm rgba16uint rgba16sint rgba16float r32uint
r32sint r32float rg32uint rg32sint rg32float rgba32uint rgba32sint rgba32float read write read_write function private workgroup uniform storage immediate push_constant
bitcast all any select arrayLength abs acos acosh asin asinh atan atanh atan2 ceil clamp cos cosh
countLeadingZeros countOneBits countTrailingZeros cross degrees determinant distance dot exp exp2
extractBits faceForward firstLeadingBit firstTrailingBit floor fma fract frexp insertBits inverseSqrt
inverse outerProduct ldexp length log log2 max min mix modf normalize pow quantizeToF16 radians reflect
refract reverseBits round saturate sign sin sinh smoothstep sqrt step tan tanh transpose trunc
storageBarrier textureBarrier workgroupBarrier subgroupBarrier workgroupUniformLoad perspective center
vec2i vec3i vec4i vec2u vec3u vec4u vec2f vec3f vec4f vec2h vec3h vec4h ray_query
constants Constants float16 threadgroup threadgroup_size thread_count exists thread position zero_bits
hidden_bits elsewhere";

/// What helpers call their parameters and variables, which would hide an object of that name.
const HELPERS: &str = "i j k k0 k1 k2 k3 k4 k5 k6 k7 k8 k9 k10 k11 k12 k13 k14 k15 k16 e m n r at
value desired old next bits result word mask whole rest length to source count columns rows to_row
source_row row slot begin end start matrix left right column sum all_of other theirs below before place first
lane delta";

/// WGSL's names.
#[derive(Debug)]
pub(super) struct Wgsl;

/// The names given so far.
pub(super) type Names = shading::Names<Wgsl>;

impl Language for Wgsl {
    const RESERVED: &'static str = RESERVED;

    fn fit(name: &str) -> String {
        let out = shading::plain(name, true);
        match out.chars().next() {
            Some(first) if first.is_ascii_alphabetic() => out,
            Some(_) => format!("v{}{out}", if out.starts_with('_') { "" } else { "_" }),
            None => "v".to_string(),
        }
    }

    fn is_of_a_family(name: &str) -> bool {
        is_builtin_function(name)
    }
}

impl Names {
    /// As [`Names::unique`], for an object at module scope.
    pub(super) fn unique_object(&mut self, name: &str) -> String {
        let base = Wgsl::fit(name);
        if HELPERS.split_whitespace().any(|word| word == base) {
            self.unique(&format!("{base}_memory"))
        } else {
            self.unique(&base)
        }
    }
}

/// Families of functions whose members share how their names begin.
fn is_builtin_function(name: &str) -> bool {
    [
        "texture", "atomic", "subgroup", "quad", "pack", "unpack", "dpd", "fwidth", "dot4",
    ]
    .iter()
    .any(|family| {
        name.strip_prefix(family)
            .and_then(|rest| rest.chars().next())
            .is_some_and(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == 'x' || c == 'y')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_fit_and_stay_apart() {
        let mut names = Names::default();
        assert_eq!(names.unique("tile"), "tile");
        assert_eq!(names.unique("tile"), "tile_2");
        assert_eq!(names.unique("min"), "min_2");
        assert_eq!(names.unique("a__b"), "a_b");
        assert_eq!(names.unique("_"), "v");
        assert_eq!(names.unique("7"), "v_7");
        assert_eq!(names.unique("été"), "v_t");
        assert_eq!(names.unique("x.y_"), "x_y");
        assert_eq!(names.unique("texture2d"), "my_texture2d");
        assert_eq!(names.unique("texture2d"), "my_texture2d_2");
        assert_eq!(names.unique_object("quadX"), "my_quadX");
        assert_eq!(names.unique("texture"), "texture");
    }
}
