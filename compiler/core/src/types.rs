// SPDX-License-Identifier: GPL-2.0-or-later

//! The value types of the language, which builtins, elaboration and the program share.

/// The two value types of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// 64 bits, two's complement.
    Long,
    /// Bytes, at most MAXSTRINGLEN - 1.
    String,
}

impl Type {
    /// As written in messages.
    pub fn name(self) -> &'static str {
        match self {
            Type::Long => "long",
            Type::String => "string",
        }
    }
}
