//! `sandbox-run images`: pull, import, build, list, show and remove container images.

mod build;
mod progress;
mod show;

use std::path::Path;

use sandbox_images::{Reference, Store};

use crate::args::{ImagesAction, ImagesArgs, PullArgs};
use crate::errors::Failure;
use crate::input;
use crate::stdout::{print, to_json};

use progress::ProgressLine;
use show::{failure, print_added};

pub(crate) fn run(args: &ImagesArgs) -> Result<u8, Failure> {
    if let ImagesAction::Import { file, .. } = &args.action {
        // Before the store is created.
        check_readable(file)?;
    }
    if let ImagesAction::Build(args) = &args.action {
        // It opens the store after the plan is known to be valid.
        return build::build(args);
    }
    let store = Store::of_user().map_err(|error| failure(&error))?;
    match &args.action {
        ImagesAction::Pull(args) => pull(&store, args)?,
        ImagesAction::Import { file, name, quiet } => {
            import(&store, file, name.as_ref(), *quiet)?;
        }
        ImagesAction::Build(_) => {}
        ImagesAction::List { json } => {
            let listed = store.list().map_err(|error| failure(&error))?;
            print(&if *json { to_json(&listed)? } else { show::table(&listed) })?;
        }
        ImagesAction::Show { reference, json } => {
            print(&show::describe(&store, reference, *json)?)?;
        }
        ImagesAction::Remove { reference } => {
            store.remove(reference).map_err(|error| failure(&error))?;
        }
        ImagesAction::Prune => {
            let pruned = store.prune().map_err(|error| failure(&error))?;
            print(&show::pruned(&pruned))?;
        }
    }
    Ok(0)
}

#[cfg(feature = "https")]
fn pull(store: &Store, args: &PullArgs) -> Result<(), Failure> {
    use sandbox_images::{PlainHttp, PullOptions};

    let plain_http = if args.plain_http { PlainHttp::Everywhere } else { PlainHttp::Loopback };
    let options = PullOptions { plain_http, ..PullOptions::default() };
    let mut line = ProgressLine::new(args.quiet);
    let pulled = store.pull(&args.reference, &options, &mut |progress| line.show(&progress));
    line.clear();
    print_added("pulled", &[pulled.map_err(|error| failure(&error))?], args.quiet)
}

#[cfg(not(feature = "https"))]
fn pull(_: &Store, args: &PullArgs) -> Result<(), Failure> {
    let PullArgs { reference, plain_http: _, quiet: _ } = args;
    Err(Failure::Usage(format!(
        "cannot pull {reference}: this build has no https; import the image from a file"
    )))
}

fn import(
    store: &Store,
    file: &Path,
    name: Option<&Reference>,
    quiet: bool,
) -> Result<(), Failure> {
    let mut line = ProgressLine::new(quiet);
    let imported = store.import(file, name, &mut |progress| line.show(&progress));
    line.clear();
    print_added("imported", &imported.map_err(|error| failure(&error))?, quiet)
}

fn check_readable(file: &Path) -> Result<(), Failure> {
    // An OCI layout is a directory.
    if file.is_dir() { Ok(()) } else { input::open(file).map(drop) }
}
