//! Textures on the devices: every format, read, written and sampled in every way, gives what the reference machine
//! gives, byte for byte; so does every `; run:` line of `tests/ir/textures`.

use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

use invar_conformance::{Floats, Options as RandomOptions, Side, compare, owned, run_guarded};
use invar_interp::case::{bind, mismatches};
use invar_interp::{Arg, Dispatch, Options, run};
use invar_ir::text::case::{cases, files};
use invar_ir::text::data::philox4x32_10;
use invar_ir::texture::{component, stored};
use invar_ir::{Diagnostics, Module, Scalar, Verified, text, verify};
use invar_runtime::{Device, Error, Grid, PixelFormat, TextureShape};

/// Sizes of textures that the tests have.
const WIDTH: u32 = 7;
const HEIGHT: u32 = 5;

/// Devices that are compared with the reference machine.
fn devices() -> Vec<Device> {
    let mut devices = vec![Device::checked()];
    if cfg!(feature = "cpu") {
        devices.push(Device::named("cpu").expect("the CPU"));
    }
    if let Ok(gpu) = Device::named("gpu") {
        devices.push(gpu);
    }
    devices
}

/// Random words of a seed.
fn words(seed: u32, count: usize) -> Vec<u32> {
    let blocks = (0..count.div_ceil(4) as u32).map(|i| philox4x32_10([i, 0, 0, 0], [seed, 0]));
    blocks.flatten().take(count).collect()
}

fn bytes(seed: u32, count: usize) -> Vec<u8> {
    let words = words(seed, count.div_ceil(4));
    let bytes = words.iter().flat_map(|w| w.to_le_bytes());
    bytes.take(count).collect()
}

/// Whether two buffers of floats hold the same numbers: the bits of a NaN are excepted (R4).
fn same(scalar: Scalar, a: &[u8], b: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| match scalar {
        Scalar::F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).is_nan(),
        Scalar::F16 => invar_runtime::f16::from_le_bytes([bytes[0], bytes[1]]).is_nan(),
        _integer => false,
    };
    let size = scalar.size_bytes() as usize;
    let pairs = a.chunks(size).zip(b.chunks(size));
    a.len() == b.len()
        && pairs
            .into_iter()
            .all(|(a, b)| a == b || is_nan(a) && is_nan(b))
}

/// Runs a kernel on the reference machine and on every device, and gives what it leaves in its last argument, which
/// holds such scalars; the others must be the same bytes.
fn everywhere(module: &Module, dispatch: Dispatch, args: &[Arg<'_>], holds: Scalar) -> Vec<u8> {
    let verified = verify(module.clone()).unwrap_or_else(|e| panic!("{e}\n{module}"));
    let name = &verified.kernels[0].name;
    let mut expected = owned(args);
    let options = Options::default();
    run(&verified, name, &dispatch, &mut expected, &options, &mut []).expect("the reference runs");
    let last = args.len() - 1;
    for device in devices() {
        let program = match device.compile(&verified, name) {
            Ok(program) => program,
            // A GPU may lack a type that a format needs.
            Err(Error::Runtime { .. } | Error::Diagnostics(_)) if is_gpu(&device) => continue,
            Err(error) => panic!("{device:?}: {error}\n{module}"),
        };
        let mut actual = owned(args);
        match device.queue().run_host(&program, dispatch, &mut actual) {
            Ok(done) => {
                done.wait()
                    .unwrap_or_else(|error| panic!("{device:?}: {error}\n{module}"));
            }
            Err(_) if is_gpu(&device) => continue,
            Err(error) => panic!("{device:?}: {error}\n{module}"),
        }
        for (expected, actual) in expected[..last].iter().zip(&actual) {
            assert_eq!(expected.bytes(), actual.bytes(), "{device:?}\n{module}");
        }
        let (expected, actual) = (expected[last].bytes(), actual[last].bytes());
        assert!(
            same(holds, expected, actual),
            "{device:?}: expected {expected:?}, found {actual:?}\n{module}"
        );
    }
    expected[last].bytes().to_vec()
}

fn is_gpu(device: &Device) -> bool {
    !["checked", "cpu"].contains(&&*device.capabilities().name)
}

fn texture(format: PixelFormat, bytes: Vec<u8>) -> Arg<'static> {
    let shape = TextureShape::new(format, WIDTH, HEIGHT).expect("a texture");
    Arg::Texture(shape, Box::new(Arg::OwnedBuffer(bytes)))
}

