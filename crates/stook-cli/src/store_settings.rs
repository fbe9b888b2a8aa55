//! What stores need of the environment, which libraries do not read: credentials, proxies, programs.
//!
//! ```text
//!   AWS_*                               credentials, region and endpoint of object stores
//!   STOOK_INSTANCE_CREDENTIALS=1        asks the machine for credentials
//!   http_proxy https_proxy no_proxy     how servers are reached
//!   STOOK_HSI STOOK_GLOBUS STOOK_SSH    programs, by name or path
//!   STOOK_HSI_ARGS STOOK_GLOBUS_ARGS STOOK_SSH_ARGS    arguments in front of all others, split at spaces
//!   STOOK_HSI_COS                       class of service of new files
//!   ~/.zstash.ini, NERSC_HOST           the Globus endpoint of this machine
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stook_store::{GlobusOptions, Interruption, ProgramOptions, Settings, local_endpoint};

use crate::exit::CliError;
use crate::progress::is_asked_to_end;

/// Prefix of the variables that are handed to object stores.
const OBJECT_STORES: &str = "AWS_";

/// Returns what the environment says about stores.
pub(crate) fn settings() -> Result<Settings, CliError> {
    let mut settings = Settings {
        interruption: Interruption::new(is_asked_to_end),
        globus: globus(),
        ..Settings::default()
    };
    settings.network.http_proxy = variable("http_proxy");
    settings.network.https_proxy = variable("https_proxy").or_else(|| variable("HTTPS_PROXY"));
    settings.network.no_proxy = variable("no_proxy").or_else(|| variable("NO_PROXY"));
    settings.s3.variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(OBJECT_STORES))
        .collect();
    settings.s3.has_instance_credentials = variable("STOOK_INSTANCE_CREDENTIALS").is_some();
    set_program(&mut settings.hsi.program, "STOOK_HSI");
    set_program(&mut settings.ssh.program, "STOOK_SSH");
    settings.hsi.class_of_service = class_of_service()?;
    Ok(settings)
}

/// None if the endpoint of this machine is not known; a place behind Globus says so when it is opened.
fn globus() -> Option<GlobusOptions> {
    let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
    let ini = stook_sys::read_text(&home.join(".zstash.ini")).ok();
    let (host, nersc) = (stook_sys::host_name(), variable("NERSC_HOST"));
    let local = local_endpoint(ini.as_deref(), &host, nersc.as_deref()).ok()?;
    let mut options = GlobusOptions::new(local, std::env::temp_dir());
    set_program(&mut options.program, "STOOK_GLOBUS");
    Some(options)
}

fn class_of_service() -> Result<Option<u32>, CliError> {
    const NAME: &str = "STOOK_HSI_COS";
    let parse = |text: String| {
        text.parse()
            .map_err(|error: std::num::ParseIntError| CliError::Option {
                option: NAME,
                value: text,
                why: error.to_string(),
            })
    };
    variable(NAME).map(parse).transpose()
}

fn set_program(options: &mut ProgramOptions, name: &str) {
    if let Some(path) = variable(name) {
        options.path = path.into();
    }
    let arguments = variable(&format!("{name}_ARGS")).unwrap_or_default();
    options.arguments = arguments.split_whitespace().map(OsString::from).collect();
}

/// Returns where copies of indices go: a folder of the user, where nobody else can put one.
pub(crate) fn cache() -> Result<PathBuf, CliError> {
    cache_for("stook/indices")
}

/// Returns where images are while they are being mounted.
pub(crate) fn images() -> Result<PathBuf, CliError> {
    cache_for("stook/images")
}

fn cache_for(folder: &str) -> Result<PathBuf, CliError> {
    let home = || Some(Path::new(&variable("HOME")?).join(".cache"));
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let cache = cache.map(|cache| cache.join(folder));
    cache.ok_or_else(|| CliError::Option {
        option: "XDG_CACHE_HOME",
        value: String::new(),
        why: "neither it nor HOME names a folder for a cache".to_owned(),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program reads its environment, so that libraries need not"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
