//! Copies, and simdgroup matrices in plain code.
//!
//! Indices are mathematical integers (B4), computed in `i64`; what lies beyond 2^59 is taken as if it
//! lay there, far outside every object: what could come back was brought near before (`wide_indices`).
//!
//! An async copy is made where it is issued, each lane of the simdgroup moving its share; the wait is a
//! barrier of the threadgroup, so it must stand where all of it comes (O5). A simdgroup matrix is loaded
//! whole by every lane, and stored entry by entry, each by one lane (O6), unless it is the target's
//! (`cooperative.rs`). It goes from function to function by value, or stays where it lies
//! ([`super::interface::Features::matrices_in_place`]).

use invar_ir::{
    CopyOperands, CopyShape, ElementType, MatrixPlace, Memory, Op, Scalar, Spaces, Span, Type,
    Value,
};

use super::helpers::Helper;
use super::types::{MATRIX_ENTRIES, tag, value as wgsl_type, zero_extended};
use super::writer::{Identity, Writer};

/// Rows and columns of a simdgroup matrix.
const SIDE: u32 = 8;

impl Writer<'_> {
    /// An index or count as an `i64`.
    fn wide(&mut self, value: Value) -> String {
        let limit = 1i64 << 59;
        let text = self.value(value);
        let scalar = self.ty(value).component_scalar();
        if let Some(c) = self.constant(value) {
            let n = scalar.integer(c.bits);
            let n = n.clamp(i128::from(-limit), i128::from(limit));
            return format!("({n}li)");
        }
        match scalar {
            Scalar::I64 => format!("clamp({text}, (-{limit}li), {limit}li)"),
            Scalar::U64 => format!("i64(min({text}, {limit}lu))"),
            short if short.is_signed_integer() => self.extended(Type::Scalar(Scalar::I64), &text),
            _unsigned => zero_extended(&text),
        }
    }

    fn has_int64(&mut self, span: Span, what: &str) -> bool {
        let has = self.options.features.int64;
        if has {
            self.need(Helper::I64Index);
        } else {
            self.lacks(
                span,
                format!("{what} needs 64-bit integers, which the target lacks"),
            );
        }
        has
    }

    /// The thread's lane, and how many lanes of its simdgroup exist.
    pub(super) fn lane(&mut self) -> (String, String) {
        let (thread, count) = (self.thread(), self.thread_count());
        let size = self.simdgroup_size;
        (
            format!("{thread} % {size}u"),
            format!("min({count} - {thread} / {size}u * {size}u, {size}u)"),
        )
    }

    /// A statement for threads that exist.
    pub(super) fn if_exists(&mut self, statement: String) {
        if self.surplus && !self.only_existing {
            self.identity.insert(Identity::Count);
            self.line(format!("if (exists) {{ {statement} }}"));
        } else {
            self.line(statement);
        }
    }

    // ---- copies ----

    /// Statements that copy an element, location by location.
    fn element_copy(
        &mut self,
        to: Memory,
        from: Memory,
        element: &ElementType,
        steps: &mut Vec<Option<u32>>,
        indices: &mut Vec<String>,
        indent: usize,
    ) -> String {
        let pad = "    ".repeat(indent);
        match element {
            ElementType::Value(_) => {
                let (way_to, way_from) = (self.way_of(to, steps), self.way_of(from, steps));
                let store = self.store_helper(to, &way_to);
                let load = self.load_helper(from, &way_from);
                let more: String = indices.iter().map(|k| format!(", {k}")).collect();
                format!("{pad}{store}(i{more}, {load}(j{more}));\n")
            }
            ElementType::Array(inner, count) => {
                let k = format!("k{}", indices.len());
                steps.push(None);
                indices.push(k.clone());
                let body = self.element_copy(to, from, inner, steps, indices, indent + 1);
                steps.pop();
                indices.pop();
                let each = self
                    .loops
                    .counted(format!("{k} = 0u; {k} < {count}u; {k}++"));
                format!("{pad}{each}\n{body}{pad}}}\n")
            }
            ElementType::Struct(id) => {
                let fields: Vec<ElementType> = self.module.structs[id.0 as usize]
                    .fields
                    .iter()
                    .map(|(_, field)| field.clone())
                    .collect();
                let mut text = String::new();
                for (i, field) in fields.iter().enumerate() {
                    steps.push(Some(i as u32));
                    text.push_str(&self.element_copy(to, from, field, steps, indices, indent));
                    steps.pop();
                }
                text
            }
        }
    }

    /// The name of a function that copies consecutive elements; by all lanes of a simdgroup together, or
    /// by the calling thread.
    fn copy_helper(&mut self, operands: &CopyOperands, together: bool) -> String {
        let (to, from) = (operands.destination, operands.source);
        let what = if together { "async_copy" } else { "copy" };
        let name = format!(
            "{}__{what}_{}",
            self.memory_name(to),
            self.memory_name(from)
        );
        if self.helpers.has(&name) {
            return name;
        }
        let element = self
            .module
            .memory(self.kernel, to)
            .map(|info| info.element.clone());
        let body = element.map_or(String::new(), |element| {
            self.element_copy(to, from, &element, &mut Vec::new(), &mut Vec::new(), 2)
        });
        let length = zero_extended(&self.length(to));
        let (begin, step) = if together {
            let (lane, lanes) = self.lane();
            (
                format!("max(0li, -to) + i64({lane})"),
                format!("i64({lanes})"),
            )
        } else {
            ("max(0li, -to)".to_string(), "1li".to_string())
        };
        self.helper(&name, |w| {
            let each = w.loops.counted(format!("n = {begin}; n < end; n = n + step"));
            format!(
                "fn {name}(to: i64, source: i64, count: i64) {{\n    \
                 let end = min(count, {length} - to);\n    let step = {step};\n    {each}\n        \
                 let i = i64__index(to + n);\n        let j = i64__index(source + n);\n{body}    }}\n}}\n"
            )
        });
        name
    }

    pub(super) fn copy(&mut self, span: Span, operands: &CopyOperands, count: Value) {
        if !self.has_int64(span, "`copy`") {
            return;
        }
        let helper = self.copy_helper(operands, false);
        let to = self.wide(operands.destination_index);
        let from = self.wide(operands.source_index);
        let count = self.wide(count);
        self.if_exists(format!("{helper}({to}, {from}, {count});"));
    }

    pub(super) fn async_copy(&mut self, span: Span, operands: &CopyOperands, shape: &CopyShape) {
        if !self.has_int64(span, "`async_copy`") {
            return;
        }
        let helper = self.copy_helper(operands, true);
        let to = self.wide(operands.destination_index);
        let from = self.wide(operands.source_index);
        match shape {
            CopyShape::Linear { count } => {
                let count = self.wide(*count);
                self.if_exists(format!("{helper}({to}, {from}, {count});"));
            }
            CopyShape::Tile {
                destination_row,
                source_row,
                columns,
                rows,
            } => {
                let name = format!("{helper}_2d");
                self.helper(&name, |w| {
                    let each_row = w.loops.counted("row = 0li; row < rows; row = row + 1li");
                    format!(
                        "fn {name}(to: i64, source: i64, to_row: i64, source_row: i64, columns: i64, rows: i64) {{\n    \
                         var i = to;\n    var j = source;\n    {each_row}\n        \
                         {helper}(i, j, columns);\n        \
                         i = clamp(i + to_row, (-2305843009213693952li), 2305843009213693952li);\n        \
                         j = clamp(j + source_row, (-2305843009213693952li), 2305843009213693952li);\n    }}\n}}\n"
                    )
                });
                let all: Vec<String> = [destination_row, source_row, columns, rows]
                    .into_iter()
                    .map(|v| self.wide(*v))
                    .collect();
                self.if_exists(format!("{name}({to}, {from}, {});", all.join(", ")));
            }
        }
    }

    pub(super) fn wait(&mut self, span: Span) {
        if self.threadgroup_together() {
            self.barrier_of(Spaces::DEFAULT);
        } else {
            self.lacks(
                span,
                "`wait` stands where only a part of the threadgroup comes, and WGSL has no barrier of a \
                 simdgroup",
            );
        }
    }

    // ---- simdgroup matrices ----

    /// Binds a matrix to what a function makes of the arguments.
    fn bind_matrix(&mut self, result: Option<Value>, function: &str, arguments: &str) {
        let Some(result) = result else { return };
        if self.is_in_place(result) {
            let name = self.variable(result, None);
            self.line(format!("{function}(&{name}, {arguments});"));
        } else {
            self.bind(result, format!("{function}({arguments})"));
        }
    }

    /// A matrix as an argument.
    fn matrix_argument(&self, matrix: Value) -> String {
        let text = self.value(matrix);
        if self.is_in_place(matrix) {
            format!("&{text}")
        } else {
            text
        }
    }

    pub(super) fn matrix_fill(&mut self, value: Value, result: Option<Value>) {
        if let Some(result) = result
            && let Some(role) = self.role(result)
        {
            let text = self.cooperative_fill(value, role);
            return self.bind(result, text);
        }
        let entry = self.ty(value);
        let name = format!("{}__fill_matrix", tag(entry));
        let parameters = format!("x: {}", wgsl_type(entry));
        let each = self.each_matrix_entry();
        self.makes_matrix((&name, &parameters), entry, None, |m| {
            format!("    {each}\n        {m}[e] = x;\n    }}\n")
        });
        let text = self.value(value);
        self.bind_matrix(result, &name, &text);
    }

    /// The expression of the element that entry `e` lies at.
    pub(super) fn entry(transpose: bool) -> String {
        let (along, across) = if transpose {
            ("e % 8u", "e / 8u")
        } else {
            ("e / 8u", "e % 8u")
        };
        format!("i64__index(start + i64({along}) * row + i64({across}))")
    }

    pub(super) fn matrix_load(&mut self, span: Span, place: &MatrixPlace, result: Option<Value>) {
        if !self.has_int64(span, "`matrix_load`") {
            return;
        }
        let (start, row) = (self.wide(place.index), self.wide(place.row));
        let arguments = format!("{start}, {row}");
        match result.and_then(|v| Some((v, self.ty(v).scalar()?, self.role(v)?))) {
            Some((result, scalar, role)) => {
                let name = self.cooperative_load(place, scalar, role);
                self.bind(result, format!("{name}({arguments})"));
            }
            None => {
                let name = self.plain_load(place);
                self.bind_matrix(result, &name, &arguments);
            }
        }
    }

    /// The name of a function by which every lane loads a whole matrix.
    fn plain_load(&mut self, place: &MatrixPlace) -> String {
        let way = self.way_of(place.memory, &[]);
        let load = self.load_helper(place.memory, &way);
        let suffix = if place.transpose { "_transposed" } else { "" };
        let name = format!("{}__load_matrix{suffix}", self.memory_name(place.memory));
        let entry = Self::entry(place.transpose);
        let each = self.each_matrix_entry();
        self.makes_matrix((&name, "start: i64, row: i64"), way.ty, None, |m| {
            format!("    {each}\n        {m}[e] = {load}({entry});\n    }}\n")
        });
        name
    }

    pub(super) fn matrix_store(&mut self, span: Span, place: &MatrixPlace, matrix: Value) {
        if !self.has_int64(span, "`matrix_store`") {
            return;
        }
        let (start, row) = (self.wide(place.index), self.wide(place.row));
        let text = self.matrix_argument(matrix);
        match (self.ty(matrix).scalar(), self.role(matrix)) {
            (Some(scalar), Some(role)) => {
                // Threads outside the grid are lanes of the simdgroups too.
                let name = self.cooperative_store(place, scalar, role);
                self.line(format!("{name}({start}, {row}, {text});"));
            }
            _plain => {
                let name = self.plain_store(place);
                self.if_exists(format!("{name}({start}, {row}, {text});"));
            }
        }
    }

    /// The name of a function by which each lane stores some entries of a matrix.
    fn plain_store(&mut self, place: &MatrixPlace) -> String {
        let way = self.way_of(place.memory, &[]);
        let store = self.store_helper(place.memory, &way);
        let suffix = if place.transpose { "_transposed" } else { "" };
        let name = format!("{}__store_matrix{suffix}", self.memory_name(place.memory));
        let entry = Self::entry(place.transpose);
        let matrix = self.matrix_parameter(way.ty);
        let (lane, lanes) = self.lane();
        let (begin, m) = if self.options.features.matrices_in_place {
            ("", "(*matrix)")
        } else {
            ("    var m = matrix;\n", "m")
        };
        self.helper(&name, |w| {
            let each = w
                .loops
                .counted(format!("e = {lane}; e < {MATRIX_ENTRIES}u; e = e + step"));
            format!(
                "fn {name}(start: i64, row: i64, matrix: {matrix}) {{\n{begin}    let step = {lanes};\n    {each}\n        \
                 {store}({entry}, {m}[e]);\n    }}\n}}\n"
            )
        });
        name
    }

    /// For each entry an `fma` in the order of the shared index, in the type of `c`, to which the factors
    /// are converted first.
    pub(super) fn matrix_multiply_accumulate(
        &mut self,
        span: Span,
        (a, b, c): (Value, Value, Value),
        result: Option<Value>,
    ) {
        let texts = [a, b, c].map(|v| self.matrix_argument(v));
        if let Some(result) = result
            && self.role(result).is_some()
        {
            return self.bind(result, format!("coopMultiplyAdd({})", texts.join(", ")));
        }
        let scalars = [a, b, c].map(|v| self.ty(v).scalar().unwrap_or(Scalar::F32));
        let name = format!(
            "matrix__multiply_{}_{}_{}",
            scalars[0], scalars[1], scalars[2]
        );
        if !self.helpers.has(&name) {
            self.multiply_helper(span, &name, scalars);
        }
        self.bind_matrix(result, &name, &texts.join(", "));
    }

    fn multiply_helper(&mut self, span: Span, name: &str, scalars: [Scalar; 3]) {
        let to = Type::Scalar(scalars[2]);
        // An index reaches variables only.
        const BY_VALUE: &str = "var left = a;\n    var right = b;\n    var m = c;";
        let [left, right, term] = if self.options.features.matrices_in_place {
            ["(*a)", "(*b)", "(*c)"]
        } else {
            ["left", "right", "m"]
        };
        let mut factor = |from: Scalar, text: String| {
            self.evaluate(Op::Cast, span, (Type::Scalar(from), to), &[text], None)
        };
        let x = factor(scalars[0], format!("{left}[r * 8u + k]"));
        let y = factor(scalars[1], format!("{right}[k * 8u + column]"));
        let step = self.evaluate(Op::Fma, span, (to, to), &[x, y, "sum".to_string()], None);
        let [a, b, c] = scalars.map(|s| self.matrix_parameter(Type::Scalar(s)));
        let parameters = format!("a: {a}, b: {b}, c: {c}");
        let entry = wgsl_type(to);
        let [rows, columns, terms] = ["r", "column", "k"].map(|i| {
            self.loops
                .counted(format!("{i} = 0u; {i} < {SIDE}u; {i}++"))
        });
        self.makes_matrix((name, &parameters), to, Some(BY_VALUE), |m| {
            format!(
                "    {rows}\n        {columns}\n            \
                 var sum: {entry} = {term}[r * 8u + column];\n            {terms}\n                \
                 sum = {step};\n            }}\n            \
                 {m}[r * 8u + column] = sum;\n        }}\n    }}\n"
            )
        });
    }
}
