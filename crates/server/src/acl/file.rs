//! Users in a file: a line for each, with the rules that make it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::acl::selector::{NewUsersChannels, RuleError, has_spaces};
use crate::acl::user::User;
use crate::acl::{merge_selectors, text};
use crate::catalog::Catalog;

/// A file of users that cannot be used. Its text shows no password.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is none.
    #[error("no ACL file is configured")]
    NoFile,
    /// It cannot be read.
    #[error("Error loading ACLs, opening file '{}': {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Lines of it are wrong; all of them are told.
    #[error(
        "{lines}WARNING: ACL errors detected, no change to the previously active ACL rules was \
         performed"
    )]
    Lines {
        /// A sentence for each.
        lines: String,
    },
    /// It cannot be written.
    #[error("writing ACL file '{}': {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

/// The users of a file.
pub(crate) fn read(
    path: &Path,
    catalog: &'static Catalog,
    new_channels: NewUsersChannels,
) -> Result<Vec<User>, FileError> {
    let read = |cause| FileError::Read { path: path.to_owned(), cause };
    let bytes = fs::read(path).map_err(read)?;
    let mut users: Vec<User> = Vec::new();
    let mut wrong = String::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let place = format!("{}:{}", path.display(), index + 1);
        match user_of(line, catalog, new_channels) {
            Err(error) => wrong += &format!("{place}{error}. "),
            Ok(user) if users.iter().any(|other| other.name == user.name) => {
                let name = text(&user.name);
                wrong += &format!("WARNING: Duplicate user '{name}' found on line {}. ", index + 1);
            }
            Ok(user) => users.push(user),
        }
    }
    if wrong.is_empty() { Ok(users) } else { Err(FileError::Lines { lines: wrong }) }
}

/// A line that is wrong. The text follows its place.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error(" should start with user keyword followed by the username")]
    Keyword,
    #[error(": username '{0}' contains invalid characters")]
    Name(String),
    #[error(": Unmatched parenthesis in selector definition")]
    Parenthesis,
    #[error(": Error in applying operation '{0}': {1}")]
    Unknown(String, RuleError),
    #[error(": {0}")]
    Rule(RuleError),
}

fn user_of(
    line: &[u8],
    catalog: &'static Catalog,
    new_channels: NewUsersChannels,
) -> Result<User, LineError> {
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let (Some(b"user"), Some(name)) = (words.next(), words.next()) else {
        return Err(LineError::Keyword);
    };
    if has_spaces(name) {
        return Err(LineError::Name(text(name)));
    }
    let rules: Vec<&[u8]> = words.collect();
    let rules = merge_selectors(&rules).map_err(|_| LineError::Parenthesis)?;
    let mut user = User::new(catalog, 0, name, new_channels);
    for rule in rules {
        user.apply(rule.trim_ascii()).map_err(|cause| match cause {
            // The name of a command is no secret.
            RuleError::Unknown => LineError::Unknown(text(&rule), cause),
            cause => LineError::Rule(cause),
        })?;
    }
    Ok(user)
}

/// Writes users to a file, which others see as it was or as it is, and never in between.
pub(crate) fn write(path: &Path, users: &[Arc<User>]) -> Result<(), FileError> {
    let mut bytes = Vec::new();
    for user in users {
        bytes.extend(user.describe());
        bytes.push(b'\n');
    }
    replace(path, &bytes).map_err(|cause| FileError::Write { path: path.to_owned(), cause })
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".tmp-{}-{:x}", std::process::id(), fastrand::u64(..)));
    let beside = PathBuf::from(beside);
    let written = write_new(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // What is left of it is of no use; the error before says more.
        let _ = fs::remove_file(&beside);
        return written;
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// A new file that its owner alone may read.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
