//! The figures of a bench on their way out: as tables or as JSON lines, and kept to be drawn.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::Error;
use crate::command::command;
use crate::plot::PlotFile;

/// Flags of how figures are shown, which all benches have.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SheetFlags {
    /// Print one JSON object a line instead of tables
    #[arg(long)]
    json: bool,

    /// Draw the figures, too: bars of the engines side by side, with their spread
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// Where figures go.
pub(crate) struct Sheet<'a> {
    out: &'a mut dyn Write,
    json: bool,
    plot: Option<(PlotFile, Vec<u8>)>,
}

impl SheetFlags {
    /// Opens what figures go to, before they are measured.
    pub(crate) fn open<'a>(&self, out: &'a mut dyn Write) -> Result<Sheet<'a>, Error> {
        let plot = self.plot.as_deref().map(PlotFile::create).transpose()?;
        Ok(Sheet { out, json: self.json, plot: plot.map(|file| (file, Vec::new())) })
    }
}

impl Sheet<'_> {
    /// Prints figures, of which there may be more, by the one or the other.
    pub(crate) fn print(
        &mut self,
        json: impl Fn(&mut dyn Write) -> io::Result<()>,
        tables: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some((_, lines)) = &mut self.plot {
            json(lines)?;
        }
        match self.json {
            true => json(self.out),
            false => tables(self.out),
        }
    }

    /// Ends the sheet: draws the plot; prints what `last` says below tables, and the command that repeats them.
    pub(crate) fn end(
        self,
        last: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        if !self.json {
            last(self.out)?;
            writeln!(self.out, "\nRepeat with: {}", command())?;
        }
        if let Some((file, lines)) = &self.plot {
            file.draw(std::str::from_utf8(lines)?)?;
        }
        Ok(())
    }
}
