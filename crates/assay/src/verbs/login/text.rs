//! Formats the result of `assay login` for a terminal.

use super::Measured;
use super::each_module::ModuleTimes;
use assay_login::concurrent_logins::Crowd;
use assay_login::{LoginPart, WholeTime, share_of_time};
use assay_model::Nanos;
use assay_render::Style;
use assay_render::table::render_table;
use assay_render::text::escape_line;
use assay_render::units::{format_latency, format_plural};
use std::fmt::Write as _;

fn nanos(time: Nanos) -> String {
    format_latency(time.0 as f64)
}

/// Formats the whole report, beginning with the most important parts.
pub fn of(measured: &Measured, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold(&escape_line(&measured.target)));
    if measured.logins.is_empty() && measured.failed.is_none() {
        out.push_str("Interrupted before a login had ended.\n");
        return out;
    }
    if measured.healthy && measured.crowds.is_empty() && measured.each_module.is_none() {
        style.write_paragraph(&mut out, "", 0, &healthy(measured));
        return out;
    }
    out.push_str(&parts(measured));
    out.push('\n');
    if let Some(failed) = &measured.failed {
        style.write_paragraph(&mut out, "", 0, &format!("Failed: {}", escape_line(failed)));
    }
    if let Some(failure) = &measured.failure
        && !failure.then.is_empty()
    {
        let text = format!(
            "In {}: {}.",
            failure.part.name(),
            escape_line(&failure.then)
        );
        style.write_paragraph(&mut out, "", 0, &text);
    }
    if measured.failed.is_none() {
        let text = match measured.healthy {
            true => healthy(measured),
            false => format!("{}.", logins_with_time(measured)),
        };
        style.write_paragraph(&mut out, "", 0, &text);
    }
    causes(&mut out, measured, style);
    if let Some(times) = &measured.each_module {
        module_times(&mut out, times);
    }
    if let Some(middle) = middle(&measured.control) {
        let text = format!(
            "\nOver a control socket (ControlMaster) a command takes {} instead of {}.",
            nanos(middle),
            nanos(command(measured))
        );
        out.push('\n');
        style.write_paragraph(&mut out, "", 0, text.trim());
    }
    crowds(&mut out, measured, style);
    out
}

/// Formats the verdict if no login was delayed.
fn healthy(measured: &Measured) -> String {
    let parts = measured.parts.iter();
    let parts: Vec<String> = parts
        .map(|part| format!("{} {}", part.part.name(), nanos(part.median)))
        .collect();
    format!(
        "Healthy: {}; nothing waits ({}).",
        logins_with_time(measured),
        parts.join(", ")
    )
}

fn logins(measured: &Measured) -> String {
    format_plural(measured.logins.len() as u64, "login", "logins")
}

/// Formats the number of logins, and the median and longest time of a whole login.
fn logins_with_time(measured: &Measured) -> String {
    let logins = logins(measured);
    match (
        WholeTime::of(&measured.logins, &|part| *part == LoginPart::Logout),
        measured.logins.len(),
    ) {
        (None, _) => logins,
        (Some(whole), 1) => format!("{logins}, {}", nanos(whole.median)),
        (Some(whole), _) => format!(
            "{logins}, median {}, longest {}",
            nanos(whole.median),
            nanos(whole.longest)
        ),
    }
}

/// Formats one row for each part of the login. A row has the median and longest time over the logins with this part,
/// and the part's share of the total time of all logins.
fn parts(measured: &Measured) -> String {
    let all = measured.logins.len();
    let rare = measured.parts.iter().any(|part| part.count < all);
    let rows: Vec<Vec<String>> = measured
        .parts
        .iter()
        .map(|part| {
            let share = share_of_time(&measured.logins, &part.part) * 100.0;
            let mut row = vec![
                part.part.name(),
                nanos(part.median),
                nanos(part.longest),
                format!("{share:.0} %"),
            ];
            if rare {
                row.push(format!("{} of {all}", part.count));
            }
            row
        })
        .collect();
    let mut heads = vec!["part", "median", "longest", "share"];
    if rare {
        heads.push("logins");
    }
    render_table(2, &"lrrrr"[..heads.len()], &heads, &rows)
}

