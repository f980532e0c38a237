use clap::{Args, Subcommand};
use sandbox::{EnvironmentName, LanguageChoice};

use super::values::{Packages, parse_packages};

/// Arguments of `env`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Packages come from the index that pip or npm on this host are set up to use, by their settings and
variables. They are kept in the store, which `sandbox-run cache` shows; environments that come to the
same packages share them.

Example:
  sandbox-run env build data --lang python --packages 'numpy==2.*,requests'
  sandbox-run --environment data analyse.py"
)]
pub(crate) struct EnvArgs {
    #[command(subcommand)]
    pub(crate) action: EnvAction,
}

/// What to do with environments.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvAction {
    /// Fetch and install packages, and give them a name
    ///
    /// One that has the name already is replaced, with what the index has now.
    Build(BuildArgs),
    /// List them
    List {
        /// Print JSON instead of a table [default: a table]
        #[arg(long)]
        json: bool,
    },
    /// Print the lock of one: every package with its version and hash, as JSON
    Show {
        /// Its name
        name: EnvironmentName,
    },
    /// Forget one; its packages stay in the store until that is cleared
    Remove {
        /// Its name
        name: EnvironmentName,
    },
}

/// Arguments of `env build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// What to call it
    pub(crate) name: EnvironmentName,

    /// The language, with @VERSION if only that one will do
    #[arg(short, long, value_name = "LANG[@VERSION]")]
    pub(crate) lang: LanguageChoice,

    /// The packages, separated by commas; can be repeated
    #[arg(long, value_name = "SPEC,...", value_parser = parse_packages, required = true)]
    pub(crate) packages: Vec<Packages>,

    /// Print the lock as JSON, and no progress [default: a line of text]
    #[arg(long)]
    pub(crate) json: bool,

    /// Print nothing if all goes well
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
