// SPDX-License-Identifier: GPL-2.0-or-later

//! The running kernel's release, and which names its modules can have.

/// The kernel's limit for names of modules (MODULE_NAME_LEN, the NUL included).
pub const MAX_NAME: usize = 56;

/// Whether it can be the name of a module as the kernel shows it.
pub fn is_module_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() < MAX_NAME && name.bytes().all(allowed)
}

/// Whether it can be what a kernel is called, or nothing.
pub fn is_release(release: &str) -> bool {
    !release.starts_with('.') && !release.bytes().any(|byte| byte == b'/' || !byte.is_ascii_graphic())
}

/// UTS release; empty if the kernel does not say.
pub fn running_release() -> String {
    nix::sys::utsname::uname().map(|names| names.release().to_string_lossy().into_owned()).unwrap_or_default()
}
