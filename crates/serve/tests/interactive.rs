//! Tests interactions with the pages in Chromium. A disk is dragged, and moved by keyboard; a history is zoomed.
//! axe-core must find no accessibility barrier on any page, in light and dark.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

#[path = "../../assay/tests/common/browser.rs"]
#[allow(dead_code, reason = "pictures of a phone are taken elsewhere")]
mod browser;
#[path = "site/test_server.rs"]
mod test_server;

use assay_serve::ActionOptions;
use browser::Browser;
use serde_json::{Value, json};
use std::process::Command;
use test_server::TestServer;

/// axe-core 4.14.1 by Deque Systems, MPL-2.0. It is only used in this test.
const AXE: &str = include_str!("site/axe.min.js");

/// Script that returns the accessibility violations as text; empty without violations.
const RUN_AXE: &str = "axe.run(document, { resultTypes: ['violations'] }).then(found => \
    found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html.slice(0, 120)).join(' | ')) \
    .join('; '))";

/// Address of a figure over time that contains a shift.
const HISTORY: &str = "/figures?machine=db1&plan=nightly&workload=randread-4k-qd32&\
    target=%2Fvar%2Flib%2Fpostgresql&metric=iops";

struct Tab {
    browser: Browser,
    session: String,
    base: String,
}

impl Tab {
    fn open(server: &TestServer) -> Option<Self> {
        let mut browser = Browser::start(&|mut command: Command| command.spawn().unwrap())?;
        let (_, session) = browser.open("about:blank");
        browser.call("Page.enable", json!({}), Some(&session));
        let size = json!({ "width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", size, Some(&session));
        Some(Self {
            browser,
            session,
            base: format!("http://{}", server.address),
        })
    }

    fn call(&mut self, method: &str, params: Value) {
        self.browser.call(method, params, Some(&self.session));
    }

    fn until(&mut self, expression: &str) {
        self.browser.until(&self.session, expression);
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        self.browser.evaluate(&self.session, expression)
    }

    fn go(&mut self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.call("Page.navigate", json!({ "url": url }));
        self.until(&format!(
            "document.readyState == 'complete' && location.href == {url:?}"
        ));
    }

    /// Returns the middle of an element, moved to the side by the fraction `share` of the element's width.
    fn point(&mut self, selector: &str, share: f64) -> (f64, f64) {
        let place = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'center' }}); \
             const r = e.getBoundingClientRect(); return [r.left + r.width * {share}, r.top + r.height / 2]; }})()"
        ));
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64)) {
        let buttons = i32::from(kind != "mouseReleased");
        let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", event);
    }

    fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mousePressed", from);
        for step in 1..=5 {
            let part = f64::from(step) / 5.0;
            let at = (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            );
            self.mouse("mouseMoved", at);
        }
        self.mouse("mouseReleased", to);
    }

    fn press(&mut self, key: &str, text: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    fn figures(&mut self) -> String {
        let text = self.evaluate("document.querySelector('.figures-now')?.innerText ?? ''");
        text.as_str().unwrap().to_owned()
    }
}

#[test]
fn a_disk_is_dragged_or_ticked_and_the_figures_follow() {
    let server = TestServer::start(|_, _| {});
    let Some(mut tab) = Tab::open(&server) else {
        return;
    };
    tab.go("/plan");
    let before = tab.figures();
    assert!(!before.is_empty());
    let from = tab.point("#disk-0", 0.8);
    let to = tab.point("[data-zone=out]", 0.5);
    tab.drag(from, to);
    tab.until("document.querySelector('[data-zone=out] #disk-0') !== null");
    let dragged = tab.figures();
    assert_ne!(dragged, before);
    // The address has the state, also without the script.
    let path = tab.evaluate("location.pathname + location.search");
    let page = server.get(path.as_str().unwrap()).body;
    let (used, shelf) = page.split_once("data-zone=\"out\"").unwrap();
    assert!(shelf.contains("id=\"disk-0\"") && used.contains("id=\"disk-1\""));
    // The keyboard does the same: the box is ticked by a space, and keeps the focus.
    tab.evaluate("document.querySelector('#disk-0 input').focus()");
    tab.press(" ", " ", 32);
    tab.until("document.querySelector('[data-zone=in] #disk-0') !== null");
    tab.until("document.activeElement.value == '0'");
    assert_eq!(tab.figures(), before);
    for (query, status) in [
        ("disks=4T&add=2x2T&chosen=1&use=0", 200),
        ("disks=4T&chosen=1", 200),
        ("disks=99x4T", 400),
        ("disks=-4T", 400),
        ("disks=4T&survive=3", 200),
        ("disks=%3Cscript%3E", 400),
        ("disks=8x4T&add=8x4T&layout=nothing", 200),
    ] {
        let answer = server.get(&format!("/plan?{query}"));
        assert_eq!(answer.status, status, "{query}");
        assert!(!answer.body.contains("<script>"), "{query}");
    }
}

