//! `sandbox-run workspace`: directories that outlive executions.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use comfy_table::{ContentArrangement, Table};
use sandbox::{Workspace, WorkspaceError, WorkspaceName, Workspaces};

use crate::answer::{as_json, print};
use crate::args::{WorkspaceAction, WorkspaceArgs};
use crate::errors::Failure;
use crate::input;
use crate::output::{figures, terminal_width};

pub(crate) fn carry_out(args: &WorkspaceArgs) -> Result<u8, Failure> {
    let workspaces = Workspaces::of_user().map_err(|error| failure(&error))?;
    match &args.action {
        WorkspaceAction::List { json } => {
            let listed = workspaces.list().map_err(|error| failure(&error))?;
            print(&if *json { as_json(&listed)? } else { table(&listed) })?;
        }
        WorkspaceAction::Show { name } => {
            print(&as_json(&workspaces.find(name).map_err(|error| failure(&error))?)?)?;
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
            let reason = "an archive is nothing to look at: name a file, or redirect the output";
            return Err(Failure::Usage(reason.to_owned()));
        }
        return workspaces.export(name, io::stdout().lock()).map_err(|error| match error {
            // The one file that can fail here is the reader's.
            WorkspaceError::Io { source, .. } => Failure::printing(&source),
            error => failure(&error),
        });
    };
    let cannot =
        |error: io::Error| Failure::Usage(format!("cannot write '{}': {error}", path.display()));
    // Not made before the workspace is known to be there.
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
        return "there are no workspaces: 'sandbox-run --workspace NAME' makes one\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table.set_header(["WORKSPACE", "FILES", "SIZE", "LAST USED", ""]);
    for workspace in workspaces {
        table.add_row([
            workspace.name.to_string(),
            workspace.size.files.to_string(),
            figures::size(workspace.size.bytes),
            workspace.used_at.format("%FT%TZ").to_string(),
            if workspace.in_use { "in use".to_owned() } else { String::new() },
        ]);
    }
    table.trim_fmt() + "\n"
}

fn failure(error: &WorkspaceError) -> Failure {
    if error.is_internal() { Failure::ours(error) } else { Failure::usage(error) }
}
