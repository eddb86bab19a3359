//! What a kernel requires is given: proofs use it, launches that are found fulfil it, and what no launch can
//! fulfil proves nothing.

use invar_interp::case::bind;
use invar_interp::{Options as RunOptions, check};
use invar_ir::{Rule, Verified, text, verify};
use invar_prove::file::{Certificate, write};
use invar_prove::{Options, Report, Verdict, prove, read_certificates, verify_certificate};

fn module(source: &str) -> Verified {
    verify(text::parse("k.inv", source).expect("it parses")).expect("it is valid")
}

fn report(source: &str) -> Report {
    let module = module(source);
    let cases = text::cases(source).expect("its directives");
    let name = &module.kernels[0].name;
    prove(&module, name, &cases, Options::default()).expect("it is there")
}

fn fixed(source: &str) -> Report {
    let module = module(source);
    let options = Options {
        infer: false,
        ..Options::default()
    };
    prove(&module, &module.kernels[0].name, &[], options).expect("it is there")
}

const GATHER: &str =
    "kernel @gather(%x: device read f32, %index: device read u32, %y: device write f32) REQUIRES {
    %t = thread_position_in_grid x
    %i = load %index[%t]
    %v = load %x[%i]
    store %y[%t], %v
}";

fn gather(requires: &str) -> Report {
    fixed(&GATHER.replace("REQUIRES", requires))
}

#[test]
fn each_element_bounds_an_index_that_is_loaded() {
    let all = "requires(grid.x <= length(%index), grid.x <= length(%y), each %i of %index: %i < length(%x))";
    let proved = gather(all);
    assert_eq!(proved.verdict, Verdict::Proved, "{:?}", proved.doubts);
    assert!(proved.texts.is_empty(), "{:?}", proved.texts);
    assert!(proved.launches().contains("each i of index: i < length(x)"));
    // One more than there are.
    let beyond = all.replace("%i < length", "%i <= length");
    let broken = gather(&beyond);
    assert_eq!(broken.verdict, Verdict::Broken, "{:?}", broken.doubts);
    // What is out of bounds of the indices is not an element of them.
    let short = all.replace("grid.x <= length(%index), ", "");
    assert_ne!(gather(&short).verdict, Verdict::Proved);
    let without = all.replace(", each %i of %index: %i < length(%x)", "");
    assert_eq!(gather(&without).verdict, Verdict::Broken);
}

const ROWS: &str = "kernel @rows(%row: device read u32, %y: device write u32, %n: u32) REQUIRES {
    %i = thread_position_in_grid x
    %inside = lt %i, %n
    if %inside {
        %one = const u32 1
        %next = add %i, %one
        %begin = load %row[%i]
        %end = load %row[%next]
        for %k = %begin to %end step %one {
            store %y[%k], %i
        }
    }
}";

#[test]
fn rows_of_an_ascending_buffer_are_apart() {
    let all = "requires(%n < length(%row), ascending %row, each %r of %row: %r <= length(%y))";
    let rows = |requires: &str| fixed(&ROWS.replace("REQUIRES", requires));
    let proved = rows(all);
    assert_eq!(proved.verdict, Verdict::Proved, "{:?}", proved.doubts);
    let unsorted = all.replace("ascending %row, ", "");
    assert_eq!(rows(&unsorted).verdict, Verdict::Broken);
    // The end of the last row would be out of bounds.
    let longer = all.replace("%n < length(%row)", "%n <= length(%row)");
    assert_ne!(rows(&longer).verdict, Verdict::Proved);
}

#[test]
fn numbers_are_given_and_a_launch_that_breaks_a_kernel_fulfils_them() {
    let source = "kernel @k(%x: device read_write f32, %n: u32, %m: u32) requires(%n * %m <= length(%x), %m % 4 == 0, grid.x <= %n) {
        %i = thread_position_in_grid x
        %at = mul %i, %m
        %three = const u32 3
        %last = add %at, %three
        %v = load %x[%last]
        store %x[%last], %v
    }";
    // With m == 0 all threads meet at one element.
    let broken = fixed(source);
    assert_eq!(broken.verdict, Verdict::Broken);
    let found = broken.counterexample.expect("a launch");
    let value = |name: &str| {
        let arg = found.launch.args.iter().find(|(n, _)| n == name);
        arg.map(|(_, data)| data.clone()).expect("it is given")
    };
    assert_eq!(value("m").parse::<u64>().expect("a number") % 4, 0);
    let sound = source.replace(
        "grid.x <= %n",
        "grid.x <= %n, %m > 0, length(%x) < 4294967296",
    );
    let proved = fixed(&sound);
    assert_eq!(proved.verdict, Verdict::Proved, "{:?}", proved.doubts);
    assert!(proved.texts.is_empty(), "{:?}", proved.texts);
}

