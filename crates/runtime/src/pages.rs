//! Large memory from the operating system, in large pages where it has them.
//!
//! What goes down a matrix touches a page for each row: with pages of 4 KiB a processor looks up most of its
//! addresses again and again, and a first write of each page is a fault of its own. So large buffers begin
//! at a large page, and the system is told to use such. It may not, and nothing but time depends on it.
//!
//! Deliberately absent: other systems than Linux, where the allocator's own answer stands.

/// Zeros of its own, given back when it is dropped.
pub(crate) struct Pages {
    #[cfg(target_os = "linux")]
    map: (std::ptr::NonNull<u8>, usize),
}

#[cfg(target_os = "linux")]
impl Pages {
    /// What Linux calls a huge page on x86-64, and on AArch64 with pages of 4 KiB.
    const LARGE: usize = 2 << 20;

    /// So many bytes, and where they begin, if so many are worth large pages. Gives none where the system
    /// has none left.
    pub(crate) fn zeroed(size: usize) -> Option<(Pages, std::ptr::NonNull<u8>)> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

        if size < Pages::LARGE {
            return None;
        }
        let total = size.checked_add(Pages::LARGE)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address, a mapping replaces no other.
        let map = unsafe { mmap_anonymous(std::ptr::null_mut(), total, access, MapFlags::PRIVATE) };
        let map = std::ptr::NonNull::new(map.ok()?.cast::<u8>())?;
        let pages = Pages { map: (map, total) };
        let skip = map.as_ptr().align_offset(Pages::LARGE);
        // SAFETY: the mapping has a large page more than `size`, and `skip` is less than that.
        let start = unsafe { map.add(skip) };
        // All of it, so that neighbours become one mapping: a process may have 65,530.
        // SAFETY: the range is the mapping's; the advice changes no byte. A refusal leaves small pages.
        let _ = unsafe { madvise(map.as_ptr().cast(), total, Advice::LinuxHugepage) };
        Some((pages, start))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Pages {
    fn drop(&mut self) {
        let (map, total) = self.map;
        // SAFETY: mapped in `zeroed`, and nothing uses it any more.
        let unmapped = unsafe { rustix::mm::munmap(map.as_ptr().cast(), total) };
        debug_assert!(unmapped.is_ok(), "this mapping is given back once");
    }
}

#[cfg(not(target_os = "linux"))]
impl Pages {
    pub(crate) fn zeroed(_: usize) -> Option<(Pages, std::ptr::NonNull<u8>)> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Pages;

    #[test]
    fn large_memory_begins_at_a_large_page_and_is_zero() {
        assert!(Pages::zeroed(Pages::LARGE - 1).is_none());
        let size = Pages::LARGE + 4097;
        let (pages, start) = Pages::zeroed(size).expect("a few megabytes");
        assert_eq!(start.as_ptr().align_offset(Pages::LARGE), 0);
        // SAFETY: the mapping is of that size, and of this thread only.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), size) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes.fill(255);
        drop(pages);
        let (_pages, start) = Pages::zeroed(size).expect("as much again");
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), size) };
        assert!(bytes.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn many_of_them_are_few_mappings() {
        let mappings = || {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells");
            maps.lines().count()
        };
        let before = mappings();
        let many: Vec<_> = (0..1000)
            .map(|_| Pages::zeroed(Pages::LARGE).expect("addresses"))
            .collect();
        let after = mappings();
        assert!(after < before + 500, "{before} and then {after}");
        drop(many);
    }

    #[test]
    fn more_than_there_is_is_not_had() {
        assert!(Pages::zeroed(usize::MAX).is_none());
        assert!(Pages::zeroed(1 << 62).is_none());
    }
}
