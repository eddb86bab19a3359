//! Launches: those that an author wrote, those that a solver found, and running one under the checkers.

use std::collections::BTreeMap;

use invar_interp::case::{Bound, bind};
use invar_interp::{Arg, CheckOptions, Dispatch, Options, check};
use invar_ir::requires::Field;
use invar_ir::text::case::{Expr, ExprKind, Grid, RunCase, cases};
use invar_ir::{
    ConstantKey, Diagnostic, Diagnostics, Dim, Dimension, ElementType, InstKind, Kernel, Memory,
    Module, ParamKind, Required, Rule, SamplerSource, Scalar, TextureType, Type, Verified,
};
use invar_texture::TextureShape;

/// The numbers of a launch, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Threads of the grid.
    pub grid: [Option<i128>; 3],
    /// Threads of a full threadgroup.
    pub threadgroup: [Option<i128>; 3],
    /// Threadgroups, where the grid is not known in threads.
    pub groups: [Option<i128>; 3],
    /// By parameter: an integer's value, a buffer's length in elements.
    pub numbers: Vec<Option<i128>>,
    /// Texels of textures in a direction, by the place of the parameter.
    pub texels: BTreeMap<(usize, Dim), i128>,
    /// Levels of textures, by the place of the parameter.
    pub levels: BTreeMap<usize, i128>,
    /// Samples of their texels.
    pub samples: BTreeMap<usize, i128>,
    /// What the first element of buffers holds, by the place of the parameter and the location in the element.
    pub fields: BTreeMap<(usize, u32), i128>,
    /// By function constant.
    pub constants: Vec<Option<i128>>,
    /// Threads of a simdgroup, where that matters and the kernel does not say it.
    pub simdgroup: Option<i128>,
    /// Elements of buffers that the dispatch does not write: those that matter.
    pub contents: BTreeMap<Memory, BTreeMap<u64, i128>>,
}

/// No location of an element behind this is a number of a launch.
const MOST_LOCATIONS: u32 = 256;

/// The integers with names that the first element of a buffer has which is only read, each with its location.
fn fields(module: &Module, kernel: &Kernel, place: usize) -> Vec<(u32, Field)> {
    if !module.is_read_only(kernel, Memory::Param(place as u32)) {
        return Vec::new();
    }
    let (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) =
        &kernel.params[place].kind
    else {
        return Vec::new();
    };
    let count = element
        .extent(&module.structs)
        .map_or(0, |e| e.location_count);
    let all = 0..(count as u32).min(MOST_LOCATIONS);
    all.filter_map(|at| Some((at, Field::of(module, kernel, place as u32, at)?)))
        .filter(|(_, field)| field.scalar.is_integer())
        .collect()
}

impl Launch {
    /// Notes how large a texture is.
    fn has_texture(&mut self, param: usize, shape: TextureShape) {
        let extents = Dim::ALL.into_iter().zip(shape.extents());
        let extents = extents.map(|(d, n)| ((param, d), i128::from(n)));
        self.texels.extend(extents);
        self.levels.insert(param, shape.levels.into());
        self.samples.insert(param, shape.samples.into());
    }

    /// Threadgroups of the grid.
    pub fn groups(&self, d: usize) -> Option<i128> {
        match (self.grid[d], self.threadgroup[d]) {
            (Some(grid), Some(size)) if size > 0 => Some((grid + size - 1) / size),
            _unknown => self.groups[d],
        }
    }
}

fn elements(kernel: &Kernel, number: usize, expr: &Expr) -> Option<i128> {
    match (&expr.kind, &kernel.params[number].kind) {
        (ExprKind::Scalar(literal), ParamKind::Scalar { value }) => {
            let Type::Scalar(scalar) = kernel.ty(*value) else {
                return None;
            };
            let constant = literal.as_const(scalar).ok()?;
            scalar.is_integer().then(|| scalar.integer(constant.bits))
        }
        (
            ExprKind::List(items),
            ParamKind::Buffer { element, .. } | ParamKind::Constant { element },
        ) => match element {
            ElementType::Value(ty) => {
                let each = ty.component_count() as usize;
                Some((items.len() / each.max(1)) as i128)
            }
            ElementType::Array(..) | ElementType::Struct(_) => None,
        },
        (
            ExprKind::Random { count, .. }
            | ExprKind::Zeros(count)
            | ExprKind::Fill { count, .. }
            | ExprKind::Iota(count)
            | ExprKind::Length(count),
            _,
        ) => Some(i128::from(*count)),
        (ExprKind::Rev(inner), _) => elements(kernel, number, inner),
        (
            ExprKind::Scalar(_)
            | ExprKind::List(_)
            | ExprKind::File(_)
            | ExprKind::Texture { .. }
            | ExprKind::Sampler(_)
            | ExprKind::Reference,
            _,
        ) => None,
    }
}

