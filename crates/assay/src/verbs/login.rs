//! `assay login`: measures the parts of a login, and explains delays.

mod each_module;
mod server_knowledge;
mod text;

use crate::context::{self, print};
use crate::global::Global;
use crate::input;
use crate::progress::Meter;
use crate::status::Status;
use crate::verbs::web::header;
use anyhow::{Context as _, bail, ensure};
use assay_http::{Method, Request, Tls, Trust, Url};
use assay_login::cause::{Cause, LoginKind, ServerKnowledge, Unexplained, explain};
use assay_login::concurrent_logins::Crowd;
use assay_login::failure::{LoginFailure, classify_failure};
use assay_login::startup::StartupLine;
use assay_login::{
    Login, LoginError, LoginPart, Summary, concurrent_logins, http, mail, ssh, startup, watch,
};
use assay_model::{Nanos, SCHEMA_VERSION};
use each_module::{ModuleTimes, plan_modules};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const EXAMPLES: &str = "\
Examples:
  assay login ssh me@server                   each part of a login, and which one waits
  assay login ssh server -o Port=2222 --many 1,5,20
                                              and how many get in at once
  assay login ssh root@localhost --each-module
                                              seconds of each PAM module, in one more login
  assay login ssh ann@localhost --password-file pw --each-module
                                              with a password: the auth modules too
  assay login imap localhost --user ann --password-file pw
  assay login imap mail.example.org:993 --tls --user ann --password-file pw
  assay login smtp localhost:587              up to the password
  assay login http https://intra/ -H 'Cookie: session=…'

ssh is the system's own, with your configuration, keys and agent; it never prompts. With --password-file,
it logs in by password.
With ssh, a login shell is started as for a person, and a control socket is compared. Where the
server is this machine, its configuration is read and, as root, its processes are watched.

Exit status: 0 measured, 1 a login failed, 2 error, 130 interrupted.";

/// Measure how long logins take (ssh, imap, smtp, http), and why
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Service to log in to
    #[arg(value_enum, value_name = "SERVICE")]
    service: Service,
    /// [USER@]HOST[:PORT] for ssh, HOST[:PORT] for mail, URL for http
    #[arg(value_name = "TARGET")]
    target: String,
    /// Log in N times, one login after the other
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Start no further round after this time
    #[arg(long, value_name = "TIME")]
    budget: Option<Nanos>,
    /// Count a login that takes longer as failed
    #[arg(long, value_name = "TIME", default_value = "90s")]
    limit: Nanos,
    /// Then try so many logins at once, such as 1,5,20
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=200))]
    many: Vec<u32>,
    /// Pass an option to ssh, such as Port=2222 (repeatable)
    #[arg(short = 'o', long = "ssh-option", value_name = "OPTION")]
    options: Vec<String>,
    /// Only run a command over ssh: no login shell, no control socket
    #[arg(long)]
    command_only: bool,
    /// Also time each PAM module and motd program, in one more login
    #[arg(long)]
    each_module: bool,
    /// Run what --each-module runs without asking
    #[arg(long, short, requires = "each_module", hide_short_help = true)]
    yes: bool,
    /// Log in to mail as this user [default: stop before authentication]
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// Read the password from the first line of FILE, for mail or ssh
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Use TLS for mail from the first byte
    #[arg(long)]
    tls: bool,
    /// Accept any certificate
    #[arg(long)]
    insecure: bool,
    /// Send an HTTP header, such as a cookie (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Expect this HTTP status
    #[arg(long, value_name = "STATUS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=599))]
    status: u16,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Ssh,
    Imap,
    Smtp,
    Http,
}

impl Service {
    fn kind(self) -> LoginKind {
        match self {
            Self::Ssh => LoginKind::Ssh,
            Self::Imap => LoginKind::Imap,
            Self::Smtp => LoginKind::Smtp,
            Self::Http => LoginKind::Http,
        }
    }
}

/// Document of `assay login`: measured logins. Times are in nanoseconds.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::verbs) struct Document<'a> {
    #[serde(flatten)]
    measured: &'a Measured,
    schema: u32,
}

#[derive(Default, Serialize, schemars::JsonSchema)]
pub(super) struct Measured {
    target: String,
    logins: Vec<Login>,
    /// Error message of the first failed login.
    failed: Option<String>,
    /// Kind of the first failed login.
    failure: Option<LoginFailure>,
    /// Whether all logins succeeded without a delay.
    healthy: bool,
    parts: Vec<Summary>,
    waits: Option<LoginPart>,
    causes: Vec<Cause>,
    /// Delays for which there is no evidence of a cause.
    unexplained: Vec<Unexplained>,
    startup: Vec<StartupLine>,
    /// Times of single PAM modules; present only with `--each-module`.
    #[serde(skip_serializing_if = "Option::is_none")]
    each_module: Option<ModuleTimes>,
    /// Times of logins over an existing connection (ssh control socket).
    control: Vec<Nanos>,
    crowds: Vec<Crowd>,
    /// MaxStartups of sshd (limit of unauthenticated connections), if it was read.
    #[serde(skip)]
    #[schemars(skip)]
    max_startups: Option<String>,
}

