//! Prints images.

use std::fmt::Write as _;

use chrono::DateTime;
use sandbox_images::{ImageConfig, ImageError, ImageInfo, Pruned, Reference, Store};
use serde::Serialize;

use crate::errors::{Failure, printable};
use crate::output::{new_table, terminal_width, units};
use crate::stdout::{print, to_json};

/// One image; the JSON output of `images show`.
#[derive(Debug, Serialize)]
struct ImageDetails {
    #[serde(flatten)]
    kept: ImageInfo,
    root: String,
    config: ImageConfig,
}

pub(super) fn table(images: &[ImageInfo]) -> String {
    if images.is_empty() {
        return "no images: get one with 'sandbox-run images pull REF'\n".to_owned();
    }
    let mut table =
        new_table(["IMAGE", "DIGEST", "LAYERS", "FILES", "SIZE", "ADDED"], terminal_width());
    for image in images {
        table.add_row([
            printable(&image.reference),
            image.digest.digits()[..12].to_owned(),
            image.layers.to_string(),
            image.entries.to_string(),
            units::format_size(image.bytes),
            time(image.added_at),
        ]);
    }
    table.trim_fmt() + "\n"
}

pub(super) fn describe(
    store: &Store,
    reference: &Reference,
    json: bool,
) -> Result<String, Failure> {
    let kept = store.find(reference).map_err(|error| failure(&error))?;
    let image = store.resolve(reference).map_err(|error| failure(&error))?;
    let root = image.root.display().to_string();
    let known = ImageDetails { kept, root, config: image.config };
    if json { to_json(&known) } else { Ok(lines(&known)) }
}

fn lines(known: &ImageDetails) -> String {
    let ImageDetails { kept, root, config } = known;
    let size = format!(
        "{} in {} files, {} layers",
        units::format_size(kept.bytes),
        kept.entries,
        kept.layers
    );
    let mut lines = vec![
        ("image", kept.reference.clone()),
        ("digest", kept.digest.to_string()),
        ("size", size),
        ("added", time(kept.added_at)),
        ("root", root.clone()),
    ];
    let variables = config.environment.iter();
    lines.extend(variables.map(|(name, value)| ("environment", format!("{name}={value}"))));
    lines.extend(config.working_directory.clone().map(|directory| ("directory", directory)));
    lines.extend(config.user.clone().map(|user| ("user", user)));
    for (what, words) in [("entrypoint", &config.entrypoint), ("command", &config.command)] {
        if !words.is_empty() {
            lines.push((what, words.join(" ")));
        }
    }
    lines.into_iter().fold(String::new(), |mut text, (what, value)| {
        // The configuration of an image is untrusted.
        let _ = writeln!(text, "{what:<12} {}", printable(&value));
        text
    })
}

pub(super) fn pruned(pruned: &Pruned) -> String {
    let mut text = format!(
        "removed {} unpacked images and {} blobs, {}\n",
        pruned.roots,
        pruned.blobs,
        units::format_size(pruned.bytes)
    );
    if pruned.leftovers > 0 {
        let _ = writeln!(text, "removed the leftovers of {} killed commands", pruned.leftovers);
    }
    if pruned.in_use > 0 {
        let _ = writeln!(text, "kept {} images that are in use", pruned.in_use);
    }
    text
}

fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| "unknown".to_owned(), |time| time.format("%FT%TZ").to_string())
}

/// Prints a line for each image that was pulled, imported or built.
pub(super) fn print_added(action: &str, images: &[ImageInfo], quiet: bool) -> Result<(), Failure> {
    if quiet {
        return Ok(());
    }
    let line = |image: &ImageInfo| {
        let (size, files) = (units::format_size(image.bytes), image.entries);
        let reference = printable(&image.reference);
        format!("{action} {reference} ({}), {size} in {files} files\n", image.digest)
    };
    print(&images.iter().map(line).collect::<String>())
}

pub(super) fn failure(error: &ImageError) -> Failure {
    if error.is_internal() { Failure::internal(error) } else { Failure::usage(error) }
}
