// SPDX-License-Identifier: GPL-2.0-or-later

//! Runs the kernel's Kbuild.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spile_abi::say::say;
use spile_base::programs;

use super::compiler::Compiler;
use super::{BuildError, Request};

/// Writes a file; creates its directory first.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let failed = |error: std::io::Error| BuildError::File { path: path.to_path_buf(), error: error.to_string() };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(path, bytes).map_err(failed)
}

/// The file's contents; the error names the file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    std::fs::read(path).map_err(|error| BuildError::File { path: path.to_path_buf(), error: error.to_string() })
}

/// The environment of every program of a build: messages in English, temporary files in the work directory, and none of the
/// variables of an outer make, or of a kernel that is built elsewhere (Documentation/kbuild/kbuild.rst): the runtime is kept for
/// others.
pub(super) fn environment(command: &mut Command, work: &Path) {
    for name in [
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "MAKEFILES",
        "KBUILD_OUTPUT",
        "KCFLAGS",
        "KCPPFLAGS",
        "KAFLAGS",
        "KRUSTFLAGS",
        "EXTRA_CFLAGS",
        "EXTRA_CPPFLAGS",
        "EXTRA_AFLAGS",
        "EXTRA_LDFLAGS",
        "CFLAGS_MODULE",
        "CFLAGS_KERNEL",
        "AFLAGS_MODULE",
        "AFLAGS_KERNEL",
        "LDFLAGS_MODULE",
        "LLVM",
        "LLVM_IAS",
        "KBUILD_EXTRA_SYMBOLS",
        "LOCALVERSION",
    ] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").env("TMPDIR", work);
}

/// `make -C BUILD_DIR M=work VARIABLES TARGETS`; returns its output.
pub(super) fn run(
    request: &Request,
    compiler: &Compiler,
    work: &Path,
    variables: &[String],
    targets: &[&str],
) -> Result<String, BuildError> {
    let mut make = Command::new("make");
    environment(&mut make, work);
    if let Some(makefile) = makefile_below_root(&request.build_dir) {
        make.arg("-f").arg(makefile.common);
        if let Some(output) = makefile.output {
            make.arg(format!("KBUILD_OUTPUT={}", output.display()));
        }
    }
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    make.arg("-C")
        .arg(&request.build_dir)
        .arg(format!("M={}", work.display()))
        .arg(format!("-j{jobs}"))
        .args(&compiler.make)
        .args(&request.make);
    // With a vmlinux in the tree, Kbuild would generate BTF for each module, with programs that may not be built there.
    make.arg("CONFIG_DEBUG_INFO_BTF_MODULES=");
    make.arg("--no-print-directory").args(variables).args(targets).stdin(Stdio::null());
    let output = programs::output(&mut make).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => BuildError::NoMake,
        _ => BuildError::Failed { log: format!("running make: {error}") },
    })?;
    let log = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if request.verbosity >= 3 {
        say(&spile_abi::escape::lines(&log));
    }
    if output.status.success() {
        return Ok(log);
    }
    Err(failed(log, compiler))
}

/// The error of a build with this output. Another compiler than the kernel's is named, as it may be the reason.
fn failed(log: String, compiler: &Compiler) -> BuildError {
    let mut lines = errors_in(&log);
    let warning = compiler.warning.clone();
    if lines.is_empty() {
        BuildError::Failed { log: [log].into_iter().chain(warning).collect::<Vec<_>>().join("\n") }
    } else {
        lines.extend(warning);
        BuildError::Compile { lines }
    }
}

/// What a Makefile of Debian includes.
#[derive(Debug, PartialEq, Eq)]
struct Included {
    common: PathBuf,
    /// Its own directory, if it names that, too.
    output: Option<PathBuf>,
}

