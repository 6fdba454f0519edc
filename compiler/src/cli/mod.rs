//! The command line: stap's options, and what is printed around the passes.

pub mod cache;
pub mod describe;
pub mod globals;
pub mod limits;
pub mod options;
pub mod relevant;
pub mod passes;
pub mod places;
pub mod progress;
pub mod report;
pub mod rc;
mod accepted;
pub mod example;
mod refused;
pub mod version;
