//! An authority with `openssl`: a root, intermediates and certificates of servers, with any fault.

use super::{Server, free_port, openssl};
use std::path::PathBuf;
use std::process::Command;

pub struct Authority {
    dir: tempfile::TempDir,
}

impl Authority {
    /// A root called `root`.
    pub fn new() -> Self {
        Self::named("root")
    }

    /// A root with this common name; its files are called `root`.
    pub fn named(name: &str) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("assay-probe-")
            .tempdir()
            .unwrap();
        let authority = Self { dir };
        authority.key("root", "rsa:2048");
        let (key, cert) = (authority.text("root.key"), authority.text("root.pem"));
        openssl(&[
            "req",
            "-x509",
            "-key",
            &key,
            "-subj",
            &format!("/CN={name}"),
            "-days",
            "800",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-out",
            &cert,
        ]);
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The certificate of this name.
    pub fn cert(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.pem"))
    }

    fn key(&self, name: &str, kind: &str) {
        let bits = kind.strip_prefix("rsa:").unwrap();
        openssl(&["genrsa", "-out", &self.text(&format!("{name}.key")), bits]);
    }

    /// Signs a certificate for `days`; those that are negative have ended.
    fn sign(&self, name: &str, issuer: &str, extensions: &str, days: i32, digest: &str) {
        let file = |end: &str| self.text(&format!("{name}.{end}"));
        std::fs::write(self.path(&format!("{name}.ext")), extensions).unwrap();
        openssl(&[
            "req",
            "-new",
            "-key",
            &file("key"),
            "-subj",
            &format!("/CN={name}"),
            "-out",
            &file("csr"),
        ]);
        let days = days.to_string();
        openssl(&[
            "x509",
            "-req",
            "-in",
            &file("csr"),
            "-CA",
            &self.text(&format!("{issuer}.pem")),
            "-CAkey",
            &self.text(&format!("{issuer}.key")),
            "-CAcreateserial",
            "-days",
            &days,
            digest,
            "-extfile",
            &file("ext"),
            "-out",
            &file("pem"),
        ]);
    }

    /// An intermediate authority.
    pub fn intermediate(&self, name: &str, issuer: &str, days: i32) {
        self.key(name, "rsa:2048");
        let extensions = "basicConstraints=critical,CA:TRUE\n";
        self.sign(name, issuer, extensions, days, "-sha256");
    }

    /// The same with a key of this kind and a signature of this kind.
    pub fn intermediate_with(&self, name: &str, issuer: &str, kind: &str, digest: &str) {
        self.key(name, kind);
        let extensions = "basicConstraints=critical,CA:TRUE\n";
        self.sign(name, issuer, extensions, 365, digest);
    }

    /// A certificate of a server for localhost with these extensions, for 90 days.
    pub fn server(&self, name: &str, issuer: &str, extensions: &[&str]) {
        self.server_for(name, issuer, extensions, 90);
    }

    /// The same for so many days.
    pub fn server_for(&self, name: &str, issuer: &str, extensions: &[&str], days: i32) {
        self.key(name, "rsa:2048");
        self.sign(
            name,
            issuer,
            &server_extensions(extensions),
            days,
            "-sha256",
        );
    }

    /// The same with a signature of this kind.
    pub fn signed_with(&self, name: &str, issuer: &str, digest: &str) {
        self.key(name, "rsa:2048");
        self.sign(name, issuer, &server_extensions(&[]), 90, digest);
    }

    /// `openssl s_server` with this certificate and these behind it, in this order.
    pub fn serve(&self, leaf: &str, chain: &[&str], options: &[&str]) -> Server {
        let port = free_port();
        let mut command = Command::new("openssl");
        command.args(["s_server", "-quiet", "-accept", &port.to_string()]);
        command.arg("-cert").arg(self.cert(leaf));
        command.arg("-key").arg(self.path(&format!("{leaf}.key")));
        if !chain.is_empty() {
            let texts = chain
                .iter()
                .map(|name| std::fs::read_to_string(self.cert(name)).unwrap());
            let file = self.path("chain.txt");
            std::fs::write(&file, texts.collect::<String>()).unwrap();
            command.arg("-cert_chain").arg(file);
        }
        command.args(options).env("OPENSSL_CONF", "/dev/null");
        Server::listening(command, &self.path("s_server.log"), port)
    }

    /// A response of OCSP that says that a certificate is good.
    pub fn ocsp_response(&self, name: &str, issuer: &str) -> PathBuf {
        let serial = openssl(&[
            "x509",
            "-in",
            &self.text(&format!("{name}.pem")),
            "-noout",
            "-serial",
        ]);
        let serial = String::from_utf8(serial).unwrap();
        let serial = serial.trim().trim_start_matches("serial=");
        let index = format!("V\t491231235959Z\t\t{serial}\tunknown\t/CN={name}\n");
        std::fs::write(self.path("index.txt"), index).unwrap();
        let response = self.path("response.der");
        let (root, key) = (
            self.text(&format!("{issuer}.pem")),
            self.text(&format!("{issuer}.key")),
        );
        let cert = self.text(&format!("{name}.pem"));
        openssl(&[
            "ocsp",
            "-issuer",
            &root,
            "-cert",
            &cert,
            "-reqout",
            &self.text("request.der"),
        ]);
        openssl(&[
            "ocsp",
            "-index",
            &self.text("index.txt"),
            "-CA",
            &root,
            "-rsigner",
            &root,
            "-rkey",
            &key,
            "-reqin",
            &self.text("request.der"),
            "-respout",
            response.to_str().unwrap(),
            "-ndays",
            "1",
        ]);
        response
    }
}

/// For localhost, unless other names are given.
fn server_extensions(more: &[&str]) -> String {
    let mut text = "basicConstraints=critical,CA:FALSE\n".to_owned();
    if !more.iter().any(|one| one.starts_with("subjectAltName")) {
        text += "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
    }
    for one in more {
        text += one;
        text += "\n";
    }
    text
}
