//! Contains one module for each verb. A verb parses its arguments, calls the libraries and prints results.

pub mod advice;
pub mod cert;
pub mod changed;
pub mod check;
pub mod compare;
pub mod demo;
mod dev;
pub mod disks;
pub mod dups;
pub mod export;
pub mod facts;
pub mod fleet;
pub mod import;
pub mod lab;
pub mod lint;
pub mod login;
pub mod net;
mod overview;
pub mod pins;
pub mod plan;
pub mod pool;
pub mod probe;
pub mod report;
pub mod run;
pub mod runs;
mod serve;
pub mod show;
pub mod stack;
pub mod store;
pub mod study;
mod systemd_units;
pub mod trial;
pub mod tune;
mod version;
pub mod watch;
pub mod web;
pub mod why;

use crate::cli::Cli;
use crate::status::Status;

/// The verb that the user chose.
#[derive(clap::Subcommand)]
pub enum Verb {
    Run(run::Args),
    Login(login::Args),
    Runs(runs::Args),
    Show(show::Args),
    Compare(compare::Args),
    Report(report::Args),
    Export(export::Args),
    Import(import::Args),
    Lint(lint::Args),
    Facts(facts::Args),
    Disks(disks::Args),
    Advice(advice::Args),
    Check(check::Args),
    Fleet(fleet::Args),
    Changed(changed::Args),
    Watch(watch::Args),
    Dups(dups::Args),
    Plan(plan::Args),
    Stack(stack::Args),
    Trial(trial::Args),
    Tune(tune::Args),
    Pool(pool::Args),
    Store(store::Args),
    Serve(serve::Args),
    Study(study::Args),
    Probe(probe::Args),
    Pins(pins::Args),
    Cert(cert::Args),
    Web(web::Args),
    Why(why::Args),
    Net(net::Args),
    Lab(lab::Args),
    Demo(demo::Args),
    Version(version::Args),
    Dev(dev::Args),
}

/// Runs the verb of a command line.
pub fn dispatch(cli: Cli) -> anyhow::Result<Status> {
    let global = &cli.global;
    // An unsafe ASSAY_STATE is reported by every verb, not only by the first one that writes to it.
    if std::env::var_os("ASSAY_STATE").is_some() {
        crate::context::state_dir()?;
    }
    crate::open_changes::tell_at_start(&cli);
    if works_with_the_machine(cli.verb.as_ref()) {
        crate::sweep::at_start();
    }
    match cli.verb {
        Some(Verb::Run(args)) => run::run(&args, global),
        Some(Verb::Login(args)) => login::run(&args, global),
        Some(Verb::Runs(args)) => runs::run(&args, global),
        Some(Verb::Show(args)) => show::run(&args, global),
        Some(Verb::Compare(args)) => compare::run(&args, global),
        Some(Verb::Export(args)) => export::run(&args, global),
        Some(Verb::Advice(args)) => advice::run(&args, global),
        Some(Verb::Check(args)) => check::run(&args, global),
        Some(Verb::Fleet(args)) => fleet::run(&args, global),
        Some(Verb::Changed(args)) => changed::run(&args, global),
        Some(Verb::Watch(args)) => watch::run(&args, global),
        Some(Verb::Dups(args)) => dups::run(args),
        Some(Verb::Facts(args)) => facts::run(&args, global),
        Some(Verb::Disks(args)) => disks::run(&args, global),
        Some(Verb::Lint(args)) => lint::run(&args),
        Some(Verb::Import(args)) => import::run(&args, global),
        Some(Verb::Report(args)) => report::run(&args, global),
        Some(Verb::Plan(args)) => plan::run(&args),
        Some(Verb::Stack(args)) => stack::run(&args, global),
        Some(Verb::Study(args)) => study::run(&args, global),
        Some(Verb::Web(args)) => web::run(&args, global),
        Some(Verb::Why(args)) => why::run(&args, global),
        Some(Verb::Net(args)) => net::run(&args, global),
        Some(Verb::Trial(args)) => trial::run(&args, global),
        Some(Verb::Tune(args)) => tune::run(&args, global),
        Some(Verb::Store(args)) => store::run(&args, global),
        Some(Verb::Serve(args)) => serve::run(&args, global),
        Some(Verb::Pool(args)) => pool::run(&args, global),
        Some(Verb::Probe(args)) => probe::run(&args, global),
        Some(Verb::Pins(args)) => pins::run(&args, global),
        Some(Verb::Cert(args)) => cert::run(&args, global),
        Some(Verb::Lab(args)) => lab::run(args, global),
        Some(Verb::Version(args)) => version::run(&args),
        Some(Verb::Demo(args)) => demo::run(&args, global),
        Some(Verb::Dev(args)) => dev::run(&args),
        None => overview::run(global),
    }
}

/// Returns whether the verb works with the machine. The other verbs only compute, or read stored results.
fn works_with_the_machine(verb: Option<&Verb>) -> bool {
    match verb {
        None
        | Some(
            Verb::Run(_)
            | Verb::Login(_)
            | Verb::Trial(_)
            | Verb::Tune(_)
            | Verb::Stack(_)
            | Verb::Study(_)
            | Verb::Lab(_)
            | Verb::Disks(_)
            | Verb::Dups(_)
            | Verb::Facts(_),
        ) => true,
        Some(
            Verb::Runs(_)
            | Verb::Show(_)
            | Verb::Compare(_)
            | Verb::Report(_)
            | Verb::Export(_)
            | Verb::Import(_)
            | Verb::Lint(_)
            | Verb::Advice(_)
            | Verb::Check(_)
            | Verb::Fleet(_)
            | Verb::Changed(_)
            | Verb::Watch(_)
            | Verb::Plan(_)
            | Verb::Pool(_)
            | Verb::Store(_)
            | Verb::Serve(_)
            | Verb::Demo(_)
            | Verb::Version(_)
            | Verb::Dev(_)
            | Verb::Probe(_)
            | Verb::Pins(_)
            | Verb::Cert(_)
            | Verb::Web(_)
            | Verb::Why(_)
            | Verb::Net(_),
        ) => false,
    }
}
