//! Arguments of `warm`.

use clap::{Args, Subcommand};

/// Arguments of `warm`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Without --warm each sandbox-run creates one sandbox, uses it and tears it down. With --warm a helper, a \
background process of your user, keeps sandboxes ready, so that programs start sooner. The first --warm \
starts the helper. Output, exit codes, limits and isolation are the same, and every sandbox is used once.

The helper listens on a socket in $XDG_RUNTIME_DIR/sandbox-run, or else in /tmp/sandbox-run-UID, \
that only your user can connect to. It exits after 10 minutes without work, or after $SANDBOX_RUN_WARM_IDLE, \
such as 30s. A newly installed sandbox-run replaces it. A call whose settings, privileges or resource limits \
differ from those of the helper gets a helper of its own. A helper stays in the cgroup of the call that started it.

Examples:
  sandbox-run --warm --lang python --code 'print(6 * 7)'
  sandbox-run warm status
  sandbox-run warm stop"
)]
pub(crate) struct WarmArgs {
    #[command(subcommand)]
    pub(crate) action: WarmAction,
}

/// The subcommands of `warm`.
#[derive(Debug, Subcommand)]
pub(crate) enum WarmAction {
    /// Show each running helper: its process, start time and number of executions
    ///
    /// Exit code: 0 if a helper is running, 1 if not.
    Status {
        /// Print JSON [default: text]
        #[arg(long)]
        json: bool,
    },
    /// Stop each helper once its running executions have finished
    Stop,
}
