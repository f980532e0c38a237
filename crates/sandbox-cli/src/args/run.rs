use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use sandbox::{
    AllowRule, ByteSize, EnvironmentName, NetworkPolicy, Protection, WorkspaceChoice,
    parse_duration,
};
use sandbox_images::Reference;

use super::values::{IsolationChoice, Packages, Pair, parse_isolation, parse_packages, parse_pair};
use super::{OrderArgs, ServerArgs};

const CODE: &str = "Code";
const PROGRAM: &str = "What the program gets";
const LIMITS: &str = "Limits";
const WALLS: &str = "Walls";
const RESULT: &str = "Result";

/// Arguments of `run`, the default command.
///
/// Limits are optional here although each has a default: one that was typed must be enforced or the
/// execution is refused, while a default that the host cannot enforce is only listed. The defaults
/// themselves belong to the library; a test below compares them with what the help says.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed or not")]
pub(crate) struct RunArgs {
    /// Files of the program; the first is where it starts
    ///
    /// A directory is a project: all its files go in (links and .git stay out), and it starts at
    /// main.EXT or at its only file. `-` reads the code from standard input, which is also what
    /// happens when no code is given at all.
    #[arg(value_name = "FILE", help_heading = CODE, value_hint = ValueHint::AnyPath)]
    pub(crate) positional: Vec<PathBuf>,

    /// Arguments for the program
    #[arg(value_name = "ARGS", last = true, help_heading = PROGRAM)]
    pub(crate) args: Vec<String>,

    /// Language, by name or alias, with a version if need be [default: from FILE or its #! line]
    #[arg(short, long, value_name = "LANG[@VERSION]", help_heading = CODE)]
    pub(crate) lang: Option<String>,