/// What the `run` line of a file says of a launch of a kernel.
pub fn written(module: &Module, kernel: &Kernel, case: &RunCase) -> Launch {
    let size = case.threadgroup.or(kernel.threadgroup_size);
    let threadgroup = size
        .map(|s| s.map(|n| Some(i128::from(n))))
        .unwrap_or_default();
    let mut launch = Launch {
        threadgroup,
        numbers: vec![None; kernel.params.len()],
        constants: vec![None; module.function_constants.len()],
        ..Launch::default()
    };
    match case.grid {
        Grid::Threads(n) => launch.grid = n.map(|n| Some(i128::from(n))),
        Grid::Threadgroups(n) => {
            launch.groups = n.map(|n| Some(i128::from(n)));
            for d in 0..3 {
                launch.grid[d] = threadgroup[d].map(|s| s * i128::from(n[d]));
            }
        }
    }
    for (i, param) in kernel.params.iter().enumerate() {
        let given = case.args.iter().find(|(name, _)| *name.name == *param.name);
        launch.numbers[i] = given.and_then(|(_, expr)| elements(kernel, i, expr));
        match given.map(|(_, expr)| &expr.kind) {
            Some(ExprKind::Texture { shape, .. }) => launch.has_texture(i, *shape),
            Some(ExprKind::List(items)) => {
                for (at, field) in fields(module, kernel, i) {
                    let literal = items.get(at as usize);
                    let value = literal.and_then(|l| l.as_const(field.scalar).ok());
                    let value = value.map(|v| field.scalar.integer(v.bits));
                    launch.fields.extend(value.map(|v| ((i, at), v)));
                }
            }
            Some(_) | None => {}
        }
    }
    for (i, constant) in module.function_constants.iter().enumerate() {
        let given = case
            .constants
            .iter()
            .find(|(name, _)| *name.name == *constant.name);
        let value = match given {
            Some((_, literal)) => literal.as_const(constant.scalar).ok(),
            None => constant.default,
        };
        if constant.scalar.is_integer() {
            launch.constants[i] = value.map(|v| constant.scalar.integer(v.bits));
        }
    }
    launch
}

/// What a launch that is about to run says.
pub fn bound(module: &Module, kernel: &Kernel, launch: &Bound) -> Launch {
    let Bound {
        dispatch: Dispatch { grid, threadgroup },
        args,
        options,
        ..
    } = launch;
    let mut numbers = Vec::new();
    for (param, arg) in kernel.params.iter().zip(args) {
        numbers.push(match (&param.kind, arg) {
            (ParamKind::Scalar { .. }, Arg::Scalar(components)) => match &components[..] {
                [only] if only.scalar.is_integer() => Some(only.scalar.integer(only.bits)),
                _float_or_several => None,
            },
            (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }, arg) => {
                let size = element.extent(&module.structs).map(|e| e.size_bytes);
                let size = size.filter(|size| *size > 0);
                size.map(|size| i128::from(arg.bytes().len() as u64 / size))
            }
            (ParamKind::Threadgroup { .. }, Arg::ThreadgroupLength(length)) => {
                Some(i128::from(*length))
            }
            (
                ParamKind::Scalar { .. }
                | ParamKind::Threadgroup { .. }
                | ParamKind::Texture(_)
                | ParamKind::Sampler,
                _,
            ) => None,
        });
    }
    let constants = module.function_constants.iter().map(|constant| {
        let given = options.constants.iter().find(|(key, _)| match key {
            ConstantKey::Name(name) => *name == constant.name,
            ConstantKey::Id(id) => *id == constant.id,
        });
        let value = given.map(|(_, value)| *value).or(constant.default)?;
        (value.scalar.is_integer()).then(|| value.scalar.integer(value.bits))
    });
    let of = |n: [u32; 3]| n.map(i128::from);
    let size = of(*threadgroup);
    let threads = match grid {
        invar_interp::Grid::Threads(n) => of(*n),
        invar_interp::Grid::Threadgroups(n) => [0, 1, 2].map(|d| i128::from(n[d]) * size[d]),
    };
    let mut launch = Launch {
        grid: threads.map(Some),
        threadgroup: size.map(Some),
        numbers,
        constants: constants.collect(),
        ..Launch::default()
    };
    for (i, arg) in args.iter().enumerate() {
        if let Arg::Texture(shape, _) = arg {
            launch.has_texture(i, *shape);
        }
        if let Some(ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) =
            kernel.params.get(i).map(|p| &p.kind)
        {
            let each = element.extent(&module.structs).map_or(0, |e| e.size_bytes);
            for (at, field) in fields(module, kernel, i) {
                let value = field.read(each, arg.bytes());
                launch.fields.extend(value.map(|v| ((i, at), v)));
            }
        }
    }
    launch
}

