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
    let file = File(object);
    let sections = file.sections()?;
    let (places, jumps) = lay_out(&sections)?;
    let size = jumps + functions.len() * JUMP_BYTES;
    let mut memory = MmapMut::map_anon(size).ok()?;
    for (section, place) in sections.iter().zip(&places) {
        if let Some(place) = place {
            let bytes = file.bytes(section)?;
            memory
                .get_mut(*place..)?
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
    let table = sections.iter().find(|s| s.kind == SYMBOLS)?;
    let names = file.bytes(sections.get(table.link as usize)?)?;
    let named = |symbol: &Symbol, name: &[u8]| {
        let own = names.get(symbol.name..).and_then(|n| n.strip_prefix(name));
        own.is_some_and(|rest| rest.first() == Some(&0))
    };
    let mut symbols = file.symbols(table, &places)?;
    for symbol in symbols.iter_mut().filter(|s| s.is_elsewhere) {
        let n = functions.iter().position(|(name, _)| named(symbol, name));
        symbol.place = n.map(jump);
    }
    for section in sections.iter().filter(|s| s.kind == RELOCATIONS) {
        // Of sections that are not in memory, as those for debuggers.
        let Some(place) = *places.get(section.info as usize)? else {
            continue;
        };
        let target = sections.get(section.info as usize)?;
        relocate(
            file.bytes(section)?,
            &symbols,
            &mut memory,
            place,
            target.size,
        )?;
    }
    let found = symbols.iter().find(|s| !s.is_elsewhere && named(s, name))?;
    let entry = found.place.filter(|place| *place < jumps)?;
    let memory = memory.make_exec().ok()?;
    Some(Linked { memory, entry })
}

/// Kinds of sections.
const PROGRAM: u32 = 1;
const SYMBOLS: u32 = 2;
const RELOCATIONS: u32 = 4;
/// What sections may be, besides mergeable or made of strings, which asks for nothing.
const WRITABLE: u64 = 1;
const IN_MEMORY: u64 = 2;
const THREAD_LOCAL: u64 = 1 << 10;
/// References: the distance from where it is written, in 32 bits.
const PC32: u32 = 2;
const PLT32: u32 = 4;

/// `jmp [rip + 2]`, two bytes that nothing runs, and the address.
const JUMP: [u8; 8] = [0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc];
const JUMP_BYTES: usize = JUMP.len() + 8;

struct Section {
    kind: u32,
    flags: u64,
    offset: usize,
    size: usize,
    link: u32,
    info: u32,
    alignment: usize,
}

struct Symbol {
    name: usize,
    /// Whether no section of the object has it.
    is_elsewhere: bool,
    /// Where it is in memory, if it is there.
    place: Option<usize>,
}

/// Where each section goes, if it goes into memory, and where the jumps go after all of them.
fn lay_out(sections: &[Section]) -> Option<(Vec<Option<usize>>, usize)> {
    const PAGE: usize = 4096;
    let mut size = 0usize;
    let mut places = Vec::with_capacity(sections.len());
    for section in sections {
        let needs_more = section.flags & (WRITABLE | THREAD_LOCAL) != 0;
        if section.flags & IN_MEMORY == 0 {
            places.push(None);
            continue;
        }
        if needs_more || section.kind != PROGRAM || section.alignment > PAGE {
            return None;
        }
        size = size.checked_next_multiple_of(section.alignment.max(1))?;
        places.push(Some(size));
        size = size.checked_add(section.size)?;
    }
    // Distances fit 32 bits; an empty object has no code.
    let fits = size > 0 && size < i32::MAX as usize / 2;
    fits.then_some((places, size.next_multiple_of(JUMP_BYTES)))
}

/// Writes the distances into a section that lies at `place`.
fn relocate(
    entries: &[u8],
    symbols: &[Symbol],
    memory: &mut [u8],
    place: usize,
    size: usize,
) -> Option<()> {
    for entry in entries.chunks_exact(24) {
        let entry = File(entry);
        let offset = entry.word(0)? as usize;
        let kind = entry.half(8)?;
        let symbol = symbols.get(entry.half(12)? as usize)?;
        let addend = entry.word(16)? as i64;
        if !matches!(kind, PC32 | PLT32) || offset.checked_add(4)? > size {
            return None;
        }
        let from = place + offset;
        let distance = (symbol.place? as i64).checked_add(addend)? - from as i64;
        let distance = i32::try_from(distance).ok()?;
        memory
            .get_mut(from..from + 4)?
            .copy_from_slice(&distance.to_le_bytes());
    }
    Some(())
}

/// The bytes of an object, or of an entry of one of its tables.
struct File<'a>(&'a [u8]);

impl<'a> File<'a> {
    fn half(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    }

    fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }

    fn short(&self, at: usize) -> Option<u16> {
        let bytes = self.0.get(at..)?.first_chunk::<2>()?;
        Some(u16::from_le_bytes(*bytes))
    }

    fn bytes(&self, section: &Section) -> Option<&'a [u8]> {
        self.0.get(section.offset..)?.get(..section.size)
    }

    /// The sections of a relocatable object for x86-64.
    fn sections(&self) -> Option<Vec<Section>> {
        const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";
        const RELOCATABLE: u16 = 1;
        const X86_64: u16 = 62;
        const HEADER_BYTES: u16 = 64;
        let ours = self.0.starts_with(MAGIC)
            && self.short(16)? == RELOCATABLE
            && self.short(18)? == X86_64
            && self.short(58)? == HEADER_BYTES;
        if !ours {
            return None;
        }
        let table = usize::try_from(self.word(40)?).ok()?;
        let section = |n: u16| {
            let at = usize::from(n) * usize::from(HEADER_BYTES);
            let header = File(self.0.get(table..)?.get(at..)?);
            Some(Section {
                kind: header.half(4)?,
                flags: header.word(8)?,
                offset: usize::try_from(header.word(24)?).ok()?,
                size: usize::try_from(header.word(32)?).ok()?,
                link: header.half(40)?,
                info: header.half(44)?,
                alignment: usize::try_from(header.word(48)?).ok()?,
            })
        };
        (0..self.short(60)?).map(section).collect()
    }

    /// The symbols of a table, of sections that lie at these places.
    fn symbols(&self, table: &Section, places: &[Option<usize>]) -> Option<Vec<Symbol>> {
        let symbol = |bytes: &[u8]| {
            let entry = File(bytes);
            let section = usize::from(entry.short(6)?);
            let within = usize::try_from(entry.word(8)?).ok()?;
            let place = places.get(section).copied().flatten();
            Some(Symbol {
                name: entry.half(0)? as usize,
                is_elsewhere: section == 0,
                place: match place {
                    Some(place) => Some(place.checked_add(within)?),
                    None => None,
                },
            })
        };
        self.bytes(table)?.chunks_exact(24).map(symbol).collect()
    }
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
