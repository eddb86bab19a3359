//! Textures and pictures at the command line.

use super::*;

const GRADIENT: &str = "\
kernel @gradient(%t: texture2d f32 write) threadgroup(8, 8) allow(out_of_bounds_stores) {
    %x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %scale = const f32 0.00390625
    %cx = cast f32 %x
    %cy = cast f32 %y
    %r = mul %cx, %scale
    %g = mul %cy, %scale
    %b = const f32 0.5
    %a = const f32 1.0
    %c = construct f32x4 %r, %g, %b, %a
    texture_write %t[%x, %y], %c
}
";

fn resize() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/resize.inv")
}

/// A picture of that size in a folder.
fn picture(folder: &Folder, name: &str, size: &str) -> PathBuf {
    let file = folder.file("gradient.inv", GRADIENT);
    let path = folder.path(name);
    let arg = format!("t=texture(rgba8unorm, {size})");
    let out = format!("t=@{}", text(&path));
    expect(0, &["run", text(&file), "--arg", &arg, "--out", &out]);
    path
}

#[test]
fn a_picture_is_resized_to_the_same_bytes_on_every_device() {
    let folder = Folder::new();
    let photo = picture(&folder, "photo.png", "64, 48");
    let src = format!("src=@{}", text(&photo));
    let mut pictures = Vec::new();
    for device in ["cpu", "checked", "reference"] {
        let small = folder.path(&format!("{device}.png"));
        let out = format!("dst=@{}", text(&small));
        let dst = "dst=texture(rgba8unorm, 20, 15)";
        let file = resize();
        let args = [
            "run",
            text(&file),
            "--arg",
            &src,
            "--arg",
            dst,
            "--out",
            &out,
        ];
        let (told, _) = expect(0, &[&args[..], &["--device", device]].concat());
        assert!(told.contains("wrote dst to"), "{told}");
        pictures.push(std::fs::read(&small).expect("a picture"));
    }
    assert!(pictures.iter().all(|p| p == &pictures[0]));
    // What was written is a picture that is read: the same size again changes nothing.
    let again = folder.path("again.npy");
    let small = format!("src=@{}", text(&folder.path("cpu.png")));
    let out = format!("dst=@{}", text(&again));
    let dst = "dst=texture(rgba8unorm, 20, 15)";
    let file = resize();
    expect(
        0,
        &[
            "run",
            text(&file),
            "--arg",
            &small,
            "--arg",
            dst,
            "--out",
            &out,
        ],
    );
    let array = npy::read(&again).expect("an array");
    assert_eq!(array.shape, [15, 20, 4]);
    // The middle of the first texel of 20 in 64: 1.6, less half a texel, of 256 a step.
    assert_eq!(array.bytes[..4], [1, 1, 128, 255]);
    let (out, _) = expect(0, &["check", text(&resize())]);
    assert!(out.starts_with("clean @resize"), "{out}");
}

#[test]
fn a_race_for_a_texel_is_found() {
    let folder = Folder::new();
    let race = GRADIENT.replace(
        "    texture_write %t[%x, %y], %c\n",
        "    texture_write %t[%x, %y], %c
    barrier threadgroup [device]
    %seven = const u32 7
    %other = sub %seven, %x
    %theirs = texture_read %t[%other, %y]
    texture_write %t[%x, %y], %theirs\n",
    );
    let race = race.replace("texture2d f32 write", "texture2d f32 read_write");
    let file = folder.file("race.inv", &race);
    let arg = "t=texture(rgba32float, 8, 1)";
    let (_, err) = expect(1, &["check", text(&file), "--arg", arg]);
    assert!(err.contains("error[data-race]"), "{err}");
    assert!(err.contains("barrier threadgroup [texture]"), "{err}");
    let fixed = folder.file("fixed.inv", &race.replace("[device]", "[texture]"));
    let (_, err) = expect(1, &["check", text(&fixed), "--arg", arg]);
    // What it reads, the other thread then writes.
    assert!(err.contains("error[data-race]"), "{err}");
}

