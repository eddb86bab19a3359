//! Functions, which are inlined where they are called.

use std::collections::HashMap;
use std::rc::Rc;

use invar_ir::room::{PASSES_BYTES, with_room};
use invar_ir::{Call, CallId};
use naga::valid::FunctionInfo;
use naga::{Function, Handle};

use crate::translator::{Done, Frame, Target, Translator};
use crate::value::{Ptr, Tree, Val};

impl<'a> Translator<'a> {
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
}
