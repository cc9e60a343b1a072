//! Places and lines as they are shown, whatever is in the file.

use relent_config::{ConfigErrors, Diagnostic, parse};

fn errors(text: &str) -> ConfigErrors {
    parse("relent.toml", text).expect_err("the file has a fault")
}

fn only(text: &str) -> Diagnostic {
    let errors = errors(text);
    assert_eq!(errors.iter().count(), 1, "{errors}");
    errors.iter().next().expect("one").clone()
}

#[test]
fn the_parts_can_be_had_one_by_one() {
    let fault = only("version = 1\n[policy.a]\nattempt_timeout = \"3s\"\ndeadline = \"2s\"\n");
    assert_eq!((fault.file(), fault.line(), fault.column()), ("relent.toml", Some(3), Some(19)));
    assert_eq!(fault.message(), "attempt_timeout 3s is not below deadline 2s");
    assert_eq!(fault.span(), Some(41..45));
    assert_eq!(
        fault.mend(),
        Some("lower attempt_timeout, raise deadline, or set attempt_timeout to \"none\"")
    );
    let snippet = fault.place().expect("it has a place").snippet();
    assert_eq!((snippet.text.as_str(), snippet.indent, snippet.width), ("attempt_timeout = \"3s\"", 18, 4));
    let (what, place) = fault.related().expect("a second place");
    assert_eq!((what, place.line(), place.column()), ("deadline is set here", 4, 12));
    let fault = only("version = 1\n[policy.a]\ndeadline = \"2s\"\n");
    assert_eq!(fault.notes().collect::<Vec<_>>(), ["attempt_timeout is not set, and its default is 5s"]);
}

#[test]
fn columns_count_characters_and_tabs_are_widened() {
    let fault = only("version = 1\n[policy.\"zürich\"]\n\trepeat_reason = \"ä\"\t# é\n");
    assert_eq!((fault.line(), fault.column()), (Some(3), Some(2)));
    let shown = fault.to_string();
    assert!(shown.contains("\n3 |     repeat_reason = \"ä\"    # é\n  |     ^^^^^^^^^^^^^\n"), "{shown}");
}

#[test]
fn line_breaks_of_either_kind() {
    let unix = "version = 1\n[policy.a]\nattempts = 0\n";
    let windows = unix.replace('\n', "\r\n");
    assert_eq!(errors(unix).to_string(), errors(&windows).to_string());
}

#[test]
fn a_byte_order_mark_is_no_column() {
    let fault = only("\u{feff}versio = 1\nversion = 1\n");
    assert_eq!((fault.line(), fault.column(), fault.span()), (Some(1), Some(1), Some(0..6)));
    assert!(parse("relent.toml", "\u{feff}version = 1\n").is_ok());
}

#[test]
fn nothing_that_is_shown_moves_the_cursor() {
    let text = "version = 1\n[policy.a]\nrepeat = \"\u{0}\u{1b}[2J\"\n\"\u{202e}\\u0007\" = 1\nx\ry = 1\n";
    let shown = parse("re\u{1b}lent.toml", text).expect_err("faults").to_string();
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    assert!(shown.starts_with("re\\u{1b}lent.toml:3:11: "), "{shown}");
}

#[test]
fn a_long_line_is_cut_around_the_fault() {
    let text = format!(
        "version = 1\n[policy.a]\nretry_on = [{}503, 429, 404]{}\n",
        " ".repeat(5000),
        " ".repeat(5000)
    );
    let fault = only(&text);
    assert_eq!((fault.line(), fault.column()), (Some(3), Some(5013 + 10)));
    let snippet = fault.place().expect("it has a place").snippet();
    assert!(
        snippet.text.chars().count() <= 102 && snippet.text.starts_with('…') && snippet.text.ends_with('…')
    );
    let at: String = snippet.text.chars().skip(snippet.indent).take(snippet.width).collect();
    assert_eq!(at, "404");
}

#[test]
fn at_most_fifty_faults_are_shown_and_the_rest_is_counted() {
    let lines: String = (0..80).map(|n| format!("field_{n:02} = 1\n")).collect();
    let errors = errors(&format!("version = 1\n[policy.a]\n{lines}"));
    assert_eq!((errors.iter().count(), errors.more()), (ConfigErrors::MOST, 30));
    let lines: Vec<_> = errors.iter().filter_map(Diagnostic::line).collect();
    assert_eq!(lines, (3..53).collect::<Vec<_>>());
    assert!(errors.to_string().ends_with("\n\nand 30 more errors"));
}

#[test]
fn too_many_tables_of_a_kind_are_refused() {
    let many: String = (0..1001).map(|n| format!("[policy.p{n}]\n")).collect();
    let fault = only(&format!("version = 1\n{many}"));
    assert_eq!(fault.message(), "the file has 1001 tables [policy], and 1000 are read at most");
}
