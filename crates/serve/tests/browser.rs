//! Tests the pages in Chromium. They must load without errors, must not overflow at three widths, and must show names
//! that contain markup as text. Forms must work with and without the script. `ASSAY_PICTURES=DIR` stores pictures of
//! the pages.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

#[path = "../../assay/tests/common/browser.rs"]
#[allow(dead_code, reason = "pictures of a phone are taken elsewhere")]
mod browser;
#[path = "site/test_server.rs"]
mod test_server;

use browser::Browser;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use test_server::TestServer;

/// Width and height of a screen, a tablet and a phone.
const SIZES: [(u32, u32); 3] = [(1400, 900), (800, 1000), (390, 844)];

/// Returns a script that is true if no part of the page is wider than the screen, except in boxes that scroll. The
/// width is the width of the emulated screen, because a phone zooms out of a page that is too wide and enlarges
/// `innerWidth`.
fn fits(width: u32) -> String {
    format!("document.documentElement.scrollWidth <= {width}")
}

/// Returns a script that lists the elements which are too wide, for the message of a failure.
fn sticks_out(width: u32) -> String {
    format!(
        "[...document.querySelectorAll('body *')].filter(e => \
         (e.getBoundingClientRect().right > {width} + 1 || (getComputedStyle(e).overflowX == 'visible' && \
         e.clientWidth > 0 && e.scrollWidth > Math.max(e.clientWidth, {width}))) && \
         !e.closest('.wide, .picture, pre, nav ul')) \
         .slice(0, 5).map(e => e.tagName + '.' + e.getAttribute('class') + ' ' + e.textContent.slice(0, 60)).join('; ')"
    )
}

/// Pages of the demonstration fleet, one of every kind, each with a name for its picture.
const PAGES: [(&str, &str); 25] = [
    ("overview", "/"),
    ("machines", "/machines"),
    ("machine", "/machines/db1"),
    ("machine-findings", "/machines/web2"),
    ("runs", "/runs"),
    ("run", "/runs/last"),
    ("compare", "/runs/52?against=27"),
    ("figures", "/figures"),
    (
        "figure",
        "/figures?machine=db1&plan=nightly&workload=randread-4k-qd32&target=%2Fvar%2Flib%2Fpostgresql&metric=iops",
    ),
    ("trials", "/trials"),
    ("trial", "/trials/2"),
    ("tuning", "/tuning"),
    ("session", "/tuning/last"),
    ("observations", "/observations"),
    ("observation-1", "/observations/1"),
    ("observation-2", "/observations/2"),
    ("observation-3", "/observations/3"),
    ("catalogue", "/advice?q=scheduler"),
    ("advice", "/advice/io-scheduler"),
    ("plan", "/plan"),
    ("duplicates", "/duplicates"),
    ("actions", "/actions"),
    ("about", "/about"),
    ("missing", "/nowhere"),
    ("refused", "/runs?page=99"),
];

fn start() -> Option<Browser> {
    Browser::start(&|mut command: Command| command.spawn().unwrap())
}

fn resize(browser: &mut Browser, session: &str, (width, height): (u32, u32)) {
    let size =
        json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
    browser.call("Emulation.setDeviceMetricsOverride", size, Some(session));
}

fn go(browser: &mut Browser, session: &str, url: &str) {
    browser.call("Page.navigate", json!({ "url": url }), Some(session));
    let path = url.split('#').next().unwrap_or_default();
    let loaded =
        format!("document.readyState == 'complete' && location.href.split('#')[0] == {path:?}");
    browser.until(session, &loaded);
}

/// Stores a picture of the whole page if `ASSAY_PICTURES` is set.
fn keep_picture(browser: &mut Browser, session: &str, name: &str) {
    let Some(dir) = std::env::var_os("ASSAY_PICTURES").map(PathBuf::from) else {
        return;
    };
    let taken = browser.call(
        "Page.captureScreenshot",
        json!({ "format": "png" }),
        Some(session),
    );
    let file = dir.join(format!("{name}.b64"));
    std::fs::write(&file, taken["data"].as_str().unwrap()).unwrap();
    let script = "base64 -d \"$0\" > \"${0%.b64}.png\" && rm \"$0\"";
    assert!(
        Command::new("sh")
            .args(["-c", script])
            .arg(&file)
            .status()
            .unwrap()
            .success()
    );
}

fn scheme(browser: &mut Browser, session: &str, name: &str) {
    let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": name }] });
    browser.call("Emulation.setEmulatedMedia", features, Some(session));
}

