//! From LLVM's values to plain data.

use std::collections::HashMap;
use std::ffi::{CStr, c_uint};
use std::slice;

use inkwell::llvm_sys::core::{
    LLVMConstIntGetZExtValue, LLVMConstRealGetDouble, LLVMCountIncoming, LLVMCountParams,
    LLVMCountStructElementTypes, LLVMGetAggregateElement, LLVMGetAllocatedType,
    LLVMGetArrayLength2, LLVMGetConstOpcode, LLVMGetElementType, LLVMGetEnumAttributeAtIndex,
    LLVMGetEnumAttributeKindForName, LLVMGetFCmpPredicate, LLVMGetFirstBasicBlock,
    LLVMGetFirstInstruction, LLVMGetICmpPredicate, LLVMGetIncomingBlock, LLVMGetIncomingValue,
    LLVMGetIndices, LLVMGetInitializer, LLVMGetInstructionOpcode, LLVMGetIntTypeWidth,
    LLVMGetNextBasicBlock, LLVMGetNextInstruction, LLVMGetNumArgOperands, LLVMGetNumIndices,
    LLVMGetNumOperands, LLVMGetOperand, LLVMGetParam, LLVMGetReturnType, LLVMGetSection,
    LLVMGetSuccessor, LLVMGetTypeAttributeValue, LLVMGetTypeKind, LLVMGetVectorSize,
    LLVMGlobalGetValueType, LLVMIsAConstantAggregateZero, LLVMIsAConstantArray,
    LLVMIsAConstantDataArray, LLVMIsAConstantDataVector, LLVMIsAConstantExpr, LLVMIsAConstantFP,
    LLVMIsAConstantInt, LLVMIsAConstantPointerNull, LLVMIsAConstantStruct, LLVMIsAConstantVector,
    LLVMIsAFunction, LLVMIsConditional, LLVMIsGlobalConstant, LLVMIsPoison, LLVMIsUndef,
    LLVMTypeOf,
};
use inkwell::llvm_sys::debuginfo::{LLVMGetSubprogram, LLVMInstructionGetDebugLoc};
use inkwell::llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::target::{
    LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMOffsetOfElement, LLVMTargetDataRef,
};
use inkwell::llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate, LLVMTypeKind};

use super::debug::Debug;
use super::divisions::division;
use super::passes::Module;
use super::values::{Annotation, callee, for_each, is_variable, name_of, offset};
use super::{
    Binary, Block, Compare, Convert, DebugType, Element, Function, Global, Inst, Kind, Operand,
    Ordered, Param, Type,
};

struct Reader<'a> {
    layout: LLVMTargetDataRef,
    outside: &'a Outside,
    insts: HashMap<LLVMValueRef, usize>,
    params: HashMap<LLVMValueRef, usize>,
    globals: HashMap<LLVMValueRef, usize>,
    blocks: HashMap<usize, usize>,
    out: Function,
}

/// What was known of a function's parameters before the passes.
pub(super) struct Params {
    /// Their types as they were written.
    pub types: Vec<Option<DebugType>>,
    /// Their annotations, by their names.
    pub annotations: HashMap<String, Vec<Annotation>>,
}

/// What was known of variables outside functions before the passes, by their names for LLVM.
pub(super) struct Outside {
    /// Those to which code gives a value that runs before everything else: what it reads for that, by the names that
    /// it was written with.
    pub computed: HashMap<String, Vec<String>>,
    /// The types of those in threadgroup memory, as they were written.
    pub types: HashMap<String, DebugType>,
}

