use sandbox::RuntimeStatus;
use sandbox_client::Runtime;

use crate::args::ServerArgs;
use crate::errors::Failure;

/// The languages of the server of `--server`, if it was given.
pub(crate) fn runtimes(args: &ServerArgs) -> Result<Option<Vec<RuntimeStatus>>, Failure> {
    let Some(client) = super::client(args)? else { return Ok(None) };
    Ok(Some(client.runtimes()?.into_iter().map(status).collect()))
}

fn status(runtime: Runtime) -> RuntimeStatus {
    let missing = runtime.missing.or_else(|| {
        let missing = "not installed on the server".to_owned();
        (!runtime.available).then_some(missing)
    });
    let versions = match &runtime.version {
        Some(version) if runtime.versions.is_empty() => vec![version.clone()],
        _ => runtime.versions,
    };
    RuntimeStatus {
        name: runtime.language,
        aliases: runtime.aliases,
        extensions: runtime.extensions,
        version: runtime.version,
        versions,
        program: runtime.program,
        image: runtime.image,
        missing,
        install: runtime.install,
        host_packages: runtime.host_packages,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_a_server_leaves_out_are_completed() {
        let old = r#"{"language": "old", "version": "1.2", "available": false}"#;
        let old = status(serde_json::from_str(old).unwrap());
        assert_eq!((old.name.as_str(), &old.versions[..]), ("old", &["1.2".into()][..]));
        assert_eq!(old.missing.as_deref(), Some("not installed on the server"));
        assert!(status(serde_json::from_str("{}").unwrap()).missing.is_none());
    }
}
