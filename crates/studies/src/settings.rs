//! Parses the settings of a study that only one bench uses. Unknown settings are errors.

use crate::StudyError;
use assay_model::study::{Configuration, Figure, Form};
use serde::de::DeserializeOwned;

/// Parses the settings of a configuration. `T` must deny unknown fields, so that misspelt settings are found.
///
/// # Errors
/// A setting is invalid. The error names the configuration and the setting.
pub fn of_configuration<T: DeserializeOwned>(one: &Configuration) -> Result<T, StudyError> {
    read(format!("configuration `{}`", one.name), &one.settings)
}

/// Parses the settings of a figure.
///
/// # Errors
/// A setting is invalid. The error names the figure and the setting.
pub fn of_figure<T: DeserializeOwned>(one: &Figure) -> Result<T, StudyError> {
    read(format!("figure `{}`", one.name), &one.settings)
}

/// Parses the settings of a form.
///
/// # Errors
/// A setting is invalid. The error names the setting.
pub fn of_form<T: DeserializeOwned>(one: &Form) -> Result<T, StudyError> {
    read("the form".to_owned(), &one.settings)
}

fn read<T: DeserializeOwned>(of: String, table: &toml::Table) -> Result<T, StudyError> {
    let value = toml::Value::Table(table.clone());
    T::deserialize(value).map_err(|error| StudyError::Setting {
        of,
        message: error.message().to_owned(),
    })
}
