// SPDX-License-Identifier: GPL-2.0-or-later

//! `Module.symvers`: the symbols that a kernel and its modules export.
//!
//! A line is `0xCRC\tSYMBOL\tMODULE\tEXPORT_TYPE\tNAMESPACE` (Documentation/kbuild/modules.rst; the namespace came with
//! 5.4, and was the third field until 5.10).

use std::collections::HashMap;
use std::path::Path;

/// An exported symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Export {
    pub(super) crc: u32,
    /// `vmlinux`, or the path of a module in its kernel's tree, without suffix.
    pub(super) module: String,
    /// Empty if it has none.
    pub(super) namespace: String,
}

/// The entries of `names` in the file. None: the file does not exist.
pub(super) fn find(file: &Path, names: &[&str]) -> Option<HashMap<String, Export>> {
    if names.is_empty() {
        return Some(HashMap::new());
    }
    Some(parse(&std::fs::read_to_string(file).ok()?, names))
}

fn parse(text: &str, names: &[&str]) -> HashMap<String, Export> {
    let mut found = HashMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [crc, name, third, rest @ ..] = fields.as_slice() else { continue };
        let Some(crc) = crc.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
            continue;
        };
        if !names.contains(name) {
            continue;
        }
        let export = |field: &str| field.starts_with("EXPORT_");
        let (module, namespace) = match rest {
            [kind, namespace, ..] if export(kind) => (*third, *namespace),
            [module, kind, ..] if export(kind) => (*module, *third),
            _ => (*third, ""),
        };
        found.insert(name.to_string(), Export { crc, module: module.to_string(), namespace: namespace.to_string() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_several_releases() {
        let text = "0x0a19b956\tmemcpy\tvmlinux\tEXPORT_SYMBOL\t\n\
            0x12345678\tother\tvmlinux\tEXPORT_SYMBOL\t\n\
            0x00000001\tdma_buf_get\tdrivers/dma-buf/dma-buf\tEXPORT_SYMBOL_GPL\tDMA_BUF\n\
            0x00000002\told\tUSB\tdrivers/usb/usb\tEXPORT_SYMBOL_GPL\n\
            not a line\n0xzz\tmemcpy\tx\tEXPORT_SYMBOL\t\n";
        let found = parse(text, &["memcpy", "dma_buf_get", "old", "absent"]);
        let export =
            |crc, module: &str, namespace: &str| Export { crc, module: module.into(), namespace: namespace.into() };
        assert_eq!(found.len(), 3);
        assert_eq!(found["memcpy"], export(0x0a19_b956, "vmlinux", ""));
        assert_eq!(found["dma_buf_get"], export(1, "drivers/dma-buf/dma-buf", "DMA_BUF"));
        assert_eq!(found["old"], export(2, "drivers/usb/usb", "USB"));
    }
}
