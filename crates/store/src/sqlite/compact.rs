//! Returns unused pages of the file to the file system.

use rusqlite::{Connection, ErrorCode};

/// Inverse of the minimum fraction of unused pages: the file is rewritten if at least one page in five is unused. So
/// daily pruning does not rewrite the file every day.
const ONE_OF: i64 = 5;

/// Rewrites the file without its unused pages if there are many of them. Returns the number of bytes that became free.
/// Returns `None` if another process uses the file, or if the disk has no room for the copy. The unused pages then stay
/// available for later records.
pub(super) fn compact(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = || number("page_count");
    let before = pages()?;
    if number("freelist_count")? < (before / ONE_OF).max(1) {
        return Ok(Some(0));
    }
    // A page that another process reads stays in the write-ahead log until that process ends.
    let rewritten = connection
        .execute_batch("VACUUM")
        .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    match rewritten {
        Ok(()) => {}
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull) => {
                return Ok(None);
            }
            _ => return Err(error),
        },
    }
    let left = (before - pages()?) * number("page_size")?;
    Ok(Some(u64::try_from(left).unwrap_or(0)))
}
