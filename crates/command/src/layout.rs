//! `invar layout`: a layout as a table and as a picture.

use std::path::{Path, PathBuf};

use crate::files::Destination;
use clap::Args;
use invar_ir::diagnostic::path_text;
use invar_layout::{Banks, IntTuple, Layout, Picture, SwizzledLayout};

use crate::console::show;
use crate::outcome::{Refusal, Verdict};

#[derive(Args)]
pub struct LayoutArgs {
    /// The layout, such as "((4,2),8):((1,32),4)", or with a swizzle "Sw<3,0,3> o (8,8):(8,1)".
    layout: String,
    /// Show who owns each element of a tile of this shape: the layout maps (thread, value) to it.
    #[arg(long, value_name = "SHAPE", conflicts_with = "lanes")]
    tile: Option<String>,
    /// Show the banks of one access: lane i touches the coordinate with index LANES(i).
    #[arg(long, value_name = "LANES")]
    lanes: Option<String>,
    /// Bytes of an element, for --lanes.
    #[arg(long, value_name = "BYTES", default_value_t = 4, requires = "lanes")]
    element_bytes: u32,
    /// Write the picture to this file, instead of layout.svg or the next free layout-2.svg, ...
    #[arg(long, value_name = "FILE", conflicts_with = "no_picture")]
    svg: Option<PathBuf>,
    /// Replace the file of --svg if it holds something else.
    #[arg(long, requires = "svg")]
    force: bool,
    /// Write no picture.
    #[arg(long)]
    no_picture: bool,
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: &str,
    what: &str,
) -> Result<T, Refusal> {
    text.parse()
        .map_err(|e| Refusal(format!("`{text}` is not a {what}: {e}")))
}

pub fn layout(args: &LayoutArgs) -> Result<Verdict, Refusal> {
    let picture = match (&args.tile, &args.lanes) {
        (Some(tile), _) => {
            let owners: Layout = parse(&args.layout, "layout")?;
            let tile: IntTuple = parse(tile, "shape")?;
            Picture::threads(&owners, &tile)?
        }
        (None, Some(lanes)) => {
            let memory: SwizzledLayout = parse(&args.layout, "layout")?;
            let lanes: Layout = parse(lanes, "layout")?;
            Picture::banks(memory, &lanes, args.element_bytes, Banks::default())?
        }
        (None, None) => Picture::offsets(parse::<SwizzledLayout>(&args.layout, "layout")?)?,
    };
    show(picture.table().trim_end());
    if args.no_picture {
        return Ok(Verdict::Clean);
    }
    let svg = picture.svg();
    let path = match &args.svg {
        Some(path) if args.force || !path.is_file() || holds(path, &svg) => path.clone(),
        Some(path) => {
            return Err(Refusal(format!(
                "{} holds something else; --force replaces it",
                path_text(path)
            )));
        }
        None => free_name(&svg),
    };
    if !holds(&path, &svg) {
        Destination::of(&path)?.write(&[svg.as_bytes()])?;
    }
    show(&format!("picture: {}", path_text(&path)));
    Ok(Verdict::Clean)
}

/// Whether this picture is there already. A pipe holds nothing, and reading it would take from it.
fn holds(path: &Path, svg: &str) -> bool {
    path.is_file() && std::fs::read(path).is_ok_and(|bytes| bytes == svg.as_bytes())
}

/// The first of layout.svg, layout-2.svg, ... that is free or holds this picture already.
fn free_name(svg: &str) -> PathBuf {
    let names = std::iter::once("layout.svg".to_string())
        .chain((2..).map(|number: u32| format!("layout-{number}.svg")));
    let mut paths = names.map(PathBuf::from);
    let free = paths.find(|path| !path.exists() || holds(path, svg));
    free.unwrap_or_else(|| PathBuf::from("layout.svg"))
}
