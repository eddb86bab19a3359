// Chains of `else if` longer than blocks nest: with jumps in them, with a barrier behind and in each, in a loop,
// and with conditions that hold for several.

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<u32>;
@group(0) @binding(2) var<uniform> chosen: u32;
var<workgroup> tile: array<u32, 80>;

fn named(k: u32) -> u32 {
  if (k == 0u) { return 0u; } else if (k == 1u) { return 1u; } else if (k == 2u) { return 4u; }
    else if (k == 3u) { return 9u; } else if (k == 4u) { return 16u; } else if (k == 5u) { return 25u; }
    else if (k == 6u) { return 36u; } else if (k == 7u) { return 49u; } else if (k == 8u) { return 64u; }
    else if (k == 9u) { return 81u; } else if (k == 10u) { return 100u; } else if (k == 11u) { return 121u; }
    else if (k == 12u) { return 144u; } else if (k == 13u) { return 169u; } else if (k == 14u) { return 196u; }
    else if (k == 15u) { return 225u; } else if (k == 16u) { return 256u; } else if (k == 17u) { return 289u; }
    else if (k == 18u) { return 324u; } else if (k == 19u) { return 361u; } else if (k == 20u) { return 400u; }
    else if (k == 21u) { return 441u; } else if (k == 22u) { return 484u; } else if (k == 23u) { return 529u; }
    else if (k == 24u) { return 576u; } else if (k == 25u) { return 625u; } else if (k == 26u) { return 676u; }
    else if (k == 27u) { return 729u; } else if (k == 28u) { return 784u; } else if (k == 29u) { return 841u; }
    else if (k == 30u) { return 900u; } else if (k == 31u) { return 961u; } else if (k == 32u) { return 1024u; }
    else if (k == 33u) { return 1089u; } else if (k == 34u) { return 1156u; } else if (k == 35u) { return 1225u; }
    else if (k == 36u) { return 1296u; } else if (k == 37u) { return 1369u; } else if (k == 38u) { return 1444u; }
    else if (k == 39u) { return 1521u; } else if (k == 40u) { return 1600u; } else if (k == 41u) { return 1681u; }
    else if (k == 42u) { return 1764u; } else if (k == 43u) { return 1849u; } else if (k == 44u) { return 1936u; }
    else if (k == 45u) { return 2025u; } else if (k == 46u) { return 2116u; } else if (k == 47u) { return 2209u; }
    else if (k == 48u) { return 2304u; } else if (k == 49u) { return 2401u; } else if (k == 50u) { return 2500u; }
    else if (k == 51u) { return 2601u; } else if (k == 52u) { return 2704u; } else if (k == 53u) { return 2809u; }
    else if (k == 54u) { return 2916u; } else if (k == 55u) { return 3025u; } else if (k == 56u) { return 3136u; }
    else if (k == 57u) { return 3249u; } else if (k == 58u) { return 3364u; } else if (k == 59u) { return 3481u; }
    else if (k == 60u) { return 3600u; } else if (k == 61u) { return 3721u; } else if (k == 62u) { return 3844u; }
    else if (k == 63u) { return 3969u; } else if (k == 64u) { return 4096u; } else if (k == 65u) { return 4225u; }
    else if (k == 66u) { return 4356u; } else if (k == 67u) { return 4489u; } else if (k == 68u) { return 4624u; }
    else if (k == 69u) { return 4761u; } else if (k == 70u) { return 4900u; } else if (k == 71u) { return 5041u; }
    else if (k == 72u) { return 5184u; } else if (k == 73u) { return 5329u; } else if (k == 74u) { return 5476u; }
    else { return 9u; }
}

