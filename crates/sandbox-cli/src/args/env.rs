//! Arguments of `env`.

use clap::{Args, Subcommand};
use sandbox::{EnvironmentName, LanguageChoice};

use super::values::{PackageList, parse_packages};

/// Arguments of `env`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Packages come from the index that pip or npm is configured to use on this host. They are kept in the store, which \
`sandbox-run cache` shows; environments with the same packages share them.

Examples:
  sandbox-run env build data --lang python --packages 'numpy==2.*,requests'
  sandbox-run --environment data analyse.py"
)]
pub(crate) struct EnvArgs {
    #[command(subcommand)]
    pub(crate) action: EnvAction,
}

/// The subcommands of `env`.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvAction {
    /// Install packages and name the set
    ///
    /// Replaces an environment of the same name, with the versions that the index has now.
    Build(BuildArgs),
    /// List environments
    List {
        /// Print JSON [default: a table]
        #[arg(long)]
        json: bool,
    },
    /// Print the lock of an environment as JSON: every package with its version and hash
    Show {
        /// Name of the environment
        name: EnvironmentName,
    },
    /// Remove an environment; its packages stay in the store until `cache clear`
    Remove {
        /// Name of the environment
        name: EnvironmentName,
    },
}

/// Arguments of `env build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// Name of the environment
    pub(crate) name: EnvironmentName,

    /// Set the language, optionally with a version
    #[arg(short, long, value_name = "LANG[@VERSION]")]
    pub(crate) lang: LanguageChoice,

    /// Install these packages, separated by commas; repeatable
    #[arg(long, value_name = "SPEC,...", value_parser = parse_packages, required = true)]
    pub(crate) packages: Vec<PackageList>,

    /// Print the lock as JSON, without progress [default: one line of text]
    #[arg(long)]
    pub(crate) json: bool,

    /// Print nothing on success
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
