// SPDX-License-Identifier: GPL-2.0-or-later

//! The session's own process, which `process` alone in a probe point is: that of `-x`, or the command of `-c`.

use std::rc::Rc;

use spile_base::command::program_word;
use spile_core::probe::OwnProcess;
use spile_debuginfo::target::Programs;

use crate::cli::options::Options;

/// The session's own process: the command of `-c`, or the process of `-x`. None without either.
pub fn own_process(options: &Options, programs: &Programs) -> Option<OwnProcess> {
    let session = &options.run.session;
    if let Some(pid) = session.pid.filter(|pid| *pid != 0) {
        let pid = pid.into();
        let (program, looked) = programs.apart(|programs| programs.of_process(pid));
        return Some(OwnProcess { program: program.map_err(Rc::new), pid: Some(pid), looked });
    }
    let word = program_word(session.command.as_ref()?)?;
    let (program, looked) = programs.apart(|programs| programs.find(&word));
    Some(OwnProcess { program: program.map_err(Rc::new), pid: None, looked })
}
