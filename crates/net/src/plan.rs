//! Who does what, and for how long.

use crate::congestion;
use crate::role::{Role, builtin};
use serde::{Deserialize, Serialize};

/// Longest run in seconds.
pub const LONGEST: u32 = 3600;
/// Most people in a plan.
pub const MOST_PEOPLE: usize = 500;
/// Most algorithms of congestion control in a plan.
pub const MOST_ALGORITHMS: usize = 4;

/// A run as it is asked for; nothing is left to its execution but which device a person gets, where the
/// plan names none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Plan")]
pub struct NetPlan {
    /// Its name.
    pub name: String,
    /// Seconds that are measured.
    #[serde(default = "seconds")]
    pub seconds: u32,
    /// Algorithms of congestion control to send with, each in a run of its own; empty: whatever the devices use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<String>,
    /// The people.
    #[serde(rename = "person")]
    pub people: Vec<Person>,
    /// Roles of its own; one of the same name goes before assay's.
    #[serde(default, rename = "role", skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
}

fn seconds() -> u32 {
    60
}

/// One person with one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// For people.
    pub name: String,
    /// Names of roles, all at the same time.
    pub roles: Vec<String>,
    /// Name of the client. Without: the client with the person's own name, else the one of the run before, else
    /// the next one that joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// Why a text is no plan.
#[derive(Debug, thiserror::Error)]
pub enum NetPlanError {
    /// It is not TOML, or has other fields.
    #[error("this is no plan of `assay net`: {0}")]
    Form(#[from] Box<toml::de::Error>),
    /// It cannot be meant.
    #[error("{0}")]
    Meaning(String),
}

const BUILTIN: [(&str, &str); 2] = [
    ("household", include_str!("../plans/household.toml")),
    ("four", include_str!("../plans/four.toml")),
];

impl NetPlan {
    /// Names of the plans that assay brings.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// One of the plans that assay brings.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Self> {
        let (_, text) = BUILTIN.iter().find(|(own, _)| *own == name)?;
        match Self::read(text) {
            Ok(plan) => Some(plan),
            Err(error) => unreachable!("the plan {name} is part of the program: {error}"),
        }
    }

    /// Reads and checks one.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn read(text: &str) -> Result<Self, NetPlanError> {
        let plan: Self = toml::from_str(text).map_err(Box::new)?;
        plan.check().map_err(NetPlanError::Meaning)?;
        Ok(plan)
    }

    /// Whether it can be meant. The server asks it again: what comes over a network was not checked.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=LONGEST).contains(&self.seconds) {
            return Err(format!(
                "`seconds = {}`: a run takes 1 to {LONGEST}",
                self.seconds
            ));
        }
        if self.people.is_empty() || self.people.len() > MOST_PEOPLE {
            return Err(format!("a plan has 1 to {MOST_PEOPLE} people"));
        }
        if self.name.len() > 100 || self.roles.len() > 50 {
            return Err("a plan has a name of at most 100 bytes and at most 50 roles".to_owned());
        }
        self.check_congestion()?;
        self.roles.iter().try_for_each(Role::check)?;
        let mut names: Vec<&str> = Vec::new();
        let mut clients: Vec<&str> = Vec::new();
        for person in &self.people {
            let name = person.name.escape_debug();
            if person.name.is_empty() || person.name.len() > 60 {
                return Err(format!("the person `{name}`: a name has 1 to 60 bytes"));
            }
            if names.contains(&&*person.name) {
                return Err(format!("two people are called `{name}`"));
            }
            names.push(&person.name);
            if let Some(client) = &person.client {
                if clients.contains(&&**client) {
                    return Err(format!(
                        "two people have the client `{}`",
                        client.escape_debug()
                    ));
                }
                clients.push(client);
            }
            if person.roles.is_empty() || person.roles.len() > 8 {
                return Err(format!("the person `{name}` has 1 to 8 roles"));
            }
            self.roles_of(person)?;
        }
        Ok(())
    }

    fn check_congestion(&self) -> Result<(), String> {
        if self.congestion.len() > MOST_ALGORITHMS {
            return Err(format!(
                "`congestion` names at most {MOST_ALGORITHMS} algorithms"
            ));
        }
        for (at, name) in self.congestion.iter().enumerate() {
            let shown = name.escape_debug();
            if !congestion::is_name(name) {
                return Err(format!(
                    "`congestion`: `{shown}` cannot be an algorithm of the kernel, such as cubic, bbr or reno"
                ));
            }
            if self.congestion[..at].contains(name) {
                return Err(format!("`congestion` names `{shown}` twice"));
            }
        }
        Ok(())
    }

    /// Splits the plan into runs: one for each algorithm of congestion control, or itself.
    #[must_use]
    pub fn runs(&self) -> Vec<Self> {
        if self.congestion.len() < 2 {
            return vec![self.clone()];
        }
        let with = |name: &String| Self {
            congestion: vec![name.clone()],
            ..self.clone()
        };
        self.congestion.iter().map(with).collect()
    }

    /// The roles of a person, whole.
    ///
    /// # Errors
    /// There is no role of that name.
    pub fn roles_of(&self, person: &Person) -> Result<Vec<Role>, String> {
        let own = builtin();
        let find = |name: &String| {
            let mut all = self.roles.iter().chain(&own);
            all.find(|role| role.name == *name).cloned().ok_or_else(|| {
                let known: Vec<&str> = own.iter().map(|role| &*role.name).collect();
                format!(
                    "the person `{}` has the role `{}`, which there is not; there are {}, and those that a plan brings as [[role]]",
                    person.name.escape_debug(),
                    name.escape_debug(),
                    known.join(", ")
                )
            })
        };
        person.roles.iter().map(find).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_assay_can_be_meant() {
        for name in NetPlan::builtin_names() {
            assert_eq!(NetPlan::builtin(name).unwrap().name, name);
        }
        assert!(NetPlan::builtin("nothing").is_none());
    }

    #[test]
    fn the_example_of_the_book_is_a_plan() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/net-plans.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let plan = NetPlan::read(rest.split_once("```").unwrap().0).unwrap();
        assert_eq!((plan.people.len(), plan.runs().len()), (3, 2));
    }

    #[test]
    fn what_is_no_plan() {
        let person = "[[person]]\nname = 'a'\nroles = ['voip']\n";
        assert!(NetPlan::read(&format!("name = 'x'\n{person}")).is_ok());
        let both = format!("name = 'x'\ncongestion = ['cubic', 'bbr']\n{person}");
        let runs = NetPlan::read(&both).unwrap().runs();
        assert_eq!(runs.len(), 2);
        assert_eq!(runs[1].congestion, ["bbr"]);
        for bad in [
            String::new(),
            "name = 'x'\nperson = []".to_owned(),
            format!("name = 'x'\n{person}{person}"),
            format!("name = 'x'\nseconds = 0\n{person}"),
            format!("name = 'x'\nsecond = 1\n{person}"),
            format!("name = 'x'\ncongestion = ['BBR']\n{person}"),
            format!("name = 'x'\ncongestion = ['bbr', 'bbr']\n{person}"),
            "name = 'x'\n[[person]]\nname = 'a'\nroles = ['sleeping']\n".to_owned(),
            "name = 'x'\n[[person]]\nname = 'a'\nroles = []\n".to_owned(),
        ] {
            assert!(NetPlan::read(&bad).is_err(), "{bad}");
        }
    }
}
