//! Exports the tables of the store as Parquet, one file each, with the same columns as in SQL.

use anyhow::Context as _;
use assay_columns::{CellValue, Column, ColumnKind, TableWriter};
use assay_store::Store;
use assay_store::tables::{self, TABLES, Table, Value};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Writes all tables to an existing folder.
pub(super) fn write(store: &Store, dir: &Path) -> anyhow::Result<()> {
    let runs = store.runs()?.into_iter().rev().map(|run| run.uid);
    let trials = store.trials()?.into_iter().rev().map(|trial| trial.uid);
    let records: Vec<String> = runs.chain(trials).collect();
    let hosts: Vec<String> = store.hosts()?.into_iter().map(|host| host.0).collect();
    for table in &TABLES {
        let of = match table.of {
            "machine" => &hosts,
            _ => &records,
        };
        write_table(
            store,
            table,
            of,
            &dir.join(format!("{}.parquet", table.name)),
        )?;
    }
    Ok(())
}

fn write_table(store: &Store, table: &Table, of: &[String], path: &Path) -> anyhow::Result<()> {
    let columns: Vec<Column> = table.columns.iter().map(column).collect();
    let file = File::create_new(path).context("cannot make a file of the export")?;
    let notes = [
        ("assay", table.name.to_owned()),
        ("version", "1".to_owned()),
    ];
    let mut writer = TableWriter::new(BufWriter::new(file), &columns, &notes)?;
    for name in of {
        for row in store.table_rows(table, name)? {
            let cells: Vec<CellValue<'_>> = row.iter().map(cell).collect();
            writer.row(&cells).context("cannot write the export")?;
        }
    }
    let file = writer.finish()?.into_inner();
    let file = file.map_err(std::io::IntoInnerError::into_error);
    let synced = file.and_then(|file| file.sync_all());
    synced.context("cannot write the export")
}

fn column(column: &tables::Column) -> Column {
    let kind = match column.kind {
        tables::Kind::Text => ColumnKind::Text,
        tables::Kind::Int => ColumnKind::Int,
        tables::Kind::Float => ColumnKind::Float,
        tables::Kind::Flag => ColumnKind::Flag,
        tables::Kind::Time => ColumnKind::Time,
    };
    match column.optional {
        true => Column::optional(column.name, kind),
        false => Column::new(column.name, kind),
    }
}

fn cell(value: &Value) -> CellValue<'_> {
    match value {
        Value::None => CellValue::None,
        Value::Text(text) => CellValue::Text(text),
        Value::Int(number) => CellValue::Int(*number),
        Value::Float(number) => CellValue::Float(*number),
        Value::Flag(flag) => CellValue::Flag(*flag),
        Value::Time(time) => CellValue::Int(time.as_microsecond()),
    }
}
