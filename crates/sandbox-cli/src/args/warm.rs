use clap::{Args, Subcommand};

/// Arguments of `warm`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
By itself each sandbox-run builds one sandbox, uses it and takes it down. With --warm it leaves the \
work to a helper, a process of yours in the background that keeps sandboxes prepared: the first \
--warm starts it, later ones find it, and programs start sooner. Output, exit codes, limits and walls \
are the same, and every sandbox is still used once.

The helper listens on a socket in $XDG_RUNTIME_DIR/sandbox-run, or else in /tmp/sandbox-run-UID, \
which only you can use. It ends by itself after 10 minutes without work, or after \
$SANDBOX_RUN_WARM_IDLE, such as 30s. A sandbox-run that was installed anew replaces it. Where your \
settings, rights or resource limits differ from those it was started with, you get a second one; its \
cgroup stays that of the call that started it.

Example:
  sandbox-run --warm --lang python --code 'print(6 * 7)'
  sandbox-run warm status
  sandbox-run warm stop"
)]
pub(crate) struct WarmArgs {
    #[command(subcommand)]
    pub(crate) action: WarmAction,
}

/// What to do with the helper.
#[derive(Debug, Subcommand)]
pub(crate) enum WarmAction {
    /// Tell whether it runs, since when, and how much it did
    ///
    /// Exit code: 0 if it runs, 1 if it does not.
    Status {
        /// Print JSON instead of lines [default: lines]
        #[arg(long)]
        json: bool,
    },
    /// End it, once what it is running has ended
    Stop,
}
