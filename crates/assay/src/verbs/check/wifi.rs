//! `assay check wifi`: checks wireless networks in the files of other programs, and counts vehicles among the networks.

use super::{Format, Forms, accepted_in, show};
use crate::context::{self, print};
use crate::global::Global;
use crate::input;
use crate::observation_log::{self, ObservedThing};
use crate::status::{Status, Unreadable};
use crate::verbs::advice::{self, Own};
use assay_advice::{Catalogue, findings};
use assay_model::advice::Advice;
use assay_model::finding::Checked;
use assay_render::text::escape_line;
use assay_report::wifi as report;
use assay_store::Observer;
use assay_wifi::address::mask;
use assay_wifi::registry::Registry;
use assay_wifi::ssid::Ssid;
use assay_wifi::{Reading, WifiFile};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  iw dev wlan0 scan > scan.txt
  assay check wifi scan.txt --ssid Home        your network; all others are neighbours
  assay check wifi site.json scan.txt          does the scan agree with the controller?
  assay check wifi drive.csv --census          vehicles by make, from their networks
  assay check --explain wifi-open-twin         the page behind a finding

Read are what `iw dev DEVICE scan` prints; JSON of a UniFi controller (rest/wlanconf,
stat/device, stat/rogueap, rest/radiusprofile, as answers or as lists in one object), and its
server.log; the list of Kismet with semicolons, which airodump-ng writes; and WiGLE's list. `-` is
standard input.
Networks that an export configures are yours without --ssid; without either, all are judged.
The result is stored, and `assay serve` shows it.
Nothing is sent but to the store, and of an address only the maker's part is shown.

Exit status: 0 nothing at or above --fail-on, 1 findings, 2 error, 3 something could not be read.";

/// Judge wireless networks in scans, exports and lists
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scans, exports and lists; the format is detected
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Name a network of yours (repeatable)
    #[arg(long, value_name = "NAME")]
    ssid: Vec<String>,
    /// Count vehicles by make instead
    #[arg(long, conflicts_with_all = ["ssid", "only", "accept"])]
    census: bool,
    /// Read the IEEE's oui.csv in DIR [default: /usr/share/ieee-data]
    #[arg(long, value_name = "DIR", requires = "census")]
    registry: Option<PathBuf>,
    #[command(flatten)]
    forms: Forms,
    #[command(flatten)]
    own: Own,
}

/// Maximum size of a file in bytes.
const LONGEST: u64 = 64 << 20;
/// Directories where Debian's package ieee-data installs the IEEE registry.
const REGISTRIES: [&str; 2] = ["/usr/share/ieee-data", "/var/lib/ieee-data"];
/// Files of the IEEE registry; only the first is required.
const LISTS: [&str; 3] = ["oui.csv", "mam.csv", "oui36.csv"];

/// An input file with its name and content.
struct Source {
    name: String,
    bytes: Vec<u8>,
    reading: Reading,
}

/// Runs `assay check wifi`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let catalogue = advice::catalogue(&args.own)?;
    let pages = pages(&catalogue, &args.forms.only)?;
    let sources: Vec<Source> = args
        .files
        .iter()
        .map(|path| source(path))
        .collect::<anyhow::Result<_>>()?;
    if args.census {
        return census(args, &sources, global);
    }
    let named: Vec<WifiFile<'_>> = sources
        .iter()
        .map(|source| WifiFile {
            path: &source.name,
            reading: &source.reading,
        })
        .collect();
    let own: Vec<Ssid> = args
        .ssid
        .iter()
        .map(|name| Ssid::new(name.as_bytes()))
        .collect();
    few(&sources, &own)?;
    if args.forms.format() == Format::Text {
        notes(args, &sources, &own);
    }
    let mut checked = findings(pages, &assay_wifi::facts(&named, &own));
    accepted_in(&mut checked, args.forms.accept.as_deref(), None)?;
    let lines = Lines::new(&sources);
    let status = show(&checked, &args.forms, global, &|path, number| {
        lines.line(path, number)
    })?;
    keep(&checked, &sources, &args.ssid, global);
    Ok(status)
}

/// Stores the check as an observation.
fn keep(checked: &Checked, sources: &[Source], ssid: &[String], global: &Global) {
    let files = sources.iter().map(|source| source.name.as_str());
    let subject = match ssid {
        [] => files.collect::<Vec<_>>().join(", "),
        names => names.join(", "),
    };
    let thing = ObservedThing {
        by: Observer::Wifi,
        started: context::now(),
        subject,
        summary: match checked.findings.as_slice() {
            [] => "nothing was found".to_owned(),
            [first, rest @ ..] => match rest.len() {
                0 => first.title.clone(),
                more => format!("{} and {more} more", first.title),
            },
        },
        is_here: true,
    };
    observation_log::keep(thing, checked, global);
}

/// Returns the pages about wireless networks. If `only` is not empty, returns only the selected pages.
fn pages<'a>(catalogue: &'a Catalogue, only: &[String]) -> anyhow::Result<Vec<&'a Advice>> {
    let mut all = catalogue.all();
    all.retain(|page| assay_wifi::judges(page));
    let asked = |page: &Advice, name: &String| page.id == *name || page.domain == *name;
    for name in only {
        if !all.iter().any(|page| asked(page, name)) {
            let ids: Vec<&str> = all.iter().map(|page| page.id.as_str()).collect();
            anyhow::bail!(
                "--only {name}: unknown rule about wireless networks; use one of {}",
                ids.join(", ")
            );
        }
    }
    all.retain(|page| only.is_empty() || only.iter().any(|name| asked(page, name)));
    Ok(all)
}

