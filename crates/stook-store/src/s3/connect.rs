//! How an object store is reached: endpoint, region and credentials, from names and values as in the environment.

use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::client::ClientConfigKey;

use crate::error::StoreCause;
use crate::s3::service::Connector;
use crate::settings::S3Settings;

/// What may say who we are, or that nobody asks.
const CREDENTIALS: [Key; 5] = [
    Key::AccessKeyId,
    Key::ContainerCredentialsRelativeUri,
    Key::ContainerCredentialsFullUri,
    Key::WebIdentityTokenFile,
    Key::SkipSignature,
];

/// # Errors
/// `Login` if there are no credentials; `Io` if a setting makes no sense, with the words of the library.
pub(super) fn connect(
    bucket: &str,
    settings: &S3Settings,
    client: reqwest::Client,
) -> Result<AmazonS3, StoreCause> {
    let known = settings
        .variables
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, value)| {
            let key: Key = name.to_ascii_lowercase().parse().ok()?;
            Some((key, value.as_str()))
        });
    let known: Vec<(Key, &str)> = known.collect();
    let has_credentials = known.iter().any(|(key, _)| CREDENTIALS.contains(key));
    if !has_credentials && !settings.has_instance_credentials {
        return Err(StoreCause::Login { command: None });
    }
    let is_signed = !known
        .iter()
        .any(|(key, value)| *key == Key::SkipSignature && value.eq_ignore_ascii_case("true"));
    let is_http = known.iter().any(|(key, value)| {
        matches!(key, Key::Endpoint | Key::S3Endpoint) && value.starts_with("http://")
    });
    let mut builder = AmazonS3Builder::new();
    for (key, value) in known {
        builder = builder.with_config(key, value);
    }
    if is_http {
        // Whoever writes `http://` means it.
        builder = builder.with_config(Key::Client(ClientConfigKey::AllowHttp), "true");
    }
    let built = builder
        .with_bucket_name(bucket)
        .with_disable_bulk_delete(true)
        .with_retry(no_retries())
        .with_http_connector(Connector { client, is_signed })
        .build();
    built.map_err(|error| StoreCause::Io(std::io::Error::other(error)))
}

/// What is repeated is decided here, request by request: one that was conditional must not be.
fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}