/// A launch in the words of `invar check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spelled {
    /// Threads of the grid.
    pub grid: [u32; 3],
    /// Threads of a threadgroup.
    pub threadgroup: [u32; 3],
    /// Parameters and their data.
    pub args: Vec<(String, String)>,
    /// Function constants and their values.
    pub constants: Vec<(String, String)>,
    /// Threads of a simdgroup, where the launch says it.
    pub simdgroup: Option<u32>,
    /// After how many seconds to stop, where it comes to no end.
    pub time_limit: Option<u32>,
}

impl Spelled {
    /// The options of `invar check`, after the name of the file.
    pub fn options(&self, kernel: &str) -> Vec<String> {
        let list = |n: [u32; 3]| n.map(|n| n.to_string()).join(",");
        let mut out = vec!["--kernel".to_string(), kernel.to_string()];
        out.extend(["--grid".to_string(), list(self.grid)]);
        out.extend(["--threadgroup".to_string(), list(self.threadgroup)]);
        for (name, data) in &self.args {
            out.extend(["--arg".to_string(), format!("{name}={data}")]);
        }
        for (name, value) in &self.constants {
            out.extend(["--const".to_string(), format!("{name}={value}")]);
        }
        if let Some(size) = self.simdgroup {
            out.extend(["--simdgroup".to_string(), size.to_string()]);
        }
        if let Some(seconds) = self.time_limit {
            out.extend(["--time-limit".to_string(), seconds.to_string()]);
        }
        out
    }

    /// The same launch, then in simdgroups of the size that was found for it, if that is another than is usual.
    pub fn in_simdgroups(self, kernel: &Kernel, found: &Launch) -> Vec<Spelled> {
        const USUAL: u32 = 32;
        let size = found.simdgroup.and_then(|size| u32::try_from(size).ok());
        let size = size.filter(|size| kernel.simdgroup_size.is_none() && *size != USUAL);
        let other = size.map(|size| Spelled {
            simdgroup: Some(size),
            ..self.clone()
        });
        std::iter::once(self).chain(other).collect()
    }

    /// The same launch with contents that are said in a word in place of long lists, if it has any; then itself.
    pub fn shortest_first(self) -> Vec<Spelled> {
        const LONG: usize = 32;
        let count = |data: &str| match data.strip_prefix('[') {
            Some(list) => list.split(',').count(),
            None => 0,
        };
        let mut all = Vec::new();
        if self.args.iter().any(|(_, data)| count(data) > LONG) {
            for word in ["iota", "zeros"] {
                let mut short = self.clone();
                for (_, data) in &mut short.args {
                    let count = count(data);
                    if count > LONG {
                        *data = format!("{word}({count})");
                    }
                }
                all.push(short);
            }
        }
        all.push(self);
        all
    }

    fn directive(&self, kernel: &str) -> String {
        let list = |n: [u32; 3]| n.map(|n| n.to_string()).join(", ");
        let pairs = |pairs: &[(String, String)]| {
            let all: Vec<String> = pairs.iter().map(|(n, v)| format!("{n} = {v}")).collect();
            all.join(", ")
        };
        let mut line = format!("; run: @{kernel}({})", pairs(&self.args));
        if !self.constants.is_empty() {
            line += &format!(" const({})", pairs(&self.constants));
        }
        line += &format!(
            " grid({}) threadgroup({})",
            list(self.grid),
            list(self.threadgroup)
        );
        if let Some(size) = self.simdgroup {
            line += &format!(" simdgroup({size})");
        }
        line
    }
}