#[test]
fn pages_fit_every_width_and_follow_what_is_typed() {
    let Some(mut browser) = start() else { return };
    let server = TestServer::start_demo();
    let base = format!("http://{}", server.address);
    let (_, session) = browser.open("about:blank");
    browser.call("Page.enable", json!({}), Some(&session));
    let mut out = Vec::new();
    for (name, path) in PAGES {
        go(&mut browser, &session, &format!("{base}{path}"));
        for size in SIZES {
            resize(&mut browser, &session, size);
            if browser.evaluate(&session, &fits(size.0)) != Value::Bool(true) {
                let parts = browser.evaluate(&session, &sticks_out(size.0));
                out.push(format!("{path} at {}: {parts}", size.0));
            }
            keep_picture(&mut browser, &session, &format!("{name}-{}", size.0));
        }
    }
    assert!(out.is_empty(), "{}", out.join("\n"));
    if std::env::var_os("ASSAY_PICTURES").is_some() {
        scheme(&mut browser, &session, "dark");
        for (name, path) in PAGES {
            go(&mut browser, &session, &format!("{base}{path}"));
            for size in [SIZES[0], SIZES[2]] {
                resize(&mut browser, &session, size);
                keep_picture(&mut browser, &session, &format!("{name}-{}-dark", size.0));
            }
        }
        scheme(&mut browser, &session, "light");
    }
    // A finding of the landing page leads to its evidence.
    resize(&mut browser, &session, SIZES[0]);
    go(&mut browser, &session, &format!("{base}/"));
    browser.evaluate(
        &session,
        "document.querySelector('.attention a.headline[href*=\"#finding-\"]').click()",
    );
    browser.until(
        &session,
        "document.querySelector('article.finding:target details') !== null",
    );
    // Choosing two runs and pressing the button compares them.
    go(&mut browser, &session, &format!("{base}/runs"));
    browser.evaluate(
        &session,
        "[...document.querySelectorAll('input[name=run]')].slice(0, 2).forEach(box => box.click()); \
         document.querySelector('.act button').click()",
    );
    browser.until(
        &session,
        "location.pathname.startsWith('/runs/') && document.querySelector('#against') !== null",
    );
    // The catalogue follows what is typed, by real key presses; `/` leads to the search.
    go(&mut browser, &session, &format!("{base}/advice"));
    let all = browser.evaluate(&session, "document.querySelectorAll('.advice li').length");
    browser.evaluate(
        &session,
        "document.querySelector('.filter input[type=search]').focus()",
    );
    browser.call(
        "Input.insertText",
        json!({ "text": "swappiness" }),
        Some(&session),
    );
    browser.until(
        &session,
        &format!(
            "location.search.includes('swappiness') && \
        document.querySelectorAll('.advice li').length < {all}"
        ),
    );
    // The keyboard alone: the first Tab reaches the link that skips the navigation.
    go(&mut browser, &session, &format!("{base}/"));
    let key = |kind: &str| json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
    browser.call("Input.dispatchKeyEvent", key("rawKeyDown"), Some(&session));
    browser.call("Input.dispatchKeyEvent", key("keyUp"), Some(&session));
    browser.until(&session, "document.activeElement.className == 'skip'");
    // Without the script, the same form sends the same address.
    let filtered = server.get("/advice?q=swappiness&domain=&applies=");
    assert!(filtered.status == 200 && filtered.body.contains("swappiness"));
}

#[test]
fn attack_names_that_are_markup_run_no_script() {
    let Some(mut browser) = start() else { return };
    let server = TestServer::start(test_server::fill_hostile);
    let base = format!("http://{}", server.address);
    let (_, session) = browser.open("about:blank");
    browser.call("Page.enable", json!({}), Some(&session));
    let mut observations = test_server::links(&server.get("/observations").body);
    observations.retain(|link| link.starts_with("/observations/"));
    assert_eq!(observations.len(), 3 * test_server::hostile_names().len());
    for path in [
        "/",
        "/machines",
        "/runs",
        "/figures",
        "/trials",
        "/observations",
        "/advice?q=%3Cscript%3E",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain((1..=test_server::hostile_names().len()).map(|run| format!("/runs/{run}")))
    .chain(observations)
    {
        go(&mut browser, &session, &format!("{base}{path}"));
        for size in [SIZES[0], SIZES[2]] {
            resize(&mut browser, &session, size);
            assert_eq!(
                browser.evaluate(&session, "String(window.hacked)"),
                "undefined",
                "{path}"
            );
            let fits = browser.evaluate(&session, &fits(size.0));
            let out = browser.evaluate(&session, &sticks_out(size.0));
            assert!(fits == Value::Bool(true), "{path} at {}: {out}", size.0);
            // A title that is a word of a megabyte takes no hundreds of screens.
            let title = "document.querySelector('h1').getBoundingClientRect().height";
            let height = browser.evaluate(&session, title);
            assert!(
                height.as_f64().unwrap() < 500.0,
                "{path} at {}: {height}",
                size.0
            );
        }
        keep_picture(
            &mut browser,
            &session,
            &format!("hostile{}", path.replace('/', "-").replace(['?', '%'], "_")),
        );
    }
    // The page of a machine whose name is markup, by a click.
    resize(&mut browser, &session, SIZES[0]);
    go(&mut browser, &session, &format!("{base}/machines"));
    browser.evaluate(
        &session,
        "document.querySelector('.machines a[href*=\"script\"]').click()",
    );
    browser.until(
        &session,
        "location.pathname.startsWith('/machines/') && document.querySelector('h1') !== null",
    );
    assert_eq!(
        browser.evaluate(&session, "String(window.hacked)"),
        "undefined"
    );
    // What the script of the site itself would do with an answer: nothing of the policy is loosened for it.
    let inline = "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; \
                  document.body.append(s); return String(window.hacked) })()";
    assert_eq!(
        browser.evaluate(&session, inline),
        "undefined",
        "the policy allows an inline script"
    );
}
