// SPDX-License-Identifier: GPL-2.0-or-later

//! The file with the debug information that several others share, as dwz(1) makes it: by the name in `.gnu_debugaltlink`,
//! and by build-id.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::object::Elf;

/// None: the object shares nothing. The shared file must be there and have the right build-id.
pub(super) fn open(elf: &Elf) -> Result<Option<Arc<Elf>>, Error> {
    let Some((name, build_id)) = elf.shared_link() else { return Ok(None) };
    let wanted = hex::encode(&build_id);
    let fits =
        |path: &PathBuf| -> Option<Elf> { Elf::open_program(path).ok().filter(|file| file.build_id() == build_id) };
    let found = places(elf.path(), &name, &wanted).iter().find_map(fits);
    let missing = || Error::Dwarf {
        path: elf.path().into(),
        offset: None,
        message: format!("it shares a part with {}, of build-id {wanted}, which is not there", name.display()),
    };
    found.map(|file| Some(Arc::new(file))).ok_or_else(missing)
}

/// Beside the object or at the path given; below the directory of debug files that the object is in, and the system's.
fn places(path: &Path, name: &Path, build_id: &str) -> Vec<PathBuf> {
    let beside = path.parent().unwrap_or(Path::new("."));
    let mut places = vec![beside.join(name)];
    places.extend(name.file_name().map(|file| beside.join(".dwz").join(file)));
    let roots = path.ancestors().filter(|above| above.ends_with("usr/lib/debug")).map(Path::to_path_buf);
    for root in roots.chain([PathBuf::from("/usr/lib/debug")]) {
        if let Some((first, rest)) = build_id.split_at_checked(2) {
            places.push(root.join(".build-id").join(first).join(format!("{rest}.debug")));
        }
        places.extend(name.file_name().map(|file| root.join(".dwz").join(file)));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_may_be() {
        let found = places(Path::new("/r/usr/lib/debug/boot/vmlinux"), Path::new("../.dwz/x.debug"), "abcdef");
        let wanted = [
            "/r/usr/lib/debug/boot/../.dwz/x.debug",
            "/r/usr/lib/debug/.build-id/ab/cdef.debug",
            "/usr/lib/debug/.dwz/x.debug",
        ];
        assert!(wanted.iter().all(|path| found.contains(&PathBuf::from(path))), "{found:?}");
    }
}
