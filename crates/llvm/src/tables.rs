//! Memory in the function's frame that code for many lanes goes through: one table of each role and type for all such
//! code of a function.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{FunctionValue, PointerValue};
use std::cell::{Cell, RefCell};

use crate::emit::{BUILT, Emit};

/// Vectors in memory of which lanes are taken by number: one for each use and type, for what is in one is gone
/// through at once.
#[derive(Default)]
pub(crate) struct Tables<'c> {
    /// Whether code is being made that may be moved out of the function. It has tables of its own, which are
    /// moved with it.
    apart: Cell<bool>,
    all: RefCell<Vec<Table<'c>>>,
}

struct Table<'c> {
    function: FunctionValue<'c>,
    role: Role,
    ty: BasicTypeEnum<'c>,
    apart: bool,
    memory: PointerValue<'c>,
}

/// What a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Where each lane acts, or what lanes are to pick from.
    Pointers,
    /// What each lane brings, by the number of the argument.
    Argument(u8),
    /// What each lane found.
    Old,
    /// Whether each lane exchanged something.
    Exchanged,
    /// What is not read.
    Waste,
}

impl Tables<'_> {
    /// Says whether the code that comes next may be moved out of the function.
    pub fn set_apart(&self, apart: bool) {
        self.apart.set(apart);
    }
}

impl<'c> Emit<'c> {
    /// The table of this role and type.
    pub fn table(&self, role: Role, ty: BasicTypeEnum<'c>) -> PointerValue<'c> {
        let (function, apart) = (self.function.get(), self.tables.apart.get());
        let found = {
            let all = self.tables.all.borrow();
            let is =
                |t: &&Table<'c>| (t.function, t.role, t.ty, t.apart) == (function, role, ty, apart);
            all.iter().find(is).map(|table| table.memory)
        };
        found.unwrap_or_else(|| {
            let memory = self.stack(ty);
            self.tables.all.borrow_mut().push(Table {
                function,
                role,
                ty,
                apart,
                memory,
            });
            memory
        })
    }

    /// Memory of the function's own, that one call has once, however often control comes here.
    pub fn stack(&self, ty: BasicTypeEnum<'c>) -> PointerValue<'c> {
        let entry = self
            .function
            .get()
            .get_first_basic_block()
            .expect("an entry");
        let builder = self.context.create_builder();
        match entry.get_first_instruction() {
            Some(first) => builder.position_before(&first),
            None => builder.position_at_end(entry),
        }
        builder.build_alloca(ty, "").expect(BUILT)
    }
}
