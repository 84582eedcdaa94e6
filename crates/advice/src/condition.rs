//! Conditions: CEL expressions over facts, parameters, the target and the trial.
//!
//! `facts["disk.vda.scheduler"]` is the value of a fact. `"tool.zfs" in facts` is true if the fact exists.
//! `parameters["size"]` is the value of a parameter as text. `target.fstype` and other properties describe the layers
//! under the target (see [`crate::applies`]). `trial.size` is the size of the load in bytes. `version("qemu-img version
//! 7.2.0")` returns the version in a text; versions can be compared with `<`, `<=`, `>`, `>=`.
//! `debian_before("1:9.2p1-2", "1:9.2p1-2+deb12u3")` is true if the first Debian version is older.
//!
//! If one side of `&&` or `||` decides the result, CEL ignores the other side. Otherwise, an unknown or absent fact
//! makes the whole condition unknown, and the reason contains the fact.

mod deciding;

use crate::nearest_name;
use crate::version::Version;
use cel::common::traits::{Comparer, Container, Indexer};
use cel::common::types::{CelBool, CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{Context, Env, ExecutionError, Program, Value};
use std::any::Any;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Error for a text that is not a CEL expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    message: String,
}

/// Result of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    True,
    False,
    /// It is unknown whether the condition is true; contains the reason.
    Unknown(String),
}

/// What is known about a name that a condition may use.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    Value(serde_json::Value),
    /// The value exists or may exist, but could not be read; contains the reason.
    Unreadable(String),
}

/// One of the maps that a condition can use: its entries, and a record of the keys that were used.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Arc<Entries>);

/// A value, or the reason why it could not be read.
type Entry = Result<Box<dyn Val>, String>;

#[derive(Debug)]
struct Entries {
    /// Noun for a key of this map in messages, such as `fact`.
    what: &'static str,
    values: BTreeMap<String, Entry>,
    asked: Mutex<Vec<String>>,
}

impl Entries {
    /// Returns the entry of a key. If there is none, returns the entry of the nearest unreadable prefix, such as
    /// `samba` for `samba.server_signing`. The empty key is such a prefix if the subject could be read only partially.
    fn find(&self, key: &str) -> Option<&Entry> {
        self.values.get(key).or_else(|| {
            above(key)
                .filter_map(|key| self.values.get(key))
                .find(|entry| entry.is_err())
        })
    }
}

/// Returns the prefixes of a key, longest first. The last prefix is the empty key.
pub(crate) fn above(key: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(key);
    let shorter = std::iter::from_fn(move || {
        rest = rest
            .and_then(|key| key.rsplit_once('.'))
            .map(|(above, _)| above);
        rest
    });
    shorter.chain((!key.is_empty()).then_some(""))
}

impl Ledger {
    pub(crate) fn new(
        what: &'static str,
        known: impl IntoIterator<Item = (String, Known)>,
    ) -> Self {
        let value = |known| match known {
            Known::Value(value) => {
                Box::<dyn Val>::try_from(cel_value(&value)).map_err(|error| error.to_string())
            }
            Known::Unreadable(why) => Err(why),
        };
        Self(Arc::new(Entries {
            what,
            values: known
                .into_iter()
                .map(|(key, known)| (key, value(known)))
                .collect(),
            asked: Mutex::default(),
        }))
    }

    /// Returns the keys that were used since the previous call, sorted and without duplicates.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *asked)
    }

    fn look_up(&self, key: &dyn Val) -> Result<(String, Option<&Entry>), ExecutionError> {
        let key = key
            .downcast_ref::<CelString>()
            .ok_or_else(|| ExecutionError::function_error(self.0.what, "keys are texts"))?;
        let key = key.inner().to_owned();
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.contains(&key) {
            asked.push(key.clone());
        }
        let found = self.0.find(&key);
        Ok((key, found))
    }

    fn unreadable(&self, key: &str, why: &str) -> ExecutionError {
        ExecutionError::function_error(self.0.what, format!("{} `{key}`: {why}", self.0.what))
    }
}

impl Val for Ledger {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
}

