@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<f32>;

@compute @workgroup_size(1)
fn main() {
  y[0] = pack4x8unorm(vec4f(1.0, 0.0, 0.2, 1.0));
  y[1] = pack2x16float(vec2f(1.0, -2.0));
  y[2] = pack4xU8(vec4u(1u, 2u, 3u, 260u));
  y[3] = pack4xI8Clamp(vec4i(-1, 300, -300, 5));
  y[4] = dot4U8Packed(0x01020304u, 0x02020202u);
  y[5] = u32(dot4I8Packed(0xff000000u, 0x05000000u));
  y[6] = firstLeadingBit(0x00f0u);
  y[7] = u32(firstLeadingBit(-1));
  y[8] = firstTrailingBit(0u);
  y[9] = extractBits(0xabcdu, 4u, 8u);
  y[10] = insertBits(0u, 0xfu, 8u, 4u);
  y[11] = countOneBits(0xf0fu) + countLeadingZeros(1u) * 100u + countTrailingZeros(8u) * 10000u;
  y[12] = bitcast<u32>(1.0);
  y[13] = u32(dot(vec3i(1, 2, 3), vec3i(4, 5, 6)));
  y[14] = u32(sign(vec2i(-3, 4)).x + 2);
  z[0] = unpack2x16float(y[1]).y;
  z[1] = unpack4x8unorm(y[0]).z;
  z[2] = f32(unpack4xI8(0x000000ffu).x);
  z[3] = modf(3.25).fract + modf(3.25).whole * 10.0;
  z[4] = frexp(20.0).fract + f32(frexp(20.0).exp) * 10.0;
  z[5] = quantizeToF16(1.0009765625);
  z[6] = degrees(radians(90.0));
  z[7] = 7.5 % 2.0;
  z[8] = length(-3.0) + distance(1.0, 4.0);
  z[9] = round(2.5) + mix(vec2f(0.0), vec2f(4.0), 0.25).x + ldexp(1.0, 3);
}
// run: @main(y = zeros(15), z = zeros(10)) groups(1)
//   -> y == [4281532671, 3221240832, 67305985, 92307455, 20, 4294967291, 7, 4294967295, 4294967295, 188, 3840,
//      33108, 1065353216, 32, 1],
//      z ~= [-2, 0.2, -1, 30.25, 50.625, 1.0009765625, 90, 1.5, 6, 11] (abs 1e-5, rel 1e-6)

// A number at half of the way between two levels goes to the even one, as on devices: the standard's formula rounds
// it up. Only -0.5 is one for which that is another.
@compute @workgroup_size(1)
fn ties(@builtin(global_invocation_id) id: vec3u) {
  // Not a constant: through wgpu alone, Mesa packs negative ones into each other.
  let half = 0.5 + f32(id.y);
  y[0] = pack4x8snorm(vec4f(-half, half, 0.0, 1.0));
  y[1] = pack2x16snorm(vec2f(-half, half));
  y[2] = pack4x8unorm(vec4f(half));
  y[3] = pack2x16unorm(vec2f(half));
}
// run: @ties(y = zeros(4)) groups(1) -> y == [2130723008, 1073790976, 2155905152, 2147516416]