#[test]
fn what_no_launch_fulfils_proves_nothing() {
    let source = "kernel @k(%x: device write u32, %n: u32) requires(%n < 4, %n > 4) {
        store %x[%n], %n
    }";
    let open = report(source);
    assert_eq!(open.verdict, Verdict::Open);
    assert_eq!(
        open.doubts[0].what,
        "no launch fulfils what the kernel requires: n < 4, n > 4"
    );
}

/// What is required of contents and of fields is looked at in a launch that is made: where none fulfils it nothing is
/// proved, and the report says of which requirements.
/// What is required of elements is of one, also where the author launches a buffer that has none.
#[test]
fn a_launch_without_elements_is_none_of_those_that_are_proved() {
    let source = |length: u32| {
        format!(
            "; run: @k(x = zeros({length}), y = zeros(4)) grid(4) threadgroup(4)
            kernel @k(%x: device read u32, %y: device write u32)
                requires(length(%x) == {length}, each %v of %x: %v < 4, grid.x <= length(%y)) allow(out_of_bounds_loads) {{
                %i = thread_position_in_grid x
                %zero = const u32 0
                %v = load %x[%zero]
                store %y[%i], %v
            }}"
        )
    };
    assert_eq!(report(&source(0)).verdict, Verdict::Open);
    assert_eq!(report(&source(1)).verdict, Verdict::Proved);
}

#[test]
fn what_no_contents_fulfil_proves_nothing() {
    let fields = |requires: &str| {
        format!(
            "struct @P {{ n: u32, m: u32 }}
            kernel @k(%p: device read @P, %y: device write u32) requires({requires}) allow(out_of_bounds_loads) {{
                %zero = const u32 0
                %i = thread_position_in_grid x
                %n = load %p[%zero].n
                %inside = lt %i, %n
                if %inside {{
                    store %y[%i], %i
                }}
            }}"
        )
    };
    let elements = |requires: &str| {
        format!(
            "kernel @k(%x: device read u32, %y: device write u32, %n: u32) requires({requires}) {{
                %i = thread_position_in_grid x
                %length = buffer_length %x
                %all = cast u32 %length
                %inside = lt %i, %all
                if %inside {{
                    %v = load %x[%i]
                    store %y[%i], %v
                }}
            }}"
        )
    };
    let bounded = "length(%p) == 1, %p.n <= length(%y)";
    let of_x = "length(%x) <= length(%y)";
    for (source, named) in [
        (fields(&format!("{bounded}, %p.n < 0")), "p.n < 0"),
        (
            fields(&format!("{bounded}, %p.n < 4294967296, %p.m > 4294967295")),
            "p.m > 4294967295",
        ),
        (
            fields("length(%p) == 0, %p.n > 3, %p.n <= length(%y)"),
            "length(p) == 0, p.n > 3",
        ),
        (
            elements(&format!(
                "{of_x}, each %v of %x: %v < 3, each %w of %x: %w > 3"
            )),
            "each v of x: v < 3, each w of x: w > 3",
        ),
        (
            elements(&format!(
                "{of_x}, each %v of %x: %v < %n, ascending %x, %n == 0"
            )),
            "each v of x: v < n, n == 0",
        ),
        (
            elements(&format!(
                "{of_x}, %n < 1, each %v of %x: %v * %v == 3 + %n * %n"
            )),
            "each v of x: v * v == 3 + n * n, n < 1",
        ),
        // It is of elements, and there is none.
        (
            elements("length(%x) == 0, each %v of %x: %v < 3"),
            "length(x) == 0, each v of x: v < 3",
        ),
    ] {
        let open = report(&source);
        assert_eq!(open.verdict, Verdict::Open, "{source}");
        assert!(open.witness.is_none());
        let doubt = &open.doubts[0];
        let (_, said) = doubt
            .what
            .split_once("what the kernel requires: ")
            .expect("a list");
        let mut said: Vec<&str> = said.split(", ").collect();
        let mut wanted: Vec<&str> = named.split(", ").collect();
        said.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(said, wanted, "{}", doubt.what);
    }
    // And by a little there are some.
    for source in [
        fields(&format!("{bounded}, %p.n < 1")),
        fields(&format!("{bounded}, %p.m > 4294967294, %p.n % 7 == 6")),
        fields("length(%p) == 0, %p.n < 3, %p.n <= length(%y)"),
        elements(&format!(
            "{of_x}, each %v of %x: %v < 5, each %w of %x: %w > 3"
        )),
        elements(&format!(
            "{of_x}, each %v of %x: %v < %n, ascending %x, %n == 1"
        )),
        elements(&format!(
            "{of_x}, each %v of %x: %v % 61 == 60, each %v of %x: %v >= 100000"
        )),
        elements(&format!(
            "{of_x}, %n < 2, each %v of %x: %v * %v == 3 + %n * %n, %n > 0"
        )),
    ] {
        let proved = report(&source);
        assert_eq!(
            proved.verdict,
            Verdict::Proved,
            "{source}: {:?}",
            proved.doubts
        );
        assert!(proved.witness.is_some());
    }
}

