//! What the atomics of a location have released, for those that acquire from it (O4).

use std::sync::Arc;

use super::clock::{Clock, join};
use super::{Scope, Spaces};

/// Clocks in the happens-before of device memory and in that of threadgroup memory.
pub(super) type Message = [Arc<Clock>; 2];

/// The spaces whose happens-before releases and acquires take part in, as `Message` has them.
pub(super) const MESSAGE_SPACES: Spaces = Spaces::DEVICE_AND_THREADGROUP;

/// The releases that a location's present value carries: that of the store it is from and those of
/// the read-modify-writes since. A relaxed or plain store carries none.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// All of device scope together.
    device: Option<Message>,
    /// Of either scope, by the releasing thread's threadgroup; only running ones are needed.
    by_threadgroup: Vec<(u64, Message)>,
}

fn join_messages(x: &Message, y: &Message) -> Message {
    [join(&x[0], &y[0]), join(&x[1], &y[1])]
}

impl Released {
    /// A thread of `threadgroup` releases `message`.
    pub(super) fn release(
        &mut self,
        threadgroup: u64,
        scope: Scope,
        message: &Message,
        is_running: impl Fn(u64) -> bool,
    ) {
        if scope == Scope::Device {
            self.device = Some(match &self.device {
                Some(earlier) => join_messages(earlier, message),
                None => message.clone(),
            });
        }
        self.by_threadgroup.retain(|(index, _)| is_running(*index));
        let mut earlier = self.by_threadgroup.iter_mut();
        match earlier.find(|(index, _)| *index == threadgroup) {
            Some((_, earlier)) => *earlier = join_messages(earlier, message),
            None => self.by_threadgroup.push((threadgroup, message.clone())),
        }
    }

    /// What a thread of `threadgroup` acquires: the releases whose scope includes it and which its
    /// own scope includes.
    pub(super) fn acquire(&self, threadgroup: u64, scope: Scope) -> impl Iterator<Item = &Message> {
        let device = self.device.iter().filter(move |_| scope == Scope::Device);
        let own = self.by_threadgroup.iter();
        let own = own.filter(move |(index, _)| *index == threadgroup);
        device.chain(own.map(|(_, message)| message))
    }
}
