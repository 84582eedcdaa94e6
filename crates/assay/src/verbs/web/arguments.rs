//! Defines the command line of `assay web`.

use crate::input;
use crate::open_changes::Despite;
use crate::remote::{NamedFile, Remote, RemoteWork as AskedThere, SentFile, Value};
use crate::verbs::fleet::Known;
use anyhow::{Context as _, ensure};
use assay_http::MOST_CONNECTIONS;
use assay_model::Nanos;
use assay_model::load::Http;
use assay_web::{ConsentRequest, Search, Settings};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay web http://127.0.0.1/                     the capacity, then the latency that users see at
                                                  25, 50, 75 and 90 % of it, in a minute
  assay web http://localhost:8080/a.html --html r.html
                                                  the same with curves, as a page
  assay web http://127.0.0.1:81/ http://127.0.0.1:82/
                                                  two servers in turns, and a ranking
  assay web URL --concurrency 1,2,3,4,5,6,7,8     the capacity from these numbers of connections
  assay web URL --concurrency 64 --at '' --rate 500,1000 --poisson
                                                  one closed loop, two rates at random times
  assay web https://localhost/ --insecure --new-connections --tls-resume
                                                  a resumed handshake for each request
  assay web https://localhost/ --insecure --http2 --streams 10
                                                  HTTP/2, ten requests at once on each connection
  assay web http://test/ --log access.log --speed 2 --rounds 1
                                                  yesterday's requests, twice as fast
  assay web URL --list urls.txt --shuffle         a URL or path on each line, at random
  assay web URL --host root@client                from another machine, over ssh
  assay web URL --from web,client --concurrency 30
                                                  from several machines of the inventory at once
  assay web URL --link 1gbit --server-pid 4242    what the link carries; whose CPU time counts
  assay web http://shop/ --server-host root@shop  the CPU time of the server there, over ssh

The run is stored: `assay report show`, `assay report compare last~1 last`, `assay report --html` know it.
Values of headers, the body and the query of the URL are not stored: they may be secret.

Only servers on this machine are loaded unasked; any other must serve
/.well-known/assay-consent (see the book: web.md).
Exit status: 0 measured, 1 no step counts, 2 error, 130 interrupted (what was measured is shown).";

