//! Test cases as data: files of `=== name`, a policy file, `---`, and what is expected of it.

use std::fs;
use std::path::PathBuf;

/// One case.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) input: String,
    pub(crate) expected: String,
}

/// Runs the cases of `faults/<name>.txt` and compares what comes out, `RELENT_BLESS=1` writes it down instead: read the
/// difference before committing it.
pub(crate) fn check(name: &str, run: impl Fn(&str) -> String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/faults/{name}.txt"));
    let text = fs::read_to_string(&path).expect("the cases are there");
    let cases = split(&text);
    assert!(!cases.is_empty(), "{name} has no cases");
    if std::env::var_os("RELENT_BLESS").is_some() {
        let all: Vec<_> = cases.iter().map(|case| render(case, &run(&case.input))).collect();
        fs::write(&path, all.join("\n")).expect("the cases can be written");
        return;
    }
    for case in cases {
        let got = run(&case.input);
        assert!(
            got == case.expected,
            "{name}: {}\n\nexpected:\n{}\n\ngot:\n{got}\n",
            case.name,
            case.expected
        );
    }
}

fn split(text: &str) -> Vec<Case> {
    let parts = text.split("=== ").skip(1);
    parts
        .map(|part| {
            let (name, rest) = part.split_once('\n').expect("a name has a line of its own");
            let (input, expected) =
                rest.split_once("---\n").expect("a line --- stands between file and faults");
            Case { name: name.to_owned(), input: input.to_owned(), expected: expected.trim_end().to_owned() }
        })
        .collect()
}

fn render(case: &Case, got: &str) -> String {
    format!("=== {}\n{}---\n{got}\n", case.name, case.input)
}
