use super::*;
use crate::activity::{Activity, Share, Side};
use crate::{Phase, clues::Clues};

const SECOND: u64 = 1_000_000_000;

fn login(phases: &[(Part, u64)], shares: Vec<Share>) -> Login {
    let phases = phases.iter().map(|(part, took)| Phase {
        part: part.clone(),
        took: Nanos(*took),
    });
    Login {
        phases: phases.collect(),
        shares,
        ..Login::default()
    }
}

fn share(part: Part, activity: Activity, took: u64) -> Share {
    Share {
        part,
        side: Side::Server,
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

fn known() -> Known {
    Known {
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
        ..Known::default()
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
    let method = || Part::Method("publickey".to_owned());
    let bus = || Activity::Socket("/run/dbus/system_bus_socket".to_owned());
    for (part, activity, id) in [
        (
            Part::Session,
            program(&["/bin/sh", "/usr/local/bin/alert", "sleep", "2"]),
            "pam-exec",
        ),
        (
            Part::Session,
            program(&["sh", "-c", "run-parts /etc/update-motd.d"]),
            "pam-motd",
        ),
        (
            Part::Session,
            program(&["sh", "-c", "/bin/sh /root/.ssh/rc"]),
            "ssh-rc",
        ),
        (
            Part::Session,
            program(&["/bin/sh", "/etc/ssh/sshrc"]),
            "sshrc",
        ),
        (
            Part::Session,
            program(&["bash", "-c", "/usr/bin/menu --slow"]),
            "force-command",
        ),
        (
            Part::Session,
            program(&["zsh", "-c", "printf assay-login"]),
            "shell-start-up",
        ),
        (Part::Session, program(&["/opt/agent"]), "server-program"),
        (Part::Session, bus(), "pam-systemd"),
        (
            Part::User,
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
        (Part::Session, Activity::Sleep, "server-sleeps"),
        (Part::KeyExchange, Activity::Cpu, "key-exchange"),
        (Part::KeyExchange, Activity::CpuQueue, "busy-machine"),
    ] {
        let one = login(
            &[(part.clone(), 2 * SECOND)],
            vec![share(part, activity.clone(), 2 * SECOND)],
        );
        let found = explain(Kind::Ssh, &[one], &known());
        assert_eq!(ids(&found), [id], "{activity:?}");
        assert_eq!(found.unexplained, [], "{activity:?}");
    }
}

#[test]
fn several_causes_are_all_named_and_the_rest_stays_open() {
    let one = login(
        &[(Part::Tcp, 1), (Part::Session, 5 * SECOND)],
        vec![
            share(
                Part::Session,
                program(&["/usr/local/bin/alert"]),
                2 * SECOND,
            ),
            share(
                Part::Session,
                program(&["sh", "-c", "/bin/sh /root/.ssh/rc"]),
                SECOND,
            ),
        ],
    );
    let found = explain(Kind::Ssh, &[one], &known());
    assert_eq!(ids(&found), ["pam-exec", "ssh-rc"]);
    assert_eq!(found.causes[0].took, Nanos(2 * SECOND));
    assert_eq!(found.unexplained.len(), 1);
    assert_eq!(found.unexplained[0].took, Nanos(2 * SECOND));
}

#[test]
fn what_sshd_sleeps_after_a_slow_request_belongs_to_the_request() {
    let asked = Activity::NameServer("192.0.2.53".to_owned());
    let one = login(
        &[(Part::User, 3 * SECOND)],
        vec![
            share(Part::User, asked, 2 * SECOND),
            share(Part::User, Activity::Sleep, SECOND),
        ],
    );
    let found = explain(Kind::Ssh, &[one], &known());
    assert_eq!(
        (ids(&found), found.causes[0].took),
        (vec!["server-dns"], Nanos(3 * SECOND))
    );
}

#[test]
fn a_wait_without_evidence_has_no_cause() {
    for part in [
        Part::Banner,
        Part::KeyExchange,
        Part::User,
        Part::Session,
        Part::Prompt,
    ] {
        let one = login(&[(part.clone(), 2 * SECOND)], Vec::new());
        let found = explain(Kind::Ssh, &[one], &known());
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
        (Part::Tcp, ms),
        (Part::KeyExchange, 150 * ms),
        (Part::Session, 70 * ms),
    ];
    let shares = || vec![share(Part::KeyExchange, Activity::Cpu, 140 * ms)];
    let mut all: Vec<Login> = (0..4).map(|_| login(&phases, shares())).collect();
    // One login of five met a busy machine.
    let late = [
        (Part::Tcp, ms),
        (Part::KeyExchange, 900 * ms),
        (Part::Session, 70 * ms),
    ];
    all.push(login(
        &late,
        vec![share(Part::KeyExchange, Activity::CpuQueue, 800 * ms)],
    ));
    assert_eq!(explain(Kind::Ssh, &all, &known()), Explanation::default());
}

#[test]
fn a_line_counts_by_its_own_seconds_whichever_part_is_longest() {
    // The session takes a little more or a little less than the prompt.
    for session in [800, 900, 1_080, 1_230, 1_300] {
        let ms = 1_000_000;
        let phases = [
            (Part::KeyExchange, 300 * ms),
            (Part::Session, session * ms),
            (Part::Prompt, 1_100 * ms),
        ];
        let line = |part: Part, place: &str, took: u64| Line {
            place: place.to_owned(),
            command: "sleep".to_owned(),
            took: Nanos(took * ms),
            part,
        };
        let known = Known {
            startup: vec![
                line(Part::Session, "/h/.bashrc:1", 800),
                line(Part::Prompt, "/h/.bashrc:1", 800),
                line(Part::Prompt, "/h/.bashrc:2", 300),
            ],
            ..known()
        };
        let found = explain(Kind::Ssh, &[login(&phases, Vec::new())], &known);
        assert_eq!(ids(&found)[..2], ["start-up-line"; 2], "{session}");
        assert_eq!(found.causes[0].parts, [Part::Session, Part::Prompt]);
    }
}

#[test]
fn small_causes_that_add_up_are_named() {
    let ms = 1_000_000;
    let scripts = (0..6).map(|number| {
        let words = ["sh", &format!("/etc/update-motd.d/{number}")].map(str::to_owned);
        let words: Vec<&str> = words.iter().map(|word| &word[..]).collect();
        share(Part::Session, program(&words), 90 * ms)
    });
    let one = login(&[(Part::Session, 600 * ms)], scripts.collect());
    assert_eq!(explain(Kind::Ssh, &[one], &known()).causes.len(), 6);
}

#[test]
fn distance_never_explains_more_than_its_round_trips() {
    let ms = 1_000_000;
    let phases = |banner: u64| {
        [
            (Part::Tcp, 150 * ms),
            (Part::Banner, banner * ms),
            (Part::KeyExchange, 460 * ms),
            (Part::User, 155 * ms),
            (Part::Method("publickey".to_owned()), 310 * ms),
            (Part::Session, 320 * ms),
        ]
    };
    let far = explain(
        Kind::Ssh,
        &[login(&phases(152), Vec::new())],
        &Known::default(),
    );
    assert_eq!((ids(&far), far.unexplained.len()), (vec!["distance"], 0));
    // A banner that takes longer is not far away.
    let late = explain(
        Kind::Ssh,
        &[login(&phases(3_000), Vec::new())],
        &Known::default(),
    );
    assert_eq!(late.unexplained.len(), 1);
    // A lost first packet makes the connection slow, and no other part.
    let mut lost = phases(10);
    lost[0].1 = 1_000 * ms;
    lost[5].1 = 2_000 * ms;
    let lost = explain(Kind::Ssh, &[login(&lost, Vec::new())], &Known::default());
    assert!(
        lost.unexplained
            .iter()
            .any(|open| open.part == Part::Session)
    );
}

#[test]
fn a_greeting_that_comes_late_is_called_that_unless_a_name_server_was_seen() {
    let phases = [(Part::Tcp, 1), (Part::Banner, 3 * SECOND)];
    let plain = explain(Kind::Smtp, &[login(&phases, Vec::new())], &Known::default());
    assert_eq!(ids(&plain), ["greeting-delayed"]);
    let asked = share(
        Part::Banner,
        Activity::NameServer("192.0.2.53".to_owned()),
        3 * SECOND,
    );
    let dns = explain(
        Kind::Smtp,
        &[login(&phases, vec![asked])],
        &Known::default(),
    );
    assert_eq!(ids(&dns), ["server-dns"]);
    let mut one = login(&phases, Vec::new());
    one.clues = Clues {
        greeted: Some(Nanos(5)),
        ..Clues::default()
    };
    assert_eq!(
        ids(&explain(Kind::Smtp, &[one], &Known::default())),
        ["greeting-delayed"]
    );
}