/// A launch that the author wrote, as `invar check` takes it; `None` where that takes another file.
pub fn spelled_as_written(kernel: &Kernel, case: &RunCase) -> Option<Spelled> {
    let threadgroup = case.threadgroup.or(kernel.threadgroup_size)?;
    let mut grid = [1; 3];
    for d in 0..3 {
        grid[d] = match case.grid {
            Grid::Threads(n) => n[d],
            Grid::Threadgroups(n) => n[d].checked_mul(threadgroup[d])?,
        };
    }
    let args = case.args.iter();
    let args = args.map(|(name, expr)| Some((name.name.clone(), data_text(expr)?)));
    let constants = case.constants.iter();
    let constants = constants.map(|(name, value)| (name.name.clone(), value.text.clone()));
    Some(Spelled {
        grid,
        threadgroup,
        args: args.collect::<Option<_>>()?,
        constants: constants.collect(),
        simdgroup: case.simdgroup,
        time_limit: None,
    })
}

fn data_text(expr: &Expr) -> Option<String> {
    Some(match &expr.kind {
        ExprKind::Scalar(literal) => literal.text.clone(),
        ExprKind::List(items) => {
            let items: Vec<&str> = items.iter().map(|item| &*item.text).collect();
            format!("[{}]", items.join(", "))
        }
        ExprKind::Random { count, seed } => format!("random({count}, {seed})"),
        ExprKind::Zeros(count) => format!("zeros({count})"),
        ExprKind::Fill { count, value } => format!("fill({count}, {})", value.text),
        ExprKind::Iota(count) => format!("iota({count})"),
        ExprKind::Rev(inner) => format!("rev({})", data_text(inner)?),
        ExprKind::Length(count) => format!("length({count})"),
        ExprKind::Texture { shape, contents } => {
            let [columns, rows, slices] = shape.extents();
            let made = if shape.is_volume {
                "texture3d"
            } else {
                "texture"
            };
            let mut text = format!("{made}({}, {columns}, {rows}", shape.format.name());
            // Samples are counted by themselves.
            let slices = slices / shape.samples;
            if slices != 1 || shape.is_volume {
                text += &format!(", {slices}");
            }
            if shape.levels != 1 {
                text += &format!(", levels {}", shape.levels);
            }
            if shape.samples != 1 {
                text += &format!(", samples {}", shape.samples);
            }
            if let Some(contents) = contents {
                text += &format!(", {}", data_text(contents)?);
            }
            text + ")"
        }
        ExprKind::File(_) | ExprKind::Sampler(_) | ExprKind::Reference => return None,
    })
}

/// The most elements of a buffer whose contents matter.
const MAX_LISTED: i128 = 1 << 14;
/// The most elements of a buffer.
const MAX_ELEMENTS: i128 = 1 << 26;
/// The most threads of a grid.
const MAX_THREADS: i128 = 1 << 22;
/// The most instructions of a launch, counted for each simdgroup.
pub(crate) const MAX_STEPS: u64 = 1_000_000;

