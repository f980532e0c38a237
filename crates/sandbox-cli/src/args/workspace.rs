//! Arguments of `workspace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use sandbox::WorkspaceName;

/// Arguments of `workspace`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
A workspace is created on first use and kept until it is removed.

Environment variables:
  SANDBOX_RUN_WORKSPACES      directory
                              [default: sandbox-run/workspaces in $XDG_DATA_HOME or ~/.local/share]
  SANDBOX_RUN_WORKSPACE_SIZE  maximum size of each, with 40 files per MiB [default: 256M]

Examples:
  sandbox-run --workspace job --lang bash --code 'echo built > result'
  sandbox-run --workspace job --lang bash --code 'cat result'
  sandbox-run workspace export job | tar t"
)]
pub(crate) struct WorkspaceArgs {
    #[command(subcommand)]
    pub(crate) action: WorkspaceAction,
}

/// The subcommands of `workspace`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceAction {
    /// List workspaces
    List {
        /// Print JSON [default: a table]
        #[arg(long)]
        json: bool,
    },
    /// Show a workspace as JSON
    Show {
        /// Name of the workspace
        name: WorkspaceName,
    },
    /// Remove a workspace and its files
    #[command(alias = "remove")]
    Rm {
        /// Name of the workspace
        name: WorkspaceName,
    },
    /// Export a workspace as a tar archive
    ///
    /// Links in the archive are those that the program made: unpack it as any untrusted archive.
    Export {
        /// Name of the workspace
        name: WorkspaceName,
        /// File to write [default: standard output]
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Import a workspace from a tar archive, replacing one of the same name
    ///
    /// Imports all files, directories and symbolic links, or none.
    Import {
        /// Name of the workspace
        name: WorkspaceName,
        /// Archive to read [default: standard input]
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
}
