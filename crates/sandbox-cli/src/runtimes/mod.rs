//! `sandbox-run runtimes`: list languages, show one, install missing ones.

mod install;

use std::fmt::Write as _;

use sandbox::{RuntimeStatus, Runtimes};
use serde::Serialize;

pub(crate) use install::registry_commands;

use crate::args::{RuntimesAction, RuntimesArgs};
use crate::errors::{Failure, printable};
use crate::output::{new_table, terminal_width};
use crate::remote;
use crate::stdout::{print, to_json};

/// One language; an element of the JSON output.
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

pub(crate) fn run(args: &RuntimesArgs) -> Result<u8, Failure> {
    if args.server.server.is_some() && !args.install.is_empty() {
        let text = "--install cannot be used with --server: it installs on this host";
        return Err(Failure::Usage(text.to_owned()));
    }
    let found = match remote::runtimes(&args.server)? {
        Some(found) => found,
        None => on_this_host(args)?,
    };
    match &args.action {
        Some(RuntimesAction::Show { language, json }) => show(language, *json || args.json, &found),
        None => list(args, &found),
    }
}

/// Prints one language, by name or alias.
fn show(language: &str, json: bool, found: &[RuntimeStatus]) -> Result<u8, Failure> {
    let wanted = language.to_lowercase();
    let is_it = |status: &&RuntimeStatus| status.name == wanted || status.aliases.contains(&wanted);
    let status = found.iter().find(is_it).ok_or_else(|| {
        Failure::Usage(format!(
            "unknown language '{language}': list languages with 'sandbox-run runtimes'"
        ))
    })?;
    print(&if json { to_json(&entry(status))? } else { lines(status) })?;
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
        add("", "visible to programs by default; --no-host-packages hides them".to_owned());
    }
    lines.into_iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<14} {}", printable(&value));
        text
    })
}

fn on_this_host(args: &RuntimesArgs) -> Result<Vec<RuntimeStatus>, Failure> {
    let mut runtimes = Runtimes::load(None).map_err(|error| Failure::internal(&error))?;
    if !args.install.is_empty() {
        install::install(&runtimes, &args.install)?;
        // Probe again after the installation.
        runtimes = Runtimes::load(None).map_err(|error| Failure::internal(&error))?;
    }
    Ok(runtimes.probe_all())
}

fn list(args: &RuntimesArgs, found: &[RuntimeStatus]) -> Result<u8, Failure> {
    let text = if args.json {
        let entries: Vec<_> = found.iter().map(entry).collect();
        to_json(&entries)?
    } else {
        table(found, terminal_width())
    };
    print(&text)?;
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
    let mut table = new_table(["LANGUAGE", "VERSIONS", "ALIASES", "FILES", "PROGRAM"], width);
    for status in found {
        let files = status.extensions.iter().map(|extension| {
            let extension = extension.trim_start_matches('.');
            format!(".{extension}")
        });
        let program = match (&status.program, &status.missing) {
            (_, Some(missing)) => match &status.install {
                Some(install) => format!("{missing}; install it with: {install}"),
                None => missing.clone(),
            },
            (Some(program), None) => program.display().to_string(),
            (None, None) => {
                status.image.as_ref().map_or_else(String::new, |image| format!("in image {image}"))
            }
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
    fn a_language_is_shown_with_its_host_packages() {
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
    fn the_table_shows_versions_and_how_to_install_missing_languages() {
        let text = table(&statuses(), None);
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[1].contains("3.11.2 3.12.1") && lines[1].contains("/usr/bin/python3"),
            "{text}"
        );
        assert!(!lines[1].contains("apt-get"), "{text}");
        assert!(lines[2].contains(".c .h") && lines[2].contains("missing"), "{text}");
        assert!(
            lines[2].ends_with("there is no gcc; install it with: apt-get install gcc"),
            "{text}"
        );
    }

    #[test]
    fn json_states_whether_a_language_is_available() {
        let statuses = statuses();
        let entries: Vec<_> = statuses.iter().map(entry).collect();
        let value = serde_json::to_value(entries).unwrap();
        assert_eq!(value[0]["available"], true);
        assert_eq!(value[1]["available"], false);
        assert_eq!(value[1]["install"], "apt-get install gcc");
    }
}