/// How to log in: the service and its parameters, the server, and the server processes that are watched.
struct LoginMethod {
    service: Service,
    how: How,
    server: server_knowledge::LoginServer,
    /// User for ssh according to the ssh configuration.
    user: Option<String>,
    watched: watch::WatchedServer,
}

/// Parameters of a login for each service.
enum How {
    /// With the directory of the program that prints the password.
    Ssh(
        ssh::SshTarget,
        #[allow(dead_code, reason = "it is removed when it is dropped")] Option<TempDir>,
    ),
    Mail(mail::Protocol, mail::MailTarget, Option<mail::User>),
    Http(Box<(Url, Option<Tls>, Request, u16)>),
}

/// Runs `assay login`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let cancel = context::on_signals()?;
    let stop = || cancel.is_cancelled();
    let limit = Duration::from(args.limit);
    ensure!(args.limit.0 >= 1_000_000, "--limit must be at least 1ms");
    let way = LoginMethod::new(args.service, args.how()?);
    let modules = match (args.each_module, &way.how) {
        (false, _) => None,
        (true, How::Ssh(target, _)) => {
            let plan = plan_modules(&way.server, &way.watched, way.user.as_deref())?;
            if !plan.is_agreed(args.yes)? {
                eprintln!("nothing was run");
                return Ok(Status::Ok);
            }
            Some((plan, target))
        }
        (true, _) => bail!("--each-module is for ssh: mail and HTTP servers are not started anew"),
    };
    let mut meter = Meter::new(args.quiet, Nanos(0));
    let mut out = Measured {
        target: assay_model::secrets::withhold_in_text(&args.target),
        ..Measured::default()
    };
    let ended = measure(args, &way, limit, &stop, &mut meter, &mut out);
    if let (Ok(()), Some((plan, target))) = (&ended, &modules) {
        out.each_module = Some(plan.run(target, limit, &stop, &mut meter)?);
    }
    meter.end();
    match ended {
        Ok(()) => {}
        Err(LoginError::Interrupted) => {}
        Err(error @ (LoginError::Refused { .. } | LoginError::TimedOut { .. })) => {
            let known = way.known();
            out.failure = classify_failure(args.service.kind(), &error, &known);
            out.failed = Some(error.to_string());
            if let LoginError::TimedOut {
                waited: LoginPart::Session,
                ..
            } = error
                && let How::Ssh(target, _) = &way.how
            {
                out.startup =
                    startup::find_slowest_lines(target, &LoginPart::Session, limit, &stop)
                        .unwrap_or_default();
            }
            if let LoginError::Refused { so_far, .. } | LoginError::TimedOut { so_far, .. } = error
            {
                out.logins.push(*so_far);
            }
        }
        Err(error) => return Err(error.into()),
    }
    out.explain(&way, stop());
    match args.json {
        true => {
            let document = serde_json::to_value(Document {
                measured: &out,
                schema: SCHEMA_VERSION,
            })?;
            print(&format!("{document:#}\n"))?;
        }
        false => print(&text::of(&out, context::style(global)))?,
    }
    Ok(match () {
        () if stop() => Status::Interrupted,
        () if out.failed.is_some() => Status::Findings,
        () => Status::Ok,
    })
}

impl Measured {
    /// Finds the causes of delays in the measured logins.
    fn explain(&mut self, way: &LoginMethod, interrupted: bool) {
        self.parts = assay_login::summarize_parts(&self.logins);
        let whole = |logins: &[Login]| {
            logins
                .iter()
                .map(|login| login.total())
                .max()
                .unwrap_or_default()
        };
        let waited = assay_login::is_wait(whole(&self.logins), Nanos(0));
        let mut known = match waited || !self.crowds.is_empty() {
            true => way.known(),
            // There is nothing to explain.
            false => ServerKnowledge::default(),
        };
        known.startup.clone_from(&self.startup);
        if let Some(times) = &self.each_module {
            known.modules.clone_from(&times.modules);
        }
        let found = explain(way.service.kind(), &self.logins, &known);
        self.causes = found.causes;
        self.unexplained = found.unexplained;
        self.max_startups = known.setting("maxstartups").map(str::to_owned);
        let calm = self.causes.is_empty() && self.unexplained.is_empty();
        self.healthy = calm && self.failed.is_none() && !self.logins.is_empty() && !interrupted;
        if !calm {
            self.waits = assay_login::longest_wait(&self.parts).map(|one| one.part.clone());
        }
    }
}

