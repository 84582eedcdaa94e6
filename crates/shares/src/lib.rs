//! Measures a share of a file server. Writes and reads one file with each kind of protection, and compares the rates
//! with the local disk, the network and the client's CPU. The program `smbclient` transfers the file over SMB, module
//! `nfs_client` over NFS; nothing is mounted. The text of a result is in `assay`.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate starts smbclient, measures time and owns its files"
)]

mod judgement;
mod leftovers;
mod link;
mod local_file;
mod nfs_client;
mod share_client;
mod share_url;
mod smb_client;

pub use judgement::{Criterion, LimitedBy, ShareLimit};
pub use link::ShareLink;
pub use share_url::{ShareProtocol, ShareUrl};

use leftovers::Leftover;
use local_file::LocalFile;
use nfs_client::NfsClient;
use serde::Serialize;
use share_client::ShareClient;
use smb_client::{LONGEST, SmbClient};
use std::path::{Path, PathBuf};

/// Reason why a share cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The text is not the URL of a share.
    #[error("cannot measure {url}: {why}")]
    Url {
        /// URL from the user, without a password.
        url: String,
        /// What is wrong with the URL, and the expected form.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// `smbclient` cannot be started.
    #[error("cannot start smbclient: {0}. Install the package smbclient.")]
    Client(std::io::Error),
    /// The server refused the connection, or a transfer failed.
    #[error("cannot use {share}: {why}")]
    Refused {
        /// Share in the form `//server/share` or `nfs://server/export`.
        share: String,
        /// Message of `smbclient`, with a way to proceed.
        why: String,
    },
    /// The user interrupted the measurement.
    #[error("stopped before the end")]
    Stopped,
    /// `smbclient` did not end within the time limit.
    #[error(
        "cannot use {share}: smbclient did not end within {} minutes. Take a smaller file with --size.",
        LONGEST.as_secs() / 60
    )]
    TooLong {
        /// Share in the form `//server/share` or `nfs://server/export`.
        share: String,
    },
    /// The measurement failed, and the test file could not be removed.
    #[error(
        "{cause}; the test file {file} may still be there: the next measurement of the same share removes it"
    )]
    FileLeft {
        /// Reason why the measurement failed.
        cause: Box<ShareError>,
        /// Name of the test file.
        file: String,
    },
}

impl ShareError {
    /// Returns whether the user interrupted the measurement.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::FileLeft { cause, .. } => cause.is_stop(),
            _ => false,
        }
    }
}

/// Prefix of the name of every test file.
pub const FILE_PREFIX: &str = "assay-share-";

/// What to measure, and how.
#[derive(Debug)]
pub struct ShareRequest<'a> {
    /// Share to measure.
    pub url: &'a ShareUrl,
    /// File with lines `username=`, `password=` and `domain=`; `None` connects anonymously.
    pub auth_file: Option<&'a Path>,
    /// Size of the test file in bytes.
    pub file_bytes: u64,
    /// Number of writes and of reads with each kind of protection.
    pub rounds: u32,
    /// Directory in which assay records the test files that it creates on shares.
    pub records: &'a Path,
    /// Name of the test file: [`FILE_PREFIX`] followed by letters or digits that are unique to this measurement.
    pub file_name: &'a str,
    /// Seed of the random data in the test file.
    pub seed: u64,
}

/// How the messages between client and server are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ShareProtection")]
pub enum Protection {
    /// Messages are neither signed nor encrypted.
    Plain,
    /// Messages are signed but not encrypted.
    Signed,
    /// Messages are encrypted, which also authenticates them.
    Encrypted,
}

impl Protection {
    /// All kinds, in the order in which they are measured.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Signed, Self::Encrypted];

    fn option(self) -> &'static str {
        match self {
            Self::Plain => "off",
            Self::Signed => "sign",
            Self::Encrypted => "encrypt",
        }
    }
}

/// Transfers of the test file with one kind of protection.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ShareTransfers {
    /// Protection with which the file was transferred.
    pub protection: Protection,
    /// Rate of each write in bytes per second, in order.
    pub writes: Vec<f64>,
    /// Rate of each read in bytes per second, in order.
    pub reads: Vec<f64>,
    /// CPU time of the client ÷ duration of the transfers.
    pub client_cpu: f64,
    /// Message of the server if it refused this kind of protection; then there are no rates.
    pub refused: Option<String>,
}

