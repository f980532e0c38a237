//! Arguments of `run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use sandbox::{
    AllowRule, ByteSize, EnvironmentName, NetworkPolicy, Protection, WorkspaceChoice,
    parse_duration,
};
use sandbox_images::Reference;

use super::backend::{BackendArgs, ISOLATION};
use super::server::ServerArgs;
use super::values::{
    IsolationChoice, PackageList, Pair, parse_isolation, parse_packages, parse_pair,
};

const CODE: &str = "Code";
const PROGRAM: &str = "Program";
const LIMITS: &str = "Limits";
const OUTPUT: &str = "Output";

/// Arguments of `run`, the default command.
///
/// Each limit is optional although it has a default: a limit that the user set must be enforced or the execution is
/// refused, while a default that the host cannot enforce is only reported. The library owns defaults and ranges; tests
/// compare them with the help texts.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag without a value")]
pub(crate) struct RunArgs {
    /// Source files; the first is the entry point. One directory is a project. `-` is standard input
    ///
    /// All files of a project are copied, except symbolic links and .git. It starts at --entry, at the file that its
    /// language starts at (such as src/main.rs), at main.EXT, or at its only file. Without FILE, --file and --code the
    /// code is read from standard input.
    #[arg(value_name = "FILE", help_heading = CODE, value_hint = ValueHint::AnyPath)]
    pub(crate) positional: Vec<PathBuf>,

    /// Arguments of the program
    #[arg(value_name = "ARGS", last = true, help_heading = PROGRAM)]
    pub(crate) args: Vec<String>,

    /// Set the language by name or alias, optionally with a version [default: from FILE or its #! line]
    #[arg(short, long, value_name = "LANG[@VERSION]", help_heading = CODE)]
    pub(crate) lang: Option<String>,

