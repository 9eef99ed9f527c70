//! Shell completions and manual pages, from the definition of the arguments.

use std::fs;
use std::io::Write;

use clap::CommandFactory;

use crate::args::{Args, Completions, Man};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::ui::Ui;
use sapwood::files::plain;

pub(crate) fn completions(args: &Completions, ui: &Ui) -> Outcome {
    // Into memory first: the generator panics when its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "sapwood", &mut script);
    ui.print(|out| out.write_all(&script))
}

pub(crate) fn man(args: &Man, ui: &Ui) -> Outcome {
    let Some(directory) = &args.directory else {
        return ui.print(|out| clap_mangen::Man::new(Args::command()).render(out));
    };
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Args::command(), directory))
        .map_err(|error| {
            let directory = directory.display();
            Failure::Failed(format!("{directory} cannot be written: {}", plain(&error)))
        })?;
    ui.notice(format!("manual pages are in {}", directory.display()));
    Ok(())
}
