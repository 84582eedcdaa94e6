//! Finds the program that listens at a URL of this machine, and the configuration file with which the program was
//! started. Pages about other servers or other files are excluded, because their changes would not affect the load.

use assay_host::{Host as _, LiveHost};
use assay_measure::tuning::FoundCandidate;
use assay_model::Advice;
use assay_tune::Applicability;
use assay_web::ServerProcesses;
use std::collections::BTreeMap;
use std::path::Path;

/// Servers with advice pages, as (first part of the pages' ids, names of the programs, option for their configuration
/// file).
const SERVERS: [(&str, &[&str], &str); 3] = [
    ("nginx", &["nginx"], "-c"),
    ("apache", &["apache2", "httpd"], "-f"),
    ("haproxy", &["haproxy"], "-f"),
];
/// Parameter of pages that contains the path of the configuration file.
const CONFIG: &str = "config";

/// The program that listens at a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LocalServer {
    /// Name of the program, such as `nginx`.
    program: String,
    /// First part of the ids of the pages about the program; `None` if there are no such pages.
    pages: Option<&'static str>,
    /// Path of the configuration file, if the program was started with an option for it.
    config: Option<String>,
}

impl LocalServer {
    /// Finds the program that listens at a URL. `None` if assay cannot see the process, for example without root.
    pub(super) fn find(url: &str) -> Option<Self> {
        let address = *assay_http::Url::parse(url).ok()?.resolve().ok()?.first()?;
        let ServerProcesses::Processes(pids) = ServerProcesses::listening(&address) else {
            return None;
        };
        let command = |pid: &u32| {
            LiveHost
                .read_text(Path::new(&format!("/proc/{pid}/cmdline")))
                .ok()
        };
        let name = |pid: &u32| {
            LiveHost
                .read_text(Path::new(&format!("/proc/{pid}/comm")))
                .ok()
        };
        let commands: Vec<String> = pids.iter().filter_map(command).collect();
        Some(Self::read(name(pids.first()?)?.trim(), &commands))
    }

    fn read(program: &str, commands: &[String]) -> Self {
        let known = SERVERS
            .iter()
            .find(|(_, names, _)| names.contains(&program));
        let config = known.and_then(|(_, _, option)| {
            // nginx writes its title over its words: `nginx: master process nginx -c /etc/x.conf`.
            let words = |line: &String| -> Option<String> {
                let mut words = line.split(['\0', ' ']);
                words.find(|word| word == option)?;
                words.next().map(str::to_owned)
            };
            commands.iter().find_map(words)
        });
        Self {
            program: program.to_owned(),
            pages: known.map(|(pages, _, _)| *pages),
            config: config.filter(|path| path.starts_with('/')),
        }
    }

    /// Sets the path of the configuration file as parameter of all pages about the program. A value that the user gave
    /// has priority.
    pub(super) fn enter_config(&self, pages: &[&Advice], given: &mut BTreeMap<String, String>) {
        let Some(config) = &self.config else { return };
        for page in pages {
            let about = self.pages.is_some_and(|about| is_about(&page.id, about));
            if about && page.parameters.contains_key(CONFIG) && !given.contains_key(CONFIG) {
                given
                    .entry(format!("{}.{CONFIG}", page.id))
                    .or_insert_with(|| config.clone());
            }
        }
    }

    /// Marks pages about other servers as not applicable.
    pub(super) fn leave_out_others(&self, found: &mut [FoundCandidate]) {
        for one in found {
            let other = SERVERS.iter().find(|(about, ..)| {
                self.pages != Some(about) && is_about(&one.candidate.id, about)
            });
            if let Some((about, ..)) = other {
                let why = format!(
                    "it is about {about}, and {} answers at this URL",
                    self.program
                );
                one.candidate.state = Applicability::DoesNotApply { why };
                one.change = None;
                one.arms = None;
            }
        }
    }
}

fn is_about(page: &str, server: &str) -> bool {
    page.strip_prefix(server)
        .is_some_and(|rest| rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_that_of_the_command_line() {
        let commands = [
            "nginx: worker process".to_owned(),
            "nginx: master process nginx -c /srv/nginx.conf".to_owned(),
        ];
        let server = LocalServer::read("nginx", &commands);
        assert_eq!(
            (server.pages, server.config.as_deref()),
            (Some("nginx"), Some("/srv/nginx.conf"))
        );
        let apache = LocalServer::read(
            "apache2",
            &["/usr/sbin/apache2\0-f\0/srv/a.conf\0".to_owned()],
        );
        assert_eq!(
            (apache.pages, apache.config.as_deref()),
            (Some("apache"), Some("/srv/a.conf"))
        );
        let usual = LocalServer::read("nginx", &["nginx: master process nginx".to_owned()]);
        assert_eq!(usual.config, None);
        let other = LocalServer::read("python3", &["python3\0-m\0http.server".to_owned()]);
        assert_eq!((other.pages, other.config), (None, None));
        assert!(is_about("nginx-gzip-level", "nginx") && !is_about("nginxy", "nginx"));
    }
}
