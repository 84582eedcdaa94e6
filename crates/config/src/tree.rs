//! The common syntax tree of all languages: directives, includes and blocks with their positions.

use std::ops::Range;

/// A statement `key value` with its positions in the text.
#[derive(Clone, Debug)]
pub struct Directive {
    pub key: String,
    /// The value in the form in which the program reads it: without quotes, with joined continuation lines.
    pub value: Vec<u8>,
    /// The quote character, if one pair of quotes encloses the whole value.
    pub quote: Option<u8>,
    /// Range from the first byte of the key to the last byte of the statement.
    pub span: Range<usize>,
    /// Range of the value as written; an empty range for an empty value.
    pub value_span: Range<usize>,
    /// Words after the key as written, if further words may belong to the key (nginx).
    pub words: Vec<Range<usize>>,
    /// Comment lines and blank lines within a value that has several lines, without line ends.
    pub inner: Vec<Range<usize>>,
}

/// A line that includes other files.
#[derive(Clone, Debug)]
pub struct Inclusion {
    pub key: String,
    pub pattern: String,
    pub span: Range<usize>,
}

/// An item of a block.
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
    /// Words of the block's head without quotes, such as `["location", "/api"]`. Empty for the file.
    pub head: Vec<String>,
    /// Range from the first byte of the head to the closing brace, or to the end of the last line.
    pub span: Range<usize>,
    /// Offset of the closing brace, in languages that have one.
    pub close: Option<usize>,
    /// Offset of the end of the block's head.
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