/// Find the capacity of a web server, and its latency below that
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// http:// or https:// URLs; several are measured in turn and compared
    #[arg(value_name = "URL", required = true)]
    pub urls: Vec<String>,
    /// Numbers of connections to find the capacity with, or `search`
    #[arg(long, value_name = "LIST", default_value = "search")]
    concurrency: String,
    /// Measure latency at these percentages of the capacity
    #[arg(long, value_name = "LIST", default_value = "25,50,75,90")]
    at: String,
    /// Also measure latency at these requests per second
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true
    )]
    rate: String,
    /// Space requests at random (exponential gaps)
    #[arg(long)]
    poisson: bool,
    /// Repeat each step N times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Measure each step for this long [default: 1s capacity, 2s latency]
    #[arg(long, value_name = "TIME")]
    seconds: Option<Nanos>,
    /// Run each step this long before measuring
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    washout: Nanos,
    /// Count a request that takes longer as failed
    #[arg(long, value_name = "TIME", default_value = "10s")]
    limit: Nanos,
    /// Use N threads [default: half the CPUs for a local server, or all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Open at most N connections in an open loop
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    open_connections: Option<u32>,
    /// Use this method
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Send a header, such as a cookie (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Send this body; @FILE reads it from FILE
    #[arg(
        short = 'd',
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    data: String,
    /// Request these paths in turn instead of the URL's (repeatable)
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Request each URL or path of this file in turn, one per line
    #[arg(long, value_name = "FILE", conflicts_with = "paths")]
    list: Option<PathBuf>,
    /// Replay this access log (nginx, Apache) at its own times
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "list", "rate", "poisson", "shuffle"])]
    log: Option<PathBuf>,
    /// Replay the log N times as fast
    #[arg(long, value_name = "N", requires = "log")]
    speed: Option<f64>,
    /// Request the paths or the list in random order
    #[arg(long)]
    shuffle: bool,
    /// Expect this status
    #[arg(long, value_name = "STATUS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=599))]
    status: u16,
    /// Require the same body each time (costs CPU time of the generator)
    #[arg(long)]
    same_body: bool,
    /// Use HTTP/2: by ALPN with https://, by prior knowledge with http://
    #[arg(long)]
    http2: bool,
    /// Keep N requests in flight per HTTP/2 connection
    #[arg(long, value_name = "N", default_value_t = 1, requires = "http2", conflicts_with = "new_connections", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    streams: u32,
    /// Open a new connection for each request
    #[arg(long)]
    new_connections: bool,
    /// Open a new connection after N requests
    #[arg(long, value_name = "N", conflicts_with = "new_connections", value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_connection: Option<u32>,
    /// Accept any certificate
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Trust the certificate authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Resume the TLS session of earlier connections
    #[arg(long)]
    tls_resume: bool,
    /// Use only IPv4 addresses
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use only IPv6 addresses
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Load all addresses of the name, not only the first that answers
    #[arg(long)]
    all_addresses: bool,
    /// Set the speed of the network link, such as 1gbit or 100mbit
    #[arg(long, value_name = "SPEED", value_parser = speed)]
    link: Option<f64>,
    /// Read the server's CPU time over ssh; once, or for each URL
    #[arg(
        long = "server-host",
        value_name = "[USER@]HOST",
        conflicts_with = "host"
    )]
    pub server_hosts: Vec<String>,
    /// Count the CPU time of this process and its descendants
    #[arg(long, value_name = "PID", conflicts_with = "cgroup")]
    pub server_pid: Option<u32>,
    /// Count the CPU time of this control group
    #[arg(long, value_name = "GROUP")]
    pub cgroup: Option<String>,
    /// Set the random seed [default: a new one, which --json reports]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print one JSON object: the raw steps and the results
    #[arg(long)]
    pub json: bool,
    /// Also write an HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub despite: Despite,
    #[command(flatten)]
    pub remote: Remote,
    /// Load from these machines at once over ssh, and add the results
    #[arg(long, value_name = "GROUP|MACHINE,…", value_delimiter = ',', conflicts_with_all = ["host", "log"])]
    pub from: Vec<String>,
    #[command(flatten)]
    pub known: Known,
    /// Generate load for another assay (started by --from)
    #[arg(long, hide = true)]
    pub generate: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Parses a speed in bits per second: a number with `kbit`, `mbit` or `gbit`.
pub fn speed(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let units = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
    let found = units.iter().find_map(|(unit, factor)| {
        let number: f64 = lower.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * factor)
    });
    found
        .filter(|speed| *speed > 0.0 && speed.is_finite())
        .ok_or_else(|| "a speed is written as 100mbit or 2.5gbit".to_owned())
}

/// Parses positive numbers separated by commas.
fn numbers(option: &str, text: &str) -> anyhow::Result<Vec<f64>> {
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    words
        .map(|word| {
            let number: f64 = word
                .parse()
                .with_context(|| format!("{option}: `{word}` is no number; write it as 25,50"))?;
            ensure!(
                number > 0.0 && number.is_finite(),
                "{option}: `{word}` is not more than 0"
            );
            Ok(number)
        })
        .collect()
}

/// Maximum size in bytes of a list of URLs or an access log that is uploaded to a load generator.
const LONGEST_FILE: u64 = 256 << 20;

impl Args {
    /// Returns the command for one other machine, with the files to upload.
    pub fn there(&self) -> anyhow::Result<AskedThere> {
        ensure!(
            self.html.is_none(),
            "the page of a measurement from elsewhere is made of what is stored: leave out --html, then `assay \
             report last --html FILE`"
        );
        self.files_there()
    }