fn counted(k: u32) -> u32 {
  var n = 0u;
  for (var i = 0u; i < 4u; i++) {
  if (k == 0u) { n += 0u; } else if (k == 1u) { continue; } else if (k == 2u) { n += 2u; }
    else if (k == 3u) { n += 3u; } else if (k == 4u) { n += 4u; } else if (k == 5u) { n += 5u; }
    else if (k == 6u) { continue; } else if (k == 7u) { n += 7u; } else if (k == 8u) { n += 8u; }
    else if (k == 9u) { n += 9u; } else if (k == 10u) { n += 10u; } else if (k == 11u) { continue; }
    else if (k == 12u) { n += 12u; } else if (k == 13u) { n += 13u; } else if (k == 14u) { n += 14u; }
    else if (k == 15u) { n += 15u; } else if (k == 16u) { continue; } else if (k == 17u) { n += 17u; }
    else if (k == 18u) { n += 18u; } else if (k == 19u) { n += 19u; } else if (k == 20u) { n += 20u; }
    else if (k == 21u) { continue; } else if (k == 22u) { n += 22u; } else if (k == 23u) { n += 23u; }
    else if (k == 24u) { n += 24u; } else if (k == 25u) { n += 25u; } else if (k == 26u) { continue; }
    else if (k == 27u) { n += 27u; } else if (k == 28u) { n += 28u; } else if (k == 29u) { n += 29u; }
    else if (k == 30u) { n += 30u; } else if (k == 31u) { continue; } else if (k == 32u) { n += 32u; }
    else if (k == 33u) { n += 33u; } else if (k == 34u) { n += 34u; } else if (k == 35u) { n += 35u; }
    else if (k == 36u) { continue; } else if (k == 37u) { n += 37u; } else if (k == 38u) { n += 38u; }
    else if (k == 39u) { n += 39u; } else if (k == 40u) { n += 40u; } else if (k == 41u) { continue; }
    else if (k == 42u) { n += 42u; } else if (k == 43u) { n += 43u; } else if (k == 44u) { n += 44u; }
    else if (k == 45u) { n += 45u; } else if (k == 46u) { continue; } else if (k == 47u) { n += 47u; }
    else if (k == 48u) { n += 48u; } else if (k == 49u) { n += 49u; } else if (k == 50u) { n += 50u; }
    else if (k == 51u) { continue; } else if (k == 52u) { n += 52u; } else if (k == 53u) { n += 53u; }
    else if (k == 54u) { n += 54u; } else if (k == 55u) { n += 55u; } else if (k == 56u) { continue; }
    else if (k == 57u) { n += 57u; } else if (k == 58u) { n += 58u; } else if (k == 59u) { n += 59u; }
    else if (k == 60u) { n += 60u; } else if (k == 61u) { continue; } else if (k == 62u) { n += 62u; }
    else if (k == 63u) { n += 63u; } else if (k == 64u) { n += 64u; } else if (k == 65u) { n += 65u; }
    else if (k == 66u) { continue; } else if (k == 67u) { n += 67u; } else if (k == 68u) { n += 68u; }
    else if (k == 69u) { n += 69u; } else if (k == 70u) { n += 70u; } else if (k == 71u) { continue; }
    else if (k == 72u) { n += 72u; } else if (k == 73u) { n += 73u; } else if (k == 74u) { break; }
    else { n += 1u; }
    n += 100u;
  }
  return n;
}

// run: @main(y = zeros(80), z = zeros(80)) groups(1) -> y == [0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225, 256, 289, 324, 361, 400, 441, 484, 529, 576, 625, 676, 729, 784, 841, 900, 961, 1024, 1089, 1156, 1225, 1296, 1369, 1444, 1521, 1600, 1681, 1764, 1849, 1936, 2025, 2116, 2209, 2304, 2401, 2500, 2601, 2704, 2809, 2916, 3025, 3136, 3249, 3364, 3481, 3600, 3721, 3844, 3969, 4096, 4225, 4356, 4489, 4624, 4761, 4900, 5041, 5184, 5329, 5476, 9, 9, 9, 9, 9], z == [400, 0, 408, 412, 416, 420, 0, 428, 432, 436, 440, 0, 448, 452, 456, 460, 0, 468, 472, 476, 480, 0, 488, 492, 496, 500, 0, 508, 512, 516, 520, 0, 528, 532, 536, 540, 0, 548, 552, 556, 560, 0, 568, 572, 576, 580, 0, 588, 592, 596, 600, 0, 608, 612, 616, 620, 0, 628, 632, 636, 640, 0, 648, 652, 656, 660, 0, 668, 672, 676, 680, 0, 688, 692, 0, 404, 404, 404, 404, 404]
@compute @workgroup_size(80)
fn main(@builtin(local_invocation_index) k: u32) {
  y[k] = named(k);
  z[k] = counted(k);
}

