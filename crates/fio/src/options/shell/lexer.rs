//! Splits text into words and operators.

/// A part of a word, before expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Literal text.
    Text(String, Quoted),
    /// `$NAME` or `${NAME…}`, as (name, rest of the text in the braces).
    Variable(String, String, Quoted),
    /// `$( … )` or backticks, as the text of the commands.
    Commands(String, Quoted),
    /// `$(( … ))`, as the text of the expression.
    Arithmetic(String),
    /// `NAME=( … )`, as the elements.
    Array(Vec<Word>),
}

/// Whether a part is quoted, so that blanks in it do not separate words.
pub(super) type Quoted = bool;
/// A word, as its parts.
pub(super) type Word = Vec<Part>;

/// A word or an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// End of a command: `;`, `&`, `&&`, `||`, or a line break.
    End,
    /// `;;` and similar operators, which end a case of a `case` statement.
    Case,
    Pipe,
    Open,
    Close,
    /// Redirection of output to a file, which is overwritten or appended to.
    Output {
        append: bool,
    },
    /// Another redirection. The next word is a file or a descriptor.
    Redirect,
    /// A here-document or here-string, as its text and whether variables are expanded.
    Here(String, bool),
}

/// Error: a quotation mark is not closed.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::options) struct Unclosed;

/// Splits a text into tokens.
///
/// # Errors
/// A quotation mark is not closed.
pub(super) fn split_tokens(text: &str) -> Result<Vec<Token>, Unclosed> {
    Lexer {
        chars: text.chars().collect(),
        at: 0,
        out: Vec::new(),
        waiting: Vec::new(),
        searched: 0,
    }
    .run()
}

/// Parses the text of one word, such as the default of a variable, or text in double quotes.
pub(super) fn word_of(text: &str, quoted: bool) -> Word {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        out: Vec::new(),
        waiting: Vec::new(),
        searched: 0,
    };
    let mut word = Word::new();
    while let Some(c) = lexer.peek(0) {
        match c {
            '$' | '`' => match lexer.dollar(quoted) {
                Some(part) => word.push(part),
                None => push(&mut word, c, quoted),
            },
            '\\' => {
                lexer.at += 1;
                if let Some(next) = lexer.take() {
                    if quoted && !matches!(next, '$' | '`' | '"' | '\\') {
                        push(&mut word, '\\', quoted);
                    }
                    push(&mut word, next, true);
                }
            }
            '\'' | '"' if !quoted => {
                if lexer.quotes(&mut word).is_err() {
                    break;
                }
            }
            c => {
                lexer.at += 1;
                push(&mut word, c, quoted);
            }
        }
    }
    word
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    out: Vec<Token>,
    /// Here-documents whose text starts on the next line, as (position of the token, end word, whether variables are
    /// expanded, whether leading tabs are removed).
    waiting: Vec<(usize, String, bool, bool)>,
    /// Number of characters that were searched so far for closing brackets.
    searched: usize,
}

/// Maximum number of searched characters for each character of the text.
const MOST_SEARCHED: usize = 16;

