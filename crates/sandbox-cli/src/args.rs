//! What can be typed, as data. Nothing here opens a file or asks the host: that is what
//! [`crate::input`] and [`crate::request`] do with it.

mod env;
mod images;
mod one_line;
mod order;
mod run;
mod server;
mod values;
mod warm;
mod workspace;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use env::{BuildArgs, EnvAction, EnvArgs};
pub(crate) use images::{BuildImageArgs, ImagesAction, ImagesArgs, PullArgs, Suite};
pub(crate) use one_line::one_line;
pub(crate) use order::OrderArgs;
pub(crate) use run::{Format, RunArgs};
pub(crate) use server::{ServerArgs, server_behind_command};
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

Exit code: the program's own, or
  2 the request is wrong, 65 it does not compile, 124 out of time, 125 our own failure,
  130 cancelled, 137 out of memory, 153 too much output";

/// Runs code nobody trusts, in a sandbox made for it.
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

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run code (what happens when no command is named)
    #[command(override_usage = "sandbox-run [run] [OPTIONS] [FILE]... [-- ARGS...]", after_help = EXAMPLES)]
    Run(Box<RunArgs>),
    /// List the languages, their versions, and how to get what is missing; show one
    Runtimes(RuntimesArgs),
    /// Explain what this host can enforce
    Doctor(DoctorArgs),
    /// Build, list and remove environments (packages)
    Env(EnvArgs),
    /// List, show, remove, export and import workspaces
    Workspace(WorkspaceArgs),
    /// Pull, import, build, list, show and remove container images
    Images(ImagesArgs),
    /// Show and clear the compile cache
    Cache(CacheArgs),
    /// Look at the helper that --warm uses, and end it
    Warm(WarmArgs),
    /// Print the system-call filter as a profile for Docker
    Seccomp(SeccompArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// Arguments of `runtimes`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The first version of a language is its default; another one is asked for as python@3.12.
A language of your own is a folder in ~/.config/sandbox-run/runtimes with a runtime.toml in it.

Examples:
  sandbox-run runtimes show python
  sandbox-run runtimes --install go ruby")]
pub(crate) struct RuntimesArgs {
    #[command(subcommand)]
    pub(crate) action: Option<RuntimesAction>,

    /// Get these languages with apt-get, pip or npm, then list all [default: only list]
    #[arg(long, value_name = "LANG", num_args = 1..)]
    pub(crate) install: Vec<String>,

    /// Print JSON instead of a table [default: a table]
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// What to do with languages other than to list them.
#[derive(Debug, Subcommand)]
pub(crate) enum RuntimesAction {
    /// Show one language: its versions, its packages, and which of the host's it can import
    Show {
        /// A name or an alias
        #[arg(value_name = "LANG")]
        language: String,
        /// Print JSON instead of lines [default: lines]
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 if every protection can be enforced here, 1 if one cannot.
With --attack: 0 if every attack that could be tried was contained, 1 if one was not.")]
pub(crate) struct DoctorArgs {
    /// Prove it: try the attacks that come with this program and show what stopped each
    #[arg(long)]
    pub(crate) attack: bool,
    /// Print JSON instead of a list [default: a list]
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) order: OrderArgs,
}

/// Arguments of `cache`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "\
The store lies in $SANDBOX_RUN_STORE, or else in sandbox-run/store below $XDG_CACHE_HOME or ~/.cache.
$SANDBOX_RUN_CACHE_SIZE bounds the compiled programs [default: 1G]; 0 turns their cache off.
$SANDBOX_RUN_PACKAGES_SIZE bounds the installed packages [default: 10G]; those not used for 30 days go too."
)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub(crate) action: Option<CacheAction>,
    /// Print JSON instead of a table [default: a table]
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with the cache.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Remove what is kept, all of it or one kind
    ///
    /// It is made again when it is needed. A program that is running loses the layers it uses.
    Clear(ClearArgs),
    /// Compare every layer with what was written when it was made
    ///
    /// Compiled programs are compared whenever they are used. Exit code: 1 if a layer is damaged.
    Verify,
}

/// Arguments of `cache clear`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClearArgs {
    /// Remove compiled programs [default: both kinds]
    #[arg(long)]
    pub(crate) compiled: bool,
    /// Remove layers: what toolchains had prepared, and packages [default: both kinds]
    #[arg(long)]
    pub(crate) layers: bool,
}

/// Arguments of `seccomp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What the profile allows is what a program may do in the native walls, and a denied call fails with the same error.

Example:
  sandbox-run seccomp > seccomp.json
  docker run --security-opt seccomp=seccomp.json --security-opt no-new-privileges ...")]
pub(crate) struct SeccompArgs {
    /// Print what belongs at linux.seccomp of an OCI bundle instead [default: for Docker]
    #[arg(long)]
    pub(crate) oci: bool,
}

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  sandbox-run completions bash > ~/.local/share/bash-completion/completions/sandbox-run"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

impl Cli {
    /// Reads what was typed.
    pub(crate) fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches_from(line)?;
        order::refuse_with_server(matches.subcommand_matches("run").unwrap_or(&matches))?;
        Self::from_arg_matches(&matches)
    }

    /// The command, with `run` where none was named.
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
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_need_not_be_named() {
        for line in [
            &["--lang", "python", "a.py", "--", "-x"][..],
            &["run", "a.py", "--lang", "python", "--", "-x"],
        ] {
            let Command::Run(args) = parse(line) else { panic!("{line:?} is another command") };
            assert_eq!(args.lang.as_deref(), Some("python"));
            assert_eq!(args.sources(), [std::path::Path::new("a.py")]);
            assert_eq!(args.args, ["-x"]);
        }
    }

    #[test]
    fn a_file_with_the_name_of_a_command_is_reached_by_its_path() {
        assert!(matches!(parse(&["doctor"]), Command::Doctor(_)));
        assert!(matches!(parse(&["./doctor"]), Command::Run(_)));
    }

    #[test]
    fn every_option_has_a_help_text_and_a_place_in_it() {
        for option in Cli::command().get_arguments() {
            let id = option.get_id();
            assert!(option.get_help().is_some(), "{id} has no help");
            let bare = ["help", "version"].contains(&id.as_str());
            assert!(bare || option.get_help_heading().is_some(), "{id} has no heading");
        }
    }

    #[test]
    fn every_option_that_takes_a_value_tells_its_default() {
        for option in Cli::command().get_arguments() {
            if option.is_positional() || !option.get_action().takes_values() {
                continue;
            }
            let help = option.get_help().unwrap().to_string();
            let shown = help.contains("[default:") || !option.get_default_values().is_empty();
            assert!(shown, "{} does not tell its default", option.get_id());
        }
    }
}
