//! The Invar kernel language.
