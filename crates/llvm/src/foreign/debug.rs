//! Debug information: where instructions were written, through the calls that were inlined, and what the
//! types of parameters and of variables outside functions are.
//!
//! Metadata is read by its operands, in the order of LLVM's classes, which is the same in all releases
//! that are taken.

use std::collections::HashMap;
use std::ffi::{c_char, c_uint};
use std::slice;

use inkwell::llvm_sys::core::{
    LLVMDisposeValueMetadataEntries, LLVMGetMDNodeNumOperands, LLVMGetMDNodeOperands,
    LLVMGetMDString, LLVMGlobalCopyAllMetadata, LLVMIsAMDString, LLVMMetadataAsValue,
    LLVMValueAsMetadata, LLVMValueMetadataEntriesGetMetadata,
};
use inkwell::llvm_sys::debuginfo::{
    LLVMDIFileGetDirectory, LLVMDIFileGetFilename, LLVMDILocationGetColumn,
    LLVMDILocationGetInlinedAt, LLVMDILocationGetLine, LLVMDILocationGetScope, LLVMDIScopeGetFile,
    LLVMDISubprogramGetLine, LLVMDITypeGetName, LLVMDITypeGetOffsetInBits, LLVMDITypeGetSizeInBits,
};
use inkwell::llvm_sys::prelude::{LLVMContextRef, LLVMMetadataRef, LLVMValueRef};

unsafe extern "C" {
    /// Declared here with a number, since later releases have kinds that the first has no name for.
    fn LLVMGetMetadataKind(node: LLVMMetadataRef) -> c_uint;
}

/// What names a variable outside functions, and where its value is.
const VARIABLE_EXPRESSION: c_uint = 7;
const SUBRANGE: c_uint = 9;
const BASIC_TYPE: c_uint = 11;
const DERIVED_TYPE: c_uint = 12;
const COMPOSITE_TYPE: c_uint = 13;
const SUBPROGRAM: c_uint = 17;
const LEXICAL_BLOCK: c_uint = 18;
const LEXICAL_BLOCK_FILE: c_uint = 19;
const VARIABLE: c_uint = 24;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file, with its folder.
    pub file: String,
    /// From 1; 0 if it is not known.
    pub line: u32,
    /// From 1; 0 if it is not known.
    pub column: u32,
    /// The function around it.
    pub function: String,
    /// The call through which it came here, if the function was inlined.
    pub inlined_at: Option<usize>,
}

/// A type as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugType {
    /// A number, by the language's name, and its bytes.
    Scalar(String, u64),
    /// The address of something.
    Pointer(Box<DebugType>),
    /// A struct or union: its name, bytes and fields.
    Struct(String, u64, Vec<DebugField>),
    /// So many of a type.
    Array(Box<DebugType>, u64),
    /// Anything else, by name, and its bytes.
    Other(String, u64),
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugField {
    /// Its name.
    pub name: String,
    /// Bytes before it.
    pub offset_bytes: u64,
    /// Its type.
    pub ty: DebugType,
}

/// Structs in structs deeper than this are left out.
const MAX_DEPTH: u32 = 12;

/// What is known of metadata so far.
pub(super) struct Debug {
    context: LLVMContextRef,
    pub locations: Vec<Location>,
    known: HashMap<LLVMMetadataRef, usize>,
}

