// A sampler whose address modes differ is refused.
#include <metal_stdlib>
using namespace metal;

kernel void samples(texture2d<float> picture [[texture(0)]], device float *y [[buffer(0)]]) {
    constexpr sampler how(s_address::repeat, t_address::clamp_to_edge);
    y[0] = picture.sample(how, float2(0.5, 0.5)).x; // error[unsupported-feature]: address modes differ
}
