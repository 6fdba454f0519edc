// SPDX-License-Identifier: GPL-2.0-or-later

//! `--export-index`: writes the debug information of a kernel and of modules to an [index file](super::index_file).

use std::path::Path;

use super::error::TargetError;
use super::index_file::Writer;
use super::kernel::Kernel;
use super::object::Object;

/// Writes the kernel and the modules of these names to a file, completely or not at all. Returns its size in bytes.
pub fn export(kernel: &Kernel, modules: &[String], path: &Path) -> Result<u64, TargetError> {
    let mut config: Vec<String> =
        kernel.config().into_iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    config.sort();
    let exported =
        |object: &Object| Ok::<_, TargetError>(object.debug()?.export(object.reserved_for_export().as_ref())?);
    // A missing module is found before the kernel is read, which takes long.
    let modules = modules.iter().map(|name| kernel.module(name)).collect::<Result<Vec<_>, TargetError>>()?;
    let mut file = Writer::new(path, kernel.release(), config.concat()).with(None, &exported(&*kernel.vmlinux()?)?)?;
    for module in &modules {
        file = file.with(Some(module.name()), &exported(module)?)?;
    }
    file.save()
}