/// Reads a function after the passes.
///
/// # Safety
/// It is one of the module.
pub(super) unsafe fn function(
    module: &Module,
    function: LLVMValueRef,
    params: &Params,
    outside: &Outside,
) -> Function {
    let mut debug = Debug::new(module.context);
    // SAFETY: the caller's promise; everything is asked of values of the kind that the question is for.
    unsafe {
        let mut r = Reader {
            layout: LLVMGetModuleDataLayout(module.module),
            outside,
            insts: HashMap::new(),
            params: HashMap::new(),
            globals: HashMap::new(),
            blocks: HashMap::new(),
            out: Function::default(),
        };
        let subprogram = LLVMGetSubprogram(function);
        r.out.location = debug.declaration(subprogram);
        r.out.result = ty(LLVMGetReturnType(LLVMGlobalGetValueType(function)));
        let mut types = params.types.iter().cloned();
        let by_value = LLVMGetEnumAttributeKindForName(c"byval".as_ptr(), 5);
        for number in 0..LLVMCountParams(function) {
            let param = LLVMGetParam(function, number);
            r.params.insert(param, number as usize);
            let attribute = LLVMGetEnumAttributeAtIndex(function, number + 1, by_value);
            let name = name_of(param);
            let given = params.annotations.get(&name).into_iter().flatten();
            r.out.params.push(Param {
                ty: ty(LLVMTypeOf(param)),
                by_value: (!attribute.is_null())
                    .then(|| r.size(LLVMGetTypeAttributeValue(attribute))),
                annotations: given.map(|a| (a.name.clone(), a.number)).collect(),
                debug: types.next().flatten(),
                name,
            });
        }
        let mut block = LLVMGetFirstBasicBlock(function);
        let mut count = 0;
        while !block.is_null() {
            r.blocks.insert(block as usize, r.blocks.len());
            block = LLVMGetNextBasicBlock(block);
        }
        for_each(function, |inst| {
            if !is_left_out(inst) {
                r.insts.insert(inst, count);
                count += 1;
            }
        });
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut all = Block::default();
            let mut inst = LLVMGetFirstInstruction(block);
            while !inst.is_null() {
                if !is_left_out(inst) {
                    let location = debug.location(LLVMInstructionGetDebugLoc(inst));
                    let read = r.inst(inst, location);
                    all.insts.push(r.out.insts.len());
                    r.out.insts.push(read);
                }
                inst = LLVMGetNextInstruction(inst);
            }
            r.out.blocks.push(all);
            block = LLVMGetNextBasicBlock(block);
        }
        r.out.locations = debug.locations;
        r.out
    }
}

