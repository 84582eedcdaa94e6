//! Shows the list of folders and files in the terminal, and handles keys.

use super::Browse;
use crate::status::Status;
use crate::verbs::dups::explore;
use crate::verbs::dups::index_location::Place;
use assay_dups::name::format_readable;
use assay_dups::tree::{Node, build_tree};
use assay_dups::{FileId, Files, Groups};
use assay_model::size::Convention::Binary;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{List, ListState, Paragraph};
use std::collections::HashSet;
use std::io::IsTerminal as _;

/// What a row shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Folder,
    /// A redundant copy, as (file, number of its group).
    File(FileId, u32),
    /// Another copy of the file above.
    Copy,
}

/// A row of the list.
#[derive(Debug)]
struct Row {
    kind: Kind,
    depth: usize,
    /// Identity of the row: its path. For a copy, the path of the file above and the path of the copy.
    key: Vec<u8>,
    text: String,
    bytes: u64,
}

/// State of the display, and position of the cursor.
struct Browser<'a> {
    files: &'a Files,
    groups: &'a Groups,
    path: Vec<u8>,
    top: &'a Node,
    open: HashSet<Vec<u8>>,
    rows: Vec<Row>,
    list: ListState,
    /// Number of rows that were visible when the display was last rendered.
    height: usize,
}

impl<'a> Browser<'a> {
    fn new(files: &'a Files, groups: &'a Groups, root: &'a Node) -> Self {
        let (path, top) = root.top();
        let mut browser = Self {
            files,
            groups,
            path,
            top,
            open: HashSet::new(),
            rows: Vec::new(),
            list: ListState::default().with_selected(Some(0)),
            height: 1,
        };
        browser.list_rows();
        browser
    }

    /// Updates the list of rows from the open folders.
    fn list_rows(&mut self) {
        let mut rows = Vec::new();
        self.below(self.top, &self.path, 0, &mut rows);
        self.rows = rows;
    }

    fn below(&self, node: &Node, path: &[u8], depth: usize, rows: &mut Vec<Row>) {
        for (name, child) in node.folders() {
            let key = [path, b"/", name].concat();
            let open = self.open.contains(&key);
            rows.push(Row {
                kind: Kind::Folder,
                depth,
                key: key.clone(),
                text: format!(
                    "{} {}/",
                    if open { '▾' } else { '▸' },
                    format_readable(name)
                ),
                bytes: child.bytes,
            });
            if open {
                self.below(child, &key, depth + 1, rows);
            }
        }
        let mut files = node.files.clone();
        files.sort_by_key(|(id, _)| (u64::MAX - self.files.allocated(*id), self.files.name(*id)));
        for (id, group) in files {
            let key = self.files.path(id);
            let open = self.open.contains(&key);
            rows.push(Row {
                kind: Kind::File(id, group),
                depth,
                text: format!(
                    "{} {}",
                    if open { '▾' } else { '▸' },
                    format_readable(self.files.name(id))
                ),
                bytes: self.files.allocated(id),
                key: key.clone(),
            });
            let copies = self.groups.at(group as usize);
            for other in copies.names().filter(|other| open && *other != id) {
                let same = self.files.inode(other) == self.files.inode(id);
                rows.push(Row {
                    kind: Kind::Copy,
                    depth: depth + 1,
                    key: [&*key, b"\0", &self.files.path(other)].concat(),
                    text: format!(
                        "{} {}",
                        if same { "also" } else { "=" },
                        explore::shown(self.files, other)
                    ),
                    bytes: self.files.allocated(other),
                });
            }
        }
    }

    fn selected(&self) -> usize {
        self.list
            .selected()
            .unwrap_or(0)
            .min(self.rows.len().saturating_sub(1))
    }

    fn go(&mut self, to: usize) {
        self.list
            .select(Some(to.min(self.rows.len().saturating_sub(1))));
    }

    /// Handles a key. Returns false if the browser should end.
    fn key(&mut self, code: KeyCode) -> bool {
        let at = self.selected();
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Down | KeyCode::Char('j') => self.go(at + 1),
            KeyCode::Up | KeyCode::Char('k') => self.go(at.saturating_sub(1)),
            KeyCode::PageDown => self.go(at + self.height),
            KeyCode::PageUp => self.go(at.saturating_sub(self.height)),
            KeyCode::Home | KeyCode::Char('g') => self.go(0),
            KeyCode::End | KeyCode::Char('G') => self.go(usize::MAX),
            KeyCode::Right | KeyCode::Char('l') => self.set_open(at, true),
            KeyCode::Left | KeyCode::Char('h') => self.set_open(at, false),
            KeyCode::Enter | KeyCode::Char(' ') => {
                let open = self
                    .rows
                    .get(at)
                    .is_some_and(|row| self.open.contains(&row.key));
                self.set_open(at, !open);
            }
            _ => {}
        }
        true
    }

    /// Opens or closes a row. Closing a row that is already closed moves the cursor to its parent.
    fn set_open(&mut self, at: usize, open: bool) {
        let Some(row) = self.rows.get(at) else { return };
        if open && row.kind != Kind::Copy {
            self.open.insert(row.key.clone());
        } else if !open && !self.open.remove(&row.key) {
            let above = self.rows[..at]
                .iter()
                .rposition(|one| one.depth < row.depth);
            return self.go(above.unwrap_or(at));
        }
        self.list_rows();
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let [head, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.height = usize::from(body.height).max(1);
        let place = match self.path.is_empty() {
            true => "/".into(),
            false => format_readable(&self.path),
        };
        let gain = Binary.show(self.top.bytes);
        frame.render_widget(
            Paragraph::new(format!("{place}: {gain} in copies beyond the first")).bold(),
            head,
        );
        let lines = self.rows.iter().map(|row| {
            let indent = "  ".repeat(row.depth);
            let line = Line::from(format!(
                "{:>9}  {indent}{}",
                Binary.show(row.bytes),
                row.text
            ));
            match row.kind {
                Kind::Folder => line.bold(),
                Kind::File(..) => line,
                Kind::Copy => line.dim(),
            }
        });
        let list = List::new(lines).highlight_style(Style::new().reversed());
        frame.render_stateful_widget(list, body, &mut self.list);
        let keys = "↑↓ move  → open  ← close  PgUp PgDn  g G ends  q quit";
        frame.render_widget(Paragraph::new(keys).dim(), foot);
    }
}

