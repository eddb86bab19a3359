//! What is known while a kernel is built, and the simplest things to build: constants, vectors, regions.
//!
//! What follows of expressions, statements and variables stands in the modules that build them, none of which
//! this one needs.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use invar_ir::{
    CallId, Const, Diagnostic, KernelBuilder, Memory, Op, Region, Rule, Span, Step, StructId, Type,
    Value,
};
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{ArraySize, Block, Expression, Function, GlobalVariable, Handle, LocalVariable};
use smallvec::SmallVec;

use crate::overrides::Overrides;
use crate::place::Lines;
use crate::value::{Flow, Index, Layout, Ptr, Slot, Tree, Val};
use crate::variables::Variables;

/// More instructions than this are refused: calls that call calls are inlined at every place, so that a
/// short shader may mean a kernel without end.
const MAX_INSTRUCTIONS: usize = 2_000_000;

/// A sentence for the user in the place of a result.
pub(crate) type Done<T> = Result<T, Diagnostic>;

/// A function that is being inlined, or the entry point.
pub(crate) struct Frame<'a> {
    pub function: &'a Function,
    pub info: &'a FunctionInfo,
    /// Expressions that were computed.
    pub values: HashMap<Handle<Expression>, Val>,
    pub arguments: Vec<Val>,
    pub locals: HashMap<Handle<LocalVariable>, Rc<Tree>>,
    /// Where the result goes, and the target that a `return` jumps to; the entry point has none.
    pub result: Option<(Option<Rc<Tree>>, usize)>,
}

/// Something that a jump can lead out of.
pub(crate) enum Target {
    /// An inlined function, by `return`.
    Function,
    /// A `switch`, by `break`.
    Switch,
    /// The body of a loop, by `continue`.
    Iteration,
    /// A loop, by `break`, with what it carries; and the jumps further out that leave it.
    Loop {
        carried: Vec<Slot>,
        breaks: bool,
        outward: Flow,
    },
}

pub(crate) struct Translator<'a> {
    pub shader: &'a naga::Module,
    pub info: &'a ModuleInfo,
    pub overrides: &'a Overrides,
    pub lines: &'a Lines,
    pub k: KernelBuilder,
    pub structs: HashMap<(Handle<naga::Type>, Layout), StructId>,
    /// Constants that can be used, by region.
    scopes: Vec<HashMap<Const, Value>>,
    /// Constants by value.
    pub known: HashMap<Value, Const>,
    /// The components of vectors that were made of scalars.
    pub parts: HashMap<Value, SmallVec<[Value; 4]>>,
    /// What the slots hold now.
    pub env: Variables,
    pub slot_names: Vec<Arc<str>>,
    pub globals: HashMap<Handle<GlobalVariable>, Ptr>,
    /// Textures and samplers.
    pub textures: HashMap<Handle<GlobalVariable>, Val>,
    /// The array at the end of a struct, which is a parameter of its own, by the parameter of the rest
    /// (itself, if there is no rest) and the struct.
    pub tails: HashMap<(Memory, Handle<naga::Type>), Memory>,
    /// Program-scope constants, by the constants of the shader.
    pub tables: HashMap<Handle<Expression>, Option<Memory>>,
    pub frames: Vec<Frame<'a>>,
    pub targets: Vec<Target>,
    /// Holds the code of the jump that is under way, 0 if there is none.
    pub exit: Slot,
    /// By code, where the jump is that was made last.
    pub jumps: HashMap<u32, Span>,
    /// Where a part of a chain of `else if`s ends, and the variable that tells whether that was reached.
    pub cut: Option<(&'a Block, Slot)>,
    /// The call that is being inlined.
    pub call: Option<CallId>,
    /// Private variables that functions may assign.
    pub private_stores: HashMap<Handle<Function>, Rc<BTreeSet<Handle<GlobalVariable>>>>,
    instructions: usize,
    /// A subgroup function stands where the shader lets it be reached by some of the subgroup.
    pub apart: bool,
}