/// A launch as `invar check` takes it; `None` if it is too large to be run.
pub fn spelled(module: &Module, kernel: &Kernel, launch: &Launch) -> Option<Spelled> {
    let mut grid = [1u32; 3];
    let mut threadgroup = [1u32; 3];
    let mut threads = 1i128;
    for d in 0..3 {
        let wanted = launch.grid[d].unwrap_or(1).max(1);
        threads = threads.checked_mul(wanted)?;
        grid[d] = u32::try_from(wanted).ok()?;
        let size = match kernel.threadgroup_size {
            Some(size) => i128::from(size[d]),
            None => launch.threadgroup[d].unwrap_or(if d == 0 { wanted.min(8) } else { 1 }),
        };
        threadgroup[d] = u32::try_from(size.max(1)).ok()?;
    }
    if threads > MAX_THREADS {
        return None;
    }
    let mut args = Vec::new();
    for (i, param) in kernel.params.iter().enumerate() {
        let number = launch.numbers.get(i).copied().flatten();
        let data = match &param.kind {
            ParamKind::Scalar { value } => match kernel.ty(*value) {
                Type::Scalar(Scalar::Bool) => "true".to_string(),
                Type::Scalar(scalar) if scalar.is_integer() => number.unwrap_or(1).to_string(),
                Type::Scalar(_) => "1".to_string(),
                several => {
                    let ones = vec!["1"; several.component_count() as usize];
                    format!("[{}]", ones.join(", "))
                }
            },
            ParamKind::Threadgroup { .. } => format!("length({})", number.unwrap_or(1)),
            ParamKind::Texture(texture) => {
                let texels = |d| launch.texels.get(&(i, d)).copied();
                let levels = launch.levels.get(&i).copied();
                let several = (levels, launch.samples.get(&i).copied());
                texture_text(*texture, Dim::ALL.map(texels), several, MAX_ELEMENTS)?
            }
            ParamKind::Sampler => sampler_text(kernel, Memory::Param(i as u32)),
            ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => {
                let length = number.unwrap_or(64);
                if length > MAX_ELEMENTS {
                    return None;
                }
                let memory = Memory::Param(i as u32);
                let known = launch.contents.get(&memory);
                let is_required = has_required_contents(kernel, i);
                match (known, element) {
                    (_, element) if let Some(text) = fields_text(module, (i, element), launch) => {
                        text
                    }
                    (known, ElementType::Value(Type::Scalar(_))) if is_required => {
                        contents(length, known)
                    }
                    (Some(contents), ElementType::Value(Type::Scalar(_)))
                        if length <= MAX_LISTED =>
                    {
                        let all = 0..length as u64;
                        let all = all.map(|i| contents.get(&i).copied().unwrap_or(0).to_string());
                        format!("[{}]", all.collect::<Vec<_>>().join(", "))
                    }
                    _any_contents => format!("iota({length})"),
                }
            }
        };
        args.push((param.name.to_string(), data));
    }
    let mut constants = Vec::new();
    for (i, constant) in module.function_constants.iter().enumerate() {
        let value = match launch.constants.get(i).copied().flatten() {
            Some(value) => Some(value.to_string()),
            // One has to be said of those that have none of their own.
            None if constant.default.is_none() => Some(match constant.scalar {
                Scalar::Bool => "true".to_string(),
                _number => "1".to_string(),
            }),
            None => None,
        };
        constants.extend(value.map(|value| (constant.name.to_string(), value)));
    }
    Some(Spelled {
        grid,
        threadgroup,
        args,
        constants,
        simdgroup: None,
        time_limit: None,
    })
}

/// The elements of a buffer whose first holds numbers of the launch, each scalar by itself; `None` if it holds none that
/// are known.
fn fields_text(
    module: &Module,
    (place, element): (usize, &ElementType),
    launch: &Launch,
) -> Option<String> {
    let range = (place, 0)..=(place, u32::MAX);
    let mut known = launch.fields.range(range).peekable();
    known.peek()?;
    if matches!(element, ElementType::Value(Type::Scalar(_))) {
        return None;
    }
    let locations = element.locations(&module.structs);
    let length = launch.numbers.get(place).copied().flatten().unwrap_or(1);
    let count = length.checked_mul(locations.len() as i128)?;
    if !(1..=MAX_LISTED).contains(&count) {
        return None;
    }
    let known: BTreeMap<u32, i128> = known.map(|((_, at), value)| (*at, *value)).collect();
    let all = (0..count as u32).map(|at| {
        let scalar = locations[at as usize % locations.len()].1;
        match known.get(&at) {
            Some(value) => value.to_string(),
            None if scalar == Scalar::Bool => "false".to_string(),
            None => "1".to_string(),
        }
    });
    Some(format!("[{}]", all.collect::<Vec<_>>().join(", ")))
}

/// The texture of a launch in the words of a `; run:` line: of zeros, with these sizes where they are known.
/// `None` if it is too large.
fn texture_text(
    ty: TextureType,
    texels: [Option<i128>; 3],
    (levels, samples): (Option<i128>, Option<i128>),
    most: i128,
) -> Option<String> {
    let format = match ty.wide_component() {
        _ if ty.is_depth => "depth32float",
        Scalar::I32 => "r32sint",
        Scalar::U32 => "r32uint",
        _float => "r32float",
    };
    let dimension = ty.dimension;
    let samples = match dimension.has_samples() {
        true => samples.unwrap_or(4),
        false => 1,
    };
    let each = dimension
        .slices(1)
        .map_or(1, |_| match dimension.is_cube() {
            true => 6,
            false => samples,
        });
    let extent = |d: Dim, known: Option<i128>, usual: i128| match dimension.has_extent(d) {
        true => known.unwrap_or(usual),
        false => 1,
    };
    let [columns, rows, slices] = texels;
    let columns = extent(Dim::X, columns.or(rows), 8);
    let rows = extent(
        Dim::Y,
        rows,
        match dimension.is_cube() {
            true => columns,
            false => 8,
        },
    );
    let usual = match dimension {
        Dimension::D3 => 8,
        _array if dimension.is_array() => 2 * each,
        _one => each,
    };
    let slices = extent(Dim::Z, slices, usual);
    let all = columns.checked_mul(rows)?.checked_mul(slices)?;
    let levels = levels.filter(|levels| *levels > 1);
    // Of one level it is the same.
    let is_volume = dimension == Dimension::D3 && levels.is_some();
    let made = if is_volume { "texture3d" } else { "texture" };
    let mut text = format!("{made}({format}, {columns}, {rows}");
    // Samples are counted by themselves.
    let slices = match dimension.has_samples() {
        true => slices / each,
        false => slices,
    };
    if dimension.has_extent(Dim::Z) && slices > 1 || is_volume {
        text += &format!(", {slices}");
    }
    if let Some(levels) = levels {
        text += &format!(", levels {levels}");
    }
    if dimension.has_samples() {
        text += &format!(", samples {samples}");
    }
    (all <= most).then(|| text + ")")
}

