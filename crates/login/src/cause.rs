//! Explains why parts of logins take long. assay names a cause only if it has evidence for the time that the cause
//! takes: an observed process, a timed line, or an address that did not answer. Time without evidence remains
//! unexplained. Module `naming` names causes; module `failure` explains failed logins.

mod naming;

use crate::failure::AccountState;
use crate::pam_timing::PamModuleTime;
use crate::startup::{LineTrigger, StartupLine};
use crate::{Login, LoginPart, is_wait};
use assay_model::Nanos;
use serde::Serialize;

/// Protocol of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginKind {
    /// SSH.
    Ssh,
    /// IMAP.
    Imap,
    /// SMTP.
    Smtp,
    /// HTTP.
    Http,
}

/// A line of a PAM stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PamLine {
    /// Type: `auth`, `account`, `session` or `password`.
    pub kind: String,
    /// Name of the module without `.so`.
    pub module: String,
    /// Arguments of the module.
    pub arguments: Vec<String>,
    /// Position of the line as `FILE:LINE`.
    pub place: String,
}

/// Facts about this machine, and about the server if the server runs on this machine. `None` means that the fact is
/// unreadable, or that the server is remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerKnowledge {
    /// The `hosts:` line of this machine's nsswitch.conf, with its position.
    pub hosts: Option<(String, String)>,
    /// Keywords and values of the server's effective configuration, as printed by `sshd -T`.
    pub sshd: Option<Vec<(String, String)>>,
    /// PAM stack of the service on the server.
    pub pam: Option<Vec<PamLine>>,
    /// File system of the user's home directory on the server.
    pub home: Option<String>,
    /// Dovecot's passdb drivers in order, each with its position.
    pub passdbs: Option<Vec<(String, String)>>,
    /// Postfix restrictions that delay the greeting with a sleep, as printed by `postconf -n`.
    pub sleeps: Vec<String>,
    /// Slow lines of shell start-up files.
    pub startup: Vec<StartupLine>,
    /// Times of the modules of PAM in one login; empty if they were not timed.
    pub modules: Vec<PamModuleTime>,
    /// The server runs on this machine.
    pub is_here: bool,
    /// Whether assay watched the server's processes during the logins.
    pub is_watched: bool,
    /// Number of unauthenticated connections and their limit, from the process title of sshd.
    pub startups: Option<(u32, u32)>,
    /// The user exists on the server.
    pub user_exists: Option<bool>,
    /// The account of the user on the server.
    pub account: Option<AccountState>,
}

impl ServerKnowledge {
    /// Returns the value of a keyword in sshd's configuration; `None` if unset.
    #[must_use]
    pub fn setting(&self, keyword: &str) -> Option<&str> {
        let all = self.sshd.as_ref()?;
        let found = all.iter().find(|(name, _)| name == keyword);
        Some(found.map_or("", |(_, value)| value))
    }
}

/// A cause of waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Cause {
    /// Stable identifier.
    pub id: String,
    /// Description of the cause.
    pub what: String,
    /// Evidence.
    pub seen: Option<String>,
    /// Fix, or next step of the diagnosis.
    pub then: String,
    /// Time per login that the cause explains: the median over all logins.
    pub took: Nanos,
    /// Maximum time in one login.
    pub longest: Nanos,
    /// Number of logins with this cause.
    pub logins: usize,
    /// Parts of the login that wait because of this cause.
    pub parts: Vec<LoginPart>,
}

/// Time of a part without evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Unexplained {
    /// Part of the login.
    pub part: LoginPart,
    /// Median unexplained time per login.
    pub took: Nanos,
    /// Known facts about this time.
    pub within: Option<String>,
    /// Next step of the diagnosis.
    pub then: String,
}

/// All causes of waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Causes, the longest first.
    pub causes: Vec<Cause>,
    /// Unexplained time.
    pub unexplained: Vec<Unexplained>,
}

/// A cause without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    id: &'static str,
    what: String,
    seen: String,
    then: String,
}

fn name_cause(id: &'static str, what: &str, seen: &str, then: &str) -> Named {
    Named {
        id,
        what: what.to_owned(),
        seen: seen.to_owned(),
        then: then.to_owned(),
    }
}

/// Ids of causes that vary with the machine's load. For these, only the median over the logins is considered.
const OF_LOAD: [&str; 4] = ["busy-machine", "client-cpu", "server-cpu", "key-exchange"];
/// Minimum time of a module of PAM that is reported. A stamp takes some milliseconds itself.
const SLOW_MODULE: Nanos = Nanos(100_000_000);
/// Minimum time of a small cause. Small causes are reported only if they together count as a wait.
const SMALL: Nanos = Nanos(50_000_000);

