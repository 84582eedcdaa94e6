//! `assay check mail`: runs this machine's spam filter on a stored mail, and searches address lists for the mail's
//! servers.

use crate::context::{self, print};
use crate::global::Global;
use crate::input;
use crate::status::Status;
use assay_host::LiveHost;
use assay_mail::address_list::{AddressList, ListEntry};
use assay_mail::message::{Hop, list_hops, parse_fields};
use assay_mail::spamassassin::{self, Rule, SpamVerdict};
use assay_model::{Nanos, SCHEMA_VERSION};
use assay_render::Style;
use assay_render::text::escape_line;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay check mail sample.eml                    the rules of SpamAssassin that match it here
  assay check mail sample.eml --list drop.txt    and is a server that it passed on this list?
  assay check mail - < sample.eml --network      let SpamAssassin ask its DNS lists too

A list is a file with an address, a network or a range on each line, as block lists publish them
(Spamhaus DROP, FireHOL, DShield). Its date is shown: an old list says little.

The machine's own settings of SpamAssassin count, those of a user do not. Nothing is learned or
stored. Without --network nothing is sent.

Exit status: 0 no spam, 1 spam, or a server is on a list, 2 error, 3 SpamAssassin gave no verdict.";

/// Maximum size of a mail in bytes.
const LONGEST: u64 = 32 << 20;
/// Maximum size of a list in bytes.
const LONGEST_LIST: u64 = 64 << 20;

