//! Finds the parts of an ELF file (elf(5)) that hold the texts of a program: read-only data and other initialised data,
//! without machine code and debug information. Reads the two headers only.

use assay_host::Host;
use std::ops::Range;
use std::path::Path;

/// Bytes of the file's header that are read.
const HEADER: usize = 64;
/// Most sections; a file with more is not parsed.
const MOST_SECTIONS: usize = 4096;
/// Most bytes of the table of section names.
const MOST_NAMES: u64 = 1 << 20;
/// `SHT_PROGBITS`: a section with contents.
const CONTENTS: u64 = 1;
/// `SHF_ALLOC`: a section that is loaded.
const LOADED: u64 = 2;
/// `SHF_EXECINSTR`: machine code.
const CODE: u64 = 4;

/// Byte order and width of the fields of an ELF file.
#[derive(Clone, Copy)]
struct Layout {
    wide: bool,
    big: bool,
}

impl Layout {
    fn of(header: &[u8]) -> Option<Self> {
        let wide = match header.get(4)? {
            1 => false,
            2 => true,
            _ => return None,
        };
        let big = match header.get(5)? {
            1 => false,
            2 => true,
            _ => return None,
        };
        Some(Self { wide, big })
    }

    /// Returns a number of `width` bytes.
    fn number(self, bytes: &[u8], at: usize, width: usize) -> Option<u64> {
        let field = bytes.get(at..at.checked_add(width)?)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(match self.big {
            true => field.iter().fold(0, add),
            false => field.iter().rev().fold(0, add),
        })
    }

    /// Returns a field whose offset depends on the width: in 32 and in 64 bits.
    fn field(self, bytes: &[u8], narrow: (usize, usize), wide: (usize, usize)) -> Option<u64> {
        let (at, width) = if self.wide { wide } else { narrow };
        self.number(bytes, at, width)
    }
}

struct Section {
    name: usize,
    kind: u64,
    flags: u64,
    place: Range<u64>,
}

fn parse_section(layout: Layout, bytes: &[u8]) -> Option<Section> {
    let offset = layout.field(bytes, (16, 4), (24, 8))?;
    let size = layout.field(bytes, (20, 4), (32, 8))?;
    Some(Section {
        name: usize::try_from(layout.number(bytes, 0, 4)?).ok()?,
        kind: layout.number(bytes, 4, 4)?,
        flags: layout.field(bytes, (8, 4), (8, 8))?,
        place: offset..offset.checked_add(size)?,
    })
}

