//! Launches made: the arguments of a launch as a device gets them, so that the code of the checked device says whether
//! it fulfils all that a kernel requires, of numbers and of what buffers hold.
//!
//! Where something is required of elements it holds of each by itself, or of their order. So all elements of such a
//! buffer may be alike, and one is chosen.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use invar_interp::{Given, GridSizes, check_all_required};
use invar_ir::requires::{Comparison, Field};
use invar_ir::{
    Const, ElementType, Kernel, LaunchNumber, Memory, Module, ParamKind, Required, Scalar, Type,
};
use invar_texture::TextureShape;

use crate::condition::Number;
use crate::launch::Launch;
use crate::required::{holds_of, of_launch};
use crate::thread::range;

/// No buffer of a launch that is made has more bytes, if something is required of its elements.
const MOST_BYTES: u64 = 1 << 26;
/// Elements are looked for so near to what a comparison has them compared with.
const NEAR: i128 = 64;
/// Small elements that are tried.
const SMALL: i128 = 16;

/// The buffers of whose elements a kernel requires something, with their type.
pub fn of_elements(kernel: &Kernel) -> BTreeMap<u32, Scalar> {
    let buffers = kernel.requires.iter().filter_map(|r| match &r.required {
        Required::Each { buffer, .. } | Required::Ascending { buffer } => Some(*buffer),
        Required::Holds(_) => None,
    });
    let scalar = |buffer: u32| match &kernel.params.get(buffer as usize)?.kind {
        ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => match element {
            ElementType::Value(Type::Scalar(scalar)) => Some((buffer, *scalar)),
            ElementType::Value(_) | ElementType::Array(..) | ElementType::Struct(_) => None,
        },
        ParamKind::Threadgroup { .. }
        | ParamKind::Scalar { .. }
        | ParamKind::Texture(_)
        | ParamKind::Sampler => None,
    };
    buffers.filter_map(scalar).collect()
}

/// The fields of first elements of which a kernel requires something.
pub fn fields_required(kernel: &Kernel) -> Vec<Number> {
    let comparisons = kernel.requires.iter().filter_map(|r| r.comparison());
    let numbers = comparisons.flat_map(Comparison::numbers);
    let mut found = Vec::new();
    for number in numbers {
        if let LaunchNumber::Field(place, location) = number {
            let field = Number::Field(place as usize, location);
            if !found.contains(&field) {
                found.push(field);
            }
        }
    }
    found
}

/// The bytes of a buffer whose known elements are these, and the others like the known one before.
fn bytes_of(scalar: Scalar, length: i128, known: Option<&BTreeMap<u64, i128>>) -> Option<Vec<u8>> {
    let size = scalar.size_bytes();
    let length = u64::try_from(length).ok()?;
    length.checked_mul(size).filter(|all| *all <= MOST_BYTES)?;
    let mut value = known.and_then(|known| known.values().next()).copied()?;
    let mut bytes = Vec::with_capacity((length * size) as usize);
    let (least, most) = range(scalar);
    for at in 0..length {
        value = known
            .and_then(|known| known.get(&at))
            .copied()
            .unwrap_or(value);
        if !(least..=most).contains(&value) {
            return None;
        }
        bytes.extend(&value.to_le_bytes()[..size as usize]);
    }
    Some(bytes)
}

/// The first element of a buffer whose fields a launch says.
fn first_element(
    module: &Module,
    kernel: &Kernel,
    place: usize,
    launch: &Launch,
) -> Option<Vec<u8>> {
    let element = match &kernel.params.get(place)?.kind {
        ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => element,
        ParamKind::Threadgroup { .. }
        | ParamKind::Scalar { .. }
        | ParamKind::Texture(_)
        | ParamKind::Sampler => return None,
    };
    if launch.numbers.get(place).copied().flatten()? < 1 {
        return Some(Vec::new());
    }
    let size = element.extent(&module.structs)?.size_bytes;
    let mut bytes = vec![
        0;
        usize::try_from(size)
            .ok()
            .filter(|size| *size as u64 <= MOST_BYTES)?
    ];
    for ((_, at), value) in launch.fields.range((place, 0)..=(place, u32::MAX)) {
        let field = Field::of(module, kernel, place as u32, *at)?;
        let (start, size) = (
            field.offset_bytes as usize,
            field.scalar.size_bytes() as usize,
        );
        let value = value.to_le_bytes();
        bytes
            .get_mut(start..start + size)?
            .copy_from_slice(&value[..size]);
    }
    Some(bytes)
}