/// Result of measuring a share.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ShareResult {
    /// Share in the form `//server/share` or `nfs://server/export`.
    pub share: String,
    /// Name and version of the client.
    pub client: String,
    /// Dialect that client and server agreed on, such as `SMB3_11` or `NFS 3`.
    pub dialect: Option<String>,
    /// Size of the test file in bytes.
    pub file_bytes: u64,
    /// Rate of writing the file to the local disk, in bytes per second, with an fsync at the end.
    pub local_write: f64,
    /// Directory of the file on the local disk.
    pub local_directory: PathBuf,
    /// Network path to the server.
    pub link: ShareLink,
    /// Transfers with each kind of protection.
    pub transfers: Vec<ShareTransfers>,
    /// Whether the share fills a network of 1 Gbit/s.
    pub criterion: Criterion,
    /// Component that limited the transfers.
    pub limit: ShareLimit,
    /// Names of test files that earlier, killed measurements left, and that were removed.
    pub swept: Vec<String>,
}

/// Callback that receives the protection and the number of the round, from 1, when a round begins.
pub type OnRound<'a> = &'a mut dyn FnMut(Protection, u32);

/// Measures a share. The test file is recorded before it is created, and removed at the end. After a crash, the next
/// measurement of the same share removes it.
///
/// # Errors
/// The share cannot be used with any kind of protection, or `stop` returned true.
pub fn measure_share(
    request: &ShareRequest<'_>,
    stop: &dyn Fn() -> bool,
    on_round: OnRound<'_>,
) -> Result<ShareResult, ShareError> {
    if let Some(path) = request.auth_file {
        // smbclient would not name the file.
        std::fs::File::open(path).map_err(|source| ShareError::File {
            path: path.to_owned(),
            source,
        })?;
    }
    let client: Box<dyn ShareClient + '_> = match request.url.protocol() {
        ShareProtocol::Smb => Box::new(SmbClient::new(request.url, request.auth_file)),
        ShareProtocol::Nfs => Box::new(NfsClient::new(request.url)),
    };
    let client = client.as_ref();
    let version = client.describe(stop)?;
    let dialect = client.connect(stop)?;
    let swept = leftovers::remove_earlier(request.records, client, stop)?;
    let link = link::find_link(request.url.host(), request.url.port());
    let (file, local_write) = LocalFile::create(request.file_bytes, request.seed, stop)?;
    let leftover = Leftover::record(request.records, request.url, request.file_name)?;
    let measured = measure_transfers(request, client, &file, stop, on_round);
    // The last command of each connection removes the file; after a failure it may still be there.
    let whole = |all: &Vec<ShareTransfers>| all.iter().all(|one| one.refused.is_none());
    let removed =
        measured.as_ref().is_ok_and(whole) || client.delete(request.file_name, &|| false).is_ok();
    let transfers = match (measured, removed) {
        (measured, true) => {
            leftover.forget()?;
            measured?
        }
        (Ok(transfers), false) => transfers,
        (Err(error), false) => {
            return Err(ShareError::FileLeft {
                cause: Box::new(error),
                file: request.file_name.to_owned(),
            });
        }
    };
    if let Some(ShareTransfers {
        refused: Some(why), ..
    }) = transfers
        .iter()
        .find(|_| transfers.iter().all(|one| one.refused.is_some()))
    {
        return Err(ShareError::Refused {
            share: request.url.share_name(),
            why: why.clone(),
        });
    }
    Ok(ShareResult {
        share: request.url.share_name(),
        client: version,
        dialect,
        file_bytes: request.file_bytes,
        local_write,
        local_directory: file.directory(),
        criterion: judgement::judge_criterion(&transfers),
        limit: judgement::find_limit(&transfers, &link),
        link,
        transfers,
        swept,
    })
}

/// Transfers the file with each kind of protection in each round, so that drift affects all kinds equally.
fn measure_transfers(
    request: &ShareRequest<'_>,
    client: &dyn ShareClient,
    file: &LocalFile,
    stop: &dyn Fn() -> bool,
    on_round: OnRound<'_>,
) -> Result<Vec<ShareTransfers>, ShareError> {
    let kinds = client.protections().iter();
    let mut all: Vec<ShareTransfers> = kinds
        .map(|protection| ShareTransfers {
            protection: *protection,
            writes: Vec::new(),
            reads: Vec::new(),
            client_cpu: 0.0,
            refused: None,
        })
        .collect();
    for round in 1..=request.rounds {
        for transfers in &mut all {
            if transfers.refused.is_some() {
                continue;
            }
            on_round(transfers.protection, round);
            let done = client.transfer(transfers.protection, file.path(), request.file_name, stop);
            match done {
                Ok(one) => {
                    transfers.writes.push(one.write);
                    transfers.reads.push(one.read);
                    transfers.client_cpu += one.client_cpu / f64::from(request.rounds);
                }
                // A server may refuse what is not protected, or encryption.
                Err(ShareError::Refused { why, .. }) if round == 1 => transfers.refused = Some(why),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(all)
}
