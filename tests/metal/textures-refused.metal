// What samples and textures have in Metal and have not here is refused where it stands.
#include <metal_stdlib>
using namespace metal;

kernel void axes(texture2d<float> picture [[texture(0)]], device float *y [[buffer(0)]]) {
    constexpr sampler how(s_address::repeat, t_address::clamp_to_edge);
    y[0] = picture.sample(how, float2(0.5, 0.5)).x; // error[unsupported-feature]: address modes differ
}

kernel void far(texture2d<float> picture [[texture(0)]], sampler how [[sampler(0)]], device float *y [[buffer(0)]]) {
    y[0] = picture.sample(how, float2(0.5, 0.5), int2(8, 0)).x; // error[unsupported-feature]: beyond -8 to 7
}

kernel void computed(texture2d<float> picture [[texture(0)]], sampler how [[sampler(0)]], device float *y [[buffer(0)]],
                     constant int &by [[buffer(1)]]) {
    y[0] = picture.sample(how, float2(0.5, 0.5), int2(by, 0)).x; // error[unsupported-feature]: offset that is computed
}

kernel void biased(texture2d<float> picture [[texture(0)]], sampler how [[sampler(0)]], device float *y [[buffer(0)]]) {
    y[0] = picture.sample(how, float2(0.5, 0.5), bias(1)).x; // error[unsupported-feature]: `bias`
}

kernel void least(texture2d<float> picture [[texture(0)]], sampler how [[sampler(0)]], device float *y [[buffer(0)]]) {
    y[0] = picture.sample(how, float2(0.5, 0.5), min_lod_clamp(1)).x; // error[unsupported-feature]: `min_lod_clamp`
}

kernel void graded(texturecube<float> sky [[texture(0)]], sampler how [[sampler(0)]], device float *y [[buffer(0)]]) {
    y[0] = sky.sample(how, float3(1, 0, 0), gradientcube(float3(0.1), float3(0.1))).x; // error[unsupported-feature]: gradients of a volume or a cube
}

kernel void limits(texture2d<float> picture [[texture(0)]], device float *y [[buffer(0)]]) {
    constexpr sampler how(mip_filter::linear, lod_clamp(2, 1));
    y[0] = picture.sample(how, float2(0.5, 0.5), level(1)).x; // error[unsupported-feature]: `lod_clamp(2.0, 1.0)`
}

kernel void anisotropic(texture2d<float> picture [[texture(0)]], device float *y [[buffer(0)]]) {
    constexpr sampler how(max_anisotropy(4));
    y[0] = picture.sample(how, float2(0.5, 0.5)).x; // error[unsupported-feature]: `max_anisotropy`
}

kernel void depths(depth2d_ms<float> map [[texture(0)]], device float *y [[buffer(0)]]) { // error[unsupported-feature]: of depths with several samples
    y[0] = map.read(uint2(0, 0), 0);
}