/// Runs `assay dups browse`.
pub fn run(args: &Browse, place: &Place) -> anyhow::Result<Status> {
    anyhow::ensure!(
        std::io::stdout().is_terminal() && std::io::stdin().is_terminal(),
        "cannot browse: standard output is not a terminal. `assay dups report` prints the groups, `assay dups \
         treemap` draws them."
    );
    let (_, files, groups) = explore::load(place, &args.paths)?;
    if groups.is_empty() {
        crate::context::print("no duplicates\n")?;
        return Ok(Status::Ok);
    }
    let root = build_tree(&files, &groups);
    let mut browser = Browser::new(&files, &groups, &root);
    let mut terminal = ratatui::try_init()?;
    let result = (|| -> std::io::Result<()> {
        loop {
            terminal.draw(|frame| browser.draw(frame))?;
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                let interrupted =
                    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if interrupted || !browser.key(key.code) {
                    return Ok(());
                }
            }
        }
    })();
    ratatui::try_restore()?;
    result?;
    Ok(Status::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_dups::Identity;
    use assay_dups::group::by_hash;
    use assay_dups::table::{FileSystem, NewFile, RememberedFile};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn table() -> Files {
        let mut files = Files::default();
        let fs = files.filesystem(FileSystem {
            machine: String::new(),
            fsid: 1,
        });
        let mut ino = 0;
        for (folder, names) in [
            ("/srv/a", &[("film", 1_u8), ("song", 2)][..]),
            ("/srv/b", &[("film copy", 1)]),
            ("/srv/b/deep", &[("song \u{1b}[31m", 2), ("film again", 1)]),
        ] {
            let dir = files.add_dir(folder.as_bytes(), fs);
            for (name, content) in names {
                ino += 1;
                let id = Identity {
                    ino,
                    size: 3_000_000 / u64::from(*content),
                    mtime: 0,
                    ctime: 0,
                };
                let known = Some(RememberedFile {
                    generation: 1,
                    hash: Some([*content; 32]),
                    share: None,
                });
                let new = NewFile {
                    id,
                    fs,
                    allocated: None,
                    fresh: false,
                    known,
                };
                files.add_file(dir, name.as_bytes(), new);
            }
        }
        files
    }

    #[test]
    fn keys_open_and_close() {
        let files = table();
        let groups = by_hash(&files);
        let root = build_tree(&files, &groups);
        let mut browser = Browser::new(&files, &groups, &root);
        let mut terminal = Terminal::new(TestBackend::new(64, 9)).unwrap();
        // All files are in /srv/b, so it is the top row: its folder, then its file.
        for key in [KeyCode::Right, KeyCode::Down, KeyCode::Enter] {
            assert!(browser.key(key));
        }
        terminal.draw(|frame| browser.draw(frame)).unwrap();
        insta::assert_snapshot!(terminal.backend(), @r#"
        "/srv/b: 7.15 MiB in copies beyond the first                     "
        " 4.29 MiB  ▾ deep/                                              "
        " 2.86 MiB    ▾ film again                                       "
        " 2.86 MiB      = /srv/a/film                                    "
        " 2.86 MiB      = /srv/b/film copy                               "
        " 1.43 MiB    ▸ song \u{1b}[31m                                  "
        " 2.86 MiB  ▸ film copy                                          "
        "                                                                "
        "↑↓ move  → open  ← close  PgUp PgDn  g G ends  q quit           "
        "#);
        // From a copy to its file, which is then closed; to the end; and quit.
        for key in [KeyCode::Down, KeyCode::Left, KeyCode::Left] {
            assert!(browser.key(key));
        }
        assert_eq!(browser.rows.len(), 4);
        assert!(browser.key(KeyCode::End));
        assert_eq!(browser.selected(), 3);
        assert!(browser.key(KeyCode::PageUp));
        assert!(browser.key(KeyCode::Char('x')));
        assert!(!browser.key(KeyCode::Char('q')));
    }
}
