use super::*;
use crate::activity::{Activity, ActivityShare, ConnectionSide};
use crate::{PartTime, client_trace::Clues};

const SECOND: u64 = 1_000_000_000;

fn login(phases: &[(LoginPart, u64)], shares: Vec<ActivityShare>) -> Login {
    let phases = phases.iter().map(|(part, took)| PartTime {
        part: part.clone(),
        took: Nanos(*took),
    });
    Login {
        phases: phases.collect(),
        shares,
        ..Login::default()
    }
}

fn share(part: LoginPart, activity: Activity, took: u64) -> ActivityShare {
    ActivityShare {
        part,
        side: ConnectionSide::Server,
        process: "sshd".to_owned(),
        activity,
        took: Nanos(took),
    }
}

fn program(words: &[&str]) -> Activity {
    Activity::Program {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        inner: "sleep".to_owned(),
    }
}

fn pam(kind: &str, module: &str, arguments: &[&str], line: u32) -> PamLine {
    PamLine {
        kind: kind.to_owned(),
        module: module.to_owned(),
        arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        place: format!("/etc/pam.d/sshd:{line}"),
    }
}

fn known() -> ServerKnowledge {
    ServerKnowledge {
        sshd: Some(vec![
            ("usedns".to_owned(), "no".to_owned()),
            ("forcecommand".to_owned(), "/usr/bin/menu --slow".to_owned()),
            (
                "authorizedkeyscommand".to_owned(),
                "/usr/bin/keys %u".to_owned(),
            ),
        ]),
        pam: Some(vec![
            pam(
                "session",
                "pam_exec",
                &["seteuid", "/usr/local/bin/alert"],
                20,
            ),
            pam("session", "pam_motd", &["motd=/run/motd.dynamic"], 33),
            pam("session", "pam_motd", &["noupdate"], 34),
            pam("session", "pam_systemd", &[], 40),
        ]),
        is_here: true,
        is_watched: true,
        ..ServerKnowledge::default()
    }
}

fn ids(explanation: &Explanation) -> Vec<&str> {
    explanation
        .causes
        .iter()
        .map(|cause| &cause.id[..])
        .collect()
}

#[test]
fn every_activity_has_a_name_of_its_own() {
    let method = || LoginPart::Method("publickey".to_owned());
    let bus = || Activity::Socket("/run/dbus/system_bus_socket".to_owned());
    for (part, activity, id) in [
        (
            LoginPart::Session,
            program(&["/bin/sh", "/usr/local/bin/alert", "sleep", "2"]),
            "pam-exec",
        ),
        (
            LoginPart::Session,
            program(&["sh", "-c", "run-parts /etc/update-motd.d"]),
            "pam-motd",
        ),
        (
            LoginPart::Session,
            program(&["sh", "-c", "/bin/sh /root/.ssh/rc"]),
            "ssh-rc",
        ),
        (
            LoginPart::Session,
            program(&["/bin/sh", "/etc/ssh/sshrc"]),
            "sshrc",
        ),
        (
            LoginPart::Session,
            program(&["bash", "-c", "/usr/bin/menu --slow"]),
            "force-command",
        ),
        (
            LoginPart::Session,
            program(&["zsh", "-c", "printf assay-login"]),
            "shell-start-up",
        ),
        (
            LoginPart::Session,
            program(&["/opt/agent"]),
            "server-program",
        ),
        (LoginPart::Session, bus(), "pam-systemd"),
        (
            LoginPart::User,
            Activity::NameServer("192.0.2.53".to_owned()),
            "server-dns",
        ),
        (
            method(),
            program(&["/bin/sh", "/usr/bin/keys", "root"]),
            "authorized-keys-command",
        ),
        (
            method(),
            Activity::Peer("192.0.2.7:389".to_owned()),
            "server-network",
        ),
        (
            method(),
            Activity::Socket("/var/lib/sss/pipes/pam".to_owned()),
            "user-lookup",
        ),
        (LoginPart::Session, Activity::Sleep, "server-sleeps"),
        (LoginPart::KeyExchange, Activity::Cpu, "key-exchange"),
        (LoginPart::KeyExchange, Activity::CpuQueue, "busy-machine"),
    ] {
        let one = login(
            &[(part.clone(), 2 * SECOND)],
            vec![share(part, activity.clone(), 2 * SECOND)],
        );
        let found = explain(LoginKind::Ssh, &[one], &known());
        assert_eq!(ids(&found), [id], "{activity:?}");
        assert_eq!(found.unexplained, [], "{activity:?}");
    }
}

#[test]
fn several_causes_are_all_named_and_the_rest_stays_open() {
    let one = login(
        &[(LoginPart::Tcp, 1), (LoginPart::Session, 5 * SECOND)],
        vec![
            share(
                LoginPart::Session,
                program(&["/usr/local/bin/alert"]),
                2 * SECOND,
            ),
            share(
                LoginPart::Session,
                program(&["sh", "-c", "/bin/sh /root/.ssh/rc"]),
                SECOND,
            ),
        ],
    );
    let found = explain(LoginKind::Ssh, &[one], &known());
    assert_eq!(ids(&found), ["pam-exec", "ssh-rc"]);
    assert_eq!(found.causes[0].took, Nanos(2 * SECOND));
    assert_eq!(found.unexplained.len(), 1);
    assert_eq!(found.unexplained[0].took, Nanos(2 * SECOND));
}

