//! Pictures: those of the documentation are compared with the committed files (`BLESS=1` rewrites
//! them), and what every picture must contain is checked on small ones.

use invar_layout::{
    Banks, Error, Layout, MAX_CELLS, Picture, SwizzledLayout, Tiler, thread_value_layout,
};
use std::path::PathBuf;

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn swizzled(text: &str) -> SwizzledLayout {
    text.parse().unwrap()
}

fn documentation() -> Vec<(&'static str, Picture)> {
    let column = layout("8:1");
    let (tile, owners) =
        thread_value_layout(&layout("(4,8):(8,1)"), &layout("(2,2):(2,1)")).unwrap();
    let tiler: Tiler = "<2,4>".parse().unwrap();
    let tiles = layout("(4,8):(8,1)").zipped_divide(&tiler).unwrap();
    let (block, grid) = (layout("(2,2):(1,2)"), layout("(2,3):(3,1)"));
    let banks =
        |memory: &str| Picture::banks(swizzled(memory), &column, 4, Banks::default()).unwrap();
    let offsets = |layout: Layout| Picture::offsets(layout).unwrap();
    vec![
        ("rows", offsets(layout("(4,8):(8,1)"))),
        ("nested", offsets(layout("((4,2),8):((1,32),4)"))),
        ("tiles", offsets(tiles)),
        ("blocked", offsets(block.blocked_product(&grid).unwrap())),
        ("raked", offsets(block.raked_product(&grid).unwrap())),
        ("threads", Picture::threads(&owners, &tile).unwrap()),
        ("conflict", banks("(8,32):(32,1)")),
        ("no-conflict", banks("Sw<3,0,5> o (8,32):(32,1)")),
        (
            "swizzle",
            Picture::offsets(swizzled("Sw<3,0,3> o (8,8):(8,1)")).unwrap(),
        ),
    ]
}

fn docs() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
}

#[test]
fn committed_pictures_are_what_the_code_draws() {
    let folder = docs().join("layouts");
    let bless = std::env::var_os("BLESS").is_some();
    let mut expected: Vec<String> = Vec::new();
    for (name, picture) in documentation() {
        let file = folder.join(format!("{name}.svg"));
        let svg = picture.svg();
        if bless {
            std::fs::write(&file, &svg).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            committed == svg,
            "docs/layouts/{name}.svg differs: run with BLESS=1 and look at it"
        );
        assert!(svg.len() < 32 * 1024, "{name}.svg has {} bytes", svg.len());
        expected.push(format!("{name}.svg"));
    }
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(
        found, expected,
        "every file in docs/layouts is drawn by this test"
    );
}

#[test]
fn the_page_shows_every_picture() {
    let page = std::fs::read_to_string(docs().join("layouts.md")).unwrap();
    for (name, _) in documentation() {
        assert!(
            page.contains(&format!("](layouts/{name}.svg)")),
            "{name} is not shown"
        );
    }
}