    /// The code itself [default: read from FILE, or from standard input]
    #[arg(short, long, value_name = "TEXT", help_heading = CODE, allow_hyphen_values = true,
          conflicts_with_all = ["file", "positional", "entry"])]
    pub(crate) code: Option<String>,

    /// The same as FILE; can be repeated [default: none]
    #[arg(short, long, value_name = "PATH", help_heading = CODE, value_hint = ValueHint::AnyPath)]
    pub(crate) file: Vec<PathBuf>,

    /// Where the program starts, if not at the first file [default: main.EXT or the first file]
    #[arg(long, value_name = "PATH", help_heading = CODE)]
    pub(crate) entry: Option<String>,

    /// Compile it anew, even if the same program was compiled before
    #[arg(long, help_heading = CODE)]
    pub(crate) no_cache: bool,

    /// Fill in this template and run the result [default: the code as it is]
    ///
    /// `{{ name }}` stands for what `--set name=...` says, `{{ code }}` for the code. A placeholder
    /// without a value is an error.
    #[arg(long, value_name = "FILE", help_heading = CODE, value_hint = ValueHint::FilePath)]
    pub(crate) template: Option<PathBuf>,

    /// A value for the template; can be repeated [default: none]
    #[arg(long, value_name = "KEY=VALUE", help_heading = CODE, value_parser = parse_pair,
          requires = "template", allow_hyphen_values = true)]
    pub(crate) set: Vec<Pair>,

    /// A value for the template, from a file; can be repeated [default: none]
    #[arg(long, value_name = "KEY=PATH", help_heading = CODE, value_parser = parse_pair,
          requires = "template")]
    pub(crate) set_file: Vec<Pair>,

    /// Standard input of the program: a file, or - for our own [default: empty]
    #[arg(long, value_name = "FILE|-", help_heading = PROGRAM, value_hint = ValueHint::FilePath)]
    pub(crate) stdin: Option<PathBuf>,

    /// Put a file or directory into its work directory; can be repeated [default: none]
    ///
    /// DEST is a path below the work directory. Without it the last name of SRC is used.
    #[arg(short, long, value_name = "SRC[:DEST]", help_heading = PROGRAM,
          value_hint = ValueHint::AnyPath)]
    pub(crate) input: Vec<String>,

    /// Show it a directory of this host, read-only unless rw; can be repeated [default: none]
    #[arg(short, long, value_name = "HOST:DEST[:ro|rw]", help_heading = PROGRAM)]
    pub(crate) volume: Vec<String>,

    /// Work in a directory that outlives the execution; it is made by its first use [default: none]
    ///
    /// Its files are in the work directory, and what the program leaves there is kept if the program
    /// ends by itself. With :ro nothing is kept, and any number of executions can have it at once. It lies
    /// in memory, which counts against --memory, and holds up to 256M and 10240 files.
    #[arg(long, value_name = "NAME[:ro]", help_heading = PROGRAM)]
    pub(crate) workspace: Option<WorkspaceChoice>,

    /// Start in this directory below the work directory [default: the work directory]
    #[arg(long, value_name = "DIR", help_heading = PROGRAM)]
    pub(crate) workdir: Option<String>,

    /// Set a variable in its environment; can be repeated [default: none]
    #[arg(short, long, value_name = "KEY=VALUE", help_heading = PROGRAM, value_parser = parse_pair,
          allow_hyphen_values = true)]
    pub(crate) env: Vec<Pair>,

    /// Packages to be there, separated by commas; can be repeated [default: none]
    ///
    /// Each is a name with the versions that will do, as pip or npm write it: six, numpy==2.*,
    /// lodash@4. They are fetched and installed once, in a sandbox that reaches the package index and
    /// nothing else; the program itself has no network.
    #[arg(long, value_name = "SPEC,...", help_heading = PROGRAM, value_parser = parse_packages)]
    pub(crate) packages: Vec<Packages>,

    /// Hide the packages that this host has installed for its own use [default: they can be imported]
    ///
    /// `sandbox-run runtimes show LANG` lists where they are.
    #[arg(long, help_heading = PROGRAM)]
    pub(crate) no_host_packages: bool,

    /// Use the packages of an environment, which `sandbox-run env build` makes [default: none]
    #[arg(long, value_name = "NAME", help_heading = PROGRAM, conflicts_with = "packages")]
    pub(crate) environment: Option<EnvironmentName>,

    /// Time on the clock [default: 10s]
    #[arg(short, long, value_name = "DURATION", help_heading = LIMITS,
          value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// CPU time of all its processes together [default: no limit but the clock]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = parse_duration)]
    pub(crate) cpu_time: Option<Duration>,

    /// Memory of all its processes together, files in /tmp included [default: 256M]
    #[arg(short, long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) memory: Option<ByteSize>,

    /// CPUs' worth of time, in parts if need be [default: 1]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) cpus: Option<f64>,

    /// Processes and threads at once [default: 64]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) pids: Option<u32>,

    /// Bytes written to the work directory and /tmp [default: 64M]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) disk: Option<ByteSize>,

    /// Bytes printed, both streams together, and as many again in collected files [default: 1M]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) output_limit: Option<ByteSize>,

    /// Open files of one process [default: 256]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) open_files: Option<u32>,

    /// Time on the clock for compiling [default: 30s]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = parse_duration)]
    pub(crate) compile_timeout: Option<Duration>,

    /// Memory for compiling [default: 1G]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) compile_memory: Option<ByteSize>,

    /// What it reaches: none, a localhost of its own, or what --allow names besides
    #[arg(long, value_name = "none|localhost|allowlist", help_heading = WALLS,
          default_value_t = NetworkPolicy::None)]
    pub(crate) network: NetworkPolicy,

    /// Let it reach this, with --network allowlist; can be repeated [default: nothing]
    ///
    /// HOST is a name, *.domain for every name below it, an address, or a range of addresses such as 10.0.0.0/8.
    /// Without a port it is 80 and 443. A name that leads to a private address is refused, unless that address is
    /// allowed too.
    #[arg(long, value_name = "HOST[:PORT[-PORT]]", help_heading = WALLS)]
    pub(crate) allow: Vec<AllowRule>,

    /// Look up any name for it, also one that --allow does not name
    #[arg(long, help_heading = WALLS)]
    pub(crate) allow_dns: bool,

    /// What builds the walls: this program itself (native), docker, runc, gvisor, or auto to leave the choice
    #[arg(long, value_name = "native|docker|runc|gvisor|auto", help_heading = WALLS, default_value = "auto",
          value_parser = parse_isolation)]
    pub(crate) isolation: IsolationChoice,

    #[command(flatten)]
    pub(crate) order: OrderArgs,

    /// See the files and programs of this image instead of this host's [default: this host's]
    ///
    /// One that `sandbox-run images` has pulled, imported or built. The language is looked for in it as it is on a
    /// host, and its variables are set. Its user, command and directory are not used.
    #[arg(long, value_name = "REF", help_heading = WALLS, conflicts_with_all = ["packages", "environment"])]
    pub(crate) image: Option<Reference>,

    /// Go on without this protection if the host cannot give it; can be repeated [default: none]
    ///
    /// The names are those `sandbox-run doctor` shows. The report lists what was missing.
    #[arg(long, value_name = "NAME", help_heading = WALLS)]
    pub(crate) allow_missing: Vec<Protection>,

    /// Write the files the program leaves below this directory [default: nowhere]
    #[arg(short, long, value_name = "DIR", help_heading = RESULT, value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,

    /// Which files to bring back; can be repeated [default: ** with --output-dir, else none]
    ///
    /// `*` and `?` stand for parts of a name, `**` for any directories. The name of a directory brings
    /// back everything in it.
    #[arg(long, value_name = "GLOB", help_heading = RESULT)]
    pub(crate) collect: Vec<String>,

    /// How to print the result
    ///
    /// text: the program's output as it comes, then a line about it on standard error.
    /// json: the report. ndjson: one event a line as they happen, the report last.
    #[arg(long, value_enum, value_name = "text|json|ndjson", help_heading = RESULT,
          default_value_t, hide_possible_values = true)]
    format: Format,

    /// Short for --format json
    #[arg(long, help_heading = RESULT, conflicts_with = "format")]
    json: bool,

    /// Print nothing but what the program prints
    #[arg(short, long, help_heading = RESULT)]
    pub(crate) quiet: bool,

    /// Sample what it uses this often, for --format ndjson [default: no samples]
    #[arg(long, value_name = "DURATION", help_heading = RESULT, value_parser = parse_duration)]
    pub(crate) usage_interval: Option<Duration>,

    /// Let a helper in the background do it, which keeps sandboxes prepared (see `sandbox-run warm --help`)
    ///
    /// The first use starts the helper. Everything else is as it is without.
    #[arg(long, help_heading = WALLS)]
    pub(crate) warm: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// How the result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
    Ndjson,
}

