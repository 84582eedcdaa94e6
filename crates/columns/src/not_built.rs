//! Replaces readers and writers in a build without Parquet. No table can be opened there, so only the functions that
//! open have code.

use crate::{CellValue, Column, Error, TableSource};
use std::convert::Infallible;
use std::io::Write;
use std::marker::PhantomData;

/// Values of a column.
#[derive(Debug)]
pub enum Values {}

impl Values {
    /// Returns the number in the given row.
    #[must_use]
    pub fn int(&self, _: usize) -> Option<i64> {
        match *self {}
    }

    /// Returns the bytes in the given row.
    #[must_use]
    pub fn bytes(&self, _: usize) -> &[u8] {
        match *self {}
    }
}

/// Several rows of a table, stored by column.
#[derive(Debug, Default)]
pub struct Batch {
    /// Values of each column of the table.
    pub columns: Vec<Values>,
    /// Number of rows in the batch.
    pub rows: usize,
}

/// Reader of a table.
pub struct Reader(Infallible);

impl Reader {
    /// Returns an error, because this build does not support Parquet.
    ///
    /// # Errors
    /// Always [`Error::NotBuilt`].
    pub fn open(_: TableSource, _: &[Column]) -> Result<Self, Error> {
        Err(Error::NotBuilt)
    }

    /// Returns the metadata of the table with this name.
    #[must_use]
    pub fn note(&self, _: &str) -> Option<&str> {
        match self.0 {}
    }

    /// Returns the number of rows in the table.
    #[must_use]
    pub fn rows(&self) -> u64 {
        match self.0 {}
    }

    /// Reads the next rows.
    ///
    /// # Errors
    /// This function is never called.
    pub fn read(&mut self, _: &mut Batch) -> Result<(), Error> {
        match self.0 {}
    }
}

/// Writer of a table.
pub struct TableWriter<W: Write + Send>(Infallible, PhantomData<W>);

impl<W: Write + Send> TableWriter<W> {
    /// Returns an error, because this build does not support Parquet.
    ///
    /// # Errors
    /// Always [`Error::NotBuilt`].
    pub fn new(_: W, _: &[Column], _: &[(&str, String)]) -> Result<Self, Error> {
        Err(Error::NotBuilt)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// This function is never called.
    pub fn row(&mut self, _: &[CellValue<'_>]) -> Result<(), Error> {
        match self.0 {}
    }

    /// Ends the table and returns its output.
    ///
    /// # Errors
    /// This function is never called.
    pub fn finish(self) -> Result<W, Error> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_feature() {
        let source = TableSource::memory(Vec::new());
        let error = Reader::open(source, &[])
            .err()
            .map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("--features parquet")));
        assert!(TableWriter::new(Vec::new(), &[], &[]).is_err());
    }
}
