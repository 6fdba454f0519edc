// SPDX-License-Identifier: GPL-2.0-or-later

//! Import stubs of objects.

use super::elf::{Address, Elf};
use std::collections::BTreeSet;

use super::import_stubs::{imported, stubs_of, unpacked};
use super::narrow;
use spile_abi::stubs::Code;

impl Elf {
    /// Names of functions that the dynamic linker looks up for it; of a 32-bit program none.
    pub fn imported_functions(&self) -> BTreeSet<String> {
        self.parse().map(|elf| imported(&elf)).unwrap_or_default()
    }

    /// Whether its code catches exceptions of C++ (Itanium C++ ABI, Exception Handling, 2.5.3), or it is what other code calls for that.
    pub fn catches_exceptions(&self) -> bool {
        const CATCH: &str = "__cxa_begin_catch";
        let has_it = || self.symbols_named(CATCH).is_ok_and(|mut found| found.next().is_some());
        let calls_it = || self.imported_functions().contains(CATCH);
        calls_it() || has_it() || self.is_narrow() && self.import_stubs().iter().any(|(name, _)| name == CATCH)
    }

    /// Names of imported functions, and where the stub of each begins; sorted by name.
    pub fn import_stubs(&self) -> Vec<(String, Address)> {
        let stubs = match self.section_bytes(narrow::IMPORTS) {
            Some(kept) => unpacked(kept),
            None => self.parse().map_or_else(|_| Vec::new(), |elf| stubs_of(&elf, Code::Wide)),
        };
        let placed = stubs.into_iter().filter_map(|(name, at)| Some((name, self.address(at)?)));
        let mut stubs: Vec<(String, Address)> = placed.collect();
        stubs.sort();
        stubs
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Names of the stubs of a program that is compiled with these options; None where gcc cannot.
    fn names(text: &str, options: &[&str]) -> Option<Vec<String>> {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("t.c"), text).expect("written");
        let mut gcc = Command::new("gcc");
        let made =
            gcc.current_dir(directory.path()).args(["-O1", "-fno-builtin", "t.c", "-o", "t"]).args(options).output();
        if !made.is_ok_and(|made| made.status.success()) {
            return None;
        }
        let elf = Elf::open_program(&directory.path().join("t")).expect("an object");
        let places: std::collections::BTreeSet<u64> = elf.import_stubs().iter().map(|(_, at)| at.offset).collect();
        assert_eq!(places.len(), elf.import_stubs().len(), "each has a place of its own");
        Some(elf.import_stubs().into_iter().map(|(name, _)| name).collect())
    }

    /// Functions that are called and of which the address is taken too have their stubs in `.plt.got`.
    #[test]
    fn stubs_of_functions_whose_address_is_taken() {
        let text = "#include <stdio.h>\n#include <stdlib.h>\nvoid *keep[3];
            int main(int c, char **v) { keep[0] = puts; keep[1] = malloc; keep[2] = free; puts(v[0]); free(malloc(c));
            printf(\"%d\\n\", c); return 0; }";
        for options in [&["-fcf-protection=none"][..], &["-fcf-protection", "-Wl,-z,ibtplt"], &["-Wl,-z,now"]] {
            let found = names(text, options).expect("gcc runs");
            for name in ["free", "malloc", "printf", "puts"] {
                assert!(found.iter().any(|known| known == name), "{options:?}: {name} of {found:?}");
            }
        }
    }

    #[test]
    fn stubs_of_32_bit_libraries() {
        let text = "int helper(int); int other(int); int (*keep)(int) = other;
            void enter(void) { for (;;) keep(helper(3) + other(4)); }";
        // With addresses in the stubs, and with ebx.
        for place in ["-fno-pic", "-fPIC"] {
            let options = ["-m32", "-nostdlib", "-shared", "-fcf-protection=none", "-Wl,-z,notext", place];
            let Some(found) = names(text, &options) else { return println!("skipped: gcc makes no 32-bit programs") };
            let expected: &[&str] = if place == "-fPIC" { &["helper", "other"] } else { &[] };
            assert_eq!(found, expected, "{place}");
        }
    }
}
