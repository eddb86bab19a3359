//! Layout algebra in Python: the classes and functions of `invar.layout`.
//!
//! A shape, stride or coordinate is an integer or a nested tuple (lists are taken too), `None` in a
//! coordinate keeps a mode, and a tiler is an integer, a layout, `None`, or a tuple of tilers. What
//! the algebra refuses is a `LayoutError` with the condition that failed. Every docstring's example
//! is run by the package's tests.
//!
//! Absent: rules of the algebra, which are `invar_layout`'s.

use std::hash::{DefaultHasher, Hash, Hasher};

use invar_layout::{
    self as algebra, Banks, Coord, IntTuple, Layout, Picture, Swizzle, SwizzledLayout, Tiler,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};
use pyo3::{Borrowed, IntoPyObjectExt};

create_exception!(
    _invar,
    LayoutError,
    PyValueError,
    "An operation of the layout algebra on operands that it does not take; the message names the \
     condition that failed."
);

fn fail(error: algebra::Error) -> PyErr {
    LayoutError::new_err(error.to_string())
}

fn wrong(what: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let shown = value.repr().map(|r| r.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("expected {what}, found {shown}"))
}

/// Deeper nesting than any layout may have is refused before it is walked.
const MAX_DEPTH: usize = algebra::MAX_DEPTH;

fn too_deep() -> PyErr {
    LayoutError::new_err(format!("a tuple nests deeper than {MAX_DEPTH} levels"))
}

/// The parts of a tuple or list.
fn parts<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(tuple) = value.cast::<PyTuple>() {
        Some(tuple.iter().collect())
    } else if let Ok(list) = value.cast::<PyList>() {
        Some(list.iter().collect())
    } else {
        None
    }
}

fn is_nested(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>()
}

/// An integer, but no `bool`; anything with `__index__`, such as NumPy's integers.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    // Nearly all are.
    if value.is_exact_instance_of::<PyInt>() {
        return small(value).map(Some);
    }
    if value.is_instance_of::<pyo3::types::PyBool>() {
        return Ok(None);
    }
    if value.is_instance_of::<PyInt>() {
        small(value).map(Some)
    } else if !is_nested(value) && value.hasattr("__index__")? {
        small(&value.call_method0("__index__")?).map(Some)
    } else {
        Ok(None)
    }
}

/// An integer of Python's as one of 64 bits.
fn small(number: &Bound<'_, PyAny>) -> PyResult<i64> {
    number
        .extract()
        .map_err(|_| LayoutError::new_err(format!("{number} does not fit 64 bits")))
}

/// An integer that an argument has to be.
struct Number(i64);

impl<'py> FromPyObject<'_, 'py> for Number {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match integer(&value)? {
            Some(number) => Ok(Number(number)),
            None => Err(wrong("an integer", &value)),
        }
    }
}

impl Number {
    /// A size in banks or bytes.
    fn count(self, what: &str) -> PyResult<u32> {
        u32::try_from(self.0).map_err(|_| {
            LayoutError::new_err(format!("{what}: {} is outside 0 to {}", self.0, u32::MAX))
        })
    }
}

/// The integers of a short tuple that holds nothing else, which most are.
fn flat(value: &Bound<'_, PyAny>) -> Option<([i64; 8], usize)> {
    let tuple = value.cast::<PyTuple>().ok()?;
    let count = tuple.len();
    let mut out = [0; 8];
    if count > out.len() {
        return None;
    }
    for (at, slot) in out.iter_mut().enumerate().take(count) {
        let item = tuple.get_borrowed_item(at).ok()?;
        if !item.is_exact_instance_of::<PyInt>() {
            return None;
        }
        *slot = item.extract().ok()?;
    }
    Some((out, count))
}

/// A nested tuple of integers.
struct Tuple(IntTuple);

impl<'py> FromPyObject<'_, 'py> for Tuple {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        fn go(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<IntTuple> {
            if depth > MAX_DEPTH {
                return Err(too_deep());
            }
            if let Some((integers, count)) = flat(value) {
                return IntTuple::flat(&integers[..count]).map_err(fail);
            }
            let Some(modes) = parts(value) else {
                return match integer(value)? {
                    Some(number) => Ok(number.into()),
                    None => Err(wrong("an integer or a nested tuple of integers", value)),
                };
            };
            let modes: PyResult<Vec<_>> = modes.iter().map(|mode| go(mode, depth + 1)).collect();
            IntTuple::tuple(modes?).map_err(fail)
        }
        go(&value, 0).map(Tuple)
    }
}

impl<'py> IntoPyObject<'py> for Tuple {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.as_int() {
            Some(number) => number.into_bound_py_any(py),
            None => {
                let modes: PyResult<Vec<_>> = self
                    .0
                    .modes()
                    .map(|mode| Tuple(mode).into_pyobject(py))
                    .collect();
                Ok(PyTuple::new(py, modes?)?.into_any())
            }
        }
    }
}

/// A coordinate, in which `None` keeps a mode.
struct Place(Coord);

impl<'py> FromPyObject<'_, 'py> for Place {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        fn go(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Coord> {
            if depth > MAX_DEPTH {
                return Err(too_deep());
            }
            if value.is_none() {
                return Ok(Coord::new(None));
            }
            if let Some((integers, count)) = flat(value) {
                let integers = IntTuple::flat(&integers[..count]).map_err(fail)?;
                return Ok((&integers).into());
            }
            match parts(value) {
                Some(modes) => {
                    let modes: PyResult<Vec<_>> =
                        modes.iter().map(|mode| go(mode, depth + 1)).collect();
                    Coord::tuple(modes?).map_err(fail)
                }
                None => match integer(value)? {
                    Some(number) => Ok(number.into()),
                    None => Err(wrong("a coordinate of integers and None", value)),
                },
            }
        }
        go(&value, 0).map(Place)
    }
}

/// What divides or multiplies a layout.
struct Tiles(Tiler);