impl Debug {
    pub fn new(context: LLVMContextRef) -> Debug {
        Debug {
            context,
            locations: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// The number of a location; `at` is none or a `DILocation`.
    pub fn location(&mut self, at: LLVMMetadataRef) -> Option<usize> {
        if at.is_null() {
            return None;
        }
        if let Some(known) = self.known.get(&at) {
            return Some(*known);
        }
        // SAFETY: `at` is a location of this context.
        let (line, column, scope, outer) = unsafe {
            (
                LLVMDILocationGetLine(at),
                LLVMDILocationGetColumn(at),
                LLVMDILocationGetScope(at),
                LLVMDILocationGetInlinedAt(at),
            )
        };
        let inlined_at = self.location(outer);
        let location = Location {
            file: file(scope),
            line,
            column,
            function: self.function(scope),
            inlined_at,
        };
        self.locations.push(location);
        let number = self.locations.len() - 1;
        self.known.insert(at, number);
        Some(number)
    }

    /// The place of a function's declaration.
    pub fn declaration(&mut self, subprogram: LLVMMetadataRef) -> Option<usize> {
        if subprogram.is_null() {
            return None;
        }
        let location = Location {
            file: file(subprogram),
            // SAFETY: it is the subprogram of a function.
            line: unsafe { LLVMDISubprogramGetLine(subprogram) },
            column: 0,
            function: self.function(subprogram),
            inlined_at: None,
        };
        self.locations.push(location);
        Some(self.locations.len() - 1)
    }

    /// The name of the function that a scope is in.
    fn function(&self, mut scope: LLVMMetadataRef) -> String {
        for _ in 0..64 {
            match kind(scope) {
                Some(SUBPROGRAM) => {
                    return self.text(self.operand(scope, 2)).unwrap_or_default();
                }
                Some(LEXICAL_BLOCK | LEXICAL_BLOCK_FILE) => scope = self.operand(scope, 1),
                _no_function => break,
            }
        }
        String::new()
    }

    fn operands(&self, node: LLVMMetadataRef) -> Vec<LLVMMetadataRef> {
        if node.is_null() {
            return Vec::new();
        }
        // SAFETY: `node` is a node of this context, and there is room for as many operands as it has.
        unsafe {
            let value = LLVMMetadataAsValue(self.context, node);
            let count = LLVMGetMDNodeNumOperands(value) as usize;
            let mut values: Vec<LLVMValueRef> = vec![std::ptr::null_mut(); count];
            LLVMGetMDNodeOperands(value, values.as_mut_ptr());
            let as_metadata = |v: LLVMValueRef| match v.is_null() {
                true => std::ptr::null_mut(),
                false => LLVMValueAsMetadata(v),
            };
            values.into_iter().map(as_metadata).collect()
        }
    }

    fn operand(&self, node: LLVMMetadataRef, number: usize) -> LLVMMetadataRef {
        let all = self.operands(node);
        all.get(number).copied().unwrap_or(std::ptr::null_mut())
    }

    /// The text of a string of metadata.
    fn text(&self, string: LLVMMetadataRef) -> Option<String> {
        if string.is_null() {
            return None;
        }
        // SAFETY: it is metadata of this context, and a string if LLVM says so.
        unsafe {
            let value = LLVMMetadataAsValue(self.context, string);
            if LLVMIsAMDString(value).is_null() {
                return None;
            }
            let mut length: c_uint = 0;
            let text = LLVMGetMDString(value, &mut length);
            Some(owned(text, length as usize))
        }
    }

    /// The types of a function's parameters, as they were written.
    pub fn params(&self, subprogram: LLVMMetadataRef) -> Vec<Option<DebugType>> {
        if subprogram.is_null() {
            return Vec::new();
        }
        let types = self.operand(self.operand(subprogram, 4), 3);
        // The first is the result's.
        let params = self.operands(types).into_iter().skip(1);
        params.map(|ty| self.ty(ty, 0)).collect()
    }

    /// The type of a variable outside functions, as it was written.
    pub fn variable(&self, global: LLVMValueRef) -> Option<DebugType> {
        let mut count = 0;
        // SAFETY: it is a variable of this context; the list has `count` entries and goes when they were asked.
        let nodes: Vec<LLVMMetadataRef> = unsafe {
            let entries = LLVMGlobalCopyAllMetadata(global, &mut count);
            let count = c_uint::try_from(count).unwrap_or(0);
            let nodes = (0..count).map(|i| LLVMValueMetadataEntriesGetMetadata(entries, i));
            let nodes = nodes.collect();
            LLVMDisposeValueMetadataEntries(entries);
            nodes
        };
        let mut nodes = nodes.into_iter();
        let expression = nodes.find(|node| kind(*node) == Some(VARIABLE_EXPRESSION))?;
        let variable = self.operand(expression, 0);
        match kind(variable) {
            Some(VARIABLE) => self.ty(self.operand(variable, 3), 0),
            _nothing_known => None,
        }
    }

    fn ty(&self, ty: LLVMMetadataRef, depth: u32) -> Option<DebugType> {
        let kind = kind(ty)?;
        let name = type_name(ty);
        // SAFETY: it is a type, as its kind says below.
        let bytes = || unsafe { LLVMDITypeGetSizeInBits(ty) } / 8;
        if depth > MAX_DEPTH {
            return Some(DebugType::Other(name, 0));
        }
        Some(match kind {
            BASIC_TYPE => DebugType::Scalar(name, bytes()),
            DERIVED_TYPE => {
                let base = self.ty(self.operand(ty, 3), depth + 1);
                // Of the types that are made of one other, only addresses have a size and no name.
                match base {
                    _ if name.is_empty() && bytes() == 8 => {
                        let of = base.unwrap_or(DebugType::Other(String::new(), 0));
                        DebugType::Pointer(Box::new(of))
                    }
                    // A struct that has no name but that of its alias.
                    Some(DebugType::Struct(own, bytes, fields)) if own.is_empty() => {
                        DebugType::Struct(name, bytes, fields)
                    }
                    Some(base) => base,
                    None => DebugType::Other(name, bytes()),
                }
            }
            COMPOSITE_TYPE => {
                let elements = self.operands(self.operand(ty, 4));
                let first = elements.first().and_then(|e| self::kind(*e));
                if first == Some(SUBRANGE) {
                    let element = self.ty(self.operand(ty, 3), depth + 1)?;
                    let one = size(&element).max(1);
                    // An array of arrays has one range for each; their product is what counts.
                    return Some(DebugType::Array(Box::new(element), bytes() / one));
                }
                let mut fields = Vec::new();
                for element in elements {
                    if self::kind(element) != Some(DERIVED_TYPE) {
                        continue;
                    }
                    // SAFETY: what a struct is derived from, and its members, are types.
                    let (offset, size) = unsafe {
                        (
                            LLVMDITypeGetOffsetInBits(element) / 8,
                            LLVMDITypeGetSizeInBits(element),
                        )
                    };
                    // Static members have no size here.
                    if size == 0 && !type_name(element).is_empty() {
                        continue;
                    }
                    if let Some(ty) = self.ty(self.operand(element, 3), depth + 1) {
                        fields.push(DebugField {
                            name: type_name(element),
                            offset_bytes: offset,
                            ty,
                        });
                    }
                }
                DebugType::Struct(name, bytes(), fields)
            }
            _anything_else => return None,
        })
    }
}

/// The bytes of a type.
pub(super) fn size(ty: &DebugType) -> u64 {
    match ty {
        DebugType::Scalar(_, bytes)
        | DebugType::Struct(_, bytes, _)
        | DebugType::Other(_, bytes) => *bytes,
        DebugType::Pointer(_) => 8,
        DebugType::Array(element, count) => size(element) * count,
    }
}

fn kind(node: LLVMMetadataRef) -> Option<c_uint> {
    if node.is_null() {
        return None;
    }
    // SAFETY: it is metadata.
    Some(unsafe { LLVMGetMetadataKind(node) })
}

fn type_name(ty: LLVMMetadataRef) -> String {
    let mut length = 0;
    // SAFETY: it is a type.
    unsafe {
        let name = LLVMDITypeGetName(ty, &mut length);
        owned(name, length)
    }
}

/// The file of a scope, with its folder if its name has none.
fn file(scope: LLVMMetadataRef) -> String {
    if scope.is_null() {
        return String::new();
    }
    // SAFETY: it is a scope, and the file is its own.
    unsafe {
        let file = LLVMDIScopeGetFile(scope);
        if file.is_null() {
            return String::new();
        }
        let mut length: c_uint = 0;
        let name = LLVMDIFileGetFilename(file, &mut length);
        let name = owned(name, length as usize);
        let folder = LLVMDIFileGetDirectory(file, &mut length);
        let folder = owned(folder, length as usize);
        let whole = std::path::Path::new(&folder).join(&name);
        whole.to_string_lossy().into_owned()
    }
}

/// A text of LLVM's.
///
/// # Safety
/// `text` has so many bytes, or is null.
unsafe fn owned(text: *const c_char, length: usize) -> String {
    if text.is_null() || length == 0 {
        return String::new();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}
