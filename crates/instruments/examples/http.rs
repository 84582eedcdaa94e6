//! The HTTP load by hand: `http URL CONNECTIONS SECONDS [close]`. Prints requests per second,
//! latencies and the generator's CPU time for 100,000 requests.
#![allow(clippy::disallowed_methods, reason = "a program to try a load with")]

use assay_instruments::http::{Request, run};
use assay_instruments::{Cancel, Timing};
use assay_model::Nanos;
use assay_model::sample::Operation;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, seconds, rest @ ..] = &arguments[..] else {
        eprintln!("usage: http URL CONNECTIONS SECONDS [close]");
        std::process::exit(2);
    };
    let request = Request {
        url: url.clone(),
        connections: connections.parse().unwrap_or(1),
        keep_alive: rest.is_empty(),
        timing: Timing {
            washout: Nanos(200_000_000),
            runtime: Nanos::from_secs_f64(seconds.parse().unwrap_or(3.0)),
            limit: Nanos(10_000_000_000),
        },
    };
    let measured = match run(&request, &Cancel::default()) {
        Ok(measured) => measured,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    for errors in &measured.errors {
        eprintln!("{} × {}: {}", errors.count, errors.kind, errors.first);
    }
    let Some(io) = measured.worker.of(Operation::Request) else {
        return;
    };
    let percentile = |p| Nanos(io.lat.percentile(p).unwrap_or(0));
    let share = io.runtime.as_secs_f64() / measured.wall.as_secs_f64();
    println!(
        "{:.0} requests/s, p50 {}, p90 {}, p99 {}, max {}; {:.2} CPU s per 100,000",
        io.per_s,
        percentile(50.0),
        percentile(90.0),
        percentile(99.0),
        Nanos(io.lat.max),
        measured.cpu.as_secs_f64() * share / io.count as f64 * 1e5,
    );
}
