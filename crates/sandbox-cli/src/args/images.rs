use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueHint};
use sandbox_images::Reference;

/// Arguments of `images`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
An image is named [HOST[:PORT]/]NAME[:TAG|@DIGEST]; names without a host are those of Docker Hub. Images lie
in $SANDBOX_RUN_IMAGES, or else in sandbox-run/images below $XDG_DATA_HOME, or else in
/var/lib/sandbox-run/images for root and in ~/.local/share/sandbox-run/images for others. No daemon is needed.

Example:
  sandbox-run images pull python:3.12-slim
  sandbox-run images build python
  docker save my/tool:1 | gzip > tool.tar.gz; sandbox-run images import tool.tar.gz
  sandbox-run images list"
)]
pub(crate) struct ImagesArgs {
    #[command(subcommand)]
    pub(crate) action: ImagesAction,
}

/// What to do with images.
#[derive(Debug, Subcommand)]
pub(crate) enum ImagesAction {
    /// Fetch one from its registry and unpack it
    ///
    /// Only what is not here yet is fetched. One that has the name already is replaced.
    Pull(PullArgs),
    /// Take images from a file or a directory
    ///
    /// Archives of `docker save` and OCI layouts are taken, also compressed with gzip, and layouts that lie in a
    /// directory. All images in it are taken, or none.
    Import {
        /// The archive or the directory
        #[arg(value_hint = ValueHint::AnyPath)]
        file: PathBuf,
        /// What to call it, if there is one image in it [default: what it is called there]
        #[arg(long, value_name = "REF")]
        name: Option<Reference>,
        /// Print nothing if all goes well
        #[arg(short, long)]
        quiet: bool,
    },
    /// Build one for languages from Debian packages, without a registry
    ///
    /// The packages are those by which the recipes of the languages say that they are installed. mmdebstrap puts them
    /// together, from the mirrors that this host uses; it needs root, or user namespaces.
    Build(BuildImageArgs),
    /// List them
    List {
        /// Print JSON instead of a table [default: a table]
        #[arg(long)]
        json: bool,
    },
    /// Tell what is known of one
    Show {
        /// Its name
        #[arg(value_name = "REF")]
        reference: Reference,
        /// Print JSON instead of lines [default: lines]
        #[arg(long)]
        json: bool,
    },
    /// Forget the name of one; `prune` then removes what no other name needs
    #[command(alias = "rm")]
    Remove {
        /// Its name
        #[arg(value_name = "REF")]
        reference: Reference,
    },
    /// Remove what no name needs, and what a command left that was killed
    ///
    /// Images that are being used stay.
    Prune,
}

/// Arguments of `images pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// Its name
    #[arg(value_name = "REF")]
    pub(crate) reference: Reference,
    /// Speak with the registry without TLS, wherever it is [default: only on this machine]
    ///
    /// Whoever is on the way can then give you another image for a tag.
    #[arg(long)]
    pub(crate) plain_http: bool,
    /// Print nothing if all goes well
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `images build`.
#[derive(Debug, Args)]
pub(crate) struct BuildImageArgs {
    /// The languages
    #[arg(value_name = "LANG", required = true)]
    pub(crate) languages: Vec<String>,
    /// What to call it [default: sandbox-run/LANG:latest, several languages joined by '-']
    #[arg(long, value_name = "REF")]
    pub(crate) name: Option<Reference>,
    /// The release whose packages to take [default: this host's if it is Debian, or else bookworm]
    #[arg(long)]
    pub(crate) suite: Option<Suite>,
    /// Print nothing if all goes well
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The name of a release, such as `bookworm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suite(String);

impl Suite {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Suite {
    type Err = &'static str;

    /// It becomes an argument of other programs, and a part of addresses.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
        let begins_well = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        if begins_well && text.chars().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a release has a name like bookworm")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_a_plain_name() {
        for good in ["bookworm", "stable-updates", "12.0"] {
            assert_eq!(good.parse::<Suite>().unwrap().as_str(), good);
        }
        for bad in ["", "-x", "a b", "../x", "x;y", "x\n"] {
            assert!(bad.parse::<Suite>().is_err(), "{bad:?}");
        }
    }
}
