//! `sandbox-run cache`: what is kept between runs, and how to get rid of it.

use std::fmt::Write as _;
use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table};
use sandbox::store::{Layer, Store, StoreError, Usage};
use serde::Serialize;

use crate::answer::as_json;
use crate::args::{CacheAction, CacheArgs, ClearArgs};
use crate::errors::{Failure, printable};
use crate::output::{figures, terminal_width};

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Findings {
    directory: String,
    compiled: CompiledPrograms,
    packages: InstalledPackages,
    layers: Vec<LayerEntry>,
}

#[derive(Debug, Serialize)]
struct CompiledPrograms {
    entries: u64,
    bytes: u64,
    /// 0 if none are kept.
    most_bytes: u64,
}

/// Layers that hold packages; they are among the layers too.
#[derive(Debug, Serialize)]
struct InstalledPackages {
    entries: u64,
    bytes: u64,
    most_bytes: u64,
}

/// One layer. Only its key is known if its manifest cannot be read.
#[derive(Debug, Serialize)]
struct LayerEntry {
    key: String,
    about: Option<String>,
    created: Option<String>,
    files: Option<u64>,
    bytes: Option<u64>,
}

pub(crate) fn carry_out(args: &CacheArgs) -> Result<u8, Failure> {
    let store = Store::open().map_err(|error| failure(&error))?;
    let mut code = 0;
    let text = match &args.action {
        Some(CacheAction::Clear(args)) => clear(&store, args)?,
        Some(CacheAction::Verify) => {
            let (text, all_well) = verify(&store)?;
            code = u8::from(!all_well);
            text
        }
        None => look(&store).and_then(|findings| describe(&findings, args.json))?,
    };
    let printed = io::stdout().lock().write_all(text.as_bytes());
    printed.map_err(|error| Failure::printing(&error))?;
    Ok(code)
}

/// A line for each layer, and whether none of them is damaged.
fn verify(store: &Store) -> Result<(String, bool), Failure> {
    let layers = store.layers().list().map_err(|error| failure(&error))?;
    let mut text = String::new();
    let mut all_well = true;
    for layer in layers {
        let about = layer.manifest.as_ref().map_or("damaged", |manifest| &manifest.about);
        let about = printable(about);
        match store.layers().verify(&layer.key) {
            Ok(()) => {
                let _ = writeln!(text, "as it was made  {about}");
            }
            Err(error) => {
                all_well = false;
                let reason = sandbox::with_causes(&error);
                let _ = writeln!(text, "DAMAGED         {about}: {}", printable(&reason));
            }
        }
    }
    if !all_well {
        text.push_str("`sandbox-run cache clear --layers` removes them; they are then made anew\n");
    }
    Ok((text, all_well))
}

/// A variable with a wrong value is put right by the person who set it.
fn failure(error: &StoreError) -> Failure {
    match error {
        StoreError::Setting { .. } => Failure::usage(error),
        _ => Failure::ours(error),
    }
}

fn look(store: &Store) -> Result<Findings, Failure> {
    let Usage { entries, bytes } = store.compiled().usage().map_err(|error| failure(&error))?;
    let layers = store.layers().list().map_err(|error| failure(&error))?;
    let packages = store.layers().packages().map_err(|error| failure(&error))?;
    let most_packages = store.layers().max_packages().as_u64();
    Ok(Findings {
        directory: store.path().display().to_string(),
        compiled: CompiledPrograms {
            entries,
            bytes,
            most_bytes: store.compiled().max_size().as_u64(),
        },
        packages: InstalledPackages {
            entries: packages.entries,
            bytes: packages.bytes,
            most_bytes: most_packages,
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
        return as_json(findings);
    }
    Ok(text(findings, terminal_width()))
}

fn text(findings: &Findings, width: Option<u16>) -> String {
    let mut text = String::new();
    let CompiledPrograms { entries, bytes, most_bytes } = findings.compiled;
    let _ = writeln!(text, "store     {}", printable(&findings.directory));
    let _ = write!(text, "compiled  {}, {}", counted(entries, "program"), figures::size(bytes));
    let _ = match most_bytes {
        0 => writeln!(text, " (off: SANDBOX_RUN_CACHE_SIZE is 0)"),
        most => writeln!(text, " of at most {}", figures::size(most)),
    };
    let total = findings.layers.iter().filter_map(|layer| layer.bytes).sum();
    let number = counted(findings.layers.len() as u64, "layer");
    let _ = writeln!(text, "layers    {number}, {}", figures::size(total));
    let InstalledPackages { entries, bytes, most_bytes } = findings.packages;
    let (size, most) = (figures::size(bytes), figures::size(most_bytes));
    let number = counted(entries, "layer");
    let _ = writeln!(text, "packages  {number} of these, {size} of at most {most}");
    if !findings.layers.is_empty() {
        let _ = write!(text, "\n{}", table(&findings.layers, width));
    }
    text
}

fn table(layers: &[LayerEntry], width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table.set_header(["LAYER", "SIZE", "FILES", "CREATED", "ABOUT"]);
    for layer in layers {
        // Twelve digits are enough to tell layers apart; all of them are in the JSON form.
        table.add_row([
            layer.key.get(..12).unwrap_or(&layer.key).to_owned(),
            layer.bytes.map(figures::size).unwrap_or_default(),
            layer.files.map(|files| files.to_string()).unwrap_or_default(),
            layer.created.clone().unwrap_or_default(),
            layer.about.as_deref().map_or("damaged".to_owned(), printable),
        ]);
    }
    table.trim_fmt() + "\n"
}

/// Removes what was named, or everything if nothing was.
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
    format!("removed {what}, {} freed", figures::size(freed.bytes))
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
            compiled: CompiledPrograms { entries: 1, bytes: 2048, most_bytes },
            packages: InstalledPackages { entries: 1, bytes: 1024, most_bytes: 10 << 30 },
            layers: vec![layer("a", Some("go: the standard\u{1b} library")), layer("b", None)],
        }
    }

    #[test]
    fn the_text_tells_what_is_kept_and_how_much_may_be() {
        let text = text(&findings(1 << 30), None);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "store     /store");
        assert_eq!(lines[1], "compiled  1 program, 2.0 KiB of at most 1.0 GiB");
        assert_eq!(lines[2], "layers    2 layers, 3.0 MiB");
        assert_eq!(lines[3], "packages  1 layer of these, 1.0 KiB of at most 10.0 GiB");
        assert!(lines[6].contains("aaaaaaaaaaaa ") && lines[6].contains("3.0 MiB"), "{text}");
        assert!(lines[6].ends_with("go: the standard\\u{1b} library"), "{text}");
        assert!(lines[7].ends_with("damaged"), "{text}");
    }

    #[test]
    fn a_cache_that_is_off_is_told_as_such() {
        assert!(text(&findings(0), None).contains("2.0 KiB (off: "));
    }
}
