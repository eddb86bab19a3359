//! Reading a module, and the passes over one of its functions.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_char};
use std::ptr;

use inkwell::llvm_sys::LLVMLinkage;
use inkwell::llvm_sys::core::{
    LLVMAddAttributeAtIndex, LLVMContextCreate, LLVMContextDispose, LLVMCreateEnumAttribute,
    LLVMCreateMemoryBufferWithMemoryRangeCopy, LLVMDeleteGlobal, LLVMDisposeMessage,
    LLVMDisposeModule, LLVMGetAggregateElement, LLVMGetEnumAttributeKindForName,
    LLVMGetFirstFunction, LLVMGetFirstGlobal, LLVMGetInitializer, LLVMGetInstructionOpcode,
    LLVMGetNamedFunction, LLVMGetNamedGlobal, LLVMGetNextFunction, LLVMGetNextGlobal,
    LLVMGetNumArgOperands, LLVMGetNumOperands, LLVMGetOperand, LLVMGetSection,
    LLVMInstructionEraseFromParent, LLVMIsAFunction, LLVMIsDeclaration, LLVMIsGlobalConstant,
    LLVMRemoveEnumAttributeAtIndex, LLVMReplaceAllUsesWith, LLVMSetLinkage,
};
use inkwell::llvm_sys::debuginfo::LLVMGetSubprogram;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage};
use inkwell::llvm_sys::ir_reader::LLVMParseIRInContext;
use inkwell::llvm_sys::prelude::{LLVMAttributeRef, LLVMContextRef, LLVMModuleRef, LLVMValueRef};
use inkwell::llvm_sys::transforms::pass_builder::{
    LLVMCreatePassBuilderOptions, LLVMDisposePassBuilderOptions, LLVMRunPasses,
};
use inkwell::llvm_sys::{LLVMAttributeFunctionIndex, LLVMOpcode};

use invar_ir::once::Making;

use super::debug::{Debug, DebugType};
use super::read::{self, Outside, Params, variable_name};
use super::tables::Tables;
use super::values::{Annotation, annotation, callee, for_each, global_of, is_variable, name_of};
use super::{Function, blocks, chains, divisions, outside, unroll};

/// How often loops are written out and what is then known is found: a loop may be inside of another.
const ROUNDS: usize = 3;

/// A module of LLVM IR.
pub struct Module {
    pub(super) context: LLVMContextRef,
    pub(super) module: LLVMModuleRef,
}

/// The most loops of a function with every call inlined. Where they have to be written out, LLVM's passes turn them one
/// by one, each of which takes longer the more there are: 3,000 took 30 s.
pub const MAX_LOOPS: usize = 4096;

/// The most loops of a function whose loops are written out though nothing needs it. LLVM goes through all that comes
/// after a loop when it turns it: 1,000 took 2 s.
const MOST_LOOPS: usize = 512;
/// The most ways out of a loop of such a function: LLVM asks of each, and of those before it, when it is taken.
const MOST_WAYS_OUT: usize = 64;

/// Why a function is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It has so many loops, more than [`MAX_LOOPS`].
    Loops(usize),
    /// There is no such function, or what LLVM says of its passes.
    Failed(String),
}

impl From<String> for Unread {
    fn from(why: String) -> Unread {
        Unread::Failed(why)
    }
}

/// Branches stay as they were written: nothing is made early, joined or guessed.
const SIMPLIFY: &str = "simplifycfg<bonus-inst-threshold=0;no-forward-switch-cond;no-switch-range-to-icmp;\
    no-switch-to-lookup;keep-loops;no-hoist-common-insts;no-sink-common-insts;no-speculate-blocks;\
    no-simplify-cond-branch>";