impl<'py> FromPyObject<'_, 'py> for Tiles {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        fn go(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Tiler> {
            if depth > MAX_DEPTH {
                return Err(too_deep());
            }
            if value.is_none() {
                return Ok(Tiler::keep());
            }
            if let Ok(layout) = value.cast::<PyLayout>() {
                return Ok(layout.get().0.clone().into());
            }
            if let Ok(tuple) = value.cast::<PyTuple>() {
                let mut modes = Vec::with_capacity(tuple.len());
                for mode in tuple.iter_borrowed() {
                    modes.push(go(&mode, depth + 1)?);
                }
                return Tiler::tuple(modes).map_err(fail);
            }
            if let Ok(list) = value.cast::<PyList>() {
                return go(list.to_tuple().as_any(), depth);
            }
            match integer(value)? {
                Some(count) => Tiler::int(count).map_err(fail),
                None => Err(wrong(
                    "a tiler: an integer, a Layout, None, or a tuple of tilers",
                    value,
                )),
            }
        }
        go(&value, 0).map(Tiles)
    }
}

/// A layout, plain or swizzled.
enum Any<'a, 'py> {
    Plain(Borrowed<'a, 'py, PyLayout>),
    Swizzled(Borrowed<'a, 'py, PySwizzledLayout>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Any<'a, 'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(layout) = value.cast() {
            Ok(Any::Plain(layout))
        } else if let Ok(layout) = value.cast() {
            Ok(Any::Swizzled(layout))
        } else {
            Err(wrong("a Layout or a SwizzledLayout", &value))
        }
    }
}

impl Any<'_, '_> {
    fn swizzled(&self) -> SwizzledLayout {
        match self {
            Any::Plain(layout) => layout.get().0.clone().into(),
            Any::Swizzled(layout) => layout.get().0.clone(),
        }
    }
}

/// Gives a plain layout where nothing is swizzled, else a swizzled one.
fn either<'py>(
    py: Python<'py>,
    layout: &Any<'_, 'py>,
    plain: impl FnOnce(&Layout) -> algebra::Result<Layout>,
    swizzled: impl FnOnce(&SwizzledLayout) -> algebra::Result<SwizzledLayout>,
) -> PyResult<Bound<'py, PyAny>> {
    match layout {
        Any::Plain(l) => PyLayout(plain(&l.get().0).map_err(fail)?).into_bound_py_any(py),
        Any::Swizzled(l) => {
            PySwizzledLayout(swizzled(&l.get().0).map_err(fail)?).into_bound_py_any(py)
        }
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The size of all of a shape, of one mode, or of what a path leads to: `[1, 0]` is mode 0 of mode 1.
fn size_of(shape: &IntTuple, mode: Option<Modes>) -> PyResult<i64> {
    let mut part = shape.clone();
    if let Some(path) = mode {
        for mode in path.list("size", shape.rank())? {
            part = part.mode(mode).map_err(fail)?;
        }
    }
    part.size().map_err(fail)
}

/// One mode or several, by their numbers.
enum Modes {
    One(i64),
    Several(Vec<i64>),
}

impl<'py> FromPyObject<'_, 'py> for Modes {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = |mode: &Bound<'_, PyAny>| match integer(mode)? {
            Some(mode) => Ok(mode),
            None => Err(wrong("the number of a mode, or a list of them", &value)),
        };
        match parts(&value) {
            Some(modes) => modes
                .iter()
                .map(number)
                .collect::<PyResult<_>>()
                .map(Modes::Several),
            None => number(&value).map(Modes::One),
        }
    }
}

impl Modes {
    /// The numbers, none of them negative.
    fn list(&self, operation: &'static str, rank: usize) -> PyResult<Vec<usize>> {
        let modes = match self {
            Modes::One(mode) => std::slice::from_ref(mode),
            Modes::Several(modes) => modes,
        };
        let number = |&mode: &i64| {
            usize::try_from(mode).map_err(|_| {
                fail(algebra::Error::NoSuchMode {
                    operation,
                    mode,
                    rank,
                })
            })
        };
        modes.iter().map(number).collect()
    }
}

/// A function from coordinates to offsets: a shape and a stride that nest alike.
///
/// Without a stride the leftmost mode is contiguous. A string in the usual notation works too.
///
/// >>> from invar.layout import Layout
/// >>> tile = Layout((4, 8), (8, 1))
/// >>> tile
/// Layout('(4,8):(8,1)')
/// >>> tile((1, 2)), tile(5), tile.size(), tile.cosize()
/// (10, 9, 32, 32)
/// >>> Layout("((4,2),8):((1,32),4)").shape
/// ((4, 2), 8)
#[pyclass(name = "Layout", module = "invar.layout", frozen)]
pub struct PyLayout(Layout);

#[pymethods]
impl PyLayout {
    #[new]
    #[pyo3(signature = (shape, stride=None))]
    fn new(shape: &Bound<'_, PyAny>, stride: Option<Tuple>) -> PyResult<Self> {
        if let Ok(text) = shape.cast::<PyString>() {
            if stride.is_some() {
                return Err(LayoutError::new_err(
                    "a layout in text has its strides in it: leave the second argument out",
                ));
            }
            let text = text.to_cow()?;
            return text.parse().map(PyLayout).map_err(fail);
        }
        let Tuple(shape) = shape.extract()?;
        match stride {
            None => Layout::compact(&shape),
            Some(Tuple(stride)) => Layout::new(&shape, &stride),
        }
        .map(PyLayout)
        .map_err(fail)
    }

    /// The shape, an integer or a nested tuple.
    #[getter]
    fn shape(&self) -> Tuple {
        Tuple(self.0.shape())
    }

    /// The stride, nested as the shape.
    #[getter]
    fn stride(&self) -> Tuple {
        Tuple(self.0.stride())
    }