/// Calls that mean nothing here.
unsafe fn is_left_out(inst: LLVMValueRef) -> bool {
    // SAFETY: it is an instruction.
    let name = unsafe { callee(inst) }.unwrap_or_default();
    [
        "llvm.dbg.",
        "llvm.lifetime.",
        "llvm.experimental.noalias",
        "llvm.assume",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

impl Reader<'_> {
    unsafe fn size(&self, ty: LLVMTypeRef) -> u64 {
        // SAFETY: a type with a size, of this module.
        unsafe { LLVMABISizeOfType(self.layout, ty) }
    }

    unsafe fn inst(&mut self, inst: LLVMValueRef, location: Option<usize>) -> Inst {
        // SAFETY: as in `function`.
        unsafe {
            let mut values: Vec<LLVMValueRef> = (0..LLVMGetNumOperands(inst) as c_uint)
                .map(|i| LLVMGetOperand(inst, i))
                .collect();
            let kind = match LLVMGetInstructionOpcode(inst) {
                LLVMOpcode::LLVMAlloca => {
                    values.clear();
                    Kind::Alloca(self.size(LLVMGetAllocatedType(inst)))
                }
                LLVMOpcode::LLVMLoad => Kind::Load,
                LLVMOpcode::LLVMStore => Kind::Store,
                LLVMOpcode::LLVMGetElementPtr => {
                    let (constant, terms) = offset(self.layout, inst);
                    values.truncate(1);
                    values.extend(terms.iter().map(|(value, _)| *value));
                    Kind::Offset(constant, terms.iter().map(|(_, scale)| *scale).collect())
                }
                LLVMOpcode::LLVMPHI => {
                    let count = LLVMCountIncoming(inst);
                    values = (0..count).map(|i| LLVMGetIncomingValue(inst, i)).collect();
                    let from =
                        (0..count).map(|i| self.block(LLVMGetIncomingBlock(inst, i) as usize));
                    Kind::Phi(from.collect())
                }
                LLVMOpcode::LLVMBr if LLVMIsConditional(inst) == 0 => {
                    values.clear();
                    Kind::Jump(self.block(LLVMGetSuccessor(inst, 0) as usize))
                }
                LLVMOpcode::LLVMBr => {
                    values.truncate(1);
                    let to = |i| LLVMGetSuccessor(inst, i) as usize;
                    Kind::Branch(self.block(to(0)), self.block(to(1)))
                }
                LLVMOpcode::LLVMRet => Kind::Return,
                LLVMOpcode::LLVMUnreachable => Kind::Unreachable,
                LLVMOpcode::LLVMFNeg => Kind::Negate,
                LLVMOpcode::LLVMICmp => Kind::Compare(compare(LLVMGetICmpPredicate(inst))),
                LLVMOpcode::LLVMFCmp => Kind::Compare(compare_floats(LLVMGetFCmpPredicate(inst))),
                LLVMOpcode::LLVMSelect => Kind::Select,
                LLVMOpcode::LLVMFreeze => Kind::Freeze,
                LLVMOpcode::LLVMExtractElement => Kind::ExtractElement,
                LLVMOpcode::LLVMInsertElement => Kind::InsertElement,
                LLVMOpcode::LLVMExtractValue => Kind::ExtractValue(indices(inst)),
                LLVMOpcode::LLVMInsertValue => Kind::InsertValue(indices(inst)),
                LLVMOpcode::LLVMCall => {
                    let count = LLVMGetNumArgOperands(inst) as usize;
                    values.truncate(count);
                    let name = callee(inst).unwrap_or_default();
                    // A conversion that saturates is what every conversion is read as.
                    if name.starts_with("llvm.fptosi.sat.") {
                        Kind::Convert(Convert::FloatToSigned)
                    } else if name.starts_with("llvm.fptoui.sat.") {
                        Kind::Convert(Convert::FloatToUnsigned)
                    } else if let Some(division) = division(&name) {
                        Kind::Binary(division)
                    } else {
                        Kind::Call(name)
                    }
                }
                other => match (binary(other), convert(other)) {
                    (Some(binary), _) => Kind::Binary(binary),
                    (_, Some(convert)) => Kind::Convert(convert),
                    (None, None) => Kind::Other(
                        format!("{other:?}")
                            .trim_start_matches("LLVM")
                            .to_lowercase(),
                    ),
                },
            };
            let types = values.iter().map(|v| ty(LLVMTypeOf(*v))).collect();
            let operands = values.iter().map(|v| self.operand(*v)).collect();
            Inst {
                kind,
                ty: ty(LLVMTypeOf(inst)),
                operands,
                types,
                name: name_of(inst),
                location,
            }
        }
    }

    fn block(&self, block: usize) -> usize {
        // All blocks of the function are there before the first instruction is read.
        self.blocks[&block]
    }

    unsafe fn operand(&mut self, value: LLVMValueRef) -> Operand {
        if let Some(number) = self.insts.get(&value) {
            return Operand::Inst(*number);
        }
        if let Some(number) = self.params.get(&value) {
            return Operand::Param(*number);
        }
        // SAFETY: as in `function`; a question is asked only of a value of its kind.
        unsafe {
            let of = ty(LLVMTypeOf(value));
            if !LLVMIsAConstantInt(value).is_null() {
                return Operand::Bits(of, LLVMConstIntGetZExtValue(value));
            }
            if !LLVMIsAConstantFP(value).is_null() {
                return Operand::Bits(of, float_bits(value, of));
            }
            if !LLVMIsAConstantPointerNull(value).is_null() {
                return Operand::Null;
            }
            if LLVMIsPoison(value) != 0 {
                return Operand::Poison;
            }
            if LLVMIsUndef(value) != 0 {
                return Operand::Undefined;
            }
            if !LLVMIsAConstantAggregateZero(value).is_null() {
                return Operand::Zeros;
            }
            if is_variable(value) {
                return Operand::Global(self.global(value), 0);
            }
            if !LLVMIsAFunction(value).is_null() {
                return Operand::Function(name_of(value));
            }
            if !LLVMIsAConstantExpr(value).is_null()
                && LLVMGetConstOpcode(value) == LLVMOpcode::LLVMGetElementPtr
            {
                let base = self.operand(LLVMGetOperand(value, 0));
                if let (Operand::Global(global, before), (more, terms)) =
                    (base, offset(self.layout, value))
                    && terms.is_empty()
                {
                    return Operand::Global(global, before + more);
                }
            }
            if !LLVMIsAConstantVector(value).is_null()
                || !LLVMIsAConstantDataVector(value).is_null()
            {
                let count = LLVMGetVectorSize(LLVMTypeOf(value));
                let parts = (0..count).map(|i| self.operand(LLVMGetAggregateElement(value, i)));
                return Operand::Parts(parts.collect());
            }
            if !LLVMIsAConstantStruct(value).is_null() || !LLVMIsAConstantArray(value).is_null() {
                let count = LLVMGetNumOperands(value) as c_uint;
                let parts = (0..count).map(|i| self.operand(LLVMGetOperand(value, i)));
                return Operand::Parts(parts.collect());
            }
            if !LLVMIsAConstantDataArray(value).is_null() {
                let count = LLVMGetArrayLength2(LLVMTypeOf(value)) as c_uint;
                let parts = (0..count).map(|i| self.operand(LLVMGetAggregateElement(value, i)));
                return Operand::Parts(parts.collect());
            }
            Operand::Other("a constant of an unusual form".to_string())
        }
    }

    unsafe fn global(&mut self, value: LLVMValueRef) -> usize {
        if let Some(number) = self.globals.get(&value) {
            return *number;
        }
        // SAFETY: as in `function`: it is a variable outside functions.
        unsafe {
            let of = LLVMGlobalGetValueType(value);
            let section = LLVMGetSection(value);
            let init = LLVMGetInitializer(value);
            let mut scalars = Vec::new();
            let known = !init.is_null() && self.scalars(init, 0, &mut scalars);
            let symbol = name_of(value);
            self.out.globals.push(Global {
                section: match section.is_null() {
                    true => String::new(),
                    false => CStr::from_ptr(section).to_string_lossy().into_owned(),
                },
                size_bytes: self.size(of),
                is_constant: LLVMIsGlobalConstant(value) != 0,
                initial: known.then_some(scalars),
                computed_from: self.outside.computed.get(&symbol).cloned(),
                debug: self.outside.types.get(&symbol).cloned(),
                name: variable_name(&symbol),
            });
        }
        let number = self.out.globals.len() - 1;
        self.globals.insert(value, number);
        number
    }

    /// The scalars of a constant, by their offsets; `false` if there is something else in it.
    unsafe fn scalars(
        &self,
        value: LLVMValueRef,
        at: u64,
        out: &mut Vec<(u64, Type, u64)>,
    ) -> bool {
        // SAFETY: as in `function`: it is a constant.
        unsafe {
            let of = LLVMTypeOf(value);
            let scalar = ty(of);
            if !LLVMIsAConstantInt(value).is_null() {
                out.push((at, scalar, LLVMConstIntGetZExtValue(value)));
                return true;
            }
            if !LLVMIsAConstantFP(value).is_null() {
                out.push((at, scalar, float_bits(value, scalar)));
                return true;
            }
            // What nobody gave a value is never read, or is 0.
            if LLVMIsUndef(value) != 0 || !LLVMIsAConstantAggregateZero(value).is_null() {
                return true;
            }
            let is_data = !LLVMIsAConstantDataArray(value).is_null()
                || !LLVMIsAConstantArray(value).is_null();
            match LLVMGetTypeKind(of) {
                LLVMTypeKind::LLVMArrayTypeKind if is_data => {
                    let step = self.size(LLVMGetElementType(of));
                    (0..LLVMGetArrayLength2(of)).all(|i| {
                        let part = LLVMGetAggregateElement(value, i as c_uint);
                        !part.is_null() && self.scalars(part, at + i * step, out)
                    })
                }
                LLVMTypeKind::LLVMStructTypeKind => (0..LLVMCountStructElementTypes(of)).all(|i| {
                    let part = LLVMGetAggregateElement(value, i);
                    let offset = LLVMOffsetOfElement(self.layout, of, i);
                    !part.is_null() && self.scalars(part, at + offset, out)
                }),
                _an_address => false,
            }
        }
    }
}

// ---- names ----

/// A function's name as it was written, of one as compilers mangle it.
pub fn function_name(symbol: &str) -> String {
    let spelled = spelled(symbol);
    // The first, or the last before the first of its parameters or template arguments.
    let within = symbol.strip_prefix("_ZN").map(|rest| {
        let mut names = 0;
        let mut rest = rest;
        while let Some((_, after)) = first_spelled(rest) {
            names += 1;
            rest = after;
        }
        names
    });
    let at = within.unwrap_or(1).max(1) - 1;
    spelled.get(at).copied().unwrap_or(symbol).to_string()
}

/// The name that a text begins with after its length, and the rest.
fn first_spelled(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text[..digits].parse().ok()?;
    Some((
        text.get(digits..digits + length)?,
        text.get(digits + length..)?,
    ))
}

/// The names in one as compilers mangle it, in order.
fn spelled(symbol: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let Some(mut rest) = symbol.strip_prefix("_Z") else {
        return all;
    };
    while !rest.is_empty() {
        match first_spelled(rest) {
            Some((name, after)) if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                all.push(name);
                rest = after;
            }
            _no_name => {
                let mut chars = rest.chars();
                chars.next();
                rest = chars.as_str();
            }
        }
    }
    all
}