fn measure(
    args: &Args,
    way: &LoginMethod,
    limit: Duration,
    stop: &(dyn Fn() -> bool + Sync),
    meter: &mut Meter,
    out: &mut Measured,
) -> Result<(), LoginError> {
    let person = match way.how {
        How::Ssh(..) => !args.command_only,
        _ => false,
    };
    let server = &way.watched;
    let started = crate::progress::now();
    let is_over = |budget: Nanos| started.elapsed() >= Duration::from(budget);
    for round in 1..=args.rounds {
        if round > 1 && args.budget.is_some_and(is_over) {
            break;
        }
        meter.say(format!("login {round} of {}", args.rounds));
        let mut login = way.login(server, limit, stop)?;
        if let (true, How::Ssh(target, _)) = (person, &way.how) {
            let shell = ssh::login(target, ssh::RemoteSession::Person, server, limit, stop);
            match shell {
                Ok(shell) => login = ssh::with_prompt(login, &shell),
                Err(LoginError::TimedOut { so_far, .. }) => {
                    // The command succeeded, but the interactive shell did not print its prompt.
                    out.logins.push(ssh::with_prompt(login, &so_far));
                    out.startup = lines(target, &LoginPart::Prompt, limit, stop, meter)?;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        out.logins.push(login);
    }
    if let How::Ssh(target, _) = &way.how {
        trace_start_up_files(target, limit, stop, meter, out)?;
        if person {
            meter.say("logins over a control socket".to_owned());
            // Refused if the server permits only one session per connection.
            if let Ok(dir) = tempfile::tempdir() {
                match ssh::control_master::time_logins(target, dir.path(), args.rounds, limit, stop)
                {
                    Ok(took) => out.control = took,
                    Err(LoginError::Interrupted) => return Err(LoginError::Interrupted),
                    Err(_) => {}
                }
            }
        }
    }
    let unwatched = way.watched.without_processes();
    for size in &args.many {
        meter.say(format!("{size} logins at once"));
        let crowd = concurrent_logins::at_once(*size, &|| way.login(&unwatched, limit, stop))?;
        out.crowds.push(crowd);
    }
    Ok(())
}

/// If a part of the login is slow and runs shell start-up files, measures the lines of these files.
fn trace_start_up_files(
    target: &ssh::SshTarget,
    limit: Duration,
    stop: &dyn Fn() -> bool,
    meter: &mut Meter,
    out: &mut Measured,
) -> Result<(), LoginError> {
    let parts = assay_login::summarize_parts(&out.logins);
    let whole = Nanos(parts.iter().map(|one| one.median.0).sum());
    for one in &parts {
        let reads = matches!(
            one.part,
            LoginPart::Prompt | LoginPart::Session | LoginPart::Logout
        );
        if reads && assay_login::is_wait(one.median, whole) {
            out.startup
                .extend(lines(target, &one.part, limit, stop, meter)?);
        }
    }
    Ok(())
}

fn lines(
    target: &ssh::SshTarget,
    part: &LoginPart,
    limit: Duration,
    stop: &dyn Fn() -> bool,
    meter: &mut Meter,
) -> Result<Vec<StartupLine>, LoginError> {
    meter.say("the lines of the start-up files".to_owned());
    startup::find_slowest_lines(target, part, limit, stop)
}

impl LoginMethod {
    /// Determines the server and those of its processes that run on this machine.
    fn new(service: Service, how: How) -> Self {
        let (server, user) = match &how {
            How::Ssh(target, _) => ssh_server(target),
            How::Mail(_, target, _) => (direct(&target.host, target.port), None),
            How::Http(ask) => (direct(ask.0.host(), ask.0.port()), None),
        };
        Self {
            service,
            watched: server.watched(service.kind()),
            how,
            server,
            user,
        }
    }

    fn login(
        &self,
        server: &watch::WatchedServer,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Login, LoginError> {
        match &self.how {
            How::Ssh(target, _) => {
                ssh::login(target, ssh::RemoteSession::Command, server, limit, stop)
            }
            How::Mail(protocol, target, user) => {
                mail::login(*protocol, target, user.as_ref(), server, limit, stop)
            }
            How::Http(ask) => {
                let (url, tls, request, status) = &**ask;
                http::login(url, tls.as_ref(), request, *status, server, limit, stop)
            }
        }
    }

    fn known(&self) -> ServerKnowledge {
        let user = self.user.as_deref();
        server_knowledge::of(self.service.kind(), &self.server, &self.watched, user)
    }
}

fn direct(host: &str, port: u16) -> server_knowledge::LoginServer {
    server_knowledge::LoginServer {
        host: host.to_owned(),
        port,
        proxied: false,
    }
}

/// Returns the server and the user from the effective ssh configuration.
fn ssh_server(target: &ssh::SshTarget) -> (server_knowledge::LoginServer, Option<String>) {
    let settings = target.effective();
    let value = |name: &str| {
        settings
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.clone())
    };
    let set = |name: &str| value(name).is_some_and(|value| value != "none");
    let server = server_knowledge::LoginServer {
        host: value("hostname").unwrap_or_else(|| target.host().to_owned()),
        port: value("port")
            .and_then(|port| port.parse().ok())
            .unwrap_or(22),
        proxied: set("proxycommand") || set("proxyjump"),
    };
    (server, value("user"))
}

impl Args {
    fn how(&self) -> anyhow::Result<How> {
        let trust = match self.insecure {
            true => Trust::Anything,
            false => Trust::System,
        };
        let protocol = match self.service {
            Service::Ssh => {
                let target = ssh::SshTarget::new(&self.target, &self.options)?;
                ensure!(
                    self.user.is_none(),
                    "--user is for mail: write the user of ssh as USER@HOST"
                );
                let Some(file) = &self.password_file else {
                    return Ok(How::Ssh(target, None));
                };
                password(file)?;
                // The ssh to the jump host would start the same program, which cannot tell who asks.
                let effective = target.effective();
                let jump = |(name, value): &&(String, String)| {
                    ["proxyjump", "proxycommand"].contains(&name.as_str()) && value != "none"
                };
                if let Some((name, value)) = effective.iter().find(jump) {
                    anyhow::bail!(
                        "--password-file does not work with {name} ({value}): the other host could ask for the \
                         password. Log in with a key, or connect without the jump host."
                    );
                }
                let dir = tempfile::tempdir()
                    .context("cannot make a directory for a login with a password")?;
                let target = target
                    .with_password(file, dir.path())
                    .context("cannot write a program that gives ssh the password")?;
                return Ok(How::Ssh(target, Some(dir)));
            }
            Service::Http => {
                let url = Url::parse(&self.target)
                    .map_err(|why| anyhow::anyhow!("{}: {why}", self.target))?;
                let headers = self
                    .headers
                    .iter()
                    .map(|one| header(one))
                    .collect::<anyhow::Result<Vec<_>>>()?;
                let request = Request::new(&Method::Get, &url, &headers, &[], false)
                    .map_err(anyhow::Error::msg)?;
                let tls = match url.is_tls() {
                    true => Some(Tls::new(&url, &trust, false)?),
                    false => None,
                };
                return Ok(How::Http(Box::new((url, tls, request, self.status))));
            }
            Service::Imap => mail::Protocol::Imap,
            Service::Smtp => mail::Protocol::Smtp,
        };
        let port = match (protocol, self.tls) {
            (mail::Protocol::Imap, false) => 143,
            (mail::Protocol::Imap, true) => 993,
            (mail::Protocol::Smtp, false) => 25,
            (mail::Protocol::Smtp, true) => 465,
        };
        // The rules of URLs: brackets around IPv6, ports up to 65535.
        let text = match self.target.contains(':') {
            true => format!("https://{}/", self.target),
            false => format!("https://{}:{port}/", self.target),
        };
        let url = Url::parse(&text)
            .map_err(|why| anyhow::anyhow!("{}: {why}; write it as HOST[:PORT]", self.target))?;
        let user = match (&self.user, &self.password_file) {
            (None, Some(_)) => bail!("--password-file needs --user for mail"),
            (Some(name), Some(file)) => Some(mail::User {
                name: name.clone(),
                password: password(file)?,
            }),
            _ => None,
        };
        let here = || {
            let addresses = url.resolve().unwrap_or_default();
            addresses.iter().all(assay_web::is_here)
        };
        ensure!(
            user.is_none() || self.tls || here(),
            "{}: refusing to send a password to another machine without TLS. Use --tls and its port (993, 465).",
            self.target
        );
        let target = mail::MailTarget {
            host: url.host().to_owned(),
            port: url.port(),
            tls: match self.tls {
                true => Some(Tls::new(&url, &trust, false)?),
                false => None,
            },
        };
        Ok(How::Mail(protocol, target, user))
    }
}

fn password(file: &Path) -> anyhow::Result<String> {
    let text = input::text(file, 64 << 10, "a password")?;
    let line = text.lines().next().unwrap_or_default();
    ensure!(
        !line.is_empty(),
        "cannot read a password from {}: its first line is empty",
        file.display()
    );
    Ok(line.to_owned())
}