#[test]
fn a_history_is_zoomed_to_a_marked_time() {
    let server = TestServer::start_demo();
    let Some(mut tab) = Tab::open(&server) else {
        return;
    };
    tab.go(HISTORY);
    let count = "document.querySelectorAll('[data-zoom] svg circle').length";
    let all = tab.evaluate(count).as_i64().unwrap();
    let from = tab.point("[data-zoom] svg", 0.4);
    let to = tab.point("[data-zoom] svg", 0.7);
    tab.drag(from, to);
    tab.until("location.search.includes('from=') && location.search.includes('to=')");
    tab.until("document.readyState == 'complete'");
    let shown = tab.evaluate(count).as_i64().unwrap();
    assert!(shown > 2 && shown < all * 2 / 3, "{shown} of {all}");
    // What is marked is a third of the time, and a link leads back.
    tab.evaluate("[...document.querySelectorAll('.filter a')].at(-1).click()");
    tab.until(&format!(
        "!location.search.includes('from=') && {count} == {all}"
    ));
}

#[test]
fn axe_finds_no_barrier_on_any_page() {
    let folders = tempfile::tempdir().unwrap();
    let server = TestServer::start_with(
        |store, history| {
            let catalogue = assay_advice::Catalogue::builtin().unwrap();
            let size = assay_serve::demo_fleet::DemoSize {
                nights: 12,
                checks: 3,
            };
            let now = jiff::Timestamp::now();
            assay_serve::demo_fleet::fill(store, history, &catalogue, now, size).unwrap();
        },
        |options| {
            let index = options.duplicates.as_deref().unwrap();
            test_server::index_hostile_duplicates(index, folders.path());
            options.token = Some("0123456789abcdef".to_owned());
            options.actions = Some(ActionOptions {
                program: "/bin/true".into(),
                store: options.store.clone(),
                advice_dir: None,
                log: options.store.with_extension("log"),
            });
        },
    );
    let Some(mut tab) = Tab::open(&server) else {
        return;
    };
    tab.go("/about");
    let mut found = Vec::new();
    let mut check = |tab: &mut Tab, path: &str, scheme: &str| {
        tab.evaluate(&format!("{AXE};0"));
        let violations = tab.evaluate(RUN_AXE);
        let text = violations.as_str().unwrap_or("axe did not run").to_owned();
        if !text.is_empty() {
            found.push(format!("{path}, {scheme}: {text}"));
        }
    };
    // The page that asks for the token, and then all others.
    check(&mut tab, "token", "light");
    tab.call(
        "Page.navigate",
        json!({ "url": format!("{}/?token=0123456789abcdef", tab.base) }),
    );
    tab.until("document.querySelector('.attention') !== null");
    for scheme in ["light", "dark"] {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        tab.call("Emulation.setEmulatedMedia", features);
        for path in [
            "/",
            "/machines",
            "/machines/backup1",
            "/machines/db1",
            "/runs",
            "/runs/last",
            "/runs/52?against=27",
            "/figures",
            HISTORY,
            "/trials",
            "/trials/2",
            "/tuning",
            "/tuning/last",
            "/observations",
            "/observations/1",
            "/observations/2",
            "/advice?q=scheduler",
            "/advice/io-scheduler",
            "/plan",
            "/duplicates",
            "/actions",
            "/about",
            "/nowhere",
        ] {
            tab.go(path);
            check(&mut tab, path, scheme);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