    /// The offset of a coordinate or of an index; with None in it, the slice that is left.
    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let place = place_of(args, named)?;
        if place.has_wildcard() {
            let (layout, _) = self.0.slice(&place).map_err(fail)?;
            return PyLayout(layout).into_bound_py_any(py);
        }
        let coordinate = place.to_int_tuple().map_err(fail)?;
        match coordinate.as_int() {
            Some(index) => self.0.call_index(index),
            None => self.0.call(&coordinate),
        }
        .map_err(fail)?
        .into_bound_py_any(py)
    }

    /// The number of coordinates, of all modes, of one, or of what a path of modes leads to.
    #[pyo3(signature = (mode=None))]
    fn size(&self, mode: Option<Modes>) -> PyResult<i64> {
        size_of(&self.0.shape(), mode)
    }

    /// One more than the largest offset.
    fn cosize(&self) -> i64 {
        self.0.cosize()
    }

    /// The number of modes.
    fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Levels of parentheses.
    fn depth(&self) -> usize {
        self.0.depth()
    }

    /// The coordinate of an index.
    fn coordinate(&self, index: Number) -> PyResult<Tuple> {
        self.0.coordinate(index.0).map(Tuple).map_err(fail)
    }

    /// The index of a coordinate.
    fn index(&self, coord: Tuple) -> PyResult<i64> {
        self.0.index(&coord.0).map_err(fail)
    }

    /// Every offset, leftmost coordinate fastest.
    fn offsets(&self) -> PyResult<Vec<i64>> {
        self.0.offsets().map_err(fail)
    }

    /// The table of offsets as text.
    fn table(&self) -> PyResult<String> {
        Ok(Picture::offsets(self.0.clone()).map_err(fail)?.table())
    }

    /// The picture of the offsets as SVG text; notebooks show it by themselves.
    fn svg(&self) -> PyResult<String> {
        Ok(Picture::offsets(self.0.clone()).map_err(fail)?.svg())
    }

    /// The picture, or nothing for a layout too large to draw.
    fn _repr_svg_(&self) -> Option<String> {
        self.svg().ok()
    }

    fn __getitem__(&self, mode: Number) -> PyResult<PyLayout> {
        let (mode, rank) = (mode.0, self.0.rank() as i64);
        let at = if mode < 0 { mode + rank } else { mode };
        if !(0..rank).contains(&at) {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "mode {mode} of a layout of rank {rank}"
            )));
        }
        self.0.mode(at as usize).map(PyLayout).map_err(fail)
    }

    fn __len__(&self) -> usize {
        self.0.rank()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyLayout>().is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&(self.0.shape(), self.0.stride()))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Layout('{}')", self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}

/// A call's coordinate: its only argument, all of them, or what is named `coord`.
fn place_of(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Coord> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return match named.get_item("coord")? {
            Some(coord) if named.len() == 1 && args.is_empty() => Ok(coord.extract::<Place>()?.0),
            _ => Err(wrong("one coordinate, as layout(coord=...)", named)),
        };
    }
    if args.len() == 1 {
        Ok(args.get_item(0)?.extract::<Place>()?.0)
    } else {
        Ok(args.as_any().extract::<Place>()?.0)
    }
}

/// A permutation of offsets: `bits` bits above `base` are changed by those `shift` higher (lower,
/// if negative), by exclusive or.
///
/// >>> from invar.layout import Swizzle
/// >>> [Swizzle(1, 0, 1)(i) for i in range(4)]
/// [0, 1, 3, 2]
#[pyclass(name = "Swizzle", module = "invar.layout", frozen)]
pub struct PySwizzle(Swizzle);

#[pymethods]
impl PySwizzle {
    #[new]
    fn new(bits: Number, base: Number, shift: Number) -> PyResult<Self> {
        Swizzle::new(bits.0, base.0, shift.0)
            .map(PySwizzle)
            .map_err(fail)
    }

    /// How many bits are changed.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// How many low bits stay.
    #[getter]
    fn base(&self) -> u32 {
        self.0.base()
    }

    /// How far the changing bits are from the changed ones.
    #[getter]
    fn shift(&self) -> i32 {
        self.0.shift()
    }

    fn __call__(&self, offset: Number) -> PyResult<i64> {
        self.0.apply(offset.0).map_err(fail)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PySwizzle>().is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0)
    }

    fn __repr__(&self) -> String {
        format!(
            "Swizzle({}, {}, {})",
            self.0.bits(),
            self.0.base(),
            self.0.shift()
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (u32, u32, i32)) {
        let swizzle = slf.get().0;
        (
            slf.get_type().into_any(),
            (swizzle.bits(), swizzle.base(), swizzle.shift()),
        )
    }
}

/// A layout whose offsets go through a swizzle.
///
/// >>> from invar.layout import Layout, Swizzle, SwizzledLayout
/// >>> tile = SwizzledLayout(Layout((8, 8), (8, 1)), Swizzle(3, 0, 3))
/// >>> tile((1, 0)), tile((1, 1))
/// (9, 8)
#[pyclass(name = "SwizzledLayout", module = "invar.layout", frozen)]
pub struct PySwizzledLayout(SwizzledLayout);

#[pymethods]
impl PySwizzledLayout {
    #[new]
    fn new(layout: &PyLayout, swizzle: &PySwizzle) -> Self {
        PySwizzledLayout(SwizzledLayout::new(swizzle.0, layout.0.clone()))
    }

    /// The shape.
    #[getter]
    fn shape(&self) -> Tuple {
        Tuple(self.0.shape())
    }

    /// The stride before the swizzle.
    #[getter]
    fn stride(&self) -> Tuple {
        Tuple(self.0.stride())
    }

    /// The layout before the swizzle.
    #[getter]
    fn layout(&self) -> PyLayout {
        PyLayout(self.0.layout().clone())
    }

    /// The swizzle.
    #[getter]
    fn swizzle(&self) -> PySwizzle {
        PySwizzle(self.0.swizzle())
    }

