//! Samples the Wi-Fi connection to the server with `iw`, once per second during a run. `iw link` and `iw scan
//! dump` read the kernel's data and send nothing over the radio.

use super::timer::{self, micros};
use crate::air::{Air, Heard, MOST_POINTS, MOST_SAMPLES, Point, Sample};
use assay_host::{Host, Limits};
use assay_wifi::address::Address;
use assay_wifi::iw::link::{self, ClientLink};
use assay_wifi::iw::scan;
use assay_wifi::ssid::Ssid;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Interval between two samples of the Wi-Fi connection.
const EVERY: Duration = Duration::from_secs(1);
/// Time and output limits for `iw`, so that a hanging driver does not block the run.
const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(2),
};
/// Number of consecutive failed samples after which sampling stops.
const IN_A_ROW: u32 = 3;

/// The Wi-Fi interface that leads to the server.
pub struct Radio<'a> {
    host: &'a dyn Host,
    device: String,
    /// Access points in the order in which the device first used them.
    points: Vec<Address>,
    own: Option<Ssid>,
    heard: Vec<(Address, Heard)>,
}

impl<'a> Radio<'a> {
    /// Finds the interface. Returns `None` without `iw`, without Wi-Fi interfaces, or if another interface
    /// leads to the server.
    pub fn find(host: &'a dyn Host, server: IpAddr) -> Option<Self> {
        let known = link::devices(&text(host, &["iw", "dev"])?);
        let clients = known
            .iter()
            .filter(|device| matches!(device.kind.as_deref(), Some("managed" | "IBSS")));
        let names: Vec<&str> = clients.map(|device| &*device.name).collect();
        let server = server.to_string();
        let leads = match names.is_empty() {
            true => None,
            // Without `ip`, the interface is known only if there is just one.
            false => match text(host, &["ip", "-o", "route", "get", &server]) {
                Some(route) => leads(&route),
                None => names
                    .first()
                    .filter(|_| names.len() == 1)
                    .map(|name| (*name).to_owned()),
            },
        }?;
        names.contains(&&*leads).then(|| Self {
            host,
            device: leads,
            points: Vec::new(),
            own: None,
            heard: Vec::new(),
        })
    }

    /// Takes a sample; returns `None` if `iw` fails.
    fn look(&mut self, at: u64) -> Option<Sample> {
        let said = text(self.host, &["iw", "dev", &self.device, "link"])?;
        let link = link::link(&said).ok()?;
        Some(link.map_or(
            Sample {
                at,
                ..Sample::default()
            },
            |link| self.sample(&link, at),
        ))
    }

    fn sample(&mut self, link: &ClientLink, at: u64) -> Sample {
        let point = link.address.and_then(|address| {
            let known = self.points.iter().position(|own| *own == address);
            let point = known.or_else(|| {
                (self.points.len() < MOST_POINTS).then(|| {
                    self.points.push(address);
                    self.points.len() - 1
                })
            });
            point.and_then(|point| u32::try_from(point).ok())
        });
        self.own = link.ssid.clone().or(self.own.take());
        // `iw` reports rates in units of 100 kbit/s.
        let rate = |rate: Option<u32>| rate.map(|rate| u64::from(rate) * 100_000);
        Sample {
            at,
            point,
            channel: link.channel,
            signal: link.signal,
            down_bit_per_s: rate(link.receives),
            up_bit_per_s: rate(link.sends),
        }
    }

    /// Reads from the kernel which other access points of the network it received. The kernel forgets them after half a
    /// minute.
    fn listen(&mut self) {
        let Some(own) = self.own.clone().filter(|own| !own.is_hidden()) else {
            return;
        };
        let said = text(self.host, &["iw", "dev", &self.device, "scan", "dump"]);
        let Some(reading) = said.and_then(|said| scan::read(said.as_bytes()).ok()) else {
            return;
        };
        for bss in reading
            .heard
            .iter()
            .filter(|bss| bss.ssid == own && !bss.direct)
        {
            let (Some(address), Some(channel), Some(signal)) =
                (bss.address, bss.channel, bss.signal)
            else {
                continue;
            };
            let fresh = Heard {
                address: address.to_string(),
                channel,
                signal,
            };
            match self.heard.iter_mut().find(|(known, _)| *known == address) {
                Some((_, heard)) if heard.signal < signal => *heard = fresh,
                Some(_) => {}
                None => self.heard.push((address, fresh)),
            }
        }
    }

    /// Takes a sample per second until `over` returns true.
    pub fn watch(mut self, begin: Instant, over: &dyn Fn() -> bool) -> Air {
        let mut samples = Vec::new();
        let mut silent = 0;
        let mut number = 0;
        // A first sample before the start records the initial state.
        let mut due = Instant::now();
        while !over() && samples.len() < MOST_SAMPLES && silent < IN_A_ROW {
            match self.look(micros(begin, Instant::now())) {
                Some(sample) => {
                    silent = 0;
                    samples.push(sample);
                }
                None => silent += 1,
            }
            if number == 0 {
                self.listen();
                due = begin.max(Instant::now());
            }
            number += 1;
            timer::sleep_until(due, over);
            due = (due + EVERY).max(Instant::now());
        }
        self.listen();
        let points = &self.points;
        let mut heard: Vec<Heard> = self
            .heard
            .into_iter()
            .filter(|(address, _)| !points.contains(address))
            .map(|(_, heard)| heard)
            .collect();
        heard.sort_by_key(|heard| std::cmp::Reverse(heard.signal));
        heard.truncate(MOST_POINTS);
        Air {
            points: points
                .iter()
                .map(|address| Point {
                    address: address.to_string(),
                })
                .collect(),
            samples,
            heard,
        }
    }
}

/// Returns the standard output of a program; `None` if the program is missing or fails.
fn text(host: &dyn Host, words: &[&str]) -> Option<String> {
    let argv: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    let output = host.run(&argv, LIMITS).ok()?;
    output.success().then(|| output.text())
}

/// Returns the interface in a line of `ip route get`, such as `wlan0` in `10.0.0.1 via 10.0.1.1 dev wlan0 src … uid 0`.
fn leads(route: &str) -> Option<String> {
    let mut words = route.split_whitespace().skip_while(|word| *word != "dev");
    words.nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests;
