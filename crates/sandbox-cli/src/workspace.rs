//! `sandbox-run workspace`: list, show, remove, export and import workspaces.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use sandbox::{Workspace, WorkspaceError, WorkspaceName, Workspaces};

use crate::args::{WorkspaceAction, WorkspaceArgs};
use crate::errors::Failure;
use crate::input;
use crate::output::{new_table, terminal_width, units};
use crate::stdout::{print, to_json};

pub(crate) fn run(args: &WorkspaceArgs) -> Result<u8, Failure> {
    let workspaces = Workspaces::of_user().map_err(|error| failure(&error))?;
    match &args.action {
        WorkspaceAction::List { json } => {
            let listed = workspaces.list().map_err(|error| failure(&error))?;
            print(&if *json { to_json(&listed)? } else { table(&listed) })?;
        }
        WorkspaceAction::Show { name } => {
            print(&to_json(&workspaces.find(name).map_err(|error| failure(&error))?)?)?;
        }
        WorkspaceAction::Rm { name } => {
            workspaces.remove(name).map_err(|error| failure(&error))?;
        }
        WorkspaceAction::Export { name, file } => export(&workspaces, name, file.as_deref())?,
        WorkspaceAction::Import { name, file } => {
            let archive = open(file.as_deref())?;
            workspaces.import(name, archive).map_err(|error| failure(&error))?;
        }
    }
    Ok(0)
}

fn export(
    workspaces: &Workspaces,
    name: &WorkspaceName,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let Some(path) = file else {
        if io::stdout().is_terminal() {
            let reason =
                "cannot write an archive to a terminal: name a file or redirect standard output";
            return Err(Failure::Usage(reason.to_owned()));
        }
        return workspaces.export(name, io::stdout().lock()).map_err(|error| match error {
            // The only I/O that fails here is writing to standard output.
            WorkspaceError::Io { source, .. } => Failure::printing(&source),
            error => failure(&error),
        });
    };
    let cannot =
        |error: io::Error| Failure::Usage(format!("cannot write '{}': {error}", path.display()));
    // Create the file only if the workspace exists.
    workspaces.find(name).map_err(|error| failure(&error))?;
    let mut file = File::create(path).map_err(cannot)?;
    workspaces.export(name, &mut file).map_err(|error| match error {
        WorkspaceError::Io { source, .. } => cannot(source),
        error => failure(&error),
    })
}

fn open(file: Option<&Path>) -> Result<Box<dyn Read>, Failure> {
    match file {
        Some(path) => Ok(Box::new(input::open(path)?.file)),
        None => Ok(Box::new(io::stdin().lock())),
    }
}

fn table(workspaces: &[Workspace]) -> String {
    if workspaces.is_empty() {
        return "no workspaces: create one with 'sandbox-run --workspace NAME'\n".to_owned();
    }
    let mut table = new_table(["WORKSPACE", "FILES", "SIZE", "LAST USED", ""], terminal_width());
    for workspace in workspaces {
        table.add_row([
            workspace.name.to_string(),
            workspace.size.files.to_string(),
            units::format_size(workspace.size.bytes),
            workspace.used_at.format("%FT%TZ").to_string(),
            if workspace.in_use { "in use".to_owned() } else { String::new() },
        ]);
    }
    table.trim_fmt() + "\n"
}

fn failure(error: &WorkspaceError) -> Failure {
    if error.is_internal() { Failure::internal(error) } else { Failure::usage(error) }
}
