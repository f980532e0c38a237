use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Platform;
use crate::{Digest, ImageError};

/// How an image wants to be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImageConfig {
    /// Variables of the environment, in the order they were set.
    pub environment: Vec<(String, String)>,
    /// Where its program starts.
    pub working_directory: Option<String>,
    /// As whom, by name or number.
    pub user: Option<String>,
    /// The program.
    pub entrypoint: Vec<String>,
    /// Its arguments, or the program if there is no entrypoint.
    pub command: Vec<String>,
}

/// The configuration as it lies in an image.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ConfigFile {
    #[serde(flatten)]
    platform: Platform,
    #[serde(default)]
    config: Option<Wishes>,
    rootfs: RootFileSystem,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Wishes {
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

    /// One for an image of one layer that is made here. It says nothing of when: the same files are the same image.
    pub(crate) fn made_for(config: &ImageConfig, content: &Digest) -> Value {
        let pair = |(name, value): &(String, String)| format!("{name}={value}");
        let here = Platform::here();
        json!({
            "os": here.os,
            "architecture": here.architecture,
            "config": {
                "Env": config.environment.iter().map(pair).collect::<Vec<_>>(),
                "WorkingDir": config.working_directory,
                "User": config.user,
                "Entrypoint": config.entrypoint,
                "Cmd": config.command,
            },
            "rootfs": { "type": "layers", "diff_ids": [content] },
        })
    }

    /// Refuses what is for other machines, or for another number of layers.
    pub(crate) fn check(&self, layers: usize) -> Result<(), ImageError> {
        let here = Platform::here();
        if !here.runs(&self.platform) {
            let found = self.platform.to_string();
            return Err(ImageError::Platform { wanted: here.to_string(), found });
        }
        if self.rootfs.diff_ids.len() != layers {
            let said = self.rootfs.diff_ids.len();
            let reason = format!("it is about {said} layers, and there are {layers}");
            return Err(ImageError::document("configuration", reason));
        }
        Ok(())
    }

    /// The digests of the layers' content, decompressed.
    pub(crate) fn contents(&self) -> &[Digest] {
        &self.rootfs.diff_ids
    }

    pub(crate) fn into_config(self) -> ImageConfig {
        let wishes = self.config.unwrap_or_default();
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        let pair = |text: &String| {
            // What has no '=' is no variable.
            text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        ImageConfig {
            environment: wishes.env.unwrap_or_default().iter().filter_map(pair).collect(),
            working_directory: said(wishes.working_dir),
            user: said(wishes.user),
            entrypoint: wishes.entrypoint.unwrap_or_default(),
            command: wishes.cmd.unwrap_or_default(),
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
    fn wishes_are_read_and_may_be_left_out() {
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
    fn what_is_made_reads_back() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let wanted = ImageConfig {
            environment: vec![pair("PATH", "/bin:/usr/bin"), pair("A", "b=c")],
            working_directory: Some("/srv".to_owned()),
            user: None,
            entrypoint: Vec::new(),
            command: vec!["sh".to_owned()],
        };
        let made = ConfigFile::made_for(&wanted, &Digest::of(b"layer")).to_string();
        let read = config(&made).unwrap();
        read.check(1).unwrap();
        assert_eq!(read.contents(), [Digest::of(b"layer")]);
        assert_eq!(read.into_config(), wanted);
    }

    #[test]
    fn other_machines_and_other_layers_are_refused() {
        let here = Platform::here().architecture;
        let text = |architecture: &str| {
            format!(
                r#"{{"os":"linux","architecture":"{architecture}","rootfs":{{"diff_ids":[]}}}}"#
            )
        };
        assert!(config(&text(&here)).unwrap().check(0).is_ok());
        let error = config(&text(&here)).unwrap().check(1).unwrap_err().to_string();
        assert!(error.contains("about 0 layers, and there are 1"), "{error}");
        let error = config(&text("vax")).unwrap().check(0).unwrap_err().to_string();
        assert!(error.contains("linux/vax"), "{error}");
    }
}