/// What buffers hold in a launch, by their places: those of whose elements or fields it says something, or the kernel
/// requires something. `None` where a number does not fit, or a buffer is too large to be made.
fn held(module: &Module, kernel: &Kernel, launch: &Launch) -> Option<BTreeMap<u32, Vec<u8>>> {
    let mut held = BTreeMap::new();
    for (place, scalar) in of_elements(kernel) {
        let length = launch.numbers.get(place as usize).copied().flatten()?;
        let known = launch.contents.get(&Memory::Param(place));
        held.insert(place, bytes_of(scalar, length, known)?);
    }
    let required = fields_required(kernel).into_iter();
    let required = required.filter_map(|number| match number {
        Number::Field(place, _) => Some(place),
        _another => None,
    });
    for place in launch
        .fields
        .keys()
        .map(|(place, _)| *place)
        .chain(required)
    {
        if let Entry::Vacant(entry) = held.entry(place as u32) {
            entry.insert(first_element(module, kernel, place, launch)?);
        }
    }
    Some(held)
}

/// Whether a launch that says all its numbers can be made, holds what it says, and fulfils all that the kernel requires,
/// as the checked device looks at it. Buffers of whose elements something is required have one.
pub fn fulfils(
    module: &Module,
    kernel: &Kernel,
    launch: &Launch,
    shapes: &BTreeMap<usize, TextureShape>,
) -> bool {
    fulfilled(module, kernel, launch, shapes) == Some(true)
}

fn fulfilled(
    module: &Module,
    kernel: &Kernel,
    launch: &Launch,
    shapes: &BTreeMap<usize, TextureShape>,
) -> Option<bool> {
    let number = |n: Option<i128>| n.and_then(|n| u32::try_from(n).ok());
    let (mut threads, mut threadgroup, mut threadgroups) = ([0; 3], [0; 3], [0; 3]);
    for d in 0..3 {
        threads[d] = number(launch.grid[d])?;
        threadgroup[d] = number(launch.threadgroup[d])?;
        threadgroups[d] = number(launch.groups(d))?;
    }
    let grid = GridSizes {
        threads,
        threadgroup,
        threadgroups,
    };
    let held = held(module, kernel, launch)?;
    let is_empty = |place: &u32| held.get(place).is_none_or(Vec::is_empty);
    if of_elements(kernel).keys().any(is_empty) {
        return Some(false);
    }
    let scalars: Vec<Option<Const>> = (kernel.params.iter().zip(&launch.numbers))
        .map(|(param, number)| match &param.kind {
            ParamKind::Scalar { value } => {
                let scalar = kernel.ty(*value).scalar().filter(|s| s.is_integer())?;
                let bits = number.as_ref()?.to_le_bytes();
                let mut own = [0; 8];
                own[..scalar.size_bytes() as usize]
                    .copy_from_slice(&bits[..scalar.size_bytes() as usize]);
                Some(Const {
                    scalar,
                    bits: u64::from_le_bytes(own),
                })
            }
            _object => None,
        })
        .collect();
    let mut args = Vec::new();
    for (place, param) in kernel.params.iter().enumerate() {
        let length = || u64::try_from(launch.numbers.get(place).copied().flatten()?).ok();
        args.push(match &param.kind {
            ParamKind::Scalar { .. } => {
                let given = scalars.get(place).and_then(Option::as_ref);
                Given::Scalar(given.map_or(&[], std::slice::from_ref))
            }
            ParamKind::Buffer { element, .. } | ParamKind::Constant { element } => Given::Buffer {
                writable: true,
                holds: None,
                size_bytes: element
                    .extent(&module.structs)?
                    .size_bytes
                    .checked_mul(length()?)?,
            },
            ParamKind::Threadgroup { .. } => Given::ThreadgroupLength(length()?),
            ParamKind::Texture(_) => Given::Texture {
                writable: true,
                shape: *shapes.get(&place)?,
                size_bytes: 0,
            },
            ParamKind::Sampler => Given::Scalar(&[]),
        });
    }
    // What the launch says of fields is what their buffers hold: 0 in one of no elements (B1).
    for ((place, at), value) in &launch.fields {
        let field = Field::of(module, kernel, *place as u32, *at)?;
        let (ParamKind::Buffer { element, .. } | ParamKind::Constant { element }) =
            &kernel.params.get(*place)?.kind
        else {
            return None;
        };
        let each = element.extent(&module.structs)?.size_bytes;
        if field.read(each, held.get(&(*place as u32))?)? != *value {
            return Some(false);
        }
    }
    let bytes = |place: u32| held.get(&place).map(Vec::as_slice);
    let given = (args, &launch.constants[..]);
    Some(check_all_required((module, kernel), &grid, given, &bytes).is_ok())
}

