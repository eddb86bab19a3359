//! From one entry point to one kernel.
//!
//! Functions are inlined, each instruction with the chain of calls that led to it. Variables of the
//! thread without arrays become values, tracked from assignment to assignment; those with arrays are
//! thread memory. A jump that WGSL has and Invar has not (a `return` in the middle of a function, a
//! `break` in the middle of a `switch`, a `continue`) becomes a condition around what it jumps over:
//! no loop is needed for it, and threads meet again where the jump leads.

use invar_ir::requires::MAX_REQUIREMENTS;
use invar_ir::{
    Access, Diagnostic, Diagnostics, Dim, ElementType, Kernel, KernelBuilder, Module, Op, Rule,
    Type, Value, verify,
};
use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, ArraySize, Binding, BuiltIn, Expression, GlobalVariable, Handle, TypeInner,
};
use smallvec::SmallVec;

use crate::entry::Resource;
use crate::overrides::Overrides;
use crate::place::Lines;
use crate::pointers;
use crate::translator::{Done, Translator};
use crate::types::{describe, field_name};
use crate::value::{At, Layout, MemPtr, Ptr, Val};

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
    let builder = KernelBuilder::new(module, &point.name);
    let mut t = Translator::new(shader, info, overrides, lines, builder);
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
}