impl<'a> Translator<'a> {
    /// Nothing is built yet.
    pub fn new(
        shader: &'a naga::Module,
        info: &'a ModuleInfo,
        overrides: &'a Overrides,
        lines: &'a Lines,
        k: KernelBuilder,
    ) -> Translator<'a> {
        Translator {
            shader,
            info,
            overrides,
            lines,
            k,
            structs: HashMap::new(),
            scopes: vec![HashMap::new()],
            known: HashMap::new(),
            parts: HashMap::new(),
            env: Variables::default(),
            slot_names: vec!["jump".into()],
            globals: HashMap::new(),
            textures: HashMap::new(),
            tails: HashMap::new(),
            tables: HashMap::new(),
            frames: Vec::new(),
            targets: Vec::new(),
            exit: Slot(0),
            jumps: HashMap::new(),
            cut: None,
            call: None,
            private_stores: HashMap::new(),
            instructions: 0,
            apart: false,
        }
    }

    // ---- places, refusals ----

    /// What follows was written there.
    pub fn at(&mut self, span: naga::Span) {
        let mut at = self.lines.span(span);
        at.call = at.source.and(self.call);
        if at.source.is_some() {
            self.k.set_span(at);
        }
    }

    /// A construct that is not supported, at the current place.
    pub fn refuse(&self, what: &str) -> Diagnostic {
        Diagnostic::error(
            Rule::UnsupportedFeature,
            self.k.span(),
            format!("{what} is not supported in a shader"),
        )
        .help("leave it out of what this entry point uses, or run another entry point of the file")
    }

    /// What cannot be, since naga would have refused it.
    pub fn unexpected(&self, what: &str) -> Diagnostic {
        Diagnostic::error(
            Rule::MalformedModule,
            self.k.span(),
            format!("this part of the shader makes no sense: {what}"),
        )
        .help("this is a defect of Invar: report it with the shader")
    }

    // ---- values ----

    /// Counts what is built, since inlining may build without end.
    pub fn count(&mut self) -> Done<()> {
        self.instructions += 1;
        if self.instructions <= MAX_INSTRUCTIONS {
            return Ok(());
        }
        Err(Diagnostic::error(
            Rule::LimitExceeded,
            self.k.span(),
            format!(
                "with every call inlined the kernel has more than {MAX_INSTRUCTIONS} instructions"
            ),
        )
        .help("call the functions from fewer places"))
    }

    pub fn frame(&self) -> &Frame<'a> {
        // The entry point's frame is there from before the first statement to the end.
        &self.frames[self.frames.len() - 1]
    }

    pub fn frame_mut(&mut self) -> &mut Frame<'a> {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// A constant; one that can be seen from here is used again.
    pub fn constant(&mut self, constant: Const) -> Value {
        for scope in self.scopes.iter().rev() {
            if let Some(value) = scope.get(&constant) {
                return *value;
            }
        }
        let value = self.k.constant(constant);
        self.known.insert(value, constant);
        let last = self.scopes.len() - 1;
        self.scopes[last].insert(constant, value);
        value
    }

    /// A `u32`.
    pub fn number(&mut self, number: u32) -> Value {
        self.constant(Const::from(number))
    }

    pub fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.k.op(op, (), args)
    }

    /// A vector or matrix of parts; its components are remembered if they are scalars.
    pub fn construct(&mut self, ty: Type, parts: &[Value]) -> Value {
        let value = self.k.construct(ty, parts);
        if let Type::Vector(_, n) = ty {
            let scalars = |v: &&Value| matches!(self.k.ty(**v), Type::Scalar(_));
            if parts.len() == n as usize && parts.iter().filter(scalars).count() == parts.len() {
                self.parts.insert(value, SmallVec::from_slice(parts));
            } else if parts.len() == 1 && scalars(&&parts[0]) {
                self.parts
                    .insert(value, std::iter::repeat_n(parts[0], n as usize).collect());
            }
        }
        value
    }

    /// A value of that type with every component the same constant.
    pub fn splat(&mut self, ty: Type, constant: Const) -> Value {
        let one = self.constant(constant);
        self.spread(ty, one)
    }

    /// A value of that type with every component the same.
    pub fn spread(&mut self, ty: Type, one: Value) -> Value {
        match ty {
            Type::Vector(..) => self.construct(ty, &[one]),
            Type::Matrix {
                scalar,
                columns,
                rows,
            } => {
                let column = self.construct(Type::Vector(scalar, rows), &[one]);
                self.construct(ty, &vec![column; columns as usize])
            }
            Type::Scalar(_) | Type::SimdgroupMatrix { .. } | Type::Event => one,
        }
    }

    /// Zero of a type that one value can hold.
    pub fn zero_of(&mut self, ty: Type) -> Done<Value> {
        let Some(scalar) = ty.scalar() else {
            return Err(self.unexpected("a zero of no type"));
        };
        Ok(self.splat(ty, Const { scalar, bits: 0 }))
    }

    /// The one value that an expression is.
    pub fn one(&self, val: &Val) -> Done<Value> {
        match val {
            Val::One(value) => Ok(*value),
            Val::Many(_) | Val::Stored(_) => Err(self.unexpected("a struct or array as a number")),
            Val::Pointer(_) => Err(self.unexpected("a pointer as a number")),
            Val::Texture(_) | Val::Sampler(_) => Err(self.unexpected("a texture as a number")),
        }
    }

    pub fn index_value(&mut self, index: Index) -> Value {
        match index {
            Index::Constant(i) => self.number(i),
            Index::Value(value) => value,
        }
    }

    pub fn index_step(&mut self, index: Index) -> Step {
        Step::Index(self.index_value(index))
    }

    pub fn array_length(&self, size: ArraySize) -> Option<u32> {
        match size {
            ArraySize::Constant(n) => Some(n.get()),
            ArraySize::Pending(handle) => self.overrides.length(handle),
            ArraySize::Dynamic => None,
        }
    }

    // ---- regions ----

    pub fn open(&mut self, params: &[Type]) -> Vec<Value> {
        self.scopes.push(HashMap::new());
        self.k.open_region(params)
    }

    pub fn close(&mut self) -> Region {
        self.scopes.pop();
        self.k.close_region()
    }

    // ---- variables ----

    pub fn slot(&mut self, name: &str) -> Slot {
        self.slot_names.push(name.into());
        Slot(self.slot_names.len() as u32 - 1)
    }

    /// Gives a slot a value, which is called as the variable if it has no name yet.
    pub fn set(&mut self, slot: Slot, value: Value) {
        let name = &self.slot_names[slot.0 as usize];
        if !name.is_empty() && !self.known.contains_key(&value) {
            let name = name.clone();
            self.k.name(value, &name);
        }
        self.env.insert(slot, value);
    }

    pub fn push_target(&mut self, target: Target) -> Done<usize> {
        if self.targets.len() == Flow::MAX_TARGETS {
            return Err(Diagnostic::error(
                Rule::LimitExceeded,
                self.k.span(),
                "loops, switches and calls of functions lie too deep in each other here",
            )
            .help("write the inner ones flatter, or split the shader"));
        }
        self.targets.push(target);
        Ok(self.targets.len() - 1)
    }

    /// Says where the host binds the parameter that was added last, which is a variable or a part of it.
    pub fn bind(&mut self, variable: &GlobalVariable) {
        if let Some(at) = &variable.binding {
            self.k.bind(invar_ir::Binding {
                group: at.group,
                number: at.binding,
            });
        }
    }
}
