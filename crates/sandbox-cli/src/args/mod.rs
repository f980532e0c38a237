//! The command-line interface as data. Parsing reads no file and does not probe the host; [`crate::input`] and
//! [`crate::request`] do.

mod backend;
mod env;
mod images;
mod run;
mod server;
mod usage_error;
mod values;
mod warm;
mod workspace;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use backend::BackendArgs;
pub(crate) use env::{BuildArgs, EnvAction, EnvArgs};
pub(crate) use images::{BuildImageArgs, ImagesAction, ImagesArgs, PullArgs, Suite};
pub(crate) use run::{Format, RunArgs};
pub(crate) use server::{ServerArgs, move_server_after_command};
pub(crate) use usage_error::usage_error_line;
pub(crate) use values::IsolationChoice;
pub(crate) use warm::{WarmAction, WarmArgs};
pub(crate) use workspace::{WorkspaceAction, WorkspaceArgs};

const USAGE: &str = "sandbox-run [run] [OPTIONS] [FILE]... [-- ARGS...]
       sandbox-run runtimes | doctor | env | workspace | images | cache [clear] | warm | seccomp |
       completions SHELL";

const EXAMPLES: &str = "\
Examples:
  sandbox-run --lang python --code 'print(6 * 7)'
  sandbox-run hello.c -- first-argument
  sandbox-run --timeout 2s --memory 64M --stdin numbers.txt solve.py
  sandbox-run project/ --entry src/start.py --output-dir results
  echo 'echo hello' | sandbox-run --lang bash --json

DURATION is a number with ms, s, m or h, such as 500ms. SIZE is a whole number with K, M, G or T, such as 64M.

Exit code: that of the program, or
  2 invalid request, 65 compilation failed, 124 time limit, 125 internal error, 130 cancelled,
  137 memory limit, 153 output limit";

/// Run untrusted code in a sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "sandbox-run",
    version,
    override_usage = USAGE,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    max_term_width = 110,
    arg_required_else_help = false
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run code; the default command
    #[command(override_usage = "sandbox-run [run] [OPTIONS] [FILE]... [-- ARGS...]", after_help = EXAMPLES)]
    Run(Box<RunArgs>),
    /// List languages and versions, show one, install missing ones
    Runtimes(RuntimesArgs),
    /// Check which protections and isolation backends work on this host
    Doctor(DoctorArgs),
    /// Build, list, show and remove environments: named sets of packages
    Env(EnvArgs),
    /// List, show, remove, export and import workspaces: work directories that outlive executions
    Workspace(WorkspaceArgs),
    /// Pull, import, build, list, show and remove container images
    Images(ImagesArgs),
    /// Show, verify and clear compiled programs and layers
    Cache(CacheArgs),
    /// Show and stop the background helper of --warm
    Warm(WarmArgs),
    /// Print the seccomp filter as a Docker or OCI profile
    Seccomp(SeccompArgs),
    /// Print a shell completion script
    Completions(CompletionsArgs),
}

/// Arguments of `runtimes`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The first version of a language is its default; --lang python@3.12 selects another.
To add a language, create a directory with a runtime.toml in ~/.config/sandbox-run/runtimes.

Examples:
  sandbox-run runtimes show python
  sandbox-run runtimes --install go ruby")]
pub(crate) struct RuntimesArgs {
    #[command(subcommand)]
    pub(crate) action: Option<RuntimesAction>,

    /// Install these languages with apt-get, pip or npm, then list all [default: list only]
    #[arg(long, value_name = "LANG", num_args = 1..)]
    pub(crate) install: Vec<String>,

