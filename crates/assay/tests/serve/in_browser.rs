//! A trial in Chromium, by keyboard alone.

use crate::common::browser::Browser;
use crate::started_server::{Served, until};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

/// Presses a key, as a keyboard does.
fn press(browser: &mut Browser, session: &str, key: &str, text: &str, code: u32) {
    for kind in ["keyDown", "keyUp"] {
        let mut event =
            json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
        if kind == "keyDown" && !text.is_empty() {
            event["text"] = text.into();
        }
        browser.call("Input.dispatchKeyEvent", event, Some(session));
    }
}

#[test]
fn a_trial_is_started_watched_and_stopped_by_keyboard_in_a_browser() {
    let Some(mut browser) = Browser::start(&|mut command: Command| command.spawn().unwrap()) else {
        return;
    };
    let served = Served::start();
    let (_, session) = browser.open("about:blank");
    let session = session.as_str();
    browser.call("Page.enable", json!({}), Some(session));
    let url = format!(
        "http://{}/actions?advice=planted-mode&token={}",
        served.address, served.token
    );
    browser.call("Page.navigate", json!({ "url": url }), Some(session));
    browser.until(
        session,
        "document.querySelector('#start-trial [name=target]') !== null",
    );
    browser.evaluate(
        session,
        "document.querySelector('#start-trial [name=target]').focus()",
    );
    let target: PathBuf = served.dir.path().to_owned();
    browser.call(
        "Input.insertText",
        json!({ "text": target.to_str().unwrap() }),
        Some(session),
    );
    press(&mut browser, session, "Tab", "", 9);
    press(&mut browser, session, "Tab", "", 9);
    browser.call("Input.insertText", json!({ "text": "1s" }), Some(session));
    press(&mut browser, session, "Enter", "\r", 13);
    browser.until(session, "location.pathname == '/jobs/1'");
    served.wait_for_change();
    // Lines come by themselves, and lead to the trial.
    browser.until(
        session,
        "document.querySelector('pre.output')?.textContent.length > 20",
    );
    browser.until(
        session,
        "document.querySelector('a.record')?.pathname.startsWith('/trials/')",
    );
    browser.evaluate(session, "document.querySelector('button.stop').focus()");
    press(&mut browser, session, "Enter", "\r", 13);
    until("the undo", || served.is_undone());
    browser.until(
        session,
        "document.body.innerText.includes('stopped, and undone')",
    );
}
