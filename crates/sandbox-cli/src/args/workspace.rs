use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use sandbox::WorkspaceName;

/// Arguments of `workspace`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
A workspace is made by its first use and kept until it is removed. They lie in $SANDBOX_RUN_WORKSPACES,
or else in sandbox-run/workspaces below $XDG_DATA_HOME or ~/.local/share. $SANDBOX_RUN_WORKSPACE_SIZE
bounds each [default: 256M], and 40 files go with each MiB of it.

Example:
  sandbox-run --workspace job --lang bash --code 'echo built > result'
  sandbox-run --workspace job --lang bash --code 'cat result'
  sandbox-run workspace export job | tar t"
)]
pub(crate) struct WorkspaceArgs {
    #[command(subcommand)]
    pub(crate) action: WorkspaceAction,
}

/// What to do with workspaces.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceAction {
    /// List them
    List {
        /// Print JSON instead of a table [default: a table]
        #[arg(long)]
        json: bool,
    },
    /// Print what is known of one, as JSON
    Show {
        /// Its name
        name: WorkspaceName,
    },
    /// Remove one with all that is in it
    #[command(alias = "remove")]
    Rm {
        /// Its name
        name: WorkspaceName,
    },
    /// Write one as a tar archive
    ///
    /// Links in it lead where the program made them lead: unpack it as you would an archive from a
    /// stranger.
    Export {
        /// Its name
        name: WorkspaceName,
        /// Where to [default: standard output]
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Make one from a tar archive, in place of one that may have the name
    ///
    /// Files, directories and symbolic links are taken, all of them or none.
    Import {
        /// Its name
        name: WorkspaceName,
        /// The archive [default: standard input]
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
}
