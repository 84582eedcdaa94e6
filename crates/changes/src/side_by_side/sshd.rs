//! A second sshd with a copy of the configuration, on its own loopback port. If assay runs as root, every user can log
//! in as on the first sshd. Without root, only the user who runs assay can log in, with a key: passwords and PAM cannot
//! be checked, sshd cannot switch to another user, and a configuration that only root may read cannot be copied.

mod copy;
mod read_back;

use crate::side_by_side::ArmError;
use crate::side_by_side::child::{Program, Running};
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::{Package, find};
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program as Service, included_files};
use assay_host::{HostMut, ProcessId};
use assay_loads::Cancel;
use copy::Without;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SERVER: Package = Package {
    debian: "openssh-server",
    fedora: "openssh-server",
};
const CLIENT: Package = Package {
    debian: "openssh-client",
    fedora: "openssh",
};
/// Name of the configuration in the arm's directory.
const CONFIG: &str = "sshd_config";
/// Name of the file with the host key, which is used only for this arm.
const HOST_KEY: &str = "host_key";
/// Keywords that assay sets itself: the files of the original sshd, and the address.
const OWN: [&str; 7] = [
    "port",
    "listenaddress",
    "addressfamily",
    "pidfile",
    "hostkey",
    "hostcertificate",
    "hostkeyagent",
];
/// Maximum depth of includes; sshd has the same limit (servconf.c, SERVCONF_MAX_DEPTH).
const DEEPEST: usize = 16;
/// Maximum number of attempts to find a port. Another process may take a free port before sshd does.
const ATTEMPTS: usize = 5;

/// A running second sshd.
pub(crate) struct Sshd<'a> {
    server: Running,
    host: &'a dyn HostMut,
    program: PathBuf,
    address: SocketAddr,
    /// Keywords that the arm sets, in lower case.
    set: Vec<String>,
}

/// Copies the configuration, and starts sshd with the copy.
pub(crate) fn build<'a>(
    things: &mut Things<'a>,
    config: &Path,
    set: &BTreeMap<String, String>,
    cancel: &Cancel,
) -> Result<Sshd<'a>, ArmError> {
    let host = things.host;
    let (address, set) = split_settings(set)?;
    let program = find(host, "sshd", SERVER)?;
    let keygen = find(host, "ssh-keygen", CLIENT)?;
    let mut copies = Copies {
        things,
        keywords: set.keys().cloned().collect(),
        originals: Vec::new(),
    };
    let copied = copies.copy(config, false, 0)?;
    let originals = copies.originals;
    let dir = things.dir().to_owned();
    let keygen = Program {
        path: &keygen,
        dir: &dir,
        log: "keygen.log",
    };
    keygen.run(
        &[
            "-q", "-t", "ed25519", "-N", "", "-C", "assay", "-f", HOST_KEY,
        ],
        cancel,
    )?;

    let mut attempt = 0;
    loop {
        attempt += 1;
        let address = free_address(address)?;
        let text = render_configuration(&address, &set, &copied);
        let told = |error| with_original_paths(error, &text, &originals);
        let path = dir.join(CONFIG);
        fs::write(&path, &text).map_err(ArmError::io(&path))?;
        let sshd = Program {
            path: &program,
            dir: &dir,
            log: "sshd.log",
        };
        let check = sshd.run(&sshd_arguments(&dir, "-t"), cancel);
        check.map_err(told)?;
        let mut args = sshd_arguments(&dir, "-D");
        args.push("-e".into());
        let mut server = things.start(&sshd, &args)?;
        let ready = server.wait_until(cancel, || sends_ssh_greeting(&address));
        // Another process may have taken the port and sent the greeting.
        let ended = server.ended().map_or(Ok(()), Err);
        match ready.and(ended) {
            Ok(()) => {
                return Ok(Sshd {
                    server,
                    host,
                    program,
                    address,
                    set: set.into_keys().collect(),
                });
            }
            Err(ArmError::Tool { complaint, .. })
                if complaint.contains("Address already in use") && attempt < ATTEMPTS => {}
            Err(error) => return Err(told(error)),
        }
    }
}

/// Returns the arguments that every call of sshd needs. The host key is an argument and not a configuration line,
/// because special characters in the key's path would have a meaning in the configuration.
fn sshd_arguments(dir: &Path, mode: &str) -> Vec<OsString> {
    vec![
        mode.into(),
        "-f".into(),
        CONFIG.into(),
        "-h".into(),
        dir.join(HOST_KEY).into(),
    ]
}

/// Builds the configuration. The arm's settings come first, because sshd uses the first value of a keyword.
fn render_configuration(
    address: &SocketAddr,
    set: &BTreeMap<String, String>,
    copied: &str,
) -> String {
    let mut text = format!("ListenAddress {address}\nPidFile none\n");
    for (keyword, value) in set {
        text.push_str(&format!("{keyword} {value}\n"));
    }
    text.push_str(&format!("Include {copied}\n"));
    text
}

