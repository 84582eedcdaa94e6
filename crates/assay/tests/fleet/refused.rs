//! Invalid names, bundles and inventories.

use super::common::{self, Home};
use super::json;

#[test]
fn names_that_are_none_and_inventories_that_are_wrong() {
    let home = Home::new();
    let ask = |args: &[&str]| {
        let mut command = home.command(args);
        command
            .env("HOME", home.dir.path())
            .env("XDG_CONFIG_HOME", home.dir.path());
        common::ended(command)
    };
    let ran = ask(&["facts", "--host=-oProxyCommand=touch /tmp/x"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    insta::assert_snapshot!(home.told(&ran.stderr), @"assay: -oProxyCommand=touch /tmp/x: a name of a machine begins with a hyphen");
    let ran = ask(&["changed"]);
    assert_eq!(ran.code, Some(2));
    // A machine that sends its own bundle, and one that sends something else.
    let receive = |bytes: &[u8]| {
        let file = home.dir.path().join("sent");
        std::fs::write(&file, bytes).unwrap();
        let mut command = home.command(&["fleet", "receive", "pushed"]);
        command.stdin(std::fs::File::open(&file).unwrap());
        common::ended(command)
    };
    assert_eq!(receive(b"Welcome\n").code, Some(3));
    assert!(!home.state().join("fleet/pushed").exists());
    let bundle = include_bytes!("../../../hostile/fixtures/bundle.tar");
    for _ in 0..2 {
        let ran = receive(bundle);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), ""),
            "{}",
            ran.stderr
        );
    }
    let ran = ask(&["changed", "pushed"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ran.stderr
    );
    let ran = ask(&["fleet", "list"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ran.stderr
    );
    let file = home.dir.path().join("bad.toml");
    std::fs::write(&file, "[groups]\nweb = 7\n").unwrap();
    let ran = ask(&["fleet", "list", "--inventory", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("bad.toml") && ran.stderr.contains("line 2"),
        "{}",
        ran.stderr
    );
    let list = home.dir.path().join("ansible.json");
    std::fs::write(
        &list,
        r#"{"web":{"hosts":["web1"]},"_meta":{"hostvars":{"web1":{"ansible_host":"10.0.0.1"}}}}"#,
    )
    .unwrap();
    let ran = ask(&[
        "fleet",
        "list",
        "--ansible",
        list.to_str().unwrap(),
        "--json",
    ]);
    common::schemas::holds("fleet-list", &ran.stdout, &["/machines/0"]);
    assert_eq!(json(&ran.stdout)["machines"][0]["address"], "10.0.0.1");
    let ran = ask(&[
        "fleet",
        "check",
        "nobody",
        "--ansible",
        list.to_str().unwrap(),
    ]);
    insta::assert_snapshot!(home.refusal(&ran), @"assay: nobody: unknown machine or group; known are web, web1");
}