impl Module {
    /// Reads LLVM IR, as text or as bitcode, of which [`Module::functions`] gives functions.
    ///
    /// # Errors
    /// There is no library of LLVM, or what LLVM says is wrong.
    pub fn read(bytes: &[u8]) -> Result<Module, String> {
        let _making = Making::begin();
        crate::library::load()?;
        // SAFETY: the library is loaded; the buffer is a copy of the bytes, which LLVM then owns.
        unsafe {
            let context = LLVMContextCreate();
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                bytes.as_ptr().cast(),
                bytes.len(),
                c"module".as_ptr(),
            );
            let (mut module, mut message) = (ptr::null_mut(), ptr::null_mut());
            if LLVMParseIRInContext(context, buffer, &mut module, &mut message) != 0 {
                let why = match message.is_null() {
                    true => String::from("it is not an LLVM IR"),
                    false => taken(message),
                };
                LLVMContextDispose(context);
                return Err(why.trim().to_string());
            }
            Ok(Module { context, module })
        }
    }

    /// The annotations of functions: the function, what is annotated, and a text if it has one, or a number as one. One
    /// of a variable that is the address of a function is the function's.
    pub fn annotations(&self) -> Vec<(String, String, Option<String>)> {
        let mut all = Vec::new();
        // SAFETY: an array of structs of five constants, as clang writes them; what is not there is null.
        unsafe {
            let list = LLVMGetNamedGlobal(self.module, c"llvm.global.annotations".as_ptr());
            if list.is_null() {
                return all;
            }
            let list = LLVMGetInitializer(list);
            for number in 0.. {
                let entry = LLVMGetAggregateElement(list, number);
                if entry.is_null() {
                    break;
                }
                let part = |i| LLVMGetAggregateElement(entry, i);
                let Annotation { name, text, number } = annotation(part(1), part(4));
                let text = text.or_else(|| number.map(|number| number.to_string()));
                all.push((name_of(points_to(part(0))), name, text));
            }
        }
        all
    }

    /// One function with every call inlined, whatever it reads; the module is used up.
    ///
    /// # Errors
    /// There is no such function, it has more than [`MAX_LOOPS`] loops, or a pass failed.
    pub fn function(self, name: &str) -> Result<Function, Unread> {
        let _making = Making::begin();
        let mut found = Err(Unread::Failed(no_function(name)));
        self.pass(&[name], true, &mut |function| {
            found = function.map_err(Unread::Loops);
            true
        })?;
        found
    }

    /// Functions with every call inlined, which are given one by one, in the order of their names, as long as the
    /// taker wants more: or how many loops one has, if these are more than [`MAX_LOOPS`]. The module is used up.
    ///
    /// Of one that reads a variable without a value the loops stay, and it says so ([`Function::reads_unknown`]).
    ///
    /// # Errors
    /// A function is not there, or a pass failed.
    pub fn functions(
        self,
        names: &[&str],
        take: &mut dyn FnMut(Result<Function, usize>) -> bool,
    ) -> Result<(), String> {
        self.pass(names, false, take)
    }

    fn pass(
        self,
        names: &[&str],
        is_whole: bool,
        take: &mut dyn FnMut(Result<Function, usize>) -> bool,
    ) -> Result<(), String> {
        // SAFETY: all values are of this module, and none is used after it was erased.
        unsafe {
            let mut kept = Vec::new();
            for name in names {
                let c_name = CString::new(*name).map_err(|_| no_function(name))?;
                let function = LLVMGetNamedFunction(self.module, c_name.as_ptr());
                if function.is_null() || LLVMIsDeclaration(function) != 0 {
                    return Err(no_function(name));
                }
                kept.push(function);
            }
            let outside = Outside {
                computed: self.computed(),
                types: self.types_outside(),
            };
            let mut params = self.prepare(&kept);
            for list in [
                c"llvm.used",
                c"llvm.compiler.used",
                c"llvm.global.annotations",
                c"llvm.global_ctors",
            ] {
                let global = LLVMGetNamedGlobal(self.module, list.as_ptr());
                if !global.is_null() {
                    LLVMDeleteGlobal(global);
                }
            }
            // What is said of variables is not asked for, and passes would keep it up to date.
            self.run("globaldce,strip-nonlinetable-debuginfo")?;
            // What LLVM gives no meaning to it would leave out, with all that leads there.
            let tables = Tables::hide(self.module);
            for function in chains::defined(self.module) {
                divisions::hide(self.context, self.module, function);
            }
            // Addresses in variables are seen through, before arrays are taken apart.
            self.run("function(mem2reg)")?;
            self.keep_what_is_outside();
            // Variables go to registers once for each function, not once for each call of it: LLVM asks of each where in
            // all that it is inlined into its values meet.
            self.run(&format!("function(sroa,early-cse,instsimplify,{SIMPLIFY})"))?;
            self.put_known_in(&tables);
            self.shorten_chains()?;
            self.run("always-inline,globaldce")?;
            self.keep_what_is_outside();
            for function in params.keys() {
                blocks::divide(self.context, *function);
            }
            self.run(&format!(
                "function(sroa,early-cse,instsimplify,{SIMPLIFY},loop-simplify)"
            ))?;
            // What is known by then may say more.
            for _ in 0..ROUNDS {
                if !self.put_known_in(&tables) {
                    break;
                }
                self.run(&format!(
                    "function(early-cse,instsimplify,{SIMPLIFY},loop-simplify)"
                ))?;
            }
            // No pass changes what has too many loops, for that takes long.
            let left_alone = self.attribute(c"optnone");
            let index = LLVMAttributeFunctionIndex;
            let leave_alone = |function| LLVMAddAttributeAtIndex(function, index, left_alone);
            let mut too_many: HashMap<LLVMValueRef, usize> = HashMap::new();
            let mut unknown: HashSet<LLVMValueRef> = HashSet::new();
            // Loops that need not be written out stay where that takes long.
            let mut is_left: HashSet<LLVMValueRef> = HashSet::new();
            for function in params.keys() {
                let loops = unroll::loops(*function);
                if loops > MAX_LOOPS {
                    too_many.insert(*function, loops);
                    leave_alone(*function);
                } else if !is_whole && reads_unknown(*function, &outside.computed) {
                    unknown.insert(*function);
                    leave_alone(*function);
                } else {
                    unroll::count_tests_in_front(self.context, *function);
                    let is_for_registers = unroll::loops_over_registers(self.context, *function);
                    let takes_long =
                        loops > MOST_LOOPS || unroll::most_ways_out(*function) > MOST_WAYS_OUT;
                    if takes_long && !is_for_registers {
                        is_left.insert(*function);
                        leave_alone(*function);
                    }
                }
            }
            self.write_loops_out(
                params.keys().filter(|f| {
                    !too_many.contains_key(f) && !unknown.contains(f) && !is_left.contains(f)
                }),
                leave_alone,
                &tables,
            )?;
            params.retain(|function, _| !too_many.contains_key(function));
            for function in params.keys() {
                LLVMRemoveEnumAttributeAtIndex(*function, index, kind_of(c"optnone"));
            }
            self.run(&format!(
                "function(lower-switch,fix-irreducible,sroa,early-cse,instsimplify,dce,{SIMPLIFY},loop-simplify,lcssa)"
            ))?;
            self.put_known_in(&tables);
            tables.reveal();
            for function in kept {
                divisions::leave_cuts_out(function);
                let read = |params| Function {
                    reads_unknown: unknown.contains(&function),
                    ..read::function(&self, function, params, &outside)
                };
                let loops = too_many.get(&function).copied().unwrap_or_default();
                if !take(params.get(&function).map(read).ok_or(loops)) {
                    break;
                }
            }
            Ok(())
        }
    }

    /// Writes loops out, of functions that are left alone as soon as it makes nothing more of them.
    unsafe fn write_loops_out<'f>(
        &self,
        functions: impl Iterator<Item = &'f LLVMValueRef>,
        leave_alone: impl Fn(LLVMValueRef),
        tables: &Tables,
    ) -> Result<(), String> {
        // SAFETY: as in `pass`.
        unsafe {
            let mut open: Vec<(LLVMValueRef, usize)> =
                functions.map(|f| (*f, unroll::loops(*f))).collect();
            for _ in 0..ROUNDS {
                // The round that no loop makes goes before variables are taken apart: it is behind the end of arrays.
                self.run(&format!(
                    "function(sroa,early-cse,instsimplify,{SIMPLIFY},loop-simplify,lcssa,\
                     loop(indvars,loop-unroll-full),{SIMPLIFY})"
                ))?;
                self.put_known_in(tables);
                self.run(&format!(
                    "function(sroa,early-cse,instsimplify,sccp,{SIMPLIFY},dce)"
                ))?;
                self.put_known_in(tables);
                // Where no loop was written out, no more is known of the others than before.
                open.retain_mut(|(function, loops)| {
                    let before = std::mem::replace(loops, unroll::loops(*function));
                    let goes_on = *loops > 0 && *loops != before;
                    if !goes_on {
                        leave_alone(*function);
                    }
                    goes_on
                });
                if open.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Keeps accesses outside of variables, of all functions, and puts in what is known of divisions and tables; whether
    /// it was anything.
    unsafe fn put_known_in(&self, tables: &Tables) -> bool {
        // SAFETY: they are the module's functions.
        unsafe {
            self.keep_what_is_outside();
            let mut is_any = false;
            for function in chains::defined(self.module) {
                is_any |= tables.put_in(self.context, function);
                is_any |= divisions::reveal(self.context, function);
            }
            is_any
        }
    }

    /// Keeps accesses outside of variables, of all functions.
    unsafe fn keep_what_is_outside(&self) {
        // SAFETY: they are the module's functions.
        unsafe {
            for function in chains::defined(self.module) {
                outside::keep(self.context, self.module, function);
            }
        }
    }

    /// The types of variables in threadgroup memory, by their names for LLVM.
    unsafe fn types_outside(&self) -> HashMap<String, DebugType> {
        let (debug, mut all) = (Debug::new(self.context), HashMap::new());
        // SAFETY: as in `functions`.
        unsafe {
            let mut global = LLVMGetFirstGlobal(self.module);
            while !global.is_null() {
                let section = LLVMGetSection(global);
                if !section.is_null()
                    && CStr::from_ptr(section) == c"threadgroup"
                    && let Some(ty) = debug.variable(global)
                {
                    all.insert(name_of(global), ty);
                }
                global = LLVMGetNextGlobal(global);
            }
        }
        all
    }

    /// The variables to which code gives a value that runs before everything else, by their names for LLVM, and what it
    /// reads for that, by the names that it was written with.
    unsafe fn computed(&self) -> HashMap<String, Vec<String>> {
        let mut all: HashMap<String, Vec<String>> = HashMap::new();
        // SAFETY: as in `functions`.
        unsafe {
            let mut function = LLVMGetFirstFunction(self.module);
            while !function.is_null() {
                if name_of(function).starts_with("__cxx_global_var_init") {
                    let (mut stored, mut read) = (Vec::new(), Vec::new());
                    for_each(function, |inst| {
                        let (names, operand) = match LLVMGetInstructionOpcode(inst) {
                            LLVMOpcode::LLVMStore => (&mut stored, 1),
                            LLVMOpcode::LLVMLoad => (&mut read, 0),
                            // What is called may give it its value, unless it is known already.
                            LLVMOpcode::LLVMCall => {
                                let operands = 0..LLVMGetNumArgOperands(inst);
                                let globals =
                                    operands.filter_map(|n| global_of(LLVMGetOperand(inst, n)));
                                for global in globals.filter(|g| LLVMIsGlobalConstant(*g) == 0) {
                                    stored.push(name_of(global));
                                }
                                return;
                            }
                            _other => return,
                        };
                        names.extend(global_of(LLVMGetOperand(inst, operand)).map(|g| name_of(g)));
                    });
                    // One that was computed before stands for what it is computed from.
                    let mut from = Vec::new();
                    for name in read {
                        match all.get(&name) {
                            Some(earlier) => from.extend(earlier.iter().cloned()),
                            None => from.push(variable_name(&name)),
                        }
                    }
                    from.dedup();
                    all.extend(stored.into_iter().map(|name| (name, from.clone())));
                }
                function = LLVMGetNextFunction(function);
            }
        }
        all
    }

    /// Makes every function such that it is inlined, and left out then but for those that are kept, and takes the
    /// annotations of variables away; those of the parameters of what is kept are given, by the parameters' names.
    unsafe fn prepare(&self, kept: &[LLVMValueRef]) -> HashMap<LLVMValueRef, Params> {
        // SAFETY: as in `functions`; instructions are erased when they have no use.
        unsafe {
            let debug = Debug::new(self.context);
            let of = |function| Params {
                types: debug.params(LLVMGetSubprogram(function)),
                annotations: HashMap::new(),
            };
            let mut params: HashMap<LLVMValueRef, Params> =
                kept.iter().map(|f| (*f, of(*f))).collect();
            let inline = self.attribute(c"alwaysinline");
            let mut function = LLVMGetFirstFunction(self.module);
            while !function.is_null() {
                if LLVMIsDeclaration(function) == 0 {
                    let index = LLVMAttributeFunctionIndex;
                    for against in [c"noinline", c"optnone"] {
                        LLVMRemoveEnumAttributeAtIndex(function, index, kind_of(against));
                    }
                    // One that is kept may be called by another.
                    LLVMAddAttributeAtIndex(function, index, inline);
                    let mut own = params.get_mut(&function);
                    let linkage = match own {
                        Some(_) => LLVMLinkage::LLVMExternalLinkage,
                        None => LLVMLinkage::LLVMInternalLinkage,
                    };
                    LLVMSetLinkage(function, linkage);
                    self.without_annotations(function, |name, annotation| {
                        if let Some(own) = &mut own {
                            own.annotations.entry(name).or_default().push(annotation);
                        }
                    });
                }
                function = LLVMGetNextFunction(function);
            }
            params
        }
    }

    /// Inlines functions of long chains of calls, until these are short.
    unsafe fn shorten_chains(&self) -> Result<(), String> {
        // SAFETY: as in `functions`; every function with blocks is one to inline, before and after.
        unsafe {
            let index = LLVMAttributeFunctionIndex;
            let inline = self.attribute(c"alwaysinline");
            let mut longest = usize::MAX;
            loop {
                let levels = chains::levels(&chains::defined(self.module));
                let last = levels.iter().map(|(_, level)| *level).max().unwrap_or(0);
                // What LLVM does not inline stays as long as it is.
                if last <= chains::SHORT || last >= longest {
                    return Ok(());
                }
                longest = last;
                for function in chains::defined(self.module) {
                    LLVMRemoveEnumAttributeAtIndex(function, index, kind_of(c"alwaysinline"));
                }
                for (function, _) in levels.iter().filter(|(_, level)| level % 2 == 1) {
                    LLVMAddAttributeAtIndex(*function, index, inline);
                }
                self.run("always-inline")?;
                for function in chains::defined(self.module) {
                    LLVMAddAttributeAtIndex(function, index, inline);
                }
            }
        }
    }

    /// Takes the calls that annotate out of a function.
    unsafe fn without_annotations(
        &self,
        function: LLVMValueRef,
        mut found: impl FnMut(String, Annotation),
    ) {
        // SAFETY: as in `functions`.
        unsafe {
            let mut calls = Vec::new();
            for_each(function, |inst| {
                let name = callee(inst).unwrap_or_default();
                if name.starts_with("llvm.var.annotation")
                    || name.starts_with("llvm.ptr.annotation")
                {
                    calls.push((inst, name));
                }
            });
            for (call, name) in calls {
                let operand = |i| LLVMGetOperand(call, i);
                if name.starts_with("llvm.var.annotation") && LLVMGetNumOperands(call) > 4 {
                    let variable = name_of(operand(0));
                    let variable = variable.strip_suffix(".addr").unwrap_or(&variable);
                    found(variable.to_string(), annotation(operand(1), operand(4)));
                } else {
                    LLVMReplaceAllUsesWith(call, operand(0));
                }
                LLVMInstructionEraseFromParent(call);
            }
        }
    }

    /// An attribute of functions without a value.
    unsafe fn attribute(&self, name: &CStr) -> LLVMAttributeRef {
        // SAFETY: it is the module's context.
        unsafe { LLVMCreateEnumAttribute(self.context, kind_of(name), 0) }
    }

    unsafe fn run(&self, passes: &str) -> Result<(), String> {
        let passes = CString::new(passes).map_err(|e| e.to_string())?;
        // SAFETY: the module is whole, and the options are disposed of once.
        unsafe {
            let options = LLVMCreatePassBuilderOptions();
            let error = LLVMRunPasses(self.module, passes.as_ptr(), ptr::null_mut(), options);
            LLVMDisposePassBuilderOptions(options);
            if error.is_null() {
                return Ok(());
            }
            let message = LLVMGetErrorMessage(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(message);
            Err(format!("LLVM's passes failed: {text}"))
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: both are this module's own, and nothing of them is used any more.
        unsafe {
            LLVMDisposeModule(self.module);
            LLVMContextDispose(self.context);
        }
    }
}

/// Whether a function reads a variable outside functions that has no value in the module, or one that is computed.
///
/// # Safety
/// It is a function.
unsafe fn reads_unknown(function: LLVMValueRef, computed: &HashMap<String, Vec<String>>) -> bool {
    let mut found = false;
    // SAFETY: the caller's promise; the first operand of a load is an address.
    unsafe {
        for_each(function, |inst| {
            if LLVMGetInstructionOpcode(inst) == LLVMOpcode::LLVMLoad
                && let Some(global) = global_of(LLVMGetOperand(inst, 0))
            {
                found |=
                    LLVMGetInitializer(global).is_null() || computed.contains_key(&name_of(global));
            }
        });
    }
    found
}

/// The number of an attribute.
fn kind_of(name: &CStr) -> u32 {
    // SAFETY: the name has so many bytes.
    unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr(), name.to_bytes().len()) }
}

fn no_function(name: &str) -> String {
    format!("there is no function {name}")
}

/// A message of LLVM's, which is freed.
///
/// # Safety
/// It is one.
unsafe fn taken(message: *mut c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

/// The function whose address a variable is; any other value itself.
///
/// # Safety
/// It is a value outside functions.
unsafe fn points_to(value: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: the caller's promise; only a variable is asked for what it begins as.
    unsafe {
        if !is_variable(value) {
            return value;
        }
        let initial = LLVMGetInitializer(value);
        match initial.is_null() || LLVMIsAFunction(initial).is_null() {
            true => value,
            false => initial,
        }
    }
}
