// SPDX-License-Identifier: GPL-2.0-or-later

//! Users and groups by name, from /etc/passwd and /etc/group.
//!
//! Read here instead of with getpwnam(3), for which a static program would need the C library's shared modules at run
//! time. Accounts of a directory service are given by number, which is always accepted.

use std::fs;

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// UID of the user; `None`: the file does not have that user.
pub fn user_id(name: &str) -> Option<u32> {
    number(&fs::read_to_string(USERS).ok()?, name)
}

/// Name of the user, for messages; the UID if the file does not have it.
pub fn user_name(id: u32) -> String {
    let file = fs::read_to_string(USERS).unwrap_or_default();
    let line = file.lines().find(|line| line.split(':').nth(2).and_then(|number| number.parse().ok()) == Some(id));
    line.and_then(|line| line.split(':').next()).map_or_else(|| id.to_string(), str::to_string)
}

/// GID of the group; `None`: the file does not have that group.
pub fn group_id(name: &str) -> Option<u32> {
    number(&fs::read_to_string(GROUPS).ok()?, name)
}

/// Third field of the line whose first is `name` (passwd(5), group(5)).
fn number(file: &str, name: &str) -> Option<u32> {
    let line = file.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split(':').nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_third() {
        let file = "root:x:0:0:root:/root:/bin/sh\n# adm:x:9\nadm:x:4:a,b\nbroken:x\n";
        assert_eq!((number(file, "root"), number(file, "adm")), (Some(0), Some(4)));
        assert_eq!((number(file, "broken"), number(file, "x"), number(file, "")), (None, None, None));
        assert_eq!(user_id("root"), Some(0));
        assert_eq!((user_name(0), user_name(4_000_000_000)), ("root".to_string(), "4000000000".to_string()));
    }
}