    /// Print JSON [default: a table]
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The subcommands of `runtimes`.
#[derive(Debug, Subcommand)]
pub(crate) enum RuntimesAction {
    /// Show a language: its versions, its program and the host packages it can import
    Show {
        /// Name or alias of the language
        #[arg(value_name = "LANG")]
        language: String,
        /// Print JSON [default: text]
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 if every protection can be enforced, 1 if not.
With --attack: 0 if every attack that could run was contained, 1 if not or if none could run.")]
pub(crate) struct DoctorArgs {
    /// Run the bundled attacks in the sandbox and show which protection stopped each
    #[arg(long)]
    pub(crate) attack: bool,
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) backend: BackendArgs,
}

/// Arguments of `cache`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "\
Environment variables:
  SANDBOX_RUN_STORE          directory [default: sandbox-run/store in $XDG_CACHE_HOME or ~/.cache]
  SANDBOX_RUN_CACHE_SIZE     maximum size of compiled programs; 0 keeps none [default: 1G]
  SANDBOX_RUN_PACKAGES_SIZE  maximum size of installed packages [default: 10G]

Packages that were not used for 30 days are removed too."
)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub(crate) action: Option<CacheAction>,
    /// Print JSON [default: a table]
    #[arg(long)]
    pub(crate) json: bool,
}

/// The subcommands of `cache`.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Remove compiled programs and layers
    ///
    /// They are created again when needed. A running program loses the layers it uses.
    Clear(ClearArgs),
    /// Compare every layer with its manifest
    ///
    /// Compiled programs are verified on every use. Exit code: 1 if a layer is damaged.
    Verify,
}

/// Arguments of `cache clear`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClearArgs {
    /// Remove only compiled programs [default: both]
    #[arg(long)]
    pub(crate) compiled: bool,
    /// Remove only layers: files that toolchains prepared, and packages [default: both]
    #[arg(long)]
    pub(crate) layers: bool,
}

/// Arguments of `seccomp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The profile allows the same system calls as the native sandbox; a denied call fails with the same error.

Example:
  sandbox-run seccomp > seccomp.json
  docker run --security-opt seccomp=seccomp.json --security-opt no-new-privileges ...")]
pub(crate) struct SeccompArgs {
    /// Print the linux.seccomp object of an OCI bundle [default: a Docker profile]
    #[arg(long)]
    pub(crate) oci: bool,
}

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  sandbox-run completions bash > ~/.local/share/bash-completion/completions/sandbox-run"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    pub(crate) shell: Shell,
}

impl Cli {
    /// Parses the command line.
    pub(crate) fn parse_line(
        line: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches_from(line)?;
        backend::reject_with_server(matches.subcommand_matches("run").unwrap_or(&matches))?;
        Self::from_arg_matches(&matches)
    }

    /// The subcommand; `run` if none was given.
    pub(crate) fn into_command(self) -> Command {
        self.command.unwrap_or_else(|| Command::Run(Box::new(self.run)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &[&str]) -> Command {
        let line = std::iter::once("sandbox-run").chain(line.iter().copied());
        Cli::try_parse_from(line).unwrap().into_command()
    }

    #[test]
    fn the_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_is_the_default_command() {
        for line in [
            &["--lang", "python", "a.py", "--", "-x"][..],
            &["run", "a.py", "--lang", "python", "--", "-x"],
        ] {
            let Command::Run(args) = parse(line) else { panic!("{line:?} is not a `run` command") };
            assert_eq!(args.lang.as_deref(), Some("python"));
            assert_eq!(args.sources(), [std::path::Path::new("a.py")]);
            assert_eq!(args.args, ["-x"]);
        }
    }

    #[test]
    fn a_file_named_like_a_command_is_reached_by_its_path() {
        assert!(matches!(parse(&["doctor"]), Command::Doctor(_)));
        assert!(matches!(parse(&["./doctor"]), Command::Run(_)));
    }

    #[test]
    fn every_option_has_a_help_text_and_a_heading() {
        for option in Cli::command().get_arguments() {
            let id = option.get_id();
            assert!(option.get_help().is_some(), "{id} has no help");
            let bare = ["help", "version"].contains(&id.as_str());
            assert!(bare || option.get_help_heading().is_some(), "{id} has no heading");
        }
    }

    #[test]
    fn every_option_with_a_value_states_its_default() {
        for option in Cli::command().get_arguments() {
            if option.is_positional() || !option.get_action().takes_values() {
                continue;
            }
            let help = option.get_help().unwrap().to_string();
            let shown = help.contains("[default:") || !option.get_default_values().is_empty();
            assert!(shown, "{} does not state its default", option.get_id());
        }
    }
}
