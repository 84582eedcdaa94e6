//! Identifies a state of a file by its inode number, size and times.

/// State of a file. Two equal states have equal contents, unless a change was faster than the precision of file times
/// (see [`crate::table::File::is_fresh`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Inode number.
    pub ino: u64,
    /// Length in bytes.
    pub size: u64,
    /// Time of the last change of the content, nanoseconds since 1970.
    pub mtime: i64,
    /// Time of the last change of content or metadata, nanoseconds since 1970. Programs cannot set it.
    pub ctime: i64,
}
