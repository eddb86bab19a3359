//! Links an object that needs little from elsewhere: most kernels' are code, constants, references of the
//! code to the constants by distance, and calls of a few functions that the caller names. LLVM's own linker
//! takes a millisecond only to begin, more than all else that a kernel on disk needs.
//!
//! Nothing is guessed: whatever is not listed here (another file format or processor, another function's
//! name, data that can be written, any other kind of reference) makes [`link`] give nothing, and the
//! object goes to LLVM's linker. Every offset is checked against the object, which comes from a file.
//!
//! Forms: System V gABI, "Object Files"; System V psABI for AMD64, section 4.4.

use memmap2::{Mmap, MmapMut};
use object::read::elf::{ElfFile64, ElfSymbol64};
use object::{
    Architecture, LittleEndian, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _,
    RelocationFlags, RelocationTarget, SectionFlags, SectionIndex, elf,
};

/// Code in memory that can be called and no longer changed.
#[derive(Debug)]
pub(crate) struct Linked {
    memory: Mmap,
    entry: usize,
}

impl Linked {
    /// Where the function that was asked for begins.
    pub fn entry(&self) -> *const u8 {
        self.memory[self.entry..].as_ptr()
    }
}

/// A function that code may call: its name and where it is.
pub(crate) type Function = (&'static [u8], usize);

/// Links a relocatable ELF object for x86-64, for its function of this name; `None` for any that is not
/// made of what this module knows.
pub(crate) fn link(object: &[u8], name: &[u8], functions: &[Function]) -> Option<Linked> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let file = File::parse(object).ok()?;
    if file.architecture() != Architecture::X86_64 || file.kind() != ObjectKind::Relocatable {
        return None;
    }
    let (places, jumps) = lay_out(&file)?;
    let size = jumps + functions.len() * JUMP_BYTES;
    let mut memory = MmapMut::map_anon(size).ok()?;
    for section in file.sections() {
        if let Some(place) = place_of(&places, section.index()) {
            let bytes = section.data().ok()?;
            memory
                .get_mut(place..)?
                .get_mut(..bytes.len())?
                .copy_from_slice(bytes);
        }
    }
    // Functions may be further away than a call reaches: it goes to a jump by an address.
    let jump = |n: usize| jumps + n * JUMP_BYTES;
    for (n, (_, address)) in functions.iter().enumerate() {
        let bytes = memory.get_mut(jump(n)..)?.first_chunk_mut::<JUMP_BYTES>()?;
        bytes[..JUMP.len()].copy_from_slice(&JUMP);
        bytes[JUMP.len()..].copy_from_slice(&(*address as u64).to_le_bytes());
    }
    let place_of_symbol = |symbol: &ElfSymbol64<'_, '_, LittleEndian>| {
        if symbol.is_undefined() {
            let name = symbol.name_bytes().ok()?;
            let n = functions.iter().position(|(known, _)| *known == name)?;
            return Some(jump(n));
        }
        let place = place_of(&places, symbol.section_index()?)?;
        place.checked_add(usize::try_from(symbol.address()).ok()?)
    };
    for section in file.sections() {
        // Others are not in memory, as those for debuggers.
        let Some(place) = place_of(&places, section.index()) else {
            continue;
        };
        for (offset, reference) in section.relocations() {
            let RelocationFlags::Elf { r_type } = reference.flags() else {
                return None;
            };
            let RelocationTarget::Symbol(symbol) = reference.target() else {
                return None;
            };
            if !matches!(r_type, elf::R_X86_64_PC32 | elf::R_X86_64_PLT32)
                || reference.has_implicit_addend()
                || offset.checked_add(4)? > section.size()
            {
                return None;
            }
            // The distance from where it is written, in 32 bits.
            let to = place_of_symbol(&file.symbol_by_index(symbol).ok()?)? as i64;
            let from = place + usize::try_from(offset).ok()?;
            let distance = to.checked_add(reference.addend())?;
            let distance = i32::try_from(distance.checked_sub(from as i64)?).ok()?;
            memory
                .get_mut(from..)?
                .first_chunk_mut::<4>()?
                .copy_from_slice(&distance.to_le_bytes());
        }
    }
    let mut defined = file.symbols().filter(|symbol| !symbol.is_undefined());
    let found = defined.find(|symbol| symbol.name_bytes().is_ok_and(|own| own == name))?;
    let entry = place_of_symbol(&found).filter(|place| *place < jumps)?;
    let memory = memory.make_exec().ok()?;
    Some(Linked { memory, entry })
}

type File<'a> = ElfFile64<'a, LittleEndian>;

