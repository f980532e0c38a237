//! `sandbox-run cache`: show, verify and clear the store of compiled programs and layers.

use std::fmt::Write as _;

use sandbox::store::{Layer, Store, StoreError, Usage};
use serde::Serialize;

use crate::args::{CacheAction, CacheArgs, ClearArgs};
use crate::errors::{Failure, printable};
use crate::output::{new_table, terminal_width, units};
use crate::stdout::{print, to_json};

/// The contents of the store; the JSON output.
#[derive(Debug, Serialize)]
struct Findings {
    directory: String,
    compiled: Stored,
    /// The layers that contain packages, which `layers` lists too.
    packages: Stored,
    layers: Vec<LayerEntry>,
}

#[derive(Debug, Serialize)]
struct Stored {
    entries: u64,
    bytes: u64,
    /// Maximum size; 0 if the cache is off.
    most_bytes: u64,
}

/// One layer. Only the key is known if the manifest cannot be read.
#[derive(Debug, Serialize)]
struct LayerEntry {
    key: String,
    about: Option<String>,
    created: Option<String>,
    files: Option<u64>,
    bytes: Option<u64>,
}

pub(crate) fn run(args: &CacheArgs) -> Result<u8, Failure> {
    let store = Store::open().map_err(|error| failure(&error))?;
    let mut code = 0;
    let text = match &args.action {
        Some(CacheAction::Clear(args)) => clear(&store, args)?,
        Some(CacheAction::Verify) => {
            let (text, all_intact) = verify(&store)?;
            code = u8::from(!all_intact);
            text
        }
        None => inspect(&store).and_then(|findings| describe(&findings, args.json))?,
    };
    print(&text)?;
    Ok(code)
}

/// One line for each layer, and whether all are intact.
fn verify(store: &Store) -> Result<(String, bool), Failure> {
    let layers = store.layers().list().map_err(|error| failure(&error))?;
    let mut text = String::new();
    let mut all_intact = true;
    for layer in layers {
        let about = layer.manifest.as_ref().map_or("damaged", |manifest| &manifest.about);
        let about = printable(about);
        match store.layers().verify(&layer.key) {
            Ok(()) => {
                let _ = writeln!(text, "intact   {about}");
            }
            Err(error) => {
                all_intact = false;
                let reason = sandbox::with_causes(&error);
                let _ = writeln!(text, "DAMAGED  {about}: {}", printable(&reason));
            }
        }
    }
    if !all_intact {
        text.push_str("remove damaged layers with 'sandbox-run cache clear --layers'; they are created again when needed\n");
    }
    Ok((text, all_intact))
}

/// An invalid environment variable is a usage error; everything else is internal.
fn failure(error: &StoreError) -> Failure {
    match error {
        StoreError::Setting { .. } => Failure::usage(error),
        _ => Failure::internal(error),
    }
}

fn inspect(store: &Store) -> Result<Findings, Failure> {
    let Usage { entries, bytes } = store.compiled().usage().map_err(|error| failure(&error))?;
    let layers = store.layers().list().map_err(|error| failure(&error))?;
    let packages = store.layers().packages().map_err(|error| failure(&error))?;
    let max_packages = store.layers().max_packages().as_u64();
    Ok(Findings {
        directory: store.path().display().to_string(),
        compiled: Stored { entries, bytes, most_bytes: store.compiled().max_size().as_u64() },
        packages: Stored {
            entries: packages.entries,
            bytes: packages.bytes,
            most_bytes: max_packages,
        },
        layers: layers.iter().map(layer_entry).collect(),
    })
}

fn layer_entry(layer: &Layer) -> LayerEntry {
    let manifest = layer.manifest.as_ref();
    LayerEntry {
        key: layer.key.to_string(),
        about: manifest.map(|manifest| manifest.about.clone()),
        created: manifest.map(|manifest| manifest.created.format("%FT%TZ").to_string()),
        files: manifest.map(|manifest| manifest.files),
        bytes: manifest.map(|manifest| manifest.bytes),
    }
}

fn describe(findings: &Findings, json: bool) -> Result<String, Failure> {
    if json {
        return to_json(findings);
    }
    Ok(text(findings, terminal_width()))
}

