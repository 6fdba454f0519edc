//! Script text to [`ast`].

pub mod ast;
