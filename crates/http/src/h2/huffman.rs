//! Huffman code of HPACK (RFC 7541, appendix B). The code is canonical: codes of the same length are consecutive, in
//! the order of their symbols. Therefore the lengths define the code.

/// Length in bits of the code of each byte, and of the end-of-string code.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const LONGEST: usize = 30;

/// For each code length: first code, number of codes, and position of their symbols.
struct Table {
    first: [u32; LONGEST + 1],
    count: [u32; LONGEST + 1],
    from: [usize; LONGEST + 1],
    symbols: [u16; 257],
}

static TABLE: Table = table();

const fn table() -> Table {
    let mut table = Table {
        first: [0; LONGEST + 1],
        count: [0; LONGEST + 1],
        from: [0; LONGEST + 1],
        symbols: [0; 257],
    };
    let (mut code, mut at, mut length) = (0, 0, 1);
    while length <= LONGEST {
        table.first[length] = code;
        table.from[length] = at;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                table.symbols[at] = symbol as u16;
                at += 1;
                table.count[length] += 1;
            }
            symbol += 1;
        }
        code = (code + table.count[length]) << 1;
        length += 1;
    }
    table
}

/// Decodes bytes.
///
/// # Errors
/// The bytes contain the end-of-string code, or their padding is not fewer than eight bits of this code.
pub fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let (mut code, mut length) = (0_u32, 0);
    let mut ones = true;
    for bit in bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
    {
        code = code << 1 | u32::from(bit);
        length += 1;
        ones &= bit == 1;
        let within = code.wrapping_sub(TABLE.first[length]);
        if within < TABLE.count[length] {
            match TABLE.symbols[TABLE.from[length] + within as usize] {
                256 => return Err("a Huffman string holds its end"),
                symbol => out.push(symbol as u8),
            }
            (code, length, ones) = (0, 0, true);
        }
    }
    match length < 8 && ones {
        true => Ok(()),
        false => Err("a Huffman string ends within a symbol"),
    }
}

/// Encodes a text, for tests.
#[cfg(test)]
pub fn encode(text: &[u8]) -> Vec<u8> {
    let mut bits: Vec<u8> = Vec::new();
    for byte in text {
        let length = LENGTHS[usize::from(*byte)] as usize;
        let symbols = &TABLE.symbols[TABLE.from[length]..];
        let within = symbols.iter().position(|one| *one == u16::from(*byte));
        let code = TABLE.first[length] + within.expect("all bytes have a code") as u32;
        bits.extend((0..length).rev().map(|at| (code >> at & 1) as u8));
    }
    bits.resize(bits.len().next_multiple_of(8), 1);
    bits.chunks(8)
        .map(|byte| byte.iter().fold(0, |all, bit| all << 1 | bit))
        .collect()
}