/// A certificate's launch has what its buffers hold, and is one only with that.
#[test]
fn a_certificate_says_what_buffers_hold() {
    let requires = "requires(grid.x <= length(%index), grid.x <= length(%y), each %i of %index: %i < length(%x), \
                    each %i of %index: %i > 2, ascending %index)";
    let proved = gather(requires);
    assert_eq!(proved.verdict, Verdict::Proved, "{:?}", proved.doubts);
    let certificate = Certificate {
        kernel: "gather".to_string(),
        conditions: Vec::new(),
        launch: proved.witness,
        proofs: proved.proofs,
    };
    let text = write(std::slice::from_ref(&certificate));
    assert!(text.contains(" element.1.0:3"), "{text}");
    let read = read_certificates(&text).expect("it is well formed");
    assert_eq!(read, [certificate]);
    let sound = module(&GATHER.replace("REQUIRES", requires));
    let verified = |text: &str| {
        let read = read_certificates(text).expect("it is well formed");
        let again = verify_certificate(&sound, &[], &read[0]);
        again.expect("it is there").verdict
    };
    assert_eq!(verified(&text), Verdict::Proved);
    let other = |to: &str| text.replace(" element.1.0:3", to);
    assert_eq!(
        verified(&other(" element.1.0:3 element.1.1:4")),
        Verdict::Proved
    );
    // Too small, too large, not in order, no number of the type, none.
    for broken in [
        " element.1.0:2",
        " element.1.0:100000",
        " element.1.0:4 element.1.1:3",
        " element.1.0:-1",
        " element.1.0:4294967299",
        "",
    ] {
        assert_eq!(verified(&other(broken)), Verdict::Open, "{broken}");
    }
}

#[test]
fn a_certificate_is_of_what_is_required_too() {
    let requires = "requires(grid.x <= length(%index), grid.x <= length(%y), each %i of %index: %i < length(%x))";
    let proved = gather(requires);
    let certificate = Certificate {
        kernel: "gather".to_string(),
        conditions: Vec::new(),
        launch: proved.witness,
        proofs: proved.proofs,
    };
    let sound = module(&GATHER.replace("REQUIRES", requires));
    let again = verify_certificate(&sound, &[], &certificate);
    assert_eq!(again.expect("it is there").verdict, Verdict::Proved);
    let other = requires.replace("%i < length(%x)", "%i <= length(%x)");
    let other = module(&GATHER.replace("REQUIRES", &other));
    let again = verify_certificate(&other, &[], &certificate);
    assert_eq!(again.expect("it is there").verdict, Verdict::Open);
}

/// A launch of [`GATHER`] by the checkers: the rule that it breaks, and the message.
fn checked(run: &str) -> Result<(), (Rule, String)> {
    let requires =
        "requires(grid.x <= length(%index), ascending %index, each %i of %index: %i < length(%x))";
    let source = format!("{}\n{run}\n", GATHER.replace("REQUIRES", requires));
    let module = module(&source);
    let cases = text::cases(&source).expect("its directives");
    let mut no_files = |name: &str, _: &_| Err(format!("no file {name}"));
    let bound = bind(&module, &cases[0], &RunOptions::default(), &mut no_files).expect("it binds");
    let found = check(
        &module,
        "gather",
        &bound.dispatch,
        &bound.args,
        &Default::default(),
    );
    match found {
        Ok(report) => {
            assert!(report.diagnostics.is_empty(), "{:?}", report.diagnostics);
            Ok(())
        }
        Err(errors) => Err((errors.0[0].rule, errors.0[0].message.clone())),
    }
}

#[test]
fn s5_the_checkers_look_at_numbers_and_at_what_buffers_hold() {
    let run = |index: &str| {
        checked(&format!(
            "; run: @gather(x = zeros(4), index = {index}, y = zeros(3)) grid(3) threadgroup(2)"
        ))
    };
    assert_eq!(run("[0, 2, 3]"), Ok(()));
    let refused = |message: &str| Err((Rule::BrokenRequirement, message.to_string()));
    assert_eq!(
        run("[0, 2]"),
        refused(
            "kernel `gather` requires grid.x <= length(index), but grid.x is 3 and length(index) is 2"
        )
    );
    assert_eq!(
        run("[0, 3, 2]"),
        refused("kernel `gather` requires ascending index, but index[1] is 3 and index[2] is 2")
    );
    assert_eq!(
        run("[0, 2, 4]"),
        refused(
            "kernel `gather` requires each i of index: i < length(x), but index[2] is 4 and length(x) is 4"
        )
    );
}

