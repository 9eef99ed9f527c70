//! `sapwood bench plot` without the rest of the command line tool.

use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: sapwood_bench::plot::Args,
}

fn main() -> std::process::ExitCode {
    match sapwood_bench::plot::run(&Command::parse().args) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plot: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
