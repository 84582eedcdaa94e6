use super::*;

fn figure(name: &str, output: &str) -> f64 {
    let wanted = PrintedFigure {
        name: name.to_owned(),
        pattern: None,
    };
    find_figure(&wanted, output).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn is_near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-9,
        "{found} is not {expected}"
    );
}

const PGBENCH: &str = "\
pgbench (15.8 (Debian 15.8-0+deb12u1))
transaction type: <builtin: select only>
scaling factor: 1
number of clients: 4
duration: 5 s
number of transactions actually processed: 61234
number of failed transactions: 0 (0.000%)
latency average = 0.326 ms
latency stddev = 0.412 ms
initial connection time = 9.104 ms
tps = 12250.123456 (without initial connection time)
";

const WRK: &str = "\
Running 10s test @ http://127.0.0.1:8080/
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us    0.89ms  12.92ms   93.69%
    Req/Sec    56.20k     8.07k   62.00k    86.54%
  Latency Distribution
     50%  250.00us
     99%    5.21ms
  22464657 requests in 30.00s, 17.76GB read
Requests/sec: 748868.53
Transfer/sec:    606.33MB
";

const AB: &str = "\
Server Software:        nginx/1.22.1
Document Length:        615 bytes
Time taken for tests:   0.123 seconds
Failed requests:        0
Requests per second:    8130.08 [#/sec] (mean)
Time per request:       1.230 [ms] (mean)
Time per request:       0.123 [ms] (mean, across all concurrent requests)
Transfer rate:          6512.48 [Kbytes/sec] received

Percentage of the requests served within a certain time (ms)
  50%      1
 100%      5 (longest request)
";

const SYSBENCH: &str = "\
SQL statistics:
    queries performed:
        read:                            113680
    transactions:                        8120   (811.74 per sec.)
    queries:                             162400 (16234.83 per sec.)

General statistics:
    total time:                          10.0021s
    total number of events:              8120

Latency (ms):
         min:                                    1.92
         avg:                                    4.92
         95th percentile:                        8.13
";

const REDIS: &str = "SET: 74626.87 requests per second, p50=0.335 msec\n\
GET: 81967.21 requests per second, p50=0.311 msec\n";

#[test]
fn load_generators_are_read_by_the_names_that_they_print() {
    is_near(figure("tps", PGBENCH), 12_250.123_456);
    is_near(figure("latency average", PGBENCH), 0.326e-3);
    is_near(figure("Requests/sec", WRK), 748_868.53);
    is_near(figure("latency", WRK), 635.91e-6);
    is_near(figure("99%", WRK), 5.21e-3);
    is_near(figure("transfer/sec", WRK), 606.33e6);
    is_near(figure("requests-per-second", AB), 8130.08);
    is_near(figure("Time per request", AB), 1.23e-3);
    is_near(figure("100%", AB), 5.0);
    is_near(figure("transfer rate", AB), 6512.48e3);
    is_near(figure("transactions per sec", SYSBENCH), 811.74);
    is_near(figure("latency.avg", SYSBENCH), 4.92e-3);
    is_near(figure("95th percentile", SYSBENCH), 8.13e-3);
    is_near(figure("total time", SYSBENCH), 10.0021);
    is_near(figure("SET", REDIS), 74_626.87);
    is_near(figure("get.p50", REDIS), 0.311e-3);
    is_near(
        figure("GET", "\"test\",\"rps\"\n\"GET\",\"81967.21\",\"0.4\"\n"),
        81_967.21,
    );
}

#[test]
fn documents_and_plain_assignments_are_read() {
    let fio = r#"fio: note
{"fio version":"fio-3.33","jobs":[{"jobname":"a","read":{"total_ios":10,"iops":812.5,"bw_bytes":3328000,
"clat_ns":{"mean":1200.5,"percentile":{"99.000000":5000,"99.900000":7000}}},
"write":{"total_ios":0,"iops":0.0}},{"jobname":"b","read":{"total_ios":5,"iops":100.0,"bw_bytes":409600}}]}"#;
    is_near(figure("read.iops", fio), 912.5);
    is_near(figure("iops", fio), 912.5);
    is_near(figure("read.p99", fio), 5e-6);
    is_near(figure("read.p99.9", fio), 7e-6);
    is_near(figure("summary.rps", r#"{"summary":{"rps":12.5}}"#), 12.5);
    for text in [
        "speed=1.5e3",
        "speed = 1500",
        "Speed: 1,500 ops",
        "speed\t1500",
        "a: b\nspeed: 1.5k",
    ] {
        is_near(figure("speed", text), 1500.0);
    }
}

#[test]
fn a_missing_figure_is_named_beside_those_that_are_printed() {
    let wanted = |name: &str, pattern: Option<&str>| PrintedFigure {
        name: name.to_owned(),
        pattern: pattern.map(str::to_owned),
    };
    let error = find_figure(&wanted("qps", None), PGBENCH).unwrap_err();
    assert!(
        error.contains("qps") && error.contains("tps") && error.contains("latency-average"),
        "{error}"
    );
    assert!(find_figure(&wanted("tps", None), "done\n").is_err());
    assert!(find_figure(&wanted("tps", None), "tps = 0").is_err());
    assert!(find_figure(&wanted("failed requests", None), AB).is_err());
    is_near(
        find_figure(
            &wanted("time", Some(r"took ([0-9.]+) s")),
            "it took 2.5 s\n",
        )
        .unwrap(),
        2.5,
    );
    for wrong in ["took", "(", "took (x)", "took ([a-z]+)"] {
        assert!(
            find_figure(&wanted("time", Some(wrong)), "took nothing").is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn lines_around_a_document_and_numbers_in_its_strings_are_figures() {
    let output = "warm-up: 3 s\n{\"lat\": \"900us\", \"sent\": \"12.5 MB/s\", \"at\": \"2026-11-28\"}\n\
                  mean latency: 250 us\n{\"done\": {\"rps\": 7}}\n";
    let found = list_figures(output);
    let of = |name: &str| {
        found
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    };
    assert_eq!(of("warm-up"), Some(3.0));
    assert_eq!(of("lat"), Some(900.0 * 1e-6));
    assert_eq!(of("sent"), Some(12.5e6));
    assert_eq!(of("at"), None);
    assert_eq!(of("mean-latency"), Some(250.0 * 1e-6));
    assert_eq!(of("done.rps"), Some(7.0));
}
