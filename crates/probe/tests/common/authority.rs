//! A certificate authority made with `openssl`. It creates a root, intermediates and server certificates with any
//! fault.

use super::{Server, free_port, openssl};
use std::path::PathBuf;
use std::process::Command;

pub struct Authority {
    dir: tempfile::TempDir,
}

impl Authority {
    /// Creates a root with the common name `root`.
    pub fn new() -> Self {
        Self::named("root")
    }

    /// Creates a root with this common name. The files of the root are called `root`.
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

    /// Returns the path of the certificate with this name.
    pub fn cert(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.pem"))
    }

    fn key(&self, name: &str, kind: &str) {
        let bits = kind.strip_prefix("rsa:").unwrap();
        openssl(&["genrsa", "-out", &self.text(&format!("{name}.key")), bits]);
    }

    /// Signs a certificate for `days` days. With a negative number, the certificate has expired.
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

    /// Creates an intermediate certificate authority that is valid for `days` days.
    pub fn intermediate(&self, name: &str, issuer: &str, days: i32) {
        self.key(name, "rsa:2048");
        let extensions = "basicConstraints=critical,CA:TRUE\n";
        self.sign(name, issuer, extensions, days, "-sha256");
    }

    /// Like `intermediate`, with this kind of key and this signature digest.
    pub fn intermediate_with(&self, name: &str, issuer: &str, kind: &str, digest: &str) {
        self.key(name, kind);
        let extensions = "basicConstraints=critical,CA:TRUE\n";
        self.sign(name, issuer, extensions, 365, digest);
    }

    /// Creates a server certificate for localhost with these extensions, valid for 90 days.
    pub fn server(&self, name: &str, issuer: &str, extensions: &[&str]) {
        self.server_for(name, issuer, extensions, 90);
    }

    /// Like `server`, valid for `days` days.
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

    /// Like `server`, signed with this digest.
    pub fn signed_with(&self, name: &str, issuer: &str, digest: &str) {
        self.key(name, "rsa:2048");
        self.sign(name, issuer, &server_extensions(&[]), 90, digest);
    }

    /// Runs `openssl s_server` with this certificate, followed by the chain in this order.
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

    /// Returns an OCSP response that declares a certificate good.
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

/// Returns the extensions of a server certificate: for localhost, unless other names are given.
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