    /// The offset of a coordinate or of an index.
    #[pyo3(signature = (*args, **named))]
    fn __call__(
        &self,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<i64> {
        let coordinate = place_of(args, named)?.to_int_tuple().map_err(fail)?;
        match coordinate.as_int() {
            Some(index) => self.0.call_index(index),
            None => self.0.call(&coordinate),
        }
        .map_err(fail)
    }

    /// The number of coordinates, of all modes, of one, or of what a path of modes leads to.
    #[pyo3(signature = (mode=None))]
    fn size(&self, mode: Option<Modes>) -> PyResult<i64> {
        size_of(&self.0.shape(), mode)
    }

    /// One more than the largest offset.
    fn cosize(&self) -> PyResult<i64> {
        self.0.cosize().map_err(fail)
    }

    /// The number of modes.
    fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Levels of parentheses.
    fn depth(&self) -> usize {
        self.0.depth()
    }

    /// Every offset, leftmost coordinate fastest.
    fn offsets(&self) -> PyResult<Vec<i64>> {
        self.0.offsets().map_err(fail)
    }

    /// The table of offsets as text.
    fn table(&self) -> PyResult<String> {
        Ok(Picture::offsets(self.0.clone()).map_err(fail)?.table())
    }

    /// The picture of the offsets as SVG text; notebooks show it by themselves.
    fn svg(&self) -> PyResult<String> {
        Ok(Picture::offsets(self.0.clone()).map_err(fail)?.svg())
    }

    /// The picture, or nothing for a layout too large to draw.
    fn _repr_svg_(&self) -> Option<String> {
        self.svg().ok()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PySwizzledLayout>()
            .is_ok_and(|o| o.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&(self.0.swizzle(), self.0.shape(), self.0.stride()))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let swizzle = PySwizzle(self.0.swizzle());
        format!(
            "SwizzledLayout(Layout('{}'), {})",
            self.0.layout(),
            swizzle.__repr__()
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (PyLayout, PySwizzle)) {
        let this = slf.get();
        (slf.get_type().into_any(), (this.layout(), this.swizzle()))
    }
}

// ---- making layouts ----

/// A layout of a shape and a stride, or of several layouts as its modes.
///
/// >>> from invar.layout import make_layout
/// >>> make_layout((4, 8))
/// Layout('(4,8):(1,4)')
/// >>> make_layout((make_layout(4, 2), make_layout(3, 10)))
/// Layout('(4,3):(2,10)')
#[pyfunction]
#[pyo3(signature = (shape, stride=None))]
fn make_layout(shape: &Bound<'_, PyAny>, stride: Option<Tuple>) -> PyResult<PyLayout> {
    if stride.is_none()
        && let Some(modes) = parts(shape)
        && !modes.is_empty()
        && modes.iter().all(|mode| mode.is_instance_of::<PyLayout>())
    {
        let modes: Vec<Layout> = modes
            .iter()
            .filter_map(|mode| mode.cast::<PyLayout>().ok())
            .map(|mode| mode.get().0.clone())
            .collect();
        return Layout::tuple(modes).map(PyLayout).map_err(fail);
    }
    PyLayout::new(shape, stride)
}

/// A compact layout whose modes run in the given order, the lowest number fastest.
///
/// >>> from invar.layout import make_ordered_layout
/// >>> make_ordered_layout((4, 8), (1, 0))
/// Layout('(4,8):(8,1)')
#[pyfunction]
fn make_ordered_layout(shape: Tuple, order: Tuple) -> PyResult<PyLayout> {
    Layout::ordered(&shape.0, &order.0)
        .map(PyLayout)
        .map_err(fail)
}

/// The layout that gives every coordinate its index.
///
/// >>> from invar.layout import make_identity_layout
/// >>> make_identity_layout((2, 3))
/// Layout('(2,3):(1,2)')
#[pyfunction]
fn make_identity_layout(shape: Tuple) -> PyResult<PyLayout> {
    Layout::identity(&shape.0).map(PyLayout).map_err(fail)
}

/// The tile that threads and their values cover, and who owns what in it: `(thread, value)` to the
/// index in the tile.
///
/// >>> from invar.layout import make_layout, make_layout_tv
/// >>> make_layout_tv(make_layout((4, 64), (64, 1)), make_layout((4, 4), (4, 1)))
/// ((16, 256), Layout('((64,4),(4,4)):((64,4),(16,1))'))
#[pyfunction]
fn make_layout_tv(thr_layout: &PyLayout, val_layout: &PyLayout) -> PyResult<(Tuple, PyLayout)> {
    let (tile, owners) =
        algebra::thread_value_layout(&thr_layout.0, &val_layout.0).map_err(fail)?;
    Ok((Tuple(tile), PyLayout(owners)))
}

// ---- the algebra ----

/// The same function with as few modes as possible; with a profile, mode by mode.
///
/// >>> from invar.layout import Layout, coalesce
/// >>> coalesce(Layout((2, (1, 6)), (1, (6, 2))))
/// Layout('12:1')
#[pyfunction]
#[pyo3(signature = (layout, profile=None))]
fn coalesce(layout: &PyLayout, profile: Option<Tuple>) -> PyResult<PyLayout> {
    match profile {
        None => Ok(PyLayout(layout.0.coalesce())),
        Some(profile) => layout.0.coalesce_by(&profile.0).map(PyLayout).map_err(fail),
    }
}

/// The layout without modes of stride 0 or size 1: the same offsets, each once.
///
/// >>> from invar.layout import Layout, filter
/// >>> filter(Layout((4, 2), (1, 0)))
/// Layout('4:1')
#[pyfunction]
fn filter(layout: &PyLayout) -> PyLayout {
    PyLayout(layout.0.filter())
}

/// The layout, or the tuple, without inner parentheses.
///
/// >>> from invar.layout import Layout, flatten
/// >>> flatten(Layout("((4,2),8):((1,32),4)"))
/// Layout('(4,2,8):(1,32,4)')
/// >>> flatten(((4, 2), 8))
/// (4, 2, 8)
#[pyfunction]
fn flatten<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(layout) = x.cast::<PyLayout>() {
        return PyLayout(layout.get().0.flatten()).into_bound_py_any(x.py());
    }
    Tuple(x.extract::<Tuple>()?.0.flatten()).into_pyobject(x.py())
}

/// Modes `begin` to `end - 1` gathered into one.
///
/// >>> from invar.layout import Layout, group
/// >>> group(Layout((2, 3, 5)), 0, 2)
/// Layout('((2,3),5):((1,2),6)')
#[pyfunction]
fn group(layout: &PyLayout, begin: Number, end: Number) -> PyResult<PyLayout> {
    let (Ok(first), Ok(past)) = (usize::try_from(begin.0), usize::try_from(end.0)) else {
        return Err(fail(algebra::Error::NoSuchModes {
            operation: "group",
            begin: begin.0,
            end: end.0,
            rank: layout.0.rank(),
        }));
    };
    layout.0.group(first, past).map(PyLayout).map_err(fail)
}

/// The layout of the offsets that `layout` leaves out, up to `cosize_val` (its own cosize).
///
/// >>> from invar.layout import Layout, complement
/// >>> complement(Layout(4, 2), 24)
/// Layout('(2,3):(1,8)')
#[pyfunction]
#[pyo3(signature = (layout, cosize_val=None))]
fn complement(layout: &PyLayout, cosize_val: Option<Number>) -> PyResult<PyLayout> {
    let cotarget = cosize_val.map_or_else(|| layout.0.cosize(), |value| value.0);
    layout.0.complement(cotarget).map(PyLayout).map_err(fail)
}

/// `a` after `b`: `composition(a, b)(i) == a(b(i))`. `a` may be swizzled or a Swizzle; `b` may be a
/// tiler, which goes mode by mode.
///
/// >>> from invar.layout import Layout, Swizzle, composition
/// >>> composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
/// Layout('((2,2),3):((24,2),8)')
/// >>> composition(Layout((256, 512), (512, 1)), (16, None))
/// Layout('(16,512):(512,1)')
/// >>> composition(Swizzle(3, 0, 3), Layout((8, 8)))((1, 1))
/// 8
#[pyfunction]
fn composition<'py>(a: &Bound<'py, PyAny>, b: Tiles) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(swizzle) = a.cast::<PySwizzle>() {
        let identity = match &b {
            Tiles(tiler) => tiler.as_layout(),
        };
        return match identity {
            Some(layout) => PySwizzledLayout(SwizzledLayout::new(swizzle.get().0, layout.clone()))
                .into_bound_py_any(a.py()),
            None => Err(LayoutError::new_err(
                "a Swizzle composes with one Layout, not with a tuple of tiles",
            )),
        };
    }
    let layout = Any::extract(a.as_borrowed())
        .map_err(|_| wrong("a Layout, SwizzledLayout or Swizzle", a))?;
    match b.0.as_layout() {
        Some(right) => either(a.py(), &layout, |l| l.compose(right), |l| l.compose(right)),
        None => either(
            a.py(),
            &layout,
            |l| l.compose_tile(&b.0),
            |l| l.compose_tile(&b.0),
        ),
    }
}

