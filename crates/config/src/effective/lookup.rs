//! Finds the settings that take effect in a scope.

use super::ssh_match::Connection;
use super::{
    ConfigProblem, Effective, Program, Scope, ScopeId, Setting, dovecot, nginx, ssh, ssh_match,
};
use std::collections::HashSet;

/// Rule that selects which of several lines for one key in one scope take effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    First,
    Last,
    /// A line with the value `none` if there is one, otherwise the first line.
    NoneOrFirst,
    /// The first line. If its second word is missing or `none`, also the first line that has a second word.
    Halves,
    /// The last line. If its value is a single number, also the last earlier line with three numbers.
    LastWithRate,
    All,
}

impl Effective {
    /// Iterates over all scopes in the order in which they begin. The first scope is the root.
    pub fn scopes(&self) -> impl Iterator<Item = (ScopeId, &Scope)> {
        self.scopes
            .iter()
            .enumerate()
            .map(|(at, scope)| (ScopeId(at), scope))
    }

    /// Returns all settings in the order in which the program reads them.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Returns the scope with this id.
    #[must_use]
    pub fn scope(&self, id: ScopeId) -> &Scope {
        // An id of another configuration returns the root.
        self.scopes.get(id.0).unwrap_or(&self.scopes[0])
    }

    /// Returns the heads of the enclosing blocks and of the scope itself, outermost first.
    #[must_use]
    pub fn path(&self, id: ScopeId) -> Vec<&[String]> {
        let mut path: Vec<&[String]> = self
            .outward(id)
            .map(|id| &self.scope(id).head[..])
            .filter(|head| !head.is_empty())
            .collect();
        path.reverse();
        path
    }

    /// Returns the scopes with this path of heads. Each head is one line with single spaces. `["http", "server"]` may
    /// match many scopes, `["http"]` matches one, and `[]` is the root.
    #[must_use]
    pub fn find(&self, path: &[&str]) -> Vec<ScopeId> {
        let is = |id: &ScopeId| {
            let heads = self.path(*id);
            heads.len() == path.len()
                && heads
                    .iter()
                    .zip(path)
                    .all(|(head, wanted)| head.join(" ") == *wanted)
        };
        self.scopes().map(|(id, _)| id).filter(is).collect()
    }

    /// Returns the settings that take effect for a key in a scope, including inherited settings. The result is one
    /// setting, or all settings of a list. It is empty if the program uses its default. It has two settings if the
    /// second supplies a part that the first lacks: the interval of `RekeyLimit`, or the rate of `MaxStartups`.
    /// For sshd and ssh, this function considers only this scope and the enclosing scopes. Other blocks may match at
    /// the same time; see [`Effective::get_for`].
    #[must_use]
    pub fn get(&self, scope: ScopeId, key: &str) -> Vec<&Setting> {
        self.at(self.counting(scope, &self.key(key)))
    }

