//! `assay web --from`: several machines of an inventory generate load on one server at the same time. assay is uploaded
//! to each machine for the duration of the measurement.

use super::{Args, What, measure, targets, watched};
use crate::context;
use crate::global::Global;
use crate::remote::ConnectionParameters;
use crate::status::{Status, Unreadable};
use crate::verbs::fleet::ask;
use anyhow::{Context as _, ensure};
use assay_fleet::remote::{Program, Speaker, Talk};
use assay_fleet::{IN_LANE, SshSession};
use assay_host::LiveHost;
use assay_http::Url;
use assay_model::Facts;
use assay_render::text::escape_line;
use assay_web::many::{Line, Many};
use assay_web::{ServerProcesses, carry_out_on, is_here, record};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of unread messages of a machine. A machine that sends more has to wait.
const WAITING: usize = 16;

/// Time limit in which the other machine must resolve the servers. The later steps have limits of their own.
const READY: Duration = Duration::from_secs(300);

/// A message from a machine that generates load.
enum Said {
    Begun(Speaker),
    Line(Instant, String),
    /// Text that the machine printed on standard error.
    Complaint(String),
    /// The connection ended, as (reason, whether the connection itself failed).
    Ended(String, bool),
}

/// The connection to one machine, from the view of the coordinator.
struct Wire {
    heard: Receiver<Said>,
    speaker: Option<Speaker>,
    complaint: Option<String>,
    /// Time when the connection began; `None` after the first message has arrived.
    silent_since: Option<Instant>,
    /// True after the connection failed.
    cut: Arc<AtomicBool>,
    /// Set to true to end the remote verb.
    end: Arc<AtomicBool>,
}

impl Line for Wire {
    fn say(&mut self, line: &str) {
        if let Some(speaker) = &self.speaker {
            speaker.say(format!("{line}\n").as_bytes());
        }
    }

    fn hear(&mut self, within: Duration) -> Result<Option<(Instant, String)>, String> {
        // Endless messages on standard error do not extend the time limit.
        let end = crate::progress::now() + within;
        loop {
            let left = end.saturating_duration_since(crate::progress::now());
            match self.heard.recv_timeout(left) {
                Ok(Said::Begun(speaker)) => {
                    self.speaker = Some(speaker);
                    self.silent_since = Some(crate::progress::now());
                }
                Ok(Said::Line(at, line)) => {
                    self.silent_since = None;
                    return Ok(Some((at, line)));
                }
                Ok(Said::Complaint(line)) => {
                    let said = line.strip_prefix("assay: ").map(str::to_owned);
                    self.complaint = said.or_else(|| self.complaint.take().or(Some(line)));
                }
                Ok(Said::Ended(why, cut)) => {
                    self.cut.fetch_or(cut, Ordering::Relaxed);
                    return Err(match (cut, self.complaint.take()) {
                        (false, Some(complaint)) => complaint,
                        _ => why,
                    });
                }
                Err(RecvTimeoutError::Timeout) => {
                    let late = self.silent_since.is_some_and(|at| at.elapsed() > READY);
                    return match late {
                        true => Err(format!("it is not ready after {} s", READY.as_secs())),
                        false => Ok(None),
                    };
                }
                Err(RecvTimeoutError::Disconnected) => return Err("it is gone".to_owned()),
            }
        }
    }

    fn end(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(speaker) = &self.speaker {
            speaker.end();
        }
    }
}

/// Connects to all machines, measures with all of them together, and disconnects.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let settings = args.settings(context::random_seed()?)?;
    let load = args.load()?;
    let asked = args.there_at_once()?;
    let how = &args.remote.how;
    let (inventory, others) = args.known.open(how.ssh_config().as_deref())?;
    let machines = inventory.choose(&args.from, others)?;
    ensure!(!machines.is_empty(), "--from: unknown machine");
    let sessions = ask::sessions(&machines, how, &inventory);
    let names: Vec<String> = machines
        .iter()
        .map(|machine| escape_line(&machine.name))
        .collect();
    let mut urls = Vec::new();
    let mut parsed = Vec::new();
    for text in &args.urls {
        let url = Url::parse(text).map_err(|why| anyhow::anyhow!("{text}: {why}"))?;
        let name = record::name_of(&url);
        ensure!(!urls.contains(&name), "{text} is named twice");
        urls.push(name);
        parsed.push(url);
    }
    let program = args.remote.going.program()?;
    let programs: Vec<Program> = sessions
        .iter()
        .map(|_| program.again().context("the program that is sent"))
        .collect::<anyhow::Result<_>>()?;
    let cancel = context::on_signals()?;
    let stop = || cancel.is_cancelled();
    let watch = watched::Watch::open(args, &stop)?;
    let ports: Vec<u16> = parsed.iter().map(Url::port).collect();
    let servers = watch.servers(args, &ports, |at| server(args, &parsed[at]))?;
    // If one machine fails, the others need not continue.
    let vain = AtomicBool::new(false);
    let cut = Arc::new(AtomicBool::new(false));
    // A bastion drops logins if too many arrive at once.
    let (enter, leave) = sync_channel(IN_LANE);
    let leave = Mutex::new(leave);
    if !args.quiet {
        eprintln!("assay goes to {}", names.join(", "));
    }
    std::thread::scope(|scope| {
        let mut lines: Vec<(String, Box<dyn Line>)> = Vec::new();
        for ((session, name), program) in sessions.iter().zip(&names).zip(programs) {
            let (tell, heard) = sync_channel(WAITING);
            let (asked, cancel, enter) = (&asked, cancel.clone(), enter.clone());
            let (stop, vain, leave) = (&stop, &vain, &leave);
            let end = Arc::new(AtomicBool::new(false));
            let told_to_end = end.clone();
            let silence = args.remote.going.silence();
            scope.spawn(move || {
                let going = Going {
                    session,
                    silence,
                    program,
                    stop: &|| {
                        let told = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
                        stop() || told(vain) || told(&told_to_end)
                    },
                    enter,
                    leave,
                };
                going.go(asked, cancel, &tell);
            });
            let wire = Wire {
                heard,
                speaker: None,
                complaint: None,
                silent_since: None,
                cut: cut.clone(),
                end,
            };
            lines.push((name.clone(), Box::new(wire)));
        }
        let many = Many::join(lines, servers, args.remote.going.silence(), &stop);
        let mut many = match many {
            Ok(Some(many)) => many,
            Ok(None) => return Ok(Status::Interrupted),
            Err(why) => {
                vain.store(true, Ordering::Relaxed);
                return match (stop(), cut.load(Ordering::Relaxed)) {
                    (true, _) => Ok(Status::Interrupted),
                    (false, true) => Err(Unreadable(escape_line(&why)).into()),
                    (false, false) => Err(anyhow::anyhow!(escape_line(&why))),
                };
            }
        };
        let remarks = (0..urls.len()).map(|at| many.remarks(at).to_vec());
        let what = What {
            remarks: remarks.collect(),
            urls,
            load,
            settings,
            // The load does not come from a single machine.
            facts: Facts::default(),
            watch,
        };
        let done = measure(args, global, what, &stop, |settings, steps, stop, tell| {
            carry_out_on(&mut many, settings, steps, stop, tell)?;
            match many.lost() {
                // The connection was lost in the last step.
                Some(lost) if !stop() => Err(assay_web::CarryError::Generator(lost)),
                _ => Ok(()),
            }
        });
        // Ends the remote verbs that still run.
        vain.store(true, Ordering::Relaxed);
        done
    })
}

