//! Common subexpressions: what is computed again from the same operands, where the first result is in
//! sight, is the first result. Loads from memory that the dispatch does not write are among them.

use std::collections::HashMap;

use invar_ir::{
    Const, Imm, InstKind, Kernel, Memory, Module, Op, Place, Region, Type, Value, Values,
};

use super::PassOptions;
use super::common::{Map, substitute};

/// What makes two pure instructions the same.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Const(Const),
    FunctionConstant(u32),
    Op(Op, Imm, Values, Type),
    BufferLength(Memory),
    Load(Place),
}

pub(super) fn run(module: &Module, kernel: &mut Kernel, _options: &PassOptions) {
    let mut cse = Cse {
        module,
        declarations: kernel.declarations(),
        seen: HashMap::new(),
        map: Map::new(),
    };
    let mut body = std::mem::take(&mut kernel.body);
    cse.region(&mut body);
    kernel.body = body;
}

struct Cse<'a> {
    module: &'a Module,
    declarations: Kernel,
    /// What is in sight.
    seen: HashMap<Key, Value>,
    map: Map,
}

impl Cse<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut added: Vec<Key> = Vec::new();
        region.insts.retain_mut(|inst| {
            substitute(&self.map, &mut inst.kind);
            for inner in inst.kind.regions_mut() {
                self.region(inner);
            }
            let Some(key) = self.key(&inst.kind, &inst.results) else {
                return true;
            };
            let result = inst.results[0];
            match self.seen.get(&key) {
                Some(first) => {
                    self.map.insert(result, *first);
                    false
                }
                None => {
                    self.seen.insert(key.clone(), result);
                    added.push(key);
                    true
                }
            }
        });
        for key in added {
            self.seen.remove(&key);
        }
    }

    fn key(&self, kind: &InstKind, results: &[Value]) -> Option<Key> {
        if !kind.is_pure(self.module, &self.declarations) {
            return None;
        }
        let ty = self.declarations.ty(*results.first()?);
        Some(match kind {
            InstKind::Const(constant) => Key::Const(*constant),
            InstKind::FunctionConstant(id) => Key::FunctionConstant(*id),
            InstKind::Op { op, imm, args } => Key::Op(*op, *imm, args.clone(), ty),
            InstKind::BufferLength(memory) => Key::BufferLength(*memory),
            InstKind::Load(place) => Key::Load(place.clone()),
            _not_pure => return None,
        })
    }
}