/// A texture of random codes.
fn random(format: PixelFormat, seed: u32) -> Arg<'static> {
    let size = u64::from(WIDTH * HEIGHT) * format.texel_bytes();
    texture(format, bytes(seed, size as usize))
}

/// One thread a texel, and some around them.
fn grid() -> Dispatch {
    Grid::threads([WIDTH + 2, HEIGHT + 2]).threadgroup([4, 4])
}

/// Reads a texel around the edges too, and stores it.
fn reads(format: PixelFormat, coordinate: Scalar) -> Module {
    let c = component(format);
    let source = format!(
        "kernel @read(%t: texture2d {c} read, %to: device write {c}x4) allow(out_of_bounds_loads) {{
            %gx = thread_position_in_grid x
            %gy = thread_position_in_grid y
            %row = const u32 {}
            %below = mul %gy, %row
            %i = add %below, %gx
            %one = const {coordinate} 1
            %cx = cast {coordinate} %gx
            %cy = cast {coordinate} %gy
            %x = sub %cx, %one
            %y = sub %cy, %one
            %v = texture_read %t[%x, %y]
            store %to[%i], %v
        }}",
        WIDTH + 2
    );
    text::parse("read.inv", &source).expect("a module")
}

fn results(format: PixelFormat) -> Arg<'static> {
    let _ = format;
    Arg::zeros(((WIDTH + 2) * (HEIGHT + 2) * 16) as usize)
}

#[test]
fn v1_reads_of_every_format_are_what_the_reference_gives() {
    for (seed, format) in PixelFormat::ALL.iter().copied().enumerate() {
        let args = [random(format, seed as u32), results(format)];
        let left = everywhere(
            &reads(format, Scalar::I32),
            grid(),
            &args,
            component(format),
        );
        // The texels around are zeros, alpha included.
        assert_eq!(left[..16], [0; 16], "{format:?}");
        let inside = (WIDTH + 3) as usize * 16;
        let decoded = format.decode(&args[0].bytes()[..format.texel_bytes() as usize]);
        let decoded: Vec<u8> = decoded.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        assert!(
            same(component(format), &left[inside..inside + 16], &decoded),
            "{format:?}"
        );
    }
}

#[test]
fn b4_coordinates_of_every_integer_type_are_mathematical() {
    let types = Scalar::ALL.into_iter().filter(|s| s.is_integer());
    for coordinate in types {
        let format = PixelFormat::R32Uint;
        let args = [random(format, 1), results(format)];
        let left = everywhere(&reads(format, coordinate), grid(), &args, Scalar::U32);
        // What wraps below zero is beyond every edge.
        assert_eq!(left[..16], [0; 16], "{coordinate}");
    }
}

/// Numbers to write: what is near codes, what is beyond them, and what is not a number.
fn numbers(format: PixelFormat) -> Vec<u8> {
    let count = ((WIDTH + 2) * (HEIGHT + 2) * 4) as usize;
    let random = words(3, count);
    let of = |(i, word): (usize, u32)| -> u32 {
        if component(format) != Scalar::F32 {
            // Small numbers of both signs, and large ones.
            return (word as i32 >> (word % 32)) as u32;
        }
        const SPECIAL: [f32; 8] = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -0.0,
            1.0,
            -1.0,
            70000.0,
            0.5,
        ];
        match i % 3 {
            0 => SPECIAL[i / 3 % SPECIAL.len()].to_bits(),
            _ => ((word as f32 / u32::MAX as f32) * 2.5 - 1.25).to_bits(),
        }
    };
    let bits = random.into_iter().enumerate().map(of);
    bits.flat_map(u32::to_le_bytes).collect()
}

