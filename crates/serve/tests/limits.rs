//! Tests the answers to hostile and broken clients, and the pages without a store.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

#[path = "site/test_server.rs"]
mod test_server;

use assay_serve::{ServeError, Server};
use assay_store::Store;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use test_server::{TestServer, fill_hostile, options};

fn empty() -> TestServer {
    TestServer::start(|_, _| {})
}

#[test]
fn without_a_store_every_page_says_how_to_begin() {
    let server = empty();
    for path in [
        "/",
        "/machines",
        "/runs",
        "/trials",
        "/figures",
        "/advice",
        "/about",
        "/metrics",
        "/api/v1/runs",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(
            !path.starts_with("/runs") || answer.body.contains("class=\"empty\""),
            "{path}"
        );
    }
    for path in [
        "/runs/1",
        "/trials/last",
        "/machines/x",
        "/advice/nothing",
        "/compare?run=1",
        "/api/v1/runs/1",
    ] {
        let status = server.get(path).status;
        assert!(
            status == 404 || (path.starts_with("/compare") && status == 400),
            "{path}: {status}"
        );
    }
    assert!(!server.store().exists(), "looking makes no store");
}

#[test]
fn headers_forbid_what_no_page_needs() {
    let server = empty();
    for path in ["/", "/nowhere", "/api/v1/runs"] {
        let answer = server.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'self'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    let page = server.get("/").body;
    let style = page
        .split("href=\"/assets/site-")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let asset = server.get(&format!("/assets/site-{style}"));
    assert_eq!(
        (asset.status, asset.header("content-type")),
        (200, Some("text/css; charset=utf-8"))
    );
    assert!(asset.header("cache-control").unwrap().contains("immutable"));
    let packed = server.get_with("/advice", "Accept-Encoding: br, gzip\r\n");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
}

#[test]
fn attack_hosts_methods_and_paths_get_short_answers() {
    let server = empty();
    let host = |host: &str| {
        server
            .send(&format!(
                "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            ))
            .status
    };
    for good in [
        "localhost",
        "LOCALHOST:7878",
        "127.0.0.1:1",
        "[::1]:7878",
        "box.example",
        "10.0.0.7",
    ] {
        assert_eq!(host(good), 200, "{good}");
    }
    for bad in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "a b",
        "box.example@x",
    ] {
        assert!(matches!(host(bad), 400 | 421), "{bad}: {}", host(bad));
    }
    let twice =
        "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert!(matches!(server.send(twice).status, 400 | 421));
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        let request = format!(
            "{method} /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(server.send(&request).status, 405, "{method}");
    }
    let head = server.send("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(head.status == 200 && head.body.is_empty());
    for path in [
        "/../../etc/passwd",
        "/assets/../../../etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/runs/..%2f..%2fx",
        "/machines/%2e%2e",
        "/assets/%00",
        "//evil.example/",
    ] {
        let answer = server.get(path);
        assert!(
            matches!(answer.status, 400 | 404),
            "{path}: {}",
            answer.status
        );
        assert!(!answer.body.contains("root:"), "{path}");
    }
    let long = server.get(&format!("/runs?plan={}", "x".repeat(10_000)));
    assert_eq!(long.status, 414);
    let longer = server.get(&format!("/runs?plan={}", "x".repeat(200_000)));
    assert!(
        matches!(longer.status, 0 | 400 | 414 | 431),
        "{}",
        longer.status
    );
    let many: String = (0..2_000).map(|n| format!("&a{n}=1")).collect();
    assert!(matches!(
        server.get(&format!("/runs?{}", &many[..7_000])).status,
        200
    ));
    for garbage in [
        "\0\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        "SSH-2.0-x\r\n",
        "GET / HTTP/9.9\r\n\r\n",
    ] {
        assert!(
            matches!(server.send(garbage).status, 0 | 400 | 505),
            "{garbage:?}"
        );
    }
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn attack_a_thousand_silent_clients_shut_nobody_out() {
    let server = empty();
    let silent: Vec<_> = (0..1_000).map(|_| server.connect()).collect();
    for stream in silent.iter().step_by(3) {
        let mut stream = stream;
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHo");
    }
    assert_eq!(server.get("/").status, 200);
    // They are sent away after a while; this one at least sees its end.
    let mut last = &silent[999];
    let mut bytes = Vec::new();
    let read = last.read_to_end(&mut bytes);
    assert!(read.is_ok(), "{read:?}");
    assert_eq!(server.get("/about").status, 200);
}

#[test]
fn attack_names_are_text_on_every_page() {
    let server = TestServer::start(fill_hostile);
    for path in [
        "/",
        "/machines",
        "/runs",
        "/figures",
        "/runs/last",
        "/runs/1?against=2",
        "/observations",
        "/metrics",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        for part in ["<script>window", "<img src=x", "\u{202e}", "\u{1b}"] {
            // In plain text, markup is text.
            let is_text = path == "/metrics" && part.starts_with('<');
            assert!(
                is_text || !answer.body.contains(part),
                "{path} contains {part:?}"
            );
        }
        let is_list = path.matches('/').count() == 1 && path != "/metrics";
        assert!(
            !is_list || answer.body.len() < 300_000,
            "{path}: {} bytes",
            answer.body.len()
        );
    }
    // Each observation of each verb has its page, which is bounded, and so is its document.
    let list = server.get("/observations").body;
    let mut links = test_server::links(&list);
    links.retain(|link| link.starts_with("/observations/"));
    assert_eq!(links.len(), 3 * test_server::hostile_names().len());
    for link in links {
        let page = server.get(&link);
        assert_eq!(page.status, 200, "{link}: {}", page.body);
        for part in ["<script>window", "<img src=x", "\u{202e}", "\u{1b}"] {
            assert!(!page.body.contains(part), "{link} contains {part:?}");
        }
        let document = server.get(&format!("/api/v1{link}"));
        assert_eq!(document.status, 200, "{link}");
        for answer in [page, document] {
            let bytes = answer.body.len();
            assert!(bytes < 300_000, "{link}: {bytes} bytes");
        }
    }
    // Every machine with a name that fits into an address has its page.
    let page = server.get("/machines").body;
    let mut links = test_server::links(&page);
    links.retain(|link| link.starts_with("/machines/"));
    links.dedup();
    assert!(links.len() >= 4, "{links:?}");
    for link in links {
        assert_eq!(server.get(&link).status, 200, "{link}");
    }
}

#[test]
fn a_token_opens_the_pages_and_does_not_stay_in_the_address() {
    let token = "0123456789abcdef0123456789abcdef";
    let server =
        TestServer::start_with(|_, _| {}, |options| options.token = Some(token.to_owned()));
    let closed = server.get("/runs");
    assert_eq!(closed.status, 401);
    assert!(
        !closed.body.contains("href=\"/runs\""),
        "nothing of the site is shown"
    );
    assert_eq!(server.get("/runs?token=wrong").status, 401);
    assert_eq!(
        server
            .get_with("/runs", "Authorization: Bearer nothing\r\n")
            .status,
        401
    );
    assert_eq!(
        server
            .get_with("/metrics", &format!("Authorization: Bearer {token}\r\n"))
            .status,
        200
    );
    let signed = server.get(&format!("/runs?plan=a&token={token}"));
    assert_eq!(
        (signed.status, signed.header("location")),
        (303, Some("/runs?plan=a"))
    );
    let cookie = signed.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && !cookie.contains(token),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(
        server
            .get_with("/runs", &format!("Cookie: a=b; {cookie}\r\n"))
            .status,
        200
    );
    assert_eq!(
        server
            .get_with("/runs", &format!("Cookie: {cookie}x\r\n"))
            .status,
        401
    );
    let style = closed
        .body
        .split("href=\"/assets/")
        .nth(2)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert_eq!(server.get(&format!("/assets/{style}")).status, 200);
}

#[test]
fn an_address_that_cannot_be_used_is_an_error_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = Server::bind(taken.local_addr().unwrap(), options(dir.path()))
        .err()
        .unwrap();
    assert!(
        matches!(error, ServeError::Listen { .. }) && error.to_string().contains("--listen"),
        "{error}"
    );
    let error = Server::bind(([0, 0, 0, 0], 0).into(), options(dir.path()))
        .err()
        .unwrap();
    assert!(matches!(error, ServeError::NoToken { .. }), "{error}");
    let short = |options: &mut assay_serve::SiteOptions| options.token = Some("short".to_owned());
    let mut asked = options(dir.path());
    short(&mut asked);
    let error = Server::bind(([0, 0, 0, 0], 0).into(), asked).err().unwrap();
    assert!(matches!(error, ServeError::ShortToken { .. }), "{error}");
}

#[test]
fn a_running_measurement_is_followed_to_its_end() {
    let server = empty();
    let mut store = Store::open(&server.store()).unwrap();
    let (mut run, samples) = assay_serve::demo_fleet::sample_run(jiff::Timestamp::now());
    run.state = assay_model::run::RunState::Running;
    run.ended = None;
    store.create_run(&mut run).unwrap();
    store.add_sample(run.id, &samples[0]).unwrap();
    let page = server.get(&format!("/runs/{}", run.id)).body;
    assert!(
        page.contains(&format!(
            "data-live=\"&#x2f;live&#x2f;runs&#x2f;{}\"",
            run.id
        )),
        "{page}"
    );
    let mut stream = server.connect();
    let request = format!(
        "GET /live/runs/{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        run.id
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut seen = String::new();
    let mut bytes = [0; 4096];
    while !seen.contains("event: progress") {
        let read = stream.read(&mut bytes).unwrap();
        assert!(read > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    assert!(
        seen.contains("text/event-stream") && seen.contains("\"done\":1"),
        "{seen}"
    );
    for sample in &samples[1..] {
        store.add_sample(run.id, sample).unwrap();
    }
    store
        .finish(
            run.id,
            assay_model::run::RunState::Complete,
            jiff::Timestamp::now(),
        )
        .unwrap();
    stream.read_to_string(&mut seen).unwrap();
    assert!(
        seen.contains("event: end") && seen.contains(&format!("\"done\":{}", samples.len())),
        "{seen}"
    );
    assert_eq!(server.get("/live/runs/99").status, 404);
}
