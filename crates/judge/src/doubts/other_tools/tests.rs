use super::*;

fn explained(text: &str) -> ExplainedCommand {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    explain_command(&words).unwrap_or_else(|| panic!("{text}"))
}

fn codes(text: &str) -> Vec<String> {
    explained(text)
        .doubts
        .into_iter()
        .map(|doubt| doubt.code)
        .collect()
}

#[test]
fn commands_of_other_tools_are_explained() {
    for (text, wanted) in [
        (
            "sudo dd if=/dev/zero of=/srv/t bs=1M count=1024",
            &[
                page_cache_write::CODE,
                unflushed_write::CODE,
                compressible_data::CODE,
            ][..],
        ),
        (
            "dd if=/srv/data of=/srv/t bs=1M iflag=direct oflag=direct",
            &[],
        ),
        ("dd if=/srv/t of=/dev/null bs=1M", &[page_cache_read::CODE]),
        ("dd if=/dev/urandom of=t conv=fdatasync", &[tool_cpu::CODE]),
        (
            "sysbench fileio --file-test-mode=rndrw run",
            &[
                page_cache_read::CODE,
                page_cache_write::CODE,
                too_short::CODE,
            ],
        ),
        (
            "sysbench fileio --file-test-mode=rndrd --file-extra-flags=direct --time=60 run",
            &[],
        ),
        (
            "bonnie++ -d /srv -s 16g",
            &[page_cache_read::CODE, page_cache_write::CODE],
        ),
        (
            "hdparm -tT /dev/sda",
            &[page_cache_read::CODE, too_short::CODE],
        ),
        (
            "iozone -a",
            &[page_cache_read::CODE, page_cache_write::CODE],
        ),
        ("iozone -I -s 8g -r 4k", &[]),
        ("iozone -a -g 16G -o", &[page_cache_read::CODE]),
        (
            "sysbench fileio --file-test-mode=rndwr --file-fsync-all=on --time=60 run",
            &[],
        ),
        (
            "sysbench fileio --file-test-mode=rndwr --file-fsync-all --file-fsync-all=off --time=60 run",
            &[page_cache_write::CODE],
        ),
        (
            "sysbench fileio --file-test-mode=seqwr --file-extra-flags=sync --time=60 run",
            &[],
        ),
        (
            "sysbench fileio --file-test-mode=rndrw --file-extra-flags=dsync --time=60 run",
            &[page_cache_read::CODE],
        ),
        (
            "sysbench fileio --file-test-mode=rndwr --file-fsync-freq=0 --time=60 run",
            &[page_cache_write::CODE],
        ),
        (
            "sysbench fileio --file-test-mode=rndrd --file-fsync-all=on --time=60 run",
            &[page_cache_read::CODE],
        ),
        (
            "sysbench fileio --file-test-mode=rndwr --file-extra-flags=sync,direct --time=60 run",
            &[],
        ),
        (
            "diskspd.exe -b4K -w100 -d10 c:\\t.dat",
            &[
                page_cache_write::CODE,
                compressible_data::CODE,
                too_short::CODE,
            ],
        ),
        ("diskspd -b4K -r -o32 -t4 -Sh -d60 c:\\t.dat", &[]),
    ] {
        assert_eq!(codes(text), wanted, "{text}");
    }
    let none = |text: &str| {
        explain_command(
            &text
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    };
    for text in ["sysbench cpu run", "hdparm -I /dev/sda", "ls -l", ""] {
        assert_eq!(none(text), None, "{text}");
    }
}

#[test]
fn options_change_the_sentence() {
    let sysbench = |rest: &str| {
        explained(&format!(
            "sysbench fileio --file-test-mode=rndwr {rest} run"
        ))
        .measures
    };
    // As strace counts them: 1.0.20, 200 requests on one file.
    for (rest, wanted) in [
        ("", "after every 100 requests"),
        ("--file-fsync-freq=10", "after every 10 requests"),
        ("--file-fsync-all=on", "after every write"),
        ("--file-fsync-all", "after every write"),
        (
            "--file-fsync-all=on --file-fsync-all=off",
            "after every 100 requests",
        ),
        ("--file-fsync-freq=0", "at the end only"),
        (
            "--file-fsync-freq=0 --file-fsync-end=off",
            "without any fsync",
        ),
        (
            "--file-fsync-mode=fdatasync",
            "fdatasync of all files after every 100",
        ),
    ] {
        assert!(
            sysbench(rest).contains(wanted),
            "{rest}: {}",
            sysbench(rest)
        );
    }
    let read = explained("sysbench fileio --file-test-mode=rndrd run").measures;
    assert!(!read.contains("sync"), "{read}");
    for (text, wanted) in [
        ("iozone -a", "512 MB"),
        ("iozone -a -g 16G", "up to 16G"),
        ("iozone -a -g16G", "up to 16G"),
        ("iozone -Ra -n 1g -g 64g -b out.xls", "up to 64g"),
        ("iozone -s 32g -r 1m -i 0", "files of 32g"),
    ] {
        let measures = explained(text).measures;
        assert!(measures.contains(wanted), "{text}: {measures}");
    }
}

#[test]
fn what_overwrites_a_device_is_named() {
    assert_eq!(
        explained("dd if=/dev/zero of=/dev/sdb bs=1M")
            .overwrites
            .as_deref(),
        Some("/dev/sdb")
    );
    assert_eq!(
        explained("diskspd -w50 #1").overwrites.as_deref(),
        Some("#1")
    );
    for text in [
        "dd if=/dev/sdb of=/dev/null",
        "diskspd #1",
        "hdparm -t /dev/sda",
    ] {
        assert_eq!(explained(text).overwrites, None, "{text}");
    }
}

#[test]
fn crystal_disk_mark_is_known_by_its_lines() {
    assert!(explain_crystal_disk_mark("  SEQ    1MiB (Q=  8, T= 1):  3500.1 MB/s").is_some());
    assert!(explain_crystal_disk_mark("CrystalDiskMark 8.0.4 x64").is_some());
    assert!(explain_crystal_disk_mark("fio --name=SEQ").is_none());
}
