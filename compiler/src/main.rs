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
    match spile::driver::main(arguments) {
        spile::driver::Outcome::Done(status) => status,
        // In this process: signals and the terminal stay as they are, and the module's directory goes at the end.
        spile::driver::Outcome::Run { arguments, directory, apart } => {
            let status = match apart {
                Some(apart) => apart.run(arguments),
                None => spilerun::main(arguments),
            };
            drop(directory);
            status
        }
    }
}
