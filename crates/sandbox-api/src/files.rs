use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A file of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileInput {
    /// The path, relative to the work directory.
    #[schema(example = "main.py")]
    pub path: String,
    /// The content, encoded as `encoding` says.
    pub content: String,
    /// The encoding of `content`. Default: `utf-8`.
    #[serde(default, skip_serializing_if = "Encoding::is_text")]
    pub encoding: Encoding,
}

/// The encoding of bytes in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Encoding {
    /// UTF-8 text.
    #[default]
    #[serde(rename = "utf-8")]
    Text,
    /// Base64.
    #[serde(rename = "base64")]
    Base64,
}

/// A file whose content does not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content of '{path}' is not valid base64")]
pub struct InvalidContent {
    path: String,
}

impl Encoding {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

impl FileInput {
    /// Creates a file with these bytes: as text if they are valid UTF-8, in base64 otherwise.
    pub fn new(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        let path = path.into();
        match String::from_utf8(bytes) {
            Ok(content) => Self { path, content, encoding: Encoding::Text },
            Err(error) => {
                let content = STANDARD.encode(error.as_bytes());
                Self { path, content, encoding: Encoding::Base64 }
            }
        }
    }

    /// Decodes the content.
    pub fn bytes(&self) -> Result<Vec<u8>, InvalidContent> {
        match self.encoding {
            Encoding::Text => Ok(self.content.clone().into_bytes()),
            Encoding::Base64 => STANDARD
                .decode(&self.content)
                .map_err(|_| InvalidContent { path: self.path.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_a_round_trip() {
        for bytes in [b"text\n".to_vec(), vec![0xff, 0, 1], Vec::new()] {
            let file = FileInput::new("a", bytes.clone());
            let text = serde_json::to_string(&file).unwrap();
            let read: FileInput = serde_json::from_str(&text).unwrap();
            assert_eq!(read.bytes().unwrap(), bytes);
        }
        let wrong = r#"{"path": "a", "content": "?", "encoding": "base64"}"#;
        let wrong: FileInput = serde_json::from_str(wrong).unwrap();
        assert_eq!(
            wrong.bytes().unwrap_err().to_string(),
            "the content of 'a' is not valid base64"
        );
    }
}
