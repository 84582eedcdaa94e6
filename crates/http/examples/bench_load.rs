//! One load of our own for `bench/load/run`: prints figures as `name value`, one a line.
//!
//!     bench_load URL closed|RATE CONNECTIONS SECONDS [full|resume]     the last for https://, a new
//!                                                          connection for each request
//!     bench_load URL closed|RATE CONNECTIONS SECONDS h2 STREAMS        HTTP/2, so many on each connection

use assay_http::{HttpLoad, Live, Method, Request, Tls, Trust, Url, run};
use assay_model::web::{Pace, Protocol};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, pace, connections, seconds, rest @ ..] = &arguments[..] else {
        return Err(
            "bench_load URL closed|RATE CONNECTIONS SECONDS [full|resume|h2 STREAMS]".into(),
        );
    };
    let url = Url::parse(url)?;
    let tls = match url.is_tls() {
        true => {
            let resume = rest.first().is_some_and(|how| how == "resume");
            Some(Tls::new(&url, &Trust::Anything, resume)?)
        }
        false => None,
    };
    let streams: Option<u32> = match rest {
        [how, streams] if how == "h2" => Some(streams.parse()?),
        _ => None,
    };
    let protocol = match streams {
        Some(_) => Protocol::Http2,
        None => Protocol::Http1,
    };
    let request = match protocol {
        Protocol::Http1 => Request::new(&Method::Get, &url, &[], b"", rest.is_empty())?,
        Protocol::Http2 => Request::http2(&Method::Get, &url, &[], b"")?,
    };
    let load = HttpLoad {
        requests: vec![request],
        shuffled: false,
        addresses: url.resolve()?,
        tls: tls.map(|tls| tls.speaking(protocol)),
        protocol,
        streams: streams.unwrap_or(1),
        connections: connections.parse()?,
        requests_per_connection: None,
        pace: match &pace[..] {
            "closed" => Pace::Closed,
            rate => Pace::Constant {
                per_s: rate.parse()?,
            },
        },
        listed: [].into(),
        washout: Duration::from_millis(200),
        window: Duration::from_secs_f64(seconds.parse()?),
        limit: Duration::from_secs(10),
        threads: 1,
        seed: 1,
    };
    let measured = run(&load, &Live::default(), &|| false)?;
    let show = |name: &str, value: f64| println!("{name} {value}");
    show("answers", measured.answers as f64);
    show("seconds", measured.window.0 as f64 / 1e9);
    show("cpu", measured.cpu.0 as f64 / 1e9);
    show("failed", measured.failed() as f64);
    show("resumed", measured.resumed as f64);
    for percent in [50.0, 90.0, 99.0] {
        for (name, histogram) in [
            ("latency", &measured.latency),
            ("service", &measured.service),
            ("late", &measured.lateness),
        ] {
            let nanos = histogram.percentile(percent).unwrap_or(0);
            show(&format!("{name}_{percent}_ms"), nanos as f64 / 1e6);
        }
    }
    Ok(())
}