/// Report which spam rules match a stored mail, and lists with its servers
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Mail with its header, - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Look up the mail's servers in this list of addresses (repeatable)
    #[arg(long = "list", value_name = "FILE")]
    lists: Vec<PathBuf>,
    /// Let SpamAssassin ask DNS lists and other services
    #[arg(long)]
    network: bool,
    /// Stop SpamAssassin after this time
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: Nanos,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Document of `assay check mail`: the lists, the servers that relayed the mail, and the verdict of SpamAssassin.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::verbs) struct Document {
    schema: u32,
    /// Address lists that were read.
    lists: Vec<ListFile>,
    /// Servers and clients that relayed the mail, newest first. All entries except the newest may be forged.
    hops: Vec<HopOnLists>,
    /// Verdict of SpamAssassin; null if there is none.
    spamassassin: Option<SpamVerdict>,
    /// Reason why there is no verdict of SpamAssassin; null if there is one.
    no_verdict: Option<String>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct ListFile {
    file: String,
    /// Modification time of the list file.
    written: Option<jiff::Timestamp>,
    networks: usize,
    /// Number of lines that could not be parsed.
    unread: usize,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct HopOnLists {
    #[serde(flatten)]
    hop: Hop,
    /// Entries of the lists that contain the address of this server or client.
    listed: Vec<ListEntry>,
}

/// Runs `assay check mail`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let mail = input::bytes(&args.file, LONGEST, "a mail")?;
    let fields = parse_fields(&mail);
    if fields.is_empty() {
        anyhow::bail!(
            "{}: no header of a mail. Save the mail with its header, as an .eml file.",
            escape_line(&args.file.to_string_lossy())
        );
    }
    let lists: Vec<(String, AddressList, ListFile)> = args
        .lists
        .iter()
        .map(|path| read_list(path))
        .collect::<anyhow::Result<_>>()?;
    let hops = list_hops(&fields).into_iter().map(|hop| HopOnLists {
        listed: lists
            .iter()
            .filter_map(|(name, list, _)| find(&hop, name, list))
            .collect(),
        hop,
    });
    let hops = hops.collect();
    let limit = Duration::from_nanos(args.timeout.0);
    let (spamassassin, no_verdict) = match spamassassin::run(&LiveHost, &mail, args.network, limit)
    {
        Ok(verdict) => (Some(verdict), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let document = Document {
        schema: SCHEMA_VERSION,
        lists: lists.into_iter().map(|(_, _, file)| file).collect(),
        hops,
        spamassassin,
        no_verdict,
    };
    print(&match args.json {
        true => format!("{:#}\n", serde_json::json!(document)),
        false => text(&document, context::style(global)),
    })?;
    let is_listed = document.hops.iter().any(|hop| !hop.listed.is_empty());
    Ok(match &document.spamassassin {
        Some(verdict) if verdict.is_spam() => Status::Findings,
        _ if is_listed => Status::Findings,
        Some(_) => Status::Ok,
        None => Status::Unreadable,
    })
}

fn find(hop: &Hop, name: &str, list: &AddressList) -> Option<ListEntry> {
    let (network, line) = list.find(hop.address?)?;
    Some(ListEntry {
        list: name.to_owned(),
        network,
        line,
    })
}

fn read_list(path: &Path) -> anyhow::Result<(String, AddressList, ListFile)> {
    let name = path.to_string_lossy().into_owned();
    let bytes = input::bytes(path, LONGEST_LIST, "a list of addresses")?;
    let list = AddressList::parse(&String::from_utf8_lossy(&bytes));
    if list.is_empty() {
        anyhow::bail!("{}: no address or network in it", escape_line(&name));
    }
    let written = std::fs::metadata(path)
        .and_then(|found| found.modified())
        .ok();
    let file = ListFile {
        file: name.clone(),
        written: written.and_then(|time| jiff::Timestamp::try_from(time).ok()),
        networks: list.len(),
        unread: list.unread,
    };
    Ok((name, list, file))
}

fn text(document: &Document, style: Style) -> String {
    let mut out = String::new();
    match (&document.spamassassin, &document.no_verdict) {
        (Some(verdict), _) => verdict_text(verdict, style, &mut out),
        (None, why) => {
            let why = why.as_deref().unwrap_or("no reason");
            out.push_str(&format!("No verdict: {}\n", escape_line(why)));
        }
    }
    if !document.hops.is_empty() {
        out.push_str(&format!(
            "\n{}\n",
            style.bold("Servers that it passed, the newest first")
        ));
    }
    for (at, HopOnLists { hop, listed }) in document.hops.iter().enumerate() {
        let address = hop
            .address
            .map_or_else(|| "no address".to_owned(), |address| address.to_string());
        let shown = |name: &Option<String>| escape_line(name.as_deref().unwrap_or("?"));
        let forged = if at == 0 { "" } else { " (may be forged)" };
        out.push_str(&format!(
            "  {address:<24} {} to {}{forged}\n",
            shown(&hop.from),
            shown(&hop.by)
        ));
        for one in listed {
            let place = format!("{}:{}", one.list, one.line);
            out.push_str(&format!(
                "    LISTED as {} in {}\n",
                one.network,
                escape_line(&place)
            ));
        }
    }
    for list in &document.lists {
        let when = list.written.map_or_else(
            || "unknown".to_owned(),
            |time| time.strftime("%Y-%m-%d").to_string(),
        );
        let unread = match list.unread {
            0 => String::new(),
            count => format!(", {count} lines could not be read"),
        };
        out.push_str(&format!(
            "\n{}: {} networks, written {when}{unread}\n",
            escape_line(&list.file),
            list.networks
        ));
    }
    out
}

fn verdict_text(verdict: &SpamVerdict, style: Style, out: &mut String) {
    let SpamVerdict {
        score,
        required,
        rules,
    } = verdict;
    let title = match verdict.is_spam() {
        true => format!("SPAM for SpamAssassin: {score} points of {required}"),
        false => format!("No spam for SpamAssassin: {score} points of {required}"),
    };
    out.push_str(&format!("{}\n", style.bold(&title)));
    for Rule {
        name,
        score,
        description,
        file,
        line,
    } in rules
    {
        let description = description.as_deref().unwrap_or_default();
        out.push_str(&format!(
            "  {score:>7} {} {}\n",
            escape_line(name),
            escape_line(description)
        ));
        if let (Some(file), Some(line)) = (file, line) {
            out.push_str(&format!(
                "          {}:{line}\n",
                escape_line(&file.to_string_lossy())
            ));
        }
    }
}
