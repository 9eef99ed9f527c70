//! `sapwood bench aggregate` without the rest of the command line tool.

use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: sapwood_bench::aggregate::Args,
}

fn main() -> std::process::ExitCode {
    match sapwood_bench::aggregate::run(&Command::parse().args) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aggregate: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
