//! Declarations that types need: structs for matrices in memory, for those of bfloat and for the author's structs, and
//! what an event is.

use invar_ir::{ElementType, Scalar, Type};

use super::interface::AsyncCopies;
use super::types;
use super::writer::Writer;

impl Writer<'_> {
    /// Declares what a value of this type needs: structs for matrices in memory, and of bfloat.
    pub(super) fn need_type(&mut self, ty: Type) {
        if ty == Type::Event {
            self.event_type();
        }
        let Type::Matrix {
            scalar,
            columns,
            rows,
        } = ty
        else {
            return;
        };
        let (packed, held) = (types::memory(ty), types::memory(Type::Vector(scalar, rows)));
        self.helpers.add(&packed, || {
            format!("struct {packed} {{\n    {held} columns[{columns}];\n}};")
        });
        if scalar == Scalar::BF16 {
            let (name, held) = (types::value(ty), types::value(Type::Vector(scalar, rows)));
            self.helpers.add(&name, || {
                format!("struct {name} {{\n    {held} columns[{columns}];\n}};")
            });
        }
    }

    /// Declares the structs and matrices of an element.
    pub(super) fn need_element(&mut self, element: &ElementType) {
        match element {
            ElementType::Value(ty) => self.need_type(*ty),
            ElementType::Array(inner, _) => self.need_element(inner),
            ElementType::Struct(id) => {
                let module = self.module;
                let index = id.0 as usize;
                let def = &module.structs[index];
                for (_, field) in &def.fields {
                    self.need_element(field);
                }
                let name = self.struct_names[index].clone();
                let mut text = format!("struct {name} {{\n");
                for ((_, field), field_name) in def.fields.iter().zip(&self.field_names[index]) {
                    let (ty, inner) = types::element(field, &self.struct_names);
                    let brackets = types::brackets(&inner);
                    text.push_str(&format!("    {ty} {field_name}{brackets};\n"));
                }
                text.push_str("};");
                if let Some(extent) = element.extent(&module.structs) {
                    text.push_str(&format!(
                        "\nstatic_assert(sizeof({name}) == {}, \"the layout of C\");",
                        extent.size_bytes
                    ));
                }
                self.helpers.add(&format!("struct {name}"), || text);
            }
        }
    }

    /// What an event is.
    pub(super) fn event_type(&mut self) {
        let text = match self.options.async_copies {
            AsyncCopies::Expanded => {
                "// Copies are finished where they are issued.\ntypedef uint invar_event;"
            }
            AsyncCopies::Apple9Extern => {
                "// The copy engine of Apple's GPUs of family 9 and newer.
struct _simdgroup_event_t;
typedef thread _simdgroup_event_t* invar_event;
void invar_wait_for(int count, thread invar_event* events) __asm(\"air.wait_simdgroup_events\");
static inline void invar_wait(invar_event event) {
    if (event != nullptr) invar_wait_for(1, &event);
}"
            }
        };
        self.helpers.add("event", || text.to_string());
    }
}