/// A variable's name as it was written, of one as compilers mangle it: what is spelled at its end.
pub(super) fn variable_name(symbol: &str) -> String {
    let body = symbol.split('.').next().unwrap_or(symbol);
    let starts = body.char_indices().filter(|(at, c)| {
        let after_digit = body[..*at].ends_with(|c: char| c.is_ascii_digit());
        c.is_ascii_digit() && !after_digit
    });
    let mut found = starts.filter_map(|(at, _)| first_spelled(&body[at..]));
    let found = found.find(|(name, rest)| {
        // Variables of one name in one function are numbered.
        let mut number = rest.chars();
        !name.is_empty() && number.all(|c| c.is_ascii_digit() || c == '_')
    });
    found.map_or(symbol, |(name, _)| name).to_string()
}

unsafe fn indices(inst: LLVMValueRef) -> Vec<u32> {
    // SAFETY: it takes a part out of an aggregate, or puts one in.
    unsafe {
        let count = LLVMGetNumIndices(inst) as usize;
        slice::from_raw_parts(LLVMGetIndices(inst), count).to_vec()
    }
}

unsafe fn float_bits(value: LLVMValueRef, of: Type) -> u64 {
    let mut loses = 0;
    // SAFETY: it is a float constant.
    let number = unsafe { LLVMConstRealGetDouble(value, &mut loses) };
    match of {
        Type::Half => u64::from(half::f16::from_f64(number).to_bits()),
        Type::BFloat => u64::from(half::bf16::from_f64(number).to_bits()),
        Type::Float => u64::from((number as f32).to_bits()),
        _double => number.to_bits(),
    }
}

