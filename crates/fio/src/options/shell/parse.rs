//! Parses words and operators into commands, loops and branches. Skips text that it cannot parse.

use super::is_name;
use super::lexer::{Part, Token, Word};

/// A command, or a block of commands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Simple(Simple),
    /// Branches of an `if` or `case`, of which at most one runs. The flag is true if one of them always runs.
    Branches(Vec<Vec<Node>>, bool),
    For {
        name: String,
        values: Option<Vec<Word>>,
        body: Vec<Node>,
    },
    /// Commands that run any number of times.
    Repeated(Vec<Node>),
    /// Commands in `( … )` or `{ …; }`.
    Group(Vec<Node>),
    Function(String, Vec<Node>),
}

/// One command with its redirections.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Simple {
    pub words: Vec<Word>,
    /// File to which the output is redirected, and whether the output is appended.
    pub output: Option<(Word, bool)>,
    /// Here-document of the command, as (text, whether variables in it are expanded).
    pub here: Option<(String, bool)>,
    /// Whether the output of the command is piped to the next command.
    pub piped: bool,
}

/// Maximum nesting of blocks in a script.
const DEEPEST: usize = 64;

/// Parses all tokens of a text.
pub(super) fn parse(tokens: &[Token]) -> Vec<Node> {
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
    };
    let mut nodes = Vec::new();
    while parser.at < tokens.len() {
        nodes.extend(parser.list(&[]));
        // A word that ends a block whose start is missing.
        parser.at += 1;
    }
    nodes
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
}

/// Returns the text of an unquoted word, which may be a reserved word of the shell.
fn plain_word(token: Option<&Token>) -> Option<&str> {
    match token {
        Some(Token::Word(word)) => match word.as_slice() {
            [Part::Text(text, false)] => Some(text),
            _ => None,
        },
        _ => None,
    }
}

