//! What stores are told by whoever opens them: libraries read no environment.
//!
//! Every field has a default. Whether a setting comes from a variable, an option or a file is up to the program.

use std::fmt;
use std::time::Duration;

use crate::globus::GlobusOptions;
use crate::hsi::HsiOptions;
use crate::program::Interruption;
use crate::ssh::SshOptions;

/// What stores are told when they are opened.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Ends what waits for a store and has no observer: reading a range, listing.
    pub interruption: Interruption,
    /// Connections to servers over HTTP.
    pub network: NetworkSettings,
    /// Object stores.
    pub s3: S3Settings,
    /// HPSS; it gets the interruption from here.
    pub hsi: HsiOptions,
    /// Globus; it gets the interruption from here. None: the endpoint of this machine is not known.
    pub globus: Option<GlobusOptions>,
    /// Other machines; they get the interruption from here.
    pub ssh: SshOptions,
}

/// How servers are reached.
#[derive(Debug, Clone)]
pub struct NetworkSettings {
    /// How long it may take to connect.
    pub connect_timeout: Duration,
    /// How long nothing may be sent or received.
    pub idle_timeout: Duration,
    /// The proxy for `http://`, as a URL.
    pub http_proxy: Option<String>,
    /// The proxy for `https://`, as a URL.
    pub https_proxy: Option<String>,
    /// Hosts that are reached without a proxy, as in the variable `no_proxy`.
    pub no_proxy: Option<String>,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(60),
            http_proxy: None,
            https_proxy: None,
            no_proxy: None,
        }
    }
}

/// How object stores are reached.
#[derive(Clone, Default)]
pub struct S3Settings {
    /// Names and values as in the environment: `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID` and so on.
    /// Names that mean nothing to an object store are ignored.
    pub variables: Vec<(String, String)>,
    /// Whether the machine is asked for credentials (the metadata service of EC2) if the variables have none.
    pub has_instance_credentials: bool,
}

/// Values may be secret.
impl fmt::Debug for S3Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.variables.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("S3Settings")
            .field("variables", &names)
            .field("has_instance_credentials", &self.has_instance_credentials)
            .finish()
    }
}
