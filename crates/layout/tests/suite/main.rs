//! What the layout algebra promises.

mod behaviour;
mod cases;
mod hostile;
mod laws;
mod pictures;
