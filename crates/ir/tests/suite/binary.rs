//! The binary form: all of a module survives, and nothing else is a module.

use invar_ir::{Call, CallId, Module, SourceId, Span, binary, text};

const TEXT: &str = r#"struct @Particle { position: f32x3, tags: u8[4] }
function_constant @TILE: u32 = 16 id(3)
constant @weights: f32[2] = [0.25, -inf]

kernel @k(%x: device read_write f32, %p: device read @Particle, %n: u32, %s: threadgroup f32, %c: constant f32) threadgroup(64, 2) simdgroup(32) fast allow(out_of_bounds_stores) {
    %tile = alloc threadgroup f32[64][2]
    %i = thread_position_in_grid y
    %0 = load %x[%i * 4]
    %tag = load %p[%i].tags[%n]
    %w = load @weights[%n]
    %sw = swizzle zyx %0
    %f = cast i32 %w
    %bits = const f64 0xfff8000000000001
    %k = function_constant @TILE
    %sum, %other = for %j = %i to %n step %k carry(%a = %w, %b = %w) {
        %more = lt %j, %n
        if %more {
            continue %b, %a
        }
        yield %b, %a
    }
    barrier threadgroup [device]
    store %x[%i], %sum
}
"#;

fn module() -> Module {
    let mut module = text::parse("test.inv", TEXT).expect("a module");
    // A helper inlined through two calls.
    let site = module.kernels[0].body.insts[1].span;
    module.calls = vec![
        Call {
            function: "outer".into(),
            site,
        },
        Call {
            function: "inner".into(),
            site: Span {
                call: Some(CallId(0)),
                ..site
            },
        },
    ];
    module.kernels[0].body.insts[2].span.call = Some(CallId(1));
    module.kernels[0].body.insts[3].span = Span::NONE;
    module
}

#[test]
fn all_of_a_module_survives() {
    let module = module();
    let bytes = binary::encode(&module);
    let again = binary::decode(&bytes).expect("a module");
    assert_eq!(again, module);
    assert_eq!(binary::encode(&again), bytes);
    assert!(again.same_up_to_spans(&text::parse("", TEXT).expect("a module")));
}

#[test]
fn the_empty_module_is_eight_fields() {
    let bytes = b"\0INVAR\x01\0\0\0\0\0\0\0";
    assert_eq!(binary::encode(&Module::default()), bytes);
    assert_eq!(binary::decode(bytes), Ok(Module::default()));
}

#[test]
fn the_form_does_not_change() {
    // Version 1, byte by byte: a reader of today's files must read them for ever.
    let text = "kernel @k(%n: u32) {\n    %a = add %n, %n\n}\n";
    let module = text::parse("", text).expect("a module").without_spans();
    let bytes: &[&[u8]] = &[
        b"\0INVAR\x01",             // version
        b"\0\0",                    // no sources, no calls
        b"\x01\x03add",             // one operation
        b"\0\0\0",                  // no structs, no constants
        b"\x01\x01k",               // one kernel, `k`
        b"\x01\x01n\x03\x00\x07\0", // one parameter, `n`: a value, scalar, u32; no span
        b"\x10",                    // contract
        b"\0\x02",                  // the body: no parameters, two instructions
        b"\x02\0\0\x02\0\0",        // op 0 without immediate, two operands: 0 and 0
        b"\x01\x00\x07\x01\x01a\0", // one result, scalar u32, named `a`; no span
        b"\x18\0\0",                // return, no results, no span
        b"\0",                      // the kernel has no span
    ];
    assert_eq!(binary::encode(&module), bytes.concat());
}

#[test]
fn the_key_forgets_where_things_were_written_and_nothing_else() {
    let module = module();
    let moved = format!("; a comment\n\n{TEXT}").replace("    ", "\t");
    let moved = text::parse("elsewhere.inv", &moved).expect("a module");
    assert_ne!(binary::encode(&module), binary::encode(&moved));
    assert_eq!(
        binary::encode_for_key(&module),
        binary::encode_for_key(&moved)
    );
    let other = TEXT.replace("0.25", "0.5");
    let other = text::parse("test.inv", &other).expect("a module");
    assert_ne!(
        binary::encode_for_key(&module),
        binary::encode_for_key(&other)
    );
}

#[test]
fn a_kernel_out_of_order_is_encoded_in_canonical_numbering() {
    let mut module = module();
    let canonical = binary::encode(&module);
    // Another value that nothing defines, in front of all others.
    let kernel = &mut module.kernels[0];
    let unused = kernel.values[0].clone();
    kernel.values.push(unused);
    assert_eq!(binary::encode(&module), canonical);
}