#[test]
fn texels_beyond_the_edges_are_told_of_as_texels() {
    let folder = Folder::new();
    let guarded = GRADIENT.replace(" allow(out_of_bounds_stores)", "");
    let file = folder.file("beyond.inv", &guarded);
    let arg = "t=texture(r8unorm, 4, 4)";
    let (_, err) = expect(1, &["check", text(&file), "--grid", "8,8", "--arg", arg]);
    assert!(
        err.contains("guard the access or pass a larger texture"),
        "{err}"
    );
}

/// Copies a texture to another one by a kernel, which is then in the file.
fn copy(folder: &Folder, src: &str, dst: &str, file: &Path) {
    let copy = folder.file("copy.inv", COPY);
    let (src, dst) = (format!("src={src}"), format!("dst={dst}"));
    let to = format!("dst=@{}", text(file));
    let run = [
        "run",
        text(&copy),
        "--arg",
        &src,
        "--arg",
        &dst,
        "--out",
        &to,
    ];
    expect(0, &run);
}

/// Copies a texture to one of another format, and gives the codes that it then has.
fn copied(folder: &Folder, src: &str, dst: &str) -> Array {
    let out = folder.path("copied.npy");
    copy(folder, src, dst, &out);
    npy::read(&out).expect("an array")
}

const COPY: &str = "\
kernel @copy(%src: texture2d f32 read, %dst: texture2d f32 write) threadgroup(8, 8) {
    %x = thread_position_in_grid x
    %y = thread_position_in_grid y
    %c = texture_read %src[%x, %y]
    texture_write %dst[%x, %y], %c
}
";

#[test]
fn two_channels_are_a_picture_of_red_and_green() {
    let folder = Folder::new();
    for (format, codes, whole) in [
        (
            "rg8unorm",
            "200, 100, 3, 0",
            [200, 100, 0, 255, 3, 0, 0, 255],
        ),
        (
            "rg16unorm",
            "51400, 25700, 771, 0",
            [200, 100, 0, 255, 3, 0, 0, 255],
        ),
    ] {
        let file = folder.path("rg.png");
        let src = format!("texture({format}, 2, 1, [{codes}])");
        copy(&folder, &src, &format!("texture({format}, 2, 1)"), &file);
        let photo = format!("@{}", text(&file));
        let seen = copied(&folder, &photo, "texture(rgba8unorm, 2, 1)");
        assert_eq!(seen.bytes, whole, "{format}");
        // A picture's codes are those of sRGB, as they stand.
        let srgb = format!("texture(rgba8unorm_srgb, 2, 1, @\"{}\")", text(&file));
        let seen = copied(&folder, &srgb, "texture(rgba8unorm_srgb, 2, 1)");
        assert_eq!(seen.bytes, whole, "{format}");
        let again = format!("texture({format}, 2, 1, @\"{}\")", text(&file));
        let seen = copied(&folder, &again, "texture(rg8unorm, 2, 1)");
        assert_eq!(seen.bytes, [200, 100, 3, 0], "{format}");
    }
}

#[test]
fn pictures_of_16_bits_keep_all_of_them() {
    let folder = Folder::new();
    let file = folder.path("deep.png");
    let codes = [0x1234u16, 0xfedc, 0x00ff, 0x0180];
    let list = codes.map(|code| code.to_string()).join(", ");
    let src = format!("texture(rgba16unorm, 1, 1, [{list}])");
    copy(&folder, &src, "texture(rgba16unorm, 1, 1)", &file);
    let same: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
    let photo = format!("@{}", text(&file));
    let said = |format: &str| format!("texture({format}, 1, 1, @\"{}\")", text(&file));
    for src in [photo.clone(), said("rgba16unorm"), said("rgba32float")] {
        let seen = copied(&folder, &src, "texture(rgba16unorm, 1, 1)");
        assert_eq!(seen.bytes, same, "{src}");
    }
    // 0x00ff is 0.99 of a code of 8 bits, and 0x0180 1.49.
    let seen = copied(&folder, &said("rgba8unorm"), "texture(rgba8unorm, 1, 1)");
    assert_eq!(seen.bytes, [0x12, 0xfe, 1, 1]);
    // Channels in another order are the colours that they are called.
    let seen = copied(&folder, &said("bgra8unorm"), "texture(rgba8unorm, 1, 1)");
    assert_eq!(seen.bytes, [0x12, 0xfe, 1, 1]);
}

