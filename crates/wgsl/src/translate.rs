//! From one entry point to one kernel.
//!
//! Functions are inlined, each instruction with the chain of calls that led to it. Variables of the
//! thread without arrays become values, tracked from assignment to assignment; those with arrays are
//! thread memory. A jump that WGSL has and Invar has not (a `return` in the middle of a function, a
//! `break` in the middle of a `switch`, a `continue`) becomes a condition around what it jumps over:
//! no loop is needed for it, and threads meet again where the jump leads.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use invar_ir::requires::MAX_REQUIREMENTS;
use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{
    Access, Call, CallId, Const, Diagnostic, Diagnostics, Dim, ElementType, Kernel, KernelBuilder,
    Memory, Module, Op, Region, Rule, Span, Step, StructId, Type, Value, verify,
};
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, ArraySize, Binding, Block, BuiltIn, Expression, Function, GlobalVariable, Handle,
    LocalVariable, TypeInner,
};
use smallvec::SmallVec;

use crate::Resource;
use crate::layout::{describe, field_name, value_type};
use crate::overrides::Overrides;
use crate::place::Lines;
use crate::pointers;
use crate::value::{At, Flow, Index, Layout, MemPtr, Ptr, Slot, Tree, Val};
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
    call: Option<CallId>,
    /// Private variables that functions may assign.
    pub private_stores: HashMap<Handle<Function>, Rc<BTreeSet<Handle<GlobalVariable>>>>,
    instructions: usize,
    /// A subgroup function stands where the shader lets it be reached by some of the subgroup.
    pub apart: bool,
}

/// Builds the kernel of an entry point into a module; what its parameters stand for comes with it.
pub(crate) fn entry(
    shader: &naga::Module,
    info: &ModuleInfo,
    overrides: &Overrides,
    lines: &Lines,
    module: Module,
    entry: usize,
) -> Result<(Module, Vec<Resource>), Diagnostics> {
    let point = &shader.entry_points[entry];
    let mut t = Translator {
        shader,
        info,
        overrides,
        lines,
        k: KernelBuilder::new(module, &point.name),
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
    };
    // What is refused does not have the module whose calls it names.
    let resources = t.kernel(entry).map_err(|error| {
        let error = error.bringing(&t.k.module().calls);
        Diagnostics(vec![error])
    })?;
    let apart = t.apart;
    let calls = t.k.module().calls.clone();
    let mut module = t.k.finish().map_err(|Diagnostics(all)| {
        let all = all.into_iter().map(|error| error.bringing(&calls));
        Diagnostics(all.collect())
    })?;
    if let Some(kernel) = module.kernels.pop() {
        let mut kernel = crate::simplify::simplified(&module, kernel);
        kernel.active_collectives = apart && needs_active(&module, &kernel);
        module.kernels.push(kernel);
    }
    Ok((module, resources))
}

/// Whether collectives of a kernel are not reached by whole simdgroups.
fn needs_active(module: &Module, kernel: &Kernel) -> bool {
    let alone = Module {
        kernels: vec![kernel.clone()],
        ..module.clone()
    };
    let missed = |d: &Diagnostic| d.rule == Rule::CollectiveNotUniform;
    verify(alone).is_err_and(|Diagnostics(all)| all.iter().any(missed))
}

