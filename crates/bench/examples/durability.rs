//! `sapwood bench durability` without the rest of the command line tool.

use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: sapwood_bench::durability::Args,
}

fn main() -> std::process::ExitCode {
    match sapwood_bench::durability::run(&Command::parse().args) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("durability: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