unsafe fn ty(of: LLVMTypeRef) -> Type {
    // SAFETY: it is a type.
    unsafe {
        match LLVMGetTypeKind(of) {
            LLVMTypeKind::LLVMVoidTypeKind => Type::Void,
            LLVMTypeKind::LLVMIntegerTypeKind => Type::Int(LLVMGetIntTypeWidth(of)),
            LLVMTypeKind::LLVMHalfTypeKind => Type::Half,
            LLVMTypeKind::LLVMBFloatTypeKind => Type::BFloat,
            LLVMTypeKind::LLVMFloatTypeKind => Type::Float,
            LLVMTypeKind::LLVMDoubleTypeKind => Type::Double,
            LLVMTypeKind::LLVMPointerTypeKind => Type::Pointer,
            LLVMTypeKind::LLVMStructTypeKind | LLVMTypeKind::LLVMArrayTypeKind => Type::Aggregate,
            LLVMTypeKind::LLVMVectorTypeKind => {
                let element = match ty(LLVMGetElementType(of)) {
                    Type::Half => Element::Half,
                    Type::BFloat => Element::BFloat,
                    Type::Float => Element::Float,
                    Type::Int(bits) => Element::Int(bits),
                    _other => Element::Other,
                };
                Type::Vector(element, LLVMGetVectorSize(of))
            }
            _other => Type::Other,
        }
    }
}