/// The largest `r` with `layout(r(i)) == i`.
///
/// >>> from invar.layout import Layout, right_inverse
/// >>> right_inverse(Layout((4, 8), (8, 1)))
/// Layout('(8,4):(4,1)')
#[pyfunction]
fn right_inverse(layout: &PyLayout) -> PyResult<PyLayout> {
    layout.0.right_inverse().map(PyLayout).map_err(fail)
}

/// An `l` with `l(layout(i)) == i`.
///
/// >>> from invar.layout import Layout, left_inverse
/// >>> left_inverse(Layout(4, 2))
/// Layout('(2,4):(0,1)')
#[pyfunction]
fn left_inverse(layout: &PyLayout) -> PyResult<PyLayout> {
    layout.0.left_inverse().map(PyLayout).map_err(fail)
}

/// Splits each mode in (tile, rest).
///
/// >>> from invar.layout import Layout, logical_divide
/// >>> logical_divide(Layout(16, 3), 4)
/// Layout('(4,4):(3,12)')
#[pyfunction]
fn logical_divide<'py>(
    py: Python<'py>,
    layout: Any<'_, 'py>,
    tiler: Tiles,
) -> PyResult<Bound<'py, PyAny>> {
    either(
        py,
        &layout,
        |l| l.logical_divide(&tiler.0),
        |l| l.logical_divide(&tiler.0),
    )
}

/// Splits into ((tiles), (rests)): mode 0 is one tile, mode 1 counts tiles.
///
/// >>> from invar.layout import Layout, zipped_divide
/// >>> zipped_divide(Layout((256, 512), (512, 1)), (16, 256))
/// Layout('((16,256),(16,2)):((512,1),(8192,256))')
#[pyfunction]
fn zipped_divide<'py>(
    py: Python<'py>,
    layout: Any<'_, 'py>,
    tiler: Tiles,
) -> PyResult<Bound<'py, PyAny>> {
    either(
        py,
        &layout,
        |l| l.zipped_divide(&tiler.0),
        |l| l.zipped_divide(&tiler.0),
    )
}

/// Gives the rest of the functions on two layouts their Python form.
macro_rules! algebra {
    ($($(#[$doc:meta])* $name:ident($a:ident, $b:ident: $kind:ident) = $method:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $name($a: &PyLayout, $b: algebra!(@type $kind)) -> PyResult<PyLayout> {
                $a.0.$method(&$b.0).map(PyLayout).map_err(fail)
            }
        )*
    };
    (@type tiler) => { Tiles };
    (@type layout) => { &PyLayout };
}