    /// Returns the command for each of several machines that generate load at the same time.
    pub fn there_at_once(&self) -> anyhow::Result<AskedThere> {
        let mut asked = self.files_there()?;
        // Combined results are shown locally, and so is the server if it runs on this machine.
        let ours = [
            ("--html", Value::One),
            ("--server-host", Value::One),
            ("--server-pid", Value::One),
            ("--cgroup", Value::One),
        ];
        asked.cut.extend(ours);
        asked.more.push("--generate".into());
        Ok(asked)
    }

    fn files_there(&self) -> anyhow::Result<AskedThere> {
        let mut asked = AskedThere {
            quiet: self.quiet,
            ..AskedThere::default()
        };
        let body = self.data.strip_prefix('@').map(PathBuf::from);
        if body.is_some() {
            asked.cut.push(("-d", Value::One));
        }
        let files = [
            (self.list.as_ref(), "--list", "", "a list of URLs"),
            (self.log.as_ref(), "--log", "", "an access log"),
            (self.ca.as_ref(), "--ca", "", "certificates"),
            (body.as_ref(), "--data", "@", "the body of a request"),
        ];
        for (path, option, before, what) in files {
            if let Some(path) = path {
                asked.files.push(SentFile {
                    named: NamedFile::Option(option, before),
                    path: path.clone(),
                    content: input::bytes(path, LONGEST_FILE, what)?,
                });
            }
        }
        Ok(asked)
    }

    /// Returns the settings of the measurement.
    pub fn settings(&self, seed: u64) -> anyhow::Result<Settings> {
        let concurrency = match self.log {
            // The log contains the schedule, so no capacity is measured.
            Some(_) => "",
            None => self.concurrency.trim(),
        };
        let connections = match concurrency {
            "search" => Search::Doubling((MOST_CONNECTIONS / self.streams).clamp(1, 1024)),
            list => {
                let mut list = numbers("--concurrency", list)?
                    .into_iter()
                    .map(|number| {
                        let whole = number.fract() == 0.0 && number <= f64::from(MOST_CONNECTIONS);
                        ensure!(
                            whole,
                            "--concurrency: {number} is no number of connections up to {MOST_CONNECTIONS}"
                        );
                        Ok(number as u32)
                    })
                    .collect::<anyhow::Result<Vec<u32>>>()?;
                list.sort_unstable();
                list.dedup();
                Search::List(list)
            }
        };
        let at = if self.log.is_some() { "" } else { &self.at };
        let shares: Vec<f64> = numbers("--at", at)?
            .iter()
            .map(|percent| percent / 100.0)
            .collect();
        let rates = numbers("--rate", &self.rate)?;
        let places = |connections: u32| u64::from(connections) * u64::from(self.streams);
        let most = match &connections {
            Search::List(list) => list.last().copied().unwrap_or_default(),
            Search::Doubling(_) => 0,
        };
        ensure!(
            places(most.max(self.open_connections.unwrap_or_default()))
                <= u64::from(MOST_CONNECTIONS),
            "--streams: {} on each connection are more than {MOST_CONNECTIONS} requests at once",
            self.streams
        );
        let nothing = matches!(&connections, Search::List(list) if list.is_empty());
        ensure!(
            !nothing || shares.is_empty(),
            "--at asks for shares of a capacity that --concurrency '' does not find"
        );
        ensure!(
            !nothing || !rates.is_empty() || self.log.is_some(),
            "there is nothing to measure"
        );
        let seconds = |default: f64| self.seconds.map_or(default, Nanos::as_secs_f64);
        ensure!(
            seconds(1.0) >= 0.1 && seconds(1.0) <= 86_400.0,
            "--seconds is from 100ms to 24h"
        );
        ensure!(self.limit.0 >= 1_000_000, "--limit is at least 1ms");
        Ok(Settings {
            connections,
            shares,
            rates,
            poisson: self.poisson,
            rounds: self.rounds,
            seconds: (seconds(1.0), seconds(2.0)),
            // The whole log counts.
            washout: match self.log {
                Some(_) => 0.0,
                None => self.washout.as_secs_f64(),
            },
            limit: self.limit.as_secs_f64(),
            threads: self.threads,
            open_connections: self.open_connections,
            requests_per_connection: self.requests_per_connection,
            shuffled: self.shuffle,
            link: self.link,
            // A default run ends within a minute.
            may_shorten: self.seconds.is_none() && self.log.is_none(),
            seed: self.seed.unwrap_or(seed),
        })
    }

