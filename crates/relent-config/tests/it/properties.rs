//! Whatever the text, the reader answers: with a valid configuration, or with faults that can be shown.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use relent_config::{ConfigErrors, format_duration, format_size, parse, parse_duration, parse_size};

const SAMPLE: &str = include_str!("../../samples/relent.toml");

/// What TOML and policies are made of, so that random text gets past the first character.
const WORDS: [&str; 44] = [
    "version",
    "policy",
    "proxy",
    "upstream",
    "route",
    "attempts",
    "backoff",
    "base",
    "cap",
    "jitter",
    "budget",
    "breaker",
    "retries_only",
    "retry_on",
    "window",
    "deadline",
    "repeat",
    "endpoints",
    "path",
    "host",
    "=",
    ".",
    ",",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "\n",
    "\r\n",
    " ",
    "\t",
    "1",
    "0.1",
    "\"1s\"",
    "\"none\"",
    "true",
    "\\",
    "\u{0}é\u{202e}",
];

/// Parses, and looks at all of what comes out.
fn shown(text: &str) -> Result<(), TestCaseError> {
    let Err(errors) = parse("relent.toml", text) else { return Ok(()) };
    prop_assert!((1..=ConfigErrors::MOST).contains(&errors.iter().count()));
    let rendered = errors.to_string();
    prop_assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'), "{rendered:?}");
    let lines = text.split('\n').count();
    let mut last = 0;
    for fault in &errors {
        let place = fault.place().expect("faults of a text have a place");
        prop_assert!(place.span().start >= last, "in the order of the file");
        last = place.span().start;
        prop_assert!((1..=lines).contains(&place.line()));
        let snippet = place.snippet();
        prop_assert!(snippet.width >= 1 && snippet.indent <= snippet.text.chars().count());
        prop_assert!(!fault.message().is_empty());
    }
    Ok(())
}

proptest! {
    // A fixed seed: a run says the same as the one before. Raise the cases by hand to look further.
    #![proptest_config(ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_text(text in any::<String>()) {
        shown(&text)?;
    }

    #[test]
    fn any_words(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..60)) {
        shown(&words.concat())?;
        shown(&format!("version = 1\n[policy.a]\n{}", words.concat()))?;
    }

    #[test]
    fn a_mutated_sample(
        cuts in prop::collection::vec((0.0..1.0_f64, 0_usize..12, prop::sample::select(&WORDS[..])), 1..6)
    ) {
        let mut text: Vec<char> = SAMPLE.chars().collect();
        for (at, length, word) in cuts {
            let at = (at * text.len() as f64) as usize;
            let end = (at + length).min(text.len());
            text.splice(at..end, word.chars());
        }
        shown(&text.into_iter().collect::<String>())?;
    }

    #[test]
    fn lines_of_the_sample_in_any_order(order in prop::collection::vec(0..SAMPLE.lines().count(), 0..80)) {
        let lines: Vec<_> = SAMPLE.lines().collect();
        let text: Vec<_> = order.into_iter().map(|n| lines[n]).collect();
        shown(&text.join("\n"))?;
    }

    #[test]
    fn lengths_round_trip(nanos in prop_oneof![any::<u64>(), 0..10_000_000_000_u64, (0..1_000_000_u64).prop_map(|ms| ms * 1_000_000)]) {
        let length = Duration::from_nanos(nanos);
        prop_assert_eq!(parse_duration(&format_duration(length)), Ok(length));
    }

    #[test]
    fn sizes_round_trip(bytes in prop_oneof![any::<u64>(), (0..1_000_u64).prop_map(|n| n << 20), (0..1_000_u64).prop_map(|n| n * 1000)]) {
        prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
    }

    #[test]
    fn lengths_are_exact(whole in 0..1_000_000_u64, decimals in "[0-9]{1,9}") {
        let nanos: u64 = format!("{decimals:0<9}").parse().expect("nine digits");
        let expected = Duration::from_secs(whole) + Duration::from_nanos(nanos);
        prop_assert_eq!(parse_duration(&format!("{whole}.{decimals}s")), Ok(expected));
    }

    #[test]
    fn no_text_for_a_length_or_a_size_panics(text in "[-0-9.a-zA-Z µ_]{0,40}") {
        let _ = (parse_duration(&text), parse_size(&text));
        shown(&format!("version = 1\n[policy.a]\ndeadline = \"{text}\"\nreplay_limit = \"{text}\"\n"))?;
    }
}
