//! Sessions in `tests/cmd`: what is typed, and what comes back.

#[test]
fn sessions_go_as_written() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").env("NO_COLOR", "1").env("COLUMNS", "100");
}