/// A PNG file whose pixels are numbers of so many bits of colours of a palette, by rows of bytes.
fn png_with_palette(
    size: [u32; 2],
    bits: u8,
    palette: &[u8],
    alphas: &[u8],
    rows: &[&[u8]],
) -> Vec<u8> {
    let checksum = |bytes: &[u8]| {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
            })
        })
    };
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let body = [&kind[..], data].concat();
        let length = (data.len() as u32).to_be_bytes();
        [&length[..], &body, &checksum(&body).to_be_bytes()].concat()
    };
    let [width, height] = size.map(u32::to_be_bytes);
    let head = [&width[..], &height, &[bits, 3, 0, 0, 0]].concat();
    // No row has a filter, and nothing is compressed.
    let pixels: Vec<u8> = rows.iter().flat_map(|row| [&[0], *row].concat()).collect();
    let (mut a, mut b) = (1u32, 0u32);
    for byte in &pixels {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    let length = pixels.len() as u16;
    let data = [
        &[0x78, 1, 1][..],
        &length.to_le_bytes(),
        &(!length).to_le_bytes(),
        &pixels,
        &(b << 16 | a).to_be_bytes(),
    ];
    let mut file = vec![0x89, b'P', b'N', b'G', 13, 10, 26, 10];
    file.extend(chunk(b"IHDR", &head));
    if !palette.is_empty() {
        file.extend(chunk(b"PLTE", palette));
    }
    if !alphas.is_empty() {
        file.extend(chunk(b"tRNS", alphas));
    }
    file.extend(chunk(b"IDAT", &data.concat()));
    file.extend(chunk(b"IEND", &[]));
    file
}

#[test]
fn pixels_of_a_palette_have_its_colours_or_are_damage() {
    let folder = Folder::new();
    let file = folder.path("few.png");
    let source = folder.file("copy.inv", COPY);
    let src = format!("src=@{}", text(&file));
    let palette = [1, 2, 3, 40, 50, 60, 200, 100, 0];
    // Four pixels in a byte: of the fourth, behind the row, nothing is asked.
    let few = png_with_palette([3, 2], 2, &palette, &[9], &[&[0b0001_1011], &[0b1000_0111]]);
    std::fs::write(&file, few).expect("written");
    let photo = format!("@{}", text(&file));
    let seen = copied(&folder, &photo, "texture(rgba8unorm, 3, 2)");
    let colours = [[1, 2, 3, 9], [40, 50, 60, 255], [200, 100, 0, 255]];
    let expected = [0, 1, 2, 2, 0, 1].map(|number| colours[number]);
    assert_eq!(seen.bytes, expected.as_flattened());

    let out = folder.path("out.npy");
    let refused = |bytes: Vec<u8>| {
        std::fs::write(&file, bytes).expect("written");
        let out_arg = format!("dst=@{}", text(&out));
        let dst = "dst=texture(rgba8unorm, 2, 2)";
        let args = [
            "run",
            text(&source),
            "--arg",
            &src,
            "--arg",
            dst,
            "--out",
            &out_arg,
        ];
        let (_, err) = expect(2, &args);
        assert_eq!(err.trim_end().lines().count(), 1, "{err}");
        assert!(!out.exists());
        err
    };
    let beyond = refused(png_with_palette(
        [2, 2],
        8,
        &palette,
        &[],
        &[&[0, 1], &[2, 3]],
    ));
    let why = "few.png: is a damaged PNG file: its pixel at column 1 of row 1 has colour 3 of a palette of 3";
    assert!(beyond.contains(why), "{beyond}");
    let beyond = refused(png_with_palette(
        [2, 2],
        1,
        &palette[..3],
        &[],
        &[&[0x80], &[0]],
    ));
    let why = "its pixel at column 0 of row 0 has colour 1 of a palette of 1";
    assert!(beyond.contains(why), "{beyond}");
    let none = refused(png_with_palette([2, 2], 8, &[], &[], &[&[0, 0], &[0, 0]]));
    assert!(
        none.contains("few.png: is a damaged PNG file: it has no palette"),
        "{none}"
    );
    let ragged = [&palette[..], &[7]].concat();
    let ragged = refused(png_with_palette(
        [2, 2],
        8,
        &ragged,
        &[],
        &[&[0, 0], &[0, 0]],
    ));
    let why = "few.png: is a damaged PNG file: its palette has 10 bytes, of which a colour has 3";
    assert!(ragged.contains(why), "{ragged}");
    let whole = png_with_palette([2, 2], 8, &palette, &[], &[&[0, 0], &[0, 0]]);
    let pixels = whole.windows(4).position(|w| w == b"IDAT");
    let mut bare = whole[..pixels.expect("its pixels") - 4].to_vec();
    bare.extend(&whole[whole.len() - 12..]);
    let bare = refused(bare);
    let why = "few.png: is a damaged PNG file: it has no pixels";
    assert!(bare.contains(why), "{bare}");
    for size in [[0, 2], [2, 0], [0, 0]] {
        let empty = refused(png_with_palette(size, 8, &palette, &[], &[]));
        let why = "few.png: is a picture without pixels: a texture has 1 at least";
        assert!(empty.contains(why), "{empty}");
    }
}