/// Explains how the time of logins is spent.
#[must_use]
pub fn explain(kind: LoginKind, logins: &[Login], known: &ServerKnowledge) -> Explanation {
    let mut causes: Vec<Gathered> = Vec::new();
    let mut rests: Vec<(LoginPart, Vec<u64>)> = Vec::new();
    for (index, login) in logins.iter().enumerate() {
        for phase in &login.phases {
            let (found, rest) = explain_part(kind, &phase.part, phase.took, login, known);
            for (cause, took) in found {
                let same =
                    |other: &Gathered| other.cause.id == cause.id && other.cause.what == cause.what;
                let at = causes.iter().position(same).unwrap_or_else(|| {
                    causes.push(Gathered {
                        cause,
                        times: vec![0; logins.len()],
                        parts: Vec::new(),
                    });
                    causes.len() - 1
                });
                causes[at].add(index, &phase.part, took);
            }
            match rests.iter_mut().find(|(part, _)| *part == phase.part) {
                Some((_, times)) => times.push(rest.0),
                None => rests.push((phase.part.clone(), vec![rest.0])),
            }
        }
    }
    let whole = Nanos(lower_median(
        logins.iter().map(|login| login.total().0).collect(),
    ));
    let causes = causes.into_iter().map(Gathered::finish);
    let unexplained = rests.into_iter().filter_map(|(part, times)| {
        let took = Nanos(lower_median(times));
        let (within, then) = naming::how_to_find_out(kind, &part, logins, known);
        is_wait(took, whole).then_some(Unexplained {
            part,
            took,
            within,
            then,
        })
    });
    Explanation {
        causes: choose(causes.collect(), whole),
        unexplained: unexplained.collect(),
    }
}

/// A cause with its times in all logins.
struct Gathered {
    cause: Named,
    /// Time in each login, in nanoseconds.
    times: Vec<u64>,
    /// Time in each part, in nanoseconds.
    parts: Vec<(LoginPart, u64)>,
}

impl Gathered {
    fn add(&mut self, login: usize, part: &LoginPart, took: Nanos) {
        self.times[login] += took.0;
        match self.parts.iter_mut().find(|(other, _)| other == part) {
            Some((_, time)) => *time += took.0,
            None => self.parts.push((part.clone(), took.0)),
        }
    }

    fn finish(self) -> Cause {
        Cause {
            id: self.cause.id.to_owned(),
            what: self.cause.what,
            seen: Some(self.cause.seen),
            then: self.cause.then,
            took: Nanos(lower_median(self.times.clone())),
            longest: Nanos(self.times.iter().copied().max().unwrap_or(0)),
            logins: self.times.iter().filter(|time| **time > 0).count(),
            parts: main_parts(self.parts),
        }
    }
}

/// Returns the parts that contain at least a tenth of a cause's time. Less may come from a late look at the
/// processes, which shifts time into a neighbouring part.
fn main_parts(parts: Vec<(LoginPart, u64)>) -> Vec<LoginPart> {
    let all: u64 = parts.iter().map(|(_, time)| time).sum();
    let main = parts.into_iter().filter(|(_, time)| time * 10 >= all);
    main.map(|(part, _)| part).collect()
}

/// Selects the causes to report: each cause that counts as a wait by itself, and the small causes if they together
/// count as a wait.
fn choose(all: Vec<Cause>, whole: Nanos) -> Vec<Cause> {
    let counts = |cause: &Cause| {
        let took = match OF_LOAD.contains(&&cause.id[..]) {
            true => cause.took,
            false => cause.took.max(cause.longest),
        };
        is_wait(took, whole)
    };
    let (mut chosen, mut small): (Vec<Cause>, Vec<Cause>) = all.into_iter().partition(counts);
    small.retain(|cause| cause.took >= SMALL && !OF_LOAD.contains(&&cause.id[..]));
    let together = Nanos(small.iter().map(|cause| cause.took.0).sum());
    if is_wait(together, whole) {
        chosen.extend(small);
    }
    chosen.sort_by_key(|cause| std::cmp::Reverse(cause.took.max(cause.longest)));
    chosen
}

/// Returns the lower median.
fn lower_median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    match times.len() {
        0 => 0,
        length => times[(length - 1) / 2],
    }
}

/// Explains a part of one login: returns each cause with its time, and the time without a cause.
fn explain_part(
    kind: LoginKind,
    part: &LoginPart,
    took: Nanos,
    login: &Login,
    known: &ServerKnowledge,
) -> (Vec<(Named, Nanos)>, Nanos) {
    let mut rest = took.0;
    let mut found = Vec::new();
    let (replaced, lines): (Vec<&StartupLine>, Vec<_>) = known
        .startup
        .iter()
        .filter(|line| line.part == *part)
        .partition(|line| line.trigger == LineTrigger::ReplacedShell);
    // The program that took the shell's place would be named as one that the server started.
    for line in replaced {
        take(&mut found, naming::name_line(line), line.took.0, &mut rest);
    }
    let mut shares: Vec<_> = login
        .shares
        .iter()
        .filter(|share| share.part == *part)
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.took));
    for share in shares {
        // Timed lines are more precise than the shell that runs them.
        if naming::is_users_shell(share) && !lines.is_empty() {
            continue;
        }
        take(
            &mut found,
            naming::name_activity(kind, share, login, known),
            share.took.0,
            &mut rest,
        );
    }
    join_fail_delay(kind, part, took.0, &mut found, &mut rest);
    take_modules(part, known, &mut found, &mut rest);
    for line in lines {
        take(&mut found, naming::name_line(line), line.took.0, &mut rest);
    }
    match part {
        LoginPart::Tcp => {
            for (address, time) in &login.clues.unanswered {
                take(
                    &mut found,
                    naming::name_unanswered(address),
                    time.0,
                    &mut rest,
                );
            }
        }
        LoginPart::Name if kind != LoginKind::Ssh => {
            take(
                &mut found,
                naming::name_lookup(known, "getaddrinfo(3) was timed"),
                rest,
                &mut rest,
            );
        }
        LoginPart::Method(method) if method.starts_with("gssapi") => {
            take(&mut found, naming::name_gssapi(), rest, &mut rest);
        }
        LoginPart::Method(_) if login.clues.refused_keys.len() > 1 => {
            let keys = &login.clues.refused_keys;
            let all = keys.iter().map(|time| time.0).sum();
            take(&mut found, naming::name_refused_keys(), all, &mut rest);
        }
        LoginPart::Banner if matches!(kind, LoginKind::Imap | LoginKind::Smtp) => {
            take(
                &mut found,
                naming::name_late_greeting(&login.clues, known),
                rest,
                &mut rest,
            );
        }
        _ => {}
    }
    let distance = round_trip(login).0 * round_trips(part);
    take(&mut found, naming::name_distance(), distance, &mut rest);
    (found, Nanos(rest))
}

