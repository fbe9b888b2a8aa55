//! Endpoints of Globus: the identifier of one, and which is the one of this machine.
//!
//! # Source
//! zstash 1.6, whose users have `~/.zstash.ini` and know the names.

use std::fmt;

/// The identifier of an endpoint: a UUID, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EndpointId(String);

/// Why an endpoint is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// This is neither a UUID nor a name that stands for one.
    #[error("`{0}` is no Globus endpoint")]
    Unknown(String),
    /// Neither the file nor the host name nor `NERSC_HOST` tells the one of this machine.
    #[error("the Globus endpoint of this machine, `{0}`, is not known")]
    NoLocal(String),
}

/// Names for endpoints with tapes, in any case.
const NAMES: [(&str, &str); 2] = [
    ("alcf", "de463ec4-6d04-11e5-ba46-22000b92c6ec"),
    ("nersc", "9cd89cfd-6d04-11e5-ba46-22000b92c6ec"),
];

const PERLMUTTER: &str = "6bdc7956-fc0f-4ad2-989c-7aa5ee643a79";
const LCRC: &str = "15288284-7006-4041-ba1a-6b52501e49f1";

/// How a host name begins and ends, and the endpoint of the machine.
const HOSTS: [(&str, &str, &str); 7] = [
    (
        "theta",
        ".alcf.anl.gov",
        "08925f04-569f-11e7-bef8-22000b9a448b",
    ),
    ("beboplogin", ".lcrc.anl.gov", LCRC),
    ("ilogin", ".lcrc.anl.gov", LCRC),
    ("blueslogin", ".lcrc.anl.gov", LCRC),
    ("chr", ".lcrc.anl.gov", LCRC),
    ("compy", ".pnl.gov", "68fbd2fa-83d7-11e9-8e63-029d279f7e24"),
    ("perlmutter", ".nersc.gov", PERLMUTTER),
];

impl EndpointId {
    /// Returns the endpoint that a text stands for: a UUID, `nersc` or `alcf`.
    ///
    /// # Errors
    /// `Unknown`.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let lower = text.to_ascii_lowercase();
        let named = NAMES.iter().find(|(name, _)| *name == lower);
        let id = named.map_or(lower, |(_, id)| (*id).to_owned());
        let is_digit = |(place, byte): (usize, u8)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        match id.len() == 36 && id.bytes().enumerate().all(is_digit) {
            true => Ok(Self(id)),
            false => Err(EndpointError::Unknown(text.to_owned())),
        }
    }

    /// Returns its UUID.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the endpoint of this machine: the one of `~/.zstash.ini`, or else the one that goes with the host name, or
/// else, at NERSC, where hosts have no whole names, the one of Perlmutter.
///
/// # Errors
/// `Unknown` if the file names something else; `NoLocal`.
pub fn local_endpoint(
    ini: Option<&str>,
    host_name: &str,
    nersc_host: Option<&str>,
) -> Result<EndpointId, EndpointError> {
    if let Some(value) = ini.and_then(from_ini) {
        return EndpointId::parse(&value);
    }
    if let Some(id) = of_host(host_name) {
        return EndpointId::parse(id);
    }
    match nersc_host {
        Some("perlmutter" | "unknown") => EndpointId::parse(PERLMUTTER),
        _ => Err(EndpointError::NoLocal(host_name.to_owned())),
    }
}

/// Returns `globus_endpoint_uuid` of the section `[local]`, if it is there and not empty.
fn from_ini(text: &str) -> Option<String> {
    let mut is_local = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            is_local = section.0 == "local";
        } else if is_local && !line.starts_with(['#', ';']) {
            let Some((key, value)) = line.split_once(['=', ':']) else {
                continue;
            };
            if key.trim().eq_ignore_ascii_case("globus_endpoint_uuid") {
                found = Some(value.trim().to_owned());
            }
        }
    }
    found.filter(|value| !value.is_empty())
}

