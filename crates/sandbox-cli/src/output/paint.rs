use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// Colours for a terminal; none in a pipe, with NO_COLOR set, and on terminals without colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    colour: bool,
}

impl Paint {
    /// Detects whether a stream supports colours.
    pub(crate) fn for_stream<S: anstream::stream::RawStream>(stream: &S) -> Self {
        Self { colour: AutoStream::choice(stream) != ColorChoice::Never }
    }

    /// Without colours.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { colour: false }
    }

    /// With colours.
    #[cfg(test)]
    pub(crate) fn always() -> Self {
        Self { colour: true }
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default().bold(), text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}
