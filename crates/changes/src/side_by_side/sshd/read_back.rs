//! Reads the present configuration of the second sshd.

use super::{OWN, Sshd, sshd_arguments};
use crate::side_by_side::ArmError;
use crate::side_by_side::child::Program;
use crate::side_by_side::teardown::Things;
use assay_loads::Cancel;
use std::collections::BTreeSet;

impl Sshd<'_> {
    /// Runs `sshd -T`. Returns the keywords that the arm sets and all values that differ from sshd's defaults.
    pub fn read_back(&self, things: &Things<'_>) -> Result<String, ArmError> {
        let program = Program {
            path: &self.program,
            dir: things.dir(),
            log: "read-back.log",
        };
        let mut args = sshd_arguments(things.dir(), "-T");
        let now = program.run(&args, &Cancel::default())?;
        args[2] = "/dev/null".into();
        let default = program.run(&args, &Cancel::default())?;
        Ok(summarize_settings(&now, &default, &self.set))
    }
}

fn summarize_settings(now: &str, default: &str, set: &[String]) -> String {
    let default: BTreeSet<&str> = default.lines().collect();
    let lines = now.lines().filter(|line| {
        let keyword = line.split_whitespace().next().unwrap_or_default();
        let wanted = set.iter().any(|name| name == keyword) || !default.contains(line);
        wanted && !OWN.contains(&keyword)
    });
    lines.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_told_even_where_it_is_the_default() {
        let now = "port 40001\nusedns no\nusepam yes\nx11forwarding no\n";
        let default = "port 22\nusedns no\nusepam no\nx11forwarding no\n";
        assert_eq!(summarize_settings(now, default, &[]), "usepam yes");
        assert_eq!(
            summarize_settings(now, default, &["usedns".to_owned()]),
            "usedns no, usepam yes"
        );
    }
}
