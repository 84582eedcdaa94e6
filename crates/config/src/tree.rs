//! What every language is parsed into: directives, includes and blocks, with where they stand.

use std::ops::Range;

/// `key value` with its places in the text.
#[derive(Clone, Debug)]
pub struct Directive {
    pub key: String,
    /// As the program understands it: unquoted, continuation lines joined.
    pub value: Vec<u8>,
    /// The quote around the value when all of it is in one pair.
    pub quote: Option<u8>,
    /// From the key's first byte to the statement's last.
    pub span: Range<usize>,
    /// The value as written; empty, at its place, when there is none.
    pub value_span: Range<usize>,
    /// The words after the key as written, where more words may belong to the key (nginx).
    pub words: Vec<Range<usize>>,
    /// Comment and blank lines inside a value of several lines; without their line ends.
    pub inner: Vec<Range<usize>>,
}

/// A line that brings in other files.
#[derive(Clone, Debug)]
pub struct Inclusion {
    pub key: String,
    pub pattern: String,
    pub span: Range<usize>,
}

/// What can stand in a block.
#[derive(Clone, Debug)]
pub enum Item {
    Directive(Directive),
    Inclusion(Inclusion),
    Block(Block),
}

impl Item {
    pub fn span(&self) -> &Range<usize> {
        match self {
            Self::Directive(directive) => &directive.span,
            Self::Inclusion(inclusion) => &inclusion.span,
            Self::Block(block) => &block.span,
        }
    }
}

/// A block, or the whole file.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Its head, unquoted: `["location", "/api"]`; nothing for the file.
    pub head: Vec<String>,
    /// From the head's first byte to the closing brace, or to the end of the last line of it.
    pub span: Range<usize>,
    /// Where the closing brace stands, in the languages that have one.
    pub close: Option<usize>,
    /// End of the head.
    pub open: usize,
    pub items: Vec<Item>,
}

impl Block {
    pub fn directives(&self) -> impl DoubleEndedIterator<Item = &Directive> {
        self.items.iter().filter_map(|item| match item {
            Item::Directive(directive) => Some(directive),
            _ => None,
        })
    }

    pub fn inclusions(&self) -> impl Iterator<Item = &Inclusion> {
        self.items.iter().filter_map(|item| match item {
            Item::Inclusion(inclusion) => Some(inclusion),
            _ => None,
        })
    }

    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.items.iter().filter_map(|item| match item {
            Item::Block(block) => Some(block),
            _ => None,
        })
    }
}
