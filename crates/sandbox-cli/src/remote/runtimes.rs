use std::path::PathBuf;

use sandbox::RuntimeStatus;
use serde::Deserialize;

use super::failure::{accepted, no_response};
use super::http::{Call, Client};
use crate::args::ServerArgs;
use crate::errors::Failure;

/// One language, as a server tells of it. What a server keeps to itself is left empty.
#[derive(Deserialize)]
#[serde(default)]
struct Entry {
    language: String,
    aliases: Vec<String>,
    extensions: Vec<String>,
    available: bool,
    version: Option<String>,
    versions: Vec<String>,
    program: Option<PathBuf>,
    image: Option<String>,
    missing: Option<String>,
    install: Option<String>,
    host_packages: Vec<PathBuf>,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            language: String::new(),
            aliases: Vec::new(),
            extensions: Vec::new(),
            available: true,
            version: None,
            versions: Vec::new(),
            program: None,
            image: None,
            missing: None,
            install: None,
            host_packages: Vec::new(),
        }
    }
}

/// The list by itself or with room for more beside it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    Bare(Vec<Entry>),
    Named { runtimes: Vec<Entry> },
}

/// The languages of the server that was named, if one was.
pub(crate) fn runtimes(args: &ServerArgs) -> Result<Option<Vec<RuntimeStatus>>, Failure> {
    let Some(client) = Client::from_args(args)? else { return Ok(None) };
    let call = Call {
        method: "GET",
        resource: "/api/v1/runtimes",
        headers: &[("Accept", "application/json")],
        body: None,
    };
    let answer = client.call(&call).map_err(|error| no_response(&client, &error))?;
    let body = accepted(&client, answer)?;
    let listed = serde_json::from_slice(&body).map_err(|error| {
        Failure::Internal(format!("{} sent an invalid list of languages: {error}", client.url()))
    })?;
    let (Listed::Bare(entries) | Listed::Named { runtimes: entries }) = listed;
    Ok(Some(entries.into_iter().map(RuntimeStatus::from).collect()))
}

impl From<Entry> for RuntimeStatus {
    fn from(entry: Entry) -> Self {
        let missing = entry.missing.or_else(|| {
            let missing = "not installed on the server".to_owned();
            (!entry.available).then_some(missing)
        });
        let versions = match &entry.version {
            Some(version) if entry.versions.is_empty() => vec![version.clone()],
            _ => entry.versions,
        };
        Self {
            name: entry.language,
            aliases: entry.aliases,
            extensions: entry.extensions,
            version: entry.version,
            versions,
            program: entry.program,
            image: entry.image,
            missing,
            install: entry.install,
            host_packages: entry.host_packages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_server::{Line, TestServer};
    use super::*;

    fn told(body: &str) -> Result<Vec<RuntimeStatus>, String> {
        let length = body.len();
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        let server = TestServer::new(vec![vec![Line::Say(text)]]);
        let args = ServerArgs { server: Some(server.url()), api_key: None };
        let told = runtimes(&args).map(Option::unwrap);
        told.map_err(|failure| failure.message().unwrap())
    }

    #[test]
    fn the_list_is_that_of_the_server() {
        let list = r#"[{"language": "toy", "version": "1.2", "colour": "red"},
                       {"language": "old", "available": false}]"#;
        for body in [list.to_owned(), format!(r#"{{"runtimes": {list}}}"#)] {
            let told = told(&body).unwrap();
            assert_eq!(
                (told[0].name.as_str(), &told[0].versions[..]),
                ("toy", &["1.2".into()][..])
            );
            assert!(told[0].missing.is_none() && told[1].missing.is_some());
        }
        assert!(told("{}").unwrap_err().contains("invalid list"));
    }
}
