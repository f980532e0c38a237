//! `sandbox-run images build LANG…`: an image from Debian packages, without a registry.
//!
//! `mmdebstrap` puts a root file system together, as it is made for; we say which packages, tidy up, and make an
//! image of what comes out. What the recipes take from registries of languages goes into the image too.

mod debian;
mod plan;
mod tools;

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

// `finish.sh` knows it too.
use sandbox::TOOLCHAINS_IN_IMAGES as TOOLCHAINS;
use sandbox::{Installer, Runtimes};
use sandbox_images::{ImageConfig, Store};

use super::progress::Line;
use super::{failure, tell};
use crate::args::{BuildImageArgs, Suite};
use crate::errors::Failure;
use crate::runtimes::from_registries;

use plan::Plan;
use tools::{Stopped, Tools};

const CANCELLED: u8 = 130;
/// Where the programs of Debian are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What is done to the root before it becomes a layer.
const FINISH: &str = include_str!("finish.sh");

pub(super) fn build(args: &BuildImageArgs) -> Result<u8, Failure> {
    let runtimes = Runtimes::load(None).map_err(|error| Failure::ours(&error))?;
    let plan = Plan::make(&runtimes, &args.languages, args.name.clone())?;
    let suite = args.suite.clone().unwrap_or_else(debian::suite_of_host);
    tools::look_for_mmdebstrap()?;
    // Before the long part, so that a store that cannot be used is known now.
    let store = Store::of_user().map_err(|error| failure(&error))?;
    let mut line = Line::on_terminal(args.quiet);
    let tools = Tools::new()?;
    let root = pack(&tools, &plan, &suite, &mut line);
    line.clear();
    let mut root = match root {
        Err(Stopped::Cancelled) => return Ok(CANCELLED),
        Err(Stopped::Failed(failure)) => return Err(failure),
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
    tell("built", &[added.map_err(|error| failure(&error))?], args.quiet)?;
    Ok(0)
}

/// Builds the root file system. Its archive has no name any more when this returns, and goes when it is closed.
fn pack(tools: &Tools, plan: &Plan, suite: &Suite, line: &mut Line) -> Result<File, Stopped> {
    // Whoever mmdebstrap is in a user namespace must come through.
    let mode = Permissions::from_mode(0o711);
    let temporary =
        tempfile::Builder::new().prefix("sandbox-run-build.").permissions(mode).tempdir();
    let temporary = temporary.map_err(|error| cannot("make a temporary directory", &error))?;
    // One second off, for clocks of file systems are behind.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() - 1;
    let toolchains = temporary.path().join("toolchains");
    for (language, installer) in &plan.registries {
        install(tools, &toolchains.join(language), installer, line)?;
    }
    let tar = temporary.path().join("root.tar");
    let mut command = debian::mmdebstrap(&plan.packages);
    // What it leaves if it is ended before it is ready for that goes with the rest.
    command.env("TMPDIR", temporary.path()).env("SANDBOX_RUN_FINISH", FINISH);
    command.env("SANDBOX_RUN_STARTED", started.to_string());
    if !plan.registries.is_empty() {
        command.arg(format!("--customize-hook=mkdir -p \"$1{TOOLCHAINS}\""));
        let from = quoted(&toolchains)?;
        command.arg(format!("--customize-hook=sync-in {from} {TOOLCHAINS}"));
    }
    command.arg(r#"--customize-hook=sh -c "$SANDBOX_RUN_FINISH" finish "$1""#);
    command.arg(suite.as_str()).arg(&tar).args(debian::sources(suite));
    line.say("starting mmdebstrap");
    tools.run("mmdebstrap", command, &mut |text| line.say(text.trim_start_matches("I: ")))?;
    tools.none_is_left();
    File::open(&tar).map_err(|error| cannot("read what mmdebstrap made", &error))
}

fn install(
    tools: &Tools,
    target: &Path,
    installer: &Installer,
    line: &mut Line,
) -> Result<(), Stopped> {
    fs::create_dir_all(target).map_err(|error| cannot("make a temporary directory", &error))?;
    for words in from_registries(installer, target) {
        line.say(&words.join(" "));
        tools.run(&words[0], tools::command(&words), &mut |_| {})?;
    }
    Ok(())
}

/// A path as mmdebstrap reads it in a hook.
fn quoted(path: &Path) -> Result<String, Stopped> {
    let text = path.to_str().filter(|text| !text.contains(['\'', '\n']));
    let text = text.ok_or_else(|| {
        Failure::Usage(format!("mmdebstrap cannot read from {}: set TMPDIR", path.display()))
    })?;
    Ok(format!("'{text}'"))
}

fn cannot(what: &str, error: &io::Error) -> Stopped {
    Failure::Ours(format!("cannot {what}: {error}")).into()
}
