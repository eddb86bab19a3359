// More cases than blocks may nest, with `break`, `return` and `continue` out of some of them.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

fn classify(n: u32) -> u32 {
  var out = 1u;
  switch n {
    case 0u: { return 1000u; }
    case 1u: { if out == 1u { break; } out = 0u; }
    case 2u, 502u: { out += n; }
    case 3u: { out = 9u; }
    case 4u: { out = 12u; }
    case 5u: { out = 15u; }
    case 6u: { out = 18u; }
    case 7u: { return 1007u; }
    case 8u: { if out == 1u { break; } out = 0u; }
    case 10u: { out = 30u; }
    case 11u: { out = 33u; }
    case 12u: { out = 36u; }
    case 13u: { out = 39u; }
    case 14u: { return 1014u; }
    case 15u: { if out == 1u { break; } out = 0u; }
    case 16u, 516u: { out += n; }
    case 17u: { out = 51u; }
    case 18u: { out = 54u; }
    case 20u: { out = 60u; }
    case 21u: { return 1021u; }
    case 22u: { if out == 1u { break; } out = 0u; }
    case 23u, 523u: { out += n; }
    case 24u: { out = 72u; }
    case 25u: { out = 75u; }
    case 26u: { out = 78u; }
    case 27u: { out = 81u; }
    case 28u: { return 1028u; }
    case 30u, 530u: { out += n; }
    case 31u: { out = 93u; }
    case 32u: { out = 96u; }
    case 33u: { out = 99u; }
    case 34u: { out = 102u; }
    case 35u: { return 1035u; }
    case 36u: { if out == 1u { break; } out = 0u; }
    case 37u, 537u: { out += n; }
    case 38u: { out = 114u; }
    case 40u: { out = 120u; }
    case 41u: { out = 123u; }
    default: { out = 7u; }
    case 42u: { return 1042u; }
    case 43u: { if out == 1u { break; } out = 0u; }
    case 44u, 544u: { out += n; }
    case 45u: { out = 135u; }
    case 46u: { out = 138u; }
    case 47u: { out = 141u; }
    case 48u: { out = 144u; }
    case 50u: { if out == 1u { break; } out = 0u; }
    case 51u, 551u: { out += n; }
    case 52u: { out = 156u; }
    case 53u: { out = 159u; }
    case 54u: { out = 162u; }
    case 55u: { out = 165u; }
    case 56u: { return 1056u; }
    case 57u: { if out == 1u { break; } out = 0u; }
    case 58u, 558u: { out += n; }
    case 60u: { out = 180u; }
    case 61u: { out = 183u; }
    case 62u: { out = 186u; }
    case 63u: { return 1063u; }
    case 64u: { if out == 1u { break; } out = 0u; }
    case 65u, 565u: { out += n; }
    case 66u: { out = 198u; }
    case 67u: { out = 201u; }
    case 68u: { out = 204u; }
    case 70u: { return 1070u; }
    case 71u: { if out == 1u { break; } out = 0u; }
    case 72u, 572u: { out += n; }
    case 73u: { out = 219u; }
    case 74u: { out = 222u; }
    case 75u: { out = 225u; }
    case 76u: { out = 228u; }
    case 77u: { return 1077u; }
    case 78u: { if out == 1u { break; } out = 0u; }
    case 80u: { out = 240u; }
    case 81u: { out = 243u; }
    case 82u: { out = 246u; }
    case 83u: { out = 249u; }
    case 84u: { return 1084u; }
    case 85u: { if out == 1u { break; } out = 0u; }
    case 86u, 586u: { out += n; }
    case 87u: { out = 261u; }
    case 88u: { out = 264u; }
    case 90u: { out = 270u; }
    case 91u: { return 1091u; }
    case 92u: { if out == 1u { break; } out = 0u; }
    case 93u, 593u: { out += n; }
    case 94u: { out = 282u; }
    case 95u: { out = 285u; }
    case 96u: { out = 288u; }
    case 97u: { out = 291u; }
    case 98u: { return 1098u; }
  }
  return out + 100u;
}

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  y[id.x] = classify(id.x);
}
// run: @main(y = zeros(104)) groups(13)
//   -> y == [1000, 101, 103, 109, 112, 115, 118, 1007, 101, 107, 130, 133, 136, 139, 1014, 101, 117, 151, 154, 107, 160, 1021, 101, 124, 172, 175, 178, 181, 1028, 107, 131, 193, 196, 199, 202, 1035, 101, 138, 214, 107, 220, 223, 1042, 101, 145, 235, 238, 241, 244, 107, 101, 152, 256, 259, 262, 265, 1056, 101, 159, 107, 280, 283, 286, 1063, 101, 166, 298, 301, 304, 107, 1070, 101, 173, 319, 322, 325, 328, 1077, 101, 107, 340, 343, 346, 349, 1084, 101, 187, 361, 364, 107, 370, 1091, 101, 194, 382, 385, 388, 391, 1098, 107, 107, 107, 107, 107]
