//! The Rust files of the repository, with their text, and the functions in them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::token::{Token, tokens};

#[derive(Debug)]
pub(crate) struct SourceFile {
    /// From the root of the repository, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every `.rs` file below `root`, but for build output and hidden folders.
pub(crate) fn files(root: &Path) -> Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    walk(root, "", &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<SourceFile>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(&entry.path(), &format!("{path}/"), found)?;
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
            found.push(SourceFile { path, text });
        }
    }
    Ok(())
}

/// A function with a body, from the line of its `fn` to the line of its closing brace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Function {
    pub(crate) fn lines(&self) -> usize {
        self.last - self.first + 1
    }
}

/// The functions of a file, nested ones and those in macros too, in the order in which they end.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    // One entry for each open brace; a function's own opening brace carries its head.
    let mut braces: Vec<Option<Head>> = Vec::new();
    let mut head: Option<Head> = None;
    for (at, token) in tokens.iter().enumerate() {
        if let Some(named) = Head::at(&tokens, at) {
            head = Some(named);
            continue;
        }
        let opens_body = head.as_ref().is_some_and(|head| token.text == "{" && head.is_complete());
        match token.text {
            "{" if opens_body => braces.push(head.take()),
            "{" => braces.push(None),
            "}" => {
                if let Some(Head { name, line, .. }) = braces.pop().flatten() {
                    found.push(Function { name, first: line, last: token.line });
                }
            }
            mark => {
                let after_dash = at > 0 && tokens[at - 1].text == "-";
                head = head.and_then(|head| head.read(mark, after_dash));
            }
        }
    }
    found
}

/// A function's head while it is read. Its body starts at the first brace outside of brackets; a brace inside of them
/// is a constant (`Buffer<{ 2 * N }>`).
#[derive(Debug)]
struct Head {
    name: String,
    line: usize,
    angles: usize,
    /// The open `(` and `[`, each with the angle brackets open around it: inside, `<` may also mean "less".
    rounds: Vec<usize>,
}

impl Head {
    /// The head that starts at this token, if it is a `fn` with a name (a function pointer has none; in a macro the
    /// name may be `$name`).
    fn at(tokens: &[Token<'_>], at: usize) -> Option<Self> {
        if tokens[at].text != "fn" {
            return None;
        }
        let mut name = tokens.get(at + 1)?.text.to_owned();
        if name == "$" {
            name += tokens.get(at + 2)?.text;
        } else if !tokens[at + 1].is_word() {
            return None;
        }
        Some(Self { name, line: tokens[at].line, angles: 0, rounds: Vec::new() })
    }

    /// Nothing when the mark shows that no body comes.
    fn read(mut self, mark: &str, after_dash: bool) -> Option<Self> {
        match mark {
            "(" | "[" => self.rounds.push(self.angles),
            ")" | "]" => self.angles = self.rounds.pop()?,
            "<" => self.angles += 1,
            ">" if !after_dash => self.angles = self.angles.saturating_sub(1),
            ";" if self.rounds.is_empty() => return None,
            _ => {}
        }
        Some(self)
    }

    fn is_complete(&self) -> bool {
        self.angles == 0 && self.rounds.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str) -> Vec<(String, usize, usize)> {
        functions(text).into_iter().map(|f| (f.name, f.first, f.last)).collect()
    }

    fn span(name: &str, first: usize, last: usize) -> (String, usize, usize) {
        (name.to_owned(), first, last)
    }

    #[test]
    fn a_function_runs_from_fn_to_its_closing_brace() {
        let text = "/// Docs do not count.\n#[inline]\npub(crate) async fn one(\n    a: u8,\n) -> u8 {\n    a\n}\nfn two() {}\n";
        assert_eq!(spans(text), [span("one", 3, 7), span("two", 8, 8)]);
        assert_eq!(functions(text)[0].lines(), 5);
    }

    #[test]
    fn braces_in_literals_and_comments_do_not_end_it() {
        let text = "fn f<'a>(x: &'a str) {\n    // }\n    let _ = (\"}\", '}', r#\"}\"#, b'}', /* } */ '\\'');\n    g('{');\n}\n";
        assert_eq!(spans(text), [span("f", 1, 5)]);
    }

    #[test]
    fn nested_functions_and_closures_are_counted_apart() {
        let text =
            "fn outer() {\n    fn inner() {\n    }\n    let c = || {\n    };\n    if x { y } else { z }\n}\n";
        assert_eq!(spans(text), [span("inner", 2, 3), span("outer", 1, 7)]);
    }

    #[test]
    fn what_has_no_body_is_no_function() {
        let text = "trait T {\n    fn a(&self) -> [u8; 4];\n    fn b(&self) {\n    }\n}\ntype F = fn(u8) -> u8;\nstruct S { f: fn() }\n";
        assert_eq!(spans(text), [span("b", 3, 4)]);
    }

    #[test]
    fn braces_in_a_head_are_constants() {
        let text = "fn f<const N: usize>(x: Buffer<{ N + 1 }>, y: [u8; { N << 1 }]) -> Wrap<u8, { N }>\nwhere\n    F: Fn(u8) -> Vec<Vec<u8>>,\n{\n}\n";
        assert_eq!(spans(text), [span("f", 1, 5)]);
        assert_eq!(spans("fn g(x: [u8; N << 2]) -> u8 {\n}\n"), [span("g", 1, 2)]);
        assert_eq!(spans("fn h(f: Box<dyn Fn(u8) -> u8>) where [u8; 3]: Sized {\n}\n"), [span("h", 1, 2)]);
    }

    #[test]
    fn functions_in_macros_are_seen() {
        let text = "macro_rules! m {\n    ($name:ident fn) => {\n        fn $name() {\n        }\n    };\n    (fn $n:ident) => {};\n}\nfn after() {\n}\n";
        assert_eq!(spans(text), [span("$name", 3, 4), span("after", 8, 9)]);
        assert_eq!(spans("fn r#match() {\n}\n"), [span("r#match", 1, 2)]);
    }
}
