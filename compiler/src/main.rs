// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile`, also called `stap`; called as `spilerun`, `staprun` or `stapio`, the loader: one file is an installation.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use spile_abi::say::say;
use spile_base::unfinished;
use spilerun::error::Exit;
use spilerun::safety::privilege::has_foreign_rights;

/// What it compiles with, and the files that it writes, are of its caller's choice.
const FOREIGN_RIGHTS: &str = "\
ERROR: this file is set-uid or set-gid, or has file capabilities, and is the compiler, which must not use such rights: chmod u-s,g-s it, \
or setcap -r. For users without root install the loader as a file of its own, and make that set-uid (cargo xtask static-loader, or the crate spilerun)
";

fn main() -> ExitCode {
    spilerun::session::signals::heed_children();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "spilerun" || spilerun::staprun::is_name(name)) {
        return spilerun::main(arguments);
    }
    // The caller of a set-uid program chooses its name: the compiler's, though only the loader's was meant.
    if has_foreign_rights() {
        say(FOREIGN_RIGHTS);
        return Exit::Permission.code();
    }
    if name.is_some_and(|name| name == unfinished::NAME) {
        return unfinished::end(arguments);
    }
    spile::catch_signals();
    // A script of that name can be given as ./package.
    if arguments.get(1).is_some_and(|word| word == "package") {
        return spile_package::main(arguments.into_iter().skip(1));
    }
    if arguments.get(1).is_some_and(|word| word == "replay") {
        return spile_replay::main(arguments.into_iter().skip(2));
    }
    if arguments.get(1).is_some_and(|word| word == "top") {
        return spile_replay::top::main(arguments.into_iter().skip(2));
    }
    if arguments.get(1).is_some_and(|word| word == "report") {
        return spile_replay::report::main(arguments.into_iter().skip(2));
    }
    spile::stack::with_enough(|| spile::driver::main(arguments).finish())
}
