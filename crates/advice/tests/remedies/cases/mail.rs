//! Remedies for mail servers: Postfix and SpamAssassin.

use super::Act::{Do, Paste, PasteIn};
use super::{Case, REMOVE};

const POSTFIX: &str = "cp -an /host/etc/postfix/post* /etc/postfix/; postfix check";
const SPAMASSASSIN: &str =
    "cp -an /host/etc/spamassassin/*.pre /etc/spamassassin/; spamassassin --lint";

pub const CASES: &[&[Case]] = &[&[
    Case {
        page: "postfix-option-unread",
        trees: &[],
        needs: "postfix",
        furnish: "",
        acts: &[Do("remove it here", REMOVE)],
        accepted: POSTFIX,
    },
    Case {
        page: "postfix-queue-times-order",
        trees: &["backoff"],
        needs: "postfix",
        furnish: "",
        acts: &[Paste("postconf -X", &[("NAME", "minimal_backoff_time")])],
        accepted: POSTFIX,
    },
    Case {
        page: "postfix-queue-times-order",
        trees: &["bounces"],
        needs: "postfix",
        furnish: "",
        acts: &[Paste("postconf -X", &[("NAME", "maximal_queue_lifetime")])],
        accepted: POSTFIX,
    },
    Case {
        page: "postfix-soft-bounce",
        trees: &["main"],
        needs: "postfix",
        furnish: "",
        acts: &[Paste("postconf -X soft_bounce", &[])],
        accepted: POSTFIX,
    },
    Case {
        page: "postfix-soft-bounce",
        trees: &["service"],
        needs: "postfix",
        furnish: "",
        acts: &[Do("in master.cf remove the option", REMOVE)],
        accepted: POSTFIX,
    },
    Case {
        page: "spamassassin-loadplugin",
        trees: &[],
        needs: "spamassassin",
        furnish: "",
        acts: &[Do("Remove the line", REMOVE)],
        accepted: SPAMASSASSIN,
    },
    Case {
        page: "spamassassin-rule-off",
        trees: &[],
        needs: "spamassassin",
        furnish: "",
        acts: &[Do(
            "Remove the rule and its score",
            r#"name=${SUBJECT##*.}; sed -i -E "/^\s*(body|header|rawbody|meta|uri|full|describe|score|mimeheader)\s+$name\b/d" "$FILE""#,
        )],
        accepted: SPAMASSASSIN,
    },
    Case {
        page: "spamassassin-score-nothing",
        trees: &[],
        needs: "spamassassin",
        furnish: "",
        acts: &[Do("remove the line", REMOVE)],
        accepted: SPAMASSASSIN,
    },
    Case {
        page: "spamassassin-zip-by-type",
        trees: &[],
        needs: "spamassassin",
        furnish: "",
        acts: &[PasteIn(
            "mimeheader NAME Content-Type",
            &[],
            r#"name=${SUBJECT##*.}; sed -i "${LINE}c $(printf '%s' "$COMMAND" | sed "s/NAME/$name/; s/\\\\/&&/g")" "$FILE""#,
        )],
        accepted: SPAMASSASSIN,
    },
]];
