//! `sapwood bench ordered` without the rest of the command line tool.

use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: sapwood_bench::ordered::Args,
}

fn main() -> std::process::ExitCode {
    match sapwood_bench::ordered::run(&Command::parse().args) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ordered: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
