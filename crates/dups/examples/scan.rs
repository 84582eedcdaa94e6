#![allow(missing_docs)]
use std::sync::atomic::AtomicBool;
fn main() {
    let mut args = std::env::args().skip(1);
    let root = args.next().unwrap();
    let index = args.next();
    let stop = AtomicBool::new(false);
    let progress = assay_dups::Progress::default();
    let control = assay_dups::Control { stop: &stop, progress: &progress, tick: &|| {}, threads: std::env::var("T").ok().and_then(|t| t.parse().ok()) };
    let mut index = index.map(|i| assay_dups::Index::open(i.as_ref()).unwrap());
    let found = assay_dups::scan(&[root.into()], &assay_dups::ScanOptions::default(), index.as_mut(), &control).unwrap();
    if let Ok(out) = std::env::var("OUT") {
        let mut f = std::io::BufWriter::new(std::fs::File::create(out).unwrap());
        assay_dups::format::json(&mut f, &found.files, &found.groups, None).unwrap();
    }
    println!("{} files {} groups {:?} {:?}", found.files.files.len(), found.groups.len(), found.cost, found.index_error);
}
