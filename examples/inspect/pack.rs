//! Packs a bundle of MCPB: a ZIP file with the manifest and the program. Nothing is compressed, and the same files make the same bytes.

/// A file of the bundle.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: &'a [u8],
    /// Of Unix.
    pub(crate) mode: u32,
}

/// Returns the ZIP file, as PKWARE's APPNOTE.TXT 4.3 has it.
pub(crate) fn zip(entries: &[Entry<'_>]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let at = long(out.len());
        // Version 2.0; names are UTF-8; stored; 1 January 1980.
        let mut common = [20_u16, 1 << 11, 0, 0, 1 << 5 | 1].map(u16::to_le_bytes).concat();
        common.extend(
            [crc32(entry.bytes), long(entry.bytes.len()), long(entry.bytes.len())].map(u32::to_le_bytes).concat(),
        );
        common.extend([short(entry.name.len()), 0].map(u16::to_le_bytes).concat());
        out.extend([b"PK\x03\x04", common.as_slice(), entry.name.as_bytes(), entry.bytes].concat());
        // Made by Unix, for the mode of a file.
        directory.extend([b"PK\x01\x02", &[20, 3][..], &common].concat());
        directory.extend([0_u16, 0, 0].map(u16::to_le_bytes).concat());
        directory.extend([(0o100_000 | entry.mode) << 16, at].map(u32::to_le_bytes).concat());
        directory.extend(entry.name.as_bytes());
    }
    let (at, count) = (long(out.len()), short(entries.len()));
    let end = [
        [0, 0, count, count].map(u16::to_le_bytes).concat(),
        [long(directory.len()), at].map(u32::to_le_bytes).concat(),
    ];
    out.extend([&directory, &b"PK\x05\x06"[..], &end.concat(), &[0, 0]].concat());
    out
}

/// ZIP has no larger numbers; what is packed has been read into memory.
fn long(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn short(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(zip(&[]).len(), 22);
        let file = zip(&[Entry { name: "a", bytes: b"xyz", mode: 0o755 }]);
        assert_eq!(file.len(), 30 + 1 + 3 + 46 + 1 + 22);
    }
}
