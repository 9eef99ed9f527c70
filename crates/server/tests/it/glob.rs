//! Patterns, against a matcher that tries everything.

use proptest::prelude::*;
use sapwood_server::protocol::glob::matches;

/// Stars alone, by trying every length for each.
fn stars(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|taken| stars(rest, &text[taken..])),
        ([b'?', rest @ ..], [_, left @ ..]) => stars(rest, left),
        ([byte, rest @ ..], [other, left @ ..]) => byte == other && stars(rest, left),
        _ => false,
    }
}

proptest! {
    #[test]
    fn stars_are_tried_as_far_as_needed(pattern in "[ab*?]{0,10}", text in "[ab]{0,12}") {
        let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
        prop_assert_eq!(matches(pattern, text), stars(pattern, text));
    }

    #[test]
    fn escaped_text_is_itself(text in proptest::collection::vec(any::<u8>(), 0..20)) {
        let pattern: Vec<u8> = text.iter().flat_map(|byte| [b'\\', *byte]).collect();
        prop_assert!(matches(&pattern, &text));
        prop_assert!(!matches(&pattern, &[&text[..], b"x"].concat()));
    }

    #[test]
    fn any_pattern_ends(
        pattern in proptest::collection::vec(any::<u8>(), 0..20),
        text in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let _ = matches(&pattern, &text);
    }
}

#[test]
fn brackets_are_those_of_redis() {
    for (pattern, text, expected) in [
        ("h[ae]llo", "hallo", true),
        ("h[ae]llo", "hillo", false),
        ("h[^e]llo", "hallo", true),
        ("h[^e]llo", "hello", false),
        ("h[a-b]llo", "hbllo", true),
        // Turned around, a range is the same.
        ("h[b-a]llo", "hbllo", true),
        ("[\\]]", "]", true),
        ("[\\^a]", "^", true),
        ("[a-]", "-", true),
        // Open to the end.
        ("[ab", "b", true),
        ("[", "[", false),
        ("[]", "]", false),
        ("[^]", "x", true),
        ("a\\", "a\\", true),
        ("*", "", true),
        ("", "", true),
        ("", "a", false),
        ("a*b*c", "aXbYbZc", true),
    ] {
        assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
    }
}

#[test]
fn many_stars_take_no_longer_than_the_product() {
    let pattern = "a*".repeat(1_000) + "b";
    assert!(!matches(pattern.as_bytes(), &[b'a'; 50_000]));
}
