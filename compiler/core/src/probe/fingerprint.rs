// SPDX-License-Identifier: GPL-2.0-or-later

//! The code of the functions that a program's probes are in, so that a workaround is not armed in other code than it was
//! written for.
//!
//! Takes the resolved program, and reads the files of its targets. A function whose code is in no file is left out: then
//! only the build-id is compared.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;

use crate::program::{Fingerprint, Place, Program, Target};
use spile_debuginfo::Address;
use spile_debuginfo::target::{Kernel, Object};

/// Limit for all functions together, in bytes.
pub const MOST: usize = 1 << 20;

/// The functions of a program's probes, each once, in the order of the probes.
#[derive(Debug, PartialEq, Eq)]
pub struct Fingerprints {
    /// Each function once, in the order of the probes.
    pub taken: Vec<Fingerprint>,
    /// Number of functions left out, because they would exceed [`MOST`] bytes.
    pub left_out: usize,
}

/// The code of the functions that probes are in, for the runtime to compare with the code in memory. At most [`MOST`]
/// bytes.
pub fn fingerprints(program: &Program, kernel: &Kernel) -> Fingerprints {
    let objects: Vec<_> = program.targets.iter().map(|target| object_of(target, kernel)).collect();
    let mut wanted: Vec<(&Place, Address)> = Vec::new();
    for place in program.probes.iter().filter_map(|probe| probe.attachment.code()) {
        let object = objects.get(place.target.index()).and_then(Option::as_ref);
        wanted.extend(object.and_then(|object| Some((place, address(place, object)?))));
    }
    let mut code = Vec::with_capacity(objects.len());
    for (number, object) in objects.iter().enumerate() {
        let of_object = wanted.iter().filter(|(place, _)| place.target.index() == number);
        let addresses: Vec<Address> = of_object.map(|(_, address)| *address).collect();
        code.push(object.as_ref().and_then(|object| object.code_of(&addresses)));
    }
    let (mut seen, mut room) = (HashSet::new(), MOST);
    let mut found = Fingerprints { taken: Vec::new(), left_out: 0 };
    for (place, address) in wanted {
        let code = code.get(place.target.index()).and_then(Option::as_ref);
        let Some(fingerprint) = code.and_then(|code| code.of_function(address)) else { continue };
        // An anchor may be after the function's start: the runtime adds with the same overflow.
        let start = Place { address: place.address.wrapping_sub(fingerprint.offset), ..place.clone() };
        if !seen.insert((start.target, start.symbol.clone(), start.address)) {
            continue;
        }
        match room.checked_sub(fingerprint.bytes.len()) {
            None => found.left_out += 1,
            Some(left) => {
                room = left;
                found.taken.push(Fingerprint {
                    place: start,
                    function: fingerprint.function,
                    bytes: fingerprint.bytes,
                    patched: fingerprint.patched,
                });
            }
        }
    }
    found
}

/// The points, as in the script, of probes in code where an exported index does not know the locations of variables.
pub fn unknown_places(program: &Program, kernel: &Kernel) -> Vec<String> {
    // Not by path: the path of an object in an index is the index's.
    let named = |target: &Target| if target.name.is_empty() { kernel.vmlinux() } else { kernel.module(&target.name) };
    let objects: Vec<_> = program.targets.iter().map(|target| named(target).ok()).collect();
    let mut found = Vec::new();
    for probe in &program.probes {
        let Some(place) = probe.attachment.code() else { continue };
        let Some(object) = objects.get(place.target.index()).and_then(Option::as_ref) else { continue };
        let known = address(place, object).is_none_or(|address| object.has_place(address));
        if !known && !found.contains(&probe.script_point) {
            found.push(probe.script_point.clone());
        }
    }
    found
}

fn object_of(target: &Target, kernel: &Kernel) -> Option<Rc<Object>> {
    let object = match target.name.as_str() {
        "" => kernel.vmlinux(),
        _ if Path::new(&target.path).is_file() => kernel.module(&target.path),
        name => kernel.module(name),
    };
    object.ok().filter(|object| object.build_id() == target.build_id)
}

fn address(place: &Place, object: &Object) -> Option<Address> {
    match &place.symbol {
        None => Some(Address { section: None, offset: place.address }),
        Some(symbol) => {
            let anchor = object.symbol_place(symbol)?;
            Some(Address { offset: anchor.offset.checked_add(place.address)?, ..anchor })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Probe, TargetId};
    use spile_debuginfo::target::SearchOptions;
    use spile_source::Span;

    #[test]
    fn each_function_of_the_kernel_comes_once_and_from_its_start() {
        let Some(release) = std::fs::read_dir("/usr/lib/debug/lib/modules")
            .ok()
            .and_then(|mut all| all.next()?.ok()?.file_name().into_string().ok())
        else {
            println!("skipped: no kernel with debug information");
            return;
        };
        let kernel = Kernel::open(&release, SearchOptions::default()).unwrap();
        let vmlinux = kernel.vmlinux().unwrap();
        let start = vmlinux.symbol_address("vfs_read").unwrap();
        let probe = |address| Probe {
            point: String::new(),
            script_point: String::new(),
            function: String::new(),
            module: String::new(),
            attachment: crate::probe::code::kprobe(Place { target: TargetId(0), symbol: None, address }),
            locals: Vec::new(),
            saved: Vec::new(),
            body: Vec::new(),
            span: Span::none(),
        };
        let target = Target {
            name: String::new(),
            build_id: vmlinux.build_id().to_vec(),
            build_id_address: None,
            path: String::new(),
        };
        let mut program =
            Program { probes: vec![probe(start), probe(start + 9)], targets: vec![target], ..Program::default() };
        let found = fingerprints(&program, &kernel);
        assert_eq!(
            found.taken.iter().map(|one| (one.function.as_str(), one.place.address)).collect::<Vec<_>>(),
            [("vfs_read", start)]
        );
        assert_eq!(found.left_out, 0);
        program.targets[0].build_id = vec![1];
        assert_eq!(fingerprints(&program, &kernel), Fingerprints { taken: Vec::new(), left_out: 0 });
    }
}
