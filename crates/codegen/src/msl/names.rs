//! Names: the author's, made fit for MSL. What this writer adds itself begins with `invar_`, which no
//! author's name does after it went through here.

use crate::shading::names::{self as shading, Language};

/// Words that mean something else in C++, in MSL, or in what this writer puts into a kernel. OpenCL's
/// qualifiers are among them: tools that know C++ for OpenCL can then read what is written.
const RESERVED: &str = "
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl
const constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit
export extern false final float for friend goto if inline int long mutable namespace new noexcept not
not_eq nullptr operator or or_eq override private protected public register reinterpret_cast return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq restrict
main metal std uchar ushort uint ulong half bfloat size_t ptrdiff_t atomic_int atomic_uint atomic_ulong
atomic_float device constant threadgroup thread threadgroup_imageblock ray_data object_data kernel vertex
fragment visible coherent packed array vec matrix sampler event global local generic __global pipe image
texture1d texture1d_array texture2d texture2d_array texture2d_ms texture2d_ms_array texture3d texturecube
texturecube_array texture_buffer depth2d depth2d_array depthcube depthcube_array read_only write_only read_write event_t clk_event_t queue_t reserve_id_t sampler_t ndrange_t image1d_t
image1d_array_t image1d_buffer_t image2d_t image2d_array_t image2d_depth_t image2d_array_depth_t
image2d_msaa_t image2d_array_msaa_t image2d_msaa_depth_t image2d_array_msaa_depth_t image3d_t
as_type min max clamp fabs fma floor ceil trunc rint sqrt rsqrt exp exp2 exp10 log log2 log10 pow powr sin
cos tan sinpi cospi tanpi asin acos atan atan2 sinh cosh tanh asinh acosh atanh fmod popcount clz ctz
reverse_bits mulhi precise fast is_function_constant_defined make_filled_simdgroup_matrix
threadgroup_barrier mem_flags memory_order thread_scope memory_order_relaxed memory_order_seq_cst
thread_scope_device thread_scope_threadgroup lengths lane_count thread_count exists NULL NAN INFINITY assert
thread_position_in_grid thread_position_in_threadgroup thread_index_in_threadgroup
threadgroup_position_in_grid threads_per_threadgroup dispatch_threads_per_threadgroup threads_per_grid
threadgroups_per_grid thread_index_in_simdgroup thread_index_in_quadgroup
HUGE_VALF HUGE_VALH MAXFLOAT MAXHALF CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX
SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX FP_ILOGB0 FP_ILOGBNAN";

/// MSL's names.
#[derive(Debug)]
pub(super) struct Msl;

/// The names given so far.
pub(super) type Names = shading::Names<Msl>;

impl Language for Msl {
    const RESERVED: &'static str = RESERVED;

    fn fit(name: &str) -> String {
        let out = shading::plain(name, false);
        match out.chars().next() {
            Some(first) if first.is_ascii_alphabetic() => out,
            Some(_digit) => format!("v{out}"),
            None => "v".to_string(),
        }
    }

    fn is_of_a_family(name: &str) -> bool {
        is_of_a_family(name)
    }
}

/// Vector and matrix types, packed ones, and what this writer adds: `float4`, `packed_half3`,
/// `simdgroup_float8x8`, `invar_min`.
fn is_of_a_family(name: &str) -> bool {
    let scalars = [
        "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half",
        "bfloat", "float", "double",
    ];
    let shape =
        |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit() || c == 'x');
    [
        "invar_",
        "packed_",
        "atomic_",
        "simdgroup",
        "simd_",
        "quad_",
        "quadgroup",
        "dispatch_simdgroups",
        "dispatch_quadgroups",
    ]
    .iter()
    .any(|family| name.starts_with(family))
        || scalars
            .iter()
            .any(|s| name.strip_prefix(s).is_some_and(shape))
        || is_a_constant(name)
}

/// The constants that Metal's library defines as macros: `FLT_MAX`, `HALF_EPSILON`, `M_PI_F`.
fn is_a_constant(name: &str) -> bool {
    const OF_MATHEMATICS: &str =
        "E LOG2E LOG10E LN2 LN10 PI PI_2 PI_4 1_PI 2_PI 2_SQRTPI SQRT2 SQRT1_2";
    if let Some(name) = name.strip_prefix("M_") {
        let bare = name.strip_suffix("_F").or(name.strip_suffix("_H"));
        let bare = bare.or(name.strip_suffix("_BF")).unwrap_or(name);
        return OF_MATHEMATICS.split(' ').any(|constant| constant == bare);
    }
    ["FLT_", "HALF_", "BFLT_", "DBL_"]
        .iter()
        .any(|family| name.starts_with(family))
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
        assert_eq!(names.unique("float4"), "my_float4");
        assert_eq!(names.unique("a__b"), "a_b");
        assert_eq!(names.unique("_"), "v");
        assert_eq!(names.unique("7"), "v7");
        assert_eq!(names.unique("invar_min"), "my_invar_min");
        assert_eq!(names.unique("x.y_"), "x_y");
        assert_eq!(names.unique("FLT_MAX"), "my_FLT_MAX");
        assert_eq!(names.unique("M_PI_F"), "my_M_PI_F");
        assert_eq!(names.unique("M_TILE"), "M_TILE");
    }
}