fn push(word: &mut Word, c: char, quoted: Quoted) {
    match word.last_mut() {
        Some(Part::Text(text, known)) if *known == quoted => text.push(c),
        _ => word.push(Part::Text(c.to_string(), quoted)),
    }
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let is_it = self.peek(0) == Some(wanted);
        self.at += usize::from(is_it);
        is_it
    }

    fn run(mut self) -> Result<Vec<Token>, Unclosed> {
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\r' => self.at += 1,
                '\n' => {
                    self.at += 1;
                    self.out.push(Token::End);
                    self.here_documents();
                }
                '#' => self.skip_line(),
                ';' => {
                    self.at += 1;
                    let case = self.take_if(';') | self.take_if('&');
                    self.out.push(if case { Token::Case } else { Token::End });
                }
                '&' if self.peek(1) == Some('>') => {
                    self.at += 2;
                    let append = self.take_if('>');
                    self.out.push(Token::Output { append });
                }
                '&' => {
                    self.at += 1;
                    self.take_if('&');
                    self.out.push(Token::End);
                }
                '|' => {
                    self.at += 1;
                    let token = if self.take_if('|') {
                        Token::End
                    } else {
                        Token::Pipe
                    };
                    self.take_if('&');
                    self.out.push(token);
                }
                '(' if self.peek(1) == Some('(') && self.skip_arithmetic() => {}
                '(' => {
                    self.at += 1;
                    self.out.push(Token::Open);
                }
                ')' => {
                    self.at += 1;
                    self.out.push(Token::Close);
                }
                '<' | '>' => self.redirection()?,
                _ => {
                    let word = self.word()?;
                    self.finish_word(word);
                }
            }
        }
        Ok(self.out)
    }

    /// Ends a word. A number right before a redirection is the descriptor of this redirection.
    fn finish_word(&mut self, word: Word) {
        let digits = matches!(word.as_slice(), [Part::Text(text, false)]
            if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()));
        if !(digits && matches!(self.peek(0), Some('<' | '>'))) {
            self.out.push(Token::Word(word));
        }
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    /// Skips the command `(( … ))`, which runs no program.
    fn skip_arithmetic(&mut self) -> bool {
        // It ends on its own line.
        let rest = &self.chars[self.at..];
        let line = rest.iter().take(512).take_while(|c| **c != '\n').count();
        let end = rest[..line].windows(2).position(|pair| pair == [')', ')']);
        match end {
            Some(end) => {
                self.at += end + 2;
                self.out.push(Token::End);
                true
            }
            None => false,
        }
    }

    fn redirection(&mut self) -> Result<(), Unclosed> {
        let output = self.take() == Some('>');
        if output {
            let append = self.take_if('>');
            self.take_if('|');
            let token = match self.take_if('&') {
                true => Token::Redirect,
                false => Token::Output { append },
            };
            self.out.push(token);
            return Ok(());
        }
        if !self.take_if('<') {
            // `<( … )` is a file made of commands.
            self.take_if('&');
            self.take_if('>');
            self.out.push(Token::Redirect);
            return Ok(());
        }
        let string = self.take_if('<');
        let tabs = !string && self.take_if('-');
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
        let word = self.word()?;
        if string {
            let text = word.iter().map(|part| match part {
                Part::Text(text, _) => text.clone(),
                Part::Variable(name, rest, _) => format!("${{{name}{rest}}}"),
                _ => super::UNKNOWN.to_string(),
            });
            self.out.push(Token::Here(text.collect(), true));
            return Ok(());
        }
        let quoted = word.iter().any(|part| matches!(part, Part::Text(_, true)));
        let end = word.iter().map(|part| match part {
            Part::Text(text, _) => text.as_str(),
            _ => "",
        });
        let waiting = (self.out.len(), end.collect(), !quoted, tabs);
        self.waiting.push(waiting);
        self.out.push(Token::Here(String::new(), !quoted));
        Ok(())
    }

    /// Parses the texts of here-documents, which start after the line break.
    fn here_documents(&mut self) {
        for (token, end, expands, tabs) in std::mem::take(&mut self.waiting) {
            let mut text = String::new();
            while self.at < self.chars.len() {
                let from = self.at;
                self.skip_line();
                let line: String = self.chars[from..self.at].iter().collect();
                self.at += 1;
                let line = if tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line.trim_end_matches('\r') == end {
                    break;
                }
                text.push_str(line);
                text.push('\n');
            }
            self.at = self.at.min(self.chars.len());
            self.out[token] = Token::Here(text, expands);
        }
    }

    fn word(&mut self) -> Result<Word, Unclosed> {
        let mut word = Word::new();
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | ')' => break,
                '(' if is_assignment(&word) => {
                    self.at += 1;
                    let elements = self.array()?;
                    word.push(Part::Array(elements));
                    break;
                }
                '(' => break,
                '\'' | '"' => self.quotes(&mut word)?,
                '\\' => {
                    self.at += 1;
                    match self.take() {
                        Some('\n') | None => {}
                        Some(c) => push(&mut word, c, true),
                    }
                }
                '$' if matches!(self.peek(1), Some('\'' | '"')) => self.at += 1,
                '$' | '`' => match self.dollar(false) {
                    Some(part) => word.push(part),
                    None => push(&mut word, c, false),
                },
                c => {
                    self.at += 1;
                    push(&mut word, c, false);
                }
            }
        }
        Ok(word)
    }

    /// Parses the elements of `( … )` after `NAME=`.
    fn array(&mut self) -> Result<Vec<Word>, Unclosed> {
        let mut elements = Vec::new();
        while let Some(c) = self.peek(0) {
            match c {
                ')' => {
                    self.at += 1;
                    break;
                }
                '#' => self.skip_line(),
                c if c.is_whitespace() => self.at += 1,
                ';' | '&' | '|' | '<' | '>' | '(' => self.at += 1,
                _ => elements.push(self.word()?),
            }
        }
        Ok(elements)
    }

    fn quotes(&mut self, word: &mut Word) -> Result<(), Unclosed> {
        let open = self.take();
        // An empty quoted word is a word.
        word.push(Part::Text(String::new(), true));
        loop {
            match (self.peek(0), open) {
                (None, _) => return Err(Unclosed),
                (c, open) if c == open => {
                    self.at += 1;
                    return Ok(());
                }
                (Some('\\'), Some('"')) => {
                    self.at += 1;
                    match self.take() {
                        Some('\n') => {}
                        Some(c @ ('"' | '\\' | '$' | '`')) => push(word, c, true),
                        Some(c) => {
                            push(word, '\\', true);
                            push(word, c, true);
                        }
                        None => {}
                    }
                }
                (Some('$' | '`'), Some('"')) => match self.dollar(true) {
                    Some(part) => word.push(part),
                    None => push(word, '$', true),
                },
                (Some(c), _) => {
                    self.at += 1;
                    push(word, c, true);
                }
            }
        }
    }

    /// Parses a substitution that starts with `$` or a backtick. If the `$` is an ordinary character, skips it and
    /// returns `None`.
    fn dollar(&mut self, quoted: Quoted) -> Option<Part> {
        let tick = self.take() == Some('`');
        if tick {
            return self.until('`').map(|text| Part::Commands(text, quoted));
        }
        if self.peek(0) == Some('(') {
            let whole = self.balanced('(', ')')?;
            let inner = whole
                .strip_prefix('(')
                .and_then(|rest| rest.strip_suffix(')'));
            return Some(match inner {
                Some(arithmetic) => Part::Arithmetic(arithmetic.to_owned()),
                None => Part::Commands(whole, quoted),
            });
        }
        if self.peek(0) == Some('{') {
            let inner = self.balanced('{', '}')?;
            let split = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let special = inner.starts_with(['@', '*', '#', '?', '!']);
            let split = if special {
                1
            } else {
                split.unwrap_or(inner.len())
            };
            let (name, rest) = inner.split_at(split);
            return Some(Part::Variable(name.to_owned(), rest.to_owned(), quoted));
        }
        let special = ['@', '*', '#', '?', '$', '!'];
        if let Some(c) = self
            .peek(0)
            .filter(|c| special.contains(c) || c.is_ascii_digit())
        {
            self.at += 1;
            return Some(Part::Variable(c.to_string(), String::new(), quoted));
        }
        let rest = &self.chars[self.at..];
        let length = rest
            .iter()
            .take_while(|c| c.is_ascii_alphanumeric() || **c == '_');
        let name: String = length.collect();
        self.at += name.len();
        (!name.is_empty()).then(|| Part::Variable(name, String::new(), quoted))
    }

    /// Returns whether further searching is permitted. Without this limit, a text that consists of opening brackets
    /// would take quadratic time.
    fn may_search(&self) -> bool {
        self.searched <= self.chars.len().saturating_mul(MOST_SEARCHED)
    }

    fn until(&mut self, end: char) -> Option<String> {
        let length = self.chars[self.at..].iter().position(|c| *c == end);
        let Some(length) = length.filter(|_| self.may_search()) else {
            self.searched += self.chars.len() - self.at;
            return None;
        };
        let text = self.chars[self.at..self.at + length].iter().collect();
        self.at += length + 1;
        Some(text)
    }

    /// Returns the text between the current bracket and the bracket that closes it.
    fn balanced(&mut self, open: char, close: char) -> Option<String> {
        let (mut depth, mut quote, mut at) = (0_u32, None, self.at);
        if !self.may_search() {
            return None;
        }
        loop {
            let Some(c) = self.chars.get(at).copied() else {
                self.searched += at - self.at;
                return None;
            };
            match (quote, c) {
                (_, '\\') if quote != Some('\'') => at += 1,
                (Some(mark), c) if c == mark => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, c) if c == open => depth += 1,
                (None, c) if c == close => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                let text = self.chars[self.at + 1..at - 1].iter().collect();
                self.at = at;
                return Some(text);
            }
        }
    }
}

/// Returns whether a word is `NAME=` or `NAME+=` so far. An array may follow then.
fn is_assignment(word: &Word) -> bool {
    let [Part::Text(text, false)] = word.as_slice() else {
        return false;
    };
    let name = text
        .strip_suffix('=')
        .map(|name| name.strip_suffix('+').unwrap_or(name));
    name.is_some_and(super::is_name)
}
