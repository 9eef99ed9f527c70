//! How does a command end, and what does its exit code say?
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; also when the reader of the output closed it (`sapwood scan ... \| head`) |
//! | 1 | failed, or `get` found nothing, or `--strict` and rows were refused |
//! | 2 | the arguments cannot be used |
//! | 130 | stopped by Ctrl-C or a termination signal |

use std::io;
use std::process::ExitCode;

/// Why a command did not finish.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments do not fit each other or the file.
    Usage(String),
    /// What, where, and what to do next.
    Failed(String),
    /// Ctrl-C; what had been done.
    Interrupted(String),
    /// Whoever reads the output has seen enough.
    OutputClosed,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Of writing to standard output.
    pub(crate) fn of_output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(format!("standard output cannot be written: {error}"))
        }
    }
}

impl From<sapwood::Error> for Failure {
    fn from(error: sapwood::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<sapwood::key::DecodeError> for Failure {
    fn from(error: sapwood::key::DecodeError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Prints what there is to say and answers the exit code.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprintln!("error: {message}\n\nFor more information, try '--help'.");
            ExitCode::from(2)
        }
        Err(Failure::Interrupted(done)) => {
            eprintln!("interrupted: {done}");
            ExitCode::from(130)
        }
    }
}
