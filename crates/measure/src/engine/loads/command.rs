//! Runs a command repeatedly, with the target in its arguments.

use crate::engine::{LoadTarget, Meter};
use assay_loads::{LoadError, LoadResult, Timing, command};
use assay_model::load::PrintedFigure;
use std::ffi::OsString;

pub(super) fn run(
    argv: &[String],
    prints: Option<&PrintedFigure>,
    place: &LoadTarget,
    timing: Timing,
    meter: &Meter<'_>,
) -> Result<LoadResult, LoadError> {
    let argv = argv
        .iter()
        .map(|word| fill_placeholders(word, place))
        .collect();
    let request = command::CommandRequest {
        argv,
        prints: prints.cloned(),
        timing,
    };
    match meter.tools.command_helper() {
        Some(helper) => helper.run(&request, meter.cancel),
        None => command::run(&request, meter.cancel),
    }
}

/// Replaces `{host}`, `{port}` and `{path}` in an argument of the command by the values of the target.
fn fill_placeholders(word: &str, place: &LoadTarget) -> OsString {
    match place {
        LoadTarget::Address { host, port } => word
            .replace("{host}", host)
            .replace("{port}", &port.to_string())
            .into(),
        LoadTarget::Named { path } if word == "{path}" => path.clone().into(),
        LoadTarget::Named { path } => word.replace("{path}", &path.to_string_lossy()).into(),
        LoadTarget::Itself
        | LoadTarget::File { .. }
        | LoadTarget::Nbd { .. }
        | LoadTarget::Guest { .. } => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_place_and_nothing_is_a_shell() {
        let address = LoadTarget::Address {
            host: "::1".to_owned(),
            port: 22,
        };
        assert_eq!(fill_placeholders("[{host}]:{port}", &address), "[::1]:22");
        let named = LoadTarget::Named {
            path: "/srv/$(reboot) {host}".into(),
        };
        assert_eq!(
            fill_placeholders("--on={path}", &named),
            "--on=/srv/$(reboot) {host}"
        );
        assert_eq!(fill_placeholders("{host}", &named), "{host}");
        assert_eq!(fill_placeholders("{path}", &LoadTarget::Itself), "{path}");
    }

    #[test]
    fn a_path_that_is_no_text_reaches_the_command_as_it_is() {
        use std::os::unix::ffi::OsStringExt as _;
        let path = OsString::from_vec(b"/srv/\xff".to_vec());
        let named = LoadTarget::Named {
            path: path.clone().into(),
        };
        assert_eq!(fill_placeholders("{path}", &named), path);
    }
}