impl RunArgs {
    /// The files of the program in the order they count.
    pub(crate) fn sources(&self) -> Vec<&Path> {
        let named = self.file.iter().chain(&self.positional);
        named.map(PathBuf::as_path).collect()
    }

    /// How to print, whichever way it was asked for.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

#[cfg(test)]
impl RunArgs {
    /// What the command makes of a line, for tests.
    pub(crate) fn typed(line: &[&str]) -> Self {
        use clap::Parser;
        let line = std::iter::once("sandbox-run").chain(line.iter().copied());
        match super::Cli::try_parse_from(line).unwrap().into_command() {
            super::Command::Run(args) => *args,
            command => panic!("this is another command: {command:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::CommandFactory;
    use sandbox::{Limits, format_duration};

    #[test]
    fn the_help_tells_the_defaults_of_the_library() {
        let (run, compile) = (Limits::run(), Limits::compile());
        let command = Cli::command();
        for (option, default) in [
            ("timeout", format_duration(run.wall_time())),
            ("memory", run.memory().to_string()),
            ("cpus", run.cpus().to_string()),
            ("pids", run.pids().to_string()),
            ("disk", run.disk().to_string()),
            ("output_limit", run.output().to_string()),
            ("open_files", run.open_files().to_string()),
            ("compile_timeout", format_duration(compile.wall_time())),
            ("compile_memory", compile.memory().to_string()),
        ] {
            let found = command.get_arguments().find(|arg| arg.get_id() == option);
            let help = found.unwrap().get_help().unwrap().to_string();
            let wanted = format!("[default: {default}]");
            assert!(help.ends_with(&wanted), "{option}: {help}");
        }
    }
}
