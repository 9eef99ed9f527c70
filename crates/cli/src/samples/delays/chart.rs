//! A chart of bars in a terminal.

/// The blocks that a bar ends with, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar for a share of the whole width, to an eighth of a column. Less than nothing is nothing.
pub(super) fn bar(value: f64, greatest: f64, width: usize) -> String {
    if greatest <= 0.0 || value <= 0.0 {
        return String::new();
    }
    let eighths = (value / greatest * (width * 8) as f64).round() as usize;
    let eighths = eighths.min(width * 8);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(8.0, 8.0, 4), "████");
        assert_eq!(bar(4.0, 8.0, 4), "██");
        assert_eq!(bar(0.25, 8.0, 4), "▏");
        assert_eq!(bar(3.0, 8.0, 4), "█▌");
        for nothing in [bar(0.0, 8.0, 4), bar(-1.0, 8.0, 4), bar(1.0, 0.0, 4)] {
            assert_eq!(nothing, "");
        }
        assert_eq!(bar(9.0, 8.0, 4), "████");
    }
}
