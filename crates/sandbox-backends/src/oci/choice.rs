//! Which of the runtimes that do the same is to be used.

use std::path::PathBuf;
use std::str::FromStr;

use super::kind::Kind;

/// How a backend of containers that a runtime builds is set up.
#[derive(Clone, Debug)]
pub struct OciOptions {
    /// How many containers of a kind that is in demand are kept ready.
    pub spare: usize,
    /// What builds them. The first that is there of those that do the same, if nothing is said.
    pub runtime: Option<OciRuntime>,
    /// Where the image was unpacked whose programs are used; the host's own if nothing is said.
    pub image: Option<PathBuf>,
    /// Leave the host's inodes as they are in what is shown. Only tests have a reason to: they show what programs notice by them.
    pub shares_inodes: bool,
}

impl Default for OciOptions {
    fn default() -> Self {
        Self { spare: 2, runtime: None, image: None, shares_inodes: false }
    }
}

/// A runtime that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OciRuntime {
    /// runc, wherever programs of its sort are.
    Runc,
    /// crun, the same.
    Crun,
    /// This program, which is one of them.
    At(PathBuf),
}

impl OciRuntime {
    /// What it is, if that is known without asking the program.
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
