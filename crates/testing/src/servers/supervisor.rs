//! A supervisor that restarts a server whenever the server ends, and a script that triggers a restart.

use assay_host::process::{Dies, Running};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Shell script that runs a command in a loop and records each exit status. When the script ends, the kernel stops the
/// server.
const KEEPER: &str =
    "while :; do setpriv --pdeathsig QUIT -- \"$@\"; echo \"$?\" >> \"$0\"; sleep 0.1; done";

/// Shell script that stops the server and waits until it responds again. The script fails if the server has ended
/// several times without being stopped. One such end is tolerated, because the old process may still be shutting down.
const RESTART: &str = "#!/bin/sh
ended() { wc -l < ENDED; }
before=$(ended)
STOP || before=$((before + 1))
while ! READY; do
    if [ \"$(ended)\" -gt $((before + 2)) ]; then
        echo 'the server does not start' >&2
        exit 1
    fi
    sleep 0.05
done
";

/// Returns the program and arguments of a command, without its environment.
pub(crate) fn command_words(command: &Command) -> Vec<String> {
    let args = command.get_args();
    std::iter::once(command.get_program())
        .chain(args)
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Quotes a command for a shell.
fn quote_command(command: &Command) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    let words: Vec<String> = command_words(command).iter().map(quote).collect();
    words.join(" ")
}

/// Supervises a server and waits until it responds. Creates the script `restart` in the directory.
///
/// # Errors
/// The server does not start.
pub(crate) fn keep(
    dir: &Path,
    run: &Command,
    stop: &Command,
    ready: &Command,
) -> io::Result<Running> {
    let log = fs::File::options()
        .append(true)
        .create(true)
        .open(dir.join("log"))?;
    let ended = dir.join("ended");
    fs::write(&ended, "")?;
    let restart = RESTART
        .replace("ENDED", &format!("'{}'", ended.display()))
        .replace("STOP", &quote_command(stop))
        .replace("READY", &quote_command(ready));
    let program = dir.join("restart");
    fs::write(&program, restart)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let mut keeper = Command::new("sh");
    keeper
        .args(["-c", KEEPER])
        .arg(&ended)
        .args(command_words(run))
        .current_dir(dir)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let keeper = Running::start(keeper, Dies::WithAssay)?;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let ready = command_words(ready);
    while !Command::new(&ready[0])
        .args(&ready[1..])
        .output()?
        .status
        .success()
    {
        if std::time::Instant::now() > end {
            return Err(io::Error::other(fs::read_to_string(dir.join("log"))?));
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Ok(keeper)
}
