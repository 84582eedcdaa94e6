//! Tests a store in a real PostgreSQL over TLS, with the modes of libpq.
#![allow(clippy::disallowed_methods, reason = "tests make files and processes")]

mod common;

use assay_store::Store;
use assay_testing::servers::postgres::Postgres;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};

/// Creates a certificate authority, and a certificate for a name. Returns the authority, the certificate and its key,
/// all in PEM.
fn certificates(name: &str) -> (String, String, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    (authority_pem, certificate.pem(), key.serialize_pem())
}

fn url(port: u16, host: &str, parameters: &str) -> PathBuf {
    PathBuf::from(format!(
        "postgresql://assay@{host}:{port}/postgres?hostaddr=127.0.0.1&{parameters}"
    ))
}

#[test]
fn each_mode_does_what_libpq_says() {
    let (authority, certificate, key) = certificates("db.example");
    let Some((server, port)) = Postgres::start_with_tls(&certificate, &key) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| -> String {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ours = write("ca.pem", &authority);
    let other = write("other.pem", &certificates("x").0);
    for (host, parameters, reason) in [
        (
            "db.example",
            format!("sslmode=verify-full&sslrootcert={ours}"),
            None,
        ),
        (
            "other.example",
            format!("sslmode=verify-ca&sslrootcert={ours}"),
            None,
        ),
        ("other.example", "sslmode=require".to_owned(), None),
        ("other.example", "sslmode=prefer".to_owned(), None),
        ("db.example", "sslmode=disable".to_owned(), None),
        (
            "other.example",
            format!("sslmode=verify-full&sslrootcert={ours}"),
            Some("verify-ca"),
        ),
        (
            "db.example",
            format!("sslmode=verify-ca&sslrootcert={other}"),
            Some("sslrootcert=FILE"),
        ),
        // Where a file of authorities is named, `require` checks the chain.
        (
            "db.example",
            format!("sslmode=require&sslrootcert={other}"),
            Some("sslrootcert=FILE"),
        ),
    ] {
        let opened = Store::open(&url(port, host, &parameters));
        match (opened, reason) {
            (Ok(_), None) => {}
            (Err(error), Some(reason)) => {
                assert!(error.to_string().contains(reason), "{parameters}: {error}");
            }
            (opened, _) => panic!("{host} {parameters}: {:?}", opened.err()),
        }
    }
    // A record goes through, and the server sees that the connection is encrypted.
    let url = url(
        port,
        "db.example",
        &format!("sslmode=verify-full&sslrootcert={ours}"),
    );
    let mut store = Store::open(&url).unwrap();
    let mut run = common::run(&"1".repeat(32));
    store.create_run(&mut run).unwrap();
    for at in 0..200 {
        store
            .add_sample(run.id, &common::sample(at, f64::from(at)))
            .unwrap();
    }
    assert_eq!(store.samples(run.id).unwrap().len(), 200);
    let encrypted = server.sql(
        "postgres",
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'assay'",
    );
    assert_eq!(encrypted.trim(), "1");
}

#[test]
fn a_server_without_tls_is_refused_unless_it_need_not_have_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 8];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(b"N").unwrap();
        request
    });
    let error = Store::open_existing(Path::new(&url(port, "localhost", "sslmode=require")))
        .err()
        .unwrap();
    assert!(error.to_string().contains("ssh -L"), "{error}");
    assert_eq!(server.join().unwrap(), [0, 0, 0, 8, 4, 210, 22, 47]);
}
