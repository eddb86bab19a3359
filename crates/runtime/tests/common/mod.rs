//! What several tests share.

use invar_runtime::Device;

/// The devices that compute on the host. Unlike a GPU they can be stopped, and work in the host's memory.
pub fn hosts() -> Vec<Device> {
    let named = ["cpu", "checked"].into_iter().map(Device::named);
    named.filter_map(Result::ok).collect()
}
