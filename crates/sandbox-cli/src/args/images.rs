use std::path::PathBuf;

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