    /// Like [`Effective::get`], but returns indices of settings.
    fn counting(&self, scope: ScopeId, key: &str) -> Vec<usize> {
        let rule = self.rule(key);
        let chain = self.chain(scope, key);
        if self.program == Program::Ssh {
            return self.pick(self.within(&chain, key), rule);
        }
        let inside = |scope: ScopeId| {
            let hider = self.within_one(scope, ssh::hidden_by(self.program, key));
            let said = self.within_one(scope, key).iter().copied();
            said.filter(|at| hider.first().is_none_or(|hider| at < hider))
        };
        if rule == Rule::Halves {
            return self.pick(chain.into_iter().flat_map(inside), rule);
        }
        for scope in chain {
            let found = self.pick(inside(scope), rule);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Returns the setting that takes effect for a key in a scope. For a list, returns its first setting.
    #[must_use]
    pub fn value(&self, scope: ScopeId, key: &str) -> Option<&Setting> {
        self.get(scope, key).into_iter().next()
    }

    /// Like [`Effective::value`], but fails if the value is uncertain.
    ///
    /// # Errors
    /// The problem that may hide another value, such as a file that could not be read.
    pub fn certain(&self, scope: ScopeId, key: &str) -> Result<Option<&Setting>, &ConfigProblem> {
        let key = &self.key(key)[..];
        let at = self.counting(scope, key).first().copied();
        let around: Vec<ScopeId> = self.outward(scope).collect();
        let could = |problem: &&ConfigProblem| {
            let related =
                around.contains(&problem.scope) || self.chain(scope, key).contains(&problem.scope);
            let reaches = match (self.program, self.rule(key), at) {
                // A keyword that hides other settings comes before them.
                _ if !ssh::hidden_by(self.program, key).is_empty() => true,
                (_, _, None) | (Program::Nginx, ..) => true,
                (_, Rule::First, Some(at)) => problem.before <= at,
                (_, Rule::Last, Some(at)) => problem.before > at,
                (_, Rule::All | Rule::NoneOrFirst | Rule::Halves | Rule::LastWithRate, _) => true,
            };
            problem.trouble.hides() && related && reaches
        };
        match self.problems.iter().find(could) {
            Some(problem) => Err(problem),
            None => Ok(at.and_then(|at| self.settings.get(at))),
        }
    }

    /// Returns the lines for a key that have no effect in a scope, because other lines take precedence. The lines may
    /// be in the scope or in scopes from which it inherits.
    #[must_use]
    pub fn overridden(&self, scope: ScopeId, key: &str) -> Vec<&Setting> {
        let key = &self.key(key)[..];
        let counts: HashSet<usize> = self.counting(scope, key).into_iter().collect();
        let said = self.within(&self.chain(scope, key), key);
        self.at(said.into_iter().filter(|at| !counts.contains(at)))
    }

    /// For sshd and ssh, returns the settings that take effect for a key and a connection, considering all matching
    /// blocks. For other programs, returns the settings of the root.
    ///
    /// # Errors
    /// A block has a line for this key, and it is unknown whether the connection meets the criteria of this block.
    pub fn get_for(&self, connection: &Connection, key: &str) -> Result<Vec<&Setting>, &Scope> {
        if !matches!(self.program, Program::Sshd | Program::Ssh) {
            return Ok(self.get(ScopeId::ROOT, key));
        }
        let key = &self.key(key)[..];
        let rule = self.rule(key);
        if (self.program, key) == (Program::Ssh, ssh::EVERYWHERE) {
            return Ok(self.at(self.pick(self.said(key), rule)));
        }
        let outside = |at: &usize| self.settings[*at].scope == ScopeId::ROOT;
        let mut applies = self.applying(connection, key, rule)?;
        let hiders = self.applying(connection, ssh::hidden_by(self.program, key), Rule::All)?;
        let hider = |out: bool| hiders.iter().find(|at| outside(at) == out);
        let hiders = [hider(false), hider(true)];
        applies.retain(|at| hiders[usize::from(outside(at))].is_none_or(|hider| at < hider));
        // In sshd a matching block takes precedence over the lines outside of blocks.
        if self.program == Program::Sshd {
            match rule {
                Rule::Halves => applies.sort_by_key(outside),
                _ if !applies.iter().all(outside) => applies.retain(|at| !outside(at)),
                _ => {}
            }
        }
        Ok(self.at(self.pick(applies, rule)))
    }

    /// Returns the lines for a key in all blocks that match a connection.
    fn applying(
        &self,
        connection: &Connection,
        key: &str,
        rule: Rule,
    ) -> Result<Vec<usize>, &Scope> {
        let mut applies = Vec::new();
        let mut enough = false;
        for at in self.said(key) {
            let scope = self.settings[at].scope;
            let mut all = Some(true);
            for id in self.outward(scope).filter(|id| *id != ScopeId::ROOT) {
                let one = ssh_match::match_applies(&self.scope(id).head, connection);
                all = match (all, one) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
            }
            match all {
                Some(true) => {
                    applies.push(at);
                    enough |= self.program == Program::Ssh || scope != ScopeId::ROOT;
                }
                Some(false) => {}
                // A later line has no effect, so the undecided block is harmless.
                None if rule == Rule::First && enough => {}
                None => return Err(self.scope(scope)),
            }
        }
        Ok(applies)
    }

    /// Iterates over a scope and its enclosing scopes, beginning with the scope itself.
    fn outward(&self, id: ScopeId) -> impl Iterator<Item = ScopeId> {
        std::iter::successors(Some(id), |id| self.scope(*id).parent)
    }

    /// Returns the scopes in which a key is looked up, in order of precedence.
    fn chain(&self, scope: ScopeId, key: &str) -> Vec<ScopeId> {
        match self.program {
            Program::Sshd | Program::Ssh | Program::Postfix | Program::Samba => {
                self.outward(scope).collect()
            }
            Program::Nginx => nginx::scope_chain(self, scope, key),
            Program::Dovecot => dovecot::scope_chain(self, scope),
            Program::Sysctl | Program::Systemd | Program::Nsswitch => vec![scope],
        }
    }

    /// Returns the indices of all settings of a key, in reading order.
    fn said(&self, key: &str) -> Vec<usize> {
        let scopes = self.by_key.get(key).into_iter().flatten();
        let mut said: Vec<usize> = scopes.flat_map(|(_, said)| said).copied().collect();
        said.sort_unstable();
        said
    }

    /// Returns the indices of the settings of a key in exactly one scope, in reading order.
    fn within_one(&self, scope: ScopeId, key: &str) -> &[usize] {
        let said = self.by_key.get(key).and_then(|scopes| scopes.get(&scope));
        said.map_or(&[], |said| &said[..])
    }

    /// Returns the indices of the settings of a key in several scopes, in reading order.
    fn within(&self, scopes: &[ScopeId], key: &str) -> Vec<usize> {
        let said = scopes.iter().flat_map(|scope| self.within_one(*scope, key));
        let mut said: Vec<usize> = said.copied().collect();
        said.sort_unstable();
        said
    }

    fn at(&self, numbers: impl IntoIterator<Item = usize>) -> Vec<&Setting> {
        let numbers = numbers.into_iter();
        numbers.filter_map(|at| self.settings.get(at)).collect()
    }

    /// Returns the normalised key, as it is stored in settings.
    fn key(&self, key: &str) -> String {
        match self.program {
            Program::Sshd | Program::Ssh => ssh::normalize_keyword(self.program, key),
            Program::Sysctl => super::dropin::dotted_name(key),
            Program::Samba => super::samba::normalize_name(key),
            _ => key.to_owned(),
        }
    }

    fn rule(&self, key: &str) -> Rule {
        match self.program {
            Program::Sshd | Program::Ssh => ssh::rule(self.program, key),
            Program::Nginx => Rule::All,
            _ => Rule::Last,
        }
    }

    /// Selects the settings that take effect according to a rule.
    fn pick(&self, said: impl IntoIterator<Item = usize>, rule: Rule) -> Vec<usize> {
        let mut said = said.into_iter();
        let found = |at: &usize| &self.settings[*at];
        match rule {
            Rule::NoneOrFirst => {
                let said: Vec<usize> = said.collect();
                let none = |at: &&usize| found(at).value.eq_ignore_ascii_case(b"none");
                let none = said.iter().find(none);
                none.or(said.first()).copied().into_iter().collect()
            }
            Rule::Halves => {
                let first = said.next();
                let whole = |at: &usize| {
                    let second = found(at).words.get(1);
                    second.is_some_and(|word| !word.eq_ignore_ascii_case(b"none"))
                };
                let second = match &first {
                    Some(first) if !whole(first) => said.find(whole),
                    _ => None,
                };
                first.into_iter().chain(second).collect()
            }
            Rule::LastWithRate => {
                let said: Vec<usize> = said.collect();
                let whole = |at: &&usize| found(at).value.contains(&b':');
                let rate = said.iter().rfind(whole);
                let last = said.last();
                let rate = rate.filter(|_| last.is_some_and(|last| !whole(&last)));
                last.into_iter().chain(rate).copied().collect()
            }
            Rule::First => said.next().into_iter().collect(),
            Rule::Last => said.last().into_iter().collect(),
            Rule::All => said.collect(),
        }
    }
}