fn of_host(name: &str) -> Option<&'static str> {
    let is_of = |begin: &str, end: &str| {
        name.strip_prefix(begin)
            .is_some_and(|rest| rest.ends_with(end))
    };
    let found = HOSTS.iter().find(|(begin, end, _)| is_of(begin, end));
    // The nodes of LCRC: a letter and a number.
    let is_node = || {
        let number = name
            .strip_prefix('b')
            .and_then(|rest| rest.strip_suffix(".lcrc.anl.gov"));
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    found
        .map(|(_, _, id)| *id)
        .or_else(|| is_node().then_some(LCRC))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "6c54cade-bde5-45c1-bdea-f4bd71dba2cc";
    const THETA: &str = "08925f04-569f-11e7-bef8-22000b9a448b";
    const COMPY: &str = "68fbd2fa-83d7-11e9-8e63-029d279f7e24";

    #[test]
    fn names_and_uuids_are_endpoints() {
        for (text, id) in [
            ("nersc", "9cd89cfd-6d04-11e5-ba46-22000b92c6ec"),
            ("NERSC", "9cd89cfd-6d04-11e5-ba46-22000b92c6ec"),
            ("Alcf", "de463ec4-6d04-11e5-ba46-22000b92c6ec"),
            (OWN, OWN),
            (&OWN.to_uppercase(), OWN),
        ] {
            assert_eq!(EndpointId::parse(text).unwrap().as_str(), id);
        }
        for text in [
            "",
            "olcf",
            "6c54cade-bde5-45c1-bdea-f4bd71dba2c",
            "6c54cade+bde5-45c1-bdea-f4bd71dba2cc",
        ] {
            assert!(EndpointId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_file_goes_before_the_host_and_the_host_before_nersc() {
        let local = |ini, host, nersc| local_endpoint(ini, host, nersc).map(|id| id.0);
        let own = format!(
            "[other]\nglobus_endpoint_uuid = x\n[local]\n# no\nGlobus_Endpoint_UUID: {OWN}\n"
        );
        let theta = "thetalogin1.alcf.anl.gov";
        assert_eq!(local(Some(&own), theta, Some("perlmutter")).unwrap(), OWN);
        // What zstash writes into a new file.
        let empty = "[local]\nglobus_endpoint_uuid = \n\n";
        assert_eq!(
            local(Some(empty), theta, Some("perlmutter")).unwrap(),
            THETA
        );
        assert_eq!(
            local(None, "nid001", Some("perlmutter")).unwrap(),
            PERLMUTTER
        );
        assert_eq!(local(None, "nid001", Some("unknown")).unwrap(), PERLMUTTER);
        for nersc in [None, Some("cori"), Some("")] {
            let error = local(Some("[local]"), "nid001", nersc).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the Globus endpoint of this machine, `nid001`, is not known"
            );
        }
        let wrong = local(Some("[local]\nglobus_endpoint_uuid=mine"), theta, None);
        assert_eq!(
            wrong.unwrap_err().to_string(),
            "`mine` is no Globus endpoint"
        );
    }

    #[test]
    fn every_host_has_its_endpoint() {
        for (host, id) in [
            ("theta.alcf.anl.gov", THETA),
            ("thetalogin4.alcf.anl.gov", THETA),
            ("beboplogin2.lcrc.anl.gov", LCRC),
            ("ilogin1.lcrc.anl.gov", LCRC),
            ("blueslogin3.lcrc.anl.gov", LCRC),
            ("chrlogin1.lcrc.anl.gov", LCRC),
            ("b615.lcrc.anl.gov", LCRC),
            ("chr-0052.lcrc.anl.gov", LCRC),
            ("compy.pnl.gov", COMPY),
            ("compy01.pnl.gov", COMPY),
            ("perlmutter-p1.chn.nersc.gov", PERLMUTTER),
        ] {
            let found = local_endpoint(None, host, None).unwrap();
            assert_eq!(found.as_str(), id, "{host}");
        }
        for host in [
            "",
            "b.lcrc.anl.gov",
            "b6x.lcrc.anl.gov",
            "x.theta.alcf.anl.gov",
            "compy.pnl.gov.evil.org",
        ] {
            assert!(local_endpoint(None, host, None).is_err(), "{host}");
        }
    }
}
