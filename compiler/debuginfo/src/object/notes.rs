// SPDX-License-Identifier: GPL-2.0-or-later

//! Notes in ELF files (elf(5), Nhdr).

/// One note (elf(5)).
pub(super) struct Note<'n> {
    pub(super) kind: u32,
    pub(super) owner: &'n [u8],
    pub(super) contents: &'n [u8],
    /// What follows it.
    pub(super) rest: &'n [u8],
}

/// The first note; None if it is not whole.
pub(super) fn next_note(bytes: &[u8]) -> Option<Note<'_>> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (name, length, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
    let padded = |length: usize| length.checked_add(3).map(|length| length & !3);
    let contents = padded(name)?.checked_add(12)?;
    let end = contents.checked_add(length)?;
    Some(Note {
        kind,
        owner: bytes.get(12..12usize.checked_add(name)?)?,
        contents: bytes.get(contents..end)?,
        rest: bytes.get(contents.checked_add(padded(length)?)?..).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_note_is_none() {
        let mut note = vec![8, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0];
        note.extend(b"stapsdt\0abcd");
        let whole = next_note(&note).expect("is whole");
        assert!(whole.kind == 3 && whole.owner == b"stapsdt\0" && whole.contents == b"abcd" && whole.rest.is_empty());
        for length in 0..note.len() {
            assert!(next_note(&note[..length]).is_none(), "{length}");
        }
    }
}
