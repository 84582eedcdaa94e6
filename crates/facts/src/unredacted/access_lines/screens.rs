//! VNC servers that show the screen of this machine to everybody: TigerVNC, and x11vnc in a unit.

use super::super::lines_of_files::{files, read};
use super::directory::homes;
use super::{Lines, bare, words};
use crate::gather::Gather;
use assay_model::FactPlace;

const TIGERVNC: [&str; 2] = [
    "/etc/tigervnc/vncserver-config-defaults",
    "/etc/tigervnc/vncserver-config-mandatory",
];
const UNITS: &str = "/etc/systemd/system";

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Lines::of("vnc_server", "open");
    let mut all = TIGERVNC.map(str::to_owned).to_vec();
    for home in ["/root".to_owned()].into_iter().chain(homes(g)) {
        all.extend([".vnc/config", ".config/tigervnc/config"].map(|name| format!("{home}/{name}")));
    }
    for path in all {
        let mut unprotected: Option<(bool, FactPlace)> = None;
        let mut beyond = false;
        for line in read(g, "vnc_server", &path) {
            let words = words(&line);
            let [key, value, ..] = &words[..] else {
                continue;
            };
            match key.trim_start_matches('$') {
                "securitytypes" => {
                    let none = value.split(',').any(|one| one.ends_with("none"));
                    unprotected = Some((none, line.place));
                }
                "localhost" => beyond = value == "no" || value == "0",
                _ => {}
            }
        }
        if let Some((none, place)) = unprotected {
            found.add(g, none && beyond, &place);
        }
    }
    for path in files(g, "vnc_server", UNITS, ".service") {
        for line in read(g, "vnc_server", &path) {
            let Some(command) = bare(&line).and_then(|text| text.strip_prefix("ExecStart=")) else {
                continue;
            };
            let mut words = command.split_whitespace();
            if !words
                .next()
                .is_some_and(|program| program.ends_with("/x11vnc"))
            {
                continue;
            }
            let guards = [
                "-localhost",
                "-usepw",
                "-passwd",
                "-passwdfile",
                "-rfbauth",
                "-unixpw",
                "-listen",
            ];
            let guarded = words.any(|word| guards.contains(&word));
            found.add(g, !guarded, &line.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;

    #[test]
    fn screens_and_their_near_misses() {
        let tiger = "/etc/tigervnc/vncserver-config-defaults";
        let unit = "/etc/systemd/system/x11vnc.service";
        for (path, text, expected) in [
            (
                tiger,
                "$SecurityTypes = \"None\";\n$localhost = \"no\";\n",
                "vnc_server.1.open 1",
            ),
            (tiger, "$SecurityTypes = \"None\";\n", ""),
            (
                tiger,
                "$SecurityTypes = \"TLSVnc\";\n$localhost = \"no\";\n",
                "",
            ),
            (
                "/home/ann/.vnc/config",
                "securitytypes=none\nlocalhost=no\n",
                "vnc_server.1.open 1",
            ),
            (
                unit,
                "ExecStart=/usr/bin/x11vnc -forever -nopw -display :0\n",
                "vnc_server.1.open 1",
            ),
            (
                unit,
                "ExecStart=/usr/bin/x11vnc -forever -rfbauth /etc/x11vnc.pass\n",
                "",
            ),
            (unit, "ExecStart=/usr/bin/x11vnc -forever -localhost\n", ""),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