    /// Returns how many seconds of a log to replay: the value of the user, else at most the first minute. `span` is the
    /// duration of the log in seconds.
    pub fn seconds_of_log(&self, span: f64) -> f64 {
        // The last request is due at the end of the span and must be included.
        let whole = (span + 0.001).max(0.1);
        whole.min(self.seconds.map_or(60.0, Nanos::as_secs_f64))
    }

    /// Returns the load for all URLs in the form that plans use.
    pub fn load(&self) -> anyhow::Result<Http> {
        let text = |path: &PathBuf| {
            let path = path.to_str().map(str::to_owned);
            path.context("a file is named by UTF-8 text")
        };
        let body = match &self.data {
            data if data.is_empty() => None,
            data => match data.strip_prefix('@') {
                Some(path) => {
                    let bytes = read(std::path::Path::new(path))?;
                    Some(String::from_utf8(bytes).ok().with_context(|| {
                        format!("{path}: a body that is not UTF-8 text cannot be sent")
                    })?)
                }
                None => Some(data.clone()),
            },
        };
        Ok(Http {
            http2: self.http2,
            streams: self.streams,
            keep_alive: !self.new_connections,
            list: self.list.as_ref().map(text).transpose()?,
            log: self.log.as_ref().map(text).transpose()?,
            speed: self.speed,
            paths: self.paths.clone(),
            shuffle: self.shuffle,
            method: (self.method != "GET").then(|| self.method.clone()),
            headers: self.headers.clone(),
            body,
            status: (self.status != 200).then_some(self.status),
            same_body: self.same_body,
            requests_per_connection: self.requests_per_connection,
            insecure: self.insecure,
            ca: self.ca.as_ref().map(text).transpose()?,
            tls_resume: self.tls_resume,
            threads: self.threads,
            ..Http::default()
        })
    }

    /// Returns the load together with the contents of the files to which it refers.
    pub fn asked(&self, load: &Http, seed: u64) -> anyhow::Result<ConsentRequest> {
        let file = |path: &str| read(std::path::Path::new(path)).map_err(|error| error.to_string());
        let asked = ConsentRequest::of(load, Duration::from(self.limit), seed, &file)?;
        Ok(ConsentRequest {
            family: match (self.ipv4, self.ipv6) {
                (true, _) => Some(assay_web::Family::V4),
                (_, true) => Some(assay_web::Family::V6),
                _ => None,
            },
            all_addresses: self.all_addresses,
            ..asked
        })
    }
}

/// Parses a header argument into name and value.
pub fn header(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text
        .split_once(':')
        .with_context(|| format!("--header `{text}`: write it as `Name: value`"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Maximum size in bytes of a body, a list of requests, or a certificate file.
const LONGEST: u64 = 256 << 20;

fn read(path: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    crate::input::bytes(path, LONGEST, "a body, requests or certificates")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_lists() {
        assert_eq!(speed("100mbit"), Ok(1e8));
        assert_eq!(speed("2.5 Gbit"), Ok(2.5e9));
        for bad in ["", "100", "-1mbit", "xgbit", "100mb"] {
            assert!(speed(bad).is_err(), "{bad}");
        }
        assert_eq!(numbers("--at", "25, 50,").unwrap(), [25.0, 50.0]);
        assert!(numbers("--at", "").unwrap().is_empty());
        for bad in ["x", "0", "-5", "1e999", "NaN"] {
            assert!(numbers("--at", bad).is_err(), "{bad}");
        }
    }
}
