use super::*;
use std::io::Write as _;
use tar::EntryType;

fn tar(build: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    build(&mut builder);
    builder.into_inner().unwrap()
}

fn add(builder: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_ustar();
    // Set the bytes directly: the library refuses names that a hostile machine may send.
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, bytes).unwrap();
}

const INDEX_TEXT: &[u8] =
    br#"{"schema":1,"collector":"1","asked":["/etc/ssh/**","/etc/x"],"tools":["zpool"],
"errors":{"/etc/x":{"errno":13,"reason":"Permission denied"}},
"commands":[{"argv":["fio","--version"],"status":0,"lines":["fio-3.33"]}]}"#;

fn read(bytes: &[u8]) -> Result<Bundle, CaptureError> {
    Bundle::read(bytes, "it")
}

#[test]
fn a_bundle_behind_a_banner_in_each_form() {
    let plain = tar(|builder| {
        add(builder, "etc/ssh/sshd_config", b"UseDNS no\n");
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        builder
            .append_link(&mut header, "etc/link", "/etc/ssh/../ssh/sshd_config")
            .unwrap();
        add(builder, "assay-capture.json", INDEX_TEXT);
    });
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let forms = [
        plain.clone(),
        gzip.finish().unwrap(),
        zstd::encode_all(&plain[..], 3).unwrap(),
    ];
    for form in forms {
        let banner = [b"Welcome!\r\nassay-bundle 1 x\n", &form[..]].concat();
        for bytes in [&form, &banner] {
            let host = read(bytes).unwrap();
            let text = host.read_text(Path::new("/etc/link")).unwrap();
            assert_eq!(text, "UseDNS no\n");
            assert_eq!(host.list(Path::new("/etc/ssh")).unwrap(), ["sshd_config"]);
        }
        // A truncated bundle is an error and never a partial machine.
        for end in [form.len() / 4, form.len() / 2, form.len() * 3 / 4] {
            assert!(read(&form[..end]).is_err(), "{end} of {}", form.len());
        }
    }
    let host = read(&plain).unwrap();
    let is = |path: &str| host.read(Path::new(path)).unwrap_err();
    assert!(is("/etc/ssh/ssh_config").is_absent());
    assert!(matches!(is("/etc/shadow"), HostError::NotCaptured { .. }));
    assert_eq!(is("/etc/x").errno(), Some(13));
    let version = ["fio", "--version"].map(OsStr::new);
    assert_eq!(
        host.run(&version, Limits::default()).unwrap().text(),
        "fio-3.33\n"
    );
    assert!(host.which(OsStr::new("zpool")).is_none());
    let other = host.run(&["nginx", "-v"].map(OsStr::new), Limits::default());
    assert!(matches!(other, Err(HostError::NotCaptured { .. })));
}

#[test]
fn attack_names_that_lead_out_and_things_that_are_no_files() {
    let up = tar(|builder| add(builder, "../../etc/passwd", b"x"));
    assert!(read(&up).unwrap_err().to_string().contains("upwards"));
    let odd = tar(|builder| {
        add(builder, "/etc//ssh/./a", b"absolute");
        for kind in [EntryType::Fifo, EntryType::Block, EntryType::Link] {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_path("etc/ssh/odd").unwrap();
            header.set_link_name("etc/passwd").unwrap();
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, &[][..]).unwrap();
        }
        for (name, target) in [("loop", "loop"), ("etc/out", "../../../../../etc/hostname")] {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            builder.append_link(&mut header, name, target).unwrap();
        }
        add(builder, "assay-capture.json", br#"{"schema":1}"#);
    });
    let host = read(&odd).unwrap();
    assert_eq!(host.read(Path::new("/etc/ssh/a")).unwrap(), b"absolute");
    assert!(
        host.read(Path::new("/etc/ssh/odd"))
            .unwrap_err()
            .is_absent()
    );
    assert!(host.read(Path::new("/etc/out")).unwrap_err().is_absent());
    let error = host.read(Path::new("/loop")).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"/loop: too many levels of symbolic links");
}

/// The bundle has two hundred files, each below two thousand nested directories. It has only 5 KB, but an earlier
/// version needed half a gigabyte of memory to decode it.
#[test]
fn attack_few_files_in_many_directories() {
    let deep = |count: usize, dir: &str, times: usize| {
        tar(|builder| {
            for number in 0..count {
                let name = format!("x{number}/{}b", dir.repeat(times));
                let mut header = tar::Header::new_gnu();
                header.set_size(0);
                header.set_mode(0o644);
                builder.append_data(&mut header, name, &b""[..]).unwrap();
            }
            add(builder, "assay-capture.json", INDEX_TEXT);
        })
    };
    let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(said(&deep(1, "a/", 2000)).contains("directories"));
    let wide = format!("{}/", "a".repeat(120));
    let many = deep(2000, &wide, 32);
    assert!(said(&many).contains("names"));
    assert!(read(&deep(20, &wide, 32)).is_ok());
}

/// The bundle is small, but its decompressed size is far above the limit.
#[test]
fn attack_bombs_are_cut_off() {
    struct Zeros;
    impl Read for Zeros {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(0);
            Ok(buffer.len())
        }
    }
    // Endless input that is not an archive.
    let error = Bundle::read(Zeros, "it").unwrap_err();
    insta::assert_snapshot!(error.to_string(), @r"it: no bundle is in it; it begins with `\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0`");
    // Ten thousand million bytes in one file.
    let mut header = tar::Header::new_gnu();
    header.set_path("etc/huge").unwrap();
    header.set_size(10 << 30);
    header.set_cksum();
    let huge = std::io::Cursor::new(header.as_bytes().to_vec()).chain(Zeros);
    let error = Bundle::read(huge, "it").unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"it: /etc/huge in it is longer than 32 MiB");
    // Many files of a permitted size.
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    for number in 0..9 {
        let mut header = tar::Header::new_gnu();
        header.set_path(format!("etc/{number}")).unwrap();
        header.set_size(16 << 20);
        header.set_cksum();
        packed.write_all(header.as_bytes()).unwrap();
        std::io::copy(&mut Zeros.take(16 << 20), &mut packed).unwrap();
    }
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 1 << 20);
    let error = read(&packed).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"it: not a bundle: more than 128 MiB are in it");
    // Millions of names.
    let mut names = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for number in 0..210_000 {
        let mut header = tar::Header::new_ustar();
        header.set_path(format!("n/{number}")).unwrap();
        header.set_size(0);
        header.set_cksum();
        names.write_all(header.as_bytes()).unwrap();
    }
    let error = read(&names.finish().unwrap()).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"it: more than 200000 names in it");
    for (bytes, what) in [
        (&b""[..], "empty"),
        (b"ssh: banner\n", "`ssh: banner`"),
        (b"assay-bundle 1 zstd", "cut off"),
        (b"assay-bundle 1 zstd\n", ""),
    ] {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
