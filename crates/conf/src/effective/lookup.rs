//! Which settings count in a scope.

use super::ssh_match::Connection;
use super::{Effective, Problem, Program, Scope, ScopeId, Setting, dovecot, nginx, ssh, ssh_match};

/// How several lines for one key come together in one scope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    First,
    Last,
    /// One that says `none`, wherever it stands, else the first.
    NoneOrFirst,
    All,
}

impl Effective {
    /// All scopes in the order in which they begin; the first is the root.
    pub fn scopes(&self) -> impl Iterator<Item = (ScopeId, &Scope)> {
        self.scopes
            .iter()
            .enumerate()
            .map(|(at, scope)| (ScopeId(at), scope))
    }

    /// The scope.
    #[must_use]
    pub fn scope(&self, id: ScopeId) -> &Scope {
        // Ids of another configuration lead to the root.
        self.scopes.get(id.0).unwrap_or(&self.scopes[0])
    }

    /// Heads of the blocks around a scope and of the scope itself, outermost first.
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

    /// The scopes with this path of heads, each in one line with single spaces: `["http", "server"]`
    /// may be many, `["http"]` is one, `[]` is the root.
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

    /// The settings that count for a key in a scope, inherited ones too: one, or all of a list;
    /// none when the program has its default.
    ///
    /// In sshd and ssh only this scope and those around it are looked at, not other blocks that may
    /// match at the same time: that is [`Effective::get_for`].
    #[must_use]
    pub fn get(&self, scope: ScopeId, key: &str) -> Vec<&Setting> {
        let key = &self.key(key)[..];
        let rule = self.rule(key);
        let chain = self.chain(scope, key);
        if self.program == Program::Ssh {
            return pick(
                self.said(key).filter(|said| chain.contains(&said.scope)),
                rule,
            );
        }
        for scope in chain {
            let found = pick(self.said(key).filter(|said| said.scope == scope), rule);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// The setting that counts; of a list the first.
    #[must_use]
    pub fn value(&self, scope: ScopeId, key: &str) -> Option<&Setting> {
        self.get(scope, key).into_iter().next()
    }

    /// As [`Effective::value`].
    ///
    /// # Errors
    /// The problem because of which it may be another one: a file that could not be read may say it.
    pub fn certain(&self, scope: ScopeId, key: &str) -> Result<Option<&Setting>, &Problem> {
        let found = self.get(scope, key);
        let around: Vec<ScopeId> = self.outward(scope).collect();
        let at = found.first().and_then(|found| {
            self.settings
                .iter()
                .position(|setting| std::ptr::eq(setting, *found))
        });
        let could = |problem: &&Problem| {
            let related =
                around.contains(&problem.scope) || self.chain(scope, key).contains(&problem.scope);
            let reaches = match (self.program, self.rule(&self.key(key)), at) {
                (_, _, None) | (Program::Nginx, ..) | (_, Rule::All | Rule::NoneOrFirst, _) => true,
                (_, Rule::First, Some(at)) => problem.before <= at,
                (_, Rule::Last, Some(at)) => problem.before > at,
            };
            problem.trouble.hides() && related && reaches
        };
        match self.problems.iter().find(could) {
            Some(problem) => Err(problem),
            None => Ok(found.into_iter().next()),
        }
    }

    /// The lines for a key that do not count in a scope because others win over them, there or in
    /// the scopes it inherits from.
    #[must_use]
    pub fn overridden(&self, scope: ScopeId, key: &str) -> Vec<&Setting> {
        let counts = self.get(scope, key);
        let key = &self.key(key)[..];
        let chain = self.chain(scope, key);
        self.said(key)
            .filter(|said| chain.contains(&said.scope))
            .filter(|said| !counts.iter().any(|counts| std::ptr::eq(*counts, *said)))
            .collect()
    }

    /// sshd and ssh: the settings that count for a key and a connection, over all blocks that match.
    /// For other programs, those of the root.
    ///
    /// # Errors
    /// The block whose criteria cannot be judged from what is known of the connection, where it has
    /// a line for this key.
    pub fn get_for(&self, connection: &Connection, key: &str) -> Result<Vec<&Setting>, &Scope> {
        if !matches!(self.program, Program::Sshd | Program::Ssh) {
            return Ok(self.get(ScopeId::ROOT, key));
        }
        let key = &self.key(key)[..];
        let rule = self.rule(key);
        if (self.program, key) == (Program::Ssh, ssh::EVERYWHERE) {
            return Ok(pick(self.said(key), rule));
        }
        let mut applies = Vec::new();
        for said in self.said(key) {
            let mut all = Some(true);
            for id in self.outward(said.scope).filter(|id| *id != ScopeId::ROOT) {
                let one = ssh_match::applies(&self.scope(id).head, connection);
                all = match (all, one) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
            }
            match all {
                Some(true) => applies.push(said),
                Some(false) => {}
                // A line that comes too late does not matter.
                None if rule == Rule::First
                    && applies.iter().any(|said: &&Setting| {
                        self.program == Program::Ssh || said.scope != ScopeId::ROOT
                    }) => {}
                None => return Err(self.scope(said.scope)),
            }
        }
        // To sshd a matching block wins over what stands outside of all.
        let inside = |said: &&&Setting| said.scope != ScopeId::ROOT;
        if self.program == Program::Sshd && applies.iter().any(|said| inside(&said)) {
            applies.retain(|said| said.scope != ScopeId::ROOT);
        }
        Ok(pick(applies.into_iter(), rule))
    }

    /// The scopes around one, from itself outwards.
    fn outward(&self, id: ScopeId) -> impl Iterator<Item = ScopeId> {
        std::iter::successors(Some(id), |id| self.scope(*id).parent)
    }

    /// Where a key is looked up, the first place first.
    fn chain(&self, scope: ScopeId, key: &str) -> Vec<ScopeId> {
        match self.program {
            Program::Sshd | Program::Ssh | Program::Postfix => self.outward(scope).collect(),
            Program::Nginx => nginx::chain(self, scope, key),
            Program::Dovecot => dovecot::chain(self, scope),
            Program::Sysctl | Program::Systemd | Program::Nsswitch => vec![scope],
        }
    }

    fn said<'a, 'k>(&'a self, key: &'k str) -> impl Iterator<Item = &'a Setting> + use<'a, 'k> {
        self.settings.iter().filter(move |said| said.key == key)
    }

    /// A key as the settings have it.
    fn key(&self, key: &str) -> String {
        match self.program {
            Program::Sshd | Program::Ssh => ssh::keyword(self.program, key),
            Program::Sysctl => super::dropin::sysctl_name(key),
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
}

fn pick<'a>(mut said: impl Iterator<Item = &'a Setting>, rule: Rule) -> Vec<&'a Setting> {
    match rule {
        Rule::NoneOrFirst => {
            let said: Vec<&Setting> = said.collect();
            let none = said
                .iter()
                .find(|said| said.value.eq_ignore_ascii_case(b"none"));
            none.or(said.first()).copied().into_iter().collect()
        }
        Rule::First => said.next().into_iter().collect(),
        Rule::Last => said.last().into_iter().collect(),
        Rule::All => said.collect(),
    }
}
