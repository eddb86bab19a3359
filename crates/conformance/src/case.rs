//! A kernel with all that a run needs, and its text: an `.inv` file with a `; run:` line.

use std::fmt;

use invar_interp::{Arg, Dispatch, Grid};
use invar_ir::{Const, ConstantKey, Kernel, Module, ParamKind};
use invar_texture::{Sampler, TextureShape};

/// What a parameter gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// So many elements of random scalars.
    Random {
        /// Elements.
        count: u64,
        /// Seed.
        seed: u64,
    },
    /// So many elements of zeros.
    Zeros(u64),
    /// So many elements whose scalars count from 0.
    Iota(u64),
    /// The scalars of elements.
    List(Vec<Const>),
    /// The components of a `Scalar` parameter.
    Scalar(Vec<Const>),
    /// The length of a threadgroup parameter.
    Length(u64),
    /// A sampler.
    Sampler(Sampler),
    /// A texture of random codes.
    Texture {
        /// Its format and size.
        shape: TextureShape,
        /// Seed.
        seed: u64,
    },
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Random { count, seed } => write!(f, "random({count}, {seed})"),
            Data::Zeros(count) => write!(f, "zeros({count})"),
            Data::Iota(count) => write!(f, "iota({count})"),
            Data::Length(count) => write!(f, "length({count})"),
            Data::Sampler(sampler) => {
                let words: Vec<_> = sampler.words().collect();
                write!(f, "sampler({})", words.join(", "))
            }
            Data::Texture { shape, seed } => {
                let [width, height, depth] = shape.extents();
                let made = if shape.is_volume {
                    "texture3d"
                } else {
                    "texture"
                };
                write!(f, "{made}({}, {width}, {height}", shape.format.name())?;
                write!(f, ", {}", depth / shape.samples)?;
                write!(f, ", levels {}, samples {}", shape.levels, shape.samples)?;
                let codes = shape.texels() * u64::from(shape.format.codes());
                write!(f, ", random({codes}, {seed}))")
            }
            Data::Scalar(components) if components.len() == 1 => {
                f.write_str(&literal(components[0]))
            }
            Data::List(scalars) | Data::Scalar(scalars) => {
                let scalars: Vec<String> = scalars.iter().map(|c| literal(*c)).collect();
                write!(f, "[{}]", scalars.join(", "))
            }
        }
    }
}

/// A scalar as a directive writes it: floats by their bits.
fn literal(constant: Const) -> String {
    let bits = constant.bits;
    if constant.scalar.is_signed_integer() {
        let unused = 64 - constant.scalar.bits();
        ((bits << unused) as i64 >> unused).to_string()
    } else if constant.scalar.is_unsigned_integer() {
        bits.to_string()
    } else if constant.scalar.is_float() {
        format!("{bits:#x}")
    } else {
        (bits != 0).to_string()
    }
}

/// A module of one kernel, its arguments and its dispatch.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The module.
    pub module: Module,
    /// What each parameter gets, in order.
    pub data: Vec<Data>,
    /// The grid.
    pub dispatch: Dispatch,
    /// Values of function constants.
    pub constants: Vec<(ConstantKey, Const)>,
}

impl Case {
    /// The kernel.
    ///
    /// # Panics
    /// If the module has none.
    pub fn kernel(&self) -> &Kernel {
        &self.module.kernels[0]
    }

    /// The arguments, read as a directive reads them.
    ///
    /// # Errors
    /// What does not fit; nothing for a generated case.
    pub fn args(&self) -> Result<Vec<Arg<'static>>, invar_ir::Diagnostics> {
        let line = self.directive();
        let cases = invar_ir::text::cases(&line)?;
        let options = invar_interp::Options::default();
        let mut no_files = |name: &str, _: &_| Err(format!("no file `{name}`"));
        let bound = invar_interp::case::bind(&self.module, &cases[0], &options, &mut no_files)?;
        Ok(bound.args)
    }

    /// The `; run:` line, which expects of every buffer what the reference machine leaves.
    pub fn directive(&self) -> String {
        let kernel = self.kernel();
        let args: Vec<String> = kernel
            .params
            .iter()
            .zip(&self.data)
            .map(|(param, data)| format!("{} = {data}", param.name))
            .collect();
        let size = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        let grid = match self.dispatch.grid {
            Grid::Threads(n) => format!("grid{}", size(n)),
            Grid::Threadgroups(n) => format!("groups{}", size(n)),
        };
        let mut text = format!(
            "; run: @{}({}) {grid} threadgroup{}",
            kernel.name,
            args.join(", "),
            size(self.dispatch.threadgroup)
        );
        let constants = self.constants.iter().map(|(key, value)| match key {
            ConstantKey::Name(name) => format!("{name} = {}", literal(*value)),
            ConstantKey::Id(id) => {
                let found = self.module.function_constants.iter().find(|c| c.id == *id);
                let name = found.map_or("", |c| &c.name);
                format!("{name} = {}", literal(*value))
            }
        });
        let constants: Vec<String> = constants.collect();
        if !constants.is_empty() {
            text += &format!(" const({})", constants.join(", "));
        }
        let expects: Vec<String> = kernel
            .params
            .iter()
            .filter(|p| match p.kind {
                ParamKind::Buffer { access, .. } => access.can_write(),
                ParamKind::Constant { .. }
                | ParamKind::Scalar { .. }
                | ParamKind::Threadgroup { .. }
                | ParamKind::Sampler => false,
                ParamKind::Texture(texture) => texture.access.memory().can_write(),
            })
            .map(|p| format!("{} == reference", p.name))
            .collect();
        if !expects.is_empty() {
            text += &format!(" -> {}", expects.join(", "));
        }
        text
    }
}

impl fmt::Display for Case {
    /// A self-contained `.inv` file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.module.to_string().trim_end())?;
        writeln!(f, "{}", self.directive())
    }
}
