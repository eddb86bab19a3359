//! What stands for a value: a `let`, or a variable where several ways give one.
//!
//! A simdgroup matrix is one of the target's, an array, or an array that stays where it lies, which functions fill and
//! read there.

use invar_ir::{Scalar, Type, Value};

use super::roles::Role;
use super::types::{MATRIX_ENTRIES, scalar as wgsl_scalar, tag, value as wgsl_type};
use super::writer::Writer;
use crate::shading::flow::moves;

/// The target's type of a cooperative matrix.
pub(super) fn matrix_type(scalar: Scalar, role: Role) -> String {
    format!("coop_mat8x8<{}, {}>", wgsl_scalar(scalar), role.wgsl())
}

/// What holds the entries of a simdgroup matrix in plain code.
pub(super) fn array(entry: Type) -> String {
    format!("array<{}, {MATRIX_ENTRIES}>", wgsl_type(entry))
}

impl Writer<'_> {
    /// Names what a value is computed by.
    pub(super) fn bind(&mut self, value: Value, expression: String) {
        let expression = self.opaque(value, expression);
        let name = self.name_value(value);
        self.line(format!("let {name} = {expression};"));
        self.values[value.0 as usize] = name;
    }

    /// Declares a variable for a value; it starts as the expression, or as zero. A matrix that stays where
    /// it lies is declared before the body, and is zero once only.
    pub(super) fn variable(&mut self, value: Value, start: Option<String>) -> String {
        let name = self.name_value(value);
        let ty = self.held(value);
        match start {
            start if self.is_in_place(value) => {
                self.matrices.push_str(&format!("    var {name}: {ty};\n"));
                if let Some(start) = start {
                    self.copy_matrix(self.ty(value), &name, &start);
                }
            }
            Some(start) => self.line(format!("var {name}: {ty} = {start};")),
            None => self.line(format!("var {name}: {ty};")),
        }
        self.values[value.0 as usize] = name.clone();
        name
    }

    /// Gives values to variables, all at once.
    pub(super) fn assign(&mut self, variables: &[String], values: &[Value]) {
        let mut moves = moves(variables, values.iter().map(|v| (self.value(*v), *v)));
        for one in moves.iter_mut().filter(|one| one.is_overwritten) {
            one.text = self.kept(one.value, &one.text);
        }
        for one in moves {
            let (variable, text) = (one.target, one.text);
            if self.is_in_place(one.value) {
                self.copy_matrix(self.ty(one.value), &variable, &text);
            } else {
                self.line(format!("{variable} = {text};"));
            }
        }
    }

    /// A name for what a variable holds before it changes.
    pub(super) fn kept(&mut self, value: Value, text: &str) -> String {
        let name = self.names.unique("before");
        if self.is_in_place(value) {
            let ty = self.held(value);
            self.matrices.push_str(&format!("    var {name}: {ty};\n"));
            self.copy_matrix(self.ty(value), &name, text);
        } else {
            self.line(format!("let {name} = {text};"));
        }
        name
    }

    /// The place of a value that is a cooperative matrix.
    pub(super) fn role(&self, value: Value) -> Option<Role> {
        self.roles.get(&value).copied()
    }

    /// The WGSL type that holds a value.
    pub(super) fn held(&self, value: Value) -> String {
        let ty = self.ty(value);
        match (self.role(value), ty.scalar()) {
            (Some(role), Some(scalar)) => matrix_type(scalar, role),
            _plain => super::types::value(ty),
        }
    }

    /// Whether a value is a variable of the entry point that functions fill and read where it lies.
    pub(super) fn is_in_place(&self, value: Value) -> bool {
        self.options.features.matrices_in_place
            && matches!(self.ty(value), Type::SimdgroupMatrix { .. })
            && self.role(value).is_none()
    }

    /// The type of a parameter that is a matrix of such entries.
    pub(super) fn matrix_parameter(&self, entry: Type) -> String {
        let array = array(entry);
        if self.options.features.matrices_in_place {
            format!("ptr<function, {array}>")
        } else {
            array
        }
    }

    /// A function that makes a matrix of such entries; `body` gets what the matrix is called. By value it
    /// is declared as `start` says, if it does.
    pub(super) fn makes_matrix(
        &mut self,
        (name, parameters): (&str, &str),
        entry: Type,
        start: Option<&str>,
        body: impl Fn(&str) -> String,
    ) {
        let array = array(entry);
        let text = if self.options.features.matrices_in_place {
            let body = body("(*m)");
            format!("fn {name}(m: ptr<function, {array}>, {parameters}) {{\n{body}}}\n")
        } else {
            let body = body("m");
            let start = start.map_or(format!("var m: {array};"), str::to_string);
            format!("fn {name}({parameters}) -> {array} {{\n    {start}\n{body}    return m;\n}}\n")
        };
        self.helper(name, |_| text);
    }

    /// The head of a loop over the entries of a matrix.
    pub(super) fn each_matrix_entry(&self) -> String {
        self.loops
            .counted(format!("e = 0u; e < {MATRIX_ENTRIES}u; e++"))
    }

    /// Copies a matrix of that type from one variable to another, which stay where they lie.
    pub(super) fn copy_matrix(&mut self, ty: Type, to: &str, source: &str) {
        let entry = Type::Scalar(ty.scalar().unwrap_or(Scalar::F32));
        let name = format!("{}__copy_matrix", tag(entry));
        let parameters = format!("source: {}", self.matrix_parameter(entry));
        let each = self.each_matrix_entry();
        self.makes_matrix((&name, &parameters), entry, None, |m| {
            format!("    {each}\n        {m}[e] = (*source)[e];\n    }}\n")
        });
        self.line(format!("{name}(&{to}, &{source});"));
    }
}
