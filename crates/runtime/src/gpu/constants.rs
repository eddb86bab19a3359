//! Values and sizes that dispatches take along, in one buffer of a GPU.
//!
//! Equal ones have one place, which they keep from batch to batch while there is room: a kernel that is
//! dispatched again and again with the same sizes sends nothing.
//!
//! Invariant: a place is given to something else only after what was recorded with it was sent.

use std::collections::HashMap;

/// Bytes of them that a batch may have.
pub(crate) const CONSTANT_BYTES: u64 = 64 << 10;

pub(crate) struct Constants {
    memory: wgpu::Buffer,
    bytes: Vec<u8>,
    places: HashMap<Box<[u8]>, u32>,
    /// How many bytes were sent.
    sent: usize,
    /// Places are multiples of this.
    alignment: usize,
}

/// The size of a binding that holds so many bytes.
pub(crate) fn bound_bytes(size: usize) -> u64 {
    size.next_multiple_of(16) as u64
}

impl Constants {
    pub(crate) fn new(device: &wgpu::Device, limits: &wgpu::Limits) -> Constants {
        Constants {
            memory: device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: CONSTANT_BYTES,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
            bytes: Vec::new(),
            places: HashMap::new(),
            sent: 0,
            alignment: limits.min_uniform_buffer_offset_alignment.max(16) as usize,
        }
    }

    pub(crate) fn memory(&self) -> &wgpu::Buffer {
        &self.memory
    }

    /// Whether there is room for all of these, none of which may have a place.
    pub(crate) fn have_room_for(&self, values: &[Vec<u8>]) -> bool {
        let space = |bytes: &Vec<u8>| bytes.len().next_multiple_of(self.alignment);
        let all: usize = values.iter().map(space).sum();
        self.bytes.len() + all <= CONSTANT_BYTES as usize
    }

    /// The place of a value, for which there is room.
    pub(crate) fn place(&mut self, value: &[u8]) -> u32 {
        if let Some(place) = self.places.get(value) {
            return *place;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len().next_multiple_of(self.alignment);
        self.bytes.resize(end, 0);
        self.places.insert(value.into(), start as u32);
        start as u32
    }

    /// Sends what is new: it is copied before what is submitted next runs, and after what was submitted
    /// earlier.
    pub(crate) fn send(&mut self, queue: &wgpu::Queue) {
        let new = &self.bytes[self.sent..];
        if !new.is_empty() {
            queue.write_buffer(&self.memory, self.sent as u64, new);
            self.sent = self.bytes.len();
        }
    }

    /// Forgets all places.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.sent = 0;
    }
}