/// Gives buffers elements that fulfil what is required of each, as far as one is found for the other numbers of the
/// launch; and has fields of first elements say what those are.
pub fn give_elements(kernel: &Kernel, launch: &mut Launch) {
    for (place, scalar) in of_elements(kernel) {
        let memory = Memory::Param(place);
        let field = (place as usize, 0);
        let known = launch
            .contents
            .get(&memory)
            .and_then(|held| held.values().next());
        let mut tried: Vec<i128> = launch.fields.get(&field).copied().into_iter().collect();
        tried.extend(known.copied());
        let its: Vec<&Comparison> = (kernel.requires.iter())
            .filter_map(|r| match &r.required {
                Required::Each {
                    buffer, comparison, ..
                } if *buffer == place => Some(comparison),
                _another => None,
            })
            .collect();
        let (least, most) = range(scalar);
        tried.extend([0, 1, least, most].into_iter().chain(2..=SMALL));
        for comparison in &its {
            tried.extend(near(comparison, launch));
        }
        let fulfils = |element: &i128| {
            (least..=most).contains(element)
                && its
                    .iter()
                    .all(|c| holds_of(c, launch, *element) == Some(true))
        };
        let chosen = tried.into_iter().find(fulfils).unwrap_or(0);
        launch.contents.insert(memory, [(0, chosen)].into());
        if let Some(field) = launch.fields.get_mut(&field) {
            *field = chosen;
        }
    }
    let lengths = launch.numbers.clone();
    for ((place, _), value) in &mut launch.fields {
        if lengths.get(*place).copied().flatten() == Some(0) {
            *value = 0;
        }
    }
}

/// Elements near to where the two sides of a comparison are the same, if they grow evenly with the element.
fn near(comparison: &Comparison, launch: &Launch) -> Vec<i128> {
    let apart = |element: i128| {
        let number = |number| match number {
            LaunchNumber::Element => Some(element),
            another => of_launch(another, launch),
        };
        let (left, right) = (
            comparison.left.value(&number)?,
            comparison.right.value(&number)?,
        );
        left.checked_sub(right)
    };
    let even = || {
        let (zero, one, two) = (apart(0)?, apart(1)?, apart(2)?);
        let slope = one.checked_sub(zero)?;
        let is_even = slope != 0 && two.checked_sub(one)? == slope;
        is_even.then(|| (-zero).div_euclid(slope))
    };
    even().map_or(Vec::new(), |middle| {
        let far = |away| middle.checked_add(away);
        let nearest = (0..=NEAR).flat_map(|n| [far(n), far(-n)]);
        nearest.flatten().collect()
    })
}
