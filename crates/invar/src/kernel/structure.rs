//! Structs of kernels, function constants, and what launches have to fulfil.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;

use invar_ir::requires::Given;
use invar_ir::{
    Const, Diagnostic, ElementType, FunctionConstant as Declared, Place, Rule, Step, StructDef,
    StructId, Value,
};

use super::data::{Data, Integer, Scalar, Stored, Val};
use super::define::{Place4, at, with};
use super::value::IntoVal;

/// The name of a field, and what it holds.
type Field = (&'static str, fn() -> ElementType);

/// The struct `T` in the kernel that is being defined, declared when first asked for.
#[doc(hidden)]
pub fn struct_type<T: 'static>(name: &str, fields: &[Field]) -> ElementType {
    let key = TypeId::of::<T>();
    if let Some(id) = with(|k| k.structs.get(&key).copied()) {
        return ElementType::Struct(id);
    }
    // Structs of fields come first: a struct holds only earlier ones.
    let fields: Vec<(Arc<str>, ElementType)> = fields
        .iter()
        .map(|(name, element)| ((*name).into(), element()))
        .collect();
    with(|k| {
        let span = k.builder.span();
        let all = &mut k.builder.module_mut().structs;
        let numbered = (1..).map(|n| format!("{name}.{n}"));
        let name = std::iter::once(name.to_string())
            .chain(numbered)
            .find(|name| all.iter().all(|s| *s.name != **name))
            .unwrap_or_default();
        all.push(StructDef {
            name: name.into(),
            fields,
            span,
        });
        let id = StructId(all.len() as u32 - 1);
        k.structs.insert(key, id);
        ElementType::Struct(id)
    })
}

/// Which type a field of a struct has.
#[doc(hidden)]
pub struct Reader<S, F>(PhantomData<fn(S) -> F>);

/// That of the field that is read so.
#[doc(hidden)]
pub fn reader<S: Data, F: Data>(_read: impl Fn(&S::Repr) -> Val<F>) -> Reader<S, F> {
    Reader(PhantomData)
}

/// A field of a struct that is put together, with the values given for it.
#[doc(hidden)]
pub fn field<S: Data, F: Data>(
    name: &'static str,
    _of: Reader<S, F>,
    value: Val<F>,
) -> (&'static str, Vec<Value>) {
    let mut values = Vec::new();
    F::values(&value.repr, &mut values);
    (name, values)
}

fn field_of(place: &Place, number: u32) -> Place {
    let mut place = place.clone();
    place.path.push(Step::Field(number));
    place
}

/// Reads a field.
#[doc(hidden)]
pub fn load_field<T: Stored>(place: &Place, number: u32) -> Val<T> {
    Val::from_repr(T::load(&field_of(place, number)))
}

/// Writes a field.
#[doc(hidden)]
pub fn store_field<T: Stored>(place: &Place, number: u32, value: Val<T>) {
    T::store(&field_of(place, number), &value.repr);
}

/// A struct whose fields have a known order.
pub trait Struct: Stored {
    /// The names of its fields in order.
    const FIELDS: &'static [&'static str];
}

/// A struct of these fields, each of which is there once.
#[doc(hidden)]
pub fn structure<S: Struct>(fields: &[(&'static str, Vec<Value>)]) -> Val<S> {
    let in_order = S::FIELDS.iter().flat_map(|name| {
        let given = fields.iter().find(|(field, _)| field == name);
        given.map_or(&[][..], |(_, values)| values).iter().copied()
    });
    Val::from_repr(S::rebuild(&mut in_order.collect::<Vec<_>>().into_iter()))
}

/// A value that is fixed when a kernel is prepared, the same for the whole grid: what `#[function_constant]`
/// makes of a constant.
///
/// ```
/// use invar::prelude::*;
///
/// #[function_constant(0)]
/// const STEP: u32 = 1;
///
/// #[kernel]
/// fn steps(y: &mut [u32]) {
///     let i = thread_position_in_grid().x;
///     y[i] = i * STEP;
/// }
///
/// let device = Device::checked();
/// let mut y = device.buffer_zeroed::<u32>(3)?;
/// let prepared = steps::prepare_with(&device, &[STEP.set(10)])?;
/// steps::launch(&prepared, Grid::threads(3), &mut y)?.wait()?;
/// assert_eq!(y.read()?, [0, 10, 20]);
/// # Ok::<(), invar::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FunctionConstant<T> {
    name: &'static str,
    id: u32,
    default: Option<T>,
}

impl<T: Scalar> FunctionConstant<T> {
    #[doc(hidden)]
    pub const fn new(name: &'static str, id: u32, default: Option<T>) -> FunctionConstant<T> {
        FunctionConstant { name, id, default }
    }

    /// Its value for a kernel that is prepared: for `prepare_with`.
    pub fn set(self, value: T) -> Constant {
        Constant {
            name: self.name,
            value: value.into(),
        }
    }
}

/// A function constant's name and value, from [`FunctionConstant::set`].
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    pub(super) name: &'static str,
    pub(super) value: Const,
}

impl<T: Scalar> FunctionConstant<T> {
    /// Its place in the kernel that is being defined, which has it from now on.
    pub(super) fn declared(self) -> u32 {
        with(|k| {
            let span = k.builder.span();
            let all = &mut k.builder.module_mut().function_constants;
            let known = all.iter().position(|c| *c.name == *self.name);
            let default = self.default.map(Into::into);
            let is_this =
                |c: &Declared| (c.id, c.scalar) == (self.id, T::SCALAR) && c.default == default;
            let other = known.map(|at| &all[at]).filter(|c| !is_this(c));
            let message = other.map(|other| {
                format!(
                    "two function constants are called `{}`, with the numbers {} and {}: give one \
                     another name",
                    self.name, other.id, self.id
                )
            });
            let place = known.unwrap_or_else(|| {
                all.push(Declared {
                    name: self.name.into(),
                    id: self.id,
                    scalar: T::SCALAR,
                    default,
                    span,
                });
                all.len() - 1
            });
            if let Some(message) = message {
                let error = Diagnostic::error(Rule::DuplicateName, span, message);
                k.builder.error(error);
            }
            place as u32
        })
    }
}

impl<T: Scalar> IntoVal for FunctionConstant<T> {
    type Val = Val<T>;

    fn into_val(self) -> Val<T> {
        let place = self.declared();
        Val::of(with(|k| k.builder.function_constant(place)))
    }
}

/// What a launch has to fulfil (S5).
pub fn requires(text: &str, given: &[(&str, Given)], place: Place4) {
    at(place, ());
    with(|k| k.builder.requires_given(text, given));
}

/// What a requirement names beside parameters: a Rust constant, whose value is known when the kernel is made, or a
/// function constant.
#[diagnostic::on_unimplemented(
    message = "a requirement names no `{Self}`",
    label = "no integer, and no function constant that is one",
    note = "a requirement is of whole numbers: integer parameters, constants and function constants of integer types, \
            and sizes such as `length(x)`"
)]
pub trait Requirable {
    /// What it is to the requirement.
    fn given(self) -> Given;
}

macro_rules! requirable {
    ($($ty:ty),*) => {$(
        impl Requirable for $ty {
            fn given(self) -> Given {
                Given::Number(self as i128)
            }
        }
    )*};
}
requirable!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

#[diagnostic::do_not_recommend]
impl<T: Integer> Requirable for FunctionConstant<T> {
    fn given(self) -> Given {
        Given::Constant(self.declared())
    }
}
