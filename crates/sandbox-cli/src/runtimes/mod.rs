//! `sandbox-run runtimes`: the languages, and how to get those that are missing.

mod install;

use std::fmt::Write as _;
use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table};
use sandbox::{RuntimeStatus, Runtimes};
use serde::Serialize;

pub(crate) use install::from_registries;

use crate::answer::as_json;
use crate::args::{RuntimesAction, RuntimesArgs};
use crate::errors::{Failure, printable};
use crate::output::terminal_width;
use crate::remote;

/// One language in JSON.
#[derive(Serialize)]
struct Entry<'a> {
    language: &'a str,
    aliases: &'a [String],
    extensions: &'a [String],
    available: bool,
    version: Option<&'a str>,
    versions: &'a [String],
    program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a str>,
    missing: Option<&'a str>,
    install: Option<&'a str>,
    host_packages: Vec<String>,
}

pub(crate) fn list(args: &RuntimesArgs) -> Result<u8, Failure> {
    if args.server.server.is_some() && !args.install.is_empty() {
        let text = "--install gets languages for this host, and --server names another";
        return Err(Failure::Usage(text.to_owned()));
    }
    let found = match remote::runtimes(&args.server)? {
        Some(found) => found,
        None => on_this_host(args)?,
    };
    match &args.action {
        Some(RuntimesAction::Show { language, json }) => show(language, *json || args.json, &found),
        None => print(args, &found),
    }
}

/// One language, by name or alias.
fn show(language: &str, json: bool, found: &[RuntimeStatus]) -> Result<u8, Failure> {
    let wanted = language.to_lowercase();
    let is_it = |status: &&RuntimeStatus| status.name == wanted || status.aliases.contains(&wanted);
    let status = found.iter().find(is_it).ok_or_else(|| {
        Failure::Usage(format!("unknown language '{language}': 'sandbox-run runtimes' lists them"))
    })?;
    crate::answer::print(&if json { as_json(&entry(status))? } else { lines(status) })?;
    Ok(0)
}

fn lines(status: &RuntimeStatus) -> String {
    let mut lines = vec![("language", status.name.clone())];
    let mut add = |name, text: String| lines.extend((!text.is_empty()).then_some((name, text)));
    add("aliases", status.aliases.join(" "));
    add("versions", status.versions.join(" "));
    add(
        "program",
        status.program.as_ref().map_or_else(String::new, |path| path.display().to_string()),
    );
    add("image", status.image.clone().unwrap_or_default());
    add("missing", status.missing.clone().unwrap_or_default());
    add("install", status.install.clone().unwrap_or_default());
    let packages = status.host_packages.iter().map(|path| path.display().to_string());
    for directory in packages {
        add("host packages", directory);
    }
    if !status.host_packages.is_empty() {
        add(
            "",
            "visible by default, and not what a program brings: --no-host-packages hides them"
                .to_owned(),
        );
    }
    lines.into_iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<14} {}", printable(&value));
        text
    })
}

fn on_this_host(args: &RuntimesArgs) -> Result<Vec<RuntimeStatus>, Failure> {
    let mut runtimes = Runtimes::load(None).map_err(|error| Failure::ours(&error))?;
    if !args.install.is_empty() {
        install::install(&runtimes, &args.install)?;
        // What was looked at before is looked at anew.
        runtimes = Runtimes::load(None).map_err(|error| Failure::ours(&error))?;
    }
    Ok(runtimes.probe_all())
}

fn print(args: &RuntimesArgs, found: &[RuntimeStatus]) -> Result<u8, Failure> {
    let text = if args.json {
        let entries: Vec<_> = found.iter().map(entry).collect();
        as_json(&entries)?
    } else {
        table(found, terminal_width())
    };
    let printed = io::stdout().lock().write_all(text.as_bytes());
    printed.map_err(|error| Failure::printing(&error))?;
    Ok(0)
}

fn entry(status: &RuntimeStatus) -> Entry<'_> {
    Entry {
        language: &status.name,
        aliases: &status.aliases,
        extensions: &status.extensions,
        available: status.missing.is_none(),
        version: status.version.as_deref(),
        versions: &status.versions,
        program: status.program.as_ref().map(|path| path.display().to_string()),
        image: status.image.as_deref(),
        missing: status.missing.as_deref(),
        install: status.install.as_deref(),
        host_packages: status.host_packages.iter().map(|path| path.display().to_string()).collect(),
    }
}

fn table(found: &[RuntimeStatus], width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table.set_header(["LANGUAGE", "VERSIONS", "ALIASES", "FILES", "PROGRAM"]);
    for status in found {
        let files = status.extensions.iter().map(|extension| {
            let extension = extension.trim_start_matches('.');
            format!(".{extension}")
        });
        let program = match (&status.program, &status.missing) {
            (_, Some(missing)) => match &status.install {
                Some(install) => format!("{missing}; get it: {install}"),
                None => missing.clone(),
            },
            (Some(program), None) => program.display().to_string(),
            (None, None) => status
                .image
                .as_ref()
                .map_or_else(String::new, |image| format!("in the image {image}")),
        };
        let version =
            if status.missing.is_none() { status.versions.join(" ") } else { "missing".to_owned() };
        let cells = [
            status.name.clone(),
            version,
            status.aliases.join(" "),
            files.collect::<Vec<_>>().join(" "),
            program,
        ];
        table.add_row(cells.map(|cell| printable(&cell)));
    }
    table.trim_fmt() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses() -> [RuntimeStatus; 2] {
        let python = RuntimeStatus {
            name: "python".into(),
            aliases: vec!["py".into()],
            extensions: vec!["py".into()],
            version: Some("3.11.2".into()),
            versions: vec!["3.11.2".into(), "3.12.1".into()],
            program: Some("/usr/bin/python3".into()),
            image: None,
            missing: None,
            install: Some("apt-get install python3".into()),
            host_packages: vec!["/usr/lib/python3/dist-packages".into()],
        };
        let c = RuntimeStatus {
            name: "c".into(),
            aliases: Vec::new(),
            extensions: vec!["c".into(), "h".into()],
            version: None,
            versions: Vec::new(),
            program: None,
            image: None,
            missing: Some("there is no gcc".into()),
            install: Some("apt-get install gcc".into()),
            host_packages: Vec::new(),
        };
        [python, c]
    }

    #[test]
    fn one_language_is_shown_with_the_packages_of_the_host() {
        let [python, c] = statuses();
        let text = lines(&python);
        for part in
            ["host packages  /usr/lib/python3/dist-packages\n", "--no-host-packages hides them\n"]
        {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        assert!(!lines(&c).contains("host packages"));
    }

    #[test]
    fn the_table_tells_what_is_there_and_how_to_get_what_is_not() {
        let text = table(&statuses(), None);
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[1].contains("3.11.2 3.12.1") && lines[1].contains("/usr/bin/python3"),
            "{text}"
        );
        assert!(!lines[1].contains("apt-get"), "{text}");
        assert!(lines[2].contains(".c .h") && lines[2].contains("missing"), "{text}");
        assert!(lines[2].ends_with("there is no gcc; get it: apt-get install gcc"), "{text}");
    }

    #[test]
    fn json_says_whether_a_language_can_be_used() {
        let statuses = statuses();
        let entries: Vec<_> = statuses.iter().map(entry).collect();
        let value = serde_json::to_value(entries).unwrap();
        assert_eq!(value[0]["available"], true);
        assert_eq!(value[1]["available"], false);
        assert_eq!(value[1]["install"], "apt-get install gcc");
    }
}
