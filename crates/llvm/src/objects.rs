//! Where each object of memory is: of a kernel's arguments, of its own, and constants.

use inkwell::values::PointerValue;
use invar_ir::inst::Memory;
use invar_ir::{Access, AddressSpace, ConstantArray, ParamKind, Scalar};

use crate::abi;
use crate::function::FunctionLowering;
use crate::object::ALIGN;
use crate::state::Object;
use crate::value::Parts;

impl<'c, 'k> FunctionLowering<'c, 'k> {
    /// Finds where each memory object begins, and reads the scalar parameters.
    pub fn find_objects(&mut self, arguments: PointerValue<'c>, scratch: PointerValue<'c>) {
        for (i, alloc) in self.analysis.kernel.allocs.iter().enumerate() {
            let thread = alloc.space == AddressSpace::Thread;
            let at = self.analysis.arrays[i];
            let base = self.e.byte_offset(scratch, self.e.i64(at));
            let object = Object {
                base,
                length: self.e.i64(alloc.length.into()),
                element: alloc.element.clone(),
                constant: false,
                shared: false,
                thread: thread.then_some(i as u32),
            };
            self.launch.objects.insert(Memory::Alloc(i as u32), object);
        }
        let mut end = self.e.i64(self.analysis.scratch.fixed_bytes);
        for (i, param) in self.analysis.kernel.params.iter().enumerate() {
            let at = size_of::<abi::Argument>() * i;
            let data_at = at + std::mem::offset_of!(abi::Argument, data);
            let length_at = at + std::mem::offset_of!(abi::Argument, length);
            let e = &self.e;
            let field = |offset: usize| e.byte_offset(arguments, e.i64(offset as u64));
            let data = || {
                let pointer = e.load(e.pointer_type().into(), field(data_at), 8);
                pointer.into_pointer_value()
            };
            let length = || {
                let length = e.load(e.context.i64_type().into(), field(length_at), 8);
                length.into_int_value()
            };
            let mut object = |object: Object<'c>| {
                self.launch.objects.insert(Memory::Param(i as u32), object);
            };
            match &param.kind {
                ParamKind::Buffer { element, access } => object(Object {
                    base: data(),
                    length: length(),
                    element: element.clone(),
                    constant: *access == Access::Read,
                    shared: true,
                    thread: None,
                }),
                ParamKind::Constant { element } => object(Object {
                    base: data(),
                    length: length(),
                    element: element.clone(),
                    constant: true,
                    shared: true,
                    thread: None,
                }),
                ParamKind::Threadgroup { element } => {
                    let extent = element.extent(&self.analysis.module.structs);
                    let bytes = extent.map_or(1, |x| x.size_bytes);
                    let base = e.byte_offset(scratch, end);
                    let length = length();
                    let own = e.mul(length, e.i64(bytes));
                    let rounded = e.and(e.add(own, e.i64(ALIGN - 1)), e.i64(!(ALIGN - 1)));
                    end = e.add(end, e.add(rounded, e.i64(self.analysis.zones.each_bytes())));
                    object(Object {
                        base,
                        length,
                        element: element.clone(),
                        constant: false,
                        shared: false,
                        thread: None,
                    });
                }
                ParamKind::Texture(_) | ParamKind::Sampler => {
                    unreachable!("textures have been written out as buffers")
                }
                ParamKind::Scalar { value } => {
                    let ty = self.analysis.kernel.ty(*value);
                    let scalar = ty.scalar().unwrap_or(Scalar::U32);
                    let data = data();
                    let components = (0..ty.component_count())
                        .map(|c| {
                            let bytes = u64::from(c) * scalar.size_bytes();
                            self.e
                                .load_scalar(scalar, e.byte_offset(data, e.i64(bytes)))
                        })
                        .collect();
                    self.shared
                        .values
                        .insert(*value, Parts::uniform(components));
                }
            }
        }
        self.launch.chunks = self.e.byte_offset(scratch, end);
        for (i, constant) in self.analysis.module.constants.iter().enumerate() {
            let base = self.constant_array(constant);
            let object = Object {
                base,
                length: self.e.i64(constant.length.into()),
                element: constant.element.clone(),
                constant: true,
                shared: true,
                thread: None,
            };
            self.launch
                .objects
                .insert(Memory::Constant(i as u32), object);
        }
    }

    /// A program-scope constant as bytes of the object file.
    pub fn constant_array(&self, constant: &ConstantArray) -> PointerValue<'c> {
        let structs = &self.analysis.module.structs;
        let size = constant.element.extent(structs).map_or(1, |x| x.size_bytes);
        let locations = constant.element.locations(structs);
        let mut bytes = vec![0u8; (size * u64::from(constant.length)) as usize];
        let starts = (0..u64::from(constant.length)).flat_map(|element| {
            let at = element * size;
            locations.iter().map(move |(offset, s)| (at + offset, *s))
        });
        for ((at, scalar), value) in starts.zip(&constant.values) {
            let width = scalar.size_bytes() as usize;
            let at = at as usize;
            bytes[at..at + width].copy_from_slice(&value.bits.to_le_bytes()[..width]);
        }
        let data = self.e.context.const_string(&bytes, false);
        let global = self.e.module.add_global(data.get_type(), None, "constant");
        global.set_initializer(&data);
        global.set_constant(true);
        global.set_alignment(ALIGN as u32);
        global.set_linkage(inkwell::module::Linkage::Private);
        global.as_pointer_value()
    }
}
