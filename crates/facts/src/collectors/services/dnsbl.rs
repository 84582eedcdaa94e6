//! DNS block lists that were closed. Some answer nothing any more, so a rule costs time and hits nothing;
//! others came to answer yes to every question, so all mail is spam. The sources stand in the page
//! `dnsbl-closed`.

/// Zones, each with all that lie below it.
pub(crate) const CLOSED: [&str; 10] = [
    "sorbs.net",
    "njabl.org",
    "ahbl.org",
    "dsbl.org",
    "ordb.org",
    "spamcannibal.org",
    "dnsbl.manitu.net",
    "wpbl.info",
    "virbl.bit.nl",
    "dnsbl.cyberlogic.net",
];

/// The closed list that a word names: `dnsbl.sorbs.net=127.0.0.10*2` of postscreen(8) and `dnsbl.sorbs.net.`
/// of SpamAssassin name `sorbs.net`.
pub(crate) fn closed(word: &str) -> Option<&'static str> {
    let name = word.split(['=', '*']).next().unwrap_or_default();
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    CLOSED
        .into_iter()
        .find(|zone| name == *zone || name.ends_with(&format!(".{zone}")))
}

/// All that a text names, between blanks, commas, quotation marks and brackets.
pub(crate) fn closed_in(text: &str) -> Vec<&'static str> {
    let words = text.split(|c: char| c.is_whitespace() || ",'\"()".contains(c));
    words.filter_map(closed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_closed_list() {
        for (word, zone) in [
            ("dnsbl.sorbs.net", Some("sorbs.net")),
            ("DNSBL.sorbs.NET.", Some("sorbs.net")),
            ("dnsbl.sorbs.net=127.0.0.[2..9]*2", Some("sorbs.net")),
            ("sorbs.net*-1", Some("sorbs.net")),
            ("notsorbs.net", None),
            ("sorbs.net.example.org", None),
            ("zen.spamhaus.org", None),
            ("", None),
        ] {
            assert_eq!(closed(word), zone, "{word}");
        }
        let rule = "eval:check_rbl('njabl-lastexternal', 'combined.njabl.org.', '127.0.0.2')";
        assert_eq!(closed_in(rule), ["njabl.org"]);
    }
}