/// `jmp [rip + 2]`, two bytes that nothing runs, and the address.
const JUMP: [u8; 8] = [0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc];
const JUMP_BYTES: usize = JUMP.len() + 8;

/// Where a section lies in memory, if it is there.
fn place_of(places: &[Option<usize>], section: SectionIndex) -> Option<usize> {
    places.get(section.0).copied().flatten()
}

/// Where each section goes, if it goes into memory, and where the jumps go after all of them.
fn lay_out(file: &File<'_>) -> Option<(Vec<Option<usize>>, usize)> {
    const PAGE: u64 = 4096;
    let mut size = 0usize;
    let mut places = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else {
            return None;
        };
        if sh_flags & u64::from(elf::SHF_ALLOC) == 0 {
            continue;
        }
        // What sections may be besides, mergeable or made of strings, asks for nothing.
        let needs_more = sh_flags & u64::from(elf::SHF_WRITE | elf::SHF_TLS) != 0;
        let kind = section.elf_section_header().sh_type.get(LittleEndian);
        if needs_more || kind != elf::SHT_PROGBITS || section.align() > PAGE {
            return None;
        }
        size = size.checked_next_multiple_of(section.align().max(1) as usize)?;
        places.resize(section.index().0 + 1, None);
        places[section.index().0] = Some(size);
        size = size.checked_add(usize::try_from(section.size()).ok()?)?;
    }
    // Distances fit 32 bits; an empty object has no code.
    let fits = size > 0 && size < i32::MAX as usize / 2;
    fits.then_some((places, size.next_multiple_of(JUMP_BYTES)))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use invar_ir::{text::parse, verify};

    use super::*;
    use crate::called::functions;
    use crate::program::{ENTRY_NAME, Jit};
    use crate::{CompileOptions, Object, Program, Target, compile};

    fn object(text: &str, target: Target) -> Object {
        let module = parse("test", text).and_then(verify).expect("a kernel");
        let options = CompileOptions {
            target,
            ..CompileOptions::default()
        };
        compile(&module, "k", &options).expect("it compiles")
    }

    const SELF_CONTAINED: &str = "
kernel @k(%x: device read_write f32) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %e = exp %v
    store %x[%i], %e
}";

    /// Its conversions are calls where the processor has no instruction for them.
    const CALLS: &str = "
kernel @k(%x: device read_write f16) {
    %i = thread_position_in_grid x
    %v = load %x[%i]
    %e = sqrt %v
    store %x[%i], %e
}";

    /// Its threadgroup memory is cleared by a call.
    const CLEARS: &str = "
kernel @k(%x: device read_write f32) threadgroup(64) {
    %a = alloc threadgroup f32[4096]
    %t = thread_index_in_threadgroup
    %v = load %x[%t]
    %i = cast u32 %v
    store %a[%i], %v
    barrier threadgroup
    %w = load %a[%t]
    store %x[%t], %w
}";

    fn linked(object: &[u8]) -> Option<Linked> {
        link(object, ENTRY_NAME.to_bytes(), &functions())
    }

    #[test]
    fn what_needs_no_more_than_functions_that_are_listed_is_linked_here() {
        let own = object(SELF_CONTAINED, Target::X86V1);
        assert!(linked(&own.bytes).is_some());
        assert!(
            link(&own.bytes, b"invar", &[]).is_none(),
            "a name's beginning"
        );
        let clears = object(CLEARS, Target::X86V1);
        assert!(linked(&clears.bytes).is_some());
        assert!(link(&clears.bytes, ENTRY_NAME.to_bytes(), &[]).is_none());
        let calls = object(CALLS, Target::X86V1);
        assert!(linked(&calls.bytes).is_some());
        assert!(link(&calls.bytes, ENTRY_NAME.to_bytes(), &[]).is_none());
        Program::load(&calls).expect("it is linked");
        Jit::load(&calls.bytes, ENTRY_NAME).expect("LLVM links it with the same functions");
        let foreign = object(SELF_CONTAINED, Target::Aarch64);
        assert!(linked(&foreign.bytes).is_none());
    }

    #[test]
    fn a_damaged_object_is_nothing_or_some_code() {
        let whole = object(CLEARS, Target::X86V1).bytes;
        let check = |bytes: &[u8], at| {
            if let Some(linked) = linked(bytes) {
                assert!(linked.entry < linked.memory.len(), "byte {at}");
            }
        };
        for at in 0..whole.len() {
            for bit in [1, 0x80] {
                let mut bytes = whole.clone();
                bytes[at] ^= bit;
                check(&bytes, at);
            }
            check(&whole[..at], at);
        }
    }
}
