//! `sapwood bench hash` without the rest of the command line tool.

use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: sapwood_bench::hash::Args,
}

fn main() -> std::process::ExitCode {
    match sapwood_bench::hash::run(&Command::parse().args) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hash: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