#[test]
fn bad_pictures_and_textures_are_refused_in_a_sentence() {
    let folder = Folder::new();
    let photo = picture(&folder, "photo.png", "16, 16");
    let file = resize();
    let small = folder.path("small.png");
    let out = format!("dst=@{}", text(&small));
    let run = |src: &str, dst: &str| {
        let src = format!("src={src}");
        let dst = format!("dst={dst}");
        let args = [
            "run",
            text(&file),
            "--arg",
            &src,
            "--arg",
            &dst,
            "--out",
            &out,
        ];
        let (_, err) = expect(2, &args);
        assert_eq!(err.trim_end().lines().count(), 1, "{err}");
        assert!(!small.exists());
        err
    };
    let good = format!("@{}", text(&photo));
    let whole = std::fs::read(&photo).expect("a picture");
    let cut = folder.path("cut.png");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    let cut = format!("@{}", text(&cut));
    let no_picture = folder.path("words.png");
    std::fs::write(&no_picture, "no picture").expect("written");
    let words = format!("@{}", text(&no_picture));
    let fine = "texture(rgba8unorm, 4, 4)";
    assert!(run(&words, fine).contains("words.png: is not a PNG file"));
    assert!(run(&cut, fine).contains("cut.png: is a damaged PNG file: it ends too early"));
    let mut other = whole.clone();
    other[30] ^= 1;
    let broken = folder.path("broken.png");
    std::fs::write(&broken, other).expect("written");
    let broken = format!("@{}", text(&broken));
    assert!(run(&broken, fine).ends_with(
        "broken.png: is a damaged PNG file: the checksum of its IHDR part does not fit\n"
    ));
    let narrow = format!("texture(rgba8unorm, 8, 16, @\"{}\")", text(&photo));
    assert!(run(&narrow, fine).contains("is a picture of 16x16, and the texture one of 8x16"));
    let levels = format!("texture(rgba8unorm, 16, 16, levels 2, @{})", text(&photo));
    assert!(run(&levels, fine).contains(
        "is a picture of one level, and the texture has 2: leave out `levels 2`, or give the texels of all, level after \
         level, as a .npy file"
    ));
    let signed = format!("texture(rgba8sint, 16, 16, @\"{}\")", text(&photo));
    assert!(run(&signed, fine).contains("is a picture, which is not read as rgba8sint"));
    let wide = run("texture(r8unorm, 70000, 1)", fine);
    assert!(
        wide.contains("only a texture_buffer has more than 65536"),
        "{wide}"
    );
    let huge = run("texture(rgba32float, 20000, 20000)", fine);
    assert!(
        huge.contains("an rgba32float texture of 20000x20000x1: 6400000000 bytes are more than"),
        "{huge}"
    );
    assert!(run("@nowhere.png", fine).contains("nowhere.png: no such file"));
    assert!(run("@data.npy", fine).contains("data.npy is not a picture"));
    assert!(run(&good, "texture(rgba8unorm, 0, 4)").contains("not 0x4"));
    assert!(run(&good, "texture(rgba8unorm, 70000, 4)").contains("not 70000x4"));
    assert!(run(&good, "texture(rgba9unorm, 4, 4)").contains("there is no pixel format"));
    assert!(run("zeros(16)", fine).contains("a texture parameter gets a texture"));
    assert!(run(&good, "texture(rgba8uint, 4, 4)").contains("is a texture of rgba8uint"));
    assert!(run(&good, "texture(r32float, 4, 4)").contains("PNG files have no r32float"));
    assert!(run(&good, "texture(r8unorm, 2, 2, [1, 2, 3])").contains("has 4 numbers, found 3"));
    // What is wrong with a texture is said, and not how other data are written.
    assert!(run(&good, "texture(rgba8unorm, 0, 4)").ends_with("not 0x4)\n"));
    let photograph = folder.path("small.jpg");
    let dst = format!("dst=@{}", text(&photograph));
    let src = format!("src={good}");
    let args = [
        "run",
        text(&file),
        "--arg",
        &src,
        "--arg",
        "dst=texture(rgba8unorm, 4, 4)",
        "--out",
        &dst,
    ];
    let (_, err) = expect(2, &args);
    assert!(
        err.contains("small.jpg is a picture of a kind that is not written; write dst=@dst.png"),
        "{err}"
    );
    assert!(!photograph.exists());
}

