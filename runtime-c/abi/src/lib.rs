//! What a module built by spile and the loader agree on: the Rust twin of `abi.h`, and the metadata in a `.ko`.

pub mod format;
pub mod meta;
