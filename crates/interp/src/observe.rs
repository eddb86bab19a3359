//! Observers: what a run shows to those who check it.
//!
//! The machine computes; observers only watch. It hands them whole simdgroups at a time: one event
//! for an instruction and all its lanes. Without observers no event is made and nothing is paid.
//! An observer keeps its own state and says in the end what it found.

use std::ops::ControlFlow;

use invar_ir::print::{Line, Printed, Template, line_bytes};
use invar_ir::{
    AddressSpace, AtomicOp, Const, Diagnostic, Dimension, Kernel, Memory, Module, Order, Scalar,
    Scope, Spaces, Span, Type,
};
use invar_texture::TextureShape;

use crate::dispatch::GridSizes;

/// What observers are told before a run.
pub struct Launch<'a> {
    /// The module as it runs: contracted and expanded.
    pub module: &'a Module,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Threadgroups in the grid.
    pub threadgroups: u64,
    /// Sizes of the grid and of full threadgroups.
    pub grid: GridSizes,
    /// Lanes of a full simdgroup.
    pub simdgroup_size: u32,
    /// Memory objects, in the order of their numbers.
    pub objects: &'a [ObjectInfo],
    /// Instructions that touch memory or wait, in the order of their numbers.
    pub sites: &'a [SiteInfo],
    /// The seed of this run.
    pub seed: u64,
}

/// A place in the kernel that touches memory, meets other threads or picks a part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteInfo {
    /// Where it was written.
    pub span: Span,
    /// What it is.
    pub kind: SiteKind,
    /// The number of the instruction, in the order of [`Kernel::for_each_inst`].
    pub instruction: u32,
    /// Whether it is a load whose value serves nothing but `select`s, to choose or not.
    pub selected: bool,
}

/// What stands at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteKind {
    /// A plain load.
    Load,
    /// A plain store.
    Store,
    /// An atomic.
    Atomic,
    /// A copy by each thread.
    Copy,
    /// A copy by the simdgroup.
    AsyncCopy,
    /// A simdgroup matrix is read or written.
    Matrix,
    /// A barrier.
    Barrier,
    /// `assert_uniform`.
    AssertUniform,
    /// A component or column is taken or replaced by a computed index.
    Part,
    /// An offset in bytes becomes an index.
    Offset,
    /// Texels are read or written, or a texture is sampled.
    Texture,
}

/// A memory object as observers see it.
#[derive(Clone, Debug)]
pub struct ObjectInfo {
    /// Which object of the kernel it is.
    pub memory: Memory,
    /// The author's name for it.
    pub name: String,
    /// Where it lies.
    pub space: AddressSpace,
    /// Whether the kernel may write it.
    pub writable: bool,
    /// Elements bound for this run; of a thread array, a thread's.
    pub length: u64,
    /// Of a texture, how it is arranged and its size.
    pub texture: Option<(Dimension, TextureShape)>,
    /// Of an imageblock, its width and height.
    pub imageblock: Option<[u32; 2]>,
    /// Locations (scalars, L1) in an element.
    pub element_locations: u64,
    /// How to call each location of an element: `""`, `.x`, `.position[2]`.
    pub parts: Vec<String>,
    /// The scalar type of each location of an element.
    pub scalars: Vec<Scalar>,
}

impl ObjectInfo {
    /// How a location is called: `x[17].position[2]`, of a texture or an imageblock `image[3, 4].x`.
    pub fn location_name(&self, location: u64) -> String {
        let element = location / self.element_locations.max(1);
        let part = (location % self.element_locations.max(1)) as usize;
        let part = self.parts.get(part).map_or("", String::as_str);
        format!("{}{part}", self.element_name(element))
    }

    /// How an element is called: `x[17]`, of a texture or an imageblock `image[3, 4]`.
    pub fn element_name(&self, element: u64) -> String {
        match (self.texture, self.imageblock) {
            (Some((dimension, shape)), _) => {
                format!("{}{}", self.name, texel_name(dimension, shape, element))
            }
            (None, Some([width, _])) => {
                let width = u64::from(width.max(1));
                format!("{}[{}, {}]", self.name, element % width, element / width)
            }
            (None, None) => format!("{}[{element}]", self.name),
        }
    }
}