#[test]
fn formats_of_wgsl_are_given_for_what_is_written() {
    let file = resize();
    let wgsl = ["emit", text(&file), "--target", "wgsl"];
    let (out, _) = expect(0, &[&wgsl[..], &["--format", "dst=rgba16float"]].concat());
    assert!(
        out.contains("texture_storage_2d<rgba16float, write>"),
        "{out}"
    );
    let (_, err) = expect(1, &wgsl);
    assert!(err.contains("such as dst=rgba8unorm"), "{err}");
    let says = |target: &str, given: &str, code, words: &str| {
        let args = ["emit", text(&file), "--target", target, "--format", given];
        let (_, err) = expect(code, &args);
        assert!(err.contains(words), "{err}");
    };
    says(
        "wgsl",
        "dst=r8unorm",
        1,
        "WGSL without extensions has no `write` texture of r8unorm",
    );
    says(
        "wgsl",
        "dst=rgba8uint",
        1,
        "its components are f32, and those of rgba8uint are u32",
    );
    let counts = "kernel @counts(%t: texture2d u32 write) threadgroup(8) {\n    %x = thread_position_in_grid x\n    \
                  %c = construct u32x4 %x\n    texture_write %t[%x, %x], %c\n}\n";
    let folder = Folder::new();
    let counts = folder.file("counts.inv", counts);
    let (_, err) = expect(1, &["emit", text(&counts), "--target", "wgsl"]);
    assert!(err.contains("such as t=rgba8uint"), "{err}");
    says("wgsl", "src=rgba8unorm", 2, "writes no texture `src`");
    says("wgsl", "dst=rgb", 2, "there is no pixel format `rgb`");
    says("msl", "dst=rgba8unorm", 2, "only WGSL names the formats");
}

