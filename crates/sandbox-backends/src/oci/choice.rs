//! The options of OCI backends, and the choice between runtimes of the same kind.

use std::path::PathBuf;
use std::str::FromStr;

use super::kind::Kind;

/// Options of an OCI backend.
#[derive(Clone, Debug)]
pub struct OciOptions {
    /// Containers to keep ready of each kind in demand.
    pub spare: usize,
    /// The runtime. Default: the first of its kind that is installed.
    pub runtime: Option<OciRuntime>,
    /// The directory of the unpacked image whose programs are used. Default: the host's programs.
    pub image: Option<PathBuf>,
    /// Do not give containers inodes of their own. Only tests set this, to show what programs can
    /// observe through shared inodes.
    pub shares_inodes: bool,
}

impl Default for OciOptions {
    fn default() -> Self {
        Self { spare: 2, runtime: None, image: None, shares_inodes: false }
    }
}

/// A runtime that can be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OciRuntime {
    /// runc, wherever it is installed.
    Runc,
    /// crun, wherever it is installed.
    Crun,
    /// The runtime at this path.
    At(PathBuf),
}

impl OciRuntime {
    /// Its kind, if that is known without running it.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Runc => Some(Kind::Runc),
            Self::Crun => Some(Kind::Crun),
            Self::At(_) => None,
        }
    }
}

impl FromStr for OciRuntime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "runc" => Ok(Self::Runc),
            "crun" => Ok(Self::Crun),
            path if path.starts_with('/') => Ok(Self::At(path.into())),
            _ => Err("it is runc, crun or the path of one of them".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_one_of_two_names_or_a_whole_path() {
        assert_eq!("crun".parse(), Ok(OciRuntime::Crun));
        assert_eq!("/opt/runc".parse(), Ok(OciRuntime::At("/opt/runc".into())));
        for text in ["", "youki", "./runc", "RUNC"] {
            assert!(text.parse::<OciRuntime>().unwrap_err().contains("runc, crun"), "{text}");
        }
    }
}
