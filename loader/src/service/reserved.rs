// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of services, and who may start their modules directly: no user, unless `START` in the service's configuration
//! allows it.

use std::path::Path;

use crate::error::Error;
use crate::host::places::SERVICES;
use crate::safety::approved::read;
use crate::safety::privilege::Caller;
use crate::safety::rank::Rank;
use crate::service::conf;

/// Whether this caller may start the module of that name, or rename a module to it (`-R`). Called with root's rights.
pub fn may_start(caller: &Caller, name: &str) -> Result<(), Error> {
    let path = Path::new(SERVICES).join(format!("{name}.conf"));
    // dpkg unpacks it under another name, beside the module, and gives it its own when it configures the package:
    // looked for in that order.
    let is_unpacked = path.with_extension("conf.dpkg-new").exists();
    // A configuration that is not only writable by root, or is broken, grants nothing.
    let start = match read(&path) {
        Ok(None) if !is_unpacked => return Ok(()),
        Ok(Some(bytes)) => {
            String::from_utf8(bytes).ok().and_then(|text| conf::parse(&text).ok()).and_then(|conf| conf.start)
        }
        Ok(None) | Err(_) => None,
    };
    match start.is_some_and(|least: Rank| caller.rank >= least) {
        true => Ok(()),
        false => Err(Error::Reserved { name: name.to_string() }),
    }
}