#[test]
fn every_prefix_is_an_error_with_its_length() {
    let bytes = binary::encode(&module());
    for length in 0..bytes.len() {
        let error = binary::decode(&bytes[..length]).expect_err("a prefix");
        assert!(error.offset <= length, "{error} of {length} bytes");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    let error = binary::decode(&longer).expect_err("a byte too many");
    assert_eq!(error.offset, bytes.len());
    assert_eq!(error.message, "the module ends here, but bytes follow");
}

#[test]
fn every_changed_byte_gives_an_error_or_the_module_that_it_encodes() {
    let bytes = binary::encode(&module());
    let (mut modules, mut errors) = (0, 0);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            match binary::decode(&changed) {
                Ok(module) => {
                    assert_eq!(binary::encode(&module), changed);
                    modules += 1;
                }
                Err(_) => errors += 1,
            }
        }
    }
    assert!(
        modules > 100 && errors > 100,
        "{modules} modules, {errors} errors"
    );
}

/// The error that bytes give.
fn error(bytes: &[u8]) -> String {
    binary::decode(bytes).expect_err("no module").to_string()
}

#[test]
fn what_is_wrong_is_said_with_its_offset() {
    assert_eq!(error(b""), "not a module: byte 0: the bytes end early");
    assert_eq!(
        error(b"\0INVAL"),
        "not a module: byte 5: it does not begin as modules do"
    );
    assert_eq!(
        error(b"\0INVAR\x02"),
        "not a module: byte 6: version 2 of the form, this program reads version 1"
    );
    // A number that could be shorter is not how it is written.
    assert_eq!(
        error(b"\0INVAR\x01\x80\0\0\0\0\0\0\0"),
        "not a module: byte 7: this is not how the module is encoded"
    );
    assert_eq!(
        error(b"\0INVAR\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        "not a module: byte 7: a number has more than 64 bits"
    );
    assert_eq!(
        error(b"\0INVAR\x01\xff\xff\xff\xff\x0f\0\0"),
        "not a module: byte 7: a length of 4294967295, but 2 bytes are left"
    );
    assert_eq!(
        error(b"\0INVAR\x01\x01\x01\xff\0\0\0\0\0\0"),
        "not a module: byte 9: text that is not UTF-8"
    );
    assert_eq!(
        error(b"\0INVAR\x01\0\0\x01\x03adx\0\0\0\0"),
        "not a module: byte 10: there is no operation `adx`"
    );
}

#[test]
fn ids_that_nothing_defines_are_refused() {
    let encode = |text: &str| {
        let module = text::parse("", text).expect("a module");
        binary::encode(&module.without_spans())
    };
    let bytes = encode("kernel @k(%n: u32) {\n    %a = add %n, %n\n}\n");
    let operand = bytes
        .windows(3)
        .position(|w| w == [2, 0, 0])
        .map(|at| at + 4);
    let operand = operand.expect("the operands");
    let mut changed = bytes.clone();
    // The operation's own result.
    changed[operand] = 1;
    assert_eq!(
        error(&changed),
        format!("not a module: byte {operand}: there is no value 1 here, only 1")
    );
    // A call that leads to itself would have no end.
    let mut module = module();
    module.calls[1].site.call = Some(CallId(1));
    assert!(error(&binary::encode(&module)).contains("there is no call 2 here, only 2"));
    let mut module = self::module();
    module.kernels[0].span.source = Some(SourceId(1));
    assert!(error(&binary::encode(&module)).contains("there is no source 2 here, only 2"));
}

#[test]
fn nesting_has_a_limit() {
    // A kernel without parameters whose body is blocks within blocks, as deep as the bytes go.
    let mut bytes = b"\0INVAR\x01\0\0\0\0\0\0\x01\x01k\0\x10".to_vec();
    for _ in 0..100_000 {
        // No parameters, one instruction: a loop without carried values and results.
        bytes.extend([0, 1, 20, 0, 0]);
    }
    bytes.extend([0; 64]);
    assert!(error(&bytes).contains("blocks nest at most 64 deep"));
    // An array type of arrays.
    let mut bytes = b"\0INVAR\x01\0\0\0\x01\x01s\x01\x01f".to_vec();
    bytes.extend([5, 1].repeat(100_000));
    assert!(error(&bytes).contains("arrays nest at most 16 deep"));
}
