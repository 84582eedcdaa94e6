//! Why the parts of logins take as long as they take. A cause is named only with evidence of its own
//! seconds: a process that was seen, a line that was timed, an address that did not answer. Time without
//! evidence stays "not explained". How a process is named is in `naming`, why a login failed in `failure`.

mod naming;

use crate::startup::StartupLine;
use crate::{Login, LoginPart, is_wait};
use assay_model::Nanos;
use serde::Serialize;

/// What a login is made to.
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
    /// `auth`, `account`, `session` or `password`.
    pub kind: String,
    /// The module, without `.so`.
    pub module: String,
    /// What follows the module.
    pub arguments: Vec<String>,
    /// `FILE:LINE`.
    pub place: String,
}

/// What is known of this machine, and of the server where that is this machine. None: it could not be
/// read, or it is another machine's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerKnowledge {
    /// Services of `hosts:` in nsswitch.conf here, with its place.
    pub hosts: Option<(String, String)>,
    /// Keyword and value of the server's effective configuration, as `sshd -T` prints it.
    pub sshd: Option<Vec<(String, String)>>,
    /// The service's PAM stack on the server.
    pub pam: Option<Vec<PamLine>>,
    /// File system of the user's home there.
    pub home: Option<String>,
    /// Dovecot's passdb drivers in their order, each with its place.
    pub passdbs: Option<Vec<(String, String)>>,
    /// Restrictions of Postfix that sleep before the greeting, as `postconf -n` prints them.
    pub sleeps: Vec<String>,
    /// Lines of start-up files that took long.
    pub startup: Vec<StartupLine>,
    /// Whether the server runs here, and whether its processes were watched.
    pub is_here: bool,
    /// See `is_here`.
    pub is_watched: bool,
    /// Connections that had not logged in, and how many the server lets in, as sshd writes them into its title.
    pub startups: Option<(u32, u32)>,
    /// Whether the user who logs in exists on the server.
    pub user_exists: Option<bool>,
}

impl ServerKnowledge {
    /// Returns a keyword of the server's configuration; empty when it is not set.
    #[must_use]
    pub fn setting(&self, keyword: &str) -> Option<&str> {
        let all = self.sshd.as_ref()?;
        let found = all.iter().find(|(name, _)| name == keyword);
        Some(found.map_or("", |(_, value)| value))
    }
}

/// Something that makes logins wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Cause {
    /// Its stable name.
    pub id: String,
    /// What.
    pub what: String,
    /// The evidence.
    pub seen: Option<String>,
    /// What to do, or to look at.
    pub then: String,
    /// The time that it explains in a login: half of the logins have less.
    pub took: Nanos,
    /// The most in one login.
    pub longest: Nanos,
    /// In how many logins it was seen.
    pub logins: usize,
    /// The parts that wait for it.
    pub parts: Vec<LoginPart>,
}

/// Time of a part for which there is no evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Unexplained {
    /// The part.
    pub part: LoginPart,
    /// How long; half of the logins have less.
    pub took: Nanos,
    /// What is known of it.
    pub within: Option<String>,
    /// How to find out.
    pub then: String,
}

/// Everything that makes logins wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Causes, the one that takes most first.
    pub causes: Vec<Cause>,
    /// What has no evidence.
    pub unexplained: Vec<Unexplained>,
}

/// A cause without its seconds.
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

/// Causes that come and go with the load of the machine: only the median counts.
const OF_LOAD: [&str; 4] = ["busy-machine", "client-cpu", "server-cpu", "key-exchange"];
/// Of several small causes that add up to a wait, those that take this long are named.
const SMALL: Nanos = Nanos(50_000_000);

/// Explains where the time of logins goes.
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

/// A cause over all logins.
struct Gathered {
    cause: Named,
    /// Time in each login.
    times: Vec<u64>,
    /// Time in each part.
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

/// Returns the parts in which a cause takes a tenth of its time or more: a look at the processes is late by
/// up to its interval, so a little of it may fall into the part before.
fn main_parts(parts: Vec<(LoginPart, u64)>) -> Vec<LoginPart> {
    let all: u64 = parts.iter().map(|(_, time)| time).sum();
    let main = parts.into_iter().filter(|(_, time)| time * 10 >= all);
    main.map(|(part, _)| part).collect()
}

/// Chooses the causes that matter: each that is a wait by itself; else small ones that add up to a wait.
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

/// Explains a part of one login: each cause with its time, and the time without a cause.
fn explain_part(
    kind: LoginKind,
    part: &LoginPart,
    took: Nanos,
    login: &Login,
    known: &ServerKnowledge,
) -> (Vec<(Named, Nanos)>, Nanos) {
    let mut rest = took.0;
    let mut found = Vec::new();
    let lines: Vec<&StartupLine> = known
        .startup
        .iter()
        .filter(|line| line.part == *part)
        .collect();
    let mut shares: Vec<_> = login
        .shares
        .iter()
        .filter(|share| share.part == *part)
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.took));
    for share in shares {
        // Lines that were timed say more than the shell that reads them.
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

/// Enters a cause with as much of its time as is left of the part.
fn take(found: &mut Vec<(Named, Nanos)>, cause: Named, time: u64, rest: &mut u64) {
    let time = time.min(*rest);
    if time > 0 {
        *rest -= time;
        found.push((cause, Nanos(time)));
    }
}

/// A sleep is known to this much.
const LATE: u64 = 40_000_000;

/// Joins sshd's own sleep with the wait before it: sshd rounds the time of a request that it does not take up
/// to a multiple (`ensure_minimum_time_since`), at most to twice of it. So a request that waits for a name
/// server sleeps after it, and what made it wait explains both.
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

/// Round trips that matter: shorter ones are this machine's or a neighbour's.
const FAR: Nanos = Nanos(20_000_000);

/// Returns the time to the server and back, at most: no part of one round trip is shorter.
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

/// Returns how often a part goes to the server and back, at least.
fn round_trips(part: &LoginPart) -> u64 {
    match part {
        LoginPart::Tcp
        | LoginPart::Banner
        | LoginPart::User
        | LoginPart::Tls
        | LoginPart::Answer => 1,
        LoginPart::Method(_) | LoginPart::Session => 2,
        LoginPart::KeyExchange => 3,
        LoginPart::Name | LoginPart::Prompt => 0,
    }
}

#[cfg(test)]
mod tests;
