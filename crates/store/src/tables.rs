//! The tables for queries: views that have the same names and columns in SQLite and PostgreSQL, and in exports. What
//! they hold is described in `docs/src/store-schema.md`.

use crate::{Store, StoreError};
use jiff::Timestamp;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number of 64 bits.
    Int,
    /// A number with a fraction, 64 bits.
    Float,
    /// Yes or no; 1 or 0 in SQLite.
    Flag,
    /// A time; text as in RFC 3339, UTC, in SQLite.
    Time,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether a row may have no value there.
    pub optional: bool,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name; in PostgreSQL within the schema `assay`.
    pub name: &'static str,
    /// Its columns in order.
    pub columns: &'static [Column],
    /// The column by which rows are read in parts: a record or a machine.
    pub of: &'static str,
    /// The columns by which the rows of a part are ordered.
    pub order: &'static str,
}

/// What a row has in a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    None,
    /// Of [`Kind::Text`].
    Text(String),
    /// Of [`Kind::Int`].
    Int(i64),
    /// Of [`Kind::Float`].
    Float(f64),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Time`].
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

/// All tables.
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
    /// Returns the rows of a table that belong to a record (its uid) or to a machine, as [`Table::of`] says.
    ///
    /// # Errors
    /// What the database says.
    pub fn table_rows(&self, table: &Table, of: &str) -> Result<Vec<Vec<Value>>, StoreError> {
        self.sql.table_rows(table, of)
    }
}
