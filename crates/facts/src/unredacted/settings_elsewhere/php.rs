//! Collects settings of PHP from conf.d and from the pools of PHP-FPM.

use crate::gather::{Gather, lossy};
use crate::unredacted::lines_of_files::{Line, exists, files, note, read};
use assay_model::FactPlace;
use std::collections::BTreeMap;

const PHP: &str = "/etc/php";
/// Settings of PHP that a check uses.
const OF_PHP: [&str; 2] = ["display_errors", "allow_url_include"];

/// Notes the settings of PHP outside of php.ini that apply: those of each pool, which take precedence, and those of
/// conf.d where a pool has none of its own. Also notes which settings of php.ini have no effect for that reason.
pub(super) fn collect(g: &mut Gather<'_>) {
    let mut number = 0;
    let versions = g.list("php_extra", PHP);
    for version in versions.iter().map(|name| lossy(name)).take(20) {
        for part in ["fpm", "apache2"] {
            let dir = format!("{PHP}/{version}/{part}");
            let main = read_php(g, &[format!("{dir}/php.ini")], &str::to_owned);
            let more = files(g, "php_extra", &format!("{dir}/conf.d"), ".ini");
            let more = read_php(g, &more, &str::to_owned);
            let mut pools = Vec::new();
            if part == "fpm" {
                for path in files(g, "php_extra", &format!("{dir}/pool.d"), ".conf") {
                    pools.push(read_php(g, &[path], &inner_name));
                }
            }
            for name in OF_PHP {
                let everywhere =
                    !pools.is_empty() && pools.iter().all(|pool| pool.contains_key(name));
                let mut applied: Vec<&(String, FactPlace)> =
                    pools.iter().filter_map(|pool| pool.get(name)).collect();
                applied.extend(more.get(name).filter(|_| !everywhere));
                for (value, place) in applied {
                    number += 1;
                    let which = number.to_string();
                    let properties = [(name, value.as_str().into())];
                    note(g, "php_extra", &which, place, &properties);
                }
                // Without any line, PHP shows errors (main.c, display_errors: default "1").
                let unsaid = !main.contains_key(name) && !more.contains_key(name) && !everywhere;
                let ini = format!("{dir}/php.ini");
                if name == "display_errors" && unsaid && exists(g, &ini) {
                    number += 1;
                    let (which, place) = (number.to_string(), FactPlace::from(ini.as_str()));
                    note(g, "php_extra", &which, &place, &[(name, "1".into())]);
                }
                if let Some((_, place)) = main.get(name) {
                    let later = everywhere || more.contains_key(name);
                    let which = format!("{}-{part}", version.replace('.', "-"));
                    let properties = [(later_name(name), later.into())];
                    note(g, "php", &which, place, &properties);
                }
            }
        }
    }
}

fn later_name(name: &str) -> &'static str {
    match name {
        "display_errors" => "display_errors_later",
        _ => "allow_url_include_later",
    }
}

/// Returns the setting in the brackets of a pool's line, such as `php_flag[display_errors]`.
fn inner_name(name: &str) -> String {
    let inner = name
        .split_once('[')
        .map(|(_, inner)| inner.trim_end_matches(']'));
    inner.unwrap_or_default().to_owned()
}

/// Reads the last value of each setting of these files.
fn read_php(
    g: &mut Gather<'_>,
    paths: &[String],
    name_of: &dyn Fn(&str) -> String,
) -> BTreeMap<&'static str, (String, FactPlace)> {
    let mut last = BTreeMap::new();
    for path in paths {
        for line in read(g, "php_extra", path) {
            take(&line, name_of, &mut last);
        }
    }
    last
}

/// If a check uses the setting on this line, stores the setting in `last`.
fn take(
    line: &Line,
    name_of: impl Fn(&str) -> String,
    last: &mut BTreeMap<&'static str, (String, FactPlace)>,
) {
    let text = line.text.trim();
    let Some((name, value)) = text
        .split_once('=')
        .filter(|_| !text.starts_with([';', '#']))
    else {
        return;
    };
    // Names in ini files are case-sensitive.
    let name = name_of(name.trim());
    let value = value.split(';').next().unwrap_or_default().trim();
    let value = value.trim_matches(['"', '\'']).to_lowercase();
    for known in OF_PHP {
        if name == known {
            last.insert(known, (value.clone(), line.place.clone()));
        }
    }
}