#[test]
fn what_sshd_sleeps_after_a_slow_request_belongs_to_the_request() {
    let asked = Activity::NameServer("192.0.2.53".to_owned());
    let one = login(
        &[(LoginPart::User, 3 * SECOND)],
        vec![
            share(LoginPart::User, asked, 2 * SECOND),
            share(LoginPart::User, Activity::Sleep, SECOND),
        ],
    );
    let found = explain(LoginKind::Ssh, &[one], &known());
    assert_eq!(
        (ids(&found), found.causes[0].took),
        (vec!["server-dns"], Nanos(3 * SECOND))
    );
}

/// A stack in which a refusal waits, behind a program.
fn with_pam_unix() -> ServerKnowledge {
    ServerKnowledge {
        pam: Some(vec![
            pam("auth", "pam_exec", &["/usr/local/bin/alert"], 1),
            pam("auth", "pam_unix", &[], 2),
        ]),
        ..known()
    }
}

#[test]
fn what_sshd_sleeps_after_a_slow_module_is_no_refusal() {
    let method = || LoginPart::Method("keyboard-interactive".to_owned());
    let slept = ActivityShare {
        process: "sshd [net]".to_owned(),
        ..share(method(), Activity::Sleep, 2 * SECOND)
    };
    let ran = share(method(), program(&["/usr/local/bin/alert"]), 2 * SECOND);
    let phases = [(method(), 4 * SECOND), (LoginPart::Session, SECOND / 100)];
    let one = login(&phases, vec![ran, slept]);
    let found = explain(LoginKind::Ssh, &[one], &with_pam_unix());
    assert_eq!(
        (ids(&found), found.causes[0].took),
        (vec!["pam-exec"], Nanos(4 * SECOND))
    );
}

#[test]
fn a_delay_of_pam_follows_a_refusal() {
    let method = |name: &str| LoginPart::Method(name.to_owned());
    let password = || method("password");
    for (part, process, refused, is_in, empty, id) in [
        (password(), "sshd [pam]", true, true, "no", "pam-fail-delay"),
        (
            password(),
            "sshd [priv]",
            true,
            false,
            "no",
            "pam-fail-delay",
        ),
        // The time limit passed before the answer.
        (
            password(),
            "sshd [pam]",
            false,
            false,
            "no",
            "pam-fail-delay",
        ),
        // A module that sleeps, and the login succeeds.
        (password(), "sshd [pam]", false, true, "no", "server-sleeps"),
        (password(), "sshd [net]", true, false, "no", "server-sleeps"),
        // PAM does not take part.
        (
            method("publickey"),
            "sshd [priv]",
            true,
            true,
            "no",
            "server-sleeps",
        ),
        (
            LoginPart::User,
            "sshd [priv]",
            false,
            true,
            "no",
            "server-sleeps",
        ),
        (
            LoginPart::User,
            "sshd [priv]",
            false,
            true,
            "yes",
            "pam-fail-delay",
        ),
    ] {
        let slept = ActivityShare {
            process: process.to_owned(),
            ..share(part.clone(), Activity::Sleep, 3 * SECOND)
        };
        let mut phases = vec![(part.clone(), 3 * SECOND)];
        phases.extend(is_in.then_some((LoginPart::Session, SECOND / 100)));
        let mut one = login(&phases, vec![slept]);
        if let (LoginPart::Method(name), true) = (&part, refused) {
            one.clues.refused_methods.push(name.clone());
        }
        let mut known = with_pam_unix();
        let setting = ("permitemptypasswords".to_owned(), empty.to_owned());
        known.sshd.as_mut().unwrap().push(setting);
        let found = explain(LoginKind::Ssh, &[one], &known);
        assert_eq!(ids(&found), [id], "{part:?} {process} {refused} {is_in}");
    }
}

#[test]
fn a_wait_without_evidence_has_no_cause() {
    for part in [
        LoginPart::Banner,
        LoginPart::KeyExchange,
        LoginPart::User,
        LoginPart::Session,
        LoginPart::Prompt,
    ] {
        let one = login(&[(part.clone(), 2 * SECOND)], Vec::new());
        let found = explain(LoginKind::Ssh, &[one], &known());
        assert_eq!(
            (ids(&found), found.unexplained.len()),
            (vec![], 1),
            "{part:?}"
        );
    }
}

