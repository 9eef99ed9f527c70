//! The smoke size of each torture; `cargo xtask --help` has the full ones.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

/// A file system in memory. What a process leaves there is the same as on a disk, and a sync costs nothing: a disk
/// that others write to answers one in a second, and a torture makes thousands.
const MEMORY: &str = "/dev/shm";

/// Runs a torture on files in memory, where there is room for them.
fn torture_in_memory(line: &str) {
    match Path::new(MEMORY).is_dir() {
        true => torture(&format!("{line} --within {MEMORY}")),
        false => torture(line),
    }
}

/// Runs a torture and wants it to find nothing.
fn torture(line: &str) {
    let program = env!("CARGO_BIN_EXE_torture");
    let output = Command::new(program).args(line.split(' ')).output().expect("the program starts");
    let [told, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "torture {line}: {}\n{told}{errors}", output.status);
    println!("{told}");
}

#[test]
fn killed_processes_lose_nothing_that_they_told_of() {
    torture("kills --chains 4 --links 8");
}

#[test]
fn lost_power_loses_nothing_that_was_told_of() {
    torture_in_memory("losses --chains 8 --links 6");
}

#[test]
fn killed_processes_lose_no_commit_of_a_pool() {
    torture("pools --chains 4 --links 12");
}

#[test]
fn a_statement_that_is_killed_is_whole_or_absent() {
    torture_in_memory("statements --chains 4 --links 6");
}

/// A program that retries a failed checkpoint, and is ended while it does: the images of both have
/// one number.
#[test]
fn a_failed_sync_of_names_and_an_end_in_the_next_checkpoint_leave_a_table_that_opens() {
    torture_in_memory("faults --only fsync --stride 16");
}

#[test]
fn failing_calls_are_told_and_lose_nothing() {
    torture_in_memory("faults --stride 64");
}

#[test]
fn damaged_files_answer_right_or_not_at_all() {
    torture_in_memory("damage --count 100");
}

/// Says that it was skipped where no disk can be mounted.
#[test]
fn a_full_disk_loses_nothing_and_can_be_read() {
    torture("enospc --count 6");
}

#[test]
fn every_torture_has_help() {
    torture("--help");
    torture("kills --help");
}
