//! How elements lie in memory (L3): sizes, alignments, offsets, and the numbering of locations.
//!
//! `bool` is one byte; a vector is an array of its scalars; a matrix an array of columns; a struct
//! follows C's rules. A *location* is one scalar (L1); an element's locations are numbered from 0
//! in the order of their offsets, and padding has none.

use crate::types::{ElementType, Scalar, StructDef, StructId, Type};

/// Size and alignment of an element, in bytes, and how many scalars it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Size, a multiple of the alignment.
    pub size_bytes: u64,
    /// Alignment.
    pub align_bytes: u64,
    /// Scalars in it.
    pub location_count: u64,
}

impl Extent {
    /// What a struct begins with.
    const NOTHING: Extent = Extent {
        size_bytes: 0,
        align_bytes: 1,
        location_count: 0,
    };

    /// `None` for what memory does not hold.
    fn of_value(ty: Type) -> Option<Extent> {
        match ty {
            Type::Scalar(scalar) | Type::Vector(scalar, _) | Type::Matrix { scalar, .. } => {
                let location_count = u64::from(ty.component_count());
                Some(Extent {
                    size_bytes: scalar.size_bytes() * location_count,
                    align_bytes: scalar.size_bytes(),
                    location_count,
                })
            }
            Type::SimdgroupMatrix { .. } | Type::Event => None,
        }
    }

    fn limited(self) -> Option<Extent> {
        (self.size_bytes <= MAX_ELEMENT_BYTES).then_some(self)
    }

    /// An array of so many.
    fn times(self, length: u32) -> Option<Extent> {
        Extent {
            size_bytes: self.size_bytes.checked_mul(u64::from(length))?,
            align_bytes: self.align_bytes,
            location_count: self.location_count.checked_mul(u64::from(length))?,
        }
        .limited()
    }

    /// The fields so far and one more.
    fn then(self, field: Extent) -> Option<Extent> {
        Extent {
            size_bytes: self.size_bytes.next_multiple_of(field.align_bytes) + field.size_bytes,
            align_bytes: self.align_bytes.max(field.align_bytes),
            location_count: self.location_count + field.location_count,
        }
        .limited()
    }

    /// A struct of the fields so far.
    fn padded(self) -> Option<Extent> {
        Extent {
            size_bytes: self.size_bytes.next_multiple_of(self.align_bytes),
            ..self
        }
        .limited()
    }
}

/// [`ElementType::extent`] for callers that ask often: what is known of each struct is kept, so that an
/// element costs what its own fields cost, not those of the structs in it.
#[derive(Default)]
pub(crate) struct Extents {
    structs: Vec<Option<Measure>>,
}

/// Sizes of elements and places of fields, for callers that ask often: each struct of a module is laid out once.
///
/// ```
/// use invar_ir::memory_layout::{FieldPlace, Layouts};
///
/// let module = invar_ir::text::parse("s.inv", "struct @S { a: u8, b: f32x2, c: u8 }
/// kernel @k(%x: device read @S) {}")?;
/// let layouts = Layouts::of(&module.structs);
/// let third = FieldPlace { offset_bytes: 12, offset_locations: 3 };
/// assert_eq!(layouts.field(invar_ir::StructId(0), 2), Some(third));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
#[derive(Default)]
pub struct Layouts {
    extents: Extents,
    fields: Vec<Vec<FieldPlace>>,
}

/// Where a field of a struct is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldPlace {
    /// Bytes from the struct's beginning, by C's rules.
    pub offset_bytes: u64,
    /// Locations before it.
    pub offset_locations: u64,
}

impl Layouts {
    /// Of a module's structs.
    pub fn of(structs: &[StructDef]) -> Layouts {
        let mut layouts = Layouts::default();
        for def in structs {
            let mut places = Vec::with_capacity(def.fields.len());
            let mut end = FieldPlace::default();
            for (_, field) in &def.fields {
                let one = layouts.extents.extent(field).unwrap_or(Extent::NOTHING);
                let start = FieldPlace {
                    offset_bytes: end.offset_bytes.next_multiple_of(one.align_bytes),
                    ..end
                };
                places.push(start);
                end = FieldPlace {
                    offset_bytes: start.offset_bytes + one.size_bytes,
                    offset_locations: start.offset_locations + one.location_count,
                };
            }
            layouts.fields.push(places);
            layouts.extents.push(def);
        }
        layouts
    }

    /// [`ElementType::extent`].
    pub fn extent(&self, element: &ElementType) -> Option<Extent> {
        self.extents.extent(element)
    }

    /// Where field number `index` of a struct is; none if there is no such field.
    pub fn field(&self, id: StructId, index: u32) -> Option<FieldPlace> {
        let places = self.fields.get(id.0 as usize)?;
        places.get(index as usize).copied()
    }
}

/// What the limits of an element look at.
#[derive(Clone, Copy)]
struct Measure {
    extent: Extent,
    /// Fields, those of fields counted too.
    parts: u64,
    /// How deep it nests; 1 is a scalar.
    depth: u32,
}

impl Extents {
    /// Takes in the next struct, which holds only those before it.
    pub(crate) fn push(&mut self, def: &StructDef) {
        let measure = self.measure_struct(def);
        self.structs.push(measure);
    }

    /// [`ElementType::extent`], of structs that have been taken in.
    pub(crate) fn extent(&self, element: &ElementType) -> Option<Extent> {
        self.measure(element).map(|measure| measure.extent)
    }

    fn measure_struct(&self, def: &StructDef) -> Option<Measure> {
        let mut whole = Measure {
            extent: Extent::NOTHING,
            parts: 0,
            depth: 1,
        };
        for (_, field) in &def.fields {
            let field = self.measure(field)?;
            whole = Measure {
                extent: whole.extent.then(field.extent)?,
                parts: whole.parts + 1 + field.parts,
                depth: whole.depth.max(1 + field.depth),
            };
        }
        whole.extent = whole.extent.padded()?;
        whole.limited()
    }

