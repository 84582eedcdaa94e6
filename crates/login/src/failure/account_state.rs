//! Reasons for which a server refuses an account that exists: shadow(5), the shell, nologin(5), AllowUsers.

use super::FailureKind;

/// What the server's files contain about an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountState {
    /// Name of the user.
    pub user: String,
    /// Ages of the password and the account, if shadow is readable.
    pub shadow: Option<ShadowEntry>,
    /// Today, in days since 1970.
    pub today: i64,
    /// The login shell, if it is no program that can be started.
    pub missing_shell: Option<String>,
    /// The file that turns all users but root away, if there is one.
    pub nologin: Option<String>,
}

/// Fields of a line of shadow(5); the hash is not kept. Days are counted since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShadowEntry {
    /// The password begins with `!`.
    pub is_locked: bool,
    /// Day of the last change; 0 asks for a new password at the next login.
    pub changed: Option<i64>,
    /// Most days of a password.
    pub longest: Option<i64>,
    /// Day on which the account expires.
    pub expires: Option<i64>,
}

impl ShadowEntry {
    /// Parses a line `USER:PASSWORD:CHANGED:LEAST:MOST:WARN:INACTIVE:EXPIRES:`.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim_end().split(':').collect();
        let day = |at: usize| fields.get(at)?.parse::<i64>().ok();
        Some(Self {
            is_locked: fields.get(1)?.starts_with('!'),
            changed: day(2),
            longest: day(4),
            expires: day(7).filter(|day| *day >= 0),
        })
    }

    fn has_old_password(&self, today: i64) -> bool {
        let is_old = |changed: i64| {
            self.longest
                .is_some_and(|longest| longest >= 0 && changed.saturating_add(longest) < today)
        };
        self.changed
            .is_some_and(|changed| changed == 0 || is_old(changed))
    }
}

impl AccountState {
    /// Names the reason why sshd refused this account, with the evidence; `None` where the files show none. `sshd` is
    /// its effective configuration.
    pub(super) fn name_refusal(
        &self,
        failure: FailureKind,
        sshd: &[(String, String)],
    ) -> Option<(FailureKind, String)> {
        use FailureKind as Kind;
        let values = |keyword: &'static str| {
            let all = sshd.iter().filter(move |(name, _)| name == keyword);
            all.map(|(_, value)| value.as_str())
        };
        let has_pam = values("usepam").any(|value| value == "yes");
        let is_refused = matches!(
            failure,
            Kind::AuthenticationRefused | Kind::ClosedInAuthentication
        );
        let shadow = self.shadow.unwrap_or_default();
        let user = &self.user;
        if is_refused && values("denyusers").any(|pattern| matches_name(pattern, user)) {
            return Some((
                Kind::UserNotAllowed,
                format!("sshd -T: denyusers names {user}"),
            ));
        }
        let mut allowed = values("allowusers").peekable();
        // A pattern with a host is not judged.
        if is_refused
            && allowed.peek().is_some()
            && allowed.all(|pattern| !pattern.contains('@') && !matches_name(pattern, user))
        {
            let seen = format!("sshd -T: allowusers does not name {user}");
            return Some((Kind::UserNotAllowed, seen));
        }
        if let Some(shell) = self.missing_shell.as_ref().filter(|_| is_refused) {
            let seen = format!("getent passwd: the shell {shell} is no program");
            return Some((Kind::ShellMissing, seen));
        }
        if let Some(file) = self
            .nologin
            .as_ref()
            .filter(|_| is_refused && user != "root")
        {
            return Some((Kind::LoginsDisabled, format!("{file} exists")));
        }
        if let Some(day) = shadow
            .expires
            .filter(|day| is_refused && *day <= self.today)
        {
            let seen = format!("shadow: the account expired {} days ago", self.today - day);
            return Some((Kind::AccountExpired, seen));
        }
        // With PAM, a locked password does not keep keys out.
        if is_refused && shadow.is_locked && !has_pam {
            return Some((
                Kind::AccountLocked,
                "shadow: the password is locked (!)".to_owned(),
            ));
        }
        let asks_for_password = failure == Kind::SessionEnded || is_refused;
        (asks_for_password && shadow.has_old_password(self.today)).then(|| {
            let seen = "shadow: the password has to be changed at this login";
            (Kind::PasswordExpired, seen.to_owned())
        })
    }
}

/// Whether a pattern of sshd_config(5) with `*` and `?` matches a name.
fn matches_name(pattern: &str, name: &str) -> bool {
    let Some(first) = pattern.chars().next() else {
        return name.is_empty();
    };
    let rest = &pattern[first.len_utf8()..];
    match first {
        '*' => {
            let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.any(|at| matches_name(rest, &name[at..]))
        }
        _ => name.chars().next().is_some_and(|letter| {
            (first == '?' || first == letter) && matches_name(rest, &name[letter.len_utf8()..])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_needs_evidence() {
        use FailureKind as Kind;
        let state = |shadow: &str| AccountState {
            user: "anna".to_owned(),
            shadow: ShadowEntry::parse(shadow),
            today: 20_000,
            ..AccountState::default()
        };
        let sshd = |lines: &[(&str, &str)]| -> Vec<(String, String)> {
            let lines = lines.iter();
            lines
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let (plain, pam) = (sshd(&[("usepam", "no")]), sshd(&[("usepam", "yes")]));
        let kind = |state: &AccountState, failure, sshd: &[_]| {
            state.name_refusal(failure, sshd).map(|(kind, _)| kind)
        };
        let refused = Kind::AuthenticationRefused;
        let healthy = state("anna:*:19000:0:99999:7:::");
        assert_eq!(kind(&healthy, refused, &plain), None);
        let locked = state("anna:!x:19000:0:99999:7:::");
        assert_eq!(kind(&locked, refused, &plain), Some(Kind::AccountLocked));
        assert_eq!(kind(&locked, refused, &pam), None, "a key is let in");
        let expired = state("anna:*:19000:0:99999:7::18000:");
        assert_eq!(
            kind(&expired, Kind::ClosedInAuthentication, &pam),
            Some(Kind::AccountExpired)
        );
        assert_eq!(kind(&expired, Kind::SessionEnded, &pam), None);
        for old in ["anna:*:0:0:99999:7:::", "anna:*:19000:0:90:7:::"] {
            assert_eq!(
                kind(&state(old), Kind::SessionEnded, &pam),
                Some(Kind::PasswordExpired)
            );
        }
        let only = sshd(&[("usepam", "no"), ("allowusers", "b*"), ("allowusers", "c?")]);
        assert_eq!(kind(&healthy, refused, &only), Some(Kind::UserNotAllowed));
        let also = sshd(&[("allowusers", "b*"), ("allowusers", "an?a")]);
        assert_eq!(kind(&healthy, refused, &also), None);
        let root = AccountState {
            user: "root".to_owned(),
            nologin: Some("/run/nologin".to_owned()),
            ..AccountState::default()
        };
        assert_eq!(kind(&root, refused, &pam), None);
    }
}
