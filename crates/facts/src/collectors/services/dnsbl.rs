//! Lists DNS block lists that were shut down. Some no longer answer, so that a rule with such a list costs time without
//! effect. Others list every address, so that all mail is classified as spam. The page `dnsbl-closed` contains the
//! sources.

/// Zones that were shut down, with the date of the shutdown or of the first report of it. Subdomains of a zone are shut
/// down too.
pub(crate) const CLOSED: [(&str, &str); 23] = [
    ("sorbs.net", "2024-06"),
    ("njabl.org", "2013-03"),
    ("ahbl.org", "2015-01"),
    ("dsbl.org", "2008-05"),
    ("ordb.org", "2006-12"),
    ("spamcannibal.org", "2018-05"),
    ("dnsbl.manitu.net", "2025-01"),
    ("wpbl.info", "2025-07"),
    ("virbl.bit.nl", "2017-01"),
    ("dnsbl.cyberlogic.net", "2025-07"),
    ("inps.de", "2020-05"),
    ("emailbasura.org", "2019-10"),
    ("megarbl.net", "2019-11"),
    ("ubl.unsubscore.com", "2024-06"),
    ("spam.abuse.ch", "2019-02"),
    ("dnsbl.anonmails.de", "2024-11"),
    ("dnsbl.madavi.de", "2025-03"),
    ("dnsbl.darklist.de", "2023-04"),
    ("dynip.rothen.com", "2020-09"),
    ("rfc-ignorant.org", "2012-11"),
    ("opm.blitzed.org", "2006-05"),
    ("easynet.nl", "2003-12"),
    ("osirusoft.com", "2003-08"),
];

/// Returns the zone of [`CLOSED`] to which a word refers. For example, `dnsbl.sorbs.net=127.0.0.10*2` of postscreen(8),
/// `dnsbl.sorbs.net.` of SpamAssassin and `dnsbl.sorbs.net}}` in a macro of Postfix refer to `sorbs.net`.
pub(crate) fn closed(word: &str) -> Option<&'static str> {
    let name = word.split(['=', '*', '}']).next().unwrap_or_default();
    let name = name.trim_start_matches('{').trim_end_matches('.');
    let name = name.to_ascii_lowercase();
    let mut zones = CLOSED.into_iter().map(|(zone, _)| zone);
    zones.find(|zone| name == *zone || name.ends_with(&format!(".{zone}")))
}

/// Returns the date on which a block list was shut down; `zone` is from [`CLOSED`].
pub(crate) fn since(zone: &str) -> &'static str {
    let mut zones = CLOSED.into_iter();
    zones
        .find(|(known, _)| *known == zone)
        .map_or("", |(_, since)| since)
}

/// Returns all zones of [`CLOSED`] that occur in a text. Blanks, commas, quotation marks and brackets separate words.
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
            ("{dnsbl.sorbs.net}}", Some("sorbs.net")),
            ("dnsbl.inps.de", Some("inps.de")),
            ("notsorbs.net", None),
            ("sorbs.net.example.org", None),
            ("zen.spamhaus.org", None),
            ("", None),
        ] {
            assert_eq!(closed(word), zone, "{word}");
        }
        let rule = "eval:check_rbl('njabl-lastexternal', 'combined.njabl.org.', '127.0.0.2')";
        assert_eq!(closed_in(rule), ["njabl.org"]);
        for (zone, when) in CLOSED {
            assert_eq!(closed(zone), Some(zone));
            assert_eq!((since(zone), when.len()), (when, 7));
        }
    }
}
