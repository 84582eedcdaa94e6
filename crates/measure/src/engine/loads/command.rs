//! A command, again and again, with the place in its arguments.

use crate::engine::{Meter, Place};
use assay_loads::{LoadError, Measured, Timing, command};
use std::ffi::OsString;

pub(super) fn run(
    argv: &[String],
    place: &Place,
    timing: Timing,
    meter: &Meter<'_>,
) -> Result<Measured, LoadError> {
    let argv = argv.iter().map(|word| filled(word, place)).collect();
    command::run(&command::Request { argv, timing }, meter.cancel)
}

/// `{host}`, `{port}` and `{path}` filled in.
fn filled(word: &str, place: &Place) -> OsString {
    match place {
        Place::Address { host, port } => word
            .replace("{host}", host)
            .replace("{port}", &port.to_string())
            .into(),
        Place::Named { path } if word == "{path}" => path.clone().into(),
        Place::Named { path } => word.replace("{path}", &path.to_string_lossy()).into(),
        Place::Itself | Place::File { .. } | Place::Nbd { .. } | Place::Guest { .. } => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_place_and_nothing_is_a_shell() {
        let address = Place::Address {
            host: "::1".to_owned(),
            port: 22,
        };
        assert_eq!(filled("[{host}]:{port}", &address), "[::1]:22");
        let named = Place::Named {
            path: "/srv/$(reboot) {host}".into(),
        };
        assert_eq!(filled("--on={path}", &named), "--on=/srv/$(reboot) {host}");
        assert_eq!(filled("{host}", &named), "{host}");
        assert_eq!(filled("{path}", &Place::Itself), "{path}");
    }

    #[test]
    fn a_path_that_is_no_text_reaches_the_command_as_it_is() {
        use std::os::unix::ffi::OsStringExt as _;
        let path = OsString::from_vec(b"/srv/\xff".to_vec());
        let named = Place::Named {
            path: path.clone().into(),
        };
        assert_eq!(filled("{path}", &named), path);
    }
}
