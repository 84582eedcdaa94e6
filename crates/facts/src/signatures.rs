//! Parses the output of `blkid -p` and `wipefs -n` (util-linux): the signatures on a device. Both are needed, because
//! each finds some signatures that the other does not.

use assay_host::CommandOutput;

/// Returns the words `key=value` in the output of `blkid -p -o export DEVICE`, such as `TYPE` and `PTTYPE`.
///
/// # Errors
/// The reason why the output is ambiguous. Exit status 2 means "nothing found" or "could not open" (blkid(8)). Only an
/// empty output distinguishes the two.
pub(crate) fn blkid(output: &CommandOutput) -> Result<Vec<String>, String> {
    let text = output.text();
    let interesting = ["TYPE=", "PTTYPE=", "USAGE="];
    let found: Vec<String> = text
        .lines()
        .filter(|line| interesting.iter().any(|start| line.starts_with(start)))
        .map(str::to_owned)
        .collect();
    match output.status {
        _ if !found.is_empty() => Ok(found),
        2 if output.stdout.is_empty() && output.stderr.is_empty() => Ok(Vec::new()),
        8 => Ok(vec!["several contradicting signatures".to_owned()]),
        0 if !text.trim().is_empty() => Ok(vec![text.trim().replace('\n', " ")]),
        _ => Err(format!("blkid: {}", output.complaint())),
    }
}

/// Returns the lines `offset,uuid,label,type` in the output of `wipefs -n -p DEVICE`.
///
/// # Errors
/// The reason why there is no result.
pub(crate) fn wipefs(output: &CommandOutput) -> Result<Vec<String>, String> {
    if !output.success() || !output.stderr.is_empty() {
        return Err(format!("wipefs: {}", output.complaint()));
    }
    let text = output.text();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    Ok(lines
        .map(|line| {
            let kind = line.rsplit(',').next().unwrap_or(line);
            let offset = line.split(',').next().unwrap_or_default();
            format!("{kind} at {offset}")
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(status: i32, stdout: &str, stderr: &str) -> CommandOutput {
        CommandOutput {
            status,
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    // Output of util-linux 2.38.1.
    #[test]
    fn blkid_answers() {
        let ext4 = "DEVNAME=/dev/loop9\nUUID=aa\nVERSION=1.0\nBLOCK_SIZE=4096\nTYPE=ext4\nUSAGE=filesystem\n";
        assert_eq!(
            blkid(&output(0, ext4, "")).unwrap(),
            ["TYPE=ext4", "USAGE=filesystem"]
        );
        assert_eq!(
            blkid(&output(0, "PTUUID=1\nPTTYPE=gpt\n", "")).unwrap(),
            ["PTTYPE=gpt"]
        );
        assert!(blkid(&output(2, "", "")).unwrap().is_empty());
        assert_eq!(
            blkid(&output(
                2,
                "",
                "blkid: error: /dev/vda: Operation not permitted\n"
            ))
            .unwrap_err(),
            "blkid: exit status 2: blkid: error: /dev/vda: Operation not permitted"
        );
        assert_eq!(blkid(&output(8, "", "ambivalent result")).unwrap().len(), 1);
        assert!(blkid(&output(0, "", "")).is_err());
    }

    #[test]
    fn wipefs_answers() {
        let two = "# offset,uuid,label,type\n0x200,,,gpt\n0x1fe,,,PMBR\n";
        assert_eq!(
            wipefs(&output(0, two, "")).unwrap(),
            ["gpt at 0x200", "PMBR at 0x1fe"]
        );
        assert!(wipefs(&output(0, "", "")).unwrap().is_empty());
        assert!(
            wipefs(&output(
                1,
                "",
                "wipefs: error: /dev/vda: probing initialization failed\n"
            ))
            .is_err()
        );
    }
}