/// How a texel is called: `[3, 4]`, by all coordinates that a read has, and by its level where there are several.
pub(crate) fn texel_name(dimension: Dimension, shape: TextureShape, texel: u64) -> String {
    let ([x, y, z], level) = shape.place(texel);
    let [within, element] = match dimension.slices(shape.samples) {
        Some(slices) => [z % u64::from(slices), z / u64::from(slices)],
        None => [z, z],
    };
    let all = [x, y, within, element];
    let at = dimension
        .counted()
        .iter()
        .map(|axis| all[*axis].to_string());
    let place = format!("[{}]", at.collect::<Vec<String>>().join(", "));
    match shape.levels {
        1 => place,
        _several => format!("{place} level {level}"),
    }
}

/// A simdgroup at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its threadgroup's number in the grid: x + y*groups_x + z*groups_x*groups_y.
    pub threadgroup: u64,
    /// A number that no other threadgroup running at the same time has.
    pub slot: u32,
    /// Its number in the threadgroup.
    pub simdgroup: u32,
}

/// What lanes do to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain loads.
    Read,
    /// Plain stores.
    Write,
    /// Atomics; `effective` holds the lanes that wrote (a failed compare-exchange is a load).
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// Its order.
        order: Order,
        /// How far that reaches.
        scope: Scope,
        /// The lanes that wrote.
        effective: u128,
    },
}

/// One instruction's access to one object by the lanes of a simdgroup, elements out of bounds left
/// out.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// Who.
    pub who: Who,
    /// Where in the kernel.
    pub site: u32,
    /// To what.
    pub object: u32,
    /// What they do.
    pub kind: Kind,
    /// Which lanes.
    pub lanes: u128,
    /// The first location of each lane; meaningless for lanes that do not take part.
    pub locations: &'a [u64],
    /// How many consecutive locations each lane accesses.
    pub width: u32,
    /// All lanes of the simdgroup, in the order in which they made the access.
    pub order: &'a [u8],
    /// For plain stores, a mask for each component: the lanes whose store left it as it was; for atomics one mask, but
    /// for those on texels, of which nothing is said.
    pub unchanged: &'a [u128],
}

/// Elements that some lane of a simdgroup accesses, the program cannot know which (O6), or that a
/// thread copies.
#[derive(Clone, Copy, Debug)]
pub struct Touched<'a> {
    /// The object.
    pub object: u32,
    /// Its locations, as ranges.
    pub ranges: &'a [std::ops::Range<u64>],
}

/// An async copy.
#[derive(Clone, Copy, Debug)]
pub struct AsyncCopy<'a> {
    /// Who issued it.
    pub who: Who,
    /// Where it was issued.
    pub site: u32,
    /// Its number, unique in the run.
    pub copy: u64,
    /// What it reads.
    pub source: Touched<'a>,
    /// What it writes.
    pub destination: Touched<'a>,
}

/// Lanes whose access to an object is out of bounds.
#[derive(Clone, Copy, Debug)]
pub struct OutOfBounds<'a> {
    /// Who.
    pub who: Who,
    /// Where in the kernel.
    pub site: u32,
    /// The object; `None` for a component of a value.
    pub object: Option<u32>,
    /// Whether it is a load; otherwise a store or an atomic.
    pub load: bool,
    /// A lane that does it.
    pub lane: u32,
    /// All that do.
    pub lanes: u128,
    /// How often it is done: once by each lane, or in each row of a copy.
    pub count: u64,
    /// What index, mathematically, and how many there are.
    pub index: i128,
    /// How many elements, array elements, components or columns there are.
    pub length: u64,
    /// What the index counts: `element`, `component`, `column`.
    pub what: &'a str,
    /// The element of the object in which it counts them, and where in that: `.position`.
    pub within: Option<(u64, &'a str)>,
}

