//! Who asks an S3 server: keys, region and endpoint from the usual places, never shown.

use crate::RemoteError;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Access keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// Its name.
    pub id: String,
    /// What signs.
    pub secret: String,
    /// Of temporary keys.
    pub token: Option<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(not shown)")
    }
}

/// How S3 servers are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3 {
    /// Without them requests are not signed, as public buckets allow.
    pub keys: Option<Keys>,
    /// Region of the buckets, unless they state another.
    pub region: String,
    /// Another server than Amazon's, such as `https://minio.hospital:9000`; buckets are the first part of
    /// its paths.
    pub endpoint: Option<String>,
    /// Whether requests are charged to the reader, as buckets demand that let their readers pay.
    pub pays: bool,
}

type Section = HashMap<String, String>;

impl S3 {
    /// From the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
    /// `AWS_DEFAULT_REGION`, `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, `AWS_REQUEST_PAYER`), else from the profile
    /// `AWS_PROFILE` (`default`) in `~/.aws/credentials` and `~/.aws/config`.
    ///
    /// # Errors
    /// [`RemoteError::Credentials`] for a half pair of keys, a profile that is not there, and one whose keys
    /// come from elsewhere (single sign-on, roles, programs).
    pub fn from_environment() -> Result<Self, RemoteError> {
        Self::from_env(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
    }

    fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, RemoteError> {
        let home = env("HOME").or_else(|| env("USERPROFILE")).map(PathBuf::from);
        let file = |name: &str, default: &str| {
            env(name).map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".aws").join(default)))
        };
        let profile = env("AWS_PROFILE").unwrap_or_else(|| "default".into());
        let credentials =
            section(file("AWS_SHARED_CREDENTIALS_FILE", "credentials").as_deref(), &profile);
        let config = section(file("AWS_CONFIG_FILE", "config").as_deref(), &profile);
        let wrong = |text: String| Err(RemoteError::Credentials(text));
        let keys = match (env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY")) {
            (Some(id), Some(secret)) => Some(Keys { id, secret, token: env("AWS_SESSION_TOKEN") }),
            (None, None) => {
                let found = [&credentials, &config].into_iter().flatten().find_map(|s| {
                    let value = |name: &str| s.get(name).cloned();
                    let (id, secret) =
                        (value("aws_access_key_id")?, value("aws_secret_access_key")?);
                    Some(Keys { id, secret, token: value("aws_session_token") })
                });
                let elsewhere = ["sso_session", "sso_start_url", "role_arn", "credential_process"];
                let both = [&credentials, &config];
                let named = elsewhere
                    .iter()
                    .find(|n| both.into_iter().flatten().any(|s| s.contains_key(**n)));
                if found.is_none()
                    && env("AWS_PROFILE").is_some()
                    && both.iter().all(|s| s.is_none())
                {
                    return wrong(format!("profile `{profile}` is missing in ~/.aws"));
                }
                if let (None, Some(named)) = (&found, named) {
                    return wrong(format!(
                        "the profile `{profile}` has no keys but `{named}`, which is not followed here; \
                         hand its keys on in the environment if `aws configure export-credentials` \
                         prints them"
                    ));
                }
                found
            }
            _ => return wrong("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together".into()),
        };
        let configured = |name: &str| config.as_ref()?.get(name).cloned();
        let region = env("AWS_REGION").or_else(|| env("AWS_DEFAULT_REGION"));
        let endpoint = env("AWS_ENDPOINT_URL_S3").or_else(|| env("AWS_ENDPOINT_URL"));
        let endpoint = endpoint.or_else(|| configured("endpoint_url"));
        if let Some(e) = &endpoint
            && !(e.starts_with("http://") || e.starts_with("https://"))
        {
            return wrong(
                "the endpoint (AWS_ENDPOINT_URL) begins with neither https:// nor http://".into(),
            );
        }
        Ok(Self {
            pays: env("AWS_REQUEST_PAYER").is_some_and(|p| p.eq_ignore_ascii_case("requester")),
            keys,
            region: region.or_else(|| configured("region")).unwrap_or_else(|| "us-east-1".into()),
            endpoint: endpoint.map(|e| e.trim_end_matches('/').to_owned()),
        })
    }
}

/// One profile's lines of a file of `~/.aws`.
fn section(file: Option<&Path>, profile: &str) -> Option<Section> {
    let text = base::file::read_string(file?).ok()?;
    let mut found = None;
    let mut inside = false;
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            let name = name.trim();
            inside = name.strip_prefix("profile ").unwrap_or(name).trim() == profile;
            if inside {
                found.get_or_insert_with(Section::new);
            }
        } else if inside
            && !line.starts_with([' ', '\t', '#', ';'])
            && let (Some(all), Some((name, value))) = (&mut found, line.split_once('='))
        {
            all.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_variables(set: &[(&str, &str)]) -> Result<S3, String> {
        let get = |n: &str| set.iter().find(|(k, _)| *k == n).map(|(_, v)| (*v).to_owned());
        S3::from_env(&get).map_err(|e| e.to_string())
    }

    #[test]
    fn the_environment_goes_first_then_the_profile() {
        let home = tempfile::tempdir().unwrap();
        let aws = home.path().join(".aws");
        std::fs::create_dir(&aws).unwrap();
        let credentials = "[default]\naws_access_key_id = A\naws_secret_access_key=S/=+\n[other]\n";
        std::fs::write(aws.join("credentials"), credentials).unwrap();
        let config = "[default]\nregion = eu-west-1\ns3 =\n  region = no\n[profile lab]\n\
                      endpoint_url = http://h:9000/\nsso_session = x\n";
        std::fs::write(aws.join("config"), config).unwrap();
        let home = home.path().to_str().unwrap();
        let found = from_variables(&[("HOME", home)]).unwrap();
        let keys = found.keys.clone().unwrap();
        assert_eq!((&*keys.id, &*keys.secret, &*found.region), ("A", "S/=+", "eu-west-1"));
        assert!(!format!("{found:?}").contains("S/"), "{found:?}");

        let env = [("HOME", home), ("AWS_ACCESS_KEY_ID", "B"), ("AWS_SECRET_ACCESS_KEY", "T")];
        let more = [("AWS_ENDPOINT_URL", "http://e/"), ("AWS_REGION", "r")];
        let found = from_variables(&[&env[..], &more].concat()).unwrap();
        assert_eq!(found.keys.unwrap().id, "B");
        assert_eq!((found.region.as_str(), found.endpoint.as_deref()), ("r", Some("http://e")));

        assert!(
            from_variables(&[("HOME", home), ("AWS_PROFILE", "lab")])
                .unwrap_err()
                .contains("sso_session")
        );
        assert!(
            from_variables(&[("HOME", home), ("AWS_PROFILE", "none")])
                .unwrap_err()
                .contains("is missing in")
        );
        assert!(from_variables(&env[..2]).unwrap_err().contains("go together"));
        assert!(
            from_variables(&[("AWS_ENDPOINT_URL", "h:9000")]).unwrap_err().contains("https://")
        );
        assert_eq!(from_variables(&[]).unwrap().keys, None);
    }
}
