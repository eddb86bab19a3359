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
    assert!(run(&words, fine).contains("words.png: is no PNG file"));
    assert!(run(&cut, fine).contains("cut.png: is no PNG file, or a damaged one"));
    assert!(run("@nowhere.png", fine).contains("nowhere.png: no such file"));
    assert!(run("@data.npy", fine).contains("data.npy is no picture"));
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
        "WGSL has no `write` texture of r8unorm",
    );
    says(
        "wgsl",
        "dst=rgba8uint",
        1,
        "its components are f32, and those of rgba8uint are u32",
    );
    says("wgsl", "src=rgba8unorm", 2, "writes no texture `src`");
    says("wgsl", "dst=rgb", 2, "there is no pixel format `rgb`");
    says("msl", "dst=rgba8unorm", 2, "only WGSL names the formats");
}
