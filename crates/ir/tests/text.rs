//! Parsing and printing text.

use invar_ir::text;

/// Every structural instruction, in canonical form.
const EVERYTHING: &str = r#"struct @Particle { position: f32x3, mass: f32, tags: u8[4], "two words": f32x2[2][3] }
struct @Pair { a: @Particle, b: @Particle[2] }
function_constant @TILE: u32 = 16 id(0)
function_constant @scale: f32 id(7)
constant @weights: f32[4] = [0.25, 0.5, 0.125, -inf]
constant @mixed: f32x2[2] = [1.0, 2.0, 0x7fc00001, 1e-7]

kernel @name(%x: device read_write f32, %p: device read_write @Particle, %c: constant f32x4, %n: u32, %s: threadgroup f32, %m: device write f32x2x2[3], %u: device read_write u32) threadgroup(64) simdgroup(32) strict allow(out_of_bounds_loads, out_of_bounds_stores) {
    %tile = alloc threadgroup f32[64]
    %priv = alloc thread i32[8][2]
    %t = thread_index_in_threadgroup
    %i = thread_position_in_grid x
    %one = const f32 1.0
    %nan = const f32 0x7fc00001
    %k = function_constant @TILE
    %len = buffer_length %x
    %v = load %x[%i]
    %v4 = load %x[%i : 4]
    %g4 = load %x[%i * 4]
    %w = load @weights[%i]
    %comp = load %p[%i].position[%k]
    %row = load %p[%i]."two words"[%k][%t]
    %col = load %m[%i][%k][%t]
    store %p[%i].mass, %v
    store %tile[%t], %v
    %z = const u32 0
    %old = atomic_add %u[%i], %z relaxed device
    %o, %ok = atomic_compare_exchange %u[%i], %z, %t acq_rel threadgroup
    atomic_store %u[%i], %o seq_cst device
    barrier threadgroup [device, threadgroup]
    barrier simdgroup [threadgroup]
    barrier threadgroup []
    copy %tile[%t], %x[%i], %n
    %e = async_copy %tile[%t], %x[%i], %n
    %e2 = async_copy_2d %tile[%t] row %n, %x[%i] row %n, %n, %n
    wait %e, %e2
    %acc = matrix_fill simdgroup_f32x8x8 %one
    %ma = matrix_load simdgroup_f32x8x8 %x[%i] row %n
    %mb = matrix_load simdgroup_f32x8x8 %x[%i] row %n transpose
    %acc2 = matrix_multiply_accumulate %ma, %mb, %acc
    matrix_store %x[%i] row %n, %acc2
    %un = assert_uniform threadgroup %v
    %ci = cast i32 %v
    %vec = construct f32x4 %v, %v, %one, %one
    %sw = swizzle zyx %vec
    %cond = lt %t, %n
    if %cond {
        store %x[%i], %un
    }
    if %cond {
        return
    } else {
        store %x[%i], %un
    }
    %r = if %cond {
        yield %v
    } else {
        yield %one
    }
    %sum = for %j = %z to %n step %t carry(%a = %one) {
        %next = add %a, %r
        yield %next
    }
    for %j2 = %z to %n step %t {
        continue
    }
    %x1, %36 = loop carry(%x0 = %v, %38 = %one) {
        if %cond {
            break %38, %x0
        }
        yield %x0, %38
    }
    loop {
        break
    }
    %"not an \u{a}identifier" = sub %x1, %sum
}

kernel @reverse(%x: device read_write f32) threadgroup(64, 1, 2) {
    %tile = alloc threadgroup f32[64]
    %t = thread_index_in_threadgroup
    %v = load %x[%t]
    store %tile[%t], %v
    barrier threadgroup [threadgroup]
    %last = const u32 63
    %r = sub %last, %t
    %w = load %tile[%r]
    store %x[%t], %w
}
"#;

#[test]
fn canonical_text_prints_as_it_was() {
    let module = match text::parse("everything", EVERYTHING) {
        Ok(module) => module,
        Err(errors) => panic!("{errors}"),
    };
    assert_eq!(module.to_string(), EVERYTHING);
}
