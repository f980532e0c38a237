//! Tables without borders that fit the terminal.

use std::io;

use comfy_table::{ContentArrangement, Table};

/// An empty table that wraps its cells at `width`, if there is one.
pub(crate) fn new_table<const N: usize>(header: [&str; N], width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table.set_header(header);
    table
}

/// The width of the terminal; `None` in a pipe, where lines may have any length.
pub(crate) fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
