// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile`, also called `stap`; called as `spilerun`, `staprun` or `stapio`, the loader: one file is an installation.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "spilerun" || spilerun::staprun::is_name(name)) {
        return spilerun::main(arguments);
    }
    // A script of that name can be given as ./package.
    if arguments.get(1).is_some_and(|word| word == "package") {
        return spile_package::main(arguments.into_iter().skip(1));
    }
    spile::stack::with_enough(|| spile::driver::main(arguments).finish())
}
