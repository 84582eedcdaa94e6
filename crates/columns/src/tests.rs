use crate::{Batch, CellValue, Column, ColumnKind, Error, Reader, TableSource, TableWriter};
use proptest::prelude::*;

const COLUMNS: [Column; 4] = [
    Column::new("machine", ColumnKind::Text),
    Column::new("hash", ColumnKind::Fixed(16)),
    Column::new("size", ColumnKind::Count),
    Column::new("share", ColumnKind::Float),
];

fn written(rows: &[(String, [u8; 16], i64)]) -> Vec<u8> {
    let mut writer = TableWriter::new(Vec::new(), &COLUMNS, &[("assay", "it".into())]).unwrap();
    for (machine, hash, size) in rows {
        let share = CellValue::Float(*size as f64 / 2.0);
        writer
            .row(&[
                CellValue::Text(machine),
                CellValue::Fixed(hash),
                CellValue::Int(*size),
                share,
            ])
            .unwrap();
    }
    writer.finish().unwrap()
}

type Row = (String, [u8; 16], i64);

fn read(bytes: Vec<u8>) -> Result<Vec<Row>, Error> {
    let mut reader = Reader::open(TableSource::memory(bytes), &COLUMNS)?;
    assert_eq!(reader.note("assay"), Some("it"));
    let (mut rows, mut batch) = (Vec::new(), Batch::default());
    loop {
        reader.read(&mut batch)?;
        if batch.rows == 0 {
            return Ok(rows);
        }
        for row in 0..batch.rows {
            rows.push((
                String::from_utf8(batch.columns[0].bytes(row).to_vec()).unwrap(),
                batch.columns[1].bytes(row).try_into().unwrap(),
                batch.columns[2].int(row).unwrap(),
            ));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_is_read(rows in proptest::collection::vec((".{0,9}", any::<[u8; 16]>(), any::<i64>()), 0..3000)) {
        prop_assert_eq!(read(written(&rows)).unwrap(), rows);
    }
}

#[test]
fn several_groups_and_texts_that_fill_a_dictionary() {
    // More distinct texts than a dictionary permits, so that the column continues without one.
    let row = |n: u32| (format!("{n:0>40}"), [n as u8; 16], i64::from(n));
    let rows: Vec<_> = (0..300_000).map(row).collect();
    assert!(read(written(&rows)).unwrap() == rows);
}

#[test]
fn what_is_another_file_is_refused() {
    let good = written(&[("a".into(), [1; 16], 2)]);
    let open = |columns: &[Column]| Reader::open(TableSource::memory(good.clone()), columns);
    let more = [&COLUMNS[..], &[Column::new("count", ColumnKind::Int)]].concat();
    let error = open(&more).err().unwrap();
    assert!(error.to_string().contains("other columns"), "{error}");
    // Some of the columns, in another order.
    assert!(open(&[COLUMNS[2], COLUMNS[0]]).is_ok());
    for cut in 0..good.len() {
        assert!(read(good[..cut].to_vec()).is_err(), "{cut}");
    }
    assert!(read(b"PAR1 some text PAR1".to_vec()).is_err());
}

#[test]
fn a_row_that_does_not_fit_is_refused() {
    let mut writer = TableWriter::new(Vec::new(), &COLUMNS[..2], &[]).unwrap();
    for row in [
        &[CellValue::Text("a")][..],
        &[CellValue::Text("a"), CellValue::Fixed(&[0; 15])],
        &[CellValue::None, CellValue::Fixed(&[0; 16])],
        &[CellValue::Int(1), CellValue::Fixed(&[0; 16])],
    ] {
        assert!(matches!(writer.row(row), Err(Error::Shape)));
    }
}
