// SPDX-License-Identifier: GPL-2.0-or-later

//! The running kernel's release, and valid names of modules.

/// The kernel's limit for module names (MODULE_NAME_LEN, including the NUL).
pub const MAX_NAME: usize = 56;

/// Whether it is a valid module name, as the kernel shows it.
pub fn is_module_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() < MAX_NAME && name.bytes().all(allowed)
}

/// Whether it is a valid kernel release, or empty.
pub fn is_release(release: &str) -> bool {
    !release.starts_with('.') && !release.bytes().any(|byte| byte == b'/' || !byte.is_ascii_graphic())
}

/// UTS release; empty if uname(2) fails.
pub fn running_release() -> String {
    nix::sys::utsname::uname().map(|names| names.release().to_string_lossy().into_owned()).unwrap_or_default()
}