algebra! {
    /// Splits into ((tiles), rest, rest, ...).
    ///
    /// >>> from invar.layout import Layout, tiled_divide
    /// >>> tiled_divide(Layout((8, 6)), (4, 2))
    /// Layout('((4,2),2,3):((1,8),4,16)')
    tiled_divide(layout, tiler: tiler) = tiled_divide;

    /// Splits into (tile, tile, ..., rest, rest, ...).
    ///
    /// >>> from invar.layout import Layout, flat_divide
    /// >>> flat_divide(Layout((8, 6)), (4, 2))
    /// Layout('(4,2,2,3):(1,8,4,16)')
    flat_divide(layout, tiler: tiler) = flat_divide;

    /// Repeats the layout as `tiler` says: (layout, repetitions).
    ///
    /// >>> from invar.layout import Layout, logical_product
    /// >>> logical_product(Layout((2, 2)), Layout(3))
    /// Layout('((2,2),3):((1,2),4)')
    logical_product(layout, tiler: tiler) = logical_product;

    /// Repeats mode by mode: ((tiles), (repetitions)).
    ///
    /// >>> from invar.layout import Layout, zipped_product
    /// >>> zipped_product(Layout((2, 3)), (2, 2))
    /// Layout('((2,3),(2,2)):((1,2),(2,1))')
    zipped_product(layout, tiler: tiler) = zipped_product;

    /// Repeats mode by mode: ((tiles), repetition, repetition, ...).
    ///
    /// >>> from invar.layout import Layout, tiled_product
    /// >>> tiled_product(Layout((2, 3)), (2, 2))
    /// Layout('((2,3),2,2):((1,2),2,1)')
    tiled_product(layout, tiler: tiler) = tiled_product;

    /// Repeats mode by mode: (tile, tile, ..., repetition, repetition, ...).
    ///
    /// >>> from invar.layout import Layout, flat_product
    /// >>> flat_product(Layout((2, 3)), (2, 2))
    /// Layout('(2,3,2,2):(1,2,2,1)')
    flat_product(layout, tiler: tiler) = flat_product;

    /// Places copies of `a` side by side, as blocks in the places that `b` gives.
    ///
    /// >>> from invar.layout import Layout, blocked_product
    /// >>> blocked_product(Layout((2, 2)), Layout((3, 1)))
    /// Layout('((2,3),(2,1)):((1,4),(2,12))')
    blocked_product(a, b: layout) = blocked_product;

    /// Interleaves copies of `a`: neighbours come from different copies.
    ///
    /// >>> from invar.layout import Layout, raked_product
    /// >>> raked_product(Layout((2, 2)), Layout((3, 1)))
    /// Layout('((3,2),(1,2)):((4,1),(12,2))')
    raked_product(a, b: layout) = raked_product;
}

/// The same memory seen through elements of another width, in bits.
///
/// >>> from invar.layout import Layout, recast_layout
/// >>> recast_layout(32, 16, Layout((8, 4)))
/// Layout('(4,4):(1,4)')
#[pyfunction]
fn recast_layout<'py>(
    py: Python<'py>,
    new_bits: Number,
    old_bits: Number,
    layout: Any<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let (new, old) = (new_bits.0, old_bits.0);
    either(py, &layout, |l| l.recast(new, old), |l| l.recast(new, old))
}

/// The layout with its offsets through `Swizzle(bits, base, shift)`.
///
/// >>> from invar.layout import Layout, swizzle
/// >>> swizzle(Layout((8, 8), (8, 1)), 3, 0, 3)((1, 0))
/// 9
#[pyfunction]
fn swizzle(
    layout: &PyLayout,
    bits: Number,
    base: Number,
    shift: Number,
) -> PyResult<PySwizzledLayout> {
    let swizzle = Swizzle::new(bits.0, base.0, shift.0).map_err(fail)?;
    Ok(PySwizzledLayout(SwizzledLayout::new(
        swizzle,
        layout.0.clone(),
    )))
}

/// What a coordinate with None leaves of a layout, and the offset where it starts.
///
/// >>> from invar.layout import Layout, slice_and_offset
/// >>> slice_and_offset((2, None), Layout((4, 8), (8, 1)))
/// (Layout('(8):(1)'), 16)
#[pyfunction]
fn slice_and_offset<'py>(
    py: Python<'py>,
    coord: Place,
    layout: Any<'_, 'py>,
) -> PyResult<(Bound<'py, PyAny>, i64)> {
    match &layout {
        Any::Plain(l) => {
            let (rest, offset) = l.get().0.slice(&coord.0).map_err(fail)?;
            Ok((PyLayout(rest).into_bound_py_any(py)?, offset))
        }
        Any::Swizzled(l) => {
            let (rest, offset) = l.get().0.slice(&coord.0).map_err(fail)?;
            Ok((PySwizzledLayout(rest).into_bound_py_any(py)?, offset))
        }
    }
}

// ---- tuples and coordinates ----

/// The shape of a layout, or the tuple itself.
fn shape_of(x: &Bound<'_, PyAny>) -> PyResult<IntTuple> {
    if let Ok(layout) = x.cast::<PyLayout>() {
        return Ok(layout.get().0.shape());
    }
    if let Ok(layout) = x.cast::<PySwizzledLayout>() {
        return Ok(layout.get().0.shape());
    }
    Ok(x.extract::<Tuple>()?.0)
}

/// The number of coordinates of a layout or shape, of all modes, of one, or of what a path of modes
/// leads to: `[1, 0]` is mode 0 of mode 1.
///
/// >>> from invar.layout import Layout, size
/// >>> size(Layout((4, 8))), size((4, 8), mode=1), size((2, (3, 5)), mode=[1, 0])
/// (32, 8, 3)
#[pyfunction]
#[pyo3(signature = (x, mode=None))]
fn size(x: &Bound<'_, PyAny>, mode: Option<Modes>) -> PyResult<i64> {
    size_of(&shape_of(x)?, mode)
}

/// The product of a tuple's integers.
///
/// >>> from invar.layout import product
/// >>> product(((2, 3), 4))
/// 24
#[pyfunction]
fn product(x: Tuple) -> PyResult<i64> {
    x.0.size().map_err(fail)
}

