// SPDX-License-Identifier: GPL-2.0-or-later

//! What the runtime itself calls: a probe there runs while a handler of another one does, or its own. The names are the
//! undefined symbols of a module that needs all parts of the runtime, so none is forgotten when the runtime calls something new.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSymbol};

use crate::place::Place;

/// Has probes of all families, and uses arrays, aggregates, stacks, symbols, memory and files.
const ALL_PARTS: &str = r#"
global n, text, a, by, sums, given = 1
probe begin, end, error { n += given }
probe kernel.function("vfs_read"), kernel.function("vfs_read").return, kernel.function("vfs_*").call, kprobe.function("vfs_write"),
  kernel.statement("vfs_read@fs/read_write.c:*") ?, module("*").function("*_init").call ? {
  a[tid()]++; by[execname(), ppfunc()] <<< n; sums <<< n; text = sprint_backtrace() . sprint_ubacktrace() . symname(n) . usymname(n)
  n += kernel_long(n) + user_long(n) + strlen(kernel_string(n)) + strlen(user_string(n)) + gettimeofday_ns() + cpu() + pid() + uid() + ppid()
}
probe kernel.function("vfs_read").return { n += @entry(n); printf("%s %d %m\n", text, n, n); print_backtrace(); print_ubacktrace() }
probe kernel.trace("sched_switch"), kernel.data("jiffies_64").write, timer.ms(100), timer.profile, timer.hz(100),
  perf.type(1).config(0).sample(100000), netfilter.ip.local_in { foreach (k in a-) n += k; print(@hist_log(sums)); delete a }
probe process("/lib/x86_64-linux-gnu/libc.so.6").function("malloc").call, process("/lib/x86_64-linux-gnu/libc.so.6").function("malloc").return,
  process("/bin/sh").begin, process("/bin/sh").end, process("/bin/sh").syscall, process.thread.begin ? {
  n++; text = ubacktrace() . cmdline_str() . env_var("PATH")
}
probe syscall.openat, syscall.openat.return { text = argstr }
probe procfs("read").read { $value = text }
probe procfs("write").write { text = $value }
"#;
const NAME: &str = "all_parts";
/// In a hand-written script: all of these functions, `CALLED`, `CALLED.call` or `CALLED.return`.
const MARK: &str = "CALLED";

/// The functions, and the variables, that the runtime refers to on this kernel.
pub fn called(place: &Place, directory: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(directory)?;
    fs::write(directory.join(format!("{NAME}.stp")), ALL_PARTS)?;
    let mut command = place.command(place.spile()?, directory);
    let output =
        command.args(["-r", &place.kernel.release, "-p4", "-w", "-m", NAME, &format!("{NAME}.stp")]).output()?;
    ensure!(output.status.success(), "{NAME}: {}", String::from_utf8_lossy(&output.stderr));
    let bytes = fs::read(directory.join(format!("{NAME}.ko")))?;
    let names = undefined(&bytes).context("reading the module with all parts of the runtime")?;
    ensure!(names.len() > 150, "a module with all parts of the runtime calls only {} functions", names.len());
    Ok(names)
}

fn undefined(module: &[u8]) -> Result<Vec<String>> {
    let file = object::File::parse(module)?;
    let names: BTreeSet<String> = file
        .symbols()
        .filter(ObjectSymbol::is_undefined)
        .filter_map(|symbol| Some(symbol.name().ok()?.to_string()))
        .collect();
    Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
}

/// The script with probe points in place of the mark.
pub fn filled(text: &str, names: &[String]) -> String {
    [".call", ".return", ""].iter().fold(text.to_string(), |text, kind| {
        let points: Vec<String> = names.iter().map(|name| format!("kernel.function(\"{name}\"){kind} ?")).collect();
        text.replace(&format!("{MARK}{kind}"), &points.join(",\n  "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_becomes_a_point_for_each_function() {
        let names = ["ktime_get", "vfree"].map(String::from);
        assert_eq!(
            filled("probe CALLED.call { n++ }", &names),
            "probe kernel.function(\"ktime_get\").call ?,\n  kernel.function(\"vfree\").call ? { n++ }"
        );
        assert_eq!(filled("probe CALLED { }", &names[..1]), "probe kernel.function(\"ktime_get\") ? { }");
    }
}
