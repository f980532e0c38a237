//! `sandbox-run images build LANG…`: build an image from Debian packages, without a registry.
//!
//! `mmdebstrap` creates a root file system from the packages that the recipes of the languages name. `finish.sh` removes
//! what a sandbox does not need, and the store turns the result into an image. Toolchains that recipes install with pip
//! or npm are included.

mod debian;
mod plan;
mod tools;

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

// `finish.sh` names it too.
use sandbox::TOOLCHAINS_IN_IMAGES as TOOLCHAINS;
use sandbox::{Installer, Runtimes};
use sandbox_images::{ImageConfig, Store};

use super::progress::ProgressLine;
use super::show::{failure, print_added};
use crate::args::{BuildImageArgs, Suite};
use crate::errors::{EXIT_CANCELLED, Failure};
use crate::runtimes::registry_commands;

use plan::Plan;
use tools::{BuildError, ToolRunner};

/// The `PATH` of the image: the directories of programs in Debian.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The script that cleans up the root before it becomes a layer.
const FINISH: &str = include_str!("finish.sh");

pub(super) fn build(args: &BuildImageArgs) -> Result<u8, Failure> {
    let runtimes = Runtimes::load(None).map_err(|error| Failure::internal(&error))?;
    let plan = Plan::new(&runtimes, &args.languages, args.name.clone())?;
    let suite = args.suite.clone().unwrap_or_else(debian::suite_of_host);
    tools::require_mmdebstrap()?;
    // Before the long part, so that an unusable store fails early.
    let store = Store::of_user().map_err(|error| failure(&error))?;
    let mut line = ProgressLine::new(args.quiet);
    let tools = ToolRunner::new()?;
    let root = build_root(&tools, &plan, &suite, &mut line);
    line.clear();
    let mut root = match root {
        Err(BuildError::Cancelled) => return Ok(EXIT_CANCELLED),
        Err(BuildError::Failed(failure)) => return Err(failure),
        Ok(root) => root,
    };
    let config = ImageConfig {
        environment: vec![("PATH".to_owned(), PATH.to_owned())],
        command: vec!["/bin/sh".to_owned()],
        ..ImageConfig::default()
    };
    let added =
        store.add_root(&mut root, &config, &plan.name, &mut |progress| line.show(&progress));
    line.clear();
    print_added("built", &[added.map_err(|error| failure(&error))?], args.quiet)?;
    Ok(0)
}

/// Builds the root file system. The returned archive is already unlinked and is freed when it is closed.
fn build_root(
    tools: &ToolRunner,
    plan: &Plan,
    suite: &Suite,
    line: &mut ProgressLine,
) -> Result<File, BuildError> {
    // mmdebstrap may run as another id of a user namespace, which must be able to enter the directory.
    let mode = Permissions::from_mode(0o711);
    let temporary =
        tempfile::Builder::new().prefix("sandbox-run-build.").permissions(mode).tempdir();
    let temporary = temporary.map_err(|error| cannot("create a temporary directory", &error))?;
    // One second earlier, because the clocks of file systems lag behind.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() - 1;
    let toolchains = temporary.path().join("toolchains");
    for (language, installer) in &plan.registries {
        install(tools, &toolchains.join(language), installer, line)?;
    }
    let tar = temporary.path().join("root.tar");
    let mut command = debian::mmdebstrap(&plan.packages);
    // If it is killed early, its leftovers are removed with the temporary directory.
    command.env("TMPDIR", temporary.path()).env("SANDBOX_RUN_FINISH", FINISH);
    command.env("SANDBOX_RUN_STARTED", started.to_string());
    if !plan.registries.is_empty() {
        command.arg(format!("--customize-hook=mkdir -p \"$1{TOOLCHAINS}\""));
        let from = quoted(&toolchains)?;
        command.arg(format!("--customize-hook=sync-in {from} {TOOLCHAINS}"));
    }
    command.arg(r#"--customize-hook=sh -c "$SANDBOX_RUN_FINISH" finish "$1""#);
    command.arg(suite.as_str()).arg(&tar).args(debian::sources(suite));
    line.print("starting mmdebstrap");
    tools.run("mmdebstrap", command, &mut |text| line.print(text.trim_start_matches("I: ")))?;
    tools.finish();
    File::open(&tar).map_err(|error| cannot("read the archive of mmdebstrap", &error))
}

fn install(
    tools: &ToolRunner,
    target: &Path,
    installer: &Installer,
    line: &mut ProgressLine,
) -> Result<(), BuildError> {
    fs::create_dir_all(target).map_err(|error| cannot("create a temporary directory", &error))?;
    for words in registry_commands(installer, target) {
        line.print(&words.join(" "));
        tools.run(&words[0], tools::command(&words), &mut |_| {})?;
    }
    Ok(())
}

/// Quotes a path for a hook of mmdebstrap.
fn quoted(path: &Path) -> Result<String, BuildError> {
    let text = path.to_str().filter(|text| !text.contains(['\'', '\n']));
    let text = text.ok_or_else(|| {
        Failure::Usage(format!(
            "mmdebstrap cannot read from '{}': set TMPDIR to a path without quotes",
            path.display()
        ))
    })?;
    Ok(format!("'{text}'"))
}

fn cannot(what: &str, error: &io::Error) -> BuildError {
    Failure::Internal(format!("cannot {what}: {error}")).into()
}