fn text(findings: &Findings, width: Option<u16>) -> String {
    let mut text = String::new();
    let Stored { entries, bytes, most_bytes } = findings.compiled;
    let _ = writeln!(text, "store     {}", printable(&findings.directory));
    let _ =
        write!(text, "compiled  {}, {}", counted(entries, "program"), units::format_size(bytes));
    let _ = match most_bytes {
        0 => writeln!(text, " (off: SANDBOX_RUN_CACHE_SIZE is 0)"),
        max => writeln!(text, ", max {}", units::format_size(max)),
    };
    let total = findings.layers.iter().filter_map(|layer| layer.bytes).sum();
    let number = counted(findings.layers.len() as u64, "layer");
    let _ = writeln!(text, "layers    {number}, {}", units::format_size(total));
    let Stored { entries, bytes, most_bytes } = findings.packages;
    let (size, max) = (units::format_size(bytes), units::format_size(most_bytes));
    let number = counted(entries, "layer");
    let _ = writeln!(text, "packages  {number} of these, {size}, max {max}");
    if !findings.layers.is_empty() {
        let _ = write!(text, "\n{}", table(&findings.layers, width));
    }
    text
}

fn table(layers: &[LayerEntry], width: Option<u16>) -> String {
    let mut table = new_table(["LAYER", "SIZE", "FILES", "CREATED", "ABOUT"], width);
    for layer in layers {
        // Twelve digits distinguish layers; the JSON output has the whole key.
        table.add_row([
            layer.key.get(..12).unwrap_or(&layer.key).to_owned(),
            layer.bytes.map(units::format_size).unwrap_or_default(),
            layer.files.map(|files| files.to_string()).unwrap_or_default(),
            layer.created.clone().unwrap_or_default(),
            layer.about.as_deref().map_or("damaged".to_owned(), printable),
        ]);
    }
    table.trim_fmt() + "\n"
}

/// Removes compiled programs, layers, or both if neither was named.
fn clear(store: &Store, args: &ClearArgs) -> Result<String, Failure> {
    let both = args.compiled == args.layers;
    let mut text = String::new();
    if both || args.compiled {
        let freed = store.compiled().clear().map_err(|error| failure(&error))?;
        let _ = writeln!(text, "{}", removed(&counted(freed.entries, "compiled program"), freed));
    }
    if both || args.layers {
        let freed = store.layers().clear().map_err(|error| failure(&error))?;
        let _ = writeln!(text, "{}", removed(&counted(freed.entries, "layer"), freed));
    }
    Ok(text)
}

fn removed(what: &str, freed: Usage) -> String {
    format!("removed {what}, {} freed", units::format_size(freed.bytes))
}

fn counted(number: u64, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(most_bytes: u64) -> Findings {
        let layer = |key: &str, about: Option<&str>| LayerEntry {
            key: key.repeat(64),
            about: about.map(str::to_owned),
            created: about.map(|_| "2026-01-15T10:30:00Z".to_owned()),
            files: about.map(|_| 7),
            bytes: about.map(|_| 3 << 20),
        };
        Findings {
            directory: "/store".into(),
            compiled: Stored { entries: 1, bytes: 2048, most_bytes },
            packages: Stored { entries: 1, bytes: 1024, most_bytes: 10 << 30 },
            layers: vec![layer("a", Some("go: the standard\u{1b} library")), layer("b", None)],
        }
    }

    #[test]
    fn the_text_states_sizes_and_maximum_sizes() {
        let text = text(&findings(1 << 30), None);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "store     /store");
        assert_eq!(lines[1], "compiled  1 program, 2.0 KiB, max 1.0 GiB");
        assert_eq!(lines[2], "layers    2 layers, 3.0 MiB");
        assert_eq!(lines[3], "packages  1 layer of these, 1.0 KiB, max 10.0 GiB");
        assert!(lines[6].contains("aaaaaaaaaaaa ") && lines[6].contains("3.0 MiB"), "{text}");
        assert!(lines[6].ends_with("go: the standard\\u{1b} library"), "{text}");
        assert!(lines[7].ends_with("damaged"), "{text}");
    }

    #[test]
    fn a_cache_that_is_off_is_shown_as_off() {
        assert!(text(&findings(0), None).contains("2.0 KiB (off: "));
    }
}
