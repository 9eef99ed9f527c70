//! Rows in a file of any format.

use std::io;

use crate::args::exchange::FileFormat;
use crate::rows::exchange::cell::Cell;
#[cfg(feature = "columnar")]
use crate::rows::exchange::columnar::ColumnWriter;
use crate::rows::exchange::form::Form;
use crate::rows::exchange::origin::Origin;
use crate::rows::exchange::sink::{Sink, Trouble};
use crate::rows::exchange::text_writer::TextWriter;
use crate::terminal::exit::Outcome;

/// Writes rows, one after the other.
pub(crate) struct RowWriter {
    to: To,
    trouble: Trouble,
}

enum To {
    Text(Box<TextWriter>),
    #[cfg(feature = "columnar")]
    Columns(Box<ColumnWriter>),
}

impl RowWriter {
    pub(crate) fn new(
        format: FileFormat,
        form: &Form,
        origin: &Origin,
        sink: Sink,
    ) -> Outcome<Self> {
        let trouble = sink.trouble();
        let to = match format.as_text() {
            Some(text) => {
                TextWriter::new(text, form, sink).map(|writer| To::Text(Box::new(writer)))
            }
            #[cfg(feature = "columnar")]
            None => ColumnWriter::new(format, form.columns(), origin, sink)
                .map(|writer| To::Columns(Box::new(writer))),
            #[cfg(not(feature = "columnar"))]
            None => {
                let _ = origin;
                return Err(super::file_format::not_built(format.name()));
            }
        };
        let to = to.map_err(|error| trouble.failure(&error))?;
        Ok(Self { to, trouble })
    }

    pub(crate) fn write(&mut self, cells: &[Cell<'_>]) -> Outcome {
        let written = match &mut self.to {
            To::Text(writer) => writer.write(cells),
            #[cfg(feature = "columnar")]
            To::Columns(writer) => writer.write(cells),
        };
        written.map_err(|error| self.trouble.failure(&error))
    }

    /// Ends the file. Without it there is none.
    pub(crate) fn finish(self) -> Outcome {
        let sink: io::Result<Sink> = match self.to {
            To::Text(writer) => writer.finish(),
            #[cfg(feature = "columnar")]
            To::Columns(writer) => writer.finish(),
        };
        sink.map_err(|error| self.trouble.failure(&error))?.finish()
    }
}
