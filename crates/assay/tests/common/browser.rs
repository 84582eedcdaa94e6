//! Headless Chromium as a phone, controlled through its debugging pipe.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct Browser {
    child: Child,
    to: File,
    from: File,
    rest: Vec<u8>,
    next: u64,
    _home: TempDir,
}

impl Browser {
    /// Starts Chromium; `None` with a message if it is missing. `start` starts the command, in a
    /// namespace or not.
    pub fn start(start: &dyn Fn(Command) -> Child) -> Option<Self> {
        if assay_testing::servers::skip(&["chromium"], false) {
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        let [to, from] = ["to", "from"].map(|name| home.path().join(name));
        for pipe in [&to, &from] {
            let made = Command::new("mkfifo").arg(pipe).status().unwrap();
            assert!(made.success());
        }
        let mut command = Command::new("sh");
        // The pipe uses descriptors 3 and 4.
        let script = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
                      --ignore-certificate-errors --no-first-run --disable-background-networking \
                      --remote-debugging-pipe --user-data-dir=\"$2\" about:blank 3<\"$0\" 4>\"$1\"";
        command
            .args(["-c", script])
            .arg(&to)
            .arg(&from)
            .arg(home.path().join("profile"));
        command.env("HOME", home.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = start(command);
        let to = File::options().write(true).open(&to).unwrap();
        let from = File::open(&from).unwrap();
        Some(Self {
            child,
            to,
            from,
            rest: Vec::new(),
            next: 0,
            _home: home,
        })
    }

    /// Sends a command and returns its result; events in between are dropped.
    pub fn call(&mut self, method: &str, params: Value, session: Option<&str>) -> Value {
        let message = self.ask(method, params, session);
        assert!(message["error"].is_null(), "{method}: {message}");
        message["result"].clone()
    }

    fn ask(&mut self, method: &str, params: Value, session: Option<&str>) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let message = self.message();
            if message["id"] == self.next {
                return message;
            }
        }
    }

    fn message(&mut self) -> Value {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).unwrap();
            }
            let mut bytes = [0; 65536];
            let n = self.from.read(&mut bytes).unwrap();
            assert!(n > 0, "Chromium has ended");
            self.rest.extend_from_slice(&bytes[..n]);
        }
    }

    /// Opens a tab in front: returns its target and session.
    pub fn open(&mut self, url: &str) -> (String, String) {
        let target = self.call("Target.createTarget", json!({ "url": url }), None);
        let target = target["targetId"].as_str().unwrap().to_owned();
        let attached = json!({ "targetId": target, "flatten": true });
        let session = self.call("Target.attachToTarget", attached, None);
        (target, session["sessionId"].as_str().unwrap().to_owned())
    }

    /// Evaluates an expression in a tab; null while it has no page.
    pub fn evaluate(&mut self, session: &str, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let message = self.ask("Runtime.evaluate", asked, Some(session));
        message["result"]["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, session: &str, expression: &str) {
        let begin = Instant::now();
        while self.evaluate(session, expression) != Value::Bool(true) {
            let body = self.evaluate(session, "document.body?.innerText");
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "{expression}: {body}"
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Saves a screenshot of a tab on a phone of 390 × 844.
    pub fn picture(&mut self, session: &str, path: &Path) {
        let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
        self.call("Emulation.setDeviceMetricsOverride", phone, Some(session));
        let taken = self.call(
            "Page.captureScreenshot",
            json!({ "format": "png" }),
            Some(session),
        );
        // `base64` is part of coreutils.
        let mut child = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(File::create(path).unwrap())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(taken["data"].as_str().unwrap().as_bytes())
            .unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self
            .to
            .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(5) {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
