//! What is given of LLVM IR: functions of blocks of instructions, and their types.

use super::debug::{DebugType, Location};

/// A type of LLVM's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Type {
    /// No value.
    #[default]
    Void,
    /// An integer of so many bits.
    Int(u32),
    /// 16 bits, IEEE.
    Half,
    /// 16 bits, of which 8 are the exponent.
    BFloat,
    /// 32 bits.
    Float,
    /// 64 bits.
    Double,
    /// An address.
    Pointer,
    /// So many of a type of so many bits in one value.
    Vector(Element, u32),
    /// A struct or an array as a value.
    Aggregate,
    /// Any other.
    Other,
}

/// What a vector is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// 16 bits, IEEE.
    Half,
    /// 16 bits, of which 8 are the exponent.
    BFloat,
    /// 32 bits.
    Float,
    /// An integer of so many bits.
    Int(u32),
    /// Any other.
    Other,
}

impl Type {
    /// Bytes in memory; 0 for what is in none.
    pub fn size_bytes(self) -> u64 {
        match self {
            Type::Int(bits) => u64::from(bits.div_ceil(8)).next_power_of_two(),
            Type::Half | Type::BFloat => 2,
            Type::Float => 4,
            Type::Double | Type::Pointer => 8,
            Type::Void | Type::Vector(..) | Type::Aggregate | Type::Other => 0,
        }
    }
}

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The result of an instruction, by its number in [`Function::insts`].
    Inst(usize),
    /// A parameter.
    Param(usize),
    /// An integer's or float's bits.
    Bits(Type, u64),
    /// The address of a global, and bytes from there.
    Global(usize, i64),
    /// The null pointer.
    Null,
    /// All zeros, of an aggregate.
    Zeros,
    /// A value that nobody gave.
    Undefined,
    /// What LLVM gives no meaning to.
    Poison,
    /// A constant struct or array.
    Parts(Vec<Operand>),
    /// A function, by name.
    Function(String),
    /// Anything else, described.
    Other(String),
}

/// Two operands to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are LLVM's")]
pub enum Binary {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    Shl,
    LShr,
    AShr,
    And,
    Or,
    Xor,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FRem,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are LLVM's")]
pub enum Compare {
    Eq,
    Ne,
    ULt,
    ULe,
    UGt,
    UGe,
    SLt,
    SLe,
    SGt,
    SGe,
    /// Of floats: whether it holds if one is NaN, and the comparison, where the operands are ordered.
    Float(bool, Ordered),
}

/// A comparison of floats that are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are LLVM's")]
pub enum Ordered {
    Never,
    Eq,
    Lt,
    Le,
    Gt,
    Ge,
    Ne,
    Always,
}

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are LLVM's")]
pub enum Convert {
    Trunc,
    ZExt,
    SExt,
    FloatToUnsigned,
    FloatToSigned,
    UnsignedToFloat,
    SignedToFloat,
    Float,
    Bits,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Memory of the thread, so many bytes.
    Alloca(u64),
    /// `operands[0]` is where.
    Load,
    /// `operands[0]` is stored at `operands[1]`.
    Store,
    /// `operands[0]`, so many bytes further, and for each other operand so many times it.
    Offset(i64, Vec<i64>),
    /// The value of one operand for each block that may come before.
    Phi(Vec<usize>),
    /// To a block.
    Jump(usize),
    /// To the first if `operands[0]` holds, else the second.
    Branch(usize, usize),
    /// Ends the function.
    Return,
    /// Is never reached.
    Unreachable,
    /// Of two operands.
    Binary(Binary),
    /// The other sign, of floats.
    Negate,
    /// Of two operands.
    Compare(Compare),
    /// Of one operand.
    Convert(Convert),
    /// `operands[0]` decides between the two others, the first if it holds.
    Select,
    /// The operand.
    Freeze,
    /// A call of a function that is not defined here.
    Call(String),
    /// A part of an aggregate.
    ExtractValue(Vec<u32>),
    /// An aggregate, `operands[0]`, with another part, `operands[1]`.
    InsertValue(Vec<u32>),
    /// A component of the vector `operands[0]`, by the number `operands[1]`.
    ExtractElement,
    /// The vector `operands[0]` with the component `operands[1]` at the number `operands[2]`.
    InsertElement,
    /// Anything else, by LLVM's name.
    Other(String),
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// What it does.
    pub kind: Kind,
    /// Of its result.
    pub ty: Type,
    /// Of what.
    pub operands: Vec<Operand>,
    /// The types of the operands.
    pub types: Vec<Type>,
    /// Its name, if it has one.
    pub name: String,
    /// Where it was written.
    pub location: Option<usize>,
}

/// Instructions of which the last leads elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// By their numbers in [`Function::insts`].
    pub insts: Vec<usize>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// If it is the address of a value that is passed so: its size in bytes.
    pub by_value: Option<u64>,
    /// Its annotations: a name, and a number if it has one.
    pub annotations: Vec<(String, Option<i64>)>,
    /// Its type as it was written.
    pub debug: Option<DebugType>,
}

/// A variable outside functions, or a static one in a function.
#[derive(Clone, Debug)]
pub struct Global {
    /// As it was written.
    pub name: String,
    /// Its section.
    pub section: String,
    /// In bytes.
    pub size_bytes: u64,
    /// Whether it is never written.
    pub is_constant: bool,
    /// Its scalars, by their offsets in bytes, where they are known.
    pub initial: Option<Vec<(u64, Type, u64)>>,
    /// Where code that runs before everything else gives its value: the variables that it reads for it.
    pub computed_from: Option<Vec<String>>,
    /// Of one in threadgroup memory, its type as it was written.
    pub debug: Option<DebugType>,
}

/// A function, with every call inlined that can be.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its parameters.
    pub params: Vec<Param>,
    /// What it gives.
    pub result: Type,
    /// What it uses outside.
    pub globals: Vec<Global>,
    /// The first is where it begins.
    pub blocks: Vec<Block>,
    /// All instructions.
    pub insts: Vec<Inst>,
    /// Where they were written.
    pub locations: Vec<Location>,
    /// Where the function was written.
    pub location: Option<usize>,
    /// Whether it reads a variable without a value, so that its loops were left as they are.
    pub reads_unknown: bool,
}
