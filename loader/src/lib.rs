//! spilerun: loads a module that spile built, streams what it prints, and takes it out again.
//!
//! One run: [`options`] -> [`file`](mod@file) (the `.ko` and what it says of itself) -> [`check`] (refusals, before any harm) ->
//! [`load`] -> [`device`] -> [`session`] (one poll loop: [`ring`], [`merge`], [`record`], [`format`](mod@format), [`tell`],
//! [`output`])
//! -> unloaded, whatever happened. Nothing is shared with the compiler but the crate spile-abi.
//!
//! Exit status: 0 when all went well, else as [`error::Exit`] says.

pub mod check;
pub mod clock;
pub mod command;
pub mod device;
pub mod elf;
pub mod error;
pub mod file;
pub mod format;
pub mod histogram;
pub mod load;
pub mod merge;
pub mod options;
pub mod output;
pub mod payload;
pub mod pretty;
pub mod record;
pub mod report;
pub mod ring;
pub mod session;
pub mod signals;
pub mod system;
pub mod tell;
pub mod text;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::error::{Error, Exit};
use crate::options::{Options, Task};

/// The whole program. `arguments` begin with the program's name. Catches signals, and leaves them caught.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(told) => {
            // Help and version go to standard output, mistakes to standard error; a closed one is nobody's concern.
            let _ = told.print();
            return if told.use_stderr() { Exit::Usage.code() } else { Exit::Success.code() };
        }
    };
    match perform(&options) {
        Ok(exit) => exit.code(),
        Err(error) => {
            report::say(&format!("ERROR: {error}"));
            error.exit().code()
        }
    }
}

fn perform(options: &Options) -> Result<Exit, Error> {
    match &options.task {
        Task::Remove(name) => {
            check::may_load_modules()?;
            load::remove_leftover(name)?;
            Ok(Exit::Success)
        }
        Task::Run(module) => run(Path::new(module), options),
    }
}

fn run(module: &Path, options: &Options) -> Result<Exit, Error> {
    let signals = signals::Signals::catch()?;
    let file = file::File::find(module)?;
    check::belongs_here(&file)?;
    check::may_load_modules()?;
    check::signature_will_do(&file)?;
    let sinks = output::Sinks::open(options.output.as_deref())?;
    // Held until the module's device is open: a module that another spilerun has just loaded is not a leftover.
    let lock = load::Lock::take();
    load::remove_leftovers(&lock, options.verbose);
    check::name_is_free(&file.meta.name)?;
    let target = command::Target::prepare(options)?;
    let loaded = load::Loaded::load(&file)?;
    let result = session::run(&loaded, lock, &file, options, target, sinks, &signals);
    // Unloaded first, then told: also when the session went wrong. A panic unloads by Drop.
    let removed = loaded.remove();
    let exit = result?;
    removed?;
    Ok(exit)
}