impl Container for Ledger {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        match self.look_up(key)? {
            (_, None) => Ok(false),
            (_, Some(Ok(_))) => Ok(true),
            (key, Some(Err(why))) => Err(self.unreadable(&key, why)),
        }
    }
}

impl Indexer for Ledger {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match self.look_up(key)? {
            (_, Some(Ok(value))) => Ok(CowVal::Borrowed(value.as_ref())),
            (key, Some(Err(why))) => Err(self.unreadable(&key, why)),
            (key, None) => Err(ExecutionError::NoSuchKey(Arc::new(key))),
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Indexer::get(&*self, key).map(CowVal::into_owned)
    }
}

/// Converts a JSON value to a CEL value. CEL's integers are signed 64-bit integers. Larger numbers, which facts do not
/// contain, become decimals.
fn cel_value(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().map(cel_value).collect::<Vec<_>>().into(),
        Json::Object(_) => value.to_string().into(),
    }
}

static VERSION: Type = Type::new_unspecified_type("version");

impl Val for Version {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &VERSION
    }

    fn as_comparer(&self) -> Option<&dyn Comparer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Version {}

impl Comparer for Version {
    fn compare(&self, other: &dyn Val) -> Result<Ordering, ExecutionError> {
        let other = other.downcast_ref::<Self>().ok_or_else(|| {
            ExecutionError::function_error("version", "a version compares with version(\"…\") only")
        })?;
        Ok(self.cmp(other))
    }
}

/// Implements the function `version(text)` of conditions.
fn find_version(text: &CelString<'_>) -> Result<Version, ExecutionError> {
    Version::find(text.inner()).ok_or_else(|| {
        ExecutionError::function_error("version", format!("no version in `{}`", text.inner()))
    })
}

/// Implements the function `debian_before(version, other)` of conditions.
fn debian_before(version: &CelString<'_>, other: &CelString<'_>) -> CelBool {
    let order = crate::debian::compare(version.inner(), other.inner());
    CelBool::from(order == Ordering::Less)
}

/// The maps that a condition can use.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) facts: Ledger,
    pub(crate) parameters: Ledger,
    pub(crate) target: Ledger,
    /// Properties of the trial, such as the size of its load.
    pub(crate) trial: Ledger,
    /// Properties of the subject of a check.
    pub(crate) this: Ledger,
    /// For each property of the subject, its kind: `default`, `configured` or `runtime`.
    pub(crate) kinds: Ledger,
    /// Properties of the enclosing subject.
    pub(crate) parent: Ledger,
}

impl World {
    pub(crate) fn empty() -> Self {
        let none = |what| Ledger::new(what, []);
        Self {
            facts: none("fact"),
            parameters: none("parameter"),
            target: none("target"),
            trial: none("trial"),
            this: none("property"),
            kinds: none("property"),
            parent: none("property"),
        }
    }

    fn maps(&self) -> [(&'static str, &Ledger); 7] {
        [
            ("facts", &self.facts),
            ("parameters", &self.parameters),
            ("target", &self.target),
            ("trial", &self.trial),
            ("this", &self.this),
            ("kinds", &self.kinds),
            ("parent", &self.parent),
        ]
    }

    fn evaluate(&self, program: &Program) -> Result<Value, ExecutionError> {
        program.execute(&self.context()?)
    }

    /// Forgets which keys of the maps were used.
    fn forget_asked(&self) {
        for (_, map) in self.maps() {
            map.take_asked();
        }
    }

    fn context(&self) -> Result<Context<'static, 'static>, ExecutionError> {
        let env = FUNCTIONS.as_ref().map_err(Clone::clone)?;
        let mut context = Context::with_env(env.clone());
        for (name, map) in self.maps() {
            context.add_variable_as_val(name, Box::new(map.clone()));
        }
        Ok(context)
    }
}

/// The functions of conditions: those of CEL, and assay's own. They are created only once, because every evaluation
/// uses them.
static FUNCTIONS: LazyLock<Result<Arc<Env>, ExecutionError>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    cel::add_overload!(env, fn find_version: (CelString) -> Result<Version>, name = "version")
        .map_err(|error| ExecutionError::function_error("version", error))?;
    cel::add_overload!(env, fn debian_before: (CelString, CelString) -> CelBool, name = "debian_before")
        .map_err(|error| ExecutionError::function_error("debian_before", error))?;
    Ok(Arc::new(env))
});

