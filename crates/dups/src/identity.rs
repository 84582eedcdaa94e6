//! Identifies the state of a file.

/// State of a file. Equal states have equal contents, unless the change happened within the precision of file
/// times (see [`crate::table::File::is_fresh`]).
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
