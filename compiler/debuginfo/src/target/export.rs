// SPDX-License-Identifier: GPL-2.0-or-later

//! `--export-index`: writes the debug information of a kernel, of modules and of programs to an [index file](super::index_file).

use std::path::Path;
use std::rc::Rc;

use super::error::TargetError;
use super::index_file::Writer;
use super::kernel::Kernel;
use super::object::Object;

/// Writes the kernel, the modules of these names and the programs to a file, completely or not at all. Returns its size in bytes.
pub fn export(kernel: &Kernel, modules: &[String], programs: &[Rc<Object>], path: &Path) -> Result<u64, TargetError> {
    let mut config: Vec<String> =
        kernel.config().into_iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    config.sort();
    let exported =
        |object: &Object| Ok::<_, TargetError>(object.debug()?.export(object.reserved_for_export().as_ref())?);
    let of_programs = programs.iter().map(|program| {
        // A host's build of it is recognised by that alone.
        if program.build_id().is_empty() {
            return Err(TargetError::NoBuildId { program: program.name().into() });
        }
        if program.word() != 8 {
            return Err(TargetError::Narrow { program: program.name().into() });
        }
        program.debug()?.export(None).map_err(TargetError::from)
    });
    // These, and a missing module, are found before the kernel is read, which takes long.
    let of_programs = of_programs.collect::<Result<Vec<_>, TargetError>>()?;
    let modules = modules.iter().map(|name| kernel.module(name)).collect::<Result<Vec<_>, TargetError>>()?;
    let mut file = Writer::new(path, kernel.release(), config.concat()).with(None, &exported(&*kernel.vmlinux()?)?)?;
    for module in &modules {
        file = file.with(Some(module.name()), &exported(module)?)?;
    }
    for (program, bytes) in programs.iter().zip(&of_programs) {
        file = file.with_program(program.build_id(), bytes)?;
    }
    file.save()
}