/// The text between `>` and `</text>` of every text element.
fn texts(svg: &str) -> Vec<&str> {
    svg.split("</text>")
        .filter_map(|part| {
            part.rsplit_once("<text")
                .and_then(|(_, text)| text.split_once('>'))
        })
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn every_offset_is_drawn_once_in_its_row() {
    let svg = Picture::offsets(layout("(3,4):(100,1000)")).unwrap().svg();
    let texts = texts(&svg);
    let cells: Vec<&str> = texts
        .iter()
        .copied()
        .filter(|t| !t.starts_with("offset") && t.ends_with("00"))
        .collect();
    let wanted = "1000 2000 3000 100 1100 2100 3100 200 1200 2200 3200";
    assert_eq!(cells, wanted.split(' ').collect::<Vec<_>>());
    assert_eq!(
        texts.iter().filter(|text| **text == "0").count(),
        3,
        "heads of row and column, cell"
    );
    assert!(
        texts.contains(&"offset 0") && texts.contains(&"offset 3200"),
        "the legend"
    );
}

#[test]
fn elements_are_balanced_and_text_is_escaped() {
    let picture = Picture::offsets(swizzled("Sw<1,0,1> o (2,2):(2,1)")).unwrap();
    let svg = picture.titled("a < b & 'c' \"d\"").svg();
    assert!(svg.contains("aria-label='a &lt; b &amp; &#39;c&#39; &quot;d&quot;'"));
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert!(svg.ends_with("</svg>\n") && svg.matches("<svg").count() == 1);
    assert!(!svg.contains("< b"));
}

#[test]
fn a_layout_of_one_mode_is_one_row() {
    assert_eq!(
        Picture::offsets(layout("4:3")).unwrap().table(),
        "4:3\n    0  1  2  3\n ┌──────────────┐\n │  0  3  6  9  │\n └──────────────┘\n"
    );
    assert_eq!(
        Picture::offsets(layout("():()")).unwrap().table(),
        "():()\n    0\n ┌─────┐\n │  0  │\n └─────┘\n"
    );
}

#[test]
fn modes_after_the_second_run_across() {
    let table = Picture::offsets(layout("(2,2,2):(1,10,100)"))
        .unwrap()
        .table();
    let heads: Vec<_> = table.lines().skip(1).take(2).map(str::trim).collect();
    assert_eq!(
        heads[0].split_whitespace().collect::<Vec<_>>(),
        ["0", "1", "2", "3"]
    );
    assert_eq!(
        heads[1].split_whitespace().collect::<Vec<_>>(),
        ["(0,0)", "(1,0)", "(0,1)", "(1,1)"]
    );
    let cells: Vec<String> = table
        .lines()
        .filter(|line| line.contains('│'))
        .map(|line| {
            line.replace('│', " ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(cells, ["0 0 10 100 110", "1 1 11 101 111"]);
}

#[test]
fn owners_show_thread_and_value() {
    let (tile, owners) =
        thread_value_layout(&layout("(1,2):(1,1)"), &layout("(2,1):(1,1)")).unwrap();
    let table = Picture::threads(&owners, &tile).unwrap().table();
    assert!(table.contains("0 │  T0 V0  T1 V0  │"), "{table}");
    assert!(table.contains("1 │  T0 V1  T1 V1  │"), "{table}");
    // An element without an owner is blank, one with two shows it.
    let table = Picture::threads(&layout("(2,2):(0,1)"), &"4".parse().unwrap())
        .unwrap()
        .table();
    assert!(table.contains("T0+ V0  T0+ V1"), "{table}");
    let explained = "+: several threads and values own an element, the first is shown";
    assert!(table.contains(explained), "{table}");
    let svg = Picture::threads(&layout("(2,2):(0,1)"), &"4".parse().unwrap())
        .unwrap()
        .svg();
    assert!(svg.contains(">no owner<") && svg.contains(explained));
    assert!(
        !Picture::threads(&owners, &tile)
            .unwrap()
            .svg()
            .contains("+:")
    );
}

#[test]
fn conflicts_are_marked_and_counted() {
    let table = |memory: &str| {
        Picture::banks(swizzled(memory), &layout("4:1"), 4, Banks::default())
            .unwrap()
            .table()
    };
    let plain = table("(4,32):(32,1)");
    assert_eq!(plain.matches('!').count(), 4, "{plain}");
    assert!(
        plain.ends_with("4 rounds instead of 1: 3 lost to conflicts\n"),
        "{plain}"
    );
    let spread = table("Sw<2,0,5> o (4,32):(32,1)");
    assert_eq!(
        (spread.matches('!').count(), spread.matches('*').count()),
        (0, 4),
        "{spread}"
    );
    assert!(spread.ends_with("no conflicts: 1 round\n"), "{spread}");
}

#[test]
fn pictures_stop_at_the_limit() {
    let side = 128;
    assert_eq!(side * side, MAX_CELLS);
    let at_limit = Picture::offsets(layout("(128,128):(128,1)")).unwrap();
    assert!(at_limit.svg().len() < 4 << 20);
    for past in [
        "(128,129):(129,1)",
        "(1,16385):(0,1)",
        "(3000000000,3000000000):(1,1)",
    ] {
        let error = Picture::offsets(layout(past)).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Limit {
                    limit: MAX_CELLS,
                    ..
                }
            ),
            "{past}: {error}"
        );
    }
}

#[test]
fn pictures_refuse_what_does_not_belong_together() {
    let tile = "(2,2)".parse().unwrap();
    let refused = [
        Picture::threads(&layout("8:1"), &tile),
        Picture::threads(&layout("(4,2):(1,4)"), &tile),
        Picture::threads(&layout("(2,2):(1,-2)"), &tile),
        Picture::banks(layout("(2,2):(1,2)"), &layout("5:1"), 4, Banks::default()),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Picture { .. })), "{refused:?}");
    }
    assert!(Picture::threads(&layout("(2,2):(1,2)"), &tile).is_ok());
}