/// The chosen modes of a tuple or layout: one of them, or a tuple of several.
///
/// >>> from invar.layout import Layout, select
/// >>> select((2, 3, 5), [0, 2]), select((2, 3, 5), 1), select(Layout((2, 3, 5)), [1, 0])
/// ((2, 5), 3, Layout('(3,2):(2,1)'))
#[pyfunction]
fn select<'py>(x: &Bound<'py, PyAny>, mode: Modes) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(layout) = x.cast::<PyLayout>() {
        let layout = &layout.get().0;
        let list = mode.list("select", layout.rank())?;
        let chosen = match mode {
            Modes::One(_) => layout.mode(list[0]),
            Modes::Several(_) => layout.select(&list),
        };
        return PyLayout(chosen.map_err(fail)?).into_bound_py_any(x.py());
    }
    let tuple = x.extract::<Tuple>()?.0;
    let list = mode.list("select", tuple.rank())?;
    let chosen = match mode {
        Modes::One(_) => tuple.mode(list[0]),
        Modes::Several(_) => tuple.select(&list),
    };
    Tuple(chosen.map_err(fail)?).into_pyobject(x.py())
}

/// `val` at every integer of `ref`.
///
/// >>> from invar.layout import repeat_like
/// >>> repeat_like(0, ((2, 3), 4))
/// ((0, 0), 0)
#[pyfunction]
#[pyo3(signature = (val, r#ref))]
fn repeat_like<'py>(
    val: &Bound<'py, PyAny>,
    r#ref: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    fn go<'py>(
        val: &Bound<'py, PyAny>,
        like: &Bound<'py, PyAny>,
        depth: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match parts(like) {
            None => Ok(val.clone()),
            Some(modes) => {
                let modes: PyResult<Vec<_>> =
                    modes.iter().map(|mode| go(val, mode, depth + 1)).collect();
                Ok(PyTuple::new(val.py(), modes?)?.into_any())
            }
        }
    }
    go(val, r#ref, 0)
}

/// The number of modes of a layout or tuple.
///
/// >>> from invar.layout import rank
/// >>> rank(((2, 3), 4)), rank(7)
/// (2, 1)
#[pyfunction]
fn rank(x: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(shape_of(x)?.rank())
}

/// Levels of parentheses of a layout or tuple.
///
/// >>> from invar.layout import depth
/// >>> depth(((2, 3), 4)), depth(7)
/// (2, 0)
#[pyfunction]
fn depth(x: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(shape_of(x)?.depth())
}

/// One more than the largest offset of a layout.
///
/// >>> from invar.layout import Layout, cosize
/// >>> cosize(Layout((4, 2), (1, 10)))
/// 14
#[pyfunction]
fn cosize(layout: Any<'_, '_>) -> PyResult<i64> {
    match &layout {
        Any::Plain(layout) => Ok(layout.get().0.cosize()),
        Any::Swizzled(layout) => layout.get().0.cosize().map_err(fail),
    }
}

/// The offset of a coordinate in a shape and stride (compact without a stride).
///
/// >>> from invar.layout import crd2idx
/// >>> crd2idx((1, 2), (4, 8)), crd2idx((1, 2), (4, 8), (8, 1))
/// (9, 10)
#[pyfunction]
#[pyo3(signature = (coord, shape, stride=None))]
fn crd2idx(coord: Tuple, shape: Tuple, stride: Option<Tuple>) -> PyResult<i64> {
    let layout = match stride {
        None => Layout::compact(&shape.0),
        Some(stride) => Layout::new(&shape.0, &stride.0),
    }
    .map_err(fail)?;
    layout.call(&coord.0).map_err(fail)
}

/// The coordinate of an index in a shape.
///
/// >>> from invar.layout import idx2crd
/// >>> idx2crd(28, (16, 4))
/// (12, 1)
#[pyfunction]
fn idx2crd(index: Number, shape: Tuple) -> PyResult<Tuple> {
    shape.0.coordinate(index.0).map(Tuple).map_err(fail)
}

/// At each integer the product of all before it.
///
/// >>> from invar.layout import prefix_product
/// >>> prefix_product((4, (2, 8)))
/// (1, (4, 8))
#[pyfunction]
fn prefix_product(shape: Tuple) -> PyResult<Tuple> {
    shape.0.prefix_product().map(Tuple).map_err(fail)
}

/// Divides a shape, using the divisor up from the left.
///
/// >>> from invar.layout import shape_div
/// >>> shape_div((4, 8), 8)
/// (1, 4)
#[pyfunction]
fn shape_div(a: Tuple, b: Tuple) -> PyResult<Tuple> {
    a.0.shape_div(&b.0).map(Tuple).map_err(fail)
}

/// The sum of the products of corresponding integers.
///
/// >>> from invar.layout import inner_product
/// >>> inner_product((1, 2), (4, 8))
/// 20
#[pyfunction]
fn inner_product(a: Tuple, b: Tuple) -> PyResult<i64> {
    a.0.inner_product(&b.0).map_err(fail)
}

/// Whether two tuples nest alike.
///
/// >>> from invar.layout import congruent
/// >>> congruent((1, (2, 3)), (4, (5, 6))), congruent((1, 2), (4, (5, 6)))
/// (True, False)
#[pyfunction]
fn congruent(a: Tuple, b: Tuple) -> bool {
    a.0.congruent(&b.0)
}

/// Whether every coordinate of shape `a` is one of shape `b`.
///
/// >>> from invar.layout import compatible
/// >>> compatible(24, (4, 6)), compatible((4, 6), 24)
/// (True, False)
#[pyfunction]
fn compatible(a: Tuple, b: Tuple) -> PyResult<bool> {
    a.0.compatible(&b.0).map_err(fail)
}

// ---- what memory sees ----

/// Whether no two coordinates share an offset.
///
/// >>> from invar.layout import Layout, is_injective
/// >>> is_injective(Layout((4, 2), (1, 4))), is_injective(Layout((4, 2), (1, 2)))
/// (True, False)
#[pyfunction]
fn is_injective(layout: &PyLayout) -> PyResult<bool> {
    layout.0.is_injective().map_err(fail)
}

/// Whether every offset below the cosize is reached.
///
/// >>> from invar.layout import Layout, is_surjective
/// >>> is_surjective(Layout((4, 2), (1, 4))), is_surjective(Layout(4, 2))
/// (True, False)
#[pyfunction]
fn is_surjective(layout: &PyLayout) -> bool {
    layout.0.is_surjective()
}