/// Formats the PAM modules and the programs of pam_motd, slowest first.
fn module_times(out: &mut String, times: &ModuleTimes) {
    const SHOWN: usize = 12;
    let mut modules: Vec<_> = times.modules.iter().collect();
    modules.sort_by_key(|one| std::cmp::Reverse(one.took));
    let _ = writeln!(
        out,
        "\nModules of PAM in one login, in steps of 10 ms ({} ran)",
        times.modules.len()
    );
    let rows = modules.iter().take(SHOWN).map(|one| {
        let place = escape_line(&one.place);
        vec![
            one.kind.clone(),
            escape_line(&one.module),
            place,
            nanos(one.took),
        ]
    });
    let head = ["type", "module", "place", "time"];
    out.push_str(&render_table(2, "lllr", &head, &rows.collect::<Vec<_>>()));
    if times.motd.is_empty() {
        return;
    }
    let mut motd: Vec<_> = times.motd.iter().collect();
    motd.sort_by_key(|one| std::cmp::Reverse(one.took));
    out.push_str("\nPrograms of pam_motd, run one by one\n");
    let rows = motd.iter().take(SHOWN).map(|one| {
        let least = if one.is_cut { "over " } else { "" };
        let program = escape_line(&one.program.display().to_string());
        vec![program, format!("{least}{}", nanos(one.took))]
    });
    out.push_str(&render_table(
        2,
        "lr",
        &["program", "time"],
        &rows.collect::<Vec<_>>(),
    ));
}

/// Formats each cause with its time in seconds and its evidence, then the time for which no cause was found.
fn causes(out: &mut String, measured: &Measured, style: Style) {
    if measured.causes.is_empty() && measured.unexplained.is_empty() {
        return;
    }
    out.push_str("\nWhere the time goes\n");
    for cause in &measured.causes {
        let parts: Vec<String> = cause.parts.iter().map(LoginPart::name).collect();
        let count = match cause.logins == measured.logins.len() {
            true => String::new(),
            false => format!(" in {} of {}", cause.logins, logins(measured)),
        };
        // A rare wait has no meaningful median.
        let took = match cause.logins * 2 > measured.logins.len() {
            true => nanos(cause.took),
            false => format!("up to {}", nanos(cause.longest)),
        };
        let mut text = format!(
            "{took} of {}{count}: {}",
            parts.join(" and "),
            escape_line(&cause.what)
        );
        if let Some(seen) = &cause.seen {
            let _ = write!(text, " (seen: {})", escape_line(seen));
        }
        if !cause.then.is_empty() {
            let _ = write!(text, ". {}", capital(&escape_line(&cause.then)));
        }
        style.write_paragraph(out, "- ", 2, &text);
    }
    for open in &measured.unexplained {
        let mut text = format!(
            "{} of {}: not explained",
            nanos(open.took),
            open.part.name()
        );
        if let Some(within) = &open.within {
            let _ = write!(text, " ({})", escape_line(within));
        }
        let _ = write!(text, ". {}", capital(&escape_line(&open.then)));
        style.write_paragraph(out, "- ", 2, &text);
    }
}

/// Returns the text with a capital first letter.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

/// Returns the median time of a login without the start of the interactive shell.
fn command(measured: &Measured) -> Nanos {
    let prompt = |part: &LoginPart| matches!(part, LoginPart::Prompt | LoginPart::Logout);
    WholeTime::of(&measured.logins, &prompt).map_or(Nanos(0), |whole| whole.median)
}

fn middle(times: &[Nanos]) -> Option<Nanos> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len().checked_sub(1)? / 2).copied()
}

fn crowds(out: &mut String, measured: &Measured, style: Style) {
    let crowds: &[Crowd] = &measured.crowds;
    if crowds.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = crowds
        .iter()
        .map(|crowd| {
            let time = |time: Option<Nanos>| time.map_or_else(|| "-".to_owned(), nanos);
            vec![
                crowd.size.to_string(),
                crowd.took.len().to_string(),
                time(crowd.median()),
                time(crowd.took.last().copied()),
            ]
        })
        .collect();
    out.push('\n');
    out.push_str(&render_table(
        2,
        "rrrr",
        &["at once", "got in", "median", "longest"],
        &rows,
    ));
    for crowd in crowds {
        for (why, count) in &crowd.refused {
            let text = format!(
                "{} at once: {count} failed: {}",
                crowd.size,
                escape_line(why)
            );
            style.write_paragraph(out, "", 2, &text);
        }
    }
    let turned_away = crowds.iter().flat_map(|crowd| &crowd.refused);
    let dropped = |why: &str| {
        [
            "kex_exchange",
            "ssh_exchange",
            "Connection reset",
            "Connection closed",
        ]
        .iter()
        .any(|said| why.contains(said))
    };
    if turned_away.clone().any(|(why, _)| dropped(why)) {
        let limit = match &measured.max_startups {
            Some(limit) => format!("its MaxStartups is {limit} (sshd -T)"),
            None => "its log shows why: MaxStartups, PerSourceMaxStartups and programs such as fail2ban do this".to_owned(),
        };
        let text = format!("The server closes connections before their login; {limit}.");
        style.write_paragraph(out, "", 0, &text);
    }
}
