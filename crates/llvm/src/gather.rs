//! Loads and stores of many lanes at once: under a mask, or each lane at its own address.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use invar_ir::Scalar;

use crate::emit::{BUILT, Emit};
use crate::tables::Role;

impl<'c> Emit<'c> {
    /// A mask of which every lane is on.
    pub fn all_lanes(&self, width: u32) -> VectorValue<'c> {
        let on = self.context.bool_type().const_all_ones();
        VectorType::const_vector(&vec![on; width as usize])
    }

    /// Zeros to load where an index is out of bounds.
    pub fn zeros_in_memory(&self) -> PointerValue<'c> {
        const NAME: &str = "zeros";
        if let Some(global) = self.module.get_global(NAME) {
            return global.as_pointer_value();
        }
        let data = self.context.i64_type().const_zero();
        let global = self.module.add_global(data.get_type(), None, NAME);
        global.set_initializer(&data);
        global.set_constant(true);
        global.set_alignment(8);
        global.set_linkage(inkwell::module::Linkage::Private);
        global.as_pointer_value()
    }

    /// A vector from memory of whose lanes all may be on; those that are off get 0.
    pub fn load_masked(
        &self,
        scalar: Scalar,
        pointer: PointerValue<'c>,
        mask: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let e = self;
        if !is_narrow(scalar) || e.target.has_avx512 {
            return e.load_some(scalar, pointer, mask);
        }
        let width = mask.get_type().get_size();
        let ty = self.memory_type(scalar, e.vector_type(scalar, width).into());
        let load = || e.load(ty, pointer, scalar.size_bytes() as u32);
        let load_some = || e.load_some(scalar, pointer, mask).into();
        let [(all, whole), (some, part)] = self.by_mask(mask, load, load_some);
        let phi = e.builder.build_phi(ty, "").expect(BUILT);
        phi.add_incoming(&[(&all, whole), (&some, part)]);
        phi.as_basic_value().into_vector_value()
    }

    /// A vector from memory of whose lanes some are off, which get 0.
    pub fn load_some(
        &self,
        scalar: Scalar,
        pointer: PointerValue<'c>,
        mask: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let width = mask.get_type().get_size();
        let ty = self.memory_type(scalar, self.vector_type(scalar, width).into());
        let align = scalar.size_bytes() as u32;
        let value = self.masked_load(pointer, align, mask, ty.const_zero());
        value.into_vector_value()
    }

    /// Stores the lanes of a vector that are on, which may be all.
    pub fn store_masked(
        &self,
        value: BasicValueEnum<'c>,
        pointer: PointerValue<'c>,
        align: u32,
        mask: VectorValue<'c>,
    ) {
        let e = self;
        if e.target.has_avx512 {
            e.store_some(value, pointer, align, mask);
            return;
        }
        let store = || e.store(value, pointer, align);
        self.by_mask(mask, store, || e.store_some(value, pointer, align, mask));
    }

    /// Stores the lanes of a vector that are on, which are seldom all.
    pub fn store_some(
        &self,
        value: BasicValueEnum<'c>,
        pointer: PointerValue<'c>,
        align: u32,
        mask: VectorValue<'c>,
    ) {
        let args = [value, pointer.into(), self.i32(align).into(), mask.into()];
        let overloads = [value.get_type(), self.pointer_type().into()];
        self.masked("llvm.masked.store", &overloads, &args, 2);
    }

    /// Goes one way if all lanes of a mask are on, and another if not: where registers have no masks, accesses under
    /// one take many instructions, or one for each lane, and most vectors have all lanes on. What each way gives, and
    /// where it ends.
    fn by_mask<T>(
        &self,
        mask: VectorValue<'c>,
        whole: impl FnOnce() -> T,
        part: impl FnOnce() -> T,
    ) -> [(T, BasicBlock<'c>); 2] {
        let blocks = ["whole", "part"].map(|name| self.block(name));
        let join = self.block("joined");
        let bits = self.mask_bits(mask);
        let all = self.compare(IntPredicate::EQ, bits, bits.get_type().const_all_ones());
        self.branch_mostly(all, blocks[0], blocks[1]);
        self.go(blocks[0]);
        let whole = (whole(), self.here());
        self.branch(join);
        self.go(blocks[1]);
        let part = (part(), self.here());
        self.branch(join);
        self.go(join);
        [whole, part]
    }

    /// Vectors from anywhere; lanes that are off get 0.
    pub fn gather(
        &self,
        scalar: Scalar,
        pointers: VectorValue<'c>,
        mask: Option<VectorValue<'c>>,
    ) -> VectorValue<'c> {
        let e = self;
        let width = pointers.get_type().get_size();
        let ty = self.memory_type(scalar, e.vector_type(scalar, width).into());
        let align = e.i32(scalar.size_bytes() as u32);
        let all = || self.all_lanes(width);
        // Zeros are loaded elsewhere.
        let (pointers, mask) = match mask {
            Some(mask) if is_narrow(scalar) => (
                self.elsewhere(pointers, mask, self.zeros_in_memory()),
                all(),
            ),
            Some(mask) => (pointers, mask),
            None => (pointers, all()),
        };
        let args = [pointers.into(), align.into(), mask.into(), ty.const_zero()];
        let overloads = [ty, pointers.get_type().into()];
        let value = e.masked("llvm.masked.gather", &overloads, &args, 1);
        value.expect("a value").into_vector_value()
    }

    /// Vectors to anywhere.
    pub fn scatter(
        &self,
        scalar: Scalar,
        value: VectorValue<'c>,
        pointers: VectorValue<'c>,
        mask: Option<VectorValue<'c>>,
    ) {
        let e = self;
        if mask.is_none() && (is_narrow(scalar) || !e.target.has_avx512) {
            e.store_each(scalar, value, pointers);
            return;
        }
        let align = e.i32(scalar.size_bytes() as u32);
        let all = || self.all_lanes(pointers.get_type().get_size());
        let (pointers, mask) = match mask {
            Some(mask) if is_narrow(scalar) => {
                let waste = e.table(Role::Waste, e.context.i64_type().into());
                (self.elsewhere(pointers, mask, waste), all())
            }
            Some(mask) if !e.target.has_avx512 && e.inline_scatters.get() == 0 => {
                e.call_scatter(scalar, value, pointers, mask);
                return;
            }
            Some(mask) => {
                let left = e.inline_scatters.get();
                e.inline_scatters.set(left.saturating_sub(1));
                (pointers, mask)
            }
            None => (pointers, all()),
        };
        e.masked_scatter(value, pointers, align, mask);
    }

    fn masked_scatter(
        &self,
        value: VectorValue<'c>,
        pointers: VectorValue<'c>,
        align: IntValue<'c>,
        mask: VectorValue<'c>,
    ) {
        let args = [value.into(), pointers.into(), align.into(), mask.into()];
        let overloads = [value.get_type().into(), pointers.get_type().into()];
        self.masked("llvm.masked.scatter", &overloads, &args, 2);
    }

    /// As [`Emit::scatter`], by a function that is made once: where processors have no instruction for it, LLVM makes a
    /// block of each lane, and goes through all blocks from the first one again for each.
    fn call_scatter(
        &self,
        scalar: Scalar,
        value: VectorValue<'c>,
        pointers: VectorValue<'c>,
        mask: VectorValue<'c>,
    ) {
        let e = self;
        let name = format!("scatter.{scalar}.{}", mask.get_type().get_size());
        let given = [value.into(), pointers.into(), e.mask_bytes(mask).into()];
        e.call_for(&name, &given, None, |given| {
            let [value, pointers, mask] = [0, 1, 2].map(|n: usize| given[n].into_vector_value());
            let align = e.i32(scalar.size_bytes() as u32);
            e.masked_scatter(value, pointers, align, e.mask_of_bytes(mask));
            None
        });
    }

    /// Stores lane by lane, as the processor would: where places lie by known distances from each other, each then is
    /// one address and a distance.
    fn store_each(&self, scalar: Scalar, value: VectorValue<'c>, pointers: VectorValue<'c>) {
        for lane in 0..pointers.get_type().get_size() {
            let of = |vector: VectorValue<'c>| {
                let lane = self.i32(lane);
                let one = self.builder.build_extract_element(vector, lane, "");
                one.expect(BUILT)
            };
            let pointer = of(pointers).into_pointer_value();
            self.store(of(value), pointer, scalar.size_bytes() as u32);
        }
    }

    /// These places where a mask is on, and another one where it is off.
    pub fn elsewhere(
        &self,
        pointers: VectorValue<'c>,
        mask: VectorValue<'c>,
        other: PointerValue<'c>,
    ) -> VectorValue<'c> {
        let other = self.splat(other.into(), pointers.get_type().get_size());
        let picked = self.select(mask.into(), pointers.into(), other.into());
        picked.into_vector_value()
    }

    /// The lanes that are on in both masks.
    pub fn and_mask(
        &self,
        a: Option<VectorValue<'c>>,
        b: Option<VectorValue<'c>>,
    ) -> Option<VectorValue<'c>> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.and(a, b)),
            (one, None) | (None, one) => one,
        }
    }

    /// Stores a vector as two, which nothing makes one again.
    pub fn store_halves(&self, vector: VectorValue<'c>, pointer: PointerValue<'c>, align: u32) {
        let (e, ty) = (self, vector.get_type());
        let lanes = ty.get_size();
        for half in [0, lanes / 2] {
            let indices: Vec<_> = (half..half + lanes / 2).map(|n| e.i32(n)).collect();
            let part = e.builder.build_shuffle_vector(
                vector,
                ty.get_undef(),
                VectorType::const_vector(&indices),
                "",
            );
            let bytes = u64::from(half) * 64 / u64::from(lanes);
            let to = e.byte_offset(pointer, e.i64(bytes));
            let store = e.builder.build_store(to, part.expect(BUILT)).expect(BUILT);
            store.set_alignment(align).expect("a power of two");
            store.set_volatile(true).expect("a store");
        }
    }

    pub fn store_nontemporal(
        &self,
        value: BasicValueEnum<'c>,
        pointer: PointerValue<'c>,
        align_bytes: u64,
    ) {
        let e = self;
        let store = e.builder.build_store(pointer, value).expect(BUILT);
        store
            .set_alignment(align_bytes as u32)
            .expect("a power of two");
        let node = e.context.metadata_node(&[e.i32(1).into()]);
        let kind = e.context.get_kind_id("nontemporal");
        store.set_metadata(node, kind).expect("a store");
    }
}

/// Whether no machine has gathers or scatters of such elements: LLVM makes them lane by lane. Under a mask each
/// lane would have a branch, of which some thousands take it seconds; so all lanes act, and those that are
/// off where it makes no difference.
pub(crate) fn is_narrow(scalar: Scalar) -> bool {
    scalar.size_bytes() < 4
}
