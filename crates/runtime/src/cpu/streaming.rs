//! From which size on the CPU device keeps what a kernel only writes out of the caches.
//!
//! A buffer smaller than the last cache may still be there when the next dispatch reads it, which is worth
//! more than what a plain store costs; of a larger one the beginning is gone before its end is written. So it
//! is the size of that cache, or `INVAR_STREAM_BYTES`.
//!
//! The size is the kernel's of the operating system, of the cache that one processor sees: the C library's
//! number adds up those of all groups of cores on some machines.

use std::path::Path;

use invar_ir::once::Once;

use super::settings;

/// Where nothing tells: what a core's last cache holds on common servers, and more than on other machines.
const DEFAULT_BYTES: u64 = 32 << 20;

/// The least bytes of a buffer that is written past the caches.
pub(crate) fn least_bytes() -> u64 {
    static BYTES: Once<u64> = Once::new();
    *BYTES.get_or_make(|| {
        let caches = Path::new("/sys/devices/system/cpu/cpu0/cache");
        let own = || largest(caches).unwrap_or(DEFAULT_BYTES);
        settings::stream_bytes().unwrap_or_else(own)
    })
}

/// The largest of the caches in a folder of Linux.
fn largest(caches: &Path) -> Option<u64> {
    let sizes = std::fs::read_dir(caches).ok()?.filter_map(|cache| {
        let text = std::fs::read_to_string(cache.ok()?.path().join("size")).ok()?;
        bytes_of(text.trim())
    });
    sizes.max()
}

/// A size as Linux writes it: `32768K`.
fn bytes_of(text: &str) -> Option<u64> {
    let kibibytes: u64 = text.strip_suffix('K')?.parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_cache_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(largest(folder.path()), None);
        for (name, size) in [
            ("index0", "32K\n"),
            ("index3", "16384K\n"),
            ("index2", "1024K\n"),
        ] {
            let cache = folder.path().join(name);
            std::fs::create_dir(&cache).expect("a folder in it");
            std::fs::write(cache.join("size"), size).expect("a file in that");
        }
        std::fs::write(folder.path().join("uevent"), "").expect("a file");
        assert_eq!(largest(folder.path()), Some(16 << 20));
        assert_eq!(largest(&folder.path().join("index9")), None);
        assert_eq!(bytes_of("64M"), None);
    }
}
