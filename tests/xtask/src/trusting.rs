// SPDX-License-Identifier: GPL-2.0-or-later

//! A guest kernel that trusts a test key: the installed kernel, uncompressed, with our certificate in place of the
//! built-in ones. Used to show that signed modules load if the kernel requires signatures.
//!
//! The certificates are concatenated DER in the image, from the symbol `system_certificate_list`; their length in bytes
//! is at `system_certificate_list_size`, that of those for modules at `module_cert_size` (certs/system_certificates.S).
//! The image is the one with debug information, which qemu boots by its PVH note.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::{LittleEndian, Object, ObjectSymbol, elf, read::elf::ProgramHeader};
use spile_guest::Kernel;

type Elf<'data> = object::read::elf::ElfFile64<'data, LittleEndian>;

/// In `Elf64_Ehdr`: offset and number of section headers (elf.h).
const E_SHOFF: std::ops::Range<usize> = 40..48;
const E_SHNUM_AND_SHSTRNDX: std::ops::Range<usize> = 60..64;

/// Writes the kernel with this certificate (DER) to `image`. Without the distribution's certificates it loads none of
/// its modules under `module.sig_enforce=1`.
pub fn kernel(installed: &Kernel, certificate: &Path, image: &Path) -> Result<Kernel> {
    let certificate = fs::read(certificate).with_context(|| format!("reading {}", certificate.display()))?;
    let vmlinux = PathBuf::from(format!("/usr/lib/debug/boot/vmlinux-{}", installed.release));
    let mut file = File::open(&vmlinux).with_context(|| format!("reading {}", vmlinux.display()))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let (loaded, places) = layout(&bytes).with_context(|| vmlinux.display().to_string())?;
    // After the segments there are only debug information and symbols, not needed to boot.
    bytes.truncate(loaded);
    bytes[E_SHOFF].fill(0);
    bytes[E_SHNUM_AND_SHSTRNDX].fill(0);
    put(&mut bytes, &places, &certificate)?;
    fs::write(image, bytes).with_context(|| format!("writing {}", image.display()))?;
    Ok(Kernel { image: image.to_path_buf(), ..installed.clone() })
}

/// Offsets in the file.
struct Places {
    list: usize,
    list_size: usize,
    module_cert_size: usize,
}

/// The end of the loaded part of the file, and the offset of the certificates.
fn layout(bytes: &[u8]) -> Result<(usize, Places)> {
    let object = Elf::parse(bytes)?;
    let segments: Vec<(u64, u64, u64)> = object
        .elf_program_headers()
        .iter()
        .filter(|header| header.p_type(LittleEndian) == elf::PT_LOAD)
        .map(|header| (header.p_vaddr(LittleEndian), header.p_offset(LittleEndian), header.p_filesz(LittleEndian)))
        .collect();
    let place = |name: &str| -> Result<usize> {
        let symbol =
            object.symbols().find(|symbol| symbol.name() == Ok(name)).with_context(|| format!("no symbol {name}"))?;
        let within = |(start, offset, size): &(u64, u64, u64)| {
            symbol.address().checked_sub(*start).filter(|distance| distance < size).map(|distance| offset + distance)
        };
        let offset = segments.iter().find_map(within).with_context(|| format!("{name} is in no segment"))?;
        Ok(usize::try_from(offset)?)
    };
    let end = segments.iter().map(|(_, offset, size)| offset + size).max().context("no segments")?;
    let places = Places {
        list: place("system_certificate_list")?,
        list_size: place("system_certificate_list_size")?,
        module_cert_size: place("module_cert_size")?,
    };
    Ok((usize::try_from(end)?, places))
}

fn put(bytes: &mut [u8], places: &Places, certificate: &[u8]) -> Result<()> {
    let number = bytes.get(places.list_size..places.list_size + 8).context("the image ends before its certificates")?;
    let room = u64::from_le_bytes(number.try_into()?);
    ensure!(certificate.len() as u64 <= room, "a certificate of {} bytes; there is room for {room}", certificate.len());
    let size = (certificate.len() as u64).to_le_bytes();
    for (place, value) in [(places.list, certificate), (places.list_size, &size), (places.module_cert_size, &size)] {
        bytes
            .get_mut(place..place + value.len())
            .context("the image ends before its certificates")?
            .copy_from_slice(value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_takes_the_place_of_another() {
        let places = Places { list: 0, list_size: 8, module_cert_size: 16 };
        let image = || [b"OLDCERT.".to_vec(), 7u64.to_le_bytes().to_vec(), 7u64.to_le_bytes().to_vec()].concat();
        let mut bytes = image();
        put(&mut bytes, &places, b"NEW").expect("it fits");
        assert_eq!(bytes, [b"NEWCERT.".to_vec(), 3u64.to_le_bytes().to_vec(), 3u64.to_le_bytes().to_vec()].concat());
        let mut bytes = image();
        assert!(put(&mut bytes, &places, b"TOO LONG").is_err());
        assert_eq!(bytes, image());
    }
}
