//! Writes synthetic exports of many machines, one prefix of them: `bench/dups/across` asks them.
//!
//! usage: across write DIR MACHINES ROWS PREFIX
//!        across ask DIR THREADS
//!
//! ROWS in all, on so many machines, of hashes that begin with the digits PREFIX: a share of 1/16 for each digit of
//! an export of 16 to the power of that times as many. Each content is on 1.25 machines in the mean, a tenth of the
//! rows are of two files.
#![allow(clippy::disallowed_methods, reason = "a benchmark")]

use assay_columns::{CellValue, TableWriter};
use assay_dups::across::export_columns;
use assay_dups::across::export_queries::ask;
use std::io::BufWriter;

fn mix(mut x: u64) -> u64 {
    // SplitMix64 (Steele, Lea, Flood 2014).
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["write", dir, machines, rows, prefix] => {
            write(
                dir,
                machines.parse().unwrap(),
                rows.parse().unwrap(),
                prefix,
            );
        }
        ["ask", dir, threads] => {
            let answer = ask(&[dir.into()], 10, threads.parse().unwrap()).unwrap();
            println!(
                "{} files, {} contents, {} of several files: {} bytes; {} on several machines",
                answer.files,
                answer.contents,
                answer.groups,
                answer.redundant_bytes,
                answer.shared_groups
            );
        }
        _ => {
            eprintln!("usage: across write DIR MACHINES ROWS PREFIX | across ask DIR THREADS");
            std::process::exit(2);
        }
    }
}

fn write(dir: &str, machines: u64, rows: u64, prefix: &str) {
    let contents = rows * 4 / 5;
    let digits = prefix.len() as u32;
    let first = u64::from_str_radix(prefix, 16).unwrap() << (64 - 4 * digits);
    let step = (u64::MAX >> (4 * digits)) / contents;
    // So that 1.25 of so many machines have a content.
    let share = (1.25 / machines as f64 * u64::MAX as f64) as u64;
    let folder = format!("{dir}/prefix={prefix}");
    std::fs::create_dir_all(&folder).unwrap();
    for machine in 0..machines {
        let name = format!("machine{machine}");
        let notes = [
            ("assay", "dups"),
            ("version", "1"),
            ("machine", &*name),
            ("id", ""),
            ("hash", "xxh3-128"),
            ("export", "bench"),
            ("files", "1"),
        ];
        let notes = notes.map(|(name, value)| (name, value.to_owned()));
        let file = std::fs::File::create(format!("{folder}/{name}.parquet")).unwrap();
        let out = BufWriter::with_capacity(1 << 20, file);
        let mut writer = TableWriter::new(out, &export_columns(16), &notes).unwrap();
        for content in 0..contents {
            let random = mix(content);
            if mix(random ^ (machine << 32)) > share {
                continue;
            }
            let mut hash = [0; 16];
            hash[..8].copy_from_slice(&(first + content * step).to_be_bytes());
            hash[8..].copy_from_slice(&random.to_be_bytes());
            // From 1 byte to 16 MiB, small ones more often.
            let size = 1 + (random >> 8) % (1 << (random % 24 + 1));
            let count = 1 + i64::from(mix(random ^ machine).is_multiple_of(10));
            let row = [
                CellValue::Text(&name),
                CellValue::Fixed(&hash),
                CellValue::Int(size as i64),
                CellValue::Int(count),
            ];
            writer.row(&row).unwrap();
        }
        writer.finish().unwrap().into_inner().unwrap();
    }
}