impl Parser<'_> {
    fn here(&self) -> Option<&str> {
        plain_word(self.tokens.get(self.at))
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let is_it = self.here() == Some(wanted);
        self.at += usize::from(is_it);
        is_it
    }

    fn skip_ends(&mut self) {
        while matches!(self.tokens.get(self.at), Some(Token::End)) {
            self.at += 1;
        }
    }

    /// Parses commands up to one of these words, which is not consumed, or up to a closing bracket.
    fn list(&mut self, stops: &[&str]) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.depth += 1;
        while self.depth < DEEPEST
            && let Some(token) = self.tokens.get(self.at)
        {
            match token {
                Token::End | Token::Pipe => self.at += 1,
                Token::Close | Token::Case => break,
                Token::Open => {
                    self.at += 1;
                    nodes.push(Node::Group(self.list(&[])));
                    self.at += 1;
                }
                _ if self.here().is_some_and(|word| stops.contains(&word)) => break,
                _ => match self.command() {
                    Some(node) => nodes.push(node),
                    None => break,
                },
            }
        }
        self.depth -= 1;
        nodes
    }

    /// Parses one command. Returns `None` at a word that ends an unknown block.
    fn command(&mut self) -> Option<Node> {
        if self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let node = self.any_command();
        self.depth -= 1;
        node
    }

    fn any_command(&mut self) -> Option<Node> {
        match self.here() {
            Some("if") => {
                self.at += 1;
                Some(self.branches())
            }
            Some("while" | "until") => {
                self.at += 1;
                let mut body = self.list(&["do"]);
                self.take_word("do");
                body.extend(self.list(&["done"]));
                self.take_word("done");
                Some(Node::Repeated(body))
            }
            Some("for" | "select") => self.for_loop(),
            Some("case") => Some(self.case()),
            Some("{") => {
                self.at += 1;
                let body = self.list(&["}"]);
                self.take_word("}");
                Some(Node::Group(body))
            }
            Some("function") => {
                self.at += 1;
                let name = self.here().unwrap_or_default().to_owned();
                self.at += 1;
                self.function(name)
            }
            Some("!" | "time" | "do" | "then" | "else") => {
                self.at += 1;
                self.skip_ends();
                match self.at < self.tokens.len() {
                    true => self.command(),
                    false => None,
                }
            }
            Some("done" | "fi" | "esac" | "}" | "elif") => None,
            Some(name)
                if matches!(self.tokens.get(self.at + 1), Some(Token::Open))
                    && matches!(self.tokens.get(self.at + 2), Some(Token::Close)) =>
            {
                let name = name.to_owned();
                self.at += 1;
                self.function(name)
            }
            _ => Some(Node::Simple(self.simple())),
        }
    }

    fn function(&mut self, name: String) -> Option<Node> {
        if matches!(self.tokens.get(self.at), Some(Token::Open)) {
            self.at += 2;
        }
        self.skip_ends();
        let body = match self.command() {
            Some(Node::Group(body)) => body,
            Some(other) => vec![other],
            None => return None,
        };
        Some(Node::Function(name, body))
    }

    fn branches(&mut self) -> Node {
        let mut branches = Vec::new();
        let mut always = false;
        let mut before = self.list(&["then"]);
        self.take_word("then");
        loop {
            let mut body = std::mem::take(&mut before);
            body.extend(self.list(&["elif", "else", "fi"]));
            branches.push(body);
            if self.take_word("elif") {
                before = self.list(&["then"]);
                self.take_word("then");
            } else if self.take_word("else") {
                branches.push(self.list(&["fi"]));
                always = true;
                self.take_word("fi");
                break;
            } else {
                self.take_word("fi");
                break;
            }
        }
        Node::Branches(branches, always)
    }

    fn case(&mut self) -> Node {
        // The word, and `in`.
        while let Some(token) = self.tokens.get(self.at) {
            if matches!(token, Token::End) || plain_word(Some(token)) == Some("in") {
                break;
            }
            self.at += 1;
        }
        self.take_word("in");
        let (mut branches, mut always) = (Vec::new(), false);
        loop {
            while matches!(
                self.tokens.get(self.at),
                Some(Token::End | Token::Case | Token::Open)
            ) {
                self.at += 1;
            }
            if self.at >= self.tokens.len() || self.take_word("esac") {
                break;
            }
            let from = self.at;
            while !matches!(
                self.tokens.get(self.at),
                None | Some(Token::Close | Token::End)
            ) {
                always |= self.here() == Some("*");
                self.at += 1;
            }
            self.at += 1;
            branches.push(self.list(&["esac"]));
            if self.at == from {
                self.at += 1;
            }
        }
        Node::Branches(branches, always)
    }

    fn for_loop(&mut self) -> Option<Node> {
        self.at += 1;
        let name = self.here().filter(|name| is_name(name)).map(str::to_owned);
        self.at += usize::from(name.is_some());
        let mut values = None;
        if self.take_word("in") {
            let mut words = Vec::new();
            while let Some(Token::Word(word)) = self.tokens.get(self.at) {
                words.push(word.clone());
                self.at += 1;
            }
            values = Some(words);
        }
        self.skip_ends();
        self.take_word("do");
        let body = self.list(&["done"]);
        self.take_word("done");
        Some(match name {
            Some(name) => Node::For { name, values, body },
            None => Node::Repeated(body),
        })
    }

    fn simple(&mut self) -> Simple {
        let mut simple = Simple::default();
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Word(word) => simple.words.push(word.clone()),
                Token::Here(text, expands) => simple.here = Some((text.clone(), *expands)),
                Token::Output { append } => {
                    if let Some(Token::Word(word)) = self.tokens.get(self.at + 1) {
                        simple.output = Some((word.clone(), *append));
                        self.at += 1;
                    }
                }
                Token::Redirect => {
                    self.at +=
                        usize::from(matches!(self.tokens.get(self.at + 1), Some(Token::Word(_))));
                }
                Token::Pipe => {
                    simple.piped = true;
                    self.at += 1;
                    break;
                }
                Token::End | Token::Case | Token::Close | Token::Open => break,
            }
            self.at += 1;
        }
        // A bracket within a command is not part of this grammar.
        if matches!(self.tokens.get(self.at), Some(Token::Open)) {
            self.at += 1;
        }
        simple
    }
}