#[test]
fn v2_writes_of_every_format_leave_what_the_reference_leaves() {
    for (seed, format) in PixelFormat::ALL.iter().copied().enumerate() {
        let c = component(format);
        let source = format!(
            "kernel @write(%from: device read {c}x4, %t: texture2d {c} read_write)
                allow(out_of_bounds_stores) {{
                %gx = thread_position_in_grid x
                %gy = thread_position_in_grid y
                %row = const u32 {}
                %below = mul %gy, %row
                %i = add %below, %gx
                %one = const u32 1
                %x = sub %gx, %one
                %y = sub %gy, %one
                %v = load %from[%i]
                texture_write %t[%x, %y], %v
            }}",
            WIDTH + 2
        );
        let module = text::parse("write.inv", &source).expect("a module");
        let from = Arg::OwnedBuffer(numbers(format));
        let args = [from, random(format, seed as u32)];
        let left = everywhere(&module, grid(), &args, stored(format));
        let first = (WIDTH + 3) as usize * 16;
        let number = |c: usize| {
            let at = first + c * 4;
            let bytes = &args[0].bytes()[at..at + 4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        let mut texel = vec![0; format.texel_bytes() as usize];
        format.encode([0, 1, 2, 3].map(number), &mut texel);
        assert!(
            same(stored(format), &left[..texel.len()], &texel),
            "{format:?}"
        );
    }
}

/// Coordinates of samples in both dimensions.
fn coordinates() -> Vec<f32> {
    let mut all = vec![
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e30,
        -1e30,
        -0.0,
        0.0,
        1.0,
        0.5,
        -1.0,
        2.0,
    ];
    let random = words(5, 53).into_iter();
    all.extend(random.map(|w| (w as f32 / u32::MAX as f32) * 4.0 - 1.5));
    all
}

#[test]
fn v3_every_sampler_gives_what_the_reference_gives() {
    let formats = [
        PixelFormat::R8Unorm,
        PixelFormat::Rgba8Unorm,
        PixelFormat::Bgra8UnormSrgb,
        PixelFormat::Rg16Snorm,
        PixelFormat::Rgba16Float,
        PixelFormat::R32Float,
        PixelFormat::Rgba32Float,
        PixelFormat::Rg8Sint,
        PixelFormat::Rgba32Uint,
    ];
    let points = coordinates();
    for (seed, format) in formats.into_iter().enumerate() {
        let c = component(format);
        let filters = match c {
            Scalar::F32 => &["nearest", "linear"][..],
            _integers => &["nearest"],
        };
        for filter in filters {
            for address in [
                "clamp_to_edge",
                "clamp_to_zero",
                "repeat",
                "mirrored_repeat",
            ] {
                let mut source = format!(
                    "kernel @sample(%t: texture2d {c} sample, %at: device read f32, %to: device write {c}x4) {{
                        %i = thread_position_in_grid x
                        %j = thread_position_in_grid y
                        %n = const u32 {}
                        %u = load %at[%i]
                        %v = load %at[%j]
                        %below = mul %j, %n
                        %at_row = add %below, %i
                        %two = const u32 2
                        %place = mul %at_row, %two
                        %one = const u32 1
                        %next = add %place, %one
                        %size = const f32 5.0
                        %pu = mul %u, %size
                        %pv = mul %v, %size\n",
                    points.len()
                );
                for (name, coordinates, at, place) in [
                    ("a", "normalized", "%u, %v", "place"),
                    ("b", "pixel", "%pu, %pv", "next"),
                ] {
                    let _ = writeln!(
                        source,
                        "%{name} = texture_sample %t[{at}] {filter} {address} {coordinates}
                         store %to[%{place}], %{name}"
                    );
                }
                source.push('}');
                let module = text::parse("sample.inv", &source).expect("a module");
                let at: Vec<u8> = points.iter().flat_map(|p| p.to_le_bytes()).collect();
                let count = points.len() as u32;
                // Floats of any bits: linear samples of those that are none are none, too.
                let args = [
                    random(format, seed as u32),
                    Arg::OwnedBuffer(at),
                    Arg::zeros((count * count * 2 * 16) as usize),
                ];
                let dispatch = Grid::threads([count, count]).threadgroup([8, 4]);
                everywhere(&module, dispatch, &args, c);
            }
        }
    }
}

/// A kernel whose threads have a place `%x`, `%y` and `%z` each, which lies beyond edges too, and leave there what a body
/// makes of two textures of a kind: three values.
fn at_places(kind: &str, body: &str, made: [&str; 3]) -> String {
    let [first, second, third] = made;
    format!(
        "kernel @k(%t: {kind} f32 sample, %own: {kind} f32 write, %to: device write f32x4)
            allow(out_of_bounds_loads, out_of_bounds_stores) {{
            %gx = thread_position_in_grid x
            %gy = thread_position_in_grid y
            %gz = thread_position_in_grid z
            %x = cast i32 %gx
            %one = const i32 1
            %y0 = cast i32 %gy
            %y = sub %y0, %one
            %z0 = cast i32 %gz
            %z = sub %z0, %one
            {body}
            %eight = const u32 8
            %three = const u32 3
            %row = mul %gz, %eight
            %rows = add %row, %gy
            %before = mul %rows, %eight
            %place = add %before, %gx
            %at = mul %place, %three
            %two = const u32 2
            %uone = const u32 1
            %after = add %at, %uone
            %last = add %at, %two
            store %to[%at], %{first}
            store %to[%after], %{second}
            store %to[%last], %{third}
        }}"
    )
}

#[test]
fn v5_every_dimension_gives_what_the_reference_gives() {
    // Reads, samples and a write at one place, which may lie beyond every edge.
    let kinds = [
        ("texture1d", [5, 1, 1], "%x", "%u"),
        ("texture2d_array", [5, 4, 3], "%x, %y, %z", "%u, %v, %z"),
        ("texture3d", [5, 4, 3], "%x, %y, %z", "%u, %v, %w"),
    ];
    for (kind, [width, height, depth], texel, place) in kinds {
        for (filter, address) in [
            ("nearest", "repeat"),
            ("linear", "clamp_to_edge"),
            ("linear", "clamp_to_zero"),
            ("linear", "mirrored_repeat"),
        ] {
            let gather = match kind {
                "texture2d_array" => format!("texture_gather %t[{place}] z {address}"),
                _no_gather => "construct f32x4 %u".to_string(),
            };
            let body = format!(
                "
                    %seventh = const f32 0.17
                    %fx = cast f32 %x
                    %fy = cast f32 %y
                    %fz = cast f32 %z
                    %u = mul %fx, %seventh
                    %v = mul %fy, %seventh
                    %w = mul %fz, %seventh
                    %read = texture_read %t[{texel}]
                    %sampled = texture_sample %t[{place}] {filter} {address}
                    %gathered = {gather}
                    texture_write %own[{texel}], %sampled
                    "
            );
            let source = at_places(kind, &body, ["read", "sampled", "gathered"]);
            let module = text::parse("k.inv", &source).expect("a module");
            let of = |format: PixelFormat, seed| {
                let shape =
                    TextureShape::new(format, width, height).and_then(|s| s.with_depth(depth));
                let shape = shape.expect("a texture");
                let memory = Arg::OwnedBuffer(bytes(seed, shape.size_bytes() as usize));
                Arg::Texture(shape, Box::new(memory))
            };
            let args = [
                of(PixelFormat::Rgba8Unorm, 1),
                of(PixelFormat::Rg16Unorm, 2),
                Arg::zeros(8 * 8 * 8 * 3 * 16),
            ];
            // Each texel is written by one thread.
            let threads = if kind == "texture1d" {
                [8, 1, 1]
            } else {
                [8; 3]
            };
            let dispatch = Grid::threads(threads).threadgroup([4, 4, 2]);
            everywhere(&module, dispatch, &args, Scalar::F32);
        }
    }
}

#[test]
fn v18_levels_of_volumes_give_what_the_reference_gives() {
    // Reads, samples of a level and with gradients, and a write at places and levels beyond every edge, too.
    let shapes = [[5, 4, 3], [1, 2, 8], [7, 1, 1]];
    for ([width, height, depth], format) in shapes.into_iter().zip([
        PixelFormat::Rgba8Unorm,
        PixelFormat::Rg16Float,
        PixelFormat::R32Float,
    ]) {
        for how in [
            "nearest repeat mip_nearest",
            "linear clamp_to_edge mip_linear",
            "linear clamp_to_border border_opaque_white mip_linear lod_clamp(0.25, 1.5)",
            "linear mirrored_repeat pixel mip_linear",
        ] {
            let normalized = how.replace("pixel ", "");
            let body = format!(
                "
                    %four = const i32 4
                    %sum = add %x, %z
                    %l0 = rem %sum, %four
                    %fx = cast f32 %x
                    %fy = cast f32 %y
                    %fz = cast f32 %z
                    %fl = cast f32 %l0
                    %part = const f32 0.17
                    %u = mul %fx, %part
                    %v = mul %fy, %part
                    %w = mul %fz, %part
                    %odd = const f32 0.7
                    %l = mul %fl, %odd
                    %read = texture_read %t[%x, %y, %z] level %l0
                    %sampled = texture_sample %t[%u, %v, %w] level %l {how}
                    %graded = texture_sample %t[%w, %u, %v] gradient [%u, %part, %v], [%w, %v, %part] {normalized}
                    texture_write %own[%x, %y, %z] level %l0, %sampled
                    %depth = texture_depth %t level %l0
                    %width = texture_width %own level %l0
                    %sizes = add %depth, %width
                    %size = cast f32 %sizes
                    %all = construct f32x4 %size
                    %both = add %graded, %all
                    "
            );
            let source = at_places("texture3d", &body, ["read", "sampled", "both"]);
            let module = text::parse("k.inv", &source).expect("a module");
            let of = |format: PixelFormat, seed| {
                let shape = TextureShape::volume(format, width, height, depth);
                let shape = shape.and_then(|s| s.with_levels(s.most_levels().min(3)));
                let shape = shape.expect("a volume");
                let memory = Arg::OwnedBuffer(bytes(seed, shape.size_bytes() as usize));
                Arg::Texture(shape, Box::new(memory))
            };
            let args = [
                of(format, 1),
                of(PixelFormat::Rg16Unorm, 2),
                Arg::zeros(8 * 8 * 8 * 3 * 16),
            ];
            let dispatch = Grid::threads([8; 3]).threadgroup([4, 4, 2]);
            everywhere(&module, dispatch, &args, Scalar::F32);
        }
    }
}

#[test]
fn v18_views_of_a_volume_are_its_levels_and_their_slices() {
    let source = "
        kernel @fill(%to: texture3d f32 write, %grey: f32) threadgroup(1) {
            %zero = const u32 0
            %v = construct f32x4 %grey
            %depth = texture_depth %to
            %one = const u32 1
            %last = sub %depth, %one
            texture_write %to[%zero, %zero, %last], %v
        }";
    let module = text::parse("fill.inv", source).and_then(verify);
    let module = module.expect("a kernel");
    let shape = TextureShape::volume(PixelFormat::R8Unorm, 1, 1, 5);
    let shape = shape.and_then(|s| s.with_levels(3)).expect("a volume");
    for device in devices() {
        let program = device.compile(&module, "fill").expect("it compiles");
        let texture = invar_runtime::Texture::of_shape(&device, shape).expect("memory");
        let grid = Grid::threads(1).threadgroup(1);
        let fill = |view| {
            let grey = invar_runtime::Arg::from(1.0f32);
            device.queue().run(&program, grid, &[view, grey])
        };
        fill(texture.level(0).expect("a level")).expect("it runs");
        fill(texture.level(1).expect("a level")).expect("it runs");
        assert_eq!(
            texture.read().expect("its bytes"),
            [0, 0, 0, 0, 255, 0, 255, 0],
            "{device:?}"
        );
        fill(texture.element(1, 0).expect("a slice")).expect("it runs");
        fill(texture.element(0, 1).expect("a slice")).expect("it runs");
        assert_eq!(
            texture.read().expect("its bytes"),
            [0, 255, 0, 0, 255, 255, 255, 0],
            "{device:?}"
        );
        assert!(texture.element(1, 2).is_err() && texture.element(3, 0).is_err());
        texture
            .write(&[0, 50, 100, 150, 200, 0, 0, 0])
            .expect("its size");
        texture.fill_levels().expect("numbers have means");
        // Of five slices the first has two and a half, of 0, 50 and 100: (2*0 + 2*50 + 100) / 5.
        assert_eq!(
            texture.read().expect("its bytes")[5..],
            [40, 160, 100],
            "{device:?}"
        );
        let levels = texture.level(3).expect_err("there are three");
        assert!(levels.to_string().contains("no level 3"), "{levels}");
    }
}

#[test]
fn v18_a_texture_in_levels_is_a_volume_or_an_array() {
    let source = "
        kernel @three(%t: texture3d f32 read) { }
        kernel @two(%t: texture2d_array f32 read) { }";
    let module = text::parse("kinds.inv", source).and_then(verify);
    let module = module.expect("two kernels");
    let slices = TextureShape::new(PixelFormat::R8Unorm, 4, 4).and_then(|s| s.with_depth(4));
    let array = slices.and_then(|s| s.with_levels(2)).expect("an array");
    let volume = TextureShape::volume(PixelFormat::R8Unorm, 4, 4, 4);
    let volume = volume.and_then(|s| s.with_levels(2)).expect("a volume");
    for device in devices() {
        let grid = Grid::threads(1).threadgroup(1);
        let run = |kernel: &str, shape| {
            let program = device.compile(&module, kernel).expect("it compiles");
            let texture = invar_runtime::Texture::of_shape(&device, shape).expect("memory");
            let arg = invar_runtime::Arg::from(&texture);
            device.queue().run(&program, grid, &[arg])
        };
        run("three", volume).expect("a volume");
        run("two", array).expect("an array");
        let why = run("three", array).expect_err("an array").to_string();
        let wanted = "has 4 slices in each of 2 levels, and is not a volume, expected a texture3d";
        assert!(why.contains(wanted), "{why}");
        let why = run("two", volume).expect_err("a volume").to_string();
        let wanted = "is a volume in 2 levels, of half the slices each, expected a texture2d_array";
        assert!(why.contains(wanted), "{why}");
    }
}

/// Which random kernels: `INVAR_RANDOM_KERNELS`, a number of them or `FIRST..END`, else few.
fn seeds() -> Range<u64> {
    let wanted = std::env::var("INVAR_RANDOM_KERNELS").unwrap_or_default();
    let number = |text: &str| text.parse().expect("a number of seeds");
    match wanted.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None if wanted.is_empty() => 0..150,
        None => 0..number(&wanted),
    }
}

#[test]
fn random_kernels_with_textures_give_what_the_reference_gives() {
    for device in devices() {
        let mut options = RandomOptions {
            textures: true,
            ..RandomOptions::default()
        };
        if is_gpu(&device) {
            options.floats = Floats::Exact;
            options.scalars.retain(|s| *s != Scalar::F64);
            options.simdgroup_size = None;
            options.wide_atomics = false;
            options.memory_orders = false;
        }
        let mut target =
            |module: &Verified, kernel: &str, dispatch: &Dispatch, args: &mut [Arg<'static>]| {
                let program = device.compile(module, kernel);
                let run =
                    program.and_then(|p| device.queue().run_host(&p, *dispatch, args)?.wait());
                run.map(|_| ())
                    .map_err(|e: Error| -> Diagnostics { e.into_diagnostics() })
            };
        let seeds = match is_gpu(&device) && std::env::var("INVAR_RANDOM_KERNELS").is_err() {
            true => 0..30,
            false => seeds(),
        };
        let count = seeds.end - seeds.start;
        let summary =
            compare(&mut target, &options, seeds).unwrap_or_else(|e| panic!("{device:?}: {e}"));
        assert!(summary.same * 2 > count, "{device:?}: {summary:?}");
    }
}

#[test]
fn what_the_files_expect_is_so_on_every_device() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/textures");
    let mut runs = 0;
    for path in files(&folder).expect("the folder") {
        let source = std::fs::read_to_string(&path).expect("a file");
        let name = path.display().to_string();
        let module = text::parse(&name, &source).and_then(verify);
        let module = module.unwrap_or_else(|e| panic!("{name}: {e}"));
        for case in cases(&source).expect("run lines") {
            let options = Options::default();
            let mut no_files = |name: &str, _: &_| Err(format!("no file `{name}`"));
            let bound = bind(&module, &case, &options, &mut no_files);
            let bound = bound.unwrap_or_else(|e| panic!("{name}: {e}"));
            let kernel = module.kernel(&bound.kernel).expect("its kernel");
            let mut reference = owned(&bound.args);
            let of = (&module, &bound.kernel, &bound.dispatch);
            run(of.0, of.1, of.2, &mut reference, &bound.options, &mut []).expect("it runs");
            let wrong = mismatches(&module, &case, &reference, &reference, &mut no_files);
            assert!(wrong.is_empty(), "{name}: {wrong:?}");
            for device in devices() {
                for side in [Side::Start, Side::End] {
                    let mut args = owned(&bound.args);
                    let program = device.compile(&module, &bound.kernel);
                    let program = program.unwrap_or_else(|e| panic!("{name}: {device:?}: {e}"));
                    let queue = device.queue();
                    let done = run_guarded(
                        kernel,
                        &mut args,
                        side,
                        |why| panic!("{why}"),
                        |args| queue.run_host(&program, bound.dispatch, args),
                    );
                    let done = done.unwrap_or_else(|e: Error| panic!("{name}: {device:?}: {e}"));
                    done.wait()
                        .unwrap_or_else(|e| panic!("{name}: {device:?}: {e}"));
                    let wrong = mismatches(&module, &case, &args, &reference, &mut no_files);
                    assert!(wrong.is_empty(), "{name}: {device:?}: {wrong:?}");
                    runs += 1;
                }
            }
        }
    }
    assert!(runs >= 8, "only {runs} runs");
}

