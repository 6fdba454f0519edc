//! Shows diagnostics with codespan-reporting.