/// A sampler of a launch in the same words: one that compares, if the kernel compares by it.
fn sampler_text(kernel: &Kernel, sampler: Memory) -> String {
    let mut compares = false;
    kernel.for_each_inst(&mut |inst| {
        if let InstKind::Texture { function, .. } = &inst.kind
            && function.sampler().and_then(SamplerSource::param) == Some(sampler)
        {
            compares |= function.compares();
        }
    });
    match compares {
        true => "sampler(compare_less)".to_string(),
        false => "sampler()".to_string(),
    }
}

/// Whether a kernel requires something of what a buffer holds.
fn has_required_contents(kernel: &Kernel, place: usize) -> bool {
    kernel.requires.iter().any(|r| match &r.required {
        Required::Holds(_) => false,
        Required::Each { buffer, .. } | Required::Ascending { buffer } => *buffer as usize == place,
    })
}

/// Contents whose known elements are these, and the others like the known one before: where something holds
/// of each known one, or of their order, it then holds of all.
fn contents(length: i128, known: Option<&BTreeMap<u64, i128>>) -> String {
    let first = known.and_then(|known| known.values().next());
    let (Some(known), Some(first), true) = (known, first, length <= MAX_LISTED) else {
        return format!("zeros({length})");
    };
    let mut value = *first;
    let all = (0..length as u64).map(|i| {
        value = known.get(&i).copied().unwrap_or(value);
        value.to_string()
    });
    format!("[{}]", all.collect::<Vec<_>>().join(", "))
}

/// Runs a launch under the checkers; gives the races and the accesses out of bounds that they report.
///
/// # Errors
/// Why it could not be run.
pub fn run(module: &Verified, kernel: &str, launch: &Spelled) -> Result<Vec<Diagnostic>, String> {
    run_within(module, kernel, launch, MAX_STEPS).map(|(found, _)| found)
}

/// As [`run`], of so many instructions at most in each schedule; and how many there were, if each came to its end.
pub(crate) fn run_within(
    module: &Verified,
    kernel: &str,
    launch: &Spelled,
    most: u64,
) -> Result<(Vec<Diagnostic>, Option<u64>), String> {
    let said =
        |Diagnostics(all): Diagnostics| all.first().map_or(String::new(), |d| d.message.clone());
    let cases = cases(&launch.directive(kernel)).map_err(said)?;
    let case = cases.first().ok_or("the launch cannot be written down")?;
    let options = Options {
        step_limit: most,
        time_limit: Some(std::time::Duration::from_secs(20)),
        ..Options::default()
    };
    let bound = bind(module, case, &options, &mut |name, _| {
        Err(format!("no file {name}"))
    });
    let bound = bound.map_err(said)?;
    let options = CheckOptions {
        run: bound.options,
        ..CheckOptions::default()
    };
    let report = check(module, kernel, &bound.dispatch, &bound.args, &options).map_err(said)?;
    let counts = |d: &Diagnostic| {
        matches!(
            d.rule,
            Rule::DataRace
                | Rule::ExecutionOnlyBarrier
                | Rule::EqualStores
                | Rule::OutOfBounds
                | Rule::MisalignedAccess
        )
    };
    let is_no_end = |d: &Diagnostic| matches!(d.rule, Rule::StepLimit | Rule::DeadlineExceeded);
    let has_ended = !report.diagnostics.iter().any(is_no_end);
    let found = report.diagnostics.into_iter().filter(counts).collect();
    Ok((found, has_ended.then_some(report.steps)))
}
