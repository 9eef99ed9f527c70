//! Programs of `bench-vs` in Python, with packages of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{Process, process};
use crate::{Error, Result};

/// The place of the packages, in the folder of the program.
const ENVIRONMENT: &str = "target/venv";
const REQUIREMENTS: &str = "requirements.txt";

/// Starts `peers.py` of a folder of `bench-vs`, after installing its packages where they are not
/// there. `flag` is the one that asks for it.
///
/// # Errors
/// That there is no Python, or no network where packages are missing, and that the flag can be left
/// out.
pub(crate) fn start(name: &str, flag: &str) -> Result<Process> {
    let folder = process::folder(name);
    prepare("python3", &folder, flag)?;
    // Without files of its own beside the source.
    let mut command = Command::new(folder.join(ENVIRONMENT).join("bin/python"));
    command.args(["-B", "peers.py"]).current_dir(&folder);
    Process::start("peers.py", &mut command).map_err(|error| missing("python3", flag, &error))
}

/// A program that a package of a folder has, itself: the one in `bin` may be a script that starts
/// it.
///
/// # Errors
/// That it is not there.
pub(crate) fn program(name: &str, package: &str, program: &str) -> Result<PathBuf> {
    let libraries = process::folder(name).join(ENVIRONMENT).join("lib");
    let versions = std::fs::read_dir(&libraries)?;
    let programs = versions
        .filter_map(Result::ok)
        .map(|version| version.path().join("site-packages").join(package).join(program));
    let mut programs = programs.filter(|path| path.is_file());
    programs.next().ok_or_else(|| {
        format!("{} has no {package}/{program}: remove it, to install it anew", libraries.display())
            .into()
    })
}

/// Makes an environment with the packages of the requirements, unless it is there.
fn prepare(python: &str, folder: &Path, flag: &str) -> Result {
    let environment = folder.join(ENVIRONMENT);
    let wanted = std::fs::read(folder.join(REQUIREMENTS))?;
    // Written when all was installed.
    let installed = environment.join(REQUIREMENTS);
    if std::fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let run = |program: &Path, words: &[&str], what: &str| -> Result {
        let ran = Command::new(program)
            .args(words)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| missing(&program.display().to_string(), flag, &error))?;
        match ran.status.success() {
            true => Ok(()),
            false => Err(format!(
                "{what}: {}\n{}; or leave {flag} out",
                ran.status,
                String::from_utf8_lossy(&ran.stderr).trim_end()
            )
            .into()),
        }
    };
    run(
        Path::new(python),
        &["-m", "venv", ENVIRONMENT],
        "Python cannot make an environment: install its module venv (apt install python3-venv)",
    )?;
    run(
        &environment.join("bin/python"),
        &["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "-r", REQUIREMENTS],
        &format!(
            "pip cannot install the packages of {}, for which it needs the network once",
            folder.join(REQUIREMENTS).display()
        ),
    )?;
    Ok(std::fs::write(installed, wanted)?)
}

fn missing(program: &str, flag: &str, error: &std::io::Error) -> Error {
    format!("{program} cannot be started: {error}; install python3 3.10 or later with its module venv, or leave {flag} out").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Folder;

    #[test]
    fn a_missing_python_is_named_with_what_to_do() {
        let folder = Folder::new(&std::env::temp_dir(), "no-python").expect("a folder");
        std::fs::write(folder.path().join(REQUIREMENTS), "duckdb\n").expect("a file");
        let error = prepare("python-that-is-not-there", folder.path(), "--frames")
            .expect_err("it is not there");
        let message = error.to_string();
        assert!(message.starts_with("python-that-is-not-there cannot be started"), "{message}");
        assert!(message.contains("install python3"), "{message}");
        assert!(message.contains("leave --frames out"), "{message}");
    }

    #[test]
    fn an_environment_that_has_the_packages_is_left_as_it_is() {
        let folder = Folder::new(&std::env::temp_dir(), "python").expect("a folder");
        let environment = folder.path().join(ENVIRONMENT);
        std::fs::create_dir_all(&environment).expect("a folder");
        for place in [folder.path(), &environment] {
            std::fs::write(place.join(REQUIREMENTS), "duckdb\n").expect("a file");
        }
        assert!(prepare("python-that-is-not-there", folder.path(), "--frames").is_ok());
        std::fs::write(folder.path().join(REQUIREMENTS), "duckdb==2\n").expect("a file");
        assert!(prepare("python-that-is-not-there", folder.path(), "--frames").is_err());
    }
}
