//! Tables for queries. They are views with the same names and columns in SQLite, PostgreSQL and exports.
//! `docs/src/store-schema.md` describes their content.

use crate::{Store, StoreError};
use jiff::Timestamp;

/// Type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text in UTF-8.
    Text,
    /// Signed 64-bit integer.
    Int,
    /// 64-bit floating point number.
    Float,
    /// Boolean; 1 or 0 in SQLite.
    Flag,
    /// Time; RFC 3339 text in UTC in SQLite.
    Time,
}

/// A column of a table for queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column in SQL.
    pub name: &'static str,
    /// Type of the values.
    pub kind: Kind,
    /// Whether a row may have no value in this column.
    pub optional: bool,
}

/// A table for SQL queries.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the table. In PostgreSQL, the table is in the schema `assay`.
    pub name: &'static str,
    /// Columns of the table in order.
    pub columns: &'static [Column],
    /// Column by which the table is divided into parts: a record or a machine.
    pub of: &'static str,
    /// Columns by which the rows of a part are ordered.
    pub order: &'static str,
}

/// A value of a row in a table for queries.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value (null).
    None,
    /// Text, for a column of [`Kind::Text`].
    Text(String),
    /// Integer, for a column of [`Kind::Int`].
    Int(i64),
    /// Number, for a column of [`Kind::Float`].
    Float(f64),
    /// Boolean, for a column of [`Kind::Flag`].
    Flag(bool),
    /// Time, for a column of [`Kind::Time`].
    Time(Timestamp),
}

const fn always(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        optional: false,
    }
}

const fn maybe(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        optional: true,
    }
}

use Kind::{Flag, Float, Int, Text, Time};

/// All tables that SQL queries can use.
pub const TABLES: [Table; 6] = [
    Table {
        name: "runs",
        of: "run",
        order: "number",
        columns: &[
            always("run", Text),
            always("number", Int),
            maybe("machine_id", Text),
            maybe("machine", Text),
            always("started", Time),
            maybe("ended", Time),
            always("state", Text),
            always("plan", Text),
            always("targets", Text),
            always("samples_planned", Int),
            always("samples", Int),
            maybe("origin", Text),
            maybe("assay_version", Text),
            maybe("kernel", Text),
        ],
    },
    Table {
        name: "trials",
        of: "trial",
        order: "number",
        columns: &[
            always("trial", Text),
            always("number", Int),
            maybe("machine_id", Text),
            maybe("machine", Text),
            always("started", Time),
            maybe("ended", Time),
            always("state", Text),
            always("advice", Text),
            always("target", Text),
            maybe("assay_version", Text),
            maybe("kernel", Text),
            maybe("verdict", Text),
            maybe("metric", Text),
            maybe("margin", Float),
            maybe("same_sides", Flag),
            maybe("pairs", Int),
            maybe("left_out", Int),
            maybe("ratio", Float),
            maybe("low", Float),
            maybe("high", Float),
            maybe("reason", Text),
        ],
    },
    Table {
        name: "figures",
        of: "record",
        order: "pair, side, slot, metric",
        columns: &[
            always("kind", Text),
            always("record", Text),
            maybe("machine_id", Text),
            maybe("machine", Text),
            maybe("kernel", Text),
            maybe("pair", Int),
            maybe("side", Text),
            always("round", Int),
            always("slot", Int),
            always("workload", Text),
            always("target", Text),
            always("started", Time),
            always("wall_ns", Int),
            always("outcome", Text),
            maybe("validity", Text),
            maybe("doubts", Text),
            always("metric", Text),
            always("unit", Text),
            always("value", Float),
        ],
    },
    Table {
        name: "disks",
        of: "record",
        order: "target, disk",
        columns: &[
            always("kind", Text),
            always("record", Text),
            maybe("machine_id", Text),
            maybe("machine", Text),
            always("target", Text),
            always("target_kind", Text),
            maybe("fs_type", Text),
            maybe("mount_point", Text),
            maybe("mount_options", Text),
            always("size_bytes", Int),
            maybe("disk", Text),
            maybe("model", Text),
            maybe("rotational", Flag),
            maybe("scheduler", Text),
        ],
    },
    Table {
        name: "facts",
        of: "machine",
        order: "fact, since",
        columns: &[
            always("machine", Text),
            always("fact", Text),
            always("state", Text),
            maybe("value", Text),
            maybe("number", Float),
            maybe("json", Text),
            always("since", Time),
            always("seen", Time),
            maybe("until", Time),
        ],
    },
    Table {
        name: "findings",
        of: "machine",
        order: "finding, since",
        columns: &[
            always("machine", Text),
            always("finding", Text),
            always("rule", Text),
            maybe("subject", Text),
            always("state", Text),
            maybe("severity", Text),
            always("since", Time),
            always("seen", Time),
            maybe("until", Time),
        ],
    },
];

impl Store {
    /// Returns the rows of a table that belong to a record (by uid) or machine; see [`Table::of`].
    ///
    /// # Errors
    /// The database reports an error.
    pub fn table_rows(&self, table: &Table, of: &str) -> Result<Vec<Vec<Value>>, StoreError> {
        self.sql.table_rows(table, of)
    }
}