/// How many elements from the start lie side by side.
///
/// >>> from invar.layout import Layout, contiguous_run
/// >>> contiguous_run(Layout((4, 8), (1, 4))), contiguous_run(Layout((4, 8), (8, 1)))
/// (32, 1)
#[pyfunction]
fn contiguous_run(layout: &PyLayout) -> i64 {
    layout.0.contiguous_run()
}

/// The widest vector, in elements, in which the whole layout can be read.
///
/// >>> from invar.layout import Layout, vector_width
/// >>> vector_width(Layout((4, 8), (1, 6)))
/// 2
#[pyfunction]
fn vector_width(layout: Any<'_, '_>) -> i64 {
    match &layout {
        Any::Plain(layout) => layout.get().0.vector_width(),
        Any::Swizzled(layout) => layout.get().0.vector_width(),
    }
}

/// How many elements lie side by side in both layouts.
///
/// >>> from invar.layout import Layout, common_vector
/// >>> common_vector(Layout((8, 4), (1, 8)), Layout((8, 4), (1, 10)))
/// 8
#[pyfunction]
fn common_vector(a: &PyLayout, b: &PyLayout) -> PyResult<i64> {
    algebra::common_vector(&a.0, &b.0).map_err(fail)
}

/// The bytes of an element, and the banks that hold it.
fn memory_of(element_bytes: Number, banks: Number, bank_bytes: Number) -> PyResult<(u32, Banks)> {
    let banks = Banks {
        count: banks.count("banks")?,
        width_bytes: bank_bytes.count("bank_bytes")?,
    };
    Ok((element_bytes.count("element_bytes")?, banks))
}

/// Rounds that one access of a simdgroup loses to bank conflicts: lane `i` touches the element at
/// `offsets[i]`.
///
/// >>> from invar.layout import Layout, bank_conflicts
/// >>> column = Layout((32, 32), (32, 1))
/// >>> bank_conflicts([column((i, 0)) for i in range(32)], 4)
/// 31
#[pyfunction]
#[pyo3(
    signature = (offsets, element_bytes, banks=Number(32), bank_bytes=Number(4)),
    text_signature = "(offsets, element_bytes, banks=32, bank_bytes=4)"
)]
fn bank_conflicts(
    offsets: Vec<Number>,
    element_bytes: Number,
    banks: Number,
    bank_bytes: Number,
) -> PyResult<usize> {
    let offsets: Vec<i64> = offsets.iter().map(|offset| offset.0).collect();
    let (element_bytes, banks) = memory_of(element_bytes, banks, bank_bytes)?;
    let report = algebra::conflicts(&offsets, element_bytes, banks).map_err(fail)?;
    Ok(report.conflicts())
}

/// The picture, as SVG text, of which thread owns each element of a tile: `owners` maps (thread,
/// value) to the index in the tile, as `make_layout_tv` gives it.
///
/// >>> from invar.layout import make_layout, make_layout_tv, thread_value_svg
/// >>> tile, owners = make_layout_tv(make_layout((2, 2)), make_layout((2, 1)))
/// >>> thread_value_svg(owners, tile).startswith("<svg")
/// True
#[pyfunction]
fn thread_value_svg(owners: &PyLayout, tile: Tuple) -> PyResult<String> {
    Ok(Picture::threads(&owners.0, &tile.0).map_err(fail)?.svg())
}

/// The picture, as SVG text, of an access in banked memory: lane `i` touches the coordinate of
/// `memory` whose index is `lanes(i)`.
///
/// >>> from invar.layout import Layout, bank_conflict_svg
/// >>> bank_conflict_svg(Layout((32, 32), (32, 1)), Layout(32), 4).startswith("<svg")
/// True
#[pyfunction]
#[pyo3(
    signature = (memory, lanes, element_bytes, banks=Number(32), bank_bytes=Number(4)),
    text_signature = "(memory, lanes, element_bytes, banks=32, bank_bytes=4)"
)]
fn bank_conflict_svg(
    memory: Any<'_, '_>,
    lanes: &PyLayout,
    element_bytes: Number,
    banks: Number,
    bank_bytes: Number,
) -> PyResult<String> {
    let (element_bytes, banks) = memory_of(element_bytes, banks, bank_bytes)?;
    let picture =
        Picture::banks(memory.swizzled(), &lanes.0, element_bytes, banks).map_err(fail)?;
    Ok(picture.svg())
}

/// Adds the submodule's contents to the extension, under one attribute.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let layout = PyModule::new(m.py(), "layout")?;
    layout.add_class::<PyLayout>()?;
    layout.add_class::<PySwizzle>()?;
    layout.add_class::<PySwizzledLayout>()?;
    layout.add("LayoutError", m.py().get_type::<LayoutError>())?;
    macro_rules! functions {
        ($($name:ident),* $(,)?) => {
            $(layout.add_function(wrap_pyfunction!($name, &layout)?)?;)*
        };
    }
    functions![
        make_layout,
        make_ordered_layout,
        make_identity_layout,
        make_layout_tv,
        coalesce,
        filter,
        flatten,
        group,
        complement,
        composition,
        right_inverse,
        left_inverse,
        logical_divide,
        zipped_divide,
        tiled_divide,
        flat_divide,
        logical_product,
        zipped_product,
        tiled_product,
        flat_product,
        blocked_product,
        raked_product,
        recast_layout,
        swizzle,
        slice_and_offset,
        size,
        product,
        select,
        repeat_like,
        rank,
        depth,
        cosize,
        crd2idx,
        idx2crd,
        prefix_product,
        shape_div,
        inner_product,
        congruent,
        compatible,
        is_injective,
        is_surjective,
        contiguous_run,
        vector_width,
        common_vector,
        bank_conflicts,
        thread_value_svg,
        bank_conflict_svg,
    ];
    m.add_submodule(&layout)
}
