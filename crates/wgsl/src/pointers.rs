//! Parameters of functions that are pointers to storage, uniforms, immediates or workgroup memory, which the standard has
//! (`unrestricted_pointer_parameters`), or storage textures. Naga reads them, but does not check them.
//!
//! What naga checks instead is the module in which each such parameter is a variable of its own, of the same memory
//! and type, and a number is handed over in its place. No expression moves, so that what naga finds out of each
//! holds for the module as it was read. What naga would then not know is what calls reach by these parameters.

use std::collections::{BTreeMap, BTreeSet};

use naga::{
    AddressSpace, Block, Expression, Function, GlobalVariable, Handle, ImageClass, Literal,
    MemoryDecorations, Module, ResourceBinding, Scalar, Span, Statement, Type, TypeInner,
};

use crate::tree::{blocks, root};

/// The group of variables that stand for parameters; no shader has one of this number.
const GROUP: u32 = u32::MAX;

/// The parameters of functions that naga does not check, by number.
type Found = BTreeMap<Handle<Function>, Vec<usize>>;

/// What a pointer that naga does not check leads to; or a storage texture.
fn pointee(shader: &Module, ty: Handle<Type>) -> Option<(Handle<Type>, AddressSpace)> {
    match &shader.types[ty].inner {
        TypeInner::Image {
            class: ImageClass::Storage { .. },
            ..
        } => Some((ty, AddressSpace::Handle)),
        TypeInner::Pointer {
            base,
            space:
                space @ (AddressSpace::Storage { .. } | AddressSpace::Uniform | AddressSpace::WorkGroup),
        } => Some((*base, *space)),
        // Of immediates naga takes one a shader.
        TypeInner::Pointer {
            base,
            space: AddressSpace::Immediate,
        } => Some((*base, AddressSpace::Uniform)),
        _another => None,
    }
}

fn found(shader: &Module) -> Found {
    let mut found = Found::new();
    for (handle, function) in shader.functions.iter() {
        let numbers = function.arguments.iter().enumerate();
        let numbers = numbers.filter(|(_, a)| pointee(shader, a.ty).is_some());
        let numbers: Vec<usize> = numbers.map(|(number, _)| number).collect();
        if !numbers.is_empty() {
            found.insert(handle, numbers);
        }
    }
    found
}

/// The module that naga checks instead of one with such parameters.
pub(crate) fn without(shader: &Module) -> Option<Module> {
    let found = found(shader);
    if found.is_empty() {
        return None;
    }
    let mut module = shader.clone();
    let number = module.types.insert(
        Type {
            name: None,
            inner: TypeInner::Scalar(Scalar::U32),
        },
        Span::UNDEFINED,
    );
    let mut count = 0;
    for (handle, numbers) in &found {
        for parameter in numbers {
            let function = &shader.functions[*handle];
            let argument = &function.arguments[*parameter];
            let Some((ty, space)) = pointee(shader, argument.ty) else {
                continue;
            };
            let binding = ResourceBinding {
                group: GROUP,
                binding: count,
            };
            count += 1;
            let place = |e: &Expression| matches!(e, Expression::FunctionArgument(n) if *n as usize == *parameter);
            let mut places = function.expressions.iter().filter(|(_, e)| place(e));
            let span = places.next().map(|(h, _)| function.expressions.get_span(h));
            let stands = module.global_variables.append(
                GlobalVariable {
                    name: argument.name.clone(),
                    space,
                    binding: (space != AddressSpace::WorkGroup).then_some(binding),
                    ty,
                    init: None,
                    memory_decorations: MemoryDecorations::empty(),
                },
                span.unwrap_or(Span::UNDEFINED),
            );
            let function = module.functions.get_mut(*handle);
            function.arguments[*parameter].ty = number;
            for (_, expression) in function.expressions.iter_mut() {
                if place(expression) {
                    *expression = Expression::GlobalVariable(stands);
                }
            }
        }
    }
    for (_, function) in module.functions.iter_mut() {
        hand_numbers(function, &found);
    }
    for point in &mut module.entry_points {
        hand_numbers(&mut point.function, &found);
    }
    Some(module)
}

/// Has calls hand over a number where such a parameter was.
fn hand_numbers(function: &mut Function, found: &Found) {
    let literal = Expression::Literal(Literal::U32(0));
    let number = function.expressions.append(literal, Span::UNDEFINED);
    replace(&mut function.body, found, number);
}

fn replace(block: &mut Block, found: &Found, number: Handle<Expression>) {
    for statement in block.iter_mut() {
        match statement {
            Statement::Call {
                function,
                arguments,
                ..
            } => {
                for parameter in found.get(function).into_iter().flatten() {
                    if let Some(argument) = arguments.get_mut(*parameter) {
                        *argument = number;
                    }
                }
            }
            Statement::Block(block) => replace(block, found, number),
            Statement::If { accept, reject, .. } => {
                replace(accept, found, number);
                replace(reject, found, number);
            }
            Statement::Switch { cases, .. } => {
                for case in cases {
                    replace(&mut case.body, found, number);
                }
            }
            Statement::Loop {
                body, continuing, ..
            } => {
                replace(body, found, number);
                replace(continuing, found, number);
            }
            _simple => {}
        }
    }
}

/// The variables that a function, and what it calls, hands over to such parameters.
pub(crate) fn handed_over(
    shader: &Module,
    function: &Function,
) -> BTreeSet<Handle<GlobalVariable>> {
    let found = found(shader);
    let mut walk = Walk {
        shader,
        found: &found,
        seen: BTreeSet::new(),
        handed: BTreeSet::new(),
    };
    if !found.is_empty() {
        walk.block(function, &function.body);
    }
    walk.handed
}

struct Walk<'a> {
    shader: &'a Module,
    found: &'a Found,
    seen: BTreeSet<Handle<Function>>,
    handed: BTreeSet<Handle<GlobalVariable>>,
}

impl Walk<'_> {
    fn block(&mut self, function: &Function, block: &Block) {
        for statement in block.iter() {
            if let Statement::Call {
                function: callee,
                arguments,
                ..
            } = statement
            {
                for parameter in self.found.get(callee).into_iter().flatten() {
                    if let Some(Expression::GlobalVariable(global)) =
                        root(function, arguments[*parameter])
                    {
                        self.handed.insert(*global);
                    }
                }
                if self.seen.insert(*callee) {
                    let shader = self.shader;
                    let callee = &shader.functions[*callee];
                    self.block(callee, &callee.body);
                }
            }
            for block in blocks(statement) {
                self.block(function, block);
            }
        }
    }
}