#[test]
fn v21_launches_give_no_pixel_coordinates_to_gradients_and_directions() {
    let source = |sample: &str| {
        format!(
            "kernel @k(%t: texture2d f32 sample, %cube: texturecube f32 sample, %depths: depthcube f32 sample,
                %s: sampler, %to: device write f32x4) {{
                %zero = const u32 0
                %c = const f32 0.5
                %r = {sample}
                store %to[%zero], %r
            }}"
        )
    };
    let gradients = "by normalized coordinates, as gradients are";
    for (sample, texture, why) in [
        (
            "texture_sample %t[%c, %c] gradient [%c, %c], [%c, %c] %s",
            "t",
            gradients,
        ),
        ("texture_gather %t[%c, %c] y %s normalized", "t", gradients),
        (
            "texture_sample %cube[%c, %c, %c] %s",
            "cube",
            "in a direction",
        ),
        (
            "texture_gather %cube[%c, %c, %c] %s",
            "cube",
            "in a direction",
        ),
        (
            "texture_gather_compare %depths[%c, %c, %c], %c %s",
            "depths",
            "in a direction",
        ),
        ("texture_sample %t[%c, %c] level %c %s", "", ""),
    ] {
        let module = text::parse("k.inv", &source(sample)).and_then(verify);
        let module = module.expect("a kernel");
        for device in devices() {
            let program = device.compile(&module, "k").expect("it compiles");
            let of = |depth| {
                let shape = TextureShape::new(PixelFormat::R32Float, 2, 2);
                let shape = shape.and_then(|s| s.with_depth(depth)).expect("a shape");
                invar_runtime::Texture::of_shape(&device, shape).expect("memory")
            };
            let (flat, cube, depths) = (of(1), of(6), of(6));
            let to = invar_runtime::ByteBuffer::zeroed(&device, 16).expect("memory");
            for words in ["pixel", "linear"] {
                let how = invar_texture::Sampler::default().with("compare_less");
                let how = how.and_then(|s| s.with(words)).expect("a sampler");
                let launched = device.queue().run(
                    &program,
                    Grid::threads(1).threadgroup(1),
                    &[
                        (&flat).into(),
                        (&cube).into(),
                        (&depths).into(),
                        how.into(),
                        (&to).into(),
                    ],
                );
                if words == "linear" || why.is_empty() {
                    launched.expect("it fits");
                    continue;
                }
                let message = launched.expect_err("it does not fit").to_string();
                let expected = format!(
                    "argument `s` of `k` is a sampler of pixel coordinates, and the kernel samples `{texture}` with it \
                     {why}: leave out `pixel`"
                );
                assert!(message.contains(&expected), "{device:?}: {message}");
            }
        }
    }
}

