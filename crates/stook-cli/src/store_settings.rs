//! What stores are told: the variables of the environment that concern them. Libraries read none.
//!
//! ```text
//!   AWS_*                                  credentials, region and endpoint of object stores
//!   http_proxy https_proxy no_proxy        how servers are reached, also in capitals
//!   STOOK_HSI STOOK_GLOBUS STOOK_SSH STOOK_SFTP           programs, by name or path
//!   STOOK_HSI_ARGS ...                     arguments in front of all others, split at spaces
//!   STOOK_HSI_COS                          class of service of new files
//! ```

use std::ffi::OsString;

use stook_store::{Interruption, NetworkSettings, ProgramOptions, S3Settings, Settings};

use crate::exit::CliError;

/// Returns what the environment says about stores.
pub(crate) fn settings(interruption: Interruption) -> Result<Settings, CliError> {
    let mut settings = Settings {
        interruption,
        network: NetworkSettings {
            http_proxy: text("http_proxy").or_else(|| text("HTTP_PROXY")),
            https_proxy: text("https_proxy").or_else(|| text("HTTPS_PROXY")),
            no_proxy: text("no_proxy").or_else(|| text("NO_PROXY")),
            ..NetworkSettings::default()
        },
        s3: S3Settings {
            variables: std::env::vars_os().filter_map(aws_variable).collect(),
            has_instance_credentials: true,
        },
        ..Settings::default()
    };
    program(&mut settings.hsi.program, "STOOK_HSI", "STOOK_HSI_ARGS");
    settings.hsi.class_of_service = text("STOOK_HSI_COS").map(|text| number(&text)).transpose()?;
    Ok(settings)
}

fn aws_variable((name, value): (OsString, OsString)) -> Option<(String, String)> {
    let name = name.into_string().ok().filter(|name| name.starts_with("AWS_"))?;
    Some((name, value.into_string().ok()?))
}

fn program(options: &mut ProgramOptions, path: &str, arguments: &str) {
    if let Some(path) = variable(path) {
        options.path = path.into();
    }
    let arguments = text(arguments).unwrap_or_default();
    options.arguments = arguments.split_whitespace().map(OsString::from).collect();
}

fn number(text: &str) -> Result<u32, CliError> {
    text.parse().map_err(|error: std::num::ParseIntError| CliError::Option {
        option: "STOOK_HSI_COS",
        value: text.to_owned(),
        why: error.to_string(),
    })
}

fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program, not a library, reads the environment"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
