//! Plans: which roles each person has in a run, and how long the run takes.

use crate::congestion;
use crate::role::{Role, builtin};
use serde::{Deserialize, Serialize};

/// Maximum length of a run in seconds.
pub const LONGEST: u32 = 3600;
/// Maximum number of people in a plan.
pub const MOST_PEOPLE: usize = 500;
/// Maximum number of congestion control algorithms in a plan.
pub const MOST_ALGORITHMS: usize = 4;

/// Description of a run. Only the assignment of devices to people without a named client is left to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Plan")]
pub struct NetPlan {
    /// Name of the plan, for reports.
    pub name: String,
    /// Duration of each run in seconds, at most [`LONGEST`].
    #[serde(default = "seconds")]
    pub seconds: u32,
    /// Names of congestion control algorithms. Each algorithm gets its own run. If empty, the devices use their
    /// defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<String>,
    /// People who take part, at most [`MOST_PEOPLE`].
    #[serde(rename = "person")]
    pub people: Vec<Person>,
    /// Roles of this plan. They take precedence over built-in roles of the same name.
    #[serde(default, rename = "role", skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
}

fn seconds() -> u32 {
    60
}

/// One person with one device, who takes part in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// Name of the person, for display.
    pub name: String,
    /// Names of the roles, which all run at the same time.
    pub roles: Vec<String>,
    /// Name of the client. Default: the client with the person's name, else the client of the previous run,
    /// else the next client that joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// Reasons why a text is not a valid plan.
#[derive(Debug, thiserror::Error)]
pub enum NetPlanError {
    /// The text is not TOML or has unknown fields.
    #[error("this is no plan of `assay net`: {0}")]
    Form(#[from] Box<toml::de::Error>),
    /// The plan is inconsistent or exceeds a limit. Contains the reason for users.
    #[error("{0}")]
    Meaning(String),
}

const BUILTIN: [(&str, &str); 2] = [
    ("household", include_str!("../plans/household.toml")),
    ("four", include_str!("../plans/four.toml")),
];

impl NetPlan {
    /// Returns the names of the built-in plans.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Returns the built-in plan with this name.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Self> {
        let (_, text) = BUILTIN.iter().find(|(own, _)| *own == name)?;
        match Self::read(text) {
            Ok(plan) => Some(plan),
            Err(error) => unreachable!("the plan {name} is part of the program: {error}"),
        }
    }

    /// Parses and checks a plan.
    ///
    /// # Errors
    /// See [`NetPlanError`].
    pub fn read(text: &str) -> Result<Self, NetPlanError> {
        let plan: Self = toml::from_str(text).map_err(Box::new)?;
        plan.check().map_err(NetPlanError::Meaning)?;
        Ok(plan)
    }

    /// Checks the plan. The server repeats this check, because requests are untrusted.
    ///
    /// # Errors
    /// The reason why the plan is invalid, for users.
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

    /// Splits the plan into one run per congestion control algorithm. A plan without algorithms is one run.
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

    /// Returns the definitions of a person's roles.
    ///
    /// # Errors
    /// A role is neither in the plan nor built in.
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