#[test]
fn fields_of_a_uniform_may_stand_in_quotes() {
    let folder = Folder::new();
    let shader = "struct Params { filterDim: u32, blockDim: u32 }
        @group(0) @binding(0) var<uniform> params: Params;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() { y[0] = params.filterDim * 100 + params.blockDim; }";
    let file = folder.file("blur.wgsl", shader);
    let arg = "params={\"filterDim\": 3, blockDim: 7}";
    let run = [
        "run",
        text(&file),
        "--groups",
        "1",
        "--arg",
        "y=zeros(1)",
        "--arg",
    ];
    let (out, _) = expect(0, &[&run[..], &[arg]].concat());
    assert!(out.contains("y = [307]"), "{out}");
    let wrong = "params={\"filter\": 3}";
    let (_, err) = expect(2, &[&run[..], &[wrong]].concat());
    assert!(
        err.contains("there is no field `filter`; there is `filterDim`, `blockDim`"),
        "{err}"
    );
}

#[test]
fn names_of_files_in_a_texture_need_no_quotes() {
    let folder = Folder::new();
    let whole = std::fs::read(picture(&folder, "photo.png", "4, 4")).expect("a picture");
    for name in ["8.png", "a-b.png", "a b.png", "p/in.png", "a.b.png"] {
        let file = folder.path(name);
        let above = file.parent().expect("a folder");
        std::fs::create_dir_all(above).expect("made");
        std::fs::write(&file, &whole).expect("written");
        let plain = copied(
            &folder,
            &format!("@{}", text(&file)),
            "texture(rgba8unorm, 4, 4)",
        );
        for (before, after) in [("", ""), ("\"", "\""), ("", " ")] {
            let said = format!("texture(rgba8unorm, 4, 4, @{before}{}{after})", text(&file));
            let seen = copied(&folder, &said, "texture(rgba8unorm, 4, 4)");
            assert_eq!(seen.bytes, plain.bytes, "{said}");
        }
    }
    let odd = folder.path("a; b.png");
    std::fs::write(&odd, &whole).expect("written");
    let said = format!("texture(rgba8unorm, 4, 4, @\"{}\")", text(&odd));
    copied(&folder, &said, "texture(rgba8unorm, 4, 4)");
    let source = folder.file("copy.inv", COPY);
    for (said, why) in [
        ("@", "found `@` without a name"),
        ("@p/in.png 3", "p/in.png 3: no such file"),
        ("@p/in.png; 3", "expected `)`, found"),
    ] {
        let src = format!("src=texture(rgba8unorm, 4, 4, {said})");
        let dst = "dst=texture(rgba8unorm, 4, 4)";
        let (_, err) = expect(2, &["run", text(&source), "--arg", &src, "--arg", dst]);
        assert!(err.contains(why), "{said}: {err}");
    }
}

/// A shader says the format of a storage texture; an option says another.
#[test]
fn code_has_the_formats_that_a_shader_says() {
    let folder = Folder::new();
    let file = folder.file(
        "draws.wgsl",
        "@group(0) @binding(0) var dst: texture_storage_2d<rgba16float, write>;
        @group(0) @binding(1) var src: texture_storage_2d<r32uint, read>;
        @compute @workgroup_size(8, 8)
        fn draws(@builtin(global_invocation_id) g: vec3u) {
            textureStore(dst, g.xy, vec4f(f32(textureLoad(src, g.xy).x)));
        }",
    );
    let emit = ["emit", text(&file), "--target", "wgsl"];
    let (out, _) = expect(0, &emit);
    assert!(
        out.contains("texture_storage_2d<rgba16float, write>"),
        "{out}"
    );
    let other = ["--format", "dst=rgba8unorm"];
    let (out, _) = expect(0, &[&emit[..], &other].concat());
    assert!(
        out.contains("texture_storage_2d<rgba8unorm, write>"),
        "{out}"
    );
    let again = folder.file("again.wgsl", &out);
    expect(0, &["print", text(&again)]);
    expect(0, &["emit", text(&file), "--target", "msl"]);
    let (printed, _) = expect(0, &["print", text(&file)]);
    let printed = folder.file("draws.inv", &printed);
    let (_, err) = expect(1, &["emit", text(&printed), "--target", "wgsl"]);
    assert!(err.contains("such as dst=rgba8unorm"), "{err}");
}
