//! `assay net serve` with its clients and controllers as programs.
#![allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "tests drive the real program"
)]

use crate::common::{Home, Ran, ended};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A program that ends with the test.
pub struct Ends(pub Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Serving {
    pub home: Home,
    pub server: Ends,
    pub port: u16,
}

impl Serving {
    /// Starts a server at this address with `start`.
    pub fn at(host: IpAddr, start: &dyn Fn(Command) -> Child) -> Self {
        let home = Home::new();
        let [client, controller] = ["client", "controller"].map(|name| home.dir.path().join(name));
        let listen = std::net::SocketAddr::new(host, 0).to_string();
        let mut command = home.command(&["net", "serve", "--no-qr", "--listen", &listen]);
        command.arg("--client-file").arg(&client);
        command.arg("--controller-file").arg(&controller);
        command.stdout(Stdio::piped());
        let mut child = start(command);
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        let server = Ends(child);
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let port = line
            .split(',')
            .next()
            .and_then(|said| said.rsplit(':').next());
        let port = port
            .and_then(|port| port.parse().ok())
            .unwrap_or_else(|| panic!("{line}"));
        Self { home, server, port }
    }

    pub fn here() -> Self {
        Self::at("127.0.0.1".parse().unwrap(), &|mut command| {
            command.spawn().unwrap()
        })
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.home.dir.path().join(name)
    }

    pub fn address(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name))
            .unwrap()
            .trim()
            .to_owned()
    }

    pub fn client(&self, name: &str) -> Command {
        let server = format!("@{}", self.file("client").display());
        let mut command = self
            .home
            .command(&["net", "client", "--quiet", "--name", name]);
        command.arg(server);
        command
    }

    pub fn controller(&self, args: &[&str]) -> Ran {
        let server = format!("@{}", self.file("controller").display());
        let mut command = self.home.command(&["net", "run"]);
        command.args(args).arg("--server").arg(server);
        ended(command)
    }

    pub fn plan(&self, text: &str) -> String {
        let path = self.file("plan.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

pub fn roles(value: &Value) -> impl Iterator<Item = &Value> {
    let people = value["judged"].as_array().unwrap();
    people
        .iter()
        .flat_map(|person| person["roles"].as_array().unwrap())
}

pub fn role<'a>(value: &'a Value, name: &str) -> &'a Value {
    roles(value).find(|role| role["role"] == name).unwrap()
}

pub fn share(role: &Value) -> f64 {
    role["over"].as_f64().unwrap() / role["counted"].as_f64().unwrap().max(1.0)
}
