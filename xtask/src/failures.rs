//! What failed tests said, kept from what a test run prints, so that it is there again where the run ends.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};

/// Lines of a failed test that are kept: the last ones, where it says the reason.
const LINES_KEPT: usize = 40;

/// Copies a test run's output to `to`, and returns the sections in which failed tests say why.
///
/// # Errors
/// Where the output cannot be read or written.
pub(crate) fn tee(output: impl Read, mut to: impl Write) -> std::io::Result<Vec<String>> {
    let mut failures = Failures::default();
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        failures.line(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    failures.end_section();
    Ok(failures.sections)
}

/// The sections that libtest prints, which begin with `---- name stdout ----` and end before the list of names.
#[derive(Default)]
struct Failures {
    sections: Vec<String>,
    /// The heading of the section that is open, its last lines, and how many came before them.
    open: Option<(String, VecDeque<String>, usize)>,
}

impl Failures {
    fn line(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.end_section();
            self.open = Some((line.to_owned(), VecDeque::new(), 0));
        } else if line == "failures:" {
            self.end_section();
        } else if let Some((_, lines, left_out)) = &mut self.open
            && !is_frame(line)
        {
            lines.push_back(line.to_owned());
            if lines.len() > LINES_KEPT {
                lines.pop_front();
                *left_out += 1;
            }
        }
    }

    fn end_section(&mut self) {
        let Some((heading, lines, left_out)) = self.open.take() else { return };
        let cut = (left_out > 0).then(|| format!("({left_out} lines before)"));
        let all: Vec<String> = [heading].into_iter().chain(cut).chain(lines).collect();
        self.sections.push(all.join("\n").trim_end().to_owned());
    }
}

/// Whether a line is of a backtrace, which would leave no room for the reason: `   3: name`, or `   at file:line`.
fn is_frame(line: &str) -> bool {
    let Some((number, _)) = line.trim_start().split_once([':', ' ']) else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    line.starts_with("  ") && (is_number || number == "at")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_tests_say_is_kept() {
        let long: String = (0..50).map(|at| format!("line {at}\n")).collect();
        let output = format!(
            "running 3 tests\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nthread 'a' panicked\n\n\
             ---- b::c stdout ----\n{long}\nfailures:\n    a\n    b::c\n\ntest result: FAILED. 1 passed\n"
        );
        let mut copied = Vec::new();
        let sections = tee(output.as_bytes(), &mut copied).expect("memory");
        assert_eq!(copied, output.as_bytes());
        assert_eq!(sections.len(), 2, "{sections:?}");
        assert_eq!(sections[0], "---- a stdout ----\nthread 'a' panicked");
        assert!(sections[1].starts_with("---- b::c stdout ----\n(11 lines before)\nline 11\n"));
        assert!(sections[1].ends_with("line 49"), "{}", sections[1]);
        let frames: String =
            (0..60).map(|at| format!("  {at:>2}: name\n    at ./a.rs:{at}:1\n")).collect();
        let output =
            format!("---- a stdout ----\n1: why\nstack backtrace:\n{frames}repeat with: it\n");
        let told = tee(output.as_bytes(), Vec::new()).expect("memory");
        assert_eq!(told, ["---- a stdout ----\n1: why\nstack backtrace:\nrepeat with: it"]);
        assert!(tee(&b"running 0 tests\n"[..], Vec::new()).expect("memory").is_empty());
    }
}
