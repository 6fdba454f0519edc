// SPDX-License-Identifier: GPL-2.0-or-later

//! The language server: editors ask about a script as it is typed, by the Language Server Protocol (3.17) over standard
//! input and output. One thread answers, in the order of the messages; a script is checked when no message waits.
//!
//!     transport -> inbox -> server -> check, complete, hover, navigate, ... -> workspace (kernel, library) and scan (the words of a script)
//!
//! The passes of the compiler find what a script means on a kernel: [`check`] reports the same errors as compiling
//! would. An incomplete script does not parse, so the place of the cursor is found by tokens ([`scan`], [`context`]).
//! The process reads files and writes none ([`confine`]).

mod check;
mod complete;
mod confine;
mod context;
mod diagnostics;
mod hover;
mod inbox;
mod language;
mod members;
mod navigate;
mod place;
mod scan;
mod semantic;
mod server;
mod settings;
mod signature;
mod structure;
mod text;
mod transport;
mod workspace;

pub use confine::confine;
pub use server::{serve, serve_streams};
pub use settings::Settings;
