// SPDX-License-Identifier: GPL-2.0-or-later

//! The qemu for guests whose CPUs run at the same time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The qemu of Debian 13: fetched once, and run with the libraries that came with it.
pub fn emulator(root: &Path) -> Result<PathBuf> {
    let system = root.join("target/roots/qemu");
    let program = system.join("qemu");
    if program.is_file() {
        return Ok(program);
    }
    crate::setup::install_tool("/usr/bin/mmdebstrap", "mmdebstrap")?;
    println!("setup: fetching qemu of Debian trixie (some 60 MB) ...");
    if system.exists() {
        std::fs::remove_dir_all(&system).with_context(|| format!("removing {}", system.display()))?;
    }
    std::fs::create_dir_all(&system)?;
    let output = Command::new("mmdebstrap")
        .args(["--variant=extract", "--include=qemu-system-x86", "trixie"])
        .arg(&system)
        .arg("deb http://deb.debian.org/debian trixie main")
        .stdin(Stdio::null())
        .output()
        .context("running mmdebstrap")?;
    ensure!(output.status.success(), "mmdebstrap failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let made = tempfile::NamedTempFile::new_in(&system)?;
    std::fs::write(made.path(), launcher(&system))?;
    std::fs::set_permissions(made.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    made.persist(&program).context("putting qemu's launcher into its place")?;
    Ok(program)
}

fn launcher(system: &Path) -> String {
    let system = system.display();
    format!(
        "#!/bin/sh\nlibraries={system}/usr/lib/x86_64-linux-gnu\n\
         exec {system}/usr/lib64/ld-linux-x86-64.so.2 --library-path \"$libraries:$libraries/pulseaudio\" \
         {system}/usr/bin/qemu-system-x86_64 -L {system}/usr/share/qemu -L {system}/usr/share/seabios \"$@\"\n"
    )
}
