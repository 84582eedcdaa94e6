//! Mutates real inputs: flips bits, changes bytes, numbers and pieces, and inserts words that parsers search.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Maximum length of an input in bytes. It is long enough to reach every loop, and short enough to run a million
/// inputs.
pub const LONGEST: usize = 64 << 10;

/// Words and bytes that have a meaning for at least one parser.
const WORDS: [&str; 64] = [
    "\0",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "\\",
    "\\\n",
    "\"",
    "'",
    "`",
    "=",
    ":",
    "://",
    ",",
    ";",
    "#",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "&",
    "&amp;",
    "<!--",
    "<![CDATA[",
    "..",
    "/",
    "//",
    "@",
    "%",
    "%00",
    "$",
    "*",
    "-",
    "--",
    "+++",
    "\u{feff}",
    "\u{0}",
    "é",
    "🦀",
    "\\040",
    "\\777",
    "0",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "1e999",
    "NaN",
    "0x",
    "99999999999999999999999999",
    "null",
    "true",
    "json:",
    "include ",
    "Match ",
    "!include ",
    "(value withheld)",
    "[global]",
    "{\"",
];

/// Generates mutated inputs from real inputs. The same name always gives the same sequence of inputs.
pub struct Mutator {
    random: ChaCha8Rng,
    seeds: Vec<Vec<u8>>,
}

impl Mutator {
    /// Creates a generator. Cuts the seeds to [`LONGEST`], so that mutations reach every part of them.
    #[must_use]
    pub fn new(name: &str, seeds: &[Vec<u8>]) -> Self {
        let number = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut seeds: Vec<Vec<u8>> = seeds
            .iter()
            .map(|seed| seed[..seed.len().min(LONGEST)].to_vec())
            .collect();
        seeds.push(Vec::new());
        Self {
            random: ChaCha8Rng::seed_from_u64(number),
            seeds,
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end.max(1))
    }

    /// Returns the next mutated input.
    #[must_use]
    pub fn next_input(&mut self) -> Vec<u8> {
        let at = self.below(self.seeds.len());
        let mut input = self.seeds[at].clone();
        // One mutation as often as many: many soon leave nothing that is understood.
        let times = 1 << self.below(5);
        for _ in 0..self.below(times) + 1 {
            self.change(&mut input);
            input.truncate(LONGEST);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let length = input.len();
        let from = self.below(length + 1);
        let to = (from + 1 + self.below(32)).min(length);
        let range = from.min(to)..to;
        match self.below(11) {
            0 if from < length => input[from] ^= 1 << self.below(8),
            1 if from < length => input[from] = self.random.random(),
            2 => drop(input.drain(range)),
            3 => input.truncate(from),
            4 => {
                let piece: Vec<u8> = input[range].to_vec();
                let times = self.below(64) + 1;
                for _ in 0..times.min(LONGEST / piece.len().max(1)) {
                    input.splice(from..from, piece.iter().copied());
                }
            }
            5 => {
                // A piece of another input.
                let other = self.below(self.seeds.len());
                let start = self.below(self.seeds[other].len() + 1);
                let end = (start + self.below(200)).min(self.seeds[other].len());
                let piece = self.seeds[other][start..end].to_vec();
                input.splice(range, piece);
            }
            6 => {
                // A number that is too large, too small, or none.
                if let Some(at) = input[from..].iter().position(u8::is_ascii_digit) {
                    let start = from + at;
                    let digits = input[start..]
                        .iter()
                        .take_while(|byte| byte.is_ascii_digit());
                    let end = start + digits.count();
                    let word = WORDS[46 + self.below(9)];
                    input.splice(start..end, word.bytes());
                }
            }
            7 => {
                let other = self.below(length + 1);
                let line = input[other..].split(|byte| *byte == b'\n').next();
                let line = line.unwrap_or_default().to_vec();
                input.splice(from..from, line);
            }
            8 if length > 0 => input.rotate_left(from % length),
            _ => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(from..from, word.bytes());
            }
        }
    }
}