impl<'a> Translator<'a> {
    fn kernel(&mut self, entry: usize) -> Done<Vec<Resource>> {
        let shader = self.shader;
        let point = &shader.entry_points[entry];
        let info = self.info.get_entry_point(entry);
        let place = point.function.body.span_iter().next().map(|(_, s)| *s);
        let head = self.lines.head(&point.name).or(place);
        self.at(head.unwrap_or(naga::Span::UNDEFINED));
        self.k.kernel_mut().span = self.k.span();
        let size = self.overrides.workgroup_size(point);
        if size.contains(&0) {
            let message = format!(
                "the workgroups of `{}` have no invocations: they are {} by {} by {}",
                point.name, size[0], size[1], size[2]
            );
            return Err(
                Diagnostic::error(Rule::FunctionConstant, self.k.span(), message)
                    .help("give the overrides that it is made of values of 1 or more"),
            );
        }
        self.k.kernel_mut().threadgroup_size = Some(size);
        let none = self.number(0);
        self.env.insert(self.exit, none);
        let mut resources = Vec::new();
        let handed_over = pointers::handed_over(shader, &point.function);
        for (handle, variable) in shader.global_variables.iter() {
            if !info[handle].is_empty() || handed_over.contains(&handle) {
                self.at(shader.global_variables.get_span(handle));
                self.global(handle, variable, &mut resources)?;
            }
        }
        resources.sort_by_key(|r| (r.group, r.binding));
        let mut arguments = Vec::new();
        for (number, argument) in point.function.arguments.iter().enumerate() {
            let place = point.function.expressions.iter().find(
                |(_, e)| matches!(e, Expression::FunctionArgument(n) if *n as usize == number),
            );
            if let Some((handle, _)) = place {
                self.at(point.function.expressions.get_span(handle));
            }
            let name = argument.name.as_deref().unwrap_or("");
            arguments.push(match &self.shader.types[argument.ty].inner {
                TypeInner::Struct { members, .. } => {
                    let mut values = Vec::new();
                    for member in members {
                        let name = member.name.as_deref().unwrap_or("");
                        values.push(self.builtin(member.binding.as_ref(), name)?);
                    }
                    Val::Many(values.into())
                }
                _one_builtin => self.builtin(argument.binding.as_ref(), name)?,
            });
        }
        self.enter(&point.function, info, arguments, None)?;
        let body = &point.function.body;
        self.block(body)?;
        Ok(resources)
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

    /// A variable of the thread, all zeros.
    pub fn variable(&mut self, name: &str, ty: Handle<naga::Type>) -> Done<Rc<Tree>> {
        let inner = &self.shader.types[ty].inner;
        if let Some(value) = value_type(inner) {
            let slot = self.slot(name);
            let zero = self.zero_of(value)?;
            self.env.insert(slot, zero);
            return Ok(Rc::new(Tree::Slot(slot)));
        }
        match inner {
            TypeInner::Struct { members, .. } => {
                let mut tree = Vec::new();
                for (number, member) in members.iter().enumerate() {
                    let name = format!("{name}.{}", field_name(member, number));
                    tree.push(self.variable(&name, member.ty)?);
                }
                Ok(Rc::new(Tree::Many(tree)))
            }
            TypeInner::Array { base, size, .. } => {
                let Some(length) = self.array_length(*size) else {
                    return Err(self.unexpected("a variable without a size"));
                };
                let element = self.array_element(*base, Layout::Own)?;
                let name = if name.is_empty() { "array" } else { name };
                let memory = self.k.alloc_thread(name, element, length);
                Ok(Rc::new(Tree::Memory(MemPtr {
                    memory,
                    index: None,
                    path: SmallVec::new(),
                    at: At::Type(ty, Layout::Own),
                })))
            }
            other => Err(self.refuse(&format!("{} as a variable", describe(other)))),
        }
    }

    /// Begins a function: its variables have their initial values.
    pub fn enter(
        &mut self,
        function: &'a Function,
        info: &'a FunctionInfo,
        arguments: Vec<Val>,
        result: Option<(Option<Rc<Tree>>, usize)>,
    ) -> Done<()> {
        self.frames.push(Frame {
            function,
            info,
            values: HashMap::new(),
            arguments,
            locals: HashMap::new(),
            result,
        });
        for (handle, local) in function.local_variables.iter() {
            self.at(function.local_variables.get_span(handle));
            // `&&` and `||` have variables too: reports tell of them by what is written.
            let name = local.name.as_deref().unwrap_or("");
            let tree = self.variable(name, local.ty)?;
            if let Some(init) = local.init {
                let value = self.expr(init)?;
                self.store(&Ptr::Tree(tree.clone()), &value)?;
            }
            self.frame_mut().locals.insert(handle, tree);
        }
        Ok(())
    }

    /// Ends a function: its variables are gone.
    pub fn leave(&mut self) {
        if let Some(frame) = self.frames.pop() {
            let mut slots = Vec::new();
            for tree in frame.locals.values() {
                tree.slots(&mut slots);
            }
            for slot in slots {
                self.env.remove(slot);
            }
        }
    }

    /// Inlines a call.
    pub fn inline(
        &mut self,
        callee: Handle<Function>,
        arguments: Vec<Val>,
        site: naga::Span,
    ) -> Done<Option<Val>> {
        let function = &self.shader.functions[callee];
        let info = &self.info[callee];
        self.at(site);
        let outer = self.call;
        let name = function.name.as_deref().unwrap_or("function");
        let site = self.k.span();
        let calls = &mut self.k.module_mut().calls;
        calls.push(Call {
            function: name.into(),
            site,
        });
        self.call = Some(CallId(calls.len() as u32 - 1));
        let result = match &function.result {
            Some(result) => Some(self.variable(name, result.ty)?),
            None => None,
        };
        // No jump leads out of a function: its targets are its own, however deep calls are.
        let around = std::mem::take(&mut self.targets);
        let target = self.push_target(Target::Function)?;
        self.enter(function, info, arguments, Some((result.clone(), target)))?;
        let flow = with_room(PASSES_BYTES, || self.block(&function.body))?;
        self.targets = around;
        self.arrive(flow, target)?;
        self.leave();
        self.call = outer;
        let Some(tree) = result else {
            return Ok(None);
        };
        let value = self.load(&Ptr::Tree(tree.clone()))?;
        let mut slots = Vec::new();
        tree.slots(&mut slots);
        for slot in slots {
            self.env.remove(slot);
        }
        Ok(Some(value))
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

    // ---- the entry point's surroundings ----

    fn builtin(&mut self, binding: Option<&Binding>, name: &str) -> Done<Val> {
        let Some(Binding::BuiltIn(builtin)) = binding else {
            return Err(self.refuse("an argument of an entry point that is not a builtin"));
        };
        let (op, vector) = match builtin {
            BuiltIn::GlobalInvocationId => (Op::ThreadPositionInGrid, true),
            BuiltIn::LocalInvocationId => (Op::ThreadPositionInThreadgroup, true),
            BuiltIn::WorkGroupId => (Op::ThreadgroupPositionInGrid, true),
            BuiltIn::NumWorkGroups => (Op::ThreadgroupsPerGrid, true),
            BuiltIn::WorkGroupSize => (Op::DispatchThreadsPerThreadgroup, true),
            BuiltIn::LocalInvocationIndex => (Op::ThreadIndexInThreadgroup, false),
            BuiltIn::SubgroupSize => (Op::ThreadsPerSimdgroup, false),
            BuiltIn::SubgroupInvocationId => (Op::ThreadIndexInSimdgroup, false),
            BuiltIn::NumSubgroups => (Op::SimdgroupsPerThreadgroup, false),
            BuiltIn::SubgroupId => (Op::SimdgroupIndexInThreadgroup, false),
            BuiltIn::GeometryIndex | BuiltIn::HitKind => {
                let value = self.linear_index(*builtin);
                self.k.name(value, name);
                return Ok(Val::One(value));
            }
            other => return Err(self.refuse(&format!("the builtin `{other:?}`"))),
        };
        if !vector {
            let value = self.op(op, &[]);
            self.k.name(value, name);
            return Ok(Val::One(value));
        }
        let mut parts = Vec::new();
        for (dim, letter) in [(Dim::X, "x"), (Dim::Y, "y"), (Dim::Z, "z")] {
            let part = self.k.op(op, dim, &[]);
            self.k.name(part, &format!("{name}.{letter}"));
            parts.push(part);
        }
        let vector = self.construct(Type::Vector(invar_ir::Scalar::U32, 3), &parts);
        self.k.name(vector, name);
        Ok(Val::One(vector))
    }

    /// `global_invocation_index` or `workgroup_index`: the number of a place in the grid, along x first.
    fn linear_index(&mut self, builtin: BuiltIn) -> Value {
        let of_threads = builtin == BuiltIn::GeometryIndex;
        let position = match of_threads {
            true => Op::ThreadPositionInGrid,
            false => Op::ThreadgroupPositionInGrid,
        };
        let mut index = self.k.op(position, Dim::X, &[]);
        let mut stride = None;
        for (dim, before) in [(Dim::Y, Dim::X), (Dim::Z, Dim::Y)] {
            let mut length = self.k.op(Op::ThreadgroupsPerGrid, before, &[]);
            if of_threads {
                let threads = self.k.op(Op::DispatchThreadsPerThreadgroup, before, &[]);
                length = self.op(Op::Mul, &[length, threads]);
            }
            let step = match stride {
                Some(stride) => self.op(Op::Mul, &[stride, length]),
                None => length,
            };
            let at = self.k.op(position, dim, &[]);
            let part = self.op(Op::Mul, &[at, step]);
            index = self.op(Op::Add, &[index, part]);
            stride = Some(step);
        }
        index
    }

    fn global(
        &mut self,
        handle: Handle<GlobalVariable>,
        variable: &GlobalVariable,
        resources: &mut Vec<Resource>,
    ) -> Done<()> {
        let name = variable.name.clone().filter(|n| !n.is_empty());
        let name = name.unwrap_or_else(|| "variable".to_string());
        let inner = &self.shader.types[variable.ty].inner;
        let ptr = match variable.space {
            AddressSpace::Storage { access } => {
                let access = if access.contains(naga::StorageAccess::STORE) {
                    Access::ReadWrite
                } else {
                    Access::Read
                };
                self.buffer(&name, variable, Some(access), resources)?
            }
            AddressSpace::Uniform | AddressSpace::Immediate => {
                self.buffer(&name, variable, None, resources)?
            }
            AddressSpace::WorkGroup => {
                let (element, length, index) = match inner {
                    TypeInner::Array { base, size, .. } => {
                        let Some(length) = self.array_length(*size) else {
                            return Err(self.refuse("an array of a workgroup that has no elements"));
                        };
                        (self.array_element(*base, Layout::Own)?, length, None)
                    }
                    _one_value => {
                        let element = self.element(variable.ty, Layout::Own)?;
                        (element, 1, Some(self.number(0)))
                    }
                };
                // It is all zeros at first, and shaders may count on that.
                self.k.kernel_mut().allow_uninitialised_reads = true;
                Ptr::Memory(MemPtr {
                    memory: self.k.alloc_threadgroup(&name, element, length),
                    index,
                    path: SmallVec::new(),
                    at: At::Type(variable.ty, Layout::Own),
                })
            }
            AddressSpace::Private => {
                let tree = self.variable(&name, variable.ty)?;
                let ptr = Ptr::Tree(tree);
                if let Some(init) = variable.init {
                    let value = self.global_expr(init)?;
                    self.store(&ptr, &value)?;
                }
                ptr
            }
            AddressSpace::Handle if matches!(inner, TypeInner::Image { .. }) => {
                let memory = self.texture_variable(&name, variable, resources)?;
                self.textures.insert(handle, Val::Texture(memory));
                return Ok(());
            }
            AddressSpace::Handle if matches!(inner, TypeInner::Sampler { .. }) => {
                let sampler = self.sampler_variable(&name, variable, resources);
                self.textures.insert(handle, Val::Sampler(sampler));
                return Ok(());
            }
            AddressSpace::Handle
            | AddressSpace::Function
            | AddressSpace::TaskPayload
            | AddressSpace::RayPayload
            | AddressSpace::IncomingRayPayload => {
                let what = format!("{} (`{name}`)", describe(inner));
                return Err(self.refuse(&what));
            }
        };
        self.globals.insert(handle, ptr);
        Ok(())
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

    /// A parameter for a variable of the host; in constant memory without an access.
    fn buffer(
        &mut self,
        name: &str,
        variable: &GlobalVariable,
        access: Option<Access>,
        resources: &mut Vec<Resource>,
    ) -> Done<Ptr> {
        let shader = self.shader;
        let inner = &shader.types[variable.ty].inner;
        let add = |t: &mut Self, name: &str, element: ElementType| {
            let memory = match access {
                Some(access) => t.k.buffer(name, access, element),
                None => t.k.constant_buffer(name, element),
            };
            t.bind(variable);
            memory
        };
        let mut resource = Resource {
            name: name.to_string(),
            group: variable.binding.map(|b| b.group),
            binding: variable.binding.map(|b| b.binding),
            params: Vec::new(),
            head_bytes: None,
            length: None,
            format: None,
            declared: None,
        };
        let dynamic = |m: &naga::StructMember| {
            matches!(
                shader.types[m.ty].inner,
                TypeInner::Array {
                    size: ArraySize::Dynamic,
                    ..
                }
            )
        };
        let mut index = None;
        let memory = match inner {
            TypeInner::Array { base, size, .. } => {
                resource.length = self.array_length(*size);
                let element = self.array_element(*base, Layout::Host)?;
                add(self, name, element)
            }
            TypeInner::Struct { members, .. } if members.last().is_some_and(dynamic) => {
                let number = members.len() - 1;
                let last = &members[number];
                let TypeInner::Array { base, .. } = shader.types[last.ty].inner else {
                    return Err(self.unexpected("expected an array"));
                };
                let tail_name = format!("{name}.{}", field_name(last, number));
                let zero = self.number(0);
                index = Some(zero);
                if number == 0 {
                    let element = self.array_element(base, Layout::Host)?;
                    let tail = add(self, &tail_name, element);
                    self.tails.insert((tail, variable.ty), tail);
                    tail
                } else {
                    let head = format!("{}.head", self.type_name(variable.ty));
                    let id =
                        self.declare_members(&head, &members[..number], last.offset, Layout::Host)?;
                    let head = add(self, name, ElementType::Struct(id));
                    let element = self.array_element(base, Layout::Host)?;
                    let tail = add(self, &tail_name, element);
                    resource.head_bytes = Some(last.offset);
                    self.tails.insert((head, variable.ty), tail);
                    head
                }
            }
            _one_value => {
                let element = self.element(variable.ty, Layout::Host)?;
                let zero = self.number(0);
                index = Some(zero);
                resource.length = Some(1);
                add(self, name, element)
            }
        };
        let all = &self.k.kernel().params;
        let count = if resource.head_bytes.is_some() { 2 } else { 1 };
        let names = all[all.len() - count..].iter();
        resource.params = names.map(|p| p.name.to_string()).collect();
        // What the type says of its length holds in every launch.
        if let (Some(length), [param]) = (resource.length, &resource.params[..])
            && self.k.kernel().requires.len() < MAX_REQUIREMENTS
        {
            self.k.requires_length(param, length);
        }
        resources.push(resource);
        Ok(Ptr::Memory(MemPtr {
            memory,
            index,
            path: SmallVec::new(),
            at: At::Type(variable.ty, Layout::Host),
        }))
    }

    // ---- parts of values ----

    /// A part of a value.
    pub fn part(&mut self, val: &Val, index: Index) -> Done<Val> {
        match val {
            Val::Pointer(ptr) => Ok(Val::Pointer(self.step(ptr, index)?)),
            Val::Texture(_) | Val::Sampler(_) => Err(self.unexpected("a part of a texture")),
            Val::Stored(ptr) => {
                let part = self.step(&Ptr::Memory(ptr.clone()), index)?;
                self.load(&part)
            }
            Val::Many(members) => match index {
                Index::Constant(i) => match members.get(i as usize) {
                    Some(member) => Ok(member.clone()),
                    None => Err(self.unexpected("a member that is not there")),
                },
                Index::Value(_) => Err(self.unexpected("a struct with a computed index")),
            },
            Val::One(value) => {
                if let Index::Constant(i) = index
                    && let Some(part) = self.parts.get(value).and_then(|p| p.get(i as usize))
                {
                    return Ok(Val::One(*part));
                }
                let index = self.index_value(index);
                Ok(Val::One(self.op(Op::Extract, &[*value, index])))
            }
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
}