#[test]
fn s5_fields_of_what_is_only_read_are_numbers() {
    let source = |requires: &str, run: &str| {
        format!(
            "struct @Size {{ scale: f32, width: u32, at: i32x2 }}
            kernel @k(%size: device read @Size, %n: constant u32, %y: device write u32) {requires} {{
                %i = thread_position_in_grid x
                %zero = const u32 0
                %width = load %size[%zero].width
                %inside = lt %i, %width
                if %inside {{
                    store %y[%i], %i
                }}
            }}\n{run}\n"
        )
    };
    // What is found is said of the field, in the author's names.
    let found = report(&source("", ""));
    assert_eq!(found.verdict, Verdict::Proved, "{:?}", found.doubts);
    let texts = ["1 <= length(size)", "size.width <= length(y)"];
    assert_eq!(found.texts, texts);
    // Who cannot look at what buffers hold is told what can be looked at.
    let options = Options {
        contents: false,
        ..Options::default()
    };
    let known = prove(&module(&source("", "")), "k", &[], options).expect("it is there");
    assert_eq!(known.verdict, Verdict::Proved, "{:?}", known.doubts);
    assert_eq!(known.texts, ["1 <= length(size)", "grid.x <= length(y)"]);
    // It can be written as it stands, in the text form with the sigils.
    let requires =
        "requires(1 <= length(%size), %size.width <= length(%y), %size.at.y + %n[0] < 4)";
    let proved = fixed(&source(requires, ""));
    assert_eq!(proved.verdict, Verdict::Proved, "{:?}", proved.doubts);
    let beyond = requires.replace("%size.width <= length(%y)", "%size.width <= length(%y) + 1");
    let broken = fixed(&source(&beyond, ""));
    assert_eq!(broken.verdict, Verdict::Broken, "{:?}", broken.doubts);
    let run = |size: &str| {
        let run = format!("; run: @k(size = {size}, n = [1], y = zeros(3)) grid(3) threadgroup(2)");
        let source = source(requires, &run);
        let module = module(&source);
        let cases = text::cases(&source).expect("its directives");
        let mut no_files = |name: &str, _: &_| Err(format!("no file {name}"));
        let bound = bind(&module, &cases[0], &RunOptions::default(), &mut no_files);
        let bound = bound.expect("it binds");
        let (dispatch, args) = (&bound.dispatch, &bound.args);
        let found = check(&module, "k", dispatch, args, &Default::default());
        found
            .map(|_| ())
            .map_err(|errors| errors.0[0].message.clone())
    };
    assert_eq!(run("[0.5, 3, 9, 2]"), Ok(()));
    let refused = |message: &str| Err(message.to_string());
    assert_eq!(
        run("[0.5, 4, 9, 2]"),
        refused(
            "kernel `k` requires size.width <= length(y), but size.width is 4 and length(y) is 3"
        )
    );
    assert_eq!(
        run("[0.5, 3, 9, 3]"),
        refused("kernel `k` requires size.at.y + n[0] < 4, but size.at.y is 3 and n[0] is 1")
    );
}

/// What a launch says of a field is what its buffer holds: 0 in one without elements (B1).
#[test]
fn a_certificate_says_of_fields_what_their_buffers_hold() {
    let source = "struct @Size { width: u32, height: u32 }
    kernel @k(%size: device read @Size, %y: device write u32) allow(out_of_bounds_loads) {
        %i = thread_position_in_grid x
        %zero = const u32 0
        %width = load %size[%zero].width
        %last = sub %width, %i
        %inside = lt %i, %width
        if %inside {
            store %y[%last], %i
        }
    }";
    let sound = module(source);
    let proved = report(source);
    assert_eq!(proved.texts, ["size.width + 1 <= length(y)"]);
    let launch = proved.witness.expect("a launch");
    for (length, width, verdict) in [
        (1, 3, Verdict::Proved),
        (0, 0, Verdict::Proved),
        (0, 3, Verdict::Open),
        (1, 5, Verdict::Open),
    ] {
        let mut launch = launch.clone();
        (launch.numbers[0], launch.numbers[1]) = (Some(length), Some(4));
        launch.fields.insert((0, 0), width);
        let certificate = Certificate {
            kernel: "k".to_string(),
            conditions: proved.conditions.clone(),
            launch: Some(launch),
            proofs: proved.proofs.clone(),
        };
        let again = verify_certificate(&sound, &[], &certificate).expect("it is there");
        assert_eq!(again.verdict, verdict, "{length} {width}");
    }
}