fn source(path: &Path) -> anyhow::Result<Source> {
    let name = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.to_string_lossy().into_owned(),
    };
    let bytes = input::bytes(path, LONGEST, "a list of wireless networks")?;
    let reading = assay_wifi::read(&bytes)
        .map_err(|error| Unreadable(format!("{}: {error}", escape_line(&name))))?;
    Ok(Source {
        name,
        bytes,
        reading,
    })
}

/// Maximum number of distinct networks that are checked without `--ssid`.
const MOST_JUDGED: usize = 2000;

/// Fails if the files contain more than `MOST_JUDGED` network names and it is unknown which networks are the user's
/// own.
fn few(sources: &[Source], own: &[Ssid]) -> anyhow::Result<()> {
    let configured = |source: &Source| !source.reading.configured.is_empty();
    if !own.is_empty() || sources.iter().any(configured) {
        return Ok(());
    }
    let heard = sources.iter().flat_map(|source| &source.reading.heard);
    let names: BTreeSet<&Ssid> = heard.map(|bss| &bss.ssid).collect();
    if names.len() > MOST_JUDGED {
        anyhow::bail!(
            "{} networks are too many to be yours: name yours with --ssid NAME",
            names.len()
        );
    }
    Ok(())
}

/// Prints which files were read, and which networks are checked.
fn notes(args: &Args, sources: &[Source], own: &[Ssid]) {
    for source in sources {
        let reading = &source.reading;
        let mut told = vec![match reading.heard.len() {
            1 => "1 network on the air".to_owned(),
            count => format!("{count} networks on the air"),
        }];
        if reading.other_bands > 0 {
            let count = reading.other_bands;
            told.push(format!("{count} left out outside of 2.4, 5 and 6 GHz"));
        }
        if !reading.configured.is_empty() {
            told.push(format!("{} configured", reading.configured.len()));
        }
        eprintln!(
            "{}: {}, {}",
            escape_line(&source.name),
            reading.format,
            told.join(", ")
        );
    }
    let mut heard = sources.iter().flat_map(|source| &source.reading.heard);
    let missing = own.iter().zip(&args.ssid).filter(|(ssid, _)| {
        let mut names = sources.iter().flat_map(|source| {
            let heard = source.reading.heard.iter().map(|bss| &bss.ssid);
            heard.chain(source.reading.configured.iter().map(|wlan| &wlan.ssid))
        });
        !names.any(|name| name == *ssid)
    });
    for (_, name) in missing {
        eprintln!(
            "--ssid {}: no file has a network of this name",
            escape_line(name)
        );
    }
    let configured = |source: &Source| !source.reading.configured.is_empty();
    if own.is_empty() && heard.next().is_some() && !sources.iter().any(configured) {
        eprintln!(
            "all networks are judged as if they were yours, but an open one is no finding: --ssid NAME says which are \
             yours"
        );
    }
}

/// Lines of the input files that may be printed, by file. Addresses in them are masked.
struct Lines<'a>(HashMap<&'a str, Vec<&'a [u8]>>);

impl<'a> Lines<'a> {
    fn new(sources: &'a [Source]) -> Self {
        let shown = sources
            .iter()
            .filter(|source| source.reading.format.shows_lines());
        let lines = |source: &'a Source| {
            let lines = source.bytes.split(|byte| *byte == b'\n').collect();
            (source.name.as_str(), lines)
        };
        Self(shown.map(lines).collect())
    }

    fn line(&self, path: &str, number: usize) -> Option<String> {
        let line = self.0.get(path)?.get(number.checked_sub(1)?)?;
        Some(mask(&String::from_utf8_lossy(line)))
    }
}

fn census(args: &Args, sources: &[Source], global: &Global) -> anyhow::Result<Status> {
    let registry = registry(args.registry.as_deref())?;
    let readings: Vec<&Reading> = sources.iter().map(|source| &source.reading).collect();
    let census = assay_wifi::census::census(&readings, &registry);
    print(&match args.forms.format() {
        Format::Text => report::render_census_text(&census, context::style(global)),
        Format::Json => format!("{:#}\n", report::census_to_json(&census)),
        Format::Markdown => report::render_census_markdown(&census),
        Format::Html => report::render_census_page(&census),
        Format::Sarif | Format::Junit | Format::Nagios | Format::Prometheus => {
            anyhow::bail!("--census has no findings: use --format text, json, markdown or html")
        }
    })?;
    let mut status = Status::Ok;
    for source in sources {
        let unread = &source.reading.unread;
        if let Some((line, expected)) = unread.first.first() {
            eprintln!(
                "{}: {} lines could not be read and are not counted; the first is line {line}: {expected} was expected",
                escape_line(&source.name),
                unread.count
            );
            status = Status::Unreadable;
        }
    }
    Ok(status)
}

/// Reads the IEEE registry from the user's directory, else from the directory of the Debian package. Without a
/// registry, the manufacturers of devices are unknown.
fn registry(named: Option<&Path>) -> anyhow::Result<Registry> {
    let mut registry = Registry::default();
    let dirs: Vec<&Path> = match named {
        Some(dir) => vec![dir],
        None => REGISTRIES.iter().map(Path::new).collect(),
    };
    for dir in dirs {
        for (at, list) in LISTS.iter().enumerate() {
            let path = dir.join(list);
            let bytes = match input::bytes(&path, LONGEST, "a list of the IEEE") {
                Ok(bytes) => bytes,
                Err(error) if at == 0 && named.is_some() => return Err(error),
                Err(_) => continue,
            };
            let shown = escape_line(&path.to_string_lossy());
            registry
                .add(&bytes)
                .map_err(|error| Unreadable(format!("{shown}: {error}")))?;
        }
        if !registry.is_empty() {
            break;
        }
    }
    Ok(registry)
}
