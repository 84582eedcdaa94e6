//! Remedies for Samba, which testparm validates.

use super::Act::Do;
use super::{Case, REMOVE};

const TESTPARM: &str = "testparm -s > /dev/null";

pub const CASES: &[&[Case]] = &[&[
    Case {
        page: "smb-guests-in-system",
        trees: &["default-of-all", "read-as-root"],
        needs: "testparm",
        furnish: "",
        acts: &[Do(
            "set `path` to a directory that holds only what is shared",
            r#"mkdir -p /srv/shared; sed -i -e "${LINE}c path = /srv/shared" -e 's/^read only = no/read only = yes/; s/^writable = yes/read only = yes/' "$FILE""#,
        )],
        accepted: TESTPARM,
    },
    Case {
        page: "smb-guests-in-system",
        trees: &[],
        needs: "testparm",
        furnish: "",
        acts: &[
            Do(
                "or write `guest ok = no`",
                r#"sed -i -E '/^(guest ok|public) =/s/=.*/= no/' "$FILE""#,
            ),
            Do(
                "remove `force user = root`",
                r#"sed -i '/^force user = root/d' "$FILE""#,
            ),
        ],
        accepted: TESTPARM,
    },
    Case {
        page: "smb-wide-links",
        trees: &[],
        needs: "testparm",
        furnish: "",
        acts: &[Do("Remove `wide links` at", REMOVE)],
        accepted: TESTPARM,
    },
]];
