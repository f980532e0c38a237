//! `sandbox-run images`: what sandboxes can have as their root.

mod build;
mod progress;
mod show;

use std::path::Path;

use sandbox_images::{ImageError, ImageInfo, Reference, Store};

use crate::answer::{as_json, print};
use crate::args::{ImagesAction, ImagesArgs, PullArgs};
use crate::errors::{Failure, printable};
use crate::input;
use crate::output::figures;

use progress::Line;

pub(crate) fn carry_out(args: &ImagesArgs) -> Result<u8, Failure> {
    if let ImagesAction::Import { file, .. } = &args.action {
        // Before anything is made.
        look_at(file)?;
    }
    if let ImagesAction::Build(args) = &args.action {
        // It opens the store when it knows what to build.
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
            print(&if *json { as_json(&listed)? } else { show::table(&listed) })?;
        }
        ImagesAction::Show { reference, json } => {
            print(&show::one(&store, reference, *json)?)?;
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
    let mut line = Line::on_terminal(args.quiet);
    let pulled = store.pull(&args.reference, &options, &mut |progress| line.show(&progress));
    line.clear();
    tell("pulled", &[pulled.map_err(|error| failure(&error))?], args.quiet)
}

#[cfg(not(feature = "https"))]
fn pull(_: &Store, args: &PullArgs) -> Result<(), Failure> {
    let PullArgs { reference, plain_http: _, quiet: _ } = args;
    Err(Failure::Usage(format!(
        "this sandbox-run was built without https and cannot pull {reference}: import it from a file"
    )))
}

fn import(
    store: &Store,
    file: &Path,
    name: Option<&Reference>,
    quiet: bool,
) -> Result<(), Failure> {
    let mut line = Line::on_terminal(quiet);
    let imported = store.import(file, name, &mut |progress| line.show(&progress));
    line.clear();
    tell("imported", &imported.map_err(|error| failure(&error))?, quiet)
}

fn look_at(file: &Path) -> Result<(), Failure> {
    // A directory may be an image too.
    if file.is_dir() { Ok(()) } else { input::open(file).map(drop) }
}

fn tell(done: &str, images: &[ImageInfo], quiet: bool) -> Result<(), Failure> {
    if quiet {
        return Ok(());
    }
    let line = |image: &ImageInfo| {
        let (size, files) = (figures::size(image.bytes), image.entries);
        let reference = printable(&image.reference);
        format!("{done} {reference} ({}), {size} in {files} files\n", image.digest)
    };
    print(&images.iter().map(line).collect::<String>())
}

fn failure(error: &ImageError) -> Failure {
    if error.is_internal() { Failure::ours(error) } else { Failure::usage(error) }
}
