//! Memory that both sides see, and the wait until the host may look at it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use invar_ir::Rule;

use crate::Error;

/// How long one listens before polling again.
const LOOK: Duration = Duration::from_millis(20);

/// The first bytes of memory that both sides see, asked for.
pub(crate) struct Mapping {
    memory: wgpu::Buffer,
    size: u64,
    told: Receiver<Result<(), wgpu::BufferAsyncError>>,
}

impl Mapping {
    /// Asks for them as they are when all that was submitted has run.
    pub(crate) fn ask(memory: &wgpu::Buffer, size: u64) -> Mapping {
        let (tell, told) = channel();
        memory
            .slice(..size)
            .map_async(wgpu::MapMode::Read, move |mapped| {
                // There is no receiver any more where the wait has failed.
                let _ = tell.send(mapped);
            });
        Mapping {
            memory: memory.clone(),
            size,
            told,
        }
    }

    /// Looks at them; `poll` waits for what was submitted.
    pub(crate) fn look<R>(
        self,
        poll: impl Fn() -> Result<(), Error>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, Error> {
        let unreadable = |why: String| {
            let message = format!("the contents of a buffer cannot be read: {why}");
            Error::new(Rule::DeviceLost, message)
        };
        let mapped = loop {
            poll()?;
            // Another thread that polls may be the one that maps it.
            match self.told.recv_timeout(LOOK) {
                Ok(mapped) => break mapped,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(unreadable(
                        "the driver did not say whether it was mapped".to_string(),
                    ));
                }
            }
        };
        mapped.map_err(|error| unreadable(error.to_string()))?;
        let view = self.memory.slice(..self.size).get_mapped_range();
        let out = look(&view.map_err(|error| unreadable(error.to_string()))?);
        self.memory.unmap();
        Ok(out)
    }
}
