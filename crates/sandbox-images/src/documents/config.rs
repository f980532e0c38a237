use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Platform;
use crate::{Digest, ImageError};

/// The configuration of an image's process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImageConfig {
    /// Environment variables, in order.
    pub environment: Vec<(String, String)>,
    /// The working directory.
    pub working_directory: Option<String>,
    /// The user, by name or number.
    pub user: Option<String>,
    /// The program, with leading arguments.
    pub entrypoint: Vec<String>,
    /// Arguments of the entrypoint, or the program if there is no entrypoint.
    pub command: Vec<String>,
}

/// The configuration document of an image.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ConfigFile {
    #[serde(flatten)]
    platform: Platform,
    #[serde(default)]
    config: Option<ProcessConfig>,
    rootfs: RootFileSystem,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ProcessConfig {
    env: Option<Vec<String>>,
    working_dir: Option<String>,
    user: Option<String>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
struct RootFileSystem {
    #[serde(default)]
    diff_ids: Vec<Digest>,
}

impl ConfigFile {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        serde_json::from_slice(bytes).map_err(|error| ImageError::document("configuration", error))
    }

    /// Creates the document of a new image with one layer. It contains no time, so that the same files give the same
    /// image.
    pub(crate) fn create(config: &ImageConfig, diff_id: &Digest) -> Value {
        let pair = |(name, value): &(String, String)| format!("{name}={value}");
        let host = Platform::host();
        json!({
            "os": host.os,
            "architecture": host.architecture,
            "config": {
                "Env": config.environment.iter().map(pair).collect::<Vec<_>>(),
                "WorkingDir": config.working_directory,
                "User": config.user,
                "Entrypoint": config.entrypoint,
                "Cmd": config.command,
            },
            "rootfs": { "type": "layers", "diff_ids": [diff_id] },
        })
    }

    /// Checks the platform and the number of layers.
    pub(crate) fn check(&self, layers: usize) -> Result<(), ImageError> {
        let host = Platform::host();
        if !host.supports(&self.platform) {
            let found = self.platform.to_string();
            return Err(ImageError::Platform { host: host.to_string(), found });
        }
        if self.rootfs.diff_ids.len() != layers {
            let described = self.rootfs.diff_ids.len();
            let reason = format!("it describes {described} layers, but the manifest has {layers}");
            return Err(ImageError::document("configuration", reason));
        }
        Ok(())
    }

    /// The digests of the uncompressed layers.
    pub(crate) fn diff_ids(&self) -> &[Digest] {
        &self.rootfs.diff_ids
    }

    pub(crate) fn into_config(self) -> ImageConfig {
        let process = self.config.unwrap_or_default();
        let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
        let pair = |text: &String| {
            // Texts without '=' are ignored.
            text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        ImageConfig {
            environment: process.env.unwrap_or_default().iter().filter_map(pair).collect(),
            working_directory: non_empty(process.working_dir),
            user: non_empty(process.user),
            entrypoint: process.entrypoint.unwrap_or_default(),
            command: process.cmd.unwrap_or_default(),
        }
    }
}

impl ImageConfig {
    /// A variable of the environment. The last one counts, as for a shell.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().rev().find(|(variable, _)| variable == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<ConfigFile, ImageError> {
        ConfigFile::parse(text.as_bytes())
    }

    #[test]
    fn the_process_configuration_is_optional() {
        let text = r#"{"os":"linux","architecture":"amd64","rootfs":{"diff_ids":[]},"config":{
            "Env":["PATH=/a","X=1=2","odd","PATH=/b:/c"],"WorkingDir":"/srv","User":"",
            "Entrypoint":null,"Cmd":["python3"]}}"#;
        let read = config(text).unwrap().into_config();
        assert_eq!(read.variable("PATH"), Some("/b:/c"));
        assert_eq!(read.variable("X"), Some("1=2"));
        assert_eq!((read.user.as_deref(), read.variable("odd")), (None, None));
        assert_eq!(read.working_directory.as_deref(), Some("/srv"));
        assert_eq!((read.entrypoint.len(), read.command), (0, vec!["python3".to_owned()]));
        let bare = config(r#"{"rootfs":{}}"#).unwrap();
        assert_eq!(bare.into_config(), ImageConfig::default());
    }

    #[test]
    fn a_created_configuration_reads_back() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = ImageConfig {
            environment: vec![pair("PATH", "/bin:/usr/bin"), pair("A", "b=c")],
            working_directory: Some("/srv".to_owned()),
            user: None,
            entrypoint: Vec::new(),
            command: vec!["sh".to_owned()],
        };
        let created = ConfigFile::create(&expected, &Digest::of(b"layer")).to_string();
        let read = config(&created).unwrap();
        read.check(1).unwrap();
        assert_eq!(read.diff_ids(), [Digest::of(b"layer")]);
        assert_eq!(read.into_config(), expected);
    }

    #[test]
    fn other_platforms_and_numbers_of_layers_are_rejected() {
        let host = Platform::host().architecture;
        let text = |architecture: &str| {
            format!(
                r#"{{"os":"linux","architecture":"{architecture}","rootfs":{{"diff_ids":[]}}}}"#
            )
        };
        assert!(config(&text(&host)).unwrap().check(0).is_ok());
        let error = config(&text(&host)).unwrap().check(1).unwrap_err().to_string();
        assert!(error.contains("describes 0 layers, but the manifest has 1"), "{error}");
        let error = config(&text("vax")).unwrap().check(0).unwrap_err().to_string();
        assert!(error.contains("linux/vax"), "{error}");
    }
}