/// Compiles a condition. Compiled programs are cached until the process ends: the same conditions are evaluated for
/// each machine of a fleet, and compiling takes longer than evaluating.
fn compile(source: &str) -> Result<Arc<Program>, SyntaxError> {
    static COMPILED: Mutex<BTreeMap<String, Arc<Program>>> = Mutex::new(BTreeMap::new());
    let programs = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = programs().get(source) {
        return Ok(program.clone());
    }
    let program = Arc::new(compile_anew(source)?);
    programs().insert(source.to_owned(), program.clone());
    Ok(program)
}

fn compile_anew(source: &str) -> Result<Program, SyntaxError> {
    let syntax = |message: String| SyntaxError { message };
    let program = Program::compile(source).map_err(|errors| {
        let first = errors.errors.first();
        syntax(first.map_or_else(String::new, |error| {
            format!("column {}: {}", error.pos.1, error.msg)
        }))
    })?;
    let world = World::empty();
    let names = || world.maps().map(|(name, _)| name);
    // Variables of `exists`, `all`, `filter` and `map` count as declared.
    let declared = |name: &str| source.contains(&format!("({name},"));
    let unknown = program
        .references()
        .variables()
        .into_iter()
        .find(|name| !names().contains(name) && !name.starts_with('@') && !declared(name))
        .map(|name| {
            format!(
                "`{name}` is not known here{}; conditions look into {}",
                nearest_name::hint(name, names()),
                nearest_name::list(names())
            )
        });
    if let Some(message) = unknown {
        return Err(syntax(message));
    }
    Ok(program)
}

/// Checks that a text is a valid condition.
pub(crate) fn syntax(source: &str) -> Result<(), SyntaxError> {
    let program = compile(source)?;
    match World::empty().evaluate(&program) {
        Err(ExecutionError::UndeclaredReference(name)) => Err(SyntaxError {
            message: format!("there is no function `{name}`"),
        }),
        Ok(value) if !matches!(value, Value::Bool(_)) => Err(SyntaxError {
            message: format!("it says {}, not true or false", value.type_of()),
        }),
        _ => Ok(()),
    }
}

/// A compiled condition.
pub(crate) struct Condition(Arc<Program>);

impl Condition {
    pub(crate) fn new(source: &str) -> Result<Self, SyntaxError> {
        compile(source).map(Self)
    }

    /// Evaluates the condition on the values of a machine.
    pub(crate) fn evaluate(&self, world: &World) -> Truth {
        truth(world.evaluate(&self.0))
    }

    /// Calls `visit` for each term that can make a true condition false if the term changes. Comparisons come first,
    /// then tests for existence. During a call, the maps of `world` record the keys that this term uses. Makes no call
    /// if the condition is not true.
    pub(crate) fn visit_deciding(&self, world: &World, visit: &mut dyn FnMut()) {
        let Ok(context) = world.context() else { return };
        let terms = deciding::terms(self.0.expression(), &context);
        for weak in [false, true] {
            for term in terms.iter().filter(|term| deciding::is_weak(term) == weak) {
                world.forget_asked();
                let _ = context.resolve(term);
                visit();
            }
        }
        world.forget_asked();
    }
}

fn truth(result: Result<Value, ExecutionError>) -> Truth {
    match result {
        Ok(Value::Bool(true)) => Truth::True,
        Ok(Value::Bool(false)) => Truth::False,
        Ok(other) => Truth::Unknown(format!("it says {}, not true or false", other.type_of())),
        Err(error) => Truth::Unknown(error.to_string()),
    }
}

/// Compiles and evaluates a condition.
pub(crate) fn evaluate(source: &str, world: &World) -> Truth {
    match Condition::new(source) {
        Ok(condition) => condition.evaluate(world),
        Err(error) => Truth::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
