use std::fmt::Write as _;

use chrono::DateTime;
use comfy_table::{ContentArrangement, Table};
use sandbox_images::{ImageConfig, ImageInfo, Pruned, Reference, Store};
use serde::Serialize;

use super::failure;
use crate::answer::as_json;
use crate::errors::{Failure, printable};
use crate::output::{figures, terminal_width};

/// All that is known of one image.
#[derive(Debug, Serialize)]
struct Known {
    #[serde(flatten)]
    kept: ImageInfo,
    root: String,
    config: ImageConfig,
}

pub(super) fn table(images: &[ImageInfo]) -> String {
    if images.is_empty() {
        return "there are no images: 'sandbox-run images pull REF' gets one\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table.set_header(["IMAGE", "DIGEST", "LAYERS", "FILES", "SIZE", "ADDED"]);
    for image in images {
        table.add_row([
            printable(&image.reference),
            image.digest.digits()[..12].to_owned(),
            image.layers.to_string(),
            image.entries.to_string(),
            figures::size(image.bytes),
            time(image.added_at),
        ]);
    }
    table.trim_fmt() + "\n"
}

pub(super) fn one(store: &Store, reference: &Reference, json: bool) -> Result<String, Failure> {
    let kept = store.find(reference).map_err(|error| failure(&error))?;
    let image = store.resolve(reference).map_err(|error| failure(&error))?;
    let root = image.root.display().to_string();
    let known = Known { kept, root, config: image.config };
    if json { as_json(&known) } else { Ok(lines(&known)) }
}

fn lines(known: &Known) -> String {
    let Known { kept, root, config } = known;
    let size =
        format!("{} in {} files, {} layers", figures::size(kept.bytes), kept.entries, kept.layers);
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
        // What an image says of itself was written by a stranger.
        let _ = writeln!(text, "{what:<12} {}", printable(&value));
        text
    })
}

pub(super) fn pruned(pruned: &Pruned) -> String {
    let mut text = format!(
        "removed {} unpacked images and {} blobs, {}\n",
        pruned.roots,
        pruned.blobs,
        figures::size(pruned.bytes)
    );
    if pruned.leftovers > 0 {
        let _ =
            writeln!(text, "removed what {} commands had left that were killed", pruned.leftovers);
    }
    if pruned.in_use > 0 {
        let _ = writeln!(text, "left {} that are in use", pruned.in_use);
    }
    text
}

fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| "unknown".to_owned(), |time| time.format("%FT%TZ").to_string())
}