// run: @ordered(y = zeros(80), z = zeros(80), chosen = [70]) groups(1) -> y == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 0]
@compute @workgroup_size(80)
fn ordered(@builtin(local_invocation_index) i: u32) {
  let k = chosen;
  tile[i] = i;
  if (k == 0u) { z[i] = 0u; } else if (k == 1u) { z[i] = 1u; } else if (k == 2u) { z[i] = 2u; }
    else if (k == 3u) { workgroupBarrier(); y[i] = tile[(i + 1u) % 80u]; } else if (k == 4u) { z[i] = 4u; } else if (k == 5u) { z[i] = 5u; }
    else if (k == 6u) { z[i] = 6u; } else if (k == 7u) { z[i] = 7u; } else if (k == 8u) { z[i] = 8u; }
    else if (k == 9u) { z[i] = 9u; } else if (k == 10u) { z[i] = 10u; } else if (k == 11u) { z[i] = 11u; }
    else if (k == 12u) { z[i] = 12u; } else if (k == 13u) { z[i] = 13u; } else if (k == 14u) { z[i] = 14u; }
    else if (k == 15u) { z[i] = 15u; } else if (k == 16u) { z[i] = 16u; } else if (k == 17u) { z[i] = 17u; }
    else if (k == 18u) { z[i] = 18u; } else if (k == 19u) { z[i] = 19u; } else if (k == 20u) { z[i] = 20u; }
    else if (k == 21u) { z[i] = 21u; } else if (k == 22u) { z[i] = 22u; } else if (k == 23u) { z[i] = 23u; }
    else if (k == 24u) { z[i] = 24u; } else if (k == 25u) { z[i] = 25u; } else if (k == 26u) { z[i] = 26u; }
    else if (k == 27u) { z[i] = 27u; } else if (k == 28u) { z[i] = 28u; } else if (k == 29u) { z[i] = 29u; }
    else if (k == 30u) { z[i] = 30u; } else if (k == 31u) { z[i] = 31u; } else if (k == 32u) { z[i] = 32u; }
    else if (k == 33u) { z[i] = 33u; } else if (k == 34u) { z[i] = 34u; } else if (k == 35u) { z[i] = 35u; }
    else if (k == 36u) { z[i] = 36u; } else if (k == 37u) { z[i] = 37u; } else if (k == 38u) { z[i] = 38u; }
    else if (k == 39u) { z[i] = 39u; } else if (k == 40u) { z[i] = 40u; } else if (k == 41u) { z[i] = 41u; }
    else if (k == 42u) { z[i] = 42u; } else if (k == 43u) { z[i] = 43u; } else if (k == 44u) { z[i] = 44u; }
    else if (k == 45u) { z[i] = 45u; } else if (k == 46u) { z[i] = 46u; } else if (k == 47u) { z[i] = 47u; }
    else if (k == 48u) { z[i] = 48u; } else if (k == 49u) { z[i] = 49u; } else if (k == 50u) { z[i] = 50u; }
    else if (k == 51u) { z[i] = 51u; } else if (k == 52u) { z[i] = 52u; } else if (k == 53u) { z[i] = 53u; }
    else if (k == 54u) { z[i] = 54u; } else if (k == 55u) { z[i] = 55u; } else if (k == 56u) { z[i] = 56u; }
    else if (k == 57u) { z[i] = 57u; } else if (k == 58u) { z[i] = 58u; } else if (k == 59u) { z[i] = 59u; }
    else if (k == 60u) { z[i] = 60u; } else if (k == 61u) { z[i] = 61u; } else if (k == 62u) { z[i] = 62u; }
    else if (k == 63u) { z[i] = 63u; } else if (k == 64u) { z[i] = 64u; } else if (k == 65u) { z[i] = 65u; }
    else if (k == 66u) { z[i] = 66u; } else if (k == 67u) { z[i] = 67u; } else if (k == 68u) { z[i] = 68u; }
    else if (k == 69u) { z[i] = 69u; } else if (k == 70u) { workgroupBarrier(); y[i] = tile[(i + 1u) % 80u]; } else if (k == 71u) { z[i] = 71u; }
    else if (k == 72u) { z[i] = 72u; } else if (k == 73u) { z[i] = 73u; } else if (k == 74u) { z[i] = 74u; }
    else { z[i] = 7u; }
  workgroupBarrier();
}
