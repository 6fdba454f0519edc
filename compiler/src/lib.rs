//! spile: from a SystemTap script to a loadable kernel module. See ARCHITECTURE.md for the passes.

pub mod builtin;
pub mod cache;
pub mod check;
pub mod cli;
pub mod debuginfo;
pub mod diagnostic;
pub mod driver;
pub mod elaborate;
pub mod emit;
pub mod finished;
pub mod glob;
pub mod guest;
pub mod inspect;
pub mod kbuild;
pub mod library;
pub mod package;
pub mod plan;
pub mod probe;
pub mod program;
pub mod regex;
pub mod scratch;
pub mod source;
pub mod syntax;
pub mod syscalls;
pub mod target;
