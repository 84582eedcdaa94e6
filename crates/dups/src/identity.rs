//! How a state of a file is told from every other.

/// What distinguishes a state of a file from every other: if all of it is the same, so is the
/// content, unless the change happened within the resolution of the clock of file times
/// (see [`crate::table::File::is_fresh`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Inode number.
    pub ino: u64,
    /// Length in bytes.
    pub size: u64,
    /// Time of the last change of the content, nanoseconds since 1970.
    pub mtime: i64,
    /// Time of the last change of content or metadata, nanoseconds since 1970; it cannot be set
    /// back by a program.
    pub ctime: i64,
}
