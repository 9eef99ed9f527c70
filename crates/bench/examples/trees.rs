//! `sapwood bench trees` without the rest of the command line tool.

use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: sapwood_bench::trees::Args,
}

fn main() -> std::process::ExitCode {
    match sapwood_bench::trees::run(&Command::parse().args) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trees: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
