//! Arguments of `images`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueHint};
use sandbox_images::Reference;

/// Arguments of `images`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
REF is [HOST[:PORT]/]NAME[:TAG|@DIGEST]; without HOST it is an image of Docker Hub. Images are stored in \
$SANDBOX_RUN_IMAGES, else in sandbox-run/images in $XDG_DATA_HOME, else in /var/lib/sandbox-run/images as root and \
in ~/.local/share/sandbox-run/images as another user. No daemon is needed.

Examples:
  sandbox-run images pull python:3.12-slim
  sandbox-run images build python
  docker save my/tool:1 | gzip > tool.tar.gz; sandbox-run images import tool.tar.gz
  sandbox-run images list"
)]
pub(crate) struct ImagesArgs {
    #[command(subcommand)]
    pub(crate) action: ImagesAction,
}

/// The subcommands of `images`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImagesAction {
    /// Pull an image from its registry and unpack it
    ///
    /// Fetches only missing blobs. Replaces an image of the same name.
    Pull(PullArgs),
    /// Import images from an archive or a directory
    ///
    /// Accepts archives of `docker save` and of OCI layouts, optionally compressed with gzip, and OCI layouts in a
    /// directory. Imports all images in it, or none.
    Import {
        /// Archive or directory to import
        #[arg(value_hint = ValueHint::AnyPath)]
        file: PathBuf,
        /// Name the image, if there is exactly one [default: the name in the archive]
        #[arg(long, value_name = "REF")]
        name: Option<Reference>,
        /// Print nothing on success
        #[arg(short, long)]
        quiet: bool,
    },
    /// Build an image with these languages from Debian packages
    ///
    /// The recipe of each language names its packages. Needs mmdebstrap, which installs them from the mirrors of this
    /// host and needs root or user namespaces. No registry is needed.
    Build(BuildImageArgs),
    /// List images
    List {
        /// Print JSON [default: a table]
        #[arg(long)]
        json: bool,
    },
    /// Show an image: its digest, size and configuration
    Show {
        /// Name of the image
        #[arg(value_name = "REF")]
        reference: Reference,
        /// Print JSON [default: text]
        #[arg(long)]
        json: bool,
    },
    /// Remove the name of an image; `prune` then removes its data
    #[command(alias = "rm")]
    Remove {
        /// Name of the image
        #[arg(value_name = "REF")]
        reference: Reference,
    },
    /// Remove data that no image needs, and leftovers of killed commands
    ///
    /// Keeps images that are in use.
    Prune,
}

/// Arguments of `images pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// Name of the image
    #[arg(value_name = "REF")]
    pub(crate) reference: Reference,
    /// Connect to the registry without TLS [default: only to registries on this machine]
    ///
    /// Anyone on the network path can then replace the image of a tag.
    #[arg(long)]
    pub(crate) plain_http: bool,
    /// Print nothing on success
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `images build`.
#[derive(Debug, Args)]
pub(crate) struct BuildImageArgs {
    /// Languages to include
    #[arg(value_name = "LANG", required = true)]
    pub(crate) languages: Vec<String>,
    /// Name the image [default: sandbox-run/LANG:latest, several languages joined by '-']
    #[arg(long, value_name = "REF")]
    pub(crate) name: Option<Reference>,
    /// Set the Debian release [default: that of this host if it runs Debian, else bookworm]
    #[arg(long)]
    pub(crate) suite: Option<Suite>,
    /// Print nothing on success
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The name of a Debian release, such as `bookworm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suite(String);

impl Suite {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Suite {
    type Err = &'static str;

    /// Restricts the characters, because the name becomes an argument of other programs and part of URLs.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
        let begins_well = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        if begins_well && text.chars().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err("write the name of a Debian release, such as bookworm")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_name_has_only_plain_characters() {
        for good in ["bookworm", "stable-updates", "12.0"] {
            assert_eq!(good.parse::<Suite>().unwrap().as_str(), good);
        }
        for bad in ["", "-x", "a b", "../x", "x;y", "x\n"] {
            assert!(bad.parse::<Suite>().is_err(), "{bad:?}");
        }
    }
}