/// Input of the thread that communicates with one machine.
struct Going<'a> {
    session: &'a SshSession,
    silence: Duration,
    program: Program,
    stop: &'a dyn Fn() -> bool,
    /// Limits the number of concurrent logins.
    enter: SyncSender<()>,
    leave: &'a Mutex<Receiver<()>>,
}

impl Going<'_> {
    /// Connects to the machine, and forwards its messages until the connection ends.
    fn go(
        mut self,
        asked: &crate::remote::RemoteWork,
        cancel: assay_loads::Cancel,
        tell: &SyncSender<Said>,
    ) {
        let left = std::cell::Cell::new(false);
        let leave = || {
            if !left.replace(true) {
                let leave = self.leave.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = leave.try_recv();
            }
        };
        let _ = self.enter.send(());
        let journey = ConnectionParameters {
            session: self.session,
            silence: self.silence,
            quiet: true,
            stop: self.stop,
        };
        let ended = journey.go(&mut self.program, cancel, |way| {
            leave();
            let words = way.words(asked)?;
            let status = way.talk(
                &words,
                &mut Talk {
                    stop: self.stop,
                    begun: &mut |speaker| {
                        let _ = tell.send(Said::Begun(speaker));
                    },
                    heard: &mut |at, line| {
                        let _ = tell.send(Said::Line(at, line.to_owned()));
                    },
                    say: &mut |line| {
                        let _ = tell.send(Said::Complaint(line.to_owned()));
                    },
                },
            )?;
            // Reported at once; the disconnection follows.
            let why = match status {
                0 | 130 => "it ended".to_owned(),
                129.. => format!("its assay was ended by signal {}", status - 128),
                _ => format!("its assay ended with status {status}"),
            };
            let _ = tell.send(Said::Ended(why, false));
            Ok(())
        });
        leave();
        if let Err(error) = ended {
            let why = format!("{error:#}");
            let own = format!("{}: ", escape_line(&self.session.host));
            let why = why.strip_prefix(&own).unwrap_or(&why).to_owned();
            let _ = tell.send(Said::Ended(why, true));
        }
    }
}

/// Returns the processes of a server whose CPU time is counted on this machine. The result is empty if the server runs
/// on another machine.
fn server(args: &Args, url: &Url) -> anyhow::Result<ServerProcesses> {
    if let Some(pid) = args.server_pid {
        return Ok(ServerProcesses::process(pid)?);
    }
    if let Some(group) = &args.cgroup {
        return Ok(ServerProcesses::group(group)?);
    }
    let own = |address: &std::net::SocketAddr| {
        !address.ip().to_canonical().is_loopback() && is_here(address)
    };
    // A name that only the generators can resolve is not an error.
    let found = url.resolve().unwrap_or_default();
    Ok(match found.iter().find(|address| own(address)) {
        Some(address) => ServerProcesses::listening(address),
        None => ServerProcesses::Unknown(
            "it is on another machine: --server-host reads it there".to_owned(),
        ),
    })
}

/// Runs on the other machine: resolves the servers, and executes the requests that arrive on standard input.
pub fn generate(args: &Args) -> anyhow::Result<Status> {
    args.despite.check_here()?;
    let settings = args.settings(0)?;
    let cancel = context::on_signals()?;
    let stop = || cancel.is_cancelled();
    let load = args.load()?;
    let targets = targets(args, &load, settings.seed, &stop)?;
    let machine = assay_facts::machine(&LiveHost).map(|machine| machine.id);
    let input = std::io::BufReader::new(std::io::stdin());
    let mut out = std::io::stdout();
    assay_web::many::generate(&targets, machine, settings.link, input, &mut out, &stop)?;
    Ok(match stop() {
        true => Status::Interrupted,
        false => Status::Ok,
    })
}