/// Lanes whose offset in bytes is not a multiple of the width that is accessed there.
#[derive(Clone, Copy, Debug)]
pub struct Misaligned {
    /// Who.
    pub who: Who,
    /// Where in the kernel.
    pub site: u32,
    /// A lane that does it.
    pub lane: u32,
    /// How many do.
    pub count: u64,
    /// The lane's offset, in bytes.
    pub offset: i128,
    /// What it should be a multiple of.
    pub width: i128,
}

/// A line that a lane prints.
#[derive(Clone, Copy, Debug)]
pub struct Printing<'a> {
    /// Where in the kernel.
    pub span: Span,
    /// The thread's position in the grid.
    pub thread: [u32; 3],
    /// The text.
    pub template: &'a Template,
    /// The types of its values.
    pub types: &'a [Type],
    /// Their scalars.
    pub scalars: &'a [Const],
}

/// Keeps what a run prints, as much as a dispatch may (P5).
#[derive(Clone, Debug, Default)]
pub struct Lines(pub Printed);

impl Observer for Lines {
    fn wants(&self, _object: &ObjectInfo) -> bool {
        false
    }

    fn print(&mut self, printing: &Printing) {
        self.0.push(line_bytes(printing.types), || Line {
            thread: printing.thread,
            span: printing.span,
            text: printing.template.line(printing.types, printing.scalars),
        });
    }
}

/// Watches a run. Every method has an empty default.
#[expect(
    unused_variables,
    reason = "the parameters' names are the documentation"
)]
pub trait Observer {
    /// Whether it wants to see the accesses to an object. An object that no observer wants costs
    /// nothing; asked once, after [`Observer::begin`].
    fn wants(&self, object: &ObjectInfo) -> bool {
        match object.space {
            AddressSpace::Device
            | AddressSpace::Threadgroup
            | AddressSpace::Texture
            | AddressSpace::Imageblock => true,
            AddressSpace::Constant | AddressSpace::Thread => false,
        }
    }
    /// The run begins.
    ///
    /// # Errors
    /// Why it cannot watch this run; the run is then refused.
    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        Ok(())
    }
    /// A threadgroup starts, with that many threads.
    fn begin_threadgroup(&mut self, who: Who, threads: u32) {}
    /// A threadgroup has ended; its copies are finished.
    fn end_threadgroup(&mut self, who: Who) {}
    /// Lanes access memory, not in `thread` or `constant` space.
    fn access(&mut self, access: &Access) {}
    /// Lanes of the simdgroup that the program cannot know access these locations (O6).
    fn collective(&mut self, who: Who, site: u32, kind: Kind, region: Touched, unchanged: &[bool]) {
    }
    /// All lanes of a simdgroup issue a copy.
    fn issue(&mut self, copy: &AsyncCopy) {}
    /// A copy is waited for, the first time.
    fn complete(&mut self, who: Who, copy: u64) {}
    /// A threadgroup ended while a copy was never waited for.
    fn never_waited(&mut self, who: Who, site: u32) {}
    /// All threads of the scope reached a barrier.
    fn barrier(&mut self, who: Who, site: u32, scope: Scope, spaces: Spaces) {}
    /// A lane prints a line.
    fn print(&mut self, printing: &Printing) {}
    /// A `select` may have taken what loads of a site gave, of which it is the only use: of these lanes it took
    /// those in `taken`.
    fn selected(&mut self, who: Who, site: u32, lanes: u128, taken: u128) {}
    /// Something is out of bounds.
    fn out_of_bounds(&mut self, event: &OutOfBounds) {}
    /// Lanes have an offset that is not a multiple (L4).
    fn misaligned(&mut self, event: &Misaligned) {}
    /// Threads of the scope asserted a value to be uniform and disagree.
    fn not_uniform(&mut self, who: Who, site: u32, scope: Scope, values: [u64; 2]) {}
    /// Called now and then with how many threadgroups are done; `Break` cancels the run.
    fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// The run has ended, well or by an error.
    fn finish(&mut self) -> Vec<Diagnostic> {
        Vec::new()
    }
}