/// Separates the address to listen on from the other settings; keywords in lower case.
fn split_settings(
    set: &BTreeMap<String, String>,
) -> Result<(IpAddr, BTreeMap<String, String>), ArmError> {
    let mut address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut checked = BTreeMap::new();
    for (keyword, value) in set {
        let refuse = |reason: &str| {
            Err(ArmError::Refused {
                what: format!("{keyword} {value}").escape_debug().to_string(),
                source: reason.into(),
            })
        };
        let name = keyword.to_ascii_lowercase();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return refuse("this is not a keyword of sshd_config");
        }
        if value.chars().any(char::is_control) {
            return refuse("a value is one line");
        }
        if name == "listenaddress" {
            match value.parse() {
                Ok(given) => address = given,
                Err(_) => return refuse("an address without a port is expected"),
            }
        } else if OWN.contains(&name.as_str()) || name == "match" || name == "include" {
            return refuse("assay settles this of its own sshd itself");
        } else {
            checked.insert(name, value.clone());
        }
    }
    Ok((address, checked))
}

fn free_address(address: IpAddr) -> Result<SocketAddr, ArmError> {
    let bound = TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr());
    bound.map_err(|error| ArmError::Refused {
        what: format!("address {address}"),
        source: error.into(),
    })
}

/// Whether an SSH server at the address sends its version (RFC 4253, 4.2).
fn sends_ssh_greeting(address: &SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(address, Duration::from_secs(1)) else {
        return false;
    };
    let mut start = [0; 4];
    // A slow name server may delay the answer; the caller retries.
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    stream.read_exact(&mut start).is_ok() && &start == b"SSH-"
}

/// Replaces the names of copies in sshd's messages by the original paths, because the user knows only the original
/// paths.
fn with_original_paths(error: ArmError, own: &str, originals: &[PathBuf]) -> ArmError {
    let ArmError::Tool { program, complaint } = error else {
        return error;
    };
    let mut complaint = complaint;
    for (index, original) in originals.iter().enumerate().rev() {
        complaint = complaint.replace(&copy_name(index), &original.display().to_string());
    }
    for (index, line) in own.lines().enumerate() {
        let number = index + 1;
        for place in [
            format!("{CONFIG} line {number}:"),
            format!("{CONFIG}: line {number}:"),
        ] {
            complaint = complaint.replace(&place, &format!("`{line}`:"));
        }
    }
    if complaint.contains("privilege separation directory") {
        complaint.push_str(
            "; the service makes it when it starts, else: `sudo install -d -m 755 /run/sshd`",
        );
    }
    ArmError::Tool { program, complaint }
}

/// Copies of a configuration and of all files that it includes.
struct Copies<'a, 'b> {
    things: &'a Things<'b>,
    keywords: Vec<String>,
    /// Path of each original file, by the number of its copy.
    originals: Vec<PathBuf>,
}

/// Returns the name of a copy. The name is relative, because sshd reads its configuration before it leaves its working
/// directory.
fn copy_name(index: usize) -> String {
    format!("/proc/self/cwd/config.{index}")
}

impl Copies<'_, '_> {
    /// Copies one file and returns the name of the copy.
    fn copy(&mut self, file: &Path, conditional: bool, depth: usize) -> Result<String, ArmError> {
        if depth > DEEPEST {
            return Err(ArmError::Refused {
                what: file.display().to_string().escape_debug().to_string(),
                source: format!("Include leads more than {DEEPEST} files deep").into(),
            });
        }
        let host = self.things.host;
        let text = host.read_text(file)?;
        let index = self.originals.len();
        self.originals.push(file.to_owned());
        let keywords = self.keywords.clone();
        let without = Without {
            everywhere: &OWN,
            global: &keywords,
        };
        let copy = copy::copy(
            &text,
            conditional,
            &without,
            &mut |patterns, conditional| {
                let mut names = Vec::new();
                for pattern in patterns {
                    let files = included_files(Service::Sshd, file, file, pattern, &OfHost(host));
                    let refused =
                        |fault: assay_config::effective::files::FileFault| ArmError::Refused {
                            what: format!("Include {pattern}").escape_debug().to_string(),
                            source: fault.into(),
                        };
                    for file in files.map_err(refused)? {
                        names.push(self.copy(&file, conditional, depth + 1)?);
                    }
                }
                Ok::<_, ArmError>(names)
            },
        )?;
        let path = self.things.path(&format!("config.{index}"));
        fs::write(&path, copy).map_err(ArmError::io(&path))?;
        Ok(copy_name(index))
    }
}

impl Sshd<'_> {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }
}

impl Drop for Sshd<'_> {
    /// Stops sshd, and also its login sessions, which sshd itself does not end.
    fn drop(&mut self) {
        for process in find_descendants(self.host, self.server.pid()) {
            let _ = self.host.kill(process);
        }
    }
}

/// Returns all descendants of a process, the youngest generation last.
fn find_descendants(host: &dyn HostMut, of: u32) -> Vec<ProcessId> {
    let mut parents = BTreeMap::new();
    for name in host.list(Path::new("/proc")).unwrap_or_default() {
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = Path::new("/proc").join(name).join("stat");
        let parent = host.read_text(&stat).ok().and_then(|text| {
            let (_, rest) = text.rsplit_once(')')?;
            rest.split_whitespace().nth(1)?.parse::<u32>().ok()
        });
        parents.entry(parent).or_insert_with(Vec::new).push(pid);
    }
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        let more = parents.get(&Some(found[at])).cloned().unwrap_or_default();
        found.extend(more);
        at += 1;
    }
    found
        .iter()
        .skip(1)
        .filter_map(|pid| ProcessId::of(*pid))
        .collect()
}