/// Debian's build directories have a Makefile with one line, `include /usr/src/OTHER/Makefile`, and since 6.13 before it
/// `KBUILD_OUTPUT=/usr/src/OWN`. Below the root directory of another system (--sysroot) these are the ones that are there, not those of
/// this system, in which the build would write.
fn makefile_below_root(build_dir: &Path) -> Option<Included> {
    let text = std::fs::read_to_string(build_dir.join("Makefile")).ok()?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (included, output): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with("include "));
    let own = |line: &&str| line.strip_prefix("KBUILD_OUTPUT").is_some_and(|rest| rest.trim_start().starts_with('='));
    let [included] = included.as_slice() else { return None };
    let included = Path::new(included.strip_prefix("include ")?.trim());
    let place = included.parent()?.parent()?;
    // make works in that directory, where a relative path would be another one.
    let build_dir = build_dir.canonicalize().ok()?;
    let beside = build_dir.parent()?.to_path_buf();
    let inside = place.strip_prefix("/").ok().filter(|inside| !inside.as_os_str().is_empty())?;
    let is_below_root = beside != place && beside.ends_with(inside);
    let common = beside.join(included.strip_prefix(place).ok()?);
    let is_known = output.len() < 2 && output.iter().all(own) && is_below_root && common.is_file();
    is_known.then(|| Included { common, output: (!output.is_empty()).then_some(build_dir) })
}

/// Errors of the compiler and of modpost. Commands, which make prints too, are indented.
pub(super) fn errors_in(log: &str) -> Vec<String> {
    let is_error =
        |line: &&str| !line.starts_with(' ') && line.contains("error:") || line.starts_with("ERROR: modpost:");
    log.lines().filter(is_error).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_another_build_are_not_passed_on() {
        let mut command = Command::new("make");
        environment(&mut command, Path::new("/work"));
        let removed = |name: &str| command.get_envs().any(|(is, value)| is == name && value.is_none());
        for name in ["KCPPFLAGS", "KCFLAGS", "KAFLAGS", "EXTRA_CFLAGS", "CFLAGS_MODULE", "LDFLAGS_MODULE", "LLVM"] {
            assert!(removed(name), "{name}");
        }
        assert!(!removed("PATH") && !removed("CPATH"));
    }

    #[test]
    fn a_failed_build_names_another_compiler() {
        let warning = "the kernel was built with gcc-14, gcc-12 is version 12: install gcc-14 if the build fails";
        let other = |warning: Option<&str>| Compiler {
            make: Vec::new(),
            identity: String::new(),
            is_driver: true,
            warning: warning.map(str::to_string),
        };
        let unknown = "gcc-12: error: unrecognized command-line option '-fmin-function-alignment=16'";
        let compile = |lines: &[&str]| BuildError::Compile { lines: lines.iter().map(ToString::to_string).collect() };
        assert_eq!(failed(format!("  CC x.o\n{unknown}\n"), &other(Some(warning))), compile(&[unknown, warning]));
        assert_eq!(failed(unknown.to_string(), &other(None)), compile(&[unknown]));
        let log = "make: *** [Makefile:1] Killed".to_string();
        assert_eq!(failed(log.clone(), &other(Some(warning))), BuildError::Failed { log: format!("{log}\n{warning}") });
    }

    #[test]
    fn the_makefile_of_another_systems_headers() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (build, common) = (root.join("usr/src/headers"), root.join("usr/src/headers-common/Makefile"));
        write(&common, b"all:").unwrap();
        let found = |makefile: &str| {
            write(&build.join("Makefile"), makefile.as_bytes()).unwrap();
            makefile_below_root(&build)
        };
        let expected = |output| Some(Included { common: common.clone(), output });
        assert_eq!(found("# Debian\ninclude /usr/src/headers-common/Makefile\n"), expected(None));
        let newer = "KBUILD_OUTPUT=/usr/src/headers\ninclude /usr/src/headers-common/Makefile\n";
        assert_eq!(found(newer), expected(Some(build.clone())));
        for other in [
            "include /usr/src/missing/Makefile",
            "include ../headers-common/Makefile",
            "include /opt/src/headers-common/Makefile",
            "include /headers-common/Makefile",
            "include /usr/src/headers-common/Makefile\nall:",
            "KBUILD_OUTPUT=/usr/src/headers",
            "KBUILD_EXTMOD=/usr/src/headers\ninclude /usr/src/headers-common/Makefile",
            "",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
        assert_eq!(makefile_below_root(&root), None);
    }

    #[test]
    fn commands_are_no_errors() {
        let log = "  gcc -c x.c | grep ': error: '\nx.c: In function 'f':\nx.c:2:7: error: 'y' undeclared\n    2 |  error: y;\nERROR: modpost: \"z\" undefined!\n";
        assert_eq!(errors_in(log), ["x.c:2:7: error: 'y' undeclared", "ERROR: modpost: \"z\" undefined!"]);
    }
}