#[test]
fn s3_two_views_of_one_texture_overlap_where_their_texels_do() {
    let source = "
        kernel @copy(%from: texture2d f32 read, %to: texture2d f32 write) threadgroup(8) allow(out_of_bounds_loads) {
            %x = thread_position_in_grid x
            %zero = const u32 0
            %c = texture_read %from[%x, %zero]
            texture_write %to[%x, %zero], %c
        }";
    let module = text::parse("copy.inv", source).and_then(verify);
    let module = module.expect("a kernel");
    let shape = TextureShape::new(PixelFormat::R8Unorm, 4, 1).and_then(|s| s.with_depth(2));
    let shape = shape.and_then(|s| s.with_levels(2)).expect("a texture");
    for device in devices() {
        let program = device.compile(&module, "copy").expect("it compiles");
        let texture = invar_runtime::Texture::of_shape(&device, shape).expect("memory");
        texture
            .write(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
            .expect("its size");
        let grid = Grid::threads(4).threadgroup(8);
        let view = |level, element| texture.element(level, element).expect("an element");
        let copy = |from, to| device.queue().run(&program, grid, &[from, to]);
        copy(view(0, 0), view(0, 1)).expect("two elements lie apart");
        copy(view(1, 1), view(0, 0)).expect("two levels do");
        let left = texture.read().expect("its bytes");
        assert_eq!(
            left,
            [11, 12, 0, 0, 1, 2, 3, 4, 9, 10, 11, 12],
            "{device:?}"
        );
        let refused = copy(view(0, 1), view(0, 1)).expect_err("one element twice");
        assert!(
            refused.to_string().contains("overlap in memory"),
            "{refused}"
        );
        assert!(texture.element(1, 2).is_err() && texture.element(2, 0).is_err());
        texture.clear([0.5, 0.0, 0.0, 0.0]).expect("a colour");
        assert_eq!(texture.read().expect("its bytes"), [128; 12]);
    }
}
