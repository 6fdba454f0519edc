// SPDX-License-Identifier: GPL-2.0-or-later

//! `--debug-info DIR`: the module's debug information beside it, for crash(8) and gdb. The module is compiled a second time, with
//! debug information, and compared.

use std::io::Write;
use std::path::Path;

use spile_abi::escape;
use spile_base::cache::Cache;
use spile_base::unfinished::NewFile;
use spile_core::plan::Plan;
use spile_kbuild as kbuild;

use super::{compile, translate};
use crate::reporter::Failed;
use crate::session::Session;
use crate::target::Target;

/// Writes the debug information of `module`, which was compiled from `plan`, below the directory.
pub fn write(
    session: &mut Session,
    plan: &mut Plan,
    module: &[u8],
    directory: &Path,
    target: &Target,
    cache: &Cache,
) -> Result<(), Failed> {
    let units = translate::emit(&session.reporter, plan, compile::form(&session.options.build, 4))?;
    session.options.build.debug = true;
    let built = compile::compile(session, plan, &units, target, cache);
    session.options.build.debug = false;
    let with = session.read_file(&built?.module)?;
    let made = kbuild::debug_file(module, with);
    let (place, bytes) = made.map_err(|why| {
        let message = format!("no debug information was written for the module: {why}");
        session.reporter.fail(message, &["--debug puts it into the module itself".to_string()])
    })?;
    let path = directory.join(place);
    save(&path, &bytes).map_err(|error| session.reporter.error(format!("writing {}: {error}", path.display())))?;
    session.reporter.remark(&format!("Debug information: {}", escape::line(&path.display().to_string())));
    Ok(())
}

/// Writes the file, completely or not at all.
fn save(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)?;
    let mut file = NewFile::in_directory(parent, ".spile")?;
    file.file().write_all(bytes)?;
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.file().set_permissions(permissions)?;
    file.persist(path)
}