/// Returns the parts of a file with data of a program, in the order of the file. `None` if the file has no section of
/// read-only data, is not ELF, or the host reads no parts of files: then the whole file has to be searched.
pub(super) fn find_data(host: &dyn Host, path: &Path, size: u64) -> Option<Vec<Range<u64>>> {
    let header = host.read_part(path, 0, HEADER).ok()?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    let layout = Layout::of(&header)?;
    let table = layout.field(&header, (32, 4), (40, 8))?;
    let entry = usize::try_from(layout.field(&header, (46, 2), (58, 2))?).ok()?;
    let count = usize::try_from(layout.field(&header, (48, 2), (60, 2))?).ok()?;
    let names = usize::try_from(layout.field(&header, (50, 2), (62, 2))?).ok()?;
    let least = if layout.wide { 64 } else { 40 };
    if entry < least || entry > 256 || count == 0 || count > MOST_SECTIONS {
        return None;
    }
    let bytes = host.read_part(path, table, entry * count).ok()?;
    let sections: Vec<Section> = bytes
        .chunks_exact(entry)
        .map(|bytes| parse_section(layout, bytes))
        .collect::<Option<_>>()?;
    let named = sections.get(names)?;
    let length = named.place.end - named.place.start;
    if sections.len() != count || length > MOST_NAMES {
        return None;
    }
    let names = host
        .read_part(path, named.place.start, usize::try_from(length).ok()?)
        .ok()?;
    let is_data = |one: &&Section| one.kind == CONTENTS && one.flags & (LOADED | CODE) == LOADED;
    let data: Vec<&Section> = sections.iter().filter(is_data).collect();
    let is_read_only = |one: &&Section| {
        names
            .get(one.name..)
            .is_some_and(|name| name.starts_with(b".rodata"))
    };
    let whole = data.iter().all(|one| one.place.end <= size);
    if !whole || !data.iter().any(is_read_only) {
        return None;
    }
    let mut places: Vec<Range<u64>> = data.into_iter().map(|one| one.place.clone()).collect();
    places.sort_by_key(|place| place.start);
    // Sections that overlap are those of no linker.
    let apart = places.windows(2).all(|two| two[0].end <= two[1].start);
    apart.then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::LiveHost;

    /// Writes a file with one section of each kind, and returns the place of its read-only data.
    fn write_elf(path: &Path, layout: Layout, read_only: &str) -> Range<u64> {
        let put = |value: u64, width: usize| -> Vec<u8> {
            let bytes = value.to_le_bytes()[..width].to_vec();
            match layout.big {
                true => bytes.into_iter().rev().collect(),
                false => bytes,
            }
        };
        let word = if layout.wide { 8 } else { 4 };
        let (head, entry) = if layout.wide { (64, 64) } else { (52, 40) };
        let names = format!("\0{read_only}\0.text\0.debug_str\0.shstrtab\0");
        let at = |name: &str| names.find(&format!("\0{name}\0")).unwrap() as u64 + 1;
        let parts = [
            (at(read_only), CONTENTS, LOADED, "texts of the program"),
            (at(".text"), CONTENTS, LOADED | CODE, "code"),
            (at(".debug_str"), CONTENTS, 0, "texts of the debugger"),
            (at(".shstrtab"), 3, 0, names.as_str()),
        ];
        let mut body = Vec::new();
        let mut table = vec![0; entry];
        for (name, kind, flags, text) in parts {
            let offset = (head + body.len()) as u64;
            let mut one = [put(name, 4), put(kind, 4), put(flags, word), put(0, word)].concat();
            one.extend([put(offset, word), put(text.len() as u64, word)].concat());
            one.resize(entry, 0);
            table.extend(one);
            body.extend(text.as_bytes());
        }
        let mut file = b"\x7fELF".to_vec();
        file.push(if layout.wide { 2 } else { 1 });
        file.push(if layout.big { 2 } else { 1 });
        file.resize(if layout.wide { 40 } else { 32 }, 0);
        file.extend(put((head + body.len()) as u64, word));
        file.resize(if layout.wide { 58 } else { 46 }, 0);
        file.extend([put(entry as u64, 2), put(5, 2), put(4, 2)].concat());
        assert_eq!(file.len(), head);
        std::fs::write(path, [file, body, table].concat()).unwrap();
        head as u64..(head + parts[0].3.len()) as u64
    }

    #[test]
    fn only_data_of_the_program_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        for (wide, big) in [(true, false), (true, true), (false, false), (false, true)] {
            let layout = Layout { wide, big };
            let place = write_elf(&path, layout, ".rodata");
            let size = std::fs::metadata(&path).unwrap().len();
            assert_eq!(find_data(&LiveHost, &path, size), Some(vec![place]));
            // A file that is shorter than its sections is searched as a whole.
            assert_eq!(find_data(&LiveHost, &path, 70), None);
            write_elf(&path, layout, ".data1");
            assert_eq!(find_data(&LiveHost, &path, size), None);
        }
    }

    #[test]
    fn attack_damaged_headers_end_in_a_search_of_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let layout = Layout {
            wide: true,
            big: false,
        };
        write_elf(&path, layout, ".rodata");
        let whole = std::fs::read(&path).unwrap();
        let mut held = 0;
        let count = whole.len();
        for at in 0..count {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                std::fs::write(&path, &bytes).unwrap();
                let found = find_data(&LiveHost, &path, bytes.len() as u64);
                let inside = |place: &Range<u64>| {
                    place.start <= place.end && place.end <= bytes.len() as u64
                };
                held += u64::from(found.is_none_or(|all| all.iter().all(inside)));
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            let _ = find_data(&LiveHost, &path, at as u64);
        }
        assay_testing::attacked("damaged headers of programs", 4 * count as u64, held);
    }
}
