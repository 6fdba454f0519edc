// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of services, and who may start their modules beside the service: users may not, unless `START` in the service's
//! configuration says so.

use std::path::Path;

use crate::error::Error;
use crate::host::places::SERVICES;
use crate::module::file::File;
use crate::safety::privilege::{Caller, Rank, read_of_root};
use crate::service::conf;

/// Whether these groups' members may start this module, as it is called in its file.
pub fn may_start(caller: &Caller, file: &File) -> Result<(), Error> {
    // The kernel takes the name from another place in the file than we do.
    if !file.has_its_name() {
        return Err(Error::BadName { path: file.path.clone(), name: file.description.meta.name.clone() });
    }
    may_use(caller, &file.description.meta.name)
}

/// Whether they may use that name, for `-R` too.
pub fn may_use(caller: &Caller, name: &str) -> Result<(), Error> {
    let path = Path::new(SERVICES).join(format!("{name}.conf"));
    let found = caller.as_root(|| Ok(read_of_root(&path)))?;
    // What is not root's alone, or broken, grants nothing.
    let start = match found {
        Ok(None) => return Ok(()),
        Ok(Some(bytes)) => {
            String::from_utf8(bytes).ok().and_then(|text| conf::parse(&text).ok()).and_then(|conf| conf.start)
        }
        Err(_) => None,
    };
    match start.is_some_and(|least: Rank| caller.rank >= least) {
        true => Ok(()),
        false => Err(Error::Reserved { name: name.to_string() }),
    }
}
