//! The generator process on a remote machine. It reads orders from standard input and executes them.

use super::{GeneratorOrder, Reached, Word};
use crate::server::ServerProcesses;
use crate::step::{Bench, Manner, Shape, measure};
use crate::target::Target;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which `stop` is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Reports that the servers were found, and carries out orders until the input ends or `stop` returns true. `machine`
/// identifies this machine; `speed` is the user's value for the speed of its interface, in bits per second.
///
/// # Errors
/// The output is closed.
pub fn generate(
    targets: &[Target],
    machine: Option<String>,
    speed: Option<f64>,
    input: impl BufRead + Send + 'static,
    out: &mut (dyn Write + Send),
    stop: &(dyn Fn() -> bool + Sync),
) -> io::Result<()> {
    let begin = Instant::now();
    let (tell, told) = channel();
    thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    let reached = |target: &Target| Reached {
        addresses: target.addresses.clone(),
        consent: target.consent,
        protocol: target.protocol(),
        streams: target.streams,
        remarks: target.remarks.clone(),
    };
    let ready = Word::Ready {
        targets: targets.iter().map(reached).collect(),
        machine,
    };
    say(out, &ready)?;
    while !stop() {
        let line = match told.recv_timeout(LOOK) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let word = match serde_json::from_str(&line) {
            Ok(GeneratorOrder::Clock) => Word::Clock(micros(begin, Instant::now())),
            Ok(GeneratorOrder::Step {
                shape,
                manner,
                at_us,
            }) if shape.target < targets.len() => {
                let target = &targets[shape.target];
                let late_us = wait(begin, at_us, stop);
                carry(target, speed, &manner, shape, late_us, out, stop)
            }
            Ok(GeneratorOrder::Step { .. }) => Word::Failed("there is no such server".to_owned()),
            Err(error) => Word::Failed(format!("it does not understand its order: {error}")),
        };
        say(out, &word)?;
    }
    Ok(())
}

fn say(out: &mut dyn Write, word: &Word) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

fn micros(begin: Instant, at: Instant) -> i64 {
    let since = at.saturating_duration_since(begin).as_micros();
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// Waits until `at_us` microseconds after `begin`. Returns how much later the wait ended, in microseconds.
fn wait(begin: Instant, at_us: i64, stop: &(dyn Fn() -> bool + Sync)) -> i64 {
    loop {
        let late = micros(begin, Instant::now()).saturating_sub(at_us);
        if late >= 0 || stop() {
            return late.max(0);
        }
        let left = Duration::from_micros(late.unsigned_abs());
        thread::sleep(left.min(LOOK));
    }
}

fn carry(
    target: &Target,
    speed: Option<f64>,
    manner: &Manner,
    shape: Shape,
    late_us: i64,
    out: &mut (dyn Write + Send),
    stop: &(dyn Fn() -> bool + Sync),
) -> Word {
    let server = match target.here {
        true => ServerProcesses::listening(&target.addresses[0]),
        false => ServerProcesses::Unknown("it is on another machine".to_owned()),
    };
    let bench = Bench::new(target, &server, speed);
    // The generator itself enforces the consent, too, whatever the order says.
    let shape = target.allowed(shape);
    let mut tell = |(answers, failures): (u64, u64), _: Duration| {
        // If this output fails, the final result fails as well and reports the error.
        let _ = say(out, &Word::Live(answers, failures));
    };
    match measure(&bench, manner, shape, stop, &mut tell) {
        Ok(step) => Word::Step {
            late_us,
            step: Box::new(step),
        },
        Err(error) => Word::Failed(error.to_string()),
    }
}