fn binary(opcode: LLVMOpcode) -> Option<Binary> {
    Some(match opcode {
        LLVMOpcode::LLVMAdd => Binary::Add,
        LLVMOpcode::LLVMSub => Binary::Sub,
        LLVMOpcode::LLVMMul => Binary::Mul,
        LLVMOpcode::LLVMUDiv => Binary::UDiv,
        LLVMOpcode::LLVMSDiv => Binary::SDiv,
        LLVMOpcode::LLVMURem => Binary::URem,
        LLVMOpcode::LLVMSRem => Binary::SRem,
        LLVMOpcode::LLVMShl => Binary::Shl,
        LLVMOpcode::LLVMLShr => Binary::LShr,
        LLVMOpcode::LLVMAShr => Binary::AShr,
        LLVMOpcode::LLVMAnd => Binary::And,
        LLVMOpcode::LLVMOr => Binary::Or,
        LLVMOpcode::LLVMXor => Binary::Xor,
        LLVMOpcode::LLVMFAdd => Binary::FAdd,
        LLVMOpcode::LLVMFSub => Binary::FSub,
        LLVMOpcode::LLVMFMul => Binary::FMul,
        LLVMOpcode::LLVMFDiv => Binary::FDiv,
        LLVMOpcode::LLVMFRem => Binary::FRem,
        _none => return None,
    })
}

fn convert(opcode: LLVMOpcode) -> Option<Convert> {
    Some(match opcode {
        LLVMOpcode::LLVMTrunc => Convert::Trunc,
        LLVMOpcode::LLVMZExt => Convert::ZExt,
        LLVMOpcode::LLVMSExt => Convert::SExt,
        LLVMOpcode::LLVMFPToUI => Convert::FloatToUnsigned,
        LLVMOpcode::LLVMFPToSI => Convert::FloatToSigned,
        LLVMOpcode::LLVMUIToFP => Convert::UnsignedToFloat,
        LLVMOpcode::LLVMSIToFP => Convert::SignedToFloat,
        LLVMOpcode::LLVMFPTrunc | LLVMOpcode::LLVMFPExt => Convert::Float,
        LLVMOpcode::LLVMBitCast => Convert::Bits,
        _none => return None,
    })
}

fn compare(predicate: LLVMIntPredicate) -> Compare {
    match predicate {
        LLVMIntPredicate::LLVMIntEQ => Compare::Eq,
        LLVMIntPredicate::LLVMIntNE => Compare::Ne,
        LLVMIntPredicate::LLVMIntULT => Compare::ULt,
        LLVMIntPredicate::LLVMIntULE => Compare::ULe,
        LLVMIntPredicate::LLVMIntUGT => Compare::UGt,
        LLVMIntPredicate::LLVMIntUGE => Compare::UGe,
        LLVMIntPredicate::LLVMIntSLT => Compare::SLt,
        LLVMIntPredicate::LLVMIntSLE => Compare::SLe,
        LLVMIntPredicate::LLVMIntSGT => Compare::SGt,
        LLVMIntPredicate::LLVMIntSGE => Compare::SGe,
    }
}

fn compare_floats(predicate: LLVMRealPredicate) -> Compare {
    let (with_nan, ordered) = match predicate {
        LLVMRealPredicate::LLVMRealPredicateFalse => (false, Ordered::Never),
        LLVMRealPredicate::LLVMRealOEQ => (false, Ordered::Eq),
        LLVMRealPredicate::LLVMRealOGT => (false, Ordered::Gt),
        LLVMRealPredicate::LLVMRealOGE => (false, Ordered::Ge),
        LLVMRealPredicate::LLVMRealOLT => (false, Ordered::Lt),
        LLVMRealPredicate::LLVMRealOLE => (false, Ordered::Le),
        LLVMRealPredicate::LLVMRealONE => (false, Ordered::Ne),
        LLVMRealPredicate::LLVMRealORD => (false, Ordered::Always),
        LLVMRealPredicate::LLVMRealUNO => (true, Ordered::Never),
        LLVMRealPredicate::LLVMRealUEQ => (true, Ordered::Eq),
        LLVMRealPredicate::LLVMRealUGT => (true, Ordered::Gt),
        LLVMRealPredicate::LLVMRealUGE => (true, Ordered::Ge),
        LLVMRealPredicate::LLVMRealULT => (true, Ordered::Lt),
        LLVMRealPredicate::LLVMRealULE => (true, Ordered::Le),
        LLVMRealPredicate::LLVMRealUNE => (true, Ordered::Ne),
        LLVMRealPredicate::LLVMRealPredicateTrue => (true, Ordered::Always),
    };
    Compare::Float(with_nan, ordered)
}