    fn measure(&self, element: &ElementType) -> Option<Measure> {
        let mut lengths = Vec::new();
        let mut at = element;
        while let ElementType::Array(element, length) = at {
            if lengths.len() >= MAX_TYPE_DEPTH as usize {
                return None;
            }
            lengths.push(*length);
            at = element;
        }
        let mut measure = match at {
            ElementType::Value(ty) => Measure {
                extent: Extent::of_value(*ty)?,
                parts: 0,
                depth: 1,
            },
            ElementType::Struct(id) => (*self.structs.get(id.0 as usize)?)?,
            // The loop above ends at what is not an array.
            ElementType::Array(..) => return None,
        };
        for length in lengths.into_iter().rev() {
            measure.extent = measure.extent.times(length)?;
            measure.depth += 1;
        }
        measure.limited()
    }
}

impl Measure {
    fn limited(self) -> Option<Measure> {
        (self.parts <= MAX_ELEMENT_PARTS && self.depth <= MAX_TYPE_DEPTH).then_some(self)
    }
}

/// What is left for all else where there is room for something large: a process ends where there is none for a name.
const LEFT_BYTES: u64 = 4 << 20;

/// Whether the process can have so many bytes more now, and a few for all else. A request that the system refuses ends
/// a process, so what follows a user's numbers asks first.
///
/// ```
/// assert!(invar_ir::memory_layout::has_room(1024));
/// assert!(!invar_ir::memory_layout::has_room(u64::MAX));
/// ```
pub fn has_room(bytes: u64) -> bool {
    let bytes = usize::try_from(bytes.saturating_add(LEFT_BYTES));
    bytes.is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
}

/// The largest size of one element (an array declared in a kernel holds many): 16 MiB. Checks, and data that is made
/// up, have a list of all its scalars.
pub const MAX_ELEMENT_BYTES: u64 = 16 << 20;

/// The largest size of one element that is copied: 1 MiB. The reference machine holds it for each thread of a simdgroup.
pub const MAX_COPIED_ELEMENT_BYTES: u64 = 1 << 20;

/// How deep structs and arrays may nest.
pub const MAX_TYPE_DEPTH: u32 = 16;

/// How many fields one element may have, those of its fields counted too, an array's once. It
/// bounds the work on types that name one struct many times over.
pub const MAX_ELEMENT_PARTS: u64 = 4096;

impl ElementType {
    /// Size, alignment and locations; `None` if the type nests deeper than [`MAX_TYPE_DEPTH`],
    /// is larger than [`MAX_ELEMENT_BYTES`], has more than [`MAX_ELEMENT_PARTS`] fields, names a
    /// struct that is not there, or is not a memory type.
    pub fn extent(&self, structs: &[StructDef]) -> Option<Extent> {
        let mut parts = MAX_ELEMENT_PARTS;
        self.extent_at(structs, MAX_TYPE_DEPTH, &mut parts)
    }

    fn extent_at(&self, structs: &[StructDef], depth: u32, parts: &mut u64) -> Option<Extent> {
        let depth = depth.checked_sub(1)?;
        match self {
            ElementType::Value(ty) => Extent::of_value(*ty),
            ElementType::Array(element, length) => {
                element.extent_at(structs, depth, parts)?.times(*length)
            }
            ElementType::Struct(id) => {
                let mut total = Extent::NOTHING;
                for (_, field) in &structs.get(id.0 as usize)?.fields {
                    *parts = parts.checked_sub(1)?;
                    total = total.then(field.extent_at(structs, depth, parts)?)?;
                }
                total.padded()
            }
        }
    }

    /// The scalars of one element in order: byte offset and type of each. Empty if
    /// [`ElementType::extent`] is `None`.
    pub fn locations(&self, structs: &[StructDef]) -> Vec<(u64, Scalar)> {
        self.first_locations(structs, usize::MAX)
    }

    /// As [`ElementType::locations`], the first `count` of them.
    pub fn first_locations(&self, structs: &[StructDef], count: usize) -> Vec<(u64, Scalar)> {
        let mut out = Vec::new();
        if self.extent(structs).is_some() {
            self.push_locations(structs, 0, count, &mut out);
        }
        out
    }

    fn push_locations(
        &self,
        structs: &[StructDef],
        base: u64,
        count: usize,
        out: &mut Vec<(u64, Scalar)>,
    ) {
        match self {
            ElementType::Value(ty) => {
                if let Some(scalar) = ty.scalar() {
                    let left = count.saturating_sub(out.len()) as u64;
                    for i in 0..u64::from(ty.component_count()).min(left) {
                        out.push((base + i * scalar.size_bytes(), scalar));
                    }
                }
            }
            ElementType::Array(element, length) => {
                // An element without scalars would be walked through in vain.
                let Some(one) = element.extent(structs).filter(|e| e.location_count > 0) else {
                    return;
                };
                for i in 0..u64::from(*length) {
                    if out.len() >= count {
                        return;
                    }
                    element.push_locations(structs, base + i * one.size_bytes, count, out);
                }
            }
            ElementType::Struct(id) => {
                let mut end = base;
                for (_, field) in &structs[id.0 as usize].fields {
                    if out.len() >= count {
                        return;
                    }
                    let Some(one) = field.extent(structs) else {
                        return;
                    };
                    // The base is a multiple of the struct's alignment, and so of every field's.
                    let start = end.next_multiple_of(one.align_bytes);
                    field.push_locations(structs, start, count, out);
                    end = start + one.size_bytes;
                }
            }
        }
    }
}
