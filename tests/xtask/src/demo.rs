// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask demo`: shows a live workaround from scratch, with the commands used.

use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use spile_guest::{End, Streams};

use crate::fixtures::LUSTRE;
use crate::place::Place;

/// The guest's script; it checks its output.
const STORY: &str = include_str!("demo.sh");
const LIBRARY: &str = include_str!("test/library.sh");

/// Builds everything, and shows a workaround in a guest.
pub fn run() -> Result<ExitCode> {
    let root = crate::root();
    let place = Place::find(None)?;
    println!("building spile and spilerun");
    crate::programs::build_programs(&root)?;
    let release = &place.kernel.release;
    println!("building the test modules for kernel {release}");
    let lustre = LUSTRE.build(&root, &place)?;
    let mut guest = crate::guest::equipped(&root, &place)?;

    println!("\nThe script of the workaround, examples/lu_5642/lu_5642.stp:\n");
    let script = root.join("examples/lu_5642/lu_5642.stp");
    let text = std::fs::read_to_string(&script).with_context(|| format!("reading {}", script.display()))?;
    text.lines().for_each(|line| println!("    {line}"));

    println!(
        "\nIt is compiled here, for the guest's kernel. (-d says where the module lustre is; an installed one is found.)\n"
    );
    let directory = tempfile::tempdir().context("making a directory")?;
    println!("  $ spile -g -p4 -m lu_5642 -r {release} -d {} examples/lu_5642/lu_5642.stp", shown(&root, &lustre));
    let status = Command::new(root.join("target/debug/spile"))
        .args(["-g", "-p4", "-m", "lu_5642", "-r", release, "-d"])
        .arg(&lustre)
        .arg(&script)
        .current_dir(directory.path())
        .status()
        .context("running spile")?;
    ensure!(status.success(), "the script does not compile");

    guest.copy(directory.path().join("lu_5642.ko"), "/root/lu_5642.ko")?;
    guest.write("/root/library.sh", LIBRARY, 0o644);
    guest.script(STORY).time_limit(Duration::from_secs(300) * crate::measure::busy());
    println!("\nlu_5642.ko goes to where it is needed, here a throw-away guest; nothing is loaded on this machine.");
    let outcome = guest.start(Streams::inherit())?.wait()?;
    match outcome.end {
        End::Exited(0) => {}
        End::Exited(_) => bail!("the demonstration did not come to its end"),
        End::Died | End::Killed => bail!("the guest ended early:\n{}", outcome.console),
    }
    println!(
        "\nOn your own host (as root, with the packages linux-headers-$(uname -r) and linux-image-$(uname -r)-dbg):\n"
    );
    println!("  # spile -g lu_5642.stp                   compile and run until ^C");
    println!("  $ spile -g -p4 -m lu_5642 lu_5642.stp    only compile, to lu_5642.ko");
    println!("  # spilerun lu_5642.ko                    run it, on a host that has nothing else");
    println!("  $ spile --guest -g lu_5642.stp           try it in a guest of the same kernel first");
    Ok(ExitCode::SUCCESS)
}

/// A path as a reader would type it.
fn shown(root: &std::path::Path, path: &std::path::Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
