//! spile: from a SystemTap script to a loadable kernel module. See ARCHITECTURE.md for the passes.

pub mod diagnostic;
pub mod guest;
pub mod source;
pub mod syntax;
