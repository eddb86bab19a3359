//! The binary form: all of a module survives, and nothing else is a module.

use invar_ir::{Call, CallId, Module, Required, SourceId, Span, binary, text};

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
fn collectives_over_the_active_threads_survive() {
    let text = "kernel @k(%n: u32) collectives(active) requires(%n <= 4) {\n}\nkernel @l() {\n}\n";
    let module = text::parse("test.inv", text).expect("a module");
    assert!(module.kernels[0].active_collectives && !module.kernels[1].active_collectives);
    assert_eq!(
        module.to_string(),
        text.replace("\n}\nkernel", "\n}\n\nkernel")
    );
    let bytes = binary::encode(&module);
    assert_eq!(bytes[binary::MAGIC.len()], 4);
    assert_eq!(binary::decode(&bytes), Ok(module));
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
fn the_empty_module_is_seven_fields() {
    let bytes = b"\0INVAR\x02\0\0\0\0\0\0";
    assert_eq!(binary::encode(&Module::default()), bytes);
    assert_eq!(binary::decode(bytes), Ok(Module::default()));
}

#[test]
fn the_form_does_not_change() {
    // Version 2, byte by byte: a reader of today's files must read them forever.
    let text = "kernel @k(%n: u32) {\n    %a = add %n, %n\n}\n";
    let module = text::parse("", text).expect("a module").without_spans();
    let no_span: &[u8] = b"\0\0\0\0\0\0"; // no source, twice line and column 0, no call
    let bytes: &[&[u8]] = &[
        b"\0INVAR\x02",           // version
        b"\0\0",                  // no sources, no calls
        b"\0\0\0",                // no structs, no constants
        b"\x01\x01k",             // one kernel, `k`
        b"\x01\x01n\x02\0",       // one parameter, `n`: a value, number 0
        no_span,                  // of the parameter
        b"\0\0\x01\0\0",          // no sizes, contract, nothing allowed
        b"\0",                    // no arrays
        b"\x02\0\x07\x01\x01n",   // two values: scalar u32, named `n`
        b"\0\x07\x01\x01a",       // scalar u32, named `a`
        b"\x01\0\x02",            // one block, without parameters, of two instructions
        b"\x02\x03add\0\x02\0\0", // an operation without immediate, two operands: 0 and 0
        b"\x01\x01",              // one result: 1
        no_span,                  // of the operation
        b"\x17\0",                // return, no results
        no_span,                  // of the return
        no_span,                  // of the kernel
    ];
    assert_eq!(binary::encode(&module), bytes.concat());
    // Declarations of every kind, spans and calls: FNV-1a (Fowler, Noll and Vo) of the bytes.
    let digest = binary::encode(&self::module())
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    assert_eq!(digest, 0x7ded_3979_20b5_6010, "{digest:#x}");
}

#[test]
fn what_kernels_require_is_version_3() {
    let text = "kernel @k(%x: device read u8, %n: u32) requires(%n % 4 == -1, ascending %x) {\n}\n\nkernel @l() {\n}\n";
    let module = text::parse("", text).expect("a module");
    let bytes = binary::encode(&module);
    assert_eq!(bytes[6], 3);
    let again = binary::decode(&bytes).expect("a module");
    assert_eq!(again, module);
    let requires = text::parse("", &text.replace("%n % 4 == -1, ", "")).expect("a module");
    assert!(!requires.same_up_to_spans(&module));
    let bytes = binary::encode(&module.without_spans());
    let no_span: &[u8] = b"\0\0\0\0\0\0";
    let required: &[&[u8]] = &[
        b"\x02",                         // two requirements of `k`
        b"\0\x01\x02\x01\0\x01\x01\x04", // a comparison of one product: 1 times argument 1, by 4
        b"\0",                           // equal
        b"\x01\x01\0\0",                 // one product: -1 times nothing, by nothing
        no_span,
        b"\x02\0", // ascending parameter 0
        no_span,
    ];
    let required = required.concat();
    assert!(bytes.windows(required.len()).any(|w| w == required));
    // Those of the other kernel: none.
    assert_eq!(bytes.last(), Some(&0));
    // A requirement of what is not there.
    let mut wrong = module;
    wrong.kernels[0].requires[1].required = Required::Ascending { buffer: 2 };
    let error = binary::decode(&binary::encode(&wrong)).expect_err("there are two parameters");
    assert!(
        error
            .message
            .contains("there is no parameter 2 here, only 2"),
        "{error}"
    );
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
    for version in [1, 10] {
        assert_eq!(
            error(&[b"\0INVAR", &[version][..], b"\0\0\0\0\0\0\0"].concat()),
            format!(
                "not a module: byte 6: it is of version {version} of the form, this program reads versions \
                 2 to 9: write it again from its text, with `invar print --binary`"
            )
        );
    }
    // A number that could be shorter is not how it is written.
    assert_eq!(
        error(b"\0INVAR\x02\x80\0\0\0\0\0\0"),
        "not a module: byte 7: this is not how the module is encoded"
    );
    assert_eq!(
        error(b"\0INVAR\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        "not a module: byte 17: a number has more bits than it may"
    );
    assert_eq!(
        error(b"\0INVAR\x02\xff\xff\xff\xff\x0f\0\0"),
        "not a module: byte 14: the bytes end early"
    );
    assert_eq!(
        error(b"\0INVAR\x02\x01\x01\xff\0\0\0\0\0\0"),
        "not a module: byte 10: text that is not UTF-8"
    );
    let add = bytes_of("kernel @k(%n: u32) {\n    %a = add %n, %n\n}\n");
    let name = add.windows(3).position(|w| w == b"add");
    let name = name.expect("the operation");
    let mut adx = add.clone();
    adx[name + 2] = b'x';
    assert_eq!(
        error(&adx),
        format!(
            "not a module: byte {}: this version of Invar knows no operation, type or instruction like the \
             one that ends here",
            name + 3
        )
    );
}

/// The encoding of a text, without spans.
fn bytes_of(text: &str) -> Vec<u8> {
    let module = text::parse("", text).expect("a module");
    binary::encode(&module.without_spans())
}

#[test]
fn lengths_are_not_believed_before_their_elements_are_there() {
    // Lists of values, of two bytes each in memory at least, of lengths up to 2^64.
    for length in [u64::from(u32::MAX), 1 << 40, u64::MAX] {
        let mut varint = Vec::new();
        let mut rest = length;
        while rest >= 0x80 {
            varint.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        varint.push(rest as u8);
        let before = b"\0INVAR\x02\0\0\0\0\0\x01\x01k";
        let wait = [
            &before[..],
            b"\0\0\0\x01\0\0\0\0", // no parameters, no sizes, contract, no arrays and values
            b"\x01\0\x01\x0a",     // one block of one instruction: `wait`
            &varint,
        ];
        for bytes in [
            [&b"\0INVAR\x02"[..], &varint].concat(),
            [&before[..], &varint].concat(),
            wait.concat(),
        ] {
            let said = error(&bytes);
            assert!(
                said.ends_with(&format!("byte {}: the bytes end early", bytes.len()))
                    || said.contains("like the one that ends here"),
                "{said}"
            );
        }
    }
}

#[test]
fn ids_that_nothing_defines_are_refused() {
    let bytes = bytes_of("kernel @k(%n: u32) {\n    %a = add %n, %n\n}\n");
    let operand = bytes.windows(6).position(|w| w == b"add\0\x02\0");
    let operand = operand.expect("the operands") + 5;
    let mut changed = bytes.clone();
    // The operation's own result.
    changed[operand] = 1;
    assert_eq!(
        error(&changed),
        format!(
            "not a module: byte {}: kernel `k`: there is no value 1 here, only 1",
            bytes.len()
        )
    );
    // A call that leads to itself would have no end.
    let mut module = module();
    module.calls[1].site.call = Some(CallId(1));
    assert!(error(&binary::encode(&module)).contains("there is no call 1 here, only 1"));
    let mut module = self::module();
    module.kernels[0].span.source = Some(SourceId(1));
    assert!(error(&binary::encode(&module)).contains("there is no source 1 here, only 1"));
}

#[test]
fn nesting_has_a_limit() {
    // A kernel without parameters whose body is blocks within blocks, as many as there are bytes.
    let loops = |count: u32| {
        let mut bytes = b"\0INVAR\x02\0\0\0\0\0\x01\x01k\0\0\0\x01\0\0\0\0".to_vec();
        // LEB128 of the number of blocks.
        bytes.extend([
            count as u8 & 0x7f | 0x80,
            (count >> 7) as u8 & 0x7f | 0x80,
            (count >> 14) as u8,
        ]);
        for _ in 0..count {
            // No parameters, one instruction: a loop without carried values and results; no span.
            bytes.extend([0, 1, 19, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        bytes.extend([0; 64]);
        bytes
    };
    assert!(error(&loops(100_000)).contains("blocks nest at most 64 deep"));
    assert!(error(&loops(60)).contains("an instruction whose block is missing"));
    // An array type of arrays: a struct's field of 17 lengths.
    let mut bytes = b"\0INVAR\x02\0\0\x01\x01s\x01\x01f".to_vec();
    bytes.push(17);
    bytes.extend([1; 17]);
    bytes.extend([0; 64]);
    let said = error(&bytes);
    assert!(
        said.contains("no operation, type or instruction like the one that ends here"),
        "{said}"
    );
}

#[test]
fn bindings_are_version_6() {
    let text = "kernel @k(%x: device read f32 binding(1, 2), %n: u32) {\n}\n";
    let module = text::parse("", text).expect("a module");
    let bytes = binary::encode(&module);
    assert_eq!(bytes[6], 6);
    assert_eq!(binary::decode(&bytes), Ok(module.clone()));
    // Nothing required, no active collectives; of two parameters the first has a binding, of group 1.
    assert!(bytes.ends_with(b"\0\0\x02\x01\x01\x02\0"), "{bytes:x?}");
    // A binding less than there are parameters, and a module of that version without any.
    let short = [&bytes[..bytes.len() - 5], b"\x01\0"].concat();
    assert!(error(&short).ends_with("kernel `k` has 2 parameters and bindings for 1"));
    let none = [&bytes[..bytes.len() - 5], b"\x02\0\0"].concat();
    assert!(error(&none).ends_with("this is not how the module is encoded"));
}

#[test]
fn imageblocks_are_version_7() {
    let text =
        "kernel @k(%n: u32, %b: imageblock u32) threadgroup(4, 2) {\n    store %b[%n], %n\n}\n";
    let module = text::parse("", text).expect("a module");
    assert_eq!(module.to_string(), text);
    let bytes = binary::encode(&module);
    assert_eq!(bytes[6], 7);
    assert_eq!(binary::decode(&bytes), Ok(module.clone()));
    let bytes = binary::encode(&module.without_spans());
    // One array, `b`: in space 5, of scalar u32, 8 elements.
    let array = b"\x01\x01b\x05\0\0\0\x07\x08";
    assert!(bytes.windows(array.len()).any(|w| w == array), "{bytes:x?}");
    // Nothing required, no active collectives, one parameter without a binding.
    assert!(bytes.ends_with(b"\0\0\x01\0"), "{bytes:x?}");
}

#[test]
fn samplers_of_normalized_coordinates_are_version_9() {
    let sample = "%r0 = texture_sample %t[%c, %c] %s";
    let text = |how: &str| {
        format!(
            "kernel @k(%t: texture2d f32 sample, %s: sampler, %c: f32) {{\n    {sample}{how}\n}}\n"
        )
    };
    let module = text::parse("", &text(" normalized")).expect("a module");
    assert_eq!(module.to_string(), text(" normalized"));
    let mut bytes = binary::encode(&module);
    assert_eq!(bytes[6], 9);
    assert_eq!(binary::decode(&bytes), Ok(module));
    bytes[6] = 8;
    let error = binary::decode(&bytes).expect_err("another version's");
    let error = error.to_string();
    assert!(
        error.ends_with("byte 6: this is not how the module is encoded"),
        "{error}"
    );
    let module = text::parse("", &text("")).expect("a module");
    assert_eq!(binary::encode(&module)[6], 5);
}

#[test]
fn kernels_that_count_on_zeros_are_version_8() {
    let text = "kernel @k(%n: u32) allow(uninitialised_reads) {\n}\n\nkernel @l() {\n}\n";
    let module = text::parse("", text).expect("a module");
    assert_eq!(module.to_string(), text);
    let bytes = binary::encode(&module);
    assert_eq!(bytes[6], 8);
    assert_eq!(binary::decode(&bytes), Ok(module.clone()));
    let bytes = binary::encode(&module.without_spans());
    // Nothing required, no active collectives, no parameter; this kernel counts on nothing.
    assert!(bytes.ends_with(b"\0\0\0\0"), "{bytes:x?}");
    let mut none = bytes.clone();
    let counts = none.windows(5).position(|w| w == b"\0\0\x01\0\x01");
    none[counts.expect("the first kernel's") + 4] = 0;
    let error = binary::decode(&none)
        .expect_err("another version's")
        .to_string();
    assert!(
        error.ends_with("this is not how the module is encoded"),
        "{error}"
    );
}

#[test]
fn textures_are_version_5() {
    let text = "kernel @k(%t: texture2d f32 sample, %u: f32) {\n    %a = texture_sample %t[%u, %u] linear repeat\n}\n";
    let module = text::parse("", text).expect("a module");
    let bytes = binary::encode(&module);
    assert_eq!(bytes[6], 5);
    assert_eq!(binary::decode(&bytes), Ok(module.clone()));
    let bytes = binary::encode(&module.without_spans());
    let no_span: &[u8] = b"\0\0\0\0\0\0";
    let parts: &[&[u8]] = &[
        b"\x01t\x04\0\x0b\x03\0", // parameter `t`: a texture of two dimensions, f32, to sample
        no_span,
        b"\x01u\x02\0", // parameter `u`: a value, number 0
        no_span,
    ];
    let parts = parts.concat();
    assert!(bytes.windows(parts.len()).any(|w| w == parts));
    // A sample of parameter 0, by a constant: linear, repeat, normalized, of the first level, without a comparison, of a black border, from level 0 to infinity; without an offset; at value 0 twice.
    let sample = b"\x19\0\0\x02\0\x01\x02\0\0\0\0\0\x80\x80\x80\xfc\x07\0\0\0\x02\0\0\x01\x01";
    assert!(
        bytes.windows(sample.len()).any(|w| w == sample),
        "{bytes:x?}"
    );
}
