//! The budgets of the profile that tests are built with. `cargo xtask instructions` holds those of
//! optimised code, which would take minutes more to build.
#![forbid(unsafe_code)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::Command;

fn count(arguments: &[&str]) -> (bool, String) {
    let program = env!("CARGO_BIN_EXE_instructions");
    let output = Command::new(program).args(arguments).output().expect("the program starts");
    let [told, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("a text"));
    (output.status.success(), told + &errors)
}

/// A system that lets no process be traced fails it, and says so: nothing was counted there.
#[test]
fn operations_keep_their_budgets() {
    let (kept, told) = count(&[]);
    println!("{told}");
    assert!(kept, "{told}");
}

#[test]
fn what_is_not_understood_is_refused() {
    let (kept, told) = count(&["everything"]);
    assert!(!kept && told.contains("takes no arguments"), "{told}");
}