#[test]
fn a_healthy_login_has_neither_causes_nor_open_time() {
    let ms = 1_000_000;
    let phases = [
        (LoginPart::Tcp, ms),
        (LoginPart::KeyExchange, 150 * ms),
        (LoginPart::Session, 70 * ms),
    ];
    let shares = || vec![share(LoginPart::KeyExchange, Activity::Cpu, 140 * ms)];
    let mut all: Vec<Login> = (0..4).map(|_| login(&phases, shares())).collect();
    // One of five logins met a busy machine.
    let late = [
        (LoginPart::Tcp, ms),
        (LoginPart::KeyExchange, 900 * ms),
        (LoginPart::Session, 70 * ms),
    ];
    all.push(login(
        &late,
        vec![share(LoginPart::KeyExchange, Activity::CpuQueue, 800 * ms)],
    ));
    assert_eq!(
        explain(LoginKind::Ssh, &all, &known()),
        Explanation::default()
    );
}

#[test]
fn a_line_counts_by_its_own_seconds_whichever_part_is_longest() {
    // The session takes a little more or a little less than the prompt.
    for session in [800, 900, 1_080, 1_230, 1_300] {
        let ms = 1_000_000;
        let phases = [
            (LoginPart::KeyExchange, 300 * ms),
            (LoginPart::Session, session * ms),
            (LoginPart::Prompt, 1_100 * ms),
        ];
        let line = |part: LoginPart, place: &str, took: u64| StartupLine {
            place: place.to_owned(),
            command: "sleep".to_owned(),
            took: Nanos(took * ms),
            part,
            trigger: crate::startup::LineTrigger::StartUpFile,
        };
        let known = ServerKnowledge {
            startup: vec![
                line(LoginPart::Session, "/h/.bashrc:1", 800),
                line(LoginPart::Prompt, "/h/.bashrc:1", 800),
                line(LoginPart::Prompt, "/h/.bashrc:2", 300),
            ],
            ..known()
        };
        let found = explain(LoginKind::Ssh, &[login(&phases, Vec::new())], &known);
        assert_eq!(ids(&found)[..2], ["start-up-line"; 2], "{session}");
        assert_eq!(
            found.causes[0].parts,
            [LoginPart::Session, LoginPart::Prompt]
        );
    }
}

#[test]
fn small_causes_that_add_up_are_named() {
    let ms = 1_000_000;
    let scripts = (0..6).map(|number| {
        let words = ["sh", &format!("/etc/update-motd.d/{number}")].map(str::to_owned);
        let words: Vec<&str> = words.iter().map(|word| &word[..]).collect();
        share(LoginPart::Session, program(&words), 90 * ms)
    });
    let one = login(&[(LoginPart::Session, 600 * ms)], scripts.collect());
    assert_eq!(explain(LoginKind::Ssh, &[one], &known()).causes.len(), 6);
}

#[test]
fn distance_never_explains_more_than_its_round_trips() {
    let ms = 1_000_000;
    let phases = |banner: u64| {
        [
            (LoginPart::Tcp, 150 * ms),
            (LoginPart::Banner, banner * ms),
            (LoginPart::KeyExchange, 460 * ms),
            (LoginPart::User, 155 * ms),
            (LoginPart::Method("publickey".to_owned()), 310 * ms),
            (LoginPart::Session, 320 * ms),
        ]
    };
    let far = explain(
        LoginKind::Ssh,
        &[login(&phases(152), Vec::new())],
        &ServerKnowledge::default(),
    );
    assert_eq!((ids(&far), far.unexplained.len()), (vec!["distance"], 0));
    // A late banner does not mean a large distance.
    let late = explain(
        LoginKind::Ssh,
        &[login(&phases(3_000), Vec::new())],
        &ServerKnowledge::default(),
    );
    assert_eq!(late.unexplained.len(), 1);
    // A lost first packet delays only the connection.
    let mut lost = phases(10);
    lost[0].1 = 1_000 * ms;
    lost[5].1 = 2_000 * ms;
    let lost = explain(
        LoginKind::Ssh,
        &[login(&lost, Vec::new())],
        &ServerKnowledge::default(),
    );
    assert!(
        lost.unexplained
            .iter()
            .any(|open| open.part == LoginPart::Session)
    );
}

#[test]
fn a_greeting_that_comes_late_is_called_that_unless_a_name_server_was_seen() {
    let phases = [(LoginPart::Tcp, 1), (LoginPart::Banner, 3 * SECOND)];
    let plain = explain(
        LoginKind::Smtp,
        &[login(&phases, Vec::new())],
        &ServerKnowledge::default(),
    );
    assert_eq!(ids(&plain), ["greeting-delayed"]);
    let asked = share(
        LoginPart::Banner,
        Activity::NameServer("192.0.2.53".to_owned()),
        3 * SECOND,
    );
    let dns = explain(
        LoginKind::Smtp,
        &[login(&phases, vec![asked])],
        &ServerKnowledge::default(),
    );
    assert_eq!(ids(&dns), ["server-dns"]);
    let mut one = login(&phases, Vec::new());
    one.clues = Clues {
        greeted: Some(Nanos(5)),
        ..Clues::default()
    };
    assert_eq!(
        ids(&explain(
            LoginKind::Smtp,
            &[one],
            &ServerKnowledge::default()
        )),
        ["greeting-delayed"]
    );
}