    /// Run this source text [default: read FILE or standard input]
    #[arg(short, long, value_name = "TEXT", help_heading = CODE, allow_hyphen_values = true,
          conflicts_with_all = ["file", "positional", "entry"])]
    pub(crate) code: Option<String>,

    /// Add a source file, as FILE does; repeatable [default: none]
    #[arg(short, long, value_name = "PATH", help_heading = CODE, value_hint = ValueHint::AnyPath)]
    pub(crate) file: Vec<PathBuf>,

    /// Start at this source file [default: first FILE; in a project, the main file of its language]
    #[arg(long, value_name = "PATH", help_heading = CODE)]
    pub(crate) entry: Option<String>,

    /// Compile even if the compile cache has the result
    #[arg(long, help_heading = CODE)]
    pub(crate) no_cache: bool,

    /// Fill in this Jinja template and run the result [default: run the code as it is]
    ///
    /// `{{ code }}` is replaced by the code, `{{ KEY }}` by the value from --set or --set-file. A placeholder without
    /// a value is an error.
    #[arg(long, value_name = "FILE", help_heading = CODE, value_hint = ValueHint::FilePath)]
    pub(crate) template: Option<PathBuf>,

    /// Set a value for the template; repeatable [default: none]
    #[arg(long, value_name = "KEY=VALUE", help_heading = CODE, value_parser = parse_pair,
          requires = "template", allow_hyphen_values = true)]
    pub(crate) set: Vec<Pair>,

    /// Set a value for the template from a file; repeatable [default: none]
    #[arg(long, value_name = "KEY=PATH", help_heading = CODE, value_parser = parse_pair,
          requires = "template")]
    pub(crate) set_file: Vec<Pair>,

    /// Read the program's standard input from a file; `-` passes on this command's [default: empty]
    #[arg(long, value_name = "FILE|-", help_heading = PROGRAM, value_hint = ValueHint::FilePath)]
    pub(crate) stdin: Option<PathBuf>,

    /// Copy a file or directory into the work directory; repeatable [default: none]
    ///
    /// DEST is a path below the work directory [default: the last component of SRC].
    #[arg(short, long, value_name = "SRC[:DEST]", help_heading = PROGRAM,
          value_hint = ValueHint::AnyPath)]
    pub(crate) input: Vec<String>,

    /// Mount a host directory in the sandbox, read-only unless `rw`; repeatable [default: none]
    #[arg(short, long, value_name = "HOST:DEST[:ro|rw]", help_heading = PROGRAM)]
    pub(crate) volume: Vec<String>,

    /// Use a work directory that outlives the execution; created on first use [default: a temporary one]
    ///
    /// Changes are saved if the program ends by itself. With `:ro` nothing is saved, and any number of executions may
    /// use it at the same time; otherwise one. It is held in memory while in use, which counts against --memory, and
    /// holds at most 256M and 10240 files.
    #[arg(long, value_name = "NAME[:ro]", help_heading = PROGRAM)]
    pub(crate) workspace: Option<WorkspaceChoice>,

    /// Start in this directory below the work directory [default: the work directory]
    #[arg(long, value_name = "DIR", help_heading = PROGRAM)]
    pub(crate) workdir: Option<String>,

    /// Set an environment variable; repeatable [default: none]
    #[arg(short, long, value_name = "KEY=VALUE", help_heading = PROGRAM, value_parser = parse_pair,
          allow_hyphen_values = true)]
    pub(crate) env: Vec<Pair>,

    /// Install these packages, separated by commas; repeatable [default: none]
    ///
    /// Each is a name with an optional version constraint, as pip or npm write it: six, numpy==2.*, lodash@4. They are
    /// installed once, in a sandbox that reaches only the package index. The program itself has no network.
    #[arg(long, value_name = "SPEC,...", help_heading = PROGRAM, value_parser = parse_packages)]
    pub(crate) packages: Vec<PackageList>,

    /// Hide the packages that are installed on this host [default: visible]
    ///
    /// `sandbox-run runtimes show LANG` lists their directories.
    #[arg(long, help_heading = PROGRAM)]
    pub(crate) no_host_packages: bool,

    /// Use the packages of an environment that `sandbox-run env build` made [default: none]
    #[arg(long, value_name = "NAME", help_heading = PROGRAM, conflicts_with = "packages")]
    pub(crate) environment: Option<EnvironmentName>,

    /// Limit the wall-clock time, 1ms to 24h [default: 10s]
    #[arg(short, long, value_name = "DURATION", help_heading = LIMITS,
          value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Limit the CPU time of all processes, 1ms to 24h [default: no limit]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = parse_duration)]
    pub(crate) cpu_time: Option<Duration>,

    /// Limit the memory of all processes, files in memory included, 1M to 1T [default: 256M]
    #[arg(short, long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) memory: Option<ByteSize>,

    /// Limit the CPUs; fractions allowed, 0.01 to 1024 [default: 1]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) cpus: Option<f64>,

    /// Limit processes and threads together, 1 to 32768 [default: 64]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) pids: Option<u32>,

    /// Limit bytes written to the work directory and /tmp, 64K to 1T [default: 64M]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) disk: Option<ByteSize>,

    /// Limit bytes of stdout and stderr together, and of collected files, 1B to 1G [default: 1M]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) output_limit: Option<ByteSize>,

    /// Limit open files of each process, 4 to 1048576 [default: 256]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) open_files: Option<u32>,

    /// Limit the compiler's wall-clock time, 1ms to 24h [default: 30s]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS, value_parser = parse_duration)]
    pub(crate) compile_timeout: Option<Duration>,

    /// Limit the compiler's memory, 1M to 1T [default: 1G]
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub(crate) compile_memory: Option<ByteSize>,

    /// Set the network access: none, the sandbox's own localhost, or the hosts that --allow names
    #[arg(long, value_name = "none|localhost|allowlist", help_heading = ISOLATION,
          default_value_t = NetworkPolicy::None)]
    pub(crate) network: NetworkPolicy,

    /// Allow connections to a host, with --network allowlist; repeatable [default: none]
    ///
    /// HOST is a name, *.DOMAIN for every name below a domain, an address, or a range such as 10.0.0.0/8. Without a
    /// port, ports 80 and 443 are allowed. A name that resolves to a private address is refused unless a rule allows
    /// that address too.
    #[arg(long, value_name = "HOST[:PORT[-PORT]]", help_heading = ISOLATION)]
    pub(crate) allow: Vec<AllowRule>,

    /// Resolve any host name, not only those that --allow names
    #[arg(long, help_heading = ISOLATION)]
    pub(crate) allow_dns: bool,

    /// Set the isolation backend; auto takes the first of --isolation-order that works here
    #[arg(long, value_name = "native|docker|runc|gvisor|auto", help_heading = ISOLATION,
          default_value = "auto", value_parser = parse_isolation)]
    pub(crate) isolation: IsolationChoice,

    #[command(flatten)]
    pub(crate) backend: BackendArgs,

    /// Use the files and toolchains of a container image [default: those of this host]
    ///
    /// The image must have been pulled, imported or built with `sandbox-run images`. Its environment variables are
    /// set; its user, command and working directory are ignored.
    #[arg(long, value_name = "REF", help_heading = ISOLATION, conflicts_with_all = ["packages", "environment"])]
    pub(crate) image: Option<Reference>,

    /// Run without this protection if the host cannot enforce it; repeatable [default: none]
    ///
    /// `sandbox-run doctor` lists the names. The report lists the protections that were missing.
    #[arg(long, value_name = "NAME", help_heading = ISOLATION)]
    pub(crate) allow_missing: Vec<Protection>,

    /// Run in a background helper that keeps sandboxes ready (see `sandbox-run warm --help`)
    ///
    /// The first use starts the helper. Results are the same as without it.
    #[arg(long, help_heading = ISOLATION)]
    pub(crate) warm: bool,

    /// Write the collected files below this directory, created if missing [default: not written]
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT, value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,

    /// Collect the files that match this pattern; repeatable [default: ** with --output-dir, else none]
    ///
    /// `*` and `?` match within a name, `**` matches any number of directories. The name of a directory collects
    /// everything in it.
    #[arg(long, value_name = "GLOB", help_heading = OUTPUT)]
    pub(crate) collect: Vec<String>,

    /// Set the output format
    ///
    /// text: the program's output as it is produced, then a summary on standard error. json: the report.
    /// ndjson: one event per line as it happens, the report last.
    #[arg(long, value_enum, value_name = "text|json|ndjson", help_heading = OUTPUT,
          default_value_t, hide_possible_values = true)]
    format: Format,

    /// Same as --format json
    #[arg(long, help_heading = OUTPUT, conflicts_with = "format")]
    json: bool,

    /// Print only the program's output, no summary
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,

    /// Emit a usage event this often with --format ndjson, 10ms to 60s [default: no usage events]
    #[arg(long, value_name = "DURATION", help_heading = OUTPUT, value_parser = parse_duration)]
    pub(crate) usage_interval: Option<Duration>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Output format of `run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
    Ndjson,
}

impl RunArgs {
    /// The source files, entry point first.
    pub(crate) fn sources(&self) -> Vec<&Path> {
        let named = self.file.iter().chain(&self.positional);
        named.map(PathBuf::as_path).collect()
    }

    /// The output format, from --format or --json.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

#[cfg(test)]
impl RunArgs {
    /// Parses a command line of `run`.
    pub(crate) fn from_line(line: &[&str]) -> Self {
        use clap::Parser;
        let line = std::iter::once("sandbox-run").chain(line.iter().copied());
        match super::Cli::try_parse_from(line).unwrap().into_command() {
            super::Command::Run(args) => *args,
            command => panic!("not a `run` command: {command:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::CommandFactory;
    use sandbox::{ByteSize, InvalidLimit, Limits, format_duration};
    use std::time::Duration;

    fn help_of(option: &str) -> String {
        let command = Cli::command();
        let found = command.get_arguments().find(|arg| arg.get_id() == option);
        found.unwrap().get_help().unwrap().to_string()
    }

    #[test]
    fn help_states_the_defaults_of_the_library() {
        let (run, compile) = (Limits::run(), Limits::compile());
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
            let help = help_of(option);
            assert!(help.ends_with(&format!("[default: {default}]")), "{option}: {help}");
        }
    }

    #[test]
    fn help_states_the_ranges_of_the_library() {
        let range = |result: Result<Limits, InvalidLimit>| {
            let error = result.unwrap_err().to_string();
            let (_, range) = error.split_once("outside the range ").unwrap();
            range.replace("86400s", "24h")
        };
        let zero = ByteSize::bytes(0);
        for (option, range) in [
            ("timeout", range(Limits::run().with_wall_time(Duration::ZERO))),
            ("cpu_time", range(Limits::run().with_cpu_time(Duration::ZERO))),
            ("memory", range(Limits::run().with_memory(zero))),
            ("cpus", range(Limits::run().with_cpus(0.0))),
            ("pids", range(Limits::run().with_pids(0))),
            ("disk", range(Limits::run().with_disk(zero))),
            ("output_limit", range(Limits::run().with_output(zero))),
            ("open_files", range(Limits::run().with_open_files(0))),
            ("compile_timeout", range(Limits::compile().with_wall_time(Duration::ZERO))),
            ("compile_memory", range(Limits::compile().with_memory(zero))),
        ] {
            let help = help_of(option);
            assert!(
                help.contains(&format!(", {range} [default")),
                "{option}: {range} not in {help}"
            );
        }
    }
}
