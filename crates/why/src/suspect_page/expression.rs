//! CEL expressions over numbers and texts. Variables: `m` contains numbers of the machine, `e` numbers of the entity,
//! `texts` texts of the entity, `machine_texts` texts of the machine, and `facts` settings of the machine as texts.

use crate::machine_snapshot::{FACT, Numbers};
use crate::window::{WatchWindow, WatchedEntity};
use cel::{Context, Program, Value};
use std::collections::{BTreeMap, HashMap};

/// Names of the variables.
const NAMES: [&str; 5] = ["m", "e", "texts", "machine_texts", "facts"];

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Expression(Program);

/// Values of the variables for one entity of a machine.
pub(crate) struct Scope(Context<'static, 'static>);

impl Scope {
    /// Returns the values of the variables for an entity; for the machine itself, `e` equals `m`.
    pub(crate) fn new(window: &WatchWindow, entity: &WatchedEntity) -> Self {
        let mut context = Context::default();
        let numbers = |numbers: &Numbers| -> HashMap<String, Value> {
            let pairs = numbers.iter();
            pairs
                .map(|(key, value)| (key.clone(), Value::Float(*value)))
                .collect()
        };
        let texts = |texts: &BTreeMap<String, String>| -> HashMap<String, Value> {
            let pairs = texts.iter();
            pairs
                .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
                .collect()
        };
        context.add_variable_from_value("m", numbers(&window.machine.numbers));
        context.add_variable_from_value("e", numbers(&entity.numbers));
        context.add_variable_from_value("texts", texts(&entity.texts));
        context.add_variable_from_value("machine_texts", texts(&window.machine.texts));
        let facts = window.machine.texts.iter();
        let facts: BTreeMap<String, String> = facts
            .filter_map(|(key, text)| Some((key.strip_prefix(FACT)?.to_owned(), text.clone())))
            .collect();
        context.add_variable_from_value("facts", texts(&facts));
        Self(context)
    }
}

impl Expression {
    /// Parses an expression.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let program = Program::compile(source).map_err(|errors| errors.to_string())?;
        let references = program.references();
        let mut variables = references.variables().into_iter();
        if let Some(name) = variables.find(|name| !NAMES.contains(name) && !name.starts_with('@')) {
            return Err(format!(
                "`{name}` is not known; expressions use {}",
                NAMES.join(", ")
            ));
        }
        Ok(Self(program))
    }

    /// Returns whether the expression is true; false if it uses a number that is missing.
    pub(crate) fn is_true(&self, scope: &Scope) -> bool {
        matches!(self.0.execute(&scope.0), Ok(Value::Bool(true)))
    }

    /// Returns the value of the expression; `None` if it uses a number that is missing.
    pub(crate) fn number(&self, scope: &Scope) -> Option<f64> {
        match self.0.execute(&scope.0).ok()? {
            Value::Float(number) => Some(number).filter(|number| number.is_finite()),
            Value::Int(number) => Some(number as f64),
            Value::UInt(number) => Some(number as f64),
            _ => None,
        }
    }
}
