//! What a client of a share does, whichever protocol it speaks.

use crate::{Protection, ShareError};
use std::path::Path;

/// A client for one directory of one share; each call is one connection.
pub(crate) trait ShareClient {
    /// Returns the kinds of protection that the protocol has.
    fn protections(&self) -> &'static [Protection];

    /// Returns the name of the share in messages and records.
    fn share_name(&self) -> String;

    /// Returns whether this client is for the given share, port and directory.
    fn is_for(&self, share: &str, port: u16, directory: &str) -> bool;

    /// Returns name and version of the client.
    fn describe(&self, stop: &dyn Fn() -> bool) -> Result<String, ShareError>;

    /// Connects once, and returns the dialect that both ends agreed on.
    fn connect(&self, stop: &dyn Fn() -> bool) -> Result<Option<String>, ShareError>;

    /// Writes the file to the share, reads it and removes it.
    fn transfer(
        &self,
        protection: Protection,
        file: &Path,
        name: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Transfer, ShareError>;

    /// Removes a file from the share. Succeeds if the file does not exist.
    fn delete(&self, name: &str, stop: &dyn Fn() -> bool) -> Result<(), ShareError>;
}

/// A write and a read of the test file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transfer {
    /// Bytes per second.
    pub write: f64,
    /// Bytes per second.
    pub read: f64,
    /// CPU time of the client ÷ duration of the connection.
    pub client_cpu: f64,
}
