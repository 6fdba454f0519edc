// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds the installed kernel that a guest boots, and its modules.
//!
//! A guest needs only the image; the default is the newest release that also has headers and debug information, since
//! scripts are compiled for it on this host. The running kernel is not considered: in a container or a micro-VM, the
//! host's kernel is often not installed.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::module_table::ModuleTable;

/// One installed kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// `uname -r`: `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The compressed image, `/boot/vmlinuz-RELEASE`.
    pub image: PathBuf,
    /// `/lib/modules/RELEASE`; may be missing if the kernel has no modules.
    pub modules: PathBuf,
}

impl Kernel {
    /// The kernel of this release; it needs only an image.
    pub fn find(release: &str) -> Result<Kernel, Error> {
        Kernel::find_in(Path::new("/"), release)
    }

    /// The same in the system below `root`.
    pub fn find_in(root: &Path, release: &str) -> Result<Kernel, Error> {
        let modules = root.join("lib/modules").join(release);
        let looked = vec![root.join("boot").join(format!("vmlinuz-{release}")), modules.join("vmlinuz")];
        match looked.iter().find(|image| image.is_file()) {
            Some(image) => Ok(Kernel { release: release.to_string(), image: image.clone(), modules }),
            None => Err(Error::Missing { what: "kernel image", looked, package: format!("linux-image-{release}") }),
        }
    }

    /// The newest release with image, headers and debug information.
    pub fn newest() -> Result<Kernel, Error> {
        Kernel::newest_in(Path::new("/"))
    }

    /// The same for the kernels of a system below `root`, such as another release of the distribution.
    pub fn newest_in(root: &Path) -> Result<Kernel, Error> {
        let mut releases = installed(root);
        releases.sort_by(|a, b| compare_releases(b, a));
        let mut lacking = Vec::new();
        for release in releases {
            match first_missing(root, &release) {
                None => return Kernel::find_in(root, &release),
                Some(what) => lacking.push((release, what)),
            }
        }
        Err(Error::NoKernel { wanted: None, lacking })
    }

    /// This release, if scripts can be compiled for it here.
    pub fn complete(release: &str) -> Result<Kernel, Error> {
        match first_missing(Path::new("/"), release) {
            None => Kernel::find(release),
            Some(what) => {
                Err(Error::NoKernel { wanted: Some(release.to_string()), lacking: vec![(release.to_string(), what)] })
            }
        }
    }

    /// What depmod has written of its modules.
    pub(super) fn module_table(&self) -> Result<ModuleTable, Error> {
        ModuleTable::read(&self.modules, &self.release)
    }
}

fn installed(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join("lib/modules")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The first thing that is missing to compile scripts for this release and run them in it, if any.
fn first_missing(root: &Path, release: &str) -> Option<&'static str> {
    let modules = root.join("lib/modules").join(release);
    let debug = root.join("usr/lib/debug");
    let debug_files = [
        debug.join("boot").join(format!("vmlinux-{release}")),
        debug.join("lib/modules").join(release).join("vmlinux"),
        modules.join("build/vmlinux"),
    ];
    if Kernel::find_in(root, release).is_err() {
        Some("image")
    } else if !within(root, &modules.join("build")).join("Makefile").is_file() {
        Some("headers")
    } else if !debug_files.iter().any(|file| file.is_file()) {
        Some("debug information")
    } else {
        None
    }
}

/// Resolves a symbolic link with `root` as the root directory; other paths are returned unchanged.
fn within(root: &Path, link: &Path) -> PathBuf {
    match fs::read_link(link) {
        Ok(to) if to.is_absolute() => root.join(to.strip_prefix("/").unwrap_or(&to)),
        _ => link.to_path_buf(),
    }
}

/// Orders releases, older first: runs of digits as numbers, the rest as text, so that 6.9 comes before 6.12.
pub fn compare_releases(a: &str, b: &str) -> Ordering {
    parts(a).cmp(&parts(b))
}

/// Text sorts before numbers: 6.1.0 is newer than 6.1-rc1.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Text(&'a str),
    Number(u64),
}

fn parts(release: &str) -> Vec<Part<'_>> {
    release.split(['.', '-', '+', '~']).map(|part| part.parse().map_or(Part::Text(part), Part::Number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_with(releases: &[(&str, &[&str])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (release, parts) in releases {
            let mut files = vec![format!("lib/modules/{release}/modules.order")];
            for part in *parts {
                files.push(match *part {
                    "image" => format!("boot/vmlinuz-{release}"),
                    "headers" => format!("lib/modules/{release}/build/Makefile"),
                    _ => format!("usr/lib/debug/boot/vmlinux-{release}"),
                });
            }
            for file in files {
                let path = root.path().join(file);
                fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
                fs::write(path, "").expect("a file");
            }
        }
        root
    }

    #[test]
    fn the_newest_complete_release_is_taken() {
        let all: &[&str] = &["image", "headers", "debug"];
        let root = root_with(&[("6.9.0-1-amd64", all), ("6.12.0-1-amd64", all), ("7.0.0-1-amd64", &["image"])]);
        let kernel = Kernel::newest_in(root.path()).expect("a kernel");
        assert_eq!(kernel.release, "6.12.0-1-amd64");
    }

    #[test]
    fn an_error_names_what_a_release_lacks() {
        let root = root_with(&[("6.1.0-1-amd64", &["image", "headers"])]);
        let error = Kernel::newest_in(root.path()).expect_err("nothing complete");
        assert!(error.to_string().contains("6.1.0-1-amd64 lacks its debug information"), "{error}");
    }

    #[test]
    fn links_of_another_root_stay_in_it() {
        let root = root_with(&[("6.1.0", &["image", "debug"])]);
        let build = root.path().join("lib/modules/6.1.0/build");
        std::os::unix::fs::symlink("/usr/src/headers", &build).expect("a link");
        assert!(Kernel::newest_in(root.path()).is_err());
        fs::create_dir_all(root.path().join("usr/src/headers")).expect("a directory");
        fs::write(root.path().join("usr/src/headers/Makefile"), "").expect("a file");
        assert_eq!(Kernel::newest_in(root.path()).expect("a kernel").release, "6.1.0");
    }

    #[test]
    fn numbers_in_releases_are_numbers() {
        assert_eq!(compare_releases("6.9.0-1-amd64", "6.12.0-1-amd64"), Ordering::Less);
        assert_eq!(compare_releases("6.1.0-9-amd64", "6.1.0-10-amd64"), Ordering::Less);
        assert_eq!(compare_releases("6.1-rc1", "6.1.0"), Ordering::Less);
    }
}