/// Adds the modules of PAM that took long, unless a process that a module started is named already.
fn take_modules(
    part: &LoginPart,
    known: &ServerKnowledge,
    found: &mut Vec<(Named, Nanos)>,
    rest: &mut u64,
) {
    let runs_here = |kind: &str| match kind {
        "session" => *part == LoginPart::Session,
        "auth" => matches!(part, LoginPart::Method(_)),
        _ => matches!(part, LoginPart::Method(_) | LoginPart::User),
    };
    for module in &known.modules {
        let place = format!("{};", module.place);
        let is_named = found
            .iter()
            .any(|(cause, _)| cause.seen.starts_with(&place));
        if module.took < SLOW_MODULE || !runs_here(&module.kind) || is_named {
            continue;
        }
        // A sleep of the server is known by then as the sleep of the module.
        if let Some(at) = found
            .iter()
            .position(|(cause, _)| cause.id == "server-sleeps")
        {
            *rest += found.remove(at).1.0;
        }
        take(found, naming::name_module(module), module.took.0, rest);
    }
}

/// Adds a cause with its time, limited to the rest of the part.
fn take(found: &mut Vec<(Named, Nanos)>, cause: Named, time: u64, rest: &mut u64) {
    let time = time.min(*rest);
    if time > 0 {
        *rest -= time;
        found.push((cause, Nanos(time)));
    }
}

/// A sleep may end this many nanoseconds late.
const LATE: u64 = 40_000_000;

/// Merges sshd's own sleep with the wait before it. sshd rounds the duration of a failed request up to a multiple of a
/// fixed time (`ensure_minimum_time_since`), at most to twice the duration. So a request that waited for a name server
/// also sleeps afterwards, and the first wait is the cause of both times.
fn join_fail_delay(
    kind: LoginKind,
    part: &LoginPart,
    took: u64,
    found: &mut Vec<(Named, Nanos)>,
    rest: &mut u64,
) {
    if kind != LoginKind::Ssh || !matches!(part, LoginPart::User | LoginPart::Method(_)) {
        return;
    }
    let Some(at) = found
        .iter()
        .position(|(cause, _)| cause.id == "server-sleeps")
    else {
        return;
    };
    let slept = found[at].1.0;
    if slept > took - slept + LATE {
        return;
    }
    found.remove(at);
    match found.iter_mut().max_by_key(|(_, time)| *time) {
        Some((_, time)) if time.0 > *rest => time.0 += slept,
        _ => *rest += slept,
    }
}

/// Minimum round-trip time that is reported as a cause. Shorter ones are usual for this machine or a nearby one.
const FAR: Nanos = Nanos(20_000_000);

/// Returns an upper bound of the round-trip time: a part with one round trip takes at least this time. Returns 0 if the
/// time is below [`FAR`], or if the login has too few such parts.
fn round_trip(login: &Login) -> Nanos {
    let one =
        |part: &LoginPart| matches!(part, LoginPart::Tcp | LoginPart::Banner | LoginPart::User);
    let parts = login.phases.iter().filter(|phase| one(&phase.part));
    let times: Vec<u64> = parts.map(|phase| phase.took.0).collect();
    match (times.len() >= 3, times.into_iter().min()) {
        (true, Some(least)) if least >= FAR.0 => Nanos(least),
        _ => Nanos(0),
    }
}

/// Returns the minimum number of round trips of a part.
fn round_trips(part: &LoginPart) -> u64 {
    match part {
        LoginPart::Tcp
        | LoginPart::Banner
        | LoginPart::User
        | LoginPart::Tls
        | LoginPart::Answer => 1,
        LoginPart::Method(_) | LoginPart::Session => 2,
        LoginPart::KeyExchange => 3,
        LoginPart::Name | LoginPart::Prompt | LoginPart::Logout => 0,
    }
}

#[cfg(test)]
mod tests;
